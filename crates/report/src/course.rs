//! What happened to programs while a run went on: who came and went, what each was taken for,
//! how many colours it had, and how fast it was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ReportError, Study,
    chart::{Axis, Line, LineChart, Stop, line_chart},
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
            let title = format!("{name}: colors of each program");
            figures.push(Figure { title, svg });
        }
        if let Some(svg) = speeds(course, &names)? {
            let title = format!("{name}: instructions per cycle");
            figures.push(Figure { title, svg });
        }
    }
    let text = "The first repetition. A dot is an event; under the pointer stands what happened, \
                what the program was taken for since, and its colors.";
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

/// The picture, from 0 to the end of the course.
fn chart(
    course: &CourseResult,
    [label, y]: [&str; 2],
    lines: Vec<Line>,
) -> Result<Option<String>, ReportError> {
    let ends = course.times_ps.iter().copied();
    let ends = ends.chain(course.events.iter().map(|e| e.time_ps));
    let end = micros(ends.max().unwrap_or(0)).max(1.0);
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

/// Steps of the numbers of colours, from event to event.
fn colors(course: &CourseResult, names: &[&str]) -> Result<Option<String>, ReportError> {
    let ends = course.times_ps.last().copied();
    let end = ends.or(course.events.last().map(|e| e.time_ps));
    // Lines of different programs that lie on one another are set apart a little.
    let mut lines: BTreeMap<usize, Line> = BTreeMap::new();
    for (at, event) in course.events.iter().enumerate() {
        let until = course.events.get(at + 1).map(|e| e.time_ps).or(end);
        let (from, until) = (micros(event.time_ps), micros(until.unwrap_or(0)));
        for program in &event.programs {
            let color = place(names, &program.name);
            let y = f64::from(program.nr_colors) + 0.12 * color as f64;
            let line = lines.entry(color).or_default();
            line.color = color;
            line.points.extend([(from, y), (until, y)]);
            line.stops.push(Stop {
                x: from,
                y,
                ends: None,
                dot: true,
                tip: tip(event, program),
            });
        }
    }
    let lines = lines.into_values().collect();
    let label = "Number of colors of each program over time";
    chart(course, [label, "colors"], lines)
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
