//! Which program owns which sets of a cache, over time.
//!
//! Each cell shows the owner with the largest share of the group's lines; the
//! more it holds, the stronger the colour. Neighbouring cells that look the same
//! become one rectangle, and all rectangles of one look one path, which keeps a
//! map of thousands of cells small without turning it into a bitmap.

use std::{collections::BTreeMap, fmt::Write as _};

use plotters::prelude::*;

use super::{Area, Failure, GRID, MUTED, Overlay, escape, picture, text_style, tick};
use crate::{
    ReportError, SetMap,
    format::{Kind, clean, short},
};

/// Marker colour of lines that hold nothing.
pub(crate) const EMPTY: RGBColor = RGBColor(0xc8, 0xcd, 0xd2);
/// Marker colour of the kernel's lines.
pub(crate) const KERNEL: RGBColor = RGBColor(0x4a, 0x4f, 0x55);

const WIDTH: u32 = 400;
const HEIGHT: u32 = 300;
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
    picture((WIDTH, HEIGHT), &label, |root| {
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
            let block_times = part(column, columns, times);
            let block_groups = part(row, rows, groups);
            cells.push(dominant(map, block_times, block_groups));
        }
    }
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
    Some(Grid { edges, rows, cells })
}

/// The `index`-th of `parts` nearly equal pieces of `0..len`.
fn part(index: usize, parts: usize, len: usize) -> std::ops::Range<usize> {
    index * len / parts..((index + 1) * len / parts).max(index * len / parts + 1)
}

/// Owner with the largest share over a block of samples, and the share's step.
fn dominant(
    map: &SetMap,
    times: std::ops::Range<usize>,
    groups: std::ops::Range<usize>,
) -> (usize, usize) {
    let owners = map.owners.len();
    let mut sums = vec![0.0; owners];
    let mut count = 0.0;
    for time in times {
        for group in groups.clone() {
            for (owner, sum) in sums.iter_mut().enumerate() {
                *sum += map.share(time, group, owner).unwrap_or(0.0);
            }
            count += 1.0;
        }
    }
    let best = (0..owners)
        .max_by(|a, b| sums[*a].total_cmp(&sums[*b]).then(b.cmp(a)))
        .unwrap_or(0);
    let share = sums[best] / count;
    (best, ((share * LEVELS as f64) as usize).min(LEVELS - 1))
}

fn draw(
    root: &Area<'_>,
    map: &SetMap,
    grid: &Grid,
    colors: &[RGBColor],
) -> Result<Vec<Overlay>, Failure> {
    let (start, end) = (grid.edges[0], grid.edges[grid.edges.len() - 1]);
    let scale = Kind::Time.scale(end);
    let (from, to) = (start * scale.factor, end * scale.factor);
    // A map without a number of sets still has groups to count.
    let sets = f64::from(map.nr_sets.max(map.nr_groups));
    let mut context = ChartBuilder::on(root)
        .margin_top(8)
        .margin_right(14)
        .x_label_area_size(44)
        .y_label_area_size(66)
        .build_cartesian_2d(from..to.max(from + f64::EPSILON), 0.0..sets)?;
    context
        .configure_mesh()
        .disable_mesh()
        .axis_style(GRID)
        .label_style(text_style(&MUTED))
        .axis_desc_style(text_style(&MUTED))
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|x| tick(*x, to - from))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_desc(format!("time [{}]", scale.unit))
        .y_desc(format!("set of {}", short(&map.cache, 20)))
        .draw()?;
    let (left, bottom) = context.backend_coord(&(from, 0.0));
    let (right, top) = context.backend_coord(&(to, sets));
    let (width, height) = (f64::from(right - left), f64::from(bottom - top));
    let x = |column: usize| f64::from(left) + (grid.edges[column] - start) / (end - start) * width;
    let y = |row: usize| f64::from(bottom) - row as f64 / grid.rows as f64 * height;
    Ok(paths(grid, map, colors, x, y))
}

/// One path per look.
fn paths(
    grid: &Grid,
    map: &SetMap,
    colors: &[RGBColor],
    x: impl Fn(usize) -> f64,
    y: impl Fn(usize) -> f64,
) -> Vec<Overlay> {
    let columns = grid.edges.len() - 1;
    let mut looks: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for row in 0..grid.rows {
        let mut column = 0;
        while column < columns {
            let cell = |c: usize| grid.cells[c * grid.rows + row];
            let look = cell(column);
            let run = (column..columns).take_while(|c| cell(*c) == look).count();
            let (x0, x1, y0, y1) = (x(column), x(column + run), y(row + 1), y(row));
            let path = looks.entry(look).or_default();
            let _ = write!(path, "M{x0:.1} {y0:.1}H{x1:.1}V{y1:.1}H{x0:.1}z");
            column += run;
        }
    }
    let paint = |((owner, level), path): ((usize, usize), String)| {
        let RGBColor(r, g, b) = colors.get(owner).copied().unwrap_or(EMPTY);
        let steps = LEVELS as f64;
        let opacity = 0.2 + 0.8 * (level + 1) as f64 / steps;
        let text = format!(
            "{}: {:.0} to {:.0} % of the lines of these sets",
            short(&map.owners[owner], 40),
            level as f64 / steps * 100.0,
            (level + 1) as f64 / steps * 100.0,
        );
        format!(
            r##"<path class="cell" fill="#{r:02X}{g:02X}{b:02X}" fill-opacity="{opacity:.2}" d="{path}"><title>{}</title></path>"##,
            escape(&text),
        )
    };
    looks.into_iter().map(paint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(times: usize, groups: u32, shares: Vec<u8>) -> SetMap {
        SetMap {
            policy: "buddy".to_owned(),
            cache: "L3".to_owned(),
            nr_sets: 64,
            nr_groups: groups,
            owners: vec!["empty".to_owned(), "kernel".to_owned(), "scan".to_owned()],
            times_ps: (0..times as u64).map(|t| t * 1000).collect(),
            shares,
        }
    }

    #[test]
    fn the_largest_share_names_the_cell_and_its_strength() {
        let m = map(1, 2, vec![255, 0, 0, 50, 60, 145]);
        let grid = grid(&m).unwrap();
        assert_eq!(grid.cells, vec![(0, 7), (2, 4)]);
    }

    #[test]
    fn equal_neighbours_become_one_rectangle() {
        let m = map(4, 1, [255, 0, 0].repeat(4));
        let found = paths(&grid(&m).unwrap(), &m, &[EMPTY], |x| x as f64, |y| y as f64);
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
