//! What both kernels made of the cases.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use piebald_guest::{
    Hooks as BootHooks, Scenario as Real, Tools, boots, compile, has_program, write_files,
};
use piebald_hw::presets;
use piebald_report::{Metrics, ProgramResult, Sample, Study};
use rayon::prelude::*;

use super::{
    Form,
    case::{Beside, Case, DATABASE, Recorded, has_database},
};
use crate::{
    Hooks, Options, ReproduceError, StandIn, Wanted,
    experiment::{Bench, program, slowdown},
    row::Found,
};

/// By what processors of the modelled kernel advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// By instructions, one for one, as in the guest: the machine answers at once.
    Instructions,
    /// By the machine's time.
    Time,
}

/// A number in both kernels.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub modelled: Found,
    pub real: Found,
}

impl Pair {
    /// Combines two numbers, kernel by kernel.
    pub(super) fn with(&self, other: &Self, f: impl Fn(&Sample, &Sample) -> Found) -> Self {
        let both = |a: &Found, b: &Found| {
            f(
                a.as_ref().map_err(Clone::clone)?,
                b.as_ref().map_err(Clone::clone)?,
            )
        };
        Self {
            modelled: both(&self.modelled, &other.modelled),
            real: both(&self.real, &other.real),
        }
    }
}

/// What came out of a case.
struct Done {
    by_instructions: Result<Study, String>,
    by_time: Result<Study, String>,
    real: Result<Study, String>,
    /// The case whose boots alone are this one's.
    alone: Option<String>,
}

impl Default for Done {
    fn default() -> Self {
        let [by_instructions, by_time, real] = [(); 3].map(|()| Err("not run".to_owned()));
        Self {
            by_instructions,
            by_time,
            real,
            alone: None,
        }
    }
}

impl Done {
    fn all(&self) -> [(&'static str, &Result<Study, String>); 3] {
        [
            ("modelled by instructions", &self.by_instructions),
            ("modelled by time", &self.by_time),
            ("real", &self.real),
        ]
    }
}

/// The machine of a preset that answers at once, so that processors advance by instructions: a
/// cycle of 100 ns, in which all of its caches and nearly all of its memory have answered.
fn by_instructions(preset: &str) -> Result<String, String> {
    let text = presets::get(preset).ok_or_else(|| format!("no preset {preset}"))?;
    let mut machine: toml::Table = text.parse().map_err(|e| format!("{preset}: {e}"))?;
    let set = |table: &mut toml::Table, key: &str, value: toml::Value| {
        table.insert(key.to_owned(), value);
    };
    let part = |machine: &mut toml::Table, key: &str| match machine.remove(key) {
        Some(toml::Value::Table(table)) => Ok(table),
        _ => Err(format!("{preset}: no [{key}]")),
    };
    let mut core = part(&mut machine, "core")?;
    set(&mut core, "clock", "10MHz".into());
    set(&mut core, "base_cpi", 1.0.into());
    let mut memory = part(&mut machine, "memory")?;
    set(&mut memory, "fixed_latency", "0ns".into());
    let mut links = part(&mut machine, "links")?;
    let transfers: Vec<String> = links
        .keys()
        .filter(|k| k.ends_with("_transfer"))
        .cloned()
        .collect();
    for key in transfers {
        set(&mut links, &key, 1.into());
    }
    for (key, table) in [("core", core), ("memory", memory), ("links", links)] {
        set(&mut machine, key, table.into());
    }
    let caches = machine.get_mut("cache").and_then(toml::Value::as_array_mut);
    for cache in caches
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_table_mut)
    {
        set(cache, "latency", 1.into());
    }
    let text = machine.to_string();
    presets::parse(&text, preset).map_err(|e| e.to_string())?;
    Ok(text)
}

/// What both kernels made of the cases, by their names.
pub(super) struct Kernels {
    done: BTreeMap<String, Done>,
    /// Programs that this computer lacks, whose cases were left out.
    absent: Vec<&'static str>,
    refs: u64,
}

