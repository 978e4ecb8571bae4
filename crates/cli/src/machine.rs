//! `piebald machine list|disks|show|check|derive`

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use piebald_hw::{Machine, Options, disk, presets, spec::MachineSpec};
use piebald_lab::machine_lines;
use piebald_report::write_atomically;

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
    /// List the disks that come with Piebald, or show the file of one of them, with the
    /// source of every number
    Disks {
        /// Name of a disk
        disk: Option<String>,
    },
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
    /// Write a machine file for this computer: what Linux tells, and generic values,
    /// marked as such, for the rest
    Derive {
        /// File to write, instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// A copy of another computer's /sys/devices/system/cpu
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
    },
}

/// Where Linux describes processors and caches.
const SYSFS: &str = "/sys/devices/system/cpu";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.what {
        What::List => list(),
        What::Disks { disk } => disks(disk.as_deref()),
        What::Show { machine, file } => show(machine, *file),
        What::Check { machine } => check(machine),
        What::Derive { output, from } => derive(output.as_deref(), from.as_deref()),
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

fn disks(name: Option<&str>) -> Result<(), Failure> {
    if let Some(name) = name {
        let names: Vec<&str> = disk::presets().collect();
        let text = disk::text(name).ok_or_else(|| {
            let names = names.join(", ");
            Failure::usage(format!("disk {name} is not known; allowed: {names}"))
        })?;
        return print(text);
    }
    let mut out = String::new();
    for name in disk::presets() {
        let spec = disk::by_name(name).map_err(Failure::failed)?;
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

fn derive(output: Option<&Path>, from: Option<&Path>) -> Result<(), Failure> {
    if from.is_none() && !cfg!(target_os = "linux") {
        return Err(Failure::failed(format!(
            "machine derive reads {SYSFS}, which only Linux has; allowed here: --from DIR with a \
             copy of a Linux computer's"
        )));
    }
    let root = from.unwrap_or(Path::new(SYSFS));
    if !root.join("online").is_file() {
        let problem = format!(
            "{}: no such file; allowed: {SYSFS} or a copy of it",
            root.join("online").display()
        );
        return Err(match from {
            Some(_) => Failure::usage(format!("--from {problem}")),
            None => Failure::failed(problem),
        });
    }
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let text = presets::derive::from_sysfs(&read).map_err(|e| {
        let hidden = match e.path.contains("/cache/") {
            true => " (virtual machines often hide their caches: derive on the host)",
            false => "",
        };
        Failure::failed(format!("{}/{e}{hidden}", root.display()))
    })?;
    // What Linux says may still be more than the model has: 65 cores, caches of four levels.
    let refuse = |problem: String| {
        let root = root.display();
        Failure::failed(format!(
            "{root}: no machine that can be modelled: {problem}"
        ))
    };
    let spec = presets::parse(&text, "derived").map_err(|e| refuse(e.to_string()))?;
    Machine::new(&spec, &Options::default()).map_err(|e| refuse(e.to_string()))?;
    let Some(output) = output else {
        return print(&text);
    };
    write_atomically(output, text.as_bytes()).map_err(Failure::failed)?;
    let values = text.lines().filter(|line| line.contains(" = "));
    let (mut told, mut generic) = (0, 0);
    for line in values {
        told += usize::from(line.contains("[SYS]"));
        generic += usize::from(line.contains("[GEN]"));
    }
    print(&format!(
        "{}: {told} values read from {}, {generic} generic ones (marked GEN)\n",
        output.display(),
        root.display()
    ))
}
