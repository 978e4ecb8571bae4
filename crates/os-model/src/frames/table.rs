//! The frame table: one state byte and two links per frame.
//!
//! Lists are linked by frame number, so that the table can be moved, compared
//! and recounted, and so that a frame leaves the middle of a list in O(1). Nine
//! bytes per frame. Every all-zero entry means "inside a block", which lets the
//! operating system below hand out zeroed pages lazily: a table for 16 GiB
//! costs nothing until its frames are used.

use piebald_policy::contract::{Broken, FreeError};
use piebald_units::Pfn;

/// End of a list.
const NIL: u32 = u32::MAX;

/// What a frame is to the allocator. The first frame of a block carries the
/// state; all others are [`State::Inner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not the first frame of a block.
    Inner,
    /// First frame of a free block on a buddy list.
    Free { order: u8, kind: u8 },
    /// First frame of a free block on a per-core list.
    Cached { order: u8, kind: u8 },
    /// First frame of a granted block.
    Granted { order: u8 },
}

impl State {
    const fn encode(self) -> u8 {
        match self {
            Self::Inner => 0,
            Self::Free { order, kind } => 1 << 6 | kind << 4 | order,
            Self::Cached { order, kind } => 2 << 6 | kind << 4 | order,
            Self::Granted { order } => 3 << 6 | order,
        }
    }

    const fn decode(byte: u8) -> Self {
        let (order, kind) = (byte & 15, byte >> 4 & 3);
        match byte >> 6 {
            0 => Self::Inner,
            1 => Self::Free { order, kind },
            2 => Self::Cached { order, kind },
            _ => Self::Granted { order },
        }
    }

    /// Order of the block that starts here.
    pub(super) const fn order(self) -> Option<u8> {
        match self {
            Self::Inner => None,
            Self::Free { order, .. } | Self::Cached { order, .. } | Self::Granted { order } => {
                Some(order)
            }
        }
    }
}

/// Next and previous frame. An array, not a struct: the standard library asks
/// the operating system for zeroed memory only for primitive types and arrays.
type Links = [u32; 2];
const NEXT: usize = 0;
const PREV: usize = 1;

/// A doubly linked list of blocks, by the number of their first frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
        len: 0,
    };

    pub(super) const fn first(&self) -> Option<u32> {
        if self.head == NIL {
            None
        } else {
            Some(self.head)
        }
    }

    pub(super) const fn last(&self) -> Option<u32> {
        if self.tail == NIL {
            None
        } else {
            Some(self.tail)
        }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }
}

/// States and links of frames `0..frames`.
#[derive(Clone)]
pub(super) struct FrameTable {
    state: Vec<u8>,
    links: Vec<Links>,
}

impl FrameTable {
    /// A table in which every frame is [`State::Inner`].
    pub(super) fn new(frames: u32) -> Self {
        Self {
            state: vec![0; frames as usize],
            links: vec![[0; 2]; frames as usize],
        }
    }

    pub(super) fn frames(&self) -> u32 {
        self.state.len() as u32
    }

    pub(super) fn state(&self, frame: u32) -> State {
        State::decode(self.state[frame as usize])
    }

    pub(super) fn set(&mut self, frame: u32, state: State) {
        self.state[frame as usize] = state.encode();
    }

    pub(super) fn push_front(&mut self, list: &mut List, frame: u32) {
        self.links[frame as usize] = [list.head, NIL];
        match list.head {
            NIL => list.tail = frame,
            old => self.links[old as usize][PREV] = frame,
        }
        list.head = frame;
        list.len += 1;
    }

    pub(super) fn push_back(&mut self, list: &mut List, frame: u32) {
        self.links[frame as usize] = [NIL, list.tail];
        match list.tail {
            NIL => list.head = frame,
            old => self.links[old as usize][NEXT] = frame,
        }
        list.tail = frame;
        list.len += 1;
    }

    /// Takes a frame out of the list that it is on.
    pub(super) fn unlink(&mut self, list: &mut List, frame: u32) {
        let [next, prev] = self.links[frame as usize];
        match prev {
            NIL => list.head = next,
            p => self.links[p as usize][NEXT] = next,
        }
        match next {
            NIL => list.tail = prev,
            n => self.links[n as usize][PREV] = prev,
        }
        list.len -= 1;
    }

    /// Says why a block may not be freed, or nothing.
    pub(super) fn check_free(&self, frame: Pfn, order: u8) -> Result<u32, FreeError> {
        let Some(f) = u32::try_from(frame.0).ok().filter(|f| *f < self.frames()) else {
            return Err(FreeError::Foreign);
        };
        match self.state(f) {
            State::Granted { order: o } if o == order => Ok(f),
            State::Granted { .. } => Err(FreeError::OrderMismatch),
            State::Free { .. } | State::Cached { .. } => Err(FreeError::DoubleFree),
            State::Inner => Err(match self.head_of(f) {
                Some((_, State::Granted { .. })) => FreeError::OrderMismatch,
                Some(_) => FreeError::DoubleFree,
                None => FreeError::Foreign,
            }),
        }
    }

    /// The block that a frame lies in.
    pub(super) fn head_of(&self, frame: u32) -> Option<(u32, State)> {
        (0..=10u8).find_map(|o| {
            let head = frame & !((1 << o) - 1);
            let state = self.state(head);
            (state.order()? >= o && frame - head < 1 << state.order()?).then_some((head, state))
        })
    }

    /// Walks a list and compares links, length and the blocks' states.
    pub(super) fn validate_list(&self, list: &List, want: State) -> Result<(), Broken> {
        let broken = |rule, frame: u32| Broken {
            rule,
            frame: Pfn(u64::from(frame)),
        };
        let (mut prev, mut at, mut seen) = (NIL, list.head, 0);
        while at != NIL {
            if at >= self.frames() || seen > list.len {
                return Err(broken("a list leaves the table or has a loop", prev));
            }
            if self.links[at as usize][PREV] != prev {
                return Err(broken("back link differs from forward link", at));
            }
            if self.state(at) != want {
                return Err(broken(
                    "block is on a list of another state, order or type",
                    at,
                ));
            }
            (prev, at, seen) = (at, self.links[at as usize][NEXT], seen + 1);
        }
        if prev != list.tail || seen != list.len {
            return Err(broken("list length or tail differs from a recount", prev));
        }
        Ok(())
    }
}
