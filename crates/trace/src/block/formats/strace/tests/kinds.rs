//! Calls beyond plain reads and writes, and what is left out by name.

use super::super::super::super::reader::Parse;
use super::super::super::super::sink::{Sink, State};
use super::super::Strace;
use super::*;
use crate::foreign::input::Input;

/// What is left out of a log, by name.
fn left_out(text: &str) -> String {
    let mut strace = Strace::new(&Options::default());
    let mut input = Input::plain("run", text.as_bytes());
    let (mut out, mut state) = (Vec::new(), State::default());
    loop {
        let mut sink = Sink {
            out: &mut out,
            state: &mut state,
        };
        if !strace.step(&mut input, &mut sink).expect("a log") {
            return state.left_out.told().join(", ");
        }
    }
}

const OPEN: &str = "1 open(\"/a\", O_RDWR) = 3</a>\n\
                    1 fstat(3</a>, {st_mode=S_IFREG|0644, st_size=40960, ...}) = 0\n";

/// The requests of calls on a file of 40960 bytes, and what is left out.
fn on_a_file(calls: &str) -> (Vec<String>, String) {
    let text = OPEN.to_owned() + calls;
    (requests(&text), left_out(&text))
}

#[test]
fn writes_may_append_without_the_files_flag() {
    let (requests, _) = on_a_file(
        "1 pwritev2(3</a>, [{iov_base=\"x\"..., iov_len=4096}], 1, 0, RWF_APPEND) = 4096\n\
         1 pwritev2(3</a>, [{iov_base=\"x\", iov_len=1}], 1, -1, RWF_DSYNC|RWF_APPEND) = 1\n\
         1 write(3</a>, \"x\", 1) = 1\n\
         1 pwritev2(3</a>, [{iov_base=\"x\", iov_len=1}], 1, 0, 0x10) = 1\n\
         1 pwritev2(0x3, 0x7f00, 0x1, 0x7, 0, 0x10) = 0x1\n\
         1 fcntl(3</a>, F_SETFL, O_RDWR|O_APPEND) = 0\n\
         1 pwrite64(3</a>, \"x\", 1, 0) = 1\n\
         1 pwritev2(3</a>, [{iov_base=\"x\", iov_len=1}], 1, 5, RWF_NOAPPEND) = 1\n\
         1 pread64(3</a>, \"x\", 1, 9) = 1\n",
    );
    assert_eq!(
        requests,
        [
            "write 1 /a 40960 4096",
            "write 1 /a 45056 1",
            "write 1 /a 45057 1",
            "write 1 /a 45058 1",
            "write 1 /a 45059 1",
            "write 1 /a 45060 1",
            "write 1 /a 5 1",
            "read 1 /a 9 1"
        ]
    );
}

#[test]
fn ranges_leave_the_file_alone_or_with_all_behind_them() {
    let (requests, left) = on_a_file(
        "1 fallocate(3</a>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 8192) = 0\n\
         1 fallocate(3</a>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 36864, 4096) = 0\n\
         1 fallocate(3</a>, 0x3, 32768, 65536) = 0\n\
         1 fallocate(3</a>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 40960, 4096) = 0\n\
         1 fallocate(3</a>, FALLOC_FL_ZERO_RANGE, 4096, 4096) = 0\n\
         1 fallocate(3</a>, FALLOC_FL_COLLAPSE_RANGE, 8192, 4096) = 0\n\
         1 fallocate(3</a>, FALLOC_FL_INSERT_RANGE, 4096, 8192) = 0\n\
         1 fallocate(3</a>, FALLOC_FL_ZERO_RANGE, 12288, 61440) = 0\n\
         1 fallocate(3</a>, 0, 0, 81920) = 0\n\
         1 fallocate(3</a>, FALLOC_FL_UNSHARE_RANGE, 0, 4096) = 0\n\
         1 fcntl(3</a>, F_SETFL, O_RDWR|O_APPEND) = 0\n\
         1 write(3</a>, \"x\", 1) = 1\n\
         1 fallocate(3</a>, FALLOC_FL_PUNCH_HOLE, 0, 8192) = -1 EOPNOTSUPP (x)\n",
    );
    assert_eq!(
        requests,
        [
            "delete 1 /a 0 8192",
            "delete 1 /a 36864",
            "delete 1 /a 32768",
            "delete 1 /a 4096 4096",
            "delete 1 /a 8192",
            "delete 1 /a 4096",
            "delete 1 /a 12288",
            "write 1 /a 81920 1"
        ]
    );
    assert_eq!(left, "fallocate UNSHARE_RANGE 1");
}

