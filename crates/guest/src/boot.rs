//! One boot: the distribution's kernel under QEMU with the plugin, and what it counted.
//!
//! `scripts/guest.sh` fetches the kernel, packs the initial file system and starts QEMU; it
//! is part of this library, and so are the programs of `programs/`, which are compiled
//! when a scenario is prepared.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anstream::adapter::strip_bytes;
use piebald_experiment::{MadeFile, Policy, Program, Role, Tree};
use piebald_qemu::{
    emulator::{Emulator, Sort},
    find,
    system::{MAX_MEMORY, results::Results},
};
use piebald_store::NOT_KEPT;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::{
    inputs,
    kept::{Sums, sum_of},
    programs::{compile, compile_one, own},
    scenario::{Scenario, command},
    script::{self, CODES},
};

const SCRIPTS: [(&str, &str); 2] = [
    ("guest.sh", include_str!("../../../scripts/guest.sh")),
    ("setup.sh", include_str!("../../../scripts/setup.sh")),
];
/// Where they are in the guest.
const PROGRAMS_DIR: &str = "/piebald/programs";
/// Folder in it of those that run beside a target, which mark nothing.
const UNMARKED: &str = "unmarked";
/// QEMU's model of a processor: string copies are single accesses, and who idles halts.
const CPU: &str = "max,-erms,-fsrm,-monitor";
/// Guest time is instruction time, and waiting takes no time of the host.
const ICOUNT: &str = "shift=0,sleep=off";
/// Room for the file system's own structures, in bytes.
const SPARE: u64 = 8 << 20;
/// The initial file system of a boot.
const INITIAL: &str = "initrd";
/// Image of the disk that programs write to, and folder of what it begins with.
const SCRATCH: &str = "scratch.img";
const TREES: &str = "scratch";
/// Folder of the files of `/data`.
const DATA: &str = "data";
/// What the script that starts QEMU said.
const SAID: &str = "said";
/// Between two looks at whether it has ended, or shall end.
const LOOK: Duration = Duration::from_millis(20);

/// Why a guest did not give results.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// A file of the preparation.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program of this computer is needed and not there.
    #[error("{0}: no such program (see piebald guest check)")]
    NoProgram(String),
    /// The plugin was not found, or no QEMU that takes it.
    #[error("{0}")]
    NoPlugin(String),
    /// A tool failed.
    #[error("{tool} failed with {status}: {said}")]
    Tool {
        /// Its name.
        tool: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it printed.
        said: String,
    },
    /// The guest failed.
    #[error("the guest failed ({why}): {said}")]
    Guest {
        /// Why, in words.
        why: String,
        /// The last lines that it printed.
        said: String,
    },
    /// The store is there to look only, and has no counts of this boot.
    #[error("{NOT_KEPT}")]
    NotKept,
    /// The caller asked to stop before a repetition of any policy was whole.
    #[error("stopped before the first repetition was complete: nothing to report")]
    Stopped,
    /// The threads that boot guests.
    #[error("threads for guests: {0}")]
    Threads(rayon::ThreadPoolBuildError),
    /// What the plugin wrote is not what it should be.
    #[error("the plugin's results: {0}")]
    Results(String),
}

/// What all boots of a scenario share: scripts, programs and the image of `/data`, in a
/// folder that goes with it.
#[derive(Debug)]
pub(crate) struct Tools {
    folder: tempfile::TempDir,
    emulator: Emulator,
    image: Option<PathBuf>,
    /// Programs of this computer, by the names that commands have.
    found: Vec<(String, PathBuf)>,
}

