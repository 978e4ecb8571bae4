//! Reads that MFC places, on a machine of two chips with two cores each.
//!
//! Each core has 64 + 256 KiB of its own, each chip 256 KiB more; a file of 300 KiB fits
//! on a core once.

use crate::kit::{Bench, FOREVER, Script, Step, loads, program, sys};
use piebald_hw::{disk, presets, spec::MachineSpec};
use piebald_os_model::{
    file::{FileConfig, Layout},
    replace::PolicySpec,
};
use piebald_policy::mfc::{Competitive, MinRead, Second};
use piebald_sim::{Files, ProgramSetup, ReadUse, Reads, Region, Threads};
use piebald_units::{Bytes, FileId, Lba, Picos, VirtAddr, op::SysOp};

const KIB: u64 = 1024;
const FILE: u64 = 300 * KIB;
const BUFFER: u64 = 0x100_0000;
const SECOND_BUFFER: u64 = 0x200_0000;

fn machine() -> MachineSpec {
    let mut spec = presets::load("opteron4x4").expect("a preset");
    (spec.core.sockets, spec.core.per_socket) = (2, 2);
    spec.links.hops.clear();
    for cache in &mut spec.cache {
        match cache.level {
            2 => cache.size = Bytes(256 * KIB),
            3 => (cache.size, cache.shared_by) = (Bytes(256 * KIB), 2),
            _ => {}
        }
    }
    spec.memory.size = Bytes(256 * Bytes::MIB);
    spec
}

fn mfc() -> Reads {
    let mut reads = Reads::default();
    reads.config.competitive = Competitive::Off;
    reads
}

fn bench(reads: Option<Reads>) -> Bench {
    Bench {
        spec: machine(),
        threads: Threads {
            balance: false,
            migration: [9_200_000, 10_500_000, 11_700_000, 12_900_000].map(Picos),
            reads,
            first: None,
        },
        ..Bench::default()
    }
}

fn read(file: u64, offset: u64, len: u64, buffer: u64) -> Step {
    sys(SysOp::Read {
        file: FileId(file),
        offset,
        len,
        buffer: VirtAddr(buffer),
    })
}

/// A whole file by calls of 4 KiB into one page.
fn whole(file: u64) -> impl Iterator<Item = Step> {
    (0..FILE / 4096).map(move |n| read(file, n * 4096, 4096, BUFFER))
}

/// What is measured begins with the first reference.
fn script(steps: impl Iterator<Item = Step>) -> Script {
    let begin = [loads(0x80_0000, 64, 1)];
    Script::new(begin.into_iter().chain(steps).collect())
}

fn run(bench: &Bench, cores: &str, steps: impl Iterator<Item = Step>) -> Region {
    let program = ProgramSetup {
        budget: FOREVER,
        ..program("reader", cores, script(steps))
    };
    bench.run(vec![program]).expect("runs").programs[0].region
}

/// Two files in turn, each whole.
fn in_turn(times: u64) -> impl Iterator<Item = Step> {
    (0..times).flat_map(|n| whole(1 + n % 2))
}

/// MFC is told how long files are when they are read: here, whole at once, to nowhere.
fn lengths(files: u64) -> impl Iterator<Item = Step> {
    (1..=files).map(|file| read(file, 0, FILE, 0))
}

#[test]
fn a_thread_goes_back_and_forth_between_the_holders_of_its_files() {
    let steps = |times| lengths(2).chain(in_turn(times));
    let with = run(&bench(Some(mfc())), "0-3", steps(10));
    let without = run(&bench(None), "0-3", steps(10));
    let calls = 2 + 10 * FILE / 4096;
    assert_eq!(with.reads.calls, calls);
    assert_eq!(with.reads.bytes, 12 * FILE);
    // To file 2's core in the first call for it, and then for each file.
    assert_eq!((with.reads.moves, with.reads.migrations), (11, 11));
    assert_eq!(with.reads.past, 0);
    assert_eq!((without.reads.moves, without.reads.migrations), (0, 0));
    assert_eq!(
        (without.reads.calls, without.reads.bytes),
        (calls, 12 * FILE)
    );
    // Each file comes from memory once; on one core they push one another out.
    let [with, without] = [steps(30), steps(30)]
        .into_iter()
        .zip([Some(mfc()), None])
        .map(|(steps, reads)| run(&bench(reads), "0-3", steps).counters)
        .map(|c| c.memory_reads + c.prefetch_reads)
        .collect::<Vec<_>>()[..]
    else {
        panic!("two runs");
    };
    assert!(3 * with < without, "{with} {without}");
}

#[test]
fn a_pinned_reader_stays() {
    let region = run(&bench(Some(mfc())), "2", lengths(2).chain(in_turn(4)));
    let expected = ReadUse {
        calls: 2 + 4 * FILE / 4096,
        bytes: 6 * FILE,
        ..region.reads
    };
    assert_eq!(region.reads, expected);
    assert_eq!((region.reads.moves, region.reads.migrations), (0, 0));
}