#[test]
fn submitted_requests_are_reads_and_writes() {
    let (requests, left) = on_a_file(
        "1 io_submit(0x7f52, 3, [{aio_data=0x1, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3</a>, \
         aio_buf=0x7f00, aio_nbytes=4096, aio_offset=16384}, {aio_data=0, aio_key=5, \
         aio_rw_flags=RWF_APPEND, aio_lio_opcode=IOCB_CMD_PWRITE, aio_reqprio=7, aio_fildes=3</a>, \
         aio_buf=\"x, {]\", aio_nbytes=6, aio_offset=30, aio_flags=IOCB_FLAG_RESFD, aio_resfd=9}, \
         {aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3</a>, aio_buf=0, aio_nbytes=1, \
         aio_offset=1}]) = 2\n\
         1 io_submit(0x7f52, 3, [{aio_data=0, aio_lio_opcode=7, aio_fildes=3</a>, \
         aio_buf=[{iov_base=0x4b, iov_len=600}, {iov_base=0x4b, iov_len=24}], aio_offset=8192}, \
         {aio_data=0, aio_lio_opcode=8 /* IOCB_CMD_PWRITEV */, aio_fildes=3</a>, \
         aio_buf=[{iov_base=\"x\"..., iov_len=60}, ...], aio_offset=8192}, \
         {aio_data=0, aio_lio_opcode=IOCB_CMD_FDSYNC, aio_fildes=3</a>}]) = 3\n\
         1 io_submit(0x7f52, 64, [...]) = 64\n\
         1 io_submit(0x7f52, 1, 0x7ffc) = 1\n\
         1 io_submit(0x7f52, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, \
         aio_fildes=4<socket:[7]>, aio_buf=0x7f00, aio_nbytes=4096, aio_offset=0}]) = 1\n",
    );
    assert_eq!(
        requests,
        [
            "read 1 /a 16384 4096",
            "write 1 /a 40960 6",
            "read 1 /a 8192 624"
        ]
    );
    assert_eq!(left, "io_submit, requests not printed 66");
}

#[test]
fn splices_read_and_write_files() {
    let (requests, left) = on_a_file(
        "1 splice(3</a>, [8192], 5<pipe:[77]>, NULL, 4096, 0) = 4096\n\
         1 splice(3</a>, NULL, 5<pipe:[77]>, NULL, 4096, SPLICE_F_MOVE) = 10\n\
         1 splice(5<pipe:[77]>, NULL, 3</a>, [100] => [150], 50, 0) = 50\n\
         1 splice(3</a>, 0x7ffc, 5<pipe:[77]>, NULL, 4096, 0) = 4096\n\
         1 copy_file_range(3</a>, 0x7ffc, 3</a>, NULL, 4096, 0) = 4096\n\
         1 sendfile(5<socket:[7]>, 3</a>, 0x7ffc, 4096) = 4096\n\
         1 read(3</a>, \"x\"..., 1) = 1\n",
    );
    assert_eq!(
        requests,
        [
            "read 1 /a 8192 4096",
            "read 1 /a 0 10",
            "write 1 /a 100 50",
            "read 1 /a 10 1"
        ]
    );
    assert_eq!(
        left,
        "copy_file_range 1, sendfile, the offset not printed 1, splice 1"
    );
}

