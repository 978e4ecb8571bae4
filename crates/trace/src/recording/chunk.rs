//! A chunk being decoded: its executions, one after the other.

use std::sync::Arc;

use super::{
    compiled::{Block, Cell, Dictionary},
    data::Unpacker,
    decode::{AddressReader, BlockReader, Fault, IrregularReader, Placed, section},
    error::ReadError,
    file::ChunkEntry,
    model::{Event, Raw},
    predict::{Followers, NO_BLOCK, Site},
    reader::Recording,
    record::Layout,
};

/// What is learned of a process's blocks and sites, and which of them are in use.
/// Made once per stream and put back after each chunk.
pub(crate) struct Tables {
    pub(crate) cells: Vec<Cell>,
    followers: Vec<Followers>,
    /// Blocks in use.
    named: Vec<u32>,
    /// By block: is it among them?
    noted: Vec<bool>,
}

impl Tables {
    pub(crate) fn new(dictionary: &Dictionary) -> Self {
        Self {
            cells: dictionary.cells.clone(),
            followers: vec![Followers::default(); dictionary.blocks.len()],
            named: Vec::new(),
            noted: vec![false; dictionary.blocks.len()],
        }
    }

    /// Puts everything back to the start of a chunk. `dictionary` is the one that
    /// they were made for.
    pub(crate) fn reset(&mut self, dictionary: &Dictionary) {
        // Block 0 is never named before it is executed: predictors begin with it.
        for id in self.named.drain(..).chain([0]) {
            let Some(block) = dictionary.blocks.get(id as usize) else {
                continue;
            };
            self.followers[id as usize] = Followers::default();
            self.noted[id as usize] = false;
            let first = block.first_access as usize;
            self.cells[first..first + usize::from(block.accesses)]
                .iter_mut()
                .for_each(|c| c.site.reset());
        }
    }
}

/// How the accesses of an execution are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Exactly those of the definition.
    Regular,
    /// Those of [`ChunkReader::indices`].
    Irregular,
}

/// The block of the next execution, and what reads those after it.
pub(crate) struct Ahead {
    reader: BlockReader,
    /// Block of the next execution; [`NO_BLOCK`] before [`Self::begin`] and if it
    /// could not be read. Of no meaning if none is left.
    next: u32,
    /// Executions that are left, the next one included.
    left: u32,
    /// Why the next one could not be read.
    fault: Option<Fault>,
}

impl Ahead {
    fn new(reader: BlockReader, blocks: u32) -> Self {
        Self {
            reader,
            next: NO_BLOCK,
            left: blocks,
            fault: None,
        }
    }

    /// Reads the first block of the chunk.
    ///
    /// # Errors
    /// The next block cannot be read because the sections are malformed.
    #[inline]
    fn begin(&mut self, tables: &mut Tables) -> Result<(), Fault> {
        if self.next == NO_BLOCK && self.fault.is_none() {
            match tables.followers.is_empty() {
                true => self.fault = Some(Fault::UnknownBlock),
                false => self.read(tables, self.left),
            }
        }
        self.fault.map_or(Ok(()), Err)
    }

    /// The block of the next execution.
    #[inline(always)]
    pub(crate) fn block<'a>(&self, dictionary: &'a Dictionary) -> Option<&'a Block> {
        dictionary.blocks.get(self.next as usize)
    }

    /// Reads the block after this one; `left` says how many are left without this
    /// one.
    #[inline(always)]
    pub(crate) fn read(&mut self, tables: &mut Tables, left: u32) {
        match self.reader.hit() {
            Some(id) => self.next = id,
            None if left > 0 => self.surprise(tables),
            None => {}
        }
    }

    #[inline(never)]
    fn surprise(&mut self, tables: &mut Tables) {
        let Tables {
            followers,
            named,
            noted,
            ..
        } = tables;
        let note = |id: u32| {
            if !std::mem::replace(&mut noted[id as usize], true) {
                named.push(id);
            }
        };
        match self.reader.surprise(self.next, followers, note) {
            Ok(id) => self.next = id,
            Err(fault) => {
                self.next = NO_BLOCK;
                self.fault = Some(fault);
            }
        }
    }

    /// The block of the next execution, which is then done with.
    ///
    /// # Errors
    /// There is none because the sections are malformed.
    #[inline]
    fn pop(&mut self, tables: &mut Tables) -> Result<u32, Fault> {
        self.begin(tables)?;
        let id = self.next;
        self.left -= 1;
        self.read(tables, self.left);
        Ok(id)
    }
}

