//! The programs of an experiment, as the model runs them.

use std::path::Path;

use piebald_experiment::{
    self as experiment, BeforeInput as BeforeWritten, Binding, Deal, Experiment, Input as Written,
    KeyPath, Problem, Program,
};
use piebald_hw::{nearest::did_you_mean, spec::MachineSpec};
use piebald_os_model::kernel::OnLimit;
use piebald_report::Role;
use piebald_sim::{ColorChange, Recolor, Stay};
use piebald_trace::foreign::Format;
use piebald_units::CoreSet;
use piebald_workload::Builtin;

use super::{BeforeEntry, BeforeInput, Input, ProgramEntry, kept};
use crate::near;

/// Programs that the machine and the model can run.
pub(super) fn programs(
    experiment: &Experiment,
    folder: &Path,
    machine: &MachineSpec,
    problems: &mut Vec<Problem>,
) -> Vec<ProgramEntry> {
    let core = &machine.core;
    let threads = u32::from(core.sockets * core.per_socket * core.smt);
    let mut entries = Vec::new();
    let deal = experiment.deal.as_ref();
    let is_dealt = kept(dealt(deal, threads), problems).is_some();
    for (i, program) in experiment.program.iter().enumerate() {
        let at = KeyPath::of("program").item(i);
        let cores = match deal.filter(|_| program.cores.0.is_empty()) {
            Some(deal) => is_dealt.then_some(deal.cores.0),
            None => kept(there(program.cores.0, threads, at.key("cores")), problems),
        };
        let input = kept(input(program, folder, &at), problems);
        if let (Some(cores), Some(input)) = (cores, input) {
            entries.push(entry(program, cores, input));
        }
    }
    entries
}

/// The hardware threads that are dealt out are there.
fn dealt(deal: Option<&Deal>, threads: u32) -> Result<(), Problem> {
    let Some(deal) = deal else { return Ok(()) };
    let at = KeyPath::of("deal");
    there(deal.cores.0, threads, at.key("cores"))?;
    there(deal.of_one(), threads, at.key("alone")).map(|_| ())
}

/// These hardware threads, if the machine has them.
fn there(cores: CoreSet, threads: u32, path: KeyPath) -> Result<CoreSet, Problem> {
    if cores.is_empty() || cores.bits() & !CoreSet::first(threads).bits() != 0 {
        let allowed = format!("cores of this machine, 0-{}", threads - 1);
        return Err(Problem::refuse(path, cores, allowed));
    }
    Ok(cores)
}

fn input(program: &Program, folder: &Path, at: &KeyPath) -> Result<Input, Problem> {
    match program.input() {
        Some(Written::Recording(path)) => Ok(Input::Recording(folder.join(path))),
        Some(Written::Command(words)) => Ok(Input::Command(words.to_vec())),
        Some(Written::Builtin(written)) => builtin(written, &program.name(), at),
        Some(Written::Trace(path, format)) => {
            let format = format.map(|name| known_format(name, at)).transpose()?;
            Ok(Input::Trace(folder.join(path), format))
        }
        // They are refused before.
        None | Some(Written::Requests(_) | Written::Clients(_) | Written::Touches(_)) => {
            Err(Problem::at(at.clone(), "it has no input"))
        }
    }
}

fn builtin(written: &experiment::Builtin, name: &str, at: &KeyPath) -> Result<Input, Problem> {
    let text = written.to_string();
    Builtin::parse(&text).map_err(|e| {
        let near = near::builtin(&e);
        Problem::at(at.clone(), format!("\"{name}\": {e}{near}"))
    })?;
    Ok(Input::Builtin(text))
}

/// What runs before the programs.
pub(super) fn before(
    experiment: &Experiment,
    folder: &Path,
    problems: &mut Vec<Problem>,
) -> Vec<BeforeEntry> {
    let programs = &experiment.program;
    let mut place = programs.len();
    let mut entries = Vec::new();
    for (i, before) in experiment.before.iter().enumerate() {
        let at = KeyPath::of("before").item(i);
        let named = |name: &str| programs.iter().position(|p| p.name() == name);
        let other = match before.input() {
            Some(BeforeWritten::Run(name)) => named(name).map(BeforeInput::Run),
            Some(BeforeWritten::Read(name)) => named(name).map(BeforeInput::Read),
            Some(BeforeWritten::Recording(path)) => Some(BeforeInput::Other(
                Input::Recording(folder.join(path)),
                place,
            )),
            Some(BeforeWritten::Command(words)) => {
                Some(BeforeInput::Other(Input::Command(words.to_vec()), place))
            }
            Some(BeforeWritten::Builtin(written)) => {
                let name = written.to_string();
                let input = kept(builtin(written, &name, &at), problems);
                input.map(|input| BeforeInput::Other(input, place))
            }
            // Refused where the file is read.
            None => None,
        };
        let Some(input) = other else { continue };
        place += usize::from(matches!(input, BeforeInput::Other(..)));
        entries.push(BeforeEntry {
            input,
            colors: before.colors.as_ref().map(|colors| colors.0.clone()),
            on_limit: match before.mode.unwrap_or_default() {
                Binding::Hint => OnLimit::Borrow,
                Binding::Hard => OnLimit::Fail,
            },
        });
    }
    entries
}

fn known_format(name: &str, at: &KeyPath) -> Result<Format, Problem> {
    let known = || Format::ALL.into_iter().map(Format::name);
    let found = Format::ALL.into_iter().find(|format| format.name() == name);
    found.ok_or_else(|| {
        let names: Vec<String> = known().map(|name| format!("\"{name}\"")).collect();
        let allowed = names.join(", ") + &did_you_mean(name, known());
        Problem::refuse(at.key("format"), format!("\"{name}\""), allowed)
    })
}

fn entry(program: &Program, cores: CoreSet, input: Input) -> ProgramEntry {
    let binding = program.mode.unwrap_or_default();
    let on_limit = match (binding, program.on_limit.unwrap_or_default()) {
        (Binding::Hint, _) => OnLimit::Borrow,
        (Binding::Hard, experiment::OnLimit::Fail) => OnLimit::Fail,
        (Binding::Hard, experiment::OnLimit::Swap) => OnLimit::Swap,
    };
    let changes = program.change.iter().map(|change| ColorChange {
        at: change.at.get(),
        want: change.colors.0.clone(),
        recolor: match change.recolor {
            experiment::Recolor::Now => Recolor::Now,
            experiment::Recolor::No => Recolor::No,
            experiment::Recolor::PerTick(pages) => Recolor::PerTick(pages.get_u32()),
        },
    });
    ProgramEntry {
        name: program.name().into_owned(),
        input,
        redraw: program.redraw,
        enter: program.enter,
        length: program.length,
        again: program.again,
        whole_iterations: program.whole_iterations,
        count_copies: program.count_copies,
        own_files: program.own_files,
        walk: program.walk_us.map(|walk| walk.picos()),
        regions: program.regions,
        cores,
        is_dealt: program.cores.0.is_empty(),
        colors: program.colors.as_ref().map(|colors| colors.0.clone()),
        on_limit,
        changes: changes.collect(),
        stay: Stay {
            arrives: program.arrives_us.map(|time| time.picos()),
            leaves: program.leaves_us.map(|time| time.picos()),
            class: program.class.map(|class| class.0),
            remembered: false,
        },
        role: match program.role {
            experiment::Role::Target => Role::Target,
            experiment::Role::Polluter => Role::Polluter,
        },
    }
}
