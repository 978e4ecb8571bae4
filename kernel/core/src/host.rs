//! The state of the module's decisions and what can be asked of it.

mod deal;
mod even;
mod places;
mod pool;
mod zone;

use core::{fmt, ptr};

use piebald_policy::{
    buddy::{List, NewError, RangeError, Sizes},
    color_map::ColorMap,
    contract::{AllocError, Asker, Cause, FrameRequest, Mode, Purpose},
    rainbow::{self, Config, Gone, Partition, PartitionId, Refusal, Registry, Sharing, Turn},
    srm,
};
use piebald_units::{Color, CoreId, MAX_COLORS, Order, ParseError, Pfn, TaskId};

pub use places::Key;
pub use pool::Pool;
pub use zone::{Ask as ZoneAsk, Found, Short, ZoneColor, ZoneCounters};

use self::even::Even;
use crate::ask::Wanted;

/// Which colours a frame may have. The C side asks for the turn first, so that nobody gets what
/// others left in the pool: their memory would lie in a few colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The colour whose turn it is.
    Turn,
    /// Allowed colours.
    Allowed,
    /// Any colour, if there is no allowed one.
    Any,
}

/// A colour set: its partition, where the round through its colours stands, and what it had of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seat {
    partition: Option<PartitionId>,
    turn: Turn,
    even: Even,
}

/// A frame that left the pool for a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Given {
    /// Its number.
    pub pfn: u64,
    /// Its colour.
    pub color: u32,
    /// 1 if that is none of the allowed ones.
    pub fallback: u32,
}

/// What a map needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Needs {
    /// Bytes for the heads of lists.
    pub list_bytes: usize,
    /// Their number.
    pub nr_lists: usize,
    /// Number of `u64`s for bitmaps.
    pub nr_words: usize,
    /// Colours.
    pub colors: u32,
}

/// What was done since the map was set; all of them only rise until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Frames given to processes.
    pub grants: u64,
    /// Of these, such without an allowed colour.
    pub fallbacks: u64,
    /// Requests that found no frame in the pool.
    pub failures: u64,
    /// Blocks split in two.
    pub splits: u64,
    /// Pairs of buddies merged.
    pub merges: u64,
    /// Colour sets reserved.
    pub reserved: u64,
    /// Colour sets that ended.
    pub freed: u64,
    /// Colour sets that changed.
    pub resized: u64,
    /// Requests for colours that were refused.
    pub refused: u64,
}

/// Why something was not done. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// No map has been set.
    NoMap,
    /// A text is no set of colours.
    Colors(ParseError),
    /// A text is no share.
    Share,
    /// The registry refused.
    Refused(Refusal),
    /// The map does not fit the memory that was lent.
    Sizes(NewError),
    /// The map has one colour only.
    OneColor,
    /// Some colours of the map are those of no frame that the machine has.
    Unreachable {
        /// Colours of the map.
        colors: u32,
        /// Those of the machine's frames.
        there: u32,
    },
    /// A block cannot be added.
    Block(RangeError),
    /// There is a zone already, or none, or it is not empty, or does not cover a frame.
    Zone,
    /// A threshold does not fit the machine.
    Threshold {
        /// What was asked for.
        threshold: u32,
        /// The most that is allowed.
        allowed: u64,
    },
    /// The zone does not fit the memory that was lent.
    ZoneSizes(srm::ConfigError),
    /// There is no zone on a machine with so many memory nodes.
    ZoneNodes(usize),
    /// No memory node has that number.
    Node,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMap => f.write_str("no map of colors is set; write one to the file map first"),
            Self::Colors(error) => error.fmt(f),
            Self::Share => f.write_str("no share; allowed: 0.01% to 100%"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Sizes(error) => error.fmt(f),
            Self::OneColor => f.write_str("the map has 1 color; allowed: 2 or more"),
            Self::Unreachable { colors, there } => write!(
                f,
                "the map has {colors} colors, of which the frames of this machine have {there}; allowed: \
                 address bits that the machine's memory has"
            ),
            Self::Block(error) => error.fmt(f),
            Self::Zone => f.write_str("not in this state of the zone"),
            Self::Threshold {
                threshold,
                allowed: 0,
            } => write!(
                f,
                "threshold {threshold}; none is allowed: the memory is too small for so many colors"
            ),
            Self::Threshold { threshold, allowed } => {
                write!(f, "threshold {threshold}; allowed: 1 to {allowed} pages")
            }
            Self::ZoneSizes(error) => error.fmt(f),
            Self::ZoneNodes(n) => {
                write!(f, "srm: the machine has {n} memory nodes; allowed: 1")
            }
            Self::Node => f.write_str("no memory node has that number"),
        }
    }
}

