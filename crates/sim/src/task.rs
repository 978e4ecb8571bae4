//! One thread of a program while it runs: its source, and the references that
//! are read, translated and not yet performed.

use piebald_os_model::kernel::Fault;
use piebald_units::{
    CoreId, Picos, VirtAddr,
    memory::PhysRef,
    op::{MemRef, Next, OpSource},
};

use crate::reads::Reading;

/// References that are read and translated at a time.
pub(crate) const BATCH: usize = 512;

/// A running thread.
pub(crate) struct TaskState {
    /// Which program of the run it belongs to.
    pub(crate) program: usize,
    source: Box<dyn OpSource>,
    refs: Box<[MemRef]>,
    read: usize,
    translated: usize,
    /// Translated references; those before `performed` are done.
    pub(crate) phys: Vec<PhysRef>,
    pub(crate) performed: usize,
    /// References that it has made since its program was ready.
    pub(crate) made: u64,
    pub(crate) fault: Option<Fault>,
    tail: u32,
    next: Option<Next>,
    /// A system call is under way.
    pub(crate) in_call: bool,
    /// A read whose parts a policy places.
    pub(crate) reading: Option<Reading>,
    /// The core that it ran on last.
    pub(crate) last_core: Option<CoreId>,
    /// Buffer of its first read: reads into another one are of a second file.
    pub(crate) first_buffer: Option<VirtAddr>,
    /// When it began to wait for the kernel.
    pub(crate) blocked_at: Picos,
    /// First references of the source that only bring their pages in.
    prime: u64,
    /// Of a program that is met after its set-up: those after the mark, until which all are free.
    after_ready: Option<u64>,
}

/// What a task needs before it can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Translated references wait to be performed.
    Perform,
    /// References wait to be translated.
    Translate,
    /// A fault must be resolved.
    Fault(Fault),
    /// Instructions without references, then an event.
    Event(u32, Next),
    /// The source must be read.
    Read,
    /// The system call that it is in goes on.
    Resume,
    /// The read that it is in goes on with its next part.
    ReadOn,
}

impl TaskState {
    pub(crate) fn new(program: usize, source: Box<dyn OpSource>, prime: u64) -> Self {
        Self {
            program,
            source,
            refs: vec![MemRef::default(); BATCH].into_boxed_slice(),
            read: 0,
            translated: 0,
            phys: Vec::with_capacity(2 * BATCH),
            performed: 0,
            made: 0,
            fault: None,
            tail: 0,
            next: None,
            in_call: false,
            reading: None,
            last_core: None,
            first_buffer: None,
            blocked_at: Picos(0),
            prime,
            after_ready: None,
        }
    }

    /// All is free until the program marks the end of its set-up, and so many references after it.
    pub(crate) const fn meet_after_ready(&mut self, refs: u64) {
        (self.prime, self.after_ready) = (u64::MAX, Some(refs));
    }

    /// The program has marked the end of its set-up.
    pub(crate) const fn note_ready(&mut self) {
        if let Some(refs) = self.after_ready.take() {
            self.prime = refs;
        }
    }

    /// What it does now takes effect, but costs nothing.
    pub(crate) const fn is_free(&self) -> bool {
        self.prime > 0
    }

    /// What comes next; changes nothing.
    #[inline]
    pub(crate) fn need(&self) -> Need {
        if self.performed < self.phys.len() {
            return Need::Perform;
        }
        if self.in_call {
            return Need::Resume;
        }
        if self.reading.is_some() {
            return Need::ReadOn;
        }
        if let Some(fault) = self.fault {
            return Need::Fault(fault);
        }
        if self.translated < self.read {
            return Need::Translate;
        }
        match self.next {
            Some(next) => Need::Event(self.tail, next),
            None => Need::Read,
        }
    }

    /// References that wait to be translated.
    pub(crate) fn untranslated(&self) -> &[MemRef] {
        &self.refs[self.translated..self.read]
    }

    /// The buffer of translated references, emptied, to be put back filled.
    pub(crate) fn take_phys(&mut self) -> Vec<PhysRef> {
        self.performed = 0;
        let mut phys = std::mem::take(&mut self.phys);
        phys.clear();
        phys
    }

    /// The kernel translated some references into `phys`.
    pub(crate) fn translated(&mut self, consumed: usize, fault: Option<Fault>) {
        self.translated += consumed;
        self.fault = fault;
        if self.prime > 0 {
            self.prime = self.prime.saturating_sub(consumed as u64);
            self.performed = self.phys.len();
        }
    }

    /// The event was dealt with.
    pub(crate) fn event_done(&mut self) {
        self.next = None;
        self.tail = 0;
    }

    /// Reads the next references, at most `limit`.
    pub(crate) fn read(&mut self, limit: u64) {
        // Batches end where the cost begins.
        let limit = match self.prime {
            0 => limit,
            prime => prime,
        };
        let room = BATCH.min(usize::try_from(limit.max(1)).unwrap_or(BATCH));
        self.phys.clear();
        self.performed = 0;
        self.translated = 0;
        let filled = self.source.fill(&mut self.refs[..room]);
        self.read = filled.refs;
        self.tail = filled.tail;
        self.next = match filled.next {
            Next::More => None,
            next => Some(next),
        };
        if filled.next == Next::More && filled.tail > 0 {
            // Instructions without references between two reads: no event.
            self.next = Some(Next::More);
        }
    }

    /// Why the source broke off.
    pub(crate) fn failure(&self) -> String {
        self.source
            .failure()
            .unwrap_or("the input cannot be read further")
            .to_owned()
    }
}
