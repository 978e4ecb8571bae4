//! Opening a recording and reading its parts.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{
    analysis::Analysis,
    compiled::Dictionary,
    data::Data,
    decode::{self, Placed, section},
    dictionary::{self, Base},
    encode::{MAX_CHUNK_BLOCKS, MAX_CHUNK_REFS},
    error::{ReadError, how_to_repair},
    file::{ChunkEntry, FileHeader, Index},
    model::{BlockDef, Event},
    pages::{self, PageTouch},
    record::{Layout, RecordKind},
    scan::{self, Recovered},
};

/// A recording that is open for reading. Cheap to clone; clones share caches.
#[derive(Clone)]
pub struct Recording(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) data: Arc<Data>,
    header: FileHeader,
    index: Index,
    dictionaries: Mutex<HashMap<u32, Arc<Dictionary>>>,
    pub(crate) analysis: OnceLock<Arc<Analysis>>,
    digest: OnceLock<String>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording")
            .field("file", &self.0.data.name())
            .field("counts", &self.0.index.counts())
            .finish()
    }
}

impl Recording {
    /// Opens a finished file.
    ///
    /// # Errors
    /// It cannot be read, is no recording, is of another major version, was not
    /// finished ([`ReadError::NoFooter`]) or contradicts itself. Chunks are
    /// verified when they are read.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::finished(Data::open(path)?)
    }

    /// Opens a recording in memory; `name` stands for it in messages.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(bytes: Vec<u8>, name: &str) -> Result<Self, ReadError> {
        Self::finished(Data::memory(bytes, name))
    }

    /// Opens a file that was not finished, or whose index is damaged: finds and
    /// verifies every record, and passes over what is torn or damaged. Says what
    /// was lost. A thread that misses a chunk replays up to the gap and then
    /// fails there.
    ///
    /// # Errors
    /// It cannot be read, its header is damaged, or it is of another major
    /// version.
    pub fn recover(path: &Path) -> Result<(Self, Recovered), ReadError> {
        Self::scanned(Data::open(path)?)
    }

    /// As [`Self::recover`], in memory.
    ///
    /// # Errors
    /// As [`Self::recover`].
    pub fn recover_bytes(bytes: Vec<u8>, name: &str) -> Result<(Self, Recovered), ReadError> {
        Self::scanned(Data::memory(bytes, name))
    }

    fn finished(data: Data) -> Result<Self, ReadError> {
        let (header, first) = scan::header(&data)?;
        let index = scan::footer(&data, first)?;
        check_index(&data, &index)?;
        Ok(Self::new(Arc::new(data), header, index))
    }

    fn scanned(data: Data) -> Result<(Self, Recovered), ReadError> {
        let recovery = Self::recovered(data)?;
        Ok((recovery.recording, recovery.found))
    }

    /// As [`Self::recover`], with the header as the file has it.
    pub(super) fn recovery(path: &Path) -> Result<Recovery, ReadError> {
        Self::recovered(Data::open(path)?)
    }

    fn recovered(data: Data) -> Result<Recovery, ReadError> {
        let (header, first) = scan::header(&data)?;
        let (index, found) = scan::scan(&data, first, true)?;
        let told = FileHeader {
            counts: index.counts(),
            complete: header.complete && found.lost.is_empty(),
            ..header.clone()
        };
        Ok(Recovery {
            recording: Self::new(Arc::new(data), told, index),
            found,
            header,
        })
    }

    /// The same bytes with another index.
    pub(super) fn with_index(&self, index: Index) -> Self {
        Self::new(self.0.data.clone(), self.0.header.clone(), index)
    }

    fn new(data: Arc<Data>, header: FileHeader, index: Index) -> Self {
        Self(Arc::new(Inner {
            data,
            header,
            index,
            dictionaries: Mutex::default(),
            analysis: OnceLock::new(),
            digest: OnceLock::new(),
        }))
    }

    /// The sum of its bytes (BLAKE3, in hexadecimal). All of them are read when it is first asked
    /// for.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&self) -> Result<&str, ReadError> {
        if let Some(known) = self.0.digest.get() {
            return Ok(known);
        }
        let mut hasher = blake3::Hasher::new();
        self.0.data.each_part(|part| {
            hasher.update(part);
        })?;
        let digest = hasher.finalize().to_hex().to_string();
        Ok(self.0.digest.get_or_init(|| digest))
    }

    /// Its name in messages: the path it was opened by.
    pub fn name(&self) -> &str {
        self.0.data.name()
    }

    /// What the file says about itself.
    pub fn header(&self) -> &FileHeader {
        &self.0.header
    }

    /// Where everything is.
    pub fn index(&self) -> &Index {
        &self.0.index
    }

    /// Reads and verifies every record.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify(&self) -> Result<(), ReadError> {
        let data = &self.0.data;
        for dictionary in &self.0.index.dictionaries {
            let layout = data.layout_of(dictionary.offset, RecordKind::Dictionary)?;
            data.verify(dictionary.offset, &layout)?;
        }
        for chunk in &self.0.index.chunks {
            let layout = self.chunk_layout(chunk)?;
            data.verify(chunk.offset, &layout)?;
        }
        Ok(())
    }

    /// The pages that a chunk (an index into [`Index::chunks`]) touched, in
    /// rising order. Costs no decoding of addresses.
    ///
    /// # Errors
    /// There is no such chunk, or it is damaged.
    pub fn pages_touched(&self, chunk: usize) -> Result<Vec<PageTouch>, ReadError> {
        let (entry, layout) = self.chunk(chunk)?;
        let bytes = self.section(entry, &layout, section::PAGES)?;
        pages::read(bytes).ok_or_else(|| {
            let data = &self.0.data;
            data.corrupt(entry.offset, "the page-touch index is malformed")
        })
    }

    /// The events of a chunk (an index into [`Index::chunks`]), in order. Costs
    /// no decoding of blocks or addresses.
    ///
    /// # Errors
    /// There is no such chunk, or it is damaged.
    pub fn events(&self, chunk: usize) -> Result<Vec<Event>, ReadError> {
        let (entry, layout) = self.chunk(chunk)?;
        let placed = self.placed_events(entry, &layout)?;
        Ok(placed.into_iter().map(|p| p.event).collect())
    }

    pub(crate) fn chunk(&self, index: usize) -> Result<(&ChunkEntry, Layout), ReadError> {
        let chunks = &self.0.index.chunks;
        let Some(entry) = chunks.get(index) else {
            let what = format!("no chunk {index}; there are {}", chunks.len());
            return Err(self.0.data.corrupt(0, what));
        };
        Ok((entry, self.chunk_layout(entry)?))
    }

    /// Header and table of a chunk that is what the index says.
    pub(crate) fn chunk_layout(&self, entry: &ChunkEntry) -> Result<Layout, ReadError> {
        let data = &self.0.data;
        let layout = data.layout_of(entry.offset, RecordKind::Chunk)?;
        let found = ChunkEntry::new(entry.offset, layout.len as u64, &layout.header);
        if found != *entry {
            let what = format!(
                "the chunk is {} and the index says {}",
                told(&found),
                told(entry)
            );
            return Err(data.corrupt(entry.offset, what));
        }
        if layout.sections() != section::COUNT {
            let what = format!(
                "{} sections; a chunk has {}",
                layout.sections(),
                section::COUNT
            );
            return Err(data.corrupt(entry.offset + 17, what));
        }
        if entry.refs as usize > MAX_CHUNK_REFS || entry.blocks as usize > MAX_CHUNK_BLOCKS {
            let what = format!(
                "{} references and {} executions; at most {MAX_CHUNK_REFS} and {MAX_CHUNK_BLOCKS} are allowed",
                entry.refs, entry.blocks
            );
            return Err(data.corrupt(entry.offset + 72, what));
        }
        Ok(layout)
    }

    pub(crate) fn section(
        &self,
        entry: &ChunkEntry,
        layout: &Layout,
        index: usize,
    ) -> Result<Vec<u8>, ReadError> {
        self.0.data.section(entry.offset, layout, index)
    }

    pub(crate) fn placed_events(
        &self,
        entry: &ChunkEntry,
        layout: &Layout,
    ) -> Result<Vec<Placed>, ReadError> {
        let bytes = self.section(entry, layout, section::EVENTS)?;
        decode::events(bytes, entry.events, entry.blocks)
            .map_err(|what| self.0.data.corrupt(entry.offset, what))
    }

    /// The blocks of a process. Cached.
    ///
    /// # Errors
    /// A dictionary record is missing or damaged.
    pub fn dictionary(&self, process: u32) -> Result<Arc<Dictionary>, ReadError> {
        let cache = || {
            let cache = self.0.dictionaries.lock();
            cache.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(found) = cache().get(&process) {
            return Ok(found.clone());
        }
        let (defs, image) = self.definitions(process)?;
        let compiled = Dictionary::compile(&defs, image)
            .map_err(|what| self.0.data.corrupt(0, format!("process {process}: {what}")))?;
        let compiled = Arc::new(compiled);
        cache().insert(process, compiled.clone());
        Ok(compiled)
    }

    /// The block definitions of a process as they were recorded.
    ///
    /// # Errors
    /// As [`Self::dictionary`].
    pub fn block_defs(&self, process: u32) -> Result<Vec<BlockDef>, ReadError> {
        Ok(self.definitions(process)?.0)
    }

    /// The definitions, and the process at the root of the forks that led here.
    fn definitions(&self, process: u32) -> Result<(Vec<BlockDef>, u32), ReadError> {
        // From the process up to its oldest ancestor, then down again.
        let mut chain = vec![self.own_definitions(process)?];
        let mut image = process;
        while let Some(base) = chain.last().and_then(|own| own.base) {
            if chain.len() > self.0.index.dictionaries.len() {
                let what = format!("process {process} descends from itself");
                return Err(self.0.data.corrupt(chain[0].offset, what));
            }
            image = base.process;
            chain.push(self.own_definitions(image)?);
        }
        let mut all: Vec<BlockDef> = Vec::new();
        for own in chain.into_iter().rev() {
            let inherited = own.base.map_or(0, |b| b.blocks) as usize;
            if inherited > all.len() {
                let what = format!("inherits {inherited} blocks of {}", all.len());
                return Err(self.0.data.corrupt(own.offset, what));
            }
            all.truncate(inherited);
            all.extend(own.blocks);
        }
        Ok((all, image))
    }

    fn own_definitions(&self, process: u32) -> Result<OwnBlocks, ReadError> {
        let data = &self.0.data;
        let entries = &self.0.index.dictionaries;
        let from = entries.partition_point(|d| d.process < process);
        let mut own = OwnBlocks::default();
        let mut next = None;
        for entry in entries[from..].iter().take_while(|d| d.process == process) {
            let layout = data.layout_of(entry.offset, RecordKind::Dictionary)?;
            let bytes = data.section(entry.offset, &layout, 0)?;
            let (base, blocks) = dictionary::decode(&layout.header, &bytes)
                .map_err(|what| data.corrupt(entry.offset, what))?;
            let first = layout.header.first_instr;
            let expected = next.unwrap_or(base.map_or(0, |b| b.blocks.into()));
            if first != expected || (next.is_some() && base != own.base) {
                let what = format!(
                    "dictionary of process {process} goes on with block {first}{}; expected block {expected}{}",
                    inherited(base.as_ref()),
                    inherited(own.base.as_ref())
                );
                return Err(data.corrupt(entry.offset, what));
            }
            if next.is_none() {
                (own.base, own.offset) = (base, entry.offset);
            }
            next = Some(first + blocks.len() as u64);
            own.blocks.extend(blocks);
        }
        Ok(own)
    }
}

