//! System calls, line by line: each text is a small run, with the requests that it makes.

mod kinds;

use super::super::super::{BlockTrace, FileKey, Format, Op, Options, Target};

/// Requests as `op pid path offset length`, and the trace for what it counts.
fn run(text: &str) -> (Vec<String>, BlockTrace) {
    under(text, &[])
}

fn under(text: &str, under: &[&str]) -> (Vec<String>, BlockTrace) {
    let options = Options {
        format: Some(Format::Strace),
        under: under.iter().map(|u| (*u).to_owned()).collect(),
        ..Options::default()
    };
    let mut trace = BlockTrace::from_bytes("run", text.as_bytes(), options).expect("opens");
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while trace.next_batch(&mut batch).expect("reads") {
        for r in &batch {
            let Target::File {
                file,
                offset,
                length,
            } = r.target
            else {
                panic!("{r:?}");
            };
            let path = trace.files().get(file).expect("a file").path();
            all.push(match r.op {
                Op::Delete if length == u64::MAX - offset => {
                    format!("delete {} {path} {offset}", r.task)
                }
                op => format!("{} {} {path} {offset} {length}", op.name(), r.task),
            });
        }
    }
    (all, trace)
}

fn requests(text: &str) -> Vec<String> {
    run(text).0
}

#[test]
fn offsets_advance_by_what_was_moved() {
    let text = r#"
7 openat(AT_FDCWD</w>, "a", O_RDWR|O_CLOEXEC) = 3</w/a>
7 read(3</w/a>, "x"..., 4096) = 4096
7 read(3</w/a>, "x"..., 4096) = 100
7 read(3</w/a>, "", 4096)               = 0
7 lseek(3</w/a>, 8192, SEEK_SET)        = 8192
7 write(3</w/a>, "y"..., 10)            = 10
7 readv(3</w/a>, [{iov_base="a", iov_len=1}, {iov_base="b", iov_len=1}], 2) = 2
7 pread64(3</w/a>, "z"..., 50, 4090) = 50
7 pwritev(3</w/a>, [{iov_base="q", iov_len=5}], 1, 65536) = 5
7 read(3</w/a>, "x", 1) = 1
7 close(3</w/a>)                        = 0
"#;
    assert_eq!(
        requests(text.trim_start()),
        [
            "read 7 /w/a 0 4096",
            "read 7 /w/a 4096 100",
            "write 7 /w/a 8192 10",
            "read 7 /w/a 8202 2",
            "read 7 /w/a 4090 50",
            "write 7 /w/a 65536 5",
            "read 7 /w/a 8204 1",
        ]
    );
}

