//! Classes of programs by counters of misses, as far as utility-based partitioning has them: each
//! alone where it is met, one run (protocol, H-B2). Of a program that a mix has twice, both have the
//! class of the first copy's place.

use piebald_policy::hvr::{Borders, Class, Counts};

use super::{
    mixes::{Mix, Ran},
    rows::Runs,
    ways::Way,
};

/// Cycles that the paper's machine takes to read a line from a row that is closed, with nothing else
/// under way: 62 ns.
const LATENCY: u32 = 175;

/// Steps of the grid to either side of a cost, each a factor of the square root of two: from a 64th to 64 times
/// as much.
const STEPS: i32 = 12;

/// A cost on the grid, and how far it is from the value that it starts from.
fn line(value: u32) -> impl Iterator<Item = (u32, u32)> {
    let at = move |step: i32| f64::from(value) * 2f64.powf(f64::from(step) / 2.0);
    let steps = -STEPS..=STEPS;
    steps.map(move |step| ((at(step).round() as u32).max(1), step.unsigned_abs()))
}

/// What fits best.
struct Fit<T> {
    /// Of those with the highest score, the nearest to where the grid starts from.
    best: T,
    /// The same for each case without it: fitted to all others.
    without: Vec<T>,
}

/// The best so far: its score, and how near the start of the grid it is.
type Best<T> = (i32, std::cmp::Reverse<u32>, T);

fn improve<T: Copy>(best: &mut Option<Best<T>>, score: i32, far: u32, of: T) {
    let near = std::cmp::Reverse(far);
    if best.is_none_or(|known| (score, near) > (known.0, known.1)) {
        *best = Some((score, near, of));
    }
}

/// What has the highest score of a grid, whose members come with their distances from where it starts. Of some
/// that are as good and as near the first of the grid is taken.
///
/// # Errors
/// No case, or an empty grid.
fn search<T: Copy, C>(
    grid: impl Iterator<Item = (T, u32)>,
    cases: &[C],
    score: impl Fn(&T, &C) -> i32,
) -> Result<Fit<T>, String> {
    if cases.is_empty() {
        return Err("no program was classified".to_owned());
    }
    let (mut best, mut without) = (None, vec![None; cases.len()]);
    let mut scores = vec![0; cases.len()];
    for (member, far) in grid {
        for (slot, case) in scores.iter_mut().zip(cases) {
            *slot = score(&member, case);
        }
        let sum: i32 = scores.iter().sum();
        improve(&mut best, sum, far, member);
        for (best, score) in without.iter_mut().zip(&scores) {
            improve(best, sum - score, far, member);
        }
    }
    let found = |best: Option<Best<T>>| best.map(|(.., of)| of);
    let without = without.into_iter().map(found).collect::<Option<Vec<T>>>();
    let fit = found(best).zip(without);
    let fit = fit.map(|(best, without)| Fit { best, without });
    fit.ok_or_else(|| "there is nothing on the grid".to_owned())
}

/// What a program's counters said, and its measured class.
struct Case {
    /// Of a billion cycles.
    instructions: u64,
    lines: u64,
    misses: Vec<u64>,
    class: Class,
}

const CYCLES: u64 = 1_000_000_000;

impl Case {
    fn of(ran: &Ran, clock: f64, class: Class) -> Option<Self> {
        let did = ran.did.first()?;
        let instructions = did.ipc * CYCLES as f64;
        let misses = ran.curve.iter();
        Some(Self {
            instructions: instructions as u64,
            lines: (did.lines / 1000.0 * instructions) as u64,
            // Those of a second.
            misses: misses
                .map(|n| (*n as f64 / clock * CYCLES as f64) as u64)
                .collect(),
            class,
        })
    }

    fn told(&self, miss_cycles: u32) -> Option<Class> {
        let counts = Counts {
            cycles: CYCLES,
            instructions: self.instructions,
            lines: self.lines,
            misses: &self.misses,
        };
        Borders::OURS.classify(&counts.predicted(miss_cycles)?)
    }

    fn is_right(&self, miss_cycles: u32) -> bool {
        self.told(miss_cycles) == Some(self.class)
    }
}

/// Classes by counters.
pub(super) struct Told {
    /// Of all programs, by their places; with a miss that costs what memory takes.
    pub latency: Vec<Option<Class>>,
    /// With a cost that fits all other programs.
    pub fitted: Vec<Option<Class>>,
    /// Share of the programs that are told right by either, and by the cost that fits all, in percent.
    pub right: [f64; 3],
    /// That cost.
    pub best: u32,
    /// Programs that the second tells otherwise: name, as what, measured as what.
    pub wrong: Vec<String>,
}

