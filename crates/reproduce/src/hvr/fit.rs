//! Thresholds of the classifier that fit measured classes best: how much of what SysMon gets wrong
//! is its thresholds, and how much is what it looks at (protocol, H-7).
//!
//! A *case* is a program with the facts of its windows and its measured class. Thresholds are
//! searched on a grid around the paper's; one is as far from these as the steps that lead to it.

use piebald_policy::hvr::{Class, Facts, LowLocality, Thresholds};

/// What a program's windows told when it was first classified, and what it was measured as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub facts: Facts,
    pub class: Class,
}

/// Steps of the grid to either side of a threshold of the paper's, each a factor of the square
/// root of two: from a 64th to 64 times as much.
const STEPS: i32 = 12;

/// What fits best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fit<T> {
    /// Of those with the highest score, the nearest to where the grid starts from.
    pub best: T,
    /// The same for each case without it: fitted to all others.
    pub without: Vec<T>,
}

/// A threshold so many steps away, at least 1.
fn stepped(value: u32, steps: i32) -> u32 {
    let value = f64::from(value) * 2f64.powf(f64::from(steps) / 2.0);
    (value.round() as u32).max(1)
}

/// A threshold on the grid, and how far it is from the value that it starts from.
pub(super) fn line(value: u32) -> impl Iterator<Item = (u32, u32)> {
    let steps = -STEPS..=STEPS;
    steps.map(move |step| (stepped(value, step), step.unsigned_abs()))
}

/// Everything on the grid, and how far it is from the paper's.
fn grid() -> impl Iterator<Item = (Thresholds, u32)> {
    let paper = Thresholds::PAPER;
    let steps = || -STEPS..=STEPS;
    let places = steps().flat_map(move |reuse| {
        steps().flat_map(move |ccf| {
            steps().flat_map(move |freq| steps().map(move |llch| [reuse, ccf, freq, llch]))
        })
    });
    places.flat_map(move |at| {
        let [reuse, ccf, freq, llch] = at;
        let far: u32 = at.iter().map(|step| step.unsigned_abs()).sum();
        [LowLocality::Llct, LowLocality::Ccf].map(|low_locality| {
            let thresholds = Thresholds {
                reuse_passes: stepped(paper.reuse_passes, reuse),
                ccf_pages: stepped(paper.ccf_pages, ccf),
                hot_freq_bp: stepped(paper.hot_freq_bp, freq),
                llch_pages: stepped(paper.llch_pages, llch),
                low_locality,
            };
            let exit = u32::from(low_locality != paper.low_locality);
            (thresholds, far + exit)
        })
    })
}

/// What a fit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Cases that are told right.
    Right,
    /// These, less [`FALSE_ALARM`] for each case that is wrongly held for an LLCT.
    Careful,
}

/// What a program that is wrongly held for an LLCT costs, in programs that are told right.
const FALSE_ALARM: i32 = 3;

impl Counted {
    fn score(self, thresholds: &Thresholds, case: &Case) -> i32 {
        let told = thresholds.classify(&case.facts);
        match (told == case.class, told, self) {
            (true, ..) => 1,
            (false, Class::Llct, Self::Careful) => -FALSE_ALARM,
            (false, ..) => 0,
        }
    }
}

/// The best so far: its score, and how near the start of the grid it is.
type Best<T> = (i32, std::cmp::Reverse<u32>, T);

fn improve<T: Copy>(best: &mut Option<Best<T>>, score: i32, far: u32, of: T) {
    let near = std::cmp::Reverse(far);
    if best.is_none_or(|known| (score, near) > (known.0, known.1)) {
        *best = Some((score, near, of));
    }
}

/// Fits thresholds to cases. Of some that are as good and as near the first of the grid is taken.
///
/// # Errors
/// No case.
pub(super) fn fit(cases: &[Case], counted: Counted) -> Result<Fit<Thresholds>, String> {
    search(grid(), cases, |thresholds, case| {
        counted.score(thresholds, case)
    })
}

/// The same with any grid, whose members come with their distances from where it starts, and any
/// score.
///
/// # Errors
/// No case, or an empty grid.
pub(super) fn search<T: Copy, C>(
    grid: impl Iterator<Item = (T, u32)>,
    cases: &[C],
    score: impl Fn(&T, &C) -> i32,
) -> Result<Fit<T>, String> {
    if cases.is_empty() {
        return Err("no program was classified".to_owned());
    }
    let (mut best, mut without) = (None, vec![None; cases.len()]);
    let mut scores = vec![0; cases.len()];
    for (thresholds, far) in grid {
        for (slot, case) in scores.iter_mut().zip(cases) {
            *slot = score(&thresholds, case);
        }
        let sum: i32 = scores.iter().sum();
        improve(&mut best, sum, far, thresholds);
        for (best, score) in without.iter_mut().zip(&scores) {
            improve(best, sum - score, far, thresholds);
        }
    }
    let found = |best: Option<Best<T>>| best.map(|(.., of)| of);
    let without = without.into_iter().map(found).collect::<Option<Vec<T>>>();
    let fit = found(best).zip(without);
    let fit = fit.map(|(best, without)| Fit { best, without });
    fit.ok_or_else(|| "there is nothing on the grid".to_owned())
}

