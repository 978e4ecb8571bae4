//! What QEMU does otherwise than the kernel, and what it cannot run, is told.

use crate::common::*;
use piebald_qemu::recorder::RecordError;
use piebald_trace::recording::RefusedCall;

const SPIN: &str = "int main(void) { for (volatile int i = 0; i < 9999; i++) ; }";

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn refused_calls_are_named_with_counts_unless_the_kernel_refuses_them_too() {
    let dir = bench();
    // process_madvise is in every kernel since 5.10 and in no QEMU up to 11; 400 is a gap in the table.
    let source = r#"
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 3; i++) syscall(440, -1, 0, 0, 0, 0);
    syscall(400); syscall(99999);
    return 0;
}"#;
    let program = cc(dir.path(), "refused", source, &[]);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    let madvise = RefusedCall {
        number: 440,
        name: "process_madvise".into(),
        count: 3,
    };
    let refused = &seen.summary.refused;
    assert!(refused.contains(&madvise), "{refused:?}");
    assert!(
        refused.iter().all(|r| ![400, 99_999].contains(&r.number)),
        "{refused:?}"
    );
    let header = seen.recording.header();
    assert_eq!(&header.refused, refused);
    // What the C library always tries is no reason to warn.
    let told = &seen.summary.warnings;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains(
            "kernel has: process_madvise (3 times); the program may have gone another way"
        ),
        "{told:?}"
    );
    assert_eq!(&header.remarks, told);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn processes_that_share_memory_are_told() {
    let dir = bench();
    let source = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int written;
static int child(void *p) { written = 1; return 0; }
int main(int argc, char **argv) {
    char *stack = malloc(1 << 16);
    if (argc > 1) { /* a process in the same memory */
        int pid = clone(child, stack + (1 << 16), CLONE_VM | SIGCHLD, 0);
        return pid != -1 || errno != EINVAL;
    }
    if (vfork() == 0) { execl("/bin/true", "true", (char *)0); _exit(1); }
    if (vfork() == 0) { written = 1; _exit(0); }
    int pid = clone(child, stack + (1 << 16), CLONE_VM | CLONE_VFORK | SIGCHLD, 0);
    if (pid < 0) return 2;
    while (wait(0) > 0) ;
    return written; /* 1 on the kernel itself */
}"#;
    let program = cc(dir.path(), "shared", source, &[]);
    let program = program.to_str().expect("path");
    let seen = record(dir.path(), &[program]);
    assert_eq!(seen.summary.status.code(), Some(0), "QEMU gives a copy");
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    let told = &seen.summary.warnings;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("2 children of vfork ended without starting a program"),
        "the one that started `true` is no difference: {told:?}"
    );
    assert_eq!(&seen.recording.header().remarks, told);

    let seen = record(dir.path(), &[program, "clone"]);
    assert_eq!(seen.summary.status.code(), Some(0), "QEMU answers EINVAL");
    let told = &seen.summary.warnings;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("QEMU refused 1 clone of a process that shares"),
        "{told:?}"
    );
    assert_eq!(&seen.recording.header().remarks, told);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn programs_with_a_sanitizer_are_refused_and_not_followed() {
    let dir = bench();
    let asan = cc(dir.path(), "asan", SPIN, &["-fsanitize=address"]);
    let inside = cc(
        dir.path(),
        "inside",
        SPIN,
        &["-fsanitize=address", "-static-libasan"],
    );
    let tsan = cc(dir.path(), "tsan", SPIN, &["-fsanitize=thread"]);
    let lsan = cc(dir.path(), "lsan", SPIN, &["-fsanitize=leak"]);
    for (program, name, evidence, option) in [
        (&asan, "AddressSanitizer", "it needs libasan.so.", "address"),
        (&inside, "AddressSanitizer", "it has __asan_init", "address"),
        (&tsan, "ThreadSanitizer", "it needs libtsan.so.", "thread"),
        (&lsan, "LeakSanitizer", "it needs liblsan.so.", "leak"),
    ] {
        let error = fails(&recorder(dir.path()), &[program.to_str().expect("path")]);
        assert!(
            matches!(error, RecordError::NotRecordable { .. }),
            "{error}"
        );
        let told = error.to_string();
        for part in [name, evidence, &format!("without -fsanitize={option}")] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    // One that a recorded program starts runs outside of the recording.
    let script = format!("{}; echo $? > {0}.status", asan.display());
    let seen = record(dir.path(), &["sh", "-c", &script]);
    assert!(!seen.summary.complete);
    let told = seen.summary.warnings.join("; ");
    assert!(told.contains("1 program not followed"), "{told}");
    assert!(told.contains("asan: built with AddressSanitizer"), "{told}");
    let status = std::fs::read_to_string(asan.with_extension("status")).expect("status");
    assert_eq!(status, "0\n", "it ran");
    // Checks without shadow memory are no obstacle.
    let ubsan = cc(dir.path(), "ubsan", SPIN, &["-fsanitize=undefined"]);
    let seen = record(dir.path(), &[ubsan.to_str().expect("path")]);
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_recording_of_nothing_is_an_error_that_says_how_long_the_program_is() {
    let dir = bench();
    let source = r#"
#include <signal.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (volatile int i = 0; i < 9999; i++) ;
    if (argc > 1) kill(getpid(), SIGKILL);
    return 0;
}"#;
    let program = cc(dir.path(), "spin", source, &[]);
    let program = program.to_str().expect("path");
    let made = record(dir.path(), &[program]).summary.references;
    std::fs::remove_file(dir.path().join("out.pbr")).expect("remove");
    let mut recorder = recorder(dir.path());
    recorder.skip = 1 << 40;
    for words in [&[program][..], &[program, "killed"]] {
        let error = fails(&recorder, words);
        let RecordError::AllSkipped { made: told, .. } = error else {
            panic!("{error}");
        };
        // The C library's start depends a little on addresses.
        assert!(told.abs_diff(made) < made / 10, "{told} of {made}");
        assert!(
            error
                .to_string()
                .contains(&format!("made {told} references")),
            "{error}"
        );
    }
    recorder.skip = made / 2;
    assert!(record_with(&recorder, &[program]).summary.references < made);
    std::fs::remove_file(&recorder.output).expect("remove");
    (recorder.skip, recorder.region) = (0, Some((7, 8)));
    let error = fails(&recorder, &[program]);
    assert!(
        matches!(error, RecordError::RegionNotReached { from: 7 }),
        "{error}"
    );
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn the_programs_of_a_script_are_named_with_their_shares() {
    let dir = bench();
    let script = dir.path().join("shim");
    let text = "#!/bin/bash\nfor i in 1 2 3; do (echo $i) | sed s/1/x/ > /dev/null; done\n\
                exec seq 1 50000 > /dev/null\n";
    std::fs::write(&script, text).expect("write script");
    let seen = record(dir.path(), &["bash", script.to_str().expect("path")]);
    let programs = &seen.summary.programs;
    assert_eq!(&seen.recording.programs().expect("programs"), programs);
    let processes: u64 = programs.iter().map(|p| p.processes).sum();
    assert_eq!(processes, seen.summary.processes);
    let references: u64 = programs.iter().map(|p| p.references).sum();
    assert_eq!(references, seen.summary.references);
    let by_name = |name: &str| {
        let found = programs.iter().find(|p| p.name == name);
        found
            .unwrap_or_else(|| panic!("{name} in {programs:?}"))
            .processes
    };
    assert_eq!((by_name("seq"), by_name("sed")), (1, 3));
    assert_eq!(
        by_name("bash"),
        processes - 4,
        "forked children are bash too"
    );
    assert!(
        programs
            .windows(2)
            .all(|p| p[0].references >= p[1].references)
    );
}
