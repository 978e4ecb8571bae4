//! Which program owns which sets of a cache, over time.
//!
//! Below stand each owner's share of all sets and how fast programs were, over the same time.
//! Each cell shows the owner with the largest share of the group's lines; the
//! more it holds, the stronger the colour. Neighbouring cells that look the same
//! become one rectangle, and all rectangles of one look one path, which keeps a
//! map of thousands of cells small without turning it into a bitmap.

use std::{collections::BTreeMap, fmt::Write as _, ops::Range};

use plotters::prelude::*;

use super::{Area, Failure, GRID, HATCHES, MUTED, Overlay, escape, picture, text_style, tick};
use crate::{
    ReportError, SetMap, SetMapSpeed,
    format::{Kind, clean, number, short},
};

/// Marker colour of lines that hold nothing.
pub(crate) const EMPTY: RGBColor = RGBColor(0xc8, 0xcd, 0xd2);
/// Marker colour of the kernel's lines.
pub(crate) const KERNEL: RGBColor = RGBColor(0x4a, 0x4f, 0x55);

const WIDTH: u32 = 400;
/// Height of the map, of the owners' shares of the whole cache below it, and of the programs'
/// speed below that.
const MAP: u32 = 262;
const SHARES: u32 = 100;
const SPEED: u32 = 100;
/// Height of the numbers and the name of time, below the last of them.
const TIME: u32 = 38;
/// Steps of the colour's strength.
const LEVELS: usize = 8;
/// A finer map is averaged down: nothing finer can be seen.
const MAX_COLUMNS: usize = 200;
const MAX_ROWS: usize = 100;

/// A map that fits the picture: for each column and row the dominant owner and
/// the step of its share.
struct Grid {
    /// Start of each column and the end of the last, in picoseconds.
    edges: Vec<f64>,
    rows: usize,
    /// Index `column * rows + row`.
    cells: Vec<(usize, usize)>,
    /// Share of all lines, by column, then by owner.
    totals: Vec<Vec<f64>>,
}

/// The map as a picture, or `None` if it is empty or its parts do not fit
/// together. `colors` gives each owner's colour.
pub(crate) fn set_map(map: &SetMap, colors: &[RGBColor]) -> Result<Option<String>, ReportError> {
    let Some(grid) = grid(map) else {
        return Ok(None);
    };
    let label = format!(
        "Owners of the sets of {} over time under {}",
        clean(&map.cache),
        clean(&map.policy)
    );
    let speed = if has_speeds(map) { SPEED } else { 0 };
    picture((WIDTH, MAP + SHARES + speed + TIME), &label, |root| {
        draw(root, map, &grid, colors)
    })
    .map(Some)
}

fn grid(map: &SetMap) -> Option<Grid> {
    let (times, groups, owners) = (map.times_ps.len(), map.nr_groups as usize, map.owners.len());
    let expected = times.checked_mul(groups)?.checked_mul(owners)?;
    if expected == 0 || map.shares.len() != expected || !map.times_ps.is_sorted() {
        return None;
    }
    let columns = times.min(MAX_COLUMNS);
    let rows = groups.min(MAX_ROWS);
    let mut cells = Vec::with_capacity(columns * rows);
    for column in 0..columns {
        for row in 0..rows {
            let block = mean_shares(map, part(column, columns, times), part(row, rows, groups));
            cells.push(dominant(&block));
        }
    }
    let total = |column| mean_shares(map, part(column, columns, times), 0..groups);
    let totals = (0..columns).map(total).collect();
    let mut edges: Vec<f64> = (0..columns)
        .map(|c| map.times_ps[part(c, columns, times).start] as f64)
        .collect();
    // A sample stands until the next one; the last as long as the one before.
    let last = edges[columns - 1];
    let step = if columns > 1 {
        last - edges[columns - 2]
    } else {
        1.0
    };
    edges.push(last + step.max(1.0));
    Some(Grid {
        edges,
        rows,
        cells,
        totals,
    })
}

/// The `index`-th of `parts` nearly equal pieces of `0..len`.
fn part(index: usize, parts: usize, len: usize) -> Range<usize> {
    index * len / parts..((index + 1) * len / parts).max(index * len / parts + 1)
}

/// Each owner's mean share over a block of samples.
fn mean_shares(map: &SetMap, times: Range<usize>, groups: Range<usize>) -> Vec<f64> {
    let count = (times.len() * groups.len()).max(1) as f64;
    let mut sums = vec![0.0; map.owners.len()];
    for time in times {
        for group in groups.clone() {
            for (owner, sum) in sums.iter_mut().enumerate() {
                *sum += map.share(time, group, owner).unwrap_or(0.0);
            }
        }
    }
    sums.iter().map(|sum| sum / count).collect()
}

