//! One zone: buddy lists per order and migrate type.

use super::{
    super::table::{FrameTable, List, State},
    config::{MAX_ORDER, MigrateType, NR_ORDERS, NR_TYPES, PAGEBLOCK_ORDER},
};

/// Migrate type of every 2 MiB pageblock, shared by all zones.
#[derive(Clone)]
pub(super) struct PageBlocks(Vec<u8>);

impl PageBlocks {
    /// All memory starts movable, as after boot.
    pub(super) fn new(frames: u32) -> Self {
        let blocks = (frames as usize >> PAGEBLOCK_ORDER) + 1;
        Self(vec![MigrateType::Movable as u8; blocks])
    }

    pub(super) fn kind(&self, frame: u32) -> u8 {
        self.0[frame as usize >> PAGEBLOCK_ORDER]
    }

    fn claim(&mut self, frame: u32, order: u8, kind: u8) {
        let first = frame as usize >> PAGEBLOCK_ORDER;
        let n = 1usize << order.saturating_sub(PAGEBLOCK_ORDER);
        for k in self.0.iter_mut().skip(first).take(n) {
            *k = kind;
        }
    }
}

/// A range of frames with its own free lists.
#[derive(Clone)]
pub(super) struct Zone {
    pub(super) first: u32,
    /// First frame beyond.
    pub(super) end: u32,
    pub(super) lists: [[List; NR_ORDERS]; NR_TYPES],
    /// Frames on the buddy lists.
    pub(super) free: u32,
    /// Pageblocks taken over by another migrate type, for reports.
    pub(super) claims: u64,
}

impl Zone {
    /// An empty zone; the caller lists its blocks with [`Zone::release`].
    pub(super) fn new(first: u32, end: u32) -> Self {
        Self {
            first,
            end,
            lists: [[List::EMPTY; NR_ORDERS]; NR_TYPES],
            free: 0,
            claims: 0,
        }
    }

    /// The largest aligned blocks that make up the zone, in rising order.
    pub(super) fn blocks(&self) -> Vec<(u32, u8)> {
        let (mut at, mut out) = (self.first, Vec::new());
        while at < self.end {
            let fits = (self.end - at).ilog2() as u8;
            let aligned = at.trailing_zeros().min(u32::from(MAX_ORDER)) as u8;
            let order = fits.min(aligned).min(MAX_ORDER);
            out.push((at, order));
            at += 1 << order;
        }
        out
    }

    fn list(&mut self, kind: u8, order: u8) -> &mut List {
        &mut self.lists[usize::from(kind)][usize::from(order)]
    }

    fn add(&mut self, t: &mut FrameTable, frame: u32, order: u8, kind: u8) {
        t.set(frame, State::Free { order, kind });
        t.push_front(self.list(kind, order), frame);
    }

    fn remove(&mut self, t: &mut FrameTable, frame: u32, order: u8, kind: u8) {
        t.unlink(self.list(kind, order), frame);
    }

    /// Lists a block at the tail: used once, to lay out fresh memory.
    pub(super) fn add_fresh(&mut self, t: &mut FrameTable, frame: u32, order: u8) {
        let kind = MigrateType::Movable as u8;
        t.set(frame, State::Free { order, kind });
        t.push_back(self.list(kind, order), frame);
        self.free += 1 << order;
    }

    /// Takes a block of exactly this order; its state is left to the caller.
    pub(super) fn take(
        &mut self,
        t: &mut FrameTable,
        blocks: &mut PageBlocks,
        order: u8,
        kind: MigrateType,
    ) -> Option<u32> {
        let frame = self
            .take_own(t, order, kind)
            .or_else(|| self.steal(t, blocks, order, kind))?;
        self.free -= 1 << order;
        Some(frame)
    }

