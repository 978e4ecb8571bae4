//! What the numbers of a replay say, in sentences.
//!
//! A sentence says "as", not "because": two runs show that requests and time fell
//! together, not that one made the other.

use super::{ReplayRun, grid::Grid};
use crate::{
    Finding,
    format::{brief, clean, join_names},
};

/// Two runs are told apart in words if they differ by this share: below, both policies do
/// the same for whoever chooses between them. The tables show every difference.
const NOTABLE: f64 = 0.005;
/// Sizes that are named one by one.
const MAX_SIZES: usize = 3;
/// Policies that are compared with the first in a sentence of their own.
const MAX_COMPARED: usize = 3;

/// What the numbers say, the most important first; at least one finding.
///
/// Each is of the runs as they are: a replay of the same trace gives the same again, so that no
/// chance is in it, and no interval.
pub(super) fn findings(grid: &Grid<'_>) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    let misses = |run: &ReplayRun| run.miss_ratio();
    match grid.policies.len() {
        0 => {}
        1 => out.extend(alone(grid).map(|claim| finding("alone", None, claim))),
        _ => {
            let time = |run: &ReplayRun| grid.time(run);
            let bytes = |run: &ReplayRun| run.byte_miss_ratio();
            let each = [
                best(grid, "Fewest misses", 0.0, &misses),
                best(grid, "Fewest bytes missed", 0.0, &bytes),
                best(grid, "Least time", NOTABLE, &time),
            ];
            // Side by side: whether they name the same policies is the first question.
            let both: Vec<String> = each.into_iter().flatten().collect();
            let both = (!both.is_empty()).then(|| finding("best", None, both.join(" ")));
            out.extend(both);
            out.extend(from_bound(grid));
            if grid.replay.has_device() {
                out.extend(orders(grid).map(|claim| finding("order", None, claim)));
                out.extend(against_first(grid));
            }
        }
    }
    if out.is_empty() {
        out.push(Finding {
            claim: "No two runs can be compared.".to_owned(),
            why: Some("no two runs counted the same references".to_owned()),
            ..Finding::default()
        });
    }
    if !grid.replay.complete {
        out[0].claim.insert_str(0, "PARTIAL (interrupted): ");
    }
    out
}

/// A finding of a question, and the policy and the change that it is about if there is one.
fn finding(question: &str, about: Option<(&str, f64)>, claim: String) -> Finding {
    let (policy, effect) = about.unwrap_or(("", f64::NAN));
    Finding {
        question: question.to_owned(),
        policy: policy.to_owned(),
        claim,
        effect,
        n: 1,
        shown: true,
        ..Finding::default()
    }
}

/// How far the best policy is from the offline bound, where that is least and most.
fn from_bound(grid: &Grid<'_>) -> Option<Finding> {
    let (bound, _) = grid.bound()?;
    let gap = |s: usize| {
        let least = grid.whole(bound, s)?.miss_ratio()?;
        let ratios = grid
            .online()
            .filter_map(|p| Some((p, grid.whole(p, s)?.miss_ratio()?)));
        let (best, own) = ratios.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((s, best, own - least))
    };
    let gaps: Vec<(usize, usize, f64)> = (0..grid.sizes.len()).filter_map(gap).collect();
    let most = *gaps.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let least = *gaps.iter().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let text = |(s, best, gap): (usize, usize, f64)| {
        let (best, size) = (grid.name(best), grid.size(s));
        format!("{best} at {size} misses {} points more", brief(100.0 * gap))
    };
    let rest = match gaps.len() {
        1 => String::new(),
        _ => format!(", and {}", text(least)),
    };
    let claim = format!(
        "Of the policies that do not know the future, the best one, {}{rest} than the offline \
         bound ({}).",
        text(most),
        grid.name(bound)
    );
    Some(finding(
        "bound",
        Some((grid.policies[most.1], most.2)),
        claim,
    ))
}

/// A single policy: from its smallest to its largest memory.
fn alone(grid: &Grid<'_>) -> Option<String> {
    let known = |s| Some((s, 100.0 * grid.whole(0, s)?.hit_ratio()?));
    let ratios: Vec<(usize, f64)> = (0..grid.sizes.len()).filter_map(known).collect();
    let (first, last) = (*ratios.first()?, *ratios.last()?);
    let at = |(s, ratio): (usize, f64)| format!("{ratio:.2} % at {}", grid.size(s));
    let name = grid.name(0);
    Some(match ratios.len() {
        1 => format!("{name} hits {}.", at(first)),
        _ => format!("{name} hits {}, and {}.", at(first), at(last)),
    })
}

