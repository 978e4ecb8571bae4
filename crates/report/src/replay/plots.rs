//! The plots of DULO (FAST'05), Figures 3 and 4: time over memory, hit ratio over
//! memory, and how much of what was read lies in short sequences.

use super::{
    Replay, ReplayRun,
    apart::{Measure, Verdict},
    curves::{curve_name, interval, known, remarks},
    grid::{Grid, size_text},
    matrix::{Matrix, Row, Shown},
};
use crate::{
    ReportError,
    chart::{Axis, Dash, Line, LineChart, PALETTE, Stop, line_chart},
    format::{Kind, grouped, number},
    html::{Figure, Section},
};

/// A picture that shares its row with another, in pixels.
const HALF: (u32, u32) = (530, 330);
/// One that stands alone.
const WIDE: (u32, u32) = (760, 380);
/// Longest sequence of a linear axis, in pages; the paper's ends at 128.
const LINEAR_TO: f64 = 256.0;
/// A line through fewer points shows each of them as a dot.
const MAX_DOTS: usize = 40;
/// Points nearer to each other than this share of the axes cannot be told apart.
const FINEST: f64 = 1.0 / 600.0;
/// Distance of two texts under the pointer, as a share of the axis.
const TIP_STEP: f64 = 1.0 / 50.0;
/// A hit-ratio axis starts at 0 unless all that it shows lies in a smaller part of it
/// than this: then the policies could not be told apart.
const ZOOM: f64 = 0.25;

/// Edges of a curve's fall that do not count, as a share of it: its slow beginning would hide the
/// rest again.
const KNEE_EDGE: f64 = 0.2;
/// Least fall of a curve that is worth a picture of its own, in percentage points.
const KNEE_FALL: f64 = 20.0;
/// A fall on a larger part of the axis than this is seen without one.
const KNEE_SHARE: f64 = 0.35;
/// Room on both sides of a fall, as a share of it.
const KNEE_MARGIN: f64 = 0.3;

/// Pictures and the tables that belong to them.
pub(super) struct Plots {
    pub sections: Vec<Section>,
    pub tables: Vec<Matrix>,
}

/// All plots that the replay has numbers for. Sequences are shown at `cdf_sizes` (pages),
/// or, if there is none of them, where the gap in time is smallest and largest.
pub(super) fn plots(grid: &Grid<'_>, cdf_sizes: &[u64]) -> Result<Plots, ReportError> {
    let (sequences, tables) = sequences(grid, cdf_sizes)?;
    let mut sections = vec![over_memory(grid)?, sequences, curves(grid)?];
    sections.retain(|s| !s.figures.is_empty());
    Ok(Plots { sections, tables })
}

/// Class of the colour, and name, of each policy.
pub(super) fn legend(grid: &Grid<'_>) -> Vec<(String, String)> {
    let entry = |p: usize| (class(p), format!("{}{}", grid.name(p), Dash::of(p).word()));
    (0..grid.policies.len()).map(entry).collect()
}

/// Class of a policy's colour.
pub(super) fn class(policy: usize) -> String {
    format!("p{}", policy % PALETTE.len())
}

fn section(
    title: &str,
    text: String,
    figures: Vec<Option<Figure>>,
    layout: &'static str,
) -> Section {
    Section {
        title: title.to_owned(),
        text,
        figures: figures.into_iter().flatten().collect(),
        remarks: Vec::new(),
        legend: Vec::new(),
        layout,
    }
}

fn figure(title: String, svg: Option<String>) -> Option<Figure> {
    svg.map(|svg| Figure { title, svg })
}

