//! MFC ("A Software Approach to Unifying Multicore Caches"): M-1 to M-17.
//!
//! Programs, the machine and what counts as a match were written down before the first result
//! (`reproduce/mfc/`). A run is one program whose threads draw files that are in memory and
//! read them; both systems get the same draws, and rows are judged by the differences.
//!
//! Vocabulary: a *case* is a program, its files and its threads on a system; a *draw* is a
//! file chosen and read, or two at once; the *gain* is MFC's throughput over that of Linux,
//! less 1.

mod fixed;
mod form;
mod inputs;
mod once;
mod parallel;
mod points;
mod runs;
mod single;

use piebald_report::{Reproduction, TargetKind};

use crate::{
    Hooks, Options, ReproduceError, System,
    paper::{Given, Paper, Stage, Whole},
};
use form::Form;
use inputs::List;
use runs::Runs;

/// Ids of the targets, in order.
pub(crate) const TARGETS: [&str; 17] = [
    "M-1", "M-2", "M-3", "M-4", "M-5", "M-6", "M-7", "M-8", "M-9", "M-10", "M-11", "M-12", "M-13",
    "M-14", "M-15", "M-16", "M-17",
];

type Give = fn(&mut Runs<'_>) -> Given;

/// The rows that need the machine.
const STAGES: [Stage<Give>; 14] = [
    (
        &[("M-16", "Section 2: the machine", TargetKind::C)],
        fixed::aggregates,
    ),
    (
        &[("M-12", "Figure 11: metadata", TargetKind::O)],
        fixed::metadata,
    ),
    (
        &[("M-15", "Section 4.5: break-even", TargetKind::C)],
        single::break_even,
    ),
    (
        &[("M-13", "Section 6.6.1: a read of 256 KB", TargetKind::H)],
        fixed::one_read,
    ),
    (
        &[
            ("M-1", "Figure 3: one thread, 8 MB", TargetKind::H),
            ("M-2", "Figure 3: by working set", TargetKind::S),
        ],
        single::uniform,
    ),
    (
        &[("M-4", "Figure 5: bytes from memory", TargetKind::H)],
        single::from_memory,
    ),
    (
        &[("M-3", "Figure 4: by Zipf's law", TargetKind::S)],
        single::by_zipf,
    ),
    (
        &[("M-17", "Section 6.5.2: cheaper migration", TargetKind::S)],
        single::cheaper,
    ),
    (
        &[("M-7", "Figure 8: two files at once", TargetKind::H)],
        single::two_files,
    ),
    (
        &[("M-14", "Figure 12: no replication", TargetKind::S)],
        parallel::one_copy,
    ),
    (
        &[("M-5", "Figure 6: in parallel", TargetKind::H)],
        parallel::uniform,
    ),
    (
        &[("M-6", "Figure 7: in parallel, by Zipf's law", TargetKind::H)],
        parallel::by_zipf,
    ),
    (
        &[("M-8", "Figure 9: an eighth of the bandwidth", TargetKind::H)],
        parallel::one_controller,
    ),
    (
        &[("M-9", "Section 6.5.1: bandwidth", TargetKind::H)],
        parallel::bandwidth,
    ),
];

pub(crate) fn reproduce(
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    let mut paper = Paper::begin(System::Mfc, options);
    let list = List::read().map_err(ReproduceError::Inputs)?;
    let form = Form::new(options);
    let runs = Runs::new(&list, &form, options, hooks);
    let mut runs = runs.map_err(ReproduceError::Machine)?;
    paper.add([fixed::migration(), fixed::copied()]);
    paper.run(STAGES, |give| give(&mut runs));
    Ok(paper.end(Whole {
        budget_refs: options.budget_refs.unwrap_or(0),
        warmup_refs: options.budget_refs.unwrap_or(0),
        conditions: conditions(&form),
        simulated_refs: runs.refs(),
    }))
}

fn conditions(form: &Form) -> Vec<String> {
    let long = match form.quick {
        true => "at most 64 MiB of all threads each, which goes before the 64 reads of a thread",
        false => "16 to 256 MiB of each thread, and at least 64 reads of it in the measured part",
    };
    vec![
        "opteron4x4 as it is; frames of the stock allocator after ageing; files of 256 KiB, in \
         memory before the run, read by calls of 64 KiB into one buffer; timer ticks of 1 ms; run queues are evened out at ticks."
            .to_owned(),
        "MFC with the paper's values; its decisions are charged the paper's 0.495 us, or 4.101 us \
         with an assignment; migrations 9.2, 10.5 and 11.7 us."
            .to_owned(),
        format!("Warm-up and measured part are four times the files each: {long}."),
        "Throughput: bytes of the read calls of all threads that began between two moments, over \
         that time: when the first thread has drawn the first file of its measured part, and when \
         the first one has made the last of its references."
            .to_owned(),
        format!(
            "{} repetitions with seeds of their own for memory, files, first cores and the phase \
             of ticks. Intervals: 95 %, Student t, of paired differences.",
            form.repetitions
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_stage_or_is_fixed() {
        crate::paper::tests::every_row_has_one_stage(System::Mfc, STAGES, &["M-10", "M-11"]);
    }
}
