//! The keys of colours: `colors` and `mode` of a program, `colors` and `color_map` of a
//! policy.

use piebald_sim::rooms::{
    hw::spec::MachineSpec,
    policy::{color_map::ColorMap, contract::Mode},
};
use piebald_units::{ColorSet, MAX_COLORS};
use toml::Spanned;

use super::{Frames, Policy, ProgramEntry, ScenarioError, Source, file};
use crate::colors::{self, Colors};

/// What a policy says of a program that shall own no colours.
const NONE: &str = "none";

/// Reads the keys of program `i`; whether the machine has these colours is
/// checked with the whole scenario.
pub(super) fn colors(
    table: &file::ProgramTable,
    source: &Source<'_>,
    i: usize,
) -> Result<Option<Colors>, ScenarioError> {
    let modes = [("hard", Mode::Hard), ("hint", Mode::Hint)];
    let mode = source.choose(&table.mode, &format!("program[{i}].mode"), &modes)?;
    let key = format!("program[{i}].colors");
    let Some(text) = &table.colors else {
        return match &table.mode {
            None => Ok(None),
            Some(mode) => {
                let problem = format!("{key} is missing: mode says whether colors bind");
                Err(source.error(mode.span().start, problem))
            }
        };
    };
    let set = set(text, source, &key)?;
    Ok(Some(Colors { set, mode }))
}

/// A set of colours, not empty.
fn set(text: &Spanned<String>, source: &Source<'_>, key: &str) -> Result<ColorSet, ScenarioError> {
    let set: ColorSet = text.get_ref().parse().map_err(|e| {
        let value = format!("\"{}\" ({e})", text.get_ref());
        let allowed = format!("a set of colors as in 0-3,8, at most {}", MAX_COLORS - 1);
        source.refuse(text, key, value, allowed)
    })?;
    match set.is_empty() {
        true => Err(source.refuse(text, key, "\"\"", "at least one color, as in 0-3")),
        false => Ok(set),
    }
}

/// What policy `i` changes in the colours of each program.
pub(super) fn changes(
    table: &file::PolicyTable,
    source: &Source<'_>,
    i: usize,
    programs: &[ProgramEntry],
) -> Result<Vec<Option<Option<ColorSet>>>, ScenarioError> {
    let mut changes = vec![None; programs.len()];
    let Some(colors) = &table.colors else {
        return Ok(changes);
    };
    for (name, text) in colors.get_ref() {
        let key = format!("policy[{i}].colors.{name}");
        let Some(program) = programs.iter().position(|p| p.name == *name) else {
            let names: Vec<&str> = programs.iter().map(|p| p.name.as_str()).collect();
            let problem = format!(
                "{key}: no program has this name: allowed: {}",
                names.join(", ")
            );
            return Err(source.error(text.span().start, problem));
        };
        changes[program] = Some(match text.get_ref().as_str() {
            NONE => None,
            _ => Some(set(text, source, &key)?),
        });
    }
    Ok(changes)
}

/// The colour map that policy `i` uses instead of the machine's.
pub(super) fn map(
    table: &file::PolicyTable,
    source: &Source<'_>,
    i: usize,
) -> Result<Option<ColorMap>, ScenarioError> {
    let Some(lines) = &table.color_map else {
        return Ok(None);
    };
    let key = format!("policy[{i}].color_map");
    let text: Vec<&str> = lines
        .get_ref()
        .iter()
        .map(|l| l.get_ref().as_str())
        .collect();
    if let Some(split) = lines.get_ref().iter().find(|l| l.get_ref().contains('\n')) {
        let value = format!("{:?}", split.get_ref());
        return Err(source.refuse(split, &key, value, "one color bit in each text"));
    }
    let text = text.join("\n");
    let read = ColorMap::from_text(&text).map_err(|e| {
        let line = lines.get_ref().get(e.line.saturating_sub(1) as usize);
        let at = line.map_or(lines.span().start, |l| l.span().start);
        source.error(at, format!("{key}: {e}"))
    })?;
    if read.map.colors() < 2 {
        let allowed = "at least one color bit, such as [\"15\", \"16 21\"]";
        return Err(source.refuse(lines, &key, format!("{text:?}"), allowed));
    }
    Ok(Some(read.map))
}

