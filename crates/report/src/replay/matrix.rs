//! What is shown of a replay, one quantity at a time: policies down, sizes across.

use super::{
    Clock, Replay, ReplayIo, ReplayRun,
    apart::{Measure, Verdict},
    findings::{Winners, winners},
    grid::{Grid, size_text},
    seconds,
};
use crate::format::{Kind, UNKNOWN, clean, grouped, number, percent};

/// Sequences longer than this are told apart, in pages: the length by which DULO
/// (FAST'05, section 4.1.2) compares multi1.
pub(super) const LONG_SEQUENCE: u32 = 40;
/// What stands for a run that is missing.
const MISSING: &str = "-";
/// Most decimals of a time.
const MAX_DECIMALS: usize = 3;

/// One quantity of all runs.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    /// With the unit.
    pub title: String,
    /// What one has to know to read it.
    pub how: String,
    /// Shown where all numbers are.
    pub detail: bool,
    /// The best of a size can be told.
    pub judged: bool,
    /// Above the columns: a size, and its pages.
    pub heads: Vec<String>,
    pub rows: Vec<Row>,
}

/// One policy.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub name: String,
    pub cells: Vec<Shown>,
}

/// A number at one size.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    pub text: String,
    /// The best at this size, or as good within 1 % or by chance, where another is worse.
    pub best: bool,
}

/// What stands behind a change that may be chance.
const BY_CHANCE: &str = " (a)";

/// All quantities that the replay has, in the order in which they are read.
pub(super) fn matrices(grid: &Grid<'_>) -> Vec<Matrix> {
    let mut all = vec![hit_ratio(grid), byte_miss_ratio(grid)];
    let misses = "Misses above the offline bound [percentage points]";
    all.extend(above_bound(grid, misses, Measure::Misses));
    let bytes = "Bytes missed above the offline bound [percentage points]";
    all.extend(above_bound(grid, bytes, Measure::Bytes));
    all.extend(too_large(grid));
    all.extend(times(grid));
    all.extend(requests(grid));
    all.extend(extras(grid));
    all.push(counted(grid, "References counted", |r| Some(r.references)));
    all.push(counted(grid, "Misses", |r| Some(r.misses)));
    all.push(counted(grid, "Bytes asked for", |r| {
        Some(r.bytes?.requested)
    }));
    all.push(counted(grid, "Bytes missed", |r| Some(r.bytes?.missed)));
    all.retain(|m| m.is_known());
    all
}

impl Matrix {
    fn is_known(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|r| &r.cells);
        cells.any(|c| c.text != MISSING && c.text != UNKNOWN)
    }

    fn how(mut self, text: &str) -> Self {
        self.how = text.to_owned();
        self
    }

    fn detail(mut self) -> Self {
        self.detail = true;
        self
    }
}

fn hit_ratio(grid: &Grid<'_>) -> Matrix {
    let get = |p, s| Some(100.0 * grid.run(p, s)?.hit_ratio()?);
    let how = match grid.replay.has_bytes() {
        true => "References to objects in memory, of all that were counted.",
        false => "References to pages in memory or on their way, of all that were counted.",
    };
    reals(grid, "Hit ratio [%]", Some(Measure::Misses), get, percent).how(how)
}

fn byte_miss_ratio(grid: &Grid<'_>) -> Matrix {
    let get = |p, s| Some(100.0 * grid.run(p, s)?.byte_miss_ratio()?);
    let how = "Bytes of objects that were not in memory, of all bytes asked for.";
    reals(
        grid,
        "Byte miss ratio [%]",
        Some(Measure::Bytes),
        get,
        percent,
    )
    .how(how)
}

/// Requests whose objects were too large, where there are any.
fn too_large(grid: &Grid<'_>) -> Option<Matrix> {
    let any = |r: &ReplayRun| r.bytes.is_some_and(|bytes| bytes.too_large > 0);
    let how = "Misses of objects that are larger than the memory, or than the policy lets in.";
    let title = "References to objects that are too large to come in";
    let counts = || counts(grid, title, |r| Some(r.bytes?.too_large)).how(how);
    grid.replay.runs.iter().any(any).then(counts)
}

