//! S-2, S-3 and S-9 to S-11 in miniature (sections 2 and 4.3 of the paper): programs that live
//! in memory beside grep, tar and PostMark, without the module, with grep in one color, and with
//! SRM-buffer.

use piebald_report::{PaperFigure, Target, TargetKind};

use super::{
    Form,
    agree::Kind,
    case::{Beside, Case, Subject, Way},
    kernels::{Kernels, Pace, Pair},
    rows::{faster, fewer, judge, show},
};
use crate::row::{Row, curve, figure, named};

/// T_l (section 4.1).
pub(super) const THRESHOLD: u32 = 256;
pub(super) const STOCK: &str = "stock";
const ONE: &str = "one color";
pub(super) const SRM: &str = "SRM-buffer";
/// Files of a set: 16 MiB.
pub(super) const FILES: u32 = 64;
/// How often grep reads its files in one run.
pub(super) const PASSES: usize = 5;

/// Name in results, program, arguments in the guest, arguments that are recorded.
type Line = (&'static str, [&'static str; 3]);

/// Sizes are those of `reproduce srm` (grid.toml), but for LU's.
const PROGRAMS: [Line; 6] = [
    ("mergesort 1.5 MiB", ["records", "1572864 8", "1572864 80"]),
    ("mm", ["mm", "25000 250000 16", "25000 250000 200"]),
    ("fft", ["fft", "131072 1", "131072 8"]),
    ("lu", ["lu", "400 1", "400 2"]),
    ("mergesort 1 MiB", ["records", "1048576 12", "1048576 120"]),
    ("mergesort 256 KiB", ["records", "262144 60", "262144 600"]),
];
/// Arguments in the guest beside PostMark, whose run is longer than the others' and is met from its
/// beginning: first it draws its text (reproduce/guest/log.md, change 5).
const LONG: [(&str, &str); PAIRED] = [
    ("mergesort 1.5 MiB", "1572864 16"),
    ("mm", "25000 250000 100"),
    ("fft", "131072 3"),
    ("lu", "400 2"),
];
/// Of these the first ones are those of section 4.3, and the quick form runs still fewer.
const PAIRED: usize = 4;
const QUICK: usize = 2;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// A program that lives in its memory, by its name in results.
pub(super) fn subject(name: &str) -> Option<Subject> {
    let (_, [program, guest, recorded]) = PROGRAMS.iter().find(|(n, _)| *n == name)?;
    Some(Subject {
        name: program,
        guest: words(guest),
        recorded: words(recorded),
        refs: [9_000_000, 16_000_000],
        query: None,
    })
}

/// Those of section 4.3, without the sizes of figure 2.
fn is_pair(case: &Case) -> bool {
    case.rows.contains(&"S-9")
}

fn is_sort(case: &Case) -> bool {
    case.rows.contains(&"S-2")
}

pub(super) fn cases(form: &Form) -> Vec<Case> {
    let count = if form.quick { QUICK } else { PROGRAMS.len() };
    let programs = || PROGRAMS[..count].iter().enumerate();
    let beside_grep = programs().filter_map(|(nth, (name, _))| {
        let is_sort = name.starts_with("mergesort");
        let is_pair = nth < PAIRED;
        let mut ways = vec![(STOCK.to_owned(), Way::Stock)];
        if is_sort {
            let colors = [String::new(), "0".to_owned()];
            ways.push((ONE.to_owned(), Way::Colors(colors)));
        }
        if is_pair {
            ways.push((SRM.to_owned(), Way::Srm(THRESHOLD)));
        }
        let rows: &[&str] = match (is_sort, is_pair) {
            (true, true) => &["S-2", "S-3", "S-9", "S-10", "S-11"],
            (true, false) => &["S-2", "S-3"],
            (false, _) => &["S-9", "S-10", "S-11"],
        };
        Some(Case {
            name: (*name).to_owned(),
            rows,
            preset: "x5355",
            memory: "2GiB",
            modelled_memory: "2GiB",
            vcpus: 2,
            bits: 12..=17,
            files: FILES,
            sets: 1,
            subject: subject(name)?,
            beside: vec![Beside::Grep {
                set: 0,
                passes: PASSES,
            }],
            alone: None,
            timed: true,
            ways,
        })
    });
    let mut all: Vec<Case> = beside_grep.collect();
    for other in [Beside::Tar, Beside::PostMark] {
        for (name, args) in LONG {
            let Some(case) = all.iter().find(|c| c.name == name).cloned() else {
                continue;
            };
            let mut subject = case.subject;
            if other == Beside::PostMark {
                subject.guest = words(args);
            }
            all.push(Case {
                name: format!("{name} beside {}", other.name()),
                rows: &["S-9", "S-10", "S-11"],
                beside: vec![other.clone()],
                subject,
                alone: Some(name.to_owned()),
                ways: case.ways.into_iter().filter(|(n, _)| n != ONE).collect(),
                ..case
            });
        }
    }
    all
}

