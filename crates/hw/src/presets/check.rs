//! Relations between the values of a machine: those that no machine has, which are
//! refused when a file is read, and those that are odd, which are for a warning.
//!
//! Impossible is what contradicts the meaning of the values. A level that is filled on
//! each miss cannot be smaller than one inside it: it would have lost every line by the
//! time that the inner one misses it. A latency is counted from the start of the access
//! (see [`crate::spec`]), so it cannot fall with the level. Odd is what some part may
//! have: levels that hold no more than all those inside them (Lunar Lake's third level,
//! system caches of servers), victim caches smaller than what they serve (Duron's second
//! level), memory that fits into the caches.

use piebald_units::Bytes;

use crate::{
    SpecError,
    cache::first_blind_mask,
    dram::spec::TimingSpec,
    spec::{CacheSpec, Inclusion, MachineSpec},
};

/// The smallest cache: no processor with lines of 64 B has one below 4 KiB, and test
/// machines of a few sets are built without a file.
const LEAST_CACHE: Bytes = Bytes(1 << 10);

/// The first value that no machine has, and what is allowed.
pub(super) fn impossible(spec: &MachineSpec) -> Option<SpecError> {
    let caches = || (0..spec.cache.len()).find_map(|at| impossible_cache(&spec.cache, at));
    unprintable(spec).or_else(caches)
}

/// A name or title that would not stand in one line.
fn unprintable(spec: &MachineSpec) -> Option<SpecError> {
    let caches = spec.cache.iter().enumerate();
    let caches = caches.map(|(at, cache)| (format!("cache[{at}].name"), &cache.name));
    let own = [("name", &spec.name), ("title", &spec.title)];
    let own = own.map(|(key, text)| (key.to_owned(), text));
    let is_wrong = |text: &str| text.trim().is_empty() || text.chars().any(char::is_control);
    let (field, text) = own
        .into_iter()
        .chain(caches)
        .find(|(_, text)| is_wrong(text))?;
    let value = format!("\"{}\"", text.escape_debug());
    Some(SpecError::new(
        field,
        value,
        "a text without control characters, not empty",
    ))
}

fn impossible_cache(caches: &[CacheSpec], at: usize) -> Option<SpecError> {
    let cache = &caches[at];
    let error = |key: &str, value: &dyn ToString, allowed: String| {
        let field = format!("cache[{at}].{key}");
        Some(SpecError::new(field, value.to_string(), allowed))
    };
    if cache.size < LEAST_CACHE {
        let allowed = format!("{LEAST_CACHE} or more; no cache is so small");
        return error("size", &cache.size, allowed);
    }
    if cache.latency == 0 {
        return error("latency", &0, "1 cycle or more".into());
    }
    let inner = || caches.iter().filter(|c| c.level < cache.level);
    if let Some(near) = inner().find(|c| c.latency > cache.latency) {
        let allowed = format!(
            "{} cycles or more, those of {} inside it: a latency is counted from the start of \
             the access",
            near.latency, near.name
        );
        return error("latency", &cache.latency, allowed);
    }
    let large = inner().find(|c| c.size > cache.size);
    let large = large.filter(|_| cache.inclusion.filled_on_miss())?;
    let allowed = format!(
        "{} or more, the size of {} inside it, unless inclusion is victim, exclusive or \
         mostly-exclusive",
        large.size, large.name
    );
    error("size", &cache.size, allowed)
}

/// Values of a machine that are allowed but odd, in no particular order:
/// [`SpecError::allowed`] says why, and what is usual.
pub fn oddities(spec: &MachineSpec) -> Vec<SpecError> {
    let mut odd = Vec::new();
    for at in 0..spec.cache.len() {
        odd_cache(spec, at, &mut odd);
    }
    odd_core(spec, &mut odd);
    odd_links(spec, &mut odd);
    odd_memory(spec, &mut odd);
    odd_delays(spec, &mut odd);
    odd
}

