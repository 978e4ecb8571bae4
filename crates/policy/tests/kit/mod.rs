//! What several tests of the policy core share.

#![allow(dead_code, unused_imports, reason = "each test uses a part")]

use piebald_policy::{
    buddy::{Buddy, List, Sizes, Slices},
    color_map::{BitClass, ColorMap},
    contract::{FrameRequest, Mode, Purpose},
};
use piebald_units::{ColorSet, CoreId, Order, Pfn, TaskId, Vpn};

pub use crate::random::{Random, setting};

/// A buddy allocator on vectors.
pub type VecBuddy = Buddy<Slices<ColorMap, Vec<u8>, Vec<[u32; 2]>, Vec<u32>, Vec<List>, Vec<u64>>>;

/// An allocator without frames.
pub fn empty_buddy(map: &ColorMap, frames: u64, origin: u64) -> VecBuddy {
    let sizes = Sizes::of(map, frames).unwrap();
    let store = Slices {
        map: map.clone(),
        states: vec![0; sizes.frames],
        links: vec![[0; 2]; sizes.frames],
        pageblocks: vec![0; sizes.pageblocks],
        lists: vec![List::EMPTY; sizes.lists],
        words: vec![0; sizes.words],
    };
    Buddy::new(store, frames, Pfn(origin)).unwrap()
}

/// An allocator that has all of its frames.
pub fn full_buddy(map: &ColorMap, frames: u64, origin: u64) -> VecBuddy {
    let mut buddy = empty_buddy(map, frames, origin);
    buddy.add_range(Pfn(origin)..Pfn(origin + frames)).unwrap();
    buddy
}

/// A map whose colour bits are these frame bits, or XORs of them.
pub fn map_of(masks: &[u64]) -> ColorMap {
    let masks: Vec<_> = masks.iter().map(|m| (*m, BitClass::Unknown)).collect();
    ColorMap::from_masks(&masks).unwrap()
}

/// The map with 2^bits colours by neighbouring frame bits from `shift` on.
pub fn plain_map(shift: u32, bits: u32) -> ColorMap {
    let masks: Vec<u64> = (shift..shift + bits).map(|b| 1 << b).collect();
    map_of(&masks)
}

/// A request of some order for a purpose, without colours.
pub fn request(order: u8, purpose: Purpose) -> FrameRequest<'static> {
    FrameRequest {
        order: Order(order),
        purpose,
        ..FrameRequest::fault(TaskId(1), CoreId(0), Vpn(0))
    }
}

/// A request for one user page in binding colours.
pub fn hard(allowed: &ColorSet) -> FrameRequest<'_> {
    FrameRequest {
        allowed: Some(allowed),
        mode: Mode::Hard,
        ..request(0, Purpose::Anon)
    }
}
