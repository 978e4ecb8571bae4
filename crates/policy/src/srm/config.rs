//! The thresholds of SRM-buffer and what follows from them for a machine.

use core::fmt;

/// Most frames that a zone can cover: 2^40 bytes of memory, holes included.
pub const MAX_FRAMES: u64 = 1 << 28;

/// The thresholds of SRM-buffer. Sizes are in pages of 4 KiB, a page being a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// T_l: longest sequence, least list to start one from, and size above which a
    /// file has a sequence of its own. 256 (section 4.1); between 128 and 512 is good
    /// (section 4.6), 128 with little memory (section 4.5). With 1, SRM-buffer is an
    /// ordinary buffer that goes round the colours.
    pub threshold: u32,
    /// Pages from which on the zone asks for no more. `None`: twice the least that
    /// holds T_l + 1 pages of each colour, or all frames if these are fewer. The
    /// paper bounds nothing, and finds "about 12 %" of 1 GiB and "less than 0.8 %"
    /// of 16 GiB in the zone (section 4.5, 64 colours): 128 MiB, which is that.
    pub max_pages: Option<u32>,
    /// Blocks of sequences after which a mark that no block came to keeps its list
    /// from nobody. `None`: T_l for each colour, a turn through the zone \[ours: the
    /// paper does not say what ends a sequence whose file is not read on\].
    pub idle_after: Option<u64>,
}

impl Config {
    /// The published thresholds (section 4.1).
    pub const PAPER: Self = Self {
        threshold: 256,
        max_pages: None,
        idle_after: None,
    };

    /// The published threshold for memories below 1 GiB (section 4.5, Figure 15).
    pub const SMALL: Self = Self {
        threshold: 128,
        ..Self::PAPER
    };

    /// The limits on a machine of so many frames and colours.
    ///
    /// # Errors
    /// If a threshold is out of range: see [`ConfigError`].
    pub fn limits(&self, frames: u64, colors: u32) -> Result<Limits, ConfigError> {
        if frames == 0 || frames > MAX_FRAMES {
            return Err(ConfigError::Frames(frames));
        }
        let frames = frames as u32;
        // At most 2^12 colours and less than 2^33 pages in each cannot overflow.
        let least = u64::from(self.threshold)
            .saturating_add(1)
            .saturating_mul(u64::from(colors));
        if self.threshold == 0 || least > u64::from(frames) {
            return Err(ConfigError::Threshold {
                threshold: self.threshold,
                allowed: frames.checked_div(colors).unwrap_or(0).saturating_sub(1),
                colors,
                frames,
            });
        }
        let twice = least.saturating_mul(2).min(u64::from(frames)) as u32;
        let max_pages = self.max_pages.unwrap_or(twice);
        if u64::from(max_pages) < least || max_pages > frames {
            return Err(ConfigError::MaxPages {
                max_pages,
                least,
                frames,
            });
        }
        let turn = u64::from(self.threshold).saturating_mul(u64::from(colors));
        match self.idle_after.unwrap_or(turn) {
            0 => Err(ConfigError::IdleAfter),
            idle_after => Ok(Limits {
                threshold: self.threshold,
                max_pages,
                idle_after,
            }),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::PAPER
    }
}

/// What a [`Config`] means on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// T_l.
    pub threshold: u32,
    /// Pages from which on the zone asks for no more.
    pub max_pages: u32,
    /// Blocks of sequences after which an unused mark is idle.
    pub idle_after: u64,
}

/// Why a zone cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The number of frames is 0 or above [`MAX_FRAMES`].
    Frames(u64),
    /// The frames reach beyond 64 bits.
    Origin(u64),
    /// `threshold` is 0, or memory does not hold a page more of every colour.
    Threshold {
        /// What was asked for.
        threshold: u32,
        /// The most that fits; 0 if nothing does.
        allowed: u32,
        /// Colours.
        colors: u32,
        /// Frames of memory.
        frames: u32,
    },
    /// `max_pages` does not hold a page more than the threshold of every colour, or is
    /// more than memory has.
    MaxPages {
        /// What was asked for.
        max_pages: u32,
        /// The least that would do.
        least: u64,
        /// Frames of memory.
        frames: u32,
    },
    /// `idle_after` is 0.
    IdleAfter,
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

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frames(n) => write!(f, "frames = {n}; allowed: 1 to {MAX_FRAMES}"),
            Self::Origin(n) => write!(f, "origin = pfn {n:#x}; the frames end beyond 64 bits"),
            Self::Threshold {
                threshold,
                allowed: 0,
                colors,
                frames,
            } => write!(
                f,
                "threshold = {threshold} pages; none is allowed: {frames} frames are less than \
                 two for each of {colors} colors"
            ),
            Self::Threshold {
                threshold,
                allowed,
                colors,
                frames,
            } => write!(
                f,
                "threshold = {threshold} pages; allowed: 1 to {allowed} ({frames} frames, \
                 {colors} colors)"
            ),
            Self::MaxPages {
                max_pages,
                least,
                frames,
            } => write!(f, "max_pages = {max_pages}; allowed: {least} to {frames}"),
            Self::IdleAfter => f.write_str("idle_after = 0 blocks; allowed: 1 and more"),
            Self::Store { name, lent, needed } => {
                write!(f, "{name} lent: {lent}; needed: {needed}")
            }
        }
    }
}

impl core::error::Error for ConfigError {}
