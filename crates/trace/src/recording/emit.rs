//! Pieces of a chunk under construction: token streams and placed events.

use super::{
    error::EncodeError,
    model::{Event, Raw},
    varint::Sink,
};

/// Token stream under construction.
pub(crate) struct Tokens<const RUN_BITS: u32> {
    /// Hits since the last token.
    pub(crate) run: u64,
    pub(crate) out: Sink,
}

impl<const RUN_BITS: u32> Tokens<RUN_BITS> {
    const FULL: u64 = (1 << RUN_BITS) - 1;

    pub(crate) fn new() -> Self {
        Self {
            run: 0,
            out: Sink::default(),
        }
    }

    /// Ends the run with this code.
    #[inline]
    pub(crate) fn token(&mut self, code: u8) {
        let run = std::mem::take(&mut self.run);
        self.out.byte(code << RUN_BITS | run.min(Self::FULL) as u8);
        if run >= Self::FULL {
            self.out.varint(run - Self::FULL);
        }
    }

    /// Forgets the content and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.run = 0;
        self.out.clear();
    }
}

/// Are the events' places in order and inside the stream?
pub(crate) fn check_events(raw: &[Raw], events: &[(usize, Event)]) -> Result<(), EncodeError> {
    let mut least = 0;
    for (i, &(at, _)) in events.iter().enumerate() {
        if at < least || at > raw.len() {
            return Err(EncodeError::EventPlace {
                event: i,
                at,
                limit: raw.len(),
            });
        }
        least = at;
    }
    Ok(())
}

/// The events that are still to be written.
pub(crate) struct EventCursor<'a> {
    rest: &'a [(usize, Event)],
    /// Raw index of the first of them.
    pub(crate) next: usize,
    /// Block executions before the last event written.
    blocks: u32,
    /// References of the last execution: the place of an event that follows it.
    pub(crate) refs_of_last: u32,
}

impl<'a> EventCursor<'a> {
    pub(crate) fn new(rest: &'a [(usize, Event)]) -> Self {
        Self {
            rest,
            next: rest.first().map_or(usize::MAX, |e| e.0),
            blocks: 0,
            refs_of_last: 0,
        }
    }

    /// Writes the events up to raw index `at`: before them lie `blocks` begun
    /// executions, and `refs` references of the last of these.
    #[cold]
    pub(crate) fn write(
        &mut self,
        at: usize,
        blocks: u32,
        refs: u32,
        out: &mut Sink,
    ) -> Result<(), EncodeError> {
        while let Some(((place, event), rest)) = self.rest.split_first()
            && *place <= at
        {
            out.varint((blocks - self.blocks).into());
            out.varint(refs.into());
            out.extend(&postcard::to_allocvec(event)?);
            self.blocks = blocks;
            self.rest = rest;
        }
        self.next = self.rest.first().map_or(usize::MAX, |e| e.0);
        Ok(())
    }
}
