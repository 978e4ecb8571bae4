//! H-B2, beyond the paper: what it costs HVR that SysMon takes programs for others than they were
//! measured as (protocol).
//!
//! The mixes of H-1's list under HVR, which is told the measured classes, those that SysMon finds,
//! those that it would find with thresholds fitted to all other programs, with each mistake as bad as
//! the others or with an LLCT that is none as the worst, or those that counters of misses tell. Shown,
//! never judged.

use std::sync::atomic::Ordering;

use piebald_policy::hvr::{Class, MonitorConfig, Thresholds, Unseen};
use piebald_report::{Sample, TargetKind};
use piebald_sim::PageWatch;
use rayon::prelude::*;

use super::{
    Given, counters,
    mixes::Mix,
    rows::{Runs, number, share},
    ways::Way,
};
use crate::{
    data::thresholds::{self, Case, fit},
    row::Row,
};

pub(super) const TITLE: &str = "Beyond: HVR with classes that SysMon or counters tell";

/// Classes of all programs, by their places.
type Classes = Vec<Option<Class>>;

/// Times between windows are divided by this (protocol).
const TIME_SCALE: u32 = 1000;
/// References of each program that are watched, and of the quick form.
const REFS: u64 = 100_000_000;
const QUICK_REFS: u64 = 20_000_000;

/// What a program that is wrongly held for an LLCT costs, in programs that are told right.
const FALSE_ALARM: f64 = 3.0;

/// The places of the programs of one thread, and what their windows told, each alone at one
/// instruction per cycle: as the experiment `watched` of the grid has it.
fn cases(runs: &Runs<'_>) -> Result<(Vec<usize>, Vec<Case>), String> {
    let bench = &runs.bench;
    let refs = if runs.form.quick { QUICK_REFS } else { REFS };
    let places = runs.of(&Class::ALL);
    let case = |at: &usize| {
        let program = &bench.programs[*at];
        let name = &program.name;
        let ready = program.ready(&bench.inputs, bench.seed, refs);
        let ready = ready.map_err(|why| format!("{name}: {why}"))?;
        let watch = PageWatch {
            name: name.clone(),
            program: ready.input,
            prime: ready.prime,
            monitor: MonitorConfig {
                unseen: Unseen::Ran,
                ..MonitorConfig::PAPER
            },
            tlb: bench.spec.tlb,
            speed: bench.spec.core.clock,
            walk: program.walk,
            time_scale: TIME_SCALE,
            refs,
            seed: bench.seed,
        };
        let seen = bench.model.watch_pages(&watch, bench.stop);
        let seen = seen.map_err(|e| e.to_string())?;
        let known = seen.facts.zip(bench.classes[*at]);
        let (facts, class) = known.ok_or(format!("{name}: it was not classified"))?;
        Ok(Case {
            facts: facts.into(),
            class,
        })
    };
    let cases: Vec<Result<Case, String>> = places.par_iter().map(case).collect();
    let cases = cases.into_iter().collect::<Result<Vec<_>, String>>()?;
    Ok((places, cases))
}

/// What SysMon finds with the paper's thresholds, and with those fitted to all other programs.
fn found(runs: &Runs<'_>) -> Result<[Classes; 3], String> {
    let (places, cases) = cases(runs)?;
    let told = |thresholds: &[Thresholds]| {
        let mut classes: Classes = runs.bench.classes.to_vec();
        for ((at, case), thresholds) in places.iter().zip(&cases).zip(thresholds) {
            classes[*at] = Some(thresholds::told(thresholds, &case.facts));
        }
        classes
    };
    let of_others = |alarm: f64| -> Vec<Thresholds> {
        let without = |at: usize| [&cases[..at], &cases[at + 1..]].concat();
        (0..cases.len())
            .map(|at| fit(&without(at), alarm))
            .collect()
    };
    Ok([
        told(&vec![MonitorConfig::PAPER.thresholds; cases.len()]),
        told(&of_others(0.0)),
        told(&of_others(FALSE_ALARM)),
    ])
}

/// Gain of HVR over Linux in each mix, in percent.
fn gains(runs: &Runs<'_>, mixes: &[Mix]) -> Result<Vec<f64>, String> {
    let gain = |mix: &Mix| Ok(runs.bench.gain(mix, Way::Hvr, Way::Linux)?.mean);
    mixes.iter().map(gain).collect()
}

