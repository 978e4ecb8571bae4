//! Each format on a run that can be followed by hand: `testdata/mem/chase.s`.

use piebald_trace::foreign::{Ending, Fetches, ForeignTrace, Format, Options, detect};
use piebald_units::op::{MemRef, Next, RefKind, SysOp};

use super::support::{Collected, collect, own, read, read_bytes};

const DATA_ONLY: Options = Options {
    fetches: Fetches::None,
    prefetches: false,
};
const ALL: Options = Options {
    fetches: Fetches::All,
    prefetches: false,
};

/// Files of the same run, with their formats.
const RUN: [(&str, Format); 7] = [
    ("chase.lackey", Format::Lackey),
    ("chase.lackey.zst", Format::Lackey),
    ("chase.champsim", Format::ChampSim),
    ("chase.champsim.xz", Format::ChampSim),
    ("chase.cloudsuite", Format::CloudSuite),
    ("chase.drmemtrace.7.trace.zip", Format::DrMemtrace),
    ("chase.drmemtrace.7.trace.gz", Format::DrMemtrace),
];

/// Kind, address and gap of the run's data references, read off `chase.s`: the list is followed in
/// the order 0, 3, 1, 5, 2, 4 of its 64-byte nodes; then eight numbers at 0x402180; then the stack.
fn by_hand() -> Vec<(RefKind, u64, u32)> {
    let mut refs = Vec::new();
    // lea, mov, mov; later dec, jnz, mov.
    for node in [0, 3, 1, 5, 2, 4] {
        refs.push((RefKind::Load, 0x40_2000 + 64 * node, 3));
    }
    // dec, jnz, xor, lea, mov, add; later add, dec, jnz, add.
    for i in 0..8 {
        refs.push((RefKind::Load, 0x40_2180 + 8 * i, if i == 0 { 6 } else { 4 }));
    }
    let stack = 0x1f_ff00_0578;
    refs.push((RefKind::Store, stack, 4));
    refs.push((RefKind::Load, stack, 1));
    refs.push((RefKind::Store, 0x40_21c0, 1));
    refs.push((RefKind::Update, 0x40_21c8, 1));
    refs
}

fn data(run: &Collected) -> Vec<(RefKind, u64, u32)> {
    run.refs.iter().map(|r| (r.kind, r.addr.0, r.gap)).collect()
}

#[test]
fn every_format_gives_the_run_that_the_source_says() {
    for (name, format) in RUN {
        let run = read(&own(name), format, DATA_ONLY);
        assert_eq!(data(&run), by_hand(), "{name}");
        assert_eq!(run.instructions(), 62, "{name}");
        assert!(run.refs.iter().all(|r| r.size == 8), "{name}");
        assert_eq!(run.failure, None, "{name}");
    }
}

#[test]
fn every_format_is_detected() {
    for (name, format) in RUN {
        assert_eq!(detect(&own(name)).expect(name), format, "{name}");
    }
}

#[test]
fn a_thread_ends_as_far_as_its_format_knows() {
    let end = |name: &str, format| read(&own(name), format, DATA_ONLY).events;
    assert_eq!(
        end("chase.lackey", Format::Lackey),
        [(18, 3, Next::Exit(0))]
    );
    assert_eq!(
        end("chase.champsim", Format::ChampSim),
        [(18, 3, Next::End)]
    );
    let call = Next::Sys(SysOp::Other { number: 231 });
    let expected = [(18, 3, call), (18, 0, Next::Exit(0))];
    assert_eq!(
        end("chase.drmemtrace.7.trace.zip", Format::DrMemtrace),
        expected
    );
}

#[test]
fn sites_are_instruction_addresses_below_4_gib() {
    for (name, format) in RUN {
        let run = read(&own(name), format, DATA_ONLY);
        let sites: Vec<u32> = run.refs.iter().map(|r| r.site).collect();
        assert_eq!(sites[..6], [0x40_100c; 6], "{name}");
        assert_eq!(sites[6..14], [0x40_1021; 8], "{name}");
        assert_eq!(
            sites[14..],
            [0x40_102c, 0x40_102d, 0x40_102e, 0x40_1035],
            "{name}"
        );
    }
}

