//! Recounts the manager from scratch.

use core::borrow::Borrow;

use piebald_units::MAX_COLORS;

use super::{
    Broken, Manager, Mix, Program, Reach, Zone,
    deal::is_dealt,
    decide::decide,
    layout::MAX_LOTS,
    program::{HOMELESS, NIL},
};
use crate::color_map::ColorMap;

/// Reports a broken rule of a slot.
fn check(holds: bool, rule: &'static str, slot: Option<usize>) -> Result<(), Broken> {
    match holds {
        true => Ok(()),
        false => Err(Broken { rule, slot }),
    }
}

impl<M: Borrow<ColorMap>, P: AsRef<[Program]> + AsMut<[Program]>> Manager<M, P> {
    /// Recounts everything from scratch and compares. Compares all pairs of programs.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), Broken> {
        self.check_list()?;
        let mut mix = Mix::default();
        for (id, p) in self.iter() {
            let count = mix.count_of(p.class(), p.threads);
            *count = count.saturating_add(1);
            self.check_program(usize::from(id.slot), p)?;
        }
        check(mix == self.mix, "the mix is counted", None)?;
        let decision = decide(&mix, &self.config);
        check(
            decision == self.decision,
            "the decision is that of the mix",
            None,
        )?;
        for zone in Zone::ALL {
            self.check_zone(zone)?;
        }
        self.check_pairs()
    }

    /// Links agree, programs stand in the order of arrival, and no slot is left out.
    fn check_list(&self) -> Result<(), Broken> {
        let slots = self.programs.as_ref();
        let (mut at, mut before, mut stamp, mut len) = (self.first, NIL, 0u64, 0usize);
        while let Some(p) = slots.get(usize::from(at)) {
            let slot = Some(usize::from(at));
            check(p.threads > 0, "a listed program has threads", slot)?;
            check(p.before == before, "links agree", slot)?;
            check(p.stamp > stamp, "programs are listed as they arrived", slot)?;
            check(
                p.changed >= p.stamp && p.changed < self.next,
                "stamps rise",
                slot,
            )?;
            (before, stamp, at) = (at, p.stamp, p.after);
            len = len.saturating_add(1);
        }
        check(at == NIL && self.last == before, "the list ends", None)?;
        let used = slots.iter().filter(|p| p.threads > 0).count();
        check(used == len, "all programs are listed", None)
    }

    /// Lots, cells and colours of a program say the same.
    fn check_program(&self, slot: usize, p: &Program) -> Result<(), Broken> {
        let at = Some(slot);
        let zone = self.layout.zone(p.class(), p.threads);
        check(zone == p.zone, "a program is in its class's zone", at)?;
        let lots = self.layout.lots(zone);
        let home = 1u64.checked_shl(u32::from(p.home)).unwrap_or(0);
        let is_home = p.home != HOMELESS && u32::from(p.home) < lots.nr();
        check(
            p.threads > 1 || is_home && p.lots & home != 0,
            "a program has its home",
            at,
        )?;
        let cells = match p.reach {
            Reach::All => self.layout.scheme.all(),
            Reach::Lot if p.threads == 1 => lots.cells(p.lots),
            _ => lots.cells(u64::MAX),
        };
        check(cells == p.cells, "a program has the cells of its lots", at)?;
        check(
            cells != 0 && !p.colors.is_empty(),
            "a program has colors",
            at,
        )?;
        let colors = self.map.borrow().colors();
        let mut words = 0..MAX_COLORS / 64;
        check(
            words.all(|w| self.layout.scheme.word(colors, cells, w) == p.colors.word(w)),
            "a program has the colors of its cells",
            at,
        )
    }

    /// The programs of a zone are spread evenly, and no lot lies idle that could be lent.
    fn check_zone(&self, zone: Zone) -> Result<(), Broken> {
        let nr = self.layout.lots(zone).nr() as usize;
        let (mut homes, mut lent) = ([0u32; MAX_LOTS], 0u64);
        for (_, p) in self.iter().filter(|(_, p)| is_dealt(p, zone)) {
            if let Some(n) = homes.get_mut(usize::from(p.home)) {
                *n = n.saturating_add(1);
            }
            lent |= p.lots;
        }
        let homes = homes.iter().take(nr);
        let most = homes.clone().max().copied().unwrap_or(0);
        let least = homes.min().copied().unwrap_or(0);
        check(
            most.saturating_sub(least) <= 1,
            "a zone is dealt out evenly",
            None,
        )?;
        let is_lent = self.config.spare == super::Spare::Lent && most > 0;
        check(
            !is_lent || lent.count_ones() as usize == nr,
            "spare lots are lent",
            None,
        )
    }

    /// Programs that keep to their lots have the same colours or none in common.
    fn check_pairs(&self) -> Result<(), Broken> {
        let keeps = |p: &Program| p.reach == Reach::Lot && p.threads == 1;
        for (a, one) in self.iter().filter(|(_, p)| keeps(p)) {
            for (_, other) in self.iter().filter(|(_, p)| keeps(p)) {
                let (both, slot) = (one.cells & other.cells, Some(usize::from(a.slot)));
                let is_clean = both == 0 || one.cells == other.cells;
                check(is_clean, "parts are equal or apart", slot)?;
            }
            let twins = self.iter().filter(|(_, p)| p.task == one.task).count();
            check(
                twins == 1,
                "a task is one program",
                Some(usize::from(a.slot)),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;

    use piebald_units::{Color, TaskId};

    use super::*;
    use crate::{
        color_map::BitClass,
        hvr::{Arrival, Class, Config},
    };

    type Small = Manager<ColorMap, [Program; 5]>;

    /// The rule that a manager of an LLCT and three LLCMs breaks after `damage`.
    fn broken(damage: impl FnOnce(&mut Small)) -> Option<&'static str> {
        let classes = [
            BitClass::Both,
            BitClass::Both,
            BitClass::Cache,
            BitClass::Bank,
            BitClass::Bank,
        ];
        let masks = (0..).zip(classes).map(|(i, class)| (1 << i, class));
        let masks: vec::Vec<_> = masks.collect();
        let map = ColorMap::from_masks(&masks).ok()?;
        let mut hvr = Manager::new(map, [const { Program::EMPTY }; 5], Config::PAPER).ok()?;
        for task in 0..4 {
            let class = match task {
                0 => Class::Llct,
                _ => Class::Llcm,
            };
            let arrival = Arrival {
                class: Some(class),
                ..Arrival::of(TaskId(task))
            };
            hvr.arrive(&arrival).ok()?;
        }
        damage(&mut hvr);
        hvr.validate().err().map(|b| b.rule)
    }

    #[test]
    fn each_kind_of_damage_is_found() {
        assert_eq!(broken(|_| ()), None);
        type Damage = fn(&mut Small);
        let rules: [(Damage, &str); 15] = [
            (
                |h| h.programs[1].threads = 0,
                "a listed program has threads",
            ),
            (|h| h.programs[1].before = 2, "links agree"),
            (
                |h| h.programs[2].stamp = 1,
                "programs are listed as they arrived",
            ),
            (|h| h.programs[3].changed = 99, "stamps rise"),
            (|h| h.last = 1, "the list ends"),
            (|h| h.programs[4].threads = 1, "all programs are listed"),
            (|h| h.mix.unknown = 1, "the mix is counted"),
            (
                |h| h.decision.segregate = true,
                "the decision is that of the mix",
            ),
            (
                |h| h.programs[1].zone = Zone::Small,
                "a program is in its class's zone",
            ),
            (|h| h.programs[1].home = 3, "a program has its home"),
            (
                |h| h.programs[1].cells ^= 2,
                "a program has the cells of its lots",
            ),
            (
                |h| h.programs[1].colors.remove(Color(1)),
                "a program has the colors of its cells",
            ),
            (
                |h| {
                    let (from, to) = (h.programs[3].clone(), &mut h.programs[2]);
                    (to.home, to.lots, to.cells) = (from.home, from.lots, from.cells);
                    to.colors = from.colors;
                    (h.programs[1].home, h.programs[1].reach) = (from.home, Reach::Zone);
                    h.programs[1].lots = from.lots;
                    let all = h.layout.lots(Zone::Large).cells(u64::MAX);
                    h.programs[1].cells = all;
                    let (scheme, map) = (h.layout.scheme, &h.map);
                    scheme.colors(map, all, &mut h.programs[1].colors);
                },
                "a zone is dealt out evenly",
            ),
            (
                |h| {
                    let p = &mut h.programs[0];
                    p.lots = 1 << p.home;
                    p.cells = h.layout.lots(Zone::Small).cells(p.lots);
                    h.layout.scheme.colors(&h.map, p.cells, &mut p.colors);
                },
                "spare lots are lent",
            ),
            (|h| h.programs[3].task = TaskId(1), "a task is one program"),
        ];
        for (damage, rule) in rules {
            assert_eq!(broken(damage).unwrap_or("nothing"), rule);
        }
    }
}
