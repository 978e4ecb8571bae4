//! drmemtrace entries, type by type, and the rules for register dependences.

use piebald_trace::foreign::{Fetches, ForeignTrace, Format, Options};
use piebald_units::op::{Next, RefKind, SysOp};

use super::support::{Collected, Scratch, collect, read_bytes};

type Entry = (u16, u16, u64);

const BEGIN: [Entry; 5] = [
    (25, 0, 6),
    (28, 12, 6),
    (28, 9, 0xe40),
    (22, 8, 70),
    (24, 8, 7),
];
const NONE: Options = Options {
    fetches: Fetches::None,
    prefetches: false,
};

fn bytes(entries: &[Entry]) -> Vec<u8> {
    let all = BEGIN.iter().chain(entries);
    all.flat_map(|(kind, size, value)| {
        let mut b = Vec::new();
        b.extend(kind.to_le_bytes());
        b.extend(size.to_le_bytes());
        b.extend(value.to_le_bytes());
        b
    })
    .collect()
}

fn run(entries: &[Entry], options: Options) -> Collected {
    read_bytes(&bytes(entries), Format::DrMemtrace, options)
}

fn kinds(run: &Collected) -> Vec<(RefKind, u64, u8, u32)> {
    run.refs
        .iter()
        .map(|r| (r.kind, r.addr.0, r.size, r.gap))
        .collect()
}

#[test]
fn a_load_and_store_of_the_same_bytes_are_an_update() {
    let got = run(
        &[
            (10, 3, 0x1000),
            (0, 8, 0x2000),
            (1, 8, 0x2000),
            (10, 3, 0x1003),
            (0, 8, 0x2000),
            (1, 4, 0x2000),
            (10, 3, 0x1006),
            (0, 8, 0x2000),
            (10, 3, 0x1009),
            (1, 8, 0x2000),
            (10, 3, 0x100c),
            (0, 4, 0x3000),
        ],
        NONE,
    );
    assert_eq!(
        kinds(&got),
        [
            (RefKind::Update, 0x2000, 8, 1),
            (RefKind::Load, 0x2000, 8, 1),
            (RefKind::Store, 0x2000, 4, 0),
            (RefKind::Load, 0x2000, 8, 1),
            (RefKind::Store, 0x2000, 8, 1),
            (RefKind::Load, 0x3000, 4, 1),
        ]
    );
    assert_eq!(got.end(), Next::End, "no thread exit: the trace was cut");
}

#[test]
fn system_calls_end_a_batch_with_their_number() {
    let got = run(
        &[
            (10, 2, 0x1000),
            (0, 8, 0x2000),
            (10, 2, 0x1002),
            (28, 25, 60),
            (28, 26, 0),
            (10, 1, 0x1004),
            (23, 8, 70),
            (26, 0, 0),
        ],
        NONE,
    );
    let call = Next::Sys(SysOp::Other { number: 60 });
    assert_eq!(got.events, [(1, 1, call), (1, 1, Next::Exit(0))]);
}

#[test]
fn every_instruction_type_retires_one() {
    for kind in (10..=16).chain([31, 48, 49]) {
        let got = run(&[(kind, 4, 0x1000)], NONE);
        assert_eq!(got.instructions(), 1, "type {kind}");
    }
}

#[test]
fn repeated_string_iterations_keep_their_data_but_retire_nothing() {
    let entries = [
        (10, 3, 0x1000),
        (1, 8, 0x2000),
        (29, 3, 0x1000),
        (1, 8, 0x2008),
        (30, 3, 0x1000),
        (1, 8, 0x2010),
        (30, 4, 0x1003),
        (1, 8, 0x3000),
    ];
    let options = Options {
        fetches: Fetches::All,
        ..NONE
    };
    let got = run(&entries, options);
    assert_eq!(
        kinds(&got),
        [
            (RefKind::Fetch, 0x1000, 3, 1),
            (RefKind::Store, 0x2000, 8, 0),
            (RefKind::Store, 0x2008, 8, 0),
            (RefKind::Store, 0x2010, 8, 0),
            (RefKind::Fetch, 0x1003, 4, 1),
            (RefKind::Store, 0x3000, 8, 0),
        ]
    );
}

