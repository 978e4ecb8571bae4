//! A machine file from what Linux says about the computer it runs on.
//!
//! Linux tells the caches' sizes, ways and sharing, and how threads make cores
//! and sockets. It does not tell latencies, hashes, window sizes or anything
//! about DRAM: those come from a generic template, and their marks say so.
//!
//! A machine has cores of one kind, so that processors are chosen where there are
//! several kinds. What Linux tells twice, as size and as ways and sets, must agree.
//!
//! This room reads no file: the caller hands in a function that does.

mod cores;
mod cpus;
mod error;
mod source;
mod told;

use std::fmt::Write;

use piebald_units::Bytes;

pub use cpus::{CpuList, NoCpuList};
pub use error::DeriveError;
pub use source::Read;

use crate::spec::Holds;
use cores::Shape;
use source::Source;
use told::{Taken, Told};

/// A machine file, and what its user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// The file.
    pub text: String,
    /// What is assumed although Linux tells something about it, one line each.
    pub warnings: Vec<String>,
}

/// The machine file for the computer that `read` describes, or for some of its
/// processors. `read` gets paths below `/sys/devices/system/cpu`, such as
/// `cpu0/cache/index0/size` ([`Read`]). `cpus` are the processors that make the machine, all of those
/// that are online if it is `None`.
///
/// A cache whose sets are no power of two becomes one of several slices, with all
/// of its sets. A cache whose size alone is known, as in virtual machines on Arm,
/// gets ways by assumption; a warning and its line say so.
///
/// # Errors
/// A file that is missing, cannot be read or does not make sense, processors of several kinds,
/// more than 64, or such as are not online.
pub fn from_sysfs(read: Read<'_>, cpus: Option<&CpuList>) -> Result<Derived, DeriveError> {
    let source = Source { read };
    let cpus = cores::chosen(&source, cpus)?;
    let caches = cores::of_one_kind(&source, &cpus)?;
    let shape = Shape::new(&source, &cpus)?;
    let first = cpus.first().unwrap_or(0);
    if caches.is_empty() {
        return Err(source.error(
            &told::path(first, 0, "level"),
            "no such file; no caches are described here",
        ));
    }
    let mut derived = Derived {
        text: HEAD.replacen("PROCESSORS", &cpus.to_string(), 1),
        warnings: Vec::new(),
    };
    // Writing to a string cannot fail.
    let clock = clock(&source, &shape.cpus)?;
    let _ = write_cores(&shape, clock, &mut derived.text);
    for (index, told) in caches.iter().enumerate() {
        let path = |name: &str| told::path(first, index, name);
        let at = &told::path(first, index, "");
        let cache = Cache {
            told,
            level: level_of(&source, &path("level"))?,
            taken: told.taken(&source, path)?,
            shared_by: shape.sharing(&source, |cpu, name| told::path(cpu, index, name))?,
            is_last: index + 1 == caches.len(),
        };
        cache.warn(at.trim_end_matches('/'), &mut derived.warnings);
        let _ = cache.write(&mut derived.text);
    }
    let levels: Vec<u64> = caches.iter().map(|told| told.level).collect();
    shape.check_nesting(&source, &levels)?;
    derived.text.push_str(TAIL);
    Ok(derived)
}

/// A level that a machine can have.
fn level_of(source: &Source<'_>, path: &str) -> Result<u64, DeriveError> {
    let level = source.number(path, 1, 1 << 10)?;
    if level <= 3 {
        return Ok(level);
    }
    let problem = format!(
        "level {level} is none of 1 to 3: leave its folder out of a copy of these files, given \
         as --from DIR"
    );
    Err(source.error(path, problem))
}

fn write_cores(shape: &Shape, clock: Option<(u64, String)>, out: &mut String) -> std::fmt::Result {
    writeln!(out, "[core]")?;
    match shape.tells_sockets {
        true => writeln!(out, "sockets = {} # [SYS]", shape.sockets)?,
        false => writeln!(out, "sockets = {} # [GEN] not told here", shape.sockets)?,
    }
    writeln!(out, "per_socket = {} # [SYS]", shape.per_socket)?;
    writeln!(out, "smt = {} # [SYS]", shape.smt)?;
    match clock {
        Some((khz, remark)) => writeln!(out, "clock = \"{khz}kHz\" # [SYS]{remark}")?,
        None => writeln!(out, "clock = \"2.5GHz\" # [GEN] not told here")?,
    }
    out.push_str(CORE);
    Ok(())
}

