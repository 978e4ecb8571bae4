//! The lines that a program used last: what it finds in the caches when it is entered.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use piebald_units::{VirtAddr, op::RefKind};

/// Bytes of a cache line, as a shift.
const LINE_SHIFT: u32 = 6;

/// Spreads line numbers, which differ in their low bits: one multiplication and a fold.
#[derive(Default)]
struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, line: u64) {
        let mixed = (self.0 ^ line).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// Lines in the order of their last use, found from the end backwards.
pub(super) struct LastLines {
    most: usize,
    /// Line -> its place in `lines`.
    place: HashMap<u64, usize, BuildHasherDefault<LineHasher>>,
    /// The most recent first. A line that was written in the part looked at is a store.
    lines: Vec<(VirtAddr, RefKind)>,
}

impl LastLines {
    /// None yet; `most` are enough.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            place: HashMap::default(),
            lines: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= self.most
    }

    /// Takes in the references that came right before those seen so far.
    pub(super) fn look_back(&mut self, refs: &[(VirtAddr, RefKind)]) {
        for (addr, kind) in refs.iter().rev() {
            let line = addr.0 >> LINE_SHIFT;
            let kind = match (*kind, kind.writes()) {
                (RefKind::Fetch, _) => RefKind::Fetch,
                (_, true) => RefKind::Store,
                (_, false) => RefKind::Load,
            };
            if let Some(&place) = self.place.get(&line) {
                if kind == RefKind::Store {
                    self.lines[place].1 = kind;
                }
            } else if !self.is_full() {
                self.place.insert(line, self.lines.len());
                self.lines.push((VirtAddr(line << LINE_SHIFT), kind));
            }
        }
    }

    /// The least recent first.
    pub(super) fn into_order(mut self) -> Vec<(VirtAddr, RefKind)> {
        self.lines.reverse();
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_the_order_of_their_last_use() {
        use RefKind::{Fetch, Load, Store, Update};
        let refs = |list: &[(u64, RefKind)]| -> Vec<(VirtAddr, RefKind)> {
            list.iter().map(|(a, k)| (VirtAddr(*a), *k)).collect()
        };
        // In time: the second list comes first.
        let later = refs(&[(0x100, Load), (0x200, Load), (0x108, Load), (0x400, Fetch)]);
        let earlier = refs(&[(0x300, Update), (0x200, Store), (0x500, Load)]);
        let mut lines = LastLines::new(10);
        lines.look_back(&later);
        lines.look_back(&earlier);
        let all = [
            (0x300, Store),
            (0x500, Load),
            (0x200, Store),
            (0x100, Load),
            (0x400, Fetch),
        ];
        assert_eq!(lines.into_order(), refs(&all));
        let mut few = LastLines::new(3);
        few.look_back(&later);
        assert!(few.is_full());
        few.look_back(&earlier);
        // No room for older ones, but what was written stays written.
        assert_eq!(few.into_order(), refs(&all[2..]));
    }
}
