//! What to run in a guest: an experiment that guests can run.

use std::path::{Path, PathBuf};

use piebald_experiment::{
    Alone, Document, Experiment, Frames, HostName, KeyPath, Measure, MemorySize, Policy,
    PolicyColors, Problem, Program, Refused, Role, SrmOptions, Text, Words, Zone, is_command,
};
use piebald_hw::spec::MachineSpec;
use piebald_qemu::system::MAX_MEMORY;
use piebald_units::Bytes;

/// Most virtual processors.
const MAX_VCPUS: u16 = 16;
/// Virtual processors where programs need no more.
const VCPUS: u16 = 2;
/// Most repetitions.
const MAX_REPETITIONS: u64 = 100;
/// Memory of a guest if it is not said, and the least.
const MEMORY: u64 = 1 << 30;
const MIN_MEMORY: u64 = 256 << 20;
/// Largest threshold of SRM-buffer in pages.
const MAX_THRESHOLD: u32 = 1 << 16;

/// An experiment that guests can run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its text, and where it was read from.
    pub document: Document,
    /// What to run.
    pub experiment: Experiment,
    /// The modelled machine.
    pub machine: MachineSpec,
    /// What names it to the plugin: a preset, or the path of a file.
    pub machine_name: String,
}

impl Scenario {
    /// Reads and checks a scenario. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// All that cannot be run, with file, line, key, value and what is allowed.
    pub fn read(path: &Path) -> Result<Self, Refused> {
        Self::of(Document::read(path)?)
    }

