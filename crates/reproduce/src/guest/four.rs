//! S-12 to S-14 in miniature (section 4.3 of the paper): programs that live in memory on four
//! processors with one last level, beside each other and beside one to three that read files.

use piebald_report::{PaperFigure, Target, TargetKind};

use super::{
    Form,
    agree::{Kind, NO_MISSES},
    case::{Beside, Case, Way},
    kernels::{Kernels, Pace, Pair},
    rows::{faster, fewer, judge, show},
    srm::{FILES, PASSES, SRM, STOCK, THRESHOLD, subject},
};
use crate::row::{Found, Row, curve, figure};

/// The programs of figures 12 and 13.
const THREE: [&str; 3] = ["fft", "mm", "lu"];
const MM: &str = "mm";
/// S-14: points by which slowdowns may fall from one number of greps to the next.
const FALL: f64 = 3.0;
const ALL: &[&str] = &["S-12", "S-13", "S-14"];

fn numbers(form: &Form) -> &'static [u32] {
    match form.quick {
        true => &[1, 3],
        false => &[1, 2, 3],
    }
}

fn of_twelve(form: &Form) -> &'static [&'static str] {
    match form.quick {
        true => &[MM],
        false => &THREE,
    }
}

fn of_fourteen(form: &Form) -> &'static [&'static str] {
    match form.quick {
        true => &[MM],
        false => &[MM, "lu"],
    }
}

fn others(form: &Form) -> &'static [&'static str] {
    match form.quick {
        true => &["grep"],
        false => &["grep", "tar"],
    }
}

/// S-12's case of a program, beside the two others and one that reads files.
fn twelve_name(program: &str, reader: &str) -> String {
    format!("{program} among three and {reader}")
}

/// S-14's case of a program, beside a number of greps.
fn fourteen_name(program: &str, greps: u32) -> String {
    format!(
        "{program} and {greps} grep{}",
        if greps == 1 { "" } else { "s" }
    )
}

fn grep(set: u32) -> Beside {
    Beside::Grep {
        set,
        passes: PASSES,
    }
}

fn case(program: &str, name: String, beside: Vec<Beside>) -> Option<Case> {
    let sets = beside.iter().filter(|b| matches!(b, Beside::Grep { .. }));
    Some(Case {
        name,
        rows: ALL,
        preset: "i7-860",
        memory: "2GiB",
        modelled_memory: "8GiB",
        vcpus: 4,
        bits: 12..=18,
        files: FILES,
        sets: sets.count().max(1) as u32,
        subject: subject(program)?,
        beside,
        alone: None,
        timed: true,
        ways: vec![
            (STOCK.to_owned(), Way::Stock),
            (SRM.to_owned(), Way::Srm(THRESHOLD)),
        ],
    })
}

/// Boots alone are those of a program's first case.
pub(super) fn cases(form: &Form) -> Vec<Case> {
    let mut all = Vec::new();
    for program in of_twelve(form) {
        for reader in others(form) {
            let rest = THREE.iter().filter(|p| *p != program);
            let rest = rest.filter_map(|p| subject(p).map(Beside::Memory));
            let read = if *reader == "tar" {
                Beside::Tar
            } else {
                grep(0)
            };
            let beside = rest.chain([read]).collect();
            let mut case = case(program, twelve_name(program, reader), beside);
            if let Some(case) = &mut case {
                let is_thirteen = *program == MM && *reader == "grep";
                case.rows = if is_thirteen {
                    &["S-12", "S-13"]
                } else {
                    &["S-12"]
                };
            }
            all.extend(case);
        }
    }
    for program in of_fourteen(form) {
        for greps in numbers(form) {
            let beside = (0..*greps).map(grep).collect();
            let mut case = case(program, fourteen_name(program, *greps), beside);
            if let Some(case) = &mut case {
                case.rows = &["S-14"];
            }
            all.extend(case);
        }
    }
    share_alone(&mut all);
    all
}

fn share_alone(cases: &mut [Case]) {
    for nth in 1..cases.len() {
        let (before, rest) = cases.split_at_mut(nth);
        let case = &mut rest[0];
        let first = before.iter().find(|c| c.subject == case.subject);
        case.alone = first.map(|c| c.name.clone());
    }
}

