//! The programs (`reproduce/hvr/programs.toml`), and where their recordings are.

use std::{collections::HashSet, path::Path, sync::Arc};

use piebald_lab::opened;
use piebald_trace::recording::{Recording, ReplayOptions};
use piebald_units::{
    Count, Picos,
    op::{MemRef, Next},
};
use piebald_workload::{Builtin, Library, Program as Input, memory::mark};
use serde::Deserialize;

use crate::programs::ProgramsError;

/// As it is in the repository.
const TEXT: &str = include_str!("../../../../reproduce/hvr/programs.toml");

/// Folder of the recordings in that of the inputs.
const RECORDED: &str = "recorded";

/// Most threads of a program.
const MOST_THREADS: u32 = 64;

/// Longest walk of a page table, in microseconds: a second.
const MOST_WALK_US: u64 = 1_000_000;

/// Share of its references that a recording of several threads may lack: what a thread had not
/// handed over when the recorder ended the program.
const LOST_PERCENT: u64 = 10;

/// Share by which a recording may exceed its limit: the rest of a block.
const OVER_PERCENT: u64 = 1;

/// A program of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name in results.
    pub name: String,
    /// The paper's program, or empty.
    pub stands_for: String,
    /// The class that the paper prints for that, in its words, or empty.
    pub class: String,
    /// Where its references come from.
    pub source: Source,
    /// Threads that work.
    pub threads: u32,
    /// How long a walk of its page table takes by the paper, if it says so.
    pub walk: Option<Picos>,
    /// Why this program.
    pub why: String,
}

/// Where a program's references come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A recording.
    Recorded {
        /// Command line, run in the folder of the inputs.
        command: Vec<String>,
        /// References kept.
        limit: u64,
    },
    /// A program that comes with Piebald.
    Builtin(Builtin),
}

/// A program that can be run.
#[derive(Clone)]
pub struct Ready {
    /// Its references.
    pub input: Arc<dyn Input>,
    /// First references that only bring in the pages that it had when its recording began, or that
    /// a built-in program fills in its set-up.
    pub prime: u64,
    /// Its warm-up counts from a mark that it makes.
    pub marks_ready: bool,
    /// References of its main thread that may be passed over before it is met; 0 where the
    /// main thread is not the one that works, and for built-in programs.
    pub spread: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    schema: u32,
    program: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    stands_for: String,
    class: String,
    command: Option<Vec<String>>,
    builtin: Option<String>,
    #[serde(rename = "recording")]
    _recording: Option<String>,
    stdin: Option<String>,
    threads: Option<u32>,
    walk_us: Option<u64>,
    #[serde(default, rename = "packages")]
    _packages: Vec<String>,
    skip: Option<String>,
    limit: Option<String>,
    #[serde(default)]
    inputs: Vec<String>,
    why: String,
}

/// The list of the repository.
///
/// # Errors
/// It is wrong: a defect.
pub fn programs() -> Result<Vec<Program>, ProgramsError> {
    parse(TEXT)
}

/// Reads a list.
///
/// # Errors
/// Not the form; a name that occurs twice; neither or both of command and built-in program; a
/// number or a built-in program that cannot be. Names the program, the field, its value and what is
/// allowed.
pub fn parse(text: &str) -> Result<Vec<Program>, ProgramsError> {
    let list: List = toml::from_str(text).map_err(|e| ProgramsError(e.to_string()))?;
    if list.schema != 1 {
        let schema = list.schema;
        return Err(ProgramsError(format!("schema = {schema}: allowed: 1")));
    }
    let mut names = HashSet::new();
    let mut programs = Vec::new();
    for entry in list.program {
        let name = entry.name.clone();
        // It is part of a file's name.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(plain) || !names.insert(name.clone()) {
            return Err(ProgramsError(format!(
                "name = \"{name}\": allowed: unique names of letters, digits and -"
            )));
        }
        let program = entry.read();
        programs.push(program.map_err(|e| ProgramsError(format!("\"{name}\": {e}")))?);
    }
    Ok(programs)
}

