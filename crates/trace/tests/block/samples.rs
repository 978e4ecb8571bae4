//! Counts on real traces, against integers that an independent script took from the same files. The
//! files of third parties are not in the repository: they are found through `PIEBALD_TRACES` (default
//! `../shared/traces` beside the workspace).

use std::path::{Path, PathBuf};

use piebald_trace::block::{
    BlockError, BlockTrace, Format, Layout, Options, PageShift, Summary, summarize,
};
use piebald_trace::foreign::Distinct;

/// A file with its CRC-32, and the integers expected of it.
struct Sample {
    file: &'static str,
    crc32: u32,
    format: Format,
    /// Reads, writes, deletions.
    ops: [u64; 3],
    /// References to pages of 4 KiB.
    references: u64,
    /// Distinct pages.
    pages: u64,
    /// References to the page behind the one before.
    next: u64,
    /// Requests that begin where the one before ended.
    sequential: u64,
    /// Disks or files.
    spaces: u64,
    duration_ns: Option<u64>,
}

const SAMPLES: [Sample; 27] = [
    Sample {
        file: "block/cloudPhysicsIO.csv",
        crc32: 0xb886_3a6e,
        format: Format::LibCacheSimCsv,
        ops: [46_974, 66_898, 0],
        references: 1_141_869,
        pages: 269_210,
        next: 1_028_613,
        sequential: 29_558,
        spaces: 1,
        duration_ns: Some(7_200_000_000_000),
    },
    Sample {
        file: "block/cloudPhysicsIO.oracleGeneral.bin",
        crc32: 0x766c_a8cb,
        format: Format::OracleGeneral,
        ops: [113_872, 0, 0],
        references: 113_872,
        pages: 48_974,
        next: 2364,
        sequential: 2364,
        spaces: 0,
        duration_ns: Some(7_200_000_000_000),
    },
    Sample {
        file: "block/cloudPhysicsIO.vscsi",
        crc32: 0xa0c7_520c,
        format: Format::VscsiV1,
        ops: [46_974, 66_898, 0],
        references: 1_141_869,
        pages: 269_210,
        next: 1_028_613,
        sequential: 29_558,
        spaces: 1,
        duration_ns: Some(7_200_089_885_000),
    },
    Sample {
        file: "block/cloud_storage-sample.bz2",
        crc32: 0xad40_16ff,
        format: Format::Tencent,
        ops: [24_521, 25_479, 0],
        references: 378_253,
        pages: 348_239,
        next: 329_219,
        sequential: 1050,
        spaces: 2038,
        duration_ns: Some(1_000_000_000),
    },
    Sample {
        file: "block/msr-cambridge1-sample.csv",
        crc32: 0xa9de_2a89,
        format: Format::Msr,
        ops: [508, 492, 0],
        references: 2473,
        pages: 1917,
        next: 1510,
        sequential: 39,
        spaces: 1,
        duration_ns: Some(127_233_494_100),
    },
    Sample {
        file: "block/systor17-traces-sample.csv.gz",
        crc32: 0xb45b_0753,
        format: Format::Systor17,
        ops: [826, 173, 0],
        references: 10_466,
        pages: 9831,
        next: 9486,
        sequential: 110,
        spaces: 1,
        duration_ns: Some(2_447_767_000),
    },
    Sample {
        file: "lirs/cpp.trace.gz",
        crc32: 0x2322_45c7,
        format: Format::Ids,
        ops: [9047, 0, 0],
        references: 9047,
        pages: 1223,
        next: 6813,
        sequential: 6813,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "lirs/cs.trace.gz",
        crc32: 0x86e4_f596,
        format: Format::Ids,
        ops: [6781, 0, 0],
        references: 6781,
        pages: 1409,
        next: 6577,
        sequential: 6577,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "lirs/gli.trace.gz",
        crc32: 0x2ba2_7593,
        format: Format::Ids,
        ops: [6015, 0, 0],
        references: 6015,
        pages: 2529,
        next: 5916,
        sequential: 5916,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "lirs/loop.trace.gz",
        crc32: 0x5850_f802,
        format: Format::Ids,
        ops: [505_500, 0, 0],
        references: 505_500,
        pages: 1011,
        next: 505_000,
        sequential: 505_000,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "lirs/multi1.trace.gz",
        crc32: 0x3439_1bed,
        format: Format::Ids,
        ops: [15_858, 0, 0],
        references: 15_858,
        pages: 2606,
        next: 2930,
        sequential: 2930,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "lirs/multi2.trace.gz",
        crc32: 0xdb3b_33f8,
        format: Format::Ids,
        ops: [26_311, 0, 0],
        references: 26_311,
        pages: 5684,
        next: 2685,
        sequential: 2685,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "lirs/ps.trace.gz",
        crc32: 0x973b_4e58,
        format: Format::Ids,
        ops: [10_448, 0, 0],
        references: 10_448,
        pages: 3083,
        next: 9990,
        sequential: 9990,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "lirs/scan.trace.gz",
        crc32: 0x9c2b_ffb2,
        format: Format::Ids,
        ops: [50_025, 0, 0],
        references: 50_025,
        pages: 2001,
        next: 50_000,
        sequential: 50_000,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "lirs/sprite.trace.gz",
        crc32: 0xdd67_d8bd,
        format: Format::Ids,
        ops: [133_996, 0, 0],
        references: 133_996,
        pages: 7075,
        next: 57_096,
        sequential: 57_096,
        spaces: 0,
        duration_ns: None,
    },
    Sample {
        file: "own/cscope.fpt.zst",
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
        file: "own/diff.fpt.zst",
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
        file: "own/gcc.fpt.zst",
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
        file: "own/glimpse.fpt.zst",
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
        file: "own/grep.fpt.zst",
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
        file: "own/postmark.fpt.zst",
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
        file: "own/tar.fpt.zst",
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
        file: "arc/OLTP.lis.zst",
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
        file: "arc/P3.lis.zst",
        crc32: 0x480a_f868,
        format: Format::Arc,
        ops: [238_578, 0, 0],
        references: 611_918,
        pages: 102_348,
        next: 389_102,
        sequential: 28_334,
        spaces: 1,
        duration_ns: None,
    },
    Sample {
        file: "arc/P6.lis.zst",
        crc32: 0xad7f_9478,
        format: Format::Arc,
        ops: [519_711, 0, 0],
        references: 2_021_684,
        pages: 101_903,
        next: 1_529_849,
        sequential: 65_909,
        spaces: 1,
        duration_ns: None,
    },
    Sample {
        file: "disk/cheetah9LP.trace",
        crc32: 0x42d7_8b5c,
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
        file: "disk/atlas10k.trace",
        crc32: 0xe0ce_aeee,
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

fn traces(test: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let set = std::env::var_os("PIEBALD_TRACES").map(PathBuf::from);
    let root = workspace.join(set.unwrap_or_else(|| "../shared/traces".into()));
    if root.join("block").is_dir() {
        return Some(root);
    }
    let message = format!("skipped {test}: no {} (set PIEBALD_TRACES)", root.display());
    let ci = std::env::var("CI").is_ok_and(|v| v == "true");
    assert!(!ci, "{message}");
    println!("{message}");
    None
}

fn summary(sample: &Sample, root: &Path) -> Summary {
    let path = root.join(sample.file);
    let bytes = std::fs::read(&path).expect(sample.file);
    let mut crc = flate2::Crc::new();
    crc.update(&bytes);
    assert_eq!(crc.sum(), sample.crc32, "{} is another file", sample.file);
    let mut trace = BlockTrace::open(&path, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(trace.format(), sample.format, "{}", sample.file);
    summarize(&mut trace, PageShift::PAGE_4K, 1 << 21).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn real_traces_count_as_an_independent_script_counts_them() {
    let Some(root) = traces("real_traces_count_as_an_independent_script_counts_them") else {
        return;
    };
    for sample in &SAMPLES {
        let sum = summary(sample, &root);
        let name = sample.file;
        assert_eq!([sum.reads, sum.writes, sum.deletes], sample.ops, "{name}");
        assert_eq!(sum.requests, sample.ops.iter().sum::<u64>(), "{name}");
        assert_eq!(sum.page_references, sample.references, "{name}");
        assert_eq!(sum.unique_pages, Distinct::Exactly(sample.pages), "{name}");
        assert_eq!(sum.next_page_references, sample.next, "{name}");
        assert_eq!(sum.sequential_requests, sample.sequential, "{name}");
        let spaces = match sample.format {
            Format::Fpt => sum.files,
            _ => sum.disks,
        };
        assert_eq!(spaces, Distinct::Exactly(sample.spaces), "{name}");
        if let Some(duration) = sample.duration_ns {
            assert_eq!(sum.duration_ns(), Some(duration), "{name}");
        }
        assert_eq!(sum.skipped.total(), 0, "{name}");
    }
}

#[test]
fn one_trace_in_three_forms_is_the_same_trace() {
    let Some(root) = traces("one_trace_in_three_forms_is_the_same_trace") else {
        return;
    };
    let open = |file: &str| {
        let path = root.join("block").join(file);
        let trace = BlockTrace::open(&path, Options::default()).unwrap_or_else(|e| panic!("{e}"));
        trace.requests().map(|r| r.expect("reads"))
    };
    let (vscsi, csv) = (open("cloudPhysicsIO.vscsi"), open("cloudPhysicsIO.csv"));
    let mut n = 0;
    for (a, b) in vscsi.zip(csv) {
        assert_eq!((a.op, a.target), (b.op, b.target), "request {n}");
        n += 1;
    }
    assert_eq!(n, 113_872);
}

#[test]
fn the_layout_places_every_page_of_the_tree_that_was_read() {
    let Some(root) = traces("the_layout_places_every_page_of_the_tree_that_was_read") else {
        return;
    };
    let layout = Layout::open(&root.join("own/layout.ext4.txt.zst")).expect("a layout");
    let pages: u64 = layout.iter().flat_map(|(_, e)| e).map(|e| e.pages).sum();
    assert_eq!((layout.len(), pages), (34_190, 147_575));
    let path = root.join("own/grep.fpt.zst");
    let mut trace = BlockTrace::open(&path, Options::default()).expect("a trace");
    let mut batch = Vec::new();
    let (mut placed, mut missing) = (0, 0);
    while trace.next_batch(&mut batch).expect("reads") {
        for request in &batch {
            let piebald_trace::block::Target::File { file, .. } = request.target else {
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
    let Some(root) = traces("memory_traces_are_no_block_traces") else {
        return;
    };
    let files = std::fs::read_dir(root.join("mem")).expect("a directory");
    let files = files.map(|entry| entry.expect("a file").path());
    let mut seen = 0;
    for path in files.filter(|path| path.is_file()) {
        let found = BlockTrace::open(&path, Options::default());
        let error = found
            .err()
            .unwrap_or_else(|| panic!("{} is taken", path.display()));
        assert!(matches!(error, BlockError::Unrecognised { .. }), "{error}");
        seen += 1;
    }
    assert!(seen >= 5, "{seen}");
}
