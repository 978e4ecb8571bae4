//! One thread: M-1 to M-4, M-7, M-15 and M-17.

use piebald_policy::mfc::{Config, MinRead};
use piebald_report::{PaperFigure, Published, Sample, Target, TargetKind};

use super::{
    inputs::{PROGRAMS, Work},
    points::{self, Field, Point, all, and, at, falls, gains, headline, say},
    runs::{Case, Did, Runs, System},
};
use crate::{
    row::{Found, Row, curve, figure},
    verdict,
};

type Done = (Vec<Target>, Vec<PaperFigure>);

const MIB: u64 = 1 << 20;
/// Bytes of all files where most is expected, and of files that are too small.
const EIGHT: u64 = 8 * MIB;
const TOO_SMALL: u64 = 44 << 10;
/// "No gain", "never worse" and "Linux's throughput" (protocol), in percent.
const NO_GAIN: f64 = 5.0;
const WORSE: f64 = -2.0;
const EQUAL: f64 = 2.0;
/// M-17: sizes of files, and microseconds of a migration, falling.
const SIZES: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
const MIGRATIONS_US: [u32; 4] = [10, 3, 1, 0];
/// A line: what the count is at least that another is divided by.
const LINE: f64 = 64.0;

/// M-1 and M-2.
pub(super) fn uniform(runs: &mut Runs<'_>) -> Result<Done, String> {
    let points = points::points(runs, "figure 3", &PROGRAMS, Field::single(false))?;
    let mut best = Row::new("M-1", "Figure 3: one thread, 8 MB", TargetKind::H).calibrated();
    for (program, paper) in [
        ("read", 71.0),
        ("md5sum", 62.0),
        ("grep", 44.0),
        ("wc", 41.0),
    ] {
        headline(&mut best, &points, program, 8, paper);
    }
    let most = PROGRAMS.iter().fold(None, |said, program| {
        let others = |p: &Point| p.program == *program && p.bytes != EIGHT;
        let eight = at(&points, program, 8).and_then(|f| f.as_ref().ok());
        let mean = eight.map_or(f64::NAN, |s| s.mean);
        and(said, all(&points, others, |s| s.mean < mean))
    });
    let text = "of all sizes, each program gains most at 8 MB";
    say(&mut best, text, most);
    points::by_call(
        runs,
        &mut best,
        "figure 3, other calls",
        Field::single(false),
    )?;
    best.note("the size of a call follows from this row's 71 % and from M-13 (log.md, 5)");
    let mut shape = Row::new("M-2", "Figure 3: by working set", TargetKind::S);
    let text = "up to 2 MB the gain lies within 5 % of none";
    let small = |s: &Sample| {
        let interval = s.interval();
        interval.is_some_and(|(low, high)| low >= -NO_GAIN && high <= NO_GAIN)
    };
    say(
        &mut shape,
        text,
        all(&points, |p| p.bytes <= 2 * MIB, small),
    );
    let text = "from 4 MB on read gains";
    let large = |p: &Point| p.program == "read" && p.bytes >= 4 * MIB;
    say(&mut shape, text, all(&points, large, gains));
    let fall = PROGRAMS.iter().fold(None, |said, program| {
        let sizes = [16, 32, 64, 128];
        let found = sizes.iter().filter_map(|mb| at(&points, program, *mb));
        and(said, falls(found))
    });
    let text = "the gain falls from 16 MB to 32, 64 and 128 MB";
    say(&mut shape, text, fall);
    let text = "at no size is MFC worse by more than 2 %";
    let never = |s: &Sample| s.interval().is_some_and(|(_, high)| high >= WORSE);
    say(&mut shape, text, all(&points, |_| true, never));
    if runs.form().quick {
        shape.note("sizes of this form: 2, 8, 16 and 32 MB for read, 8 MB for the others");
    }
    let drawn = drawn(["figure 3", "one thread, uniform"], &points);
    Ok((vec![best.finish(), shape.finish()], drawn))
}

