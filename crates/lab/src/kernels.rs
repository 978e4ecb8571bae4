//! Kernels in the state in which programs meet them.
//!
//! Ageing memory takes as long as simulating millions of references, and all runs of
//! a repetition under one policy begin with the same history. It is lived through
//! once, and every run but the last gets a copy. A state is dropped with its last
//! run; since runs are taken repetition by repetition, there are at most as many
//! states as threads that simulate, and one more.
//!
//! Studies that follow one another often begin with the same histories, too: whoever runs
//! several keeps some in [`Histories`].

use piebald_experiment::{Frames, MemoryState};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use piebald_sim::rooms::{
    hw::spec::MachineSpec,
    os_model::{
        frames::{
            Age, BinHopping, BinHoppingConfig, Colored, ColoredConfig, Flavour, OwnedFrames,
            RandomFrames, Stock, StockConfig,
        },
        kernel::{ColorConfig, Kernel, KernelConfig, SysMonConfig, Thp},
    },
};
use piebald_sim::{Files, Zone};

use crate::{
    colors::{RAINBOW, map_of, zone_map},
    jobs::{Job, mix},
    scenario::{Policy, Scenario},
};

/// Free memory of an aged machine, in 1/1000: enough for every program, little
/// enough that large blocks are rare.
pub(crate) const AGED_FREE_PERMILLE: u32 = 400;

/// What a kernel's state depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    repetition: u32,
    frames: Frames,
    memory: MemoryState,
    thp: bool,
    /// The policy, if it has a colour map or a manager of programs of its own.
    own_map: Option<usize>,
}

/// A state, made by the first run that needs it.
pub(crate) type Made = Arc<OnceLock<Result<Kernel, String>>>;

/// States of aged memory that studies of one process have in common.
///
/// They depend on machine, seed, repetition and the frames of the policy; results do not
/// depend on what is kept.
pub struct Histories {
    kept: usize,
    /// By what they depend on, in words; the one that was used last is at the end.
    made: Mutex<VecDeque<(String, Made)>>,
}

impl Histories {
    /// Keeps so many of those that were used last. Each holds tens of bytes for every frame.
    pub const fn keeping(states: usize) -> Self {
        Self {
            kept: states,
            made: Mutex::new(VecDeque::new()),
        }
    }

    /// The place of a state, which may be still to be made.
    pub(crate) fn place(&self, key: String) -> Made {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made.iter().position(|(k, _)| *k == key);
        let known = known.and_then(|at| made.remove(at));
        let (key, place) = known.unwrap_or_else(|| (key, Made::default()));
        made.push_back((key, place.clone()));
        while made.len() > self.kept {
            made.pop_front();
        }
        place
    }
}

/// A state that some runs still need.
struct Slot {
    runs: usize,
    /// None before its first run.
    made: Option<Made>,
}

/// The kernels of a study's runs.
pub(crate) struct Kernels<'a> {
    scenario: &'a Scenario,
    slots: Mutex<HashMap<Key, Slot>>,
    histories: Option<&'a Histories>,
}

impl<'a> Kernels<'a> {
    /// For these runs, each of which takes its kernel once, and with what earlier studies
    /// left.
    pub(crate) fn new(
        scenario: &'a Scenario,
        jobs: &[Job],
        histories: Option<&'a Histories>,
    ) -> Self {
        let kernels = Self {
            scenario,
            slots: Mutex::default(),
            histories,
        };
        kernels.expect(jobs);
        kernels
    }

