//! What the stock allocator can be set to.

use piebald_policy::contract::Purpose;

/// log2 of the frames in a pageblock: 2 MiB on x86-64.
pub(super) const PAGEBLOCK_ORDER: u8 = 9;
/// Largest block order, inclusive.
pub(super) const MAX_ORDER: u8 = 10;
/// Number of block orders.
pub(super) const NR_ORDERS: usize = MAX_ORDER as usize + 1;
/// Number of migrate types that are modelled.
pub(super) const NR_TYPES: usize = 3;

/// Whose rules the allocator follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Linux 2.6.30, the kernel of the SRM-buffer and (2.6.32) HVR papers: only
    /// single frames on per-core lists, fresh memory from the top block down.
    #[default]
    V2_6_30,
    /// Linux 6.12: orders 0-3 and 2 MiB on per-core lists, fresh memory from
    /// the bottom block up.
    V6_12,
}

/// Whether the content of a block could move or be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MigrateType {
    /// Kernel data.
    Unmovable = 0,
    /// Slab caches of inodes and directory entries.
    Reclaimable = 1,
    /// User pages and the page cache.
    Movable = 2,
}

impl MigrateType {
    /// The type of a request's blocks.
    pub const fn of(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Anon | Purpose::File => Self::Movable,
            Purpose::Kernel | Purpose::Dma => Self::Unmovable,
            Purpose::Reclaimable => Self::Reclaimable,
        }
    }

    /// Where to steal when the own lists are empty, in this order
    /// (`fallbacks[]`, mm/page_alloc.c).
    pub(super) const fn fallbacks(self) -> [u8; 2] {
        match self {
            Self::Unmovable => [1, 2],
            Self::Reclaimable => [0, 2],
            Self::Movable => [1, 0],
        }
    }
}

/// Zone borders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneConfig {
    /// First frame that is not in the DMA zone: 16 MiB.
    pub dma_end: u32,
    /// First frame that is not in the DMA32 zone: 4 GiB.
    pub dma32_end: u32,
}

impl Default for ZoneConfig {
    fn default() -> Self {
        Self {
            dma_end: 1 << 12,
            dma32_end: 1 << 20,
        }
    }
}

/// Size of the per-core lists of one zone, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreListConfig {
    /// Frames moved at once between per-core and buddy lists. `None`: the
    /// kernel's `zone_batchsize` for the zone's size. 2.6.30:
    /// `min(pages/1024, 128)/4`; 6.12: `min(pages/1024, 256)/4`; both rounded
    /// to 2^n - 1 because powers of two were found to align colours.
    pub batch: Option<u32>,
    /// A core that holds this many frames gives a batch back. `None`: 6 batches
    /// (2.6.30, `setup_pageset`); 6.12: the low watermark divided by the cores,
    /// at least 4 batches (`zone_highsize`).
    pub high: Option<u32>,
    /// False: no per-core lists; every request goes to the buddy lists.
    pub enabled: bool,
}

impl Default for CoreListConfig {
    fn default() -> Self {
        Self {
            batch: None,
            high: None,
            enabled: true,
        }
    }
}

impl CoreListConfig {
    /// The batch of a zone of `frames` frames.
    pub(super) fn batch(&self, flavour: Flavour, frames: u32) -> u32 {
        let cap = match flavour {
            Flavour::V2_6_30 => 128,
            Flavour::V6_12 => 256,
        };
        let quarter = ((frames / 1024).min(cap) / 4).max(1);
        let rounded = 1u32 << (quarter + quarter / 2).ilog2();
        self.batch.unwrap_or(rounded - 1).max(1)
    }

    /// The high mark of a zone of `frames` frames out of `memory`.
    pub(super) fn high(&self, flavour: Flavour, frames: u32, memory: u32, cores: u16) -> u32 {
        let batch = self.batch(flavour, frames);
        self.high.unwrap_or(match flavour {
            Flavour::V2_6_30 => 6 * batch,
            Flavour::V6_12 => {
                let low = low_watermark(frames, memory);
                (low / u32::from(cores.max(1))).max(4 * batch)
            }
        })
    }
}

/// Low watermark of a zone in frames: 5/4 of its share of `min_free_kbytes`,
/// which is the square root of 16 times the memory in KiB, 128 to 65536
/// (facts of 2.6.11, unchanged in 6.12 but for the upper limit).
fn low_watermark(frames: u32, memory: u32) -> u32 {
    let kib = u64::from(memory) * 4;
    let min_kib = (kib * 16).isqrt().clamp(128, 65536);
    let share = min_kib / 4 * u64::from(frames) / u64::from(memory.max(1));
    (share * 5 / 4) as u32
}

/// Configuration of the stock allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockConfig {
    /// Memory in 4 KiB frames, numbered from 0; 1 to 2^32 - 2.
    pub frames: u64,
    /// Cores that have per-core lists. Requests of a core beyond wrap around.
    pub cores: u16,
    /// Whose rules.
    pub flavour: Flavour,
    /// Zone borders.
    pub zones: ZoneConfig,
    /// Per-core lists.
    pub core_lists: CoreListConfig,
}

impl StockConfig {
    /// The kernel's defaults for that much memory and that many cores.
    pub fn new(frames: u64, cores: u16, flavour: Flavour) -> Self {
        Self {
            frames,
            cores,
            flavour,
            zones: ZoneConfig::default(),
            core_lists: CoreListConfig::default(),
        }
    }
}
