//! `piebald machine list|show|check`

use std::{fmt::Write as _, path::Path, process::ExitCode};

use clap::Subcommand;
use piebald_hw::{Machine, Options, presets, spec::MachineSpec};
use piebald_lab::machine_lines;

use crate::failure::{Failure, print};

/// Arguments of `piebald machine`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the machines that come with Piebald
    List,
    /// Show a machine: in words, or the file with the source of every number
    Show {
        /// Name of a preset, or a machine file
        machine: String,
        /// The file itself
        #[arg(long)]
        file: bool,
    },
    /// Check a machine file: syntax, geometry, timing
    Check {
        /// Name of a preset, or a machine file
        machine: String,
    },
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.what {
        What::List => list(),
        What::Show { machine, file } => show(machine, *file),
        What::Check { machine } => check(machine),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<(), Failure> {
    let mut out = String::new();
    for name in presets::names() {
        let spec = presets::load(name).map_err(Failure::failed)?;
        let _ = writeln!(out, "{name:<12} {}", spec.title);
    }
    print(&out)
}

/// Text and name of a preset or a file.
fn text(machine: &str) -> Result<(String, String), Failure> {
    if let Some(text) = presets::get(machine) {
        return Ok((text.to_owned(), format!("preset {machine}")));
    }
    let path = Path::new(machine);
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((text, machine.to_owned())),
        Err(e) => {
            let names: Vec<&str> = presets::names().collect();
            let names = names.join(", ");
            Err(Failure::usage(format!(
                "{machine}: {e}; allowed: a machine file, or one of {names}"
            )))
        }
    }
}

/// A machine that can be built.
fn checked(machine: &str) -> Result<MachineSpec, Failure> {
    let (text, name) = text(machine)?;
    let spec = presets::parse(&text, &name).map_err(Failure::usage)?;
    Machine::new(&spec, &Options::default()).map_err(|e| {
        let line = presets::line_of(&text, &e.field);
        let line = line.map_or(String::new(), |l| format!(":{l}"));
        Failure::usage(format!("{name}{line}: {e}"))
    })?;
    Ok(spec)
}

fn show(machine: &str, file: bool) -> Result<(), Failure> {
    if file {
        return print(&text(machine)?.0);
    }
    let spec = checked(machine)?;
    let mut out = format!("{}: {}\n", spec.name, spec.title);
    for line in machine_lines(&spec) {
        let _ = writeln!(out, "  {line}");
    }
    let on = spec.prefetch;
    let flags = [
        ("next line", on.dcu_next_line),
        ("stride", on.dcu_ip_stride),
        ("streamer", on.l2_streamer),
        ("adjacent line", on.l2_adjacent_line),
    ];
    let names: Vec<&str> = flags.iter().filter(|f| f.1).map(|f| f.0).collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    let _ = writeln!(out, "  prefetchers: {names}");
    let _ = writeln!(out, "sources (marks stand beside each number, see --file):");
    for (mark, source) in &spec.sources {
        let _ = writeln!(out, "  [{mark}] {source}");
    }
    print(&out)
}

fn check(machine: &str) -> Result<(), Failure> {
    let spec = checked(machine)?;
    print(&format!("{}: ok\n", spec.name))
}