#[test]
fn failed_and_empty_calls_are_no_requests() {
    let text = "7 open(\"/a\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
                7 open(\"/a\", O_RDONLY) = 3</a>\n\
                7 read(3</a>, 0x7ffe, 10) = -1 EINTR (Interrupted)\n\
                7 read(3</a>, \"\", 10) = 0\n\
                7 read(3</a>, 0x7ffe, 10) = ? ERESTARTSYS (To be restarted)\n\
                7 getpid() = 7\n\
                7 +++ exited with 0 +++\n";
    let (requests, trace) = run(text);
    assert!(requests.is_empty(), "{requests:?}");
    assert_eq!(trace.passed().empty, 1);
    assert_eq!(trace.passed().others, 5);
    assert_eq!(trace.passed().comments, 1);
}

#[test]
fn duplicates_share_the_offset() {
    let text = "1 open(\"/a\", O_RDONLY) = 3</a>\n\
                1 dup(3</a>) = 4</a>\n\
                1 fcntl(3</a>, F_DUPFD_CLOEXEC, 10) = 10</a>\n\
                1 dup2(3</a>, 9) = 9</a>\n\
                1 read(4</a>, \"\"..., 5) = 5\n\
                1 read(10</a>, \"\"..., 5) = 5\n\
                1 close(3</a>) = 0\n\
                1 read(9</a>, \"\"..., 5) = 5\n\
                1 open(\"/a\", O_RDONLY) = 3</a>\n\
                1 read(3</a>, \"\"..., 5) = 5\n";
    assert_eq!(
        requests(text),
        [
            "read 1 /a 0 5",
            "read 1 /a 5 5",
            "read 1 /a 10 5",
            "read 1 /a 0 5"
        ]
    );
}

#[test]
fn links_and_renamed_directories_lead_to_the_files_that_were_there() {
    let text = "1 chdir(\"/d\") = 0\n\
                1 openat(AT_FDCWD, \"new/a\", O_RDWR) = 3\n\
                1 write(3, \"\"..., 5) = 5\n\
                1 rename(\"new\", \"current\") = 0\n\
                1 link(\"current/a\", \"b\") = 0\n\
                1 linkat(AT_FDCWD, \"/proc/self/fd/3\", AT_FDCWD, \"c\", AT_SYMLINK_FOLLOW) = 0\n\
                1 close(3) = 0\n\
                1 open(\"current/a\", O_RDONLY) = 3\n\
                1 read(3, \"\"..., 1) = 1\n\
                1 unlink(\"current/a\") = 0\n\
                1 close(3) = 0\n\
                1 open(\"b\", O_RDONLY) = 3\n\
                1 read(3, \"\"..., 2) = 2\n\
                1 close(3) = 0\n\
                1 unlink(\"b\") = 0\n\
                1 open(\"new/a\", O_RDWR|O_CREAT) = 3\n\
                1 write(3, \"\"..., 3) = 3\n\
                1 unlink(\"c\") = 0\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests,
        [
            "write 1 /d/new/a 0 5",
            "read 1 /d/new/a 0 1",
            "read 1 /d/new/a 0 2",
            "write 1 /d/new/a 0 3",
            "delete 1 /d/new/a 0",
        ]
    );
    // The last write went to a new file, and the first one is gone with its last name.
    assert_eq!(trace.files().len(), 2);
}

#[test]
fn forks_inherit_the_open_file_and_threads_the_table() {
    let text = "1 open(\"/a\", O_RDONLY) = 3</a>\n\
                1 read(3</a>, \"\"..., 10) = 10\n\
                1 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 2\n\
                2 read(3</a>, \"\"..., 10) = 10\n\
                2 close(3</a>) = 0\n\
                1 read(3</a>, \"\"..., 10) = 10\n\
                1 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 4\n\
                4 open(\"/b\", O_RDONLY) = 5</b>\n\
                1 read(5</b>, \"\"..., 10) = 10\n\
                4 read(5</b>, \"\"..., 10) = 10\n";
    assert_eq!(
        requests(text),
        [
            "read 1 /a 0 10",
            "read 2 /a 10 10",
            "read 1 /a 20 10",
            "read 1 /b 0 10",
            "read 4 /b 10 10"
        ]
    );
}

#[test]
fn a_child_that_is_seen_before_its_parent_returns_inherits() {
    let text = "1 open(\"/a\", O_RDONLY|O_CLOEXEC) = 3</a>\n\
                1 open(\"/b\", O_RDONLY) = 4</b>\n\
                1 read(4</b>, \"\"..., 9) = 9\n\
                1 vfork( <unfinished ...>\n\
                2 read(4</b>, \"\"..., 1) = 1\n\
                2 execve(\"/bin/x\", [\"x\"], 0x7ffe /* 20 vars */ <unfinished ...>\n\
                1 <... vfork resumed>) = 2\n\
                2 <... execve resumed>) = 0\n\
                2 read(3, \"\"..., 1) = 1\n\
                2 read(4</b>, \"\"..., 1) = 1\n\
                1 read(4</b>, \"\"..., 1) = 1\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests,
        [
            "read 1 /b 0 9",
            "read 2 /b 9 1",
            "read 2 /b 10 1",
            "read 1 /b 11 1"
        ]
    );
    assert_eq!(trace.passed().unresolved, 1);
}

#[test]
fn calls_that_others_interrupt_are_joined() {
    let text = "1 open(\"/a\", O_RDONLY) = 3</a>\n\
                1 read(3</a>,  <unfinished ...>\n\
                2 getpid() = 2\n\
                1 <... read resumed>\"x\"..., 100) = 100\n\
                1 <... write resumed>) = 5\n";
    assert_eq!(requests(text), ["read 1 /a 0 100"]);
}

