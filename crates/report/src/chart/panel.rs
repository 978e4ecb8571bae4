//! A small picture of curves with intervals, one of several of a paper's figure.

use super::{Axis, Line, LineChart, Stop, line_chart};
use crate::{
    Curve, CurvePoint, Panel, ReportError,
    format::{clean, number, short},
};

const WIDTH: u32 = 430;
const HEIGHT: u32 = 270;

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
    line_chart(&LineChart {
        label,
        size: (WIDTH, HEIGHT),
        x: x_axis(of, axes),
        y: y_axis(of, axes),
        lines: of.curves.iter().map(|c| line(c, axes)).collect(),
    })
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

fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let all = |[low, high]: [f64; 2], v: f64| [low.min(v), high.max(v)];
    values.fold([f64::INFINITY, f64::NEG_INFINITY], all)
}

fn x_axis(of: &Panel, axes: &PanelAxes<'_>) -> Axis {
    let [left, right] = range(known(of).map(|p| p.x));
    let [left, right] = match left < right {
        true => [left, right],
        false => [left - 1.0, right + 1.0],
    };
    let pad = (right - left) * 0.03;
    Axis::linear(&clean(axes.x), [left - pad, right + pad], 9)
}

fn y_axis(of: &Panel, axes: &PanelAxes<'_>) -> Axis {
    let [low, high] = range(known(of).flat_map(|p| {
        let (low, high) = ends(p);
        [low, high, 0.0]
    }));
    let pad = 0.05 * (high - low).max(1.0);
    let low = if low < 0.0 { low - pad } else { 0.0 };
    Axis::linear(&clean(axes.y), [low, high + pad], 6)
}

fn line(curve: &Curve, axes: &PanelAxes<'_>) -> Line {
    let place = axes.names.iter().position(|n| *n == curve.name);
    let known = |p: &&CurvePoint| p.x.is_finite() && p.y.is_finite();
    let points = || curve.points.iter().filter(known);
    Line {
        color: place.unwrap_or(0),
        dashed: curve.dashed,
        points: points().map(|p| (p.x, p.y)).collect(),
        stops: points().map(|p| stop(curve, p)).collect(),
        band: Vec::new(),
    }
}

fn stop(curve: &Curve, p: &CurvePoint) -> Stop {
    let half = p
        .ci95
        .map_or_else(String::new, |h| format!(" ± {}", number(h)));
    let name = short(&curve.name, 40);
    Stop {
        x: p.x,
        y: p.y,
        ends: Some(ends(p)),
        dot: !curve.dashed,
        tip: format!("{name}: {}{half} at {}", number(p.y), number(p.x)),
    }
}
