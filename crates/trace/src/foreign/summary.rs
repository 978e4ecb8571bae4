//! What a trace holds, in numbers and in its first lines.

use std::fmt;

use piebald_units::op::{MemRef, Next, OpSource, RefKind};
use piebald_units::{LINE_SHIFT, PAGE_SHIFT};

use super::set::Bounded;
use super::thread::{Identity, Notes, Skipped};
use super::{ForeignError, ForeignTrace, Format};

/// Default bound of exact distinct counts: 4 Mi pages and as many lines, in hash sets of about
/// 72 MiB each when full.
pub const DEFAULT_DISTINCT_BOUND: usize = 1 << 22;

/// References taken from a reader at a time.
const BATCH: usize = 4096;

/// A distinct count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distinct {
    /// Exactly so many.
    Exactly(u64),
    /// The bound was reached; there are more.
    MoreThan(u64),
}

impl fmt::Display for Distinct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(n) => write!(f, "{n}"),
            Self::MoreThan(n) => write!(f, "more than {n}"),
        }
    }
}

/// How a thread's file ends.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// With an exit status (0 where the format has none).
    Exit(i32),
    /// At the end of the file, without an exit.
    End,
    /// The file is damaged; the counts hold what came before.
    Broken(String),
}

/// One reference as it stands in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// Virtual address (physical in `ramulator-dram`).
    pub addr: u64,
    /// Size in bytes.
    pub size: u8,
    /// `load`, `store`, `update`, `fetch` or `load-nt`.
    pub kind: &'static str,
}

impl Place {
    fn of(r: &MemRef) -> Self {
        Self {
            addr: r.addr.0,
            size: r.size,
            kind: kind_name(r.kind),
        }
    }
}

/// Extent of a set of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Touched {
    /// Lowest first byte.
    pub lowest: u64,
    /// Highest last byte (included).
    pub highest: u64,
}

/// A whole trace in numbers.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Its format.
    pub format: Format,
    /// Only references that missed in caches of the tracer are there.
    pub filtered: bool,
    /// References by [`RefKind`], indexed by its number: loads, stores, updates, fetches,
    /// non-temporal loads.
    pub refs: [u64; 5],
    /// Instructions, in the format's own sense (see the table of [`super`]).
    pub instructions: u64,
    /// System calls.
    pub calls: u64,
    /// Address range; `None` without references.
    pub range: Option<Touched>,
    /// Distinct 4 KiB pages, instruction fetches included. Threads of different processes are
    /// counted as one address space; see `identities`.
    pub pages: Distinct,
    /// Distinct 64-byte lines, likewise.
    pub lines: Distinct,
    /// First reference of thread 0.
    pub first: Option<Place>,
    /// Last reference of the last thread that has any.
    pub last: Option<Place>,
    /// Records that became no reference, over all threads.
    pub skipped: Skipped,
    /// What was odd, over all threads.
    pub notes: Notes,
    /// How each thread ends.
    pub endings: Vec<Ending>,
    /// Process and thread ids, as far as the format has them.
    pub identities: Vec<Identity>,
}

impl Summary {
    /// References of all kinds.
    pub fn total_refs(&self) -> u64 {
        self.refs.iter().sum()
    }
}

pub(crate) const fn kind_name(kind: RefKind) -> &'static str {
    match kind {
        RefKind::Load => "load",
        RefKind::Store => "store",
        RefKind::Update => "update",
        RefKind::Fetch => "fetch",
        RefKind::LoadNt => "load-nt",
    }
}

struct Counter {
    refs: [u64; 5],
    range: Option<Touched>,
    pages: Bounded,
    lines: Bounded,
    first: Option<Place>,
    last: Option<Place>,
    instructions: u64,
    calls: u64,
}

impl Counter {
    fn new(bound: usize) -> Self {
        Self {
            refs: [0; 5],
            range: None,
            pages: Bounded::new(bound),
            lines: Bounded::new(bound),
            first: None,
            last: None,
            instructions: 0,
            calls: 0,
        }
    }

