//! The parts of a line of strace: who, when, and what it is about. Other lines are told apart.
//!
//! Before a call stand, each if strace was told to write it and in this order: the process (`7`,
//! `[pid     7]`, with `-Y` its command: `7<sh>`), a security context, the time (`-t`, `-tt`, `-ttt`,
//! `-r`), the call's number (`-n`) and the instruction pointer (`-i`).

use super::args::{Call, Reading, result_at_end};
use super::clock::Clock;
use super::known::is_call;
use super::text::annotation_end;
use crate::block::text::plain;
use crate::foreign::error::Complaint;

/// Largest process number of Linux (`PID_MAX_LIMIT`). A larger number is a time.
const MAX_PID: u64 = 1 << 22;

/// What a line is about.
#[derive(Debug, PartialEq)]
pub(super) enum Body<'a> {
    /// `name(` and all behind it, result included.
    Call(&'a [u8], &'a [u8]),
    /// `name(` and what stands behind it, which is not all.
    Begun(&'a [u8], &'a [u8]),
    /// `name(` and what was known before another process came between.
    Unfinished(&'a [u8], &'a [u8]),
    /// The rest of an unfinished call.
    Resumed(&'a [u8], &'a [u8]),
    /// The process has ended.
    Exited,
    /// The process goes on as this thread of it, whose `execve` has ended the others.
    Superseded(u32),
    /// A signal, a change of the machine's mode, a call in progress that is not known.
    Other,
}

/// A line that strace has written.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    pub pid: Option<u32>,
    pub time: Option<Clock>,
    pub body: Body<'a>,
}

/// Any line of a log.
#[derive(Debug, PartialEq)]
pub(super) enum Kind<'a> {
    /// A call or an event.
    Line(Line<'a>),
    /// Something else by strace: its messages, stacks (`-k`), dumps of data (`-e read=`), the table
    /// of `-C`.
    Beside,
    /// Words of the traced program, which writes into the same file.
    Message,
}

const TIME: &str = "a time of -t, -tt, -ttt or -r";

/// Tells what a line is.
///
/// # Errors
/// It is a line of strace, with a time that is none.
pub(super) fn read(text: &[u8]) -> Result<Kind<'_>, Complaint> {
    let led = Led::read(text);
    let Some(body) = body(led.rest) else {
        return Ok(match is_beside(text) {
            true => Kind::Beside,
            false => Kind::Message,
        });
    };
    let alone = led.pid.is_none() && led.time.is_none();
    if alone && !is_plausible(&body) {
        return Ok(Kind::Message);
    }
    match led.wrong_time {
        Some(word) => Err(Complaint::text("the time", word, TIME)),
        None => Ok(Kind::Line(Line {
            pid: led.pid,
            time: led.time,
            body,
        })),
    }
}

/// Whether the body may be strace's although neither a process nor a time stands before it.
fn is_plausible(body: &Body<'_>) -> bool {
    match body {
        Body::Call(name, _) | Body::Unfinished(name, _) => is_call(name),
        // `read() failed` is no call.
        Body::Begun(name, rest) => is_call(name) && matches!(Call::read(rest), Reading::Open(_)),
        _ => true,
    }
}

/// What stands before a call.
#[derive(Default)]
struct Led<'a> {
    pid: Option<u32>,
    time: Option<Clock>,
    wrong_time: Option<&'a [u8]>,
    rest: &'a [u8],
}

impl<'a> Led<'a> {
    fn read(text: &'a [u8]) -> Self {
        let (pid, rest) = pid(text).map_or((None, text), |(pid, rest)| (Some(pid), rest));
        let mut led = Self {
            pid,
            rest: rest.trim_ascii_start(),
            ..Self::default()
        };
        led.attributes();
        let end = memchr::memchr(b' ', led.rest).unwrap_or(led.rest.len());
        let word = &led.rest[..end];
        if Clock::resembles(word) {
            led.time = Clock::parse(word);
            led.wrong_time = led.time.is_none().then_some(word);
            led.rest = led.rest[end..].trim_ascii_start();
        }
        // `-r` beside `-t` adds nothing to it.
        if let Some(step) = led.rest.strip_prefix(b"(+")
            && let Some(end) = memchr::memchr(b')', step)
            && Clock::resembles(step[..end].trim_ascii())
        {
            led.rest = step[end + 1..].trim_ascii_start();
        }
        led.attributes();
        led
    }