#[test]
fn what_moves_data_unseen_is_counted_by_name() {
    let (requests, left) = on_a_file(
        "1 io_uring_enter(7<anon_inode:[io_uring]>, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1\n\
         1 io_uring_enter(7<anon_inode:[io_uring]>, 1, 1, 0, NULL, 8) = 1\n\
         1 io_uring_enter(7<anon_inode:[io_uring]>, 1, 1, 0, NULL, 8) = -1 EAGAIN (x)\n\
         1 vmsplice(5<pipe:[77]>, [{iov_base=\"x\", iov_len=1}], 1, 0) = 1\n\
         1 tee(4<pipe:[76]>, 5<pipe:[77]>, 10, 0) = 10\n\
         1 readahead(3</a>, 0, 131072) = 0\n\
         1 fadvise64(3</a>, 0, 0, POSIX_FADV_SEQUENTIAL) = 0\n\
         1 fadvise64(3</a>, 0, 0, POSIX_FADV_WILLNEED) = 0\n\
         1 fadvise64(3</a>, 0, 0, 4) = 0\n\
         1 ioctl(3</a>, BTRFS_IOC_CLONE or FICLONE, 4</b>) = 0\n\
         1 ioctl(3</a>, FICLONERANGE, {src_fd=4</b>, src_offset=0, src_length=0, dest_offset=0}) = 0\n\
         1 ioctl(3</a>, TCGETS, 0x7ffc) = 0\n\
         1 truncate(0x7ffc, 0x10) = 0\n\
         1 getpid() = 1\n",
    );
    assert!(requests.is_empty(), "{requests:?}");
    assert_eq!(
        left,
        "fadvise64 DONTNEED 1, fadvise64 WILLNEED 1, io_uring_enter 2, ioctl FICLONE 1, \
         ioctl FICLONERANGE 1, readahead 1, tee 1, truncate, the path not printed 1, vmsplice 1"
    );
}

#[test]
fn flags_are_understood_as_numbers() {
    let text = "1 openat(-100</w>, \"a\", 0x442, 0600) = 3</w/a>\n\
                1 write(3</w/a>, \"x\", 1) = 1\n\
                1 lseek(3</w/a>, -1, 0x2) = 99\n\
                1 write(3</w/a>, \"x\", 1) = 1\n\
                1 fcntl(3</w/a>, 0x4, 0x2) = 0\n\
                1 write(3</w/a>, \"x\", 1) = 1\n\
                1 fcntl(3</w/a>, 0, 10) = 10</w/a>\n\
                1 fcntl(10</w/a>, 0x2, 0x1) = 0\n\
                1 openat(-100 /* AT_FDCWD */</w>, \"b\", 0x80201 /* O_WRONLY|O_TRUNC|O_CLOEXEC */) = 4</w/b>\n\
                1 openat2(-100, \"b\", {flags=0x201, resolve=0}, 24) = 5</w/b>\n\
                1 mmap(NULL, 4096, 0x3, 0x22, -1, 0) = 0x7f00\n\
                1 mmap(0, 0x1000, 0x1, 0x2, 0x3, 0) = 0x7f00\n\
                1 clone(child_stack=0x7f1234560400, flags=0x3d0b00, parent_tid=[2]) = 2\n\
                1 clone(0x3d0f00, 0x7f1234560000, 0x7f00) = 6\n\
                6 close(5</w/b>) = 0\n\
                1 write(5, \"x\", 1) = 1\n\
                2 execve(\"/bin/x\", 0x7ffc, 0x7ffc) = 0\n\
                2 write(10, \"x\", 1) = 1\n\
                2 write(5, \"x\", 1) = 1\n\
                1 write(10, \"x\", 1) = 1\n";
    assert_eq!(
        requests(text),
        [
            "write 1 /w/a 0 1",
            "write 1 /w/a 100 1",
            "write 1 /w/a 101 1",
            "delete 1 /w/b 0",
            "map 1 /w/a 0 102",
            "write 2 /w/b 0 1",
            "write 1 /w/a 102 1"
        ]
    );
}

#[test]
fn new_files_are_empty_and_nameless_ones_are_apart() {
    let text = "1 open(\"/a\", O_WRONLY|O_CREAT|O_EXCL|O_APPEND, 0600) = 3</a>\n\
                1 write(3</a>, \"x\", 5) = 5\n\
                1 open(\"/tmp\", O_RDWR|O_DIRECTORY|O_TMPFILE, 0600) = 4\n\
                1 open(\"/tmp\", O_RDWR|O_TMPFILE, 0600) = 5\n\
                1 open(\"/tmp\", O_RDONLY|O_DIRECTORY) = 6\n\
                1 write(4, \"x\", 1) = 1\n\
                1 write(5, \"x\", 2) = 2\n\
                1 read(6, \"x\", 2) = 2\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests,
        ["write 1 /a 0 5", "write 1 /tmp 0 1", "write 1 /tmp 0 2"]
    );
    assert_eq!(trace.files().len(), 3);
    assert_eq!(
        (trace.notes().assumed_offsets, trace.passed().elsewhere),
        (0, 1)
    );
}

