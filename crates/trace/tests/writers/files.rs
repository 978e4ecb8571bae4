//! Text formats of files.

use std::collections::HashMap;

use piebald_trace::block::Op;

use super::{Place, Row, Seen, What, Written};

/// Files, one with blanks and quotes in its name.
const PATHS: [&str; 3] = ["/data/a", "/data/b c", "/data/d\"e"];

fn path(row: &Row) -> &'static str {
    PATHS[row.disk as usize % PATHS.len()]
}

/// A path as strace writes it.
fn quoted(path: &str) -> String {
    path.replace('"', "\\\"")
}

/// Calls of two processes. Each opens all files; offsets of reads and writes without one are those of
/// its own descriptors.
pub(super) fn strace(rows: &[Row], out: &mut Written) {
    let stamped = rows.first().is_some_and(|r| r.pick(50, &[true, false]));
    let mut now = 1_600_000_000_000_000;
    for pid in [697, 698] {
        for (n, path) in PATHS.iter().enumerate() {
            let (time, path) = (stamp(stamped, now).0, quoted(path));
            let open = format!("openat(AT_FDCWD</>, \"{path}\", O_RDWR|O_CLOEXEC)");
            out.line(format!("{pid} {time}{open} = {}<{path}>", 3 + n));
        }
    }
    let mut places: HashMap<(u32, u32), u64> = HashMap::new();
    for row in rows {
        // Microseconds, as strace prints them.
        now += row.time % (1 << 30);
        let (time, ns) = stamp(stamped, now);
        let (pid, n) = (697 + row.task % 2, row.disk % 3);
        let at = places.entry((pid, n)).or_default();
        let descriptor = format!("{}<{}>", 3 + n, quoted(path(row)));
        let (offset, length) = (row.place >> 4, row.length % (1 << 31));
        let asked = length + row.pick(8, &[0, 4096]);
        let explicit = row.pick(0, &[true, false]);
        let begin = format!("{pid} {time}");
        let (call, start) = match row.what {
            What::Other if explicit => {
                *at = offset;
                out.line(format!(
                    "{begin}lseek({descriptor}, {offset}, SEEK_SET) = {offset}"
                ));
                continue;
            }
            What::Other => {
                out.line(begin + row.pick(8, &NOTHING));
                continue;
            }
            What::Read if explicit => (
                format!("pread64({descriptor}, \"x\\n\"..., {asked}, {offset})"),
                offset,
            ),
            What::Write if explicit => (
                format!("pwrite64({descriptor}, \"x\\\"\", {asked}, {offset})"),
                offset,
            ),
            What::Read => (format!("read({descriptor}, \"x\"..., {asked})"), *at),
            What::Write => (format!("write({descriptor}, \"x\"..., {asked})"), *at),
        };
        out.line(format!("{begin}{call} = {length}"));
        if !explicit {
            *at += length;
        }
        out.file((ns, pid, row.op()), path(row), start, length);
    }
}

/// Lines that move no data.
const NOTHING: [&str; 5] = [
    "openat(AT_FDCWD, \"/data/z\", O_RDONLY) = -1 ENOENT (No such file or directory)",
    "pread64(3</data/a>, 0x7ffe, 8, 0) = -1 EFAULT (Bad address)",
    "getpid() = 697",
    "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---",
    "read(9<pipe:[12]>, \"x\", 1) = 1",
];

/// Seconds since 1970 with a blank behind them, and what they are in nanoseconds.
fn stamp(stamped: bool, us: u64) -> (String, Option<u64>) {
    match stamped {
        true => (
            format!("{}.{:06} ", us / 1_000_000, us % 1_000_000),
            Some(us * 1000),
        ),
        false => (String::new(), None),
    }
}

pub(super) fn fpt(rows: &[Row], out: &mut Written) {
    out.line("# file-page-trace v1: a comment");
    // Ids need not be dense.
    let ids = rows.first().map_or([0, 1, 2], |r| {
        r.pick(50, &[[0, 1, 2], [7, 0, 4_000_000_000_u32]])
    });
    for (id, path) in ids.iter().zip(PATHS) {
        out.line(format!(
            "F {id} {} {path}",
            if *id == 0 { "-1" } else { "10000" }
        ));
    }
    for row in rows {
        let (pid, id) = (row.task, ids[row.disk as usize % 3]);
        let (first, pages) = (row.place / 4096, row.length / 4096);
        let (letter, op) = match row.what {
            What::Read if row.pick(0, &[false, true]) => ('M', Op::Map),
            What::Read => ('R', Op::Read),
            What::Write => ('W', Op::Write),
            What::Other => {
                delete(row, (id, first), out);
                continue;
            }
        };
        out.line(format!("{letter} {pid} {id} {first} {pages}"));
        let offset = first * 4096;
        out.file((None, pid, op), path(row), offset, pages * 4096);
    }
}

/// A removal or a cut, in one of its three forms.
fn delete(row: &Row, (id, first): (u32, u64), out: &mut Written) {
    let (pid, cut) = (row.task, row.pick(0, &[false, true]));
    let offset = if cut { first * 4096 } else { 0 };
    out.line(match cut {
        true => format!("D {pid} {id} {first} 0"),
        false => format!("D {pid} {id}{}", row.pick(8, &["", " 0 0"])),
    });
    let place = Place::File {
        path: path(row).to_owned(),
        offset,
        length: u64::MAX - offset,
    };
    let (time, op) = (None, Op::Delete);
    out.seen.push(Seen {
        time,
        task: pid,
        op,
        place,
    });
}

pub(super) fn fio(rows: &[Row], out: &mut Written) {
    let version = rows.first().map_or(2, |r| r.pick(50, &[2, 3]));
    out.line(format!("fio version {version} iolog"));
    let time = |us: u64| match version {
        2 => String::new(),
        _ => format!("{us} "),
    };
    for path in PATHS {
        out.line(format!("{}{path} add", time(0)));
        out.line(format!("{}{path} open", time(0)));
    }
    for row in rows {
        let us = row.time / 1000;
        let (begin, path) = (time(us), path(row));
        let (offset, length) = (row.place, row.length);
        let action = match row.what {
            What::Read => "read",
            What::Write => "write",
            What::Other => row.pick(
                0,
                &[
                    "trim",
                    "sync",
                    "datasync",
                    "sync_file_range",
                    "syncfs",
                    "wait",
                ],
            ),
        };
        out.line(format!("{begin}{path} {action} {offset} {length}"));
        if row.what != What::Other {
            let time = (version == 3).then_some(us * 1000);
            out.file((time, 0, row.op()), path, offset, length);
        }
    }
}
