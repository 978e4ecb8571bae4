//! The quantities of a record as rows: one list that the table, the CSV and the
//! HTML report share, so that none of them can forget one.

use crate::{
    Metrics, PolicyResult, ProgramResult, Sample,
    format::{Kind, cell, clean},
    metrics::{HUGE_PAGES, METRICS},
};

/// One quantity of one phase.
pub(crate) struct Row<'a> {
    /// Name in machine-read output, unique within a phase.
    pub key: String,
    /// Name for people.
    pub label: String,
    pub kind: Kind,
    pub sample: &'a Sample,
}

/// All quantities that a phase has, in the order in which they are shown.
pub(crate) fn rows(m: &Metrics) -> Vec<Row<'_>> {
    let mut out = Vec::new();
    let mut push = |key: &str, label: &str, kind: Kind, sample| {
        let (key, label) = (key.to_owned(), label.to_owned());
        out.push(Row {
            key,
            label,
            kind,
            sample,
        });
    };
    for metric in &METRICS {
        let Some(shown) = &metric.shown else { continue };
        for level in m.mpki.iter().filter(|_| shown.levels_first) {
            let (key, label) = (
                format!("mpki_{}", level.level),
                format!("{} misses", level.level),
            );
            push(&key, &label, Kind::PerKilo, &level.mpki);
        }
        if let Some(sample) = (metric.get)(m) {
            push(shown.key, shown.label, shown.kind.clone(), sample);
        }
    }
    for extra in &m.extra {
        let kind = match extra.unit.as_str() {
            "" => Kind::Count,
            unit => Kind::Other(unit.to_owned()),
        };
        push(&extra.name, &extra.name, kind, &extra.value);
    }
    out
}

/// The colours that a program's pages could have, and the number of its pages.
pub(crate) fn colors_and_pages(m: &Metrics) -> Option<String> {
    let colors = m.colors.as_ref()?;
    let set = colors.allowed.as_deref().unwrap_or("all");
    // The pages have a row of their own, which shows how they vary.
    let mean = Sample::new(vec![m.pages.mean]);
    let pages = cell(&mean, &Kind::Count, &Kind::Count.scale(mean.mean));
    Some(format!("{} / {pages}", clean(set)))
}

/// Label of [`colors_and_pages`].
pub(crate) const COLORS_AND_PAGES: &str = "colors / pages (4 KiB)";

/// One line of a comparison: the same quantity for several programs or policies.
pub(crate) struct Line<'a> {
    pub label: String,
    pub kind: Kind,
    /// Whether it is the slowdown, which the report judges.
    pub judged: bool,
    /// Alone and together, per column; `None` where a column lacks the quantity.
    pub cells: Vec<[Option<&'a Sample>; 2]>,
}

impl Line<'_> {
    /// The largest magnitude in the line, which decides its unit.
    pub fn largest(&self) -> f64 {
        let known = self.cells.iter().flatten().flatten();
        known
            .map(|s| s.mean.abs())
            .filter(|m| m.is_finite())
            .fold(0.0, f64::max)
    }
}

/// Lines of all quantities that any of the columns has, slowdown after time.
pub(crate) fn lines<'a>(columns: &[&'a ProgramResult]) -> Vec<Line<'a>> {
    let mut keys = Vec::new();
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (column, program) in columns.iter().enumerate() {
        for (phase, metrics) in [Some(&program.alone), program.together.as_ref()]
            .into_iter()
            .enumerate()
        {
            for row in metrics.map(rows).unwrap_or_default() {
                let at = keys.iter().position(|k| *k == row.key).unwrap_or_else(|| {
                    let cells = vec![[None, None]; columns.len()];
                    keys.push(row.key);
                    lines.push(Line {
                        label: row.label,
                        kind: row.kind,
                        judged: false,
                        cells,
                    });
                    keys.len() - 1
                });
                lines[at].cells[column][phase] = Some(row.sample);
            }
        }
    }
    if columns.iter().any(|p| p.slowdown.is_some()) {
        let cells = columns
            .iter()
            .map(|p| [None, p.slowdown.as_ref()])
            .collect();
        let at = lines.len().min(1);
        lines.insert(
            at,
            Line {
                label: "slowdown".to_owned(),
                kind: Kind::Change,
                judged: true,
                cells,
            },
        );
    }
    // A row of zeros in every column says nothing; huge pages are mostly that.
    lines.retain(|l| l.label != HUGE_PAGES || l.largest() > 0.0);
    lines
}

/// Names of the programs of all policies, in order of first appearance.
pub(crate) fn program_names(policies: &[PolicyResult]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for program in policies.iter().flat_map(|p| &p.programs) {
        if !names.contains(&program.name.as_str()) {
            names.push(&program.name);
        }
    }
    names
}

/// The program of that name under a policy.
pub(crate) fn find<'a>(policy: &'a PolicyResult, name: &str) -> Option<&'a ProgramResult> {
    policy.programs.iter().find(|p| p.name == name)
}
