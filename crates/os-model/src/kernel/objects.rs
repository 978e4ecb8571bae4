//! The frames of files and of shared anonymous memory.
//!
//! Every page here holds one reference to its frame; mappings add theirs. There
//! is no disk behind it: a page that is missing is granted and counted, and its
//! content costs nothing.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::space::{Object, ObjectPage};

/// Object pages that are in memory.
#[derive(Clone, Default)]
pub(crate) struct Objects {
    pages: HashMap<Object, HashMap<u64, u32>>,
    /// Pages of areas that map a shared anonymous object.
    mapped: HashMap<u64, u64>,
    next_anon: u64,
    count: u64,
    /// Files that were written to or mapped shared.
    written: HashSet<Object>,
    /// Pages of the other files, oldest first; some are gone.
    queue: VecDeque<(ObjectPage, u32)>,
}

impl Objects {
    pub(crate) fn get(&self, page: ObjectPage) -> Option<u32> {
        self.pages.get(&page.object)?.get(&page.index).copied()
    }

    pub(crate) fn insert(&mut self, page: ObjectPage, frame: u32) {
        let of = self.pages.entry(page.object).or_default();
        if of.insert(page.index, frame).is_none() {
            self.count += 1;
        }
        if self.is_clean(page.object) {
            self.queue.push_back((page, frame));
        }
    }

    /// Takes one page out; its frame keeps its user.
    pub(crate) fn remove_page(&mut self, page: ObjectPage) {
        let Some(of) = self.pages.get_mut(&page.object) else {
            return;
        };
        if of.remove(&page.index).is_some() {
            self.count -= 1;
        }
    }

    /// What memory holds of an object may differ from what a disk would.
    pub(crate) fn set_written(&mut self, object: Object) {
        self.written.insert(object);
    }

    /// Can a page of the object be read again?
    pub(crate) fn is_clean(&self, object: Object) -> bool {
        matches!(object, Object::File(_)) && !self.written.contains(&object)
    }

    /// Pages that [`oldest_clean`](Self::oldest_clean) may give, and some that are
    /// gone.
    pub(crate) fn nr_queued(&self) -> usize {
        self.queue.len()
    }

    /// Takes the page of a clean file that came first from the queue.
    pub(crate) fn oldest_clean(&mut self) -> Option<(ObjectPage, u32)> {
        while let Some((page, frame)) = self.queue.pop_front() {
            if self.get(page) == Some(frame) && self.is_clean(page.object) {
                return Some((page, frame));
            }
        }
        None
    }

    /// Puts a page back, behind all others.
    pub(crate) fn requeue(&mut self, page: ObjectPage, frame: u32) {
        self.queue.push_back((page, frame));
    }

    /// Number of pages.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Removes an object; returns its frames, by rising page, so that the order
    /// in which they are freed does not depend on a hash.
    pub(crate) fn remove(&mut self, object: Object) -> Vec<u32> {
        let mut pages: Vec<_> = self
            .pages
            .remove(&object)
            .unwrap_or_default()
            .into_iter()
            .collect();
        pages.sort_unstable();
        self.count -= pages.len() as u64;
        pages.into_iter().map(|(_, f)| f).collect()
    }

    pub(crate) fn new_shared_anon(&mut self) -> Object {
        self.next_anon += 1;
        Object::SharedAnon(self.next_anon)
    }

    /// Counts the pages of an area that begins to map an object.
    pub(crate) fn mapped(&mut self, object: Object, pages: u64) {
        if let Object::SharedAnon(n) = object {
            *self.mapped.entry(n).or_default() += pages;
        }
    }

    /// Counts them off; true if nobody maps the shared object any more.
    pub(crate) fn unmapped(&mut self, object: Object, pages: u64) -> bool {
        let Object::SharedAnon(n) = object else {
            return false;
        };
        let left = self.mapped.entry(n).or_default();
        *left = left.saturating_sub(pages);
        let gone = *left == 0;
        if gone {
            self.mapped.remove(&n);
        }
        gone
    }

    /// Frames of all pages, in no order.
    pub(crate) fn frames(&self) -> impl Iterator<Item = u32> {
        self.pages.values().flat_map(|p| p.values().copied())
    }
}