/// Tells the programs of one thread.
///
/// # Errors
/// A program could not be run.
pub(super) fn told(runs: &Runs<'_>) -> Result<Told, String> {
    let bench = &runs.bench;
    let places = runs.of(&Class::ALL);
    let alone = |at: usize| Mix::alone((at, 0));
    let mixes: Vec<Mix> = places.iter().map(|at| alone(*at)).collect();
    bench.prepare(&mixes, &[Way::Linux]);
    let clock = bench.spec.core.clock.0 as f64;
    let case = |at: &usize| {
        let name = &bench.programs[*at].name;
        let ran = bench.known(&(Way::Linux, alone(*at), 0));
        let ran = ran.map_err(|why| format!("{name}: {why}"))?;
        let class = bench.classes[*at].ok_or(format!("{name}: it has no class"))?;
        let case = Case::of(&ran, clock, class);
        let case = case.filter(|case| case.told(LATENCY).is_some());
        case.ok_or(format!("{name}: it has no miss curve"))
    };
    let cases = places.iter().map(case).collect::<Result<Vec<_>, _>>()?;
    let grid = line(LATENCY);
    let fit = search(grid, &cases, |cycles, case| {
        i32::from(case.is_right(*cycles))
    })?;
    let classes = |cycles: &dyn Fn(usize) -> u32| {
        let mut classes = bench.classes.to_vec();
        for (i, (at, case)) in places.iter().zip(&cases).enumerate() {
            classes[*at] = case.told(cycles(i));
        }
        classes
    };
    let right = |cycles: &dyn Fn(usize) -> u32| {
        let all = cases.iter().enumerate();
        let right = all.filter(|(i, case)| case.is_right(cycles(*i))).count();
        100.0 * right as f64 / cases.len() as f64
    };
    let others = |i: usize| fit.without[i];
    let fitted = classes(&others);
    let wrong = places.iter().zip(&cases).filter_map(|(at, case)| {
        let told = fitted[*at].filter(|told| *told != case.class)?;
        Some(format!(
            "{} {told} ({})",
            bench.programs[*at].name, case.class
        ))
    });
    Ok(Told {
        latency: classes(&|_| LATENCY),
        wrong: wrong.collect(),
        right: [right(&|_| LATENCY), right(&others), right(&|_| fit.best)],
        best: fit.best,
        fitted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hvr::mixes::Did;

    /// A run at one instruction per cycle.
    fn ran(lines: f64, curve: Vec<u64>) -> Ran {
        let did = Did {
            pace: 0.4,
            ipc: 1.0,
            lines,
        };
        Ran {
            did: vec![did],
            curve,
            parts: Vec::new(),
        }
    }

    #[test]
    fn the_nearest_of_the_best_is_taken_with_and_without_each_case() {
        // Each case is right from its own cost on.
        let found = search(line(100), &[100, 150, 400], |cost, case| {
            i32::from(cost >= case)
        });
        let found = found.expect("three cases");
        assert_eq!((found.best, found.without), (400, vec![400, 400, 200]));
        let none: [u32; 0] = [];
        assert!(search(line(100), &none, |_, _| 0).is_err());
        let all: Vec<u32> = line(100).map(|(cost, _)| cost).collect();
        assert_eq!((all[0], all[24]), (2, 6400));
    }

    #[test]
    fn misses_of_a_second_become_those_of_cycles() {
        // At 2 GHz a tenth of the time is a million misses of 200 cycles a second.
        let with = |least: u64, half: u64, lines: f64| {
            let mut curve = vec![half; 32];
            curve[..15].fill(least);
            curve[16..].fill(0);
            let case = Case::of(&ran(lines, curve), 2e9, Class::Ccf).expect("a run");
            case.told(200)
        };
        assert_eq!(with(999_000, 0, 4.9), Some(Class::Ccf));
        assert_eq!(with(999_000, 0, 5.1), Some(Class::Llct));
        assert_eq!(with(1_001_000, 999_000, 5.1), Some(Class::Llcm));
        assert_eq!(with(1_001_000, 1_001_000, 0.0), Some(Class::Llch));
        let short = Case::of(&ran(0.0, Vec::new()), 2e9, Class::Ccf);
        assert_eq!(short.expect("a run").told(200), None);
    }
}
