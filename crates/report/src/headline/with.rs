//! What changed together with a program's time, and by enough to account for it.

use crate::{
    LevelMpki, Metrics, ProgramResult, Sample,
    format::{number, short},
};

/// Misses, or row hits, that changed with the time.
pub(super) struct With {
    pub(super) text: String,
    pub(super) change: Sample,
}

/// What a miss may cost, about, if nothing hides it: the latency of memory under load. It is 60 to 90 ns
/// without load on the machines of the presets.
const MISS_PS: f64 = 100_000.0;
/// What a DRAM row that has to be opened costs more than one that is open: tRP and tRCD of DDR3 and DDR4
/// are 12 to 15 ns each.
const ROW_PS: f64 = 30_000.0;
/// What is named must account for this share of the time at least.
const CARRIED: f64 = 0.5;

/// Time that the program lost (or gained) for each of its instructions.
fn lost_ps(target: &ProgramResult, slowdown: f64) -> Option<f64> {
    let alone = &target.alone;
    let each = alone.time_ps.mean / alone.instructions.mean;
    Some(each * slowdown.abs()).filter(|lost| lost.is_finite())
}

/// What else changed in the direction that fits a slowdown, and by so much that it can account for
/// it: the outermost cache level whose misses moved, else the DRAM row hits.
pub(super) fn reason(target: &ProgramResult, slowdown: f64) -> Option<With> {
    let together = target.together.as_ref()?;
    let lost = lost_ps(target, slowdown)?;
    let moved = |alone: &Sample, there: &Sample| {
        let change = there.difference(alone);
        (change.excludes_zero() == Some(true)).then_some(change)
    };
    for (alone, there) in levels(&target.alone, together).rev() {
        let (name, before, after) = (short(&alone.level, 20), &alone.mpki, &there.mpki);
        let fits = moved(before, after).filter(|c| (c.mean > 0.0) == (slowdown > 0.0));
        let (before, after) = brief(before.mean, after.mean);
        let carried = fits
            .as_ref()
            .map_or(0.0, |c| c.mean.abs() / 1000.0 * MISS_PS);
        // A change that the shown digits hide would read as nonsense.
        if let (Some(change), true) = (fits.filter(|_| carried >= CARRIED * lost), before != after)
        {
            let verb = if slowdown > 0.0 { "rise" } else { "fall" };
            let text = format!(
                " as its {name} misses {verb} from {before} to {after} per 1000 instructions"
            );
            return Some(With { text, change });
        }
    }
    let (before, after) = (
        target.alone.row_hit_rate.as_ref()?,
        together.row_hit_rate.as_ref()?,
    );
    let change = moved(before, after).filter(|c| (c.mean < 0.0) == (slowdown > 0.0))?;
    let misses = together
        .mpki
        .last()
        .map_or(0.0, |last| last.mpki.mean / 1000.0);
    if change.mean.abs() * misses * ROW_PS < CARRIED * lost {
        return None;
    }
    let (before, after) = brief(before.mean * 100.0, after.mean * 100.0);
    let verb = if slowdown > 0.0 { "fall" } else { "rise" };
    let text = format!(" as its DRAM row hits {verb} from {before} % to {after} %");
    (before != after).then_some(With { text, change })
}

/// Two numbers with two significant digits, or three if they need it to differ.
fn brief(before: f64, after: f64) -> (String, String) {
    let two = |v: f64| match format!("{v:.1e}").parse::<f64>() {
        Ok(v) if v.abs() >= 10.0 => format!("{v:.0}"),
        Ok(v) if v.abs() >= 1.0 => format!("{v:.1}"),
        _ => format!("{v:.2}"),
    };
    let pair = (two(before), two(after));
    if pair.0 == pair.1 {
        (number(before), number(after))
    } else {
        pair
    }
}

/// Levels that both phases have, innermost first.
fn levels<'a>(
    alone: &'a Metrics,
    together: &'a Metrics,
) -> impl DoubleEndedIterator<Item = (&'a LevelMpki, &'a LevelMpki)> {
    alone.mpki.iter().filter_map(|before| {
        let there = together.mpki.iter().find(|l| l.level == before.level)?;
        Some((before, there))
    })
}
