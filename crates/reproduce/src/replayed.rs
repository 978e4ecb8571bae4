//! Runs replays, repetition by repetition, and counts traces.

use std::{
    path::Path,
    sync::{
        PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use piebald_lab::{
    Hooks as StudyHooks,
    replay::{Counts, ReplayError, ReplayRequest, code, counts, replay},
};
use piebald_report::Replay;
use piebald_store::NOT_KEPT;
use piebald_store::digest_of_file;
use rayon::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use toml::{Table, Value};

use crate::{
    Written,
    experiment::{Bench, NoStudy, unless_stopped},
};

/// A replay in its repetitions.
pub(crate) struct Asked {
    /// Of the experiment at a point.
    pub(crate) name: String,
    /// As a file.
    pub(crate) text: String,
    /// With the seed of the first repetition.
    pub(crate) request: ReplayRequest,
    pub(crate) repetitions: u32,
}

impl Asked {
    fn seed(&self, repetition: u32) -> u64 {
        self.request.seed.wrapping_add(repetition.into())
    }

    fn named(&self, repetition: u32) -> String {
        if self.repetitions == 1 {
            return self.name.clone();
        }
        format!("{}, {} of {}", self.name, repetition + 1, self.repetitions)
    }

    /// A repetition's file.
    fn written(&self, repetition: u32) -> Written {
        let mut table: Table = toml::from_str(&self.text).unwrap_or_default();
        // It comes from a file, which holds no larger one.
        let seed = i64::try_from(self.seed(repetition)).unwrap_or(i64::MAX);
        table.insert("seed".to_owned(), Value::Integer(seed));
        Written {
            name: self.named(repetition),
            text: toml::to_string(&table).unwrap_or_default(),
        }
    }
}

impl Bench<'_> {
    /// Runs the replays of an experiment, all repetitions side by side.
    pub(crate) fn replays(
        &self,
        experiment: &str,
        all: &[Asked],
    ) -> Vec<Result<Vec<Replay>, NoStudy>> {
        let jobs = all
            .iter()
            .flat_map(|asked| (0..asked.repetitions).map(move |n| (asked, n)));
        let jobs: Vec<(&Asked, u32)> = jobs.collect();
        if let Some(written) = self.written {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.extend(jobs.iter().map(|(asked, n)| asked.written(*n)));
            let why = "it is written down and not run";
            return all
                .iter()
                .map(|_| Err(NoStudy::NotRun(why.to_owned())))
                .collect();
        }
        let (planned, ended) = (jobs.len() as u64, AtomicU64::new(0));
        let run = |(asked, n): &(&Asked, u32)| {
            let done = self.replay(asked, *n);
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = self.hooks.progress {
                progress(experiment, ended, planned);
            }
            done
        };
        // One at a time from the front, so that all of the first experiment are done first.
        let mut done = jobs
            .par_iter()
            .with_max_len(1)
            .map(run)
            .collect::<Vec<_>>()
            .into_iter();
        let of = |asked: &Asked| done.by_ref().take(asked.repetitions as usize).collect();
        all.iter().map(of).collect()
    }

    fn replay(&self, asked: &Asked, repetition: u32) -> Result<Replay, NoStudy> {
        let request = ReplayRequest {
            seed: asked.seed(repetition),
            ..asked.request.clone()
        };
        let text = identity("replay", &request)?;
        let name = asked.named(repetition);
        let done: Replay = self.known_or(&text, &name, |hooks| {
            let made = replay(&request, hooks)?;
            if made.complete {
                Ok(made)
            } else {
                Err(ReplayError::Stopped)
            }
        })?;
        let refs: u64 = done.runs.iter().map(|r| r.references).sum();
        self.refs.fetch_add(refs, Ordering::Relaxed);
        Ok(done)
    }

    /// What the requests of a replay consist of.
    pub(crate) fn counted(&self, asked: &Asked) -> Result<Counts, NoStudy> {
        if self.written.is_some() {
            let why = "its requests are counted and not replayed";
            return Err(NoStudy::NotRun(why.to_owned()));
        }
        let text = identity("counts", &asked.request)?;
        let name = format!("{} is counted", asked.name);
        self.known_or(&text, &name, |hooks| counts(&asked.request.input, hooks))
    }

    /// What the store has of a run, or what it comes to.
    fn known_or<T: Serialize + DeserializeOwned>(
        &self,
        text: &str,
        name: &str,
        run: impl FnOnce(StudyHooks<'_>) -> Result<T, ReplayError>,
    ) -> Result<T, NoStudy> {
        let hooks = self.hooks;
        unless_stopped(hooks.stop).map_err(NoStudy::NotRun)?;
        if let Some(found) = hooks.store.and_then(|store| store.get(text)) {
            return Ok(found);
        }
        if hooks.store.is_some_and(|store| store.only_looks()) {
            return Err(NoStudy::NotRun(NOT_KEPT.to_owned()));
        }
        let began = Instant::now();
        let made = run(StudyHooks {
            stop: hooks.stop,
            ..StudyHooks::default()
        });
        unless_stopped(hooks.stop).map_err(NoStudy::NotRun)?;
        let made = made.map_err(|e| NoStudy::Failed(format!("{name}: {e}")))?;
        if let Some(store) = hooks.store {
            store.put(text, &made, began.elapsed());
        }
        Ok(made)
    }
}

/// All that an outcome depends on, besides the code of the model. Files stand there by what is in them, wherever
/// they are.
fn identity(what: &str, request: &ReplayRequest) -> Result<String, NoStudy> {
    let sum = |path: &Path| {
        let found = digest_of_file(path).map_err(|e| format!("{}: {e}", path.display()));
        found.map_err(NoStudy::NotRun)
    };
    let mut text = format!("{what} {} {request:?}", code());
    for path in request.files() {
        let sum = sum(&path)?;
        text = text.replace(&format!("{path:?}"), &sum);
        text += &format!(" {sum}");
    }
    Ok(text)
}
