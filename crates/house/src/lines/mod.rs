//! Lines of code: what is left of a text without blank lines and comments.

mod c;
mod cursor;
mod python;
mod shell;

/// A language whose lines are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// `.rs`
    Rust,
    /// `.c` and `.h`
    C,
    /// `.sh`, and what begins with `#!` and names a shell
    Shell,
    /// `.py`
    Python,
}

impl Language {
    /// Every language, in the order of the table's columns.
    pub const ALL: [Self; 4] = [Self::Rust, Self::C, Self::Shell, Self::Python];

    /// The language of a file: its extension decides, and without one its first line.
    pub fn of(path: &str, text: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let first = text.lines().next().unwrap_or_default();
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("rs") => Some(Self::Rust),
            Some("c" | "h") => Some(Self::C),
            Some("sh") => Some(Self::Shell),
            Some("py") => Some(Self::Python),
            None if first.starts_with("#!") && first.ends_with("sh") => Some(Self::Shell),
            _ => None,
        }
    }
}

/// Code lines of a C text. A preprocessor line is code.
///
/// # Errors
/// A comment that is never closed.
pub fn of_c(text: &str) -> Result<usize, String> {
    c::code_lines(text)
}

/// Code lines of a shell script. A here-document is code, the line `#!` is a comment.
///
/// # Errors
/// A quote, an expansion or a here-document that is never closed: the script was misread.
pub fn of_shell(text: &str) -> Result<usize, String> {
    shell::code_lines(text)
}

/// Code lines of a Python text. A statement that is a string and nothing else is a comment.
///
/// # Errors
/// A string that is never closed.
pub fn of_python(text: &str) -> Result<usize, String> {
    python::code_lines(text)
}
