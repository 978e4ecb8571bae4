//! The programs and files (`reproduce/mfc/inputs.toml`).

use piebald_hw::{presets, spec::MachineSpec};
use piebald_units::Bytes;
use piebald_workload::Builtin;
use serde::Deserialize;

/// As it is in the repository.
const TEXT: &str = include_str!("../../../../reproduce/mfc/inputs.toml");

/// Programs of which the rows speak, in the paper's order.
pub(super) const PROGRAMS: [&str; 4] = ["read", "grep", "wc", "md5sum"];

/// Most files of a working set.
const MOST_FILES: u32 = 4096;

/// The list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    schema: u32,
    machine: Machine,
    files: Files,
    #[expect(dead_code, reason = "the command line has a seed of its own")]
    seeds: toml::Table,
    program: Vec<Program>,
    #[expect(dead_code, reason = "run beside, and judged by no row")]
    sensitivity: toml::Table,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    preset: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    bytes: String,
    counts: Vec<u32>,
    zipf_exponent: u32,
}

/// A program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    builtin: String,
    #[serde(default, rename = "command")]
    _command: String,
    #[serde(default, rename = "counted")]
    _counted: toml::Table,
}

/// What a program does with the files that it draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Work {
    /// Instructions on each 64 B.
    pub instrs: u64,
    /// Bytes of a load, if there are any.
    pub width: u64,
    /// Bytes of a call; `None` = a file in one call.
    pub chunk: Option<u64>,
    /// Two files are read at once.
    pub pair: bool,
}

impl Work {
    /// Reads as the paper's benchmark does, by calls of 64 KiB (protocol).
    pub(super) const READ: Self = Self {
        instrs: 0,
        width: 32,
        chunk: Some(64 << 10),
        pair: false,
    };

    /// The same by calls of so many bytes.
    pub(super) const fn by(self, call: u64) -> Self {
        Self {
            chunk: Some(call),
            ..self
        }
    }

    /// Files that it reads at a time.
    pub(super) const fn at_once(self) -> u64 {
        1 + self.pair as u64
    }

    /// References between one draw of files of so many bytes and the next: two for each file
    /// that is drawn, and the loads of its data.
    pub(super) const fn refs(self, size: u64) -> u64 {
        let loads = match self.instrs {
            0 => 0,
            _ => size / self.width,
        };
        self.at_once() * (2 + loads)
    }
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
        if self.files.zipf_exponent != 1 {
            let exponent = self.files.zipf_exponent;
            return Err(format!("files.zipf_exponent = {exponent}: allowed: 1"));
        }
        let counts = &self.files.counts;
        let rising = counts.windows(2).all(|w| w[0] < w[1]);
        let inside = counts.iter().all(|n| (1..=MOST_FILES).contains(n));
        if counts.is_empty() || !rising || !inside {
            return Err(format!(
                "files.counts = {counts:?}: allowed: rising numbers of 1 to {MOST_FILES}"
            ));
        }
        let size = self.size()?;
        if size == 0 || !size.is_multiple_of(4096) {
            let bytes = &self.files.bytes;
            return Err(format!(
                "files.bytes = \"{bytes}\": allowed: a multiple of 4KiB"
            ));
        }
        self.machine()?;
        let mut seen = Vec::new();
        for program in &self.program {
            let name = program.name.as_str();
            if !PROGRAMS.contains(&name) || seen.contains(&name) {
                let allowed = PROGRAMS.join(", ");
                return Err(format!("program \"{name}\": allowed: {allowed}, once each"));
            }
            seen.push(name);
            program.work()?;
        }
        match PROGRAMS.iter().find(|p| !seen.contains(p)) {
            Some(missing) => Err(format!("program \"{missing}\": missing")),
            None => Ok(()),
        }
    }

    /// The machine of the paper.
    pub(super) fn machine(&self) -> Result<MachineSpec, String> {
        presets::load(&self.machine.preset).map_err(|e| format!("machine.preset: {e}"))
    }

    /// Bytes of a file.
    pub(super) fn size(&self) -> Result<u64, String> {
        bytes("files.bytes", &self.files.bytes)
    }

    /// Numbers of files, rising.
    pub(super) fn counts(&self) -> &[u32] {
        &self.files.counts
    }

    /// What a program does.
    pub(super) fn work(&self, name: &str) -> Result<Work, String> {
        let found = self.program.iter().find(|p| p.name == name);
        let found = found.ok_or_else(|| format!("program \"{name}\": missing"))?;
        found.work()
    }
}