impl Tools {
    /// Prepares a scenario. `plugin`: the library, if it is not near this executable.
    ///
    /// # Errors
    /// What is missing or failed.
    pub(crate) fn prepare(scenario: &Scenario, plugin: Option<&Path>) -> Result<Self, BootError> {
        let plugin = find::plugin(plugin).map_err(|e| BootError::NoPlugin(e.to_string()))?;
        let emulator = Emulator::find(Sort::Machine, None, &plugin);
        let emulator = emulator.map_err(|e| BootError::NoPlugin(e.to_string()))?;
        let folder = tempfile::tempdir().map_err(|source| BootError::File {
            path: std::env::temp_dir(),
            source,
        })?;
        let mut tools = Self {
            folder,
            emulator,
            image: None,
            found: Vec::new(),
        };
        for (name, text) in SCRIPTS {
            write(tools.folder.path(), name, text)?;
        }
        compile(tools.folder.path())?;
        for program in &scenario.experiment.program {
            tools.find(program)?;
        }
        for program in scenario.polluters() {
            if let Some(source) = own(&command(program)[0]) {
                tools.compile_unmarked(source)?;
            }
        }
        for module in scenario
            .policies()
            .iter()
            .filter_map(|p| scenario.module(p))
        {
            File::open(&module).map_err(|source| BootError::File {
                path: module,
                source,
            })?;
        }
        if !scenario.experiment.file.is_empty() {
            tools.image = Some(tools.make_image(scenario)?);
        }
        for tree in &scenario.experiment.tree {
            let from = scenario.document.folder().join(&tree.from);
            tools.take(tree, &from)?;
        }
        Ok(tools)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sums of what the boots have in common and is not packed.
    ///
    /// # Errors
    /// Something of it cannot be read.
    pub(crate) fn sums(&self, scenario: &Scenario) -> Result<Sums, BootError> {
        let mut ask = Command::new("bash");
        ask.arg(self.path("guest.sh")).args(["path", "kernel"]);
        let told = run("guest.sh path kernel", &mut ask)?;
        let kernel = String::from_utf8_lossy(&told);
        let is_file = scenario.experiment.machine.file.is_some();
        let machine = Path::new(&scenario.machine_name);
        Ok(Sums {
            script: sum_of(&self.path(SCRIPTS[0].0))?,
            kernel: sum_of(Path::new(kernel.trim_end()))?,
            qemu: sum_of(&self.emulator.qemu)?,
            plugin: sum_of(&self.emulator.plugin)?,
            machine: if is_file {
                sum_of(machine)?
            } else {
                scenario.machine_name.clone()
            },
            data: self
                .image
                .is_some()
                .then(|| sum_of(&self.path(DATA)))
                .transpose()?,
            trees: self
                .path(TREES)
                .exists()
                .then(|| sum_of(&self.path(TREES)))
                .transpose()?,
        })
    }

    /// Copies a directory that the scratch disk begins with, once for all boots; one that is
    /// packed must be there.
    fn take(&self, tree: &Tree, from: &Path) -> Result<(), BootError> {
        std::fs::read_dir(from).map_err(|e| failed(from, e))?;
        let Some(name) = tree.on_disk() else {
            return Ok(());
        };
        let all = self.path(TREES);
        std::fs::create_dir_all(&all).map_err(|e| failed(&all, e))?;
        let mut copy = Command::new("cp");
        copy.arg("-a").arg("--").arg(from).arg(all.join(name));
        run("cp", &mut copy).map(drop)
    }

    /// Finds the programs of this computer that a command names and starts.
    fn find(&mut self, program: &Program) -> Result<(), BootError> {
        for needed in &program.needs {
            let path = find::program(OsStr::new(needed));
            let path = path.ok_or_else(|| BootError::NoProgram(needed.clone()))?;
            self.found.push((needed.clone(), path));
        }
        let name = &command(program)[0];
        if own(name).is_some() {
            return Ok(());
        }
        let path = find::program(OsStr::new(name));
        let path = path.ok_or_else(|| BootError::NoProgram(name.clone()))?;
        self.found.push((name.clone(), path));
        Ok(())
    }

    fn compile_unmarked(&self, source: &(&str, &str)) -> Result<(), BootError> {
        let programs = self.path("programs").join(UNMARKED);
        std::fs::create_dir_all(&programs).map_err(|e| failed(&programs, e))?;
        compile_one(
            self.folder.path(),
            source,
            &programs,
            &["-DPIEBALD_UNMARKED"],
        )
    }

    fn make_image(&self, scenario: &Scenario) -> Result<PathBuf, BootError> {
        let folder = self.path(DATA);
        let files = &scenario.experiment.file;
        write_files(files, &folder)?;
        let image = self.path("data.img");
        let bytes: u64 = files.iter().map(|f| f.size.0.0).sum();
        let folder = [OsStr::new("-d"), folder.as_os_str()];
        make_disk(&image, bytes + bytes / 16 + SPARE, &folder)?;
        Ok(image)
    }

    /// The disk that programs write to, as it is before every other boot.
    fn make_scratch(&self, image: &Path, bytes: u64) -> Result<(), BootError> {
        // Neither a journal nor tables to be written later: threads of the kernel that do it would
        // run on any processor.
        let options = ["-O", "^has_journal", "-E", "lazy_itable_init=0"];
        let mut options = options.map(OsStr::new).to_vec();
        let trees = self.path(TREES);
        if trees.exists() {
            options.extend([OsStr::new("-d"), trees.as_os_str()]);
        }
        make_disk(image, bytes, &options)
    }

    /// Makes what a guest begins with, beside others if need be.
    ///
    /// # Errors
    /// What is missing or failed.
    pub(crate) fn pack<'a>(
        &'a self,
        scenario: &'a Scenario,
        policy: &Policy,
        together: bool,
        repetition: u32,
    ) -> Result<Packed<'a>, BootError> {
        let resolved = self.resolved(scenario);
        // What is this boot's alone; the rest is only read.
        let own = tempfile::tempdir_in(self.folder.path());
        let own = own.map_err(|e| failed(self.folder.path(), e))?;
        let text = script::script(&resolved, policy, together, repetition);
        let script = write(own.path(), "run.sh", &text)?;
        let mut pack = Command::new("bash");
        pack.arg(self.path("guest.sh")).arg("pack");
        pack.arg(own.path().join(INITIAL)).arg("--run").arg(script);
        pack.args(self.contents(scenario, policy));
        run("guest.sh pack", &mut pack)?;
        Ok(Packed {
            tools: self,
            scenario,
            own,
        })
    }

    /// The scenario with the programs' paths in the guest.
    fn resolved(&self, scenario: &Scenario) -> Scenario {
        let mut resolved = scenario.clone();
        for program in &mut resolved.experiment.program {
            let is_polluter = program.role == Role::Polluter;
            let Some(first) = program.command.as_mut().and_then(|c| c.first_mut()) else {
                continue;
            };
            let found = self.found.iter().find(|(name, _)| name == first);
            if let Some((_, path)) = found {
                *first = path.display().to_string();
            } else if is_polluter {
                *first = format!("{PROGRAMS_DIR}/{UNMARKED}/{first}");
            }
        }
        resolved
    }

    /// What is packed, beside the script of the boot.
    fn contents(&self, scenario: &Scenario, policy: &Policy) -> Vec<OsString> {
        let mut options = Vec::new();
        let mut add = |name: &str, value: OsString| options.extend([name.into(), value]);
        let pair = |host: &Path, guest: &str| {
            let mut pair = host.as_os_str().to_owned();
            pair.push(format!(":{guest}"));
            pair
        };
        add("--file", pair(&self.path("programs"), PROGRAMS_DIR));
        for (_, path) in &self.found {
            add("--program", path.into());
        }
        let trees = scenario.experiment.tree.iter();
        for tree in trees.filter(|t| t.on_disk().is_none()) {
            let from = scenario.document.folder().join(&tree.from);
            add("--file", pair(&from, &tree.to));
        }
        if let Some(module) = scenario.module(policy) {
            add("--file", pair(&module, "/piebald/policy.ko"));
            add("--module", "configfs".into());
        }
        if self.image.is_some() || scenario.scratch() > 0 {
            add("--module", "virtio_blk".into());
        }
        options
    }

    /// The plugin and its arguments, as QEMU separates them.
    fn plugin_argument(&self, scenario: &Scenario, output: &Path) -> OsString {
        let memory = scenario.memory().min(MAX_MEMORY).to_string();
        self.emulator.option(&[
            ("machine", OsStr::new(&scenario.machine_name)),
            ("memory", OsStr::new(&memory)),
            ("output", output.as_os_str()),
        ])
    }
}

