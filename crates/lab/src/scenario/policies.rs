//! The tables `[[policy]]`.

use std::collections::HashSet;

use piebald_sim::{Threads, rooms::hw::spec::MachineSpec};

use super::{
    Frames, MemoryState, Policy, ProgramEntry, ScenarioError, Source, colors, file, files, hvr,
    reads,
};

/// Reads all policies; without a table there is one, stock.
pub(super) fn policies(
    file: &file::File,
    source: &Source<'_>,
    machine: &MachineSpec,
    programs: &[ProgramEntry],
) -> Result<Vec<Policy>, ScenarioError> {
    if file.policy.is_empty() {
        return Ok(vec![Policy {
            name: "stock".to_owned(),
            frames: Frames::Stock,
            memory: MemoryState::Aged,
            thp: false,
            replace: None,
            hvr: None,
            files: None,
            color_map: None,
            threads: Threads::default(),
            colors: vec![None; programs.len()],
        }]);
    }
    let mut names = HashSet::new();
    let mut policies = Vec::new();
    for (i, spanned) in file.policy.iter().enumerate() {
        let table = spanned.get_ref();
        let key = |name: &str| format!("policy[{i}].{name}");
        let name = table.name.get_ref().clone();
        if name.is_empty() || !names.insert(name.clone()) {
            let allowed = "unique names that are not empty";
            return Err(source.refuse(&table.name, &key("name"), format!("\"{name}\""), allowed));
        }
        let frames = [
            ("stock", Frames::Stock),
            ("random", Frames::Random),
            ("bin-hopping", Frames::BinHopping),
            ("page-coloring", Frames::PageColoring),
            ("rainbow", Frames::Rainbow),
            ("hvr", Frames::Hvr),
        ];
        let memory = [("aged", MemoryState::Aged), ("fresh", MemoryState::Fresh)];
        let replace = match file.files {
            Some(_) => files::replace(&table.replace, source, &key("replace"))?,
            None => {
                source.choose(&table.replace, &key("replace"), &[("none", ())])?;
                None
            }
        };
        let frames = source.choose(&table.frames, &key("frames"), &frames)?;
        policies.push(Policy {
            name,
            frames,
            hvr: hvr::policy(table, source, i, frames)?,
            memory: source.choose(&table.memory, &key("memory"), &memory)?,
            thp: table.thp.unwrap_or(false),
            replace,
            files: files::zone(table, source, &key("files"), file.files.is_some())?,
            color_map: colors::map(table, source, i)?,
            threads: reads::threads(table, source, machine, i)?,
            colors: colors::changes(table, source, i, programs)?,
        });
    }
    Ok(policies)
}