/// Time and hit ratio.
fn over_memory(grid: &Grid<'_>) -> Result<Section, ReportError> {
    let clock = grid.replay.clock().name();
    let largest = (0..grid.policies.len())
        .flat_map(|p| points(grid, p, |r| grid.time(r)))
        .map(|(_, t)| t);
    let scale = Kind::Time.scale(largest.fold(0.0, f64::max) * 1e12);
    let factor = scale.factor * 1e12;
    let time = |r: &ReplayRun| Some(grid.time(r)? * factor);
    let hits = |r: &ReplayRun| Some(100.0 * r.hit_ratio()?);
    let bytes = |r: &ReplayRun| Some(100.0 * r.byte_miss_ratio()?);
    let figures = vec![
        figure(clock.to_owned(), sized(grid, clock, &scale.unit, &time)?),
        figure(
            "Hit ratio".to_owned(),
            sized(grid, "Hit ratio", "%", &hits)?,
        ),
        figure(
            "Byte miss ratio".to_owned(),
            sized(grid, "Byte miss ratio", "%", &bytes)?,
        ),
    ];
    let mut text = "Each policy at each memory size.".to_owned();
    if figures[0].is_some() {
        text.push_str(" Lower is better for time, higher for hits: a policy that wins one may lose the other.");
    }
    let mut out = section("Over memory size", text, figures, "two");
    out.legend = legend(grid);
    Ok(out)
}

/// Size in bytes (pages where a page's bytes are not known) and value of the runs that
/// may be compared.
fn points<'g>(
    grid: &'g Grid<'_>,
    policy: usize,
    get: impl Fn(&ReplayRun) -> Option<f64> + 'g,
) -> impl Iterator<Item = (usize, f64)> + 'g {
    let value = move |s| Some((s, get(grid.whole(policy, s)?)?));
    (0..grid.sizes.len())
        .filter_map(value)
        .filter(|(_, v)| v.is_finite())
}

/// Where a size stands on the axis of memory.
fn place(replay: &Replay, pages: u64) -> f64 {
    pages as f64 * replay.conditions.page_bytes.max(1) as f64
}

fn memory_axis(replay: &Replay, sizes: &[u64]) -> Axis {
    let places = sizes.iter().map(|s| place(replay, *s));
    match replay.conditions.page_bytes {
        0 => Axis::lengths("memory [pages]", places.fold(0.0, f64::max), LINEAR_TO, 9),
        _ => Axis::memory(places, 9),
    }
}

/// A quantity over the size of memory.
fn sized(
    grid: &Grid<'_>,
    name: &str,
    unit: &str,
    get: &dyn Fn(&ReplayRun) -> Option<f64>,
) -> Result<Option<String>, ReportError> {
    let at = |s: usize| place(grid.replay, grid.sizes[s]);
    let stop = |p: usize, (s, y): (usize, f64)| Stop {
        x: at(s),
        y,
        ends: None,
        dot: true,
        tip: format!(
            "{}: {} {unit} at {}",
            grid.name(p),
            exact(unit, y),
            grid.size(s)
        ),
    };
    let line = |p: usize| {
        let points: Vec<(usize, f64)> = points(grid, p, get).collect();
        Line {
            color: p,
            dash: Dash::of(p),
            points: points.iter().map(|(s, y)| (at(*s), *y)).collect(),
            stops: points.into_iter().map(|point| stop(p, point)).collect(),
            band: Vec::new(),
        }
    };
    let lines: Vec<Line> = (0..grid.policies.len()).map(line).collect();
    line_chart(&LineChart {
        label: format!("{name} in {unit} against the size of memory, by policy"),
        size: HALF,
        x: memory_axis(grid.replay, &grid.sizes),
        y: value_axis(&lines, name, unit),
        lines,
    })
}

/// Percentages as the tables have them.
fn exact(unit: &str, value: f64) -> String {
    match unit {
        "%" => format!("{value:.2}"),
        _ => number(value),
    }
}

fn value_axis(lines: &[Line], name: &str, unit: &str) -> Axis {
    let values = || lines.iter().flat_map(|l| &l.points).map(|(_, y)| *y);
    let ends = || lines.iter().flat_map(|l| &l.band).map(|(_, _, high)| *high);
    let high = values().chain(ends()).fold(0.0, f64::max);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = if high > 0.0 { high } else { 1.0 };
    let mut title = format!("{} [{unit}]", name.to_lowercase());
    let percent = unit == "%";
    let mut limits = match percent {
        // Above all there is nothing.
        true => [0.0, (high * 1.05).min(100.0).max(high)],
        false => [0.0, high * 1.05],
    };
    if percent && high - low < ZOOM * high && low < high {
        limits[0] = (low - 0.1 * (high - low)).max(0.0);
        title.push_str(", not from 0");
    }
    Axis::linear(&title, limits, 6)
}

