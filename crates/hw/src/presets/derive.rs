//! A machine file from what Linux says about the computer it runs on.
//!
//! Linux tells the caches' sizes, ways and sharing, and how threads make cores
//! and sockets. It does not tell latencies, hashes, window sizes or anything
//! about DRAM: those come from a generic template, and their marks say so.
//!
//! This room reads no file: the caller hands in a function that does.

use std::{collections::BTreeSet, fmt::Write};

use piebald_units::{Bytes, CoreId, CoreSet};

use crate::spec::Holds;

/// Why no machine could be derived: the file under `/sys/devices/system/cpu`,
/// and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct DeriveError {
    /// Path below the root.
    pub path: String,
    /// What it holds and what is allowed.
    pub problem: String,
}

/// The text of a machine file for the computer that `read` describes. `read`
/// gets paths below `/sys/devices/system/cpu`, such as
/// `cpu0/cache/index0/size`, and returns the file's text, or `None` if there is
/// no such file.
///
/// Caches are those of the first processor; a machine with unlike cores is
/// described by that one. A last level whose sets are no power of two (slices
/// that are no power of two) is rounded down, and a comment says so.
///
/// # Errors
/// A file that is missing or does not make sense, or a machine with more than
/// 64 hardware threads.
pub fn from_sysfs(read: &dyn Fn(&str) -> Option<String>) -> Result<String, DeriveError> {
    let source = Source { read };
    let shape = Shape::new(&source)?;
    let mut text = String::from(HEAD);
    // Writing to a string cannot fail.
    let _ = shape.write(&source, &mut text);
    let mut index = 0;
    while let Some(cache) = Cache::new(&source, &shape, index)? {
        let _ = cache.write(&mut text);
        index += 1;
    }
    if index == 0 {
        return Err(source.error(
            "cpu0/cache/index0/level",
            "no such file; no caches are described here",
        ));
    }
    text.push_str(TAIL);
    Ok(text)
}

struct Source<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
}

impl Source<'_> {
    fn error(&self, path: &str, problem: impl Into<String>) -> DeriveError {
        DeriveError {
            path: path.into(),
            problem: problem.into(),
        }
    }

    fn text(&self, path: &str) -> Result<String, DeriveError> {
        let text = (self.read)(path).ok_or_else(|| self.error(path, "no such file"))?;
        Ok(text.trim().to_string())
    }

    fn number(&self, path: &str, low: u64, high: u64) -> Result<u64, DeriveError> {
        let text = self.text(path)?;
        match text.parse() {
            Ok(n) if (low..=high).contains(&n) => Ok(n),
            _ => Err(self.error(
                path,
                format!("\"{text}\" is not a number in {low}..={high}"),
            )),
        }
    }

    fn cores(&self, path: &str) -> Result<CoreSet, DeriveError> {
        let text = self.text(path)?;
        let set = text
            .parse::<CoreSet>()
            .map_err(|e| self.error(path, format!("\"{text}\" {e}")))?;
        match set.is_empty() {
            true => Err(self.error(path, "names no processor")),
            false => Ok(set),
        }
    }
}

/// Sockets, cores and threads.
struct Shape {
    sockets: usize,
    per_socket: usize,
    smt: usize,
}

impl Shape {
    fn new(source: &Source<'_>) -> Result<Self, DeriveError> {
        let online = source.cores("online")?;
        let mut sockets = BTreeSet::new();
        let mut cores = BTreeSet::new();
        for CoreId(cpu) in online.iter() {
            let id = |name| source.number(&format!("cpu{cpu}/topology/{name}"), 0, 1 << 20);
            let socket = id("physical_package_id")?;
            sockets.insert(socket);
            cores.insert((socket, id("core_id")?));
        }
        let smt = online.len() as usize / cores.len();
        let even = smt * cores.len() == online.len() as usize && smt <= 2;
        if !even || !cores.len().is_multiple_of(sockets.len()) {
            let problem = format!(
                "{} threads on {} cores of {} sockets; each core must have 1 or 2, each socket as many cores",
                online.len(),
                cores.len(),
                sockets.len()
            );
            return Err(source.error("online", problem));
        }
        Ok(Self {
            sockets: sockets.len(),
            per_socket: cores.len() / sockets.len(),
            smt,
        })
    }

