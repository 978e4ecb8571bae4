//! The tables `[[program]]`.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use piebald_policy::hvr::Class;
use piebald_units::{Bytes, CoreSet};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_untagged::UntaggedEnumVisitor;

use crate::{
    Align, Binding, Change, Clients, Enter, Excerpt, KeyPath, Measure, Objects, OnLimit, Pace,
    Problem, RegionRequest, Share, Stage, Text, Walk, Word,
    colors::{Colors, check_changes},
    course::{Course, RunTime},
    replayed::REPLAYED,
    value::described,
    words::words,
};

words! {
    /// Why a program is there.
    pub enum Role {
        /// Its speed is the question.
        Target = "target",
        /// It is there to disturb the targets.
        Polluter = "polluter",
    }
}

/// One program. Exactly one of `recording`, `command`, `builtin`, `trace`, `requests`, `clients` and `touches` says
/// where its references come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name, not empty, and no other program's. Default: from the input.
    pub name: Option<String>,
    /// A file of `piebald record`, relative to the experiment's folder.
    #[schemars(extend("x-hosts" = "model"))]
    pub recording: Option<PathBuf>,
    /// A program and its arguments, recorded first.
    pub command: Option<Vec<String>>,
    /// A program that comes with Piebald.
    #[schemars(extend("x-hosts" = "model"))]
    pub builtin: Option<Builtin>,
    /// A memory trace of another tool, relative to the experiment's folder.
    #[schemars(extend("x-hosts" = "model"))]
    pub trace: Option<PathBuf>,
    /// Block or file traces, relative to the experiment's folder: `piebald replay` runs them,
    /// without a machine.
    #[schemars(extend("x-hosts" = "model"))]
    pub requests: Option<Vec<PathBuf>>,
    /// Clients that ask a server for queries: `piebald replay` runs them, without a machine.
    #[schemars(extend("x-hosts" = "model"))]
    pub clients: Option<Clients>,
    /// A built-in program of which only the pages that it touches are followed, above swap space: `smm`, as in
    /// `"smm:n=1048576,nz=8388608,iterations=15"`. `piebald replay` runs it, without a machine.
    #[schemars(extend("x-hosts" = "model"))]
    pub touches: Option<Builtin>,
    /// Which part of the requests is replayed. Default: all.
    #[schemars(extend("x-hosts" = "model"))]
    pub excerpt: Option<Excerpt>,
    /// What is in the columns of requests of another form, such as
    /// `"time=1:us,op=2,offset=3:B,size=4:B"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub columns: Option<String>,
    /// Are wrong requests left out and counted, instead of ending with the first?
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-hosts" = "model"))]
    pub lenient: bool,
    /// Which stage of each request is taken (blktrace, blkparse). Default: `"queue"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub stage: Option<Stage>,
    /// When requests are made. Default: `"serial"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub pace: Option<Pace>,
    /// How the times of several traces of requests belong together. Default: `"stamps"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub align: Option<Align>,
    /// Are files, disks and objects of one name the same in several traces of one format? Default:
    /// `"same"` where the traces are merged by their stamps, else `"apart"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub objects: Option<Objects>,
    /// Bytes of a page of requests: a power of two from 512B to 1GiB. Default: `"4KiB"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub page: Option<Text<Bytes>>,
    /// Does each object take a page although the requests say different sizes?
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-hosts" = "model"))]
    pub ignore_sizes: bool,
    /// The trace's format. Default: it is found out.
    #[schemars(extend("x-hosts" = "model"))]
    pub format: Option<String>,
    /// Regions that stand for a long program. Default: it is run from its beginning.
    #[schemars(extend("x-hosts" = "model"))]
    pub regions: Option<RegionRequest>,
    /// Does a built-in program draw anew in each repetition? Default: it does the same in all of them.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-hosts" = "model"))]
    pub redraw: bool,
    /// Where it is met, drawn in each repetition: `"anywhere"` in its recording (of a built-in program
    /// in the references of a warm-up and a measured part), in its first `"iteration"`, in so many
    /// references, or in a first share of its recording, `"50%"` (of a built-in program right after its set-up): then it
    /// begins again there when it ends. All before has taken place at no cost; of a built-in program also its set-up.
    /// Default: a target at its beginning, a polluter of one thread anywhere in the first half of its recording.
    #[schemars(extend("x-hosts" = "model"))]
    pub enter: Option<Enter>,
    /// Does it go on as another image of its process when it ends, so that it has a measured part however
    /// short it is? Default: it is started anew, and its measured part ends with it.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-hosts" = "model"))]
    pub again: bool,
    /// Is it measured over whole iterations, at least two, after a warm-up of at least two? Only of
    /// built-in programs.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-hosts" = "model"))]
    pub whole_iterations: bool,
    /// Do its warm-up and its budget count what its calls copy as well: two references for 64 B?
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-hosts" = "model"))]
    pub count_copies: bool,
    /// Are its files no other program's, though their names are the same?
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-hosts" = "model"))]
    pub own_files: bool,
    /// Which share of `warmup_refs` and `budget_refs` its own are. Default: 1.
    #[schemars(extend("x-hosts" = "model"))]
    pub length: Option<Share>,
    /// Hardware threads that it may use; needed, but for requests and with a table `[deal]`.
    #[serde(default = "no_cores", skip_serializing_if = "has_no_cores")]
    pub cores: Text<CoreSet>,
    /// Page colors that it owns under `frames = "rainbow"`.
    pub colors: Option<Colors>,
    /// Do its colors bind? Default: `"hard"`.
    pub mode: Option<Binding>,
    /// What happens when the colors that bind it are used up. Default: `"fail"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub on_limit: Option<OnLimit>,
    /// How its colors change while it runs, by rising `at`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-hosts" = "model"))]
    pub change: Vec<Change>,
    /// Why it is there.
    #[serde(default)]
    pub role: Role,
    /// What of it counts, if it is a target. Default: `"second-run"`.
    #[schemars(extend("x-hosts" = "guest"))]
    pub measure: Option<Measure>,
    /// Programs of this computer that it starts, by absolute paths: a guest has no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// What it is to HVR. Default: HVR watches it.
    #[schemars(extend("x-hosts" = "model"))]
    pub class: Option<Word<Class>>,
    /// How long SysMon takes to walk its page table, in microseconds, if it stands for a larger program. Default: by the
    /// pages that it has.
    #[schemars(extend("x-hosts" = "model"))]
    pub walk_us: Option<Walk>,
    /// When it comes, in microseconds of a course.
    #[schemars(extend("x-hosts" = "model"))]
    pub arrives_us: Option<RunTime>,
    /// When it goes, in microseconds of a course; later than it comes.
    #[schemars(extend("x-hosts" = "model"))]
    pub leaves_us: Option<RunTime>,
}

