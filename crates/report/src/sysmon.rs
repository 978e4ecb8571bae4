//! What SysMon sees of programs that run alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{number, short};

/// What SysMon sees of a program alone, by the access bits of its pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SysMonResult {
    /// The program.
    pub program: String,
    /// References that were watched.
    pub refs: u64,
    /// The class after as many windows as are averaged; `None` = there were fewer.
    pub class: Option<String>,
    /// How often it was found to be of another class later.
    pub changes: u32,
    /// What the class was told from.
    pub told_by: Option<SysMonFacts>,
    /// Pages that were used in each window of JOB1.
    pub hot_pages: Vec<u32>,
    /// The windows of JOB2.
    pub windows: Vec<SysMonWindow>,
}

/// What a class is told from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SysMonFacts {
    /// Hot pages, the mean over the windows of JOB1 that are averaged.
    pub hot_pages: f64,
    /// Re-use time in passes, the mean over those of JOB2; `None` = nothing is known.
    pub reuse_passes: Option<f64>,
    /// Weighted page density of the last window, in hundredths of a percent; 0 if no page was used.
    pub wpd_bp: f64,
}

/// A window of JOB2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SysMonWindow {
    /// Pages by how often they were used: VL, L, M, H and VH.
    pub pages: [u32; 5],
    /// Mean re-use time of the watched page in passes; `None` = nothing is known.
    pub reuse_passes: Option<f64>,
    /// Weighted page density in hundredths of a percent, rounded down; `None` = no page was used.
    pub wpd_bp: Option<u64>,
}

/// A number of a program: its name, what it is, and its unit.
type Figure = (&'static str, fn(&SysMonResult) -> Option<f64>, &'static str);

/// The numbers that there are of each program that was watched. Those of windows are there if there was a
/// window of JOB2.
const FIGURES: [Figure; 11] = [
    ("hot pages", |of| mean(&of.hot()?), "pages"),
    ("fewest hot pages", |of| least(&of.hot()?), "pages"),
    ("most hot pages", |of| most(&of.hot()?), "pages"),
    ("re-use time", |of| mean(&of.reuse()?), "passes"),
    (
        "deviation of re-use times",
        |of| deviation(&of.reuse()?),
        "passes",
    ),
    ("WPD", |of| Some(mean(&of.wpd()?).unwrap_or(0.0)), "0.01 %"),
    ("change of shares", SysMonResult::change_of_shares, "%"),
    ("windows", |of| Some(of.windows.len() as f64), ""),
    (
        "hot pages of its class",
        |of| Some(of.told_by?.hot_pages),
        "pages",
    ),
    // Without one the program never thrashes.
    (
        "re-use time of its class",
        |of| Some(of.told_by?.reuse_passes.unwrap_or(f64::INFINITY)),
        "passes",
    ),
    ("WPD of its class", |of| Some(of.told_by?.wpd_bp), "0.01 %"),
];

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// The standard deviation of these values, of which there are no others.
fn deviation(values: &[f64]) -> Option<f64> {
    let middle = mean(values)?;
    let squares: Vec<f64> = values.iter().map(|v| (v - middle).powi(2)).collect();
    mean(&squares).map(f64::sqrt)
}

impl SysMonResult {
    /// Names of the numbers that there are of a program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIGURES.iter().map(|(name, ..)| *name)
    }

    /// One of these numbers, if it is known.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let (_, of, _) = FIGURES.iter().find(|(own, ..)| *own == name)?;
        of(self)
    }

    /// Nothing without a window of JOB2.
    fn hot(&self) -> Option<Vec<f64>> {
        let all = self.hot_pages.iter().map(|n| f64::from(*n));
        (!self.windows.is_empty()).then(|| all.collect())
    }

    fn reuse(&self) -> Option<Vec<f64>> {
        let all = self.windows.iter().filter_map(|w| w.reuse_passes);
        (!self.windows.is_empty()).then(|| all.collect())
    }

    fn wpd(&self) -> Option<Vec<f64>> {
        let all = self.windows.iter().filter_map(|w| w.wpd_bp);
        (!self.windows.is_empty()).then(|| all.map(|bp| bp as f64).collect())
    }

    /// By how much the share of pages that are used so often differs between windows at most.
    fn change_of_shares(&self) -> Option<f64> {
        let share = |at: usize, window: &SysMonWindow| {
            let used: u32 = window.pages.iter().fold(0, |sum, n| sum.saturating_add(*n));
            f64::from(window.pages[at]) / f64::from(used).max(1.0)
        };
        let change = |at: usize| {
            let all: Vec<f64> = self.windows.iter().map(|w| share(at, w)).collect();
            Some(100.0 * (most(&all)? - least(&all)?))
        };
        (0..5).filter_map(change).reduce(f64::max)
    }
}

