//! One program at a time: S-4, S-17 and S-19; and the rows of the database, S-5 to S-7.

use piebald_lab::colors::all_colors;
use piebald_os_model::kernel::PageReads;
use piebald_report::{PaperFigure, Published, Sample, Target, TargetKind, Verdict};
use piebald_units::Bytes;

use super::{
    inputs::with,
    open::parameter,
    pairs::{both, times},
    runs::{Case, Did, Member, Part, Runs, Setting},
    sources::Source,
};
use crate::{
    Options,
    row::{Found, Row, change, curve, extreme, figure, mean, named, negated},
};

type Done = (Vec<Target>, Vec<PaperFigure>);

/// S-17: scans that warm up, and that are measured.
const SCANS: [u64; 2] = [2, 10];

/// S-19: memory of figure 15, in MiB, and parts of it in the quick form.
const MEMORY_MB: [u64; 5] = [512, 1024, 2048, 3072, 4096];
const QUICK_MEMORY_MB: [u64; 3] = [512, 1024, 4096];
const QUICK_PART: u64 = 8;
const TRANSACTIONS: u32 = 2000;
/// A share of the pages that were read.
type Ratio = fn(&PageReads) -> Option<f64>;
/// S-19: other ways to count, shown beside.
const OTHER_RATIOS: [(&str, Ratio); 2] = [
    ("hit ratio of reads", PageReads::hit_ratio),
    (
        "hit ratio of reads, pages read ahead counted as missed",
        PageReads::kept_ratio,
    ),
];
/// References of a call's copy are not counted: a call is one reference.
const WARM_CALLS: u64 = 100;

/// S-4.
pub(super) fn colors(runs: &Runs<'_>) -> Result<Target, String> {
    let mut spec = runs.list().machine("pe1900")?;
    spec.memory.size = Bytes(4 << 30);
    let map = all_colors(&spec)?;
    let colors = u64::from(map.colors());
    let frames = spec.memory.size.0 >> 12;
    let counted = {
        let mut counts = vec![0u64; map.colors() as usize];
        for frame in 0..frames {
            counts[usize::from(map.color(piebald_units::Pfn(frame)).0)] += 1;
        }
        counts
    };
    let mut row = Row::new(
        "S-4",
        "Section 2: colors of the X5355 with 4 GiB",
        TargetKind::C,
    )
    .plain();
    row.exact("colors", 64.0, colors as f64, "");
    let least = counted.iter().min().copied().unwrap_or(0);
    let most = counted.iter().max().copied().unwrap_or(0);
    row.exact("pages of a color, least", 16384.0, least as f64, "");
    row.exact("pages of a color, most", 16384.0, most as f64, "");
    Ok(row.finish())
}

/// S-17.
pub(super) fn rescan(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let settings = [Setting::Vanilla, Setting::Srm(runs.list().srm.threshold)];
    let mut row = Row::new(
        "S-17",
        "Section 4.5: a file that fits the cache",
        TargetKind::H,
    );
    let mut cases = Vec::new();
    for (machine, paper) in [("pe1900", 12.0), ("t1500", 17.0)] {
        let text = runs.list().file("rescan")?.on(machine)?;
        cases.push((machine, Some(paper), text.clone()));
        for other in &runs.list().file("rescan")?.sensitivity {
            cases.push((machine, None, with(&text, parameter(other))));
        }
    }
    for (machine, paper, text) in &cases {
        let one = runs.shelf().iteration(text, runs.draw(0))?;
        let source = times(text, (SCANS[0] + SCANS[1]) as u32 + 2);
        let refs = runs.form().recorded(&source);
        let first = runs.shelf().take(&source, runs.draw(0), refs)?.places.ready;
        let case = Case {
            machine,
            memory: None,
            plain: false,
            unfetched: false,
            setting: Setting::Vanilla,
            before: vec![times(text, 1)],
            members: vec![Member {
                source,
                core: 0,
                part: Part::Exactly(first, SCANS[0] * one, SCANS[1] * one),
            }],
        };
        runs.run("section 4.5, a file scanned again", &both(&case, &settings));
        let slower = runs.time_change(&case, &case.under(settings[1]), 0);
        let name = format!("{machine}, {text}: time with SRM over vanilla");
        match paper {
            Some(paper) => row.headline(&name, *paper, slower),
            None => row.show(&name, &slower, "%"),
        }
        if paper.is_some() {
            let size = text.split(':').nth(1).unwrap_or_default();
            let bytes: Bytes = size.parse().map_err(|e| format!("{text}: {e}"))?;
            let wanted = bytes
                .0
                .div_ceil(4096)
                .div_ceil(runs.list().srm.threshold.into()) as f64;
            // Each sequence takes a list that no other has, unless it is counted as shared.
            let own = |z: &super::runs::Zoned| match z.shared == 0.0 {
                true => z.sequences,
                false => f64::NAN,
            };
            let exact = |s: &Sample| match s.values.iter().all(|v| *v == wanted) {
                true => Verdict::Match,
                false => Verdict::Miss,
            };
            let found = runs.zone(&case.under(settings[1]), own);
            let name = format!("{machine}, {text}: colors of its pages");
            row.judge(&name, Published::Number(wanted), found, "", exact);
        }
        let misses = runs.sample(&case, 0, |d| d.misses);
        row.show(
            &format!("{machine}, {text}: misses, vanilla"),
            &misses,
            "per M instructions",
        );
    }
    Ok((vec![row.finish()], Vec::new()))
}

