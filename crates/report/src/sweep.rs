//! Studies of all points of a sweep: one table, one list of records.

use comfy_table::Cell;

use crate::{
    ProgramResult, ReportError, Sample, Study, TableStyle,
    csv::csv_of,
    format::{Kind, cell, clean, short},
    headline::findings_together,
    json,
    marks::Marks,
    rows::{Row, rows},
    table::{right, table},
};

/// Longest name or value in a column.
const CHARS: usize = 24;

/// What is shown of a program at a point.
const SHOWN: [(&str, Phase, &str); 4] = [
    ("time alone", Phase::Alone, "time"),
    ("time together", Phase::Together, "time"),
    ("IPC alone", Phase::Alone, "ipc"),
    ("IPC together", Phase::Together, "ipc"),
];

/// A study at its point, with what may be claimed of it.
#[derive(Clone, Copy)]
struct Point<'a> {
    study: &'a Study,
    marks: &'a Marks,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Alone,
    Together,
}

/// One table of all points: axes, policy and program, and what each came to. What was not run is
/// left out.
pub fn sweep_to_table(studies: &[Study], style: &TableStyle) -> String {
    let Some(first) = studies.first() else {
        return String::new();
    };
    let title = clean(&first.title);
    let mut out = match style.bold {
        true => format!("\x1b[1m{title}\x1b[0m\n"),
        false => format!("{title}\n"),
    };
    let marks = Marks::of_all(studies);
    let programs = || {
        studies.iter().zip(&marks).flat_map(|(study, marks)| {
            let policies = study.policies.iter();
            policies.flat_map(move |policy| {
                let programs = policy.programs.iter();
                programs.map(move |program| (Point { study, marks }, policy, program))
            })
        })
    };
    let largest = |key: &str| {
        let phases = [Phase::Alone, Phase::Together];
        let all = programs().flat_map(|(_, _, program)| {
            phases.map(|phase| found(program, phase, key).map_or(0.0, |row| row.sample.mean))
        });
        all.filter(|mean| mean.is_finite()).fold(0.0, f64::max)
    };
    // Headings of times name the unit that the cells are in.
    let unit = |key: &str| {
        let row = programs().find_map(|(_, _, program)| {
            let phases = [Phase::Alone, Phase::Together];
            phases
                .into_iter()
                .find_map(|phase| found(program, phase, key))
        });
        let unit = row.map(|row| row.kind.scale(largest(key)).unit);
        unit.filter(|unit| !unit.is_empty())
    };
    let quantities = SHOWN.iter().map(|(head, _, key)| {
        unit(key).map_or_else(|| (*head).to_owned(), |unit| format!("{head} [{unit}]"))
    });
    let last = last_level(studies);
    let axes = first.axes.keys().map(|axis| short(axis, CHARS));
    let heads = axes
        .chain(["policy", "program"].map(str::to_owned))
        .chain([format!("slowdown [{}]", Kind::Change.scale(1.0).unit)])
        .chain(quantities)
        .chain([
            format!("{last} misses alone"),
            format!("{last} misses together"),
        ]);
    let mut shown = table(heads);
    for (point, policy, program) in programs() {
        let axes = point.study.axes.values().map(|value| short(value, CHARS));
        let names = [short(&policy.name, CHARS), short(&program.name, CHARS)];
        let mut cells: Vec<Cell> = axes.chain(names).map(Cell::new).collect();
        let slowdown = program.slowdown.as_ref();
        let scale = Kind::Change.scale(1.0);
        cells.push(right(slowdown.map_or_else(
            || "-".to_owned(),
            |sample: &Sample| {
                let text = cell(sample, &Kind::Change, &scale);
                point.marks.marked(&policy.name, &program.name, text)
            },
        )));
        let misses = format!("mpki_{last}");
        let quantities = SHOWN.iter().map(|(_, phase, key)| (*phase, *key));
        let misses = [Phase::Alone, Phase::Together].map(|phase| (phase, misses.as_str()));
        for (phase, key) in quantities.chain(misses) {
            let row = found(program, phase, key);
            let text = row.map(|row| cell(row.sample, &row.kind, &row.kind.scale(largest(key))));
            cells.push(right(text.unwrap_or_else(|| "-".to_owned())));
        }
        shown.add_row(cells);
    }
    if studies.iter().any(|study| !study.complete) {
        out += "PARTIAL: not all of the studies were run; the numbers cover what was.\n";
    }
    out += &format!("{shown}\n");
    for remark in marks.last().map(Marks::remarks).unwrap_or_default() {
        out += &format!("{}\n", clean(&remark));
    }
    for warning in warnings(studies) {
        out += &format!("Warning: {}\n", clean(&warning));
    }
    out
}

