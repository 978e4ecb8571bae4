//! H-6: what the rules say of mixes, and what is best for them (sections 5.1 and 5.2).

use piebald_policy::hvr::Policy;
use piebald_report::{Published, Sample, TargetKind};

use super::{
    Given,
    by_rule::{self, Gained},
    mixes::Mix,
    rows::Runs,
    told::tell,
    ways::Way,
};
use crate::{
    row::{Found, Row},
    verdict,
};

/// Points of weighted speedup, in percent of Linux's, within which a policy counts as best.
const TOLERANCE: f64 = 0.5;

/// What a mix is tried under: the policies that section 5.1 names.
const PARTITIONED: [Policy; 5] = [
    Policy::CacheOnly,
    Policy::BankOnly4,
    Policy::AVp,
    Policy::BVp,
    Policy::CVp,
];

/// A mix's programs by class, CCF first.
type Counts = [usize; 4];

fn counts(runs: &Runs<'_>, mix: &Mix) -> Counts {
    let mut counts = [0; 4];
    for member in &mix.members {
        if let Some(class) = runs.class(*member) {
            counts[class as usize] += 1;
        }
    }
    counts
}

/// The policies of rules 1 to 3 for a mix, the first that speaks of it; none.
fn wanted(counts: Counts) -> Option<(usize, &'static [Policy])> {
    let [ccf, llcm, llch, llct] = counts;
    let programs: usize = counts.iter().sum();
    match () {
        () if llct > 0 && ccf + llcm + llch > 0 => Some((1, &[Policy::AVp, Policy::CVp])),
        () if llct == 0 && llch > 0 => Some((2, &[Policy::BankOnly4])),
        () if llct == 0 && llch == 0 && llcm > 0 && programs > 4 => Some((3, &[Policy::BVp])),
        () => None,
    }
}

/// Rules 5 and 6 as they can be told apart (protocol): two or more LLCH and LLCM and not two
/// LLCT; or two or more LLCT and not two of the others that are coalesced.
fn coalesced(counts: Counts) -> Option<usize> {
    let [_, llcm, llch, llct] = counts;
    match (llcm + llch >= 2, llct >= 2) {
        (true, false) => Some(5),
        (false, true) => Some(6),
        _ => None,
    }
}

/// Bank-only has as many groups as the mix has programs for (Table 1).
fn way(policy: Policy, mix: &Mix) -> Way {
    match policy {
        Policy::BankOnly4 => Way::bank_only(mix.members.len()),
        other => Way::Fixed(other),
    }
}

/// Names of [`shown`].
const SHOWN: [&str; 8] = [
    "cache-only",
    "bank-only",
    "A-VP",
    "B-VP",
    "C-VP",
    "UVP",
    "baseline HVR",
    "HVR",
];

/// What a mix is shown with: the policies, and frameworks.
fn shown(mix: &Mix) -> [Way; SHOWN.len()] {
    let [cache, bank, a, b, c] = PARTITIONED.map(|p| way(p, mix));
    [cache, bank, a, b, c, Way::Uvp, Way::Coalescing, Way::Hvr]
}

/// The plain vertical policy that coalescing is compared with.
fn vertical(mix: &Mix) -> Way {
    match mix.members.len() {
        0..=4 => Way::Fixed(Policy::AVp),
        _ => Way::Fixed(Policy::CVp),
    }
}

/// How a rule did: mixes that it speaks of, and those in which it is right.
#[derive(Clone, Copy, Default)]
struct Tally {
    spoken: usize,
    right: usize,
}

impl Tally {
    fn add(&mut self, right: bool) {
        self.spoken += 1;
        self.right += usize::from(right);
    }
}

/// By the number of the rule.
type Tallies = [Tally; 7];

/// Counts a mix for the rules that speak of it, by the gains of ways; what the policies gain.
fn tally(
    mix: &Mix,
    counts: Counts,
    gain: impl Fn(&Mix, Way) -> Result<f64, String>,
    tallies: &mut Tallies,
) -> Result<[f64; PARTITIONED.len()], String> {
    let mut gains = [0.0; PARTITIONED.len()];
    for (policy, found) in PARTITIONED.iter().zip(&mut gains) {
        *found = gain(mix, way(*policy, mix))?;
    }
    let most = gains.iter().copied().fold(f64::MIN, f64::max);
    if let Some((rule, policies)) = wanted(counts) {
        let of = PARTITIONED.iter().zip(&gains);
        let mut of = of.filter(|(p, _)| policies.contains(p));
        tallies[rule].add(of.any(|(_, g)| *g >= most - TOLERANCE));
    }
    if let Some(rule) = coalesced(counts) {
        let (with, without) = (gain(mix, Way::Coalescing)?, gain(mix, vertical(mix))?);
        tallies[rule].add(with >= without - TOLERANCE);
    }
    Ok(gains)
}

fn percent(part: usize, of: usize) -> Found {
    match of {
        0 => Err("no mix that was run is one that it speaks of".to_owned()),
        _ => Ok(Sample::new(vec![100.0 * part as f64 / of as f64])),
    }
}

/// The rules that are looked at.
const RULES: [usize; 5] = [1, 2, 3, 5, 6];
/// Mixes that the quick form has of each of them, if its part of H-1's list has fewer: the first
/// of the list.
const LEAST: usize = 2;

/// Does a rule speak of a mix?
fn speaks(rule: usize, counts: Counts) -> bool {
    wanted(counts).map(|(rule, _)| rule) == Some(rule) || coalesced(counts) == Some(rule)
}

