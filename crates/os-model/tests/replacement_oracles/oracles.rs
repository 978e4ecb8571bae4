//! The policies as their papers write them down, as slow as that is.

use std::collections::{BTreeMap, VecDeque};

/// A cache that is told references.
pub trait Oracle {
    /// Was the key in the cache? It is now.
    fn access(&mut self, key: u32, next_use: Option<u64>) -> bool;
}

/// Removes a key from a queue; was it there?
fn take(queue: &mut VecDeque<u32>, key: u32) -> bool {
    match queue.iter().position(|k| *k == key) {
        Some(at) => queue.remove(at).is_some(),
        None => false,
    }
}

/// FAST 2003, figure 4. Fronts are LRU ends.
pub struct ArcOracle {
    c: usize,
    p: f64,
    t1: VecDeque<u32>,
    t2: VecDeque<u32>,
    b1: VecDeque<u32>,
    b2: VecDeque<u32>,
}

impl ArcOracle {
    pub fn new(capacity: u32) -> Self {
        let new = VecDeque::new;
        let c = capacity as usize;
        Self {
            c,
            p: 0.0,
            t1: new(),
            t2: new(),
            b1: new(),
            b2: new(),
        }
    }

    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && (t1 > self.p || (in_b2 && t1 == self.p)) {
            self.b1.extend(self.t1.pop_front());
        } else {
            self.b2.extend(self.t2.pop_front());
        }
    }
}

impl Oracle for ArcOracle {
    fn access(&mut self, x: u32, _: Option<u64>) -> bool {
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push_back(x);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&x) {
            self.p = (self.p + if b1 >= b2 { 1.0 } else { b2 / b1 }).min(self.c as f64);
            self.replace(false);
            take(&mut self.b1, x);
            self.t2.push_back(x);
        } else if self.b2.contains(&x) {
            self.p = (self.p - if b2 >= b1 { 1.0 } else { b1 / b2 }).max(0.0);
            self.replace(true);
            take(&mut self.b2, x);
            self.t2.push_back(x);
        } else {
            let l1 = self.t1.len() + self.b1.len();
            let all = l1 + self.t2.len() + self.b2.len();
            if l1 == self.c {
                if self.t1.len() < self.c {
                    self.b1.pop_front();
                    self.replace(false);
                } else {
                    self.t1.pop_front();
                }
            } else if all >= self.c {
                if all == 2 * self.c {
                    self.b2.pop_front();
                }
                self.replace(false);
            }
            self.t1.push_back(x);
        }
        false
    }
}

/// SIGMETRICS 2002, section 3.3. The stack's top is its back, Q's front its front.
pub struct LirsOracle {
    c: usize,
    hirs: usize,
    ghosts: usize,
    s: VecDeque<u32>,
    q: VecDeque<u32>,
    lir: Vec<u32>,
    /// Non-resident blocks by the time they left.
    left: VecDeque<u32>,
}

impl LirsOracle {
    pub fn new(c: usize, hirs: usize, ghosts: usize) -> Self {
        let new = VecDeque::new;
        Self {
            c,
            hirs,
            ghosts,
            s: new(),
            q: new(),
            lir: Vec::new(),
            left: new(),
        }
    }

    fn raise(&mut self, key: u32) -> bool {
        let was = take(&mut self.s, key);
        self.s.push_back(key);
        was
    }

    fn prune(&mut self) {
        while let Some(bottom) = self.s.front().copied() {
            if self.lir.contains(&bottom) {
                break;
            }
            self.s.pop_front();
            take(&mut self.left, bottom);
        }
    }

    fn become_lir(&mut self, key: u32) {
        self.lir.push(key);
        self.prune();
        if self.lir.len() > self.c - self.hirs {
            let bottom = self.s.pop_front().expect("a LIR block is in S");
            self.lir.retain(|k| *k != bottom);
            self.q.push_back(bottom);
            self.prune();
        }
    }

    fn evict(&mut self) {
        if let Some(victim) = self.q.pop_front()
            && self.s.contains(&victim)
        {
            self.left.push_back(victim);
        }
    }

    /// Beyond the bound the block that left first is forgotten; one that is on its
    /// way back does not count.
    fn bound(&mut self, coming: u32) {
        let counted = |s: &Self| s.left.iter().filter(|k| **k != coming).count();
        while counted(self) > self.ghosts {
            let oldest = self.left.iter().copied().find(|k| *k != coming);
            let oldest = oldest.expect("one is counted");
            take(&mut self.left, oldest);
            take(&mut self.s, oldest);
        }
    }
}

impl Oracle for LirsOracle {
    fn access(&mut self, x: u32, _: Option<u64>) -> bool {
        if self.lir.contains(&x) {
            self.raise(x);
            self.prune();
            return true;
        }
        if take(&mut self.q, x) {
            match self.raise(x) {
                true => self.become_lir(x),
                false => self.q.push_back(x),
            }
            self.prune();
            return true;
        }
        if self.lir.len() + self.q.len() == self.c {
            self.evict();
            self.bound(x);
        }
        let in_s = self.s.contains(&x);
        self.raise(x);
        take(&mut self.left, x);
        match in_s || self.lir.len() < self.c - self.hirs {
            true => self.become_lir(x),
            false => self.q.push_back(x),
        }
        self.prune();
        self.bound(x);
        false
    }
}

