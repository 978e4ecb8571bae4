//! Forms of strace's output, line by line, by what `trace` prints of them.

use piebald_trace::block::{BlockTrace, Format, Options};

use super::support::{lines, open, options, read};

/// The requests without their numbers.
fn requests(text: &str) -> Vec<String> {
    let rows = lines(text.as_bytes(), options(Format::Strace));
    let rows = rows
        .iter()
        .map(|row| row.split_once(' ').expect(row).1.to_owned());
    rows.collect()
}

#[test]
fn messages_of_the_program_and_of_strace_are_left_out() {
    let text = "hello, (world) = 1\n\
                openat(AT_FDCWD</t>, \"a\", O_RDONLY) = 3</t/a>\n\
                main(1) = 2\n\
                read(3</t/a>, \"x\"..., 4096) = 4096\n\
                strace: Process 9 attached\n\
                write(2</dev/pts/0<char 136:0>>, \"read(3) = 7\\nmore\", 16read(3) = 7\n\
                more) = 16\n\
                prompt> read(3</t/a>, \"x\"..., 4096) = 4096\n\
                read(3</t/a>, an unrelated message\n\
                \"x\"..., 4096) = 4096\n";
    assert_eq!(
        requests(text),
        [
            "- 0 read file /t/a bytes 0+4096",
            "- 0 read file /t/a bytes 4096+4096",
            "- 0 read file /t/a bytes 8192+4096",
        ]
    );
    let mut trace = open(text.as_bytes(), options(Format::Strace));
    while trace.next_batch(&mut Vec::new()).expect("reads") {}
    let passed = trace.passed();
    // Two messages, one of strace, and a prompt.
    assert_eq!((passed.comments, passed.elsewhere), (4, 1));
}

#[test]
fn a_call_that_an_attachment_interrupts_goes_on() {
    let text = "openat(AT_FDCWD</t>, \"a\", O_RDONLY) = 3</t/a>\n\
                read(3</t/a>, \"x\"..., 4096) = 4096\n\
                clone(child_stack=NULL, flags=SIGCHLDstrace: Process 501 attached\n\
                , child_tidptr=0x7f00) = 501\n\
                [pid   501] read(3</t/a>, \"x\"..., 10) = 10\n\
                [pid   500] vfork(/usr/bin/strace: Process 502 attached\n \
                <unfinished ...>\n\
                [pid   502] read(3</t/a>, \"x\"..., 20) = 20\n\
                [pid   502] exit_group(0) = ?\n\
                [pid   500] <... vfork resumed>) = 502\n\
                [pid   501] +++ exited with 0 +++\n\
                [pid   502] +++ exited with 0 +++\n\
                read(3</t/a>, \"x\"..., 30) = 30\n";
    assert_eq!(
        requests(text),
        [
            "- 0 read file /t/a bytes 0+4096",
            "- 501 read file /t/a bytes 4096+10",
            "- 502 read file /t/a bytes 4106+20",
            "- 0 read file /t/a bytes 4126+30",
        ]
    );
}

#[test]
fn lines_without_a_process_are_of_the_one_that_is_left() {
    let text = "openat(AT_FDCWD</t>, \"a\", O_RDONLY) = 3</t/a>\n\
                fork() = 501\n\
                [pid   500] read(3</t/a>, \"x\"..., 10) = 10\n\
                [pid   501] openat(AT_FDCWD</t>, \"b\", O_RDONLY) = 4</t/b>\n\
                [pid   500] +++ exited with 0 +++\n\
                read(4</t/b>, \"x\"..., 5) = 5\n\
                read(3</t/a>, \"x\"..., 7) = 7\n\
                +++ exited with 0 +++\n";
    assert_eq!(
        requests(text),
        [
            "- 0 read file /t/a bytes 0+10",
            "- 501 read file /t/b bytes 0+5",
            "- 501 read file /t/a bytes 10+7",
        ]
    );
}

#[test]
fn threads_that_were_there_before_strace_share_descriptors() {
    let text = "strace: Process 10 attached with 3 threads\n\
                [pid    10] openat(AT_FDCWD</t>, \"a\", O_RDONLY) = 3</t/a>\n\
                [pid    11] read(3</t/a>, \"x\"..., 5) = 5\n\
                [pid    12] read(3</t/a>, \"x\"..., 6) = 6\n";
    assert_eq!(
        requests(text),
        [
            "- 11 read file /t/a bytes 0+5",
            "- 12 read file /t/a bytes 5+6",
        ]
    );
}

