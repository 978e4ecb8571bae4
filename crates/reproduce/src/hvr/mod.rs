//! HVR ("Rethinking Memory Management in Modern Operating System: Horizontal, Vertical or
//! Random?"): H-1 to H-20, and H-B1 to H-B3 beyond it.
//!
//! Programs, mixes and what counts as a match were written down before the first result
//! (`reproduce/hvr/`).
//!
//! Vocabulary: a *program* is an entry of `programs.toml`, recorded or built-in; an *eighth* is
//! an eighth of the last-level cache; a program's *profile* is how it does alone with one to
//! eight of them, and its class by measurement is read off that; a *way* is what a mix is run
//! under; the *gain* of a way is its weighted speedup over another's, less 1.

mod classes;
mod counters;
mod form;
mod mixes;
mod online;
mod programs;
mod rows;
mod ways;

use piebald_hw::presets;
use piebald_report::{Reproduction, TargetKind};

use crate::{
    Hooks, Options, ReproduceError, System,
    data::{DataPaper, Known},
    paper::{Given, Paper, Stage, Whole},
};
use form::Form;
use rows::Runs;

const GRID: &str = include_str!("../../../../reproduce/hvr/grid.toml");
const ROWS: &str = include_str!("../../../../reproduce/hvr/rows.toml");
const PROGRAMS: &str = include_str!("../../../../reproduce/hvr/programs.toml");

/// Ids of the targets, in order.
pub(crate) const TARGETS: [&str; 23] = [
    "H-1", "H-2", "H-3", "H-4", "H-5", "H-6", "H-7", "H-8", "H-9", "H-10", "H-11", "H-12", "H-13",
    "H-14", "H-15", "H-16", "H-17", "H-18", "H-19", "H-20", "H-B1", "H-B2", "H-B3",
];

/// Mixes of the longest list.
pub(crate) const MIXES: u64 = rows::LIST;

type Give = fn(&Runs<'_>) -> Given;

const STAGES: [Stage<Give>; 1] = [(&[("H-B2", online::TITLE, TargetKind::G)], online::told)];

/// The rows that are data.
///
/// # Errors
/// Its files are wrong: a defect.
pub(crate) fn paper() -> Result<DataPaper, ReproduceError> {
    let folder = std::path::Path::new("reproduce/hvr");
    DataPaper::new(("hvr", folder), [GRID, ROWS], Some(PROGRAMS), Known::new())
}

/// Rows that are data, and those that are not yet.
pub(crate) fn reproduce(
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    let data = paper()?;
    let ids = data.ids();
    let wanted = TARGETS.into_iter().filter(|id| options.wants(id));
    let (of_data, others): (Vec<_>, Vec<_>) = wanted.partition(|id| ids.contains(id));
    let part = |ids: &[&str]| Options {
        only: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..options.clone()
    };
    if of_data.is_empty() {
        return in_code(options, hooks);
    }
    let found = data.reproduce(&part(&of_data), hooks)?;
    if others.is_empty() {
        return Ok(found);
    }
    let mut all = in_code(&part(&others), hooks)?;
    all.targets.extend(found.targets);
    let place = |id: &str| TARGETS.iter().position(|target| *target == id);
    all.targets.sort_by_key(|target| place(&target.id));
    all.figures.extend(found.figures);
    all.conditions.extend(found.conditions);
    all.simulated_refs += found.simulated_refs;
    all.host_seconds += found.host_seconds;
    Ok(all)
}

/// The rows that are no data.
fn in_code(options: &Options, hooks: Hooks<'_>) -> Result<Reproduction, ReproduceError> {
    let mut paper = Paper::begin(System::Hvr, options);
    let list = programs::programs().map_err(|e| ReproduceError::Inputs(e.to_string()))?;
    let measured = classes::measured(&list).map_err(ReproduceError::Inputs)?;
    let (classes, paces): (Vec<_>, Vec<_>) = measured.into_iter().unzip();
    let spec = presets::load("i7-860").map_err(|e| ReproduceError::Machine(e.to_string()))?;
    let form = Form::new(options);
    let shares: Vec<f64> = paces.iter().map(|p| form.share(*p)).collect();
    let list = (&list[..], &classes[..], &shares[..]);
    let runs = Runs::new(&spec, list, form, options, hooks);
    paper.run(STAGES, |give| give(&runs));
    Ok(paper.end(Whole {
        budget_refs: form.budget,
        warmup_refs: form.warmup,
        conditions: conditions(&form),
        simulated_refs: runs.refs(),
    }))
}

fn conditions(form: &Form) -> Vec<String> {
    let mut all = vec![
        "i7-860 as it is; Linux: the stock allocator after ageing; the policies: the coloured buddy \
         over bits 14, 15, 16, 21 and 22 (cache-only: 16 to 18), aged alike."
            .to_owned(),
        "Classes are those that were measured alone at eight sizes of the cache; HVR is told them where no row \
         says otherwise."
            .to_owned(),
        format!(
            "Each program is met at a drawn place of its recording; {} references are measured after \
             {} of warm-up, fewer of slow programs in the quick form. Weighted speedup: sum of IPC together over IPC alone under Linux.",
            form.budget, form.warmup
        ),
        format!(
            "{} repetition{}; intervals: 95 %, Student t, of paired differences.",
            form.repetitions,
            if form.repetitions == 1 { "" } else { "s" }
        ),
    ];
    all.extend(
        (form.most).map(|n| format!("Of each list of mixes no more than the first {n} are run.")),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_stage() {
        let paper = paper().and_then(DataPaper::checked);
        let paper = paper.unwrap_or_else(|e| panic!("{e}"));
        crate::paper::tests::every_row_has_one_stage(System::Hvr, STAGES, &paper.ids());
        assert_eq!(paper.title(), System::Hvr.title());
    }

    #[test]
    fn rows_of_both_kinds_are_given_in_their_order() {
        let options = Options {
            inputs: "/nowhere".into(),
            quick: true,
            budget_refs: Some(1000),
            only: ["H-B2", "H-11"].map(str::to_owned).to_vec(),
            ..Options::default()
        };
        let record = |_: &crate::Wanted<'_>, _: &std::path::Path| Err(String::new());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &record,
            store: None,
        };
        let found = reproduce(&options, hooks).unwrap_or_else(|e| panic!("{e}"));
        let ids: Vec<&str> = found.targets.iter().map(|t| t.id.as_str()).collect();
        assert_eq!(ids, ["H-11", "H-B2"]);
        for target in &found.targets {
            let why = target.why.as_deref().unwrap_or_default();
            assert!(why.contains("stand-ins.sh hvr"), "{}: {why}", target.id);
        }
    }
}
