//! Code lines of Python.

use super::cursor::Cursor;

/// Lines that hold more than white space, comments and docstrings. A statement that is a
/// string and nothing else is a docstring, wherever it stands.
///
/// # Errors
/// A string that is never closed.
pub(super) fn code_lines(text: &str) -> Result<usize, String> {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        depth: 0,
        statement: Statement::Empty,
    };
    while let Some(next) = reader.cursor.peek() {
        reader.step(next)?;
    }
    reader.end_statement();
    Ok(reader.cursor.code_lines())
}

/// What was seen of a statement.
enum Statement {
    Empty,
    /// A string, on these lines that held no code before.
    OneString(Vec<usize>),
    Code,
}

struct Reader {
    cursor: Cursor,
    /// Open brackets, within which a line's end ends no statement.
    depth: usize,
    statement: Statement,
}

impl Reader {
    fn step(&mut self, next: char) -> Result<(), String> {
        match next {
            '#' => self.cursor.skip_line(),
            '\\' => self.cursor.take_many(2),
            '\n' => {
                self.cursor.take();
                if self.depth == 0 {
                    self.end_statement();
                }
            }
            _ if next.is_whitespace() => {
                self.cursor.take();
            }
            '"' | '\'' => self.string()?,
            _ if next.is_alphanumeric() || next == '_' => self.word()?,
            _ => self.sign(next),
        }
        Ok(())
    }

    fn sign(&mut self, next: char) {
        match next {
            '(' | '[' | '{' => self.depth += 1,
            ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.statement = Statement::Code;
        self.cursor.take();
    }

    /// A name or number, or the letters before a string, as in `rb""`.
    fn word(&mut self) -> Result<(), String> {
        let mut word = String::new();
        while let Some(next) = self.cursor.peek() {
            if !(next.is_alphanumeric() || next == '_') {
                break;
            }
            // Marked with the string, if it is one.
            word.push(next);
            self.cursor.skip();
        }
        let marks_string = word.len() <= 2 && word.chars().all(|c| "rbfuRBFU".contains(c));
        if marks_string && matches!(self.cursor.peek(), Some('"' | '\'')) {
            return self.string();
        }
        self.statement = Statement::Code;
        self.cursor.mark();
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        let start = self.cursor.line();
        let had_code = self.cursor.has_code(start);
        self.pass_string()?;
        let lines = (start + usize::from(had_code)..=self.cursor.line()).collect();
        self.statement = match self.statement {
            Statement::Empty => Statement::OneString(lines),
            _ => Statement::Code,
        };
        Ok(())
    }

    fn pass_string(&mut self) -> Result<(), String> {
        let start = self.cursor.line();
        let single = self.cursor.peek().map_or_else(String::new, String::from);
        let triple = single.repeat(3);
        let quote = if self.cursor.sees(&triple) {
            triple
        } else {
            single
        };
        self.cursor.take_many(quote.len());
        while !self.cursor.sees(&quote) {
            match self.cursor.take() {
                Some('\\') => self.cursor.take_many(1),
                Some('\n') if quote.len() == 1 => return Err(unclosed(start)),
                Some(_) => {}
                None => return Err(unclosed(start)),
            }
        }
        self.cursor.take_many(quote.len());
        Ok(())
    }

    fn end_statement(&mut self) {
        let ended = std::mem::replace(&mut self.statement, Statement::Empty);
        if let Statement::OneString(lines) = ended {
            self.cursor.unmark(lines);
        }
    }
}

fn unclosed(line: usize) -> String {
    format!("{}: a string is never closed", line + 1)
}
