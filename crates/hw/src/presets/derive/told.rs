//! A cache as Linux tells it, and what can be made of that.
//!
//! Linux tells the size and, apart from it, ways, sets and line. On x86 all come from one
//! CPUID leaf. On Arm they come from firmware or a device tree, which may lack some, and a
//! hypervisor hides the real ways and sets: KVM tells one set of one way. What disagrees
//! is never taken silently.

use piebald_units::Bytes;

use super::{error::DeriveError, source::Source};
use crate::spec::Holds;

/// Bytes below which ways, sets and line are no cache but a hypervisor's blank.
const BLANK: u64 = 1 << 10;
/// Most lines of a set that the model has.
const MAX_WAYS: u64 = 64;

/// The files of one cache; what Linux does not know is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) level: u64,
    pub(super) holds: Holds,
    pub(super) line: Option<u64>,
    pub(super) ways: Option<u64>,
    /// Over all partitions of a line, of which there is one everywhere.
    pub(super) sets: Option<u64>,
    pub(super) bytes: Option<u64>,
}

/// What is taken of a cache, with lines of 64 B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: u64,
    pub(super) ways: u64,
    /// Why the ways are an assumption; none if they were told.
    pub(super) assumed: Option<String>,
}

/// Caches of a processor that are looked for.
const MOST: usize = 16;

/// Path of a file of a cache.
pub(super) fn path(cpu: u32, index: usize, name: &str) -> String {
    format!("cpu{cpu}/cache/index{index}/{name}")
}

impl Told {
    /// All caches of a processor, in Linux's order.
    pub(super) fn all(source: &Source<'_>, cpu: u32) -> Result<Vec<Self>, DeriveError> {
        let mut found = Vec::new();
        while let Some(told) = Self::new(source, cpu, found.len())? {
            found.push(told);
        }
        // One that is missing below others is no end of them.
        for later in found.len() + 1..MOST {
            if source.optional(&path(cpu, later, "level"))?.is_some() {
                let problem = format!("no such file, although index{later} is there");
                return Err(source.error(&path(cpu, found.len(), "level"), problem));
            }
        }
        Ok(found)
    }

    /// The cache with this index; `None` behind the last.
    fn new(source: &Source<'_>, cpu: u32, index: usize) -> Result<Option<Self>, DeriveError> {
        let path = |name: &str| path(cpu, index, name);
        if source.optional(&path("level"))?.is_none() {
            return Ok(None);
        }
        let holds = match source.text(&path("type"))?.as_str() {
            "Data" => Holds::Data,
            "Instruction" => Holds::Instruction,
            "Unified" => Holds::Unified,
            other => {
                let problem = format!("\"{other}\" is not Data, Instruction or Unified");
                return Err(source.error(&path("type"), problem));
            }
        };
        let partitions = source.known(&path("physical_line_partition"), 1 << 20)?;
        let sets = source.known(&path("number_of_sets"), 1 << 32)?;
        Ok(Some(Self {
            level: source.number(&path("level"), 1, 9)?,
            holds,
            line: source.known(&path("coherency_line_size"), 1 << 20)?,
            ways: source.known(&path("ways_of_associativity"), 1 << 20)?,
            sets: sets.map(|sets| sets.saturating_mul(partitions.unwrap_or(1))),
            bytes: source.size(&path("size"))?,
        }))
    }

    /// Name as machine files have it, such as `L1D`.
    pub(super) fn name(&self) -> String {
        let kind = match self.holds {
            Holds::Data => "D",
            Holds::Instruction => "I",
            Holds::Unified => "",
        };
        format!("L{}{kind}", self.level)
    }

    /// Ways, sets and line multiplied; none if one of them is not told.
    fn product(&self) -> Option<u64> {
        Some(
            self.ways?
                .saturating_mul(self.sets?)
                .saturating_mul(self.line?),
        )
    }

    /// Name and size in words, for comparisons by people.
    pub(super) fn in_words(&self) -> String {
        let size = self.bytes.or(self.product());
        let size = size.map_or("of a size that is not told".into(), |n| {
            Bytes(n).to_string()
        });
        format!("{} {size}", self.name())
    }

    /// The same with ways, sets and line.
    pub(super) fn in_full(&self) -> String {
        format!("{} of {}", self.in_words(), self.shape())
    }

