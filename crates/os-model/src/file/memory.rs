//! What holds the pages: the seam between the file side and whoever owns frames.
//!
//! A [`FileHost`](super::FileHost) decides which pages are in memory; it owns no
//! frame and no page table. Whoever does is lent to it with every call, as a
//! [`Memory`], and is told what comes and goes. [`Unbound`] is the memory of a cache
//! simulation: it has all the room that the policy's capacity leaves, and nobody
//! reaches a page without a call.
//!
//! A memory may have a *zone*: it then takes the coldest pages out of the order of
//! replacement before anybody needs their frames, and chooses which of them leaves when
//! a page comes, by the colour of the frame. See [`Place`].

use piebald_policy::{
    contract::replacement::{Fetch, PageRef},
    srm::Supply,
};
use piebald_units::{FileId, TaskId};

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// A page of a file.
    File {
        /// The file.
        file: FileId,
        /// Its page.
        page: u64,
    },
    /// A page of programs' memory, as named in [`Request::Anon`](super::Request::Anon).
    Anon {
        /// The space.
        space: u32,
        /// Its page.
        page: u64,
    },
}

/// A page that comes into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// What it will hold.
    pub content: Content,
    /// Whether somebody waits for it.
    pub fetch: Fetch,
    /// In whose call it comes.
    pub task: TaskId,
    /// Pages of its file, this one included; 0 for programs' memory.
    pub file_pages: u64,
    /// A read from the disk follows ([`Memory::filled`] tells its end). Otherwise it is
    /// new: zeroes, or about to be overwritten as a whole.
    pub is_read: bool,
}

/// Where a page that is to come can lie, in a memory with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A frame is kept for it: the page that [comes](Memory::came) next gets it.
    Kept,
    /// In the frame of a page that the zone has, which is kept for it as soon as that
    /// page has [left](Memory::left). If that page is in use by now, it stays, and the
    /// memory is told with [`declined`](Memory::declined).
    Leaves(PageRef),
    /// The zone wants cold pages first ([`Memory::take_cold`]).
    Refill,
    /// Nowhere now: the zone has nothing that the page may have. `bound`: it has others,
    /// of colours that the requester may not have.
    Nowhere {
        /// Only some colours will do.
        bound: bool,
    },
}

/// What a zone gives back under pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// A frame that was free, and is free for everybody now.
    Frame,
    /// The frame of this page, once it has left.
    Page(PageRef),
}

/// Who owns the frames that pages lie in. Every page between [`came`](Self::came) and
/// [`left`](Self::left) has one.
pub trait Memory {
    /// Pages that can come in without one leaving. Negative: so many must leave first,
    /// because others took from the same memory.
    fn room(&self) -> i64;

    /// May [`may_go`](Self::may_go) or [`young`](Self::young) ever say something else
    /// than for [`Unbound`]? A constant.
    fn is_selective(&self) -> bool;

    /// A page comes: it needs a frame now. There is [room](Self::room). False: there is
    /// none for it after all, and the page does not come.
    fn came(&mut self, page: PageRef, what: &Came) -> bool;

    /// The page has left: nobody may reach it any more, its frame is free.
    fn left(&mut self, page: PageRef);

    /// May the page leave? Asked before it is chosen as a victim. Changes nothing.
    fn may_go(&self, page: PageRef) -> bool;

    /// Was it used through a mapping since this was asked last? Reads and clears access
    /// bits.
    fn young(&mut self, page: PageRef) -> bool;

    /// Nobody may reach the page through a mapping from here on without a call: it is
    /// going to be written to the disk, or it was deleted.
    fn unmap(&mut self, page: PageRef);

    /// The device has read the page into its frame.
    fn filled(&mut self, page: PageRef);

    /// The device reads the frame, to write the page to the disk.
    fn drained(&mut self, page: PageRef);

    /// The call of a task has come to this page, and has it. If the call is
    /// [blocked](super::Step::Blocked), the page may leave before the task goes on,
    /// unless [`may_go`](Self::may_go) says otherwise.
    fn got(&mut self, task: TaskId, page: PageRef);

    /// Does it choose frames from a zone? A constant. Without one, only
    /// [`place`](Self::place), [`unplace`](Self::unplace) and [`only_for`](Self::only_for)
    /// are called, and only for pages that are [bound](Self::is_bound).
    fn has_zone(&self) -> bool {
        false
    }

    /// May the page lie in some frames only, whoever needs the others?
    fn is_bound(&self, _: &Came) -> bool {
        false
    }

    /// Where can this page lie?
    fn place(&mut self, _: &Came, _: Supply) -> Place {
        Place::Kept
    }

    /// The page that was to leave its frame for this one stays where it is.
    fn declined(&mut self, _: &Came) {}

    /// What was kept for a page is free again: it does not come.
    fn unplace(&mut self) {}

    /// Does the zone want cold pages?
    fn wants_cold(&self) -> bool {
        false
    }

    /// A page that may leave at once is out of the order of replacement and the zone's
    /// from now on. False: the zone cannot have it.
    fn take_cold(&mut self, _: PageRef) -> bool {
        false
    }

    /// From here on [`may_go`](Self::may_go) refuses pages in whose frames this page may not
    /// lie; `None`: no more.
    fn only_for(&mut self, _: Option<&Came>) {}

    /// A page that the zone had was used, and is back in the order of replacement.
    fn warmed(&mut self, _: PageRef) {}

    /// Others need memory: what the zone can do without, `None` if it is empty.
    fn spare(&mut self) -> Option<Spared> {
        None
    }
}

/// Memory that only the policy's capacity bounds, and that no mapping reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unbound;

impl Memory for Unbound {
    #[inline]
    fn room(&self) -> i64 {
        i64::MAX
    }

    #[inline]
    fn is_selective(&self) -> bool {
        false
    }

    #[inline]
    fn came(&mut self, _: PageRef, _: &Came) -> bool {
        true
    }

    #[inline]
    fn left(&mut self, _: PageRef) {}

    #[inline]
    fn may_go(&self, _: PageRef) -> bool {
        true
    }

    #[inline]
    fn young(&mut self, _: PageRef) -> bool {
        false
    }

    #[inline]
    fn unmap(&mut self, _: PageRef) {}

    #[inline]
    fn filled(&mut self, _: PageRef) {}

    #[inline]
    fn drained(&mut self, _: PageRef) {}

    #[inline]
    fn got(&mut self, _: TaskId, _: PageRef) {}
}
