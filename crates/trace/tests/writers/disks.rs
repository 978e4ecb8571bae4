//! Text formats of disks.

use super::{Row, What, Written, fraction};

/// Digits behind the point: none, some, all that count, and more.
const DIGITS: [usize; 5] = [0, 1, 6, 9, 12];

pub(super) fn blkparse(rows: &[Row], out: &mut Written) {
    for (n, row) in rows.iter().enumerate() {
        let (time, ns) = fraction(row.time, 9, row.pick(0, &DIGITS));
        let (major, minor) = (row.disk >> 20, row.disk & 0xf_ffff);
        let begin = format!("{major:>3},{minor:<3} {} {n} {time} {}", n % 8, row.task);
        let (sector, sectors) = (row.sector(), row.sectors());
        let place = format!("{sector} + {sectors} [a b]");
        match row.what {
            What::Other => out.line(match row.pick(8, &[0, 1, 2, 3, 4]) {
                0 => format!("{begin}  A   W {place} <- (8,1) 223427"),
                1 => format!("{begin}  C   R {sector} + {sectors} [0]"),
                2 => format!("{begin}  Q FWS [a b]"),
                3 => format!("{begin}  Q   D {place}"),
                _ => format!("{begin}  m   N a note"),
            }),
            _ => {
                let kind = match row.writes() {
                    true => row.pick(8, &["W", "WS", "WM", "FW", "FWFS"]),
                    false => row.pick(8, &["R", "RA", "RM", "RS"]),
                };
                out.line(format!("{begin}  Q {kind:>3} {place}"));
                let who = (Some(ns), row.task);
                out.disk(who, row, row.disk, (sector, sectors));
            }
        }
    }
    out.line("CPU0 (8,0):\n Reads Queued:           1,        8KiB");
}

pub(super) fn msr(rows: &[Row], out: &mut Written) {
    if rows.first().is_some_and(|r| r.pick(50, &[true, false])) {
        out.line("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime");
    }
    for row in rows {
        let (host, number) = (row.pick(0, &["hm", "web", "src1"]), row.disk % 5);
        let ticks = row.time / 100;
        let kind = if row.writes() { "Write" } else { "Read" };
        let (offset, size) = (row.place, row.length);
        out.line(format!(
            "{ticks},{host},{number},{kind},{offset},{size},{}",
            row.task
        ));
        out.bytes_of_disk(ticks * 100, row, format!("{host}.{number}"));
    }
}

pub(super) fn spc(rows: &[Row], out: &mut Written) {
    for row in rows {
        let (time, ns) = fraction(row.time, 9, row.pick(0, &DIGITS));
        let op = match row.writes() {
            true => row.pick(8, &["W", "w"]),
            false => row.pick(8, &["R", "r"]),
        };
        let more = row.pick(16, &["", ",", ", 5,6"]);
        let comma = row.pick(24, &[",", ", "]);
        let fields = [
            row.disk.to_string(),
            row.sector().to_string(),
            row.length.to_string(),
            op.to_owned(),
            time,
        ];
        out.line(fields.join(comma) + more);
        out.sectors(Some(ns), row, row.disk, row.length.div_ceil(512));
    }
}

pub(super) fn csv(rows: &[Row], out: &mut Written) {
    let columns = rows.first().map_or(0, |r| r.pick(50, &[0, 1, 2]));
    out.line(["version,time,op,size,lbn", "lba,op,timestamp", "lbn"][columns]);
    for row in rows {
        let (time, ns) = fraction(row.time, 9, row.pick(0, &DIGITS));
        let op = match row.what {
            What::Read => row.pick(8, &["28", "88", "8", "A8", "r", "Read"]),
            What::Write => row.pick(8, &["2a", "8A", "a", "aa", "w", "write"]),
            What::Other => row.pick(8, &["35", "0", "93", "12"]),
        };
        let (place, size) = (row.sector(), row.length);
        out.line(match columns {
            0 => format!("1,{time},{op},{size},{place}"),
            1 => format!("{place}, {op}, {time}"),
            _ => place.to_string(),
        });
        let read = Row {
            what: What::Read,
            ..*row
        };
        match columns {
            0 | 1 if row.what == What::Other => {}
            0 => out.sectors(Some(ns), row, 0, size.div_ceil(512)),
            1 => out.sectors(Some(ns), row, 0, 1),
            _ => out.sectors(None, &read, 0, 1),
        }
    }
}

pub(super) fn arc(rows: &[Row], out: &mut Written) {
    for (n, row) in rows.iter().enumerate() {
        let (sector, sectors) = (row.sector(), row.sectors());
        out.line(format!("{sector} {sectors} {} {n}", row.task));
        let read = Row {
            what: What::Read,
            ..*row
        };
        out.sectors(None, &read, 0, sectors);
    }
}

pub(super) fn systor(rows: &[Row], out: &mut Written) {
    out.line("Timestamp,Response,IOType,LUN,Offset,Size");
    for row in rows {
        let (time, ns) = fraction(row.time, 9, row.pick(0, &DIGITS));
        let kind = match row.what {
            What::Read => "R",
            What::Write => "W",
            What::Other => "",
        };
        let (lun, offset, size) = (row.disk, row.place, row.length);
        out.line(format!("{time},0.001,{kind},{lun},{offset},{size}"));
        if row.what != What::Other {
            out.bytes_of_disk(ns, row, lun);
        }
    }
}

pub(super) fn tencent(rows: &[Row], out: &mut Written) {
    for row in rows {
        let (seconds, kind) = (row.time / 1_000_000_000, u8::from(row.writes()));
        let (sector, sectors) = (row.sector(), row.sectors());
        out.line(format!("{seconds},{sector},{sectors},{kind},{}", row.disk));
        out.sectors(Some(seconds * 1_000_000_000), row, row.disk, sectors);
    }
}

pub(super) fn mqsim(rows: &[Row], out: &mut Written) {
    for row in rows {
        let kind = u8::from(!row.writes());
        let (time, disk) = (row.time, row.disk);
        let (sector, sectors) = (row.sector(), row.sectors());
        out.line(format!("{time} {disk} {sector} {sectors} {kind}"));
        out.sectors(Some(time), row, disk, sectors);
    }
}

pub(super) fn disksim(rows: &[Row], out: &mut Written) {
    for row in rows {
        let (time, ns) = fraction(row.time, 6, row.pick(0, &DIGITS));
        let flags = (row.spice >> 8) as u32 & !1 | u32::from(!row.writes());
        let prefix = row.pick(40, &["", "0x"]);
        let (sector, sectors) = (row.sector(), row.sectors());
        out.line(format!(
            "{time}\t{} {sector} {sectors} {prefix}{flags:x}",
            row.disk
        ));
        out.sectors(Some(ns), row, row.disk, sectors);
    }
}

pub(super) fn validate(rows: &[Row], out: &mut Written) {
    let mut now = 0;
    for row in rows {
        // Seven minutes at most, so that the sum fits.
        let (gap, ns) = fraction(row.time % (1 << 39), 3, row.pick(0, &DIGITS));
        let op = if row.writes() { 'W' } else { 'R' };
        let cache = row.pick(8, &["Hit", "Miss"]);
        let (sector, sectors) = (row.sector(), row.sectors());
        out.line(format!(
            "{op} {cache:<5} {sector:>9} {sectors:>3} 663.00000 {gap}"
        ));
        out.sectors(Some(now), row, 0, sectors);
        now += ns;
    }
}