pub(super) fn rows(form: &Form, kernels: &Kernels) -> (Vec<Target>, Vec<PaperFigure>) {
    let cases = cases(form);
    let find = |name: &str| cases.iter().find(|c| c.name == name);
    let mut twelve = Row::new(
        "S-12",
        "Figure 12a in miniature: three programs and one that reads files, on four processors",
        TargetKind::H,
    )
    .plain();
    for reader in others(form) {
        let all = of_twelve(form).iter();
        let all = all.filter_map(|p| find(&twelve_name(p, reader)));
        let all: Vec<&Case> = all.collect();
        three_and_one(&mut twelve, kernels, &all);
    }
    twelve.note("the paper: without it FFT has the smallest slowdown and MM the largest; SRM-buffer reduces all");
    let mut thirteen = Row::new(
        "S-13",
        "Figure 12 in miniature: MM in the run with grep",
        TargetKind::H,
    )
    .plain();
    if let Some(case) = find(&twelve_name(MM, "grep")) {
        mm(&mut thirteen, kernels, case);
    }
    thirteen.note("the paper: 90 % fewer misses, slowdown 60 and 2 %, 36 % less time");
    let mut fourteen = Row::new(
        "S-14",
        "Figure 13 in miniature: one program and several greps",
        TargetKind::H,
    )
    .plain();
    let mut panels = Vec::new();
    for program in of_fourteen(form) {
        let all = numbers(form).iter();
        let all = all.filter_map(|n| find(&fourteen_name(program, *n)));
        let all: Vec<&Case> = all.collect();
        panels.push((
            (*program).to_owned(),
            greps(&mut fourteen, kernels, program, (numbers(form), &all)),
        ));
    }
    fourteen.note("the paper, one and three greps: MM 32 and 84 %, LU 24 and 88 %; below 26 % with SRM-buffer");
    let drawn = figure(
        [
            "Figure 13 in miniature",
            "Slowdown beside greps. Dashed: the modelled kernel.",
            "greps",
            "slowdown [%]",
        ],
        panels,
    );
    let rows = [twelve, thirteen, fourteen].map(Row::finish);
    (rows.to_vec(), drawn.into_iter().collect())
}

/// The means of both kernels, real and modelled.
fn kernels_of(pairs: &[Pair]) -> [(&'static str, Result<Vec<f64>, String>); 2] {
    let means = |of: fn(&Pair) -> &Found| {
        let mean = |p: &Pair| of(p).as_ref().map(|s| s.mean).map_err(Clone::clone);
        pairs.iter().map(mean).collect()
    };
    [
        ("real", means(|p| &p.real)),
        ("modelled", means(|p| &p.modelled)),
    ]
}

/// S-12 beside one program that reads files: a case for each program that is the target.
fn three_and_one(row: &mut Row, kernels: &Kernels, cases: &[&Case]) {
    let mut slowdowns = Vec::new();
    for case in cases {
        for way in [STOCK, SRM] {
            let found = kernels.slowdown(case, way);
            judge(row, &format!("{}: {way}", case.name), &found, Kind::Percent);
            if way == STOCK {
                slowdowns.push(found);
            }
        }
        let own = std::iter::once(case.subject.name.to_owned());
        let names: Vec<String> = own.chain(case.beside.iter().map(Beside::name)).collect();
        let mut misses: [Vec<Pair>; 2] = Default::default();
        for (way, all) in [STOCK, SRM].iter().zip(&mut misses) {
            for name in &names {
                let found = kernels.misses_of(case, Pace::Instructions, way, name, true);
                let what = format!("{name} in {}: misses, {way}", case.name);
                show(row, &what, &found, Kind::Misses.unit());
                all.push(found);
            }
        }
        // Of all three in one run, or of each in its own.
        let count = if cases.len() == 1 { THREE.len() } else { 1 };
        let [stock, srm] = misses.map(|all| kernels_of(&all[..count.min(all.len())]));
        for ((kernel, stock), (_, srm)) in stock.into_iter().zip(srm) {
            let less = stock.and_then(|a| Ok(a.iter().zip(&srm?).all(|(a, b)| is_less(*a, *b))));
            let text = format!(
                "{kernel}, {}: {} with SRM-buffer",
                case.name,
                match count {
                    1 => "it misses less",
                    _ => "each of the three misses less",
                }
            );
            row.states(text, less);
        }
    }
    if let [_, _, ..] = cases {
        let [(_, real), (_, modelled)] = kernels_of(&slowdowns);
        let alike = real.and_then(|a| Ok(order(&a) == order(&modelled?)));
        let reader = cases[0]
            .beside
            .last()
            .map_or_else(String::new, Beside::name);
        row.states(
            format!("{reader}: both kernels order the slowdowns alike"),
            alike,
        );
    }
}

/// Fewer misses, or none to speak of before.
fn is_less(before: f64, after: f64) -> bool {
    after < before || before < NO_MISSES
}

/// Positions from the smallest value to the largest.
fn order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    order
}

