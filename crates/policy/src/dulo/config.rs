//! How large the sections are, what a hit does, and what a fetch costs.

use core::fmt;

use super::store::Bucket;

/// Longest sequence that the paper allows, in blocks (section 3.3, condition 4):
/// "sufficient to amortize a disk operation cost".
pub const MAX_SEQUENCE: u16 = 128;

/// Fraction bits of `H` and `L`.
pub const FRACTION_BITS: u32 = 32;

/// Memory, in pages of 4 KiB, from which on the larger published sizes hold: 80 MB
/// (section 4.1.1).
const LARGE: u32 = 20_480;

/// Which section takes the pages that the configured sizes leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// The correlation buffer: the evicting section has the size that section 4.1.1
    /// gives, as in the paper's simulations.
    #[default]
    Correlation,
    /// The evicting section: "the size of the buffer is fixed", and the
    /// evicting section "holds the rest of the stack" (section 3.1).
    Evicting,
}

/// What a hit on a page in the evicting section does. (A hit on any other page is
/// the base's affair.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hits {
    /// The base notes it; the page goes to the hot end when it reaches the bottom
    /// (section 3.4).
    #[default]
    Mark,
    /// The base notes it; if it then wants the page, and the hit came by a call, the
    /// page goes to the base at once: `mark_page_accessed` in Linux (section 4.2.1).
    Promote,
    /// The page goes to the top of its sequence, whose `H` is raised to what it would
    /// be now: the order of Table 1, and GreedyDual-Size's own rule. The base is not
    /// told. Costs O(sequences above): for study, not for use.
    Restore,
}

/// What fetching a sequence costs, by its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost<'a> {
    /// The same for all, as section 3.4 assumes: H = L + 1/size.
    #[default]
    Uniform,
    /// Entry n - 1 for a run of n blocks, in any unit, none of them 0; at least
    /// [`Config::max_sequence`] entries. H = L + cost/size, in units of the dearest.
    Runs(&'a [u32]),
}

/// The thresholds of DULO. Sizes are in pages of 4 KiB, a page being a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The correlation buffer: its least size, or with [`Rest::Evicting`] its size.
    /// The paper does not give it; default 1 MB, the size of the smallest bank of
    /// its Table 3 \[ours\].
    pub correlation: u32,
    /// BANK_MAX, blocks that are sequenced together. 8 MB, below 80 MB of memory 4 MB
    /// (section 4.1.1; optimum between 4 and 16 MB in Table 3).
    pub bank: u32,
    /// The least size of the evicting section: what it has when the bank is full. 64 MB,
    /// below 80 MB of memory 16 MB (section 4.1.1, Table 4).
    pub evicting: u32,
    /// Who takes what is left. The paper's simulations: [`Rest::Correlation`].
    pub rest: Rest,
    /// Longest sequence, 1 to 128 (section 3.3). With 1, DULO is its base.
    pub max_sequence: u16,
    /// What a hit in the evicting section does.
    pub hits: Hits,
    /// How many proposals a host may pass over (they are dirty, or pinned) and have
    /// the pages that were used meanwhile, further below, get their turn. Default 32,
    /// the batch in which Linux reclaims (`SWAP_CLUSTER_MAX`).
    pub reach: u32,
}

impl Config {
    /// The published sizes for 80 MB of memory and more (section 4.1.1).
    pub const LARGE: Self = Self {
        correlation: 256,
        bank: 2048,
        evicting: 16_384,
        rest: Rest::Correlation,
        max_sequence: MAX_SEQUENCE,
        hits: Hits::Mark,
        reach: 32,
    };

    /// The published sizes for less than 80 MB of memory (section 4.1.1).
    pub const SMALL: Self = Self {
        bank: 1024,
        evicting: 4096,
        ..Self::LARGE
    };

    /// The published sizes for a memory of so many pages.
    pub const fn published(capacity: u32) -> Self {
        match capacity < LARGE {
            true => Self::SMALL,
            false => Self::LARGE,
        }
    }

