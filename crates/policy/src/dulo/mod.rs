//! DULO: which block leaves memory, weighing when it was used last against how well
//! it could be read back.
//!
//! Source: S. Jiang, X. Ding, F. Chen, E. Tan, X. Zhang, "DULO: An Effective Buffer
//! Cache Management Scheme to Exploit Both Temporal and Spatial Locality", FAST'05,
//! sections 2 to 4.2.
//!
//! Vocabulary: the *stack* is the order of a [`Base`], hot end up. Its lower part is
//! the *evicting section*, its upper part the *staging section*, which is a
//! *correlation buffer* above a *bank*. When the bank is full, its blocks are
//! *sequenced*: the *bank clock* ticks, each block gets the time in the *block table*
//! ([`BlockTable`]), neighbours on disk with a common past become *sequences*, each
//! of which gets a value `H`, and these are merged into the evicting section by
//! `H`. The page at the bottom of that section is the next victim. `L` is the `H` of
//! the sequence that was evicted last.
//!
//! # How DULO sits on its base
//!
//! The base holds every page. Those of the staging section are in its order, those of
//! the evicting section are detached from it: it notes their uses, and takes them
//! back when they reach the bottom and it still wants them.
//!
//! * **One stack** (section 3): the base is FIFO with a young bit, which is CLOCK. The
//!   bank is the coldest pages of the base, young or not; only at the bottom of the
//!   evicting section is a young page moved to the top. A hit costs what it costs the
//!   base.
//! * **Linux's two lists** (section 4.2; [`Config::linux`]): the base gives the tail of
//!   its inactive list. A page that earns its place in the active list by a call goes
//!   there at once ([`Hits::Promote`]). Demoted pages have a class of their own
//!   ([`Base::class`]) and are never in one sequence with freshly faulted ones.
//! * **Any other base**: whatever order it has, its coldest pages feed the bank; uses in
//!   the evicting section are noted by its own means (a frequency, a queue to go to)
//!   and count when the page is at the bottom; what leaves becomes a ghost by the
//!   base's own rule. So the base decides on recency and frequency, and DULO on the
//!   order among the coldest.
//!
//! # What the paper leaves open
//!
//! * Condition 1 of section 3.3 reads "was accessed in the current clock time"; its own
//!   examples (never accessed, spare, defective) are blocks that were not. Read so
//!   here.
//! * Figure 2 is lost in the text that we have. By section 3.4: before a page comes in,
//!   young pages at the bottom go to the top, each a loss of the evicting section; then
//!   the bottom page leaves, and if it ends its sequence, L = H. A bank is sequenced
//!   as soon as it is full.
//! * "Losses" are counted as what they make: the evicting section is refilled when it is
//!   down to [`Sections::evicting`] and the staging section has a bank above its
//!   correlation buffer. Both come true with the BANK_MAX-th loss if pages only come
//!   and leave as in the paper; pages that are deleted or held by others change the two
//!   by themselves. While memory fills up, every full bank is sequenced.
//! * A host may be short of memory below the base's capacity. If evictions leave the
//!   evicting section a bank short of its least size, the correlation buffer gives
//!   way, down to [`Config::correlation`].
//! * If the base has fewer cold pages than a bank, DULO waits for an eighth of a bank
//!   more losses before it asks again, and takes what there is when the section is empty.
//! * The order within a sequence is that of the bank, as in Table 1. Sequences with the
//!   same H: those of older banks leave first, then longer ones (which can only have
//!   the same H if the cost per block is the same), then the one with the coldest page.
//!   So single blocks keep the base's order, and the paper's claim holds that without
//!   sequences DULO is the policy that it is built on: with CLOCK, as long as no two
//!   blocks continue one another (or with [`Config::max_sequence`] 1), the victims are
//!   those of CLOCK, one by one.
//! * A sequence keeps its H when pages leave it otherwise (used, deleted, held). `L`
//!   rises when an eviction takes the last page that is left, or the host detaches it, as
//!   one does that writes a page before it leaves, or keeps some that may leave at hand
//!   (a [coloured zone](crate::srm)). A victim that the host
//!   chose against the proposal does not raise it beyond the bottom's H.
//! * Costs need not be the same ([`Cost::Runs`]), as the paper suggests for the future.
//! * Pages with a place of 2^60 or more, and a second page for one block, are random
//!   blocks; so is what the table has no room for.
//!
//! # Numbers
//!
//! `H` and `L` have 32 fraction bits; 1 is the dearest fetch. When `L` reaches 256, it is
//! taken off every `H`, which changes no order. The bank clock has 31 bits; before it
//! would overflow, the block table is emptied and it starts again.
//!
//! # Costs
//!
//! A hit adds nothing to the base's in [`Hits::Mark`]. Sequencing a bank takes a way
//! down the block table for each block, four passes over the bank, and comparisons with
//! the runs of sequences of one `H` that those of the bank pass in the evicting section,
//! at most all sequences; per miss this is constant. A call may have to sequence one bank, and
//! `miss` as many as there are young pages at the bottom. `propose` passes young pages
//! of the section. For memory see [`Sizes`].
//!
//! # Concurrency
//!
//! *Exclusive*, as every replacement policy.

