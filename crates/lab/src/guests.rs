//! What only studies in guests have: the worst of a target's runs, and who held the frames of its colours.

use std::collections::BTreeMap;

use piebald_report::{Extra, Sample};

use crate::Counted;

/// Figures of a repetition's runs: name, unit, and what it is. Runs are pairs of milliseconds, and of misses of the last level
/// for a million instructions.
const OF_RUNS: [Figure; 4] = [
    ("runs", "", |runs| runs.len() as f64),
    ("time of a run", "ms", |runs| {
        runs.iter().map(|run| run.0).sum::<f64>() / runs.len() as f64
    }),
    ("time of the slowest run", "ms", |runs| {
        runs.iter().map(|run| run.0).fold(0.0, f64::max)
    }),
    ("last-level misses of the worst run", "/M instr", |runs| {
        runs.iter().map(|run| run.1).fold(0.0, f64::max)
    }),
];

type Figure = (&'static str, &'static str, fn(&[(f64, f64)]) -> f64);

/// Figures of frames, and which lines of a set's file `frames` each sums up.
const OF_FRAMES: [(&str, &[&str]); 3] = [
    ("frames of its colors", &["total"]),
    (
        "frames of others in its colors",
        &["sharing", "others", "dying", "pinned"],
    ),
    ("frames of the kernel in its colors", &["kernel"]),
];

/// Names of these figures.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let of_runs = OF_RUNS.iter().map(|(name, ..)| *name);
    of_runs.chain(OF_FRAMES.iter().map(|(name, _)| *name))
}

/// Of the runs of each repetition, where a target has more than one in each; `last`: the last level's place among those
/// that are counted.
pub fn of_runs(repetitions: &[Vec<Counted>], last: usize) -> Vec<Extra> {
    if repetitions.is_empty() || repetitions.iter().any(|runs| runs.len() < 2) {
        return Vec::new();
    }
    let pair = |run: &Counted| {
        let misses = run.misses.get(last).copied().unwrap_or(0.0);
        (run.time_ps * 1e-9, 1e6 * misses / run.instructions)
    };
    let pairs = repetitions
        .iter()
        .map(|runs| runs.iter().map(pair).collect());
    let pairs: Vec<Vec<(f64, f64)>> = pairs.collect();
    let figure = |(name, unit, of): Figure| Extra {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value: pairs.iter().map(|runs| of(runs)).collect::<Sample>(),
    };
    OF_RUNS.map(figure).into()
}

/// The first line of a set's file `frames` that these figures need and that is not there.
pub fn missing_frames(frames: &BTreeMap<String, u64>) -> Option<&'static str> {
    let mut needed = OF_FRAMES.iter().flat_map(|(_, of)| of.iter().copied());
    needed.find(|name| !frames.contains_key(*name))
}

/// Of the numbers in the file `frames` of a target's set, of each repetition; none if they are not there in all.
pub fn of_frames(repetitions: &[&BTreeMap<String, u64>]) -> Vec<Extra> {
    let is_missing = |frames: &&BTreeMap<String, u64>| missing_frames(frames).is_some();
    if repetitions.is_empty() || repetitions.iter().any(is_missing) {
        return Vec::new();
    }
    let figure = |(name, of): (&str, &[&str])| {
        let sum = |frames: &&BTreeMap<String, u64>| {
            let held = of.iter().filter_map(|one| frames.get(*one));
            held.sum::<u64>() as f64
        };
        Extra {
            name: name.to_owned(),
            unit: String::new(),
            value: repetitions.iter().map(sum).collect::<Sample>(),
        }
    };
    OF_FRAMES.map(figure).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(time_ps: f64, misses: f64) -> Counted {
        Counted {
            time_ps,
            instructions: 2e6,
            misses: [misses * 3.0, misses * 2.0, misses],
            ..Counted::default()
        }
    }

    fn of<'a>(all: &'a [Extra], name: &str) -> &'a Sample {
        let found = all.iter().find(|extra| extra.name == name);
        &found.unwrap_or_else(|| panic!("{name}")).value
    }

    #[test]
    fn the_worst_run_is_that_of_a_repetition() {
        let first = vec![run(1e9, 10.0), run(4e9, 2.0), run(1e9, 3.0)];
        let second = vec![run(2e9, 1.0), run(2e9, 8.0), run(2e9, 3.0)];
        let all = of_runs(&[first.clone(), second], 2);
        assert_eq!(of(&all, "runs").mean, 3.0);
        assert_eq!(of(&all, "time of a run").mean, 2.0);
        assert_eq!(of(&all, "time of the slowest run").mean, 3.0);
        assert_eq!(of(&all, "last-level misses of the worst run").mean, 4.5);
        assert!(of_runs(&[first, vec![run(1e9, 1.0)]], 2).is_empty());
        assert!(of_runs(&[], 2).is_empty());
    }

    #[test]
    fn frames_of_others_are_all_that_are_not_its_own_or_the_kernels() {
        let said = |own: u64| {
            let names = [
                "total", "free", "own", "sharing", "others", "dying", "pinned", "kernel", "slab",
            ];
            let numbers = [1000, 500, own, 1, 2, 4, 8, 64, 32];
            let pairs = names.map(str::to_owned).into_iter().zip(numbers);
            pairs.collect::<BTreeMap<String, u64>>()
        };
        let (one, other, none) = (said(100), said(200), BTreeMap::new());
        let all = of_frames(&[&one, &other]);
        assert_eq!(of(&all, "frames of its colors").mean, 1000.0);
        assert_eq!(of(&all, "frames of others in its colors").mean, 15.0);
        assert_eq!(of(&all, "frames of the kernel in its colors").mean, 64.0);
        assert!(
            of_frames(&[&one, &none]).is_empty(),
            "in one boot it had no colors"
        );
        assert_eq!(missing_frames(&one), None);
        let mut torn = one.clone();
        torn.remove("dying");
        assert_eq!(missing_frames(&torn), Some("dying"));
        assert!(
            of_frames(&[&one, &torn]).is_empty(),
            "what is not told is not 0"
        );
    }
}
