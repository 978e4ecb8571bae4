//! Four cores at once: S-12 to S-14; and one program on all cores: S-21.

use piebald_report::{PaperFigure, Target, TargetKind};

use super::{
    inputs::Builtins,
    pairs::{both, file, vm},
    runs::{Case, Member, Part, Runs, Setting},
    sources::{Place, Source},
};
use crate::{
    Options,
    experiment::draw,
    row::{Found, Row, curve, figure, mean, named, negated},
};

type Done = (Vec<Target>, Vec<PaperFigure>);

/// Programs of figures 12 and 13.
const THREE: [&str; 3] = ["fft", "mm", "lu"];
pub(super) const MM: usize = 1;

/// S-13: what of 2 % matches, in percent.
const NEAR_TWO: [f64; 2] = [-3.0, 7.0];
/// S-14: bound on slowdowns with SRM, in percent.
const BELOW: f64 = 26.0;

/// Blocks of S-21 that are measured.
const BLOCKS: u64 = 8;
const QUICK_BLOCKS: u64 = 3;

fn t1500(before: Vec<Source>, members: Vec<Member>) -> Case {
    Case {
        machine: "t1500",
        memory: None,
        plain: false,
        unfetched: false,
        setting: Setting::Vanilla,
        before,
        members,
    }
}

fn member(source: Source, core: u32, part: Part) -> Member {
    Member { source, core, part }
}

/// FFT, this MM and LU beside a program that reads files.
pub(super) fn beside(runs: &Runs<'_>, mm: Source, f: &str) -> Result<Case, String> {
    let read = file(runs, f, "t1500")?;
    let mut members = Vec::new();
    for (core, v) in (0..).zip(THREE) {
        let source = match v == THREE[MM] {
            true => mm.clone(),
            false => vm(runs, v)?,
        };
        members.push(member(source, core, Part::Memory));
    }
    members.push(member(read.clone(), 3, Part::File));
    Ok(t1500(vec![read], members))
}

/// S-12 and S-13.
pub(super) fn four(runs: &mut Runs<'_>, options: &Options) -> Result<Done, String> {
    let files = runs.form().of(&["grep", "tar"], &["grep"]);
    let settings = [Setting::Vanilla, Setting::Srm(runs.list().srm.threshold)];
    let mut cases = Vec::new();
    for f in &files {
        cases.push((*f, beside(runs, vm(runs, THREE[MM])?, f)?));
    }
    let all: Vec<Case> = cases.iter().flat_map(|(_, c)| both(c, &settings)).collect();
    runs.run("figure 12", &all);
    let mut twelve = Row::new(
        "S-12",
        "Figure 12a: three programs beside one",
        TargetKind::S,
    );
    let mut thirteen = Row::new("S-13", "Figure 12: MM beside grep", TargetKind::H);
    let mut panels = Vec::new();
    for (f, case) in &cases {
        let srm = case.under(settings[1]);
        let plain: Vec<Found> = (0..3).map(|m| runs.slowdown(case, m)).collect();
        let with: Vec<Found> = (0..3).map(|m| runs.slowdown(&srm, m)).collect();
        for (nth, v) in THREE.iter().enumerate() {
            twelve.show(&format!("{f}, {v}: slowdown, vanilla"), &plain[nth], "%");
            twelve.show(&format!("{f}, {v}: slowdown, SRM"), &with[nth], "%");
        }
        let means = |found: &[Found]| -> Result<Vec<f64>, String> {
            found.iter().map(|s| Ok(s.clone()?.mean)).collect()
        };
        let (p, w) = (means(&plain), means(&with));
        twelve.states(
            format!("{f}: vanilla, FFT has the smallest slowdown and MM the largest"),
            p.clone().map(|p| p[0] < p[2] && p[2] < p[MM]),
        );
        let cut = p.and_then(|p| Ok(p.iter().zip(w?).map(|(a, b)| a - b).collect::<Vec<f64>>()));
        twelve.states(
            format!("{f}: with SRM each of the three is smaller"),
            cut.clone().map(|c| c.iter().all(|x| *x > 0.0)),
        );
        twelve.states(
            format!("{f}: MM's falls by the most points"),
            cut.map(|c| c.iter().all(|x| *x <= c[MM])),
        );
        let line = |name, found: &[Found]| curve(name, false, (1..).map(f64::from).zip(found));
        panels.push((
            format!("beside {f}"),
            vec![line("vanilla", &plain), line("SRM", &with)],
        ));
        if *f != "grep" {
            continue;
        }
        thirteen.headline(
            "MM: misses, with SRM",
            -90.0,
            runs.miss_change(case, &srm, MM),
        );
        thirteen.headline("MM: slowdown, vanilla", 60.0, plain[MM].clone());
        let two = piebald_report::Published::Number(2.0);
        thirteen.judge("MM: slowdown, SRM", two, with[MM].clone(), "%", near_two);
        let time = negated(runs.time_change(case, &srm, MM));
        thirteen.headline("MM: reduction of time", 36.0, time);
    }
    let drawn = figure(
        [
            "Figure 12: three programs beside one",
            "Programs in memory, all beside the program of the title; bars are 95 % intervals.",
            "",
            "%",
        ],
        panels,
    );
    let drawn = named(drawn, &THREE);
    let rows = [twelve, thirteen].map(Row::finish).into_iter();
    let rows = rows.filter(|t| options.wants(&t.id)).collect();
    Ok((rows, drawn.into_iter().collect()))
}

