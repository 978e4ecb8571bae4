//! SysMon's thresholds in formulas: which class they tell, and which of them tell given classes best.
//!
//! A *case* is a program with what its class is told from and the class that it has. Thresholds are
//! searched on a grid around the paper's; one is as far from these as the steps that lead to it.

use std::{collections::BTreeMap, sync::Arc};

use piebald_experiment::Words;
use piebald_policy::hvr::{Class, LowLocality, Thresholds};

use super::eval::{Fault, Value, Valued, number, wrong};

/// What a class is told from: hot pages, re-use time in passes, and WPD in hundredths of a percent.
#[derive(Clone, Copy, Debug)]
struct Facts {
    hot_pages: f64,
    reuse_passes: f64,
    wpd_bp: f64,
}

/// What is known of a program, and its class.
#[derive(Clone, Copy, Debug)]
struct Case {
    facts: Facts,
    class: Class,
}

/// Steps of the grid to either side of a threshold of the paper's, each a factor of the square
/// root of two: from a 64th to 64 times as much.
const STEPS: i32 = 12;

/// A threshold so many steps away, at least 1.
fn stepped(value: u32, steps: i32) -> u32 {
    let value = f64::from(value) * 2f64.powf(f64::from(steps) / 2.0);
    (value.round() as u32).max(1)
}

/// The class that thresholds tell, as [`Thresholds::classify`] does of windows.
fn told(thresholds: &Thresholds, facts: &Facts) -> Class {
    let has_many = facts.hot_pages > f64::from(thresholds.ccf_pages);
    if !has_many {
        Class::Ccf
    } else if facts.reuse_passes <= f64::from(thresholds.reuse_passes) {
        Class::Llct
    } else if facts.wpd_bp <= f64::from(thresholds.hot_freq_bp) {
        match thresholds.low_locality {
            LowLocality::Llct => Class::Llct,
            LowLocality::Ccf => Class::Ccf,
        }
    } else if facts.hot_pages >= f64::from(thresholds.llch_pages) {
        Class::Llch
    } else {
        Class::Llcm
    }
}

/// Some of the cases, as bits.
type Set = Vec<u64>;

/// Those for which it holds.
fn those(cases: &[Case], is: impl Fn(&Case) -> bool) -> Set {
    let chunk = |chunk: &[Case]| {
        let bits = chunk.iter().enumerate();
        bits.fold(0, |set, (at, case)| set | (u64::from(is(case)) << at))
    };
    cases.chunks(64).map(chunk).collect()
}

/// The thresholds that tell most cases right, where one that is wrongly held for an LLCT costs so many
/// that are told right; of some that are as good those that are nearest to the paper's, and of these the first
/// of the grid.
fn fit(cases: &[Case], alarm: f64) -> Thresholds {
    let paper = Thresholds::PAPER;
    // The cases that pass a test, by the steps of its threshold.
    let by_step = |value: u32, passes: &dyn Fn(&Case, f64) -> bool| -> Vec<(i32, u32, Set)> {
        let line = (-STEPS..=STEPS).map(|step| (step, stepped(value, step)));
        line.map(|(step, value)| (step, value, those(cases, |c| passes(c, f64::from(value)))))
            .collect()
    };
    let soon = by_step(paper.reuse_passes, &|c, limit| {
        c.facts.reuse_passes <= limit
    });
    let many = by_step(paper.ccf_pages, &|c, limit| c.facts.hot_pages > limit);
    let low = by_step(paper.hot_freq_bp, &|c, limit| c.facts.wpd_bp <= limit);
    let large = by_step(paper.llch_pages, &|c, limit| c.facts.hot_pages >= limit);
    let [ccf, llcm, llch, llct] = Class::ALL.map(|class| those(cases, |c| c.class == class));
    let mut best: Option<(f64, u32, Thresholds)> = None;
    for (a, reuse_passes, soon) in &soon {
        for (b, ccf_pages, many) in &many {
            for (c, hot_freq_bp, low) in &low {
                for (d, llch_pages, large) in &large {
                    let mut counts = [[0u32; 2]; 2];
                    for (at, many) in many.iter().enumerate() {
                        let rest = many & !soon[at];
                        let (loose, kept) = (rest & low[at], rest & !low[at]);
                        let (large, soon) = (large[at], many & soon[at]);
                        let sure = (kept & large & llch[at]) | (kept & !large & llcm[at]);
                        let exits = [(soon | loose, !many), (soon, loose | !many)];
                        for (counts, (as_llct, as_ccf)) in counts.iter_mut().zip(exits) {
                            let right = sure | (as_llct & llct[at]) | (as_ccf & ccf[at]);
                            counts[0] += right.count_ones();
                            counts[1] += (as_llct & !llct[at]).count_ones();
                        }
                    }
                    let far: u32 = [a, b, c, d].iter().map(|step| step.unsigned_abs()).sum();
                    for (low_locality, [right, alarms]) in [LowLocality::Llct, LowLocality::Ccf]
                        .into_iter()
                        .zip(counts)
                    {
                        let score = f64::from(right) - alarm * f64::from(alarms);
                        let far = far + u32::from(low_locality != paper.low_locality);
                        let is_better = best.is_none_or(|(high, near, _)| {
                            score > high || (score == high && far < near)
                        });
                        if is_better {
                            let found = Thresholds {
                                reuse_passes: *reuse_passes,
                                ccf_pages: *ccf_pages,
                                hot_freq_bp: *hot_freq_bp,
                                llch_pages: *llch_pages,
                                low_locality,
                            };
                            best = Some((score, far, found));
                        }
                    }
                }
            }
        }
    }
    best.map_or(paper, |(.., found)| found)
}

