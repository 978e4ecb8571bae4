//! Random operations on disks through their port, checked after every step.

use std::collections::HashMap;

use piebald_hw::disk::{self, Disk, DiskSpec, Timing, spec::Scheduling};
use piebald_units::{
    Lba, Picos,
    block::{BlockDir, BlockPort, BlockReq, ReqId},
};

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn spec(name: &str) -> DiskSpec {
    disk::by_name(name).unwrap_or_else(|e| panic!("{e}"))
}

/// Requests as programs make them: runs, returns to known places, and jumps.
fn request(numbers: &mut Numbers, capacity: u64, last: &mut u64) -> BlockReq {
    let lba = match numbers.below(8) {
        0..=3 => *last,
        4 => last.saturating_sub(numbers.below(500)),
        5 => *last + numbers.below(500),
        // Now and then beyond the disk.
        _ => numbers.below(capacity + capacity / 1000),
    };
    let sectors = match numbers.below(20) {
        0 => 0,
        1 => numbers.below(3000) as u32,
        _ => 1 + numbers.below(64) as u32,
    };
    *last = lba + u64::from(sectors);
    let dir = match numbers.below(3) {
        0 => BlockDir::Write,
        _ => BlockDir::Read,
    };
    BlockReq {
        lba: Lba(lba),
        sectors,
        dir,
    }
}

type Log = Vec<(ReqId, Timing)>;

/// Submits and retires at random; what was done, in order of completion.
fn drive(spec: &DiskSpec, seed: u64, steps: u32) -> Log {
    let mut disk = Disk::new(spec).unwrap_or_else(|e| panic!("{e}"));
    let mut numbers = Numbers(seed);
    let mut now = Picos(0);
    let mut submitted = HashMap::new();
    let mut last = 0;
    let mut log = Log::new();
    for _ in 0..steps {
        if numbers.below(3) > 0 && disk.outstanding() < 40 {
            now += Picos(numbers.below(6_000_000_000));
            let req = request(&mut numbers, disk.capacity_sectors(), &mut last);
            let id = disk.submit(req, now);
            assert_eq!(submitted.insert(id, now), None, "an id names one request");
        } else if let Some((id, done)) = disk.next_done() {
            assert_eq!(disk.next_done(), Some((id, done)), "asking changes nothing");
            let timing = *disk.timing(id).expect("it has started");
            assert_eq!(timing.done, done);
            assert!(timing.start >= submitted[&id], "not before it came");
            now = now.max(done);
            disk.retire(id);
            log.push((id, timing));
        }
        disk.validate()
            .unwrap_or_else(|e| panic!("{}: {e}", spec.name));
    }
    while let Some((id, _)) = disk.next_done() {
        log.push((id, *disk.timing(id).expect("it has started")));
        disk.retire(id);
    }
    assert_eq!(log.len(), submitted.len(), "all are done, each once");
    assert_eq!(disk.outstanding(), 0);
    let sums = disk.counters();
    assert_eq!(sums.reads + sums.writes, log.len() as u64);
    log
}

#[test]
fn random_operations_keep_the_rules_of_every_preset() {
    for name in disk::presets() {
        let spec = spec(name);
        let single = spec.flash.is_none();
        for seed in 1..4 {
            let log = drive(&spec, seed, 3000);
            assert_eq!(log, drive(&spec, seed, 3000), "{name}: the same again");
            for (_, t) in &log {
                let parts = t.overhead + t.wait + t.seek + t.rotation + t.transfer;
                assert_eq!(t.start + parts, t.done, "{name}: the parts are the whole");
            }
            if single {
                let mut order: Vec<&Timing> = log.iter().map(|(_, t)| t).collect();
                order.sort_by_key(|t| t.start);
                let apart = |w: &[&Timing]| w[0].done <= w[1].start;
                assert!(order.windows(2).all(apart), "{name}: one at a time");
            }
            let fcfs = spec.queue.scheduling == Scheduling::Fcfs;
            if single && fcfs {
                assert!(
                    log.is_sorted_by_key(|(id, _)| id.0),
                    "{name}: in order of arrival"
                );
            }
        }
    }
}

