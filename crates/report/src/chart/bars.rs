//! Horizontal bars with intervals: the shape of every comparison in the report.
//!
//! Rows are labelled beside the axis and values beside the bars, so that the
//! picture needs no legend for policies and reads in black and white.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{
    Area, Failure, GRID, HATCHES, INK, MUTED, Overlay, TEXT, color, picture, text_style,
    text_width, tick, tip,
};
use crate::{ReportError, format::short};

/// One bar, in the unit of the chart's axis.
pub(crate) struct Bar {
    pub value: f64,
    /// Half width of the interval.
    pub half: Option<f64>,
    /// Written beside it.
    pub text: String,
    /// Shown under the pointer.
    pub tip: String,
    /// Pale stands for the phase alone.
    pub pale: bool,
    /// Hatched: the report does not claim what it shows.
    pub refused: bool,
}

impl Bar {
    /// The bar with a mark beside its value, if there is one: it is not claimed then.
    pub fn marked(mut self, mark: Option<String>) -> Self {
        if let Some(mark) = mark {
            self.text = format!("{} {mark}", self.text);
            self.tip = format!("{}; not claimed {mark}", self.tip);
            self.refused = true;
        }
        self
    }
}

/// Bars that belong to one label (a policy).
pub(crate) struct BarRow {
    pub label: String,
    pub bars: Vec<Bar>,
}

/// Rows that belong together (a program).
pub(crate) struct Group {
    pub name: String,
    /// Index of its colour.
    pub color: usize,
    pub rows: Vec<BarRow>,
}

/// A whole chart.
pub(crate) struct BarChart {
    /// What the picture shows, for a screen reader.
    pub label: String,
    /// Name and unit of the axis.
    pub axis: String,
    /// Width in pixels.
    pub width: u32,
    pub groups: Vec<Group>,
}

const BAR: i32 = 14;
const ROW_GAP: i32 = 7;
const GROUP_HEAD: i32 = 22;
const GROUP_GAP: i32 = 8;
const AXIS: i32 = 44;
const TOP: i32 = 4;
const LABEL_CHARS: usize = 24;
/// An interval may stretch the axis to this many times the largest bar; beyond,
/// it is cut at the edge, since two repetitions have intervals that would make
/// every bar a dot.
const MAX_STRETCH: f64 = 2.5;

impl BarChart {
    fn bars(&self) -> impl Iterator<Item = &Bar> {
        let rows = self.groups.iter().flat_map(|g| &g.rows);
        rows.flat_map(|r| &r.bars).filter(|b| b.value.is_finite())
    }

    /// Ends of the axis: bars, their intervals, and 0.
    fn range(&self) -> (f64, f64) {
        let largest = self.bars().map(|b| b.value.abs()).fold(0.0, f64::max);
        let limit = largest * MAX_STRETCH;
        let (mut low, mut high) = (0.0f64, 0.0f64);
        for bar in self.bars() {
            let half = bar.half.unwrap_or(0.0);
            low = low.min(bar.value).min((bar.value - half).max(-limit));
            high = high.max(bar.value).max((bar.value + half).min(limit));
        }
        // Bars of positive quantities start at 0 even where an interval dips below.
        if self.bars().all(|b| b.value >= 0.0) {
            low = low.max(-0.1 * high);
        }
        if low == high {
            (0.0, 1.0)
        } else {
            (low, high + (high - low) * 0.02)
        }
    }

    fn height(&self) -> i32 {
        let rows = |g: &Group| {
            g.rows
                .iter()
                .map(|r| r.bars.len() as i32 * BAR + ROW_GAP)
                .sum::<i32>()
        };
        self.groups
            .iter()
            .map(|g| GROUP_HEAD + rows(g) + GROUP_GAP)
            .sum()
    }
}

/// The chart, or `None` if no bar has a value.
pub(crate) fn bar_chart(chart: &BarChart) -> Result<Option<String>, ReportError> {
    if chart.bars().next().is_none() {
        return Ok(None);
    }
    let size = (chart.width, (TOP + chart.height() + AXIS) as u32);
    picture(size, &chart.label, |root| draw(root, chart)).map(Some)
}

