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
}

/// Least distances between the starts of two bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spacing {
    /// `[first is write][second is write][same rank]`
    between: [[[u64; 2]; 2]; 2],
    longest: u64,
}

impl Spacing {
    pub(super) fn new(t: &Timing) -> Self {
        let same_way = [t.burst + t.rtrs, t.burst.max(t.ccd)];
        let read_then_write = [t.burst + t.turnaround; 2];
        // Write data, tWTR, column read, CL, read data.
        let write_then_read = [t.burst + t.rtrs, t.burst + t.wtr + t.cl];
        let between = [[same_way, read_then_write], [write_then_read, same_way]];
        let longest = between
            .iter()
            .flatten()
            .flatten()
            .copied()
            .max()
            .unwrap_or(0);
        Self { between, longest }
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
        }
    }

    /// Books the first place for a burst that starts no earlier than `earliest`
    /// and keeps its distance from every booking; returns its start.
    pub(super) fn book(&mut self, spacing: &Spacing, rank: u16, write: bool, earliest: u64) -> u64 {
        if self.len == KEPT {
            self.forget(spacing);
        }
        let mut wish = Burst {
            start: earliest.max(self.floor[usize::from(write)]),
            rank,
            write,
        };
        if self.len == 0 || wish.start >= self.bursts[self.len - 1].start + spacing.longest {
            self.bursts[self.len] = wish;
            self.len += 1;
            return wish.start;
        }
        let mut first = self.len;
        while first > 0 && self.bursts[first - 1].start + spacing.longest > wish.start {
            first -= 1;
        }
        // A move past one booking can, rarely, run into an earlier one with a
        // longer distance: repeat until a whole pass moves nothing.
        while self.pass(spacing, first, &mut wish) {}
        self.insert(wish);
        wish.start
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

    fn insert(&mut self, burst: Burst) {
        let mut at = self.len;
        while at > 0 && self.bursts[at - 1].start > burst.start {
            self.bursts[at] = self.bursts[at - 1];
            at -= 1;
        }
        self.bursts[at] = burst;
        self.len += 1;
    }

    /// Forgets the older half and raises the floors above it.
    fn forget(&mut self, spacing: &Spacing) {
        let (old, kept) = (KEPT / 2, self.len - KEPT / 2);
        for burst in &self.bursts[..old] {
            for write in 0..2 {
                let distances = spacing.between[usize::from(burst.write)][write];
                let free = burst.start + distances[0].max(distances[1]);
                self.floor[write] = self.floor[write].max(free);
            }
        }
        self.bursts.copy_within(old..self.len, 0);
        self.len = kept;
    }
}
