//! From raw entries to chunk records.
//!
//! A chunk has seven sections:
//!
//! | section | content |
//! |---|---|
//! | block tokens | runs of predicted blocks and what ended them |
//! | block literals | ids that no predictor knew, as steps |
//! | irregular | executions whose accesses are not exactly those of the definition |
//! | address tokens | runs of favourite predictions and what ended them |
//! | residuals | distances from the best prediction |
//! | events | place and content |
//! | pages | the page-touch index |
//!
//! A token is one byte: code above, length of the run before it below; a full
//! run field (all ones) means that a varint with the rest follows. The last run
//! of a chunk has no token: the header's counts end it.
//!
//! *Irregular*: for each such execution, the number of regular ones since the
//! last, the number of references, and for each reference its access index less
//! the one expected (previous + 1), zigzag. Its addresses go through the ordinary
//! address stream, so nothing is lost and little is paid.

use super::{
    dictionary::BlockLookup,
    emit::{EventCursor, Tokens, check_events},
    error::EncodeError,
    model::{AccessDef, AccessKind, Entry, Event, Raw},
    pages::{self, PageSet},
    predict::*,
    record::{Composer, RecordHeader, RecordKind},
    varint::{Sink, zigzag48},
};

/// Most references in a chunk.
pub const MAX_CHUNK_REFS: usize = 1 << 20;
/// Most block executions in a chunk.
pub const MAX_CHUNK_BLOCKS: usize = 1 << 22;

/// What [`ChunkEncoder::encode`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkSummary {
    /// Instructions executed.
    pub instrs: u64,
    /// References after joining.
    pub refs: u32,
    /// Block executions.
    pub blocks: u32,
    /// Bytes appended.
    pub bytes: usize,
}

/// What the encoder knows of one block.
#[derive(Clone, Copy, Default)]
struct BlockState {
    first_site: u32,
    accesses: u16,
    instrs: u16,
    /// Was executed in this chunk.
    seen: bool,
    /// Its definition was looked up.
    known: bool,
}

/// What the encoder knows of one access of a block.
struct AccessState {
    site: Site,
    /// The definition's size in bytes.
    size: u8,
    /// Flags of the page-touch index: what this access does to its page.
    touch: u8,
}

impl AccessState {
    fn new(def: &AccessDef) -> Self {
        Self {
            site: Site::new(def),
            size: def.size,
            touch: pages::touch(def.kind),
        }
    }
}

/// Encodes one thread's stream, chunk by chunk.
///
/// It starts no thread and, once its buffers have grown, allocates nothing but
/// what `out` needs.
pub struct ChunkEncoder {
    process: u32,
    thread: u32,
    pid: u32,
    tid: u32,
    next_instr: u64,
    next_ref: u64,
    blocks: Vec<BlockState>,
    followers: Vec<Followers>,
    sites: Vec<AccessState>,
    touched: Vec<u32>,
    successors: Successors,
    /// Block that was executed last, or [`NO_BLOCK`].
    current: u32,
    context: Context,
    slots: Slots,
    block_tokens: Tokens<BLOCK_RUN_BITS>,
    literals: Sink,
    irregular: Sink,
    since_irregular: u64,
    addr_tokens: Tokens<ADDR_RUN_BITS>,
    residuals: Sink,
    events: Sink,
    pages: PageSet,
    page_list: Sink,
    sorted: Vec<u64>,
    joined: Vec<(u16, u64)>,
    count: ChunkSummary,
    composer: Composer,
}

impl ChunkEncoder {
    /// An encoder for the thread that has these numbers in the recording and
    /// these ids in Linux. After a fork the child makes a new one.
    ///
    /// # Errors
    /// The compressor has no memory.
    pub fn new(process: u32, thread: u32, pid: u32, tid: u32) -> Result<Self, EncodeError> {
        Ok(Self {
            process,
            thread,
            pid,
            tid,
            next_instr: 0,
            next_ref: 0,
            blocks: Vec::new(),
            followers: Vec::new(),
            sites: Vec::new(),
            touched: Vec::new(),
            successors: Successors::new(),
            current: NO_BLOCK,
            context: Context::default(),
            slots: Slots::default(),
            block_tokens: Tokens::new(),
            literals: Sink::default(),
            irregular: Sink::default(),
            since_irregular: 0,
            addr_tokens: Tokens::new(),
            residuals: Sink::default(),
            events: Sink::default(),
            pages: PageSet::new(),
            page_list: Sink::default(),
            sorted: Vec::new(),
            joined: Vec::new(),
            count: ChunkSummary::default(),
            composer: Composer::new()?,
        })
    }

