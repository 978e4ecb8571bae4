//! Every reference of known code is what it should be.

use crate::common::*;
use piebald_trace::recording::model::AccessKind::{Load, Store, Update};
use piebald_trace::recording::model::{Entry, EventKind};

/// A program whose `main` is this, between the marks 1 and 2.
fn program(body: &str) -> String {
    format!(
        r#"
#include <pthread.h>
__attribute__((section(".fixed"), aligned(4096))) char area[65536] = {{1}};
#define MARK(n) asm volatile(".byte 0x0f,0x1f,0x80; .long 0x4b430000 + " #n ::: "memory")
int main(void) {{
    char *a = area; (void)a;
    MARK(1);
    {body}
    MARK(2);
    return 0;
}}"#
    )
}

fn region(dir: &std::path::Path) -> piebald_qemu::recorder::Recorder {
    let mut recorder = recorder(dir);
    recorder.region = Some((1, 2));
    recorder
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn every_address_of_a_loop_is_exact() {
    let dir = bench();
    let body = r#"asm volatile(
        "xor %%ecx, %%ecx\n"
        "1: mov (%0,%%rcx,8), %%rax\n add %%rax, 16384(%0,%%rcx,8)\n mov %%eax, 32768(%0,%%rcx,4)\n"
        "inc %%ecx\n cmp $1000, %%ecx\n jne 1b" :: "r"(a) : "rax", "rcx", "memory");"#;
    let program = cc(dir.path(), "loop", &program(body), &FIXED);
    let seen = record_with(&region(dir.path()), &[program.to_str().expect("path")]);
    let expected: Vec<Ref> = (0..1000u64)
        .flat_map(|i| {
            [
                (Load, 8, 8 * i),
                (Update, 8, 16384 + 8 * i),
                (Store, 4, 32768 + 4 * i),
            ]
        })
        .collect();
    assert_eq!(seen.fixed(0), expected);
    // Outside the region there are events, but no references.
    let (all, instrs) = seen.refs(0);
    assert!(all.len() < expected.len() + 16, "{} references", all.len());
    assert!((6000..6100).contains(&instrs), "{instrs} instructions");
    assert!(seen.summary.complete);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn instructions_with_several_accesses_are_taken_apart() {
    let dir = bench();
    let body = r#"asm volatile(
        "mov %0, %%rbx\n"
        "lea 0x100(%%rbx), %%rsi\n lea 0x200(%%rbx), %%rdi\n"
        "movsq\n"                                   // load 100, store 200
        "cmpsb\n"                                   // load 108, load 208
        "vmovdqu 0x305(%%rbx), %%ymm0\n"            // 32-byte load, unaligned
        "vmovdqu %%ymm0, 0x400(%%rbx)\n"            // 32-byte store
        "movdqu 0x400(%%rbx), %%xmm1\n"
        "mov %%rsp, %%r8\n lea 0x800(%%rbx), %%rsp\n"
        "pushq 0x500(%%rbx)\n"                      // load 500, store 7f8
        "popq 0x508(%%rbx)\n"                       // load 7f8, store 508
        "mov %%r8, %%rsp\n"
        "lock xaddl %%eax, 0x600(%%rbx)\n"
        "xor %%eax, %%eax\n xor %%edx, %%edx\n lock cmpxchg16b 0x610(%%rbx)\n"
        "fldt 0x700(%%rbx)\n fstpt 0x710(%%rbx)\n"  // 10 bytes each
        "lea 0x900(%%rbx), %%rdi\n mov $3, %%ecx\n rep stosw\n"
        "prefetcht0 0xa00(%%rbx)\n lea 0xb00(%%rbx), %%rax\n nopw 0xc00(%%rbx)\n"
        "mov 0xd00(%%rbx), %%al\n"
        "vzeroupper\n"
        :: "r"(a) : "rax","rbx","rcx","rdx","rsi","rdi","r8","xmm0","xmm1","memory","cc");"#;
    let program = cc(dir.path(), "kinds", &program(body), &FIXED);
    let seen = record_with(&region(dir.path()), &[program.to_str().expect("path")]);
    let expected = [
        (Load, 8, 0x100),
        (Store, 8, 0x200),
        (Load, 1, 0x208),
        (Load, 1, 0x108),
        (Load, 32, 0x305),
        (Store, 32, 0x400),
        (Load, 16, 0x400),
        (Load, 8, 0x500),
        (Store, 8, 0x7f8),
        (Load, 8, 0x7f8),
        (Store, 8, 0x508),
        (Update, 4, 0x600),
        (Update, 16, 0x610),
        (Load, 10, 0x700),
        (Store, 10, 0x710),
        (Store, 2, 0x900),
        (Store, 2, 0x902),
        (Store, 2, 0x904),
        (Load, 1, 0xd00),
    ];
    assert_eq!(seen.fixed(0), expected);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_repeated_instruction_is_recorded_whole_however_long() {
    let dir = bench();
    // More references than a slot holds: of one execution, from QEMU 10 on.
    const WORDS: usize = 3 << 20;
    let source = format!(
        r#"
__attribute__((section(".fixed"), aligned(4096))) long area[{WORDS}] = {{1}};
int main(void) {{
    void *to = area, *from = area;
    unsigned long n = {WORDS};
    asm volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(0) : "memory");
    to = area + 512; n = {WORDS} - 512;
    asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) :: "memory");
    return 0;
}}"#
    );
    let program = cc(dir.path(), "repeats", &source, &FIXED);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
    let inside = |r: &Ref| (0x1000_0000..0x1000_0000 + 8 * WORDS as u64).contains(&r.2);
    let words: Vec<Ref> = seen.refs(0).0.into_iter().filter(inside).collect();
    let at = |i: usize| 0x1000_0000 + 8 * i as u64;
    let moves = (0..WORDS - 512).flat_map(|i| [(Load, 8, at(i)), (Store, 8, at(i + 512))]);
    let expected = (0..WORDS).map(|i| (Store, 8, at(i))).chain(moves);
    assert_eq!(words.len(), WORDS + 2 * (WORDS - 512));
    assert!(words.into_iter().eq(expected));
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn atomic_updates_of_threads_are_one_reference_each() {
    let dir = bench();
    let source = r#"
#include <pthread.h>
__attribute__((section(".fixed"), aligned(4096))) char area[65536] = {1};
void *work(void *p) {
    for (int i = 0; i < 1000; i++)
        asm volatile("lock addl $1, (%0)\n incl 64(%0)" :: "r"(p) : "memory");
    return 0;
}
int main(void) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, area + 4096 * i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return *(int *)(area + 4096) != 1000;
}"#;
    let program = cc(dir.path(), "threads", source, &FIXED);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    assert_eq!((seen.summary.processes, seen.summary.threads), (1, 3));
    assert_eq!(seen.summary.status.code(), Some(0));
    for thread in [1, 2] {
        let refs = seen.fixed(thread);
        let base = refs[0].2 & 0xf000;
        let expected = (0..1000).flat_map(|_| [(Update, 4, base), (Update, 4, base + 64)]);
        assert_eq!(refs, expected.collect::<Vec<_>>());
    }
    assert_eq!(seen.exits(), [0, 0, 0]);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn marks_are_events_in_their_place() {
    let dir = bench();
    let body = r#"asm volatile("movb $1, 0x10(%0)" :: "r"(a) : "memory");
        MARK(77);
        asm volatile("jmp 1f\n1: movb $1, 0x20(%0)" :: "r"(a) : "memory");"#;
    let program = cc(dir.path(), "marks", &program(body), &FIXED);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    let mark = |kind| match kind {
        EventKind::Mark(n) => Some(n),
        _ => None,
    };
    let marks: Vec<u32> = seen.kinds().into_iter().filter_map(mark).collect();
    assert_eq!(marks, [1, 77, 2]);
    let index = seen.recording.index();
    for c in 0..index.chunks.len() {
        let (raw, events) = seen.recording.raw_chunk(c).expect("chunk");
        let Some((at, _)) = events.iter().find(|e| e.1.kind == EventKind::Mark(77)) else {
            continue;
        };
        let place = |wanted: u64| {
            let is = |e: &&_| matches!(e, Entry::Access(_, a) if *a == 0x1000_0000 + wanted);
            let entries: Vec<Entry> = raw.iter().map(|r| r.entry()).collect();
            entries.iter().position(|e| is(&e)).expect("reference")
        };
        assert!(place(0x10) < *at && *at <= place(0x20));
        return;
    }
    panic!("mark 77 lies in no chunk");
}