mod config;
mod merge;
mod order;
mod section;
mod sequence;
mod store;
mod table;
mod validate;

use piebald_units::DiskBlock;

pub use config::{Config, ConfigError, Cost, FRACTION_BITS, Hits, MAX_SEQUENCE, Rest, Sections};
pub use sequence::continues;
pub use store::{Bucket, Link, Parts, PartsMut, Sequence, Sizes, Slices, Store};
pub use table::{BLOCK_BITS, BlockTable, MAX_TIME, Reclaimed, TableCounters, TableNode};

use crate::contract::replacement::{Base, Effort, PageRef};
use section::{Pages, Removed, Section, is_sequence, link, with};
use sequence::{Sequencing, Work};
use store::{HELD, NIL, NOWHERE};
use table::Tree;

/// `L` from which on it is taken off every `H`: far from an overflow, and so rare that
/// its cost is lost in that of the 256 or more turns through the section before.
const MAX_INFLATION: u64 = 256 << FRACTION_BITS;
/// The part of a bank of losses after which a base that had too few pages is asked
/// again.
const WAIT: u32 = 8;

/// What DULO did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Banks sequenced: ticks of the bank clock.
    pub sequencings: u64,
    /// Blocks that went through a bank: one "block sequencing operation" each
    /// (section 4.1.3).
    pub sequenced: u64,
    /// Comparisons of two values of H when banks were merged into the evicting section:
    /// one for each run of sequences with one H that was passed.
    pub comparisons: u64,
    /// Pages evicted from the evicting section; those that were detached first are not
    /// counted.
    pub evicted: u64,
    /// Evictions, and detachments, that ended a sequence and so set L.
    pub ended: u64,
    /// Pages that were used while in the evicting section and went back from its
    /// bottom.
    pub returned: u64,
    /// Pages that went back at once ([`Hits::Promote`]).
    pub promoted: u64,
    /// Banks taken with fewer pages than a full one has.
    pub short_banks: u64,
    /// How often L was taken off every H.
    pub renormalised: u64,
    /// How often the block table was emptied because the bank clock was at its end.
    pub restarts: u64,
}

/// Where a page of the evicting section stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// `H` of its sequence, with [`FRACTION_BITS`].
    pub h: u64,
    /// Blocks that the sequence was formed of.
    pub size: u32,
    /// Pages of it that are left in the section.
    pub left: u32,
}

/// DULO over a base. See the [module](self).
#[derive(Clone, Debug)]
pub struct Dulo<B, S> {
    base: B,
    store: S,
    config: Config,
    sections: Sections,
    section: Section,
    tree: Tree,
    /// The bank clock.
    clock: u32,
    /// Pages that the host has detached.
    held: u32,
    /// The size of the section at which the base is asked for a bank.
    ask_at: u32,
    effort: Effort,
    counters: Counters,
}

