//! A program that HVR manages, and what became of an event.

use core::fmt;

use piebald_units::{ColorSet, TaskId};

use super::{class::Class, decide::Rule, layout::Zone, profile::Profile, scheme::Policy};

/// No slot: the end of the list of programs.
pub(super) const NIL: u16 = u16::MAX;
/// No lot yet.
pub(super) const HOMELESS: u8 = u8::MAX;

/// A program, as long as it runs: an id is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramId {
    pub(super) slot: u16,
    pub(super) stamp: u64,
}

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program {}", self.slot)
    }
}

/// How far a program's memory may reach beyond its lot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// Not at all.
    #[default]
    Lot,
    /// Over all lots of its zone: the same cache regions, others' banks.
    Zone,
    /// Over everything.
    All,
}

/// A slot that the host lends: holds one program, or none.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) task: TaskId,
    /// 0 if the slot holds no program.
    pub(super) threads: u32,
    /// When it arrived.
    pub(super) stamp: u64,
    /// When its colours changed last.
    pub(super) changed: u64,
    /// The programs that arrived before and after it.
    pub(super) before: u16,
    pub(super) after: u16,
    /// What the host says it is.
    pub(super) declared: Option<Class>,
    pub(super) profile: Profile,
    pub(super) zone: Zone,
    /// The lot that is its own.
    pub(super) home: u8,
    /// All lots that it has, spare ones too.
    pub(super) lots: u64,
    /// Those that it had before the event, if they still mean the same.
    pub(super) held: u64,
    pub(super) reach: Reach,
    pub(super) cells: u64,
    pub(super) colors: ColorSet,
    /// Where the search for the colour of the next page that moves starts.
    pub(super) next: u16,
}

impl Program {
    /// A slot without a program.
    pub const EMPTY: Self = Self {
        task: TaskId(0),
        threads: 0,
        stamp: 0,
        changed: 0,
        before: NIL,
        after: NIL,
        declared: None,
        profile: Profile::NEW,
        zone: Zone::Large,
        home: HOMELESS,
        lots: 0,
        held: 0,
        reach: Reach::Lot,
        cells: 0,
        colors: ColorSet::EMPTY,
        next: 0,
    };

    /// The host's name for it.
    pub const fn task(&self) -> TaskId {
        self.task
    }

    /// Its threads, at least one.
    pub const fn threads(&self) -> u32 {
        self.threads
    }

    /// Its class: what the host declared, else what its windows say.
    pub const fn class(&self) -> Option<Class> {
        match self.declared {
            Some(class) => Some(class),
            None => self.profile.class(),
        }
    }

    /// What its windows have told.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The class that it was declared to be, whatever was found.
    pub const fn declared(&self) -> Option<Class> {
        self.declared
    }

    /// With whom it shares.
    pub const fn zone(&self) -> Zone {
        self.zone
    }

    /// The lots of its zone that it has, as a bitmap; 0 for one of several threads.
    pub const fn lots(&self) -> u64 {
        self.lots
    }

    /// How far it reaches beyond them.
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// The cells of the scheme that its pages may be in, as a bitmap.
    pub const fn cells(&self) -> u64 {
        self.cells
    }

    /// The colours that its pages may have, at least one.
    pub const fn colors(&self) -> &ColorSet {
        &self.colors
    }
}

/// A program that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The host's name for it; no other program may have it.
    pub task: TaskId,
    /// Its threads, 1 and more.
    pub threads: u32,
    /// Its class, if it is known from elsewhere ("offline knowledge", section 8).
    pub class: Option<Class>,
    /// What SysMon knows of it already: [`Profile::NEW`], or the profile of an earlier process
    /// of the same executable, whose windows it goes on with. The paper has each process begin anew.
    pub profile: Profile,
}

impl Arrival {
    /// A program of one thread that nothing is known of.
    pub const fn of(task: TaskId) -> Self {
        Self {
            task,
            threads: 1,
            class: None,
            profile: Profile::NEW,
        }
    }
}

/// What an event came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The policy that holds now.
    pub policy: Policy,
    /// Why.
    pub rule: Rule,
    /// It was another one, or had other parts, before.
    pub is_new_layout: bool,
    /// Programs whose colours changed.
    pub programs: u32,
    /// Names this event for [`Manager::changed_since`](super::Manager::changed_since).
    pub stamp: u64,
}

/// What the manager did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Programs that began.
    pub arrived: u64,
    /// Programs that ended.
    pub left: u64,
    /// Classes found, and found to be others.
    pub classified: u64,
    /// Events that led to another policy or to other parts.
    pub layouts: u64,
    /// Changes of a program's colours, its first ones included.
    pub recolored: u64,
    /// Pages that were told to move, less those that did not.
    pub moves: u64,
}
