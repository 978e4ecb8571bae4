//! Replays of the inputs, repetition by repetition, and what is kept of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use piebald_experiment::NotMemory;
use piebald_lab::Hooks as StudyHooks;
use piebald_lab::replay::{DeviceChoice, LayoutChoice, ReplayRequest, code, replay};
use piebald_os_model::replace::SpecError;
use piebald_report::{Replay, ReplayRun, Sample};
use piebald_sim::{
    NOT_KEPT,
    replay::{InputSetup, Pace},
};
use piebald_store::digest_of_file;

use super::draws::{self, DEVICE, Places};
use super::inputs::{Counts, Folder};
use crate::{Hooks, experiment::unless_stopped};

/// The baseline, which the paper calls LRU.
pub(super) const CLOCK: &str = "clock";
/// DULO on it, with the sections that section 4.1.1 gives for a memory.
pub(super) const DULO: &str = "dulo";

const PAGES_PER_MB: u64 = 256;

/// DULO with sections of other sizes, in MB.
pub(super) fn sections(bank_mb: u32, evicting_mb: u32) -> String {
    format!("{DULO}:bank={bank_mb}MiB,evicting={evicting_mb}MiB")
}

/// What is asked of an input: policies by memory in MB.
pub(super) type Wanted = BTreeMap<u32, Vec<String>>;

/// The repetitions of one policy at one size on one input.
type Repetitions = Vec<ReplayRun>;

/// Everything that was run: by input, memory in MB, and policy.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    cells: BTreeMap<(String, u32, String), Repetitions>,
}

impl Runs {
    /// A quantity over the repetitions; `None` if it was not run, or not known.
    pub(super) fn sample(
        &self,
        input: &str,
        mb: u32,
        policy: &str,
        of: impl Fn(&ReplayRun) -> Option<f64>,
    ) -> Option<Sample> {
        let cell = self.cells.get(&(input.to_owned(), mb, policy.to_owned()))?;
        let values: Option<Vec<f64>> = cell.iter().map(of).collect();
        values.filter(|v| !v.is_empty()).map(Sample::new)
    }

    /// The repetitions.
    pub(super) fn cell(&self, input: &str, mb: u32, policy: &str) -> &[ReplayRun] {
        let cell = self.cells.get(&(input.to_owned(), mb, policy.to_owned()));
        cell.map_or(&[], Vec::as_slice)
    }

    /// Memory sizes at which a policy was run.
    pub(super) fn sizes(&self, input: &str, policy: &str) -> Vec<u32> {
        let of = |key: &&(String, u32, String)| key.0 == input && key.2 == policy;
        self.cells.keys().filter(of).map(|key| key.1).collect()
    }

    fn add(&mut self, input: &str, replay: Replay) {
        for run in replay.runs {
            let mb = u32::try_from(run.size_pages / PAGES_PER_MB).unwrap_or(u32::MAX);
            let key = (input.to_owned(), mb, run.policy.clone());
            self.cells.entry(key).or_default().push(run);
        }
    }

    #[cfg(test)]
    pub(super) fn put(&mut self, input: &str, mb: u32, policy: &str, cell: Repetitions) {
        self.cells
            .insert((input.to_owned(), mb, policy.to_owned()), cell);
    }
}

/// Where files lie on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// By the rule of AccuSim, the simulator that the paper's traces were made for: 1 MiB times
    /// the inode's number, modulo the drive.
    ByInode,
    /// As a file system laid them out (`inputs.toml`).
    Ext3,
}

/// Runs replays.
pub(super) struct Bench<'a> {
    pub files: Files,
    pub hooks: Hooks<'a>,
    pub folder: &'a Folder,
    pub places: &'a Places,
    pub seed: u64,
    pub repetitions: u32,
    /// References simulated so far.
    pub refs: Cell<u64>,
}