#[test]
fn a_bundle_is_the_instructions_that_follow() {
    let sizes = u64::from_le_bytes([2, 7, 1, 0, 0, 0, 0, 0]);
    let options = Options {
        fetches: Fetches::All,
        ..NONE
    };
    let got = run(&[(10, 4, 0x1000), (17, 3, sizes), (0, 8, 0x2000)], options);
    let at: Vec<_> = got
        .refs
        .iter()
        .map(|r| (r.addr.0, r.size, r.site))
        .collect();
    assert_eq!(
        at,
        [
            (0x1000, 4, 0x1000),
            (0x1004, 2, 0x1004),
            (0x1006, 7, 0x1006),
            (0x100d, 1, 0x100d),
            (0x2000, 8, 0x100d)
        ]
    );
}

#[test]
fn prefetches_and_flushes_are_counted_or_handed_on() {
    let entries: Vec<Entry> = (2..=9)
        .chain([18, 19, 20, 21, 27])
        .chain(32..=46)
        .map(|kind| (kind, 0, 0x4000))
        .collect();
    let file = Scratch::new("x.drmemtrace", &bytes(&entries));
    let open = |options| {
        let trace = ForeignTrace::at(&[&file.0], None, options).expect("a trace");
        trace.open(0).expect("a thread")
    };
    let mut source = open(NONE);
    assert_eq!(collect(&mut source).refs, []);
    let skipped = source.skipped();
    assert_eq!(
        (skipped.prefetches, skipped.flushes, skipped.markers),
        (24, 4, 2)
    );
    let mut source = open(Options {
        prefetches: true,
        ..NONE
    });
    let kinds: Vec<_> = collect(&mut source).refs.iter().map(|r| r.kind).collect();
    let mut expected = vec![RefKind::Load; 4];
    expected.push(RefKind::LoadNt);
    expected.push(RefKind::Load);
    expected.extend([RefKind::LoadNt; 3]);
    assert_eq!(kinds, expected);
    assert_eq!(source.skipped().prefetches, 15);
}

#[test]
fn identity_and_cache_filter_are_told() {
    let filtered = [(28, 9, 0x140), (10, 1, 0x1000)];
    let file = Scratch::new("x.drmemtrace", &bytes(&filtered));
    let trace = ForeignTrace::at(&[&file.0], None, NONE).expect("a trace");
    let sum = trace.summary(10).expect("a summary");
    assert!(sum.filtered);
    assert_eq!(sum.identities[0].thread, Some(70));
    assert_eq!(sum.identities[0].process, Some(7));
}

#[test]
fn what_may_not_stand_there_is_refused_with_its_place() {
    let cases: [(&[Entry], &str); 9] = [
        (
            &[(50, 1, 2)],
            "byte 60: the entry type is 50; allowed: an entry type from 0 to 49",
        ),
        (
            &[(22, 8, 71)],
            "byte 60: the thread id is 71; allowed: one thread per file",
        ),
        (
            &[(25, 0, 6)],
            "byte 60: the entry type is 25; allowed: one header",
        ),
        (
            &[(10, 16, 9)],
            "byte 60: the size of an instruction is 16; allowed: 1 to 15",
        ),
        (
            &[(10, 2, 9), (0, 0, 9)],
            "byte 72: the size of a data reference is 0; allowed: 1 to",
        ),
        (
            &[(17, 2, 0x101)],
            "byte 60: the entry type is 17; allowed: an instruction before",
        ),
        (
            &[(10, 1, 1), (17, 9, 1)],
            "byte 72: the number of instructions in a bundle is 9",
        ),
        (
            &[(23, 8, 70), (10, 1, 1)],
            "byte 72: the entry type is 10; allowed: after the thread's",
        ),
        (
            &[(26, 0, 0), (28, 2, 1)],
            "byte 72: the entry type is 28; allowed: nothing after",
        ),
    ];
    for (entries, message) in cases {
        let got = run(entries, NONE);
        assert_eq!(got.end(), Next::Broken);
        let failure = got.failure.expect("a reason");
        assert!(failure.contains(message), "{failure}\nlacks {message}");
    }
}

