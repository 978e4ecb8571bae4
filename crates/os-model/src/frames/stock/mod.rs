//! Linux's page allocator: zones, buddy lists per migrate type, per-core lists.
//!
//! What follows the kernel (mm/page_alloc.c of 2.6.30 and 6.12): orders 0..=10,
//! last in first out, a split hands out the lower half and lists the upper,
//! freed blocks merge with buddy `pfn ^ (1 << order)`; zones DMA, DMA32 and
//! Normal with fallback downwards; fallback between migrate types takes the
//! largest block and, from half a pageblock's order up or for reclaimable
//! requests, converts the pageblock; per-core lists with the kernel's batch and
//! high mark, refilled in physical order.
//!
//! Deviations, and why:
//! * No watermarks and no RESERVE/HIGHATOMIC pageblocks: a zone is used to its
//!   last frame, because reclaim decides in another room when memory is short.
//! * Memory has no hole below 4 GiB; frames are numbered without gaps.
//! * 2.6.30 keeps one per-core list and searches it for a migrate type; here
//!   each type has its list (as 2.6.32 has), which hands out the same frames
//!   but gives back the types in turn.
//! * 6.12 puts a block whose next larger block is about to merge at a list's
//!   tail, and steals the smallest fitting block for movable requests that do
//!   not claim a pageblock; both flavours here follow 2.6.30 in this.
//! * Before a request fails, all per-core lists are drained and it is tried
//!   again, as direct reclaim does.

mod config;
mod core_lists;
mod validate;
mod zone;

use piebald_policy::contract::{
    AllocError, Broken, FrameAllocator, FrameCounters, FrameRequest, FreeError, Grant, Purpose,
};
use piebald_units::{CoreId, Order, Pfn};

use super::{
    FramesError, check_frames, check_request,
    table::{FrameTable, State},
};
pub use config::{CoreListConfig, Flavour, MigrateType, StockConfig, ZoneConfig};
use core_lists::CoreLists;
use zone::{PageBlocks, Zone};

/// The stock allocator. 9 B per frame, 1 B per 2 MiB, and list heads: 396 B per
/// zone, 36 B per order and zone for every core.
#[derive(Clone)]
pub struct Stock {
    table: FrameTable,
    blocks: PageBlocks,
    /// Rising by address; requests start at the last.
    zones: Vec<Zone>,
    /// `[zone * cores + core]`; empty if per-core lists are off.
    core_lists: Vec<CoreLists>,
    cores: usize,
    counters: FrameCounters,
}

impl Stock {
    /// A fresh machine: all memory free in the largest blocks.
    ///
    /// # Errors
    /// Names the field if `frames` or `cores` is 0 or too large.
    pub fn new(config: &StockConfig) -> Result<Self, FramesError> {
        let frames = check_frames(config.frames)?;
        if config.cores == 0 {
            return Err(FramesError {
                field: "cores",
                value: 0,
                allowed: "at least 1",
            });
        }
        let zones = zones(config, frames);
        let mut stock = Self {
            table: FrameTable::new(frames),
            blocks: PageBlocks::new(frames),
            core_lists: core_lists(config, &zones, frames),
            zones,
            cores: usize::from(config.cores),
            counters: FrameCounters::default(),
        };
        stock.lay_out(config.flavour);
        Ok(stock)
    }

    /// The order in which boot hands blocks to the lists decides which are used
    /// first: 2.6.30 adds at the head (the top block is used first), 6.12 at
    /// the tail (the bottom block first; `__free_pages_core`).
    fn lay_out(&mut self, flavour: Flavour) {
        for zone in &mut self.zones {
            let mut blocks = zone.blocks();
            if flavour == Flavour::V2_6_30 {
                blocks.reverse();
            }
            for (frame, order) in blocks {
                zone.add_fresh(&mut self.table, frame, order);
            }
        }
    }

    /// Free blocks of each order on the buddy lists, per-core lists excluded.
    pub fn free_blocks(&self) -> [u64; 11] {
        let mut out = [0; 11];
        for list in self.zones.iter().flat_map(|z| &z.lists) {
            for (n, l) in out.iter_mut().zip(list) {
                *n += u64::from(l.len());
            }
        }
        out
    }

    /// Pageblocks that changed their migrate type so far.
    pub fn pageblock_claims(&self) -> u64 {
        self.zones.iter().map(|z| z.claims).sum()
    }