impl Entry {
    fn read(self) -> Result<Program, String> {
        let threads = self.threads.unwrap_or(1);
        if !(1..=MOST_THREADS).contains(&threads) {
            return Err(format!("threads = {threads}: allowed: 1 to {MOST_THREADS}"));
        }
        let source = match (&self.command, &self.builtin) {
            (Some(command), None) => {
                if command.is_empty() || self.inputs.is_empty() && self.stdin.is_none() {
                    return Err(
                        "command, inputs: allowed: words, and at least one input".to_owned()
                    );
                }
                count("skip", self.skip.as_deref())?;
                let limit = count("limit", self.limit.as_deref())?;
                if limit == 0 {
                    return Err("limit = \"0\": allowed: 1 and more".to_owned());
                }
                Source::Recorded {
                    command: command.clone(),
                    limit,
                }
            }
            (None, Some(text)) => {
                let builtin = Builtin::parse(text);
                let builtin = builtin.map_err(|e| format!("builtin = \"{text}\": {e}"))?;
                if builtin.threads() != threads {
                    return Err(format!(
                        "threads = {threads}: allowed: {}, those of builtin = \"{text}\"",
                        builtin.threads()
                    ));
                }
                Source::Builtin(builtin)
            }
            _ => return Err("allowed: a command, or else a builtin".to_owned()),
        };
        let walk = self.walk_us;
        if let Some(us) = walk.filter(|us| !(1..=MOST_WALK_US).contains(us)) {
            return Err(format!("walk_us = {us}: allowed: 1 to {MOST_WALK_US}"));
        }
        Ok(Program {
            name: self.name,
            stands_for: self.stands_for,
            class: self.class,
            source,
            threads,
            walk: walk.map(|us| Picos(us * 1_000_000)),
            why: self.why,
        })
    }
}

fn count(key: &str, text: Option<&str>) -> Result<u64, String> {
    let text = text.ok_or_else(|| format!("{key}: missing"))?;
    let read: Result<Count, _> = text.parse();
    read.map(|n| n.0)
        .map_err(|e| format!("{key} = \"{text}\": {e}"))
}

impl Program {
    /// Makes it ready to be run: opens its recording, or executes it, with `seed` and `refs`
    /// references of each thread after its set-up. Recordings depend on neither.
    ///
    /// # Errors
    /// There is no recording, it is damaged, incomplete or too short, or another program's.
    pub fn ready(&self, inputs: &Path, seed: u64, refs: u64) -> Result<Ready, String> {
        let options = ReplayOptions {
            fetches: true,
            dependences: true,
            ..ReplayOptions::default()
        };
        match &self.source {
            Source::Builtin(builtin) => {
                // A library of its own: the recording goes when nobody needs it any more.
                let program = Library::new().program(builtin, seed, refs, options);
                let input = Arc::new(program.map_err(|e| e.to_string())?);
                // Others set up arrays as well: these are simulated.
                let one = self.threads == 1;
                Ok(Ready {
                    prime: if one { set_up(&*input)? } else { 0 },
                    input,
                    marks_ready: !one,
                    spread: 0,
                })
            }
            Source::Recorded { command, limit } => {
                let path = inputs.join(RECORDED).join(format!("{}.pbr", self.name));
                let help = "scripts/stand-ins.sh hvr records it";
                let recording =
                    Recording::open(&path).map_err(|e| format!("{}: {e} ({help})", self.name))?;
                self.check(&recording, command, *limit)
                    .map_err(|e| format!("{}: {e} ({help})", path.display()))?;
                let refs = recording.header().counts.references;
                let (input, prime) = opened(&self.name, recording, options)?;
                let one = input.threads() == 1;
                Ok(Ready {
                    input,
                    prime,
                    marks_ready: false,
                    spread: if one { refs / 2 } else { 0 },
                })
            }
        }
    }

    /// Whether a recording is this program's, and whole.
    fn check(&self, recording: &Recording, command: &[String], limit: u64) -> Result<(), String> {
        let header = recording.header();
        if header.argv != command {
            return Err(format!("records {:?}; allowed: {command:?}", header.argv));
        }
        if !header.complete {
            return Err("it is incomplete".to_owned());
        }
        let least = limit - limit * LOST_PERCENT / 100;
        let most = limit + limit * OVER_PERCENT / 100;
        let refs = header.counts.references;
        if !(least..=most).contains(&refs) {
            return Err(format!(
                "it has {refs} references; allowed: {least} to {most}"
            ));
        }
        Ok(())
    }
}

