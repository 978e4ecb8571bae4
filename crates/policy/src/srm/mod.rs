//! SRM-buffer: the colour of the frame that a file block is read into.
//!
//! Source: X. Ding, K. Wang, X. Zhang, "SRM-Buffer: An OS Buffer Management Technique
//! to Prevent Last Level Caches from Thrashing in Multicores", EuroSys'11, sections 3
//! and 4.5.
//!
//! A program that reads a file through the operating system's buffer drags it through
//! the last-level cache, once and for nothing: file blocks are rarely used again soon.
//! What it pushes out, other programs want back. If blocks that are read one after
//! another lie in frames of one *colour*, they only push out each other.
//!
//! Vocabulary: a *sequence* is a group of blocks that are likely to be used together; all
//! of it gets one colour. Its length is at most *T_l*, the *threshold*; what would be
//! longer is *cut* and goes on in another colour. The *normal zone* is the host's
//! replacement order with all its pages. The *colored zone* lies between that and the
//! host's free memory: a list per colour of free frames and of a few *cold* pages,
//! which are those next in the order of replacement. A list is *long* if it has more
//! than T_l pages, else *short*. A sequence *marks* the list that it takes pages from.
//!
//! # How frames go round
//!
//! ```text
//!   replacement order (host)          colored zone                  in use
//!   hot ............... cold --pull--> color 0: free free cold --fault--> file block,
//!    ^                                 color 1: cold                      memory of a
//!    |                                 color 2: free cold cold            program
//!    +---------- hit ------------------+   ^
//!                                          +--fill-- free frames (host)
//! ```
//!
//! * A **file block** ([`Srm::file_fault`]) belongs to the file's sequence if the file has
//!   more than T_l blocks (same-file heuristic), else to that of the process that
//!   reads or writes (same-application heuristic). A sequence begins in an unmarked
//!   long list, marks it, and takes T_l pages from it.
//! * A **page of a program** ([`Srm::vm_fault`]) takes the next colour in the process's
//!   round through all colours, so that its memory uses the whole cache.
//! * When no list will do, or one is empty, the answer is [`Answer::Refill`]: free frames
//!   of short colours first ([`Srm::fill`]), then cold pages whatever their colour
//!   ([`Srm::pull`]), until the shortest list is long.
//! * A cold page that is **hit** goes back to the replacement order ([`Srm::used`]).
//! * Under **pressure** from elsewhere, the host takes frames out of the zone
//!   ([`Srm::take_any`]) before it looks at its replacement order: the zone has the
//!   coldest pages.
//!
//! The zone owns no order of replacement: it takes what any
//! [`Replacement`](crate::contract::replacement::Replacement) proposes, which knows
//! these pages as detached until they are reattached or forgotten. It works with any
//! [`ColorMap`], hashed caches included.
//!
//! # Driving it
//!
//! ```
//! use piebald_policy::color_map::{BitClass, ColorMap};
//! use piebald_policy::srm::{
//!     Answer, Config, FileFault, Limited, Link, List, Sequence, Sets, Slices, Srm, Supply,
//! };
//! use piebald_units::Pfn;
//!
//! // 64 frames of 4 colours; sequences of 3.
//! let map = ColorMap::from_masks(&[(1, BitClass::Cache), (2, BitClass::Cache)])?;
//! let store = Slices::<_, Vec<Link>, Vec<List>, Box<Sets>>::collect(map, 64);
//! let config = Config { threshold: 3, ..Config::PAPER };
//! let mut srm = Srm::new(store, 64, Pfn(0), config)?;
//! let mut free: Vec<Pfn> = (0..64).map(Pfn).collect();
//!
//! let (mut file, mut process) = (Sequence::NONE, Sequence::NONE);
//! let mut colors = Vec::new();
//! for _ in 0..8 {
//!     let mut supply = Supply::More;
//!     loop {
//!         let limited = Limited { supply, ..Limited::default() };
//!         let (file, process) = (&mut file, &mut process);
//!         match srm.file_fault(FileFault { file, process, file_blocks: 8, limited }) {
//!             Answer::Frame(taken) => break colors.push(taken.color.0),
//!             Answer::Refill => {
//!                 let came = srm.fill(100, |color| {
//!                     let at = free.iter().position(|f| f.0 % 4 == u64::from(color.0))?;
//!                     Some(free.remove(at))
//!                 })?;
//!                 // Here a host with a full memory would also pull.
//!                 supply = if came == 0 { Supply::Spent } else { Supply::More };
//!             }
//!             Answer::Empty(_) => unreachable!("there is free memory"),
//!         }
//!     }
//! }
//! assert_eq!(colors, [0, 0, 0, 1, 1, 1, 2, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What the paper leaves open
//!
//! * Figure 7 chooses a list only when `nr_block` reaches a multiple of T_l, so the
//!   first T_l - 1 blocks of all would lie in whatever colour the counters were born
//!   with. Here the first block of a sequence chooses, and each sequence has T_l blocks;
//!   later ones are as in the figure.
//! * `p->vm_color = (p->vm_color++) mod NR_COLORS` is undefined in C; read as + 1.
//! * Which of several lists: the next from the last chosen, going round. A sequence that
//!   goes on takes its own last list only if no other will do: the figure takes the
//!   mark off before it searches, so a search from the first list would choose it again
//!   and never cut anything while memory is free.
//! * A marked list whose sequence has stopped (the file was read, and is still open)
//!   would be lost. A mark to which no block came for [`Limits::idle_after`] blocks of
//!   other sequences is *idle*; its list is given away when no unmarked one is long, that
//!   of the oldest mark first. The paper's counters are the file's; per open file or per
//!   inode is the host's choice.
//! * When memory has no more to give, a refill ends before the shortest list is long.
//!   Then, in this order: the longest unmarked list; of the marked ones the one used
//!   least recently, long ones first. So with more sequences than lists, sequences share
//!   lists, the most restful ones first; the mark passes to the last that came, and
//!   no other takes it off. Each of these is counted ([`Counters`]).
//! * A list of the zone may run dry before its sequence is T_l long, because programs
//!   take pages from all lists. If a refill brings none of the colour, the sequence is cut
//!   early.
//! * The zone is bounded ([`Config::max_pages`]): if the cold end of memory is all of a
//!   few colours, it does not pull all of memory to find another. It is then refilled
//!   page by page, as pages leave it.
//! * Requesters that own colours (a partition) get only these, or others when they are
//!   out ([`Mode`](crate::contract::Mode)).
//!
//! # Pressure never stalls
//!
//! With [`Supply::Spent`], an answer is a frame whenever the zone has one that the
//! requester may have. [`Answer::Refill`] is only given while
//! [`Srm::wants_pages`], which each page that comes brings nearer to its end. A
//! requester that is bound to colours of which the zone has none gets
//! [`Answer::Empty`]; the host takes a frame out of the zone, evicts its page, and pulls
//! another, until the colour turns up: each round moves the cold end on, so that all
//! of memory is seen once at most. The zone holds nothing back from
//! [`Srm::take_any`].
//!
//! # Odd input
//!
//! Frames that the zone does not cover, or that come twice, are refused
//! ([`AddError`]); for frames that are not in the zone, `hit` and `remove` say so. A file
//! that grows beyond T_l has a sequence of its own from then on; one that shrinks ends
//! it. A file that vanishes: the host ends its sequence and removes its pages' frames.
//! A sequence or turn with a colour that the map does not have begins anew.
//! Configurations that cannot work are refused, with what is allowed
//! ([`ConfigError`]).
//!
//! # Cost
//!
//! A fault, a hit, an addition and a removal touch one list and at most three frames. A
//! search for a list looks at the words of a set of colours: one for up to 64 colours, 65
//! for 4096; when no unmarked list is long, at each colour once or twice. `fill` and
//! `pull` take a step per page; each page that comes leaves by a fault or a hit, so
//! per fault this is constant. `reconfigure` visits each colour, `new` each frame,
//! `validate` everything. No call allocates, recurses or waits.
//!
//! Memory: 8 B for each frame that the zone covers, 32 B for each colour, 2080 B of
//! sets; in the host 16 B for each file and each process and 2 B more for each process.
//!
//! # Concurrency
//!
//! *Exclusive*: the host locks around each call.

