//! Counts on the recorded traces of `testdata`, against integers that an independent script took
//! from the same files.

use std::path::Path;

use piebald_trace::block::{
    BlockError, BlockTrace, Format, Layout, Op, Options, PageShift, Request, Summary, Target,
    summarize,
};
use piebald_trace::foreign::Distinct;

use super::support::{open, options};
use crate::traces::packed;

/// A file with its CRC-32, and the integers expected of it.
pub struct Sample {
    pub file: &'static str,
    pub crc32: u32,
    pub format: Format,
    /// Reads, writes, deletions.
    pub ops: [u64; 3],
    /// References to pages of 4 KiB.
    pub references: u64,
    /// Distinct pages.
    pub pages: u64,
    /// References to the page behind the one before.
    pub next: u64,
    /// Requests that begin where the one before ended.
    pub sequential: u64,
    /// Disks or files.
    pub spaces: u64,
    pub duration_ns: Option<u64>,
}

const SAMPLES: [Sample; 10] = [
    Sample {
        file: "replay/cscope.fpt.zst",
        crc32: 0x2853_8132,
        format: Format::Fpt,
        ops: [399_726, 30_316, 0],
        references: 740_370,
        pages: 112_520,
        next: 571_504,
        sequential: 261_176,
        spaces: 14_851,
        duration_ns: None,
    },
    Sample {
        file: "replay/diff.fpt.zst",
        crc32: 0x877d_8316,
        format: Format::Fpt,
        ops: [51_158, 0, 0],
        references: 114_582,
        pages: 114_582,
        next: 63_424,
        sequential: 0,
        spaces: 34_182,
        duration_ns: None,
    },
    Sample {
        file: "replay/gcc.fpt.zst",
        crc32: 0xa587_9e59,
        format: Format::Fpt,
        ops: [135_507, 0, 0],
        references: 350_825,
        pages: 5285,
        next: 222_209,
        sequential: 6891,
        spaces: 1434,
        duration_ns: None,
    },
    Sample {
        file: "replay/glimpse.fpt.zst",
        crc32: 0x7c3b_0001,
        format: Format::Fpt,
        ops: [190_789, 0, 0],
        references: 636_387,
        pages: 59_357,
        next: 445_642,
        sequential: 44,
        spaces: 17_058,
        duration_ns: None,
    },
    Sample {
        file: "replay/grep.fpt.zst",
        crc32: 0x7408_9a61,
        format: Format::Fpt,
        ops: [17_390, 0, 0],
        references: 57_291,
        pages: 57_291,
        next: 40_200,
        sequential: 299,
        spaces: 17_091,
        duration_ns: None,
    },
    Sample {
        file: "replay/postmark.fpt.zst",
        crc32: 0x4bcf_b80c,
        format: Format::Fpt,
        ops: [72_433, 270_065, 3491],
        references: 385_054,
        pages: 267_726,
        next: 335_703,
        sequential: 293_147,
        spaces: 3491,
        duration_ns: None,
    },
    Sample {
        file: "replay/tar.fpt.zst",
        crc32: 0x8345_3369,
        format: Format::Fpt,
        ops: [35_672, 0, 0],
        references: 73_819,
        pages: 57_291,
        next: 40_200,
        sequential: 2053,
        spaces: 17_091,
        duration_ns: None,
    },
    Sample {
        file: "traces/arc/OLTP.lis.zst",
        crc32: 0x7623_7bf8,
        format: Format::Arc,
        ops: [914_145, 0, 0],
        references: 914_145,
        pages: 23_361,
        next: 23_144,
        sequential: 136_340,
        spaces: 1,
        duration_ns: None,
    },
    Sample {
        file: "traces/disk/cheetah9LP.trace.zst",
        crc32: 0xeade_37ec,
        format: Format::DiskSimValidate,
        ops: [6594, 3406, 0],
        references: 12_954,
        pages: 11_519,
        next: 3999,
        sequential: 2033,
        spaces: 1,
        duration_ns: None,
    },
    Sample {
        file: "traces/disk/atlas10k.trace.zst",
        crc32: 0xb8ff_33e4,
        format: Format::DiskSimValidate,
        ops: [6569, 3431, 0],
        references: 12_892,
        pages: 11_506,
        next: 3970,
        sequential: 2053,
        spaces: 1,
        duration_ns: None,
    },
];

