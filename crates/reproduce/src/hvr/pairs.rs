//! H-20: mixes that are drawn by class.

use piebald_policy::hvr::Class;
use piebald_report::{Sample, TargetKind};

use super::{Given, mixes::Mix, rows::Runs, told::tell, ways::Way};
use crate::row::{Found, Row, mean};

/// Mixes of some programs of each of these classes.
fn drawn(
    runs: &Runs<'_>,
    name: &'static str,
    count: u64,
    wanted: &[(&[Class], usize)],
) -> Vec<Mix> {
    let sets: Vec<(Vec<usize>, usize)> = wanted.iter().map(|(c, n)| (runs.of(c), *n)).collect();
    let sets: Vec<(&[usize], usize)> = sets.iter().map(|(s, n)| (s.as_slice(), *n)).collect();
    let mixes = (0..count).filter_map(|n| Mix::drawn((name, n), &sets));
    mixes.collect()
}

fn gains(runs: &Runs<'_>, mixes: &[Mix], way: Way) -> Vec<Found> {
    let gain = |m: &Mix| runs.bench.gain(m, way, Way::Linux);
    mixes.iter().map(gain).collect()
}

/// H-20.
pub(super) fn workload_22(runs: &Runs<'_>) -> Given {
    let wanted: [(&[Class], usize); 3] = [
        (&[Class::Llct], 5),
        (&[Class::Llch], 2),
        (&[Class::Llcm], 1),
    ];
    let mixes = drawn(runs, "H-20", runs.form.mixes(5, 1), &wanted);
    let ways = [Way::Linux, Way::Svp, Way::Uvp, Way::Hvr];
    runs.bench.prepare(&mixes, &ways);
    let mut row = Row::new("H-20", "Section 7.3.1: workload 22'", TargetKind::H);
    let apart: Result<Vec<bool>, String> = mixes
        .iter()
        .map(|m| runs.bench.is_segregated(m, Way::Hvr))
        .collect();
    row.states(
        "HVR has all LLCT in one eighth of the cache, and nobody else there",
        apart.map(|all| all.iter().all(|a| *a)),
    );
    for (name, way) in [("SVP", Way::Svp), ("UVP", Way::Uvp)] {
        let lead: Vec<Found> = mixes
            .iter()
            .map(|m| runs.bench.gain(m, Way::Hvr, way))
            .collect();
        row.show(&format!("HVR over {name}"), &mean(&lead), "%");
        let all: Result<Vec<Sample>, String> = lead.into_iter().collect();
        row.states(
            format!("HVR is above {name} in each mix"),
            all.map(|all| all.iter().all(|s| s.mean > 0.0)),
        );
    }
    row.show("HVR over Linux", &mean(&gains(runs, &mixes, Way::Hvr)), "%");
    row.note(&format!("{} of 5 mixes", mixes.len()));
    tell(runs, &mut row, &mixes, &ways);
    Ok((vec![row.finish()], Vec::new()))
}