/// M-3.
pub(super) fn by_zipf(runs: &mut Runs<'_>) -> Result<Done, String> {
    let points = points::points(runs, "figure 4", &PROGRAMS, Field::single(true))?;
    let even = points::points(runs, "figure 3", &["read"], Field::single(false))?;
    let mut row = Row::new("M-3", "Figure 4: by Zipf's law", TargetKind::S);
    let sizes = [8, 16, 32, 64, 128].map(|mb| mb * MIB);
    let chosen = |p: &Point| p.program == "read" && sizes.contains(&p.bytes);
    let text = "read gains at 8, 16, 32, 64 and 128 MB";
    say(&mut row, text, all(&points, chosen, gains));
    let more = [64, 128].into_iter().fold(None, |said, mb| {
        let pair = at(&even, "read", mb).zip(at(&points, "read", mb));
        // Less with equal draws than by Zipf's law.
        and(said, pair.and_then(|(even, zipf)| falls([zipf, even])))
    });
    let text = "read gains more at 64 and 128 MB than with equal draws";
    say(&mut row, text, more);
    if runs.form().quick {
        row.note("sizes of this form: 2, 8, 16 and 32 MB");
    }
    let drawn = drawn(["figure 4", "one thread, by Zipf's law"], &points);
    Ok((vec![row.finish()], drawn))
}

fn drawn([name, text]: [&str; 2], points: &[Point]) -> Vec<PaperFigure> {
    let panels = vec![(String::new(), points::curves(points))];
    let figure = figure([name, text, "MB of all files", "gain of MFC, %"], panels);
    figure.into_iter().collect()
}

/// Bytes that were loaded from memory for each byte that was read.
fn loads(runs: &Runs<'_>, case: &Case, of: impl Fn(&Did) -> f64) -> Found {
    runs.sample(case, |d| of(d) / d.read)
}

/// How many times more bytes Linux loads from memory.
fn fewer(runs: &Runs<'_>, [linux, mfc]: &[Case; 2]) -> Found {
    let of = |d: &Did| d.loaded.max(LINE) / d.read;
    let quotient = runs.sample(linux, of)?.ratio(&runs.sample(mfc, of)?);
    quotient.ok_or_else(|| "repetitions are missing".to_owned())
}

/// M-4.
pub(super) fn from_memory(runs: &mut Runs<'_>) -> Result<Done, String> {
    let mut row = Row::new("M-4", "Figure 5: bytes from memory", TargetKind::H);
    let mut panels = Vec::new();
    for (zipf, draws, papers) in [
        (false, "uniform", [(8, 190.0), (128, 1.2)]),
        (true, "Zipf", [(8, 115.0), (128, 2.3)]),
    ] {
        let points = points::points(runs, "figure 5", &["read"], Field::single(zipf))?;
        for (mb, paper) in papers {
            let name = format!("{draws}, {mb} MB: Linux over MFC");
            let Some(point) = points.iter().find(|p| p.bytes == mb * MIB) else {
                row.note(&format!("{mb} MB is not in this form"));
                continue;
            };
            let found = fewer(runs, &point.cases);
            let large = mb == 8;
            row.judge(
                &name,
                Published::Number(paper),
                found,
                "x",
                |s| match large {
                    true => verdict::headline(f64::ln(paper), &s.map(f64::ln)),
                    false => verdict::headline(paper, s),
                },
            );
            for (system, case) in ["Linux", "MFC"].into_iter().zip(&point.cases) {
                let name = format!("{draws}, {mb} MB, {system}: bytes from memory per byte");
                row.show(&name, &loads(runs, case, |d| d.loaded), "");
                let name = format!("{name}, by demands");
                row.show(&name, &loads(runs, case, |d| d.demanded), "");
            }
        }
        let curves = ["Linux", "MFC"].into_iter().enumerate().map(|(i, system)| {
            let found = |p: &Point| loads(runs, &p.cases[i], |d| d.loaded);
            let found: Vec<(f64, Found)> = points.iter().map(|p| (p.mb(), found(p))).collect();
            curve(system, i == 0, found.iter().map(|(x, f)| (*x, f)))
        });
        panels.push((draws.to_owned(), curves.collect()));
    }
    row.note(
        "lines that the cores' own prefetchers load count; the quotients at 8 MB are judged by \
         their logarithms; no line at all counts as one",
    );
    let labels = [
        "figure 5",
        "one thread of read: bytes loaded from memory",
        "MB of all files",
        "bytes from memory for each byte read",
    ];
    let drawn = figure(labels, panels).into_iter().collect();
    Ok((vec![row.finish()], drawn))
}