    /// `A ways x B sets x C B`, with what is not told left out.
    fn shape(&self) -> String {
        let counted = |n: Option<u64>, what: &str| {
            let plural = if n == Some(1) { "" } else { "s" };
            n.map(|n| format!("{n} {what}{plural}"))
        };
        let line = self.line.map(|line| format!("{line} B"));
        let parts = [counted(self.ways, "way"), counted(self.sets, "set"), line];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" x ")
    }

    /// Whether size and the rest agree, as far as both are told. The kernel rounds the size
    /// to KiB.
    pub(super) fn agrees(&self) -> bool {
        match (self.bytes, self.product()) {
            (Some(bytes), Some(product)) => bytes >> 10 == product >> 10,
            _ => true,
        }
    }

    /// The error for a size that contradicts ways, sets and line.
    pub(super) fn contradiction(
        &self,
        source: &Source<'_>,
        path: impl Fn(&str) -> String,
    ) -> DeriveError {
        let (bytes, product) = (self.bytes.unwrap_or(0), self.product().unwrap_or(0));
        let problem = format!(
            "{}, but {} are {}; one of them is wrong: correct it in a copy of these files, and \
             give that as --from DIR",
            Bytes(bytes),
            self.shape(),
            Bytes(product)
        );
        source.error(&path("size"), problem)
    }

    /// What can be taken for a machine. `path` names the cache's files.
    pub(super) fn taken(
        &self,
        source: &Source<'_>,
        path: impl Fn(&str) -> String,
    ) -> Result<Taken, DeriveError> {
        let line = self.line.unwrap_or(64);
        if line != 64 {
            let problem = format!("{line}; only lines of 64 B are modelled");
            return Err(source.error(&path("coherency_line_size"), problem));
        }
        let taken = |bytes: u64, ways: u64| Taken {
            bytes,
            ways,
            assumed: None,
        };
        let taken = match (self.bytes, self.ways, self.sets) {
            (bytes, Some(ways), Some(sets)) => {
                let product = sets.saturating_mul(ways).saturating_mul(line);
                match bytes {
                    Some(bytes) if product < BLANK && bytes >= BLANK => self.assume(bytes),
                    Some(_) if !self.agrees() => return Err(self.contradiction(source, path)),
                    None if product < BLANK => {
                        let problem = format!("no such file, and {} are no cache", self.shape());
                        return Err(source.error(&path("size"), problem));
                    }
                    _ => taken(product, ways),
                }
            }
            (Some(bytes), Some(ways), None) => taken(bytes, ways),
            (Some(bytes), None, Some(sets)) if bytes / (sets * line).max(1) <= MAX_WAYS => {
                taken(bytes, bytes / (sets * line).max(1))
            }
            (Some(bytes), ..) => self.assume(bytes),
            (None, None, _) => return Err(missing(source, &path("ways_of_associativity"))),
            (None, _, None) => return Err(missing(source, &path("number_of_sets"))),
        };
        if !(1..=MAX_WAYS).contains(&taken.ways) {
            let problem = format!("{} is not a number from 1 to {MAX_WAYS}", taken.ways);
            return Err(source.error(&path("ways_of_associativity"), problem));
        }
        if !taken.bytes.is_multiple_of(taken.ways * line) {
            let problem = format!(
                "{}, which {} ways of whole lines of {line} B do not make",
                Bytes(taken.bytes),
                taken.ways
            );
            return Err(source.error(&path("size"), problem));
        }
        Ok(taken)
    }

    /// Ways for a cache of which only the size is known: near to what such levels have, and
    /// so many that sets are a power of two where that leaves no odd number of ways.
    fn assume(&self, bytes: u64) -> Taken {
        let usual: u64 = match self.level {
            1 => 4,
            2 => 8,
            _ => 16,
        };
        let lines = (bytes / 64).max(1);
        let odd = lines >> lines.trailing_zeros();
        let fitting = (0..6).map(|n| odd << n).find(|ways| *ways >= usual);
        let ways = fitting.filter(|ways| *ways <= 24 && lines.is_multiple_of(*ways));
        let why = match (self.ways, self.sets) {
            (None, None) => "Linux tells neither ways nor sets".to_owned(),
            _ => format!("Linux tells {}", self.shape()),
        };
        Taken {
            bytes,
            ways: ways.unwrap_or(usual.min(lines)),
            assumed: Some(why),
        }
    }
}

/// Neither a part of the shape nor the size is there.
fn missing(source: &Source<'_>, path: &str) -> DeriveError {
    match source.optional(path) {
        Err(error) => error,
        Ok(None) => source.error(path, "no such file, and no size to make up for it"),
        Ok(Some(_)) => source.error(
            path,
            "0, which is no number from 1 to 64, and no size is told",
        ),
    }
}
