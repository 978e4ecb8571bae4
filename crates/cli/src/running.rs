//! What long work shares: how many threads it takes, how it is stopped, and the exit code then.

use std::{
    process::ExitCode,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    iterator::Signals,
    low_level::exit,
};

use crate::failure::Failure;

/// A shell adds this to the number of the signal that ended a program.
const SIGNALLED: u8 = 128;

/// The number of the last signal that stopped work; 0 if none did.
static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

fn last_signal() -> &'static Arc<AtomicUsize> {
    SIGNAL.get_or_init(Arc::default)
}

/// A file that would grow beyond the limit of `ulimit -f` is an error of its writer, which says which file it
/// is and takes away what is half-written. The signal alone would end the program. Programs that are started
/// meet it as ever: what is caught here is not caught there.
pub(crate) fn catch_file_limit() -> Result<(), Failure> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(Failure::failed)?;
    Ok(())
}

/// Lets this process have as many files open as it may ask for: all traces of a run are open at once. Only
/// replays ask: a program that is recorded or run in colors would inherit the limit.
pub(crate) fn many_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // As it was, if the system refuses; then too many files are an error that names the limit.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Takes so many threads instead of one for each core.
pub(crate) fn threads(wanted: Option<u16>) -> Result<(), Failure> {
    let Some(threads) = wanted else {
        return Ok(());
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(Failure::failed)
}

/// The signals that whoever started this program has it ignore (nohup, jobs in the background of a script),
/// a bit for each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// A flag that SIGINT, SIGTERM and SIGHUP set, but those that are ignored. A second signal does not wait for
/// results: it ends the program.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    // From here on no signal is lost: it waits for the thread. Were the flag set by an action of its own
    // behind another one, a signal between the two would neither end the program nor stop the work.
    let ignored = ignored();
    let heeded = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(heeded);
    let mut signals = Signals::new(wanted).map_err(Failure::failed)?;
    let flag = stop.clone();
    let listen = move || {
        for signal in signals.forever() {
            if flag.load(Ordering::SeqCst) {
                exit(i32::from(SIGNALLED) + signal);
            }
            stopped_by(signal);
            flag.store(true, Ordering::SeqCst);
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(listen).map_err(Failure::failed)?;
    Ok(stop)
}

/// Notes a signal that somebody else caught.
pub(crate) fn stopped_by(signal: i32) {
    let number = usize::try_from(signal).unwrap_or(0);
    last_signal().store(number, Ordering::Relaxed);
}

/// The exit code of work that failed: `code`, or 128 and the number of the signal that stopped it
/// (130 after Ctrl-C, 143 after SIGTERM).
pub(crate) fn failure_code(code: u8) -> u8 {
    let signal = last_signal().load(Ordering::Relaxed);
    match u8::try_from(signal) {
        Ok(0) | Err(_) => code,
        Ok(signal) => SIGNALLED.saturating_add(signal),
    }
}

/// The exit code of work that is complete, or of which a part is missing.
pub(crate) fn ended(complete: bool) -> ExitCode {
    match complete {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(failure_code(1)),
    }
}
