//! Mixes of programs under the paper's policies: who is in them, and how they are run.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use piebald_hw::spec::MachineSpec;
use piebald_lab::utility::curve;
use piebald_policy::hvr::Class;
use piebald_report::Sample;
use piebald_sim::{Boot, Case, ColorSetup, Model, Outcome, ProgramSetup, Region, Stay};
use piebald_store::Store;
use piebald_units::{ColorSet, CoreSet, Picos};
use rayon::prelude::*;

use super::{
    programs::{Program, Ready},
    ways::{Way, divided, frames},
};
use crate::{
    experiment::{draw, machine_seed, outcome, share_of, unless_stopped},
    row::Found,
};

/// Programs that run together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mix {
    /// The draw that it comes from: decides where its programs sit.
    pub name: &'static str,
    pub number: u64,
    /// Places in the list of programs, and which copy of a program it is.
    pub members: Vec<(usize, u32)>,
}

impl Mix {
    /// A program by itself.
    pub(super) fn alone(member: (usize, u32)) -> Self {
        Self {
            name: "alone",
            number: 0,
            members: vec![member],
        }
    }

    /// Draws programs from classes, a number of each, without repetition; a class that is too
    /// small gives its programs again, as other copies. `None` if a class is empty.
    pub(super) fn drawn(
        (name, number): (&'static str, u64),
        wanted: &[(&[usize], usize)],
    ) -> Option<Self> {
        let mut members = Vec::new();
        for (part, (from, count)) in wanted.iter().enumerate() {
            if from.is_empty() && *count > 0 {
                return None;
            }
            let mut left: Vec<usize> = Vec::new();
            for n in 0..*count {
                if left.is_empty() {
                    // Those that another part has drawn come only when all are in.
                    let is_new = |at: &usize| members.iter().all(|m: &(usize, u32)| m.0 != *at);
                    left = from.iter().copied().filter(is_new).collect();
                }
                if left.is_empty() {
                    left = from.to_vec();
                }
                let words = format!("{name} {part} {n}");
                let at = draw(SEED, &words, number) % left.len() as u64;
                let chosen = left.swap_remove(at as usize);
                let copies = members.iter().filter(|m| m.0 == chosen).count();
                members.push((chosen, copies as u32));
            }
        }
        Some(Self {
            name,
            number,
            members,
        })
    }
}

/// Mixes are the same whatever seed runs have (protocol).
const SEED: u64 = 42;

/// Hardware threads of the machine's cores, one of each core first.
pub(super) const CORES: [u16; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// How often a built-in program could make its references before it ends: it goes on until the
/// slowest of its mix is measured, and one that ended and began again would have HVR deal anew.
const LIVES: u64 = 4;

/// A run: its way, the mix, and the repetition.
pub(super) type Key = (Way, Mix, u32);

/// What a program did in its measured part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Did {
    /// References of its own per cycle. Rows compare these: a program's instructions for each are the
    /// same in all its runs, and those that the kernel carries out for it are not its work.
    pub pace: f64,
    /// Instructions per cycle, those of the kernel for it included.
    pub ipc: f64,
    /// Lines read from memory for 1000 instructions, by demands and prefetches.
    pub lines: f64,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    /// Of each program.
    pub did: Vec<Did>,
    /// Of a program alone: misses of each second with 1, 2 .. groups of the cache.
    pub curve: Vec<u64>,
    /// Class and colours of each program that HVR managed, at the end, in the order of arrival.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look at it"))]
    pub parts: Vec<(Option<Class>, ColorSet)>,
}

pub(super) type Known = Result<Ran, String>;

/// Runs mixes; what was run once is kept.
pub(super) struct Bench<'a> {
    pub spec: &'a MachineSpec,
    pub programs: &'a [Program],
    pub classes: &'a [Option<Class>],
    /// Of each program, of `warmup` and `budget`.
    pub shares: &'a [f64],
    pub inputs: PathBuf,
    pub warmup: u64,
    pub budget: u64,
    pub repetitions: u32,
    /// See [`Form::places`](super::form::Form::places).
    pub places: u64,
    pub seed: u64,
    pub stop: Option<&'a AtomicBool>,
    pub progress: Option<&'a crate::Show<'a>>,
    pub model: Model,
    /// Where the outcomes of its runs are kept.
    pub store: Option<&'a Arc<Store>>,
    pub done: Mutex<HashMap<Key, Known>>,
    /// Programs that are ready, by their place, the seed and the references that are wanted.
    pub ready: Mutex<HashMap<(usize, u64, u64), Ready>>,
    pub refs: AtomicU64,
}

