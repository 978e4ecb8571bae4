//! A queue of objects by age, in which each is found by its key.

use piebald_policy::contract::replacement::PageRef;

use super::super::index::{PageIndex, PageKey};

/// Where an object is, as long as it is in the queue.
pub(super) type At = u32;

/// An object in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub key: PageKey,
    pub bytes: u64,
    /// Uses since it came, as far as a policy counts them.
    pub uses: u8,
}

struct Node {
    entry: Entry,
    newer: Option<At>,
    older: Option<At>,
}

/// Objects from the newest to the oldest, and the sum of their bytes. Every call is O(1).
pub(super) struct Queue {
    nodes: Vec<Node>,
    free: Vec<At>,
    index: PageIndex,
    newest: Option<At>,
    oldest: Option<At>,
    bytes: u64,
}

impl Queue {
    pub fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            index: PageIndex::with_room(0),
            newest: None,
            oldest: None,
            bytes: 0,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }

    pub fn find(&self, key: PageKey) -> Option<At> {
        self.index.get(key).map(|PageRef(at)| at)
    }

    pub fn oldest(&self) -> Option<At> {
        self.oldest
    }

    pub fn newer(&self, at: At) -> Option<At> {
        self.nodes[at as usize].newer
    }

    pub fn uses(&self, at: At) -> u8 {
        self.nodes[at as usize].entry.uses
    }

    pub fn set_uses(&mut self, at: At, uses: u8) {
        self.nodes[at as usize].entry.uses = uses;
    }

    /// The object has another size from now on.
    pub fn resize(&mut self, at: At, bytes: u64) {
        let entry = &mut self.nodes[at as usize].entry;
        self.bytes = self.bytes - entry.bytes + bytes;
        entry.bytes = bytes;
    }

    /// Puts an object that is not in the queue at its newest end.
    pub fn push(&mut self, entry: Entry) {
        let node = Node {
            entry,
            newer: None,
            older: None,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as At
            }
        };
        self.index.insert(entry.key, PageRef(at));
        self.bytes += entry.bytes;
        self.link(at);
    }

    /// Takes an object out.
    pub fn remove(&mut self, at: At) -> Entry {
        self.unlink(at);
        let entry = self.nodes[at as usize].entry;
        self.index.remove(entry.key);
        self.bytes -= entry.bytes;
        self.free.push(at);
        entry
    }

    /// Makes an object the newest.
    pub fn renew(&mut self, at: At) {
        self.unlink(at);
        self.link(at);
    }

    fn link(&mut self, at: At) {
        let next = self.newest.replace(at);
        let node = &mut self.nodes[at as usize];
        (node.newer, node.older) = (None, next);
        match next {
            Some(next) => self.nodes[next as usize].newer = Some(at),
            None => self.oldest = Some(at),
        }
    }

    fn unlink(&mut self, at: At) {
        let Node { newer, older, .. } = self.nodes[at as usize];
        match newer {
            Some(newer) => self.nodes[newer as usize].older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => self.nodes[older as usize].newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Objects from the oldest to the newest.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        let next = |at: &At| self.newer(*at);
        std::iter::successors(self.oldest, next).map(|at| &self.nodes[at as usize].entry)
    }

    /// Recounts objects and bytes.
    pub fn validate(&self) -> Result<(), String> {
        let (mut count, mut bytes, mut last) = (0, 0, None);
        let mut at = self.oldest;
        while let Some(here) = at {
            let node = &self.nodes[here as usize];
            if node.older != last || self.find(node.entry.key) != Some(here) {
                return Err(format!("object {:?} is linked wrongly", node.entry));
            }
            count += 1;
            bytes += node.entry.bytes;
            (last, at) = (at, node.newer);
        }
        let known = self.index.len();
        if last != self.newest || count != known || count + self.free.len() != self.nodes.len() {
            return Err(format!(
                "{count} objects in the queue, {known} in the index"
            ));
        }
        match bytes == self.bytes {
            true => Ok(()),
            false => Err(format!("{bytes} B in the queue, {} counted", self.bytes)),
        }
    }
}
