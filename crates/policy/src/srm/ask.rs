//! What a host asks of SRM-buffer, and what it is answered.

use piebald_units::{Color, ColorSet, Pfn};

use super::Holds;
use crate::contract::Mode;

/// Where a sequence of blocks stands: one lies in the host's record of each file and
/// one in that of each process (Figure 7: `color`, `nr_block`). 16 B.
///
/// It is changed by calls only, and says no more than a colour and a count: a copy, one
/// that was lost, or one from before the zone was made do no harm but a mark that stays
/// until it is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sequence {
    /// The mark that it put on its list; 0 for a sequence that has not begun.
    pub(super) ticket: u64,
    /// Blocks since its list was chosen.
    pub(super) blocks: u32,
    pub(super) color: u16,
}

impl Sequence {
    /// A sequence that has not begun.
    pub const NONE: Self = Self {
        ticket: 0,
        blocks: 0,
        color: 0,
    };

    /// The colour of its blocks; `None` if it has not begun.
    pub const fn color(&self) -> Option<Color> {
        match self.ticket {
            0 => None,
            _ => Some(Color(self.color)),
        }
    }

    /// Blocks that it got in this colour, at most T_l.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }
}

/// Where a process stands in its round through the colours of its memory (Figure 7:
/// `vm_color`). A child process goes on with a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct VmTurn {
    pub(super) next: u16,
}

impl VmTurn {
    /// The colour whose turn it is, if it is the machine's and allowed.
    pub const fn color(&self) -> Color {
        Color(self.next)
    }
}

/// Can the host get more pages for the zone?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Supply {
    /// It may: [`Answer::Refill`] is welcome.
    #[default]
    More,
    /// It has none, or will not look for them now: no answer is `Refill`.
    Spent,
}

/// Which colours a requester may have, and how far the host will go for one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limited<'a> {
    /// Colours that the requester owns; `None` = every colour. Colours that the map
    /// does not have count for nothing.
    pub allowed: Option<&'a ColorSet>,
    /// Whether these bind.
    pub mode: Mode,
    /// Whether the zone can be refilled.
    pub supply: Supply,
}

/// A block of a file comes into memory, read or written, demanded or read ahead.
#[derive(Debug)]
pub struct FileFault<'a> {
    /// The file's sequence.
    pub file: &'a mut Sequence,
    /// The sequence of the process that reads or writes.
    pub process: &'a mut Sequence,
    /// Size of the file in blocks, with this one.
    pub file_blocks: u64,
    /// Colours and supply.
    pub limited: Limited<'a>,
}

/// How a frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// As Figure 7 says: in the sequence's colour, or that of the turn.
    Meant,
    /// In a list whose mark was idle, since every long list is marked.
    Idle,
    /// In a list with no more than T_l pages, since no other is unmarked.
    Short,
    /// In a list that another sequence uses, since all with pages are in use.
    Shared,
    /// In the next colour that has pages, since that of the turn has none.
    Next,
    /// Outside the allowed colours, since these have none ([`Mode::Hint`]).
    Outside,
    /// In whatever colour is most dispensable: nobody wished for one.
    Any,
}

/// A frame that has left the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The frame.
    pub frame: Pfn,
    /// Its colour.
    pub color: Color,
    /// If cold, the host evicts its page first.
    pub holds: Holds,
    /// How it was found.
    pub how: How,
}

/// What a fault is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The page goes here.
    Frame(Taken),
    /// The zone is short: refill it and ask again. Nothing has changed.
    Refill,
    /// The zone has no page that the requester may have. It would have been best in
    /// this colour, if there is one.
    Empty(Option<Color>),
}
