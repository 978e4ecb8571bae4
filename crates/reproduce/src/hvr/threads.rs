//! H-15: programs of eight threads (section 7.3.3, Figure 19).

use std::sync::atomic::Ordering;

use piebald_policy::hvr::Policy;
use piebald_report::TargetKind;

use super::{
    Given,
    mixes::{Bench, Mix},
    rows::Runs,
    ways::{BUS, Way},
};
use crate::row::{Found, Row, change, mean};

/// References of each thread before the measured ones, and those (protocol); in the quick form a
/// fifth.
const REFS: u64 = 1_000_000;
const QUICK_REFS: u64 = 200_000;

const RANDOM: Way = Way::Fixed(Policy::Random);

/// H-15.
pub(super) fn eight_threads(runs: &Runs<'_>) -> Given {
    let refs = if runs.form.quick { QUICK_REFS } else { REFS };
    let own = Bench {
        warmup: refs,
        budget: refs,
        ..runs.bench.anew()
    };
    let threaded = |at: &usize| own.programs[*at].threads > 1;
    let mixes: Vec<Mix> = (0..own.programs.len())
        .filter(threaded)
        .map(|at| Mix::alone((at, 0)))
        .collect();
    let ways = [
        Way::Linux,
        RANDOM,
        Way::Among(Policy::BVp),
        Way::Among(Policy::CVp),
    ];
    own.prepare(&mixes, &ways, BUS);
    runs.bench.refs.fetch_add(own.refs(), Ordering::Relaxed);
    let gain = |mix: &Mix, way: Way, over: Way| -> Found {
        change(&own.speed(mix, over, BUS)?, &own.speed(mix, way, BUS)?)
    };
    let mut row = Row::new("H-15", "Figure 19: eight threads", TargetKind::H);
    for mix in &mixes {
        let name = &own.programs[mix.members[0].0].name;
        for (word, over) in [("B-VP", ways[2]), ("C-VP", ways[3])] {
            let found = gain(mix, RANDOM, over);
            row.show(&format!("{name}: random over {word}"), &found, "%");
        }
    }
    for (word, over) in [("B-VP", ways[2]), ("C-VP", ways[3])] {
        let all: Vec<Found> = mixes.iter().map(|m| gain(m, RANDOM, over)).collect();
        row.show(&format!("random over {word}, mean"), &mean(&all), "%");
        row.states(
            format!("random is faster than {word} on average"),
            mean(&all).map(|s| s.mean > 0.0),
        );
        let each: Result<Vec<_>, String> = all.into_iter().collect();
        row.states(
            format!("and for more than half of the programs (over {word})"),
            each.map(|all| all.iter().filter(|s| s.mean > 0.0).count() * 2 > all.len()),
        );
    }
    let over: Vec<Found> = mixes.iter().map(|m| gain(m, RANDOM, Way::Linux)).collect();
    row.show("random over Linux, mean", &mean(&over), "%");
    Ok((vec![row.finish()], Vec::new()))
}
