//! Several traces become one stream in the order in which their requests were made.

use std::fs;
use std::path::PathBuf;

use piebald_sim::replay::{Align, Batch, CallStream, InputError, InputSetup, Merge};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).expect("written");
        path
    }
}

fn open(paths: &[PathBuf], align: Align) -> Result<CallStream, InputError> {
    CallStream::open(&InputSetup {
        paths: paths.to_vec(),
        align,
        ..InputSetup::default()
    })
}

/// Trace, space and first page of each call, and the times in microseconds.
fn calls(stream: &mut CallStream) -> (Vec<(u64, u32, u64)>, Vec<u64>) {
    let (mut calls, mut times) = (Vec::new(), Vec::new());
    let mut batch = Batch::default();
    while stream.next_batch(&mut batch).expect("calls") {
        for call in &batch.calls {
            calls.push((call.task >> 32, call.space.0, call.first));
            times.extend(call.time.map(|t| t.0 / 1000));
        }
    }
    (calls, times)
}

/// A line of MSR Cambridge: tenths of microseconds since 1601.
fn msr(us: u64, host: &str, disk: u32, page: u64) -> String {
    let time = 128_166_372_000_000_000 + us * 10;
    format!("{time},{host},{disk},Read,{},4096,100\n", page * 4096)
}

#[test]
fn stamps_that_count_from_a_date_decide_and_equal_ones_keep_the_order_of_the_files() {
    let folder = Folder::new();
    let a = folder.file(
        "a",
        &[msr(50, "h", 0, 1), msr(70, "h", 0, 2), msr(90, "h", 0, 3)].concat(),
    );
    let b = folder.file("b", &[msr(10, "h", 1, 4), msr(70, "h", 1, 5)].concat());
    let mut stream = open(&[a.clone(), b.clone()], Align::Stamps).expect("a stream");
    assert_eq!(stream.merge(), Merge::ByStamp);
    let (found, times) = calls(&mut stream);
    let order: Vec<(u64, u64)> = found.iter().map(|c| (c.0, c.2)).collect();
    assert_eq!(order, [(1, 4), (0, 1), (0, 2), (1, 5), (0, 3)]);
    assert_eq!(times, [0, 40, 60, 60, 80]);
    let mut turned = open(&[b, a], Align::Stamps).expect("a stream");
    let order: Vec<u64> = calls(&mut turned).0.iter().map(|c| c.2).collect();
    assert_eq!(order, [4, 1, 5, 2, 3]);
}

#[test]
fn what_has_the_same_name_in_files_of_one_clock_is_the_same() {
    let folder = Folder::new();
    let a = folder.file("a", &[msr(10, "h", 0, 7), msr(30, "h", 0, 7)].concat());
    let b = folder.file("b", &[msr(20, "h", 0, 7), msr(40, "other", 0, 7)].concat());
    let mut stream = open(&[a.clone(), b.clone()], Align::Stamps).expect("a stream");
    let (found, _) = calls(&mut stream);
    let spaces: Vec<u32> = found.iter().map(|c| c.1).collect();
    assert_eq!((spaces, stream.spaces().len()), (vec![0, 0, 0, 1], 2));
    // Two runs that are laid beside one another have nothing in common.
    let mut apart = open(&[a, b], Align::Start).expect("a stream");
    assert_eq!(apart.merge(), Merge::ByTime);
    let (found, times) = calls(&mut apart);
    assert_eq!(times, [0, 0, 20, 20]);
    assert_eq!((found.len(), apart.spaces().len()), (4, 3));
}

/// A record of blktrace: a read of a page that is queued.
fn blktrace(ns: u64, cpu: u32, page: u64) -> Vec<u8> {
    const MAGIC: u32 = 0x6561_7407;
    const QUEUED_READ: u32 = 1 | 1 << 16 | 1 << 20;
    let mut record = Vec::new();
    record.extend(MAGIC.to_le_bytes());
    record.extend(1_u32.to_le_bytes());
    record.extend(ns.to_le_bytes());
    record.extend((page * 8).to_le_bytes());
    // Bytes, action, process, device, processor; and no error and nothing behind it.
    for number in [4096, QUEUED_READ, 77, 8 << 20, cpu, 0] {
        record.extend(u32::to_le_bytes(number));
    }
    record
}

