//! Rainbow (thesis), and beyond.
//!
//! The machine is the thesis's (section 6.1.1): a Xeon W3540 with 12 GiB of memory,
//! prefetchers, hyper-threading and turbo off. SPEC CPU2006 cannot be passed on; its nine
//! programs have stand-ins (`programs.toml`). What the thesis measures over whole
//! runs is measured here over a part of each program, after its set-up.
//!
//! How statements without numbers are judged was written down before the first result:
//! the constants below.

mod beyond;
mod constants;
mod memory;
mod mixes;
mod profiles;

use piebald_experiment::MAX_REFS;
use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use piebald_report::{Reproduction, Target, TargetKind};
use rayon::prelude::*;

use crate::{
    Hooks, Options, ReproduceError, StandIn, System, Wanted, Written,
    experiment::Bench,
    paper::{Paper, Whole},
    row, stand_ins,
};

/// The stand-ins.
pub(crate) const PROGRAMS: &str = include_str!("../../../../reproduce/rainbow/programs.toml");

/// Ids of the targets, in order.
/// Those with a B go beyond the thesis.
pub(crate) const TARGETS: [&str; 12] = [
    "R-1", "R-2", "R-3", "R-4", "R-5", "R-6", "R-7", "R-8", "R-9", "R-B1", "R-B2", "R-B3",
];

/// Targets for which programs are recorded.
const OF_PROGRAMS: [&str; 5] = ["R-2", "R-3", "R-5", "R-6", "R-B2"];

/// Targets whose runs are experiments.
pub(crate) const OF_EXPERIMENTS: [&str; 9] = [
    "R-2", "R-3", "R-4", "R-5", "R-6", "R-8", "R-B1", "R-B2", "R-B3",
];

/// Colours of the machine: slices of 512 KiB.
const COLORS: u32 = 16;

/// a curve that falls may rise by this much from one size to the next, in points.
const RISE_POINTS: f64 = 2.0;
/// the L2 miss rate is flat if it stays within this part of its value with all colours.
const FLAT_SHARE: f64 = 0.05;
/// two miss-rate curves overlap if they are this close, in points, over all sizes.
const OVERLAP_POINTS: f64 = 5.0;
/// two slowdown curves have one shape if they correlate by this much.
const SAME_SHAPE: f64 = 0.9;
/// a slowdown curve that varies by less has no shape to compare, in points.
const NO_SHAPE_POINTS: f64 = 5.0;
/// Table II: slowdown in percent with one colour from which a program is red, and yellow.
const RED: f64 = 25.0;
const YELLOW: f64 = 10.0;

/// How much is run.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// Sizes of a partition, in colours; the last is all of them.
    sizes: Vec<u32>,
    repetitions: u32,
    /// Sizes of the target's partition beside polluters.
    mix_sizes: Vec<u32>,
    mix_repetitions: u32,
    budget_refs: u64,
    warmup_refs: u64,
    /// References that were asked for, instead of the form's and of a row's own.
    asked_refs: Option<u64>,
    seed: u64,
}

impl Form {
    fn new(options: &Options) -> Self {
        let mut form = match options.quick {
            false => Self {
                sizes: (1..=COLORS).collect(),
                repetitions: 10,
                mix_sizes: (1..COLORS).collect(),
                mix_repetitions: 3,
                budget_refs: 20_000_000,
                warmup_refs: 20_000_000,
                asked_refs: None,
                seed: options.seed,
            },
            true => Self {
                sizes: vec![1, 2, 4, 8, COLORS],
                repetitions: 3,
                mix_sizes: vec![2, 8],
                mix_repetitions: 3,
                budget_refs: 3_000_000,
                warmup_refs: 6_000_000,
                asked_refs: None,
                seed: options.seed,
            },
        };
        if let Some(n) = options.repetitions {
            (form.repetitions, form.mix_repetitions) = (n, n);
        }
        if let Some(refs) = options.budget_refs {
            form.asked_refs = Some(refs.clamp(1, MAX_REFS));
            let share = form.warmup_refs as f64 / form.budget_refs as f64;
            form.budget_refs = refs.clamp(1, MAX_REFS);
            form.warmup_refs = ((refs as f64 * share) as u64).min(MAX_REFS);
        }
        form
    }

