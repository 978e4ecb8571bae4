//! D-3 to D-7: figures 3 and 4, time, hit ratio and lengths of sequences.

use piebald_report::{Predicate, Published, Sample, Target, Verdict};

use super::inputs::{Input, List};
use super::runs::{CLOCK, DULO, Runs, hits, hits_again, longer, seconds};
use crate::experiment::mean_of;
use crate::row::{sampled, shown};
use crate::verdict;

/// D-3: share of blocks in runs of more than [`LONG`], at least, in percent.
const MOSTLY: f64 = 80.0;
const LONG: u32 = 120;
/// D-5 and D-6: blocks of which runs count.
const OVER: u32 = 40;
/// D-4: bound of the reduction, and of a loss on average, in percent.
const NO_CHANGE: f64 = 5.0;
const NO_LOSS: f64 = -1.0;
/// D-7: bound of the difference of multi2's hit ratios, in points; its least gain, in percent.
const SAME_HITS: f64 = 2.0;
const CLEAR_GAIN: f64 = 5.0;

/// A row of figure 4 with numbers: memory, shares of CLOCK and of DULO, reduction of time,
/// increase of the hit ratio.
pub(super) struct Named {
    pub id: &'static str,
    pub mb: u32,
    pub shares: [f64; 2],
    pub time: f64,
    pub hits: f64,
}

/// D-5.
pub(super) const AT_80: Named = Named {
    id: "D-5",
    mb: 80,
    shares: [13.7, 16.1],
    time: 8.5,
    hits: 3.8,
};
/// D-6.
pub(super) const AT_160: Named = Named {
    id: "D-6",
    mb: 160,
    shares: [14.0, 24.9],
    time: 55.3,
    hits: 29.5,
};

/// Reduction of time by DULO in percent, repetition by repetition.
pub(super) fn reduction(runs: &Runs, input: &str, mb: u32) -> Option<Sample> {
    let clock = runs.sample(input, mb, CLOCK, seconds)?;
    let dulo = runs.sample(input, mb, DULO, seconds)?;
    Some(dulo.ratio(&clock)?.map(|r| 100.0 * (1.0 - r)))
}

/// DULO's hit ratio less CLOCK's, in points.
fn points(runs: &Runs, input: &str, mb: u32) -> Option<Sample> {
    let clock = runs.sample(input, mb, CLOCK, hits)?;
    Some(runs.sample(input, mb, DULO, hits)?.difference(&clock))
}

/// Reductions at every size that was run.
fn reductions(runs: &Runs, input: &str) -> Vec<(u32, Sample)> {
    let sizes = runs.sizes(input, CLOCK).into_iter();
    let of = |mb| Some((mb, reduction(runs, input, mb)?));
    sizes.filter_map(of).collect()
}

/// Their mean over the sizes, repetition by repetition.
fn gain(runs: &Runs, input: &str) -> Option<Sample> {
    let all: Vec<Sample> = reductions(runs, input)
        .into_iter()
        .map(|(_, s)| s)
        .collect();
    mean_of(&all)
}

fn holds(text: String, holds: bool) -> Predicate {
    Predicate {
        text,
        holds: Some(holds),
    }
}

/// Shows every size's reduction, which the paper draws and does not print.
fn show_sizes(t: &mut Target, input: &str, all: &[(u32, Sample)]) {
    for (mb, sample) in all {
        let name = format!("{input}, {mb} MB: reduction of time");
        t.values.push(shown(&name, sample, "%"));
    }
}

/// D-3.
pub(super) fn viewperf(t: &mut Target, runs: &Runs) {
    let all = reductions(runs, "viewperf");
    let Some(mean) = gain(runs, "viewperf") else {
        return;
    };
    let largest = all.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let mut verdicts = vec![verdict::headline(4.4, &mean)];
    t.values.push(sampled(
        "mean reduction of time",
        Published::Number(4.4),
        &mean,
        "%",
    ));
    if let Some((mb, sample)) = largest {
        verdicts.push(verdict::headline(8.0, sample));
        let name = format!("largest reduction of time (at {mb} MB)");
        t.values
            .push(sampled(&name, Published::Number(8.0), sample, "%"));
    }
    show_sizes(t, "viewperf", &all);
    for (mb, _) in &all {
        for policy in [CLOCK, DULO] {
            let share = runs.sample("viewperf", *mb, policy, longer(LONG));
            let Some(share) = share else { continue };
            let text = format!(
                "{policy}, {mb} MB: more than {MOSTLY} % of the blocks in runs of more than {LONG} ({:.1})",
                share.mean
            );
            t.predicates.push(holds(text, share.mean > MOSTLY));
        }
    }
    t.verdict = verdict::with_statements(verdict::worst(verdicts), &t.predicates);
}