/// What a boot gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// What the plugin counted.
    pub(crate) results: Results,
    /// Numbers of the file `frames` of the target's set, which the guest reads when the target has ended: holders of frames by name.
    /// Empty if the target has no colours.
    pub(crate) frames: BTreeMap<String, u64>,
}

/// A guest that is ready to boot.
#[derive(Debug)]
pub(crate) struct Packed<'a> {
    tools: &'a Tools,
    scenario: &'a Scenario,
    /// What is its own: the script, the initial file system, the scratch disk and the results.
    own: tempfile::TempDir,
}

impl Packed<'_> {
    /// What QEMU is told that names no file.
    fn words(&self) -> Vec<String> {
        let guest = &self.scenario.experiment.guest;
        [
            "--memory",
            &format!("{}M", self.scenario.memory() >> 20),
            "--cpus",
            &self.scenario.vcpus().to_string(),
            "--append",
            &guest.append,
            "--qemu",
            "-icount",
            "--qemu",
            ICOUNT,
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// The disks, and how long it may take.
    fn disks(&self, scratch: Option<&Path>) -> Vec<OsString> {
        let timeout = self.scenario.experiment.guest.timeout.get().to_string();
        let mut options: Vec<OsString> = ["--timeout".into(), timeout.into()].to_vec();
        let mut add = |name: &str, value: &Path| options.extend([name.into(), value.into()]);
        if let Some(image) = &self.tools.image {
            add("--read-disk", image);
        }
        if let Some(image) = scratch {
            add("--disk", image);
        }
        options
    }

    /// Boots it, unless somebody wants an end meanwhile; what was counted.
    ///
    /// # Errors
    /// Why there is nothing to report.
    pub(crate) fn boot(&self, stop: Option<&AtomicBool>) -> Result<Outcome, BootError> {
        let bytes = self.scenario.scratch();
        let scratch = (bytes > 0).then(|| self.own.path().join(SCRATCH));
        if let Some(image) = &scratch {
            self.tools.make_scratch(image, bytes)?;
        }
        let output = self.own.path().join("results.json");
        let mut boot = Command::new("bash");
        boot.arg(self.tools.path("guest.sh")).arg("boot");
        boot.arg(self.own.path().join(INITIAL));
        boot.args(["--quiet", "--until-eof"]);
        boot.args(self.words()).args(self.disks(scratch.as_deref()));
        boot.args(["--qemu", "-plugin", "--qemu"]);
        boot.arg(self.tools.plugin_argument(self.scenario, &output));
        boot.env("PIEBALD_GUEST_CPU", CPU);
        boot.env(Sort::Machine.variable(), &self.tools.emulator.qemu);
        let (status, said) = ended(&mut boot, &self.own.path().join(SAID), stop)?;
        if !status.success() {
            let why = reason(status);
            let said = last_lines(&said);
            return Err(BootError::Guest { why, said });
        }
        let results = Results::read(&output).map_err(BootError::Results)?;
        if !results.complete {
            let why = "the guest's end was not seen";
            return Err(BootError::Results(why.into()));
        }
        let frames = script::frames_told(&String::from_utf8_lossy(&said));
        Ok(Outcome { results, frames })
    }

    /// All that its counts follow from, as text; `sums` are those of the tools.
    ///
    /// # Errors
    /// The initial file system cannot be read.
    pub(crate) fn identity(&self, sums: &Sums) -> Result<String, BootError> {
        let initial = self.own.path().join(INITIAL);
        let mut words = self.words();
        words.extend(["cpu".to_owned(), CPU.to_owned()]);
        words.extend(["scratch".to_owned(), self.scenario.scratch().to_string()]);
        Ok(sums.identity(&sum_of(&initial)?, &words))
    }
}

pub(crate) fn failed(path: &Path, source: std::io::Error) -> BootError {
    BootError::File {
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, BootError> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|e| failed(&path, e))?;
    Ok(path)
}

/// An image of a file system of that many bytes.
fn make_disk(image: &Path, bytes: u64, options: &[&OsStr]) -> Result<(), BootError> {
    let path = find::program(OsStr::new("mke2fs"));
    let mke2fs = path.unwrap_or_else(|| PathBuf::from("/sbin/mke2fs"));
    let mut make = Command::new(mke2fs);
    make.args(["-q", "-t", "ext4", "-b", "4096"]).args(options);
    make.arg(image).arg((bytes / 4096).to_string());
    run("mke2fs", &mut make).map(drop)
}

/// Writes files as guests find them in `/data` to a folder, which is made.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_files(files: &[MadeFile], folder: &Path) -> Result<(), BootError> {
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    for input in files {
        let path = folder.join(&input.name);
        let file = File::create(&path).map_err(|e| failed(&path, e))?;
        let mut file = BufWriter::new(file);
        inputs::write(input, &mut file).map_err(|e| failed(&path, e))?;
        file.flush().map_err(|e| failed(&path, e))?;
    }
    Ok(())
}

