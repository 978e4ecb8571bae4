//! What is run for some rows: made before anything is run, and again where outcomes decide.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use toml::Table;

use super::{
    DataPaper, GRID, INPUTS, Known, axes,
    cells::{Its, Ran},
    eval,
    grid::{self, Grid, Point},
    is, making,
    replays::Planned,
};
use crate::{Options, ReproduceError, StandIn};

/// What is run, and which machine's cache levels are counted.
pub(super) struct Made {
    pub(super) grid: Grid,
    /// By experiment, in the order of its points; none where a recording is missing.
    pub(super) planned: BTreeMap<String, Vec<Option<Planned>>>,
    /// Recordings that are missing.
    pub(super) missing: Vec<String>,
    /// The folder of the inputs.
    pub(super) inputs: String,
    /// Nothing of it is run: it is only checked.
    pub(super) is_dry: bool,
    /// What it is made from: tables, options, what formulas know, and where stand-ins are recorded.
    root: Table,
    options: Options,
    known: Known,
    recorded: BTreeMap<String, Result<String, String>>,
}

/// So many recordings that are missing are named.
const NAMED: usize = 3;

impl Made {
    /// Which recordings are missing: the first ones, and how many more.
    pub(super) fn lacks(&self) -> String {
        let mut named = self.missing.clone();
        let more = named.split_off(named.len().min(NAMED)).len();
        if more > 0 {
            named.push(format!("and {more} more"));
        }
        named.join("; ")
    }
}

/// What became of the experiments that were run, by their names.
pub(super) type AllRan = BTreeMap<String, Vec<Ran>>;

/// What there is of an experiment's points.
pub(super) fn its<'r, T>(
    all: &'r BTreeMap<String, Vec<T>>,
    made: &'r Made,
    name: &'r str,
) -> Its<'r, T> {
    let points = made.grid.experiments.get(name);
    Its::new(
        name,
        points.map_or(&[][..], Vec::as_slice),
        all.get(name).map_or(&[][..], Vec::as_slice),
    )
}

impl DataPaper {
    /// The experiments of a form that are wanted, and the scenarios of those whose programs are recorded.
    pub(super) fn make(
        &self,
        (options, is_dry): (&Options, bool),
        wanted: &dyn Fn(&str) -> bool,
        recording: &making::Recordings<'_>,
    ) -> Result<Made, ReproduceError> {
        let in_grid = |says: String| self.error(GRID, &says);
        let root = grid::of_form(&self.grid, options.quick).map_err(in_grid)?;
        let axes = axes::axes(&root, &self.stand_ins, options.mixes).map_err(in_grid)?;
        let mut known = self.known_in(options).map_err(in_grid)?;
        if is_dry {
            known.insert(eval::HAS_ALL.to_owned(), is(true));
        }
        let given = (&known, &self.stand_ins[..], &*self.folder, self.hosts);
        let grid = Grid::new((&root, wanted), axes, options, given, recording);
        let grid = grid.map_err(in_grid)?;
        let inputs = known.get(INPUTS).and_then(|inputs| inputs.text().ok());
        let recorded = self.stand_ins.iter();
        let recorded = recorded.map(|program| (program.name.clone(), recording(program)));
        let mut made = Made {
            grid,
            planned: BTreeMap::new(),
            missing: Vec::new(),
            inputs: inputs.unwrap_or_default(),
            is_dry,
            root,
            options: options.clone(),
            known,
            recorded: recorded.collect(),
        };
        let mut missing = BTreeSet::new();
        for (name, points) in &made.grid.experiments {
            let lacks = points.iter().filter_map(|point| point.text.as_ref().err());
            missing.extend(lacks.flat_map(|why| why.split("; ")).map(str::to_owned));
            made.planned.insert(name.clone(), self.plan(points)?);
        }
        made.missing = missing.into_iter().collect();
        Ok(made)
    }

    /// Makes an experiment again, as its axes have the values and columns that outcomes give.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn make_again(&self, made: &mut Made, name: &str) -> Result<(), String> {
        let recording = |program: &StandIn| {
            let found = made.recorded.get(&program.name).cloned();
            found.unwrap_or_else(|| Err("not recorded".to_owned()))
        };
        let given = (&made.known, &self.stand_ins[..], &*self.folder, self.hosts);
        let of = (&made.root, name);
        made.grid.make(of, &made.options, given, &recording)?;
        let points = made.grid.experiments.get(name);
        let planned = self.plan(points.map_or(&[], Vec::as_slice));
        let planned = planned.map_err(|e| e.to_string())?;
        made.planned.insert(name.to_owned(), planned);
        Ok(())
    }

    /// The scenarios of points.
    fn plan(&self, points: &[Point]) -> Result<Vec<Option<Planned>>, ReproduceError> {
        let path = self.folder.join(GRID);
        let plan = |point: &Point| {
            let text = point.text.as_ref().ok();
            let read = text
                .map(|text| Planned::of((point, self.hosts), text, &path))
                .transpose();
            let place = &point.name;
            read.map_err(|says| self.error(GRID, &format!("experiment.{place}: {says}")))
        };
        // The first of several that are wrong is told, whichever was read first.
        let read: Vec<Result<_, _>> = points.par_iter().map(plan).collect();
        read.into_iter().collect()
    }
}
