//! Counts on recorded traces, against integers that were taken from the same files by an independent
//! script (Python over `zcat` and `zipfile`). The free ones are in `testdata`;
//! `scripts/fetch-traces.sh` gets the others.

use std::path::Path;

use piebald_trace::foreign::{
    DEFAULT_DISTINCT_BOUND, Ending, Fetches, ForeignTrace, Format, Options, Summary,
};

use crate::traces::{fetched, packed};

const DATA_ONLY: Options = Options {
    fetches: Fetches::None,
    prefetches: false,
};

/// A sample's file with its CRC-32, and the integers expected of it.
struct Sample {
    file: &'static str,
    crc32: u32,
    format: Format,
    /// Loads, stores, updates.
    refs: [u64; 3],
    instructions: u64,
    range: (u64, u64),
    pages: u64,
    lines: u64,
}

const PACKED: [Sample; 3] = [
    Sample {
        file: "traces/mem/403.gcc.gz",
        crc32: 0x42ed_405c,
        format: Format::RamulatorCpu,
        refs: [45_675, 4349, 0],
        instructions: 203_728_525,
        range: (0x64_f500, 0x7fff_5c98_38ff),
        pages: 1306,
        lines: 43_198,
    },
    Sample {
        file: "traces/mem/drmemtrace/drmemtrace.threadsig.2765542.2328.trace.zip",
        crc32: 0xcfa7_14aa,
        format: Format::DrMemtrace,
        refs: [17_645, 10_015, 409],
        instructions: 79_427,
        range: (0x40_0040, 0x7ffd_90ca_a54f),
        pages: 74,
        lines: 723,
    },
    Sample {
        file: "traces/mem/drmemtrace/drmemtrace.threadsig.2765543.2117.trace.zip",
        crc32: 0x0e87_86e0,
        format: Format::DrMemtrace,
        refs: [750_099, 860_082, 10_007],
        instructions: 790_361,
        range: (0x4a_c0e0, 0x7fdf_64e2_bff0),
        pages: 9,
        lines: 46,
    },
];

const FETCHED: [Sample; 4] = [
    Sample {
        file: "mem/gcc.trace.gz",
        crc32: 0x9ba9_d918,
        format: Format::LoadStore,
        refs: [318_197, 197_486, 0],
        instructions: 1_024_481 + 318_197 + 197_486,
        range: (0, 0xffff_ffff),
        pages: 294,
        lines: 3367,
    },
    Sample {
        file: "mem/mcf.trace.gz",
        crc32: 0xee25_e8ff,
        format: Format::LoadStore,
        refs: [5972, 721_258, 0],
        instructions: 286_478 + 5972 + 721_258,
        range: (0, 0xffff_ffff),
        pages: 1442,
        lines: 90_077,
    },
    Sample {
        file: "mem/swim.trace.gz",
        crc32: 0x048e_ae66,
        format: Format::LoadStore,
        refs: [220_668, 82_525, 0],
        instructions: 873_009 + 220_668 + 82_525,
        range: (0, 0xffff_ffff),
        pages: 135,
        lines: 3453,
    },
    Sample {
        file: "mem/456.hmmer.gz",
        crc32: 0xa203_1086,
        format: Format::RamulatorCpu,
        refs: [565_407, 540_737, 0],
        instructions: 199_984_232,
        range: (0x43_6480, 0x7fff_a007_9bff),
        pages: 564,
        lines: 33_007,
    },
];

impl Sample {
    fn summary(&self, path: &Path) -> Summary {
        let bytes = std::fs::read(path).expect(self.file);
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        assert_eq!(crc.sum(), self.crc32, "{} is another file", self.file);
        let trace = ForeignTrace::at(&[path], None, DATA_ONLY).expect(self.file);
        assert_eq!(trace.format(), self.format);
        trace.summary(DEFAULT_DISTINCT_BOUND).expect(self.file)
    }

    /// Fails if the file at `path` has other counts.
    fn check(&self, path: &Path) {
        let sum = self.summary(path);
        let name = self.file;
        assert_eq!(sum.refs[..3], self.refs, "{name}");
        assert_eq!(sum.refs[3..], [0, 0], "{name}");
        assert_eq!(sum.instructions, self.instructions, "{name}");
        let range = sum.range.expect(name);
        assert_eq!((range.lowest, range.highest), self.range, "{name}");
        assert_eq!(sum.pages.to_string(), self.pages.to_string(), "{name}");
        assert_eq!(sum.lines.to_string(), self.lines.to_string(), "{name}");
        let whole = match self.format {
            Format::DrMemtrace => Ending::Exit(0),
            _ => Ending::End,
        };
        assert_eq!(sum.endings, [whole], "{name}");
        let is_filtered = self.format == Format::RamulatorCpu;
        assert_eq!(sum.filtered, is_filtered, "{name}");
    }
}

#[test]
fn recorded_traces_count_as_an_independent_script_counts_them() {
    for sample in &PACKED {
        sample.check(&packed(sample.file));
    }
}

#[test]
#[ignore = "needs scripts/fetch-traces.sh: ./test.sh foreign-traces"]
fn fetched_traces_count_as_an_independent_script_counts_them() {
    for sample in &FETCHED {
        sample.check(&fetched(sample.file));
    }
}

#[test]
fn threads_of_drmemtrace_are_files_of_one_directory() {
    let all = Options {
        fetches: Fetches::All,
        ..DATA_ONLY
    };
    let folder = packed("traces/mem/drmemtrace");
    let trace = ForeignTrace::at(&[folder], None, all).expect("a trace");
    assert_eq!(trace.threads(), 2);
    let sum = trace.summary(DEFAULT_DISTINCT_BOUND).expect("a summary");
    assert_eq!(sum.calls, 138 + 9);
    assert_eq!(sum.skipped.markers, 2393 + 21_145);
    assert_eq!(sum.skipped.repeats, 78 + 629_999);
    assert_eq!(sum.refs[3], 82_060 + 810_380);
    assert_eq!(sum.instructions, 79_427 + 790_361);
    let ids: Vec<_> = sum
        .identities
        .iter()
        .map(|i| (i.process, i.thread))
        .collect();
    let process = Some(2_765_542);
    assert_eq!(ids, [(process, process), (process, Some(2_765_543))]);
}
