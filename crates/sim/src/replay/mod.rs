//! Block and file traces against replacement policies.
//!
//! A [`CallStream`] turns traces into [`Call`]s and page [`Reference`]s. [`Cache`]
//! counts hits and misses of one policy without a disk, [`Driver`] carries the calls
//! out on the file side of the kernel with a disk below, [`LruCurve`] gives LRU's exact
//! misses at every size in one pass, and [`Sampler`] picks pages for curves of other
//! policies. [`sized_instance`] has caches for objects that take their bytes. Where speed decides what is asked next there is no trace to follow:
//! [`run_clients`] has clients ask a server, [`run_paging`] a program page its memory.

mod cache;
mod clients;
mod clocks;
mod driver;
mod excerpt;
mod index;
mod input;
mod instance;
mod kernel;
mod lru_curve;
mod marks;
mod paging;
mod parts;
mod sampled;
mod sized;
mod sorter;
mod source;
mod survey;

pub use cache::{ByteCounts, Cache, HitCounts, Reference, Use};
pub use clients::{ClientError, ClientOutcome, ClientSetup, Query, QueryRead, run_clients};
pub use driver::{Driver, DriverError, Pace, Snapshot, WINDOW};
pub use excerpt::{Excerpt, TaskPart};
pub use index::PageKey;
pub use input::{
    Align, Batch, Call, CallKind, CallStream, InputError, InputSetup, Merge, SpaceId, SpaceInfo,
    next_uses,
};
pub use instance::{
    DiskOutcome, DiskSide, Instance, InstanceError, InstanceOutcome, cache_instance, disk_instance,
};
pub use kernel::{FileSide, LoopError, LoopOutcome, clients_with, paging_with};
pub use lru_curve::LruCurve;
pub use paging::{PagingOutcome, run_paging};
pub use parts::Part;
pub use sampled::{SampledPoint, Sampler, sampled_points};
pub use sized::{
    BELADY_SIZE, ObjectSurvey, PFOO_L, SIZED_POLICIES, SizeSpread, SizedSetup, sized_instance,
};
pub use survey::{DistinctPages, Survey};
