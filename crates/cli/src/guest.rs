//! `piebald guest`: a stock kernel under QEMU with the machine model attached.

use std::{path::PathBuf, process::ExitCode};

use piebald_experiment::{HostName, Whole};
use piebald_guest::{Finding, Scenario, check};
use piebald_lab::host::Hosted;
use serde_json::json;

use crate::{
    failure::Failure,
    json::Json,
    numbers,
    outputs::Outputs,
    points::{Asked, Sets},
};

/// Most boots of a policy and phase.
const MAX_REPETITIONS: u32 = 100;

/// Arguments of `piebald guest`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Boot guests, run programs in them, and compare policies
    Run(RunArgs),
    /// Say what this computer lacks for that
    Check {
        /// The plugin, if it is not near this program
        #[arg(long, value_name = "FILE")]
        plugin: Option<PathBuf>,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(clap::Args)]
struct RunArgs {
    /// Scenario file (TOML)
    scenario: PathBuf,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    outputs: Outputs,
    /// Boots of each policy and phase, instead of the scenario's number
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u32>(1..=100))]
    repetitions: Option<u32>,
    /// Folder where counts of boots are kept: what is there of the same guest is not booted
    /// again. cache = in the cache folder, none = nothing is kept [default: none]
    #[arg(long, value_name = "DIR")]
    store: Option<String>,
    /// Guests at a time [default: one for each core, as far as half of the free memory goes]
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u16>(1..=1024))]
    threads: Option<u16>,
    /// The plugin, if it is not near this program
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// Say nothing while guests run
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.verb {
        Verb::Run(args) => study(args),
        Verb::Check { plugin, json } => report(&check(plugin.as_deref()), json),
    }
}

fn study(args: &RunArgs) -> Result<ExitCode, Failure> {
    let overrides = (args.repetitions).map_or_else(String::new, |n| format!(" --repetitions {n}"));
    let asked = Asked {
        scenario: &args.scenario,
        sets: &args.sets,
        outputs: &args.outputs,
        store: args.store.as_deref(),
        quiet: args.quiet,
        guests: args.threads,
        plugin: args.plugin.as_deref(),
        verb: "guest run",
        overrides: &overrides,
    };
    run_file(&asked, args.repetitions, None)
}

/// Runs a scenario in guests, at all points of its axes, with these instead of its own.
pub(crate) fn run_file(
    asked: &Asked<'_>,
    repetitions: Option<u32>,
    seed: Option<u64>,
) -> Result<ExitCode, Failure> {
    let options = [
        ("--seed", seed.is_some(), &["seed"][..]),
        ("--repetitions", repetitions.is_some(), &["repetitions"]),
    ];
    let read = |document| {
        let mut scenario = Scenario::of(document).map_err(Failure::usage)?;
        if let Some(repetitions) = repetitions {
            let range = 1..=MAX_REPETITIONS;
            if !range.contains(&repetitions) {
                let allowed = format!("allowed: 1 to {MAX_REPETITIONS} in a guest");
                return Err(Failure::usage(format!(
                    "--repetitions {repetitions}: {allowed}"
                )));
            }
            scenario.experiment.repetitions = Whole::new(repetitions.into());
        }
        if let Some(seed) = seed {
            let most = i64::MAX as u64;
            if seed > most {
                return Err(Failure::usage(format!(
                    "--seed {seed}: allowed: 0 to {most}"
                )));
            }
            scenario.experiment.seed = Whole::new(seed);
        }
        Ok(Box::new(scenario) as Box<dyn Hosted>)
    };
    asked.run(HostName::Guest, &options, read, || Ok(()))
}

fn report(findings: &[Finding], json: &Json) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    for finding in findings {
        let line = match &finding.found {
            Some(found) => format!("ok       {}: {found}\n", finding.what),
            None => format!("missing  {}: {}\n", finding.what, finding.remedy),
        };
        text += &line;
    }
    let each = findings.iter().map(|finding| {
        let remedy = finding.found.is_none().then_some(&finding.remedy);
        json!({ "what": finding.what, "found": finding.found, "remedy": remedy })
    });
    let value = json!({ "schema": 1, "findings": each.collect::<Vec<_>>() });
    json.show(&text, &value)?;
    Ok(match findings.iter().all(|f| f.found.is_some()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
