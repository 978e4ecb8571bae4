//! Utility-based partitioning (UVP) of a mix: curves of its programs at their drawn places, and
//! the colours that follow from them (protocol).

use piebald_policy::{
    color_map::{BitClass, ColorMap},
    hvr::utility::{Groups, divide},
};
use piebald_sim::{CurveRequest, ProgramOutcome};
use piebald_units::ColorSet;

/// Of each `1 << SHIFT` sets of a group one is looked at: 32 of 256.
const SHIFT: u32 = 3;

/// Address bits that tell groups of the paper's cache apart, and what they select.
const BITS: [(u8, BitClass); 5] = [
    (14, BitClass::Both),
    (15, BitClass::Both),
    (16, BitClass::Cache),
    (17, BitClass::Cache),
    (18, BitClass::Cache),
];

fn masks() -> [(u64, BitClass); 5] {
    BITS.map(|(bit, class)| (1 << (bit - 12), class))
}

/// The colours that UVP deals out.
pub(super) fn map() -> ColorMap {
    // Distinct single bits are independent.
    ColorMap::from_masks(&masks()).unwrap_or(ColorMap::PLAIN)
}

/// What is measured of a program that runs alone.
pub(super) fn request() -> CurveRequest {
    CurveRequest {
        program: 0,
        colors: masks().map(|(mask, _)| mask).to_vec(),
        sample_shift: SHIFT,
    }
}

/// Misses of demands in each second of its measured part, with 1, 2 .. groups. All programs of a
/// mix run for the same time, so that those of a second are what they compete by.
pub(super) fn curve(program: &ProgramOutcome) -> Vec<u64> {
    let seconds = program.region.time.0 as f64 * 1e-12;
    let points = program.miss_curve.iter().flat_map(|c| &c.points);
    points
        .map(|point| (point.misses as f64 / seconds) as u64)
        .collect()
}

/// Share of a program's pages that lie elsewhere after a step from an equal part of the colours to
/// so many: those of the colours that it lost, or what belongs into those that it gained.
pub(super) fn moved(colors: u32, programs: usize) -> f64 {
    let equal = f64::from(map().colors()) / programs.max(1) as f64;
    let own = f64::from(colors);
    (own - equal).abs() / own.max(equal)
}

/// The colours of each program.
///
/// # Errors
/// A curve is too short: the program was not measured alone.
pub(super) fn divided(curves: &[Vec<u64>]) -> Result<Vec<ColorSet>, String> {
    let map = map();
    let groups = Groups::of(&map);
    let lent: Vec<&[u64]> = curves.iter().map(Vec::as_slice).collect();
    let mut shares = vec![0; curves.len()];
    divide(&lent, groups.nr(), &mut shares).map_err(|e| e.to_string())?;
    let own = |program| {
        let mut own = ColorSet::default();
        groups.colors(&map, &shares, program, &mut own);
        own
    };
    Ok((0..curves.len()).map(own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_is_what_a_program_loses_or_gains() {
        // An equal part of four is 8 of 32 colours.
        for (colors, share) in [(8, 0.0), (4, 0.5), (2, 0.75), (16, 0.5), (32, 0.75)] {
            assert_eq!(moved(colors, 4), share, "{colors}");
        }
        assert_eq!(moved(8, 8), 0.5);
    }

    #[test]
    fn programs_have_colours_as_their_misses_fall_and_all_are_dealt_out() {
        let needs = |groups: usize| -> Vec<u64> {
            let left = |k: usize| 100 * groups.saturating_sub(k) as u64;
            (1..=32).map(left).collect()
        };
        let own = divided(&[needs(20), needs(1), needs(8), needs(4)]).expect("curves");
        let lens: Vec<u32> = own.iter().map(ColorSet::len).collect();
        assert_eq!(lens.iter().sum::<u32>(), 32, "{lens:?}");
        assert!(lens[0] >= 19 && lens[2] >= 7 && lens[1] <= 3, "{lens:?}");
        let short = divided(&[needs(3), vec![1; 31]]);
        assert!(short.expect_err("31 values").contains("31 values"));
    }
}