/// M-7.
pub(super) fn two_files(runs: &mut Runs<'_>) -> Result<Done, String> {
    let mut row = Row::new("M-7", "Figure 8: two files at once", TargetKind::H);
    let files = u32::try_from(16 * MIB / runs.list().size()?).unwrap_or(1);
    let system = System::Mfc {
        copies: true,
        first_only: true,
        migration_us: None,
    };
    let pair = |chunk: u64| {
        let work = Work {
            pair: true,
            chunk: Some(chunk),
            ..Work::READ
        };
        let linux = Case::read(work, files, 1);
        [linux, linux.under(system)]
    };
    let judged = pair(4 << 10);
    let beside: &[u64] = if runs.form().quick { &[] } else { &[64, 256] };
    let beside: Vec<(u64, [Case; 2])> = beside.iter().map(|k| (*k, pair(k << 10))).collect();
    let one = Field::single(false).cases(Work::READ, files);
    let cases = beside.iter().flat_map(|b| b.1).chain(judged).chain(one);
    runs.run("figure 8", &cases.collect::<Vec<_>>());
    let found = runs.gain(&judged[0], &judged[1]);
    let single = runs.gain(&one[0], &one[1]);
    row.headline("gain, 16 MB, calls of 4 KB", 30.0, found.clone());
    let less = falls([&single, &found]).unwrap_or(Ok(false));
    row.states("it is below that of one file", less);
    row.show("gain, one file", &single, "%");
    for (kib, cases) in &beside {
        let name = format!("gain, calls of {kib} KB");
        row.show(&name, &runs.gain(&cases[0], &cases[1]), "%");
    }
    Ok((vec![row.finish()], Vec::new()))
}

/// The size at which a migration pays, by bandwidths in MB/s and microseconds (4.5).
fn pays_above(config: &Config, migration_us: f64) -> f64 {
    let on = f64::from(config.on_chip_bytes_per_us);
    let off = f64::from(config.off_chip_bytes_per_us);
    let move_us = migration_us + config.working_set.0 as f64 / off;
    move_us * on * off / (on - off)
}

/// M-15.
pub(super) fn break_even(runs: &mut Runs<'_>) -> Result<Done, String> {
    let mut row = Row::new("M-15", "Section 4.5: break-even", TargetKind::C);
    let config = Config::PAPER;
    let least = match config.min_read {
        MinRead::Fixed(bytes) => bytes.0 as f64 / 1024.0,
        MinRead::BreakEven => f64::NAN,
    };
    row.exact("least size, by configuration", 45.0, least, "KB");
    let mut cases = Vec::new();
    for program in PROGRAMS {
        let linux = Case {
            size: TOO_SMALL,
            ..Case::read(runs.list().work(program)?, (EIGHT / TOO_SMALL) as u32, 1)
        };
        cases.push((program, [linux, linux.under(System::MFC)]));
    }
    let all: Vec<Case> = cases.iter().flat_map(|c| c.1).collect();
    runs.run("section 4.5, files of 44 KB", &all);
    let (mut moves, mut equal) = (Ok(true), Ok(true));
    for (program, [linux, mfc]) in &cases {
        let gain = runs.gain(linux, mfc);
        let never = runs.sample(mfc, |d| d.moves).map(|s| s.mean == 0.0);
        moves = moves.and_then(|so_far| never.map(|n| n && so_far));
        let within = gain.clone().map(|s| {
            let interval = s.interval();
            interval.is_some_and(|(low, high)| low >= -EQUAL && high <= EQUAL)
        });
        equal = equal.and_then(|so_far| within.map(|w| w && so_far));
        row.show(&format!("{program}, files of 44 KB: gain"), &gain, "%");
    }
    row.states("threads are never migrated for files of 44 KB", moves);
    row.states("their throughput is that of Linux within 2 %", equal);
    for (hops, migration) in config.migration.iter().take(3).enumerate() {
        let pays = pays_above(&config, migration.0 as f64 / 1e6) / 1024.0;
        let name = format!("pays above, by the cost model, {hops} hops");
        row.show(&name, &Ok(Sample::new(vec![pays])), "KB");
    }
    row.note("the paper's 45 KB does not follow from its printed numbers");
    Ok((vec![row.finish()], Vec::new()))
}

