//! Turns a scenario's programs into inputs that can be replayed.

use piebald_experiment::{Enter, KeyPath, Problem, Refused, RegionRequest};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use piebald_report::Role;
use piebald_sim::Stay;
use piebald_trace::{
    foreign::{Fetches, ForeignTrace, Format, Options},
    recording::{Recording, ReplayOptions},
};
use piebald_units::CoreSet;
use piebald_workload::{Again, Brief, Builtin, Foreign, Library, OwnFiles, Program, Recorded};

use crate::{
    drawn::Repetition,
    executed::Executed,
    met::Met,
    near,
    parts::{self, Parts},
    regions::{NO_LIMIT, midway},
    scenario::{BeforeEntry, BeforeInput, Input, ProgramEntry, Scenario},
};

/// How often a built-in program that is met in a share of its life could make its references before it ends.
const LIVES: u64 = 4;

/// Records a command line and says where the recording is. The argument after
/// the words is the number of references that the study needs.
pub type Recorder<'a> = dyn Fn(&[String], u64) -> Result<PathBuf, String> + 'a;

/// A program that is ready to run.
#[derive(Clone)]
pub struct Prepared {
    /// Its references, in the first repetition.
    pub program: Arc<dyn Program>,
    /// How it is made for the other repetitions, if it draws anew in each.
    pub redraw: Option<Executed>,
    /// Its first references, which only bring in the pages that it had when it was recorded; or those of its set-up, if it
    /// is met behind that. In the first repetition.
    pub prime: u64,
    /// References before the measured part.
    pub warmup: u64,
    /// References of the measured part.
    pub budget: u64,
    /// It marks the end of its set-up.
    pub marks_ready: bool,
    /// References of its set-up, before the warm-up; those of its first thread.
    pub setup: u64,
    /// References that a polluter's start may be drawn from.
    pub spread: u64,
    /// References that the place where it is met is drawn from, whatever its role; 0 = it is met at its
    /// beginning.
    pub enter: Option<u64>,
    /// When it ends it begins again where it was met.
    pub stays: bool,
    /// It goes on as another image when it ends.
    pub again: bool,
    /// The number of its files, if they are no other program's.
    pub own_files: Option<u32>,
    /// What counts of it before a run, in the first repetition.
    pub brief: Arc<dyn Program>,
    /// Where the references come from, in words.
    pub input: String,
    /// What a reader should know: a short or an incomplete recording.
    pub warnings: Vec<String>,
    /// What a reader may want to know.
    pub notes: Vec<String>,
    /// Regions that stand for the program. It is then run whole only to measure what
    /// they miss.
    pub parts: Option<Parts>,
}

impl Prepared {
    /// Its references in a repetition, once and from its beginning.
    pub fn in_repetition(&self, repetition: u32, draw: Repetition) -> Arc<dyn Program> {
        let program = match self.redraw.as_ref().filter(|_| repetition > 0) {
            Some(redraw) => redraw.with(draw.builtin(), None),
            None => return self.program.clone(),
        };
        own(program, self.own_files)
    }

    /// References that come before it is met in a repetition: which only bring in its pages, or those of its set-up, whose length
    /// may be drawn.
    pub(crate) fn prime_in(&self, repetition: u32, draw: Repetition) -> Result<u64, String> {
        match self
            .redraw
            .as_ref()
            .filter(|_| self.stays && repetition > 0)
        {
            Some(redraw) => redraw.set_up(draw.builtin()),
            None => Ok(self.prime),
        }
    }

    /// The same as it goes on in a run.
    pub(crate) fn as_met(&self, program: &Arc<dyn Program>) -> Arc<dyn Program> {
        if self.again {
            Arc::new(Again(program.clone()))
        } else {
            program.clone()
        }
    }

    /// What counts of a repetition's program before a run.
    pub(crate) fn before(&self, repetition: u32, program: &Arc<dyn Program>) -> Arc<dyn Program> {
        if self.redraw.is_some() && repetition > 0 {
            brief(program)
        } else {
            self.brief.clone()
        }
    }
}

/// A program whose files are its own, if they have a number.
fn own(program: Arc<dyn Program>, number: Option<u32>) -> Arc<dyn Program> {
    match number {
        Some(number) => Arc::new(OwnFiles(program, number)),
        None => program,
    }
}

/// What counts of a program before a run. Only main threads cost nothing there.
fn brief(program: &Arc<dyn Program>) -> Arc<dyn Program> {
    if program.threads() > 1 {
        program.clone()
    } else {
        Arc::new(Brief::new(program.clone()))
    }
}

