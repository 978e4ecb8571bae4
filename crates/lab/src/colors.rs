//! Page colours of a machine, and which of them each program gets.

use piebald_experiment::{Binding, Frames, Parts, PolicyColors, Portion};
use piebald_hw::{
    dram::bank_masks,
    spec::{CacheSpec, MachineSpec},
};
use piebald_os_model::kernel::OnLimit;
use piebald_policy::{
    color_map::{BitClass, ColorMap, Geometry, IndexedCache, PrivateL2},
    rainbow::{MAX_PARTITIONS, Partition, PartitionId, Refusal, Registry, Reservation},
};
use piebald_sim::{ColorSetup, RAINBOW};
use piebald_units::{Color, ColorAsk, ColorSet, LINE_SHIFT};

use crate::scenario::{Policy, ProgramEntry, Scenario};

/// The colours of a machine's last level that leave a private L2 whole (Rainbow,
/// section 4.3.2).
///
/// # Errors
/// Says in words what makes colours impossible here.
pub fn color_map(spec: &MachineSpec) -> Result<ColorMap, String> {
    mapped(spec, &[])
}

/// The colours of the last level and of banks that these masks of address bits name.
fn mapped(spec: &MachineSpec, banks: &[u64]) -> Result<ColorMap, String> {
    let llc = spec.last_level();
    let masks = slices(llc)?;
    let l2 = spec
        .cache
        .iter()
        .find(|c| c.level == 2 && c.shared_by == 1 && llc.level > 2);
    let l2_masks = l2.map_or(Ok(Vec::new()), slices)?;
    let geometry = Geometry {
        llc: Some(indexed(llc, &masks)),
        l2: l2.map(|cache| indexed(cache, &l2_masks)),
        banks,
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

/// The colours of SRM-buffer's zone on a machine: the policy's own map, that of its
/// owners of colours, or [`all_colors`].
///
/// # Errors
/// As [`color_map`].
pub(crate) fn zone_map(spec: &MachineSpec, policy: &Policy) -> Result<ColorMap, String> {
    let has_own = policy.color_map.is_some();
    match has_own || policy.frames.is_colored() {
        true => map_of(spec, policy),
        false => all_colors(spec),
    }
}

/// All colours of a machine's last level (SRM-buffer, section 2: 64 on the Xeon X5355, 128 on
/// the Core i7-860, whose private second level it does not regard).
///
/// # Errors
/// As [`color_map`].
pub fn all_colors(spec: &MachineSpec) -> Result<ColorMap, String> {
    let llc = spec.last_level();
    let masks = slices(llc)?;
    let geometry = Geometry {
        llc: Some(indexed(llc, &masks)),
        l2: None,
        banks: &[],
    };
    let map = ColorMap::from_geometry(&geometry, PrivateL2::Exclude).map_err(|e| e.to_string())?;
    match map.colors() {
        1 => Err(format!("{} has a single page color", llc.name)),
        _ => Ok(map),
    }
}

/// The colours of a policy on a machine: its own map, or the machine's.
///
/// # Errors
/// As [`color_map`].
pub(crate) fn map_of(spec: &MachineSpec, policy: &Policy) -> Result<ColorMap, String> {
    match (&policy.color_map, policy.frames) {
        (Some(map), _) => Ok(map.clone()),
        (None, Frames::Hvr | Frames::Uvp) => vertical_map(spec),
        (None, _) => color_map(spec),
    }
}

/// The colours of a machine's last level and banks that leave a private L2 whole, with the
/// classes of their bits: what HVR's policies choose from. (The bits that HVR's paper takes
/// on its machine halve the L2 as well.)
///
/// # Errors
/// As [`color_map`].
pub fn vertical_map(spec: &MachineSpec) -> Result<ColorMap, String> {
    let memory = &spec.memory;
    let banks = bank_masks(
        &memory.dram,
        memory.size.0 / u64::from(memory.controllers.max(1)),
    )
    .map_err(|e| e.to_string())?;
    mapped(spec, &banks)
}

/// The parts of the last level that a policy's colors tell apart, by the bits that select its sets and
/// slices; none of a policy without colors, or if nobody knows what its bits select.
pub fn cache_parts(spec: &MachineSpec, policy: &Policy) -> Option<u32> {
    let map = map_of_owners(spec, policy)?;
    let bits = cache_bits(&map);
    (bits != 0).then(|| 1 << bits.count_ones())
}

/// The colors of a policy that chooses frames by them.
pub(crate) fn map_of_owners(spec: &MachineSpec, policy: &Policy) -> Option<ColorMap> {
    let map = policy.frames.is_colored().then(|| map_of(spec, policy));
    map.and_then(Result::ok)
}

/// The bits of a color that select a part of the last level.
fn cache_bits(map: &ColorMap) -> u16 {
    map.bits_of(BitClass::Both) | map.bits_of(BitClass::Cache)
}

/// How many of some colors lie in each part of the last level.
pub(crate) fn in_parts(map: &ColorMap, colors: &ColorSet) -> Vec<u32> {
    let bits = cache_bits(map);
    let mut all = vec![0; 1 << bits.count_ones()];
    for color in colors.iter() {
        if let Some(number) = all.get_mut(usize::from(value_of(bits, color))) {
            *number += 1;
        }
    }
    all
}

/// The number that some bits of a color make, the lowest first.
fn value_of(bits: u16, color: Color) -> u16 {
    let selects = (0..u16::BITS).filter(|bit| bits >> bit & 1 == 1);
    let each = selects.enumerate();
    each.fold(0, |sum, (to, from)| sum | (color.0 >> from & 1) << to)
}

/// The colors in some parts of the cache and of the banks, which the lowest bits of their class divide.
///
/// # Errors
/// There are fewer such bits.
pub(crate) fn of_parts(map: &ColorMap, parts: &Parts) -> Result<ColorSet, String> {
    let both = [
        (&parts.cache, BitClass::Cache, "the last level"),
        (&parts.banks, BitClass::Bank, "the banks"),
    ];
    let mut divided: Vec<(u16, &Portion)> = Vec::new();
    for (portion, class, what) in both {
        let Some(portion) = portion else { continue };
        let mut bits = map.bits_of(class);
        let wanted = portion.of.trailing_zeros();
        let there = bits.count_ones();
        if there < wanted {
            return Err(format!(
                "{} parts: {there} color bits select {what} and nothing else; allowed: up to {} parts",
                portion.of,
                1 << there
            ));
        }
        while bits.count_ones() > wanted {
            bits ^= 1 << bits.ilog2();
        }
        divided.push((bits, portion));
    }
    let mut colors = ColorSet::first(map.colors());
    for color in ColorSet::first(map.colors()).iter() {
        let mut all = divided.iter();
        if !all.all(|(bits, portion)| portion.parts.contains(Color(value_of(*bits, color)))) {
            colors.remove(color);
        }
    }
    Ok(colors)
}

/// What a program of a scenario asks for under a policy that has owners of colours.
pub(crate) fn owned(program: &ProgramEntry, policy: &Policy) -> Option<ColorAsk> {
    match policy.colors.get(&program.name) {
        None => program.colors.clone(),
        // Parts were made colors when the policy was read.
        Some(PolicyColors::None | PolicyColors::Parts(..)) => None,
        Some(PolicyColors::Asks(asked, _)) => Some(asked.clone()),
    }
}

/// A program that cannot have what it asks for.
pub(crate) struct Conflict {
    /// Its place in the scenario.
    pub program: usize,
    /// Why not, in words.
    pub why: String,
}

/// The colours of each program under a policy: those that are named, and then, in the
/// scenario's order, those that the registry gives to programs that ask for a number or a
/// share. Programs that name the same colours share them.
pub(crate) fn partitions(
    programs: &[ProgramEntry],
    policy: &Policy,
    colors: u32,
) -> Result<Vec<Option<ColorSet>>, Conflict> {
    let mut own = vec![None; programs.len()];
    let mut asked: Vec<(usize, ColorAsk)> = (programs.iter().enumerate())
        .filter_map(|(at, program)| Some((at, owned(program, policy)?)))
        .collect();
    asked.sort_by_key(|(_, want)| !matches!(want, ColorAsk::Exactly(_)));
    let slots = vec![Partition::EMPTY; (colors as usize).min(MAX_PARTITIONS)];
    let registry = Registry::new(slots, colors, RAINBOW);
    let Ok(mut registry) = registry else {
        return Ok(own);
    };
    let mut owners: Vec<(PartitionId, usize)> = Vec::new();
    for (program, want) in asked {
        let same =
            |at: &usize| matches!(&want, ColorAsk::Exactly(set) if own[*at].as_ref() == Some(set));
        if let Some((_, with)) = owners.iter().find(|(_, at)| same(at)) {
            own[program] = own[*with].clone();
            continue;
        }
        let made = registry.reserve(&Reservation::of((&want).into()));
        let id = made.map_err(|refusal| {
            let owner = |id: PartitionId| owners.iter().find(|(of, _)| *of == id);
            let why = match refusal {
                Refusal::Taken { color, by } => {
                    let by = owner(by).map_or("", |(_, at)| programs[*at].name.as_str());
                    format!("{color} belongs to \"{by}\"; programs share all colors or none")
                }
                other => other.to_string(),
            };
            Conflict { program, why }
        })?;
        own[program] = registry.get(id).ok().map(|p| p.colors().clone());
        owners.push((id, program));
    }
    Ok(own)
}

/// The same for a scenario that was checked.
fn shares(scenario: &Scenario, policy: usize) -> Option<(Vec<Option<ColorSet>>, u32)> {
    let policy = &scenario.policies[policy];
    if policy.frames != Frames::Rainbow {
        return None;
    }
    let colors = map_of(&scenario.machine, policy).ok()?.colors();
    let own = partitions(&scenario.programs, policy, colors).ok()?;
    Some((own, colors))
}

/// The colours of programs that are not in a run, which are reserved, so that those that are have
/// the memory that they would have beside them. A program that changes its colours may need any
/// of these, so nothing is kept from it.
pub(crate) fn held(scenario: &Scenario, members: &[usize], policy: usize) -> Vec<ColorSet> {
    let Some((own, _)) = shares(scenario, policy) else {
        return Vec::new();
    };
    let changes = |at: &usize| !scenario.programs[*at].changes.is_empty();
    if members.iter().any(changes) {
        return Vec::new();
    }
    let mine: Vec<&ColorSet> = members.iter().filter_map(|at| own[*at].as_ref()).collect();
    let mut held = Vec::new();
    for set in own.iter().flatten() {
        if !mine.contains(&set) && !held.contains(set) {
            held.push(set.clone());
        }
    }
    held
}

fn slices(cache: &CacheSpec) -> Result<Vec<u64>, String> {
    let read = |text: &String| {
        u64::from_str_radix(text.trim_start_matches("0x"), 16)
            .map_err(|_| format!("{}: slice_hash {text} is no mask", cache.name))
    };
    cache.slice_hash.iter().map(read).collect()
}

fn indexed<'a>(cache: &CacheSpec, slices: &'a [u64]) -> IndexedCache<'a> {
    IndexedCache {
        line: 1 << LINE_SHIFT,
        sets: cache.sets_of_slice(),
        slices,
    }
}

