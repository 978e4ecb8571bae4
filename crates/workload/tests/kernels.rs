//! Reference counts against closed formulas, limits, addresses, determinism.
//! The results themselves are checked by every run.

use crate::common::Counter;
use piebald_trace::recording::model::EventKind;
use piebald_workload::list;

const PLENTY: u64 = u64::MAX;

#[test]
fn triad_makes_two_loads_and_one_store_per_element() {
    let c = Counter::of("triad:240KiB,iterations=3", 1, PLENTY);
    let n = 240 * 1024 / 24;
    assert_eq!(c.count("load", 8), 3 * 2 * n);
    assert_eq!(c.count("store", 8), 3 * n);
    assert_eq!(c.counts.len(), 2);
    assert_eq!(c.setup, 3 * n);
}

#[test]
fn threads_share_out_the_elements() {
    let one = Counter::of("triad:240KiB,iterations=1", 1, PLENTY);
    let four = Counter::of("triad:240KiB,threads=4,iterations=1", 1, PLENTY);
    assert_eq!(one.counts, four.counts);
    assert_eq!(one.maps, four.maps);
    let parts: Vec<u64> = four.measured.values().copied().collect();
    assert_eq!(parts, [7680; 4]);
    let spawned = four
        .events
        .iter()
        .filter(|(t, e)| *t == 0 && matches!(e, EventKind::Call { number: 56, .. }));
    assert_eq!(spawned.count(), 3);
}

#[test]
fn gups_makes_one_update_per_word_and_iteration() {
    let c = Counter::of("gups:64KiB,threads=2,iterations=5", 1, PLENTY);
    assert_eq!(c.count("update", 8), 5 * 8192);
    assert_eq!(c.counts.len(), 1);
}

#[test]
fn chase_loads_each_node_once_per_round() {
    let mut c = Counter {
        addrs: Some(Vec::new()),
        ..Counter::default()
    };
    piebald_workload::Builtin::parse("chase:64KiB,iterations=2")
        .unwrap()
        .run(1, PLENTY, &mut c)
        .unwrap();
    assert_eq!(c.count("load", 8), 2 * 1024);
    let addrs = c.addrs.unwrap();
    let mut first = addrs[..1024].to_vec();
    assert_eq!(first, addrs[1024..]);
    first.sort_unstable();
    assert!(first.windows(2).all(|w| w[1] - w[0] == 64));
}

#[test]
fn mergesort_moves_n_records_in_each_of_log_n_passes() {
    for (size, passes) in [("64KiB", 10), ("100KiB", 11)] {
        let n = if size == "64KiB" { 1024 } else { 1600 };
        let c = Counter::of(&format!("mergesort:{size},iterations=1"), 1, PLENTY);
        assert_eq!(c.count("load", 32), 2 * n * passes);
        assert_eq!(c.count("store", 32), 2 * n * passes + 2 * n);
        // Every key is loaded once per pass, but for those of a run that is
        // left over when the other is used up.
        assert!(c.count("load", 8) <= n * passes);
        assert!(c.count("load", 8) > n * passes * 3 / 4);
    }
}

#[test]
fn fft_makes_4_n_log_n_references_per_direction_and_pass() {
    for (n, log) in [(256u64, 8u64), (512, 9)] {
        let c = Counter::of(&format!("fft:{n},iterations=1"), 1, PLENTY);
        let swaps = (n - (1 << log.div_ceil(2))) / 2;
        let each = 2 * (n / 2 * log * 4 + swaps * 4) + 2 * n;
        assert_eq!(c.count("load", 8), each, "n = {n}");
        assert_eq!(c.count("store", 8), each, "n = {n}");
    }
}

