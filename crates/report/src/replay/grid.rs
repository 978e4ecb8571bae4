//! The runs of a replay by policy and size.

use std::collections::{BTreeMap, BTreeSet};

use piebald_units::Bytes;

use super::{Clock, Replay, ReplayRun};
use crate::format::{number, short};

/// Longest name of a policy in a table or a sentence.
const NAME_CHARS: usize = 24;
/// Longest exact size; a longer one is shown with three digits, as is one of 4000KiB.
const SIZE_CHARS: usize = 7;

/// What knows the future: no policy that can be built does better.
const BOUNDS: [Bound; 2] = [
    Bound {
        name: "min",
        about: "What min (Belady 1966), which knows the future, would still save.",
    },
    Bound {
        name: "pfoo-l",
        about: "What a policy that knew the future could save at most: pfoo-l (Berger, Beckmann and \
                Harchol-Balter 2018) is a lower bound on misses and one on bytes missed, which no \
                policy need reach.",
    },
];
/// A policy that knows the future and is no bound.
const HEURISTIC: &str = "belady-size";

/// A bound, and what it says.
pub(super) struct Bound {
    name: &'static str,
    pub about: &'static str,
}

/// Policies down, sizes across. A cell is empty where a run is missing, as it may be in
/// a replay that was interrupted.
pub(super) struct Grid<'a> {
    pub replay: &'a Replay,
    /// Those that were asked for, in their order, then any others that ran.
    pub policies: Vec<&'a str>,
    /// In pages, rising.
    pub sizes: Vec<u64>,
    cells: BTreeMap<(&'a str, u64), &'a ReplayRun>,
    clock: Clock,
}

impl<'a> Grid<'a> {
    pub fn new(replay: &'a Replay) -> Self {
        let mut seen = BTreeSet::new();
        let asked = replay.policies.iter().map(|p| p.name.as_str());
        let ran = replay.runs.iter().map(|r| r.policy.as_str());
        let policies = asked.chain(ran).filter(|name| seen.insert(*name)).collect();
        let ran = replay.runs.iter().map(|r| &r.size_pages);
        let sizes: BTreeSet<u64> = replay.sizes.iter().chain(ran).copied().collect();
        let mut cells = BTreeMap::new();
        for run in &replay.runs {
            let place = (run.policy.as_str(), run.size_pages);
            cells.entry(place).or_insert(run);
        }
        Self {
            replay,
            policies,
            sizes: sizes.into_iter().collect(),
            cells,
            clock: replay.clock(),
        }
    }

