//! What the numbers of a replay say, in sentences.
//!
//! A difference is claimed if it is large enough to matter and is told from chance over the parts of the
//! trace. A sentence says "as", not "because": two runs show that requests and time fell together, not that
//! one made the other.

use super::{apart::Measure, grid::Grid};
use crate::{
    Finding, Sample, Unmet,
    format::{brief, clean, join_names, percent},
    gate::LEAST_EFFECT,
};

/// Two runs are told apart in words if they differ by more than this share: below, both policies do
/// the same for whoever chooses between them. The tables show every difference.
pub(super) const NOTABLE: f64 = LEAST_EFFECT;
/// What goes with a longer time must account for this share of it at least.
const CARRIED: f64 = 0.5;
/// Sizes that are named one by one.
const MAX_SIZES: usize = 3;
/// Policies that are compared with the first in a sentence of their own.
const MAX_COMPARED: usize = 3;
/// The question of such a sentence.
const TIME: &str = "time";

/// What the numbers say, the most important first; at least one finding.
pub(super) fn findings(grid: &Grid<'_>) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    match grid.policies.len() {
        0 => {}
        1 => out.extend(alone(grid).map(|claim| Finding {
            question: "alone".to_owned(),
            policy: grid.policies[0].to_owned(),
            claim,
            effect: f64::NAN,
            n: 1,
            ..Finding::default()
        })),
        _ => {
            out.extend(best(grid));
            out.extend(from_bound(grid));
            if grid.replay.has_device() {
                out.extend(orders(grid));
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

/// The claims as paragraphs: those of the best side by side, as whether they name the same policies is the
/// first question. Of the times only those of the three best policies are told.
pub(super) fn sentences(findings: &[Finding]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut before = "";
    let mut times = 0;
    for finding in findings {
        times += usize::from(finding.question == TIME);
        if finding.question == TIME && times > MAX_COMPARED {
            continue;
        }
        match out.last_mut() {
            Some(last) if before == "best" && finding.question == "best" => {
                *last += " ";
                *last += &finding.claim;
            }
            _ => out.push(finding.claim.clone()),
        }
        before = &finding.question;
    }
    out
}

/// A finding of a policy; `by_parts` is the change in each part of the trace, if that is known.
fn finding(
    question: &str,
    (policy, effect): (&str, f64),
    by_parts: Option<&Sample>,
    claim: String,
) -> Finding {
    let ends = by_parts.and_then(|s| Some([s.mean - s.ci95?, s.mean + s.ci95?]));
    Finding {
        question: question.to_owned(),
        policy: policy.to_owned(),
        claim,
        effect,
        ci95: ends,
        n: by_parts.map_or(1, Sample::n),
        shown: true,
        ..Finding::default()
    }
}

/// The same if nothing is claimed.
fn without_claim(finding: Finding, why: &str) -> Finding {
    Finding {
        shown: false,
        why: Some(why.to_owned()),
        unmet: Some(Unmet::by_chance()),
        ..finding
    }
}

const BY_CHANCE: &str =
    "over the parts of the trace the differences are 1 % or less or cannot be told from chance";

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
        let told = winners(grid, s, Measure::Misses).is_some_and(|w| w.least == [best]);
        let name = if told {
            format!(" ({})", grid.name(best))
        } else {
            String::new()
        };
        let size = grid.size(s);
        if gap > 0.0 {
            format!("{} points more at {size}{name}", brief(100.0 * gap))
        } else {
            format!("no more at {size}{name}")
        }
    };
    let rest = match gaps.len() {
        1 => String::new(),
        _ => format!(" and {}", text(least)),
    };
    let claim = format!(
        "Against the offline bound ({}), the best policy that does not know the future misses {}{rest}.",
        grid.name(bound),
        text(most)
    );
    Some(Finding {
        shown: most.2 > 0.0,
        ..finding("bound", (grid.policies[most.1], most.2), None, claim)
    })
}

/// A single policy: from its smallest to its largest memory.
fn alone(grid: &Grid<'_>) -> Option<String> {
    let known = |s| Some((s, 100.0 * grid.whole(0, s)?.hit_ratio()?));
    let ratios: Vec<(usize, f64)> = (0..grid.sizes.len()).filter_map(known).collect();
    let (first, last) = (*ratios.first()?, *ratios.last()?);
    let at = |(s, ratio): (usize, f64)| format!("{} % at {}", percent(ratio), grid.size(s));
    let name = grid.name(0);
    Some(match ratios.len() {
        1 => format!("{name} hits {}.", at(first)),
        _ => format!("{name} hits {}, and {}.", at(first), at(last)),
    })
}

/// Which policies have the least of each measure, one finding for each.
fn best(grid: &Grid<'_>) -> Vec<Finding> {
    let each = [
        ("Fewest misses", Measure::Misses),
        ("Fewest bytes missed", Measure::Bytes),
        ("Least time", Measure::Time),
    ];
    let told = each
        .into_iter()
        .filter_map(|(title, measure)| Best::of(grid, title, measure));
    told.map(|best| {
        let effect = best.by_parts.as_ref().map_or(best.effect, |s| s.mean);
        let about = (best.policy.unwrap_or_default(), effect);
        let found = finding("best", about, best.by_parts.as_ref(), best.claim);
        if best.policy.is_some() {
            found
        } else {
            without_claim(found, BY_CHANCE)
        }
    })
    .collect()
}

/// The policies with the least of a measure, in words, and the one that has it at the most sizes, or the first
/// of those that share it.
struct Best<'a> {
    claim: String,
    /// The one that has it at the most sizes, if any has.
    policy: Option<&'a str>,
    /// Against the next one that is told from it, at these sizes on average.
    effect: f64,
    by_parts: Option<Sample>,
}