#[test]
fn lu_makes_three_references_per_element_that_it_updates() {
    let n = 40u64;
    let c = Counter::of("lu:40,iterations=1", 1, PLENTY);
    let below: u64 = (1..n).sum();
    let squares: u64 = (1..n).map(|m| m * m).sum();
    assert_eq!(c.count("store", 4), n);
    // Swaps store two pointers each; at most one per column.
    let fixed_stores = n * n + below + squares;
    let swaps = (c.count("store", 8) - fixed_stores) / 2;
    assert!((n / 2..n).contains(&swaps), "{swaps} swaps");
    let copy = 2 * n + n * n;
    let pivots = 2 * (n + below) + 2 * n;
    let scale = 2 * (n - 1) + 2 * below;
    let update = 3 * below + 2 * squares;
    assert_eq!(
        c.count("load", 8),
        copy + pivots + scale + update + 2 * swaps
    );
}

#[test]
fn smm_makes_three_loads_per_element_and_three_references_per_row() {
    let (n, nz) = (500, 5000);
    let c = Counter::of("smm:500,nz=5000,iterations=2", 1, PLENTY);
    assert_eq!(c.count("load", 4), 2 * (nz + 2 * n));
    assert_eq!(c.count("load", 8), 2 * 2 * nz);
    assert_eq!(c.count("store", 8), 2 * n);
    assert_eq!(c.setup, 2 * n + 2 * nz + n + 1);
}

#[test]
fn sor_makes_six_references_per_inner_point() {
    let n = 50;
    let c = Counter::of("sor:50,iterations=2", 1, PLENTY);
    let inner = (n - 2) * (n - 2);
    assert_eq!(c.count("load", 8), 2 * (5 * inner + 3 * (n - 2)));
    assert_eq!(c.count("store", 8), 2 * inner);
}

#[test]
fn phold_updates_one_process_per_hold_and_sifts_log_n_levels() {
    let n = 1023;
    let c = Counter::of("phold:1023,processes=50,iterations=3", 1, PLENTY);
    let holds = 3 * n;
    assert_eq!(c.count("update", 8), holds);
    assert_eq!(c.count("store", 8), holds);
    // Entries: the top and the last, what is pulled up or pushed down, and two
    // placed. The heap has 10 levels.
    let pairs = c.count("load", 8) - holds;
    assert!(pairs <= holds * 2 * 9, "{pairs}");
    assert!(pairs >= holds * 2 * 4, "{pairs}");
    assert!(c.count("store", 16) >= 2 * holds);
}

#[test]
fn hash_join_probes_once_per_fact_row() {
    let c = Counter::of("hashjoin:1MiB,dimension=1000,iterations=1", 1, PLENTY);
    let facts = (1 << 20) / 128;
    let tuples_walked = c.count("load", 4);
    // Per row key and bucket; per tuple its link; per match three more.
    let matches = (c.count("load", 8) - 2 * facts - tuples_walked) / 3;
    assert_eq!(c.count("load", 8), 2 * facts + tuples_walked + 3 * matches);
    // 10 % of the keys are selected.
    assert!((facts * 7 / 100..facts * 13 / 100).contains(&matches));
    assert!(tuples_walked >= matches);
    let reads = c
        .events
        .iter()
        .filter(|(_, e)| matches!(e, EventKind::Call { number: 17, .. }))
        .count();
    assert_eq!(reads, (1 << 20) / 8192 + 1000usize.div_ceil(32));
}

#[test]
fn sequential_scan_updates_one_group_per_row() {
    let c = Counter::of("seqscan:1MiB,groups=10,iterations=2", 1, PLENTY);
    let rows = 2 * (1 << 20) / 128;
    assert_eq!(c.count("load", 8), 3 * rows);
    assert_eq!(c.count("update", 8), 2 * rows);
}

#[test]
fn scan_makes_as_many_instructions_for_32_bytes_as_it_is_told() {
    let made = |text: &str| {
        let c = Counter::of(text, 1, PLENTY);
        assert_eq!(c.count("load", 32), 2048);
        c.instrs
    };
    let four = made("scan:64KiB,iterations=1");
    assert_eq!(made("scan:64KiB,iterations=1,instrs=4"), four);
    assert_eq!(made("scan:64KiB,iterations=1,instrs=20"), four + 16 * 2048);
}

