//! Programs, files and the disk over one memory and one clock.

use crate::kit::{Bench, FOREVER, Script, Step, loads, program, stores, sys};
use piebald_hw::disk;
use piebald_os_model::{
    file::{FileConfig, Layout},
    replace::PolicySpec,
};
use piebald_sim::{Files, Outcome, SimError};
use piebald_units::{FileId, Lba, Picos, VirtAddr, op::SysOp};

const MS: u64 = 1_000_000_000;

fn files(policy: &str, config: FileConfig) -> Files {
    Files {
        replace: PolicySpec::plain(policy),
        config,
        layout: Layout::Packed {
            start: Lba(0),
            gap_pages: 0,
        },
        disk: disk::by_name("wd400bb").expect("a preset"),
        swap_pages: 1 << 14,
        zone: None,
    }
}

/// A machine of so many frames, about 200 of which the kernel has.
fn bench(frames: u64, files: Files) -> Bench {
    Bench {
        frames,
        files: Some(files),
        ..Bench::default()
    }
}

fn read(file: u64, offset: u64, len: u64) -> Step {
    sys(SysOp::Read {
        file: FileId(file),
        offset,
        len,
        buffer: VirtAddr(0x100_0000),
    })
}

/// Reads a file of 256 KiB in parts, each followed by a look at it.
fn reader(file: u64, rounds: u64) -> Script {
    let part = |n: u64| {
        [
            read(file, n % 16 * 16384, 16384),
            loads(0x100_0000, 16384, 1),
        ]
    };
    // What is measured begins with the first reference.
    let begin = loads(0x80_0000, 64, 1);
    let parts = (0..16 * rounds).flat_map(part);
    Script::new([begin].into_iter().chain(parts).collect())
}

fn whole(name: &str, cores: &str, script: Script) -> piebald_sim::ProgramSetup {
    piebald_sim::ProgramSetup {
        budget: FOREVER,
        ..program(name, cores, script)
    }
}

fn run(bench: &Bench, programs: Vec<piebald_sim::ProgramSetup>) -> Outcome {
    bench.run(programs).expect("runs")
}

#[test]
fn a_file_is_read_from_the_disk_once_and_then_from_memory() {
    let bench = bench(4096, files("lru", FileConfig::plain()));
    let once = run(&bench, vec![whole("r", "0", reader(1, 1))]).programs[0].region;
    let thrice = run(&bench, vec![whole("r", "0", reader(1, 3))]).programs[0].region;
    assert_eq!((once.io.pages, once.io.waits), (64, 64));
    assert_eq!((thrice.io.pages, thrice.io.waits), (192, 64));
    assert_eq!(thrice.io.hit_ratio(), Some(1.0 - 64.0 / 192.0));
    // The waits are the disk's, and the rest of the time is the processor's.
    assert!(once.io.blocked > Picos(5 * MS), "{:?}", once.io);
    assert!(once.time > once.io.blocked);
    let rest = once.time.since(once.io.blocked);
    assert!(rest < Picos(MS), "{rest}");
    assert!(thrice.io.blocked < Picos(once.io.blocked.0 + MS));
}

#[test]
fn readahead_hides_the_disk_behind_the_copies() {
    let plain = bench(4096, files("lru", FileConfig::plain()));
    let ahead = bench(4096, files("lru", FileConfig::linux_2_6_30()));
    let blocked = |bench: &Bench| {
        let io = run(bench, vec![whole("r", "0", reader(1, 1))]).programs[0]
            .region
            .io;
        (io.waits, io.blocked)
    };
    let (plain, ahead) = (blocked(&plain), blocked(&ahead));
    assert!(ahead.0 < plain.0 / 2, "{ahead:?} {plain:?}");
    // What is left is the drive's: to find the file, and to pass 256 KiB.
    assert!(ahead.1 + Picos(2 * MS) < plain.1, "{ahead:?} {plain:?}");
}

#[test]
fn a_core_runs_another_program_while_one_waits() {
    let bench = bench(4096, files("lru", FileConfig::plain()));
    let busy = || Script::new(vec![loads(0x200_0000, 65536, 400)]);
    let alone = |script| run(&bench, vec![whole("p", "0", script)]).programs[0].region;
    let (io, cpu) = (alone(reader(1, 1)), alone(busy()));
    let both = run(
        &bench,
        vec![whole("io", "0", reader(1, 1)), whole("cpu", "0", busy())],
    );
    let time = both
        .programs
        .iter()
        .map(|p| p.region.time)
        .max()
        .expect("two");
    let sum = Picos(io.time.0 + cpu.time.0);
    let longer = io.time.max(cpu.time);
    assert!(
        time < Picos(sum.0 * 85 / 100),
        "{time} of {sum}, {longer} at least"
    );
    // The kernel's lines for faults are there once the other one has had some: a trifle less.
    assert!(both.programs[1].region.time.0 >= cpu.time.0 * 999 / 1000);
}

#[test]
fn on_another_core_a_program_hardly_feels_that_one_waits() {
    let bench = bench(4096, files("lru", FileConfig::plain()));
    let busy = || Script::new(vec![loads(0x200_0000, 65536, 200)]);
    let alone = run(&bench, vec![whole("cpu", "1", busy())]).programs[0]
        .region
        .time;
    let both = run(
        &bench,
        vec![whole("io", "0", reader(1, 1)), whole("cpu", "1", busy())],
    );
    let beside = both.programs[1].region.time;
    // Its frames are others, and so are the banks: nanoseconds to and fro.
    assert!(
        beside.0 >= alone.0 * 999 / 1000 && beside.0 < alone.0 * 105 / 100,
        "{beside} {alone}"
    );
}