/// Which policies have the least of something, which have no more above it than the margin, a share, and
/// at which sizes.
fn best(
    grid: &Grid<'_>,
    title: &str,
    margin: f64,
    get: &dyn Fn(&ReplayRun) -> Option<f64>,
) -> Option<String> {
    let mut groups: Vec<(Winners, Vec<usize>)> = Vec::new();
    for s in 0..grid.sizes.len() {
        let Some(winners) = winners(grid, s, margin, get) else {
            continue;
        };
        match groups.iter_mut().find(|(who, _)| *who == winners) {
            Some((_, sizes)) => sizes.push(s),
            None => groups.push((winners, vec![s])),
        }
    }
    groups.sort_by_key(|(who, sizes)| (who.least.is_empty(), usize::MAX - sizes.len()));
    let list = |who: &[usize]| {
        let names: Vec<String> = who.iter().map(|p| grid.name(*p)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        join_names(&names)
    };
    let text = |(who, sizes): &(Winners, Vec<usize>)| {
        let names = match (&who.least[..], &who.near[..]) {
            ([], _) => "no difference".to_owned(),
            (least, []) => list(least),
            (least, near) => {
                let margin = brief(100.0 * margin);
                format!("{} ({} within {margin} %)", list(least), list(near))
            }
        };
        format!("{names} {}", places(grid, sizes))
    };
    let parts: Vec<String> = groups.iter().map(text).collect();
    (!parts.is_empty()).then(|| format!("{title}: {}.", parts.join("; ")))
}

/// The policies with the least at a size and those near it, in the order of the policies; none if all are.
#[derive(Default, PartialEq)]
struct Winners {
    least: Vec<usize>,
    near: Vec<usize>,
}

/// `None` if fewer than two can be compared.
fn winners(
    grid: &Grid<'_>,
    s: usize,
    margin: f64,
    get: &dyn Fn(&ReplayRun) -> Option<f64>,
) -> Option<Winners> {
    let value = |p| Some((p, get(grid.whole(p, s)?)?));
    let values: Vec<(usize, f64)> = grid.online().filter_map(value).collect();
    let least = values.iter().map(|(_, v)| *v).fold(f64::INFINITY, f64::min);
    let within = |from: f64, to: f64| -> Vec<usize> {
        let fits = values.iter().filter(|(_, v)| (from..=to).contains(v));
        fits.map(|(p, _)| *p).collect()
    };
    let mut winners = Winners {
        least: within(least, least),
        near: within(least.next_up(), least * (1.0 + margin)),
    };
    if winners.least.len() + winners.near.len() == values.len() {
        winners = Winners::default();
    }
    (values.len() > 1).then_some(winners)
}

/// `at 4MiB`, `at 4MiB and 16MiB`, `from 4MiB to 64MiB (5 sizes)`, `at 5 of 8 sizes`.
fn places(grid: &Grid<'_>, sizes: &[usize]) -> String {
    let all = grid.sizes.len();
    let names: Vec<String> = sizes.iter().map(|s| grid.size(*s)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let neighbours = sizes.windows(2).all(|w| w[1] == w[0] + 1);
    match names.as_slice() {
        _ if names.len() == all && all > 1 => format!("at all {all} sizes"),
        names if names.len() <= MAX_SIZES => format!("at {}", join_names(names)),
        [first, .., last] if neighbours => format!("from {first} to {last}"),
        names => format!("at {} of {all} sizes", names.len()),
    }
}

/// Two policies at one size, of which the first misses less and takes more time.
struct Conflict {
    fewer: usize,
    faster: usize,
    size: usize,
    /// Misses of the first below those of the second, as a share of these.
    misses_less: f64,
    /// Time of the first above that of the second, as a share of this.
    time_more: f64,
}

/// Whether the order by misses is the order by time: where it is not, a policy that
/// looks at misses alone chooses wrongly, which is what DULO is about.
fn orders(grid: &Grid<'_>) -> Option<String> {
    let (mut agree, mut conflicts) = (0u32, Vec::new());
    for size in 0..grid.sizes.len() {
        for a in 0..grid.policies.len() {
            for b in 0..grid.policies.len() {
                match compare(grid, a, b, size) {
                    Some(Ok(conflict)) => conflicts.push(conflict),
                    Some(Err(Agree)) => agree += 1,
                    None => {}
                }
            }
        }
    }
    let worst = conflicts
        .iter()
        .max_by(|a, b| a.time_more.total_cmp(&b.time_more));
    let least = brief(100.0 * NOTABLE);
    match worst {
        Some(worst) => Some(conflict_text(grid, worst, conflicts.len() - 1)),
        None => (agree > 0).then(|| {
            format!(
                "Wherever two policies differ by {least} % or more in misses and in time, the \
                 one with fewer misses also takes less time."
            )
        }),
    }
}

/// The policy with fewer misses also takes less time.
struct Agree;

/// `a` against `b`, if `a` misses notably less and their times differ notably.
fn compare(grid: &Grid<'_>, a: usize, b: usize, size: usize) -> Option<Result<Conflict, Agree>> {
    let (own, other) = (grid.whole(a, size)?, grid.whole(b, size)?);
    let misses_less = 1.0 - own.miss_ratio()? / other.miss_ratio().filter(|m| *m > 0.0)?;
    let time_more = grid.time(own)? / grid.time(other).filter(|t| *t > 0.0)? - 1.0;
    if misses_less < NOTABLE || time_more.abs() < NOTABLE {
        return None;
    }
    let conflict = Conflict {
        fewer: a,
        faster: b,
        size,
        misses_less,
        time_more,
    };
    Some(if time_more > 0.0 {
        Ok(conflict)
    } else {
        Err(Agree)
    })
}

fn conflict_text(grid: &Grid<'_>, c: &Conflict, others: usize) -> String {
    let further = match others {
        0 => String::new(),
        1 => " (and in one further pair of runs)".to_owned(),
        n => format!(" (and in {n} further pairs of runs)"),
    };
    format!(
        "Fewer misses are not less time: at {} {} has {} % fewer misses than {} and takes {} % \
         more time{}{further}.",
        grid.size(c.size),
        grid.name(c.fewer),
        brief(100.0 * c.misses_less),
        grid.name(c.faster),
        brief(100.0 * c.time_more),
        accompanied(grid, c),
    )
}

/// What goes with the longer time, where the disk's figures show something.
fn accompanied(grid: &Grid<'_>, c: &Conflict) -> String {
    let io = |p| grid.whole(p, c.size)?.io.as_ref();
    let (Some(own), Some(other)) = (io(c.fewer), io(c.faster)) else {
        return String::new();
    };
    match (own.mean_sequence(), other.mean_sequence()) {
        (Some(a), Some(b)) if a < b * (1.0 - NOTABLE) => format!(
            ", as it reads sequences of {} pages on average against {}",
            brief(a),
            brief(b)
        ),
        _ => String::new(),
    }
}

/// The other policies' time against the first one's, the best of them first: where they gain or
/// lose most.
fn against_first(grid: &Grid<'_>) -> Vec<Finding> {
    let order = grid.best_first().into_iter();
    let others = order.filter(|p| *p != 0 && !grid.is_offline(*p));
    others
        .filter_map(|p| extremes(grid, p))
        .take(MAX_COMPARED)
        .collect()
}

fn extremes(grid: &Grid<'_>, p: usize) -> Option<Finding> {
    let change = |s| Some((s, grid.change(p, s)?));
    let changes: Vec<(usize, f64)> = (0..grid.sizes.len()).filter_map(change).collect();
    let least = *changes.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = *changes.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = |(s, change): (usize, f64)| {
        let word = if change < 0.0 { "less" } else { "more" };
        match change.abs() < NOTABLE {
            true => format!("about the same time at {}", grid.size(s)),
            false => format!(
                "{} % {word} time at {}",
                brief(100.0 * change.abs()),
                grid.size(s)
            ),
        }
    };
    let names = format!("{} takes", grid.name(p));
    let first = grid.name(0);
    let same = |c: &(usize, f64)| c.1.abs() < NOTABLE;
    let mean = changes.iter().map(|c| c.1).sum::<f64>() / changes.len() as f64;
    let claim = match changes.len() {
        _ if changes.iter().all(same) => {
            format!("{names} about the same time as {first} at every size.")
        }
        1 => format!("Against {first}, {names} {}.", text(least)),
        n => {
            let word = if mean < 0.0 { "less" } else { "more" };
            format!(
                "Against {first}, {names} {} and {}; over the {n} sizes {} % {word} on average.",
                text(least),
                text(most),
                brief(100.0 * mean.abs())
            )
        }
    };
    Some(finding("time", Some((grid.policies[p], mean)), claim))
}

/// Warnings: what was left out of the traces, and runs that were cut short.
pub(super) fn warnings(grid: &Grid<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for trace in grid.replay.traces.iter().filter(|t| !t.skipped.is_empty()) {
        let kinds = trace.skipped.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, n)| format!("{n} {}", clean(kind)))
            .collect();
        let path = clean(&trace.path);
        out.push(format!(
            "{path}: bad records were left out: {}.",
            kinds.join(", ")
        ));
    }
    out.extend(grid.replay.curves_refused.iter().map(|why| clean(why)));
    let short = |p: usize| {
        (0..grid.sizes.len()).any(|s| grid.run(p, s).is_some() && grid.whole(p, s).is_none())
    };
    if (0..grid.policies.len()).any(short) {
        out.push(
            "A star marks a run that counted fewer references than others of its size: it is \
             not compared with them."
                .to_owned(),
        );
    }
    out
}