/// Share of the cases that some thresholds put right, in percent.
pub(super) fn right(cases: &[Case], of: impl Fn(usize) -> Thresholds) -> f64 {
    let is_right = |(at, case): &(usize, &Case)| of(*at).classify(&case.facts) == case.class;
    let count = cases.iter().enumerate().filter(is_right).count();
    100.0 * count as f64 / cases.len().max(1) as f64
}

/// Share of the cases that are of the class which most are of, in percent: what an answer that
/// looks at nothing gets right.
pub(super) fn commonest(cases: &[Case]) -> f64 {
    let of = |class: Class| cases.iter().filter(|c| c.class == class).count();
    let most = Class::ALL.into_iter().map(of).max().unwrap_or(0);
    100.0 * most as f64 / cases.len().max(1) as f64
}

/// Thresholds in words.
pub(super) fn words(t: &Thresholds) -> String {
    let exit = match t.low_locality {
        LowLocality::Llct => "LLCT",
        LowLocality::Ccf => "CCF",
    };
    format!(
        "re-use {} passes, CCF up to {} pages, low WPD up to {} hundredths of a percent ({exit}), LLCH from {} pages",
        t.reuse_passes, t.ccf_pages, t.hot_freq_bp, t.llch_pages
    )
}

#[cfg(test)]
mod tests {
    use piebald_policy::hvr::{Mean, Wpd};

    use super::*;

    fn case(hot: u64, reuse: u64, wpd_tenths: u64, class: Class) -> Case {
        Case {
            facts: Facts {
                hot_pages: Mean::of(hot),
                reuse_centi: Mean::of(reuse * 100),
                wpd: Wpd {
                    tenths: wpd_tenths,
                    used: 100,
                },
            },
            class,
        }
    }

    #[test]
    fn the_grid_holds_the_papers_thresholds_once_and_64_times_either_way() {
        let all: Vec<_> = grid().collect();
        assert_eq!(all.len(), 25usize.pow(4) * 2);
        let papers = all.iter().filter(|(t, _)| *t == Thresholds::PAPER);
        assert_eq!(papers.map(|(_, far)| *far).collect::<Vec<_>>(), [0]);
        let llch: Vec<u32> = all.iter().map(|(t, _)| t.llch_pages).collect();
        assert_eq!(llch.iter().min().copied(), Some(16));
        assert_eq!(llch.iter().max().copied(), Some(64_000));
    }

    #[test]
    fn what_the_paper_gets_right_is_left_as_it_is() {
        let cases = [
            case(50, 90, 500, Class::Ccf),
            case(500, 90, 500, Class::Llcm),
            case(5000, 90, 500, Class::Llch),
            case(500, 9, 500, Class::Llct),
        ];
        let fit = fit(&cases, Counted::Right).expect("four cases");
        assert_eq!(fit.best, Thresholds::PAPER);
        assert_eq!(right(&cases, |_| fit.best), 100.0);
        assert_eq!(commonest(&cases), 25.0);
    }

    #[test]
    fn thresholds_move_as_far_as_they_must_and_no_further() {
        // LLCM up to 1500 hot pages, LLCH from 3000 on: one or two steps of the last threshold.
        let cases = [
            case(500, 90, 500, Class::Llcm),
            case(1300, 90, 500, Class::Llcm),
            case(3000, 90, 500, Class::Llch),
        ];
        let fit = fit(&cases, Counted::Right).expect("three cases");
        let one_step = Thresholds {
            llch_pages: 1414,
            ..Thresholds::PAPER
        };
        assert_eq!(fit.best, one_step);
        // Without the one that needs it, the paper's are as good and nearer.
        let each = [one_step, Thresholds::PAPER, one_step];
        assert_eq!(fit.without, each);
        // That one is wrong by what the others teach; the two others are right.
        let left_out = right(&cases, |at| fit.without[at]);
        assert!((left_out - 200.0 / 3.0).abs() < 1e-9, "{left_out}");
    }

    #[test]
    fn classes_that_say_nothing_of_the_windows_are_not_learnt() {
        // The same facts with different classes: the best gets the commoner, the one left out is wrong.
        let same = |class| case(500, 90, 500, class);
        let cases = [same(Class::Llcm), same(Class::Llch)];
        let fit = fit(&cases, Counted::Right).expect("two cases");
        assert_eq!(right(&cases, |_| fit.best), 50.0);
        assert_eq!(right(&cases, |at| fit.without[at]), 0.0);
        assert!(super::fit(&[], Counted::Right).is_err());
    }

    #[test]
    fn a_false_alarm_outweighs_what_it_gets_right() {
        // Two LLCT are told from an LLCH by no threshold.
        let cases = [
            case(5000, 9, 500, Class::Llct),
            case(5000, 9, 500, Class::Llct),
            case(5000, 9, 500, Class::Llch),
        ];
        let told = |counted| {
            let fit = fit(&cases, counted).expect("three cases");
            fit.best.classify(&cases[0].facts)
        };
        assert_eq!(told(Counted::Right), Class::Llct);
        assert_eq!(told(Counted::Careful), Class::Llch);
    }
}
