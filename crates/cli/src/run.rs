//! `piebald run --colors 0-3 -- CMD`, `run --pid` and `recolor`: programs in colours of their own.

use std::{ffi::OsString, io, process::ExitCode};

use piebald_linux::{LaunchError, become_program};

use serde_json::json;

use crate::{failure::Failure, json::Json, live, numbers};

/// Piebald itself failed; a program's own status cannot be told from 1 or 2.
const NOT_STARTED: u8 = 125;
/// The program is there and cannot be run.
const NOT_RUNNABLE: u8 = 126;
/// There is no such program.
const NOT_FOUND: u8 = 127;

/// Arguments of `piebald run`.
#[derive(clap::Args)]
#[command(
    after_help = "The program replaces this one, so its exit status and signals are its own. \
    Otherwise: 125 the module refused or is not loaded, 126 the program cannot be run, 127 there \
    is none. What the program starts inherits its colors."
)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: live::Ask,
    /// When the colors are used up, kill the program instead of taking others
    #[arg(long)]
    hard: bool,
    /// Give the colors to this process, which runs, instead of starting one
    #[arg(long, value_name = "PID", conflicts_with = "command", value_parser = numbers::whole::<u32>(numbers::PIDS))]
    pid: Option<u32>,
    /// Take the colors of the process away
    #[arg(long, requires = "pid", conflicts_with_all = ["colors", "share", "hard"])]
    none: bool,
    /// The program and its arguments
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let wanted = args.ask.wanted();
    if wanted.is_none() && !args.none {
        return Err(Failure::usage(
            "run: no colors; allowed: --colors 0-3,8 or --share 25%, or --none with --pid",
        ));
    }
    let of_program = args.pid.is_none();
    if args.none && of_program {
        return Err(Failure::usage(
            "run: --none takes the colors of a process away; allowed: with --pid PID",
        ));
    }
    let module = live::module_on().map_err(|e| match of_program {
        true => e.with_code(NOT_STARTED),
        false => e,
    })?;
    let mode = live::mode(args.hard);
    match (args.pid, wanted, args.command.split_first()) {
        (Some(pid), Some(wanted), _) => {
            module.give(pid, &wanted, mode).map_err(live::failure)?;
        }
        (Some(pid), None, _) => module.take_away(pid).map_err(live::failure)?,
        (None, Some(wanted), Some((program, arguments))) => {
            return Err(failure(&become_program(
                &module, &wanted, mode, program, arguments,
            )));
        }
        (None, _, _) => {
            return Err(Failure::usage(
                "run: no program; allowed: CMD, or --pid PID",
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn failure(error: &LaunchError) -> Failure {
    let code = match error {
        LaunchError::Module(_) => NOT_STARTED,
        LaunchError::Program { source, .. } => match source.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_RUNNABLE,
        },
    };
    Failure::failed(error).with_code(code)
}

/// Arguments of `piebald recolor`.
#[derive(clap::Args)]
pub(crate) struct RecolorArgs {
    /// The process
    #[arg(value_parser = numbers::whole::<u32>(numbers::PIDS))]
    pid: u32,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn recolor(args: &RecolorArgs) -> Result<ExitCode, Failure> {
    let moved = live::module_on()?
        .recolor(args.pid)
        .map_err(live::failure)?;
    let text = format!(
        "{} pages moved to the colors of process {}, {} tried that stay where they are, \
         {} left that other processes have too\n",
        moved.moved, args.pid, moved.failed, moved.shared
    );
    let value = json!({
        "schema": 1,
        "pid": args.pid,
        "moved_pages": moved.moved,
        "failed_pages": moved.failed,
        "shared_pages": moved.shared,
    });
    args.json.show(&text, &value)?;
    Ok(ExitCode::SUCCESS)
}
