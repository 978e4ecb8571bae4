//! One program with and without colouring, in turn, and what the difference is worth.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use piebald_policy::{color_map::ColorMap, contract::Mode};
use piebald_report::{LEAST_EFFECT, Sample, claims};

use crate::{
    Module, ModuleError, ask::Wanted, counters::EventCounters, ground::Ground, sys,
    transient::Transient,
};

/// What is compared.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The program and its arguments; at least one word.
    pub command: Vec<OsString>,
    /// Colours that the program owns while colouring is on; `None`: it has those that nobody owns.
    pub wanted: Option<(Wanted, Mode)>,
    /// Pairs of runs; at least 3.
    pub pairs: u32,
    /// Whether the page cache is emptied before each run, so that files lie in frames of the
    /// mode that is measured.
    pub cold: bool,
    /// Where `proc` is.
    pub root: PathBuf,
}

/// One quantity with and without.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for a count.
    pub unit: &'static str,
    /// While colouring is off, one value per pair.
    pub off: Sample,
    /// While it is on.
    pub on: Sample,
}

/// What a difference is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing changes, or the whole interval of the change lies within 1 %, or it is told from chance and 1 % or less.
    NoEffect,
    /// There may be a change, and there may be none: the pairs differ too much, or are too few, to tell among all
    /// quantities.
    Untold,
    /// Less with colouring.
    Less,
    /// More with colouring.
    More,
    /// There is no interval: a value is missing.
    Unknown,
}

impl Quantity {
    /// On minus off, pair by pair.
    pub fn difference(&self) -> Sample {
        self.on.difference(&self.off)
    }

    /// The same as a part of off, pair by pair.
    pub fn change(&self) -> Sample {
        self.off.slowdown(&self.on).unwrap_or_default()
    }
}

/// Is there no change in any pair, or none to speak of by the whole interval?
fn is_none(difference: &Sample, change: &Sample) -> bool {
    let small = |(low, high): (f64, f64)| low >= -LEAST_EFFECT && high <= LEAST_EFFECT;
    difference.values.iter().all(|d| *d == 0.0) || change.interval().is_some_and(small)
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Pairs that were run.
    pub pairs: u32,
    /// Time first, then faults, then counters.
    pub quantities: Vec<Quantity>,
    /// Counters that there are not here.
    pub missing: Vec<&'static str>,
    /// The processor's counters are those of the machine model.
    pub modelled: bool,
    /// Of the runs that are off, those that began with free memory of some colours more than of others, or of unknown ones: there was not enough to
    /// choose from.
    pub uneven: u32,
}

impl Comparison {
    /// What each difference is worth, all of them together.
    pub fn findings(&self) -> Vec<Finding> {
        let differences: Vec<(Sample, Sample)> = self
            .quantities
            .iter()
            .map(|q| (q.difference(), q.change()))
            .collect();
        // Of any size: whether it is told from chance.
        let changes: Vec<(&Sample, f64)> = differences
            .iter()
            .map(|(difference, _)| (difference, f64::INFINITY))
            .collect();
        let finding = |(sure, (difference, change)): (Option<bool>, &(Sample, Sample))| match sure {
            None => Finding::Unknown,
            Some(true) if change.mean.abs() <= LEAST_EFFECT => Finding::NoEffect,
            Some(true) if difference.mean < 0.0 => Finding::Less,
            Some(true) => Finding::More,
            Some(false) if is_none(difference, change) => Finding::NoEffect,
            Some(false) => Finding::Untold,
        };
        let sure = claims(&changes).into_iter();
        sure.zip(&differences).map(finding).collect()
    }
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The module refused, or is not there.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// Too few pairs for an interval.
    #[error("{0} pairs; allowed: 3 or more")]
    Pairs(u32),
    /// The program cannot be run.
    #[error("{}: {source}", program.display())]
    Program {
        /// The program.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The program failed, so its times mean nothing.
    #[error("with coloring {mode} the program ended with {status}; its times mean nothing")]
    Failed {
        /// `on` or `off`.
        mode: &'static str,
        /// How it ended.
        status: ExitStatus,
    },
    /// The page cache cannot be emptied.
    #[error("{}: {source}", path.display())]
    Cold {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody interrupted.
    #[error("interrupted; coloring is as it was")]
    Stopped,
}

/// Puts the switch back as it was, however the comparison ends.
struct Restore<'a> {
    module: &'a Module,
    on: bool,
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        // Nobody is left to tell of an error; the module may be gone.
        let _ = self.module.switch(self.on);
    }
}

