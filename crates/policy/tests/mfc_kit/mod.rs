//! What the tests of MFC share: machines, readers, and short ways to ask.

#![allow(dead_code, unused_imports, reason = "each test uses a part")]

use piebald_policy::{
    contract::reads::{Among, Load, ReadRequest, Reader},
    mfc::{
        Cell, Config, CoreState, Domain, DomainId, DomainState, Entry, FileRecord, Level, Mfc,
        SetState, SharedState, Sizes, Slices, Topology, Verdict, Why,
    },
};
use piebald_units::{Bytes, CoreId, CoreSet, FileId};

#[cfg(not(loom))]
pub mod oracle;

pub const KIB: u64 = Bytes::KIB;
pub const MIB: u64 = Bytes::MIB;
/// The file of the paper's experiments.
pub const FILE: u64 = 256 * KIB;

pub type VecStore = Slices<
    Vec<DomainState>,
    Vec<SharedState>,
    Vec<CoreState>,
    Vec<FileRecord>,
    Vec<SetState>,
    Vec<Cell>,
    Vec<Entry>,
    Vec<u8>,
>;
pub type VecMfc = Mfc<VecStore>;

pub use crate::random::{Random, setting};

/// A machine that owns its description.
#[derive(Clone, Debug)]
pub struct Plan {
    pub domains: Vec<Domain>,
    pub shared: Vec<Level>,
    pub nodes: u8,
    pub hops: Vec<u8>,
}

impl Plan {
    pub fn topology(&self) -> Topology<'_> {
        let cores = self.domains.iter().map(|d| d.cores);
        Topology {
            cores: cores.fold(CoreSet::EMPTY, CoreSet::union),
            domains: &self.domains,
            shared: &self.shared,
            nodes: self.nodes,
            hops: &self.hops,
        }
    }

    pub fn mfc(&self, config: Config, files: u32) -> VecMfc {
        let sizes = Sizes::of(&self.topology(), &config, files).expect("a machine that fits");
        Mfc::new(VecStore::collect(&sizes), &self.topology(), config).expect("memory that fits")
    }
}

pub fn level(bytes: u64) -> Level {
    Level::of(Bytes(bytes))
}

/// The paper's machine (section 2, Figure 1): four chips in a square, each with four
/// cores of 64 KB + 512 KB and 2 MB for all four.
pub fn opteron() -> Plan {
    let domains = (0..16u8).map(|core| Domain {
        cores: CoreSet::one(CoreId(core.into())),
        node: core / 4,
        own: [level(64 * KIB), level(512 * KIB)],
        shared: Some(core / 4),
    });
    Plan {
        domains: domains.collect(),
        shared: vec![level(2 * MIB); 4],
        nodes: 4,
        hops: vec![0, 1, 1, 2, 1, 0, 2, 1, 1, 2, 0, 1, 2, 1, 1, 0],
    }
}

/// Cores with a cache of so many bytes each, all on one chip.
pub fn plain(cores: u16, bytes: u64) -> Plan {
    let domains = (0..cores).map(|core| Domain {
        cores: CoreSet::one(CoreId(core)),
        own: [level(bytes), Level::default()],
        ..Domain::default()
    });
    Plan {
        domains: domains.collect(),
        shared: Vec::new(),
        nodes: 1,
        hops: vec![0],
    }
}

/// Two chips of two last-level caches of 1 MiB, each of two cores, which are all that
/// counts.
pub fn pairs() -> Plan {
    let domains = (0..4u8).map(|at| Domain {
        cores: CoreSet::from_bits(0b11 << (2 * at)),
        node: at / 2,
        own: [level(MIB), Level::default()],
        shared: None,
    });
    Plan {
        domains: domains.collect(),
        shared: Vec::new(),
        nodes: 2,
        hops: vec![0, 1, 1, 0],
    }
}

/// A read of the start of a file.
pub fn read(core: u16, file: u64, size: u64) -> ReadRequest {
    ReadRequest {
        reader: Reader::on(CoreId(core)),
        file: FileId(file),
        size: Bytes(size),
        offset: 0,
        len: Bytes(size),
        among: Among::First,
    }
}

pub fn pinned(core: u16, cores: u64, file: u64, size: u64) -> ReadRequest {
    let mut request = read(core, file, size);
    request.reader.allowed = CoreSet::from_bits(cores);
    request
}

/// What a verdict says, in short.
pub fn short(verdict: Verdict) -> (u16, Load, Why) {
    (verdict.read.core.0, verdict.read.load, verdict.why)
}

/// A read of a file of 256 KB from a core: where, how and why.
pub fn ask(mfc: &VecMfc, core: u16, file: u64) -> (u16, Load, Why) {
    let verdict = mfc.decide(&read(core, file, FILE));
    mfc.validate_alone().expect("consistent books");
    short(verdict)
}

pub fn holders(mfc: &VecMfc, file: u64) -> u64 {
    mfc.holders(FileId(file), Bytes(FILE), 0)
}

pub fn uses(mfc: &VecMfc, file: u64, domain: u8) -> u32 {
    mfc.uses(FileId(file), Bytes(FILE), 0, DomainId(domain))
}

pub const SECOND: u64 = 1_000_000_000_000;
