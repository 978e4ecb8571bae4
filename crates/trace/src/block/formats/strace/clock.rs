//! The times of a log.

use super::super::super::request::Nanos;
use super::super::super::text::{plain, seconds};
use crate::about::Origin;

const NS_PER_S: u64 = 1_000_000_000;
pub(super) const DAY: u64 = 86_400 * NS_PER_S;

/// A time that stands before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// Nanoseconds since 1970 (`-ttt`).
    Epoch(u64),
    /// Since midnight (`-t`, `-tt`).
    OfDay(u64),
    /// Since the line before (`-r`).
    Since(u64),
}

impl Clock {
    /// `12:00:00`, `12:00:00.5`, `1700000000.5` or `0.5`; `None` for other words, and for numbers
    /// that are no time.
    pub fn parse(word: &[u8]) -> Option<Self> {
        if memchr::memchr(b':', word).is_some() {
            return of_day(word).map(Self::OfDay);
        }
        let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
        let ns = seconds("", word).ok()?;
        match digits {
            // Between two lines there are less than three years.
            ..=8 => Some(Self::Since(ns)),
            // The seconds since 1970 have so many digits from 1973 to 2286.
            9..=10 => Some(Self::Epoch(ns)),
            _ => None,
        }
    }

    /// What it counts from.
    pub const fn origin(self) -> Origin {
        match self {
            Self::Epoch(_) => Origin::Absolute,
            Self::OfDay(_) => Origin::OfDay,
            Self::Since(_) => Origin::Relative,
        }
    }

    /// Whether a word is made of the characters of a time.
    pub fn resembles(word: &[u8]) -> bool {
        let only = |b: &u8| b.is_ascii_digit() || matches!(b, b':' | b'.');
        word.first().is_some_and(u8::is_ascii_digit) && word.iter().all(only)
    }
}

fn of_day(word: &[u8]) -> Option<u64> {
    let mut parts = word.splitn(3, |b| *b == b':');
    let hours = plain(parts.next()?).filter(|h| *h < 24)?;
    let minutes = plain(parts.next()?).filter(|m| *m < 60)?;
    let rest = seconds("", parts.next()?).ok()?;
    (rest <= 60 * NS_PER_S).then_some((hours * 60 + minutes) * 60 * NS_PER_S + rest)
}

/// Puts the times of a log on one line.
#[derive(Default)]
pub(super) struct Calendar {
    days: u64,
    last: u64,
    passed: u64,
    /// The time of the line before.
    pub now: Option<Nanos>,
}

impl Calendar {
    /// A large step back in the time of day is midnight; what passed since the line before is summed
    /// up from the first line on.
    pub fn resolve(&mut self, clock: Clock) -> Nanos {
        let now = match clock {
            Clock::Epoch(ns) => Nanos(ns),
            Clock::OfDay(ns) => {
                if self.last > ns && self.last - ns > DAY / 2 {
                    self.days += 1;
                }
                self.last = ns;
                Nanos(self.days.saturating_mul(DAY).saturating_add(ns))
            }
            Clock::Since(ns) => {
                self.passed = self.passed.saturating_add(ns);
                Nanos(self.passed)
            }
        };
        self.now = Some(now);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_times_by_their_form() {
        for (word, clock) in [
            (
                "1700000000.000001",
                Some(Clock::Epoch(1_700_000_000_000_001_000)),
            ),
            ("1700000000", Some(Clock::Epoch(1_700_000_000 * NS_PER_S))),
            ("00:01:02.5", Some(Clock::OfDay(62_500_000_000))),
            ("00:00:07", Some(Clock::OfDay(7_000_000_000))),
            ("0.000012", Some(Clock::Since(12_000))),
            ("3", Some(Clock::Since(3 * NS_PER_S))),
            ("12:99:00", None),
            ("25:00:00", None),
            ("1.2.3", None),
            ("17000000000000000000.5", None),
        ] {
            assert_eq!(Clock::parse(word.as_bytes()), clock, "{word}");
        }
    }

    #[test]
    fn midnight_is_a_large_step_back() {
        let mut calendar = Calendar::default();
        let mut at = |s: u64| calendar.resolve(Clock::OfDay(s * NS_PER_S)).0 / NS_PER_S;
        assert_eq!(
            [at(86_399), at(1), at(0), at(5)],
            [86_399, 86_401, 86_400, 86_405]
        );
    }

    #[test]
    fn steps_are_summed_up() {
        let mut calendar = Calendar::default();
        let times = [0, 5, 0, 7].map(|ns| calendar.resolve(Clock::Since(ns)).0);
        assert_eq!(times, [0, 5, 5, 12]);
    }
}
