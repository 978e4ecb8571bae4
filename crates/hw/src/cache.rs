//! One cache: tags, line states and replacement, without any timing.

use piebald_units::LINE_SHIFT;

use crate::{
    error::SpecError,
    replace::Order,
    spec::{CacheSpec, Indexing},
};

/// A line number: physical address divided by 64. 32 bits reach 256 GiB.
pub(crate) type Line = u32;

/// Tag of a way that holds nothing.
const EMPTY: Line = Line::MAX;

/// Lines that a machine can have: the tag above is not one of them.
pub(crate) const MAX_LINES: u64 = EMPTY as u64;

/// State of a line in one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Clean, others may hold it.
    Shared = 0,
    /// Clean, nobody else holds it.
    Exclusive = 1,
    /// Dirty, others may hold it (MOESI).
    Owned = 2,
    /// Dirty, nobody else holds it.
    Modified = 3,
}

impl State {
    /// Does nobody else hold the line?
    pub(crate) const fn alone(self) -> bool {
        matches!(self, Self::Exclusive | Self::Modified)
    }

    /// The state once all other copies are gone.
    pub(crate) const fn left_alone(self) -> Self {
        match self {
            Self::Shared | Self::Exclusive => Self::Exclusive,
            Self::Owned | Self::Modified => Self::Modified,
        }
    }
}

/// State and flags of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta(u8);

impl Meta {
    /// The data may still be on its way: ask the table of fills in flight.
    const PENDING: u8 = 4;
    /// Came by a non-caching load: leaves without a trace.
    const TRANSIENT: u8 = 8;
    /// Came by a prefetch and was not used yet.
    const PREFETCHED: u8 = 16;

    pub(crate) const fn new(state: State) -> Self {
        Self(state as u8)
    }

    pub(crate) const fn state(self) -> State {
        match self.0 & 3 {
            0 => State::Shared,
            1 => State::Exclusive,
            2 => State::Owned,
            _ => State::Modified,
        }
    }

    pub(crate) const fn dirty(self) -> bool {
        self.0 & 2 != 0
    }

    pub(crate) const fn pending(self) -> bool {
        self.0 & Self::PENDING != 0
    }

    pub(crate) const fn prefetched(self) -> bool {
        self.0 & Self::PREFETCHED != 0
    }

    pub(crate) const fn transient(self) -> bool {
        self.0 & Self::TRANSIENT != 0
    }

    pub(crate) const fn with_pending(self) -> Self {
        Self(self.0 | Self::PENDING)
    }

    pub(crate) const fn with_prefetched(self) -> Self {
        Self(self.0 | Self::PREFETCHED)
    }

    pub(crate) const fn with_transient(self) -> Self {
        Self(self.0 | Self::TRANSIENT)
    }

    /// The data has come and was used.
    pub(crate) const fn settled(self) -> Self {
        Self(self.0 & !(Self::PENDING | Self::PREFETCHED))
    }

    pub(crate) const fn with_state(self, state: State) -> Self {
        Self(self.0 & !3 | state as u8)
    }
}

/// A line that had to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) line: Line,
    pub(crate) meta: Meta,
    pub(crate) sharers: u16,
    pub(crate) owner: u8,
}

/// Where a line sits: set and way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) set: u32,
    pub(crate) way: u32,
}

/// One cache instance.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    ways: usize,
    /// Ways rounded up to a multiple of 4, so that tags are compared four at a time.
    stride: usize,
    set_mask: u32,
    /// Set bits below the slice bits.
    linear_bits: u32,
    /// Masks over the line number, one per slice bit.
    hash: Vec<u32>,
    /// Virtually indexed with more sets than a page has lines: a physical line
    /// may sit in any of `1 << alias_bits` sets.
    alias_bits: u32,
    tags: Vec<Line>,
    meta: Vec<Meta>,
    /// Bit n: core n of the group may hold the line (last level only).
    sharers: Vec<u16>,
    /// Program that brought the line in (last level only).
    owners: Vec<u8>,
    order: Order,
    /// Ways that hold nothing.
    empty: usize,
}