/// The cases that can be run, and that rows want; what is missing for others. A case whose boots
/// alone would be those of one that is not run has its own.
fn choose(
    cases: &[Case],
    options: &Options,
    has: impl Fn(&str) -> bool,
) -> (Vec<Case>, Vec<&'static str>) {
    let mut absent = Vec::new();
    let mut chosen = Vec::new();
    for case in cases
        .iter()
        .filter(|c| c.rows.iter().any(|id| options.wants(id)))
    {
        let programs = case.beside.iter().filter_map(Beside::program);
        let missing: Vec<&'static str> = programs.filter(|p| !has(p)).collect();
        match missing.is_empty() {
            true => chosen.push(case.clone()),
            false => absent.extend(missing),
        }
    }
    absent.sort_unstable();
    absent.dedup();
    let names: Vec<String> = chosen.iter().map(|c| c.name.clone()).collect();
    for case in &mut chosen {
        case.alone = case.alone.take().filter(|name| names.contains(name));
    }
    (chosen, absent)
}

impl Kernels {
    /// Makes and records the programs, and runs all cases in both kernels: boots one after the
    /// other, and modelled runs beside them.
    pub(super) fn run(
        form: &Form,
        cases: &[Case],
        module: &Path,
        options: &Options,
        hooks: Hooks<'_>,
    ) -> Result<Self, ReproduceError> {
        let said = |e: &dyn std::fmt::Display| ReproduceError::Inputs(e.to_string());
        let mut ready = Vec::new();
        let has = |program: &str| match program {
            DATABASE => has_database(&options.inputs),
            program => has_program(program),
        };
        let (cases, absent) = choose(cases, options, has);
        compile(&options.inputs).map_err(|e| said(&e))?;
        for case in &cases {
            let real = case
                .real(form, module, &options.inputs)
                .map_err(|e| said(&e))?;
            let machine = by_instructions(case.preset).map_err(|e| said(&e))?;
            let path = options.inputs.join(format!("{}.toml", case.preset));
            std::fs::write(&path, machine)
                .map_err(|e| said(&format!("{}: {e}", path.display())))?;
            let at = options.inputs.join(case.folder());
            write_files(&real.experiment.file, &at).map_err(|e| said(&e))?;
            if let Some(folder) = case.scratch() {
                let at = options.inputs.join(folder);
                std::fs::create_dir_all(&at)
                    .map_err(|e| said(&format!("{}: {e}", at.display())))?;
            }
            let recorded = case.recorded();
            let recordings = recorded.into_iter().map(|r| record(r, options, hooks));
            let recordings = recordings.collect::<Result<Vec<PathBuf>, String>>();
            ready.push((case, real, recordings.map_err(|e| said(&e))?));
        }
        let bench = Bench::new(hooks);
        let total: u64 = ready
            .iter()
            .map(|(_, real, _)| u64::from(boots(real)))
            .sum();
        let show = |stage: &str| {
            if let Some(progress) = hooks.progress {
                progress(stage, 0, total);
            }
        };
        let mut jobs = Vec::new();
        for (nth, (case, ..)) in ready.iter().enumerate() {
            jobs.push((nth, Pace::Instructions));
            jobs.extend(case.timed.then_some((nth, Pace::Time)));
        }
        let run = |(nth, pace): &(usize, Pace)| {
            let (case, _, recordings) = &ready[*nth];
            let (name, machine) = match pace {
                Pace::Time => ("by time", None),
                Pace::Instructions => {
                    let path = options.inputs.join(format!("{}.toml", case.preset));
                    ("by instructions", Some(path))
                }
            };
            let text = case.modelled(form, recordings, machine.as_deref())?;
            let name = format!("{}, modelled {name}", case.name);
            bench
                .run(&name, &text, Path::new(&name))
                .map_err(|why| why.to_string())
        };
        // Boots have a thread of their own: one of the pool's that waits for a guest would keep
        // work from the others.
        let boot = |(case, real, _): &(&Case, Real, _)| boot(case, real, hooks, &show);
        let (booted, found) = std::thread::scope(|scope| {
            let booted = scope.spawn(|| ready.iter().map(boot).collect::<Vec<_>>());
            let found: Vec<Result<Study, String>> = jobs.par_iter().map(run).collect();
            (booted.join(), found)
        });
        let booted = booted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut done: BTreeMap<String, Done> = BTreeMap::new();
        for (case, study) in cases.iter().zip(booted) {
            let entry = done.entry(case.name.clone()).or_default();
            entry.real = study;
            entry.alone.clone_from(&case.alone);
        }
        for ((nth, pace), study) in jobs.iter().zip(found) {
            let entry = done.entry(cases[*nth].name.clone()).or_default();
            match pace {
                Pace::Instructions => entry.by_instructions = study,
                Pace::Time => entry.by_time = study,
            }
        }
        let seen = done
            .values()
            .flat_map(|d| d.all().map(|(_, s)| s))
            .flatten();
        Ok(Self {
            refs: seen.map(|s| s.simulated_refs).sum(),
            absent,
            done,
        })
    }