    /// The published sizes where they fit. Smaller memories are cut in the same
    /// proportion: 5 % for the correlation buffer, and 1:4 for bank and evicting
    /// section; two pages are the least that can be cut \[ours\].
    pub fn scaled(capacity: u32) -> Self {
        let published = Self::published(capacity);
        if published.whole() <= u64::from(capacity) {
            return published;
        }
        let correlation = capacity / 20;
        let rest = capacity.saturating_sub(correlation);
        let bank = (rest / 5).max(1);
        Self {
            correlation,
            bank,
            evicting: rest.saturating_sub(bank).max(1),
            ..published
        }
    }

    /// The same configuration for a memory of `pages` that stands for one of `whole`: its
    /// sections have the same share of it. Sequences are as long as in the whole.
    pub fn miniature(self, pages: u32, whole: u32) -> Self {
        let cut = |size: u32| {
            // Two numbers of 32 bits cannot overflow 64.
            let part = u64::from(size).wrapping_mul(u64::from(pages));
            let cut = part.checked_div(u64::from(whole)).unwrap_or(part);
            u32::try_from(cut).unwrap_or(u32::MAX).max(1)
        };
        let bank = cut(self.bank);
        Self {
            correlation: cut(self.correlation),
            bank,
            evicting: cut(self.evicting).max(bank),
            ..self
        }
    }

    /// The same sizes in the form of section 4.2: inside Linux's inactive list.
    pub const fn linux(self) -> Self {
        Self {
            hits: Hits::Promote,
            ..self
        }
    }

    /// Pages that the three sections take as configured.
    const fn whole(&self) -> u64 {
        // Three numbers of 32 bits cannot overflow 64.
        (self.correlation as u64)
            .wrapping_add(self.bank as u64)
            .wrapping_add(self.evicting as u64)
    }

    /// The sections of a memory of so many pages.
    ///
    /// A memory that is larger than the three gives the rest to whom
    /// [`rest`](Self::rest) says; in a smaller one the evicting section shrinks, to no
    /// less than a bank: "a bank size must be less than the evicting section size"
    /// (section 4.1.3).
    ///
    /// # Errors
    /// If a size is out of its range or the memory is too small.
    pub fn sections(&self, capacity: u32) -> Result<Sections, ConfigError> {
        if self.bank == 0 {
            return Err(ConfigError::NoBank);
        }
        if self.max_sequence == 0 || self.max_sequence > MAX_SEQUENCE {
            return Err(ConfigError::MaxSequence(self.max_sequence));
        }
        if self.evicting < self.bank {
            return Err(ConfigError::EvictingBelowBank {
                evicting: self.evicting,
                bank: self.bank,
            });
        }
        let spare = u64::from(capacity).checked_sub(self.whole());
        let sections = match (spare, self.rest) {
            (Some(_), Rest::Correlation) => self.filled(capacity, self.evicting),
            _ => {
                let fixed = self.correlation.saturating_add(self.bank);
                self.filled(capacity, capacity.saturating_sub(fixed))
            }
        };
        match sections {
            Some(sections) if sections.evicting >= self.bank => Ok(sections),
            _ => Err(ConfigError::Memory {
                capacity,
                needed: u64::from(self.correlation)
                    .saturating_add(u64::from(self.bank).saturating_mul(2)),
            }),
        }
    }

    /// The correlation buffer is what bank and evicting section leave.
    fn filled(&self, capacity: u32, evicting: u32) -> Option<Sections> {
        Some(Sections {
            correlation: capacity.checked_sub(self.bank)?.checked_sub(evicting)?,
            bank: self.bank,
            evicting,
        })
    }
}

/// The sizes of a stack's sections, in pages; together they are the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections {
    /// What the staging section keeps when the bank is taken.
    pub correlation: u32,
    /// Pages that are sequenced together, and by which the other two vary.
    pub bank: u32,
    /// What the evicting section has when it is refilled.
    pub evicting: u32,
}

