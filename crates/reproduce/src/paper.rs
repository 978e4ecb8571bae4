//! What all papers have in common: stages give rows and figures, and these are put together.

use std::{collections::HashMap, time::Instant};

use piebald_report::{PaperFigure, REPRODUCTION_SCHEMA, Reproduction, Target, TargetKind};

use crate::{Options, System, row::Row};

/// A row: id, title, kind.
pub(crate) type Named = (&'static str, &'static str, TargetKind);
/// What is found of rows that share runs, and the figures.
pub(crate) type Given = Result<(Vec<Target>, Vec<PaperFigure>), String>;
/// Rows that share runs, and what gives them.
pub(crate) type Stage<F> = (&'static [Named], F);

/// A paper while it is rerun.
pub(crate) struct Paper<'a> {
    name: &'a str,
    title: &'a str,
    /// Of all rows, in order.
    ids: Vec<&'a str>,
    options: &'a Options,
    began: Instant,
    targets: HashMap<String, Target>,
    figures: Vec<PaperFigure>,
}

/// What is said of all rows together.
pub(crate) struct Whole {
    /// Measured references of a program and run, and those before; 0 where no such number holds for
    /// all runs.
    pub(crate) budget_refs: u64,
    pub(crate) warmup_refs: u64,
    /// Sentences on how all rows were run.
    pub(crate) conditions: Vec<String>,
    /// References that were simulated.
    pub(crate) simulated_refs: u64,
}

impl<'a> Paper<'a> {
    /// Nothing of a system's is run yet; the time begins.
    pub(crate) fn begin(system: System, options: &'a Options) -> Self {
        let ids = system.targets().to_vec();
        Self::named(system.name(), system.title(), ids, options)
    }

    /// The same of any paper, with the ids of its rows in their order.
    pub(crate) fn named(
        name: &'a str,
        title: &'a str,
        ids: Vec<&'a str>,
        options: &'a Options,
    ) -> Self {
        Self {
            name,
            title,
            ids,
            options,
            began: Instant::now(),
            targets: HashMap::new(),
            figures: Vec::new(),
        }
    }

    /// Takes rows, in the place of those with the same id.
    pub(crate) fn add(&mut self, rows: impl IntoIterator<Item = Target>) {
        let by_id = rows.into_iter().map(|row| (row.id.clone(), row));
        self.targets.extend(by_id);
    }

    /// Takes figures, to be shown in this order.
    pub(crate) fn draw(&mut self, figures: impl IntoIterator<Item = PaperFigure>) {
        self.figures.extend(figures);
    }

    /// Runs the stages with a row that is wanted. The rows of one that fails are not run, with the
    /// reason.
    pub(crate) fn run<F>(
        &mut self,
        stages: impl IntoIterator<Item = Stage<F>>,
        mut give: impl FnMut(F) -> Given,
    ) {
        for (rows, stage) in stages {
            if !rows.iter().any(|(id, _, _)| self.options.wants(id)) {
                continue;
            }
            match give(stage) {
                Ok((rows, figures)) => {
                    self.add(rows);
                    self.draw(figures);
                }
                Err(why) => self.add(rows.iter().map(|named| not_run(*named, &why))),
            }
        }
    }

    /// What came of it: the rows that were wanted, in order.
    pub(crate) fn end(mut self, whole: Whole) -> Reproduction {
        let wanted = self.ids.iter().filter(|id| self.options.wants(id));
        let targets = wanted.filter_map(|id| self.targets.remove(*id)).collect();
        Reproduction {
            schema: REPRODUCTION_SCHEMA,
            system: self.name.to_owned(),
            title: self.title.to_owned(),
            quick: self.options.quick,
            seed: self.options.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            budget_refs: whole.budget_refs,
            warmup_refs: whole.warmup_refs,
            conditions: whole.conditions,
            targets,
            figures: self.figures,
            simulated_refs: whole.simulated_refs,
            host_seconds: self.began.elapsed().as_secs_f64(),
            stored: 0,
            command: None,
            columns: None,
        }
    }
}

fn not_run((id, title, kind): Named, why: &str) -> Target {
    let mut row = Row::new(id, title, kind);
    row.missing(why);
    row.finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Each target of a system is in one stage, or given beside them.
    pub(crate) fn every_row_has_one_stage<F>(
        system: System,
        stages: impl IntoIterator<Item = Stage<F>>,
        beside: &[&str],
    ) {
        let staged = stages.into_iter().flat_map(|(rows, _)| rows);
        let mut given: Vec<&str> = staged
            .map(|(id, _, _)| *id)
            .chain(beside.iter().copied())
            .collect();
        let mut targets = system.targets().to_vec();
        given.sort_unstable();
        targets.sort_unstable();
        assert_eq!(given, targets);
    }

    #[test]
    fn a_stage_that_fails_says_why_in_its_rows_and_the_others_stay() {
        const STAGES: [Stage<bool>; 3] = [
            (
                &[
                    ("R-2", "second", TargetKind::S),
                    ("R-3", "third", TargetKind::H),
                ],
                false,
            ),
            (&[("R-1", "first", TargetKind::C)], true),
            (&[("R-4", "not wanted", TargetKind::C)], true),
        ];
        let options = Options {
            only: ["R-1", "R-2", "R-3"].map(str::to_owned).to_vec(),
            ..Options::default()
        };
        let mut paper = Paper::begin(System::Rainbow, &options);
        let mut runs = 0;
        paper.run(STAGES, |good| {
            runs += 1;
            let first = Row::new("R-1", "first", TargetKind::C).finish();
            good.then(|| (vec![first], Vec::new()))
                .ok_or_else(|| "no inputs".to_owned())
        });
        assert_eq!(runs, 2);
        let done = paper.end(Whole {
            budget_refs: 1,
            warmup_refs: 2,
            conditions: Vec::new(),
            simulated_refs: 3,
        });
        let ids: Vec<&str> = done.targets.iter().map(|t| t.id.as_str()).collect();
        assert_eq!(ids, ["R-1", "R-2", "R-3"]);
        for row in &done.targets[1..] {
            assert_eq!(row.why.as_deref(), Some("no inputs"), "{}", row.id);
        }
    }
}
