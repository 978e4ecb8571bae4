//! The runs of a paper's experiments, each once, after what decides where it is run.

use std::path::PathBuf;

use rayon::prelude::*;

use super::{
    DataPaper,
    cells::Ran,
    eval::{self, Names, Value},
    grid::Point,
    made::{AllRan, Made, its},
    replays::{Came, Planned, Replayed},
};
use crate::{
    experiment::{Bench, NoStudy},
    replayed::Asked,
};

impl DataPaper {
    /// Runs an experiment unless it was run, after what decides at which values it is.
    pub(super) fn run_once(
        &self,
        bench: &Bench<'_>,
        made: &mut Made,
        runs: &mut AllRan,
        name: &str,
    ) {
        if runs.contains_key(name) {
            return;
        }
        let points = made.grid.experiments.get(name);
        let axes = points.and_then(|points| points.first());
        let axes = axes.into_iter().flat_map(|point| &point.at);
        let mut axes: Vec<String> = axes.map(|(axis, _)| axis.clone()).collect();
        let after = made.grid.after.get(name).cloned().unwrap_or_default();
        let is_later = !after.is_empty();
        let mut why = None;
        if bench.written.is_none() {
            axes.extend(after);
            for axis in axes {
                why = self.narrow(bench, made, runs, &axis).err().or(why);
            }
            if is_later && why.is_none() {
                why = self.make_again(made, name).err();
            }
        } else if is_later {
            // All else that may be run is written down.
            let axes = after.join(", ");
            why = Some(format!("follows from what outcomes say of {axes}"));
        }
        let ran = match why {
            None => self.run(bench, made, name),
            Some(why) => {
                let points = made.grid.experiments.get(name);
                let not_run = |_: &Point| Err(NoStudy::NotRun(why.clone()));
                points.into_iter().flatten().map(not_run).collect()
            }
        };
        runs.insert(name.to_owned(), ran);
    }

    /// Gives an axis whose values outcomes choose those that they choose.
    ///
    /// # Errors
    /// Why nobody knows which.
    fn narrow(
        &self,
        bench: &Bench<'_>,
        made: &mut Made,
        runs: &mut AllRan,
        axis: &str,
    ) -> Result<(), String> {
        let after = made.grid.narrowed.get(axis).map(|axis| axis.after.clone());
        let Some(after) = after.filter(|_| !made.grid.settled.contains(axis)) else {
            return Ok(());
        };
        let values = self.values_after(bench, made, runs, (axis, &after));
        let values = values.inspect_err(|why| made.grid.columns_are_unknown(axis, why))?;
        made.grid.axes.insert(axis.to_owned(), values);
        made.grid.settled.insert(axis.to_owned());
        Ok(())
    }

