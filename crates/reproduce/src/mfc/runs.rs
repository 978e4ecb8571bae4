//! Cases: which program reads what, on which system; and what came out, repetition by
//! repetition.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use piebald_hw::spec::MachineSpec;
use piebald_policy::mfc::{Config, MinRead, Second};
use piebald_report::Sample;
use piebald_sim::{
    Boot, Case as Run, ColorSetup, FrameRule, Model, ProgramSetup, Reads, Region, Stay, Threads,
};
use piebald_trace::recording::ReplayOptions;
use piebald_units::{CoreSet, Picos};
use piebald_workload::{Builtin, Library, Program};
use rayon::prelude::*;

use super::{
    form::Form,
    inputs::{List, Work},
    once::{Emptied, Once},
};
use crate::{
    Hooks, Options,
    experiment::{draw, machine_seed, outcome},
    row::{Found, change},
};

/// Timer tick of all runs (protocol).
const TICK: Picos = Picos(1_000_000_000);
/// Aged memories that are kept: those of a repetition.
const KEPT_HISTORIES: usize = 5;
/// Bytes of a line.
const LINE: u64 = 64;
/// Controllers of the machine.
pub(super) const CONTROLLERS: u16 = 8;
/// References that no program makes: it ends by its iterations.
const NO_LIMIT: u64 = 1 << 40;

/// Who says where a thread reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum System {
    /// Linux: it reads where it is.
    Linux,
    /// MFC.
    Mfc {
        /// Files may be on several cores.
        copies: bool,
        /// The second of two files is left alone.
        first_only: bool,
        /// Microseconds of a migration over whatever distance, with the least size that the
        /// cost model gives; `None` = the paper's times and size.
        migration_us: Option<u32>,
    },
}

impl System {
    /// MFC as the paper's.
    pub(super) const MFC: Self = Self::Mfc {
        copies: true,
        first_only: false,
        migration_us: None,
    };

    fn threads(self, seed: u64) -> Threads {
        let mut threads = Threads {
            balance: true,
            migration: Config::PAPER.migration,
            reads: None,
            first: Some(draw(seed, "first cores", 0)),
        };
        if let Self::Mfc {
            copies,
            first_only,
            migration_us,
        } = self
        {
            let mut reads = Reads::default();
            reads.switches.copies = copies;
            if first_only {
                reads.switches.second = Second::Ignore;
            }
            if let Some(us) = migration_us {
                let time = Picos(u64::from(us) * 1_000_000);
                threads.migration = [time; 4];
                reads.config.migration = [time; 4];
                reads.config.min_read = MinRead::BreakEven;
            }
            threads.reads = Some(reads);
        }
        threads
    }
}

/// A program that draws files and reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Case {
    pub work: Work,
    /// Bytes of a file, and how many there are.
    pub size: u64,
    pub files: u32,
    /// By Zipf's law.
    pub zipf: bool,
    pub threads: u32,
    /// Memory controllers that are on, from the first chip's on.
    pub controllers: u16,
    pub system: System,
}

impl Case {
    /// Files of 256 KiB, drawn uniformly, on Linux.
    pub(super) const fn read(work: Work, files: u32, threads: u32) -> Self {
        Self {
            work,
            size: 256 << 10,
            files,
            zipf: false,
            threads,
            controllers: CONTROLLERS,
            system: System::Linux,
        }
    }

    /// The same on another system.
    pub(super) const fn under(self, system: System) -> Self {
        Self { system, ..self }
    }

    /// The same with so many threads.
    pub(super) const fn by(self, threads: u32) -> Self {
        Self { threads, ..self }
    }

    /// The built-in program that draws so often.
    fn builtin(&self, draws: u64) -> String {
        let Work {
            instrs,
            width,
            chunk,
            pair,
        } = self.work;
        let chunk = chunk.unwrap_or(self.size).min(self.size);
        let (pair, zipf) = (u8::from(pair), u8::from(self.zipf));
        let (files, size, threads) = (self.files, self.size, self.threads);
        format!(
            "readfiles:files={files},size={size}B,chunk={chunk}B,threads={threads},zipf={zipf},\
             pair={pair},instrs={instrs},width={width},iterations={draws}"
        )
    }
}

/// What came out of the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Did {
    /// MB/s that read calls returned.
    pub throughput: f64,
    /// Microseconds of it.
    pub time_us: f64,
    /// Bytes that read calls returned.
    pub read: f64,
    /// Bytes that cores loaded from memory, with and without those that they prefetched.
    pub loaded: f64,
    pub demanded: f64,
    /// Times that MFC moved a thread.
    pub moves: f64,
    /// Share of what was read that was read past the caches, in percent.
    pub past: f64,
}

