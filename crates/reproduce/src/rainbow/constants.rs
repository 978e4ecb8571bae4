//! what follows from the machine.

use piebald_hw::spec::{CacheSpec, MachineSpec};
use piebald_lab::colors::color_map;
use piebald_policy::rainbow::{Ask, Config, Partition, Registry, Reservation};
use piebald_units::{Bytes, LINE_SHIFT, PAGE_SHIFT};

use crate::data::{Known, is, number};

/// Colours of the machine: slices of 512 KiB.
const COLORS: u32 = 16;
/// Memory of the thesis's machine (section 6.1.1).
const MEMORY: u64 = 12 * Bytes::GIB;
/// What 429.mcf needs (section 6.2), in GiB.
const MCF_GIB: f64 = 1.8;

/// Numbers of the rows by their names.
pub(super) fn known(machine: &MachineSpec) -> Result<Known, String> {
    let mut known = arithmetic(machine)?;
    let (least, held) = least_colors((MCF_GIB * Bytes::GIB as f64) as u64)?;
    let eighth = limit(Ask::Share(1250))?;
    let gib = |bytes: u64| number(bytes as f64 / Bytes::GIB as f64);
    known.extend(
        [
            ("least_colors", number(f64::from(least))),
            ("least_colors_gib", gib(held)),
            ("eighth_gib", gib(eighth)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    Ok(known)
}

/// Bits of a cache's set number.
fn set_bits(cache: &CacheSpec) -> u32 {
    ((cache.size.0 >> LINE_SHIFT) / u64::from(cache.ways.max(1))).ilog2()
}

/// the colours of the W3540 as the policy core computes them from its caches.
fn arithmetic(machine: &MachineSpec) -> Result<Known, String> {
    let named = |name: &str| {
        let found = machine.cache.iter().find(|c| c.name == name);
        found.ok_or_else(|| format!("{} has no cache {name}", machine.name))
    };
    let (llc, l2, l1i) = (named("L3")?, named("L2")?, named("L1I")?);
    let in_page = PAGE_SHIFT - LINE_SHIFT;
    let map = color_map(machine)?;
    let all = set_bits(llc).saturating_sub(in_page);
    let bits: Vec<u64> = (0..map.bits() as u8)
        .map(|i| map.mask(i) << PAGE_SHIFT)
        .collect();
    let slice = llc.size.0 / u64::from(map.colors());
    let bits_of = |bits: u32| number(f64::from(bits));
    let known = [
        ("llc_bits", bits_of(set_bits(llc))),
        ("l2_bits", bits_of(set_bits(l2))),
        ("l1i_bits", bits_of(set_bits(l1i))),
        ("raw_color_bits", bits_of(all)),
        ("shared_bits", bits_of(set_bits(l2).saturating_sub(in_page))),
        ("color_bits", bits_of(map.bits())),
        ("nr_colors", number(f64::from(map.colors()))),
        ("slice_kib", number((slice >> 10) as f64)),
        ("raw_color_kib", number(((llc.size.0 >> all) >> 10) as f64)),
        (
            "bits_15_to_18",
            is(bits == [1 << 15, 1 << 16, 1 << 17, 1 << 18]),
        ),
    ];
    Ok(known.map(|(name, value)| (name.to_owned(), value)).into())
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
    fn another_machine_has_other_numbers() {
        let machine = presets::load("i7-860").unwrap_or_else(|e| panic!("{e}"));
        let mut smaller = machine.clone();
        for cache in smaller.cache.iter_mut().filter(|c| c.level == 3) {
            cache.size = Bytes(cache.size.0 / 2);
        }
        let of = |machine| known(machine).unwrap_or_else(|e| panic!("{e}"));
        let (whole, half) = (of(&machine), of(&smaller));
        assert_eq!(whole["llc_bits"], number(13.0));
        assert_eq!(half["llc_bits"], number(12.0));
        assert_eq!(whole["least_colors"], number(3.0));
    }
}