/// Checks what programs and policies ask for against the machine.
pub(super) fn check(
    file: &file::File,
    source: &Source<'_>,
    machine: &MachineSpec,
    programs: &[ProgramEntry],
    policies: &[Policy],
) -> Result<(), ScenarioError> {
    let rainbow = policies.iter().any(|p| p.frames == Frames::Rainbow);
    let owner = file
        .program
        .iter()
        .position(|p| p.get_ref().colors.is_some());
    if let Some(i) = owner.filter(|_| !rainbow)
        && let Some(text) = &file.program[i].get_ref().colors
    {
        let problem = format!("program[{i}].colors: no policy has frames = \"rainbow\"");
        return Err(source.error(text.span().start, problem));
    }
    for (i, policy) in policies.iter().enumerate() {
        // Without tables there is one policy, which has no colours.
        let Some(table) = file.policy.get(i) else {
            break;
        };
        let colors = check_map(table, source, machine, policy, i)?;
        if policy.frames == Frames::Rainbow {
            check_colors(file, source, programs, (i, policy), colors)?;
        }
    }
    Ok(())
}

/// Checks a policy's colour map; answers how many colours it has.
fn check_map(
    table: &Spanned<file::PolicyTable>,
    source: &Source<'_>,
    machine: &MachineSpec,
    policy: &Policy,
    i: usize,
) -> Result<u32, ScenarioError> {
    let colored = matches!(policy.frames, Frames::Rainbow | Frames::PageColoring);
    let keys = table.get_ref();
    if let Some(lines) = keys.color_map.as_ref().filter(|_| !colored) {
        let problem = format!(
            "policy[{i}].color_map: only frames = \"rainbow\" and \"page-coloring\" have colors"
        );
        return Err(source.error(lines.span().start, problem));
    }
    if let Some(own) = keys
        .colors
        .as_ref()
        .filter(|_| policy.frames != Frames::Rainbow)
    {
        let problem = format!("policy[{i}].colors: only frames = \"rainbow\" has owners of colors");
        return Err(source.error(own.span().start, problem));
    }
    if !colored {
        return Ok(0);
    }
    let map = colors::map_of(machine, policy).map_err(|why| {
        let problem = format!("policy[{i}].frames needs page colors: {why}");
        source.error(table.span().start, problem)
    })?;
    let frames = machine.memory.size.0 >> 12;
    let beyond = (0..map.bits() as u8).find(|bit| map.mask(*bit) >= frames.next_power_of_two());
    if let Some((bit, lines)) = beyond.zip(keys.color_map.as_ref()) {
        let problem = format!(
            "policy[{i}].color_map: color bit {bit} names an address bit that no frame has in {} \
             of memory",
            machine.memory.size
        );
        return Err(source.error(lines.span().start, problem));
    }
    Ok(map.colors())
}

/// Checks the colours that programs own under a policy.
fn check_colors(
    file: &file::File,
    source: &Source<'_>,
    programs: &[ProgramEntry],
    (i, policy): (usize, &Policy),
    colors: u32,
) -> Result<(), ScenarioError> {
    for (p, program) in programs.iter().enumerate() {
        let Some(own) = colors::owned(program, policy, p) else {
            continue;
        };
        let table = file.policy[i].get_ref().colors.as_ref();
        let changed = table.and_then(|t| t.get_ref().get(&program.name));
        let (text, key) = match (changed, &file.program[p].get_ref().colors) {
            (Some(text), _) => (text, format!("policy[{i}].colors.{}", program.name)),
            (None, Some(text)) => (text, format!("program[{p}].colors")),
            (None, None) => continue,
        };
        if own.set.iter().any(|c| u32::from(c.0) >= colors) {
            let under = match policy.color_map {
                Some(_) => format!(" under policy \"{}\"", policy.name),
                None => String::new(),
            };
            let allowed = format!("colors of this machine{under}, 0-{}", colors - 1);
            let value = format!("\"{}\"", text.get_ref());
            return Err(source.refuse(text, &key, value, allowed));
        }
    }
    Ok(())
}
