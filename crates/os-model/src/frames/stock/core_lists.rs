//! Per-core lists: free blocks that a core takes without the zone's lock.

use super::{
    super::table::{FrameTable, List, State},
    config::{Flavour, MigrateType, NR_TYPES},
    zone::{PageBlocks, Zone},
};

/// Orders that 6.12 keeps per core (`NR_PCP_LISTS`: 0..=3 and 2 MiB).
const ORDERS_6_12: [u8; 5] = [0, 1, 2, 3, 9];
/// 2.6.30 keeps single frames only.
const ORDERS_2_6_30: [u8; 1] = [0];

/// The lists of one core in one zone.
#[derive(Clone)]
pub(super) struct CoreLists {
    /// `[order index][migrate type]`
    lists: Vec<[List; NR_TYPES]>,
    orders: &'static [u8],
    /// Frames held.
    held: u32,
    batch: u32,
    high: u32,
    /// The list that gives back next.
    turn: usize,
}

impl CoreLists {
    pub(super) fn new(flavour: Flavour, batch: u32, high: u32) -> Self {
        let orders: &'static [u8] = match flavour {
            Flavour::V2_6_30 => &ORDERS_2_6_30,
            Flavour::V6_12 => &ORDERS_6_12,
        };
        Self {
            lists: vec![[List::EMPTY; NR_TYPES]; orders.len()],
            orders,
            held: 0,
            batch,
            high,
            turn: 0,
        }
    }

    fn index(&self, order: u8) -> Option<usize> {
        self.orders.iter().position(|o| *o == order)
    }

    pub(super) fn keeps(&self, order: u8) -> bool {
        self.index(order).is_some()
    }

    pub(super) fn held(&self) -> u32 {
        self.held
    }

    /// Takes a block, refilling a batch when the list is empty.
    pub(super) fn take(
        &mut self,
        t: &mut FrameTable,
        zone: &mut Zone,
        blocks: &mut PageBlocks,
        order: u8,
        kind: MigrateType,
    ) -> Option<u32> {
        let i = self.index(order)?;
        if self.lists[i][kind as usize].len() == 0 {
            self.refill(t, zone, blocks, i, kind);
        }
        let list = &mut self.lists[i][kind as usize];
        let frame = list.first()?;
        t.unlink(list, frame);
        self.held -= 1 << order;
        Some(frame)
    }

    /// Blocks come in the order in which the buddy lists give them, so faults
    /// on a fresh machine get rising frames (`rmqueue_bulk`).
    fn refill(
        &mut self,
        t: &mut FrameTable,
        zone: &mut Zone,
        blocks: &mut PageBlocks,
        index: usize,
        kind: MigrateType,
    ) {
        let order = self.orders[index];
        for _ in 0..self.blocks_per_batch(order) {
            let Some(frame) = zone.take(t, blocks, order, kind) else {
                break;
            };
            let kind8 = kind as u8;
            t.set(frame, State::Cached { order, kind: kind8 });
            t.push_back(&mut self.lists[index][kind as usize], frame);
            self.held += 1 << order;
        }
    }

    /// 6.12 moves `batch >> order` blocks, at least 2 (`nr_pcp_alloc`).
    fn blocks_per_batch(&self, order: u8) -> u32 {
        match order {
            0 => self.batch,
            o => (self.batch >> o).max(2),
        }
    }

    /// Puts a block at the head of its list and gives a batch back to the buddy
    /// lists when the core holds too much.
    pub(super) fn put(
        &mut self,
        t: &mut FrameTable,
        zone: &mut Zone,
        blocks: &PageBlocks,
        frame: u32,
        order: u8,
    ) {
        let Some(i) = self.index(order) else { return };
        let kind = blocks.kind(frame);
        t.set(frame, State::Cached { order, kind });
        t.push_front(&mut self.lists[i][usize::from(kind)], frame);
        self.held += 1 << order;
        if self.held >= self.high {
            self.give_back(t, zone, blocks, self.batch);
        }
    }

    /// Returns `frames` frames, the coldest block of each list in turn.
    pub(super) fn give_back(
        &mut self,
        t: &mut FrameTable,
        zone: &mut Zone,
        blocks: &PageBlocks,
        frames: u32,
    ) {
        let nr_lists = self.lists.len() * NR_TYPES;
        let (mut left, mut empty) = (frames, 0);
        while left > 0 && empty < nr_lists {
            self.turn = (self.turn + 1) % nr_lists;
            let (i, kind) = (self.turn / NR_TYPES, self.turn % NR_TYPES);
            let list = &mut self.lists[i][kind];
            let Some(frame) = list.last() else {
                empty += 1;
                continue;
            };
            empty = 0;
            t.unlink(list, frame);
            let order = self.orders[i];
            zone.release(t, frame, order, blocks.kind(frame));
            self.held -= 1 << order;
            left = left.saturating_sub(1 << order);
        }
    }

    /// All lists with the state that their blocks must have, for recounts.
    pub(super) fn lists(&self) -> impl Iterator<Item = (&List, State)> {
        self.lists
            .iter()
            .zip(self.orders)
            .flat_map(|(kinds, order)| {
                kinds.iter().enumerate().map(|(kind, list)| {
                    let kind = kind as u8;
                    (
                        list,
                        State::Cached {
                            order: *order,
                            kind,
                        },
                    )
                })
            })
    }
}