    /// Passes words in brackets: `[  59]`, `[00007f72c186bad7]`, `[unconfined_t]`.
    fn attributes(&mut self) {
        let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"_:.,!?-".contains(b);
        while let Some(inner) = self.rest.strip_prefix(b"[")
            && let Some(end) = memchr::memchr(b']', inner)
            && inner[..end].trim_ascii().iter().all(allowed)
            && inner.get(end + 1) == Some(&b' ')
        {
            self.rest = inner[end + 1..].trim_ascii_start();
        }
    }
}

/// `123 `, `123<sh> ` or `[pid 123] `, and what follows.
fn pid(text: &[u8]) -> Option<(u32, &[u8])> {
    let (text, close) = match text.strip_prefix(b"[pid ") {
        Some(rest) => (rest.trim_ascii_start(), b']'),
        None => (text, b' '),
    };
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let pid = plain(&text[..digits]).filter(|pid| *pid <= MAX_PID)?;
    let behind = annotation_end(text, digits).map_or(digits, |end| end + 1);
    let rest = text[behind..].strip_prefix(&[close])?;
    Some((pid as u32, rest))
}

fn body(text: &[u8]) -> Option<Body<'_>> {
    if let Some(event) = between(text, b"+++ ", b" +++") {
        let thread = event.strip_prefix(b"superseded by execve in pid ");
        return Some(match thread.and_then(plain) {
            Some(thread) => Body::Superseded(u32::try_from(thread).ok()?),
            None if event.starts_with(b"exited") || event.starts_with(b"killed") => Body::Exited,
            None => Body::Other,
        });
    }
    if between(text, b"--- ", b" ---").is_some()
        || between(text, b"[ Process PID=", b" ]").is_some()
    {
        return Some(Body::Other);
    }
    if let Some(rest) = text.strip_prefix(b"<... ") {
        let end = memchr::memchr(b' ', rest)?;
        let rest_of_call = rest[end..].strip_prefix(b" resumed>")?;
        return Some(Body::Resumed(&rest[..end], rest_of_call));
    }
    let (name, rest) = name(text)?;
    if name.starts_with(b"?") {
        // strace attached in the middle of a call.
        return Some(Body::Other);
    }
    if let Some(begun) = unfinished(rest) {
        return Some(Body::Unfinished(name, begun));
    }
    if is_left(rest) {
        return Some(Body::Other);
    }
    Some(match result_at_end(rest) {
        Some(_) => Body::Call(name, rest),
        None => Body::Begun(name, rest),
    })
}

fn between<'a>(text: &'a [u8], before: &[u8], behind: &[u8]) -> Option<&'a [u8]> {
    text.trim_ascii_end()
        .strip_prefix(before)?
        .strip_suffix(behind)
}

/// `name(` or `????(`, and what follows.
fn name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let name = text.iter().take_while(|b| in_name(**b)).count();
    let (name, rest) = match name {
        0 => text.split_at(text.iter().take_while(|b| **b == b'?').count()),
        n => text.split_at(n),
    };
    let rest = rest.strip_prefix(b"(")?;
    (!name.is_empty()).then_some((name, rest))
}

const fn in_name(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'
}

/// What stands before the mark of a call that another process has interrupted.
pub(super) fn unfinished(text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii_end().strip_suffix(b"<unfinished ...>")
}

/// Whether a line says that strace has left the process, or that a thread goes on as another one.
pub(super) fn is_left(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    text.ends_with(b"<detached ...>")
        || text.ends_with(b" ...>") && memchr::memmem::rfind(text, b" <pid changed to ").is_some()
}

/// A message that strace follows a process from now on, in a line or at its end.
#[derive(Debug, PartialEq)]
pub(super) struct Attached<'a> {
    pub pid: u32,
    /// Its other threads are followed as well.
    pub with_threads: bool,
    /// What stands before it: a call that was begun, or nothing.
    pub before: &'a [u8],
}

