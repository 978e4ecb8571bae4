//! `piebald keys`: the keys of scenario files.

use std::process::ExitCode;

use clap::Args as Arguments;
use piebald_experiment::{reference, tables};

use crate::failure::{Failure, print};

/// Arguments of the verb.
#[derive(Arguments)]
#[command(after_long_help = reference())]
pub struct Args {
    /// A table alone, as in `policy` or `policy.hvr`; default: all of them
    table: Option<String>,
}

/// Prints the keys of all tables, or of one.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let text = match &args.table {
        None => reference(),
        Some(name) => {
            let found = tables().into_iter().find(|table| table.name == *name);
            found.map(|table| table.text).ok_or_else(|| {
                let known: Vec<String> = tables().into_iter().map(|t| t.name).collect();
                let known: Vec<&str> = known
                    .iter()
                    .map(String::as_str)
                    .filter(|n| !n.is_empty())
                    .collect();
                let near = piebald_hw::nearest::did_you_mean(name, known.iter().copied());
                Failure::usage(format!(
                    "keys: no table \"{name}\"; allowed: {}{near}",
                    known.join(", ")
                ))
            })?
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
