//! Runs the studies that experiments consist of.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use piebald_lab::host::{self, Ground, Hosted};
use piebald_report::{LevelMpki, Sample, Study};
use piebald_sim::Model;
use piebald_store::NOT_KEPT;

use crate::{Hooks, Written};

pub(crate) use piebald_sim::draw;

/// Aged memories that are kept for the next study: one for each repetition and kind of frames of a few
/// policies, or for each of many policies in one repetition.
const KEPT_HISTORIES: usize = 14;

/// Why a row has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoStudy {
    /// It was run, and ended with this error.
    #[error("{0}")]
    Failed(String),
    /// It was not run to its end: an input is missing, or the user wanted an end.
    #[error("{0}")]
    NotRun(String),
}

impl From<host::NoStudy> for NoStudy {
    fn from(why: host::NoStudy) -> Self {
        match why {
            host::NoStudy::Missing(why) | host::NoStudy::NotRun(why) => Self::NotRun(why),
            host::NoStudy::Impossible(why) | host::NoStudy::Failed(why) => Self::Failed(why),
        }
    }
}

/// Runs studies and adds up what they cost.
pub(crate) struct Bench<'a> {
    pub(crate) hooks: Hooks<'a>,
    model: Model,
    pub(crate) refs: AtomicU64,
    /// Where experiments are put that are not to be run.
    pub(crate) written: Option<&'a Mutex<Vec<Written>>>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(hooks: Hooks<'a>) -> Self {
        Self {
            hooks,
            model: hooks.model(KEPT_HISTORIES),
            refs: AtomicU64::new(0),
            written: None,
        }
    }

    /// One that runs nothing, and writes down what it is asked to run.
    pub(crate) fn writing(hooks: Hooks<'a>, written: &'a Mutex<Vec<Written>>) -> Self {
        Self {
            written: Some(written),
            ..Self::new(hooks)
        }
    }

    /// References simulated so far.
    pub(crate) fn refs(&self) -> u64 {
        self.refs.load(Ordering::Relaxed)
    }

    /// Goes on unless experiments are written down and not run.
    ///
    /// # Errors
    /// It is written down.
    fn unless_written(&self, name: &str, text: &str) -> Result<(), NoStudy> {
        let Some(written) = self.written else {
            return Ok(());
        };
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        written.push(Written {
            name: name.to_owned(),
            text: text.to_owned(),
        });
        let written = "it is written down and not run";
        Err(NoStudy::NotRun(written.to_owned()))
    }

    /// Runs an experiment on its host, or writes it down.
    ///
    /// # Errors
    /// Why there is no result, in words.
    pub(crate) fn run(&self, name: &str, asked: &dyn Hosted) -> Result<Study, NoStudy> {
        unless_stopped(self.hooks.stop).map_err(NoStudy::NotRun)?;
        self.unless_written(name, &asked.document().text)?;
        let show = |what: &str, done: u64, planned: u64| {
            if let Some(progress) = self.hooks.progress {
                let name = match what {
                    "" => name,
                    what => &format!("{name}: {what}"),
                };
                progress(name, done, planned);
            }
        };
        let study = asked.run(&Ground {
            begin: &|| Ok(self.hooks.stop),
            progress: Some(&show),
            model: Some(&self.model),
            // The model has the other processors meanwhile.
            guests: Some(1),
            store: self.hooks.store,
            ..Ground::default()
        });
        unless_stopped(self.hooks.stop).map_err(NoStudy::NotRun)?;
        let study = study?;
        self.refs.fetch_add(study.simulated_refs, Ordering::Relaxed);
        // A part of what is asked for is no number of the paper's.
        if !study.cut.is_empty() {
            return Err(NoStudy::Failed(study.cut.join("; ")));
        }
        if study.complete {
            return Ok(study);
        }
        // Policies are missing, or have fewer repetitions.
        let why = study.warnings.join("; ");
        if why.contains(NOT_KEPT) {
            return Err(NoStudy::NotRun(why));
        }
        Err(NoStudy::Failed(why))
    }
}

/// For work that takes seconds: goes on unless the user wants an end.
///
/// # Errors
/// "interrupted".
pub(crate) fn unless_stopped(stop: Option<&AtomicBool>) -> Result<(), String> {
    if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return Err("interrupted".to_owned());
    }
    Ok(())
}

/// Share of a level's accesses that miss, in percent.
pub(crate) fn miss_rate(level: &LevelMpki) -> Option<Sample> {
    Some(level.mpki.ratio(&level.accesses)?.scaled(100.0))
}

/// The mean of samples, repetition by repetition; `None` if there is none or they differ in
/// length.
pub(crate) fn mean_of(samples: &[Sample]) -> Option<Sample> {
    let first = samples.first()?;
    if samples.iter().any(|s| s.n() != first.n()) {
        return None;
    }
    let mean = |i: usize| samples.iter().map(|s| s.values[i]).sum::<f64>() / samples.len() as f64;
    Some((0..first.n()).map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn miss_rates_are_shares_of_accesses() {
        let level = |misses: [f64; 2], accesses: [f64; 2]| LevelMpki {
            mpki: misses.into_iter().collect(),
            accesses: accesses.into_iter().collect(),
            ..LevelMpki::default()
        };
        let rate = |level| miss_rate(&level).map(|s| s.values);
        let first = level([40.0, 40.0], [400.0, 500.0]);
        assert_eq!(rate(first), Some(vec![10.0, 8.0]));
        let unequal = LevelMpki {
            mpki: Sample::new(vec![1.0]),
            ..level([1.0, 1.0], [2.0, 2.0])
        };
        assert_eq!(rate(unequal), None);
    }

    #[test]
    fn means_are_taken_repetition_by_repetition() {
        let s = |values: [f64; 2]| -> Sample { values.into_iter().collect() };
        let mean = mean_of(&[s([1.0, 10.0]), s([3.0, 20.0])]);
        assert_eq!(mean.map(|m| m.values), Some(vec![2.0, 15.0]));
        assert!(mean_of(&[]).is_none());
        assert!(mean_of(&[s([1.0, 2.0]), Sample::new(vec![1.0])]).is_none());
    }
}