impl<B: Base, S: Store> Dulo<B, S> {
    /// DULO over an empty base, whose capacity is divided as the configuration says.
    ///
    /// # Errors
    /// If the configuration, the costs or the lent memory do not fit, or the base has
    /// pages already.
    pub fn new(base: B, store: S, config: Config, cost: Cost<'_>) -> Result<Self, ConfigError> {
        let sections = config.sections(base.capacity())?;
        if base.resident() != 0 {
            return Err(ConfigError::BaseNotEmpty(base.resident()));
        }
        Sizes::of(&sections, base.slots()).check(&store.parts())?;
        let mut dulo = Self {
            base,
            store,
            config,
            sections,
            section: Section::EMPTY,
            tree: Tree::EMPTY,
            clock: 0,
            held: 0,
            ask_at: sections.evicting,
            effort: Effort::default(),
            counters: Counters::default(),
        };
        let parts = dulo.store.parts_mut();
        config::price(parts.buckets, cost, config.max_sequence)?;
        parts.links.fill(Link::EMPTY);
        parts.places.fill(NOWHERE);
        Ok(dulo)
    }

    /// The base.
    pub const fn base(&self) -> &B {
        &self.base
    }

    /// The sizes of the sections.
    pub const fn sections(&self) -> Sections {
        self.sections
    }

    /// The pages of the evicting section, the next victim first, young ones too.
    pub fn evicting(&self) -> impl Iterator<Item = PageRef> {
        self.pages().map(PageRef)
    }

    /// The standing of a page in the evicting section; `None` elsewhere.
    pub fn standing(&self, page: PageRef) -> Option<Standing> {
        let parts = self.store.parts();
        let sequence = Section::sequence_of(parts.links, parts.sequences, page.0)?;
        Some(Standing {
            h: sequence.h,
            size: sequence.size.into(),
            left: sequence.left.into(),
        })
    }

    /// `L`, with [`FRACTION_BITS`], since it was last taken off every `H`.
    pub const fn inflation(&self) -> u64 {
        self.section.inflation
    }

    /// The bank clock.
    pub const fn clock(&self) -> u32 {
        self.clock
    }

    /// Sequences of this length formed so far.
    pub fn formed(&self, size: u16) -> u64 {
        let at = usize::from(size).checked_sub(1);
        let bucket = at.and_then(|at| self.store.parts().buckets.get(at));
        bucket.map_or(0, |b| b.formed)
    }

    /// The latest two times of a block in the block table, newest first; 0 for none.
    pub fn times(&self, block: DiskBlock) -> [u32; 2] {
        self.tree.times(self.store.parts().table, block.0)
    }

    /// Nodes of the block table in use, 512 B each.
    pub const fn table_nodes(&self) -> u32 {
        self.tree.in_use()
    }

    /// What the block table did.
    pub const fn table_counters(&self) -> TableCounters {
        self.tree.counters
    }

    /// What DULO did.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Drops what the block table knows of blocks that were last in a bank before a
    /// threshold, from a block on, and looks at no more than so many leaves: for a
    /// host that needs the memory.
    pub fn reclaim_table(&mut self, threshold: u32, from: DiskBlock, leaves: u32) -> Reclaimed {
        let table = self.store.parts_mut().table;
        self.tree.reclaim_step(table, threshold, from.0, leaves)
    }