#[test]
fn programs_that_read_the_same_file_share_its_pages() {
    let bench = bench(4096, files("clock", FileConfig::plain()));
    let both = run(
        &bench,
        vec![whole("a", "0", reader(1, 1)), whole("b", "1", reader(1, 1))],
    );
    assert_eq!(both.kernel.file_fills, 64);
    let apart = run(
        &bench,
        vec![whole("a", "0", reader(1, 1)), whole("b", "1", reader(2, 1))],
    );
    assert!(
        apart.kernel.file_fills >= 127,
        "{}",
        apart.kernel.file_fills
    );
}

/// Stores to memory of so many pages, over and over.
fn hog(pages: u64, rounds: u64) -> Script {
    Script::new(vec![Step::Sweep {
        base: 0x1000_0000,
        bytes: pages * 4096,
        times: rounds,
        kind: piebald_units::op::RefKind::Store,
    }])
}

#[test]
fn memory_larger_than_memory_is_swapped_and_the_program_ends() {
    for policy in ["lru", "linux-2.6.30"] {
        let bench = bench(1024, files(policy, FileConfig::linux_2_6_30()));
        let out = run(&bench, vec![whole("hog", "0", hog(1200, 2))]);
        let io = out.programs[0].region.io;
        assert!(io.major_faults > 50, "{policy}: {io:?}");
        assert!(out.kernel.swap_outs > 400, "{policy}: {:?}", out.kernel);
        assert!(io.blocked > Picos(50 * MS), "{policy}: {io:?}");
    }
}

#[test]
fn without_swap_space_memory_that_is_full_is_an_error() {
    let files = Files {
        swap_pages: 0,
        ..files("lru", FileConfig::plain())
    };
    let failed = bench(1024, files).run(vec![whole("hog", "0", hog(1200, 2))]);
    match failed {
        Err(SimError::MemoryFull { program }) => assert_eq!(program, "hog"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn enough_memory_and_no_files_is_as_without_paging() {
    // Only that there is a disk may cost nothing.
    let steps = || {
        Script::new(vec![
            stores(0x200_0000, 1 << 20, 3),
            loads(0x200_0000, 1 << 20, 2),
        ])
    };
    let with = run(
        &bench(8192, files("linux-2.6.30", FileConfig::linux_2_6_30())),
        vec![whole("p", "0", steps())],
    );
    let without = Bench {
        frames: 8192,
        ..Bench::default()
    };
    let without = run(&without, vec![whole("p", "0", steps())]);
    let (a, b) = (with.programs[0].region, without.programs[0].region);
    assert_eq!(a.faults, b.faults);
    assert_eq!(a.counters, b.counters);
    assert_eq!(a.time, b.time);
}

#[test]
fn equal_runs_are_equal() {
    let go = || {
        let bench = bench(1200, files("arc", FileConfig::linux_2_6_30()));
        let out = run(
            &bench,
            vec![
                whole("a", "0-1", reader(1, 4)),
                whole("b", "0-1", reader(2, 4)),
                whole("hog", "0-2", hog(700, 2)),
            ],
        );
        let regions: Vec<_> = out.programs.iter().map(|p| p.region).collect();
        (regions, out.kernel, out.refs)
    };
    assert_eq!(go(), go());
}

#[test]
fn what_ran_before_leaves_its_files_in_memory_and_no_cost() {
    let bench = bench(4096, files("lru", FileConfig::plain()));
    let reads = || vec![whole("r", "0", reader(1, 1))];
    let plain = run(&bench, reads());
    let cold = plain.programs[0].region;
    let after = |before| bench.run_after(before, reads()).expect("runs");
    let loaded = after(vec![whole("load", "0", reader(1, 1))]);
    assert_eq!(loaded.programs.len(), 1);
    let warm = loaded.programs[0].region;
    assert_eq!((cold.io.waits, warm.io.waits), (64, 0));
    assert_eq!(warm.io.pages, 64);
    assert_eq!(loaded.programs[0].restarts, 0);
    // Of its references none was made, and its pages are gone.
    assert_eq!(loaded.refs, plain.refs);
    assert_eq!(warm.pages, cold.pages);
    // Another file leaves this one cold; of two each leaves its own.
    let other = after(vec![whole("load", "0", reader(2, 1))]);
    assert_eq!(other.programs[0].region.io.waits, 64);
    let both = vec![
        whole("load", "0", reader(2, 1)),
        whole("load", "1", reader(1, 1)),
    ];
    assert_eq!(after(both).programs[0].region.io.waits, 0);
}

#[test]
fn programs_that_wait_for_company_also_wait_for_what_comes_before() {
    let bench = bench(4096, files("lru", FileConfig::plain()));
    let mut late = whole("late", "1", Script::new(vec![loads(0x200_0000, 65536, 40)]));
    late.waits = true;
    let mut early = whole("early", "0", reader(1, 400));
    (early.warmup, early.measured) = (1000, false);
    let before = vec![whole("load", "1", reader(1, 1))];
    let done = bench.run_after(before, vec![late, early]).expect("runs");
    assert_eq!(done.programs[1].region.io.waits, 0);
    assert!(done.programs[0].region.refs > 0);
}
