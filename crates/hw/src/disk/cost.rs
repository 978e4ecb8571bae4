//! What a run of blocks costs on average, in closed form.

use piebald_units::Picos;

use super::geometry::ZoneShape;
use super::spec::ZonedSpec;
use super::zoned::Zoned;

/// Mean time to fetch a run after a random seek: `base + per_sector n`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RunCost {
    base_ps: f64,
    per_sector_ps: f64,
}

impl RunCost {
    /// Overhead of a missed read, mean seek over all pairs of cylinders, half a
    /// revolution; per sector the slower of bus and medium, with the share of
    /// track and cylinder ends, averaged over the zones' blocks.
    pub(super) fn of(zoned: &Zoned, spec: &ZonedSpec) -> Self {
        let mechanics = zoned.mechanics();
        let revolution = mechanics.revolution().0 as f64;
        let cylinders = zoned.map().last_cylinder() + 1;
        let seek = mechanics.curve.mean(cylinders).0 as f64;
        let overhead = spec.overheads.read_miss_after_read.0 as f64;
        let bus = spec.bus.sector.0 as f64;
        let mut sum = 0.0;
        let mut blocks = 0.0;
        for zone in zoned.map().zones() {
            let medium = sector_time(&zone, revolution);
            sum += zone.blocks as f64 * medium.max(bus);
            blocks += zone.blocks as f64;
        }
        Self {
            base_ps: overhead + seek + revolution / 2.0,
            per_sector_ps: sum / f64::max(blocks, 1.0),
        }
    }

    /// Time of a run.
    pub(super) fn time(&self, sectors: u64) -> Picos {
        // A float cast saturates.
        Picos((self.base_ps + self.per_sector_ps * sectors as f64) as u64)
    }
}

/// Mean time per sector of an endless sequential run in a zone: a track takes a
/// revolution and the skew to the next one.
fn sector_time(zone: &ZoneShape, revolution: f64) -> f64 {
    let size = f64::from(zone.track_sectors);
    let tracks = f64::from(zone.surfaces);
    let skew = f64::from(zone.track_skew) * (tracks - 1.0) + f64::from(zone.cylinder_skew);
    revolution / size * (1.0 + skew / tracks / size)
}
