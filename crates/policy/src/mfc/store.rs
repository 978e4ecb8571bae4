//! The memory that MFC lives in, lent by the host as typed slices.

use super::{
    ConfigError,
    config::Config,
    sync::{Acquire, AtomicU32, AtomicU64, Relaxed, Release},
    topology::{Level, MAX_LEVELS, MAX_OWN_LEVELS, Topology},
};

/// Files that share a set of the table, and so compete for its records.
pub(super) const WAYS: usize = 8;
/// Instead of a shared cache or a domain: none.
pub(super) const NONE: u8 = u8::MAX;
/// Kinds of events that are counted.
pub(super) const NR_EVENTS: usize = super::Why::NR + 4;

/// A lock that nobody waits for: who does not get it does without.
#[derive(Debug, Default)]
pub(super) struct TryLock(AtomicU32);

impl TryLock {
    pub fn take(&self) -> bool {
        let taken = self.0.compare_exchange(0, 1, Acquire, Relaxed);
        taken.is_ok()
    }

    pub fn give(&self) {
        self.0.store(0, Release);
    }

    pub fn is_taken(&self) -> bool {
        self.0.load(Relaxed) != 0
    }
}

/// What does not change about a domain while MFC runs.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Facts {
    /// Its cores, as a bitmap.
    pub cores: u64,
    /// Bytes of its own levels.
    pub own: u64,
    /// Bytes of all levels that it can use.
    pub capacity: u64,
    pub node: u8,
    /// The shared cache, or [`NONE`].
    pub group: u8,
    pub levels: [Level; MAX_LEVELS],
}

/// What a domain's cache is believed to hold. `held`, `files` and the entries change
/// only under the lock; anyone may read them.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Books {
    pub lock: TryLock,
    /// A file that the entries name was forgotten, changed its size, or the domain
    /// went: to be settled by who takes the lock next.
    pub stale: AtomicU32,
    /// No entry has fewer uses than this; 0: look.
    pub least: AtomicU32,
    /// Entries in use.
    pub held: AtomicU32,
    /// Bytes of the entries in use.
    pub files: AtomicU64,
    /// Bytes of levels that are full of other data (equation 1).
    pub others: AtomicU64,
    /// When the files' uses are halved next, in ps.
    pub due: AtomicU64,
    /// Somebody halves uses.
    pub aging: TryLock,
    /// The next file whose uses are halved; changes only under `aging`.
    pub cursor: AtomicU32,
}

/// A cache domain. 256 B.
#[derive(Debug, Default)]
pub struct DomainState {
    pub(super) facts: Facts,
    pub(super) books: Books,
}

/// A cache that domains share: bytes of files for which their own levels have no
/// room. 64 B.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct SharedState {
    pub(super) spilled: AtomicU64,
}

/// A core. 192 B.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct CoreState {
    /// Threads that run or want to.
    pub(super) runnable: AtomicU32,
    /// Misses in the last quantum, by level.
    pub(super) misses: [AtomicU32; MAX_LEVELS],
    pub(super) events: [AtomicU64; NR_EVENTS],
    /// Its domain, or [`NONE`].
    pub(super) domain: u8,
}

/// A file, a chunk of one, or an object. 32 B.
#[derive(Debug, Default)]
pub struct FileRecord {
    pub(super) id: AtomicU64,
    /// Which chunk of the file; 0: the record is free.
    pub(super) part: AtomicU32,
    pub(super) bytes: AtomicU32,
    /// `f.cores`, as a bitmap of domains.
    pub(super) holders: AtomicU64,
    /// What migrations for it have cost since it was last loaded, in ns.
    pub(super) paid_ns: AtomicU32,
}

/// A set of file records: taken by who gives one to another file. 4 B.
#[derive(Debug, Default)]
pub struct SetState {
    pub(super) lock: TryLock,
}

/// A file on a domain. 8 B.
#[derive(Debug, Default)]
pub struct Cell {
    /// `f.use[c]`.
    pub(super) used: AtomicU32,
    /// Readers that were moved away from the domain for the file.
    pub(super) moved: AtomicU32,
}

/// A file that a domain is believed to hold. 8 B.
#[derive(Debug, Default)]
pub struct Entry {
    /// Its record.
    pub(super) file: AtomicU32,
    /// Its size as the books have it.
    pub(super) bytes: AtomicU32,
}

