//! How fast are the replacement policies, and what do they miss? References drawn by
//! Zipf's law through every policy of the registry, with a host that only counts.
//!
//! `cargo run --release -p piebald-os-model --example replacement_speed -- [POLICY..]`
//! with `REFS` (default 20,000,000), `IDS` (1,000,000) and `CAPACITY` (100,000) from
//! the environment.
//!
//! The host is as small as can be: ids are dense, so its table is a vector. The
//! rate is that of the policy and this vector, in references per CPU second of one
//! thread.

use std::{sync::LazyLock, time::Instant};

use piebald_os_model::replace::registry::{POLICIES, Setup, Visitor, build};
use piebald_policy::contract::replacement::{Insert, PageName, PageRef, Replacement, State, Touch};
use piebald_units::{DiskBlock, Picos};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const NONE: u32 = u32::MAX;
const SEED: u64 = 42;

/// Ids by Zipf's law with exponent 1: rank k is drawn with weight 1 / k. The ranks
/// are dealt to ids at random, so that neighbours in the table have nothing in
/// common.
fn zipf(ids: u32, refs: usize) -> Vec<u32> {
    let mut rng = Pcg64Mcg::seed_from_u64(SEED);
    let mut sum = 0.0;
    let cumulative: Vec<f64> = (1..=ids)
        .map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        })
        .collect();
    let mut id_of: Vec<u32> = (0..ids).collect();
    for last in (1..id_of.len()).rev() {
        id_of.swap(last, rng.random_range(0..=last));
    }
    let mut draw = || {
        let mark = rng.random::<f64>() * sum;
        cumulative
            .partition_point(|c| *c < mark)
            .min(ids as usize - 1)
    };
    (0..refs).map(|_| id_of[draw()]).collect()
}

/// For each reference the number of the next one of the same id.
fn next_uses(refs: &[u32], ids: u32) -> Vec<Option<u64>> {
    let mut next = vec![None; ids as usize];
    let mut uses = vec![None; refs.len()];
    for (at, id) in refs.iter().enumerate().rev() {
        uses[at] = next[*id as usize].replace(at as u64);
    }
    uses
}

/// CPU time of this thread, as Linux counts it; elsewhere the time that has passed.
fn cpu_seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let first = counted.as_deref().and_then(|text| text.split(' ').next());
    match first.and_then(|nanos| nanos.parse::<f64>().ok()) {
        Some(nanos) => nanos / 1e9,
        None => START.elapsed().as_secs_f64(),
    }
}

struct Replay<'a> {
    refs: &'a [u32],
    /// Empty where the policy does not look at the future.
    next: &'a [Option<u64>],
    ids: u32,
}

impl Replay<'_> {
    fn next_use(&self, at: usize) -> Option<u64> {
        self.next.get(at).copied().flatten()
    }
}

impl Visitor for Replay<'_> {
    /// Misses, and seconds of CPU time.
    type Out = (u64, f64);

    fn visit<P: Replacement + 'static>(self, mut policy: P) -> Self::Out {
        let mut number = vec![NONE; self.ids as usize];
        let mut id_of = vec![NONE; policy.slots() as usize];
        let mut free: Vec<u32> = (0..policy.slots()).rev().collect();
        let mut misses = 0;
        let start = cpu_seconds();
        for (at, &id) in self.refs.iter().enumerate() {
            let now = Picos(at as u64);
            let known = number[id as usize];
            let ghost = (known != NONE).then_some(PageRef(known));
            if let Some(page) = ghost
                && policy.state(page) != State::Ghost
            {
                let touch = Touch {
                    next_use: self.next_use(at),
                    ..Touch::default()
                };
                policy.hit(page, touch, now);
                continue;
            }
            misses += 1;
            let insert = Insert {
                name: PageName(id.into()),
                at: Some(DiskBlock(id.into())),
                next_use: self.next_use(at),
                ..Insert::default()
            };
            policy.miss(ghost, &insert, now);
            if policy.resident() == policy.capacity() {
                policy.evict();
            }
            while let Some(page) = policy.dropped() {
                number[id_of[page.index()] as usize] = NONE;
                free.push(page.0);
            }
            let page = match number[id as usize] {
                NONE => free.pop().expect("slots suffice"),
                page => page,
            };
            (number[id as usize], id_of[page as usize]) = (page, id);
            policy.insert(PageRef(page), &insert, now);
            while let Some(page) = policy.dropped() {
                number[id_of[page.index()] as usize] = NONE;
                free.push(page.0);
            }
        }
        (misses, cpu_seconds() - start)
    }
}

fn setting(name: &str, default: u32) -> u32 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text}: a number is wanted")),
        Err(_) => default,
    }
}

fn main() {
    let (refs, ids) = (setting("REFS", 20_000_000), setting("IDS", 1_000_000));
    let capacity = setting("CAPACITY", 100_000);
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let trace = zipf(ids, refs as usize);
    let next = next_uses(&trace, ids);
    println!("{refs} references, {ids} ids, Zipf 1.0, {capacity} pages");
    println!("{:<14} {:>10} {:>12}", "policy", "miss ratio", "M refs/s");
    for row in POLICIES {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == row.name) {
            continue;
        }
        let replay = Replay {
            refs: &trace,
            next: if row.name == "min" { &next } else { &[] },
            ids,
        };
        match build(row.name, &Setup::new(capacity), replay) {
            Ok((misses, seconds)) => {
                let ratio = misses as f64 / f64::from(refs);
                let rate = f64::from(refs) / seconds / 1e6;
                println!("{:<14} {ratio:>10.4} {rate:>12.1}", row.name);
            }
            Err(error) => println!("{error}"),
        }
    }
}
