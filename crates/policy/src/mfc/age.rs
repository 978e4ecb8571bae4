//! `update_use`: old uses count less (Figure 2, lines 45 to 47; section 4.3).

use piebald_units::{CoreId, Picos};

use super::{
    room::{DomainId, Room},
    store::Books,
    sync::{AtomicU32, Relaxed, Release},
};

/// Periods that are made up for if nobody aged for long: after 31 halvings nothing is
/// left.
const MAX_BEHIND: u64 = 31;

/// A use that is counted while the cell is halved makes one halving fail; a second try
/// is enough, since a third use in that moment is worth no more than the halving that is
/// lost.
fn halve(cell: &AtomicU32, shift: u32) {
    for _ in 0..2 {
        let seen = cell.load(Relaxed);
        let half = seen.checked_shr(shift).unwrap_or(0);
        if seen == half || cell.compare_exchange(seen, half, Relaxed, Relaxed).is_ok() {
            return;
        }
    }
}

impl Room<'_> {
    /// Halves the next files' uses of the core's domain, if it is time. True if there is
    /// more to do now.
    pub fn tick(&self, core: CoreId, now: Picos) -> bool {
        let Some(id) = self.domain_of(core) else {
            return false;
        };
        let Some(books) = self.books(id) else {
            return false;
        };
        if !self.is_due(books, now) || !books.aging.take() {
            return false;
        }
        // Another core of the domain may have done it in between.
        let is_due = self.is_due(books, now);
        if is_due {
            self.age_step(id, books, now);
        }
        books.aging.give();
        is_due && self.is_due(books, now)
    }

    /// The first period begins with the first tick.
    fn is_due(&self, books: &Books, now: Picos) -> bool {
        let due = books.due.load(Relaxed);
        if due == 0 {
            let first = now.0.saturating_add(self.machine.config.period.0);
            let _ = books.due.compare_exchange(0, first, Relaxed, Relaxed);
            return false;
        }
        now.0 >= due
    }

    /// Under `aging`.
    fn age_step(&self, id: DomainId, books: &Books, now: Picos) {
        let config = &self.machine.config;
        let from = books.cursor.load(Relaxed);
        let to = from.saturating_add(config.age_step).min(self.machine.files);
        for file in from..to {
            if let Some(cell) = self.cell(id, file) {
                halve(&cell.used, config.decay_shift);
                halve(&cell.moved, config.decay_shift);
            }
        }
        // After the halving: a bound that was found meanwhile may be too high.
        books.least.store(0, Release);
        if to < self.machine.files {
            books.cursor.store(to, Relaxed);
            return;
        }
        books.cursor.store(0, Relaxed);
        let period = config.period.0;
        let next = books.due.load(Relaxed).saturating_add(period);
        let earliest = now.0.saturating_sub(period.saturating_mul(MAX_BEHIND));
        books.due.store(next.max(earliest), Relaxed);
    }
}
