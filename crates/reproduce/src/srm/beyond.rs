//! Beyond the paper: SRM-buffer on last levels as they are today, hashed and filled by victims.
//!
//! Two of the paper's machines with one thing changed each, and a machine of today. Where the
//! index is hashed, SRM-buffer is run twice: by the colours of the machine's map, whose masks have the
//! hash in them, and by those that its address bits would give. Shown, never judged: the paper has no
//! numbers for it.

use piebald_report::{PaperFigure, Target, TargetKind};

use super::{
    pairs::{SHARED, file, loaded_by, pair, srm, vm},
    runs::{Case, Runs, Setting},
    sources::Source,
};
use crate::{Options, row::Row};

type Done = (Vec<Target>, Vec<PaperFigure>);

/// S-B1: the PowerEdge, its last level in four hashed slices.
pub(super) fn hashed(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let vms = runs.form().of(&["mergesort", "mm", "fft", "lu"], &["mm"]);
    let read = file(runs, "grep", "pe1900")?;
    let mut cases = Vec::new();
    for v in vms {
        for machine in ["pe1900", "pe1900-hashed"] {
            let case = on(machine, pair(vm(runs, v)?, &read, SHARED));
            cases.push((format!("{v} with grep, {machine}"), case));
        }
    }
    let mut row = Row::new(
        "S-B1",
        "Beyond: a last level that hashes its index",
        TargetKind::G,
    );
    compare(runs, &mut row, &cases);
    Ok((vec![row.given()], Vec::new()))
}

/// S-B2: a last level of 16 ways that victims fill, on the Precision and on a machine of today.
pub(super) fn victim(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let read = file(runs, "grep", "t1500")?;
    let mut cases = Vec::new();
    for machine in ["t1500", "t1500-victim"] {
        let case = on(machine, pair(vm(runs, "mm")?, &read, SHARED));
        cases.push((format!("mm with grep, {machine}"), case));
    }
    let of = |text: &str| Source::Builtin(text.to_owned());
    let (text, read) = (&runs.list().beyond.vm, &runs.list().beyond.file);
    let reader = Source::Reader(Box::new(of(read)));
    let case = on("zen", loaded_by(of(text), &of(read), &reader, SHARED));
    cases.push((format!("{text} with {read}, zen"), case));
    let mut row = Row::new(
        "S-B2",
        "Beyond: a victim cache as last level",
        TargetKind::G,
    );
    compare(runs, &mut row, &cases);
    Ok((vec![row.given()], Vec::new()))
}

fn on(machine: &'static str, case: Case) -> Case {
    Case { machine, ..case }
}

/// Slowdowns and misses of the first program, by what is known of colours.
fn compare(runs: &mut Runs<'_>, row: &mut Row, cases: &[(String, Case)]) {
    let Setting::Srm(threshold) = srm(runs) else {
        return;
    };
    let mut systems: Vec<(usize, &str, Case)> = Vec::new();
    for (nth, (_, case)) in cases.iter().enumerate() {
        systems.push((nth, "vanilla", case.clone()));
        if runs.list().is_hashed(case.machine) {
            let bits = case.under(Setting::Bits(threshold));
            systems.push((nth, "SRM by address bits", bits));
        }
        let map = case.under(Setting::Srm(threshold));
        systems.push((nth, "SRM by the map", map));
    }
    let all: Vec<Case> = systems
        .iter()
        .flat_map(|(_, _, c)| [c.clone(), c.alone(0)])
        .collect();
    runs.run("beyond", &all);
    for (nth, system, case) in &systems {
        let (name, vanilla) = &cases[*nth];
        let slower = runs.slowdown(case, 0);
        row.show(&format!("{name}: slowdown, {system}"), &slower, "%");
        match case.setting {
            Setting::Vanilla => {
                let misses = runs.sample(case, 0, |d| d.misses);
                let name = format!("{name}: misses, {system}");
                row.show(&name, &misses, "per M instructions");
            }
            _ => {
                let misses = runs.miss_change(vanilla, case, 0);
                row.show(&format!("{name}: misses, {system}"), &misses, "% of change");
            }
        }
    }
}
