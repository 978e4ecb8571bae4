//! A chunk being decoded: its executions, one after the other.

use std::sync::Arc;

use super::{
    compiled::Dictionary,
    decode::{AddressReader, BlockReader, Fault, IrregularReader, Placed, section},
    error::ReadError,
    file::ChunkEntry,
    model::{Event, Raw},
    predict::{BlockState, Site},
    reader::Recording,
    record::Layout,
};

/// Predictor states of a process's blocks and sites, and which of them are in
/// use. Made once per stream and put back after each chunk.
pub(crate) struct Tables {
    pub(crate) blocks: Vec<BlockState>,
    pub(crate) sites: Vec<Site>,
    touched: Vec<u32>,
}

impl Tables {
    pub(crate) fn new(dictionary: &Dictionary) -> Self {
        Self {
            blocks: dictionary.block_states.clone(),
            sites: dictionary.sites.clone(),
            touched: Vec::new(),
        }
    }

    /// Puts everything back to the start of a chunk.
    pub(crate) fn reset(&mut self) {
        for id in self.touched.drain(..) {
            let block = &mut self.blocks[id as usize];
            block.reset();
            let first = block.first_site as usize;
            self.sites[first..first + usize::from(block.accesses)]
                .iter_mut()
                .for_each(Site::reset);
        }
    }

    /// Notes that a block is in use; returns its instructions and accesses.
    #[inline]
    fn touch(&mut self, id: u32) -> (u16, u16) {
        let block = &mut self.blocks[id as usize];
        if !block.seen {
            block.seen = true;
            self.touched.push(id);
        }
        (block.instrs, block.accesses)
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

/// The readers of one chunk, and what is left of it.
pub(crate) struct ChunkReader {
    pub(crate) entry: ChunkEntry,
    blocks: BlockReader,
    irregular: IrregularReader,
    addresses: AddressReader,
    /// Access indices of the irregular execution.
    pub(crate) indices: Vec<u16>,
    pub(crate) blocks_left: u32,
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
        )?;
        let fault = |fault: Fault| data.corrupt(entry.offset, fault.to_string());
        Ok(Self {
            entry: *entry,
            blocks: BlockReader::new(tokens, literals).map_err(fault)?,
            irregular: IrregularReader::new(irregular).map_err(fault)?,
            addresses: AddressReader::new(addr_tokens, residuals).map_err(fault)?,
            indices: Vec::new(),
            blocks_left: entry.blocks,
            refs_left: entry.refs,
            instrs_left: entry.instrs,
        })
    }

    /// The next execution: its block and how many references it makes.
    /// [`Self::address`] must then be called for each of them.
    ///
    /// # Errors
    /// The chunk is malformed.
    #[inline]
    pub(crate) fn execution(&mut self, tables: &mut Tables) -> Result<(u32, Shape, u32), Fault> {
        let id = self.blocks.next(&mut tables.blocks)?;
        let (instrs, accesses) = tables.touch(id);
        self.blocks_left -= 1;
        let instrs = u64::from(instrs);
        if instrs > self.instrs_left {
            return Err(Fault::TooManyInstrs);
        }
        self.instrs_left -= instrs;
        let (shape, refs) = match self.irregular.step() {
            false => (Shape::Regular, u32::from(accesses)),
            true => {
                let limit = self.refs_left as usize;
                self.irregular.read(accesses, limit, &mut self.indices)?;
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

    /// After the last execution: is everything read, and as much as the header
    /// says?
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        if self.refs_left != 0 || self.instrs_left != 0 {
            return Err(Fault::TooFew);
        }
        self.blocks.finish()?;
        self.irregular.finish()?;
        self.addresses.finish()
    }
}

/// Reads only the blocks of a chunk.
pub(crate) struct BlockWalk {
    reader: BlockReader,
    left: u32,
}

impl BlockWalk {
    /// # Errors
    /// The chunk is damaged.
    pub(crate) fn open(recording: &Recording, entry: &ChunkEntry) -> Result<Self, ReadError> {
        let layout = recording.chunk_layout(entry)?;
        let data = &recording.0.data;
        let wanted = [section::BLOCK_TOKENS, section::LITERALS];
        let [tokens, literals] = data.sections(entry.offset, &layout, wanted)?;
        let reader = BlockReader::new(tokens, literals);
        Ok(Self {
            reader: reader.map_err(|fault| data.corrupt(entry.offset, fault.to_string()))?,
            left: entry.blocks,
        })
    }

    /// The next block, or `None` at the end.
    ///
    /// # Errors
    /// The chunk is malformed.
    #[inline]
    pub(crate) fn next(&mut self, tables: &mut Tables) -> Result<Option<u32>, Fault> {
        if self.left == 0 {
            self.reader.finish()?;
            return Ok(None);
        }
        self.left -= 1;
        let id = self.reader.next(&mut tables.blocks)?;
        tables.touch(id);
        Ok(Some(id))
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
        let mut reader = ChunkReader::open(self, entry, &layout)?;
        let mut tables = Tables::new(&dictionary);
        raw_chunk(&mut reader, &mut tables, events)
            .map_err(|fault| self.0.data.corrupt(entry.offset, fault.to_string()))
    }
}

/// Raw entries, and events with the raw index before which they happened.
pub type RawChunk = (Vec<Raw>, Vec<(usize, Event)>);

fn raw_chunk(
    reader: &mut ChunkReader,
    tables: &mut Tables,
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
        if reader.blocks_left == 0 {
            break;
        }
        let (id, shape, refs) = reader.execution(tables)?;
        last_start = raw.len();
        raw.push(Raw::block(id));
        let first = tables.blocks[id as usize].first_site as usize;
        for k in 0..refs as usize {
            let index = match shape {
                Shape::Regular => k as u16,
                Shape::Irregular => reader.indices[k],
            };
            let site = &mut tables.sites[first + usize::from(index)];
            raw.push(Raw::access(index, reader.address(site)?));
        }
        blocks += 1;
    }
    reader.finish()?;
    Ok((raw, placed))
}