/// The owner with the largest share, the first of equals, and its share's step.
fn dominant(shares: &[f64]) -> (usize, usize) {
    let order = |a: &usize, b: &usize| shares[*a].total_cmp(&shares[*b]).then(b.cmp(a));
    let best = (0..shares.len()).max_by(order).unwrap_or(0);
    let step = shares.get(best).map_or(0.0, |share| share * LEVELS as f64);
    (best, (step as usize).min(LEVELS - 1))
}

/// An axis system in part of the picture, and where its corners are.
struct Panel<'a> {
    /// Left, top, right, bottom.
    corners: (f64, f64, f64, f64),
    grid: &'a Grid,
}

impl Panel<'_> {
    fn x(&self, column: usize) -> f64 {
        let (left, _, right, _) = self.corners;
        let edges = &self.grid.edges;
        let (start, end) = (edges[0], edges[edges.len() - 1]);
        left + (edges[column] - start) / (end - start) * (right - left)
    }

    /// `share` 0..=1 of the height, from below.
    fn y(&self, share: f64) -> f64 {
        let (_, top, _, bottom) = self.corners;
        bottom - share * (bottom - top)
    }
}

fn draw(
    root: &Area<'_>,
    map: &SetMap,
    grid: &Grid,
    colors: &[RGBColor],
) -> Result<Vec<Overlay>, Failure> {
    let (upper, lower) = root.split_vertically(MAP);
    // A map without a number of sets still has groups to count.
    let sets = f64::from(map.nr_sets.max(map.nr_groups));
    let title = format!("set of {}", short(&map.cache, 20));
    let upper = panel(&upper, grid, sets, [&title, ""])?;
    let mut out = vec![HATCHES.to_owned()];
    out.extend(paths(&upper, map, colors));
    if !has_speeds(map) {
        let lower = panel(&lower, grid, 100.0, ["lines [%]", "time"])?;
        out.extend(stack(&lower, map, colors));
        return Ok(out);
    }
    let (middle, lowest) = lower.split_vertically(SHARES);
    let middle = panel(&middle, grid, 100.0, ["lines [%]", ""])?;
    out.extend(stack(&middle, map, colors));
    let most = map.speeds.iter().flat_map(|s| &s.instr_per_ns);
    let most = most.copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let top = if most > 0.0 { 1.1 * most } else { 1.0 };
    let lowest = panel(&lowest, grid, top, ["instr/ns", "time"])?;
    out.extend(speeds(&lowest, map, colors, top));
    Ok(out)
}

/// Whether the map has a speed that can be drawn.
fn has_speeds(map: &SetMap) -> bool {
    let mut all = map.speeds.iter().flat_map(|s| &s.instr_per_ns);
    all.any(|v| v.is_finite())
}

/// The speed of each program, over the same time as the map; dashes tell lines apart as hatches
/// tell areas.
fn speeds(panel: &Panel<'_>, map: &SetMap, colors: &[RGBColor], top: f64) -> Vec<Overlay> {
    let line = |speed: &SetMapSpeed| {
        let owner = map.owners.iter().position(|o| *o == speed.program)?;
        let path = speed_path(panel, map, &speed.instr_per_ns, top);
        let known = speed.instr_per_ns.iter().filter(|v| v.is_finite());
        let mean = known.clone().sum::<f64>() / known.count().max(1) as f64;
        let RGBColor(r, g, b) = colors.get(owner).copied().unwrap_or(EMPTY);
        let dashes = ["none", "6 3", "2 3"][owner.saturating_sub(FIRST_PROGRAM) % 3];
        let text = format!(
            "{}: {} instructions per ns on average",
            short(&speed.program, 40),
            number(mean)
        );
        (!path.is_empty()).then(|| {
            format!(
                r##"<path class="speed" fill="none" stroke="#{r:02X}{g:02X}{b:02X}" stroke-width="2" stroke-dasharray="{dashes}" d="{path}"><title>{}</title></path>"##,
                escape(&text)
            )
        })
    };
    map.speeds.iter().filter_map(line).collect()
}

/// A level for each column of the map; a gap where the speed is not known.
fn speed_path(panel: &Panel<'_>, map: &SetMap, speeds: &[f64], top: f64) -> String {
    let columns = panel.grid.edges.len() - 1;
    let mut path = String::new();
    let mut pen = 'M';
    for column in 0..columns {
        let times = part(column, columns, map.times_ps.len());
        let known = speeds.get(times.start..times.end.min(speeds.len()));
        let known = known.unwrap_or_default();
        let known: Vec<f64> = known.iter().copied().filter(|v| v.is_finite()).collect();
        if known.is_empty() {
            pen = 'M';
            continue;
        }
        let y = panel.y(known.iter().sum::<f64>() / known.len() as f64 / top);
        let (x0, x1) = (panel.x(column), panel.x(column + 1));
        let _ = write!(path, "{pen}{x0:.1} {y:.1}H{x1:.1}");
        pen = 'L';
    }
    path
}

