//! Text of `strace -f -y`, with or without times (`-t`, `-tt`, `-ttt`) and `-T`.
//!
//! System calls become reads and writes of bytes of files. What is tracked:
//!
//! * offsets, through `open`, `lseek`, `read`, `write`, their vector forms, `sendfile` and
//!   `copy_file_range`; explicit ones of `pread` and `pwrite`;
//! * open files that descriptors share after `dup`, `fcntl` and forks; tables of descriptors that
//!   threads share; what `execve` closes. A child may appear before its parent's `clone` returns (it
//!   always does after `vfork`): it is taken for the child of the latest such call;
//! * appending, which begins at the largest end of file known; cutting by `O_TRUNC`, `truncate` and
//!   `ftruncate`, and removal by `unlink` or by a rename over the file ([`Op::Delete`](super::super::Op));
//! * mappings of files ([`Op::Map`](super::super::Op)), cut at the file's end as far as `fstat`, reads or writes have
//!   told it; [`Notes::unclipped_maps`](super::super::Notes) counts the others.
//!
//! A file's size is the largest end seen. Pipes, sockets, `/proc`, `/sys` and `/dev` are counted as
//! [`elsewhere`](super::super::Passed). Without `-y` paths come from `open`, relative to what `chdir` says.
//!
//! Deviations: hard links are separate files; after the rename of a directory, files opened
//! below it by their new paths are new; data moved by `io_uring` or `splice` is not seen, as strace
//! does not show its offsets.

mod calls;
mod lex;
mod process;

use std::collections::HashMap;

use super::super::reader::{Entry, Lines, Looks, ParseLine};
use super::super::request::Nanos;
use super::super::sink::Sink;
use super::super::{Options, TargetKind, Times, Traits};
use crate::foreign::error::Complaint;
use lex::{Body, Calendar, Call};
use process::Processes;

pub(crate) const ENTRY: Entry = Entry {
    name: "strace",
    aliases: &[],
    traits: Traits {
        target: TargetKind::File,
        times: Times::Optional,
        directions: true,
        tasks: true,
    },
    looks: Looks::Text,
    parser: |options| Box::new(Lines(Strace::new(options))),
};

/// Most calls that may be unfinished at a time.
const MAX_UNFINISHED: usize = 1 << 16;

/// A call that waits for its end.
struct Pending {
    name: Vec<u8>,
    text: Vec<u8>,
    /// Order of beginning.
    number: u64,
    /// A child of this call has already been seen.
    claimed: bool,
}

pub(super) struct Strace {
    under: Vec<Vec<u8>>,
    processes: Processes,
    pending: HashMap<u32, Pending>,
    begun: u64,
    calendar: Calendar,
}

impl Strace {
    fn new(options: &Options) -> Self {
        Self {
            under: options
                .under
                .iter()
                .map(|p| p.as_bytes().to_vec())
                .collect(),
            processes: Processes::default(),
            pending: HashMap::new(),
            begun: 0,
            calendar: Calendar::default(),
        }
    }

    /// The process exists from now on, as a child of whoever is about to get one.
    fn meet(&mut self, pid: u32) -> Result<(), Complaint> {
        if self.processes.knows(pid) {
            return Ok(());
        }
        let waiting = self
            .pending
            .iter_mut()
            .filter(|(_, p)| !p.claimed && calls::makes_process(&p.name))
            .max_by_key(|(_, p)| p.number);
        match waiting {
            None => self.processes.begin(pid),
            Some((parent, call)) => {
                call.claimed = true;
                let share = shares_descriptors(&call.text);
                self.processes.fork(*parent, pid, share)
            }
        }
    }

    fn wait(&mut self, pid: u32, name: &[u8], text: &[u8]) -> Result<(), Complaint> {
        if self.pending.len() >= MAX_UNFINISHED {
            let allowed = "up to 65536 at a time";
            let found = MAX_UNFINISHED as u64 + 1;
            return Err(Complaint::number(
                "the number of unfinished calls",
                found,
                allowed,
            ));
        }
        self.begun += 1;
        let call = Pending {
            name: name.to_vec(),
            text: text.to_vec(),
            number: self.begun,
            claimed: false,
        };
        self.pending.insert(pid, call);
        Ok(())
    }

    fn resume(
        &mut self,
        (pid, time): (u32, Option<Nanos>),
        name: &[u8],
        rest: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), Complaint> {
        let Some(mut call) = self.pending.remove(&pid).filter(|c| c.name == name) else {
            // Tracing began in the middle of the call.
            sink.state.passed.others += 1;
            return Ok(());
        };
        call.text.extend_from_slice(rest);
        self.call((pid, time), name, &call.text, sink)
    }

    fn call(
        &mut self,
        who: (u32, Option<Nanos>),
        name: &[u8],
        text: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), Complaint> {
        let Some(handler) = calls::handler(name) else {
            sink.state.passed.others += 1;
            return Ok(());
        };
        let call = Call::parse(text).ok_or_else(|| {
            Complaint::text(
                "the call",
                text,
                "arguments in balance, then \") = result\"",
            )
        })?;
        if call.result.is_none() {
            sink.state.passed.others += 1;
            return Ok(());
        }
        calls::Context {
            strace: self,
            sink,
            pid: who.0,
            time: who.1,
            call: &call,
        }
        .run(handler)
    }
}

fn shares_descriptors(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"CLONE_FILES").is_some()
}

impl ParseLine for Strace {
    fn line(&mut self, text: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let line = lex::line(text)?;
        let time = line.time.map(|clock| self.calendar.resolve(clock));
        match line.body {
            Body::Other => {
                sink.state.passed.comments += 1;
                return Ok(());
            }
            Body::Exited => {
                self.pending.remove(&line.pid);
                self.processes.end(line.pid);
                sink.state.passed.comments += 1;
                return Ok(());
            }
            _ => self.meet(line.pid)?,
        }
        match line.body {
            Body::Unfinished(name, text) => self.wait(line.pid, name, text),
            Body::Resumed(name, rest) => self.resume((line.pid, time), name, rest, sink),
            Body::Call(name, text) => self.call((line.pid, time), name, text, sink),
            Body::Other | Body::Exited => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
