//! `piebald record`: what it refuses, and what it tells.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

const PIEBALD: &str = env!("CARGO_BIN_EXE_piebald");
/// Longer than any of this takes; it only ends what hangs.
const HANGS: Duration = Duration::from_secs(600);

fn run(dir: &Path, program: &str, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(program)
        .args(args)
        .current_dir(dir)
        .output()
        .expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().expect("not killed"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn compile(dir: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let file = dir.join(format!("{name}.c"));
    fs::write(&file, source).expect("written");
    let status = Command::new("cc")
        .args(["-O1", "-o", name, &format!("{name}.c")])
        .args(options)
        .current_dir(dir)
        .status();
    let status = status.expect("cc runs (Debian package build-essential)");
    assert!(status.success(), "cc {name}");
    fs::remove_file(file).expect("removed");
    dir.join(name)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("lists");
    let mut names: Vec<String> = entries
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_program_with_a_sanitizer_is_refused_before_it_starts() {
    let dir = tempfile::tempdir().expect("folder");
    compile(
        dir.path(),
        "asan",
        "int main(void) { return 0; }",
        &["-fsanitize=address"],
    );
    let args = ["record", "-o", "x.pbr", "--", "./asan"];
    let (code, _, err) = run(dir.path(), PIEBALD, &args);
    assert_eq!(code, 2, "{err}");
    for part in [
        "./asan: built with AddressSanitizer",
        "without -fsanitize=address",
    ] {
        assert!(err.contains(part), "{err}");
    }
    assert_eq!(names(dir.path()), ["asan"]);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn json_stands_alone_on_standard_output_and_the_program_s_output_beside_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let script = "echo printed; exit 3";
    let args = [
        "record", "-q", "--json", "-o", "x.pbr", "--", "sh", "-c", script,
    ];
    let (code, out, err) = run(dir.path(), PIEBALD, &args);
    let told: serde_json::Value = serde_json::from_str(&out).expect("a document alone");
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("printed"), "{err}");
    assert_eq!(told["exit_code"], 3);
    assert_eq!(
        (&told["complete"], &told["signal"]),
        (&true.into(), &serde_json::Value::Null)
    );
    assert!(
        told["references"].as_u64().is_some_and(|n| n > 1000),
        "{told}"
    );
    let bytes = fs::metadata(dir.path().join("x.pbr"))
        .expect("recorded")
        .len();
    assert_eq!(told["bytes"].as_u64(), Some(bytes));
    // Beside a file, the program's output stays where it goes.
    let args = [
        "record",
        "-q",
        "--json=t",
        "-o",
        "y.pbr",
        "--",
        "sh",
        "-c",
        "echo printed",
    ];
    let (code, out, err) = run(dir.path(), PIEBALD, &args);
    assert_eq!((code, out.as_str()), (0, "printed\n"), "{err}");
    assert!(dir.path().join("t").is_file());
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_skip_beyond_the_end_leaves_no_file_and_says_where_the_end_is() {
    let dir = tempfile::tempdir().expect("folder");
    let args = ["record", "--skip", "100G", "-o", "x.pbr", "--", "true"];
    let (code, _, err) = run(dir.path(), PIEBALD, &args);
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("nothing was recorded: the program made "),
        "{err}"
    );
    assert!(
        err.contains("the first 100000000000 were to be skipped"),
        "{err}"
    );
    assert!(names(dir.path()).is_empty());
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn ctrl_c_keeps_what_was_recorded_and_ends_with_130() {
    let dir = tempfile::tempdir().expect("folder");
    // What runs in the background of a shell has SIGINT ignored, and hands that on.
    let mut child = Command::new("env")
        .args([
            "--default-signal",
            PIEBALD,
            "record",
            "-q",
            "-o",
            "x.pbr",
            "--",
            "sh",
            "-c",
            "touch begun; while :; do :; done",
        ])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .spawn()
        .expect("starts");
    // The signal is sent once the program runs.
    let begun = dir.path().join("begun");
    let pid = Pid::from_raw(child.id() as i32).expect("a number");
    let (end, mut sent) = (Instant::now() + HANGS, false);
    let status = loop {
        if let Some(status) = child.try_wait().expect("asked") {
            break status;
        }
        if !sent && begun.exists() {
            kill_process(pid, Signal::INT).expect("sent");
            sent = true;
        }
        if Instant::now() > end {
            child.kill().expect("killed");
            panic!("it runs on");
        }
        sleep(Duration::from_millis(5));
    };
    assert_eq!((sent, status.code()), (true, Some(130)));
    let (code, out, err) = run(dir.path(), PIEBALD, &["trace", "info", "x.pbr"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("SIGINT"), "{out}");
}

#[test]
fn a_recording_does_not_go_to_standard_output() {
    let dir = tempfile::tempdir().expect("folder");
    for words in [
        "record -o - -- true",
        "record -o same.pbr -- true >same.pbr",
    ] {
        let script = format!("{PIEBALD} {words}");
        let (code, _, err) = run(dir.path(), "bash", &["-c", &script]);
        assert_eq!(code, 2, "{words}: {err}");
        assert!(
            err.contains("cannot go to standard output"),
            "{words}: {err}"
        );
    }
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_limit_on_file_sizes_that_leaves_no_room_is_named() {
    let dir = tempfile::tempdir().expect("folder");
    let script = format!("ulimit -f 8; {PIEBALD} record -o x.pbr -- true");
    let (code, _, err) = run(dir.path(), "bash", &["-c", &script]);
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("the limit on file sizes (ulimit -f) is 8192 bytes; recording needs at least"),
        "{err}"
    );
    assert!(names(dir.path()).is_empty());
}

/// The command alone, in a folder of its own, has nothing beside it.
#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn the_command_alone_records_as_its_plugin_is_inside() {
    let dir = tempfile::tempdir().expect("folder");
    let alone = dir.path().join("alone");
    fs::copy(PIEBALD, &alone).expect("copied");
    let alone = alone.to_str().expect("UTF-8");
    // A program that starts another one: QEMU loads the plugin again. The soft limit is below the
    // plugin's size.
    let script = format!("ulimit -S -f 8; {alone} record -o x.pbr -- sh -c 'true; exec ls'");
    let (code, out, err) = run(dir.path(), "bash", &["-c", &script]);
    assert_eq!((code, out.as_str()), (0, "alone\nx.pbr.partial\n"), "{err}");
    assert!(err.contains("of 2 processes"), "{err}");
    let (code, out, err) = run(dir.path(), alone, &["guest", "check"]);
    assert!(
        out.contains("ok       the plugin: inside this program"),
        "{code}: {out}{err}"
    );
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn another_plugin_may_be_named_and_has_to_exist() {
    let dir = tempfile::tempdir().expect("folder");
    let mut command = Command::new(PIEBALD);
    command
        .env("PIEBALD_PLUGIN", "/no/plugin.so")
        .current_dir(dir.path());
    let output = command
        .args(["record", "-o", "x.pbr", "--", "true"])
        .output()
        .expect("runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains("is not found in /no/plugin.so; set PIEBALD_PLUGIN"),
        "{err}"
    );
    assert!(names(dir.path()).is_empty());
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn what_was_refused_and_which_programs_ran_is_told_at_once_and_later() {
    let dir = tempfile::tempdir().expect("folder");
    // No QEMU has io_uring; openat2, which 7.2 lacks as well, is in 10.
    let source = "#include <unistd.h>\nint main(void) { syscall(425, 1, 0); return 0; }";
    compile(dir.path(), "refused", source, &[]);
    let args = [
        "record",
        "-o",
        "x.pbr",
        "--",
        "sh",
        "-c",
        "./refused; ./refused; :",
    ];
    let (code, _, told) = run(dir.path(), PIEBALD, &args);
    assert_eq!(code, 0, "{told}");
    let (code, info, err) = run(dir.path(), PIEBALD, &["trace", "info", "x.pbr"]);
    assert_eq!(code, 0, "{err}");
    for text in [&told, &info] {
        assert!(
            text.contains("io_uring_setup (2 times); the program may have gone"),
            "{text}"
        );
        assert!(
            text.contains("processes by program, with their references: "),
            "{text}"
        );
        assert!(text.contains("refused 2 ("), "{text}");
    }
    assert!(
        info.contains("refused by QEMU, although the recorder's kernel has them: "),
        "{info}"
    );
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_cut_recording_of_several_processes_is_repaired_into_one_that_ends() {
    let dir = tempfile::tempdir().expect("folder");
    let numbers: String = (0..20_000)
        .map(|n| format!("{}\n", n * 7919 % 20_011))
        .collect();
    fs::write(dir.path().join("n.txt"), numbers).expect("written");
    let script = "sort -rn n.txt | gzip -1 | wc -c";
    let args = ["record", "-q", "-o", "x.pbr", "--", "sh", "-c", script];
    let (code, _, err) = run(dir.path(), PIEBALD, &args);
    assert_eq!(code, 0, "{err}");
    let whole = fs::read(dir.path().join("x.pbr")).expect("read");
    for percent in [50, 80, 95] {
        let kept = whole.len() * percent / 100;
        fs::write(dir.path().join("cut.pbr"), &whole[..kept]).expect("written");
        let (code, out, err) = run(
            dir.path(),
            PIEBALD,
            &["trace", "repair", "cut.pbr", "out.pbr"],
        );
        assert_eq!(code, 0, "{percent} %: {out}{err}");
        assert!(out.contains("lost: in all"), "{percent} %: {out}");
        let scenario = "schema = 1\nrepetitions = 1\nbudget_refs = \"100M\"\n[machine]\n\
            preset = \"w3540\"\nmemory = \"192MiB\"\n[[program]]\nrecording = \"out.pbr\"\ncores = \"0\"\n";
        fs::write(dir.path().join("s.toml"), scenario).expect("written");
        // Threads that wait for what is lost would be a deadlock, which is an error.
        let (code, out, err) = run(
            dir.path(),
            PIEBALD,
            &["study", "-q", "s.toml", "--threads", "1"],
        );
        assert_eq!(code, 0, "{percent} %: {out}{err}");
    }
}
