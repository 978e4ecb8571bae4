//! Traces as one stream of calls and of the page references that they consist of.

use std::collections::HashMap;
use std::path::PathBuf;

use piebald_policy::contract::replacement::PageRef;
use piebald_trace::block::{
    BlockError, BlockTrace, Format, Nanos, Op, Options, PageShift, Request, Space, Target,
    TargetKind, Times,
};

use super::cache::{Reference, Use};
use super::excerpt::{Cutter, Excerpt};
use super::index::{PageIndex, PageKey};

/// Pages of a space that keys can name: 2^40, which is 4 PiB in pages of 4 KiB.
const PAGE_BITS: u32 = 40;
/// Calls in a batch, about.
const BATCH: usize = 4096;
/// Pages of one call: 4 GiB in pages of 4 KiB.
const MAX_CALL_PAGES: u64 = 1 << 20;

/// A file, a disk, or the blocks without address of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(pub u32);

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads through a mapping.
    Map,
    /// Takes the pages from their file.
    Delete,
}

/// A request of a trace, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When, since the trace's first request, where the trace says so.
    pub time: Option<Nanos>,
    /// Who: trace and process in one number.
    pub task: u64,
    /// What.
    pub kind: CallKind,
    /// Pages of what.
    pub space: SpaceId,
    /// The first.
    pub first: u64,
    /// How many, at least 1.
    pub pages: u64,
    /// Size of the object in bytes, where the call is for one and the trace says it. Such an object
    /// is one page.
    pub bytes: Option<u32>,
}

/// A part of the stream.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Calls in order.
    pub calls: Vec<Call>,
    /// Their pages, one by one.
    pub references: Vec<Reference>,
}

/// What a space is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceInfo {
    /// Which trace, counted from 0.
    pub trace: usize,
    /// What it is there.
    pub space: Space,
    /// Path of a file, name of a disk.
    pub name: Option<String>,
    /// Pages up to the last that was used so far or that the trace says the file has.
    pub pages: u64,
}

/// Why a stream ended early.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] BlockError),
    /// A page lies too far behind.
    #[error("{trace}: page {page} of {what}; allowed: up to page {}", (1_u64 << PAGE_BITS) - 1)]
    FarPage {
        /// The trace.
        trace: String,
        /// The file or disk.
        what: String,
        /// The page.
        page: u64,
    },
    /// A request is too long.
    #[error("{trace}: a request of {pages} pages; allowed: up to {MAX_CALL_PAGES}")]
    LongCall {
        /// The trace.
        trace: String,
        /// Its length.
        pages: u64,
    },
    /// There are too many files and disks.
    #[error("{trace}: more than {} files and disks", 1_u32 << (64 - PAGE_BITS))]
    ManySpaces {
        /// The trace.
        trace: String,
    },
}

/// Which traces, and how they are read.
#[derive(Clone, Debug, Default)]
pub struct InputSetup {
    /// Files of the traces.
    pub paths: Vec<PathBuf>,
    /// How each is read.
    pub options: Options,
    /// Size of a page.
    pub page: PageShift,
    /// Number blocks without address by their first use, so that they can be given a
    /// place on a disk. Takes 32 to 64 B per block.
    pub number_ids: bool,
    /// The part of each trace that is replayed.
    pub excerpt: Excerpt,
}

/// One trace of the stream.
struct Source {
    trace: BlockTrace,
    cutter: Option<Cutter>,
    /// What the trace gave last, where it is cut.
    raw: Vec<Request>,
    pending: Vec<Request>,
    next: usize,
    begin: Option<Nanos>,
    done: bool,
    requests: u64,
}

/// How several traces become one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// There is one.
    Single,
    /// The request with the lowest time since its trace's first comes next.
    ByTime,
    /// A request of each in turn.
    InTurn,
}

/// A stream of calls.
pub struct CallStream {
    sources: Vec<Source>,
    names: Vec<String>,
    page: PageShift,
    merge: Merge,
    turn: usize,
    spaces: HashMap<(usize, Space), SpaceId>,
    infos: Vec<SpaceInfo>,
    last: Option<((usize, Space), SpaceId)>,
    /// Keys are block numbers themselves: they may need all 64 bits.
    plain_ids: bool,
    numbers: Option<PageIndex>,
}

