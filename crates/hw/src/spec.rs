//! A machine as data: what a preset file says.
//!
//! Sizes, times and frequencies are written with their units (`"8MiB"`,
//! `"2.93GHz"`). Latencies in cycles are load-to-use, counted from the start of
//! the access, as the sources print them.

use std::{collections::BTreeMap, fmt, marker::PhantomData, str::FromStr};

use piebald_units::{Bytes, Hertz, LINE_SHIFT, Picos};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// Reads a value from its written form.
pub(crate) fn written<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let text = String::deserialize(deserializer)?;
    text.parse()
        .map_err(|e| de::Error::custom(format!("\"{text}\" {e}")))
}

/// Reads an optional value from its written form.
fn written_option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: std::fmt::Display,
{
    written(deserializer).map(Some)
}

/// Reads a table. Those that derive their reading would take a list as well, its values in the order of the
/// fields and any number of further ones.
pub(crate) fn table<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Table<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Table<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(Table(PhantomData))
}

/// Reads a table that may be left out.
pub(crate) fn table_option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    table(deserializer).map(Some)
}

/// Reads a list of tables.
fn tables<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(transparent, bound = "T: Deserialize<'de>")]
    struct Item<T>(#[serde(deserialize_with = "table")] T);
    let items = Vec::<Item<T>>::deserialize(deserializer)?;
    Ok(items.into_iter().map(|item| item.0).collect())
}

/// A whole machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Short name, as in `w3540`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Source marks used in the file's comments, and what they stand for.
    pub sources: BTreeMap<String, String>,
    /// Sockets, cores, clock and the instruction window.
    #[serde(deserialize_with = "table")]
    pub core: CoreSpec,
    /// Caches, from the first level outwards.
    #[serde(deserialize_with = "tables")]
    pub cache: Vec<CacheSpec>,
    /// Hardware prefetchers.
    #[serde(default, deserialize_with = "table")]
    pub prefetch: PrefetchSpec,
    /// Translation buffers; none = translation is free.
    #[serde(default, deserialize_with = "table_option")]
    pub tlb: Option<TlbSpec>,
    /// Memory and its controllers.
    #[serde(deserialize_with = "table")]
    pub memory: MemorySpec,
    /// What lies between caches, sockets and memory.
    #[serde(default, deserialize_with = "table")]
    pub links: LinkSpec,
}

impl MachineSpec {
    /// The cache before memory.
    ///
    /// # Panics
    /// For a machine without caches, which is none ([`crate::presets::parse`] refuses it).
    pub fn last_level(&self) -> &CacheSpec {
        let last = self.cache.iter().max_by_key(|c| c.level);
        last.unwrap_or(&self.cache[0])
    }
}

/// Cores and their timing window (design decision 6).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// Number of sockets.
    pub sockets: u16,
    /// Physical cores in each socket.
    pub per_socket: u16,
    /// Hardware threads of a core, 1 or 2; they share core, L1 and L2.
    #[serde(default = "one_u16")]
    pub smt: u16,
    /// Core clock.
    #[serde(deserialize_with = "written")]
    pub clock: Hertz,
    /// Cycles per instruction when no reference leaves the first level. Stands
    /// for everything that the window model does not see: ALU dependences,
    /// branch mispredictions, decode limits.
    pub base_cpi: f64,
    /// Instructions retired per cycle at most.
    pub width: u32,
    /// Reorder window in instructions: misses inside one window overlap.
    pub window: u32,
    /// Outstanding first-level misses of a core.
    pub l1_fill_buffers: u16,
    /// Outstanding misses of a core beyond its private caches.
    pub shared_fill_buffers: u16,
    /// Stores that may wait for their lines at once.
    #[serde(default = "store_buffer")]
    pub store_buffer: u16,
    /// Bytes that a repeated string instruction copies or clears in a cycle while
    /// it stays in the first level: what the kernel's copy and clear loops take.
    #[serde(default = "string_bytes")]
    pub string_bytes: u16,
}

/// Which references a cache serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// Both.
    #[default]
    Unified,
    /// Loads and stores.
    Data,
    /// Instruction fetches.
    Instruction,
}

impl Holds {
    /// The word of machine files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unified => "unified",
            Self::Data => "data",
            Self::Instruction => "instruction",
        }
    }
}

/// Which address picks the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Indexing {
    /// The physical address.
    #[default]
    Physical,
    /// The virtual address (tags stay physical).
    Virtual,
}

/// What a level promises about the levels inside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inclusion {
    /// Nothing: filled on a miss, evicts on its own.
    #[default]
    NonInclusive,
    /// Holds every line of the inner levels; its victims leave them too.
    Inclusive,
    /// Holds what the inner levels evicted; a hit moves the line inwards.
    Exclusive,
    /// Filled by victims of the inner levels, but a hit leaves the line in place.
    Victim,
    /// Filled by victims of the inner levels; a hit moves the line inwards, but leaves a copy of a
    /// line that more than one core has had, as AMD describes its family 10h.
    MostlyExclusive,
}

