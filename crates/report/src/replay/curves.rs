//! Miss-ratio curves in numbers: a table at some of their sizes.

use std::collections::BTreeSet;

use super::{
    MissRatioCurve, MissRatioPoint, Replay,
    grid::size_text,
    matrix::{Matrix, Row, Shown, head},
};
use crate::format::{brief, clean, grouped, join_names, short};

/// Sizes of a curve that a table shows.
const MAX_SIZES: usize = 12;
/// Longest name of a policy.
const NAME_CHARS: usize = 24;

/// The curves at some of their sizes, if there are any with points.
pub(super) fn curve_matrix(replay: &Replay) -> Option<Matrix> {
    let sizes = chosen_sizes(&replay.curves);
    let rows = replay.curves.iter().flat_map(|c| rows(c, &sizes));
    (!sizes.is_empty()).then(|| Matrix {
        title: "Miss-ratio curves: misses per reference [%]".to_owned(),
        how: remarks(replay).join(" "),
        detail: false,
        judged: false,
        heads: sizes.iter().map(|s| head(replay, *s)).collect(),
        rows: rows.collect(),
    })
}

/// Whose the curve is, and whether every reference was looked at.
pub(super) fn curve_name(curve: &MissRatioCurve) -> String {
    let name = short(&curve.policy, NAME_CHARS);
    match curve.exact {
        true => format!("{name}, exact"),
        false => format!("{name}, sampled"),
    }
}

/// Points that can be shown.
pub(super) fn known(curve: &MissRatioCurve) -> impl Iterator<Item = &MissRatioPoint> {
    let possible = |p: &&MissRatioPoint| (0.0..=1.0).contains(&p.miss_ratio);
    curve.points.iter().filter(possible)
}

/// A point's interval, as far as miss ratios go.
pub(super) fn interval(p: &MissRatioPoint) -> Option<[f64; 2]> {
    let ends = p.ci95.filter(|[low, high]| low <= high);
    ends.map(|ends| ends.map(|v| v.clamp(0.0, 1.0)))
}

/// At most [`MAX_SIZES`], about evenly spread over the logarithm of the size: of those
/// that all curves have, or, where these are none, of all.
fn chosen_sizes(curves: &[MissRatioCurve]) -> Vec<u64> {
    let sets = curves
        .iter()
        .map(|c| known(c).map(|p| p.size_pages).collect());
    let sets: Vec<BTreeSet<u64>> = sets.filter(|s: &BTreeSet<u64>| !s.is_empty()).collect();
    let all: BTreeSet<u64> = sets.iter().flatten().copied().collect();
    let of_all: Vec<u64> = all
        .iter()
        .copied()
        .filter(|s| sets.iter().all(|set| set.contains(s)))
        .collect();
    match of_all.is_empty() {
        true => spread(&all.into_iter().collect::<Vec<_>>()),
        false => spread(&of_all),
    }
}

/// The sizes nearest to equal steps of the logarithm, with both ends.
fn spread(sizes: &[u64]) -> Vec<u64> {
    let log = |s: u64| (s.max(1) as f64).log2();
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else {
        return Vec::new();
    };
    if sizes.len() <= MAX_SIZES {
        return sizes.to_vec();
    }
    let step = (log(*last) - log(*first)) / (MAX_SIZES - 1) as f64;
    let wanted = (0..MAX_SIZES).map(|i| log(*first) + step * i as f64);
    let nearest = |at: f64| {
        let distance = |s: &&u64| (log(**s) - at).abs();
        sizes
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
    };
    let chosen: BTreeSet<u64> = wanted.filter_map(nearest).copied().collect();
    chosen.into_iter().collect()
}

/// A row of miss ratios, and one of intervals where there are some.
fn rows(curve: &MissRatioCurve, sizes: &[u64]) -> Vec<Row> {
    let row = |name: String, text: &dyn Fn(&MissRatioPoint) -> Option<String>| Row {
        name,
        cells: sizes.iter().map(|s| shown(curve, *s, text)).collect(),
    };
    let percent = |v: f64| crate::format::percent(100.0 * v);
    let value = |p: &MissRatioPoint| Some(percent(p.miss_ratio));
    let ends = |p: &MissRatioPoint| {
        let [low, high] = interval(p)?.map(percent);
        Some(format!("{low} to\n{high}"))
    };
    let mut out = vec![row(curve_name(curve), &value)];
    if known(curve).any(|p| interval(p).is_some()) {
        out.push(row("  95 % interval".to_owned(), &ends));
    }
    out
}

fn shown(
    curve: &MissRatioCurve,
    size: u64,
    text: &dyn Fn(&MissRatioPoint) -> Option<String>,
) -> Shown {
    let found = known(curve).find(|p| p.size_pages == size).and_then(text);
    Shown {
        text: found.unwrap_or_else(|| "-".to_owned()),
        best: false,
    }
}

/// How each curve was made, and how far a sampled one was seen to be off.
pub(super) fn remarks(replay: &Replay) -> Vec<String> {
    let curves = replay.curves.iter().filter(|c| known(c).next().is_some());
    // Curves that were made alike are told of together.
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for curve in curves {
        let (text, name) = (remark(replay, curve), short(&curve.policy, NAME_CHARS));
        match told.iter_mut().find(|(t, _)| *t == text) {
            Some((_, names)) => names.push(name),
            None => told.push((text, vec![name])),
        }
    }
    let told = told.into_iter();
    told.map(|(text, names)| format!("{}: {text}.", names.join(", ")))
        .collect()
}

fn remark(replay: &Replay, curve: &MissRatioCurve) -> String {
    let references = grouped(curve.references);
    if curve.exact {
        let sizes = known(curve).map(|p| p.size_pages);
        let largest = sizes
            .max()
            .map_or_else(String::new, |s| size_text(replay, s));
        return format!("exact, all {references} references, up to {largest}");
    }
    let samples = match curve.samples {
        0 | 1 => "one sample".to_owned(),
        n => format!("{n} samples, bands are 95 % intervals"),
    };
    let rate = brief(100.0 * curve.sampling_rate);
    let largest = curve.checks.iter().map(|c| (c.sampled - c.full).abs());
    let error = largest.filter(|e| e.is_finite()).reduce(f64::max).map(|e| {
        let sizes: Vec<String> = curve
            .checks
            .iter()
            .map(|c| size_text(replay, c.size_pages))
            .collect();
        let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
        format!(
            ", at most {} percentage points off the full runs at {}",
            brief(100.0 * e),
            join_names(&sizes)
        )
    });
    let error = error.unwrap_or_default();
    clean(&format!(
        "{rate} % of the pages of {references} references, {samples}{error}"
    ))
}
