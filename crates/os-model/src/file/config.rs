//! Configuration of the file side.

use piebald_units::{Lba, Picos};
use thiserror::Error;

use super::readahead::ReadaheadConfig;
use crate::io::{IoConfig, IoConfigError};

const US: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000_000;

/// What processors need for a call. Zero leaves the time of the disk alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCost {
    /// Per call.
    pub call: Picos,
    /// Per page: look-up and copy to the program.
    pub page: Picos,
}

impl CpuCost {
    /// Pentium 4 at 1.7 GHz with PC133 memory, DULO's machine: 1 us per call, and
    /// 4 KiB copied at about 1 GB/s. \[M\]
    pub const P4_1700: Self = Self {
        call: Picos(US),
        page: Picos(4 * US),
    };
}

/// When reclaim begins and ends, in free pages. Whether the background (kswapd) or
/// whoever asks for a page reclaims is the same here, since it takes no time; so
/// Linux's lowest mark, below which the latter begins, is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// At or below it reclaim begins.
    pub low: u32,
    /// Where it stops.
    pub high: u32,
}

impl Watermarks {
    /// 2.6.11's marks for so many pages of memory: with `min` the square root of 16
    /// times the memory in KiB, 128 to 65536 KiB, low is 5/4 and high 6/4 of it.
    pub fn linux_2_6_11(pages: u64) -> Self {
        let lowmem_kib = pages.saturating_mul(4);
        let min_kib = lowmem_kib.saturating_mul(16).isqrt().clamp(128, 65_536);
        let min = (min_kib / 4) as u32;
        Self {
            low: min / 4 * 5,
            high: min / 4 * 6,
        }
    }
}

/// How reclaim has a dirty page of a file written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimWrites {
    /// The page alone, as `pageout` did until 3.2.
    #[default]
    Single,
    /// With the dirty pages around it, which follow one another in the file and on
    /// the disk: reclaim leaves the writing to the flusher, which goes by files.
    Run,
}

/// When dirty pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBack {
    /// How victims are written.
    pub victims: VictimWrites,
    /// Above this part of memory writing starts in the background: 100 (10 %).
    pub background_permille: u32,
    /// Above it writers wait: 400 (40 %).
    pub foreground_permille: u32,
    /// Age at which a file's dirty pages are written: 30 s.
    pub expire: Picos,
    /// How often ages are looked at: every 5 s.
    pub wake: Picos,
}

impl WriteBack {
    /// 2.6.11.
    pub const LINUX_2_6_11: Self = Self {
        victims: VictimWrites::Single,
        background_permille: 100,
        foreground_permille: 400,
        expire: Picos(30 * SECOND),
        wake: Picos(5 * SECOND),
    };

    /// A kernel of today: the same thresholds by default, but reclaim does not write
    /// pages of files by itself.
    pub const LINUX_6: Self = Self {
        victims: VictimWrites::Run,
        ..Self::LINUX_2_6_11
    };
}

/// The swap area, on the same disk as the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapArea {
    /// First sector.
    pub start: Lba,
    /// Slots of a page each, at least 2: the first is the area's header.
    pub slots: u32,
    /// log2 of the slots that are read together: 3.
    pub page_cluster: u32,
    /// Slots handed out in a row before a new empty run is looked for
    /// (`SWAPFILE_CLUSTER`): 256.
    pub cluster_slots: u32,
}

impl SwapArea {
    /// With the numbers of 2.6.11.
    pub const fn new(start: Lba, slots: u32) -> Self {
        Self {
            start,
            slots,
            page_cluster: 3,
            cluster_slots: 256,
        }
    }
}