/// Runs a tool that must succeed; what it printed.
pub(crate) fn run(tool: &str, command: &mut Command) -> Result<Vec<u8>, BootError> {
    let ended = output_of(command)?;
    if ended.status.success() {
        return Ok(ended.stdout);
    }
    Err(BootError::Tool {
        tool: tool.into(),
        status: ended.status,
        said: last_lines(&ended.stderr),
    })
}

/// How a script ended, and all that it said, which lies in this file meanwhile. It is asked to end as soon as `stop` is set;
/// its standard input ends with this process, however that ends.
fn ended(
    command: &mut Command,
    said: &Path,
    stop: Option<&AtomicBool>,
) -> Result<(ExitStatus, Vec<u8>), BootError> {
    let program = PathBuf::from(command.get_program());
    let not_run = |source| failed(&program, source);
    let file = File::create(said).map_err(|e| failed(said, e))?;
    let other = file.try_clone().map_err(|e| failed(said, e))?;
    let started = command.stdin(Stdio::piped()).stdout(file).stderr(other);
    let mut child = started.spawn().map_err(not_run)?;
    let mut is_asked = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(not_run)? {
            break status;
        }
        if !is_asked && stop.is_some_and(|stop| stop.load(Relaxed)) {
            is_asked = true;
            // It is a child that nobody has waited for: nothing else can have its number.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        std::thread::sleep(LOOK);
    };
    let said = std::fs::read(said).map_err(|e| failed(said, e))?;
    Ok((status, said))
}

