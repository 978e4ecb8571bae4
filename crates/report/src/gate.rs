//! What a study's numbers may be said to show.
//!
//! A change is called a change only if its interval excludes zero, corrected for the number of
//! questions that the report answers, if it is large enough to matter, if there are enough
//! repetitions, and if the runs that it comes from could show it: caches that are still filling,
//! or programs that never leave their private caches, say nothing about how others disturb them.

mod warm;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{
    Metrics, Sample, Study, Unmet,
    format::{brief, grouped, number},
    sample::t_quantile_975,
};
use warm::cold;
pub(crate) use warm::{count, share_of_budget};

/// Repetitions that an interval needs: with two it spans a hundred times what it should.
pub(crate) const LEAST_REPETITIONS: usize = 3;
/// Smallest change of a baseline that is worth a sentence, as a share of it.
pub const LEAST_EFFECT: f64 = 0.01;
/// Level of all questions of a report together.
const LEVEL: f64 = 0.05;
/// References to the last level per 1000 instructions below which it cannot matter.
const LEAST_LAST_LEVEL: f64 = 0.1;
/// Share of its time that a program waits for files and pages, above which caches are not what
/// decides.
const MOST_WAITING: f64 = 0.5;

/// How labels of runs of a program by itself begin.
pub(crate) const ALONE: &str = "alone";

/// Whether a change may be claimed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It may.
    Shown,
    /// It is too small, or may be chance: there is nothing to claim.
    NoChange {
        /// Which of both.
        why: String,
        unmet: Unmet,
    },
    /// These runs cannot tell.
    CannotShow {
        /// Why.
        why: String,
        /// What to do about it.
        act: String,
        /// The condition, if it is one of the gate's own.
        unmet: Option<Unmet>,
    },
}

impl Verdict {
    /// These runs cannot tell, for a reason that is none of the gate's own.
    pub const fn cannot(why: String, act: String) -> Self {
        Self::CannotShow {
            why,
            act,
            unmet: None,
        }
    }
}

/// Why runs cannot tell, what to do about it, and which condition they do not meet.
type Refusal = (String, String, Unmet);

/// One of the runs that are compared.
pub(crate) struct Run<'a> {
    /// Which run it is, as a sentence goes on: `alone`, `beside scan`.
    pub label: String,
    pub metrics: &'a Metrics,
}

/// What a change rests on.
pub(crate) struct Evidence<'a> {
    /// The program.
    pub name: &'a str,
    /// The change as a share of the baseline.
    pub effect: &'a Sample,
    /// Told from chance among all questions of the report.
    pub significant: bool,
    pub runs: &'a [Run<'a>],
    /// Repetitions that were asked for.
    pub planned: u32,
    /// References before the measured part and in it; 0 if they do not end it.
    pub warmup_refs: u64,
    pub budget_refs: u64,
}

/// Whether the change may be claimed.
pub(crate) fn verdict(e: &Evidence<'_>) -> Verdict {
    let cannot = |(why, act, unmet): Refusal| Verdict::CannotShow {
        why,
        act,
        unmet: Some(unmet),
    };
    if e.effect.n() < LEAST_REPETITIONS && !e.effect.values.is_empty() {
        return cannot(too_few(e.effect.n(), e.planned));
    }
    if let Some(found) = e.runs.iter().find_map(|run| cold(e, run)) {
        return cannot(found);
    }
    if let Some(found) = cannot_matter(e) {
        return cannot(found);
    }
    let size = e.effect.mean.abs();
    let (why, unmet) = match (e.significant, size > LEAST_EFFECT) {
        (true, true) => return Verdict::Shown,
        (false, _) if is_nothing(e.effect) => (
            "it is 0 in every repetition".to_owned(),
            Unmet::new("effect", size, LEAST_EFFECT),
        ),
        (false, _) => (
            "it cannot be told from chance".to_owned(),
            Unmet::by_chance(),
        ),
        (true, false) => (
            format!("it is {} % or less", brief(100.0 * LEAST_EFFECT)),
            Unmet::new("effect", size, LEAST_EFFECT),
        ),
    };
    Verdict::NoChange { why, unmet }
}

/// No repetition has any change at all.
pub(crate) fn is_nothing(change: &Sample) -> bool {
    !change.values.is_empty() && change.values.iter().all(|value| *value == 0.0)
}

