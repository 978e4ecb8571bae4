//! Numbers that follow from a seed.

/// A number that depends on all its parts (SplitMix64's finaliser).
pub fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9E37_79B9_7F4A_7C15, |h, p| step(h, *p))
}

/// A number that depends on a seed, words and a number.
pub fn draw(seed: u64, words: &str, number: u64) -> u64 {
    let parts = words.bytes().map(u64::from).chain([number]);
    parts.fold(seed ^ 0x5851_f42d_4c95_7f2d, step)
}

/// One part more.
pub(crate) const fn step(h: u64, part: u64) -> u64 {
    let mut z = (h ^ part).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