fn output_of(command: &mut Command) -> Result<std::process::Output, BootError> {
    let ended = command.stdin(Stdio::null()).output();
    ended.map_err(|source| BootError::File {
        path: command.get_program().into(),
        source,
    })
}

/// Why `guest.sh` failed: its own codes, and those of the guest's script.
fn reason(status: ExitStatus) -> String {
    let Some(code) = status.code() else {
        return status.to_string();
    };
    let own = CODES.iter().find(|(known, _)| *known == code);
    let why = match code {
        124 => "it took too long",
        125 => "it ended without a status",
        126 => "its kernel complained",
        _ => own.map_or("status", |(_, why)| why),
    };
    format!("{why}, {code}")
}

/// The last lines of what was printed, without what is not text.
fn last_lines(bytes: &[u8]) -> String {
    // A BIOS clears the screen and sets colors.
    let text = strip_bytes(bytes).into_vec();
    let text = String::from_utf8_lossy(&text);
    let clean = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let lines: Vec<String> = text.lines().map(clean).filter(|l| !l.is_empty()).collect();
    lines[lines.len().saturating_sub(8)..].join("\n  ")
}

#[cfg(test)]
#[path = "boot_golden.rs"]
mod golden;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_ends_when_somebody_wants_an_end_and_not_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = folder.path().join("said");
        let script = |text: &str| {
            let mut bash = Command::new("bash");
            bash.args(["-c", text]);
            bash
        };
        let whole = ended(&mut script("echo one; echo two >&2; exit 3"), &said, None);
        let (status, text) = whole.expect("it ran");
        assert_eq!((status.code(), &text[..]), (Some(3), &b"one\ntwo\n"[..]));
        let stop = AtomicBool::new(false);
        // It would take an hour, and says when it can be asked to end.
        let waits = "trap 'echo asked; exit 143' TERM; echo ready; sleep 3600 & wait";
        let ended = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ended(&mut script(waits), &said, Some(&stop)));
            while !std::fs::read_to_string(&said).is_ok_and(|text| text == "ready\n") {
                std::thread::sleep(LOOK);
            }
            stop.store(true, Relaxed);
            waiting.join().expect("no panic")
        });
        let (status, text) = ended.expect("it ran");
        assert_eq!(
            (status.code(), &text[..]),
            (Some(143), &b"ready\nasked\n"[..])
        );
    }

    #[test]
    fn the_last_lines_are_text() {
        let many: String = (0..20).map(|i| format!("line {i}\r\n")).collect();
        let last = last_lines(many.as_bytes());
        assert!(
            last.starts_with("line 12\n") && last.ends_with("line 19"),
            "{last:?}"
        );
        let bios =
            b"\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS (version 1.16)\r\n\x1b[1;31mno disk\x1b[0m \xff\n";
        assert_eq!(last_lines(bios), "SeaBIOS (version 1.16)\n  no disk ");
    }
}
