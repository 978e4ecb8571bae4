//! Sizes of the objects of a trace.

use std::collections::HashMap;

use super::super::cache::Use;
use super::super::index::PageKey;
use super::super::input::{Batch, CallKind};
use super::cache::accesses;

/// How far the sizes of objects go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeSpread {
    /// The smallest and the largest, in bytes, if any request says one.
    pub range: Option<(u32, u32)>,
    /// Requests that say no size.
    pub without: u64,
}

impl SizeSpread {
    /// Takes calls in order.
    pub fn run(&mut self, batch: &Batch) {
        for call in &batch.calls {
            match call.bytes {
                Some(bytes) => {
                    let (low, high) = self.range.unwrap_or((bytes, bytes));
                    self.range = Some((low.min(bytes), high.max(bytes)));
                }
                None => self.without += u64::from(call.kind != CallKind::Delete),
            }
        }
    }

    /// Are there sizes other than one constant?
    pub fn varies(&self) -> bool {
        self.range.is_some_and(|(low, high)| low < high)
    }
}

/// Bytes of all different objects.
#[derive(Clone, Debug, Default)]
pub struct ObjectSurvey {
    /// The last size and the largest, of each object.
    sizes: HashMap<PageKey, (u32, u32)>,
    /// Requests that say another size than the last one for the same object.
    pub changes: u64,
}

impl ObjectSurvey {
    /// Takes requests in order.
    pub fn run(&mut self, batch: &Batch) {
        for (key, what, bytes) in accesses(batch) {
            if what == Use::Delete {
                continue;
            }
            let (last, largest) = self.sizes.entry(key).or_insert((bytes, bytes));
            self.changes += u64::from(*last != bytes);
            *last = bytes;
            *largest = bytes.max(*largest);
        }
    }

    /// Bytes of all objects, each with its largest size: what a cache needs to hold them all.
    pub fn footprint(&self) -> u64 {
        self.sizes.values().map(|(_, size)| u64::from(*size)).sum()
    }
}
