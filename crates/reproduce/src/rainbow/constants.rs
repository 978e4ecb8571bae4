//! what follows from the machine, or is cited.

use piebald_hw::spec::{CacheSpec, MachineSpec};
use piebald_lab::colors::color_map;
use piebald_policy::rainbow::{Ask, Config, Partition, Registry, Reservation};
use piebald_report::{Predicate, Published, Target, TargetKind, Value, Verdict};
use piebald_units::{Bytes, LINE_SHIFT, PAGE_SHIFT};

use super::{COLORS, blank};
use crate::row::exact;

/// Memory of the thesis's machine (section 6.1.1).
pub(super) const MEMORY: u64 = 12 * Bytes::GIB;
/// What 429.mcf needs (section 6.2), in GiB.
const MCF_GIB: f64 = 1.8;

pub(super) fn targets(machine: &MachineSpec) -> Result<Vec<Target>, String> {
    let mut memory = blank(
        "R-4",
        "6.2: colors that a program of 1.8 GB needs",
        TargetKind::C,
    );
    let (least, held) = least_colors((MCF_GIB * Bytes::GIB as f64) as u64)?;
    memory.values = vec![
        exact("colors", 3.0, f64::from(least), ""),
        exact("cache", 1.5, f64::from(least) / 2.0, "MB"),
        exact("memory", 2.25, held as f64 / Bytes::GIB as f64, "GB"),
    ];
    let mut share = blank(
        "R-7",
        "4.4.1: memory of one eighth of the cache",
        TargetKind::C,
    );
    let eighth = limit(Ask::Share(1250))?;
    share.values = vec![exact(
        "memory",
        1.5,
        eighth as f64 / Bytes::GIB as f64,
        "GB",
    )];
    let mut out = vec![arithmetic(machine)?, memory, share];
    for t in &mut out {
        let equal = |v: &Value| matches!(v.paper, Published::Number(n) if Some(n) == v.measured);
        let all = t.values.iter().all(equal) && t.predicates.iter().all(|p| p.holds == Some(true));
        t.verdict = if all { Verdict::Match } else { Verdict::Miss };
    }
    out.push(cited(
        "R-9",
        "1.2.3, 3.3.1: cited",
        &[
            ("slowdown by consolidation", "up to 40", "%"),
            ("memory in buffers", "about 60", "%"),
        ],
    ));
    Ok(out)
}

pub(super) fn cited(id: &str, title: &str, values: &[(&str, &str, &str)]) -> Target {
    let value = |(name, paper, unit): &(&str, &str, &str)| Value {
        name: (*name).to_owned(),
        paper: Published::Text((*paper).to_owned()),
        measured: None,
        ci95: None,
        unit: (*unit).to_owned(),
    };
    Target {
        verdict: Verdict::Given,
        values: values.iter().map(value).collect(),
        ..blank(id, title, TargetKind::G)
    }
}

/// Bits of a cache's set number.
fn set_bits(cache: &CacheSpec) -> u32 {
    ((cache.size.0 >> LINE_SHIFT) / u64::from(cache.ways.max(1))).ilog2()
}

/// the colours of the W3540 as the policy core computes them from its caches.
fn arithmetic(machine: &MachineSpec) -> Result<Target, String> {
    let named = |name: &str| {
        let found = machine.cache.iter().find(|c| c.name == name);
        found.ok_or_else(|| format!("{} has no cache {name}", machine.name))
    };
    let (llc, l2, l1i) = (named("L3")?, named("L2")?, named("L1I")?);
    let in_page = PAGE_SHIFT - LINE_SHIFT;
    let map = color_map(machine)?;
    let mut t = blank("R-1", "6.1.1: color arithmetic of the W3540", TargetKind::C);
    let count = |name: &str, paper: f64, bits: u32| exact(name, paper, f64::from(bits), "bits");
    let all = set_bits(llc).saturating_sub(in_page);
    let shared = set_bits(l2).saturating_sub(in_page);
    let slice = llc.size.0 / u64::from(map.colors());
    t.values = vec![
        count("set number, LLC", 13.0, set_bits(llc)),
        count("set number, L2", 9.0, set_bits(l2)),
        count("set number, L1I", 7.0, set_bits(l1i)),
        count("LLC color", 7.0, all),
        count("of these in the L2 as well", 3.0, shared),
        count("usable", 4.0, map.bits()),
        exact("slices", 16.0, f64::from(map.colors()), ""),
        exact("slice", 512.0, (slice >> 10) as f64, "KB"),
        exact("raw color", 64.0, ((llc.size.0 >> all) >> 10) as f64, "KB"),
    ];
    let bits: Vec<u64> = (0..map.bits() as u8)
        .map(|i| map.mask(i) << PAGE_SHIFT)
        .collect();
    t.predicates = vec![Predicate {
        text: "the color bits are the address bits 15 to 18".to_owned(),
        holds: Some(bits == [1 << 15, 1 << 16, 1 << 17, 1 << 18]),
    }];
    Ok(t)
}

/// Memory that a reservation of the thesis's machine may use, in bytes.
fn limit(ask: Ask<'_>) -> Result<u64, String> {
    let slots = vec![Partition::EMPTY; COLORS as usize];
    let mut registry = Registry::new(slots, COLORS, Config::PAPER).map_err(|e| e.to_string())?;
    let id = registry
        .reserve(&Reservation::of(ask))
        .map_err(|e| e.to_string())?;
    let frames = registry.memory_limit(id, MEMORY >> PAGE_SHIFT);
    Ok(frames.map_err(|e| e.to_string())? << PAGE_SHIFT)
}

/// The fewest colours whose memory holds so many bytes, and that memory.
fn least_colors(bytes: u64) -> Result<(u32, u64), String> {
    for n in 1..=COLORS {
        let held = limit(Ask::Count(n))?;
        if held >= bytes {
            return Ok((n, held));
        }
    }
    Err(format!("{} do not fit the machine", Bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use piebald_hw::presets;

    use super::*;

    #[test]
    fn the_constants_of_the_thesis_follow_from_the_preset() {
        let machine = presets::load("w3540").unwrap_or_else(|e| panic!("{e}"));
        let found = targets(&machine).unwrap_or_else(|e| panic!("{e}"));
        let verdict = |id: &str| found.iter().find(|t| t.id == id).map(|t| t.verdict);
        for id in ["R-1", "R-4", "R-7"] {
            assert_eq!(verdict(id), Some(Verdict::Match), "{id}");
        }
        assert_eq!(verdict("R-9"), Some(Verdict::Given));
    }

    #[test]
    fn another_machine_is_no_match() {
        let machine = presets::load("i7-860").unwrap_or_else(|e| panic!("{e}"));
        let mut smaller = machine.clone();
        for cache in smaller.cache.iter_mut().filter(|c| c.level == 3) {
            cache.size = Bytes(cache.size.0 / 2);
        }
        let found = targets(&smaller).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found[0].verdict, Verdict::Miss);
    }
}