/// S-13.
fn mm(row: &mut Row, kernels: &Kernels, case: &Case) {
    for way in [STOCK, SRM] {
        let misses = kernels.misses(case, way, true);
        judge(row, &format!("misses, {way}"), &misses, Kind::Misses);
        let by_time = kernels.misses_of(case, Pace::Time, way, case.subject.name, true);
        let what = format!("misses, {way}, modelled by time");
        show(row, &what, &by_time, Kind::Misses.unit());
        let alone = kernels.misses(case, way, false);
        judge(row, &format!("misses alone, {way}"), &alone, Kind::Misses);
        let slowdown = kernels.slowdown(case, way);
        judge(row, &format!("slowdown, {way}"), &slowdown, Kind::Percent);
    }
    let saved = fewer(kernels, case, [STOCK, SRM]);
    judge(row, "fewer misses", &saved, Kind::Percent);
    let time = faster(kernels, case, [STOCK, SRM], case.subject.name);
    judge(row, "less time", &time, Kind::Percent);
}

/// S-14 of a program; the curves of its slowdowns.
fn greps(
    row: &mut Row,
    kernels: &Kernels,
    program: &str,
    (numbers, cases): (&[u32], &[&Case]),
) -> Vec<piebald_report::Curve> {
    let mut curves = Vec::new();
    for way in [STOCK, SRM] {
        let mut found = Vec::new();
        for case in cases {
            let name = format!("{}: {way}", case.name);
            let slowdown = kernels.slowdown(case, way);
            judge(row, &name, &slowdown, Kind::Percent);
            let misses = kernels.misses(case, way, true);
            judge(row, &format!("{name}, misses"), &misses, Kind::Misses);
            found.push(slowdown);
        }
        if way == STOCK {
            for (kernel, means) in kernels_of(&found) {
                let text = format!(
                    "{kernel}: the slowdowns of {program} do not fall with the number of greps"
                );
                row.states(text, means.map(|m| rises(&m)));
            }
        }
        let x = || numbers.iter().map(|n| f64::from(*n));
        curves.push(curve(way, false, x().zip(found.iter().map(|p| &p.real))));
        curves.push(curve(way, true, x().zip(found.iter().map(|p| &p.modelled))));
    }
    curves
}

fn rises(means: &[f64]) -> bool {
    means.windows(2).all(|w| w[1] >= w[0] - FALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_booted_alone_once() {
        for (quick, count, subjects) in [(true, 3, 1), (false, 12, 3)] {
            let form = Form {
                quick,
                repetitions: 1,
                seed: 0,
            };
            let cases = cases(&form);
            assert_eq!(cases.len(), count);
            assert_eq!(cases.iter().filter(|c| c.alone.is_none()).count(), subjects);
            assert!(cases.iter().all(|c| c.beside.len() < usize::from(c.vcpus)));
        }
    }

    #[test]
    fn statements_allow_for_what_is_nothing() {
        assert!(is_less(500.0, 499.0) && is_less(10.0, 20.0) && !is_less(500.0, 501.0));
        assert!(rises(&[30.0, 27.5, 80.0]) && !rises(&[30.0, 26.0]));
        assert_eq!(order(&[3.0, 1.0, 2.0]), [1, 2, 0]);
    }
}
