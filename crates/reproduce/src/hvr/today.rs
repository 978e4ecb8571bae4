//! H-B1, beyond the paper: what the rules would be on a present-day machine (protocol).
//!
//! Such a machine has no O-bits. Banks and cache are cut by masks of their own, each alone or both at
//! once; which way is best for the mixes of rules 1 and 2 is shown, and never judged.

use std::sync::atomic::Ordering;

use piebald_hw::{presets, spec::MachineSpec};
use piebald_policy::{
    color_map::{BitClass, ColorMap},
    hvr::Class,
};
use piebald_report::{Sample, TargetKind};
use piebald_units::{Bytes, ColorSet};

use super::{
    Given,
    mixes::{Bench, Mix},
    rows::Runs,
    rules::rule_of,
    told::tell,
    ways::Way,
};
use crate::row::{Found, Row, mean};

pub(super) const TITLE: &str = "Beyond: rules 1 and 2 on a present-day machine";
/// Mixes of four programs of each of the two rules.
const EACH: usize = 3;

/// What four programs are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cut {
    /// A quarter of the cache each.
    Cache,
    /// A quarter of the banks each.
    Banks,
    /// A quarter of either.
    Both,
    /// LLCT share a quarter of the cache, the others the rest.
    Apart,
}

impl Cut {
    pub(super) const ALL: [Self; 4] = [Self::Cache, Self::Banks, Self::Both, Self::Apart];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cache => "a quarter of the cache",
            Self::Banks => "a quarter of the banks",
            Self::Both => "a quarter of both",
            Self::Apart => "LLCT apart",
        }
    }
}

/// The two lowest bits of a class, each by itself.
fn lowest(map: &ColorMap, class: BitClass) -> Result<[u16; 2], String> {
    let all = map.bits_of(class);
    let first = all & all.wrapping_neg();
    let rest = all & !first;
    let second = rest & rest.wrapping_neg();
    match second {
        0 => Err(format!("the machine has fewer than two {class:?} bits")),
        _ => Ok([first, second]),
    }
}

/// The colours of each program, by class, and whether others have the same.
///
/// # Errors
/// The machine lacks bits, or there are more than four programs.
pub(super) fn own(
    map: &ColorMap,
    cut: Cut,
    classes: &[Option<Class>],
) -> Result<Vec<(ColorSet, bool)>, String> {
    if classes.len() > 4 {
        return Err(format!("{} programs; allowed: 4 at most", classes.len()));
    }
    let (cache, banks) = (lowest(map, BitClass::Cache)?, lowest(map, BitClass::Bank)?);
    let part = |out: &mut ColorSet, keys: &[[u16; 2]], number: usize| {
        let (mut bits, mut value) = (0, 0);
        for [low, high] in keys {
            bits |= low | high;
            for (bit, key) in [(0, low), (1, high)] {
                if (number >> bit) & 1 == 1 {
                    value |= key;
                }
            }
        }
        map.group(bits, value, out);
    };
    let of = |(at, class): (usize, &Option<Class>)| {
        let mut set = ColorSet::default();
        match (cut, class) {
            (Cut::Cache, _) => part(&mut set, &[cache], at),
            (Cut::Banks, _) => part(&mut set, &[banks], at),
            (Cut::Both, _) => part(&mut set, &[cache, banks], at),
            (Cut::Apart, Some(Class::Llct)) => part(&mut set, &[cache], 0),
            (Cut::Apart, _) => (1..4).for_each(|number| part(&mut set, &[cache], number)),
        }
        (set, cut == Cut::Apart)
    };
    Ok(classes.iter().enumerate().map(of).collect())
}

