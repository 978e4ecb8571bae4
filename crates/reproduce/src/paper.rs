//! A paper while it is rerun: its rows and figures are put together.

use std::{collections::HashMap, time::Instant};

use piebald_report::{PaperFigure, REPRODUCTION_SCHEMA, Reproduction, Target};

use crate::Options;

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
    /// Nothing is run yet; the time begins. The ids are of its rows, in their order.
    pub(crate) fn begin(
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
