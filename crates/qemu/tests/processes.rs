//! Processes and images are followed, and what goes wrong is told.

use crate::common::*;
use piebald_qemu::recorder::RecordError;
use piebald_trace::recording::model::EventKind;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const OPENAT: u32 = 257;
const READ: u32 = 0;

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn grep_over_ten_files_reads_each_of_them() {
    let dir = bench();
    let mut words = vec!["grep".to_owned(), "-c".into(), "needle".into()];
    for i in 0..10 {
        let path = dir.path().join(format!("text{i}"));
        let line = format!("line {i} with a needle in it\n");
        std::fs::write(&path, line.repeat(1000 * (i + 1))).expect("write text");
        words.push(path.to_str().expect("path").into());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let seen = record(dir.path(), &words);
    assert_eq!((seen.summary.processes, seen.summary.threads), (1, 1));
    assert!(seen.summary.complete && seen.summary.status.success());
    let opened = seen.calls(OPENAT);
    let mut read_bytes = std::collections::HashMap::new();
    for kind in seen.kinds() {
        if let EventKind::Call {
            number: READ,
            ret: Some(n),
            file: Some(file),
            position: Some(at),
            ..
        } = kind
        {
            let end: &mut u64 = read_bytes.entry(file.ino).or_default();
            assert!(
                n == 0 || at == *end || at == 0,
                "reads go on where they were"
            );
            *end = (*end).max(at + n as u64);
        }
    }
    for path in &words[3..] {
        assert!(
            opened.iter().any(|(p, ret)| p == path && *ret >= 0),
            "{path}"
        );
        let meta = std::fs::metadata(path).expect("text");
        let inode = std::os::unix::fs::MetadataExt::ino(&meta);
        assert_eq!(read_bytes.get(&inode), Some(&meta.len()), "{path}");
    }
    let header = seen.recording.header();
    assert_eq!(header.argv, words);
    assert_eq!(header.binary_sha256.len(), 64);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn initial_mappings_are_the_programs_own() {
    let dir = bench();
    let program = cc(dir.path(), "empty", "int main(void) { return 0; }", &[]);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    let mut names = Vec::new();
    let mut executable = Vec::new();
    for kind in seen.kinds() {
        if let EventKind::Initial { name, exec, .. } = kind {
            assert!(!name.contains("qemu") && !name.contains("libc"), "{name}");
            if exec {
                executable.push(name.clone());
            }
            names.push(name);
        }
    }
    assert!(names.iter().any(|n| n == "[stack]"));
    for image in ["/empty", "ld-linux"] {
        let all = names.iter().filter(|n| n.contains(image)).count();
        let code = executable.iter().filter(|n| n.contains(image)).count();
        assert!(code == 1 && all > 2, "{image}: {code} of {all} executable");
    }
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_pipe_of_two_programs_is_one_recording() {
    let dir = bench();
    let seen = record(dir.path(), &["sh", "-c", "seq 1 20000 | wc -l > /dev/null"]);
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    let images = seen.images();
    assert!(images.iter().any(|i| i == "seq 1 20000"), "{images:?}");
    assert!(images.iter().any(|i| i == "wc -l"), "{images:?}");
    assert!(seen.exits().len() >= 3 && seen.exits().iter().all(|&s| s == 0));
    let mut places: Vec<u64> = seen.events().iter().map(|e| e.seq).collect();
    let all = places.len();
    places.dedup();
    assert_eq!(places.len(), all, "no two events have the same place");
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_script_with_static_and_dynamic_programs_is_followed() {
    let dir = bench();
    let source = "#include <stdio.h>\nint main(int c, char **v) { return c - 1; }";
    let fixed = cc(dir.path(), "fixed", source, &["-static"]);
    let script = dir.path().join("script");
    let text = format!(
        "#!/bin/sh -e\ntrue\n/bin/echo one > /dev/null\n{0} a b || test $? = 2\n(exec {0} x) || :\n",
        fixed.display()
    );
    std::fs::write(&script, text).expect("write script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("chmod");
    let seen = record(dir.path(), &[script.to_str().expect("path"), "arg"]);
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    assert_eq!(seen.summary.status.code(), Some(0));
    let images = seen.images();
    assert!(
        images[0].starts_with("sh -e ") && images[0].ends_with("/script arg"),
        "{images:?}"
    );
    assert_eq!(images[1..], ["echo one", "fixed a b", "fixed x"]);
    let mut exits = seen.exits();
    exits.sort_unstable();
    assert_eq!(exits, [0, 0, 1, 2]);
}

const SPAWN: &str = r#"
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
extern char **environ;
int main(int argc, char **argv) {
    if (argc > 1) /* the image that was started: name and environment are its own */
        return !(strcmp(argv[0], "other-name") == 0 && getenv("LD_BIND_NOW") && getenv("KEPT")
                 && !getenv("GONE"));
    for (int fd = 3; fd < 1024; fd++) close(fd);
    if (open("/dev/null", O_RDONLY) != 3) return 90;
    setenv("LD_BIND_NOW", "1", 1); setenv("KEPT", "a,b", 1); unsetenv("GONE");
    char *args[] = {"other-name", "x", 0};
    pid_t pid; int status;
    if (posix_spawn(&pid, "/proc/self/exe", 0, 0, args, environ)) return 91;
    if (waitpid(pid, &status, 0) != pid || status) return 92;
    pid = fork();
    if (pid == 0) {
        volatile char *p = malloc(8 << 20);
        for (int i = 0; i < 8 << 20; i++) p[i] = i;
        execl("/nonexistent", "x", (char *)0);
        _exit(93);
    }
    if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 93) return 94;
    return 0;
}"#;

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn programs_close_descriptors_fork_and_start_themselves() {
    let dir = bench();
    let program = cc(dir.path(), "spawn", SPAWN, &[]);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    assert_eq!(seen.summary.status.code(), Some(0));
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    assert_eq!(seen.images(), ["spawn", "other-name x"]);
    // The forked child's stores are in the recording once.
    let index = seen.recording.index();
    let child = index.threads.iter().find(|t| t.refs > 8 << 20);
    assert_eq!(index.threads.len(), 4);
    let refs = seen.refs(child.expect("child").thread).0;
    let stores = refs.iter().filter(|r| r.1 == 1).count();
    assert!(
        (8 << 20..(8 << 20) + 1000).contains(&stores),
        "{stores} byte stores"
    );
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_killed_process_is_recorded_to_its_end_and_marked() {
    let dir = bench();
    let source = r#"
#include <signal.h>
#include <unistd.h>
__attribute__((section(".fixed"), aligned(4096))) char area[65536] = {1};
int main(void) {
    for (int i = 0; i < 24 * 65536; i++) ((volatile char *)area)[i & 65535] = 1;
    kill(getpid(), SIGKILL);
}"#;
    let program = cc(dir.path(), "killed", source, &FIXED);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&seen.summary.status),
        Some(9)
    );
    assert!(!seen.summary.complete);
    let told = &seen.summary.warnings;
    assert!(
        told.len() == 1 && told[0].ends_with("ended by SIGKILL"),
        "{told:?}"
    );
    assert_eq!(&seen.recording.header().missing, told);
    let bytes = seen
        .fixed(0)
        .into_iter()
        .filter(|r| r.1 == 1 && r.2 < 65536);
    assert_eq!(bytes.count(), 24 * 65536, "nothing that it did is lost");
    // The part that the driver wrote goes on where the process's own ended.
    let chunks = &seen.recording.index().chunks;
    assert!(chunks.len() > 1);
    for pair in chunks.windows(2) {
        assert_eq!(
            pair[1].first_ref,
            pair[0].first_ref + u64::from(pair[0].refs)
        );
        assert_eq!(pair[1].first_instr, pair[0].first_instr + pair[0].instrs);
    }
    assert_eq!(seen.exits(), [137]);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_closed_pipe_ends_its_writer_as_usual() {
    let dir = bench();
    let seen = record(dir.path(), &["bash", "-c", "yes | head -n 1 > /dev/null"]);
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    assert!(seen.exits().contains(&141), "{:?}", seen.exits());
}

#[test]
#[ignore = "needs root and qemu-user: ./test.sh recorder-root"]
fn what_cannot_be_followed_is_told_as_root() {
    let dir = bench();
    let program = cc(dir.path(), "other", "int main(void) { return 5; }", &[]);
    std::os::unix::fs::chown(&program, Some(65534), None).expect("chown");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("chmod");
    let path = program.to_str().expect("path");
    let seen = record(dir.path(), &["sh", "-c", &format!("{path}; exit $?")]);
    assert_eq!(seen.summary.status.code(), Some(5), "it ran all the same");
    assert!(!seen.summary.complete);
    let told = seen.summary.warnings.join("; ");
    assert!(
        told.contains("not followed") && told.contains("other"),
        "{told}"
    );
    let error = fails(&recorder(&dir.path().join("none")), &[path]);
    assert!(
        matches!(error, RecordError::NotRecordable { .. }),
        "{error}"
    );
}

#[test]
#[ignore = "needs root and qemu-user: ./test.sh recorder-root"]
fn a_full_file_system_is_an_error_and_leaves_nothing_as_root() {
    let dir = bench();
    let disk = dir.path().join("disk");
    std::fs::create_dir(&disk).expect("mkdir");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=128k", "none"])
        .arg(&disk)
        .status();
    assert!(mounted.expect("mount runs").success(), "no right to mount");
    let program = ["bash", "-c", "for i in {1..20000}; do :; done"];
    let error = recorder(&disk).run(&argv(&program));
    let left = std::fs::read_dir(&disk).expect("lists").count();
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.expect("umount runs").success());
    let error = error.expect_err("fails");
    assert_eq!(left, 0, "{error}");
    assert!(
        error.to_string().contains("No space left on device"),
        "{error}"
    );
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn commands_that_cannot_start_are_told_apart() {
    let dir = bench();
    let mut recorder = recorder(dir.path());
    let error = fails(&recorder, &["no-such-program-7"]);
    assert_eq!(error.to_string(), "no-such-program-7: command not found");
    let error = fails(&recorder, &["/etc/passwd"]);
    assert!(
        matches!(error, RecordError::NotExecutable { .. }),
        "{error}"
    );
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let says = |path: &str, words: &str| {
        let error = fails(&recorder, &[path]).to_string();
        assert!(error.contains(path) && error.contains(words), "{error}");
    };
    says(
        &write("orphan", "#!/no/shell\n"),
        "that it names is not there",
    );
    says(&write("text", "echo\n"), "a script that begins with #!");
    says("/tmp", "a folder");
    assert!(matches!(fails(&recorder, &[]), RecordError::NoCommand));
    recorder.qemu = Some("/no/qemu".into());
    let error = fails(&recorder, &["true"]).to_string();
    assert!(
        error.contains("/no/qemu") && error.contains("qemu-user"),
        "{error}"
    );
    recorder.qemu = None;
    recorder.plugin = Some("/no/plugin.so".into());
    let error = fails(&recorder, &["true"]).to_string();
    assert!(
        error.contains("/no/plugin.so") && error.contains("PIEBALD_PLUGIN"),
        "{error}"
    );
    recorder.plugin = Some("/etc/passwd".into());
    let error = fails(&recorder, &["true"]);
    assert!(matches!(error, RecordError::NotStarted { .. }), "{error}");
    recorder.region = Some((3, 3));
    assert!(matches!(
        fails(&recorder, &["true"]),
        RecordError::BadRegion { .. }
    ));
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn an_interrupted_recording_is_finished_and_marked() {
    let dir = bench();
    // The driver runs in a process of its own, which is told to end.
    let output = dir.path().join("out.pbr");
    let mut process = Command::new(driver())
        .arg(&output)
        .args(["sh", "-c", "echo begun; while :; do :; done"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("driver starts");
    let mut begun = [0; 6];
    let mut stdout = process.stdout.take().expect("stdout");
    std::io::Read::read_exact(&mut stdout, &mut begun).expect("the program begins");
    // SAFETY: plain system call on a child that has not been waited for.
    unsafe { libc::kill(process.id() as i32, libc::SIGINT) };
    process.wait().expect("driver ends");
    let recording = piebald_trace::recording::Recording::open(&output).expect("finished");
    let header = recording.header();
    assert!(!header.complete);
    assert!(
        header.missing.iter().any(|m| m == "ended early by SIGINT"),
        "{:?}",
        header.missing
    );
    assert!(header.counts.references > 1000);
}
