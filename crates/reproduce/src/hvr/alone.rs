//! Programs alone with one to eight eighths of the last-level cache (section 4.1, Figure 5), and
//! the class that they have by that.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use piebald_hw::spec::MachineSpec;
use piebald_lab::colors::color_map;
use piebald_policy::hvr::{Borders, Class, Timed};
use piebald_report::Sample;
use piebald_sim::{Boot, Case, ColorSetup, FrameRule, Model, ProgramSetup, Region, Stay};
use piebald_units::{ColorAsk, ColorSet, CoreSet, Picos};
use rayon::prelude::*;

use super::programs::{Program, Ready};
use crate::experiment::{draw, machine_seed, outcome, share_of};

/// Parts of the cache that programs are given.
pub const EIGHTHS: u32 = 8;

/// All sizes, in eighths.
pub const SIZES: &[u32] = &[1, 2, 3, 4, 5, 6, 7, EIGHTHS];

/// Those that decide a program's class.
pub const DECIDING: &[u32] = &[1, EIGHTHS / 2, EIGHTHS];

/// "Significant", as a share of the time with the whole cache (protocol).
const SIGNIFICANT: f64 = Borders::OURS.significant_bp as f64 / 10_000.0;

/// Lines from memory for 1000 instructions from which a program that gains nothing by a cache is
/// one that sweeps it (protocol).
const SWEEPING_LINES: f64 = Borders::OURS.sweeping_lines as f64;

/// How profiles are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// References before the measured ones.
    pub warmup_refs: u64,
    /// Measured references.
    pub budget_refs: u64,
    /// Draws of memory and of where programs are met.
    pub repetitions: u32,
    /// Seed of all draws.
    pub seed: u64,
    /// Sizes of the cache that are run, in eighths, rising; the last is [`EIGHTHS`].
    pub sizes: &'static [u32],
}

impl Default for Form {
    /// As the protocol says.
    fn default() -> Self {
        Self {
            warmup_refs: 15_000_000,
            budget_refs: 15_000_000,
            repetitions: 3,
            seed: 42,
            sizes: SIZES,
        }
    }
}

/// What a program did with a part of the cache, repetition by repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Time of the measured references, in picoseconds.
    pub time_ps: Sample,
    /// Instructions per cycle.
    pub ipc: Sample,
    /// Last-level misses for 1000 instructions, of demands that were not prefetched.
    pub misses: Sample,
    /// Lines read from memory, by demands and prefetches, for 1000 instructions.
    pub lines: Sample,
}

/// A program alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Sizes of the cache in eighths, rising, and what it did with them.
    pub points: Vec<(u32, Point)>,
    /// Runs in which the program ended before it had made its references.
    pub short: u32,
}

impl Profile {
    /// Time with so many eighths over that with all, less 1; `None` if there is no such point.
    pub fn loss(&self, eighths: u32) -> Option<Sample> {
        let (_, at) = self.points.iter().find(|(size, _)| *size == eighths)?;
        self.whole()?.time_ps.slowdown(&at.time_ps)
    }

    /// With all of the cache.
    pub fn whole(&self) -> Option<&Point> {
        let (size, point) = self.points.last()?;
        (*size == EIGHTHS).then_some(point)
    }

    /// Its class, by the means; `None` without points or numbers.
    pub fn class(&self) -> Option<Class> {
        let [least, half] = [self.loss(1)?.mean, self.loss(EIGHTHS / 2)?.mean];
        let lines = self.whole()?.lines.mean;
        let known = [least, half, lines].iter().all(|v| v.is_finite());
        known.then(|| class_of(least, half, lines))
    }

    /// Whether the interval of a number that decides its class spans the border; `false` with one
    /// repetition, which has no intervals.
    pub fn is_on_a_border(&self) -> bool {
        let spans = |sample: Option<Sample>, border: f64| {
            let ends = sample.and_then(|s| s.interval());
            ends.is_some_and(|(low, high)| low < border && border <= high)
        };
        let lines = self.whole().map(|p| p.lines.clone());
        match self.class() {
            Some(Class::Ccf | Class::Llct) => {
                spans(self.loss(1), SIGNIFICANT) || spans(lines, SWEEPING_LINES)
            }
            _ => spans(self.loss(1), SIGNIFICANT) || spans(self.loss(EIGHTHS / 2), SIGNIFICANT),
        }
    }
}

/// The class of a program by its losses with one eighth and with half of the cache, and by its
/// lines from memory for 1000 instructions with all of it, all finite.
pub fn class_of(least: f64, half: f64, lines: f64) -> Class {
    const ALL: f64 = 1e12;
    let time = |loss: f64| (ALL * (1.0 + loss)).round() as u64;
    let timed = Timed {
        time: [time(least), time(half), ALL as u64],
        instructions: ALL as u64,
        lines: (ALL / 1000.0 * lines).round() as u64,
    };
    // There is time, and there are instructions.
    Borders::OURS.classify(&timed).unwrap_or(Class::Ccf)
}

