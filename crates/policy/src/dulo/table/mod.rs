//! The block table: when was this block of a disk accessed (section 3.2)?
//!
//! Like a page table, it is a tree over the position of a block on its disk. Its
//! leaves have a *BTE* (block table entry) per block with the two latest times;
//! every directory entry has the newest time below it, so that a walk over the
//! blocks of one time, and the removal of old directories, skip the rest.
//!
//! * A node has 64 entries of 8 B: 512 B for 64 blocks that lie together, and one
//!   directory of 512 B for each 64 of those. Nodes are taken on demand from memory
//!   that the caller lends.
//! * The tree grows upwards on demand and covers blocks below 2^60, ten levels. So
//!   disks that have ranges of their own share one table; a walk through one range
//!   does not meet another.
//! * Times are 1 and above; 0 means never.
//!
//! # Costs
//!
//! [`record`](BlockTable::record) visits at most ten nodes, and one if the last
//! record was for a neighbour at the same time. When no node is free, it drops the
//! directories of the oldest eighth of the time that the table covers, and more
//! until there is room: O(nodes in use) for at least one node that gets free. A
//! host that cannot bear that calls [`reclaim_step`](BlockTable::reclaim_step) with
//! a bound in time.

mod reclaim;
mod walk;

pub use reclaim::Reclaimed;

use piebald_units::DiskBlock;

use walk::Place;

/// log2 of the entries of a node.
const BITS: u32 = 6;
/// Entries of a node.
const RADIX: usize = 1 << BITS;
/// The bits of a digit.
const DIGIT: u64 = (1u64 << BITS).wrapping_sub(1);
/// Most levels.
const LEVELS: usize = 10;

/// Blocks that the table can tell apart are below 2^60.
pub const BLOCK_BITS: u32 = 60;

/// The last time of the bank clock. The upper bit of a BTE is taken: while a bank
/// is being sequenced, a BTE has the position of its page in the bank instead of
/// the time, which is the same for all of them.
pub const MAX_TIME: u32 = (1 << 31) - 1;
/// The upper bit of a BTE's latest time: the rest is a position in the bank.
const IN_BANK: u32 = 1 << 31;

/// Where the entry of a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub block: u64,
    /// The leaf's node.
    pub leaf: u32,
}

/// A node of the tree, 512 B. It may hold anything when it is lent.
#[derive(Clone, Copy, Debug)]
pub struct TableNode {
    /// Of a directory: the child's number + 1 (0: none) and the newest time below.
    /// Of a leaf: the latest time of the block and the one before.
    entries: [[u32; 2]; RADIX],
}

impl TableNode {
    /// A node without entries.
    pub const EMPTY: Self = Self {
        entries: [[0; 2]; RADIX],
    };
}

impl Default for TableNode {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// What a table did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounters {
    /// Times recorded.
    pub recorded: u64,
    /// Times that were lost because no node could be freed, or because the block is
    /// 2^60 or above.
    pub unrecorded: u64,
    /// How often nodes ran out and old directories were dropped.
    pub shortages: u64,
    /// Nodes dropped because they were old.
    pub dropped: u64,
}

/// The tree without its memory, which every call is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    /// Number of the root + 1; 0 without one.
    root: u32,
    /// Levels; 1 if the root is a leaf.
    height: u32,
    /// The newest time in the tree.
    newest: u32,
    /// First free node + 1, a list through their first entries.
    free: u32,
    /// Nodes from here on were never used.
    fresh: u32,
    used: u32,
    /// The leaf of the last record and its time, if nothing was dropped since.
    last: Option<(Place, u32)>,
    /// No leaf was older than this when room was last looked for in vain; 0 = never.
    full_at: u32,
    pub(super) counters: TableCounters,
}

impl Tree {
    pub(super) const EMPTY: Self = Self {
        root: 0,
        height: 0,
        newest: 0,
        free: 0,
        fresh: 0,
        used: 0,
        last: None,
        full_at: 0,
        counters: TableCounters {
            recorded: 0,
            unrecorded: 0,
            shortages: 0,
            dropped: 0,
        },
    };

