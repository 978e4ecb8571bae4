//! Programs that come and go (H-14), and what HVR costs (H-16).

use piebald_os_model::kernel::{Observed, SysMonConfig};
use piebald_policy::hvr::{Class, MonitorConfig, Policy};
use piebald_report::{PaperFigure, Published, Sample, TargetKind};
use piebald_sim::{Boot, Case, Course, FrameRule, Outcome, ProgramSetup, Stay};
use piebald_units::Picos;
use rayon::prelude::*;

use super::{
    Given,
    mixes::{CORES, Mix},
    rows::Runs,
    ways::{Way, frames},
};
use crate::{
    experiment::{draw, machine_seed},
    row::{Found, Row, curve, figure, mean},
};

/// Samples of a course, and the time of one in the paper.
pub(super) const SAMPLES: u64 = 30;
pub(super) const SAMPLE: Picos = MonitorConfig::PAPER.interval;
/// What that time is divided by (protocol), and in the quick form.
const TIME_SCALE: u64 = 1000;
const QUICK_SCALE: u64 = 10_000;
/// References for each nanosecond that a program runs, at most: those of built-in programs that
/// are drawn in advance.
const REFS_EACH_NS: u64 = 2;
/// And in all in courses longer than H-14's: they begin again after these, as recordings do at their
/// end.
const MOST_REFS: u64 = 200_000_000;
/// References that no program makes in a course.
const NO_LIMIT: u64 = 1 << 40;

/// A program of the course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guest {
    pub member: (usize, u32),
    core: u16,
    /// Samples at whose beginning it comes and goes.
    pub arrives: u64,
    pub leaves: Option<u64>,
}

/// Where HVR has the classes of programs from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Classes {
    /// It is told the measured ones.
    Told,
    /// It watches programs, and a program that ends and begins again is no new one to it.
    Found,
}

/// The twelve events: two LLCT and four LLCH or LLCM arrive, then by turns an LLCH arrives and one
/// of the first six leaves. The first is there from the beginning.
pub(super) fn guests(seed: u64, of: impl Fn(&[Class]) -> Vec<usize>) -> Option<Vec<Guest>> {
    let (llct, llch) = (of(&[Class::Llct]), of(&[Class::Llch]));
    let needy = of(&[Class::Llch, Class::Llcm]);
    let mix = Mix::drawn(("H-14", 0), &[(&llct, 2), (&needy, 4), (&llch, 3)])?;
    let (first, later) = mix.members.split_at_checked(6)?;
    let mut first = first.to_vec();
    let mut times: Vec<u64> = (1..SAMPLES).collect();
    let take = |list: &mut Vec<u64>, n: usize, word: &str| {
        list.swap_remove((draw(seed, word, n as u64) % list.len() as u64) as usize)
    };
    let mut samples: Vec<u64> = (0..11)
        .map(|n| take(&mut times, n, "H-14 sample"))
        .collect();
    samples.push(0);
    samples.sort_unstable();
    let (early, late) = samples.split_at(6);
    let mut guests: Vec<Guest> = Vec::new();
    let mut free = CORES.to_vec();
    for (n, at) in early.iter().enumerate() {
        let which = draw(seed, "H-14 order", n as u64) % first.len() as u64;
        guests.push(Guest {
            member: first.swap_remove(which as usize),
            core: free.remove(0),
            arrives: *at,
            leaves: None,
        });
    }
    let mut later = later.iter();
    for (n, at) in late.iter().enumerate() {
        if n % 2 == 0 {
            guests.push(Guest {
                member: *later.next()?,
                core: free.remove(0),
                arrives: *at,
                leaves: None,
            });
            continue;
        }
        let mut there: Vec<usize> = (0..6).filter(|g| guests[*g].leaves.is_none()).collect();
        let which = draw(seed, "H-14 leaves", n as u64) % there.len() as u64;
        let gone = there.swap_remove(which as usize);
        guests[gone].leaves = Some(*at);
        free.push(guests[gone].core);
    }
    Some(guests)
}

