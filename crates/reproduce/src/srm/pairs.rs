//! Programs in memory beside programs that read files, two at a time: S-2, S-3, S-9 to S-11,
//! S-15, S-16 and S-20.

use piebald_report::{Curve, PaperFigure, Target, TargetKind};

use super::{
    inputs::{sized, with},
    runs::{Case, Member, Part, Runs, Setting},
    sources::Source,
};
use crate::{
    Options,
    row::{Found, Row, change, curve, extreme, figure, mean, named, negated},
};

/// Cores of the PowerEdge that share a last level, and that do not.
pub(super) const SHARED: [u32; 2] = [0, 1];
const APART: [u32; 2] = [0, 2];

/// The programs of section 4.3.
pub(super) const VM: [&str; 4] = ["mergesort", "fft", "mm", "lu"];
pub(super) const FILE: [&str; 3] = ["grep", "tar", "postmark"];

/// T_l of figure 16.
const THRESHOLDS: [u32; 6] = [16, 32, 64, 128, 256, 512];

/// Points by which a curve may fall that is said not to.
const FALL_POINTS: [f64; 2] = [3.0, 1.0];

type Done = (Vec<Target>, Vec<PaperFigure>);

/// A program in memory of the list.
pub(super) fn vm(runs: &Runs<'_>, name: &str) -> Result<Source, String> {
    Ok(Source::Builtin(runs.list().vm(name)?.builtin.clone()))
}

/// A program of the list that reads files.
pub(super) fn file(runs: &Runs<'_>, name: &str, machine: &str) -> Result<Source, String> {
    let entry = runs.list().file(name)?;
    match entry.command.is_empty() {
        true => Ok(Source::Builtin(entry.on(machine)?)),
        false => Ok(Source::Recorded(name.to_owned(), super::TREE_SEED)),
    }
}

/// A program in memory and one that reads files, which has loaded them.
pub(super) fn pair(vm: Source, file: &Source, cores: [u32; 2]) -> Case {
    loaded_by(vm, file, file, cores)
}

/// The same with files that another has loaded.
pub(super) fn loaded_by(vm: Source, file: &Source, loader: &Source, cores: [u32; 2]) -> Case {
    Case {
        machine: "pe1900",
        memory: None,
        plain: false,
        unfetched: false,
        setting: Setting::Vanilla,
        before: vec![loader.clone()],
        members: vec![
            Member {
                source: vm,
                core: cores[0],
                part: Part::Memory,
            },
            Member {
                source: file.clone(),
                core: cores[1],
                part: Part::File,
            },
        ],
    }
}

/// A case and each of its programs alone, on both systems.
pub(super) fn both(case: &Case, settings: &[Setting]) -> Vec<Case> {
    let mut all = Vec::new();
    for setting in settings {
        let case = case.under(*setting);
        if case.members.len() > 1 {
            all.extend((0..case.members.len()).map(|m| case.alone(m)));
        }
        all.push(case);
    }
    all
}

pub(super) fn srm(runs: &Runs<'_>) -> Setting {
    Setting::Srm(runs.list().srm.threshold)
}