/// D-4.
pub(super) fn tpch(t: &mut Target, runs: &Runs) {
    let all = reductions(runs, "tpc-h");
    show_sizes(t, "tpc-h", &all);
    for (mb, sample) in &all {
        let within = sample
            .interval()
            .is_some_and(|(low, high)| low >= -NO_CHANGE && high <= NO_CHANGE);
        let text = format!("{mb} MB: the interval of the reduction within {NO_CHANGE} % of 0");
        t.predicates.push(holds(text, within));
    }
    if let Some(mean) = gain(runs, "tpc-h") {
        let text = format!(
            "its mean over the sizes is above {NO_LOSS} % ({:.2})",
            mean.mean
        );
        t.predicates.push(holds(text, mean.mean > NO_LOSS));
    }
    t.verdict = verdict::shape(&t.predicates);
}

/// D-5 and D-6, with what the files of a file system make of them beside.
pub(super) fn multi1(t: &mut Target, [runs, ext3]: [&Runs; 2], paper: &Named) {
    let share = |policy| runs.sample("multi1", paper.mb, policy, longer(OVER));
    let ratio = |policy| runs.sample("multi1", paper.mb, policy, hits);
    let (Some(clock), Some(dulo)) = (share(CLOCK), share(DULO)) else {
        return;
    };
    let (Some(time), Some(points)) = (
        reduction(runs, "multi1", paper.mb),
        points(runs, "multi1", paper.mb),
    ) else {
        return;
    };
    let mut verdicts: Vec<Verdict> = Vec::new();
    for (name, policy, sample) in [
        ("CLOCK", paper.shares[0], &clock),
        ("DULO", paper.shares[1], &dulo),
    ] {
        verdicts.push(verdict::amount(policy, sample.mean, true));
        let name = format!("{name}: blocks in runs of more than {OVER}");
        t.values
            .push(sampled(&name, Published::Number(policy), sample, "%"));
    }
    let increase = ratio(DULO).zip(ratio(CLOCK)).and_then(|(d, c)| d.ratio(&c));
    let increase = increase.map(|r| r.map(|r| 100.0 * (r - 1.0)));
    let change = dulo.difference(&clock);
    let more = (10.0 * (paper.shares[1] - paper.shares[0])).round() / 10.0;
    for (name, paper, sample, unit) in [
        ("change of that share", more, Some(change), "points"),
        ("reduction of time", paper.time, Some(time), "%"),
        ("increase of the hit ratio", paper.hits, increase, "%"),
    ] {
        let Some(sample) = sample else { continue };
        verdicts.push(verdict::headline(paper, &sample));
        t.values
            .push(sampled(name, Published::Number(paper), &sample, unit));
    }
    let name = "the same as a difference (not judged)";
    t.values.push(shown(name, &points, "points"));
    for policy in [CLOCK, DULO] {
        let Some(ratio) = ratio(policy) else { continue };
        let name = format!("{policy}: hit ratio (not judged)");
        t.values.push(shown(&name, &ratio, "%"));
    }
    let again = [CLOCK, DULO].map(|p| runs.sample("multi1", paper.mb, p, hits_again));
    if let [Some(clock), Some(dulo)] = again {
        let more = dulo.ratio(&clock).map(|r| r.map(|r| 100.0 * (r - 1.0)));
        for (name, sample) in [
            (
                "clock: hit ratio without first uses of what was read ahead",
                Some(clock),
            ),
            ("dulo: the same", Some(dulo)),
            ("its increase", more),
        ] {
            let Some(sample) = sample else { continue };
            t.values.push(shown(name, &sample, "%"));
        }
    }
    for policy in [CLOCK, DULO] {
        let Some(time) = runs.sample("multi1", paper.mb, policy, seconds) else {
            continue;
        };
        let name = format!("{policy}: time (not judged)");
        t.values.push(shown(&name, &time, "s"));
    }
    if let Some(time) = reduction(ext3, "multi1", paper.mb) {
        let name = "reduction of time with the files of an ext3 (not judged)";
        t.values.push(shown(name, &time, "%"));
    }
    t.verdict = verdict::worst(verdicts);
}

/// D-7.
pub(super) fn order(t: &mut Target, runs: &Runs) {
    let gains = ["multi1", "glimpse", "multi2"].map(|input| (input, gain(runs, input)));
    for (input, gain) in &gains {
        let Some(gain) = gain else { continue };
        let name = format!("{input}: mean reduction of time over the sizes");
        t.values.push(shown(&name, gain, "%"));
    }
    for pair in gains.windows(2) {
        if let [(more, Some(a)), (less, Some(b))] = pair {
            let text = format!("{more} gains more than {less}");
            t.predicates.push(holds(text, a.mean > b.mean));
        }
    }
    let sizes = runs.sizes("multi2", CLOCK);
    let apart = sizes
        .iter()
        .filter_map(|mb| Some((*mb, points(runs, "multi2", *mb)?.mean)));
    for (mb, apart) in apart {
        let text =
            format!("multi2, {mb} MB: hit ratios less than {SAME_HITS} points apart ({apart:+.2})");
        t.predicates.push(holds(text, apart.abs() < SAME_HITS));
    }
    if let Some(gain) = &gains[2].1 {
        let sure = gain.interval().is_some_and(|(low, _)| low > 0.0);
        let text = format!("multi2 gains at least {CLEAR_GAIN} %, with an interval above 0");
        t.predicates
            .push(holds(text, sure && gain.mean >= CLEAR_GAIN));
    }
    for input in ["glimpse", "multi1", "multi2"] {
        show_sizes(t, input, &reductions(runs, input));
    }
    t.verdict = verdict::shape(&t.predicates);
}