impl Cache {
    /// An empty cache. `field` names it in errors.
    pub(crate) fn new(spec: &CacheSpec, field: &str, seed: u64) -> Result<Self, SpecError> {
        let (sets, hash) = shape(spec, field)?;
        let ways = usize::from(spec.ways);
        let stride = ways.next_multiple_of(4);
        let set_bits = sets.trailing_zeros();
        let page_bits = piebald_units::PAGE_SHIFT - LINE_SHIFT;
        let alias_bits = match spec.index {
            Indexing::Virtual => set_bits.saturating_sub(page_bits),
            Indexing::Physical => 0,
        };
        Ok(Self {
            ways,
            stride,
            set_mask: sets - 1,
            linear_bits: set_bits - hash.len() as u32,
            hash,
            alias_bits,
            tags: vec![EMPTY; sets as usize * stride],
            meta: vec![Meta(0); sets as usize * stride],
            sharers: vec![0; sets as usize * stride],
            owners: vec![0; sets as usize * stride],
            order: Order::new(spec.replacement, sets as usize, ways, seed),
            empty: sets as usize * ways,
        })
    }

    /// Set of a line. `index_line` is the virtual line number for a virtually
    /// indexed cache, else the physical one.
    #[inline]
    pub(crate) fn set_of(&self, index_line: Line) -> usize {
        if self.hash.is_empty() {
            return (index_line & self.set_mask) as usize;
        }
        let low = index_line & ((1 << self.linear_bits) - 1);
        let slice = self.hash.iter().enumerate().fold(0, |s, (i, mask)| {
            s | ((index_line & mask).count_ones() & 1) << i
        });
        (low | slice << self.linear_bits) as usize
    }

    /// Number of sets.
    pub(crate) fn sets(&self) -> usize {
        self.set_mask as usize + 1
    }

    /// Number of ways.
    pub(crate) const fn ways(&self) -> usize {
        self.ways
    }

    /// Is the set chosen by virtual address bits that differ from physical ones?
    pub(crate) const fn aliases(&self) -> bool {
        self.alias_bits != 0
    }

    /// Finds a line in a set.
    #[inline]
    pub(crate) fn find(&self, set: usize, line: Line) -> Option<Slot> {
        let base = set * self.stride;
        let row = &self.tags[base..base + self.stride];
        for (quad, tags) in row.chunks_exact(4).enumerate() {
            let hit = (tags[0] == line) as u32
                | ((tags[1] == line) as u32) << 1
                | ((tags[2] == line) as u32) << 2
                | ((tags[3] == line) as u32) << 3;
            if hit != 0 {
                return Some(Slot {
                    set: set as u32,
                    way: quad as u32 * 4 + hit.trailing_zeros(),
                });
            }
        }
        None
    }

    /// Finds a physical line wherever it may sit.
    pub(crate) fn find_physical(&self, line: Line) -> Option<Slot> {
        if !self.aliases() {
            return self.find(self.set_of(line), line);
        }
        let in_page = self.set_mask >> self.alias_bits;
        let low = line & in_page;
        (0..1u32 << self.alias_bits)
            .find_map(|color| self.find((low | (color * (in_page + 1))) as usize, line))
    }

    #[inline]
    fn at(&self, slot: Slot) -> usize {
        slot.set as usize * self.stride + slot.way as usize
    }

    /// The line was used.
    #[inline]
    pub(crate) fn touch(&mut self, slot: Slot) {
        self.order
            .touch(slot.set as usize, slot.way as usize, self.ways);
    }

    #[inline]
    pub(crate) fn meta(&self, slot: Slot) -> Meta {
        self.meta[self.at(slot)]
    }

    #[inline]
    pub(crate) fn set_meta(&mut self, slot: Slot, meta: Meta) {
        let at = self.at(slot);
        self.meta[at] = meta;
    }

    pub(crate) fn sharers(&self, slot: Slot) -> u16 {
        self.sharers[self.at(slot)]
    }

    pub(crate) fn set_sharers(&mut self, slot: Slot, sharers: u16) {
        let at = self.at(slot);
        self.sharers[at] = sharers;
    }

