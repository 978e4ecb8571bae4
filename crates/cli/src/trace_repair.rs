//! `piebald trace repair IN OUT`: a whole recording of what is left of a damaged one.

use std::path::{Path, PathBuf};

use piebald_trace::recording::{Repaired, WriteError, repair};
use serde_json::{Value, json};

use crate::{failure::Failure, json::Json, outputs::apart, recordings::is_recording};

/// Arguments of `piebald trace repair`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A recording that was not finished, was cut, or is damaged; it is not changed
    input: PathBuf,
    /// Recording to write
    output: PathBuf,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.input.display();
    if !is_recording(&args.input)? {
        return Err(Failure::usage(format!(
            "{name}: no recording; allowed: a recording, or what is left of one"
        )));
    }
    apart(&[("OUTPUT", Some(&args.output)), ("--json", args.json.path())])?;
    let done = repair(&args.input, &args.output).map_err(|e| match e {
        WriteError::SameFile { .. } | WriteError::Taken { .. } | WriteError::Read(_) => {
            Failure::usage(e)
        }
        _ => Failure::failed(e),
    })?;
    let value = as_json(args, &done);
    args.json.show(&as_text(&args.output, &done), &value)
}

fn as_text(output: &Path, done: &Repaired) -> String {
    let counts = &done.counts;
    let mut out = format!(
        "{}: {} references and {} instructions of {} threads in {} records\n",
        output.display(),
        counts.references,
        counts.instructions,
        counts.threads,
        done.records
    );
    for line in &done.lost {
        out += &format!("  lost: {line}\n");
    }
    if done.lost.is_empty() {
        out += "  nothing was lost\n";
    }
    out
}

fn as_json(args: &Args, done: &Repaired) -> Value {
    json!({
        "schema": 1,
        "input": args.input.display().to_string(),
        "output": args.output.display().to_string(),
        "records": done.records,
        "counts": done.counts,
        "lost_bytes": done.lost_bytes,
        "lost": done.lost,
    })
}
