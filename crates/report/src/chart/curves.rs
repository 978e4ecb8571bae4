//! Misses against cache size.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use piebald_units::Bytes;

use super::{
    Area, Failure, GRID, INK, MUTED, Overlay, color, picture, text_style, text_width, tick, tip,
};
use crate::{
    MissCurve, ReportError,
    format::{clean, number, short},
};

const WIDTH: u32 = 760;
const HEIGHT: u32 = 330;
const NAME_CHARS: usize = 18;
/// Least distance of two labels at the right edge.
const LINE: i32 = 16;

/// A curve, its colour and its points that can be drawn.
struct Drawn<'a> {
    curve: &'a MissCurve,
    color: usize,
    points: Vec<(f64, f64)>,
}

/// An axis of sizes by their binary logarithm, with a tick at every `step`-th
/// power of two.
struct Sizes {
    low: f64,
    high: f64,
    step: usize,
}

impl Ranged for Sizes {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        let mut context = ChartBuilder::on(root)
        .margin_top(10)
        .margin_right(names.unwrap_or(0) + 26)
        .x_label_area_size(46)
        .y_label_area_size(62)
        .build_cartesian_2d(Sizes { low, high, step }, 0.0..top)?;
    context
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GRID)
        .label_style(text_style(&MUTED))
        .axis_desc_style(text_style(&MUTED))
        .y_labels(6)
        .y_label_formatter(&|y| tick(*y, top))
        .x_desc(format!("size of {}", short(&drawn[0].curve.cache, 30)))
        .y_desc("misses per 1000 instructions")
        .draw()?;
    let mut tips = Vec::new();
    let mut ends = Vec::new();
    for d in drawn {
        let stroke = color(d.color).stroke_width(2);
        context.draw_series([PathElement::new(d.points.clone(), stroke)])?;
        context.draw_series(
            d.points
                .iter()
                .map(|p| Circle::new(*p, 3, color(d.color).filled())),
        )?;
        for &(x, y) in &d.points {
            let (px, py) = context.backend_coord(&(x, y));
            let text = format!(
                "{}: {} misses per 1000 instructions at {}",
                short(&d.curve.program, 40),
                number(y),
                Bytes(x.exp2().round() as u64),
            );
            tips.push(tip((px - 7, py - 7), (px + 7, py + 7), &text));
        }
        ends.extend(d.points.last().map(|p| (context.backend_coord(p), d)));
    }
    names_at_ends(root, ends)?;
    Ok(tips)
}

/// Names beside the last points, pushed apart where curves end together.
fn names_at_ends(root: &Area<'_>, mut ends: Vec<((i32, i32), &Drawn<'_>)>) -> Result<(), Failure> {
    ends.sort_by_key(|((_, y), _)| *y);
    let mut rows: Vec<i32> = ends.iter().map(|((_, y), _)| *y).collect();
    for i in 1..rows.len() {
        rows[i] = rows[i].max(rows[i - 1] + LINE);
    }
    // What was pushed below the axis goes back up.
    let bottom = HEIGHT as i32 - 52;
    for i in (0..rows.len()).rev() {
        let limit = rows.get(i + 1).map_or(bottom, |next| next - LINE);
        rows[i] = rows[i].min(limit);
    }
    let right = ends.iter().map(|((x, _), _)| *x).max().unwrap_or(0);
    for (((x, y), d), row) in ends.iter().zip(rows) {
        root.draw(&PathElement::new(
            vec![(*x, *y), (right + 14, row)],
            color(d.color).mix(0.6),
        ))?;
        let style = text_style(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(
            short(&d.curve.program, NAME_CHARS),
            (right + 18, row),
            style,
        ))?;
    }
    Ok(())
}
