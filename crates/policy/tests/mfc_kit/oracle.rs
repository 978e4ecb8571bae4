//! MFC as the paper tells it, with nothing but lists: slow, obvious, for one thread.
//!
//! Nothing is kept that can be counted: room, popularity and the least popular file are
//! found by looking at everything each time.

use std::collections::{BTreeMap, BTreeSet};

use piebald_policy::{
    contract::reads::{Among, Load, ReadRequest},
    mfc::{CallBuffer, Competitive, Config, Elsewhere, Here, MinRead, Second, Switches, Uses, Why},
};

use super::Plan;

/// A file and its chunk; `None`: all of it.
type Key = (u64, Option<u64>);

#[derive(Clone, Debug, Default)]
struct File {
    bytes: u64,
    cores: BTreeSet<usize>,
    used: Vec<u64>,
    moved: Vec<u64>,
    paid_ns: u64,
}

/// Where, how, why, and how far the answer holds.
pub type Answer = (u16, Load, Why, u64);

#[derive(Clone)]
pub struct Oracle {
    plan: Plan,
    config: Config,
    pub switches: Switches,
    files: BTreeMap<Key, File>,
    /// What each domain holds, first come first.
    held: Vec<Vec<Key>>,
    pub runnable: Vec<u32>,
    pub misses: Vec<[u32; 3]>,
    pub online: u64,
    due: Vec<Option<u64>>,
    /// The holder that would serve the last read.
    from: usize,
}

struct Asked {
    core: u16,
    here: usize,
    cores: u64,
    key: Key,
    bytes: u64,
    /// Bytes of the call's buffer that the thread takes along.
    buffer: u64,
}

impl Oracle {
    pub fn new(plan: &Plan, config: Config) -> Self {
        let nr = plan.domains.len();
        let cores = plan.topology().cores;
        Self {
            plan: plan.clone(),
            config,
            switches: Switches::ALL,
            files: BTreeMap::new(),
            held: vec![Vec::new(); nr],
            runnable: vec![0; 64],
            misses: vec![[0; 3]; 64],
            online: cores.bits(),
            due: vec![None; nr],
            from: 0,
        }
    }

    fn domains(&self) -> std::ops::Range<usize> {
        0..self.plan.domains.len()
    }

    fn domain_of(&self, core: u16) -> usize {
        let has = |d: &usize| self.plan.domains[*d].cores.bits() >> core & 1 == 1;
        self.domains().find(has).unwrap()
    }

    fn own(&self, d: usize) -> u64 {
        self.plan.domains[d].own.iter().map(|l| l.size.0).sum()
    }

    fn capacity(&self, d: usize) -> u64 {
        let shared = self.plan.domains[d].shared;
        self.own(d) + shared.map_or(0, |s| self.plan.shared[usize::from(s)].size.0)
    }

    fn bytes_of(&self, d: usize) -> u64 {
        self.held[d].iter().map(|k| self.files[k].bytes).sum()
    }

    /// Files that take room of a domain.
    fn files_at(&self, d: usize) -> u64 {
        let shared = self.plan.domains[d].shared;
        let beside =
            |o: &usize| *o != d && shared.is_some() && self.plan.domains[*o].shared == shared;
        let spilled = |o: usize| self.bytes_of(o).saturating_sub(self.own(o));
        self.bytes_of(d) + self.domains().filter(beside).map(spilled).sum::<u64>()
    }

    /// Equations 1 and 2.
    pub fn available(&self, d: usize) -> u64 {
        let domain = &self.plan.domains[d];
        let shared = domain.shared.map(|s| self.plan.shared[usize::from(s)]);
        let levels = domain.own.into_iter().chain(shared);
        let used = levels.enumerate().map(|(at, level)| {
            let misses = domain
                .cores
                .iter()
                .map(|c| u64::from(self.misses[usize::from(c.0)][at]));
            let is_full = misses.sum::<u64>() >= u64::from(level.lines);
            if is_full { level.size.0 } else { 0 }
        });
        let taken = used.sum::<u64>().max(self.files_at(d));
        self.capacity(d).saturating_sub(taken)
    }

    fn hops(&self, from: usize, to: usize) -> u8 {
        let node = |d: usize| usize::from(self.plan.domains[d].node);
        self.plan.hops[node(from) * usize::from(self.plan.nodes) + node(to)]
    }

    fn move_ns(&self, hops: u8, buffer: u64) -> u64 {
        let off = u64::from(self.config.off_chip_bytes_per_us);
        let copied = self.config.working_set.0 * 1000 / off + buffer * 1000 / off;
        self.config.migration[usize::from(hops)].0 / 1000 + copied
    }

