//! Drives the partitions of colours through their public calls.

use core::fmt::Write;

use piebald_policy::{
    color_map::ColorMap,
    contract::FrameRequest,
    rainbow::{
        Ask, Config, Left, Move, Name, Owner, Partition, PartitionId, Plan, Registry, Reservation,
        Step, Turn,
    },
};
use piebald_units::{Color, ColorSet, CoreId, Pfn, TaskId, Vpn};

use super::Sink;

type KernelRegistry = Registry<&'static mut [Partition]>;

/// What a kernel keeps in static memory, since no stack holds it.
static mut SLOTS: [Partition; 16] = [Partition::EMPTY; 16];
static mut COUNTS: [u32; 4096] = [0; 4096];
static mut REGISTRY: Option<KernelRegistry> = None;

#[inline(never)]
pub fn partitions(word: u64) -> u64 {
    make();
    // SAFETY: one thread; the reference ends with this function.
    let Some(registry) = (unsafe { (&mut *(&raw mut REGISTRY)).as_mut() }) else {
        return 0;
    };
    let mut sink = Sink(0);
    let config = Config {
        keep_unreserved: word as u32 & 3,
        ..Config::PAPER
    };
    if let Err(e) = registry.set_up(word as u32, config) {
        let _ = write!(sink, "{e}");
    }
    let id = reserve(registry, word, &mut sink);
    let seen = id.map_or(0, |id| {
        ask(registry, id, word) ^ resize(registry, id, word, &mut sink) ^ plan(registry, id, word)
    });
    seen ^ leave(registry, id, &mut sink) ^ sink.0
}

#[inline(never)]
fn make() {
    // SAFETY: one thread, and this runs once.
    unsafe {
        REGISTRY = Some(Registry::over((&mut *(&raw mut SLOTS)).as_mut_slice()));
    }
}

#[inline(never)]
fn reserve(registry: &mut KernelRegistry, word: u64, sink: &mut Sink) -> Option<PartitionId> {
    let bytes = word.to_le_bytes();
    let name = Name::new(core::str::from_utf8(&bytes).unwrap_or("db"));
    if let Err(e) = name {
        let _ = write!(sink, "{e}");
    }
    let reservation = Reservation {
        name: name.ok(),
        tasks: word as u32,
        ..Reservation::of(match word & 1 {
            0 => Ask::Share((word >> 8) as u32),
            _ => Ask::Count((word >> 8) as u32),
        })
    };
    match registry.reserve(&reservation) {
        Ok(id) => Some(id),
        Err(e) => {
            let _ = write!(sink, "{e}");
            registry.find("db")
        }
    }
}

#[inline(never)]
fn ask(registry: &KernelRegistry, id: PartitionId, word: u64) -> u64 {
    let request = FrameRequest::fault(TaskId(word as u32), CoreId(0), Vpn(word));
    let mut turn = Turn::START;
    turn.took(Color(word as u16));
    let prepared = registry.prepare(&request, Some(id), turn);
    let wish = prepared.ok().and_then(|r| r.wish);
    let limit = registry.memory_limit(id, word).unwrap_or(0);
    wish.map_or(0, |c| u64::from(c.0)) ^ limit
}

#[inline(never)]
fn resize(registry: &mut KernelRegistry, id: PartitionId, word: u64, sink: &mut Sink) -> u64 {
    let mut set = ColorSet::EMPTY;
    set.insert(Color((word >> 32) as u16));
    let exactly = registry.resize(id, &Ask::Exactly(&set));
    if let Err(e) = exactly {
        let _ = write!(sink, "{e}");
    }
    let resized = registry.resize(id, &Ask::percent(word as u32));
    resized.map_or(0, |r| u64::from(r.gained ^ r.lost))
}

#[inline(never)]
fn plan(registry: &KernelRegistry, id: PartitionId, word: u64) -> u64 {
    // SAFETY: one thread; the reference ends with this function.
    let counts = unsafe { (&mut *(&raw mut COUNTS)).as_mut_slice() };
    let owner = match word & 2 {
        0 => Owner::Unreserved,
        _ => Owner::Partition(id),
    };
    let Ok(mut plan) = Plan::new(registry, owner, counts) else {
        return 1;
    };
    let frames = [Pfn(word), Pfn(word >> 8)];
    plan.survey(&ColorMap::PLAIN, &frames);
    let cost = plan.estimate(registry).map_or(0, |e| e.cost.0);
    let mut out = [Move::default(); 2];
    let step = plan.next(registry, &ColorMap::PLAIN, &frames, &mut out);
    if let Some(first) = out.first() {
        if !plan.holds(registry, first) {
            plan.not_made(first);
        }
    }
    match step {
        Ok(Step::Moves { examined, .. }) => cost ^ examined as u64,
        Ok(Step::Changed) => 3,
        Err(e) => {
            let mut sink = Sink(0);
            let _ = write!(sink, "{e}");
            sink.0
        }
    }
}

#[inline(never)]
fn leave(registry: &mut KernelRegistry, id: Option<PartitionId>, sink: &mut Sink) -> u64 {
    let Some(id) = id else {
        return 0;
    };
    if let Err(e) = registry.attach(id) {
        let _ = write!(sink, "{e}");
    }
    let left = match registry.release(id) {
        Ok(Left::Tasks(n) | Left::Freed(n)) => u64::from(n),
        Err(e) => {
            let _ = write!(sink, "{e}");
            0
        }
    };
    if let Err(e) = registry.validate() {
        let _ = write!(sink, "{e}");
    }
    left
}