    /// These runs take kernels as well.
    pub(crate) fn expect(&self, jobs: &[Job]) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        for job in jobs {
            let slot = slots.entry(key(self.scenario, job));
            let slot = slot.or_insert_with(|| Slot {
                runs: 0,
                made: None,
            });
            slot.runs += 1;
        }
    }

    /// The kernel of a run, with files if the scenario has some. Blocks while another
    /// thread makes the same state.
    ///
    /// # Errors
    /// What the kernel, its allocator or its files say.
    pub(crate) fn take(&self, job: &Job) -> Result<Kernel, String> {
        let mut kernel = self.bare(job)?;
        if let Some(files) = &self.scenario.files {
            let policy = &self.scenario.policies[job.policy];
            let map = policy
                .files
                .map(|_| zone_map(&self.scenario.machine, policy));
            let zone = map.transpose()?.zip(policy.files);
            let files = Files {
                replace: policy.replace.clone().unwrap_or(files.replace.clone()),
                zone: zone.map(|(map, config)| Zone { map, config }),
                ..files.clone()
            };
            files.install(&mut kernel).map_err(|e| e.to_string())?;
        }
        Ok(kernel)
    }

    /// Without files, so that histories are shared whatever disk comes.
    fn bare(&self, job: &Job) -> Result<Kernel, String> {
        let key = key(self.scenario, job);
        let policy = &self.scenario.policies[job.policy];
        let make = || kernel(&self.scenario.machine, policy, self.draw(key.repetition));
        // Fresh memory costs nothing until it is used; a copy of it would.
        let shared = match key.memory {
            MemoryState::Fresh => None,
            MemoryState::Aged => self.slot(key, policy),
        };
        let Some((made, last)) = shared else {
            return make();
        };
        let kernel = made.get_or_init(make);
        if !last {
            return kernel.clone();
        }
        // Whoever came before may still be copying.
        match Arc::try_unwrap(made) {
            Ok(cell) => cell.into_inner().unwrap_or_else(make),
            Err(made) => made.get_or_init(make).clone(),
        }
    }

    /// The state of a key, and whether this is its last run.
    fn slot(&self, key: Key, policy: &Policy) -> Option<(Made, bool)> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get_mut(&key)?;
        slot.runs -= 1;
        let last = slot.runs == 0;
        let place = || match self.histories {
            Some(histories) => histories.place(self.words(key, policy)),
            None => Made::default(),
        };
        let made = slot.made.get_or_insert_with(place).clone();
        if last {
            slots.remove(&key);
        }
        Some((made, last))
    }

    /// The draws of a repetition.
    fn draw(&self, repetition: u32) -> u64 {
        mix(&[self.scenario.seed, u64::from(repetition)])
    }

    /// All that [`kernel`] is given, in words, so that states of different studies are one only
    /// if they are equal.
    fn words(&self, key: Key, policy: &Policy) -> String {
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            self.scenario.machine,
            policy.hvr,
            policy.frames,
            policy.memory,
            policy.thp,
            policy.color_map,
            self.draw(key.repetition)
        )
    }
}

fn key(scenario: &Scenario, job: &Job) -> Key {
    let policy = &scenario.policies[job.policy];
    Key {
        repetition: job.repetition,
        frames: policy.frames,
        memory: policy.memory,
        thp: policy.thp,
        own_map: (policy.color_map.is_some() || policy.hvr.is_some()).then_some(job.policy),
    }
}