    #[inline]
    fn pages(&self) -> Pages<'_> {
        Pages {
            links: self.store.parts().links,
            next: self.section.bottom,
        }
    }

    /// Pages in the base's order: the staging section.
    fn staging(&self) -> u32 {
        let elsewhere = self.section.pages.saturating_add(self.held);
        self.base.resident().saturating_sub(elsewhere)
    }

    #[inline]
    fn sequence(&self, page: PageRef) -> u32 {
        link(self.store.parts().links, page.0).sequence
    }

    #[inline]
    fn is_evicting(&self, page: PageRef) -> bool {
        is_sequence(self.sequence(page))
    }

    /// Refills the evicting section if the bank is full.
    fn refill_if_due(&mut self) {
        self.refill_from(self.section.pages <= self.ask_at, self.sections.correlation);
    }

    /// As [`refill_if_due`](Self::refill_if_due), when a page was evicted: if the
    /// section is short of a bank below its least size, memory is full below its
    /// capacity, and the correlation buffer has no more than its own least size.
    fn refill_under_pressure(&mut self) {
        let least = self.sections.evicting.saturating_sub(self.sections.bank);
        let is_short = self.section.pages < least.max(1) && self.section.pages <= self.ask_at;
        self.refill_from(is_short, self.config.correlation);
    }

    /// Refills the evicting section if it is short and there is a bank above the
    /// correlation buffer.
    fn refill_from(&mut self, is_short: bool, correlation: u32) {
        let full = correlation.saturating_add(self.sections.bank);
        if !is_short || self.staging() < full {
            return;
        }
        if self.refill(self.sections.bank) {
            self.ask_at = self.sections.evicting;
        } else {
            let wait = (self.sections.bank / WAIT).max(1);
            self.ask_at = self.section.pages.saturating_sub(wait);
        }
    }

    /// Sequences the coldest pages of the base, if there are at least so many.
    fn refill(&mut self, least: u32) -> bool {
        let bank = self.store.parts_mut().bank;
        let Some(bank) = bank.get_mut(..self.sections.bank as usize) else {
            return false;
        };
        let taken = self.base.coldest(bank);
        if taken == 0 || taken < least as usize {
            return false;
        }
        self.tick();
        let base = &self.base;
        let mut sequencing = Sequencing {
            section: &mut self.section,
            tree: &mut self.tree,
            parts: self.store.parts_mut(),
            taken,
            time: self.clock,
            max_sequence: self.config.max_sequence,
            work: Work::default(),
        };
        sequencing.run(|page| base.class(PageRef(page)));
        let work = sequencing.work;
        self.detach_bank(taken);
        self.count(work);
        true
    }

    /// The bank clock ticks, and what would overflow is set back.
    fn tick(&mut self) {
        if self.clock >= MAX_TIME {
            self.tree.clear();
            self.clock = 0;
            self.counters.restarts = self.counters.restarts.wrapping_add(1);
        }
        self.clock = self.clock.saturating_add(1);
        if self.section.inflation >= MAX_INFLATION {
            self.section.renormalise(&mut self.store.parts_mut());
            self.counters.renormalised = self.counters.renormalised.wrapping_add(1);
        }
    }

    fn detach_bank(&mut self, taken: usize) {
        for position in 0..taken {
            let page = self.store.parts().bank.get(position).copied();
            if let Some(page) = page {
                self.base.detach(page);
            }
        }
    }

    fn count(&mut self, work: Work) {
        let counters = &mut self.counters;
        counters.sequencings = counters.sequencings.wrapping_add(1);
        counters.sequenced = counters.sequenced.wrapping_add(work.sequenced);
        counters.comparisons = counters.comparisons.wrapping_add(work.comparisons);
        if work.sequenced < u64::from(self.sections.bank) {
            counters.short_banks = counters.short_banks.wrapping_add(1);
        }
        self.effort.moved = self.effort.moved.wrapping_add(work.sequenced);
    }

    /// Takes a page out of the evicting section.
    fn take_out(&mut self, page: u32) -> Option<Removed> {
        self.section.remove(&mut self.store.parts_mut(), page)
    }

    /// Gives a page that was used back to the base: to the top.
    fn give_back(&mut self, page: u32) {
        if self.take_out(page).is_some() {
            self.base.reattach(PageRef(page));
            self.counters.returned = self.counters.returned.wrapping_add(1);
            self.effort.moved = self.effort.moved.wrapping_add(1);
        }
    }

    /// Gives young pages at the bottom back until the bottom one is not young: the loop
    /// of Figure 2. Each page has at most one turn.
    fn settle(&mut self) {
        for _ in 0..self.base.resident() {
            if self.section.bottom == NIL && !self.refill(1) {
                return;
            }
            let bottom = self.section.bottom;
            self.effort.scanned = self.effort.scanned.wrapping_add(1);
            if !self.base.wanted(PageRef(bottom)) {
                return;
            }
            self.give_back(bottom);
            self.refill_if_due();
        }
    }

    /// A page is taken that the base does not want: if no more than
    /// [`Config::reach`] proposals were passed over to reach it, the wanted pages below
    /// it have had their turn.
    fn pass_over(&mut self, page: PageRef) {
        if self.section.bottom == page.0 || !self.is_in_reach(page) {
            return;
        }
        let mut next = self.section.bottom;
        while next != NIL && next != page.0 {
            let above = link(self.store.parts().links, next).above;
            self.effort.scanned = self.effort.scanned.wrapping_add(1);
            if self.base.wanted(PageRef(next)) {
                self.give_back(next);
            }
            next = above;
        }
    }

    /// Also for a page of the staging section, which comes after the evicting section.
    fn is_in_reach(&self, page: PageRef) -> bool {
        if self.sequence(page) == HELD || self.base.wanted(page) {
            return false;
        }
        let below = self.pages().take_while(|other| *other != page.0);
        let unwanted = below.filter(|other| !self.base.wanted(PageRef(*other)));
        let most = (self.config.reach as usize).saturating_add(1);
        unwanted.take(most).count() < most
    }

    /// A hit in [`Hits::Promote`].
    fn promote(&mut self, page: PageRef) {
        if self.is_evicting(page) && self.base.wanted(page) && self.take_out(page.0).is_some() {
            self.base.reattach(page);
            self.counters.promoted = self.counters.promoted.wrapping_add(1);
            self.refill_if_due();
        }
    }

    /// A hit in [`Hits::Restore`].
    fn restore(&mut self, page: PageRef) {
        let at = self.sequence(page);
        let PartsMut {
            links,
            sequences,
            buckets,
            ..
        } = self.store.parts_mut();
        let Some(record) = sequences.get_mut(at as usize) else {
            return;
        };
        if record.high != page.0 {
            if record.low == page.0 {
                record.low = link(links, page.0).above;
            }
            self.section.cut(links, page.0, page.0);
            self.section.splice(links, page.0, page.0, record.high);
            record.high = page.0;
        }
        let Sequence {
            low, high, left, ..
        } = *record;
        let h = merge::step(buckets, left).saturating_add(self.section.inflation);
        Section::leave_run(links, sequences, at);
        self.section.cut(links, low, high);
        let (below, compared) = merge::fall(links, sequences, self.section.top, h);
        self.section.splice(links, low, high, below);
        if let Some(record) = sequences.get_mut(at as usize) {
            record.h = h;
            record.mate = at;
        }
        self.counters.comparisons = self.counters.comparisons.wrapping_add(compared);
    }

    /// Takes a page off DULO's books, wherever it is.
    fn leave(&mut self, page: PageRef) -> Option<Removed> {
        if self.sequence(page) == HELD {
            self.held = self.held.saturating_sub(1);
            with(self.store.parts_mut().links, page.0, |l| *l = Link::EMPTY);
            return None;
        }
        self.take_out(page.0)
    }

    /// Counts an eviction; one that ends a sequence sets L.
    fn evicted(&mut self, removed: Removed) {
        self.counters.evicted = self.counters.evicted.wrapping_add(1);
        self.ended(removed);
    }

    /// A page left the evicting section as a victim does.
    fn ended(&mut self, removed: Removed) {
        if removed.ended {
            self.counters.ended = self.counters.ended.wrapping_add(1);
            let parts = self.store.parts_mut();
            self.section.inflate(&parts, removed.h);
        }
    }
}