/// Files of one tracing run, and of one collection.
#[test]
fn files_of_one_clock_of_every_kind_are_merged_by_their_stamps() {
    let folder = Folder::new();
    let bytes = |name: &str, records: &[Vec<u8>]| {
        let path = folder.0.path().join(name);
        fs::write(&path, records.concat()).expect("written");
        path
    };
    let processors = [
        bytes(
            "sdx.blktrace.0",
            &[blktrace(10_000, 0, 1), blktrace(40_000, 0, 4)],
        ),
        bytes(
            "sdx.blktrace.1",
            &[blktrace(20_000, 1, 2), blktrace(30_000, 1, 3)],
        ),
    ];
    let systor = |us: u32, page: u32| format!("1456095145.{us:06},0.1,R,3,{},4096\n", page * 4096);
    let tencent = |s: u32, page: u32| format!("{},{},8,0,1063\n", 1_538_323_200 + s, page * 8);
    let luns = [
        folder.file("a.csv", &[systor(10, 1), systor(40, 4)].concat()),
        folder.file("b.csv", &[systor(20, 2), systor(30, 3)].concat()),
    ];
    let volumes = [
        folder.file("a.tgz", &[tencent(10, 1), tencent(40, 4)].concat()),
        folder.file("b.tgz", &[tencent(20, 2), tencent(30, 3)].concat()),
    ];
    for (paths, time) in [(processors, 10), (luns, 10), (volumes, 10_000_000)] {
        let name = paths[0].display().to_string();
        let mut stream = open(&paths, Align::Stamps).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(stream.merge(), Merge::ByStamp, "{name}");
        let (found, times) = calls(&mut stream);
        let order: Vec<u64> = found.iter().map(|c| c.2).collect();
        assert_eq!(order, [1, 2, 3, 4], "{name}");
        assert_eq!(times, [0, time, 2 * time, 3 * time], "{name}");
        // The disk is one.
        assert_eq!(stream.spaces().len(), 1, "{name}");
    }
}

/// What strace -ff -ttt writes of one process.
fn strace(stamps: &[(&str, u64)]) -> String {
    let mut text = format!(
        "{} openat(AT_FDCWD, \"/data/f\", O_RDONLY) = 3\n",
        stamps[0].0
    );
    for (time, page) in stamps {
        let at = page * 4096;
        text += &format!("{time} pread64(3, \"x\"..., 4096, {at}) = 4096\n");
    }
    text
}

#[test]
fn logs_of_the_processes_of_one_program_are_one() {
    let folder = Folder::new();
    let a = folder.file(
        "log.1",
        &strace(&[("1600000000.000010", 1), ("1600000000.000030", 3)]),
    );
    let b = folder.file(
        "log.2",
        &strace(&[("1600000000.000020", 1), ("1600000000.000040", 4)]),
    );
    // A process that touched no file.
    let idle = folder.file(
        "log.3",
        "1600000000.000015 getpid() = 3\n1600000000.000016 +++ exited with 0 +++\n",
    );
    let mut stream = open(&[a.clone(), b, idle], Align::Stamps).expect("a stream");
    let (found, _) = calls(&mut stream);
    let order: Vec<(u32, u64)> = found.iter().map(|c| (c.1, c.2)).collect();
    assert_eq!(order, [(0, 1), (0, 1), (0, 3), (0, 4)]);
    // The same with -r: nobody knows when the second began.
    let c = folder.file("log.4", &strace(&[("0.000010", 1), ("0.000020", 3)]));
    let d = folder.file("log.5", &strace(&[("0.000010", 1), ("0.000020", 3)]));
    let error = open(&[c, d], Align::Stamps)
        .err()
        .expect("refused")
        .to_string();
    assert!(
        error.contains("log.4") && error.contains("--align start"),
        "{error}"
    );
    // And not with a log that has other times.
    let e = folder.file("log.6", &strace(&[("12:00:00.000010", 1)]));
    let error = open(&[a, e], Align::Stamps)
        .err()
        .expect("refused")
        .to_string();
    assert!(
        error.contains("a date") && error.contains("midnight"),
        "{error}"
    );
}