mod ask;
mod config;
mod place;
mod refill;
mod search;
mod store;
mod validate;
mod zone;

use piebald_units::{Color, Pfn};

use crate::{color_map::ColorMap, contract::Broken};

pub use ask::{Answer, FileFault, How, Limited, Sequence, Supply, Taken, VmTurn};
pub use config::{Config, ConfigError, Limits, MAX_FRAMES};
pub use refill::{AddError, Pulled};
pub use store::{Holds, Link, List, Parts, PartsMut, Sets, Sizes, Slices, Store};

use zone::{Books, Walk, list};

/// What SRM-buffer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counters {
    /// Free frames that came into the zone.
    pub filled: u64,
    /// Cold pages that came into the zone.
    pub pulled: u64,
    /// Cold pages that were used and went back.
    pub hits: u64,
    /// Free frames taken.
    pub free: u64,
    /// Cold pages taken: evictions.
    pub cold: u64,
    /// Frames taken by [`Srm::take_any`]; the others were taken by faults.
    pub any: u64,
    /// Sequences begun: lists chosen.
    pub sequences: u64,
    /// Sequences that began because a list ran dry before T_l blocks.
    pub cut: u64,
    /// Lists taken over from an idle mark.
    pub idle: u64,
    /// Sequences begun in a list with no more than T_l pages.
    pub short: u64,
    /// Sequences begun in a list that another sequence used.
    pub shared: u64,
    /// Pages of programs that got another colour than that of the turn.
    pub next: u64,
    /// Frames outside the allowed colours.
    pub outside: u64,
    /// Answers [`Answer::Refill`].
    pub refills: u64,
    /// Answers [`Answer::Empty`].
    pub empty: u64,
    /// Frames for blocks of files that the host could not use.
    pub declined: u64,
}

