//! H-1, H-2, H-6 and H-13 if moving pages took no time: shown, and never judged.
//!
//! Each program goes on at its speed in the time that went to moving its pages; of the first
//! repetition.

use piebald_report::Sample;

use super::{
    mixes::Mix,
    rows::{CACHE, RANDOM, Runs, VERTICAL, WayOf, banks, number, share},
    ways::Way,
};
use crate::row::{Found, Row};

const FREE: &str = "without the time of moves";

/// The weighted speedup of a mix without the time of moves.
fn free(runs: &Runs<'_>, mix: &Mix, way: Way) -> Result<f64, String> {
    Ok(runs.bench.without_moves(mix, way)?[0])
}

/// Gain of a way over another without the time of moves, in percent.
pub(super) fn gain(runs: &Runs<'_>, mix: &Mix, way: Way, over: Way) -> Result<f64, String> {
    Ok(100.0 * (free(runs, mix, way)? / free(runs, mix, over)? - 1.0))
}

fn most(found: Vec<f64>) -> Found {
    match found.is_empty() {
        true => Err("no case was run".to_owned()),
        false => number(found.into_iter().fold(f64::MIN, f64::max)),
    }
}

/// H-1's gains, plain and free, the time that moves took, and the quadrants without it. Intervals
/// are over mixes.
pub(super) fn gains(runs: &Runs<'_>, mixes: &[Mix], row: &mut Row) {
    let ways: [(&str, WayOf); 4] = [
        ("cache-only", |_| CACHE),
        ("bank-only", banks),
        ("UVP", |_| Way::Uvp),
        ("HVR", |_| Way::Hvr),
    ];
    let mut all = Vec::new();
    let mut columns = vec!["mix".to_owned()];
    let mut cells: Vec<Vec<String>> = mixes
        .iter()
        .map(|mix| vec![mix.number.to_string()])
        .collect();
    for (name, way) in ways {
        let found = mixes.iter().map(|mix| {
            let [_, most] = runs.bench.without_moves(mix, way(mix))?;
            let plain = runs.bench.gain(mix, way(mix), Way::Linux)?.mean;
            let free = gain(runs, mix, way(mix), Way::Linux)?;
            Ok([plain, free, 100.0 * most])
        });
        let Ok(found) = found.collect::<Result<Vec<[f64; 3]>, String>>() else {
            return;
        };
        for (part, words) in [
            "mean gain (interval over mixes)",
            "mean gain without the time of moves (interval over mixes)",
            "time of moves of the program that has most, mean (interval over mixes)",
        ]
        .iter()
        .enumerate()
        {
            let of: Sample = found.iter().map(|f| f[part]).collect();
            row.show(&format!("{name}, {words}"), &Ok(of), "%");
        }
        for (cells, f) in cells.iter_mut().zip(&found) {
            cells.extend(f.map(|value| format!("{value:.1}")));
        }
        columns.extend(["", " without moves", " moves"].map(|part| format!("{name}{part}")));
        all.push(found.iter().map(|f| f[1]).collect::<Vec<f64>>());
    }
    let title = "Gains over Linux in %, as they are and without the time of moves, and that time in % of the \
                 program's that has most";
    row.cases(title, columns, cells);
    let [cache, bank, ..] = all.as_slice() else {
        return;
    };
    for (words, holds) in [
        (
            "both gain",
            (|c, b| c > 0.0 && b > 0.0) as fn(f64, f64) -> bool,
        ),
        ("only cache-only gains", |c, b| c > 0.0 && b <= 0.0),
        ("only bank-only gains", |c, b| c <= 0.0 && b > 0.0),
        ("neither gains", |c, b| c <= 0.0 && b <= 0.0),
    ] {
        let both = cache.iter().zip(bank);
        let count = both.filter(|(c, b)| holds(**c, **b)).count();
        let of = number(share(count, mixes.len()));
        row.show(&format!("{words}, {FREE}"), &of, "%");
    }
}

/// H-2's numbers and its share of mixes.
pub(super) fn vertical(runs: &Runs<'_>, mixes: &[Mix], row: &mut Row) {
    let over: [(&str, WayOf); 3] = [
        ("Linux", |_| Way::Linux),
        ("cache-only", |_| CACHE),
        ("bank-only", banks),
    ];
    for (word, over) in over {
        let all = mixes.iter().map(|m| gain(runs, m, VERTICAL[0], over(m)));
        let found = all.collect::<Result<Vec<f64>, String>>().and_then(most);
        row.show(&format!("A-VP over {word}, at most, {FREE}"), &found, "%");
    }
    let is_best = |mix: &Mix| -> Result<bool, String> {
        let largest = |ways: &[Way]| -> Result<f64, String> {
            let each = ways.iter().map(|way| free(runs, mix, *way));
            let each: Vec<f64> = each.collect::<Result<_, _>>()?;
            Ok(each.into_iter().fold(f64::MIN, f64::max))
        };
        Ok(largest(&[CACHE, banks(mix), RANDOM])? <= largest(&VERTICAL)?)
    };
    let best: Result<Vec<bool>, String> = mixes.iter().map(is_best).collect();
    let best = best.and_then(|all| {
        let count = all.iter().filter(|best| **best).count();
        number(share(count, all.len()))
    });
    row.show(
        &format!("a vertical policy is best of six, {FREE}"),
        &best,
        "%",
    );
}

/// H-13's lead.
pub(super) fn lead(runs: &Runs<'_>, mixes: &[Mix], row: &mut Row) {
    let lead = |mix: &Mix| -> Result<f64, String> {
        let mut least = f64::MAX;
        for over in [CACHE, banks(mix), Way::Uvp] {
            least = least.min(gain(runs, mix, Way::Hvr, over)?);
        }
        Ok(least)
    };
    let found: Result<Vec<f64>, String> = mixes.iter().map(lead).collect();
    let words = format!("over the best of the three, at most, {FREE}");
    row.show(&words, &found.clone().and_then(most), "%");
    let words = format!("the same, on average (interval over mixes), {FREE}");
    row.show(&words, &found.map(Sample::new), "%");
}