/// How a victim is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// Least recently used.
    #[default]
    Lru,
    /// Tree pseudo-LRU; needs a power of two of ways.
    TreePlru,
    /// Not recently used: one bit per way.
    Nru,
    /// Static re-reference interval prediction with two bits (Jaleel et al., ISCA 2010).
    Rrip,
    /// A random way, from the machine's seed.
    Random,
}

/// One cache level.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Name for tables, as in `L1D`.
    pub name: String,
    /// 1, 2 or 3.
    pub level: u8,
    /// What it serves; only level 1 may be split.
    #[serde(default)]
    pub holds: Holds,
    /// Capacity of one instance.
    #[serde(deserialize_with = "written")]
    pub size: Bytes,
    /// Associativity, 1..=64.
    pub ways: u16,
    /// Load-to-use latency of a hit in core cycles.
    pub latency: u32,
    /// Core cycles for which a line that comes from this level into the first one occupies the
    /// core's way in: 64 B over the bandwidth with which a core reads what this level holds. What
    /// comes from beyond the last level takes as long as from the last. 0 = no limit, as in
    /// level 1, which is where the way leads.
    #[serde(default)]
    pub line_cycles: u32,
    /// Physical cores that share one instance; divides the cores of a socket.
    #[serde(default = "one_u16")]
    pub shared_by: u16,
    /// Which address picks the set.
    #[serde(default)]
    pub index: Indexing,
    /// One GF(2) mask over the physical address per slice bit, as hexadecimal
    /// text; bit i of the slice is the parity of `address & mask[i]`. Each mask must
    /// tell slices apart that the others do not, by bits above the index inside a
    /// slice. Empty = `slices` of them in turn.
    #[serde(default)]
    pub slice_hash: Vec<String>,
    /// Number of slices, 1..=1024, each with a power of two of sets. Without
    /// `slice_hash`, slice `(address / bytes of a way of a slice) mod slices`, so that
    /// the set is the line's number modulo all sets; with it, as many as its masks
    /// tell apart. None = as many as `slice_hash` tells apart, one without it.
    pub slices: Option<u16>,
    /// How a victim is chosen.
    #[serde(default)]
    pub replacement: Replacement,
    /// What it promises about inner levels.
    #[serde(default)]
    pub inclusion: Inclusion,
}

impl CacheSpec {
    /// Sets of one instance, those of all slices together. Not rounded only if `size` is
    /// a multiple of a line of every way, as it is in a machine that can be built.
    pub fn sets(&self) -> u64 {
        (self.size.0 >> LINE_SHIFT) / u64::from(self.ways.max(1))
    }

    /// Number of slices.
    pub fn slice_count(&self) -> u64 {
        match self.slices {
            Some(slices) => u64::from(slices),
            None => self.slice_count_of_hash(),
        }
    }

    /// Slices that `slice_hash` tells apart; 1 without it.
    pub(crate) fn slice_count_of_hash(&self) -> u64 {
        // A cache has fewer sets than that, so that more masks are refused.
        1 << self.slice_hash.len().min(63)
    }

    /// Sets of one slice: selected by the address bits above the line's, linearly.
    pub fn sets_of_slice(&self) -> u64 {
        self.sets() / self.slice_count().max(1)
    }
}

/// The level into which a prefetcher brings its lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrefetchInto {
    /// None: it is off.
    #[default]
    Off,
    /// The first.
    L1,
    /// The second.
    L2,
}

/// The four Intel prefetchers (MSR 0x1A4, facts of machines section 2), and AMD's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrefetchSpec {
    /// L1: a load of line l in rising order fetches l+1.
    pub dcu_next_line: bool,
    /// L1: strides by instruction address.
    pub dcu_ip_stride: bool,
    /// L2: streams inside a 4 KiB page.
    pub l2_streamer: bool,
    /// L2: the other half of a 128 B pair.
    pub l2_adjacent_line: bool,
    /// AMD's: an access to line l and one to l+1 fetch l+3; likewise downwards. It sees what misses
    /// the first level, and the first use of what it has brought there.
    pub consecutive: PrefetchInto,
}

/// One translation buffer.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbLevelSpec {
    /// Number of entries.
    pub entries: u32,
    /// Associativity.
    pub ways: u16,
}

