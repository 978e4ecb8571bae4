//! Programs that were read once and are kept as what is needed of them: a program that comes before
//! a run costs no time, so that only its calls and the pages that it touches count, and reading its
//! whole recording for each run would take longer than the run's first part.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicBool},
};

use piebald_store::digest;
use piebald_units::{
    FileId, PAGE_SIZE,
    op::{Filled, MemRef, Next, OpSource, RefKind},
};
use piebald_workload::{Program, ProgramError};

use crate::experiment::unless_stopped;

/// A program of one thread, in memory.
pub(super) struct Kept {
    name: String,
    files: Vec<(FileId, u64)>,
    steps: Arc<Steps>,
    /// What they were taken from, and how.
    identity: Option<String>,
}

/// What a thread does.
#[derive(Debug, Default, PartialEq, Eq)]
struct Steps {
    refs: Vec<MemRef>,
    /// Events: how many references come before each, and instructions without one just before it.
    events: Vec<(usize, u32, Next)>,
}

impl Kept {
    /// All that the main thread of a program does.
    ///
    /// # Errors
    /// It cannot be read, or `stop` is set meanwhile.
    pub(super) fn whole(program: &dyn Program, stop: Option<&AtomicBool>) -> Result<Self, String> {
        Self::filtered((program, stop), "whole", |_| true, || {})
    }

    /// What counts of it if it costs nothing: each call, and each page that it touches, again after
    /// each call and each page that was new since the last one, as only they can clear the bits
    /// by which the kernel sees uses.
    ///
    /// # Errors
    /// It cannot be read, or `stop` is set meanwhile.
    pub(super) fn free(program: &dyn Program, stop: Option<&AtomicBool>) -> Result<Self, String> {
        let touched = std::cell::RefCell::new(Touched::default());
        Self::filtered(
            (program, stop),
            "free",
            |r| touched.borrow_mut().counts(r),
            || touched.borrow_mut().forget(),
        )
    }

    /// The references that `wanted` says, `how` in a word; `event` is told of each event.
    fn filtered(
        (program, stop): (&dyn Program, Option<&AtomicBool>),
        how: &str,
        wanted: impl Fn(&MemRef) -> bool,
        event: impl Fn(),
    ) -> Result<Self, String> {
        let mut source = program.open(0).map_err(|e| e.to_string())?;
        let mut buffer = vec![MemRef::default(); 4096];
        let mut steps = Steps::default();
        loop {
            unless_stopped(stop)?;
            let filled = source.fill(&mut buffer);
            let refs = buffer[..filled.refs].iter();
            steps.refs.extend(refs.filter(|r| wanted(r)));
            match filled.next {
                Next::More => continue,
                Next::Broken => return Err(source.failure().unwrap_or("broken").to_owned()),
                next => steps.events.push((steps.refs.len(), filled.tail, next)),
            }
            event();
            if matches!(filled.next, Next::Exit(_) | Next::End) {
                break;
            }
        }
        steps.refs.shrink_to_fit();
        Ok(Self {
            name: program.name().to_owned(),
            files: program.files(),
            steps: Arc::new(steps),
            identity: program.identity().map(|of| {
                // Its code lies outside the rooms that an epoch stands for.
                format!("{how} {} {of}", digest(include_bytes!("brief.rs")))
            }),
        })
    }
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

impl Program for Kept {
    fn identity(&self) -> Option<String> {
        self.identity.clone()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> u32 {
        1
    }

    fn open(&self, _: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Ok(Box::new(KeptSource {
            steps: self.steps.clone(),
            reference: 0,
            event: 0,
        }))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        self.files.clone()
    }
}

struct KeptSource {
    steps: Arc<Steps>,
    /// Next reference and event.
    reference: usize,
    event: usize,
}

impl OpSource for KeptSource {
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
    use piebald_trace::recording::ReplayOptions;
    use piebald_units::VirtAddr;
    use piebald_workload::{Builtin, Library};

    use super::*;

    fn builtin(text: &str) -> impl Program {
        let builtin = Builtin::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let options = ReplayOptions {
            fetches: true,
            ..ReplayOptions::default()
        };
        let program = Library::new().program(&builtin, 1, 1 << 40, options);
        program.unwrap_or_else(|e| panic!("{e}"))
    }

    fn steps(program: &dyn Program) -> Steps {
        let kept = Kept::whole(program, None).unwrap_or_else(|e| panic!("{e}"));
        Arc::into_inner(kept.steps).unwrap_or_default()
    }

    #[test]
    fn a_kept_program_does_what_it_was_kept_from() {
        let program = builtin("postmark:8,low=4KiB,high=8KiB,iterations=5");
        let kept = Kept::whole(&program, None).unwrap_or_else(|e| panic!("{e}"));
        let all = steps(&program);
        assert!(all.refs.len() > 100 && all.events.len() > 20);
        assert_eq!(steps(&kept), all);
        assert_eq!(kept.files(), program.files());
        // In small pieces too.
        let mut source = kept.open(0).unwrap_or_else(|e| panic!("{e}"));
        let (mut buffer, mut refs, mut events) = ([MemRef::default(); 7], Vec::new(), 0);
        loop {
            let filled = source.fill(&mut buffer);
            refs.extend_from_slice(&buffer[..filled.refs]);
            events += usize::from(filled.next != Next::More);
            if matches!(filled.next, Next::Exit(_) | Next::End) {
                break;
            }
        }
        assert_eq!((refs, events), (all.refs, all.events.len()));
    }

    #[test]
    fn what_costs_nothing_keeps_its_calls_and_touches_every_page_between_them() {
        let program = builtin("postmark:8,low=4KiB,high=8KiB,iterations=5");
        let all = steps(&program);
        let free = Kept::free(&program, None).unwrap_or_else(|e| panic!("{e}"));
        let free = Arc::into_inner(free.steps).unwrap_or_default();
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