/// How long the slices of a [`Store`] must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// [`DomainState`]s of 256 B.
    pub domains: usize,
    /// [`SharedState`]s of 64 B.
    pub shared: usize,
    /// [`CoreState`]s of 192 B: up to the highest core.
    pub cores: usize,
    /// [`FileRecord`]s of 32 B: files, chunks and objects that MFC can tell apart.
    pub files: usize,
    /// [`SetState`]s of 4 B: one for 8 files.
    pub sets: usize,
    /// [`Cell`]s of 8 B: one for each file and domain.
    pub cells: usize,
    /// [`Entry`]s of 8 B: for each domain as many as files of the least size fit.
    pub entries: usize,
    /// Bytes: one for each pair of nodes.
    pub hops: usize,
}

impl Sizes {
    /// The sizes for at least so many files on a machine. Files beyond them are read as
    /// if they were unpopular.
    ///
    /// # Errors
    /// If the machine or the configuration does not fit.
    pub fn of(topology: &Topology<'_>, config: &Config, files: u32) -> Result<Self, ConfigError> {
        topology.check()?;
        let least = config.costs()?.min_read.max(1);
        let domains = topology.domains.len();
        let sets = (files as usize).div_ceil(WAYS).max(1);
        let files = sets.saturating_mul(WAYS);
        let largest = topology.domains.iter().map(|d| facts(topology, d).capacity);
        let fit = largest.max().unwrap_or(0).checked_div(least).unwrap_or(0);
        let fit = usize::try_from(fit).unwrap_or(usize::MAX).saturating_add(1);
        Ok(Self {
            domains,
            shared: topology.shared.len(),
            cores: (u64::BITS.saturating_sub(topology.cores.bits().leading_zeros())) as usize,
            files,
            sets,
            cells: files.saturating_mul(domains),
            entries: fit.min(files).saturating_mul(domains),
            hops: topology.hops.len(),
        })
    }

    /// Bytes of the slices that grow with the number of files.
    pub fn file_bytes(&self) -> usize {
        let files = self.files.saturating_mul(size_of::<FileRecord>());
        let cells = self.cells.saturating_mul(size_of::<Cell>());
        let sets = self.sets.saturating_mul(size_of::<SetState>());
        files.saturating_add(cells).saturating_add(sets)
    }

    /// Bytes of the other slices, which depend on the machine alone (if there are more
    /// files than fit in a cache).
    pub fn machine_bytes(&self) -> usize {
        [
            self.domains.saturating_mul(size_of::<DomainState>()),
            self.shared.saturating_mul(size_of::<SharedState>()),
            self.cores.saturating_mul(size_of::<CoreState>()),
            self.entries.saturating_mul(size_of::<Entry>()),
            self.hops,
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// The first slice that is too short.
    pub(super) fn check(&self, lent: &Parts<'_>) -> Result<(), ConfigError> {
        let slices = [
            ("domains", lent.domains.len(), self.domains),
            ("shared", lent.shared.len(), self.shared),
            ("cores", lent.cores.len(), self.cores),
            ("files", lent.files.len(), self.files),
            ("sets", lent.sets.len(), self.sets),
            ("cells", lent.cells.len(), self.cells),
            ("entries", lent.entries.len(), self.entries),
            ("hops", lent.hops.len(), self.hops),
        ];
        match slices.into_iter().find(|(_, lent, needed)| lent < needed) {
            Some((name, lent, needed)) => Err(ConfigError::Store { name, lent, needed }),
            None => Ok(()),
        }
    }
}

/// The facts of a domain of a topology that was checked.
pub(super) fn facts(topology: &Topology<'_>, domain: &super::Domain) -> Facts {
    let shared = domain
        .shared
        .and_then(|i| topology.shared.get(usize::from(i)));
    let mut levels = [Level::default(); MAX_LEVELS];
    let named = domain.own.iter().chain(shared);
    for (to, from) in levels.iter_mut().zip(named) {
        *to = *from;
    }
    let sum = |levels: &[Level]| {
        let sizes = levels.iter().map(|l| l.size.0);
        sizes.fold(0, u64::saturating_add)
    };
    Facts {
        cores: domain.cores.bits(),
        own: sum(levels.get(..MAX_OWN_LEVELS).unwrap_or(&[])),
        capacity: sum(&levels),
        node: domain.node,
        group: domain.shared.unwrap_or(NONE),
        levels,
    }
}

/// All that a [`Store`] lends.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// See [`Sizes::domains`].
    pub domains: &'a [DomainState],
    /// See [`Sizes::shared`].
    pub shared: &'a [SharedState],
    /// See [`Sizes::cores`].
    pub cores: &'a [CoreState],
    /// See [`Sizes::files`].
    pub files: &'a [FileRecord],
    /// See [`Sizes::sets`].
    pub sets: &'a [SetState],
    /// See [`Sizes::cells`].
    pub cells: &'a [Cell],
    /// See [`Sizes::entries`].
    pub entries: &'a [Entry],
    /// See [`Sizes::hops`].
    pub hops: &'a [u8],
}

/// All that a [`Store`] lends, to set up.
pub struct PartsMut<'a> {
    /// See [`Sizes::domains`].
    pub domains: &'a mut [DomainState],
    /// See [`Sizes::shared`].
    pub shared: &'a mut [SharedState],
    /// See [`Sizes::cores`].
    pub cores: &'a mut [CoreState],
    /// See [`Sizes::files`].
    pub files: &'a mut [FileRecord],
    /// See [`Sizes::sets`].
    pub sets: &'a mut [SetState],
    /// See [`Sizes::cells`].
    pub cells: &'a mut [Cell],
    /// See [`Sizes::entries`].
    pub entries: &'a mut [Entry],
    /// See [`Sizes::hops`].
    pub hops: &'a mut [u8],
}

