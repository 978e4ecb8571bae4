//! Code lines of a shell script.
//!
//! Quotes, expansions and here-documents nest, and a `#` begins a comment only outside them,
//! so that each is followed to its end. A here-document is code, whatever it holds. Left
//! aside are the rarer forms: extended patterns with unpaired brackets, and `case` as the
//! name of a file.

use super::cursor::Cursor;

/// Lines that hold more than white space and comments.
///
/// # Errors
/// A quote, an expansion or a here-document that is never closed.
pub(super) fn code_lines(text: &str) -> Result<usize, String> {
    let mut shell = Shell {
        cursor: Cursor::new(text),
        open: Vec::new(),
        documents: Vec::new(),
        word: String::new(),
    };
    while let Some(next) = shell.cursor.peek() {
        shell.step(next)?;
    }
    if let Some(open) = shell.open.last() {
        return Err(format!(
            "{}: {:?} is never closed",
            open.line + 1,
            open.kind
        ));
    }
    if let Some(document) = shell.documents.first() {
        return Err(unclosed(document));
    }
    Ok(shell.cursor.code_lines())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `(`, `$(`: commands, up to `)`.
    Commands,
    /// Commands up to a backquote.
    Backquoted,
    /// `case` up to `esac`, in which a `)` ends a pattern.
    Case,
    /// `((`, `$((`, and the parentheses inside.
    Arithmetic,
    /// `${`
    Expansion,
    /// `"`
    DoubleQuote,
}

/// What is open.
struct Open {
    kind: Kind,
    line: usize,
}

struct Document {
    end: String,
    /// `<<-`: tabs before the end mark are left out.
    tabs: bool,
}

struct Shell {
    cursor: Cursor,
    open: Vec<Open>,
    /// Here-documents that begin after the present line.
    documents: Vec<Document>,
    /// The plain word that is being read.
    word: String,
}

impl Shell {
    fn kind(&self) -> Option<Kind> {
        self.open.last().map(|o| o.kind)
    }

    fn step(&mut self, next: char) -> Result<(), String> {
        if !is_letter(next) {
            self.end_word(next);
        }
        match (self.kind(), next) {
            (_, '\\') => self.cursor.take_many(2),
            (Some(Kind::DoubleQuote), '"') => self.close(),
            (_, '$') => self.dollar()?,
            (_, '`') => self.backquote(),
            (Some(Kind::DoubleQuote), _) => {
                self.cursor.take();
            }
            (_, '"') => self.open(Kind::DoubleQuote, 1),
            (Some(Kind::Arithmetic | Kind::Expansion), _) => self.inside_expansion(next)?,
            _ => self.command(next)?,
        }
        Ok(())
    }

    fn command(&mut self, next: char) -> Result<(), String> {
        match next {
            '\n' => {
                self.cursor.take();
                return self.read_documents();
            }
            '#' if self.begins_word() => self.comment(),
            '\'' => self.single_quote(false)?,
            '(' if self.cursor.sees("((") => {
                self.open(Kind::Arithmetic, 1);
                self.open(Kind::Arithmetic, 1);
            }
            '(' => self.open(Kind::Commands, 1),
            ')' if self.kind() == Some(Kind::Commands) => self.close(),
            '<' => self.less()?,
            _ => {
                if is_letter(next) && (!self.word.is_empty() || self.begins_word()) {
                    self.word.push(next);
                }
                self.cursor.take();
            }
        }
        Ok(())
    }

