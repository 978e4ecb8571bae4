//! Ageing: a random history that leaves free memory small and scattered.
//!
//! A freshly booted allocator hands out rising frame numbers, which is page
//! colouring for free; after weeks of programs coming and going it does not.
//! Both states matter for a baseline. Ageing is no shuffle of lists: it is a
//! long random sequence of real requests and frees, so whatever state the
//! allocator ends in is one that it can reach.
//!
//! 1. *Fill*: blocks of mixed orders, purposes and cores until a few percent of
//!    memory are left.
//! 2. *Churn*: a random block is freed and another is allocated, many times.
//! 3. *Drop*: random blocks are freed until the target is reached.

use piebald_policy::contract::{Asker, Cause, FrameAllocator, FrameRequest, Mode, Purpose};
use piebald_units::{CoreId, Order, Pfn, TaskId};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// How to age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// Seed of the history.
    pub seed: u64,
    /// Free memory at the end, in 1/1000 of all memory, 20 to 950.
    pub free_permille: u32,
    /// Blocks exchanged in the churn, in 1/100 of the frames. Default 20. \[M\]
    pub churn_percent: u32,
    /// Of 1000 requests, how many are for blocks of order 1 to 3. Default 30;
    /// the rest are single frames. \[M\]
    pub blocks_permille: u32,
    /// Of 1000 requests, how many are for kernel data. Default 80; as many
    /// again are for reclaimable kernel data, the rest for user pages. \[M\]
    pub kernel_permille: u32,
    /// Cores that the requests come from, at least 1.
    pub cores: u16,
}

impl Age {
    /// The defaults for a seed, a share of free memory and a number of cores.
    pub const fn new(seed: u64, free_permille: u32, cores: u16) -> Self {
        Self {
            seed,
            free_permille,
            churn_percent: 20,
            blocks_permille: 30,
            kernel_permille: 80,
            cores,
        }
    }

    fn check(&self) -> Result<(), AgeError> {
        let bad = |field, value, allowed| {
            Err(AgeError {
                field,
                value,
                allowed,
            })
        };
        if !(20..=950).contains(&self.free_permille) {
            return bad("free_permille", self.free_permille, "20 to 950");
        }
        if self.churn_percent > 10_000 {
            return bad("churn_percent", self.churn_percent, "0 to 10000");
        }
        if self.blocks_permille > 1000 {
            return bad("blocks_permille", self.blocks_permille, "0 to 1000");
        }
        if self.kernel_permille > 500 {
            return bad("kernel_permille", self.kernel_permille, "0 to 500");
        }
        if self.cores == 0 {
            return bad("cores", 0, "at least 1");
        }
        Ok(())
    }
}

/// A field of [`Age`] that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ageing: {field} = {value}: must be {allowed}")]
pub struct AgeError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: u32,
    /// What is allowed.
    pub allowed: &'static str,
}

/// Blocks that the history left allocated. They are never given back by
/// themselves; whoever needs memory back frees them.
#[derive(Clone, Debug, Default)]
pub struct Aged {
    blocks: Vec<(u32, u8)>,
}

impl Aged {
    /// The blocks, in no meaningful order.
    pub fn blocks(&self) -> impl Iterator<Item = (Pfn, Order)> {
        let blocks = self.blocks.iter();
        blocks.map(|(f, o)| (Pfn(u64::from(*f)), Order(*o)))
    }

    /// Frames in them.
    pub fn frames(&self) -> u64 {
        self.blocks.iter().map(|(_, o)| 1u64 << o).sum()
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.blocks.append(&mut other.blocks);
    }
}

/// Ages an allocator. Frames that are granted already are not touched. If less
/// than the target is free from the start, nothing is left allocated.
///
/// # Errors
/// Names the field of `config` that is out of range.
pub fn age(frames: &mut dyn FrameAllocator, config: &Age) -> Result<Aged, AgeError> {
    config.check()?;
    let total = frames.total_frames();
    let target = total * u64::from(config.free_permille) / 1000;
    let mut history = History {
        frames,
        config,
        rng: Pcg64Mcg::seed_from_u64(config.seed),
        held: Vec::with_capacity(total as usize),
    };
    let full = total / 50;
    while history.frames.free_frames() > full && history.take() {}
    for _ in 0..total * u64::from(config.churn_percent) / 100 {
        history.drop_one();
        history.take();
    }
    while history.frames.free_frames() < target && history.drop_one() {}
    Ok(Aged {
        blocks: history.held,
    })
}

struct History<'a> {
    frames: &'a mut dyn FrameAllocator,
    config: &'a Age,
    rng: Pcg64Mcg,
    held: Vec<(u32, u8)>,
}

impl History<'_> {
    /// Allocates one random block; false if there was none.
    fn take(&mut self) -> bool {
        let c = self.config;
        let draw = self.rng.random_range(0..1000u32);
        let purpose = match draw {
            d if d < c.kernel_permille => Purpose::Kernel,
            d if d < 2 * c.kernel_permille => Purpose::Reclaimable,
            d if d % 2 == 0 => Purpose::File,
            _ => Purpose::Anon,
        };
        let large = self.rng.random_range(0..1000u32) < c.blocks_permille;
        let order = if large {
            self.rng.random_range(1..=3u8)
        } else {
            0
        };
        let core = CoreId(self.rng.random_range(0..c.cores));
        let request = |order| FrameRequest {
            order: Order(order),
            purpose,
            asker: match purpose {
                Purpose::Anon | Purpose::File => Asker::Task(TaskId(u32::MAX)),
                _ => Asker::Kernel,
            },
            cause: Cause::Fault,
            core,
            page: None,
            allowed: None,
            wish: None,
            mode: Mode::Hint,
        };
        let granted = self
            .frames
            .alloc(&request(order))
            .or_else(|_| self.frames.alloc(&request(0)));
        if let Ok(g) = granted {
            self.held.push((g.frame.0 as u32, g.order.0));
        }
        granted.is_ok()
    }

    /// Frees one random block; false if none is held.
    fn drop_one(&mut self) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let i = self.rng.random_range(0..self.held.len());
        let (frame, order) = self.held.swap_remove(i);
        let core = CoreId(self.rng.random_range(0..self.config.cores));
        let freed = self.frames.free(Pfn(u64::from(frame)), Order(order), core);
        debug_assert_eq!(freed, Ok(()));
        true
    }
}