/// Memory for MFC, at least as long as [`Sizes`] says. Its lengths stay.
pub trait Store {
    /// To use, from many threads.
    fn parts(&self) -> Parts<'_>;
    /// To set up.
    fn parts_mut(&mut self) -> PartsMut<'_>;
}

/// A store of vectors, boxed or lent slices: whatever can be seen as slices.
#[derive(Clone, Debug, Default)]
pub struct Slices<D, G, C, F, T, U, E, H> {
    /// See [`Sizes::domains`].
    pub domains: D,
    /// See [`Sizes::shared`].
    pub shared: G,
    /// See [`Sizes::cores`].
    pub cores: C,
    /// See [`Sizes::files`].
    pub files: F,
    /// See [`Sizes::sets`].
    pub sets: T,
    /// See [`Sizes::cells`].
    pub cells: U,
    /// See [`Sizes::entries`].
    pub entries: E,
    /// See [`Sizes::hops`].
    pub hops: H,
}

fn collect<T: Default, C: FromIterator<T>>(nr: usize) -> C {
    core::iter::repeat_with(T::default).take(nr).collect()
}

impl<D, G, C, F, T, U, E, H> Slices<D, G, C, F, T, U, E, H>
where
    D: FromIterator<DomainState>,
    G: FromIterator<SharedState>,
    C: FromIterator<CoreState>,
    F: FromIterator<FileRecord>,
    T: FromIterator<SetState>,
    U: FromIterator<Cell>,
    E: FromIterator<Entry>,
    H: FromIterator<u8>,
{
    /// A store that collects its memory, as vectors and boxed slices do.
    pub fn collect(sizes: &Sizes) -> Self {
        Self {
            domains: collect(sizes.domains),
            shared: collect(sizes.shared),
            cores: collect(sizes.cores),
            files: collect(sizes.files),
            sets: collect(sizes.sets),
            cells: collect(sizes.cells),
            entries: collect(sizes.entries),
            hops: collect(sizes.hops),
        }
    }
}

impl<D, G, C, F, T, U, E, H> Store for Slices<D, G, C, F, T, U, E, H>
where
    D: AsRef<[DomainState]> + AsMut<[DomainState]>,
    G: AsRef<[SharedState]> + AsMut<[SharedState]>,
    C: AsRef<[CoreState]> + AsMut<[CoreState]>,
    F: AsRef<[FileRecord]> + AsMut<[FileRecord]>,
    T: AsRef<[SetState]> + AsMut<[SetState]>,
    U: AsRef<[Cell]> + AsMut<[Cell]>,
    E: AsRef<[Entry]> + AsMut<[Entry]>,
    H: AsRef<[u8]> + AsMut<[u8]>,
{
    #[inline]
    fn parts(&self) -> Parts<'_> {
        Parts {
            domains: self.domains.as_ref(),
            shared: self.shared.as_ref(),
            cores: self.cores.as_ref(),
            files: self.files.as_ref(),
            sets: self.sets.as_ref(),
            cells: self.cells.as_ref(),
            entries: self.entries.as_ref(),
            hops: self.hops.as_ref(),
        }
    }

    #[inline]
    fn parts_mut(&mut self) -> PartsMut<'_> {
        PartsMut {
            domains: self.domains.as_mut(),
            shared: self.shared.as_mut(),
            cores: self.cores.as_mut(),
            files: self.files.as_mut(),
            sets: self.sets.as_mut(),
            cells: self.cells.as_mut(),
            entries: self.entries.as_mut(),
            hops: self.hops.as_mut(),
        }
    }
}