/// How far each policy is from what none can reach.
fn above_bound(grid: &Grid<'_>, title: &str, measure: Measure) -> Option<Matrix> {
    let (bound, what) = grid.bound()?;
    let get = |p: usize, s| {
        let least = measure.of(grid, grid.whole(bound, s)?)?;
        Some(100.0 * (measure.of(grid, grid.whole(p, s)?)? - least)).filter(|_| p != bound)
    };
    let mut matrix = reals(grid, title, Some(measure), get, percent);
    // The bound against itself says nothing; it is the last row.
    matrix.rows.pop();
    Some(matrix.how(what.about))
}

/// One of a disk's times.
type Seconds = fn(&ReplayIo) -> f64;

fn times(grid: &Grid<'_>) -> Vec<Matrix> {
    let clock = grid.replay.clock();
    let compared = |p, s| grid.time(grid.run(p, s)?);
    let mut all = vec![time(grid, clock.name(), Some(Measure::Time), compared)];
    if grid.policies.len() > 1 {
        all.push(changes(grid));
    }
    let io = |p, s| grid.run(p, s)?.io.as_ref();
    let others: [(&str, Seconds); 3] = [
        ("Execution time", |io| io.elapsed_s),
        ("Time waited for the disk", |io| io.waited_s),
        ("Disk busy", |io| io.disk_busy_s),
    ];
    for (name, get) in others.into_iter().filter(|(name, _)| *name != clock.name()) {
        let own = |p, s| seconds(get(io(p, s)?));
        all.push(time(grid, name, None, own).detail());
    }
    without_repeats(all)
}

/// Tables that say the same as the first, as times do where one request follows another, are
/// told of beside it.
fn without_repeats(mut all: Vec<Matrix>) -> Vec<Matrix> {
    let texts = |m: &Matrix| -> Vec<Vec<String>> {
        let cells = |r: &Row| r.cells.iter().map(|c| c.text.clone()).collect();
        m.rows.iter().map(cells).collect()
    };
    let first = texts(&all[0]);
    let name = |m: &Matrix| {
        m.title
            .split(" [")
            .next()
            .unwrap_or_default()
            .to_lowercase()
    };
    let same = |m: &Matrix| m.detail && texts(m) == first;
    let repeats: Vec<String> = all.iter().skip(1).filter(|m| same(m)).map(name).collect();
    if !repeats.is_empty() {
        all[0].how = format!("The same here: {}.", repeats.join(", "));
    }
    let mut at = 0;
    all.retain(|m| {
        at += 1;
        at == 1 || !same(m)
    });
    all
}

fn time(
    grid: &Grid<'_>,
    name: &str,
    judged: Option<Measure>,
    get: impl Fn(usize, usize) -> Option<f64>,
) -> Matrix {
    let known = || all_values(grid, &get).filter(|v| v.is_finite() && *v > 0.0);
    let scale = Kind::Time.scale(known().fold(0.0, f64::max) * 1e12);
    let factor = scale.factor * 1e12;
    let decimals = decimals(known().fold(f64::INFINITY, f64::min) * factor);
    let text = |v: f64| format!("{v:.decimals$}");
    let title = format!("{name} [{}]", scale.unit);
    reals(grid, &title, judged, |p, s| Some(get(p, s)? * factor), text)
}

/// Decimals that show three digits of the smallest time.
fn decimals(smallest: f64) -> usize {
    let digits = 2.0 - smallest.log10().floor();
    match digits.is_finite() {
        true => digits.clamp(0.0, MAX_DECIMALS as f64) as usize,
        false => 0,
    }
}

