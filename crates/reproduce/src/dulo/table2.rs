//! D-2: table 2, counted in the traces as they lie there.

use piebald_report::{Target, Verdict};

use super::inputs::{Counts, Input};
use crate::row::exact;
use crate::verdict;

const MB: f64 = 1_048_576.0;

/// What table 2 says of an input, beside ours: name, paper's, ours, unit, and whether it is a
/// share.
fn cells(input: &Input, counts: &Counts) -> Vec<(&'static str, f64, f64, &'static str, bool)> {
    let paper = &input.paper;
    let share = 100.0 * counts.sequential as f64 / counts.accesses.max(1) as f64;
    let all = [
        (
            "accesses",
            paper.accesses_millions,
            counts.accesses as f64 / 1e6,
            "M",
            false,
        ),
        (
            "size of files",
            paper.megabytes,
            counts.bytes as f64 / MB,
            "MB",
            false,
        ),
        ("files", paper.files, counts.files as f64, "", false),
        ("sequential", paper.sequential_percent, share, "%", true),
    ];
    let printed = all.into_iter();
    printed
        .filter_map(|(name, paper, ours, unit, is_share)| {
            Some((name, paper?, ours, unit, is_share))
        })
        .collect()
}

/// Fills the row.
pub(super) fn fill(t: &mut Target, all: &[(&Input, Counts)]) {
    let mut verdicts: Vec<Verdict> = Vec::new();
    for (input, counts) in all {
        for (name, paper, ours, unit, is_share) in cells(input, counts) {
            verdicts.push(verdict::amount(paper, ours, is_share));
            let name = format!("{}: {name}", input.name);
            t.values.push(exact(&name, paper, ours, unit));
        }
    }
    t.verdict = verdict::worst(verdicts);
    t.why = Some(
        "the stand-ins were made to have these properties: the row shows that they have them, \
         not that the policy works"
            .to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use piebald_report::TargetKind;

    use super::super::inputs::List;
    use super::*;

    #[test]
    fn amounts_near_the_papers_match_and_a_share_counts_in_points() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        let input = list.input.iter().find(|i| i.name == "viewperf");
        let input = input.unwrap_or_else(|| panic!("no viewperf"));
        for (accesses, sequential, verdict) in [
            (300_000, 297_000, Verdict::Match),
            (300_000, 285_000, Verdict::Match),
            (500_000, 495_000, Verdict::Near),
            (900_000, 891_000, Verdict::Miss),
        ] {
            let counts = Counts {
                accesses,
                sequential,
                bytes: 495 << 20,
                files: 289,
                ..Counts::default()
            };
            let mut t = super::super::rows::blank("D-2", "", TargetKind::H);
            fill(&mut t, &[(input, counts)]);
            assert_eq!((t.verdict, t.values.len()), (verdict, 4), "{accesses}");
        }
    }
}
