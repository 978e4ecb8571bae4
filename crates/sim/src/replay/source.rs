//! One trace of a stream, as far as it was read.

use piebald_trace::block::{BlockTrace, Nanos, Request};

use super::excerpt::Cutter;
use super::input::{InputError, InputSetup};
use super::sorter::Sorter;

/// A trace whose requests are sorted and cut as asked.
pub(super) struct Source {
    pub trace: BlockTrace,
    sorter: Option<Sorter>,
    cutter: Option<Cutter>,
    /// What the trace gave last.
    raw: Vec<Request>,
    pub pending: Vec<Request>,
    pub next: usize,
    pub begin: Option<Nanos>,
    done: bool,
    pub requests: u64,
}

impl Source {
    /// A trace at its beginning, whose requests come in the order of their stamps if its largest
    /// step back is given.
    pub fn new(trace: BlockTrace, setup: &InputSetup, step: Option<Nanos>) -> Self {
        Self {
            trace,
            sorter: step.filter(|step| step.0 > 0).map(Sorter::new),
            cutter: Cutter::new(&setup.excerpt, setup.page),
            raw: Vec::new(),
            pending: Vec::new(),
            next: 0,
            begin: None,
            done: false,
            requests: 0,
        }
    }

    /// Is there a request?
    pub fn ready(&mut self) -> Result<bool, InputError> {
        if self.next < self.pending.len() {
            return Ok(true);
        }
        self.next = 0;
        self.pending.clear();
        while !self.done && self.pending.is_empty() {
            self.fetch()?;
        }
        Ok(!self.pending.is_empty())
    }

    /// Fills `pending`; nothing may be due yet of what the trace gave.
    fn fetch(&mut self) -> Result<(), InputError> {
        let more = self.trace.next_batch(&mut self.raw)?;
        if let Some(sorter) = &mut self.sorter {
            let sorted = sorter.take(&mut self.raw);
            sorted.map_err(|held| InputError::Unsorted {
                trace: self.trace.name().to_owned(),
                step: sorter.step(),
                held,
            })?;
            if !more {
                sorter.finish(&mut self.raw);
            }
        }
        let Some(cutter) = &mut self.cutter else {
            std::mem::swap(&mut self.pending, &mut self.raw);
            self.done = !more;
            return Ok(());
        };
        self.done = !cutter.take(&self.raw, &mut self.pending) || !more;
        if self.done {
            cutter.finish(&mut self.pending);
        }
        Ok(())
    }

    /// Stamp of the next request.
    pub fn stamp(&self) -> u64 {
        self.pending[self.next].time.unwrap_or_default().0
    }

    /// Time of the next request since the first.
    pub fn time(&self) -> u64 {
        let time = self.pending[self.next].time.unwrap_or_default();
        time.0.saturating_sub(self.begin.unwrap_or(time).0)
    }
}
