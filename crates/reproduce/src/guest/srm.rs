//! S-2, S-3 and S-9 to S-11 in miniature (sections 2 and 4.3 of the paper): programs that live
//! in memory beside grep, without the module, with grep in one color, and with SRM-buffer.

use piebald_report::{PaperFigure, Target, TargetKind};

use super::{
    Form,
    agree::Kind,
    case::{Case, GREP, Kernels, Pace, Pair, Subject, Way},
    rows::{judge, show},
};
use crate::row::{Row, change, curve, figure, named, negated};

/// T_l (section 4.1).
const THRESHOLD: u32 = 256;
const STOCK: &str = "stock";
const ONE: &str = "one color";
const SRM: &str = "SRM-buffer";

/// Name in results, program, arguments in the guest, arguments that are recorded.
type Line = (&'static str, [&'static str; 3]);

/// Sizes are those of `reproduce srm` (inputs.toml), but for LU's.
const PROGRAMS: [Line; 6] = [
    ("mergesort 1.5 MiB", ["records", "1572864 8", "1572864 80"]),
    ("mm", ["mm", "25000 250000 16", "25000 250000 200"]),
    ("fft", ["fft", "131072 1", "131072 8"]),
    ("lu", ["lu", "400 1", "400 2"]),
    ("mergesort 1 MiB", ["records", "1048576 12", "1048576 120"]),
    ("mergesort 256 KiB", ["records", "262144 60", "262144 600"]),
];
/// Of these the quick form runs the first ones.
const QUICK: usize = 2;

/// Those of section 4.3, without the sizes of figure 2.
fn is_pair(case: &Case) -> bool {
    !["mergesort 1 MiB", "mergesort 256 KiB"].contains(&case.name.as_str())
}

fn is_sort(case: &Case) -> bool {
    case.name.starts_with("mergesort")
}

pub(super) fn cases(form: &Form) -> Vec<Case> {
    let count = if form.quick { QUICK } else { PROGRAMS.len() };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let case = |(name, [program, guest, recorded]): &Line| {
        let mut case = Case {
            name: (*name).to_owned(),
            preset: "x5355",
            memory: "2GiB",
            bits: 12..=17,
            files: 64,
            passes: 5,
            timed: true,
            subject: Subject {
                name: program,
                guest: words(guest),
                recorded: words(recorded),
                refs: [9_000_000, 16_000_000],
            },
            ways: vec![(STOCK.to_owned(), Way::Stock)],
        };
        if is_sort(&case) {
            let colors = [String::new(), "0".to_owned()];
            case.ways.push((ONE.to_owned(), Way::Colors(colors)));
        }
        if is_pair(&case) {
            case.ways.push((SRM.to_owned(), Way::Srm(THRESHOLD)));
        }
        case
    };
    PROGRAMS[..count].iter().map(case).collect()
}

/// By how much misses beside grep are fewer than without the module, in percent.
fn fewer(kernels: &Kernels, case: &Case, way: &str) -> Pair {
    let before = kernels.misses(case, STOCK, true);
    let after = kernels.misses(case, way, true);
    before.with(&after, |before, after| negated(change(before, after)))
}

/// By how much the time of an instruction of a program beside the other is less, in percent.
fn faster(kernels: &Kernels, case: &Case, name: &str) -> Pair {
    let before = kernels.cycles(case, STOCK, name);
    let after = kernels.cycles(case, SRM, name);
    before.with(&after, |before, after| negated(change(before, after)))
}

pub(super) fn rows(form: &Form, kernels: &Kernels) -> (Vec<Target>, Vec<PaperFigure>) {
    let cases = cases(form);
    let mut rows = [
        ("S-2", "Figure 2a in miniature: mergesort beside grep"),
        (
            "S-3",
            "Figure 2b in miniature: misses with grep in one color",
        ),
        ("S-9", "Figure 10a in miniature: slowdowns beside grep"),
        ("S-10", "Figure 10b in miniature: time with SRM-buffer"),
        ("S-11", "Figure 11 in miniature: misses with SRM-buffer"),
    ]
    .map(|(id, title)| Row::new(id, title, TargetKind::H).plain());
    let [two, three, nine, ten, eleven] = &mut rows;
    for case in cases.iter().filter(|c| is_sort(c)) {
        for way in [STOCK, ONE] {
            let slowdown = kernels.slowdown(case, way);
            judge(
                two,
                &format!("{}: {way}", case.name),
                &slowdown,
                Kind::Percent,
            );
            let misses = kernels.misses(case, way, true);
            judge(
                three,
                &format!("{}: {way}", case.name),
                &misses,
                Kind::Misses,
            );
        }
        let name = format!("{}: fewer with one color", case.name);
        judge(three, &name, &fewer(kernels, case, ONE), Kind::Percent);
    }
    two.note("the paper: 114 % at 1.5 MiB, 30 % with one color; it rises with the size");
    three.note("the paper: 78 % fewer");
    for case in cases.iter().filter(|c| is_pair(c)) {
        let name = &case.name;
        for way in [STOCK, SRM] {
            let slowdown = kernels.slowdown(case, way);
            judge(nine, &format!("{name}: {way}"), &slowdown, Kind::Percent);
            let misses = kernels.misses(case, way, true);
            judge(eleven, &format!("{name}: {way}"), &misses, Kind::Misses);
            let by_time = kernels.misses_of(case, Pace::Time, way, case.subject.name, true);
            let what = format!("{name}: {way}, modelled by time");
            show(eleven, &what, &by_time, Kind::Misses.unit());
            let grep = kernels.misses_of(case, Pace::Instructions, way, GREP, true);
            let what = format!("grep beside {name}: {way}");
            show(eleven, &what, &grep, Kind::Misses.unit());
            let alone = kernels.misses(case, way, false);
            judge(
                eleven,
                &format!("{name}: alone, {way}"),
                &alone,
                Kind::Misses,
            );
        }
        let own = faster(kernels, case, case.subject.name);
        judge(ten, &format!("{name}: less time"), &own, Kind::Percent);
        let grep = faster(kernels, case, GREP);
        judge(
            ten,
            &format!("grep beside {name}: less time"),
            &grep,
            Kind::Percent,
        );
        let saved = fewer(kernels, case, SRM);
        judge(eleven, &format!("{name}: fewer"), &saved, Kind::Percent);
        let pace = format!("{name}: grep's instructions by time for each of its own");
        show(eleven, &pace, &kernels.pace(case, STOCK), "");
    }
    nine.note("the paper: 64 % and 28 % over twelve pairs");
    ten.note("the paper: 16 to 29 % less; grep unchanged; here by the time of an instruction");
    eleven.note("the paper: 34 to 85 % fewer");
    let figure = slowdowns(kernels, &cases);
    (rows.map(Row::finish).to_vec(), figure.into_iter().collect())
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
            "Slowdown beside grep.",
            "program",
            "slowdown [%]",
        ],
        vec![panel(STOCK), panel(SRM)],
    );
    let names: Vec<&str> = pairs.iter().map(|c| c.name.as_str()).collect();
    named(drawn, &names)
}
