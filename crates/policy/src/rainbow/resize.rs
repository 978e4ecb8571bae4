//! Partitions that grow and shrink.

use piebald_units::{ColorSet, MAX_COLORS};

use super::{
    Ask, Partition, PartitionId, Refusal, Registry, Resized,
    partition::count,
    search::{extend, nr_shared, replace, shed, word_of},
};

impl<P: AsRef<[Partition]> + AsMut<[Partition]>> Registry<P> {
    /// Gives a partition so many colours, such a share, or exactly those colours,
    /// all or nothing. Gained colours are neighbours of those it has, as far as
    /// such are free; without names it gives back those that have no neighbour,
    /// then the highest.
    ///
    /// # Errors
    /// See [`Refusal`]; nothing has changed but the counter of refusals.
    pub fn resize(&mut self, id: PartitionId, ask: &Ask<'_>) -> Result<Resized, Refusal> {
        match self.admit_resize(id, ask) {
            Ok(resized) if resized == Resized::default() => Ok(resized),
            Ok(resized) => {
                self.apply(id.slot, ask, resized);
                Ok(resized)
            }
            Err(refusal) => {
                count(&mut self.counters.refused, 1);
                Err(refusal)
            }
        }
    }

    fn admit_resize(&self, id: PartitionId, ask: &Ask<'_>) -> Result<Resized, Refusal> {
        let partition = self.get(id)?;
        let (have, n) = (partition.nr_colors, self.wanted(ask)?);
        let kept = match ask {
            Ask::Exactly(set) => {
                self.check_free(set, Some(id))?;
                nr_shared(set, &partition.colors)
            }
            _ => n.min(have),
        };
        let (gained, lost) = (n.saturating_sub(kept), have.saturating_sub(kept));
        if gained > 0 {
            self.check_left(gained, self.left_to(id.slot, ask, gained, lost))?;
        }
        Ok(Resized { gained, lost })
    }

    /// How many of the colours that a partition gains can be reserved. Those that others have already
    /// are no loss, and what it gives back may be kept unreserved in place of what it gains.
    fn left_to(&self, slot: u16, ask: &Ask<'_>, gained: u32, lost: u32) -> u32 {
        let keep = self.config.keep_unreserved;
        match ask {
            Ask::Exactly(set) => {
                let after = self.unreserved_beside(slot, set);
                gained.saturating_sub(keep.saturating_sub(after))
            }
            _ => self.nr_unreserved.saturating_add(lost).saturating_sub(keep),
        }
    }

    /// Number of colours that nobody would have if the partition in a slot had this set.
    fn unreserved_beside(&self, slot: u16, set: &ColorSet) -> u32 {
        let words = (0..MAX_COLORS / 64).map(|word| {
            let taken = self.reserved_word(word, Some(slot)) | set.word(word);
            (word_of(self.colors, word) & !taken).count_ones()
        });
        words.fold(0, u32::saturating_add)
    }

    fn apply(&mut self, slot: u16, ask: &Ask<'_>, resized: Resized) {
        let Resized { gained, lost } = resized;
        let stamp = self.stamp();
        let free = &mut self.unreserved;
        if let Some(p) = self.partitions.as_mut().get_mut(usize::from(slot)) {
            match ask {
                Ask::Exactly(set) => replace(&mut p.colors, free, set),
                _ if gained > 0 => extend(free, &mut p.colors, gained, self.config.fit),
                _ => shed(&mut p.colors, free, lost),
            }
            p.nr_colors = p.nr_colors.saturating_add(gained).saturating_sub(lost);
            p.changed = stamp;
        }
        self.recount_unreserved();
        self.unreserved_changed = stamp;
        count(&mut self.counters.resized, 1);
        count(&mut self.counters.gained, u64::from(gained));
        count(&mut self.counters.lost, u64::from(lost));
    }
}
