//! Rows of mixes that are drawn from all programs: H-1, H-2, H-9, H-12 and H-13.

use std::{
    collections::HashMap,
    sync::{Mutex, atomic::AtomicU64},
};

use piebald_lab::{
    Histories,
    rooms::{
        hw::spec::MachineSpec,
        policy::hvr::{Class, Policy},
    },
};
use piebald_report::{Published, Sample, TargetKind, Verdict};

use super::{
    Given,
    form::Form,
    mixes::{BUS, Bench, Mix, Way},
    programs::Program,
};
use crate::{
    Hooks, Options,
    row::{Found, Row, extreme, mean},
};

/// What rows are made from.
pub(super) struct Runs<'a> {
    pub bench: Bench<'a>,
    pub form: Form,
}

/// Ages of memory that are kept between runs: of two allocators with two maps.
const KEPT: usize = 8;

impl<'a> Runs<'a> {
    pub(super) fn new(
        spec: &'a MachineSpec,
        programs: &'a [Program],
        classes: &'a [Option<Class>],
        form: Form,
        options: &Options,
        hooks: Hooks<'a>,
    ) -> Self {
        Self {
            bench: Bench {
                spec,
                programs,
                classes,
                inputs: options.inputs.clone(),
                warmup: form.warmup,
                budget: form.budget,
                repetitions: form.repetitions,
                seed: options.seed,
                stop: hooks.stop,
                progress: hooks.progress,
                histories: Histories::keeping(KEPT),
                done: Mutex::new(HashMap::new()),
                ready: Mutex::new(HashMap::new()),
                refs: AtomicU64::new(0),
            },
            form,
        }
    }