#[test]
fn what_moving_and_asking_cost_is_charged() {
    let time = |change: &dyn Fn(&mut Threads)| {
        let mut bench = bench(Some(mfc()));
        change(&mut bench.threads);
        run(&bench, "0-1", lengths(2).chain(in_turn(10)))
    };
    let free = time(&|t| {
        t.migration = [Picos(1); 4];
        let reads = t.reads.as_mut().expect("placed");
        (reads.access, reads.assignment) = (Picos(0), Picos(0));
    });
    let migrations = time(&|t| {
        t.migration = [Picos(9_200_000); 4];
        let reads = t.reads.as_mut().expect("placed");
        (reads.access, reads.assignment) = (Picos(0), Picos(0));
    });
    let asks = time(&|t| {
        t.migration = [Picos(1); 4];
        let reads = t.reads.as_mut().expect("placed");
        (reads.access, reads.assignment) = (Picos(1_000_000), Picos(1_000_000));
    });
    assert_eq!(free.reads, migrations.reads);
    assert_eq!(free.reads.moves, 11);
    let more = |region: Region| region.time.since(free.time).0 as f64 * 1e-6;
    let [migrations, asked] = [more(migrations), more(asks)];
    let calls = free.reads.calls as f64;
    // Ticks fall elsewhere.
    assert!((migrations - 11.0 * 9.2).abs() < 10.0, "{migrations} us");
    assert!((asked - calls).abs() < 0.03 * calls, "{asked} us");
}

#[test]
fn files_that_are_less_popular_than_all_that_caches_hold_are_read_past_them() {
    // Room for one file on each of four cores.
    let popular = (0..3).flat_map(|_| (1..=4).flat_map(whole));
    let steps = lengths(4)
        .chain(popular)
        .chain(lengths(12).skip(4))
        .chain(whole(9));
    let region = run(&bench(Some(mfc())), "0-3", steps);
    assert_eq!(region.reads.parts_past, 8 + FILE / 4096);
    assert_eq!(region.reads.past, 9 * FILE);
}

#[test]
fn small_files_are_read_where_the_thread_is() {
    let steps = || lengths(6).chain(in_turn(4));
    let mut reads = mfc();
    reads.config.min_read = MinRead::Fixed(Bytes(FILE + 1));
    let region = run(&bench(Some(reads.clone())), "0-3", steps());
    assert_eq!((region.reads.moves, region.reads.past), (0, 0));
    // Lines 3 and 4 come before anything that takes time.
    (reads.access, reads.assignment) = (Picos(7_000_000), Picos(7_000_000));
    assert_eq!(run(&bench(Some(reads)), "0-3", steps()).time, region.time);
}

#[test]
fn one_call_for_a_large_file_goes_where_its_chunks_are() {
    // 1 MiB in one call: of its four chunks, two fit on a core and in its part of the chip's
    // cache, so that a call goes there and back.
    let steps = || (0..3).map(|_| read(1, 0, 1024 * KIB, BUFFER));
    let with = run(&bench(Some(mfc())), "0-3", steps());
    let without = run(&bench(None), "0-3", steps());
    assert_eq!((with.reads.calls, with.reads.bytes), (3, 3072 * KIB));
    assert_eq!((with.reads.moves, with.reads.migrations), (5, 5));
    assert_eq!(with.faults, without.faults);
}

#[test]
fn the_second_of_two_files_can_be_left_alone() {
    let pairs = |times| {
        (0..times).flat_map(|_| {
            (0..FILE / 4096).flat_map(|n| {
                [(1, BUFFER), (2, SECOND_BUFFER)].map(|(f, b)| read(f, n * 4096, 4096, b))
            })
        })
    };
    let moves = |second| {
        let mut reads = mfc();
        reads.switches.second = second;
        let lengths = [read(1, 0, FILE, BUFFER), read(2, 0, FILE, SECOND_BUFFER)];
        run(
            &bench(Some(reads)),
            "0-3",
            lengths.into_iter().chain(pairs(2)),
        )
        .reads
    };
    let placed = moves(Second::Place);
    assert!(placed.moves > FILE / 4096, "call by call: {placed:?}");
    let ignored = moves(Second::Ignore);
    assert_eq!(ignored.moves, 0, "{ignored:?}");
}

#[test]
fn reads_from_a_disk_are_placed_too() {
    let files = Files {
        replace: PolicySpec::plain("lru"),
        config: FileConfig::plain(),
        layout: Layout::Packed {
            start: Lba(0),
            gap_pages: 0,
        },
        disk: disk::by_name("nvme").expect("a preset"),
        swap_pages: 1 << 14,
        zone: None,
    };
    let bench = Bench {
        files: Some(files),
        ..bench(Some(mfc()))
    };
    let region = run(&bench, "0-3", lengths(2).chain(in_turn(6)));
    assert_eq!((region.reads.moves, region.reads.migrations), (7, 7));
    assert_eq!(region.io.waits, 2 * FILE / 4096, "each page once");
    assert_eq!(region.io.pages, 8 * FILE / 4096);
}

#[test]
fn equal_runs_are_equal_and_no_policy_changes_nothing() {
    let go = |threads: &Threads| {
        let bench = Bench {
            threads: threads.clone(),
            ..bench(None)
        };
        run(&bench, "0-3", lengths(3).chain(in_turn(6)))
    };
    let placed = bench(Some(mfc())).threads;
    assert_eq!(go(&placed), go(&placed));
    // One thread never waits for a core: nothing to balance, nobody moves, nothing is paid.
    let balanced = Threads {
        balance: true,
        ..bench(None).threads
    };
    assert_eq!(go(&Threads::default()), go(&balanced));
    let mut off = mfc();
    off.switches.on = false;
    (off.access, off.assignment) = (Picos(0), Picos(0));
    let off = Threads {
        reads: Some(off),
        ..bench(None).threads
    };
    let (off, without) = (go(&off), go(&Threads::default()));
    assert_eq!((off.reads, off.counters), (without.reads, without.counters));
}