/// S-13: "2 %" is near zero, and has a bound instead of a sign.
fn near_two(sample: &piebald_report::Sample) -> piebald_report::Verdict {
    let [low, high] = NEAR_TWO;
    match (low..=high).contains(&sample.mean) {
        true => piebald_report::Verdict::Match,
        false => piebald_report::Verdict::Miss,
    }
}

/// S-14.
pub(super) fn greps(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let counts = runs.form().of(&[1u32, 2, 3], &[1, 3]);
    let settings = [Setting::Vanilla, Setting::Srm(runs.list().srm.threshold)];
    let mut cases = Vec::new();
    for v in ["mm", "lu"] {
        for n in &counts {
            let trees = (0..*n).map(|k| super::TREE_SEED + u64::from(k));
            let reads: Vec<Source> = trees
                .map(|tree| Source::Recorded("grep".to_owned(), tree))
                .collect();
            let mut members = vec![member(vm(runs, v)?, 0, Part::Memory)];
            let others = reads.iter().cloned().zip(1..);
            members.extend(others.map(|(read, core)| member(read, core, Part::File)));
            cases.push((v, *n, t1500(reads, members)));
        }
    }
    let all = cases.iter().flat_map(|(_, _, c)| {
        let one = |s| [c.under(s), c.under(s).alone(0)];
        settings.map(one).concat()
    });
    let all: Vec<Case> = all.collect();
    runs.run("figure 13", &all);
    let mut row = Row::new(
        "S-14",
        "Figure 13: beside one to three greps",
        TargetKind::H,
    );
    let found: Vec<[Found; 2]> = cases
        .iter()
        .map(|(_, _, c)| settings.map(|s| runs.slowdown(&c.under(s), 0)))
        .collect();
    let with = |v: &'static str| {
        cases
            .iter()
            .zip(&found)
            .filter(move |((c, _, _), _)| *c == v)
    };
    let mut panels = Vec::new();
    for (v, name, papers) in [("mm", "MM", [32.0, 84.0]), ("lu", "LU", [24.0, 88.0])] {
        for ((_, n, _), [plain, srm]) in with(v) {
            let title = format!("{name} with {n}: slowdown, vanilla");
            match n {
                1 => row.headline(&title, papers[0], plain.clone()),
                3 => row.headline(&title, papers[1], plain.clone()),
                _ => row.show(&title, plain, "%"),
            }
            row.show(&format!("{name} with {n}: slowdown, SRM"), srm, "%");
            row.states(
                format!("{name} with {n}: with SRM the slowdown is below 26 %"),
                srm.clone().map(|s| s.mean < BELOW),
            );
        }
        let means: Result<Vec<f64>, String> = with(v)
            .map(|(_, [plain, _])| Ok(plain.clone()?.mean))
            .collect();
        row.states(
            format!("{name}: the slowdown rises with the number of greps"),
            means.map(|m| m.windows(2).all(|w| w[1] > w[0])),
        );
        let line = |title, nth: usize| {
            let points = with(v).map(move |((_, n, _), f)| (f64::from(*n), &f[nth]));
            curve(title, false, points)
        };
        panels.push((name.to_owned(), vec![line("vanilla", 0), line("SRM", 1)]));
    }
    let drawn = figure(
        [
            "Figure 13: beside one to three greps",
            "Slowdown by the number of greps; bars are 95 % intervals.",
            "greps",
            "%",
        ],
        panels,
    );
    Ok((vec![row.finish()], drawn.into_iter().collect()))
}

