//! Lanes over time: which of a number of things each of several owners has, and what it is called
//! meanwhile. What two owners have at the same time stands at the same height of both lanes.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{
    Area, Failure, GRID, INK, MUTED, Overlay, axis::Axis, color, picture, text_style, text_width,
    tip,
};
use crate::{ReportError, format::short};

/// Height of the names above a lane, of the lane, and of the gap below it, in pixels.
const NAMES: i32 = 17;
const LANE: i32 = 34;
const GAP: i32 = 9;
const TOP: i32 = 4;
const BELOW: i32 = 44;
/// Strength of the colour of a lane where its owner is there, and where it has something.
const THERE: f64 = 0.12;
const OWNED: f64 = 0.8;
const LABEL_CHARS: usize = 16;

/// A picture of lanes.
pub(crate) struct LaneChart {
    /// What it shows, for a screen reader.
    pub label: String,
    /// Width in pixels.
    pub width: u32,
    pub x: Axis,
    /// How many things there are to have.
    pub things: u32,
    pub lanes: Vec<Lane>,
}

/// One owner.
pub(crate) struct Lane {
    pub name: String,
    /// Index of its colour.
    pub color: usize,
    /// By time.
    pub spans: Vec<Span>,
}

/// A time in which nothing changes.
pub(crate) struct Span {
    pub from: f64,
    pub to: f64,
    /// What it has, of `0..things`.
    pub has: Vec<Range<u32>>,
    /// What it is called; written where it changes and has room.
    pub name: String,
    /// Shown under the pointer.
    pub tip: String,
}

/// The picture, or `None` without a span.
pub(crate) fn lane_chart(chart: &LaneChart) -> Result<Option<String>, ReportError> {
    if chart.things == 0 || chart.lanes.iter().all(|l| l.spans.is_empty()) {
        return Ok(None);
    }
    let lanes = (NAMES + LANE + GAP) * chart.lanes.len() as i32;
    let size = (chart.width, (TOP + lanes + BELOW) as u32);
    picture(size, &chart.label, |root| draw(root, chart)).map(Some)
}

fn draw(root: &Area<'_>, chart: &LaneChart) -> Result<Vec<Overlay>, Failure> {
    let names = chart.lanes.iter().map(|l| short(&l.name, LABEL_CHARS));
    let names: Vec<String> = names.collect();
    let left = names.iter().map(|n| text_width(n)).max().unwrap_or(0);
    let mut context = ChartBuilder::on(root)
        .margin_top(TOP)
        .margin_right(18)
        .x_label_area_size(BELOW)
        .y_label_area_size(left + 12)
        .build_cartesian_2d(chart.x.clone(), 0.0..1.0)?;
    context
        .configure_mesh()
        .disable_mesh()
        .axis_style(GRID)
        .label_style(text_style(&MUTED))
        .axis_desc_style(text_style(&MUTED))
        .y_labels(0)
        .x_desc(chart.x.title.as_str())
        .draw()?;
    let at = |x: f64| context.backend_coord(&(x, 0.0)).0;
    let beside = text_style(&INK).pos(Pos::new(HPos::Right, VPos::Center));
    let mut tips = Vec::new();
    for (number, (lane, name)) in (0i32..).zip(chart.lanes.iter().zip(&names)) {
        let top = TOP + number * (NAMES + LANE + GAP);
        let middle = top + NAMES + LANE / 2;
        root.draw(&Text::new(name.clone(), (left + 4, middle), beside.clone()))?;
        draw_lane(root, lane, chart.things, (top, &at))?;
        for span in &lane.spans {
            let corners = (at(span.from), top);
            tips.push(tip(corners, (at(span.to), top + NAMES + LANE), &span.tip));
        }
    }
    Ok(tips)
}

fn draw_lane(
    root: &Area<'_>,
    lane: &Lane,
    things: u32,
    (top, at): (i32, &impl Fn(f64) -> i32),
) -> Result<(), Failure> {
    let (low, high) = (top + NAMES + LANE, top + NAMES);
    let ink = color(lane.color);
    let height = |thing: u32| {
        let share = f64::from(thing.min(things)) / f64::from(things);
        low - (share * f64::from(LANE)).round() as i32
    };
    for span in &lane.spans {
        let (x0, x1) = (at(span.from), at(span.to));
        root.draw(&Rectangle::new(
            [(x0, high), (x1, low)],
            ink.mix(THERE).filled(),
        ))?;
        for has in &span.has {
            let corners = [(x0, height(has.end)), (x1, height(has.start))];
            root.draw(&Rectangle::new(corners, ink.mix(OWNED).filled()))?;
        }
    }
    let below = text_style(&INK).pos(Pos::new(HPos::Left, VPos::Bottom));
    for (from, to, name) in named(&lane.spans) {
        let (x0, x1) = (at(from), at(to));
        root.draw(&PathElement::new(vec![(x0, top + 3), (x0, low)], MUTED))?;
        if text_width(name) + 6 <= x1 - x0 {
            root.draw(&Text::new(
                name.to_owned(),
                (x0 + 4, high - 1),
                below.clone(),
            ))?;
        }
    }
    Ok(())
}

/// From where to where an owner has one name.
fn named(spans: &[Span]) -> Vec<(f64, f64, &str)> {
    let mut all: Vec<(f64, f64, &str)> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some((_, to, name)) if *to == span.from && *name == span.name => *to = span.to,
            _ => all.push((span.from, span.to, &span.name)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: f64, to: f64, name: &str) -> Span {
        Span {
            from,
            to,
            has: vec![0..2, 4..8],
            name: name.to_owned(),
            tip: format!("{name} & more"),
        }
    }

    fn chart(spans: Vec<Span>) -> LaneChart {
        LaneChart {
            label: "lanes".to_owned(),
            width: 500,
            x: Axis::linear("time [us]", [0.0, 100.0], 5),
            things: 8,
            lanes: vec![Lane {
                name: "walk".to_owned(),
                color: 0,
                spans,
            }],
        }
    }

    #[test]
    fn a_name_stands_once_for_all_the_time_that_it_holds() {
        let spans = [
            span(0.0, 10.0, "?"),
            span(10.0, 40.0, "CCF"),
            span(40.0, 60.0, "CCF"),
            // It was away in between.
            span(70.0, 80.0, "CCF"),
        ];
        let expected = [(0.0, 10.0, "?"), (10.0, 60.0, "CCF"), (70.0, 80.0, "CCF")];
        assert_eq!(named(&spans), expected);
    }

    #[test]
    fn what_an_owner_has_and_is_called_is_in_the_picture() {
        let svg = lane_chart(&chart(vec![
            span(0.0, 60.0, "LLCH"),
            span(60.0, 61.0, "CCF"),
        ]));
        let svg = svg.expect("drawn").expect("a picture");
        // Both parts of either span, and where it is there at all.
        assert_eq!(
            svg.matches(r##"opacity="0.8" fill="#0072B2""##).count(),
            4,
            "{svg}"
        );
        assert!(svg.contains("LLCH\n"), "{svg}");
        assert!(!svg.contains("CCF\n"), "no room for it: {svg}");
        assert!(svg.contains("CCF &amp; more"), "{svg}");
        assert!(svg.contains("walk\n"), "{svg}");
    }

    #[test]
    fn without_anything_there_is_no_picture() {
        assert!(lane_chart(&chart(Vec::new())).expect("no error").is_none());
        let none = LaneChart {
            things: 0,
            ..chart(vec![span(0.0, 1.0, "?")])
        };
        assert!(lane_chart(&none).expect("no error").is_none());
    }
}
