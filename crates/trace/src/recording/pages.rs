//! The page-touch index of a chunk: which pages were touched, and how.
//!
//! Access-bit windows can be run over this index without decoding addresses.

use piebald_units::{PAGE_SHIFT, VirtAddr, Vpn};

use super::{
    model::AccessKind,
    varint::{Sink, Source},
};

/// A page that a chunk touched, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTouch {
    /// Which 4 KiB page.
    pub page: Vpn,
    /// Data was read.
    pub load: bool,
    /// Data was written.
    pub store: bool,
    /// Instructions were fetched.
    pub fetch: bool,
}

pub(crate) const LOAD: u8 = 1;
pub(crate) const STORE: u8 = 2;
pub(crate) const FETCH: u8 = 4;
const FLAG_BITS: u32 = 3;

/// What an access does to its page.
pub(crate) const fn touch(kind: AccessKind) -> u8 {
    match kind {
        AccessKind::Load => LOAD,
        AccessKind::Store => STORE,
        AccessKind::Update => LOAD | STORE,
    }
}

const LEAST_SLOTS: usize = 1024;
const FREE: u64 = 0;

/// A set of pages with flags: open addressing, linear probing.
pub(crate) struct PageSet {
    /// `page << 3 | flags`; flags are never 0, so 0 is free.
    slots: Vec<u64>,
    used: usize,
}

impl PageSet {
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![FREE; LEAST_SLOTS],
            used: 0,
        }
    }

    /// Adds the page of an address.
    #[inline]
    pub(crate) fn touch(&mut self, addr: u64, flags: u8) {
        let page = addr >> PAGE_SHIFT;
        let mask = self.slots.len() - 1;
        let mut at = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if *slot == FREE {
                *slot = page << FLAG_BITS | u64::from(flags);
                self.used += 1;
                break;
            }
            if *slot >> FLAG_BITS == page {
                *slot |= u64::from(flags);
                return;
            }
            at = (at + 1) & mask;
        }
        if self.used * 2 > self.slots.len() {
            self.grow();
        }
    }

    /// Adds the pages of `addr .. addr + len`, at least one.
    pub(crate) fn touch_range(&mut self, addr: u64, len: u64, flags: u8) {
        let last = addr.saturating_add(len.saturating_sub(1)) >> PAGE_SHIFT;
        for page in addr >> PAGE_SHIFT..=last {
            self.touch(page << PAGE_SHIFT, flags);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![FREE; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        for slot in old.into_iter().filter(|&s| s != FREE) {
            let flags = slot as u8 & ((1 << FLAG_BITS) - 1);
            self.touch(slot >> FLAG_BITS << PAGE_SHIFT, flags);
        }
    }

    /// Writes the set, sorted, as steps of a varint each, and empties it.
    pub(crate) fn drain(&mut self, sorted: &mut Vec<u64>, out: &mut Sink) {
        sorted.clear();
        sorted.extend(self.slots.iter().filter(|&&s| s != FREE));
        sorted.sort_unstable();
        let mut previous = 0;
        for &slot in sorted.iter() {
            let page = slot >> FLAG_BITS;
            let flags = slot & ((1 << FLAG_BITS) - 1);
            out.varint((page - previous) << FLAG_BITS | flags);
            previous = page;
        }
        self.clear();
    }

    /// Empties it; a set that was far too large gives memory back.
    pub(crate) fn clear(&mut self) {
        if self.used * 16 < self.slots.len() && self.slots.len() > LEAST_SLOTS {
            self.slots.truncate(self.slots.len() / 2);
        }
        self.slots.fill(FREE);
        self.used = 0;
    }
}

/// Reads what [`PageSet::drain`] wrote; `None` if it is malformed.
pub(crate) fn read(bytes: Vec<u8>) -> Option<Vec<PageTouch>> {
    let mut source = Source::new(bytes);
    let mut pages = Vec::new();
    let mut page = 0u64;
    while !source.is_done() {
        let step = source.varint()?;
        page = page.checked_add(step >> FLAG_BITS)?;
        let flags = step as u8 & ((1 << FLAG_BITS) - 1);
        if flags == 0 || page >> (48 - PAGE_SHIFT) != 0 {
            return None;
        }
        pages.push(PageTouch {
            page: Vpn::of(VirtAddr(page << PAGE_SHIFT)),
            load: flags & LOAD != 0,
            store: flags & STORE != 0,
            fetch: flags & FETCH != 0,
        });
    }
    Some(pages)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_set_equals_an_ordered_map() {
        let mut set = PageSet::new();
        let mut oracle = BTreeMap::<u64, u8>::new();
        let mut x = 1u64;
        for round in 0..3 {
            for _ in 0..5000 {
                x = x
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let (addr, flags) = ((x >> 30) & 0xffff_ffff, (x >> 61) as u8 % 7 + 1);
                set.touch(addr, flags);
                *oracle.entry(addr >> 12).or_default() |= flags;
            }
            set.touch_range(0x1fff, 2, FETCH);
            *oracle.entry(1).or_default() |= FETCH;
            *oracle.entry(2).or_default() |= FETCH;
            let mut sink = Sink::default();
            set.drain(&mut Vec::new(), &mut sink);
            let pages = read(sink.as_slice().to_vec()).unwrap();
            let flat: Vec<_> = pages
                .iter()
                .map(|p| {
                    let flags = p.load as u8 | (p.store as u8) << 1 | (p.fetch as u8) << 2;
                    (p.page.0, flags)
                })
                .collect();
            assert_eq!(
                flat,
                oracle.iter().map(|(&p, &f)| (p, f)).collect::<Vec<_>>(),
                "round {round}"
            );
            oracle.clear();
        }
    }
}