const WALK: &str = r#"
__attribute__((section(".fixed"), aligned(4096))) char area[1 << 20] = {1};
int main(void) {
    for (int r = 0; r < 4; r++)
        asm volatile("xor %%ecx, %%ecx\n1: movb %%al, (%0,%%rcx)\n inc %%ecx\n cmp $1048576, %%ecx\n jne 1b"
            :: "r"(area) : "rcx", "memory");
    return 7;
}"#;

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn skip_and_limit_count_references() {
    let dir = bench();
    let program = cc(dir.path(), "walk", WALK, &FIXED);
    let words = [program.to_str().expect("path")];
    let whole = record(dir.path(), &words);
    assert!(!whole.recording.header().midway);
    let all = whole.refs(0).0;
    let mut recorder = recorder(dir.path());
    (recorder.skip, recorder.limit) = (1_000_000, Some(300_000));
    let seen = record_with(&recorder, &words);
    assert!(seen.recording.header().midway);
    let (kept, _) = seen.refs(0);
    assert_eq!(kept.len(), 300_000);
    assert_eq!(kept, all[1_000_000..1_300_000]);
    assert_eq!(seen.summary.references, 300_000);
    assert_eq!(seen.summary.status.code(), Some(7), "it ran to its end");
    assert!(seen.summary.complete);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn the_program_can_be_ended_at_the_limit() {
    let dir = bench();
    let source = WALK.replace("r < 4", "1");
    let program = cc(dir.path(), "forever", &source, &FIXED);
    let mut recorder = recorder(dir.path());
    (recorder.limit, recorder.stop_at_limit) = (Some(500_000), true);
    let seen = record_with(&recorder, &[program.to_str().expect("path")]);
    assert_eq!(seen.refs(0).0.len(), 500_000);
    assert!(!seen.summary.status.success());
    assert!(seen.summary.complete, "{:?}", seen.summary.warnings);
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn threads_that_write_when_the_limit_is_reached_lose_nothing_of_what_they_began() {
    let dir = bench();
    let source = r#"
#include <pthread.h>
static volatile unsigned sink[8][1 << 16];
static void *work(void *of) {
    volatile unsigned *mine = of;
    for (unsigned x = 1;; x = x * 1664525 + 1013904223) mine[x >> 16] = x;
}
int main(void) {
    pthread_t t[7];
    for (int i = 0; i < 7; i++) pthread_create(&t[i], 0, work, (void *)sink[i]);
    work((void *)sink[7]);
}"#;
    let program = cc(dir.path(), "crew", source, &["-O2", "-pthread"]);
    const LIMIT: u64 = 24 << 20;
    for round in 0..4 {
        let mut recorder = recorder(dir.path());
        (recorder.limit, recorder.stop_at_limit) = (Some(LIMIT), true);
        let seen = record_with(&recorder, &[program.to_str().expect("path")]);
        assert!(seen.summary.at_limit && !seen.summary.status.success());
        let why = format!("round {round}: {:?}", seen.summary.warnings);
        assert!(seen.summary.complete, "{why}");
        assert_eq!(seen.summary.warnings.len(), 1, "{why}");
        // What was counted is in it, to a block for each thread.
        let off = seen.summary.references.abs_diff(LIMIT);
        assert!(off < 100, "{why}: {off}");
        seen.recording.verify().expect("nothing is damaged");
        seen.recording.block_defs(0).expect("its blocks");
    }
}

#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_vector_call_names_its_first_buffer() {
    let dir = bench();
    let source = r#"
#include <sys/uio.h>
#include <unistd.h>
static char first[4], second[4];
int main(void) {
    struct iovec v[2] = {{first, 4}, {second, 4}};
    writev(1, v, 2);
    write(1, first, 4);
    return 0;
}"#;
    let program = cc(dir.path(), "vector", source, &FIXED);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    let buffer = |wanted: u32| {
        let found = seen.kinds().into_iter().find_map(|kind| match kind {
            EventKind::Call { number, args, .. } if number == wanted => Some(args[1]),
            _ => None,
        });
        found.expect("the call is recorded")
    };
    assert_eq!(
        buffer(20),
        buffer(1),
        "writev and write have the same first buffer"
    );
}

/// What the emulator itself writes to the stack for a handler is no reference of
/// the program.
#[test]
#[ignore = "needs qemu-user: ./test.sh recorder"]
fn a_signal_frame_is_not_the_programs() {
    let dir = bench();
    let source = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
__attribute__((section(".fixed"), aligned(4096))) char area[65536] = {1};
volatile int hits;
void handler(int);
void callee(void);
asm("handler: incl hits(%rip)\n ret\n callee: ret");
int main(void) {
    stack_t stack = { .ss_sp = area, .ss_size = sizeof area };
    sigaltstack(&stack, 0);
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    setitimer(ITIMER_REAL, &often, 0);
    while (hits < 40) {
        asm volatile("call *%0" :: "r"(callee) : "memory", "cc");
        // Blocks without any access of their own.
        for (int i = 0; i < 20; i++) asm volatile("" ::: "memory");
    }
    struct itimerval never = { { 0, 0 }, { 0, 0 } };
    setitimer(ITIMER_REAL, &never, 0);
    return 0;
}"#;
    let options = [&FIXED[..], &["-mno-red-zone"]].concat();
    let program = cc(dir.path(), "alarmed", source, &options);
    let seen = record(dir.path(), &[program.to_str().expect("path")]);
    assert!(seen.summary.complete && seen.summary.status.success());
    // All that the program does there is to return from the handler.
    let mut on_stack = seen.fixed(0);
    on_stack.retain(|r| r.2 < 65536);
    assert!(on_stack.len() >= 40, "{} returns", on_stack.len());
    let (kind, size, at) = on_stack[0];
    assert_eq!((kind, size), (Load, 8));
    let other = on_stack.iter().find(|&&r| r != (kind, size, at));
    assert_eq!(other, None, "of {}", on_stack.len());
}
