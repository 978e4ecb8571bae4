//! The programs and machines (`reproduce/srm/inputs.toml`).

use std::collections::{BTreeMap, HashSet};

use piebald_hw::{
    Machine as Built, Options, presets,
    spec::{Inclusion, MachineSpec},
};
use piebald_units::{Bytes, Count};
use piebald_workload::Builtin;
use serde::Deserialize;

/// As it is in the repository.
const TEXT: &str = include_str!("../../../../reproduce/srm/inputs.toml");

/// The machines of the paper, by the names of the list.
pub(super) const MACHINES: [&str; 3] = ["pe1900", "t1500", "x7560"];

/// Those beyond it.
pub(super) const BEYOND: [&str; 3] = ["pe1900-hashed", "t1500-victim", "zen"];

/// Programs of which the rows speak.
const VM: [&str; 4] = ["mergesort", "fft", "mm", "lu"];
const FILE: [&str; 10] = [
    "grep",
    "tar",
    "diff",
    "grep2",
    "grep-tarball",
    "postmark",
    "postmark32000",
    "random",
    "rescan",
    "filesort",
];

/// The list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    schema: u32,
    machines: BTreeMap<String, Machine>,
    pub beyond: Beyond,
    pub srm: Srm,
    #[expect(dead_code, reason = "the command line has a seed of its own")]
    seeds: toml::Table,
    vm: Vec<Vm>,
    pub tree: Tree,
    file: Vec<FileProgram>,
    pub database: Database,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    preset: String,
    memory: Option<String>,
    /// Of the last level, instead of the preset's.
    slice_hash: Option<Vec<String>>,
    inclusion: Option<Inclusion>,
}

/// Programs of the machine of today.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Beyond {
    pub vm: String,
    pub file: String,
}

/// The system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Srm {
    /// Pages of a sequence, T_l.
    pub threshold: u32,
    /// Colours by machine.
    pub colors: BTreeMap<String, u32>,
}

/// A program in memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vm {
    pub name: String,
    pub builtin: String,
    /// Those of figure 2.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// Run beside, without a verdict.
    #[serde(default)]
    pub sensitivity: Vec<String>,
    #[serde(default, rename = "open")]
    _open: String,
}

/// The directories that are read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tree {
    pub megabytes: u32,
    pub quick_megabytes: u32,
    #[serde(rename = "directories")]
    _directories: Vec<String>,
}

/// A program that reads files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileProgram {
    pub name: String,
    /// Recorded in the folder of the inputs.
    #[serde(default)]
    pub command: Vec<String>,
    pub builtin: Option<Builtins>,
    #[serde(default)]
    skip: String,
    #[serde(default)]
    limit: String,
    #[serde(default)]
    pub why: String,
    #[serde(default)]
    pub sensitivity: Vec<String>,
    /// MiB that a file's size is drawn from and to.
    #[serde(default)]
    pub megabytes: Vec<u32>,
    #[serde(default, rename = "open")]
    _open: String,
}

/// Built-in programs of an entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Builtins {
    One(String),
    ByMachine(BTreeMap<String, String>),
    Several(Vec<String>),
}

impl Builtins {
    fn all(&self) -> Vec<&str> {
        match self {
            Self::One(text) => vec![text],
            Self::ByMachine(texts) => texts.values().map(String::as_str).collect(),
            Self::Several(texts) => texts.iter().map(String::as_str).collect(),
        }
    }
}

/// The star schema.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Database {
    #[serde(rename = "make")]
    _make: String,
    pub dimensions_thousand: Vec<u32>,
    #[serde(rename = "facts")]
    _facts: u64,
    #[serde(rename = "selectivity_percent")]
    _selectivity: u32,
    #[serde(rename = "open")]
    _open: String,
    #[expect(
        dead_code,
        reason = "recorded by hand: a server's user and its recovery"
    )]
    query: Vec<toml::Table>,
    pub builtin: Plans,
}

/// The same plans as built-in programs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plans {
    pub scan: String,
    pub join: Vec<String>,
}

impl List {
    /// The list of the repository.
    pub(super) fn read() -> Result<Self, String> {
        Self::parse(TEXT)
    }

