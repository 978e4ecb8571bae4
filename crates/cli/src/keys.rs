//! `piebald keys`: the keys of scenario files.

use std::process::ExitCode;

use clap::Args as Arguments;
use piebald_experiment::{reference, tables};

use serde_json::json;

use crate::{failure::Failure, json::Json};

/// Arguments of the verb.
#[derive(Arguments)]
pub struct Args {
    /// A table alone, as in `policy` or `policy.hvr`; default: all of them
    table: Option<String>,
    #[command(flatten)]
    json: Json,
}

/// Prints the keys of all tables, or of one.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let all = tables();
    let chosen: Vec<_> = match &args.table {
        None => all.iter().collect(),
        Some(name) => {
            let found = all.iter().find(|table| table.name == *name);
            vec![found.ok_or_else(|| {
                let known = all.iter().map(|table| table.name.as_str());
                let known: Vec<&str> = known.filter(|name| !name.is_empty()).collect();
                let near = piebald_hw::nearest::did_you_mean(name, known.iter().copied());
                Failure::usage(format!(
                    "keys: no table \"{name}\"; allowed: {}{near}",
                    known.join(", ")
                ))
            })?]
        }
    };
    let text = match &args.table {
        None => reference(),
        Some(_) => chosen.iter().map(|table| table.text.as_str()).collect(),
    };
    let each = chosen.iter();
    let each = each.map(|table| json!({ "table": table.name, "text": table.text }));
    let value = json!({ "schema": 1, "tables": each.collect::<Vec<_>>() });
    args.json.show(&text, &value)?;
    Ok(ExitCode::SUCCESS)
}
