//! What counts of a program that costs nothing.
//!
//! A program that comes before a run costs no time, so that only its calls and the pages that it
//! touches count, and reading its whole recording for each run would take longer than the
//! run's first part.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use piebald_units::{
    FileId, PAGE_SIZE,
    op::{Filled, MemRef, Next, OpSource, RefKind},
};

use crate::{Program, ProgramError};

/// What the first thread of a program does that counts if it costs nothing: each call, and each page
/// that it touches, again after each call and each page that was new since the last one, as only
/// they can clear the bits by which the kernel sees uses. It is read when it is first run.
pub struct Brief {
    of: Arc<dyn Program>,
    steps: OnceLock<Result<Arc<Steps>, ProgramError>>,
}

/// What a thread does.
#[derive(Default)]
struct Steps {
    refs: Vec<MemRef>,
    /// Events: how many references come before each, and instructions without one just before it.
    events: Vec<(usize, u32, Next)>,
}

impl Brief {
    /// What counts of this program.
    pub fn new(of: Arc<dyn Program>) -> Self {
        Self {
            of,
            steps: OnceLock::new(),
        }
    }

    fn steps(&self) -> Result<Arc<Steps>, ProgramError> {
        let steps = self.steps.get_or_init(|| steps(&*self.of).map(Arc::new));
        steps.clone()
    }
}

fn steps(program: &dyn Program) -> Result<Steps, ProgramError> {
    let mut source = program.open(0)?;
    let mut buffer = vec![MemRef::default(); 4096];
    let mut steps = Steps::default();
    let mut touched = Touched::default();
    loop {
        let filled = source.fill(&mut buffer);
        let refs = buffer[..filled.refs].iter();
        steps.refs.extend(refs.filter(|r| touched.counts(r)));
        match filled.next {
            Next::More => continue,
            Next::Broken => {
                return Err(ProgramError::Unreadable {
                    name: program.name().to_owned(),
                    problem: source.failure().unwrap_or("broken").to_owned(),
                });
            }
            next => steps.events.push((steps.refs.len(), filled.tail, next)),
        }
        touched.forget();
        if matches!(filled.next, Next::Exit(_) | Next::End) {
            break;
        }
    }
    steps.refs.shrink_to_fit();
    Ok(steps)
}

/// Pages that were touched, by what was done to them.
#[derive(Default)]
struct Touched {
    /// Since the last event.
    all: HashSet<(u64, RefKind)>,
    /// Since the last event or page that was not there.
    recent: HashSet<(u64, RefKind)>,
}

impl Touched {
    fn forget(&mut self) {
        self.all.clear();
        self.recent.clear();
    }

    /// The reference does something that none did before.
    fn counts(&mut self, r: &MemRef) -> bool {
        let first = r.addr.0 / PAGE_SIZE;
        let last = (r.addr.0 + u64::from(r.size.max(1)) - 1) / PAGE_SIZE;
        let mut counts = false;
        for page in [first, last] {
            let use_of = (page, r.kind);
            if self.recent.contains(&use_of) {
                continue;
            }
            counts = true;
            if self.all.insert(use_of) {
                self.recent.clear();
            }
            self.recent.insert(use_of);
        }
        counts
    }
}

impl Program for Brief {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn threads(&self) -> u32 {
        1
    }

    fn open(&self, _: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Ok(Box::new(BriefSource {
            steps: self.steps()?,
            reference: 0,
            event: 0,
        }))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        self.of.files()
    }

    fn identity(&self) -> Option<String> {
        Some(format!("brief {}", self.of.identity()?))
    }
}

struct BriefSource {
    steps: Arc<Steps>,
    /// Next reference and event.
    reference: usize,
    event: usize,
}

impl OpSource for BriefSource {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let last = (self.steps.refs.len(), 0, Next::End);
        let (until, tail, next) = *self.steps.events.get(self.event).unwrap_or(&last);
        let refs = (until - self.reference).min(out.len());
        let from = self.reference;
        out[..refs].copy_from_slice(&self.steps.refs[from..from + refs]);
        self.reference += refs;
        if self.reference < until {
            return Filled {
                refs,
                tail: 0,
                next: Next::More,
            };
        }
        self.event += 1;
        Filled { refs, tail, next }
    }
}

#[cfg(test)]
mod tests {
    use piebald_units::VirtAddr;

    use super::*;
    use crate::tests::builtin;

    /// All that a program does.
    fn all_of(program: &dyn Program) -> Steps {
        let mut source = program.open(0).unwrap_or_else(|e| panic!("{e}"));
        let (mut buffer, mut all) = ([MemRef::default(); 7], Steps::default());
        loop {
            let filled = source.fill(&mut buffer);
            all.refs.extend_from_slice(&buffer[..filled.refs]);
            if filled.next != Next::More {
                all.events.push((all.refs.len(), filled.tail, filled.next));
            }
            if matches!(filled.next, Next::Exit(_) | Next::End) {
                return all;
            }
        }
    }

    #[test]
    fn what_costs_nothing_keeps_its_calls_and_touches_every_page_between_them() {
        let program = builtin("postmark:8,low=4KiB,high=8KiB,iterations=5");
        let all = all_of(&*program);
        let brief = Brief::new(program.clone());
        assert_eq!(brief.files(), program.files());
        let free = all_of(&brief);
        assert!(free.refs.len() * 4 < all.refs.len(), "{}", free.refs.len());
        assert_eq!(free.events.len(), all.events.len());
        let uses = |steps: &Steps, from: usize, to: usize| -> HashSet<(u64, RefKind)> {
            let ends = |r: &MemRef| [r.addr.0, r.addr.0 + u64::from(r.size) - 1];
            let of = |r: &MemRef| ends(r).map(|a| (a / PAGE_SIZE, r.kind));
            steps.refs[from..to].iter().flat_map(of).collect()
        };
        let (mut a, mut b) = (0, 0);
        for (all_event, free_event) in all.events.iter().zip(&free.events) {
            assert_eq!(all_event.2, free_event.2);
            let (to_a, to_b) = (all_event.0, free_event.0);
            assert_eq!(uses(&all, a, to_a), uses(&free, b, to_b));
            (a, b) = (to_a, to_b);
        }
    }

    #[test]
    fn a_page_counts_again_after_one_that_is_new() {
        let mut touched = Touched::default();
        let mut at = |addr: u64, size: u8, kind: RefKind| {
            touched.counts(&MemRef {
                addr: VirtAddr(addr),
                size,
                kind,
                ..MemRef::default()
            })
        };
        let (load, store) = (RefKind::Load, RefKind::Store);
        assert!(at(0, 8, load) && !at(64, 8, load) && at(0, 8, store));
        // The store was new: a fault may have cleared what the load had set.
        assert!(at(0, 8, load) && !at(0, 8, store));
        // Both pages of a reference that crosses into another.
        assert!(at(4090, 8, load) && !at(4096, 8, load) && at(0, 8, store));
    }
}