/// Regular executions that come next.
pub(crate) struct Regular<'a> {
    /// How many.
    pub(crate) most: usize,
    /// How many are left in the chunk, of any shape.
    pub(crate) left: u32,
    pub(crate) ahead: &'a mut Ahead,
    pub(crate) addresses: &'a mut AddressReader,
}

/// The readers of one chunk, and what is left of it.
pub(crate) struct ChunkReader {
    pub(crate) entry: ChunkEntry,
    ahead: Ahead,
    irregular: IrregularReader,
    pub(crate) addresses: AddressReader,
    /// Access indices of the irregular execution.
    pub(crate) indices: Vec<u16>,
    refs_left: u32,
    instrs_left: u64,
}

impl ChunkReader {
    /// Reads the sections of a chunk.
    ///
    /// # Errors
    /// The chunk is damaged.
    pub(crate) fn open(
        recording: &Recording,
        entry: &ChunkEntry,
        layout: &Layout,
        unpacker: &mut Unpacker,
    ) -> Result<Self, ReadError> {
        let data = &recording.0.data;
        let [tokens, literals, irregular, addr_tokens, residuals] = data.sections(
            entry.offset,
            layout,
            [
                section::BLOCK_TOKENS,
                section::LITERALS,
                section::IRREGULAR,
                section::ADDR_TOKENS,
                section::RESIDUALS,
            ],
            unpacker,
        )?;
        let fault = |fault: Fault| data.corrupt(entry.offset, fault.to_string());
        Ok(Self {
            entry: *entry,
            ahead: Ahead::new(
                BlockReader::new(tokens, literals).map_err(fault)?,
                entry.blocks,
            ),
            irregular: IrregularReader::new(irregular).map_err(fault)?,
            addresses: AddressReader::new(addr_tokens, residuals).map_err(fault)?,
            indices: Vec::new(),
            refs_left: entry.refs,
            instrs_left: entry.instrs,
        })
    }

    /// Executions that are left.
    #[inline]
    pub(crate) fn blocks_left(&self) -> u32 {
        self.ahead.left
    }

    /// The next executions, as far as they are regular. [`Self::pass`] must then be
    /// called.
    ///
    /// # Errors
    /// The chunk is malformed.
    #[inline]
    pub(crate) fn regular(&mut self, tables: &mut Tables) -> Result<Regular<'_>, Fault> {
        self.ahead.begin(tables)?;
        let most = self.irregular.regular().min(self.ahead.left.into());
        Ok(Regular {
            most: most as usize,
            left: self.ahead.left,
            ahead: &mut self.ahead,
            addresses: &mut self.addresses,
        })
    }

    /// So many regular executions were made ([`Ahead::read`] was called in each), of
    /// so many references and instructions.
    ///
    /// # Errors
    /// The chunk does not have as many.
    #[inline]
    pub(crate) fn pass(&mut self, blocks: usize, refs: usize, instrs: u64) -> Result<(), Fault> {
        self.ahead.left -= blocks as u32;
        self.irregular.pass(blocks as u64);
        self.refs_left = (self.refs_left.checked_sub(refs as u32)).ok_or(Fault::TooManyRefs)?;
        let left = self.instrs_left.checked_sub(instrs);
        self.instrs_left = left.ok_or(Fault::TooManyInstrs)?;
        Ok(())
    }

    /// The next execution: its block and how many references it makes.
    /// [`Self::address`] must then be called for each of them.
    ///
    /// # Errors
    /// The chunk is malformed.
    pub(crate) fn execution(
        &mut self,
        tables: &mut Tables,
        dictionary: &Dictionary,
    ) -> Result<(u32, Shape, u32), Fault> {
        let id = self.ahead.pop(tables)?;
        let block = dictionary.blocks.get(id as usize);
        let block = block.ok_or(Fault::UnknownBlock)?;
        let instrs = u64::from(block.instrs);
        if instrs > self.instrs_left {
            return Err(Fault::TooManyInstrs);
        }
        self.instrs_left -= instrs;
        let (shape, refs) = match self.irregular.step() {
            false => (Shape::Regular, u32::from(block.accesses)),
            true => {
                let limit = self.refs_left as usize;
                self.irregular
                    .read(block.accesses, limit, &mut self.indices)?;
                (Shape::Irregular, self.indices.len() as u32)
            }
        };
        if refs > self.refs_left {
            return Err(Fault::TooManyRefs);
        }
        self.refs_left -= refs;
        Ok((id, shape, refs))
    }

    /// The next address, made by this site.
    ///
    /// # Errors
    /// The chunk is malformed.
    #[inline]
    pub(crate) fn address(&mut self, site: &mut Site) -> Result<u64, Fault> {
        self.addresses.next(site)
    }

    /// Gives the memory of the sections back.
    pub(crate) fn give_back(self, unpacker: &mut Unpacker) {
        unpacker.take_back(self.ahead.reader.into_bytes());
        unpacker.take_back(self.addresses.into_bytes());
        unpacker.take_back([self.irregular.into_bytes()]);
    }

    /// After the last execution: is everything read, and as much as the header
    /// says?
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        if self.refs_left != 0 || self.instrs_left != 0 {
            return Err(Fault::TooFew);
        }
        self.ahead.reader.finish()?;
        self.irregular.finish()?;
        self.addresses.finish()
    }
}

