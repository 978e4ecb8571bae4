//! Disks: rotating platters with zones, the disk of averages, and flash.
//!
//! A [`Disk`] is built from a [`DiskSpec`], which preset files hold as data
//! ([`presets()`], [`by_name`], [`parse`]), and is driven through
//! [`piebald_units::block::BlockPort`]. Time is an argument; the same requests at
//! the same times give the same completions.
//!
//! Inside, a model serves one command and says what it cost ([`Timing`]); the
//! queue of commands around it is the same for all models. Sectors are 512 B.
//!
//! What is modelled of a rotating disk: zones, skews, slipped and spare sectors,
//! reserved cylinders; seek curve, head switch, write settling, rotation as a
//! function of time; a segmented buffer with reading ahead and written-back
//! writes; command overheads; the bus. What is not: thermal recalibration,
//! remapped (not slipped) defects, the read of a request's tail before its head,
//! and several commands' data on the bus at a time.

mod average;
mod buffer;
mod check;
mod cost;
mod flash;
mod geometry;
mod mechanics;
mod presets;
mod queue;
mod seek;
pub mod spec;
mod timing;
mod zoned;

pub use average::Average;
pub use flash::Flash;
pub use geometry::{Geometry, Piece, Place, Stretch, ZoneShape};
pub use mechanics::{Access, Mechanics, Run, Spot};
pub use presets::{DiskError, by_name, parse, presets, text};
pub use queue::Disk;
pub use seek::SeekCurve;
pub use spec::DiskSpec;
pub use timing::{DiskCounters, Hit, Timing};
pub use zoned::Zoned;
