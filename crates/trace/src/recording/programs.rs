//! Which programs a recording holds: a script may have started more than its user thinks.

use std::collections::HashMap;

use serde::Serialize;

use super::{
    dictionary, error::ReadError, model::EventKind, reader::Recording, record::RecordKind,
};

/// The share of one program in a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramShare {
    /// File name of the program; that of the interpreter for a script.
    pub name: String,
    /// Processes that ran it, children by fork included.
    pub processes: u64,
    /// Their references.
    pub references: u64,
}

impl Recording {
    /// The programs, the one with the most references first. A process that was forked and ran no
    /// program of its own counts for its parent's.
    ///
    /// # Errors
    /// The recording is damaged.
    pub fn programs(&self) -> Result<Vec<ProgramShare>, ReadError> {
        let mut references: HashMap<u32, u64> = HashMap::new();
        for thread in &self.index().threads {
            let sum = references.entry(thread.process).or_default();
            *sum = sum.saturating_add(thread.refs);
        }
        let names = self.own_names()?;
        let mut shares: HashMap<String, ProgramShare> = HashMap::new();
        for (&process, &refs) in &references {
            let name = self.name_of(process, &names)?;
            let share = shares.entry(name.clone()).or_insert(ProgramShare {
                name,
                processes: 0,
                references: 0,
            });
            share.processes += 1;
            share.references = share.references.saturating_add(refs);
        }
        let mut all: Vec<ProgramShare> = shares.into_values().collect();
        all.sort_by(|a, b| (b.references, &a.name).cmp(&(a.references, &b.name)));
        Ok(all)
    }

    /// Names of processes that began with an image. They say so in the first chunk of a thread.
    fn own_names(&self) -> Result<HashMap<u32, String>, ReadError> {
        let mut names = HashMap::new();
        for (i, chunk) in self.index().chunks.iter().enumerate() {
            if chunk.first_instr != 0 || names.contains_key(&chunk.process) {
                continue;
            }
            let image = self
                .events(i)?
                .into_iter()
                .find_map(|event| match event.kind {
                    EventKind::Start { argv, .. } => argv.into_iter().next(),
                    _ => None,
                });
            if let Some(image) = image {
                let name = image.rsplit('/').next().unwrap_or_default().to_owned();
                names.insert(chunk.process, name);
            }
        }
        Ok(names)
    }

    fn name_of(&self, process: u32, names: &HashMap<u32, String>) -> Result<String, ReadError> {
        let mut at = process;
        // As many steps as there are processes: a chain cannot be longer.
        for _ in 0..=self.index().dictionaries.len() {
            if let Some(name) = names.get(&at) {
                return Ok(name.clone());
            }
            match self.parent_of(at)? {
                Some(parent) => at = parent,
                None => break,
            }
        }
        Ok("(unknown)".to_owned())
    }

    /// The process that a forked one has its blocks from.
    fn parent_of(&self, process: u32) -> Result<Option<u32>, ReadError> {
        let entries = &self.index().dictionaries;
        let first = entries.partition_point(|d| d.process < process);
        let Some(entry) = entries.get(first).filter(|d| d.process == process) else {
            return Ok(None);
        };
        let data = &self.0.data;
        let layout = data.layout_of(entry.offset, RecordKind::Dictionary)?;
        let bytes = data.section(entry.offset, &layout, 0)?;
        let (base, _) = dictionary::decode(&layout.header, &bytes)
            .map_err(|what| data.corrupt(entry.offset, what))?;
        Ok(base.map(|b| b.process))
    }
}
