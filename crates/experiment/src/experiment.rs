//! The whole file.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Advise, Before, Course, Deal, Files, Frames, Guest, KeyPath, MAX_REFS, Machine, MadeFile,
    Memory, On, OnLimit, Output, Policy, Problem, Program, Refs, Role, Sweep, SysMon, Tree,
    WatchedSpeed, Whole,
    guest::{check_files, check_trees},
    value::Version,
    words::words,
};

/// References of a program and run if the file does not say.
pub const DEFAULT_BUDGET: u64 = 20_000_000;
/// Most programs: owners of cache lines are numbered in a byte.
const MAX_PROGRAMS: usize = 250;

words! {
    /// Which programs run together.
    pub enum Together {
        /// All of them.
        All = "all",
        /// Each target with all polluters, without the other targets.
        EachTarget = "each-target",
    }
}

words! {
    /// Which programs run alone, too.
    pub enum Alone {
        /// All of them.
        All = "all",
        /// Targets; polluters are company only.
        Targets = "targets",
        /// None: only policies are compared.
        None = "none",
    }
}

words! {
    /// Do the budget and the warm-up count the references of a program, or of each thread?
    pub enum BudgetOf {
        /// Those of a program, all of its threads together.
        Program = "program",
        /// Those of each thread: the measured part of a program begins as soon as one of its threads is
        /// through with the warm-up, and ends as soon as one is through with the budget.
        Thread = "thread",
    }
}

words! {
    /// What the draws of a repetition follow from, beside its seed.
    pub enum Draws {
        /// The places of programs in the file. They begin within 100 us of one another.
        Places = "places",
        /// Their names: a program is met at the same place whatever runs beside it, also in other files
        /// of the same seed. All programs begin at once.
        Names = "names",
    }
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Version of the file's layout.
    pub schema: Version,
    /// Title of the report. Default: the file's name.
    pub title: Option<String>,
    /// Seed of all draws.
    #[serde(default = "seed")]
    pub seed: Whole<0, { i64::MAX as u64 }>,
    /// Runs of each policy with different draws; intervals come from these.
    #[serde(default = "repetitions")]
    pub repetitions: Whole<1, 1000>,
    /// References of each program and run that are measured. Default: `"20M"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub budget_refs: Option<Refs<1>>,
    /// References before them. Default: a fifth of the budget.
    #[schemars(extend("x-hosts" = "model"))]
    pub warmup_refs: Option<Refs<0>>,
    /// Do `budget_refs` and `warmup_refs` count the references of a program, or of each thread?
    #[serde(default)]
    #[schemars(extend("x-hosts" = "model"))]
    pub budget_of: BudgetOf,
    /// What do the draws of a repetition follow from, beside its seed?
    #[serde(default)]
    #[schemars(extend("x-hosts" = "model"))]
    pub draws: Draws,
    /// Hardware threads that are dealt out to programs without `cores`. Default: each program has `cores`.
    #[schemars(extend("x-hosts" = "model"))]
    pub deal: Option<Deal>,
    /// Which programs run together.
    #[serde(default)]
    pub together: Together,
    /// Which programs run alone, too.
    #[serde(default)]
    pub alone: Alone,
    /// The machine that programs run on; needed, but for requests.
    #[serde(default, skip_serializing_if = "is_none")]
    pub machine: Machine,
    /// The memory that the kernel has.
    #[serde(default)]
    pub memory: Memory,
    /// What is looked at beside times and counts.
    #[serde(default)]
    #[schemars(extend("x-hosts" = "model"))]
    pub output: Output,
    /// Advice on shares of the last level. Default: none is given.
    #[schemars(extend("x-hosts" = "model"))]
    pub advise: Option<Advise>,
    /// What SysMon sees of each program alone. Default: nothing is watched so.
    #[schemars(extend("x-hosts" = "model"))]
    pub sysmon: Option<SysMon>,
    /// Runs that end by time. Default: runs end when every target's measured part has.
    #[schemars(extend("x-hosts" = "model"))]
    pub course: Option<Course>,
    /// A disk, and one memory for files and programs. Default: files cost no time.
    #[schemars(extend("x-hosts" = "model"))]
    pub files: Option<Files>,
    /// Files that are made before anything runs. Programs find them in /data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file: Vec<MadeFile>,
    /// Directories of this computer that the guest has as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-hosts" = "guest"))]
    pub tree: Vec<Tree>,
    /// How a guest is booted. The model has no use for it.
    #[serde(default)]
    pub guest: Guest,
    /// What runs before the programs and loads files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-hosts" = "model"))]
    pub before: Vec<Before>,
    /// Programs, 1 to 250.
    pub program: Vec<Program>,
    /// Policies. Default: one, stock.
    #[serde(default)]
    pub policy: Vec<Policy>,
    /// Axes: keys and the values that each takes in turn; the study is run for all of their
    /// combinations.
    #[serde(default, skip_serializing_if = "no_axes")]
    pub sweep: Sweep,
    /// What holds for one host alone: `[on.model]` and `[on.guest]` have keys of the file, which
    /// are laid over the others.
    #[serde(default, skip_serializing)]
    pub on: On,
}

