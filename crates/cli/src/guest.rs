//! `piebald guest`: a stock kernel under QEMU with the machine model attached.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use piebald_experiment::{HostName, Whole};
use piebald_guest::{BootError, Finding, Hooks, Scenario, Tools, boots, check, run as run_guests};
use piebald_lab::machine_lines;
use piebald_linux::available_bytes;
use piebald_report::Study;
use serde_json::json;

use crate::{
    failure::Failure,
    json::Json,
    numbers,
    outputs::Outputs,
    points::{Asked, Hosted, Sets, With},
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

/// What guests are asked beside what all hosts are.
pub(crate) struct Boots<'a> {
    pub(crate) repetitions: Option<u32>,
    pub(crate) seed: Option<u64>,
    /// Guests at a time.
    pub(crate) threads: Option<u16>,
    pub(crate) plugin: Option<&'a Path>,
}

fn study(args: &RunArgs) -> Result<ExitCode, Failure> {
    let repetitions = args.repetitions;
    let overrides = repetitions.map_or_else(String::new, |n| format!(" --repetitions {n}"));
    let asked = Asked {
        scenario: &args.scenario,
        sets: &args.sets,
        outputs: &args.outputs,
        store: args.store.as_deref(),
        quiet: args.quiet,
        verb: "guest run",
        overrides: &overrides,
    };
    let boots = Boots {
        repetitions,
        seed: None,
        threads: args.threads,
        plugin: args.plugin.as_deref(),
    };
    run_file(&asked, &boots)
}

/// Runs a scenario in guests, at all points of its axes.
pub(crate) fn run_file(asked: &Asked<'_>, with: &Boots<'_>) -> Result<ExitCode, Failure> {
    let options = [
        ("--seed", with.seed.is_some(), &["seed"][..]),
        (
            "--repetitions",
            with.repetitions.is_some(),
            &["repetitions"],
        ),
    ];
    let read = |document| {
        let mut scenario = Scenario::of(document).map_err(Failure::usage)?;
        if let Some(repetitions) = with.repetitions {
            let range = 1..=MAX_REPETITIONS;
            if !range.contains(&repetitions) {
                let allowed = format!("allowed: 1 to {MAX_REPETITIONS} in a guest");
                return Err(Failure::usage(format!(
                    "--repetitions {repetitions}: {allowed}"
                )));
            }
            scenario.experiment.repetitions = Whole::new(repetitions.into());
        }
        if let Some(seed) = with.seed {
            let most = i64::MAX as u64;
            if seed > most {
                return Err(Failure::usage(format!(
                    "--seed {seed}: allowed: 0 to {most}"
                )));
            }
            scenario.experiment.seed = Whole::new(seed);
        }
        Ok(Guests { scenario, with })
    };
    asked.run(HostName::Guest, &options, read, || Ok(()))
}

/// A scenario of guests, and how they are booted.
struct Guests<'a> {
    scenario: Scenario,
    with: &'a Boots<'a>,
}

impl Hosted for Guests<'_> {
    fn title(&self) -> String {
        self.scenario.title()
    }

    fn inputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn run(&self, with: &mut With<'_>) -> Result<Study, Failure> {
        let scenario = &self.scenario;
        let stop = with.stop()?;
        let tools = Tools::prepare(scenario, self.with.plugin).map_err(failure)?;
        let all = boots(scenario);
        let progress = |number: u32, what: &str| {
            if !with.quiet {
                crate::failure::say!("piebald: guest {} of {all}: {what}", number + 1);
            }
        };
        let hooks = Hooks {
            stop: Some(&stop),
            progress: Some(&progress),
            at_once: self.with.threads.unwrap_or_else(|| at_once(scenario)),
            store: with.store.map(|store| &**store),
        };
        let mut study = run_guests(scenario, &tools, &hooks).map_err(failure)?;
        study.machine.lines = machine_lines(&scenario.machine);
        Ok(study)
    }
}

/// Guests that run at a time unless the user says how many: each keeps one core busy, and all of them may
/// come to hold as much memory as they have.
fn at_once(scenario: &Scenario) -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let fit = available_bytes(&meminfo).map_or(1, |bytes| bytes / 2 / scenario.memory().max(1));
    cores.min(fit as usize).clamp(1, 1024) as u16
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
