//! The parts of a line of strace: who, when, which call, its arguments and its result.

use super::super::super::request::Nanos;
use super::super::super::text::{plain, seconds};
use crate::foreign::error::Complaint;

/// Most arguments that are told apart; system calls have six.
const MAX_ARGS: usize = 8;

const NS_PER_S: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * NS_PER_S;

/// What a line is about.
#[derive(Debug, PartialEq)]
pub(super) enum Body<'a> {
    /// `name(` and all behind it, result included.
    Call(&'a [u8], &'a [u8]),
    /// `name(` and what was known before another process came between.
    Unfinished(&'a [u8], &'a [u8]),
    /// The rest of an unfinished call.
    Resumed(&'a [u8], &'a [u8]),
    /// The process has ended.
    Exited,
    /// A signal, an attachment.
    Other,
}

/// A line.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// 0 if strace did not follow forks.
    pub pid: u32,
    pub time: Option<Clock>,
    pub body: Body<'a>,
}

/// A time of `-ttt`, or of day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Clock {
    Epoch(u64),
    OfDay(u64),
}

const LINE: &str = "\"[pid] [time] call(arguments) = result\" or an event in +++ or ---";
const TIME: &str = "a time of -t, -tt or -ttt";

pub(super) fn line(text: &[u8]) -> Result<Line<'_>, Complaint> {
    let wrong = || Complaint::text("the line", text, LINE);
    if text.starts_with(b"strace: ") {
        return Ok(Line {
            pid: 0,
            time: None,
            body: Body::Other,
        });
    }
    let (pid, rest) = pid(text).ok_or_else(wrong)?;
    let (time, rest) = time(rest)?;
    let body = body(rest).ok_or_else(wrong)?;
    Ok(Line { pid, time, body })
}

/// `123 `, `[pid 123] ` or nothing.
fn pid(text: &[u8]) -> Option<(u32, &[u8])> {
    let number = |digits| u32::try_from(plain(digits)?).ok();
    if let Some(rest) = text.strip_prefix(b"[pid ") {
        let end = memchr::memchr(b']', rest)?;
        let pid = number(rest[..end].trim_ascii())?;
        return Some((pid, rest[end + 1..].trim_ascii_start()));
    }
    let digits = text.iter().position(|b| !b.is_ascii_digit());
    match digits {
        Some(n) if n > 0 && text[n] == b' ' => {
            Some((number(&text[..n])?, text[n..].trim_ascii_start()))
        }
        _ => Some((0, text)),
    }
}

fn time(text: &[u8]) -> Result<(Option<Clock>, &[u8]), Complaint> {
    if !text.first().is_some_and(u8::is_ascii_digit) {
        return Ok((None, text));
    }
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    let word = &text[..end];
    let wrong = || Complaint::text("the time", word, TIME);
    let clock = match memchr::memchr(b':', word) {
        // Epochs of today have ten digits; the intervals of -r do not.
        None if word.iter().take_while(|b| b.is_ascii_digit()).count() < 9 => return Err(wrong()),
        None => Clock::Epoch(seconds("the time", word)?),
        Some(_) => Clock::OfDay(of_day(word).ok_or_else(wrong)?),
    };
    Ok((Some(clock), text[end..].trim_ascii_start()))
}

fn of_day(word: &[u8]) -> Option<u64> {
    let mut parts = word.splitn(3, |b| *b == b':');
    let hours = plain(parts.next()?).filter(|h| *h < 24)?;
    let minutes = plain(parts.next()?).filter(|m| *m < 60)?;
    let rest = seconds("", parts.next()?).ok()?;
    (rest <= 60 * NS_PER_S).then_some((hours * 60 + minutes) * 60 * NS_PER_S + rest)
}

/// Puts times of day on one line: a large step back is midnight.
#[derive(Default)]
pub(super) struct Calendar {
    days: u64,
    last: u64,
}

