//! `piebald guest`: a stock kernel under QEMU with the machine model attached.

use std::{path::PathBuf, process::ExitCode};

use piebald_experiment::Whole;
use piebald_guest::{BootError, Finding, Hooks, Scenario, Tools, boots, check, run as run_guests};
use piebald_lab::machine_lines;
use serde_json::json;

use crate::{failure::Failure, json::Json, outputs::Outputs, running};

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
    outputs: Outputs,
    /// Boots of each policy and phase, instead of the scenario's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: Option<u32>,
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
    let mut scenario = Scenario::read(&args.scenario).map_err(Failure::usage)?;
    if let Some(repetitions) = args.repetitions {
        scenario.experiment.repetitions = Whole::new(repetitions.into());
    }
    let stop = running::stop_flag()?;
    let tools = Tools::prepare(&scenario, args.plugin.as_deref()).map_err(failure)?;
    let all = boots(&scenario);
    let progress = |number: u32, what: &str| {
        if !args.quiet {
            eprintln!("piebald: guest {} of {all}: {what}", number + 1);
        }
    };
    let hooks = Hooks {
        stop: Some(&stop),
        progress: Some(&progress),
    };
    let mut study = run_guests(&scenario, &tools, &hooks).map_err(failure)?;
    study.machine.lines = machine_lines(&scenario.machine);
    study.command = Some(format!("piebald guest run {}", args.scenario.display()));
    args.outputs.show(&study)?;
    Ok(running::ended(study.complete))
}

fn failure(error: BootError) -> Failure {
    match error {
        BootError::NoProgram(_) | BootError::NoPlugin(_) => Failure::usage(error),
        _ => Failure::failed(error),
    }
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
