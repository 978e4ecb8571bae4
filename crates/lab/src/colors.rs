//! Page colours of a machine, and which of them each program gets.

use piebald_sim::rooms::{
    hw::spec::{CacheSpec, MachineSpec},
    os_model::kernel::ColorRule,
    policy::{
        color_map::{ColorMap, Geometry, IndexedCache, PrivateL2},
        contract::Mode,
    },
};
use piebald_units::{ColorSet, LINE_SHIFT};

use crate::{
    jobs::last_level,
    scenario::{Frames, Policy, ProgramEntry, Scenario},
};

/// What a program asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colors {
    /// Its own colours.
    pub set: ColorSet,
    /// Whether they bind.
    pub mode: Mode,
}

/// The colours of a machine's last level that leave a private L2 whole (Rainbow,
/// section 4.3.2).
///
/// # Errors
/// Says in words what makes colours impossible here.
pub fn color_map(spec: &MachineSpec) -> Result<ColorMap, String> {
    let llc = last_level(spec);
    let masks = slices(llc)?;
    let l2 = spec
        .cache
        .iter()
        .find(|c| c.level == 2 && c.shared_by == 1 && llc.level > 2);
    let l2_masks = l2.map_or(Ok(Vec::new()), slices)?;
    let geometry = Geometry {
        llc: Some(indexed(llc, &masks)),
        l2: l2.map(|cache| indexed(cache, &l2_masks)),
        banks: &[],
    };
    let map = ColorMap::from_geometry(&geometry, PrivateL2::Exclude).map_err(|e| e.to_string())?;
    match map.colors() {
        1 => Err(format!(
            "{} has no page color that leaves the second level whole",
            llc.name
        )),
        _ => Ok(map),
    }
}

/// The colours of a policy on a machine: its own map, or the machine's.
///
/// # Errors
/// As [`color_map`].
pub(crate) fn map_of(spec: &MachineSpec, policy: &Policy) -> Result<ColorMap, String> {
    match &policy.color_map {
        Some(map) => Ok(map.clone()),
        None => color_map(spec),
    }
}

/// What program `at` of a scenario owns under a policy that has owners of colours.
pub(crate) fn owned(program: &ProgramEntry, policy: &Policy, at: usize) -> Option<Colors> {
    let own = program.colors.as_ref();
    match policy.colors.get(at).and_then(Option::as_ref) {
        None => own.cloned(),
        Some(changed) => changed.as_ref().map(|set| Colors {
            set: set.clone(),
            mode: own.map_or(Mode::Hard, |own| own.mode),
        }),
    }
}

fn slices(cache: &CacheSpec) -> Result<Vec<u64>, String> {
    let read = |text: &String| {
        u64::from_str_radix(text.trim_start_matches("0x"), 16)
            .map_err(|_| format!("{}: slice_hash {text} is no mask", cache.name))
    };
    cache.slice_hash.iter().map(read).collect()
}

fn indexed<'a>(cache: &CacheSpec, slices: &'a [u64]) -> IndexedCache<'a> {
    let sets = (cache.size.0 >> LINE_SHIFT) / u64::from(cache.ways.max(1));
    IndexedCache {
        line: 1 << LINE_SHIFT,
        sets: sets >> slices.len(),
        slices,
    }
}

/// The colour rule of a program under a policy.
///
/// Under Rainbow a program with colours has them for itself, in turn; the others
/// share what nobody owns, or, where everything is owned, all colours (thesis,
/// section 5.5.2).
pub(crate) fn rule(scenario: &Scenario, program: usize, policy: usize) -> ColorRule {
    let policy = &scenario.policies[policy];
    if policy.frames != Frames::Rainbow {
        return ColorRule::default();
    }
    let owned = |at: usize| owned(&scenario.programs[at], policy, at);
    if let Some(own) = owned(program) {
        return ColorRule {
            allowed: Some(own.set),
            mode: own.mode,
            round_robin: true,
            drop_on_exec: false,
        };
    }
    let colors = map_of(&scenario.machine, policy).map_or(0, |map| map.colors());
    let mut rest = ColorSet::first(colors);
    for own in (0..scenario.programs.len()).filter_map(owned) {
        own.set.iter().for_each(|color| {
            rest.remove(color);
        });
    }
    match rest.is_empty() || rest.len() == colors {
        true => ColorRule::default(),
        false => ColorRule {
            allowed: Some(rest),
            mode: Mode::Hard,
            round_robin: false,
            drop_on_exec: false,
        },
    }
}

/// The colours that a program may use under a policy, if not all.
pub(crate) fn of(scenario: &Scenario, program: usize, policy: usize) -> Option<String> {
    let rule = rule(scenario, program, policy);
    rule.allowed.map(|set| set.to_string())
}

/// A policy in words, with everybody's colours.
pub(crate) fn description(scenario: &Scenario, policy: usize) -> String {
    let mut text = scenario.policies[policy].description();
    for (i, program) in scenario.programs.iter().enumerate() {
        if let Some(set) = of(scenario, i, policy) {
            text += &format!(", {} {set}", program.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use piebald_sim::rooms::hw::presets;

    use super::*;

    #[test]
    fn the_w3540_has_sixteen_colors_on_address_bits_15_to_18() {
        // Thesis, section 4.3: 13 set bits, 9 of them also the L2's.
        let map = color_map(&presets::load("w3540").unwrap()).unwrap();
        assert_eq!(map.colors(), 16);
        let masks: Vec<u64> = (0..4).map(|i| map.mask(i) << 12).collect();
        assert_eq!(masks, [1 << 15, 1 << 16, 1 << 17, 1 << 18]);
    }

    #[test]
    fn every_preset_has_colors_or_says_why_not() {
        for name in presets::names() {
            match color_map(&presets::load(name).unwrap()) {
                Ok(map) => assert!(map.colors() > 1, "{name}"),
                Err(why) => assert!(why.contains("color"), "{name}: {why}"),
            }
        }
    }
}