impl Calendar {
    pub fn resolve(&mut self, clock: Clock) -> Nanos {
        match clock {
            Clock::Epoch(ns) => Nanos(ns),
            Clock::OfDay(ns) => {
                if self.last > ns && self.last - ns > DAY / 2 {
                    self.days += 1;
                }
                self.last = ns;
                Nanos(self.days.saturating_mul(DAY).saturating_add(ns))
            }
        }
    }
}

fn body(text: &[u8]) -> Option<Body<'_>> {
    if let Some(event) = text.strip_prefix(b"+++ ") {
        let ended = event.starts_with(b"exited") || event.starts_with(b"killed");
        return Some(if ended { Body::Exited } else { Body::Other });
    }
    if text.starts_with(b"--- ") {
        return Some(Body::Other);
    }
    if let Some(rest) = text.strip_prefix(b"<... ") {
        let end = memchr::memchr(b' ', rest)?;
        let rest_of_call = rest[end..].strip_prefix(b" resumed>")?;
        return Some(Body::Resumed(&rest[..end], rest_of_call));
    }
    let open = memchr::memchr(b'(', text)?;
    let name = &text[..open];
    let plain_name = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_';
    if name.is_empty() || !name.iter().all(plain_name) {
        // `???(` and the like: strace attached in the middle of a call.
        return name.starts_with(b"?").then_some(Body::Other);
    }
    let rest = &text[open + 1..];
    if let Some(begun) = rest.trim_ascii_end().strip_suffix(b"<unfinished ...>") {
        return Some(Body::Unfinished(name, begun));
    }
    memchr::memmem::rfind(rest, b" = ").map(|_| Body::Call(name, rest))
}

/// The arguments and the result of a call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    args: [&'a [u8]; MAX_ARGS],
    /// `None` if the call failed or its result is not known.
    pub result: Option<Value<'a>>,
}

impl<'a> Call<'a> {
    /// From the text behind `name(`; `None` if it does not end as a call does.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let mut args: [&[u8]; MAX_ARGS] = [b""; MAX_ARGS];
        let (mut at, mut start, mut used) = (0, 0, 0);
        let end = loop {
            let separator = argument_end(text, at)?;
            if let Some(place) = args.get_mut(used) {
                *place = text[start..separator].trim_ascii();
                used += 1;
            }
            if text[separator] == b')' {
                break separator;
            }
            at = separator + 1;
            start = at;
        };
        let result = text[end + 1..].trim_ascii_start().strip_prefix(b"=")?;
        let result = result.trim_ascii_start();
        Some(Self {
            args,
            result: Value::parse(result).filter(|v| v.number >= 0),
        })
    }

    /// An argument's text, empty if there is none.
    pub fn arg(&self, n: usize) -> &'a [u8] {
        self.args.get(n).copied().unwrap_or_default()
    }

    pub fn number(&self, n: usize) -> Option<i64> {
        Value::parse(self.arg(n)).map(|v| v.number)
    }

    /// A number in brackets: `[1234]`, or behind the arrow in `[0] => [4096]` its first one.
    pub fn in_brackets(&self, n: usize) -> Option<u64> {
        let inner = self.arg(n).strip_prefix(b"[")?;
        plain(&inner[..memchr::memchr(b']', inner)?])
    }

    /// Whether an argument holds a flag, as a word.
    pub fn has(&self, n: usize, flag: &str) -> bool {
        let arg = self.arg(n);
        let word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        memchr::memmem::find_iter(arg, flag).any(|at| {
            let before = at.checked_sub(1).and_then(|i| arg.get(i));
            !word(before) && !word(arg.get(at + flag.len()))
        })
    }
}

/// A number with what strace knows about it: `3</path>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value<'a> {
    pub number: i64,
    /// Text between `<` and `>`, not decoded.
    pub path: Option<&'a [u8]>,
}