    fn write(&self, source: &Source<'_>, out: &mut String) -> std::fmt::Result {
        let khz = ["base_frequency", "cpuinfo_max_freq"]
            .iter()
            .find_map(|name| {
                source
                    .number(&format!("cpu0/cpufreq/{name}"), 100_000, 20_000_000)
                    .ok()
            });
        writeln!(out, "[core]")?;
        writeln!(out, "sockets = {} # [SYS]", self.sockets)?;
        writeln!(out, "per_socket = {} # [SYS]", self.per_socket)?;
        writeln!(out, "smt = {} # [SYS]", self.smt)?;
        match khz {
            Some(khz) => writeln!(out, "clock = \"{khz}kHz\" # [SYS]")?,
            None => writeln!(out, "clock = \"2.5GHz\" # [GEN] not told here")?,
        }
        out.push_str(CORE);
        Ok(())
    }
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
    /// The cache with this index; `None` behind the last.
    fn new(source: &Source<'_>, index: u32) -> Result<Option<Self>, DeriveError> {
        let path = |name: &str| format!("cpu0/cache/index{index}/{name}");
        if (source.read)(&path("level")).is_none() {
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
        Ok(Some(Self {
            level: source.number(&path("level"), 1, 9)?,
            holds,
            line: source.number(&path("coherency_line_size"), 1, 1 << 20)?,
            ways: source.number(&path("ways_of_associativity"), 0, 1 << 20)?,
            sets: source.number(&path("number_of_sets"), 1, 1 << 32)?,
            shared_with: source.text(&path("shared_cpu_list"))?,
        }))
    }
}

/// The caches of the first processor, in Linux's order; empty if it describes none. `read` is
/// that of [`from_sysfs`]. Unlike there, every size and number of sharers is taken.
///
/// # Errors
/// A file that is missing or does not make sense.
pub fn caches(read: &dyn Fn(&str) -> Option<String>) -> Result<Vec<CacheFacts>, DeriveError> {
    let source = Source { read };
    let mut found = Vec::new();
    while let Some(cache) = CacheFacts::new(&source, found.len() as u32)? {
        found.push(cache);
    }
    Ok(found)
}

/// One cache of the first processor, as a machine file has it.
struct Cache {
    level: u64,
    holds: Holds,
    told: Bytes,
    sets: u64,
    ways: u64,
    shared_by: usize,
}

impl Cache {
    /// The cache with this index; `None` behind the last.
    fn new(source: &Source<'_>, shape: &Shape, index: u32) -> Result<Option<Self>, DeriveError> {
        let path = |name: &str| format!("cpu0/cache/index{index}/{name}");
        let Some(facts) = CacheFacts::new(source, index)? else {
            return Ok(None);
        };
        if facts.line != 64 {
            return Err(source.error(
                &path("coherency_line_size"),
                format!("{}; only lines of 64 B are modelled", facts.line),
            ));
        }
        let ways = source.number(&path("ways_of_associativity"), 1, 64)?;
        let threads = source.cores(&path("shared_cpu_list"))?.len() as usize;
        let cores = (threads / shape.smt).clamp(1, shape.per_socket);
        if !shape.per_socket.is_multiple_of(cores) {
            let problem = format!(
                "{cores} cores share it, which does not divide {}",
                shape.per_socket
            );
            return Err(source.error(&path("shared_cpu_list"), problem));
        }
        Ok(Some(Self {
            level: source.number(&path("level"), 1, 3)?,
            holds: facts.holds,
            told: Bytes(facts.sets * ways * facts.line),
            sets: 1 << facts.sets.ilog2(),
            ways,
            shared_by: cores,
        }))
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let (kind, holds) = match self.holds {
            Holds::Data => ("D", "data"),
            Holds::Instruction => ("I", "instruction"),
            Holds::Unified => ("", "unified"),
        };
        let size = Bytes(self.sets * self.ways * 64);
        let latency = [4, 14, 50][self.level.clamp(1, 3) as usize - 1];
        writeln!(out, "\n[[cache]]\nname = \"L{}{kind}\"", self.level)?;
        writeln!(out, "level = {} # [SYS]", self.level)?;
        writeln!(out, "holds = \"{holds}\" # [SYS]")?;
        match size == self.told {
            true => writeln!(out, "size = \"{size}\" # [SYS]")?,
            false => writeln!(
                out,
                "size = \"{size}\" # [SYS] {} told; rounded down to a power of two of sets",
                self.told
            )?,
        }
        writeln!(out, "ways = {} # [SYS]", self.ways)?;
        writeln!(out, "latency = {latency} # [GEN]")?;
        writeln!(out, "shared_by = {} # [SYS]", self.shared_by)?;
        let index = if self.level == 1 {
            "virtual"
        } else {
            "physical"
        };
        writeln!(out, "index = \"{index}\" # [GEN]")?;
        writeln!(
            out,
            "slice_hash = [] # [GEN] Linux does not tell; probably wrong for a last level of today"
        )?;
        let replacement = if self.level == 3 { "rrip" } else { "lru" };
        writeln!(out, "replacement = \"{replacement}\" # [GEN]")?;
        writeln!(out, "inclusion = \"non-inclusive\" # [GEN]")
    }
}

const HEAD: &str = r#"# Derived from /sys/devices/system/cpu. Everything marked GEN is a generic value
# and not this computer's: replace it where it matters.

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