#[test]
fn descriptors_of_what_is_no_file_take_the_place_of_files() {
    let text = "1 open(\"/a\", O_RDONLY) = 3\n\
                1 open(\"/a\", O_RDONLY) = 4\n\
                1 pipe2([3, 5], O_CLOEXEC) = 0\n\
                1 socket(AF_UNIX, SOCK_STREAM, 0) = 4\n\
                1 read(3, \"x\", 1) = 1\n\
                1 read(4, \"x\", 1) = 1\n\
                1 open(\"/a\", O_RDONLY) = 6</a>\n\
                1 read(6<pipe:[9]>, \"x\", 1) = 1\n\
                1 open(0x7ffc, 0) = 7\n\
                1 read(7, \"x\", 1) = 1\n\
                1 execve(\"/x\", [\"x\"], []) = 0\n\
                1 read(4, \"x\", 1) = 1\n\
                1 read(5, \"x\", 1) = 1\n";
    let (requests, trace) = run(text);
    assert!(requests.is_empty(), "{requests:?}");
    let passed = trace.passed();
    assert_eq!((passed.elsewhere, passed.unresolved), (4, 2));
}

#[test]
fn tables_are_unshared_and_closed_in_part() {
    let text = "1 open(\"/a\", O_RDONLY) = 3</a>\n\
                1 open(\"/a\", O_RDONLY) = 4</a>\n\
                1 clone(child_stack=0x7f00, flags=CLONE_VM|CLONE_FILES) = 2\n\
                1 clone(child_stack=0x7f00, flags=CLONE_VM|CLONE_FILES) = 5\n\
                2 unshare(CLONE_FILES) = 0\n\
                2 close(3</a>) = 0\n\
                5 close_range(3, 4294967295, CLOSE_RANGE_UNSHARE|CLOSE_RANGE_CLOEXEC) = 0\n\
                5 read(3, \"x\", 4) = 4\n\
                5 execve(\"/x\", [\"x\"], []) = 0\n\
                5 read(3, \"x\", 1) = 1\n\
                1 ioctl(4</a>, FIOCLEX) = 0\n\
                1 execve(\"/x\", [\"x\"], []) = 0\n\
                1 read(3, \"x\", 2) = 2\n\
                1 read(4, \"x\", 1) = 1\n\
                2 read(4, \"x\", 3) = 3\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests,
        ["read 5 /a 0 4", "read 1 /a 4 2", "read 2 /a 0 3"]
    );
    assert_eq!(trace.passed().unresolved, 2);
}

#[test]
fn two_files_may_change_their_names() {
    let text = "1 open(\"/a\", O_RDWR) = 3</a>\n\
                1 open(\"/b\", O_RDWR) = 4</b>\n\
                1 renameat2(AT_FDCWD</>, \"a\", AT_FDCWD</>, \"b\", RENAME_EXCHANGE) = 0\n\
                1 unlink(\"/b\") = 0\n\
                1 close(3</b (deleted)>) = 0\n\
                1 write(4</a>, \"x\", 1) = 1\n";
    assert_eq!(requests(text), ["delete 1 /a 0", "write 1 /b 0 1"]);
}

#[test]
fn the_directory_is_known_from_calls_that_print_it() {
    let text = "1 openat(AT_FDCWD</w>, \"a\", O_RDWR) = 3</w/a>\n\
                1 write(3</w/a>, \"x\", 1) = 1\n\
                1 truncate(\"a\", 0) = 0\n\
                1 unlink(\"a\") = 0\n\
                1 close(3</w/a (deleted)>) = 0\n";
    assert_eq!(
        requests(text),
        ["write 1 /w/a 0 1", "delete 1 /w/a 0", "delete 1 /w/a 0"]
    );
}

#[test]
fn a_child_of_two_forks_belongs_to_the_one_that_returns_it() {
    let text = "1 open(\"/a\", O_RDONLY) = 3</a>\n\
                2 open(\"/b\", O_RDONLY) = 3</b>\n\
                1 vfork( <unfinished ...>\n\
                2 vfork( <unfinished ...>\n\
                11 execve(\"/x\", [\"x\"], []) = 0\n\
                12 execve(\"/x\", [\"x\"], []) = 0\n\
                1 <... vfork resumed>) = 11\n\
                2 <... vfork resumed>) = 12\n\
                11 read(3, \"x\", 1) = 1\n\
                12 read(3, \"x\", 2) = 2\n\
                1 read(3, \"x\", 3) = 3\n";
    assert_eq!(
        requests(text),
        ["read 11 /a 0 1", "read 12 /b 0 2", "read 1 /a 1 3"]
    );
}

