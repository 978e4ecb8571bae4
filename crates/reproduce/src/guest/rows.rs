//! Numbers of both kernels in a row.

use piebald_report::{Published, Sample, Value};

use super::{
    agree::{Kind, agree},
    case::Case,
    kernels::{Kernels, Pair},
};
use crate::row::{Row, change, negated};

/// A number whose agreement is judged.
pub(super) fn judge(row: &mut Row, name: &str, pair: &Pair, kind: Kind) {
    match &pair.modelled {
        Ok(modelled) => {
            let mean = modelled.mean;
            let real = pair.real.clone();
            row.judge(name, Published::Number(mean), real, kind.unit(), |s| {
                agree(kind, mean, s.mean)
            });
        }
        Err(why) => {
            row.missing(why);
            show(row, name, pair, kind.unit());
        }
    }
}

/// A number that is shown and not judged.
pub(super) fn show(row: &mut Row, name: &str, pair: &Pair, unit: &str) {
    let known = |s: &Sample| s.is_known().then_some(s.mean);
    let [modelled, real] = [&pair.modelled, &pair.real].map(|f| f.as_ref().ok().and_then(known));
    row.target.values.push(Value {
        name: name.to_owned(),
        paper: modelled.map_or(Published::Nothing, Published::Number),
        measured: real,
        ci95: None,
        unit: unit.to_owned(),
    });
}

/// By how much a case's misses together are fewer one way than another, in percent.
pub(super) fn fewer(kernels: &Kernels, case: &Case, [before, after]: [&str; 2]) -> Pair {
    let [before, after] = [before, after].map(|way| kernels.misses(case, way, true));
    before.with(&after, |before, after| negated(change(before, after)))
}

/// By how much the time of an instruction of a program beside the others is less, in percent.
pub(super) fn faster(
    kernels: &Kernels,
    case: &Case,
    [before, after]: [&str; 2],
    name: &str,
) -> Pair {
    let [before, after] = [before, after].map(|way| kernels.cycles(case, way, name));
    before.with(&after, |before, after| negated(change(before, after)))
}

#[cfg(test)]
mod tests {
    use piebald_report::{TargetKind, Verdict};

    use super::*;

    fn pair(modelled: Option<f64>, real: Option<f64>) -> Pair {
        let found = |x: Option<f64>| {
            let x = x.ok_or_else(|| "no boot".to_owned())?;
            Ok(Sample::new(vec![x]))
        };
        Pair {
            modelled: found(modelled),
            real: found(real),
        }
    }

    #[test]
    fn a_row_is_as_far_apart_as_its_worst_number() {
        let row = |pairs: &[Pair]| {
            let mut row = Row::new("S-9", "t", TargetKind::H);
            for p in pairs {
                judge(&mut row, "a", p, Kind::Misses);
            }
            row.finish()
        };
        let good = pair(Some(1000.0), Some(1100.0));
        let far = pair(Some(1000.0), Some(3000.0));
        assert_eq!(row(std::slice::from_ref(&good)).verdict, Verdict::Match);
        assert_eq!(row(&[good.clone(), far]).verdict, Verdict::Miss);
        for missing in [pair(None, Some(1.0)), pair(Some(1.0), None)] {
            let found = row(&[good.clone(), missing]);
            assert_eq!(found.verdict, Verdict::NotRun);
            assert_eq!(found.why.as_deref(), Some("no boot"));
            assert_eq!(found.values.len(), 2);
        }
    }
}