fn kernel(spec: &MachineSpec, policy: &Policy, draw: u64) -> Result<Kernel, String> {
    let frames = spec.memory.size.0 >> 12;
    let threads = spec.core.sockets * spec.core.per_socket * spec.core.smt;
    let allocator: Box<dyn OwnedFrames> = match policy.frames {
        Frames::Stock => {
            let config = StockConfig::new(frames, threads, Flavour::default());
            Box::new(Stock::new(&config).map_err(|e| e.to_string())?)
        }
        Frames::Random => {
            let frames = RandomFrames::new(frames, mix(&[draw, 4]));
            Box::new(frames.map_err(|e| e.to_string())?)
        }
        Frames::BinHopping => {
            let config = BinHoppingConfig {
                frames,
                bins: page_colors(spec).min(1024),
                shift: 0,
            };
            Box::new(BinHopping::new(&config).map_err(|e| e.to_string())?)
        }
        Frames::Rainbow | Frames::PageColoring | Frames::Hvr => {
            let config = ColoredConfig {
                like_virtual: policy.frames == Frames::PageColoring,
                ..ColoredConfig::new(frames, threads, map_of(spec, policy)?)
            };
            Box::new(Colored::new(&config).map_err(|e| e.to_string())?)
        }
    };
    let mut config = KernelConfig::new(threads);
    if matches!(policy.frames, Frames::Rainbow | Frames::Hvr) {
        config.colors = Some(ColorConfig {
            map: map_of(spec, policy)?,
            rainbow: RAINBOW,
            hvr: policy.hvr.map(|hvr| hvr.config),
        });
    }
    config.thp = if policy.thp { Thp::Always } else { Thp::Never };
    let mut kernel = Kernel::new(config, allocator).map_err(|e| e.to_string())?;
    if policy.memory == MemoryState::Aged {
        let age = Age::new(mix(&[draw, 5]), AGED_FREE_PERMILLE, threads);
        kernel.age(&age).map_err(|e| e.to_string())?;
    }
    if let Some(sysmon) = policy.hvr.and_then(|hvr| hvr.sysmon) {
        let seed = mix(&[draw, 7]);
        let watched = kernel.monitor(SysMonConfig { seed, ..sysmon });
        watched.map_err(|e| e.to_string())?;
    }
    Ok(kernel)
}

