//! What tests of scenarios share.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};

use piebald_lab::{Hooks, Prepared, StudyError, prepare, scenario::Scenario, study};
use piebald_report::Study;

/// A scenario, or the message that refuses it.
pub fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, Path::new("folder/s.toml")).map_err(|e| e.to_string())
}

/// The inputs of a scenario that records nothing.
pub fn inputs(scenario: &Scenario) -> Vec<Prepared> {
    let recorder =
        |words: &[String], _: u64| -> Result<PathBuf, String> { Err(format!("{words:?}")) };
    prepare(scenario, &recorder).expect("inputs")
}

/// Runs a scenario that records nothing.
pub fn run_scenario(scenario: &Scenario) -> Result<Study, StudyError> {
    study(scenario, &inputs(scenario), Hooks::default())
}

/// Reads and runs a scenario.
pub fn run(text: &str) -> Result<Study, String> {
    run_scenario(&parse(text)?).map_err(|e| e.to_string())
}

/// Each `old` of `text` replaced by `new` is refused at the line, with a message that has the
/// part.
pub fn refused(text: &str, cases: &[(&str, &str, u32, &str)]) {
    for (old, new, line, part) in cases {
        assert!(text.contains(old), "{old}");
        let error = parse(&text.replacen(old, new, 1)).expect_err(new);
        let place = format!("folder/s.toml:{line}: ");
        assert!(error.starts_with(&place), "{new}: {error}");
        assert!(error.contains(part), "{new}: {error}");
    }
}
