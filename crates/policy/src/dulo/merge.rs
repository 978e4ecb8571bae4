//! Merging the sequences of a bank into the evicting section (section 3.4).
//!
//! Sequences of one length have one `H` and are merged at once. They make a *run*: those
//! at its ends know each other, so that later banks pass the run with one comparison,
//! however many sequences it has. Runs with the same `H` that meet stay apart.

use super::{
    Section,
    section::{link, with},
    sequence::Sequencing,
    store::{Bucket, Link, NIL, PartsMut, Sequence},
};

/// The pages of a length: lowest and highest, and the value of its sequences.
type Chain = (u32, u32, u64);

impl Sequencing<'_, '_> {
    /// Links the pages of each sequence in the order of the bank, gives it its value,
    /// and puts it behind the others of its length: by their coldest pages, so that a
    /// bank of random blocks keeps its order.
    pub(super) fn chain(&mut self) {
        for position in 0..self.taken {
            let Some(page) = self.page(position) else {
                return;
            };
            let at = link(self.parts.links, page).sequence;
            let Some(record) = self.parts.sequences.get_mut(at as usize) else {
                continue;
            };
            record.left = record.left.saturating_add(1);
            let below = core::mem::replace(&mut record.high, page);
            if below == NIL {
                record.low = page;
                self.put(at);
            } else {
                tie(self.parts.links, below, page);
            }
        }
        let taken = u32::try_from(self.taken).unwrap_or(u32::MAX);
        self.section.pages = self.section.pages.saturating_add(taken);
    }

    /// Puts a sequence behind the others of its length.
    fn put(&mut self, at: u32) {
        let Some(record) = self.parts.sequences.get_mut(at as usize) else {
            return;
        };
        let size = usize::from(record.size.saturating_sub(1));
        let Some(bucket) = self.parts.buckets.get_mut(size) else {
            return;
        };
        record.h = self.section.inflation.saturating_add(bucket.step);
        bucket.formed = bucket.formed.wrapping_add(1);
        let before = core::mem::replace(&mut bucket.last, at);
        match self.parts.sequences.get_mut(before as usize) {
            Some(before) => before.mate = at,
            None => bucket.first = at,
        }
    }

    /// Links the pages of all sequences of one length, and makes these a run.
    pub(super) fn line_up(&mut self) {
        let used = self.parts.buckets.get(..usize::from(self.max_sequence));
        for bucket in used.unwrap_or_default().iter().filter(|b| b.first != NIL) {
            let mut at = bucket.first;
            while at != bucket.last
                && let Some(record) = self.parts.sequences.get_mut(at as usize)
            {
                let next = core::mem::replace(&mut record.mate, NIL);
                let below = record.high;
                let above = self.parts.sequences.get(next as usize);
                tie(self.parts.links, below, above.map_or(NIL, |s| s.low));
                at = next;
            }
            for (end, other) in [(bucket.first, bucket.last), (bucket.last, bucket.first)] {
                if let Some(end) = self.parts.sequences.get_mut(end as usize) {
                    end.mate = other;
                }
            }
        }
    }

    /// Merges the lengths. Those whose `H` is in the lower half of the section's come in
    /// from the bottom, the others from the top: few runs are passed by either.
    pub(super) fn merge(&mut self) {
        let links = &*self.parts.links;
        let sequences = &*self.parts.sequences;
        let h = |page| Section::h_of(links, sequences, page).unwrap_or(0);
        let (low, high) = (h(self.section.bottom), h(self.section.top));
        let middle = low.saturating_add(high.saturating_sub(low) / 2);
        let mut below = NIL;
        let mut rank = 0;
        while let Some((chain, h)) = self.ranked(rank)
            && h < middle
        {
            if let Some((chain_low, chain_high, h)) = chain {
                below = self.rise(below, h);
                self.section
                    .splice(self.parts.links, chain_low, chain_high, below);
                below = chain_high;
            }
            rank = rank.saturating_add(1);
        }
        let mut below = self.section.top;
        for rank in (rank..self.max_sequence).rev() {
            if let Some((Some((chain_low, chain_high, h)), _)) = self.ranked(rank) {
                below = self.fall(below, h);
                self.section
                    .splice(self.parts.links, chain_low, chain_high, below);
            }
        }
        self.empty_buckets();
    }

    /// The length at a position in the order of lengths: its pages, if there are any, and
    /// its value.
    fn ranked(&self, rank: u16) -> Option<(Option<Chain>, u64)> {
        if rank >= self.max_sequence {
            return None;
        }
        let size = self.parts.buckets.get(usize::from(rank))?.ranked;
        let bucket = self.parts.buckets.get(size as usize)?;
        let h = self.section.inflation.saturating_add(bucket.step);
        let sequence = |at: u32| self.parts.sequences.get(at as usize);
        let ends = sequence(bucket.first).zip(sequence(bucket.last));
        Some((ends.map(|(first, last)| (first.low, last.high, h)), h))
    }

    /// From the highest page of a run (or the bottom) upwards: the highest page of the
    /// last run that does not have a larger value.
    fn rise(&mut self, from: u32, h: u64) -> u32 {
        let PartsMut {
            links, sequences, ..
        } = &self.parts;
        let mut below = from;
        loop {
            let next = match below {
                NIL => self.section.bottom,
                _ => link(links, below).above,
            };
            let Some(first) = Section::sequence_of(links, sequences, next) else {
                return below;
            };
            self.work.comparisons = self.work.comparisons.wrapping_add(1);
            let Some(last) = sequences.get(first.mate as usize).filter(|_| first.h <= h) else {
                return below;
            };
            below = last.high;
        }
    }

    /// From the highest page of a run downwards: that of the first run that does not
    /// have a larger value.
    fn fall(&mut self, from: u32, h: u64) -> u32 {
        let parts = &self.parts;
        let (below, compared) = fall(parts.links, parts.sequences, from, h);
        self.work.comparisons = self.work.comparisons.wrapping_add(compared);
        below
    }

    fn empty_buckets(&mut self) {
        for bucket in self.parts.buckets.iter_mut() {
            bucket.first = NIL;
            bucket.last = NIL;
        }
    }
}

/// From the highest page of a run downwards: that of the first run that does not have a
/// larger value, and the comparisons made.
pub(super) fn fall(links: &[Link], sequences: &[Sequence], from: u32, h: u64) -> (u32, u64) {
    let mut page = from;
    let mut compared = 0u64;
    while let Some(last) = Section::sequence_of(links, sequences, page) {
        compared = compared.wrapping_add(1);
        if last.h <= h {
            break;
        }
        let Some(first) = sequences.get(last.mate as usize) else {
            break;
        };
        page = link(links, first.low).below;
    }
    (page, compared)
}

/// Makes two pages neighbours.
fn tie(links: &mut [Link], below: u32, above: u32) {
    with(links, below, |l| l.above = above);
    with(links, above, |l| l.below = below);
}

/// What a sequence of so many blocks adds to `L`.
pub(super) fn step(buckets: &[Bucket], size: u16) -> u64 {
    let bucket = buckets.get(usize::from(size.saturating_sub(1)));
    bucket.map_or(1, |b| b.step)
}
