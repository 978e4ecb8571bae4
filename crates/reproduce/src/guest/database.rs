//! S-5 and S-6 in miniature (section 4.2 of the paper): a hash join beside a sequential scan, each
//! a PostgreSQL backend of its own, without the module and with SRM-buffer.

use piebald_report::{Target, TargetKind};

use super::{
    Form,
    agree::Kind,
    case::{Beside, Case, DATABASE, Subject, Way},
    kernels::{Kernels, Pace},
    rows::{faster, fewer, judge, show},
    srm::{SRM, STOCK, THRESHOLD},
};
use crate::row::Row;

/// Joins by their dimensions, with references of the recordings that warm up and that are
/// measured: two queries and one, one and one. The first is the quick form's.
const JOINS: [(&str, &str, [u64; 2]); 2] = [
    (
        "join4",
        "SELECT sum(f.measure + d.payload) FROM fact f JOIN dim4 d ON f.k4 = d.id WHERE d.sel < 10",
        [97_000_000, 97_000_000],
    ),
    (
        "join1",
        "SELECT sum(f.measure + d.payload) FROM fact f JOIN dim1 d ON f.k1 = d.id WHERE d.sel < 10",
        [137_000_000, 68_000_000],
    ),
];
const SCAN: &str = "scan";
const SCAN_QUERY: &str =
    "SELECT g, count(*), sum(measure) FROM fact WHERE measure % 2 = 0 GROUP BY g";
/// Queries before those that are measured, and these.
const ASKED: [&str; 2] = ["2", "1"];

fn backend(name: &'static str, query: &'static str, refs: [u64; 2]) -> Subject {
    Subject {
        name,
        guest: ASKED.map(str::to_owned).to_vec(),
        recorded: Vec::new(),
        refs,
        query: Some(query),
    }
}

pub(super) fn cases(form: &Form) -> Vec<Case> {
    let count = if form.quick { 1 } else { JOINS.len() };
    let case = |(name, query, refs): &(&'static str, &'static str, [u64; 2])| Case {
        name: (*name).to_owned(),
        rows: &["S-5", "S-6"],
        preset: "x5355",
        memory: "2GiB",
        modelled_memory: "2GiB",
        vcpus: 2,
        bits: 12..=17,
        files: 0,
        sets: 1,
        subject: backend(name, query, *refs),
        beside: vec![Beside::Memory(backend(SCAN, SCAN_QUERY, *refs))],
        alone: None,
        timed: true,
        ways: vec![
            (STOCK.to_owned(), Way::Stock),
            (SRM.to_owned(), Way::Srm(THRESHOLD)),
        ],
    };
    JOINS[..count].iter().map(case).collect()
}

pub(super) fn rows(form: &Form, kernels: &Kernels) -> Vec<Target> {
    let mut rows = [
        ("S-5", "Figure 8a in miniature: a hash join beside a scan"),
        ("S-6", "Figure 8a in miniature: with SRM-buffer"),
    ]
    .map(|(id, title)| Row::new(id, title, TargetKind::H).plain());
    let [five, six] = &mut rows;
    for case in &cases(form) {
        if kernels.lacks(case) {
            for row in [&mut *five, &mut *six] {
                row.missing(&format!("without {DATABASE}"));
            }
            continue;
        }
        way(five, kernels, case, STOCK);
        way(six, kernels, case, SRM);
        saved(six, kernels, case);
    }
    five.note("the paper, for the dimensions of 24 and 98 MiB: slowdown 17 and 58 %");
    six.note("the paper: up to 33 points less, 17 % less time on average");
    rows.map(Row::finish).to_vec()
}

/// What came out of a join one way.
fn way(row: &mut Row, kernels: &Kernels, case: &Case, way: &str) {
    let name = &case.name;
    let slowdown = kernels.slowdown(case, way);
    judge(row, &format!("{name}: slowdown"), &slowdown, Kind::Percent);
    let misses = kernels.misses(case, way, true);
    judge(row, &format!("{name}: misses"), &misses, Kind::Misses);
    let by_time = kernels.misses_of(case, Pace::Time, way, case.subject.name, true);
    let what = format!("{name}: misses, modelled by time");
    show(row, &what, &by_time, Kind::Misses.unit());
    let alone = kernels.misses(case, way, false);
    judge(row, &format!("{name}: misses alone"), &alone, Kind::Misses);
    let others = kernels.misses_of(case, Pace::Instructions, way, SCAN, true);
    let what = format!("{SCAN} of {name}: misses");
    show(row, &what, &others, Kind::Misses.unit());
    let what = format!("{name}: {SCAN}'s instructions by time for each of its own");
    show(row, &what, &kernels.pace(case, way), "");
}

/// What SRM-buffer takes away.
fn saved(row: &mut Row, kernels: &Kernels, case: &Case) {
    let name = &case.name;
    let [before, after] = [STOCK, SRM].map(|way| kernels.slowdown(case, way));
    let cut = before.with(&after, |a, b| Ok(a.difference(b)));
    let what = format!("{name}: slowdown less by [points]");
    judge(row, &what, &cut, Kind::Percent);
    let misses = fewer(kernels, case, [STOCK, SRM]);
    judge(
        row,
        &format!("{name}: fewer misses"),
        &misses,
        Kind::Percent,
    );
    let own = faster(kernels, case, [STOCK, SRM], case.subject.name);
    judge(row, &format!("{name}: less time"), &own, Kind::Percent);
    let others = faster(kernels, case, [STOCK, SRM], SCAN);
    let what = format!("{SCAN} of {name}: less time");
    judge(row, &what, &others, Kind::Percent);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_backend_has_tables_of_its_own() {
        for (quick, count) in [(true, 1), (false, 2)] {
            let form = Form {
                quick,
                repetitions: 1,
                seed: 0,
            };
            let cases = cases(&form);
            assert_eq!(cases.len(), count);
            for case in &cases {
                let real = case.real(&form, Path::new("/m.ko"), Path::new("/inputs"));
                let real = real.unwrap_or_else(|e| panic!("{e}"));
                let disks: Vec<_> = real
                    .experiment
                    .tree
                    .iter()
                    .filter_map(|t| t.on_disk())
                    .collect();
                assert_eq!(disks, [case.name.as_str(), SCAN]);
                assert!(
                    real.experiment
                        .tree
                        .iter()
                        .take(2)
                        .all(|t| t.from == Path::new("/inputs/star"))
                );
                assert!(real.experiment.program.iter().all(|p| p.needs.len() == 1));
                assert_eq!(case.recorded().len(), 2);
            }
        }
    }
}