impl From<&Region> for Did {
    fn from(region: &Region) -> Self {
        let counters = &region.counters;
        let time_us = region.time.0 as f64 / 1e6;
        let read = region.reads.bytes as f64;
        Self {
            throughput: read / time_us,
            time_us,
            read,
            loaded: ((counters.memory_reads + counters.prefetch_reads) * LINE) as f64,
            demanded: (counters.memory_reads * LINE) as f64,
            moves: region.reads.moves as f64,
            past: region.reads.past as f64 / read * 100.0,
        }
    }
}

/// Runs cases and keeps what came out.
pub(super) struct Runs<'a> {
    list: &'a List,
    form: &'a Form,
    hooks: Hooks<'a>,
    seed: u64,
    spec: MachineSpec,
    model: Model,
    done: BTreeMap<(Case, u32), Result<Did, String>>,
    refs: AtomicU64,
}

impl<'a> Runs<'a> {
    /// # Errors
    /// The machine is none.
    pub(super) fn new(
        list: &'a List,
        form: &'a Form,
        options: &Options,
        hooks: Hooks<'a>,
    ) -> Result<Self, String> {
        Ok(Self {
            list,
            form,
            hooks,
            seed: options.seed,
            spec: list.machine()?,
            model: hooks.model(KEPT_HISTORIES),
            done: BTreeMap::new(),
            refs: AtomicU64::new(0),
        })
    }

    /// References simulated so far.
    pub(super) fn refs(&self) -> u64 {
        self.refs.load(Ordering::Relaxed)
    }

    pub(super) const fn form(&self) -> &Form {
        self.form
    }

    pub(super) const fn list(&self) -> &'a List {
        self.list
    }

    pub(super) const fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// Runs cases that were not run before, in all repetitions, several at a time.
    pub(super) fn run(&mut self, stage: &str, cases: &[Case]) {
        let wanted: BTreeSet<(u32, Case)> = (0..self.form.repetitions)
            .flat_map(|r| cases.iter().map(move |c| (r, *c)))
            .collect();
        let missing = |(r, c): &(u32, Case)| !self.done.contains_key(&(*c, *r));
        let jobs: Vec<(u32, Case)> = wanted.into_iter().filter(missing).collect();
        let (ended, planned) = (AtomicU64::new(0), jobs.len() as u64);
        let one = |(repetition, case): (u32, Case)| {
            let result = self.one(&case, repetition);
            let n = ended.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = self.hooks.progress {
                progress(stage, n, planned);
            }
            ((case, repetition), result)
        };
        let found: Vec<_> = jobs.into_par_iter().with_max_len(1).map(one).collect();
        self.done.extend(found);
    }

    /// A figure of a case in all repetitions.
    ///
    /// # Errors
    /// Why a run failed; a case that was not run.
    pub(super) fn sample(&self, case: &Case, of: impl Fn(&Did) -> f64) -> Found {
        let one = |repetition| {
            let done = self.done.get(&(*case, repetition)).ok_or("not run")?;
            done.as_ref().map(&of).map_err(Clone::clone)
        };
        let values: Result<Vec<f64>, String> = (0..self.form.repetitions).map(one).collect();
        Ok(Sample::new(values?))
    }

    /// Throughput of a case over that of another, less 1, in percent.
    pub(super) fn gain(&self, linux: &Case, mfc: &Case) -> Found {
        let linux = self.sample(linux, |d| d.throughput)?;
        change(&linux, &self.sample(mfc, |d| d.throughput)?)
    }

    fn one(&self, case: &Case, repetition: u32) -> Result<Did, String> {
        let seed = self.seed.wrapping_add(u64::from(repetition));
        let [warmup, measured] = self.form.draws(case);
        // One more: the last mark comes before the end of the program.
        let text = case.builtin(warmup + measured + 1);
        let builtin = Builtin::parse(&text).map_err(|e| format!("{text}: {e}"))?;
        // A library of its own: the recording goes with the run.
        let program = Library::new().program(&builtin, seed, NO_LIMIT, replay());
        let program = program.map_err(|e| e.to_string())?;
        let refs = case.work.refs(case.size);
        let marks = [warmup * refs, measured * refs];
        self.perform(case, seed, (Arc::new(program), true), marks)
    }

    /// One read of a file, by calls of so many bytes, that the core's caches hold, or that no cache holds, in microseconds.
    ///
    /// # Errors
    /// Why the run failed.
    pub(super) fn read_once(&self, size: u64, call: u64, emptied: Emptied) -> Found {
        let one = |repetition: u32| {
            let seed = self.seed.wrapping_add(u64::from(repetition));
            let once = Once {
                size,
                call,
                emptied,
            };
            let case = Case::read(Work::READ, 1, 1);
            let marks = once.marks();
            let did = self.perform(&case, seed, (Arc::new(once), false), marks)?;
            match did.read == size as f64 {
                true => Ok(did.time_us),
                false => Err(format!("{} B were read instead of {size} B", did.read)),
            }
        };
        let times: Result<Vec<f64>, String> = (0..self.form.repetitions).map(one).collect();
        Ok(Sample::new(times?))
    }

    /// Runs a program: what it did between its marks.
    fn perform(
        &self,
        case: &Case,
        seed: u64,
        (program, marks_ready): (Arc<dyn Program>, bool),
        [warmup, budget]: [u64; 2],
    ) -> Result<Did, String> {
        let core = &self.spec.core;
        let setup = ProgramSetup {
            name: format!("{case:?}"),
            input: program,
            prime: 0,
            cores: CoreSet::first(u32::from(core.sockets * core.per_socket * core.smt)),
            colors: ColorSetup::default(),
            stay: Stay::default(),
            start: Picos(draw(seed, "phase", 0) % TICK.0),
            waits: false,
            measured: true,
            skip: 0,
            marks_ready,
            warmup,
            budget,
            each: true,
        };
        let boot = Boot {
            tick: Some(TICK),
            ..Boot::new(FrameRule::Stock, Some(draw(seed, "memory", 0)))
        };
        let run = Run {
            disabled_controllers: (case.controllers..CONTROLLERS).collect(),
            threads: case.system.threads(seed),
            ..Run::new(&self.spec, boot, vec![setup], machine_seed(seed))
        };
        let outcome = outcome(&self.model, &run, (self.hooks.stop, &self.refs))?;
        match outcome.programs.first() {
            Some(p) if !p.region.ended_early => Ok(Did::from(&p.region)),
            _ => Err("the program ended before its measured part was over".to_owned()),
        }
    }
}