/// S-2 and S-3.
pub(super) fn motivation(runs: &mut Runs<'_>, options: &Options) -> Result<Done, String> {
    let entry = runs.list().vm("mergesort")?;
    let all: Vec<&str> = entry.sizes.iter().map(String::as_str).collect();
    let sizes = runs.form().of(&all, &["256KiB", "1MiB", "1.5MiB"]);
    let grep = file(runs, "grep-tarball", "pe1900")?;
    let of = |size: &str, cores, setting| {
        let vm = Source::Builtin(sized(&entry.builtin, size));
        pair(vm, &grep, cores).under(setting)
    };
    let systems = [Setting::Vanilla, Setting::OneColor];
    let mut cases = Vec::new();
    for size in &sizes {
        for setting in systems {
            cases.extend([of(size, SHARED, setting), of(size, APART, setting)]);
        }
    }
    runs.run("figure 2", &cases);
    let slower = |size: &str, setting| -> Found {
        let time = |cores| runs.sample(&of(size, cores, setting), 0, |d| d.time_ps);
        change(&time(APART)?, &time(SHARED)?)
    };
    let found: Vec<[Found; 2]> = sizes
        .iter()
        .map(|s| systems.map(|setting| slower(s, setting)))
        .collect();
    let largest = sizes.last().copied().unwrap_or_default();
    let mut two = Row::new("S-2", "Figure 2a: mergesort beside grep", TargetKind::H);
    for (name, paper, nth) in [
        ("unmodified", 114.0, 0),
        ("grep's pages in one color", 30.0, 1),
    ] {
        let last = found.last().map(|f| f[nth].clone());
        let name = format!("{largest}: slowdown, {name}");
        two.headline(&name, paper, last.unwrap_or(Err("not run".to_owned())));
    }
    for (size, [plain, one]) in sizes.iter().zip(&found) {
        two.show(&format!("{size}: slowdown, unmodified"), plain, "%");
        two.show(&format!("{size}: slowdown, one color"), one, "%");
    }
    let means: Result<Vec<f64>, String> = found.iter().map(|f| Ok(f[0].clone()?.mean)).collect();
    two.states(
        "the unmodified slowdown does not fall by more than 3 points from one size to the next",
        means.clone().map(|m| rises(&m, FALL_POINTS[0])),
    );
    two.states(
        format!("it is largest at {largest}"),
        means.map(|m| m.iter().all(|x| Some(x) <= m.last())),
    );
    let mut three = Row::new("S-3", "Figure 2b: misses of mergesort", TargetKind::H);
    let [plain, one] = systems.map(|setting| of(largest, SHARED, setting));
    three.headline(
        "misses, with one color",
        -78.0,
        runs.miss_change(&plain, &one, 0),
    );
    three.unchanged(
        "grep's time, with one color",
        super::UNCHANGED,
        runs.time_change(&plain, &one, 1),
    );
    let x = |size: &str| {
        size.parse::<piebald_units::Bytes>()
            .map_or(0.0, |b| b.0 as f64 / 1024.0)
    };
    let line = |name, nth: usize| {
        let points = sizes.iter().zip(&found);
        curve(name, false, points.map(|(s, f)| (x(s), &f[nth])))
    };
    let panel = vec![line("unmodified", 0), line("one color", 1)];
    let drawn = figure(
        [
            "Figure 2: mergesort beside grep",
            "Slowdown by sharing the last-level cache; bars are 95 % intervals.",
            "array [KiB]",
            "%",
        ],
        vec![("mergesort".to_owned(), panel)],
    );
    let rows = [two, three].map(Row::finish).into_iter();
    Ok((
        rows.filter(|t| options.wants(&t.id)).collect(),
        drawn.into_iter().collect(),
    ))
}

/// No value is lower than the one before it by more than `points`.
pub(super) fn rises(values: &[f64], points: f64) -> bool {
    values.windows(2).all(|w| w[1] >= w[0] - points)
}

/// The first pair of S-9.
pub(super) fn first(runs: &Runs<'_>) -> Result<Case, String> {
    Ok(pair(
        vm(runs, VM[0])?,
        &file(runs, FILE[0], "pe1900")?,
        SHARED,
    ))
}