/// Prepares all programs of a scenario, and behind them those that run before. Command lines are recorded here, once
/// each; built-in programs are executed when they are first run, but their set-ups, and those that regions stand for.
///
/// # Errors
/// The program's table in the scenario, and what is wrong with its input.
pub fn prepare(scenario: &Scenario, recorder: &Recorder<'_>) -> Result<Vec<Prepared>, Refused> {
    let library = Arc::new(Library::new());
    let one = |(i, entry): (usize, &ProgramEntry), key: &str| {
        let prepared = prepare_one(scenario, entry, &library, recorder);
        let prepared = prepared.and_then(|prepared| settled(prepared, entry, i));
        prepared.map_err(|problem| {
            let at = KeyPath::of(key).item(i);
            let says = format!("\"{}\": {problem}", entry.name);
            scenario.document.refuse(vec![Problem::at(at, says)])
        })
    };
    let programs = scenario.programs.iter().enumerate();
    let before = scenario.before.iter().enumerate();
    let before = before.filter_map(|(i, entry)| Some((i, plain(entry)?)));
    // What it lacks for a measured part is no matter.
    let unmeasured = |prepared: Prepared| Prepared {
        warnings: Vec::new(),
        ..prepared
    };
    programs
        .map(|program| one(program, "program"))
        .chain(before.map(|(i, entry)| one((i, &entry), "before").map(unmeasured)))
        .collect()
}

/// A program that is there to run before the others only.
fn plain(entry: &BeforeEntry) -> Option<ProgramEntry> {
    let BeforeInput::Other(input, _) = &entry.input else {
        return None;
    };
    Some(ProgramEntry {
        name: input.to_string(),
        input: input.clone(),
        redraw: false,
        enter: None,
        length: None,
        again: false,
        whole_iterations: false,
        count_copies: false,
        own_files: false,
        walk: None,
        regions: None,
        cores: CoreSet::EMPTY,
        is_dealt: false,
        colors: None,
        on_limit: entry.on_limit,
        changes: Vec::new(),
        stay: Stay::default(),
        role: Role::Target,
    })
}

/// A program with what its table says of its files and its end.
fn settled(prepared: Prepared, entry: &ProgramEntry, at: usize) -> Result<Prepared, String> {
    let threads = prepared.program.threads();
    let is_late = entry.enter.is_some_and(|enter| enter != Enter::Start);
    for (key, is) in [("enter", is_late), ("again", entry.again)] {
        if is && threads > 1 {
            return Err(format!(
                "it has {threads} threads; {key}: allowed of one thread"
            ));
        }
    }
    if entry.again && prepared.prime > 0 {
        let says = "it was recorded in its middle and has no beginning; again: allowed: false";
        return Err(says.to_owned());
    }
    // Number 0 is that of the files that others may have.
    let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
    let own_files = entry.own_files.then_some(number);
    let program = own(prepared.program, own_files);
    Ok(Prepared {
        brief: brief(&program),
        program,
        again: entry.again,
        own_files,
        ..prepared
    })
}

fn prepare_one(
    scenario: &Scenario,
    entry: &ProgramEntry,
    library: &Arc<Library>,
    recorder: &Recorder<'_>,
) -> Result<Prepared, String> {
    let options = ReplayOptions {
        fetches: scenario.features.fetch,
        dependences: scenario.features.window,
        ..ReplayOptions::default()
    };
    let wanted = match &entry.regions {
        Some(request) => parts::span_refs(scenario, request, &entry.input),
        None => and_more(scenario.warmup_refs + scenario.budget_refs),
    };
    let recording = match &entry.input {
        Input::Trace(path, format) => return prepare_trace(scenario, entry, path, *format),
        Input::Recording(path) => Recording::open(path).map_err(|e| e.to_string())?,
        Input::Command(words) => {
            let path = recorder(words, wanted)?;
            Recording::open(&path).map_err(|e| e.to_string())?
        }
        Input::Builtin(text) => {
            let builtin = Builtin::parse(text).map_err(|e| format!("{e}{}", near::builtin(&e)))?;
            if entry.regions.is_none() {
                return prepare_builtin(scenario, entry, builtin, (library, options));
            }
            let recording = library.recording(&builtin, seed_of(scenario, entry), wanted);
            recording.map_err(|e| e.to_string())?
        }
    };
    if let Some(request) = &entry.regions {
        return prepare_regions(scenario, entry, request, recording, options);
    }
    let header = recording.header();
    let refs = header.counts.references;
    let mut warnings = Vec::new();
    if !header.complete {
        warnings.push(format!("{}: the recording is incomplete", entry.name));
    }
    let (program, prime) = opened(&entry.name, recording, options)?;
    let met = Met::of_recording(scenario, entry, (&*program, refs))?;
    // One that goes on at its end is never too short.
    let (warmup, budget) = parts(scenario, (&met, refs, program.threads()), entry.again);
    if budget < met.budget {
        let (name, of_each) = (&entry.name, scenario.of_each());
        warnings.push(format!(
            "{name}: the recording holds {refs} references; {warmup} warm up and {budget} are \
             measured{of_each}"
        ));
    }
    if budget == 0 {
        return Err(format!(
            "the recording holds {refs} references; allowed: 100 or more"
        ));
    }
    Ok(Prepared {
        spread: if program.threads() > 1 { 0 } else { refs / 2 },
        prime,
        enter: met.enter,
        stays: met.stays,
        warmup,
        budget,
        warnings,
        ..of_program(program, entry)
    })
}