    /// Gives the frames of all per-core lists back to the buddy lists.
    pub fn drain(&mut self) {
        for (i, lists) in self.core_lists.iter_mut().enumerate() {
            let zone = &mut self.zones[i / self.cores];
            lists.give_back(&mut self.table, zone, &self.blocks, u32::MAX);
        }
    }

    fn take(&mut self, order: u8, r: &FrameRequest<'_>) -> Option<u32> {
        let kind = MigrateType::of(r.purpose);
        let core = usize::from(r.core.0) % self.cores;
        let usable = match r.purpose {
            Purpose::Dma => 1,
            _ => self.zones.len(),
        };
        (0..usable).rev().find_map(|z| {
            let zone = &mut self.zones[z];
            match self.core_lists.get_mut(z * self.cores + core) {
                Some(c) if c.keeps(order) => {
                    c.take(&mut self.table, zone, &mut self.blocks, order, kind)
                }
                _ => zone.take(&mut self.table, &mut self.blocks, order, kind),
            }
        })
    }

    fn zone_of(&self, frame: u32) -> usize {
        self.zones.iter().position(|z| frame < z.end).unwrap_or(0)
    }

    /// Makes one granted block into granted single frames, so that its holder
    /// can give them back one by one (`split_page`).
    pub(super) fn split_granted(&mut self, frame: Pfn, order: Order) -> Result<(), FreeError> {
        let first = self.table.check_free(frame, order.0)?;
        for f in first..first + (1 << order.0) {
            self.table.set(f, State::Granted { order: 0 });
        }
        self.counters.grants += (1 << order.0) - 1;
        Ok(())
    }
}

/// Zones that have frames, in rising order.
fn zones(config: &StockConfig, frames: u32) -> Vec<Zone> {
    let dma = config.zones.dma_end.min(frames);
    let dma32 = config.zones.dma32_end.clamp(dma, frames);
    [(0, dma), (dma, dma32), (dma32, frames)]
        .into_iter()
        .filter(|(first, end)| first < end)
        .map(|(first, end)| Zone::new(first, end))
        .collect()
}

fn core_lists(config: &StockConfig, zones: &[Zone], memory: u32) -> Vec<CoreLists> {
    if !config.core_lists.enabled {
        return Vec::new();
    }
    let lists = &config.core_lists;
    let one = |z: &Zone| {
        let size = z.end - z.first;
        let batch = lists.batch(config.flavour, size);
        let high = lists.high(config.flavour, size, memory, config.cores);
        CoreLists::new(config.flavour, batch, high)
    };
    zones
        .iter()
        .flat_map(|z| (0..config.cores).map(move |_| one(z)))
        .collect()
}

impl FrameAllocator for Stock {
    fn alloc(&mut self, r: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        let taken = check_request(r).and_then(|()| {
            let first = self.take(r.order.0, r);
            first
                .or_else(|| {
                    self.drain();
                    self.take(r.order.0, r)
                })
                .ok_or(AllocError::OutOfMemory)
        });
        let frame = taken.inspect_err(|_| self.counters.failures += 1)?;
        self.table.set(frame, State::Granted { order: r.order.0 });
        let fallback = r.allowed.is_some();
        self.counters.grants += 1;
        self.counters.fallbacks += u64::from(fallback);
        Ok(Grant {
            frame: Pfn(u64::from(frame)),
            order: r.order,
            fallback,
        })
    }

    fn free(&mut self, frame: Pfn, order: Order, core: CoreId) -> Result<(), FreeError> {
        let f = self.table.check_free(frame, order.0)?;
        let z = self.zone_of(f);
        let core = usize::from(core.0) % self.cores;
        let zone = &mut self.zones[z];
        match self.core_lists.get_mut(z * self.cores + core) {
            Some(c) if c.keeps(order.0) => {
                c.put(&mut self.table, zone, &self.blocks, f, order.0);
            }
            _ => zone.release(&mut self.table, f, order.0, self.blocks.kind(f)),
        }
        self.counters.frees += 1;
        Ok(())
    }

    fn free_frames(&self) -> u64 {
        let buddy: u64 = self.zones.iter().map(|z| u64::from(z.free)).sum();
        let held: u64 = self.core_lists.iter().map(|c| u64::from(c.held())).sum();
        buddy + held
    }

    fn total_frames(&self) -> u64 {
        u64::from(self.table.frames())
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }

    fn validate(&self) -> Result<(), Broken> {
        validate::recount(self)
    }
}
