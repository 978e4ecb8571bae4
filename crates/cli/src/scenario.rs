//! `piebald scenario`: scenario files themselves.

use std::{path::PathBuf, process::ExitCode};

use piebald_experiment::Document;
use piebald_lab::scenario;
use piebald_report::write_atomically;

use serde_json::{Value, json};

use crate::{
    failure::{Failure, print},
    json::Json,
};

/// Arguments of `piebald scenario`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Rewrite files of schema 1 as files of schema 2, which say the same; comments stay
    Upgrade {
        /// Scenario files (TOML); - reads standard input and prints what it becomes
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Write nothing; fail if a file is of schema 1
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        json: Json,
    },
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let Verb::Upgrade { files, check, json } = &args.verb;
    if json.on_stdout() && !check && files.iter().any(|f| Document::is_stdin(f)) {
        return Err(Failure::usage(
            "-: what it becomes goes to standard output, and so does --json; allowed: --json=FILE",
        ));
    }
    // All of them are rewritten in memory before any is written.
    let mut changed = Vec::new();
    let mut first = Vec::new();
    for file in files {
        let document = scenario::document(file).map_err(Failure::usage)?;
        let upgraded = document.upgraded().map_err(Failure::usage)?;
        first.push(upgraded.is_some());
        match upgraded {
            Some(text) => changed.push((file, text)),
            None if Document::is_stdin(file) && !check => print(&document.text)?,
            None => {}
        }
    }
    let mut told = String::new();
    for (file, text) in &changed {
        let name = file.display();
        if *check {
            told +=
                &format!("{name}: is of schema 1; `piebald scenario upgrade {name}` rewrites it\n");
        } else if Document::is_stdin(file) {
            print(text)?;
        } else {
            write_atomically(file, text.as_bytes()).map_err(Failure::failed)?;
            told += &format!("{name}: is of schema 2 now\n");
        }
    }
    let of = |(file, first): (&PathBuf, &bool)| {
        json!({
            "file": file.display().to_string(),
            "was_schema": if *first { 1 } else { 2 },
            "rewritten": *first && !check,
        })
    };
    let files: Vec<Value> = files.iter().zip(&first).map(of).collect();
    json.show(&told, &json!({ "schema": 1, "files": files }))?;
    Ok(if *check && !changed.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