/// The sizes at which sequences are shown, by their places, each with the reason.
fn chosen(grid: &Grid<'_>, wanted: &[u64]) -> Vec<(usize, String)> {
    let asked = wanted
        .iter()
        .filter_map(|s| grid.sizes.binary_search(s).ok());
    let asked: Vec<(usize, String)> = asked.map(|s| (s, String::new())).collect();
    if !asked.is_empty() {
        return asked;
    }
    let gap = |s| Some((s, grid.change(1, s)?.abs()));
    let gaps: Vec<(usize, f64)> = (0..grid.sizes.len()).filter_map(gap).collect();
    let smallest = gaps.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    // The first of equals, as for the smallest.
    let largest = gaps.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1));
    match (smallest, largest) {
        (Some(a), Some(b)) if a.0 != b.0 => vec![
            (a.0, reason(grid, "smallest", a)),
            (b.0, reason(grid, "largest", b)),
        ],
        _ => both_ends(grid),
    }
}

fn reason(grid: &Grid<'_>, word: &str, (size, gap): &(usize, f64)) -> String {
    let (first, second) = (grid.name(0), grid.name(1));
    let verdict = grid.verdict((1, 0, *size), Measure::Time);
    let chance = if verdict == Some(Verdict::Chance) {
        " (may be chance)"
    } else {
        ""
    };
    format!(
        ": {word} gap in time between {first} and {second}, {gap:.1} %{chance}",
        gap = 100.0 * gap
    )
}

/// The smallest and the largest size at which anything was read.
fn both_ends(grid: &Grid<'_>) -> Vec<(usize, String)> {
    let read = |s: &usize| {
        let mut runs = (0..grid.policies.len()).filter_map(|p| grid.whole(p, *s)?.io.as_ref());
        runs.any(|io| io.mean_sequence().is_some())
    };
    let mut sizes: Vec<usize> = (0..grid.sizes.len()).filter(read).collect();
    let last = sizes.pop();
    let ends = sizes.first().copied().into_iter().chain(last);
    ends.map(|s| (s, String::new())).collect()
}

/// Shares of the pages read by the length of their sequence, and the same as tables.
fn sequences(grid: &Grid<'_>, wanted: &[u64]) -> Result<(Section, Vec<Matrix>), ReportError> {
    let chosen = chosen(grid, wanted);
    let lengths = chosen.iter().flat_map(|(s, _)| {
        let runs = (0..grid.policies.len()).filter_map(|p| grid.whole(p, *s)?.io.as_ref());
        runs.flat_map(|io| &io.sequences).map(|(length, _)| *length)
    });
    let longest = lengths.max().unwrap_or(1);
    let mut figures = Vec::new();
    let mut tables = Vec::new();
    for (s, why) in &chosen {
        let title = format!("{}{why}", grid.size(*s));
        figures.push(figure(title, cdf(grid, *s, longest)?));
        tables.extend(cdf_table(grid, *s, longest));
    }
    let mut text = "Share of the pages read from the disk that lie in sequences shorter than the \
                    length on the axis: the lower the line, the longer the sequences."
        .to_owned();
    if chosen.iter().any(|(_, why)| !why.is_empty()) {
        text.push_str(
            " Shown are the sizes with the smallest and the largest gap in time between the \
             first two policies (of the first one's time).",
        );
    }
    let mut out = section("Lengths of sequences", text, figures, "two");
    out.legend = legend(grid);
    Ok((out, tables))
}

fn cdf(grid: &Grid<'_>, size: usize, longest: u32) -> Result<Option<String>, ReportError> {
    let title = "length x [pages]";
    let x = Axis::lengths(title, f64::from(longest), LINEAR_TO, 9);
    let lines = (0..grid.policies.len()).filter_map(|p| cdf_line(grid, p, size, &x));
    line_chart(&LineChart {
        label: format!(
            "Share of the pages read in sequences shorter than a length, at {}",
            grid.size(size)
        ),
        size: HALF,
        lines: lines.collect(),
        x,
        y: Axis::linear("pages in sequences shorter than x [%]", [0.0, 100.0], 6),
    })
}

