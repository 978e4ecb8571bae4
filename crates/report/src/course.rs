//! What happened to programs while a run went on: who came and went, what each was taken for,
//! which colours it had, and how fast it was.

use std::{collections::BTreeMap, ops::Range};

use piebald_units::ColorSet;
use serde::{Deserialize, Serialize};

use crate::{
    ReportError, Study,
    chart::{Axis, Lane, LaneChart, Line, LineChart, Span, lane_chart, line_chart},
    format::{clean, number, short},
    html::{Figure, Section},
    json::nullable_vec,
    rows,
};

/// One run of a policy over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CourseResult {
    /// End of each interval, in picoseconds from the beginning of the run; empty if the run
    /// was not looked at.
    pub times_ps: Vec<u64>,
    /// Instructions per core cycle of each interval, for each program of the policy in its
    /// order; none while it was not there.
    pub ipc: Vec<CourseIpc>,
    /// What was decided, by time; empty without a manager of programs.
    pub events: Vec<CourseEvent>,
    /// Share of the hardware threads' time that looking at programs took.
    pub watching: Option<f64>,
}

/// The speed of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CourseIpc {
    /// Its name.
    pub program: String,
    /// One for each interval; NaN = it was not there.
    #[serde(with = "nullable_vec")]
    pub ipc: Vec<f64>,
}

/// Something that made a manager decide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CourseEvent {
    /// When.
    pub time_ps: u64,
    /// What happened, in words.
    pub what: String,
    /// The policy that holds since.
    pub policy: String,
    /// Programs that run, with what they have since.
    pub programs: Vec<CourseProgram>,
}

/// A program after an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CourseProgram {
    /// Its name.
    pub name: String,
    /// What it is taken for, if that is known.
    pub class: Option<String>,
    /// Its colours, as `0-3,8`.
    pub colors: String,
    /// How many these are.
    pub nr_colors: u32,
}

/// Pictures of the policies that have a course.
pub(crate) fn section(study: &Study) -> Result<Option<Section>, ReportError> {
    let names = rows::program_names(&study.policies);
    let mut figures = Vec::new();
    for policy in &study.policies {
        let Some(course) = &policy.course else {
            continue;
        };
        let name = clean(&policy.name);
        if let Some(svg) = colors(course, &names)? {
            let title = format!("{name}: class and colors of each program");
            figures.push(Figure { title, svg });
        }
        if let Some(svg) = speeds(course, &names)? {
            let title = format!("{name}: instructions per cycle");
            figures.push(Figure { title, svg });
        }
    }
    let text = "The first repetition. A program's lane is filled where it has colors, the first at the \
                bottom; above it stands what it was taken for. Under the pointer stands what \
                happened, and the colors. Who shares colors has them at the same height.";
    Ok((!figures.is_empty()).then(|| Section {
        title: "Programs over time".to_owned(),
        text: text.to_owned(),
        figures,
        legend: Vec::new(),
        layout: "two",
    }))
}

const SIZE: (u32, u32) = (530, 280);

fn micros(ps: u64) -> f64 {
    ps as f64 / 1e6
}

fn place(names: &[&str], name: &str) -> usize {
    let known = names.iter().position(|n| *n == name);
    known.unwrap_or(names.len())
}

/// Microseconds from 0 to the end of the course.
fn end(course: &CourseResult) -> f64 {
    let ends = course.times_ps.iter().copied();
    let ends = ends.chain(course.events.iter().map(|e| e.time_ps));
    micros(ends.max().unwrap_or(0)).max(1.0)
}

/// The picture, from 0 to the end of the course.
fn chart(
    course: &CourseResult,
    [label, y]: [&str; 2],
    lines: Vec<Line>,
) -> Result<Option<String>, ReportError> {
    let end = end(course);
    let values = lines.iter().flat_map(|l| &l.points).map(|p| p.1);
    let top = values.fold(0.0, f64::max);
    line_chart(&LineChart {
        label: label.to_owned(),
        size: SIZE,
        x: Axis::linear("time [us]", [0.0, end], 6),
        y: Axis::linear(y, [0.0, if top > 0.0 { top * 1.05 } else { 1.0 }], 5),
        lines,
    })
}