    /// Lets the next chunk begin after so many instructions and references of the
    /// thread, which other encoders have written.
    #[must_use]
    pub fn resume_at(mut self, instrs: u64, refs: u64) -> Self {
        (self.next_instr, self.next_ref) = (instrs, refs);
        self
    }

    /// Instructions and references of the thread so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.next_instr, self.next_ref)
    }

    /// Appends one chunk record to `out`.
    ///
    /// `raw` begins with a block entry and holds whole executions. Each event
    /// comes with the index of the raw entry before which it happened, in rising
    /// order; `raw.len()` places it at the end. An event between two accesses of
    /// an execution stays between them. A raw stream of at most
    /// [`MAX_CHUNK_REFS`] entries always fits.
    ///
    /// Consecutive entries of the same access are pieces of one reference, and
    /// joined, if they lie inside the definition's size and rise (or, for an
    /// [`AccessKind::Update`], lie anywhere inside it).
    ///
    /// # Errors
    /// The stream contradicts the dictionary or is too long. `out` is then
    /// unchanged, and the thread's counts too.
    pub fn encode(
        &mut self,
        dict: &(impl BlockLookup + ?Sized),
        raw: &[Raw],
        events: &[(usize, Event)],
        out: &mut Vec<u8>,
    ) -> Result<ChunkSummary, EncodeError> {
        check_events(raw, events)?;
        let start = out.len();
        let result = self
            .encode_stream(dict, raw, events)
            .and_then(|()| self.compose(events, out));
        self.reset();
        result?;
        let mut summary = std::mem::take(&mut self.count);
        summary.bytes = out.len() - start;
        self.next_instr = self.next_instr.saturating_add(summary.instrs);
        self.next_ref = self.next_ref.saturating_add(summary.refs.into());
        Ok(summary)
    }

    fn encode_stream(
        &mut self,
        dict: &(impl BlockLookup + ?Sized),
        raw: &[Raw],
        events: &[(usize, Event)],
    ) -> Result<(), EncodeError> {
        self.count = ChunkSummary::default();
        let mut events = EventCursor::new(events);
        let mut at = 0;
        while at < raw.len() {
            let Entry::Block(id) = raw[at].entry() else {
                return Err(EncodeError::NoBlock);
            };
            if at >= events.next {
                let refs = events.refs_of_last;
                events.write(at, self.count.blocks, refs, &mut self.events)?;
            }
            let state = self.enter(dict, id, at)?;
            let refs_before = self.count.refs;
            let end = at + 1 + usize::from(state.accesses);
            at = if is_regular(raw, at + 1, end) && end <= events.next {
                self.regular(&raw[at + 1..end], state.first_site as usize);
                end
            } else {
                self.general(raw, at, id, state, &mut events)?
            };
            if self.count.refs as usize > MAX_CHUNK_REFS {
                return Err(EncodeError::ChunkTooLarge {
                    what: "references",
                    allowed: MAX_CHUNK_REFS as u64,
                });
            }
            events.refs_of_last = self.count.refs - refs_before;
        }
        let refs_of_last = events.refs_of_last;
        events.write(raw.len(), self.count.blocks, refs_of_last, &mut self.events)
    }

    /// Encodes the block id and makes the block's state ready.
    #[inline]
    fn enter(
        &mut self,
        dict: &(impl BlockLookup + ?Sized),
        id: u32,
        at: usize,
    ) -> Result<BlockState, EncodeError> {
        let state = match self.blocks.get(id as usize) {
            Some(state) if state.seen => *state,
            _ => self.first_execution(dict, id, at)?,
        };
        if self.successors.predict() == id {
            self.block_tokens.run += 1;
        } else {
            self.mispredicted(id);
        }
        self.successors.enter(id);
        self.current = id;
        self.count.blocks += 1;
        self.count.instrs += u64::from(state.instrs);
        if self.count.blocks as usize > MAX_CHUNK_BLOCKS {
            return Err(EncodeError::ChunkTooLarge {
                what: "block executions",
                allowed: MAX_CHUNK_BLOCKS as u64,
            });
        }
        Ok(state)
    }

    fn mispredicted(&mut self, id: u32) {
        self.successors.missed(id);
        let mut followers = self.followers.get_mut(self.current as usize);
        let seen = followers.as_deref().copied().unwrap_or_default();
        if let Some(followers) = &mut followers {
            followers.learn(id);
        }
        let known = [LAST_SUCCESSOR, OLDER_SUCCESSOR]
            .into_iter()
            .find(|&which| seen.get(which) == id);
        if let Some(code) = known {
            return self.block_tokens.token(code);
        }
        self.block_tokens.token(LITERAL);
        let step = u64::from(id).wrapping_sub(self.current.into());
        self.literals.varint(zigzag48(step));
    }

    #[cold]
    fn first_execution(
        &mut self,
        dict: &(impl BlockLookup + ?Sized),
        id: u32,
        at: usize,
    ) -> Result<BlockState, EncodeError> {
        let unknown = EncodeError::UnknownBlock {
            entry: at,
            block: id,
        };
        let Some(def) = dict.block(id) else {
            return Err(unknown);
        };
        let index = id as usize;
        if index >= self.blocks.len() {
            self.blocks.resize(index + 1, BlockState::default());
            self.followers.resize(index + 1, Followers::default());
        }
        if !self.blocks[index].known {
            self.blocks[index] = BlockState {
                first_site: self.sites.len() as u32,
                accesses: def.accesses.len() as u16,
                instrs: def.instrs,
                seen: false,
                known: true,
            };
            self.sites.extend(def.accesses.iter().map(AccessState::new));
        }
        let code = def.addr & ADDR_MASK;
        let bytes = u64::from(def.bytes).min(ADDR_MASK + 1 - code);
        self.pages.touch_range(code, bytes, pages::FETCH);
        self.blocks[index].seen = true;
        self.touched.push(id);
        Ok(self.blocks[index])
    }

    /// Encodes an execution whose accesses are exactly those of the definition.
    #[inline]
    fn regular(&mut self, accesses: &[Raw], first_site: usize) {
        self.since_irregular += 1;
        self.count.refs += accesses.len() as u32;
        for (k, entry) in accesses.iter().enumerate() {
            self.address(first_site + k, entry.0);
        }
    }

    /// Encodes an address, of which the low 48 bits count.
    #[inline]
    fn address(&mut self, site: usize, addr: u64) {
        let addr = canonical(addr);
        let access = &mut self.sites[site];
        let site = &mut access.site;
        let last = site.last();
        let guess = self.context.predict(&self.slots, site, site.favourite);
        if canonical(guess) == addr {
            self.addr_tokens.run += 1;
        } else {
            let guesses =
                [0, 1, 2].map(|which| canonical(self.context.predict(&self.slots, site, which)));
            let code = surprise(&guesses, site, addr, &mut self.residuals);
            self.addr_tokens.token(code);
            site.missed(addr);
        }
        self.context.learn(&mut self.slots, site, addr);
        // A site that stays on its page has marked it before, unless its last
        // address is the 0 that it starts with.
        if (addr ^ last) >> piebald_units::PAGE_SHIFT != 0 || last == 0 {
            self.pages.touch(addr & ADDR_MASK, access.touch);
        }
        let beyond = addr.wrapping_add(u64::from(access.size) - 1);
        if (addr ^ beyond) >> piebald_units::PAGE_SHIFT != 0 {
            self.pages.touch(beyond & ADDR_MASK, access.touch);
        }
    }

    /// Encodes any execution: joins pieces, and escapes what does not fit.
    fn general(
        &mut self,
        raw: &[Raw],
        block_at: usize,
        id: u32,
        state: BlockState,
        events: &mut EventCursor<'_>,
    ) -> Result<usize, EncodeError> {
        let first_site = state.first_site as usize;
        self.joined.clear();
        let mut at = block_at + 1;
        while let Some(Entry::Access(index, addr)) = raw.get(at).map(|r| r.entry()) {
            if index >= state.accesses {
                return Err(EncodeError::UnknownAccess {
                    entry: at,
                    block: id,
                    index,
                    accesses: state.accesses.into(),
                });
            }
            if at >= events.next {
                let refs = self.joined.len() as u32;
                events.write(at, self.count.blocks, refs, &mut self.events)?;
            }
            let site = &self.sites[first_site + usize::from(index)];
            let piece = self.joined.last().is_some_and(|&(i, first)| {
                i == index && is_piece(addr.wrapping_sub(first) & ADDR_MASK, site)
            });
            if !piece {
                self.joined.push((index, addr));
            }
            at += 1;
        }
        let joined = std::mem::take(&mut self.joined);
        let expected = joined
            .iter()
            .enumerate()
            .all(|(k, a)| k == usize::from(a.0));
        if expected && joined.len() == usize::from(state.accesses) {
            self.since_irregular += 1;
        } else {
            self.escape(&joined);
        }
        self.count.refs += joined.len() as u32;
        for &(index, addr) in &joined {
            self.address(first_site + usize::from(index), addr);
        }
        self.joined = joined;
        Ok(at)
    }

    fn escape(&mut self, joined: &[(u16, u64)]) {
        self.irregular
            .varint(std::mem::take(&mut self.since_irregular));
        self.irregular.varint(joined.len() as u64);
        let mut expected = 0u64;
        for &(index, _) in joined {
            let step = u64::from(index).wrapping_sub(expected);
            self.irregular.varint(zigzag48(step));
            expected = u64::from(index) + 1;
        }
    }

    fn compose(&mut self, events: &[(usize, Event)], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.pages.drain(&mut self.sorted, &mut self.page_list);
        let header = RecordHeader {
            process: self.process,
            thread: self.thread,
            pid: self.pid,
            tid: self.tid,
            events: events.len() as u32,
            first_instr: self.next_instr,
            first_ref: self.next_ref,
            instrs: self.count.instrs,
            refs: self.count.refs,
            blocks: self.count.blocks,
            first_seq: events.iter().map(|e| e.1.seq).min().unwrap_or(0),
            last_seq: events.iter().map(|e| e.1.seq_end).max().unwrap_or(0),
            ..RecordHeader::empty(RecordKind::Chunk)
        };
        let sections = [
            self.block_tokens.out.as_slice(),
            self.literals.as_slice(),
            self.irregular.as_slice(),
            self.addr_tokens.out.as_slice(),
            self.residuals.as_slice(),
            self.events.as_slice(),
            self.page_list.as_slice(),
        ];
        self.composer.compose(&header, &sections, out)
    }

    /// Forgets everything that belongs to one chunk.
    fn reset(&mut self) {
        for id in self.touched.drain(..) {
            let block = &mut self.blocks[id as usize];
            block.seen = false;
            self.followers[id as usize] = Followers::default();
            let first = block.first_site as usize;
            self.sites[first..first + usize::from(block.accesses)]
                .iter_mut()
                .for_each(|a| a.site.reset());
        }
        self.successors.reset();
        self.current = NO_BLOCK;
        self.context = Context::default();
        self.slots = Slots::default();
        self.block_tokens.clear();
        self.addr_tokens.clear();
        self.since_irregular = 0;
        for sink in [
            &mut self.literals,
            &mut self.irregular,
            &mut self.residuals,
            &mut self.events,
            &mut self.page_list,
        ] {
            sink.clear();
        }
        self.pages.clear();
    }
}

