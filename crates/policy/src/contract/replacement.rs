//! What a host tells a replacement policy, and what it asks of it.
//!
//! The host owns the pages: it looks keys up, reads and writes, and gives every
//! page that a policy knows a small dense number, its [`PageRef`]. The policy owns
//! an order. The calls for one page, in order:
//!
//! 1. [`miss`](Replacement::miss): the page was asked for and is not in memory;
//! 2. while memory is full: [`propose`](Replacement::propose), then
//!    [`forget`](Replacement::forget) with [`Gone::Evicted`] for each page that the
//!    host let go (or [`evict`](Replacement::evict), which is both for one page);
//! 3. [`insert`](Replacement::insert): the page is in memory now;
//! 4. [`hit`](Replacement::hit) at every later use;
//! 5. at times [`detach`](Replacement::detach) and
//!    [`reattach`](Replacement::reattach), while someone else holds the page;
//! 6. `forget` when it leaves.
//!
//! A fetch that the host gives up after step 1 (nothing may be evicted, the read
//! failed) ends there. If the policy remembered the page, the host then calls `forget`
//! for this ghost with [`Gone::Deleted`]: a policy keeps a ghost that was asked for
//! until it comes or another is asked for, and would keep a number for a page that
//! never comes.
//!
//! A page that left may live on as a *ghost*: the policy remembers that it was there.
//! The host keeps the number for that page until the policy hands it back through
//! [`dropped`](Replacement::dropped), then it may stand for another page. So a
//! policy needs no table of its own, and memory is bounded by
//! [`slots`](Replacement::slots). What outlives the number is the page's
//! [`PageName`], by which a policy may count uses; it is never asked to find a page
//! by it.
//!
//! Every policy is *exclusive*: the host locks. A call for a page in a state that
//! does not allow it (a hit on a page that was never inserted, a number out of
//! range) changes nothing; it is a defect of the host, which `debug_assert!`
//! reports in test builds.

use core::fmt;

use piebald_units::{DiskBlock, Picos};

/// A page as a replacement policy knows it: a dense number below
/// [`Replacement::slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageRef(pub u32);

impl PageRef {
    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which page it is, whether in memory or not: a name that the host gives it at every
/// fetch, the same each time, and to no other page. All 64 bits count and the host
/// need not mix them; two pages with one name are counted as one, nothing worse.
///
/// Where a page lies on disk ([`Insert::at`]) is no name: an anonymous page gets
/// another swap slot each time, and traces of ids have no places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageName(pub u64);

/// What a page holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// A block of a file.
    #[default]
    File,
    /// Memory of a program; its place on disk, if any, is a swap slot.
    Anon,
}

/// Why a page came into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fetch {
    /// Somebody waits for it.
    #[default]
    Demand,
    /// Read ahead or prefetched: nobody has used it yet.
    Readahead,
}

/// A page that comes into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insert {
    /// Which page it is. Every host gives it; [`PageName::default`] is a name like any
    /// other, for hosts that know that their policy counts nothing.
    pub name: PageName,
    /// What it holds.
    pub kind: PageKind,
    /// It differs from the copy on disk.
    pub dirty: bool,
    /// Why it came.
    pub fetch: Fetch,
    /// Where it lies on disk; `None` for a page that has no place there (an
    /// anonymous page without swap slot) or whose place is not known.
    pub at: Option<DiskBlock>,
    /// Number of the reference at which it is used next, where the host knows the
    /// future (a trace that was read before); only Belady's bound looks at it.
    pub next_use: Option<u64>,
}

/// How a page was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Via {
    /// By a system call, which tells the kernel at once (`mark_page_accessed`).
    #[default]
    Call,
    /// Through a mapping: the hardware set an access bit, which the kernel sees
    /// when it looks at the page next.
    Mapping,
}

/// A use of a page in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// How.
    pub via: Via,
    /// As [`Insert::next_use`].
    pub next_use: Option<u64>,
}

/// Why a page leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gone {
    /// Memory was needed; it may come back.
    Evicted,
    /// It no longer exists: its file was truncated or deleted, its owner exited.
    Deleted,
}

/// What a policy knows of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nothing: the number is free.
    Unknown,
    /// In memory and in the policy's order.
    Resident,
    /// In memory, and held by someone else: never proposed.
    Detached,
    /// Not in memory, but remembered.
    Ghost,
}

/// Work that a policy did beyond constant time, for overhead figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Pages looked at in searches for victims.
    pub scanned: u64,
    /// Pages moved within or between lists other than by a hit or an insertion.
    pub moved: u64,
}