pub(super) fn rows(form: &Form, kernels: &Kernels) -> (Vec<Target>, Vec<PaperFigure>) {
    let mut cases = cases(form);
    cases.retain(|c| !kernels.lacks(c));
    let mut rows = [
        ("S-2", "Figure 2a in miniature: mergesort beside grep"),
        (
            "S-3",
            "Figure 2b in miniature: misses with grep in one color",
        ),
        (
            "S-9",
            "Figure 10a in miniature: slowdowns beside grep, tar and PostMark",
        ),
        ("S-10", "Figure 10b in miniature: time with SRM-buffer"),
        ("S-11", "Figure 11 in miniature: misses with SRM-buffer"),
    ]
    .map(|(id, title)| Row::new(id, title, TargetKind::H).plain());
    let [two, three, nine, ten, eleven] = &mut rows;
    for case in cases.iter().filter(|c| is_sort(c)) {
        for way in [STOCK, ONE] {
            let name = format!("{}: {way}", case.name);
            judge(two, &name, &kernels.slowdown(case, way), Kind::Percent);
            let misses = kernels.misses(case, way, true);
            judge(three, &name, &misses, Kind::Misses);
        }
        let name = format!("{}: fewer with one color", case.name);
        let saved = fewer(kernels, case, [STOCK, ONE]);
        judge(three, &name, &saved, Kind::Percent);
    }
    two.note("the paper: 114 % at 1.5 MiB, 30 % with one color; it rises with the size");
    three.note("the paper: 78 % fewer");
    for case in cases.iter().filter(|c| is_pair(c)) {
        pair(kernels, case, [&mut *nine, &mut *ten, &mut *eleven]);
    }
    nine.note("the paper: 64 % and 28 % over twelve pairs");
    ten.note(
        "the paper: 16 to 29 % less; file programs unchanged; here by the time of an instruction",
    );
    eleven.note("the paper: 34 to 85 % fewer");
    let figure = slowdowns(kernels, &cases);
    (rows.map(Row::finish).to_vec(), figure.into_iter().collect())
}

/// What S-9, S-10 and S-11 have of a pair.
fn pair(kernels: &Kernels, case: &Case, [nine, ten, eleven]: [&mut Row; 3]) {
    let name = &case.name;
    let other = case.other();
    for way in [STOCK, SRM] {
        let what = format!("{name}: {way}");
        judge(nine, &what, &kernels.slowdown(case, way), Kind::Percent);
        let misses = kernels.misses(case, way, true);
        judge(eleven, &what, &misses, Kind::Misses);
        let by_time = kernels.misses_of(case, Pace::Time, way, case.subject.name, true);
        let what = format!("{name}: {way}, modelled by time");
        show(eleven, &what, &by_time, Kind::Misses.unit());
        let others = kernels.misses_of(case, Pace::Instructions, way, &other, true);
        let what = format!("{other} of {name}: {way}");
        show(eleven, &what, &others, Kind::Misses.unit());
        if case.alone.is_none() {
            let alone = kernels.misses(case, way, false);
            let what = format!("{name}: alone, {way}");
            judge(eleven, &what, &alone, Kind::Misses);
        }
    }
    let own = faster(kernels, case, [STOCK, SRM], case.subject.name);
    judge(ten, &format!("{name}: less time"), &own, Kind::Percent);
    let others = faster(kernels, case, [STOCK, SRM], &other);
    let what = format!("{other} of {name}: less time");
    judge(ten, &what, &others, Kind::Percent);
    let saved = fewer(kernels, case, [STOCK, SRM]);
    judge(eleven, &format!("{name}: fewer"), &saved, Kind::Percent);
    let pace = format!("{name}: {other}'s instructions by time for each of its own");
    show(eleven, &pace, &kernels.pace(case, STOCK), "");
}

fn slowdowns(kernels: &Kernels, cases: &[Case]) -> Option<PaperFigure> {
    let pairs: Vec<&Case> = cases.iter().filter(|c| is_pair(c)).collect();
    let panel = |way: &str| {
        let found: Vec<Pair> = pairs.iter().map(|c| kernels.slowdown(c, way)).collect();
        let x = || (1..).map(f64::from);
        let curves = vec![
            curve("real", false, x().zip(found.iter().map(|p| &p.real))),
            curve("modelled", true, x().zip(found.iter().map(|p| &p.modelled))),
        ];
        (way.to_owned(), curves)
    };
    let drawn = figure(
        [
            "Figure 10a in miniature",
            "Slowdown beside grep, or the program that is named.",
            "program",
            "slowdown [%]",
        ],
        vec![panel(STOCK), panel(SRM)],
    );
    let names: Vec<&str> = pairs.iter().map(|c| c.name.as_str()).collect();
    named(drawn, &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_those_of_the_paper() {
        for (quick, pairs, all) in [(true, 6, 6), (false, 12, 14)] {
            let form = Form {
                quick,
                repetitions: 1,
                seed: 0,
            };
            let cases = cases(&form);
            assert_eq!(cases.iter().filter(|c| is_pair(c)).count(), pairs);
            assert_eq!(cases.len(), all);
            for case in &cases {
                assert_eq!(case.alone.is_some(), case.name.contains(" beside "));
                let owner = case.alone.as_ref();
                let owner = owner.map(|n| cases.iter().find(|c| c.name == *n));
                let ways = owner.map(|c| c.map_or(&[][..], |c| &c.ways));
                let known = |ways: &[(String, Way)]| case.ways.iter().all(|w| ways.contains(w));
                assert!(ways.is_none_or(known), "{}", case.name);
            }
        }
    }
}
