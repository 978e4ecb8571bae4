//! The standard error of a program that is not to be heard: its end is kept.

use std::{
    collections::VecDeque,
    io::Read,
    process::ChildStderr,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

/// Bytes that are kept: about ten lines.
const KEPT: usize = 800;
/// How long the end is waited for when the program has ended. Some process that was
/// not followed may hold the pipe for ever.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a program says, read as it comes so that it never waits for a reader.
pub struct Hushed {
    end: Arc<Mutex<VecDeque<u8>>>,
    over: mpsc::Receiver<()>,
}

impl Hushed {
    /// Reads a pipe to its end, if there is one.
    pub fn listen(pipe: Option<ChildStderr>) -> Self {
        let end = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, over) = mpsc::channel();
        if let Some(pipe) = pipe {
            let end = end.clone();
            std::thread::spawn(move || {
                keep_end(pipe, &end);
                // Nobody waits any more: no matter.
                let _ = sender.send(());
            });
        }
        Self { end, over }
    }

    /// The last lines, as one line without control characters.
    pub fn said(self) -> String {
        // No pipe: the sender is gone, and this returns at once.
        let _ = self.over.recv_timeout(PATIENCE);
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = end.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        // Of a cut text the first line is a piece.
        let whole = match (bytes.len() < KEPT, text.split_once('\n')) {
            (false, Some((_, rest))) if !rest.trim().is_empty() => rest,
            _ => &text,
        };
        let lines = whole.lines().map(str::trim).filter(|l| !l.is_empty());
        let joined = lines.collect::<Vec<_>>().join("; ");
        joined.chars().filter(|c| !c.is_control()).collect()
    }
}

fn keep_end(mut from: impl Read, end: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
        end.extend(&buffer[..n]);
        let over = end.len().saturating_sub(KEPT);
        end.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let end = Arc::new(Mutex::new(VecDeque::new()));
        keep_end(text.as_bytes(), &end);
        let over = mpsc::channel().1;
        Hushed { end, over }.said()
    }

    #[test]
    fn the_last_whole_lines_are_kept() {
        assert_eq!(said(""), "");
        assert_eq!(said("one\n\n two \x1b[31m\n"), "one; two [31m");
        let long: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        let end = said(&long);
        assert!(
            end.starts_with("line 49") && end.ends_with("; line 4999"),
            "{end}"
        );
        assert!(end.len() <= KEPT + KEPT / 8);
        // One line without an end stays, however long.
        assert_eq!(said(&"x".repeat(5000)), "x".repeat(KEPT));
    }
}
