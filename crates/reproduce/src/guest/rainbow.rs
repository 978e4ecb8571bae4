//! in miniature (section 6.2 and 6.3 of the thesis): misses over the colors that a
//! program owns, alone and beside a program without colors of its own.

use piebald_report::{PaperFigure, Target, TargetKind};

use super::{
    Form,
    agree::{Kind, NO_MISSES},
    case::{Beside, Case, GREP, Subject, Way},
    kernels::{Kernels, Pace, Pair},
    rows::{judge, show},
};
use crate::row::{Found, Row, curve, figure};

/// Name of the way without colors.
const STOCK: &str = "no colors";
/// a curve that falls may rise by this part from one size to the next.
const RISE: f64 = 0.05;
/// two miss-rate curves overlap if they are this close, in points, over all sizes.
const OVERLAP_POINTS: f64 = 5.0;

/// Colors of the program, by size. Grep shares the others with everybody else: the module lets
/// nobody reserve the last color.
fn sizes(form: &Form) -> &'static [u32] {
    match form.quick {
        true => &[2, 6, 10, 15],
        false => &[1, 2, 4, 6, 8, 10, 12, 14, 15],
    }
}

pub(super) fn cases(form: &Form) -> Vec<Case> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let subjects = [
        // 6 MiB of the 8: two arrays that every pass goes through.
        Subject {
            name: "records",
            guest: words("3145728 4"),
            recorded: words("3145728 40"),
            refs: [9_000_000, 16_000_000],
            query: None,
        },
        // 4 MiB, any word as likely as any other.
        Subject {
            name: "walk",
            guest: words("4194304 10000000"),
            recorded: words("4194304 40000000"),
            refs: [9_000_000, 10_000_000],
            query: None,
        },
    ];
    let ways = |form: &Form| {
        let stock = (STOCK.to_owned(), Way::Stock);
        let split = |k: &u32| (named(*k), Way::Colors([range(0, *k), String::new()]));
        let sizes = sizes(form).iter().map(split);
        std::iter::once(stock).chain(sizes).collect()
    };
    let case = |subject: Subject| Case {
        name: subject.name.to_owned(),
        rows: &["R-2", "R-6"],
        preset: "w3540",
        memory: "1536MiB",
        modelled_memory: "1536MiB",
        vcpus: 2,
        bits: 15..=18,
        files: 96,
        sets: 1,
        beside: vec![Beside::Grep { set: 0, passes: 3 }],
        alone: None,
        timed: false,
        subject,
        ways: ways(form),
    };
    subjects.map(case).to_vec()
}

fn range(from: u32, to: u32) -> String {
    match to - from {
        1 => from.to_string(),
        _ => format!("{from}-{}", to - 1),
    }
}

fn named(colors: u32) -> String {
    match colors {
        1 => "1 color".to_owned(),
        n => format!("{n} colors"),
    }
}

pub(super) fn rows(form: &Form, kernels: &Kernels) -> (Vec<Target>, Vec<PaperFigure>) {
    let cases = cases(form);
    let sizes = sizes(form);
    let mut alone = Row::new(
        "R-2",
        "Figure 10 in miniature: misses over the colors of a program alone",
        TargetKind::H,
    );
    let mut beside = Row::new(
        "R-6",
        "Figure 11 in miniature: the same beside grep, which has no colors of its own",
        TargetKind::H,
    );
    let mut panels = Vec::new();
    for case in &cases {
        let name = case.subject.name;
        let by_size = |together| -> Vec<Pair> {
            let of = |k: &u32| kernels.misses(case, &named(*k), together);
            sizes.iter().map(of).collect()
        };
        let [solo, company] = [by_size(false), by_size(true)];
        let stock = kernels.misses(case, STOCK, false);
        judge(
            &mut alone,
            &format!("{name}, {STOCK}"),
            &stock,
            Kind::Misses,
        );
        let stock = kernels.misses(case, STOCK, true);
        judge(
            &mut beside,
            &format!("{name}, {STOCK}"),
            &stock,
            Kind::Misses,
        );
        for (row, found) in [(&mut alone, &solo), (&mut beside, &company)] {
            for (k, pair) in sizes.iter().zip(found) {
                judge(row, &format!("{name}, {}", named(*k)), pair, Kind::Misses);
            }
        }
        state_falls(&mut alone, name, &solo);
        state_overlap(&mut beside, kernels, case, sizes);
        let grep = kernels.misses_of(case, Pace::Instructions, STOCK, GREP, true);
        let what = format!("grep beside {name}, {STOCK}");
        show(&mut beside, &what, &grep, Kind::Misses.unit());
        panels.push((name.to_owned(), curves(sizes, &solo, &company)));
    }
    let figure = figure(
        [
            "Figures 10 and 11 in miniature",
            "Misses of the last level over the part of it that a program owns. Dashed: the \
             modelled kernel.",
            "colors of 512 KiB",
            "misses per million instructions",
        ],
        panels,
    );
    (
        vec![alone.finish(), beside.finish()],
        figure.into_iter().collect(),
    )
}