/// The first processor's clock in kHz, and a remark if others have another.
fn clock(source: &Source<'_>, cpus: &CpuList) -> Result<Option<(u64, String)>, DeriveError> {
    for name in ["base_frequency", "cpuinfo_max_freq"] {
        let path = |cpu: u32| format!("cpu{cpu}/cpufreq/{name}");
        let mut told = Vec::new();
        for cpu in cpus.iter() {
            // 0 is a clock that is not known.
            if source.known(&path(cpu), 20_000_000)?.is_some() {
                told.push((cpu, source.number(&path(cpu), 100_000, 20_000_000)?));
            }
        }
        let own = told.iter().find(|(cpu, _)| Some(*cpu) == cpus.first());
        let Some((_, own)) = own else { continue };
        let all = || told.iter().map(|(_, khz)| *khz);
        let (low, high) = (all().min().unwrap_or(*own), all().max().unwrap_or(*own));
        let remark = match low == high {
            true => String::new(),
            false => format!(" the first processor's; there are {low}kHz to {high}kHz"),
        };
        return Ok(Some((*own, remark)));
    }
    Ok(None)
}

/// A cache as Linux describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheFacts {
    /// 1 for the closest to the core.
    pub level: u64,
    /// What it serves.
    pub holds: Holds,
    /// Bytes of a line.
    pub line: u64,
    /// Lines of a set.
    pub ways: u64,
    /// Sets, those of all slices together.
    pub sets: u64,
    /// Hardware threads that share it, as a list such as `0-3,8`.
    pub shared_with: String,
}

impl CacheFacts {
    fn new(source: &Source<'_>, cpu: u32, index: usize, told: &Told) -> Result<Self, DeriveError> {
        let path = |name: &str| told::path(cpu, index, name);
        if !told.agrees() {
            return Err(told.contradiction(source, path));
        }
        Ok(Self {
            level: told.level,
            holds: told.holds,
            line: source.number(&path("coherency_line_size"), 1, 1 << 20)?,
            ways: source.number(&path("ways_of_associativity"), 0, 1 << 20)?,
            sets: source.number(&path("number_of_sets"), 1, 1 << 32)?,
            shared_with: source.text(&path("shared_cpu_list"))?,
        })
    }
}

/// The caches of the first processor that is online, in Linux's order; empty if it describes
/// none. `read` is that of [`from_sysfs`]. Unlike there, every size and number of sharers is
/// taken.
///
/// # Errors
/// A file that is missing or does not make sense; a size that ways, sets and line contradict.
pub fn caches(read: Read<'_>) -> Result<Vec<CacheFacts>, DeriveError> {
    let source = Source { read };
    let first = match source.optional("online")? {
        Some(_) => source.cpus("online")?.first(),
        None => None,
    };
    let cpu = first.unwrap_or(0);
    let all = Told::all(&source, cpu)?.into_iter().enumerate();
    all.map(|(index, told)| CacheFacts::new(&source, cpu, index, &told))
        .collect()
}

/// One cache of the first processor, as a machine file has it.
struct Cache<'a> {
    told: &'a Told,
    /// 1 to 3.
    level: u64,
    taken: Taken,
    shared_by: usize,
    is_last: bool,
}