fn replay() -> ReplayOptions {
    ReplayOptions {
        fetches: true,
        dependences: true,
        ..ReplayOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use piebald_units::Bytes;

    use super::*;

    /// What two systems did with the first repetition of a case, each of `draws` reads to warm up
    /// and measured.
    fn both(case: Case, draws: u64) -> [Did; 2] {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        let threads = u64::from(case.threads);
        let options = Options {
            repetitions: Some(1),
            budget_refs: Some(draws * case.work.refs(case.size) * threads),
            seed: 7,
            ..Options::default()
        };
        let form = Form::new(&options);
        let record = |_: &crate::Wanted<'_>, _: &std::path::Path| Err(String::new());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &record,
            store: None,
        };
        let mut runs = Runs::new(&list, &form, &options, hooks).unwrap_or_else(|e| panic!("{e}"));
        // Less memory: ageing 16 GiB takes its time.
        runs.spec.memory.size = Bytes(1 << 30);
        let cases = [case, case.under(System::MFC)];
        runs.run("test", &cases);
        let again = runs.done.clone();
        runs.done.clear();
        runs.run("test", &cases);
        cases.map(|case| {
            let did = |done: &BTreeMap<(Case, u32), Result<Did, String>>| {
                let did = done.get(&(case, 0)).cloned();
                did.unwrap_or_else(|| Err("not run".to_owned()))
            };
            assert_eq!(did(&again), did(&runs.done));
            did(&runs.done).unwrap_or_else(|e| panic!("{e}"))
        })
    }

    #[test]
    fn one_thread_is_measured_by_whole_reads_and_moved_by_mfc_alone() {
        let case = Case {
            size: 64 << 10,
            ..Case::read(Work::READ, 64, 1)
        };
        let [linux, mfc] = both(case, 120);
        let read = 120.0 * 65536.0;
        assert_eq!((linux.read, mfc.read), (read, read));
        assert_eq!(linux.moves, 0.0);
        // 4 MiB are more than the caches that one core reaches.
        assert!(mfc.moves > 0.0, "{mfc:?}");
        assert!(linux.throughput > 0.0 && linux.loaded >= linux.demanded);
        let rate = linux.read / linux.time_us;
        assert!((linux.throughput - rate).abs() < 1e-6);
    }

    #[test]
    fn the_window_of_threads_ends_with_the_first_that_is_through() {
        let work = Work {
            instrs: 8,
            ..Work::READ
        };
        let case = Case {
            size: 16 << 10,
            zipf: true,
            ..Case::read(work, 4, 3)
        };
        let [linux, mfc] = both(case, 10);
        for did in [linux, mfc] {
            // One thread made all of its 10 reads, others no more than their 20.
            let reads = did.read / 16384.0;
            assert!((10.0..=60.0).contains(&reads), "{did:?}");
        }
        // Files below 45 KB.
        assert_eq!(mfc.moves, 0.0);
    }
}
