//! D-10: what sequencing costs, by the policy's own counters.

use piebald_report::{Published, ReplayRun, Sample, Target};

use super::inputs::List;
use super::runs::{DULO, Runs, counter};
use crate::row::{sampled, shown};
use crate::verdict;

/// The inputs that it is counted over.
pub(super) const INPUTS: [&str; 3] = ["glimpse", "multi1", "multi2"];

/// Counters of DULO by their names, what they are called here, and the bound of each for a
/// fetched block.
const BOUNDS: [(&str, &str, f64); 2] = [
    ("blocks sequenced", "sequencing operations", 1.0),
    ("merge comparisons", "comparisons of the merge", 1.7),
];

fn fetched(run: &ReplayRun) -> Option<f64> {
    run.io.as_ref().map(|io| io.pages_read as f64)
}

/// A counter for each fetched block over all these runs, repetition by repetition.
fn for_each(cells: &[&[ReplayRun]], name: &str) -> Option<Sample> {
    let n = cells.iter().map(|c| c.len()).min().filter(|n| *n > 0)?;
    let value = |i: usize| {
        let of = |get: &dyn Fn(&ReplayRun) -> Option<f64>| -> Option<f64> {
            cells.iter().map(|c| get(c.get(i)?)).sum()
        };
        Some(of(&|run| counter(run, name))? / of(&fetched)?)
    };
    let values: Option<Vec<f64>> = (0..n).map(value).collect();
    values.map(Sample::new)
}

/// Fills the row from the runs of its inputs.
pub(super) fn fill(t: &mut Target, runs: &Runs, list: &List) {
    let inputs = list
        .input
        .iter()
        .filter(|i| INPUTS.contains(&i.name.as_str()));
    let at = inputs.flat_map(|i| i.at.iter().map(|mb| (i.name.as_str(), *mb)));
    let cells: Vec<(&str, u32, &[ReplayRun])> = at
        .map(|(input, mb)| (input, mb, runs.cell(input, mb, DULO)))
        .filter(|(_, _, cell)| !cell.is_empty())
        .collect();
    let all: Vec<&[ReplayRun]> = cells.iter().map(|c| c.2).collect();
    let mut verdicts = Vec::new();
    for (counter, what, bound) in BOUNDS {
        let Some(sample) = for_each(&all, counter) else {
            continue;
        };
        verdicts.push(verdict::at_most(bound, &sample));
        let paper = Published::Text(format!("at most {bound}"));
        t.values.push(sampled(
            &format!("{what} for each block fetched"),
            paper,
            &sample,
            "",
        ));
        for (input, mb, cell) in &cells {
            let one = for_each(&[cell], counter);
            let name = format!("{input}, {mb} MB: {what}");
            t.values.extend(one.map(|one| shown(&name, &one, "")));
        }
    }
    t.verdict = verdict::worst(verdicts);
}

#[cfg(test)]
mod tests {
    use piebald_report::{ReplayIo, TargetKind, Verdict};

    use super::*;

    fn run(pages_read: u64, sequenced: f64, compared: f64) -> ReplayRun {
        let figure = |name: &str, value| (name.to_owned(), value, String::new());
        ReplayRun {
            io: Some(ReplayIo {
                pages_read,
                ..ReplayIo::default()
            }),
            extra: vec![
                figure("blocks sequenced", sequenced),
                figure("merge comparisons", compared),
            ],
            ..ReplayRun::default()
        }
    }

    #[test]
    fn the_row_is_judged_over_all_its_runs_together() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        for (compared, verdict) in [(150.0, Verdict::Match), (700.0, Verdict::Miss)] {
            let mut runs = Runs::default();
            runs.put("glimpse", 640, DULO, vec![run(900, 800.0, 1100.0); 2]);
            runs.put("multi1", 80, DULO, vec![run(100, 90.0, compared); 2]);
            let mut t = super::super::rows::blank("D-10", "", TargetKind::O);
            fill(&mut t, &runs, &list);
            // 1250 of 1000 and 1800 of 1000: multi1's own share is beyond the bound in both.
            assert_eq!(t.values[0].measured, Some(0.89));
            assert_eq!(t.verdict, verdict);
            assert_eq!(t.values.len(), 6);
        }
    }
}