#[test]
fn registers_tell_a_chase_from_a_sum() {
    for (name, format) in [RUN[2], RUN[4]] {
        let run = read(&own(name), format, DATA_ONLY);
        let deps: Vec<u16> = run.refs.iter().map(|r| r.dep).collect();
        // The first node's address is a constant; each further one was just loaded.
        assert_eq!(deps[..6], [0, 1, 1, 1, 1, 1], "{name}");
        // rdx accumulates but addresses nothing.
        assert_eq!(deps[6..14], [0; 8], "{name}");
        // push stores the sum (loaded last); pop only needs rsp; its value is stored; incq is alone.
        assert_eq!(deps[14..], [1, 0, 1, 0], "{name}");
    }
}

#[test]
fn all_fetches_are_one_per_instruction_and_line() {
    let fetches = |name: &str, format| -> Vec<MemRef> {
        let run = read(&own(name), format, ALL);
        assert_eq!(run.instructions(), 62, "{name}");
        let fetch = |r: &MemRef| r.kind == RefKind::Fetch;
        run.refs.into_iter().filter(fetch).collect()
    };
    // The instructions at 0x40103c and 0x401041 (5 bytes each) lie on either side of 0x401040 and
    // one crosses it.
    let lackey = fetches("chase.lackey", Format::Lackey);
    assert_eq!(lackey.len(), 63);
    assert_eq!(lackey.iter().map(|r| r.gap).sum::<u32>(), 62);
    let crossing: Vec<_> = lackey[59..61].iter().map(|r| (r.addr.0, r.size)).collect();
    assert_eq!(crossing, [(0x40_103c, 4), (0x40_1040, 1)]);
    assert_eq!(
        fetches("chase.drmemtrace.7.trace.gz", Format::DrMemtrace),
        lackey
    );
    let champsim = fetches("chase.champsim", Format::ChampSim);
    assert_eq!(champsim.len(), 62);
    assert!(champsim.iter().all(|r| r.size == 1));
}

#[test]
fn line_fetches_are_one_per_entry_of_a_line() {
    for (name, format) in RUN {
        let run = read(&own(name), format, Options::default());
        let at: Vec<u64> = run
            .refs
            .iter()
            .filter(|r| r.kind == RefKind::Fetch)
            .map(|r| r.addr.0)
            .collect();
        let mut expected = vec![0x40_1000];
        expected.extend([0x40_100c; 5]);
        expected.extend([0x40_1021; 7]);
        // ChampSim does not know that the instruction at 0x40103c reaches into the next line.
        let sized = !matches!(format, Format::ChampSim | Format::CloudSuite);
        expected.push(if sized { 0x40_1040 } else { 0x40_1041 });
        assert_eq!(at, expected, "{name}");
        assert_eq!(run.instructions(), 62, "{name}");
    }
}

#[test]
fn ramulator_cpu_lines_are_a_load_and_perhaps_a_writeback() {
    let run = read_bytes(
        b"3 9618752\n\n0 0x40 130\n",
        Format::RamulatorCpu,
        DATA_ONLY,
    );
    assert_eq!(
        data(&run),
        [
            (RefKind::Load, 9_618_752, 4),
            (RefKind::Load, 0x40, 1),
            (RefKind::Store, 130, 0)
        ]
    );
    let sizes: Vec<u8> = run.refs.iter().map(|r| r.size).collect();
    assert_eq!(sizes, [64, 64, 62]);
    assert_eq!(run.end(), Next::End);
}

#[test]
fn ramulator_dram_lines_are_one_instruction_each() {
    let run = read_bytes(
        b"0x12345680 R\n0x4cbd56c0 W\n",
        Format::RamulatorDram,
        DATA_ONLY,
    );
    assert_eq!(
        data(&run),
        [
            (RefKind::Load, 0x1234_5680, 1),
            (RefKind::Store, 0x4cbd_56c0, 1)
        ]
    );
}

#[test]
fn load_store_counts_the_instructions_between() {
    let text = b"s 0x1fffff50 1\nl 0x1fffff7e 0\r\nl 0xffffffff 6 2 40\n";
    let run = read_bytes(text, Format::LoadStore, DATA_ONLY);
    assert_eq!(
        data(&run),
        [
            (RefKind::Store, 0x1fff_ff50, 2),
            (RefKind::Load, 0x1fff_ff7e, 1),
            (RefKind::Load, 0xffff_ffff, 7)
        ]
    );
    let sizes: Vec<u8> = run.refs.iter().map(|r| r.size).collect();
    assert_eq!(sizes, [4, 2, 1]);
}