/// Time to serve 64 scattered reads that are all there from the start.
fn batch(scheduling: Scheduling, depth: u32, patience: Option<Picos>) -> (Picos, Vec<u64>) {
    let mut spec = spec("st39102lw");
    spec.queue.scheduling = scheduling;
    spec.queue.depth = depth;
    spec.queue.patience = patience;
    let mut disk = Disk::new(&spec).unwrap_or_else(|e| panic!("{e}"));
    let mut numbers = Numbers(99);
    for _ in 0..64 {
        let lba = numbers.below(disk.capacity_sectors() - 8);
        let req = BlockReq {
            lba: Lba(lba),
            sectors: 8,
            dir: BlockDir::Read,
        };
        disk.submit(req, Picos(0));
    }
    let mut now = Picos(0);
    let mut order = Vec::new();
    while let Some((id, done)) = disk.next_done() {
        now = done;
        order.push(id.0);
        disk.retire(id);
    }
    (now, order)
}

#[test]
fn shortest_positioning_is_faster_the_more_commands_the_drive_holds() {
    let fcfs = batch(Scheduling::Fcfs, 32, None).0;
    let short = batch(Scheduling::Sptf, 4, None).0;
    let deep = batch(Scheduling::Sptf, 32, None).0;
    assert_eq!(
        batch(Scheduling::Sptf, 1, None).0,
        fcfs,
        "nothing to choose from"
    );
    assert!(short.0 * 10 < fcfs.0 * 9, "{short} {fcfs}");
    assert!(deep.0 * 10 < short.0 * 9, "{deep} {short}");
}

#[test]
fn a_command_beyond_the_depth_is_not_chosen_and_patience_ends_waiting() {
    let (_, order) = batch(Scheduling::Sptf, 4, None);
    for (served, id) in order.iter().enumerate() {
        assert!(*id < served as u64 + 4, "{id} is not held after {served}");
    }
    let (_, order) = batch(Scheduling::Sptf, 32, Some(Picos(0)));
    assert!(order.is_sorted(), "no patience at all is order of arrival");
}

#[test]
fn what_does_not_lie_on_the_disk_is_cut_and_counted() {
    let mut disk = Disk::new(&spec("st39102lw")).unwrap_or_else(|e| panic!("{e}"));
    let capacity = disk.capacity_sectors();
    for (lba, sectors) in [
        (capacity - 4, 8),
        (capacity, 1),
        (u64::MAX, u32::MAX),
        (5, 0),
    ] {
        let req = BlockReq {
            lba: Lba(lba),
            sectors,
            dir: BlockDir::Read,
        };
        let id = disk.submit(req, Picos(0));
        disk.retire(id);
    }
    disk.submit(
        BlockReq {
            lba: Lba(7),
            sectors: 1,
            dir: BlockDir::Write,
        },
        Picos(0),
    );
    assert_eq!(disk.counters().cut, 4);
    disk.retire(ReqId(1234));
    // At the end of time nothing overflows, and everything is done there.
    for lba in [9_000_000, 10, 17_000_000] {
        let req = BlockReq {
            lba: Lba(lba),
            sectors: 4000,
            dir: BlockDir::Write,
        };
        disk.submit(req, Picos(u64::MAX - 5));
    }
    while let Some((id, done)) = disk.next_done() {
        assert!(done >= Picos(u64::MAX - 5) || done < Picos(1 << 45));
        disk.retire(id);
    }
}

/// A preset with bytes changed must be refused with a message or make a disk that
/// works; nothing may panic.
#[test]
fn fuzz_disk_files() {
    let cases = std::env::var("PIEBALD_FUZZ_CASES").ok();
    let cases: u64 = cases.and_then(|c| c.parse().ok()).unwrap_or(300);
    // The small ones: a large map takes long to lay out in every case.
    let names = ["wd400bb", "dulo-table1", "sata-ssd", "st32171w"];
    for case in 0..cases {
        let mut numbers = Numbers(case * 7919 + 1);
        let name = names[numbers.below(4) as usize];
        let mut text = disk::text(name).expect("a preset").as_bytes().to_vec();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(text.len() as u64) as usize;
            match numbers.below(3) {
                0 => text[at] = b"0123456789-.\"[]{}=, \n"[numbers.below(21) as usize],
                1 => drop(text.remove(at)),
                _ => text.insert(at, b'0' + numbers.below(10) as u8),
            }
        }
        let Ok(text) = String::from_utf8(text) else {
            continue;
        };
        let Ok(spec) = disk::parse(&text, "fuzz") else {
            continue;
        };
        if Disk::new(&spec).is_ok() {
            drive(&spec, case + 1, 60);
        }
    }
}
