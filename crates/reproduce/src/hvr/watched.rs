//! Rows of programs that are watched alone: H-4, H-5, H-7, H-18 and H-19.

use std::collections::HashMap;

use piebald_policy::hvr::{
    Class, LowLocality, MonitorConfig, Unseen, Watched as PageChoice, Window,
};
use piebald_report::{Published, Sample, TargetKind};
use piebald_units::Hertz;
use rayon::prelude::*;

use super::{
    Given,
    fit::{self, Case, Counted},
    mixes::Mix,
    rows::Runs,
    ways::Way,
    windows::{Look, Seen, Translations, Walks, Watcher, watch},
};
use crate::{
    row::{Found, Row},
    verdict,
};

/// Pages of the last-level cache.
const CACHE_PAGES: f64 = 2048.0;
/// Times between windows are divided by this (protocol).
pub(super) const TIME_SCALE: u64 = 1000;
/// References of each program that are watched, and of the quick form.
const REFS: u64 = 100_000_000;
const QUICK_REFS: u64 = 20_000_000;

fn number(value: f64) -> Found {
    Ok(Sample::new(vec![value]))
}

/// The windows of all programs of one thread, by their places, at one instruction per cycle.
pub(super) fn all(runs: &Runs<'_>, look: &Look, scale: u64) -> Windows {
    at_speeds(runs, look, scale, |_| Ok(1.0))
}

/// The same at these instructions per cycle.
fn at_speeds(
    runs: &Runs<'_>,
    look: &Look,
    scale: u64,
    ipc: impl Fn(usize) -> Result<f64, String> + Sync,
) -> Windows {
    let refs = if runs.form.quick { QUICK_REFS } else { REFS };
    let (clock, tlb) = (runs.bench.spec.core.clock, runs.bench.spec.tlb.as_ref());
    let seed = runs.bench.seed;
    let one = |at: usize| {
        let program = &runs.bench.programs[at];
        let watcher = |ipc: f64| Watcher {
            look,
            tlb,
            clock: Hertz((clock.0 as f64 * ipc) as u64),
            walk: program.walk,
        };
        let seen = (program.ready(&runs.bench.inputs, seed, refs))
            .and_then(|ready| Ok((ready, watcher(ipc(at)?))))
            .and_then(|(ready, watcher)| watch(&ready, watcher, [scale, refs, seed]));
        (at, seen.map_err(|e| format!("{}: {e}", program.name)))
    };
    runs.of(&Class::ALL).into_par_iter().map(one).collect()
}

/// Windows of programs by their places.
pub(super) type Windows = HashMap<usize, Result<Seen, String>>;

struct Watched<'r, 'a> {
    runs: &'r Runs<'a>,
    seen: Windows,
    /// The same with other times between windows, and what these are divided by.
    scaled: Vec<(u64, Windows)>,
}

impl Watched<'_, '_> {
    fn named(&self, name: &str) -> Result<&Seen, String> {
        self.named_in(&self.seen, name)
    }

    fn named_in<'s>(&self, seen: &'s Windows, name: &str) -> Result<&'s Seen, String> {
        let at = self.runs.bench.programs.iter().position(|p| p.name == name);
        let at = at.ok_or_else(|| format!("{name}: no such program"))?;
        match seen.get(&at) {
            Some(Ok(seen)) if !seen.windows.is_empty() => Ok(seen),
            Some(Ok(_)) => Err(format!("{name}: it had no whole window")),
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("{name}: it was not watched")),
        }
    }

    fn of(&self, class: Class) -> Result<Vec<&Seen>, String> {
        let mine = self.runs.of(&[class]).into_iter();
        mine.map(|at| self.named(&self.runs.bench.programs[at].name))
            .collect()
    }
}