/// What a program asks the kernel for under a policy.
///
/// Under Rainbow a program with colours has them for itself, in turn; the others
/// share what nobody owns, or, where everything is owned, all colours (thesis,
/// section 5.5.2).
pub(crate) fn setup(scenario: &Scenario, program: usize, policy: usize) -> ColorSetup {
    let Some((own, _)) = shares(scenario, policy) else {
        return ColorSetup::default();
    };
    let entry = &scenario.programs[program];
    let reserve = own[program].clone().map(ColorAsk::Exactly);
    ColorSetup {
        changes: match reserve {
            Some(_) => entry.changes.clone(),
            None => Vec::new(),
        },
        on_limit: on_limit(entry, &scenario.policies[policy]),
        shared: true,
        reserve,
    }
}

/// Colours that a program has for itself, and others when they are used up.
pub(crate) fn lent(own: ColorSet) -> ColorSetup {
    ColorSetup {
        reserve: Some(ColorAsk::Exactly(own)),
        shared: false,
        on_limit: OnLimit::Borrow,
        ..ColorSetup::default()
    }
}

/// What happens when a program's colours are used up, which a policy may say.
fn on_limit(entry: &ProgramEntry, policy: &Policy) -> OnLimit {
    match policy.colors.get(&entry.name) {
        Some(PolicyColors::Asks(_, Some(Binding::Hint))) => OnLimit::Borrow,
        Some(PolicyColors::Asks(_, Some(Binding::Hard))) if entry.on_limit == OnLimit::Borrow => {
            OnLimit::Fail
        }
        _ => entry.on_limit,
    }
}