#[test]
fn a_thread_that_runs_a_program_becomes_the_process() {
    let text = "10 openat(AT_FDCWD</t>, \"a\", O_RDONLY) = 3</t/a>\n\
                10 openat(AT_FDCWD</t>, \"b\", O_RDONLY|O_CLOEXEC) = 4</t/b>\n\
                10 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 11\n\
                11 read(3</t/a>, \"x\"..., 5) = 5\n\
                11 execve(\"/bin/x\", [\"x\"], 0x7f00 /* 9 vars */ <unfinished ...>\n\
                10 +++ superseded by execve in pid 11 +++\n\
                10 <... execve resumed>) = 0\n\
                10 read(3</t/a>, \"x\"..., 6) = 6\n\
                10 read(4, \"x\"..., 7) = 7\n";
    assert_eq!(
        requests(text),
        [
            "- 11 read file /t/a bytes 0+5",
            "- 10 read file /t/a bytes 5+6",
        ]
    );
}

#[test]
fn with_z_a_child_comes_before_its_parent_has_it() {
    let text = "10 openat(AT_FDCWD</t>, \"a\", O_RDONLY) = 3</t/a>\n\
                11 execve(\"/bin/x\", [\"x\"], 0x7f00 /* 9 vars */) = 0\n\
                10 vfork() = 11\n\
                11 read(3</t/a>,  <unfinished ...>\n\
                \"x\"..., 5) = 5\n\
                10 read(3</t/a>, \"x\"..., 6) = 6\n";
    assert_eq!(
        requests(text),
        [
            "- 11 read file /t/a bytes 0+5",
            "- 10 read file /t/a bytes 5+6",
        ]
    );
}

#[test]
fn relative_times_are_summed_up() {
    let text = "     0.000000 openat(AT_FDCWD</t>, \"a\", O_RDONLY) = 3</t/a>\n     \
                0.000500 read(3</t/a>, \"x\"..., 5) = 5\n     \
                1.000000 getpid() = 7\n     \
                0.000001 read(3</t/a>, \"x\"..., 5) = 5\n";
    assert_eq!(
        requests(text),
        [
            "500000 0 read file /t/a bytes 0+5",
            "1000501000 0 read file /t/a bytes 5+5",
        ]
    );
}

#[test]
fn names_of_arguments_are_read_past() {
    let text = "openat(dirfd=AT_FDCWD</t>, pathname=\"a\", flags=O_RDWR|O_APPEND) = 3</t/a>\n\
                fstat(fd=3</t/a>, statbuf={st_mode=S_IFREG|0644, st_size=500, ...}) = 0\n\
                read(fd=3</t/a>, buf=\"x\"..., count=4096) = 100\n\
                pread64(fd=3</t/a>, buf=\"x\"..., count=10, offset=70) = 10\n\
                write(fd=3</t/a>, buf=\"x\"..., count=9) = 9\n";
    assert_eq!(
        requests(text),
        [
            "- 0 read file /t/a bytes 0+100",
            "- 0 read file /t/a bytes 70+10",
            "- 0 write file /t/a bytes 500+9",
        ]
    );
}

#[test]
fn texts_that_are_no_log_are_not_taken_for_one() {
    let page = "STRACE(1)\n\nNAME\n  strace - trace system calls\n\nEach line contains a call, such as\n\
                open(\"/dev/null\", O_RDONLY) = 3\n\
                in this way. Errors have their text appended.\n\
                open(\"/foo/bar\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
                Signals are printed as well.\nArguments are printed in symbolic form.\nThis shows it.\n\
                Structures are printed in braces.\nCharacters are quoted.\nBits are too.\nThe end.\n";
    let library = "malloc(32) = 0x55d0\nstrlen(\"read(3) = 5\") = 11\nputs(\"a\") = 2\nfree(0x55d0) = <void>\n";
    let patch = "--- a/file\n+++ b/file\n@@ -1,2 +1,2 @@\n-read(3) = 1\n+main(3) = 1\n";
    let perf = "     0.000 ( 0.005 ms): cat/1234 openat(dfd: CWD, filename: \"/etc\") = 3\n";
    let words = "5 6 7\nhello\nwrite to me (please)\n";
    let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                 ------ ----------- ----------- --------- --------- ----------------\n \
                 58.47    0.001000          10       100           read\n\
                 ------ ----------- ----------- --------- --------- ----------------\n\
                 100.00    0.001000                   100           total\n";
    for text in [page, library, patch, perf, words, table] {
        let found = BlockTrace::from_bytes("text", text.as_bytes(), Options::default());
        assert!(found.is_err(), "{text}");
    }
    // Named, it is read as far as it is one; a text with no line at all is an error.
    assert!(requests(page).is_empty());
    for text in [library, patch, perf, words, table] {
        let failure = read(text.as_bytes(), options(Format::Strace)).1;
        let failure = failure.unwrap_or_else(|| panic!("{text}"));
        assert!(failure.contains("line 1: the line is"), "{failure}");
    }
}

