//! The parameters, where they come from, and what follows from them.

use core::fmt;

use piebald_units::{Bytes, Picos};

use super::topology::{MAX_HOPS, TopologyError};

/// Numbers of hops: 0 to [`MAX_HOPS`].
const NR_HOPS: usize = MAX_HOPS as usize + 1;

/// From which size on a file is worth moving a thread for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinRead {
    /// This size.
    Fixed(Bytes),
    /// The size at which the nearest migration pays by the cost model (section 4.5).
    BreakEven,
}

/// What a file needs to be copied into the spare room of the reader's core if some
/// other core has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// Nothing: lines 6 to 10 of Figure 2 as they are printed.
    Always,
    /// The core "is a frequent user" of it, "not reflected in pseudo-code" (section
    /// 4.2): readers were moved away from here for it so often in the last periods
    /// (halved each period). Also if the cores that have it are busy and this one is
    /// not.
    Frequent(u32),
}

/// When a file that some core has is copied into another core's spare room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// Whenever there is room: lines 12 to 16 of Figure 2 as they are printed.
    Always,
    /// If all cores that have it are busy and the other is not. "In general SCU arranges
    /// to keep at most one copy of each data item" (section 3).
    WhenBusy,
}

/// Whose migrations count against the cost of loading a file (section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Competitive {
    /// Nobody's: threads always move.
    Off,
    /// All that were made for the file: "the cumulative cost of multiple thread
    /// migrations for a file".
    PerFile,
    /// Those made for the file from the reader's core, halved each period: "migrate a file
    /// to the thread's core instead of paying the cost of thread migration over and over".
    PerCore,
}

/// Does a thread take along what a read fills?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallBuffer {
    /// No: "4 Kbytes" whatever it reads (section 4.5).
    Left,
    /// Yes: the call's buffer is dirty in the cache that the thread leaves, and is copied as
    /// the working set is. What the call fills of the file or chunk counts, at the speed of
    /// memory.
    Counted,
}

/// What becomes of `f.use[]` when a file comes to another core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// They stay where they were counted, as in Figure 2. A file that has just come to a
    /// core then has fewer uses there than any other, and gives way to the next file that
    /// was ever used twice, however popular both are.
    Stay,
    /// They follow the file: a new copy in place of none takes over all, one beside
    /// another half of that one's. The sum stays. So "the on-chip files are all more
    /// popular than the others, as measured by their `f.use[]` counts" (section 4.3).
    Follow,
}

/// The parameters of MFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// `min_read_size`. Published: 45 KB (section 6.1).
    pub min_read: MinRead,
    /// How fast one core reads from memory, in bytes per microsecond. Published: 256 KB
    /// in 145 us (section 6.6.1).
    pub off_chip_bytes_per_us: u32,
    /// How fast one core reads from its caches, in bytes per microsecond. Published:
    /// 256 KB in 45 us (section 6.6.1).
    pub on_chip_bytes_per_us: u32,
    /// What it takes to move a thread between run queues, by hops. Published: 9.2, 10.5
    /// and 11.7 us for 0, 1 and 2 (section 4.5); 3 hops go on at the same rate
    /// \[ours\].
    pub migration: [Picos; NR_HOPS],
    /// What a thread takes along, loaded at the speed of memory, since another chip's
    /// cache is as far (section 2). Published: 4 KB (section 4.5).
    pub working_set: Bytes,
    /// See [`CallBuffer`]. Published: left, a fixed working set.
    pub call_buffer: CallBuffer,
    /// `busy_threshold`: a core with more runnable threads than this, the reader not
    /// counted, is busy. Not published; 1 \[ours\].
    pub busy: u32,
    /// `idle_threshold`: a core with fewer runnable threads than this, the reader not
    /// counted, is idle. Not published; 1 \[ours\].
    pub idle: u32,
    /// How many times more popular a file must be than the one that its copy
    /// displaces. Published: 2 (Figure 2, line 35).
    pub lfu_factor: u32,
    /// How often uses are halved (`update_use`). Not published; 1 s \[ours\].
    pub period: Picos,
    /// Uses are divided by two to this power each period. Published: 1 (Figure 2, line
    /// 47).
    pub decay_shift: u32,
    /// See [`Here`]. The figure has no condition, the text names one without a number;
    /// 2, which is the least that is "repeated" \[ours\].
    pub here: Here,
    /// See [`Elsewhere`]. The figure has no condition; [`Elsewhere::WhenBusy`], which is
    /// the condition of section 4.4 for copies \[ours\].
    pub elsewhere: Elsewhere,
    /// See [`Uses`]. [`Uses::Follow`], for what section 4.3 says of LFU \[ours\].
    pub uses: Uses,
    /// See [`Competitive`]. Section 4.5 names no counter, and its reason speaks of one
    /// thread's core: per core. Counting per file contradicts the paper's figures: a file
    /// would be loaded from memory at least once in 145 / 10.5 = 14 migrations (sections
    /// 4.5 and 6.6.1), 7 % of the bytes that are read, where Figure 5 has 190 times less
    /// than Linux. With halving each second even this rule does so, in runs longer than
    /// that; the period is not published.
    pub competitive: Competitive,
    /// Parts of a large file. Published: "half the size of a core's L2 cache" (section
    /// 4.7), 256 KB on that machine.
    pub chunk: Bytes,
    /// The largest file that is not cut into chunks; `None`: "the capacity of a core's
    /// cache" (section 4.7), of the smallest domain.
    pub whole_up_to: Option<Bytes>,
    /// Files that one [`tick`](super::Mfc::tick) ages at most, so that its time is
    /// bounded. 1024: some microseconds \[ours\].
    pub age_step: u32,
}