impl Program {
    fn work(&self) -> Result<Work, String> {
        let (name, text) = (&self.name, &self.builtin);
        let refuse = |why: &str| Err(format!("program \"{name}\": builtin = \"{text}\": {why}"));
        if let Err(e) = Builtin::parse(text) {
            return refuse(&e.to_string());
        }
        let mut work = Work {
            chunk: None,
            ..Work::READ
        };
        let (builtin, keys) = text.split_once(':').unwrap_or((text, ""));
        if builtin != "readfiles" {
            return refuse("allowed: readfiles");
        }
        for pair in keys.split(',').filter(|p| !p.is_empty()) {
            match pair.split_once('=') {
                Some(("instrs", n)) => work.instrs = number("instrs", n)?,
                Some(("width", n)) => work.width = number("width", n)?,
                Some(("chunk", n)) => work.chunk = Some(bytes("chunk", n)?),
                _ => return refuse("allowed keys: instrs, width, chunk"),
            }
        }
        Ok(work)
    }
}

fn number(key: &str, text: &str) -> Result<u64, String> {
    let read = text.trim().parse();
    read.map_err(|_| format!("{key} = \"{text}\": allowed: a whole number"))
}

fn bytes(key: &str, text: &str) -> Result<u64, String> {
    let read: Result<Bytes, _> = text.trim().parse();
    read.map(|b| b.0)
        .map_err(|e| format!("{key} = \"{text}\": {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_papers_machine_files_and_programs() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(list.size(), Ok(256 << 10));
        assert_eq!((list.counts().len(), list.counts()[9]), (10, 512));
        assert_eq!(list.machine().map(|m| m.memory.controllers), Ok(8));
        assert_eq!(list.work("read"), Ok(Work::READ));
        let md5sum = Work {
            instrs: 577,
            width: 4,
            chunk: Some(32 << 10),
            pair: false,
        };
        assert_eq!(list.work("md5sum"), Ok(md5sum));
        assert!(list.work("cat").is_err());
    }

    #[test]
    fn references_of_an_iteration_are_counted() {
        assert_eq!(Work::READ.refs(1 << 18), 2);
        let pair = Work {
            pair: true,
            ..Work::READ
        };
        assert_eq!(pair.refs(1 << 18), 4);
        let grep = Work {
            instrs: 12,
            ..Work::READ
        };
        assert_eq!(grep.refs(1 << 18), 2 + 4096 * 2);
    }

    #[test]
    fn a_list_that_is_wrong_is_refused_with_field_and_value() {
        for (from, to, part) in [
            ("schema = 1", "schema = 2", "schema = 2: allowed: 1"),
            (
                "zipf_exponent = 1",
                "zipf_exponent = 2",
                "zipf_exponent = 2",
            ),
            ("[1, 2, 4,", "[2, 1, 4,", "files.counts = [2, 1, 4"),
            ("[1, 2, 4,", "[0, 2, 4,", "files.counts = [0, 2, 4"),
            ("256, 512]", "256, 5120]", "files.counts"),
            (
                "bytes = \"256KiB\"",
                "bytes = \"255B\"",
                "files.bytes = \"255B\"",
            ),
            (
                "bytes = \"256KiB\"",
                "bytes = \"256Kib\"",
                "files.bytes = \"256Kib\"",
            ),
            ("\"opteron4x4\"", "\"opteron4x5\"", "machine.preset"),
            (
                "name = \"wc\"",
                "name = \"grep\"",
                "program \"grep\": allowed",
            ),
            (
                "name = \"wc\"",
                "name = \"cat\"",
                "program \"cat\": allowed",
            ),
            ("width=4\"", "width=5\"", "builtin = \"readfiles:instrs=577"),
            (
                "\"readfiles:instrs=192,chunk=16KiB,width=1\"",
                "\"readfiles:instrs=10,zipf=1\"",
                "allowed keys: instrs, width, chunk",
            ),
            (
                "\"readfiles:instrs=192,chunk=16KiB,width=1\"",
                "\"stream\"",
                "allowed: readfiles",
            ),
            ("chunk=64KiB", "chunk=64Kib", "chunk"),
            ("[seeds]", "[seed]", "seed"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT, "{from}");
            let error = List::parse(&text).expect_err(part);
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