impl Bench<'_> {
    /// Adds all repetitions of what is wanted of an input. All runs of a repetition have the
    /// same draws.
    ///
    /// # Errors
    /// Why there are none; then nothing was added.
    pub(super) fn run(
        &self,
        runs: &mut Runs,
        input: &str,
        wanted: &Wanted,
        counts: &Counts,
        limit: Option<u64>,
    ) -> Result<(), String> {
        let mut all = Vec::new();
        for repetition in 0..self.repetitions {
            let seed = self.seed.wrapping_add(repetition.into());
            for (policies, sizes) in by_policies(wanted) {
                let name = format!(
                    "{input}, {} of {}, {} MB: {}",
                    repetition + 1,
                    self.repetitions,
                    list(&sizes),
                    policies.join(", ")
                );
                let request = self.request(input, &policies, &sizes, counts, limit, seed)?;
                all.push(self.one(&name, &request)?);
            }
        }
        for replay in all {
            runs.add(input, replay);
        }
        Ok(())
    }

    fn one(&self, name: &str, request: &ReplayRequest) -> Result<Replay, String> {
        // The bench itself counts in a cell and stays on its thread.
        let outer = self.hooks.progress;
        let show = |done: u64, planned: u64| {
            if let Some(progress) = outer {
                progress(name, done, planned);
            }
        };
        let hooks = StudyHooks {
            stop: self.hooks.stop,
            progress: Some(&show),
            ..StudyHooks::default()
        };
        unless_stopped(self.hooks.stop)?;
        let text = self.hooks.store.map(|_| identity(request)).transpose()?;
        let known = self.hooks.store.zip(text.as_deref());
        let found = known.and_then(|(store, text)| store.get(text));
        let done = match found {
            Some(done) => done,
            None if known.is_some_and(|(store, _)| store.only_looks()) => {
                return Err(NOT_KEPT.to_owned());
            }
            None => {
                let began = Instant::now();
                let made = replay(request, hooks).map_err(|e| format!("{name}: {e}"))?;
                if let Some((store, text)) = known.filter(|_| made.complete) {
                    store.put(text, &made, began.elapsed());
                }
                made
            }
        };
        let refs: u64 = done.runs.iter().map(|r| r.references).sum();
        self.refs.set(self.refs.get() + refs);
        match done.complete {
            true => Ok(done),
            false => Err("interrupted".to_owned()),
        }
    }

    fn request(
        &self,
        input: &str,
        policies: &[String],
        sizes: &[u32],
        counts: &Counts,
        limit: Option<u64>,
        seed: u64,
    ) -> Result<ReplayRequest, String> {
        let (start, excerpt) = draws::draw(seed, self.places, counts, limit);
        let policies: Result<_, _> = policies.iter().map(|p| p.parse()).collect();
        let size = |mb: &u32| format!("{mb}MiB").parse();
        let sizes: Result<_, _> = sizes.iter().map(size).collect();
        Ok(ReplayRequest {
            input: InputSetup {
                paths: vec![self.folder.trace(input)],
                excerpt,
                ..InputSetup::default()
            },
            policies: policies.map_err(|e: SpecError| e.to_string())?,
            object_policies: Vec::new(),
            ignore_sizes: false,
            sizes: sizes.map_err(|e: NotMemory| e.to_string())?,
            device: DeviceChoice::Preset(DEVICE.to_owned()),
            readahead: "2.6.11".to_owned(),
            scheduler: "deadline-2.6.11".to_owned(),
            layout: match self.files {
                Files::ByInode => LayoutChoice::Inodes,
                Files::Ext3 => LayoutChoice::File(self.folder.layout()),
            },
            pace: Pace::Ordered,
            warmup: 0,
            curves: None,
            start,
            seed,
            available: None,
        })
    }
}

/// All that a replay's outcome depends on, besides the code of the model.
fn identity(request: &ReplayRequest) -> Result<String, String> {
    let sum = |path: &Path| digest_of_file(path).map_err(|e| format!("{}: {e}", path.display()));
    let mut text = format!("replay {} {request:?}", code());
    for path in &request.input.paths {
        text += &format!(" {}", sum(path)?);
    }
    for path in [request.device_file(), request.layout_file()]
        .into_iter()
        .flatten()
    {
        text += &format!(" {}", sum(path)?);
    }
    Ok(text)
}

/// Sizes that want the same policies together, so that a trace is read once for them.
fn by_policies(wanted: &Wanted) -> BTreeMap<Vec<String>, Vec<u32>> {
    let mut groups: BTreeMap<Vec<String>, Vec<u32>> = BTreeMap::new();
    for (mb, policies) in wanted {
        let mut policies = policies.clone();
        policies.sort();
        policies.dedup();
        if !policies.is_empty() {
            groups.entry(policies).or_default().push(*mb);
        }
    }
    groups
}

fn list(sizes: &[u32]) -> String {
    let words: Vec<String> = sizes.iter().map(u32::to_string).collect();
    words.join(", ")
}

/// Simulated time in s.
pub(super) fn seconds(run: &ReplayRun) -> Option<f64> {
    run.io.as_ref().map(|io| io.elapsed_s)
}

/// Hits per access, in percent.
pub(super) fn hits(run: &ReplayRun) -> Option<f64> {
    run.hit_ratio().map(|r| 100.0 * r)
}

/// The same without the first uses of what was read ahead.
pub(super) fn hits_again(run: &ReplayRun) -> Option<f64> {
    let io = run.io.as_ref()?;
    let first = io.prefetched.saturating_sub(io.prefetched_unused);
    let hits = run.hits.saturating_sub(first) as f64;
    (run.references > 0).then(|| 100.0 * hits / run.references as f64)
}

/// Share of the requested blocks in runs of more than so many, in percent.
pub(super) fn longer(length: u32) -> impl Fn(&ReplayRun) -> Option<f64> {
    move |run| Some(100.0 * run.io.as_ref()?.share_longer_than(length)?)
}

/// A counter of the policy's own.
pub(super) fn counter(run: &ReplayRun, name: &str) -> Option<f64> {
    let found = run.extra.iter().find(|(n, _, _)| n == name);
    found.map(|(_, value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_the_same_policies_are_run_together() {
        let of = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let wanted: Wanted = [
            (24, of(&[CLOCK, DULO])),
            (32, of(&[DULO, CLOCK, DULO])),
            (64, of(&[DULO])),
            (80, of(&[])),
        ]
        .into_iter()
        .collect();
        let groups = by_policies(&wanted);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[&of(&[CLOCK, DULO])], [24, 32]);
        assert_eq!(groups[&of(&[DULO])], [64]);
    }
}
