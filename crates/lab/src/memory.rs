//! What programs did with their page colours, for the record.

use piebald_experiment::Frames;
use piebald_os_model::kernel::{OnLimit, SwapConfig};
use piebald_policy::color_map::ColorMap;
use piebald_report::{ColorUse, Extra, Sample, WAITED};
use piebald_sim::MemoryUse;
use piebald_units::{ColorSet, Picos};

use crate::colors;
use crate::scenario::{Policy, Scenario};
use crate::tally::{Tally, Zone};

/// The memory of a program in one repetition: of its regions with their weights, or one
/// of weight 1.
pub(crate) type MemoryParts<'a> = Vec<(f64, &'a MemoryUse)>;

/// A figure over repetitions; of regions, the mean by weight.
fn sample(repetitions: &[MemoryParts<'_>], of: impl Fn(&MemoryUse) -> f64) -> Sample {
    let mean = |parts: &MemoryParts<'_>| parts.iter().map(|(weight, m)| weight * of(m)).sum();
    repetitions.iter().map(mean).collect::<Sample>()
}

/// Colours at the end, if the kernel has some; `map` says what those of their owners select.
pub(crate) fn color_use(
    repetitions: &[MemoryParts<'_>],
    map: Option<&ColorMap>,
) -> Option<ColorUse> {
    let first = repetitions.iter().flatten().map(|(_, m)| *m).next()?;
    let colors = first.pages_by_color.len();
    let in_color = |color: usize| {
        sample(repetitions, |m| {
            m.pages_by_color.get(color).map_or(0.0, |n| f64::from(*n))
        })
    };
    let in_parts = |map: &ColorMap| {
        let of = |m: &MemoryUse| match &m.colors {
            Some(set) => colors::in_parts(map, set),
            None => colors::in_parts(map, &ColorSet::first(map.colors())),
        };
        let counted = |parts: &MemoryParts<'_>| -> Vec<(f64, Vec<u32>)> {
            parts.iter().map(|(weight, m)| (*weight, of(m))).collect()
        };
        let counted: Vec<_> = repetitions.iter().map(counted).collect();
        let in_part = |part: usize| {
            let of = |all: &Vec<(f64, Vec<u32>)>| {
                let each = all.iter().map(|(weight, n)| weight * f64::from(n[part]));
                each.sum::<f64>()
            };
            counted.iter().map(of).collect()
        };
        (0..of(first).len()).map(in_part).collect()
    };
    (colors > 0).then(|| ColorUse {
        owned: first.own.as_ref().map(ToString::to_string),
        allowed: (first.colors.as_ref())
            .filter(|set| (set.len() as usize) < colors || first.own.is_some())
            .map(ToString::to_string),
        pages: (0..colors).map(in_color).collect(),
        in_parts: map.map(in_parts).unwrap_or_default(),
        peak_pages: sample(repetitions, |m| m.usage.peak_pages as f64),
    })
}

/// A quantity that only some studies have: its name, its unit, and what it is.
type Figure<T> = (&'static str, &'static str, fn(&T) -> f64);

/// Of pages, for want or change of colours.
const OF_MEMORY: [Figure<MemoryUse>; 6] = [
    ("pages swapped out", "", |m| m.usage.swap_outs as f64),
    ("pages swapped in", "", |m| m.usage.swap_ins as f64),
    ("file pages dropped", "", |m| m.usage.file_drops as f64),
    ("pages moved to other colors", "", |m| {
        m.usage.recolored as f64
    }),
    ("pages that could not move", "", |m| {
        m.usage.recolor_failed as f64
    }),
    ("time for moving pages", "us", |m| {
        m.recolor_time.0 as f64 * 1e-6
    }),
];

/// Of colors that follow from misses.
const OWNED: Figure<MemoryUse> = ("colors owned", "", |m| {
    m.own.as_ref().map_or(0.0, |own| f64::from(own.len()))
});

/// Name of what moving pages took.
pub const MOVES: &str = "time in faults that move pages";

/// Of pages that move to where HVR wants them.
const FOLLOWING: Figure<Tally> = (MOVES, "us", |t| t.following_ps * 1e-6);

/// Of files, and of waiting for the disk.
const OF_FILES: [Figure<Tally>; 7] = [
    (WAITED, "ms", |t| t.blocked_ps * 1e-9),
    ("faults that waited", "", |t| t.major_faults),
    ("file pages read and written", "", |t| t.io_pages),
    ("of these in memory", "%", |t| {
        100.0 * (1.0 - t.io_waits / t.io_pages)
    }),
    ("file pages read from the disk", "", |t| t.disk_reads),
    ("of pages read, kept in memory", "%", |t| {
        100.0 * (1.0 - t.disk_reads / t.io_reads)
    }),
    ("of pages read, not waited for", "%", |t| {
        100.0 * (1.0 - t.read_waits / t.io_reads)
    }),
];

/// Of SRM-buffer's colored zone, which all programs of a run have together.
const OF_ZONE: [Figure<Zone>; 4] = [
    ("colored zone after its last refill", "% of memory", |z| {
        100.0 * z.refilled / z.memory
    }),
    ("colored zone after a refill, largest", "% of memory", |z| {
        100.0 * z.largest / z.memory
    }),
    ("sequences of file pages", "", |z| z.sequences),
    ("sequences that share a color's list", "", |z| z.shared),
];

/// Of read calls, and of threads that go to the files.
const OF_READS: [Figure<Tally>; 7] = [
    ("read by calls", "MB", |t| t.read_bytes * 1e-6),
    ("read by calls in a second", "MB/s", |t| {
        t.read_bytes * 1e-6 / (t.counted.time_ps * 1e-12)
    }),
    ("from memory for each byte read", "B", |t| {
        64.0 * t.counted.memory_lines / t.read_bytes
    }),
    ("of these, by demands", "B", |t| {
        64.0 * t.demand_lines / t.read_bytes
    }),
    ("read past the caches", "%", |t| {
        100.0 * t.past_bytes / t.read_bytes
    }),
    ("threads moved for a read", "", |t| t.read_moves),
    ("threads that changed their core", "", |t| t.migrations),
];

/// Names of such quantities of memory and files.
pub(crate) fn extra_names() -> impl Iterator<Item = &'static str> {
    let names = OF_MEMORY.map(|(name, ..)| name).into_iter();
    let names = names.chain([OWNED.0, FOLLOWING.0]);
    let of = |figures: &'static [Figure<Tally>]| figures.iter().map(|(name, ..)| *name);
    let of_zone = OF_ZONE.iter().map(|(name, ..)| *name);
    names
        .chain(of(&OF_FILES))
        .chain(of_zone)
        .chain(of(&OF_READS))
}

