//! Block and file traces against replacement policies.
//!
//! [`Cache`] counts hits and misses of one policy without a disk; [`LruCurve`] gives
//! LRU's exact misses at every size in one pass.

mod cache;
mod index;
mod lru_curve;
mod marks;
mod sampled;
mod survey;

pub use cache::{Cache, HitCounts, Reference, Use};
pub use index::PageKey;
pub use lru_curve::LruCurve;
pub use sampled::{SampledPoint, Sampler, sampled_points};
pub use survey::{DistinctPages, Survey};
