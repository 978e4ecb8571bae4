//! Pictures as SVG for the HTML report.
//!
//! Shapes, axes and ticks come from `plotters`. A picture is drawn in the marker
//! colours below, which the style sheet replaces by those of the light or dark
//! theme (`report.css`); without the style sheet they are a readable light theme.
//! Colour stands for the program in every picture; what else differs is written
//! beside the bar. Values under the pointer come from `<title>` elements, so the
//! report needs no script.

mod axis;
mod bars;
mod curves;
mod heat;
mod lanes;
mod lines;
mod panel;

pub(crate) use axis::Axis;
pub(crate) use bars::{Bar, BarChart, BarRow, Group, bar_chart};
pub(crate) use curves::miss_curves;
pub(crate) use heat::{EMPTY, KERNEL, hatch_kind, set_map};
pub(crate) use lanes::{Lane, LaneChart, Span, lane_chart};
pub(crate) use lines::{Dash, Line, LineChart, Stop, line_chart};
pub(crate) use panel::{PanelAxes, dash, is_cut, panel};

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::ReportError;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Text.
pub(crate) const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
/// Axes and their numbers.
pub(crate) const MUTED: RGBColor = RGBColor(0x59, 0x63, 0x6e);
/// Grid lines.
pub(crate) const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);

/// Colours of programs: Okabe and Ito's set for colour-blind readers (2008,
/// "Color Universal Design"), without black and with yellow last.
pub(crate) const PALETTE: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xf0, 0xe4, 0x42),
    // The second blue comes last: few studies have so many programs.
    RGBColor(0x56, 0xb4, 0xe9),
];

/// Colour of the *n*-th program; repeats after seven.
pub(crate) fn color(n: usize) -> RGBColor {
    PALETTE[n % PALETTE.len()]
}

/// Size of numbers and labels, in plotters' unit (1.24 px).
const TEXT: i32 = 15;

/// Text in the report's font.
pub(crate) fn text_style<'a>(color: &RGBColor) -> TextStyle<'a> {
    ("sans-serif", TEXT).into_font().color(color)
}

/// Estimated width of text in pixels, for margins.
pub(crate) fn text_width(text: &str) -> i32 {
    (text.chars().count() as f64 * 6.7).ceil() as i32
}

/// Something to lay over the finished picture: SVG source.
pub(crate) type Overlay = String;

/// Patterns of lines over colours (`hatch1`, `hatch2`), so that areas are told apart by more than
/// their hue. A picture that uses them has them in its overlays.
pub(crate) const HATCHES: &str = concat!(
    r#"<defs><pattern id="hatch1" width="7" height="7" patternUnits="userSpaceOnUse" "#,
    r##"patternTransform="rotate(45)"><path stroke="#1F2328" stroke-opacity="0.45" d="M0 0V7"/></pattern>"##,
    r#"<pattern id="hatch2" width="7" height="7" patternUnits="userSpaceOnUse" "#,
    r##"patternTransform="rotate(-45)"><path stroke="#1F2328" stroke-opacity="0.45" d="M0 0V7"/></pattern></defs>"##,
);

/// An invisible rectangle that shows `text` under the pointer.
pub(crate) fn tip((x0, y0): (i32, i32), (x1, y1): (i32, i32), text: &str) -> Overlay {
    format!(
        r#"<rect class="tip" x="{}" y="{}" width="{}" height="{}" fill-opacity="0"><title>{}</title></rect>"#,
        x0.min(x1),
        y0.min(y1),
        (x1 - x0).abs().max(1),
        (y1 - y0).abs().max(1),
        escape(text),
    )
}

/// Text for an XML element or attribute. `text` is free of control characters.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Draws a picture and lays the overlays that `draw` returns over it. `label`
/// describes it to those who cannot see it.
pub(crate) fn picture<F>(size: (u32, u32), label: &str, draw: F) -> Result<String, ReportError>
where
    F: for<'a> FnOnce(&Area<'a>) -> Result<Vec<Overlay>, Failure>,
{
    let mut svg = String::new();
    let overlays = {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let overlays = draw(&root).map_err(|e| ReportError::Chart(e.0))?;
        root.present()
            .map_err(|e| ReportError::Chart(e.to_string()))?;
        overlays
    };
    let opening = format!(
        r#"<svg class="chart" role="img" aria-label="{}" "#,
        escape(label)
    );
    let body = svg.trim_start().strip_prefix("<svg ").unwrap_or(&svg);
    let body = body.trim_end().strip_suffix("</svg>").unwrap_or(body);
    Ok(format!("{opening}{body}{}</svg>", overlays.concat()))
}

/// A drawing error as text.
pub(crate) struct Failure(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for Failure {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

/// A tick's number, with as many decimals as ticks over `span` need.
pub(crate) fn tick(value: f64, span: f64) -> String {
    let decimals = (1.0 - span.abs().max(1e-12).log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if text == "-0" { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{heat::FIRST_PROGRAM, *};

    /// Degrees on the wheel of hues, in hue, saturation and value.
    fn hue(RGBColor(r, g, b): RGBColor) -> f64 {
        let [r, g, b] = [r, g, b].map(f64::from);
        let (high, low) = (r.max(g).max(b), r.min(g).min(b));
        let sixth = if high == r {
            (g - b) / (high - low)
        } else if high == g {
            2.0 + (b - r) / (high - low)
        } else {
            4.0 + (r - g) / (high - low)
        };
        (60.0 * sixth).rem_euclid(360.0)
    }

    #[test]
    fn owners_differ_by_hue_and_where_they_do_not_by_their_lines() {
        let apart = |a: usize, b: usize| {
            let turn = (hue(color(a)) - hue(color(b))).abs();
            turn.min(360.0 - turn)
        };
        for owner in 1..PALETTE.len() {
            for other in 0..owner {
                let (hue, limit) = (apart(owner, other), if owner < 4 { 35.0 } else { 14.0 });
                let lines = [owner, other].map(|n| hatch_kind(FIRST_PROGRAM + n));
                let last_blue = owner == PALETTE.len() - 1 && other == 0;
                assert!(hue >= limit || last_blue, "{owner} and {other}: {hue}");
                // Neighbours in the list have other lines as well.
                assert!(owner - other > 2 || lines[0] != lines[1], "{owner} {other}");
            }
        }
    }

    #[test]
    fn ticks_have_the_decimals_that_their_span_needs() {
        assert_eq!(tick(20.0, 40.0), "20");
        assert_eq!(tick(0.25, 1.0), "0.2");
        assert_eq!(tick(0.25, 0.9), "0.25");
        assert_eq!(tick(-0.0, 1.0), "0");
        assert_eq!(tick(100.0, 400.0), "100");
    }

    #[test]
    fn overlays_stand_inside_the_picture_and_are_escaped() {
        let draw = |_: &Area<'_>| Ok(vec![tip((5, 9), (1, 2), "<script>alert('x')</script>")]);
        let svg = picture((10, 10), "a \"b\"", draw).unwrap_or_else(|e| panic!("{e}"));
        let tree = roxmltree::Document::parse(&svg).unwrap();
        let title = tree
            .descendants()
            .find(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "title")));
        assert_eq!(
            title.and_then(|t| t.text()),
            Some("<script>alert('x')</script>")
        );
        assert_eq!(tree.root_element().attribute("aria-label"), Some("a \"b\""));
    }
}
