//! Runs a scenario file at all points of its axes, on whatever host.

use std::{
    io::IsTerminal,
    path::Path,
    process::ExitCode,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use piebald_experiment::{Document, HostName, MadeFile, Point, Words};
use piebald_lab::{
    host::{Ground, Hosted, NoStudy},
    scenario,
};
use piebald_linux::available_bytes;
use piebald_report::Study;
use piebald_sim::Model;
use piebald_store::Store;

use crate::{
    failure::Failure,
    made,
    outputs::Outputs,
    progress,
    record::{self, NotCached},
    running, store,
};

/// `--set`, of every verb that runs a scenario.
#[derive(clap::Args)]
pub(crate) struct Sets {
    /// A key of the scenario and what it is instead, such as program.sort.cores='"1"' or
    /// policy.stock.memory=fresh; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pairs: Vec<String>,
}

impl Sets {
    /// A scenario file with these values.
    pub(crate) fn document(&self, path: &Path) -> Result<Document, Failure> {
        let document = scenario::document(path).map_err(Failure::usage)?;
        let set = |document: Document, pair: &String| document.set(pair);
        let document = self.pairs.iter().try_fold(document, set);
        document.map_err(Failure::usage)
    }

    /// Its points for a host.
    fn points(&self, path: &Path, host: HostName) -> Result<Vec<Point>, Failure> {
        let document = self.document(path)?.on(host);
        document.points().map_err(Failure::usage)
    }

    /// Is this key among them?
    pub(crate) fn gives(&self, key: &str) -> bool {
        let mut keys = self.pairs.iter().filter_map(|pair| pair.split_once('='));
        keys.any(|(given, _)| given.trim() == key)
    }

    pub(crate) fn is_given(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// As they are given on a command line.
    pub(crate) fn words(&self) -> String {
        let word = |pair: &String| format!(" --set '{}'", pair.replace('\'', "'\\''"));
        self.pairs.iter().map(word).collect()
    }
}

/// An option, whether it is given, and the keys that it replaces.
type Replacing<'o> = (&'o str, bool, &'o [&'o str]);

/// What the command line asks of all hosts.
pub(crate) struct Asked<'a> {
    pub(crate) scenario: &'a Path,
    pub(crate) sets: &'a Sets,
    pub(crate) outputs: &'a Outputs,
    /// Where outcomes are kept.
    pub(crate) store: Option<&'a str>,
    pub(crate) quiet: bool,
    /// Guests at a time, if the user says how many.
    pub(crate) guests: Option<u16>,
    /// The plugin of guests, if it is not near this program.
    pub(crate) plugin: Option<&'a Path>,
    /// How the command line begins.
    pub(crate) verb: &'a str,
    /// What it says beside `--set`, as it is given there.
    pub(crate) overrides: &'a str,
}

