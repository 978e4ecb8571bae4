//! Four-level page tables whose nodes occupy real frames.
//!
//! A node is 512 entries; level 3 is the root, level 0 holds 4 KiB pages, and a
//! level-1 entry may be a 2 MiB page. Inner entries hold the index of the child
//! node instead of its frame: the frame is stored in the node, so a lookup
//! costs one array access per level and a hardware walk can still be given.

use piebald_units::{PageSize, PhysAddr, VirtAddr, Vpn, memory::Walk};

use super::Entry;

/// Pages that a 48-bit address reaches.
pub(crate) const VPN_MASK: u64 = (1 << 36) - 1;
/// 4 KiB pages in a 2 MiB page.
pub(crate) const HUGE_PAGES: u64 = 512;

#[derive(Clone)]
struct Node {
    entries: [u64; 512],
    /// Frame that holds the node.
    frame: u32,
    /// Entries that are not empty.
    live: u16,
}

/// The tables of one address space.
#[derive(Clone)]
pub(crate) struct Tables {
    nodes: Vec<Box<Node>>,
    spare: Vec<u32>,
}

/// Where an entry is stored: the node's frame and the byte offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub frame: u32,
    pub offset: u16,
}

fn index(vpn: u64, level: u8) -> usize {
    (vpn >> (9 * u32::from(level)) & 511) as usize
}

impl Tables {
    pub(crate) fn new(root_frame: u32) -> Self {
        let mut tables = Self {
            nodes: Vec::new(),
            spare: Vec::new(),
        };
        tables.new_node(root_frame);
        tables
    }

    fn new_node(&mut self, frame: u32) -> u32 {
        if let Some(i) = self.spare.pop() {
            self.nodes[i as usize].frame = frame;
            return i;
        }
        self.nodes.push(Box::new(Node {
            entries: [0; 512],
            frame,
            live: 0,
        }));
        self.nodes.len() as u32 - 1
    }

    /// The entry that maps a page, and its level (0 or, for 2 MiB, 1).
    #[inline]
    pub(crate) fn lookup(&self, vpn: Vpn) -> Option<(Entry, u8)> {
        let (node, level) = self.leaf(vpn.0)?;
        let e = Entry(self.nodes[node as usize].entries[index(vpn.0, level)]);
        e.has(Entry::PRESENT).then_some((e, level))
    }

    /// The lowest node on the way to a page: level 0, or level 1 where a 2 MiB
    /// page or nothing is.
    #[inline]
    fn leaf(&self, vpn: u64) -> Option<(u32, u8)> {
        let mut node = 0u32;
        for level in [3, 2, 1] {
            let e = self.nodes[node as usize].entries[index(vpn, level)];
            if e == 0 {
                return None;
            }
            if level == 1 && e & Entry::HUGE != 0 {
                return Some((node, 1));
            }
            node = (e >> 12) as u32;
        }
        Some((node, 0))
    }

    /// Replaces the entry of a mapped page.
    #[inline]
    pub(crate) fn update(&mut self, vpn: Vpn, entry: Entry) {
        if let Some((node, level)) = self.leaf(vpn.0) {
            let at = &mut self.nodes[node as usize].entries[index(vpn.0, level)];
            debug_assert!(*at & Entry::PRESENT != 0);
            *at = entry.0;
        }
    }

    /// Where the entry of a page is stored.
    pub(crate) fn slot(&self, vpn: Vpn) -> Option<Slot> {
        let (node, level) = self.leaf(vpn.0)?;
        Some(Slot {
            frame: self.nodes[node as usize].frame,
            offset: index(vpn.0, level) as u16 * 8,
        })
    }

    /// How many nodes must be added before an entry of `level` fits.
    pub(crate) fn missing(&self, vpn: Vpn, level: u8) -> u8 {
        let mut node = 0u32;
        for l in (level + 1..=3).rev() {
            match self.nodes[node as usize].entries[index(vpn.0, l)] {
                0 => return l - level,
                e => node = (e >> 12) as u32,
            }
        }
        0
    }

    /// Is there neither a page nor a table below this 2 MiB range?
    pub(crate) fn huge_slot_free(&self, vpn: Vpn) -> bool {
        let mut node = 0u32;
        for l in [3, 2] {
            match self.nodes[node as usize].entries[index(vpn.0, l)] {
                0 => return true,
                e => node = (e >> 12) as u32,
            }
        }
        self.nodes[node as usize].entries[index(vpn.0, 1)] == 0
    }

    /// Maps a page. `frames` gives the frames of missing nodes; it must hold
    /// [`missing`](Self::missing) of them.
    pub(crate) fn map(&mut self, vpn: Vpn, level: u8, entry: Entry, frames: &mut Vec<u32>) {
        let mut node = 0u32;
        for l in (level + 1..=3).rev() {
            let i = index(vpn.0, l);
            let e = self.nodes[node as usize].entries[i];
            node = if e != 0 {
                (e >> 12) as u32
            } else {
                let frame = frames
                    .pop()
                    .expect("the caller brings the missing nodes' frames");
                let child = self.new_node(frame);
                self.put(node, i, u64::from(child) << 12 | Entry::PRESENT);
                child
            };
        }
        self.put(node, index(vpn.0, level), entry.0);
    }

    fn put(&mut self, node: u32, i: usize, value: u64) {
        let n = &mut self.nodes[node as usize];
        n.live += u16::from(n.entries[i] == 0);
        n.entries[i] = value;
    }

