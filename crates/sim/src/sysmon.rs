//! What SysMon sees of a program alone: its windows, from the pages that it touches, at so many
//! instructions per cycle and without caches.
//!
//! A use of a page sets its access bit if the page table is walked for it: if the translation
//! is in none of the machine's buffers. `pte_mkold()`, by which SysMon clears the bits (section
//! 4.2), drops no translation.

mod tlb;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use piebald_hw::spec::TlbSpec;
use piebald_policy::hvr::{
    Class, Facts, MonitorConfig, PageRecord, Pass, Profile, Sampler, Window,
};
use piebald_units::{
    Hertz, Picos,
    op::{MemRef, Next, OpSource, RefKind},
};
use piebald_workload::Program;
use serde::{Deserialize, Serialize};

use self::tlb::Tlb;
use crate::{draws::draw, setup::SimError};

/// A program that SysMon watches alone, and all that its windows depend on.
#[derive(Clone)]
pub struct PageWatch {
    /// Its name, for errors.
    pub name: String,
    /// Its references: those of its first thread are watched.
    pub program: Arc<dyn Program>,
    /// First references, which only bring in pages.
    pub prime: u64,
    /// SysMon's parameters.
    pub monitor: MonitorConfig,
    /// The buffers whose translations stay when bits are cleared: a page whose translation is there is
    /// not seen. `None` = each page that is used is seen.
    pub tlb: Option<TlbSpec>,
    /// Instructions in a second.
    pub speed: Hertz,
    /// How long a walk of its page table takes; `None` = by the pages that it has.
    pub walk: Option<Picos>,
    /// What times between windows are divided by, at least 1.
    pub time_scale: u32,
    /// References that are watched, after those that only bring in pages.
    pub refs: u64,
    /// Of the pages whose re-use is watched.
    pub seed: u64,
}

/// What the windows of a program were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagesSeen {
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
    /// References that were watched.
    pub refs: u64,
}

impl PageWatch {
    /// All that its outcome depends on besides code; nothing if the program does not know what it is.
    pub(crate) fn identity(&self) -> Option<String> {
        let Self {
            name: _,
            program,
            prime,
            monitor,
            tlb,
            speed,
            walk,
            time_scale,
            refs,
            seed,
        } = self;
        let program = program.identity()?;
        Some(format!(
            "sysmon {program} {prime} {monitor:?} {tlb:?} {speed:?} {walk:?} {time_scale} {refs} {seed}"
        ))
    }

    /// Watches the program for its references; and if it has not had as many windows by then as are
    /// averaged, until it has, from its beginning on again.
    ///
    /// # Errors
    /// It cannot be read to that end, SysMon's parameters are not valid, or somebody stops it.
    pub(crate) fn run(&self, stop: Option<&AtomicBool>) -> Result<PagesSeen, SimError> {
        let unread = |problem: String| SimError::Input {
            program: self.name.clone(),
            problem,
        };
        let sampler = Sampler::new(Vec::new(), self.monitor).map_err(|e| unread(e.to_string()))?;
        let interval = (self.monitor.interval.0 / u64::from(self.time_scale).max(1)).max(1);
        let mut watch = Watch {
            of: self,
            tlb: self.tlb.as_ref().map(Tlb::new),
            instructions: 0,
            cycle: 1e12 / self.speed.0.max(1) as f64,
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
            seen: PagesSeen::default(),
            stop,
        };
        for _ in 0..ROUNDS {
            let mut source = self.program.open(0).map_err(|e| unread(e.to_string()))?;
            watch.run(&mut *source).map_err(unread)?;
            if watch.is_stopped() {
                return Err(SimError::Stopped);
            }
            if watch.is_done() {
                break;
            }
        }
        Ok(watch.seen)
    }
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
    of: &'a PageWatch,
    tlb: Option<Tlb>,
    /// What it has done.
    instructions: u64,
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
    seen: PagesSeen,
    stop: Option<&'a AtomicBool>,
}

/// Most times that a program is gone through for its first windows: mcf's three of JOB2 last
/// 2.7 s by the paper's walks, some 50 times a recording of 100 million references.
const ROUNDS: u32 = 100;