impl CallStream {
    /// Opens the traces at their beginnings.
    ///
    /// # Errors
    /// A trace cannot be opened or its format is not known.
    pub fn open(setup: &InputSetup) -> Result<Self, InputError> {
        let mut sources = Vec::new();
        for path in &setup.paths {
            sources.push(Source {
                trace: BlockTrace::open(path, setup.options.clone())?,
                cutter: Cutter::new(&setup.excerpt, setup.page),
                raw: Vec::new(),
                pending: Vec::new(),
                next: 0,
                begin: None,
                done: false,
                requests: 0,
            });
        }
        let timed = |s: &Source| matches!(s.trace.traits().times, Times::Ordered | Times::Loose);
        let merge = match sources.len() {
            0 | 1 => Merge::Single,
            _ if sources.iter().all(timed) => Merge::ByTime,
            _ => Merge::InTurn,
        };
        let plain_ids = match sources.as_slice() {
            [one] => one.trace.traits().target == TargetKind::Id && !setup.number_ids,
            _ => false,
        };
        let names = setup.paths.iter().map(|p| p.display().to_string());
        Ok(Self {
            sources,
            names: names.collect(),
            page: setup.page,
            merge,
            turn: 0,
            spaces: HashMap::new(),
            infos: Vec::new(),
            last: None,
            plain_ids,
            numbers: setup.number_ids.then(|| PageIndex::with_room(1 << 12)),
        })
    }

    /// How the traces are merged.
    pub fn merge(&self) -> Merge {
        self.merge
    }

    /// Format of each trace.
    pub fn formats(&self) -> Vec<Format> {
        self.sources.iter().map(|s| s.trace.format()).collect()
    }

    /// Requests read so far of each trace.
    pub fn requests(&self) -> Vec<u64> {
        self.sources.iter().map(|s| s.requests).collect()
    }

    /// Records of each trace that lenient reading left out, by what was wrong.
    pub fn skipped(&self) -> Vec<Vec<(String, u64)>> {
        let of = |s: &Source| {
            let by_field = s.trace.skipped().by_field.iter();
            by_field.map(|(&field, &n)| (field.to_owned(), n)).collect()
        };
        self.sources.iter().map(of).collect()
    }

    /// Files and disks so far; a [`SpaceId`] is an index.
    pub fn spaces(&self) -> &[SpaceInfo] {
        &self.infos
    }

    /// Sizes of the files that the traces name, as far as they are known now.
    pub fn learn_sizes(&mut self) {
        for info in &mut self.infos {
            let Space::File(key) = info.space else {
                continue;
            };
            let file = self
                .sources
                .get(info.trace)
                .map(|s| s.trace.files().get(key));
            if let Some(size) = file.flatten().and_then(|f| f.size) {
                info.pages = info.pages.max(size.div_ceil(self.page.bytes().0));
            }
        }
    }

    /// Fills a batch with the next calls; `false` after the last.
    ///
    /// # Errors
    /// See [`InputError`]; there are no more calls then.
    pub fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, InputError> {
        batch.calls.clear();
        batch.references.clear();
        while batch.calls.len() < BATCH && batch.references.len() < 8 * BATCH {
            let Some(nth) = self.choose()? else {
                break;
            };
            let source = &mut self.sources[nth];
            let request = source.pending[source.next];
            source.next += 1;
            source.requests += 1;
            self.put(nth, &request, batch)?;
        }
        Ok(!batch.calls.is_empty())
    }

    /// The trace whose request comes next.
    fn choose(&mut self) -> Result<Option<usize>, InputError> {
        let n = self.sources.len();
        match self.merge {
            Merge::Single => Ok((n > 0 && self.sources[0].ready()?).then_some(0)),
            Merge::InTurn => {
                for step in 0..n {
                    let nth = (self.turn + step) % n;
                    if self.sources[nth].ready()? {
                        self.turn = nth + 1;
                        return Ok(Some(nth));
                    }
                }
                Ok(None)
            }
            Merge::ByTime => {
                let mut first: Option<(u64, usize)> = None;
                for nth in 0..n {
                    if self.sources[nth].ready()? {
                        let time = self.sources[nth].time();
                        first = Some(first.map_or((time, nth), |f| f.min((time, nth))));
                    }
                }
                Ok(first.map(|(_, nth)| nth))
            }
        }
    }

