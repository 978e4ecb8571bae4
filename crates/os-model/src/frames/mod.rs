//! Frame allocators: which physical frame a request gets.
//!
//! Everything stands behind [`FrameAllocator`], the contract that colour-aware
//! allocators implement too, so the kernel does not know which one it drives.
//!
//! * [`Stock`]: Linux's zoned buddy allocator with per-core lists, in the
//!   flavours of 2.6.30 and 6.12. The baseline of every comparison.
//! * [`RandomFrames`]: every page gets a frame drawn uniformly at random.
//! * [`BinHopping`]: successive faults of a task get successive page colours
//!   (Kessler and Hill, "Page placement algorithms for large real-indexed
//!   caches", ACM TOCS 10(4), 1992).
//! * [`Colored`]: the coloured buddy of the policy core, for partitions (Rainbow)
//!   and for page colouring.
//! * [`age()`]: drives any of them through a random history, until free memory
//!   is small and scattered as on a machine that has been up for weeks.
//!
//! The first three know no page colours as policies mean them: a request with
//! binding colours ([`Mode::Hard`]) is refused with [`AllocError::NoColors`],
//! and under [`Mode::Hint`] its grant is marked as a fallback.
//!
//! Vocabulary: a *block* of order *o* is 2^o frames, aligned to its size; a
//! *pageblock* is 2 MiB, the unit that carries a migrate type; a *migrate type*
//! says whether the kernel could move or drop the content; a *per-core list*
//! holds free blocks that one core takes without touching the buddy lists.

mod age;
mod bin_hopping;
mod colored;
mod random;
mod stock;
mod table;

use piebald_policy::contract::{AllocError, FrameRequest, Mode};

pub use age::{Age, AgeError, Aged, age};
pub use bin_hopping::{BinHopping, BinHoppingConfig};
pub use colored::{Colored, ColoredConfig};
pub use piebald_policy::{color_map::ColorMap, contract::FrameAllocator};
pub use random::RandomFrames;
pub use stock::{CoreListConfig, Flavour, MigrateType, Stock, StockConfig, ZoneConfig};

/// An allocator as a kernel owns it: it can be copied, so that a state that took
/// long to reach is reached once. Every allocator that is `Clone` is one.
pub trait OwnedFrames: FrameAllocator + Send + Sync {
    /// Another allocator in the same state.
    fn boxed_clone(&self) -> Box<dyn OwnedFrames>;
}

impl<T: FrameAllocator + Clone + Send + Sync + 'static> OwnedFrames for T {
    fn boxed_clone(&self) -> Box<dyn OwnedFrames> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn OwnedFrames> {
    fn clone(&self) -> Self {
        // The box is no allocator itself: the call is the content's.
        (**self).boxed_clone()
    }
}

/// Why an allocator could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: must be {allowed}")]
pub struct FramesError {
    /// The configuration field.
    pub field: &'static str,
    /// The value found.
    pub value: u64,
    /// What is allowed.
    pub allowed: &'static str,
}

/// Memory that a frame number of 32 bits reaches, less the list end mark.
const MAX_FRAMES: u64 = u32::MAX as u64 - 1;

fn check_frames(frames: u64) -> Result<u32, FramesError> {
    match u32::try_from(frames) {
        Ok(n) if n > 0 && frames <= MAX_FRAMES => Ok(n),
        _ => Err(FramesError {
            field: "frames",
            value: frames,
            allowed: "1 to 4294967294 (4 KiB each)",
        }),
    }
}

/// What an allocator without colours says to a request before serving it.
fn check_request(r: &FrameRequest<'_>) -> Result<(), AllocError> {
    if r.order.0 > 10 {
        return Err(AllocError::OrderTooLarge);
    }
    if r.allowed.is_some() && r.mode == Mode::Hard {
        return Err(AllocError::NoColors);
    }
    Ok(())
}
