//! Seek curves: time by distance, as a table over all distances.

use piebald_units::Picos;

use super::spec::SeekSpec;

/// Picoseconds of a microsecond.
const US: u64 = 1_000_000;

/// Time by distance for every distance that a disk has.
#[derive(Clone, Debug)]
pub struct SeekCurve {
    /// Index is the distance in cylinders.
    times: Vec<Picos>,
}

impl SeekCurve {
    /// The curve of a disk with this many cylinders (at least 1).
    pub fn new(spec: &SeekSpec, cylinders: u32) -> Self {
        let time = |distance: u32| match (distance, spec) {
            (0, _) => Picos(0),
            (d, SeekSpec::Points(points)) => between(points, d),
            (1, SeekSpec::TwoPiece(p)) => from_ms(p.first_ms),
            (d, SeekSpec::TwoPiece(p)) => from_ms(match d < p.knee {
                true => p.a_ms + p.b_ms * f64::from(d).sqrt(),
                false => p.c_ms + p.e_ms * f64::from(d),
            }),
            (d, SeekSpec::Lee(p)) => {
                let steps = f64::from(d - 1);
                from_ms(p.a_ms + p.b_ms * steps + p.c_ms * steps.sqrt())
            }
        };
        Self {
            times: (0..cylinders.max(1)).map(time).collect(),
        }
    }

    /// Time to move by `distance` cylinders; distances beyond the disk take as
    /// long as the whole of it.
    pub fn time(&self, distance: u32) -> Picos {
        let found = self.times.get(distance as usize).or(self.times.last());
        found.copied().unwrap_or_default()
    }

    /// Mean over all pairs of the first `cylinders` cylinders, equal ones
    /// included: distance d > 0 occurs in 2 (n - d) of n^2 pairs.
    pub fn mean(&self, cylinders: u32) -> Picos {
        let n = u128::from(cylinders.max(1));
        let weighted = (1..cylinders).map(|d| {
            let pairs = 2 * (n - u128::from(d));
            pairs * u128::from(self.time(d).0)
        });
        Picos((weighted.sum::<u128>() / (n * n)) as u64)
    }
}

/// Negative results of a formula count as no time.
fn from_ms(ms: f64) -> Picos {
    // A float cast saturates, and turns what is no number into 0.
    Picos((ms * 1e9) as u64)
}

/// Straight line through the neighbours of `distance`. Points start at distance
/// 1 and rise, which the check of the description has made sure of.
fn between(points: &[(u32, u32)], distance: u32) -> Picos {
    let above = points.partition_point(|p| p.0 < distance);
    let upper = above.min(points.len() - 1);
    let (d1, t1) = points[upper];
    if upper == 0 || d1 == distance {
        return Picos(u64::from(t1) * US);
    }
    let (d0, t0) = points[upper - 1];
    let slope = (i64::from(t1) - i64::from(t0)) * US as i64;
    let offset = i128::from(slope) * i128::from(distance - d0) / i128::from(d1 - d0);
    let time = i128::from(t0) * i128::from(US) + offset;
    Picos(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Lee, TwoPiece};
    use super::*;

    #[test]
    fn points_are_joined_by_straight_lines_and_the_last_line_goes_on() {
        let curve = SeekCurve::new(&SeekSpec::Points(vec![(1, 800), (3, 1000), (10, 1700)]), 21);
        let us: Vec<u64> = [0, 1, 2, 3, 4, 10, 12].map(|d| curve.time(d).0 / US).into();
        assert_eq!(us, [0, 800, 900, 1000, 1100, 1700, 1900]);
        assert_eq!(curve.time(500), curve.time(20), "no further than the disk");
    }

    #[test]
    fn both_pieces_and_the_first_cylinder_follow_their_own_formula() {
        // HP 97560 as often quoted: 3.24 + 0.400 sqrt(d) below 383, else 8.00 + 0.008 d.
        let spec = SeekSpec::TwoPiece(TwoPiece {
            first_ms: 3.6,
            knee: 383,
            a_ms: 3.24,
            b_ms: 0.4,
            c_ms: 8.0,
            e_ms: 0.008,
        });
        let curve = SeekCurve::new(&spec, 1962);
        let close = |d: u32, ms: f64| (curve.time(d).0 as f64 / 1e9 - ms).abs() < 1e-6;
        assert!(close(1, 3.6));
        assert!(close(100, 3.24 + 0.4 * 10.0));
        assert!(close(382, 3.24 + 0.4 * 382f64.sqrt()));
        assert!(close(383, 8.0 + 0.008 * 383.0));
        assert!(close(1961, 8.0 + 0.008 * 1961.0));
    }

    #[test]
    fn lees_formula_has_its_constant_at_one_cylinder() {
        let spec = SeekSpec::Lee(Lee {
            a_ms: 1.5,
            b_ms: 0.002,
            c_ms: 0.1,
        });
        let curve = SeekCurve::new(&spec, 1000);
        assert_eq!(curve.time(1), Picos(1_500_000_000));
        let ms = 1.5 + 0.002 * 99.0 + 0.1 * 99f64.sqrt();
        assert!((curve.time(100).0 as f64 / 1e9 - ms).abs() < 1e-6);
    }

    #[test]
    fn the_mean_counts_every_pair_once() {
        let curve = SeekCurve::new(&SeekSpec::Points(vec![(1, 3), (2, 5), (9, 40)]), 10);
        let mut sum = 0;
        for a in 0..10u32 {
            for b in 0..10u32 {
                sum += curve.time(a.abs_diff(b)).0;
            }
        }
        assert_eq!(curve.mean(10), Picos(sum / 100));
    }
}
