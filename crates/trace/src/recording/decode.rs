//! From chunk sections back to executions: the mirror image of the encoder.

use super::{
    model::Event,
    predict::*,
    varint::{Source, unzigzag48},
};

/// Sections of a chunk, by their place in the table.
pub(crate) mod section {
    pub(crate) const BLOCK_TOKENS: usize = 0;
    pub(crate) const LITERALS: usize = 1;
    pub(crate) const IRREGULAR: usize = 2;
    pub(crate) const ADDR_TOKENS: usize = 3;
    pub(crate) const RESIDUALS: usize = 4;
    pub(crate) const EVENTS: usize = 5;
    pub(crate) const PAGES: usize = 6;
    pub(crate) const COUNT: usize = 7;
}

/// What is wrong with a section. One byte, so that a result with an address fits
/// into registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("a token is cut")]
    CutToken,
    #[error("tokens end before the references do")]
    TokensEnd,
    #[error("an unknown token")]
    UnknownToken,
    #[error("a block that the dictionary does not hold")]
    UnknownBlock,
    #[error("an access that its block does not hold")]
    UnknownAccess,
    #[error("block literals end early")]
    LiteralsEnd,
    #[error("residuals end early")]
    ResidualsEnd,
    #[error("irregular executions are cut")]
    CutIrregular,
    #[error("more instructions than the header says")]
    TooManyInstrs,
    #[error("more references than the header says")]
    TooManyRefs,
    #[error("fewer references or instructions than the header says")]
    TooFew,
    #[error("blocks are left over after the last execution")]
    BlocksLeft,
    #[error("addresses are left over after the last execution")]
    AddressesLeft,
    #[error("irregular executions are left over")]
    IrregularLeft,
    #[error("an event lies beyond the last reference")]
    EventBeyond,
}

/// Reads tokens: a run of hits, then what ended it.
struct Tokens<const RUN_BITS: u32> {
    source: Source,
    run: u64,
    /// What ends the run; `None` if the chunk does.
    code: Option<u8>,
}

impl<const RUN_BITS: u32> Tokens<RUN_BITS> {
    const FULL: u8 = (1 << RUN_BITS) - 1;

    fn new(bytes: Vec<u8>) -> Result<Self, Fault> {
        let mut tokens = Self {
            source: Source::new(bytes),
            run: 0,
            code: None,
        };
        tokens.load()?;
        Ok(tokens)
    }

    /// Reads the next token.
    #[inline]
    fn load(&mut self) -> Result<(), Fault> {
        let Some(byte) = self.source.byte() else {
            self.run = u64::MAX;
            self.code = None;
            return Ok(());
        };
        self.run = (byte & Self::FULL).into();
        self.code = Some(byte >> RUN_BITS);
        if byte & Self::FULL == Self::FULL {
            self.run += self.source.varint().ok_or(Fault::CutToken)?;
        }
        Ok(())
    }

    /// After a run: its code; the next token is made ready.
    #[inline]
    fn end_run(&mut self) -> Result<u8, Fault> {
        let code = self.code.ok_or(Fault::TokensEnd)?;
        self.load()?;
        Ok(code)
    }

    /// Gives the memory back.
    fn into_bytes(self) -> Vec<u8> {
        self.source.into_bytes()
    }

    /// Is everything read but the last run?
    fn is_done(&self) -> bool {
        self.code.is_none() && self.source.is_done()
    }
}

/// Reads block ids.
pub(crate) struct BlockReader {
    tokens: Tokens<BLOCK_RUN_BITS>,
    literals: Source,
    successors: Successors,
}

impl BlockReader {
    /// # Errors
    /// The tokens are malformed.
    pub(crate) fn new(tokens: Vec<u8>, literals: Vec<u8>) -> Result<Self, Fault> {
        Ok(Self {
            tokens: Tokens::new(tokens)?,
            literals: Source::new(literals),
            successors: Successors::new(),
        })
    }

    /// The next block, if history predicts it rightly.
    #[inline(always)]
    pub(crate) fn hit(&mut self) -> Option<u32> {
        if self.tokens.run == 0 {
            return None;
        }
        self.tokens.run -= 1;
        let id = self.successors.predict();
        self.successors.enter(id);
        Some(id)
    }