/// Who comes and goes, and when.
pub(super) fn name_all(runs: &Runs<'_>, row: &mut Row, guests: &[Guest]) {
    let columns = ["program", "class", "comes at sample", "leaves at"].map(str::to_owned);
    let each = guests.iter().map(|guest| {
        let class = runs.class(guest.member).map_or("none", Class::name);
        let leaves = guest.leaves.map_or(String::new(), |at| at.to_string());
        let name = runs.bench.programs[guest.member.0].name.clone();
        vec![name, class.to_owned(), guest.arrives.to_string(), leaves]
    });
    row.cases("Programs of the course", columns.to_vec(), each.collect());
}

/// A course under a way; sample times are divided by `scale`.
pub(super) fn run(
    runs: &Runs<'_>,
    (way, classes): (Way, Classes),
    guests: &[Guest],
    (repetition, scale): (u32, u64),
) -> Result<Outcome, String> {
    let bench = &runs.bench;
    let seed = bench.seed.wrapping_add(u64::from(repetition));
    let every = Picos(SAMPLE.0 / scale);
    let until = Picos(every.0 * SAMPLES);
    let refs = until.0 / 1000 * REFS_EACH_NS;
    let refs = match scale < TIME_SCALE / 2 {
        true => refs.min(MOST_REFS),
        false => refs,
    };
    let setup = |guest: &Guest| -> Result<ProgramSetup, String> {
        let setup = bench.setup(guest.member, guest.core, seed, refs)?;
        Ok(ProgramSetup {
            stay: Stay {
                arrives: (guest.arrives > 0).then_some(Picos(every.0 * guest.arrives)),
                leaves: guest.leaves.map(|at| Picos(every.0 * at)),
                class: setup.stay.class.filter(|_| classes == Classes::Told),
                remembered: classes == Classes::Found,
            },
            warmup: 1,
            budget: NO_LIMIT,
            ..setup
        })
    };
    let setups = guests.iter().map(setup).collect::<Result<Vec<_>, _>>()?;
    let timed = Course {
        until,
        every,
        ..Course::default()
    };
    let mut frames = frames(way);
    if let (FrameRule::Managed(managed), Classes::Found) = (&mut frames, classes) {
        managed.sysmon = Some(SysMonConfig {
            time_scale: u32::try_from(scale).map_err(|e| e.to_string())?,
            seed,
            ..SysMonConfig::default()
        });
    }
    course(runs, &frames, setups, (seed, timed))
}

fn course(
    runs: &Runs<'_>,
    frames: &FrameRule,
    setups: Vec<ProgramSetup>,
    (seed, course): (u64, Course),
) -> Result<Outcome, String> {
    let bench = &runs.bench;
    let boot = Boot::new(frames.clone(), Some(draw(seed, "memory", 0)));
    let case = Case {
        course: Some(course),
        ..Case::new(bench.spec, boot, setups, machine_seed(seed))
    };
    bench.outcome(&case)
}

/// Instructions of each program for one of its references, over a whole run.
pub(super) fn per_reference(outcome: &Outcome) -> Vec<f64> {
    let programs = outcome.timeline.first().map_or(0, |l| l.programs.len());
    let of = |at: usize| {
        let each = outcome.timeline.iter().map(|look| &look.programs[at]);
        let sums = each.fold([0, 0], |[refs, instructions], (r, c)| {
            [refs + r, instructions + c.instructions]
        });
        sums[1] as f64 / sums[0].max(1) as f64
    };
    (0..programs).map(of).collect()
}

/// Instructions of all programs in each sample, as many for each reference as said: those that the
/// kernel carries out to move pages are not theirs. And what they would be if a program went on at its
/// speed in the time that its moves took.
pub(super) fn instructions(
    outcome: &Outcome,
    per_reference: &[f64],
    every: Picos,
) -> [Vec<f64>; 2] {
    let of = |is_free: bool| {
        let each = outcome.timeline.iter();
        each.map(|look| {
            let all = look.programs.iter().zip(&look.moving).zip(per_reference);
            all.map(|(((refs, _), moving), each)| {
                let left = 1.0 - moving.0 as f64 / every.0 as f64;
                let longer = if is_free {
                    1.0 / left.max(LEAST_LEFT)
                } else {
                    1.0
                };
                *refs as f64 * each * longer
            })
            .sum()
        })
        .collect()
    };
    [of(false), of(true)]
}

