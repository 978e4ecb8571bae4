//! What can be chosen about partitions, with the thesis's choices as defaults.

use core::fmt;

use piebald_units::Picos;

use crate::contract::Mode;

/// Which free colours a new partition gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fit {
    /// The lowest run of neighbouring colours that is long enough; if there is
    /// none, the lowest free colours (section 5.4.2, Listing 5.3).
    #[default]
    FirstRun,
    /// As `FirstRun`, but first a run that starts at a multiple of the largest
    /// power of two within its length: such colours share the most blocks.
    AlignedRun,
    /// The lowest free colours, neighbours or not.
    Scattered,
}

/// How a share that is no whole number of colours is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Up: a share is a promise of at least that much.
    #[default]
    Up,
    /// Down: a share is a limit. One below a single colour is refused.
    Down,
    /// To the nearest, halves up. One that becomes no colour is refused.
    Nearest,
}

/// Whether partitions may have colours in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// A colour belongs to one partition (section 4.4.1).
    #[default]
    Exclusive,
    /// Named colours may belong to several partitions. Colours that are asked for by number or
    /// share are still such that nobody has.
    Shared,
}

/// Who may use every colour while none is unreserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// Everyone, coloured tasks too: Listing 5.6 asks whether any colour is left
    /// before it asks whether the task is coloured. No one is isolated then.
    #[default]
    Everyone,
    /// Only the others: coloured tasks keep to their own, and are disturbed only
    /// by those who have nowhere else to go.
    Others,
}

/// Which colours a task's block of more than one page may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LargeBlocks {
    /// Every colour (Listing 5.6: only the kernel asks for such blocks; section
    /// 4.4.2: huge pages hold every colour anyway).
    #[default]
    AllColors,
    /// Those that the task's pages may have: for an allocator that can tell which
    /// colours a block holds.
    AsPages,
}

/// Who goes round through the allowed colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Turns {
    /// Every request, the kernel's too (Listing 5.7: each colour set has its
    /// `last_color`).
    #[default]
    Everyone,
    /// Coloured tasks; other requests leave the choice to the allocator, which
    /// breaks fewer large blocks.
    Colored,
    /// No one.
    Nobody,
}

/// Which pages a recolouring plan moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Balance {
    /// Those outside the partition's colours. Colours that a partition gains fill
    /// with new pages.
    #[default]
    MustMove,
    /// Also those of colours that hold more than their even part, so that gained
    /// colours are used at once. Needs a survey of the pages.
    Spread,
}

/// The choices. The thesis leaves resizing to others (section 3.3), so what is
/// said there about recolouring gives the default cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which free colours a partition gets. Section 5.4.2; default
    /// [`Fit::FirstRun`].
    pub fit: Fit,
    /// How shares are rounded. Section 4.4.1 takes `n = k * N_c` to be whole;
    /// default [`Rounding::Up`].
    pub rounding: Rounding,
    /// What happens when every colour is reserved. Listing 5.6 line 1; default
    /// [`WhenFull::Everyone`].
    pub when_full: WhenFull,
    /// Colours that no partition may get, so that other tasks always have some;
    /// 0 up to one less than the number of colours. Listing 5.3 line 17 keeps
    /// none back; default 0.
    pub keep_unreserved: u32,
    /// Whether partitions may overlap. Section 4.4.1 gives a colour one owner; default
    /// [`Sharing::Exclusive`].
    pub sharing: Sharing,
    /// How binding a coloured task's own colours are. Section 4.4.1: it has no
    /// other memory, and swaps or fails; default [`Mode::Hard`].
    pub own_mode: Mode,
    /// How binding the unreserved colours are for all other tasks. Section 5.3.1:
    /// they cannot get pages of a partition; default [`Mode::Hard`].
    pub unreserved_mode: Mode,
    /// Blocks of more than one page. Listing 5.6 line 1, section 4.4.2; default
    /// [`LargeBlocks::AllColors`].
    pub large_blocks: LargeBlocks,
    /// Who is served round robin. Listing 5.7; default [`Turns::Everyone`].
    pub turns: Turns,
    /// Which pages move when a partition changes; default [`Balance::MustMove`].
    pub balance: Balance,
    /// Time to move one page. Section 3.3: in the order of a microsecond; default
    /// 1 us.
    pub move_cost: Picos,
}

impl Config {
    /// The thesis's choices.
    pub const PAPER: Self = Self {
        fit: Fit::FirstRun,
        rounding: Rounding::Up,
        when_full: WhenFull::Everyone,
        keep_unreserved: 0,
        sharing: Sharing::Exclusive,
        own_mode: Mode::Hard,
        unreserved_mode: Mode::Hard,
        large_blocks: LargeBlocks::AllColors,
        turns: Turns::Everyone,
        balance: Balance::MustMove,
        move_cost: Picos(1_000_000),
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::PAPER
    }
}

/// Why a registry could not be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The number of colours is 0 or above 4096.
    Colors(u32),
    /// `keep_unreserved` leaves no colour to reserve.
    KeepUnreserved {
        /// Its value.
        value: u32,
        /// The largest that is allowed.
        max: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Colors(n) => write!(f, "colors = {n}; allowed: 1 to 4096"),
            Self::KeepUnreserved { value, max } => {
                write!(f, "keep_unreserved = {value}; allowed: 0 to {max}")
            }
        }
    }
}

impl core::error::Error for ConfigError {}