/// The choices of the thesis, but sets may overlap, and the last colour stays unreserved, so that
/// everyone else always has one and nobody's isolation is undone.
const CONFIG: Config = Config {
    keep_unreserved: 1,
    sharing: Sharing::Shared,
    ..Config::PAPER
};

/// Everything that the module decides from. Sets of colours and rounds are the machine's; free frames
/// lie in a pool for each memory node, in the order in which they were lent.
pub struct Host {
    pools: &'static mut [Pool],
    registry: Registry<&'static mut [Partition]>,
    /// A map that was read and not yet set.
    next: ColorMap,
    /// What was asked for last.
    wanted: Wanted,
    /// Where processes without colours stand in their round.
    others: Turn,
    /// What they had by colour.
    even: Even,
    /// Counts before the last change of the map.
    before: Counters,
    /// Frames that the buddy granted for the kernel, not for a process.
    shed: u64,
    /// Where frames of SRM-buffer lie.
    zone: zone::Zone,
}

/// The map of a host without nodes.
static NO_MAP: ColorMap = ColorMap::PLAIN;

/// Colours of the frames below `frames`. A map is linear: they are all sums of the colours of the
/// frames whose number has one bit. (The last part of a memory that is no power of two has all of
/// the bits below its highest, which is enough.)
fn reachable(map: &ColorMap, frames: u64) -> u32 {
    // One colour for each leading bit, as in Gaussian elimination.
    let mut basis = [0u16; u16::BITS as usize];
    let mut rank = 0;
    for bit in (0..u64::BITS).take_while(|bit| 1u64 << bit < frames) {
        let mut color = map.color(Pfn(1 << bit)).0;
        while let Some(lead) = color.checked_ilog2() {
            let Some(place) = basis.get_mut(lead as usize) else {
                break;
            };
            if *place == 0 {
                *place = color;
                rank += 1;
                break;
            }
            color ^= *place;
        }
    }
    1u32.checked_shl(rank).unwrap_or(u32::MAX)
}

impl Host {
    /// Makes a host where it is to lie. It has no map and refuses all until it gets one.
    ///
    /// # Safety
    /// `at` is valid, aligned, all zero, and does not move; `pools` were set up (each by its `set_up`), one at
    /// least, and like `slots` are lent for as long as the host is used.
    pub unsafe fn set_up(
        at: *mut Self,
        pools: &'static mut [Pool],
        slots: &'static mut [Partition],
    ) {
        // SAFETY: the caller's promise; each field is written once. `before` and
        // `shed` are whole numbers, for which zero bytes are valid.
        unsafe {
            ptr::addr_of_mut!((*at).pools).write(pools);
            ptr::addr_of_mut!((*at).registry).write(Registry::over(slots));
            ptr::addr_of_mut!((*at).next).write(ColorMap::PLAIN);
            ptr::addr_of_mut!((*at).wanted).write(Wanted::NOTHING);
            ptr::addr_of_mut!((*at).others).write(Turn::START);
            ptr::addr_of_mut!((*at).even).write(Even::NEW);
            ptr::addr_of_mut!((*at).zone).write(zone::Zone::NONE);
        }
    }

    /// The map in use.
    pub fn map(&self) -> &ColorMap {
        self.pools.first().map_or(&NO_MAP, Pool::map)
    }

    /// The pool of a node.
    fn pool(&mut self, node: usize) -> Result<&mut Pool, Fault> {
        self.pools.get_mut(node).ok_or(Fault::Node)
    }

    /// Number of colours, 0 without a map.
    pub fn colors(&self) -> u32 {
        self.registry.colors()
    }

    /// The order of the largest blocks of which all frames have one colour, at most that of the kernel's
    /// own largest (10).
    pub fn whole_order(&self) -> u32 {
        let orders = (1..=10u8).take_while(|order| self.map().rank(Order(*order)) == 0);
        orders.count() as u32
    }

    /// The map that [`Host::set_map`] will set, to be read into in place.
    pub fn next_map(&mut self) -> &mut ColorMap {
        &mut self.next
    }

