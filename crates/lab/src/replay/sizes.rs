//! Sizes of memory: in bytes, or as shares of what a trace touches.

use piebald_experiment::MemorySize;
use piebald_units::Bytes;

/// Most pages of memory.
const MAX_PAGES: u64 = 1 << 28;

/// Why a size is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It is too small or too large.
    #[error("size {size}: {pages} pages of {page_bytes} B; allowed: 1 to 2^28 pages")]
    Range {
        /// As given.
        size: String,
        /// In pages.
        pages: u64,
        /// Bytes of one.
        page_bytes: u64,
    },
    /// The tables do not fit in this computer's memory.
    #[error(
        "sizes up to {most}: the tables of {runs} runs would take some {needed}, and this computer has {available} of memory left; allowed: smaller sizes, or fewer sizes and policies at once{}",
        enough(*.footprint, *.page_bytes)
    )]
    Tables {
        /// The largest size.
        most: Bytes,
        /// Policies times sizes.
        runs: usize,
        /// Bytes of tables.
        needed: Bytes,
        /// Bytes that there are.
        available: Bytes,
        /// Different pages of the trace; 0 = nobody has counted them.
        footprint: u64,
        /// Bytes of a page.
        page_bytes: u64,
    },
    /// It holds nothing.
    #[error("size {0}: allowed for objects that take their bytes: 1 B and more")]
    Nothing(String),
}

/// Does it depend on what the trace touches?
pub(super) fn needs_footprint(size: MemorySize) -> bool {
    matches!(size, MemorySize::Share(_))
}

/// Bytes that a page of memory has in a policy's tables, and in those of the kernel above a disk: what replays of
/// all policies took on average.
const TABLE_BYTES: [u64; 2] = [50, 40];

fn enough(footprint: u64, page_bytes: u64) -> String {
    match footprint {
        0 => String::new(),
        pages => format!(
            " ({} hold all pages of the trace)",
            Bytes(pages * page_bytes)
        ),
    }
}

/// Do the tables of all `policies` at all sizes fit?
pub(super) fn check_tables(
    pages: &[u64],
    (policies, disk): (usize, bool),
    (footprint, page_bytes): (u64, u64),
    available: Option<u64>,
) -> Result<(), SizeError> {
    let [policy, kernel] = TABLE_BYTES;
    let each = policy + if disk { kernel } else { 0 };
    let needed = pages.iter().sum::<u64>() * policies as u64 * each;
    match available {
        Some(available) if needed > available => Err(SizeError::Tables {
            most: Bytes(pages.iter().max().unwrap_or(&0) * page_bytes),
            runs: pages.len() * policies,
            needed: Bytes(needed.next_multiple_of(Bytes::GIB)),
            available: Bytes(available / Bytes::MIB * Bytes::MIB),
            footprint,
            page_bytes,
        }),
        _ => Ok(()),
    }
}

/// In pages of `page_bytes`, of a trace that touches `footprint` different ones.
fn pages(size: MemorySize, page_bytes: u64, footprint: u64) -> Result<u64, SizeError> {
    let pages = match size {
        MemorySize::Bytes(bytes) => bytes.0 / page_bytes,
        MemorySize::Share(share) => ((footprint as f64 * share).round() as u64).max(1),
    };
    match (1..=MAX_PAGES).contains(&pages) {
        true => Ok(pages),
        false => Err(SizeError::Range {
            size: size.to_string(),
            pages,
            page_bytes,
        }),
    }
}

/// All sizes in bytes, rising, each once, of a trace whose objects have `footprint` bytes.
pub(super) fn in_bytes(sizes: &[MemorySize], footprint: u64) -> Result<Vec<u64>, SizeError> {
    let mut bytes = Vec::with_capacity(sizes.len());
    for size in sizes {
        bytes.push(match size {
            MemorySize::Bytes(Bytes(0)) => return Err(SizeError::Nothing(size.to_string())),
            MemorySize::Bytes(bytes) => bytes.0,
            MemorySize::Share(share) => ((footprint as f64 * share).round() as u64).max(1),
        });
    }
    bytes.sort_unstable();
    bytes.dedup();
    Ok(bytes)
}

/// All sizes in pages, rising, each once.
pub(super) fn in_pages(
    sizes: &[MemorySize],
    page_bytes: u64,
    footprint: u64,
) -> Result<Vec<u64>, SizeError> {
    let all = sizes.iter().map(|size| pages(*size, page_bytes, footprint));
    let mut pages = all.collect::<Result<Vec<_>, _>>()?;
    pages.sort_unstable();
    pages.dedup();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_shares() {
        assert_eq!("64MiB".parse(), Ok(MemorySize::Bytes(Bytes(64 << 20))));
        assert_eq!("12.5%".parse(), Ok(MemorySize::Share(0.125)));
        for text in ["", "%", "0%", "-1%", "101%", "nan%", "64 potatoes", "-1MiB"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
    }

    #[test]
    fn tables_that_this_computer_has_no_memory_for_are_refused_before_they_are_made() {
        let check = |pages: &[u64], available| {
            check_tables(pages, (19, true), (500, 4096), Some(available)).map_err(|e| e.to_string())
        };
        let gib = Bytes::GIB;
        assert_eq!(check(&[1 << 20, 1 << 22], 20 * gib), Ok(()));
        let error = check(&[1 << 20, 1 << 26], 20 * gib).expect_err("19 times 64 Mi pages");
        assert_eq!(
            error,
            "sizes up to 256GiB: the tables of 38 runs would take some 109GiB, and this computer has 20GiB \
             of memory left; allowed: smaller sizes, or fewer sizes and policies at once (2000KiB hold all \
             pages of the trace)"
        );
        assert_eq!(
            check_tables(&[1 << 28], (19, true), (500, 4096), None),
            Ok(())
        );
    }

    #[test]
    fn pages_rise_and_are_in_range() {
        let sizes: Vec<MemorySize> = ["50%", "8KiB", "1%", "200KiB"]
            .iter()
            .map(|s| s.parse().expect(s))
            .collect();
        assert_eq!(in_pages(&sizes, 4096, 100), Ok(vec![1, 2, 50]));
        assert_eq!(in_bytes(&sizes, 1_000), Ok(vec![10, 500, 8_192, 204_800]));
        let none = [MemorySize::Bytes(Bytes(0))];
        assert!(in_bytes(&none, 1_000).is_err());
        let small = [MemorySize::Bytes(Bytes(4095))];
        assert!(in_pages(&small, 4096, 100).is_err());
    }
}
