//! What the policies of this room are built from: lists that are linked through
//! the page numbers, and the queue of numbers that are given back.
//!
//! A list owns no memory: its links lie in the policy's node table, so moving a
//! page costs no allocation and touches the neighbours only. The head is the hot
//! end, the tail the cold one.

use piebald_policy::contract::replacement::{BrokenOrder, Fetch, Insert, PageRef};

/// No page.
pub(super) const NIL: u32 = u32::MAX;

/// Neighbours of a page in one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Towards the head.
    hotter: u32,
    /// Towards the tail.
    colder: u32,
}

impl Link {
    /// In no list.
    pub(super) const NONE: Self = Self {
        hotter: NIL,
        colder: NIL,
    };
}

impl Default for Link {
    fn default() -> Self {
        Self::NONE
    }
}

/// A node that can be in a list. `W` tells the lists apart that a node can be in
/// at the same time.
pub(super) trait Linked<const W: usize = 0> {
    fn link(&self) -> &Link;
    fn link_mut(&mut self) -> &mut Link;
}

/// Implements [`Linked`] for a node type with a field that holds the link.
macro_rules! linked {
    ($node:ty, $which:literal, $field:ident) => {
        impl Linked<$which> for $node {
            #[inline]
            fn link(&self) -> &Link {
                &self.$field
            }
            #[inline]
            fn link_mut(&mut self) -> &mut Link {
                &mut self.$field
            }
        }
    };
}
pub(super) use linked;

/// A list through the links `W` of a node table.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<const W: usize = 0> {
    head: u32,
    tail: u32,
    len: u32,
}

impl<const W: usize> Default for List<W> {
    fn default() -> Self {
        Self {
            head: NIL,
            tail: NIL,
            len: 0,
        }
    }
}

impl<const W: usize> List<W> {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The coldest page.
    #[inline]
    pub(super) fn tail(&self) -> Option<u32> {
        (self.tail != NIL).then_some(self.tail)
    }

    /// The hottest page.
    #[inline]
    pub(super) fn head(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    /// Puts a page that is in no list `W` at the hot end.
    #[inline]
    pub(super) fn push<N: Linked<W>>(&mut self, nodes: &mut [N], page: u32) {
        *nodes[page as usize].link_mut() = Link {
            hotter: NIL,
            colder: self.head,
        };
        match self.head {
            NIL => self.tail = page,
            head => nodes[head as usize].link_mut().hotter = page,
        }
        self.head = page;
        self.len += 1;
    }

    /// Puts all pages of another list at the cold end, in their order.
    pub(super) fn put_below<N: Linked<W>>(&mut self, nodes: &mut [N], other: Self) {
        let (Some(hottest), Some(coldest)) = (other.head(), self.tail()) else {
            if self.is_empty() {
                *self = other;
            }
            return;
        };
        nodes[coldest as usize].link_mut().colder = hottest;
        nodes[hottest as usize].link_mut().hotter = coldest;
        self.tail = other.tail;
        self.len += other.len;
    }

    /// Takes a page out of this list.
    #[inline]
    pub(super) fn unlink<N: Linked<W>>(&mut self, nodes: &mut [N], page: u32) {
        let Link { hotter, colder } = *nodes[page as usize].link();
        match hotter {
            NIL => self.head = colder,
            h => nodes[h as usize].link_mut().colder = colder,
        }
        match colder {
            NIL => self.tail = hotter,
            c => nodes[c as usize].link_mut().hotter = hotter,
        }
        self.len -= 1;
    }

    /// Moves a page of this list to the hot end.
    #[inline]
    pub(super) fn raise<N: Linked<W>>(&mut self, nodes: &mut [N], page: u32) {
        if self.head != page {
            self.unlink(nodes, page);
            self.push(nodes, page);
        }
    }

    /// The next hotter page.
    #[inline]
    pub(super) fn above<N: Linked<W>>(nodes: &[N], page: u32) -> Option<u32> {
        let hotter = nodes[page as usize].link().hotter;
        (hotter != NIL).then_some(hotter)
    }

    /// All pages, coldest first.
    pub(super) fn coldest<'a, N: Linked<W>>(
        &self,
        nodes: &'a [N],
    ) -> impl Iterator<Item = u32> + use<'a, N, W> {
        std::iter::successors(self.tail(), |&page| Self::above(nodes, page))
    }

    /// The coldest page but one.
    pub(super) fn coldest_but<N: Linked<W>>(&self, nodes: &[N], kept: u32) -> Option<u32> {
        self.coldest(nodes).find(|page| *page != kept)
    }

    /// Checks links and length, and that every member passes `belongs`.
    pub(super) fn check<N: Linked<W>>(
        &self,
        nodes: &[N],
        rule: &'static str,
        belongs: impl Fn(&N) -> bool,
    ) -> Result<(), BrokenOrder> {
        let (mut count, mut below) = (0u32, NIL);
        for page in self.coldest(nodes).take(nodes.len() + 1) {
            let node = &nodes[page as usize];
            if node.link().colder != below || !belongs(node) {
                return Err(broken(rule, page));
            }
            (count, below) = (count + 1, page);
        }
        rule_holds(count == self.len && below == self.head, rule)
    }
}

