//! `piebald record -o FILE -- CMD`

use std::{
    ffi::OsString,
    fmt::Write as _,
    io::Read,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use piebald_qemu::emulator::{Emulator, Sort};
use piebald_qemu::find;
use piebald_qemu::recorder::{RecordError, Recorder, Summary, own_qemu};
use piebald_reproduce::Wanted;
use piebald_trace::recording::{MAJOR, MINOR, WriteError};
use piebald_units::Count;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    failure::{Failure, print},
    json::Json,
    outputs::{apart, is_stdout},
    programs, running,
};

/// Arguments of `piebald record`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// File to write
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present = "build_qemu"
    )]
    output: Option<PathBuf>,
    /// References of all processes together to pass over first, such as 50M
    #[arg(long, value_name = "REFS")]
    skip: Option<Count>,
    /// References to keep after those
    #[arg(long, value_name = "REFS")]
    limit: Option<Count>,
    /// End the program when the limit is reached, instead of letting it finish
    /// unrecorded
    #[arg(long, requires = "limit")]
    stop_at_limit: bool,
    /// Record only between two marks of the program, `nopl 0x4b43NNNN(%rax)`:
    /// their numbers NNNN, as in 1:2
    #[arg(long, value_name = "FROM:TO", value_parser = region)]
    region: Option<(u32, u32)>,
    /// No summary
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    json: Json,
    /// Instead of recording: build a QEMU that takes the recorder's plugin from the source package
    /// of this Debian, or of another suite, where the installed one takes none
    #[arg(long, value_name = "SUITE", num_args = 0..=1, require_equals = true,
          default_missing_value = "", exclusive = true)]
    build_qemu: Option<String>,
    /// The program and its arguments
    #[arg(
        required_unless_present = "build_qemu",
        trailing_var_arg = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

const HELP: &str = "Needs QEMU user mode from 7.2 on, built with plugins: Debian 12's qemu-user is, those of later \
    ones are not. The first that takes the plugin is used: the one that PIEBALD_QEMU names, one beside this \
    program, qemu-x86_64 of PATH, or one that --build-qemu has built.";