/// The dictionary records of one process, put together.
#[derive(Default)]
struct OwnBlocks {
    base: Option<Base>,
    blocks: Vec<BlockDef>,
    offset: u64,
}

/// Checks what can be checked without reading records.
fn check_index(data: &Data, index: &Index) -> Result<(), ReadError> {
    let mut settled = index.clone();
    settled.settle();
    if settled != *index {
        return Err(data.corrupt(data.len(), "the footer's index is not in order"));
    }
    if let Some((end, chunk)) = index.first_gap() {
        let what = format!(
            "a chunk is missing: thread {} goes on at instruction {} after one that ends at {end}; {}",
            chunk.thread,
            chunk.first_instr,
            how_to_repair(data.name())
        );
        return Err(data.corrupt(chunk.offset, what));
    }
    Ok(())
}

/// A file that was read without its index.
pub(super) struct Recovery {
    /// What can be read.
    pub recording: Recording,
    /// What was lost.
    pub found: Recovered,
    /// The header as the file has it: with the counts of the finished recording.
    pub header: FileHeader,
}

/// Where a chunk belongs.
fn told(chunk: &ChunkEntry) -> String {
    format!(
        "of thread {} of process {}, {} instructions from {} and {} references from {}",
        chunk.thread, chunk.process, chunk.instrs, chunk.first_instr, chunk.refs, chunk.first_ref
    )
}

/// Which blocks a dictionary begins with.
fn inherited(base: Option<&Base>) -> String {
    base.map_or(String::new(), |base| {
        format!(" after {} of process {}", base.blocks, base.process)
    })
}
