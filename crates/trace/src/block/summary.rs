//! What a trace holds, in numbers and in its first requests.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::error::BlockError;
use super::reader::BlockTrace;
use super::request::{Nanos, Op, PageShift, PageSpan, Request, Space, Target};
use super::sink::{LeftOut, Notes, Passed, Skipped};
use super::{Format, Traits};
use crate::foreign::Distinct;
use crate::foreign::set::Mix;
use crate::quote::printable;

/// Most disks and files whose numbers are counted one by one.
const MAX_SPACES: usize = 1 << 20;

/// A whole trace in numbers.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Its format.
    pub format: Format,
    /// What the format's requests say.
    pub traits: Traits,
    /// Requests of all kinds.
    pub requests: u64,
    /// Requests that read.
    pub reads: u64,
    /// Requests that write.
    pub writes: u64,
    /// Requests that map.
    pub maps: u64,
    /// Requests that delete. They refer to no page.
    pub deletes: u64,
    /// Bytes asked for; of opaque blocks of unknown size nothing.
    pub bytes: u64,
    /// Smallest and largest size of an object in bytes, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_bytes: Option<(u32, u32)>,
    /// Whether objects have names, so that which number follows which says nothing.
    #[serde(skip)]
    pub names_objects: bool,
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// References to pages: a request refers once to each page that it touches.
    pub page_references: u64,
    /// Distinct pages.
    pub unique_pages: Distinct,
    /// References to the page behind the one referred to just before, in the same disk or file.
    pub next_page_references: u64,
    /// Requests that begin where the one just before ended.
    pub sequential_requests: u64,
    /// Disks with requests.
    pub disks: Distinct,
    /// Files with requests.
    pub files: Distinct,
    /// Lowest page and the highest, of all disks and files.
    pub page_range: Option<(u64, u64)>,
    /// Earliest time.
    pub earliest: Option<Nanos>,
    /// Latest time.
    pub latest: Option<Nanos>,
    /// Records that became no request.
    pub passed: Passed,
    /// Those among them that ask for data, by name.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// What was done to requests that were kept.
    pub notes: Notes,
    /// Records that lenient reading left out.
    pub skipped: Skipped,
    /// Unpacked bytes.
    pub unpacked_bytes: u64,
}

impl Summary {
    /// Share of references that go to the next page, 0 to 1.
    pub fn next_page_share(&self) -> f64 {
        share(self.next_page_references, self.page_references)
    }

    /// Share of requests that begin where the one before ended, 0 to 1.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential_requests, self.requests)
    }

    /// Time from the earliest request to the latest, in nanoseconds.
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.latest?.0 - self.earliest?.0)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

/// Counts distinct pages, exactly up to a bound.
struct Pages {
    seen: HashSet<(u64, u64), BuildHasherDefault<Mix>>,
    bound: usize,
    full: bool,
}

impl Pages {
    fn insert(&mut self, span: &PageSpan, space: u64) {
        for page in span.iter() {
            // Ends soon even for a request of 2^51 pages.
            if self.full {
                return;
            }
            if self.seen.len() < self.bound {
                self.seen.insert((space, page));
            } else {
                self.full = !self.seen.contains(&(space, page));
            }
        }
    }

    fn count(&self) -> Distinct {
        distinct(self.seen.len(), self.full)
    }
}

const fn distinct(n: usize, full: bool) -> Distinct {
    match full {
        true => Distinct::MoreThan(n as u64),
        false => Distinct::Exactly(n as u64),
    }
}

/// A disk or file as a number.
const fn number_of(space: Space) -> u64 {
    match space {
        Space::Device(device) => device as u64,
        Space::File(file) => 1 << 32 | file.0 as u64,
        Space::Ids => 2 << 32,
    }
}

struct Counter {
    sum: Summary,
    pages: Pages,
    disks: HashSet<u32>,
    files: HashSet<u32>,
    page: PageShift,
    /// Smallest and largest size of an object.
    sizes: Option<(u32, u32)>,
    /// Where the last reference went, and the first byte, sector or id behind the last request.
    last_page: Option<(u64, u64)>,
    last_end: Option<(u64, u64)>,
}

impl Counter {
    fn count(&mut self, request: &Request) {
        let sum = &mut self.sum;
        sum.requests += 1;
        match request.op {
            Op::Read => sum.reads += 1,
            Op::Write => sum.writes += 1,
            Op::Map => sum.maps += 1,
            Op::Delete => sum.deletes += 1,
        }
        if let Some(time) = request.time {
            sum.earliest = Some(sum.earliest.map_or(time, |t| t.min(time)));
            sum.latest = Some(sum.latest.map_or(time, |t| t.max(time)));
        }
        match request.target {
            Target::Device { device, .. } if self.disks.len() < MAX_SPACES => {
                self.disks.insert(device);
            }
            Target::File { file, .. } if self.files.len() < MAX_SPACES => {
                self.files.insert(file.0);
            }
            Target::Id { bytes: Some(n), .. } => {
                let (low, high) = self.sizes.unwrap_or((n, n));
                self.sizes = Some((low.min(n), high.max(n)));
            }
            _ => {}
        }
        if request.op != Op::Delete {
            self.extent(request);
        }
    }