/// One run's numbers: those of [`NAMES`], then the counters'.
type Run = Vec<f64>;

/// Pairs that an interval needs.
const LEAST_PAIRS: u32 = 3;
/// What every run has, with its unit.
const NAMES: [(&str, &str); 4] = [
    ("wall time", "s"),
    ("CPU time", "s"),
    ("of it in the kernel", "s"),
    ("page faults from disk", ""),
];

/// Runs the program in pairs, once off and once on, the order changing from pair to pair; a first
/// run is not counted. The program's output is thrown away. `progress` is told of each pair.
///
/// Colouring is switched for the whole computer meanwhile, and as it was afterwards.
///
/// # Errors
/// The module refuses, or the program cannot be run or fails.
pub fn compare(
    module: &Module,
    trial: &Trial,
    stop: &AtomicBool,
    progress: &dyn Fn(u32),
) -> Result<Comparison, CompareError> {
    if trial.pairs < LEAST_PAIRS {
        return Err(CompareError::Pairs(trial.pairs));
    }
    let _restore = Restore {
        module,
        on: module.is_on()?,
    };
    let map = module.map()?.and_then(|bits| bits.color_map());
    let mut counters = EventCounters::open();
    // Bytes of the largest process of all runs so far.
    let mut largest = 0;
    // Children are in the group of this process, which has colours while coloring is on.
    let own = match trial.wanted {
        Some(_) => Some(Transient::enter(module, std::process::id(), None)?),
        None => None,
    };
    let mut once = |on: bool| match stop.load(Ordering::Relaxed) {
        true => Err(CompareError::Stopped),
        false => run(
            module,
            trial,
            (on, own.as_ref(), map.as_ref()),
            &mut counters,
            &mut largest,
        ),
    };
    let (mut off, mut on, mut uneven) = (Vec::new(), Vec::new(), 0);
    once(false)?;
    for pair in 0..trial.pairs {
        let on_first = pair % 2 == 1;
        for mode in [on_first, !on_first] {
            let done = once(mode).map_err(|error| match stop.load(Ordering::Relaxed) {
                // The interrupt has ended the program as well.
                true => CompareError::Stopped,
                false => error,
            })?;
            let (done, is_level) = done;
            uneven += u32::from(!mode && !is_level);
            if mode { &mut on } else { &mut off }.push(done);
        }
        progress(pair + 1);
    }
    if let Some(own) = own {
        own.end()?;
    }
    let names = NAMES.into_iter();
    let names = names.chain(counters.names().map(|name| (name, "")));
    Ok(Comparison {
        pairs: trial.pairs,
        quantities: quantities(names, &off, &on),
        missing: counters.missing().to_vec(),
        modelled: counters.modelled(),
        uneven,
    })
}

/// Runs in columns.
fn quantities(
    names: impl Iterator<Item = (&'static str, &'static str)>,
    off: &[Run],
    on: &[Run],
) -> Vec<Quantity> {
    let column = |runs: &[Run], i: usize| runs.iter().map(|run| run[i]).collect::<Sample>();
    let all = names.enumerate().map(|(i, (name, unit))| Quantity {
        name,
        unit,
        off: column(off, i),
        on: column(on, i),
    });
    all.collect()
}

