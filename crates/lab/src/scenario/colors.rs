//! The keys of colours: `colors`, `mode`, `on_limit` and `change` of a program, `colors`
//! and `color_map` of a policy.

use piebald_sim::{
    ColorChange, Recolor,
    rooms::{
        hw::spec::MachineSpec,
        os_model::kernel::{OnLimit, Want},
        policy::color_map::ColorMap,
    },
};
use piebald_units::{ColorSet, Count, MAX_COLORS};
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
    let key = format!("program[{i}].colors");
    let missing = |at: usize, word: &str, says: &str| {
        let problem = format!("{key} is missing: {word} says {says}");
        Err(source.error(at, problem))
    };
    match (&table.colors, &table.mode, table.change.first()) {
        (Some(text), ..) => {
            let want = want(text, source, &key)?;
            Ok(Some(Colors { want }))
        }
        (None, Some(mode), _) => missing(mode.span().start, "mode", "whether colors bind"),
        (None, None, Some(change)) => missing(change.span().start, "change", "how colors change"),
        (None, None, None) => Ok(None),
    }
}

/// What happens when the colours of program `i` are used up.
pub(super) fn on_limit(
    table: &file::ProgramTable,
    source: &Source<'_>,
    i: usize,
) -> Result<OnLimit, ScenarioError> {
    let key = |word: &str| format!("program[{i}].{word}");
    let modes = [("hard", true), ("hint", false)];
    let binds = source.choose(&table.mode, &key("mode"), &modes)?;
    let limits = [("fail", OnLimit::Fail), ("swap", OnLimit::Swap)];
    let on_limit = source.choose(&table.on_limit, &key("on_limit"), &limits)?;
    match &table.on_limit {
        Some(given) if !binds => {
            let problem = format!(
                "{}: colors with mode = \"hint\" have no limit",
                key("on_limit")
            );
            Err(source.error(given.span().start, problem))
        }
        _ if !binds => Ok(OnLimit::Borrow),
        _ => Ok(on_limit),
    }
}

/// How the colours of program `i` change while it runs.
pub(super) fn color_changes(
    table: &file::ProgramTable,
    source: &Source<'_>,
    i: usize,
) -> Result<Vec<ColorChange>, ScenarioError> {
    let mut changes: Vec<ColorChange> = Vec::new();
    for (n, spanned) in table.change.iter().enumerate() {
        let key = |word: &str| format!("program[{i}].change[{n}].{word}");
        if table.regions.is_some() {
            let problem = format!("program[{i}].change: a program with regions is run in parts");
            return Err(source.error(spanned.span().start, problem));
        }
        let change = spanned.get_ref();
        let at = change.at.get_ref().0;
        if let Some(before) = changes.last().filter(|before| before.at >= at.0) {
            let allowed = format!(
                "more than that of the change before it, {}",
                Count(before.at)
            );
            return Err(source.refuse(&change.at, &key("at"), at, allowed));
        }
        let recolor = match change.recolor.as_ref().map(|r| (r, *r.get_ref())) {
            None | Some((_, file::Recolor::Word(true))) => Recolor::Now,
            Some((_, file::Recolor::Word(false))) => Recolor::No,
            Some((value, file::Recolor::PerTick(0))) => {
                let allowed = "true, false, or at least 1 page for each timer tick";
                return Err(source.refuse(value, &key("recolor"), 0, allowed));
            }
            Some((_, file::Recolor::PerTick(pages))) => Recolor::PerTick(pages),
        };
        changes.push(ColorChange {
            at: at.0,
            want: want(&change.colors, source, &key("colors"))?,
            recolor,
        });
    }
    Ok(changes)
}

/// Changes come within the measured part.
pub(super) fn check_changes(
    file: &file::File,
    source: &Source<'_>,
    budget: u64,
) -> Result<(), ScenarioError> {
    for (i, program) in file.program.iter().enumerate() {
        for (n, change) in program.get_ref().change.iter().enumerate() {
            let at = &change.get_ref().at;
            if at.get_ref().0.0 >= budget {
                let key = format!("program[{i}].change[{n}].at");
                let allowed = format!("less than budget_refs, {}", Count(budget));
                return Err(source.refuse(at, &key, at.get_ref().0, allowed));
            }
        }
    }
    Ok(())
}

/// Colours as they are asked for: a set, a number or a share.
fn want(
    value: &Spanned<file::Colors>,
    source: &Source<'_>,
    key: &str,
) -> Result<Want, ScenarioError> {
    let refuse = |allowed: &str| Err(source.refuse(value, key, value.get_ref(), allowed));
    match value.get_ref() {
        file::Colors::Text(text) => Ok(Want::Exactly(set(text, value, source, key)?)),
        file::Colors::Table(table) => match (table.count, &table.share) {
            (Some(1..), None) => Ok(Want::Count(table.count.unwrap_or(1))),
            (Some(0), None) => refuse("a count of 1 or more"),
            (None, Some(text)) => match share(text) {
                Some(basis_points) => Ok(Want::Share(basis_points)),
                None => refuse("a share such as \"25%\" or \"12.5%\", 0.01% to 100%"),
            },
            _ => refuse("exactly one of count and share"),
        },
    }
}

