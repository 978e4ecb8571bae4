//! Dropping what is old, and the table's own books.

use piebald_units::DiskBlock;

use super::{BITS, MAX_TIME, RADIX, TableNode, Tree, digit, walk::Path};

/// What a reclaim came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Nodes that are free now.
    pub nodes: u32,
    /// Where to go on; `None` at the end of the table.
    pub next: Option<DiskBlock>,
}

/// A threshold is raised by this part of the time that the table covers.
const RAISE: u32 = 8;

impl Tree {
    pub(in super::super) fn reclaim_step(
        &mut self,
        nodes: &mut [TableNode],
        threshold: u32,
        from: u64,
        leaves: u32,
    ) -> Reclaimed {
        let before = self.used;
        let mut key = Some(from >> BITS);
        for _ in 0..leaves.max(1) {
            key = key.and_then(|key| self.reclaim_one(nodes, threshold, key));
            if key.is_none() {
                break;
            }
        }
        let nodes = before.saturating_sub(self.used);
        self.counters.dropped = self.counters.dropped.wrapping_add(nodes.into());
        Reclaimed {
            nodes,
            next: key.map(|key| DiskBlock(key << BITS)),
        }
    }

    /// Drops the next leaf if it is old; the key behind it.
    fn reclaim_one(&mut self, nodes: &mut [TableNode], threshold: u32, key: u64) -> Option<u64> {
        let path = self.path_from(nodes, key, |_, _| true)?;
        if self.newest_of(nodes, &path) < threshold {
            self.drop_leaf(nodes, &path);
            self.last = None;
        }
        (path.block >> BITS).checked_add(1)
    }

    /// The newest time in a leaf.
    fn newest_of(&self, nodes: &[TableNode], path: &Path) -> u32 {
        if self.height <= 1 {
            return self.newest;
        }
        let above = nodes.get(path.node(1) as usize);
        let entry = above.and_then(|n| n.entries.get(digit(path.block, 1)));
        entry.map_or(u32::MAX, |[_, newest]| *newest)
    }

    /// Frees a leaf and the directories that are empty without it.
    fn drop_leaf(&mut self, nodes: &mut [TableNode], path: &Path) {
        self.give(nodes, path.node(0));
        for level in 1..self.height {
            let at = path.node(level);
            let Some(node) = nodes.get_mut(at as usize) else {
                return;
            };
            if let Some(entry) = node.entries.get_mut(digit(path.block, level)) {
                *entry = [0; 2];
            }
            if node.entries.iter().any(|[child, _]| *child != 0) {
                return;
            }
            self.give(nodes, at);
        }
        self.root = 0;
        self.height = 0;
        self.newest = 0;
    }

    /// Sees to it that a block can be recorded, without what is older than `now`;
    /// false if it cannot.
    pub(super) fn make_room(&mut self, nodes: &mut [TableNode], block: u64, now: u32) -> bool {
        if self.missing(nodes, block) <= self.room(nodes) {
            return true;
        }
        self.counters.shortages = self.counters.shortages.wrapping_add(1);
        // Times only rise, so what was true of all leaves still is: another walk through them would
        // find nothing to drop.
        if now <= self.full_at {
            return false;
        }
        while self.missing(nodes, block) > self.room(nodes) {
            let oldest = self.oldest(nodes);
            if self.root == 0 || oldest >= now {
                self.full_at = now;
                return false;
            }
            let covered = now.saturating_sub(oldest);
            let threshold = oldest.saturating_add((covered / RAISE).max(1));
            self.drop_older(nodes, threshold);
        }
        true
    }

    /// Drops all leaves that are older than the threshold: what
    /// [`reclaim_step`](Self::reclaim_step) does without a bound, but it looks at the directories
    /// of leaves alone.
    fn drop_older(&mut self, nodes: &mut [TableNode], threshold: u32) {
        let before = self.used;
        let old = |level: u32, newest: u32| level > 1 || newest < threshold;
        let mut key = Some(0);
        while let Some(path) = key.and_then(|key| self.path_from(nodes, key, old)) {
            if self.newest_of(nodes, &path) < threshold {
                self.drop_leaf(nodes, &path);
                self.last = None;
            }
            key = (path.block >> BITS).checked_add(1);
        }
        let dropped = before.saturating_sub(self.used);
        self.counters.dropped = self.counters.dropped.wrapping_add(dropped.into());
    }

    /// The oldest of the newest times of all leaves.
    fn oldest(&self, nodes: &[TableNode]) -> u32 {
        let mut oldest = self.newest;
        if self.height <= 1 {
            return oldest;
        }
        let mut key = 0;
        // All leaves of a directory at once: few of its entries may be taken.
        while let Some(path) = self.path_to(nodes, key, 1, |_, _| true) {
            if let Some(directory) = nodes.get(path.node(1) as usize) {
                let times = directory.entries.iter().map(|[child, newest]| match child {
                    0 => u32::MAX,
                    _ => *newest,
                });
                oldest = times.fold(oldest, u32::min);
            }
            let behind = (path.block >> BITS >> BITS).saturating_add(1);
            key = behind.saturating_mul(RADIX as u64);
        }
        oldest
    }

    /// Recounts nodes and times. No block may have a time after `now`.
    pub(in super::super) fn validate(
        &self,
        nodes: &[TableNode],
        now: u32,
    ) -> Result<(), &'static str> {
        let mut seen = u32::from(self.root != 0 && self.height > 1);
        let mut key = 0;
        // The last node that was met at each level: a new one is counted once.
        let mut met = [u32::MAX; super::LEVELS];
        while let Some(path) = self.path_from(nodes, key, |_, _| true) {
            for level in 0..self.height.saturating_sub(1).max(1) {
                let node = path.node(level);
                if let Some(old) = met.get_mut(level as usize)
                    && *old != node
                {
                    *old = node;
                    seen = seen.saturating_add(1);
                }
            }
            self.check_times(nodes, &path, now)?;
            key = (path.block >> BITS).saturating_add(1);
        }
        let mut free = 0u32;
        let mut at = self.free;
        while let Some(node) = at.checked_sub(1).and_then(|a| nodes.get(a as usize)) {
            free = free.saturating_add(1);
            if free > self.fresh {
                return Err("the free nodes of the block table form a ring");
            }
            let [[next, _], ..] = node.entries;
            at = next;
        }
        match (
            seen == self.used,
            self.used.saturating_add(free) == self.fresh,
        ) {
            (false, _) => Err("nodes of the block table are not all reached"),
            (_, false) => Err("nodes of the block table are lost"),
            _ => Ok(()),
        }
    }

    /// Times rise towards the root, and those of a BTE are in order.
    fn check_times(&self, nodes: &[TableNode], path: &Path, now: u32) -> Result<(), &'static str> {
        let entries = nodes.get(path.node(0) as usize).map(|n| n.entries.iter());
        let entries = entries.ok_or("a leaf of the block table is outside its memory")?;
        let mut newest = 0;
        for [latest, before] in entries {
            if *latest > now.min(MAX_TIME) || (*before >= *latest && *before != 0) {
                return Err("the times of a block are out of order");
            }
            newest = newest.max(*latest);
        }
        if newest != self.newest_of(nodes, path) {
            return Err("a directory does not have the newest time of its leaf");
        }
        for level in 1..self.height {
            let above = nodes.get(path.node(level) as usize);
            let entry = above.and_then(|n| n.entries.get(digit(path.block, level)));
            if entry.is_none_or(|[_, time]| *time < newest || *time > self.newest) {
                return Err("a directory is older than what is in it");
            }
        }
        Ok(())
    }
}
