//! Bin hopping: successive faults of a task get successive page colours.
//!
//! Kessler and Hill (ACM TOCS 10(4), 1992, section 3.2): a *bin* is a page
//! colour; each address space cycles through the bins, so pages that are first
//! touched one after another never meet in a cache set. Here each task has its
//! own cycle, which starts at a place that depends on its number so that tasks
//! do not march in step.
//!
//! Bins are fed from a buddy allocator without per-core lists: a block that
//! covers all bins is split and one frame goes to each. A bin that cannot be
//! fed is skipped: the next one that has a frame serves, counted as a fallback.
//! Requests of other purposes than user and file pages, and larger blocks, go
//! to the buddy allocator directly; when it has none, the bins are emptied into
//! it first. 14 B per frame.

use std::collections::HashMap;

use piebald_policy::contract::{
    AllocError, Asker, Broken, FrameAllocator, FrameCounters, FrameRequest, FreeError, Grant,
    Purpose,
};
use piebald_units::{CoreId, Order, Pfn};

use super::{
    CoreListConfig, Flavour, FramesError, Stock, StockConfig, check_request,
    table::{FrameTable, List, State},
};

/// Configuration of bin hopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinHoppingConfig {
    /// Memory in 4 KiB frames.
    pub frames: u64,
    /// Number of bins: the page colours of the cache, a power of two, 1 to
    /// 1024.
    pub bins: u16,
    /// Lowest bit of the frame number that selects the bin. Bins must lie in
    /// the low 10 bits: `shift + log2(bins)` is at most 10.
    pub shift: u8,
}

/// The bin-hopping allocator.
#[derive(Clone)]
pub struct BinHopping {
    buddy: Stock,
    /// Links and states of the frames that lie in bins; [`State::Cached`] marks
    /// them.
    table: FrameTable,
    bins: Vec<List>,
    shift: u8,
    /// Next bin of each task.
    next: HashMap<u32, u16>,
    in_bins: u64,
    counters: FrameCounters,
}

const IN_BIN: State = State::Cached { order: 0, kind: 0 };

impl BinHopping {
    /// All memory free.
    ///
    /// # Errors
    /// Names the field that is out of range.
    pub fn new(config: &BinHoppingConfig) -> Result<Self, FramesError> {
        let bad = |field, value, allowed| {
            Err(FramesError {
                field,
                value,
                allowed,
            })
        };
        if !config.bins.is_power_of_two() || config.bins > 1024 {
            return bad("bins", u64::from(config.bins), "a power of two, 1 to 1024");
        }
        if u32::from(config.shift) + config.bins.ilog2() > 10 {
            return bad("shift", u64::from(config.shift), "at most 10 - log2(bins)");
        }
        let core_lists = CoreListConfig {
            enabled: false,
            ..CoreListConfig::default()
        };
        let stock = StockConfig {
            core_lists,
            ..StockConfig::new(config.frames, 1, Flavour::V2_6_30)
        };
        let buddy = Stock::new(&stock)?;
        Ok(Self {
            table: FrameTable::new(buddy.total_frames() as u32),
            buddy,
            bins: vec![List::EMPTY; usize::from(config.bins)],
            shift: config.shift,
            next: HashMap::new(),
            in_bins: 0,
            counters: FrameCounters::default(),
        })
    }

    fn bin_of(&self, frame: u32) -> usize {
        (frame >> self.shift) as usize & (self.bins.len() - 1)
    }

    /// The next bin of the asker's cycle.
    fn hop(&mut self, asker: Asker) -> usize {
        let (Asker::Task(t) | Asker::File(t, _)) = asker else {
            return 0;
        };
        let n = self.bins.len() as u32;
        // An odd multiplier spreads the starting points over all bins.
        let start = t.0.wrapping_mul(0x9e37_79b1) >> 8 & (n - 1);
        let next = self.next.entry(t.0).or_insert(start as u16);
        let bin = usize::from(*next);
        *next = ((bin + 1) % n as usize) as u16;
        bin
    }

