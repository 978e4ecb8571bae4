//! SRM-buffer (EuroSys'11): S-1 to S-21; what the paper leaves open, S-O1 and S-O2; and beyond it,
//! S-B1 and S-B2.
//!
//! Programs, machines and what counts as a match were written down before the first result
//! (`reproduce/srm/`). A run has its page cache loaded by the program that reads files, alone;
//! then programs run together, are warmed up and measured. Both systems get the same draws,
//! and rows are judged by the differences.
//!
//! Vocabulary: a *case* is programs on cores of a machine under a system; a *setting* is the
//! system; a *part* is how a program is met, warmed up and measured.

mod beyond;
mod brief;
mod form;
mod inputs;
mod open;
mod pairs;
mod runs;
mod several;
mod shelf;
mod single;
mod sources;

use piebald_report::{Published, Reproduction, Target, TargetKind, Value, Verdict};

use crate::{
    Hooks, Options, ReproduceError, System,
    paper::{Given, Paper, Stage, Whole},
    row::Row,
};
use form::Form;
use inputs::List;
use runs::Runs;

/// Ids of the targets, in order.
pub(crate) const TARGETS: [&str; 25] = [
    "S-1", "S-2", "S-3", "S-4", "S-5", "S-6", "S-7", "S-8", "S-9", "S-10", "S-11", "S-12", "S-13",
    "S-14", "S-15", "S-16", "S-17", "S-18", "S-19", "S-20", "S-21", "S-O1", "S-O2", "S-B1", "S-B2",
];

type Give = fn(&mut Runs<'_>, &Options) -> Given;

/// "Unchanged": the whole interval lies within this of zero, in percent (protocol).
const UNCHANGED: f64 = 3.0;
/// Seed of the directory that programs read.
const TREE_SEED: u64 = 42;

/// The rows that need runs.
const STAGES: [Stage<Give>; 15] = [
    (
        &[
            (
                "S-9",
                "Figure 10a: slowdowns of programs in memory",
                TargetKind::H,
            ),
            ("S-10", "Figure 10b: their execution times", TargetKind::H),
            ("S-11", "Figure 11: their last-level misses", TargetKind::H),
        ],
        pairs::twelve,
    ),
    (
        &[
            ("S-2", "Figure 2a: mergesort beside grep", TargetKind::H),
            ("S-3", "Figure 2b: misses of mergesort", TargetKind::H),
        ],
        pairs::motivation,
    ),
    (
        &[(
            "S-17",
            "Section 4.5: a file that fits the cache",
            TargetKind::H,
        )],
        single::rescan,
    ),
    (
        &[("S-16", "Section 4.5: random reads", TargetKind::H)],
        pairs::random,
    ),
    (
        &[
            (
                "S-12",
                "Figure 12a: three programs beside one",
                TargetKind::S,
            ),
            ("S-13", "Figure 12: MM beside grep", TargetKind::H),
        ],
        several::four,
    ),
    (
        &[(
            "S-14",
            "Figure 13: beside one to three greps",
            TargetKind::H,
        )],
        several::greps,
    ),
    (
        &[("S-20", "Figure 16: length of sequences", TargetKind::H)],
        pairs::thresholds,
    ),
    (
        &[("S-19", "Figure 15: hit ratio by memory", TargetKind::H)],
        single::hits,
    ),
    (
        &[(
            "S-18",
            "Section 4.5: share of the colored zone",
            TargetKind::C,
        )],
        single::share,
    ),
    (
        &[(
            "S-15",
            "Figure 14: files loaded by another program",
            TargetKind::S,
        )],
        pairs::crossed,
    ),
    (
        &[
            ("S-5", "Figure 8a: joins beside scans", TargetKind::H),
            ("S-6", "Figure 8a: with SRM", TargetKind::H),
            ("S-7", "Figure 8b: on four cores", TargetKind::H),
        ],
        single::database,
    ),
    (
        &[("S-O1", "Open sizes: pairs of figure 10", TargetKind::G)],
        open::pairs,
    ),
    (
        &[("S-O2", "Open sizes: MM of figure 12", TargetKind::G)],
        open::four,
    ),
    (
        &[(
            "S-B1",
            "Beyond: a last level that hashes its index",
            TargetKind::G,
        )],
        beyond::hashed,
    ),
    (
        &[(
            "S-B2",
            "Beyond: a victim cache as last level",
            TargetKind::G,
        )],
        beyond::victim,
    ),
];

/// The last, which takes longest.
const SORTS: Stage<Give> = (
    &[("S-21", "Section 4.7: a sort on every core", TargetKind::H)],
    several::sorts,
);

pub(crate) fn reproduce(
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    let mut paper = Paper::begin(System::Srm, options);
    let list = List::read().map_err(ReproduceError::Inputs)?;
    let form = Form::new(options);
    let mut runs = Runs::new(&list, &form, options, hooks);
    let colors = single::colors(&runs).map_err(ReproduceError::Machine)?;
    paper.add([survey(), plans(), colors]);
    paper.run(STAGES.into_iter().chain([SORTS]), |give| {
        give(&mut runs, options)
    });
    Ok(paper.end(Whole {
        budget_refs: form.budget_refs,
        warmup_refs: form.warmup_refs,
        conditions: conditions(&list, &form),
        simulated_refs: runs.refs(),
    }))
}

/// S-1, which the paper found on machines of its own.
fn survey() -> Target {
    let row = Row::new("S-1", "Section 3.1: memory of 24 machines", TargetKind::G);
    let mut row = row.plain().finish();
    row.verdict = Verdict::Given;
    row.values.push(Value {
        name: "share of memory that is the file buffer".to_owned(),
        paper: Published::Number(62.0),
        measured: None,
        ci95: None,
        unit: "%".to_owned(),
    });
    row
}

/// S-8, which the protocol leaves out.
fn plans() -> Target {
    let mut row = Row::new("S-8", "Figure 9: TPC-H", TargetKind::S);
    row.missing(
        "eight queries at scale factor 2 are not made: their plans take minutes of a real \
         processor each, and a recording of a part would show one operator and not the query",
    );
    row.finish()
}

fn conditions(list: &List, form: &Form) -> Vec<String> {
    let megabytes = form.tree(&list.tree);
    let measured = match form.complete_iterations {
        true => "complete iterations, at least two and",
        false => "",
    };
    vec![
        "PE1900: x5355, 16 GiB, programs on cores 0 and 1; T1500: i7-860, 8 GiB, cores 0 to 3; \
         memory of which two fifths are free after ageing."
            .to_owned(),
        format!(
            "Vanilla: Linux 2.6.30's lists, readahead and buddy allocator. SRM: T_l {}, all colors \
             of the last level. WD400BB.",
            list.srm.threshold
        ),
        format!(
            "The program that reads files is run once alone, at no cost, which loads them; trees \
             of {megabytes} MiB. Then all run; {} million references warm up, {measured} {} \
             million are measured.",
            form.warmup_refs as f64 / 1e6,
            form.budget_refs as f64 / 1e6
        ),
        "One color: who loads the file reserves one of the colors, others are taken when it is \
         full; who reads it later reserves none."
            .to_owned(),
        format!(
            "{} repetitions with seeds of their own for memory, places in recordings, phases and \
             numbers. Intervals: 95 %, Student t, of paired differences.",
            form.repetitions
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_stage_or_is_fixed() {
        let stages = STAGES.into_iter().chain([SORTS]);
        let fixed = ["S-1", "S-4", "S-8"];
        crate::paper::tests::every_row_has_one_stage(System::Srm, stages, &fixed);
    }
}
