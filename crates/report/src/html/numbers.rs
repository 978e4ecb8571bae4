//! Every number as a table: one per program, policies across.

use crate::{
    ProgramResult, Study,
    format::{cell, clean},
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
pub(crate) fn program_numbers(study: &Study) -> Vec<ProgramNumbers> {
    let names = rows::program_names(&study.policies);
    names.iter().map(|name| one(study, name)).collect()
}

fn one(study: &Study, name: &str) -> ProgramNumbers {
    let found: Vec<(&str, &ProgramResult)> = study
        .policies
        .iter()
        .filter_map(|p| Some((p.name.as_str(), rows::find(p, name)?)))
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
        rows: lines
            .iter()
            .map(|line| {
                let scale = line.kind.scale(line.largest());
                let columns = programs.iter().zip(&line.cells);
                let samples =
                    columns.flat_map(|(p, pair)| Phase::BOTH.into_iter().zip(pair).take(phases(p)));
                NumberRow {
                    label: clean(&line.label),
                    cells: samples
                        .map(|(phase, s)| {
                            (
                                phase,
                                s.map_or_else(String::new, |s| cell(s, &line.kind, &scale)),
                            )
                        })
                        .collect(),
                    unit: scale.unit,
                }
            })
            .collect(),
    }
}