impl Config {
    /// The published values, and where figure and text differ, the text.
    pub const PAPER: Self = Self {
        min_read: MinRead::Fixed(Bytes(45 * Bytes::KIB)),
        off_chip_bytes_per_us: 1808,
        on_chip_bytes_per_us: 5825,
        migration: [
            Picos(9_200_000),
            Picos(10_500_000),
            Picos(11_700_000),
            Picos(12_900_000),
        ],
        working_set: Bytes(4 * Bytes::KIB),
        call_buffer: CallBuffer::Left,
        busy: 1,
        idle: 1,
        lfu_factor: 2,
        period: Picos(1_000_000_000_000),
        decay_shift: 1,
        here: Here::Frequent(2),
        elsewhere: Elsewhere::WhenBusy,
        uses: Uses::Follow,
        competitive: Competitive::PerCore,
        chunk: Bytes(256 * Bytes::KIB),
        whole_up_to: None,
        age_step: 1024,
    };

    /// Figure 2 as it is printed, without the rules that only the text has.
    pub const FIGURE_2: Self = Self {
        here: Here::Always,
        elsewhere: Elsewhere::Always,
        uses: Uses::Stay,
        competitive: Competitive::Off,
        ..Self::PAPER
    };

    /// # Errors
    /// The first parameter that is out of its range.
    pub(super) fn costs(&self) -> Result<Costs, ConfigError> {
        self.check()?;
        let mut costs = Costs {
            min_read: 0,
            pays_above: [0; NR_HOPS],
            move_ns: [0; NR_HOPS],
            on_chip: self.on_chip_bytes_per_us,
            off_chip: self.off_chip_bytes_per_us,
        };
        let set_ns = transfer_ns(self.working_set.0, self.off_chip_bytes_per_us);
        let ways = costs.move_ns.iter_mut().zip(&mut costs.pays_above);
        for (migration, (move_ns, pays_above)) in self.migration.iter().zip(ways) {
            let whole = (migration.0 / 1000).saturating_add(set_ns);
            *move_ns = u32::try_from(whole).unwrap_or(u32::MAX);
            *pays_above =
                pays_above_of(whole, self.on_chip_bytes_per_us, self.off_chip_bytes_per_us);
        }
        costs.min_read = match self.min_read {
            MinRead::Fixed(bytes) => bytes.0,
            MinRead::BreakEven => {
                let least = costs.pays_above.iter().min().copied();
                least.unwrap_or(0).saturating_add(1)
            }
        };
        Ok(costs)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let positive = [
            (
                "off_chip_bytes_per_us",
                u64::from(self.off_chip_bytes_per_us),
            ),
            ("lfu_factor", u64::from(self.lfu_factor)),
            ("period", self.period.0),
            ("decay_shift", u64::from(self.decay_shift)),
            ("chunk", self.chunk.0),
            ("age_step", u64::from(self.age_step)),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(ConfigError::Zero(name));
        }
        if self.on_chip_bytes_per_us <= self.off_chip_bytes_per_us {
            return Err(ConfigError::SlowCache {
                on_chip: self.on_chip_bytes_per_us,
                off_chip: self.off_chip_bytes_per_us,
            });
        }
        match self.decay_shift > 31 {
            true => Err(ConfigError::Decay(self.decay_shift)),
            false => Ok(()),
        }
    }
}

