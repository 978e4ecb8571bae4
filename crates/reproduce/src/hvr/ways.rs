//! What mixes can be run under, and the frames and colours of each way.

use piebald_lab::utility::Utility;
use piebald_policy::{
    color_map::{BitClass, ColorMap},
    hvr::Config,
};
use piebald_sim::{FrameRule, Managed};

/// What a mix is run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Way {
    /// The stock allocator.
    Linux,
    /// The whole framework.
    Hvr,
}

/// The frames of a way.
pub(super) fn frames(way: Way) -> FrameRule {
    match way {
        Way::Linux => FrameRule::Stock,
        Way::Hvr => FrameRule::Managed(Box::new(Managed {
            map: colors(),
            config: Config::PAPER,
            sysmon: None,
        })),
    }
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

/// The paper's bits (section 6).
fn colors() -> ColorMap {
    use BitClass::{Bank, Both, Cache};
    let bits = [(14, Both), (15, Both), (16, Cache), (21, Bank), (22, Bank)];
    // Distinct single bits are independent.
    let bits = bits.map(|(bit, class): (u8, BitClass)| (1u64 << (bit - 12), class));
    ColorMap::from_masks(&bits).unwrap_or(ColorMap::PLAIN)
}
