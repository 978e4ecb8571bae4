//! MFC against an obvious oracle under random calls, on four machines.
//!
//! `PIEBALD_MFC_OPS` sets the number of calls per configuration (default 4,000).

use crate::mfc_kit::{
    KIB, MIB, Plan, Random, SECOND, VecMfc, opteron, oracle::Oracle, pairs, plain, setting,
};
use piebald_policy::{
    contract::reads::{Among, Read, ReadOutcome, ReadPlacement, ReadRequest, Reader},
    mfc::{
        CallBuffer, Competitive, Config, DomainId, Elsewhere, Here, MinRead, Second, Switches,
        Uses, Why,
    },
};
use piebald_units::{Bytes, CoreId, CoreSet, FileId, Picos};

/// Both, the random numbers, and what each reason was given.
struct Pair {
    mfc: VecMfc,
    oracle: Oracle,
    random: Random,
    cores: u64,
    domains: u8,
    now: u64,
    /// The call before, for messages.
    last: String,
    sizes: Vec<u64>,
    seen: [u64; Why::ALL.len()],
}

const FILES: u64 = 40;

impl Pair {
    fn new(plan: &Plan, config: Config, seed: u64) -> Self {
        let mut random = Random(seed);
        // One tick ages all files, as the oracle's does.
        let config = Config {
            age_step: u32::MAX,
            ..config
        };
        let sizes = (0..FILES).map(|_| size(&mut random)).collect();
        Self {
            mfc: plan.mfc(config, 4096),
            oracle: Oracle::new(plan, config),
            random,
            cores: u64::from(plan.topology().cores.len()),
            domains: plan.domains.len() as u8,
            now: 0,
            last: String::new(),
            sizes,
            seen: [0; Why::ALL.len()],
        }
    }

    fn core(&mut self) -> u16 {
        self.random.below(self.cores) as u16
    }

    /// Popular files have low numbers.
    fn file(&mut self) -> u64 {
        let bound = 1 + self.random.below(FILES);
        self.random.below(bound)
    }

    fn request(&mut self) -> ReadRequest {
        let file = self.file();
        let size = self.sizes[file as usize];
        let allowed = match self.random.below(8) {
            0 => CoreSet::from_bits(self.random.next()),
            _ => CoreSet::from_bits(u64::MAX),
        };
        ReadRequest {
            reader: Reader {
                core: CoreId(self.core()),
                allowed,
            },
            file: FileId(file),
            size: Bytes(size),
            offset: match self.random.below(3) {
                0 => self.random.below(size + size / 8 + 1),
                _ => 0,
            },
            len: Bytes(self.random.below(size * 2)),
            among: match self.random.below(20) {
                0 => Among::Second,
                _ => Among::First,
            },
        }
    }

    fn read(&mut self) {
        let request = self.request();
        let (core, load, why, until) = self.oracle.decide(&request);
        let verdict = self.mfc.decide(&request);
        let read = Read {
            core: CoreId(core),
            load,
            until,
            placed: verdict.read.placed,
            looked_up: !matches!(
                why,
                Why::Off | Why::Second | Why::Stranger | Why::Small | Why::TooLarge
            ),
        };
        assert_eq!((verdict.read, verdict.why), (read, why), "{request:?}");
        self.seen[why as usize] += 1;
        self.last = format!("{request:?} {verdict:?}");
        self.same(&request);
        if self.random.below(50) == 0 {
            self.astray(request, verdict.read);
        }
    }

    fn astray(&mut self, request: ReadRequest, read: Read) {
        let outcome = ReadOutcome {
            request,
            read,
            ran_on: request.reader.core,
        };
        let moved = self.mfc.domain_of(read.core) != self.mfc.domain_of(outcome.ran_on);
        if moved && read.placed {
            self.oracle.astray(&request, read.core.0);
        }
        self.mfc.after(&outcome, Picos(self.now));
        self.oracle.tick(outcome.ran_on.0, self.now);
    }

    fn same(&self, request: &ReadRequest) {
        let (file, size, offset) = (request.file, request.size, request.offset);
        assert_eq!(
            self.mfc.holders(file, size, offset),
            self.oracle.holders(request)
        );
        for (d, uses) in (0..self.domains).zip(self.oracle.uses(request)) {
            assert_eq!(
                u64::from(self.mfc.uses(file, size, offset, DomainId(d))),
                uses
            );
        }
    }

    /// The host tells of something else than a read.
    fn tell(&mut self) {
        let core = self.core();
        match self.random.below(40) {
            0..=15 => {
                let threads = self.random.below(5) as u32;
                self.mfc.set_runnable(CoreId(core), threads);
                self.oracle.runnable[usize::from(core)] = threads;
            }
            16..=23 => {
                let full = u64::from(self.random.below(3) == 0) * 40_000;
                let misses = [0; 3].map(|_: u32| self.random.below(2 + full) as u32);
                self.mfc.quantum(CoreId(core), &misses);
                self.oracle.misses[usize::from(core)] = misses;
            }
            24..=31 => {
                self.now += self.random.below(SECOND / 2);
                self.mfc.tick(CoreId(core), Picos(self.now));
                self.oracle.tick(core, self.now);
            }
            32..=34 => self.plug(core),
            35..=37 => self.file_changes(),
            _ => self.switch(),
        }
    }

