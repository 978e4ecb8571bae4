//! The regions of a plan as programs that a run can enter.

use std::{collections::HashMap, sync::Arc};

use piebald_sim::SimError;
use piebald_trace::recording::{ProgramThread, Recording, ReplayOptions, regions::Region};
use piebald_units::{
    PAGE_SHIFT, VirtAddr,
    op::{MemRef, Next, OpSource, RefKind},
};
use piebald_workload::{Program, Recorded, memory::mark};

use rayon::prelude::*;

use super::{Plan, RegionError, chunks, entered::Entered, lines::LastLines};

/// References that are read at a time.
const BATCH: usize = 4096;
/// References before a region that are searched for the lines that it finds in the caches. Lines
/// that were used last before these are taken not to be cached any more.
const LOOK_BACK: u64 = 64_000_000;

/// A region as a run takes it.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Enters the recording where the warm-up begins.
    pub(crate) program: Arc<dyn Program>,
    /// Its first references bring in the pages that it had by then.
    pub(crate) prime: u64,
    /// References before the region: to the lines that it finds in the caches, then those that
    /// the program made last.
    pub(crate) warmup: u64,
    /// References of the region.
    pub(crate) budget: u64,
}

/// How the regions of a plan are entered.
pub(crate) struct Enter<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) plan: &'a Plan,
    /// Instructions before each region that warm up, as far as there are so many.
    pub(crate) warmup: u64,
    /// Lines that all caches on a core's path hold, at most so many.
    pub(crate) lines: usize,
    /// Fetches and dependences of the replay.
    pub(crate) options: ReplayOptions,
}

impl Enter<'_> {
    /// All regions of the plan, in its order, as programs of this name.
    pub(crate) fn all(&self, name: &str) -> Result<Vec<Entry>, RegionError> {
        let regions = &self.plan.regions.regions;
        let warm = |start: u64| start.min(self.warmup);
        let starts: Vec<u64> = regions.iter().map(|r| r.start - warm(r.start)).collect();
        let touched = self.touched_before(&starts)?;
        let jobs: Vec<_> = regions.iter().zip(touched).collect();
        let entry = |(region, touches): (&Region, Touches)| {
            let warm = warm(region.start);
            let start = region.start - warm;
            let options = ReplayOptions {
                start_at: start,
                ..self.options
            };
            let inner = Recorded::new(name, self.recording.clone(), options)?;
            let lines = self.lines_before(start)?;
            let midway = self.recording.header().midway;
            let program = Entered::new(inner, touches, lines, midway);
            let (pages, lines) = program.touches()?;
            Ok(Entry {
                prime: pages,
                program: Arc::new(program),
                warmup: lines + self.refs(start, warm)?,
                // A region without references would have no end.
                budget: self.refs(region.start, region.instrs)?.max(1),
            })
        };
        jobs.into_par_iter().map(entry).collect()
    }

    /// The lines that the image which runs at `start` used last before, the least recent first.
    fn lines_before(&self, start: u64) -> Result<Vec<(VirtAddr, RefKind)>, RegionError> {
        let before = chunks(self.recording, &self.plan.thread).take_while(|c| c.1 < start);
        let before: Vec<_> = before.collect();
        let mut lines = LastLines::new(self.lines);
        let mut looked_at = 0;
        let mut refs = Vec::new();
        for (_, first, chunk) in before.iter().rev() {
            let same_image = before.last().is_some_and(|c| c.2.process == chunk.process);
            if !same_image || looked_at >= LOOK_BACK || lines.is_full() {
                break;
            }
            refs.clear();
            let instrs = chunk.instrs.min(start - first);
            self.replay(*first, instrs, self.options.fetches, |batch| {
                refs.extend(batch.iter().map(|r| (r.addr, r.kind)));
            })?;
            looked_at += refs.len() as u64;
            lines.look_back(&refs);
        }
        Ok(lines.into_order())
    }

    /// References of so many instructions from `start` on.
    fn refs(&self, start: u64, instrs: u64) -> Result<u64, RegionError> {
        if instrs == 0 {
            return Ok(0);
        }
        let mut total = 0;
        self.replay(start, instrs, false, |refs| total += refs.len() as u64)?;
        Ok(total)
    }

    /// Hands over the references of so many instructions from `start` on.
    fn replay(
        &self,
        start: u64,
        instrs: u64,
        fetches: bool,
        mut take: impl FnMut(&[MemRef]),
    ) -> Result<(), RegionError> {
        let options = ReplayOptions {
            start_at: start,
            max_instrs: Some(instrs),
            mappings: false,
            dependences: false,
            fetches,
            ..ReplayOptions::default()
        };
        let mut source = self.recording.source(self.plan.thread.thread, options)?;
        let mut refs = vec![MemRef::default(); BATCH];
        loop {
            let filled = source.fill(&mut refs);
            take(&refs[..filled.refs]);
            match filled.next {
                Next::Exit(_) | Next::End => return Ok(()),
                Next::Broken => return Err(broken(&source)),
                _ => {}
            }
        }
    }

    /// For each of `starts`, which rise: one reference to each page that the image which runs
    /// there touched before, in the order of first touches (within a chunk, of addresses).
    fn touched_before(&self, starts: &[u64]) -> Result<Vec<Touches>, RegionError> {
        if self.recording.header().midway {
            let all = pages_of(self.recording, &self.plan.thread)?;
            return Ok(vec![all; starts.len()]);
        }
        let mut all = Vec::new();
        let mut pages = Pages::default();
        let mut process = None;
        for (index, first, chunk) in chunks(self.recording, &self.plan.thread) {
            let end = first + chunk.instrs;
            let others = process.replace(chunk.process) != Some(chunk.process);
            // The index of a chunk that holds a start knows of later touches as well.
            while let Some(start) = starts.get(all.len()).filter(|s| **s < end) {
                let mut before = match others {
                    true => Pages::default(),
                    false => pages.clone(),
                };
                if *start > first {
                    self.replay(first, start - first, true, |refs| {
                        refs.iter().for_each(|r| before.add(r));
                    })?;
                }
                all.push(before.touches);
            }
            if all.len() == starts.len() {
                break;
            }
            if others {
                pages = Pages::default();
            }
            for touch in self.recording.pages_touched(index)? {
                pages.touch(touch.page.0, touch.store);
            }
        }
        all.resize(starts.len(), Vec::new());
        Ok(all)
    }
}

