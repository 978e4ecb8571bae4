//! Frame allocators beside each other: time per operation, and whole 2 MiB
//! blocks that are left or come back.
//!
//! `piebald-bench-buddy time GIB RUNS` | `threads GIB RUNS` | `blocks GIB` |
//! `one NAME GIB WORKLOAD` (a single allocator, for instruction counts).

mod plain;
mod zones;

use std::{
    env,
    process::ExitCode,
    sync::{Barrier, Mutex},
    thread,
};

use piebald_policy::{
    buddy::{CoreLists, CoreSlices, Ends, MigrateType, Slot},
    contract::{FrameRequest, Mode},
};
use piebald_units::{ColorSet, Pfn};
use plain::Plain;
use zones::{Ask, Bitmap, Colored, InPlace, Ours, Rcore, Zone, map_of, ours, request};

/// Nanoseconds of CPU time that this thread has used.
fn cpu_ns() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for the call.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    assert_eq!(status, 0, "no thread clock");
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ z >> 31) * n as u128) >> 64) as usize
    }

    fn shuffle(&mut self, all: &mut [u32]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
    }
}

/// The allocators by name.
const NAMES: [&str; 12] = [
    "plain list buddy",
    "Piebald, 1 color",
    "Piebald, 16 colors",
    "Piebald, 64 colors",
    "Piebald, 1024 colors",
    "Piebald, 16, wish",
    "Piebald, 64, wish",
    "Piebald, 1024, wish",
    "Piebald, 64, halves",
    "buddy_system_allocator",
    "buddy-alloc",
    "bitmap-allocator",
];

fn zone(name: &str, frames: u32) -> Box<dyn Zone> {
    let colored = |shift, bits, ask| Box::new(Colored::new(&map_of(shift, bits), frames, ask));
    match name {
        "plain list buddy" => Box::new(Plain::new(frames)),
        "Piebald, 1 color" => colored(0, 0, Ask::Any),
        "Piebald, 16 colors" => colored(3, 4, Ask::Any),
        "Piebald, 64 colors" => colored(0, 6, Ask::Any),
        "Piebald, 1024 colors" => colored(0, 10, Ask::Any),
        "Piebald, 16, wish" => colored(3, 4, Ask::Wish),
        "Piebald, 64, wish" => colored(0, 6, Ask::Wish),
        "Piebald, 1024, wish" => colored(0, 10, Ask::Wish),
        "Piebald, 64, halves" => colored(0, 6, Ask::Halves),
        "buddy_system_allocator" => Box::new(Rcore::new(frames)),
        "buddy-alloc" => Box::new(InPlace::new(frames)),
        "bitmap-allocator" => Box::new(Bitmap::new(frames)),
        _ => panic!("unknown allocator \"{name}\"; allowed: {NAMES:?}"),
    }
}

/// Nanoseconds per operation.
#[derive(Clone, Copy, Default, Debug)]
struct Times {
    alloc: f64,
    free: f64,
    churn: f64,
    order9: f64,
}

fn per(ns: u64, n: usize) -> f64 {
    ns as f64 / n.max(1) as f64
}

/// Grants every frame, then takes all back in random order.
fn fill_and_free(z: &mut dyn Zone, frames: u32, seed: u64) -> (f64, f64) {
    let mut held = Vec::with_capacity(frames as usize);
    let t0 = cpu_ns();
    while let Some(at) = z.alloc(0) {
        held.push(at);
    }
    let t1 = cpu_ns();
    assert!(held.len() > frames as usize / 20 * 19, "{}", held.len());
    Random(seed).shuffle(&mut held);
    let t2 = cpu_ns();
    for at in &held {
        z.free(*at, 0);
    }
    let t3 = cpu_ns();
    (per(t1 - t0, held.len()), per(t3 - t2, held.len()))
}