#[test]
fn appending_goes_to_the_end() {
    let text = "1 open(\"/log\", O_WRONLY|O_CREAT|O_TRUNC|O_APPEND, 0644) = 3</log>\n\
                1 write(3</log>, \"\"..., 10) = 10\n\
                1 open(\"/log\", O_RDWR|O_APPEND) = 4</log>\n\
                1 write(4</log>, \"\"..., 10) = 10\n\
                1 lseek(3</log>, 0, SEEK_SET) = 0\n\
                1 write(3</log>, \"\"..., 10) = 10\n\
                1 open(\"/old\", O_WRONLY|O_APPEND) = 5</old>\n\
                1 fstat(5</old>, {st_mode=S_IFREG|0644, st_size=500, ...}) = 0\n\
                1 write(5</old>, \"\"..., 10) = 10\n\
                1 open(\"/dark\", O_WRONLY|O_APPEND) = 6</dark>\n\
                1 write(6</dark>, \"\"..., 10) = 10\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests,
        [
            "delete 1 /log 0",
            "write 1 /log 0 10",
            "write 1 /log 10 10",
            "write 1 /log 20 10",
            "write 1 /old 500 10",
            "write 1 /dark 0 10"
        ]
    );
    assert_eq!(trace.notes().assumed_ends, 1);
}

#[test]
fn cutting_and_removing_delete_pages() {
    let text = "1 open(\"/a\", O_RDWR|O_CREAT, 0600) = 3</a>\n\
                1 write(3</a>, \"\"..., 9000) = 9000\n\
                1 ftruncate(3</a>, 5000) = 0\n\
                1 ftruncate(3</a>, 6000) = 0\n\
                1 truncate(\"/a\", 10) = 0\n\
                1 unlink(\"/a\") = 0\n\
                1 write(3</a (deleted)>, \"\"..., 1) = 1\n\
                1 unlink(\"/never-seen\") = 0\n\
                1 open(\"/a\", O_RDWR|O_CREAT, 0600) = 4</a>\n\
                1 write(4</a>, \"\"..., 1) = 1\n\
                1 unlinkat(AT_FDCWD</>, \"a\", 0) = 0\n\
                1 dup(3</a (deleted)>) = 5</a (deleted)>\n\
                1 close(3</a (deleted)>) = 0\n\
                1 exit_group(0) = ?\n\
                1 +++ exited with 0 +++\n\
                2 getpid() = 2\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests,
        [
            "write 1 /a 0 9000",
            "delete 1 /a 5000",
            "delete 1 /a 10",
            "write 1 /a 9000 1",
            "write 1 /a 0 1",
            // The first file lost its name before, and goes when its last descriptor does.
            "delete 1 /a 0",
            "delete 1 /a 0"
        ]
    );
    assert_eq!(trace.files().len(), 2, "the same path twice, two files");
}

#[test]
fn a_rename_keeps_the_file_and_deletes_what_was_there() {
    let text = "1 open(\"/t\", O_WRONLY|O_CREAT, 0600) = 3</t>\n\
                1 write(3</t>, \"\"..., 4) = 4\n\
                1 open(\"/a\", O_RDONLY) = 4</a>\n\
                1 rename(\"/t\", \"/a\") = 0\n\
                1 write(3</a>, \"\"..., 4) = 4\n\
                1 open(\"/a\", O_RDONLY) = 5</a>\n\
                1 read(5</a>, \"\"..., 8) = 8\n\
                1 close(4) = 0\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests,
        [
            "write 1 /t 0 4",
            "write 1 /t 4 4",
            "read 1 /t 0 8",
            // What was there is open until then.
            "delete 1 /a 0"
        ]
    );
    assert_eq!(trace.files().find(b"/a"), Some(FileKey(0)));
}

