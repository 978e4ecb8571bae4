//! Cases: a program that lives in its memory, others beside it, and several ways to place their
//! pages.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use piebald_guest::Scenario as Real;

use super::Form;

/// Bytes of a file, and the word of its last line.
const FILE: &str = "256KiB";
const WORD: &str = "marmalade";
/// Name of the first program that only reads files.
pub(super) const GREP: &str = "grep";
/// What the guest's disk for files that are written holds, and the folder that both kernels'
/// programs know it by.
const SCRATCH_BYTES: &str = "256MiB";
const SCRATCH: &str = "scratch";
/// PostMark's settings, below the folder of the guest's programs.
const SETTINGS: &str = "postmark.conf";
/// References of a recording that nobody asked an end of.
const WHOLE: u64 = 1 << 40;

/// A backend, what it needs beside its libraries, and what is asked for in its place: its tables,
/// in the folder of the inputs.
const POSTGRES: &str = "/usr/lib/postgresql/15/bin/postgres";
const SHARED: &str = "/usr/share/postgresql/15/timezonesets";
const NEEDS: &str = "needs = [\"/usr/lib/postgresql/15/bin/postgres\"]\n";
const TABLES: &str = "star";
const RECORDINGS: &str = "scan.pbr";
pub(super) const DATABASE: &str =
    "PostgreSQL 15 and its tables (scripts/stand-ins.sh guest makes them)";

/// Are a backend and its tables here?
pub(super) fn has_database(inputs: &Path) -> bool {
    let all = [RECORDINGS, TABLES].iter();
    Path::new(POSTGRES).exists() && all.map(|name| inputs.join(name)).all(|path| path.exists())
}

/// A program that lives in its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub name: &'static str,
    /// Its arguments in the guest, which run it as long as is measured.
    pub guest: Vec<String>,
    /// And for the recording: as long as it is needed, or longer. Empty of a backend's, which
    /// are made with its tables.
    pub recorded: Vec<String>,
    /// References that warm up, and that are measured, in the modelled kernel.
    pub refs: [u64; 2],
    /// What a database backend is asked, instead of a program.
    pub query: Option<&'static str>,
}

/// A program beside it, which runs again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Searches a set of files, as often in one run as is said.
    Grep { set: u32, passes: usize },
    /// Puts the files into one.
    Tar,
    /// Transactions on files of its own.
    PostMark,
    /// Another program that lives in its memory.
    Memory(Subject),
}

/// How pages are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As the kernel does.
    Stock,
    /// Colors of the subject and of the first program beside it, as the module reads them;
    /// empty = none of its own.
    Colors([String; 2]),
    /// SRM-buffer with this threshold in pages.
    Srm(u32),
}

/// Programs and the ways to place their pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub name: String,
    /// Rows that it is run for.
    pub rows: &'static [&'static str],
    pub preset: &'static str,
    /// Of the guest.
    pub memory: &'static str,
    /// Of the modelled machine, where it cannot be as little: its DRAM's address bits say.
    pub modelled_memory: &'static str,
    pub vcpus: u16,
    /// Address bits of the colors.
    pub bits: std::ops::RangeInclusive<u32>,
    /// Files of 256 KiB in a set, and sets: each grep has one of its own.
    pub files: u32,
    pub sets: u32,
    pub subject: Subject,
    /// On the processors after the subject's.
    pub beside: Vec<Beside>,
    /// The case whose boots alone are the same as its own.
    pub alone: Option<String>,
    /// Run by time as well, for slowdowns.
    pub timed: bool,
    /// By their names in results.
    pub ways: Vec<(String, Way)>,
}

/// What is to be recorded: name, command (none: NAME.pbr is there), references at most, and files
/// that it depends on.
pub(super) type Recorded = (String, Vec<String>, u64, Vec<String>);

impl Subject {
    fn recorded(&self) -> Recorded {
        if self.query.is_some() {
            return (self.name.to_owned(), Vec::new(), 0, Vec::new());
        }
        let binary = format!("programs/{}", self.name);
        let command = std::iter::once(format!("./{binary}")).chain(self.recorded.clone());
        // A quarter more: the last references of a run may come after the last of a batch.
        let needed = self.refs.iter().sum::<u64>() * 5 / 4;
        (
            self.name.to_owned(),
            command.collect(),
            needed,
            vec![binary],
        )
    }

    fn in_guest(&self) -> Vec<String> {
        if let Some(query) = self.query {
            let folder = format!("/{SCRATCH}/{}", self.name);
            let client = ["session", &folder, "backend> ", query].map(str::to_owned);
            let backend = [POSTGRES, "--single", "-F", "-D", ".", "postgres"].map(str::to_owned);
            return [&client[..], &self.guest, &backend].concat();
        }
        let name = [self.name.to_owned()];
        name.into_iter().chain(self.guest.clone()).collect()
    }
}