/// Share of a sample that counts as left to a program beside its moves, at least: speeds of
/// shorter times say little.
const LEAST_LEFT: f64 = 0.1;

/// Share of the time that programs were there which they spent on moves, in percent.
fn moving(guests: &[Guest], outcome: &Outcome, every: Picos) -> f64 {
    let spent: u64 = (outcome.timeline.iter().flat_map(|look| &look.moving))
        .map(|time| time.0)
        .sum();
    100.0 * spent as f64 / (present(guests) as f64 * every.0 as f64)
}

/// Samples of all programs together.
fn present(guests: &[Guest]) -> u64 {
    let each = (0..SAMPLES).map(|at| there(guests, at, |_| None).iter().sum::<usize>() as u64);
    each.sum()
}

const WAYS: [Way; 4] = [
    Way::Linux,
    Way::Fixed(Policy::CacheOnly),
    Way::Fixed(Policy::BankOnly8),
    Way::Hvr,
];

/// What a course gave.
struct Gains {
    /// Gains over Linux in percent, sample by sample, of cache-only, bank-only and HVR.
    plain: [Vec<Sample>; 3],
    /// The same without the time of moves.
    free: [Vec<Sample>; 3],
    /// Share of time that each of the three spent on moves, in percent.
    moving: [Sample; 3],
    /// What HVR did.
    hvr: Vec<Outcome>,
}

const NAMES: [&str; 3] = ["cache-only", "bank-only", "HVR"];

fn gains(runs: &Runs<'_>, guests: &[Guest], scale: u64) -> Result<Gains, String> {
    let every = Picos(SAMPLE.0 / scale);
    let keys: Vec<(u32, Way)> = (0..runs.form.repetitions)
        .flat_map(|r| WAYS.map(|way| (r, way)))
        .collect();
    let found: Result<Vec<Outcome>, String> = keys
        .par_iter()
        .with_max_len(1)
        .map(|(repetition, way)| run(runs, (*way, Classes::Told), guests, (*repetition, scale)))
        .collect();
    let found = found?;
    // The first way of a repetition is Linux, which moves no pages.
    let done: Vec<[Vec<f64>; 2]> = found
        .chunks(WAYS.len())
        .flat_map(|ways| {
            let each = per_reference(&ways[0]);
            let of = move |outcome| instructions(outcome, &each, every);
            ways.iter().map(of)
        })
        .collect();
    let samples = done.iter().map(|d| d[0].len()).min().unwrap_or(0);
    let of = |way: usize, part: usize| -> Vec<Sample> {
        let at = |sample: usize| {
            let each = done.chunks(WAYS.len());
            each.map(|d| 100.0 * (d[way][part][sample] / d[0][part][sample] - 1.0))
                .collect()
        };
        (0..samples).map(at).collect()
    };
    let spent = |way: usize| -> Sample {
        let each = found.chunks(WAYS.len());
        each.map(|ways| moving(guests, &ways[way], every)).collect()
    };
    Ok(Gains {
        plain: [1, 2, 3].map(|way| of(way, 0)),
        free: [1, 2, 3].map(|way| of(way, 1)),
        moving: [1, 2, 3].map(spent),
        hvr: (found.into_iter())
            .skip(WAYS.len() - 1)
            .step_by(WAYS.len())
            .collect(),
    })
}

/// What is shown of a course without a verdict: means, and the same without the time of moves.
fn show(row: &mut Row, gains: &Gains, scale: u64) {
    let [cache, bank, own] = &gains.plain;
    for (at, name) in NAMES.iter().enumerate() {
        let plain = over_samples(&gains.plain[at]);
        row.show(&format!("{name} over Linux, mean, 1/{scale}"), &plain, "%");
        let free = over_samples(&gains.free[at]);
        let name_of = format!("{name} without the time of moves, 1/{scale}");
        row.show(&name_of, &free, "%");
        let spent = Ok(gains.moving[at].clone());
        row.show(&format!("{name}: time of moves, 1/{scale}"), &spent, "%");
    }
    for (word, other) in [("bank-only", bank), ("cache-only", cache)] {
        let name = format!("HVR less {word}, mean, 1/{scale}");
        row.show(&name, &lead(own, other), "points");
    }
    let pages = (gains.hvr.iter()).map(|o| o.kernel.followed as f64);
    let name = format!("HVR: pages that moved, 1/{scale}");
    row.show(&name, &Ok(pages.collect()), "pages");
}

