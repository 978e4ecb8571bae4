//! The driver: records one command, from start to finished file.
//!
//! ```no_run
//! # use piebald_qemu::recorder::Recorder;
//! let recorder = Recorder::new("grep.pbr".as_ref());
//! let summary = recorder.run(&["grep".into(), "-r".into(), "x".into(), ".".into()])?;
//! println!("{} references", summary.references);
//! # Ok::<(), piebald_qemu::recorder::RecordError>(())
//! ```
//!
//! The program keeps standard input, output and error, unless it is to be
//! [`quiet`](Recorder::quiet). `FILE.partial` grows while
//! it runs; `FILE` appears when it is whole. The recording lasts until the last
//! process that the command has started ends, as `strace -f` does.
//!
//! # When a recording is not complete
//! The header's `complete` is false, and `missing` says why, if a process could not
//! be followed, was ended by a signal (other than `SIGPIPE`, which is how members
//! of a pipeline end), or if the driver was told to end early (`SIGINT`,
//! `SIGTERM`). What the processes did until then is there: the driver takes it
//! from shared memory. A recording that a limit or a region cuts is complete.
//!
//! What QEMU does otherwise than the kernel leaves nothing out, but the user has to know: the
//! header and [`Summary`] name it (`differences`).

mod differences;
mod finish;
mod hush;
mod leftovers;
mod names;
mod own_limits;
pub mod own_qemu;
mod signals;
mod spool;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use core::sync::atomic::Ordering::{Acquire, SeqCst};
use piebald_trace::recording::{
    FileHeader, ProgramShare, ReadError, RecordingWriter, RefusedCall, WriteError,
};
use sha2::{Digest, Sha256};

use crate::emulator::{Emulator, NoEmulator, Sort};
use crate::find::{self, NoPlugin};
use crate::image::{self, Image, Verdict};
use crate::shared::{EARLY, Setup, Shared};

/// What to record, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorder {
    /// File to write; replaced if it exists.
    pub output: PathBuf,
    /// References of all processes together to pass over first.
    pub skip: u64,
    /// References to keep after those; all if `None`. Beyond the limit the
    /// program runs on unrecorded.
    pub limit: Option<u64>,
    /// Record references only between these two marks, `nopl 0x4b43NNNN(%rax)`
    /// with number NNNN. `skip` and `limit` then count inside the region.
    pub region: Option<(u32, u32)>,
    /// End the program when the limit is reached.
    pub stop_at_limit: bool,
    /// The program finds its standard input empty, and what it prints is not
    /// shown; the end of its standard error is kept for messages
    /// ([`Summary::said`]).
    pub quiet: bool,
    /// What the program prints to its standard output goes to standard error: the recorder's own
    /// standard output has something else.
    pub output_to_errors: bool,
    /// QEMU; found as [`Emulator::find`] says if `None`.
    pub qemu: Option<PathBuf>,
    /// The plugin; found as [`Recorder::run`] says if `None`.
    pub plugin: Option<PathBuf>,
}

/// Why nothing was recorded. `FILE` is then as it was before.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No QEMU that takes the plugin.
    #[error(transparent)]
    NoQemu(#[from] NoEmulator),
    /// No plugin.
    #[error(transparent)]
    NoPlugin(#[from] NoPlugin),
    /// No `/proc`.
    #[error("/proc is not mounted, and a recording needs it (as root: mount -t proc proc /proc)")]
    NoProc,
    /// No command.
    #[error("no command is given")]
    NoCommand,
    /// A region whose marks do not fit the instruction.
    #[error("region {from}:{to}: marks are numbers from 0 to 65535, and differ")]
    BadRegion {
        /// Opening mark.
        from: u32,
        /// Closing mark.
        to: u32,
    },
    /// The program is not found.
    #[error("{program}: command not found")]
    NotFound {
        /// The program.
        program: String,
    },
    /// What the program's first bytes name is not there.
    #[error("{program}: the interpreter or loader that it names is not there")]
    NoInterpreter {
        /// The program.
        program: String,
    },
    /// The kernel would not start it: shells do.
    #[error("{program}: no program; allowed: an x86-64 program, or a script that begins with #!")]
    NoProgram {
        /// The file.
        program: String,
    },
    /// A folder.
    #[error("{program}: a folder; allowed: a program")]
    Folder {
        /// The folder.
        program: String,
    },
    /// The program cannot be executed.
    #[error("{program}: {source}")]
    NotExecutable {
        /// The program.
        program: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The program would run, but not under QEMU.
    #[error("cannot be recorded: {why}")]
    NotRecordable {
        /// Which and why.
        why: String,
    },
    /// QEMU ended before the program began.
    #[error(
        "QEMU did not start the program ({status}){limits}; its message {}",
        match said.as_str() { "" => "is above".to_owned(), said => format!("is: {said}") }
    )]
    NotStarted {
        /// How QEMU ended.
        status: ExitStatus,
        /// What it said, if that was not shown.
        said: String,
        /// Limits that may be why.
        limits: String,
    },
    /// The limit on file sizes that this process has leaves no room.
    #[error(
        "the limit on file sizes (ulimit -f) is {allowed} bytes; recording needs at least {needed}"
    )]
    FileSizeLimit {
        /// The hard limit in bytes.
        allowed: u64,
        /// Bytes of the smallest shared memory.
        needed: u64,
    },
    /// All references were passed over.
    #[error(
        "nothing was recorded: the program made {made} references{}, and the first {skip} were to \
         be skipped",
        if *region { " between the marks" } else { "" }
    )]
    AllSkipped {
        /// References that were to be passed over.
        skip: u64,
        /// References of the program.
        made: u64,
        /// A region was asked for.
        region: bool,
    },
    /// The region did not begin.
    #[error(
        "nothing was recorded: the program never executed mark {from}, where the region begins"
    )]
    RegionNotReached {
        /// Opening mark.
        from: u32,
    },
    /// The operating system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The recording could not be written to the end.
    #[error("{file}: {source}; {file} is removed", file = file.display())]
    Spool {
        /// The partial file.
        file: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Header or index could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was written cannot be read again.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The program's exit status.
    pub status: ExitStatus,
    /// Nothing is missing.
    pub complete: bool,
    /// The signal to the driver (Ctrl-C) that ended the recording.
    pub interrupted: Option<i32>,
    /// The limit ended it.
    pub at_limit: bool,
    /// The end of what a [quiet](Recorder::quiet) program printed to standard
    /// error; else empty.
    pub said: String,
    /// What is missing, and what else the user should know.
    pub warnings: Vec<String>,
    /// System calls that QEMU refused although the kernel has them: those too that the C library
    /// always tries, of which no warning tells.
    pub refused: Vec<RefusedCall>,
    /// The programs that it holds, if there are several processes.
    pub programs: Vec<ProgramShare>,
    /// Processes, each executed image counted.
    pub processes: u64,
    /// Threads.
    pub threads: u64,
    /// Instructions recorded.
    pub instructions: u64,
    /// References recorded.
    pub references: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Seconds that the program ran.
    pub seconds: f64,
}

