//! The counts of a run by parts of its trace, to tell a difference between two runs from chance.
//!
//! All parts are about equally long, and runs of one trace have the same ones. Their number lies between
//! [`LEAST`] and twice as many for a trace of any length: where there are too many, two become one and
//! further parts are twice as long (batch means).

/// Parts of a long trace, at least.
pub const LEAST: usize = 16;

/// What happened in a part of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// References or calls.
    pub length: u64,
    /// References that missed.
    pub misses: u64,
    /// Bytes of requests that missed, of objects that take their bytes.
    pub bytes_missed: u64,
    /// Requests to read that the disk got.
    pub requests: u64,
    /// Simulated time that passed, in ps.
    pub elapsed: u64,
    /// The part of it that tasks waited, summed over tasks, in ps.
    pub waited: u64,
}

impl Part {
    fn since(self, before: Self) -> Self {
        Self {
            length: self.length - before.length,
            misses: self.misses - before.misses,
            bytes_missed: self.bytes_missed - before.bytes_missed,
            requests: self.requests - before.requests,
            elapsed: self.elapsed.saturating_sub(before.elapsed),
            waited: self.waited.saturating_sub(before.waited),
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            length: self.length + other.length,
            misses: self.misses + other.misses,
            bytes_missed: self.bytes_missed + other.bytes_missed,
            requests: self.requests + other.requests,
            elapsed: self.elapsed + other.elapsed,
            waited: self.waited + other.waited,
        }
    }
}

/// Parts of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    done: Vec<Part>,
    /// Totals at the end of the last part.
    last: Part,
    /// Length of a part.
    length: u64,
}

impl Parts {
    /// How long a part is; 0 while each reference is one.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Whether a part ends where the run has this length.
    #[inline]
    pub fn is_due(&self, length: u64) -> bool {
        length > self.last.length + self.length.saturating_sub(1)
    }

    /// Counting begins here, with these totals.
    pub fn begin(&mut self, totals: Part) {
        *self = Self {
            last: totals,
            ..Self::default()
        };
    }

    /// A part ends with these totals.
    pub fn end(&mut self, totals: Part) {
        self.done.push(totals.since(self.last));
        self.last = totals;
        if self.done.len() < 2 * LEAST {
            return;
        }
        let pairs = self.done.chunks_exact(2);
        self.done = pairs.map(|pair| pair[0].with(pair[1])).collect();
        let longest = self.done.iter().map(|part| part.length).max();
        self.length = longest.unwrap_or(0);
    }

    /// All parts up to these totals. A rest that is shorter than half a part is of the last one.
    pub fn up_to(&self, totals: Part) -> Vec<Part> {
        let mut parts = self.done.clone();
        let rest = totals.since(self.last);
        match parts.last_mut() {
            Some(last) if 2 * rest.length < last.length => *last = last.with(rest),
            _ if rest.length > 0 => parts.push(rest),
            _ => {}
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_sum_up_to_the_whole() {
        for total in [0_u64, 1, 2, 15, 31, 32, 33, 100, 1000, 12_345, 1 << 20] {
            let mut parts = Parts::default();
            let at = |length: u64| Part {
                length,
                misses: length / 3,
                elapsed: 7 * length,
                ..Part::default()
            };
            for length in 1..=total {
                if parts.is_due(length) {
                    parts.end(at(length));
                }
            }
            let all = parts.up_to(at(total));
            let sum = all
                .iter()
                .fold(Part::default(), |sum, part| sum.with(*part));
            assert_eq!(sum, at(total), "{total}");
            assert!(all.len() <= 2 * LEAST, "{total}: {}", all.len());
            assert!(all.len() as u64 >= total.min(LEAST as u64), "{total}");
            let [most, least] = [
                all.iter().map(|p| p.length).max(),
                all.iter().map(|p| p.length).min(),
            ];
            if let (Some(most), Some(least)) = (most, least) {
                assert!(most <= 2 * least, "{total}: {least} to {most}");
            }
        }
    }

    #[test]
    fn what_comes_in_groups_makes_parts_of_groups() {
        let mut parts = Parts::default();
        let at = |length| Part {
            length,
            ..Part::default()
        };
        parts.begin(at(10));
        for length in (10..=3210).step_by(32).skip(1) {
            if parts.is_due(length) {
                parts.end(at(length));
            }
        }
        let all = parts.up_to(at(3210));
        assert_eq!(all.iter().map(|p| p.length).sum::<u64>(), 3200);
        assert!((LEAST..=2 * LEAST).contains(&all.len()), "{all:?}");
    }
}