/// Numbers that a policy gave up and the host has not asked for yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Dropped(Vec<u32>);

impl Dropped {
    #[inline]
    pub(super) fn push(&mut self, page: u32) {
        self.0.push(page);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<PageRef> {
        self.0.pop().map(PageRef)
    }

    /// Is the number waiting to be handed back? Slow; for checks.
    pub(super) fn has(&self, page: u32) -> bool {
        self.0.contains(&page)
    }
}

/// Fills `out` from an order; returns how many there were room for.
pub(super) fn fill(out: &mut [PageRef], order: impl Iterator<Item = u32>) -> usize {
    let mut found = 0;
    for (place, page) in out.iter_mut().zip(order) {
        *place = PageRef(page);
        found += 1;
    }
    found
}

/// A broken rule shown by a page.
pub(super) fn broken(rule: &'static str, page: u32) -> BrokenOrder {
    BrokenOrder {
        rule,
        page: Some(PageRef(page)),
    }
}

/// A rule about counts.
pub(super) fn rule_holds(holds: bool, rule: &'static str) -> Result<(), BrokenOrder> {
    match holds {
        true => Ok(()),
        false => Err(BrokenOrder { rule, page: None }),
    }
}

/// A call that the page's state does not allow: the host's defect, reported in
/// test builds, without effect otherwise.
#[cold]
pub(super) fn misuse(call: &str, page: PageRef) {
    debug_assert!(
        false,
        "{call} of page {}: its state does not allow it",
        page.0
    );
}

/// `percent` of `pages`, rounded down, at least `least`.
pub(super) fn share(pages: u32, percent: u32, least: u32) -> u32 {
    let part = u64::from(pages) * u64::from(percent) / 100;
    u32::try_from(part).unwrap_or(u32::MAX).max(least)
}

/// What a policy remembers of a page besides its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Note {
    #[default]
    Plain,
    /// Read ahead and not used yet.
    Unread,
    /// Used since it was detached.
    Used,
}

impl Note {
    /// The note of a page that comes in under a free number.
    pub(super) fn of(insert: &Insert) -> Self {
        match insert.fetch {
            Fetch::Demand => Self::Plain,
            Fetch::Readahead => Self::Unread,
        }
    }

    /// Takes the mark of a page that nobody used; was it there?
    #[inline]
    pub(super) fn first_use(&mut self) -> bool {
        let first = *self == Self::Unread;
        if first {
            *self = Self::Plain;
        }
        first
    }

    /// Takes the mark of a page that was used while detached; was it there?
    pub(super) fn take_used(&mut self) -> bool {
        let used = *self == Self::Used;
        if used {
            *self = Self::Plain;
        }
        used
    }
}
