//! Cases: two programs, several ways to place their pages, and what both kernels made of it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use piebald_guest::{Hooks as BootHooks, Scenario as Real, Tools, boots, compile, write_files};
use piebald_lab::rooms::hw::presets;
use piebald_report::{Metrics, ProgramResult, Sample, Study};
use rayon::prelude::*;

use super::Form;
use crate::{
    Hooks, Options, ReproduceError, StandIn, Wanted,
    experiment::{Bench, program},
    row::Found,
};

/// Bytes of a file, and the word of its last line.
const FILE: &str = "256KiB";
const WORD: &str = "marmalade";
/// Name of the program that reads files.
pub(super) const GREP: &str = "grep";
/// References of a recording that nobody asked an end of.
const WHOLE: u64 = 1 << 40;

/// A program that lives in its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub name: &'static str,
    /// Its arguments in the guest, which run it as long as is measured.
    pub guest: Vec<String>,
    /// And for the recording: as long as it is needed, or longer.
    pub recorded: Vec<String>,
    /// References that warm up, and that are measured, in the modelled kernel.
    pub refs: [u64; 2],
}

/// By what processors of the modelled kernel advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// By instructions, one for one, as in the guest: the machine answers at once.
    Instructions,
    /// By the machine's time.
    Time,
}

/// How pages are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As the kernel does.
    Stock,
    /// Colors of the subject and of grep, as the module reads them; empty = none of its own.
    Colors([String; 2]),
    /// SRM-buffer with this threshold in pages.
    Srm(u32),
}

/// Two programs and the ways to place their pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub name: String,
    pub preset: &'static str,
    pub memory: &'static str,
    /// Address bits of the colors.
    pub bits: std::ops::RangeInclusive<u32>,
    /// Files of 256 KiB that grep reads, and how often in one run.
    pub files: u32,
    pub passes: usize,
    pub subject: Subject,
    /// Run by time as well, for slowdowns.
    pub timed: bool,
    /// By their names in results.
    pub ways: Vec<(String, Way)>,
}

impl Case {
    /// What is run, in words.
    pub(super) fn describe(&self) -> String {
        format!(
            "{}: {} {} on {} with {}, beside grep over {} files of {FILE}.",
            self.name,
            self.subject.name,
            self.subject.guest.join(" "),
            self.preset,
            self.memory,
            self.files
        )
    }

    fn grep(&self, folder: &str) -> Vec<String> {
        let words = ["grep", "-r", "-c", WORD];
        let folders = std::iter::repeat_n(folder, self.passes);
        words.into_iter().chain(folders).map(Into::into).collect()
    }

    /// The scenario of the real kernel.
    pub(super) fn real(&self, form: &Form, module: &Path) -> Result<Real, String> {
        let mut text = format!(
            "schema = 1\nrepetitions = {}\nseed = {}\n[machine]\npreset = \"{}\"\n[guest]\n\
             memory = \"{}\"\nappend = \"transparent_hugepage=never\"\n",
            form.repetitions, form.seed, self.preset, self.memory
        );
        for i in 0..self.files {
            let seed = form.seed.wrapping_add(u64::from(i)) & i64::MAX as u64;
            let _ = write!(
                text,
                "[[file]]\nname = \"{i}\"\nsize = \"{FILE}\"\nseed = {seed}\n"
            );
        }
        let own = [self.subject.name.to_owned()];
        let own: Vec<&String> = own.iter().chain(&self.subject.guest).collect();
        let _ = write!(
            text,
            "[[program]]\nname = \"{}\"\ncommand = {own:?}\nvcpu = 0\nmeasure = \"marks\"\n\
             [[program]]\nname = \"{GREP}\"\ncommand = {:?}\nvcpu = 1\nrole = \"polluter\"\n",
            self.subject.name,
            self.grep("/data")
        );
        let map: Vec<String> = self.bits.clone().map(|b| b.to_string()).collect();
        for (name, way) in &self.ways {
            let _ = writeln!(text, "[[policy]]\nname = \"{name}\"");
            if *way != Way::Stock {
                let _ = writeln!(text, "module = \"{}\"\nmap = {map:?}", module.display());
            }
            match way {
                Way::Stock => {}
                Way::Colors(colors) => text += &format!("colors = {}\n", self.owned(colors)),
                Way::Srm(pages) => text += &format!("srm = true\nthreshold = {pages}\n"),
            }
        }
        Real::parse(&text, Path::new("/"))
    }