#[test]
fn a_call_that_has_no_end_is_an_error_at_its_line() {
    let text = "7 openat(AT_FDCWD</t>, \"a\", O_RDONLY) = 3</t/a>\n\
                7 read(3</t/a>, \"x\"...,\n\
                7 read(3</t/a>, \"x\"..., 5) = 5\n\
                7 read(3</t/a>, \"x\"..., 6) = 6\n";
    let (_, failure) = read(text.as_bytes(), options(Format::Strace));
    let failure = failure.expect("a failure");
    assert!(
        failure.contains("byte 48, line 2: the call is"),
        "{failure}"
    );
    let lenient = Options {
        lenient: true,
        ..options(Format::Strace)
    };
    assert_eq!(
        lines(text.as_bytes(), lenient),
        [
            "#0 - 7 read file /t/a bytes 0+5",
            "#1 - 7 read file /t/a bytes 5+6"
        ]
    );
}

#[test]
fn a_write_says_how_long_a_file_is_at_least_and_not_where_it_ends() {
    let text = "openat(AT_FDCWD</t>, \"a\", O_RDWR) = 3</t/a>\n\
                pwrite64(3</t/a>, \"x\"..., 4096, 0) = 4096\n\
                mmap(NULL, 1048576, PROT_READ, MAP_SHARED, 3</t/a>, 0) = 0x7f00\n\
                truncate(\"/t/a\", 8192) = 0\n\
                mmap(NULL, 1048576, PROT_READ, MAP_SHARED, 3</t/a>, 0) = 0x7f00\n\
                lseek(3</t/a>, 0, SEEK_SET) = 0\n\
                read(3</t/a>, \"x\"..., 65536) = 5000\n";
    assert_eq!(
        requests(text),
        [
            "- 0 write file /t/a bytes 0+4096",
            "- 0 map file /t/a bytes 0+1048576",
            "- 0 delete file /t/a from byte 8192",
            "- 0 map file /t/a bytes 0+8192",
            "- 0 read file /t/a bytes 0+5000",
        ]
    );
    // What is said of a size stands against a read that a signal cut short.
    let text = "openat(AT_FDCWD</t>, \"a\", O_RDWR|O_APPEND) = 3</t/a>\n\
                fstat(3</t/a>, {st_mode=S_IFREG|0644, st_size=500, ...}) = 0\n\
                read(3</t/a>, \"x\"..., 4096) = 100\n\
                write(3</t/a>, \"x\"..., 9) = 9\n";
    assert_eq!(requests(text)[1], "- 0 write file /t/a bytes 500+9");
}

#[test]
fn an_answer_to_where_a_descriptor_is_counts_unless_other_processes_move_it() {
    let text = "openat(AT_FDCWD, \"/t/a\", O_RDONLY) = 3\n\
                dup(3) = 4\n\
                lseek(3, 0, SEEK_CUR) = 8192\n\
                read(3, \"x\"..., 4096) = 4096\n";
    assert_eq!(requests(text), ["- 0 read file /t/a bytes 8192+4096"]);
    // Of a child that is not traced nothing else is known.
    let text = "openat(AT_FDCWD, \"/t/a\", O_RDONLY) = 3\n\
                clone(child_stack=NULL, flags=SIGCHLD) = 77\n\
                lseek(3, 0, SEEK_CUR) = 8192\n\
                read(3, \"x\"..., 4096) = 4096\n";
    assert_eq!(requests(text), ["- 0 read file /t/a bytes 8192+4096"]);
    // Two processes: the answer may be older than the other's read.
    let text = "70 openat(AT_FDCWD, \"/t/a\", O_RDONLY) = 3\n\
                70 clone(child_stack=NULL, flags=SIGCHLD) = 77\n\
                77 read(3, \"x\"..., 100) = 100\n\
                70 lseek(3, 0, SEEK_CUR) = 0\n\
                70 read(3, \"x\"..., 50) = 50\n";
    assert_eq!(requests(text)[1], "- 70 read file /t/a bytes 100+50");
}