#[test]
fn scan_loads_each_byte_once_and_reads_in_chunks() {
    let c = Counter::of("scan:100KiB,chunk=32KiB,iterations=2", 1, PLENTY);
    assert_eq!(c.count("load", 32), 2 * 100 * 1024 / 32);
    let reads: Vec<(u64, i64)> = c
        .events
        .iter()
        .filter_map(|(_, e)| match e {
            EventKind::Call {
                number: 17,
                ret: Some(len),
                position: Some(at),
                ..
            } => Some((*at, *len)),
            _ => None,
        })
        .collect();
    let pass = [(0, 32768), (32768, 32768), (65536, 32768), (98304, 4096)];
    assert_eq!(reads, [pass, pass].concat());
}

fn io(c: &Counter, number: u32) -> Vec<(u64, u64)> {
    let calls = c.events.iter().filter_map(|(_, e)| match e {
        EventKind::Call {
            number: n,
            ret: Some(len),
            position,
            ..
        } if *n == number => Some((position.unwrap_or(0), *len as u64)),
        _ => None,
    });
    calls.collect()
}

const PREAD: u32 = 17;
const PWRITE: u32 = 18;
const UNLINK: u32 = 87;

#[test]
fn dense_product_loads_two_elements_per_step_of_the_inner_loop() {
    let n = 20;
    let c = Counter::of("matmul:20,iterations=2", 1, PLENTY);
    assert_eq!(c.count("load", 8), 2 * 2 * n * n * n);
    assert_eq!(c.count("store", 8), 2 * n * n);
    assert_eq!(c.setup, 3 * n * n);
}

#[test]
fn a_file_is_sorted_by_reading_and_writing_it_twice() {
    let c = Counter::of(
        "filesort:100KiB,block=16KiB,call=4KiB,iterations=1",
        1,
        PLENTY,
    );
    let n = 100 * 1024 / 32;
    for number in [PREAD, PWRITE] {
        let bytes: u64 = io(&c, number).iter().map(|&(_, len)| len).sum();
        assert_eq!(bytes, 2 * n * 32, "{number}");
    }
    // Six whole blocks of 512 records in 9 passes, one of 128 in 7, and the merge.
    let moves = 6 * 512 * 9 + 128 * 7 + n;
    assert_eq!(c.count("store", 32), moves);
    assert_eq!(c.count("load", 32), moves);
}

#[test]
fn a_pool_that_is_there_is_not_made_and_has_the_same_transactions() {
    let calls = |text: &str| {
        let c = Counter::of(text, 3, PLENTY);
        let all = |number| {
            io(&c, number)
                .iter()
                .map(|&(_, len)| len)
                .collect::<Vec<u64>>()
        };
        (all(PREAD), all(PWRITE))
    };
    let text = "postmark:20,low=1KiB,high=8KiB,iterations=200";
    let (made, there) = (calls(text), calls(&format!("{text},there=1")));
    assert_eq!(made.0, there.0);
    // Files of up to 8 KiB take one or two calls each.
    assert!(made.1.len() >= there.1.len() + 20);
    assert!(made.1.ends_with(&there.1) && !there.1.is_empty());
    // Without a buffer the calls are the same, and four loads for each file that is chosen are left.
    let bare = Counter::of(&format!("{text},there=1,buffering=0"), 3, PLENTY);
    assert_eq!(
        (bare.count("load", 32), bare.count("load", 8)),
        (0, 200 * 8)
    );
    assert_eq!(calls(&format!("{text},there=1,buffering=0")), there);
}

