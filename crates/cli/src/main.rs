//! The `piebald` command: one verb per file, arguments and printing only.
//!
//! Exit codes: 0 done, 1 failed, 2 the command line or an input file is not what
//! it has to be, 128 and the number of the signal that stopped it (130 after Ctrl-C). `run` has
//! those of the program that it starts.

mod columns;
mod command_line;
mod compare;
mod export;
mod failure;
mod guest;
mod hardware;
mod json;
mod keys;
mod live;
mod load;
mod machine;
mod made;
mod numbers;
mod outputs;
mod plugin;
mod points;
mod probe;
mod programs;
mod progress;
mod record;
mod recordings;
mod regions;
mod replay;
mod replay_policies;
mod reproduce;
mod rows_status;
mod run;
mod running;
mod scenario;
mod schema;
mod shell;
mod status;
mod store;
mod study;
mod terminal;
mod trace;
mod trace_block;
mod trace_formats;
mod trace_head;
mod trace_info;
mod trace_repair;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};

use failure::Failure;

/// Memory management that knows the machine: record real programs, run them
/// together on a modelled machine, and see what they do to one another.
#[derive(Parser)]
#[command(name = "piebald", version = env!("PIEBALD_VERSION"), propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run programs alone and together on a modelled machine and compare policies
    Study(study::Args),
    /// Record a program and all its children for use in studies
    Record(record::Args),
    /// Replay block and file traces against buffer-cache policies at many sizes
    Replay(Box<replay::Args>),
    /// Rerun the experiments of a paper: its numbers beside ours
    Reproduce(reproduce::Args),
    /// Boot a stock kernel under QEMU with the machine model attached, and run programs in it
    Guest(guest::Args),
    /// Say whether programs can be isolated on this computer, and by what
    Probe(probe::Args),
    /// Load the kernel module, which gives processes colors of their own
    Load(load::Args),
    /// Take the kernel module out
    Unload(load::UnloadArgs),
    /// Say what the kernel module does: colors, processes, counters
    Status(status::Args),
    /// Run a program in colors of its own on this computer
    Run(run::Args),
    /// Run a program with and without coloring, in turn, and say what the difference is worth
    Compare(compare::Args),
    /// Move the pages of a running process to its colors
    Recolor(run::RecolorArgs),
    /// Say in one file what this computer does with the module: probe, costs, neighbours
    HardwareReport(hardware::Args),
    /// What `hardware-report` measures
    #[command(hide = true)]
    HardwareWork(hardware::WorkArgs),
    /// List, show, check and derive machines
    Machine(machine::Args),
    /// Look into recordings and traces, and convert traces
    Trace(trace::Args),
    /// Show the keys of scenario files: values, defaults, meanings
    Keys(keys::Args),
    /// Print the JSON Schema of scenario files, or of what a verb writes as JSON
    Schema(schema::Args),
    /// Show what the store of outcomes holds, or make room in it
    Store(store::Args),
    /// Rewrite scenario files of earlier versions
    Scenario(scenario::Args),
    /// Print what a shell needs to complete this command's verbs and options
    Completions(shell::CompletionsArgs),
    /// Write manual pages to a folder
    Man(shell::ManArgs),
}

fn main() -> ExitCode {
    piebald_qemu::find::carry(plugin::library());
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = running::catch_file_limit().and_then(|()| command_line::read::<Cli>(&words));
    match cli.and_then(|cli| run(&cli.verb)) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn run(verb: &Verb) -> Result<ExitCode, Failure> {
    match verb {
        Verb::Study(args) => study::run(args),
        Verb::Record(args) => record::run(args),
        Verb::Replay(args) => replay::run(args),
        Verb::Reproduce(args) => reproduce::run(args),
        Verb::Guest(args) => guest::run(args),
        Verb::Probe(args) => probe::run(args),
        Verb::Load(args) => load::run(args),
        Verb::Unload(args) => load::take_out(args),
        Verb::Status(args) => status::run(args),
        Verb::Run(args) => run::run(args),
        Verb::Compare(args) => compare::run(args),
        Verb::Recolor(args) => run::recolor(args),
        Verb::HardwareReport(args) => hardware::run(args),
        Verb::HardwareWork(args) => hardware::work(args),
        Verb::Machine(args) => machine::run(args),
        Verb::Trace(args) => trace::run(args),
        Verb::Keys(args) => keys::run(args),
        Verb::Schema(args) => schema::run(args),
        Verb::Store(args) => store::run(args),
        Verb::Scenario(args) => scenario::run(args),
        Verb::Completions(args) => shell::completions(args),
        Verb::Man(args) => shell::man(args),
    }
}