impl Sample {
    fn summary(&self, path: &Path) -> Summary {
        let bytes = std::fs::read(path).expect(self.file);
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        assert_eq!(crc.sum(), self.crc32, "{} is another file", self.file);
        let mut trace =
            BlockTrace::open(path, Options::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(trace.format(), self.format, "{}", self.file);
        summarize(&mut trace, PageShift::PAGE_4K, 1 << 21).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Fails if the file at `path` has other counts.
    pub fn check(&self, path: &Path) {
        let sum = self.summary(path);
        let name = self.file;
        assert_eq!([sum.reads, sum.writes, sum.deletes], self.ops, "{name}");
        assert_eq!(sum.requests, self.ops.iter().sum::<u64>(), "{name}");
        assert_eq!(sum.page_references, self.references, "{name}");
        assert_eq!(sum.unique_pages, Distinct::Exactly(self.pages), "{name}");
        assert_eq!(sum.next_page_references, self.next, "{name}");
        assert_eq!(sum.sequential_requests, self.sequential, "{name}");
        let spaces = match self.format {
            Format::Fpt => sum.files,
            _ => sum.disks,
        };
        assert_eq!(spaces, Distinct::Exactly(self.spaces), "{name}");
        if let Some(duration) = self.duration_ns {
            assert_eq!(sum.duration_ns(), Some(duration), "{name}");
        }
        assert_eq!(sum.skipped.total(), 0, "{name}");
    }
}

/// Fails if the file is taken for a block trace.
pub fn is_no_block_trace(path: &Path) {
    let Err(error) = BlockTrace::open(path, Options::default()) else {
        panic!("{} is taken", path.display());
    };
    assert!(matches!(error, BlockError::Unrecognised { .. }), "{error}");
}

#[test]
fn recorded_traces_count_as_an_independent_script_counts_them() {
    for sample in &SAMPLES {
        sample.check(&packed(sample.file));
    }
}

fn requests(bytes: &[u8], format: Format) -> Vec<(Op, Target)> {
    let all = open(bytes, options(format)).requests();
    all.map(|r| r.expect("reads"))
        .map(|r| (r.op, r.target))
        .collect()
}

/// Requests of a disk as text and as binary commands of SCSI.
fn as_csv_and_vscsi(requests: &[Request]) -> (Vec<u8>, Vec<u8>) {
    let mut csv = "version,time,op,size,lbn\n".to_owned();
    let mut vscsi = Vec::new();
    for (n, request) in (0u32..).zip(requests) {
        let Target::Device {
            sector, sectors, ..
        } = request.target
        else {
            panic!("{request:?}");
        };
        let code: u16 = match request.op {
            Op::Write => 0x2a,
            _ => 0x28,
        };
        let bytes = u32::try_from(sectors * 512).expect("a short request");
        csv += &format!("1,{n},{code:x},{bytes},{sector}\n");
        vscsi.extend([n.to_le_bytes(), bytes.to_le_bytes(), 1u32.to_le_bytes()].concat());
        vscsi.extend([code.to_le_bytes(), 0x0100u16.to_le_bytes()].concat());
        vscsi.extend([sector.to_le_bytes(), u64::from(n).to_le_bytes()].concat());
    }
    (csv.into_bytes(), vscsi)
}

#[test]
fn a_trace_written_in_two_other_forms_is_the_same_trace() {
    let path = packed("traces/disk/cheetah9LP.trace.zst");
    let trace = BlockTrace::open(&path, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let all: Vec<Request> = trace.requests().map(|r| r.expect("reads")).collect();
    let (csv, vscsi) = as_csv_and_vscsi(&all);
    let all: Vec<(Op, Target)> = all.iter().map(|r| (r.op, r.target)).collect();
    assert_eq!(all.len(), 10_000);
    assert!(requests(&csv, Format::LibCacheSimCsv) == all, "as CSV");
    assert!(requests(&vscsi, Format::VscsiV1) == all, "as vSCSI");
}

#[test]
fn the_layout_places_every_page_of_the_tree_that_was_read() {
    let layout = Layout::open(&packed("replay/layout.ext4.txt.zst")).expect("a layout");
    let pages: u64 = layout.iter().flat_map(|(_, e)| e).map(|e| e.pages).sum();
    assert_eq!((layout.len(), pages), (34_190, 147_575));
    let path = packed("replay/grep.fpt.zst");
    let mut trace = BlockTrace::open(&path, Options::default()).expect("a trace");
    let mut batch = Vec::new();
    let (mut placed, mut missing) = (0, 0);
    while trace.next_batch(&mut batch).expect("reads") {
        for request in &batch {
            let Target::File { file, .. } = request.target else {
                panic!("{request:?}");
            };
            let path = trace.files().get(file).expect("a file").path_bytes();
            for page in request.pages(PageShift::PAGE_4K).iter() {
                match layout.page(path, page) {
                    Some(_) => placed += 1,
                    None => missing += 1,
                }
            }
        }
    }
    assert_eq!((placed, missing), (57_291, 0));
}

#[test]
fn memory_traces_are_no_block_traces() {
    for name in [
        "403.gcc.gz",
        "drmemtrace/drmemtrace.threadsig.2765542.2328.trace.zip",
        "drmemtrace/drmemtrace.threadsig.2765543.2117.trace.zip",
    ] {
        is_no_block_trace(&packed("traces/mem").join(name));
    }
}
