//! Whether caches were warm when counting began, and what would make them so.

use super::{ALONE, Evidence, LEAST_LAST_LEVEL, Refusal, Run, waits};
use crate::{Metrics, Unmet, format::short};

/// A warm cache holds this share of what it comes to hold.
const LEAST_FULL: f64 = 0.95;
/// It fills by less than this share of its room while it is looked at.
const MOST_DRIFT: f64 = 0.02;
/// Growth by less than this share of its room is a few lines that come and go, unless they are what
/// misses brought.
const LEAST_GROWTH: f64 = 0.005;
/// Where more of the misses than this only filled empty places, they are those of a cache that
/// is filling.
const MOST_FIRST_FILLS: f64 = 0.5;
/// A measured part of fewer references than this share of those asked for is one of a recording that
/// holds no more; parts end with a batch, and so a little before or after.
const LEAST_OF_BUDGET: f64 = 0.98;

/// The first level of a run that was still filling, if one was.
pub(super) fn cold(e: &Evidence<'_>, run: &Run<'_>) -> Option<Refusal> {
    if waits(run.metrics) {
        return None;
    }
    let levels = &run.metrics.occupancy;
    // The outermost level takes the longest: what warms it warms the others.
    levels.iter().enumerate().rev().find_map(|(k, level)| {
        let [room, start, end] = [&level.room, &level.start, &level.end].map(|s| s.mean);
        let growth = end - start;
        if !(room > 0.0 && growth > 0.0) {
            return None;
        }
        let full = start / end;
        let drift = growth / room;
        // A short measured part hardly fills anything, and yet all its misses may be first ones.
        let first_fills = first_fills(run.metrics, k, growth);
        let filling = first_fills.filter(|share| *share > MOST_FIRST_FILLS);
        let grows = drift > LEAST_GROWTH && (full < LEAST_FULL || drift >= MOST_DRIFT);
        // However little it is in this part: as long again as the run has been would fill it further.
        // Where a time ends the part, nobody knows how many references it had.
        let so_far = (e.warmup_refs + e.budget_refs) as f64 / e.budget_refs.max(1) as f64;
        let fills_on =
            e.budget_refs > 0 && start < LEAST_FULL * room && drift * so_far > 1.0 - LEAST_FULL;
        if !grows && filling.is_none() && !fills_on {
            return None;
        }
        // All that it has fits, and is there already: what grows is that of others, or of the kernel.
        let fits = run.metrics.pages.mean * 4096.0 <= LEAST_FULL * level.bytes as f64;
        let own_growth = level.own_end.mean - level.own_start.mean;
        if !level.shared && fits && own_growth <= LEAST_GROWTH * room {
            return None;
        }
        let name = short(&level.level, 20);
        let mut why = format!(
            "{}'s {name} was {} % full when counting began and {} % when it ended ({})",
            short(e.name, 40),
            brief_percent(start / room),
            brief_percent(end / room),
            run.label,
        );
        if let Some(share) = filling {
            // What prefetchers bring fills empty places as well, and is no miss.
            why += &match share {
                share if share > 1.0 => {
                    ", and more lines filled empty places than missed".to_owned()
                }
                share => format!(
                    ", and {} % of the misses filled empty places",
                    brief_percent(share)
                ),
            };
        }
        let unmet = match filling {
            Some(share) => Unmet::new("first_fills", share, MOST_FIRST_FILLS),
            None if full < LEAST_FULL => Unmet::new("full", full, LEAST_FULL),
            None if drift >= MOST_DRIFT => Unmet::new("drift", drift, MOST_DRIFT),
            None => Unmet::new("full", start / room, LEAST_FULL),
        };
        Some((why, warmer(e, run, [room, start, end]), unmet))
    })
}

fn brief_percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent >= 10.0 => format!("{percent:.0}"),
        percent => format!("{percent:.1}"),
    }
}

/// Share of a last level's misses that filled empty places, if it misses enough to matter.
fn first_fills(metrics: &Metrics, level: usize, growth: f64) -> Option<f64> {
    let last = level + 1 == metrics.mpki.len();
    let misses = metrics.mpki.get(level).filter(|_| last)?.mpki.mean;
    let own = &metrics.occupancy[level];
    let own = (own.own_end.mean - own.own_start.mean).clamp(0.0, growth);
    let all = misses * metrics.instructions.mean / 1000.0;
    (misses > LEAST_LAST_LEVEL && all > 0.0).then(|| own / all)
}

/// What a measured part had of the references that were asked for, where its recording holds no more; 1 where
/// it had them.
pub(crate) fn share_of_budget(metrics: &Metrics, budget_refs: u64) -> f64 {
    let share = metrics.refs.mean / budget_refs as f64;
    let is_short = share > 0.0 && share < LEAST_OF_BUDGET;
    if is_short { share } else { 1.0 }
}

/// What would make the cache warm: references until the sets are full, at the rate at which they
/// filled, or, if that is more, at one that falls with what is empty. A program that never fills them
/// needs fewer. One whose recording holds less than a run asks for has parts that are shorter by as much.
fn warmer(e: &Evidence<'_>, run: &Run<'_>, [room, start, end]: [f64; 3]) -> String {
    if e.budget_refs == 0 {
        let key = if run.label.starts_with(ALONE) {
            "warmup_refs"
        } else {
            "course.warmup_us"
        };
        return format!("set a higher {key}");
    }
    let share = share_of_budget(run.metrics, e.budget_refs);
    let budget = share * e.budget_refs as f64;
    let rate = (end - start) / budget;
    let steady = (LEAST_FULL * room - end).max(0.0) / rate;
    let empty = |held: f64| (room - held) / room;
    let falling = if empty(end) > 1.0 - LEAST_FULL {
        let decay = (empty(start) / empty(end)).ln() / budget;
        (empty(end) / (1.0 - LEAST_FULL)).ln() / decay
    } else {
        0.0
    };
    let missing = steady.max(falling);
    let refs = share * e.warmup_refs as f64 + budget + missing;
    let longer = "or let the programs have a smaller cache";
    let is_short = share < 1.0;
    if !(refs.is_finite() && refs < 1e15) {
        let record = if is_short {
            "take a longer recording and "
        } else {
            ""
        };
        format!("{record}set a higher warmup_refs, {longer}")
    } else if is_short {
        let (held, warmup) = (count(refs + budget), count(refs));
        format!(
            "take a recording of {held} references or more and set warmup_refs = {warmup}, {longer}"
        )
    } else {
        format!("set warmup_refs = {} or more, {longer}", count(refs))
    }
}

/// A number of references as scenarios take it, rounded up to two digits.
pub(crate) fn count(refs: f64) -> String {
    let step = 10f64.powf((refs.max(1.0).log10().floor() - 1.0).max(0.0));
    let refs = (refs / step).ceil() * step;
    let (value, unit) = match refs {
        refs if refs >= 1e9 => (refs / 1e9, "G"),
        refs if refs >= 1e6 => (refs / 1e6, "M"),
        refs if refs >= 1e3 => (refs / 1e3, "k"),
        refs => (refs, ""),
    };
    if value.fract() == 0.0 {
        format!("{value:.0}{unit}")
    } else {
        format!("{value:.1}{unit}")
    }
}
