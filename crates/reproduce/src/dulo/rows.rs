//! The rows, before any of them is run.

use piebald_report::{Published, Target, TargetKind, Value};

use crate::row;

/// Ids of the targets, in order.
pub(crate) const TARGETS: [&str; 13] = [
    "D-1", "D-2", "D-3", "D-4", "D-5", "D-6", "D-7", "D-8", "D-9", "D-10", "D-11", "D-12", "D-13",
];

/// What each row is, its kind, and the inputs whose figures (sizes with both policies) it
/// needs.
pub(super) const ROWS: [(&str, TargetKind, &[&str]); 13] = [
    ("Table 1: the example of section 2.1", TargetKind::C, &[]),
    ("Table 2: the traces", TargetKind::H, &[]),
    ("Figure 3: viewperf", TargetKind::H, &["viewperf"]),
    ("Figure 3: tpc-h", TargetKind::S, &["tpc-h"]),
    ("Figure 4: multi1 with 80 MB", TargetKind::H, &["multi1"]),
    ("Figure 4: multi1 with 160 MB", TargetKind::H, &["multi1"]),
    (
        "Figure 4: glimpse, multi1 and multi2",
        TargetKind::S,
        &["glimpse", "multi1", "multi2"],
    ),
    ("Table 3: size of the sequencing bank", TargetKind::S, &[]),
    ("Table 4: size of the evicting section", TargetKind::S, &[]),
    ("Section 4.1.3: work for each miss", TargetKind::O, &[]),
    ("Figure 5: LXR", TargetKind::H, &[]),
    (
        "Figure 5: LXR, partitions laid out by hand",
        TargetKind::S,
        &[],
    ),
    (
        "Figure 6: sparse matrix times vector, paged",
        TargetKind::H,
        &[],
    ),
];

/// A target before it is run.
pub(super) fn blank(id: &str, title: &str, kind: TargetKind) -> Target {
    Target {
        stand_in: id != "D-1",
        // `reproduce/dulo/log.md`, 1.
        calibrated: id == "D-10",
        ..row::blank(id, title, kind)
    }
}

/// Whether a number is the paper's, to the last digit.
pub(super) fn is_exact(value: &Value) -> bool {
    matches!((&value.paper, value.measured), (Published::Number(paper), Some(ours)) if *paper == ours)
}
