//! Where strace's arguments, strings and names of descriptors end, and what its escapes stand for.

/// Text between `<` at the beginning and its `>`.
pub(super) fn annotation(text: &[u8]) -> Option<&[u8]> {
    let end = annotation_end(text, 0)?;
    text.get(1..end)
}

/// Place of the `>` that belongs to the `<` at `at`. strace escapes both in names, but it nests
/// them (`</dev/null<char 1:3>>`) and writes arrows between the ends of sockets.
pub(super) fn annotation_end(text: &[u8], at: usize) -> Option<usize> {
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
pub(super) fn argument_end(text: &[u8], mut at: usize) -> Option<usize> {
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
            b')' | b']' | b'}' | b',' if depth == 0 => return Some(at),
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// A descriptor, `AT_FDCWD` or a comment that says its name, before `<`.
const fn annotated(before: u8) -> bool {
    before.is_ascii_digit() || matches!(before, b'D' | b'/')
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

/// The parts of a list or structure, which stand between brackets and commas: `[a, {b, c}]` has the
/// parts `a` and `{b, c}`.
pub(super) struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    /// `None` if the text does not begin with a bracket.
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let opens = matches!(text.first(), Some(b'[' | b'{'));
        opens.then(|| Self(&text[1..]))
    }

    /// The value of a structure's field.
    pub fn field(self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.filter_map(|p| p.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        values.next()
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = argument_end(self.0, 0)?;
        let part = self.0[..end].trim_ascii();
        self.0 = match self.0[end] {
            b',' => &self.0[end + 1..],
            _ => b"",
        };
        (!part.is_empty()).then_some(part)
    }
}

/// A quoted argument, and whether it is whole: strace cuts long data, not paths.
fn quoted(arg: &[u8]) -> Option<(&[u8], bool)> {
    let end = string_end(arg, 0).filter(|_| arg.first() == Some(&b'"'))?;
    Some((&arg[1..end], !arg[end..].starts_with(b"\"...")))
}

/// The content of a quoted argument, if strace wrote it to its end.
pub(super) fn string(arg: &[u8]) -> Option<Vec<u8>> {
    let (text, whole) = quoted(arg)?;
    whole.then(|| unescape(text))
}

/// The beginning of a quoted argument's content.
pub(super) fn beginning(arg: &[u8]) -> Option<Vec<u8>> {
    quoted(arg).map(|(text, _)| unescape(text))
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

/// Takes out `.`, `..` and double slashes, as if there were no symbolic links.
pub(super) fn tidy(path: &[u8]) -> Vec<u8> {
    let absolute = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|p| *p != b"..") => drop(parts.pop()),
            b".." if absolute => {}
            _ => parts.push(part),
        }
    }
    let mut tidied = if absolute { b"/".to_vec() } else { Vec::new() };
    tidied.extend_from_slice(&parts.join(&b'/'));
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_tidied() {
        for (path, tidied) in [
            (&b"/a//b/./c"[..], &b"/a/b/c"[..]),
            (b"/a/../../b", b"/b"),
            (b"../a/..", b".."),
            (b"a/../..", b".."),
            (b"./x", b"x"),
        ] {
            assert_eq!(tidy(path), tidied, "{}", path.escape_ascii());
        }
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(
            unescape(br"/a\76b\303\244\n\\\x41\0z"),
            b"/a>b\xc3\xa4\n\\A\0z"
        );
        assert_eq!(unescape(br"end\"), b"end\\");
        assert_eq!(string(br#""cut"..."#), None);
        assert_eq!(beginning(br#""cut"..."#).expect("quoted"), b"cut");
    }

    #[test]
    fn lists_and_structures_have_parts() {
        let list = br#"[{a=1, b="x, {y", c=[1, 2]}, {a=2}, ...]"#;
        let parts: Vec<&[u8]> = Parts::of(list).expect("a list").collect();
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[1..], [&b"{a=2}"[..], b"..."]);
        let field = |name| Parts::of(parts[0]).expect("a structure").field(name);
        assert_eq!(field("b"), Some(&br#""x, {y""#[..]));
        assert_eq!(field("c"), Some(&b"[1, 2]"[..]));
        assert_eq!(field("y"), None);
        assert_eq!(Parts::of(b"[]").expect("a list").count(), 0);
        assert_eq!(Parts::of(b"[a, b").expect("a list").count(), 1);
        assert!(Parts::of(b"0x7f00").is_none());
    }
}