    /// The block that follows `current`, where history predicts it wrongly. There is
    /// an entry in `followers` for each block. `named` hears of every block that is
    /// named outright, as each but block 0 is at its first execution.
    ///
    /// # Errors
    /// The sections are malformed.
    pub(crate) fn surprise(
        &mut self,
        current: u32,
        followers: &mut [Followers],
        named: impl FnOnce(u32),
    ) -> Result<u32, Fault> {
        let nr_blocks = followers.len();
        let mut followers = followers.get_mut(current as usize);
        let seen = followers.as_deref().copied().unwrap_or_default();
        let id = match self.tokens.end_run()? {
            which @ (LAST_SUCCESSOR | OLDER_SUCCESSOR) => seen.get(which),
            LITERAL => {
                let step = self.literals.varint().ok_or(Fault::LiteralsEnd)?;
                let id = u64::from(current).wrapping_add(unzigzag48(step));
                let id = u32::try_from(id & ADDR_MASK).map_err(|_| Fault::UnknownBlock)?;
                if id as usize >= nr_blocks {
                    return Err(Fault::UnknownBlock);
                }
                named(id);
                id
            }
            _ => return Err(Fault::UnknownToken),
        };
        if let Some(followers) = &mut followers {
            followers.learn(id);
        }
        self.successors.missed(id);
        self.successors.enter(id);
        Ok(id)
    }

    /// Gives the memory back.
    pub(crate) fn into_bytes(self) -> [Vec<u8>; 2] {
        [self.tokens.into_bytes(), self.literals.into_bytes()]
    }

    /// # Errors
    /// Something is left over.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        match self.tokens.is_done() && self.literals.is_done() {
            true => Ok(()),
            false => Err(Fault::BlocksLeft),
        }
    }
}

/// Reads addresses.
pub(crate) struct AddressReader {
    tokens: Tokens<ADDR_RUN_BITS>,
    residuals: Source,
    context: Context,
    slots: Slots,
    /// Why an address could not be read.
    fault: Fault,
}

/// What changes with every address: copied out of the reader while many are read,
/// so that it stays in registers.
#[derive(Clone, Copy)]
pub(crate) struct AddressState {
    /// Favourites that are right before the next one that is wrong.
    run: u64,
    context: Context,
}

impl AddressReader {
    /// # Errors
    /// The tokens are malformed.
    pub(crate) fn new(tokens: Vec<u8>, residuals: Vec<u8>) -> Result<Self, Fault> {
        Ok(Self {
            tokens: Tokens::new(tokens)?,
            residuals: Source::new(residuals),
            context: Context::default(),
            slots: Slots::default(),
            fault: Fault::TokensEnd,
        })
    }

    /// The state, for [`Self::next_with`]. [`Self::put`] must bring it back.
    #[inline(always)]
    pub(crate) fn take(&self) -> AddressState {
        AddressState {
            run: self.tokens.run,
            context: self.context,
        }
    }

    /// Ends the use of a state.
    #[inline(always)]
    pub(crate) fn put(&mut self, state: AddressState) {
        self.tokens.run = state.run;
        self.context = state.context;
    }

    /// The next address, accessed by this site.
    ///
    /// # Errors
    /// The sections are malformed.
    pub(crate) fn next(&mut self, site: &mut Site) -> Result<u64, Fault> {
        let mut state = self.take();
        let addr = self.next_with(&mut state, site)?;
        self.put(state);
        Ok(addr)
    }

    /// As [`Self::next`], with the state in the caller's hands.
    ///
    /// # Errors
    /// The sections are malformed.
    #[inline(always)]
    pub(crate) fn next_with(
        &mut self,
        state: &mut AddressState,
        site: &mut Site,
    ) -> Result<u64, Fault> {
        let addr = if state.run > 0 {
            state.run -= 1;
            state.context.predict(&self.slots, site, site.favourite)
        } else {
            let addr = self.surprise(state.context, site).ok_or(self.fault)?;
            state.run = self.tokens.run;
            addr
        };
        state.context.learn(&mut self.slots, site, addr);
        Ok(canonical(addr))
    }

    /// The address at the end of a run; `None`, with `fault` set, if there is none.
    /// An `Option` goes through registers, a `Result` does not.
    #[inline(never)]
    fn surprise(&mut self, context: Context, site: &mut Site) -> Option<u64> {
        let found = self.end_run(context, site);
        if let Err(fault) = found {
            self.fault = fault;
        }
        found.ok()
    }

    #[inline(always)]
    fn end_run(&mut self, context: Context, site: &mut Site) -> Result<u64, Fault> {
        let code = self.tokens.end_run()?;
        let addr = if code < RESIDUAL {
            site.favourite = code;
            context.predict(&self.slots, site, code)
        } else if code < 2 * RESIDUAL {
            let residual = self.residuals.varint().ok_or(Fault::ResidualsEnd)?;
            let guess = context.predict(&self.slots, site, code - RESIDUAL);
            guess.wrapping_add(unzigzag48(residual))
        } else {
            return Err(Fault::UnknownToken);
        };
        site.missed(addr);
        Ok(addr)
    }

