//! Recounts the registry from scratch.

use piebald_units::{ColorSet, MAX_COLORS};

use super::{Broken, MAX_PARTITIONS, Partition, Registry, Sharing, search::word_of};

/// Reports a broken rule of a slot.
fn check(holds: bool, rule: &'static str, slot: Option<usize>) -> Result<(), Broken> {
    match holds {
        true => Ok(()),
        false => Err(Broken { rule, slot }),
    }
}

/// Does a set's summary tell which of its words are not zero?
fn summary_holds(set: &ColorSet) -> bool {
    let bit = |w: usize| set.summary().wrapping_shr(w as u32) & 1 == 1;
    (0..MAX_COLORS / 64).all(|w| bit(w) == (set.word(w) != 0))
}

impl<P: AsRef<[Partition]> + AsMut<[Partition]>> Registry<P> {
    /// Recounts everything from scratch and compares.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), Broken> {
        let slots = self.partitions.as_ref();
        let mut used = 0u32;
        for (slot, p) in slots.iter().enumerate() {
            self.check_slot(slot, p)?;
            used = used.saturating_add(u32::from(p.tasks > 0));
        }
        check(used == self.used, "partitions are counted", None)?;
        let counted = self.counters.reserved.saturating_sub(self.counters.freed);
        check(u64::from(used) == counted, "reserved - freed exist", None)?;
        let left = self.nr_unreserved;
        check(
            left == self.unreserved.len(),
            "unreserved colors are counted",
            None,
        )?;
        let kept = self.colors == 0 || left >= self.config.keep_unreserved;
        check(kept, "enough colors are kept unreserved", None)?;
        check(
            summary_holds(&self.unreserved),
            "a summary tells its words",
            None,
        )?;
        self.check_owners()
    }

    /// The rules of one slot.
    fn check_slot(&self, slot: usize, p: &Partition) -> Result<(), Broken> {
        let at = Some(slot);
        check(
            p.nr_colors == p.colors.len(),
            "colors of a partition are counted",
            at,
        )?;
        check(summary_holds(&p.colors), "a summary tells its words", at)?;
        if p.tasks == 0 {
            let empty = p.nr_colors == 0 && p.name.is_none();
            return check(empty, "a slot without tasks is empty", at);
        }
        check(slot < MAX_PARTITIONS, "slots beyond 4096 are unused", at)?;
        check(p.nr_colors > 0, "a partition has a color", at)?;
        let dated = p.stamp <= p.changed && p.changed < self.next;
        check(dated, "stamps rise", at)?;
        let others = self.iter().filter(|(id, _)| usize::from(id.slot) != slot);
        let mut others = others.map(|(_, other)| other);
        let unlike = |o: &Partition| o.stamp != p.stamp && (o.name.is_none() || o.name != p.name);
        check(others.all(unlike), "stamps and names differ", at)
    }

    /// Every colour has one owner, or several where they may share, and only colours that exist have one.
    fn check_owners(&self) -> Result<(), Broken> {
        for word in 0..MAX_COLORS / 64 {
            let mut owned = self.unreserved.word(word);
            for (slot, p) in self.partitions.as_ref().iter().enumerate() {
                let own = p.colors.word(word);
                let others = match self.config.sharing {
                    Sharing::Exclusive => owned,
                    Sharing::Shared => self.unreserved.word(word),
                };
                check(others & own == 0, "a color has one owner", Some(slot))?;
                owned |= own;
            }
            let all = owned == word_of(self.colors, word);
            check(all, "every color that exists has an owner", None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use piebald_units::Color;

    use super::*;
    use crate::rainbow::{Ask, Config, Name, Reservation};

    type Small = Registry<[Partition; 4]>;

    /// The rule that a registry with two partitions breaks after `damage`.
    fn broken(damage: impl FnOnce(&mut Small)) -> Option<&'static str> {
        let slots = [const { Partition::EMPTY }; 4];
        let mut registry = Registry::new(slots, 16, Config::PAPER).ok()?;
        for n in [3, 5] {
            registry.reserve(&Reservation::of(Ask::Count(n))).ok()?;
        }
        damage(&mut registry);
        registry.validate().err().map(|b| b.rule)
    }

    #[test]
    fn each_kind_of_damage_is_found() {
        assert_eq!(broken(|_| ()), None);
        type Damage = fn(&mut Small);
        let rules: [(Damage, &str); 12] = [
            (|r| r.used = 1, "partitions are counted"),
            (|r| r.counters.freed = 1, "reserved - freed exist"),
            (|r| r.nr_unreserved = 7, "unreserved colors are counted"),
            (
                |r| r.config.keep_unreserved = 9,
                "enough colors are kept unreserved",
            ),
            (
                |r| r.partitions[1].nr_colors = 4,
                "colors of a partition are counted",
            ),
            (
                |r| {
                    r.partitions[0].name = Name::new("a").ok();
                    r.partitions[1].name = Name::new("a").ok();
                },
                "stamps and names differ",
            ),
            (
                |r| r.partitions[0].tasks = 0,
                "a slot without tasks is empty",
            ),
            (
                |r| {
                    r.partitions[0].colors.clear();
                    r.partitions[0].nr_colors = 0;
                },
                "a partition has a color",
            ),
            (|r| r.partitions[1].changed = 99, "stamps rise"),
            (
                |r| {
                    let stamp = r.partitions[0].stamp;
                    r.partitions[1].stamp = stamp;
                },
                "stamps and names differ",
            ),
            (
                |r| {
                    r.partitions[1].colors.insert(Color(0));
                    r.partitions[1].nr_colors = 6;
                },
                "a color has one owner",
            ),
            (
                |r| {
                    r.partitions[1].colors.insert(Color(16));
                    r.partitions[1].nr_colors = 6;
                },
                "every color that exists has an owner",
            ),
        ];
        for (damage, rule) in rules {
            assert_eq!(broken(damage).unwrap_or("nothing"), rule);
        }
    }
}
