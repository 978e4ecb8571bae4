//! A machine in words.

use piebald_hw::spec::{CacheSpec, Holds, Inclusion, MachineSpec};

/// One line per part of a machine: cores, each cache, translation, memory.
pub fn machine_lines(spec: &MachineSpec) -> Vec<String> {
    let core = &spec.core;
    let threads = if core.smt > 1 { ", 2 threads each" } else { "" };
    let mut lines = vec![format!(
        "{} x {} cores{threads} at {}, window of {} instructions, {} + {} fill buffers",
        core.sockets,
        core.per_socket,
        core.clock,
        core.window,
        core.l1_fill_buffers,
        core.shared_fill_buffers
    )];
    lines.extend(spec.cache.iter().map(cache_line));
    if let Some(tlb) = &spec.tlb {
        let second = tlb
            .l2
            .map_or(String::new(), |l| format!(", then {}", l.entries));
        lines.push(format!("TLB: {} data entries{second}", tlb.l1.entries));
    }
    let memory = &spec.memory;
    let dram = &memory.dram;
    lines.push(format!(
        "memory: {}, {} controller{} x {} channel{} x {} rank{} x {} banks, rows of {}",
        memory.size,
        memory.controllers,
        plural(memory.controllers),
        dram.channels,
        plural(dram.channels),
        dram.ranks,
        plural(dram.ranks),
        dram.banks,
        dram.row_size
    ));
    lines
}

fn plural(n: u16) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn cache_line(cache: &CacheSpec) -> String {
    let sets = cache.size.0 / 64 / u64::from(cache.ways.max(1));
    let holds = match cache.holds {
        Holds::Unified => "",
        Holds::Data => ", data",
        Holds::Instruction => ", instructions",
    };
    let shared = match cache.shared_by {
        1 => ", private".to_owned(),
        n => format!(", shared by {n} cores"),
    };
    let inclusion = match cache.inclusion {
        Inclusion::NonInclusive => "",
        Inclusion::Inclusive => ", inclusive",
        Inclusion::Exclusive => ", exclusive",
        Inclusion::Victim => ", victim cache",
        Inclusion::MostlyExclusive => ", mostly exclusive",
    };
    let slices = match cache.slice_hash.len() {
        0 => String::new(),
        n => format!(", {} hashed slices", 1u32 << n),
    };
    format!(
        "{}: {}, {} ways x {sets} sets, {} cycles{holds}{shared}{inclusion}{slices}",
        cache.name, cache.size, cache.ways, cache.latency
    )
}
