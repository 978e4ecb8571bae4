//! Translation buffers of a core.

use piebald_units::{Asid, PageSize, VirtAddr};

use crate::{
    error::SpecError,
    spec::{TlbLevelSpec, TlbSpec},
};

/// Entries of one buffer at most; no part comes near it.
const MAX_ENTRIES: u32 = 1 << 16;

/// One set-associative buffer with LRU; a set is a row, most recent first.
#[derive(Clone, Debug)]
struct Buffer {
    rows: Vec<u64>,
    ways: usize,
    mask: u64,
}

impl Buffer {
    fn new(spec: TlbLevelSpec, field: &str) -> Result<Self, SpecError> {
        let ways = usize::from(spec.ways);
        if ways == 0 {
            return Err(SpecError::new(format!("{field}.ways"), 0, "1 or more"));
        }
        if spec.entries > MAX_ENTRIES {
            let allowed = format!("at most {MAX_ENTRIES}");
            return Err(SpecError::new(
                format!("{field}.entries"),
                spec.entries,
                allowed,
            ));
        }
        let sets = spec.entries as usize / ways;
        if sets * ways != spec.entries as usize || !sets.is_power_of_two() {
            let allowed = "ways x a power of two";
            return Err(SpecError::new(
                format!("{field}.entries"),
                spec.entries,
                allowed,
            ));
        }
        Ok(Self {
            rows: vec![u64::MAX; sets * ways],
            ways,
            mask: sets as u64 - 1,
        })
    }

    #[inline]
    fn row(&mut self, key: u64) -> &mut [u64] {
        let base = (key & self.mask) as usize * self.ways;
        &mut self.rows[base..base + self.ways]
    }

    #[inline]
    fn holds(&self, key: u64) -> bool {
        let base = (key & self.mask) as usize * self.ways;
        self.rows[base..base + self.ways].contains(&key)
    }

    #[inline]
    fn hit(&mut self, key: u64) -> bool {
        let row = self.row(key);
        if row.first() == Some(&key) {
            return true;
        }
        let Some(at) = row.iter().position(|k| *k == key) else {
            return false;
        };
        // Few ways: a loop beats the call that moves memory.
        let mut carry = key;
        for k in &mut row[..=at] {
            std::mem::swap(k, &mut carry);
        }
        true
    }

    fn insert(&mut self, key: u64) {
        let row = self.row(key);
        row.rotate_right(1);
        row[0] = key;
    }

    fn drop_where(&mut self, gone: impl Fn(u64) -> bool) {
        for key in &mut self.rows {
            if *key != u64::MAX && gone(*key) {
                *key = u64::MAX;
            }
        }
    }
}

/// Bits of a page number.
const PAGE_MASK: u64 = (1 << 40) - 1;

/// Key of a page: the page number stays in the low bits, which pick the set.
fn key(asid: Asid, page: u64) -> u64 {
    u64::from(asid.0) << 40 | page & PAGE_MASK
}

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// In the first level: free.
    First,
    /// In the second level.
    Second,
    /// Nowhere: walk.
    Miss,
}

/// The buffers of one core.
#[derive(Clone, Debug)]
pub(crate) struct Tlb {
    data: Buffer,
    huge: Buffer,
    fetch: Buffer,
    second: Option<Buffer>,
    /// Page-walk cache: prefixes of 2 MiB whose upper levels are known.
    upper: Option<Buffer>,
    /// 2 MiB pages exist in the first level; saves the second lookup if not.
    any_huge: bool,
    last: [u64; 2],
}

impl Tlb {
    pub(crate) fn new(spec: &TlbSpec) -> Result<Self, SpecError> {
        let upper = match spec.walk_cache {
            0 => None,
            n => {
                // Up to 8 sets; real ones are small and nearly fully associative.
                let ways = (n >> n.trailing_zeros().min(3)).min(u32::from(u16::MAX)) as u16;
                let level = TlbLevelSpec { entries: n, ways };
                Some(Buffer::new(level, "tlb.walk_cache")?)
            }
        };
        Ok(Self {
            data: Buffer::new(spec.l1, "tlb.l1")?,
            huge: Buffer::new(spec.l1_huge, "tlb.l1_huge")?,
            fetch: Buffer::new(spec.l1i, "tlb.l1i")?,
            second: spec.l2.map(|l| Buffer::new(l, "tlb.l2")).transpose()?,
            upper,
            any_huge: false,
            last: [u64::MAX; 2],
        })
    }

