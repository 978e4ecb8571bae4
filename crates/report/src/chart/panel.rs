//! A small picture of curves with intervals, one of several of a paper's figure.

use super::{Axis, Dash, Line, LineChart, Stop, line_chart};
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
/// Curves beside one another over a number, as a share of what the numbers span.
const LITTLE: f64 = 0.012;

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
        lines: of
            .curves
            .iter()
            .map(|c| line(c, axes, step(of, axes)))
            .collect(),
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
    let pad = (right - left) * 0.03 + step(of, axes) * axes.names.len() as f64 / 2.0;
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

/// How far curves stand beside one another, so that none hides another's intervals: between names
/// far, between numbers by little, and only where intervals would lie over one another.
fn step(of: &Panel, axes: &PanelAxes<'_>) -> f64 {
    if !axes.x_names.is_empty() {
        return BESIDE;
    }
    let mut places: Vec<f64> = known(of)
        .filter(|p| p.ci95.is_some())
        .map(|p| p.x)
        .collect();
    places.sort_by(f64::total_cmp);
    let shared = places.windows(2).any(|two| two[0] == two[1]);
    let [left, right] = range(known(of).map(|p| p.x));
    if shared && left < right {
        (right - left) * LITTLE
    } else {
        0.0
    }
}

fn line(curve: &Curve, axes: &PanelAxes<'_>, step: f64) -> Line {
    let place = axes.names.iter().position(|n| *n == curve.name);
    let known = |p: &&CurvePoint| p.x.is_finite() && p.y.is_finite();
    let points = || curve.points.iter().filter(known);
    let place = place.unwrap_or(0);
    // Names have no order to join.
    let is_named = !axes.x_names.is_empty();
    let beside = (place as f64 - (axes.names.len() as f64 - 1.0) / 2.0) * step;
    let moved = |p: &CurvePoint| p.x + beside;
    Line {
        color: place,
        dash: dash(curve, place),
        points: if is_named {
            Vec::new()
        } else {
            points().map(|p| (moved(p), p.y)).collect()
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

/// Dashed is what the others are compared with; a colour that is used again is dotted.
pub(crate) fn dash(curve: &Curve, place: usize) -> Dash {
    match Dash::of(place) {
        _ if curve.dashed => Dash::Dashed,
        Dash::Solid => Dash::Solid,
        Dash::Dashed | Dash::Dotted => Dash::Dotted,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, ci95: Option<f64>, places: &[f64]) -> Curve {
        let point = |x: &f64| CurvePoint {
            x: *x,
            y: 1.0,
            ci95,
        };
        Curve {
            name: name.to_owned(),
            points: places.iter().map(point).collect(),
            ..Curve::default()
        }
    }

    /// Where the dots of two curves stand.
    fn places(ci95: Option<f64>, [a, b]: [&[f64]; 2]) -> [Vec<f64>; 2] {
        let of = Panel {
            curves: vec![curve("a", ci95, a), curve("b", ci95, b)],
            ..Panel::default()
        };
        let axes = PanelAxes {
            names: &["a", "b"],
            ..PanelAxes::default()
        };
        [0, 1].map(|nth| {
            let line = line(&of.curves[nth], &axes, step(&of, &axes));
            // Line and dots go together.
            assert!(
                line.stops
                    .iter()
                    .map(|s| s.x)
                    .eq(line.points.iter().map(|p| p.0))
            );
            line.stops.iter().map(|s| s.x).collect()
        })
    }

    #[test]
    fn intervals_over_one_number_do_not_hide_each_other() {
        let [a, b] = places(Some(0.5), [&[0.0, 8.0, 100.0], &[8.0]]);
        assert!(a[1] < 8.0 && 8.0 < b[0] && b[0] - a[1] < 2.0, "{a:?} {b:?}");
        // Where nothing hides another, dots stand where they are.
        for (ci95, two) in [
            (None, [&[0.0, 8.0][..], &[8.0]]),
            (Some(0.5), [&[0.0, 8.0], &[9.0]]),
        ] {
            assert_eq!(places(ci95, two), two.map(<[f64]>::to_vec));
        }
    }
}