impl<'a> Bench<'a> {
    /// A bench of the same settings that has run nothing: for rows that change one of them.
    pub(super) fn anew(&self) -> Bench<'a> {
        Bench {
            inputs: self.inputs.clone(),
            model: Model::keeping(4).with_store(self.store.cloned()),
            done: Mutex::default(),
            ready: Mutex::default(),
            refs: AtomicU64::new(0),
            ..*self
        }
    }
}

impl Bench<'_> {
    /// A bench that tells HVR other classes. It knows what was run under Linux, where classes mean
    /// nothing.
    pub(super) fn told<'b>(&'b self, classes: &'b [Option<Class>]) -> Bench<'b> {
        let done = self.lock();
        let linux = done.iter().filter(|((way, ..), _)| *way == Way::Linux);
        let linux = linux.map(|(key, known)| (key.clone(), known.clone()));
        Bench {
            classes,
            done: Mutex::new(linux.collect()),
            ..self.anew()
        }
    }
}

impl Bench<'_> {
    /// Runs what is not known yet of these, several at a time, after each program alone, whose
    /// miss curves some ways need.
    pub(super) fn prepare(&self, mixes: &[Mix], ways: &[Way]) {
        let (mut alone, mut keys): (Vec<Key>, Vec<Key>) = Default::default();
        for repetition in 0..self.repetitions {
            for mix in mixes {
                keys.extend((ways.iter()).map(|way| (*way, mix.clone(), repetition)));
                let each = mix.members.iter().map(|m| Mix::alone(*m));
                alone.extend(each.map(|mix| (Way::Linux, mix, repetition)));
            }
        }
        self.run_all(alone);
        self.run_all(keys);
    }

    fn run_all(&self, mut keys: Vec<Key>) {
        let mut seen = std::collections::HashSet::new();
        keys.retain(|key| !self.lock().contains_key(key) && seen.insert(key.clone()));
        keys.sort_by_key(|(_, mix, repetition)| {
            (*repetition, std::cmp::Reverse(mix.members.len()))
        });
        let ended = AtomicU64::new(0);
        keys.par_iter().with_max_len(1).for_each(|key| {
            let found = self.run(key);
            self.lock().insert(key.clone(), found);
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(show) = self.progress {
                show("mixes", ended, keys.len() as u64);
            }
        });
    }

    /// What a case comes to.
    pub(super) fn outcome(&self, case: &Case) -> Result<Outcome, String> {
        outcome(&self.model, case, (self.stop, &self.refs))
    }

    /// References performed so far.
    pub(super) fn refs(&self) -> u64 {
        self.refs.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Known>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn known(&self, key: &Key) -> Known {
        let known = self.lock().get(key).cloned();
        known.unwrap_or_else(|| Err("it was not run".to_owned()))
    }

    /// Speed together over speed alone under Linux, of each program, repetition by repetition.
    pub(super) fn relative(&self, mix: &Mix, way: Way) -> Result<Vec<Sample>, String> {
        let mut all: Vec<Vec<f64>> = vec![Vec::new(); mix.members.len()];
        for repetition in 0..self.repetitions {
            let ran = self.known(&(way, mix.clone(), repetition))?;
            for (at, member) in mix.members.iter().enumerate() {
                let alone = self.known(&(Way::Linux, Mix::alone(*member), repetition))?;
                all[at].push(ran.did[at].pace / alone.did[0].pace);
            }
        }
        Ok(all.into_iter().map(Sample::new).collect())
    }

    /// The weighted speedup of a mix.
    pub(super) fn weighted(&self, mix: &Mix, way: Way) -> Found {
        let relative = self.relative(mix, way)?;
        let sum = |i: usize| relative.iter().map(|s| s.values[i]).sum::<f64>();
        Ok((0..self.repetitions as usize).map(sum).collect())
    }

    /// Gain of a way over another in weighted speedup, in percent.
    pub(super) fn gain(&self, mix: &Mix, way: Way, over: Way) -> Found {
        let over = self.weighted(mix, over)?;
        crate::row::change(&over, &self.weighted(mix, way)?)
    }

    fn run(&self, (way, mix, repetition): &Key) -> Known {
        unless_stopped(self.stop)?;
        let seed = self.seed.wrapping_add(u64::from(*repetition));
        let mut places: Vec<u16> = CORES[..mix.members.len().max(4)].to_vec();
        let mut setups = Vec::new();
        let refs = self.warmup + self.budget;
        for (at, member) in mix.members.iter().enumerate() {
            let words = format!("{} place {at}", mix.name);
            let place = draw(seed, &words, mix.number) % places.len() as u64;
            let core = places.swap_remove(place as usize);
            setups.push(self.setup(*member, core, seed, refs.saturating_mul(LIVES))?);
        }
        let threads = |m: &(usize, u32)| self.programs[m.0].threads;
        let is_threaded = mix.members.iter().any(|m| threads(m) > 1);
        let is_curve = mix.members.len() == 1 && !is_threaded;
        let boot = Boot::new(frames(*way), Some(draw(seed, "memory", 0)));
        let outcome = self.outcome(&Case {
            curve: is_curve.then(|| divided().request(self.spec)),
            ..Case::new(self.spec, boot, setups, machine_seed(seed))
        })?;
        let cycle_ps = 1e12 / self.spec.core.clock.0 as f64;
        let regions = outcome.programs.iter().map(|p| &p.region);
        let did = regions.map(|r| {
            let c = &r.counters;
            let cycles = r.time.0 as f64 / cycle_ps;
            Did {
                pace: r.refs as f64 / cycles,
                ipc: c.instructions as f64 / cycles,
                lines: per_mille(r, c.memory_reads + c.prefetch_reads),
            }
        });
        let parts = outcome.hvr.last().map(|event| &event.programs);
        let parts = parts.into_iter().flatten();
        Ok(Ran {
            did: did.collect(),
            curve: outcome.programs.first().map(curve).unwrap_or_default(),
            parts: parts.map(|(_, class, own)| (*class, own.clone())).collect(),
        })
    }

    fn ready(&self, at: usize, seed: u64, refs: u64) -> Result<Ready, String> {
        let known = |r: &Self| {
            let ready = r.ready.lock().unwrap_or_else(PoisonError::into_inner);
            ready.get(&(at, seed, refs)).cloned()
        };
        if let Some(ready) = known(self) {
            return Ok(ready);
        }
        let made = self.programs[at].ready(&self.inputs, seed, refs)?;
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(ready.entry((at, seed, refs)).or_insert(made).clone())
    }

    /// A program on a hardware thread, met at its drawn place. Built-in ones make so many
    /// references after their set-up; recorded ones have what they have.
    pub(super) fn setup(
        &self,
        (at, copy): (usize, u32),
        core: u16,
        seed: u64,
        refs: u64,
    ) -> Result<ProgramSetup, String> {
        let program = &self.programs[at];
        let ready = self.ready(at, seed, refs)?;
        let is_threaded = program.threads > 1;
        let part = |refs: u64| ((refs as f64 * self.shares[at]) as u64).max(1);
        let places = (ready.spread / self.places).max(1);
        Ok(ProgramSetup {
            name: program.name.clone(),
            input: ready.input.clone(),
            cores: match is_threaded {
                true => CoreSet::first(CORES.len() as u32),
                false => CoreSet::from_bits(1 << core),
            },
            colors: ColorSetup::default(),
            stay: Stay {
                class: self.classes[at],
                ..Stay::default()
            },
            start: Picos(0),
            waits: false,
            measured: true,
            skip: 0,
            // Not passed over: it has the pages then that it had filled (protocol).
            prime: ready.prime + share_of(places, draw(seed, &program.name, 1 + u64::from(copy))),
            marks_ready: ready.marks_ready,
            warmup: part(self.warmup),
            budget: part(self.budget),
            each: is_threaded,
        })
    }
}

