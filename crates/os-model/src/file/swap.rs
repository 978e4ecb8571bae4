//! Slots of the swap area.
//!
//! A page that leaves memory gets the next slot of the present cluster, so that the
//! order of reclaim becomes the order on the disk. After 256 slots an empty run of
//! 256 is looked for from the lowest slot that may be free; without one, the first
//! free slot is taken. A page keeps its slot while it is in memory.

use std::ops::Range;

use piebald_units::{Lba, block::SECTORS_SHIFT};

use super::{config::SwapArea, key::Key, table::FastMap};

/// Which page each slot holds.
#[derive(Clone, Debug)]
pub(super) struct SwapMap {
    area: SwapArea,
    owners: Vec<Option<Key>>,
    slots: FastMap<Key, u32>,
    /// Below it no slot is free.
    lowest: u32,
    cluster_next: u32,
    cluster_left: u32,
}

/// Slot 0 is the header of the area.
const HEADER: u32 = 1;

impl SwapMap {
    pub fn new(area: SwapArea) -> Self {
        Self {
            area,
            owners: vec![None; area.slots as usize],
            slots: FastMap::default(),
            lowest: HEADER,
            cluster_next: HEADER,
            cluster_left: 0,
        }
    }

    pub fn slot_of(&self, key: Key) -> Option<u32> {
        self.slots.get(&key).copied()
    }

    pub fn lba(&self, slot: u32) -> Lba {
        let sectors = u64::from(slot) << SECTORS_SHIFT;
        Lba(self.area.start.0.saturating_add(sectors))
    }

    fn is_free(&self, slot: u32) -> bool {
        self.owners.get(slot as usize) == Some(&None)
    }

    /// More than half of the area is in use (`vm_swap_full`).
    pub fn half_full(&self) -> bool {
        self.slots.len() * 2 > self.owners.len()
    }

    /// The page has a slot or can have one.
    pub fn has_place(&self, key: Key) -> bool {
        self.lowest < self.area.slots || self.slots.contains_key(&key)
    }

    /// Gives a page a slot; `None` if the area is full.
    pub fn alloc(&mut self, key: Key) -> Option<u32> {
        let slot = self.choose()?;
        self.owners[slot as usize] = Some(key);
        self.slots.insert(key, slot);
        while self.lowest < self.area.slots && !self.is_free(self.lowest) {
            self.lowest += 1;
        }
        Some(slot)
    }

    fn choose(&mut self) -> Option<u32> {
        if self.lowest >= self.area.slots {
            return None;
        }
        if self.cluster_left == 0 {
            self.cluster_left = self.area.cluster_slots;
            self.cluster_next = self.empty_run().unwrap_or(self.lowest);
        }
        self.cluster_left -= 1;
        if !self.is_free(self.cluster_next) {
            self.cluster_next = self.lowest;
        }
        let slot = self.cluster_next;
        self.cluster_next += 1;
        Some(slot)
    }

    /// The first run of free slots that is a cluster long.
    fn empty_run(&self) -> Option<u32> {
        let (mut start, mut len) = (self.lowest, 0);
        for slot in self.lowest..self.area.slots {
            if !self.is_free(slot) {
                (start, len) = (slot + 1, 0);
                continue;
            }
            len += 1;
            if len == self.area.cluster_slots {
                return Some(start);
            }
        }
        None
    }

    /// The page needs its slot no more.
    pub fn release(&mut self, key: Key) {
        if let Some(slot) = self.slots.remove(&key) {
            self.owners[slot as usize] = None;
            self.lowest = self.lowest.min(slot);
        }
    }

    /// The pages that are read together with that of `slot`: its aligned group up to
    /// the first free slot, with their slots.
    pub fn group(&self, slot: u32) -> Vec<(u32, Key)> {
        let size = 1u32 << self.area.page_cluster;
        let first = slot / size * size;
        let slots: Range<u32> = first.max(HEADER)..first.saturating_add(size);
        let owner = |s: u32| self.owners.get(s as usize).copied().flatten();
        slots.map_while(|s| owner(s).map(|key| (s, key))).collect()
    }

    /// Every page with a slot.
    pub fn owners(&self) -> impl Iterator<Item = Key> {
        self.owners.iter().copied().flatten()
    }

    pub fn used(&self) -> u32 {
        self.slots.len() as u32
    }

    pub fn validate(&self) -> Result<(), &'static str> {
        let named =
            self.owners.iter().enumerate().all(|(slot, owner)| {
                owner.is_none_or(|key| self.slot_of(key) == Some(slot as u32))
            });
        if !named || self.owners().count() != self.slots.len() {
            return Err("every slot in use belongs to one page");
        }
        let below = (HEADER..self.lowest).all(|slot| !self.is_free(slot));
        below
            .then_some(())
            .ok_or("no slot below the lowest free one is free")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::layout::FileIndex;

    fn key(n: u64) -> Key {
        Key::file(FileIndex(0), n)
    }

    fn map(slots: u32, cluster_slots: u32) -> SwapMap {
        SwapMap::new(SwapArea {
            cluster_slots,
            ..SwapArea::new(Lba(800), slots)
        })
    }

    #[test]
    fn slots_follow_one_another_and_clusters_look_for_empty_runs() {
        let mut m = map(64, 4);
        let slots: Vec<_> = (0..10).map(|n| m.alloc(key(n)).unwrap()).collect();
        assert_eq!(slots, (1..11).collect::<Vec<_>>());
        // Holes of 1 and 2 slots: the present cluster (9..13) goes on, then a run of
        // four is looked for behind the holes.
        for n in [1, 4, 5] {
            m.release(key(n));
        }
        let slots: Vec<_> = (20..26).map(|n| m.alloc(key(n)).unwrap()).collect();
        assert_eq!(slots, [11, 12, 13, 14, 15, 16]);
        m.validate().unwrap();
    }

    #[test]
    fn without_an_empty_run_the_first_free_slot_is_taken_until_the_area_is_full() {
        let mut m = map(9, 4);
        (0..8).for_each(|n| assert!(m.alloc(key(n)).is_some()));
        assert_eq!(m.alloc(key(9)), None);
        m.release(key(6));
        m.release(key(2));
        assert_eq!(m.alloc(key(10)), Some(3));
        assert_eq!(m.alloc(key(11)), Some(7));
        assert_eq!(m.alloc(key(12)), None);
        m.validate().unwrap();
    }

    #[test]
    fn a_group_is_aligned_and_ends_at_a_free_slot() {
        let mut m = map(64, 256);
        (0..20).for_each(|n| assert!(m.alloc(key(n)).is_some()));
        let slots = |m: &SwapMap, slot| m.group(slot).iter().map(|g| g.0).collect::<Vec<_>>();
        assert_eq!(
            slots(&m, 3),
            (1..8).collect::<Vec<_>>(),
            "slot 0 is the header"
        );
        assert_eq!(slots(&m, 15), (8..16).collect::<Vec<_>>());
        assert_eq!(slots(&m, 17), (16..21).collect::<Vec<_>>());
        m.release(key(9));
        assert_eq!(slots(&m, 15), [8, 9], "even before the slot that is wanted");
        assert_eq!(m.lba(2), Lba(816));
    }
}