#[test]
fn a_load_before_damage_is_not_lost() {
    let got = run(&[(10, 2, 9), (0, 8, 0x2000), (99, 0, 0)], NONE);
    assert_eq!(kinds(&got), [(RefKind::Load, 0x2000, 8, 1)]);
    assert_eq!(got.end(), Next::Broken);
}

/// A ChampSim instruction: destination registers, sources, stored and loaded address.
fn record(ip: u64, dreg: [u8; 2], sreg: [u8; 4], stored: u64, loaded: u64) -> Vec<u8> {
    let mut r = vec![0; 64];
    r[..8].copy_from_slice(&ip.to_le_bytes());
    r[10..12].copy_from_slice(&dreg);
    r[12..16].copy_from_slice(&sreg);
    r[16..24].copy_from_slice(&stored.to_le_bytes());
    r[32..40].copy_from_slice(&loaded.to_le_bytes());
    r
}

fn deps(records: &[Vec<u8>]) -> Vec<u16> {
    let run = read_bytes(&records.concat(), Format::ChampSim, NONE);
    assert_eq!(run.failure, None);
    run.refs.iter().map(|r| r.dep).collect()
}

#[test]
fn dependences_pass_through_computation_and_stop_at_constants() {
    let chain = [
        record(1, [10, 0], [0; 4], 0, 0x1000),
        record(2, [7, 0], [0; 4], 0, 0x2000),
        // rbx = rax + rbx: the later of the two loads; then rcx = rbx.
        record(3, [7, 25], [10, 7, 0, 0], 0, 0),
        record(4, [9, 0], [7, 0, 0, 0], 0, 0),
        record(5, [8, 0], [10, 0, 0, 0], 0, 0x3000),
        record(6, [8, 0], [9, 0, 0, 0], 0, 0x4000),
        // rcx becomes a constant.
        record(7, [9, 0], [0; 4], 0, 0),
        record(8, [8, 0], [9, 0, 0, 0], 0, 0x5000),
    ];
    // 5 reads rax: two loads back (loads 1 and 2 before it); 6 reads rcx, from load 2: two back.
    assert_eq!(deps(&chain), [0, 0, 2, 2, 0]);
}

#[test]
fn flags_and_stack_pointer_do_not_chain() {
    let run = [
        // cmp [rax], 0 sets the flags; cmov-like load reads them.
        record(1, [25, 0], [10, 0, 0, 0], 0, 0x1000),
        record(2, [8, 0], [25, 7, 0, 0], 0, 0x2000),
        // Two pops.
        record(3, [8, 6], [6, 0, 0, 0], 0, 0x3000),
        record(4, [9, 6], [6, 0, 0, 0], 0, 0x3008),
        // mov rsp, [rax]; pop.
        record(5, [6, 0], [10, 0, 0, 0], 0, 0x4000),
        record(6, [9, 6], [6, 0, 0, 0], 0, 0x5000),
    ];
    assert_eq!(deps(&run), [0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_vector_sum_is_no_chain_but_an_indexed_move_is() {
    let run = [
        record(1, [90, 0], [90, 7, 0, 0], 0, 0x1000),
        record(2, [90, 0], [90, 7, 0, 0], 0, 0x1008),
        record(3, [10, 0], [10, 7, 0, 0], 0, 0x2000),
        record(4, [10, 0], [10, 7, 0, 0], 0, 0x3000),
    ];
    assert_eq!(deps(&run), [0, 0, 0, 1]);
}

#[test]
fn a_distance_beyond_16_bits_is_no_dependence() {
    for (between, dep) in [(65_533, 65_534), (65_534, 0)] {
        let mut records = vec![record(1, [10, 0], [0; 4], 0, 0x1000)];
        records.extend((0..between).map(|_| record(2, [9, 0], [0; 4], 0, 0x2000)));
        records.push(record(3, [8, 0], [10, 0, 0, 0], 0, 0x3000));
        assert_eq!(deps(&records).last(), Some(&dep), "{between} loads between");
    }
}