/// PostMark on a pool that was created and read, without its set-up and without caches.
fn pool(runs: &Runs<'_>, text: &str) -> Result<Case, String> {
    let created = times(text, 1);
    let source = Source::Transactions(with(text, &format!("iterations={TRANSACTIONS}")));
    let mut calls = u64::MAX;
    for repetition in 0..runs.form().repetitions {
        let refs = runs.form().recorded(&source);
        let ready = runs.shelf().take(&source, runs.draw(repetition), refs)?;
        calls = calls.min(ready.places.end.data);
    }
    // Repetitions draw other transactions: what all of them have is measured.
    let measured = calls.saturating_sub(2 * WARM_CALLS).max(1);
    Ok(Case {
        machine: "pe1900",
        memory: None,
        plain: true,
        unfetched: true,
        setting: Setting::Vanilla,
        before: vec![created.clone(), Source::Reader(Box::new(created))],
        members: vec![Member {
            source,
            core: 0,
            part: Part::Exactly(super::sources::Place::default(), WARM_CALLS, measured),
        }],
    })
}

fn with_memory(base: &Case, bytes: u64, setting: Setting) -> Case {
    Case {
        memory: Some(bytes),
        setting,
        ..base.clone()
    }
}

/// S-19's judged program, and the part of the paper's scale that it has.
fn asked(runs: &Runs<'_>) -> (String, u64) {
    let part = if runs.form().quick { QUICK_PART } else { 1 };
    (format!("postmark:{},call=64KiB", 32_000 / part), part)
}

/// S-18: counted in runs of S-9 and S-19.
pub(super) fn share(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let mut row = Row::new(
        "S-18",
        "Section 4.5: share of the colored zone",
        TargetKind::C,
    );
    let threshold = runs.list().srm.threshold;
    let large = super::pairs::first(runs)?.under(Setting::Srm(threshold));
    let (text, part) = asked(runs);
    let small = Setting::Srm(threshold / part as u32);
    let small = with_memory(&pool(runs, &text)?, (1 << 30) / part, small);
    runs.run(
        "section 4.5, share of the zone",
        &[large.clone(), small.clone()],
    );
    let refilled = |c: &Case| runs.zone(c, |z| z.refilled);
    let largest = |c: &Case| runs.zone(c, |z| z.largest);
    row.below(
        "16 GiB: largest share after a refill",
        0.8,
        largest(&large),
        "%",
    );
    row.show(
        "16 GiB: share after the last refill",
        &refilled(&large),
        "%",
    );
    let about = Published::Text("about 12".to_owned());
    let near = |s: &Sample| match (s.mean - 12.0).abs() <= 1.0 {
        true => Verdict::Match,
        false => Verdict::Miss,
    };
    row.judge(
        "1 GiB: share after the last refill",
        about,
        refilled(&small),
        "%",
        near,
    );
    row.show("1 GiB: largest share after a refill", &largest(&small), "%");
    if part > 1 {
        row.note("1 GiB is scaled: 1/8 of memory and T_l, which keeps the share");
    }
    Ok((vec![row.finish()], Vec::new()))
}