fn too_few(n: usize, planned: u32) -> Refusal {
    let has = match n {
        1 => "it has one repetition".to_owned(),
        n => format!("it has {n} repetitions"),
    };
    (
        format!("{has}, and an interval needs {LEAST_REPETITIONS}"),
        if planned as usize >= LEAST_REPETITIONS {
            format!("run all {planned} repetitions")
        } else {
            format!("set repetitions = {LEAST_REPETITIONS}")
        },
        Unmet::new("repetitions", n as f64, LEAST_REPETITIONS as f64),
    )
}

/// Why the advice on shares is not to be relied on, if it is not: it is read off runs of programs by
/// themselves, whose misses mean nothing while their caches fill.
pub fn advice_doubts(study: &Study) -> Vec<String> {
    let advised = study.advice.iter().flat_map(|advice| &advice.programs);
    let policy = study.policies.first();
    let doubts = advised.filter_map(|advised| {
        let program = policy?
            .programs
            .iter()
            .find(|p| p.name == advised.program)?;
        let effect = Sample::default();
        let evidence = Evidence {
            name: &program.name,
            effect: &effect,
            significant: false,
            runs: &[],
            planned: study.repetitions,
            warmup_refs: study.warmup_refs,
            budget_refs: study.budget_refs,
        };
        let run = Run {
            label: ALONE.to_owned(),
            metrics: &program.alone,
        };
        let (why, act, _) = cold(&evidence, &run)?;
        Some(format!(
            "the advice on {} is not to be relied on, because {why}; {act}",
            crate::format::short(&program.name, 40)
        ))
    });
    doubts.collect()
}

/// The program's time is that of files and pages, not of caches.
fn waits(metrics: &Metrics) -> bool {
    let blocked = metrics.extra.iter().find(|e| e.name == crate::WAITED);
    blocked.is_some_and(|e| e.value.mean * 1e9 > MOST_WAITING * metrics.time_ps.mean)
}

/// Whatever others do, the program does not meet them: it stays in caches that it has for
/// itself.
fn cannot_matter(e: &Evidence<'_>) -> Option<Refusal> {
    let few = |run: &Run<'_>| {
        let metrics = run.metrics;
        let own = metrics.occupancy.iter().filter(|o| !o.shared);
        let own = own.map(|o| o.bytes).max()?;
        let shared = metrics.occupancy.iter().position(|o| o.shared);
        let reached = metrics.mpki.get(shared?)?.accesses.mean;
        let bytes = metrics.pages.mean * 4096.0;
        let small = bytes <= own as f64 && reached <= LEAST_LAST_LEVEL && !waits(metrics);
        small.then_some((bytes, own, reached))
    };
    if e.runs.iter().any(|run| few(run).is_none()) {
        return None;
    }
    let (bytes, own, reached) = e.runs.first().and_then(few)?;
    let name = crate::format::short(e.name, 40);
    Some((
        format!(
            "{name}'s {} KiB fit into the {} KiB of its private caches, and it asks a cache that \
             it shares {} times per 1000 instructions",
            grouped((bytes / 1024.0).round() as u64),
            grouped(own / 1024),
            number(reached),
        ),
        "take a program that uses more memory, or a machine with smaller private caches".to_owned(),
        Unmet::new("reaches", reached, LEAST_LAST_LEVEL),
    ))
}