#[test]
fn postmark_opens_for_each_file_that_it_touches_and_unlinks_what_it_deletes() {
    let text = "postmark:20,low=1KiB,high=8KiB,iterations=200";
    let c = Counter::of(text, 3, PLENTY);
    let created = c.events.iter().filter(|(_, e)| match e {
        EventKind::Call {
            number: 257,
            file: Some(f),
            ..
        } => f.size == 0,
        _ => false,
    });
    let (created, deleted) = (created.count(), io(&c, UNLINK).len());
    // One creation or deletion for each transaction, half of each.
    assert_eq!(created + deleted, 20 + 200);
    assert!((70..130).contains(&deleted), "{deleted}");
    let copies = c.count("load", 32);
    assert_eq!(copies, c.count("store", 32));
    assert_eq!(c.count("load", 8) % 4, 0);
    assert!(!io(&c, PREAD).is_empty());
    assert!(io(&c, PWRITE).len() > io(&c, PREAD).len());
}

#[test]
fn random_reads_are_whole_blocks_of_the_file() {
    let c = Counter::of("randread:1MiB,iterations=500", 1, PLENTY);
    let reads = io(&c, PREAD);
    assert_eq!(reads.len(), 500);
    assert!(
        reads
            .iter()
            .all(|&(at, len)| at % 4096 == 0 && at < 1 << 20 && len == 4096)
    );
    let blocks: std::collections::BTreeSet<u64> = reads.iter().map(|r| r.0).collect();
    // Of 256 blocks, 256 (1 - e^(-500/256)) = 220 are expected.
    assert!((195..245).contains(&blocks.len()), "{}", blocks.len());
}

#[test]
fn files_are_read_whole_and_worked_on_line_by_line() {
    let text = "readfiles:4,size=64KiB,chunk=16KiB,threads=2,instrs=20,width=16,iterations=3";
    let c = Counter::of(text, 1, PLENTY);
    let offsets: Vec<u64> = io(&c, PREAD).iter().map(|r| r.0).collect();
    assert_eq!(offsets, [0, 16384, 32768, 49152].repeat(2 * 3));
    assert_eq!(c.count("load", 16), 2 * 3 * (64 << 10) / 16);
    let grep = Counter::of("readfiles:2,chunk=96KiB,instrs=12,iterations=1", 1, PLENTY);
    let calls = [(0, 98304), (98304, 98304), (196_608, 65536)];
    assert_eq!(io(&grep, PREAD), calls);
    assert_eq!(grep.count("load", 32), (256 << 10) / 32);
    let plain = Counter::of("readfiles:4,iterations=5", 1, PLENTY);
    assert_eq!(io(&plain, PREAD), [(0, 256 << 10)].repeat(5));
    assert_eq!(plain.measured[&0], 2 * 5);
}

#[test]
fn two_files_at_once_take_turns_call_by_call() {
    let c = Counter::of(
        "readfiles:4,size=16KiB,chunk=4KiB,pair=1,iterations=10",
        1,
        PLENTY,
    );
    let calls: Vec<(u64, u64)> = c
        .events
        .iter()
        .filter_map(|(_, e)| match e {
            EventKind::Call {
                number: PREAD,
                args,
                ..
            } => Some((args[3], args[1])),
            _ => None,
        })
        .collect();
    assert_eq!(calls.len(), 10 * 2 * 4);
    for pair in calls.chunks(2) {
        assert_eq!(pair[0].0, pair[1].0, "one place of both files");
        assert_ne!(pair[0].1, pair[1].1, "two buffers");
    }
}

#[test]
fn a_file_is_read_once_more_between_two_references() {
    let text = "reread:64KiB,chunk=48KiB,others=2,iterations=2";
    let calls_of = |text: &str| {
        let c = Counter::of(text, 1, PLENTY);
        assert_eq!(c.measured[&0], 2 * 2);
        let call = |e: &EventKind| match e {
            EventKind::Call {
                number: PREAD,
                args,
                ..
            } => Some((args[0], args[1], args[3])),
            _ => None,
        };
        c.events
            .iter()
            .filter_map(|(_, e)| call(e))
            .collect::<Vec<_>>()
    };
    let (calls, apart) = (calls_of(text), calls_of(&format!("{text},apart=1")));
    let files: Vec<u64> = calls.chunks(2).map(|pair| pair[0].0).collect();
    let [own, a, b] = [files[0], files[3], files[4]];
    assert_eq!(files, [own, own, own, a, b, own, a, b, own]);
    assert!(own != a && own != b && a != b);
    assert!(
        calls
            .chunks(2)
            .all(|pair| (pair[0].2, pair[1].2) == (0, 48 << 10))
    );
    assert!(calls.iter().all(|call| call.1 == calls[0].1), "one buffer");
    for (file, buffer, _) in &apart {
        assert_eq!(*buffer == apart[0].1, *file == own, "two buffers");
    }
    assert!(piebald_workload::Builtin::parse("reread:64KiB,chunk=128KiB").is_err());
}