impl<'a> Best<'a> {
    fn of(grid: &Grid<'a>, title: &str, measure: Measure) -> Option<Self> {
        let mut groups: Vec<(Winners, Vec<usize>)> = Vec::new();
        for s in 0..grid.sizes.len() {
            let Some(winners) = winners(grid, s, measure) else {
                continue;
            };
            match groups.iter_mut().find(|(who, _)| *who == winners) {
                Some((_, sizes)) => sizes.push(s),
                None => groups.push((winners, vec![s])),
            }
        }
        groups.sort_by_key(|(who, sizes)| (who.least.is_empty(), usize::MAX - sizes.len()));
        let text = |(who, sizes): &(Winners, Vec<usize>)| {
            format!("{} {}", who.told(grid), places(grid, sizes))
        };
        let parts: Vec<String> = groups.iter().map(text).collect();
        let claim = (!parts.is_empty()).then(|| format!("{title}: {}.", parts.join("; ")))?;
        let single = groups.iter().find(|(who, _)| who.least.len() == 1);
        let shared = || groups.first().filter(|(who, _)| !who.least.is_empty());
        let Some((who, sizes)) = single.or_else(shared) else {
            return Some(Self {
                claim,
                policy: None,
                effect: f64::NAN,
                by_parts: None,
            });
        };
        let policy = who.least[0];
        let pairs: Vec<(usize, usize, usize)> = sizes
            .iter()
            .filter_map(|s| Some((policy, next_best(grid, *s, measure)?, *s)))
            .collect();
        let changes = pairs.iter().filter_map(|(own, next, s)| {
            let [own, next] = [*own, *next].map(|p| measure.of(grid, grid.whole(p, *s)?));
            let next = next.filter(|v| *v > 0.0)?;
            Some(own? / next - 1.0)
        });
        let changes: Vec<f64> = changes.collect();
        Some(Self {
            claim,
            policy: Some(grid.policies[policy]),
            effect: changes.iter().sum::<f64>() / changes.len() as f64,
            by_parts: grid.by_parts(&pairs, measure),
        })
    }
}

/// The best of those that are told from the best.
fn next_best(grid: &Grid<'_>, size: usize, measure: Measure) -> Option<usize> {
    let winners = winners(grid, size, measure)?;
    let near = |p: &usize| {
        let Winners {
            least, near, alike, ..
        } = &winners;
        [least, near, alike].iter().any(|group| group.contains(p))
    };
    let value = |p| Some((p, measure.of(grid, grid.whole(p, size)?)?));
    let others = grid.online().filter(|p| !near(p)).filter_map(value);
    others.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(p, _)| p)
}

/// The policies with the least at a size, in the order of the policies; none if all have the same.
#[derive(Default, PartialEq)]
pub(super) struct Winners {
    least: Vec<usize>,
    /// Those that have hardly more.
    near: Vec<usize>,
    /// Those that have more, which may be chance.
    alike: Vec<usize>,
    /// All are the same but for chance.
    by_chance: bool,
}

