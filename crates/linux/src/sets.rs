//! Colour sets: the directories below `/sys/kernel/config/piebald`, with types.
//!
//! What their files mean is said in `kernel/Documentation/ABI/testing/configfs-piebald`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use piebald_policy::contract::Mode;
use piebald_units::ColorSet;

use crate::{
    Module,
    ask::{Wanted, mode_word},
    error::ModuleError,
    text,
};

/// Where the sets are, below the root.
pub(crate) const SETS: &str = "sys/kernel/config/piebald";

/// A colour set and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The name of its directory.
    pub name: String,
    /// Its colours.
    pub colors: ColorSet,
    /// Whether they bind.
    pub mode: Mode,
    /// The control groups that have it, by path.
    pub groups: Vec<String>,
}

/// A set's directory, which may go at any time; that then is an error of the next call.
#[derive(Clone, Debug)]
pub(crate) struct SetDir<'a> {
    module: &'a Module,
    path: PathBuf,
}

impl SetDir<'_> {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self, file: &str, value: &str) -> Result<(), ModuleError> {
        self.module.write_at(&self.path.join(file), value)
    }

    /// Gives the set colours, or others than it has.
    pub(crate) fn color(&self, wanted: &Wanted, mode: Mode) -> Result<(), ModuleError> {
        self.write("mode", mode_word(mode))?;
        self.write("colors", &wanted.to_string())
    }

    /// Takes its colours away.
    pub(crate) fn uncolor(&self) -> Result<(), ModuleError> {
        self.write("colors", "none")
    }

    /// Gives the set to a group.
    pub(crate) fn attach(&self, group: &str) -> Result<(), ModuleError> {
        self.write("attach", group)
    }

    /// Has the set ended meanwhile?
    fn is_gone(&self) -> bool {
        !self.path.is_dir()
    }

    /// Ends the set, if nobody else did meanwhile. Its colours are given up first, where ending it fails.
    pub(crate) fn end(&self) -> Result<(), ModuleError> {
        match self.uncolor() {
            Err(_) if self.is_gone() => return Ok(()),
            done => done?,
        }
        // A tree of plain files has files in the way; the kernel has not.
        let _ = fs::remove_dir(&self.path);
        Ok(())
    }
}

impl Module {
    /// The directory of the sets.
    fn sets_dir(&self) -> Result<PathBuf, ModuleError> {
        let dir = self.root().join(SETS);
        match dir.is_dir() {
            true => Ok(dir),
            false => Err(ModuleError::NoSets { dir }),
        }
    }

    /// A new set without colours.
    pub(crate) fn make_set(&self, name: &str) -> Result<SetDir<'_>, ModuleError> {
        let path = self.sets_dir()?.join(name);
        match fs::create_dir(&path) {
            Ok(()) => Ok(SetDir { module: self, path }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(ModuleError::NotPermitted { path })
            }
            Err(source) => Err(ModuleError::Io { path, source }),
        }
    }

    /// A set that there is.
    pub(crate) fn set(&self, name: &str) -> Result<SetDir<'_>, ModuleError> {
        let path = self.sets_dir()?.join(name);
        Ok(SetDir { module: self, path })
    }

    /// All sets, by name, but for those that end meanwhile.
    ///
    /// # Errors
    /// A file cannot be read, or is not what it has to be.
    pub fn sets(&self) -> Result<Vec<Set>, ModuleError> {
        let dir = self.sets_dir()?;
        let list = fs::read_dir(&dir).map_err(|source| ModuleError::Io {
            path: dir.clone(),
            source,
        })?;
        let names = list.flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        let sets = names.into_iter().map(|name| {
            let set = self.set(&name)?;
            match self.read_set(&set.path, name) {
                Err(_) if set.is_gone() => Ok(None),
                read => read.map(Some),
            }
        });
        sets.filter_map(Result::transpose).collect()
    }

    fn read_set(&self, dir: &Path, name: String) -> Result<Set, ModuleError> {
        Ok(Set {
            colors: self.read_at(&dir.join("colors"), text::colors)?,
            mode: self.read_at(&dir.join("mode"), text::mode)?,
            groups: self.read_at(&dir.join("groups"), |text| {
                Ok(text.lines().map(str::to_owned).collect())
            })?,
            name,
        })
    }

    /// The set that a group has itself, not one above it.
    pub(crate) fn set_of_group(&self, group: &str) -> Result<Option<Set>, ModuleError> {
        let has = |set: &Set| set.groups.iter().any(|path| path == group);
        Ok(self.sets()?.into_iter().find(has))
    }

    /// Ends all sets: while there is one the module cannot be taken out.
    ///
    /// # Errors
    /// If the caller may not, or a set cannot be ended.
    pub fn end_sets(&self) -> Result<(), ModuleError> {
        let Ok(dir) = self.sets_dir() else {
            return Ok(());
        };
        for set in self.sets()? {
            let path = dir.join(set.name);
            fs::remove_dir(&path).or_else(|source| match source.kind() {
                io::ErrorKind::NotFound => Ok(()),
                io::ErrorKind::PermissionDenied => Err(ModuleError::NotPermitted { path }),
                _ => Err(ModuleError::Io { path, source }),
            })?;
        }
        Ok(())
    }
}
