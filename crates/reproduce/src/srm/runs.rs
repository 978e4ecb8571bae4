//! Cases: which programs run where, on what system; and what came out, repetition by repetition.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use piebald_hw::{Features, disk, spec::MachineSpec};
use piebald_lab::colors;
use piebald_os_model::{
    file::{FileConfig, Layout},
    kernel::OnLimit,
    replace::PolicySpec,
};
use piebald_policy::srm::Config;
use piebald_report::Sample;
use piebald_sim::{
    Boot, Case as Run, ColorSetup, Files, FrameRule, IoUse, Model, Outcome, ProgramSetup, Region,
    Stay, Zone,
};
use piebald_units::{Bytes, ColorAsk, CoreSet, Lba, Picos};
use rayon::prelude::*;

use super::{
    form::Form,
    inputs::List,
    shelf::{Ready, Shelf},
    sources::{Again, Place, Source},
};
use crate::{
    Hooks, Options,
    experiment::{draw, machine_seed, outcome},
    row::{Found, change},
};

/// Programs start within this time of one another.
const START_SPREAD_PS: u64 = 100_000_000;
/// Aged memories that are kept: those of a repetition on each machine.
const KEPT_HISTORIES: usize = 4;
/// The disk, and pages of swap space on it.
const DISK: &str = "wd400bb";
const SWAP_PAGES: u32 = 1 << 18;

/// References by which it is found how much a program copies.
const PROBED: u64 = 20_000;

/// What decides where a block of a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Setting {
    /// Linux 2.6.30 as it is.
    Vanilla,
    /// What is read before lies in one colour, by a wish of who reads it.
    OneColor,
    /// SRM-buffer with this threshold, in pages.
    Srm(u32),
    /// The same by the colours that the last level would have without a hash.
    Bits(u32),
}

/// How a program is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Part {
    /// In its memory: complete iterations.
    Memory,
    /// Anywhere in its life.
    File,
    /// From here on, so many references to warm up and so many measured.
    Exactly(Place, u64, u64),
}

/// A program of a case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Member {
    pub source: Source,
    pub core: u32,
    pub part: Part,
}

/// Programs that run together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Case {
    /// Name of the list.
    pub machine: &'static str,
    /// Memory instead of the list's, fresh.
    pub memory: Option<u64>,
    /// Without caches: no time is looked at.
    pub plain: bool,
    /// Prefetchers off.
    pub unfetched: bool,
    pub setting: Setting,
    /// What loads the page cache, one after another.
    pub before: Vec<Source>,
    pub members: Vec<Member>,
}

impl Case {
    /// One of the members by itself; `self` if it has no other.
    pub(super) fn alone(&self, member: usize) -> Self {
        Self {
            members: self.members.get(member).cloned().into_iter().collect(),
            ..self.clone()
        }
    }

    /// The same on another system.
    pub(super) fn under(&self, setting: Setting) -> Self {
        Self {
            setting,
            ..self.clone()
        }
    }
}

/// What a member did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Did {
    pub time_ps: f64,
    /// Last-level misses per million instructions.
    pub misses: f64,
    pub io: IoUse,
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub members: Vec<Did>,
    pub zone: Zoned,
}

/// The coloured zone in a run; not a number without one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zoned {
    /// Share of memory just after the last refill, in percent.
    pub refilled: f64,
    /// Most of it after any refill, in percent.
    pub largest: f64,
    /// Sequences that began.
    pub sequences: f64,
    /// Of them, those that share a colour with another.
    pub shared: f64,
}

impl Default for Zoned {
    fn default() -> Self {
        Self {
            refilled: f64::NAN,
            largest: f64::NAN,
            sequences: f64::NAN,
            shared: f64::NAN,
        }
    }
}

/// Runs cases and keeps what came out.
pub(super) struct Runs<'a> {
    list: &'a List,
    form: &'a Form,
    shelf: Shelf<'a>,
    hooks: Hooks<'a>,
    seed: u64,
    model: Model,
    done: BTreeMap<(Case, u32), Result<Done, String>>,
    refs: AtomicU64,
}

