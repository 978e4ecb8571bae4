//! The exit code names the signal that stopped the work; what is done is shown.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than any of this takes; it only ends what hangs.
const HANGS: Duration = Duration::from_secs(600);

/// Is the signal caught? From the mask that the kernel shows.
fn catches(child: &Child, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// Starts it, sends the signal as soon as it is caught, and answers code, output and messages.
fn stopped(folder: &Path, words: &str, signal: Signal) -> (Option<i32>, String, String) {
    // What runs in the background of a shell has SIGINT ignored, and hands that on.
    let mut child = Command::new("env")
        .args(["--default-signal", env!("CARGO_BIN_EXE_piebald")])
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let end = Instant::now() + HANGS;
    while !catches(&child, signal) {
        if Instant::now() > end || child.try_wait().expect("asked").is_some() {
            let _ = child.kill();
            panic!("{words}: never caught the signal");
        }
        sleep(Duration::from_millis(1));
    }
    let pid = Pid::from_raw(child.id() as i32).expect("a number");
    kill_process(pid, signal).expect("sent");
    while child.try_wait().expect("asked").is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            panic!("{words}: the signal did not end it");
        }
        sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A trace that takes seconds over a device, and a scenario that takes hours.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: String = (0..400_000u64)
        .map(|i| {
            format!(
                "{},h,0,Read,{},4096,5\n",
                1000 + i,
                i * 7919 % 99_991 * 4096
            )
        })
        .collect();
    fs::write(folder.path().join("t.csv"), rows).expect("written");
    let scenario = "schema = 1\nrepetitions = 1000\nbudget_refs = \"50M\"\n[machine]\n\
        preset = \"w3540\"\nmemory = \"192MiB\"\n\
        [[program]]\nbuiltin = \"chase:64KiB\"\ncores = \"0\"\n";
    fs::write(folder.path().join("s.toml"), scenario).expect("written");
    folder
}

#[test]
fn ctrl_c_ends_every_verb_with_130_and_sigterm_with_143() {
    let folder = folder();
    for words in [
        "replay t.csv -q",
        "study s.toml -q",
        "reproduce srm -q --only S-O1",
    ] {
        for (signal, wanted) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let (code, out, err) = stopped(folder.path(), words, signal);
            assert_eq!(code, Some(wanted), "{words}: {out}{err}");
            assert!(!err.contains("panicked"), "{words}: {err}");
        }
    }
}

/// What the caller ignores, as nohup does, stays ignored.
#[test]
fn an_ignored_signal_is_not_caught() {
    let folder = folder();
    let script = "trap '' HUP; exec \"$0\" study s.toml -q";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_piebald")])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let end = Instant::now() + HANGS;
    while !catches(&child, Signal::TERM) {
        assert!(child.try_wait().expect("asked").is_none(), "it ended");
        assert!(Instant::now() < end, "never caught SIGTERM");
        sleep(Duration::from_millis(1));
    }
    let caught = catches(&child, Signal::HUP);
    child.kill().expect("killed");
    child.wait().expect("ends");
    assert!(!caught);
}

#[test]
fn a_failure_without_a_signal_keeps_its_code() {
    let folder = folder();
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(["study", "no-such-scenario.toml"])
        .current_dir(folder.path())
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(2));
}