    /// References that went through the machine model.
    pub(super) const fn refs(&self) -> u64 {
        self.refs
    }

    /// What weakens the results.
    pub(super) fn warnings(&self) -> Vec<String> {
        let left_out = |p: &&str| format!("Not run: what has {p}, which this computer lacks.");
        let mut all: Vec<String> = self.absent.iter().map(left_out).collect();
        for (name, done) in &self.done {
            for (kernel, study) in done.all() {
                let said = study.iter().flat_map(|s| &s.warnings);
                let said = said.filter(|w| !w.starts_with("one repetition"));
                all.extend(said.map(|w| format!("Warning, {name}, {kernel}: {w}.")));
            }
        }
        all
    }

    /// Was the case run, whatever came out?
    pub(super) fn has(&self, case: &Case) -> bool {
        self.done.contains_key(&case.name)
    }

    /// Was the case left out, as this computer lacks a program of it?
    pub(super) fn lacks(&self, case: &Case) -> bool {
        let mut programs = case.beside.iter().filter_map(Beside::program);
        programs.any(|p| self.absent.contains(&p))
    }

    /// A number of both kernels: of the modelled one's run, and of the real one's boots together,
    /// or those alone.
    fn pair(
        &self,
        case: &Case,
        pace: Pace,
        together: bool,
        of: impl Fn(&Study) -> Result<Sample, String>,
    ) -> Pair {
        let missing = Done::default();
        let done = self.done.get(&case.name).unwrap_or(&missing);
        let modelled = match pace {
            Pace::Instructions => &done.by_instructions,
            Pace::Time => &done.by_time,
        };
        let real = match together {
            true => done,
            false => self.boots_alone(done),
        };
        let of = |s: &Result<Study, String>| of(s.as_ref().map_err(Clone::clone)?);
        Pair {
            modelled: of(modelled),
            real: of(&real.real),
        }
    }

    fn boots_alone<'s>(&'s self, done: &'s Done) -> &'s Done {
        let other = done.alone.as_ref().and_then(|name| self.done.get(name));
        other.unwrap_or(done)
    }

    /// Last-level misses of a case's subject per million of its instructions.
    pub(super) fn misses(&self, case: &Case, way: &str, together: bool) -> Pair {
        self.misses_of(case, Pace::Instructions, way, case.subject.name, together)
    }

    /// The same of either program, by either pace.
    pub(super) fn misses_of(
        &self,
        case: &Case,
        pace: Pace,
        way: &str,
        name: &str,
        together: bool,
    ) -> Pair {
        self.pair(case, pace, together, |study| {
            let metrics = metrics(study, way, name, together)?;
            let last = metrics.mpki.last().ok_or("no caches")?;
            Ok(last.mpki.scaled(1e3))
        })
    }

    /// Share of the subject's last-level accesses that miss, in percent.
    pub(super) fn miss_rate(&self, case: &Case, way: &str, together: bool) -> Pair {
        self.pair(case, Pace::Instructions, together, |study| {
            let metrics = metrics(study, way, case.subject.name, together)?;
            let last = metrics.mpki.last().ok_or("no caches")?;
            let rate = last.mpki.ratio(&last.accesses).ok_or("no accesses")?;
            Ok(rate.scaled(100.0))
        })
    }

    /// Slowdown of the subject beside the others in percent, by its own work; where boots alone are
    /// those of another case, by the time of an instruction.
    pub(super) fn slowdown(&self, case: &Case, way: &str) -> Pair {
        let name = case.subject.name;
        let modelled = self.pair(case, Pace::Time, true, |study| {
            let found = result(study, way, name)?;
            let slowdown = found.slowdown.as_ref().ok_or("no time together")?;
            Ok(slowdown.scaled(100.0))
        });
        let missing = Done::default();
        let done = self.done.get(&case.name).unwrap_or(&missing);
        let both = || {
            let alone = self.boots_alone(done).real.as_ref().map_err(Clone::clone)?;
            let together = done.real.as_ref().map_err(Clone::clone)?;
            let alone = metrics(alone, way, name, false)?;
            let together = metrics(together, way, name, true)?;
            let found = match done.alone {
                None => slowdown(together, alone),
                Some(_) => alone
                    .ipc
                    .ratio(&together.ipc)
                    .map(|r| r.map(|x| 100.0 * (x - 1.0))),
            };
            found.ok_or_else(|| "no time together".to_owned())
        };
        Pair {
            modelled: modelled.modelled,
            real: both(),
        }
    }

