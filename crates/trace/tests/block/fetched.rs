//! Counts on traces of third parties, which may not lie in the repository, against integers that an
//! independent script took from the same files. `scripts/fetch-traces.sh` gets them.

use piebald_trace::block::{BlockTrace, Format, Options};

use super::samples::{Sample, is_no_block_trace};
use crate::traces::fetched;

const SAMPLES: [Sample; 17] = [
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
];

#[test]
#[ignore = "needs scripts/fetch-traces.sh: ./test.sh foreign-traces"]
fn fetched_traces_count_as_an_independent_script_counts_them() {
    for sample in &SAMPLES {
        sample.check(&fetched(sample.file));
    }
}

#[test]
#[ignore = "needs scripts/fetch-traces.sh: ./test.sh foreign-traces"]
fn fetched_forms_of_one_trace_are_the_same_trace() {
    let open = |file: &str| {
        let path = fetched(file);
        let trace = BlockTrace::open(&path, Options::default()).unwrap_or_else(|e| panic!("{e}"));
        trace.requests().map(|r| r.expect("reads"))
    };
    let mut vscsi = open("block/cloudPhysicsIO.vscsi");
    let mut csv = open("block/cloudPhysicsIO.csv");
    for n in 0..113_872 {
        let a = vscsi.next().expect("a request");
        let b = csv.next().expect("a request");
        assert_eq!((a.op, a.target), (b.op, b.target), "request {n}");
    }
    assert!(vscsi.next().is_none() && csv.next().is_none());
}

#[test]
#[ignore = "needs scripts/fetch-traces.sh: ./test.sh foreign-traces"]
fn fetched_memory_traces_are_no_block_traces() {
    for name in [
        "gcc.trace.gz",
        "mcf.trace.gz",
        "swim.trace.gz",
        "456.hmmer.gz",
    ] {
        is_no_block_trace(&fetched(&format!("mem/{name}")));
    }
}
