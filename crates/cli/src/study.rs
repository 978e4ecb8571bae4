//! `piebald study SCENARIO.toml`

use piebald_experiment::{Advise, MAX_REFS, Text, Within};
use std::{cell::RefCell, io::IsTerminal, path::PathBuf, process::ExitCode};

use piebald_lab::{Hooks, scenario::Scenario, study};
use piebald_sim::Model;
use piebald_units::Count;

use crate::{
    failure::Failure,
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
    #[command(flatten)]
    outputs: Outputs,
    /// Runs with different draws, instead of the scenario's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
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
    #[arg(long)]
    seed: Option<u64>,
    /// Runs at a time; results do not depend on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Folder where outcomes of runs are kept: what is there of the same code and inputs is not run
    /// again. cache = in the cache folder, none = nothing is kept [default: none]
    #[arg(long, value_name = "DIR")]
    store: Option<String>,
    /// No progress bar
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut scenario = Scenario::read(&args.scenario).map_err(Failure::usage)?;
    apply(args, &mut scenario)?;
    args.outputs.check()?;
    running::threads(args.threads)?;
    let chooses = scenario.programs.iter().any(|p| p.regions.is_some());
    if chooses && !args.quiet && std::io::stderr().is_terminal() {
        // It reads whole recordings, before there is a bar.
        eprintln!("piebald: choosing regions");
    }
    let interrupted = RefCell::new(None);
    let recorder = |words: &[String], refs: u64| {
        record::cached(words, refs).map_err(|e| match e {
            NotCached::Failed(problem) => problem,
            NotCached::Interrupted(problem) => {
                *interrupted.borrow_mut() = Some(problem.clone());
                problem
            }
        })
    };
    let inputs = piebald_lab::prepare(&scenario, &recorder);
    if let Some(problem) = interrupted.into_inner() {
        return Err(Failure::failed(problem));
    }
    let inputs = inputs.map_err(Failure::usage)?;
    let stop = running::stop_flag()?;
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
        stop: Some(&stop),
        progress: Some(&report),
        model: Some(&model),
    };
    let result = study(&scenario, &inputs, hooks);
    bar.finish_and_clear();
    store::tell(store.as_ref(), args.quiet);
    let mut study = result.map_err(|e| match e {
        piebald_lab::StudyError::Run { .. } | piebald_lab::StudyError::Kernel { .. } => {
            Failure::failed(e)
        }
        piebald_lab::StudyError::Nothing => Failure::failed(e),
        piebald_lab::StudyError::Advise { .. } | piebald_lab::StudyError::Colors { .. } => {
            Failure::usage(e)
        }
    })?;
    study.command = Some(format!("piebald study {}", args.scenario.display()));
    args.outputs.show(&study)?;
    Ok(running::ended(study.complete))
}

/// Replaces what the command line overrides.
fn apply(args: &Args, scenario: &mut Scenario) -> Result<(), Failure> {
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
    if let Some(budget) = args.budget {
        if !(1..=MAX_REFS).contains(&budget.0) {
            let allowed = Count(MAX_REFS);
            return Err(Failure::usage(format!(
                "--budget {budget}: allowed: 1 to {allowed}"
            )));
        }
        // The warm-up keeps its share.
        let share = scenario.warmup_refs as f64 / scenario.budget_refs as f64;
        scenario.budget_refs = budget.0;
        scenario.warmup_refs = ((budget.0 as f64 * share) as u64).min(MAX_REFS);
    }
    Ok(())
}
