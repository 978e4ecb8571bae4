//! From lines to events: what of a log is strace's, and what belongs together.

use std::num::NonZeroU64;

use super::super::super::reader::Parse;
use super::super::super::sink::Sink;
use super::Strace;
use super::args::{Call, Reading, result_at_end};
use super::line::{self, Attached, Body, Kind};
use super::torn::{Next, Pending, Place, Torn};
use super::who::Who;
use crate::foreign::ForeignError;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;

/// Most lines before the first one of strace's.
const MAX_FOREWORDS: u64 = 1000;

pub(super) const LINE: &str = "\"[pid] [time] call(arguments) = result\" or an event in +++ or ---";
pub(super) const CALL: &str = "arguments in balance, then \") = result\"";

/// Why lines that all parse may be no log: a message, a text about strace or another tool's output may
/// hold a call or two.
pub(super) fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let (mut own, mut other) = (0, 0);
    for line in lines {
        let half = result_at_end(line).is_some() || line::unfinished(line).is_some();
        match line::read(line) {
            Ok(Kind::Beside) => {}
            Ok(Kind::Message) if !half => other += 1,
            _ => own += 1,
        }
    }
    (own * 3 < other || own == 0).then_some("most of its lines are no calls")
}

/// What a line was.
pub(super) enum Taken {
    /// Whole, and strace's.
    Whole,
    /// Words of the program, or the first half of a call. As the last line of a text that no line feed
    /// ends, it is wrong.
    Part(Complaint),
}

pub(super) type Took = Result<Taken, Complaint>;

impl Strace {
    fn line(&mut self, text: &[u8], sink: &mut Sink<'_>) -> Took {
        if let Some(mut torn) = self.torn.take() {
            match torn.next(text) {
                Next::Echo => {
                    self.torn = Some(torn);
                    return self.message(text, sink);
                }
                Next::Rest(rest) => return self.go_on(torn, rest, sink),
                Next::Unknown => self.torn = Some(torn),
            }
        }
        if text.is_empty() {
            sink.state.passed.comments += 1;
            return Ok(Taken::Whole);
        }
        let kind = line::read(text)?;
        if let Kind::Line(line) = &kind
            && !matches!(line.body, Body::Begun(..))
        {
            self.give_up(sink);
            self.interrupted = None;
            return self.event(line, sink);
        }
        if let Some(attached) = line::attached(text) {
            return self.attach(&attached, sink);
        }
        match kind {
            Kind::Line(line) => {
                self.give_up(sink);
                self.interrupted = None;
                self.event(&line, sink)
            }
            Kind::Beside => {
                sink.state.passed.comments += 1;
                self.note_foreword(text);
                Ok(Taken::Whole)
            }
            Kind::Message => match (self.torn.take(), self.interrupted.take()) {
                (Some(torn), _) => self.go_on(torn, text, sink),
                (None, Some(pid)) => self.go_on_interrupted(pid, text, sink),
                (None, None) => self.words(text, sink),
            },
        }
    }

    /// A line behind the first half of a call: its other half, or words of the program.
    fn go_on(&mut self, torn: Torn, text: &[u8], sink: &mut Sink<'_>) -> Took {
        if line::unfinished(text).is_some() {
            self.suspend(torn.pid, torn.call)?;
        } else if result_at_end(text).is_some() {
            let whole = [&torn.call.text[..], text].concat();
            self.finish((torn.pid, torn.time), &torn.call.name, &whole, sink)?;
        } else if !line::is_left(text) {
            self.torn = Some(torn);
            return self.message(text, sink);
        }
        Ok(Taken::Whole)
    }