fn cdf_line(grid: &Grid<'_>, p: usize, size: usize, x: &Axis) -> Option<Line> {
    let steps = grid.whole(p, size)?.io.as_ref()?.cumulated();
    let [left, right] = x.limits();
    steps.first()?;
    let mut points = vec![(left, 0.0)];
    let mut stops: Vec<Stop> = Vec::new();
    let ends = steps
        .iter()
        .skip(1)
        .map(|(_, _, share)| *share)
        .chain([1.0]);
    for ((length, _, before), after) in steps.iter().zip(ends) {
        let (at, before, after) = (f64::from(*length), 100.0 * before, 100.0 * after);
        points.extend([(at, before), (at, after)]);
        if stops
            .last()
            .is_none_or(|last| x.share(at) - x.share(last.x) >= TIP_STEP)
        {
            let name = grid.name(p);
            let tip = format!("{name}: {before:.1} % in sequences shorter than {length} pages");
            stops.push(Stop {
                x: at,
                y: before,
                ends: None,
                dot: false,
                tip,
            });
        }
    }
    points.push((right, 100.0));
    Some(Line {
        color: p,
        dash: Dash::of(p),
        points: thinned(points, |(at, share)| (x.share(*at), share / 100.0)),
        stops,
        band: Vec::new(),
    })
}

/// Without points that stand on the one before, as far as an eye can tell; the last stays.
fn thinned<T: Clone>(points: Vec<T>, place: impl Fn(&T) -> (f64, f64)) -> Vec<T> {
    let mut out: Vec<T> = Vec::new();
    let last = points.last().cloned();
    for point in points {
        let (x, y) = place(&point);
        let near = |(px, py): (f64, f64)| (x - px).abs() < FINEST && (y - py).abs() < FINEST;
        if !out.last().map(&place).is_some_and(near) {
            out.push(point);
        }
    }
    out.extend(last);
    out
}

/// The same in numbers, at powers of two.
fn cdf_table(grid: &Grid<'_>, size: usize, longest: u32) -> Option<Matrix> {
    let below = |length: &u32| u64::from(*length) < 2 * u64::from(longest);
    let lengths: Vec<u32> = (1..32).map(|power| 1 << power).take_while(below).collect();
    let row = |p: usize| {
        let io = grid.whole(p, size)?.io.as_ref()?;
        let cell = |length: &u32| {
            let share = io.share_shorter_than(*length)?;
            let text = format!("{:.1}", 100.0 * share);
            Some(Shown { text, best: false })
        };
        let cells: Option<Vec<Shown>> = lengths.iter().map(cell).collect();
        let name = grid.name(p);
        Some(Row {
            name,
            cells: cells?,
        })
    };
    let rows: Vec<Row> = (0..grid.policies.len()).filter_map(row).collect();
    (!rows.is_empty()).then(|| Matrix {
        title: format!("Pages read in shorter sequences at {} [%]", grid.size(size)),
        how: "Columns are lengths in pages.".to_owned(),
        detail: true,
        judged: false,
        heads: lengths
            .iter()
            .map(|l| format!("< {}", grouped(u64::from(*l))))
            .collect(),
        rows,
    })
}

/// Miss-ratio curves.
fn curves(grid: &Grid<'_>) -> Result<Section, ReportError> {
    let replay = grid.replay;
    let curves: Vec<_> = replay
        .curves
        .iter()
        .filter(|c| known(c).next().is_some())
        .collect();
    let sizes: Vec<u64> = curves
        .iter()
        .flat_map(|c| known(c))
        .map(|p| p.size_pages)
        .collect();
    let x = memory_axis(replay, &sizes);
    let other = grid.policies.len();
    let color = |c: &super::MissRatioCurve| {
        grid.policies
            .iter()
            .position(|p| *p == c.policy)
            .unwrap_or(other)
    };
    let lines: Vec<Line> = curves
        .iter()
        .map(|c| curve_line(replay, c, color(c), &x))
        .collect();
    let legend = curves.iter().zip(&lines).map(|(c, line)| {
        let dashes = if c.exact { "" } else { " (dashed)" };
        (class(line.color), format!("{}{dashes}", curve_name(c)))
    });
    let legend = legend.collect();
    let label = "Miss ratio against the size of memory, by policy";
    let knee = knee(&lines, &x).map(|at| zoomed(replay, &lines, at));
    let svg = line_chart(&LineChart {
        label: label.to_owned(),
        size: WIDE,
        y: value_axis(&lines, "Misses per reference", "%"),
        x,
        lines,
    })?;
    let mut figures = vec![figure("Miss ratio over memory size".to_owned(), svg)];
    if let Some((x, lines)) = knee {
        let svg = line_chart(&LineChart {
            label: format!("{label}, where one falls most steeply"),
            size: WIDE,
            y: value_axis(&lines, "Misses per reference", "%"),
            x,
            lines,
        })?;
        figures.push(figure("Where a curve falls most steeply".to_owned(), svg));
    }
    let mut out = section(
        "Miss-ratio curves",
        remarks(replay).join(" "),
        figures,
        "one",
    );
    out.legend = legend;
    Ok(out)
}