    /// Puts a line that is not there into a set; returns what had to leave.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        set: usize,
        line: Line,
        meta: Meta,
        sharers: u16,
        owner: u8,
    ) -> Option<Evicted> {
        let way = self.choose(set);
        let at = set * self.stride + way;
        let old = Evicted {
            line: self.tags[at],
            meta: self.meta[at],
            sharers: self.sharers[at],
            owner: self.owners[at],
        };
        self.tags[at] = line;
        self.meta[at] = meta;
        self.sharers[at] = sharers;
        self.owners[at] = owner;
        self.order.inserted(set, way, self.ways);
        if old.line == EMPTY {
            self.empty -= 1;
            return None;
        }
        Some(old)
    }

    #[inline]
    fn choose(&mut self, set: usize) -> usize {
        if self.empty > 0 && !self.order.prefers_invalid() {
            let base = set * self.stride;
            let row = &self.tags[base..base + self.ways];
            if let Some(way) = row.iter().position(|t| *t == EMPTY) {
                return way;
            }
        }
        self.order.victim(set, self.ways)
    }

    /// Takes a line out; returns what is known of it.
    pub(crate) fn remove(&mut self, slot: Slot) -> Evicted {
        let at = self.at(slot);
        let gone = Evicted {
            line: self.tags[at],
            meta: self.meta[at],
            sharers: self.sharers[at],
            owner: self.owners[at],
        };
        self.tags[at] = EMPTY;
        self.order
            .invalidated(slot.set as usize, slot.way as usize, self.ways);
        self.empty += 1;
        gone
    }

    /// Calls `see(set, owner)` for every line that is held.
    pub(crate) fn for_each_owner(&self, mut see: impl FnMut(usize, u8)) {
        for set in 0..self.sets() {
            let base = set * self.stride;
            for at in base..base + self.ways {
                if self.tags[at] != EMPTY {
                    see(set, self.owners[at]);
                }
            }
        }
    }

    /// Every held line with its meta, for checks.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Line, Meta, u16)> + '_ {
        (0..self.tags.len())
            .filter(|at| self.tags[*at] != EMPTY)
            .map(|at| (self.tags[at], self.meta[at], self.sharers[at]))
    }
}

/// Number of sets and the slice masks over line numbers.
fn shape(spec: &CacheSpec, field: &str) -> Result<(u32, Vec<u32>), SpecError> {
    let refuse = |name: &str, value: &dyn ToString, allowed: &str| {
        Err(SpecError::new(
            format!("{field}.{name}"),
            value.to_string(),
            allowed,
        ))
    };
    if !(1..=64).contains(&spec.ways) {
        return refuse("ways", &spec.ways, "1..=64");
    }
    let set_bytes = u64::from(spec.ways) << LINE_SHIFT;
    let sets = spec.size.0 / set_bytes;
    if sets * set_bytes != spec.size.0 || !sets.is_power_of_two() || sets > 1 << 24 {
        let allowed = "ways x 64 B x a power of two of sets, at most 2^24 sets";
        return refuse("size", &spec.size, allowed);
    }
    if spec.replacement == crate::spec::Replacement::TreePlru && !spec.ways.is_power_of_two() {
        return refuse("ways", &spec.ways, "a power of two for tree-plru");
    }
    let mut hash = Vec::new();
    for (i, text) in spec.slice_hash.iter().enumerate() {
        let digits = text.trim_start_matches("0x");
        let mask = u64::from_str_radix(digits, 16).unwrap_or(0);
        let line_mask = mask >> LINE_SHIFT;
        if mask == 0 || line_mask << LINE_SHIFT != mask || line_mask > MAX_LINES {
            let allowed = "a hexadecimal mask of address bits 6..=37, as in 0x1b5f575440";
            return refuse(&format!("slice_hash[{i}]"), text, allowed);
        }
        hash.push(line_mask as u32);
    }
    if hash.len() as u32 >= sets.trailing_zeros() && !hash.is_empty() {
        return refuse("slice_hash", &hash.len(), "fewer slice bits than set bits");
    }
    if spec.index == Indexing::Virtual && !hash.is_empty() {
        return refuse("index", &"virtual", "physical for a hashed cache");
    }
    Ok((sets as u32, hash))
}
