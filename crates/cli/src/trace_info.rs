//! A foreign trace in words.

use std::{fmt::Write as _, path::Path};

use piebald_trace::{
    about::{About, Form},
    foreign::{Ending, Summary},
};

/// Threads whose ends are told one by one.
const SHOWN_THREADS: usize = 8;

/// What a trace holds, one fact in a line.
pub(crate) fn describe(file: &Path, summary: &Summary) -> String {
    let mut out = format!("{}: {} trace\n", file.display(), summary.format);
    let mut line = |text: String| {
        let _ = writeln!(out, "  {text}");
    };
    if let Some(fields) = read_as(summary.format.about()) {
        line(fields);
    }
    let [loads, stores, updates, fetches, streaming] = summary.refs;
    let mut kinds = format!("{loads} loads, {stores} stores, {updates} updates");
    if summary.format.has_instructions() {
        kinds += &format!(", {fetches} fetches (where control enters a line or jumps)");
    }
    if streaming > 0 {
        kinds += &format!(", {streaming} non-temporal loads");
    }
    line(kinds);
    line(format!(
        "{} instructions, {} system calls",
        summary.instructions, summary.calls
    ));
    line(format!(
        "{} pages of 4 KiB, {} lines of 64 bytes",
        summary.pages, summary.lines
    ));
    if let Some(range) = summary.range {
        line(format!(
            "addresses {:#x} to {:#x}",
            range.lowest, range.highest
        ));
    }
    if summary.filtered {
        line("filtered: what hit in the tracer's caches is not there".to_owned());
    }
    if !summary.format.has_instructions() {
        line("no instruction addresses: nothing is fetched".to_owned());
    }
    if let Some(what) = summary.format.assumes() {
        line(format!("assumed: {what}"));
    }
    if summary.notes.unended_lines > 0 {
        let n = summary.notes.unended_lines;
        line(format!("noted: {n} last lines without a line feed"));
    }
    skipped(summary, &mut line);
    for (n, ending) in summary.endings.iter().enumerate().take(SHOWN_THREADS) {
        line(thread(n, ending, summary));
    }
    if let Some(more) = summary.endings.len().checked_sub(SHOWN_THREADS + 1) {
        line(format!("and {} more threads", more + 1));
    }
    out
}

/// What the fields of a text are taken for, with their units: other tools write the same columns in others.
pub(crate) fn read_as(about: &About) -> Option<String> {
    let Form::Text { fields, .. } = about.form else {
        return None;
    };
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, holds)| format!("{name} ({holds})"))
        .collect();
    (!fields.is_empty()).then(|| format!("fields: {}", fields.join(", ")))
}

fn skipped(summary: &Summary, line: &mut impl FnMut(String)) {
    let skipped = &summary.skipped;
    let counts = [
        (skipped.prefetches, "prefetches"),
        (skipped.flushes, "flushes"),
        (skipped.markers, "markers"),
        (skipped.comments, "comments"),
        (skipped.repeats, "repeated instructions"),
    ];
    let told: Vec<String> = counts
        .iter()
        .filter(|c| c.0 > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    if !told.is_empty() {
        line(format!("passed over: {}", told.join(", ")));
    }
}

fn thread(n: usize, ending: &Ending, summary: &Summary) -> String {
    let identity = summary.identities.get(n).copied().unwrap_or_default();
    let mut who = format!("thread {n}");
    if let Some(process) = identity.process {
        who += &format!(", process {process}");
    }
    if let Some(id) = identity.thread {
        who += &format!(", id {id}");
    }
    match ending {
        Ending::Exit(status) => format!("{who}: exits with {status}"),
        Ending::End if summary.format.writes_ends() => {
            format!("{who}: CUT, its exit is missing, which a whole file has")
        }
        Ending::End => format!("{who}: ends with its file"),
        Ending::Broken(_) => format!("{who}: DAMAGED, the numbers hold what came before"),
    }
}

/// The first damage, with its place.
pub(crate) fn damage(summary: &Summary) -> Option<&str> {
    summary.endings.iter().find_map(|e| match e {
        Ending::Broken(why) => Some(why.as_str()),
        _ => None,
    })
}
