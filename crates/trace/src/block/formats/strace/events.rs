//! From events to calls: who makes them, and when they are whole.

use super::super::super::request::Nanos;
use super::super::super::sink::Sink;
use super::Strace;
use super::args::{self, Args, Call, Flag, Reading, Value, result_at_end};
use super::calls::{self, Handler};
use super::line::{self, Body, Line};
use super::process::Shares;
use super::reader::{CALL, Taken, Took};
use super::text::Parts;
use super::torn::{self, Pending, Torn};
use super::who::{Clues, Who};
use crate::foreign::error::Complaint;

/// Most calls that may be unfinished at a time.
const MAX_UNFINISHED: usize = 1 << 16;

impl Strace {
    pub fn event(&mut self, line: &Line<'_>, sink: &mut Sink<'_>) -> Took {
        self.lines += 1;
        if let Some(clock) = line.time {
            self.calendar.resolve(clock);
            sink.state.origin.get_or_insert(clock.origin());
        }
        // The time of a call behind words of the program is not looked for among them.
        let time = self.calendar.now;
        let pid = self.process_of(line);
        match line.body {
            Body::Other => sink.state.passed.comments += 1,
            Body::Exited => {
                self.end(pid);
                self.know().has_left(pid);
                sink.state.passed.comments += 1;
            }
            Body::Superseded(thread) => {
                self.supersede(pid, thread)?;
                sink.state.passed.comments += 1;
            }
            _ => self.meet(pid)?,
        }
        match line.body {
            Body::Begun(name, text) => return self.begin((pid, time), name, text),
            Body::Unfinished(name, text) => {
                let call = self.pending(name, text);
                self.suspend(pid, call)?;
                self.interrupted = Some(pid);
            }
            Body::Resumed(name, rest) => self.resume((pid, time), name, rest, sink)?,
            Body::Call(name, text) => return self.whole((pid, time), name, text, sink),
            Body::Other | Body::Exited | Body::Superseded(_) => {}
        }
        Ok(Taken::Whole)
    }

    fn know(&mut self) -> &mut Who {
        self.who.get_or_insert_default()
    }

    fn process_of(&mut self, line: &Line<'_>) -> u32 {
        let processes = &self.processes;
        let who = self.who.get_or_insert_default();
        let pending = &self.pending;
        let follows_home = |home| match (pending.get(&home), &line.body) {
            (Some(call), Body::Resumed(name, _)) => call.name == *name,
            // It was killed.
            (Some(call), Body::Exited) => !calls::makes_process(&call.name),
            (Some(_), _) | (None, Body::Resumed(..)) => false,
            (None, _) => true,
        };
        let clues = Clues {
            knows: &|pid| processes.knows(pid),
            only: processes.only(),
            follows_home: &follows_home,
        };
        who.resolve(line.pid, &clues)
    }

    /// The process exists from now on, as a child of whoever is about to get one.
    pub fn meet(&mut self, pid: u32) -> Result<(), Complaint> {
        if self.processes.knows(pid) {
            return Ok(());
        }
        if self.know().is_leaving(pid) {
            self.know().has_left(pid);
        }
        let torn = self.torn.as_mut().map(|t| (t.pid, &mut t.call));
        let pending = self.pending.iter_mut().map(|(pid, call)| (*pid, call));
        let waiting = pending
            .chain(torn)
            .filter(|(_, p)| !p.claimed && calls::makes_process(&p.name))
            .max_by_key(|(_, p)| p.number);
        match waiting {
            None => match self.leader.filter(|l| self.processes.knows(*l)) {
                Some(leader) => self.processes.guess_fork(leader, pid, Shares::ALL),
                None => self.processes.begin(pid),
            },
            Some((parent, call)) => {
                call.claimed = true;
                let shares = shares(&args::args(&call.text));
                self.processes.guess_fork(parent, pid, shares)
            }
        }
    }

    fn end(&mut self, pid: u32) {
        self.pending.remove(&pid);
        self.processes.end(pid);
    }

    /// A thread has called `execve`: it takes the process's number, and the others end.
    fn supersede(&mut self, pid: u32, thread: u32) -> Result<(), Complaint> {
        if thread == pid || !self.processes.knows(thread) {
            return Ok(());
        }
        if !self.processes.knows(pid) {
            self.processes.fork(thread, pid, Shares::ALL)?;
        }
        self.know().has_left(pid);
        match self.pending.remove(&thread) {
            Some(call) => drop(self.pending.insert(pid, call)),
            None => drop(self.pending.remove(&pid)),
        }
        self.end(thread);
        Ok(())
    }

    // Calls ---------------------------------------------------------------