fn changes(grid: &Grid<'_>) -> Matrix {
    let get = |p: usize, s| grid.change(p, s).map(|c| 100.0 * c).filter(|_| p > 0);
    let title = format!(
        "{} against {} [%]",
        grid.replay.clock().name(),
        grid.name(0)
    );
    let mut matrix = reals(grid, &title, None, get, signed);
    let order = grid.best_first();
    let mut marked = false;
    for (row, p) in matrix.rows.iter_mut().zip(&order) {
        for (s, cell) in row.cells.iter_mut().enumerate() {
            if grid.verdict((*p, 0, s), Measure::Time) == Some(Verdict::Chance) {
                cell.text += BY_CHANCE;
                marked = true;
            }
        }
    }
    // The first policy against itself says nothing.
    let first = order.iter().position(|p| *p == 0);
    first.map(|at| matrix.rows.remove(at));
    let mut how = "Below zero: less time than the first policy at the same size.".to_owned();
    if marked {
        how += " (a): it may be chance, over the parts of the trace.";
    }
    matrix.how(&how)
}

fn signed(value: f64) -> String {
    match format!("{value:+.1}").as_str() {
        "+0.0" | "-0.0" => "0.0".to_owned(),
        text => text.to_owned(),
    }
}

fn requests(grid: &Grid<'_>) -> Vec<Matrix> {
    let io = |p, s| grid.run(p, s)?.io.as_ref();
    let mean = |p, s| io(p, s)?.mean_sequence();
    let long = |p, s| Some(100.0 * io(p, s)?.share_longer_than(LONG_SEQUENCE)?);
    let how = "Pages read one after another at consecutive addresses; each sequence counts once.";
    let percent = |v: f64| format!("{v:.1}");
    let title = format!("Pages read in sequences longer than {LONG_SEQUENCE} pages [%]");
    let of = |title: &str, get: fn(&ReplayIo) -> u64| {
        counts(grid, title, |r| Some(get(r.io.as_ref()?)))
    };
    let some = |title: &str, get: fn(&ReplayIo) -> u64| {
        let any = |r: &ReplayRun| r.io.as_ref().is_some_and(|io| get(io) > 0);
        grid.replay.runs.iter().any(any).then(|| of(title, get))
    };
    let all = [
        Some(of("Read requests to the disk", |io| io.read_requests)),
        some("Write requests to the disk", |io| io.write_requests),
        Some(
            reals(
                grid,
                "Mean length of a sequence [pages]",
                None,
                mean,
                number,
            )
            .how(how),
        ),
        Some(reals(grid, &title, None, long, percent).detail()),
        Some(of("Pages read", |io| io.pages_read)),
        some("Pages written", |io| io.pages_written),
        some("Pages read ahead", |io| io.prefetched).map(Matrix::detail),
        some("Pages read ahead and not used", |io| io.prefetched_unused).map(Matrix::detail),
        some("Hits on pages on their way", |io| io.waited_hits).map(Matrix::detail),
    ];
    all.into_iter().flatten().collect()
}

/// Figures that only some policies have.
fn extras(grid: &Grid<'_>) -> Vec<Matrix> {
    let matrix = |(name, unit): (&str, &str)| {
        let get = |p, s| extra(grid.run(p, s)?, name, unit);
        let title = match unit {
            "" => clean(name),
            unit => format!("{} [{}]", clean(name), clean(unit)),
        };
        let is_of_all = |run: &ReplayRun| extra(run, name, unit).is_some();
        let of_clients = grid.replay.clock() == Clock::Given;
        let mut matrix = reals(grid, &title, None, get, number);
        // What clients got is what such runs are about.
        matrix.detail = !(of_clients && grid.replay.runs.iter().all(is_of_all));
        matrix
            .rows
            .retain(|r| r.cells.iter().any(|c| c.text != MISSING));
        matrix
    };
    extra_names(&grid.replay.runs)
        .into_iter()
        .map(matrix)
        .collect()
}

