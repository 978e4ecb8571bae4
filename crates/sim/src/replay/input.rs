//! Traces as one stream of calls and of the page references that they consist of.

use std::collections::HashMap;
use std::path::PathBuf;

use piebald_policy::contract::replacement::PageRef;
use piebald_trace::about::Origin;
use piebald_trace::block::{
    BlockError, BlockTrace, Format, Nanos, Notes, Op, Options, PageShift, Passed, Request, Space,
    Target, TargetKind,
};

use super::cache::{Reference, Use};
use super::clocks::merge;
use piebald_units::Picos;

use super::excerpt::Excerpt;
use super::index::{PageIndex, PageKey};
use super::source::Source;

/// Pages of a space that keys can name: 2^40, which is 4 PiB in pages of 4 KiB.
const PAGE_BITS: u32 = 40;
/// Calls in a batch, about.
const BATCH: usize = 4096;
/// Pages of one call: 64 GiB in pages of 4 KiB. Mappings of databases and of models are some ten GiB.
const MAX_CALL_PAGES: u64 = 1 << 24;
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
    /// References to the block whose number in the trace follows that of the one before; `None` unless
    /// blocks without address were given places by their first use. Neighbours among these places are no
    /// neighbours in the trace.
    pub following: Option<u64>,
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
    #[error(
        "{trace}: request {request}: page {page} of {what}; allowed: up to page {}", (1_u64 << PAGE_BITS) - 1
    )]
    FarPage {
        /// The trace.
        trace: String,
        /// Which of its requests, counted from 1.
        request: u64,
        /// The file or disk.
        what: String,
        /// The page.
        page: u64,
    },
    /// A request is too long.
    #[error("{trace}: request {request}: {pages} pages; allowed: up to {MAX_CALL_PAGES}")]
    LongCall {
        /// The trace.
        trace: String,
        /// Which of its requests, counted from 1.
        request: u64,
        /// Its length.
        pages: u64,
    },
    /// Too many requests lie within the largest step back of a trace's stamps.
    #[error(
        "{trace}: its stamps step back by up to {}, within which lie more than {held} requests: too \
         many to be sorted by their times; allowed: another --pace, or a sorted trace", picos(*step)
    )]
    Unsorted {
        /// The trace.
        trace: String,
        /// The largest step back.
        step: Nanos,
        /// Requests that are held back at most.
        held: usize,
    },
    /// The stamps of several traces do not count from the same moment.
    #[error("{first} and {other} cannot be merged by their times: {why}; allowed: {allowed}")]
    Clocks {
        /// A trace.
        first: String,
        /// Another one.
        other: String,
        /// What their stamps count from.
        why: String,
        /// What can be asked for instead.
        allowed: &'static str,
    },
    /// There are too many files and disks.
    #[error("{trace}: more than {} files and disks", 1_u32 << (64 - PAGE_BITS))]
    ManySpaces {
        /// The trace.
        trace: String,
    },
}

fn picos(time: Nanos) -> Picos {
    Picos::from_ns(time.0).unwrap_or(Picos::MAX)
}

/// Which traces, and how they are read.
#[derive(Clone, Debug, Default)]
pub struct InputSetup {
    /// Files of the traces. Those of one run of `strace -ff` are one trace, unless [`align`](Self::align) asks
    /// for each by itself.
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
    /// How the times of several traces belong together.
    pub align: Align,
    /// Are objects of one name the same in several traces of one format? `None`: if they are merged
    /// by their stamps. Files and disks are the same if this is so or is asked for here.
    pub same_objects: Option<bool>,
    /// Largest step back of each trace's stamps ([`Notes`]), if its requests are to come in the
    /// order of their stamps; empty = they come as they stand there.
    pub sorted: Vec<Nanos>,
}

/// How the times of several traces belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// By their stamps, which must count from the same moment: a date, or the clock of one
    /// tracing run. Traces without any stamp give a request each in turn.
    #[default]
    Stamps,
    /// Each begins at the same moment.
    Start,
    /// Each gives a request in turn, whatever their times are.
    Turn,
}

