//! Forming sequences from the bank (section 3.3).
//!
//! Each block of the bank is put into the block table, with its position in the bank.
//! Then, beginning with the coldest page that has no sequence yet, neighbours on disk
//! are looked up downwards, as long as one continues the other, and from the lowest
//! one upwards a sequence is formed. They mostly lie in the same leaf of the table, so
//! that a bank costs a few steps per block, wherever the blocks lie.

use super::{
    MAX_TIME, Section, Tree,
    section::{link, with},
    store::{Link, NIL, NOWHERE, OUT, PartsMut},
    table::Spot,
};

/// What sequencing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Blocks that were placed into the table and compared with their neighbours.
    pub sequenced: u64,
    /// Comparisons of two values of `H`.
    pub comparisons: u64,
}

/// May the next block on disk, which is in the bank too, continue a sequence of
/// `size` blocks? `current` and `next` are the times of the two before the bank's,
/// 0 for none.
///
/// These are the conditions of section 3.3: 1 (the next block "was *not* accessed in
/// the current clock time") is that it is in the bank at all, 2 is that one has an
/// earlier time and the other has none, 3 that the earlier times differ by more than
/// one, 4 that the sequence is full.
pub const fn continues(current: u32, next: u32, size: u32, max: u32) -> bool {
    let both_or_none = (current == 0) == (next == 0);
    both_or_none && current.abs_diff(next) <= 1 && size < max
}

/// A sequence that grows.
#[derive(Clone, Copy)]
struct Growing {
    /// Its number.
    sequence: u32,
    size: u16,
}

/// A block of the bank that has no sequence yet.
#[derive(Clone, Copy)]
struct Candidate {
    spot: Spot,
    page: u32,
    /// The time of the block before the bank's.
    before: u32,
    class: u8,
}

impl Candidate {
    /// May the next block on disk be in one sequence with this one?
    const fn leads_to(&self, next: &Self) -> bool {
        self.class == next.class && continues(self.before, next.before, 0, u32::MAX)
    }
}

/// A bank that is turned into sequences.
pub(super) struct Sequencing<'s, 'p> {
    pub section: &'s mut Section,
    pub tree: &'s mut Tree,
    pub parts: PartsMut<'p>,
    /// Pages in the bank.
    pub taken: usize,
    /// The bank clock.
    pub time: u32,
    pub max_sequence: u16,
    pub work: Work,
}

impl Sequencing<'_, '_> {
    /// All of it: the pages of the bank, coldest first, are in the section then.
    /// `class` is asked for each page that has a place on disk.
    pub fn run(&mut self, class: impl Fn(u32) -> u8) {
        debug_assert!(self.time <= MAX_TIME);
        self.enter();
        self.record();
        self.form(class);
        self.chain();
        self.line_up();
        self.merge();
    }

    pub(super) fn page(&self, position: usize) -> Option<u32> {
        let bank = self.parts.bank.get(..self.taken)?;
        bank.get(position).map(|p| p.0)
    }

    /// Finds or makes the leaf of each block in the block table. Until the page gets a
    /// sequence, its link has the leaf instead of a neighbour.
    fn enter(&mut self) {
        for position in 0..self.taken {
            let Some(page) = self.page(position) else {
                return;
            };
            let place = self.parts.places.get(page as usize).copied();
            let leaf = place
                .filter(|block| *block != NOWHERE)
                .and_then(|block| self.tree.enter(self.parts.table, block, self.time));
            with(self.parts.links, page, |l| {
                *l = Link {
                    above: leaf.unwrap_or(NIL),
                    ..Link::EMPTY
                };
            });
        }
        self.work.sequenced = self.taken as u64;
    }

    /// Marks each block in its leaf. By itself, so that several of these accesses, which
    /// miss the processor's caches, are under way at a time.
    fn record(&mut self) {
        for position in 0..self.taken {
            let Some(page) = self.page(position) else {
                return;
            };
            if let Some(spot) = self.spot(page)
                && !self.tree.mark(self.parts.table, spot, position as u32)
            {
                with(self.parts.links, page, |l| l.above = NIL);
            }
        }
    }

    /// Where the block of a page that has no sequence yet is marked.
    #[inline]
    fn spot(&self, page: u32) -> Option<Spot> {
        let leaf = link(self.parts.links, page).above;
        let block = *self.parts.places.get(page as usize)?;
        (leaf != NIL).then_some(Spot { block, leaf })
    }

    /// Gives each page a sequence. What has no mark in the table (a page without place,
    /// a second page of a block, a block for which the table has no room) is a sequence
    /// of 1.
    fn form(&mut self, class: impl Fn(u32) -> u8) {
        for position in 0..self.taken {
            let Some(page) = self.page(position) else {
                return;
            };
            if link(self.parts.links, page).sequence != OUT {
                continue;
            }
            match self.spot(page) {
                Some(spot) => {
                    let lowest = self.lowest(spot, &class);
                    self.grow(lowest, &class);
                }
                None => {
                    let alone = self.section.open(self.parts.sequences, 1);
                    self.join(page, alone);
                }
            }
        }
    }

    /// What a block of the bank that has no sequence yet is to its neighbours.
    fn candidate(&self, spot: Spot, class: &impl Fn(u32) -> u8) -> Option<Candidate> {
        let (position, before) = Tree::marked(self.parts.table, spot)?;
        let page = self.page(position as usize)?;
        Some(Candidate {
            spot,
            page,
            before,
            class: class(page),
        })
    }

    /// The block from which an unbroken row of blocks leads up to this one.
    fn lowest(&self, spot: Spot, class: &impl Fn(u32) -> u8) -> Option<Candidate> {
        let mut lowest = self.candidate(spot, class)?;
        let down = |from: &Candidate| {
            let below = self.tree.below(self.parts.table, from.spot)?;
            let below = self.candidate(below, class)?;
            below.leads_to(from).then_some(below)
        };
        while let Some(below) = down(&lowest) {
            lowest = below;
        }
        Some(lowest)
    }

    /// Forms sequences of a row of blocks, of which each but the first continues the
    /// one before, unless that is the last of a full sequence.
    fn grow(&mut self, lowest: Option<Candidate>, class: &impl Fn(u32) -> u8) {
        let mut growing: Option<Growing> = None;
        let mut next = lowest;
        while let Some(block) = next {
            Tree::unmark(self.parts.table, block.spot, self.time);
            growing = self.place(growing, &block);
            let above = self.tree.above(self.parts.table, block.spot);
            next = above
                .and_then(|above| self.candidate(above, class))
                .filter(|above| block.leads_to(above));
        }
    }

    /// Lets a block continue the growing sequence, or begin one.
    fn place(&mut self, growing: Option<Growing>, block: &Candidate) -> Option<Growing> {
        let longer = growing.filter(|g| g.size < self.max_sequence);
        let (sequence, size) = match longer {
            Some(g) => (g.sequence, g.size.saturating_add(1)),
            None => (self.section.open(self.parts.sequences, 1)?, 1),
        };
        if let Some(record) = self.parts.sequences.get_mut(sequence as usize) {
            record.size = size;
        }
        self.join(block.page, Some(sequence));
        Some(Growing { sequence, size })
    }

    fn join(&mut self, page: u32, sequence: Option<u32>) {
        debug_assert!(sequence.is_some(), "more sequences than pages");
        let sequence = sequence.unwrap_or(OUT);
        with(self.parts.links, page, |l| l.sequence = sequence);
    }
}
