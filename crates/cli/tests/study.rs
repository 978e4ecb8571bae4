//! The command as a user meets it: exit codes, messages, files, interrupts.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use piebald_qemu::emulator::{Emulator, Sort};
use piebald_qemu::find;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const SMALL: &str = r#"schema = 1
title = "Small"
repetitions = 2
budget_refs = "10k"
warmup_refs = "2k"

[machine]
preset = "w3540"
memory = "192MiB"

[output]
set_map = 5

[[program]]
builtin = "chase:64KiB"
cores = "0"

[[program]]
builtin = "scan:1MiB"
cores = "1"
role = "polluter"
"#;

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// The same for a test that records.
///
/// # Panics
/// If QEMU is absent.
fn recorder_folder() -> TempDir {
    let plugin = find::plugin(None).expect("the plugin is built");
    if let Err(error) = Emulator::find(Sort::Program, None, &plugin) {
        panic!("{error}");
    }
    folder()
}

fn piebald(folder: &Path, args: &[&str]) -> Command {
    // What runs in the background of a shell has SIGINT ignored, and hands that on.
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_piebald")]);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// Runs the command; whatever happens, it must not panic.
fn run(folder: &Path, args: &[&str]) -> (i32, String, String) {
    seen(&piebald(folder, args).output().expect("starts"))
}

fn seen(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (output.status.code().unwrap_or(-1), out, err)
}

/// A failure with this code, whose message is ours and contains `parts`.
fn refused(folder: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let (actual, out, err) = run(folder, args);
    assert_eq!(actual, code, "{args:?}: {err}");
    assert!(err.starts_with("piebald: "), "{args:?}: {err}");
    assert_eq!(out, "", "{args:?}");
    for part in parts {
        assert!(err.contains(part), "{args:?}: {part}: {err}");
    }
}

fn small(folder: &Path) {
    fs::write(folder.join("s.toml"), SMALL).expect("written");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("folder");
    let mut names: Vec<String> = entries
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_study_prints_a_table_and_exits_with_0() {
    let dir = folder();
    small(dir.path());
    let (code, out, err) = run(dir.path(), &["study", "s.toml"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for part in ["chase", "scan", "stock"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("PARTIAL") && !out.contains('\u{1b}'), "{out}");
    assert_eq!(names(dir.path()), ["s.toml"]);
}

#[test]
fn json_goes_to_standard_output_alone() {
    let dir = folder();
    small(dir.path());
    let args = [
        "study",
        "s.toml",
        "--json",
        "-",
        "--seed",
        "9",
        "--repetitions",
        "1",
    ];
    let (code, out, err) = run(dir.path(), &args);
    assert_eq!((code, err.as_str()), (0, ""));
    let study: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(study["schema"], 2);
    assert_eq!(study["complete"], true);
    assert_eq!(
        (study["seed"].as_u64(), study["repetitions"].as_u64()),
        (Some(9), Some(1))
    );
    assert_eq!(study["policies"][0]["programs"][0]["name"], "chase");
    assert_eq!(study["scenario"], SMALL);
    // Neither the number of threads nor a second run changes anything.
    let again = |threads: &str| {
        let args = [&args[..], &["--threads", threads]].concat();
        let (_, out, _) = run(dir.path(), &args);
        let mut study: Value = serde_json::from_str(&out).expect("JSON");
        study["host_seconds"] = Value::Null;
        study
    };
    assert_eq!(again("1"), again("3"));
}

#[test]
fn csv_goes_to_standard_output_alone() {
    let dir = folder();
    small(dir.path());
    let (code, out, _) = run(
        dir.path(),
        &["study", "s.toml", "--csv", "-", "--budget", "5k"],
    );
    assert_eq!(code, 0);
    let mut lines = out.lines();
    let columns = lines.next().expect("a head").split(',').count();
    assert!(columns > 3);
    let mut rows = 0;
    for line in lines {
        assert!(line.split(',').count() >= columns, "{line}");
        rows += 1;
    }
    assert!(rows > 4);
}

#[test]
fn a_folder_gets_all_three_files() {
    let dir = folder();
    small(dir.path());
    let (code, out, _) = run(dir.path(), &["study", "s.toml", "-o", "deep/out"]);
    assert_eq!(code, 0);
    assert!(out.contains("chase"));
    let made = dir.path().join("deep/out");
    assert_eq!(names(&made), ["report.html", "study.csv", "study.json"]);
    let json = fs::read_to_string(made.join("study.json")).expect("read");
    assert_eq!(
        serde_json::from_str::<Value>(&json).expect("JSON")["schema"],
        2,
    );
    let html = fs::read_to_string(made.join("report.html")).expect("read");
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
}

#[test]
fn what_cannot_be_written_fails_and_leaves_nothing() {
    let dir = folder();
    small(dir.path());
    fs::write(dir.path().join("file"), "old").expect("written");
    fs::create_dir(dir.path().join("taken")).expect("made");
    for (option, path) in [
        ("--html", "no/such/report.html"),
        ("--html", "taken"),
        ("--json", "file/x.json"),
        ("-o", "file"),
    ] {
        // It is found out before anything is run.
        let (code, _, err) = run(dir.path(), &["study", "s.toml", option, path]);
        assert_eq!(code, 2, "{err}");
        assert!(err.starts_with("piebald: ") && err.contains(path), "{err}");
        assert_eq!(names(dir.path()), ["file", "s.toml", "taken"], "{path}");
    }
    assert_eq!(fs::read(dir.path().join("file")).expect("read"), b"old");
    assert!(names(&dir.path().join("taken")).is_empty());
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    let dir = folder();
    small(dir.path());
    for args in [
        &["study"][..],
        &["study", "s.toml", "--repetitions", "0"],
        &["study", "s.toml", "--budget", "much"],
        &["study", "s.toml", "--threads", "many"],
        &["study", "s.toml", "--threads", "100000"],
        &["stdy", "s.toml"],
        &[],
    ] {
        let (code, out, err) = run(dir.path(), args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(
            err.contains("Usage") || err.contains("--help"),
            "{args:?}: {err}"
        );
    }
    let budget = ["study", "s.toml", "--budget"];
    for refs in ["0", "2T", "18446744073709551615"] {
        let args = [&budget[..], &[refs]].concat();
        refused(dir.path(), &args, 2, &["--budget", "allowed: 1 to 1T"]);
    }
    assert_eq!(run(dir.path(), &["--version"]).0, 0);
    assert_eq!(run(dir.path(), &["study", "--help"]).0, 0);
}

#[test]
fn a_wrong_scenario_exits_with_2_and_its_line() {
    let dir = folder();
    let with = |old: &str, new: &str, parts: &[&str]| {
        fs::write(dir.path().join("s.toml"), SMALL.replacen(old, new, 1)).expect("written");
        refused(dir.path(), &["study", "s.toml"], 2, parts);
    };
    with(
        "w3540",
        "w3541",
        &["s.toml:8: ", "machine.preset", "\"w3541\"", "x5355", "zen"],
    );
    with(
        "cores = \"1\"",
        "cores = \"9\"",
        &["s.toml:20: ", "program[1].cores", "0-3"],
    );
    with(
        "chase:64KiB",
        "chase:1B",
        &["s.toml:14: ", "program[0]: \"chase\"", "\"1B\"", "allowed"],
    );
    with(
        "builtin = \"chase:64KiB\"",
        "recording = \"x.pbr\"",
        &["s.toml:14: ", "x.pbr"],
    );
    with("title", "tittle", &["s.toml:2: ", "`tittle`", "`title`"]);
    refused(
        dir.path(),
        &["study", "none.toml"],
        2,
        &["none.toml", "cannot be read"],
    );
    refused(dir.path(), &["study", "."], 2, &["cannot be read"]);
    fs::write(dir.path().join("b.toml"), b"title = \"\xff\"").expect("written");
    let says = ["b.toml: is no text: line 1 has the byte 0xff", "UTF-8"];
    refused(dir.path(), &["study", "b.toml"], 2, &says);
    refused(dir.path(), &["machine", "check", "b.toml"], 2, &says);
    let disk = ["replay", "t.csv", "--size", "16KiB", "--device", "b.toml"];
    fs::write(dir.path().join("t.csv"), "1\n2\n3\n").expect("written");
    refused(dir.path(), &disk, 2, &["line 1 has the byte 0xff", "UTF-8"]);
    with(
        "preset = \"w3540\"",
        "file = \"b.toml\"",
        &["b.toml", "line 1 has the byte 0xff"],
    );
    fs::write(dir.path().join("b.toml"), b"\xff\xfet\0").expect("written");
    refused(dir.path(), &["study", "b.toml"], 2, &["b.toml", "UTF-16"]);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_command_that_does_not_exist_is_named() {
    let dir = recorder_folder();
    let text = SMALL.replacen(
        "builtin = \"chase:64KiB\"",
        "command = [\"no-such-cmd\"]",
        1,
    );
    fs::write(dir.path().join("s.toml"), text).expect("written");
    let (code, out, err) = run(dir.path(), &["study", "s.toml"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(
        err.contains("no-such-cmd") && err.contains("s.toml:14: "),
        "{err}"
    );
}

#[test]
fn memory_that_runs_out_exits_with_1() {
    let dir = folder();
    let text = SMALL
        .replace("192MiB", "96MiB")
        .replace("chase:64KiB", "chase:80MiB");
    fs::write(dir.path().join("s.toml"), text).expect("written");
    refused(
        dir.path(),
        &["study", "s.toml"],
        1,
        &["\"stock\"", "\"chase\""],
    );
}

/// When something that always happens is not waited for any longer. Never a measure of speed: the
/// machine may be a hundred times slower than usual.
const HANGS: Duration = Duration::from_secs(600);

/// Ends a child that a failed test leaves behind.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interrupt(child: &Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

/// Waits until its SIGINT handler is in place: the study has begun.
fn wait_for_handler(child: &Child) {
    let end = Instant::now() + HANGS;
    let path = format!("/proc/{}/status", child.id());
    while Instant::now() < end {
        let status = fs::read_to_string(&path).expect("runs");
        assert!(!status.contains("zombie"), "it has ended");
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
        let mask = u64::from_str_radix(caught.unwrap_or("0").trim(), 16).expect("a mask");
        if mask & 2 != 0 {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("no handler");
}

/// Exit code and both outputs, or a failure if it runs on.
fn ends(mut child: Guard) -> (i32, String, String) {
    let end = Instant::now() + HANGS;
    loop {
        if let Some(status) = child.0.try_wait().expect("waits") {
            let mut texts = [String::new(), String::new()];
            child
                .0
                .stdout
                .take()
                .expect("out")
                .read_to_string(&mut texts[0])
                .expect("UTF-8");
            child
                .0
                .stderr
                .take()
                .expect("err")
                .read_to_string(&mut texts[1])
                .expect("UTF-8");
            assert!(!texts[1].contains("panicked"), "{}", texts[1]);
            let [out, err] = texts;
            return (status.code().unwrap_or(-1), out, err);
        }
        assert!(Instant::now() < end, "runs on after an interrupt");
        sleep(Duration::from_millis(20));
    }
}

fn start(dir: &Path, args: &[&str]) -> Guard {
    let mut command = piebald(dir, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = Guard(command.spawn().expect("starts"));
    wait_for_handler(&child.0);
    child
}

/// Seconds of processor time that it has used, in all threads.
fn processor_seconds(child: &Child) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    assert!(!fields.starts_with('Z'), "it has ended");
    let fields: Vec<&str> = fields.split(' ').collect();
    // utime and stime; a tick is a hundredth of a second.
    let ticks = [11, 12].map(|at| fields[at].parse::<f64>().expect("a number"));
    (ticks[0] + ticks[1]) / 100.0
}

#[test]
fn an_interrupt_keeps_whole_repetitions_as_partial() {
    let dir = folder();
    small(dir.path());
    let mut args = vec!["study", "s.toml", "--threads", "2", "--budget", "40k"];
    args.extend(["--repetitions", "1000"]);
    let child = start(dir.path(), &args);
    // A repetition takes tenths of a second of processor time: some are complete, most are not.
    let end = Instant::now() + HANGS;
    while processor_seconds(&child.0) < 3.0 {
        assert!(Instant::now() < end, "nothing is simulated");
        sleep(Duration::from_millis(10));
    }
    interrupt(&child.0);
    let (code, out, err) = ends(child);
    assert_eq!(code, 130, "{err}");
    assert!(out.contains("PARTIAL"), "{out}{err}");
}

#[test]
fn an_interrupt_in_the_first_repetition_says_that_there_is_nothing() {
    let dir = folder();
    // So many runs belong to one repetition that none can be complete.
    let policy = |i| format!("[[policy]]\nname = \"p{i}\"\n");
    let policies: String = (0..400).map(policy).collect();
    fs::write(dir.path().join("s.toml"), format!("{SMALL}{policies}")).expect("written");
    let child = start(dir.path(), &["study", "s.toml", "--json", "x.json"]);
    interrupt(&child.0);
    let (code, out, err) = ends(child);
    assert_eq!((code, out.as_str()), (130, ""), "{err}");
    assert!(
        err.starts_with("piebald: ") && err.contains("nothing to report"),
        "{err}"
    );
    assert_eq!(names(dir.path()), ["s.toml"]);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let dir = folder();
    let mut child = piebald(dir.path(), &["machine", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let (code, _, err) = seen(&child.wait_with_output().expect("ends"));
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn programs_that_cannot_be_recorded_exit_with_2() {
    let dir = recorder_folder();
    fs::write(dir.path().join("data"), "no program").expect("written");
    for (program, part) in [("no-such-cmd", "no-such-cmd"), ("./data", "./data")] {
        refused(
            dir.path(),
            &["record", "-o", "x.pbr", "--", program],
            2,
            &[part],
        );
        // What QEMU was asked is kept in the cache.
        assert_eq!(names(dir.path()), ["cache", "data"]);
    }
    for region in ["1", "1:70000", "a:b"] {
        let args = ["record", "-o", "x.pbr", "--region", region, "--", "true"];
        let (code, _, err) = run(dir.path(), &args);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(region) || err.contains("70000"), "{err}");
    }
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_program_that_fails_is_recorded_and_exits_with_1() {
    let dir = recorder_folder();
    let (code, _, err) = run(dir.path(), &["record", "-o", "x.pbr", "--", "false"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("exit status: 1"), "{err}");
    assert_eq!(names(dir.path()), ["cache", "x.pbr"]);
    let (code, out, err) = run(dir.path(), &["trace", "info", "x.pbr"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, _, err) = run(dir.path(), &["record", "-q", "-o", "y.pbr", "--", "true"]);
    assert_eq!((code, err.as_str()), (0, ""));
}

/// A scenario whose first program is a command.
fn with_command(folder: &Path, words: &str, budget: &str) {
    let text = SMALL
        .replacen(
            "builtin = \"chase:64KiB\"",
            &format!("name = \"c\"\ncommand = {words}"),
            1,
        )
        .replacen("10k", budget, 1);
    fs::write(folder.join("s.toml"), text).expect("written");
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_command_that_is_recorded_is_not_heard() {
    let dir = recorder_folder();
    with_command(
        dir.path(),
        r#"["sh", "-c", "read x; echo to-out; echo to-err >&2"]"#,
        "2M",
    );
    let (code, out, err) = run(dir.path(), &["study", "s.toml", "--csv", "-"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("policy,"), "{out}");
    assert!(!out.contains("to-out"), "{out}");
    // The command is named once; nothing of it is heard.
    assert_eq!(err.matches("to-err").count(), 1, "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert_eq!(names(&dir.path().join("cache/piebald/recordings")).len(), 1);
    let (code, again, err) = run(dir.path(), &["study", "s.toml", "--csv", "-"]);
    assert_eq!((code, err.as_str(), again), (0, "", out));
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_recording_of_one_qemu_does_not_answer_for_another() {
    let dir = recorder_folder();
    with_command(dir.path(), r#"["true"]"#, "2M");
    let recordings = dir.path().join("cache/piebald/recordings");
    let plugin = find::plugin(None).expect("the plugin is built");
    let found = Emulator::find(Sort::Program, None, &plugin).expect("QEMU is there");
    // What lies behind the end of a program changes the file and nothing else.
    let other = dir.path().join("qemu");
    fs::copy(&found.qemu, &other).expect("copied");
    let file = fs::OpenOptions::new().append(true).open(&other);
    file.and_then(|mut f| f.write_all(b"\n")).expect("written");
    for (qemu, kept) in [(&found.qemu, 1), (&other, 2), (&other, 2), (&found.qemu, 2)] {
        let mut command = piebald(dir.path(), &["study", "s.toml", "--csv", "-"]);
        command.env("PIEBALD_QEMU", qemu);
        let (code, _, err) = seen(&command.output().expect("starts"));
        assert_eq!(code, 0, "{err}");
        assert_eq!(names(&recordings).len(), kept, "{err}");
    }
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_command_that_fails_is_quoted_and_not_kept() {
    let dir = recorder_folder();
    with_command(
        dir.path(),
        r#"["sh", "-c", "echo no such luck >&2; exit 3"]"#,
        "50M",
    );
    let (code, out, err) = run(dir.path(), &["study", "s.toml"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    let last = err.lines().last().unwrap_or_default();
    for part in [
        "s.toml:14: ",
        "program[0]: \"c\"",
        "exit status: 3",
        "it said: no such luck;",
    ] {
        assert!(last.contains(part), "{part}: {err}");
    }
    assert!(names(&dir.path().join("cache/piebald/recordings")).is_empty());
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_recording_from_the_middle_of_a_program_finds_the_pages_that_it_had() {
    let dir = recorder_folder();
    // A buffer of 4 MiB that is written once and then read over and over.
    let script =
        "x=$(head -c 4000000 /dev/zero | tr '\\0' x); while :; do case $x in *y*) ;; esac; done";
    let sh = ["--", "sh", "-c", script];
    let record = [
        "record",
        "-q",
        "-o",
        "x.pbr",
        "--stop-at-limit",
        "--limit",
        "6M",
        "--skip",
        "60M",
    ];
    let (code, _, err) = run(dir.path(), &[&record[..], &sh[..]].concat());
    assert_eq!(code, 0, "{err}");
    let (_, info, _) = run(dir.path(), &["trace", "info", "x.pbr"]);
    let text = SMALL
        .replace("builtin = \"chase:64KiB\"", "recording = \"x.pbr\"")
        .replace("repetitions = 2", "repetitions = 1")
        .replace("\"10k\"", "\"4M\"");
    fs::write(dir.path().join("s.toml"), text).expect("written");
    let (code, out, err) = run(dir.path(), &["study", "s.toml", "--json", "-"]);
    assert_eq!(code, 0, "{err} {info}");
    let json: Value = serde_json::from_str(&out).expect("JSON");
    let alone = &json["policies"][0]["programs"][0]["alone"];
    let mean = |key: &str| alone[key]["mean"].as_f64().expect("a number");
    // 977 pages of text are there, each in a frame of its own, and none is zeroed now.
    assert!(mean("faults") < 20.0, "{}", mean("faults"));
    assert!(mean("pages") > 900.0, "{} {info}", mean("pages"));
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn an_interrupt_while_a_command_is_recorded_ends_the_study() {
    let (out, err, recorded) = interrupted_while_recording("");
    assert_eq!((out.as_str(), recorded), ("", 0), "{err}");
    let last = err.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("piebald: interrupted while sh -c "),
        "{err}"
    );
    assert!(last.ends_with("nothing to report"), "{err}");
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn an_interrupt_while_a_command_is_recorded_ends_all_points() {
    let (out, err, recorded) = interrupted_while_recording("sweep.seed = [1, 2]\n");
    assert_eq!((out.as_str(), recorded), ("", 0), "{err}");
    let last = err.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("piebald: seed = 1: interrupted while sh -c "),
        "{err}"
    );
    assert_eq!(err.matches("piebald: recording sh").count(), 1, "{err}");
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn an_interrupt_while_a_later_point_is_recorded_loses_no_earlier_one() {
    let keys = "sweep.budget_refs = [\"10k\", \"900G\", \"800G\"]\n";
    let (out, err, recorded) = interrupted_while_recording(keys);
    let shown = out
        .lines()
        .any(|line| line.trim_start().starts_with("10k "));
    assert!(shown, "{out} {err}");
    // What was never begun says so, and is not recorded.
    assert!(out.contains("Warning: not run: interrupted"), "{out}");
    assert_eq!(recorded, 1, "{err}");
    assert_eq!(err.matches("piebald: recording sh").count(), 2, "{err}");
}

/// Interrupts a study while it records a command that does not end; `keys` stand at the head of its file. What
/// it says on stdout and stderr, and how many recordings are kept.
fn interrupted_while_recording(keys: &str) -> (String, String, usize) {
    let dir = recorder_folder();
    with_command(dir.path(), r#"["sh", "-c", "while :; do :; done"]"#, "900G");
    let scenario = dir.path().join("s.toml");
    let text = fs::read_to_string(&scenario).expect("written");
    fs::write(&scenario, format!("{keys}{text}")).expect("written");
    let mut command = piebald(dir.path(), &["study", "s.toml"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard(command.spawn().expect("starts"));
    // Its handler stands before QEMU does: the recording's first bytes show that it runs.
    let recordings = dir.path().join("cache/piebald/recordings");
    let end = Instant::now() + HANGS;
    let grown = || {
        let files = fs::read_dir(&recordings).into_iter().flatten().flatten();
        files
            .filter_map(|f| f.metadata().ok())
            .any(|m| m.len() > 100_000)
    };
    while !grown() && child.0.try_wait().expect("waits").is_none() {
        assert!(Instant::now() < end, "nothing is recorded");
        sleep(Duration::from_millis(20));
    }
    if child.0.try_wait().expect("waits").is_none() {
        interrupt(&child.0);
    }
    let (code, out, err) = ends(child);
    assert_eq!(code, 130, "{err}");
    (out, err, names(&recordings).len())
}
