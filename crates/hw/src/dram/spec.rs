//! What a machine file says about the chips behind one memory controller.

use piebald_units::{Bytes, Picos};
use serde::Deserialize;

use crate::spec::{table, table_option, written};

/// Chips behind one memory controller.
///
/// Channels, ranks and banks that are XORs of address bits come in powers of
/// two; only a modulo interleave may have another number of channels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramSpec {
    /// Channels of one controller, 1..=64. Each has its own data bus.
    #[serde(default = "one")]
    pub channels: u16,
    /// How lines are spread over the channels; needed exactly if there is more
    /// than one.
    pub interleave: Option<Interleave>,
    /// Ranks of one channel over all its DIMMs, a power of two, 1..=64.
    #[serde(default = "one")]
    pub ranks: u16,
    /// Banks of one rank, a power of two, 1..=256.
    pub banks: u16,
    /// Bytes of one open row of a rank, a power of two of at least one line.
    #[serde(deserialize_with = "written")]
    pub row_size: Bytes,
    /// Width of the data bus in bytes, a power of two, 1..=32; `bus_bytes *
    /// timing.bl` is one 64 B line. Channels that run in lockstep count as one
    /// wide channel.
    #[serde(default = "eight")]
    pub bus_bytes: u16,
    /// Standard address map; none = `row-rank-bank-column`, unless `bits` says
    /// the map bit by bit.
    pub map: Option<NamedMap>,
    /// Address map bit by bit; excludes `map`.
    #[serde(default, deserialize_with = "table_option")]
    pub bits: Option<BitMap>,
    /// What happens to a row after an access.
    #[serde(default)]
    pub page_policy: PagePolicy,
    /// Whether ranks are refreshed.
    #[serde(default = "yes")]
    pub refresh: bool,
    /// The write queue of each channel.
    #[serde(default, deserialize_with = "table")]
    pub write_queue: WriteQueueSpec,
    /// Timing of the chips.
    #[serde(deserialize_with = "table")]
    pub timing: TimingSpec,
}

/// How lines are spread over channels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interleave {
    /// One list of physical address bits per bit of the channel number; the bit
    /// is their XOR. In a named map the first bit of each list belongs to the
    /// channel, the others also to whatever field they fall into.
    Xor(Vec<Vec<u8>>),
    /// Blocks of this size (a power of two of at least one line) go round
    /// robin. What remains after the division is the address inside the
    /// channel, and `bits` numbers the bits of that.
    Modulo(#[serde(deserialize_with = "written")] Bytes),
}

/// Standard address maps, named from the highest bits to the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedMap {
    /// A row is contiguous apart from the channel bits; the next row of the
    /// address space lies in the next bank. Suits open rows.
    #[default]
    RowRankBankColumn,
    /// As before, with bank bits XORed with the lowest row bits, so that
    /// strides of a whole row turn do not stay in one bank (Zhang, Zhu, Zhang,
    /// MICRO 2000).
    RowRankBankColumnXor,
    /// Consecutive lines of a channel lie in different banks. Suits closed rows.
    RowColumnRankBank,
}

/// An address map bit by bit: numbers are physical address bits (of the address
/// inside the channel if the interleave is a modulo).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitMap {
    /// One list per bank bit, lowest first; the bank bit is the XOR of the list.
    pub bank: Vec<Vec<u8>>,
    /// One list per rank bit, lowest first; likewise.
    #[serde(default)]
    pub rank: Vec<Vec<u8>>,
    /// Column bits in bus words, lowest first: starts above the bits of the bus
    /// width and includes those inside the line.
    pub column: Vec<u8>,
    /// Row bits, lowest first; none = every bit of the installed memory that
    /// nothing else claims.
    pub row: Option<Vec<u8>>,
}

/// What happens to a row after an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PagePolicy {
    /// It stays open until another row of the bank, or a refresh, needs it shut.
    #[default]
    Open,
    /// Every access closes it behind itself (auto-precharge).
    Closed,
}

/// The write queue of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteQueueSpec {
    /// Writes that start a drain, 1..=64. 1 sends each write at once.
    pub high: u16,
    /// Writes that a drain leaves, below `high`.
    pub low: u16,
}

impl Default for WriteQueueSpec {
    fn default() -> Self {
        Self { high: 24, low: 8 }
    }
}

/// Timing of the chips in clock cycles of the bus, by the names of the JEDEC
/// standards without their `t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingSpec {
    /// Clock cycle, 100 ps..=100 ns; a data bus moves two words in it.
    #[serde(deserialize_with = "written")]
    pub tck: Picos,
    /// Column read to the first word of data.
    pub cl: u32,
    /// Column write to the first word of data.
    pub cwl: u32,
    /// Words of a burst.
    pub bl: u32,
    /// Activate to column command.
    pub rcd: u32,
    /// Precharge to activate.
    pub rp: u32,
    /// Activate to precharge.
    pub ras: u32,
    /// Activate to activate of the same bank, at least `ras + rp`.
    pub rc: u32,
    /// Column command to column command of the same rank, at least `bl / 2`.
    pub ccd: u32,
    /// Activate to activate of another bank of the rank.
    pub rrd: u32,
    /// Window that holds at most four activates of a rank.
    pub faw: u32,
    /// End of write data to precharge.
    pub wr: u32,
    /// End of write data to column read of the same rank.
    pub wtr: u32,
    /// Column read to precharge.
    pub rtp: u32,
    /// Idle bus between the bursts of two ranks.
    #[serde(default = "one_cycle")]
    pub rtrs: u32,
    /// Length of a refresh.
    pub rfc: u32,
    /// Time between refreshes of a rank.
    pub refi: u32,
}

const fn one() -> u16 {
    1
}

const fn one_cycle() -> u32 {
    1
}

const fn eight() -> u16 {
    8
}

const fn yes() -> bool {
    true
}