    fn owned(&self, colors: &[String; 2]) -> String {
        let named = [self.subject.name, GREP].into_iter().zip(colors);
        let named = named.filter(|(_, c)| !c.is_empty());
        let all: Vec<String> = named.map(|(n, c)| format!("{n} = \"{c}\"")).collect();
        format!("{{ {} }}", all.join(", "))
    }

    /// The scenario of the modelled kernel, over the recordings of both programs; `machine`: a
    /// file instead of the preset.
    pub(super) fn modelled(
        &self,
        form: &Form,
        [own, grep]: [&Path; 2],
        machine: Option<&Path>,
    ) -> Result<String, String> {
        let file = |path: &Path| toml::Value::String(path.display().to_string());
        let machine = match machine {
            Some(path) => format!("file = {}", file(path)),
            None => format!("preset = \"{}\"", self.preset),
        };
        let [warmup, budget] = self.subject.refs;
        let mut text = format!(
            "schema = 1\nrepetitions = {}\nseed = {}\nbudget_refs = \"{budget}\"\n\
             warmup_refs = \"{warmup}\"\nalone = \"targets\"\n[machine]\n{machine}\n\
             memory = \"{}\"\nfeatures = \"coherence\"\n[output]\nset_map = 0\n",
            form.repetitions, form.seed, self.memory
        );
        // SRM-buffer needs a page cache; both of its ways have the same one.
        let has_files = self.ways.iter().any(|(_, w)| matches!(w, Way::Srm(_)));
        if has_files {
            text += "[files]\ndevice = \"nvme\"\nreadahead = \"6.x\"\n";
        }
        let _ = write!(
            text,
            "[[program]]\nname = \"{}\"\nrecording = {}\ncores = \"0\"\n\
             [[program]]\nname = \"{GREP}\"\nrecording = {}\ncores = \"1\"\n\
             role = \"polluter\"\n",
            self.subject.name,
            file(own),
            file(grep)
        );
        let map: Vec<String> = self.bits.clone().map(|b| b.to_string()).collect();
        for (name, way) in &self.ways {
            let _ = writeln!(text, "[[policy]]\nname = \"{name}\"\nmemory = \"fresh\"");
            match way {
                Way::Stock => {}
                Way::Colors(colors) => {
                    let owned = self.owned(colors);
                    let _ = writeln!(
                        text,
                        "frames = \"rainbow\"\ncolor_map = {map:?}\ncolors = {owned}"
                    );
                }
                Way::Srm(pages) => {
                    text += &format!("files = \"srm:threshold={pages}\"\ncolor_map = {map:?}\n");
                }
            }
        }
        Ok(text)
    }
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
}

impl Default for Done {
    fn default() -> Self {
        let [by_instructions, by_time, real] = [(); 3].map(|()| Err("not run".to_owned()));
        Self {
            by_instructions,
            by_time,
            real,
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
    refs: u64,
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
        compile(&options.inputs).map_err(|e| said(&e))?;
        for case in cases {
            let real = case.real(form, module).map_err(|e| said(&e))?;
            let folder = format!("data-{}", case.files);
            let machine = by_instructions(case.preset).map_err(|e| said(&e))?;
            let path = options.inputs.join(format!("{}.toml", case.preset));
            std::fs::write(&path, machine)
                .map_err(|e| said(&format!("{}: {e}", path.display())))?;
            let at = options.inputs.join(&folder);
            write_files(&real.files, &at).map_err(|e| said(&e))?;
            let recordings = record(case, &folder, options, hooks);
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
            let paths = [recordings[0].as_path(), recordings[1].as_path()];
            let (name, machine) = match pace {
                Pace::Time => ("by time", None),
                Pace::Instructions => {
                    let path = options.inputs.join(format!("{}.toml", case.preset));
                    ("by instructions", Some(path))
                }
            };
            let text = case.modelled(form, paths, machine.as_deref())?;
            bench.run(&format!("{}, modelled {name}", case.name), &text)
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
            done.entry(case.name.clone()).or_default().real = study;
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
            done,
        })
    }

