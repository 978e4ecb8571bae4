//! Writers of every block and file format, and what a reader must make of what they write.
//!
//! They are written after the descriptions in `docs/formats.md` and the sources named there, with
//! nothing of the readers: a field of a record is pushed here, and its meaning is said here once more.

mod disks;
mod files;
mod objects;
mod records;

use piebald_trace::block::{Format, Op};

/// What a request may say; a format takes what it has a place for.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Nanoseconds.
    pub time: u64,
    pub task: u32,
    pub disk: u32,
    pub what: What,
    /// First byte, below 2^62.
    pub place: u64,
    /// Bytes, below 2^33.
    pub length: u64,
    /// Everything that does not matter.
    pub spice: u64,
}

/// What a row does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Read,
    Write,
    /// Something that is no request, where the format has that; else it is a read.
    Other,
}

impl Row {
    pub fn op(&self) -> Op {
        match self.what {
            What::Write => Op::Write,
            What::Read | What::Other => Op::Read,
        }
    }

    pub fn writes(&self) -> bool {
        self.what == What::Write
    }

    /// One of several, by bits that nothing else uses.
    pub fn pick<T: Copy>(&self, shift: u32, list: &[T]) -> T {
        list[(self.spice >> shift) as usize % list.len()]
    }

    pub fn sector(&self) -> u64 {
        self.place / 512
    }

    pub fn sectors(&self) -> u64 {
        self.length / 512
    }

    /// The length in 32 bits.
    pub fn short(&self) -> u32 {
        self.length as u32
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub time: Option<u64>,
    pub task: u32,
    pub op: Op,
    pub place: Place,
}

/// Where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Disk {
        name: String,
        sector: u64,
        sectors: u64,
    },
    File {
        path: String,
        offset: u64,
        length: u64,
    },
    Block {
        id: u64,
        bytes: Option<u32>,
        /// `u64::MAX`: never.
        next: Option<u64>,
    },
}

/// A trace, and its requests.
#[derive(Debug, Default)]
pub struct Written {
    pub bytes: Vec<u8>,
    pub seen: Vec<Seen>,
}

impl Written {
    fn line(&mut self, text: impl AsRef<str>) {
        self.bytes.extend(text.as_ref().as_bytes());
        self.bytes.push(b'\n');
    }

    /// A request in sectors; one of none is none.
    fn sectors(&mut self, time: Option<u64>, row: &Row, name: impl ToString, sectors: u64) {
        self.disk((time, 0), row, name, (row.sector(), sectors));
    }

    fn disk(
        &mut self,
        (time, task): (Option<u64>, u32),
        row: &Row,
        name: impl ToString,
        (sector, sectors): (u64, u64),
    ) {
        if sectors > 0 {
            let place = Place::Disk {
                name: name.to_string(),
                sector,
                sectors,
            };
            let op = row.op();
            self.seen.push(Seen {
                time,
                task,
                op,
                place,
            });
        }
    }

    /// A request in bytes of a disk touches every sector that holds one of them.
    fn bytes_of_disk(&mut self, time: u64, row: &Row, name: impl ToString) {
        if row.length > 0 {
            let end = (row.place + row.length).div_ceil(512);
            let sectors = (row.sector(), end - row.sector());
            self.disk((Some(time), 0), row, name, sectors);
        }
    }

    fn file(
        &mut self,
        (time, task, op): (Option<u64>, u32, Op),
        path: &str,
        offset: u64,
        length: u64,
    ) {
        if length > 0 {
            let path = path.to_owned();
            let place = Place::File {
                path,
                offset,
                length,
            };
            self.seen.push(Seen {
                time,
                task,
                op,
                place,
            });
        }
    }
}

/// A number of units of 10^-`places` as a decimal fraction of up to `digits` digits, and what that is
/// when it is read back: what is cut off is lost, what is appended is nothing.
fn fraction(value: u64, places: u32, digits: usize) -> (String, u64) {
    let unit = 10u64.pow(places);
    let (whole, rest) = (value / unit, value % unit);
    let kept = digits.min(places as usize);
    let cut = 10u64.pow(places - kept as u32);
    let text = match digits {
        0 => whole.to_string(),
        _ => {
            let rest = format!("{rest:0width$}", width = places as usize);
            format!("{whole}.{}{}", &rest[..kept], "7".repeat(digits - kept))
        }
    };
    (text, value - rest % cut)
}

/// Writes rows in a format.
pub fn write(format: Format, rows: &[Row]) -> Written {
    let writer = match format {
        Format::Columns => panic!("tests/columns.rs writes texts in columns"),
        Format::Blktrace => records::blktrace,
        Format::VscsiV1 => records::vscsi_v1,
        Format::VscsiV2 => records::vscsi_v2,
        Format::Blkparse => disks::blkparse,
        Format::Msr => disks::msr,
        Format::Spc => disks::spc,
        Format::LibCacheSimCsv => disks::csv,
        Format::Arc => disks::arc,
        Format::Systor17 => disks::systor,
        Format::Tencent => disks::tencent,
        Format::Mqsim => disks::mqsim,
        Format::DiskSim => disks::disksim,
        Format::DiskSimValidate => disks::validate,
        Format::OracleGeneral => objects::general,
        Format::OracleGeneralOpNs => objects::op_ns,
        Format::LcsV1 => objects::lcs_v1,
        Format::Lcs => objects::lcs,
        Format::Ids => objects::ids,
        Format::W106 => objects::little_32,
        Format::W106Be => objects::big_32,
        Format::Valpin => objects::little_64,
        Format::AccuSim => records::accusim,
        Format::Strace => files::strace,
        Format::Fpt => files::fpt,
        Format::Fio => files::fio,
    };
    let mut out = Written::default();
    writer(rows, &mut out);
    out
}
