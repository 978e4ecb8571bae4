//! What SysMon sees of a program alone: its windows, from the pages that its recording touches,
//! at one instruction per cycle and without caches (protocol).
//!
//! A use of a page sets its access bit if the page table is walked for it: if the translation
//! is in none of the machine's buffers. `pte_mkold()`, by which SysMon clears the bits (section
//! 4.2), drops no translation.

use std::collections::HashMap;

use piebald_hw::spec::TlbSpec;
use piebald_policy::hvr::{
    Class, Facts, MonitorConfig, PageRecord, Pass, Profile, Sampler, Unseen, Window,
};
use piebald_units::{
    Hertz, Picos,
    op::{MemRef, Next, OpSource, RefKind},
};

use super::{programs::Ready, tlb::Tlb};
use crate::experiment::draw;

/// What the windows of a program were.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Hot pages of each window of JOB1.
    pub hot: Vec<u32>,
    /// The windows of JOB2.
    pub windows: Vec<Window>,
    /// The class after as many windows as are averaged, if there were so many.
    pub class: Option<Class>,
    /// What that class was told from.
    pub facts: Option<Facts>,
    /// How often it was found to be of another class later.
    pub changes: u32,
}

/// What becomes of translations when bits are cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Translations {
    /// They stay: a page whose translation is there is not seen.
    Kept,
    /// They are dropped: each page that is used is seen.
    Dropped,
}

/// How long a walk takes that no window of a small stand-in can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walks {
    /// As the paper prints it for the original program; where it does not, by the pages that
    /// the program has.
    Printed,
    /// By the pages that the program has.
    Own,
}

/// How SysMon looks at programs alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub monitor: MonitorConfig,
    pub translations: Translations,
    pub walks: Walks,
}

impl Look {
    /// As the paper's text has it. Each program runs all the time, so that a window without a
    /// page says that all translations were there.
    pub(super) const PAPER: Self = Self {
        monitor: MonitorConfig {
            unseen: Unseen::Ran,
            ..MonitorConfig::PAPER
        },
        translations: Translations::Kept,
        walks: Walks::Printed,
    };
}

/// The machine that a program is watched on.
#[derive(Clone, Copy)]
pub(super) struct Watcher<'a> {
    pub look: &'a Look,
    /// Its translation buffers, if it has any.
    pub tlb: Option<&'a TlbSpec>,
    pub clock: Hertz,
    /// How long a walk takes, if that is not by the program's own pages.
    pub walk: Option<Picos>,
}

/// References that are read at a time.
const BATCH: usize = 4096;

/// What the program is being watched for.
enum Phase {
    Rest,
    Hot(u64),
    Passes(u64),
}

struct Watch<'a> {
    monitor: &'a MonitorConfig,
    tlb: Option<Tlb>,
    walk: Option<Picos>,
    /// What it has done.
    instructions: u64,
    refs: u64,
    /// Picoseconds of an instruction, and between windows.
    cycle: f64,
    interval: u64,
    slots: HashMap<u64, u32>,
    /// By page: the interval in which it was touched last.
    stamps: Vec<u32>,
    stamp: u32,
    touched: Vec<u32>,
    phase: Phase,
    hot_due: u64,
    window_due: u64,
    sampler: Sampler<Vec<PageRecord>>,
    profile: Profile,
    seed: u64,
    seen: Seen,
}

/// Most times that a recording is gone through for its first windows: mcf's three of JOB2 last
/// 2.7 s by the paper's walks, some 25 times a recording of 100 million references.
const ROUNDS: u32 = 40;

/// Watches the first thread of a program for so many references, after those that only bring its
/// pages; and if it has not had as many windows by then as are averaged, until it has, from its
/// beginning on again. Times between windows are divided by `time_scale`.
///
/// # Errors
/// The recording cannot be read to that end.
pub(super) fn watch(
    ready: &Ready,
    watcher: Watcher<'_>,
    [time_scale, refs, seed]: [u64; 3],
) -> Result<Seen, String> {
    let look = watcher.look;
    let monitor = &look.monitor;
    let tlb = (watcher.tlb).filter(|_| look.translations == Translations::Kept);
    let sampler = Sampler::new(Vec::new(), *monitor).map_err(|e| e.to_string())?;
    let interval = (monitor.interval.0 / time_scale.max(1)).max(1);
    let mut watch = Watch {
        monitor,
        tlb: tlb.map(Tlb::new),
        walk: watcher.walk.filter(|_| look.walks == Walks::Printed),
        instructions: 0,
        refs: 0,
        cycle: 1e12 / watcher.clock.0 as f64,
        interval,
        slots: HashMap::new(),
        stamps: Vec::new(),
        stamp: 1,
        touched: Vec::new(),
        phase: Phase::Rest,
        hot_due: interval,
        window_due: interval,
        sampler,
        profile: Profile::NEW,
        seed,
        seen: Seen::default(),
    };
    for _ in 0..ROUNDS {
        let mut source = ready.input.open(0).map_err(|e| e.to_string())?;
        watch.run(&mut *source, ready.prime, refs)?;
        if watch.is_done(refs) {
            break;
        }
    }
    Ok(watch.seen)
}

