//! A small picture of curves with intervals, one of several of a paper's figure.

use plotters::prelude::*;

use super::{Area, Failure, GRID, MUTED, Overlay, color, picture, text_style, tick, tip};
use crate::{
    CurvePoint, Panel, ReportError,
    format::{clean, number, short},
};

const WIDTH: u32 = 430;
const HEIGHT: u32 = 270;
/// Half width of the ends of an interval's bar, in pixels.
const CAP: i32 = 3;

/// What all panels of a figure share.
pub(crate) struct PanelAxes<'a> {
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    /// Names of curves; the place is the colour.
    pub(crate) names: &'a [&'a str],
}

/// The panel, or `None` without a point that can be drawn.
pub(crate) fn panel(of: &Panel, axes: &PanelAxes<'_>) -> Result<Option<String>, ReportError> {
    if known(of).next().is_none() {
        return Ok(None);
    }
    let label = format!(
        "{}: {} against {}",
        clean(&of.title),
        clean(axes.y),
        clean(axes.x)
    );
    picture((WIDTH, HEIGHT), &label, |root| draw(root, of, axes)).map(Some)
}

/// The points that can be drawn.
fn known(of: &Panel) -> impl Iterator<Item = &CurvePoint> {
    let points = of.curves.iter().flat_map(|c| &c.points);
    points.filter(|p| p.x.is_finite() && p.y.is_finite())
}

/// Ends of a point's interval.
fn ends(p: &CurvePoint) -> (f64, f64) {
    let half = p.ci95.filter(|h| h.is_finite()).unwrap_or(0.0);
    (p.y - half, p.y + half)
}

fn draw(root: &Area<'_>, of: &Panel, axes: &PanelAxes<'_>) -> Result<Vec<Overlay>, Failure> {
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let all = |(low, high): (f64, f64), v: f64| (low.min(v), high.max(v));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), all)
    };
    let (left, right) = range(&mut known(of).map(|p| p.x));
    let (left, right) = match left < right {
        true => (left, right),
        false => (left - 1.0, right + 1.0),
    };
    let pad = (right - left) * 0.03;
    let (low, high) = range(&mut known(of).flat_map(|p| {
        let (low, high) = ends(p);
        [low, high, 0.0]
    }));
    let span = (high - low).max(1.0);
    let (low, high) = (
        if low < 0.0 { low - 0.05 * span } else { 0.0 },
        high + 0.05 * span,
    );
    let mut context = ChartBuilder::on(root)
        .margin_top(8)
        .margin_right(12)
        .x_label_area_size(44)
        .y_label_area_size(58)
        .build_cartesian_2d(left - pad..right + pad, low..high)?;
    context
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GRID)
        .label_style(text_style(&MUTED))
        .axis_desc_style(text_style(&MUTED))
        .x_labels(9)
        .y_labels(6)
        .x_label_formatter(&|x| tick(*x, right - left))
        .y_label_formatter(&|y| tick(*y, span))
        .x_desc(clean(axes.x))
        .y_desc(clean(axes.y))
        .draw()?;
    let mut tips = Vec::new();
    for curve in &of.curves {
        let place = axes.names.iter().position(|n| *n == curve.name);
        let ink = color(place.unwrap_or(0));
        let points = || {
            curve
                .points
                .iter()
                .filter(|p| p.x.is_finite() && p.y.is_finite())
        };
        let line: Vec<(f64, f64)> = points().map(|p| (p.x, p.y)).collect();
        match curve.dashed {
            false => {
                context.draw_series([PathElement::new(line, ink.stroke_width(2))])?;
            }
            true => {
                let dashes = DashedLineSeries::new(line, 6, 4, ink.stroke_width(2));
                context.draw_series(dashes)?;
            }
        }
        for p in points() {
            let (low, high) = ends(p);
            let (x, y) = context.backend_coord(&(p.x, p.y));
            if high > low {
                let (bottom, top) = (
                    context.backend_coord(&(p.x, low)).1,
                    context.backend_coord(&(p.x, high)).1,
                );
                for bar in [
                    [(x, bottom), (x, top)],
                    [(x - CAP, bottom), (x + CAP, bottom)],
                    [(x - CAP, top), (x + CAP, top)],
                ] {
                    root.draw(&PathElement::new(bar.to_vec(), ink))?;
                }
            }
            if !curve.dashed {
                root.draw(&Circle::new((x, y), 2, ink.filled()))?;
            }
            let half = p
                .ci95
                .map_or(String::new(), |h| format!(" ± {}", number(h)));
            let text = format!(
                "{}: {}{half} at {}",
                short(&curve.name, 40),
                number(p.y),
                number(p.x)
            );
            tips.push(tip((x - 6, y - 6), (x + 6, y + 6), &text));
        }
    }
    Ok(tips)
}