/// Who has which colours, and what it is taken for, from event to event.
fn colors(course: &CourseResult, names: &[&str]) -> Result<Option<String>, ReportError> {
    let end = end(course);
    let mut lanes: BTreeMap<usize, Lane> = BTreeMap::new();
    for (at, event) in course.events.iter().enumerate() {
        let next = course.events.get(at + 1).map(|e| micros(e.time_ps));
        let (from, to) = (micros(event.time_ps), next.unwrap_or(end));
        for program in event.programs.iter().filter(|_| to > from) {
            let color = place(names, &program.name);
            let lane = lanes.entry(color).or_insert_with(|| Lane {
                name: clean(&program.name),
                color,
                spans: Vec::new(),
            });
            lane.spans.push(Span {
                from,
                to,
                has: runs(&program.colors),
                name: clean(program.class.as_deref().unwrap_or("not known")),
                tip: tip(event, program),
            });
        }
    }
    let lanes: Vec<Lane> = lanes.into_values().collect();
    let all = lanes.iter().flat_map(|l| &l.spans).flat_map(|s| &s.has);
    let things = all.map(|has| has.end).max().unwrap_or(0);
    lane_chart(&LaneChart {
        label: "Colors and class of each program over time".to_owned(),
        width: SIZE.0,
        x: Axis::linear("time [us]", [0.0, end], 6),
        // Colours are a power of two, whoever has the last.
        things: things.checked_next_power_of_two().unwrap_or(things),
        lanes,
    })
}

/// The runs of a set of colours; of one that cannot be read, none.
fn runs(colors: &str) -> Vec<Range<u32>> {
    let set: ColorSet = colors.parse().unwrap_or_default();
    let mut runs: Vec<Range<u32>> = Vec::new();
    for color in set.iter().map(|c| u32::from(c.0)) {
        match runs.last_mut() {
            Some(run) if run.end == color => run.end += 1,
            _ => runs.push(color..color + 1),
        }
    }
    runs
}

fn tip(event: &CourseEvent, program: &CourseProgram) -> String {
    format!(
        "{} us: {}; {}: {} is {}, colors {}",
        number(micros(event.time_ps)),
        clean(&event.what),
        clean(&event.policy),
        short(&program.name, 40),
        program.class.as_deref().unwrap_or("not known yet"),
        clean(&program.colors)
    )
}

fn speeds(course: &CourseResult, names: &[&str]) -> Result<Option<String>, ReportError> {
    let line = |program: &CourseIpc| {
        let known = course.times_ps.iter().zip(&program.ipc);
        let known = known.filter(|(_, ipc)| ipc.is_finite());
        Line {
            color: place(names, &program.program),
            points: known.map(|(ps, ipc)| (micros(*ps), *ipc)).collect(),
            ..Line::default()
        }
    };
    let lines = course.ipc.iter().map(line).collect();
    let label = "Instructions per cycle of each program over time";
    chart(course, [label, "IPC [instr/cycle]"], lines)
}

/// The events as rows of a table: time, what, policy, and each program's class and colours.
pub(crate) fn rows_of(course: &CourseResult) -> Vec<Vec<String>> {
    let row = |event: &CourseEvent| {
        let programs = event.programs.iter().map(|p| {
            let class = p.class.as_deref().unwrap_or("?");
            format!("{} {class} {}", short(&p.name, 16), clean(&p.colors))
        });
        vec![
            number(micros(event.time_ps)),
            clean(&event.what),
            clean(&event.policy),
            programs.collect::<Vec<_>>().join("; "),
        ]
    };
    course.events.iter().map(row).collect()
}