    /// Gives the memory back.
    pub(crate) fn into_bytes(self) -> [Vec<u8>; 2] {
        [self.tokens.into_bytes(), self.residuals.into_bytes()]
    }

    /// # Errors
    /// Something is left over.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        match self.tokens.is_done() && self.residuals.is_done() {
            true => Ok(()),
            false => Err(Fault::AddressesLeft),
        }
    }
}

/// Reads which executions are irregular, and how.
pub(crate) struct IrregularReader {
    source: Source,
    /// Regular executions before the next irregular one.
    regular: u64,
    /// There is no next irregular one.
    ended: bool,
}

impl IrregularReader {
    /// # Errors
    /// The section is malformed.
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self, Fault> {
        let mut reader = Self {
            source: Source::new(bytes),
            regular: 0,
            ended: false,
        };
        reader.load()?;
        Ok(reader)
    }

    fn load(&mut self) -> Result<(), Fault> {
        self.ended = self.source.is_done();
        self.regular = match self.ended {
            true => u64::MAX,
            false => self.source.varint().ok_or(Fault::CutIrregular)?,
        };
        Ok(())
    }

    /// Executions before the next irregular one.
    #[inline]
    pub(crate) fn regular(&self) -> u64 {
        self.regular
    }

    /// Passes over regular executions, at most [`Self::regular`].
    #[inline]
    pub(crate) fn pass(&mut self, executions: u64) {
        self.regular -= executions;
    }

    /// Steps over one execution: is it irregular? Then [`Self::read`] must follow.
    #[inline]
    pub(crate) fn step(&mut self) -> bool {
        if self.regular == 0 {
            return true;
        }
        self.regular -= 1;
        false
    }

    /// Reads the access indices of an irregular execution of a block with this
    /// many accesses; at most `limit` of them.
    ///
    /// # Errors
    /// The section is malformed.
    pub(crate) fn read(
        &mut self,
        accesses: u16,
        limit: usize,
        indices: &mut Vec<u16>,
    ) -> Result<(), Fault> {
        indices.clear();
        let count = self.source.varint().ok_or(Fault::CutIrregular)?;
        if count > limit as u64 {
            return Err(Fault::TooManyRefs);
        }
        let mut expected = 0u64;
        for _ in 0..count {
            let step = unzigzag48(self.source.varint().ok_or(Fault::CutIrregular)?);
            let index = expected.wrapping_add(step) & ADDR_MASK;
            if index >= accesses.into() {
                return Err(Fault::UnknownAccess);
            }
            indices.push(index as u16);
            expected = index + 1;
        }
        self.load()
    }

    /// Gives the memory back.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.source.into_bytes()
    }

    /// # Errors
    /// Something is left over.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        match self.ended {
            true => Ok(()),
            false => Err(Fault::IrregularLeft),
        }
    }
}

/// An event with its place in the chunk: after `blocks` executions have begun and
/// `refs` references of the last of them were made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    pub(crate) blocks: u32,
    pub(crate) refs: u32,
    pub(crate) event: Event,
}

/// Reads the event section of a chunk with this many events and executions.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn events(bytes: Vec<u8>, count: u32, limit: u32) -> Result<Vec<Placed>, String> {
    let mut source = Source::new(bytes);
    let mut events = Vec::new();
    let mut blocks = 0u32;
    for i in 0..count {
        let cut = || format!("event {i} is cut");
        let step = source.varint().ok_or_else(cut)?;
        let refs = source.varint().ok_or_else(cut)?;
        blocks = u32::try_from(step)
            .ok()
            .and_then(|s| blocks.checked_add(s))
            .filter(|&b| b <= limit)
            .ok_or_else(|| format!("event {i} lies beyond the last execution"))?;
        let refs = u32::try_from(refs).map_err(|_| format!("event {i}: {refs} references"))?;
        let rest = source.rest();
        let (event, after) =
            postcard::take_from_bytes::<Event>(rest).map_err(|e| format!("event {i}: {e}"))?;
        let used = rest.len() - after.len();
        source.skip(used);
        events.push(Placed {
            blocks,
            refs,
            event,
        });
    }
    match source.is_done() {
        true => Ok(events),
        false => Err(format!("bytes after the last of {count} events")),
    }
}