    /// As [`read`](Self::read), of a text; `path` is for errors and relative file names.
    ///
    /// # Errors
    /// As there.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Refused> {
        Self::of(Document::new(path, text))
    }

    /// As [`read`](Self::read), of a document.
    ///
    /// # Errors
    /// As there.
    pub fn of(document: Document) -> Result<Self, Refused> {
        let document = document.on(HostName::Guest);
        let mut experiment = document.experiment()?;
        let at = KeyPath::of("machine");
        let machine = experiment.machine.build(document.folder(), &at);
        let (machine, _) = machine.map_err(|problem| document.refuse(vec![problem]))?;
        let machine_name = match &experiment.machine.file {
            // The plugin tells a file from a preset by its slash.
            Some(file) => std::path::absolute(document.folder().join(file))
                .map(|path| path.display().to_string())
                .map_err(|e| document.refuse(vec![Problem::at(at.key("file"), e.to_string())]))?,
            None => experiment.machine.preset.clone().unwrap_or_default(),
        };
        if experiment.policy.is_empty() {
            experiment.policy.push(Policy::stock());
        }
        let scenario = Self {
            document,
            experiment,
            machine,
            machine_name,
        };
        let problems = scenario.problems();
        if problems.is_empty() {
            Ok(scenario)
        } else {
            Err(scenario.document.refuse(problems))
        }
    }

    /// Title of the report.
    pub fn title(&self) -> String {
        let stem = self.document.path.file_stem();
        let stem = || stem.map_or("guest".into(), |s| s.to_string_lossy().into_owned());
        self.experiment.title.clone().unwrap_or_else(stem)
    }

    /// Boots of each policy and phase, with different free memory.
    pub fn repetitions(&self) -> u32 {
        self.experiment.repetitions.get_u32()
    }

    /// Policies, in the order of the report.
    pub fn policies(&self) -> &[Policy] {
        &self.experiment.policy
    }

    /// The program that is measured.
    pub fn target(&self) -> &Program {
        let programs = &self.experiment.program;
        let target = programs.iter().find(|p| p.role == Role::Target);
        target.unwrap_or(&programs[0])
    }

    /// The programs beside it.
    pub fn polluters(&self) -> impl Iterator<Item = &Program> {
        let programs = self.experiment.program.iter();
        programs.filter(|p| p.role == Role::Polluter)
    }

    /// The phases of a repetition: is the target run together with others?
    pub fn phases(&self) -> &'static [bool] {
        match (self.experiment.alone, self.polluters().next()) {
            (Alone::None, _) => &[true],
            (_, None) => &[false],
            (_, Some(_)) => &[false, true],
        }
    }

    /// Bytes of the guest's memory.
    pub fn memory(&self) -> u64 {
        match self.experiment.memory.size {
            Some(Text(MemorySize::Bytes(size))) => size.0,
            Some(Text(MemorySize::Share(_))) | None => MEMORY,
        }
    }

    /// The guest's virtual processors.
    pub fn vcpus(&self) -> u16 {
        let needed = self.experiment.program.iter().map(|p| vcpu(p) + 1).max();
        let given = self.experiment.guest.vcpus;
        let given = given.map(|n| u16::try_from(n.get()).unwrap_or(u16::MAX));
        given.unwrap_or_else(|| needed.unwrap_or(0).max(VCPUS))
    }

    /// Bytes of the disk that programs write to; 0 = none.
    pub fn scratch(&self) -> u64 {
        let size = self.experiment.guest.scratch;
        size.map_or(0, |Text(size)| size.0)
    }

    /// The module that a policy needs.
    pub fn module(&self, policy: &Policy) -> Option<PathBuf> {
        let needs = policy.module.is_some() || needs_module(policy);
        let module = policy.module.as_ref();
        let module = module.or(self.experiment.guest.module.as_ref());
        let module = module.filter(|_| needs)?;
        Some(self.document.folder().join(module))
    }

    /// The colors of a program under a policy, as the module reads them, and how they bind.
    pub fn colors(&self, policy: &Policy, program: &Program) -> Option<[String; 2]> {
        if policy.frames != Frames::Rainbow {
            return None;
        }
        let (asked, binding) = match policy.colors.get(program.name().as_ref()) {
            // The module knows no parts: they are refused.
            Some(PolicyColors::None | PolicyColors::Parts(..)) => return None,
            Some(PolicyColors::Asks(asked, binding)) => (asked, *binding),
            None => (&program.colors.as_ref()?.0, None),
        };
        let binding = binding.or(program.mode).unwrap_or_default();
        Some([asked.to_string(), binding.word().to_owned()])
    }

    /// The same in words: colors that are hints need none.
    pub fn colors_in_words(&self, policy: &Policy, program: &Program) -> Option<String> {
        let [colors, mode] = self.colors(policy, program)?;
        Some(match mode.as_str() {
            "hint" => colors,
            mode => format!("{colors} {mode}"),
        })
    }

    /// What guests cannot run of it.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.check_numbers(&mut problems);
        let targets = self.experiment.program.iter();
        let targets = targets.filter(|p| p.role == Role::Target).count();
        if targets != 1 {
            let says = format!("{targets} targets; allowed: exactly one");
            problems.push(Problem::at(KeyPath::of("program"), says));
        }
        for (i, program) in self.experiment.program.iter().enumerate() {
            let at = KeyPath::of("program").item(i);
            self.check_program(program, &at, &mut problems);
        }
        for (i, policy) in self.experiment.policy.iter().enumerate() {
            let at = KeyPath::of("policy").item(i);
            self.check_policy(policy, &at, &mut problems);
        }
        problems
    }

    fn check_numbers(&self, problems: &mut Vec<Problem>) {
        let experiment = &self.experiment;
        let repetitions = experiment.repetitions.get();
        if repetitions > MAX_REPETITIONS {
            let allowed = format!("1 to {MAX_REPETITIONS}");
            let path = KeyPath::of("repetitions");
            problems.push(Problem::refuse(path, repetitions, allowed));
        }
        let alone = KeyPath::of("alone");
        if experiment.alone == Alone::All && self.document.gives(&alone) {
            problems.push(Problem::refuse(alone, "\"all\"", "\"targets\", \"none\""));
        }
        let most = MAX_MEMORY.min(self.machine.memory.size.0);
        let size = experiment.memory.size.map(|Text(size)| size);
        let size = size.unwrap_or(MemorySize::Bytes(Bytes(MEMORY)));
        if !is_memory(size, most) {
            let allowed = format!("256MiB to {}MiB, in whole MiB", most >> 20);
            let path = KeyPath::of("memory").key("size");
            problems.push(Problem::refuse(path, size, allowed));
        }
        let core = &self.machine.core;
        let cores = core.sockets.saturating_mul(core.per_socket);
        let most = cores.saturating_mul(core.smt).min(MAX_VCPUS);
        if let Some(given) = experiment.guest.vcpus.filter(|n| n.get() > most.into()) {
            let allowed = format!("1 to {most} (hardware threads of the machine)");
            let path = KeyPath::of("guest").key("vcpus");
            problems.push(Problem::refuse(path, given.get(), allowed));
        }
    }

    fn check_program(&self, program: &Program, at: &KeyPath, problems: &mut Vec<Problem>) {
        let mut refuse = |key: &str, value: String, allowed: &str| {
            problems.push(Problem::refuse(at.key(key), value, allowed));
        };
        let words = program.command.as_deref().unwrap_or_default();
        let is_line = |word: &String| !word.contains(['\n', '\0']);
        let is_good = words.first().is_some_and(|word| is_command(word));
        if !is_good || !words.iter().all(is_line) {
            let allowed = "a program's name or absolute path, and arguments of one line";
            refuse("command", format!("{words:?}"), allowed);
        }
        let is_path = |word: &String| word.starts_with('/') && is_command(word);
        if !program.needs.iter().all(is_path) {
            let allowed = "absolute paths of programs";
            refuse("needs", format!("{:?}", program.needs), allowed);
        }
        let Text(cores) = program.cores;
        let core = &self.machine.core;
        let threads = core.sockets * core.per_socket * core.smt;
        let given = self.experiment.guest.vcpus.is_some();
        let most = if given {
            self.vcpus()
        } else {
            threads.min(MAX_VCPUS)
        };
        if cores.len() != 1 || vcpu(program) >= most {
            let last = most.saturating_sub(1);
            let allowed = if given {
                format!("one of 0 to {last} (guest.vcpus - 1)")
            } else {
                format!("one of 0 to {last} (hardware threads of the machine)")
            };
            refuse("cores", format!("\"{cores}\""), &allowed);
        }
        if program.role == Role::Polluter && program.measure == Some(Measure::Marks) {
            refuse("measure", "\"marks\"".to_owned(), "for the target only");
        }
    }

    fn check_policy(&self, policy: &Policy, at: &KeyPath, problems: &mut Vec<Problem>) {
        let mut refuse = |key: &str, value: String, allowed: &str| {
            problems.push(Problem::refuse(at.key(key), value, allowed));
        };
        if !matches!(policy.frames, Frames::Stock | Frames::Rainbow) {
            let value = format!("\"{}\"", policy.frames.word());
            refuse("frames", value, "\"stock\", \"rainbow\" in a guest");
        }
        for (name, colors) in &policy.colors {
            if let PolicyColors::Parts(parts, _) = colors {
                let allowed = "colors in a guest, such as \"0-3\"";
                refuse(&format!("colors.{name}"), format!("\"{parts}\""), allowed);
            }
        }
        let zone = srm(policy).unwrap_or_default();
        if zone.max_pages.is_some() || zone.idle_after.is_some() {
            let value = "\"srm\"".to_owned();
            refuse("files", value, "the option threshold alone in a guest");
        }
        if let Some(pages) = zone.threshold.filter(|n| !(1..=MAX_THRESHOLD).contains(n)) {
            let allowed = format!("a threshold of 1 to {MAX_THRESHOLD} pages");
            refuse("files", format!("\"srm:threshold={pages}\""), &allowed);
        }
        let missing = match (self.module(policy), &policy.color_map) {
            (None, _) if needs_module(policy) => {
                "needs the kernel module: guest.module says where it is"
            }
            (Some(_), None) => {
                "needs color_map: the address bits of the module's colors, such as [\"15\", \"16\"]"
            }
            _ => return,
        };
        problems.push(Problem::at(at.clone(), missing));
    }
}

/// May a guest have this memory?
fn is_memory(size: MemorySize, most: u64) -> bool {
    let MemorySize::Bytes(size) = size else {
        return false;
    };
    (MIN_MEMORY..=most).contains(&size.0) && size.0.is_multiple_of(1 << 20)
}

/// The virtual processor that a program runs on.
pub(crate) fn vcpu(program: &Program) -> u16 {
    let Text(cores) = program.cores;
    cores.iter().next().map_or(0, |core| core.0)
}

/// A program and its arguments.
pub(crate) fn command(program: &Program) -> &[String] {
    program.command.as_deref().unwrap_or_default()
}

/// SRM-buffer's options, if files go through its zone.
pub(crate) fn srm(policy: &Policy) -> Option<SrmOptions> {
    match policy.files {
        Some(Zone::Srm(options)) => Some(options),
        Some(Zone::Allocator) | None => None,
    }
}

/// Is it the module that obeys this policy?
fn needs_module(policy: &Policy) -> bool {
    policy.frames == Frames::Rainbow || srm(policy).is_some()
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
