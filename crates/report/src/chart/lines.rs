//! Lines over two axes, with intervals as bars or as bands.

use plotters::prelude::*;

use super::{
    Area, Failure, GRID, MUTED, Overlay, PALETTE, axis::Axis, color, picture, text_style,
    text_width, tip,
};
use crate::ReportError;

/// Half width of the ends of an interval's bar, in pixels.
const CAP: i32 = 3;
/// Strength of a band's colour.
const BAND: f64 = 0.18;
/// Height of the numbers and the title below the picture.
const BELOW: i32 = 44;
/// Width of the vertical title with the gaps around it.
const TITLE: i32 = 30;

/// A picture of lines.
pub(crate) struct LineChart {
    /// What it shows, for a screen reader.
    pub label: String,
    /// Width and height in pixels.
    pub size: (u32, u32),
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
}

/// How a line is drawn: colours alone are too few for many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dash {
    #[default]
    Solid,
    Dashed,
    Dotted,
}

impl Dash {
    /// Of the n-th line of many: once all colours are used, lines are dashed, then dotted.
    pub const fn of(n: usize) -> Self {
        match n / PALETTE.len() % 3 {
            0 => Self::Solid,
            1 => Self::Dashed,
            _ => Self::Dotted,
        }
    }

    /// As a legend says it behind a name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => " (dashed)",
            Self::Dotted => " (dotted)",
        }
    }
}

/// A line and what stands on it.
#[derive(Default)]
pub(crate) struct Line {
    /// Index of its colour.
    pub color: usize,
    pub dash: Dash,
    pub points: Vec<(f64, f64)>,
    /// Points that are marked.
    pub stops: Vec<Stop>,
    /// Where, and the lower and the upper end of an interval.
    pub band: Vec<(f64, f64, f64)>,
}

impl Line {
    /// The part between two places of the horizontal axis; it is cut at them.
    pub fn between(&self, [from, to]: [f64; 2]) -> Self {
        let is_in = |x: f64| (from..=to).contains(&x);
        let mut points = Vec::new();
        let mut last: Option<(f64, f64)> = None;
        for point in &self.points {
            if let Some(last) = last {
                let at = |x: f64| last.1 + (x - last.0) / (point.0 - last.0) * (point.1 - last.1);
                let cut = [from, to]
                    .into_iter()
                    .filter(|x| last.0 < *x && *x < point.0);
                points.extend(cut.map(|x| (x, at(x))));
            }
            points.extend(Some(*point).filter(|p| is_in(p.0)));
            last = Some(*point);
        }
        let band = self.band.iter().copied().filter(|b| is_in(b.0));
        Self {
            color: self.color,
            dash: self.dash,
            points,
            stops: self.stops.iter().filter(|s| is_in(s.x)).cloned().collect(),
            band: band.collect(),
        }
    }
}

/// A point with a text under the pointer.
#[derive(Clone)]
pub(crate) struct Stop {
    pub x: f64,
    pub y: f64,
    /// Lower and upper end of its interval; what lies beyond the axis is left out, with the cap.
    pub ends: Option<(f64, f64)>,
    /// Whether a dot shows it.
    pub dot: bool,
    pub tip: String,
}

/// The picture, or `None` without a point.
pub(crate) fn line_chart(chart: &LineChart) -> Result<Option<String>, ReportError> {
    let is_empty = |l: &Line| l.points.is_empty() && l.stops.is_empty();
    if chart.lines.iter().all(is_empty) {
        return Ok(None);
    }
    picture(chart.size, &chart.label, |root| draw(root, chart)).map(Some)
}

type Context<'c, 'a> =
    ChartContext<'c, SVGBackend<'a>, plotters::coord::cartesian::Cartesian2d<Axis, Axis>>;