/// SIGMOD 1993, figure 2.1, for K = 2. Time 0 is never.
pub struct LruKOracle {
    c: usize,
    retained: usize,
    correlated: u64,
    t: u64,
    hist: BTreeMap<u32, [u64; 2]>,
    last: BTreeMap<u32, u64>,
    buffer: Vec<u32>,
    left: VecDeque<u32>,
}

impl LruKOracle {
    pub fn new(c: usize, retained: usize, correlated: u64) -> Self {
        let (hist, last) = (BTreeMap::new(), BTreeMap::new());
        let (buffer, left) = (Vec::new(), VecDeque::new());
        Self {
            c,
            retained,
            correlated,
            t: 0,
            hist,
            last,
            buffer,
            left,
        }
    }

    fn evict(&mut self, now: u64, coming: u32) {
        // Ripe pages first, then by second last use, then (none has one) by last use.
        let rank = |q: &u32| {
            let ripe = now - self.last[q] > self.correlated;
            let second = self.hist[q][1];
            (!ripe, second, if second == 0 { self.last[q] } else { 0 })
        };
        let victim = self.buffer.iter().copied().min_by_key(rank).expect("full");
        self.buffer.retain(|q| *q != victim);
        self.left.push_back(victim);
        let counted = self.left.iter().filter(|k| **k != coming).count();
        if counted > self.retained
            && let Some(oldest) = self.left.iter().copied().find(|k| *k != coming)
        {
            take(&mut self.left, oldest);
            self.hist.remove(&oldest);
        }
    }
}

impl Oracle for LruKOracle {
    fn access(&mut self, p: u32, _: Option<u64>) -> bool {
        self.t += 1;
        let t = self.t;
        if self.buffer.contains(&p) {
            let hist = self.hist.get_mut(&p).expect("resident");
            let last = self.last[&p];
            if t - last > self.correlated {
                let correlation_period = last - hist[0];
                *hist = [t, hist[0] + correlation_period];
            }
            self.last.insert(p, t);
            return true;
        }
        if self.buffer.len() == self.c {
            self.evict(t, p);
        }
        take(&mut self.left, p);
        let hist = self.hist.entry(p).or_default();
        *hist = [t, hist[0]];
        self.last.insert(p, t);
        self.buffer.push(p);
        false
    }
}

/// USENIX 2001, figure 5. Fronts are LRU ends.
pub struct MqOracle {
    c: usize,
    life: u64,
    now: u64,
    queues: [VecDeque<u32>; 8],
    qout: VecDeque<u32>,
    uses: BTreeMap<u32, u32>,
    expires: BTreeMap<u32, u64>,
}

impl MqOracle {
    pub fn new(c: usize, life: u64) -> Self {
        let (queues, qout) = (Default::default(), VecDeque::new());
        let (uses, expires) = (BTreeMap::new(), BTreeMap::new());
        Self {
            c,
            life,
            now: 0,
            queues,
            qout,
            uses,
            expires,
        }
    }

    fn evict(&mut self, coming: u32) {
        let queue = self
            .queues
            .iter_mut()
            .find(|q| !q.is_empty())
            .expect("full");
        self.qout.extend(queue.pop_front());
        if self.qout.iter().filter(|k| **k != coming).count() > 4 * self.c
            && let Some(oldest) = self.qout.iter().copied().find(|k| *k != coming)
        {
            take(&mut self.qout, oldest);
            self.uses.remove(&oldest);
        }
    }

    fn adjust(&mut self) {
        self.now += 1;
        for k in 1..8 {
            if let Some(front) = self.queues[k].front().copied()
                && self.expires[&front] < self.now
            {
                self.queues[k].pop_front();
                self.queues[k - 1].push_back(front);
                self.expires.insert(front, self.now + self.life);
            }
        }
    }
}

impl Oracle for MqOracle {
    fn access(&mut self, b: u32, _: Option<u64>) -> bool {
        let hit = (0..8).any(|k| take(&mut self.queues[k], b));
        if !hit {
            if self.queues.iter().map(VecDeque::len).sum::<usize>() == self.c {
                self.evict(b);
            }
            if !take(&mut self.qout, b) {
                self.uses.insert(b, 0);
            }
        }
        let uses = self.uses.get_mut(&b).expect("known");
        *uses += 1;
        let queue = (*uses as f64).log2().floor().min(7.0) as usize;
        self.queues[queue].push_back(b);
        self.expires.insert(b, self.now + self.life);
        self.adjust();
        hit
    }
}

/// IBM Systems Journal 1966: the farthest next use goes; of those never used again
/// any will do.
pub struct MinOracle {
    c: usize,
    next: BTreeMap<u32, u64>,
}

impl MinOracle {
    pub fn new(capacity: u32) -> Self {
        let c = capacity as usize;
        Self {
            c,
            next: BTreeMap::new(),
        }
    }
}

impl Oracle for MinOracle {
    fn access(&mut self, key: u32, next_use: Option<u64>) -> bool {
        let hit = self.next.contains_key(&key);
        if !hit && self.next.len() == self.c {
            let farthest = self.next.iter().max_by_key(|(_, next)| **next);
            let victim = *farthest.expect("full").0;
            self.next.remove(&victim);
        }
        self.next.insert(key, next_use.unwrap_or(u64::MAX));
        hit
    }
}
