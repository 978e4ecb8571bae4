//! Stand-ins: the list, and what has to be recorded of each.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use piebald_trace::recording::{FileHeader, Recording};
use piebald_units::Count;
use serde::{Deserialize, Deserializer, de};

/// A program that takes the place of one that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandIn {
    /// Name in results.
    pub name: String,
    /// The program of the paper.
    pub stands_for: String,
    /// Class that the paper gives it.
    pub class: String,
    /// Command line, run in the folder of the inputs.
    #[serde(default)]
    pub command: Vec<String>,
    /// A recording in the folder of the inputs that is made by hand: its command, if it is named, is how.
    pub recording: Option<String>,
    /// A program that comes with Piebald, instead of a command and a recording. It draws anew in each repetition.
    pub builtin: Option<String>,
    /// A file in the folder of the inputs that it reads, as a pipe that stays open. Recordings are then made by hand.
    pub stdin: Option<String>,
    /// It runs with so many threads.
    pub threads: Option<u32>,
    /// How long a walk of the original's page table takes by the paper, in microseconds.
    pub walk_us: Option<u64>,
    /// It is recorded up to its limit, however few references are run.
    #[serde(default)]
    pub whole: bool,
    /// Words in braces and what stands for them in turn: one program for each.
    #[serde(default)]
    pub each: BTreeMap<String, Vec<String>>,
    /// Debian packages that it needs.
    #[serde(default)]
    pub packages: Vec<String>,
    /// References to pass over: its set-up.
    #[serde(default, deserialize_with = "count")]
    pub skip: u64,
    /// References to keep.
    #[serde(default, deserialize_with = "count")]
    pub limit: u64,
    /// Why this program.
    pub why: String,
    /// Files in the folder of the inputs that it reads, and folders there of which it reads all files.
    #[serde(default)]
    pub inputs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(rename = "schema")]
    _schema: Option<u32>,
    program: Vec<StandIn>,
}

fn count<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    let text = String::deserialize(d)?;
    let read: Result<Count, _> = text.parse();
    read.map(|n| n.0)
        .map_err(|e| de::Error::custom(format!("\"{text}\" {e}")))
}

/// What is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The program.
    pub program: &'a StandIn,
    /// References to keep: no more than its limit.
    pub refs: u64,
}

/// Why a list of stand-ins is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("list of stand-ins: {0}")]
pub struct ProgramsError(pub(crate) String);

/// An error of a TOML text, with its line.
pub(crate) fn of_toml(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| {
        let before = text.get(..span.start).unwrap_or(text);
        format!("line {}: ", before.matches('\n').count() + 1)
    });
    let message = error.message().replace('\n', " ");
    format!("{}{message}", line.unwrap_or_default())
}

/// Reads a list of stand-ins.
///
/// # Errors
/// Not the form, a name that occurs twice, an empty command.
pub fn stand_ins(text: &str) -> Result<Vec<StandIn>, ProgramsError> {
    let list: List = toml::from_str(text).map_err(|e| ProgramsError(of_toml(text, &e)))?;
    let programs: Vec<StandIn> = list.program.iter().flat_map(StandIn::each).collect();
    let mut names = HashSet::new();
    for program in &programs {
        let name = &program.name;
        if name.is_empty() || !names.insert(name.as_str()) {
            return Err(ProgramsError(format!(
                "name = \"{name}\": allowed: unique names that are not empty"
            )));
        }
        let is_recorded = !program.command.is_empty() || program.recording.is_some();
        if is_recorded == program.builtin.is_some() {
            return Err(ProgramsError(format!(
                "{name}: command = {:?}: allowed: a program and its arguments, a recording, or else a builtin",
                program.command
            )));
        }
        if is_recorded && program.limit == 0 {
            return Err(ProgramsError(format!(
                "{name}: limit = 0: allowed: references to keep, 1 and more"
            )));
        }
    }
    Ok(programs)
}

/// Share of its references that a recording of several threads may lack: what a thread had not handed over
/// when the recorder ended the program; and by which one may exceed its limit: the rest of a block.
const LOST_PERCENT: u64 = 10;
const OVER_PERCENT: u64 = 1;

impl StandIn {
    /// Whether a recording that was made by hand is this program's, and whole, as far as the list says what it is.
    ///
    /// # Errors
    /// It cannot be read, is incomplete, or of another command or length. Reasons are joined by semicolons, so that none has one.
    pub(crate) fn check(&self, path: &Path) -> Result<(), String> {
        let recording = Recording::open(path).map_err(|e| e.to_string());
        let checked = recording.and_then(|recording| self.is_its(recording.header()));
        checked.map_err(|says| format!("{}: {says}", path.display()))
    }

    fn is_its(&self, header: &FileHeader) -> Result<(), String> {
        if !header.complete {
            return Err("it is incomplete".to_owned());
        }
        if self.command.is_empty() {
            return Ok(());
        }
        if header.argv != self.command {
            return Err(format!(
                "records {:?}: allowed: {:?}",
                header.argv, self.command
            ));
        }
        let least = self.limit - self.limit * LOST_PERCENT / 100;
        let most = self.limit + self.limit * OVER_PERCENT / 100;
        let refs = header.counts.references;
        if !(least..=most).contains(&refs) {
            return Err(format!(
                "it has {refs} references: allowed: {least} to {most}"
            ));
        }
        Ok(())
    }