    /// References that went through the machine model.
    pub(super) const fn refs(&self) -> u64 {
        self.refs
    }

    /// What weakens the results.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (name, done) in &self.done {
            for (kernel, study) in done.all() {
                let said = study.iter().flat_map(|s| &s.warnings);
                let said = said.filter(|w| !w.starts_with("one repetition"));
                all.extend(said.map(|w| format!("Warning, {name}, {kernel}: {w}.")));
            }
        }
        all
    }

    /// A number of both kernels.
    fn pair(&self, case: &Case, pace: Pace, of: impl Fn(&Study) -> Result<Sample, String>) -> Pair {
        let missing = Done::default();
        let done = self.done.get(&case.name).unwrap_or(&missing);
        let modelled = match pace {
            Pace::Instructions => &done.by_instructions,
            Pace::Time => &done.by_time,
        };
        let of = |s: &Result<Study, String>| of(s.as_ref().map_err(Clone::clone)?);
        Pair {
            modelled: of(modelled),
            real: of(&done.real),
        }
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
        self.pair(case, pace, |study| {
            let metrics = metrics(study, way, name, together)?;
            let last = metrics.mpki.last().ok_or("no caches")?;
            Ok(last.mpki.scaled(1e3))
        })
    }

    /// Share of the subject's last-level accesses that miss, in percent.
    pub(super) fn miss_rate(&self, case: &Case, way: &str, together: bool) -> Pair {
        self.pair(case, Pace::Instructions, |study| {
            let metrics = metrics(study, way, case.subject.name, together)?;
            let last = metrics.mpki.last().ok_or("no caches")?;
            let rate = last.mpki.ratio(&last.accesses).ok_or("no accesses")?;
            Ok(rate.scaled(100.0))
        })
    }

    /// Slowdown of the subject beside grep in percent, by its own work.
    pub(super) fn slowdown(&self, case: &Case, way: &str) -> Pair {
        self.pair(case, Pace::Time, |study| {
            let found = result(study, way, case.subject.name)?;
            let slowdown = found.slowdown.as_ref().ok_or("no time together")?;
            Ok(slowdown.scaled(100.0))
        })
    }

    /// Instructions of grep by time for each of the subject's. The real kernel's processors
    /// advance by instructions, one for one, whatever this comes to.
    pub(super) fn pace(&self, case: &Case, way: &str) -> Pair {
        let own = self.cycles(case, way, case.subject.name);
        let grep = self.cycles(case, way, GREP);
        own.with(&grep, |own, grep| {
            own.ratio(grep).ok_or_else(|| "no cycles".to_owned())
        })
    }

    /// Modelled time of an instruction of a program beside the other, in cycles.
    pub(super) fn cycles(&self, case: &Case, way: &str, name: &str) -> Pair {
        self.pair(case, Pace::Time, |study| {
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
    };
    let study = piebald_guest::run(real, &tools, &boot_hooks).map_err(|e| e.to_string())?;
    match study.complete {
        true => Ok(study),
        false if hooks.stop.is_some_and(|stop| stop.load(Relaxed)) => Err("interrupted".to_owned()),
        false => Err(study.warnings.join("; ")),
    }
}

/// Records both programs of a case, or finds them recorded.
fn record(
    case: &Case,
    folder: &str,
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<[PathBuf; 2], String> {
    let subject = &case.subject;
    let binary = format!("programs/{}", subject.name);
    let own = std::iter::once(format!("./{binary}")).chain(subject.recorded.clone());
    // A quarter more: the last references of a run may come after the last of a batch.
    let needed = subject.refs.iter().sum::<u64>() * 5 / 4;
    let files = (0..case.files).map(|i| format!("{folder}/{i}"));
    let wanted = [
        (subject.name, own.collect(), needed, vec![binary.clone()]),
        (GREP, case.grep(folder), WHOLE, files.collect()),
    ];
    let one = |(name, command, limit, inputs): (&str, Vec<String>, u64, Vec<String>)| {
        let program = StandIn {
            name: format!("guest-{name}"),
            stands_for: String::new(),
            class: String::new(),
            command,
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
    };
    let [own, grep] = wanted;
    Ok([one(own)?, one(grep)?])
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