/// How long so many bytes take at so many bytes per microsecond, in ns.
fn transfer_ns(bytes: u64, bytes_per_us: u32) -> u64 {
    bytes
        .saturating_mul(1000)
        .checked_div(u64::from(bytes_per_us))
        .unwrap_or(u64::MAX)
}

/// The size at which loading from memory takes as long as moving for so many ns and
/// loading on chip: s/off = s/on + t, so s = t x on x off / (on - off).
fn pays_above_of(move_ns: u64, on_bytes_per_us: u32, off_bytes_per_us: u32) -> u64 {
    let (on, off) = (u64::from(on_bytes_per_us), u64::from(off_bytes_per_us));
    // Bytes per us x ns / 1000 = bytes. What overflows pays for no file.
    let whole = move_ns.checked_mul(off).and_then(|b| b.checked_mul(on));
    let scale = on.saturating_sub(off).saturating_mul(1000);
    whole.and_then(|b| b.checked_div(scale)).unwrap_or(u64::MAX)
}

/// What follows from a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Files below this size are small.
    pub min_read: u64,
    /// By hops: a migration pays for files above this size.
    pub pays_above: [u64; NR_HOPS],
    /// By hops: a migration, working set included.
    pub move_ns: [u32; NR_HOPS],
    on_chip: u32,
    off_chip: u32,
}

impl Costs {
    /// Does a migration over so many hops, with a buffer of so many bytes, cost less than
    /// loading so many bytes from memory does beyond loading them on chip?
    pub fn pays(&self, bytes: u64, hops: u8, buffer: u32) -> bool {
        if buffer > 0 {
            let whole = u64::from(self.move_ns(hops, buffer));
            return bytes > pays_above_of(whole, self.on_chip, self.off_chip);
        }
        self.pays_above
            .get(usize::from(hops))
            .is_some_and(|least| bytes > *least)
    }

    /// What a migration over so many hops costs, with a buffer of so many bytes.
    pub fn move_ns(&self, hops: u8, buffer: u32) -> u32 {
        let set = self.move_ns.get(usize::from(hops)).copied();
        let filled = u32::try_from(self.load_ns(buffer.into())).unwrap_or(u32::MAX);
        set.unwrap_or(u32::MAX).saturating_add(filled)
    }

    /// What loading so many bytes from memory costs.
    pub fn load_ns(&self, bytes: u64) -> u64 {
        transfer_ns(bytes, self.off_chip)
    }
}

/// Why MFC cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The parameter is 0.
    Zero(&'static str),
    /// Caches are not faster than memory: nothing to be gained.
    SlowCache {
        /// Bytes per microsecond.
        on_chip: u32,
        /// Bytes per microsecond.
        off_chip: u32,
    },
    /// `decay_shift` is above 31.
    Decay(u32),
    /// The machine's description does not fit.
    Topology(TopologyError),
    /// A slice of the store is too short.
    Store {
        /// The field of [`Sizes`](super::Sizes).
        name: &'static str,
        /// Its length.
        lent: usize,
        /// The length that is needed.
        needed: usize,
    },
}

impl From<TopologyError> for ConfigError {
    fn from(error: TopologyError) -> Self {
        Self::Topology(error)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero(name) => write!(f, "{name} is 0; allowed: 1 and more"),
            Self::SlowCache { on_chip, off_chip } => write!(
                f,
                "on_chip_bytes_per_us is {on_chip}; allowed: above off_chip_bytes_per_us ({off_chip})"
            ),
            Self::Decay(n) => write!(f, "decay_shift is {n}; allowed: 1 to 31"),
            Self::Topology(error) => write!(f, "topology: {error}"),
            Self::Store { name, lent, needed } => {
                write!(f, "{name} lent: {lent}; needed: {needed}")
            }
        }
    }
}

impl core::error::Error for ConfigError {}