/// How several traces become one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// There is one.
    Single,
    /// The request with the lowest stamp comes next, of equal ones that of the trace that was
    /// named first.
    ByStamp,
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
    same_objects: bool,
    turn: usize,
    /// The first stamp of all traces, where they are merged by stamps.
    begin: Option<Nanos>,
    spaces: HashMap<(usize, Space), SpaceId>,
    /// Files and disks that several traces may name.
    common: HashMap<(Format, Common), SpaceId>,
    infos: Vec<SpaceInfo>,
    last: Option<((usize, Space), SpaceId)>,
    /// Keys are block numbers themselves: they may need all 64 bits.
    plain_ids: bool,
    numbers: Option<PageIndex>,
    /// The last block's own number, where it has been given a place.
    last_number: Option<u64>,
}

impl CallStream {
    /// Opens the traces at their beginnings.
    ///
    /// # Errors
    /// A trace cannot be opened or its format is not known.
    pub fn open(setup: &InputSetup) -> Result<Self, InputError> {
        let mut sources = Vec::new();
        let traces = match setup.align {
            Align::Stamps => BlockTrace::open_runs(&setup.paths, &setup.options)?,
            // Each file is a trace by itself.
            Align::Start | Align::Turn => {
                let open = |path: &PathBuf| BlockTrace::open(path, setup.options.clone());
                setup.paths.iter().map(open).collect::<Result<_, _>>()?
            }
        };
        let mut names = Vec::new();
        for (nth, trace) in traces.into_iter().enumerate() {
            names.push(trace.name().to_owned());
            let step = setup.sorted.get(nth).copied();
            sources.push(Source::new(trace, setup, step));
        }
        let merge = merge(&mut sources, &names, setup.align)?;
        let plain_ids = match sources.as_slice() {
            [one] => one.trace.traits().target == TargetKind::Id && !setup.number_ids,
            _ => false,
        };
        // Of several traces keys hold the trace, too, which leaves too few bits for any number.
        let several = sources.len() > 1;
        let number_ids = setup.number_ids || several;
        Ok(Self {
            sources,
            names,
            page: setup.page,
            merge,
            same_objects: setup.same_objects.unwrap_or(merge == Merge::ByStamp),
            begin: None,
            common: HashMap::new(),
            turn: 0,
            spaces: HashMap::new(),
            infos: Vec::new(),
            last: None,
            plain_ids,
            numbers: number_ids.then(|| PageIndex::with_room(1 << 12)),
            last_number: None,
        })
    }

    /// What messages call each trace: its file, or what the files of one run of `strace -ff` have in
    /// common, which are one trace.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How the traces are merged.
    pub fn merge(&self) -> Merge {
        self.merge
    }

    /// Are objects of one name the same in all traces of one format?
    pub fn same_objects(&self) -> bool {
        self.same_objects
    }

    /// Format of each trace.
    pub fn formats(&self) -> Vec<Format> {
        self.sources.iter().map(|s| s.trace.format()).collect()
    }

    /// What the requests of each trace are about.
    pub fn targets(&self) -> Vec<TargetKind> {
        let sources = self.sources.iter();
        sources.map(|s| s.trace.traits().target).collect()
    }

    /// Does a trace name its objects, so that which number follows which says nothing?
    pub fn names_objects(&self) -> bool {
        self.sources.iter().any(|s| s.trace.names_objects())
    }

    /// Requests read so far of each trace.
    pub fn requests(&self) -> Vec<u64> {
        self.sources.iter().map(|s| s.requests).collect()
    }

    /// What was noted of each trace so far.
    pub fn notes(&self) -> Vec<Notes> {
        self.sources.iter().map(|s| s.trace.notes()).collect()
    }

    /// Why the requests so far of each trace may not be all, or elsewhere than they are said to be.
    pub fn doubts(&self) -> Vec<Vec<String>> {
        self.sources.iter().map(|s| s.trace.doubts()).collect()
    }

    /// What each trace has passed over so far.
    pub fn passed(&self) -> Vec<Passed> {
        self.sources.iter().map(|s| s.trace.passed()).collect()
    }

    /// Calls of all traces so far that gave files other names, or took names away.
    pub fn moved_names(&self) -> u64 {
        self.sources
            .iter()
            .map(|s| s.trace.notes().moved_names)
            .sum()
    }