fn odd_cache(spec: &MachineSpec, at: usize, odd: &mut Vec<SpecError>) {
    let caches = &spec.cache;
    let cache = &caches[at];
    let mut note = |key: &str, value: &dyn ToString, why: String| {
        let field = format!("cache[{at}].{key}");
        odd.push(SpecError::new(field, value.to_string(), why));
    };
    let usual = 4 << 10..=1 << 20;
    if cache.level == 1 && !usual.contains(&cache.size.0) {
        let why = "a first level has 4KiB to 1MiB".to_owned();
        note("size", &cache.size, why);
    }
    if cache.latency > 1000 {
        let why = "more than 1000 cycles: memory answers sooner".to_owned();
        note("latency", &cache.latency, why);
    }
    if let Some(near) = caches
        .iter()
        .find(|c| c.level < cache.level && c.latency == cache.latency)
    {
        let why = format!("no more than {} inside it takes", near.name);
        note("latency", &cache.latency, why);
    }
    if let Some(near) = caches
        .iter()
        .find(|c| c.level < cache.level && c.line_cycles > cache.line_cycles)
    {
        let why = format!(
            "less than the {} of {}, through which it comes into the core",
            near.line_cycles, near.name
        );
        note("line_cycles", &cache.line_cycles, why);
    }
    if let Some(why) = smaller_than_inside(caches, cache) {
        note("size", &cache.size, why);
    }
    if let Some(i) = first_blind_mask(cache, spec.memory.size) {
        let why = format!(
            "tells no slices apart in {} of memory, so that sets stay empty",
            spec.memory.size
        );
        note(&format!("slice_hash[{i}]"), &cache.slice_hash[i], why);
    }
}

/// Why a level adds little to those right inside it; none if it does.
fn smaller_than_inside(caches: &[CacheSpec], cache: &CacheSpec) -> Option<String> {
    let inner = || caches.iter().filter(|c| c.level + 1 == cache.level);
    if !cache.inclusion.filled_on_miss() {
        let large = inner().find(|c| c.size > cache.size)?;
        let (size, name) = (large.size, &large.name);
        return Some(format!(
            "smaller than {name} inside it ({size}), whose victims it holds"
        ));
    }
    let instances = |c: &CacheSpec| u64::from((cache.shared_by / c.shared_by.max(1)).max(1));
    let inside: u64 = inner().map(|c| c.size.0.saturating_mul(instances(c))).sum();
    if cache.level == 1 || inside < cache.size.0 {
        return None;
    }
    let each = |c: &CacheSpec| format!("{} x {} {}", instances(c), c.size, c.name);
    let list: Vec<String> = inner().map(each).collect();
    let never = match cache.inclusion {
        Inclusion::Inclusive => ", which it includes, so that they can never be full",
        _ => "",
    };
    Some(format!(
        "no more than all caches inside it together ({}){never}",
        list.join(" and ")
    ))
}

fn odd_core(spec: &MachineSpec, odd: &mut Vec<SpecError>) {
    let core = &spec.core;
    if !(100_000_000..=10_000_000_000).contains(&core.clock.0) {
        let why = "processors run at 100MHz to 10GHz";
        odd.push(SpecError::new("core.clock", core.clock, why));
    }
    if core.base_cpi * f64::from(core.width) < 1.0 {
        let why = format!(
            "less than 1 / width = 1 / {}: more instructions a cycle than retire",
            core.width
        );
        odd.push(SpecError::new("core.base_cpi", core.base_cpi, why));
    }
    if let Some(tlb) = &spec.tlb
        && let Some(second) = tlb.l2.filter(|l2| l2.entries < tlb.l1.entries)
    {
        let why = format!("fewer entries than tlb.l1 has ({})", tlb.l1.entries);
        odd.push(SpecError::new("tlb.l2", second.entries, why));
    }
}

