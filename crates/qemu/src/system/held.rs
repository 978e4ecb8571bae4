//! Whose lines the last levels hold, sampled while something is watched.

use piebald_units::Picos;
use serde::{Deserialize, Serialize};

/// Most samples that are kept: then every other one goes, and the next ones come half as often.
const MAX_SAMPLES: usize = 64;
/// Time between the first samples.
const FIRST_INTERVAL: Picos = Picos(100_000_000);

/// A last-level cache and who had how much of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastLevel {
    /// Virtual processors that share it.
    pub vcpus: Vec<u16>,
    /// Its sets.
    pub sets: u32,
    /// Its lines.
    pub lines: u32,
    /// In the order of time, at most 64.
    pub samples: Vec<HeldAt>,
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldAt {
    /// Modelled time since the first instruction that was watched, in picoseconds.
    pub time_ps: u64,
    /// Lines that each virtual processor brought in, the kernel's work on it included, by
    /// ranges of consecutive sets that one page falls into: `[range][vcpu]`.
    pub lines: Vec<Vec<u32>>,
}

/// When to sample, and what came out.
#[derive(Debug)]
pub(super) struct Sampling {
    interval: Picos,
    next: Picos,
    levels: Vec<LastLevel>,
}

impl Sampling {
    /// Of these caches, which have no samples yet.
    pub fn new(levels: Vec<LastLevel>) -> Self {
        Self {
            interval: FIRST_INTERVAL,
            next: FIRST_INTERVAL,
            levels,
        }
    }

    /// What came out.
    pub fn levels(&self) -> &[LastLevel] {
        &self.levels
    }

    /// Samples if it is time; `lines` tells what a cache, by its place, holds now.
    pub fn look(&mut self, now: Picos, lines: impl Fn(usize) -> Vec<Vec<u32>>) {
        if now < self.next {
            return;
        }
        for (place, level) in self.levels.iter_mut().enumerate() {
            level.samples.push(HeldAt {
                time_ps: now.0,
                lines: lines(place),
            });
        }
        if self.levels.iter().any(|l| l.samples.len() >= MAX_SAMPLES) {
            for level in &mut self.levels {
                let mut nth = 0;
                level.samples.retain(|_| {
                    nth += 1;
                    nth % 2 == 0
                });
            }
            self.interval = Picos(self.interval.0.saturating_mul(2));
        }
        self.next = Picos(now.0.saturating_add(self.interval.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_thinned_and_cover_the_whole_time() {
        let level = LastLevel {
            vcpus: vec![0, 1],
            sets: 64,
            lines: 512,
            samples: Vec::new(),
        };
        let mut sampling = Sampling::new(vec![level.clone(), level]);
        let step = FIRST_INTERVAL.0 / 4;
        for quantum in 1..=40_000u64 {
            let lines = |place: usize| vec![vec![place as u32, quantum as u32]];
            sampling.look(Picos(quantum * step), lines);
            for level in sampling.levels() {
                assert!(level.samples.len() < MAX_SAMPLES);
            }
        }
        for (place, level) in sampling.levels().iter().enumerate() {
            let times: Vec<u64> = level.samples.iter().map(|s| s.time_ps).collect();
            assert!(times.is_sorted() && times.len() >= MAX_SAMPLES / 2 - 1);
            let gaps = times.windows(2).map(|w| w[1] - w[0]);
            let widest = gaps.max().unwrap();
            let span = 40_000 * step;
            assert!(widest <= span / (MAX_SAMPLES as u64 / 2 - 1), "{widest}");
            assert!(times[0] <= 2 * widest && span - times[times.len() - 1] <= widest);
            for sample in &level.samples {
                let quantum = (sample.time_ps / step) as u32;
                assert_eq!(sample.lines, [vec![place as u32, quantum]]);
            }
        }
    }

    #[test]
    fn nothing_is_sampled_before_its_time() {
        let mut sampling = Sampling::new(vec![LastLevel::default()]);
        sampling.look(Picos(FIRST_INTERVAL.0 - 1), |_| unreachable!());
        assert!(sampling.levels()[0].samples.is_empty());
        sampling.look(FIRST_INTERVAL, |_| Vec::new());
        assert_eq!(sampling.levels()[0].samples.len(), 1);
    }
}
