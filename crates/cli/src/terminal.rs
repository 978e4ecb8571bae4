//! Where escape codes may go: the one place that decides it.

use std::{ffi::OsStr, io::IsTerminal};

/// May bold text and progress bars with escape codes be written to this stream? Only to a terminal,
/// unless `NO_COLOR` is set to anything (<https://no-color.org>) or `TERM` is `dumb`.
pub(crate) fn takes_escapes(stream: &impl IsTerminal) -> bool {
    let variable = std::env::var_os;
    decide(
        stream.is_terminal(),
        variable("NO_COLOR").as_deref(),
        variable("TERM").as_deref(),
    )
}

fn decide(terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    let refused = no_color.is_some_and(|value| !value.is_empty());
    terminal && !refused && term.is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_that_takes_them_gets_escapes() {
        let decide = |terminal, no_color: Option<&str>, term: Option<&str>| {
            decide(terminal, no_color.map(OsStr::new), term.map(OsStr::new))
        };
        assert!(decide(true, None, Some("xterm")));
        assert!(decide(true, None, None));
        assert!(decide(true, Some(""), Some("xterm")), "empty means unset");
        assert!(!decide(false, None, Some("xterm")));
        assert!(!decide(true, Some("1"), Some("xterm")));
        assert!(!decide(true, Some("0"), Some("xterm")), "any text counts");
        assert!(!decide(true, None, Some("dumb")));
    }
}