    /// The values that outcomes choose, once what the axis comes after was run.
    fn values_after(
        &self,
        bench: &Bench<'_>,
        made: &mut Made,
        runs: &mut AllRan,
        (axis, after): (&str, &[String]),
    ) -> Result<Vec<Value>, String> {
        for name in after {
            if made.grid.narrowed.contains_key(name) {
                self.narrow(bench, made, runs, name)?;
            } else {
                self.run_once(bench, made, runs, name);
            }
        }
        let chosen = |names: &Names<'_>| {
            let axis = made.grid.narrowed.get(axis).map(|axis| axis.chosen(names));
            let chosen = axis.unwrap_or_else(|| Ok(Vec::new()));
            chosen.map_err(|fault| fault.says().to_owned())
        };
        let needs = needs(made, axis);
        self.over(made, &needs, &eval::Lets::new(), Some(runs), chosen)
    }

    /// The runs of an experiment, in the order of its points.
    fn run(&self, bench: &Bench<'_>, made: &Made, experiment: &str) -> Vec<Ran> {
        let points = made.grid.experiments.get(experiment);
        let points = points.map_or(&[][..], Vec::as_slice);
        let not_recorded = |why: &str| {
            let by = self.rows.inputs_by.as_ref();
            let by = by.map_or_else(String::new, |by| format!(" ({by} makes what they need)"));
            NoStudy::NotRun(format!("not recorded{by}: {why}"))
        };
        let planned = its(&made.planned, made, experiment).all();
        let run = |(point, planned): (&Point, &Option<Planned>)| {
            let name = &*point.name;
            if !made.grid.is_chosen(point) {
                let why = format!("{name}: it is not among those that outcomes choose");
                return Some(Err(NoStudy::NotRun(why)));
            }
            match (&point.text, planned) {
                (Err(_), _) | (_, None) => Some(Err(not_recorded(&made.lacks()))),
                (Ok(_), Some(Planned::Study(scenario))) => {
                    // Files are written down whether or not their recordings are there.
                    let lacks = self.not_there(&scenario.inputs());
                    if let Some(why) = lacks.filter(|_| bench.written.is_none()) {
                        return Some(Err(NoStudy::NotRun(why)));
                    }
                    Some(study(bench, point, planned.as_ref()))
                }
                (Ok(_), Some(Planned::Replay(_))) => None,
            }
        };
        let all: Vec<_> = points.iter().zip(planned).collect();
        // Guests are booted one after the other.
        let mut ran: Vec<Option<Ran>> =
            if bench.written.is_some() || points.iter().any(Point::in_guest) {
                all.into_iter().map(run).collect()
            } else {
                all.into_par_iter().with_max_len(1).map(run).collect()
            };
        self.replays(bench, experiment, (points, planned), &mut ran);
        ran.into_iter().flatten().collect()
    }

    /// Runs the points that are replayed, all side by side.
    fn replays(
        &self,
        bench: &Bench<'_>,
        experiment: &str,
        (points, planned): (&[Point], &[Option<Planned>]),
        ran: &mut [Option<Ran>],
    ) {
        let mut asked = Vec::new();
        let mut policies = Vec::new();
        let mut places = Vec::new();
        for (i, (point, planned)) in points.iter().zip(planned).enumerate() {
            if ran[i].is_some() {
                continue;
            }
            let replayed = planned.as_ref().and_then(Planned::replayed);
            let (Some(replayed), Ok(text)) = (replayed, &point.text) else {
                continue;
            };
            // Files are written down whether or not their traces are there.
            if let Some(why) = self.lacks(replayed).filter(|_| bench.written.is_none()) {
                ran[i] = Some(Err(NoStudy::NotRun(why)));
                continue;
            }
            let one = Asked {
                name: point.name.clone(),
                text: text.clone(),
                request: replayed.request.clone(),
                repetitions: replayed.repetitions,
            };
            if replayed.is_run {
                asked.push(one);
                policies.push(replayed.policies.clone());
                places.push(i);
            } else {
                ran[i] = Some(bench.counted(&one).map(Came::Counts));
            }
        }
        let done = bench.replays(experiment, &asked);
        for ((i, policies), replays) in places.into_iter().zip(policies).zip(done) {
            ran[i] = Some(replays.map(|replays| Came::Replays { policies, replays }));
        }
    }

    /// A file of a replay that is not there.
    fn lacks(&self, replayed: &Replayed) -> Option<String> {
        self.not_there(&replayed.request.files())
    }

    fn not_there(&self, files: &[PathBuf]) -> Option<String> {
        let file = files.iter().find(|file| !file.is_file())?;
        let by = self.rows.inputs_by.as_ref();
        let by = by.map_or_else(String::new, |by| format!("; {by} makes it"));
        Some(format!("{} is not there{by}", file.display()))
    }
}

/// What comes of a point that is a study.
pub(super) fn study(bench: &Bench<'_>, point: &Point, planned: Option<&Planned>) -> Ran {
    let study = planned.and_then(Planned::study);
    let not_read = || NoStudy::NotRun(format!("{}: it could not be read", point.name));
    let study = bench.run(&point.name, study.ok_or_else(not_read)?)?;
    Ok(Came::Study(Box::new(study)))
}

/// Experiments that the formulas of an axis need whose values outcomes choose.
pub(super) fn needs(made: &Made, axis: &str) -> Vec<String> {
    let Some(axis) = made.grid.narrowed.get(axis) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for name in &axis.after {
        let found = if made.grid.narrowed.contains_key(name) {
            needs(made, name)
        } else {
            vec![name.clone()]
        };
        names.extend(found);
    }
    names
}