    fn take_own(&mut self, t: &mut FrameTable, order: u8, kind: MigrateType) -> Option<u32> {
        let kind = kind as u8;
        let (frame, found) = (order..=MAX_ORDER)
            .find_map(|o| Some((self.lists[usize::from(kind)][usize::from(o)].first()?, o)))?;
        self.remove(t, frame, found, kind);
        self.split(t, frame, found, order, kind);
        Some(frame)
    }

    /// Halves a block down to `order`; the lower half stays, the upper ones are
    /// listed.
    fn split(&mut self, t: &mut FrameTable, frame: u32, found: u8, order: u8, kind: u8) {
        t.set(frame, State::Inner);
        for o in (order..found).rev() {
            self.add(t, frame + (1 << o), o, kind);
        }
    }

    /// Takes from another migrate type: the largest block, and with it the
    /// pageblock's free blocks when that pays (`__rmqueue_fallback`).
    fn steal(
        &mut self,
        t: &mut FrameTable,
        blocks: &mut PageBlocks,
        order: u8,
        kind: MigrateType,
    ) -> Option<u32> {
        let victim = |o: u8| {
            let lists = &self.lists;
            kind.fallbacks()
                .into_iter()
                .find_map(move |k| Some((lists[usize::from(k)][usize::from(o)].first()?, o, k)))
        };
        let (frame, found, from) = (order..=MAX_ORDER).rev().find_map(victim)?;
        self.remove(t, frame, found, from);
        t.set(frame, State::Inner);
        let mut rest = from;
        if found >= PAGEBLOCK_ORDER / 2 || kind == MigrateType::Reclaimable {
            rest = kind as u8;
            self.convert(t, blocks, frame, found, kind as u8);
        }
        self.split(t, frame, found, order, rest);
        Some(frame)
    }

    /// Moves the free blocks of the pageblock around a taken block to `kind`,
    /// and claims the pageblock when at least half of it is free.
    fn convert(
        &mut self,
        t: &mut FrameTable,
        blocks: &mut PageBlocks,
        frame: u32,
        order: u8,
        kind: u8,
    ) {
        if order >= PAGEBLOCK_ORDER {
            blocks.claim(frame, order, kind);
            self.claims += 1;
            return;
        }
        let size = 1u32 << PAGEBLOCK_ORDER;
        let start = (frame & !(size - 1)).max(self.first);
        let end = ((frame & !(size - 1)) + size).min(self.end);
        let (mut at, mut free) = (start, 1u32 << order);
        while at < end {
            let step = match t.state(at) {
                State::Free { order: o, kind: k } => {
                    self.remove(t, at, o, k);
                    self.add(t, at, o, kind);
                    free += 1 << o;
                    1 << o
                }
                other => 1 << other.order().unwrap_or(0),
            };
            at += step;
        }
        if free >= size / 2 {
            blocks.claim(frame, 0, kind);
            self.claims += 1;
        }
    }

    /// Takes a block back and merges it with its free buddies; the merged block
    /// goes to the head of its list.
    pub(super) fn release(&mut self, t: &mut FrameTable, frame: u32, order: u8, kind: u8) {
        let (mut at, mut o) = (frame, order);
        self.free += 1 << order;
        t.set(at, State::Inner);
        while o < MAX_ORDER {
            let Some(other) = self.free_buddy(t, at, o) else {
                break;
            };
            let (buddy, its_kind) = other;
            self.remove(t, buddy, o, its_kind);
            t.set(buddy, State::Inner);
            at = at.min(buddy);
            o += 1;
        }
        self.add(t, at, o, kind);
    }

    /// The buddy of a block, with its list's type, if it is free as a whole.
    pub(super) fn free_buddy(&self, t: &FrameTable, frame: u32, order: u8) -> Option<(u32, u8)> {
        let buddy = frame ^ 1 << order;
        let end = buddy.checked_add(1 << order)?;
        if buddy < self.first || end > self.end {
            return None;
        }
        match t.state(buddy) {
            State::Free { order: o, kind } if o == order => Some((buddy, kind)),
            _ => None,
        }
    }
}
