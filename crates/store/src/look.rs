//! Looking without making: what is there, what is not, and what it took.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::ErrorKind,
    path::Path,
    sync::{Mutex, PoisonError},
};

use crate::{
    entry::{Key, read_cost},
    folder::{FORM, StoreError},
    gc::{found, problem},
};

/// An outcome that was looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Where it lies.
    pub key: Key,
    /// Is it there?
    pub is_there: bool,
    /// What it took to make it, if it is there and says so.
    pub seconds: Option<f64>,
    text: [u8; 32],
}

/// Notes of a store that is there to look only, each outcome once.
#[derive(Default)]
pub(crate) struct Looks(Mutex<BTreeMap<Key, Look>>);

impl Looks {
    /// `found`: the seconds of an outcome that is there.
    pub(crate) fn note(&self, key: Key, text: &str, found: Option<Option<f64>>) {
        let look = Look {
            key,
            is_there: found.is_some(),
            seconds: found.flatten(),
            text: blake3::hash(text.as_bytes()).into(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key, look);
    }

    pub(crate) fn all(&self) -> Vec<Look> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().copied().collect()
    }
}

/// What outcomes took that were made by whatever code.
#[derive(Clone, Debug, Default)]
pub struct Costs(HashMap<[u8; 32], Option<f64>>);

impl Costs {
    /// Reads all entries of a folder. One that is not there has none.
    ///
    /// # Errors
    /// A folder or an entry cannot be read: what is there would be called missing.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        let folder = folder.join(FORM);
        if !folder.try_exists().map_err(problem(&folder))? {
            return Ok(Self::default());
        }
        let mut costs = HashMap::new();
        for entry in found(&folder)? {
            // One that was removed in the meantime, or is torn, is not there.
            let bytes = match fs::read(&entry.path) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                read => read.map_err(problem(&entry.path))?,
            };
            if let Some((text, seconds)) = read_cost(&bytes) {
                let last = costs.entry(text).or_insert(None);
                *last = seconds.or(*last);
            }
        }
        Ok(Self(costs))
    }

    /// What the same run took that some code made: nothing if there is none, and no seconds if its
    /// entry does not say.
    pub fn of(&self, look: &Look) -> Option<Option<f64>> {
        self.0.get(&look.text).copied()
    }
}
