//! A small picture of curves with intervals, one of several of a paper's figure.

use super::{Axis, Line, LineChart, Stop, line_chart};
use crate::{
    Curve, CurvePoint, Panel, ReportError,
    format::{clean, number, short},
};

const WIDTH: u32 = 430;
const HEIGHT: u32 = 270;
/// How far intervals may widen a picture beyond its points, as a share of what the points span: wider
/// ones are cut, so that curves stay apart from each other.
const REACH: f64 = 0.5;
/// Curves beside one another over a name, as a share of a place.
const BESIDE: f64 = 0.12;

/// What all panels of a figure share.
#[derive(Default)]
pub(crate) struct PanelAxes<'a> {
    pub(crate) x: &'a str,
    /// Of the places 1, 2 and so on, instead of numbers.
    pub(crate) x_names: &'a [String],
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
    if !axes.x_names.is_empty() {
        return Axis::named(&clean(axes.x), axes.x_names);
    }
    let [left, right] = range(known(of).map(|p| p.x));
    let [left, right] = match left < right {
        true => [left, right],
        false => [left - 1.0, right + 1.0],
    };
    let pad = (right - left) * 0.03;
    // Small counts have no halves.
    let counts = known(of).all(|p| p.x.fract() == 0.0) && right - left <= 8.0;
    let most = if counts {
        (right - left) as usize + 1
    } else {
        9
    };
    Axis::linear(&clean(axes.x), [left - pad, right + pad], most)
}

fn y_axis(of: &Panel, axes: &PanelAxes<'_>) -> Axis {
    let [low, high] = reach(of);
    let pad = 0.05 * (high - low).max(1.0);
    let low = if low < 0.0 { low - pad } else { 0.0 };
    Axis::linear(&clean(axes.y), [low, high + pad], 6)
}

/// What the vertical axis shows.
fn reach(of: &Panel) -> [f64; 2] {
    let [least, most] = range(known(of).flat_map(|p| {
        let (low, high) = ends(p);
        [low, high, 0.0]
    }));
    let [low, high] = range(known(of).flat_map(|p| [p.y, 0.0]));
    let room = (high - low) * REACH;
    [least.max(low - room), most.min(high + room)]
}

/// Whether an interval goes on beyond the picture.
pub(crate) fn is_cut(of: &Panel) -> bool {
    let [low, high] = y_axis(of, &PanelAxes::default()).limits();
    known(of).map(ends).any(|(a, b)| a < low || b > high)
}

fn line(curve: &Curve, axes: &PanelAxes<'_>) -> Line {
    let place = axes.names.iter().position(|n| *n == curve.name);
    let known = |p: &&CurvePoint| p.x.is_finite() && p.y.is_finite();
    let points = || curve.points.iter().filter(known);
    let place = place.unwrap_or(0);
    let is_named = !axes.x_names.is_empty();
    // Names have no order to join: curves stand beside one another there.
    let beside = (place as f64 - (axes.names.len() as f64 - 1.0) / 2.0) * BESIDE;
    let moved = |p: &CurvePoint| if is_named { p.x + beside } else { p.x };
    Line {
        color: place,
        dashed: curve.dashed,
        points: match is_named {
            true => Vec::new(),
            false => points().map(|p| (p.x, p.y)).collect(),
        },
        stops: points()
            .map(|p| Stop {
                x: moved(p),
                ..stop(curve, p, axes)
            })
            .collect(),
        band: Vec::new(),
    }
}

fn stop(curve: &Curve, p: &CurvePoint, axes: &PanelAxes<'_>) -> Stop {
    let half = p
        .ci95
        .map_or_else(String::new, |h| format!(" ± {}", number(h)));
    let name = short(&curve.name, 40);
    let at = axes.x_names.get((p.x as usize).wrapping_sub(1));
    let at = at.map_or_else(|| number(p.x), |n| clean(n));
    Stop {
        x: p.x,
        y: p.y,
        ends: Some(ends(p)),
        dot: !curve.dashed,
        tip: format!("{name}: {}{half} at {at}", number(p.y)),
    }
}
