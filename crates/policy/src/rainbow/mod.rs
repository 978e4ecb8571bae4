//! Rainbow: partitions of the last-level cache, as sets of colours that tasks own.
//!
//! Source: the Rainbow thesis, sections 4.4 and 5.3 to 5.5 (its allocator is in
//! `buddy`, the colour of a frame in `color_map`).
//!
//! Vocabulary: a *partition* is a set of colours that are *reserved* for the
//! tasks in it (the thesis's `color_info`); those tasks are *coloured*; the other
//! colours are *unreserved* (`cinfo_process`) and serve all other tasks; a *turn*
//! is where a task's round through its colours stands (`last_color`); a *share*
//! is a part of the cache and so of memory.
//!
//! # What is decided here
//!
//! * Which colours a new partition gets: so many, a share, or exactly those named;
//!   all or nothing. A run of neighbours if there is one, since neighbours share
//!   blocks, else the lowest that are free.
//! * Who is in it: threads and children of its tasks, and whoever is attached. The
//!   last one to leave gives the colours back.
//! * Which colours a request may have ([`Registry::allowed`]), in this order: the
//!   kernel, devices, and blocks of more than a page: all; while no colour is
//!   unreserved: all; a coloured task: its own; others: the unreserved ones.
//! * Which of those it should have: the next in the round ([`Turn`]).
//! * How a partition grows and shrinks, and which pages have to move then
//!   ([`Plan`]). The thesis calls this expensive (section 3.3) and leaves it out.
//!
//! # Listings of the thesis that do not do what the text says
//!
//! * 5.3 line 38 gives uncoloured tasks exactly the *reserved* colours: it lacks a
//!   complement. Here they get the others, as section 5.3.1 says.
//! * 5.3 line 20 shifts the run once too often (`<=`): its last position includes a
//!   colour that does not exist, which is then found free and handed out.
//! * 5.3 line 28 ends the search for scattered colours `count` colours early, so
//!   that it may find too few; line 33 cannot see that, and the call succeeds with
//!   fewer colours than it counts.
//! * 5.3 lines 12 to 14 shift by as much as the caller likes, before line 17 checks
//!   it; and 0 colours are granted, among which no round ever finds one.
//! * 5.3 lines 17 and 18 answer "already coloured" and "too many" alike; here they
//!   are different errors.
//! * 5.3 releases its lock before the task is marked, so two threads of one process
//!   may both reserve. Here the call is one exclusive operation.
//! * 5.6 line 1 lets a full cache undo the isolation of those who filled it. This is
//!   what the text says as well, so it is the default; see [`WhenFull`].
//!
//! # Deviations from the source
//!
//! * A turn belongs to a task, not to the colour set, so that asking for the allowed
//!   colours changes nothing and readers need not exclude one another. Each task
//!   still goes evenly round. A host that wants one turn per partition keeps one.
//! * Colours are asked for by number, share or name; the thesis has numbers only.
//! * Partitions can have names and can be joined and resized, and overlap where the host wants it
//!   ([`Sharing`]).
//! * Neighbours are neighbouring numbers. These share blocks if the colour map names
//!   frame bits in rising order, as every map from a machine's geometry does for
//!   plain colouring.
//!
//! # Cost
//!
//! `allowed`, `prepare`, `attach` and a [`Turn`] take a few steps, whatever the
//! number of colours and partitions. `reserve`, `resize` and the last `release`
//! visit each colour at most six times and each slot at most four times, with 64 words of each. `find` visits each slot, `validate` compares all
//! pairs. A [`Plan`] says its own. No call allocates, recurses or waits.
//!
//! Memory: 584 B per slot, and about 700 B for the registry.
//!
//! # Concurrency
//!
//! *Exclusive* for whoever changes the registry; calls that take `&self` may run
//! beside one another.

mod allow;
mod config;
mod error;
mod name;
mod partition;
mod recolor;
mod resize;
mod search;
mod validate;

use piebald_units::{ColorSet, MAX_COLORS};

pub use allow::{Allowed, Turn};
pub use config::{
    Balance, Config, ConfigError, Fit, LargeBlocks, Rounding, Sharing, Turns, WhenFull,
};
pub use error::{Broken, Gone, JoinError, Refusal};
pub use name::{MAX_NAME, Name, NameError};
pub use partition::{Ask, Counters, Left, Partition, PartitionId, Reservation, Resized};
pub use recolor::{Estimate, Move, Owner, Plan, PlanError, Step};