/// S-19.
pub(super) fn hits(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let (asked, part) = asked(runs);
    let scale = part as u32;
    let memories = runs.form().of(&MEMORY_MB, &QUICK_MEMORY_MB);
    let thresholds = [256 / scale, 128 / scale];
    let mut row = Row::new("S-19", "Figure 15: hit ratio by memory", TargetKind::H);
    if runs.form().quick {
        row.note("scaled: 1/8 of files, memory and T_l; 512 MiB, 1 and 4 GiB only");
    }
    let beside = runs.list().file("postmark32000")?.on("pe1900")?;
    let programs = match runs.form().quick {
        true => vec![(asked, true)],
        false => vec![(asked, true), (beside, false)],
    };
    let mut panels = Vec::new();
    for (text, judged) in programs {
        let base = pool(runs, &text)?;
        let case = |mb: u64, setting| with_memory(&base, (mb << 20) / part, setting);
        let settings = [
            Setting::Vanilla,
            Setting::Srm(thresholds[0]),
            Setting::Srm(thresholds[1]),
        ];
        let cases: Vec<Case> = memories
            .iter()
            .flat_map(|mb| settings.map(|s| case(*mb, s)))
            .collect();
        runs.run("figure 15", &cases);
        let ratio = |mb, setting| {
            let of = |d: &Did| d.io.hit_ratio().unwrap_or(f64::NAN) * 100.0;
            runs.sample(&case(mb, setting), 0, of)
        };
        let less = |mb, nth: usize| -> Found {
            change(&ratio(mb, settings[0])?, &ratio(mb, settings[nth])?)
        };
        for (what, of) in OTHER_RATIOS {
            for mb in &memories {
                let found = settings.map(|s| {
                    let of = |d: &Did| of(&d.io.reads).unwrap_or(f64::NAN) * 100.0;
                    runs.sample(&case(*mb, s), 0, of)
                });
                let name = format!("{text}, {mb} MiB: {what}");
                row.show(&format!("{name}, vanilla"), &found[0], "%");
                for (nth, t) in [(1, 256), (2, 128)] {
                    let changed = found[0]
                        .clone()
                        .and_then(|a| change(&a, &found[nth].clone()?));
                    row.show(&format!("{name}, change with T_l {t}"), &changed, "%");
                }
            }
        }
        let mut lines = Vec::new();
        for (nth, name) in ["vanilla", "SRM, T_l 256", "SRM, T_l 128"]
            .iter()
            .enumerate()
        {
            let found = memories.iter().map(|mb| ratio(*mb, settings[nth]));
            let found: Vec<Found> = found.collect();
            for (mb, f) in memories.iter().zip(&found) {
                row.show(&format!("{text}, {mb} MiB: hit ratio, {name}"), f, "%");
            }
            let points = memories.iter().map(|mb| *mb as f64).zip(&found);
            lines.push(curve(name, false, points));
        }
        panels.push((text.clone(), lines));
        if !judged {
            continue;
        }
        row.headline("512 MiB: hit ratio with T_l 256", -11.0, less(512, 1));
        row.headline("512 MiB: hit ratio with T_l 128", -3.8, less(512, 2));
        for mb in &memories[1..] {
            for (nth, t) in [(1, 256), (2, 128)] {
                row.states(
                    format!("{mb} MiB, T_l {t}: it changes by less than 2 %"),
                    less(*mb, nth).map(|s| s.mean.abs() < 2.0),
                );
            }
        }
    }
    let drawn = figure(
        [
            "Figure 15: hit ratio by memory",
            "Pages of files found in memory; memory as in the paper, whatever the scale.",
            "memory [MiB]",
            "%",
        ],
        panels,
    );
    Ok((vec![row.finish()], drawn.into_iter().collect()))
}

