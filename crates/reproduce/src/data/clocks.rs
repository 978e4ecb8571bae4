//! On which clocks the times in a formula are: a ratio of two means something if both are on one.

use std::{collections::BTreeSet, fmt};

use super::formula::Two;

/// Quantities of studies and of replays that are times, or follow from one.
const TIMES: [&str; 4] = ["time_ps", "ipc", "dram_bytes_per_s", "seconds"];

/// The clock of replays.
pub(super) const OF_REPLAYS: &str = "a replay's disk and processors";

/// What the times of a value are counted by; none if it is no time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clocks(BTreeSet<&'static str>);

impl Clocks {
    /// Of a quantity of something with this clock.
    pub(super) fn of(what: &str, clock: &'static str) -> Self {
        Self(TIMES.contains(&what).then_some(clock).into_iter().collect())
    }

    /// With those of another value beside it.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The clock of two values that are compared or whose ratio is taken; of an interval, or a ratio of times, none.
    ///
    /// # Errors
    /// Both are times, on different clocks.
    pub(super) fn combined(self, two: Two, other: Self) -> Result<Self, String> {
        let are_times = !self.0.is_empty() && !other.0.is_empty();
        if are_times && self != other && !matches!(two, Two::Times | Two::And | Two::Or) {
            return Err(format!(
                "times on different clocks, {self} and {other}: allowed: what has none, as a slowdown"
            ));
        }
        Ok(match two {
            Two::Plus | Two::Minus | Two::Times => self.and(other),
            Two::Over if are_times => Self::default(),
            Two::Over => self.and(other),
            _ => Self::default(),
        })
    }

    /// The clock of what comes of values over an axis.
    ///
    /// # Errors
    /// They are times, on different clocks.
    pub(super) fn folded(self, what: &str, columns: usize) -> Result<Self, String> {
        match what {
            "all" | "any" | "count" | "names" => Ok(Self::default()),
            // One column beside another, each on its own.
            _ if columns > 1 => Ok(Self::default()),
            _ if self.0.len() > 1 => Err(format!(
                "{what} of times on different clocks, {self}: allowed: those of one"
            )),
            "falls" => Ok(Self::default()),
            _ => Ok(self),
        }
    }
}

impl fmt::Display for Clocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clocks: Vec<&str> = self.0.iter().copied().collect();
        write!(f, "{}", clocks.join(" and "))
    }
}