use partition::count;
use search::{first_shared, nr_shared, replace, word_of};

/// Most partitions: each has a colour.
pub const MAX_PARTITIONS: usize = MAX_COLORS;

/// Which colours belong to whom. `P` is whatever can be seen as a slice of slots:
/// a vector, an array, a lent slice. The first 4096 slots are used.
#[derive(Clone, Debug)]
pub struct Registry<P> {
    partitions: P,
    unreserved: ColorSet,
    nr_unreserved: u32,
    /// When the unreserved colours changed last.
    unreserved_changed: u64,
    /// 0 before `set_up`.
    colors: u32,
    used: u32,
    /// The next stamp; 64 bits do not run out.
    next: u64,
    config: Config,
    counters: Counters,
}

impl<P: AsRef<[Partition]> + AsMut<[Partition]>> Registry<P> {
    /// A registry for `colors` colours, all unreserved.
    ///
    /// # Errors
    /// As [`Registry::set_up`].
    pub fn new(partitions: P, colors: u32, config: Config) -> Result<Self, ConfigError> {
        let mut registry = Self::over(partitions);
        registry.set_up(colors, config)?;
        Ok(registry)
    }

    /// A registry without colours, to be set up where it lies. Until then it
    /// refuses everything and allows everyone all colours.
    pub const fn over(partitions: P) -> Self {
        Self {
            partitions,
            unreserved: ColorSet::EMPTY,
            nr_unreserved: 0,
            unreserved_changed: 0,
            colors: 0,
            used: 0,
            next: 1,
            config: Config::PAPER,
            counters: Counters::ZERO,
        }
    }

    /// Forgets all partitions and starts with `colors` unreserved colours, as many
    /// as the colour map has.
    ///
    /// # Errors
    /// If `colors` is not within 1 to 4096, or the configuration keeps all of them
    /// unreserved; the registry is unchanged.
    pub fn set_up(&mut self, colors: u32, config: Config) -> Result<(), ConfigError> {
        if colors == 0 || colors as usize > MAX_COLORS {
            return Err(ConfigError::Colors(colors));
        }
        let max = colors.saturating_sub(1);
        if config.keep_unreserved > max {
            let value = config.keep_unreserved;
            return Err(ConfigError::KeepUnreserved { value, max });
        }
        for partition in self.partitions.as_mut() {
            partition.tasks = 0;
            partition.nr_colors = 0;
            partition.name = None;
            partition.colors.clear();
        }
        self.unreserved.clear();
        for word in 0..MAX_COLORS / 64 {
            self.unreserved.set_word(word, word_of(colors, word));
        }
        self.nr_unreserved = colors;
        self.colors = colors;
        self.used = 0;
        self.unreserved_changed = self.stamp();
        self.config = config;
        self.counters = Counters::ZERO;
        Ok(())
    }

    fn stamp(&mut self) -> u64 {
        let stamp = self.next;
        self.next = stamp.saturating_add(1);
        stamp
    }

    /// Number of colours.
    pub const fn colors(&self) -> u32 {
        self.colors
    }

    /// The choices.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What was done.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The colours that no partition has.
    pub const fn unreserved(&self) -> &ColorSet {
        &self.unreserved
    }

    /// How many colours can still be reserved.
    pub fn left(&self) -> u32 {
        self.nr_unreserved
            .saturating_sub(self.config.keep_unreserved)
    }

    /// A partition.
    ///
    /// # Errors
    /// If it does not exist any more.
    pub fn get(&self, id: PartitionId) -> Result<&Partition, Gone> {
        let partition = self.partitions.as_ref().get(usize::from(id.slot));
        partition
            .filter(|p| p.stamp == id.stamp && p.tasks > 0)
            .ok_or(Gone(id))
    }

    fn get_mut(&mut self, id: PartitionId) -> Result<&mut Partition, Gone> {
        let partition = self.partitions.as_mut().get_mut(usize::from(id.slot));
        partition
            .filter(|p| p.stamp == id.stamp && p.tasks > 0)
            .ok_or(Gone(id))
    }