    pub(super) const fn in_use(&self) -> u32 {
        self.used
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        let counters = self.counters;
        *self = Self {
            counters,
            ..Self::EMPTY
        };
    }

    /// A free node, emptied.
    fn take(&mut self, nodes: &mut [TableNode]) -> Option<u32> {
        let at = match self.free.checked_sub(1) {
            Some(at) => at,
            None => self.fresh,
        };
        let node = nodes.get_mut(at as usize)?;
        if self.free == 0 {
            self.fresh = self.fresh.saturating_add(1);
        } else {
            let [[next, _], ..] = node.entries;
            self.free = next;
        }
        *node = TableNode::EMPTY;
        self.used = self.used.saturating_add(1);
        Some(at)
    }

    fn give(&mut self, nodes: &mut [TableNode], at: u32) {
        if let Some(node) = nodes.get_mut(at as usize) {
            let [first, ..] = &mut node.entries;
            *first = [self.free, 0];
            self.free = at.saturating_add(1);
            self.used = self.used.saturating_sub(1);
        }
    }

    fn room(&self, nodes: &[TableNode]) -> usize {
        nodes.len().saturating_sub(self.used as usize)
    }

    /// The leaf of a block, made if it is not there, with every directory above stamped
    /// with a time; `None` if the block cannot be recorded. Does not look into it.
    pub(super) fn enter(&mut self, nodes: &mut [TableNode], block: u64, time: u32) -> Option<u32> {
        let key = block >> BITS;
        let leaf = match self.last {
            Some((last, stamped)) if last.key == key && stamped == time => Some(last.leaf),
            _ => self.leaf(nodes, block, time),
        };
        match leaf {
            Some(leaf) => self.last = Some((Place { key, leaf }, time)),
            None => self.counters.unrecorded = self.counters.unrecorded.wrapping_add(1),
        }
        leaf
    }

    fn leaf(&mut self, nodes: &mut [TableNode], block: u64, time: u32) -> Option<u32> {
        if block >> BLOCK_BITS != 0 {
            return None;
        }
        if let Some(known) = self.stamp(nodes, block, time) {
            return Some(known);
        }
        if !self.make_room(nodes, block, time) {
            return None;
        }
        self.grow(nodes, block)?;
        self.newest = self.newest.max(time);
        let mut at = self.root.checked_sub(1)?;
        for level in (1..self.height).rev() {
            at = self.step(nodes, at, digit(block, level), time)?;
        }
        Some(at)
    }

    /// As [`leaf`](Self::leaf) for a leaf that is there. (If it is not, directories on
    /// the way may look newer than what is in them, which costs a walk a step.)
    fn stamp(&mut self, nodes: &mut [TableNode], block: u64, time: u32) -> Option<u32> {
        let mut at = self.root.checked_sub(1)?;
        if levels(block) > self.height {
            return None;
        }
        self.newest = self.newest.max(time);
        for level in (1..self.height).rev() {
            let entries = &mut nodes.get_mut(at as usize)?.entries;
            let [child, newest] = entries.get_mut(digit(block, level))?;
            let below = child.checked_sub(1)?;
            *newest = time.max(*newest);
            at = below;
        }
        Some(at)
    }

    /// Goes down one level, making the child if it is not there.
    fn step(&mut self, nodes: &mut [TableNode], at: u32, digit: usize, time: u32) -> Option<u32> {
        let [child, _] = *nodes.get(at as usize)?.entries.get(digit)?;
        let below = match child.checked_sub(1) {
            Some(below) => below,
            None => self.take(nodes)?,
        };
        let [child, newest] = nodes.get_mut(at as usize)?.entries.get_mut(digit)?;
        *child = below.saturating_add(1);
        *newest = time.max(*newest);
        Some(below)
    }

