//! What SysMon sees of a study's programs, each watched alone.

use std::sync::atomic::AtomicBool;

use piebald_experiment::{SysMon, Translations, Walks, WatchedSpeed};
use piebald_policy::hvr::{Facts, Mean, MonitorConfig, Window};
use piebald_report::{PolicyResult, SysMonFacts, SysMonResult, SysMonWindow};
use piebald_sim::{CaseError, Model, PageWatch, PagesSeen, SimError};
use piebald_trace::recording::ReplayOptions;
use piebald_units::Hertz;
use piebald_workload::Builtin;
use rayon::prelude::*;

use crate::{
    executed::Executed,
    prepare::{Prepared, seed_of},
    scenario::{Input, ProgramEntry, Scenario},
};

/// What is seen of each program of one thread, in the order of the programs, and what is said of the others.
pub(crate) type Seen = (Vec<SysMonResult>, Vec<String>);

/// Why a program was not watched.
pub(crate) enum Unwatched {
    /// What was seen is only looked for, and is not there.
    NotKept,
    /// This program cannot be watched.
    Failed {
        /// The program.
        program: String,
        /// Why.
        problem: String,
    },
}

/// Watches the programs of a study, if it asks for that; nothing is there if somebody stops it. `first` is what the
/// first policy made of them.
///
/// # Errors
/// A program cannot be watched.
pub(crate) fn watch(
    scenario: &Scenario,
    inputs: &[Prepared],
    (stop, model): (Option<&AtomicBool>, &Model),
    first: Option<&PolicyResult>,
) -> Result<Option<Seen>, Unwatched> {
    let Some(sysmon) = &scenario.sysmon else {
        return Ok(Some(Seen::default()));
    };
    let programs: Vec<_> = scenario.programs.iter().zip(inputs).collect();
    let (watched, others): (Vec<_>, Vec<_>) = programs
        .into_iter()
        .partition(|(_, input)| input.program.threads() == 1);
    let one = |(entry, input): &(&ProgramEntry, &Prepared)| {
        let failed = |problem: String| Unwatched::Failed {
            program: entry.name.clone(),
            problem,
        };
        let ipc = match sysmon.speed {
            WatchedSpeed::One => Some(1.0),
            WatchedSpeed::Alone => alone(first, &entry.name),
        };
        let ipc = ipc.ok_or_else(|| failed("it was not measured alone".to_owned()))?;
        let case = case((scenario, sysmon), (entry, input), ipc).map_err(failed)?;
        match model.watch_pages(&case, stop) {
            Ok(seen) => Ok(Some(told(entry, &sysmon.config(), &seen))),
            Err(CaseError::Run(SimError::Stopped)) => Ok(None),
            Err(CaseError::NotKept) => Err(Unwatched::NotKept),
            Err(error) => Err(failed(error.to_string())),
        }
    };
    // All are looked for, whichever is missing.
    let found: Vec<Result<_, Unwatched>> = watched.par_iter().map(one).collect();
    let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
    let says = |(entry, input): (&ProgramEntry, &Prepared)| {
        let threads = input.program.threads();
        let name = &entry.name;
        format!("{name}: it has {threads} threads; SysMon alone watches programs of one")
    };
    let found = found.into_iter().collect::<Option<Vec<_>>>();
    Ok(found.map(|found| (found, others.into_iter().map(says).collect())))
}

/// Instructions per cycle that a program has alone.
fn alone(first: Option<&PolicyResult>, name: &str) -> Option<f64> {
    let program = first?.programs.iter().find(|p| p.name == name)?;
    let ipc = program.alone.ipc.mean;
    (ipc > 0.0).then_some(ipc)
}

fn case(
    (scenario, sysmon): (&Scenario, &SysMon),
    (entry, input): (&ProgramEntry, &Prepared),
    ipc: f64,
) -> Result<PageWatch, String> {
    let refs = sysmon.refs.get();
    let (program, prime) = match &entry.input {
        Input::Builtin(text) => {
            let builtin = Builtin::parse(text).map_err(|e| e.to_string())?;
            let seed = seed_of(scenario, entry);
            let options = ReplayOptions {
                fetches: scenario.features.fetch,
                dependences: scenario.features.window,
                ..ReplayOptions::default()
            };
            let executed = Executed {
                name: builtin.to_string(),
                builtin,
                refs,
                options,
            };
            (executed.with(seed, None), executed.set_up(seed)?)
        }
        _ => (input.program.clone(), input.prime),
    };
    let tlb = scenario.machine.tlb;
    Ok(PageWatch {
        name: entry.name.clone(),
        program,
        prime,
        monitor: sysmon.config(),
        tlb: tlb.filter(|_| sysmon.translations == Translations::Kept),
        speed: Hertz((scenario.machine.core.clock.0 as f64 * ipc) as u64),
        walk: entry.walk.filter(|_| sysmon.walks == Walks::Given),
        time_scale: sysmon.time_scale.get_u32(),
        refs,
        seed: scenario.seed,
    })
}

fn told(entry: &ProgramEntry, config: &MonitorConfig, seen: &PagesSeen) -> SysMonResult {
    let window = |window: &Window| SysMonWindow {
        pages: window.distribution.pages,
        reuse_passes: window.reuse_centi.map(|centi| f64::from(centi) / 100.0),
        wpd_bp: window.distribution.wpd(&config.weights).bp(),
    };
    SysMonResult {
        program: entry.name.clone(),
        refs: seen.refs,
        class: seen.class.map(|class| class.name().to_owned()),
        changes: seen.changes,
        told_by: seen.facts.map(facts),
        hot_pages: seen.hot.clone(),
        windows: seen.windows.iter().map(window).collect(),
    }
}

fn facts(facts: Facts) -> SysMonFacts {
    let mean = |mean: Mean| (mean.nr > 0).then(|| mean.sum as f64 / f64::from(mean.nr));
    let Facts {
        hot_pages,
        reuse_centi,
        wpd,
    } = facts;
    SysMonFacts {
        hot_pages: mean(hot_pages).unwrap_or(0.0),
        reuse_passes: mean(reuse_centi).map(|centi| centi / 100.0),
        wpd_bp: if wpd.used > 0 {
            wpd.tenths as f64 * 1000.0 / f64::from(wpd.used)
        } else {
            0.0
        },
    }
}