#[test]
fn calls_that_strace_made_up_did_not_happen() {
    let (requests, _) = on_a_file(
        "1 read(3</a>, \"\", 4096) = 100 (INJECTED)\n\
         1 read(3</a>, \"x\"..., 4096) = 7 (DELAYED)\n\
         1 read(3</a>, 0x7ffc, 4096) = -1 EIO (Input/output error) (INJECTED)\n\
         1 read(3</a>, \"x\"..., 4096) = 8\n",
    );
    assert_eq!(requests, ["read 1 /a 0 7", "read 1 /a 7 8"]);
}

#[test]
fn an_answer_to_where_a_shared_file_is_may_be_old() {
    let text = "1 open(\"/a\", O_RDONLY) = 3</a>\n\
                1 fork() = 2\n\
                2 lseek(3</a>, 0, SEEK_CUR <unfinished ...>\n\
                1 read(3</a>, \"x\"..., 10) = 10\n\
                2 <... lseek resumed>) = 0\n\
                1 read(3</a>, \"x\"..., 10) = 10\n\
                2 close(3</a>) = 0\n\
                1 lseek(3</a>, 0, SEEK_CUR) = 40\n\
                1 read(3</a>, \"x\"..., 10) = 10\n";
    assert_eq!(
        requests(text),
        ["read 1 /a 0 10", "read 1 /a 10 10", "read 1 /a 40 10"]
    );
}

#[test]
fn offsets_of_mmap2_are_bytes_unless_the_log_counts_pages() {
    // As strace shows them today, and as its early versions did. No offset in bytes is 0x140.
    let text = |offset: &str| {
        format!(
            "7 open(\"/lib\", O_RDONLY) = 3\n\
             7 old_mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3, 0x1000) = 0xb7e00000\n\
             7 mmap2(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0x7) = 0xb7f00000\n\
             7 mmap2(NULL, 12288, PROT_READ, MAP_PRIVATE, 3, {offset}) = 0xb7fc8000\n\
             7 mmap2(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0x2000) = 0xb7fd8000\n"
        )
    };
    let early = [
        "map 7 /lib 4096 8192",
        "map 7 /lib 1310720 12288",
        "map 7 /lib 33554432 4096",
    ];
    assert_eq!(requests(&text("0x140")), early);
    let today = [
        "map 7 /lib 4096 8192",
        "map 7 /lib 1310720 12288",
        "map 7 /lib 8192 4096",
    ];
    assert_eq!(requests(&text("0x140000")), today);
}

#[test]
fn what_a_mapping_grows_by_is_mapped() {
    let text = r#"
7 openat(AT_FDCWD, "/a", O_RDWR) = 3
7 fstat(3, {st_mode=S_IFREG|0644, st_size=1000000, ...}) = 0
7 mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3, 4096) = 0x7f0000000000
7 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000100000
7 close(3) = 0
7 mremap(0x7f0000000000, 8192, 16384, MREMAP_MAYMOVE) = 0x7f0000200000
7 mremap(0x7f0000000000, 8192, 16384, MREMAP_MAYMOVE) = 0x7f0000300000
7 mremap(0x7f0000100000, 8192, 16384, MREMAP_MAYMOVE) = 0x7f0000400000
7 mremap(0x7f0000200000, 16384, 4096, 0) = 0x7f0000200000
7 mremap(0x7f0000200000, 4096, 12288, 0) = 0x7f0000200000
7 munmap(0x7f0000200000, 8192) = 0
7 fork() = 8
8 mremap(0x7f0000202000, 4096, 8192, MREMAP_MAYMOVE) = 0x7f0000500000
8 execve("/bin/x", ["x"], 0x7ffc /* 9 vars */) = 0
8 mremap(0x7f0000500000, 8192, 16384, MREMAP_MAYMOVE) = 0x7f0000600000
"#;
    assert_eq!(
        requests(text),
        [
            "map 7 /a 4096 8192",
            "map 7 /a 12288 8192",
            "map 7 /a 8192 8192",
            "map 8 /a 16384 4096",
        ]
    );
}