/// Axes with time across and `0..top` upwards; the time axis has numbers only
/// where it has a name.
fn panel<'a>(
    area: &Area<'_>,
    grid: &'a Grid,
    top: f64,
    [y_name, x_name]: [&str; 2],
) -> Result<Panel<'a>, Failure> {
    let (start, end) = (grid.edges[0], grid.edges[grid.edges.len() - 1]);
    let scale = Kind::Time.scale(end);
    let (from, to) = (start * scale.factor, end * scale.factor);
    let mut builder = ChartBuilder::on(area);
    builder.margin_top(8).margin_right(14).y_label_area_size(66);
    let timed = !x_name.is_empty();
    builder.x_label_area_size(if timed { TIME as i32 + 6 } else { 6 });
    let mut context = builder.build_cartesian_2d(from..to.max(from + f64::EPSILON), 0.0..top)?;
    let time = |x: &f64| tick(*x, to - from);
    let level = |y: &f64| tick(*y, top);
    let mut mesh = context.configure_mesh();
    mesh.disable_mesh()
        .axis_style(GRID)
        .label_style(text_style(&MUTED))
        .axis_desc_style(text_style(&MUTED))
        .x_labels(if timed { 6 } else { 0 })
        .y_labels(if y_name.starts_with("set") { 6 } else { 3 })
        .x_label_formatter(&time)
        .y_label_formatter(&level)
        .y_desc(y_name);
    if timed {
        mesh.x_desc(format!("{x_name} [{}]", scale.unit));
    }
    mesh.draw()?;
    let (left, bottom) = context.backend_coord(&(from, 0.0));
    let (right, upper) = context.backend_coord(&(to, top));
    let corners = (
        f64::from(left),
        f64::from(upper),
        f64::from(right),
        f64::from(bottom),
    );
    Ok(Panel { corners, grid })
}

/// The owners' shares of the whole cache, one upon the other; empty lines on top.
fn stack(panel: &Panel<'_>, map: &SetMap, colors: &[RGBColor]) -> Vec<Overlay> {
    let columns = panel.grid.totals.len();
    let mut base = vec![0.0; columns];
    let mut out = Vec::new();
    for owner in (1..map.owners.len()).chain([0]) {
        let mut path = String::new();
        let mut back = String::new();
        for (column, shares) in panel.grid.totals.iter().enumerate() {
            let (x0, x1) = (panel.x(column), panel.x(column + 1));
            let (low, high) = (base[column], (base[column] + shares[owner]).min(1.0));
            let start = if column == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{start}{x0:.1} {:.1}H{x1:.1}", panel.y(high));
            // The lower edge runs back: collected from the right.
            back = format!("L{x1:.1} {:.1}H{x0:.1}{back}", panel.y(low));
            base[column] = high;
        }
        let mean = panel.grid.totals.iter().map(|t| t[owner]).sum::<f64>() / columns as f64;
        let text = format!(
            "{}: {:.0} % of all lines on average",
            short(&map.owners[owner], 40),
            mean * 100.0
        );
        let path = format!("{path}{back}z");
        out.push(area(&path, colors.get(owner), 1.0, &text));
        out.extend(hatch(owner, &path));
    }
    out
}

/// The lines over an owner's area: none over the first program's, one of two kinds over others.
fn hatch(owner: usize, path: &str) -> Option<Overlay> {
    let kind = hatch_kind(owner)?;
    Some(format!(
        r##"<path class="hatch" fill="url(#hatch{kind})" d="{path}"/>"##
    ))
}

/// Which of the two kinds of lines lies over an owner's areas, for legends: 1 or 2.
pub(crate) fn hatch_kind(owner: usize) -> Option<usize> {
    let kind = owner.checked_sub(FIRST_PROGRAM)? % 3;
    (kind > 0).then_some(kind)
}

/// Place of the first program among the owners of a map, behind empty lines and the kernel.
pub(super) const FIRST_PROGRAM: usize = 2;

/// A filled path with a text under the pointer.
fn area(path: &str, color: Option<&RGBColor>, opacity: f64, text: &str) -> Overlay {
    let RGBColor(r, g, b) = color.copied().unwrap_or(EMPTY);
    format!(
        r##"<path class="cell" fill="#{r:02X}{g:02X}{b:02X}" fill-opacity="{opacity:.2}" d="{path}"><title>{}</title></path>"##,
        escape(text),
    )
}

