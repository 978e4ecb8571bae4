//! The machine, as this room sees it: cores, the caches they share, and how far apart
//! they are.
//!
//! The paper's "core" is whoever owns a cache. Here that is a *domain*: the cores
//! that share what [`Domain::own`] counts. On the paper's machine (four chips, on each
//! four cores with 64 KB + 512 KB of their own and 2 MB for all four) there are 16
//! domains of one core and 4 shared caches. On a machine whose private caches are
//! part of an inclusive last-level cache, a domain is the cores under one last-level
//! cache.

use core::fmt;

use piebald_units::{Bytes, CoreId, CoreSet, MAX_CORES};

/// Most domains: each has a core.
pub const MAX_DOMAINS: usize = MAX_CORES;
/// Most levels of cache that a domain has to itself.
pub const MAX_OWN_LEVELS: usize = 2;
/// Most levels that are counted: its own and a shared one.
pub const MAX_LEVELS: usize = MAX_OWN_LEVELS + 1;
/// Longest way between two nodes.
pub const MAX_HOPS: u8 = 3;

/// A level of cache that holds what no other level of the domain holds. (Of an
/// inclusive hierarchy, name the outermost level alone.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Its size; of one cache, or of all in the domain if its cores have one each.
    pub size: Bytes,
    /// Lines in it: misses in a quantum from which on it counts as full.
    pub lines: u32,
}

impl Level {
    /// A level of so many bytes with lines of 64 B.
    pub const fn of(size: Bytes) -> Self {
        let lines = size.0 >> piebald_units::LINE_SHIFT;
        Self {
            size,
            lines: if lines > u32::MAX as u64 {
                u32::MAX
            } else {
                lines as u32
            },
        }
    }
}

/// Cores with a cache of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// The cores; in no other domain.
    pub cores: CoreSet,
    /// The node (chip, socket) that it is on.
    pub node: u8,
    /// The levels that no other domain uses; unused ones have size 0.
    pub own: [Level; MAX_OWN_LEVELS],
    /// The cache that it shares with other domains, as an index into
    /// [`Topology::shared`].
    pub shared: Option<u8>,
}

/// The machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology<'a> {
    /// All cores; each is in one domain.
    pub cores: CoreSet,
    /// The domains, 1 to [`MAX_DOMAINS`].
    pub domains: &'a [Domain],
    /// Caches that several domains share, at most [`MAX_DOMAINS`].
    pub shared: &'a [Level],
    /// Number of nodes.
    pub nodes: u8,
    /// Hops from node to node, 0 to [`MAX_HOPS`], row by row: `nodes` x `nodes`.
    pub hops: &'a [u8],
}

impl Topology<'_> {
    /// # Errors
    /// The first thing that does not fit.
    pub(super) fn check(&self) -> Result<(), TopologyError> {
        let nr = self.domains.len();
        if nr == 0 || nr > MAX_DOMAINS {
            return Err(TopologyError::Domains(nr));
        }
        self.check_cores()?;
        self.check_caches()?;
        self.check_hops()
    }

    fn check_cores(&self) -> Result<(), TopologyError> {
        let mut seen = CoreSet::EMPTY;
        for (at, domain) in self.domains.iter().enumerate() {
            if domain.cores.is_empty() {
                return Err(TopologyError::NoCores(at));
            }
            let twice = seen.bits() & domain.cores.bits();
            if twice != 0 {
                return Err(TopologyError::CoreInTwo(first_core(twice)));
            }
            seen = seen.union(domain.cores);
        }
        let odd = seen.bits() ^ self.cores.bits();
        match odd {
            0 => Ok(()),
            _ if odd & seen.bits() == 0 => Err(TopologyError::CoreInNone(first_core(odd))),
            _ => Err(TopologyError::ForeignCore(first_core(odd & seen.bits()))),
        }
    }

    fn check_caches(&self) -> Result<(), TopologyError> {
        if self.shared.len() > MAX_DOMAINS {
            return Err(TopologyError::SharedCaches(self.shared.len()));
        }
        for (at, domain) in self.domains.iter().enumerate() {
            let shared = match domain.shared {
                None => Level::default(),
                Some(index) => *self
                    .shared
                    .get(usize::from(index))
                    .ok_or(TopologyError::NoSuchCache { domain: at, index })?,
            };
            let levels = domain.own.iter().chain([&shared]);
            if levels.clone().any(|l| l.size.0 > 0 && l.lines == 0) {
                return Err(TopologyError::NoLines(at));
            }
            if levels.fold(0u64, |sum, l| sum.saturating_add(l.size.0)) == 0 {
                return Err(TopologyError::NoCache(at));
            }
        }
        Ok(())
    }

    fn check_hops(&self) -> Result<(), TopologyError> {
        let nodes = usize::from(self.nodes);
        let needed = nodes.saturating_mul(nodes);
        if self.hops.len() != needed || nodes == 0 {
            return Err(TopologyError::Hops {
                given: self.hops.len(),
                needed,
            });
        }
        if let Some(far) = self.hops.iter().find(|h| **h > MAX_HOPS) {
            return Err(TopologyError::TooFar(*far));
        }
        let diagonal = self.hops.iter().step_by(nodes.saturating_add(1));
        if let Some(node) = diagonal.clone().position(|h| *h != 0) {
            return Err(TopologyError::FarFromItself(node));
        }
        match self.domains.iter().position(|d| d.node >= self.nodes) {
            Some(domain) => Err(TopologyError::NoSuchNode(domain)),
            None => Ok(()),
        }
    }
}