    /// Reads a list.
    ///
    /// # Errors
    /// The field, its value, and what is allowed.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let list: Self = toml::from_str(text).map_err(|e| format!("inputs.toml: {e}"))?;
        list.check().map_err(|e| format!("inputs.toml: {e}"))?;
        Ok(list)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != 1 {
            return Err(format!("schema = {}: allowed: 1", self.schema));
        }
        for name in MACHINES.into_iter().chain(BEYOND) {
            let machine = self.machine(name)?;
            Built::new(&machine, &Options::default())
                .map_err(|e| format!("machines.{name}: {e}"))?;
            if let Some(colors) = self.srm.colors.get(name) {
                let map = piebald_lab::colors::all_colors(&machine)?;
                if map.colors() != *colors {
                    return Err(format!(
                        "srm.colors.{name} = {colors}: allowed: {}, those of its last level",
                        map.colors()
                    ));
                }
            }
        }
        if !(1..=1 << 20).contains(&self.srm.threshold) {
            let threshold = self.srm.threshold;
            return Err(format!(
                "srm.threshold = {threshold}: allowed: 1 to 1048576"
            ));
        }
        known("vm", self.vm.iter().map(|p| p.name.as_str()), &VM)?;
        known("file", self.file.iter().map(|p| p.name.as_str()), &FILE)?;
        for p in &self.vm {
            let texts = [&p.builtin].into_iter().chain(&p.sensitivity);
            texts
                .map(|t| builtin(&p.name, t))
                .collect::<Result<Vec<_>, _>>()?;
            for size in &p.sizes {
                builtin(&p.name, &sized(&p.builtin, size))?;
            }
        }
        self.file.iter().try_for_each(FileProgram::check)?;
        let plans = &self.database.builtin;
        for text in plans.join.iter().chain([&plans.scan]) {
            builtin("database", text)?;
        }
        for text in [&self.beyond.vm, &self.beyond.file] {
            builtin("beyond", text)?;
        }
        let (joins, dimensions) = (plans.join.len(), self.database.dimensions_thousand.len());
        if joins != dimensions {
            return Err(format!(
                "database.builtin.join: {joins} programs; allowed: {dimensions}, one for each of \
                 dimensions_thousand"
            ));
        }
        match self.tree.quick_megabytes.min(self.tree.megabytes) {
            0 => Err("tree.megabytes = 0: allowed: 1 and more".to_owned()),
            _ => Ok(()),
        }
    }

    /// A machine of the paper.
    pub(super) fn machine(&self, name: &str) -> Result<MachineSpec, String> {
        let Some(entry) = self.machines.get(name) else {
            return Err(format!("machines.{name}: missing"));
        };
        let spec = presets::load(&entry.preset);
        let mut spec = spec.map_err(|e| format!("machines.{name}.preset: {e}"))?;
        if let Some(memory) = &entry.memory {
            spec.memory.size = bytes(&format!("machines.{name}.memory"), memory)?;
        }
        let last = spec.cache.iter().map(|c| c.level).max();
        for cache in spec.cache.iter_mut().filter(|c| Some(c.level) == last) {
            if let Some(hash) = &entry.slice_hash {
                cache.slice_hash.clone_from(hash);
            }
            cache.inclusion = entry.inclusion.unwrap_or(cache.inclusion);
        }
        Ok(spec)
    }

    /// Whether a machine's last level hashes its index.
    pub(super) fn is_hashed(&self, name: &str) -> bool {
        let machine = self.machine(name);
        machine.is_ok_and(|m| {
            let last = m.cache.iter().map(|c| c.level).max();
            let mut last = m.cache.iter().filter(|c| Some(c.level) == last);
            last.any(|c| !c.slice_hash.is_empty())
        })
    }

    /// A program in memory.
    pub(super) fn vm(&self, name: &str) -> Result<&Vm, String> {
        let found = self.vm.iter().find(|p| p.name == name);
        found.ok_or_else(|| format!("vm \"{name}\": missing"))
    }

    /// A program that reads files.
    pub(super) fn file(&self, name: &str) -> Result<&FileProgram, String> {
        let found = self.file.iter().find(|p| p.name == name);
        found.ok_or_else(|| format!("file \"{name}\": missing"))
    }
}

impl FileProgram {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        for text in &self.sensitivity {
            builtin(name, text)?;
        }
        match (&self.builtin, self.command.is_empty()) {
            (Some(texts), true) => {
                for text in texts.all() {
                    builtin(name, text)?;
                }
            }
            (None, false) => {
                self.kept()?;
            }
            _ => {
                return Err(format!(
                    "file \"{name}\": allowed: a command, or else a builtin"
                ));
            }
        }
        match self.megabytes[..] {
            [] => Ok(()),
            [from, to] if 0 < from && from <= to => Ok(()),
            _ => Err(format!(
                "file \"{name}\": megabytes = {:?}: allowed: [LEAST, MOST]",
                self.megabytes
            )),
        }
    }

    /// References that are passed over when it is recorded, and that are kept.
    pub(super) fn kept(&self) -> Result<[u64; 2], String> {
        let read = |key: &str, text: &str| {
            let read: Result<Count, _> = text.parse();
            let read = read.map(|n| n.0);
            read.map_err(|e| format!("file \"{}\": {key} = \"{text}\": {e}", self.name))
        };
        let [skip, limit] = [read("skip", &self.skip)?, read("limit", &self.limit)?];
        match limit {
            0 => Err(format!(
                "file \"{}\": limit = \"0\": allowed: 1 and more",
                self.name
            )),
            _ => Ok([skip, limit]),
        }
    }

    /// Its built-in program on a machine, or its first.
    pub(super) fn on(&self, machine: &str) -> Result<String, String> {
        let text = match &self.builtin {
            Some(Builtins::One(text)) => Some(text),
            Some(Builtins::ByMachine(texts)) => texts.get(machine),
            Some(Builtins::Several(texts)) => texts.first(),
            None => None,
        };
        let name = &self.name;
        let missing = || format!("file \"{name}\": no builtin for {machine}");
        text.cloned().ok_or_else(missing)
    }
}