    /// Page number of the previous lookup for data, if it was of this space.
    pub(crate) fn last_page(&self, asid: Asid) -> u64 {
        let page = self.last[0] & PAGE_MASK;
        match self.last[0] >> 40 == u64::from(asid.0) {
            true => page,
            // No address has such a page.
            false => u64::MAX,
        }
    }

    /// Is this the page of the previous lookup of the same kind?
    #[inline]
    pub(crate) fn same_page(&self, asid: Asid, addr: VirtAddr, fetch: bool) -> bool {
        self.last[usize::from(fetch)] == key(asid, addr.0 >> 12)
    }

    /// Does the first level hold the page of a data address? Changes nothing.
    #[inline]
    pub(crate) fn first_holds(&self, asid: Asid, addr: VirtAddr) -> bool {
        let base = key(asid, addr.0 >> 12);
        let huge = key(asid, addr.0 >> 21);
        self.data.holds(base) || self.any_huge && self.huge.holds(huge)
    }

    /// Looks an address up; a hit in the second level moves it to the first.
    #[inline(never)]
    pub(crate) fn lookup(&mut self, asid: Asid, addr: VirtAddr, fetch: bool) -> Lookup {
        let page = key(asid, addr.0 >> 12);
        self.last[usize::from(fetch)] = page;
        let first = if fetch {
            &mut self.fetch
        } else {
            &mut self.data
        };
        if first.hit(page) {
            return Lookup::First;
        }
        if self.any_huge && self.huge.hit(key(asid, addr.0 >> 21)) {
            return Lookup::First;
        }
        if self.second.as_mut().is_some_and(|b| b.hit(page)) {
            let first = if fetch {
                &mut self.fetch
            } else {
                &mut self.data
            };
            first.insert(page);
            return Lookup::Second;
        }
        Lookup::Miss
    }

    /// How many of a walk's `levels` reads the walk cache saves.
    pub(crate) fn skip_levels(&mut self, asid: Asid, addr: VirtAddr, levels: u8) -> u8 {
        let prefix = key(asid, addr.0 >> 21);
        let Some(upper) = &mut self.upper else {
            return 0;
        };
        if upper.hit(prefix) {
            return levels.saturating_sub(1);
        }
        upper.insert(prefix);
        0
    }

    /// A walk found the page.
    pub(crate) fn insert(&mut self, asid: Asid, addr: VirtAddr, fetch: bool, size: PageSize) {
        match size {
            PageSize::Huge => {
                self.any_huge = true;
                self.huge.insert(key(asid, addr.0 >> 21));
            }
            PageSize::Base => {
                let page = key(asid, addr.0 >> 12);
                let first = if fetch {
                    &mut self.fetch
                } else {
                    &mut self.data
                };
                first.insert(page);
                if let Some(second) = &mut self.second {
                    second.insert(page);
                }
            }
        }
    }

    /// Drops one page, or a whole address space.
    pub(crate) fn shoot_down(&mut self, asid: Asid, page: Option<VirtAddr>) {
        self.last = [u64::MAX; 2];
        let of_space = |k: u64| k >> 40 == u64::from(asid.0);
        let base = page.map(|a| key(asid, a.0 >> 12));
        let huge = page.map(|a| key(asid, a.0 >> 21));
        let gone_base = |k| base.map_or_else(|| of_space(k), |b| k == b);
        let gone_huge = |k| huge.map_or_else(|| of_space(k), |h| k == h);
        self.data.drop_where(gone_base);
        self.fetch.drop_where(gone_base);
        self.huge.drop_where(gone_huge);
        if let Some(second) = &mut self.second {
            second.drop_where(gone_base);
        }
        if let Some(upper) = &mut self.upper {
            upper.drop_where(gone_huge);
        }
    }
}
