//! What the paper leaves open: sizes, call sizes, the speed of grep, and prefetchers, each in place
//! of what the rows are judged with. Shown, never judged.

use piebald_report::{PaperFigure, Target, TargetKind};

use super::{
    inputs::{sized, with},
    pairs::{FILE, SHARED, VM, file, pair, srm, vm},
    runs::{Case, Runs, Setting},
    several,
    sources::Source,
};
use crate::{Options, row::Row};

type Done = (Vec<Target>, Vec<PaperFigure>);

/// Programs of the quick form: the one with most open, and those beside it.
const QUICK_VM: &str = "mm";

/// S-O1: pairs of figure 10.
pub(super) fn pairs(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let mut row = Row::new("S-O1", "Open sizes: pairs of figure 10", TargetKind::G);
    let cases = varied(runs)?;
    let settings = [Setting::Vanilla, srm(runs)];
    let all: Vec<Case> = cases
        .iter()
        .flat_map(|(_, c)| settings.map(|s| [c.under(s), c.under(s).alone(0)]))
        .flatten()
        .collect();
    runs.run("figure 10, open sizes", &all);
    for (name, case) in &cases {
        let other = case.under(settings[1]);
        row.show(
            &format!("{name}: slowdown, vanilla"),
            &runs.slowdown(case, 0),
            "%",
        );
        row.show(
            &format!("{name}: slowdown, SRM"),
            &runs.slowdown(&other, 0),
            "%",
        );
    }
    if runs.form().quick {
        row.note("quick: MM with grep, and mergesort with PostMark");
    }
    Ok((vec![row.given()], Vec::new()))
}

/// Pairs with one thing changed in each.
fn varied(runs: &Runs<'_>) -> Result<Vec<(String, Case)>, String> {
    let list = runs.list();
    let on = |name: &str| file(runs, name, "pe1900");
    let vms = runs.form().of(&VM, &[QUICK_VM]);
    let files = runs.form().of(&FILE, &["grep"]);
    let sorts = runs.form().of(&VM, &["mergesort"]);
    let mut cases = Vec::new();
    for v in &vms {
        for f in &files {
            for text in &list.vm(v)?.sensitivity {
                let case = pair(Source::Builtin(text.clone()), &on(f)?, SHARED);
                cases.push((format!("{text} with {f}"), case));
            }
            let mut case = pair(vm(runs, v)?, &on(f)?, SHARED);
            case.unfetched = true;
            cases.push((format!("{v} with {f}, prefetchers off"), case));
        }
        let tree = runs.form().tree(&list.tree);
        for text in &list.file("grep")?.sensitivity {
            let text = with(&sized("scan", &format!("{tree}MiB")), parameter(text));
            let read = Source::Builtin(text.clone());
            cases.push((
                format!("{v} with {text}"),
                pair(vm(runs, v)?, &read, SHARED),
            ));
        }
    }
    for v in &sorts {
        for text in &list.file("postmark")?.sensitivity {
            let read = Source::Builtin(text.clone());
            cases.push((
                format!("{v} with {text}"),
                pair(vm(runs, v)?, &read, SHARED),
            ));
        }
    }
    Ok(cases)
}

/// S-O2: MM on four cores beside grep, figure 12.
pub(super) fn four(runs: &mut Runs<'_>, _: &Options) -> Result<Done, String> {
    let mut row = Row::new("S-O2", "Open sizes: MM of figure 12", TargetKind::G);
    let settings = [Setting::Vanilla, srm(runs)];
    let entry = runs.list().vm("mm")?.clone();
    let mut cases = Vec::new();
    for text in &entry.sensitivity {
        let case = several::beside(runs, Source::Builtin(text.clone()), "grep")?;
        cases.push((text, case));
    }
    let all: Vec<Case> = cases
        .iter()
        .flat_map(|(_, c)| settings.map(|s| [c.under(s), c.under(s).alone(several::MM)]))
        .flatten()
        .collect();
    runs.run("figure 12, open sizes", &all);
    for (text, case) in &cases {
        let other = case.under(settings[1]);
        let plain = runs.slowdown(case, several::MM);
        row.show(&format!("{text}: slowdown, vanilla"), &plain, "%");
        let with_srm = runs.slowdown(&other, several::MM);
        row.show(&format!("{text}: slowdown, SRM"), &with_srm, "%");
        let misses = runs.miss_change(case, &other, several::MM);
        row.show(&format!("{text}: misses, with SRM"), &misses, "%");
    }
    Ok((vec![row.given()], Vec::new()))
}

/// The parameters of a built-in program.
pub(super) fn parameter(text: &str) -> &str {
    text.split_once(':').map_or("", |(_, p)| p)
}
