//! A sink that takes a tape apart and remembers what is needed to check it.
#![allow(dead_code, missing_docs)]

use std::collections::BTreeMap;

use piebald_trace::recording::model::{AccessKind, BlockDef, Entry, EventKind, Raw};
use piebald_workload::Builtin;
use piebald_workload::memory::{EmitError, Sink, mark};

/// References of one kind in the measured part: by (kind, size).
pub type Counts = BTreeMap<(&'static str, u8), u64>;

#[derive(Default)]
pub struct Counter {
    pub blocks: Vec<BlockDef>,
    /// Per thread: references after READY.
    pub measured: BTreeMap<u32, u64>,
    pub counts: Counts,
    pub setup: u64,
    pub instrs: u64,
    pub iterations: BTreeMap<u32, u64>,
    pub maps: Vec<(u64, u64)>,
    pub events: Vec<(u32, EventKind)>,
    pub outside: u64,
    pub hash: u64,
    pub addrs: Option<Vec<u64>>,
    pub ready: BTreeMap<u32, bool>,
    pub block: BTreeMap<u32, u32>,
    pub last_map: usize,
}

impl Counter {
    pub fn of(text: &str, seed: u64, refs: u64) -> Self {
        let mut counter = Self::default();
        let builtin = Builtin::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let total = builtin.run(seed, refs, &mut counter).unwrap();
        let seen = counter.setup + counter.measured.values().sum::<u64>();
        assert_eq!(total, seen, "{text}: returned count");
        counter
    }

    pub fn count(&self, kind: &'static str, size: u8) -> u64 {
        self.counts.get(&(kind, size)).copied().unwrap_or(0)
    }

    fn access(&mut self, thread: u32, index: u16, addr: u64) {
        let block = &self.blocks[self.block[&thread] as usize];
        let def = block.accesses[index as usize];
        let (first, end) = (addr, addr + u64::from(def.size));
        let inside = |&(base, len): &(u64, u64)| base <= first && end <= base + len;
        if !inside(&self.maps[self.last_map]) {
            match self.maps.iter().position(inside) {
                Some(i) => self.last_map = i,
                None => self.outside += 1,
            }
        }
        let kind = match def.kind {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Update => "update",
        };
        if self.ready.get(&thread) == Some(&true) {
            *self.measured.entry(thread).or_default() += 1;
            *self.counts.entry((kind, def.size)).or_default() += 1;
            if let Some(addrs) = &mut self.addrs {
                addrs.push(addr);
            }
        } else {
            self.setup += 1;
        }
    }
}

impl Sink for Counter {
    fn define(&mut self, block: BlockDef) -> Result<u32, EmitError> {
        self.blocks.push(block);
        Ok(self.blocks.len() as u32 - 1)
    }

    fn stream(&mut self, thread: u32, entries: &[Raw]) -> Result<(), EmitError> {
        for &raw in entries {
            self.hash = (self.hash.rotate_left(5) ^ raw.0).wrapping_mul(0x517c_c1b7_2722_0a95);
            match raw.entry() {
                Entry::Block(id) => {
                    self.block.insert(thread, id);
                    self.instrs += u64::from(self.blocks[id as usize].instrs);
                }
                Entry::Access(index, addr) => self.access(thread, index, addr),
            }
        }
        Ok(())
    }

    fn event(&mut self, thread: u32, event: EventKind) -> Result<(), EmitError> {
        match &event {
            EventKind::Mark(mark::READY) => {
                self.ready.insert(thread, true);
                self.measured.entry(thread).or_default();
            }
            EventKind::Mark(mark::ITERATION) => *self.iterations.entry(thread).or_default() += 1,
            EventKind::Call {
                number: 9,
                args,
                ret: Some(addr),
                ..
            } => self.maps.push((*addr as u64, args[1])),
            _ => {}
        }
        self.events.push((thread, event));
        Ok(())
    }
}