/// The last references of a run may come after the last of a batch.
const fn and_more(wanted: u64) -> u64 {
    wanted.saturating_add(wanted / 4)
}

/// What a built-in program draws from in the first repetition.
pub(crate) fn seed_of(scenario: &Scenario, entry: &ProgramEntry) -> u64 {
    if entry.redraw {
        scenario.draw(0).builtin()
    } else {
        scenario.seed
    }
}

/// A built-in program.
fn prepare_builtin(
    scenario: &Scenario,
    entry: &ProgramEntry,
    builtin: Builtin,
    (library, options): (&Arc<Library>, ReplayOptions),
) -> Result<Prepared, String> {
    let seed = seed_of(scenario, entry);
    let met = Met::of_builtin(scenario, entry, (&builtin, seed))?;
    // One that ends begins again, which others notice: its life is longer than all that it is
    // measured for.
    let refs = if met.stays && scenario.programs.len() > 1 {
        LIVES.saturating_mul(scenario.warmup_refs + scenario.budget_refs)
    } else {
        and_more(met.refs())
    };
    let executed = Executed {
        name: entry.name.clone(),
        builtin,
        refs,
        options,
    };
    let is_late = met.enter.is_some_and(|enter| enter > 0);
    let prepared = Prepared {
        setup: if is_late {
            0
        } else {
            executed.set_up_data(seed)?
        },
        prime: if met.stays { executed.set_up(seed)? } else { 0 },
        marks_ready: !met.stays,
        enter: met.enter,
        stays: met.stays,
        warmup: met.warmup,
        budget: met.budget,
        ..of_program(executed.with(seed, Some(library)), entry)
    };
    Ok(Prepared {
        redraw: entry.redraw.then_some(executed),
        ..prepared
    })
}

/// A program that is run whole, from its beginning.
fn of_program(program: Arc<dyn Program>, entry: &ProgramEntry) -> Prepared {
    Prepared {
        setup: 0,
        redraw: None,
        spread: 0,
        prime: 0,
        marks_ready: false,
        enter: None,
        stays: false,
        again: false,
        own_files: None,
        brief: program.clone(),
        program,
        warmup: 0,
        budget: NO_LIMIT,
        input: entry.input.to_string(),
        warnings: Vec::new(),
        notes: Vec::new(),
        parts: None,
    }
}

/// A recording as a program, and how many of its first references bring in the pages that it
/// had when it was recorded.
///
/// # Errors
/// The recording is damaged.
pub fn opened(
    name: &str,
    recording: Recording,
    options: ReplayOptions,
) -> Result<(Arc<dyn Program>, u64), String> {
    if recording.header().midway {
        return midway(name, &recording, options).map_err(|e| e.to_string());
    }
    let program = Recorded::new(name, recording, options).map_err(|e| e.to_string())?;
    Ok((Arc::new(program), 0))
}

/// A recording of which regions are run.
fn prepare_regions(
    scenario: &Scenario,
    entry: &ProgramEntry,
    request: &RegionRequest,
    recording: Recording,
    options: ReplayOptions,
) -> Result<Prepared, String> {
    let is_builtin = matches!(entry.input, Input::Builtin(_));
    let parts = parts::parts(
        scenario,
        request,
        &recording,
        &entry.name,
        options,
        is_builtin,
    );
    let parts = parts.map_err(|e| format!("regions: {e}"))?;
    let header = recording.header();
    let mut warnings = Vec::new();
    if !header.complete {
        warnings.push(format!("{}: the recording is incomplete", entry.name));
    }
    let recorded = header.counts.references;
    let limit = parts::span_refs(scenario, request, &entry.input);
    let cut = match entry.input {
        Input::Recording(_) => request.span.is_some() && parts.refs < recorded,
        _ => recorded >= limit,
    };
    let notes = vec![parts::description(&entry.name, &parts, parts.refs, cut)];
    let whole = ReplayOptions {
        max_instrs: Some(parts.end),
        ..options
    };
    let (program, prime) = opened(&entry.name, recording, whole)?;
    Ok(Prepared {
        prime,
        marks_ready: is_builtin,
        warnings,
        notes,
        parts: Some(parts),
        ..of_program(program, entry)
    })
}