/// The machine as it is, and with as much of its last level for each program as the paper's has.
fn machines() -> Result<[(&'static str, MachineSpec); 2], String> {
    let zen = presets::load("zen").map_err(|e| e.to_string())?;
    let mut small = zen.clone();
    for cache in small.cache.iter_mut().filter(|c| c.level == 3) {
        cache.size = Bytes(8 << 20);
        cache.shared_by = 4;
        cache.slice_hash.truncate(1);
    }
    Ok([("32 MiB", zen), ("8 MiB", small)])
}

/// The mixes of H-1's list that a rule speaks of, of four programs.
fn mixes(runs: &Runs<'_>, rule: usize) -> Vec<Mix> {
    let list = runs.list().into_iter();
    let four = list.filter(|m| m.members.len() == 4 && rule_of(runs, m) == Some(rule));
    four.take(EACH).collect()
}

fn number(value: f64) -> Found {
    Ok(Sample::new(vec![value]))
}

/// H-B1.
pub(super) fn present_day(runs: &Runs<'_>) -> Given {
    let mut row = Row::new("H-B1", TITLE, TargetKind::G);
    for (name, spec) in machines()? {
        let own = Runs {
            bench: Bench {
                spec: &spec,
                curves: false,
                ..runs.bench.anew()
            },
            form: runs.form,
        };
        for rule in [1, 2] {
            show(&own, &mut row, name, rule);
        }
        runs.bench.refs.fetch_add(own.refs(), Ordering::Relaxed);
    }
    Ok((vec![row.given()], Vec::new()))
}

/// The mixes of a rule on a machine.
fn show(runs: &Runs<'_>, row: &mut Row, machine: &str, rule: usize) {
    let mixes = mixes(runs, rule);
    let has_thrashing = rule == 1;
    let cuts = Cut::ALL
        .into_iter()
        .filter(|c| has_thrashing || *c != Cut::Apart);
    let cuts: Vec<Cut> = cuts.collect();
    let mut ways = vec![Way::Linux];
    ways.extend(cuts.iter().map(|cut| Way::Cut(*cut)));
    runs.bench.prepare(&mixes, &ways);
    let gains = |cut: Cut| -> Vec<Found> {
        let of = |m: &Mix| runs.bench.gain(m, Way::Cut(cut), Way::Linux);
        mixes.iter().map(of).collect()
    };
    let all: Vec<Vec<Found>> = cuts.iter().map(|cut| gains(*cut)).collect();
    let gain = |found: &Found| found.as_ref().map_or(f64::NAN, |s| s.mean);
    for (cut, found) in cuts.iter().zip(&all) {
        let words = format!("{machine}, rule {rule}: {}, mean", cut.name());
        row.show(&words, &mean(found), "%");
        let best = (0..mixes.len()).filter(|m| {
            let others = all.iter().map(|of| gain(&of[*m]));
            let own = gain(&found[*m]);
            own > 0.0 && others.fold(f64::MIN, f64::max) == own
        });
        let words = format!("{machine}, rule {rule}: {}, best in", cut.name());
        row.show(&words, &number(best.count() as f64), "mixes");
    }
    row.note(&format!("zen with {machine}, rule {rule}"));
    for (at, mix) in mixes.iter().enumerate() {
        if let Some(Err(why)) = all.iter().map(|of| &of[at]).find(|f| f.is_err()) {
            row.note(why);
        }
        tell(runs, row, std::slice::from_ref(mix), &ways);
    }
}

#[cfg(test)]
mod tests {
    use piebald_hw::{Machine, Options};
    use piebald_lab::colors::vertical_map;

    use super::*;

    #[test]
    fn each_machine_can_be_built_and_cut_in_every_way() {
        for (name, spec) in machines().expect("the preset") {
            assert!(Machine::new(&spec, &Options::default()).is_ok(), "{name}");
            let map = vertical_map(&spec).expect("colours");
            let llct = Some(Class::Llct);
            let classes = [llct, Some(Class::Llch), llct, Some(Class::Ccf)];
            for cut in Cut::ALL {
                let all = own(&map, cut, &classes).expect("two bits of each");
                let share = |at: usize| f64::from(all[at].0.len()) / f64::from(map.colors());
                let is_apart = |a: usize, b: usize| {
                    let mut both = all[a].0.iter();
                    !both.any(|c| all[b].0.contains(c))
                };
                let wanted = match cut {
                    Cut::Both => [1.0 / 16.0; 4],
                    Cut::Apart => [0.25, 0.75, 0.25, 0.75],
                    _ => [0.25; 4],
                };
                assert_eq!([0, 1, 2, 3].map(share), wanted, "{name} {cut:?}");
                assert!(is_apart(0, 1) && is_apart(2, 3), "{name} {cut:?}");
                assert_eq!(is_apart(0, 2), cut != Cut::Apart, "{name} {cut:?}");
            }
            assert!(own(&map, Cut::Both, &[llct; 5]).is_err());
        }
    }
}