impl<'a> Value<'a> {
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let (digits, sign) = match text.strip_prefix(b"-") {
            Some(rest) => (rest, -1),
            None => (text, 1),
        };
        let (number, rest) = match digits.strip_prefix(b"0x") {
            Some(hex) => {
                let n = count(hex, u8::is_ascii_hexdigit);
                let text = std::str::from_utf8(&hex[..n]).ok()?;
                (u64::from_str_radix(text, 16).ok()?, &hex[n..])
            }
            None => {
                let n = count(digits, u8::is_ascii_digit);
                (plain(&digits[..n])?, &digits[n..])
            }
        };
        let number = i64::try_from(number).unwrap_or(i64::MAX) * sign;
        Some(Self {
            number,
            path: annotation(rest),
        })
    }
}

fn count(text: &[u8], is: fn(&u8) -> bool) -> usize {
    text.iter().position(|b| !is(b)).unwrap_or(text.len())
}

/// Text between `<` at the beginning and its `>`.
pub(super) fn annotation(text: &[u8]) -> Option<&[u8]> {
    let end = annotation_end(text, 0)?;
    text.get(1..end)
}

/// Place of the `>` that belongs to the `<` at `at`. strace escapes both in names, but it nests
/// them (`</dev/null<char 1:3>>`) and writes arrows between the ends of sockets.
fn annotation_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'<') {
        return None;
    }
    let path = text.get(at + 1) == Some(&b'/');
    let mut depth = 0;
    for place in memchr::memchr2_iter(b'<', b'>', &text[at..]).map(|p| p + at) {
        match text[place] {
            b'<' => depth += 1,
            _ if !path && text[place - 1] == b'-' => {}
            _ if depth == 1 => return Some(place),
            _ => depth -= 1,
        }
    }
    None
}

/// Place of the comma or closing bracket that ends the argument which goes on at `at`.
fn argument_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0u32;
    loop {
        match text.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'<' if at > 0 && annotated(text[at - 1]) && text.get(at + 1) != Some(&b'<') => {
                at = annotation_end(text, at)?;
            }
            b'/' if text.get(at + 1) == Some(&b'*') => {
                at += memchr::memmem::find(&text[at..], b"*/")? + 1;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b',' if depth == 0 => return Some(at),
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
}

/// A descriptor or `AT_FDCWD` before `<`.
const fn annotated(before: u8) -> bool {
    before.is_ascii_digit() || before == b'D'
}

/// Place of the quote that closes the one at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut from = at + 1;
    loop {
        let found = from + memchr::memchr2(b'"', b'\\', text.get(from..)?)?;
        if text[found] == b'"' {
            return Some(found);
        }
        from = found + 2;
    }
}

/// The content of a quoted argument, if strace wrote it to its end.
pub(super) fn string(arg: &[u8]) -> Option<Vec<u8>> {
    let end = string_end(arg, 0).filter(|_| arg.first() == Some(&b'"'))?;
    (!arg[end..].starts_with(b"\"...")).then(|| unescape(&arg[1..end]))
}

/// Undoes strace's escapes: those of C, octal and hexadecimal.
pub(super) fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let (byte, used) = escape(rest);
        out.push(byte);
        rest = rest.get(used..).unwrap_or_default();
    }
    out
}

