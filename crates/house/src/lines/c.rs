//! Code lines of C.

use super::cursor::Cursor;

/// Lines that hold more than white space and comments. A preprocessor line is code.
///
/// # Errors
/// A comment that is never closed.
pub(super) fn code_lines(text: &str) -> Result<usize, String> {
    let mut cursor = Cursor::new(text);
    while let Some(next) = cursor.peek() {
        match next {
            '/' if cursor.sees("//") => line_comment(&mut cursor),
            '/' if cursor.sees("/*") => block_comment(&mut cursor)?,
            '"' | '\'' => literal(&mut cursor, next),
            _ => {
                cursor.take();
            }
        }
    }
    Ok(cursor.code_lines())
}

/// A backslash before the end of the line continues the comment.
fn line_comment(cursor: &mut Cursor) {
    loop {
        cursor.skip_line();
        if cursor.before() != Some('\\') || cursor.skip().is_none() {
            return;
        }
    }
}

/// Comments of C do not nest.
fn block_comment(cursor: &mut Cursor) -> Result<(), String> {
    let start = cursor.line();
    cursor.skip();
    cursor.skip();
    while !cursor.sees("*/") {
        cursor
            .skip()
            .ok_or(format!("{}: a comment is never closed", start + 1))?;
    }
    cursor.skip();
    cursor.skip();
    Ok(())
}

/// A string or character. It ends with its line, if not before: the text of `#error` may hold
/// an apostrophe.
fn literal(cursor: &mut Cursor, quote: char) {
    cursor.take();
    while let Some(next) = cursor.peek().filter(|c| *c != '\n') {
        cursor.take();
        match next {
            '\\' => {
                cursor.take();
            }
            _ if next == quote => return,
            _ => {}
        }
    }
}