impl Watch<'_> {
    fn run(&mut self, source: &mut dyn OpSource) -> Result<(), String> {
        let mut batch = vec![MemRef::default(); BATCH];
        let mut primed = 0;
        let mut last = u64::MAX;
        while !(self.is_done() || self.is_stopped()) {
            let filled = source.fill(&mut batch);
            for r in &batch[..filled.refs] {
                let page = r.addr.0 >> 12;
                if primed < self.of.prime {
                    primed += 1;
                    self.slot(page);
                    continue;
                }
                self.seen.refs += 1;
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
    fn is_done(&self) -> bool {
        let averaged = usize::from(self.of.monitor.averaged);
        self.seen.refs >= self.of.refs && self.seen.windows.len() >= averaged
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
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
        let monitor = &self.of.monitor;
        match self.of.walk {
            Some(walk) => (monitor.hot_window + walk).0,
            None => monitor.hot_window_of(self.stamps.len() as u32).0,
        }
    }

    /// The window or pass that is over, or the next.
    fn step(&mut self, now: u64) {
        match self.phase {
            // Where windows of JOB1 are longer than the time between them, JOB2 would never begin otherwise.
            Phase::Rest if self.hot_due <= now && self.hot_due <= self.window_due => {
                self.phase = Phase::Hot(now + self.length());
                self.hot_due = now + self.interval;
            }
            Phase::Rest => {
                let pages = self.stamps.len();
                // The configuration was checked when the program was begun.
                if let Ok(sampler) = Sampler::new(vec![PageRecord::UNUSED; pages], self.of.monitor)
                {
                    self.sampler = sampler;
                }
                let random = draw(self.of.seed, "watched", self.seen.windows.len() as u64);
                self.sampler.begin(pages as u32, random);
                self.phase = Phase::Passes(now + self.length());
            }
            Phase::Hot(_) => {
                let hot = self.touched.len() as u32;
                self.profile.hot_pages(&self.of.monitor, hot);
                self.seen.hot.push(hot);
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
            let changed = self.profile.window(&self.of.monitor, &window);
            self.seen.windows.push(window);
            self.seen.changes += u32::from(changed && had);
            if self.seen.windows.len() == usize::from(self.of.monitor.averaged) {
                self.seen.class = self.profile.class();
                self.seen.facts = Some(self.profile.facts(&self.of.monitor));
            }
        }
        // Each window at the base interval: what is seen is the question.
        self.window_due = now + self.interval;
        self.hot_due = self.hot_due.max(now);
        self.phase = Phase::Rest;
    }
}

#[cfg(test)]
mod tests {
    use piebald_hw::spec::TlbLevelSpec;
    use piebald_policy::hvr::Unseen;
    use piebald_units::{VirtAddr, op::Filled};
    use piebald_workload::ProgramError;

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

    /// What is seen of so many pages, each use of them or only those without a translation.
    fn seen(pages: u64, tlb: Option<TlbSpec>, walk: Option<Picos>) -> PagesSeen {
        let unseen = if tlb.is_some() {
            Unseen::Ran
        } else {
            Unseen::Slept
        };
        let watch = PageWatch {
            name: "round".to_owned(),
            program: Arc::new(Round(pages)),
            prime: 0,
            monitor: MonitorConfig {
                unseen,
                ..MonitorConfig::PAPER
            },
            tlb,
            speed: Hertz(1_000_000_000),
            walk,
            time_scale: 10_000,
            refs: 400_000,
            seed: 1,
        };
        watch.run(None).expect("watches")
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
        let few = seen(10, None, None);
        assert!(
            few.hot.len() >= 3 && few.hot.iter().all(|n| *n == 10),
            "{few:?}"
        );
        assert_eq!(few.class, Some(Class::Ccf));
        // 500 pages come round every 50 us; a window of 15 us has 150 of them.
        let many = seen(500, None, None);
        assert!(many.hot.iter().all(|n| (149..=152).contains(n)), "{many:?}");
        assert_eq!(many.class, Some(Class::Llct));
        let reuse: Vec<u32> = many.windows.iter().filter_map(|w| w.reuse_centi).collect();
        assert!(reuse.iter().all(|r| (300..=360).contains(r)), "{reuse:?}");
        assert_eq!(many.changes, 0);
        // 500 pages do not fit into 64 translations: each use is seen all the same.
        let kept = seen(500, Some(TLB), None);
        assert_eq!((&kept.hot, kept.class), (&many.hot, many.class));
    }

    #[test]
    fn pages_whose_translations_stay_are_not_seen_again() {
        let few = seen(10, Some(TLB), None);
        assert!(
            few.hot.len() >= 3 && few.hot.iter().all(|n| *n == 0),
            "{few:?}"
        );
        assert!(few.windows.iter().all(Window::is_idle), "{few:?}");
        assert_eq!(few.class, Some(Class::Ccf));
    }

    #[test]
    fn a_walk_that_is_given_takes_the_place_of_the_programs_own() {
        // 10 us and 20 us of 100 ns for each page.
        let given = Some(Picos(20_000_000));
        let many = seen(500, Some(TLB), given);
        assert!(many.hot.iter().all(|n| (299..=302).contains(n)), "{many:?}");
    }

    #[test]
    fn windows_that_are_longer_than_the_time_between_them_take_turns() {
        // 300 us from one to the next, and 410 us for each of JOB1, 200 times as much for one of JOB2.
        let long = seen(500, None, Some(Picos(400_000_000)));
        assert_eq!((long.windows.len(), long.hot.len()), (3, 3));
        assert!(long.class.is_some());
    }

    #[test]
    fn what_is_watched_stops_when_it_is_told_to() {
        let stop = AtomicBool::new(true);
        let watch = PageWatch {
            name: "round".to_owned(),
            program: Arc::new(Round(10)),
            prime: 0,
            monitor: MonitorConfig::PAPER,
            tlb: None,
            speed: Hertz(1_000_000_000),
            walk: None,
            time_scale: 10_000,
            refs: u64::MAX,
            seed: 1,
        };
        assert!(matches!(watch.run(Some(&stop)), Err(SimError::Stopped)));
    }
}