impl Summary {
    /// Bytes of file per reference; 0 without references.
    pub fn bytes_per_reference(&self) -> f64 {
        self.bytes as f64 / (self.references.max(1)) as f64
    }

    /// References recorded per second of the program's run.
    pub fn references_per_second(&self) -> f64 {
        self.references as f64 / self.seconds.max(1e-9)
    }
}

impl Recorder {
    /// Records everything into `output`.
    pub fn new(output: &Path) -> Self {
        Self {
            output: output.to_owned(),
            skip: 0,
            limit: None,
            region: None,
            stop_at_limit: false,
            quiet: false,
            output_to_errors: false,
            qemu: None,
            plugin: None,
        }
    }

    /// Runs the command, `argv[0]` being looked up in `PATH`, and records it.
    ///
    /// The plugin is what `PIEBALD_PLUGIN` names, or what the executable
    /// [carries](find::carry). An executable that carries none has `libpiebald_qemu.so` beside
    /// it, or in `..`, `deps`, `../deps`, `../lib` or `../lib/piebald` from there.
    ///
    /// # Errors
    /// See [`RecordError`]. That the program fails is none: see
    /// [`Summary::status`].
    pub fn run(&self, argv: &[OsString]) -> Result<Summary, RecordError> {
        let program = argv.first().ok_or(RecordError::NoCommand)?;
        if let Some((from, to)) = self.region
            && (from > 0xffff || to > 0xffff || from == to)
        {
            return Err(RecordError::BadRegion { from, to });
        }
        if !find::has_proc() {
            return Err(RecordError::NoProc);
        }
        // The plugin may be inside this program, and is then a file in memory.
        let file_size = own_limits::FileSize::raise()?;
        let plugin = find::plugin(self.plugin.as_deref())?;
        let emulator = Emulator::find(Sort::Program, self.qemu.as_deref(), &plugin)?;
        let image = find_image(program, argv)?;
        let mut header = header(argv, &image)?;
        header.midway = self.skip > 0 || self.region.is_some();
        let output = absolute(&self.output)?;
        let writer = RecordingWriter::create_with_room(&output, header, finish::HEADER_ROOM)?;
        let partial = writer.partial_path().to_owned();
        let setup = Setup {
            slots: file_size.slots(),
            emulator,
            skip: self.skip,
            limit: self.limit,
            region: self.region,
            stop_at_limit: self.stop_at_limit,
        };
        let result = self.record(writer, &image, &setup, &file_size);
        if result.is_err() {
            // Nothing half-written stays; the error says so.
            let _ = std::fs::remove_file(&partial);
        }
        result
    }

    fn record(
        &self,
        writer: RecordingWriter,
        image: &Image,
        setup: &Setup,
        file_size: &own_limits::FileSize,
    ) -> Result<Summary, RecordError> {
        let what = format!("shared memory{}", own_limits::told());
        let (shared, _open) = Shared::create(setup).map_err(system(&what))?;
        let shared = &shared;
        let partial = writer.partial_path().to_owned();
        let end = std::thread::scope(|scope| {
            let what = format!("the thread that writes the recording{}", own_limits::told());
            let spooler = spool::Spooler::begin(scope, shared, &partial).map_err(system(&what))?;
            let end = self.run_program(shared, setup, image, file_size);
            spooler.end().map_err(system(&what))?;
            end
        })?;
        let _no_signal = spool::NoSizeSignal::begin();
        finish::finish(writer, shared, end)
    }