    /// Within `${}` and `(())`, where `#` and `<<` have other meanings.
    fn inside_expansion(&mut self, next: char) -> Result<(), String> {
        let kind = self.kind();
        let in_string = self
            .open
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|o| o.kind == Kind::DoubleQuote);
        match (kind, next) {
            (Some(Kind::Expansion), '}') | (Some(Kind::Arithmetic), ')') => self.close(),
            (Some(Kind::Arithmetic), '(') => self.open(Kind::Arithmetic, 1),
            // In "${a:-'}" an apostrophe quotes nothing.
            (Some(Kind::Expansion), '\'') if !in_string => self.single_quote(false)?,
            _ => {
                self.cursor.take();
            }
        }
        Ok(())
    }

    fn dollar(&mut self) -> Result<(), String> {
        let quoted = self.kind() == Some(Kind::DoubleQuote);
        if self.cursor.sees("$((") {
            self.open(Kind::Arithmetic, 2);
            self.open(Kind::Arithmetic, 1);
        } else if self.cursor.sees("$(") {
            self.open(Kind::Commands, 2);
        } else if self.cursor.sees("${") {
            self.open(Kind::Expansion, 2);
        } else if self.cursor.sees("$'") && !quoted {
            self.cursor.take();
            self.single_quote(true)?;
        } else if self.cursor.sees("$#") {
            self.cursor.take_many(2);
        } else {
            self.cursor.take();
        }
        Ok(())
    }

    fn backquote(&mut self) {
        if self.kind() == Some(Kind::Backquoted) {
            self.close();
        } else {
            self.open(Kind::Backquoted, 1);
        }
    }

    /// `'...'`, and with `escapes` `$'...'`, in which a backslash protects.
    fn single_quote(&mut self, escapes: bool) -> Result<(), String> {
        let start = self.cursor.line();
        self.cursor.take();
        loop {
            match self.cursor.take() {
                Some('\'') => return Ok(()),
                Some('\\') if escapes => self.cursor.take_many(1),
                Some(_) => {}
                None => return Err(format!("{}: a quote is never closed", start + 1)),
            }
        }
    }

    /// `<`, a here-string or the beginning of a here-document.
    fn less(&mut self) -> Result<(), String> {
        if self.cursor.sees("<<<") {
            self.cursor.take_many(3);
        } else if self.cursor.sees("<<") {
            self.cursor.take_many(2);
            let tabs = self.cursor.peek() == Some('-');
            self.cursor.take_many(usize::from(tabs));
            while matches!(self.cursor.peek(), Some(' ' | '\t')) {
                self.cursor.take();
            }
            let end = self.end_mark();
            if end.is_empty() {
                let line = self.cursor.line() + 1;
                return Err(format!("{line}: a here-document without an end mark"));
            }
            self.documents.push(Document { end, tabs });
        } else {
            self.cursor.take();
        }
        Ok(())
    }

    /// The word after `<<`, without its quotes.
    fn end_mark(&mut self) -> String {
        let mut mark = String::new();
        let mut quote = None;
        while let Some(next) = self.cursor.peek().filter(|c| *c != '\n') {
            let ends = next.is_whitespace() || ";|&<>()".contains(next);
            match next {
                _ if quote == Some(next) => quote = None,
                _ if quote.is_some() => mark.push(next),
                '\'' | '"' => quote = Some(next),
                '\\' => {}
                _ if ends => break,
                _ => mark.push(next),
            }
            self.cursor.take();
        }
        mark
    }

    fn read_documents(&mut self) -> Result<(), String> {
        for document in std::mem::take(&mut self.documents) {
            loop {
                if self.cursor.peek().is_none() {
                    return Err(unclosed(&document));
                }
                let line = self.cursor.take_line();
                let line = if document.tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line == document.end {
                    break;
                }
            }
        }
        Ok(())
    }

    /// A comment ends with its line, or with the backquotes that it stands in.
    fn comment(&mut self) {
        let quoted = self.open.iter().any(|o| o.kind == Kind::Backquoted);
        while let Some(next) = self.cursor.peek() {
            if next == '\n' || quoted && next == '`' {
                return;
            }
            self.cursor.skip();
        }
    }

    fn begins_word(&self) -> bool {
        self.cursor
            .before()
            .is_none_or(|c| c.is_whitespace() || ";&|()".contains(c))
    }

    /// `case` opens what `esac` closes.
    fn end_word(&mut self, next: char) {
        match std::mem::take(&mut self.word).as_str() {
            "case" if next.is_whitespace() => self.open(Kind::Case, 0),
            "esac" if self.kind() == Some(Kind::Case) => {
                self.open.pop();
            }
            _ => {}
        }
    }

    /// Passes the sign of this length that opens what follows.
    fn open(&mut self, kind: Kind, length: usize) {
        let line = self.cursor.line();
        self.cursor.take_many(length);
        self.open.push(Open { kind, line });
    }

    /// Passes the character that closes what was opened last.
    fn close(&mut self) {
        self.cursor.take();
        self.open.pop();
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn unclosed(document: &Document) -> String {
    format!("the here-document up to {} is never closed", document.end)
}
