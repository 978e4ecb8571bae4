//! Where the memory lies, as the firmware told the kernel.

/// First address behind the memory, from the text of `/proc/iomem`; `None` if it does not tell:
/// only root sees addresses there, others see zeros.
pub fn memory_end(iomem: &str) -> Option<u64> {
    let ends = iomem.lines().filter_map(|line| {
        let (range, what) = line.split_once(" : ")?;
        let (_, end) = range.trim().split_once('-')?;
        let end = u64::from_str_radix(end, 16).ok()?;
        (what == "System RAM" && end > 0).then_some(end)
    });
    ends.max()?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_of_memory_ends_it() {
        let text = "00001000-0009ffff : System RAM\n000f0000-000fffff : Reserved\n\
                    00100000-1ffdffff : System RAM\n  01000000-01ffffff : Kernel code\n\
                    fec00000-fec003ff : IOAPIC 0\n";
        assert_eq!(memory_end(text), Some(0x1ffe_0000));
    }

    #[test]
    fn who_may_not_see_addresses_sees_no_end() {
        assert_eq!(memory_end("00000000-00000000 : System RAM\n"), None);
        assert_eq!(memory_end(""), None);
    }
}
