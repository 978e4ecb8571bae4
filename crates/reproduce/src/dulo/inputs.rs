//! The inputs (`reproduce/dulo/inputs.toml`) and what is counted of their traces.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use piebald_trace::block::{BlockTrace, Options, PageShift, PageSpan, Space};
use serde::Deserialize;

/// As it is in the repository.
const TEXT: &str = include_str!("../../../../reproduce/dulo/inputs.toml");

/// Layout of the disk that the traces' files lie on.
const LAYOUT: &str = "st39102lw.layout.zst";

/// The list of inputs.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct List {
    pub input: Vec<Input>,
    pub sensitivity: Sensitivity,
}

/// A trace.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Input {
    pub name: String,
    #[serde(default)]
    pub paper: Paper,
    /// Memory of figures 3 and 4, in MB; none if the trace is only a part of others.
    #[serde(default)]
    pub memory_mb: Vec<u32>,
    /// Those that the paper names.
    #[serde(default)]
    pub at: Vec<u32>,
    /// DULO's sections in MB, which are those that the policy takes by itself (tested).
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares them"))]
    pub bank_mb: u32,
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares them"))]
    pub evicting_mb: u32,
}

/// Its row of table 2.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Paper {
    pub accesses_millions: Option<f64>,
    pub megabytes: Option<f64>,
    pub files: Option<f64>,
    pub sequential_percent: Option<f64>,
}

/// Tables 3 and 4.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sensitivity {
    /// Memory by input, in MB.
    pub inputs: BTreeMap<String, u32>,
    pub bank_mb: Vec<u32>,
    pub evicting_mb: Vec<u32>,
}

impl List {
    /// The list of the repository.
    pub(super) fn read() -> Result<Self, String> {
        toml::from_str(TEXT).map_err(|e| format!("inputs.toml: {e}"))
    }
}

/// The folder that the traces are in.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A folder with all files that are needed, or which is missing.
    pub(super) fn find(path: &Path, list: &List) -> Result<Self, String> {
        let folder = Self(path.to_owned());
        let traces = list.input.iter().map(|i| folder.trace(&i.name));
        match traces.chain([folder.layout()]).find(|file| !file.is_file()) {
            None => Ok(folder),
            Some(file) => Err(format!(
                "{} is not there; scripts/stand-ins.sh dulo makes it",
                file.display()
            )),
        }
    }

    pub(super) fn trace(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.fpt.zst"))
    }

    pub(super) fn layout(&self) -> PathBuf {
        self.0.join(LAYOUT)
    }
}

/// What a trace consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Pages referenced.
    pub accesses: u64,
    /// Bytes of the files that they are of.
    pub bytes: u64,
    pub files: u64,
    /// References to the page after the one that the same task referred to before.
    pub sequential: u64,
    /// Pages referenced by each task.
    pub tasks: BTreeMap<u32, u64>,
}

/// Reads a trace to its end. `on` is asked now and then whether to go on, with the accesses so
/// far.
pub(super) fn count(path: &Path, on: &dyn Fn(u64) -> bool) -> Result<Counts, String> {
    let mut trace = BlockTrace::open(path, Options::default()).map_err(|e| e.to_string())?;
    let mut counts = Counts::default();
    let mut next: BTreeMap<u32, (Space, u64)> = BTreeMap::new();
    let mut used = HashSet::new();
    let mut batch = Vec::new();
    loop {
        batch.clear();
        let more = trace.next_batch(&mut batch).map_err(|e| e.to_string())?;
        for request in &batch {
            let PageSpan {
                space,
                first,
                count,
            } = request.pages(PageShift::default());
            let follows = next.insert(request.task, (space, first + count)) == Some((space, first));
            counts.sequential += count.saturating_sub(1) + u64::from(follows);
            counts.accesses += count;
            *counts.tasks.entry(request.task).or_default() += count;
            used.insert(space);
        }
        if !on(counts.accesses) {
            return Err("interrupted".to_owned());
        }
        if !more {
            break;
        }
    }
    counts.files = used.len() as u64;
    for space in used {
        if let Space::File(key) = space {
            let size = trace.files().get(key).and_then(|f| f.size);
            counts.bytes += size.unwrap_or(0);
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use piebald_policy::dulo::Config;

    use super::*;

    #[test]
    fn the_list_has_what_the_paper_prints() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        let names: Vec<&str> = list.input.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "viewperf", "tpc-h", "glimpse", "cscope", "gcc", "multi1", "multi2"
            ]
        );
        for input in &list.input {
            assert!(
                input.at.iter().all(|mb| input.memory_mb.contains(mb)),
                "{}",
                input.name
            );
        }
        for (name, mb) in &list.sensitivity.inputs {
            let input = list.input.iter().find(|i| i.name == *name);
            assert!(input.is_some_and(|i| i.at.contains(mb)), "{name}");
        }
    }

    #[test]
    fn sections_are_those_that_the_policy_takes_by_itself() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        for input in &list.input {
            for &mb in input
                .memory_mb
                .iter()
                .filter(|mb| input.name == "viewperf" || **mb >= 80)
            {
                let config = Config::scaled(mb * 256);
                assert_eq!(config.bank, input.bank_mb * 256, "{} {mb}", input.name);
                assert_eq!(
                    config.evicting,
                    input.evicting_mb * 256,
                    "{} {mb}",
                    input.name
                );
            }
        }
    }

    #[test]
    fn a_trace_is_counted_task_by_task() {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let path = folder.path().join("t.fpt");
        let text = "# page trace of files: F id bytes path; R|W task file first_page pages (4 KiB pages).\n\
                    F 0 40960 a\nF 1 5000 b\nF 2 9 c\n\
                    R 1 0 0 2\nR 2 1 0 1\nR 1 0 2 1\nW 2 1 0 1\nR 1 0 9 1\n";
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{e}"));
        let counts = count(&path, &|_| true).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            counts,
            Counts {
                accesses: 6,
                bytes: 45_960,
                files: 2,
                sequential: 2,
                tasks: BTreeMap::from([(1, 4), (2, 2)]),
            }
        );
        assert!(count(&path, &|_| false).is_err());
    }
}
