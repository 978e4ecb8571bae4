//! The keys `colors` and `mode` of a program.

use piebald_sim::rooms::policy::contract::Mode;
use piebald_units::{ColorSet, MAX_COLORS};

use super::{Frames, Policy, ProgramEntry, ScenarioError, Source, file};
use crate::colors::{Colors, color_map};

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
    let set: ColorSet = text.get_ref().parse().map_err(|e| {
        let value = format!("\"{}\" ({e})", text.get_ref());
        let allowed = format!("a set of colors as in 0-3,8, at most {}", MAX_COLORS - 1);
        source.refuse(text, &key, value, allowed)
    })?;
    if set.is_empty() {
        return Err(source.refuse(text, &key, "\"\"", "at least one color, as in 0-3"));
    }
    Ok(Some(Colors { set, mode }))
}

/// Checks what programs ask for against the machine and the policies.
pub(super) fn check(
    file: &file::File,
    source: &Source<'_>,
    machine: &piebald_sim::rooms::hw::spec::MachineSpec,
    programs: &[ProgramEntry],
    policies: &[Policy],
) -> Result<(), ScenarioError> {
    let colored = |p: &Policy| matches!(p.frames, Frames::Rainbow | Frames::PageColoring);
    let map = color_map(machine);
    if let Some(i) = policies.iter().position(colored)
        && let Err(why) = &map
    {
        let at = file.policy[i].span().start;
        let problem = format!("policy[{i}].frames needs page colors: {why}");
        return Err(source.error(at, problem));
    }
    for (i, program) in programs.iter().enumerate() {
        let (Some(own), Some(text)) = (&program.colors, &file.program[i].get_ref().colors) else {
            continue;
        };
        let key = format!("program[{i}].colors");
        if !policies.iter().any(|p| p.frames == Frames::Rainbow) {
            let problem = format!("{key}: no policy has frames = \"rainbow\"");
            return Err(source.error(text.span().start, problem));
        }
        let last = map.as_ref().map_or(0, |map| map.colors() - 1);
        if own.set.iter().any(|c| u32::from(c.0) > last) {
            let allowed = format!("colors of this machine, 0-{last}");
            let value = format!("\"{}\"", text.get_ref());
            return Err(source.refuse(text, &key, value, allowed));
        }
    }
    Ok(())
}
