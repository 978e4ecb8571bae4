//! JOB2 of SysMon: how often each page is used in a window, and how soon again (section
//! 4.3).

use core::fmt;

use super::class::Wpd;
use super::config::{MonitorConfig, NeverReused, Watched};

/// Most passes of a window: a pass number fits a byte.
pub const MAX_PASSES: u8 = 250;

/// What a window knows of one page. 2 B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRecord {
    /// Passes in which it was used; at most [`MAX_PASSES`].
    count: u8,
    /// The last of them, from 1; 0 for none.
    last: u8,
}

impl PageRecord {
    /// A page that was not used.
    pub const UNUSED: Self = Self { count: 0, last: 0 };
}

/// Number of pages by how often they were used: the ranges of section 4.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Distribution {
    /// VL, L, M, H and VH: used 1 to 9, 10 to 63, 64 to 99, 100 to 149, and 150 to 200
    /// times with the published bounds. A range begins with its lower bound and ends
    /// before the next.
    pub pages: [u32; 5],
}

impl Distribution {
    /// Pages that were used at all: `all_used_pages`.
    pub fn used(&self) -> u32 {
        self.pages.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// The weighted page distribution; weights in tenths, from VL to VH.
    pub fn wpd(&self, weights: &[u8; 5]) -> Wpd {
        let weighted = self.pages.iter().zip(weights);
        let weighted = weighted.map(|(n, w)| u64::from(*n).saturating_mul(u64::from(*w)));
        Wpd {
            tenths: weighted.fold(0, u64::saturating_add),
            used: self.used(),
        }
    }
}

/// What a window of JOB2 came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Window {
    /// Pages by how often they were used.
    pub distribution: Distribution,
    /// Mean re-use time of the watched page in hundredths of a pass; `None` if nothing is
    /// known.
    pub reuse_centi: Option<u32>,
}

impl Window {
    /// Did the program use no page? It slept, exited, or has none.
    pub fn is_idle(&self) -> bool {
        self.distribution.used() == 0
    }
}

/// What the end of a pass means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// So many passes are left.
    Left(u8),
    /// It was the last.
    Done,
}

/// The window has not had all its passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Passes that it had.
    pub passes: u8,
    /// Passes that it needs.
    pub needed: u8,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "passes = {}; needed: {}", self.passes, self.needed)
    }
}

impl core::error::Error for Unfinished {}

/// JOB2 for one program at a time. *Exclusive*. `R` is whatever can be seen as a slice of
/// [`PageRecord`]s, one for each page (or slot of a [`Sample`](super::Sample)) that is
/// looked at.
///
/// ```text
/// begin(slots, random)
/// 200 times: for each page whose access bit is set: clear it, touched(slot); end_pass()
/// window()
/// ```
#[derive(Clone, Debug)]
pub struct Sampler<R> {
    records: R,
    config: MonitorConfig,
    slots: u32,
    passes: u8,
    /// Where the search for the page to watch starts.
    start: u32,
    /// The page whose re-use time is taken.
    watched: Option<u32>,
    /// The used page nearest above `start` in this pass, and how far.
    candidate: Option<(u32, u32)>,
    reuse_sum: u32,
    reuse_nr: u32,
    ignored: u64,
}

