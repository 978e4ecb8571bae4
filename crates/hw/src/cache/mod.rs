//! One cache: tags, line states and replacement, without any timing.

mod index;
mod near;

use piebald_units::LINE_SHIFT;

use index::Index;
pub(crate) use index::first_blind_mask;
pub(crate) use near::{First, Near, Touch};

use crate::{
    error::SpecError,
    replace::Order,
    spec::{CacheSpec, Indexing, Replacement},
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

    /// Nothing to wait for and nothing to count: the data has come and was used.
    #[inline]
    pub(crate) const fn is_settled(self) -> bool {
        self.0 & (Self::PENDING | Self::PREFETCHED) == 0
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

    pub(crate) const fn with_transient(self, transient: bool) -> Self {
        match transient {
            true => Self(self.0 | Self::TRANSIENT),
            false => Self(self.0 & !Self::TRANSIENT),
        }
    }

    /// The data has come and was used.
    pub(crate) const fn settled(self) -> Self {
        Self(self.0 & !(Self::PENDING | Self::PREFETCHED))
    }

    pub(crate) const fn with_state(self, state: State) -> Self {
        Self(self.0 & !3 | state as u8)
    }
}

/// What a cache knows of a held line beside its tag, in one word: sharers above
/// owner above [`Meta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Info(u32);

impl Info {
    /// `sharers`: bit n = core n of the group may hold the line (last level
    /// only). `owner`: the program that brought the line in.
    #[inline]
    pub(crate) const fn new(meta: Meta, sharers: u16, owner: u8) -> Self {
        Self((sharers as u32) << 16 | (owner as u32) << 8 | meta.0 as u32)
    }

    #[inline]
    pub(crate) const fn meta(self) -> Meta {
        Meta(self.0 as u8)
    }

    #[inline]
    pub(crate) const fn owner(self) -> u8 {
        (self.0 >> 8) as u8
    }

    #[inline]
    pub(crate) const fn sharers(self) -> u16 {
        (self.0 >> 16) as u16
    }

    #[inline]
    pub(crate) const fn with_meta(self, meta: Meta) -> Self {
        Self(self.0 & !0xff | meta.0 as u32)
    }

    #[inline]
    pub(crate) const fn with_sharers(self, sharers: u16) -> Self {
        Self(self.0 & 0xffff | (sharers as u32) << 16)
    }
}

/// A line that had to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) line: Line,
    pub(crate) info: Info,
}

/// Where a line sits: set, way, and the word of its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    set: u32,
    way: u32,
    at: u32,
}

/// One cache instance.
///
/// A lookup costs the simulating machine little more than the cache lines that
/// it touches, so a set is laid out in whole ones: up to eight ways take one
/// [block](Block), tags before infos; more ways take as many blocks of tags as a
/// power of two needs, then as many of infos.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    ways: usize,
    index: Index,
    /// Virtually indexed with more sets than a page has lines: a physical line
    /// may sit in any of `1 << alias_bits` sets.
    alias_bits: u32,
    rows: Rows,
    /// Words of a set are `1 << row_shift`.
    row_shift: u32,
    /// Words from a tag to its info.
    info_offset: usize,
    order: Order,
    /// Ways that hold nothing.
    empty: usize,
    /// All ways.
    lines: usize,
}

impl Cache {
    /// An empty cache. `field` names it in errors.
    pub(crate) fn new(spec: &CacheSpec, field: &str, seed: u64) -> Result<Self, SpecError> {
        let index = Index::new(spec, field)?;
        let sets = index.sets();
        let page_bits = piebald_units::PAGE_SHIFT - LINE_SHIFT;
        let alias_bits = match spec.index {
            // Such a cache has no slices, so that its sets are a power of two.
            Indexing::Virtual => sets.trailing_zeros().saturating_sub(page_bits),
            Indexing::Physical => 0,
        };
        Ok(Self {
            index,
            alias_bits,
            ..Self::of_sets(spec.replacement, sets, usize::from(spec.ways), seed)
        })
    }

    /// An empty cache of any number of sets, whose callers know the set of each line.
    pub(crate) fn of_sets(kind: Replacement, sets: usize, ways: usize, seed: u64) -> Self {
        let tag_words = ways.next_power_of_two().max(8);
        let row_words = 2 * tag_words;
        Self {
            ways,
            index: Index::unused(sets),
            alias_bits: 0,
            rows: Rows::new(sets * row_words),
            row_shift: row_words.trailing_zeros(),
            info_offset: tag_words,
            order: Order::new(kind, sets, ways, seed),
            empty: sets * ways,
            lines: sets * ways,
        }
    }

