//! D-1: table 1, on the core's own policies and the disk that knows averages.
//!
//! A, B, C and D are random blocks, X1 to X4 and Y1 to Y4 two files; memory has eight
//! blocks. A file is read ahead as a whole when its first block is missed. "Dual" is the order
//! that the table shows: every four blocks are sequenced at once, and a used block goes to the
//! top of its sequence ([`Hits::Restore`]).

use piebald_hw::disk::{Disk, by_name};
use piebald_policy::{
    contract::replacement::{Fetch, Insert, PageRef, Replacement, State, Touch},
    dulo::{self, Bucket, Cost, Dulo, Hits, Sequence, Sizes, TableNode},
    replacement::{Config, Link, Lru, Slots},
};
use piebald_units::{
    DiskBlock, Lba, Picos,
    block::{BlockDir, BlockReq, SECTORS_SHIFT},
};

use crate::data::{Known, number, text};

const STREAM: [&str; 20] = [
    "A", "B", "C", "D", "X1", "X2", "X3", "X4", "Y1", "Y2", "Y3", "Y4", "X1", "X2", "X3", "X4",
    "A", "B", "C", "D",
];

/// The columns as printed, hot end first.
const TRADITIONAL: [&str; 20] = [
    "A",
    "B A",
    "C B A",
    "D C B A",
    "X4 X3 X2 X1 D C B A",
    "X2 X4 X3 X1 D C B A",
    "X3 X2 X4 X1 D C B A",
    "X4 X3 X2 X1 D C B A",
    "Y4 Y3 Y2 Y1 X4 X3 X2 X1",
    "Y2 Y4 Y3 Y1 X4 X3 X2 X1",
    "Y3 Y2 Y4 Y1 X4 X3 X2 X1",
    "Y4 Y3 Y2 Y1 X4 X3 X2 X1",
    "X1 Y4 Y3 Y2 Y1 X4 X3 X2",
    "X2 X1 Y4 Y3 Y2 Y1 X4 X3",
    "X3 X2 X1 Y4 Y3 Y2 Y1 X4",
    "X4 X3 X2 X1 Y4 Y3 Y2 Y1",
    "A X4 X3 X2 X1 Y4 Y3 Y2",
    "B A X4 X3 X2 X1 Y4 Y3",
    "C B A X4 X3 X2 X1 Y4",
    "D C B A X4 X3 X2 X1",
];
const DUAL: [&str; 20] = [
    "A",
    "B A",
    "C B A",
    "D C B A",
    "D C B A X4 X3 X2 X1",
    "D C B A X2 X4 X3 X1",
    "D C B A X3 X2 X4 X1",
    "D C B A X4 X3 X2 X1",
    "D C B A Y4 Y3 Y2 Y1",
    "D C B A Y2 Y4 Y3 Y1",
    "D C B A Y3 Y2 Y4 Y1",
    "D C B A Y4 Y3 Y2 Y1",
    "D C B A X4 X3 X2 X1",
    "D C B A X2 X4 X3 X1",
    "D C B A X3 X2 X4 X1",
    "D C B A X4 X3 X2 X1",
    "A D C B X4 X3 X2 X1",
    "B A D C X4 X3 X2 X1",
    "C B A D X4 X3 X2 X1",
    "D C B A X4 X3 X2 X1",
];

/// Blocks of memory, and those that are sequenced at once.
const MEMORY: u32 = 8;
const BANK: u32 = 4;

/// Block of a number that is free.
const NOTHING: u64 = u64::MAX;

const PS_PER_MS: f64 = 1e9;

type Memory = Slots<Vec<Link>, Vec<u8>>;
type DuloMemory = dulo::Slices<
    Vec<dulo::Link>,
    Vec<u64>,
    Vec<Sequence>,
    Vec<PageRef>,
    Vec<Bucket>,
    Vec<TableNode>,
>;

/// Where a block lies: single ones far apart, files in a row.
fn block(name: &str) -> u64 {
    let (letter, number) = name.split_at(1);
    let track = u64::from(letter.as_bytes().first().copied().unwrap_or(0));
    1000 * track + number.parse::<u64>().unwrap_or(0)
}

fn name(block: u64) -> String {
    let letter = char::from(u8::try_from(block / 1000).unwrap_or(b'?'));
    match block % 1000 {
        0 => letter.to_string(),
        number => format!("{letter}{number}"),
    }
}

/// A page cache that reads whole files ahead, and its disk.
struct Host<P> {
    policy: P,
    /// Block of each number.
    blocks: Vec<u64>,
    disk: Disk,
    now: Picos,
    misses: u64,
    readahead: bool,
}

impl<P: Replacement> Host<P> {
    fn new(policy: P, disk: Disk, readahead: bool) -> Self {
        Self {
            policy,
            blocks: Vec::new(),
            disk,
            now: Picos(0),
            misses: 0,
            readahead,
        }
    }

    fn resident(&self, block: u64) -> Option<PageRef> {
        let found = self.blocks.iter().position(|b| *b == block)?;
        let page = PageRef(found as u32);
        (self.policy.state(page) == State::Resident).then_some(page)
    }

    fn access(&mut self, wanted: u64) {
        if let Some(page) = self.resident(wanted) {
            self.policy.hit(page, Touch::default(), self.now);
            return;
        }
        self.misses += 1;
        let is_first = wanted % 1000 == 1;
        let last = if self.readahead && is_first {
            wanted + 3
        } else {
            wanted
        };
        for block in wanted..=last {
            if self.resident(block).is_none() {
                self.insert(block, block != wanted);
            }
        }
        let request = BlockReq {
            lba: Lba(wanted << SECTORS_SHIFT),
            sectors: ((last - wanted + 1) << SECTORS_SHIFT) as u32,
            dir: BlockDir::Read,
        };
        self.now = self.disk.service(request, self.now).done;
    }