fn first_core(bits: u64) -> CoreId {
    CoreId(bits.trailing_zeros() as u16)
}

/// Why a topology is refused. Domains are named by their position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// Their number is not within 1 to [`MAX_DOMAINS`].
    Domains(usize),
    /// The domain has no cores.
    NoCores(usize),
    /// A core is in two domains.
    CoreInTwo(CoreId),
    /// A core is in no domain.
    CoreInNone(CoreId),
    /// A domain has a core that is not among [`Topology::cores`].
    ForeignCore(CoreId),
    /// More than [`MAX_DOMAINS`] shared caches.
    SharedCaches(usize),
    /// A domain names a shared cache that does not exist.
    NoSuchCache {
        /// The domain.
        domain: usize,
        /// What it names.
        index: u8,
    },
    /// A level of the domain has a size and no lines.
    NoLines(usize),
    /// The domain has no cache at all.
    NoCache(usize),
    /// The table of hops is not square, or there is no node.
    Hops {
        /// Its entries.
        given: usize,
        /// What they should be.
        needed: usize,
    },
    /// More hops than [`MAX_HOPS`].
    TooFar(u8),
    /// A node is some hops from itself.
    FarFromItself(usize),
    /// The domain is on a node that does not exist.
    NoSuchNode(usize),
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domains(n) => write!(f, "{n} cache domains; allowed: 1 to {MAX_DOMAINS}"),
            Self::NoCores(d) => write!(f, "domain {d} has no cores; allowed: 1 and more"),
            Self::CoreInTwo(c) => write!(f, "{c} is in two domains; allowed: one"),
            Self::CoreInNone(c) => write!(f, "{c} is in no domain; allowed: one"),
            Self::ForeignCore(c) => write!(f, "{c} is in a domain and not among the cores"),
            Self::SharedCaches(n) => write!(f, "{n} shared caches; allowed: 0 to {MAX_DOMAINS}"),
            Self::NoSuchCache { domain, index } => {
                write!(
                    f,
                    "domain {domain} names shared cache {index}, which does not exist"
                )
            }
            Self::NoLines(d) => write!(f, "a cache of domain {d} has 0 lines; allowed: 1 and more"),
            Self::NoCache(d) => write!(f, "domain {d} has no cache; allowed: 1 B and more"),
            Self::Hops { given, needed } => {
                write!(
                    f,
                    "{given} entries of hops; needed: nodes x nodes = {needed}, nodes >= 1"
                )
            }
            Self::TooFar(h) => write!(f, "{h} hops; allowed: 0 to {MAX_HOPS}"),
            Self::FarFromItself(n) => write!(f, "node {n} is some hops from itself; allowed: 0"),
            Self::NoSuchNode(d) => write!(f, "domain {d} is on a node that does not exist"),
        }
    }
}

impl core::error::Error for TopologyError {}
