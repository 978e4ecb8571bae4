//! The free frames of one memory node, by colour.

use core::ptr;

use piebald_policy::{
    buddy::{Buddy, BuddyCounters, List},
    color_map::ColorMap,
    contract::{AllocError, FrameRequest},
};
use piebald_units::{Color, MAX_COLORS, Order, Pfn};

use super::{Fault, Given, REQUEST};
use crate::lent::{Lending, Lent};

/// A coloured buddy over the frames of a node.
pub struct Pool {
    lending: *mut Lending,
    frames: u64,
    first: Pfn,
    buddy: Buddy<Lent>,
    /// Free frames by colour.
    free: [u32; MAX_COLORS],
}

impl Pool {
    /// Makes a pool where it is to lie. It has no map.
    ///
    /// # Safety
    /// `at` is valid, aligned, all zero, and does not move; `lending` is as [`Lent`] says, and lies
    /// outside of it.
    pub unsafe fn set_up(at: *mut Self, lending: *mut Lending) {
        // SAFETY: the caller's promise; each field is written once. `free` is whole numbers, for
        // which zero bytes are valid.
        unsafe {
            ptr::addr_of_mut!((*at).lending).write(lending);
            ptr::addr_of_mut!((*at).frames).write((*lending).frames as u64);
            ptr::addr_of_mut!((*at).first).write(Pfn((*lending).first));
            ptr::addr_of_mut!((*at).buddy).write(Buddy::over(Lent::new(lending)));
        }
    }

    /// The map in use.
    pub(super) fn map(&self) -> &ColorMap {
        self.buddy.map()
    }

    /// What was lent.
    pub(super) const fn lending(&self) -> *const Lending {
        self.lending
    }

    /// Number of frames.
    pub(super) const fn frames(&self) -> u64 {
        self.frames
    }

    /// The first frame.
    pub(super) const fn first(&self) -> Pfn {
        self.first
    }

    /// The frame behind the last one.
    pub(super) const fn end(&self) -> u64 {
        self.first.0.saturating_add(self.frames)
    }

    /// Sets a map, of a pool that is empty.
    ///
    /// # Safety
    /// Lists and words have the lengths beside them, and are lent until the next map; states and
    /// pageblocks are zero.
    pub(super) unsafe fn set_map(
        &mut self,
        map: &ColorMap,
        lists: (*mut List, usize),
        words: (*mut u64, usize),
    ) -> Result<(), Fault> {
        // SAFETY: no reference into the lending exists between calls of the buddy.
        let lending = unsafe { &mut *self.lending };
        lending.map.clone_from(map);
        (lending.lists, lending.nr_lists) = lists;
        (lending.words, lending.nr_words) = words;
        let set_up = self.buddy.set_up(self.frames, self.first);
        set_up.map_err(Fault::Sizes)?;
        self.free.fill(0);
        Ok(())
    }

    /// Counts a block's frames by colour.
    fn count(&mut self, first: Pfn, order: Order, change: impl Fn(&mut u32)) {
        for frame in frames_of(first, order) {
            let color = self.map().color(Pfn(frame));
            if let Some(count) = self.free.get_mut(usize::from(color.0)) {
                change(count);
            }
        }
    }

    /// Adds a block of the kernel's.
    pub(super) fn add(&mut self, first: Pfn, order: Order) -> Result<(), Fault> {
        let end = Pfn(frames_of(first, order).end);
        self.buddy.add_range(first..end).map_err(Fault::Block)?;
        self.count(first, order, |n| *n = n.wrapping_add(1));
        Ok(())
    }

    /// Takes the largest block of at most `frames` frames out.
    pub(super) fn shed(&mut self, frames: u64) -> Option<(Pfn, Order)> {
        let most = frames.checked_ilog2()?.min(u32::from(Order::MAX.0)) as u8;
        let order = self.buddy.largest_order()?.min(Order(most));
        let first = self.buddy.remove_block(order)?;
        self.count(first, order, |n| *n = n.wrapping_sub(1));
        Some((first, order))
    }

    /// The same, unless that leaves less of one of its colours than half of the mean of all.
    pub(super) fn shed_surplus(&mut self, frames: u64, colors: u64) -> Option<(Pfn, Order)> {
        let mean = self.free_frames().checked_div(colors)?;
        let (first, order) = self.shed(frames)?;
        let is_left = |frame: u64| {
            let left = self.free_of(self.map().color(Pfn(frame)));
            u64::from(left).saturating_mul(2) >= mean
        };
        if frames_of(first, order).all(is_left) {
            return Some((first, order));
        }
        // It was there just now.
        let _ = self.add(first, order);
        None
    }

    /// Takes up to `out.len()` frames of the colour that it has most of, down to the mean of all.
    pub(super) fn shed_most(&mut self, colors: u32, out: &mut [u64]) -> usize {
        let Some(mean) = self.free_frames().checked_div(u64::from(colors)) else {
            return 0;
        };
        let counts = (0u16..).zip(&self.free).take(colors as usize);
        let Some((color, most)) = counts.max_by_key(|(_, n)| **n) else {
            return 0;
        };
        let spare = u64::from(*most).saturating_sub(mean).max(1);
        let request = FrameRequest {
            wish: Some(Color(color)),
            ..REQUEST
        };
        let mut taken = 0usize;
        for slot in out.iter_mut().take(spare as usize) {
            let Ok(given) = self.take(&request) else {
                break;
            };
            *slot = given.pfn;
            taken = taken.wrapping_add(1);
        }
        taken
    }

    /// Takes a single frame out.
    pub(super) fn take(&mut self, request: &FrameRequest<'_>) -> Result<Given, AllocError> {
        let grant = self.buddy.alloc(request)?;
        // What was granted just now can be let go.
        let _ = self.buddy.detach(grant.frame, Order(0));
        let color = self.buddy.map().color(grant.frame);
        if let Some(count) = self.free.get_mut(usize::from(color.0)) {
            *count = count.wrapping_sub(1);
        }
        Ok(Given {
            pfn: grant.frame.0,
            color: u32::from(color.0),
            fallback: u32::from(grant.fallback),
        })
    }

    /// Free frames of a colour.
    pub(super) fn free_of(&self, color: Color) -> u32 {
        self.free.get(usize::from(color.0)).copied().unwrap_or(0)
    }

    /// Free frames.
    pub(super) fn free_frames(&self) -> u64 {
        self.buddy.free_frames()
    }

    /// What its buddy did since the map was set.
    pub(super) fn counters(&self) -> BuddyCounters {
        self.buddy.counters()
    }

    /// Recounts everything.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.buddy.validate().map_err(|broken| broken.rule)?;
        let sum: u64 = self.free.iter().map(|n| u64::from(*n)).sum();
        if sum != self.buddy.free_frames() {
            return Err("free frames by color do not add up");
        }
        Ok(())
    }
}

/// The numbers of a block's frames.
const fn frames_of(first: Pfn, order: Order) -> core::ops::Range<u64> {
    first.0..first.0.saturating_add(1 << (order.0 & 15))
}