/// One path per look.
fn paths(panel: &Panel<'_>, map: &SetMap, colors: &[RGBColor]) -> Vec<Overlay> {
    let grid = panel.grid;
    let columns = grid.edges.len() - 1;
    let mut looks: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for row in 0..grid.rows {
        let (y0, y1) = (
            (row + 1) as f64 / grid.rows as f64,
            row as f64 / grid.rows as f64,
        );
        let (y0, y1) = (panel.y(y0), panel.y(y1));
        let mut column = 0;
        while column < columns {
            let cell = |c: usize| grid.cells[c * grid.rows + row];
            let look = cell(column);
            let run = (column..columns).take_while(|c| cell(*c) == look).count();
            let (x0, x1) = (panel.x(column), panel.x(column + run));
            let path = looks.entry(look).or_default();
            let _ = write!(path, "M{x0:.1} {y0:.1}H{x1:.1}V{y1:.1}H{x0:.1}z");
            column += run;
        }
    }
    let paint = |((owner, level), path): ((usize, usize), String)| {
        let steps = LEVELS as f64;
        let text = format!(
            "{}: {:.0} to {:.0} % of the lines of these sets",
            short(&map.owners[owner], 40),
            level as f64 / steps * 100.0,
            (level + 1) as f64 / steps * 100.0,
        );
        let opacity = 0.2 + 0.8 * (level + 1) as f64 / steps;
        let painted = area(&path, colors.get(owner), opacity, &text);
        std::iter::once(painted).chain(hatch(owner, &path))
    };
    looks.into_iter().flat_map(paint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(times: usize, groups: u32, shares: Vec<u8>) -> SetMap {
        SetMap {
            policy: "buddy".to_owned(),
            cache: "L3".to_owned(),
            place: None,
            nr_sets: 64,
            nr_groups: groups,
            owners: vec!["empty".to_owned(), "kernel".to_owned(), "scan".to_owned()],
            times_ps: (0..times as u64).map(|t| t * 1000).collect(),
            shares,
            speeds: Vec::new(),
        }
    }

    #[test]
    fn speeds_stand_over_the_time_of_the_map() {
        let mut m = map(3, 1, [0, 55, 200].repeat(3));
        m.speeds = vec![SetMapSpeed {
            program: "scan".to_owned(),
            instr_per_ns: vec![2.0, 1.0],
        }];
        let grid = grid(&m).unwrap();
        let panel = Panel {
            corners: (0.0, 0.0, 3.0, 1.0),
            grid: &grid,
        };
        let path = speed_path(&panel, &m, &m.speeds[0].instr_per_ns, 4.0);
        assert_eq!(path, "M0.0 0.5H1.0L1.0 0.8H2.0");
        // A gap is a gap.
        let path = speed_path(&panel, &m, &[2.0, f64::NAN, 2.0], 4.0);
        assert_eq!(path, "M0.0 0.5H1.0M2.0 0.5H3.0");
        let svg = set_map(&m, &[EMPTY, EMPTY, EMPTY]).unwrap().unwrap();
        assert!(svg.contains("scan: 1.50 instructions per ns"), "{svg}");
        assert!(svg.contains("instr/ns"), "{svg}");
        m.speeds.clear();
        let svg = set_map(&m, &[EMPTY, EMPTY, EMPTY]).unwrap().unwrap();
        assert!(!svg.contains("instr/ns"), "{svg}");
    }

    #[test]
    fn the_largest_share_names_the_cell_and_its_strength() {
        let m = map(1, 2, vec![255, 0, 0, 51, 51, 153]);
        let grid = grid(&m).unwrap();
        assert_eq!(grid.cells, vec![(0, 7), (2, 4)]);
        let expected = [0.6, 0.1, 0.3];
        assert!(
            grid.totals[0]
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-9)
        );
    }

    #[test]
    fn equal_neighbours_become_one_rectangle() {
        let m = map(4, 1, [255, 0, 0].repeat(4));
        let grid = grid(&m).unwrap();
        let panel = Panel {
            corners: (0.0, 0.0, 4.0, 1.0),
            grid: &grid,
        };
        let found = paths(&panel, &m, &[EMPTY]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].matches('M').count(), 1);
    }

    #[test]
    fn a_fine_map_is_averaged_and_loses_no_block() {
        let m = map(1000, 300, [100, 55, 100].repeat(300_000));
        let grid = grid(&m).unwrap();
        assert_eq!((grid.edges.len() - 1, grid.rows), (MAX_COLUMNS, MAX_ROWS));
        assert!(grid.cells.iter().all(|c| *c == (0, 3)));
        let pieces = (0..7).flat_map(|i| part(i, 7, 100));
        assert!(pieces.eq(0..100));
    }

    #[test]
    fn a_map_whose_parts_do_not_fit_gives_no_picture() {
        assert!(set_map(&map(2, 2, vec![0; 5]), &[]).unwrap().is_none());
        assert!(set_map(&map(0, 0, vec![]), &[]).unwrap().is_none());
    }
}
