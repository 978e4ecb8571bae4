//! What papers with experiments in guests have beside others.

use std::fs;

use piebald_experiment::{Document, HostName, Words};

use super::{
    DataPaper, GRID,
    cells::Ran,
    grid::{self, Grid, Point},
    made::{AllRan, Made},
    replays::{Came, Planned},
    run::study,
};
use crate::{Options, ReproduceError, experiment::Bench};

/// The disk that guests' programs write to, below the folder of the inputs.
const SCRATCH: &str = "scratch";

/// What weakens the results of guests.
pub(super) fn weakened(made: &Made, runs: &AllRan) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, ran) in runs {
        let points = made.grid.experiments.get(name).into_iter().flatten();
        let of_guests = points.zip(ran).filter(|(point, _)| point.in_guest());
        for (point, came) in of_guests {
            let Ok(Came::Study(study)) = came else {
                continue;
            };
            let said = study.warnings.iter();
            let said = said.filter(|w| !w.starts_with("one repetition"));
            lines.extend(said.map(|w| format!("Warning, {}: {w}.", point.name)));
        }
    }
    lines
}

impl DataPaper {
    /// Whether an experiment of it is a guest's.
    ///
    /// # Errors
    /// The grid is wrong.
    pub fn has_guests(&self) -> Result<bool, ReproduceError> {
        let guest = HostName::Guest.word();
        let is_guest = |table: &toml::Value| {
            table.get(grid::HOST).and_then(toml::Value::as_str) == Some(guest)
        };
        for quick in [false, true] {
            let root = grid::of_form(&self.grid, quick).map_err(|says| self.error(GRID, &says))?;
            let of_experiments = root.get("experiment").and_then(toml::Value::as_table);
            let mut all = root.get("default").into_iter();
            if all.any(is_guest)
                || of_experiments
                    .into_iter()
                    .flatten()
                    .any(|(_, e)| is_guest(e))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes what is recorded of what guests have: their programs, and the files of experiments.
    ///
    /// # Errors
    /// There is no module for them, or something cannot be made.
    pub(super) fn prepare(&self, grid: &Grid, options: &Options) -> Result<(), ReproduceError> {
        let said = |e: &dyn std::fmt::Display| ReproduceError::Inputs(e.to_string());
        let inputs = &options.inputs;
        let points = || grid.experiments.values().flatten();
        if points().any(Point::in_guest) {
            if options.module.is_none() {
                let says = "has experiments in guests: allowed with --guest, and the kernel module";
                return Err(said(&format!("{}: {says}", self.name)));
            }
            if !self.stand_ins.is_empty() {
                self.hosts.compile(inputs).map_err(|e| said(&e))?;
            }
        }
        for point in points() {
            let Ok(text) = &point.text else { continue };
            let document = Document::new(&self.folder.join(GRID), text.as_str()).on(point.host);
            // What is wrong with it is told where it is read to be run.
            let Ok(experiment) = document.experiment() else {
                continue;
            };
            if let Some(folder) = &point.data {
                let written = self
                    .hosts
                    .write_files(&experiment.file, &inputs.join(folder));
                written.map_err(|e| said(&e))?;
            }
            if point.in_guest() && experiment.guest.scratch.is_some() {
                let scratch = inputs.join(SCRATCH);
                fs::create_dir_all(&scratch)
                    .map_err(|e| said(&format!("{}: {e}", scratch.display())))?;
            }
        }
        Ok(())
    }

    /// Runs the experiments of these names, those of guests in a thread of their own: one of the pool's that waits
    /// for a guest would keep work from the others. Without any of guests, or of those at values that outcomes
    /// choose, nothing is run yet.
    pub(super) fn run_beside_guests<'n>(
        &self,
        bench: &Bench<'_>,
        made: &mut Made,
        runs: &mut AllRan,
        names: impl Iterator<Item = &'n String>,
    ) {
        let is_narrowed = |made: &Made, points: &[Point]| {
            let at = points.iter().flat_map(|point| &point.at);
            at.map(|(axis, _)| axis)
                .any(|axis| made.grid.narrowed.contains_key(axis))
        };
        let of_guests = |made: &Made, name: &str| {
            let decides = made.grid.narrowed.values();
            let decides = decides
                .flat_map(|axis| &axis.after)
                .any(|other| other == name);
            let points = made.grid.experiments.get(name);
            let is_theirs = |points: &Vec<Point>| {
                let is_later = made
                    .grid
                    .after
                    .get(name)
                    .is_some_and(|after| !after.is_empty());
                points.iter().any(Point::in_guest) && !is_narrowed(made, points) && !is_later
            };
            !decides && points.is_some_and(is_theirs)
        };
        let mut guests: Vec<&String> = Vec::new();
        let mut others: Vec<&String> = Vec::new();
        for name in names {
            if !of_guests(made, name) {
                others.push(name);
            } else if !guests.contains(&name) {
                guests.push(name);
            }
        }
        if guests.is_empty() || bench.written.is_some() {
            return;
        }
        let taken = guests.iter().map(|name| {
            let points = made.grid.experiments.remove(*name).unwrap_or_default();
            let planned = made.planned.remove(*name).unwrap_or_default();
            (*name, points, planned)
        });
        let taken: Vec<_> = taken.collect();
        let boot = |(_, points, planned): &(&String, Vec<Point>, Vec<Option<Planned>>)| {
            let all = points.iter().zip(planned);
            all.map(|(point, planned)| study(bench, point, planned.as_ref()))
                .collect::<Vec<Ran>>()
        };
        let booted = std::thread::scope(|scope| {
            let booted = scope.spawn(|| taken.iter().map(boot).collect::<Vec<_>>());
            for name in others {
                self.run_once(bench, made, runs, name);
            }
            booted.join()
        });
        let booted = booted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for ((name, points, planned), ran) in taken.into_iter().zip(booted) {
            made.grid.experiments.insert(name.clone(), points);
            made.planned.insert(name.clone(), planned);
            runs.insert(name.clone(), ran);
        }
    }
}
