//! and beyond: what partitions mean for memory. A program that needs more than its
//! colours hold, and one whose partition grows while it runs.

use piebald_report::{Metrics, Predicate, Sample, Target, TargetKind};

use super::{Form, blank, constants::cited, lengths};
use crate::{
    experiment::{Bench, miss_rate, program, slowdown},
    row::shown,
    verdict,
};

/// Level of the data path, counted from the first.
const LLC: usize = 2;

/// References of the sort whose partition grows, and before.
const GROWING_REFS: (u64, u64) = (3_000_000, 1_500_000);

/// A growing partition is worth its moves if it regains this part of what a small one loses.
const REGAINED: f64 = 0.75;

/// R-4 at a quarter of the scale: a program of 0.45 GiB on the machine with 3 GiB, where a
/// colour holds 0.1875 GiB.
fn limited(colors: u32, on_limit: &str) -> String {
    format!(
        "schema = 2\nrepetitions = 1\nbudget_refs = \"100k\"\nwarmup_refs = \"10k\"\n\
         [machine]\npreset = \"w3540\"\nmemory = \"3GiB\"\nprefetch = false\n\
         [output]\nset_map = 0\n\
         [[program]]\nname = \"large\"\nbuiltin = \"triad:460MiB\"\ncores = \"0\"\n\
         colors = {{ count = {colors} }}\non_limit = \"{on_limit}\"\n\
         [[policy]]\nname = \"colors\"\nframes = \"rainbow\"\nmemory = \"fresh\"\n"
    )
}

/// adds to the arithmetic that the limit is one.
pub(super) fn limit(bench: &Bench<'_>, t: &mut Target) {
    let run = |colors, on_limit| bench.run("memory limit", &limited(colors, on_limit));
    let swapped = |study: &piebald_report::Study| {
        let metrics = &program(study, "colors", "large")?.alone;
        extra(metrics, "pages swapped out").map(|s| s.mean > 0.0)
    };
    let mut state = |text: &str, holds: Option<bool>| {
        t.predicates.push(Predicate {
            text: format!("at a quarter of the scale, {text}"),
            holds,
        });
    };
    let three = run(3, "fail");
    state(
        "the program runs in 3 colors and nothing is swapped",
        Some(three.is_ok_and(|study| swapped(&study).is_none())),
    );
    let two = run(2, "fail");
    state(
        "it ends in 2 colors with an error that says so",
        Some(two.is_err_and(|why| why.contains("used up"))),
    );
    let two = run(2, "swap");
    state(
        "or swaps, if that was asked for",
        Some(two.is_ok_and(|study| swapped(&study) == Some(true))),
    );
    if bench.stopped() {
        t.why = Some("interrupted".to_owned());
    }
    t.verdict = verdict::worst([t.verdict, verdict::shape(&t.predicates)]);
}

/// A figure that only some studies have, in the phase alone.
fn extra<'m>(metrics: &'m Metrics, name: &str) -> Option<&'m Sample> {
    let found = metrics.extra.iter().find(|e| e.name == name);
    found.map(|e| &e.value)
}

/// A sort of 6 MiB that owns `colors`, and changes them by `change`.
fn growing(form: &Form, colors: &str, change: &str) -> String {
    let (budget, warmup) = form.own(GROWING_REFS.0, GROWING_REFS.1);
    format!(
        "schema = 2\nseed = {}\nrepetitions = {}\nbudget_refs = \"{budget}\"\nwarmup_refs = \"{warmup}\"\n\
         [machine]\npreset = \"w3540\"\nmemory = \"3GiB\"\nprefetch = false\n\
         [output]\nset_map = 0\n\
         [[program]]\nname = \"mergesort\"\nbuiltin = \"mergesort:3MiB\"\ncores = \"0\"\n\
         colors = \"{colors}\"\n{change}\
         [[policy]]\nname = \"colors\"\nframes = \"rainbow\"\n",
        form.seed,
        form.mix_repetitions.max(3)
    )
}

