//! Every page gets a frame drawn uniformly at random from all free frames.
//!
//! What an aged machine tends to, without its history; HVR calls it M3 or
//! random interleaving. Free frames stand in one array: a draw takes one place
//! of it and moves the last one there. Frame numbers are stored xor their
//! place, so that the zeroed memory of a new array already says "frame *i* is
//! at place *i*", and construction touches nothing. 9 B per frame.
//!
//! Blocks of order 1 and up are found by trying random aligned places, a fixed
//! number of times, so that a request costs a bounded time; it can fail though
//! a block is free when memory is nearly full. The host then takes small pages.

use piebald_policy::contract::{
    AllocError, Broken, FrameAllocator, FrameCounters, FrameRequest, FreeError, Grant,
};
use piebald_units::{CoreId, Order, Pfn};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{FramesError, check_frames, check_request};

/// Random places tried for one block.
const TRIES: u32 = 256;
/// State of a frame that is free or inside a block.
const NONE: u8 = 0;

/// The random allocator.
#[derive(Clone)]
pub struct RandomFrames {
    /// Place -> frame, xor place. The first `free` places are free frames.
    order: Vec<u32>,
    /// Frame -> place, xor frame.
    place: Vec<u32>,
    /// 1 + order for the first frame of a granted block.
    granted: Vec<u8>,
    free: u32,
    rng: Pcg64Mcg,
    counters: FrameCounters,
}

impl RandomFrames {
    /// All of `frames` frames free.
    ///
    /// # Errors
    /// Names `frames` if it is 0 or too large.
    pub fn new(frames: u64, seed: u64) -> Result<Self, FramesError> {
        let n = check_frames(frames)?;
        Ok(Self {
            order: vec![0; n as usize],
            place: vec![0; n as usize],
            granted: vec![NONE; n as usize],
            free: n,
            rng: Pcg64Mcg::seed_from_u64(seed),
            counters: FrameCounters::default(),
        })
    }

    fn frame_at(&self, place: u32) -> u32 {
        self.order[place as usize] ^ place
    }

    fn place_of(&self, frame: u32) -> u32 {
        self.place[frame as usize] ^ frame
    }

    fn is_free(&self, frame: u32) -> bool {
        self.place_of(frame) < self.free
    }

    fn swap(&mut self, a: u32, b: u32) {
        let (fa, fb) = (self.frame_at(a), self.frame_at(b));
        self.order[a as usize] = fb ^ a;
        self.order[b as usize] = fa ^ b;
        self.place[fb as usize] = a ^ fb;
        self.place[fa as usize] = b ^ fa;
    }

    fn remove(&mut self, frame: u32) {
        let place = self.place_of(frame);
        self.free -= 1;
        self.swap(place, self.free);
    }

    fn insert(&mut self, frame: u32) {
        let place = self.place_of(frame);
        self.swap(place, self.free);
        self.free += 1;
    }

    fn draw(&mut self, order: u8) -> Option<u32> {
        if order == 0 {
            let place = (self.free > 0).then(|| self.rng.random_range(0..self.free))?;
            return Some(self.frame_at(place));
        }
        let size = 1u32 << order;
        let blocks = self.granted.len() as u32 / size;
        if blocks == 0 || self.free < size {
            return None;
        }
        (0..TRIES).find_map(|_| {
            let first = self.rng.random_range(0..blocks) * size;
            (first..first + size)
                .all(|f| self.is_free(f))
                .then_some(first)
        })
    }

    fn check_free(&self, frame: Pfn, order: u8) -> Result<u32, FreeError> {
        let len = self.granted.len() as u64;
        let Some(f) = u32::try_from(frame.0).ok().filter(|_| frame.0 < len) else {
            return Err(FreeError::Foreign);
        };
        match self.granted[f as usize] {
            g if g == order + 1 => Ok(f),
            NONE if self.is_free(f) => Err(FreeError::DoubleFree),
            _ => Err(FreeError::OrderMismatch),
        }
    }
}

impl FrameAllocator for RandomFrames {
    fn alloc(&mut self, r: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        let drawn =
            check_request(r).and_then(|()| self.draw(r.order.0).ok_or(AllocError::OutOfMemory));
        let first = drawn.inspect_err(|_| self.counters.failures += 1)?;
        for f in first..first + (1 << r.order.0) {
            self.remove(f);
        }
        self.granted[first as usize] = r.order.0 + 1;
        self.counters.grants += 1;
        let fallback = r.allowed.is_some();
        self.counters.fallbacks += u64::from(fallback);
        Ok(Grant {
            frame: Pfn(u64::from(first)),
            order: r.order,
            fallback,
        })
    }

    fn free(&mut self, frame: Pfn, order: Order, _: CoreId) -> Result<(), FreeError> {
        let first = self.check_free(frame, order.0)?;
        self.granted[first as usize] = NONE;
        for f in first..first + (1 << order.0) {
            self.insert(f);
        }
        self.counters.frees += 1;
        Ok(())
    }

    fn free_frames(&self) -> u64 {
        u64::from(self.free)
    }

    fn total_frames(&self) -> u64 {
        self.granted.len() as u64
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }

    fn validate(&self) -> Result<(), Broken> {
        let n = self.granted.len() as u32;
        let broken = |rule, frame: u32| Broken {
            rule,
            frame: Pfn(u64::from(frame)),
        };
        let (mut free, mut held, mut blocks) = (0, 0, 0);
        for f in 0..n {
            let place = self.place_of(f);
            if place >= n || self.frame_at(place) != f {
                return Err(broken("frame and place do not name each other", f));
            }
            free += u32::from(self.is_free(f));
            if let Some(order) = self.granted[f as usize].checked_sub(1) {
                let size = 1u32 << order;
                if f % size != 0 || (f..f + size).any(|x| self.is_free(x)) {
                    return Err(broken("granted block is misaligned or partly free", f));
                }
                (held, blocks) = (held + size, blocks + 1);
            }
        }
        if free != self.free || held != n - free {
            return Err(broken("free and granted frames are not all frames", 0));
        }
        if blocks != self.counters.grants - self.counters.frees {
            return Err(broken("granted blocks differ from grants less frees", 0));
        }
        Ok(())
    }
}