/// A table with a line for each program.
pub(crate) struct SysMonTable {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// What stands over the table.
pub(crate) const TITLE: &str =
    "Seen by SysMon: each program alone, by the access bits of its pages";

/// Longest program name.
const NAME_CHARS: usize = 24;

/// What there is of the programs that were watched.
pub(crate) fn table(seen: &[SysMonResult]) -> Option<SysMonTable> {
    let figures = FIGURES
        .iter()
        .filter(|(name, ..)| !name.ends_with("of its class"));
    let heads = figures.clone().map(|(name, _, unit)| match *unit {
        "" => (*name).to_owned(),
        unit => format!("{name}\n[{unit}]"),
    });
    let head = ["program", "class"]
        .map(str::to_owned)
        .into_iter()
        .chain(heads);
    let row = |of: &SysMonResult| {
        let numbers = figures
            .clone()
            .map(|(_, figure, _)| figure(of).map_or_else(|| "-".to_owned(), number));
        let class = of.class.clone().unwrap_or_else(|| "-".to_owned());
        [short(&of.program, NAME_CHARS), class]
            .into_iter()
            .chain(numbers)
            .collect()
    };
    (!seen.is_empty()).then(|| SysMonTable {
        head: head.collect(),
        rows: seen.iter().map(row).collect(),
    })
}

/// All numbers: program, name, unit and value.
pub(crate) fn lines(
    seen: &[SysMonResult],
) -> impl Iterator<Item = (&str, &'static str, &'static str, f64)> {
    let lines = |of: &'_ SysMonResult| {
        let known = FIGURES
            .iter()
            .map(|(name, figure, unit)| (*name, figure(of), *unit));
        let known = known.filter_map(|(name, value, unit)| Some((name, unit, value?)));
        known.collect::<Vec<_>>()
    };
    seen.iter().flat_map(move |of| {
        let lines = lines(of).into_iter();
        lines.map(|(name, unit, value)| (of.program.as_str(), name, unit, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(pages: [u32; 5], reuse: f64) -> SysMonWindow {
        SysMonWindow {
            pages,
            reuse_passes: Some(reuse),
            wpd_bp: Some(1000),
        }
    }

    #[test]
    fn figures_are_of_windows() {
        let seen = SysMonResult {
            hot_pages: vec![4, 10, 4],
            windows: vec![window([5, 5, 0, 0, 0], 10.0), window([2, 5, 0, 0, 3], 30.0)],
            ..SysMonResult::default()
        };
        let figure = |name: &str| seen.figure(name).unwrap_or(f64::NAN);
        for (name, value) in [
            ("hot pages", 6.0),
            ("fewest hot pages", 4.0),
            ("most hot pages", 10.0),
            ("re-use time", 20.0),
            ("deviation of re-use times", 10.0),
            ("WPD", 1000.0),
            ("change of shares", 30.0),
            ("windows", 2.0),
        ] {
            assert!(
                (figure(name) - value).abs() < 1e-9,
                "{name}: {}",
                figure(name)
            );
        }
        assert_eq!(seen.figure("WPD of its class"), None);
        assert_eq!(seen.figure("no such figure"), None);
    }

    #[test]
    fn without_a_window_there_is_no_number_of_windows_pages() {
        let seen = SysMonResult {
            hot_pages: vec![4],
            ..SysMonResult::default()
        };
        for name in ["hot pages", "re-use time", "WPD", "change of shares"] {
            assert_eq!(seen.figure(name), None, "{name}");
        }
        assert_eq!(seen.figure("windows"), Some(0.0));
    }
}