    /// What the next map needs for each node.
    ///
    /// # Errors
    /// If it has one colour, or colours that no frame has, or a node has no frames or
    /// more than 2^28.
    pub fn needs(&self) -> Result<Needs, Fault> {
        if self.next.colors() < 2 {
            return Err(Fault::OneColor);
        }
        let end = self.pools.iter().map(Pool::end).max().unwrap_or(0);
        let there = reachable(&self.next, end);
        if there < self.next.colors() {
            return Err(Fault::Unreachable {
                colors: self.next.colors(),
                there,
            });
        }
        let mut sizes = None;
        for pool in self.pools.iter() {
            let of = Sizes::of(&self.next, pool.frames()).map_err(Fault::Sizes)?;
            // They depend on the colours alone.
            sizes = Some(of);
        }
        let sizes = sizes.ok_or(Fault::Node)?;
        Ok(Needs {
            list_bytes: sizes.lists.saturating_mul(size_of::<List>()),
            nr_lists: sizes.lists,
            nr_words: sizes.words,
            colors: self.next.colors(),
        })
    }

    /// Sets the next map. The pools must be empty; every colour set is forgotten.
    ///
    /// # Safety
    /// `lists` and `words` are, for each node, as many as [`Host::needs`] asked for; states and
    /// pageblocks are zero.
    ///
    /// # Errors
    /// If what was lent is too short, or there is a zone.
    pub unsafe fn set_map(
        &mut self,
        needs: &Needs,
        lists: *mut List,
        words: *mut u64,
    ) -> Result<(), Fault> {
        if self.has_zone() {
            return Err(Fault::Zone);
        }
        self.before = self.counters();
        for (n, pool) in self.pools.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let lists = lists.add(n.wrapping_mul(needs.nr_lists));
                let words = words.add(n.wrapping_mul(needs.nr_words));
                pool.set_map(&self.next, (lists, needs.nr_lists), (words, needs.nr_words))?;
            }
        }
        // At least two colours, so keeping one unreserved is possible.
        let _ = self.registry.set_up(self.next.colors(), CONFIG);
        self.shed = 0;
        (self.zone.from_pool, self.zone.given) = (0, 0);
        (self.others, self.even) = (Turn::START, Even::NEW);
        Ok(())
    }

    /// Adds a block of the kernel's to the pool of a node.
    ///
    /// # Errors
    /// If it lies outside the table or is in the pool already.
    pub fn add(&mut self, node: usize, first: Pfn, order: Order) -> Result<(), Fault> {
        if self.colors() == 0 {
            return Err(Fault::NoMap);
        }
        self.pool(node)?.add(first, order)
    }

    /// Takes a block of at most `frames` frames out of a node's pool, for the kernel: the largest
    /// that fits. Answers its first frame and its order.
    pub fn shed(&mut self, node: usize, frames: u64) -> Option<(Pfn, Order)> {
        self.pool(node).ok()?.shed(frames)
    }

    /// Takes the largest block of at most `frames` frames out of a node's pool, unless that leaves less of
    /// one of its colours than half of what the pool has of all on average. Answers its first
    /// frame and its order.
    pub fn shed_surplus(&mut self, node: usize, frames: u64) -> Option<(Pfn, Order)> {
        let colors = u64::from(self.colors());
        self.pool(node).ok()?.shed_surplus(frames, colors)
    }

    /// Takes up to `out.len()` frames of the colour that a node's pool has most of, down to the mean
    /// of all colours: what nobody asks for piles up. Answers how many.
    pub fn shed_most(&mut self, node: usize, out: &mut [u64]) -> usize {
        let colors = self.colors();
        let taken = self.pool(node).map_or(0, |p| p.shed_most(colors, out));
        self.shed = self.shed.wrapping_add(taken as u64);
        taken
    }

    /// A frame for a process, which leaves a node's pool; `None` is a process without colours.
    ///
    /// # Errors
    /// If the pool has none that it may have.
    pub fn take(
        &mut self,
        node: usize,
        seat: Option<&mut Seat>,
        reach: Reach,
    ) -> Result<Given, AllocError> {
        if self.colors() == 0 {
            return Err(AllocError::NoColors);
        }
        // A set that was taken away leaves its processes without colours.
        let of = self.set_with(seat.as_deref());
        let turn = seat.as_deref().filter(|_| of.is_some());
        let turn = turn.map_or(self.others, |s| s.turn);
        let Ok(request) = self.registry.prepare(&REQUEST, of, turn) else {
            return Err(AllocError::NoColors);
        };
        let Some(pool) = self.pools.get_mut(node) else {
            return Err(AllocError::OutOfMemory);
        };
        if reach == Reach::Turn
            && let Some(color) = request.wish
            && pool.free_of(color) == 0
        {
            return Err(AllocError::ColorsExhausted);
        }
        let request = FrameRequest {
            mode: match reach {
                Reach::Turn | Reach::Allowed => Mode::Hard,
                Reach::Any => Mode::Hint,
            },
            ..request
        };
        let wish = request.wish;
        let given = pool.take(&request)?;
        let color = Color(given.color as u16);
        let even = self.took(seat, color);
        if wish != Some(color) && given.fallback == 0 {
            even.passed_over(color);
        }
        Ok(given)
    }

    /// The set that a process has, if it is there still.
    fn set_with(&self, seat: Option<&Seat>) -> Option<PartitionId> {
        let id = seat?.partition?;
        self.registry.get(id).is_ok().then_some(id)
    }

    /// The colour whose turn it is.
    fn wish(&self, seat: Option<&Seat>) -> Option<Color> {
        let of = self.set_with(seat);
        let turn = seat
            .filter(|_| of.is_some())
            .map_or(self.others, |s| s.turn);
        self.registry.prepare(&REQUEST, of, turn).ok()?.wish
    }

    /// Notes that a process got a frame of this colour. Answers what it, or all that have no colours, had by colour.
    fn took<'a>(&'a mut self, seat: Option<&'a mut Seat>, color: Color) -> &'a mut Even {
        let of = self.set_with(seat.as_deref());
        let (turn, even) = match seat.filter(|_| of.is_some()) {
            Some(seat) => (&mut seat.turn, &mut seat.even),
            None => (&mut self.others, &mut self.even),
        };
        turn.took(color);
        even.took(color);
        even
    }

    /// Gives a set the colours that a text names, or changes those that it has.
    ///
    /// # Errors
    /// What is wrong with the text, or why the registry refuses.
    pub fn reserve(&mut self, seat: &mut Seat, text: &str) -> Result<(), Fault> {
        if self.colors() == 0 {
            return Err(Fault::NoMap);
        }
        self.wanted.read(text)?;
        let current = seat.partition.filter(|id| self.registry.get(*id).is_ok());
        match current {
            Some(id) => {
                let resized = self.registry.resize(id, &self.wanted.ask());
                resized.map(|_| ()).map_err(Fault::Refused)
            }
            None => {
                let made = self
                    .registry
                    .reserve(&rainbow::Reservation::of(self.wanted.ask()));
                seat.partition = Some(made.map_err(Fault::Refused)?);
                seat.turn = Turn::START;
                Ok(())
            }
        }
    }

    /// Ends a set.
    pub fn leave(&mut self, seat: &mut Seat) {
        if let Some(id) = seat.partition.take() {
            // A set that is gone already has nobody to let out.
            let _: Result<_, Gone> = self.registry.release(id);
        }
    }

    /// The colours of a process.
    pub fn colors_of(&self, seat: &Seat) -> Option<&piebald_units::ColorSet> {
        let partition = self.registry.get(seat.partition?).ok()?;
        Some(partition.colors())
    }

    /// Does the process have colours, and the frame none of them? Such a page has to move when
    /// the process is recoloured.
    pub fn is_misplaced(&self, seat: &Seat, frame: Pfn) -> bool {
        let color = self.map().color(frame);
        self.colors_of(seat).is_some_and(|own| !own.contains(color))
    }

    /// Do two sets have a colour in common?
    pub fn overlap(&self, one: &Seat, other: &Seat) -> bool {
        let (Some(one), Some(other)) = (self.colors_of(one), self.colors_of(other)) else {
            return false;
        };
        (0..MAX_COLORS / 64).any(|word| one.word(word) & other.word(word) != 0)
    }

    /// Is the colour of a frame one of the set's?
    pub fn owns(&self, seat: &Seat, frame: Pfn) -> bool {
        let color = self.map().color(frame);
        self.colors_of(seat).is_some_and(|own| own.contains(color))
    }

    /// The colour of a frame, and whether a process may have it; `None` is a process without
    /// colours.
    pub fn may_have(&self, seat: Option<&Seat>, frame: Pfn) -> (Color, bool) {
        let color = self.map().color(frame);
        let allowed = self.registry.allowed(&REQUEST, self.set_with(seat));
        let it_may = allowed.is_ok_and(|a| a.set().is_none_or(|set| set.contains(color)));
        (color, it_may && self.colors() != 0)
    }

    /// The colours from a place on among those that a process may have, counted round and round; without a seat, of those
    /// that no set has. How many: all that there is room for, or none.
    pub fn colors_at(&self, seat: Option<&Seat>, place: u32, out: &mut [u32]) -> usize {
        let colors = match seat {
            Some(seat) => self.colors_of(seat),
            None => Some(self.unreserved()),
        };
        let Some(colors) = colors else { return 0 };
        let Some(first) = place.checked_rem(colors.len()) else {
            return 0;
        };
        let first = first as usize;
        let round = colors.iter().skip(first).chain(colors.iter().take(first));
        for (out, color) in out.iter_mut().zip(round) {
            *out = u32::from(color.0);
        }
        // The rounds that follow.
        let (mut from, round) = (0, colors.len() as usize);
        while let Some(&color) = out.get(from)
            && let Some(out) = out.get_mut(from + round)
        {
            *out = color;
            from += 1;
        }
        out.len()
    }

    /// The number of a process's colour set; 0 for all that have none.
    pub fn set_of(&self, seat: Option<&Seat>) -> u64 {
        self.set_with(seat).map_or(0, PartitionId::number)
    }

    /// A number that changes whenever a colour set comes, goes or changes.
    pub fn version(&self) -> u64 {
        let now = self.counters();
        now.reserved
            .wrapping_add(now.freed)
            .wrapping_add(now.resized)
    }

    /// The colours that no set has.
    pub const fn unreserved(&self) -> &piebald_units::ColorSet {
        self.registry.unreserved()
    }

    /// Free frames of a colour in all pools.
    pub fn free_of(&self, color: Color) -> u32 {
        let each = self.pools.iter().map(|pool| pool.free_of(color));
        each.fold(0, u32::saturating_add)
    }

    /// Free frames in a node's pool.
    pub fn free_frames(&self, node: usize) -> u64 {
        self.pools.get(node).map_or(0, Pool::free_frames)
    }

    /// Frames that left a node's pool one by one, since the map was set.
    pub fn granted(&self, node: usize) -> u64 {
        let pool = self.pools.get(node);
        pool.map_or(0, |pool| pool.counters().grants)
    }

    /// What was done.
    pub fn counters(&self) -> Counters {
        let sets = self.registry.counters();
        let before = &self.before;
        let (mut grants, mut fallbacks, mut failures) =
            (before.grants, before.fallbacks, before.failures);
        let (mut splits, mut merges) = (before.splits, before.merges);
        for pool in self.pools.iter() {
            let frames = pool.counters();
            grants = grants.wrapping_add(frames.grants);
            fallbacks = fallbacks.wrapping_add(frames.fallbacks);
            failures = failures.wrapping_add(frames.failures);
            splits = splits.wrapping_add(frames.splits);
            merges = merges.wrapping_add(frames.merges);
        }
        Counters {
            grants: grants
                .wrapping_sub(self.shed)
                .wrapping_sub(self.zone.from_pool)
                .wrapping_add(self.zone.given),
            fallbacks,
            failures,
            splits,
            merges,
            reserved: before.reserved.wrapping_add(sets.reserved),
            freed: before.freed.wrapping_add(sets.freed),
            resized: before.resized.wrapping_add(sets.resized),
            refused: before.refused.wrapping_add(sets.refused),
        }
    }

    /// Recounts everything and compares. Visits every frame of the table.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.colors() == 0 {
            return Ok(());
        }
        self.registry.validate().map_err(|broken| broken.rule)?;
        self.zone_check()?;
        self.pools.iter().try_for_each(Pool::check)
    }
}

/// What every request for a process has in common; the registry adds its colours.
const REQUEST: FrameRequest<'static> = FrameRequest {
    order: Order(0),
    purpose: Purpose::Anon,
    asker: Asker::Task(TaskId(0)),
    cause: Cause::Fault,
    core: CoreId(0),
    page: None,
    allowed: None,
    wish: None,
    mode: Mode::Hint,
};