/// Names and units of the policies' own figures, as they come.
pub(super) fn extra_names(runs: &[ReplayRun]) -> Vec<(&str, &str)> {
    let mut names = Vec::new();
    for (name, _, unit) in runs.iter().flat_map(|r| &r.extra) {
        let own = (name.as_str(), unit.as_str());
        if !names.contains(&own) {
            names.push(own);
        }
    }
    names
}

/// A figure of the policy's own.
pub(super) fn extra(run: &ReplayRun, name: &str, unit: &str) -> Option<f64> {
    let found = run.extra.iter().find(|(n, _, u)| n == name && u == unit);
    found.map(|(_, value, _)| *value)
}

fn all_values<'a>(
    grid: &'a Grid<'_>,
    get: &'a impl Fn(usize, usize) -> Option<f64>,
) -> impl Iterator<Item = f64> + 'a {
    let sizes = grid.sizes.len();
    let places = (0..grid.policies.len()).flat_map(move |p| (0..sizes).map(move |s| (p, s)));
    places.filter_map(move |(p, s)| get(p, s))
}

fn reals(
    grid: &Grid<'_>,
    title: &str,
    judged: Option<Measure>,
    get: impl Fn(usize, usize) -> Option<f64>,
    text: impl Fn(f64) -> String,
) -> Matrix {
    let shown = |v: f64| match v.is_finite() {
        true => text(v),
        false => UNKNOWN.to_owned(),
    };
    let leaders: Vec<Option<Winners>> = (0..grid.sizes.len())
        .map(|s| winners(grid, s, judged?))
        .collect();
    let best = |p: usize, s: usize| {
        let is_number = get(p, s).is_some_and(f64::is_finite);
        is_number && leaders[s].as_ref().is_some_and(|who| who.lead(p))
    };
    let cell = |p, s| Shown {
        text: cell_text(grid, p, s, get(p, s).map(&shown)),
        best: best(p, s),
    };
    Matrix {
        judged: judged.is_some() && grid.online().count() > 1,
        ..rows(grid, title, cell)
    }
}

/// The value, or what stands for one that is not there; a run that was cut short is
/// marked.
fn cell_text(grid: &Grid<'_>, p: usize, s: usize, value: Option<String>) -> String {
    let run = grid.run(p, s).is_some();
    let short = run && grid.whole(p, s).is_none();
    match value {
        Some(text) if short => format!("{text}*"),
        Some(text) => text,
        None if run => UNKNOWN.to_owned(),
        None => MISSING.to_owned(),
    }
}

fn counted(grid: &Grid<'_>, title: &str, get: impl Fn(&ReplayRun) -> Option<u64>) -> Matrix {
    counts(grid, title, get).detail()
}

fn counts(grid: &Grid<'_>, title: &str, get: impl Fn(&ReplayRun) -> Option<u64>) -> Matrix {
    let value = |p, s| grid.run(p, s).and_then(&get).map(grouped);
    let cell = |p, s| Shown {
        text: cell_text(grid, p, s, value(p, s)),
        best: false,
    };
    rows(grid, title, cell)
}

fn rows(grid: &Grid<'_>, title: &str, cell: impl Fn(usize, usize) -> Shown) -> Matrix {
    let row = |p| Row {
        name: grid.row_name(p),
        cells: (0..grid.sizes.len()).map(|s| cell(p, s)).collect(),
    };
    Matrix {
        title: title.to_owned(),
        how: String::new(),
        detail: false,
        judged: false,
        heads: grid.sizes.iter().map(|s| head(grid.replay, *s)).collect(),
        rows: grid.best_first().into_iter().map(row).collect(),
    }
}

/// A column's head: the size, and its pages below.
pub(super) fn head(replay: &Replay, pages: u64) -> String {
    match replay.conditions.page_bytes {
        0 => grouped(pages),
        _ => format!("{}\n{}", size_text(replay, pages), grouped(pages)),
    }
}

/// The head of the policies' column: what the second line of the others is.
pub(super) fn corner(replay: &Replay) -> &'static str {
    match replay.has_bytes() {
        true => "policy\nbytes",
        false => "policy\npages",
    }
}
