//! A recording that is entered in its middle with the pages that it had by then.

use std::sync::Arc;

use piebald_sim::rooms::workload::{Program, ProgramError, Recorded};
use piebald_units::{
    PAGE_SIZE, VirtAddr,
    op::{Filled, MemRef, Next, OpSource, RefKind, SysOp},
};

/// A recording that is entered in its middle, its pages touched first.
pub(super) struct Entered {
    inner: Recorded,
    touches: Arc<Vec<(VirtAddr, RefKind)>>,
}

impl Entered {
    /// Touches these pages, as far as they are mapped at the start of `inner`, before it goes on.
    pub(super) fn new(inner: Recorded, touches: Vec<(VirtAddr, RefKind)>) -> Self {
        Self {
            inner,
            touches: Arc::new(touches),
        }
    }

    /// How many touches lie outside all mappings of the moment.
    pub(super) fn left_out(&self) -> Result<u64, ProgramError> {
        let mut source = self.source(0)?;
        while matches!(source.fill(&mut []).next, Next::Sys(_) | Next::Mark(_)) {}
        Ok((self.touches.len() - source.touches.len()) as u64)
    }

    fn source(&self, thread: u32) -> Result<EnteredThread, ProgramError> {
        Ok(EnteredThread {
            inner: self.inner.open(thread)?,
            all: self.touches.clone(),
            mapped: Mapped::default(),
            touches: Vec::new(),
            stage: Stage::Mappings,
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
    Touches,
    Inner,
}

struct EnteredThread {
    inner: Box<dyn OpSource>,
    all: Arc<Vec<(VirtAddr, RefKind)>>,
    mapped: Mapped,
    /// Still to be made, the next one last.
    touches: Vec<(VirtAddr, RefKind)>,
    stage: Stage,
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
            self.stage = Stage::Touches;
            let kept = self.all.iter().rev().filter(|t| self.mapped.holds(t.0));
            self.touches = kept.copied().collect();
        }
        if self.stage == Stage::Touches && !self.touches.is_empty() {
            let mut refs = 0;
            while let Some(slot) = out.get_mut(refs)
                && let Some((addr, kind)) = self.touches.pop()
            {
                *slot = MemRef {
                    addr,
                    kind,
                    size: 8,
                    gap: 1,
                    ..MemRef::default()
                };
                refs += 1;
            }
            return Filled {
                refs,
                tail: 0,
                next: Next::More,
            };
        }
        self.stage = Stage::Inner;
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

    pub(super) fn holds(&self, addr: VirtAddr) -> bool {
        self.0.iter().any(|r| (r.0..r.1).contains(&addr.0))
    }
}

fn end(addr: VirtAddr, len: u64) -> u64 {
    let end = addr.0.saturating_add(len);
    end.checked_next_multiple_of(PAGE_SIZE).unwrap_or(u64::MAX)
}
