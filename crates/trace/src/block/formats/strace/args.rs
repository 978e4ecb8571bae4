//! The arguments of a call and its result.

use super::super::super::text::plain;
use super::text::{annotation, argument_end};

/// Most arguments that are told apart; system calls have six.
const MAX_ARGS: usize = 8;

/// The arguments and the result of a call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub args: Args<'a>,
    /// `None` if the call failed, was not carried out, or its result is not known.
    pub result: Option<Value<'a>>,
}

/// What stands behind `name(`.
#[derive(Debug)]
pub(super) enum Reading<'a> {
    /// All of a call.
    Whole(Call<'a>),
    /// The arguments do not end.
    Open(Args<'a>),
    /// They end, but no result follows: something else stands between.
    Ended(Args<'a>),
}

/// Arguments in order, empty behind the last.
pub(super) type Args<'a> = [&'a [u8]; MAX_ARGS];

impl<'a> Call<'a> {
    /// Reads the text behind `name(`.
    pub fn read(text: &'a [u8]) -> Reading<'a> {
        let mut args: Args<'a> = [b""; MAX_ARGS];
        let (mut at, mut start, mut used) = (0, 0, 0);
        let end = loop {
            let separator = argument_end(text, at);
            if let Some(place) = args.get_mut(used) {
                let end = separator.unwrap_or(text.len());
                *place = without_name(text[start..end].trim_ascii());
                used += 1;
            }
            match separator.map(|end| (end, text[end])) {
                None => return Reading::Open(args),
                Some((end, b')')) => break end,
                Some((end, b',')) => at = end + 1,
                Some(_) => return Reading::Ended(args),
            }
            start = at;
        };
        let result = text[end + 1..].trim_ascii_start().strip_prefix(b"=");
        match result.map(<[u8]>::trim_ascii) {
            Some(result) if !result.is_empty() => Reading::Whole(Self {
                args,
                result: succeeded(result),
            }),
            _ => Reading::Ended(args),
        }
    }

    /// For a call with words of the traced program between its arguments and its result, which is
    /// taken from the end of the text.
    pub fn torn(args: Args<'a>, text: &'a [u8]) -> Self {
        let result = result_at_end(text).and_then(succeeded);
        Self { args, result }
    }

    /// An argument's text, empty if there is none.
    pub fn arg(&self, n: usize) -> &'a [u8] {
        self.args.get(n).copied().unwrap_or_default()
    }

    pub fn number(&self, n: usize) -> Option<i64> {
        Value::parse(self.arg(n)).map(|v| v.number)
    }

    /// A number that is not negative.
    pub fn size(&self, n: usize) -> Option<u64> {
        self.number(n).and_then(|n| u64::try_from(n).ok())
    }

    /// A number in brackets: `[1234]`, or behind the arrow in `[0] => [4096]` its first one.
    pub fn in_brackets(&self, n: usize) -> Option<u64> {
        let inner = self.arg(n).strip_prefix(b"[")?;
        let digits = inner.iter().take_while(|b| b.is_ascii_digit()).count();
        plain(&inner[..digits])
    }

    /// A null pointer.
    pub fn is_null(&self, n: usize) -> bool {
        matches!(self.arg(n), b"NULL" | b"0" | b"0x0")
    }

    /// Whether a constant or a flag is set, by its name or, where strace was told to print numbers
    /// (`-X raw`), by its bits.
    pub fn has(&self, n: usize, flag: Flag) -> bool {
        flag.is_in(self.arg(n))
    }

    /// Whether an argument is a constant, by its name or number.
    pub fn is(&self, n: usize, constant: Flag) -> bool {
        let number = Value::parse(self.arg(n)).map(|v| v.number);
        names(self.arg(n), constant.0) || number == Some(constant.1 as i64)
    }
}

/// The arguments behind `name(`, also of a call that does not end.
pub(super) fn args(text: &[u8]) -> Args<'_> {
    match Call::read(text) {
        Reading::Whole(call) => call.args,
        Reading::Open(args) | Reading::Ended(args) => args,
    }
}

/// `-N` writes the names of arguments before them.
fn without_name(arg: &[u8]) -> &[u8] {
    let word = |b: &&u8| b.is_ascii_lowercase() || b.is_ascii_digit() || **b == b'_';
    let name = arg.iter().take_while(word).count();
    match arg.get(name) {
        Some(b'=') if name > 0 => &arg[name + 1..],
        _ => arg,
    }
}

/// The value that a call returned. Without one if strace made it up instead of letting the call
/// happen (`-e inject=...:retval=`).
fn succeeded(result: &[u8]) -> Option<Value<'_>> {
    let marks = [&b"(INJECTED)"[..], b"(INJECTED: args, retval)"];
    let made_up = memchr::memchr(b'(', result).is_some()
        && marks
            .iter()
            .any(|mark| memchr::memmem::find(result, mark).is_some());
    let value = Value::parse(result).filter(|v| v.number >= 0 && !made_up)?;
    Some(match outer(result) {
        Some(number) => Value { number, ..value },
        None => value,
    })
}