    /// One for each value of its words.
    fn each(&self) -> Vec<Self> {
        let mut all = vec![Self {
            each: BTreeMap::new(),
            ..self.clone()
        }];
        for (word, values) in &self.each {
            let with = |program: &Self| -> Vec<Self> {
                let values = values.iter();
                values.map(|value| program.with(word, value)).collect()
            };
            all = all.iter().flat_map(with).collect();
        }
        all
    }

    fn with(&self, word: &str, value: &str) -> Self {
        let said = |text: &String| text.replace(&format!("{{{word}}}"), value);
        let all = |texts: &[String]| texts.iter().map(said).collect();
        Self {
            name: said(&self.name),
            command: all(&self.command),
            inputs: all(&self.inputs),
            recording: self.recording.as_ref().map(said),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use piebald_workload::{Builtin, Library};

    use super::*;
    use crate::System;

    #[test]
    fn every_list_can_be_read_and_says_why_each_program_is_there() {
        for system in System::ALL {
            let programs = system.stand_ins().unwrap_or_else(|e| panic!("{e}"));
            let recorded = matches!(system, System::Rainbow | System::Srm);
            assert_eq!(programs.is_empty(), !recorded, "{}", system.name());
            for p in programs {
                assert!(p.why.len() > 20 && !p.stands_for.is_empty(), "{}", p.name);
                assert!(p.limit > 0, "{}", p.name);
            }
        }
    }

    #[test]
    fn a_recording_of_another_command_or_length_is_refused() {
        let builtin = Builtin::parse("gups:1MiB").unwrap_or_else(|e| panic!("{e}"));
        let made = Library::new().recording(&builtin, 1, 1000);
        let header = made.unwrap_or_else(|e| panic!("{e}")).header().clone();
        let (argv, refs) = (header.argv.clone(), header.counts.references);
        let program = |command: &[String], limit: u64| {
            let entry = "[[program]]\nname = \"a\"\nstands_for = \"b\"\nclass = \"R\"\n\
                         recording = \"p.pbr\"\nlimit = \"1\"\nwhy = \"because\"\n";
            let list = stand_ins(entry).unwrap_or_else(|e| panic!("{e}"));
            StandIn {
                command: command.to_vec(),
                limit,
                ..list[0].clone()
            }
        };
        let check = |command: &[String], limit| program(command, limit).is_its(&header);
        assert_eq!(check(&argv, refs), Ok(()));
        assert_eq!(check(&argv, refs + refs / 20), Ok(()));
        // Nothing is known of how it was made.
        assert_eq!(check(&[], 1), Ok(()));
        for limit in [refs - refs / 20, 2 * refs] {
            let error = check(&argv, limit).expect_err("another length");
            assert!(
                error.contains("references: allowed") && !error.contains("; "),
                "{error}"
            );
        }
        let error = check(&["other".to_owned()], refs).expect_err("another command");
        assert!(error.contains("other"), "{error}");
        let broken = FileHeader {
            complete: false,
            ..header.clone()
        };
        let error = program(&argv, refs).is_its(&broken).expect_err("a part");
        assert!(error.contains("incomplete"), "{error}");
        let error = program(&argv, refs).check(Path::new("/nowhere/p.pbr"));
        assert!(error.is_err_and(|says| says.contains("/nowhere/p.pbr")));
    }

    #[test]
    fn a_list_that_is_wrong_is_refused_with_the_reason() {
        let entry = "[[program]]\nname = \"a\"\nstands_for = \"b\"\nclass = \"R\"\n\
                     command = [\"x\"]\nskip = \"1M\"\nlimit = \"2M\"\nwhy = \"because\"\n";
        assert_eq!(stand_ins(entry).map(|p| p[0].skip), Ok(1_000_000));
        let each = entry
            .replace("\"a\"", "\"a-{n}\"")
            .replace("\"x\"", "\"x\", \"{n}\"");
        let each = stand_ins(&(each + "each = { n = [\"1\", \"two\"] }\n"));
        let each = each.unwrap_or_else(|e| panic!("{e}"));
        let commands: Vec<&[String]> = each.iter().map(|p| &p.command[..]).collect();
        assert_eq!(commands, [["x", "1"], ["x", "two"]]);
        assert_eq!(
            (each[0].name.as_str(), each[1].name.as_str()),
            ("a-1", "a-two")
        );
        for (text, part) in [
            (entry.repeat(2), "unique"),
            (entry.replace("[\"x\"]", "[]"), "command = []"),
            (
                entry.to_owned() + "builtin = \"gups\"\n",
                "or else a builtin",
            ),
            (entry.replace("\"2M\"", "\"0\""), "limit = 0: allowed"),
            (entry.replace("\"1M\"", "\"1Q\""), "1Q"),
            (entry.replace("why", "reason"), "reason"),
        ] {
            let error = stand_ins(&text).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