impl Runs<'_> {
    /// Time of a member against its time alone, in percent.
    pub(super) fn slowdown(&self, case: &Case, member: usize) -> Found {
        let alone = self.sample(&case.alone(member), 0, |d| d.time_ps)?;
        change(&alone, &self.sample(case, member, |d| d.time_ps)?)
    }

    /// Change of a member's time from one case to another, in percent.
    pub(super) fn time_change(&self, from: &Case, to: &Case, member: usize) -> Found {
        let from = self.sample(from, member, |d| d.time_ps)?;
        change(&from, &self.sample(to, member, |d| d.time_ps)?)
    }

    /// Change of a member's misses, in percent.
    pub(super) fn miss_change(&self, from: &Case, to: &Case, member: usize) -> Found {
        let from = self.sample(from, member, |d| d.misses)?;
        change(&from, &self.sample(to, member, |d| d.misses)?)
    }
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        list: &'a List,
        form: &'a Form,
        options: &'a Options,
        hooks: Hooks<'a>,
    ) -> Self {
        Self {
            list,
            form,
            shelf: Shelf::new(list, options, hooks),
            hooks,
            seed: options.seed,
            model: hooks.model(KEPT_HISTORIES),
            done: BTreeMap::new(),
            refs: AtomicU64::new(0),
        }
    }

    /// References simulated so far.
    pub(super) fn refs(&self) -> u64 {
        self.refs.load(Ordering::Relaxed)
    }

    /// Where programs are taken from.
    pub(super) const fn shelf(&self) -> &Shelf<'a> {
        &self.shelf
    }

    pub(super) const fn form(&self) -> &Form {
        self.form
    }

    pub(super) const fn list(&self) -> &'a List {
        self.list
    }

    /// Seed of a repetition.
    pub(super) const fn draw(&self, repetition: u32) -> u64 {
        self.seed.wrapping_add(repetition as u64)
    }

    /// Runs cases that were not run before, in all repetitions, several at a time.
    pub(super) fn run(&mut self, stage: &str, cases: &[Case]) {
        let wanted: BTreeSet<(u32, &Case)> = (0..self.form.repetitions)
            .flat_map(|r| cases.iter().map(move |c| (r, c)))
            .collect();
        let missing = |(r, c): &(u32, &Case)| !self.done.contains_key(&((*c).clone(), *r));
        let jobs: Vec<(u32, &Case)> = wanted.into_iter().filter(missing).collect();
        let (ended, planned) = (AtomicU64::new(0), jobs.len() as u64);
        let one = |(repetition, case): (u32, &Case)| {
            let stopped = self.hooks.stop.is_some_and(|s| s.load(Ordering::Relaxed));
            let result = match stopped {
                true => Err("interrupted".to_owned()),
                false => self.one(case, repetition),
            };
            let n = ended.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = self.hooks.progress {
                progress(stage, n, planned);
            }
            ((case.clone(), repetition), result)
        };
        let found: Vec<_> = jobs.into_par_iter().with_max_len(1).map(one).collect();
        self.done.extend(found);
    }

    /// A figure of a case's member in all repetitions.
    ///
    /// # Errors
    /// Why a run failed; a case that was not run.
    pub(super) fn sample(
        &self,
        case: &Case,
        member: usize,
        of: impl Fn(&Did) -> f64,
    ) -> Result<Sample, String> {
        let mut values = Vec::new();
        for repetition in 0..self.form.repetitions {
            let done = self.done.get(&(case.clone(), repetition));
            let done = done.ok_or("not run")?.as_ref().map_err(Clone::clone)?;
            let did = done.members.get(member).ok_or("no such program")?;
            values.push(of(did));
        }
        Ok(Sample::new(values))
    }

    /// A figure of a case's zone in all repetitions.
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    pub(super) fn zone(&self, case: &Case, of: impl Fn(&Zoned) -> f64) -> Result<Sample, String> {
        let one = |repetition| {
            let done = self.done.get(&(case.clone(), repetition));
            let done = done.ok_or("not run")?.as_ref().map_err(Clone::clone)?;
            Ok(of(&done.zone))
        };
        let values: Result<Vec<f64>, String> = (0..self.form.repetitions).map(one).collect();
        Ok(Sample::new(values?))
    }

    fn one(&self, case: &Case, repetition: u32) -> Result<Done, String> {
        let seed = self.draw(repetition);
        let mut spec = self.list.machine(case.machine)?;
        if let Some(memory) = case.memory {
            spec.memory.size = Bytes(memory);
        }
        let before = case.before.iter().map(|s| self.before(s, case, seed));
        let before = before.collect::<Result<Vec<_>, _>>()?;
        let alone = case.members.len() == 1;
        let members = case.members.iter().map(|m| self.member(m, seed, alone));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let features = match case.plain {
            true => Features::NONE,
            false => Features {
                prefetch: !case.unfetched,
                ..Features::ALL
            },
        };
        // One controller decodes a power of two: the kernel leaves the rest of 3 GiB alone.
        let mut hardware = spec.clone();
        if case.memory.is_some() {
            hardware.memory.size = Bytes(spec.memory.size.0.next_power_of_two());
        }
        let run = Run {
            features,
            before,
            ..Run::new(
                &hardware,
                self.boot(&spec, case, seed)?,
                members,
                machine_seed(seed),
            )
        };
        let outcome = outcome(&self.model, &run, (self.hooks.stop, &self.refs))?;
        done(&spec, &outcome)
    }

    /// The kernel with files: the seam between the systems.
    fn boot(&self, spec: &MachineSpec, case: &Case, seed: u64) -> Result<Boot, String> {
        let frames = match case.setting {
            Setting::Vanilla | Setting::Srm(_) | Setting::Bits(_) => FrameRule::Stock,
            Setting::OneColor => FrameRule::Owned(colors::all_colors(spec)?),
        };
        let mut known = spec.clone();
        if let Setting::Bits(_) = case.setting {
            known.cache.iter_mut().for_each(|c| c.slice_hash.clear());
        }
        let zone = match case.setting {
            Setting::Srm(threshold) | Setting::Bits(threshold) => Some(Zone {
                map: colors::all_colors(&known)?,
                config: Config {
                    threshold,
                    ..Config::PAPER
                },
            }),
            Setting::Vanilla | Setting::OneColor => None,
        };
        let aged = (case.memory.is_none()).then(|| draw(seed, "memory", 0));
        Ok(Boot {
            memory: Some(spec.memory.size),
            files: Some(Files { zone, ..files()? }),
            ..Boot::new(frames, aged)
        })
    }

    fn before(&self, source: &Source, case: &Case, seed: u64) -> Result<ProgramSetup, String> {
        let refs = self.form.recorded(source);
        let ready = self.shelf.take(source, seed, refs)?;
        let ready = match ready.program.threads() {
            1 => {
                let free = Source::Free(Box::new(source.clone()));
                self.shelf.take(&free, seed, refs)?
            }
            _ => ready,
        };
        let wish = ColorSetup {
            reserve: Some(ColorAsk::Count(1)),
            on_limit: OnLimit::Borrow,
            ..ColorSetup::default()
        };
        Ok(ProgramSetup {
            colors: match case.setting {
                Setting::OneColor => wish,
                _ => ColorSetup::default(),
            },
            ..setup(ready, source, 0)
        })
    }

    /// Warm-up and measured references of a program that reads files. Built-in ones are
    /// measured by what their calls copy too, since some make two references for a
    /// call.
    fn in_files(&self, source: &Source, seed: u64) -> Result<(u64, u64), String> {
        let weight = match source {
            Source::Recorded(..) | Source::Backend(_) => 1.0,
            _ => self.shelf.take(source, seed, PROBED)?.places.weight(),
        };
        let part = |refs: u64| ((refs as f64 / weight) as u64).max(1);
        Ok((part(self.form.warmup_refs), part(self.form.budget_refs)))
    }

    fn member(&self, member: &Member, seed: u64, alone: bool) -> Result<ProgramSetup, String> {
        let source = &member.source;
        let words = format!("{source:?}");
        let start = match alone {
            true => 0,
            false => draw(seed, &words, u64::from(member.core)) % START_SPREAD_PS,
        };
        let (skip, warmup, budget, refs) = match member.part {
            Part::Exactly(place, warmup, budget) => {
                (place.all, warmup, budget, self.form.recorded(source))
            }
            Part::File => {
                let (warmup, budget) = self.in_files(source, seed)?;
                let refs = match source {
                    Source::Recorded(..) | Source::Backend(_) => 0,
                    _ => 2 * (warmup + budget),
                };
                let places = self.shelf.take(source, seed, refs)?.places;
                let spread = match source {
                    Source::Recorded(..) => places.end.all,
                    // Its first references have to come first: it is not started again.
                    Source::Backend(_) => places.end.data.saturating_sub(warmup + budget),
                    _ => (places.end.all - places.ready.all) / 2,
                };
                let skip = places.ready.all + draw(seed, &words, 1) % spread.max(1);
                (skip, warmup, budget, refs)
            }
            Part::Memory => self.in_memory(source, &words, seed)?,
        };
        let ready = self.shelf.take(source, seed, refs)?;
        let again = match ready.prime {
            0 => Ready {
                program: Arc::new(Again(ready.program)),
                ..ready
            },
            _ => ready,
        };
        Ok(ProgramSetup {
            stay: Stay::default(),
            start: Picos(start),
            // Not passed over: an array that was filled before, and is only read from here on,
            // would be the page of zeros.
            prime: again.prime + skip,
            warmup,
            budget,
            ..setup(again, source, member.core)
        })
    }

    /// Where a program in memory is met, its warm-up and its measured part, and the references
    /// of its recording.
    fn in_memory(
        &self,
        source: &Source,
        words: &str,
        seed: u64,
    ) -> Result<(u64, u64, u64, u64), String> {
        let Source::Builtin(text) = source else {
            return Err(format!("{words}: only built-in programs have iterations"));
        };
        let (mut warmup, mut budget) = (self.form.warmup_refs, self.form.budget_refs);
        let mut spread = self.form.warmup_refs / 2;
        if self.form.complete_iterations {
            let one = self.shelf.iteration(text, seed)?.max(1);
            warmup = warmup.max(2 * one);
            budget = one * budget.div_ceil(one).max(2);
            spread = one;
        }
        let passed = draw(seed, words, 1) % spread.max(1);
        // Fetches are passed over too: some more than are asked for.
        let refs = warmup + budget + spread + spread / 2;
        let places = self.shelf.take(source, seed, refs)?.places;
        Ok((places.ready.all + passed, warmup, budget, refs))
    }
}