/// Fills the buckets: the value that each length of sequence adds to `L`, and the
/// order of the lengths by it, longer ones first where it is the same.
pub(super) fn price(
    buckets: &mut [Bucket],
    cost: Cost<'_>,
    max_sequence: u16,
) -> Result<(), ConfigError> {
    let max = usize::from(max_sequence);
    let dearest = dearest(cost, max)?;
    for (size, bucket) in (1u32..).zip(buckets.iter_mut()).take(max) {
        let cost = cost_of(cost, size).unwrap_or(1);
        let whole = (u64::from(cost) << FRACTION_BITS)
            .checked_div(u64::from(dearest))
            .and_then(|c| c.checked_div(u64::from(size)));
        *bucket = Bucket::empty(whole.unwrap_or(0).max(1));
    }
    rank(buckets, max);
    Ok(())
}

/// The dearest fetch.
fn dearest(cost: Cost<'_>, max: usize) -> Result<u32, ConfigError> {
    let Cost::Runs(costs) = cost else {
        return Ok(1);
    };
    let costs = costs.get(..max).ok_or(ConfigError::Costs {
        given: costs.len(),
        needed: max,
    })?;
    match costs.iter().position(|c| *c == 0) {
        Some(at) => Err(ConfigError::Free(at.saturating_add(1))),
        None => Ok(costs.iter().copied().max().unwrap_or(1)),
    }
}

fn cost_of(cost: Cost<'_>, size: u32) -> Option<u32> {
    match cost {
        Cost::Uniform => Some(1),
        Cost::Runs(costs) => costs.get(size.checked_sub(1)? as usize).copied(),
    }
}

/// Orders the lengths by counting for each those that come before it.
fn rank(buckets: &mut [Bucket], max: usize) {
    for at in 0..max {
        let Some(step) = buckets.get(at).map(|b| b.step) else {
            return;
        };
        let before =
            |(other, b): &(usize, &Bucket)| b.step < step || (b.step == step && *other > at);
        let rank = buckets.iter().take(max).enumerate().filter(before).count();
        if let Some(bucket) = buckets.get_mut(at) {
            bucket.rank = rank as u32;
        }
        if let Some(bucket) = buckets.get_mut(rank) {
            bucket.ranked = at as u32;
        }
    }
}

/// Why DULO cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// `bank` is 0.
    NoBank,
    /// `max_sequence` is not within 1 to 128.
    MaxSequence(u16),
    /// `evicting` is less than `bank`.
    EvictingBelowBank {
        /// Pages of the evicting section.
        evicting: u32,
        /// Pages of the bank.
        bank: u32,
    },
    /// The sections do not fit in memory, even if the evicting section shrinks.
    Memory {
        /// Pages of memory.
        capacity: u32,
        /// The least that would do.
        needed: u64,
    },
    /// The table of costs is too short.
    Costs {
        /// Its entries.
        given: usize,
        /// Entries needed.
        needed: usize,
    },
    /// A run of so many blocks costs 0.
    Free(usize),
    /// A slice of the store is too short.
    Store {
        /// The field of [`Sizes`](super::Sizes).
        name: &'static str,
        /// Its length.
        lent: usize,
        /// The length that is needed.
        needed: usize,
    },
    /// The base has pages already.
    BaseNotEmpty(u32),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBank => f.write_str("bank is 0 pages; allowed: 1 and more"),
            Self::MaxSequence(n) => {
                write!(
                    f,
                    "max_sequence is {n} blocks; allowed: 1 to {MAX_SEQUENCE}"
                )
            }
            Self::EvictingBelowBank { evicting, bank } => write!(
                f,
                "evicting is {evicting} pages; allowed: bank ({bank} pages) and more"
            ),
            Self::Memory { capacity, needed } => write!(
                f,
                "memory of {capacity} pages; correlation and twice bank need {needed}"
            ),
            Self::Costs { given, needed } => write!(
                f,
                "{given} costs of runs; needed: one for each length up to {needed}"
            ),
            Self::Free(size) => write!(f, "a run of {size} blocks costs 0; allowed: 1 and more"),
            Self::Store { name, lent, needed } => {
                write!(f, "{name} lent: {lent}; needed: {needed}")
            }
            Self::BaseNotEmpty(pages) => write!(f, "the base has {pages} pages; allowed: none"),
        }
    }
}

impl core::error::Error for ConfigError {}
