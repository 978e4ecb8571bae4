//! A recording that is entered in its middle with the pages that it had by then.

use std::sync::Arc;

use piebald_sim::rooms::workload::{Program, ProgramError, Recorded};
use piebald_units::{
    PAGE_SIZE, VirtAddr,
    op::{Filled, MemRef, Next, OpSource, RefKind, SysOp},
};

type Touches = Vec<(VirtAddr, RefKind)>;

/// A recording that is entered in its middle. Its first references go to the pages that it had:
/// a run passes over them as `ProgramSetup::prime`. Those behind them go to the lines that were
/// used last.
pub(super) struct Entered {
    inner: Recorded,
    touches: Arc<[Touches; 2]>,
}

impl Entered {
    /// Touches these pages and lines, as far as they are mapped at the start of `inner`, before
    /// it goes on.
    pub(super) fn new(inner: Recorded, pages: Touches, lines: Touches) -> Self {
        Self {
            inner,
            touches: Arc::new([pages, lines]),
        }
    }

    /// How many pages and lines it touches: those that are mapped at that moment.
    pub(super) fn touches(&self) -> Result<(u64, u64), ProgramError> {
        let mut source = self.source(0)?;
        while matches!(source.fill(&mut []).next, Next::Sys(_) | Next::Mark(_)) {}
        let count = |touches: &Touches| {
            let kept = touches.iter().filter(|t| source.mapped.holds(t.0));
            kept.count() as u64
        };
        Ok((count(&self.touches[0]), count(&self.touches[1])))
    }

    fn source(&self, thread: u32) -> Result<EnteredThread, ProgramError> {
        Ok(EnteredThread {
            inner: self.inner.open(thread)?,
            all: self.touches.clone(),
            mapped: Mapped::default(),
            stage: Stage::Mappings,
            at: 0,
        })
    }
}

impl Program for Entered {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn threads(&self) -> u32 {
        1
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Ok(Box::new(self.source(thread)?))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Mappings,
    Pages,
    Lines,
    Inner,
}

struct EnteredThread {
    inner: Box<dyn OpSource>,
    all: Arc<[Touches; 2]>,
    mapped: Mapped,
    stage: Stage,
    /// Touches of the stage that were looked at.
    at: usize,
}

impl EnteredThread {
    /// Touches of a stage as far as there is room; the stage is over when there are none.
    fn touch(&mut self, which: usize, out: &mut [MemRef]) -> usize {
        let mut refs = 0;
        while let Some(slot) = out.get_mut(refs)
            && let Some(&(addr, kind)) = self.all[which].get(self.at)
        {
            self.at += 1;
            if self.mapped.holds(addr) {
                *slot = MemRef {
                    addr,
                    kind,
                    size: 8,
                    gap: 1,
                    ..MemRef::default()
                };
                refs += 1;
            }
        }
        refs
    }
}

impl OpSource for EnteredThread {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        if self.stage == Stage::Mappings {
            // An empty buffer takes events only.
            let filled = self.inner.fill(&mut []);
            if let Next::Sys(op) = &filled.next {
                self.mapped.apply(op);
            }
            if filled.next != Next::More {
                return filled;
            }
            self.mapped.settle();
            self.stage = Stage::Pages;
        }
        // Pages and lines never share a batch: they are not charged alike.
        for (stage, next, which) in [
            (Stage::Pages, Stage::Lines, 0),
            (Stage::Lines, Stage::Inner, 1),
        ] {
            if self.stage != stage {
                continue;
            }
            let refs = self.touch(which, out);
            if refs > 0 || out.is_empty() {
                return Filled {
                    refs,
                    tail: 0,
                    next: Next::More,
                };
            }
            (self.stage, self.at) = (next, 0);
        }
        self.inner.fill(out)
    }

    fn failure(&self) -> Option<&str> {
        self.inner.failure()
    }
}

/// Ranges of addresses that are mapped, end not included, none overlapping.
#[derive(Default)]
pub(super) struct Mapped(Vec<(u64, u64)>);

impl Mapped {
    pub(super) fn apply(&mut self, op: &SysOp) {
        match *op {
            SysOp::Map { addr, len, .. } => self.add(addr, len),
            SysOp::Unmap { addr, len } => self.remove(addr, len),
            SysOp::Remap {
                from,
                old_len,
                to,
                new_len,
            } => {
                self.remove(from, old_len);
                self.add(to, new_len);
            }
            SysOp::Exec => self.0.clear(),
            _ => {}
        }
    }

    fn add(&mut self, addr: VirtAddr, len: u64) {
        self.remove(addr, len);
        self.0.push((addr.0, end(addr, len)));
    }

    fn remove(&mut self, addr: VirtAddr, len: u64) {
        let (from, to) = (addr.0, end(addr, len));
        let old = std::mem::take(&mut self.0);
        for (start, stop) in old {
            let parts = [(start, stop.min(from)), (start.max(to), stop)];
            self.0.extend(parts.into_iter().filter(|(a, b)| a < b));
        }
    }

    /// Makes ready for questions: nothing more is applied.
    pub(super) fn settle(&mut self) {
        self.0.sort_unstable();
    }

    /// Is the address mapped? Only when settled.
    pub(super) fn holds(&self, addr: VirtAddr) -> bool {
        let next = self.0.partition_point(|r| r.0 <= addr.0);
        next.checked_sub(1).is_some_and(|at| addr.0 < self.0[at].1)
    }
}

fn end(addr: VirtAddr, len: u64) -> u64 {
    let end = addr.0.saturating_add(len);
    end.checked_next_multiple_of(PAGE_SIZE).unwrap_or(u64::MAX)
}
