//! The translation buffers of one hardware thread, as far as they decide which uses of pages set
//! an access bit: those that find no translation in them.

use piebald_hw::spec::{TlbLevelSpec, TlbSpec};
use piebald_units::op::RefKind;

/// A set-associative buffer with LRU: sets one after the other, each with the page used last first.
struct Buffer {
    pages: Vec<u64>,
    ways: usize,
    sets: usize,
}

impl Buffer {
    fn new(spec: TlbLevelSpec) -> Self {
        let ways = usize::from(spec.ways).max(1);
        let sets = (spec.entries as usize / ways).max(1);
        Self {
            pages: vec![u64::MAX; sets * ways],
            ways,
            sets,
        }
    }

    /// Uses a translation, which is there from now on: was it before?
    fn hit(&mut self, page: u64) -> bool {
        let first = (page % self.sets as u64) as usize * self.ways;
        let set = &mut self.pages[first..first + self.ways];
        let at = set.iter().position(|p| *p == page);
        let last = at.unwrap_or(self.ways - 1);
        set[..=last].rotate_right(1);
        set[0] = page;
        at.is_some()
    }
}

/// The buffers of a machine for pages of 4 KiB.
pub(super) struct Tlb {
    data: Buffer,
    code: Buffer,
    second: Option<Buffer>,
}

impl Tlb {
    pub(super) fn new(spec: &TlbSpec) -> Self {
        Self {
            data: Buffer::new(spec.l1),
            code: Buffer::new(spec.l1i),
            second: spec.l2.map(Buffer::new),
        }
    }

    /// Does this use of a page walk the page table?
    pub(super) fn walks(&mut self, page: u64, kind: RefKind) -> bool {
        let first = match kind {
            RefKind::Fetch => &mut self.code,
            _ => &mut self.data,
        };
        !first.hit(page) && !self.second.as_mut().is_some_and(|b| b.hit(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_fit_are_walked_once_and_more_of_them_always() {
        let level = |entries, ways| TlbLevelSpec { entries, ways };
        let spec = TlbSpec {
            l1: level(4, 2),
            l1_huge: level(4, 2),
            l1i: level(2, 2),
            l2: Some(level(8, 2)),
            l2_latency: 0,
            walk_cache: 0,
        };
        let walks = |pages: u64, rounds: usize, kind| {
            let mut tlb = Tlb::new(&spec);
            let all = (0..rounds).flat_map(|_| 0..pages);
            all.filter(|page| tlb.walks(*page, kind)).count()
        };
        assert_eq!(walks(8, 5, RefKind::Load), 8);
        assert_eq!(walks(8, 5, RefKind::Fetch), 8);
        // Three pages in each set of two ways: each is gone before it is used again.
        assert_eq!(walks(12, 5, RefKind::Store), 60);
        let mut one_level = TlbSpec { l2: None, ..spec };
        one_level.l1 = level(4, 4);
        let mut tlb = Tlb::new(&one_level);
        let mut walked = |page| tlb.walks(page, RefKind::Load);
        let seen: Vec<bool> = [0, 1, 2, 3, 0, 4, 1, 0]
            .into_iter()
            .map(&mut walked)
            .collect();
        // 4 takes the place of 1, which was used longest ago, and 1 that of 2.
        assert_eq!(seen, [true, true, true, true, false, true, true, false]);
    }
}