const fn no_cores() -> Text<CoreSet> {
    Text(CoreSet::EMPTY)
}

fn has_no_cores(cores: &Text<CoreSet>) -> bool {
    cores.0.is_empty()
}

const fn is_false(is: &bool) -> bool {
    !*is
}

/// A built-in program as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `"triad:64MiB"`.
    Text(String),
    /// `{ name = "triad", size = "64MiB", threads = 2 }`.
    Table(BTreeMap<String, Parameter>),
}

/// A parameter of a built-in program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `"64MiB"`, `"1K"`.
    Text(String),
    /// `2`.
    Number(i64),
}

/// What [`Builtin`] may be.
const BUILTIN: &str = "text such as \"triad:64MiB\", or a table of texts and whole numbers such as \
                       { name = \"triad\", size = \"64MiB\", threads = 2 }";

impl<'de> Deserialize<'de> for Builtin {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(BUILTIN)
            .string(|text| Ok(Self::Text(text.to_owned())))
            .map(|map| map.deserialize().map(Self::Table))
            .deserialize(from)
    }
}

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("text or a whole number")
            .string(|text| Ok(Self::Text(text.to_owned())))
            .i64(|number| Ok(Self::Number(number)))
            .deserialize(from)
    }
}

impl Serialize for Builtin {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

described!(() Builtin, "string", BUILTIN);

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// The form of one line, `NAME:KEY=VALUE,...`.
impl fmt::Display for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = match self {
            Self::Text(text) => return f.write_str(text),
            Self::Table(table) => table,
        };
        if let Some(name) = table.get("name") {
            name.fmt(f)?;
        }
        let rest = table.iter().filter(|(key, _)| *key != "name");
        for (i, (key, value)) in rest.enumerate() {
            let before = if i == 0 { ':' } else { ',' };
            write!(f, "{before}{key}={value}")?;
        }
        Ok(())
    }
}

