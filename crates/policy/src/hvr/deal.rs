//! Dealing out the lots of each zone, so that little changes from one event to the next.
//!
//! Each program has a *home*, one lot of its zone. A zone's programs are spread as evenly
//! as they can be; who has a home keeps it as long as that allows, in the order of
//! arrival. Lots that are nobody's home are spare.

use core::borrow::Borrow;

use super::{
    Manager, Program, Reach,
    config::Spare,
    layout::{MAX_LOTS, Zone},
    program::HOMELESS,
};
use crate::color_map::ColorMap;

/// Programs of a zone that each lot is home to.
type Homes = [u32; MAX_LOTS];

impl<M: Borrow<ColorMap>, P: AsRef<[Program]> + AsMut<[Program]>> Manager<M, P> {
    /// Gives every program its lots. `is_same`: the layout is that of the last event.
    pub(super) fn deal(&mut self, is_same: bool) {
        let layout = self.layout;
        self.for_each(|p| {
            let zone = layout.zone(p.class(), p.threads);
            p.held = match is_same && zone == p.zone {
                true => p.lots,
                false => 0,
            };
            p.zone = zone;
            p.lots = 0;
        });
        for zone in Zone::ALL {
            self.deal_zone(zone);
        }
    }

    fn deal_zone(&mut self, zone: Zone) {
        let nr = self.layout.lots(zone).nr();
        let mut programs = 0u32;
        self.for_each(|p| programs = programs.saturating_add(u32::from(is_dealt(p, zone))));
        let mut homes: Homes = [0; MAX_LOTS];
        self.keep_homes(zone, nr, programs, &mut homes);
        self.find_homes(zone, nr, &mut homes);
        if programs > 0 && programs < nr && self.config.spare == Spare::Lent {
            for lot in 0..nr {
                if homes.get(lot as usize) == Some(&0) {
                    self.lend(zone, lot);
                }
            }
        }
    }

    /// Who has a home keeps it, while no lot has more programs than an even deal gives it.
    fn keep_homes(&mut self, zone: Zone, nr: u32, programs: u32, homes: &mut Homes) {
        let floor = programs.checked_div(nr).unwrap_or(0);
        let mut extra = programs.checked_rem(nr).unwrap_or(0);
        self.for_each(|p| {
            if !is_dealt(p, zone) {
                return;
            }
            let wish = u32::from(p.home).checked_rem(nr).unwrap_or(0);
            let home = homes.get_mut(wish as usize);
            let home = home.filter(|_| p.home != HOMELESS);
            p.home = HOMELESS;
            if let Some(n) = home {
                let is_extra = *n == floor;
                if *n < floor || is_extra && extra > 0 {
                    extra = extra.saturating_sub(u32::from(is_extra));
                    *n = n.saturating_add(1);
                    p.home = wish as u8;
                }
            }
        });
    }

    /// The others go where fewest are.
    fn find_homes(&mut self, zone: Zone, nr: u32, homes: &mut Homes) {
        self.for_each(|p| {
            if !is_dealt(p, zone) {
                return;
            }
            if p.home == HOMELESS {
                let lots = (0u8..).zip(homes.iter_mut()).take(nr as usize);
                if let Some((lot, n)) = lots.min_by_key(|(_, n)| **n) {
                    *n = n.saturating_add(1);
                    p.home = lot;
                }
            }
            p.lots = bit(u32::from(p.home));
        });
    }

    /// A spare lot goes to a program with fewest lots: to the one that has it, else to the
    /// one that arrived first.
    fn lend(&mut self, zone: Zone, lot: u32) {
        let mut best: Option<(u32, bool, u64)> = None;
        self.for_each(|p| {
            let has_not = p.held & bit(lot) == 0;
            let rank = (p.lots.count_ones(), has_not, p.stamp);
            if is_dealt(p, zone) && best.is_none_or(|b| rank < b) {
                best = Some(rank);
            }
        });
        self.for_each(|p| {
            if is_dealt(p, zone) && best.is_some_and(|(_, _, stamp)| stamp == p.stamp) {
                p.lots |= bit(lot);
            }
        });
    }

    /// Turns lots into cells and colours. Returns how many programs have other colours
    /// than before.
    pub(super) fn color(&mut self, stamp: u64, is_same_scheme: bool) -> u32 {
        let (layout, mut changed) = (self.layout, 0u32);
        let slots = self.programs.as_mut();
        let mut at = self.first;
        while let Some(p) = slots.get_mut(usize::from(at)) {
            at = p.after;
            let lots = layout.lots(p.zone);
            let cells = match p.reach {
                Reach::All => layout.scheme.all(),
                Reach::Lot if p.threads == 1 => lots.cells(p.lots),
                _ => lots.cells(u64::MAX),
            };
            if is_same_scheme && cells == p.cells {
                continue;
            }
            p.cells = cells;
            if layout
                .scheme
                .colors(self.map.borrow(), cells, &mut p.colors)
            {
                p.changed = stamp;
                changed = changed.saturating_add(1);
            }
        }
        changed
    }
}

/// Does the program take part in the deal of a zone? One of several threads has all of it.
pub(super) const fn is_dealt(p: &Program, zone: Zone) -> bool {
    p.threads == 1 && p.zone as u8 == zone as u8
}

const fn bit(n: u32) -> u64 {
    match 1u64.checked_shl(n) {
        Some(bit) => bit,
        None => 0,
    }
}