/// A foreign trace: cut to its length as a recording is, with what it lacks as warnings.
fn prepare_trace(
    scenario: &Scenario,
    entry: &ProgramEntry,
    path: &Path,
    format: Option<Format>,
) -> Result<Prepared, String> {
    let options = Options {
        fetches: match scenario.features.fetch {
            true => Fetches::Lines,
            false => Fetches::None,
        },
        prefetches: false,
    };
    let trace = ForeignTrace::at(&[path], format, options).map_err(|e| e.to_string())?;
    let format = trace.format();
    let wanted = scenario.warmup_refs + scenario.budget_refs;
    // What a polluter may be started in is looked for up to as much again.
    let program = Foreign::new(&entry.name, trace, 2 * wanted).map_err(|e| e.to_string())?;
    let mut warnings = trace_warnings(&program, format);
    let refs = program.refs();
    let program: Arc<dyn Program> = Arc::new(program);
    let met = Met::of_recording(scenario, entry, (&*program, refs))?;
    let (warmup, budget) = parts(scenario, (&met, refs, program.threads()), entry.again);
    if budget == 0 {
        return Err(format!(
            "the trace holds {refs} references; allowed: 100 or more"
        ));
    }
    if budget < met.budget {
        warnings.push(format!(
            "the trace holds {refs} references; {warmup} warm up and {budget} are measured{}",
            scenario.of_each()
        ));
    }
    Ok(Prepared {
        spread: if program.threads() > 1 { 0 } else { refs / 2 },
        enter: met.enter,
        stays: met.stays,
        warmup,
        budget,
        input: format!("{} ({format})", entry.input),
        warnings: warnings
            .iter()
            .map(|w| format!("{}: {w}", entry.name))
            .collect(),
        ..of_program(program, entry)
    })
}

/// What a reader of results should know of a format.
fn trace_warnings(program: &Foreign, format: Format) -> Vec<String> {
    let mut warnings = Vec::new();
    if program.filtered() {
        let what =
            "the trace holds only what missed in the tracer's caches: caches filter it twice";
        warnings.push(what.to_owned());
    }
    if format == Format::RamulatorDram {
        let what = "the trace has no instruction counts: each request counts as one instruction";
        warnings.push(what.to_owned());
    }
    if !format.has_instructions() {
        let what = "the trace has no instruction addresses: no fetches, and stride prefetchers \
                    see one instruction";
        warnings.push(what.to_owned());
    }
    warnings
}

/// Warm-up and measured references of a recording that may be too short: then a
/// fifth of it warms up.
fn parts(
    scenario: &Scenario,
    (asked, refs, threads): (&Met, u64, u32),
    is_unending: bool,
) -> (u64, u64) {
    let refs = refs / scenario.budgets_of(threads);
    if is_unending || refs >= asked.warmup + asked.budget {
        return (asked.warmup, asked.budget);
    }
    // The last references may come after the last of a batch: keep clear of them.
    let usable = refs - refs / 100;
    let warmup = (usable / 5).min(asked.warmup);
    (warmup, (usable - warmup).min(asked.budget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::met;

    #[test]
    fn a_set_up_whose_length_is_drawn_is_passed_over_whole_in_each_repetition() {
        let text = "schema = 2\nseed = 1\nrepetitions = 3\nbudget_refs = \"1k\"\nwarmup_refs = \"1k\"\n\
                    [machine]\npreset = \"w3540\"\n[[program]]\nname = \"join\"\nbuiltin = \"hashjoin:64KiB\"\n\
                    cores = \"0\"\nredraw = true\nenter = \"50%\"\n";
        let scenario = Scenario::parse(text, Path::new("s.toml")).expect("a scenario");
        let recorder = |_: &[String], _: u64| Err(String::new());
        let prepared = prepare(&scenario, &recorder).expect("prepared").remove(0);
        let mut lengths = Vec::new();
        for repetition in 0..3 {
            let program = prepared.in_repetition(repetition, scenario.draw(repetition));
            let set_up = met::set_up(&*program).expect("a mark");
            let draw = scenario.draw(repetition);
            assert_eq!(prepared.prime_in(repetition, draw), Ok(set_up));
            lengths.push(set_up);
        }
        assert!(lengths.iter().any(|n| *n != lengths[0]), "{lengths:?}");
    }
}