#[test]
fn a_lookup_reads_one_chunk_and_halves_it() {
    let c = Counter::of(
        "lookup:2,size=64KiB,chunk=16KiB,threads=2,iterations=5",
        1,
        PLENTY,
    );
    // 256 records in a chunk.
    assert_eq!(c.count("load", 8), 2 * 5 * 8);
    assert_eq!(c.count("load", 32), 2 * 5 * 2);
    assert!(
        io(&c, PREAD)
            .iter()
            .all(|&(at, len)| at % 16384 == 0 && len == 16384)
    );
}

/// Small parameters under which every kernel completes an iteration quickly.
fn small(name: &str) -> String {
    match name {
        "fft" => "fft:1024".to_owned(),
        "lu" | "sor" => format!("{name}:40"),
        "smm" => "smm:1000,nz=5000".to_owned(),
        "phold" => "phold:1000,processes=100".to_owned(),
        "hashjoin" => "hashjoin:1MiB,dimension=1000".to_owned(),
        "matmul" => "matmul:30".to_owned(),
        "filesort" => "filesort:64KiB,block=8KiB".to_owned(),
        "postmark" => "postmark:20,low=1KiB,high=8KiB".to_owned(),
        "readfiles" => "readfiles:4,size=4KiB,chunk=4KiB,instrs=16".to_owned(),
        "lookup" => "lookup:2,size=16KiB,chunk=4KiB".to_owned(),
        _ => format!("{name}:64KiB"),
    }
}

#[test]
fn every_reference_lies_in_a_mapping() {
    for spec in list() {
        let c = Counter::of(&small(spec.name), 7, 300_000);
        assert_eq!(c.outside, 0, "{}", spec.name);
    }
}

#[test]
fn equal_seeds_give_equal_tapes() {
    for spec in list() {
        let text = small(spec.name);
        let a = Counter::of(&text, 7, 100_000);
        let b = Counter::of(&text, 7, 100_000);
        assert_eq!(a.hash, b.hash, "{text}");
        assert_eq!(a.events, b.events, "{text}");
    }
}

#[test]
fn random_programs_differ_between_seeds() {
    for name in ["gups", "chase", "mergesort"] {
        let a = Counter::of(&small(name), 7, 100_000);
        let b = Counter::of(&small(name), 8, 100_000);
        assert_ne!(a.hash, b.hash, "{name}");
    }
}

#[test]
fn the_limit_is_used_up_but_for_less_than_one_block() {
    for spec in list() {
        for refs in [1000, 77_777] {
            let c = Counter::of(&small(spec.name), 7, refs);
            let most = c.blocks.iter().map(|b| b.accesses.len()).max().unwrap() as u64;
            for (thread, &n) in &c.measured {
                assert!(
                    n <= refs && n + most > refs,
                    "{} thread {thread}: {n}",
                    spec.name
                );
            }
        }
    }
}

#[test]
fn a_cut_tape_has_no_exit_and_a_complete_one_has() {
    let exits = |text: &str| {
        let c = Counter::of(text, 7, 50_000);
        c.events
            .iter()
            .filter(|(_, e)| matches!(e, EventKind::Exit { status: 0 }))
            .count()
    };
    assert_eq!(exits("triad:64KiB,threads=2"), 0);
    assert_eq!(exits("triad:64KiB,threads=2,iterations=1"), 2);
}