/// S-5, S-6 and S-7.
pub(super) fn database(runs: &mut Runs<'_>, options: &Options) -> Result<Done, String> {
    let plans = &runs.list().database.builtin;
    let all: Vec<usize> = (0..plans.join.len()).collect();
    let joins = runs.form().of(&all, &[0, 3]);
    let is_there = |name: &str| runs.shelf().query(name).is_file();
    let recorded = is_there("scan") && joins.iter().all(|j| is_there(&format!("join{}", j + 1)));
    let (scan, plan): (Source, Vec<Source>) = match recorded {
        false => (
            Source::Builtin(plans.scan.clone()),
            plans.join.iter().cloned().map(Source::Builtin).collect(),
        ),
        true => (
            Source::Backend("scan".to_owned()),
            (1..=plans.join.len())
                .map(|n| Source::Backend(format!("join{n}")))
                .collect(),
        ),
    };
    let settings = [Setting::Vanilla, Setting::Srm(runs.list().srm.threshold)];
    let reader = |s: &Source| Source::Reader(Box::new(s.clone()));
    let case = |join: usize, machine| {
        let join = plan[join].clone();
        let member = |source: &Source, core| Member {
            source: source.clone(),
            core,
            part: Part::File,
        };
        Case {
            machine,
            memory: None,
            plain: false,
            unfetched: false,
            setting: Setting::Vanilla,
            before: vec![reader(&join), reader(&scan)],
            members: vec![member(&join, 0), member(&scan, 1)],
        }
    };
    let mut five = Row::new("S-5", "Figure 8a: joins beside scans", TargetKind::H);
    let mut six = Row::new("S-6", "Figure 8a: with SRM", TargetKind::H);
    let mut seven = Row::new("S-7", "Figure 8b: on four cores", TargetKind::H);
    for row in [&mut five, &mut six, &mut seven] {
        row.note(match recorded {
            false => {
                "the plans as built-in programs, whose hash tables hold whole rows: there are no \
                 recordings of PostgreSQL"
            }
            true => "PostgreSQL 15, recorded while it probes",
        });
    }
    let mut panels = Vec::new();
    for (machine, wants) in [
        ("pe1900", options.wants("S-5") || options.wants("S-6")),
        ("t1500", options.wants("S-7")),
    ] {
        if !wants {
            continue;
        }
        let cases: Vec<Case> = joins.iter().map(|j| case(*j, machine)).collect();
        let every: Vec<Case> = cases.iter().flat_map(|c| both(c, &settings)).collect();
        runs.run(&format!("figure 8, {machine}"), &every);
        let each = |of: &dyn Fn(&Case) -> Found| -> Vec<Found> { cases.iter().map(of).collect() };
        let plain = each(&|c| runs.slowdown(c, 0));
        let with = each(&|c| runs.slowdown(&c.under(settings[1]), 0));
        let scans = each(&|c| runs.slowdown(c, 1));
        let cut: Vec<Found> = plain
            .iter()
            .zip(&with)
            .map(|(p, w)| Ok(p.clone()?.difference(&w.clone()?)))
            .collect();
        let time = each(&|c| negated(runs.time_change(c, &c.under(settings[1]), 0)));
        let of = |n: usize| {
            let at = joins.iter().position(|j| *j == n);
            at.map_or_else(|| Err("not run".to_owned()), |at| plain[at].clone())
        };
        let (slow, fast, papers) = match machine {
            "pe1900" => (&mut five, &mut six, [42.0, 3.0, 33.0, 17.0]),
            _ => {
                seven.headline("mean slowdown of the joins, vanilla", 26.0, mean(&plain));
                seven.headline("mean slowdown of the scans, vanilla", 1.0, mean(&scans));
                shown(&mut seven, &joins, [&plain, &with, &time]);
                seven.headline(
                    "largest cut of a slowdown [points]",
                    24.0,
                    extreme(&cut, true),
                );
                seven.headline("mean reduction of the joins' time", 14.0, mean(&time));
                every_cut(&mut seven, &cut);
                panels.push((machine.to_owned(), lines(&plain, &with)));
                continue;
            }
        };
        slow.headline(
            "mean slowdown of the joins, vanilla",
            papers[0],
            mean(&plain),
        );
        slow.headline(
            "mean slowdown of the scans, vanilla",
            papers[1],
            mean(&scans),
        );
        slow.headline("join1: slowdown, vanilla", 17.0, of(0));
        slow.headline("join4: slowdown, vanilla", 58.0, of(3));
        shown(slow, &joins, [&plain, &with, &time]);
        fast.headline(
            "largest cut of a slowdown [points]",
            papers[2],
            extreme(&cut, true),
        );
        fast.headline("mean reduction of the joins' time", papers[3], mean(&time));
        every_cut(fast, &cut);
        panels.push((machine.to_owned(), lines(&plain, &with)));
    }
    let drawn = figure(
        [
            "Figure 8: joins beside scans",
            "Slowdowns of joins, each beside a scan; bars are 95 % intervals.",
            "",
            "%",
        ],
        panels,
    );
    let names: Vec<String> = joins.iter().map(|j| format!("join{}", j + 1)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let drawn = named(drawn, &names);
    let rows = [five, six, seven].map(Row::finish).into_iter();
    let rows = rows.filter(|t| options.wants(&t.id)).collect();
    Ok((rows, drawn.into_iter().collect()))
}

fn lines(plain: &[Found], with: &[Found]) -> Vec<piebald_report::Curve> {
    let line = |name, found: &[Found]| curve(name, false, (1..).map(f64::from).zip(found));
    vec![line("vanilla", plain), line("SRM", with)]
}

fn shown(row: &mut Row, joins: &[usize], [plain, with, time]: [&[Found]; 3]) {
    for (nth, join) in joins.iter().enumerate() {
        let name = format!("join{}", join + 1);
        row.show(&format!("{name}: slowdown, vanilla"), &plain[nth], "%");
        row.show(&format!("{name}: slowdown, SRM"), &with[nth], "%");
        row.show(&format!("{name}: reduction of time"), &time[nth], "%");
    }
}

fn every_cut(row: &mut Row, cut: &[Found]) {
    let means: Result<Vec<f64>, String> = cut.iter().map(|c| Ok(c.clone()?.mean)).collect();
    row.states(
        "SRM cuts every join's slowdown",
        means.map(|m| m.iter().all(|x| *x > 0.0)),
    );
}
