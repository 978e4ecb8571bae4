//! A reproduction as text for a terminal or a pipe.

use std::fmt::Write as _;

use comfy_table::Cell;

use super::{CaseTable, Predicate, Published, Reproduction, Target, Value};
use crate::{
    TableStyle,
    format::{clean, effort, grouped, number},
    table::{paragraph, right, table},
};

/// Rows of single cases that a terminal is shown.
const MOST_ROWS: usize = 40;

/// The verdicts at a glance, then each target with the paper's numbers beside ours.
pub fn reproduction_to_table(r: &Reproduction, style: &TableStyle) -> String {
    let heading = |text: &str| match style.bold {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let mut out = String::new();
    let _ = writeln!(out, "{}", heading(&clean(&r.title)));
    for condition in &r.conditions {
        paragraph(&mut out, &clean(condition), style.width);
    }
    let mut shown = table(["target", "result", "kind", "verdict"].map(str::to_owned));
    for t in &r.targets {
        shown.add_row([
            Cell::new(clean(&t.id)),
            Cell::new(clean(&t.title)),
            Cell::new(format!("{:?}", t.kind)),
            Cell::new(t.verdict.as_str()),
        ]);
    }
    let _ = writeln!(out, "\n{shown}\n{}.", r.summary());
    for t in &r.targets {
        let title = heading(&format!("{} {}", clean(&t.id), clean(&t.title)));
        let _ = writeln!(out, "\n{title}: {}", t.verdict.as_str());
        target(&mut out, r, t, style.width);
    }
    out.push('\n');
    let budget = match r.budget_refs {
        // Not all runs are measured by their references.
        0 => String::new(),
        refs => format!(
            "{} references per program and run after {} of warm-up, ",
            grouped(refs),
            grouped(r.warmup_refs)
        ),
    };
    let spent = format!(
        "{budget}seed {}; simulated {} references in {}, piebald {}{}.",
        r.seed,
        grouped(r.simulated_refs),
        effort(r.simulated_refs, r.host_seconds, r.stored),
        clean(&r.version),
        if r.quick { "; the quick form" } else { "" },
    );
    paragraph(&mut out, &spent, style.width);
    out
}

fn target(out: &mut String, r: &Reproduction, t: &Target, width: usize) {
    if let Some(why) = &t.why {
        paragraph(out, &clean(why), width);
    }
    let marks = [
        (
            t.stand_in,
            "Programs stand in for others that cannot be had.",
        ),
        (t.calibrated, "The model was calibrated with this row."),
    ];
    for (_, text) in marks.iter().filter(|(is, _)| *is) {
        paragraph(out, text, width);
    }
    if !t.values.is_empty() {
        let mut shown = table(r.headings());
        for value in &t.values {
            let mut texts = r.row(value).into_iter();
            let name = texts.next().map(Cell::new);
            shown.add_row(name.into_iter().chain(texts.map(right)));
        }
        let _ = writeln!(out, "{shown}");
    }
    for p in &t.predicates {
        paragraph(out, &format!("{} {}", mark(p), clean(&p.text)), width);
    }
    for cases in t.tables.iter().map(CaseTable::cleaned) {
        if cases.rows.len() > MOST_ROWS {
            let text = format!(
                "{}: {} rows, in report.html and in the JSON.",
                cases.title,
                cases.rows.len()
            );
            paragraph(out, &text, width);
            continue;
        }
        let mut shown = table(cases.columns);
        for row in cases.rows {
            let mut texts = row.into_iter();
            let name = texts.next().map(Cell::new);
            shown.add_row(name.into_iter().chain(texts.map(right)));
        }
        let _ = writeln!(out, "{}:\n{shown}", cases.title);
    }
}

/// How a predicate begins.
pub(super) fn mark(p: &Predicate) -> &'static str {
    match p.holds {
        Some(true) => "[holds]",
        Some(false) => "[fails]",
        None => "[not run]",
    }
}

/// The paper's number, ours, and our interval.
pub(super) fn cells(value: &Value) -> [String; 3] {
    let paper = match &value.paper {
        Published::Number(n) => number(*n),
        Published::Text(text) => clean(text),
        Published::Nothing => "-".to_owned(),
    };
    let measured = value.measured.map_or_else(|| "-".to_owned(), number);
    let interval = value.ci95.map_or_else(String::new, |[low, high]| {
        format!("{} to {}", number(low), number(high))
    });
    [paper, measured, interval]
}