/// Frees a random one of half of the frames and grants another, as often as
/// there are frames.
fn churn(z: &mut dyn Zone, frames: u32, seed: u64) -> f64 {
    let mut random = Random(seed);
    let mut held: Vec<u32> = (0..frames / 2).filter_map(|_| z.alloc(0)).collect();
    let draws: Vec<u32> = (0..frames)
        .map(|_| random.below(held.len()) as u32)
        .collect();
    let t0 = cpu_ns();
    for i in &draws {
        let slot = &mut held[*i as usize];
        z.free(*slot, 0);
        *slot = z.alloc(0).expect("half is free");
    }
    let t1 = cpu_ns();
    for at in &held {
        z.free(*at, 0);
    }
    per(t1 - t0, draws.len())
}

/// Grants all blocks of order 9 and takes them back: per pair.
fn order_9(z: &mut dyn Zone) -> f64 {
    let (mut pairs, t0) = (0, cpu_ns());
    let mut held = Vec::with_capacity(1 << 11);
    for _ in 0..8 {
        while let Some(at) = z.alloc(9) {
            held.push(at);
        }
        pairs += held.len();
        for at in held.drain(..) {
            z.free(at, 9);
        }
    }
    per(cpu_ns() - t0, pairs)
}

fn times(name: &str, frames: u32, seed: u64) -> Times {
    let mut z = zone(name, frames);
    // The first round pays for the pages of the tables.
    fill_and_free(&mut *z, frames, seed);
    let (alloc, free) = fill_and_free(&mut *z, frames, seed + 1);
    let churn = churn(&mut *z, frames, seed + 2);
    let order9 = order_9(&mut *z);
    Times {
        alloc,
        free,
        churn,
        order9,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs of all allocators, interleaved; medians.
fn time(gib: u32, runs: u64) {
    let frames = gib << 18;
    let mut all = vec![Vec::new(); NAMES.len()];
    for run in 0..runs {
        for (name, found) in NAMES.iter().zip(&mut all) {
            found.push(times(name, frames, run * 10));
        }
    }
    println!("{gib} GiB, ns per operation, medians of {runs} interleaved runs");
    println!(
        "| | alloc | free | alloc + free | of plain | churn pair | order-9 pair | sum of all | of plain |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let of = |found: &[Times], pick: fn(&Times) -> f64| median(found.iter().map(pick).collect());
    let both: fn(&Times) -> f64 = |t| t.alloc + t.free;
    let sum: fn(&Times) -> f64 = |t| t.alloc + t.free + t.churn + t.order9;
    // Ratios are taken within each round, where the machine was the same.
    let ratio = |found: &[Times], pick: fn(&Times) -> f64| {
        let pairs = found.iter().zip(&all[0]);
        median(pairs.map(|(a, b)| pick(a) / pick(b)).collect())
    };
    for (name, found) in NAMES.iter().zip(&all) {
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {:.1} | {:.2} |",
            of(found, |t| t.alloc),
            of(found, |t| t.free),
            of(found, both),
            ratio(found, both),
            of(found, |t| t.churn),
            of(found, |t| t.order9),
            of(found, sum),
            ratio(found, sum),
        );
    }
}

/// Two threads that each grant 64 frames and take back 64 at random from what
/// they hold, on `zone` behind a lock: CPU nanoseconds per pair.
fn two_threads(frames: u32, act: impl Fn(usize, &mut Vec<u32>, &mut Random, u32) + Sync) -> f64 {
    let barrier = Barrier::new(2);
    let rounds = frames / 64;
    let spent: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|core| {
                let (barrier, act) = (&barrier, &act);
                scope.spawn(move || {
                    let mut random = Random(core as u64);
                    let mut held = Vec::with_capacity(frames as usize);
                    barrier.wait();
                    let t0 = cpu_ns();
                    for _ in 0..rounds {
                        act(core, &mut held, &mut random, 64);
                    }
                    cpu_ns() - t0
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("a thread"))
            .sum()
    });
    per(spent, 2 * rounds as usize * 64)
}

/// Grants `n`, and takes back `n` at random once `limit` are held.
fn batch(
    held: &mut Vec<u32>,
    random: &mut Random,
    n: u32,
    limit: usize,
    mut alloc: impl FnMut() -> Option<u32>,
    mut free: impl FnMut(u32),
) {
    for _ in 0..n {
        held.extend(alloc());
    }
    while held.len() > limit {
        let i = random.below(held.len());
        free(held.swap_remove(i));
    }
}

fn locked<Z: Zone + Send>(frames: u32, z: Z) -> f64 {
    let shared = Mutex::new(z);
    let limit = frames as usize / 4;
    two_threads(frames, |_, held, random, n| {
        batch(
            held,
            random,
            n,
            limit,
            || shared.lock().expect("a lock").alloc(0),
            |at| shared.lock().expect("a lock").free(at, 0),
        );
    })
}

type Core = CoreLists<CoreSlices<piebald_policy::color_map::ColorMap, Vec<Slot>, Vec<Ends>>>;

fn core_lists(buddy: &Ours) -> Core {
    let map = buddy.map().clone();
    let colors = map.colors() as usize;
    let memory = CoreSlices {
        map,
        slots: vec![Slot::default(); 256],
        ends: vec![Ends::EMPTY; colors],
    };
    CoreLists::new(memory, buddy.origin(), MigrateType::Movable, 64).expect("sizes in range")
}

/// The same with per-core lists: the lock is taken for batches only.
fn with_core_lists(frames: u32, shift: u32, bits: u32) -> f64 {
    let buddy = ours(&map_of(shift, bits), frames);
    let cores = [core_lists(&buddy), core_lists(&buddy)].map(Mutex::new);
    let shared = Mutex::new(buddy);
    let limit = frames as usize / 4;
    let r = request(0);
    two_threads(frames, |core, held, random, n| {
        // Each thread has its own; the lock around it is never contended.
        let lists = std::cell::RefCell::new(cores[core].lock().expect("a lock"));
        batch(
            held,
            random,
            n,
            limit,
            || {
                let mut lists = lists.borrow_mut();
                let found = lists.take(&r).or_else(|| {
                    lists.refill(&mut shared.lock().expect("a lock"), &r);
                    lists.take(&r)
                });
                found.map(|frame| frame.0 as u32)
            },
            |at| {
                use piebald_policy::buddy::Put;
                let mut lists = lists.borrow_mut();
                if lists.put(Pfn(u64::from(at))) != Put::Kept {
                    lists.give_back(&mut shared.lock().expect("a lock"), 64);
                }
            },
        );
    })
}

fn threads(gib: u32, runs: u64) {
    let frames = gib << 18;
    let row = |name: &str, f: &dyn Fn() -> f64| {
        let found = median((0..runs).map(|_| f()).collect());
        println!("| {name} | {found:.1} |");
    };
    println!("two threads, {gib} GiB, CPU ns per pair of both, medians of {runs} runs");
    println!("| | ns |");
    println!("|---|---|");
    row("plain list buddy, lock", &|| {
        locked(frames, Plain::new(frames))
    });
    for (name, shift, bits) in [("16", 3, 4), ("64", 0, 6), ("1024", 0, 10)] {
        row(&format!("Piebald, {name} colors, lock"), &|| {
            locked(frames, Colored::new(&map_of(shift, bits), frames, Ask::Any))
        });
        row(&format!("Piebald, {name} colors, per-core lists"), &|| {
            with_core_lists(frames, shift, bits)
        });
    }
    row("buddy_system_allocator, lock", &|| {
        locked(frames, Rcore::new(frames))
    });
    row("buddy-alloc, lock", &|| {
        locked(frames, InPlace::new(frames))
    });
    row("bitmap-allocator, lock", &|| {
        locked(frames, Bitmap::new(frames))
    });
}

/// Blocks of order 9 that can be had, all at once.
fn whole_blocks(z: &mut dyn Zone) -> usize {
    std::iter::from_fn(|| z.alloc(9)).count()
}

/// All frames granted, a random half taken back, then `rounds` times as many
/// exchanges as there are frames in use; frames in use sit in random places.
fn blocks_after_churn(name: &str, frames: u32, rounds: u32) -> usize {
    let mut z = zone(name, frames);
    let mut random = Random(1);
    let mut held: Vec<u32> = std::iter::from_fn(|| z.alloc(0)).collect();
    random.shuffle(&mut held);
    for at in held.split_off(frames as usize / 2) {
        z.free(at, 0);
    }
    for _ in 0..frames / 2 * rounds {
        let i = random.below(held.len());
        z.free(held[i], 0);
        held[i] = z.alloc(0).expect("half is free");
    }
    whole_blocks(&mut *z)
}

/// Half granted in rising order, then exchanges in batches of 1024.
fn blocks_after_bursts(name: &str, frames: u32) -> usize {
    let mut z = zone(name, frames);
    let mut random = Random(1);
    let mut held: Vec<u32> = (0..frames / 2).filter_map(|_| z.alloc(0)).collect();
    for _ in 0..4 * frames / 1024 {
        for _ in 0..1024 {
            let i = random.below(held.len());
            z.free(held.swap_remove(i), 0);
        }
        held.extend((0..1024).filter_map(|_| z.alloc(0)));
    }
    whole_blocks(&mut *z)
}

/// Whole blocks left after single frames of some of 16 colors were taken.
fn blocks_after_taking(frames: u32, permille: u32, colors: &str) -> usize {
    let allowed: ColorSet = colors.parse().expect("a set");
    let mut z = Colored::new(&map_of(3, 4), frames, Ask::Any);
    let r = FrameRequest {
        allowed: Some(&allowed),
        mode: Mode::Hard,
        ..request(0)
    };
    for _ in 0..frames / 1000 * permille {
        if z.buddy.alloc(&r).is_err() {
            break;
        }
    }
    whole_blocks(&mut z)
}

fn blocks(gib: u32) {
    let frames = gib << 18;
    let all = frames >> 9;
    println!(
        "whole 2 MiB blocks after churn, {gib} GiB of {all}, half in use ({} at best)",
        all / 2
    );
    println!("| | churn 1x | 4x | 8x | 16x | bursts of 1024 |");
    println!("|---|---|---|---|---|---|");
    for name in NAMES {
        let after: Vec<String> = [1, 4, 8, 16]
            .map(|rounds| blocks_after_churn(name, frames, rounds).to_string())
            .into();
        let bursts = blocks_after_bursts(name, frames);
        println!("| {name} | {} | {bursts} |", after.join(" | "));
    }
    println!("\nwhole 2 MiB blocks of {all} after taking memory from some of 16 colors");
    println!("| colors | 1 % | 6 % |");
    println!("|---|---|---|");
    for colors in ["5", "4-7", "0,4,8,12", "0-15"] {
        let left = |permille| blocks_after_taking(frames, permille, colors);
        println!("| {colors} | {} | {} |", left(10), left(60));
    }
}

/// One allocator alone, for instruction counts.
fn one(name: &str, gib: u32, workload: &str) {
    let frames = gib << 18;
    let mut z = zone(name, frames);
    match workload {
        "fill" => println!("{:?}", fill_and_free(&mut *z, frames, 1)),
        "churn" => println!("{}", churn(&mut *z, frames, 1)),
        "order9" => println!("{}", order_9(&mut *z)),
        _ => panic!("unknown workload \"{workload}\"; allowed: fill, churn, order9"),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| -> u32 { text.parse().expect("a number") };
    match words[..] {
        ["time", gib, runs] => time(number(gib), u64::from(number(runs))),
        ["threads", gib, runs] => threads(number(gib), u64::from(number(runs))),
        ["blocks", gib] => blocks(number(gib)),
        ["one", name, gib, workload] => one(name, number(gib), workload),
        _ => {
            eprintln!("time GIB RUNS | threads GIB RUNS | blocks GIB | one NAME GIB WORKLOAD");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