fn setup(ready: Ready, source: &Source, core: u32) -> ProgramSetup {
    ProgramSetup {
        name: format!("{source:?}"),
        input: ready.program,
        prime: ready.prime,
        cores: CoreSet::from_bits(1 << core),
        colors: ColorSetup::default(),
        stay: Stay::default(),
        start: Picos(0),
        waits: false,
        measured: true,
        skip: 0,
        marks_ready: false,
        warmup: 0,
        budget: 0,
        each: false,
    }
}

/// The file side of Linux 2.6.30.
fn files() -> Result<Files, String> {
    Ok(Files {
        replace: PolicySpec::plain("linux-2.6.30"),
        config: FileConfig::linux_2_6_30(),
        layout: Layout::Packed {
            start: Lba(0),
            gap_pages: 0,
        },
        disk: disk::by_name(DISK).map_err(|e| e.to_string())?,
        swap_pages: SWAP_PAGES,
        reserve: None,
        zone: None,
    })
}

fn done(spec: &MachineSpec, outcome: &Outcome) -> Result<Done, String> {
    let levels = spec.cache.iter().map(|c| c.level).max().unwrap_or(1);
    let last = usize::from(levels).clamp(1, 3) - 1;
    let did = |region: &Region| {
        let instructions = region.counters.instructions as f64;
        Did {
            time_ps: region.time.0 as f64,
            misses: region.counters.level[last].misses as f64 / instructions * 1e6,
            io: region.io,
        }
    };
    let members = outcome.programs.iter();
    match members.clone().any(|p| p.region.ended_early) {
        true => Err("a program ended before its references were used up".to_owned()),
        false => Ok(Done {
            members: members.map(|p| did(&p.region)).collect(),
            zone: zoned(spec, outcome),
        }),
    }
}

