//! Migrate types: whether the content of a block could move.

use crate::contract::Purpose;

/// Whether the content of a block can move or be dropped. Blocks of a type are
/// kept together, so that those that can move leave whole blocks behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MigrateType {
    /// User pages and the page cache: the type of fresh memory.
    #[default]
    Movable = 0,
    /// Kernel data.
    Unmovable = 1,
    /// Kernel data that can be dropped.
    Reclaimable = 2,
}

impl MigrateType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Movable, Self::Unmovable, Self::Reclaimable];

    /// The type of a request's blocks.
    pub const fn of(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Anon | Purpose::File => Self::Movable,
            Purpose::Kernel | Purpose::Dma => Self::Unmovable,
            Purpose::Reclaimable => Self::Reclaimable,
        }
    }

    /// Where to take from when the own lists have nothing, in this order (as
    /// Linux does).
    pub(super) const fn fallbacks(self) -> [Self; 2] {
        match self {
            Self::Movable => [Self::Reclaimable, Self::Unmovable],
            Self::Unmovable => [Self::Reclaimable, Self::Movable],
            Self::Reclaimable => [Self::Unmovable, Self::Movable],
        }
    }

    /// The type with a number; numbers come from two-bit fields of our own.
    pub(super) const fn numbered(n: u8) -> Self {
        match n & 3 {
            1 => Self::Unmovable,
            2 => Self::Reclaimable,
            _ => Self::Movable,
        }
    }
}
