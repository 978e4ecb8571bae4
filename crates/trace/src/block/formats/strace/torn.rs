//! Calls whose line is torn.
//!
//! strace writes the first half of a call when it begins, without a line feed, and the second half
//! when it ends. In a log of standard error, the traced program and strace itself write between the two:
//!
//! ```text
//! write(2, "not found\n", 10not found
//! )             = 10
//! vfork(strace: Process 501 attached
//!  <unfinished ...>
//! ```
//!
//! What a program writes to standard error is known from the call, and taken out of the line.

use super::super::super::request::Nanos;
use super::args::args;
use super::text::beginning;

/// A call that waits for its end.
#[derive(Debug)]
pub(super) struct Pending {
    pub name: Vec<u8>,
    pub text: Vec<u8>,
    /// Order of beginning.
    pub number: u64,
    /// A child of this call has already been seen.
    pub claimed: bool,
}

/// The line and the byte at which it begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub line: u64,
    pub byte: u64,
}

/// A call whose line has no end yet.
#[derive(Debug)]
pub(super) struct Torn {
    pub pid: u32,
    pub time: Option<Nanos>,
    pub place: Place,
    pub call: Pending,
    /// What the program is still to write in the following lines, as far as strace has printed it.
    echo: Vec<u8>,
}

/// What a further line is to a torn call.
#[derive(Debug, PartialEq)]
pub(super) enum Next<'a> {
    /// Words that the program writes in this call.
    Echo,
    /// They end here; the rest of the line is strace's.
    Rest(&'a [u8]),
    /// The call says nothing of it.
    Unknown,
}

impl Torn {
    pub fn new(pid: u32, time: Option<Nanos>, place: Place, mut call: Pending) -> Self {
        let echo = match &call.name[..] {
            b"write" => take_echo(&mut call.text),
            _ => Vec::new(),
        };
        Self {
            pid,
            time,
            place,
            call,
            echo,
        }
    }

    /// Compares a further line with what the program is to write.
    pub fn next<'a>(&mut self, line: &'a [u8]) -> Next<'a> {
        let length = memchr::memchr(b'\n', &self.echo);
        let expected = &self.echo[..length.unwrap_or(self.echo.len())];
        if expected.is_empty() && length.is_none() {
            return Next::Unknown;
        }
        let Some(rest) = line.strip_prefix(expected) else {
            self.echo.clear();
            return Next::Unknown;
        };
        match length {
            Some(length) if rest.is_empty() => {
                self.echo.drain(..=length);
                Next::Echo
            }
            None if rest.starts_with(b")") => Next::Rest(rest),
            _ => {
                self.echo.clear();
                Next::Unknown
            }
        }
    }
}

/// The line of a `write` without what the program wrote behind its arguments, if that is on the same
/// line as its result: `2, "a)", 2a)) = 2`.
pub(super) fn without_echo(name: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    if name != b"write" {
        return None;
    }
    let (end, content) = written(text)?;
    let rest = text[end..].strip_prefix(&content[..])?;
    let torn = !content.is_empty() && rest.starts_with(b")");
    torn.then(|| [&text[..end], rest].concat())
}

/// Takes the first line that the program wrote from the end of a torn `write`, and returns the
/// others.
fn take_echo(text: &mut Vec<u8>) -> Vec<u8> {
    let Some((end, content)) = written(text) else {
        return Vec::new();
    };
    let behind = &text[end..];
    if content.get(behind.len()) != Some(&b'\n') || !content.starts_with(behind) {
        return Vec::new();
    }
    let others = content[behind.len() + 1..].to_vec();
    text.truncate(end);
    others
}

/// Where the arguments of a `write` end, and what it writes.
fn written(text: &[u8]) -> Option<(usize, Vec<u8>)> {
    let args = args(text);
    let digits = args[2].iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == args[2].len() && !text.ends_with(args[2]) {
        // Nothing stands between the count and what follows.
        return None;
    }
    let content = beginning(args[1])?;
    let count = args[2].as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (digits > 0).then_some((count + digits, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torn(text: &str) -> Torn {
        let call = Pending {
            name: b"write".to_vec(),
            text: text.as_bytes().to_vec(),
            number: 0,
            claimed: false,
        };
        Torn::new(7, None, Place::default(), call)
    }

    #[test]
    fn what_a_program_writes_is_known() {
        let mut call = torn(r#"2, "f(x) = 3\nread(1) = 1\nend", 23f(x) = 3"#);
        assert_eq!(call.call.text, br#"2, "f(x) = 3\nread(1) = 1\nend", 23"#);
        assert_eq!(call.next(b"read(1) = 1"), Next::Echo);
        assert_eq!(call.next(b"end)    = 23"), Next::Rest(b")    = 23"));
    }

    #[test]
    fn other_words_are_not_known() {
        // strace cut what was written.
        let mut call = torn(r#"2, "one\ntwo"..., 300one"#);
        assert_eq!(call.call.text, br#"2, "one\ntwo"..., 300"#);
        assert_eq!(call.next(b"two and more"), Next::Unknown);
        assert_eq!(call.next(b"two"), Next::Unknown);
        let mut call = torn(r#"2, "one\n", 4strange"#);
        assert_eq!(call.call.text, br#"2, "one\n", 4strange"#);
        assert_eq!(call.next(b"one"), Next::Unknown);
    }

    #[test]
    fn words_without_a_line_feed_stand_in_the_line() {
        let without = |text: &str| without_echo(b"write", text.as_bytes());
        assert_eq!(
            without(r#"2, "a) b", 4a) b) = 4"#).expect("an echo"),
            br#"2, "a) b", 4) = 4"#
        );
        assert_eq!(
            without(r#"2, "a) = 5 b", 8a) = 5 b) = 8"#).expect("an echo"),
            br#"2, "a) = 5 b", 8) = 8"#
        );
        assert_eq!(without(r#"2, "a", 1) = 1"#), None);
        assert_eq!(without(r#"2, "", 0"#), None);
        assert_eq!(without(r#"2, "f(x) = 3\n", 9f(x) = 3"#), None);
    }
}
