//! Formats of blocks that are only numbered.

use std::collections::HashMap;

use piebald_trace::block::Op;

use super::{Place, Row, Seen, What, Written};

/// libCacheSim's operations, by `req_op_e`.
fn operation(row: &Row) -> u8 {
    match row.what {
        What::Read => row.pick(0, &[1, 2, 12]),
        What::Write => row.pick(0, &[3, 4, 5, 6, 7, 8, 10, 11, 13, 14]),
        What::Other => row.pick(0, &[0, 9]),
    }
}

/// The number of the next request of the same object, for each.
fn next_uses(rows: &[Row]) -> Vec<Option<u64>> {
    let mut later = HashMap::new();
    let numbered = (1..).zip(rows).collect::<Vec<(u64, &Row)>>();
    let backwards = numbered.into_iter().rev();
    let mut next: Vec<_> = backwards
        .map(|(number, row)| later.insert(row.place, number))
        .collect();
    next.reverse();
    next
}

/// How a record of the family is laid out.
#[derive(Clone, Copy)]
struct Layout {
    size: usize,
    /// Bytes of the operation with what stands beside it.
    op: usize,
    ttl: usize,
    features: usize,
}

fn objects(rows: &[Row], layout: Layout, out: &mut Written) {
    for (row, next) in rows.iter().zip(next_uses(rows)) {
        let seconds = (row.time / 1_000_000_000) as u32;
        let size = row.short();
        out.bytes.extend(seconds.to_le_bytes());
        out.bytes.extend(row.place.to_le_bytes());
        out.bytes
            .extend(&u64::from(size).to_le_bytes()[..layout.size]);
        let op = u32::from(operation(row)) | row.task << 8;
        out.bytes.extend(&op.to_le_bytes()[..layout.op]);
        out.bytes.extend(&row.disk.to_le_bytes()[..layout.ttl]);
        let never = row.pick(8, &[-1, i64::MAX]);
        let number = next.map_or(never, |n| n as i64);
        out.bytes.extend(number.to_le_bytes());
        out.bytes.extend(vec![0xab; 4 * layout.features]);
        if layout.op > 0 && row.what == What::Other {
            continue;
        }
        let op = if layout.op > 0 { row.op() } else { Op::Read };
        let place = Place::Block {
            id: row.place,
            bytes: Some(size),
            next: Some(next.unwrap_or(u64::MAX)),
        };
        out.seen.push(Seen {
            time: Some(u64::from(seconds) * 1_000_000_000),
            task: 0,
            op,
            place,
        });
    }
}

const GENERAL: Layout = Layout {
    size: 4,
    op: 0,
    ttl: 0,
    features: 0,
};

pub(super) fn general(rows: &[Row], out: &mut Written) {
    objects(rows, GENERAL, out);
}

pub(super) fn op_ns(rows: &[Row], out: &mut Written) {
    objects(rows, Layout { op: 3, ..GENERAL }, out);
}

fn header(rows: &[Row], version: u64, out: &mut Written) {
    let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    let length = rows.first().map_or(8192, |r| r.pick(40, &[8192, 1024]));
    out.bytes.extend(magic);
    out.bytes.extend(version.to_le_bytes());
    out.bytes.resize(length - 8, 0x55);
    out.bytes.extend(magic);
}

pub(super) fn lcs_v1(rows: &[Row], out: &mut Written) {
    header(rows, 1, out);
    objects(rows, GENERAL, out);
}

pub(super) fn lcs(rows: &[Row], out: &mut Written) {
    let version = rows
        .first()
        .map_or(2, |r| r.pick(50, &[2, 3, 4, 5, 6, 7, 8]));
    header(rows, version, out);
    let wide = Layout {
        size: 8,
        op: 4,
        ttl: 4,
        features: 0,
    };
    let layout = match version {
        2 => Layout { op: 4, ..GENERAL },
        3 => wide,
        _ => Layout {
            features: 1 << (version - 4),
            ..wide
        },
    };
    objects(rows, layout, out);
}

fn number(id: u64, out: &mut Written) {
    let place = Place::Block {
        id,
        bytes: None,
        next: None,
    };
    out.seen.push(Seen {
        time: None,
        task: 0,
        op: Op::Read,
        place,
    });
}

pub(super) fn ids(rows: &[Row], out: &mut Written) {
    for row in rows {
        let id = row.place;
        if row.what == What::Other {
            out.line(row.pick(0, &["*", "", " * "]));
            continue;
        }
        out.line(match row.pick(0, &[0, 1, 2]) {
            0 => format!("{id}"),
            1 => format!("{id:#x}"),
            _ => format!("  0{id} "),
        });
        number(id, out);
    }
}

pub(super) fn little_32(rows: &[Row], out: &mut Written) {
    for row in rows {
        let id = row.place as u32;
        out.bytes.extend(id.to_le_bytes());
        number(id.into(), out);
    }
}

pub(super) fn big_32(rows: &[Row], out: &mut Written) {
    for row in rows {
        let id = row.place as u32;
        out.bytes.extend(id.to_be_bytes());
        number(id.into(), out);
    }
}

pub(super) fn little_64(rows: &[Row], out: &mut Written) {
    for row in rows {
        out.bytes.extend(row.place.to_le_bytes());
        number(row.place, out);
    }
}
