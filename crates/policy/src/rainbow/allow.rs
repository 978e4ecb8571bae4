//! Which colours a request may have, and which it should have.

use piebald_units::{Color, ColorSet, Order};

use super::{
    Gone, Partition, PartitionId, Registry,
    config::{LargeBlocks, Turns, WhenFull},
    search,
};
use crate::contract::{Asker, Cause, FrameRequest, Mode, Purpose};

/// The colours that a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed<'a> {
    /// Every colour.
    All,
    /// Those of the task's partition.
    Own(&'a ColorSet),
    /// Those that no partition has; at least one.
    Unreserved(&'a ColorSet),
}

impl<'a> Allowed<'a> {
    /// The set, or `None` for every colour, as a [`FrameRequest`] has it.
    pub const fn set(self) -> Option<&'a ColorSet> {
        match self {
            Self::All => None,
            Self::Own(set) | Self::Unreserved(set) => Some(set),
        }
    }
}

/// Where a task's round through its colours stands. The host keeps one per task, a
/// child starts with its parent's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Turn {
    /// Where the search for the next colour starts.
    next: u16,
}

impl Turn {
    /// Before the first round.
    pub const START: Self = Self { next: 0 };

    /// The colour whose turn it is, out of a set: the first at or after the one
    /// behind the last, beginning again at the lowest. `None` if the set is empty.
    pub fn wish(self, colors: &ColorSet) -> Option<Color> {
        search::round(colors, self.next)
    }

    /// Notes the colour of the frame that was granted, wished or not, which is
    /// where the next round goes on (section 5.5.1: its twin is likely the next).
    pub const fn took(&mut self, color: Color) {
        self.next = color.0.saturating_add(1);
    }

    /// As `wish`, out of the first `colors` colours.
    const fn wish_of_all(self, colors: u32) -> Option<Color> {
        match self.next {
            _ if colors == 0 => None,
            next if (next as u32) < colors => Some(Color(next)),
            _ => Some(Color(0)),
        }
    }
}

/// Does a request ask on the kernel's behalf? Atomic requests do: they come from
/// drivers.
const fn is_kernel(request: &FrameRequest<'_>) -> bool {
    let purpose = matches!(
        request.purpose,
        Purpose::Kernel | Purpose::Reclaimable | Purpose::Dma
    );
    purpose || matches!(request.asker, Asker::Kernel) || matches!(request.cause, Cause::Kernel)
}

impl<P: AsRef<[Partition]> + AsMut<[Partition]>> Registry<P> {
    /// The colours that a request may have, where `of` is the partition of the task
    /// that asks (Listing 5.6). The request's own `allowed` is not looked at.
    ///
    /// # Errors
    /// If the partition does not exist any more.
    pub fn allowed(
        &self,
        request: &FrameRequest<'_>,
        of: Option<PartitionId>,
    ) -> Result<Allowed<'_>, Gone> {
        let own = match of {
            Some(id) => Some(&self.get(id)?.colors),
            None => None,
        };
        let config = self.config();
        let large = request.order > Order(0) && config.large_blocks == LargeBlocks::AllColors;
        let full = self.unreserved.is_empty();
        Ok(match own {
            _ if large || is_kernel(request) => Allowed::All,
            Some(_) if full && config.when_full == WhenFull::Everyone => Allowed::All,
            Some(own) => Allowed::Own(own),
            None if full => Allowed::All,
            None => Allowed::Unreserved(&self.unreserved),
        })
    }

    /// A request with its allowed colours, how binding they are, and the colour
    /// whose turn it is, unless it wishes for one already. After the grant, tell
    /// the [`Turn`] which colour it [took](Turn::took).
    ///
    /// # Errors
    /// If the partition does not exist any more.
    pub fn prepare<'a>(
        &'a self,
        request: &FrameRequest<'a>,
        of: Option<PartitionId>,
        turn: Turn,
    ) -> Result<FrameRequest<'a>, Gone> {
        let allowed = self.allowed(request, of)?;
        let config = self.config();
        let goes_round = match config.turns {
            Turns::Everyone => true,
            Turns::Colored => matches!(allowed, Allowed::Own(_)),
            Turns::Nobody => false,
        };
        let wish = || match allowed.set() {
            _ if !goes_round => None,
            Some(set) => turn.wish(set),
            None => turn.wish_of_all(self.colors),
        };
        Ok(FrameRequest {
            allowed: allowed.set(),
            wish: request.wish.or_else(wish),
            mode: match allowed {
                Allowed::All => Mode::Hint,
                Allowed::Own(_) => config.own_mode,
                Allowed::Unreserved(_) => config.unreserved_mode,
            },
            ..*request
        })
    }
}