impl Beside {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Grep { set: 0, .. } => GREP.to_owned(),
            Self::Grep { set, .. } => format!("{GREP}{}", set + 1),
            Self::Tar => "tar".to_owned(),
            Self::PostMark => "PostMark".to_owned(),
            Self::Memory(subject) => subject.name.to_owned(),
        }
    }

    /// The program of this computer that it takes.
    pub(super) const fn program(&self) -> Option<&'static str> {
        match self {
            Self::Grep { .. } => Some(GREP),
            Self::Tar => Some("tar"),
            Self::PostMark => Some("postmark"),
            Self::Memory(subject) if subject.query.is_some() => Some(DATABASE),
            Self::Memory(_) => None,
        }
    }

    const fn writes(&self) -> bool {
        matches!(self, Self::Tar | Self::PostMark)
    }

    /// Its command, with the folders of the files and of the guest's programs.
    fn command(&self, case: &Case, data: &str, programs: &str) -> Vec<String> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        match self {
            Self::Grep { set, passes } => {
                let mut all = words("grep -r");
                if case.sets > 1 {
                    all.push(format!("--include={}*", letter(*set)));
                }
                all.extend(["-c", WORD].map(str::to_owned));
                all.extend(std::iter::repeat_n(data.to_owned(), *passes));
                all
            }
            // From the root of the guest, so that tar has no leading slash to take off.
            Self::Tar => words(&format!(
                "tar cf {SCRATCH}/out.tar {}",
                data.trim_start_matches('/')
            )),
            Self::PostMark => words(&format!("postmark {programs}/{SETTINGS}")),
            Self::Memory(subject) => subject.in_guest(),
        }
    }

    fn recorded(&self, case: &Case) -> Recorded {
        if let Self::Memory(subject) = self {
            return subject.recorded();
        }
        let data = case.folder();
        let inputs = match self {
            Self::PostMark => vec![format!("programs/{SETTINGS}")],
            _ => case.names().map(|n| format!("{data}/{n}")).collect(),
        };
        let command = self.command(case, &data, "programs");
        (self.name().to_lowercase(), command, WHOLE, inputs)
    }
}

/// A path in a scenario.
fn quoted(path: &Path) -> toml::Value {
    toml::Value::String(path.display().to_string())
}

fn tree(from: &Path, to: &str) -> String {
    format!("[[tree]]\nfrom = {}\nto = \"{to}\"\n", quoted(from))
}

/// What a program needs beside itself, in its table.
fn needs(subject: &Subject) -> &'static str {
    match subject.query {
        Some(_) => NEEDS,
        None => "",
    }
}

/// What the names of a set's files begin with, where there are several.
fn letter(set: u32) -> char {
    char::from(b'a' + (set % 26) as u8)
}

impl Case {
    /// What is run, in words.
    pub(super) fn describe(&self) -> String {
        let beside: Vec<String> = self.beside.iter().map(Beside::name).collect();
        format!(
            "{}: {} {} on {} with {}, beside {}{}.",
            self.name,
            self.subject.name,
            self.subject.guest.join(" "),
            self.preset,
            self.memory,
            beside.join(", "),
            match self.files * self.sets {
                0 => String::new(),
                files => format!("; {files} files of {FILE}"),
            }
        )
    }

    /// Name of the program beside it, or of the first one.
    pub(super) fn other(&self) -> String {
        self.beside.first().map_or_else(String::new, Beside::name)
    }

    /// The folder of its files, below that of the inputs.
    pub(super) fn folder(&self) -> String {
        match self.sets {
            1 => format!("data-{}", self.files),
            sets => format!("data-{}x{sets}", self.files),
        }
    }