/// Warnings of all points, each once.
fn warnings(studies: &[Study]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for warning in studies.iter().flat_map(|study| &study.warnings) {
        if !all.contains(warning) {
            all.push(warning.clone());
        }
    }
    all
}

/// The name of the last level of the first program that has one.
fn last_level(studies: &[Study]) -> String {
    let programs = studies
        .iter()
        .flat_map(|s| &s.policies)
        .flat_map(|p| &p.programs);
    let phases = programs.flat_map(|p| [Some(&p.alone), p.together.as_ref()]);
    let mut levels = phases.flatten().filter_map(|metrics| metrics.mpki.last());
    levels
        .next()
        .map_or_else(|| "LLC".to_owned(), |last| last.level.clone())
}

fn found<'a>(program: &'a ProgramResult, phase: Phase, key: &str) -> Option<Row<'a>> {
    let metrics = match phase {
        Phase::Alone => Some(&program.alone),
        Phase::Together => program.together.as_ref(),
    };
    rows(metrics?).into_iter().find(|row| row.key == key)
}

/// The studies as a JSON list of what [`to_json`](crate::to_json) writes of each.
///
/// # Errors
/// As there.
pub fn sweep_to_json(studies: &[Study]) -> Result<String, ReportError> {
    let found = studies.iter().zip(findings_together(studies));
    let written = found.map(|(study, findings)| Study {
        schema: crate::SCHEMA,
        findings,
        ..study.clone()
    });
    json::lines(&written.collect::<Vec<_>>())
}

/// The studies as one CSV, as [`to_csv`](crate::to_csv) with a column for each axis before the
/// others.
///
/// # Errors
/// As there.
pub fn sweep_to_csv(studies: &[Study]) -> Result<String, ReportError> {
    csv_of(studies)
}

#[cfg(test)]
mod tests {
    use crate::{Metrics, PolicyResult};

    use super::*;

    fn study(size: &str, slowdown: f64) -> Study {
        let program = ProgramResult {
            name: "sort".to_owned(),
            slowdown: Some(Sample::new(vec![slowdown])),
            alone: Metrics {
                ipc: Sample::new(vec![1.5]),
                ..Metrics::default()
            },
            ..ProgramResult::default()
        };
        Study {
            title: "Sizes".to_owned(),
            axes: [("memory.size".to_owned(), size.to_owned())].into(),
            policies: vec![PolicyResult {
                name: "stock".to_owned(),
                programs: vec![program],
                ..PolicyResult::default()
            }],
            ..Study::default()
        }
    }

    #[test]
    fn points_stand_in_one_table_and_one_list_with_their_values() {
        let studies = [study("1GiB", 0.5), study("2GiB", 0.25)];
        let text = sweep_to_table(&studies, &TableStyle::default());
        let line = |size: &str| text.lines().find(|l| l.contains(size)).map(str::to_owned);
        assert!(text.contains("memory.size"), "{text}");
        // One repetition shows nothing: one reason, one letter, at both points.
        for (size, slowdown) in [("1GiB", "+50.0 (a)"), ("2GiB", "+25.0 (a)")] {
            assert!(
                line(size).is_some_and(|l| l.contains(slowdown)),
                "{slowdown}: {text}"
            );
        }
        let remarks = text.lines().filter(|l| l.starts_with("(a) "));
        assert_eq!(remarks.count(), 1, "{text}");
        let json = sweep_to_json(&studies).expect("is written");
        let list: Vec<Study> = serde_json::from_str(&json).expect("is a list of studies");
        assert_eq!(list[1].axes["memory.size"], "2GiB");
        let csv = sweep_to_csv(&studies).expect("is written");
        assert!(csv.starts_with("memory.size,policy,program,"), "{csv}");
        assert!(
            csv.lines().any(|l| l.starts_with("2GiB,stock,sort,")),
            "{csv}"
        );
    }
}