    /// Adds levels above until the tree covers the block.
    fn grow(&mut self, nodes: &mut [TableNode], block: u64) -> Option<()> {
        let needed = levels(block);
        if self.root == 0 {
            self.root = self.take(nodes)?.saturating_add(1);
            self.height = needed;
        }
        while self.height < needed {
            let above = self.take(nodes)?;
            let [first, ..] = &mut nodes.get_mut(above as usize)?.entries;
            *first = [self.root, self.newest];
            self.root = above.saturating_add(1);
            self.height = self.height.saturating_add(1);
        }
        Some(())
    }

    /// Nodes that recording a block takes.
    fn missing(&self, nodes: &[TableNode], block: u64) -> usize {
        let needed = levels(block);
        let Some(mut at) = self.root.checked_sub(1) else {
            return needed as usize;
        };
        let above = needed.saturating_sub(self.height);
        if above > 0 {
            return above.saturating_add(needed).saturating_sub(1) as usize;
        }
        for level in (1..self.height).rev() {
            match child(nodes, at, digit(block, level)) {
                Some(below) => at = below,
                None => return level as usize,
            }
        }
        0
    }

    pub(super) fn record(&mut self, nodes: &mut [TableNode], block: u64, time: u32) -> bool {
        let leaf = self.enter(nodes, block, time);
        let bte = leaf.and_then(|leaf| bte(nodes, Spot { block, leaf }));
        let Some([latest, before]) = bte else {
            return false;
        };
        if *latest != time {
            *before = *latest;
            *latest = time;
        }
        self.counters.recorded = self.counters.recorded.wrapping_add(1);
        true
    }

    /// Gives a block of the bank the position of its page there, until
    /// [`unmark`](Self::unmark) makes that the time. False if it has one already.
    #[inline]
    pub(super) fn mark(&mut self, nodes: &mut [TableNode], spot: Spot, position: u32) -> bool {
        match bte(nodes, spot) {
            Some([latest, before]) if *latest & IN_BANK == 0 => {
                *before = *latest;
                *latest = IN_BANK | position;
                self.counters.recorded = self.counters.recorded.wrapping_add(1);
                true
            }
            _ => false,
        }
    }

    /// The position of a block in the bank, and its time before the bank's; `None` if it
    /// has no mark.
    #[inline]
    pub(super) fn marked(nodes: &[TableNode], spot: Spot) -> Option<(u32, u32)> {
        let node = nodes.get(spot.leaf as usize)?;
        let [latest, before] = *node.entries.get(digit(spot.block, 0))?;
        (latest & IN_BANK != 0).then_some((latest & !IN_BANK, before))
    }

    /// Takes a mark off.
    #[inline]
    pub(super) fn unmark(nodes: &mut [TableNode], spot: Spot, time: u32) {
        if let Some([latest, _]) = bte(nodes, spot) {
            *latest = time;
        }
    }

    /// The block before this one.
    #[inline]
    pub(super) fn below(&self, nodes: &[TableNode], spot: Spot) -> Option<Spot> {
        self.beside(nodes, spot, spot.block.checked_sub(1)?)
    }

    /// The block behind this one.
    #[inline]
    pub(super) fn above(&self, nodes: &[TableNode], spot: Spot) -> Option<Spot> {
        self.beside(nodes, spot, spot.block.checked_add(1)?)
    }

    #[inline]
    fn beside(&self, nodes: &[TableNode], spot: Spot, block: u64) -> Option<Spot> {
        let leaf = match block >> BITS == spot.block >> BITS {
            true => spot.leaf,
            false => self.find(nodes, block)?,
        };
        Some(Spot { block, leaf })
    }

    pub(super) fn times(&self, nodes: &[TableNode], block: u64) -> [u32; 2] {
        self.look_up(nodes, block).unwrap_or([0; 2])
    }

    fn look_up(&self, nodes: &[TableNode], block: u64) -> Option<[u32; 2]> {
        let leaf = nodes.get(self.find(nodes, block)? as usize)?;
        leaf.entries.get(digit(block, 0)).copied()
    }

