//! A reproduction as one HTML file, in the look of the study's.

use askama::Template;

use super::{CaseTable, Reproduction, Target, table::mark};
use crate::{
    ReportError,
    chart::{PALETTE, PanelAxes, dash, is_cut, panel},
    format::{clean, effort, grouped},
};

/// Said of a figure with an interval that its picture cuts.
const CUT: &str = "A bar without an end goes on beyond the picture.";

#[derive(Template)]
#[template(path = "reproduction.html")]
struct Page {
    title: String,
    css: &'static str,
    /// A reproduction is written when it is whole.
    partial: bool,
    quick: bool,
    summary: String,
    conditions: Vec<String>,
    facts: Vec<(&'static str, String)>,
    headings: Vec<String>,
    targets: Vec<Row>,
    figures: Vec<Figure>,
    command: Option<String>,
    version: String,
}

/// A target.
struct Row {
    id: String,
    title: String,
    kind: String,
    verdict: &'static str,
    class: &'static str,
    why: Option<String>,
    stand_in: bool,
    calibrated: bool,
    /// As the headings say.
    values: Vec<Vec<String>>,
    /// Mark and statement.
    predicates: Vec<(&'static str, String)>,
    tables: Vec<CaseTable>,
}

struct Figure {
    name: String,
    text: String,
    /// Class of the colour, and name.
    legend: Vec<(String, String)>,
    /// Title and SVG source.
    panels: Vec<(String, String)>,
}

/// The reproduction as a self-contained HTML page.
///
/// # Errors
/// [`ReportError::Chart`] or [`ReportError::Html`], as for a study's page.
pub fn reproduction_to_html(r: &Reproduction) -> Result<String, ReportError> {
    let page = Page {
        title: clean(&r.title),
        css: include_str!("../../templates/report.css"),
        partial: false,
        quick: r.quick,
        summary: r.summary(),
        conditions: r.conditions.iter().map(|c| clean(c)).collect(),
        facts: spent(r),
        headings: r.headings(),
        targets: r.targets.iter().map(|t| row(r, t)).collect(),
        figures: figures(r)?,
        command: r.command.as_deref().map(clean),
        version: clean(&r.version),
    };
    Ok(page.render()?)
}

fn spent(r: &Reproduction) -> Vec<(&'static str, String)> {
    // Not all runs are measured by their references.
    let budget = [
        ("references per program and run", r.budget_refs),
        ("warm-up references", r.warmup_refs),
    ];
    let budget = budget.into_iter().filter(|_| r.budget_refs > 0);
    let mut facts: Vec<_> = budget.map(|(name, n)| (name, grouped(n))).collect();
    facts.extend([
        ("seed", r.seed.to_string()),
        ("references simulated", grouped(r.simulated_refs)),
        (
            "simulation took",
            effort(r.simulated_refs, r.host_seconds, r.stored),
        ),
    ]);
    facts
}

fn row(r: &Reproduction, t: &Target) -> Row {
    Row {
        id: clean(&t.id),
        title: clean(&t.title),
        kind: format!("{:?}", t.kind),
        verdict: t.verdict.as_str(),
        class: match t.verdict {
            super::Verdict::Match => "match",
            super::Verdict::Near => "near",
            super::Verdict::Miss => "miss",
            super::Verdict::Given | super::Verdict::NotRun => "other",
        },
        why: t.why.as_deref().map(clean),
        stand_in: t.stand_in,
        calibrated: t.calibrated,
        values: t.values.iter().map(|v| r.row(v)).collect(),
        predicates: t
            .predicates
            .iter()
            .map(|p| (mark(p), clean(&p.text)))
            .collect(),
        tables: t.tables.iter().map(CaseTable::cleaned).collect(),
    }
}

fn figures(r: &Reproduction) -> Result<Vec<Figure>, ReportError> {
    let mut figures = Vec::new();
    for figure in &r.figures {
        let mut names: Vec<&str> = Vec::new();
        let mut legend = Vec::new();
        for curve in figure.panels.iter().flat_map(|p| &p.curves) {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
            let place = names.iter().position(|n| *n == curve.name).unwrap_or(0);
            let class = format!("p{}", place % PALETTE.len());
            let word = dash(curve, place).word();
            let entry = (class, format!("{}{word}", clean(&curve.name)));
            if !legend.contains(&entry) {
                legend.push(entry);
            }
        }
        let axes = PanelAxes {
            x: &figure.x,
            x_names: &figure.x_names,
            y: &figure.y,
            names: &names,
        };
        let mut panels = Vec::new();
        for of in &figure.panels {
            let svg = panel(of, &axes)?;
            panels.extend(svg.map(|svg| (clean(&of.title), svg)));
        }
        figures.push(Figure {
            name: clean(&figure.name),
            text: match figure.panels.iter().any(is_cut) {
                true if figure.text.is_empty() => CUT.to_owned(),
                true => format!("{}. {CUT}", clean(&figure.text).trim_end_matches('.')),
                false => clean(&figure.text),
            },
            legend,
            panels,
        });
    }
    Ok(figures)
}