    /// What a call fills of a file or chunk of so many bytes.
    fn carried(&self, request: &ReadRequest, (_, chunk): Key, bytes: u64) -> u64 {
        let start = chunk.unwrap_or(0) * self.config.chunk.0;
        let left = bytes.saturating_sub(request.offset.saturating_sub(start));
        match self.config.call_buffer {
            CallBuffer::Left => 0,
            CallBuffer::Counted => left.min(request.len.0),
        }
    }

    /// bytes / off > bytes / on + t
    fn pays(&self, bytes: u64, hops: u8, buffer: u64) -> bool {
        let on = u128::from(self.config.on_chip_bytes_per_us);
        let off = u128::from(self.config.off_chip_bytes_per_us);
        let t = u128::from(self.move_ns(hops, buffer));
        u128::from(bytes) * 1000 * on > u128::from(bytes) * 1000 * off + t * on * off
    }

    fn is_small(&self, bytes: u64) -> bool {
        match self.config.min_read {
            MinRead::Fixed(least) => bytes < least.0,
            MinRead::BreakEven => !(0..4).any(|hops| self.pays(bytes, hops, 0)),
        }
    }

    fn open(&self, asked: &Asked, d: usize) -> u64 {
        self.plan.domains[d].cores.bits() & asked.cores
    }

    fn in_reach(&self, asked: &Asked, d: usize) -> bool {
        d == asked.here
            || self.open(asked, d) != 0
                && self.pays(asked.bytes, self.hops(asked.here, d), asked.buffer)
    }

    fn reach(&self, asked: &Asked) -> Vec<usize> {
        self.domains()
            .filter(|d| self.in_reach(asked, *d))
            .collect()
    }

    fn best_core(&self, asked: &Asked, d: usize) -> u16 {
        if d == asked.here {
            return asked.core;
        }
        let cores = (0..64u16).filter(|c| self.open(asked, d) >> c & 1 == 1);
        cores
            .min_by_key(|c| self.runnable[usize::from(*c)])
            .unwrap()
    }

    fn load(&self, asked: &Asked, d: usize) -> u32 {
        let threads = self.runnable[usize::from(self.best_core(asked, d))];
        threads - u32::from(d == asked.here && threads > 0)
    }

    fn is_busy(&self, asked: &Asked, d: usize) -> bool {
        self.load(asked, d) > self.config.busy
    }

    fn part(&self, request: &ReadRequest) -> (Key, u64, u64) {
        let (file, size, offset) = (request.file.0, request.size.0, request.offset);
        let smallest = self.domains().map(|d| self.capacity(d)).min().unwrap();
        let whole = self.config.whole_up_to.map_or(smallest, |b| b.0);
        if offset >= size {
            return ((file, None), 0, u64::MAX);
        }
        if size <= whole {
            return ((file, None), size, u64::MAX);
        }
        let chunk = self.config.chunk.0;
        let (number, end) = (offset / chunk, (offset / chunk + 1) * chunk);
        if end >= size {
            return ((file, Some(number)), size - number * chunk, u64::MAX);
        }
        ((file, Some(number)), chunk, end)
    }

    pub fn decide(&mut self, request: &ReadRequest) -> Answer {
        let core = request.reader.core.0;
        if !self.switches.on {
            return (core, Load::Caching, Why::Off, u64::MAX);
        }
        if self.switches.second == Second::Ignore && request.among == Among::Second {
            return (core, Load::Caching, Why::Second, u64::MAX);
        }
        let (key, bytes, until) = self.part(request);
        if self.online >> core & 1 == 0 {
            return (core, Load::Caching, Why::Stranger, until);
        }
        if self.is_small(bytes) {
            return (core, Load::Caching, Why::Small, until);
        }
        if bytes > self.domains().map(|d| self.capacity(d)).max().unwrap() {
            return (core, Load::NonCaching, Why::TooLarge, until);
        }
        let nr = self.plan.domains.len();
        let file = self.files.entry(key).or_insert_with(|| File {
            used: vec![0; nr],
            moved: vec![0; nr],
            ..File::default()
        });
        file.bytes = bytes;
        let asked = Asked {
            core,
            here: self.domain_of(core),
            cores: self.online & request.reader.allowed.bits(),
            key,
            bytes,
            buffer: self.carried(request, key, bytes),
        };
        let (to, load, why) = self.mfc_access(&asked);
        self.uses_follow(&asked, to, why);
        let core = self.best_core(&asked, to);
        let cost = self.move_ns(self.hops(asked.here, to), asked.buffer);
        let file = self.files.get_mut(&key).unwrap();
        file.used[to] += 1;
        if matches!(why, Why::RoomHere | Why::RoomElsewhere | Why::Replaced) {
            file.paid_ns = 0;
        }
        if to != asked.here {
            file.paid_ns += cost;
            file.moved[asked.here] += 1;
        }
        (core, load, why, until)
    }