/// What was done to pages for want or change of colours, as far as anything was.
pub(crate) fn extras(repetitions: &[MemoryParts<'_>]) -> Vec<Extra> {
    let happened = |of: fn(&MemoryUse) -> f64| {
        let mut all = repetitions.iter().flatten();
        all.any(|(_, m)| of(m) > 0.0)
    };
    let extras = OF_MEMORY.into_iter().filter(|(.., of)| happened(*of));
    extras
        .map(|(name, unit, of)| Extra {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value: sample(repetitions, of),
        })
        .collect()
}

/// How many colors a program has under a policy that gives them by misses.
pub(crate) fn share_extras(policy: &Policy, repetitions: &[MemoryParts<'_>]) -> Option<Extra> {
    let (name, unit, of) = OWNED;
    let is_given =
        policy.frames == Frames::Uvp && repetitions.iter().any(|parts| !parts.is_empty());
    is_given.then(|| Extra {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value: sample(repetitions, of),
    })
}

/// What moving pages took, if HVR had any moved.
pub(crate) fn move_extras(tallies: &[Tally]) -> Option<Extra> {
    let (name, unit, of) = FOLLOWING;
    let moved = tallies.iter().any(|t| of(t) > 0.0);
    moved.then(|| Extra {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value: tallies.iter().map(of).collect(),
    })
}

/// What the disk was needed for, as far as it was.
pub(crate) fn io_extras(tallies: &[Tally]) -> Vec<Extra> {
    let happened = |of: fn(&Tally) -> f64| tallies.iter().all(|t| of(t).is_finite());
    let any = tallies.iter().any(|t| t.blocked_ps + t.io_pages > 0.0);
    let extras = OF_FILES.into_iter().filter(|(.., of)| any && happened(*of));
    extras
        .map(|(name, unit, of)| Extra {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value: tallies.iter().map(of).collect(),
        })
        .collect()
}

/// What became of the colored zone, if there is one.
pub(crate) fn zone_extras(tallies: &[Tally]) -> Vec<Extra> {
    let zones: Option<Vec<Zone>> = tallies.iter().map(|t| t.zone).collect();
    let zones = zones.filter(|zones| !zones.is_empty()).unwrap_or_default();
    let figures = OF_ZONE.iter().filter(|_| !zones.is_empty());
    figures
        .map(|(name, unit, of)| Extra {
            name: (*name).to_owned(),
            unit: (*unit).to_owned(),
            value: zones.iter().map(of).collect(),
        })
        .collect()
}

/// What read calls returned and where threads went for it, if the scenario has a policy that
/// moves threads: then for all its policies, so that they can be compared.
pub(crate) fn read_extras(scenario: &Scenario, tallies: &[Tally]) -> Vec<Extra> {
    let moves = |p: &Policy| p.threads.reads.is_some() || p.threads.balance;
    let wanted = scenario.policies.iter().any(moves);
    let reads = tallies.iter().all(|t| t.read_bytes > 0.0);
    let (of_reads, of_threads) = OF_READS.split_at(5);
    let shown = match (wanted, reads) {
        (false, _) => [].iter().chain(&[]),
        (true, true) => of_reads.iter().chain(of_threads),
        (true, false) => of_threads.iter().chain(&[]),
    };
    shown
        .map(|(name, unit, of)| Extra {
            name: (*name).to_owned(),
            unit: (*unit).to_owned(),
            value: tallies.iter().map(of).collect(),
        })
        .collect()
}

/// What the model leaves out where memory runs out.
pub(crate) fn missing(scenario: &Scenario) -> String {
    let colored = scenario
        .policies
        .iter()
        .any(|p| p.frames == Frames::Rainbow);
    let swaps = scenario
        .programs
        .iter()
        .any(|p| p.on_limit == OnLimit::Swap);
    if !(colored && swaps) {
        return "reclaim and swap: memory that runs out ends the run".to_owned();
    }
    let device = SwapConfig::default();
    let us = |time: Picos| time.0 / 1_000_000;
    format!(
        "swap: a page takes {} us to write and {} us to read, however many there are, and only \
         used-up colors make pages leave: other memory that runs out ends the run",
        us(device.write),
        us(device.read)
    )
}