/// Events for 1000 instructions.
fn per_mille(region: &Region, events: u64) -> f64 {
    1000.0 * events as f64 / region.counters.instructions as f64
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use piebald_hw::presets;
    use piebald_sim::EPOCH;

    use super::*;
    use crate::{
        Hooks, Options,
        hvr::{
            form::Form,
            programs::{Program, parse},
            rows::Runs,
            ways::Way,
        },
    };

    /// Two built-in programs, one that fits everywhere and a stream.
    pub(in super::super) fn programs() -> Vec<Program> {
        let entry = |name: &str, builtin: &str| {
            format!(
                "[[program]]\nname = \"{name}\"\nstands_for = \"\"\nclass = \"\"\n\
                 builtin = \"{builtin}\"\nwhy = \"small enough to be run in a test\"\n"
            )
        };
        let [a, b] = [entry("small", "gups:64KiB"), entry("stream", "triad:1MiB")];
        parse(&format!("schema = 1\n{a}{b}")).expect("a list")
    }

    /// All that the mix of both programs gives with these settings.
    fn ran(store: Option<&Arc<Store>>, spec: &MachineSpec, seed: u64) -> String {
        let programs = programs();
        let options = Options {
            quick: true,
            seed,
            budget_refs: Some(2000),
            ..Options::default()
        };
        let nobody = |_: &crate::Wanted<'_>, _: &Path| Err("nothing is recorded".to_owned());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &nobody,
            store,
        };
        let classes = [Some(Class::Ccf), Some(Class::Llct)];
        let list = (&programs[..], &classes[..], &[1.0, 0.5][..]);
        let form = Form::new(&options);
        let runs = Runs::new(spec, list, form, &options, hooks);
        let mix = Mix {
            name: "t",
            number: 0,
            members: vec![(0, 0), (1, 0)],
        };
        let ways = [Way::Linux, Way::Hvr];
        runs.bench.prepare(std::slice::from_ref(&mix), &ways);
        let alone = mix.members.iter().map(|m| (Way::Linux, Mix::alone(*m)));
        let keys = ways.map(|way| (way, mix.clone())).into_iter().chain(alone);
        let done = runs.bench.done.lock().expect("no run failed");
        let of = |(way, mix)| done[&(way, mix, 0)].clone().expect("it ran");
        let all: Vec<Ran> = keys.map(of).collect();
        assert!(all[1].parts.len() == 2 && all[0].did.len() == 2, "{all:?}");
        format!("{all:?} {}", runs.refs())
    }

    #[test]
    fn what_was_kept_is_what_was_run_and_only_of_the_same_code_and_settings() {
        let folder = tempfile::tempdir().expect("a folder");
        let spec = presets::load("i7-860").expect("the machine");
        let open = |epoch| Arc::new(Store::open(folder.path(), epoch).expect("a store"));
        let found = |store: &Store| (store.tally().found, store.tally().kept);
        let without = ran(None, &spec, 1);
        let store = open(EPOCH);
        assert_eq!(ran(Some(&store), &spec, 1), without);
        assert_eq!(found(&store), (0, 4));
        let store = open(EPOCH);
        assert_eq!(ran(Some(&store), &spec, 1), without);
        assert_eq!(found(&store), (4, 0));
        let seeded = ran(Some(&store), &spec, 2);
        assert_ne!(seeded, without);
        let mut other = spec.clone();
        other.cache[1].ways *= 2;
        assert_ne!(ran(Some(&store), &other, 1), without);
        assert_eq!(found(&store), (4, 8));
        let store = open("other code");
        assert_eq!(ran(Some(&store), &spec, 1), without);
        assert_eq!(found(&store), (0, 4));
    }

    #[test]
    fn mixes_have_what_is_wanted_and_repeat_only_what_is_short() {
        let (few, many) = ([1, 2], [3, 4, 5, 6, 7]);
        let mix = Mix::drawn(("t", 3), &[(&few, 3), (&many, 5)]).expect("a mix");
        let mut members = mix.members.clone();
        members.sort();
        assert_eq!(members.len(), 8);
        members.dedup();
        assert_eq!(members.len(), 8, "{members:?}");
        assert!(members.iter().filter(|m| m.0 <= 2).count() == 3);
        assert_eq!(members.iter().filter(|m| m.1 == 1).count(), 1);
        assert_eq!(
            Mix::drawn(("t", 3), &[(&few, 3), (&many, 5)]),
            Some(mix.clone())
        );
        assert_ne!(Mix::drawn(("t", 4), &[(&few, 3), (&many, 5)]), Some(mix));
        assert_eq!(Mix::drawn(("t", 0), &[(&[], 1)]), None);
        // Two parts with the same programs share none.
        let twice = Mix::drawn(("t", 1), &[(&many, 2), (&many, 3)]).expect("a mix");
        assert!(twice.members.iter().all(|m| m.1 == 0), "{twice:?}");
    }
}