    /// All uses to a copy in place of none, half of a holder's to one beside it.
    fn uses_follow(&mut self, asked: &Asked, to: usize, why: Why) {
        if self.config.uses == Uses::Stay {
            return;
        }
        let from = self.from;
        let f = self.files.get_mut(&asked.key).unwrap();
        match why {
            Why::RoomHere | Why::RoomElsewhere | Why::Replaced => {
                for d in 0..f.used.len() {
                    if d != to && !f.cores.contains(&d) {
                        f.used[to] += std::mem::take(&mut f.used[d]);
                    }
                }
            }
            Why::Brought => f.used[to] += std::mem::take(&mut f.used[from]),
            Why::CopiedToRoom | Why::Copied => {
                let half = f.used[from] / 2;
                f.used[from] -= half;
                f.used[to] += half;
            }
            _ => {}
        }
    }

    /// Figure 2 with the rules that only the text has.
    fn mfc_access(&mut self, asked: &Asked) -> (usize, Load, Why) {
        let key = asked.key;
        let f = self.files[&key].clone();
        let here = asked.here;
        let holders: Vec<usize> = f
            .cores
            .iter()
            .copied()
            .filter(|d| self.in_reach(asked, *d))
            .collect();
        let new = holders
            .iter()
            .copied()
            .min_by_key(|d| (self.load(asked, *d), *d != here, self.hops(here, *d), *d));
        let copies = self.switches.copies;
        self.from = new.unwrap_or(0);

        if self.available(here) > asked.bytes {
            if f.cores.contains(&here) {
                return (here, Load::Caching, Why::Held);
            }
            let wants = |new: usize| match self.config.here {
                Here::Always => true,
                Here::Frequent(often) => {
                    f.moved[here] >= u64::from(often)
                        || self.is_busy(asked, new) && !self.is_busy(asked, here)
                }
            };
            match new {
                None => {
                    self.add(key, here);
                    return (here, Load::Caching, Why::RoomHere);
                }
                Some(new) if copies && wants(new) => {
                    self.add(key, here);
                    return (here, Load::Caching, Why::CopiedToRoom);
                }
                Some(_) => {}
            }
        }

        let mut places = self.reach(asked);
        let may = match new {
            None => true,
            Some(_) if !copies => false,
            Some(new) => match self.config.elsewhere {
                Elsewhere::Always => true,
                Elsewhere::WhenBusy => {
                    places.retain(|d| !f.cores.contains(d) && !self.is_busy(asked, *d));
                    self.is_busy(asked, new)
                }
            },
        };
        places.sort_by_key(|d| (u64::MAX - self.available(*d), self.hops(here, *d), *d));
        if let Some(max) = places
            .first()
            .copied()
            .filter(|d| may && self.available(*d) > asked.bytes)
        {
            let why = match (f.cores.contains(&max), new) {
                (true, _) => Why::Held,
                (false, Some(_)) => Why::CopiedToRoom,
                (false, None) => Why::RoomElsewhere,
            };
            self.add(key, max);
            return (max, Load::Caching, why);
        }

        let sum: u64 = f.used.iter().sum();
        let Some(new) = new else {
            let mut with_files: Vec<(u64, u8, usize)> = self
                .reach(asked)
                .into_iter()
                .filter_map(|d| Some((self.lfu(d)?.0, self.hops(here, d), d)))
                .collect();
            with_files.sort();
            for (least, _, d) in with_files {
                if least < sum && self.make_room(d, asked.bytes, sum, 1) {
                    self.add(key, d);
                    return (d, Load::Caching, Why::Replaced);
                }
            }
            return (here, Load::NonCaching, Why::Unpopular);
        };
        if f.cores.contains(&here) {
            return (new, Load::Caching, Why::Held);
        }
        let idle = self.load(asked, here) < self.config.idle;
        let factor = self.config.lfu_factor.into();
        if copies
            && idle
            && self.is_busy(asked, new)
            && self.make_room(here, asked.bytes, f.used[new], factor)
        {
            self.add(key, here);
            return (here, Load::Caching, Why::Copied);
        }
        let load_ns = asked.bytes * 1000 / u64::from(self.config.off_chip_bytes_per_us);
        let paid = match self.config.competitive {
            Competitive::Off => 0,
            Competitive::PerFile => f.paid_ns,
            Competitive::PerCore => {
                f.moved[here] * self.move_ns(self.hops(here, new), asked.buffer)
            }
        };
        if copies
            && paid > load_ns
            && (self.available(here) > asked.bytes || self.make_room(here, asked.bytes, sum, 1))
        {
            self.add(key, here);
            self.drop_from(key, new);
            let file = self.files.get_mut(&key).unwrap();
            (file.paid_ns, file.moved[here]) = (0, 0);
            return (here, Load::Caching, Why::Brought);
        }
        (new, Load::Caching, Why::Held)
    }

