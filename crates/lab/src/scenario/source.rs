//! The text of a scenario.

use std::path::Path;

use piebald_experiment::{Document, Refused, read_text};
use piebald_trace::{detect::detect, recording::is_recording};

/// No scenario is longer.
const MOST_BYTES: u64 = 1 << 20;

/// A scenario's file, or standard input. What is something else that Piebald knows is called
/// by its name.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn document(path: &Path) -> Result<Document, Refused> {
    let refuse = |says: String| Refused::unread(path, says);
    let unread = |e: std::io::Error| refuse(format!("cannot be read: {e}"));
    if Document::is_stdin(path) {
        return Document::read(path);
    }
    let file = path.display();
    if path.is_file() && is_recording(path).map_err(unread)? {
        return Err(refuse(format!(
            "is a recording, not a scenario; allowed: a scenario (TOML) that runs it as a program: \
             [[program]] with recording = \"{file}\""
        )));
    }
    let read = read_text(path);
    let is_toml = |text: &String| toml::from_str::<toml::Table>(text).is_ok();
    if !read.as_ref().is_ok_and(is_toml)
        && path.is_file()
        && let Ok(format) = detect(path)
    {
        return Err(refuse(format!(
            "is a trace ({}), not a scenario; allowed: a scenario (TOML)",
            format.name()
        )));
    }
    let text = read.map_err(|e| refuse(e.to_string()))?;
    Ok(Document::new(path, text))
}

/// Is this file a scenario? So that other verbs can say so.
pub fn is_scenario(path: &Path) -> bool {
    let small = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() < MOST_BYTES);
    let text = small.then(|| std::fs::read_to_string(path).ok()).flatten();
    let table = text.and_then(|text| toml::from_str::<toml::Table>(&text).ok());
    table.is_some_and(|t| t.contains_key("program") && t.contains_key("schema"))
}
