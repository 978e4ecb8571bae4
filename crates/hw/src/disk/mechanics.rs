//! Arm and spindle: what it takes to get from a place to another, and to read on.
//!
//! The access rule is "track switch plus rotation": the arm moves or the head
//! changes, whichever takes longer, then the first sector is waited for. Where
//! the platter stands is a function of time alone.

use piebald_units::Picos;

use super::geometry::{Geometry, Piece, Place, Stretch};
use super::seek::SeekCurve;
use super::spec::MechanicsSpec;

/// Picoseconds of a minute.
const MINUTE: u64 = 60_000_000_000_000;
/// Sector times are rounded down to picoseconds, so that the end of one sector
/// and the start of the next may differ by this much; it is no missed sector.
const ROUNDING: u64 = 8;

/// Where the arm is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Cylinder.
    pub cylinder: u32,
    /// Head in use.
    pub head: u32,
}

impl From<Place> for Spot {
    fn from(place: Place) -> Self {
        Self {
            cylinder: place.cylinder,
            head: place.head,
        }
    }
}

/// One access to the platters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Movement of arm or head before the first sector.
    pub seek: Picos,
    /// Wait for the first sector.
    pub rotation: Picos,
    /// When the first sector began to pass under the head.
    pub begin: Picos,
    /// When the first sector had passed.
    pub first: Picos,
    /// When the last sector had passed.
    pub end: Picos,
    /// Where the arm is then.
    pub spot: Spot,
    /// What is left of the last track behind it, if that is known.
    pub rest: Option<Stretch>,
}

/// Arm and spindle of a disk.
#[derive(Clone, Debug)]
pub struct Mechanics {
    revolution: u64,
    head_switch: Picos,
    write_settle: Picos,
    least_access: Picos,
    /// Time by distance.
    pub curve: SeekCurve,
}

impl Mechanics {
    /// Builds them from a checked description.
    pub fn new(spec: &MechanicsSpec, cylinders: u32) -> Self {
        Self {
            revolution: (MINUTE + u64::from(spec.rpm) / 2) / u64::from(spec.rpm),
            head_switch: spec.head_switch,
            write_settle: spec.write_settle,
            least_access: spec.least_access,
            curve: SeekCurve::new(&spec.seek, cylinders),
        }
    }

    /// Time of a revolution.
    pub fn revolution(&self) -> Picos {
        Picos(self.revolution)
    }

    /// Time for the arm to get from one place to another.
    pub fn travel(&self, from: Spot, to: Spot, write: bool) -> Picos {
        if from == to {
            return Picos(0);
        }
        let switch = match from.head == to.head {
            true => Picos(0),
            false => self.head_switch,
        };
        let arm = self.curve.time(from.cylinder.abs_diff(to.cylinder));
        let settle = match write {
            true => self.write_settle,
            false => Picos(0),
        };
        arm.max(switch) + settle
    }

    /// Time that `sectors` of the track of a place take to pass.
    pub fn pass(&self, place: Place, sectors: u64) -> Picos {
        let turns = sectors.saturating_mul(self.revolution);
        Picos(turns / u64::from(place.track_sectors))
    }

    /// Angle of a sector's start as time from the index mark.
    fn angle(&self, place: Place) -> u64 {
        let size = u64::from(place.track_sectors);
        let turned = (u64::from(place.sector) + u64::from(place.skew)) % size;
        turned * self.revolution / size
    }

    /// Time from `at` until the sector begins to pass.
    pub fn wait(&self, place: Place, at: Picos) -> Picos {
        let ahead = self.angle(place) + self.revolution - at.0 % self.revolution;
        let wait = ahead % self.revolution;
        match wait + ROUNDING >= self.revolution {
            true => Picos(0),
            false => Picos(wait),
        }
    }

    /// Sectors of a place's track that begin and end in the time before it.
    pub fn sectors_in(&self, place: Place, time: Picos) -> u64 {
        // Times of whole revolutions at most: the product is far from saturating.
        time.0.saturating_mul(u64::from(place.track_sectors)) / self.revolution
    }

    /// Goes on from `at` to the part of a run that lies on one track.
    pub fn piece(&self, from: Spot, at: Picos, piece: &Piece, write: bool) -> Access {
        let seek = self.travel(from, piece.place.into(), write);
        self.reached(at, seek, piece)
    }

    /// The same with an arm at rest.
    pub fn piece_from_rest(&self, from: Spot, at: Picos, piece: &Piece, write: bool) -> Access {
        let seek = self.travel(from, piece.place.into(), write);
        self.reached(at, seek.max(self.least_access), piece)
    }

    fn reached(&self, at: Picos, seek: Picos, piece: &Piece) -> Access {
        let rotation = self.wait(piece.place, at + seek);
        let begin = at + seek + rotation;
        Access {
            seek,
            rotation,
            begin,
            first: begin + self.pass(piece.place, 1),
            end: begin + self.pass(piece.place, u64::from(piece.sectors)),
            spot: piece.place.into(),
            rest: None,
        }
    }

    /// Accesses a run of `blocks` (at least 1) over as many tracks as it has.
    /// `seek` and `rotation` are those before the first sector.
    pub fn run(&self, map: &Geometry, from: Spot, at: Picos, run: Run) -> Access {
        let mut stretch = map.stretch(run.lba);
        let first = map.cut(&stretch, run.blocks);
        let mut access = match at > run.busy_until {
            true => self.piece_from_rest(from, at, &first, run.write),
            false => self.piece(from, run.busy_until, &first, run.write),
        };
        let mut done = u64::from(first.blocks);
        let mut last = done;
        while done < run.blocks {
            stretch = map.stretch(run.lba + done);
            let piece = map.cut(&stretch, run.blocks - done);
            let next = self.piece(access.spot, access.end, &piece, run.write);
            access.end = next.end;
            access.spot = next.spot;
            last = u64::from(piece.blocks);
            done += last;
        }
        access.rest = map.rest(&stretch, last);
        access
    }
}

/// A run of blocks to access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First block.
    pub lba: u64,
    /// Blocks, at least 1.
    pub blocks: u64,
    /// Whether it is written.
    pub write: bool,
    /// When the arm has done what it did before; it is at rest from then on.
    pub busy_until: Picos,
}