    fn insert(&mut self, block: u64, ahead: bool) {
        let insert = Insert {
            at: Some(DiskBlock(block)),
            fetch: if ahead {
                Fetch::Readahead
            } else {
                Fetch::Demand
            },
            ..Insert::default()
        };
        self.policy.miss(None, &insert, self.now);
        while self.policy.resident() >= MEMORY && self.policy.evict().is_some() {}
        self.take_back();
        let free = self.blocks.iter().position(|b| *b == NOTHING);
        let page = free.unwrap_or(self.blocks.len());
        match self.blocks.get_mut(page) {
            Some(entry) => *entry = block,
            None => self.blocks.push(block),
        }
        self.policy.insert(PageRef(page as u32), &insert, self.now);
        self.take_back();
    }

    /// Numbers that the policy gave up are free again.
    fn take_back(&mut self) {
        while let Some(page) = self.policy.dropped() {
            if let Some(entry) = self.blocks.get_mut(page.index()) {
                *entry = NOTHING;
            }
        }
    }

    /// Memory, hot end first.
    fn state(&self) -> String {
        let mut pages = [PageRef(0); MEMORY as usize];
        let n = self.policy.propose(&mut pages);
        let known = pages.iter().take(n).rev();
        let of = |p: &PageRef| {
            self.blocks
                .get(p.index())
                .map_or_else(String::new, |b| name(*b))
        };
        known.map(of).collect::<Vec<_>>().join(" ")
    }
}

/// What a column came to.
struct Column {
    states: Vec<String>,
    misses: f64,
    ms: f64,
}

fn run<P: Replacement>(mut host: Host<P>) -> Column {
    let mut states = Vec::new();
    for wanted in STREAM {
        host.access(block(wanted));
        states.push(host.state());
    }
    Column {
        states,
        misses: host.misses as f64,
        ms: host.now.0 as f64 / PS_PER_MS,
    }
}

/// Least recently used.
fn lru() -> Result<Lru<Memory>, String> {
    let config = Config::new(MEMORY);
    let slots = config.slots().map_err(|e| e.to_string())?;
    Lru::new(Memory::collect(slots), config).map_err(|e| e.to_string())
}

fn traditional(disk: &Disk, readahead: bool) -> Result<Column, String> {
    Ok(run(Host::new(lru()?, disk.clone(), readahead)))
}

/// DULO over it, in the arrangement of the table.
fn dual(disk: &Disk, readahead: bool) -> Result<Column, String> {
    let config = dulo::Config {
        correlation: 0,
        bank: BANK,
        evicting: BANK,
        hits: Hits::Restore,
        ..dulo::Config::SMALL
    };
    let base = lru()?;
    let sections = config.sections(MEMORY).map_err(|e| e.to_string())?;
    let store = DuloMemory::collect(&Sizes::of(&sections, base.slots()));
    let policy = Dulo::new(base, store, config, Cost::Uniform).map_err(|e| e.to_string())?;
    Ok(run(Host::new(policy, disk.clone(), readahead)))
}

/// Which states of a column are not those printed: nothing if all are.
fn differing(printed: &[&str], column: &Column) -> String {
    let wrong = (1..).zip(printed.iter().zip(&column.states));
    let wrong = wrong.filter(|(_, (printed, ours))| *printed != ours);
    let wrong = wrong.map(|(step, (_, ours))| format!("step {step}: {ours}"));
    let wrong = wrong.collect::<Vec<_>>().join("; ");
    if wrong.is_empty() {
        wrong
    } else {
        format!(" ({wrong})")
    }
}

/// Numbers of the row by their names.
pub(super) fn known() -> Result<Known, String> {
    let spec = by_name("dulo-table1").map_err(|e| e.to_string())?;
    let disk = Disk::new(&spec).map_err(|e| e.to_string())?;
    let (old, new) = (traditional(&disk, true)?, dual(&disk, true)?);
    let (old_alone, new_alone) = (traditional(&disk, false)?, dual(&disk, false)?);
    let numbers = [
        ("traditional_ms", old.ms),
        ("dual_ms", new.ms),
        ("traditional_misses", old.misses),
        ("dual_misses", new.misses),
        ("traditional_alone", old_alone.misses),
        ("dual_alone", new_alone.misses),
    ];
    let mut known: Known = numbers
        .map(|(name, value)| (name.to_owned(), number(value)))
        .into();
    for (name, printed, column) in [
        ("traditional_differs", &TRADITIONAL, &old),
        ("dual_differs", &DUAL, &new),
    ] {
        known.insert(name.to_owned(), text(differing(printed, column)));
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_met_to_the_last_state() {
        let known = known().unwrap_or_else(|e| panic!("{e}"));
        for (name, value) in [
            ("traditional_ms", 95.0),
            ("dual_ms", 66.5),
            ("traditional_misses", 10.0),
            ("dual_misses", 7.0),
            ("traditional_alone", 16.0),
            ("dual_alone", 16.0),
        ] {
            assert_eq!(known[name], number(value), "{name}");
        }
        for name in ["traditional_differs", "dual_differs"] {
            assert_eq!(known[name], text(String::new()), "{name}");
        }
    }

    #[test]
    fn a_state_that_differs_is_named() {
        let column = Column {
            states: vec!["A".to_owned(), "A B".to_owned()],
            misses: 2.0,
            ms: 19.0,
        };
        assert_eq!(differing(&["A", "B A"], &column), " (step 2: A B)");
    }
}