    /// The folder that its programs write to, below that of the inputs.
    pub(super) fn scratch(&self) -> Option<&'static str> {
        self.beside.iter().any(Beside::writes).then_some(SCRATCH)
    }

    /// Names of its backends.
    fn backends(&self) -> Vec<&'static str> {
        let others = self.beside.iter().filter_map(|b| match b {
            Beside::Memory(subject) => Some(subject),
            _ => None,
        });
        let all = std::iter::once(&self.subject).chain(others);
        all.filter(|s| s.query.is_some()).map(|s| s.name).collect()
    }

    /// Names of its files.
    fn names(&self) -> impl Iterator<Item = String> {
        let name = |set: u32, i: u32| match self.sets {
            1 => i.to_string(),
            _ => format!("{}{i}", letter(set)),
        };
        let files = self.files;
        (0..self.sets).flat_map(move |set| (0..files).map(move |i| name(set, i)))
    }

    /// What is recorded of the subject and of those beside it.
    pub(super) fn recorded(&self) -> Vec<Recorded> {
        let others = self.beside.iter().map(|b| b.recorded(self));
        std::iter::once(self.subject.recorded())
            .chain(others)
            .collect()
    }

    /// The scenario of the real kernel.
    pub(super) fn real(&self, form: &Form, module: &Path, inputs: &Path) -> Result<Real, String> {
        let mut text = format!(
            "schema = 1\nrepetitions = {}\nseed = {}\nalone = {}\n[machine]\npreset = \"{}\"\n\
             [guest]\nmemory = \"{}\"\nvcpus = {}\ntimeout = 3600\nappend = \"transparent_hugepage=never\"\n",
            form.repetitions,
            form.seed,
            self.alone.is_none(),
            self.preset,
            self.memory,
            self.vcpus
        );
        let backends = self.backends();
        if self.scratch().is_some() || !backends.is_empty() {
            let _ = writeln!(text, "scratch = \"{SCRATCH_BYTES}\"");
        }
        for name in &backends {
            let from = std::path::absolute(inputs.join(TABLES));
            let from = from.map_err(|e| format!("{}: {e}", inputs.display()))?;
            text += &tree(&from, &format!("/{SCRATCH}/{name}"));
        }
        if !backends.is_empty() {
            text += &tree(Path::new(SHARED), SHARED);
        }
        for (i, name) in (0u64..).zip(self.names()) {
            let seed = form.seed.wrapping_add(i) & i64::MAX as u64;
            let _ = write!(
                text,
                "[[file]]\nname = \"{name}\"\nsize = \"{FILE}\"\nseed = {seed}\n"
            );
        }
        let _ = write!(
            text,
            "[[program]]\nname = \"{}\"\ncommand = {:?}\nvcpu = 0\nmeasure = \"marks\"\n",
            self.subject.name,
            self.subject.in_guest()
        );
        text += needs(&self.subject);
        for (vcpu, beside) in (1..).zip(&self.beside) {
            let command = beside.command(self, "/data", "/piebald/programs");
            let _ = write!(
                text,
                "[[program]]\nname = \"{}\"\ncommand = {command:?}\nvcpu = {vcpu}\n\
                 role = \"polluter\"\n",
                beside.name()
            );
            if let Beside::Memory(subject) = beside {
                text += needs(subject);
            }
        }
        let map: Vec<String> = self.bits.clone().map(|b| b.to_string()).collect();
        for (name, way) in &self.ways {
            let _ = writeln!(text, "[[policy]]\nname = \"{name}\"");
            if *way != Way::Stock {
                let _ = writeln!(text, "module = \"{}\"\nmap = {map:?}", module.display());
            }
            match way {
                Way::Stock => {}
                Way::Colors(colors) => text += &format!("colors = {}\n", self.owned(colors)),
                Way::Srm(pages) => text += &format!("srm = true\nthreshold = {pages}\n"),
            }
        }
        Real::parse(&text, Path::new("/guest.toml")).map_err(|e| e.to_string())
    }

    fn owned(&self, colors: &[String; 2]) -> String {
        let named = [self.subject.name.to_owned(), self.other()];
        let named = named.into_iter().zip(colors);
        let named = named.filter(|(_, c)| !c.is_empty());
        let all: Vec<String> = named.map(|(n, c)| format!("{n} = \"{c}\"")).collect();
        format!("{{ {} }}", all.join(", "))
    }

    /// The scenario of the modelled kernel, over the recordings of the subject and of those
    /// beside it; `machine`: a file instead of the preset.
    pub(super) fn modelled(
        &self,
        form: &Form,
        recordings: &[PathBuf],
        machine: Option<&Path>,
    ) -> Result<String, String> {
        let machine = match machine {
            Some(path) => format!("file = {}", quoted(path)),
            None => format!("preset = \"{}\"", self.preset),
        };
        let [warmup, budget] = self.subject.refs;
        let mut text = format!(
            "schema = 1\nrepetitions = {}\nseed = {}\nbudget_refs = \"{budget}\"\n\
             warmup_refs = \"{warmup}\"\nalone = \"targets\"\n[machine]\n{machine}\n\
             memory = \"{}\"\nfeatures = \"coherence\"\n[output]\nset_map = 0\n",
            form.repetitions, form.seed, self.modelled_memory
        );
        // SRM-buffer needs a page cache; both of its ways have the same one.
        let has_files = self.ways.iter().any(|(_, w)| matches!(w, Way::Srm(_)));
        if has_files {
            text += "[files]\ndevice = \"nvme\"\nreadahead = \"6.x\"\n";
        }
        let subject = (self.subject.name.to_owned(), "target");
        let others = self.beside.iter().map(|b| (b.name(), "polluter"));
        let programs = std::iter::once(subject).chain(others);
        for (core, ((name, role), path)) in programs.zip(recordings).enumerate() {
            let _ = write!(
                text,
                "[[program]]\nname = \"{name}\"\nrecording = {}\ncores = \"{core}\"\n\
                 role = \"{role}\"\n",
                quoted(path)
            );
        }
        let map: Vec<String> = self.bits.clone().map(|b| b.to_string()).collect();
        for (name, way) in &self.ways {
            let _ = writeln!(text, "[[policy]]\nname = \"{name}\"\nmemory = \"fresh\"");
            match way {
                Way::Stock => {}
                Way::Colors(colors) => {
                    let owned = self.owned(colors);
                    let _ = writeln!(
                        text,
                        "frames = \"rainbow\"\ncolor_map = {map:?}\ncolors = {owned}"
                    );
                }
                Way::Srm(pages) => {
                    text += &format!("files = \"srm:threshold={pages}\"\ncolor_map = {map:?}\n");
                }
            }
        }
        Ok(text)
    }
}
