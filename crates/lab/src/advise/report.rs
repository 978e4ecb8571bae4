//! Advice as a record for the report.

use piebald_experiment::{Frames, Words};
use piebald_policy::rainbow::{Ask, Config, Partition, Registry, Reservation};
use piebald_report::{
    Advice, AdvicePoint, MixAdvice, MixPolicy, ProgramAdvice, ProgramResult, Sample, ShareAdvice,
    SplitAdvice, Study,
};
use piebald_units::PAGE_SIZE;

use super::{Found, Question, Split, runs};

/// Puts the record together; `study` holds the runs of all policies.
pub(super) fn advice(
    question: &Question<'_>,
    found: &[Found],
    splits: &[Split],
    study: &Study,
) -> Advice {
    let cache = question.scenario.machine.last_level();
    let seen = found.first().map(|f| (f.curve.sets_seen, f.curve.sets));
    let (sets_seen, sets) = seen.unwrap_or_default();
    Advice {
        within: question.request.within.0.ratio(),
        cache: cache.name.clone(),
        cache_bytes: cache.size.0,
        colors: question.map.colors(),
        sets,
        sets_seen,
        programs: found.iter().map(|f| program(question, f)).collect(),
        mix: mix(question, found, splits, study),
    }
}

fn program(question: &Question<'_>, found: &Found) -> ProgramAdvice {
    let entry = &question.scenario.programs[found.program];
    let per_kilo = |n: u64| 1000.0 * n as f64 / found.instructions.max(1) as f64;
    let point = |p: &piebald_hw::CurvePoint| AdvicePoint {
        colors: p.colors,
        mpki: per_kilo(p.misses),
        error: per_kilo(p.error),
        estimated: found.estimated(p.colors),
        measured: found.measured(p.colors),
    };
    ProgramAdvice {
        program: entry.name.clone(),
        role: entry.role,
        pages: found.pages,
        fewest: found.fewest,
        class: found.class().map(|class| class.to_string()),
        share: found.share.map(|share| {
            let colors = share.colors;
            let less = found.times.measured().range(..colors).next_back();
            let less = less.map(|(k, _)| *k).filter(|_| colors > found.fewest);
            ShareAdvice {
                colors,
                memory_limit: memory_limit(question, colors),
                estimated: found.estimated(colors),
                measured: found.measured(colors).unwrap_or(f64::NAN),
                exact: share.exact,
                below: less,
                below_measured: less.and_then(|k| found.measured(k)),
            }
        }),
        points: found.curve.points.iter().map(point).collect(),
    }
}

/// Bytes of memory that so many colors have.
fn memory_limit(question: &Question<'_>, colors: u32) -> u64 {
    let frames = question.scenario.machine.memory.size.0 / PAGE_SIZE;
    let registry = Registry::new([Partition::EMPTY], question.map.colors(), Config::PAPER);
    let limit = registry.ok().and_then(|mut registry| {
        let id = registry
            .reserve(&Reservation::of(Ask::Count(colors)))
            .ok()?;
        registry.memory_limit(id, frames).ok()
    });
    limit.unwrap_or(0) * PAGE_SIZE
}

/// The splits, and what became of the programs under each policy.
fn mix(
    question: &Question<'_>,
    found: &[Found],
    splits: &[Split],
    study: &Study,
) -> Option<MixAdvice> {
    let asked = splits
        .iter()
        .find(|s| s.goal == Some(question.request.goal))?;
    let programs = &question.scenario.programs;
    let names: Vec<String> = question
        .mix
        .iter()
        .map(|p| programs[*p].name.clone())
        .collect();
    // Slower than what: alone, with stock frames and the whole cache.
    let policies = question.scenario.policies.iter();
    let stock = policies.clone().position(|p| p.frames == Frames::Stock);
    // One that was added comes behind those of the scenario.
    let stock = study.policies.get(stock.unwrap_or(policies.len()))?;
    let result = |policy: &'_ piebald_report::PolicyResult, name: &str| -> Option<ProgramResult> {
        policy.programs.iter().find(|p| p.name == name).cloned()
    };
    let slowdown = |policy: &piebald_report::PolicyResult, name: &String| -> Option<Sample> {
        let alone = result(stock, name)?.alone.time_ps;
        let together = result(policy, name)?.together?.time_ps;
        alone.slowdown(&together).filter(Sample::is_known)
    };
    let policies = study.policies.iter().map(|policy| {
        let slowdowns: Vec<Option<Sample>> = names.iter().map(|n| slowdown(policy, n)).collect();
        let known: Option<Vec<&Sample>> = slowdowns.iter().map(Option::as_ref).collect();
        MixPolicy {
            policy: policy.name.clone(),
            colors: names.iter().map(|n| result(policy, n)?.colors).collect(),
            sum: known.and_then(|all| sum(&all)),
            slowdowns,
        }
    });
    let told = |split: &Split| SplitAdvice {
        policy: split.run.then(|| split.policy.clone()),
        goal: split.goal.map(|g| g.word().to_owned()),
        sets: runs(&split.colors).iter().map(|s| s.to_string()).collect(),
        estimated: question
            .mix
            .iter()
            .zip(&split.colors)
            .map(|(p, k)| {
                let of = found.iter().find(|f| f.program == *p);
                of.map_or(f64::NAN, |f| f.slowdown(*k))
            })
            .collect(),
        colors: split.colors.clone(),
    };
    Some(MixAdvice {
        goal: asked.goal.unwrap_or_default().word().to_owned(),
        reference: stock.name.clone(),
        programs: names.clone(),
        splits: splits.iter().map(told).collect(),
        policies: policies.collect(),
    })
}

/// Sums repetition by repetition.
fn sum(samples: &[&Sample]) -> Option<Sample> {
    let (first, others) = samples.split_first()?;
    others
        .iter()
        .try_fold((*first).clone(), |all, s| all.paired(s, |a, b| a + b))
}
