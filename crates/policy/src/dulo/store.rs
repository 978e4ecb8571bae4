//! The memory that DULO lives in, lent by the host as typed slices.

use super::{ConfigError, MAX_SEQUENCE, Sections, TableNode};
use crate::contract::replacement::PageRef;

/// No page and no sequence: the end of a list.
pub(super) const NIL: u32 = u32::MAX;
/// Instead of a sequence: the page is not in the evicting section.
pub(super) const OUT: u32 = NIL;
/// Instead of a sequence: the host has detached the page.
pub(super) const HELD: u32 = NIL - 1;
/// Instead of a block: the page has no place on disk.
pub(super) const NOWHERE: u64 = u64::MAX;

/// What DULO knows of a page besides its place on disk: its neighbours in the
/// evicting section and its sequence. 12 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub(super) below: u32,
    pub(super) above: u32,
    pub(super) sequence: u32,
}

impl Link {
    /// A page that DULO does not know.
    pub const EMPTY: Self = Self {
        below: NIL,
        above: NIL,
        sequence: OUT,
    };
}

impl Default for Link {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// A sequence in the evicting section: neighbours on disk that lie together there.
/// 24 B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Its `H`, with [`FRACTION_BITS`](super::FRACTION_BITS).
    pub(super) h: u64,
    /// Its lowest page: the next to go.
    pub(super) low: u32,
    /// Its highest page.
    pub(super) high: u32,
    /// Of a sequence at the end of a run of sequences with one `H`: the one at the
    /// other end, itself if it is alone; [`NIL`] between. While a bank is sequenced:
    /// the next of its length.
    pub(super) mate: u32,
    /// Blocks that it was formed of.
    pub(super) size: u16,
    /// Pages that are still there; 0 for a free record, whose `low` is the next one.
    pub(super) left: u16,
}

/// The sequences of one length: what it adds to `L`, its place in the order of
/// lengths, and, during sequencing, the sequences of the bank. 32 B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Cost / size, with [`FRACTION_BITS`](super::FRACTION_BITS).
    pub(super) step: u64,
    /// Sequences formed so far.
    pub(super) formed: u64,
    /// Position of this length among all lengths by `step`.
    pub(super) rank: u32,
    /// The length, less 1, that has this bucket's position.
    pub(super) ranked: u32,
    /// First of the bank's sequences.
    pub(super) first: u32,
    /// Last of the bank's sequences.
    pub(super) last: u32,
}

impl Sequence {
    /// No sequence.
    pub const EMPTY: Self = Self {
        h: 0,
        low: NIL,
        high: NIL,
        mate: NIL,
        size: 0,
        left: 0,
    };
}

impl Bucket {
    /// A length without value.
    pub const EMPTY: Self = Self::empty(0);

    pub(super) const fn empty(step: u64) -> Self {
        Self {
            step,
            formed: 0,
            rank: 0,
            ranked: 0,
            first: NIL,
            last: NIL,
        }
    }
}

/// How long the slices of a [`Store`] must be. For a memory of M pages, with a base
/// that remembers no ghosts: 20 B x M of links and places, 24 B for each page of
/// the evicting section and the bank, 4 B for each page of the bank, 4 KB of
/// buckets, and the block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Numbers that the base tells apart: a [`Link`] of 12 B and a place of 8 B each.
    pub slots: usize,
    /// [`Sequence`]s of 24 B: one per page of the evicting section and the bank.
    pub sequences: usize,
    /// [`PageRef`]s of the bank.
    pub bank: usize,
    /// [`Bucket`]s of 32 B: one for each length.
    pub buckets: usize,
    /// Nodes of the block table, 512 B each. Any number will do; with fewer, history
    /// is forgotten earlier. Here: a quarter of the pages, which remembers 16 times
    /// the memory if it lies densely on disk, plus two per page of the bank, so that
    /// a bank of random blocks finds room \[ours\].
    pub table: usize,
}

impl Sizes {
    /// The sizes for these sections over a base with so many
    /// [`slots`](crate::contract::replacement::Replacement::slots).
    pub fn of(sections: &Sections, slots: u32) -> Self {
        let bank = sections.bank as usize;
        let section = (sections.evicting as usize).saturating_add(bank);
        let pages = section.saturating_add(sections.correlation as usize);
        Self {
            slots: slots as usize,
            sequences: section,
            bank,
            buckets: usize::from(MAX_SEQUENCE),
            table: (pages / 4).saturating_add(bank.saturating_mul(2)),
        }
    }

