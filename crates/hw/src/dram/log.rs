//! The commands that the chips would see, for those who want to check them.

use piebald_units::Picos;

/// A command on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Opens a row.
    Activate,
    /// Column read.
    Read,
    /// Column write.
    Write,
    /// Closes the row.
    Precharge,
    /// Refreshes a rank; `bank` is the rank's first bank.
    Refresh,
}

/// One command. Commands are logged when they are booked, so times of different
/// banks are not in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// When it is on the command bus.
    pub at: Picos,
    /// What it does.
    pub kind: CommandKind,
    /// Bank over all channels and ranks, as [`Dram::bank_index`](super::Dram::bank_index) counts.
    pub bank: u32,
}

/// Where commands go.
pub trait CommandLog {
    /// Called once per command.
    fn command(&mut self, command: Command);
}

/// Keeps nothing, costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlogged;

impl CommandLog for Unlogged {
    #[inline(always)]
    fn command(&mut self, _: Command) {}
}

impl CommandLog for Vec<Command> {
    fn command(&mut self, command: Command) {
        self.push(command);
    }
}