    /// References and warm-up of a row that has lengths of its own: those, or what was asked for with a warm-up in
    /// proportion.
    fn own(&self, budget: u64, warmup: u64) -> (u64, u64) {
        let asked = |refs: u64| (refs, (refs * warmup / budget).min(MAX_REFS));
        self.asked_refs.map_or((budget, warmup), asked)
    }

    /// References of a recording that every program's part lies in: where a polluter is met is
    /// drawn from the first half.
    const fn recorded(&self) -> u64 {
        2 * (self.budget_refs + self.warmup_refs)
    }
}

/// A recorded stand-in.
pub(crate) struct Subject {
    program: StandIn,
    recording: Result<PathBuf, String>,
}

impl Subject {
    /// Table of a scenario.
    fn table(&self, core: usize, role: &str) -> Option<String> {
        let path = toml::Value::String(self.recording.as_ref().ok()?.display().to_string());
        let name = toml::Value::String(self.program.name.clone());
        Some(format!(
            "[[program]]\nname = {name}\nrecording = {path}\ncores = \"{core}\"\nrole = \"{role}\"\n"
        ))
    }
}

/// The first lines of a scenario.
fn head(form: &Form, title: &str, repetitions: u32) -> String {
    format!(
        "schema = 2\ntitle = \"{title}\"\nseed = {}\nrepetitions = {repetitions}\n\
         budget_refs = \"{}\"\nwarmup_refs = \"{}\"\ntogether = \"each-target\"\n\
         alone = \"targets\"\n[machine]\npreset = \"w3540\"\nmemory = \"12GiB\"\nprefetch = false\n\
         [output]\nset_map = 0\n",
        form.seed, form.budget_refs, form.warmup_refs
    )
}

/// What a row with lengths of its own says of them.
fn lengths(budget: u64, warmup: u64) -> String {
    format!("{budget} references after {warmup} of warm-up in each run")
}

/// Why not all programs could be recorded, or `None` if they could.
fn missing(subjects: &[Subject]) -> Option<String> {
    let failed = subjects.iter().filter_map(|s| {
        let why = s.recording.as_ref().err()?;
        Some(format!("{}: {why}", s.program.name))
    });
    let failed: Vec<String> = failed.collect();
    (!failed.is_empty()).then(|| {
        format!(
            "not recorded (scripts/stand-ins.sh rainbow makes what they need): {}",
            failed.join("; ")
        )
    })
}

/// A policy under which `program` owns the first `colors` colours.
fn owning(name: &str, program: &str, colors: u32) -> String {
    let program = toml::Value::String(program.to_owned());
    let last = colors.saturating_sub(1);
    format!(
        "[[policy]]\nname = \"{name}\"\nframes = \"rainbow\"\ncolors = {{ {program} = \"0-{last}\" }}\n"
    )
}

/// Size of a partition in MiB, as in the thesis's figures.
fn mebibytes(colors: u32) -> f64 {
    f64::from(colors) / 2.0
}

/// A target before it is run.
fn blank(id: &str, title: &str, kind: TargetKind) -> Target {
    Target {
        stand_in: false,
        ..row::blank(id, title, kind)
    }
}

pub(crate) fn reproduce(
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    reproduce_on(&Bench::new(hooks), options, hooks)
}

