//! What a grid's tables say of experiments that are replayed.

use piebald_experiment::REPLAYED;
use toml::{Table, Value as Toml};

fn programs(experiment: &Table) -> impl Iterator<Item = &Table> {
    let programs = experiment.get("program").and_then(Toml::as_array);
    programs.into_iter().flatten().filter_map(Toml::as_table)
}

/// Is an experiment replayed, without a machine?
pub(super) fn is_replayed(experiment: &Table) -> bool {
    let mut programs = programs(experiment);
    programs.any(|program| REPLAYED.iter().any(|key| program.contains_key(*key)))
}

/// Takes the repetitions out of an experiment that is replayed; 1 for others and by default.
pub(super) fn repetitions(experiment: &mut Table, place: &str) -> Result<u32, String> {
    if !is_replayed(experiment) {
        return Ok(1);
    }
    match experiment.remove("repetitions") {
        None => Ok(1),
        Some(value) => {
            let number = value.as_integer().and_then(|n| u32::try_from(n).ok());
            let number = number.filter(|n| (1..=1000).contains(n));
            number.ok_or_else(|| format!("{place}.repetitions = {value}: allowed: 1 to 1000"))
        }
    }
}

/// Replays the first references only.
pub(super) fn limit(experiment: &mut Table, refs: u64) {
    let programs = experiment.get_mut("program").and_then(Toml::as_array_mut);
    let programs = programs.into_iter().flatten();
    for program in programs.filter_map(Toml::as_table_mut) {
        if !program.contains_key("requests") {
            continue;
        }
        let excerpt = program
            .entry("excerpt")
            .or_insert_with(|| Table::new().into());
        if let Some(excerpt) = excerpt.as_table_mut() {
            excerpt.insert("limit".to_owned(), Toml::String(refs.to_string()));
        }
    }
}