/// References of a program's main thread until it is set up.
fn set_up(program: &dyn Input) -> Result<u64, String> {
    let mut source = program.open(0).map_err(|e| e.to_string())?;
    let mut buffer = vec![MemRef::default(); 4096];
    let mut refs = 0;
    loop {
        let filled = source.fill(&mut buffer);
        refs += filled.refs as u64;
        match filled.next {
            Next::Mark(mark::READY) => return Ok(refs),
            Next::Exit(_) | Next::End => return Err("no mark of the end of its set-up".to_owned()),
            Next::Broken => return Err(source.failure().unwrap_or("broken").to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<Program> {
        programs().unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn the_list_has_the_programs_that_the_protocol_counts() {
        let list = list();
        let (one, eight): (Vec<_>, Vec<_>) = list.iter().partition(|p| p.threads == 1);
        assert_eq!((one.len(), eight.len()), (45, 9));
        assert!(eight.iter().all(|p| p.threads == 8));
        let recorded = |all: &[&Program]| {
            let is = |p: &&&Program| matches!(p.source, Source::Recorded { .. });
            all.iter().filter(is).count()
        };
        assert_eq!((recorded(&one), recorded(&eight)), (33, 7));
        for p in &list {
            assert!(p.why.len() > 20, "{}", p.name);
            let printed = ["", "CCF", "LLCM", "LLCH", "LLCT", "LLCH or LLCM"];
            assert!(printed.contains(&p.class.as_str()), "{}", p.name);
            assert!(p.class.is_empty() || !p.stands_for.is_empty(), "{}", p.name);
        }
        let walks = list
            .iter()
            .filter_map(|p| Some((p.name.as_str(), p.walk?.0)));
        let printed = [("tachyon", 5_000_000), ("mcf", 4_460_000_000)];
        assert_eq!(walks.collect::<Vec<_>>(), printed);
    }

    #[test]
    fn a_list_that_is_wrong_is_refused_with_field_and_value() {
        for (from, to, part) in [
            ("schema = 1", "schema = 2", "schema = 2: allowed: 1"),
            ("name = \"tachyon\"", "name = \"hmmer\"", "name = \"hmmer\""),
            ("name = \"tachyon\"", "name = \"../x\"", "name = \"../x\""),
            ("walk_us = 5\n", "walk_us = 0\n", "walk_us = 0: allowed: 1"),
            (
                "skip = \"40M\"",
                "skip = \"40Q\"",
                "\"hmmer\": skip = \"40Q\"",
            ),
            (
                "limit = \"100M\"",
                "limit = \"0\"",
                "\"hmmer\": limit = \"0\"",
            ),
            ("limit = \"100M\"", "", "limit: missing"),
            (
                "builtin = \"sor:2048\"",
                "builtin = \"sor:9\"",
                "\"sor\": builtin = \"sor:9\"",
            ),
            (
                "builtin = \"sor:2048\"",
                "",
                "\"sor\": allowed: a command, or else",
            ),
            (
                "builtin = \"sor:2048\"",
                "builtin = \"sor:2048\"\nthreads = 2",
                "\"sor\": threads = 2: allowed: 1",
            ),
            ("threads = 8", "threads = 65", "threads = 65: allowed"),
            (
                "inputs = [\"page.html\"]",
                "inputs = []",
                "\"bzip2\": command, inputs",
            ),
            ("why = \"", "reason = \"", "reason"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT, "{from}");
            let error = parse(&text).expect_err(part).to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn a_recording_that_is_not_there_is_an_error_that_names_it() {
        let list = list();
        let hmmer = list.iter().find(|p| p.name == "hmmer");
        let hmmer = hmmer.unwrap_or_else(|| panic!("no hmmer"));
        let error = hmmer.ready(Path::new("/nowhere"), 1, 1).err();
        let error = error.unwrap_or_default();
        assert!(error.contains("hmmer.pbr"), "{error}");
        assert!(error.contains("stand-ins.sh hvr"), "{error}");
    }

    #[test]
    fn a_recording_of_another_command_or_length_is_refused() {
        let builtin = Builtin::parse("gups:1MiB").unwrap_or_else(|e| panic!("{e}"));
        let made = Library::new().recording(&builtin, 1, 1000);
        let made = made.unwrap_or_else(|e| panic!("{e}"));
        let command = made.header().argv.clone();
        let refs = made.header().counts.references;
        let list = list();
        let check = |command: &[String], limit| list[0].check(&made, command, limit);
        assert_eq!(check(&command, refs), Ok(()));
        assert_eq!(check(&command, refs + refs / 20), Ok(()));
        for limit in [refs - refs / 20, 2 * refs] {
            let error = check(&command, limit).expect_err("another length");
            assert!(error.contains("references; allowed"), "{error}");
        }
        let error = check(&["other".to_owned()], refs).expect_err("another command");
        assert!(error.contains("other"), "{error}");
    }

    #[test]
    fn built_in_programs_are_ready_at_once() {
        let list = list();
        let find = |name: &str| list.iter().find(|p| p.name == name);
        let chase = find("gups-middle").unwrap_or_else(|| panic!("no gups-middle"));
        let ready = chase.ready(Path::new("/nowhere"), 7, 1000);
        let ready = ready.unwrap_or_else(|e| panic!("{e}"));
        assert!(!ready.marks_ready && ready.prime > 0 && ready.spread == 0);
        let eight = list.iter().find(|p| p.name == "gups-8");
        let eight = eight.unwrap_or_else(|| panic!("no gups-8"));
        let ready = eight.ready(Path::new("/nowhere"), 7, 1000);
        let ready = ready.unwrap_or_else(|e| panic!("{e}"));
        assert!(ready.marks_ready && ready.prime == 0);
    }
}