#[test]
fn a_path_through_a_symbolic_link_leads_to_the_file() {
    let text = r#"
7 openat(AT_FDCWD, "/data/v1/f", O_RDWR) = 3
7 write(3, "x", 9) = 9
7 symlink("v1", "/data/now") = 0
7 symlinkat("../data/now/f", AT_FDCWD, "/w/f") = 0
7 openat(AT_FDCWD, "/data/now/f", O_RDONLY) = 4
7 read(4, "x", 9) = 9
7 openat(AT_FDCWD, "/w/f", O_RDONLY) = 5
7 read(5, "x", 9) = 9
7 symlink("v2", "/data/next") = 0
7 rename("/data/next", "/data/now") = 0
7 openat(AT_FDCWD, "/w/f", O_RDONLY) = 6
7 read(6, "x", 9) = 9
7 unlink("/w/f") = 0
7 openat(AT_FDCWD, "/w/f", O_RDWR|O_CREAT, 0600) = 7
7 write(7, "x", 9) = 9
"#;
    assert_eq!(
        requests(text),
        [
            "write 7 /data/v1/f 0 9",
            "read 7 /data/v1/f 0 9",
            "read 7 /data/v1/f 0 9",
            "read 7 /data/v2/f 0 9",
            "write 7 /w/f 0 9",
        ]
    );
}

/// A log may hold any numbers: growing a mapping again and again goes nowhere.
#[test]
fn mappings_beyond_all_addresses_are_no_harm() {
    let most = i64::MAX;
    let text = format!(
        "7 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n\
         7 fstat(3, {{st_mode=S_IFREG|0644, st_size=10, ...}}) = 0\n\
         7 mmap(NULL, {most}, PROT_READ, MAP_SHARED, 3, {most}) = 0x1000\n\
         7 mremap({most}, 4096, {most}, MREMAP_MAYMOVE) = 0x1000\n\
         7 mremap({most}, 4096, {most}, MREMAP_MAYMOVE) = 0x1000\n\
         7 mremap({most}, 4096, {most}, MREMAP_MAYMOVE) = 0x1000\n\
         7 munmap(0x2000, 4096) = 0\n"
    );
    let options = Options {
        format: Some(Format::Strace),
        lenient: true,
        ..Options::default()
    };
    let mut trace = BlockTrace::from_bytes("run", text.as_bytes(), options).expect("opens");
    while trace.next_batch(&mut Vec::new()).expect("reads") {}
    let skipped = trace.skipped();
    assert_eq!(
        skipped.by_field.get("the last byte"),
        Some(&3),
        "{skipped:?}"
    );
}

/// Absolute paths begin at the root that a process has; its children have the same.
#[test]
fn another_root_has_other_files() {
    let text = "1 open(\"/etc/passwd\", O_RDONLY) = 3\n\
                1 read(3, \"\"..., 100) = 100\n\
                1 close(3) = 0\n\
                1 chroot(\"/jail\") = 0\n\
                1 chdir(\"/\") = 0\n\
                1 open(\"/etc/passwd\", O_RDONLY) = 3\n\
                1 read(3, \"\"..., 100) = 100\n\
                1 fork() = 2\n\
                2 open(\"../../etc/group\", O_RDONLY) = 4\n\
                2 read(4, \"\"..., 100) = 100\n\
                2 chroot(\"inner\") = 0\n\
                2 open(\"/../a\", O_RDONLY) = 5\n\
                2 read(5, \"\"..., 100) = 100\n";
    let (requests, _) = run(text);
    assert_eq!(
        requests,
        [
            "read 1 /etc/passwd 0 100",
            "read 1 /jail/etc/passwd 0 100",
            "read 2 /etc/group 0 100",
            "read 2 /jail/inner/a 0 100",
        ]
    );
}

/// A file without a name is not the one that has its name now, unless it had it when it was seen first.
#[test]
fn a_file_that_lost_its_name_is_another() {
    for gone in ["3</w/a (deleted)>", "3</w/a>(deleted)"] {
        let text = format!(
            "1 pread64({gone}, \"\"..., 4096, 0) = 4096\n1 pread64(4</w/a>, \"\"..., 4096, 0) = 4096\n"
        );
        let (requests, trace) = run(&text);
        assert_eq!(trace.files().len(), 2, "{requests:?}");
        let text = format!(
            "1 pread64(3</w/a>, \"\"..., 4096, 0) = 4096\n1 pread64({gone}, \"\"..., 4096, 0) = 4096\n"
        );
        let (requests, trace) = run(&text);
        assert_eq!(trace.files().len(), 1, "{requests:?}");
    }
}