/// Where references come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input<'a> {
    /// A recording.
    Recording(&'a Path),
    /// A command line to record first: a program and its arguments.
    Command(&'a [String]),
    /// A built-in program.
    Builtin(&'a Builtin),
    /// A memory trace of another tool, and its format if it is given.
    Trace(&'a Path, Option<&'a str>),
    /// Block or file traces.
    Requests(&'a [PathBuf]),
    /// Clients of a server.
    Clients(&'a Clients),
    /// A program of page touches.
    Touches(&'a Builtin),
}

impl Program {
    /// The key that says what is replayed of it, without a machine; none if a machine runs it.
    pub fn replayed(&self) -> Option<&'static str> {
        let are = [
            self.requests.is_some(),
            self.clients.is_some(),
            self.touches.is_some(),
        ];
        let mut all = REPLAYED.into_iter().zip(are);
        all.find_map(|(key, is)| is.then_some(key))
    }

    /// Where its references come from; `None` if that is not said exactly once.
    pub fn input(&self) -> Option<Input<'_>> {
        let format = self.format.as_deref();
        let all = [
            self.recording.as_deref().map(Input::Recording),
            self.command.as_deref().map(Input::Command),
            self.builtin.as_ref().map(Input::Builtin),
            self.trace.as_deref().map(|path| Input::Trace(path, format)),
            self.requests.as_deref().map(Input::Requests),
            self.clients.as_ref().map(Input::Clients),
            self.touches.as_ref().map(Input::Touches),
        ];
        let mut given = all.into_iter().flatten();
        given.next().filter(|_| given.next().is_none())
    }

    /// Its name: given, or from the input.
    pub fn name(&self) -> Cow<'_, str> {
        let stem = |path: &Path| {
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        if let Some(name) = &self.name {
            return name.into();
        }
        match self.input() {
            None => "".into(),
            Some(Input::Recording(path) | Input::Trace(path, _)) => stem(path).into(),
            Some(Input::Requests(paths)) => {
                paths.first().map_or_else(String::new, |p| stem(p)).into()
            }
            Some(Input::Command(words)) => {
                let program = Path::new(words.first().map_or("", String::as_str));
                let file = program.file_name().unwrap_or_default();
                file.to_string_lossy().into_owned().into()
            }
            Some(Input::Clients(clients)) => stem(&clients.sequences).into(),
            Some(Input::Builtin(builtin) | Input::Touches(builtin)) => {
                let text = builtin.to_string();
                text.split(':').next().unwrap_or_default().to_owned().into()
            }
        }
    }

    /// What its keys say together.
    pub(crate) fn check(
        &self,
        budget: u64,
        course: Option<&Course>,
        at: &KeyPath,
        problems: &mut Vec<Problem>,
    ) {
        self.check_input(at, problems);
        self.check_met(at, problems);
        self.check_colors(at, problems);
        check_changes(&self.change, budget, at, problems);
        if !self.change.is_empty() && self.regions.is_some() {
            let says = "a program with regions is run in parts";
            problems.push(Problem::at(at.key("change"), says));
        }
        let arrives = self.arrives_us.map_or(0, |t| t.picos().0);
        if let Some(leaves) = self.leaves_us.filter(|leaves| leaves.picos().0 <= arrives) {
            let allowed = "later than it arrives";
            problems.push(Problem::refuse(at.key("leaves_us"), leaves, allowed));
        }
        // A program that is not there while it is counted would be named as company.
        let Some(course) = course else { return };
        if let Some(arrives) = self
            .arrives_us
            .filter(|t| t.picos() >= course.until_us.picos())
        {
            let allowed = format!("less than course.until_us, {}", course.until_us);
            problems.push(Problem::refuse(at.key("arrives_us"), arrives, allowed));
        }
        let warmup = course.warmup_us;
        let gone = |leaves: &RunTime| warmup.is_some_and(|w| leaves.picos() <= w.picos());
        if let (Some(leaves), Some(warmup)) = (self.leaves_us.filter(gone), warmup) {
            let allowed = format!("more than course.warmup_us, {warmup}");
            problems.push(Problem::refuse(at.key("leaves_us"), leaves, allowed));
        }
    }

    fn check_input(&self, at: &KeyPath, problems: &mut Vec<Problem>) {
        match self.input() {
            None => {
                let says = "give exactly one of recording, command, builtin, trace, requests, clients and touches";
                problems.push(Problem::at(at.clone(), says));
            }
            Some(Input::Command([])) => {
                let allowed = "a program and its arguments";
                problems.push(Problem::refuse(at.key("command"), "[]", allowed));
            }
            Some(Input::Trace(..)) if self.regions.is_some() => {
                let says = "a trace of another tool has no blocks to choose regions by; convert it \
                            first (`piebald trace convert`) and give the recording";
                problems.push(Problem::at(at.key("regions"), says));
            }
            Some(_) => {}
        }
        if self.format.is_some() && self.trace.is_none() && self.requests.is_none() {
            problems.push(Problem::at(at.key("format"), "only a trace has one"));
        }
        if self.redraw && self.builtin.is_none() {
            let allowed = "false: a recording does the same in all repetitions";
            problems.push(Problem::refuse(at.key("redraw"), "true", allowed));
        }
        if self.redraw && self.regions.is_some() {
            let says = "regions are chosen once: they stand for one draw of a program";
            problems.push(Problem::at(at.key("redraw"), says));
        }
        if self.requests.as_ref().is_some_and(Vec::is_empty) {
            problems.push(Problem::refuse(
                at.key("requests"),
                "[]",
                "at least one trace",
            ));
        }
        let of_requests = [
            ("excerpt", self.excerpt.is_some()),
            ("columns", self.columns.is_some()),
            ("lenient", self.lenient),
            ("stage", self.stage.is_some()),
            ("pace", self.pace.is_some()),
            ("align", self.align.is_some()),
            ("objects", self.objects.is_some()),
            ("page", self.page.is_some()),
            ("ignore_sizes", self.ignore_sizes),
        ];
        for (key, is_given) in of_requests {
            if is_given && self.requests.is_none() {
                problems.push(Problem::at(at.key(key), "only requests have this key"));
            }
        }
    }

    /// How it is met and measured.
    fn check_met(&self, at: &KeyPath, problems: &mut Vec<Problem>) {
        let is_builtin = self.builtin.is_some();
        if self.whole_iterations && !is_builtin {
            let allowed = "false: only built-in programs mark their iterations";
            problems.push(Problem::refuse(at.key("whole_iterations"), "true", allowed));
        }
        if self.enter == Some(Enter::Iteration) && !is_builtin {
            let allowed = "\"start\", \"anywhere\", or references: only built-in programs mark their iterations";
            problems.push(Problem::refuse(at.key("enter"), "\"iteration\"", allowed));
        }
        let met = [
            ("length", self.length.is_some()),
            ("enter", self.enter.is_some()),
            ("again", self.again),
            ("whole_iterations", self.whole_iterations),
            ("count_copies", self.count_copies),
        ];
        for (key, _) in met.iter().filter(|(_, is)| *is && self.regions.is_some()) {
            let says = "a program with regions is run in parts";
            problems.push(Problem::at(at.key(key), says));
        }
    }

    fn check_colors(&self, at: &KeyPath, problems: &mut Vec<Problem>) {
        if self.colors.is_none() {
            let says = |word: &str, what: &str| format!("colors is missing: {word} says {what}");
            if self.mode.is_some() {
                let says = says("mode", "whether colors bind");
                problems.push(Problem::at(at.key("mode"), says));
            }
            if !self.change.is_empty() {
                let says = says("change", "how colors change");
                problems.push(Problem::at(at.key("change"), says));
            }
        }
        if self.mode == Some(Binding::Hint) && self.on_limit.is_some() {
            let says = "colors with mode = \"hint\" have no limit";
            problems.push(Problem::at(at.key("on_limit"), says));
        }
    }
}
