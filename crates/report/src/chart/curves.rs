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
    /// Size at which the curve is marked.
    mark: Option<f64>,
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
        let powers = self.low.ceil() as i32..=self.high.floor() as i32;
        powers.step_by(self.step).map(f64::from).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Sizes {
    fn format_ext(&self, value: &f64) -> String {
        Bytes(value.exp2().round() as u64).to_string()
    }
}

/// The points that can be drawn: a size above zero and a known value.
fn known(curve: &MissCurve) -> impl Iterator<Item = (u64, f64)> {
    let points = curve.points.iter().copied();
    points.filter(|(bytes, mpki)| *bytes > 0 && mpki.is_finite())
}

/// The curves of one cache in one picture, or `None` without a point; each
/// curve with the index of its colour and the size at which it gets a ring, if any.
pub(crate) fn miss_curves(
    curves: &[(&MissCurve, usize, Option<u64>)],
) -> Result<Option<String>, ReportError> {
    let drawn: Vec<Drawn<'_>> = curves
        .iter()
        .map(|&(curve, color, mark)| {
            let points = known(curve).map(|(bytes, mpki)| ((bytes as f64).log2(), mpki));
            Drawn {
                curve,
                color,
                points: points.collect(),
                mark: mark.map(|bytes| (bytes as f64).log2()),
            }
        })
        .filter(|d| !d.points.is_empty())
        .collect();
    let Some(first) = drawn.first() else {
        return Ok(None);
    };
    let label = format!(
        "Misses per 1000 instructions against the size of {}",
        clean(&first.curve.cache)
    );
    picture((WIDTH, HEIGHT), &label, |root| draw(root, &drawn)).map(Some)
}

fn draw(root: &Area<'_>, drawn: &[Drawn<'_>]) -> Result<Vec<Overlay>, Failure> {
    let all = || drawn.iter().flat_map(|d| &d.points);
    let low = all().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let high = all().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = if low < high {
        (low, high)
    } else {
        (low - 1.0, high + 1.0)
    };
    let top = all().map(|p| p.1).fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.05 } else { 1.0 };
    let names = drawn
        .iter()
        .map(|d| text_width(&short(&d.curve.program, NAME_CHARS)))
        .max();
    // More than ten labels would touch each other.
    let step = ((high - low) / 10.0).ceil().max(1.0) as usize;
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
        let marked = d.points.iter().filter(|p| Some(p.0) == d.mark);
        context.draw_series(marked.map(|p| Circle::new(*p, 7, stroke)))?;
        for (bytes, y) in known(d.curve) {
            let (px, py) = context.backend_coord(&((bytes as f64).log2(), y));
            let text = format!(
                "{}: {} misses per 1000 instructions at {}",
                short(&d.curve.program, 40),
                number(y),
                Bytes(bytes),
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