    /// The leaf of a block.
    fn find(&self, nodes: &[TableNode], block: u64) -> Option<u32> {
        let mut at = self.root.checked_sub(1)?;
        if levels(block) > self.height {
            return None;
        }
        for level in (1..self.height).rev() {
            at = child(nodes, at, digit(block, level))?;
        }
        Some(at)
    }
}

/// The entry of a block.
#[inline]
fn bte(nodes: &mut [TableNode], spot: Spot) -> Option<&mut [u32; 2]> {
    let node = nodes.get_mut(spot.leaf as usize)?;
    node.entries.get_mut(digit(spot.block, 0))
}

/// Levels that a tree needs to cover a block.
const fn levels(block: u64) -> u32 {
    match (u64::BITS.wrapping_sub(block.leading_zeros())).div_ceil(BITS) {
        0 => 1,
        n => n,
    }
}

/// The digit of a block at a level; level 0 is the leaf's.
const fn digit(block: u64, level: u32) -> usize {
    (block.wrapping_shr(level.wrapping_mul(BITS)) & DIGIT) as usize
}

fn child(nodes: &[TableNode], at: u32, digit: usize) -> Option<u32> {
    let [child, _] = *nodes.get(at as usize)?.entries.get(digit)?;
    child.checked_sub(1)
}

/// A block table with its memory; `T` is whatever can be seen as a slice of nodes.
/// (DULO keeps its own table in the memory of its [`Store`](super::Store).)
#[derive(Clone, Debug)]
pub struct BlockTable<T> {
    tree: Tree,
    nodes: T,
}

impl<T: AsRef<[TableNode]> + AsMut<[TableNode]>> BlockTable<T> {
    /// An empty table.
    pub const fn new(nodes: T) -> Self {
        Self {
            tree: Tree::EMPTY,
            nodes,
        }
    }

    /// Records that a block was accessed at a time from 1 to [`MAX_TIME`], not before
    /// the times recorded so far. The time before the previous one is forgotten; the
    /// same time again changes nothing. False if there is no room for it, even
    /// without all that is older, or if the block is 2^60 or above.
    pub fn record(&mut self, block: DiskBlock, time: u32) -> bool {
        let time = time.clamp(1, MAX_TIME);
        self.tree.record(self.nodes.as_mut(), block.0, time)
    }

    /// The latest time of a block and the one before; 0 for those it does not have.
    pub fn times(&self, block: DiskBlock) -> [u32; 2] {
        self.tree.times(self.nodes.as_ref(), block.0)
    }

    /// The blocks whose latest time is this one, in rising order. Goes only into
    /// directories whose newest time is; so the time has to be the newest of all for
    /// the answer to be complete.
    pub fn accessed_at(&self, time: u32) -> impl Iterator<Item = DiskBlock> {
        walk::Blocks::new(&self.tree, self.nodes.as_ref(), time)
    }

    /// Drops all directories whose newest time is below the threshold, with all that
    /// is in them.
    pub fn reclaim(&mut self, threshold: u32) -> Reclaimed {
        self.reclaim_step(threshold, DiskBlock(0), u32::MAX)
    }

    /// As [`reclaim`](Self::reclaim), from a block on, for at most `leaves` leaves (at
    /// least 1); says where to go on.
    pub fn reclaim_step(&mut self, threshold: u32, from: DiskBlock, leaves: u32) -> Reclaimed {
        self.tree
            .reclaim_step(self.nodes.as_mut(), threshold, from.0, leaves)
    }

    /// Nodes in use.
    pub fn nodes_in_use(&self) -> u32 {
        self.tree.in_use()
    }

    /// What was done so far.
    pub fn counters(&self) -> TableCounters {
        self.tree.counters
    }

    /// Recounts everything and compares.
    ///
    /// # Errors
    /// The rule that does not hold.
    pub fn validate(&self) -> Result<(), &'static str> {
        self.tree.validate(self.nodes.as_ref(), MAX_TIME)
    }
}
