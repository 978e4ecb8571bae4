//! Lines of all forms, and lines that are none.

use super::*;

fn whole(text: &str) -> Line<'_> {
    match read(text.as_bytes()) {
        Ok(Kind::Line(line)) => line,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn lines_say_who_and_when() {
    let epoch = Clock::Epoch(1_700_000_000_000_001_000);
    for (text, pid, time) in [
        ("read(3, 0) = 0", None, None),
        ("77 read(3, 0) = 0", Some(77), None),
        ("77<sh> read(3, 0) = 0", Some(77), None),
        ("77<a \\74b\\76 (c)> read(3, 0) = 0", Some(77), None),
        ("[pid    77] read(3, 0) = 0", Some(77), None),
        ("[pid    77<k/0:1>] read(3, 0) = 0", Some(77), None),
        ("77 1700000000.000001 read(3) = 0", Some(77), Some(epoch)),
        ("1700000000.000001 read(3) = 0", None, Some(epoch)),
        (
            "1700000000 read(3) = 0",
            None,
            Some(Clock::Epoch(1_700_000_000_000_000_000)),
        ),
        (
            "77    00:01:02.5 read(3) = 0",
            Some(77),
            Some(Clock::OfDay(62_500_000_000)),
        ),
        (
            "00:00:07 read(3) = 0",
            None,
            Some(Clock::OfDay(7_000_000_000)),
        ),
        (
            "00:00:07 (+     0.000100) read(3) = 0",
            None,
            Some(Clock::OfDay(7_000_000_000)),
        ),
        (
            "     0.000100 read(3) = 0",
            None,
            Some(Clock::Since(100_000)),
        ),
        (
            "77       0.0001 read(3) = 0",
            Some(77),
            Some(Clock::Since(100_000)),
        ),
        (
            "77       2 read(3) = 0",
            Some(77),
            Some(Clock::Since(2_000_000_000)),
        ),
        ("77 [   0] read(3) = 0", Some(77), None),
        ("[   0] [00007f72c186bad7] read(3) = 0", None, None),
        ("[pid 77] [????????????????] read(3) = 0", Some(77), None),
        (
            "77 [unconfined_u:r:s0-s0:c0.c1023] read(3) = 0",
            Some(77),
            None,
        ),
        (
            "77 [init_t] 00:00:07 [  0] read(3) = 0",
            Some(77),
            Some(Clock::OfDay(7_000_000_000)),
        ),
    ] {
        let line = whole(text);
        assert_eq!((line.pid, line.time), (pid, time), "{text}");
        assert!(matches!(line.body, Body::Call(b"read", _)), "{text}");
    }
    let why = read(b"77 12:99:00 read(3) = 0").expect_err("no such minute");
    assert_eq!((why.field, &why.value[..]), ("the time", "\"12:99:00\""));
}

#[test]
fn lines_have_a_body() {
    let line = |text| whole(text).body;
    assert_eq!(
        line("7 read(3,  <unfinished ...>"),
        Body::Unfinished(b"read", b"3,  ")
    );
    assert_eq!(
        line("[pid 7] <... read resumed>0) = 0"),
        Body::Resumed(b"read", b"0) = 0")
    );
    assert_eq!(
        line("<... futex resumed> ) = ?"),
        Body::Resumed(b"futex", b" ) = ?")
    );
    assert_eq!(line("vfork("), Body::Begun(b"vfork", b""));
    assert_eq!(
        line("write(2, \"a = b\\n\", 6a = b"),
        Body::Begun(b"write", b"2, \"a = b\\n\", 6a = b")
    );
    assert_eq!(
        line("7 unheard_of(3) = 0"),
        Body::Call(b"unheard_of", b"3) = 0")
    );
    assert_eq!(
        line("7 +++ killed by SIGSEGV (core dumped) +++"),
        Body::Exited
    );
    assert_eq!(
        line("+++ superseded by execve in pid 12 +++"),
        Body::Superseded(12)
    );
    for other in [
        "--- SIGCHLD {si_signo=SIGCHLD, si_pid=7} ---",
        "7 --- stopped by SIGSTOP ---",
        "[ Process PID=700 runs in 32 bit mode. ]",
        "[pid 700] [ Process PID=700 runs in x32 mode. ]",
        "????( <unfinished ...>",
        "read(0,  <detached ...>",
        "7 execve(\"/x\", [\"x\"], 0x7f <pid changed to 6 ...>",
    ] {
        assert_eq!(line(other), Body::Other, "{other}");
    }
}

#[test]
fn words_of_programs_and_of_strace_are_told_from_calls() {
    for text in [
        "hello",
        "5 6 7",
        "Read(3) = 0",
        "main(3) = 0",
        "read(3) failed",
        "read()",
        "77 monkeys",
        "[pid 77] worker started",
        "+++ b/file",
        "--- a/file",
        "x = 5",
        "",
    ] {
        assert_eq!(read(text.as_bytes()).ok(), Some(Kind::Message), "{text}");
    }
    for text in [
        "strace: Process 501 attached",
        "/usr/bin/strace: Process 501 detached",
        "strace: [ Process PID=700 runs in 32 bit mode. ]",
        "Process 12 attached (waiting for parent)",
        " > /usr/lib/libc.so.6(read+0x10) [0x1ab70]",
        " | 00000  68 65 6c 6c 6f                                    hello            |",
        " * 5 bytes in buffer 0",
        "% time     seconds  usecs/call     calls    errors syscall",
        "------ ----------- ----------- --------- --------- ----------------",
        "  0.00    0.000000           0         9           read",
        "100.00    0.000000           0        45         3 total",
    ] {
        assert_eq!(read(text.as_bytes()).ok(), Some(Kind::Beside), "{text}");
    }
}

#[test]
fn attachments_may_stand_behind_a_call() {
    for (text, pid, before) in [
        ("strace: Process 501 attached", 501, ""),
        ("vfork(strace: Process 501 attached", 501, "vfork("),
        (
            "[pid 7] clone(f=CLONE_FILES/usr/bin/strace: Process 9 attached",
            9,
            "[pid 7] clone(f=CLONE_FILES",
        ),
        ("strace: Process 9 attached with 3 threads", 9, ""),
        ("clone(Process 9 attached", 9, "clone("),
    ] {
        let found = attached(text.as_bytes()).expect(text);
        assert_eq!(
            (found.pid, found.before, found.with_threads),
            (pid, before.as_bytes(), text.ends_with("threads")),
            "{text}"
        );
    }
    assert_eq!(attached(b"the file is attached"), None);
}

#[test]
fn calls_may_stand_behind_words_without_a_line_feed() {
    for (text, call) in [
        ("name: read(0, \"x\", 1) = 1", "read(0, \"x\", 1) = 1"),
        (
            "name? [pid  7] read(0, \"x\", 1) = 1",
            "[pid  7] read(0, \"x\", 1) = 1",
        ),
        (
            "# Net[pid  7] [00007fc9f65152ad] <... read resumed>\"x\", 5) = 5",
            "[pid  7] [00007fc9f65152ad] <... read resumed>\"x\", 5) = 5",
        ),
        (
            "f(x) $ read(0,  <unfinished ...>",
            "read(0,  <unfinished ...>",
        ),
    ] {
        assert_eq!(
            behind_a_message(text.as_bytes()),
            Some(call.as_bytes()),
            "{text}"
        );
    }
    for text in [
        "see read(0, x)",
        "os.read(0, 1) = 1",
        "my_read(0, 1) = 1",
        "-read(0, 1) = 1",
        "a: \"read(0, 1) = 1",
        "call main(0, 1) = 1",
        "then read(0, 1) and so on (x) = 1",
    ] {
        assert_eq!(behind_a_message(text.as_bytes()), None, "{text}");
    }
}
