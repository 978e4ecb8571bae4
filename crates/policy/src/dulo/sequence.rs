//! Forming sequences from the bank, and merging them into the evicting section
//! (sections 3.3 and 3.4).

use super::{
    MAX_TIME, Section, Tree,
    section::{link, with},
    store::{Bucket, Link, NIL, NOWHERE, OUT, PartsMut, Sequence},
    table::RADIX,
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

/// The sequence that grows during a walk over the blocks of the bank.
struct Growing {
    /// Its number.
    sequence: u32,
    /// Its last block.
    block: u64,
    /// The time of that block before the bank's.
    before: u32,
    class: u8,
    size: u32,
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
    pub max_sequence: u32,
    pub work: Work,
}

impl Sequencing<'_, '_> {
    /// All of it: the pages of the bank, coldest first, are in the section then.
    /// `class` is asked for each page that has a place on disk.
    pub fn run(&mut self, class: impl Fn(u32) -> u8) {
        debug_assert!(self.time <= MAX_TIME);
        self.record();
        self.form(class);
        self.chain();
        self.sort();
        self.merge();
    }

    fn page(&self, position: usize) -> Option<u32> {
        let bank = self.parts.bank.get(..self.taken)?;
        bank.get(position).map(|p| p.0)
    }

    /// Gives each block of the bank the current time.
    fn record(&mut self) {
        for position in 0..self.taken {
            let Some(page) = self.page(position) else {
                return;
            };
            with(self.parts.links, page, |l| *l = Link::EMPTY);
            let place = self.parts.places.get(page as usize);
            if let Some(block) = place.copied().filter(|b| *b != NOWHERE) {
                self.tree
                    .mark(self.parts.table, block, position as u32, self.time);
            }
        }
        self.work.sequenced = self.taken as u64;
    }

    /// Walks over the bank's blocks in the order of the disk. What it does not meet (a
    /// page without place, a second page of a block, a block for which the table has
    /// no room) is a sequence of 1.
    fn form(&mut self, class: impl Fn(u32) -> u8) {
        let mut growing = None;
        let mut key = 0;
        while let Some(place) = self.tree.leaf_at(self.parts.table, key, self.time) {
            for digit in 0..RADIX {
                let table = &mut *self.parts.table;
                let found = self.tree.unmark(table, place.leaf, digit, self.time);
                if let Some((position, before)) = found
                    && let Some(page) = self.page(position as usize)
                {
                    let block = place.block(digit);
                    growing = self.place(growing, page, block, before, class(page));
                }
            }
            key = place.key.saturating_add(1);
        }
        for position in 0..self.taken {
            if let Some(page) = self.page(position)
                && link(self.parts.links, page).sequence == OUT
            {
                let alone = self.section.open(self.parts.sequences, 1);
                self.join(page, alone);
            }
        }
    }

    /// Lets a block continue the growing sequence, or begin one.
    fn place(
        &mut self,
        growing: Option<Growing>,
        page: u32,
        block: u64,
        before: u32,
        class: u8,
    ) -> Option<Growing> {
        let longer = growing.filter(|g| {
            g.block.checked_add(1) == Some(block)
                && g.class == class
                && continues(g.before, before, g.size, self.max_sequence)
        });
        let (sequence, size) = match longer {
            Some(g) => (g.sequence, g.size.saturating_add(1)),
            None => (self.section.open(self.parts.sequences, 1)?, 1),
        };
        if let Some(record) = self.parts.sequences.get_mut(sequence as usize) {
            record.size = size;
        }
        self.join(page, Some(sequence));
        Some(Growing {
            sequence,
            block,
            before,
            class,
            size,
        })
    }

    fn join(&mut self, page: u32, sequence: Option<u32>) {
        debug_assert!(sequence.is_some(), "more sequences than pages");
        let sequence = sequence.unwrap_or(OUT);
        with(self.parts.links, page, |l| l.sequence = sequence);
    }

    /// Links the pages of each sequence in the order of the bank, and gives it its
    /// value.
    fn chain(&mut self) {
        for position in 0..self.taken {
            let Some(page) = self.page(position) else {
                return;
            };
            let PartsMut {
                links,
                sequences,
                buckets,
                ..
            } = &mut self.parts;
            let at = link(links, page).sequence;
            let Some(record) = sequences.get_mut(at as usize) else {
                continue;
            };
            match record.high {
                NIL => {
                    record.low = page;
                    let step = step(buckets, record.size);
                    record.h = self.section.inflation.saturating_add(step);
                }
                below => tie(links, below, page),
            }
            record.high = page;
            record.left = record.left.saturating_add(1);
            self.section.pages = self.section.pages.saturating_add(1);
        }
    }

    /// Sorts the sequences by length, and those of one length by their coldest page:
    /// a bank of random blocks keeps its order.
    fn sort(&mut self) {
        for position in 0..self.taken {
            let Some(page) = self.page(position) else {
                return;
            };
            let record = Section::sequence_of(self.parts.links, self.parts.sequences, page);
            if let Some(record) = record.filter(|r| r.low == page) {
                self.put(record);
            }
        }
    }

    /// Puts a sequence on top of the others of its length.
    fn put(&mut self, record: Sequence) {
        let size = record.size.saturating_sub(1) as usize;
        let Some(bucket) = self.parts.buckets.get_mut(size) else {
            return;
        };
        bucket.formed = bucket.formed.wrapping_add(1);
        match bucket.high {
            NIL => bucket.low = record.low,
            below => tie(self.parts.links, below, record.low),
        }
        bucket.high = record.high;
    }

    /// Merges the lengths, all sequences of one at once since they have the same `H`.
    /// Those whose `H` is in the lower half of the section's come in from the bottom,
    /// the others from the top: few sequences are passed by either.
    fn merge(&mut self) {
        let links = &*self.parts.links;
        let sequences = &*self.parts.sequences;
        let h = |page| Section::h_of(links, sequences, page).unwrap_or(0);
        let (low, high) = (h(self.section.bottom), h(self.section.top));
        let middle = low.saturating_add(high.saturating_sub(low) / 2);
        let mut below = NIL;
        let mut rank = 0;
        while let Some((chain_low, chain_high, h)) = self.ranked(rank)
            && h < middle
        {
            if chain_low != NIL {
                below = self.rise(below, h);
                self.section
                    .splice(self.parts.links, chain_low, chain_high, below);
                below = chain_high;
            }
            rank = rank.saturating_add(1);
        }
        let mut below = self.section.top;
        for rank in (rank..self.max_sequence).rev() {
            if let Some((chain_low, chain_high, h)) = self.ranked(rank)
                && chain_low != NIL
            {
                below = self.fall(below, h);
                self.section
                    .splice(self.parts.links, chain_low, chain_high, below);
            }
        }
        self.empty_buckets();
    }

    /// The chain and the value of the length at a position in the order of lengths.
    fn ranked(&self, rank: u32) -> Option<(u32, u32, u64)> {
        if rank >= self.max_sequence {
            return None;
        }
        let size = self.parts.buckets.get(rank as usize)?.ranked;
        let bucket = self.parts.buckets.get(size as usize)?;
        let h = self.section.inflation.saturating_add(bucket.step);
        Some((bucket.low, bucket.high, h))
    }

    /// From a page (or the bottom) upwards: the last page whose sequence does not
    /// have a larger value.
    fn rise(&mut self, from: u32, h: u64) -> u32 {
        let mut below = from;
        loop {
            let next = match below {
                NIL => self.section.bottom,
                _ => link(self.parts.links, below).above,
            };
            let sequence = Section::sequence_of(self.parts.links, self.parts.sequences, next);
            let Some(sequence) = sequence else {
                return below;
            };
            self.work.comparisons = self.work.comparisons.wrapping_add(1);
            if sequence.h > h {
                return below;
            }
            below = sequence.high;
        }
    }

    /// From a page downwards: the first whose sequence does not have a larger value.
    fn fall(&mut self, from: u32, h: u64) -> u32 {
        let parts = &self.parts;
        let (below, compared) = fall(parts.links, parts.sequences, from, h);
        self.work.comparisons = self.work.comparisons.wrapping_add(compared);
        below
    }

    fn empty_buckets(&mut self) {
        for bucket in self.parts.buckets.iter_mut() {
            bucket.low = NIL;
            bucket.high = NIL;
        }
    }
}

/// From a page downwards: the first page whose sequence does not have a larger value,
/// and the comparisons made.
pub(super) fn fall(links: &[Link], sequences: &[Sequence], from: u32, h: u64) -> (u32, u64) {
    let mut page = from;
    let mut compared = 0u64;
    while let Some(sequence) = Section::sequence_of(links, sequences, page) {
        compared = compared.wrapping_add(1);
        if sequence.h <= h {
            break;
        }
        page = link(links, sequence.low).below;
    }
    (page, compared)
}

/// Makes two pages neighbours.
fn tie(links: &mut [Link], below: u32, above: u32) {
    with(links, below, |l| l.above = above);
    with(links, above, |l| l.below = below);
}

/// What a sequence of so many blocks adds to `L`.
pub(super) fn step(buckets: &[Bucket], size: u32) -> u64 {
    let bucket = buckets.get(size.saturating_sub(1) as usize);
    bucket.map_or(1, |b| b.step)
}