    /// With `-z` a call's second half stands right behind its first, and yet strace writes between them
    /// that the call is not finished.
    fn go_on_interrupted(&mut self, pid: u32, text: &[u8], sink: &mut Sink<'_>) -> Took {
        let joined = |call: &Pending| [&call.text[..], text].concat();
        let joined = self.pending.get(&pid).map(joined).unwrap_or_default();
        if !matches!(Call::read(&joined), Reading::Whole(_)) {
            return self.words(text, sink);
        }
        if let Some(call) = self.pending.remove(&pid) {
            self.finish((pid, self.calendar.now), &call.name, &joined, sink)?;
        }
        Ok(Taken::Whole)
    }

    /// No more of a torn call comes. If a result stands in its line, the words between were the
    /// program's.
    fn give_up(&mut self, sink: &mut Sink<'_>) {
        let Some(Torn {
            pid,
            time,
            place,
            call,
            ..
        }) = self.torn.take()
        else {
            return;
        };
        let finished = match result_at_end(&call.text) {
            Some(_) => self.finish((pid, time), &call.name, &call.text, sink),
            None => Err(Complaint::text("the call", &call.text, CALL)),
        };
        self.late = finished.err().map(|why| (place, why));
    }

    /// Words of the program, with a call of strace's behind them if the program wrote no line feed.
    fn words(&mut self, text: &[u8], sink: &mut Sink<'_>) -> Took {
        let part = self.message(text, sink)?;
        match line::behind_a_message(text).map(line::read) {
            // Another tool's lines have calls in them, too.
            Some(Ok(Kind::Line(line))) if self.lines > 0 => self.event(&line, sink),
            _ => Ok(part),
        }
    }

    fn message(&mut self, text: &[u8], sink: &mut Sink<'_>) -> Took {
        sink.state.passed.comments += 1;
        self.messages += 1;
        self.note_foreword(text);
        Ok(Taken::Part(Complaint::text("the line", text, LINE)))
    }

    /// If no line of strace's comes, the first line is what is wrong.
    fn note_foreword(&mut self, text: &[u8]) {
        if self.place.line == 1 {
            self.foreword = Some(Complaint::text("the line", text, LINE));
        }
    }

    /// A process is followed from now on.
    fn attach(&mut self, attached: &Attached<'_>, sink: &mut Sink<'_>) -> Took {
        let before = attached.before;
        if !before.is_empty() {
            match line::read(before)? {
                Kind::Line(line) => {
                    self.give_up(sink);
                    self.event(&line, sink)?;
                }
                Kind::Beside | Kind::Message => self.messages += 1,
            }
        }
        sink.state.passed.comments += 1;
        self.meet(attached.pid)?;
        if attached.with_threads {
            self.leader = Some(attached.pid);
        }
        Ok(Taken::Whole)
    }

    /// What is wrong with a text so far in which no line is strace's.
    fn no_log(&mut self) -> Option<Complaint> {
        self.foreword.take().filter(|_| self.lines == 0)
    }
}

impl Parse for Strace {
    fn step(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError> {
        if self.who.is_none() {
            self.who = Some(Who::in_file(input.name()));
        }
        self.place.byte = input.offset();
        self.place.line += 1;
        let taken = input.line(|line| self.line(line, sink))?;
        let ends = taken.is_none();
        if ends {
            self.give_up(sink);
        }
        if let Some((place, why)) = self.late.take() {
            return Err(at(place, input.fault(why)));
        }
        if let Some(Taken::Part(why)) = taken
            && input.oddities().unended_line
        {
            self.torn = None;
            return Err(input.fault(why));
        }
        if (ends || self.messages > MAX_FOREWORDS)
            && let Some(why) = self.no_log()
        {
            let first = Place { line: 1, byte: 0 };
            return Err(at(first, input.fault(why)));
        }
        self.forget(sink).map_err(|why| input.fault(why))?;
        Ok(!ends)
    }
}

/// An error with the place where its line began.
fn at(place: Place, mut error: ForeignError) -> ForeignError {
    if let ForeignError::Value {
        offset,
        line,
        unended,
        ..
    } = &mut error
    {
        (*offset, *line, *unended) = (place.byte, NonZeroU64::new(place.line), None);
    }
    error
}
