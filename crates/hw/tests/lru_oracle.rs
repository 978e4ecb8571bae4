//! Three levels of LRU beside a slow, obvious model of the same: plain lists.
//! What the comparison with other simulators counts, misses and write-backs,
//! must be the same to the last one.

use crate::digest_kit::{Rng, Space, machine, peers, stream};
use piebald_hw::{Features, spec::Inclusion};
use piebald_units::{
    CoreId, Picos, VirtAddr,
    memory::{MemoryPort, PhysRef},
    op::RefKind,
};

/// One cache: per set the lines held, most recent first, and whether dirty.
struct Level {
    sets: Vec<Vec<(u64, bool)>>,
    ways: usize,
}

impl Level {
    fn new(sets: usize, ways: usize) -> Self {
        Self {
            sets: vec![Vec::new(); sets],
            ways,
        }
    }

    fn set(&mut self, line: u64) -> &mut Vec<(u64, bool)> {
        let n = self.sets.len() as u64;
        &mut self.sets[(line % n) as usize]
    }

    fn hit(&mut self, line: u64, write: bool) -> bool {
        let set = self.set(line);
        let Some(at) = set.iter().position(|held| held.0 == line) else {
            return false;
        };
        let (_, dirty) = set.remove(at);
        set.insert(0, (line, dirty | write));
        true
    }

    /// Marks a line dirty where it is; false if it is not held.
    fn soil(&mut self, line: u64) -> bool {
        match self.set(line).iter_mut().find(|held| held.0 == line) {
            Some(held) => {
                held.1 = true;
                true
            }
            None => false,
        }
    }

    fn insert(&mut self, line: u64, dirty: bool) -> Option<(u64, bool)> {
        let ways = self.ways;
        let set = self.set(line);
        set.insert(0, (line, dirty));
        if set.len() > ways { set.pop() } else { None }
    }

    /// Takes a line out; says whether it was dirty.
    fn remove(&mut self, line: u64) -> bool {
        let set = self.set(line);
        match set.iter().position(|held| held.0 == line) {
            Some(at) => set.remove(at).1,
            None => false,
        }
    }
}

struct Oracle {
    levels: Vec<Level>,
    inclusive: bool,
    misses: [u64; 3],
    written_back: u64,
}

impl Oracle {
    fn new(inclusive: bool) -> Self {
        Self {
            levels: vec![Level::new(64, 8), Level::new(1024, 8), Level::new(2048, 16)],
            inclusive,
            misses: [0; 3],
            written_back: 0,
        }
    }

    fn access(&mut self, line: u64, write: bool) {
        let found = (0..3).find(|k| {
            // Stores dirty the first level only; data move outwards as victims.
            let hit = self.levels[*k].hit(line, write && *k == 0);
            self.misses[*k] += u64::from(!hit);
            hit
        });
        for k in (0..found.unwrap_or(3)).rev() {
            self.put(k, line, write && k == 0);
        }
    }

    fn put(&mut self, k: usize, line: u64, dirty: bool) {
        let Some((gone, mut dirty)) = self.levels[k].insert(line, dirty) else {
            return;
        };
        if k == 2 {
            if self.inclusive {
                dirty |= self.levels[1].remove(gone);
                dirty |= self.levels[0].remove(gone);
            }
            self.written_back += u64::from(dirty);
        } else if dirty && !self.levels[k + 1].soil(gone) {
            self.put(k + 1, gone, true);
        }
    }
}

fn compare(inclusive: bool, name: &str, stores_in_eight: u64) {
    let mut spec = peers();
    spec.cache[3].inclusion = match inclusive {
        true => Inclusion::Inclusive,
        false => Inclusion::NonInclusive,
    };
    let mut machine = machine(&spec, Features::NONE);
    machine.set_running(CoreId(0), Some(1));
    let mut oracle = Oracle::new(inclusive);
    let mut rng = Rng(99);
    let refs: Vec<PhysRef> = stream(name, 150_000)
        .into_iter()
        .map(|a| PhysRef {
            vaddr: VirtAddr(a & !7),
            frame: (a >> 12) as u32,
            size: 8,
            kind: match rng.below(8) < stores_in_eight {
                true => RefKind::Store,
                false => RefKind::Load,
            },
            ..PhysRef::default()
        })
        .collect();
    for r in &refs {
        oracle.access(r.paddr().0 >> 6, r.kind.writes());
    }
    machine.run(CoreId(0), &Space(2), &refs, Picos(0), Picos::MAX);
    let counters = machine.counters(CoreId(0));
    let misses = counters.level.map(|level| level.misses);
    assert_eq!(misses, oracle.misses, "{name}, inclusive: {inclusive}");
    assert_eq!(counters.memory_writes, oracle.written_back, "{name}");
}

#[test]
fn loads_miss_as_often_as_in_plain_lists() {
    for name in ["hot", "zipf", "uniform", "strided"] {
        compare(false, name, 0);
    }
}

#[test]
fn stores_are_written_back_as_often_as_in_plain_lists() {
    for name in ["hot", "zipf", "uniform", "strided"] {
        compare(false, name, 3);
    }
}

#[test]
fn an_inclusive_last_level_takes_its_victims_out_of_the_inner_ones() {
    for name in ["hot", "zipf", "uniform", "strided"] {
        compare(true, name, 3);
    }
}