    fn plug(&mut self, core: u16) {
        let online = self.random.below(4) != 0;
        self.last = format!("plug {core} {online}");
        self.mfc.set_online(CoreId(core), online);
        self.oracle.set_online(core, online);
    }

    fn file_changes(&mut self) {
        let file = self.file();
        let old = Bytes(self.sizes[file as usize]);
        let new = size(&mut self.random);
        self.last = format!("forget {file} {old} {new}");
        self.sizes[file as usize] = new;
        assert!(self.mfc.forget(FileId(file), old));
        self.oracle.forget(file);
    }

    fn switch(&mut self) {
        let is = |n: u64| n != 0;
        let switches = Switches {
            on: is(self.random.below(8)),
            copies: is(self.random.below(4)),
            second: match self.random.below(2) {
                0 => Second::Ignore,
                _ => Second::Place,
            },
        };
        self.mfc.set_switches(switches);
        self.oracle.switches = switches;
    }

    fn run(&mut self, ops: u64) {
        for _ in 0..ops {
            match self.random.below(5) {
                0 => self.tell(),
                _ => self.read(),
            }
            for d in 0..self.domains {
                let room = self.mfc.available(DomainId(d)).0;
                assert_eq!(
                    room,
                    self.oracle.available(usize::from(d)),
                    "domain {d} after {}",
                    self.last
                );
            }
            self.mfc.validate_alone().expect("consistent books");
        }
    }
}

/// Small, ordinary and large files.
fn size(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => random.below(60 * KIB),
        1 => MIB + random.below(5 * MIB),
        2..=4 => 256 * KIB,
        _ => 40 * KIB + random.below(600 * KIB),
    }
}

fn compare(plan: &Plan, config: Config, seed: u64) -> [u64; Why::ALL.len()] {
    let mut pair = Pair::new(plan, config, seed);
    pair.run(setting("PIEBALD_MFC_OPS", 4_000));
    pair.seen
}

/// Every reason among these was given.
fn all_seen(seen: &[u64], reasons: &[Why]) {
    for why in reasons {
        assert!(seen[*why as usize] > 0, "{why:?} never: {seen:?}");
    }
}

const COMMON: &[Why] = &[
    Why::Off,
    Why::Second,
    Why::Stranger,
    Why::Small,
    Why::RoomHere,
    Why::RoomElsewhere,
    Why::Replaced,
    Why::Unpopular,
    Why::Held,
    Why::CopiedToRoom,
];

#[test]
fn plain_caches_as_in_the_text() {
    let seen = compare(&plain(4, MIB), Config::PAPER, 1);
    all_seen(&seen, COMMON);
    all_seen(&seen, &[Why::Copied]);
    // One sum for each file brings files often.
    let config = Config {
        competitive: Competitive::PerFile,
        ..Config::PAPER
    };
    all_seen(&compare(&plain(4, MIB), config, 1), &[Why::Brought]);
}

#[test]
fn plain_caches_as_in_the_figure() {
    let seen = compare(&plain(3, 2 * MIB), Config::FIGURE_2, 2);
    all_seen(&seen, COMMON);
}

#[test]
fn the_papers_machine() {
    let seen = compare(&opteron(), Config::PAPER, 3);
    all_seen(&seen, &COMMON[..6]);
    // The 40 files fit on its 16 cores; with bigger chunks they do not.
    let config = Config {
        chunk: Bytes(MIB),
        competitive: Competitive::PerCore,
        ..Config::PAPER
    };
    compare(&opteron(), config, 4);
    let config = Config {
        competitive: Competitive::PerFile,
        call_buffer: CallBuffer::Counted,
        ..config
    };
    compare(&opteron(), config, 9);
}

#[test]
fn shared_caches_of_two_chips() {
    let config = Config {
        min_read: MinRead::BreakEven,
        idle: 2,
        uses: Uses::Stay,
        ..Config::PAPER
    };
    all_seen(&compare(&pairs(), config, 5), &COMMON[..9]);
    let config = Config {
        competitive: Competitive::PerCore,
        here: Here::Frequent(5),
        elsewhere: Elsewhere::Always,
        lfu_factor: 1,
        ..config
    };
    compare(&pairs(), config, 6);
}

#[test]
fn one_cache_for_everything() {
    let mut plan = plain(1, MIB);
    plan.domains[0].cores = CoreSet::first(5);
    all_seen(
        &compare(&plan, Config::PAPER, 7),
        &[Why::Replaced, Why::Unpopular, Why::Held],
    );
}

#[test]
fn objects_that_no_cache_holds_are_rare_but_decided_alike() {
    let config = Config {
        whole_up_to: Some(Bytes(8 * MIB)),
        ..Config::PAPER
    };
    all_seen(&compare(&plain(4, MIB), config, 8), &[Why::TooLarge]);
}