fn over_samples(gains: &[Sample]) -> Found {
    mean(&gains.iter().cloned().map(Ok).collect::<Vec<_>>())
}

/// One less the other, sample by sample, on average.
fn lead(a: &[Sample], b: &[Sample]) -> Found {
    let less = a.iter().zip(b).map(|(a, b)| {
        let values = a.values.iter().zip(&b.values);
        Ok(values.map(|(x, y)| x - y).collect::<Sample>())
    });
    mean(&less.collect::<Vec<_>>())
}

/// Programs that are there in a sample: those that sweep the cache, and others.
fn there(guests: &[Guest], sample: u64, class: impl Fn(&Guest) -> Option<Class>) -> [usize; 2] {
    let mut found = [0; 2];
    for guest in guests {
        let left = guest.leaves.is_some_and(|at| at <= sample);
        if guest.arrives <= sample && !left {
            found[usize::from(class(guest) != Some(Class::Llct))] += 1;
        }
    }
    found
}

/// H-14 and H-16.
pub(super) fn coming_and_going(runs: &Runs<'_>) -> Given {
    let guests = guests(runs.bench.seed, |c| runs.of(c))
        .ok_or("a class has no program: no course can be drawn")?;
    let scale = if runs.form.quick {
        QUICK_SCALE
    } else {
        TIME_SCALE
    };
    let found = gains(runs, &guests, scale)?;
    let mut row = Row::new("H-14", "Figure 18: arrivals and departures", TargetKind::H);
    let [cache, bank, own] = &found.plain;
    let extreme =
        |largest| crate::row::extreme(&cache.iter().cloned().map(Ok).collect::<Vec<_>>(), largest);
    row.headline("cache-only over Linux, most", 18.0, extreme(true));
    row.headline("cache-only over Linux, least", -5.0, extreme(false));
    row.headline("HVR less bank-only, mean", 5.0, lead(own, bank));
    row.headline("HVR less cache-only, mean", 7.0, lead(own, cache));
    let best = (0u64..)
        .zip(own)
        .max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let peak = best.map(|(at, _)| there(&guests, at, |g| runs.class(g.member)));
    row.states(
        "HVR gains most where two LLCT and four others run",
        peak.map(|p| p == [2, 4]).ok_or("no sample".to_owned()),
    );
    if let (Some((at, gain)), Some([llct, others])) = (best, peak) {
        row.note(&format!(
            "HVR's largest gain, {:.1} %, is in sample {at} with {llct} LLCT and {others} others",
            gain.mean
        ));
    }
    row.note(&format!(
        "a sample is 3 s divided by {scale}; HVR is told the classes"
    ));
    name_all(runs, &mut row, &guests);
    show(&mut row, &found, scale);
    for other in [scale * 2, scale / 2] {
        show(&mut row, &gains(runs, &guests, other)?, other);
    }
    let overheads = overheads(runs, &guests, &found.hvr, scale);
    let drawn = drawn(&found.plain);
    Ok((
        vec![row.finish(), overheads.finish()],
        drawn.into_iter().collect(),
    ))
}

fn drawn([cache, bank, own]: &[Vec<Sample>; 3]) -> Option<PaperFigure> {
    let of = |name: &str, gains: &[Sample]| {
        let found: Vec<Found> = gains.iter().cloned().map(Ok).collect();
        curve(name, false, (0u32..).map(f64::from).zip(&found))
    };
    let curves = vec![
        of("cache-only", cache),
        of("bank-only", bank),
        of("HVR", own),
    ];
    figure(
        [
            "Figure 18",
            "Instructions of all programs in each sample over those under Linux, while programs come \
             and go.",
            "sample",
            "gain over Linux (%)",
        ],
        vec![("arrivals and departures".to_owned(), curves)],
    )
}