    fn pending(&mut self, name: &[u8], text: &[u8]) -> Pending {
        self.begun += 1;
        Pending {
            name: name.to_vec(),
            text: text.to_vec(),
            number: self.begun,
            claimed: false,
        }
    }

    fn begin(&mut self, who: (u32, Option<Nanos>), name: &[u8], text: &[u8]) -> Took {
        let part = Complaint::text("the call", text, CALL);
        let call = self.pending(name, text);
        self.torn = Some(Torn::new(who.0, who.1, self.place, call));
        Ok(Taken::Part(part))
    }

    /// Another process has interrupted the call.
    pub fn suspend(&mut self, pid: u32, call: Pending) -> Result<(), Complaint> {
        if self.pending.len() >= MAX_UNFINISHED {
            let allowed = "up to 65536 at a time";
            let found = MAX_UNFINISHED as u64 + 1;
            return Err(Complaint::number(
                "the number of unfinished calls",
                found,
                allowed,
            ));
        }
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
        let pending = self.pending.get(&pid).is_some_and(|c| c.name == name);
        if pending && line::unfinished(rest).is_some() {
            return Ok(());
        }
        let Some(mut call) = self.pending.remove(&pid).filter(|_| pending) else {
            // Tracing began in the middle of the call. Of a program that begins, no argument matters.
            let begins = calls::runs_program(name) && result_at_end(rest) == Some(b"0");
            sink.state.passed.others += 1;
            return match begins {
                true => self.processes.exec(pid),
                false => Ok(()),
            };
        };
        call.text.extend_from_slice(rest);
        self.finish((pid, time), name, &call.text, sink)
    }

    /// A call on one line. If its arguments do not end where its result begins, words of the program
    /// stand in it, or it is torn behind words that look like a result.
    fn whole(
        &mut self,
        who: (u32, Option<Nanos>),
        name: &[u8],
        text: &[u8],
        sink: &mut Sink<'_>,
    ) -> Took {
        let Some(handler) = calls::handler(name) else {
            self.other(who.0, name, sink);
            return Ok(Taken::Whole);
        };
        let clean = torn::without_echo(name, text);
        match Call::read(clean.as_deref().unwrap_or(text)) {
            Reading::Whole(call) => {
                self.run(who, name, handler, &call, sink)?;
                Ok(Taken::Whole)
            }
            Reading::Open(_) | Reading::Ended(_) => self.begin(who, name, text),
        }
    }

    /// A call of which this is all that the log says.
    pub fn finish(
        &mut self,
        who: (u32, Option<Nanos>),
        name: &[u8],
        text: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), Complaint> {
        let Some(handler) = calls::handler(name) else {
            self.other(who.0, name, sink);
            return Ok(());
        };
        let call = match Call::read(text) {
            Reading::Whole(call) => call,
            Reading::Open(args) | Reading::Ended(args) if result_at_end(text).is_some() => {
                Call::torn(args, text)
            }
            _ => return Err(Complaint::text("the call", text, CALL)),
        };
        self.run(who, name, handler, &call, sink)
    }

    fn run(
        &mut self,
        (pid, time): (u32, Option<Nanos>),
        name: &[u8],
        handler: Handler,
        call: &Call<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Complaint> {
        if call.result.is_none() {
            self.other(pid, name, sink);
            return Ok(());
        }
        self.last = (time, pid);
        calls::Context {
            strace: self,
            sink,
            pid,
            time,
            call,
        }
        .run(handler)
    }

    /// Deletes files that are gone.
    pub(super) fn forget(&mut self, sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let gone = self.processes.gone();
        gone.into_iter()
            .try_for_each(|file| sink.cut(self.last, file, 0))
    }

    /// A call that changes nothing here, or has failed.
    fn other(&mut self, pid: u32, name: &[u8], sink: &mut Sink<'_>) {
        if matches!(name, b"exit" | b"exit_group") {
            self.end(pid);
            self.know().leaves(pid);
        }
        sink.state.passed.others += 1;
    }
}

/// What a process shares with the one that makes it by a call.
pub(super) fn shares(args: &Args<'_>) -> Shares {
    let number = |n: usize| Value::parse(args[n]).map(|v| v.number);
    let flags = match Parts::of(args[0]) {
        Some(fields) => fields.field("flags").unwrap_or_default(),
        // Where strace was told not to decode, the flags come first. Else the stack does, which lies
        // above 8 GiB or is said by a name.
        None if number(1).is_some() && number(0).is_some_and(|n| 0 < n && n < 1 << 33) => args[0],
        None => args[1],
    };
    Shares {
        descriptors: Flag("CLONE_FILES", 0x400).is_in(flags),
        directory: Flag("CLONE_FS", 0x200).is_in(flags),
    }
}
