//! Programs to record, and looking into recordings.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use piebald_qemu::emulator::{Emulator, Sort};
use piebald_qemu::find;
use piebald_qemu::recorder::{RecordError, Recorder, Summary};
use piebald_trace::recording::Recording;
use piebald_trace::recording::model::{AccessKind, BlockDef, Entry, Event, EventKind};

/// A directory for one test.
///
/// # Panics
/// If no QEMU takes the plugin. `PIEBALD_QEMU` chooses one.
pub fn bench() -> tempfile::TempDir {
    let plugin = find::plugin(None).expect("the plugin is built");
    if let Err(error) = Emulator::find(Sort::Program, None, &plugin) {
        panic!("{error}");
    }
    tempfile::tempdir().expect("temporary directory")
}

/// # Panics
/// If the program, which is in this Debian package, is absent.
pub fn need(program: &str, package: &str) {
    if let Err(error) = Command::new(program).arg("--version").output() {
        panic!("{program}: {error} (Debian package {package})");
    }
}

/// Compiles C with these options.
pub fn cc(dir: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, source).expect("write source");
    let status = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(&file)
        .args(options)
        .status();
    let status = status.expect("cc runs (Debian package build-essential)");
    assert!(status.success(), "cc {name}");
    program
}

/// Options for a static program whose section `.fixed` lies at 0x10000000.
pub const FIXED: [&str; 4] = [
    "-static",
    "-no-pie",
    "-Wl,--section-start=.fixed=0x10000000",
    "-mavx",
];

pub fn argv(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

pub fn recorder(dir: &Path) -> Recorder {
    Recorder::new(&dir.join("out.pbr"))
}

/// A recording with what most tests ask of it.
pub struct Seen {
    pub summary: Summary,
    pub recording: Recording,
}

/// The driver as a process of its own: the example `record`.
pub fn driver() -> PathBuf {
    let test = std::env::current_exe().expect("test");
    let profile = test.ancestors().nth(2).expect("profile directory");
    // `cargo test --test NAME` alone builds no examples, and one from before may be there. A crate by itself
    // would be compiled with other features than those that are there.
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--workspace", "--example", "record"])
        .args(["--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .arg("--target-dir")
        .arg(profile.parent().expect("target directory"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo runs").success());
    profile.join("examples/record")
}

pub fn record(dir: &Path, words: &[&str]) -> Seen {
    record_with(&recorder(dir), words)
}

pub fn record_with(recorder: &Recorder, words: &[&str]) -> Seen {
    let summary = recorder.run(&argv(words)).expect("records");
    let recording = Recording::open(&recorder.output).expect("opens");
    recording.verify().expect("verifies");
    let partial = recorder.output.with_extension("pbr.partial");
    assert!(!partial.exists(), "nothing is left over");
    Seen { summary, recording }
}

pub fn fails(recorder: &Recorder, words: &[&str]) -> RecordError {
    let error = recorder.run(&argv(words)).expect_err("fails");
    assert!(!recorder.output.exists(), "no file after {error}");
    let partial = recorder.output.with_extension("pbr.partial");
    assert!(!partial.exists(), "no partial file after {error}");
    error
}

/// One reference: what it does, size, address.
pub type Ref = (AccessKind, u8, u64);

impl Seen {
    pub fn events(&self) -> Vec<Event> {
        let chunks = 0..self.recording.index().chunks.len();
        let mut all: Vec<Event> = chunks
            .flat_map(|c| self.recording.events(c).expect("events"))
            .collect();
        all.sort_by_key(|e| e.seq);
        all
    }

    pub fn kinds(&self) -> Vec<EventKind> {
        self.events().into_iter().map(|e| e.kind).collect()
    }

    /// Successful calls of this number: path, return value.
    pub fn calls(&self, wanted: u32) -> Vec<(String, i64)> {
        let call = |kind| match kind {
            EventKind::Call {
                number, ret, path, ..
            } if number == wanted => Some((path.unwrap_or_default(), ret?)),
            _ => None,
        };
        self.kinds().into_iter().filter_map(call).collect()
    }

    /// Command lines of the images, without directories, in order.
    pub fn images(&self) -> Vec<String> {
        let image = |kind| match kind {
            EventKind::Start { argv, .. } if !argv.is_empty() => {
                let name = argv[0].rsplit('/').next().unwrap_or_default().to_owned();
                Some([&[name], &argv[1..]].concat().join(" "))
            }
            _ => None,
        };
        self.kinds().into_iter().filter_map(image).collect()
    }

    pub fn exits(&self) -> Vec<i32> {
        let exit = |kind| match kind {
            EventKind::Exit { status } => Some(status),
            _ => None,
        };
        self.kinds().into_iter().filter_map(exit).collect()
    }

    /// All references of a thread, and the number of its instructions.
    pub fn refs(&self, thread: u32) -> (Vec<Ref>, u64) {
        let index = self.recording.index();
        let mut out = Vec::new();
        let mut instrs = 0;
        for (c, entry) in index.chunks.iter().enumerate() {
            if entry.thread != thread {
                continue;
            }
            let defs = self
                .recording
                .block_defs(entry.process)
                .expect("dictionary");
            let (raw, _) = self.recording.raw_chunk(c).expect("chunk");
            let mut block: Option<&BlockDef> = None;
            for entry in raw {
                match entry.entry() {
                    Entry::Block(id) => {
                        block = Some(&defs[id as usize]);
                        instrs += u64::from(defs[id as usize].instrs);
                    }
                    Entry::Access(i, addr) => {
                        let access = block.expect("block first").accesses[usize::from(i)];
                        out.push((access.kind, access.size, addr));
                    }
                }
            }
        }
        (out, instrs)
    }

    /// The references of a thread to the section `.fixed` (1 MiB), by offset.
    pub fn fixed(&self, thread: u32) -> Vec<Ref> {
        let all = self.refs(thread).0.into_iter();
        let inside = all.filter(|r| (0x1000_0000..0x1010_0000).contains(&r.2));
        inside.map(|(k, s, a)| (k, s, a - 0x1000_0000)).collect()
    }
}