/// M-17.
pub(super) fn cheaper(runs: &mut Runs<'_>) -> Result<Done, String> {
    let mut row = Row::new("M-17", "Section 6.5.2: cheaper migration", TargetKind::S);
    let case = |size: u64, migration_us: u32| {
        let linux = Case {
            size,
            ..Case::read(Work::READ, (EIGHT / size) as u32, 1)
        };
        let system = System::Mfc {
            copies: true,
            first_only: false,
            migration_us: Some(migration_us),
        };
        [linux, linux.under(system)]
    };
    let all = SIZES
        .iter()
        .flat_map(|s| MIGRATIONS_US.map(|us| case(*s, us)));
    runs.run("section 6.5.2", &all.flatten().collect::<Vec<_>>());
    let gain = |size, us| {
        let [linux, mfc] = case(size, us);
        runs.gain(&linux, &mfc)
    };
    // By size, from the dearest migration to the cheapest.
    let found: Vec<Vec<Found>> = SIZES
        .iter()
        .map(|size| MIGRATIONS_US.iter().map(|us| gain(*size, *us)).collect())
        .collect();
    let known: Result<Vec<Vec<Sample>>, String> = found
        .iter()
        .map(|by_us| by_us.iter().cloned().collect())
        .collect();
    let rises = |by_us: &Vec<Sample>| by_us.windows(2).all(|w| w[0].mean <= w[1].mean);
    let least = |known: &[Vec<Sample>], us: usize| {
        let gaining = SIZES.iter().zip(known).find(|(_, by_us)| gains(&by_us[us]));
        gaining.map_or(u64::MAX, |(size, _)| *size)
    };
    let sinks = |known: Vec<Vec<Sample>>| {
        let least: Vec<u64> = (0..MIGRATIONS_US.len())
            .map(|us| least(&known, us))
            .collect();
        least.windows(2).all(|w| w[1] <= w[0])
    };
    row.states(
        "at each size of files the gain does not fall as migration gets cheaper",
        known.clone().map(|k| k.iter().all(rises)),
    );
    row.states(
        "the least size of files that gains does not rise",
        known.map(sinks),
    );
    row.states(
        "with 0 us files of 4 KB gain or are equal",
        gain(SIZES[0], 0).map(|s| s.interval().is_some_and(|(_, high)| high >= 0.0)),
    );
    let mut curves = Vec::new();
    for (us, time) in MIGRATIONS_US.iter().enumerate() {
        let points = SIZES.iter().zip(&found);
        let points = points.map(|(size, by_us)| ((size >> 10) as f64, &by_us[us]));
        curves.push(curve(&format!("{time} us"), false, points));
    }
    for (size, by_us) in SIZES.iter().zip(&found) {
        for (time, gain) in MIGRATIONS_US.iter().zip(by_us) {
            row.show(
                &format!("gain, files of {} KB, {time} us", size >> 10),
                gain,
                "%",
            );
        }
    }
    let labels = [
        "section 6.5.2",
        "one thread of read, 8 MB: gain by the cost of a migration",
        "KB of a file",
        "gain of MFC, %",
    ];
    let drawn = figure(labels, vec![(String::new(), curves)]);
    Ok((vec![row.finish()], drawn.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_model_breaks_even_where_both_ways_take_as_long() {
        let config = Config::PAPER;
        let size = pays_above(&config, 9.2);
        let off = size / f64::from(config.off_chip_bytes_per_us);
        let on = size / f64::from(config.on_chip_bytes_per_us);
        let move_us = 9.2 + 4096.0 / 1808.0;
        assert!((off - on - move_us).abs() < 1e-9, "{off} {on}");
        assert!((29.0..30.0).contains(&(size / 1024.0)), "{size}");
    }
}