/// The rule of 1 to 3 that speaks of a mix.
pub(super) fn rule_of(runs: &Runs<'_>, mix: &Mix) -> Option<usize> {
    wanted(counts(runs, mix)).map(|(rule, _)| rule)
}

/// H-1's mixes, and in the quick form those that rules lack.
fn tried(runs: &Runs<'_>) -> Vec<Mix> {
    let mut mixes = runs.first();
    let list = runs.list();
    for rule in RULES {
        let is_of = |m: &&Mix| speaks(rule, counts(runs, m));
        let missing = LEAST.saturating_sub(mixes.iter().filter(is_of).count());
        let others = list.iter().filter(is_of).filter(|m| !mixes.contains(m));
        let others: Vec<Mix> = others.take(missing).cloned().collect();
        mixes.extend(others);
    }
    mixes
}

/// H-6, on H-1's mixes.
pub(super) fn rules(runs: &Runs<'_>) -> Given {
    let mixes = tried(runs);
    let list = runs.list();
    let gain = |mix: &Mix, way: Way| -> Result<f64, String> {
        Ok(runs.bench.gain(mix, way, Way::Linux)?.mean)
    };
    let without = |mix: &Mix, way: Way| runs.bench.free_gain(mix, way);
    let mut tallies = Tallies::default();
    // The same without the time of moves, for a look.
    let mut free = Tallies::default();
    let mut best = [0usize; PARTITIONED.len()];
    for mix in &mixes {
        let counts = counts(runs, mix);
        let ways = PARTITIONED.map(|p| way(p, mix));
        let mut all = ways.to_vec();
        all.extend([Way::Linux, Way::Coalescing, Way::Uvp, Way::Hvr]);
        runs.bench.prepare(std::slice::from_ref(mix), &all);
        let gains = tally(mix, counts, gain, &mut tallies)?;
        tally(mix, counts, without, &mut free)?;
        let most = gains.iter().copied().fold(f64::MIN, f64::max);
        for (at, found) in gains.iter().enumerate() {
            best[at] += usize::from(*found == most);
        }
    }
    let mut row = Row::new("H-6", "Section 5: rules", TargetKind::H);
    for (rule, support, confidence) in [
        (1, 37.1, 94.4),
        (2, 34.3, 83.3),
        (3, 23.8, 87.9),
        (5, 39.5, 87.2),
        (6, 7.8, 90.5),
    ] {
        let tally = tallies[rule];
        row.judge(
            &format!("confidence of rule {rule}"),
            Published::Number(confidence),
            percent(tally.right, tally.spoken),
            "%",
            |s| verdict::amount(confidence, s.mean, true),
        );
        let all = list.iter().filter(|m| speaks(rule, counts(runs, m)));
        row.show(
            &format!("mixes of rule {rule} that were run"),
            &Ok(Sample::new(vec![tally.spoken as f64])),
            "mixes",
        );
        let words = format!("confidence of rule {rule}, without the time of moves");
        let found = percent(free[rule].right, free[rule].spoken);
        row.show(&words, &found, "%");
        row.show(
            &format!("support of rule {rule} in the list (paper {support})"),
            &percent(all.count(), list.len()),
            "%",
        );
    }
    for (policy, times) in PARTITIONED.iter().zip(best) {
        row.show(
            &format!("{policy} is best"),
            &percent(times, mixes.len()),
            "%",
        );
    }
    row.note(&format!("{} of 214 mixes", mixes.len()));
    let gained = mixes.iter().map(|mix| Gained {
        mix,
        rule: rule_of(runs, mix),
        gains: shown(mix).map(|way| gain(mix, way).ok()).to_vec(),
    });
    by_rule::show(&mut row, &SHOWN, &gained.collect::<Vec<_>>());
    if runs.form.quick {
        for mix in &mixes {
            let ways = [&[Way::Linux], &shown(mix)[..]].concat();
            tell(runs, &mut row, std::slice::from_ref(mix), &ways);
        }
    }
    let silent: Vec<String> = RULES
        .into_iter()
        .filter(|r| tallies[*r].spoken == 0)
        .map(|r| r.to_string())
        .collect();
    if !silent.is_empty() {
        row.note(&format!("rules without a mix: {}", silent.join(", ")));
    }
    Ok((vec![row.finish()], Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_speak_of_the_mixes_that_the_paper_says() {
        let rule = |counts| wanted(counts).map(|(rule, _)| rule);
        assert_eq!(rule([1, 1, 1, 1]), Some(1));
        assert_eq!(rule([0, 0, 0, 4]), None, "only LLCT");
        assert_eq!(rule([0, 2, 2, 0]), Some(2));
        assert_eq!(rule([4, 4, 0, 0]), Some(3));
        assert_eq!(rule([2, 2, 0, 0]), None, "rule 3 is of eight programs");
        assert_eq!(rule([4, 0, 0, 0]), None);
        assert_eq!(coalesced([2, 1, 1, 0]), Some(5));
        assert_eq!(coalesced([2, 1, 1, 1]), Some(5));
        assert_eq!(coalesced([2, 0, 0, 2]), Some(6));
        assert_eq!(coalesced([2, 1, 0, 5]), Some(6));
        assert_eq!(coalesced([0, 1, 1, 2]), None, "both at once");
        assert_eq!(coalesced([3, 1, 0, 0]), None);
    }
}
