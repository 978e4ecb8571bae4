//! Starting a program in colours of its own.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    process::Command,
};

use piebald_policy::contract::Mode;

use crate::{Module, ModuleError, ask::Wanted, transient::Transient};

/// Why a program was not started in colours of its own.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The module refused, or is not there.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The program cannot be run.
    #[error("{}: {source}", program.display())]
    Program {
        /// The program.
        program: OsString,
        /// Why.
        source: io::Error,
    },
}

/// Turns this process into another program in colours of its own: it moves to a group that has
/// them and then calls `exec`, so that the program's status and signals are its own. Comes back only
/// with an error; colours that were taken are then given back.
pub fn become_program(
    module: &Module,
    wanted: &Wanted,
    mode: Mode,
    program: &OsStr,
    arguments: &[OsString],
) -> LaunchError {
    let own = match Transient::enter(module, std::process::id(), Some((wanted, mode))) {
        Ok(own) => own,
        Err(error) => return error.into(),
    };
    let source = Command::new(program).args(arguments).exec();
    // The process ends soon, and its colours with it; what matters is why.
    let _ = own.end();
    LaunchError::Program {
        program: program.to_owned(),
        source,
    }
}