#[test]
fn a_child_in_another_namespace_of_processes_has_its_parent_s_descriptors() {
    let text = "700 openat(AT_FDCWD, \"/t/a\", O_RDONLY) = 3\n\
                700 clone(child_stack=NULL, flags=CLONE_NEWPID|SIGCHLD) = 2 /* 900 in strace's PID NS */\n\
                900 read(3, \"x\"..., 4096) = 4096\n\
                700 read(3, \"x\"..., 4096) = 4096\n";
    assert_eq!(
        requests(text),
        [
            "- 900 read file /t/a bytes 0+4096",
            "- 700 read file /t/a bytes 4096+4096",
        ]
    );
}

#[test]
fn pipes_with_names_are_no_files_and_paths_of_descriptors_lead_to_theirs() {
    let text = "openat(AT_FDCWD, \"/t/fi\", O_RDONLY) = 3\n\
                fstat(3, {st_mode=S_IFIFO|0644, st_size=0, ...}) = 0\n\
                read(3, \"x\"..., 8192) = 8192\n\
                openat(AT_FDCWD, \"/t/db\", O_RDONLY) = 4\n\
                openat(AT_FDCWD, \"/proc/self/fd/4\", O_RDONLY) = 5\n\
                openat(AT_FDCWD, \"/dev/fd/4\", O_RDONLY) = 6\n\
                read(4, \"x\"..., 100) = 100\n\
                read(5, \"x\"..., 4096) = 4096\n\
                read(6, \"x\"..., 10) = 10\n";
    assert_eq!(
        requests(text),
        [
            "- 0 read file /t/db bytes 0+100",
            "- 0 read file /t/db bytes 0+4096",
            "- 0 read file /t/db bytes 0+10",
        ]
    );
}

#[test]
fn a_file_without_a_name_goes_with_its_last_descriptor() {
    for name in ["", "</t/#77>(deleted)"] {
        let text = format!(
            "openat(AT_FDCWD, \"/t\", O_RDWR|O_TMPFILE, 0600) = 3{name}\n\
             write(3{name}, \"x\"..., 100) = 100\n\
             close(3{name}) = 0\n\
             openat(AT_FDCWD, \"/t/b\", O_RDONLY) = 3</t/b>\n"
        );
        let found = requests(&text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].starts_with("- 0 delete file /t"), "{found:?}");
    }
    // One that gets a name has it until that is removed.
    let text = "openat(AT_FDCWD, \"/t\", O_RDWR|O_TMPFILE, 0600) = 3\n\
                write(3, \"x\"..., 100) = 100\n\
                linkat(AT_FDCWD, \"/proc/self/fd/3\", AT_FDCWD, \"/t/c\", AT_SYMLINK_FOLLOW) = 0\n\
                close(3) = 0\n\
                openat(AT_FDCWD, \"/t/c\", O_RDONLY) = 3\n\
                read(3, \"x\"..., 100) = 100\n\
                close(3) = 0\n\
                unlink(\"/t/c\") = 0\n";
    let found = requests(text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[2].contains("delete"), "{found:?}");
}

#[test]
fn lines_may_hold_what_a_large_directory_has() {
    let entries = "{d_ino=1, d_off=1, d_reclen=24, d_type=DT_REG, d_name=\"x\"}, ".repeat(3000);
    let text = format!(
        "openat(AT_FDCWD, \"/t/a\", O_RDONLY) = 3\n\
         getdents64(4, [{entries}], 32768) = 90604\n\
         read(3, \"x\"..., 5) = 5\n"
    );
    assert!(text.len() > 100_000);
    assert_eq!(requests(&text), ["- 0 read file /t/a bytes 0+5"]);
}
