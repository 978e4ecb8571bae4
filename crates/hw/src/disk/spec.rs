//! A disk as data: what a preset file says.
//!
//! Exactly one of the tables `zoned`, `average` and `flash` is present. Times are
//! written with their unit (`"0.831ms"`); sectors are 512 B everywhere.

use std::collections::BTreeMap;

use piebald_units::Picos;
use serde::Deserialize;

use crate::spec::written;

/// A whole disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Short name, as in `st39102lw`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Source marks used in the file's comments, and what they stand for.
    pub sources: BTreeMap<String, String>,
    /// Sectors that the host sees.
    pub capacity: u64,
    /// The queue of commands inside the drive.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Rotating platters with zones, mechanics and a segmented buffer.
    pub zoned: Option<ZonedSpec>,
    /// One cost for every access that does not continue the last one.
    pub average: Option<AverageSpec>,
    /// Flash: parallel units behind a controller and a link.
    pub flash: Option<FlashSpec>,
}

/// The queue of commands inside the drive.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Commands that the drive holds at most, 1..=65536; further ones wait
    /// outside in order of arrival.
    pub depth: u32,
    /// Which of the held commands is next.
    pub scheduling: Scheduling,
    /// A held command that has waited this long goes before any younger one,
    /// whatever the scheduling; none = it may wait for ever.
    #[serde(default, deserialize_with = "written_option")]
    pub patience: Option<Picos>,
}

fn written_option<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Picos>, D::Error> {
    written(d).map(Some)
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self {
            depth: 1,
            scheduling: Scheduling::Fcfs,
            patience: None,
        }
    }
}

/// Order in which a drive serves the commands that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// Order of arrival.
    Fcfs,
    /// Shortest positioning time (seek and rotation) first; equal ones in order
    /// of arrival.
    Sptf,
}

/// Rotating platters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZonedSpec {
    /// Data surfaces, one head each, 1..=64.
    pub surfaces: u32,
    /// Cylinders, with reserved ones, 1..=4,000,000.
    pub cylinders: u32,
    /// Order in which tracks hold successive blocks.
    pub mapping: Mapping,
    /// Where spare sectors lie.
    pub spares_at: SparesAt,
    /// Cylinders that share spares, for [`SparesAt::RangeEnd`].
    #[serde(default)]
    pub range_cylinders: u32,
    /// Zones in rising cylinder order; cylinders between them are reserved.
    pub zones: Vec<ZoneSpec>,
    /// Arm and spindle.
    pub mechanics: MechanicsSpec,
    /// The path to the host.
    pub bus: BusSpec,
    /// The drive's segmented buffer.
    pub buffer: BufferSpec,
    /// What a command costs before anything moves.
    pub overheads: OverheadSpec,
}

/// Order in which tracks hold successive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Head 0 to the last of each cylinder.
    Ascending,
    /// Every second cylinder of a zone runs from the last head to head 0, so
    /// that a change of cylinder needs no change of head.
    Turning,
}

/// Where spare sectors lie. A slipped sector is passed over by the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SparesAt {
    /// At the end of each zone; its slipped sectors use them up.
    ZoneEnd,
    /// At the end of each range of cylinders; its slipped sectors use them up.
    RangeEnd,
    /// Behind the last block of the disk.
    DiskEnd,
}

/// Cylinders with the same number of sectors per track.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSpec {
    /// First cylinder.
    pub first: u32,
    /// Last cylinder, inclusive.
    pub last: u32,
    /// Sectors per track, 1..=65,535.
    pub sectors: u32,
    /// Sectors by which a track starts later than the track before it in the
    /// same cylinder.
    pub track_skew: u32,
    /// The same across a cylinder's end.
    pub cylinder_skew: u32,
    /// Sectors at the zone's start that hold no blocks.
    #[serde(default)]
    pub reserved: u32,
    /// Spare sectors at each place that [`SparesAt`] names.
    #[serde(default)]
    pub spares: u32,
    /// Slipped (defective) sectors, counted from the zone's first sector,
    /// rising.
    #[serde(default)]
    pub slips: Vec<u32>,
}

/// Arm and spindle.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanicsSpec {
    /// Revolutions per minute, 60..=1,000,000.
    pub rpm: u32,
    /// Time to change to another head of the same cylinder.
    #[serde(deserialize_with = "written")]
    pub head_switch: Picos,
    /// What a write adds to a move of arm or head.
    #[serde(deserialize_with = "written")]
    pub write_settle: Picos,
    /// Least time to move for an access that finds the arm at rest, however near
    /// it is: settling on the track again. Not among DiskSim's parameters.
    #[serde(default, deserialize_with = "written")]
    pub least_access: Picos,
    /// Time by distance.
    pub seek: SeekSpec,
}