/// H-16: what watching and moving cost, as shares of times that are not scaled.
fn overheads(runs: &Runs<'_>, guests: &[Guest], hvr: &[Outcome], scale: u64) -> Row {
    let mut row = Row::new("H-16", "Section 8: overheads", TargetKind::O);
    let mut worst: Found = Err("no program was watched".to_owned());
    for (name, paper) in [("tachyon", "0.005 (povray)"), ("mcf", "4.46")] {
        let walk = walk_of(runs, name);
        let shown = walk.clone().map(|(ms, _)| Sample::new(vec![ms]));
        row.show(&format!("{name}: a walk (paper: {paper} ms)"), &shown, "ms");
        if let Ok((_, pages)) = &walk {
            let pages = Sample::new(vec![*pages]);
            row.show(&format!("{name}: pages"), &Ok(pages), "pages");
        }
        let passes = f64::from(MonitorConfig::PAPER.passes) + 1.0;
        let share = walk.map(|(ms, _)| 100.0 * passes * ms * 1e9 / SAMPLE.0 as f64);
        if let Ok(share) = &share {
            let shown = Ok(Sample::new(vec![*share]));
            row.show(&format!("{name}: a window of JOB2"), &shown, "% of 3 s");
        }
        worst = match (worst, share) {
            (Ok(w), Ok(s)) => Ok(Sample::new(vec![w.mean.max(s)])),
            (_, found) => found.map(|s| Sample::new(vec![s])),
        };
    }
    by_printed_walk(runs, &mut row);
    // One run: there is no interval to keep the bound with.
    let keeps = |bound: f64| {
        move |s: &Sample| match s.mean <= bound {
            true => piebald_report::Verdict::Match,
            false => piebald_report::Verdict::Miss,
        }
    };
    let text = |t: &str| Published::Text(t.to_owned());
    let name = "JOB2, most, by the stand-ins' walks";
    row.judge(name, text("<= 0.6"), worst, "% of 3 s", keeps(0.6));
    // Time that programs are there, not scaled.
    let time = present(guests) as f64 * SAMPLE.0 as f64;
    let cost = |outcome: &Outcome| 100.0 * outcome.kernel.followed as f64 * 3e6 / time;
    let shares: Vec<f64> = hvr.iter().map(cost).collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let pages = hvr.iter().map(|o| o.kernel.followed as f64);
    row.show("pages that moved", &Ok(pages.collect()), "pages");
    let plain = shares.iter().map(|s| s * scale as f64);
    row.show(
        "moving, at 3 us a page, of the time that was modelled",
        &Ok(plain.collect()),
        "%",
    );
    let spent = hvr
        .iter()
        .map(|o| moving(guests, o, Picos(SAMPLE.0 / scale)));
    row.show("moving, as it was modelled", &Ok(spent.collect()), "%");
    let shares: Found = Ok(shares.into_iter().collect());
    row.judge("moving, mean", text("< 0.8"), shares, "%", keeps(0.8));
    let most = Ok(Sample::new(vec![most]));
    row.judge("moving, most", text("<= 1.7"), most, "%", keeps(1.7));
    row.missing(
        "what the coloured buddy takes longer than Linux's is not modelled: both are charged alike",
    );
    row
}

/// What the walk that the paper prints for mcf comes to: a stand-in of a twenty-fifth of its size
/// says nothing of the bound.
fn by_printed_walk(runs: &Runs<'_>, row: &mut Row) {
    let mcf = runs.bench.programs.iter().find(|p| p.name == "mcf");
    let Some(walk) = mcf.and_then(|p| p.walk) else {
        return;
    };
    let window = (u64::from(MonitorConfig::PAPER.passes) + 1) as f64 * walk.0 as f64;
    let longest = MonitorConfig::PAPER.max_interval.0 as f64;
    for (name, value, unit) in [
        (
            "a window of JOB2 by the paper's walk of mcf",
            100.0 * window / SAMPLE.0 as f64,
            "% of 3 s",
        ),
        (
            "the same at the longest interval",
            100.0 * window / longest,
            "% of 60 s",
        ),
        (
            "the interval at which it is 0.6 %",
            window / 0.006 * 1e-12,
            "s",
        ),
    ] {
        row.show(name, &Ok(Sample::new(vec![value])), unit);
    }
    row.note(
        "the paper's 0.6 % cannot be its walk of mcf, 200 times each 3 s, on the program's own time; it holds \
         if windows of JOB2 are minutes apart by then, or if the walks are on another hardware thread and \
         the program's slowdown is meant",
    );
}