fn draw(root: &Area<'_>, chart: &LineChart) -> Result<Vec<Overlay>, Failure> {
    let numbers = chart.y.texts().map(text_width).max().unwrap_or(0);
    let mut context = ChartBuilder::on(root)
        .margin_top(8)
        .margin_right(18)
        .x_label_area_size(BELOW)
        .y_label_area_size(TITLE + numbers.max(28))
        .build_cartesian_2d(chart.x.clone(), chart.y.clone())?;
    context
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GRID)
        .label_style(text_style(&MUTED))
        .axis_desc_style(text_style(&MUTED))
        .x_desc(chart.x.title.as_str())
        .y_desc(chart.y.title.as_str())
        .draw()?;
    // Bands lie below every line.
    for line in chart.lines.iter().filter(|l| !l.band.is_empty()) {
        band(&mut context, line)?;
    }
    let mut tips = Vec::new();
    let limits = chart.y.limits();
    for line in &chart.lines {
        stroke(&mut context, line)?;
        for stop in &line.stops {
            tips.push(mark(root, (&context, limits), stop, color(line.color))?);
        }
    }
    Ok(tips)
}

fn band(context: &mut Context<'_, '_>, line: &Line) -> Result<(), Failure> {
    let upper = line.band.iter().map(|(x, _, high)| (*x, *high));
    let lower = line.band.iter().rev().map(|(x, low, _)| (*x, *low));
    let edge: Vec<(f64, f64)> = upper.chain(lower).collect();
    let fill = color(line.color).mix(BAND).filled();
    context.draw_series([Polygon::new(edge, fill)])?;
    Ok(())
}

fn stroke(context: &mut Context<'_, '_>, line: &Line) -> Result<(), Failure> {
    let style = color(line.color).stroke_width(2);
    let points = line.points.clone();
    if points.is_empty() {
        return Ok(());
    }
    match line.dash {
        Dash::Solid => context.draw_series([PathElement::new(points, style)])?,
        Dash::Dashed => context.draw_series(DashedLineSeries::new(points, 6, 4, style))?,
        Dash::Dotted => context.draw_series(DashedLineSeries::new(points, 2, 3, style))?,
    };
    Ok(())
}

/// The dot, the interval's bar, and the text under the pointer.
fn mark(
    root: &Area<'_>,
    (context, [least, most]): (&Context<'_, '_>, [f64; 2]),
    stop: &Stop,
    ink: RGBColor,
) -> Result<Overlay, Failure> {
    let (x, y) = context.backend_coord(&(stop.x, stop.y));
    if let Some((low, high)) = stop.ends.filter(|(low, high)| high > low) {
        let at = |end: f64| {
            let end = end.clamp(least, most);
            context.backend_coord(&(stop.x, end)).1
        };
        root.draw(&PathElement::new(vec![(x, at(low)), (x, at(high))], ink))?;
        for end in [low, high]
            .into_iter()
            .filter(|e| (least..=most).contains(e))
        {
            let cap = vec![(x - CAP, at(end)), (x + CAP, at(end))];
            root.draw(&PathElement::new(cap, ink))?;
        }
    }
    if stop.dot {
        root.draw(&Circle::new((x, y), 3, ink.filled()))?;
    }
    Ok(tip((x - 6, y - 6), (x + 6, y + 6), &stop.tip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_colour_are_drawn_differently() {
        let look = |n: usize| (n % PALETTE.len(), Dash::of(n).word());
        let looks: std::collections::HashSet<_> = (0..3 * PALETTE.len()).map(look).collect();
        assert_eq!(looks.len(), 3 * PALETTE.len());
    }

    #[test]
    fn a_part_of_a_line_is_cut_at_its_ends() {
        let line = Line {
            points: vec![(0.0, 10.0), (10.0, 0.0), (12.0, 0.0)],
            ..Line::default()
        };
        let inner = line.between([4.0, 11.0]).points;
        assert_eq!(inner, [(4.0, 6.0), (10.0, 0.0), (11.0, 0.0)]);
        // Both ends between two points.
        assert_eq!(line.between([2.0, 4.0]).points, [(2.0, 8.0), (4.0, 6.0)]);
        assert!(line.between([20.0, 30.0]).points.is_empty());
    }
}
