//! Turns a scenario's programs into inputs that can be replayed.

use std::{path::PathBuf, sync::Arc};

use piebald_sim::rooms::{
    trace::recording::{Recording, ReplayOptions},
    workload::{Builtin, Library, Program, Recorded},
};

use crate::scenario::{Input, ProgramEntry, Scenario, ScenarioError};

/// Records a command line and says where the recording is. The argument after
/// the words is the number of references that the study needs.
pub type Recorder<'a> = dyn Fn(&[String], u64) -> Result<PathBuf, String> + 'a;

/// A program that is ready to run.
#[derive(Clone)]
pub struct Prepared {
    /// Its references.
    pub program: Arc<dyn Program>,
    /// References before the measured part.
    pub warmup: u64,
    /// References of the measured part.
    pub budget: u64,
    /// It marks the end of its set-up.
    pub marks_ready: bool,
    /// References that a start may be drawn from.
    pub spread: u64,
    /// Where the references come from, in words.
    pub input: String,
    /// What a reader should know: a short or an incomplete recording.
    pub warnings: Vec<String>,
}

/// Prepares all programs of a scenario. Built-in programs are executed here, and
/// command lines recorded, once each.
///
/// # Errors
/// The program's table in the scenario, and what is wrong with its input.
pub fn prepare(
    scenario: &Scenario,
    recorder: &Recorder<'_>,
) -> Result<Vec<Prepared>, ScenarioError> {
    let library = Library::new();
    scenario
        .programs
        .iter()
        .map(|entry| {
            prepare_one(scenario, entry, &library, recorder).map_err(|problem| ScenarioError {
                path: scenario.path.clone(),
                line: Some(entry.line),
                problem: format!("program \"{}\": {problem}", entry.name),
            })
        })
        .collect()
}

fn prepare_one(
    scenario: &Scenario,
    entry: &ProgramEntry,
    library: &Library,
    recorder: &Recorder<'_>,
) -> Result<Prepared, String> {
    let options = ReplayOptions {
        fetches: scenario.features.fetch,
        dependences: scenario.features.window,
        ..ReplayOptions::default()
    };
    let wanted = scenario.warmup_refs + scenario.budget_refs;
    let recording = match &entry.input {
        Input::Recording(path) => Recording::open(path).map_err(|e| e.to_string())?,
        Input::Command(words) => {
            let path = recorder(words, wanted + wanted / 4)?;
            Recording::open(&path).map_err(|e| e.to_string())?
        }
        Input::Builtin(text) => {
            let builtin = Builtin::parse(text).map_err(|e| e.to_string())?;
            library
                .recording(&builtin, scenario.seed, wanted + wanted / 4)
                .map_err(|e| e.to_string())?
        }
    };
    let is_builtin = matches!(entry.input, Input::Builtin(_));
    let header = recording.header();
    let refs = header.counts.references;
    let mut warnings = Vec::new();
    if !header.complete {
        warnings.push(format!("{}: the recording is incomplete", entry.name));
    }
    let (warmup, budget) = parts(scenario, refs, is_builtin);
    if budget < scenario.budget_refs {
        warnings.push(format!(
            "{}: the recording holds {refs} references; {warmup} warm up and {budget} are measured",
            entry.name
        ));
    }
    if budget == 0 {
        return Err(format!(
            "the recording holds {refs} references; allowed: 100 or more"
        ));
    }
    let program = Recorded::new(&entry.name, recording, options).map_err(|e| e.to_string())?;
    Ok(Prepared {
        spread: if program.threads() > 1 || is_builtin {
            0
        } else {
            refs / 2
        },
        program: Arc::new(program),
        marks_ready: is_builtin,
        warmup,
        budget,
        input: entry.input.to_string(),
        warnings,
    })
}

/// Warm-up and measured references of a recording that may be too short: then a
/// fifth of it warms up.
fn parts(scenario: &Scenario, refs: u64, is_builtin: bool) -> (u64, u64) {
    let wanted = scenario.warmup_refs + scenario.budget_refs;
    // A built-in's recording holds its set-up besides what was asked for.
    if is_builtin || refs >= wanted {
        return (scenario.warmup_refs, scenario.budget_refs);
    }
    // The last references may come after the last of a batch: keep clear of them.
    let usable = refs - refs / 100;
    let warmup = (usable / 5).min(scenario.warmup_refs);
    (warmup, (usable - warmup).min(scenario.budget_refs))
}
