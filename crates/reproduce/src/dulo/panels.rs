//! Figures 3 and 4 from our runs.

use piebald_report::{Curve, CurvePoint, Panel, PaperFigure, Sample};

use super::figures::drawn;
use super::inputs::{Input, List};
use super::runs::{CLOCK, DULO, Runs, hits, seconds};

/// Lengths at which the distribution of sequences is drawn, in blocks.
const LENGTHS: [u32; 14] = [1, 2, 4, 8, 16, 24, 32, 40, 64, 96, 120, 160, 200, 256];

const POLICIES: [(&str, &str); 2] = [(CLOCK, "CLOCK"), (DULO, "DULO")];

/// The three figures.
pub(super) fn all(runs: &Runs, list: &List) -> Vec<PaperFigure> {
    let inputs = drawn(list, runs);
    if inputs.is_empty() {
        return Vec::new();
    }
    let panels = |of: &dyn Fn(&Input) -> Vec<Curve>| {
        let panel = |input: &&Input| Panel {
            title: input.name.clone(),
            curves: of(input),
        };
        inputs.iter().map(panel).collect::<Vec<_>>()
    };
    let over_memory = |get: &dyn Fn(&Input, &str, u32) -> Option<Sample>| {
        panels(&|input| over_memory(runs, input, get))
    };
    vec![
        PaperFigure {
            name: "Figures 3 and 4: execution times".to_owned(),
            text: "Simulated time by memory for file pages; bars are 95 % intervals.".to_owned(),
            x: "memory [MB]".to_owned(),
            y: "s".to_owned(),
            panels: over_memory(&|input, policy, mb| runs.sample(&input.name, mb, policy, seconds)),
            ..PaperFigure::default()
        },
        PaperFigure {
            name: "Figures 3 and 4: hit ratios".to_owned(),
            text: "Accessed pages found in memory or on their way.".to_owned(),
            x: "memory [MB]".to_owned(),
            y: "%".to_owned(),
            panels: over_memory(&|input, policy, mb| runs.sample(&input.name, mb, policy, hits)),
            ..PaperFigure::default()
        },
        PaperFigure {
            name: "Figures 3 and 4: lengths of sequences".to_owned(),
            text: "Share of requested blocks in sequences shorter than so many blocks, at the \
                   smallest and the largest of the sizes that the paper names."
                .to_owned(),
            x: "length of the sequence [blocks]".to_owned(),
            y: "%".to_owned(),
            panels: panels(&|input| distributions(runs, input)),
            ..PaperFigure::default()
        },
    ]
}

fn over_memory(
    runs: &Runs,
    input: &Input,
    get: &dyn Fn(&Input, &str, u32) -> Option<Sample>,
) -> Vec<Curve> {
    let curve = |(policy, name): (&str, &str)| {
        let point = |mb: u32| {
            let sample = get(input, policy, mb)?;
            Some(CurvePoint {
                x: mb.into(),
                y: sample.mean,
                ci95: sample.ci95,
            })
        };
        Curve {
            name: name.to_owned(),
            dashed: false,
            points: runs
                .sizes(&input.name, CLOCK)
                .into_iter()
                .filter_map(point)
                .collect(),
        }
    };
    POLICIES.into_iter().map(curve).collect()
}

fn distributions(runs: &Runs, input: &Input) -> Vec<Curve> {
    let mut sizes: Vec<u32> = input
        .at
        .first()
        .into_iter()
        .chain(input.at.last())
        .copied()
        .collect();
    sizes.dedup();
    let mut curves = Vec::new();
    for mb in sizes {
        for (policy, name) in POLICIES {
            let point = |length: u32| {
                let share = |run: &piebald_report::ReplayRun| {
                    Some(100.0 * run.io.as_ref()?.share_shorter_than(length)?)
                };
                let sample = runs.sample(&input.name, mb, policy, share)?;
                Some(CurvePoint {
                    x: length.into(),
                    y: sample.mean,
                    ci95: None,
                })
            };
            let points: Vec<CurvePoint> = LENGTHS.into_iter().filter_map(point).collect();
            if !points.is_empty() {
                curves.push(Curve {
                    name: format!("{name}, {mb} MB"),
                    dashed: policy == CLOCK,
                    points,
                });
            }
        }
    }
    curves
}