fn draw(root: &Area<'_>, chart: &BarChart) -> Result<Vec<Overlay>, Failure> {
    let labels = chart
        .groups
        .iter()
        .flat_map(|g| &g.rows)
        .map(|r| text_width(&short(&r.label, LABEL_CHARS)));
    let gutter = labels.max().unwrap_or(0) + 14;
    let values = chart.bars().map(|b| text_width(&b.text)).max().unwrap_or(0) + 10;
    let (low, high) = chart.range();
    let height = chart.height();
    let mut context = ChartBuilder::on(root)
        .margin_top(TOP)
        .margin_left(gutter)
        .margin_right(values)
        .x_label_area_size(AXIS)
        .build_cartesian_2d(low..high, 0..height)?;
    context
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(5)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GRID)
        .x_label_style(text_style(&MUTED))
        .axis_desc_style(text_style(&MUTED))
        .x_label_formatter(&|v| tick(*v, high - low))
        .x_desc(chart.axis.as_str())
        .draw()?;
    let x = |value: f64| context.backend_coord(&(value.clamp(low, high), 0)).0;
    root.draw(&PathElement::new(
        vec![(x(0.0), TOP), (x(0.0), TOP + height)],
        MUTED,
    ))?;
    let mut tips = vec![];
    if chart.bars().any(|bar| bar.refused) {
        tips.push(HATCHES.to_owned());
    }
    let mut y = TOP;
    for group in &chart.groups {
        let name = short(&group.name, 60);
        let style = ("sans-serif", TEXT, FontStyle::Bold)
            .into_font()
            .color(&INK);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(name, (2, y + GROUP_HEAD - 10), style))?;
        y += GROUP_HEAD;
        for row in &group.rows {
            let middle = y + row.bars.len() as i32 * BAR / 2;
            label(
                root,
                &short(&row.label, LABEL_CHARS),
                (gutter - 8, middle),
                HPos::Right,
                &INK,
            )?;
            for bar in &row.bars {
                tips.extend(draw_bar(root, bar, group.color, y, &x, low..high)?);
                y += BAR;
            }
            y += ROW_GAP;
        }
        y += GROUP_GAP;
    }
    Ok(tips)
}

/// Lines over a rectangle, with an edge: what it shows is told from others without colour too.
fn hatched([(x0, y0), (x1, y1)]: [(i32, i32); 2], RGBColor(r, g, b): RGBColor) -> Overlay {
    let (width, height) = (x1 - x0, y1 - y0);
    format!(
        r##"<rect class="hatch" x="{x0}" y="{y0}" width="{width}" height="{height}" fill="url(#hatch1)" stroke="#{r:02X}{g:02X}{b:02X}"/>"##
    )
}

fn label(
    root: &Area<'_>,
    text: &str,
    at: (i32, i32),
    side: HPos,
    ink: &RGBColor,
) -> Result<(), Failure> {
    let style = text_style(ink).pos(Pos::new(side, VPos::Center));
    Ok(root.draw(&Text::new(text.to_owned(), at, style))?)
}

/// One bar, its interval and its value, with its top at `y`.
fn draw_bar(
    root: &Area<'_>,
    bar: &Bar,
    index: usize,
    y: i32,
    x: &impl Fn(f64) -> i32,
    axis: Range<f64>,
) -> Result<Option<Overlay>, Failure> {
    if !bar.value.is_finite() {
        label(
            root,
            &bar.text,
            (x(0.0) + 6, y + BAR / 2),
            HPos::Left,
            &MUTED,
        )?;
        return Ok(None);
    }
    let (from, to) = (x(bar.value.min(0.0)), x(bar.value.max(0.0)));
    let fill = color(index)
        .mix(if bar.pale || bar.refused { 0.4 } else { 1.0 })
        .filled();
    root.draw(&Rectangle::new(
        [(from, y + 1), (to.max(from + 1), y + BAR - 1)],
        fill,
    ))?;
    let mut end = to;
    if let Some(half) = bar.half.filter(|h| h.is_finite()) {
        let ends = [bar.value - half, bar.value + half];
        let [low, high] = ends.map(x);
        let middle = y + BAR / 2;
        root.draw(&PathElement::new(vec![(low, middle), (high, middle)], INK))?;
        // No cap where the interval runs on beyond the axis.
        for cap in ends.into_iter().filter(|end| axis.contains(end)).map(x) {
            root.draw(&PathElement::new(
                vec![(cap, middle - 3), (cap, middle + 3)],
                INK,
            ))?;
        }
        end = end.max(high);
    }
    let ink = if bar.pale || bar.refused { MUTED } else { INK };
    label(root, &bar.text, (end + 6, y + BAR / 2), HPos::Left, &ink)?;
    let hatched = bar.refused.then(|| {
        let corners = [(from, y + 1), (to.max(from + 1), y + BAR - 1)];
        hatched(corners, color(index))
    });
    let tip = tip((from, y), (end.max(from + 8), y + BAR), &bar.tip);
    Ok(Some(hatched.unwrap_or_default() + &tip))
}