/// What is under way: runs that have ended, and all.
pub type Show<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// Measures programs, several runs at a time; the profiles are in the order of the programs. The
/// references of all runs are added to `refs`.
///
/// # Errors
/// Of each program: why it could not be run; "interrupted" after `stop`.
pub fn profiles(
    spec: &MachineSpec,
    programs: &[Program],
    inputs: &Path,
    (form, model): (&Form, &Model),
    (stop, refs): (Option<&AtomicBool>, &AtomicU64),
    show: &Show<'_>,
) -> Vec<Result<Profile, String>> {
    let jobs: Vec<(usize, u32)> = (0..programs.len())
        .flat_map(|p| (0..form.repetitions).map(move |r| (p, r)))
        .collect();
    let ended = AtomicUsize::new(0);
    let one = |&(at, repetition): &(usize, u32)| {
        let sweep = Sweep {
            spec,
            form,
            model,
            stop,
            refs,
        };
        let found = sweep.run(&programs[at], inputs, repetition);
        show(ended.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        found
    };
    let mut found = jobs
        .par_iter()
        .with_max_len(1)
        .map(one)
        .collect::<Vec<_>>()
        .into_iter();
    programs
        .iter()
        .map(|_| {
            let runs: Vec<_> = found.by_ref().take(form.repetitions as usize).collect();
            let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
            Ok(profile(spec, form.sizes, &runs))
        })
        .collect()
}

/// The runs of one program and repetition.
struct Sweep<'a> {
    spec: &'a MachineSpec,
    form: &'a Form,
    model: &'a Model,
    stop: Option<&'a AtomicBool>,
    refs: &'a AtomicU64,
}

impl Sweep<'_> {
    /// With one eighth and so on, all in the same draws.
    fn run(
        &self,
        program: &Program,
        inputs: &Path,
        repetition: u32,
    ) -> Result<Vec<Region>, String> {
        let seed = self.form.seed.wrapping_add(u64::from(repetition));
        let refs = self.form.warmup_refs + self.form.budget_refs;
        // The last references of a run may come after the last of a batch.
        let ready = program.ready(inputs, seed, refs + refs / 4)?;
        let sizes = self.form.sizes.iter();
        sizes
            .map(|k| self.with(program, &ready, seed, *k))
            .collect()
    }

    fn with(
        &self,
        program: &Program,
        ready: &Ready,
        seed: u64,
        eighths: u32,
    ) -> Result<Region, String> {
        let map = color_map(self.spec)?;
        let all = map.colors();
        if all % EIGHTHS != 0 {
            return Err(format!(
                "{}: {all} colors; allowed: a multiple of {EIGHTHS}",
                self.spec.name
            ));
        }
        let own = ColorSet::first(all / EIGHTHS * eighths);
        let refs = self.form.warmup_refs + self.form.budget_refs;
        // A program that is met late must not end: it is met where this much is left.
        let spread = ready
            .spread
            .min(ready.spread * 2 - refs.min(ready.spread * 2));
        let setup = ProgramSetup {
            name: program.name.clone(),
            input: ready.input.clone(),
            cores: CoreSet::from_bits(1),
            colors: ColorSetup {
                reserve: Some(ColorAsk::Exactly(own)),
                ..ColorSetup::default()
            },
            stay: Stay::default(),
            start: Picos(0),
            waits: false,
            measured: true,
            skip: 0,
            // Not passed over: it has the pages then that it had filled (protocol).
            prime: ready.prime + share_of(spread, draw(seed, &program.name, 1)),
            marks_ready: ready.marks_ready,
            warmup: self.form.warmup_refs,
            budget: self.form.budget_refs,
            each: false,
        };
        let boot = Boot::new(FrameRule::Owned(map), Some(draw(seed, "memory", 0)));
        let case = Case::new(self.spec, boot, vec![setup], machine_seed(seed));
        let outcome = outcome(self.model, &case, (self.stop, self.refs))?;
        let first = outcome.programs.into_iter().next();
        first
            .map(|p| p.region)
            .ok_or_else(|| "the run had no program".to_owned())
    }
}

/// Puts repetitions together.
fn profile(spec: &MachineSpec, sizes: &[u32], runs: &[Vec<Region>]) -> Profile {
    let cycle_ps = 1e12 / spec.core.clock.0 as f64;
    let point = |k: usize| {
        let of = |f: fn(&Region, f64) -> f64| -> Sample {
            runs.iter().map(|r| f(&r[k], cycle_ps)).collect()
        };
        Point {
            time_ps: of(|r, _| r.time.0 as f64),
            ipc: of(|r, cycle| r.counters.instructions as f64 * cycle / r.time.0 as f64),
            misses: of(|r, _| per_mille(r, r.counters.level[2].misses)),
            lines: of(|r, _| per_mille(r, r.counters.memory_reads + r.counters.prefetch_reads)),
        }
    };
    let short = runs.iter().flatten().filter(|r| r.ended_early).count();
    Profile {
        points: (sizes.iter().copied().enumerate())
            .map(|(at, size)| (size, point(at)))
            .collect(),
        short: u32::try_from(short).unwrap_or(u32::MAX),
    }
}