/// Inputs of the figures, in the paper's order.
pub(super) fn drawn<'l>(list: &'l List, runs: &Runs) -> Vec<&'l Input> {
    let run = |i: &&Input| !runs.sizes(&i.name, CLOCK).is_empty();
    list.input.iter().filter(run).collect()
}

#[cfg(test)]
mod tests {
    use piebald_report::{ReplayIo, ReplayRun, TargetKind};

    use super::super::rows::blank;
    use super::*;

    /// A run of 1000 accesses.
    fn run(seconds: f64, hits: u64, long_share: u64) -> ReplayRun {
        ReplayRun {
            references: 1000,
            hits,
            misses: 1000 - hits,
            io: Some(ReplayIo {
                elapsed_s: seconds,
                sequences: vec![(1, 1000 - long_share), (200, long_share)],
                ..ReplayIo::default()
            }),
            ..ReplayRun::default()
        }
    }

    fn put(runs: &mut Runs, input: &str, mb: u32, policy: &str, time: f64, hits: u64, share: u64) {
        let cell = [0.0, 0.1, -0.1].map(|d| run(time + d, hits, share));
        runs.put(input, mb, policy, cell.to_vec());
    }

    #[test]
    fn the_papers_own_numbers_match() {
        let mut runs = Runs::default();
        put(&mut runs, "multi1", 80, CLOCK, 1000.0, 500, 137);
        put(&mut runs, "multi1", 80, DULO, 915.0, 519, 161);
        let mut t = blank("D-5", "", TargetKind::H);
        multi1(&mut t, [&runs, &Runs::default()], &AT_80);
        assert_eq!(t.verdict, Verdict::Match, "{:#?}", t.values);
        let mut t = blank("D-6", "", TargetKind::H);
        multi1(&mut t, [&runs, &Runs::default()], &AT_160);
        assert_eq!((t.verdict, t.values.len()), (Verdict::NotRun, 0));
        for (mb, time) in [(24, 992.0), (32, 920.0)] {
            put(&mut runs, "viewperf", mb, CLOCK, 1000.0, 500, 900);
            put(&mut runs, "viewperf", mb, DULO, time, 500, 900);
        }
        let mut t = blank("D-3", "", TargetKind::H);
        viewperf(&mut t, &runs);
        assert_eq!(
            (t.verdict, t.predicates.len()),
            (Verdict::Match, 4),
            "{:#?}",
            t.values
        );
        put(&mut runs, "viewperf", 32, CLOCK, 1000.0, 500, 700);
        let mut t = blank("D-3", "", TargetKind::H);
        viewperf(&mut t, &runs);
        assert_eq!(t.verdict, Verdict::Near);
    }

    #[test]
    fn a_loss_where_none_should_be_is_a_miss() {
        for (time, verdict) in [
            (1000.0, Verdict::Match),
            (1030.0, Verdict::Miss),
            (900.0, Verdict::Miss),
        ] {
            let mut runs = Runs::default();
            put(&mut runs, "tpc-h", 128, CLOCK, 1000.0, 500, 0);
            put(&mut runs, "tpc-h", 128, DULO, time, 500, 0);
            let mut t = blank("D-4", "", TargetKind::S);
            tpch(&mut t, &runs);
            assert_eq!(t.verdict, verdict, "{time}");
        }
    }

    #[test]
    fn the_order_of_gains_needs_all_three_inputs() {
        let mut runs = Runs::default();
        for (input, time, hits) in [
            ("multi1", 600.0, 700),
            ("glimpse", 800.0, 600),
            ("multi2", 930.0, 505),
        ] {
            put(&mut runs, input, 640, CLOCK, 1000.0, 500, 0);
            put(&mut runs, input, 640, DULO, time, hits, 0);
        }
        let mut t = blank("D-7", "", TargetKind::S);
        order(&mut t, &runs);
        assert_eq!((t.verdict, t.predicates.len()), (Verdict::Match, 4));
        put(&mut runs, "multi2", 640, DULO, 960.0, 530, 0);
        let mut t = blank("D-7", "", TargetKind::S);
        order(&mut t, &runs);
        let failed = t
            .predicates
            .iter()
            .filter(|p| p.holds == Some(false))
            .count();
        assert_eq!((t.verdict, failed), (Verdict::Miss, 2));
    }
}