fn hot(seen: &Seen) -> Vec<f64> {
    seen.hot.iter().map(|n| f64::from(*n)).collect()
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean_of(values);
    mean_of(
        &values
            .iter()
            .map(|v| (v - mean).powi(2))
            .collect::<Vec<_>>(),
    )
    .sqrt()
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// H-4, H-5, H-7, H-18 and H-19.
pub(super) fn alone(runs: &Runs<'_>) -> Given {
    let watched = Watched {
        runs,
        seen: all(runs, &Look::PAPER, TIME_SCALE),
        scaled: ([TIME_SCALE / 2, TIME_SCALE * 2])
            .map(|scale| (scale, all(runs, &Look::PAPER, scale)))
            .into(),
    };
    let rows = vec![
        hot_pages(&watched).finish(),
        reuse(&watched).finish(),
        classifier(&watched).finish(),
        over_time(&watched).finish(),
        row_hits(&watched).given(),
    ];
    Ok((rows, Vec::new()))
}

/// H-4.
fn hot_pages(w: &Watched<'_, '_>) -> Row {
    let mut row = Row::new("H-4", "Figure 6: hot pages", TargetKind::H);
    let [hmmer, mcf] = ["hmmer", "mcf"].map(|name| w.named(name).map(hot));
    let least = |v: &Vec<f64>| v.iter().copied().fold(f64::INFINITY, f64::min);
    for (name, paper, found) in [
        ("hmmer, most", 19.0, hmmer.as_ref().map(|v| most(v))),
        ("mcf, least", 1143.0, mcf.as_ref().map(least)),
        ("mcf, most", 15_813.0, mcf.as_ref().map(|v| most(v))),
    ] {
        let found = found.map_err(Clone::clone).and_then(number);
        row.judge(name, Published::Number(paper), found, "pages", |s| {
            verdict::amount(paper, s.mean, false)
        });
    }
    row.states(
        "hmmer's stay below an eighth of the cache",
        hmmer.map(|v| most(&v) < CACHE_PAGES / 8.0),
    );
    let middle = w.of(Class::Llcm).map(|all| {
        let means: Vec<f64> = all.iter().map(|s| mean_of(&hot(s))).collect();
        mean_of(&means)
    });
    row.show("LLCM, mean", &middle.clone().and_then(number), "pages");
    row.states(
        "the mean of LLCM lies between a quarter and half of it",
        middle.map(|m| (0.25..=0.5).contains(&(m / CACHE_PAGES))),
    );
    row
}

fn reuse_times(seen: &Seen) -> Vec<f64> {
    let known = seen.windows.iter().filter_map(|w| w.reuse_centi);
    known.map(|r| f64::from(r) / 100.0).collect()
}

/// H-5.
fn reuse(w: &Watched<'_, '_>) -> Row {
    let mut row = Row::new("H-5", "Figure 9: re-use times", TargetKind::S);
    let streams = ["libquantum", "fields"].map(|name| w.named(name).map(reuse_times));
    for (name, times) in ["libquantum", "fields"].iter().zip(&streams) {
        let of = |f: fn(&[f64]) -> f64| times.clone().map(|t| f(&t)).and_then(number);
        row.show(&format!("{name}, mean"), &of(mean_of), "passes");
        row.show(
            &format!("{name}, standard deviation"),
            &of(deviation),
            "passes",
        );
    }
    let both = streams[0]
        .clone()
        .and_then(|a| Ok([a, streams[1].clone()?]));
    row.states(
        "libquantum's and fields' means are 10 to 30 passes",
        both.clone()
            .map(|both| both.iter().all(|t| (10.0..=30.0).contains(&mean_of(t)))),
    );
    let others = [Class::Llch, Class::Llcm].map(|class| {
        let all = w.of(class)?;
        let each = |f: fn(&[f64]) -> f64| {
            mean_of(&all.iter().map(|s| f(&reuse_times(s))).collect::<Vec<_>>())
        };
        Ok::<_, String>([each(mean_of), each(deviation)])
    });
    for (class, found) in ["LLCH", "LLCM"].iter().zip(&others) {
        for (part, name) in ["mean", "standard deviation"].iter().enumerate() {
            let found = found.clone().and_then(|f| number(f[part]));
            row.show(&format!("{class}, {name}"), &found, "passes");
        }
    }
    let differ = both.and_then(|both| {
        let mean = both.iter().map(|t| mean_of(t)).fold(0.0, f64::max);
        let spread = both.iter().map(|t| deviation(t)).fold(0.0, f64::max);
        let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(others.iter().all(|[m, d]| *m > mean || *d > spread))
    });
    row.states("those of LLCH and LLCM are higher, or vary more", differ);
    for (scale, seen) in &w.scaled {
        for name in ["libquantum", "fields"] {
            let times = w.named_in(seen, name).map(reuse_times);
            let found = times.and_then(|t| number(mean_of(&t)));
            row.show(&format!("{name}, mean, 1/{scale}"), &found, "passes");
        }
        for class in [Class::Llch, Class::Llcm] {
            let found = reuse_of(w.runs, seen, class).and_then(number);
            row.show(&format!("{class}, mean, 1/{scale}"), &found, "passes");
        }
    }
    row
}

/// Share of the programs whose class by windows is the measured one, in percent; and which are
/// not.
fn right(runs: &Runs<'_>, seen: &Windows) -> Result<(f64, Vec<String>), String> {
    let (mut right, mut wrong) = (0usize, Vec::new());
    for at in runs.of(&Class::ALL) {
        let name = &runs.bench.programs[at].name;
        let found = match seen.get(&at) {
            Some(Ok(seen)) => seen.class,
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(format!("{name}: it was not watched")),
        };
        let measured = runs.bench.classes[at];
        match (found, measured) {
            (found, measured) if found == measured => right += 1,
            (found, measured) => {
                let word = |c: Option<Class>| c.map_or("none", Class::name);
                wrong.push(format!("{name} {} for {}", word(found), word(measured)));
            }
        }
    }
    let all = right + wrong.len();
    Ok((100.0 * right as f64 / all.max(1) as f64, wrong))
}

/// The places of the programs of one thread, and what their windows told.
pub(super) fn cases(runs: &Runs<'_>, seen: &Windows) -> Result<(Vec<usize>, Vec<Case>), String> {
    let places = runs.of(&Class::ALL);
    let of = |at: &usize| {
        let name = &runs.bench.programs[*at].name;
        let seen = seen.get(at).ok_or(format!("{name}: it was not watched"))?;
        let seen = seen.as_ref().map_err(Clone::clone)?;
        let known = seen.facts.zip(runs.bench.classes[*at]);
        let (facts, class) = known.ok_or(format!("{name}: it was not classified"))?;
        Ok(Case { facts, class })
    };
    let cases = places.iter().map(of).collect::<Result<Vec<_>, String>>()?;
    Ok((places, cases))
}

/// How much is right with thresholds that fit these programs, or all but the one that is judged.
fn fitted(runs: &Runs<'_>, seen: &Windows, reading: &str, row: &mut Row) {
    let found =
        cases(runs, seen).and_then(|(_, cases)| Ok((fit::fit(&cases, Counted::Right)?, cases)));
    let shares = found.clone().map(|(fit, cases)| {
        let best = fit::right(&cases, |_| fit.best);
        let others = fit::right(&cases, |at| fit.without[at]);
        [best, others]
    });
    for (part, words) in [
        "thresholds fitted to them",
        "thresholds fitted to the others",
    ]
    .iter()
    .enumerate()
    {
        let share = shares.clone().and_then(|s| number(s[part]));
        row.show(&format!("with {words}{reading}"), &share, "%");
    }
    if let Ok((fit, _)) = found {
        let words = fit::words(&fit.best);
        row.note(&format!("fitted{reading}: {words}"));
    }
}

/// Share of the programs that have another class than with the other windows, in percent.
fn changed(seen: &Windows, other: &Windows) -> Found {
    let class = |seen: Option<&Result<Seen, String>>| {
        let seen = seen.ok_or("it was not watched")?;
        Ok::<_, String>(seen.as_ref().map_err(Clone::clone)?.class)
    };
    let mut differ = 0usize;
    for (at, first) in seen {
        differ += usize::from(class(Some(first))? != class(other.get(at))?);
    }
    number(100.0 * differ as f64 / seen.len().max(1) as f64)
}

/// Mean re-use time over the windows of each program of a class, and over these.
fn reuse_of(runs: &Runs<'_>, seen: &Windows, class: Class) -> Result<f64, String> {
    let mut means = Vec::new();
    for at in runs.of(&[class]) {
        let seen = seen.get(&at).ok_or("it was not watched")?;
        let seen = seen.as_ref().map_err(Clone::clone)?;
        means.push(mean_of(&reuse_times(seen)));
    }
    Ok(mean_of(&means))
}

/// Share of the programs for which the paper prints a class that have it, in percent.
fn printed(runs: &Runs<'_>, seen: &Windows) -> Result<f64, String> {
    let (mut right, mut all) = (0usize, 0usize);
    for at in runs.of(&Class::ALL) {
        let program = &runs.bench.programs[at];
        if program.class.is_empty() {
            continue;
        }
        let seen = seen.get(&at).ok_or("it was not watched")?;
        let class = seen.as_ref().map_err(Clone::clone)?.class;
        let is = |word: &str| class.is_some_and(|c| c.name() == word);
        right += usize::from(program.class.split(" or ").any(is));
        all += 1;
    }
    Ok(100.0 * right as f64 / all.max(1) as f64)
}

/// Other readings of how SysMon looks, one by one, and all of them: what rows had before
/// entry 50 of the log.
fn readings() -> [(String, Look); 4] {
    let mut used = Look::PAPER;
    used.monitor.watched = PageChoice::Used;
    let mut dropped = Look::PAPER;
    dropped.translations = Translations::Dropped;
    dropped.monitor.unseen = Unseen::Slept;
    let mut own = Look::PAPER;
    own.walks = Walks::Own;
    let mut before = dropped;
    before.walks = Walks::Own;
    before.monitor.watched = PageChoice::Used;
    before.monitor.thresholds.hot_freq_bp = 1000;
    [
        ("one of the used pages watched", used),
        ("translations dropped at each pass", dropped),
        ("walks of the stand-ins' own pages", own),
        ("all of these, and WPD to 10.00 %", before),
    ]
    .map(|(words, look)| (words.to_owned(), look))
}

/// The windows at the instructions per cycle that each program has alone on the machine.
fn at_own_speeds(runs: &Runs<'_>) -> Windows {
    let alone = |at: usize| Mix::alone((at, 0));
    let mixes: Vec<Mix> = runs.of(&Class::ALL).into_iter().map(alone).collect();
    runs.bench.prepare(&mixes, &[Way::Linux]);
    at_speeds(runs, &Look::PAPER, TIME_SCALE, |at| {
        let speed = runs.bench.ipc(&alone(at), Way::Linux)?;
        Ok(speed.mean)
    })
}

/// H-7.
fn classifier(w: &Watched<'_, '_>) -> Row {
    let mut row = Row::new("H-7", "Figure 7: the classifier", TargetKind::H);
    let paper = right(w.runs, &w.seen);
    let found = paper.clone().and_then(|(share, _)| number(share));
    row.judge(
        "classes as measured",
        Published::Number(100.0),
        found,
        "%",
        |s| verdict::amount(100.0, s.mean, true),
    );
    if let Ok((_, wrong)) = paper {
        row.note(&format!("not: {}", wrong.join(", ")));
    }
    let common = cases(w.runs, &w.seen).and_then(|(_, cases)| number(fit::commonest(&cases)));
    row.show("the commonest class for all", &common, "%");
    row.show(
        "as the paper prints them, of those that it prints",
        &printed(w.runs, &w.seen).and_then(number),
        "%",
    );
    fitted(w.runs, &w.seen, "", &mut row);
    for class in Class::ALL {
        let found = reuse_of(w.runs, &w.seen, class).and_then(number);
        row.show(&format!("re-use time of {class}"), &found, "passes");
    }
    let readings = readings();
    // The quick form has the one that has all.
    let first = if w.runs.form.quick {
        readings.len() - 1
    } else {
        0
    };
    for (words, look) in readings.into_iter().skip(first) {
        let seen = all(w.runs, &look, TIME_SCALE);
        let found = right(w.runs, &seen).and_then(|(share, _)| number(share));
        row.show(&words, &found, "%");
        let found = printed(w.runs, &seen).and_then(number);
        row.show(&format!("{words}, as printed"), &found, "%");
        fitted(w.runs, &seen, &format!(", {words}"), &mut row);
    }
    let own = at_own_speeds(w.runs);
    let found = right(w.runs, &own);
    let share = found.clone().and_then(|(share, _)| number(share));
    row.show("at each program's own speed", &share, "%");
    if let Ok((_, wrong)) = found {
        row.note(&format!(
            "not at each program's own speed: {}",
            wrong.join(", ")
        ));
    }
    for class in Class::ALL {
        let found = reuse_of(w.runs, &own, class).and_then(number);
        let name = format!("re-use time of {class}, at their own speeds");
        row.show(&name, &found, "passes");
    }
    for (scale, seen) in &w.scaled {
        let found = right(w.runs, seen).and_then(|(share, _)| number(share));
        row.show(&format!("with times divided by {scale}"), &found, "%");
        let name = format!("programs of another class with times divided by {scale}");
        row.show(&name, &changed(&w.seen, seen), "%");
    }
    if w.runs.form.quick {
        row.note("the quick form has no other thresholds");
        return row;
    }
    let mut variants: Vec<(String, Look)> = Vec::new();
    let mut other = Look::PAPER;
    other.monitor.thresholds.low_locality = LowLocality::Ccf;
    variants.push(("low locality is CCF".to_owned(), other));
    type Field = fn(&mut MonitorConfig) -> &mut u32;
    let fields: [(&str, Field); 4] = [
        ("re-use", |c| &mut c.thresholds.reuse_passes),
        ("CCF pages", |c| &mut c.thresholds.ccf_pages),
        ("WPD", |c| &mut c.thresholds.hot_freq_bp),
        ("LLCH pages", |c| &mut c.thresholds.llch_pages),
    ];
    for (name, field) in fields {
        for (word, twice) in [("half", false), ("twice", true)] {
            let mut look = Look::PAPER;
            let value = field(&mut look.monitor);
            *value = if twice { *value * 2 } else { *value / 2 };
            variants.push((format!("{word} the threshold of {name}"), look));
        }
    }
    for (name, look) in variants {
        let found = right(w.runs, &all(w.runs, &look, TIME_SCALE));
        row.show(&name, &found.and_then(|(share, _)| number(share)), "%");
    }
    row
}

/// Shares of VL, L, M, H and VH.
fn shares(window: &Window) -> Vec<f64> {
    let used = f64::from(window.distribution.used()).max(1.0);
    let pages = window.distribution.pages.iter();
    pages.map(|n| f64::from(*n) / used).collect()
}

/// H-18.
fn over_time(w: &Watched<'_, '_>) -> Row {
    let mut row = Row::new(
        "H-18",
        "Figures 6 and 8: hot pages over time",
        TargetKind::S,
    );
    for (name, text, low, high) in [
        (
            "hmmer",
            "hmmer's mean is below an eighth of the cache",
            0.0,
            0.125,
        ),
        (
            "bzip2",
            "bzip2's lies between a quarter and half",
            0.25,
            0.5,
        ),
        ("mcf", "mcf's is above all of it", 1.0, f64::INFINITY),
    ] {
        let share = w.named(name).map(|s| mean_of(&hot(s)) / CACHE_PAGES);
        row.show(
            name,
            &share.clone().and_then(|s| number(100.0 * s)),
            "% of the cache",
        );
        row.states(text, share.map(|s| (low..=high).contains(&s)));
    }
    for name in ["hmmer", "bzip2", "mcf"] {
        let varies = w.named(name).map(|seen| {
            let all: Vec<Vec<f64>> = seen.windows.iter().map(shares).collect();
            let range = |i: usize| {
                let of = || all.iter().map(|s| s[i]);
                of().fold(0.0, f64::max) - of().fold(1.0, f64::min)
            };
            (0..5).any(|i| range(i) > 0.1)
        });
        let text = format!(
            "a share of {name}'s distribution differs by more than a tenth between windows"
        );
        row.states(text, varies);
    }
    row
}

/// H-19: shown and not judged. The least WPD is that of streams, whose rows are hit most, so
/// that no good estimate can follow from it.
fn row_hits(w: &Watched<'_, '_>) -> Row {
    let mut row = Row::new("H-19", "Section 4.3: WPD and row hits", TargetKind::S);
    let programs = w.runs.of(&Class::ALL);
    let mixes: Vec<Mix> = programs.iter().map(|at| Mix::alone((*at, 0))).collect();
    w.runs.bench.prepare(&mixes, &[Way::Linux]);
    let pairs = || -> Result<Vec<[f64; 2]>, String> {
        let mut pairs = Vec::new();
        for (at, mix) in programs.iter().zip(&mixes) {
            let seen = w.named(&w.runs.bench.programs[*at].name)?;
            let weights = &MonitorConfig::PAPER.weights;
            let bp = seen
                .windows
                .iter()
                .filter_map(|v| v.distribution.wpd(weights).bp());
            let wpd = mean_of(&bp.map(|b| b as f64).collect::<Vec<_>>());
            let hits = w.runs.bench.row_hits(mix, Way::Linux)?;
            if hits.is_finite() {
                pairs.push([wpd, hits]);
            }
        }
        Ok(pairs)
    };
    let found = pairs().map(|pairs| (rank_correlation(&pairs), pairs.len()));
    row.show(
        "rank correlation",
        &found.clone().and_then(|(r, _)| number(r)),
        "",
    );
    row.states(
        "WPD and the share of row hits are correlated, with p < 0.05",
        found.map(|(r, n)| {
            let t = r * ((n as f64 - 2.0) / (1.0 - r * r).max(1e-9)).sqrt();
            // Student's t for 40 degrees of freedom, one-sided.
            r > 0.0 && t > 1.684
        }),
    );
    row.note("not judged: streams have the least WPD there is, and hit rows most");
    row
}

/// Spearman's; ties share their mean rank.
fn rank_correlation(pairs: &[[f64; 2]]) -> f64 {
    let ranks = |i: usize| -> Vec<f64> {
        let rank = |p: &[f64; 2]| {
            let below = pairs.iter().filter(|q| q[i] < p[i]).count() as f64;
            let equal = pairs.iter().filter(|q| q[i] == p[i]).count() as f64;
            below + (equal - 1.0) / 2.0
        };
        pairs.iter().map(rank).collect()
    };
    let (a, b) = (ranks(0), ranks(1));
    let (ma, mb) = (mean_of(&a), mean_of(&b));
    let both = a.iter().zip(&b);
    let together: f64 = both.map(|(x, y)| (x - ma) * (y - mb)).sum();
    together / (deviation(&a) * deviation(&b) * pairs.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_correlations_are_spearmans() {
        let rising: Vec<[f64; 2]> = (0..9).map(|i| [f64::from(i), f64::from(i * i)]).collect();
        assert!((rank_correlation(&rising) - 1.0).abs() < 1e-12);
        let falling: Vec<[f64; 2]> = rising.iter().map(|[a, b]| [*a, -b]).collect();
        assert!((rank_correlation(&falling) + 1.0).abs() < 1e-12);
        // 1 - 6 (1 + 1) / (3 (9 - 1)).
        let swapped = [[1.0, 1.0], [2.0, 3.0], [3.0, 2.0]];
        assert!((rank_correlation(&swapped) - 0.5).abs() < 1e-12);
    }
}