/// Thresholds in words.
fn words(t: &Thresholds) -> String {
    let exit = match t.low_locality {
        LowLocality::Llct => "LLCT",
        LowLocality::Ccf => "CCF",
    };
    format!(
        "re-use {} passes, CCF up to {} pages, low WPD up to {} hundredths of a percent ({exit}), LLCH from {} pages",
        t.reuse_passes, t.ccf_pages, t.hot_freq_bp, t.llch_pages
    )
}

/// Thresholds as a value, with the names of the keys of `[sysmon]`.
fn value(t: &Thresholds) -> Value {
    let number = |n: u32| Value::Number(n.into());
    let columns = [
        ("name", Value::Text(words(t))),
        ("reuse_passes", number(t.reuse_passes)),
        ("ccf_pages", number(t.ccf_pages)),
        ("hot_freq_bp", number(t.hot_freq_bp)),
        ("llch_pages", number(t.llch_pages)),
        (
            "low_locality",
            Value::Text(t.low_locality.word().to_owned()),
        ),
    ];
    let columns: BTreeMap<String, Value> = columns
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Value::Item(Arc::new(columns))
}

/// The thresholds of a value; those that it does not have are the paper's.
fn read(value: &Value) -> Valued<Thresholds> {
    let Value::Item(columns) = value else {
        return wrong(format!(
            "thresholds: {}: allowed: what thresholds(...) gives, or a value of an axis with reuse_passes, \
             ccf_pages, hot_freq_bp, llch_pages or low_locality",
            value.sort()
        ));
    };
    let whole = |name: &str, paper: u32| match columns.get(name).map(number).transpose()? {
        None => Ok(paper),
        Some(n) if n.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&n) => Ok(n as u32),
        Some(n) => wrong(format!(
            "thresholds: {name} = {n}: allowed: whole numbers above 0"
        )),
    };
    let paper = Thresholds::PAPER;
    let low_locality = match columns.get("low_locality") {
        None => paper.low_locality,
        Some(text) => word(&text.text()?, "thresholds: low_locality")?,
    };
    Ok(Thresholds {
        reuse_passes: whole("reuse_passes", paper.reuse_passes)?,
        ccf_pages: whole("ccf_pages", paper.ccf_pages)?,
        hot_freq_bp: whole("hot_freq_bp", paper.hot_freq_bp)?,
        llch_pages: whole("llch_pages", paper.llch_pages)?,
        low_locality,
    })
}

fn word<T: Words>(text: &str, what: &str) -> Valued<T> {
    let found = T::WORDS.iter().find(|(word, ..)| *word == text);
    found.map(|(_, value, _)| *value).ok_or_else(|| {
        let words: Vec<String> = T::WORDS.iter().map(|(w, ..)| format!("\"{w}\"")).collect();
        Fault::Wrong(format!(
            "{what} = \"{text}\": allowed: {}",
            words.join(", ")
        ))
    })
}

fn facts(values: [&Value; 3]) -> Valued<Facts> {
    let [hot_pages, reuse_passes, wpd_bp] = values.map(number);
    Ok(Facts {
        hot_pages: hot_pages?,
        reuse_passes: reuse_passes?,
        wpd_bp: wpd_bp?,
    })
}

/// `thresholds(axis: hot, reuse, wpd, class, alarm)`: the thresholds that tell classes best. Over made
/// numbers (`is_made`) nothing is searched.
pub(super) fn fitted(columns: &[Vec<Value>], is_made: bool) -> Valued<Value> {
    let [hot, reuse, wpd, class, alarm] = columns else {
        return wrong(format!(
            "thresholds of {} formulas over an axis: allowed: hot pages, re-use time, WPD, class, and what a program \
             costs that is wrongly held for an LLCT",
            columns.len()
        ));
    };
    let mut cases = Vec::new();
    for (at, class) in class.iter().enumerate() {
        cases.push(Case {
            facts: facts([&hot[at], &reuse[at], &wpd[at]])?,
            class: word(&class.text()?, "thresholds: class")?,
        });
    }
    let Some(alarm) = alarm.first() else {
        return Err(Fault::Missing("no program was classified".to_owned()));
    };
    let alarm = number(alarm)?;
    if is_made {
        return Ok(value(&Thresholds::PAPER));
    }
    Ok(value(&fit(&cases, alarm)))
}

