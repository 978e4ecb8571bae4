//! Every number as a table: one per program, policies across.

use crate::{
    ProgramResult, Sample, Study,
    format::{cell, clean},
    marks::Marks,
    rows,
};

/// All numbers of one program.
pub(crate) struct ProgramNumbers {
    pub name: String,
    /// Policies: name, and how many columns it spans (alone, or both phases).
    pub heads: Vec<(String, usize)>,
    /// Below them, for each column.
    pub phases: Vec<Phase>,
    pub rows: Vec<NumberRow>,
}

/// One quantity.
pub(crate) struct NumberRow {
    pub label: String,
    pub unit: String,
    /// The phase of the column, and what stands in it.
    pub cells: Vec<(Phase, String)>,
}

/// In which company a column was measured.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Phase {
    Alone,
    Together,
}

impl Phase {
    const BOTH: [Self; 2] = [Self::Alone, Self::Together];

    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Together => "together",
        }
    }
}

/// One table per program.
pub(crate) fn program_numbers(study: &Study, marks: &Marks) -> Vec<ProgramNumbers> {
    let names = rows::program_names(&study.policies);
    let all = names.iter().map(|name| one(study, marks, name));
    all.filter(|table| !table.heads.is_empty()).collect()
}

fn one(study: &Study, marks: &Marks, name: &str) -> ProgramNumbers {
    let found: Vec<(&str, &ProgramResult)> = study
        .policies
        .iter()
        .filter_map(|p| Some((p.name.as_str(), rows::find(p, name)?)))
        .filter(|(_, program)| program.is_run())
        .collect();
    let phases = |p: &ProgramResult| 1 + usize::from(p.together.is_some());
    let programs: Vec<&ProgramResult> = found.iter().map(|(_, p)| *p).collect();
    let lines = rows::lines(&programs);
    ProgramNumbers {
        name: clean(name),
        heads: found
            .iter()
            .map(|(policy, p)| (clean(policy), phases(p)))
            .collect(),
        phases: programs
            .iter()
            .flat_map(|p| Phase::BOTH.into_iter().take(phases(p)))
            .collect(),
        rows: color_row(&programs)
            .into_iter()
            .chain(lines.iter().map(|line| {
                let scale = line.kind.scale(line.largest());
                let columns = found.iter().zip(&line.cells);
                let samples = columns.flat_map(|((policy, p), pair)| {
                    let both = Phase::BOTH.into_iter().zip(pair).take(phases(p));
                    both.map(move |(phase, s)| (*policy, phase, s))
                });
                let shown = |policy: &str, s: &Sample| match cell(s, &line.kind, &scale) {
                    text if line.judged => marks.marked(policy, name, text),
                    text => text,
                };
                NumberRow {
                    label: clean(&line.label),
                    cells: samples
                        .map(|(policy, phase, s)| {
                            (phase, s.map_or_else(String::new, |s| shown(policy, s)))
                        })
                        .collect(),
                    unit: scale.unit,
                }
            }))
            .collect(),
    }
}

/// The colours and pages of each column, if any has colours.
fn color_row(programs: &[&ProgramResult]) -> Option<NumberRow> {
    let mut cells = Vec::new();
    for program in programs {
        let both = [Some(&program.alone), program.together.as_ref()];
        for (phase, metrics) in Phase::BOTH.into_iter().zip(both) {
            let Some(metrics) = metrics else { continue };
            cells.push((phase, rows::colors_and_pages(metrics)));
        }
    }
    cells
        .iter()
        .any(|(_, text)| text.is_some())
        .then(|| NumberRow {
            label: rows::COLORS_AND_PAGES.to_owned(),
            unit: String::new(),
            cells: (cells.into_iter())
                .map(|(phase, text)| (phase, text.unwrap_or_default()))
                .collect(),
        })
}