    pub(super) fn refs(&self) -> u64 {
        self.bench.refs.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Programs of one thread, all or those of some classes.
    pub(super) fn of(&self, classes: &[Class]) -> Vec<usize> {
        let all = self.bench.classes.iter().enumerate();
        let wanted = |c: &Option<Class>| c.is_some_and(|c| classes.contains(&c));
        all.filter(|(_, c)| wanted(c)).map(|(at, _)| at).collect()
    }

    pub(super) fn class(&self, member: (usize, u32)) -> Option<Class> {
        self.bench.classes[member.0]
    }

    /// The mixes of H-1, those of 4 programs and those of 8 by turns.
    fn all(&self, name: &'static str, count: u64) -> Vec<Mix> {
        let all = self.of(&Class::ALL);
        (0..count)
            .filter_map(|n| {
                let size = if n % 2 == 0 { 4 } else { 8 };
                Mix::drawn((name, n), &[(&all, size)])
            })
            .collect()
    }

    fn gains(&self, mixes: &[Mix], way: impl Fn(&Mix) -> Way) -> Vec<Found> {
        let gain = |mix: &Mix| self.bench.gain(mix, way(mix), Way::Linux, BUS);
        mixes.iter().map(gain).collect()
    }
}

const VERTICAL: [Way; 3] = [
    Way::Fixed(Policy::AVp),
    Way::Fixed(Policy::BVp),
    Way::Fixed(Policy::CVp),
];
const CACHE: Way = Way::Fixed(Policy::CacheOnly);
const RANDOM: Way = Way::Fixed(Policy::Random);

fn banks(mix: &Mix) -> Way {
    Way::bank_only(mix.members.len())
}

fn share(holds: usize, of: usize) -> f64 {
    100.0 * holds as f64 / of.max(1) as f64
}

fn number(value: f64) -> Found {
    Ok(Sample::new(vec![value]))
}

/// H-1, H-2 and H-13, which have the same mixes.
pub(super) fn horizontal_and_vertical(runs: &Runs<'_>) -> Given {
    let mixes = runs.all("H-1", runs.form.mixes(214, 6));
    let horizontal = [
        Way::Linux,
        CACHE,
        Way::Fixed(Policy::BankOnly4),
        Way::Fixed(Policy::BankOnly8),
        Way::Hvr,
    ];
    for size in [4, 8] {
        let ways: Vec<Way> = horizontal
            .into_iter()
            .filter(|w| {
                !matches!(w, Way::Fixed(Policy::BankOnly4 | Policy::BankOnly8))
                    || *w == Way::bank_only(size)
            })
            .collect();
        let of: Vec<Mix> = mixes
            .iter()
            .filter(|m| m.members.len() == size)
            .cloned()
            .collect();
        runs.bench.prepare(&of, &ways, BUS);
    }
    let cache = runs.gains(&mixes, |_| CACHE);
    let bank = runs.gains(&mixes, banks);
    let means = |found: &[Found]| -> Result<Vec<f64>, String> {
        found.iter().map(|f| f.clone().map(|s| s.mean)).collect()
    };
    let (cache, bank) = (means(&cache)?, means(&bank)?);
    let quadrant = |c: bool, b: bool| {
        let both = cache.iter().zip(&bank);
        both.filter(|(x, y)| (**x > 0.0) == c && (**y > 0.0) == b)
            .count()
    };
    let [one, two, three, four] = [
        quadrant(true, true),
        quadrant(false, true),
        quadrant(false, false),
        quadrant(true, false),
    ];
    // Figure 3 has bank-only across and cache-only up: below 0 across is II and III.
    let mut h1 = Row::new("H-1", "Figure 3: cache-only and bank-only", TargetKind::S);
    let n = mixes.len();
    h1.show("both gain (quadrant I)", &number(share(one, n)), "%");
    h1.show("only cache-only gains", &number(share(four, n)), "%");
    h1.show("only bank-only gains", &number(share(two, n)), "%");
    h1.show("neither gains", &number(share(three, n)), "%");
    h1.note(&format!("{n} of 214 mixes"));
    let inside = (35.0..=65.0).contains(&share(one, n));
    h1.states("both gain in 35 to 65 % of the mixes", Ok(inside));
    let harmful = share(three + four, n);
    h1.states("bank-only is below 0 in at most 20 %", Ok(harmful <= 20.0));
    let fewer = three + four < one || three + four < two;
    h1.states("in fewer than in one of the two others", Ok(fewer));
    h1.states(
        "cache-only loses where bank-only gains in some mix",
        Ok(two > 0),
    );
    let both = (0..n)
        .filter(|i| cache[*i] > 0.0 && bank[*i] > 0.0)
        .take(50);
    let chosen: Vec<Mix> = both.map(|i| mixes[i].clone()).collect();
    let h2 = vertical(runs, &chosen);
    let h13 = lead(runs, &mixes);
    Ok((vec![h1.finish(), h2, h13], Vec::new()))
}

/// H-2, on mixes of quadrant I.
fn vertical(runs: &Runs<'_>, mixes: &[Mix]) -> piebald_report::Target {
    let mut row = Row::new("H-2", "Figure 4: vertical partitioning", TargetKind::H);
    if mixes.is_empty() {
        row.missing("no mix that was run lies in quadrant I");
        return row.finish();
    }
    let ways = VERTICAL.into_iter().chain([RANDOM]).collect::<Vec<_>>();
    runs.bench.prepare(mixes, &ways, BUS);
    let against = |over: WayOf| {
        let gain = |m: &Mix| runs.bench.gain(m, VERTICAL[0], over(m), BUS);
        extreme(&mixes.iter().map(gain).collect::<Vec<_>>(), true)
    };
    row.headline("A-VP over Linux, at most", 16.7, against(|_| Way::Linux));
    row.headline("A-VP over cache-only, at most", 5.9, against(|_| CACHE));
    row.headline("A-VP over bank-only, at most", 11.7, against(banks));
    let best_is_vertical = |mix: &Mix| -> Result<bool, String> {
        let of = |way: Way| Ok::<f64, String>(runs.bench.weighted(mix, way, BUS)?.mean);
        let vertical = VERTICAL
            .iter()
            .map(|w| of(*w))
            .collect::<Result<Vec<_>, _>>()?;
        let vertical = vertical.into_iter().fold(0.0, f64::max);
        let others = [CACHE, banks(mix), RANDOM].map(of);
        let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(others.into_iter().all(|o| o <= vertical))
    };
    let best: Result<Vec<bool>, String> = mixes.iter().map(best_is_vertical).collect();
    row.states(
        "a vertical policy is best of all six in at least 80 % of the mixes",
        best.map(|b| share(b.iter().filter(|b| **b).count(), mixes.len()) >= 80.0),
    );
    let average = |way: WayOf| mean(&runs.gains(mixes, way)).map(|s| s.mean);
    let below = || -> Result<bool, String> {
        let random = average(|_| RANDOM)?;
        let vertical = [
            average(|_| VERTICAL[0])?,
            average(|_| VERTICAL[1])?,
            average(|_| VERTICAL[2])?,
        ];
        let vertical = vertical.into_iter().fold(f64::MIN, f64::max);
        Ok(random < vertical && random < average(|_| CACHE)? && random < average(banks)?)
    };
    row.states(
        "random gains less on average than the best VP and both horizontal ones",
        below(),
    );
    row.show(
        "random, mean gain",
        &mean(&runs.gains(mixes, |_| RANDOM)),
        "%",
    );
    row.note(&format!("{} mixes of quadrant I", mixes.len()));
    row.finish()
}

/// H-13: HVR against the better of the others.
fn lead(runs: &Runs<'_>, mixes: &[Mix]) -> piebald_report::Target {
    let mut row = Row::new("H-13", "Abstract: HVR's largest lead", TargetKind::H);
    let lead = |mix: &Mix| -> Found {
        let cache = runs.bench.gain(mix, Way::Hvr, CACHE, BUS)?;
        let bank = runs.bench.gain(mix, Way::Hvr, banks(mix), BUS)?;
        let less = cache.values.iter().zip(&bank.values);
        Ok(less.map(|(c, b)| c.min(*b)).collect())
    };
    let found: Vec<Found> = mixes.iter().map(lead).collect();
    row.show(
        "over the better of cache-only and bank-only, at most",
        &extreme(&found, true),
        "%",
    );
    row.show("the same, on average", &mean(&found), "%");
    row.missing(UVP);
    row.finish()
}

/// Why comparisons with utility-based partitioning are missing.
pub(super) const UVP: &str = "utility-based partitioning needs miss curves of the programs at their \
                              drawn places, which are not measured here yet";

/// A way for mixes of any size.
type WayOf = fn(&Mix) -> Way;

/// H-9: three speeds of the bus.
pub(super) fn by_bus(runs: &Runs<'_>) -> Given {
    let is_wanted = |mix: &Mix| {
        let has = |classes: &[Class]| {
            let mut all = mix.members.iter();
            all.any(|m| runs.class(*m).is_some_and(|c| classes.contains(&c)))
        };
        has(&[Class::Llct]) && has(&[Class::Llch, Class::Llcm])
    };
    let each = runs.form.mixes(10, 1) as usize;
    let all = runs.all("H-1", 214);
    let of = |size: usize| {
        let mine = all
            .iter()
            .filter(|m| m.members.len() == size && is_wanted(m));
        mine.take(each).cloned().collect::<Vec<Mix>>()
    };
    let mixes = [of(4), of(8)].concat();
    if mixes.is_empty() {
        return Err("no mix has a program of LLCT and one of LLCH or LLCM".to_owned());
    }
    let buses = [BUS, 1066, 800];
    for bus in buses {
        for size in [4, 8] {
            let of: Vec<Mix> = mixes
                .iter()
                .filter(|m| m.members.len() == size)
                .cloned()
                .collect();
            let ways = [&VERTICAL[..], &[Way::Linux, CACHE, Way::bank_only(size)]].concat();
            runs.bench.prepare(&of, &ways, bus);
        }
    }
    let gain = |way: Way, over: WayOf, bus| {
        let all: Vec<Found> = mixes
            .iter()
            .map(|m| runs.bench.gain(m, way, over(m), bus))
            .collect();
        mean(&all)
    };
    let gain_of = |way: WayOf, bus| {
        let all: Vec<Found> = mixes
            .iter()
            .map(|m| runs.bench.gain(m, way(m), Way::Linux, bus))
            .collect();
        mean(&all).map(|s| s.mean)
    };
    let mut row = Row::new("H-9", "Figure 14: by the memory's bus", TargetKind::H);
    row.headline(
        "A-VP over cache-only at 1333 MT/s",
        6.0,
        gain(VERTICAL[0], |_| CACHE, BUS),
    );
    row.headline(
        "A-VP over bank-only at 1333 MT/s",
        5.0,
        gain(VERTICAL[0], banks, BUS),
    );
    let vertical: [WayOf; 3] = [|_| VERTICAL[0], |_| VERTICAL[1], |_| VERTICAL[2]];
    let above = || -> Result<bool, String> {
        let (cache, bank) = (gain_of(|_| CACHE, BUS)?, gain_of(banks, BUS)?);
        let mut all = true;
        for way in vertical {
            let gain = gain_of(way, BUS)?;
            all &= gain > cache && gain > bank;
        }
        Ok(all)
    };
    row.states(
        "each vertical policy gains more on average than both horizontal ones",
        above(),
    );
    let grows = |of: &dyn Fn(WayOf, u32) -> Result<f64, String>| -> Result<bool, String> {
        let mut all = true;
        for way in vertical {
            let [fast, middle, slow] = [of(way, 1333)?, of(way, 1066)?, of(way, 800)?];
            all &= fast < middle && middle < slow;
        }
        Ok(all)
    };
    row.states(
        "each gain grows as the bus slows",
        grows(&|way, bus| gain_of(way, bus)),
    );
    let fairer = |way: WayOf, bus: u32| {
        let all: Vec<Found> = mixes
            .iter()
            .map(|m| {
                let linux = runs.bench.unfair(m, Way::Linux, bus)?;
                crate::row::change(&runs.bench.unfair(m, way(m), bus)?, &linux)
            })
            .collect();
        mean(&all).map(|s| s.mean)
    };
    row.states(
        "each maximum slowdown falls by more as the bus slows",
        grows(&fairer),
    );
    for (name, way) in ["A-VP", "B-VP", "C-VP"].into_iter().zip(vertical) {
        for bus in buses {
            let found = gain_of(way, bus).and_then(number);
            row.show(&format!("{name} over Linux at {bus} MT/s"), &found, "%");
        }
    }
    row.note(&format!("{} of 20 mixes", mixes.len()));
    Ok((vec![row.finish()], Vec::new()))
}

/// H-12: frameworks.
pub(super) fn frameworks(runs: &Runs<'_>) -> Given {
    let mixes = runs.all("H-12", runs.form.mixes(50, 2));
    runs.bench
        .prepare(&mixes, &[Way::Linux, Way::Svp, Way::Hvr], BUS);
    let (svp, hvr) = (
        runs.gains(&mixes, |_| Way::Svp),
        runs.gains(&mixes, |_| Way::Hvr),
    );
    let mut row = Row::new("H-12", "Figure 17: SVP, UVP and HVR", TargetKind::H);
    row.judge(
        "SVP, least gain",
        Published::Number(-5.0),
        extreme(&svp, false),
        "%",
        |s| crate::verdict::headline(-5.0, s),
    );
    let worse: Vec<Found> = svp
        .iter()
        .zip(&hvr)
        .filter(|(s, _)| s.as_ref().is_ok_and(|s| s.mean < 0.0))
        .map(|(_, h)| h.clone())
        .collect();
    row.headline("HVR where SVP loses, at most", 6.1, extreme(&worse, true));
    let lead: Vec<Found> = mixes
        .iter()
        .map(|m| runs.bench.gain(m, Way::Hvr, Way::Svp, BUS))
        .collect();
    row.judge(
        "HVR over SVP, at most",
        Published::Number(11.0),
        extreme(&lead, true),
        "%",
        |s| match s.mean > 0.0 {
            true => crate::verdict::headline(11.0, s),
            false => Verdict::Miss,
        },
    );
    let [of_svp, of_hvr] = [mean(&svp), mean(&hvr)];
    row.show("SVP over Linux, mean", &of_svp, "%");
    row.show("HVR over Linux, mean", &of_hvr, "%");
    row.states(
        "HVR gains more on average than SVP",
        of_svp.and_then(|s| Ok(of_hvr?.mean > s.mean)),
    );
    row.note(&format!("{} of 50 mixes", mixes.len()));
    row.missing(UVP);
    Ok((vec![row.finish()], Vec::new()))
}