/// A transfer from further away takes at least as long.
fn odd_links(spec: &MachineSpec, odd: &mut Vec<SpecError>) {
    let last = spec.cache.iter().max_by_key(|c| c.level);
    let Some(last) = last else { return };
    let links = &spec.links;
    let steps = [
        ("links.same_group_transfer", links.same_group_transfer),
        ("links.same_socket_transfer", links.same_socket_transfer),
        ("links.other_socket_transfer", links.other_socket_transfer),
    ];
    let mut nearer = (last.name.as_str(), last.latency);
    for (field, cycles) in steps {
        let Some(cycles) = cycles else { continue };
        if cycles < nearer.1 {
            let why = format!(
                "less than the {} cycles of {}, which is nearer",
                nearer.1, nearer.0
            );
            odd.push(SpecError::new(field, cycles, why));
        }
        nearer = (field, cycles);
    }
}

type Cycles = fn(&TimingSpec) -> u32;

/// Delays of DRAM in nanoseconds outside which a warning asks for a second look. No standard gives these
/// bounds: they are chosen wide, and hold all presets.
const DRAM_DELAYS: [(&str, Cycles, u64, u64); 13] = [
    ("cl", |t| t.cl, 5, 60),
    ("cwl", |t| t.cwl, 2, 60),
    ("rcd", |t| t.rcd, 5, 60),
    ("rp", |t| t.rp, 5, 60),
    ("ras", |t| t.ras, 10, 120),
    ("rc", |t| t.rc, 15, 180),
    ("rrd", |t| t.rrd, 1, 40),
    ("faw", |t| t.faw, 1, 120),
    ("wr", |t| t.wr, 4, 80),
    ("wtr", |t| t.wtr, 1, 40),
    ("rtp", |t| t.rtp, 1, 40),
    ("rfc", |t| t.rfc, 30, 1100),
    ("refi", |t| t.refi, 900, 32_000),
];

fn odd_delays(spec: &MachineSpec, odd: &mut Vec<SpecError>) {
    let memory = &spec.memory;
    let timing = &memory.dram.timing;
    for (name, cycles, least, most) in DRAM_DELAYS {
        let cycles = cycles(timing);
        let ps = u64::from(cycles) * timing.tck.0;
        if (least * 1000..=most * 1000).contains(&ps) {
            continue;
        }
        let why = format!(
            "{cycles} cycles of {} are {} ns: {least} to {most} ns are usual",
            timing.tck,
            ps / 1000
        );
        let field = format!("memory.dram.timing.{name}");
        odd.push(SpecError::new(field, cycles, why));
    }
    if memory.fixed_latency.0 > 500_000 {
        let why = "more than 500ns on the way to DRAM and back".to_owned();
        odd.push(SpecError::new(
            "memory.fixed_latency",
            memory.fixed_latency,
            why,
        ));
    }
    if spec.links.hop_latency > 2000 {
        let why = "more than 2000 cycles to the next socket".to_owned();
        odd.push(SpecError::new(
            "links.hop_latency",
            spec.links.hop_latency,
            why,
        ));
    }
    if let Some(tlb) = spec.tlb.as_ref().filter(|tlb| tlb.l2_latency > 100) {
        let why = "more than 100 cycles: a walk takes less".to_owned();
        odd.push(SpecError::new("tlb.l2_latency", tlb.l2_latency, why));
    }
}

fn odd_memory(spec: &MachineSpec, odd: &mut Vec<SpecError>) {
    let Some(last) = spec.cache.iter().max_by_key(|c| c.level) else {
        return;
    };
    let cores = u64::from(spec.core.sockets) * u64::from(spec.core.per_socket);
    let instances = cores.div_ceil(u64::from(last.shared_by.max(1)));
    let all = Bytes(last.size.0.saturating_mul(instances));
    if spec.memory.size < all {
        let why = format!(
            "all of it fits into the {instances} x {} of {}",
            last.size, last.name
        );
        odd.push(SpecError::new("memory.size", spec.memory.size, why));
    }
}