#[test]
fn a_reference_above_64_bytes_is_split() {
    let text = b"I  00401000,4\n S 1ffeff0010,144\n L 00402000,8\n";
    let run = read_bytes(text, Format::Lackey, DATA_ONLY);
    let parts: Vec<_> = run.refs.iter().map(|r| (r.addr.0, r.size, r.gap)).collect();
    assert_eq!(
        parts,
        [
            (0x1f_feff_0010, 64, 1),
            (0x1f_feff_0050, 64, 0),
            (0x1f_feff_0090, 16, 0),
            (0x40_2000, 8, 0)
        ]
    );
}

#[test]
fn a_summary_counts_what_the_run_did() {
    let paths = [own("chase.lackey"), own("chase.lackey.zst")];
    let trace = ForeignTrace::at(&paths, None, DATA_ONLY).expect("a trace");
    assert_eq!(trace.threads(), 2);
    let sum = trace.summary(1000).expect("a summary");
    assert_eq!(sum.refs, [30, 4, 2, 0, 0]);
    assert_eq!(sum.total_refs(), 36);
    assert_eq!(sum.instructions, 124);
    // Nodes 0 to 5, the array with out and count, and the stack.
    assert_eq!(sum.lines.to_string(), "9");
    assert_eq!(sum.pages.to_string(), "2");
    let range = sum.range.expect("a range");
    assert_eq!((range.lowest, range.highest), (0x40_2000, 0x1f_ff00_057f));
    assert_eq!(sum.first.expect("first").addr, 0x40_2000);
    assert_eq!(sum.last.expect("last").kind, "update");
    assert_eq!(sum.endings, [Ending::Exit(0), Ending::Exit(0)]);
    assert_eq!(sum.identities[0].process, Some(7));
    assert!(!sum.filtered);
    assert_eq!(
        trace.summary(7).expect("one").lines.to_string(),
        "more than 7"
    );
    assert_eq!(trace.summary(9).expect("one").lines.to_string(), "9");
}

#[test]
fn head_prints_reference_instruction_kind_size_address_site() {
    let trace = ForeignTrace::at(&[own("chase.lackey")], None, Options::default()).expect("one");
    let head = trace.head(0, 4).expect("a head");
    assert_eq!(
        head,
        [
            "#0 1 fetch 7 0x401000 0x401000",
            "#1 3 load 8 0x402000 0x40100c",
            "#2 6 fetch 3 0x40100c 0x40100c",
            "#3 6 load 8 0x4020c0 0x40100c"
        ]
    );
    assert_eq!(trace.head(0, 1000).expect("all").len(), 18 + 14);
}

#[test]
fn format_names_go_both_ways_and_a_wrong_one_lists_them() {
    for format in Format::ALL {
        assert_eq!(format.name().parse::<Format>().expect("a name"), format);
        let json = format!("\"{format}\"");
        assert_eq!(serde_json::to_string(&format).expect("json"), json);
    }
    let error = "valgrind"
        .parse::<Format>()
        .expect_err("no name")
        .to_string();
    for format in Format::ALL {
        assert!(error.contains(format.name()), "{error}");
    }
}

#[test]
fn several_threads_of_one_trace_are_several_files() {
    let paths = [own("chase.lackey"), own("chase.champsim")];
    let error = ForeignTrace::at(&paths, None, DATA_ONLY).expect_err("mixed");
    assert!(error.to_string().contains("champsim"), "{error}");
    let error = ForeignTrace::at::<&str>(&[], None, DATA_ONLY).expect_err("none");
    assert!(error.to_string().contains("at least one"), "{error}");
    // In a directory, the two drmemtrace files are the only ones with ".trace" in their names.
    let trace = ForeignTrace::at(&[own("")], None, DATA_ONLY).expect("a directory");
    assert_eq!((trace.threads(), trace.format()), (2, Format::DrMemtrace));
    assert!(trace.open(2).is_err());
    assert_eq!(collect(&mut trace.open(1).expect("one")).refs.len(), 18);
}