/// Translation buffers of a core.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbSpec {
    /// First level for data, 4 KiB pages.
    #[serde(deserialize_with = "table")]
    pub l1: TlbLevelSpec,
    /// First level for data, 2 MiB pages.
    #[serde(deserialize_with = "table")]
    pub l1_huge: TlbLevelSpec,
    /// First level for instructions.
    #[serde(deserialize_with = "table")]
    pub l1i: TlbLevelSpec,
    /// Second level, 4 KiB pages; none = misses walk at once.
    #[serde(default, deserialize_with = "table_option")]
    pub l2: Option<TlbLevelSpec>,
    /// Cycles that a hit in the second level adds.
    #[serde(default)]
    pub l2_latency: u32,
    /// Entries of the page-walk cache for the upper levels; 0 = none.
    #[serde(default)]
    pub walk_cache: u32,
}

/// Memory, its controllers and its chips.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySpec {
    /// Installed memory.
    #[serde(deserialize_with = "written")]
    pub size: Bytes,
    /// Time from the last cache's miss to the DRAM command and back that is not
    /// spent in DRAM: controller, queues without load, serial links.
    #[serde(deserialize_with = "written")]
    pub fixed_latency: Picos,
    /// Memory controllers of the whole machine. Lines are spread over those
    /// that are enabled.
    #[serde(default = "one_u16")]
    pub controllers: u16,
    /// How physical memory is divided among the controllers.
    #[serde(default)]
    pub spread: Spread,
    /// Chips behind one controller.
    #[serde(deserialize_with = "table")]
    pub dram: crate::dram::DramSpec,
}

/// How physical memory is divided among controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Each controller has one contiguous part (NUMA).
    #[default]
    Contiguous,
    /// Pages go round robin.
    Page,
    /// Lines go round robin.
    Line,
}

/// Coherence protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// A dirty line that another core reads is written back (Intel).
    #[default]
    Mesi,
    /// A dirty line that another core reads stays dirty with its owner (AMD).
    Moesi,
}

/// A core misses a line that other caches hold unmodified: where does it come from? A modified line
/// always comes from the cache that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clean {
    /// A cache that holds it, as the forward state of MESIF allows.
    #[default]
    Cache,
    /// Memory, which is read while the caches are probed: they only say that they share it. So
    /// do parts with MESI or MOESI alone, such as front-side buses and AMD's families 0Fh and 10h.
    Memory,
}

/// What a miss sends over links beside its request and its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Probes {
    /// Nothing: its home knows who has the line.
    #[default]
    None,
    /// Its home asks every other socket, and each of them answers to the one that asked.
    Broadcast,
}

/// Latencies and bandwidths between caches, sockets and memory.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSpec {
    /// Coherence protocol.
    pub protocol: Protocol,
    /// Load-to-use cycles of a line that another core behind the same last-level
    /// cache holds modified; none = the last level's latency.
    pub same_group_transfer: Option<u32>,
    /// Load-to-use cycles of a line that another last-level group of the same
    /// socket holds; none = as for another socket.
    pub same_socket_transfer: Option<u32>,
    /// Load-to-use cycles of a line that another socket holds; none = memory latency.
    pub other_socket_transfer: Option<u32>,
    /// Source of a clean line that only other caches behind the same last level hold.
    pub same_group_clean: Clean,
    /// Source of a clean line that another last-level group of the same socket holds.
    pub same_socket_clean: Clean,
    /// Source of a clean line that another socket holds.
    pub other_socket_clean: Clean,
    /// Cycles that each hop to another socket's memory adds.
    pub hop_latency: u32,
    /// Hops between sockets: `hops[from][to]`; empty = 1 between any two.
    pub hops: Vec<Vec<u16>>,
    /// Bytes per second of a link between two sockets that are one hop apart, in one direction;
    /// none = links have no limit.
    #[serde(deserialize_with = "written_option")]
    pub link_bytes_per_second: Option<Bytes>,
    /// Who is asked for a line that misses, if links have a limit.
    pub probes: Probes,
    /// Bytes per second of the bus that a socket's misses cross (front-side bus);
    /// none = no such bus.
    #[serde(deserialize_with = "written_option")]
    pub socket_bus_bytes_per_second: Option<Bytes>,
    /// Lines that pass from one last-level group to another cross that bus too: once between
    /// two groups of a socket, the buses of both between sockets. Off = they cost it nothing, but
    /// a modified one is written to memory over it.
    pub socket_bus_transfers: bool,
}

impl LinkSpec {
    /// Hops from one socket to another; 0 to itself.
    pub(crate) fn hops_between(&self, from: usize, to: usize) -> u32 {
        if from == to {
            return 0;
        }
        let row = self.hops.get(from);
        row.and_then(|row| row.get(to))
            .map_or(1, |hops| u32::from(*hops))
    }
}

/// Nehalem has 32, Core 2 has 20, later parts 36 to 64.
const fn string_bytes() -> u16 {
    8
}

const fn store_buffer() -> u16 {
    32
}

const fn one_u16() -> u16 {
    1
}