/// S-9, S-10 and S-11.
pub(super) fn twelve(runs: &mut Runs<'_>, options: &Options) -> Result<Done, String> {
    let vms = runs.form().of(&VM, &["mergesort", "mm"]);
    let files = runs.form().of(&FILE, &["grep", "postmark"]);
    let settings = [Setting::Vanilla, srm(runs)];
    let mut pairs = Vec::new();
    for v in &vms {
        for f in &files {
            let case = pair(vm(runs, v)?, &file(runs, f, "pe1900")?, SHARED);
            pairs.push((format!("{v} with {f}"), case));
        }
    }
    let cases: Vec<Case> = pairs.iter().flat_map(|(_, c)| both(c, &settings)).collect();
    runs.run("figures 10 and 11", &cases);
    let per_pair = |of: &dyn Fn(&Case) -> Found| -> Vec<Found> {
        pairs.iter().map(|(_, case)| of(case)).collect()
    };
    let of_srm = |case: &Case| case.under(settings[1]);
    let plain = per_pair(&|c| runs.slowdown(c, 0));
    let with_srm = per_pair(&|c| runs.slowdown(&of_srm(c), 0));
    let time = per_pair(&|c| negated(runs.time_change(c, &of_srm(c), 0)));
    let misses = per_pair(&|c| negated(runs.miss_change(c, &of_srm(c), 0)));
    let theirs = per_pair(&|c| runs.time_change(c, &of_srm(c), 1));
    let is_quick = runs.form().quick;
    let mut nine = Row::new(
        "S-9",
        "Figure 10a: slowdowns of programs in memory",
        TargetKind::H,
    );
    nine.headline("mean slowdown, vanilla", 64.0, mean(&plain));
    nine.headline("mean slowdown, SRM", 28.0, mean(&with_srm));
    let mut ten = Row::new("S-10", "Figure 10b: their execution times", TargetKind::H);
    ten.headline("mean reduction of time", 22.0, mean(&time));
    let mut eleven = Row::new("S-11", "Figure 11: their last-level misses", TargetKind::H);
    let ends: [(&mut Row, &[Found], [f64; 2]); 2] = [
        (&mut ten, &time, [16.0, 29.0]),
        (&mut eleven, &misses, [34.0, 85.0]),
    ];
    for (row, found, papers) in ends {
        for (name, largest) in [("least reduction", false), ("largest reduction", true)] {
            match is_quick {
                true => row.show(name, &extreme(found, largest), "%"),
                false => row.headline(name, papers[usize::from(largest)], extreme(found, largest)),
            }
        }
    }
    if is_quick {
        eleven.missing("least and largest over twelve pairs are not judged over four");
        ten.note("four of the twelve pairs; least and largest are not judged");
        nine.note("four of the twelve pairs");
    }
    for (nth, (name, case)) in pairs.iter().enumerate() {
        nine.show(&format!("{name}: slowdown, vanilla"), &plain[nth], "%");
        nine.show(&format!("{name}: slowdown, SRM"), &with_srm[nth], "%");
        ten.show(&format!("{name}: reduction of time"), &time[nth], "%");
        ten.show(
            &format!("{name}: change of the file program's time"),
            &theirs[nth],
            "%",
        );
        eleven.show(&format!("{name}: reduction of misses"), &misses[nth], "%");
        let vanilla = runs.sample(case, 0, |d| d.misses);
        eleven.show(
            &format!("{name}: misses, vanilla"),
            &vanilla,
            "per M instructions",
        );
        ten.states(
            format!("{name}: the file program's time is unchanged"),
            theirs[nth].clone().map(|s| within(&s, super::UNCHANGED)),
        );
    }
    // A panel for each program that reads files, with the programs in memory side by side.
    let panels = |of: [(&str, &[Found]); 2]| -> Vec<(String, Vec<Curve>)> {
        let panel = |(at, name): (usize, &&str)| {
            let line = |(name, found): (&str, &[Found])| {
                let each = found.iter().skip(at).step_by(files.len());
                curve(name, false, (1..).map(f64::from).zip(each))
            };
            (format!("beside {name}"), of.map(line).to_vec())
        };
        files.iter().enumerate().map(panel).collect()
    };
    let text = "Programs in memory, each beside the program of the title; bars are 95 % intervals.";
    let drawn = [
        figure(
            ["Figure 10a: slowdowns", text, "", "%"],
            panels([("vanilla", &plain), ("SRM", &with_srm)]),
        ),
        figure(
            ["Figures 10b and 11: reductions by SRM", text, "", "%"],
            panels([("time", &time), ("misses", &misses)]),
        ),
    ]
    .map(|f| named(f, &vms));
    let rows = [nine, ten, eleven].map(Row::finish).into_iter();
    let rows = rows.filter(|t| options.wants(&t.id)).collect();
    Ok((rows, drawn.into_iter().flatten().collect()))
}

