//! Classes by what shares of the cache cost: what SysMon guesses from page tables, for hosts that
//! can time a program with less of the cache, or have counters of misses.
//!
//! The four kinds of section 4.1 differ in how their time depends on the share of the last level
//! that they have, and [`Borders`] tell them apart by that. Times are measured ([`Timed`]), or
//! predicted from a miss curve ([`Counts`]): with fewer parts of the cache a program has so many
//! more misses, each of which costs so many cycles. A curve is what the paper's baseline,
//! utility-based partitioning, asks of the machine ([`utility`](super::utility)).

use super::Class;

/// Time of a program for the same work with three shares of the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// With an eighth of the cache, with half of it, and with all, in one unit: cycles, or any
    /// other.
    pub time: [u64; 3],
    /// Instructions of the work.
    pub instructions: u64,
    /// Lines read from memory with the whole cache, by demands and prefetches.
    pub lines: u64,
}

/// What tells the four kinds apart by their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Borders {
    /// From so much longer on, a program suffers: hundredths of a percent of its time with the
    /// whole cache.
    pub significant_bp: u32,
    /// From so many lines for 1000 instructions on, one that does not suffer sweeps the cache.
    pub sweeping_lines: u32,
}

impl Borders {
    /// 10 % and 5 lines. Ours: the paper prints no number for what it calls significant.
    pub const OURS: Self = Self {
        significant_bp: 1000,
        sweeping_lines: 5,
    };

    /// A program that suffers with half of the cache is LLCH, with an eighth LLCM; of others one
    /// that sweeps is LLCT, else CCF. `None` without time or instructions.
    pub fn classify(&self, timed: &Timed) -> Option<Class> {
        let [eighth, half, whole] = timed.time;
        if whole == 0 || timed.instructions == 0 {
            return None;
        }
        let suffers = |time: u64| {
            let longer = u128::from(time.saturating_sub(whole));
            longer.saturating_mul(10_000) >= wide(whole, self.significant_bp)
        };
        let sweeps = u128::from(timed.lines).saturating_mul(1000)
            >= wide(timed.instructions, self.sweeping_lines);
        Some(match (suffers(half), suffers(eighth), sweeps) {
            (true, ..) => Class::Llch,
            (_, true, _) => Class::Llcm,
            (.., true) => Class::Llct,
            _ => Class::Ccf,
        })
    }
}

/// What counters said of a program in a stretch of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts<'a> {
    /// Cycles with the whole cache.
    pub cycles: u64,
    /// Instructions in these.
    pub instructions: u64,
    /// Lines read from memory with the whole cache, by demands and prefetches.
    pub lines: u64,
    /// Demands that would have missed with 1, 2 .. equal parts of the cache; the last is the
    /// whole. At least two.
    pub misses: &'a [u64],
}

impl Counts<'_> {
    /// The times that follow if each further miss costs so many cycles. Ignored is that some
    /// misses overlap and others do not: a chain of pointers loses more by each, a scan with
    /// prefetchers less. Of the parts an eighth and half are taken, rounded down, at least one; fewer
    /// misses with a part than with all count as equal. Times end at their largest value. `None`
    /// with fewer than two parts.
    pub fn predicted(&self, miss_cycles: u32) -> Option<Timed> {
        let [_, .., whole] = self.misses else {
            return None;
        };
        let parts = self.misses.len();
        let with = |of: usize| {
            let at = (parts.checked_div(of).unwrap_or(0)).saturating_sub(1);
            let misses = self.misses.get(at).copied().unwrap_or(*whole);
            let more = misses.saturating_sub(*whole);
            let longer = more.saturating_mul(u64::from(miss_cycles));
            self.cycles.saturating_add(longer)
        };
        Some(Timed {
            time: [with(8), with(2), self.cycles],
            instructions: self.instructions,
            lines: self.lines,
        })
    }
}

/// A product that does not overflow.
fn wide(a: u64, b: u32) -> u128 {
    u128::from(a).saturating_mul(u128::from(b))
}