fn curves(sizes: &[u32], solo: &[Pair], company: &[Pair]) -> Vec<piebald_report::Curve> {
    let mut all = Vec::new();
    for (name, pairs) in [("alone", solo), ("beside grep", company)] {
        let points = |of: fn(&Pair) -> &Found| {
            let x = sizes.iter().map(|k| f64::from(*k));
            x.zip(pairs.iter().map(of)).collect::<Vec<_>>()
        };
        all.push(curve(name, false, points(|p| &p.real)));
        all.push(curve(name, true, points(|p| &p.modelled)));
    }
    all
}

fn means(pairs: &[Pair], of: fn(&Pair) -> &Found) -> Result<Vec<f64>, String> {
    let mean = |p: &Pair| of(p).as_ref().map(|s| s.mean).map_err(Clone::clone);
    pairs.iter().map(mean).collect()
}

fn state_falls(row: &mut Row, name: &str, pairs: &[Pair]) {
    for (kernel, found) in [
        ("real", means(pairs, |p| &p.real)),
        ("modelled", means(pairs, |p| &p.modelled)),
    ] {
        let text = format!("{kernel}: the misses of {name} do not rise with more colors");
        row.states(text, found.map(|m| falls(&m)));
    }
}

/// Does each value rise by no more than a twentieth, or than nothing to speak of, over the last?
fn falls(means: &[f64]) -> bool {
    let fine = |w: &[f64]| w[1] <= w[0] * (1.0 + RISE) || w[1] <= w[0] + NO_MISSES;
    means.windows(2).all(fine)
}

fn state_overlap(row: &mut Row, kernels: &Kernels, case: &Case, sizes: &[u32]) {
    let rates = |together| -> Vec<Pair> {
        let of = |k: &u32| kernels.miss_rate(case, &named(*k), together);
        sizes.iter().map(of).collect()
    };
    let [solo, company] = [rates(false), rates(true)];
    for (kernel, of) in [
        ("real", (|p| &p.real) as fn(&Pair) -> &Found),
        ("modelled", |p| &p.modelled),
    ] {
        let both = means(&solo, of).and_then(|a| Ok((a, means(&company, of)?)));
        let close = both.map(|(a, b)| {
            let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
            apart.fold(0.0, f64::max) <= OVERLAP_POINTS
        });
        row.states(
            format!(
                "{kernel}: with colors of its own the miss rate of {} beside grep is within \
                 {OVERLAP_POINTS} points of that alone at all sizes",
                case.subject.name
            ),
            close,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_leaves_a_color_for_the_others() {
        for quick in [true, false] {
            let form = Form {
                quick,
                repetitions: 1,
                seed: 0,
            };
            for case in cases(&form) {
                assert_eq!(case.ways.len(), 1 + sizes(&form).len());
                // Four address bits: 512 KiB of the last level for each color.
                let colors = 1 << case.bits.clone().count();
                assert!(sizes(&form).iter().all(|k| *k < colors));
            }
        }
        assert_eq!([range(0, 1), range(1, 16)], ["0", "1-15"]);
        assert_eq!([range(0, 15), range(15, 16)], ["0-14", "15"]);
    }

    #[test]
    fn a_curve_falls_if_it_rises_by_little() {
        assert!(falls(&[5000.0, 5200.0, 100.0, 199.0]));
        assert!(!falls(&[5000.0, 5300.0]));
        assert!(!falls(&[0.0, 101.0]));
    }
}