/// The whole interval lies within `bound` of zero.
pub(super) fn within(sample: &piebald_report::Sample, bound: f64) -> bool {
    let interval = sample.interval();
    interval.is_some_and(|(low, high)| low >= -bound && high <= bound)
}

/// S-15.
pub(super) fn crossed(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    const CROSSED: [[&str; 2]; 4] = [
        ["grep2", "grep2"],
        ["grep2", "diff"],
        ["diff", "diff"],
        ["diff", "grep2"],
    ];
    let vms = runs.form().of(&["fft", "mm", "lu"], &["mm"]);
    let settings = [Setting::Vanilla, srm(runs)];
    let mut all = Vec::new();
    for [reader, loader] in CROSSED {
        let [read, load] = [file(runs, reader, "pe1900")?, file(runs, loader, "pe1900")?];
        let cases = vms
            .iter()
            .map(|v| Ok(loaded_by(vm(runs, v)?, &read, &load, SHARED)));
        all.push(cases.collect::<Result<Vec<Case>, String>>()?);
    }
    let cases: Vec<Case> = all
        .iter()
        .flatten()
        .flat_map(|c| settings.map(|s| c.under(s)))
        .collect();
    runs.run("figure 14", &cases);
    let mut row = Row::new(
        "S-15",
        "Figure 14: files loaded by another program",
        TargetKind::S,
    );
    let reduced = |c: &Case| negated(runs.time_change(c, &c.under(settings[1]), 0));
    let mut means = Vec::new();
    for ([reader, loader], cases) in CROSSED.iter().zip(&all) {
        let each: Vec<Found> = cases.iter().map(reduced).collect();
        for (v, found) in vms.iter().zip(&each) {
            row.show(
                &format!("{reader}({loader}), {v}: reduction of time"),
                found,
                "%",
            );
        }
        let found = mean(&each);
        row.show(
            &format!("{reader}({loader}): mean reduction of time"),
            &found,
            "%",
        );
        row.states(
            format!("{reader}({loader}): the reduction is above 0 with its interval"),
            found
                .clone()
                .map(|s| s.interval().is_some_and(|(low, _)| low > 0.0)),
        );
        means.push(found);
    }
    for (crossed, same, text) in [
        (1, 0, "grep2(diff) is below grep2(grep2)"),
        (3, 2, "diff(grep2) is below diff(diff)"),
    ] {
        let less = means[crossed]
            .clone()
            .and_then(|c| Ok(c.mean < means[same].clone()?.mean));
        row.states(text, less);
    }
    let points = (1..).map(f64::from).zip(&means);
    let drawn = figure(
        [
            "Figure 14: files loaded by another program",
            "Mean reduction of time, in this order: grep2(grep2), grep2(diff), diff(diff), \
             diff(grep2).",
            "reader(loader)",
            "%",
        ],
        vec![("mean".to_owned(), vec![curve("reduction", false, points)])],
    );
    Ok((vec![row.finish()], drawn.into_iter().collect()))
}