    fn put(&mut self, nth: usize, request: &Request, batch: &mut Batch) -> Result<(), InputError> {
        let kind = match request.op {
            Op::Read => CallKind::Read,
            Op::Write => CallKind::Write,
            Op::Map => CallKind::Map,
            Op::Delete => CallKind::Delete,
        };
        let mut span = request.pages(self.page);
        let space = self.space(nth, span.space)?;
        if let (Space::Ids, Some(numbers)) = (span.space, &mut self.numbers) {
            span.first = number_of(numbers, nth, span.first);
        }
        let info = &mut self.infos[space.0 as usize];
        let end = match kind {
            CallKind::Delete => span.end().min(info.pages),
            _ => span.end(),
        };
        let first = span.first.min(end);
        let pages = end - first;
        if pages == 0 {
            return Ok(());
        }
        if !self.plain_ids && end > 1 << PAGE_BITS {
            return Err(InputError::FarPage {
                trace: self.names[nth].clone(),
                what: info.name.clone().unwrap_or_else(|| "the disk".to_owned()),
                page: end - 1,
            });
        }
        if kind != CallKind::Delete {
            info.pages = info.pages.max(end);
            if pages > MAX_CALL_PAGES {
                let trace = self.names[nth].clone();
                return Err(InputError::LongCall { trace, pages });
            }
        }
        let source = &mut self.sources[nth];
        let time = request.time.map(|time| {
            let begin = *source.begin.get_or_insert(time);
            Nanos(time.0.saturating_sub(begin.0))
        });
        batch.calls.push(Call {
            time,
            task: (nth as u64) << 32 | u64::from(request.task),
            kind,
            space,
            first,
            pages,
            bytes: match request.target {
                Target::Id { bytes, .. } => bytes,
                Target::Device { .. } | Target::File { .. } => None,
            },
        });
        let what = match kind {
            CallKind::Read | CallKind::Map => Use::Read,
            CallKind::Write => Use::Write,
            CallKind::Delete => Use::Delete,
        };
        let base = match self.plain_ids {
            true => 0,
            false => u64::from(space.0) << PAGE_BITS,
        };
        let reference = |page| Reference {
            key: PageKey(base.wrapping_add(page)),
            what,
        };
        batch.references.extend((first..end).map(reference));
        Ok(())
    }

    #[inline]
    fn space(&mut self, trace: usize, space: Space) -> Result<SpaceId, InputError> {
        if let Some((known, id)) = self.last
            && known == (trace, space)
        {
            return Ok(id);
        }
        let id = match self.spaces.get(&(trace, space)) {
            Some(&id) => id,
            None => self.new_space(trace, space)?,
        };
        self.last = Some(((trace, space), id));
        Ok(id)
    }

    fn new_space(&mut self, trace: usize, space: Space) -> Result<SpaceId, InputError> {
        if self.infos.len() >= 1 << (64 - PAGE_BITS) {
            let trace = self.names[trace].clone();
            return Err(InputError::ManySpaces { trace });
        }
        let reader = &self.sources[trace].trace;
        let (name, size) = match space {
            Space::File(key) => match reader.files().get(key) {
                Some(file) => (Some(file.path().into_owned()), file.size),
                None => (None, None),
            },
            Space::Device(device) => (reader.devices().name(device).map(|n| n.into_owned()), None),
            Space::Ids => (None, None),
        };
        let id = SpaceId(self.infos.len() as u32);
        self.infos.push(SpaceInfo {
            trace,
            space,
            name,
            pages: size.map_or(0, |s| s.div_ceil(self.page.bytes().0)),
        });
        self.spaces.insert((trace, space), id);
        Ok(id)
    }
}

impl Source {
    /// Is there a request?
    fn ready(&mut self) -> Result<bool, BlockError> {
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
    fn fetch(&mut self) -> Result<(), BlockError> {
        let Some(cutter) = &mut self.cutter else {
            self.done = !self.trace.next_batch(&mut self.pending)?;
            return Ok(());
        };
        self.raw.clear();
        let more = self.trace.next_batch(&mut self.raw)?;
        self.done = !cutter.take(&self.raw, &mut self.pending) || !more;
        if self.done {
            cutter.finish(&mut self.pending);
        }
        Ok(())
    }

    /// Time of the next request since the first.
    fn time(&self) -> u64 {
        let time = self.pending[self.next].time.unwrap_or_default();
        time.0.saturating_sub(self.begin.unwrap_or(time).0)
    }
}

/// The place of a block among all blocks without address, by first use. Blocks of
/// different traces differ, but for a chance of 2^-64 per pair.
fn number_of(numbers: &mut PageIndex, trace: usize, id: u64) -> u64 {
    let salt = (trace as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = PageKey(id ^ salt);
    match numbers.get(key) {
        Some(number) => u64::from(number.0),
        None => {
            let next = numbers.len() as u32;
            numbers.insert(key, PageRef(next));
            u64::from(next)
        }
    }
}

/// For each reference, the number of the one that uses its page next, counted without
/// deletions; `u64::MAX` = none. Takes the whole stream's references.
pub fn next_uses(references: &[Reference]) -> Vec<u64> {
    let mut next = vec![u64::MAX; references.len()];
    let mut later: HashMap<PageKey, u64> = HashMap::new();
    let uses = references.iter().filter(|r| r.what != Use::Delete).count() as u64;
    let mut number = uses;
    for (reference, next) in references.iter().zip(&mut next).rev() {
        if reference.what == Use::Delete {
            later.remove(&reference.key);
            continue;
        }
        number -= 1;
        if let Some(at) = later.insert(reference.key, number) {
            *next = at;
        }
    }
    next
}