impl Watch<'_> {
    fn run(&mut self, source: &mut dyn OpSource, prime: u64, refs: u64) -> Result<(), String> {
        let mut batch = vec![MemRef::default(); BATCH];
        let mut primed = 0;
        let mut last = u64::MAX;
        while !self.is_done(refs) {
            let filled = source.fill(&mut batch);
            for r in &batch[..filled.refs] {
                let page = r.addr.0 >> 12;
                if primed < prime {
                    primed += 1;
                    self.slot(page);
                    continue;
                }
                self.refs += 1;
                self.instructions += u64::from(r.gap);
                let now = (self.instructions as f64 * self.cycle) as u64;
                if now >= self.due() {
                    self.step(now);
                    last = u64::MAX;
                }
                if page != last {
                    last = page;
                    self.touch(page, r.kind);
                }
            }
            self.instructions += u64::from(filled.tail);
            match filled.next {
                Next::Broken => {
                    let why = source.failure().unwrap_or("it cannot be read further");
                    return Err(why.to_owned());
                }
                Next::Exit(_) | Next::End => break,
                _ => {}
            }
        }
        Ok(())
    }

    /// Has it been watched for so many references, and had its first windows?
    fn is_done(&self, refs: u64) -> bool {
        let averaged = usize::from(self.monitor.averaged);
        self.refs >= refs && self.seen.windows.len() >= averaged
    }

    fn slot(&mut self, page: u64) -> u32 {
        let next = self.stamps.len() as u32;
        let slot = *self.slots.entry(page).or_insert(next);
        if slot == next {
            self.stamps.push(0);
        }
        slot
    }

    fn touch(&mut self, page: u64, kind: RefKind) {
        // Whose translation is there was seen before, and has a slot.
        if self.tlb.as_mut().is_some_and(|tlb| !tlb.walks(page, kind)) {
            return;
        }
        let slot = self.slot(page);
        let stamp = &mut self.stamps[slot as usize];
        if *stamp != self.stamp {
            *stamp = self.stamp;
            self.touched.push(slot);
        }
    }

    fn due(&self) -> u64 {
        match self.phase {
            Phase::Rest => self.hot_due.min(self.window_due),
            Phase::Hot(until) | Phase::Passes(until) => until,
        }
    }

    /// Bits are clear from now on.
    fn clear(&mut self) {
        self.stamp += 1;
        self.touched.clear();
    }

    fn length(&self) -> u64 {
        match self.walk {
            Some(walk) => (self.monitor.hot_window + walk).0,
            None => self.monitor.hot_window_of(self.stamps.len() as u32).0,
        }
    }

    /// The window or pass that is over, or the next.
    fn step(&mut self, now: u64) {
        match self.phase {
            Phase::Rest if self.hot_due <= now => {
                self.phase = Phase::Hot(now + self.length());
                self.hot_due = now + self.interval;
            }
            Phase::Rest => {
                let pages = self.stamps.len();
                // The configuration was checked when the program was begun.
                if let Ok(sampler) = Sampler::new(vec![PageRecord::UNUSED; pages], *self.monitor) {
                    self.sampler = sampler;
                }
                let random = draw(self.seed, "watched", self.seen.windows.len() as u64);
                self.sampler.begin(pages as u32, random);
                self.phase = Phase::Passes(now + self.length());
            }
            Phase::Hot(_) => {
                let hot = self.touched.len() as u32;
                self.profile.hot_pages(self.monitor, hot);
                self.seen.hot.push(hot);
                self.window_due = self.window_due.max(now);
                self.phase = Phase::Rest;
            }
            Phase::Passes(_) => self.pass(now),
        }
        self.clear();
    }

    fn pass(&mut self, now: u64) {
        for slot in &self.touched {
            self.sampler.touched(*slot);
        }
        if let Pass::Left(_) = self.sampler.end_pass() {
            self.phase = Phase::Passes(now + self.length());
            return;
        }
        if let Ok(window) = self.sampler.window() {
            let had = self.profile.class().is_some();
            let changed = self.profile.window(self.monitor, &window);
            self.seen.windows.push(window);
            self.seen.changes += u32::from(changed && had);
            if self.seen.windows.len() == usize::from(self.monitor.averaged) {
                self.seen.class = self.profile.class();
                self.seen.facts = Some(self.profile.facts(self.monitor));
            }
        }
        // Each window at the base interval: the row is about what is seen.
        self.window_due = now + self.interval;
        self.hot_due = self.hot_due.max(now);
        self.phase = Phase::Rest;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use piebald_hw::spec::TlbLevelSpec;
    use piebald_units::{VirtAddr, op::Filled};
    use piebald_workload::{Program, ProgramError};

    use super::*;

    /// Touches the pages of a list round and round, one every 100 instructions.
    #[derive(Debug)]
    struct Round(u64);

    struct Source {
        pages: u64,
        at: u64,
    }

    impl OpSource for Source {
        fn fill(&mut self, out: &mut [MemRef]) -> Filled {
            for r in out.iter_mut() {
                *r = MemRef {
                    addr: VirtAddr((self.at % self.pages) << 12),
                    gap: 100,
                    size: 8,
                    kind: RefKind::Load,
                    ..MemRef::default()
                };
                self.at += 1;
            }
            Filled {
                refs: out.len(),
                tail: 0,
                next: Next::More,
            }
        }
    }

    impl Program for Round {
        fn name(&self) -> &str {
            "round"
        }

        fn threads(&self) -> u32 {
            1
        }

        fn open(&self, _: u32) -> Result<Box<dyn OpSource>, ProgramError> {
            Ok(Box::new(Source {
                pages: self.0,
                at: 0,
            }))
        }
    }

    fn seen(pages: u64, look: &Look, walk: Option<Picos>) -> Seen {
        let ready = Ready {
            input: Arc::new(Round(pages)),
            prime: 0,
            marks_ready: false,
            spread: 0,
        };
        let watcher = Watcher {
            look,
            tlb: Some(&TLB),
            clock: Hertz(1_000_000_000),
            walk,
        };
        watch(&ready, watcher, [10_000, 400_000, 1]).expect("watches")
    }

    /// 64 pages for data.
    const TLB: TlbSpec = {
        let level = TlbLevelSpec {
            entries: 64,
            ways: 4,
        };
        TlbSpec {
            l1: level,
            l1_huge: level,
            l1i: level,
            l2: None,
            l2_latency: 0,
            walk_cache: 0,
        }
    };

    #[test]
    fn windows_count_the_pages_that_are_touched_in_them() {
        // A page each 100 ns: 10 us and 10 ns a page are 101 touches for 10 pages.
        let dropped = Look {
            translations: Translations::Dropped,
            ..Look::PAPER
        };
        let few = seen(10, &dropped, None);
        assert!(
            few.hot.len() >= 3 && few.hot.iter().all(|n| *n == 10),
            "{few:?}"
        );
        assert_eq!(few.class, Some(Class::Ccf));
        // 500 pages come round every 50 us; a window of 15 us has 150 of them.
        let many = seen(500, &dropped, None);
        assert!(many.hot.iter().all(|n| (149..=152).contains(n)), "{many:?}");
        assert_eq!(many.class, Some(Class::Llct));
        let reuse: Vec<u32> = many.windows.iter().filter_map(|w| w.reuse_centi).collect();
        assert!(reuse.iter().all(|r| (300..=360).contains(r)), "{reuse:?}");
        assert_eq!(many.changes, 0);
        // 500 pages do not fit into 64 translations: each use is seen all the same.
        let kept = seen(500, &Look::PAPER, None);
        assert_eq!((&kept.hot, kept.class), (&many.hot, many.class));
    }

    #[test]
    fn pages_whose_translations_stay_are_not_seen_again() {
        let few = seen(10, &Look::PAPER, None);
        assert!(
            few.hot.len() >= 3 && few.hot.iter().all(|n| *n == 0),
            "{few:?}"
        );
        assert!(few.windows.iter().all(Window::is_idle), "{few:?}");
        assert_eq!(few.class, Some(Class::Ccf));
    }

    #[test]
    fn a_printed_walk_takes_the_place_of_the_programs_own() {
        // 10 us and 20 us of 100 ns for each page.
        let printed = Some(Picos(20_000_000));
        let many = seen(500, &Look::PAPER, printed);
        assert!(many.hot.iter().all(|n| (299..=302).contains(n)), "{many:?}");
        let own = Look {
            walks: Walks::Own,
            ..Look::PAPER
        };
        let many = seen(500, &own, printed);
        assert!(many.hot.iter().all(|n| (149..=152).contains(n)), "{many:?}");
    }
}
