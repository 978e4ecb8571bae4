//! Binary formats of disks and of system calls.

use std::collections::HashMap;

use super::{Row, What, Written};

/// Appends numbers in either order of bytes.
struct Bytes<'a> {
    out: &'a mut Vec<u8>,
    big: bool,
}

impl Bytes<'_> {
    fn put(&mut self, number: u64, size: usize) -> &mut Self {
        let bytes = number.to_le_bytes();
        match self.big {
            true => self.out.extend(bytes[..size].iter().rev()),
            false => self.out.extend(&bytes[..size]),
        }
        self
    }
}

pub(super) fn blktrace(rows: &[Row], out: &mut Written) {
    const READ: u64 = 1 << 16;
    const WRITE: u64 = 1 << 17;
    const FLUSH: u64 = 1 << 18;
    const SYNC: u64 = 1 << 19;
    let big = rows.first().is_some_and(|r| r.pick(50, &[true, false]));
    for (n, row) in rows.iter().enumerate() {
        let action = match row.what {
            What::Read => READ | 1,
            What::Write => WRITE | 1 | row.pick(0, &[0, SYNC, FLUSH]),
            What::Other => row.pick(
                0,
                &[
                    READ | 7,
                    WRITE | 8,
                    FLUSH | 1,
                    1 << 29 | WRITE | 1,
                    1 << 26 | 2,
                ],
            ),
        };
        let payload = row.pick(8, &[0, 0, 1, 13, 64]);
        let mut bytes = Bytes {
            out: &mut out.bytes,
            big,
        };
        bytes.put(0x6561_7407, 4).put(n as u64, 4).put(row.time, 8);
        bytes.put(row.sector(), 8).put(row.short().into(), 4);
        bytes.put(action, 4).put(row.task.into(), 4);
        bytes.put(row.disk.into(), 4).put(3, 4).put(0, 2);
        bytes.put(payload, 2);
        out.bytes.extend(vec![0x65; payload as usize]);
        if row.what != What::Other {
            let sectors = u64::from(row.short()).div_ceil(512);
            out.disk(
                (Some(row.time), row.task),
                row,
                row.disk,
                (row.sector(), sectors),
            );
        }
    }
}

/// The command, and whether it is a request.
fn command(row: &Row) -> u64 {
    match row.what {
        What::Read => row.pick(0, &[0x08, 0x28, 0xa8, 0x88]),
        What::Write => row.pick(0, &[0x0a, 0x2a, 0xaa, 0x8a]),
        What::Other => row.pick(0, &[0x00, 0x12, 0x35, 0x42, 0x91]),
    }
}

fn commanded(row: &Row, out: &mut Written) {
    if row.what != What::Other {
        let sectors = u64::from(row.short()).div_ceil(512);
        out.sectors(Some(row.time / 1000 * 1000), row, 0, sectors);
    }
}

pub(super) fn vscsi_v1(rows: &[Row], out: &mut Written) {
    for (n, row) in rows.iter().enumerate() {
        let mut bytes = Bytes {
            out: &mut out.bytes,
            big: false,
        };
        bytes.put(n as u64, 4).put(row.short().into(), 4).put(1, 4);
        bytes.put(command(row), 2).put(0x0100 | row.spice & 0xff, 2);
        bytes.put(row.sector(), 8).put(row.time / 1000, 8);
        commanded(row, out);
    }
}

pub(super) fn vscsi_v2(rows: &[Row], out: &mut Written) {
    for (n, row) in rows.iter().enumerate() {
        let mut bytes = Bytes {
            out: &mut out.bytes,
            big: false,
        };
        bytes.put(command(row), 2).put(0x0200 | row.spice & 0xff, 2);
        bytes.put(n as u64, 4).put(row.short().into(), 4).put(1, 4);
        bytes.put(row.sector(), 8).put(row.time / 1000, 8);
        bytes.put(row.spice, 8);
        commanded(row, out);
    }
}

/// Inodes from 77 on, the first two of which are opened with a name.
const NAMED: [&str; 2] = ["/data/a b", "/data/c"];

/// What is open: where the next read begins, by process and descriptor.
type Places = HashMap<(u32, u16), u64>;

pub(super) fn accusim(rows: &[Row], out: &mut Written) {
    let mut places = Places::new();
    for pid in [5, 6] {
        let mut bytes = Bytes {
            out: &mut out.bytes,
            big: false,
        };
        bytes.put(pid << 5, 4).put(4, 4).put(0x676f_7270, 4);
        for (n, name) in (0..).zip(NAMED) {
            bytes.put(pid << 5 | 5, 4).put(77 + n, 4).put(1 << 20, 4);
            bytes.put(name.len() as u64, 2).put(3 + n, 2);
            bytes.out.extend(name.as_bytes());
        }
    }
    let mut now = 0;
    for row in rows {
        let (pid, n) = (5 + row.task % 2, row.disk % 3);
        let descriptor = 3 + n as u16;
        let at = places.entry((pid, descriptor)).or_default();
        let head = |kind: u32| u64::from(pid << 5 | kind);
        // Half of the transfers say where they begin, and some do nothing or fail.
        let done = row.pick(0, &[row.length as i32 & 0xf_ffff, -1, 0, 1, 4096]);
        let (explicit, gap) = (row.pick(8, &[true, false]), row.time as u32 >> 8);
        let mut bytes = Bytes {
            out: &mut out.bytes,
            big: false,
        };
        let (kind, moved) = match row.what {
            What::Read if explicit => (13, done),
            What::Read => (3, done),
            What::Write if explicit => (14, done),
            What::Write => (4, done),
            What::Other if explicit => (7, (row.place >> 9) as i32 & i32::MAX),
            What::Other => {
                // The inode or what else stands there says nothing.
                bytes.put(head(row.pick(16, &[1, 8, 9])), 4).put(9, 4);
                continue;
            }
        };
        bytes.put(head(kind), 4).put(77 + u64::from(n), 4);
        bytes.put(1, 4).put(2, 4).put(3, 4).put(1 << 20, 4);
        bytes.put(moved as u32 as u64, 4).put(descriptor.into(), 2);
        bytes.put(9, 2).put(gap.into(), 4).put(1 << 20, 4);
        if kind == 7 {
            *at = moved as u64;
            continue;
        }
        now += u64::from(gap);
        let offset = match kind {
            13 | 14 => {
                bytes.put(row.place as u32 as u64, 4);
                u64::from(row.place as u32)
            }
            _ => *at,
        };
        let length = u64::try_from(moved).unwrap_or(0);
        if kind < 13 {
            *at += length;
        }
        let path = NAMED.get(n as usize).copied().unwrap_or("inode:79");
        out.file((Some(now * 1000), pid, row.op()), path, offset, length);
    }
}
