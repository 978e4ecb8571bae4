//! What a study found, in sentences computed from its numbers.
//!
//! A sentence states a change only if the 95 % interval of the change excludes
//! zero. A cause is never claimed: "as its L3 misses rise" says that misses rose
//! in the same repetitions, beyond chance and in the direction that fits. With a
//! single repetition there is no interval, and the sentence says so.

use crate::{
    LevelMpki, Metrics, PolicyResult, ProgramResult, Role, Sample, Study,
    format::{join_names, number, short},
    rows::find,
};

/// Smallest relative cost of a policy to a program by itself that gets a
/// sentence: a model's repetitions can be so alike that any trifle is beyond chance.
const MIN_COST: f64 = 0.005;

/// Sentences about a study, the most important first: for each target what the
/// others do to it under the first policy, then what the other policies change.
///
/// Empty only for a study without targets that were measured.
pub fn headline(study: &Study) -> Vec<String> {
    let Some((first, others)) = study.policies.split_first() else {
        return Vec::new();
    };
    let several = !others.is_empty();
    let mut sentences = Vec::new();
    for target in targets(first) {
        sentences.extend(beside(first, target, several));
        for policy in others {
            let Some(there) = find(policy, &target.name) else {
                continue;
            };
            sentences.extend(versus(first, target, policy, there));
            sentences.extend(cost_alone(first, target, policy, there));
        }
    }
    if let (false, Some(sentence)) = (study.complete, sentences.first_mut()) {
        *sentence = format!("PARTIAL: {sentence}");
    }
    sentences
}

/// Targets with the strongest effect first; all programs if none is a target.
fn targets(policy: &PolicyResult) -> Vec<&ProgramResult> {
    let is_target = |p: &&ProgramResult| p.role == Role::Target;
    let mut found: Vec<_> = policy.programs.iter().filter(is_target).collect();
    if found.is_empty() {
        found = policy.programs.iter().collect();
    }
    let strength = |p: &ProgramResult| {
        let sample = p.slowdown.as_ref().filter(|s| s.is_known());
        let sure = sample.and_then(Sample::excludes_zero) == Some(true);
        (sure, sample.map_or(0.0, |s| s.mean.abs()))
    };
    found.sort_by(|a, b| {
        let ((sure_a, a), (sure_b, b)) = (strength(a), strength(b));
        sure_b.cmp(&sure_a).then(b.total_cmp(&a))
    });
    found
}

/// "Beside scan, bzip2 runs 23 % slower (±2) as its L3 misses rise from ...".
fn beside(policy: &PolicyResult, target: &ProgramResult, name_policy: bool) -> Option<String> {
    let slowdown = target.slowdown.as_ref().filter(|s| s.is_known())?;
    let all = policy.programs.iter().map(|p| &p.name);
    let others: Vec<&str> = match &target.beside {
        Some(company) => company.iter().map(String::as_str).collect(),
        None => all
            .filter(|name| **name != target.name)
            .map(String::as_str)
            .collect(),
    };
    let place = match (name_policy, others.is_empty()) {
        (true, true) => format!("Under {}, ", short(&policy.name, 40)),
        (true, false) => format!(
            "Under {}, beside {}, ",
            short(&policy.name, 40),
            join_names(&others)
        ),
        (false, true) => "Run together, ".to_owned(),
        (false, false) => format!("Beside {}, ", join_names(&others)),
    };
    let name = short(&target.name, 40);
    Some(match slowdown.excludes_zero() {
        None => format!(
            "{place}{name} ran {} in a single repetition, which gives no interval.",
            speed(slowdown)
        ),
        Some(false) => format!(
            "{place}no change of {name}'s speed can be told from chance ({} ±{}).",
            percent_signed(slowdown),
            percent_half(slowdown),
        ),
        Some(true) => {
            let reason = reason(target, slowdown.mean).unwrap_or_default();
            format!(
                "{place}{name} runs {} (±{}){reason}.",
                speed(slowdown),
                percent_half(slowdown)
            )
        }
    })
}

/// What else changed in the direction that fits a slowdown: the outermost cache
/// level whose misses moved beyond chance, else the DRAM row hits.
fn reason(target: &ProgramResult, slowdown: f64) -> Option<String> {
    let together = target.together.as_ref()?;
    let moved = |alone: &Sample, there: &Sample| {
        let change = there.difference(alone);
        (change.excludes_zero() == Some(true)).then_some(change.mean)
    };
    for (alone, there) in levels(&target.alone, together).rev() {
        let (name, before, after) = (short(&alone.level, 20), &alone.mpki, &there.mpki);
        let fits = moved(before, after).is_some_and(|change| (change > 0.0) == (slowdown > 0.0));
        let (before, after) = brief(before.mean, after.mean);
        // A change that the shown digits hide would read as nonsense.
        if fits && before != after {
            let verb = if slowdown > 0.0 { "rise" } else { "fall" };
            return Some(format!(
                " as its {name} misses {verb} from {before} to {after} per 1000 instructions"
            ));
        }
    }
    let (before, after) = (
        target.alone.row_hit_rate.as_ref()?,
        together.row_hit_rate.as_ref()?,
    );
    let fits = moved(before, after).is_some_and(|change| (change < 0.0) == (slowdown > 0.0));
    let (before, after) = brief(before.mean * 100.0, after.mean * 100.0);
    let verb = if slowdown > 0.0 { "fall" } else { "rise" };
    (fits && before != after)
        .then(|| format!(" as its DRAM row hits {verb} from {before} % to {after} %"))
}