/// The colours that a program may use under a policy, if not all: its own, or those that nobody owns.
pub(crate) fn binding(scenario: &Scenario, program: usize, policy: usize) -> Option<ColorSet> {
    let (mut own, colors) = shares(scenario, policy)?;
    if let Some(set) = own[program].take() {
        return Some(set);
    }
    let mut rest = ColorSet::first(colors);
    for color in own.iter().flatten().flat_map(ColorSet::iter) {
        rest.remove(color);
    }
    (!rest.is_empty() && rest.len() < colors).then_some(rest)
}

/// The same in words.
pub(crate) fn of(scenario: &Scenario, program: usize, policy: usize) -> Option<String> {
    binding(scenario, program, policy).map(|set| set.to_string())
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
    use piebald_hw::presets;

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
    fn colors_lie_in_the_parts_that_their_cache_bits_select() {
        let map = ColorMap::from_text("B 13\nO 14\nC 16\nB 21").unwrap().map;
        let in_parts = |colors: &str| in_parts(&map, &colors.parse().unwrap());
        // Color bits 1 and 2 select the part.
        assert_eq!(in_parts("0,1,8,9"), [4, 0, 0, 0]);
        assert_eq!(in_parts("2,4,6,14"), [0, 1, 1, 2]);
        let banks = ColorMap::from_text("B 13\n16").unwrap().map;
        assert_eq!(super::in_parts(&banks, &"0-3".parse().unwrap()), [4]);
    }

    #[test]
    fn parts_are_divided_by_the_lowest_bits_that_select_nothing_else() {
        let map = ColorMap::from_text("O 13\nB 14\nC 16\nC 17\nC 18")
            .unwrap()
            .map;
        let policy = |text: &str| {
            let policy =
                format!("name = \"p\"\nframes = \"rainbow\"\ncolors = {{ a = \"{text}\" }}");
            let policy: piebald_experiment::Policy = toml::from_str(&policy).unwrap();
            policy.colors["a"].clone()
        };
        let colors = |text: &str| match policy(text) {
            PolicyColors::Parts(parts, _) => of_parts(&map, &parts).map(|set| set.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(colors("cache 0/4").as_deref(), Ok("0-3,16-19"));
        assert_eq!(colors("cache 1/4 banks 1/2").as_deref(), Ok("6-7,22-23"));
        assert_eq!(colors("cache 1,3/4 hint"), colors("cache 5,7,1,3/8"));
        assert_eq!(
            colors("banks 1/2").as_deref(),
            Ok("2-3,6-7,10-11,14-15,18-19,22-23,26-27,30-31")
        );
        let none = colors("banks 0/4").unwrap_err();
        assert!(
            none.contains("4 parts: 1 color bits select the banks"),
            "{none}"
        );
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
