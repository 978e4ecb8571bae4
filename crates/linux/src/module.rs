//! `/proc/piebald` with types. What the files mean is said in `docs/kernel.md`. The sets beside it
//! are in `sets`.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use piebald_units::ColorSet;

use crate::{
    ask::MapBits,
    error::ModuleError,
    sets::Set,
    text::{self, Fault},
};

/// The module, found in its files. Every method opens its file anew: nothing is held, and the
/// module can be unloaded at any time, which then is an error of the next call.
#[derive(Clone, Debug)]
pub struct Module {
    root: PathBuf,
    dir: PathBuf,
}

/// What the module counted; every number only rises while it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(
    /// Names and numbers, in the module's order.
    pub Vec<(String, u64)>,
);

impl Counters {
    /// The counter of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, number)| *number)
    }
}

/// What became of the pages of a process that was recoloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Pages that have colours of the process now.
    pub moved: u64,
    /// Pages that were tried and stayed where they are.
    pub failed: u64,
    /// Pages that were left because other processes have them too.
    pub shared: u64,
}

/// All that the module says of itself at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Is colouring on?
    pub on: bool,
    /// The map, once one was set.
    pub map: Option<MapBits>,
    /// Number of colours; 0 without a map.
    pub colors: u64,
    /// The colour sets, by name.
    pub sets: Vec<Set>,
    /// The colours that no set has, for everyone else.
    pub others: ColorSet,
    /// Free frames in the pool, by colour.
    pub free: Vec<u64>,
    /// Most frames that the pool keeps.
    pub pool_max: u64,
    /// What was counted.
    pub counters: Counters,
}

impl Module {
    /// Finds the module below `root`, which is `/` on a live system.
    ///
    /// # Errors
    /// [`ModuleError::NotLoaded`] if it is not there.
    pub fn attach(root: &Path) -> Result<Self, ModuleError> {
        let dir = root.join("proc/piebald");
        match dir.is_dir() {
            true => Ok(Self {
                root: root.to_owned(),
                dir,
            }),
            false => Err(ModuleError::NotLoaded { dir }),
        }
    }

    /// What the caller named as `/`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Is colouring on?
    ///
    /// # Errors
    /// As of every method here: the file cannot be read or written, or is not what it has to be.
    pub fn is_on(&self) -> Result<bool, ModuleError> {
        self.read("on", text::switch)
    }

    /// Switches colouring on or off. Off, every process's memory is as without the module; who
    /// has which colours stays known.
    ///
    /// # Errors
    /// On without a map is refused.
    pub fn switch(&self, on: bool) -> Result<(), ModuleError> {
        self.write("on", if on { "1" } else { "0" })
    }

    /// The map, once one was set.
    ///
    /// # Errors
    /// The file cannot be read, or is no map.
    pub fn map(&self) -> Result<Option<MapBits>, ModuleError> {
        self.read("map", |lines| {
            MapBits::from_lines(lines).map_err(|_| Fault {
                line: 1,
                text: lines.trim_end().replace('\n', "; "),
                allowed: "address bits from 12, a line for each color bit",
            })
        })
    }

    /// Sets the map and takes all colours away.
    ///
    /// # Errors
    /// Refused while colouring is on, or if the map has only one colour.
    pub fn set_map(&self, map: &MapBits) -> Result<(), ModuleError> {
        self.write("map", &map.as_lines())
    }

    /// Moves the anonymous pages of a process to its colours, and waits until that is done.
    /// What others recolour at the same time is counted with it.
    ///
    /// # Errors
    /// Refused if the process has no colours, or colouring is off.
    pub fn recolor(&self, pid: u32) -> Result<Moved, ModuleError> {
        let before = self.counters()?;
        self.write("recolor", &pid.to_string())?;
        let after = self.counters()?;
        let rise = |name| {
            let of = |counters: &Counters| counters.get(name).unwrap_or(0);
            of(&after).saturating_sub(of(&before))
        };
        Ok(Moved {
            moved: rise("recolored"),
            failed: rise("recolor_failed"),
            shared: rise("recolor_shared"),
        })
    }

    /// What was counted.
    ///
    /// # Errors
    /// The file cannot be read, or has a line that is no counter.
    pub fn counters(&self) -> Result<Counters, ModuleError> {
        self.read("counters", text::counters)
    }

    /// Most frames that the pool keeps.
    ///
    /// # Errors
    /// Refused below 1024 and above half the memory.
    pub fn set_pool_max(&self, frames: u64) -> Result<(), ModuleError> {
        self.write("pool_max", &frames.to_string())
    }

    /// Recounts the module's books: `None` if they are right, else what does not hold. Nobody
    /// gets memory meanwhile, some 10 ns for each frame of the machine.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn check(&self) -> Result<Option<String>, ModuleError> {
        let said = self.read("check", |text| Ok(text.trim().to_owned()))?;
        Ok((said != "ok").then_some(said))
    }

    /// All at once.
    ///
    /// # Errors
    /// As the others.
    pub fn status(&self) -> Result<Status, ModuleError> {
        Ok(Status {
            on: self.is_on()?,
            map: self.map()?,
            colors: self.read("colors", text::number)?,
            sets: self.sets()?,
            others: self.read("others", text::colors)?,
            free: self.read("free", text::free)?,
            pool_max: self.read("pool_max", text::number)?,
            counters: self.counters()?,
        })
    }

    fn read<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, Fault>,
    ) -> Result<T, ModuleError> {
        self.read_at(&self.dir.join(name), parse)
    }

    pub(crate) fn read_at<T>(
        &self,
        path: &Path,
        parse: impl Fn(&str) -> Result<T, Fault>,
    ) -> Result<T, ModuleError> {
        let text = fs::read_to_string(path).map_err(|e| self.failure(path, e))?;
        parse(&text).map_err(|fault| ModuleError::Content {
            path: path.to_owned(),
            line: fault.line,
            text: fault.text,
            allowed: fault.allowed,
        })
    }

    fn write(&self, name: &str, value: &str) -> Result<(), ModuleError> {
        self.write_at(&self.dir.join(name), value)
    }

    /// One write for the whole value: the module takes each by itself.
    pub(crate) fn write_at(&self, path: &Path, value: &str) -> Result<(), ModuleError> {
        let mut open = OpenOptions::new();
        let mut file = open
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(|e| self.failure(path, e))?;
        file.write_all(value.as_bytes()).map_err(|source| {
            let why = fs::read_to_string(self.dir.join("error")).unwrap_or_default();
            let path = path.to_owned();
            match why.trim() {
                "" => ModuleError::Io { path, source },
                why => ModuleError::Refused {
                    path,
                    value: value.trim_end().replace('\n', "; "),
                    why: why.to_owned(),
                },
            }
        })
    }

    /// Why a file was not opened.
    fn failure(&self, path: &Path, source: io::Error) -> ModuleError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => ModuleError::NotPermitted { path },
            _ if !self.dir.is_dir() => ModuleError::NotLoaded {
                dir: self.dir.clone(),
            },
            _ => ModuleError::Io { path, source },
        }
    }
}