/// Events for 1000 instructions.
pub(super) fn per_mille(region: &Region, events: u64) -> f64 {
    1000.0 * events as f64 / region.counters.instructions as f64
}

#[cfg(test)]
mod tests {
    use piebald_hw::presets;

    use super::*;
    use crate::hvr::programs::parse;

    #[test]
    fn classes_follow_the_losses_that_the_protocol_states() {
        for (least, half, lines, class) in [
            (0.0, 0.0, 0.0, Class::Ccf),
            (0.099, 0.0, 4.99, Class::Ccf),
            (0.099, 0.0, 5.0, Class::Llct),
            (0.10, 0.099, 50.0, Class::Llcm),
            (0.10, 0.10, 0.0, Class::Llch),
            (3.0, 0.10, 50.0, Class::Llch),
            // Slower with more of the cache: no loss.
            (-0.2, -0.1, 20.0, Class::Llct),
        ] {
            assert_eq!(
                class_of(least, half, lines),
                class,
                "{least} {half} {lines}"
            );
        }
    }

    fn made(times: [[f64; 2]; 3], lines: f64) -> Profile {
        let [least, half, whole] = times;
        let point = |time: [f64; 2]| Point {
            time_ps: time.into_iter().collect(),
            lines: [lines, lines].into_iter().collect(),
            ..Point::default()
        };
        let times = [least, half, half, half, whole, whole, whole, whole];
        Profile {
            points: (1..).zip(times.into_iter().map(point)).collect(),
            short: 0,
        }
    }

    #[test]
    fn losses_are_against_the_whole_cache_and_intervals_mark_borders() {
        let sure = made([[3.0, 3.0], [1.5, 1.5], [1.0, 1.0]], 0.0);
        assert_eq!(sure.loss(1).map(|s| s.mean), Some(2.0));
        assert_eq!(sure.loss(4).map(|s| s.mean), Some(0.5));
        assert_eq!((sure.loss(0), sure.loss(9)), (None, None));
        assert_eq!(sure.class(), Some(Class::Llch));
        assert!(!sure.is_on_a_border());
        let unsure = made([[3.0, 3.0], [1.0, 1.3], [1.0, 1.0]], 0.0);
        assert_eq!(unsure.class(), Some(Class::Llch));
        assert!(unsure.is_on_a_border());
        assert!(
            Profile {
                points: Vec::new(),
                short: 0
            }
            .class()
            .is_none()
        );
    }

    /// Known working sets have known profiles: the knee is where they stop fitting.
    #[test]
    fn programs_of_known_working_sets_have_the_classes_that_follow_from_them() {
        let entry = |name: &str, builtin: &str| {
            format!(
                "[[program]]\nname = \"{name}\"\nstands_for = \"\"\nclass = \"\"\n\
                 builtin = \"{builtin}\"\nwhy = \"of a known working set\"\n"
            )
        };
        let text = format!(
            "schema = 1\n{}{}{}",
            entry("small", "gups:64KiB"),
            entry("middle", "gups:2MiB"),
            entry("stream", "triad:32MiB")
        );
        let programs = parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let spec = presets::load("i7-860").unwrap_or_else(|e| panic!("{e}"));
        let form = Form {
            // Enough to fill the last level.
            warmup_refs: 1_300_000,
            budget_refs: 200_000,
            repetitions: 1,
            seed: 1,
            sizes: DECIDING,
        };
        let found = profiles(
            &spec,
            &programs,
            Path::new("/nowhere"),
            (&form, &Model::keeping(2)),
            (None, &AtomicU64::new(0)),
            &|_, _| {},
        );
        let classes: Vec<_> = found
            .iter()
            .map(|p| p.as_ref().map(Profile::class).map_err(Clone::clone))
            .collect();
        let expected = [Class::Ccf, Class::Llcm, Class::Llct].map(|c| Ok(Some(c)));
        assert_eq!(classes, expected);
    }

    #[test]
    fn a_program_without_a_recording_says_so_and_the_others_are_measured() {
        let programs = crate::hvr::programs::programs().unwrap_or_else(|e| panic!("{e}"));
        let spec = presets::load("i7-860").unwrap_or_else(|e| panic!("{e}"));
        let stop = AtomicBool::new(true);
        let form = Form {
            repetitions: 2,
            ..Form::default()
        };
        let two = &programs[..2];
        let found = profiles(
            &spec,
            two,
            Path::new("/nowhere"),
            (&form, &Model::keeping(2)),
            (Some(&stop), &AtomicU64::new(0)),
            &|_, _| {},
        );
        assert_eq!(found.len(), 2);
        for (program, found) in two.iter().zip(found) {
            let error = found.err().unwrap_or_default();
            assert!(error.contains(&program.name), "{error}");
        }
    }
}