/// A recording that begins in the middle of its program, as a program that finds the pages which
/// it had by then, and how many they are: its first references, which bring them in. What it
/// touches later in mappings of that moment is taken to have been there: most of it was, and
/// which was not, no one has recorded. Processes that it had started by then share its pages or
/// have to bring in their own.
///
/// # Errors
/// The recording is damaged.
pub(crate) fn midway(
    name: &str,
    recording: &Recording,
    options: ReplayOptions,
) -> Result<(Arc<dyn Program>, u64), RegionError> {
    let threads = recording.threads()?;
    let pages = match threads.iter().find(|t| t.parent.is_none()) {
        Some(main) => pages_of(recording, main)?,
        None => Vec::new(),
    };
    let inner = Recorded::new(name, recording.clone(), options)?;
    let program = Entered::new(inner, pages, Vec::new(), true);
    let (prime, _) = program.touches()?;
    Ok((Arc::new(program), prime))
}

/// One reference to each page that a thread's first image touches, whichever of its threads does.
fn pages_of(recording: &Recording, thread: &ProgramThread) -> Result<Touches, RegionError> {
    let mut pages = Pages::default();
    let first = chunks(recording, thread).next();
    let process = first.map(|(_, _, chunk)| chunk.process);
    for (index, chunk) in recording.index().chunks.iter().enumerate() {
        if Some(chunk.process) == process {
            for touch in recording.pages_touched(index)? {
                pages.touch(touch.page.0, touch.store);
            }
        }
    }
    Ok(pages.touches)
}

type Touches = Vec<(VirtAddr, RefKind)>;

/// Pages and how they were touched, in the order of first touches.
#[derive(Clone, Default)]
struct Pages {
    at: HashMap<u64, usize>,
    touches: Touches,
}

impl Pages {
    fn touch(&mut self, page: u64, store: bool) {
        let place = *self.at.entry(page).or_insert_with(|| {
            let addr = VirtAddr(page << PAGE_SHIFT);
            self.touches.push((addr, RefKind::Load));
            self.touches.len() - 1
        });
        if store {
            self.touches[place].1 = RefKind::Store;
        }
    }

    fn add(&mut self, r: &MemRef) {
        let last = r.addr.0.saturating_add(u64::from(r.size.max(1)) - 1);
        for page in r.addr.0 >> PAGE_SHIFT..=last >> PAGE_SHIFT {
            self.touch(page, r.kind.writes());
        }
    }
}

fn broken(source: &dyn OpSource) -> RegionError {
    RegionError::Run(SimError::Input {
        program: "region".to_owned(),
        problem: source.failure().unwrap_or_default().to_owned(),
    })
}

/// Instructions and references before a built-in program says that its set-up is over; none if
/// it never does.
pub(crate) fn ready_at(
    recording: &Recording,
    thread: &ProgramThread,
) -> Result<(u64, u64), RegionError> {
    let options = ReplayOptions {
        dependences: false,
        ..ReplayOptions::default()
    };
    let mut source = recording.source(thread.thread, options)?;
    let mut refs = vec![MemRef::default(); BATCH];
    let (mut instrs, mut total) = (0u64, 0);
    loop {
        let filled = source.fill(&mut refs);
        let gaps = refs[..filled.refs].iter().map(|r| u64::from(r.gap));
        instrs += gaps.sum::<u64>() + u64::from(filled.tail);
        total += filled.refs as u64;
        match filled.next {
            Next::Mark(mark::READY) => return Ok((instrs, total)),
            Next::Exit(_) | Next::End => return Ok((0, 0)),
            Next::Broken => return Err(broken(&source)),
            _ => {}
        }
    }
}

/// References that the first thread of a built-in program makes before its set-up is over.
pub(crate) fn setup_refs(recording: &Recording) -> Result<u64, RegionError> {
    let threads = recording.threads()?;
    let first = threads.iter().find(|t| t.parent.is_none());
    Ok(match first {
        Some(first) => ready_at(recording, first)?.1,
        None => 0,
    })
}