/// What a process of another namespace is to strace itself: `2 /* 900 in strace's PID NS */`.
fn outer(result: &[u8]) -> Option<i64> {
    let begun = memchr::memmem::find(result, b"/* ")? + 3;
    let end = memchr::memmem::find(result, b" in strace's PID NS */")?;
    let digits = result.get(begun..end)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What stands behind the last `) = ` of a text, if it is something.
pub(super) fn result_at_end(text: &[u8]) -> Option<&[u8]> {
    let sign = memchr::memrchr_iter(b'=', text)
        .find(|at| text.get(at + 1) == Some(&b' ') && text[..*at].ends_with(b" "))?;
    let result = text[sign + 1..].trim_ascii();
    let ends = text[..sign].trim_ascii_end().ends_with(b")");
    (ends && !result.is_empty()).then_some(result)
}

/// The name of a constant or a flag, and its number on x86 and most others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag(pub &'static str, pub u64);

impl Flag {
    /// Whether it is among flags: names and numbers with `|` between them.
    pub fn is_in(self, flags: &[u8]) -> bool {
        names(flags, self.0) || numbers(flags) & self.1 == self.1
    }
}

/// Whether a text holds a name, as a word.
fn names(text: &[u8], name: &str) -> bool {
    let word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    memchr::memmem::find_iter(text, name).any(|at| {
        let before = at.checked_sub(1).and_then(|i| text.get(i));
        !word(before) && !word(text.get(at + name.len()))
    })
}

/// The bits of all numbers among flags.
fn numbers(flags: &[u8]) -> u64 {
    let values = flags.split(|b| *b == b'|').filter_map(Value::parse);
    values.fold(0, |all, v| all | v.number as u64)
}

/// A number with what strace knows about it: `3</path>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value<'a> {
    pub number: i64,
    /// Text between `<` and `>`, not decoded.
    pub path: Option<&'a [u8]>,
    /// The file has lost this name, as strace from 6.4 on says behind it.
    pub lost: bool,
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
                // -1 is printed with all its bits where strace was told not to decode.
                (u64::from_str_radix(text, 16).ok()? as i64, &hex[n..])
            }
            None => {
                let n = count(digits, u8::is_ascii_digit);
                let number = plain(&digits[..n])?;
                (i64::try_from(number).unwrap_or(i64::MAX), &digits[n..])
            }
        };
        let path = annotation(rest);
        let behind = path.and_then(|path| rest.get(path.len() + 2..));
        Some(Self {
            number: number.wrapping_mul(sign),
            path,
            lost: behind.is_some_and(|text| text.starts_with(b"(deleted)")),
        })
    }
}

fn count(text: &[u8], is: fn(&u8) -> bool) -> usize {
    text.iter().position(|b| !is(b)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::super::text::string;
    use super::*;

    fn call(text: &str) -> Call<'_> {
        match Call::read(text.as_bytes()) {
            Reading::Whole(call) => call,
            other => panic!("{text}: {other:?}"),
        }
    }

    const APPEND: Flag = Flag("O_APPEND", 0x400);
    const PART: Flag = Flag("O_APP", 1 << 40);

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
        assert!(c.has(2, APPEND) && !c.has(2, PART));
        assert_eq!(c.result.expect("a result").path, Some(&b"/w/f"[..]));
        let c = call("4<TCP:[1.2.3.4:5->6.7.8.9:10]>, 0x7f00, 1<<20) = 0");
        assert_eq!(c.arg(2), b"1<<20");
        let c = call("0</dev/null<char 1:3>>, 0x7ffd1234abcd, 1) = 0");
        assert_eq!(c.number(1), Some(0x7ffd_1234_abcd));
        let c = call("-100 /* AT_FDCWD */</w, (x>, \"f\", 0 /* O_RDONLY */) = 3</w, (x/f>");
        assert_eq!(c.arg(1), b"\"f\"");
    }

    #[test]
    fn flags_are_names_or_numbers() {
        for (flags, has) in [
            ("O_RDWR|O_APPEND", true),
            ("0x402", true),
            ("0x402 /* O_RDWR|O_APPEND */", true),
            ("O_RDWR|0x400", true),
            ("O_RDWR|O_APPENDS", false),
            ("0x2", false),
            ("0", false),
        ] {
            assert_eq!(APPEND.is_in(flags.as_bytes()), has, "{flags}");
        }
        let c = call("3, 0, 2) = 9");
        assert!(c.is(2, Flag("SEEK_END", 2)) && !c.is(1, Flag("SEEK_END", 2)));
        assert!(c.is_null(1) && !c.is_null(2));
    }

    #[test]
    fn names_of_arguments_are_left_out() {
        let c = call(r#"fd=3</a>, buf="len=7", count=5) = 5"#);
        assert_eq!((c.arg(0), c.arg(1)), (&b"3</a>"[..], &b"\"len=7\""[..]));
        assert_eq!(c.size(2), Some(5));
    }

    #[test]
    fn failures_and_unknown_results_are_none() {
        for text in [
            "3) = -1 EBADF (Bad file descriptor)",
            "3) = ?",
            "3) = ? ERESTARTSYS (x)",
            "3) = 100 (INJECTED)",
            "3) = 0xffffffffffffffff",
        ] {
            assert_eq!(call(text).result, None, "{text}");
        }
        let part = call("3) = 100 (INJECTED: args) (DELAYED)").result;
        assert_eq!(part.map(|r| r.number), Some(100));
        for text in ["3, \"abc", "3", "3, [1, 2"] {
            let read = Call::read(text.as_bytes());
            assert!(matches!(read, Reading::Open(_)), "{text}");
        }
        for text in ["3) error", "3]", "3) =", "3) = "] {
            let read = Call::read(text.as_bytes());
            assert!(matches!(read, Reading::Ended(_)), "{text}");
        }
    }

    #[test]
    fn results_stand_behind_the_last_bracket() {
        assert_eq!(result_at_end(b"no line feed)   = 6"), Some(&b"6"[..]));
        assert_eq!(result_at_end(b"x = 5"), None);
        assert_eq!(result_at_end(b") = "), None);
        let text = b"2, \"a) b\", 4a) b) = 4";
        let Reading::Ended(args) = Call::read(text) else {
            panic!("the bracket of the message is taken for the call's");
        };
        let call = Call::torn(args, text);
        assert_eq!(call.arg(1), b"\"a) b\"");
        assert_eq!(call.result.map(|r| r.number), Some(4));
    }
}