    /// All partitions, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (PartitionId, &Partition)> {
        let slots = (0u16..MAX_PARTITIONS as u16).zip(self.partitions.as_ref());
        slots.filter(|(_, p)| p.tasks > 0).map(|(slot, p)| {
            let stamp = p.stamp;
            (PartitionId { slot, stamp }, p)
        })
    }

    /// The partition of a name. Visits each slot.
    pub fn find(&self, name: &str) -> Option<PartitionId> {
        let named = |p: &Partition| p.name.is_some_and(|n| n.as_str() == name);
        self.iter().find(|(_, p)| named(p)).map(|(id, _)| id)
    }

    /// Reserves colours for the asking task and its threads: all that it asks for,
    /// or none.
    ///
    /// # Errors
    /// See [`Refusal`]; nothing has changed but the counter of refusals.
    pub fn reserve(&mut self, r: &Reservation<'_>) -> Result<PartitionId, Refusal> {
        let made = self.admit(r).map(|(slot, n)| self.make(slot, n, r));
        if made.is_err() {
            count(&mut self.counters.refused, 1);
        }
        made
    }

    /// The slot and the number of colours for a reservation that can be made.
    fn admit(&self, r: &Reservation<'_>) -> Result<(u16, u32), Refusal> {
        if let Some(id) = r.current {
            self.get(id)?;
            return Err(Refusal::AlreadyColored(id));
        }
        if r.tasks == 0 {
            return Err(Refusal::NoTasks);
        }
        let n = self.wanted(&r.ask)?;
        let mut takes = n;
        if let Ask::Exactly(set) = r.ask {
            self.check_free(set, None)?;
            takes = nr_shared(set, &self.unreserved);
        }
        self.check_left(takes, self.left())?;
        if let Some(id) = r.name.and_then(|name| self.find(name.as_str())) {
            return Err(Refusal::NameTaken(id));
        }
        let slots = self.partitions.as_ref().iter();
        let mut slots = (0u16..MAX_PARTITIONS as u16).zip(slots);
        match slots.find(|(_, p)| p.tasks == 0) {
            Some((slot, _)) => Ok((slot, n)),
            None => Err(Refusal::NoSlot {
                slots: self.partitions.as_ref().len().min(MAX_PARTITIONS),
            }),
        }
    }

    /// Makes a partition that was admitted.
    fn make(&mut self, slot: u16, n: u32, r: &Reservation<'_>) -> PartitionId {
        let stamp = self.stamp();
        if let Some(p) = self.partitions.as_mut().get_mut(usize::from(slot)) {
            match r.ask {
                Ask::Exactly(set) => replace(&mut p.colors, &mut self.unreserved, set),
                _ => search::take(&mut self.unreserved, &mut p.colors, n, self.config.fit),
            }
            let scattered = !search::is_run(&p.colors);
            count(&mut self.counters.scattered, u64::from(scattered));
            (p.nr_colors, p.tasks, p.name) = (n, r.tasks, r.name);
            (p.stamp, p.changed) = (stamp, stamp);
        }
        self.recount_unreserved();
        self.unreserved_changed = stamp;
        self.used = self.used.saturating_add(1);
        count(&mut self.counters.reserved, 1);
        PartitionId { slot, stamp }
    }

    /// Number of colours that are asked for.
    fn wanted(&self, ask: &Ask<'_>) -> Result<u32, Refusal> {
        let n = match ask {
            Ask::Count(n) => *n,
            Ask::Share(basis_points) => return self.share(*basis_points),
            Ask::Exactly(set) => {
                let beyond = search::at_or_after(set, self.colors as u16);
                if let Some(color) = beyond {
                    let colors = self.colors;
                    return Err(Refusal::NotAColor { color, colors });
                }
                set.len()
            }
        };
        match n {
            0 => Err(Refusal::NoColors),
            _ => Ok(n),
        }
    }

    fn share(&self, basis_points: u32) -> Result<u32, Refusal> {
        const WHOLE: u32 = 10_000;
        if basis_points == 0 || basis_points > WHOLE {
            return Err(Refusal::Share { basis_points });
        }
        let colors = self.colors;
        // At most 4096 * 10000.
        let parts = colors.saturating_mul(basis_points);
        let n = match self.config.rounding {
            Rounding::Up => parts.div_ceil(WHOLE),
            Rounding::Down => parts / WHOLE,
            Rounding::Nearest => parts.saturating_add(WHOLE / 2) / WHOLE,
        };
        match n {
            0 => Err(Refusal::ShareTooSmall {
                basis_points,
                colors,
            }),
            _ => Ok(n),
        }
    }

    const fn check_left(&self, asked: u32, left: u32) -> Result<(), Refusal> {
        match asked > left {
            true => Err(Refusal::TooMany { asked, left }),
            false => Ok(()),
        }
    }

    /// A word of the colours that partitions have, but for that in the slot `except`.
    fn reserved_word(&self, word: usize, except: Option<u16>) -> u64 {
        let others = self.iter().filter(|(id, _)| Some(id.slot) != except);
        others.fold(0, |all, (_, p)| all | p.colors.word(word))
    }

    /// Finds the unreserved colours anew: a colour that one partition gives back may be another's
    /// too. Visits each slot 64 times.
    fn recount_unreserved(&mut self) {
        let mut n = 0u32;
        for word in 0..MAX_COLORS / 64 {
            let left = word_of(self.colors, word) & !self.reserved_word(word, None);
            self.unreserved.set_word(word, left);
            n = n.saturating_add(left.count_ones());
        }
        self.nr_unreserved = n;
    }

    /// Refuses a set with a colour of another partition than `own`, unless partitions may share.
    fn check_free(&self, set: &ColorSet, own: Option<PartitionId>) -> Result<(), Refusal> {
        if self.config.sharing == Sharing::Shared {
            return Ok(());
        }
        let taken = self.iter().filter(|(id, _)| Some(*id) != own);
        let taken = taken.filter_map(|(id, p)| Some((first_shared(set, &p.colors)?, id)));
        match taken.min_by_key(|(color, _)| *color) {
            Some((color, by)) => Err(Refusal::Taken { color, by }),
            None => Ok(()),
        }
    }

    /// Lets a task into a partition: a new thread or child of one of its tasks
    /// (section 5.4.2), or any other. Returns how many tasks are in it now.
    ///
    /// # Errors
    /// If the partition does not exist any more, or has 2^32 - 1 tasks.
    pub fn attach(&mut self, id: PartitionId) -> Result<u32, JoinError> {
        let Ok(partition) = self.get_mut(id) else {
            return Err(JoinError::Gone(id));
        };
        let Some(tasks) = partition.tasks.checked_add(1) else {
            return Err(JoinError::TooManyTasks(id));
        };
        partition.tasks = tasks;
        count(&mut self.counters.joined, 1);
        Ok(tasks)
    }

    /// Lets a task out of a partition, since it exits. Each task that is in it
    /// calls this once; with the last one the partition ends and its colours are
    /// unreserved.
    ///
    /// # Errors
    /// If the partition does not exist any more; nothing has changed.
    pub fn release(&mut self, id: PartitionId) -> Result<Left, Gone> {
        let partition = self.get_mut(id)?;
        partition.tasks = partition.tasks.saturating_sub(1);
        let tasks = partition.tasks;
        count(&mut self.counters.left, 1);
        match tasks {
            0 => Ok(Left::Freed(self.end(id.slot))),
            _ => Ok(Left::Tasks(tasks)),
        }
    }

    /// Gives back the colours of a partition that no task is in.
    fn end(&mut self, slot: u16) -> u32 {
        let stamp = self.stamp();
        let mut freed = 0;
        if let Some(p) = self.partitions.as_mut().get_mut(usize::from(slot)) {
            replace(&mut p.colors, &mut self.unreserved, &ColorSet::EMPTY);
            freed = p.nr_colors;
            (p.nr_colors, p.name) = (0, None);
        }
        self.recount_unreserved();
        self.unreserved_changed = stamp;
        self.used = self.used.saturating_sub(1);
        count(&mut self.counters.freed, 1);
        freed
    }

    /// Most frames that the tasks of a partition can have, out of `frames` in the
    /// machine: its colours times the frames of a colour (section 4.4.1), whose
    /// number is rounded down. Blocks that take any colour count extra.
    ///
    /// # Errors
    /// If the partition does not exist any more.
    pub fn memory_limit(&self, id: PartitionId, frames: u64) -> Result<u64, Gone> {
        let colors = u64::from(self.get(id)?.nr_colors);
        let per_color = frames.checked_div(u64::from(self.colors)).unwrap_or(0);
        Ok(colors.saturating_mul(per_color))
    }
}