    fn add(&mut self, key: Key, d: usize) {
        if self.files.get_mut(&key).unwrap().cores.insert(d) {
            self.held[d].push(key);
        }
    }

    fn drop_from(&mut self, key: Key, d: usize) {
        self.held[d].retain(|k| *k != key);
        if let Some(file) = self.files.get_mut(&key) {
            file.cores.remove(&d);
        }
    }

    /// The least popular file of a domain, and its uses there.
    fn lfu(&self, d: usize) -> Option<(u64, Key)> {
        let used = |k: &Key| self.files[k].used[d];
        self.held[d]
            .iter()
            .min_by_key(|k| used(k))
            .map(|k| (used(k), *k))
    }

    fn make_room(&mut self, d: usize, bytes: u64, than: u64, factor: u64) -> bool {
        let over = (self.files_at(d) + bytes).saturating_sub(self.capacity(d));
        let may_go: Vec<Key> = self.held[d]
            .iter()
            .copied()
            .filter(|k| self.files[k].used[d] * factor < than)
            .collect();
        let total: u64 = may_go.iter().map(|k| self.files[k].bytes).sum();
        if may_go.is_empty() || total < over.min(bytes) {
            return false;
        }
        let mut freed = 0;
        loop {
            let (_, least) = self.lfu(d).unwrap();
            freed += self.files[&least].bytes;
            self.drop_from(least, d);
            if freed >= over.min(bytes) {
                return true;
            }
        }
    }

    /// `update_use` for the domain of a core.
    pub fn tick(&mut self, core: u16, now: u64) {
        let d = self.domain_of(core);
        let period = self.config.period.0;
        match self.due[d] {
            None => self.due[d] = Some(now + period),
            Some(due) if now >= due => {
                for file in self.files.values_mut() {
                    file.used[d] >>= self.config.decay_shift;
                    file.moved[d] >>= self.config.decay_shift;
                }
                self.due[d] = Some((due + period).max(now.saturating_sub(31 * period)));
            }
            Some(_) => {}
        }
    }

    pub fn set_online(&mut self, core: u16, online: bool) {
        if online {
            self.online |= 1 << core;
            return;
        }
        self.online &= !(1 << core);
        (
            self.runnable[usize::from(core)],
            self.misses[usize::from(core)],
        ) = (0, [0; 3]);
        let d = self.domain_of(core);
        if self.plan.domains[d].cores.bits() & self.online == 0 {
            for key in std::mem::take(&mut self.held[d]) {
                self.files.get_mut(&key).unwrap().cores.remove(&d);
            }
        }
    }

    /// The file and all its chunks.
    pub fn forget(&mut self, file: u64) {
        let parts: Vec<Key> = self.files.keys().copied().filter(|k| k.0 == file).collect();
        for part in parts {
            for d in self.domains() {
                self.drop_from(part, d);
            }
            self.files.remove(&part);
        }
    }

    /// The read was not done where it should have put the file.
    pub fn astray(&mut self, request: &ReadRequest, core: u16) {
        let (key, ..) = self.part(request);
        self.drop_from(key, self.domain_of(core));
    }

    /// Domains that hold the part of a file at an offset.
    pub fn holders(&self, request: &ReadRequest) -> u64 {
        let (key, ..) = self.part(request);
        let file = self.files.get(&key);
        file.map_or(0, |f| f.cores.iter().fold(0, |set, d| set | 1 << d))
    }

    /// Uses of the part of a file at an offset, by domain.
    pub fn uses(&self, request: &ReadRequest) -> Vec<u64> {
        let (key, ..) = self.part(request);
        let none = vec![0; self.plan.domains.len()];
        self.files.get(&key).map_or(none, |f| f.used.clone())
    }
}