    fn count(&mut self, r: &MemRef) {
        let first = r.addr.0;
        let last = first.saturating_add(u64::from(r.size) - 1);
        self.refs[r.kind as usize] += 1;
        self.instructions += u64::from(r.gap);
        let range = self.range.get_or_insert(Touched {
            lowest: first,
            highest: last,
        });
        range.lowest = range.lowest.min(first);
        range.highest = range.highest.max(last);
        for (set, shift) in [(&mut self.lines, LINE_SHIFT), (&mut self.pages, PAGE_SHIFT)] {
            set.insert(first >> shift);
            if first >> shift != last >> shift {
                set.insert(last >> shift);
            }
        }
    }

    fn batch(&mut self, refs: &[MemRef]) {
        refs.iter().for_each(|r| self.count(r));
        if self.first.is_none() {
            self.first = refs.first().map(Place::of);
        }
        self.last = refs.last().map(Place::of).or(self.last);
    }

    /// Reads a thread to its end.
    fn drain(&mut self, source: &mut dyn OpSource) -> Ending {
        let mut buffer = vec![MemRef::default(); BATCH];
        loop {
            let filled = source.fill(&mut buffer);
            self.batch(&buffer[..filled.refs]);
            self.instructions += u64::from(filled.tail);
            match filled.next {
                Next::More | Next::Mark(_) => {}
                Next::Sys(_) => self.calls += 1,
                Next::Exit(status) => return Ending::Exit(status),
                Next::End => return Ending::End,
                Next::Broken => {
                    return Ending::Broken(source.failure().unwrap_or_default().to_owned());
                }
            }
        }
    }
}

pub(crate) fn of(trace: &ForeignTrace, bound: usize) -> Result<Summary, ForeignError> {
    let mut counter = Counter::new(bound);
    let (mut skipped, mut notes) = (Skipped::default(), Notes::default());
    let (mut endings, mut identities) = (Vec::new(), Vec::new());
    for thread in 0..trace.threads() {
        let mut source = trace.open(thread)?;
        endings.push(counter.drain(&mut source));
        identities.push(source.identity());
        skipped += source.skipped();
        notes += source.notes();
    }
    Ok(Summary {
        format: trace.format(),
        filtered: trace.format().filtered() || identities.iter().any(|i| i.filtered),
        refs: counter.refs,
        instructions: counter.instructions,
        calls: counter.calls,
        range: counter.range,
        pages: counter.pages.count(),
        lines: counter.lines.count(),
        first: counter.first,
        last: counter.last,
        skipped,
        notes,
        endings,
        identities,
    })
}

pub(crate) fn head(
    trace: &ForeignTrace,
    thread: usize,
    n: u64,
) -> Result<Vec<String>, ForeignError> {
    let mut source = trace.open(thread)?;
    let mut lines = Vec::new();
    let mut instructions = 0;
    let mut buffer = [MemRef::default(); 64];
    while (lines.len() as u64) < n {
        let want = buffer.len().min((n - lines.len() as u64) as usize);
        let filled = source.fill(&mut buffer[..want]);
        for r in &buffer[..filled.refs] {
            instructions += u64::from(r.gap);
            lines.push(row(lines.len(), instructions, r));
        }
        instructions += u64::from(filled.tail);
        match filled.next {
            Next::More | Next::Mark(_) | Next::Sys(_) => {}
            Next::Exit(_) | Next::End => break,
            Next::Broken if (lines.len() as u64) < n => {
                let why = source.failure().unwrap_or_default();
                return Err(ForeignError::Broken(why.to_owned()));
            }
            Next::Broken => break,
        }
    }
    Ok(lines)
}

fn row(index: usize, instructions: u64, r: &MemRef) -> String {
    format!(
        "#{index} {instructions} {} {} {:#x} {:#x}",
        kind_name(r.kind),
        r.size,
        r.addr.0,
        r.site
    )
}