#[test]
fn relative_times_are_laid_beside_one_another_only_if_that_is_asked_for() {
    let folder = Folder::new();
    let spc = |us: &[(u32, u64)]| -> String {
        let line = |(us, page): &(u32, u64)| format!("0,{},4096,r,0.{us:06}\n", page * 8);
        us.iter().map(line).collect()
    };
    let a = folder.file("a.spc", &spc(&[(100, 1), (300, 2)]));
    let b = folder.file("b.spc", &spc(&[(700, 3), (800, 4)]));
    let error = open(&[a.clone(), b.clone()], Align::Stamps)
        .err()
        .expect("refused");
    let text = error.to_string();
    for part in [
        "a.spc",
        "b.spc",
        "a moment of this trace alone",
        "--align start",
        "--align turn",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut start = open(&[a.clone(), b.clone()], Align::Start).expect("a stream");
    let order: Vec<u64> = calls(&mut start).0.iter().map(|c| c.2).collect();
    assert_eq!(order, [1, 3, 4, 2]);
    let mut turn = open(&[a, b], Align::Turn).expect("a stream");
    assert_eq!(turn.merge(), Merge::InTurn);
    let order: Vec<u64> = calls(&mut turn).0.iter().map(|c| c.2).collect();
    assert_eq!(order, [1, 3, 2, 4]);
}

#[test]
fn traces_without_times_give_a_request_in_turn_and_do_not_mix_with_others() {
    let folder = Folder::new();
    let a = folder.file("a.ids", "1\n2\n3\n4\n5\n6\n7\n8\n");
    let b = folder.file("b.ids", "11\n12\n13\n14\n15\n16\n");
    let stream = open(&[a.clone(), b.clone()], Align::Stamps).expect("a stream");
    assert_eq!(stream.merge(), Merge::InTurn);
    let error = open(&[a.clone(), b], Align::Start)
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("neither has times"), "{error}");
    let timed = folder.file("c.csv", &msr(10, "h", 0, 7));
    let error = open(&[timed, a], Align::Stamps)
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("a.ids has no times"), "{error}");
}

/// What strace -ff writes of one process without a stamp.
#[test]
fn files_of_one_name_in_logs_without_stamps_are_the_same_if_that_is_asked_for() {
    let folder = Folder::new();
    let log = "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\npread64(3, \"x\"..., 4096, 0) = 4096\n";
    let paths = [folder.file("n.10", log), folder.file("n.11", log)];
    for (same_objects, spaces) in [(None, 2), (Some(false), 2), (Some(true), 1)] {
        let mut stream = CallStream::open(&InputSetup {
            paths: paths.to_vec(),
            same_objects,
            ..InputSetup::default()
        })
        .expect("a stream");
        assert_eq!(calls(&mut stream).0.len(), 2);
        assert_eq!(stream.spaces().len(), spaces, "{same_objects:?}");
    }
}

/// A log may have begun before midnight, or on the evening of the same day.
#[test]
fn times_of_day_that_are_half_a_day_apart_are_not_merged() {
    let folder = Folder::new();
    let at = |name: &str, clock: &str| folder.file(name, &strace(&[(clock, 1)]));
    let evening = at("k.1", "23:59:59.5");
    for (name, clock, fits) in [("l.2", "00:00:01.5", false), ("m.3", "12:00:01.5", true)] {
        let other = at(name, clock);
        let found = open(&[evening.clone(), other], Align::Stamps);
        match found {
            Ok(stream) => assert!(fits && stream.merge() == Merge::ByStamp, "{clock}"),
            Err(error) => {
                let text = error.to_string();
                assert!(
                    !fits && text.contains("k.1") && text.contains(name),
                    "{text}"
                );
                assert!(text.contains("more than 12 hours after"), "{text}");
            }
        }
    }
}

#[test]
fn stamps_of_two_formats_are_not_merged_though_both_are_dates() {
    let folder = Folder::new();
    let a = folder.file("a.csv", &msr(10, "h", 0, 7));
    let b = folder.file("b.log", &strace(&[("1600000000.000010", 1)]));
    let error = open(&[a, b], Align::Stamps)
        .err()
        .expect("refused")
        .to_string();
    assert!(
        error.contains("both count from a date, but one is msr and the other strace"),
        "{error}"
    );
}

/// Databases and models map files as large as these.
#[test]
fn a_mapping_of_many_gibibytes_is_read() {
    let folder = Folder::new();
    let log = |gib: u64| {
        let bytes = gib << 30;
        format!(
            "openat(AT_FDCWD, \"/m\", O_RDONLY) = 3\n\
             mmap(NULL, {bytes}, PROT_READ, MAP_SHARED, 3, 0) = 0x7f0000000000\n"
        )
    };
    let mut stream = open(&[folder.file("m.1", &log(8))], Align::Stamps).expect("a stream");
    let mut batch = Batch::default();
    assert!(stream.next_batch(&mut batch).expect("calls"));
    assert_eq!(batch.references.len(), 8 << 18);
    let mut stream = open(&[folder.file("m.2", &log(65))], Align::Stamps).expect("a stream");
    let error = stream
        .next_batch(&mut batch)
        .expect_err("too long")
        .to_string();
    assert!(
        error.contains("17039360 pages; allowed: up to 16777216"),
        "{error}"
    );
}