/// `strace: Process 7 attached`, with the path of strace as it was called, or with none in old ones.
pub(super) fn attached(text: &[u8]) -> Option<Attached<'_>> {
    let end = memchr::memmem::find(text, b" attached")?;
    let behind = &text[end + b" attached".len()..];
    let with_threads = behind.starts_with(b" with ");
    // Old straces say why.
    if !(behind.is_empty() || with_threads || behind.starts_with(b" (")) {
        return None;
    }
    let start = memchr::memmem::rfind(&text[..end], b"Process ")?;
    let pid = plain(&text[start + b"Process ".len()..end])?;
    let pid = u32::try_from(pid).ok()?;
    let before = &text[..start];
    let before = match before.strip_suffix(b"strace: ") {
        None => before,
        Some(path) => {
            let in_path = |b: &&u8| b.is_ascii_alphanumeric() || b"/._-+".contains(b);
            let path_length = path.iter().rev().take_while(in_path).count();
            let (call, path) = path.split_at(path.len() - path_length);
            let slash = memchr::memchr(b'/', path).unwrap_or(path.len());
            &before[..call.len() + slash]
        }
    };
    Some(Attached {
        pid,
        with_threads,
        before,
    })
}

fn is_beside(text: &[u8]) -> bool {
    // Of a stack, of a dump of data, and of one of data in several pieces.
    let marks = [&b" > "[..], b" | ", b" * "];
    let own = || memchr::memmem::find(text, b"strace: ").is_some_and(|at| is_path(&text[..at]));
    marks.iter().any(|m| text.starts_with(m)) || own() || is_old_message(text) || is_table(text)
}

/// The beginning of `/usr/bin/strace: `, or nothing.
fn is_path(text: &[u8]) -> bool {
    text.is_empty() || text.ends_with(b"/") && !text.contains(&b' ')
}

/// `Process 7 attached (waiting for parent)`, without "strace:" before it, up to strace 4.9.
fn is_old_message(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"Process ") else {
        return false;
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let words = [&b" attached"[..], b" detached", b" resumed", b" suspended"];
    digits > 0 && words.iter().any(|w| rest[digits..].starts_with(w))
}

/// A line of the table of `-c` and `-C`: its head, a rule, or numbers and a call.
fn is_table(text: &[u8]) -> bool {
    let mut words = text.split(|b| *b == b' ').filter(|w| !w.is_empty());
    let Some(last) = words.next_back() else {
        return false;
    };
    let only = |word: &[u8], set: &[u8]| word.iter().all(|b| set.contains(b));
    if last == b"syscall" {
        return text.starts_with(b"% time");
    }
    if last.starts_with(b"----") {
        return only(text, b"- ") && text.contains(&b' ');
    }
    let mut numbers = 0;
    let named = last == b"total" || is_call(last);
    named
        && words.all(|w| {
            numbers += 1;
            only(w, b"0123456789.")
        })
        && numbers >= 3
}

/// Where a whole call stands in a line that begins with words of the program, which wrote no line
/// feed behind them.
pub(super) fn behind_a_message(text: &[u8]) -> Option<&[u8]> {
    if result_at_end(text).is_none() && unfinished(text).is_none() {
        return None;
    }
    let marked = memchr::memmem::find_iter(text, b"[pid ").find_map(|at| {
        let led = Led::read(&text[at..]);
        led.pid.and(body(led.rest)).map(|_| &text[at..])
    });
    marked.or_else(|| memchr::memchr_iter(b'(', text).find_map(|open| bare_call(text, open)))
}

/// A call that strace knows, whose arguments begin at `open`, and which takes the rest of the line.
fn bare_call(text: &[u8], open: usize) -> Option<&[u8]> {
    let length = text[..open]
        .iter()
        .rev()
        .take_while(|b| in_name(**b))
        .count();
    let start = open - length;
    // `_read(`, `Read(`, `self.read(`, `"read(` and `-read(` are no calls.
    let parts = |b: &u8| b" \t$#%?".contains(b);
    let parted = text[..start].last().is_some_and(parts);
    if !parted || !is_call(&text[start..open]) {
        return None;
    }
    let whole = match Call::read(&text[open + 1..]) {
        Reading::Whole(_) => true,
        Reading::Open(_) => unfinished(text).is_some(),
        Reading::Ended(_) => false,
    };
    whole.then(|| &text[start..])
}

#[cfg(test)]
mod tests;
