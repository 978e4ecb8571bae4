//! The table `mfc` of a policy.

use std::{fmt, str::FromStr};

use piebald_policy::mfc::{CallBuffer, Competitive, Config, MinRead, Second, Switches};
use piebald_units::{Bytes, Picos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{KeyPath, Micros, Problem, Text, Whole, Word, Words, value::Notation};

/// Most files that MFC may be told to know, and the largest of its other numbers.
const MOST: u64 = 1 << 20;
/// Times of a decision: up to a second.
type Decision = Micros<0, 1_000_000_000>;
/// Periods, in milliseconds: a thousandth to a million.
type Period = Micros<1, 1_000_000_000>;
/// Parts of a file.
const CHUNK: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

/// How MFC places reads; the defaults are the paper's, and ours where it gives none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mfc {
    /// Reads below this size stay where they are.
    pub min_read: Text<LeastRead>,
    /// May files be in the caches of several cores?
    pub copies: bool,
    /// What is done with a second read of a reader that was moved.
    pub second: Word<Second>,
    /// A core with more runnable threads than this is busy.
    pub busy: Whole<0, MOST>,
    /// A core with fewer runnable threads than this is idle.
    pub idle: Whole<0, MOST>,
    /// How many times more popular a file must be than the one that its copy displaces.
    pub lfu_factor: Whole<1, MOST>,
    /// How often uses are halved, in milliseconds.
    pub decay_ms: Period,
    /// Which moves of threads count against copying a file to its reader.
    pub competitive: Word<Competitive>,
    /// Does a moved thread take along what its call fills, beside 4 KiB?
    pub call_buffer: Word<CallBuffer>,
    /// Parts of a large file: 4KiB to 1GiB.
    pub chunk: Text<Bytes>,
    /// Files and chunks that it can tell apart.
    pub files: Whole<1, MOST>,
    /// How fast one core reads from memory, in bytes per microsecond.
    pub off_chip_bytes_per_us: Whole<1, MOST>,
    /// How fast one core reads from its caches, in bytes per microsecond.
    pub on_chip_bytes_per_us: Whole<1, MOST>,
    /// Time of a decision for which the file was looked up.
    pub access_us: Decision,
    /// Time of a decision that assigns a file to a core.
    pub assignment_us: Decision,
}

impl Default for Mfc {
    fn default() -> Self {
        let paper = Config::PAPER;
        Self {
            min_read: Text(LeastRead(paper.min_read)),
            copies: true,
            second: Word(Second::Place),
            busy: Whole::new(paper.busy.into()),
            idle: Whole::new(paper.idle.into()),
            lfu_factor: Whole::new(paper.lfu_factor.into()),
            decay_ms: Picos(paper.period.0 / 1000).into(),
            competitive: Word(paper.competitive),
            call_buffer: Word(paper.call_buffer),
            chunk: Text(paper.chunk),
            files: Whole::new(4096),
            off_chip_bytes_per_us: Whole::new(paper.off_chip_bytes_per_us.into()),
            on_chip_bytes_per_us: Whole::new(paper.on_chip_bytes_per_us.into()),
            // Published: 0.495 and 4.101 us.
            access_us: Picos(495_000).into(),
            assignment_us: Picos(4_101_000).into(),
        }
    }
}

impl Mfc {
    /// The same as the policy takes it, but for what moving a thread takes.
    pub fn config(&self) -> Config {
        let mut config = Config::PAPER;
        config.min_read = self.min_read.0.0;
        config.busy = self.busy.get_u32();
        config.idle = self.idle.get_u32();
        config.lfu_factor = self.lfu_factor.get_u32();
        config.period = Picos(self.decay_ms.picos().0.saturating_mul(1000));
        config.competitive = self.competitive.0;
        config.call_buffer = self.call_buffer.0;
        config.chunk = self.chunk.0;
        config.off_chip_bytes_per_us = self.off_chip_bytes_per_us.get_u32();
        config.on_chip_bytes_per_us = self.on_chip_bytes_per_us.get_u32();
        config
    }

    /// What is switched on.
    pub fn switches(&self) -> Switches {
        Switches {
            copies: self.copies,
            second: self.second.0,
            ..Switches::ALL
        }
    }

    pub(crate) fn check(&self, at: &KeyPath, problems: &mut Vec<Problem>) {
        let chunk = self.chunk.0;
        if !CHUNK.contains(&chunk.0) {
            problems.push(Problem::refuse(at.key("chunk"), chunk, "4KiB to 1GiB"));
        }
    }
}

/// The least size of reads that are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastRead(pub MinRead);

impl FromStr for LeastRead {
    type Err = <Bytes as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "break-even" => Ok(Self(MinRead::BreakEven)),
            _ => Ok(Self(MinRead::Fixed(text.parse()?))),
        }
    }
}

impl fmt::Display for LeastRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            MinRead::BreakEven => f.write_str("break-even"),
            MinRead::Fixed(bytes) => bytes.fmt(f),
        }
    }
}

impl Notation for LeastRead {
    const WHAT: &'static str = "a size such as \"45KiB\", or \"break-even\"";
}

impl Words for Competitive {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("file", Self::PerFile, "All that were made for the file."),
        (
            "core",
            Self::PerCore,
            "Those made for the file from the reader's core, halved each period.",
        ),
        ("off", Self::Off, "Nobody's: threads always move."),
    ];
}

impl Words for CallBuffer {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("left", Self::Left, "No, as the paper has it."),
        (
            "counted",
            Self::Counted,
            "Yes: moving it costs as much more as loading those bytes from memory.",
        ),
    ];
}

impl Words for Second {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("place", Self::Place, "It is treated as every other."),
        (
            "ignore",
            Self::Ignore,
            "It stays where the reader is, and the file's uses are not counted.",
        ),
    ];
}