impl Winners {
    /// Is it the best of the policies, or one of those that may be as good, within 1 % or by chance?
    pub fn lead(&self, policy: usize) -> bool {
        let groups = [&self.least, &self.near, &self.alike];
        !self.least.is_empty() && groups.iter().any(|group| group.contains(&policy))
    }

    fn told(&self, grid: &Grid<'_>) -> String {
        let list = |who: &[usize]| {
            let names: Vec<String> = who.iter().map(|p| grid.name(*p)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            join_names(&names)
        };
        match (&self.least[..], self.by_chance) {
            ([], false) => return "no difference".to_owned(),
            ([], true) => return "no difference beyond chance".to_owned(),
            _ => {}
        }
        let margin = brief(100.0 * NOTABLE);
        let near =
            (!self.near.is_empty()).then(|| format!("{} within {margin} %", list(&self.near)));
        let alike =
            (!self.alike.is_empty()).then(|| format!("{} not told from chance", list(&self.alike)));
        let others: Vec<String> = near.into_iter().chain(alike).collect();
        if others.is_empty() {
            list(&self.least)
        } else {
            format!("{} ({})", list(&self.least), others.join(", "))
        }
    }
}

/// `None` if fewer than two can be compared.
pub(super) fn winners(grid: &Grid<'_>, s: usize, measure: Measure) -> Option<Winners> {
    let value = |p| Some((p, measure.of(grid, grid.whole(p, s)?)?));
    let values: Vec<(usize, f64)> = grid.online().filter_map(value).collect();
    let least = values.iter().map(|(_, v)| *v).fold(f64::INFINITY, f64::min);
    let first = values.iter().find(|(_, v)| *v == least)?.0;
    let mut winners = Winners::default();
    for &(p, value) in &values {
        let group = if value == least {
            &mut winners.least
        } else if value <= least * (1.0 + NOTABLE) {
            &mut winners.near
        } else if grid.may_be_chance((p, first, s), measure) {
            &mut winners.alike
        } else {
            continue;
        };
        group.push(p);
    }
    let same = winners.least.len() + winners.near.len();
    if same + winners.alike.len() == values.len() {
        winners = Winners {
            by_chance: same < values.len(),
            ..Winners::default()
        };
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
        _ if names.len() == all && all == 2 => "at both sizes".to_owned(),
        _ if names.len() == all && all > 2 => format!("at all {all} sizes"),
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
fn orders(grid: &Grid<'_>) -> Option<Finding> {
    let (mut agree, mut unsure, mut conflicts) = (0u32, 0u32, Vec::new());
    for size in 0..grid.sizes.len() {
        for a in 0..grid.policies.len() {
            for b in 0..grid.policies.len() {
                match compare(grid, a, b, size) {
                    Some(Order::Conflict(conflict)) => conflicts.push(conflict),
                    Some(Order::Unsure) => unsure += 1,
                    Some(Order::Agree) => agree += 1,
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
        Some(worst) => {
            let pair = (worst.fewer, worst.faster, worst.size);
            let by_parts = grid.by_parts(&[pair], Measure::Time);
            let about = (grid.policies[worst.fewer], worst.time_more);
            let claim = conflict_text(grid, worst, conflicts.len() - 1);
            Some(finding("order", about, by_parts.as_ref(), claim))
        }
        None => (agree > 0).then(|| {
            let (beyond, but) = match unsure {
                0 => ("", String::new()),
                1 => (
                    ", beyond chance in both",
                    "; in one pair of runs it takes more, which may be chance".to_owned(),
                ),
                n => (
                    ", beyond chance in both",
                    format!("; in {n} pairs of runs it takes more, which may be chance"),
                ),
            };
            let claim = format!(
                "Wherever two policies differ by {least} % or more in misses and in time{beyond}, the \
                 one with fewer misses also takes less time{but}."
            );
            finding("order", ("", f64::NAN), None, claim)
        }),
    }
}

/// What two runs say of the order by misses and that by time.
enum Order {
    /// The policy with fewer misses takes more time.
    Conflict(Conflict),
    /// It does, and one of both may be chance.
    Unsure,
    /// It also takes less time.
    Agree,
}

/// `a` against `b`, if `a` misses notably less and their times differ notably. That both go the same way
/// counts only beyond chance.
fn compare(grid: &Grid<'_>, a: usize, b: usize, size: usize) -> Option<Order> {
    let (own, other) = (grid.whole(a, size)?, grid.whole(b, size)?);
    let misses_less = 1.0 - own.miss_ratio()? / other.miss_ratio().filter(|m| *m > 0.0)?;
    let time_more = grid.time(own)? / grid.time(other).filter(|t| *t > 0.0)? - 1.0;
    if misses_less < NOTABLE || time_more.abs() < NOTABLE {
        return None;
    }
    let by_chance = |measure| grid.may_be_chance((a, b, size), measure);
    let is_unsure = by_chance(Measure::Misses) || by_chance(Measure::Time);
    match (time_more > 0.0, is_unsure) {
        (true, true) => Some(Order::Unsure),
        (true, false) => Some(Order::Conflict(Conflict {
            fewer: a,
            faster: b,
            size,
            misses_less,
            time_more,
        })),
        (false, true) => None,
        (false, false) => Some(Order::Agree),
    }
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

/// What goes with the longer time, where the disk's figures can account for it: shorter sequences are
/// more requests for as many pages.
fn accompanied(grid: &Grid<'_>, c: &Conflict) -> String {
    let io = |p| grid.whole(p, c.size)?.io.as_ref();
    let (Some(own), Some(other)) = (io(c.fewer), io(c.faster)) else {
        return String::new();
    };
    let more_requests = own.read_requests as f64 / other.read_requests as f64 - 1.0;
    match (own.mean_sequence(), other.mean_sequence()) {
        (Some(a), Some(b)) if a < b * (1.0 - NOTABLE) && more_requests >= CARRIED * c.time_more => {
            format!(
                ", as it reads sequences of {} pages on average against {}",
                brief(a),
                brief(b)
            )
        }
        _ => String::new(),
    }
}

/// The other policies' time against the first one's, the best of them first: where they gain or
/// lose most.
fn against_first(grid: &Grid<'_>) -> Vec<Finding> {
    let order = grid.best_first().into_iter();
    let others = order.filter(|p| *p != 0 && !grid.is_offline(*p));
    others.filter_map(|p| extremes(grid, p)).collect()
}

fn extremes(grid: &Grid<'_>, p: usize) -> Option<Finding> {
    let change = |s| Some((s, grid.change(p, s)?));
    let changes: Vec<(usize, f64)> = (0..grid.sizes.len()).filter_map(change).collect();
    let least = *changes.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = *changes.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let by_chance = |s: usize| grid.may_be_chance((p, 0, s), Measure::Time);
    let text = |(s, change): (usize, f64)| {
        let word = if change < 0.0 { "less" } else { "more" };
        match change.abs() < NOTABLE {
            true => format!("about the same time at {}", grid.size(s)),
            false => format!(
                "{} % {word} time at {}{}",
                brief(100.0 * change.abs()),
                grid.size(s),
                if by_chance(s) { " (may be chance)" } else { "" }
            ),
        }
    };
    let names = format!("{} takes", grid.name(p));
    let first = grid.name(0);
    let same = |c: &(usize, f64)| c.1.abs() < NOTABLE;
    let mean = changes.iter().map(|c| c.1).sum::<f64>() / changes.len() as f64;
    let pairs: Vec<(usize, usize, usize)> = changes.iter().map(|(s, _)| (p, 0, *s)).collect();
    let by_parts = grid.by_parts(&pairs, Measure::Time);
    let differs = |c: &(usize, f64)| !same(c) && !by_chance(c.0);
    let is_claimed = changes.iter().any(differs);
    let is_sure =
        is_claimed && (by_parts.as_ref()).is_none_or(|parts| parts.excludes_zero() != Some(false));
    let claim = match changes.len() {
        _ if changes.iter().all(same) => {
            format!("{names} about the same time as {first} at every size.")
        }
        1 => format!("Against {first}, {names} {}.", text(least)),
        n => {
            let word = if mean < 0.0 { "less" } else { "more" };
            format!(
                "Against {first}, {names} {} and {}; over the {n} sizes {} % {word} on average{}.",
                text(least),
                text(most),
                brief(100.0 * mean.abs()),
                if is_sure { "" } else { " (may be chance)" }
            )
        }
    };
    let found = finding(TIME, (grid.policies[p], mean), by_parts.as_ref(), claim);
    Some(if is_claimed {
        found
    } else {
        without_claim(found, BY_CHANCE)
    })
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