    /// Instructions by time of the first program beside the subject, for each of the subject's. The
    /// real kernel's processors advance by instructions, one for one, whatever this comes to.
    pub(super) fn pace(&self, case: &Case, way: &str) -> Pair {
        let own = self.cycles(case, way, case.subject.name);
        let other = self.cycles(case, way, &case.other());
        own.with(&other, |own, other| {
            own.ratio(other).ok_or_else(|| "no cycles".to_owned())
        })
    }

    /// Modelled time of an instruction of a program beside the other, in cycles.
    pub(super) fn cycles(&self, case: &Case, way: &str, name: &str) -> Pair {
        self.pair(case, Pace::Time, true, |study| {
            Ok(metrics(study, way, name, true)?.ipc.map(f64::recip))
        })
    }
}

fn result<'s>(study: &'s Study, way: &str, name: &str) -> Result<&'s ProgramResult, String> {
    program(study, way, name).ok_or_else(|| format!("{name} was not run under {way}"))
}

fn metrics<'s>(
    study: &'s Study,
    way: &str,
    name: &str,
    together: bool,
) -> Result<&'s Metrics, String> {
    let found = result(study, way, name)?;
    match together {
        true => found
            .together
            .as_ref()
            .ok_or_else(|| "no run together".to_owned()),
        false => Ok(&found.alone),
    }
}

fn boot(
    case: &Case,
    real: &Real,
    hooks: Hooks<'_>,
    show: &(dyn Fn(&str) + Sync),
) -> Result<Study, String> {
    let tools = Tools::prepare(real, None).map_err(|e| e.to_string())?;
    let progress = |_: u32, what: &str| show(&format!("{}, real: {what}", case.name));
    let boot_hooks = BootHooks {
        stop: hooks.stop,
        progress: Some(&progress),
        // Cases run side by side.
        at_once: 1,
        store: hooks.store.map(|store| &**store),
    };
    let study = piebald_guest::run(real, &tools, &boot_hooks).map_err(|e| e.to_string())?;
    match study.complete {
        true => Ok(study),
        false if hooks.stop.is_some_and(|stop| stop.load(Relaxed)) => Err("interrupted".to_owned()),
        false => Err(study.warnings.join("; ")),
    }
}

/// Records a program of a case, or finds it recorded.
fn record(
    (name, command, limit, inputs): Recorded,
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<PathBuf, String> {
    if command.is_empty() {
        let path = options.inputs.join(format!("{name}.pbr"));
        return std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()));
    }
    let program = StandIn {
        name: format!("guest-{name}"),
        stands_for: String::new(),
        class: String::new(),
        command,
        recording: None,
        builtin: None,
        stdin: None,
        threads: None,
        walk_us: None,
        whole: false,
        each: BTreeMap::new(),
        packages: Vec::new(),
        skip: 0,
        limit,
        why: String::new(),
        inputs,
    };
    let wanted = Wanted {
        program: &program,
        refs: limit,
    };
    (hooks.record)(&wanted, &options.inputs).map_err(|e| format!("{name}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_answers_at_once_has_the_same_caches() {
        for preset in ["w3540", "x5355"] {
            let text = by_instructions(preset).unwrap_or_else(|e| panic!("{e}"));
            let quick = presets::parse(&text, preset).unwrap_or_else(|e| panic!("{e}"));
            let own = presets::load(preset).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(quick.core.clock.0, 10_000_000);
            assert_eq!(quick.cache.len(), own.cache.len());
            for (a, b) in quick.cache.iter().zip(&own.cache) {
                assert_eq!(a.latency, 1);
                assert_eq!((a.size, a.ways, a.shared_by), (b.size, b.ways, b.shared_by));
                assert_eq!((a.replacement, a.inclusion), (b.replacement, b.inclusion));
            }
        }
        assert!(by_instructions("pdp11").is_err());
    }
}
