//! SRM-buffer on every replacement policy of the core, DULO included: a host with too
//! little memory, and nothing is lost or stuck.

use std::collections::VecDeque;

use crate::policies::{Memory, clock, fifo, lru, s3_fifo, sieve, two_lists, two_q};
use crate::srm_kit::{
    Random,
    host::{Host, Reader, reader},
    map_of, plain_map, setting, with_threshold, zone,
};
use piebald_policy::{
    contract::{
        Mode,
        replacement::{PageRef, Replacement},
    },
    dulo::{self, Dulo},
    replacement::{Clock, TwoLists},
    srm::Config,
};
use piebald_units::{Color, ColorSet};

type DuloMemory = dulo::Slices<
    Vec<dulo::Link>,
    Vec<u64>,
    Vec<dulo::Sequence>,
    Vec<PageRef>,
    Vec<dulo::Bucket>,
    Vec<dulo::TableNode>,
>;

macro_rules! on_each_policy {
    ($check:ident, $($name:ident: $make:expr,)*) => {
        $(#[test] fn $name() { $check($make); })*
    };
}

fn dulo(capacity: u32) -> Dulo<Clock<Memory>, DuloMemory> {
    let base = clock(capacity);
    let config = dulo::Config::scaled(capacity);
    let sections = config.sections(capacity).unwrap();
    let store = DuloMemory::collect(&dulo::Sizes::of(&sections, base.slots()));
    Dulo::new(base, store, config, dulo::Cost::Uniform).unwrap()
}

fn dulo_in_linux_lists(capacity: u32) -> Dulo<TwoLists<Memory>, DuloMemory> {
    let base = two_lists(capacity);
    let config = dulo::Config::scaled(capacity).linux();
    let sections = config.sections(capacity).unwrap();
    let store = DuloMemory::collect(&dulo::Sizes::of(&sections, base.slots()));
    Dulo::new(base, store, config, dulo::Cost::Uniform).unwrap()
}

const FRAMES: u32 = 320;

/// Sixteen files of 1 to 60 blocks; some are large at a threshold of 8.
fn blocks_of(file: u64) -> u64 {
    1 + file * 4
}

fn some_block(random: &mut Random) -> (u64, Reader<'static>) {
    let file = random.below(16) * random.below(16) / 15;
    let block = random.below(blocks_of(file));
    let process = random.below(4) as usize;
    let reader = reader(file as usize, process, blocks_of(file));
    (file * 1000 + block, reader)
}

fn one_step<R: Replacement>(host: &mut Host<R>, random: &mut Random) {
    let (name, reader) = some_block(random);
    match random.below(100) {
        0..=59 => assert!(host.read(name, reader), "memory can be had"),
        // A file from its beginning to its end.
        60..=64 => {
            for block in 0..reader.file_blocks {
                assert!(host.read(name / 1000 * 1000 + block, reader));
            }
        }
        65..=69 => {
            let colors = [1 << random.below(8), random.next() as u8][random.below(2) as usize];
            let mut own = ColorSet::EMPTY;
            own.insert_word(0, u64::from(colors | 1));
            let reader = Reader {
                allowed: Some(&own),
                mode: [Mode::Hard, Mode::Hint][random.below(2) as usize],
                ..reader
            };
            host.read(name, reader);
        }
        70..=79 if host.held.len() < 60 => {
            let process = random.below(4) as usize;
            assert!(host.fault(process).is_some(), "memory can be had");
        }
        // A program exits.
        70..=79 => {
            while let Some(frame) = host.held.pop() {
                host.give_back(frame);
            }
            let process = random.below(4) as usize;
            host.srm.end(&mut host.processes[process]);
        }
        80..=82 => host.delete(name),
        // A few pages are dirty or pinned for a while.
        83..=86 => host.hold(name, random.below(4) == 0),
        87..=91 => host.touch_mapping(name),
        92..=95 if host.held.len() < 60 => {
            let frame = host.kernel_frame().expect("memory can be had");
            host.held.push(frame);
        }
        96 => {
            let file = reader.file;
            host.srm.end(&mut host.files[file]);
        }
        _ => {}
    }
}

/// Random lists of everything that happens to pages, on three kinds of colours.
fn nothing_is_lost_or_stuck<R: Replacement>(make: impl Fn(u32) -> R) {
    let maps = [
        plain_map(0, 3),
        plain_map(2, 3),
        map_of(&[0x91, 0x62, 0xcc]),
    ];
    for (seed, map) in (1..).zip(maps) {
        let mut random = Random(seed);
        let srm = zone(map, u64::from(FRAMES), 0, with_threshold(8));
        let mut host = Host::new(srm, make(FRAMES), u64::from(FRAMES), 32);
        for step in 0..setting("PIEBALD_SRM_STEPS", 4000) {
            one_step(&mut host, &mut random);
            if step % 5 == 0 {
                host.check();
            }
        }
        let c = host.srm.counters();
        let all = [c.filled, c.pulled, c.free, c.cold, c.sequences, c.refills];
        assert!(all.iter().all(|n| *n > 50), "{c:?}");
        assert!(c.hits > 10 && c.declined > 0, "{c:?}");
        assert!(host.evicted.len() > 500, "memory was short");
    }
}

on_each_policy! { nothing_is_lost_or_stuck,
    on_fifo_nothing_is_lost_or_stuck: fifo,
    on_lru_nothing_is_lost_or_stuck: lru,
    on_clock_nothing_is_lost_or_stuck: clock,
    on_sieve_nothing_is_lost_or_stuck: sieve,
    on_2q_nothing_is_lost_or_stuck: two_q,
    on_s3_fifo_nothing_is_lost_or_stuck: s3_fifo,
    on_linux_lists_nothing_is_lost_or_stuck: two_lists,
    on_dulo_nothing_is_lost_or_stuck: dulo,
    on_dulo_in_linux_lists_nothing_is_lost_or_stuck: dulo_in_linux_lists,
}

/// Blocks of files under a policy alone: hits.
fn hits_alone<R: Replacement>(mut order: R, names: &[u64]) -> u64 {
    use piebald_policy::contract::replacement::{Insert, Touch};
    use piebald_units::Picos;
    let mut number_of = std::collections::BTreeMap::new();
    let mut name_of = vec![u64::MAX; order.slots() as usize];
    let mut free: VecDeque<u32> = (0..order.slots()).collect();
    let (now, insert, mut hits) = (Picos(0), Insert::default(), 0);
    for name in names {
        let known: Option<PageRef> = number_of.get(name).copied();
        let is_in = |page: &PageRef| {
            order.state(*page) == piebald_policy::contract::replacement::State::Resident
        };
        if let Some(page) = known.filter(is_in) {
            hits += 1;
            order.hit(page, Touch::default(), now);
            continue;
        }
        order.miss(known, &insert, now);
        while order.resident() >= order.capacity() && order.evict().is_some() {}
        let mut drain = |order: &mut R, number_of: &mut std::collections::BTreeMap<_, _>| {
            while let Some(gone) = order.dropped() {
                number_of.remove(&name_of[gone.index()]);
                free.push_back(gone.0);
            }
            free.front().copied()
        };
        let fresh = drain(&mut order, &mut number_of);
        let page = match number_of.get(name) {
            Some(ghost) => *ghost,
            None => {
                free.pop_front();
                PageRef(fresh.expect("a number"))
            }
        };
        name_of[page.index()] = *name;
        number_of.insert(*name, page);
        order.insert(page, &insert, now);
    }
    hits
}

/// Files read from beginning to end, the popular ones more often.
fn file_reads(seed: u64, reads: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut names = Vec::new();
    for _ in 0..reads {
        let file = random.below(60) * random.below(60) / 60;
        names.extend((0..10 + file).map(|block| file * 1000 + block));
    }
    names
}

/// "When memory size is large, SRM-buffer has little impact on hit ratio" (section 4.5):
/// a zone of 4 to 8 % of memory costs less than one point.
fn keeps_the_hit_ratio<R: Replacement>(make: impl Fn(u32) -> R) {
    let frames = 1024;
    let names = file_reads(5, 3000);
    let alone = hits_alone(make(frames), &names);
    let srm = zone(plain_map(0, 3), u64::from(frames), 0, with_threshold(4));
    assert_eq!(srm.limits().max_pages, 80);
    let mut host = Host::new(srm, make(frames), u64::from(frames), 32);
    for name in &names {
        let file = (name / 1000) as usize;
        let blocks = 10 + name / 1000;
        assert!(host.read(*name, reader(file % 16, file % 5, blocks)));
    }
    let share = |hits: u64| hits as f64 / names.len() as f64;
    let loss = share(alone) - share(host.hits);
    assert!(
        share(alone) > 0.2 && share(alone) < 0.95,
        "{}",
        share(alone)
    );
    assert!(
        loss.abs() < 0.01,
        "{loss}: {} to {}",
        share(alone),
        share(host.hits)
    );
    host.check();
}

on_each_policy! { keeps_the_hit_ratio,
    on_lru_it_keeps_the_hit_ratio: lru,
    on_clock_it_keeps_the_hit_ratio: clock,
    on_linux_lists_it_keeps_the_hit_ratio: two_lists,
    on_dulo_it_keeps_the_hit_ratio: dulo,
}

/// The cold end is all of one colour and nothing else may go: requests for others are
/// served from what there is, and a request that is bound to a colour gets it as soon as
/// any page of it may go.
#[test]
fn a_cold_end_of_one_color_stalls_nobody() {
    let frames = 256u64;
    let srm = zone(plain_map(0, 3), frames, 0, with_threshold(4));
    let mut host = Host::new(srm, lru(frames as u32), frames, 300);
    for color in [3u16, 0, 1, 2, 4, 5, 6, 7] {
        for page in 0..32 {
            host.preload(u64::from(color) * 100 + page, color);
        }
    }
    for color in [0u64, 1, 2, 4, 5, 6, 7] {
        for page in 0..32 {
            host.hold(color * 100 + page, true);
        }
    }
    for block in 0..30 {
        assert!(host.read(10_000 + block, reader(0, 0, 100)));
        assert_eq!(host.fault(0), Some(Color(3)));
        host.give_back_last();
        host.check();
    }
    // One page of colour 6 may go now; it is hotter than others.
    host.hold(605, false);
    let mut six = ColorSet::EMPTY;
    six.insert(Color(6));
    let bound = Reader {
        allowed: Some(&six),
        mode: Mode::Hard,
        ..reader(1, 1, 100)
    };
    assert!(host.read(20_000, bound));
    assert_eq!(host.evicted.last(), Some(&605));
    host.hold(20_000, true);
    assert!(!host.read(20_001, bound), "no page of the colour may go");
    assert!(host.most_rounds < 100, "{}", host.most_rounds);
    host.check();
}

/// A zone that is full of what nobody wants does not keep the kernel from a frame.
#[test]
fn the_zone_holds_nothing_back_from_the_kernel() {
    let frames = 128u64;
    let config = Config {
        max_pages: Some(128),
        ..with_threshold(12)
    };
    let srm = zone(plain_map(0, 3), frames, 0, config);
    let mut host = Host::new(srm, clock(frames as u32), frames, 8);
    for page in 0..128 {
        assert!(host.read(page, reader(0, 0, 128)));
    }
    while host.refill() > 0 {}
    assert!(
        host.srm.pages() > 100,
        "nearly all of memory is in the zone"
    );
    for _ in 0..128 {
        let frame = host.kernel_frame().expect("each frame can be had");
        host.held.push(frame);
        host.check();
    }
    assert_eq!(host.kernel_frame(), None);
    assert!(!host.read(1000, reader(1, 0, 1)), "no memory is said so");
}
