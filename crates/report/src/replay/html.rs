//! A replay as one HTML file, in the look of the study's.

use askama::Template;

use super::{
    Replay,
    curves::curve_matrix,
    findings::{findings, sentences, warnings},
    grid::Grid,
    matrix::{Matrix, Row, corner, matrices},
    plots::{class, plots},
    table::{PARTIAL, facts, trace_rows},
};
use crate::{
    ReportError,
    format::{clean, grouped, number},
    html::Section,
};

/// Columns of sizes that fit beside each other, on paper too.
const MAX_COLUMNS: usize = 10;

#[derive(Template)]
#[template(path = "replay.html")]
struct Page {
    title: String,
    css: &'static str,
    partial: bool,
    partial_text: &'static str,
    warnings: Vec<String>,
    headline: String,
    sentences: Vec<String>,
    facts: Vec<(&'static str, String)>,
    traces_head: Option<[String; 8]>,
    traces: Vec<[String; 8]>,
    /// Class of the colour, name, description.
    policies: Vec<[String; 3]>,
    layout: String,
    notes: Vec<String>,
    sections: Vec<Section>,
    corner: &'static str,
    tables: Vec<Numbers>,
    command: Option<String>,
    version: String,
}

/// One quantity, in as many tables as its columns need.
struct Numbers {
    title: String,
    how: String,
    /// Whether the best cells of a column are told.
    judged: bool,
    blocks: Vec<Block>,
}

struct Block {
    heads: Vec<String>,
    rows: Vec<Row>,
}

/// The replay as a self-contained HTML page. Lengths of sequences are shown at the two
/// sizes where the gap in time between the first two policies is smallest and largest, as
/// in DULO (FAST'05); [`replay_to_html_at`] takes other sizes.
///
/// # Errors
/// [`ReportError::Chart`] or [`ReportError::Html`], as for a study's page.
pub fn replay_to_html(replay: &Replay) -> Result<String, ReportError> {
    replay_to_html_at(replay, &[])
}

/// Like [`replay_to_html`], with the lengths of sequences at `cdf_sizes` (pages). Sizes
/// that were not replayed are left out; if none is left, it is the same page.
///
/// # Errors
/// As [`replay_to_html`].
pub fn replay_to_html_at(replay: &Replay, cdf_sizes: &[u64]) -> Result<String, ReportError> {
    let grid = Grid::new(replay);
    let plots = plots(&grid, cdf_sizes)?;
    let mut sentences = sentences(&findings(&grid)).into_iter();
    let tables = matrices(&grid).into_iter().chain(plots.tables);
    let mut traces = trace_rows(replay).into_iter();
    let page = Page {
        title: clean(&replay.title),
        css: include_str!("../../templates/report.css"),
        partial: !replay.complete,
        partial_text: PARTIAL,
        warnings: warnings(&grid),
        headline: sentences.next().unwrap_or_default(),
        sentences: sentences.collect(),
        facts: page_facts(replay),
        traces_head: traces.next(),
        traces: traces.collect(),
        policies: policies(&grid),
        layout: clean(&replay.conditions.layout),
        notes: replay.conditions.notes.iter().map(|n| clean(n)).collect(),
        sections: plots.sections,
        corner: corner(replay),
        tables: tables.chain(curve_matrix(replay)).map(numbers).collect(),
        command: replay.command.as_deref().map(clean),
        version: clean(&replay.version),
    };
    Ok(page.render()?)
}

fn page_facts(replay: &Replay) -> Vec<(&'static str, String)> {
    let mut all = facts(replay);
    all.push(("runs", grouped(replay.runs.len() as u64)));
    all.push(("replay took", format!("{} s", number(replay.host_seconds))));
    all
}

fn policies(grid: &Grid<'_>) -> Vec<[String; 3]> {
    let policy = |(p, name): (usize, &&str)| {
        let known = grid
            .replay
            .policies
            .iter()
            .find(|known| known.name == **name);
        let about = known.map_or_else(String::new, |known| clean(&known.about));
        [class(p), grid.name(p), about]
    };
    grid.policies.iter().enumerate().map(policy).collect()
}

fn numbers(matrix: Matrix) -> Numbers {
    let columns = matrix.heads.len();
    let block = |start: usize| {
        let part = start..columns.min(start + MAX_COLUMNS);
        let row = |r: &Row| Row {
            name: r.name.clone(),
            cells: r.cells.get(part.clone()).unwrap_or_default().to_vec(),
        };
        Block {
            heads: matrix.heads[part.clone()].to_vec(),
            rows: matrix.rows.iter().map(row).collect(),
        }
    };
    Numbers {
        blocks: (0..columns).step_by(MAX_COLUMNS).map(block).collect(),
        judged: matrix.judged,
        title: matrix.title,
        how: matrix.how,
    }
}