/// The sizes between which the steepest curve makes most of its fall, if that is a small
/// part of the axis: the rest of the picture hides what happens there.
fn knee(lines: &[Line], x: &Axis) -> Option<[f64; 2]> {
    let of = |line: &Line| {
        let ys = || line.points.iter().map(|(_, y)| *y);
        let high = ys().fold(f64::NEG_INFINITY, f64::max);
        let low = ys().fold(f64::INFINITY, f64::min);
        let edge = KNEE_EDGE * (high - low);
        let from = line.points.iter().rev().find(|(_, y)| *y >= high - edge)?;
        let to = line.points.iter().find(|(_, y)| *y <= low + edge)?;
        let share = x.share(to.0) - x.share(from.0);
        (high - low >= KNEE_FALL && share > 0.0).then_some((share, [from.0, to.0]))
    };
    let steepest = lines.iter().filter_map(of);
    let (share, ends) = steepest.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (share < KNEE_SHARE).then_some(ends)
}

/// The lines between two sizes, with a margin, and the axis for that.
fn zoomed(replay: &Replay, lines: &[Line], [from, to]: [f64; 2]) -> (Axis, Vec<Line>) {
    let margin = KNEE_MARGIN * (to - from);
    let ends = [(from - margin).max(0.5 * from), to + margin];
    let axis = match replay.conditions.page_bytes {
        0 => Axis::linear("memory [pages]", ends, 9),
        _ => Axis::memory(ends.into_iter(), 9),
    };
    let lines = lines.iter().map(|line| line.between(ends));
    (axis, lines.collect())
}

fn curve_line(replay: &Replay, curve: &super::MissRatioCurve, color: usize, x: &Axis) -> Line {
    let at = |p: &super::MissRatioPoint| place(replay, p.size_pages);
    // The smallest size is one page: zero has no place on a logarithmic axis.
    let all: Vec<super::MissRatioPoint> =
        known(curve).filter(|p| p.size_pages > 0).copied().collect();
    let dots = all.len() <= MAX_DOTS;
    let kept = thinned(all, |p| (x.share(at(p)), p.miss_ratio));
    let band = |p: &super::MissRatioPoint| {
        let [low, high] = interval(p)?;
        Some((at(p), 100.0 * low, 100.0 * high))
    };
    let mut stops: Vec<Stop> = Vec::new();
    for p in &kept {
        if dots
            || stops
                .last()
                .is_none_or(|last| x.share(at(p)) - x.share(last.x) >= TIP_STEP)
        {
            stops.push(curve_stop(replay, curve, p, dots));
        }
    }
    Line {
        color,
        dash: if curve.exact {
            Dash::Solid
        } else {
            Dash::Dashed
        },
        points: kept.iter().map(|p| (at(p), 100.0 * p.miss_ratio)).collect(),
        stops,
        band: kept.iter().filter_map(band).collect(),
    }
}

fn curve_stop(
    replay: &Replay,
    curve: &super::MissRatioCurve,
    p: &super::MissRatioPoint,
    dot: bool,
) -> Stop {
    let ends = interval(p).map_or_else(String::new, |[low, high]| {
        format!(" ({:.2} to {:.2} %)", 100.0 * low, 100.0 * high)
    });
    let (name, size) = (curve_name(curve), size_text(replay, p.size_pages));
    Stop {
        x: place(replay, p.size_pages),
        y: 100.0 * p.miss_ratio,
        ends: None,
        dot,
        tip: format!(
            "{name}: {:.2} % misses{ends} at {size}",
            100.0 * p.miss_ratio
        ),
    }
}