/// S-16.
pub(super) fn random(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let vms = runs.form().of(&["mm", "lu", "fft"], &["mm"]);
    let text = runs.list().file("random")?.on("pe1900")?;
    let read = Source::Builtin(match runs.form().quick {
        true => sized(&text, "128MiB"),
        false => text,
    });
    let scan = Source::Reader(Box::new(read.clone()));
    let settings = [Setting::Vanilla, srm(runs)];
    let mut row = Row::new("S-16", "Section 4.5: random reads", TargetKind::H);
    let mut cases = Vec::new();
    for v in &vms {
        cases.push(loaded_by(vm(runs, v)?, &read, &scan, SHARED));
    }
    let all: Vec<Case> = cases.iter().flat_map(|c| both(c, &settings)).collect();
    runs.run("section 4.5, random reads", &all);
    for (v, case) in vms.iter().zip(&cases) {
        let srm = case.under(settings[1]);
        row.unchanged(
            &format!("{v}: change of time"),
            super::UNCHANGED,
            runs.time_change(case, &srm, 0),
        );
        row.show(
            &format!("{v}: slowdown, vanilla"),
            &runs.slowdown(case, 0),
            "%",
        );
        row.show(&format!("{v}: slowdown, SRM"), &runs.slowdown(&srm, 0), "%");
    }
    Ok((vec![row.finish()], Vec::new()))
}

/// S-20.
pub(super) fn thresholds(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let vms = runs.form().of(&["fft", "mm", "lu"], &["mm"]);
    let files = runs.form().of(&["grep", "tar"], &["grep"]);
    let thresholds = runs.form().of(&THRESHOLDS, &[16, 128, 512]);
    let mut pairs = Vec::new();
    for v in &vms {
        for f in &files {
            let case = pair(vm(runs, v)?, &file(runs, f, "pe1900")?, SHARED);
            pairs.push((format!("{v} with {f}"), case));
        }
    }
    let with_all = pairs.iter().flat_map(|(_, c)| {
        let srm = thresholds.iter().map(|t| c.under(Setting::Srm(*t)));
        srm.chain([c.clone()]).collect::<Vec<Case>>()
    });
    let cases: Vec<Case> = with_all.collect();
    runs.run("figure 16", &cases);
    let mut row = Row::new("S-20", "Figure 16: length of sequences", TargetKind::H);
    let mut means = Vec::new();
    for t in &thresholds {
        let reduced = |c: &Case| negated(runs.time_change(c, &c.under(Setting::Srm(*t)), 0));
        let each: Vec<Found> = pairs.iter().map(|(_, c)| reduced(c)).collect();
        for ((name, _), found) in pairs.iter().zip(&each) {
            row.show(&format!("T_l {t}, {name}: reduction of time"), found, "%");
        }
        means.push((*t, mean(&each)));
    }
    let at = |t: u32| {
        let found = means.iter().find(|(at, _)| *at == t);
        found.map_or_else(|| Err("not run".to_owned()), |(_, f)| f.clone())
    };
    for (t, paper) in [(16, 14.0), (128, 24.0)] {
        row.headline(&format!("T_l {t}: mean reduction of time"), paper, at(t));
    }
    let more = at(512).and_then(|a| Ok(a.difference(&at(128)?)));
    row.headline("mean reduction, T_l 512 less T_l 128 [points]", 1.7, more);
    let values: Result<Vec<f64>, String> = means.iter().map(|(_, f)| Ok(f.clone()?.mean)).collect();
    row.states(
        "it does not fall by more than 1 point from one T_l to the next",
        values.map(|v| rises(&v, FALL_POINTS[1])),
    );
    let points = means.iter().map(|(t, f)| (f64::from(*t), f));
    let drawn = figure(
        [
            "Figure 16: length of sequences",
            "Mean reduction of time by T_l; bars are 95 % intervals.",
            "T_l [pages]",
            "%",
        ],
        vec![("mean".to_owned(), vec![curve("reduction", false, points)])],
    );
    Ok((vec![row.finish()], drawn.into_iter().collect()))
}

/// A text with another parameter, for those who scan a file so many times.
pub(super) fn times(text: &str, iterations: u32) -> Source {
    Source::Builtin(with(text, &format!("iterations={iterations}")))
}