/// Page colours of the last level: set bits above the page offset.
fn page_colors(spec: &MachineSpec) -> u16 {
    let cache = spec.last_level();
    let sets = cache.size.0 / 64 / u64::from(cache.ways);
    (sets / 64).clamp(1, 4096) as u16
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use piebald_sim::rooms::os_model::kernel::{Actions, Fault};
    use piebald_units::{CoreId, Pfn, VirtAddr, memory::PhysRef, op::MemRef};

    use super::*;
    use crate::jobs::Phase;

    fn scenario() -> Scenario {
        let text = "schema = 1\n[machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n\
                    [[program]]\nbuiltin = \"chase\"\ncores = \"0\"\n\
                    [[policy]]\nname = \"stock\"\n[[policy]]\nname = \"random\"\n\
                    frames = \"random\"\n[[policy]]\nname = \"bins\"\nframes = \"bin-hopping\"\n\
                    [[policy]]\nname = \"huge\"\nthp = true\n\
                    [[policy]]\nname = \"fresh\"\nmemory = \"fresh\"\n";
        Scenario::parse(text, Path::new("s.toml")).expect("a scenario")
    }

    fn job(policy: usize, repetition: u32) -> Job {
        Job {
            policy,
            repetition,
            phase: Phase::Alone(0),
            focus: None,
        }
    }

    /// Frames that a program gets for its first pages, those of its end given back.
    fn frames(kernel: &mut Kernel) -> Vec<Pfn> {
        let mut got = Vec::new();
        let mut actions = Actions::new();
        for _ in 0..2 {
            let task = kernel.start(1).expect("starts");
            for page in 0..500 {
                let r = MemRef {
                    addr: VirtAddr(0x10_0000 + page * 4096),
                    kind: piebald_units::op::RefKind::Store,
                    size: 8,
                    ..MemRef::default()
                };
                let mut out: Vec<PhysRef> = Vec::new();
                let fault: Option<Fault> = kernel
                    .translate(task, &[r], &mut out)
                    .expect("translates")
                    .fault;
                if let Some(fault) = fault {
                    kernel
                        .fault(task, CoreId(1), fault, &mut actions)
                        .expect("a frame");
                    kernel.translate(task, &[r], &mut out).expect("translates");
                }
                got.extend(out.iter().map(|p| Pfn(u64::from(p.frame))));
            }
            kernel.exit(task, CoreId(1), &mut actions).expect("ends");
        }
        kernel.validate().expect("the books are right");
        got
    }

    #[test]
    fn runs_that_share_a_history_get_the_frames_that_they_would_get_with_their_own() {
        let s = scenario();
        for policy in 0..s.policies.len() {
            let jobs = [
                job(policy, 0),
                job(policy, 0),
                job(policy, 0),
                job(policy, 1),
            ];
            let kernels = Kernels::new(&s, &jobs, None);
            let draw = mix(&[s.seed, 0]);
            let mut own = kernel(&s.machine, &s.policies[policy], draw).expect("a kernel");
            let own = frames(&mut own);
            assert!(own.len() >= 1000, "{policy}");
            // Copies, one of them used while the others are still to come, and the last run,
            // which gets the original.
            for _ in 0..3 {
                let mut taken = kernels.take(&jobs[0]).expect("a kernel");
                assert_eq!(frames(&mut taken), own, "{policy}");
            }
            let other = frames(&mut kernels.take(&jobs[3]).expect("a kernel"));
            let is_aged = s.policies[policy].memory == MemoryState::Aged;
            assert_eq!(other != own, is_aged, "{policy}");
        }
    }

    #[test]
    fn a_history_is_kept_no_longer_than_its_runs() {
        let s = scenario();
        let jobs: Vec<Job> = (0..3).flat_map(|r| [job(0, r), job(0, r)]).collect();
        let kernels = Kernels::new(&s, &jobs, None);
        let held = || {
            let slots = kernels.slots.lock().expect("no thread failed");
            let made = slots.values().filter_map(|slot| slot.made.as_ref());
            made.filter(|made| made.get().is_some()).count()
        };
        for (n, job) in jobs.iter().enumerate() {
            kernels.take(job).expect("a kernel");
            assert_eq!(held(), 1 - n % 2, "after run {n}");
        }
    }

    /// Frames of a study of one run.
    fn of_study(s: &Scenario, job: Job, histories: Option<&Histories>) -> Vec<Pfn> {
        let kernels = Kernels::new(s, &[job], histories);
        frames(&mut kernels.take(&job).expect("a kernel"))
    }

    #[test]
    fn studies_with_common_histories_get_the_frames_that_they_would_get_by_themselves() {
        let s = scenario();
        let (mut seeded, mut larger) = (s.clone(), s.clone());
        seeded.seed += 1;
        larger.machine.memory.size = piebald_units::Bytes(256 << 20);
        let histories = Histories::keeping(9);
        for round in 0..2 {
            for (name, s) in [("first", &s), ("seed", &seeded), ("memory", &larger)] {
                for job in [job(0, 0), job(1, 0), job(0, 1)] {
                    let common = of_study(s, job, Some(&histories));
                    assert_eq!(common, of_study(s, job, None), "{name} {job:?}, {round}");
                }
            }
        }
        // One for each of the nine, none of them made twice.
        assert_eq!(histories.made.lock().expect("no thread failed").len(), 9);
    }

    #[test]
    fn the_histories_that_were_used_last_are_kept() {
        let s = scenario();
        let histories = Histories::keeping(2);
        let made = |repetition| {
            let before = histories.made.lock().expect("no thread failed").clone();
            of_study(&s, job(0, repetition), Some(&histories));
            let after = histories.made.lock().expect("no thread failed");
            let (_, last) = after.back().expect("one at least");
            assert!(after.len() <= 2 && last.get().is_some());
            !before.iter().any(|(_, made)| Arc::ptr_eq(made, last))
        };
        assert_eq!(
            [0, 1, 0, 2, 0, 1].map(made),
            [true, true, false, true, false, true]
        );
    }

    #[test]
    fn a_kernel_that_cannot_be_is_told_to_every_run() {
        let mut s = scenario();
        s.machine.memory.size = piebald_units::Bytes(1 << 20);
        let jobs = [job(0, 0), job(0, 0)];
        let kernels = Kernels::new(&s, &jobs, None);
        for job in &jobs {
            assert!(kernels.take(job).is_err());
        }
    }
}