/// The experiments that a target runs, as files of the one language.
pub(crate) fn experiments(
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<(Vec<Written>, Vec<Target>), ReproduceError> {
    let written = Mutex::default();
    let found = reproduce_on(&Bench::writing(hooks, &written), options, hooks)?;
    let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((written, found.targets))
}

fn reproduce_on(
    bench: &Bench<'_>,
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    let mut paper = Paper::begin(System::Rainbow, options);
    let form = Form::new(options);
    let machine =
        piebald_hw::presets::load("w3540").map_err(|e| ReproduceError::Machine(e.to_string()))?;
    let subjects = subjects(options, &form, hooks)?;
    let mut constants = constants::targets(&machine).map_err(ReproduceError::Machine)?;
    if let Some(t) = constants.iter_mut().find(|t| t.id == "R-4")
        && options.wants("R-4")
    {
        memory::limit(bench, t);
    }
    paper.add(constants);
    if paper.wants(&["R-2", "R-3", "R-5"]) {
        let (found, figure) = profiles::run(bench, &form, &subjects);
        paper.add(found);
        paper.draw(figure);
    }
    if paper.wants(&["R-6"]) {
        let (found, figure) = mixes::run(bench, &form, &subjects);
        paper.add([found]);
        paper.draw(figure);
    }
    if paper.wants(&["R-8", "R-B3"]) {
        paper.add(memory::growth(bench, &form));
    }
    if paper.wants(&["R-B1"]) {
        paper.add([beyond::hashed(bench, &form)]);
    }
    if paper.wants(&["R-B2"]) {
        paper.add([beyond::huge_pages(bench, &form, &subjects)]);
    }
    Ok(paper.end(Whole {
        budget_refs: form.budget_refs,
        warmup_refs: form.warmup_refs,
        conditions: conditions(&form, &subjects, &machine.title),
        simulated_refs: bench.refs(),
    }))
}

/// Records what the targets need, several programs at a time.
fn subjects(
    options: &Options,
    form: &Form,
    hooks: Hooks<'_>,
) -> Result<Vec<Subject>, ReproduceError> {
    let programs = stand_ins(PROGRAMS)?;
    let needed = OF_PROGRAMS.iter().any(|id| options.wants(id));
    if !needed {
        return Ok(Vec::new());
    }
    let record = |program: StandIn| {
        let wanted = Wanted {
            program: &program,
            refs: form.recorded().min(program.limit),
        };
        let recording = (hooks.record)(&wanted, &options.inputs);
        Subject { program, recording }
    };
    Ok(programs.into_par_iter().map(record).collect())
}

fn conditions(form: &Form, subjects: &[Subject], machine: &str) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{machine}; 12 GiB of aged memory, prefetchers off; colors are the frame bits of \
             address bits 15 to 18."
        ),
        format!(
            "Alone: {} repetitions at {} partition sizes; in mixes: {} repetitions at {} sizes. \
             Intervals: 95 %, Student t.",
            form.repetitions,
            form.sizes.len(),
            form.mix_repetitions,
            form.mix_sizes.len()
        ),
        "R-8, R-B1 and R-B3 have lengths of their own, which they name. R-4 asks how much memory a \
         run needs, and has 100,000 references."
            .to_owned(),
    ];
    for s in subjects {
        let state = match &s.recording {
            Ok(_) => String::new(),
            Err(why) => format!(" NOT RUN: {why}."),
        };
        lines.push(format!(
            "{} ({}) stands for {}.{state}",
            s.program.name,
            s.program.command.join(" "),
            s.program.stands_for
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_ins_are_those_of_the_thesis() {
        let programs = stand_ins(PROGRAMS).unwrap_or_else(|e| panic!("{e}"));
        let class = |number: &str| {
            let found = programs.iter().find(|p| p.stands_for.starts_with(number));
            found.map(|p| p.class.clone()).unwrap_or_default()
        };
        // Table II.
        for number in ["401", "471", "483"] {
            assert_eq!(class(number), "R", "{number}");
        }
        for number in ["429", "450", "473", "482"] {
            assert_eq!(class(number), "Y", "{number}");
        }
        for number in ["437", "462"] {
            assert_eq!(class(number), "G", "{number}");
        }
        assert_eq!(programs.len(), 9);
    }

    #[test]
    fn the_forms_run_what_the_thesis_ran_or_say_less() {
        let full = Form::new(&Options::default());
        assert_eq!((full.sizes.len(), full.repetitions), (16, 10));
        assert!(full.mix_sizes.len() == 15 && full.mix_repetitions >= 3);
        let quick = Form::new(&Options {
            quick: true,
            budget_refs: Some(1_000),
            repetitions: Some(7),
            ..Options::default()
        });
        assert_eq!((quick.budget_refs, quick.warmup_refs), (1_000, 2_000));
        assert_eq!((quick.repetitions, quick.mix_repetitions), (7, 7));
        // Rows with lengths of their own follow as well.
        assert_eq!(full.own(1_000_000, 1_500_000), (1_000_000, 1_500_000));
        assert_eq!(quick.own(1_000_000, 1_500_000), (1_000, 1_500));
        for form in [&full, &quick] {
            assert_eq!(form.sizes.last(), Some(&COLORS));
            assert!(form.mix_sizes.iter().all(|k| form.sizes.contains(k)));
        }
    }
}
