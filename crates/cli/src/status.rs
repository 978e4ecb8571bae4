//! `piebald status`: what the module in the kernel does.

use std::{fmt::Write as _, process::ExitCode};

use piebald_linux::{Module, ModuleError, Status};
use piebald_policy::contract::Mode;
use piebald_units::{Bytes, PAGE_SIZE};
use serde_json::{Map, Value, json};

use crate::{failure::Failure, json::Json, live};

/// Arguments of `piebald status`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let root = live::root();
    let status = match Module::attach(&root) {
        Ok(module) => module.status().map_err(live::failure)?,
        Err(ModuleError::NotLoaded { .. }) if args.json.path().is_some() => {
            let absent = json!({ "schema": 2, "loaded": false });
            args.json.show("", &absent)?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(live::failure(error)),
    };
    args.json.show(&as_text(&status), &as_json(&status))?;
    Ok(ExitCode::SUCCESS)
}

const fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Hard => "hard",
        Mode::Hint => "hint",
    }
}

pub(crate) fn as_json(status: &Status) -> Value {
    let sets: Vec<Value> = status
        .sets
        .iter()
        .map(|set| {
            json!({
                "name": set.name,
                "colors": set.colors.to_string(),
                "mode": word(set.mode),
                "groups": set.groups,
            })
        })
        .collect();
    let counters: Map<String, Value> = status
        .counters
        .0
        .iter()
        .map(|(name, number)| (name.clone(), json!(number)))
        .collect();
    json!({
        "schema": 2,
        "loaded": true,
        "on": status.on,
        "map": status.map.as_ref().map(ToString::to_string),
        "colors": status.colors,
        "sets": sets,
        "others": status.others.to_string(),
        "free_frames": status.free,
        "pool_max_frames": status.pool_max,
        "counters": counters,
    })
}

fn as_text(status: &Status) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let mut line = |name: &str, what: String| {
        let _ = writeln!(out, "{name:<10}{what}");
    };
    line("coloring", if status.on { "on" } else { "off" }.to_owned());
    line(
        "colors",
        match &status.map {
            Some(map) => format!("{}, from address bits {map}", status.colors),
            None => "none: no map is set".to_owned(),
        },
    );
    let free: u64 = status.free.iter().sum();
    let ends = status.free.iter().min().zip(status.free.iter().max());
    let by_color = ends.map_or(String::new(), |(least, most)| {
        format!("; {least} to {most} of a color")
    });
    line(
        "pool",
        format!(
            "{free} frames free ({}) of at most {}{by_color}",
            Bytes(free.saturating_mul(PAGE_SIZE)),
            status.pool_max
        ),
    );
    for set in &status.sets {
        let groups = if set.groups.is_empty() {
            "no group".to_owned()
        } else {
            set.groups.join(", ")
        };
        let what = format!(
            "{} {} of {groups} ({})",
            set.colors,
            word(set.mode),
            set.name
        );
        line("set", what);
    }
    if status.colors > 0 {
        line("others", status.others.to_string());
    }
    out.push_str("counters (only those that are not 0)\n");
    for (name, number) in status.counters.0.iter().filter(|(_, number)| *number > 0) {
        let _ = writeln!(out, "  {name:<22}{number}");
    }
    out
}
