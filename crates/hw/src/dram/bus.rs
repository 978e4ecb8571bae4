//! A channel's data bus: bursts that are booked, and the gaps between them.

use super::timing::Timing;

/// Bookings kept. Half of them are forgotten at a time, so that at least 32
/// bursts (192 ns of a DDR3-1333 bus without a gap) stay open to requests that
/// arrive late.
const KEPT: usize = 64;

/// One burst.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    start: u64,
    rank: u16,
    write: bool,
}

/// Bookings of one bus, sorted by start.
#[derive(Clone, Debug)]
pub(super) struct Bus {
    bursts: [Burst; KEPT],
    len: usize,
    /// No new read (`[0]`) or write (`[1]`) burst starts before this: what was
    /// booked there is forgotten.
    floor: [u64; 2],
    /// From here on a read (`[0]`) or write (`[1]`) burst of any rank is in
    /// nobody's way.
    free: [u64; 2],
}

/// Least distances between the starts of two bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spacing {
    /// `[first is write][second is write][same rank]`
    between: [[[u64; 2]; 2]; 2],
    /// `[first is write][second is write]`, for any two ranks.
    after: [[u64; 2]; 2],
    longest: u64,
    /// One pass over the bookings finds a free place.
    one_pass: bool,
}

impl Spacing {
    pub(super) fn new(t: &Timing) -> Self {
        let same_way = [t.burst + t.rtrs, t.burst.max(t.ccd)];
        let read_then_write = [t.burst + t.turnaround; 2];
        // Write data, tWTR, column read, CL, read data.
        let write_then_read = [t.burst + t.rtrs, t.burst + t.wtr + t.cl];
        let between = [[same_way, read_then_write], [write_then_read, same_way]];
        let after = between.map(|second| second.map(|ranks| ranks[0].max(ranks[1])));
        let longest = between
            .iter()
            .flatten()
            .flatten()
            .copied()
            .max()
            .unwrap_or(0);
        let mut spacing = Self {
            between,
            after,
            longest,
            one_pass: false,
        };
        spacing.one_pass = spacing.is_monotone();
        spacing
    }

    /// Can a wish that moved past a booking never run into one that it passed
    /// by before? True for the timings of real chips; tried for every mix of
    /// directions and ranks.
    fn is_monotone(&self) -> bool {
        let kinds = || {
            (0..6u16).map(|n| Burst {
                start: 0,
                rank: n / 2,
                write: n % 2 == 1,
            })
        };
        kinds().all(|wish| {
            kinds().all(|early| {
                kinds().all(|late| {
                    let apart = self.between(early, late);
                    let passed = self.between(wish, late) > self.between(wish, early) + apart;
                    let back = self.between(early, wish) > apart + self.between(late, wish);
                    !(passed && back)
                })
            })
        })
    }

    fn between(&self, first: Burst, second: Burst) -> u64 {
        let same = usize::from(first.rank == second.rank);
        self.between[usize::from(first.write)][usize::from(second.write)][same]
    }
}

impl Bus {
    pub(super) fn new() -> Self {
        Self {
            bursts: [Burst::default(); KEPT],
            len: 0,
            floor: [0; 2],
            free: [0; 2],
        }
    }

    /// Books the first place for a burst that starts no earlier than `earliest`
    /// and keeps its distance from every booking; returns its start.
    #[inline]
    pub(super) fn book(&mut self, spacing: &Spacing, rank: u16, write: bool, earliest: u64) -> u64 {
        let wish = self.place(spacing, rank, write, earliest);
        self.add(spacing, wish);
        wish.start
    }

    /// As [`book`](Self::book), unless the burst would start after `last`.
    pub(super) fn book_before(
        &mut self,
        spacing: &Spacing,
        rank: u16,
        write: bool,
        earliest: u64,
        last: u64,
    ) -> Option<u64> {
        let wish = self.place(spacing, rank, write, earliest);
        if wish.start > last {
            return None;
        }
        self.add(spacing, wish);
        Some(wish.start)
    }

    /// The first place for a burst.
    #[inline]
    fn place(&mut self, spacing: &Spacing, rank: u16, write: bool, earliest: u64) -> Burst {
        if self.len == KEPT {
            self.forget(spacing);
        }
        let mut wish = Burst {
            start: earliest,
            rank,
            write,
        };
        if earliest < self.free[usize::from(write)] {
            self.find(spacing, &mut wish);
        }
        wish
    }

    /// Adds a burst that has found its place.
    #[inline]
    fn add(&mut self, spacing: &Spacing, wish: Burst) {
        let distances = spacing.after[usize::from(wish.write)];
        for (free, distance) in self.free.iter_mut().zip(distances) {
            *free = (*free).max(wish.start + distance);
        }
        let mut at = self.len;
        while at > 0 && self.bursts[at - 1].start > wish.start {
            self.bursts[at] = self.bursts[at - 1];
            at -= 1;
        }
        self.bursts[at] = wish;
        self.len += 1;
    }

    /// Moves `wish` to the first place between or behind the bookings.
    fn find(&self, spacing: &Spacing, wish: &mut Burst) {
        wish.start = wish.start.max(self.floor[usize::from(wish.write)]);
        let mut first = self.len;
        while first > 0 && self.bursts[first - 1].start + spacing.longest > wish.start {
            first -= 1;
        }
        while self.pass(spacing, first, wish) && !spacing.one_pass {}
    }

    /// Moves `wish` past the bookings from `first` on that it is too close to.
    fn pass(&self, spacing: &Spacing, first: usize, wish: &mut Burst) -> bool {
        let mut moved = false;
        for &other in &self.bursts[first..self.len] {
            if other.start >= wish.start + spacing.longest {
                break;
            }
            let after = other.start + spacing.between(other, *wish);
            if wish.start < after && other.start < wish.start + spacing.between(*wish, other) {
                wish.start = after;
                moved = true;
            }
        }
        moved
    }

    /// Forgets the older half and raises the floors above it.
    #[cold]
    fn forget(&mut self, spacing: &Spacing) {
        let old = KEPT / 2;
        for burst in &self.bursts[..old] {
            let distances = spacing.after[usize::from(burst.write)];
            for (floor, distance) in self.floor.iter_mut().zip(distances) {
                *floor = (*floor).max(burst.start + distance);
            }
        }
        self.bursts.copy_within(old..self.len, 0);
        self.len -= old;
    }
}
