//! Rows of mixes that are drawn from all programs: H-1, H-2, H-12 and H-13.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use piebald_hw::spec::MachineSpec;
use piebald_policy::hvr::{Class, MonitorConfig, Policy};
use piebald_report::{PaperFigure, Sample, TargetKind};

use super::{
    Given,
    form::Form,
    mixes::{Bench, Mix},
    moves,
    programs::Program,
    told::tell,
    ways::Way,
};
use crate::{
    Hooks, Options,
    row::{Found, Row, curve, extreme, figure, mean},
};

/// What rows are made from.
pub(super) struct Runs<'a> {
    pub bench: Bench<'a>,
    pub form: Form,
}

/// Ages of memory that are kept between runs: one for each way.
const KEPT: usize = 14;

/// Mixes of H-1's list, and those of 4 programs that the quick form has of them.
pub(super) const LIST: u64 = 214;
const QUICK_FOURS: usize = 16;
/// Mixes of the quick form that are run with a whole private L2.
const QUICK_L2: usize = 4;

impl<'a> Runs<'a> {
    pub(super) fn new(
        spec: &'a MachineSpec,
        (programs, classes, shares): (&'a [Program], &'a [Option<Class>], &'a [f64]),
        form: Form,
        options: &Options,
        hooks: Hooks<'a>,
    ) -> Self {
        Self {
            bench: Bench {
                spec,
                programs,
                classes,
                shares,
                inputs: options.inputs.clone(),
                warmup: form.warmup,
                budget: form.budget,
                repetitions: form.repetitions,
                places: form.places(),
                seed: options.seed,
                stop: hooks.stop,
                progress: hooks.progress,
                model: hooks.model(KEPT),
                store: hooks.store,
                done: Mutex::new(HashMap::new()),
                ready: Mutex::new(HashMap::new()),
                refs: AtomicU64::new(0),
                curves: true,
            },
            form,
        }
    }

    pub(super) fn refs(&self) -> u64 {
        self.bench.refs()
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
    pub(super) fn all(&self, name: &'static str, count: u64) -> Vec<Mix> {
        let all = self.of(&Class::ALL);
        (0..count)
            .filter_map(|n| {
                let size = if n % 2 == 0 { 4 } else { 8 };
                Mix::drawn((name, n), &[(&all, size)])
            })
            .collect()
    }

    /// The list of H-1.
    pub(super) fn list(&self) -> Vec<Mix> {
        self.all("H-1", LIST)
    }

    /// Those of it that are run: the first ones, if a number is given; else in the quick form
    /// the first of 4 programs and the first of 8.
    pub(super) fn first(&self) -> Vec<Mix> {
        if !self.form.quick || self.form.most.is_some() {
            return self.all("H-1", self.form.mixes(LIST, 0));
        }
        let list = self.list();
        let of = |size: usize, many: usize| {
            let mine = list.iter().filter(move |m| m.members.len() == size);
            mine.take(many).cloned()
        };
        of(4, QUICK_FOURS).chain(of(8, 1)).collect()
    }

    fn gains(&self, mixes: &[Mix], way: impl Fn(&Mix) -> Way) -> Vec<Found> {
        let gain = |mix: &Mix| self.bench.gain(mix, way(mix), Way::Linux);
        mixes.iter().map(gain).collect()
    }
}

pub(super) const VERTICAL: [Way; 3] = [
    Way::Fixed(Policy::AVp),
    Way::Fixed(Policy::BVp),
    Way::Fixed(Policy::CVp),
];
pub(super) const CACHE: Way = Way::Fixed(Policy::CacheOnly);
pub(super) const RANDOM: Way = Way::Fixed(Policy::Random);

pub(super) fn banks(mix: &Mix) -> Way {
    Way::bank_only(mix.members.len())
}

pub(super) fn share(holds: usize, of: usize) -> f64 {
    100.0 * holds as f64 / of.max(1) as f64
}

pub(super) fn number(value: f64) -> Found {
    Ok(Sample::new(vec![value]))
}

/// H-1, H-2 and H-13, which have the same mixes.
pub(super) fn horizontal_and_vertical(runs: &Runs<'_>) -> Given {
    let mixes = runs.first();
    let horizontal = [
        Way::Linux,
        CACHE,
        Way::Fixed(Policy::BankOnly4),
        Way::Fixed(Policy::BankOnly8),
        Way::Uvp,
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
        runs.bench.prepare(&of, &ways);
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
    moves::gains(runs, &mixes, &mut h1);
    let both = (0..n)
        .filter(|i| cache[*i] > 0.0 && bank[*i] > 0.0)
        .take(50);
    let chosen: Vec<Mix> = both.map(|i| mixes[i].clone()).collect();
    for size in [4, 8] {
        let of: Vec<Mix> = (mixes.iter().filter(|m| m.members.len() == size))
            .cloned()
            .collect();
        let ways = [Way::Linux, CACHE, Way::bank_only(size), Way::Uvp, Way::Hvr];
        tell(runs, &mut h1, &of, &ways);
    }
    let h2 = vertical(runs, &chosen, &mixes);
    let h13 = lead(runs, &mixes);
    Ok((vec![h1.finish(), h2, h13], Vec::new()))
}

/// H-2, on mixes of quadrant I; without a verdict, a whole L2 on these, in the quick form on the
/// first of them and then of the others.
fn vertical(runs: &Runs<'_>, mixes: &[Mix], all: &[Mix]) -> piebald_report::Target {
    let mut row = Row::new("H-2", "Figure 4: vertical partitioning", TargetKind::H);
    let others = all.iter().filter(|m| runs.form.quick && !mixes.contains(m));
    let whole = if runs.form.quick {
        QUICK_L2
    } else {
        mixes.len()
    };
    let whole: Vec<Mix> = mixes.iter().chain(others).take(whole).cloned().collect();
    whole_l2(runs, &whole, &mut row);
    if mixes.is_empty() {
        row.missing("no mix that was run lies in quadrant I");
        return row.finish();
    }
    let ways = VERTICAL.into_iter().chain([RANDOM]).collect::<Vec<_>>();
    runs.bench.prepare(mixes, &ways);
    let against = |over: WayOf| {
        let gain = |m: &Mix| runs.bench.gain(m, VERTICAL[0], over(m));
        extreme(&mixes.iter().map(gain).collect::<Vec<_>>(), true)
    };
    row.headline("A-VP over Linux, at most", 16.7, against(|_| Way::Linux));
    row.headline("A-VP over cache-only, at most", 5.9, against(|_| CACHE));
    row.headline("A-VP over bank-only, at most", 11.7, against(banks));
    let best_is_vertical = |mix: &Mix| -> Result<bool, String> {
        let of = |way: Way| Ok::<f64, String>(runs.bench.weighted(mix, way)?.mean);
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
    moves::vertical(runs, mixes, &mut row);
    tell(runs, &mut row, mixes, &ways);
    row.finish()
}

/// The vertical policies where bit 14 does not index the private second level, as the paper says
/// it does not: half of its sets, of twice the ways. Beside them the same mixes as they are.
fn whole_l2(runs: &Runs<'_>, mixes: &[Mix], row: &mut Row) {
    let mut spec = runs.bench.spec.clone();
    for cache in spec.cache.iter_mut().filter(|c| c.level == 2) {
        cache.ways *= 2;
    }
    let own = Bench {
        spec: &spec,
        ..runs.bench.anew()
    };
    let ways = VERTICAL.into_iter().chain([Way::Linux]).collect::<Vec<_>>();
    runs.bench.prepare(mixes, &ways);
    own.prepare(mixes, &ways);
    runs.bench.refs.fetch_add(own.refs(), Ordering::Relaxed);
    for (name, way) in ["A-VP", "B-VP", "C-VP"].into_iter().zip(VERTICAL) {
        for (word, bench) in [("as it is", &runs.bench), ("whole L2", &own)] {
            let gain = |m: &Mix| bench.gain(m, way, Way::Linux);
            let found = mean(&mixes.iter().map(gain).collect::<Vec<_>>());
            let name = format!("{name} over Linux, {word}, {} mixes", mixes.len());
            row.show(&name, &found, "%");
        }
    }
}

/// H-13: HVR against the better of the others.
fn lead(runs: &Runs<'_>, mixes: &[Mix]) -> piebald_report::Target {
    let mut row = Row::new("H-13", "Abstract: HVR's largest lead", TargetKind::H);
    let lead = |mix: &Mix| -> Found {
        let cache = runs.bench.gain(mix, Way::Hvr, CACHE)?;
        let bank = runs.bench.gain(mix, Way::Hvr, banks(mix))?;
        let uvp = runs.bench.gain(mix, Way::Hvr, Way::Uvp)?;
        let less = cache.values.iter().zip(&bank.values).zip(&uvp.values);
        Ok(less.map(|((c, b), u)| c.min(*b).min(*u)).collect())
    };
    let found: Vec<Found> = mixes.iter().map(lead).collect();
    row.headline(
        "over the best of cache-only, bank-only and UVP, at most",
        21.0,
        extreme(&found, true),
    );
    row.show("the same, on average", &mean(&found), "%");
    let over = mixes.iter().map(|m| runs.bench.gain(m, Way::Hvr, Way::Uvp));
    row.show(
        "over UVP, on average",
        &mean(&over.collect::<Vec<_>>()),
        "%",
    );
    row.note(&format!("{} of 214 mixes", mixes.len()));
    moves::lead(runs, mixes, &mut row);
    row.finish()
}

/// A way for mixes of any size.
pub(super) type WayOf = fn(&Mix) -> Way;

/// H-12: frameworks.
pub(super) fn frameworks(runs: &Runs<'_>) -> Given {
    let mixes = runs.all("H-12", runs.form.mixes(50, 2));
    let ways = [Way::Linux, Way::Svp, Way::Uvp, Way::Hvr];
    runs.bench.prepare(&mixes, &ways);
    let [svp, uvp, hvr] = [Way::Svp, Way::Uvp, Way::Hvr].map(|way| runs.gains(&mixes, |_| way));
    let mut row = Row::new("H-12", "Figure 17: SVP, UVP and HVR", TargetKind::H);
    row.headline("SVP, least gain", -5.0, extreme(&svp, false));
    row.headline("UVP, least gain", -5.0, extreme(&uvp, false));
    // Region 1.
    let loses = |i: &usize| svp[*i].as_ref().is_ok_and(|s| s.mean < 0.0);
    let worse: Vec<usize> = (0..mixes.len()).filter(loses).collect();
    let there: Vec<Found> = worse.iter().map(|i| hvr[*i].clone()).collect();
    row.headline("HVR where SVP loses, at most", 6.1, extreme(&there, true));
    let lead = |i: &usize| -> Found {
        let over = |way| runs.bench.gain(&mixes[*i], Way::Hvr, way);
        let (svp, uvp) = (over(Way::Svp)?, over(Way::Uvp)?);
        let both = svp.values.iter().zip(&uvp.values);
        Ok(both.map(|(s, u)| s.min(*u)).collect())
    };
    let there: Vec<Found> = worse.iter().map(lead).collect();
    row.headline(
        "HVR over the better of SVP and UVP there, at most",
        11.0,
        extreme(&there, true),
    );
    let means = [mean(&svp), mean(&uvp), mean(&hvr)];
    for (name, found) in ["SVP", "UVP", "HVR"].iter().zip(&means) {
        row.show(&format!("{name} over Linux, mean"), found, "%");
    }
    let charged = mixes.iter().map(|m| {
        runs.bench
            .uvp_charged(m, MonitorConfig::PAPER.interval.0 as f64)
    });
    row.show(
        "UVP over Linux, mean, if it moved its pages once in 3 s",
        &mean(&charged.collect::<Vec<_>>()),
        "%",
    );
    let means = means.into_iter().collect::<Result<Vec<_>, _>>();
    row.states(
        "HVR gains more on average than SVP and UVP",
        means.map(|m| m[2].mean > m[0].mean.max(m[1].mean)),
    );
    let behind: Vec<Found> = svp
        .iter()
        .zip(&hvr)
        .filter_map(|(s, h)| Some((s.as_ref().ok()?, h.as_ref().ok()?)))
        .filter(|(s, h)| s.mean > h.mean)
        .map(|(s, h)| Ok(Sample::new(vec![s.mean - h.mean])))
        .collect();
    let behind = match behind.is_empty() {
        true => number(0.0),
        false => mean(&behind),
    };
    row.show("SVP less HVR where SVP is better", &behind, "points");
    row.states(
        "where SVP is better than HVR it is by 1 point or less on average",
        behind.map(|s| s.mean <= 1.0),
    );
    row.note(&format!(
        "{} of 50 mixes; SVP loses in {}",
        mixes.len(),
        worse.len()
    ));
    let of = |found: &[Found], at: usize| found[at].as_ref().map_or(f64::NAN, |s| s.mean);
    let each = (mixes.iter().enumerate()).map(|(at, mix)| {
        let gains = [&svp, &uvp, &hvr].map(|found| format!("{:.1}", of(found, at)));
        [vec![mix.number.to_string()], gains.to_vec()].concat()
    });
    let columns = ["mix", "SVP", "UVP", "HVR"].map(str::to_owned).to_vec();
    row.cases("Gains over Linux in %", columns, each.collect());
    tell(runs, &mut row, &mixes, &ways);
    let drawn = sorted([&svp, &uvp, &hvr]);
    Ok((vec![row.finish()], drawn.into_iter().collect()))
}

/// Figure 17: mixes by what SVP gains.
fn sorted([svp, uvp, hvr]: [&[Found]; 3]) -> Option<PaperFigure> {
    let known = |f: &Found| f.as_ref().map_or(f64::NAN, |s| s.mean);
    let mut order: Vec<usize> = (0..svp.len()).collect();
    order.sort_by(|a, b| known(&svp[*a]).total_cmp(&known(&svp[*b])));
    let of = |name: &str, found: &[Found]| {
        let points = (1u32..).zip(&order);
        curve(
            name,
            false,
            points.map(|(n, at)| (f64::from(n), &found[*at])),
        )
    };
    let curves = vec![of("SVP", svp), of("UVP", uvp), of("HVR", hvr)];
    figure(
        [
            "Figure 17",
            "Weighted speedup over Linux of mixes of 4 and of 8 programs, in the order of what SVP gains.",
            "mix",
            "gain over Linux (%)",
        ],
        vec![("mixes".to_owned(), curves)],
    )
}
