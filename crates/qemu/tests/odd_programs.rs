//! Programs that end, start and share in ways that ordinary ones do not: what they print and return under the
//! recorder is what they print and return without it, and nothing of what they did is lost.

use crate::common::*;
use piebald_trace::recording::model::AccessKind;
use std::path::Path;
use std::process::Command;

/// Options for a program whose section `.fixed` lies at 0x10000000.
const PLACED: [&str; 3] = [
    "-no-pie",
    "-pthread",
    "-Wl,--section-start=.fixed=0x10000000",
];

/// Compiles a program, runs it by itself, and records it: both end with the same status.
fn same_end(dir: &Path, name: &str, source: &str) -> Seen {
    let program = cc(dir, name, source, &PLACED);
    let alone = Command::new(&program).status().expect("runs");
    let seen = record(dir, &[program.to_str().expect("path")]);
    assert_eq!(seen.summary.status.code(), alone.code(), "{name}");
    assert!(seen.summary.complete, "{name}: {:?}", seen.summary.warnings);
    seen
}

/// Stores of one byte to the 64 KiB of the section `.fixed`, of all threads: other data may lie behind it.
fn byte_stores(seen: &Seen) -> usize {
    let threads: Vec<u32> = seen
        .recording
        .index()
        .threads
        .iter()
        .map(|t| t.thread)
        .collect();
    let of = |thread| {
        seen.fixed(thread)
            .into_iter()
            .filter(|r| r.1 == 1 && r.2 < 65536)
            .count()
    };
    threads.into_iter().map(of).sum()
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn threads_by_the_hundred_that_come_and_go_are_all_recorded() {
    let dir = bench();
    let source = r#"
#include <pthread.h>
__attribute__((section(".fixed"), aligned(4096))) volatile char area[65536] = {1};
static void *f(void *a) { for (int i = 0; i < 100; i++) area[(long)a * 100 + i] = i; return a; }
int main(void) {
    int made = 0;
    for (int round = 0; round < 5; round++) {
        pthread_t t[100];
        for (long i = 0; i < 100; i++) made += !pthread_create(&t[i], 0, f, (void *)i);
        for (int i = 0; i < 100; i++) pthread_join(t[i], 0);
    }
    return made == 500 ? 7 : 1;
}"#;
    let seen = same_end(dir.path(), "many", source);
    assert_eq!(seen.summary.status.code(), Some(7));
    assert_eq!(seen.summary.threads, 501);
    assert_eq!(byte_stores(&seen), 500 * 100);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_thread_that_starts_another_program_ends_the_other_threads() {
    let dir = bench();
    let source = r#"
#include <pthread.h>
#include <unistd.h>
static void *f(void *a) { for (;;) usleep(100); return a; }
static void *g(void *a) { usleep(20000); execl("/bin/echo", "echo", "x", (char *)0); return a; }
int main(void) {
    pthread_t t;
    for (int i = 0; i < 4; i++) pthread_create(&t, 0, f, 0);
    pthread_create(&t, 0, g, 0);
    pthread_join(t, 0);
    return 9;
}"#;
    let seen = same_end(dir.path(), "execthr", source);
    assert_eq!(seen.summary.status.code(), Some(0), "that of echo");
    assert_eq!(seen.images()[1..], ["echo x"]);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_program_that_ends_while_its_threads_run_is_complete() {
    let dir = bench();
    // Each thread says that it has begun; none of them ever ends.
    let source = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int begun;
static void *f(void *a) {
    volatile char *p = malloc(1 << 16);
    __sync_fetch_and_add(&begun, 1);
    for (;;) for (int i = 0; i < 1 << 16; i += 64) p[i]++;
    return a;
}
int main(void) {
    pthread_t t;
    for (int i = 0; i < 8; i++) pthread_create(&t, 0, f, 0);
    while (begun < 8) usleep(1000);
    _exit(3);
}"#;
    let seen = same_end(dir.path(), "thrkill", source);
    assert_eq!(
        (seen.summary.status.code(), seen.summary.threads),
        (Some(3), 9)
    );
    assert_eq!(seen.exits(), [3; 9], "each thread ends with the process");
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_daemon_that_outlives_its_parents_is_recorded_to_its_end() {
    let dir = bench();
    // All descriptors are closed, another session and folder: nothing ties it to the recorder.
    let source = r#"
#include <fcntl.h>
#include <unistd.h>
__attribute__((section(".fixed"), aligned(4096))) volatile char area[65536] = {1};
int main(int c, char **v) {
    if (c > 1 && fork() == 0) {
        setsid();
        if (fork() == 0) {
            for (int f = 0; f < 256; f++) close(f);
            if (chdir("/")) _exit(1);
            usleep(300000);
            for (int i = 0; i < 65536; i++) area[i] = i;
            int o = open(v[1], O_CREAT | O_WRONLY | O_TRUNC, 0600);
            _exit(write(o, "x", 1) != 1);
        }
        _exit(0);
    }
    return 0;
}"#;
    let program = cc(dir.path(), "daemon", source, &PLACED);
    let said = dir.path().join("said");
    let seen = record(
        dir.path(),
        &[
            program.to_str().expect("path"),
            said.to_str().expect("path"),
        ],
    );
    assert_eq!(seen.summary.status.code(), Some(0));
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    assert_eq!(std::fs::read(&said).expect("it has written"), b"x");
    assert_eq!(byte_stores(&seen), 65_536);
    assert_eq!((seen.summary.processes, seen.exits()), (3, vec![0, 0, 0]));
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn faults_that_a_program_handles_and_its_timers_go_on() {
    let dir = bench();
    let source = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
static char *m;
static volatile int faults, alarms;
static void fault(int s, siginfo_t *i, void *c) {
    (void)s, (void)c;
    faults++;
    mprotect((char *)((unsigned long)i->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}
static void ring(int s) { (void)s; alarms++; }
int main(void) {
    stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&st, 0);
    struct sigaction sa = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &sa, 0);
    signal(SIGALRM, ring);
    struct itimerval it = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &it, 0);
    m = mmap(0, 64 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 64; i++) m[i * 4096] = i;
    while (alarms < 3) {}
    return faults;
}"#;
    let seen = same_end(dir.path(), "sig", source);
    assert_eq!(seen.summary.status.code(), Some(64));
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn processes_that_share_a_mapped_file_see_one_anothers_stores() {
    let dir = bench();
    let source = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    char name[] = "/tmp/piebald-shm-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    if (fd < 0 || ftruncate(fd, 1 << 20)) return 1;
    volatile int *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int i = 0; i < 4; i++)
        if (!fork()) { for (int k = 0; k < 1 << 18; k += 1024) __sync_fetch_and_add(&p[k], 1); _exit(i); }
    int status, sum = 0;
    while (wait(&status) > 0) sum += WEXITSTATUS(status);
    for (int k = 0; k < 1 << 18; k += 1024) sum += p[k] == 4;
    return sum == 6 + 256 ? 5 : 1;
}"#;
    let seen = same_end(dir.path(), "shm", source);
    assert_eq!(seen.summary.status.code(), Some(5));
    assert_eq!(seen.summary.processes, 5);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn code_that_a_program_writes_and_changes_is_recorded_as_it_runs() {
    let dir = bench();
    // `mov $n, area; ret` with another n each time, in a page that is moved as well.
    let source = r#"
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
__attribute__((section(".fixed"), aligned(4096))) volatile char area[65536] = {1};
int main(void) {
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sum = 0;
    for (int i = 0; i < 50; i++) {
        unsigned char text[] = {0xc6, 0x04, 0x25, i, 0, 0, 0x10, i, 0xc3};
        memcpy(code, text, sizeof text);
        ((void (*)(void))code)();
        if (i == 25) {
            void *other = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            code = mremap(code, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, other);
        }
        sum += area[i] == i;
    }
    return sum;
}"#;
    let seen = same_end(dir.path(), "jit", source);
    assert_eq!(seen.summary.status.code(), Some(50));
    let main = seen.recording.index().threads[0].thread;
    let offsets: Vec<u64> = seen
        .fixed(main)
        .iter()
        .filter(|r| r.0 == AccessKind::Store)
        .map(|r| r.2)
        .collect();
    assert_eq!(
        offsets,
        (0..50).collect::<Vec<u64>>(),
        "each store where it was written to go"
    );
}
