//! The key `regions` of a program.

use piebald_units::Count;

use super::{Input, MAX_REFS, ScenarioError, Source, file};

/// Most regions of a program.
const MAX_REGIONS: u32 = 100;
/// Fewest instructions of an interval: below, entering a region costs more than running it.
const MIN_INTERVAL: u64 = 1000;
/// Most regions if the scenario says `"auto"`: what the SimPoint paper tries.
const AUTO_REGIONS: u32 = 10;

/// A program is represented by regions of its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRequest {
    /// Most regions; fewer are taken where fewer tell the program's phases apart.
    pub max: u32,
    /// Instructions of a region; `None` = so many that all regions together have the budget's
    /// references.
    pub interval: Option<u64>,
    /// References from the program's first on that the regions stand for; `None` = the whole
    /// recording, or a multiple of the budget for what is recorded on the fly.
    pub span: Option<u64>,
    /// Run the whole alone once, to measure what the regions miss; `None` = if that no more than
    /// doubles the study's work.
    pub check: Option<bool>,
}

/// Reads the key of program `i`.
pub(super) fn regions(
    table: &file::ProgramTable,
    input: &Input,
    source: &Source<'_>,
    i: usize,
) -> Result<Option<RegionRequest>, ScenarioError> {
    let Some(given) = &table.regions else {
        return Ok(None);
    };
    let key = format!("program[{i}].regions");
    if matches!(input, Input::Trace(..)) {
        let problem = format!(
            "{key}: a trace of another tool has no blocks to choose regions by; convert it first \
             (`piebald trace convert`) and give the recording"
        );
        return Err(source.error(given.span().start, problem));
    }
    let table = match given.get_ref() {
        file::Regions::Count(max) => file::RegionTable {
            max: Some(*max),
            ..file::RegionTable::default()
        },
        file::Regions::Word(word) if word == "auto" => file::RegionTable::default(),
        file::Regions::Word(word) => {
            let allowed = format!("1 to {MAX_REGIONS}, \"auto\", or a table");
            return Err(source.refuse(given, &key, format!("\"{word}\""), allowed));
        }
        file::Regions::Table(table) => table.clone(),
    };
    let max = table.max.unwrap_or(AUTO_REGIONS);
    if !(1..=MAX_REGIONS).contains(&max) {
        let allowed = format!("1 to {MAX_REGIONS}");
        return Err(source.refuse(given, &key, max, allowed));
    }
    let count = |value: Option<file::Written<Count>>, name: &str, min: u64| match value {
        Some(n) if !(min..=MAX_REFS).contains(&n.0.0) => {
            let allowed = format!("{} to {}", Count(min), Count(MAX_REFS));
            Err(source.refuse(given, &format!("{key}.{name}"), n.0, allowed))
        }
        other => Ok(other.map(|n| n.0.0)),
    };
    Ok(Some(RegionRequest {
        max,
        interval: count(table.interval, "interval", MIN_INTERVAL)?,
        span: count(table.span, "span", 1)?,
        check: table.check,
    }))
}