/// The byte that stands behind a backslash, and how many characters say so.
fn escape(text: &[u8]) -> (u8, usize) {
    let octal = |b: &u8| matches!(b, b'0'..=b'7');
    let digits = text.iter().take(3).take_while(|b| octal(b)).count();
    if digits > 0 {
        let value = text[..digits]
            .iter()
            .fold(0u32, |v, b| v * 8 + u32::from(b - b'0'));
        return (value as u8, digits);
    }
    match text {
        [b'x', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
            let digit = |b: &u8| (*b as char).to_digit(16).unwrap_or(0);
            ((digit(a) * 16 + digit(b)) as u8, 3)
        }
        [b'n', ..] => (b'\n', 1),
        [b't', ..] => (b'\t', 1),
        [b'r', ..] => (b'\r', 1),
        [b'v', ..] => (0x0b, 1),
        [b'f', ..] => (0x0c, 1),
        [other, ..] => (*other, 1),
        [] => (b'\\', 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> Call<'_> {
        Call::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn lines_say_who_and_when() {
        for (text, pid, time) in [
            ("read(3, 0) = 0", 0, None),
            ("77 read(3, 0) = 0", 77, None),
            ("[pid    77] read(3, 0) = 0", 77, None),
            (
                "77 1700000000.000001 read(3) = 0",
                77,
                Some(Clock::Epoch(1_700_000_000_000_001_000)),
            ),
            (
                "77    00:01:02.5 read(3) = 0",
                77,
                Some(Clock::OfDay(62_500_000_000)),
            ),
            ("00:00:07 read(3) = 0", 0, Some(Clock::OfDay(7_000_000_000))),
        ] {
            let line = line(text.as_bytes()).expect(text);
            assert_eq!((line.pid, line.time), (pid, time), "{text}");
            assert!(matches!(line.body, Body::Call(b"read", _)), "{text}");
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for text in [
            "hello",
            "5 6 7",
            "Read(3) = 0",
            "read(3)",
            "77 0.001 read(3) = 0",
            "",
        ] {
            assert!(line(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn arguments_end_at_their_own_commas() {
        let c = call(r#"3</a,b)>, "x\",)\"", [{iov_base="q", iov_len=1}], 16) = 16"#);
        assert_eq!(c.arg(0), b"3</a,b)>");
        assert_eq!(
            Value::parse(c.arg(0)).expect("a descriptor").path,
            Some(&b"/a,b)"[..])
        );
        assert_eq!(string(c.arg(1)).expect("a string"), b"x\",)\"");
        assert_eq!(c.number(3), Some(16));
        assert_eq!(c.result.map(|r| r.number), Some(16));
        let c = call(r#"AT_FDCWD</w>, "f", O_RDWR|O_APPEND /* a, b */, 0644) = 5</w/f> <0.1>"#);
        assert_eq!(annotation(&c.arg(0)[8..]), Some(&b"/w"[..]));
        assert!(c.has(2, "O_APPEND") && !c.has(2, "O_APP"));
        assert_eq!(c.result.expect("a result").path, Some(&b"/w/f"[..]));
        let c = call("4<TCP:[1.2.3.4:5->6.7.8.9:10]>, 0x7f00, 1<<20) = 0");
        assert_eq!(c.arg(2), b"1<<20");
        let c = call("0</dev/null<char 1:3>>, 0x7ffd1234abcd, 1) = 0");
        assert_eq!(c.number(1), Some(0x7ffd_1234_abcd));
    }

    #[test]
    fn failures_and_unknown_results_are_none() {
        for text in [
            "3) = -1 EBADF (Bad file descriptor)",
            "3) = ?",
            "3) = ? ERESTARTSYS (x)",
        ] {
            assert_eq!(call(text).result, None, "{text}");
        }
        assert!(Call::parse(b"3, \"abc").is_none());
        assert!(Call::parse(b"3").is_none());
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(
            unescape(br"/a\76b\303\244\n\\\x41\0z"),
            b"/a>b\xc3\xa4\n\\A\0z"
        );
        assert_eq!(unescape(br"end\"), b"end\\");
        assert_eq!(string(br#""cut"..."#), None);
    }

    #[test]
    fn midnight_is_a_large_step_back() {
        let mut calendar = Calendar::default();
        let mut at = |s: u64| calendar.resolve(Clock::OfDay(s * NS_PER_S)).0 / NS_PER_S;
        assert_eq!(
            [at(86_399), at(1), at(0), at(5)],
            [86_399, 86_401, 86_400, 86_405]
        );
    }
}
