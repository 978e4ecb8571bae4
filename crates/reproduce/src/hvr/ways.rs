//! What mixes can be run under, and the frames and colours of each way.

use piebald_lab::utility::Utility;
use piebald_policy::{
    color_map::{BitClass, ColorMap},
    hvr::{Config, Framework, Policy},
};
use piebald_sim::{FrameRule, Managed};

/// What a mix is run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Way {
    /// The stock allocator.
    Linux,
    /// One policy for the mix.
    Fixed(Policy),
    /// The whole framework.
    Hvr,
}

/// The frames of a way.
pub(super) fn frames(way: Way) -> FrameRule {
    let (framework, map) = match way {
        Way::Linux => return FrameRule::Stock,
        // Its three bits do not fit into the allocator's 32 colours.
        Way::Fixed(Policy::CacheOnly) => {
            (Framework::Fixed(Policy::CacheOnly), colors(&[16, 17, 18]))
        }
        Way::Fixed(policy) => (Framework::Fixed(policy), colors(&[16])),
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

/// What misses of programs alone are counted for: parts of the paper's cache, which these bits tell apart.
pub(super) fn divided() -> Utility {
    let bits = [14, 15, 16, 17, 18].map(|bit: u8| {
        let both = bit < 16;
        let class = if both {
            BitClass::Both
        } else {
            BitClass::Cache
        };
        (1u64 << (bit - 12), class)
    });
    // Distinct single bits are independent.
    Utility::of(ColorMap::from_masks(&bits).unwrap_or(ColorMap::PLAIN))
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

#[cfg(test)]
mod tests {

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
}