fn is_none(machine: &Machine) -> bool {
    *machine == Machine::default()
}

fn no_axes(sweep: &Sweep) -> bool {
    sweep.0.is_empty()
}

const fn seed() -> Whole<0, { i64::MAX as u64 }> {
    Whole::new(42)
}

const fn repetitions() -> Whole<1, 1000> {
    Whole::new(3)
}

/// A name stands in tables, files and messages, where a line feed would make two lines of one.
fn unprintable(at: &KeyPath, name: &str) -> Option<Problem> {
    let value = format!("\"{}\"", name.escape_debug());
    let wrong = name.chars().any(char::is_control);
    wrong.then(|| Problem::refuse(at.key("name"), value, "a name without control characters"))
}

impl Experiment {
    /// References of each program and run that are measured.
    pub fn budget(&self) -> u64 {
        self.budget_refs.map_or(DEFAULT_BUDGET, Refs::get)
    }

    /// References before them.
    pub fn warmup(&self) -> u64 {
        self.warmup_refs.map_or(self.budget() / 5, Refs::get)
    }

    /// All that is wrong with what the keys say together.
    pub(crate) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.check_programs(&mut problems);
        if let Some(deal) = &self.deal {
            deal.check(&self.program, &mut problems);
        }
        self.check_together(&mut problems);
        if let Some(course) = &self.course {
            course.check(&KeyPath::of("course"), &mut problems);
        }
        self.check_policies(&mut problems);
        for (i, before) in self.before.iter().enumerate() {
            let at = KeyPath::of("before").item(i);
            before.check((&self.program, &self.policy), &at, &mut problems);
        }
        if self.files.is_some() {
            self.check_paged(&mut problems);
        }
        let is_replay = self.program.iter().any(|p| p.replayed().is_some());
        if let Some(files) = self.files.as_ref().filter(|_| !is_replay) {
            files.check(&mut problems);
        }
        if !is_replay && self.output.miss_ratio.is_some() {
            let path = KeyPath::of("output").key("miss_ratio");
            problems.push(Problem::at(path, "only requests have such curves"));
        }
        check_files(&self.file, &mut problems);
        check_trees(&self.tree, self.guest.scratch.is_some(), &mut problems);
        self.guest.check(&mut problems);
        problems
    }

    fn check_programs(&self, problems: &mut Vec<Problem>) {
        let all = KeyPath::of("program");
        if self.program.is_empty() {
            problems.push(Problem::at(
                all.clone(),
                "at least one [[program]] table is needed",
            ));
            return;
        }
        if self.program.len() > MAX_PROGRAMS {
            let says = format!(
                "{} tables: allowed: 1 to {MAX_PROGRAMS}",
                self.program.len()
            );
            problems.push(Problem::at(all.item(MAX_PROGRAMS), says));
        }
        let mut names = HashSet::new();
        for (i, program) in self.program.iter().enumerate() {
            let at = all.item(i);
            program.check(self.budget(), self.course.as_ref(), &at, problems);
            let of_program = [
                ("regions", program.regions.is_some()),
                ("change", !program.change.is_empty()),
                ("whole_iterations", program.whole_iterations),
                // How many threads it has is known when it has been recorded.
                ("command", program.command.is_some()),
            ];
            let is_given = |(key, is_given): (&'static str, bool)| is_given.then_some(key);
            let of_program = of_program.into_iter().filter_map(is_given);
            for key in of_program.filter(|_| self.budget_of == BudgetOf::Thread) {
                let says = "allowed only with budget_of = \"program\"";
                problems.push(Problem::at(at.key(key), says));
            }
            let name = program.name();
            let is_new = names.insert(name.clone());
            // What has no input has no name by default, and is refused for that.
            let has_name = program.name.is_some() || !name.is_empty();
            if has_name && (name.trim().is_empty() || !is_new) {
                problems.push(Problem {
                    path: at.key("name"),
                    value: Some(format!("\"{name}\"")),
                    says: "names must be unique and not empty".to_owned(),
                });
            }
            problems.extend(unprintable(&at, &name));
            if self.course.is_none() && (program.arrives_us.or(program.leaves_us)).is_some() {
                let says = "arrives_us and leaves_us: allowed only with a table [course], which \
                            says how long runs last";
                problems.push(Problem::at(at, says));
            }
        }
        if self.program.iter().all(|p| p.role == Role::Polluter) {
            let says = "at least one must have role = \"target\"";
            problems.push(Problem::at(all.item(0), says));
        }
    }

    fn check_together(&self, problems: &mut Vec<Problem>) {
        let meet = match self.together {
            Together::All => self.program.len() > 1,
            Together::EachTarget => self.program.iter().any(|p| p.role == Role::Polluter),
        };
        if self.alone == Alone::None && !meet && self.sysmon.is_none() {
            let allowed = "\"all\" or \"targets\" where programs do not run together";
            problems.push(Problem::refuse(KeyPath::of("alone"), "\"none\"", allowed));
        }
        let speed = self.sysmon.map(|sysmon| sysmon.speed);
        if speed == Some(WatchedSpeed::Alone) && self.alone != Alone::All {
            let path = KeyPath::of("sysmon").key("speed");
            let allowed = "\"one\" where not all programs run alone";
            problems.push(Problem::refuse(path, "\"alone\"", allowed));
        }
    }

    fn check_policies(&self, problems: &mut Vec<Problem>) {
        let all = KeyPath::of("policy");
        let mut names = HashSet::new();
        for (i, policy) in self.policy.iter().enumerate() {
            let at = all.item(i);
            let name = &policy.name;
            problems.extend(unprintable(&at, name));
            if name.trim().is_empty() || !names.insert(name) {
                let allowed = "unique names that are not empty";
                problems.push(Problem::refuse(
                    at.key("name"),
                    format!("\"{name}\""),
                    allowed,
                ));
            }
            let is_replay = self.program.iter().any(|p| p.replayed().is_some());
            policy.check(self.files.is_some() || is_replay, &at, problems);
            let known: Vec<_> = self.program.iter().map(Program::name).collect();
            for name in policy
                .colors
                .keys()
                .filter(|name| !known.contains(&(*name).into()))
            {
                let says = format!("no program has this name: allowed: {}", known.join(", "));
                problems.push(Problem::at(at.key("colors").key(name), says));
            }
        }
        self.check_owners(problems);
    }

    /// What only some policies ask of programs.
    fn check_owners(&self, problems: &mut Vec<Problem>) {
        let has = |frames| self.policy.iter().any(|p| p.frames == frames);
        if !has(Frames::Hvr) {
            for (i, _) in self
                .program
                .iter()
                .enumerate()
                .filter(|(_, p)| p.class.is_some())
            {
                let path = KeyPath::of("program").item(i).key("class");
                problems.push(Problem::at(path, "no policy has frames = \"hvr\""));
            }
        }
        if has(Frames::Rainbow) {
            return;
        }
        for (i, program) in self.program.iter().enumerate() {
            let key = match (&program.colors, program.on_limit) {
                (Some(_), _) => "colors",
                (None, Some(_)) => "on_limit",
                (None, None) => continue,
            };
            let path = KeyPath::of("program").item(i).key(key);
            problems.push(Problem::at(path, "no policy has frames = \"rainbow\""));
        }
    }

    /// What does not go with a disk.
    fn check_paged(&self, problems: &mut Vec<Problem>) {
        for (i, program) in self.program.iter().enumerate() {
            let at = KeyPath::of("program").item(i);
            if program.on_limit == Some(OnLimit::Swap) {
                let allowed = "\"fail\" beside [files], whose own policy says what leaves memory";
                problems.push(Problem::refuse(at.key("on_limit"), "\"swap\"", allowed));
            }
            if program.regions.is_some() {
                problems.push(Problem::at(
                    at.key("regions"),
                    "allowed only without [files]",
                ));
            }
        }
    }
}

// The default budget is one that a file may name.
const _: () = assert!(DEFAULT_BUDGET <= MAX_REFS);