/// They go through the cache here, which is told.
#[test]
fn direct_requests_are_counted() {
    let text = "1 openat(AT_FDCWD, \"/t/a\", O_RDONLY|O_DIRECT) = 3</t/a>\n\
                1 pread64(3</t/a>, \"x\"..., 4096, 0) = 4096\n\
                1 pread64(3</t/a>, \"x\"..., 4096, 0) = 4096\n\
                1 openat(AT_FDCWD, \"/t/a\", O_RDONLY) = 4</t/a>\n\
                1 pread64(4</t/a>, \"x\"..., 4096, 0) = 4096\n";
    let (_, trace) = run(text);
    assert_eq!(trace.notes().direct, 2);
    assert!(trace.doubts()[0].contains("2 requests are to files opened with O_DIRECT"));
}

#[test]
fn mappings_end_with_the_file() {
    let text = "1 open(\"/lib\", O_RDONLY) = 3</lib>\n\
                1 mmap(NULL, 40960, PROT_READ, MAP_PRIVATE, 3</lib>, 0) = 0x7f0000\n\
                1 fstat(3</lib>, {st_mode=S_IFREG|0755, st_size=10000, ...}) = 0\n\
                1 mmap(NULL, 40960, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3</lib>, 0x1000) = 0x7f0000\n\
                1 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000\n\
                1 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</lib>, 0x10000) = 0x7f0000\n";
    let (requests, trace) = run(text);
    assert_eq!(requests, ["map 1 /lib 0 40960", "map 1 /lib 4096 5904"]);
    assert_eq!(trace.notes().unclipped_maps, 1);
}

#[test]
fn data_moved_in_the_kernel_is_read_and_written() {
    let text = "1 open(\"/a\", O_RDONLY) = 3</a>\n\
                1 open(\"/b\", O_WRONLY) = 4</b>\n\
                1 sendfile(4</b>, 3</a>, NULL, 100) = 100\n\
                1 sendfile(1<pipe:[5]>, 3</a>, [4096] => [4196], 100) = 100\n\
                1 copy_file_range(3</a>, NULL, 4</b>, [8192], 50, 0) = 50\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests,
        [
            "read 1 /a 0 100",
            "write 1 /b 0 100",
            "read 1 /a 4096 100",
            "read 1 /a 100 50",
            "write 1 /b 8192 50"
        ]
    );
    assert_eq!(trace.passed().elsewhere, 1);
}

#[test]
fn what_is_no_file_on_a_disk_is_counted() {
    let text = "1 read(0</dev/null<char 1:3>>, \"\", 1) = 1\n\
                1 write(1<pipe:[5]>, \"x\", 1) = 1\n\
                1 read(4<socket:[77]>, \"x\", 1) = 1\n\
                1 read(5</proc/1/maps>, \"x\", 1) = 1\n\
                1 read(6</process/x>, \"x\", 1) = 1\n\
                1 read(7, \"x\", 1) = 1\n\
                1 read(8</memfd:a (deleted)>, \"x\", 1) = 1\n";
    let (requests, trace) = run(text);
    assert_eq!(requests, ["read 1 /process/x 0 1"]);
    assert_eq!(trace.passed().elsewhere, 5);
    assert_eq!(trace.passed().unresolved, 1);
    assert_eq!(trace.notes().assumed_offsets, 1);
}

#[test]
fn without_paths_of_descriptors_the_calls_tell_them() {
    let text = "chdir(\"/w\") = 0\n\
                open(\"d/../a\", O_RDONLY) = 3\n\
                read(3, \"\"..., 10) = 10\n\
                creat(\"b\", 0600) = 4\n\
                write(4, \"\"..., 10) = 10\n";
    assert_eq!(
        requests(text),
        ["read 0 /w/a 0 10", "delete 0 /w/b 0", "write 0 /w/b 0 10"]
    );
}

#[test]
fn only_the_wanted_paths_are_kept() {
    let text = "1 open(\"/w/a\", O_RDONLY) = 3</w/a>\n\
                1 open(\"/x/a\", O_RDONLY) = 4</x/a>\n\
                1 read(3</w/a>, \"\"..., 1) = 1\n\
                1 read(4</x/a>, \"\"..., 1) = 1\n";
    let (requests, trace) = under(text, &["/w/"]);
    assert_eq!(requests, ["read 1 /w/a 0 1"]);
    assert_eq!(trace.passed().elsewhere, 1);
}