    /// Splits a block that covers all bins, or, when there is none, any smaller
    /// one; false if no memory is left.
    fn feed(&mut self, r: &FrameRequest<'_>) -> bool {
        let all = self.shift + self.bins.len().ilog2() as u8;
        let block = (0..=all).rev().find_map(|order| {
            let request = FrameRequest {
                order: Order(order),
                allowed: None,
                ..*r
            };
            self.buddy.alloc(&request).ok()
        });
        let Some(block) = block else { return false };
        let split = self.buddy.split_granted(block.frame, block.order);
        debug_assert_eq!(split, Ok(()));
        let first = block.frame.0 as u32;
        for f in first..first + (1 << block.order.0) {
            self.put(f);
        }
        true
    }

    /// Frames are used in rising order within a block.
    fn put(&mut self, frame: u32) {
        let bin = self.bin_of(frame);
        self.table.set(frame, IN_BIN);
        self.table.push_back(&mut self.bins[bin], frame);
        self.in_bins += 1;
    }

    fn pop(&mut self, bin: usize) -> Option<u32> {
        let frame = self.bins[bin].first()?;
        self.table.unlink(&mut self.bins[bin], frame);
        self.table.set(frame, State::Inner);
        self.in_bins -= 1;
        Some(frame)
    }

    /// A frame of `bin`, or else of the next bin that has one.
    fn take(&mut self, bin: usize, r: &FrameRequest<'_>) -> Option<(u32, bool)> {
        while self.bins[bin].len() == 0 && self.feed(r) {}
        let n = self.bins.len();
        (0..n).find_map(|i| Some((self.pop((bin + i) % n)?, i > 0)))
    }

    /// Gives all frames in bins back to the buddy allocator.
    fn empty_bins(&mut self) {
        for bin in 0..self.bins.len() {
            while let Some(frame) = self.pop(bin) {
                let freed = self.buddy.free(Pfn(u64::from(frame)), Order(0), CoreId(0));
                debug_assert_eq!(freed, Ok(()));
            }
        }
    }

    fn direct(&mut self, r: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        let r = FrameRequest {
            allowed: None,
            ..*r
        };
        self.buddy.alloc(&r).or_else(|_| {
            self.empty_bins();
            self.buddy.alloc(&r)
        })
    }

    fn serve(&mut self, r: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        check_request(r)?;
        let user = matches!(r.purpose, Purpose::Anon | Purpose::File);
        if !user || r.order.0 > 0 {
            return self.direct(r);
        }
        let bin = self.hop(r.asker);
        let (frame, fallback) = self.take(bin, r).ok_or(AllocError::OutOfMemory)?;
        Ok(Grant {
            frame: Pfn(u64::from(frame)),
            order: Order(0),
            fallback,
        })
    }
}

impl FrameAllocator for BinHopping {
    fn alloc(&mut self, r: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        let mut grant = self.serve(r).inspect_err(|_| self.counters.failures += 1)?;
        grant.fallback |= r.allowed.is_some();
        self.counters.grants += 1;
        self.counters.fallbacks += u64::from(grant.fallback);
        Ok(grant)
    }

    fn free(&mut self, frame: Pfn, order: Order, core: CoreId) -> Result<(), FreeError> {
        let inside = frame.0 < self.total_frames();
        if inside && self.table.state(frame.0 as u32) == IN_BIN {
            return Err(FreeError::DoubleFree);
        }
        self.buddy.free(frame, order, core)?;
        self.counters.frees += 1;
        Ok(())
    }

    fn free_frames(&self) -> u64 {
        self.buddy.free_frames() + self.in_bins
    }

    fn total_frames(&self) -> u64 {
        self.buddy.total_frames()
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }

    fn validate(&self) -> Result<(), Broken> {
        self.buddy.validate()?;
        let mut listed = 0;
        for list in &self.bins {
            self.table.validate_list(list, IN_BIN)?;
            listed += u64::from(list.len());
        }
        let marked = (0..self.table.frames()).filter(|f| self.table.state(*f) == IN_BIN);
        if listed != self.in_bins || marked.count() as u64 != listed {
            return Err(Broken {
                rule: "frames in bins differ from a recount",
                frame: Pfn(0),
            });
        }
        Ok(())
    }
}
