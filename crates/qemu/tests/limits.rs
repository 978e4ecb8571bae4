//! Limits, root directory and user of the program are its own: the recording does not suffer.

use crate::common::*;
use std::process::Command;

/// Takes everything from itself that can be taken, and goes on in threads and a child.
const POOR: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((section(".fixed"), aligned(4096))) char area[1 << 20] = {1};
static void *work(void *from) {
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 1 << 20; i++) ((volatile char *)from)[i] = 1;
    return 0;
}
int main(int argc, char **argv) {
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_FSIZE, &none) || setrlimit(RLIMIT_NOFILE, &none)) return 1;
    if (argc > 1 && (chroot(argv[1]) || setuid(65534))) return 2;
    for (int fd = 0; fd < 1024; fd++) close(fd);
    pthread_t t[3];
    for (int i = 0; i < 3; i++) if (pthread_create(&t[i], 0, work, area)) return 3;
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    pid_t child = fork();
    if (child == 0) { work(area); _exit(7); }
    int status;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) return 4;
    return 0;
}"#;

fn all_is_there(seen: &Seen) {
    assert_eq!(seen.summary.status.code(), Some(0));
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    assert_eq!((seen.summary.processes, seen.summary.threads), (2, 5));
    let index = seen.recording.index();
    let stores = |thread| {
        let bytes = seen.fixed(thread).into_iter();
        bytes.filter(|r| r.1 == 1).count()
    };
    let full = index.threads.iter().filter(|t| stores(t.thread) == 2 << 20);
    assert_eq!(
        full.count(),
        4,
        "three threads and the child, each complete"
    );
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_program_without_files_or_descriptors_is_recorded_to_its_end() {
    let dir = bench();
    let program = cc(
        dir.path(),
        "poor",
        POOR,
        &[&FIXED[..], &["-pthread"]].concat(),
    );
    all_is_there(&record(dir.path(), &[program.to_str().expect("path")]));
}

#[test]
#[ignore = "needs root and qemu-user: ./test.sh recorder-root"]
fn a_program_in_another_root_and_of_another_user_is_recorded_to_its_end_as_root() {
    let dir = bench();
    let program = cc(
        dir.path(),
        "poor",
        POOR,
        &[&FIXED[..], &["-pthread"]].concat(),
    );
    let elsewhere = dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("mkdir");
    let words = [program.to_str(), elsewhere.to_str()].map(|w| w.expect("path"));
    all_is_there(&record(dir.path(), &words));
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn limits_of_a_script_hold_for_its_programs_and_not_for_the_recording() {
    let dir = bench();
    // What the programs write is cut at the limit, as without QEMU; the recording is longer.
    let script = format!(
        "ulimit -f 8; cd {}; i=0; while test $i -lt 20000; do i=$((i+1)); done; \
         (dd if=/dev/zero of=cut bs=1k count=40 2>/dev/null); test -s cut",
        dir.path().display()
    );
    let seen = record(dir.path(), &["sh", "-c", &script]);
    assert_eq!(seen.summary.status.code(), Some(0));
    let cut = std::fs::metadata(dir.path().join("cut"))
        .expect("cut")
        .len();
    assert!(
        cut == 4096 || cut == 8192,
        "{cut} bytes, by the shell's unit"
    );
    assert!(seen.summary.bytes > 4 * cut, "{} bytes", seen.summary.bytes);
    // dd was ended by the signal, which is told; nothing else is missing.
    let missing = &seen.recording.header().missing;
    assert!(
        missing.len() == 1 && missing[0].ends_with("ended by SIGXFSZ"),
        "{missing:?}"
    );
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn limits_that_qemu_does_not_enforce_or_shares_are_told() {
    let dir = bench();
    let source = r#"
#include <sys/resource.h>
int main(void) {
    struct rlimit small = {1 << 20, 1 << 20}, all = {RLIM_INFINITY, RLIM_INFINITY}, second = {1, 1};
    setrlimit(RLIMIT_AS, &small); setrlimit(RLIMIT_STACK, &all); setrlimit(RLIMIT_CPU, &second);
    for (;;) ;
}"#;
    let program = cc(dir.path(), "limits", source, &[]);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    let told = &seen.summary.warnings;
    let is_told = |what: &str| told.iter().any(|t| t.contains(what));
    assert!(
        is_told("set RLIMIT_AS, which QEMU does not enforce"),
        "{told:?}"
    );
    assert!(
        is_told("set RLIMIT_CPU; QEMU's own processor time"),
        "{told:?}"
    );
    assert!(!is_told("RLIMIT_STACK"), "it was lifted: {told:?}");
    let remarks = &seen.recording.header().remarks;
    assert!(
        remarks.iter().any(|r| r.contains("RLIMIT_AS")),
        "{remarks:?}"
    );
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn limits_of_the_recorder_itself_are_told_or_lifted() {
    let dir = bench();
    let output = dir.path().join("out.pbr");
    let under = |limit: &str| {
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("bash");
        let words = ["bash", "-c", "ulimit -S -f; ulimit -H -f"];
        shell.args(["-c", &script]).arg(driver()).arg(&output);
        shell.args(words).output().expect("bash runs")
    };
    let done = under("-f 8");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("FileSizeLimit { allowed: 8192"), "{said}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
    // QEMU has no room to begin: the recording is no empty one.
    let done = under("-v 100000");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("NotStarted") && said.contains("(limits here: ulimit -v 100000)"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
    // A soft limit is lifted for the recorder, and for it alone.
    let done = under("-S -f 8");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "8\nunlimited\n");
    // A gigabyte is enough, though not for as many threads.
    let done = under("-f 1000000");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "1000000\n1000000\n");
}
