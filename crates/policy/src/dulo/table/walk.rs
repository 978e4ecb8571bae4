//! Walks through the block table in the order of the disk.

use piebald_units::DiskBlock;

use super::{BITS, DIGIT, IN_BANK, LEVELS, TableNode, Tree, digit};

/// A leaf of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Place {
    /// The number that its blocks have above their lowest digit.
    pub key: u64,
    /// Its node.
    pub leaf: u32,
}

impl Place {
    /// The block of a digit.
    pub const fn block(self, digit: usize) -> u64 {
        self.key << BITS | digit as u64
    }
}

/// A way from the root to a leaf.
pub(super) struct Path {
    /// Any block of the leaf.
    pub block: u64,
    /// The leaf first, the root last.
    pub nodes: [u32; LEVELS],
}

impl Path {
    pub fn node(&self, level: u32) -> u32 {
        self.nodes.get(level as usize).copied().unwrap_or(u32::MAX)
    }

    fn set(&mut self, level: u32, node: u32) {
        if let Some(at) = self.nodes.get_mut(level as usize) {
            *at = node;
        }
    }
}

impl Tree {
    /// The first leaf at or behind a key, by directory entries that `goes` lets
    /// through (it is given the directory's level and the entry's newest time).
    pub(super) fn path_from(
        &self,
        nodes: &[TableNode],
        key: u64,
        goes: impl Fn(u32, u32) -> bool,
    ) -> Option<Path> {
        self.path_to(nodes, key, 0, goes)
    }

    /// The same that ends at a node of a level, or at the root if that is below it.
    pub(super) fn path_to(
        &self,
        nodes: &[TableNode],
        key: u64,
        end: u32,
        goes: impl Fn(u32, u32) -> bool,
    ) -> Option<Path> {
        let root = self.root.checked_sub(1)?;
        let mut level = self.height.checked_sub(1)?;
        let block = key.checked_shl(BITS).filter(|b| b >> BITS == key)?;
        if super::levels(block) > self.height {
            return None;
        }
        let mut path = Path {
            block,
            nodes: [root; LEVELS],
        };
        while level > end {
            let goes = |newest| goes(level, newest);
            match first_entry(nodes, path.node(level), digit(path.block, level), goes) {
                Some((found, below)) => {
                    path.block = with_digit(path.block, level, found);
                    level = level.saturating_sub(1);
                    path.set(level, below);
                }
                None => level = self.up(&mut path.block, level)?,
            }
        }
        Some(path)
    }

    /// Moves a block to the first one behind the directory of a level, and tells the
    /// level at which it left its old way.
    fn up(&self, block: &mut u64, level: u32) -> Option<u32> {
        let mut above = level.saturating_add(1);
        let shift = above.wrapping_mul(BITS);
        let next = block.checked_shr(shift)?.checked_add(1)?;
        *block = next.checked_shl(shift)?;
        while above < self.height && digit(*block, above) == 0 {
            above = above.saturating_add(1);
        }
        (above < self.height).then_some(above)
    }

    /// The first leaf from a key on that a block of this time is in, the time being
    /// the newest.
    pub(in super::super) fn leaf_at(
        &self,
        nodes: &[TableNode],
        key: u64,
        time: u32,
    ) -> Option<Place> {
        if self.newest != time {
            return None;
        }
        let path = self.path_from(nodes, key, |_, newest| newest == time)?;
        Some(Place {
            key: path.block >> BITS,
            leaf: path.node(0),
        })
    }
}

/// The first child of a directory from a digit on that may be entered.
fn first_entry(
    nodes: &[TableNode],
    at: u32,
    from: usize,
    goes: impl Fn(u32) -> bool,
) -> Option<(usize, u32)> {
    let entries = nodes.get(at as usize)?.entries.iter().enumerate();
    let (digit, [child, _]) = entries
        .skip(from)
        .find(|(_, [child, newest])| *child != 0 && goes(*newest))?;
    Some((digit, child.checked_sub(1)?))
}

/// The first block of this digit at a level, or the same block if it has it.
fn with_digit(block: u64, level: u32, found: usize) -> u64 {
    if digit(block, level) == found {
        return block;
    }
    let shift = level.wrapping_mul(BITS);
    let above = block.wrapping_shr(shift) & !DIGIT;
    (above | found as u64).wrapping_shl(shift)
}

/// The blocks of one time.
pub(super) struct Blocks<'n> {
    tree: &'n Tree,
    nodes: &'n [TableNode],
    time: u32,
    place: Option<Place>,
    digit: usize,
}

impl<'n> Blocks<'n> {
    pub fn new(tree: &'n Tree, nodes: &'n [TableNode], time: u32) -> Self {
        Self {
            tree,
            nodes,
            time,
            place: tree.leaf_at(nodes, 0, time),
            digit: 0,
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = DiskBlock;

    fn next(&mut self) -> Option<DiskBlock> {
        while let Some(place) = self.place {
            let entries = &self.nodes.get(place.leaf as usize)?.entries;
            while let Some([latest, _]) = entries.get(self.digit) {
                let digit = self.digit;
                self.digit = self.digit.saturating_add(1);
                if *latest & !IN_BANK == self.time {
                    return Some(DiskBlock(place.block(digit)));
                }
            }
            self.digit = 0;
            let behind = place.key.saturating_add(1);
            self.place = self.tree.leaf_at(self.nodes, behind, self.time);
        }
        None
    }
}
