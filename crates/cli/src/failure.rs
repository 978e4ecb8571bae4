//! How a verb fails.

use std::{fmt::Display, io::Write, process::ExitCode};

use crate::running;

/// A message for the user and the exit code that goes with it.
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line or an input is not what it has to be: exit code 2.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self {
            code: 2,
            message: message.to_string(),
        }
    }

    /// Something did not work: exit code 1.
    pub(crate) fn failed(message: impl Display) -> Self {
        Self {
            code: 1,
            message: message.to_string(),
        }
    }

    /// The message for the user.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The same with the place that it is about before it.
    pub(crate) fn at(self, place: &str) -> Self {
        let message = format!("{place}: {}", self.message);
        Self { message, ..self }
    }

    /// The same with another exit code.
    pub(crate) fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// Prints the message and gives the exit code, which says so if a signal stopped the work.
    pub(crate) fn report(&self) -> ExitCode {
        say!("piebald: {}", self.message);
        ExitCode::from(match self.code {
            1 => running::failure_code(1),
            code => code,
        })
    }
}

/// Prints a line to standard error, as `eprintln` does. Nobody may read it, which is no error.
macro_rules! say {
    ($($line:tt)*) => {
        crate::failure::say_line(format_args!($($line)*))
    };
}
pub(crate) use say;

pub(crate) fn say_line(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints to standard output. A closed pipe is the reader's choice, not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {e}")))
        }
        _ => Ok(()),
    }
}
