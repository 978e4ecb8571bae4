//! The policies of an experiment, as the model runs them.

use std::collections::BTreeMap;

use piebald_experiment::{
    self as experiment, Experiment, FirstCores, Frames, KeyPath, Mfc, PolicyColors, Problem,
    ReadPlaces,
};
use piebald_hw::spec::MachineSpec;
use piebald_os_model::{kernel::SysMonConfig, replace::PolicySpec};
use piebald_policy::{
    color_map::ColorMap,
    hvr::{Manager, Program},
    mfc,
};
use piebald_sim::{NR_HOPS, Reads, Threads};
use piebald_units::{Bytes, ColorAsk, Picos};

use super::{HvrPolicy, Policy, files, kept};
use crate::colors;

/// All policies; without a table there is one, stock.
pub(super) fn policies(
    experiment: &Experiment,
    (machine, memory): (&MachineSpec, Option<Bytes>),
    problems: &mut Vec<Problem>,
) -> Vec<Policy> {
    let stock = [experiment::Policy::stock()];
    let tables = if experiment.policy.is_empty() {
        &stock[..]
    } else {
        &experiment.policy
    };
    let mut policies = Vec::new();
    for (i, table) in tables.iter().enumerate() {
        let at = KeyPath::of("policy").item(i);
        let has_files = experiment.files.is_some();
        if table.zone().is_some() && !has_files {
            let allowed = "\"none\" without a table [files]";
            problems.push(Problem::refuse(at.key("files"), "\"srm\"", allowed));
            continue;
        }
        let replace = kept(replace(table, has_files, &at), problems).flatten();
        let threads = kept(threads(table, machine, &at), problems);
        let color_map = kept(table.map(&at), problems);
        let (Some(threads), Some(color_map)) = (threads, color_map) else {
            continue;
        };
        let owned = kept(owned(table, (machine, color_map), &at), problems);
        let Some((color_map, colors)) = owned else {
            continue;
        };
        let policy = Policy {
            name: table.name.clone(),
            frames: table.frames,
            memory: table.memory,
            thp: table.thp,
            replace,
            hvr: (table.frames == Frames::Hvr).then(|| hvr(table.hvr.unwrap_or_default())),
            files: table.zone(),
            color_map,
            threads,
            first_drawn: table.first_cores == FirstCores::Random,
            tick: table.tick_us.map(|tick| tick.picos()),
            colors,
        };
        kept(check_hvr(&policy, machine, &at), problems);
        kept(files::check_zone(&policy, (machine, memory), &at), problems);
        policies.push(policy);
    }
    policies
}

/// The colors of a policy and of its programs; those that name parts have the bits of the last level and of the
/// banks, if the policy has none of its own.
fn owned(
    table: &experiment::Policy,
    (machine, map): (&MachineSpec, Option<ColorMap>),
    at: &KeyPath,
) -> Result<(Option<ColorMap>, BTreeMap<String, PolicyColors>), Problem> {
    let mut all = table.colors.clone();
    let at = at.key("colors");
    let is_parted = |colors: &PolicyColors| matches!(colors, PolicyColors::Parts(..));
    if !all.values().any(is_parted) {
        return Ok((map, all));
    }
    let none = |why| Problem::at(at.clone(), format!("parts need page colors: {why}"));
    let map = map.map_or_else(|| colors::vertical_map(machine).map_err(none), Ok)?;
    for (name, colors) in &mut all {
        if let PolicyColors::Parts(parts, binding) = colors {
            let set = colors::of_parts(&map, parts);
            let set = set.map_err(|why| Problem::at(at.key(name), why))?;
            *colors = PolicyColors::Asks(ColorAsk::Exactly(set), *binding);
        }
    }
    Ok((Some(map), all))
}

fn replace(
    table: &experiment::Policy,
    has_files: bool,
    at: &KeyPath,
) -> Result<Option<PolicySpec>, Problem> {
    let text = table.replace.as_ref().filter(|_| has_files);
    text.map(|text| files::replacement(text, &at.key("replace")))
        .transpose()
}

fn hvr(table: experiment::Hvr) -> HvrPolicy {
    HvrPolicy {
        config: table.config(),
        sysmon: table.watch.then_some(SysMonConfig {
            time_scale: table.time_scale.get_u32(),
            ..SysMonConfig::default()
        }),
        remember: table.remember,
    }
}

/// Checks a policy's HVR against the machine's colors.
fn check_hvr(policy: &Policy, machine: &MachineSpec, at: &KeyPath) -> Result<(), Problem> {
    let Some(hvr) = &policy.hvr else {
        return Ok(());
    };
    // Without colors the policy as a whole is refused.
    let Ok(map) = colors::map_of(machine, policy) else {
        return Ok(());
    };
    let made = Manager::new(map, vec![Program::EMPTY; 1], hvr.config);
    made.map(|_| ())
        .map_err(|e| Problem::at(at.key("hvr"), e.to_string()))
}

fn threads(
    table: &experiment::Policy,
    machine: &MachineSpec,
    at: &KeyPath,
) -> Result<Threads, Problem> {
    let is_mfc = table.reads == ReadPlaces::Mfc;
    let migration = match &table.migration_us {
        Some(times) => {
            let time = |hops: usize| times.get(hops).or(times.last());
            std::array::from_fn(|hops| time(hops).map_or(Picos(0), |time| time.picos()))
        }
        None if is_mfc || table.balance => mfc::Config::PAPER.migration,
        None => [Picos(0); NR_HOPS],
    };
    let reads = is_mfc.then(|| reads(table.mfc.unwrap_or_default(), migration));
    if let Some(reads) = &reads {
        let key = if table.mfc.is_some() { "mfc" } else { "reads" };
        reads
            .check(machine)
            .map_err(|e| Problem::at(at.key(key), e.to_string()))?;
    }
    Ok(Threads {
        balance: table.balance,
        migration,
        reads,
        first: None,
    })
}

fn reads(table: Mfc, migration: [Picos; NR_HOPS]) -> Reads {
    let mut config = table.config();
    config.migration = migration;
    Reads {
        config,
        switches: table.switches(),
        files: table.files.get_u32(),
        access: table.access_us.picos(),
        assignment: table.assignment_us.picos(),
    }
}