/// One run, and whether it began in level memory.
fn run(
    module: &Module,
    trial: &Trial,
    (on, own, map): (bool, Option<&Transient<'_>>, Option<&ColorMap>),
    counters: &mut EventCounters,
    largest: &mut u64,
) -> Result<(Run, bool), CompareError> {
    let mode = if on { "on" } else { "off" };
    module.switch(on)?;
    if trial.cold {
        forget_files(&trial.root)?;
    }
    // With colouring on somebody may own some of the colours, which nobody else has then.
    let ground = Ground::level(&trial.root, map.filter(|_| !on), *largest);
    let (program, arguments) = match trial.command.split_first() {
        Some(words) => words,
        None => (&OsString::new(), &[][..]),
    };
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    if let (true, Some(own), Some((wanted, mode))) = (on, own, &trial.wanted) {
        own.color(Some((wanted, *mode)))?;
    }
    let counted = counters.over(|| {
        let began = Instant::now();
        let (status, used) = sys::run_with_use(&mut command)?;
        let wall = began.elapsed().as_secs_f64();
        *largest = used.largest_bytes.max(*largest);
        let faults = used.faults_from_disk as f64;
        Ok((
            status,
            vec![wall, used.user_s + used.system_s, used.system_s, faults],
        ))
    });
    if let (true, Some(own)) = (on, own) {
        own.color(None)?;
    }
    let ((status, mut run), counts) = counted.map_err(|source| CompareError::Program {
        program: program.clone(),
        source,
    })?;
    if !status.success() {
        return Err(CompareError::Failed { mode, status });
    }
    run.extend(counts);
    Ok((run, ground.is_level))
}

/// Empties the page cache of all that need not be written first.
fn forget_files(root: &Path) -> Result<(), CompareError> {
    let path = root.join("proc/sys/vm/drop_caches");
    sys::sync();
    fs::write(&path, "3").map_err(|source| CompareError::Cold { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(off: &[f64], on: &[f64]) -> Quantity {
        Quantity {
            name: "wall time",
            unit: "s",
            off: Sample::new(off.to_vec()),
            on: Sample::new(on.to_vec()),
        }
    }

    #[test]
    fn a_difference_counts_if_it_is_sure_among_all_and_matters() {
        let off = [10.0, 10.2, 9.8, 10.1];
        let less = quantity(&off, &[8.0, 8.2, 7.8, 8.1]);
        let change = less.change();
        assert!((change.mean + 0.2).abs() < 0.01, "{change:?}");
        let found = Comparison {
            pairs: 4,
            quantities: vec![
                less,
                quantity(&off, &[12.0, 12.3, 11.9, 12.0]),
                quantity(&off, &[10.1, 10.0, 9.9, 10.2]),
                quantity(&off, &[10.05, 10.25, 9.85, 10.15]),
                // Sure, 0.9 %, with an interval that reaches beyond 1 %.
                quantity(&[10.0; 4], &[10.08, 10.09, 10.09, 10.1]),
                // From nothing to something.
                quantity(&[0.0; 4], &[5.0, 5.1, 5.0, 4.9]),
                quantity(&[0.0; 4], &[0.0; 4]),
                quantity(&[f64::NAN, 1.0, 1.0, 1.0], &[1.0; 4]),
                quantity(&[10.0, 10.0], &[20.0, 20.1]),
            ],
            missing: Vec::new(),
            modelled: false,
            uneven: 0,
        };
        assert_eq!(
            found.findings(),
            [
                Finding::Less,
                Finding::More,
                Finding::Untold,
                Finding::NoEffect,
                Finding::NoEffect,
                Finding::More,
                Finding::NoEffect,
                Finding::Unknown,
                Finding::Unknown,
            ]
        );
    }

    #[test]
    fn a_large_change_that_three_pairs_cannot_tell_is_not_called_none() {
        let misses = quantity(&[71e3, 70e3, 72e3], &[1.0e6, 1.3e6, 1.1e6]);
        let (low, _) = misses.difference().interval().expect("three pairs");
        assert!(low > 0.0, "by itself it would be sure");
        let found = Comparison {
            pairs: 3,
            quantities: vec![misses; 12],
            missing: Vec::new(),
            modelled: false,
            uneven: 0,
        };
        assert_eq!(found.findings(), [Finding::Untold; 12]);
    }

    #[test]
    fn runs_become_columns_in_pairs() {
        let names = [("wall time", "s"), ("cycles", "")];
        let (off, on) = (
            [vec![1.0, 10.0], vec![2.0, 20.0]],
            [vec![3.0, 30.0], vec![4.0, 40.0]],
        );
        let found = quantities(names.into_iter(), &off, &on);
        assert_eq!(
            (found[1].name, &found[1].off.values[..]),
            ("cycles", &[10.0, 20.0][..])
        );
        assert_eq!(found[0].on.values, [3.0, 4.0]);
    }
}