    /// Set of a line. `index_line` is the virtual line number for a virtually
    /// indexed cache, else the physical one.
    #[inline]
    pub(crate) fn set_of(&self, index_line: Line) -> usize {
        self.index.set_of(index_line)
    }

    /// Number of sets.
    pub(crate) fn sets(&self) -> usize {
        self.index.sets()
    }

    /// Number of sets of which a line's is an XOR of address bits: all, or those of one
    /// slice where slices take turns. A set's number modulo this one is then linear.
    pub(crate) fn linear_sets(&self) -> usize {
        self.index.linear_sets()
    }

    /// Number of ways.
    pub(crate) const fn ways(&self) -> usize {
        self.ways
    }

    /// Is the set chosen by virtual address bits that differ from physical ones?
    #[inline]
    pub(crate) const fn aliases(&self) -> bool {
        self.alias_bits != 0
    }

    /// Does it hold nothing at all?
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.empty == self.lines
    }

    /// Finds a line in a set.
    #[inline]
    pub(crate) fn find(&self, set: usize, line: Line) -> Option<Slot> {
        let way = self.way_of(set, line)?;
        Some(self.slot(set, way))
    }

    #[inline(always)]
    fn way_of(&self, set: usize, line: Line) -> Option<u32> {
        let base = set << self.row_shift;
        let words = self.rows.words();
        match self.row_shift {
            4 => lowest(matches::<8>(first_of(words, base), line)),
            5 => lowest(matches::<16>(first_of(words, base), line)),
            _ => self.way_of_many(base, line),
        }
    }

    #[inline(never)]
    fn way_of_many(&self, base: usize, line: Line) -> Option<u32> {
        let words = self.rows.words();
        let find =
            |i: usize| Some(lowest(matches::<16>(first_of(words, base + i), line))? + i as u32);
        (0..self.info_offset).step_by(16).find_map(find)
    }

    #[inline]
    fn slot(&self, set: usize, way: u32) -> Slot {
        Slot {
            set: set as u32,
            way,
            at: (set << self.row_shift) as u32 + way,
        }
    }

    /// Finds a physical line wherever it may sit.
    #[inline]
    pub(crate) fn find_physical(&self, line: Line) -> Option<Slot> {
        if !self.aliases() {
            return self.find(self.set_of(line), line);
        }
        self.find_alias(line)
    }

    fn find_alias(&self, line: Line) -> Option<Slot> {
        let in_page = (self.sets() as u32 - 1) >> self.alias_bits;
        let low = line & in_page;
        (0..1u32 << self.alias_bits)
            .find_map(|color| self.find((low | (color * (in_page + 1))) as usize, line))
    }

    #[inline]
    fn word(&self, at: usize) -> u32 {
        self.rows.words()[at]
    }

    #[inline]
    fn word_mut(&mut self, at: usize) -> &mut u32 {
        &mut self.rows.words_mut()[at]
    }

    /// The line was used.
    #[inline]
    pub(crate) fn touch(&mut self, slot: Slot) {
        self.order
            .touch(slot.set as usize, slot.way as usize, self.ways);
    }

    #[inline]
    pub(crate) fn info(&self, slot: Slot) -> Info {
        Info(self.word(slot.at as usize + self.info_offset))
    }

    #[inline]
    pub(crate) fn set_info(&mut self, slot: Slot, info: Info) {
        *self.word_mut(slot.at as usize + self.info_offset) = info.0;
    }

    #[inline]
    pub(crate) fn meta(&self, slot: Slot) -> Meta {
        self.info(slot).meta()
    }

    #[inline]
    pub(crate) fn set_meta(&mut self, slot: Slot, meta: Meta) {
        let info = self.info(slot).with_meta(meta);
        self.set_info(slot, info);
    }

    /// Puts a line that is not there into a set; returns what had to leave.
    #[inline(always)]
    pub(crate) fn insert(&mut self, set: usize, line: Line, info: Info) -> Option<Evicted> {
        let way = match self.order.replace_lru(set, self.ways) {
            Some(way) => way,
            None => self.make_room(set),
        };
        let at = (set << self.row_shift) + way;
        let info_at = at + self.info_offset;
        let words = self.rows.words_mut();
        let old = Evicted {
            info: Info(std::mem::replace(&mut words[info_at], info.0)),
            line: std::mem::replace(&mut words[at], line),
        };
        if old.line == EMPTY {
            self.empty -= 1;
            return None;
        }
        Some(old)
    }

    /// The way for a new line, an empty one first.
    #[inline(never)]
    fn make_room(&mut self, set: usize) -> usize {
        if self.empty > 0
            && !self.order.prefers_invalid()
            && let Some(way) = self.way_of(set, EMPTY)
            && (way as usize) < self.ways
        {
            self.order.inserted(set, way as usize, self.ways);
            return way as usize;
        }
        self.order.replace(set, self.ways)
    }

    /// Takes a line out; returns what is known of it.
    pub(crate) fn remove(&mut self, slot: Slot) -> Evicted {
        let gone = Evicted {
            line: std::mem::replace(self.word_mut(slot.at as usize), EMPTY),
            info: self.info(slot),
        };
        self.order
            .invalidated(slot.set as usize, slot.way as usize, self.ways);
        self.empty += 1;
        gone
    }

    /// Every held line: set, line, info.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, Line, Info)> + '_ {
        (0..self.sets())
            .flat_map(|set| (0..self.ways as u32).map(move |way| (set, way)))
            .map(|(set, way)| (set, self.slot(set, way)))
            .map(|(set, slot)| (set, self.word(slot.at as usize), self.info(slot)))
            .filter(|(_, line, _)| *line != EMPTY)
    }
}