#[test]
fn wrong_calls_say_where() {
    for (text, message) in [
        (
            "1 read(3</a, \"x = 1\n",
            "byte 0, line 1: the call is \"3</a, \\\"x = 1\"",
        ),
        (
            "1 getpid() = 1\n1 read(3</a>,\n1 getpid() = 1\n",
            "byte 15, line 2: the call is \"3</a>,\"",
        ),
        ("five\nsix\n", "byte 0, line 1: the line is \"five\""),
        (
            "100.00    0.000000           0        45           total\n",
            "line 1: the line is \"100.00  ",
        ),
        (
            "1 12:99:00 getpid() = 1\n",
            "line 1: the time is \"12:99:00\"",
        ),
        (
            "1 lseek(3</a>, 0, SEEK_SET) = 9223372036854775807\n1 write(3</a>, \"\"..., 2) = 2\n",
            "line 2: the last byte is 9223372036854775807 + 2",
        ),
    ] {
        let options = Options {
            format: Some(Format::Strace),
            ..Options::default()
        };
        let mut trace = BlockTrace::from_bytes("run", text.as_bytes(), options).expect("opens");
        let mut batch = Vec::new();
        let error = loop {
            match trace.next_batch(&mut batch) {
                Ok(true) => {}
                Ok(false) => panic!("{text} is taken"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(message), "{error}");
    }
}

/// Without `-y` a directory is known by the call that opened it.
#[test]
fn paths_are_relative_to_the_directory_that_was_opened() {
    let text = r#"
7 chdir("/w") = 0
7 openat(AT_FDCWD, "src", O_RDONLY|O_DIRECTORY) = 3
7 openat(3, "f", O_RDONLY) = 4
7 read(4, "x"..., 4096) = 4096
7 close(3) = 0
7 openat(AT_FDCWD, "dst", O_RDONLY) = 3
7 openat(3, "f", O_RDONLY) = 5
7 read(5, "x"..., 4096) = 4096
7 close(5) = 0
7 dup(3) = 6
7 unlinkat(6, "f", 0) = 0
7 openat(AT_FDCWD, "/y", O_RDONLY|O_PATH) = 7
7 fchdir(7) = 0
7 openat(AT_FDCWD, "f", O_RDONLY) = 8
7 read(8, "x"..., 4096) = 4096
7 openat(77, "f", O_RDONLY) = 9
7 read(9, "x"..., 4096) = 4096
"#;
    let (found, trace) = run(text);
    let wanted = [
        "read 7 /w/src/f 0 4096",
        "read 7 /w/dst/f 0 4096",
        "delete 7 /w/dst/f 0",
        "read 7 /y/f 0 4096",
    ];
    assert_eq!(found, wanted);
    // Of descriptor 77 nothing is known, so it is not said to be in the current directory.
    assert_eq!(trace.passed().unresolved, 1);
}

#[test]
fn requests_of_io_submit_are_read_as_older_versions_print_them() {
    let text = r#"
7 open("/a", O_RDWR|O_DIRECT) = 3
7 io_submit(1, 2, [{data=0, pread, fildes=3, buf=0x7f00, nbytes=4096, offset=8192}, {data=0, pwrite, fildes=3, str="abc"..., nbytes=512, offset=0}]) = 2
7 io_submit(1, 1, [{pread, filedes:3, buf:0x7f00, nbytes:4096, offset:4096}]) = 1
7 io_submit(1, 1, [{data=0, preadv, fildes=3, iovec=[{iov_base=0x1, iov_len=10}, {iov_base=0x2, iov_len=20}], offset=64}]) = 1
7 io_submit(1, 2, [{data=0, fsync, fildes=3}, {data=0, something, fildes=3}]) = 2
"#;
    let (found, trace) = run(text);
    let wanted = [
        "read 7 /a 8192 4096",
        "write 7 /a 0 512",
        "read 7 /a 4096 4096",
    ];
    assert_eq!(found[..3], wanted);
    let told = trace.left_out().told().join(", ");
    assert_eq!(
        (&found[3..], &*told),
        (
            &["read 7 /a 64 30".to_owned()][..],
            "io_submit, requests not printed 1"
        )
    );
}