/// A replacement policy. See the [module](self) for the order of calls.
pub trait Replacement {
    /// Pages that fit in memory by this policy's books.
    fn capacity(&self) -> u32;

    /// Numbers that the policy can tell apart: pages in memory, the one that comes
    /// in, and ghosts. All [`PageRef`]s are below.
    fn slots(&self) -> u32;

    /// A page is about to be fetched. `ghost` is its number if the policy still
    /// remembers it. Comes before room is made, so that adaptive policies (ARC,
    /// LIRS, 2Q) can choose the victim knowing what comes. [`insert`](Self::insert)
    /// follows with the same page, or the host gives the fetch up (see the
    /// [module](self)): then it forgets the ghost.
    fn miss(&mut self, ghost: Option<PageRef>, insert: &Insert, now: Picos);

    /// The page is in memory now: a free number, or that of a ghost.
    fn insert(&mut self, page: PageRef, insert: &Insert, now: Picos);

    /// The page was used. Allowed for detached pages too: the policy notes the use
    /// (a flag, a frequency), and the order stays.
    fn hit(&mut self, page: PageRef, touch: Touch, now: Picos);

    /// The first victims, coldest first, as many as fit in `out` and exist; returns
    /// their number. Changes nothing, and gives the same until something changes.
    /// Detached pages are never among them. Pages that deserve a second chance come
    /// after those that do not.
    fn propose(&self, out: &mut [PageRef]) -> usize;

    /// Takes the page out of the order; it stays in memory and in the policy's
    /// books. What was passed over to reach it (second chances) is carried out.
    fn detach(&mut self, page: PageRef);

    /// Puts a detached page back where a page goes that was used again (the hot end
    /// of the stack or list that suits its history).
    fn reattach(&mut self, page: PageRef);

    /// The page is no longer in memory. Evicting the first proposal carries out the
    /// second chances that the policy gave on the way; evicting another leaves
    /// proposals that the host passed over where they are. A ghost can be forgotten
    /// with [`Gone::Deleted`], and must be if its fetch was given up.
    fn forget(&mut self, page: PageRef, why: Gone);

    /// Evicts the first proposal, if there is one. Equal to `propose` and `forget`.
    fn evict(&mut self) -> Option<PageRef> {
        let mut first = [PageRef(0)];
        if self.propose(&mut first) == 0 {
            return None;
        }
        let [page] = first;
        self.forget(page, Gone::Evicted);
        Some(page)
    }

    /// A number that the policy gave up since it was asked last: a page that left
    /// and is not remembered, or a ghost that made room. Each comes once; the host
    /// drains it after every `forget`, `evict`, `miss` and `insert`.
    fn dropped(&mut self) -> Option<PageRef>;

    /// The place of a page on disk became known or changed (a swap slot was given).
    fn place(&mut self, _page: PageRef, _at: Option<DiskBlock>) {}

    /// The page was written to (`true`) or written back (`false`).
    fn set_dirty(&mut self, _page: PageRef, _dirty: bool) {}

    /// What the policy knows of a page.
    fn state(&self, page: PageRef) -> State;

    /// Pages in memory, detached ones included.
    fn resident(&self) -> u32;

    /// Work done so far beyond constant time.
    fn effort(&self) -> Effort {
        Effort::default()
    }

    /// Shows counters that only this policy has, by name, for reports.
    fn figures(&self, _show: &mut dyn FnMut(&'static str, u64)) {}

    /// Recounts everything from scratch and compares.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn validate(&self) -> Result<(), BrokenOrder>;
}

/// A policy that DULO can be put on (FAST'05 sections 3 and 4.2.2): it takes pages
/// from the cold end, keeps them in its evicting section, and gives back those that
/// were used meanwhile.
pub trait Base: Replacement {
    /// The coldest attached pages in plain order, second chances not considered;
    /// coldest first. Changes nothing.
    fn coldest(&self, out: &mut [PageRef]) -> usize;

    /// Would the policy keep the page if it were the coldest (its young bit is set,
    /// its use while detached has earned another turn)?
    fn wanted(&self, page: PageRef) -> bool;

    /// Pages of different classes are never sequenced together: in the two-list
    /// form, pages demoted from the active list (1) and freshly faulted ones (0).
    fn class(&self, _page: PageRef) -> u8 {
        0
    }
}

/// An inconsistency that `validate` found: a defect of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenOrder {
    /// What does not hold.
    pub rule: &'static str,
    /// A page that shows it, if one does.
    pub page: Option<PageRef>,
}

impl fmt::Display for BrokenOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.page {
            Some(page) => write!(f, "{} (page {})", self.rule, page.0),
            None => f.write_str(self.rule),
        }
    }
}

impl core::error::Error for BrokenOrder {}
