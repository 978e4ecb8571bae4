//! `piebald study SCENARIO.toml`

use piebald_experiment::{Advise, Document, HostName, MAX_REFS, Point, Text, Within, Words};
use std::{
    cell::RefCell,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use piebald_hw::nearest::did_you_mean;
use piebald_lab::{
    Hooks,
    scenario::{self, Scenario},
    study,
};
use piebald_report::Study;
use piebald_sim::Model;
use piebald_units::Count;

use crate::{
    command_line::first_given,
    failure::Failure,
    guest, made, numbers,
    outputs::Outputs,
    progress,
    record::{self, NotCached},
    running, store,
};

/// Arguments of `piebald study`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file (TOML); - is standard input
    scenario: PathBuf,
    /// What runs it: the modelled kernel (model), or a real one in a guest (guest)
    #[arg(long, value_name = "HOST", default_value = "model", value_parser = host)]
    host: HostName,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    outputs: Outputs,
    /// Runs with different draws, instead of the scenario's number
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u32>(1..=1000))]
    repetitions: Option<u32>,
    /// Measured references of each program and run, such as 50M, instead of the
    /// scenario's number
    #[arg(long, value_name = "REFS")]
    budget: Option<Count>,
    /// Advise on shares of the last level: the smallest of each target that costs at
    /// most so much, such as 5%, and the best split of all
    #[arg(long, value_name = "PERCENT")]
    advise: Option<Within>,
    /// Seed of all draws, instead of the scenario's
    #[arg(long, value_parser = numbers::whole::<u64>(numbers::SEEDS))]
    seed: Option<u64>,
    /// Runs at a time; results do not depend on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u16>(1..=1024))]
    threads: Option<u16>,
    /// Folder where outcomes of runs are kept: what is there of the same code and inputs is not run
    /// again. cache = in the cache folder, none = nothing is kept [default: none]
    #[arg(long, value_name = "DIR")]
    store: Option<String>,
    /// No progress bar
    #[arg(short, long)]
    quiet: bool,
}

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
    pub(crate) fn points(&self, path: &Path, host: HostName) -> Result<Vec<Point>, Failure> {
        let document = self.document(path)?.on(host);
        document.points().map_err(Failure::usage)
    }

    /// Is this key among them?
    fn gives(&self, key: &str) -> bool {
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

fn host(text: &str) -> Result<HostName, String> {
    let known = || HostName::WORDS.iter().map(|(word, ..)| *word);
    let found = HostName::WORDS.iter().find(|(word, ..)| *word == text);
    found.map(|(_, host, _)| *host).ok_or_else(|| {
        let all: Vec<&str> = known().collect();
        format!("allowed: {}{}", all.join(", "), did_you_mean(text, known()))
    })
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match args.host {
        HostName::Model => model(args),
        HostName::Guest => in_guest(args),
    }
}

/// The same scenario in a real kernel.
fn in_guest(args: &Args) -> Result<ExitCode, Failure> {
    let others = [
        ("--budget", args.budget.is_some()),
        ("--advise", args.advise.is_some()),
    ];
    if let Some(option) = first_given(&others) {
        return Err(Failure::usage(format!(
            "{option} is for --host model; guests run programs to their end"
        )));
    }
    guest::run_file(&guest::Request {
        scenario: &args.scenario,
        sets: &args.sets,
        outputs: &args.outputs,
        repetitions: args.repetitions,
        seed: args.seed,
        store: args.store.as_deref(),
        threads: args.threads,
        plugin: None,
        quiet: args.quiet,
        verb: "study --host guest",
    })
}

fn model(args: &Args) -> Result<ExitCode, Failure> {
    let points = args.sets.points(&args.scenario, HostName::Model)?;
    let options = [
        (
            "--budget",
            args.budget.is_some(),
            &["budget_refs", "warmup_refs"][..],
        ),
        (
            "--advise",
            args.advise.is_some(),
            &["advise", "advise.within"],
        ),
        ("--seed", args.seed.is_some(), &["seed"]),
        (
            "--repetitions",
            args.repetitions.is_some(),
            &["repetitions"],
        ),
    ];
    no_axis(&points, &options)?;
    // All of them are read before any is run.
    let mut scenarios = Vec::new();
    for point in points {
        let document = with_budget(args, point.document)?;
        let mut scenario = Scenario::of(document).map_err(Failure::usage)?;
        apply(args, &mut scenario);
        scenarios.push((point.axes, scenario));
    }
    let single = matches!(&scenarios[..], [(axes, _)] if axes.is_empty());
    let mut inputs = vec![args.scenario.clone()];
    for (_, scenario) in &scenarios {
        inputs.extend(scenario.inputs());
    }
    args.outputs.check((scenarios.len(), single), &inputs)?;
    running::threads(args.threads)?;
    let mut stop: Stop = None;
    let nr_points = scenarios.len();
    let (mut studies, mut failed) = (Vec::new(), None);
    for (number, (axes, scenario)) in scenarios.iter().enumerate() {
        if stop.as_ref().is_some_and(|stop| stop.load(Relaxed)) {
            studies.push(not_run(args, scenario, axes, "interrupted"));
            continue;
        }
        if !args.quiet && nr_points > 1 && std::io::stderr().is_terminal() {
            crate::failure::say!("piebald: point {} of {nr_points}", number + 1);
        }
        match one(args, scenario, &mut stop) {
            Ok(done) => studies.push(placed(args, done, axes)),
            Err(failure) if axes.is_empty() => return Err(failure),
            // What the other points came to is not lost.
            Err(failure) => {
                let place: Vec<String> = axes.iter().map(|(k, v)| format!("{k} = {v}")).collect();
                let failure = failure.at(&place.join(", "));
                studies.push(not_run(args, scenario, axes, failure.message()));
                failed.get_or_insert(failure);
            }
        }
    }
    if failed.is_none() || studies.iter().any(|study| !study.policies.is_empty()) {
        args.outputs.show(&studies)?;
    }
    match failed {
        Some(failure) => Err(failure),
        None => Ok(running::ended(studies.iter().all(|study| study.complete))),
    }
}

/// No option gives what an axis of the file gives: its labels would be wrong.
pub(crate) fn no_axis(points: &[Point], options: &[(&str, bool, &[&str])]) -> Result<(), Failure> {
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

/// A study with the point that it is of, and the command that gives it again.
fn placed(args: &Args, study: Study, axes: &[(String, String)]) -> Study {
    let (file, sets) = (args.scenario.display(), args.sets.words());
    Study {
        axes: axes.iter().cloned().collect(),
        command: Some(format!("piebald study {file}{sets}{}", overrides(args))),
        ..study
    }
}

/// A point that has no results, and why.
fn not_run(args: &Args, scenario: &Scenario, axes: &[(String, String)], why: &str) -> Study {
    let study = Study {
        title: scenario.title.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        complete: false,
        warnings: vec![format!("not run: {why}")],
        ..Study::default()
    };
    placed(args, study, axes)
}

/// Signals are caught once all inputs are there.
type Stop = Option<std::sync::Arc<AtomicBool>>;

fn one(args: &Args, scenario: &Scenario, stop: &mut Stop) -> Result<Study, Failure> {
    let chooses = scenario.programs.iter().any(|p| p.regions.is_some());
    if chooses && !args.quiet && std::io::stderr().is_terminal() {
        // It reads whole recordings, before there is a bar.
        crate::failure::say!("piebald: choosing regions");
    }
    let interrupted = RefCell::new(None);
    let recorder = |words: &[String], refs: u64| {
        let words = made::here(words, &scenario.made)?;
        record::cached(&words, refs).map_err(|e| match e {
            NotCached::Failed(problem) => problem,
            NotCached::Interrupted(problem) => {
                *interrupted.borrow_mut() = Some(problem.clone());
                problem
            }
        })
    };
    let inputs = piebald_lab::prepare(scenario, &recorder);
    if let Some(problem) = interrupted.into_inner() {
        return Err(Failure::failed(problem));
    }
    let inputs = inputs.map_err(Failure::usage)?;
    if stop.is_none() {
        *stop = Some(running::stop_flag()?);
    }
    let bar = progress::bar(args.quiet);
    let report = |done: u64, planned: u64| {
        bar.set_length(planned);
        bar.set_position(done);
    };
    let store = store::open(args.store.as_deref(), store::Default::Nowhere)?;
    // Runs are taken repetition by repetition, after a look at every policy.
    let states = rayon::current_num_threads() + scenario.policies.len();
    let model = Model::keeping(states).with_store(store.clone());
    let hooks = Hooks {
        stop: stop.as_deref(),
        progress: Some(&report),
        model: Some(&model),
    };
    let result = study(scenario, &inputs, hooks);
    bar.finish_and_clear();
    store::tell(store.as_ref(), args.quiet);
    let result = result.map(|study| Study {
        stored: store.as_ref().map_or(0, |store| store.tally().found),
        ..study
    });
    result.map_err(|e| match e {
        piebald_lab::StudyError::Run { .. }
        | piebald_lab::StudyError::Kernel { .. }
        | piebald_lab::StudyError::SysMon { .. } => Failure::failed(e),
        piebald_lab::StudyError::Nothing | piebald_lab::StudyError::NotKept { .. } => {
            Failure::failed(e)
        }
        piebald_lab::StudyError::Advise { .. } | piebald_lab::StudyError::Colors { .. } => {
            Failure::usage(e)
        }
    })
}

/// What the command line says beside `--set`, as it is given there.
fn overrides(args: &Args) -> String {
    let mut out = String::new();
    let mut put = |option: &str, value: Option<String>| {
        if let Some(value) = value {
            out += &format!(" {option} {value}");
        }
    };
    put("--repetitions", args.repetitions.map(|n| n.to_string()));
    put("--seed", args.seed.map(|n| n.to_string()));
    put("--budget", args.budget.map(|n| n.0.to_string()));
    put("--advise", args.advise.map(|within| within.to_string()));
    out
}

/// The scenario with the budget that the command line gives, checked as if it stood there. The warm-up
/// keeps its share, unless it is given as well.
fn with_budget(args: &Args, document: Document) -> Result<Document, Failure> {
    let Some(budget) = args.budget else {
        return Ok(document);
    };
    if !(1..=MAX_REFS).contains(&budget.0) {
        let allowed = Count(MAX_REFS);
        return Err(Failure::usage(format!(
            "--budget {budget}: allowed: 1 to {allowed}"
        )));
    }
    let before = Scenario::of(document.clone()).map_err(Failure::usage)?;
    let share = before.warmup_refs as f64 / before.budget_refs as f64;
    let warmup = ((budget.0 as f64 * share) as u64).min(MAX_REFS);
    let document = document.set(&format!("budget_refs=\"{}\"", budget.0));
    let scaled = |document: Document| {
        if args.sets.gives("warmup_refs") {
            return Ok(document);
        }
        document.set(&format!("warmup_refs=\"{warmup}\""))
    };
    document.and_then(scaled).map_err(Failure::usage)
}

/// Replaces what the command line overrides.
fn apply(args: &Args, scenario: &mut Scenario) {
    if let Some(repetitions) = args.repetitions {
        scenario.repetitions = repetitions;
    }
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    if let Some(within) = args.advise {
        let asked = scenario.advise.unwrap_or(Advise::of(within));
        scenario.advise = Some(Advise {
            within: Text(within),
            ..asked
        });
    }
}