/// A descriptor of a file without a name leads to it once more; the name behind the result says no more than
/// that it is lost.
#[test]
fn a_file_without_a_name_is_the_same_when_it_is_opened_by_its_descriptor() {
    let logs = [
        (
            "/w/x",
            "O_RDWR|O_CREAT|O_TRUNC",
            "/w/x",
            "unlink(\"/w/x\") = 0",
        ),
        ("/w", "O_RDWR|O_TMPFILE", "/w/#1", "getpid() = 1"),
    ];
    for (path, flags, name, then) in logs {
        for place in ["/proc/self/fd/4", "/dev/fd/4"] {
            for form in 0..3 {
                let gone = match form {
                    0 => format!("<{name} (deleted)>"),
                    1 => format!("<{name}>(deleted)"),
                    // As -xx writes it.
                    _ => {
                        let gone = format!("{name} (deleted)");
                        let bytes: String = gone.bytes().map(|b| format!("\\x{b:02x}")).collect();
                        format!("<{bytes}>")
                    }
                };
                let text = format!(
                    "1 openat(AT_FDCWD</w>, \"{path}\", {flags}, 0600) = 4<{name}>\n\
                     1 write(4<{name}>, \"x\"..., 4096) = 4096\n\
                     1 {then}\n\
                     1 openat(AT_FDCWD</w>, \"{place}\", O_RDONLY) = 6{gone}\n\
                     1 read(6{gone}, \"x\"..., 4096) = 4096\n\
                     1 pread64(4{gone}, \"x\"..., 4096, 0) = 4096\n"
                );
                let (requests, trace) = run(&text);
                let reads = requests.iter().filter(|r| r.starts_with("read "));
                assert_eq!(reads.count(), 2, "{text}");
                assert_eq!(trace.files().len(), 1, "{text}{requests:?}");
                assert_eq!(trace.notes().assumed_offsets, 0, "{text}");
            }
        }
    }
}

/// Only where a request begins at an offset that the log does not show something is said of it, once for each
/// open file.
#[test]
fn offsets_are_said_to_be_assumed_where_they_are_used() {
    for (text, assumed) in [
        ("1 pread64(3</a>, \"\", 4096, 8192) = 4096\n", 0),
        (
            "1 fcntl(2</err>, F_DUPFD, 10) = 14</err>\n1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3</a>\n\
          1 read(3</a>, \"\", 4096) = 4096\n",
            0,
        ),
        (
            "1 lseek(3</a>, 0, SEEK_SET) = 0\n1 read(3</a>, \"\", 4096) = 4096\n",
            0,
        ),
        (
            "1 read(3</a>, \"\", 4096) = 4096\n1 read(3</a>, \"\", 4096) = 4096\n",
            1,
        ),
        (
            "1 pread64(3</a>, \"\", 1, 0) = 1\n1 read(3</a>, \"\", 4096) = 4096\n\
          1 read(4</b>, \"\", 1) = 1\n",
            2,
        ),
        (
            "1 read(3</a>, \"\", 4096) = 0\n1 pread64(3</a>, \"\", 4096, 0) = 4096\n",
            0,
        ),
        (
            "1 pidfd_getfd(7, 3, 0) = 8</a>\n1 read(8</a>, \"\", 4096) = 4096\n",
            1,
        ),
    ] {
        assert_eq!(run(text).1.notes().assumed_offsets, assumed, "{text}");
    }
}

/// A read says how long a file is at least, not where it ends.
#[test]
fn appending_behind_what_was_read_is_told() {
    let text = "1 open(\"/log\", O_RDWR|O_APPEND) = 3\n\
                1 pread64(3, \"\"..., 4096, 0) = 4096\n\
                1 write(3, \"\"..., 100) = 100\n\
                1 write(3, \"\"..., 100) = 100\n";
    let (requests, trace) = run(text);
    assert_eq!(
        requests[1..],
        ["write 1 /log 4096 100", "write 1 /log 4196 100"]
    );
    assert_eq!(trace.notes().assumed_ends, 1);
    assert!(trace.doubts()[0].contains("append to files whose end is not known"));
}