/// Two numbers with two significant digits, or three if they need it to differ.
fn brief(before: f64, after: f64) -> (String, String) {
    let two = |v: f64| match format!("{v:.1e}").parse::<f64>() {
        Ok(v) if v.abs() >= 10.0 => format!("{v:.0}"),
        Ok(v) if v.abs() >= 1.0 => format!("{v:.1}"),
        _ => format!("{v:.2}"),
    };
    let pair = (two(before), two(after));
    if pair.0 == pair.1 {
        (number(before), number(after))
    } else {
        pair
    }
}

/// Levels that both phases have, innermost first.
fn levels<'a>(
    alone: &'a Metrics,
    together: &'a Metrics,
) -> impl DoubleEndedIterator<Item = (&'a LevelMpki, &'a LevelMpki)> {
    alone.mpki.iter().filter_map(|before| {
        let there = together.mpki.iter().find(|l| l.level == before.level)?;
        Some((before, there))
    })
}

/// "Under rainbow it runs 6 % slower (±1): 17 points less (±2) than under buddy."
fn versus(
    first: &PolicyResult,
    target: &ProgramResult,
    policy: &PolicyResult,
    there: &ProgramResult,
) -> Option<String> {
    let before = target.slowdown.as_ref().filter(|s| s.is_known())?;
    let after = there.slowdown.as_ref().filter(|s| s.is_known())?;
    let change = after.difference(before);
    let (policy, first, name) = (
        short(&policy.name, 40),
        short(&first.name, 40),
        short(&target.name, 40),
    );
    let points = format!("{} points", magnitude(&change));
    let half = percent_half(&change);
    if change.mean == 0.0 && change.ci95 == Some(0.0) {
        return Some(format!(
            "{name}'s slowdown is the same under {policy} as under {first}, repetition by repetition."
        ));
    }
    Some(match change.excludes_zero() {
        None => format!(
            "Under {policy}, {name} ran {} in a single repetition.",
            speed(after)
        ),
        Some(false) => format!(
            "Between {policy} and {first}, no difference of {name}'s slowdown can be told from chance ({} ±{half} points).",
            percent_signed(&change).trim_end_matches(" %"),
        ),
        Some(true) => {
            let state = match after.excludes_zero() {
                Some(true) => format!("{name} runs {} (±{})", speed(after), percent_half(after)),
                _ => format!(
                    "no slowdown of {name} can be told from chance ({} ±{})",
                    percent_signed(after),
                    percent_half(after)
                ),
            };
            let direction = if change.mean < 0.0 { "less" } else { "more" };
            format!("Under {policy}, {state}: {points} {direction} (±{half}) than under {first}.")
        }
    })
}

/// What a policy costs or gains a program that has the machine to itself, if it
/// is beyond chance.
fn cost_alone(
    first: &PolicyResult,
    target: &ProgramResult,
    policy: &PolicyResult,
    there: &ProgramResult,
) -> Option<String> {
    let change = target.alone.time_ps.slowdown(&there.alone.time_ps)?;
    if change.excludes_zero() != Some(true) || change.mean.abs() < MIN_COST {
        return None;
    }
    let shown = magnitude(&change);
    let direction = if change.mean > 0.0 { "more" } else { "less" };
    Some(format!(
        "By itself, {} takes {shown} % {direction} time (±{}) under {} than under {}.",
        short(&target.name, 40),
        percent_half(&change),
        short(&policy.name, 40),
        short(&first.name, 40),
    ))
}

/// Decimals that a percentage needs: whole above 10, one below.
fn percent_decimals(sample: &Sample) -> usize {
    usize::from(sample.mean.abs() < 0.0995)
}

fn magnitude(sample: &Sample) -> String {
    let decimals = percent_decimals(sample);
    format!("{:.decimals$}", sample.mean.abs() * 100.0)
}

fn speed(sample: &Sample) -> String {
    let direction = if sample.mean < 0.0 {
        "faster than by itself"
    } else {
        "slower"
    };
    format!("{} % {direction}", magnitude(sample))
}

fn percent_signed(sample: &Sample) -> String {
    let (shown, sign) = (magnitude(sample), if sample.mean < 0.0 { "-" } else { "+" });
    format!("{sign}{shown} %")
}

fn percent_half(sample: &Sample) -> String {
    let Some(half) = sample.ci95.map(|h| h * 100.0) else {
        return crate::format::UNKNOWN.to_owned();
    };
    let decimals = percent_decimals(sample);
    let text = format!("{half:.decimals$}");
    if half > 0.0 && text.bytes().all(|b| matches!(b, b'0' | b'.')) {
        return if decimals == 0 {
            "<1".to_owned()
        } else {
            "<0.1".to_owned()
        };
    }
    text
}