    fn extent(&mut self, request: &Request) {
        let span = request.pages(self.page);
        let space = number_of(span.space);
        let (start, end) = extent_of(request);
        let sum = &mut self.sum;
        sum.bytes = sum.bytes.saturating_add(request.bytes().unwrap_or(0));
        sum.page_references = sum.page_references.saturating_add(span.count);
        if !sum.names_objects {
            let follows = self.last_page == Some((space, span.first.wrapping_sub(1)));
            let inside = span.count.saturating_sub(1);
            sum.next_page_references += inside + u64::from(follows && span.first > 0);
            sum.sequential_requests += u64::from(self.last_end == Some((space, start)));
        }
        let last = span.last();
        let (low, high) = sum.page_range.unwrap_or((span.first, last));
        sum.page_range = Some((low.min(span.first), high.max(last)));
        self.last_page = Some((space, last));
        self.last_end = Some((space, end));
        self.pages.insert(&span, space);
    }
}

/// Where a request begins, and where the next one would begin.
const fn extent_of(request: &Request) -> (u64, u64) {
    match request.target {
        Target::Device {
            sector, sectors, ..
        } => (sector, sector.saturating_add(sectors)),
        Target::File { offset, length, .. } => (offset, offset.saturating_add(length)),
        Target::Id { id, .. } => (id, id.saturating_add(1)),
    }
}

/// Reads a trace from here to its end and sums it up. Distinct pages are counted exactly up to
/// `distinct_bound`, at about 18 bytes of memory each.
///
/// # Errors
/// Those of reading. In lenient mode wrong records are in [`Summary::skipped`].
pub fn summarize(
    trace: &mut BlockTrace,
    page: PageShift,
    distinct_bound: usize,
) -> Result<Summary, BlockError> {
    let mut counter = Counter {
        sum: empty(trace, page),
        pages: Pages {
            seen: HashSet::default(),
            bound: distinct_bound,
            full: false,
        },
        disks: HashSet::new(),
        files: HashSet::new(),
        page,
        sizes: None,
        last_page: None,
        last_end: None,
    };
    let mut batch = Vec::new();
    while trace.next_batch(&mut batch)? {
        batch.iter().for_each(|r| counter.count(r));
    }
    let mut sum = counter.sum;
    sum.object_bytes = counter.sizes.filter(|(low, high)| low < high);
    sum.unique_pages = counter.pages.count();
    sum.disks = distinct(counter.disks.len(), counter.disks.len() >= MAX_SPACES);
    sum.files = distinct(counter.files.len(), counter.files.len() >= MAX_SPACES);
    sum.passed = trace.passed();
    sum.left_out = trace.left_out().clone();
    sum.notes = trace.notes();
    sum.skipped = trace.skipped().clone();
    sum.unpacked_bytes = trace.offset();
    Ok(sum)
}

fn empty(trace: &BlockTrace, page: PageShift) -> Summary {
    Summary {
        format: trace.format(),
        traits: trace.traits(),
        requests: 0,
        reads: 0,
        writes: 0,
        maps: 0,
        deletes: 0,
        bytes: 0,
        object_bytes: None,
        names_objects: trace.names_objects(),
        page_bytes: page.bytes().0,
        page_references: 0,
        unique_pages: Distinct::Exactly(0),
        next_page_references: 0,
        sequential_requests: 0,
        disks: Distinct::Exactly(0),
        files: Distinct::Exactly(0),
        page_range: None,
        earliest: None,
        latest: None,
        passed: Passed::default(),
        left_out: LeftOut::default(),
        notes: Notes::default(),
        skipped: Skipped::default(),
        unpacked_bytes: 0,
    }
}

/// The first `n` requests as text, one line each: `#number time task op target`, with the time in
/// nanoseconds since the format's origin, or `-`.
///
/// # Errors
/// Those of reading before the `n`-th request.
pub fn head(trace: &mut BlockTrace, n: usize) -> Result<Vec<String>, BlockError> {
    let mut lines = Vec::new();
    let mut batch = Vec::new();
    while lines.len() < n && trace.next_batch(&mut batch)? {
        for request in batch.iter().take(n - lines.len()) {
            lines.push(row(lines.len(), request, trace));
        }
    }
    Ok(lines)
}

fn row(index: usize, request: &Request, trace: &BlockTrace) -> String {
    let time = request.time.map_or("-".to_owned(), |t| t.0.to_string());
    let target = match request.target {
        Target::Device {
            device,
            sector,
            sectors,
        } => match trace.devices().name(device) {
            Some(name) => format!("disk {} sectors {sector}+{sectors}", printable(&name)),
            None => format!("disk {device} sectors {sector}+{sectors}"),
        },
        Target::File {
            file,
            offset,
            length,
        } => {
            let path = trace.files().get(file);
            let path = path.map_or(file.0.to_string().into(), |f| f.path());
            let path = printable(&path);
            match request.op {
                Op::Delete if length == u64::MAX - offset => {
                    format!("file {path} from byte {offset}")
                }
                _ => format!("file {path} bytes {offset}+{length}"),
            }
        }
        Target::Id { id, .. } => format!("block {id}"),
    };
    format!(
        "#{index} {time} {} {} {target}",
        request.task,
        request.op.name()
    )
}
