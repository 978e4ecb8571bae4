//! A replay as text for a terminal or a pipe.

use std::fmt::Write as _;

use super::{
    Replay,
    curves::curve_matrix,
    findings::{findings, sentences, warnings},
    grid::{Grid, bytes_text},
    matrix::{Matrix, Row, Shown, corner, matrices},
};
use crate::{
    TableStyle,
    format::{clean, effort, grouped, number, short},
    table::{add_row, paragraph, side_by_side, table},
};

/// Longest name of a trace.
const PATH_CHARS: usize = 40;

/// Traces and conditions, what was found, then one table for each quantity: policies
/// down, memory sizes across, in blocks where they do not fit beside each other. The
/// HTML page has further quantities, the CSV all of them.
pub fn replay_to_table(replay: &Replay, style: &TableStyle) -> String {
    let heading = |text: &str| match style.bold {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let grid = Grid::new(replay);
    let mut out = String::new();
    if !replay.complete {
        let mark = heading(&format!("PARTIAL: {PARTIAL}"));
        let _ = writeln!(out, "{mark}\n");
    }
    let _ = writeln!(out, "{}", heading(&clean(&replay.title)));
    traces(&mut out, replay);
    paragraph(&mut out, &conditions(replay), style.width);
    for note in &replay.conditions.notes {
        paragraph(&mut out, &format!("Note: {}", clean(note)), style.width);
    }
    for warning in warnings(&grid) {
        paragraph(&mut out, &format!("Warning: {warning}"), style.width);
    }
    out.push('\n');
    for claim in sentences(&findings(&grid)) {
        paragraph(&mut out, &claim, style.width);
    }
    let shown = matrices(&grid).into_iter().filter(|m| !m.detail);
    let corner = corner(replay);
    for matrix in shown.chain(curve_matrix(replay)) {
        let _ = writeln!(out, "\n{}", heading(&matrix.title));
        paragraph_of(&mut out, &matrix.how, style.width);
        blocks(&mut out, corner, &matrix, style.width);
    }
    closing(&mut out, &grid, style.width);
    out
}

/// What an interrupted replay says of itself.
pub(super) const PARTIAL: &str =
    "The replay was interrupted; the numbers cover only what was replayed.";

fn paragraph_of(out: &mut String, text: &str, width: usize) {
    if !text.is_empty() {
        paragraph(out, text, width);
    }
}

fn traces(out: &mut String, replay: &Replay) {
    let [head, rows @ ..] = &trace_rows(replay)[..] else {
        return;
    };
    if rows.is_empty() {
        return;
    }
    let mut shown = table(head.clone());
    rows.iter().for_each(|r| add_row(&mut shown, r.to_vec()));
    let _ = writeln!(out, "{shown}");
}

/// The head and a row for each trace.
pub(super) fn trace_rows(replay: &Replay) -> Vec<[String; 8]> {
    let (references, different) = match replay.has_bytes() {
        true => ("object\nreferences", "different\nobjects"),
        false => ("page\nreferences", "different\npages"),
    };
    let head = [
        "trace",
        "format",
        "requests",
        references,
        "writes\n[%]",
        different,
        "size of\nthese",
        "sequential\n[%]",
    ];
    let row = |(nth, t): (usize, &super::ReplayTrace)| {
        let writes = 100.0 * t.writes as f64 / t.references as f64;
        let percent = |v: f64| match v.is_finite() {
            true => format!("{v:.1}"),
            false => number(v),
        };
        let [path, format] = [&t.path, &t.format].map(|text| short(text, PATH_CHARS));
        // What is counted of all traces together stands with the first.
        if nth > 0 {
            let empty = String::new;
            let requests = grouped(t.requests);
            return [
                path,
                format,
                requests,
                empty(),
                empty(),
                empty(),
                empty(),
                empty(),
            ];
        }
        [
            path,
            format,
            grouped(t.requests),
            grouped(t.references),
            percent(writes),
            grouped(t.unique_pages),
            match (t.object_bytes, replay.conditions.page_bytes) {
                (Some(bytes), _) => bytes_text(bytes),
                (None, 0) => "-".to_owned(),
                (None, _) => bytes_text(replay.bytes(t.unique_pages)),
            },
            percent(100.0 * t.sequential_share),
        ]
    };
    let head = std::iter::once(head.map(str::to_owned));
    head.chain(replay.traces.iter().enumerate().map(row))
        .collect()
}

/// Device and all that belongs to it in one paragraph.
fn conditions(replay: &Replay) -> String {
    let facts = facts(replay);
    let texts = facts.iter().map(|(name, value)| format!("{name}: {value}"));
    let mut text = texts.collect::<Vec<_>>().join("; ");
    text.push('.');
    let layout = clean(&replay.conditions.layout);
    match layout.is_empty() {
        true => text,
        false => format!("{text} Layout: {layout}"),
    }
}

/// Conditions, each with its name; those of a device only with one.
pub(super) fn facts(replay: &Replay) -> Vec<(&'static str, String)> {
    let c = &replay.conditions;
    let mut facts = match replay.has_device() {
        false => vec![("device", "none: a cache without a disk below".to_owned())],
        true => vec![
            ("device", clean(&c.device)),
            ("readahead", clean(&c.readahead)),
            ("scheduler", clean(&c.scheduler)),
            ("pace", pace(&c.pace)),
        ],
    };
    let page = match replay.has_bytes() {
        true => "none: objects take their bytes".to_owned(),
        false => bytes_text(c.page_bytes),
    };
    facts.extend([
        ("page", page),
        ("warm-up references", grouped(c.warmup_references)),
        ("seed", c.seed.to_string()),
    ]);
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// The pace in words.
fn pace(pace: &str) -> String {
    match pace {
        "serial" => "serial (one request after another)".to_owned(),
        "tasks" | "closed" => {
            format!("{pace} (each task goes on when its last request is done)")
        }
        "timed" | "open" => format!("{pace} (requests come at the trace's times)"),
        "clients" => format!("{pace} (each asks again when it has its answer)"),
        other => clean(other),
    }
}

/// The matrix in as many blocks as the width needs.
fn blocks(out: &mut String, corner: &str, matrix: &Matrix, width: usize) {
    let columns: Vec<usize> = (0..matrix.heads.len()).collect();
    for block in side_by_side(&columns, width, |columns| block(corner, matrix, columns)) {
        let _ = writeln!(out, "{block}");
    }
}

fn block(corner: &str, matrix: &Matrix, columns: &[usize]) -> comfy_table::Table {
    let heads = columns.iter().filter_map(|c| matrix.heads.get(*c)).cloned();
    let mut shown = table(std::iter::once(corner.to_owned()).chain(heads));
    for Row { name, cells } in &matrix.rows {
        let cells = columns.iter().filter_map(|c| cells.get(*c));
        let cells = cells.map(|Shown { text, .. }| text.clone());
        add_row(
            &mut shown,
            std::iter::once(name.clone()).chain(cells).collect(),
        );
    }
    shown
}

fn closing(out: &mut String, grid: &Grid<'_>, width: usize) {
    let replay = grid.replay;
    let references = replay.runs.iter().map(|r| r.references);
    let references = references.fold(0, u64::saturating_add);
    let spent = format!(
        "{} run{}, {} references counted in {}, piebald {}.",
        replay.runs.len(),
        if replay.runs.len() == 1 { "" } else { "s" },
        grouped(references),
        effort(references, replay.host_seconds, 0),
        clean(&replay.version),
    );
    out.push('\n');
    paragraph(out, &spent, width);
    if !replay.complete {
        let _ = writeln!(out, "PARTIAL: the replay was interrupted.");
    }
}
