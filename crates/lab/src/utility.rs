//! Utility-based partitioning (UVP): the last level divided by the misses that each program has alone.

use piebald_hw::{Machine, Options, ShadowRequest, SpecError, spec::MachineSpec};
use piebald_policy::{
    color_map::ColorMap,
    hvr::utility::{Groups, UtilityError, divide},
};
use piebald_sim::{CurveRequest, ProgramOutcome};
use piebald_units::{ColorSet, CoreSet, LINE_SHIFT};

/// Sets of each group that are looked at, at least, if it has so many.
const LEAST_PLACES: u64 = 32;

/// A map of colors whose groups are divided.
pub struct Utility {
    map: ColorMap,
    groups: Groups,
}

impl Utility {
    /// Of the colors of this map.
    pub fn of(map: ColorMap) -> Self {
        let groups = Groups::of(&map);
        Self { map, groups }
    }

    /// What is measured of a program that runs alone: misses with 1, 2 .. all groups.
    pub fn request(&self, spec: &MachineSpec) -> CurveRequest {
        let bits = 0..self.map.bits() as u8;
        let told = bits.filter(|bit| self.groups.is_told_by(*bit));
        CurveRequest {
            program: 0,
            colors: told.map(|bit| self.map.mask(bit)).collect(),
            sample_shift: sample_shift(spec, self.parts(), LEAST_PLACES),
        }
    }

    /// Parts of the last level that are divided, which the colors tell apart.
    pub fn parts(&self) -> u32 {
        self.groups.nr()
    }

    /// Its colors.
    pub const fn map(&self) -> &ColorMap {
        &self.map
    }

    /// Number of colors.
    pub fn colors(&self) -> u32 {
        self.map.colors()
    }

    /// Can the machine count by these parts?
    ///
    /// # Errors
    /// What stands against it.
    pub(crate) fn check(&self, spec: &MachineSpec) -> Result<(), SpecError> {
        let request = self.request(spec);
        let options = Options {
            shadow: Some(ShadowRequest {
                cores: CoreSet::first(1),
                colors: request.colors,
                sample_shift: request.sample_shift,
            }),
            ..Options::default()
        };
        Machine::new(spec, &options).map(|_| ())
    }

    /// The colors of each program by its curve.
    ///
    /// # Errors
    /// There are more programs than groups, or a curve is too short.
    pub fn divided(&self, curves: &[Vec<u64>]) -> Result<Vec<ColorSet>, UtilityError> {
        let lent: Vec<&[u64]> = curves.iter().map(Vec::as_slice).collect();
        let mut shares = vec![0; curves.len()];
        divide(&lent, self.parts(), &mut shares)?;
        let own = |program| {
            let mut own = ColorSet::default();
            self.groups.colors(&self.map, &shares, program, &mut own);
            own
        };
        Ok((0..curves.len()).map(own).collect())
    }
}

/// Misses of demands in each second of a program's measured part, with 1, 2 .. groups. All programs of a mix
/// run for the same time, so that those of a second are what they compete by.
pub fn curve(program: &ProgramOutcome) -> Vec<u64> {
    let seconds = program.region.time.0 as f64 * 1e-12;
    let points = program.miss_curve.iter().flat_map(|c| &c.points);
    points
        .map(|point| (point.misses as f64 / seconds) as u64)
        .collect()
}

/// Which part of the sets is looked at, so that of each color at least so many are, if it has so many.
pub(crate) fn sample_shift(spec: &MachineSpec, colors: u32, least: u64) -> u32 {
    let last = spec.last_level();
    let sets = (last.size.0 >> LINE_SHIFT) / u64::from(last.ways.max(1));
    (sets / u64::from(colors) / least).max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use piebald_hw::presets;
    use piebald_policy::color_map::BitClass;

    use super::*;
    use crate::colors::vertical_map;

    #[test]
    fn programs_have_colors_as_their_misses_fall_and_all_are_dealt_out() {
        let bits = [14, 15, 16, 17, 18].map(|bit| (1 << (bit - 12), BitClass::Cache));
        let utility = Utility::of(ColorMap::from_masks(&bits).expect("a map"));
        let needs = |groups: usize| -> Vec<u64> {
            let left = |k: usize| 100 * groups.saturating_sub(k) as u64;
            (1..=32).map(left).collect()
        };
        let own = utility.divided(&[needs(20), needs(1), needs(8), needs(4)]);
        let own = own.expect("curves");
        let lens: Vec<u32> = own.iter().map(ColorSet::len).collect();
        assert_eq!(lens.iter().sum::<u32>(), 32, "{lens:?}");
        assert!(lens[0] >= 19 && lens[2] >= 7 && lens[1] <= 3, "{lens:?}");
        let short = utility.divided(&[needs(3), vec![1; 31]]);
        let short = short.expect_err("31 values").to_string();
        assert!(short.contains("31 values"), "{short}");
    }

    #[test]
    fn every_preset_with_colors_can_be_divided() {
        for name in presets::names() {
            let spec = presets::load(name).expect(name);
            let Ok(map) = vertical_map(&spec) else {
                continue;
            };
            let utility = Utility::of(map);
            assert!(utility.parts() > 1, "{name}");
            utility
                .check(&spec)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}