    /// Runs the program to its end, and to that of all processes that it has started.
    fn run_program(
        &self,
        shared: &Shared,
        setup: &Setup,
        image: &Image,
        file_size: &own_limits::FileSize,
    ) -> Result<finish::End, RecordError> {
        let began = Instant::now();
        let signals = signals::Forwarding::begin().map_err(system("signal handlers"))?;
        let mut command = command(setup, shared, image);
        if self.quiet {
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::piped());
        } else if self.output_to_errors {
            command.stdout(std::io::stderr());
        }
        file_size.leave_to(&mut command);
        let mut child = command
            .spawn()
            .map_err(system(&setup.emulator.qemu.display().to_string()))?;
        let hushed = hush::Hushed::listen(child.stderr.take());
        signals.forward_to(child.id());
        let status = wait(&mut child, &signals).map_err(system("wait"))?;
        wait_for_others(shared, &signals);
        let seconds = began.elapsed().as_secs_f64();
        Ok(finish::End {
            status,
            received: signals.received(),
            said: hushed.said(),
            seconds,
        })
    }
}

fn system(what: &str) -> impl FnOnce(io::Error) -> RecordError {
    let what = what.to_owned();
    |source| RecordError::System { what, source }
}

fn absolute(path: &Path) -> Result<PathBuf, RecordError> {
    std::path::absolute(path).map_err(system(&path.display().to_string()))
}

fn find_image(program: &OsString, argv: &[OsString]) -> Result<Image, RecordError> {
    let name = || program.to_string_lossy().into_owned();
    let path = find::program(program).ok_or_else(|| RecordError::NotFound { program: name() })?;
    let preload = std::env::var_os("LD_PRELOAD");
    match image::resolve(&path, argv.to_vec(), preload.as_deref()) {
        Verdict::Follow(image) => Ok(image),
        Verdict::Escapes(why) => Err(RecordError::NotRecordable { why }),
        Verdict::Refused(libc::ENOENT) if path.exists() => {
            Err(RecordError::NoInterpreter { program: name() })
        }
        Verdict::Refused(libc::ENOENT) => Err(RecordError::NotFound { program: name() }),
        Verdict::Refused(libc::ENOEXEC) => Err(RecordError::NoProgram { program: name() }),
        Verdict::Refused(_) if path.is_dir() => Err(RecordError::Folder { program: name() }),
        Verdict::Refused(errno) => Err(RecordError::NotExecutable {
            program: name(),
            source: io::Error::from_raw_os_error(errno),
        }),
    }
}

fn header(argv: &[OsString], image: &Image) -> Result<FileHeader, RecordError> {
    let text = argv.iter().map(|a| a.to_string_lossy().into_owned());
    let mut header = FileHeader::new(text.collect());
    header.cpu = format!("QEMU {}", image::CPU);
    let mut hash = Sha256::new();
    let copied = File::open(&image.path).and_then(|mut f| io::copy(&mut f, &mut hash));
    copied.map_err(system(&image.path.display().to_string()))?;
    let digest = hash.finalize();
    header.binary_sha256 = digest.iter().map(|b| format!("{b:02x}")).collect();
    Ok(header)
}

fn command(setup: &Setup, shared: &Shared, image: &Image) -> Command {
    let env = std::env::vars_os().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    });
    let line = image::command(&setup.emulator, shared.path(), image, env.collect());
    let mut command = Command::new(&setup.emulator.qemu);
    command.args(&line.argv[1..]).env_clear();
    command.envs(line.env.iter().filter_map(split_variable));
    command
}

fn split_variable(variable: &OsString) -> Option<(OsString, OsString)> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = variable.as_bytes();
    let at = bytes.iter().position(|&b| b == b'=')?;
    let part = |b: &[u8]| OsString::from_vec(b.to_vec());
    Some((part(&bytes[..at]), part(&bytes[at + 1..])))
}

fn wait(child: &mut Child, signals: &signals::Forwarding) -> io::Result<ExitStatus> {
    let status = child.wait();
    signals.forward_to(0);
    status
}

/// Waits for processes that outlive the first one.
fn wait_for_others(shared: &Shared, signals: &signals::Forwarding) {
    let mut idle = Duration::ZERO;
    while signals.received().is_none() {
        let pause = Duration::from_millis(5);
        if finish::anyone_alive(shared) {
            idle = Duration::ZERO;
        } else if shared.forking.load(Acquire) == 0 || idle > Duration::from_secs(1) {
            return;
        }
        std::thread::sleep(pause);
        idle += pause;
    }
    // Told to end: nothing more is recorded, and nobody is waited for but those
    // who are just appending.
    let running = shared.stopped.compare_exchange(0, EARLY, SeqCst, Acquire);
    let patience = Instant::now() + Duration::from_secs(1);
    while running.is_ok() && finish::anyone_writing(shared) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The signal that a status names.
fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}