/// Reads only the blocks of a chunk.
pub(crate) struct BlockWalk(Ahead);

impl BlockWalk {
    /// # Errors
    /// The chunk is damaged.
    pub(crate) fn open(recording: &Recording, entry: &ChunkEntry) -> Result<Self, ReadError> {
        let layout = recording.chunk_layout(entry)?;
        let data = &recording.0.data;
        let wanted = [section::BLOCK_TOKENS, section::LITERALS];
        let [tokens, literals] =
            data.sections(entry.offset, &layout, wanted, &mut Unpacker::default())?;
        let reader = BlockReader::new(tokens, literals)
            .map_err(|fault| data.corrupt(entry.offset, fault.to_string()))?;
        Ok(Self(Ahead::new(reader, entry.blocks)))
    }

    /// The next block, or `None` at the end.
    ///
    /// # Errors
    /// The chunk is malformed.
    #[inline]
    pub(crate) fn next(&mut self, tables: &mut Tables) -> Result<Option<u32>, Fault> {
        let ahead = &mut self.0;
        if ahead.left == 0 {
            ahead.reader.finish()?;
            return Ok(None);
        }
        ahead.pop(tables).map(Some)
    }
}

impl Recording {
    /// A chunk (an index into [`Index::chunks`](super::Index::chunks)) as raw
    /// entries and placed events, as they were given to the encoder but for the
    /// joining of pieces. For inspection; replay goes through
    /// [`Recording::source`].
    ///
    /// # Errors
    /// There is no such chunk, or it is damaged.
    pub fn raw_chunk(&self, chunk: usize) -> Result<RawChunk, ReadError> {
        let (entry, layout) = self.chunk(chunk)?;
        let dictionary: Arc<Dictionary> = self.dictionary(entry.process)?;
        let events = self.placed_events(entry, &layout)?;
        let mut reader = ChunkReader::open(self, entry, &layout, &mut Unpacker::default())?;
        let mut tables = Tables::new(&dictionary);
        raw_chunk(&mut reader, &mut tables, &dictionary, events)
            .map_err(|fault| self.0.data.corrupt(entry.offset, fault.to_string()))
    }
}

/// Raw entries, and events with the raw index before which they happened.
pub type RawChunk = (Vec<Raw>, Vec<(usize, Event)>);

fn raw_chunk(
    reader: &mut ChunkReader,
    tables: &mut Tables,
    dictionary: &Dictionary,
    events: Vec<Placed>,
) -> Result<RawChunk, Fault> {
    let mut raw = Vec::new();
    let mut placed = Vec::new();
    let mut events = events.into_iter().peekable();
    let mut blocks = 0;
    let mut last_start = 0;
    loop {
        while let Some(p) = events.next_if(|p| p.blocks == blocks) {
            // The entry of the block itself lies before its references.
            let at = match blocks {
                0 => 0,
                _ => last_start + 1 + p.refs as usize,
            };
            placed.push((at.min(raw.len()), p.event));
        }
        if reader.blocks_left() == 0 {
            break;
        }
        let (id, shape, refs) = reader.execution(tables, dictionary)?;
        last_start = raw.len();
        raw.push(Raw::block(id));
        let first = dictionary.blocks[id as usize].first_access as usize;
        for k in 0..refs as usize {
            let index = match shape {
                Shape::Regular => k as u16,
                Shape::Irregular => reader.indices[k],
            };
            let site = &mut tables.cells[first + usize::from(index)].site;
            raw.push(Raw::access(index, reader.address(site)?));
        }
        blocks += 1;
    }
    reader.finish()?;
    Ok((raw, placed))
}
