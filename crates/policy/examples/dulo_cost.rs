//! What DULO costs beyond the CLOCK that it is built on: time per reference, and work
//! per miss (FAST'05, section 4.1.3).
//!
//! `cargo run --release -p piebald-policy --example dulo_cost`, with `REFS` (default
//! 10,000,000), `IDS` (400,000), `CAPACITY` (200,000) and `RUNS` (5) from the environment.
//! The two run in turns; the fastest run of each counts, in processor time: what it costs
//! when nobody else uses the core. `PLACES=0` gives pages no place on disk.

#[path = "../tests/random.rs"]
mod random;

use std::{sync::LazyLock, time::Instant};

use piebald_policy::{
    contract::replacement::{Insert, PageName, PageRef, Replacement, Touch},
    dulo::{Bucket, Config, Cost, Dulo, Sequence, Sizes, Slices, TableNode},
    replacement::{Clock, ClockConfig, Link, Slots},
};
use piebald_units::{DiskBlock, Picos};
use random::Random;

const NOW: Picos = Picos(0);
const NONE: u32 = u32::MAX;

type Base = Clock<Slots<Vec<Link>, Vec<u8>>>;
type Memory = Slices<
    Vec<piebald_policy::dulo::Link>,
    Vec<u64>,
    Vec<Sequence>,
    Vec<PageRef>,
    Vec<Bucket>,
    Vec<TableNode>,
>;

fn setting(name: &str, default: u32) -> u32 {
    let value = random::setting(name, default.into());
    value.try_into().unwrap_or(u32::MAX)
}

/// Ids by Zipf's law with exponent 1, dealt to places on disk at random.
fn zipf(ids: u32, refs: u32) -> Vec<u32> {
    let mut random = Random(42);
    let mut sum = 0.0;
    let weights: Vec<f64> = (1..=ids)
        .map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        })
        .collect();
    let mut id_of: Vec<u32> = (0..ids).collect();
    for last in (1..id_of.len()).rev() {
        id_of.swap(last, (random.next() % (last as u64 + 1)) as usize);
    }
    let mut draw = || {
        let mark = (random.next() >> 11) as f64 / (1u64 << 53) as f64 * sum;
        weights.partition_point(|w| *w < mark).min(ids as usize - 1)
    };
    (0..refs).map(|_| id_of[draw()]).collect()
}

/// Processor time of this thread, as Linux counts it; elsewhere the time that has passed.
fn nanoseconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let first = counted.as_deref().and_then(|text| text.split(' ').next());
    let counted = first.and_then(|nanos| nanos.parse().ok());
    counted.unwrap_or_else(|| START.elapsed().as_nanos() as f64)
}

/// Runs the references; misses, and nanoseconds per reference.
fn run<P: Replacement>(policy: &mut P, refs: &[u32], ids: u32, placed: bool) -> (u64, f64) {
    let mut page_of = vec![NONE; ids as usize];
    let mut id_of = vec![NONE; policy.slots() as usize];
    let mut free: Vec<u32> = (0..policy.slots()).collect();
    let mut misses = 0;
    let start = nanoseconds();
    for id in refs {
        let page = page_of[*id as usize];
        if page != NONE {
            policy.hit(PageRef(page), Touch::default(), NOW);
            continue;
        }
        misses += 1;
        let insert = Insert {
            name: PageName(u64::from(*id)),
            at: placed.then_some(DiskBlock(u64::from(*id))),
            ..Insert::default()
        };
        policy.miss(None, &insert, NOW);
        while policy.resident() >= policy.capacity() && policy.evict().is_some() {}
        while let Some(gone) = policy.dropped() {
            page_of[id_of[gone.index()] as usize] = NONE;
            free.push(gone.0);
        }
        let page = free.pop().expect("one page more than memory has");
        (page_of[*id as usize], id_of[page as usize]) = (page, *id);
        policy.insert(PageRef(page), &insert, NOW);
    }
    (misses, (nanoseconds() - start) / refs.len() as f64)
}

fn clock(capacity: u32) -> Base {
    let config = ClockConfig::new(capacity);
    let slots = config.slots().expect("a capacity that fits");
    Clock::new(Slots::collect(slots), config).expect("memory that fits")
}

fn dulo(capacity: u32) -> Dulo<Base, Memory> {
    let base = clock(capacity);
    let config = Config::scaled(capacity);
    let sections = config.sections(capacity).expect("sections that fit");
    let store = Memory::collect(&Sizes::of(&sections, base.slots()));
    Dulo::new(base, store, config, Cost::Uniform).expect("memory that fits")
}

fn main() {
    let (ids, capacity) = (setting("IDS", 400_000), setting("CAPACITY", 200_000));
    let placed = setting("PLACES", 1) != 0;
    let refs = zipf(ids, setting("REFS", 10_000_000));
    let (mut base_ns, mut ns) = (f64::INFINITY, f64::INFINITY);
    let (mut base_misses, mut misses) = (0, 0);
    let mut dulo = dulo(capacity);
    for turn in 0..setting("RUNS", 5) {
        if turn > 0 {
            dulo = self::dulo(capacity);
        }
        let (missed, took) = run(&mut clock(capacity), &refs, ids, placed);
        (base_misses, base_ns) = (missed, base_ns.min(took));
        let (missed, took) = run(&mut dulo, &refs, ids, placed);
        (misses, ns) = (missed, ns.min(took));
    }
    let rate = base_misses as f64 / refs.len() as f64;
    println!("clock: {base_ns:.1} ns per reference, {rate:.4} misses");
    let per_miss = |n: u64| n as f64 / misses as f64;
    let counters = dulo.counters();
    println!(
        "dulo: {ns:.1} ns per reference ({:.2} times), {:.4} misses; per miss {:.2} blocks \
         sequenced, {:.2} comparisons, {:.2} young pages returned, {:.0} ns more",
        ns / base_ns,
        misses as f64 / refs.len() as f64,
        per_miss(counters.sequenced),
        per_miss(counters.comparisons),
        per_miss(counters.returned),
        (ns - base_ns) / rate,
    );
    println!("{counters:?}, {:?}", dulo.table_counters());
}
