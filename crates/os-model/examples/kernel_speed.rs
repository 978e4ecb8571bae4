//! How fast the modelled kernel itself is: translation per reference, faults,
//! forks, ageing.
//!
//! `cargo run --release -p piebald-os-model --example kernel_speed`

use std::{error::Error, time::Instant};

use piebald_os_model::{
    frames::{Age, Flavour, OwnedFrames, RandomFrames, Stock, StockConfig, age},
    kernel::{Actions, Kernel, KernelConfig, SysWork, Thp},
};
use piebald_policy::contract::FrameRequest;
use piebald_units::{
    CoreId, Order, TaskId, VirtAddr, Vpn,
    op::{Access, Backing, MemRef, RefKind, SpawnKind, SysOp},
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const CORE: CoreId = CoreId(0);
const BATCH: usize = 4096;
const GIB_16: u64 = 1 << 22;

type Res<T> = Result<T, Box<dyn Error>>;

fn ns_per(n: u64, what: &str, mut f: impl FnMut() -> Res<()>) -> Res<()> {
    let start = Instant::now();
    f()?;
    let ns = start.elapsed().as_nanos() as f64;
    println!(
        "{what:<58} {:>10.2} ns each, {:>8.2} ms",
        ns / n as f64,
        ns / 1e6
    );
    Ok(())
}

/// The fastest of many runs: what it costs when nobody else uses the core.
fn best_ns_per(n: u64, what: &str, mut f: impl FnMut() -> Res<()>) -> Res<()> {
    let mut best = f64::MAX;
    for _ in 0..60 {
        let start = Instant::now();
        f()?;
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    println!("{what:<58} {:>10.2} ns each (best of 60)", best / n as f64);
    Ok(())
}

fn kernel(thp: Thp) -> Res<(Kernel, TaskId)> {
    let frames = Stock::new(&StockConfig::new(GIB_16, 4, Flavour::V2_6_30))?;
    let config = KernelConfig {
        thp,
        ..KernelConfig::new(4)
    };
    let mut k = Kernel::new(config, Box::new(frames))?;
    let task = k.start(0)?;
    let map = SysOp::Map {
        addr: VirtAddr(1 << 30),
        len: 1 << 32,
        backing: Backing::Anon,
        access: Access {
            write: true,
            exec: false,
        },
        shared: false,
    };
    k.syscall(task, CORE, &map, &mut Actions::new())?;
    Ok((k, task))
}

fn store(addr: u64) -> MemRef {
    MemRef {
        addr: VirtAddr((1 << 30) + addr),
        size: 8,
        gap: 3,
        kind: RefKind::Store,
        ..MemRef::default()
    }
}

/// Performs references, resolving faults; the kernel's actions are dropped.
fn run(k: &mut Kernel, task: TaskId, refs: &[MemRef]) -> Res<()> {
    let (mut out, mut actions) = (Vec::with_capacity(2 * BATCH), Actions::new());
    for batch in refs.chunks(BATCH) {
        let mut rest = batch;
        while !rest.is_empty() {
            let t = k.translate(task, rest, &mut out)?;
            rest = &rest[t.consumed..];
            if let Some(fault) = t.fault {
                k.fault(task, CORE, fault, &mut actions)?;
                actions.clear();
            }
        }
        std::hint::black_box(&out);
        out.clear();
    }
    Ok(())
}

fn translation() -> Res<()> {
    let (mut k, task) = kernel(Thp::Never)?;
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let n = 1u64 << 15;
    let patterns: [(&str, Vec<MemRef>); 4] = [
        (
            "translate, stream over 512 KiB",
            (0..n).map(|i| store(i * 16)).collect(),
        ),
        (
            "translate, random in 1 MiB (all hits)",
            (0..n)
                .map(|_| store(rng.random_range(0..1 << 17) * 8))
                .collect(),
        ),
        (
            "translate, random in 64 MiB (mostly misses)",
            (0..n)
                .map(|_| store(rng.random_range(0..1 << 23) * 8))
                .collect(),
        ),
        (
            "translate, three streams, loads and stores",
            (0..n)
                .map(|i| {
                    let mut r = store(i / 3 * 8 + i % 3 * (32 << 20));
                    if i % 3 > 0 {
                        r.kind = RefKind::Load;
                    }
                    r
                })
                .collect(),
        ),
    ];
    for (what, refs) in patterns {
        run(&mut k, task, &refs)?;
        best_ns_per(n, what, || run(&mut k, task, &refs))?;
    }
    Ok(())
}

fn faults() -> Res<()> {
    let pages: Vec<_> = (0..1u64 << 18).map(|i| store(i << 12)).collect();
    for thp in [Thp::Never, Thp::Always] {
        let (mut k, task) = kernel(thp)?;
        let n = pages.len() as u64;
        ns_per(
            n,
            &format!("first touch of 1 GiB, THP {thp:?}, per 4 KiB"),
            || run(&mut k, task, &pages),
        )?;
        let mut actions = Actions::new();
        let fork = SysOp::Spawn {
            thread: 1,
            kind: SpawnKind::Fork,
        };
        let mut child = task;
        ns_per(n, "fork of it, per 4 KiB", || {
            if let SysWork::Spawned { task, .. } = k.syscall(task, CORE, &fork, &mut actions)? {
                child = task;
            }
            Ok(())
        })?;
        ns_per(n, "copy-on-write of it all, per 4 KiB", || {
            run(&mut k, child, &pages)
        })?;
        ns_per(n, "exit of the child, per 4 KiB", || {
            Ok(k.exit(child, CORE, &mut Actions::new())?)
        })?;
    }
    Ok(())
}

fn allocators() -> Res<()> {
    let make = || -> Res<Vec<(&str, Box<dyn OwnedFrames>)>> {
        Ok(vec![
            (
                "stock 2.6.30",
                Box::new(Stock::new(&StockConfig::new(GIB_16, 4, Flavour::V2_6_30))?),
            ),
            (
                "stock 6.12",
                Box::new(Stock::new(&StockConfig::new(GIB_16, 4, Flavour::V6_12))?),
            ),
            ("random", Box::new(RandomFrames::new(GIB_16, 1)?)),
        ])
    };
    ns_per(3, "construction of an allocator for 16 GiB", || {
        make().map(drop)
    })?;
    for (name, mut a) in make()? {
        let n = 1u64 << 20;
        let mut held = Vec::with_capacity(n as usize);
        ns_per(n, &format!("{name}: order-0 grant, fresh"), || {
            for i in 0..n {
                held.push(
                    a.alloc(&FrameRequest::fault(TaskId(0), CORE, Vpn(i)))?
                        .frame,
                );
            }
            Ok(())
        })?;
        ns_per(n, &format!("{name}: free, same order"), || {
            for f in &held {
                a.free(*f, Order(0), CORE)?;
            }
            Ok(())
        })?;
    }
    let mut s = Stock::new(&StockConfig::new(GIB_16, 4, Flavour::V2_6_30))?;
    ns_per(GIB_16, "ageing 16 GiB to half free, per frame", || {
        age(&mut s, &Age::new(1, 500, 4))?;
        Ok(())
    })
}

fn main() -> Res<()> {
    translation()?;
    faults()?;
    allocators()
}