impl Cache<'_> {
    fn sets(&self) -> u64 {
        self.taken.bytes / (self.taken.ways * 64).max(1)
    }

    /// Least number of slices with a power of two of sets each.
    fn slices(&self) -> u64 {
        self.sets() >> self.sets().trailing_zeros().min(63)
    }

    fn warn(&self, path: &str, warnings: &mut Vec<String>) {
        let (size, sets, slices) = (Bytes(self.taken.bytes), self.sets(), self.slices());
        if let Some(why) = &self.taken.assumed {
            warnings.push(format!(
                "{path}: size is {size}, but {why}, as in virtual machines, which hide their \
                 caches; the size is taken, and {} ways are an assumption",
                self.taken.ways
            ));
        }
        if slices > 1 {
            warnings.push(format!(
                "{path}: {sets} sets are no power of two: {slices} slices of {} sets that take \
                 turns; Linux does not tell the real number of slices, nor their hash",
                sets / slices
            ));
        }
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let holds = match self.told.holds {
            Holds::Data => "data",
            Holds::Instruction => "instruction",
            Holds::Unified => "unified",
        };
        let latency = [4, 14, 50][self.level.clamp(1, 3) as usize - 1];
        writeln!(out, "\n[[cache]]\nname = \"{}\"", self.told.name())?;
        writeln!(out, "level = {} # [SYS]", self.level)?;
        writeln!(out, "holds = \"{holds}\" # [SYS]")?;
        writeln!(out, "size = \"{}\" # [SYS]", Bytes(self.taken.bytes))?;
        match &self.taken.assumed {
            None => writeln!(out, "ways = {} # [SYS]", self.taken.ways)?,
            Some(why) => writeln!(out, "ways = {} # [GEN] assumed: {why}", self.taken.ways)?,
        }
        writeln!(out, "latency = {latency} # [GEN]")?;
        writeln!(out, "shared_by = {} # [SYS]", self.shared_by)?;
        // A first level is looked up while the address is translated. The model's virtual index
        // has a power of two of sets.
        let index = match self.level == 1 && self.slices() == 1 {
            true => "virtual",
            false => "physical",
        };
        writeln!(out, "index = \"{index}\" # [GEN]")?;
        let hash = match self.is_last {
            true => "; probably wrong for a last level of today",
            false => "",
        };
        writeln!(out, "slice_hash = [] # [GEN] Linux does not tell{hash}")?;
        if self.slices() > 1 {
            writeln!(
                out,
                "slices = {} # [GEN] the least for {} sets; the real number is a multiple of it",
                self.slices(),
                self.sets()
            )?;
        }
        let replacement = if self.level == 3 { "rrip" } else { "lru" };
        writeln!(out, "replacement = \"{replacement}\" # [GEN]")?;
        writeln!(out, "inclusion = \"non-inclusive\" # [GEN]")
    }
}

const HEAD: &str = r#"# Derived from /sys/devices/system/cpu, processors PROCESSORS. Everything marked
# GEN is a generic value and not this computer's: replace it where it matters.

name = "derived"
title = "Derived from this computer; latencies and memory are generic"

[sources]
SYS = "read from /sys/devices/system/cpu"
GEN = "generic template, not this computer's value"

"#;

const CORE: &str = r#"base_cpi = 0.5 # [GEN]
width = 4 # [GEN]
window = 224 # [GEN]
l1_fill_buffers = 12 # [GEN]
shared_fill_buffers = 32 # [GEN]
store_buffer = 56 # [GEN]
string_bytes = 32 # [GEN]
"#;

const TAIL: &str = r#"
[prefetch]
dcu_next_line = true # [GEN]
dcu_ip_stride = true # [GEN]
l2_streamer = true # [GEN]
l2_adjacent_line = true # [GEN]

[tlb]
l1 = { entries = 64, ways = 4 } # [GEN]
l1_huge = { entries = 32, ways = 4 } # [GEN]
l1i = { entries = 128, ways = 8 } # [GEN]
l2 = { entries = 1536, ways = 12 } # [GEN]
l2_latency = 7 # [GEN]
walk_cache = 32 # [GEN]

[memory]
size = "16GiB" # [GEN]
fixed_latency = "35ns" # [GEN]
controllers = 1 # [GEN]
spread = "contiguous" # [GEN]

[memory.dram]
channels = 2 # [GEN]
interleave = { xor = [[8, 14, 18, 22]] } # [GEN]
ranks = 2 # [GEN]
banks = 16 # [GEN]
row_size = "8KiB" # [GEN]
bus_bytes = 8 # [GEN]
map = "row-rank-bank-column-xor" # [GEN]
page_policy = "open" # [GEN]
refresh = true # [GEN]
write_queue = { high = 32, low = 8 } # [GEN]

[memory.dram.timing]
tck = "625ps" # [GEN] DDR4-3200 22-22-22
cl = 22 # [GEN]
cwl = 16 # [GEN]
bl = 8 # [GEN]
rcd = 22 # [GEN]
rp = 22 # [GEN]
ras = 52 # [GEN]
rc = 74 # [GEN]
ccd = 4 # [GEN]
rrd = 4 # [GEN]
faw = 34 # [GEN]
wr = 24 # [GEN]
wtr = 12 # [GEN]
rtp = 12 # [GEN]
rtrs = 2 # [GEN]
rfc = 560 # [GEN]
refi = 12480 # [GEN]

[links]
protocol = "mesi" # [GEN]
hop_latency = 200 # [GEN]
"#;