/// Tags and infos of all sets, each set in whole cache lines of the simulating
/// machine.
#[derive(Clone, Debug)]
struct Rows(Vec<Block>);

/// One cache line of the simulating machine.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Block([u32; WORDS]);

/// Words of a block.
const WORDS: usize = 16;

impl Rows {
    fn new(words: usize) -> Self {
        Self(vec![Block([EMPTY; WORDS]); words.div_ceil(WORDS)])
    }

    #[inline(always)]
    fn words(&self) -> &[u32] {
        // SAFETY: a block is `WORDS` words without padding, and blocks of a vector
        // are contiguous.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * WORDS) }
    }

    #[inline(always)]
    fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above; the borrow of `self` keeps others out.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * WORDS) }
    }
}

/// The `N` words from `at` on.
#[inline(always)]
fn first_of<const N: usize>(words: &[u32], at: usize) -> &[u32; N] {
    match words[at..].first_chunk() {
        Some(chunk) => chunk,
        None => &[EMPTY; N],
    }
}

/// Number of the lowest set bit.
#[inline]
const fn lowest(bits: u32) -> Option<u32> {
    match bits {
        0 => None,
        _ => Some(bits.trailing_zeros()),
    }
}

/// Which of the first `N` words, 8 or 16, equal `line`, one bit each.
///
/// Four comparisons per instruction, then one bit per word: compilers do not
/// find this form by themselves, and a loop over the ways costs four times as
/// much, on every lookup of every level.
#[cfg(target_arch = "x86_64")]
#[inline]
fn matches<const N: usize>(tags: &[u32; N], line: Line) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16,
        _mm_packs_epi32, _mm_set1_epi32, _mm_setzero_si128,
    };
    #[inline]
    #[target_feature(enable = "sse2")]
    fn with_sse2<const N: usize>(tags: &[u32; N], line: Line) -> u32 {
        let wanted = _mm_set1_epi32(line as i32);
        let (quads, _) = tags.as_chunks::<4>();
        let quad = |i: usize| -> __m128i {
            // SAFETY: four words lie where four words are read; no alignment is asked.
            let tags = unsafe { _mm_loadu_si128(quads[i].as_ptr().cast()) };
            _mm_cmpeq_epi32(tags, wanted)
        };
        let low = _mm_packs_epi32(quad(0), quad(1));
        let high = match N {
            16 => _mm_packs_epi32(quad(2), quad(3)),
            _ => _mm_setzero_si128(),
        };
        _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
    }
    // SAFETY: SSE2 belongs to every x86-64 processor.
    unsafe { with_sse2::<N>(tags, line) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn matches<const N: usize>(tags: &[u32; N], line: Line) -> u32 {
    (0..N).fold(0, |bits, i| bits | u32::from(tags[i] == line) << i)
}