/// Seek time by distance in cylinders.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeekSpec {
    /// Measured points `[distance, microseconds]`, distances rising from 1;
    /// straight lines between them and beyond the last two.
    Points(Vec<(u32, u32)>),
    /// Ruemmler and Wilkes: `first` for one cylinder, `a + b sqrt(d)` below
    /// distance `knee`, `c + e d` from there.
    TwoPiece(TwoPiece),
    /// Lee: `a + b (d - 1) + c sqrt(d - 1)`.
    Lee(Lee),
}

/// Coefficients of [`SeekSpec::TwoPiece`], in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoPiece {
    /// Time of one cylinder.
    pub first_ms: f64,
    /// Distance from which the line holds.
    pub knee: u32,
    /// Constant of the root.
    pub a_ms: f64,
    /// Factor of the root.
    pub b_ms: f64,
    /// Constant of the line.
    pub c_ms: f64,
    /// Slope of the line.
    pub e_ms: f64,
}

/// Coefficients of [`SeekSpec::Lee`], in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lee {
    /// Time of one cylinder.
    pub a_ms: f64,
    /// Slope.
    pub b_ms: f64,
    /// Factor of the root.
    pub c_ms: f64,
}

/// The path to the host.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusSpec {
    /// Time of one sector; 0 = the path is never waited for.
    #[serde(deserialize_with = "written")]
    pub sector: Picos,
}

/// The drive's segmented buffer.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferSpec {
    /// Segments, 0..=4096; 0 = no buffer: nothing is kept, read ahead or
    /// written back.
    pub segments: u32,
    /// Sectors of a segment.
    pub segment_sectors: u32,
    /// Where reading ahead ends.
    pub read_ahead: ReadAhead,
    /// Sectors beyond the request that are read ahead at most.
    pub read_ahead_limit: u32,
    /// Whether a segment keeps what the host has already taken.
    pub keep_requested: bool,
    /// Whether reading starts with the first sector under the head once it is
    /// on the track, keeping what lies before the request.
    pub read_on_arrival: bool,
    /// Whether a write is done once it is in the buffer.
    pub write_back: bool,
    /// Segments that hold writes at most.
    pub write_segments: u32,
    /// Whether written data can be read from the buffer afterwards.
    pub hits_on_writes: bool,
}

/// Where reading ahead ends, if its limit does not end it earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// It never starts.
    Off,
    /// At the end of the track with the request's last sector.
    TrackEnd,
    /// When all of that track is in the buffer: from the request's end to the
    /// track's, and then what lies before the request.
    WholeTrack,
    /// At the end of the track after that.
    NextTrackEnd,
    /// When the segment is full.
    SegmentFull,
}

/// What a command costs before anything moves: by direction, by whether the
/// buffer serves it, and by the direction of the command before.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct OverheadSpec {
    #[serde(deserialize_with = "written")]
    pub read_hit_after_read: Picos,
    #[serde(deserialize_with = "written")]
    pub read_hit_after_write: Picos,
    #[serde(deserialize_with = "written")]
    pub read_miss_after_read: Picos,
    #[serde(deserialize_with = "written")]
    pub read_miss_after_write: Picos,
    #[serde(deserialize_with = "written")]
    pub write_hit_after_read: Picos,
    #[serde(deserialize_with = "written")]
    pub write_hit_after_write: Picos,
    #[serde(deserialize_with = "written")]
    pub write_miss_after_read: Picos,
    #[serde(deserialize_with = "written")]
    pub write_miss_after_write: Picos,
}

/// One cost for every access that does not continue the last one.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AverageSpec {
    /// Mean seek and rotation.
    #[serde(deserialize_with = "written")]
    pub access: Picos,
    /// Transfer of a sector.
    #[serde(deserialize_with = "written")]
    pub sector: Picos,
}

/// Flash: parallel units behind a controller and a link.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashSpec {
    /// Units that read at the same time, 1..=65,536.
    pub units: u32,
    /// Sectors that one unit delivers at a time, 1..=65,536; successive pages
    /// lie on successive units.
    pub page_sectors: u32,
    /// Reads.
    pub read: FlashDirection,
    /// Writes.
    pub write: FlashDirection,
}

/// One direction of a [`FlashSpec`].
///
/// A request takes the controller for `command`, its pages take their units for
/// `unit` each, all pass the link; `fixed` is added and delays nobody else.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashDirection {
    /// Time that the controller takes for a command: its inverse is the highest
    /// rate of commands.
    #[serde(deserialize_with = "written")]
    pub command: Picos,
    /// Time that a unit is taken by a page; 0 if a buffer hides the units.
    #[serde(deserialize_with = "written")]
    pub unit: Picos,
    /// Latency that delays nobody else.
    #[serde(deserialize_with = "written")]
    pub fixed: Picos,
    /// Rate of the link.
    pub bytes_per_second: u64,
}
