//! `piebald schema`: the JSON Schemas of scenario files and of results.

use std::process::ExitCode;

use clap::Args as Arguments;
use piebald_experiment::file_schema;
use piebald_hw::nearest::did_you_mean;
use piebald_report::{DOCUMENTS, document_schema};
use serde_json::Value;

use crate::failure::{Failure, print};

/// What has a schema beside the documents: the file that an experiment is read from.
const SCENARIO: &str = "scenario";

/// Arguments of the verb.
#[derive(Arguments)]
pub struct Args {
    /// What to print the schema of; without it, what has one is listed
    name: Option<String>,
}

/// Prints a schema, or the names of those that there are.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let Some(name) = &args.name else {
        print(&list())?;
        return Ok(ExitCode::SUCCESS);
    };
    let schema = schema(name).ok_or_else(|| {
        let names: Vec<&str> = names().collect();
        let near = did_you_mean(name, names.iter().copied());
        Failure::usage(format!(
            "schema: no document \"{name}\"; allowed: {}{near}",
            names.join(", ")
        ))
    })?;
    let text = serde_json::to_string_pretty(&schema).map_err(Failure::failed)?;
    print(&(text + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once(SCENARIO).chain(DOCUMENTS)
}

fn schema(name: &str) -> Option<Value> {
    match name {
        SCENARIO => Some(file_schema()),
        _ => document_schema(name),
    }
}

fn list() -> String {
    let about = |name: &str| match name {
        SCENARIO => "files that study, guest run and the tables of piebald keys speak of (TOML)",
        "study" => "what study and guest run write with --json",
        "sweep" => "the same of a scenario with axes: a list of studies",
        "replay" => "what replay writes with --json",
        _ => "what reproduce writes with --json",
    };
    let lines = names().map(|name| format!("{name:<13} {}\n", about(name)));
    lines.collect()
}