/// Configuration of a [`FileHost`](super::FileHost).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileConfig {
    /// Readahead.
    pub readahead: ReadaheadConfig,
    /// The request queue.
    pub io: IoConfig,
    /// Processor time.
    pub cpu: CpuCost,
    /// `None`: evict exactly what is needed, as a cache simulator does.
    pub watermarks: Option<Watermarks>,
    /// Write-back.
    pub write_back: WriteBack,
    /// Swap area. Without one, anonymous pages stay in memory.
    pub swap: Option<SwapArea>,
    /// Pages that the search for victims looks at and writes at a time
    /// (`SWAP_CLUSTER_MAX`): 32.
    pub reclaim_batch: u32,
}

impl FileConfig {
    /// A plain cache simulation: no readahead, no scheduler, exact memory.
    pub const fn plain() -> Self {
        Self {
            readahead: ReadaheadConfig::none(),
            io: IoConfig::noop(),
            cpu: CpuCost {
                call: Picos(0),
                page: Picos(0),
            },
            watermarks: None,
            write_back: WriteBack::LINUX_2_6_11,
            swap: None,
            reclaim_batch: 32,
        }
    }

    /// The simulator of the DULO paper (section 4.1): Linux readahead in the form
    /// that its traces were simulated with before, and the deadline scheduler.
    pub const fn dulo_simulation() -> Self {
        Self {
            readahead: ReadaheadConfig::linux_2_4(),
            io: IoConfig {
                // Clusters of at most 32 pages.
                max_sectors: 256,
                ..IoConfig::deadline_2_6_11()
            },
            ..Self::plain()
        }
    }

    /// The kernel of the DULO paper's measurements (section 4.2).
    pub const fn linux_2_6_11() -> Self {
        Self {
            readahead: ReadaheadConfig::linux_2_6_11(),
            io: IoConfig::anticipatory_2_6_11(),
            ..Self::plain()
        }
    }

    /// The kernel of Rainbow's and SRM's time.
    pub const fn linux_2_6_30() -> Self {
        Self {
            readahead: ReadaheadConfig::linux_2_6_30(),
            io: IoConfig::deadline_2_6_30(),
            ..Self::plain()
        }
    }

    /// A kernel of today, without large folios.
    pub const fn linux_6() -> Self {
        Self {
            readahead: ReadaheadConfig::linux_6(),
            io: IoConfig::mq_deadline(),
            write_back: WriteBack::LINUX_6,
            ..Self::plain()
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), FileConfigError> {
        self.io.check()?;
        let within = |field, value: u64, low, high| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(FileConfigError::Range {
                field,
                value,
                low,
                high,
            }),
        };
        let wb = self.write_back;
        within(
            "write_back.foreground_permille",
            wb.foreground_permille.into(),
            1,
            1000,
        )?;
        let foreground = wb.foreground_permille.into();
        within(
            "write_back.background_permille",
            wb.background_permille.into(),
            0,
            foreground,
        )?;
        within("write_back.wake", wb.wake.0, 1, u64::MAX)?;
        within("reclaim_batch", self.reclaim_batch.into(), 1, 1 << 20)?;
        within(
            "readahead.max_pages",
            self.readahead.max_pages.into(),
            1,
            1 << 20,
        )?;
        let max = self.readahead.max_pages.into();
        within(
            "readahead.min_pages",
            self.readahead.min_pages.into(),
            0,
            max,
        )?;
        if let Some(swap) = self.swap {
            within("swap.slots", swap.slots.into(), 2, 1 << 31)?;
            within("swap.page_cluster", swap.page_cluster.into(), 0, 16)?;
            within("swap.cluster_slots", swap.cluster_slots.into(), 1, 1 << 31)?;
        }
        if let Some(w) = self.watermarks {
            within("watermarks.low", w.low.into(), 0, w.high.into())?;
        }
        Ok(())
    }
}

/// A field that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FileConfigError {
    /// Of the file side.
    #[error("file side: {field} is {value}, must be {low} to {high}")]
    Range {
        /// Its name.
        field: &'static str,
        /// Its value.
        value: u64,
        /// Smallest value allowed.
        low: u64,
        /// Largest value allowed.
        high: u64,
    },
    /// Of the queue.
    #[error(transparent)]
    Io(#[from] IoConfigError),
}
