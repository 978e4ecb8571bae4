//! `piebald study SCENARIO.toml`

use piebald_experiment::{Advise, Document, HostName, MAX_REFS, Text, Within, Words};
use std::{path::PathBuf, process::ExitCode};

use piebald_hw::nearest::did_you_mean;
use piebald_lab::{host::Hosted, scenario::Scenario};
use piebald_units::Count;

use crate::{
    command_line::first_given,
    failure::Failure,
    guest, numbers,
    outputs::Outputs,
    points::{Asked, Sets},
    running,
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
    let overrides = overrides(args);
    let asked = Asked {
        verb: "study --host guest",
        overrides: &overrides,
        guests: args.threads,
        ..asked(args)
    };
    guest::run_file(&asked, args.repetitions, args.seed)
}

/// What all hosts are asked.
fn asked(args: &Args) -> Asked<'_> {
    Asked {
        scenario: &args.scenario,
        sets: &args.sets,
        outputs: &args.outputs,
        store: args.store.as_deref(),
        quiet: args.quiet,
        guests: None,
        plugin: None,
        verb: "study",
        overrides: "",
    }
}

fn model(args: &Args) -> Result<ExitCode, Failure> {
    let overrides = overrides(args);
    let asked = Asked {
        overrides: &overrides,
        ..asked(args)
    };
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
    let read = |document| {
        let document = with_budget(args, document)?;
        let mut scenario = Scenario::of(document).map_err(Failure::usage)?;
        apply(args, &mut scenario);
        Ok(Box::new(scenario) as Box<dyn Hosted>)
    };
    asked.run(HostName::Model, &options, read, || {
        running::threads(args.threads)
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