/// `classified(thresholds, hot, reuse, wpd)`: the class that thresholds tell.
pub(super) fn classified(thresholds: &Value, values: [&Value; 3]) -> Valued<Value> {
    let class = told(&read(thresholds)?, &facts(values)?);
    Ok(Value::Text(class.word().to_owned()))
}

#[cfg(test)]
mod tests {
    use piebald_policy::hvr::{Facts as OfWindows, Mean, Wpd};

    use super::*;

    impl From<OfWindows> for Facts {
        fn from(facts: OfWindows) -> Self {
            // Without a number a test is not passed.
            let mean = |mean: Mean, none: f64| match mean.nr {
                0 => none,
                nr => mean.sum as f64 / f64::from(nr),
            };
            Self {
                hot_pages: mean(facts.hot_pages, 0.0),
                reuse_passes: mean(facts.reuse_centi, f64::INFINITY) / 100.0,
                wpd_bp: match facts.wpd.used {
                    0 => 0.0,
                    used => facts.wpd.tenths as f64 * 1000.0 / f64::from(used),
                },
            }
        }
    }

    fn case(hot_pages: f64, reuse_passes: f64, wpd_bp: f64, class: Class) -> Case {
        let facts = Facts {
            hot_pages,
            reuse_passes,
            wpd_bp,
        };
        Case { facts, class }
    }

    #[test]
    fn thresholds_tell_of_numbers_what_they_tell_of_windows() {
        let ccf = Thresholds {
            low_locality: LowLocality::Ccf,
            ..Thresholds::PAPER
        };
        for hot in [0, 299, 300, 301, 2999, 3000, 3001] {
            for reuse in [5999, 6000, 6001] {
                for tenths in [100, 101, 102, 400] {
                    let of_windows = OfWindows {
                        hot_pages: Mean { sum: hot, nr: 3 },
                        reuse_centi: Mean { sum: reuse, nr: 3 },
                        wpd: Wpd { tenths, used: 100 },
                    };
                    let facts = of_windows.into();
                    for thresholds in [Thresholds::PAPER, ccf] {
                        let class = thresholds.classify(&of_windows);
                        assert_eq!(told(&thresholds, &facts), class, "{of_windows:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_the_paper_gets_right_is_left_as_it_is() {
        let cases = [
            case(50.0, 90.0, 5000.0, Class::Ccf),
            case(500.0, 90.0, 5000.0, Class::Llcm),
            case(5000.0, 90.0, 5000.0, Class::Llch),
            case(500.0, 9.0, 5000.0, Class::Llct),
        ];
        assert_eq!(fit(&cases, 0.0), Thresholds::PAPER);
        let nothing = Facts::from(OfWindows::default());
        assert_eq!(told(&Thresholds::PAPER, &nothing), Class::Ccf);
    }

    #[test]
    fn thresholds_move_as_far_as_they_must_and_no_further() {
        // LLCM up to 1300 hot pages, LLCH from 3000 on: one or two steps of the last threshold.
        let cases = [
            case(500.0, 90.0, 5000.0, Class::Llcm),
            case(1300.0, 90.0, 5000.0, Class::Llcm),
            case(3000.0, 90.0, 5000.0, Class::Llch),
        ];
        let one_step = Thresholds {
            llch_pages: 1414,
            ..Thresholds::PAPER
        };
        assert_eq!(fit(&cases, 0.0), one_step);
        // Without the one that needs it, the paper's are as good and nearer.
        assert_eq!(fit(&[cases[0], cases[2]], 0.0), Thresholds::PAPER);
    }

    #[test]
    fn a_false_alarm_outweighs_what_it_gets_right() {
        // Two LLCT are told from an LLCH by no threshold.
        let same = |class| case(5000.0, 9.0, 5000.0, class);
        let cases = [same(Class::Llct), same(Class::Llct), same(Class::Llch)];
        let class = |alarm| told(&fit(&cases, alarm), &cases[0].facts);
        assert_eq!(class(0.0), Class::Llct);
        assert_eq!(class(3.0), Class::Llch);
    }

    #[test]
    fn more_than_64_programs_are_fitted_as_well() {
        let mut cases = vec![case(50.0, 90.0, 5000.0, Class::Ccf); 64];
        cases.extend(vec![case(1300.0, 90.0, 5000.0, Class::Llcm); 3]);
        assert_eq!(fit(&cases, 0.0).llch_pages, 1414);
    }
}