/// H-B2.
pub(super) fn told(runs: &Runs<'_>) -> Given {
    let [plain, fitted, careful] = found(runs)?;
    let counted = counters::told(runs)?;
    let mixes = runs.first();
    runs.bench.prepare(&mixes, &[Way::Linux, Way::Hvr]);
    let measured = gains(runs, &mixes)?;
    let mut row = Row::new("H-B2", TITLE, TargetKind::G);
    row.show(
        "measured classes, mean gain of HVR (interval over mixes)",
        &Ok(Sample::new(measured.clone())),
        "%",
    );
    let mut columns = vec!["mix".to_owned(), "measured".to_owned()];
    let mut cells: Vec<Vec<String>> = (mixes.iter().zip(&measured))
        .map(|(mix, gain)| vec![mix.number.to_string(), format!("{gain:.1}")])
        .collect();
    let latency = "counters, a miss as memory's latency";
    let cost = "counters, the cost of a miss fitted";
    for (name, short, classes) in [
        ("SysMon's classes", "SysMon's", &plain),
        ("SysMon's, with fitted thresholds", "fitted", &fitted),
        ("SysMon's, with careful thresholds", "careful", &careful),
        (latency, "counters", &counted.latency),
        (cost, "counters, fitted", &counted.fitted),
    ] {
        let own = Runs {
            bench: runs.bench.told(classes),
            form: runs.form,
        };
        own.bench.prepare(&mixes, &[Way::Hvr]);
        runs.bench.refs.fetch_add(own.refs(), Ordering::Relaxed);
        let found = gains(&own, &mixes)?;
        let less: Sample = found.iter().zip(&measured).map(|(a, b)| a - b).collect();
        let wrong = |mix: &Mix| {
            let is_wrong = |m: &&(usize, u32)| classes[m.0] != runs.bench.classes[m.0];
            mix.members.iter().filter(is_wrong).count()
        };
        let members: usize = mixes.iter().map(|mix| mix.members.len()).sum();
        let wrongs: Vec<usize> = mixes.iter().map(wrong).collect();
        let others = number(share(wrongs.iter().sum(), members));
        row.show(&format!("{name}, programs told otherwise"), &others, "%");
        row.show(
            &format!("{name}, mean gain of HVR (interval over mixes)"),
            &Ok(Sample::new(found.clone())),
            "%",
        );
        row.show(
            &format!("{name}, less measured classes (interval over mixes)"),
            &Ok(less),
            "points",
        );
        columns.push(short.to_owned());
        for ((cells, gain), wrong) in cells.iter_mut().zip(&found).zip(wrongs) {
            cells.push(format!("{gain:.1} ({wrong})"));
        }
    }
    let fits = format!("counters, {} cycles, the cost that fits best", counted.best);
    for (name, right) in [latency, cost, &fits].into_iter().zip(counted.right) {
        row.show(
            &format!("{name}, of all programs right"),
            &number(right),
            "%",
        );
    }
    row.note(&format!(
        "counters, fitted, tell otherwise than measured: {}",
        counted.wrong.join(", ")
    ));
    row.note(&format!("{} of 214 mixes", mixes.len()));
    let title = "Gains of HVR over Linux in % (programs that are told otherwise than measured)";
    row.cases(title, columns, cells);
    Ok((vec![row.given()], Vec::new()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use piebald_hw::presets;

    use super::*;
    use crate::{
        Hooks, Options, Wanted,
        hvr::{form::Form, mixes::tests::programs},
    };

    #[test]
    fn hvr_is_told_the_other_classes_and_linux_is_not_run_again() {
        let (spec, programs) = (presets::load("i7-860").expect("the preset"), programs());
        let options = Options {
            quick: true,
            budget_refs: Some(2000),
            ..Options::default()
        };
        let nobody = |_: &Wanted<'_>, _: &Path| Err("nothing is recorded".to_owned());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &nobody,
            store: None,
        };
        let list = (&programs[..], &[Some(Class::Ccf); 2][..], &[1.0; 2][..]);
        let form = Form::new(&options);
        let runs = Runs::new(&spec, list, form, &options, hooks);
        let mix = Mix {
            name: "t",
            number: 0,
            members: vec![(0, 0), (1, 0)],
        };
        let mixes = [mix.clone()];
        runs.bench.prepare(&mixes, &[Way::Linux, Way::Hvr]);
        let others = [Some(Class::Llch), Some(Class::Llct)];
        let told = Runs {
            bench: runs.bench.told(&others),
            form,
        };
        assert_eq!(told.bench.done.lock().expect("no run").len(), 3);
        told.bench.prepare(&mixes, &[Way::Linux]);
        assert_eq!(told.refs(), 0);
        told.bench.prepare(&mixes, &[Way::Hvr]);
        assert!(told.refs() > 0);
        let classes = |runs: &Runs<'_>| -> Vec<Option<Class>> {
            let done = runs.bench.done.lock().expect("no run");
            let ran = done[&(Way::Hvr, mix.clone(), 0)].as_ref();
            let parts = &ran.expect("it ran").parts;
            let mut all: Vec<_> = parts.iter().map(|(class, _)| *class).collect();
            all.sort();
            all
        };
        assert_eq!(classes(&runs), [Some(Class::Ccf); 2]);
        assert_eq!(classes(&told), others);
        assert!(gains(&told, &mixes).is_ok());
    }
}