impl<R: AsRef<[PageRecord]> + AsMut<[PageRecord]>> Sampler<R> {
    /// A sampler over lent records, before its first window.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn new(records: R, config: MonitorConfig) -> Result<Self, super::ConfigError> {
        config.check()?;
        Ok(Self {
            records,
            config,
            slots: 0,
            passes: 0,
            start: 0,
            watched: None,
            candidate: None,
            reuse_sum: 0,
            reuse_nr: 0,
            ignored: 0,
        })
    }

    /// Begins a window over so many pages, whatever became of the last. `random` decides
    /// which page is watched. Pages beyond the lent records are not looked at: returns how
    /// many are. Clears their records, a step for each.
    pub fn begin(&mut self, slots: u32, random: u64) -> u32 {
        let lent = u32::try_from(self.records.as_ref().len()).unwrap_or(u32::MAX);
        self.slots = slots.min(lent);
        let used = self.records.as_mut().iter_mut().take(self.slots as usize);
        used.for_each(|record| *record = PageRecord::UNUSED);
        self.start = random.checked_rem(u64::from(self.slots)).unwrap_or(0) as u32;
        self.watched = match self.config.watched {
            Watched::Mapped if self.slots > 0 => Some(self.start),
            _ => None,
        };
        (self.passes, self.candidate) = (0, None);
        (self.reuse_sum, self.reuse_nr) = (0, 0);
        self.slots
    }

    /// The page's access bit was found set in this pass. Said twice in a pass, it counts
    /// once; of a page beyond the window's, or when all passes are done, it is counted as
    /// ignored and changes nothing else. A few steps.
    pub fn touched(&mut self, slot: u32) {
        let pass = self.passes.saturating_add(1);
        let is_ours = slot < self.slots && self.passes < self.config.passes;
        let record = self.records.as_mut().get_mut(slot as usize);
        let Some(record) = record.filter(|_| is_ours) else {
            self.ignored = self.ignored.saturating_add(1);
            return;
        };
        if record.last == pass {
            return;
        }
        if self.watched == Some(slot) && record.last != 0 {
            let interval = u32::from(pass.saturating_sub(record.last));
            self.reuse_sum = self.reuse_sum.saturating_add(interval);
            self.reuse_nr = self.reuse_nr.saturating_add(1);
        }
        record.last = pass;
        record.count = record.count.saturating_add(1);
        if self.watched.is_none() {
            self.consider(slot);
        }
    }

    /// Of the pages used in a pass, the first at or after `start`, beginning again at 0.
    fn consider(&mut self, slot: u32) {
        let distance = match slot.checked_sub(self.start) {
            Some(ahead) => ahead,
            None => self.slots.saturating_sub(self.start).saturating_add(slot),
        };
        if self.candidate.is_none_or(|(_, best)| distance < best) {
            self.candidate = Some((slot, distance));
        }
    }

    /// All pages were looked at once more.
    pub fn end_pass(&mut self) -> Pass {
        if self.watched.is_none() {
            self.watched = self.candidate.map(|(slot, _)| slot);
        }
        let passes = self.passes.saturating_add(1).min(self.config.passes);
        self.passes = passes;
        match self.config.passes.saturating_sub(passes) {
            0 => Pass::Done,
            left => Pass::Left(left),
        }
    }

    /// What the window came to: a step for each page.
    ///
    /// # Errors
    /// If it has not had all its passes: the program may have ended. Begin another.
    pub fn window(&self) -> Result<Window, Unfinished> {
        let (passes, needed) = (self.passes, self.config.passes);
        if passes < needed {
            return Err(Unfinished { passes, needed });
        }
        let mut distribution = Distribution::default();
        for record in self.records.as_ref().iter().take(self.slots as usize) {
            let reached = self.config.bounds.iter().filter(|b| record.count >= **b);
            let range = match record.count {
                0 => continue,
                _ => reached.count(),
            };
            if let Some(n) = distribution.pages.get_mut(range) {
                *n = n.saturating_add(1);
            }
        }
        Ok(Window {
            distribution,
            reuse_centi: self.reuse_centi(),
        })
    }

    fn reuse_centi(&self) -> Option<u32> {
        let sum = self.reuse_sum.saturating_mul(100);
        match (sum.checked_div(self.reuse_nr), self.config.never_reused) {
            (None, NeverReused::WholeWindow) if self.watched.is_some() => {
                Some(u32::from(self.config.passes).saturating_mul(100))
            }
            (mean, _) => mean,
        }
    }

    /// The page whose re-use time is taken in this window, once it is chosen.
    pub const fn watched(&self) -> Option<u32> {
        self.watched
    }

    /// Calls of [`Sampler::touched`] that meant no page of the window, ever.
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }
}