impl Asked<'_> {
    /// Runs all points, which `read` makes of documents; `ready` is called before the first one.
    pub(crate) fn run(
        &self,
        host: HostName,
        options: &[Replacing<'_>],
        read: impl Fn(Document) -> Result<Box<dyn Hosted>, Failure>,
        ready: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<ExitCode, Failure> {
        let points = self.sets.points(self.scenario, host)?;
        no_axis(&points, options)?;
        // All of them are read before any is run.
        let mut scenarios = Vec::new();
        for point in points {
            scenarios.push((point.axes, read(point.document)?));
        }
        let single = matches!(&scenarios[..], [(axes, _)] if axes.is_empty());
        let mut inputs = vec![self.scenario.to_owned()];
        inputs.extend(scenarios.iter().flat_map(|(_, one)| one.inputs()));
        self.outputs.check((scenarios.len(), single), &inputs)?;
        ready()?;
        let store = store::open(self.store, store::Default::Nowhere)?;
        // Set by a signal, of which the first does not end the program once inputs are there.
        let stop = OnceLock::new();
        let is_stopped = || {
            stop.get()
                .is_some_and(|stop: &Arc<AtomicBool>| stop.load(Relaxed))
        };
        let found = || store.as_ref().map_or(0, |store| store.tally().found);
        let nr_points = scenarios.len();
        let (mut studies, mut failed) = (Vec::new(), None);
        for (number, (axes, scenario)) in scenarios.iter().enumerate() {
            let not_run = |why: &str| self.placed(not_run(&**scenario, why), axes);
            if is_stopped() {
                studies.push(not_run("interrupted"));
                continue;
            }
            if !self.quiet && nr_points > 1 && std::io::stderr().is_terminal() {
                crate::failure::say!("piebald: point {} of {nr_points}", number + 1);
            }
            let before = found();
            match self.run_one(host, &**scenario, store.as_ref(), &stop) {
                Ok(study) => {
                    let stored = found() - before;
                    studies.push(self.placed(Study { stored, ..study }, axes));
                }
                Err(failure) if axes.is_empty() => {
                    store::tell(store.as_ref(), self.quiet);
                    return Err(failure);
                }
                // What the other points came to is not lost.
                Err(failure) => {
                    let place: Vec<String> =
                        axes.iter().map(|(k, v)| format!("{k} = {v}")).collect();
                    let failure = failure.at(&place.join(", "));
                    studies.push(not_run(failure.message()));
                    failed.get_or_insert(failure);
                }
            }
        }
        store::tell(store.as_ref(), self.quiet);
        if failed.is_none() || studies.iter().any(|study| !study.policies.is_empty()) {
            self.outputs.show(&studies)?;
        }
        match failed {
            Some(failure) => Err(failure),
            None => Ok(running::ended(studies.iter().all(|study| study.complete))),
        }
    }

    /// Runs one point.
    fn run_one(
        &self,
        host: HostName,
        asked: &dyn Hosted,
        store: Option<&Arc<Store>>,
        stop: &OnceLock<Arc<AtomicBool>>,
    ) -> Result<Study, Failure> {
        let begin = || {
            if stop.get().is_none() {
                let flag = running::stop_flag().map_err(|failure| failure.message().to_owned())?;
                let _ = stop.set(flag);
            }
            Ok(stop.get().map(|stop| &**stop))
        };
        let interrupted = OnceLock::new();
        let record = |words: &[String], files: &[MadeFile], refs: u64| {
            let words = made::here(words, files)?;
            record::cached(&words, refs).map_err(|e| match e {
                NotCached::Failed(problem) => problem,
                NotCached::Interrupted(problem) => {
                    let _ = interrupted.set(problem.clone());
                    problem
                }
            })
        };
        let bar = progress::bar(self.quiet);
        let show = |what: &str, done: u64, planned: u64| match (what, planned) {
            ("", _) => {
                bar.set_length(planned);
                bar.set_position(done);
            }
            _ if self.quiet => {}
            // Before there is a bar.
            (_, 0) if std::io::stderr().is_terminal() => crate::failure::say!("piebald: {what}"),
            (_, 0) => {}
            _ => {
                let number = done + 1;
                crate::failure::say!("piebald: {} {number} of {planned}: {what}", host.word());
            }
        };
        // Runs are taken repetition by repetition, after a look at every policy.
        let states = rayon::current_num_threads() + asked.policies().len();
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let result = asked.run(&Ground {
            begin: &begin,
            progress: Some(&show),
            record: &record,
            model: Some(&Model::keeping(states).with_store(store.cloned())),
            store,
            guests: self.guests,
            // Guests may come to hold all that they have.
            memory: available_bytes(&meminfo).map_or(0, |bytes| bytes / 2),
            plugin: self.plugin,
        });
        bar.finish_and_clear();
        // Nothing of the file is wrong then: no place of it is named.
        if let Some(problem) = interrupted.into_inner() {
            stop.get_or_init(Arc::default).store(true, Relaxed);
            return Err(Failure::failed(problem));
        }
        result.map_err(|why| match why {
            NoStudy::Missing(why) | NoStudy::Impossible(why) => Failure::usage(why),
            why => Failure::failed(why),
        })
    }

    /// A study with the point that it is of, and the command that gives it again.
    fn placed(&self, study: Study, axes: &[(String, String)]) -> Study {
        let (verb, file, overrides) = (self.verb, self.scenario.display(), self.overrides);
        let sets = self.sets.words();
        Study {
            axes: axes.iter().cloned().collect(),
            command: Some(format!("piebald {verb} {file}{sets}{overrides}")),
            ..study
        }
    }
}

/// A point that has no results, and why.
fn not_run(scenario: &dyn Hosted, why: &str) -> Study {
    Study {
        title: scenario.title(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        complete: false,
        warnings: vec![format!("not run: {why}")],
        ..Study::default()
    }
}

/// No option gives what an axis of the file gives: its labels would be wrong.
fn no_axis(points: &[Point], options: &[Replacing<'_>]) -> Result<(), Failure> {
    let axes = points.first().into_iter().flat_map(|point| &point.axes);
    let given = options.iter().filter(|(_, is_given, _)| *is_given);
    for (option, _, keys) in given {
        if let Some((axis, _)) = axes.clone().find(|(axis, _)| keys.contains(&axis.trim())) {
            return Err(Failure::usage(format!(
                "{option}: {axis} is an axis of the file; allowed: --set 'sweep.{axis}=[VALUE, ...]'"
            )));
        }
    }
    Ok(())
}