fn zoned(spec: &MachineSpec, outcome: &Outcome) -> Zoned {
    let Some(zone) = outcome.paging.as_ref().and_then(|p| p.zone) else {
        return Zoned::default();
    };
    let share = |pages: u32| f64::from(pages) / (spec.memory.size.0 >> 12) as f64 * 100.0;
    Zoned {
        refilled: share(zone.refilled),
        largest: share(zone.largest),
        sequences: zone.counters.sequences as f64,
        shared: zone.counters.shared as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(setting: Setting) -> Case {
        let read = Source::Builtin("scan:256KiB".to_owned());
        let member = |source: Source, core, part| Member { source, core, part };
        let sort = Source::Builtin("mergesort:64KiB".to_owned());
        Case {
            machine: "pe1900",
            memory: Some(256 << 20),
            plain: false,
            unfetched: false,
            setting,
            before: vec![read.clone()],
            members: vec![member(sort, 0, Part::Memory), member(read, 1, Part::File)],
        }
    }

    /// Times of both programs and alone, pages of files and waits for them, and the zone.
    fn figures(setting: Setting) -> (Vec<f64>, [u64; 2], [f64; 2]) {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        let options = Options {
            repetitions: Some(1),
            budget_refs: Some(30_000),
            seed: 7,
            ..Options::default()
        };
        let form = Form::new(&options);
        let record = |_: &crate::Wanted<'_>, _: &std::path::Path| Err(String::new());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &record,
            store: None,
        };
        let mut runs = Runs::new(&list, &form, &options, hooks);
        let case = case(setting);
        runs.run("test", &[case.clone(), case.alone(0), case.alone(1)]);
        let of = |case: &Case, member, of: &dyn Fn(&Did) -> f64| {
            let sample = runs.sample(case, member, of);
            sample.unwrap_or_else(|e| panic!("{e}")).mean
        };
        let time = |d: &Did| d.time_ps;
        let alone = |member| of(&case.alone(member), 0, &time);
        let times = vec![of(&case, 0, &time), of(&case, 1, &time), alone(0), alone(1)];
        let io = [
            of(&case, 1, &|d| d.io.pages as f64) as u64,
            of(&case, 1, &|d| d.io.waits as f64) as u64,
        ];
        let zone = |of: fn(&Zoned) -> f64| runs.zone(&case, of).map_or(f64::NAN, |s| s.mean);
        let never = runs.sample(&case.under(Setting::Srm(1)), 0, time);
        assert_eq!(never, Err("not run".to_owned()));
        (times, io, [zone(|z| z.refilled), zone(|z| z.sequences)])
    }

    #[test]
    fn a_program_is_met_with_the_pages_that_it_had_filled() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        let options = Options {
            budget_refs: Some(30_000),
            ..Options::default()
        };
        let form = Form::new(&options);
        let record = |_: &crate::Wanted<'_>, _: &std::path::Path| Err(String::new());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &record,
            store: None,
        };
        let runs = Runs::new(&list, &form, &options, hooks);
        let source = Source::Builtin("smm:1000,nz=10000".to_owned());
        let member = Member {
            source: source.clone(),
            core: 0,
            part: Part::Memory,
        };
        let setup = runs.member(&member, 7, true);
        let setup = setup.unwrap_or_else(|e| panic!("{e}"));
        let ready = runs.shelf.take(&source, 7, 100_000);
        let ready = ready.unwrap_or_else(|e| panic!("{e}")).places.ready.all;
        assert!(ready > 20_000 && setup.prime >= ready, "{}", setup.prime);
        assert_eq!(setup.skip, 0);
    }

    #[test]
    fn memory_need_not_be_a_power_of_two() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        let options = Options {
            repetitions: Some(1),
            budget_refs: Some(1000),
            ..Options::default()
        };
        let form = Form::new(&options);
        let record = |_: &crate::Wanted<'_>, _: &std::path::Path| Err(String::new());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &record,
            store: None,
        };
        let mut runs = Runs::new(&list, &form, &options, hooks);
        let mut case = case(Setting::Srm(16)).alone(0);
        case.memory = Some(192 << 20);
        runs.run("test", std::slice::from_ref(&case));
        let time = runs.sample(&case, 0, |d| d.time_ps);
        assert!(time.is_ok_and(|t| t.mean > 0.0));
    }

    #[test]
    fn programs_run_together_on_files_that_were_loaded_before() {
        let (times, io, zone) = figures(Setting::Vanilla);
        assert!(times.iter().all(|t| *t > 0.0), "{times:?}");
        assert!(io[0] > 0 && io[1] == 0, "{io:?}");
        assert!(zone[0].is_nan() && zone[1].is_nan());
        assert_eq!(figures(Setting::Vanilla).0, times);
    }

    #[test]
    fn the_zone_is_there_with_srm_buffer_alone() {
        let (times, io, zone) = figures(Setting::Srm(32));
        assert!(times.iter().all(|t| *t > 0.0), "{times:?}");
        assert!(io[0] > 0 && io[1] == 0, "{io:?}");
        // 64 pages in sequences of 32; 33 pages of each of 64 colours, of 65536, at least.
        assert_eq!(zone[1], 2.0);
        assert!((3.22..10.0).contains(&zone[0]), "{zone:?}");
        let (colored, _, none) = figures(Setting::OneColor);
        assert!(colored.iter().all(|t| *t > 0.0) && none[0].is_nan());
    }
}