/// Where the blocks of the first phase of a sort begin: with a read of the input at a multiple
/// of a block.
fn blocks(reads: &[(piebald_units::FileId, u64, Place)], block: u64) -> Vec<Place> {
    let Some((input, _, _)) = reads.first() else {
        return Vec::new();
    };
    let mut next = 0;
    let mut places = Vec::new();
    for (file, offset, place) in reads {
        if file == input && *offset == next {
            places.push(*place);
            next += block;
        }
    }
    places
}

/// S-21.
pub(super) fn sorts(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let entry = runs.list().file("filesort")?.clone();
    let Some(Builtins::Several(texts)) = &entry.builtin else {
        return Err("file \"filesort\": builtin: allowed: a list".to_owned());
    };
    let all: Vec<&str> = texts.iter().map(String::as_str).collect();
    let texts = match runs.form().quick {
        true => all.iter().take(1).copied().collect(),
        false => all,
    };
    let measured = if runs.form().quick {
        QUICK_BLOCKS
    } else {
        BLOCKS
    };
    let mut row = Row::new("S-21", "Section 4.7: a sort on every core", TargetKind::H);
    let mut means = Vec::new();
    for (text, papers) in texts.iter().zip([[11.0, 13.0], [15.0, 25.0]]) {
        for ((machine, cores), paper) in [("t1500", 4u32), ("x7560", 8)].into_iter().zip(papers) {
            let name = format!("{text}, {cores} on {machine}");
            let found = sort(runs, text, &entry.megabytes, (machine, cores), measured);
            row.headline(&format!("{name}: mean slowdown"), paper, found.clone());
            means.push(found);
        }
    }
    for (text, pair) in texts.iter().zip(means.chunks(2)) {
        let [i7, x7560] = pair else { continue };
        let more = i7.clone().and_then(|a| Ok(x7560.clone()?.mean > a.mean));
        row.states(
            format!("{text}: the slowdown of x7560 exceeds that of t1500"),
            more,
        );
    }
    if runs.form().quick {
        row.note("quick: blocks of 512 KiB only, three of them measured");
    }
    Ok((vec![row.finish()], Vec::new()))
}

fn sort(
    runs: &mut Runs<'_>,
    text: &str,
    megabytes: &[u32],
    (machine, cores): (&'static str, u32),
    measured: u64,
) -> Found {
    let [least, most] = megabytes else {
        return Err("file \"filesort\": megabytes: missing".to_owned());
    };
    let block = text.rsplit_once("block=").map_or("", |(_, b)| b);
    let bytes: piebald_units::Bytes = block.parse().map_err(|e| format!("{text}: {e}"))?;
    let mut members = Vec::new();
    for core in 0..cores {
        let spread = u64::from(most - least + 1);
        let size = u64::from(*least) + draw(runs.draw(0), "file", u64::from(core)) % spread;
        let text = super::inputs::with(text, &format!("size={size}MiB"));
        let source = Source::Own(Box::new(Source::Builtin(text.clone())), core);
        let refs = runs.form().recorded(&source);
        let ready = runs.shelf().take(&source, runs.draw(0), refs)?;
        let starts = blocks(&ready.places.reads, bytes.0);
        let at = |n: u64| starts.get(n as usize).copied();
        let (Some(first), Some(second), Some(end)) = (at(0), at(1), at(1 + measured)) else {
            return Err(format!("{text}: fewer than {} blocks", measured + 2));
        };
        let part = Part::Exactly(first, second.data - first.data, end.data - second.data);
        members.push(member(source, core, part));
    }
    let before = members
        .iter()
        .map(|m| Source::Reader(Box::new(m.source.clone())));
    let case = Case {
        machine,
        memory: None,
        plain: false,
        unfetched: false,
        setting: Setting::Vanilla,
        before: before.collect(),
        members,
    };
    runs.run(
        &format!("section 4.7, {machine}"),
        &both(&case, &[Setting::Vanilla]),
    );
    let each: Vec<Found> = (0..cores as usize)
        .map(|m| runs.slowdown(&case, m))
        .collect();
    mean(&each)
}

#[cfg(test)]
mod tests {
    use piebald_units::FileId;

    use super::*;

    #[test]
    fn blocks_begin_where_the_input_is_read_at_their_multiples() {
        let place = |n| Place { all: n, data: n };
        let read = |file, offset, at| (FileId(file), offset, place(at));
        let reads = [
            read(1, 0, 5),
            read(1, 64, 9),
            read(1, 128, 20),
            read(1, 192, 22),
            read(1, 256, 40),
            // Runs are merged from the other file.
            read(2, 0, 60),
            read(2, 384, 70),
        ];
        assert_eq!(blocks(&reads, 128), [place(5), place(20), place(40)]);
        assert!(blocks(&[], 128).is_empty());
    }
}
