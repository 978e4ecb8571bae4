//! A rank's activates: tRRD between any two, at most four in any tFAW.

use super::timing::Timing;

/// Activates kept; half of them are forgotten at a time.
const KEPT: usize = 32;

/// Times of the activates of one rank, sorted.
#[derive(Clone, Debug)]
pub(super) struct Activates {
    at: [u64; KEPT],
    len: usize,
    /// No new activate before this: what was booked there is forgotten.
    floor: u64,
}

impl Activates {
    pub(super) fn new() -> Self {
        Self {
            at: [0; KEPT],
            len: 0,
            floor: 0,
        }
    }

    /// Books the first activate no earlier than `earliest`; returns its time.
    #[inline]
    pub(super) fn book(&mut self, t: &Timing, earliest: u64) -> u64 {
        if self.len == KEPT {
            self.forget(t);
        }
        let wish = earliest.max(self.floor);
        if self.is_behind_all(t, wish) {
            self.at[self.len] = wish;
            self.len += 1;
            return wish;
        }
        self.squeeze(t, wish)
    }

    /// Books the first place among the bookings, from `wish` on.
    fn squeeze(&mut self, t: &Timing, mut wish: u64) -> u64 {
        let mut later = self.len;
        while later > 0 && self.at[later - 1] > wish {
            later -= 1;
        }
        while let Some(next) = self.refused(t, wish, later) {
            wish = next;
            while later < self.len && self.at[later] <= wish {
                later += 1;
            }
        }
        self.at.copy_within(later..self.len, later + 1);
        self.at[later] = wish;
        self.len += 1;
        wish
    }

    /// The common case: later than every booking and in nobody's way.
    #[inline]
    fn is_behind_all(&self, t: &Timing, wish: u64) -> bool {
        match self.len {
            0 => true,
            1..4 => wish >= self.at[self.len - 1] + t.rrd.max(t.faw),
            _ => wish >= self.at[self.len - 1] + t.rrd && wish >= self.at[self.len - 4] + t.faw,
        }
    }

    /// If an activate at `wish`, with `later` the index of the first booking
    /// after it, breaks a rule: the next time worth a try.
    fn refused(&self, t: &Timing, wish: u64, later: usize) -> Option<u64> {
        let booked = &self.at[..self.len];
        if later > 0 && wish < booked[later - 1] + t.rrd {
            return Some(booked[later - 1] + t.rrd);
        }
        if later >= 4 && wish < booked[later - 4] + t.faw {
            return Some(booked[later - 4] + t.faw);
        }
        let next = *booked.get(later)?;
        let crowded = (1..=4).any(|after| {
            // Five activates in a row with the wish among them, `after` of
            // them behind it.
            let (Some(&last), Some(before)) = (
                booked.get(later + after - 1),
                (later + after).checked_sub(4),
            ) else {
                return false;
            };
            let first = if after == 4 { wish } else { booked[before] };
            last < first + t.faw
        });
        (next < wish + t.rrd || crowded).then_some(next + t.rrd)
    }

    /// Forgets the older half. At least `faw` behind all of it obeys both rules.
    #[cold]
    fn forget(&mut self, t: &Timing) {
        let old = KEPT / 2;
        self.floor = self.at[old - 1] + t.faw;
        self.at.copy_within(old..self.len, 0);
        self.len -= old;
    }
}