/// A share as in `12.5%`, in hundredths of a percent.
fn share(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?.trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 2 {
        return None;
    }
    let hundredths: u32 = format!("{part:0<2}").parse().ok()?;
    let whole: u32 = whole.parse().ok()?;
    let basis_points = whole.checked_mul(100)?.checked_add(hundredths)?;
    (1..=10_000).contains(&basis_points).then_some(basis_points)
}

/// A set of colours, not empty.
fn set<T>(
    text: &str,
    at: &Spanned<T>,
    source: &Source<'_>,
    key: &str,
) -> Result<ColorSet, ScenarioError> {
    let set: ColorSet = text.parse().map_err(|e| {
        let value = format!("\"{text}\" ({e})");
        let allowed = format!("a set of colors as in 0-3,8, at most {}", MAX_COLORS - 1);
        source.refuse(at, key, value, allowed)
    })?;
    match set.is_empty() {
        true => Err(source.refuse(at, key, "\"\"", "at least one color, as in 0-3")),
        false => Ok(set),
    }
}

/// What policy `i` changes in the colours of each program.
pub(super) fn changes(
    table: &file::PolicyTable,
    source: &Source<'_>,
    i: usize,
    programs: &[ProgramEntry],
) -> Result<Vec<Option<Option<Want>>>, ScenarioError> {
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
        changes[program] = Some(match text.get_ref() {
            file::Colors::Text(none) if none == NONE => None,
            _ => Some(want(text, source, &key)?),
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
    for (i, program) in file.program.iter().enumerate().filter(|_| !rainbow) {
        let table = program.get_ref();
        let colors = table.colors.as_ref().map(|c| ("colors", c.span()));
        let limit = table.on_limit.as_ref().map(|l| ("on_limit", l.span()));
        if let Some((key, at)) = colors.or(limit) {
            let problem = format!("program[{i}].{key}: no policy has frames = \"rainbow\"");
            return Err(source.error(at.start, problem));
        }
    }
    for (i, policy) in policies.iter().enumerate() {
        // Without tables there is one policy, which has no colours.
        let Some(table) = file.policy.get(i) else {
            break;
        };
        let colors = check_map(table, source, machine, policy, i)?;
        super::hvr::check(table, source, machine, policy, i)?;
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
    let colored = matches!(
        policy.frames,
        Frames::Rainbow | Frames::PageColoring | Frames::Hvr
    );
    let keys = table.get_ref();
    let uses_map = colored || policy.files.is_some();
    if let Some(lines) = keys.color_map.as_ref().filter(|_| !uses_map) {
        let problem = format!(
            "policy[{i}].color_map: only frames = \"rainbow\", \"page-coloring\" and \"hvr\" and \
             files = \"srm\" have colors"
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

/// Where a program's colours under a policy are written.
fn written<'a>(
    file: &'a file::File,
    programs: &[ProgramEntry],
    (i, p): (usize, usize),
) -> Option<(&'a Spanned<file::Colors>, String)> {
    let name = &programs[p].name;
    let table = file.policy[i].get_ref().colors.as_ref();
    let changed = table.and_then(|t| t.get_ref().get(name));
    match (changed, &file.program[p].get_ref().colors) {
        (Some(text), _) => Some((text, format!("policy[{i}].colors.{name}"))),
        (None, Some(text)) => Some((text, format!("program[{p}].colors"))),
        (None, None) => None,
    }
}

/// Checks the colours that programs own under a policy, one by one and together.
fn check_colors(
    file: &file::File,
    source: &Source<'_>,
    programs: &[ProgramEntry],
    (i, policy): (usize, &Policy),
    colors: u32,
) -> Result<(), ScenarioError> {
    let under = match policy.color_map {
        Some(_) => format!(" under policy \"{}\"", policy.name),
        None => String::new(),
    };
    let exists = |want: &Want, value: &Spanned<file::Colors>, key: &str| {
        let beyond = match want {
            Want::Exactly(set) => set.iter().any(|c| u32::from(c.0) >= colors),
            Want::Count(n) => *n > colors,
            Want::Share(_) => false,
        };
        let allowed = format!("colors of this machine{under}, 0-{}", colors - 1);
        match beyond {
            true => Err(source.refuse(value, key, value.get_ref(), allowed)),
            false => Ok(()),
        }
    };
    for (p, program) in programs.iter().enumerate() {
        let Some(want) = colors::owned(program, policy, p) else {
            continue;
        };
        if let Some((value, key)) = written(file, programs, (i, p)) {
            exists(&want, value, &key)?;
        }
        let tables = &file.program[p].get_ref().change;
        for (n, (change, table)) in program.changes.iter().zip(tables).enumerate() {
            let key = format!("program[{p}].change[{n}].colors");
            exists(&change.want, &table.get_ref().colors, &key)?;
        }
    }
    let conflict = colors::partitions(programs, policy, colors).err();
    let placed = conflict.and_then(|c| Some((written(file, programs, (i, c.program))?, c.why)));
    match placed {
        None => Ok(()),
        Some(((value, key), why)) => {
            let policy = &policy.name;
            let problem = format!("{key} = {}: policy \"{policy}\": {why}", value.get_ref());
            Err(source.error(value.span().start, problem))
        }
    }
}