fn region(text: &str) -> Result<(u32, u32), String> {
    let (from, to) = text.split_once(':').ok_or("allowed: FROM:TO, as in 1:2")?;
    let mark = |s: &str| match s.trim().parse::<u32>() {
        Ok(n) if n <= 0xffff => Ok(n),
        _ => Err(format!("\"{s}\" is no mark; allowed: 0 to 65535")),
    };
    Ok((mark(from)?, mark(to)?))
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(suite) = &args.build_qemu {
        let suite = (!suite.is_empty()).then_some(suite.as_str());
        let built = own_qemu::build(suite).map_err(Failure::failed)?;
        print(&format!("{}\n", built.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    // Not without `--output`, as the arguments are declared.
    let output = args.output.as_deref().unwrap_or(Path::new(""));
    if is_stdout(output) {
        return Err(Failure::usage(WriteError::Taken {
            path: output.to_owned(),
            what: "a recording cannot go to standard output",
        }));
    }
    apart(&[("--output", Some(output)), ("--json", args.json.path())])?;
    let mut recorder = Recorder::new(output);
    recorder.skip = args.skip.map_or(0, |n| n.0);
    if args.limit.is_some_and(|n| n.0 == 0) {
        return Err(Failure::usage("--limit 0: allowed: 1 reference and more"));
    }
    recorder.limit = args.limit.map(|n| n.0);
    recorder.stop_at_limit = args.stop_at_limit;
    recorder.region = args.region;
    // Nothing but the document is printed there.
    recorder.output_to_errors = args.json.on_stdout();
    let summary = recorder.run(&args.command).map_err(failure)?;
    for warning in &summary.warnings {
        crate::failure::say!("piebald: warning: {warning}");
    }
    if !args.quiet {
        crate::failure::say!("{}", describe(output, &summary).trim_end());
    }
    args.json.show("", &as_json(output, &summary))?;
    let ended = summary.status.success() || args.stop_at_limit;
    if let Some(signal) = summary.interrupted {
        running::stopped_by(signal);
    }
    Ok(running::ended(summary.complete && ended))
}

fn failure(error: RecordError) -> Failure {
    match error {
        RecordError::NotFound { .. }
        | RecordError::NotExecutable { .. }
        | RecordError::NotRecordable { .. }
        | RecordError::NoCommand
        | RecordError::NoProgram { .. }
        | RecordError::Write(WriteError::Taken { .. })
        | RecordError::AllSkipped { .. }
        | RecordError::RegionNotReached { .. }
        | RecordError::BadRegion { .. } => Failure::usage(error),
        _ => Failure::failed(error),
    }
}

fn describe(output: &Path, summary: &Summary) -> String {
    let complete = if summary.complete { "" } else { "INCOMPLETE, " };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {complete}{:.1} M references and {:.1} M instructions of {} process{} and {} thread{}",
        output.display(),
        summary.references as f64 / 1e6,
        summary.instructions as f64 / 1e6,
        summary.processes,
        if summary.processes == 1 { "" } else { "es" },
        summary.threads,
        if summary.threads == 1 { "" } else { "s" },
    );
    let _ = writeln!(
        text,
        "{:.1} MB, {:.2} bytes per reference; {:.1} s, {:.1} M references per second; the program ended with {}",
        summary.bytes as f64 / 1e6,
        summary.bytes_per_reference(),
        summary.seconds,
        summary.references_per_second() / 1e6,
        summary.status,
    );
    if let Some(programs) = programs::describe(&summary.programs) {
        let _ = writeln!(text, "{programs}");
    }
    text
}

fn as_json(output: &Path, summary: &Summary) -> Value {
    json!({
        "schema": 1,
        "output": output.display().to_string(),
        "complete": summary.complete,
        "at_limit": summary.at_limit,
        // A signal to the recorder, such as 2 after Ctrl-C.
        "interrupted": summary.interrupted,
        "exit_code": summary.status.code(),
        "signal": summary.status.signal(),
        "processes": summary.processes,
        "threads": summary.threads,
        "instructions": summary.instructions,
        "references": summary.references,
        "bytes": summary.bytes,
        "host_seconds": summary.seconds,
        "programs": summary.programs,
        "refused_calls": summary.refused,
        "warnings": summary.warnings,
    })
}

/// Records a command of a scenario into the cache directory, or finds it there:
/// the key is the command, the program's file, the number of references, QEMU's file, and the
/// versions of the program and of the format.
pub(crate) fn cached(words: &[String], refs: u64) -> Result<PathBuf, NotCached> {
    let folder = cache_folder()?.join("recordings");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let here = std::env::current_dir().map_err(|e| format!("the current folder: {e}"))?;
    let path = folder.join(format!("{}.pbr", key(words, [0, refs], &here, &[])?));
    if path.exists() {
        return Ok(path);
    }
    crate::failure::say!("piebald: recording {}", words.join(" "));
    let mut recorder = Recorder::new(&path);
    recorder.limit = Some(refs);
    recorder.stop_at_limit = true;
    recorder.quiet = true;
    let argv: Vec<OsString> = words.iter().map(OsString::from).collect();
    let summary = recorder
        .run(&argv)
        .map_err(|e| NotCached::Failed(e.to_string()))?;
    if let Some(why) = unfit(words, &summary) {
        // What is in the cache is taken for good.
        let _ = std::fs::remove_file(&path);
        return Err(why);
    }
    for warning in &summary.warnings {
        crate::failure::say!("piebald: warning: {warning}");
    }
    Ok(path)
}

/// Why a command of a scenario has no recording.
pub(crate) enum NotCached {
    /// The user stopped it.
    Interrupted(String),
    /// Anything else.
    Failed(String),
}

impl From<String> for NotCached {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

/// Why a recording does not stand for the program.
fn unfit(words: &[String], summary: &Summary) -> Option<NotCached> {
    let command = words.join(" ");
    if let Some(signal) = summary.interrupted {
        running::stopped_by(signal);
        let problem = format!("interrupted while {command} was recorded: nothing to report");
        return Some(NotCached::Interrupted(problem));
    }
    if summary.at_limit || summary.status.success() {
        return None;
    }
    let said = match summary.said.as_str() {
        "" => "it said nothing".to_owned(),
        said => format!("it said: {said}"),
    };
    Some(NotCached::Failed(format!(
        "{command} ended with {}; {said}; if that is as it should be, record it with `piebald \
         record` and name the recording",
        summary.status
    )))
}

pub(crate) fn cache_folder() -> Result<PathBuf, String> {
    find::cache_folder()
        .ok_or_else(|| "neither XDG_CACHE_HOME nor HOME is set: no place for recordings".into())
}

/// Records a program that stands in for another in the folder of its inputs, as a command of
/// its own so that several can be recorded at a time, or finds it in the cache directory. The
/// key is the command, what it reads, QEMU's file, and what is kept.
pub(crate) fn stand_in(wanted: &Wanted<'_>, inputs: &Path) -> Result<PathBuf, String> {
    let program = wanted.program;
    let (path, inputs) = stand_in_at(wanted, inputs)?;
    if path.exists() {
        return Ok(path);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let this = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let done = std::process::Command::new(this)
        .args(["record", "--quiet", "--stop-at-limit", "-o"])
        .arg(&path)
        .args(["--skip", &program.skip.to_string()])
        .args(["--limit", &wanted.refs.to_string(), "--"])
        .args(&program.command)
        .current_dir(&inputs)
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|e| format!("piebald record: {e}"))?;
    if done.status.success() {
        return Ok(path);
    }
    // What is in the cache is taken for good.
    let _ = std::fs::remove_file(&path);
    let said = String::from_utf8_lossy(&done.stderr);
    let last: Vec<&str> = said.trim().lines().rev().take(3).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("recording it failed: {}", last.join("; ")))
}

/// The recording of such a program, if it was made before.
pub(crate) fn stand_in_there(wanted: &Wanted<'_>, inputs: &Path) -> Result<PathBuf, String> {
    let (path, _) = stand_in_at(wanted, inputs)?;
    let is_there = path.exists();
    is_there
        .then_some(path)
        .ok_or_else(|| "not recorded yet, which running the row does".to_owned())
}

/// Where its recording belongs, and the folder of its inputs, which are all there.
fn stand_in_at(wanted: &Wanted<'_>, inputs: &Path) -> Result<(PathBuf, PathBuf), String> {
    let program = wanted.program;
    let inputs = std::path::absolute(inputs).map_err(|e| format!("{}: {e}", inputs.display()))?;
    let mut extra = Vec::new();
    for name in &program.inputs {
        let path = inputs.join(name);
        if path.is_dir() {
            extra.extend(files_in(&path).map_err(|e| format!("{}: {e}", path.display()))?);
        } else if path.is_file() {
            extra.push(path);
        } else {
            return Err(format!("{}: not there", path.display()));
        }
    }
    let folder = cache_folder()?.join("recordings");
    let key = key(
        &program.command,
        [program.skip, wanted.refs],
        &inputs,
        &extra,
    )?;
    let path = folder.join(format!("{}-{key}.pbr", program.name));
    Ok((path, inputs))
}

/// The files of a folder, those with the shortest names first.
fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries: std::io::Result<Vec<_>> = std::fs::read_dir(folder)?.collect();
    let paths = entries?.into_iter().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(files)
}

/// A name for what is recorded: `words`, references to skip and to keep, the folder that it
/// runs in, the content of all files, and the QEMU that would record it: where libraries lie and what
/// is an instruction differ between its versions.
fn key(
    words: &[String],
    refs: [u64; 2],
    folder: &Path,
    extra: &[PathBuf],
) -> Result<String, String> {
    let mut hash = Sha256::new();
    for word in words {
        hash.update((word.len() as u64).to_le_bytes());
        hash.update(word);
    }
    refs.iter().for_each(|n| hash.update(n.to_le_bytes()));
    hash.update(env!("CARGO_PKG_VERSION"));
    hash.update(MAJOR.to_le_bytes());
    hash.update(MINOR.to_le_bytes());
    hash.update(qemu_digest()?);
    hash.update(folder.as_os_str().as_encoded_bytes());
    for file in files(words, folder).iter().chain(extra) {
        let mut content = Vec::new();
        std::fs::File::open(file)
            .and_then(|mut f| f.read_to_end(&mut content))
            .map_err(|e| format!("{}: {e}", file.display()))?;
        hash.update(&content);
    }
    Ok(hash
        .finalize()
        .iter()
        .take(16)
        .fold(String::new(), |mut s, b| {
            let _ = write!(s, "{b:02x}");
            s
        }))
}

fn qemu_digest() -> Result<String, String> {
    let plugin = find::plugin(None).map_err(|e| e.to_string())?;
    let emulator = Emulator::find(Sort::Program, None, &plugin).map_err(|e| e.to_string())?;
    emulator
        .digest()
        .map_err(|e| format!("{}: {e}", emulator.qemu.display()))
}

/// The program and those arguments that are files: what the recording depends on.
fn files(words: &[String], folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = words[1..]
        .iter()
        .map(|word| folder.join(word))
        .filter(|p| p.is_file())
        .collect();
    let program = Path::new(&words[0]);
    if program.components().count() > 1 {
        files.push(folder.join(program));
    } else if let Some(paths) = std::env::var_os("PATH") {
        let found = std::env::split_paths(&paths).map(|p| p.join(program));
        files.extend(found.into_iter().find(|p| p.is_file()));
    }
    files
}
