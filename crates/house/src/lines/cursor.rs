//! A place in a text, and the lines on which code was seen so far.

use std::collections::BTreeSet;

/// Walks through a text character by character.
pub(super) struct Cursor {
    chars: Vec<char>,
    at: usize,
    line: usize,
    code: BTreeSet<usize>,
}

impl Cursor {
    pub(super) fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
            line: 0,
            code: BTreeSet::new(),
        }
    }

    /// Line of the next character, from 0.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// The next character. `None` at the end.
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// The character before the next one.
    pub(super) fn before(&self) -> Option<char> {
        self.chars.get(self.at.checked_sub(1)?).copied()
    }

    /// Whether this word comes next.
    pub(super) fn sees(&self, word: &str) -> bool {
        let mut rest = self.chars.get(self.at..).unwrap_or_default().iter();
        word.chars().all(|c| rest.next() == Some(&c))
    }

    /// Passes a character that is no code.
    pub(super) fn skip(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        self.line += usize::from(next == '\n');
        Some(next)
    }

    /// Passes a character of the code. White space marks no line, so that blank lines in a
    /// string of several lines are not counted.
    pub(super) fn take(&mut self) -> Option<char> {
        if self.peek().is_some_and(|c| !c.is_whitespace()) {
            self.code.insert(self.line);
        }
        self.skip()
    }

    /// Passes this many characters of the code.
    pub(super) fn take_many(&mut self, number: usize) {
        for _ in 0..number {
            self.take();
        }
    }

    /// Passes all that stands before the end of the line, as no code.
    pub(super) fn skip_line(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.skip();
        }
    }

    /// Passes the rest of the line and its end, as code, and returns it without its end.
    pub(super) fn take_line(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| c != '\n') {
            self.take();
        }
        let line = self.chars[start..self.at].iter().collect();
        self.take();
        line
    }

    /// Says that there is code on the line of the next character.
    pub(super) fn mark(&mut self) {
        self.code.insert(self.line);
    }

    /// Takes back that there is code on these lines.
    pub(super) fn unmark(&mut self, lines: impl IntoIterator<Item = usize>) {
        for line in lines {
            self.code.remove(&line);
        }
    }

    /// Whether code was seen on this line.
    pub(super) fn has_code(&self, line: usize) -> bool {
        self.code.contains(&line)
    }

    /// Number of lines with code.
    pub(super) fn code_lines(&self) -> usize {
        self.code.len()
    }
}