/// The time of a walk of a program's pages in milliseconds, and the number of these: JOB1 and one
/// window of JOB2 while it runs alone.
fn walk_of(runs: &Runs<'_>, name: &str) -> Result<(f64, f64), String> {
    let bench = &runs.bench;
    let at = bench.programs.iter().position(|p| p.name == name);
    let at = at.ok_or_else(|| format!("{name}: no such program"))?;
    let FrameRule::Managed(mut managed) = frames(Way::Hvr) else {
        return Err("HVR has no manager: a defect".to_owned());
    };
    managed.sysmon = Some(SysMonConfig {
        time_scale: TIME_SCALE as u32,
        seed: bench.seed,
        ..SysMonConfig::default()
    });
    let frames = FrameRule::Managed(managed);
    let interval = SAMPLE.0 / TIME_SCALE;
    let watched = |until: u64| -> Result<Outcome, String> {
        let refs = until / 1000 * REFS_EACH_NS;
        let setup = bench.setup((at, 0), CORES[0], bench.seed, refs)?;
        let setup = ProgramSetup {
            stay: Stay::default(),
            warmup: 1,
            budget: NO_LIMIT,
            ..setup
        };
        let all = Course {
            until: Picos(until),
            every: Picos(until),
            ..Course::default()
        };
        course(runs, &frames, vec![setup], (bench.seed, all))
    };
    let short = watched(interval + interval / 2)?;
    let pages = short.observations.first().map(|o| o.pages);
    let pages = pages.ok_or_else(|| format!("{name}: it was not looked at"))?;
    let pass = MonitorConfig::PAPER.hot_window_of(pages).0;
    let passes = u64::from(MonitorConfig::PAPER.passes);
    // The next window of JOB2 begins an interval after this one's end.
    let outcome = watched(interval + (passes + 2) * pass + interval / 2)?;
    let (mut walks, mut windows) = (0, 0);
    for seen in &outcome.observations {
        match seen.observed {
            Observed::Hot(_) => walks += 2,
            Observed::Window(_) => {
                walks += passes + 1;
                windows += 1;
            }
        }
    }
    if windows == 0 {
        return Err(format!("{name}: no window of JOB2 came to its end"));
    }
    let ms = outcome.sample_time.0 as f64 * 1e-9 / walks as f64;
    Ok((ms, f64::from(pages)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(classes: &[Class]) -> Vec<usize> {
        let each = classes.iter().map(|c| *c as usize * 10);
        each.flat_map(|first| first..first + 10).collect()
    }

    fn class(guest: &Guest) -> Option<Class> {
        Class::ALL.get(guest.member.0 / 10).copied()
    }

    #[test]
    fn twelve_events_are_as_the_protocol_says() {
        for seed in 0..200 {
            let guests = guests(seed, some).expect("programs of each class");
            assert_eq!(guests.len(), 9);
            let gone = guests.iter().filter(|g| g.leaves.is_some()).count();
            assert_eq!(gone, 3);
            let mut times: Vec<u64> = guests.iter().map(|g| g.arrives).collect();
            times.extend(guests.iter().filter_map(|g| g.leaves));
            times.sort_unstable();
            times.dedup();
            assert_eq!(times.len(), 12, "{guests:?}");
            assert!(times[0] == 0 && times[11] < SAMPLES);
            // After the sixth arrival, before the seventh event: two LLCT and four others.
            assert_eq!(there(&guests, times[5], class), [2, 4]);
            assert!(guests[6..].iter().all(|g| class(g) == Some(Class::Llch)));
            for at in 0..SAMPLES {
                let now = guests
                    .iter()
                    .filter(|g| g.arrives <= at && g.leaves.is_none_or(|l| l > at));
                let mut cores: Vec<u16> = now.map(|g| g.core).collect();
                let all = cores.len();
                assert!((1..=8).contains(&all));
                cores.sort_unstable();
                cores.dedup();
                assert_eq!(cores.len(), all, "two on a hardware thread: {guests:?}");
            }
        }
        assert_eq!(guests(1, |_| Vec::new()), None);
    }
}
