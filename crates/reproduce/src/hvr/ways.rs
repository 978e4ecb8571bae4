//! What mixes can be run under, and the frames and colours of each way.

use piebald_hw::spec::MachineSpec;
use piebald_policy::{
    color_map::{BitClass, ColorMap},
    hvr::{Config, Framework, Policy},
};
use piebald_sim::{FrameRule, Managed};
use piebald_units::Picos;

use super::{today::Cut, utility};

/// What a mix is run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Way {
    /// The stock allocator.
    Linux,
    /// One policy for the mix.
    Fixed(Policy),
    /// The decision tree without coalescing.
    Svp,
    /// The cache by the miss curves of the programs.
    Uvp,
    /// The tree with coalescing, without Curve-VP.
    Coalescing,
    /// The whole framework.
    Hvr,
    /// Fixed parts of a present-day machine.
    Cut(Cut),
}

impl Way {
    /// Bank-only partitioning for so many programs (Table 1).
    pub(super) const fn bank_only(programs: usize) -> Self {
        Self::Fixed(match programs {
            0..=4 => Policy::BankOnly4,
            _ => Policy::BankOnly8,
        })
    }
}

/// The bus of the paper's machine, in MT/s.
pub(super) const BUS: u32 = 1333;

/// The frames of a way.
pub(super) fn frames(way: Way) -> FrameRule {
    let (framework, map) = match way {
        // The second has colours that `frames_of` gives.
        Way::Linux | Way::Cut(_) => return FrameRule::Stock,
        // Its three bits do not fit into the allocator's 32 colours.
        Way::Fixed(Policy::CacheOnly) => {
            (Framework::Fixed(Policy::CacheOnly), colors(&[16, 17, 18]))
        }
        Way::Fixed(policy) => (Framework::Fixed(policy), colors(&[16])),
        Way::Uvp => return FrameRule::Owned(utility::map()),
        Way::Svp => (Framework::Static, colors(&[16])),
        Way::Coalescing => (Framework::Coalescing, colors(&[16])),
        Way::Hvr => (Framework::Hvr, colors(&[16])),
    };
    FrameRule::Managed(Box::new(Managed {
        map,
        config: Config {
            framework,
            ..Config::PAPER
        },
        sysmon: None,
    }))
}

/// The paper's bits, with these of the cache alone (Figure 2 and section 6).
fn colors(cache: &[u8]) -> ColorMap {
    let class = |class: BitClass| move |bit: &u8| (1u64 << (bit - 12), class);
    let bits = [14, 15].iter().map(class(BitClass::Both));
    let bits = bits.chain(cache.iter().map(class(BitClass::Cache)));
    let bits: Vec<_> = bits
        .chain([21, 22].iter().map(class(BitClass::Bank)))
        .collect();
    // Distinct single bits are independent.
    ColorMap::from_masks(&bits).unwrap_or(ColorMap::PLAIN)
}

/// The machine with another bus: the memory's latencies stay in nanoseconds, to the next cycle.
pub(super) fn with_bus(spec: &MachineSpec, bus: u32) -> MachineSpec {
    let mut spec = spec.clone();
    if bus == BUS {
        return spec;
    }
    let t = &mut spec.memory.dram.timing;
    let (old, new) = (t.tck.0, 2_000_000 / u64::from(bus));
    t.tck = Picos(new);
    let slower = |cycles: u32| (u64::from(cycles) * old).div_ceil(new) as u32;
    for cycles in [
        &mut t.cl,
        &mut t.cwl,
        &mut t.rcd,
        &mut t.rp,
        &mut t.ras,
        &mut t.rrd,
        &mut t.faw,
        &mut t.wr,
        &mut t.wtr,
        &mut t.rtp,
        &mut t.rfc,
        &mut t.refi,
    ] {
        *cycles = slower(*cycles).max(1);
    }
    t.rc = slower(t.rc).max(t.ras + t.rp);
    spec
}

#[cfg(test)]
mod tests {
    use piebald_hw::{Machine, Options, presets};

    use super::*;

    #[test]
    fn every_way_has_the_colors_that_it_needs() {
        for policy in Policy::ALL {
            let FrameRule::Managed(managed) = frames(Way::Fixed(policy)) else {
                panic!("{policy}");
            };
            let colors = if policy == Policy::CacheOnly { 128 } else { 32 };
            assert_eq!(managed.map.colors(), colors, "{policy}");
        }
    }

    #[test]
    fn a_slower_bus_has_the_same_latencies_in_nanoseconds() {
        let spec = presets::load("i7-860").expect("the machine");
        let nanos = |s: &MachineSpec, cycles: u32| u64::from(cycles) * s.memory.dram.timing.tck.0;
        for bus in [1066, 800] {
            let slow = with_bus(&spec, bus);
            let (a, b) = (&spec.memory.dram.timing, &slow.memory.dram.timing);
            assert_eq!(b.tck.0, 2_000_000 / u64::from(bus));
            for (a, b) in [(a.rcd, b.rcd), (a.cl, b.cl), (a.rc, b.rc)] {
                let (a, b) = (nanos(&spec, a), nanos(&slow, b));
                assert!(
                    b >= a && b < a + 2 * slow.memory.dram.timing.tck.0,
                    "{a} {b}"
                );
            }
            assert!(Machine::new(&slow, &Options::default()).is_ok());
        }
    }
}