    /// The first slice that is too short, the table excepted.
    pub(super) fn check(&self, lent: &Parts<'_>) -> Result<(), ConfigError> {
        let slices = [
            ("slots", lent.links.len(), self.slots),
            ("slots", lent.places.len(), self.slots),
            ("sequences", lent.sequences.len(), self.sequences),
            ("bank", lent.bank.len(), self.bank),
            ("buckets", lent.buckets.len(), self.buckets),
        ];
        for (name, lent, needed) in slices {
            if lent < needed {
                return Err(ConfigError::Store { name, lent, needed });
            }
        }
        Ok(())
    }
}

/// All that a [`Store`] lends, to look at.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// One per slot.
    pub links: &'a [Link],
    /// The place of each page on disk, one per slot.
    pub places: &'a [u64],
    /// The sequences of the evicting section.
    pub sequences: &'a [Sequence],
    /// The bank, while it is sequenced.
    pub bank: &'a [PageRef],
    /// One per length of sequence.
    pub buckets: &'a [Bucket],
    /// The block table.
    pub table: &'a [TableNode],
}

/// All that a [`Store`] lends, to change.
pub struct PartsMut<'a> {
    /// One per slot.
    pub links: &'a mut [Link],
    /// The place of each page on disk, one per slot.
    pub places: &'a mut [u64],
    /// The sequences of the evicting section.
    pub sequences: &'a mut [Sequence],
    /// The bank, while it is sequenced.
    pub bank: &'a mut [PageRef],
    /// One per length of sequence.
    pub buckets: &'a mut [Bucket],
    /// The block table.
    pub table: &'a mut [TableNode],
}

/// Memory for DULO, at least as long as [`Sizes`] says. It may hold anything when it
/// is lent; then no one else writes it, and its lengths stay.
pub trait Store {
    /// To look at.
    fn parts(&self) -> Parts<'_>;
    /// To change.
    fn parts_mut(&mut self) -> PartsMut<'_>;
}

/// A store of vectors, boxed or lent slices: whatever can be seen as slices.
#[derive(Clone, Debug)]
pub struct Slices<L, P, S, R, B, T> {
    /// See [`Sizes::slots`].
    pub links: L,
    /// See [`Sizes::slots`].
    pub places: P,
    /// See [`Sizes::sequences`].
    pub sequences: S,
    /// See [`Sizes::bank`].
    pub bank: R,
    /// See [`Sizes::buckets`].
    pub buckets: B,
    /// See [`Sizes::table`].
    pub table: T,
}

impl<L, P, S, R, B, T> Slices<L, P, S, R, B, T>
where
    L: FromIterator<Link>,
    P: FromIterator<u64>,
    S: FromIterator<Sequence>,
    R: FromIterator<PageRef>,
    B: FromIterator<Bucket>,
    T: FromIterator<TableNode>,
{
    /// A store that collects its memory, as vectors and boxed slices do.
    pub fn collect(sizes: &Sizes) -> Self {
        Self {
            links: core::iter::repeat_n(Link::EMPTY, sizes.slots).collect(),
            places: core::iter::repeat_n(NOWHERE, sizes.slots).collect(),
            sequences: core::iter::repeat_n(Sequence::default(), sizes.sequences).collect(),
            bank: core::iter::repeat_n(PageRef(0), sizes.bank).collect(),
            buckets: core::iter::repeat_n(Bucket::default(), sizes.buckets).collect(),
            table: core::iter::repeat_n(TableNode::EMPTY, sizes.table).collect(),
        }
    }
}

impl<L, P, S, R, B, T> Store for Slices<L, P, S, R, B, T>
where
    L: AsRef<[Link]> + AsMut<[Link]>,
    P: AsRef<[u64]> + AsMut<[u64]>,
    S: AsRef<[Sequence]> + AsMut<[Sequence]>,
    R: AsRef<[PageRef]> + AsMut<[PageRef]>,
    B: AsRef<[Bucket]> + AsMut<[Bucket]>,
    T: AsRef<[TableNode]> + AsMut<[TableNode]>,
{
    #[inline]
    fn parts(&self) -> Parts<'_> {
        Parts {
            links: self.links.as_ref(),
            places: self.places.as_ref(),
            sequences: self.sequences.as_ref(),
            bank: self.bank.as_ref(),
            buckets: self.buckets.as_ref(),
            table: self.table.as_ref(),
        }
    }

    #[inline]
    fn parts_mut(&mut self) -> PartsMut<'_> {
        PartsMut {
            links: self.links.as_mut(),
            places: self.places.as_mut(),
            sequences: self.sequences.as_mut(),
            bank: self.bank.as_mut(),
            buckets: self.buckets.as_mut(),
            table: self.table.as_mut(),
        }
    }
}
