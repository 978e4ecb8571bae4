//! A hierarchy of caches for one core, written from the definitions with plain
//! vectors and no thought of speed.
#![allow(dead_code)]

use piebald_units::op::RefKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Lru,
    TreePlru,
    Nru,
    Rrip,
}

impl Policy {
    pub const ALL: [Self; 4] = [Self::Lru, Self::TreePlru, Self::Nru, Self::Rrip];

    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::TreePlru => "tree-plru",
            Self::Nru => "nru",
            Self::Rrip => "rrip",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    NonInclusive,
    Inclusive,
    Exclusive,
    Victim,
    MostlyExclusive,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::NonInclusive,
        Self::Inclusive,
        Self::Exclusive,
        Self::Victim,
        Self::MostlyExclusive,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::NonInclusive => "non-inclusive",
            Self::Inclusive => "inclusive",
            Self::Exclusive => "exclusive",
            Self::Victim => "victim",
            Self::MostlyExclusive => "mostly-exclusive",
        }
    }

    /// Is a line put here on its way in?
    fn fills(self) -> bool {
        matches!(self, Self::NonInclusive | Self::Inclusive)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    line: u64,
    dirty: bool,
    transient: bool,
}

/// One set: its ways, and what its policy remembers.
#[derive(Clone, Debug)]
struct Set {
    ways: Vec<Option<Entry>>,
    last_use: Vec<u64>,
    used: Vec<bool>,
    prediction: Vec<u8>,
    /// Every node of the tree by the range that it halves, with the half that
    /// was used less recently (true = the upper).
    older_is_upper: Vec<(usize, usize, bool)>,
}

#[derive(Clone, Debug)]
pub struct Level {
    sets: Vec<Set>,
    policy: Policy,
    kind: Kind,
    clock: u64,
}

impl Level {
    pub fn new(sets: usize, ways: usize, policy: Policy, kind: Kind) -> Self {
        let mut tree = Vec::new();
        let mut ranges = vec![(0, ways)];
        while let Some((from, to)) = ranges.pop() {
            if to - from > 1 {
                tree.push((from, to, false));
                ranges.push((from, (from + to) / 2));
                ranges.push(((from + to) / 2, to));
            }
        }
        let set = Set {
            ways: vec![None; ways],
            last_use: vec![0; ways],
            used: vec![false; ways],
            prediction: vec![3; ways],
            older_is_upper: tree,
        };
        Self {
            sets: vec![set; sets],
            policy,
            kind,
            clock: 0,
        }
    }

    fn set(&mut self, line: u64) -> &mut Set {
        let n = self.sets.len() as u64;
        &mut self.sets[(line % n) as usize]
    }

    fn way(&mut self, line: u64) -> Option<usize> {
        let set = self.set(line);
        set.ways
            .iter()
            .position(|w| w.is_some_and(|e| e.line == line))
    }

    fn entry(&mut self, line: u64) -> Option<&mut Entry> {
        let way = self.way(line)?;
        self.set(line).ways[way].as_mut()
    }

    fn note_use(&mut self, line: u64, way: usize, inserted: bool) {
        self.clock += 1;
        let clock = self.clock;
        let set = self.set(line);
        set.last_use[way] = clock;
        set.used[way] = true;
        if set.used.iter().all(|u| *u) {
            set.used.fill(false);
            set.used[way] = true;
        }
        set.prediction[way] = if inserted { 2 } else { 0 };
        for (from, to, upper) in &mut set.older_is_upper {
            if (*from..*to).contains(&way) {
                *upper = way < (*from + *to) / 2;
            }
        }
    }

    fn victim(&mut self, line: u64) -> usize {
        let policy = self.policy;
        let set = self.set(line);
        if let Some(way) = set.ways.iter().position(Option::is_none) {
            return way;
        }
        let ways = set.ways.len();
        match policy {
            Policy::Lru => (0..ways).min_by_key(|w| set.last_use[*w]).unwrap(),
            Policy::Nru => set.used.iter().position(|u| !*u).unwrap_or(ways - 1),
            Policy::Rrip => loop {
                if let Some(way) = set.prediction.iter().position(|p| *p == 3) {
                    return way;
                }
                set.prediction.iter_mut().for_each(|p| *p += 1);
            },
            Policy::TreePlru => {
                let (mut from, mut to) = (0, ways);
                while to - from > 1 {
                    let node = set.older_is_upper.iter();
                    let upper = node.clone().find(|n| (n.0, n.1) == (from, to)).unwrap().2;
                    let middle = (from + to) / 2;
                    (from, to) = if upper { (middle, to) } else { (from, middle) };
                }
                from
            }
        }
    }

