//! What a program did up to some moment, and between two moments.

use piebald_hw::Counters;
use piebald_units::Picos;

/// State of a program's counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Clock of the core that reached the moment.
    pub time: Picos,
    /// References that the program itself made.
    pub refs: u64,
    /// Counters of the hardware threads while they ran the program, kernel work
    /// on its behalf included.
    pub counters: Counters,
    /// Page faults.
    pub faults: u64,
    /// 4 KiB pages mapped, those of 2 MiB pages included.
    pub pages: u64,
    /// 2 MiB pages mapped.
    pub huge_pages: u64,
}

/// The measured part of a program's run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Duration.
    pub time: Picos,
    /// References that the program itself made.
    pub refs: u64,
    /// What its hardware threads counted.
    pub counters: Counters,
    /// Page faults.
    pub faults: u64,
    /// 4 KiB pages mapped at the end, those of 2 MiB pages included.
    pub pages: u64,
    /// 2 MiB pages mapped at the end.
    pub huge_pages: u64,
    /// The program ended before its references were used up.
    pub ended_early: bool,
}

impl Snapshot {
    /// What happened since `start`.
    pub(crate) fn since(&self, start: &Self, ended_early: bool) -> Region {
        Region {
            time: self.time.since(start.time),
            refs: self.refs - start.refs,
            counters: self.counters - start.counters,
            faults: self.faults - start.faults,
            pages: self.pages,
            huge_pages: self.huge_pages,
            ended_early,
        }
    }
}
