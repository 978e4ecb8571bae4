//! A recording that is entered in its middle with the pages that it had by then.

use std::sync::Arc;

use piebald_store::digest;
use piebald_units::{
    PAGE_SIZE, VirtAddr,
    op::{Backing, Filled, MemRef, Next, OpSource, RefKind, SysOp},
};
use piebald_workload::{Program, ProgramError, Recorded};

type Touches = Vec<(VirtAddr, RefKind)>;

/// A recording that is entered in its middle. Its first references go to the pages that it had:
/// a run passes over them as `ProgramSetup::prime`. Those behind them go to the lines that were
/// used last.
pub(super) struct Entered {
    inner: Recorded,
    touches: Arc<[Touches; 2]>,
    /// The recording itself begins in the middle of the program.
    midway: bool,
}

impl Entered {
    /// Touches these pages and lines, as far as they are mapped at the start of `inner`, before
    /// it goes on.
    pub(super) fn new(inner: Recorded, pages: Touches, lines: Touches, midway: bool) -> Self {
        Self {
            inner,
            touches: Arc::new([pages, lines]),
            midway,
        }
    }

    /// How many pages and lines it touches: those that are mapped at that moment.
    pub(super) fn touches(&self) -> Result<(u64, u64), ProgramError> {
        let mut source = self.source()?;
        while matches!(source.fill(&mut []).next, Next::Sys(_) | Next::Mark(_)) {}
        let count = |touches: &Touches| {
            let kept = touches
                .iter()
                .filter(|t| source.mapped.behind(t.0).is_some());
            kept.count() as u64
        };
        Ok((count(&self.touches[0]), count(&self.touches[1])))
    }

    /// The main thread.
    fn source(&self) -> Result<EnteredThread, ProgramError> {
        Ok(EnteredThread {
            inner: self.inner.open(0)?,
            ahead: Ahead {
                refs: vec![MemRef::default(); Ahead::LEN],
                filled: None,
            },
            all: self.touches.clone(),
            mapped: Mapped::default(),
            midway: self.midway,
            stage: Stage::Mappings,
            at: 0,
        })
    }
}

impl Program for Entered {
    fn identity(&self) -> Option<String> {
        // Its code lies outside the rooms that an epoch stands for.
        let code = digest(include_bytes!("entered.rs"));
        let touches = digest(format!("{:?}", self.touches).as_bytes());
        let inner = self.inner.identity()?;
        Some(format!("entered {code} {touches} {} {inner}", self.midway))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn threads(&self) -> u32 {
        self.inner.threads()
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        match thread {
            0 => Ok(Box::new(self.source()?)),
            _ => self.inner.open(thread),
        }
    }

    fn files(&self) -> Vec<(piebald_units::FileId, u64)> {
        self.inner.files()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Mappings,
    Pages,
    Lines,
    Inner,
}

/// The first references of a thread, which were read to find the end of its mappings.
struct Ahead {
    refs: Vec<MemRef>,
    /// How many there are, and what follows them; none once they were handed over.
    filled: Option<Filled>,
}

impl Ahead {
    /// The least buffer that sources fill.
    const LEN: usize = 64;

    /// Hands over as many as there is room for, and keeps the rest.
    fn hand_over(&mut self, filled: Filled, out: &mut [MemRef]) -> Filled {
        let n = filled.refs.min(out.len());
        out[..n].copy_from_slice(&self.refs[..n]);
        if n == filled.refs {
            return filled;
        }
        self.refs.drain(..n);
        self.filled = Some(Filled {
            refs: filled.refs - n,
            ..filled
        });
        Filled {
            refs: n,
            tail: 0,
            next: Next::More,
        }
    }
}

struct EnteredThread {
    inner: Box<dyn OpSource>,
    ahead: Ahead,
    all: Arc<[Touches; 2]>,
    mapped: Mapped,
    midway: bool,
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
            if let Some(behind) = self.mapped.behind(addr) {
                // What it wrote before the recording began is not known: a page of its own that
                // it only reads since would else be the page of zeros that all such pages share.
                let written = self.midway && which == 0 && behind == Behind::Own;
                *slot = MemRef {
                    addr,
                    kind: if written { RefKind::Store } else { kind },
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
        while self.stage == Stage::Mappings {
            // An empty buffer would not tell the end of the mappings from that of a chunk.
            let filled = self.inner.fill(&mut self.ahead.refs);
            if filled.refs > 0 {
                self.ahead.filled = Some(filled);
                self.mapped.settle();
                self.stage = Stage::Pages;
            } else if filled.next != Next::More {
                if let Next::Sys(op) = &filled.next {
                    self.mapped.apply(op);
                }
                return filled;
            }
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
        match self.ahead.filled.take() {
            Some(filled) => self.ahead.hand_over(filled, out),
            None => self.inner.fill(out),
        }
    }

    fn failure(&self) -> Option<&str> {
        self.inner.failure()
    }
}

/// What lies behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// Memory of the program's own that it may write.
    Own,
    /// A file, or memory that it may only read.
    Other,
}

/// A range of addresses, its end not included.
#[derive(Clone, Copy)]
struct Range {
    from: u64,
    to: u64,
    behind: Behind,
}

/// Ranges of addresses that are mapped, none overlapping.
#[derive(Default)]
pub(super) struct Mapped(Vec<Range>);

impl Mapped {
    pub(super) fn apply(&mut self, op: &SysOp) {
        match *op {
            SysOp::Map {
                addr,
                len,
                backing,
                access,
                ..
            } => {
                let own = backing == Backing::Anon && access.write;
                let behind = if own { Behind::Own } else { Behind::Other };
                self.add(addr, len, behind);
            }
            SysOp::Unmap { addr, len } => self.remove(addr, len),
            SysOp::Remap {
                from,
                old_len,
                to,
                new_len,
            } => {
                let old = self.0.iter().find(|r| (r.from..r.to).contains(&from.0));
                let behind = old.map_or(Behind::Other, |r| r.behind);
                self.remove(from, old_len);
                self.add(to, new_len, behind);
            }
            SysOp::Exec => self.0.clear(),
            _ => {}
        }
    }

    fn add(&mut self, addr: VirtAddr, len: u64, behind: Behind) {
        self.remove(addr, len);
        let (from, to) = (addr.0, end(addr, len));
        self.0.push(Range { from, to, behind });
    }

    fn remove(&mut self, addr: VirtAddr, len: u64) {
        let (from, to) = (addr.0, end(addr, len));
        for old in std::mem::take(&mut self.0) {
            let parts = [
                Range {
                    to: old.to.min(from),
                    ..old
                },
                Range {
                    from: old.from.max(to),
                    ..old
                },
            ];
            self.0.extend(parts.into_iter().filter(|r| r.from < r.to));
        }
    }

    /// Makes ready for questions: nothing more is applied.
    pub(super) fn settle(&mut self) {
        self.0.sort_unstable_by_key(|r| r.from);
    }

    /// What is mapped at an address. Only when settled.
    pub(super) fn behind(&self, addr: VirtAddr) -> Option<Behind> {
        let next = self.0.partition_point(|r| r.from <= addr.0);
        let range = self.0.get(next.checked_sub(1)?)?;
        (addr.0 < range.to).then_some(range.behind)
    }
}

fn end(addr: VirtAddr, len: u64) -> u64 {
    let end = addr.0.saturating_add(len);
    end.checked_next_multiple_of(PAGE_SIZE).unwrap_or(u64::MAX)
}