/// Encodes an address that the favourite missed; returns the token's code and
/// makes a predictor that is right the favourite.
#[inline(never)]
fn surprise(guesses: &[u64; 3], site: &mut Site, addr: u64, residuals: &mut Sink) -> u8 {
    let mut best = (u64::MAX, 0);
    for (which, &guess) in (0..).zip(guesses) {
        if guess == addr {
            site.favourite = which;
            return EXACT + which;
        }
        let distance = zigzag48(addr.wrapping_sub(guess));
        if distance < best.0 {
            best = (distance, which);
        }
    }
    residuals.varint(best.0);
    RESIDUAL + best.1
}

/// Is an entry that lies this far after the first one of the same access a piece
/// of the same reference?
fn is_piece(distance: u64, access: &AccessState) -> bool {
    let update = access.touch == pages::touch(AccessKind::Update);
    distance < u64::from(access.size) && (distance > 0 || update)
}

/// Do entries `from..to` name accesses 0, 1, 2... and does a block entry or the
/// end follow?
#[inline]
fn is_regular(raw: &[Raw], from: usize, to: usize) -> bool {
    let Some(accesses) = raw.get(from..to) else {
        return false;
    };
    let ends = raw.get(to).is_none_or(|r| r.index() == Raw::NO_INDEX);
    ends && accesses
        .iter()
        .enumerate()
        .all(|(k, r)| usize::from(r.index()) == k)
}