    /// Removes a page's entry (the whole 2 MiB page if it is one) and the nodes
    /// that become empty; their frames are added to `freed`.
    pub(crate) fn unmap(&mut self, vpn: Vpn, freed: &mut Vec<u32>) -> Option<(Entry, u8)> {
        let (entry, level) = self.lookup(vpn)?;
        let mut path = [0u32; 4];
        for l in (level..3).rev() {
            let parent = path[usize::from(l) + 1];
            let e = self.nodes[parent as usize].entries[index(vpn.0, l + 1)];
            path[usize::from(l)] = (e >> 12) as u32;
        }
        for l in level..=3 {
            let id = path[usize::from(l)];
            let node = &mut self.nodes[id as usize];
            node.entries[index(vpn.0, l)] = 0;
            node.live -= 1;
            if node.live > 0 || l == 3 {
                break;
            }
            freed.push(node.frame);
            self.spare.push(id);
        }
        Some((entry, level))
    }

    /// Replaces a 2 MiB page by 512 entries of 4 KiB for the same frames.
    pub(crate) fn split_huge(&mut self, vpn: Vpn, node_frame: u32) {
        let Some((node, 1)) = self.leaf(vpn.0) else {
            return;
        };
        let i = index(vpn.0, 1);
        let huge = Entry(self.nodes[node as usize].entries[i]);
        let flags = huge.without(Entry::HUGE).flags();
        let child = self.new_node(node_frame);
        for (k, e) in self.nodes[child as usize].entries.iter_mut().enumerate() {
            *e = Entry::new(huge.frame() + k as u32, flags).0;
        }
        self.nodes[child as usize].live = 512;
        self.nodes[node as usize].entries[i] = u64::from(child) << 12 | Entry::PRESENT;
    }

    /// Calls `f` for every entry that maps a page of `first..end`, in rising
    /// order, with the page, the entry and the level; what it returns is
    /// stored. An entry of a 2 MiB page is visited if the page overlaps.
    pub(crate) fn visit(
        &mut self,
        first: Vpn,
        end: Vpn,
        f: &mut dyn FnMut(Vpn, Entry, u8) -> Entry,
    ) {
        self.visit_node(0, 3, 0, first.0, end.0, f);
    }

    fn visit_node(
        &mut self,
        node: u32,
        level: u8,
        base: u64,
        first: u64,
        end: u64,
        f: &mut dyn FnMut(Vpn, Entry, u8) -> Entry,
    ) {
        let shift = 9 * u32::from(level);
        let low = first.saturating_sub(base) >> shift;
        for i in low as usize..512 {
            let at = base + ((i as u64) << shift);
            if at >= end {
                break;
            }
            let e = self.nodes[node as usize].entries[i];
            if e == 0 {
                continue;
            }
            if level == 0 || e & Entry::HUGE != 0 {
                self.nodes[node as usize].entries[i] = f(Vpn(at), Entry(e), level).0;
            } else {
                self.visit_node((e >> 12) as u32, level - 1, at, first, end, f);
            }
        }
    }

    /// The first mapped 4 KiB page at or after `from`, with its entry and level; a
    /// page inside a 2 MiB page is found by itself.
    pub(crate) fn next(&self, from: Vpn) -> Option<(Vpn, Entry, u8)> {
        let mut vpn = from.0;
        while vpn <= VPN_MASK {
            let (mut node, mut level) = (0u32, 3u8);
            loop {
                let e = self.nodes[node as usize].entries[index(vpn, level)];
                if e == 0 {
                    // Beyond what this empty entry would cover.
                    vpn = ((vpn >> (9 * u32::from(level))) + 1) << (9 * u32::from(level));
                    break;
                }
                if level == 0 || (level == 1 && e & Entry::HUGE != 0) {
                    return Some((Vpn(vpn), Entry(e), level));
                }
                node = (e >> 12) as u32;
                level -= 1;
            }
        }
        None
    }

    /// Frames of all nodes, the root's first.
    pub(crate) fn node_frames(&self) -> Vec<u32> {
        let mut spare = vec![false; self.nodes.len()];
        for s in &self.spare {
            spare[*s as usize] = true;
        }
        let used = self.nodes.iter().zip(&spare).filter(|(_, s)| !**s);
        used.map(|(n, _)| n.frame).collect()
    }

    /// Entry addresses that a hardware walker reads for this address.
    pub(crate) fn walk(&self, addr: VirtAddr) -> Walk {
        let vpn = addr.0 >> 12 & VPN_MASK;
        let mut walk = Walk {
            entries: [PhysAddr(0); 4],
            levels: 0,
            page: PageSize::Base,
        };
        let mut node = 0u32;
        for level in [3u8, 2, 1, 0] {
            let n = &self.nodes[node as usize];
            let i = index(vpn, level);
            let e = n.entries[i];
            if e == 0 {
                return Walk { levels: 0, ..walk };
            }
            let at = (u64::from(n.frame) << 12) + i as u64 * 8;
            walk.entries[usize::from(3 - level)] = PhysAddr(at);
            walk.levels = 4 - level;
            if level == 1 && e & Entry::HUGE != 0 {
                walk.page = PageSize::Huge;
                break;
            }
            node = (e >> 12) as u32;
        }
        walk
    }
}