    fn insert(&mut self, entry: Entry) -> Option<Entry> {
        let way = self.victim(entry.line);
        let old = self.set(entry.line).ways[way].replace(entry);
        self.note_use(entry.line, way, true);
        old
    }

    fn remove(&mut self, line: u64) -> Option<Entry> {
        let way = self.way(line)?;
        let set = self.set(line);
        set.used[way] = false;
        set.prediction[way] = 3;
        set.ways[way].take()
    }
}

/// Counts of the whole hierarchy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub accesses: [u64; 3],
    pub misses: [u64; 3],
    pub fetch_misses: u64,
    pub memory_reads: u64,
    pub memory_writes: u64,
}

pub struct Oracle {
    pub data: Vec<Level>,
    pub fetch: Level,
    pub tally: Tally,
}

impl Oracle {
    pub fn access(&mut self, line: u64, kind: RefKind) {
        let fetch = kind == RefKind::Fetch;
        if !fetch {
            self.tally.accesses[0] += 1;
        }
        let first = if fetch {
            &mut self.fetch
        } else {
            &mut self.data[0]
        };
        if let Some(way) = first.way(line) {
            first.note_use(line, way, false);
            if kind.writes() {
                first.entry(line).unwrap().dirty = true;
            }
            return;
        }
        match fetch {
            true => self.tally.fetch_misses += 1,
            false => self.tally.misses[0] += 1,
        }
        let mut entry = Entry {
            line,
            dirty: kind.writes(),
            transient: kind == RefKind::LoadNt,
        };
        let mut found = self.data.len();
        let mut dirty_before = false;
        for k in 1..self.data.len() {
            self.tally.accesses[k] += 1;
            if self.data[k].way(line).is_some() {
                found = k;
                break;
            }
            self.tally.misses[k] += 1;
        }
        if found == self.data.len() {
            self.tally.memory_reads += 1;
        } else if matches!(
            self.data[found].kind,
            Kind::Exclusive | Kind::MostlyExclusive
        ) {
            let moved = self.data[found].remove(line).unwrap();
            dirty_before = moved.dirty;
            entry.transient = false;
        } else {
            let way = self.data[found].way(line).unwrap();
            self.data[found].note_use(line, way, false);
        }
        for k in (1..found).rev() {
            let level = self.data[k].kind;
            if level.fills() && (level == Kind::Inclusive || kind != RefKind::LoadNt) {
                // Dirty data of an exclusive level stays as far out as it can.
                let dirty = std::mem::take(&mut dirty_before);
                self.fill(k, Entry { dirty, ..entry });
            }
        }
        entry.dirty |= dirty_before;
        let first = if fetch {
            &mut self.fetch
        } else {
            &mut self.data[0]
        };
        if let Some(old) = first.insert(entry) {
            self.leave(0, old);
        }
    }

    fn fill(&mut self, k: usize, entry: Entry) {
        if let Some(old) = self.data[k].insert(entry) {
            self.leave(k, old);
        }
    }

    /// A line has been evicted from level `k`.
    fn leave(&mut self, k: usize, mut old: Entry) {
        if k > 0 && self.data[k].kind == Kind::Inclusive {
            for inner in (0..k).rev() {
                if let Some(copy) = self.data[inner].remove(old.line) {
                    old.dirty |= copy.dirty;
                }
            }
            self.fetch.remove(old.line);
        }
        if k + 1 == self.data.len() {
            self.tally.memory_writes += u64::from(old.dirty);
            return;
        }
        let takes_clean = !self.data[k + 1].kind.fills();
        if !old.dirty && (!takes_clean || old.transient) {
            return;
        }
        let Some(way) = self.data[k + 1].way(old.line) else {
            old.transient = false;
            self.fill(k + 1, old);
            return;
        };
        if takes_clean {
            self.data[k + 1].note_use(old.line, way, false);
        }
        self.data[k + 1].entry(old.line).unwrap().dirty |= old.dirty;
    }
}
