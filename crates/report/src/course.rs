//! What happened to programs while a run went on: who came and went, what each was taken for,
//! which colours it had, and how fast it was.

use std::{collections::BTreeMap, ops::Range};

use piebald_units::ColorSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Extra, ReportError, Sample, Study,
    chart::{Axis, Lane, LaneChart, Line, LineChart, PALETTE, Span, lane_chart, line_chart},
    format::{clean, number, short},
    html::{Figure, Section},
    json::nullable_vec,
    rows,
};

/// One run of a policy over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// What each program did, over the repetitions.
    #[serde(skip)]
    pub counts: Vec<CourseCounts>,
}

/// What a program did in runs that were looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CourseCounts {
    /// Its name.
    pub program: String,
    /// In each interval.
    pub intervals: Vec<CourseInterval>,
    /// Over the whole run.
    pub extra: Vec<Extra>,
}

/// What a program did in an interval; 0 while it was not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CourseInterval {
    /// References of its own.
    pub refs: Sample,
    /// Instructions, the kernel's for it included.
    pub instructions: Sample,
    /// Microseconds in faults that moved its pages.
    pub moving_us: Sample,
}

/// The speed of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CourseIpc {
    /// Its name.
    pub program: String,
    /// One for each interval; NaN = it was not there.
    #[serde(with = "nullable_vec")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub ipc: Vec<f64>,
}

/// Something that made a manager decide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        let (lanes, things) = lanes(course, &names);
        if let Some(svg) = colors(course, lanes, things)? {
            let title = format!("{name}: class of each program, and its colors of {things}");
            figures.push(Figure { title, svg });
        }
        if let Some(svg) = speeds(course, &names)? {
            let title = format!("{name}: instructions per cycle");
            figures.push(Figure { title, svg });
        }
    }
    let text = "The first repetition. A program's lane is filled where it has colors, the first at the \
                bottom; above it stands what it was taken for. Under the pointer stands what \
                happened, and the colors. Programs that share colors have them at the same height.";
    Ok((!figures.is_empty()).then(|| Section {
        title: "Programs over time".to_owned(),
        text: text.to_owned(),
        figures,
        remarks: Vec::new(),
        legend: legend(study, &names),
        layout: "two",
    }))
}

/// The programs whose speeds are drawn: the lines have no names beside them.
fn legend(study: &Study, names: &[&str]) -> Vec<(String, String)> {
    let courses = study.policies.iter().filter_map(|p| p.course.as_ref());
    let mut programs: Vec<&str> = Vec::new();
    for line in courses.flat_map(|c| &c.ipc) {
        if !programs.contains(&line.program.as_str()) {
            programs.push(&line.program);
        }
    }
    programs.sort_by_key(|name| place(names, name));
    let entry = |name: &&str| {
        let class = format!("p{}", place(names, name) % PALETTE.len());
        (class, clean(name))
    };
    programs.iter().map(entry).collect()
}

const SIZE: (u32, u32) = (530, 280);

fn micros(ps: u64) -> f64 {
    ps as f64 / 1e6
}

fn place(names: &[&str], name: &str) -> usize {
    let known = names.iter().position(|n| *n == name);
    known.unwrap_or(names.len())
}

/// Microseconds from 0 to the end of the course. Of one that was not looked at the end is not known:
/// what the last event left is shown for a while.
fn end(course: &CourseResult) -> f64 {
    let event = course.events.iter().map(|e| e.time_ps).max().unwrap_or(0);
    let least = match course.times_ps.last() {
        Some(end) => micros(*end),
        None => 1.1 * micros(event),
    };
    least.max(micros(event)).max(1.0)
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

/// Who has which colours, and what it is taken for, from event to event; and how many colours there
/// are: a power of two, and somebody has the last at some time.
fn lanes(course: &CourseResult, names: &[&str]) -> (Vec<Lane>, u32) {
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
                name: class(program),
                tip: tip(event, program),
            });
        }
    }
    let all = course.events.iter().flat_map(|e| &e.programs);
    let ends = all.filter_map(|p| runs(&p.colors).last().map(|run| run.end));
    let things = ends.max().unwrap_or(0);
    let things = things.checked_next_power_of_two().unwrap_or(things);
    (lanes.into_values().collect(), things)
}

fn colors(
    course: &CourseResult,
    lanes: Vec<Lane>,
    things: u32,
) -> Result<Option<String>, ReportError> {
    lane_chart(&LaneChart {
        label: "Class and colors of each program over time".to_owned(),
        width: SIZE.0,
        x: Axis::linear("time [us]", [0.0, end(course)], 6),
        things,
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

fn class(program: &CourseProgram) -> String {
    clean(program.class.as_deref().unwrap_or("not known"))
}

fn tip(event: &CourseEvent, program: &CourseProgram) -> String {
    format!(
        "{} us: {}; {}: {} is {}, colors {}",
        number(micros(event.time_ps)),
        clean(&event.what),
        clean(&event.policy),
        short(&program.name, 40),
        class(program),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ps: u64, programs: &[(&str, Option<&str>, &str)]) -> CourseEvent {
        let programs = programs.iter().map(|(name, class, colors)| CourseProgram {
            name: (*name).to_owned(),
            class: class.map(str::to_owned),
            colors: (*colors).to_owned(),
            nr_colors: 0,
        });
        CourseEvent {
            time_ps,
            programs: programs.collect(),
            ..CourseEvent::default()
        }
    }

    #[test]
    fn lanes_have_what_lasts_and_those_who_come_back_go_on_in_theirs() {
        let us = 1_000_000;
        let course = CourseResult {
            times_ps: vec![50 * us],
            events: vec![
                // For no time, but it says how many colours there are.
                event(0, &[("a", None, "0-31")]),
                event(0, &[("a", Some("LLCH"), "0-3,8"), ("b", None, "4-7")]),
                event(10 * us, &[("b", None, "4-7")]),
                event(30 * us, &[("a", Some("CCF"), "no set"), ("b", None, "4-7")]),
            ],
            ..CourseResult::default()
        };
        let (lanes, things) = lanes(&course, &["b", "a"]);
        assert_eq!(things, 32);
        let names: Vec<&str> = lanes.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        let spans = |at: usize| -> Vec<_> {
            let spans = lanes[at].spans.iter();
            spans
                .map(|s| (s.from, s.to, s.name.as_str(), s.has.clone()))
                .collect()
        };
        let a = [
            (0.0, 10.0, "LLCH", vec![0..4, 8..9]),
            (30.0, 50.0, "CCF", Vec::new()),
        ];
        assert_eq!(spans(1), a);
        assert_eq!(spans(0).len(), 3);
    }

    #[test]
    fn what_the_last_event_left_is_shown_where_the_end_is_not_known() {
        let course = CourseResult {
            events: vec![
                event(0, &[("a", None, "0-1")]),
                event(100_000_000, &[("a", Some("CCF"), "0-1")]),
            ],
            ..CourseResult::default()
        };
        let (lanes, _) = lanes(&course, &["a"]);
        let last = lanes[0].spans.last().expect("a span");
        assert_eq!((last.from, last.name.as_str()), (100.0, "CCF"));
        assert!(last.to > last.from);
    }
}