    /// The run of a policy at a size, both by their places.
    pub fn run(&self, policy: usize, size: usize) -> Option<&'a ReplayRun> {
        let place = (*self.policies.get(policy)?, *self.sizes.get(size)?);
        self.cells.get(&place).copied()
    }

    /// Where a run stands; `None` for the second of a pair with one policy and size.
    pub fn place(&self, run: &ReplayRun) -> Option<(usize, usize)> {
        let policy = self.policies.iter().position(|p| *p == run.policy)?;
        let size = self.sizes.binary_search(&run.size_pages).ok()?;
        let own = self.run(policy, size)?;
        std::ptr::eq(own, run).then_some((policy, size))
    }

    /// Like [`run`](Self::run), without one that was cut short: it may not be compared
    /// with those that counted more references.
    pub fn whole(&self, policy: usize, size: usize) -> Option<&'a ReplayRun> {
        // As many as it can in the time that it has.
        if self.clock == Clock::Given {
            return self.run(policy, size).filter(|r| r.references > 0);
        }
        let at_size = (0..self.policies.len()).filter_map(|p| self.run(p, size));
        let most = at_size.map(|r| r.references).max()?;
        self.run(policy, size)
            .filter(|r| r.references == most && most > 0)
    }

    /// The time of a run by which policies are compared, in s.
    pub fn time(&self, run: &ReplayRun) -> Option<f64> {
        self.clock.of(run.io.as_ref()?)
    }

    /// Time against that of the first policy at the same size: 0.1 for a tenth more.
    pub fn change(&self, policy: usize, size: usize) -> Option<f64> {
        let [first, own] = [0, policy].map(|p| self.time(self.whole(p, size)?));
        let (first, own) = (first?, own?);
        (first > 0.0).then(|| own / first - 1.0)
    }

    /// The same of misses.
    pub fn misses_against_first(&self, policy: usize, size: usize) -> Option<f64> {
        let [first, own] = [0, policy].map(|p| self.whole(p, size)?.miss_ratio());
        let (first, own) = (first?, own?);
        (first > 0.0).then(|| own / first - 1.0)
    }

    /// The name of a policy without its options.
    fn plain_name(&self, policy: usize) -> Option<&'a str> {
        self.policies.get(policy)?.split(':').next()
    }

    /// The offline bound that a policy is, which is no choice that anybody has.
    fn bound_of(&self, policy: usize) -> Option<&'static Bound> {
        let name = self.plain_name(policy)?;
        BOUNDS.iter().find(|bound| bound.name == name)
    }

    /// Whether a policy knows the future, as the bounds do and heuristics may.
    pub fn is_offline(&self, policy: usize) -> bool {
        self.bound_of(policy).is_some() || self.plain_name(policy) == Some(HEURISTIC)
    }

    /// The policies that can be chosen, in the order in which they were asked for.
    pub fn online(&self) -> impl Iterator<Item = usize> {
        (0..self.policies.len()).filter(|p| !self.is_offline(*p))
    }

    /// The offline bound, if it ran and is one. Whoever misses least in a whole trace may miss more in the
    /// part after a warm-up than others do.
    pub fn bound(&self) -> Option<(usize, &'static Bound)> {
        if self.replay.conditions.warmup_references > 0 {
            return None;
        }
        (0..self.policies.len()).find_map(|p| Some((p, self.bound_of(p)?)))
    }

    /// A policy's name with what it is, if nobody can choose it.
    pub fn row_name(&self, policy: usize) -> String {
        let name = self.name(policy);
        match (self.bound_of(policy), self.is_offline(policy)) {
            (Some(_), _) if self.replay.conditions.warmup_references > 0 => {
                format!("{name} (offline)")
            }
            (Some(_), _) => format!("{name} (bound)"),
            (None, true) => format!("{name} (heuristic)"),
            (None, false) => name,
        }
    }

    /// All policies, the best first: by time where there is a device, else by misses, over the
    /// sizes at which all of them can be compared. Equal ones stay in the order in which they
    /// were asked for; those that know the future come last, and of them the bound.
    pub fn best_first(&self) -> Vec<usize> {
        let cost = |p: usize, s: usize| -> Option<f64> {
            let run = self.whole(p, s)?;
            match self.replay.has_device() {
                true => self.change(p, s),
                false => run.miss_ratio(),
            }
        };
        let common: Vec<usize> = (0..self.sizes.len())
            .filter(|s| self.online().all(|p| cost(p, *s).is_some()))
            .collect();
        let sum = |p: usize| common.iter().filter_map(|s| cost(p, *s)).sum::<f64>();
        let mut order: Vec<usize> = self.online().collect();
        order.sort_by(|a, b| sum(*a).total_cmp(&sum(*b)));
        let mut offline: Vec<usize> = (0..self.policies.len())
            .filter(|p| self.is_offline(*p))
            .collect();
        offline.sort_by_key(|p| self.bound_of(*p).is_some());
        order.extend(offline);
        order
    }

    /// A policy's name as people read it.
    pub fn name(&self, policy: usize) -> String {
        let name = self.policies.get(policy).copied();
        short(name.unwrap_or_default(), NAME_CHARS)
    }

    /// A size by its place, as people read it.
    pub fn size(&self, size: usize) -> String {
        let pages = self.sizes.get(size).copied();
        size_text(self.replay, pages.unwrap_or(0))
    }
}

/// A size as people read it: `160MiB`, or pages where their bytes are not known.
pub(super) fn size_text(replay: &Replay, pages: u64) -> String {
    match replay.conditions.page_bytes {
        0 => format!("{pages} pages"),
        _ => bytes_text(replay.bytes(pages)),
    }
}

/// Bytes as people read them: exact if that is short, else with three digits.
pub(super) fn bytes_text(bytes: u64) -> String {
    let exact = Bytes(bytes).to_string();
    let digits = exact.bytes().take_while(u8::is_ascii_digit).count();
    if exact.len() <= SIZE_CHARS && digits < 4 {
        return exact;
    }
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // 999.6 would be shown as 1000.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{}{}", number(value), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_where_that_is_short() {
        let cases = [
            (0, "0B"),
            (160 << 20, "160MiB"),
            (3 << 29, "1.5GiB"),
            (4_096_000, "3.91MiB"),
            (608 << 10, "608KiB"),
            (4096, "4KiB"),
            (4096 * 12_345, "48.2MiB"),
            (1023 << 20 | 4096, "0.999GiB"),
            (u64::MAX, "16.0EiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(bytes_text(bytes), expected, "{bytes}");
        }
    }

    fn run(policy: &str, size_pages: u64, references: u64) -> ReplayRun {
        ReplayRun {
            policy: policy.to_owned(),
            size_pages,
            references,
            ..ReplayRun::default()
        }
    }

    #[test]
    fn runs_are_found_and_one_that_was_cut_short_is_not_compared() {
        let replay = Replay {
            runs: vec![run("b", 8, 100), run("a", 8, 90), run("b", 4, 100)],
            ..Replay::default()
        };
        let grid = Grid::new(&replay);
        assert_eq!(
            (&grid.policies[..], &grid.sizes[..]),
            (&["b", "a"][..], &[4, 8][..])
        );
        assert_eq!(grid.run(1, 1).map(|r| r.references), Some(90));
        assert!(grid.whole(1, 1).is_none() && grid.whole(0, 1).is_some());
        assert!(grid.run(1, 0).is_none() && grid.run(7, 7).is_none());
    }
}