/// Which of the changes are told from chance, all together at 5 % (Holm 1979).
pub(crate) fn holm(effects: &[&Sample]) -> Vec<bool> {
    let mut order: Vec<(f64, usize)> = effects
        .iter()
        .enumerate()
        .filter_map(|(at, s)| Some((p_value(s)?, at)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sure = vec![false; effects.len()];
    let tests = order.len();
    for (rank, (p, at)) in order.into_iter().enumerate() {
        if p > LEVEL / (tests - rank) as f64 {
            break;
        }
        sure[at] = true;
    }
    sure
}

/// Which of several changes of one report may be claimed: from pairs enough for an interval, told from
/// chance all together, and above 1 % of what they change. Each has its values pair by pair and its share
/// of the baseline, which is not finite where the baseline is nothing. `None` where there is no interval.
pub fn claims(changes: &[(&Sample, f64)]) -> Vec<Option<bool>> {
    let samples: Vec<&Sample> = changes.iter().map(|(sample, _)| *sample).collect();
    let told = holm(&samples).into_iter().zip(changes);
    let claim = |(sure, (sample, share)): (bool, &(&Sample, f64))| {
        let known = sample.n() >= LEAST_REPETITIONS && p_value(sample).is_some();
        let matters = !share.is_finite() || share.abs() > LEAST_EFFECT;
        known.then_some(sure && matters)
    };
    told.map(claim).collect()
}

/// Is the change sure, as one of so many that were looked at?
pub(crate) fn sure_of(sample: &Sample, questions: usize) -> bool {
    p_value(sample).is_some_and(|p| p <= LEVEL / questions.max(1) as f64)
}

/// How likely a mean so far from zero is by chance; `None` without an interval. Where values of
/// single repetitions are not known, only whether it is below 5 % is.
fn p_value(sample: &Sample) -> Option<f64> {
    let sure = sample.excludes_zero()?;
    if sample.n() < 2 {
        return Some(if sure { LEVEL } else { 1.0 });
    }
    let half = sample.ci95?;
    if half == 0.0 {
        return Some(if sure { 0.0 } else { 1.0 });
    }
    let freedom = sample.n() as f64 - 1.0;
    let t = sample.mean.abs() * t_quantile_975(freedom) / half;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(2.0 * (1.0 - student.cdf(t)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LevelMpki, Occupancy};

    fn flat(value: f64) -> Sample {
        Sample::new(vec![value; 3])
    }

    fn level(room: f64, start: f64, end: f64) -> Occupancy {
        Occupancy {
            level: "L3".to_owned(),
            bytes: 8 << 20,
            shared: true,
            room: flat(room),
            start: flat(start),
            end: flat(end),
            own_start: flat(start),
            own_end: flat(end),
        }
    }

    fn metrics(level: Occupancy, misses: f64, pages: f64) -> Metrics {
        let private = Occupancy {
            level: "L2".to_owned(),
            bytes: 256 << 10,
            shared: false,
            ..Occupancy::default()
        };
        let of = |name: &str, n: f64| LevelMpki {
            level: name.to_owned(),
            mpki: flat(n),
            accesses: flat(2.0 * n),
        };
        Metrics {
            time_ps: flat(1e9),
            instructions: flat(1e6),
            pages: flat(pages),
            mpki: vec![of("L2", 5.0), of("L3", misses)],
            occupancy: vec![private, level],
            ..Metrics::default()
        }
    }

    #[test]
    fn advice_from_a_cache_that_fills_is_doubted() {
        let study = |start: f64| Study {
            warmup_refs: 1_000_000,
            budget_refs: 2_000_000,
            policies: vec![crate::PolicyResult {
                programs: vec![crate::ProgramResult {
                    name: "sort".to_owned(),
                    alone: metrics(level(1000.0, start, 900.0), 20.0, 2000.0),
                    ..crate::ProgramResult::default()
                }],
                ..crate::PolicyResult::default()
            }],
            advice: Some(crate::Advice {
                programs: vec![crate::ProgramAdvice {
                    program: "sort".to_owned(),
                    ..crate::ProgramAdvice::default()
                }],
                ..crate::Advice::default()
            }),
            ..Study::default()
        };
        let doubts = advice_doubts(&study(300.0));
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        assert!(
            doubts[0].starts_with(
                "the advice on sort is not to be relied on, because sort's L3 was 30 % full"
            ) && doubts[0].contains("set warmup_refs = "),
            "{doubts:?}"
        );
        assert!(advice_doubts(&study(900.0)).is_empty());
    }

    fn judge(effect: &[f64], metrics: &Metrics) -> Verdict {
        let effect = Sample::new(effect.to_vec());
        verdict(&Evidence {
            name: "bzip2",
            effect: &effect,
            significant: holm(&[&effect])[0],
            runs: &[Run {
                label: "alone".to_owned(),
                metrics,
            }],
            planned: 0,
            warmup_refs: 1_000_000,
            budget_refs: 2_000_000,
        })
    }

    const SURE: &[f64] = &[0.20, 0.21, 0.22];

    #[test]
    fn a_sure_change_in_warm_caches_is_shown() {
        // The last one hardly keeps the limits of 95 % and of 2 %.
        for (start, end) in [(990.0, 992.0), (960.0, 979.0)] {
            let warm = metrics(level(1000.0, start, end), 20.0, 1e4);
            assert_eq!(judge(SURE, &warm), Verdict::Shown, "{start} to {end}");
        }
    }

    #[test]
    fn a_change_that_is_chance_or_small_is_none() {
        let warm = metrics(level(1000.0, 990.0, 992.0), 3.0, 1e4);
        for effect in [&[0.2, -0.3, 0.25][..], &[0.005, 0.0051, 0.0049]] {
            let found = judge(effect, &warm);
            assert!(matches!(found, Verdict::NoChange { .. }), "{found:?}");
        }
    }

    #[test]
    fn what_cannot_be_shown_is_said_with_what_to_do() {
        let warm = level(1000.0, 990.0, 992.0);
        // 570 places were empty and then 450: so many are left of them in each 2 million references until
        // there are 50.
        let filling = metrics(level(1000.0, 430.0, 550.0), 3.0, 1e4);
        // Hardly anything changes, but what misses only fills.
        let slowly = metrics(level(1000.0, 430.0, 436.0), 0.011, 1e4);
        let slowly = Metrics {
            mpki: vec![
                slowly.mpki[0].clone(),
                LevelMpki {
                    mpki: flat(0.12),
                    ..slowly.mpki[1].clone()
                },
            ],
            instructions: flat(60_000.0),
            ..slowly
        };
        // The same in a measured part that is too short to fill anything.
        let misses = |n: f64| Metrics {
            instructions: flat(n * 1000.0 / 20.0),
            ..metrics(level(1000.0, 397.0, 401.0), 20.0, 1e4)
        };
        let (short, prefetched) = (misses(5.0), misses(2.0));
        // Few misses fill it, but it fills on: 2 of 1000 places in a fiftieth of the run so far.
        let slowly_on = Evidence {
            name: "bzip2",
            effect: &Sample::new(SURE.to_vec()),
            significant: true,
            runs: &[Run {
                label: "alone".to_owned(),
                metrics: &Metrics {
                    instructions: flat(1e6),
                    ..metrics(level(1000.0, 700.0, 702.0), 20.0, 1e4)
                },
            }],
            planned: 3,
            warmup_refs: 98_000,
            budget_refs: 2_000,
        };
        let cases = [
            // Between the limits: 95 % of what it comes to hold, and 2 % of its room meanwhile.
            (
                judge(SURE, &metrics(level(1000.0, 900.0, 960.0), 20.0, 1e4)),
                "90 % full when counting began and 96 % when it ended",
                "warmup_refs =",
                "full",
            ),
            (
                judge(SURE, &metrics(level(1000.0, 960.0, 990.0), 20.0, 1e4)),
                "96 % full when counting began and 99 % when it ended",
                "warmup_refs =",
                "drift",
            ),
            (
                verdict(&slowly_on),
                "70 % full when counting began and 70 % when it ended",
                "warmup_refs =",
                "full",
            ),
            (
                judge(SURE, &short),
                "40 % full when counting began and 40 % when it ended (alone), and 80 % of the misses",
                "warmup_refs =",
                "first_fills",
            ),
            (
                judge(SURE, &prefetched),
                "more lines filled empty places than missed",
                "warmup_refs =",
                "first_fills",
            ),
            (
                judge(&[0.2, 0.21], &metrics(warm.clone(), 3.0, 1e4)),
                "2 repetitions",
                "repetitions = 3",
                "repetitions",
            ),
            (
                judge(SURE, &filling),
                "43 % full",
                "warmup_refs = 22M",
                "full",
            ),
            (
                judge(SURE, &slowly),
                "83 % of the misses filled empty",
                "warmup_refs =",
                "first_fills",
            ),
            (
                judge(SURE, &metrics(warm, 0.01, 60.0)),
                "240 KiB fit",
                "uses more memory",
                "reaches",
            ),
        ];
        for (found, reason, advice, condition) in cases {
            let Verdict::CannotShow { why, act, unmet } = &found else {
                panic!("{found:?}");
            };
            let unmet = unmet.as_ref().expect("a condition");
            assert_eq!(unmet.condition, condition);
            assert!(unmet.found.is_some() && unmet.limit.is_some());
            assert!(why.contains(reason) && act.contains(advice), "{why}; {act}");
        }
    }

    #[test]
    fn a_recording_that_is_too_short_is_to_be_longer() {
        let filling = |refs: f64| Metrics {
            refs: flat(refs),
            ..metrics(level(1000.0, 430.0, 550.0), 3.0, 1e4)
        };
        // Parts of half the length fill it in half the references. A batch less is no shorter recording.
        let cases = [
            (
                1e6,
                "take a recording of 12M references or more and set warmup_refs = 11M, ",
            ),
            (1.99e6, "set warmup_refs = 22M or more, "),
        ];
        for (refs, expected) in cases {
            let found = judge(SURE, &filling(refs));
            let Verdict::CannotShow { act, .. } = &found else {
                panic!("{found:?}");
            };
            assert!(act.starts_with(expected), "{act}");
        }
    }

    #[test]
    fn what_is_the_same_in_every_repetition_is_no_chance() {
        let warm = metrics(level(1000.0, 990.0, 992.0), 3.0, 1e4);
        let found = judge(&[0.0; 3], &warm);
        let Verdict::NoChange { why, unmet } = &found else {
            panic!("{found:?}");
        };
        assert_eq!(why, "it is 0 in every repetition");
        assert_eq!(unmet.condition, "effect");
    }

    /// How long a part was that a time ends is not known, and so not how far it fills on.
    #[test]
    fn a_part_that_a_time_ends_is_judged_by_itself() {
        let metrics = Metrics {
            instructions: flat(1e6),
            ..metrics(level(1000.0, 700.0, 702.0), 20.0, 1e4)
        };
        let judge = |budget_refs| {
            verdict(&Evidence {
                name: "bzip2",
                effect: &Sample::new(SURE.to_vec()),
                significant: true,
                runs: &[Run {
                    label: "alone".to_owned(),
                    metrics: &metrics,
                }],
                planned: 3,
                warmup_refs: 98_000,
                budget_refs,
            })
        };
        assert_eq!(judge(0), Verdict::Shown);
        assert!(matches!(judge(2_000), Verdict::CannotShow { .. }));
    }

    #[test]
    fn caches_do_not_count_where_time_is_that_of_the_disk() {
        let mut filling = metrics(level(1000.0, 430.0, 550.0), 3.0, 1e4);
        filling.extra.push(crate::Extra {
            name: crate::WAITED.to_owned(),
            unit: "ms".to_owned(),
            value: flat(0.9),
        });
        assert_eq!(judge(SURE, &filling), Verdict::Shown);
    }

    #[test]
    fn several_questions_are_corrected_together() {
        // p = 0.010, 0.021 and 0.75: 0.05 / 3, 0.05 / 2 and then no more.
        let strong = Sample::new(vec![1.0, 1.2, 1.1, 0.6]);
        let weak = Sample::new(vec![0.9, 1.4, 0.5, 0.7]);
        let none = Sample::new(vec![0.5, -0.4, 0.1, -0.3]);
        let alone = [&strong, &weak, &none].map(|s| p_value(s).unwrap_or(f64::NAN));
        assert!(alone[0] < 0.05 / 3.0 && alone[1] < 0.05 / 2.0, "{alone:?}");
        assert!(alone[1] > 0.05 / 3.0 && alone[2] > 0.5, "{alone:?}");
        assert_eq!(holm(&[&none, &weak, &strong]), [false, true, true]);
        let half = Sample::new(vec![1.0, 2.0, 0.2, 0.6]);
        assert_eq!(holm(&[&none, &half, &half]), [false, false, false]);
        assert_eq!(holm(&[&half]), [half.excludes_zero() == Some(true)]);
    }

    #[test]
    fn changes_are_claimed_together_if_they_are_sure_and_matter() {
        let sure = Sample::new(vec![2.0, 2.1, 1.9, 2.0]);
        // p = 0.041
        let weak = Sample::new(vec![0.5, 1.5, 0.5, 1.5]);
        let none = Sample::new(vec![0.5, -0.4, 0.1, -0.3]);
        let two = Sample::new(vec![2.0, 2.0]);
        let missing = Sample::new(vec![f64::NAN, 1.0, 1.0]);
        let changes = [
            (&sure, 0.2),
            (&sure, 0.009),
            (&sure, f64::INFINITY),
            (&weak, 0.2),
            (&none, 0.2),
            (&two, 0.2),
            (&missing, 0.2),
        ];
        let found = claims(&changes);
        let [yes, no] = [Some(true), Some(false)];
        assert_eq!(found, [yes, no, yes, no, no, None, None]);
        // By itself the weak one would be told from chance.
        assert_eq!(claims(&[(&weak, 0.2)]), [yes]);
    }

    #[test]
    fn counts_are_rounded_up_as_scenarios_take_them() {
        let cases = [
            (9_666_666.7, "9.7M"),
            (1.0, "1"),
            (12_000.0, "12k"),
            (1.21e9, "1.3G"),
            (990_001.0, "1M"),
        ];
        for (refs, expected) in cases {
            assert_eq!(count(refs), expected);
        }
    }
}