impl Counters {
    fn added(&mut self, holds: Holds) {
        let count = match holds {
            Holds::Free => &mut self.filled,
            Holds::Cold => &mut self.pulled,
        };
        *count = count.wrapping_add(1);
    }

    fn took(&mut self, holds: Holds, how: How) {
        let count = match holds {
            Holds::Free => &mut self.free,
            Holds::Cold => &mut self.cold,
        };
        *count = count.wrapping_add(1);
        let count = match how {
            How::Meant => return,
            How::Idle => &mut self.idle,
            How::Short => &mut self.short,
            How::Shared => &mut self.shared,
            How::Next => &mut self.next,
            How::Outside => &mut self.outside,
            How::Any => &mut self.any,
        };
        *count = count.wrapping_add(1);
    }
}

/// The pages of a colour in the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// All of them.
    pub pages: u32,
    /// Free ones among them.
    pub free: u32,
    /// A sequence marks the list.
    pub marked: bool,
}

/// SRM-buffer over lent memory. See the [module](self).
#[derive(Clone, Debug)]
pub struct Srm<S> {
    store: S,
    limits: Limits,
    books: Books,
    origin: Pfn,
    frames: u32,
    /// Where the search for the next list begins.
    next: Color,
    /// Where the search for a frame that can be spared begins.
    spare_next: Color,
    /// Blocks of sequences so far.
    clock: u64,
    /// The latest mark.
    ticket: u64,
    counters: Counters,
}

impl<S: Store> Srm<S> {
    /// An empty zone that covers `frames` frames from `origin` on.
    ///
    /// # Errors
    /// If the configuration does not fit the machine, or the lent memory is too short.
    pub fn new(store: S, frames: u64, origin: Pfn, config: Config) -> Result<Self, ConfigError> {
        let parts = store.parts();
        let colors = parts.map.colors();
        let limits = config.limits(frames, colors)?;
        if origin.checked_add(frames).is_none() {
            return Err(ConfigError::Origin(origin.0));
        }
        Sizes::of(parts.map, frames).check(&parts)?;
        let mut srm = Self {
            store,
            limits,
            books: Books::empty(limits.threshold, colors),
            origin,
            frames: frames as u32,
            next: Color(0),
            spare_next: Color(0),
            clock: 0,
            ticket: 0,
            counters: Counters::default(),
        };
        let parts = srm.store.parts_mut();
        parts.links.fill(Link::OUT);
        parts.lists.fill(List::EMPTY);
        parts.sets.clear();
        Ok(srm)
    }

    /// Changes the thresholds while the zone is in use. Pages stay where they are; a
    /// zone that is too large now shrinks as pages leave it.
    ///
    /// # Errors
    /// If the configuration does not fit the machine; nothing has changed.
    pub fn reconfigure(&mut self, config: Config) -> Result<(), ConfigError> {
        let mut parts = self.store.parts_mut();
        self.limits = config.limits(u64::from(self.frames), parts.map.colors())?;
        self.books.set_threshold(&mut parts, self.limits.threshold);
        Ok(())
    }

    /// The limits in force.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// The colours.
    pub fn map(&self) -> &ColorMap {
        self.store.parts().map
    }

    /// Pages in the zone.
    pub const fn pages(&self) -> u32 {
        self.books.pages
    }

    /// Free ones among them.
    pub const fn free_pages(&self) -> u32 {
        self.books.free
    }

    /// Colours with no more than T_l pages.
    pub const fn short_colors(&self) -> u32 {
        self.books.short
    }

    /// How a colour stands; all is 0 for a colour that the map does not have.
    pub fn standing(&self, color: Color) -> Standing {
        let list = list(self.store.parts().lists, color);
        Standing {
            pages: list.len,
            free: list.free,
            marked: list.holder != 0,
        }
    }

    /// The frames of a colour in the zone, the next to be taken first.
    pub fn frames_of(&self, color: Color) -> impl Iterator<Item = Pfn> {
        let origin = self.origin.0;
        Walk::over(&self.store.parts(), color)
            .map(move |at| Pfn(origin.wrapping_add(u64::from(at))))
    }

    /// What was done so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Recounts everything from scratch and compares: each list, link, set and sum.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), Broken> {
        self.check()
    }

    #[inline]
    fn list_len(&self, color: Color) -> u32 {
        list(self.store.parts().lists, color).len
    }
}
