//! The `piebald` command: one verb per file, arguments and printing only.
//!
//! Exit codes: 0 done, 1 failed, 2 the command line or an input file is not what
//! it has to be.

mod failure;
mod guest;
mod machine;
mod outputs;
mod progress;
mod record;
mod regions;
mod replay;
mod reproduce;
mod running;
mod study;
mod trace;
mod trace_block;
mod trace_info;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Memory management that knows the machine: record real programs, run them
/// together on a modelled machine, and see what they do to one another.
#[derive(Parser)]
#[command(name = "piebald", version, propagate_version = true)]
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
    Replay(replay::Args),
    /// Rerun the experiments of a paper: its numbers beside ours
    Reproduce(reproduce::Args),
    /// Boot a stock kernel under QEMU with the machine model attached, and run programs in it
    Guest(guest::Args),
    /// List, show, check and derive machines
    Machine(machine::Args),
    /// Look into recordings and traces, and convert traces
    Trace(trace::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Study(args) => study::run(&args),
        Verb::Record(args) => record::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Reproduce(args) => reproduce::run(&args),
        Verb::Guest(args) => guest::run(&args),
        Verb::Machine(args) => machine::run(&args),
        Verb::Trace(args) => trace::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