/// R-8 and R-B3: a partition that grows from 4 to 14 colours at the beginning of the measured
/// part, with and without moving the pages that are there.
pub(super) fn growth(bench: &Bench<'_>, form: &Form) -> Vec<Target> {
    let mut page = cited(
        "R-8",
        "3.3: time to recolor a page",
        &[("one page", "order of 1", "us")],
    );
    let title = "beyond: a partition that grows from 2 to 7 MiB while its program runs";
    let mut grown = blank("R-B3", title, TargetKind::S);
    let change = |recolor: &str| {
        format!("[[program.change]]\nat = \"1\"\ncolors = \"0-13\"\nrecolor = {recolor}\n")
    };
    let run = |colors: &str, change: &str| {
        let study = bench.run("growing partition", &growing(form, colors, change))?;
        let found = program(&study, "colors", "mergesort").map(|p| p.alone.clone());
        found.ok_or_else(|| "the study lacks results".to_owned())
    };
    let small = run("0-3", "");
    let large = run("0-13", "");
    let stays = run("0-3", &change("false"));
    let moves = run("0-3", &change("true"));
    let (small, large, stays, moves) = match (small, large, stays, moves) {
        (Ok(small), Ok(large), Ok(stays), Ok(moves)) => (small, large, stays, moves),
        (Err(why), ..) | (_, Err(why), ..) | (_, _, Err(why), _) | (.., Err(why)) => {
            (page.why, grown.why) = (Some(why.clone()), Some(why));
            return vec![page, grown];
        }
    };
    let slower = |m: &Metrics| slowdown(m, &large);
    let names = [
        "4 colors from the start",
        "14 from the start",
        "grown, pages stay",
        "grown, pages move",
    ];
    for (name, metrics) in names.into_iter().zip([&small, &large, &stays, &moves]) {
        if let Some(rate) = miss_rate(metrics, LLC) {
            grown
                .values
                .push(shown(&format!("{name}: LLC miss rate"), &rate, "%"));
        }
        if let Some(slower) = slower(metrics).filter(|_| !std::ptr::eq(metrics, &large)) {
            let name = format!("{name}: slower than 14 from the start");
            grown.values.push(shown(&name, &slower, "%"));
        }
    }
    let regained = |m: &Metrics| {
        let (lost, left) = (slower(&small)?, slower(m)?);
        Some(left.paired(&lost, |left, lost| 1.0 - left / lost)?.mean)
    };
    let (with, without) = (regained(&moves), regained(&stays));
    grown.predicates = vec![
        Predicate {
            text: format!(
                "with moved pages it regains {REGAINED} or more of what the small partition loses, \
                 the moves paid ({})",
                with.map_or("unknown".to_owned(), |r| format!("{r:.2}"))
            ),
            holds: with.map(|r| r >= REGAINED),
        },
        Predicate {
            text: format!(
                "without moving pages it regains less ({})",
                without.map_or("unknown".to_owned(), |r| format!("{r:.2}"))
            ),
            holds: with.zip(without).map(|(with, without)| without < with),
        },
    ];
    grown.verdict = verdict::shape(&grown.predicates);
    let pages = extra(&moves, "pages moved to other colors");
    let time = extra(&moves, "time for moving pages");
    if let Some((pages, time)) = pages.zip(time) {
        grown.values.push(shown("pages moved", pages, ""));
        if let Some(each) = time.ratio(pages) {
            let ours = shown("one page", &each, "us");
            for v in &mut page.values {
                (v.measured, v.ci95) = (ours.measured, ours.ci95);
            }
        }
    }
    let (budget, warmup) = form.own(GROWING_REFS.0, GROWING_REFS.1);
    for t in [&mut page, &mut grown] {
        t.why = Some(lengths(budget, warmup));
    }
    vec![page, grown]
}