/// A built-in program with another first parameter.
pub(super) fn sized(text: &str, size: &str) -> String {
    let name = text.split(':').next().unwrap_or(text);
    format!("{name}:{size}")
}

/// A built-in program with a further parameter.
pub(super) fn with(text: &str, parameter: &str) -> String {
    let sign = if text.contains(':') { ',' } else { ':' };
    format!("{text}{sign}{parameter}")
}

fn builtin(name: &str, text: &str) -> Result<(), String> {
    match Builtin::parse(text) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("\"{name}\": builtin = \"{text}\": {e}")),
    }
}

fn bytes(key: &str, text: &str) -> Result<Bytes, String> {
    let read: Result<Bytes, _> = text.parse();
    let read = read.map_err(|e| format!("{key} = \"{text}\": {e}"))?;
    match (1 << 24..=1 << 44).contains(&read.0) {
        true => Ok(read),
        false => Err(format!("{key} = \"{text}\": allowed: 16MiB to 16TiB")),
    }
}

/// The names are those that the rows speak of, once each.
fn known<'a>(
    table: &str,
    names: impl Iterator<Item = &'a str>,
    wanted: &[&str],
) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if !wanted.contains(&name) || !seen.insert(name) {
            let allowed = wanted.join(", ");
            return Err(format!("{table} \"{name}\": allowed: {allowed}, once each"));
        }
    }
    match wanted.iter().find(|w| !seen.contains(*w)) {
        Some(missing) => Err(format!("{table} \"{missing}\": missing")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_papers_machines_and_programs() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(list.srm.threshold, 256);
        let memory = |name| list.machine(name).map(|m| m.memory.size.0 >> 30);
        assert_eq!((memory("pe1900"), memory("t1500")), (Ok(16), Ok(8)));
        assert_eq!(list.vm("mergesort").map(|p| p.sizes.len()), Ok(6));
        let rescan = list.file("rescan").and_then(|p| p.on("t1500"));
        assert_eq!(rescan.as_deref(), Ok("scan:7576KiB"));
        assert_eq!(
            list.file("grep").and_then(FileProgram::kept),
            Ok([0, 60_000_000])
        );
        assert!(list.file("grep").and_then(|p| p.on("pe1900")).is_err());
    }

    #[test]
    fn a_list_that_is_wrong_is_refused_with_field_and_value() {
        for (from, to, part) in [
            ("schema = 1", "schema = 2", "schema = 2: allowed: 1"),
            ("threshold = 256", "threshold = 0", "srm.threshold = 0"),
            (
                "pe1900 = 64,",
                "pe1900 = 32,",
                "srm.colors.pe1900 = 32: allowed: 64",
            ),
            ("\"x5355\"", "\"x5356\"", "machines.pe1900.preset"),
            (
                "\"16GiB\"",
                "\"16Gib\"",
                "machines.pe1900.memory = \"16Gib\"",
            ),
            ("\"16GiB\"", "\"1MiB\"", "allowed: 16MiB to 16TiB"),
            (
                "\"fft:131072\"",
                "\"fft:131071\"",
                "builtin = \"fft:131071\"",
            ),
            ("name = \"lu\"", "name = \"mm\"", "vm \"mm\": allowed"),
            ("name = \"diff\"", "name = \"dif\"", "file \"dif\": allowed"),
            (
                "limit = \"60M\"\nwhy = \"section 4.4: two",
                "limit = \"60Q\"\nwhy = \"section 4.4: two",
                "limit = \"60Q\"",
            ),
            (
                "limit = \"60M\"\nwhy = \"section 4.4: two",
                "limit = \"0\"\nwhy = \"section 4.4: two",
                "limit = \"0\"",
            ),
            (
                "builtin = \"randread:512MiB\"",
                "sensitivity = []",
                "a command, or else a builtin",
            ),
            (
                "megabytes = [32, 64]",
                "megabytes = [64, 32]",
                "megabytes = [64, 32]",
            ),
            (
                "\"hashjoin:dimension=600K\"]",
                "]",
                "5 programs; allowed: 6",
            ),
            ("\"0x1b5f575440\"", "\"0x0\"", "machines.pe1900-hashed: "),
            (
                "inclusion = \"victim\"",
                "inclusion = \"victims\"",
                "victims",
            ),
            ("\"scan:96MiB\"", "\"scan:0\"", "builtin = \"scan:0\""),
            (
                "quick_megabytes = 24",
                "quick_megabytes = 0",
                "tree.megabytes = 0",
            ),
            ("[tree]", "[trees]", "trees"),
        ] {
            let text = TEXT.replace(from, to);
            assert_ne!(text, TEXT, "{from}");
            let error = List::parse(&text).expect_err(part);
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