    /// Has each trace stamps? Those of some formats are known once its first requests are.
    pub fn stamped(&self) -> Vec<bool> {
        let stamped = |s: &Source| s.requests == 0 || s.trace.origin() != Origin::Absent;
        self.sources.iter().map(stamped).collect()
    }

    /// What was wrong with the first record that lenient reading left out of any trace.
    pub fn first_skipped(&self) -> Option<&str> {
        let mut sources = self.sources.iter();
        sources.find_map(|s| s.trace.skipped().first.as_deref())
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
        batch.following = None;
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
            Merge::ByTime | Merge::ByStamp => {
                let mut first: Option<(u64, usize)> = None;
                for nth in 0..n {
                    if self.sources[nth].ready()? {
                        let time = match self.merge {
                            Merge::ByStamp => self.sources[nth].stamp(),
                            _ => self.sources[nth].time(),
                        };
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
            let before = self.last_number.replace(span.first);
            let follows = before.and_then(|before| before.checked_add(1)) == Some(span.first);
            *batch.following.get_or_insert(0) += u64::from(follows);
            span.first = number_of(numbers, space, span.first);
        }
        let info = &mut self.infos[space.0 as usize];
        if kind == CallKind::Delete {
            span.count = span.end().min(info.pages).saturating_sub(span.first);
        }
        let (first, pages, end) = (span.first, span.count, span.end());
        if pages == 0 {
            return Ok(());
        }
        if !self.plain_ids && end > 1 << PAGE_BITS {
            return Err(InputError::FarPage {
                trace: self.names[nth].clone(),
                request: self.sources[nth].requests,
                what: info.name.clone().unwrap_or_else(|| "the disk".to_owned()),
                page: end - 1,
            });
        }
        if kind != CallKind::Delete {
            info.pages = info.pages.max(end);
            if pages > MAX_CALL_PAGES {
                let trace = self.names[nth].clone();
                return Err(InputError::LongCall {
                    trace,
                    request: self.sources[nth].requests,
                    pages,
                });
            }
        }
        let begin = match self.merge {
            Merge::ByStamp => &mut self.begin,
            _ => &mut self.sources[nth].begin,
        };
        let time = request.time.map(|time| {
            let begin = *begin.get_or_insert(time);
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
        batch.references.extend(span.iter().map(reference));
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
        let pages = size.map_or(0, |s| s.div_ceil(self.page.bytes().0));
        let format = reader.format();
        let common = self.common_name(space, name.as_deref());
        if let Some(common) = &common
            && let Some(&id) = self.common.get(&(format, common.clone()))
        {
            let info = &mut self.infos[id.0 as usize];
            info.pages = info.pages.max(pages);
            self.spaces.insert((trace, space), id);
            return Ok(id);
        }
        let id = SpaceId(self.infos.len() as u32);
        self.infos.push(SpaceInfo {
            trace,
            space,
            name,
            pages,
        });
        self.spaces.insert((trace, space), id);
        if let Some(common) = common {
            self.common.insert((format, common), id);
        }
        Ok(id)
    }

    /// By what other traces name the same file or disk. Traces of one clock are of one machine or
    /// one collection: what has the same name there is the same, as it is where it is asked for.
    fn common_name(&self, space: Space, name: Option<&str>) -> Option<Common> {
        if space == Space::Ids {
            return self.same_objects.then_some(Common::Objects);
        }
        if self.merge != Merge::ByStamp && !self.same_objects {
            return None;
        }
        match (space, name) {
            (Space::Ids, _) | (Space::File(_), None) => None,
            (Space::Device(number), None) => Some(Common::Number(number)),
            (_, Some(name)) => Some(Common::Name(name.to_owned())),
        }
    }
}

/// What several traces have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Common {
    /// A path, or the name of a disk.
    Name(String),
    /// The number of a disk.
    Number(u32),
    /// Blocks without address.
    Objects,
}

/// The place of a block among all blocks without address, by first use. Blocks of
/// different spaces differ, but for a chance of 2^-64 per pair.
fn number_of(numbers: &mut PageIndex, space: SpaceId, id: u64) -> u64 {
    let salt = u64::from(space.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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
