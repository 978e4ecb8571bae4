//! The evicting section: a list of pages, from the next victim at the bottom to the
//! top, in which the pages of a sequence lie together.

use super::store::{HELD, Link, NIL, OUT, PartsMut, Sequence};

/// A page's neighbours and sequence; a page out of range has none.
pub(super) fn link(links: &[Link], page: u32) -> Link {
    links.get(page as usize).copied().unwrap_or(Link::EMPTY)
}

/// Changes the entry of a page, if there is one.
pub(super) fn with(links: &mut [Link], page: u32, change: impl FnOnce(&mut Link)) {
    if let Some(link) = links.get_mut(page as usize) {
        change(link);
    }
}

/// Is this the number of a sequence?
pub(super) const fn is_sequence(sequence: u32) -> bool {
    sequence != OUT && sequence != HELD
}

/// The list's ends and the books of the sequences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub bottom: u32,
    pub top: u32,
    pub pages: u32,
    /// Sequences in the section, and those of a bank that is being sequenced.
    pub nr_sequences: u32,
    /// First free record, a list through `low`.
    pub free: u32,
    /// Records from here on were never used.
    pub fresh: u32,
    /// The global value `L`.
    pub inflation: u64,
}

/// What a page leaves behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removed {
    /// The `H` of its sequence.
    pub h: u64,
    /// It was the last page of its sequence.
    pub ended: bool,
}

impl Section {
    pub const EMPTY: Self = Self {
        bottom: NIL,
        top: NIL,
        pages: 0,
        nr_sequences: 0,
        free: NIL,
        fresh: 0,
        inflation: 0,
    };

    /// A record for a sequence of so many blocks, without pages.
    pub fn open(&mut self, sequences: &mut [Sequence], size: u16) -> Option<u32> {
        let at = match self.free {
            NIL => self.fresh,
            free => free,
        };
        let record = sequences.get_mut(at as usize)?;
        if self.free == NIL {
            self.fresh = self.fresh.saturating_add(1);
        } else {
            self.free = record.low;
        }
        *record = Sequence {
            h: 0,
            size,
            ..Sequence::EMPTY
        };
        self.nr_sequences = self.nr_sequences.saturating_add(1);
        Some(at)
    }

    fn close(&mut self, sequences: &mut [Sequence], at: u32) {
        if let Some(record) = sequences.get_mut(at as usize) {
            *record = Sequence {
                low: self.free,
                ..Sequence::default()
            };
            self.free = at;
            self.nr_sequences = self.nr_sequences.saturating_sub(1);
        }
    }

    /// Takes a page out of the list and of its sequence.
    pub fn remove(&mut self, parts: &mut PartsMut<'_>, page: u32) -> Option<Removed> {
        let at = link(parts.links, page);
        if parts.sequences.get(at.sequence as usize)?.left == 1 {
            Self::leave_run(parts.links, parts.sequences, at.sequence);
        }
        let record = parts.sequences.get_mut(at.sequence as usize)?;
        record.left = record.left.saturating_sub(1);
        if record.low == page {
            record.low = at.above;
        }
        if record.high == page {
            record.high = at.below;
        }
        let removed = Removed {
            h: record.h,
            ended: record.left == 0,
        };
        if removed.ended {
            self.close(parts.sequences, at.sequence);
        }
        self.cut(parts.links, page, page);
        with(parts.links, page, |l| *l = Link::EMPTY);
        self.pages = self.pages.saturating_sub(1);
        Some(removed)
    }

    /// Takes a sequence out of its run; it is still in the list.
    pub fn leave_run(links: &[Link], sequences: &mut [Sequence], at: u32) {
        let record = sequences.get(at as usize).copied();
        let Some(record) = record.filter(|r| r.mate != NIL && r.mate != at) else {
            return;
        };
        // The end that it was: the run goes on above it, or below it.
        let above = link(links, link(links, record.high).above).sequence;
        let goes_on = |s: &Sequence| above == record.mate || s.mate == NIL;
        let heir = match sequences.get(above as usize).is_some_and(goes_on) {
            true => above,
            false => link(links, link(links, record.low).below).sequence,
        };
        for (end, other) in [(heir, record.mate), (record.mate, heir)] {
            if let Some(end) = sequences.get_mut(end as usize) {
                end.mate = other;
            }
        }
    }

    /// Takes a chain out of the list; the chain itself stays linked.
    pub fn cut(&mut self, links: &mut [Link], low: u32, high: u32) {
        let below = link(links, low).below;
        let above = link(links, high).above;
        match below {
            NIL => self.bottom = above,
            _ => with(links, below, |l| l.above = above),
        }
        match above {
            NIL => self.top = below,
            _ => with(links, above, |l| l.below = below),
        }
    }

    /// Puts a chain into the list, above a page or ([`NIL`]) at the bottom.
    pub fn splice(&mut self, links: &mut [Link], low: u32, high: u32, below: u32) {
        let above = match below {
            NIL => self.bottom,
            _ => link(links, below).above,
        };
        with(links, low, |l| l.below = below);
        with(links, high, |l| l.above = above);
        match below {
            NIL => self.bottom = low,
            _ => with(links, below, |l| l.above = low),
        }
        match above {
            NIL => self.top = high,
            _ => with(links, above, |l| l.below = high),
        }
    }

    /// The sequence that a page of the section is in.
    pub fn sequence_of(links: &[Link], sequences: &[Sequence], page: u32) -> Option<Sequence> {
        let at = link(links, page).sequence;
        sequences.get(at as usize).copied()
    }

    /// `H` of the sequence that a page is in, or `None` at an end of the list.
    pub fn h_of(links: &[Link], sequences: &[Sequence], page: u32) -> Option<u64> {
        Self::sequence_of(links, sequences, page).map(|s| s.h)
    }

    /// An eviction ended a sequence of this `H`: `L` rises to it, but not beyond what
    /// is still in the section, which is more only if the host did not take the first
    /// proposal.
    pub fn inflate(&mut self, parts: &PartsMut<'_>, h: u64) {
        let lowest = Self::h_of(parts.links, parts.sequences, self.bottom);
        let h = lowest.map_or(h, |lowest| lowest.min(h));
        self.inflation = self.inflation.max(h);
    }

    /// Takes `L` off every `H`, so that neither overflows; the order is the same.
    pub fn renormalise(&mut self, parts: &mut PartsMut<'_>) {
        let inflation = self.inflation;
        let used = parts.sequences.get_mut(..self.fresh as usize);
        for record in used.into_iter().flatten() {
            record.h = record.h.saturating_sub(inflation);
        }
        self.inflation = 0;
    }
}

/// The pages of a section, from the bottom.
#[derive(Clone)]
pub(super) struct Pages<'a> {
    pub links: &'a [Link],
    pub next: u32,
}

impl Iterator for Pages<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let page = self.next;
        self.next = self.links.get(page as usize)?.above;
        Some(page)
    }
}
