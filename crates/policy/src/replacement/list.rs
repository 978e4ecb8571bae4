//! Lists that run through a lent table of nodes, by index.
//!
//! One table carries several lists, since a page is on one list at a time. A list
//! has a *newest* and an *oldest* end; every operation takes constant time.
//!
//! The outward link of an end is not kept up to date: who takes a page from an
//! end then touches no other node. An end is known by being named in its [`List`].

/// No page: the end of a list.
pub(super) const NIL: u32 = u32::MAX;

/// The neighbours of a page in the list that it is on: 8 B per page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    newer: u32,
    older: u32,
}

impl Link {
    /// The link of a page that is on no list, to fill memory with before it is lent.
    pub const NONE: Self = Self {
        newer: NIL,
        older: NIL,
    };
}

/// The ends of a list and how many pages are on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
    len: u32,
}

impl List {
    /// A list without pages.
    pub(super) const EMPTY: Self = Self {
        newest: NIL,
        oldest: NIL,
        len: 0,
    };

    /// Pages on the list.
    #[inline]
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The page that was added last.
    #[inline]
    pub(super) const fn newest(&self) -> Option<u32> {
        if self.len == 0 {
            None
        } else {
            Some(self.newest)
        }
    }

    /// The page that would be taken first.
    #[inline]
    pub(super) const fn oldest(&self) -> Option<u32> {
        if self.len == 0 {
            None
        } else {
            Some(self.oldest)
        }
    }

    /// The page added after this one, which is on the list.
    #[inline]
    pub(super) fn newer(&self, links: &[Link], at: u32) -> Option<u32> {
        if self.newest == at {
            return None;
        }
        links.get(at as usize).map(|link| link.newer)
    }

    /// Adds a page at the newest end. It is on no list.
    #[inline]
    pub(super) fn push(&mut self, links: &mut [Link], at: u32) {
        if self.len == 0 {
            self.oldest = at;
        } else {
            set_newer(links, self.newest, at);
            set_older(links, at, self.newest);
        }
        self.newest = at;
        self.len = self.len.wrapping_add(1);
    }

    /// Takes a page that is on the list out of it.
    #[inline]
    pub(super) fn unlink(&mut self, links: &mut [Link], at: u32) {
        let Some(Link { newer, older }) = links.get(at as usize).copied() else {
            return;
        };
        let (is_newest, is_oldest) = (self.newest == at, self.oldest == at);
        if is_newest {
            self.newest = older;
        } else if !is_oldest {
            set_older(links, newer, older);
        }
        if is_oldest {
            self.oldest = newer;
        } else if !is_newest {
            set_newer(links, older, newer);
        }
        self.len = self.len.wrapping_sub(1);
    }

    /// Moves the oldest page to the newest end.
    #[inline]
    pub(super) fn rotate(&mut self, links: &mut [Link]) {
        if self.len < 2 {
            return;
        }
        let at = self.oldest;
        let Some(link) = links.get_mut(at as usize) else {
            return;
        };
        link.older = self.newest;
        self.oldest = link.newer;
        set_newer(links, self.newest, at);
        self.newest = at;
    }

    /// The pages, oldest first.
    #[inline]
    pub(super) fn walk<'a>(&self, links: &'a [Link]) -> Walk<'a> {
        Walk {
            links,
            at: self.oldest,
            left: self.len,
        }
    }

    /// The pages from this one on, which is on the list, to the newest.
    #[inline]
    pub(super) fn walk_from<'a>(&self, links: &'a [Link], at: u32) -> From<'a> {
        From {
            links,
            at,
            newest: self.newest,
        }
    }

    /// Does the chain hold together: so many pages, linked both ways?
    pub(super) fn holds(&self, links: &[Link]) -> bool {
        let mut previous = None;
        for at in self.walk(links) {
            if let Some(previous) = previous
                && (at == self.oldest
                    || links.get(at as usize).map(|link| link.older) != Some(previous))
            {
                return false;
            }
            previous = Some(at);
        }
        previous == self.newest()
    }
}

#[inline]
fn set_newer(links: &mut [Link], at: u32, to: u32) {
    if let Some(link) = links.get_mut(at as usize) {
        link.newer = to;
    }
}

#[inline]
fn set_older(links: &mut [Link], at: u32, to: u32) {
    if let Some(link) = links.get_mut(at as usize) {
        link.older = to;
    }
}

/// The pages of a list, oldest first.
#[derive(Clone)]
pub(super) struct Walk<'a> {
    links: &'a [Link],
    at: u32,
    left: u32,
}

impl Iterator for Walk<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        self.at = self.links.get(at as usize)?.newer;
        Some(at)
    }
}

/// The pages of a list from a given one to the newest.
#[derive(Clone)]
pub(super) struct From<'a> {
    links: &'a [Link],
    at: u32,
    newest: u32,
}

impl Iterator for From<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let at = self.at;
        let link = self.links.get(at as usize)?;
        self.at = if at == self.newest { NIL } else { link.newer };
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{collections::VecDeque, vec, vec::Vec};

    use super::*;

    #[test]
    fn a_list_keeps_its_order_whatever_is_added_taken_out_or_moved() {
        let mut links = vec![Link { newer: 7, older: 7 }; 16];
        let (mut list, mut expected) = (List::EMPTY, VecDeque::new());
        let mut seed = 1u32;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (at, what) = (seed >> 20 & 15, seed >> 28);
            if let Some(i) = expected.iter().position(|e| *e == at) {
                expected.remove(i);
                list.unlink(&mut links, at);
            } else {
                list.push(&mut links, at);
                expected.push_back(at);
            }
            if what & 3 == 0 {
                list.rotate(&mut links);
                if let Some(oldest) = expected.pop_front() {
                    expected.push_back(oldest);
                }
            }
            let found: Vec<u32> = list.walk(&links).collect();
            assert_eq!(VecDeque::from(found), expected, "step {step}");
            assert_eq!(list.len() as usize, expected.len());
            assert_eq!(list.oldest(), expected.front().copied());
            assert_eq!(list.newest(), expected.back().copied());
            assert!(list.holds(&links), "step {step}");
            for (i, at) in expected.iter().enumerate() {
                assert_eq!(list.newer(&links, *at), expected.get(i + 1).copied());
                let rest = list.walk_from(&links, *at);
                assert!(rest.eq(expected.iter().skip(i).copied()), "step {step}");
            }
        }
    }

    #[test]
    fn a_broken_chain_is_seen() {
        let mut links = vec![Link::default(); 4];
        let mut list = List::EMPTY;
        (0..4).for_each(|at| list.push(&mut links, at));
        assert!(list.holds(&links));
        let sound = links.clone();
        set_older(&mut links, 2, 3);
        assert!(!list.holds(&links), "a wrong link back");
        links.copy_from_slice(&sound);
        set_newer(&mut links, 1, 0);
        assert!(!list.holds(&links), "a loop");
        links.copy_from_slice(&sound);
        list.len = 3;
        assert!(!list.holds(&links), "a wrong length");
    }
}
