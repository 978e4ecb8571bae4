//! Each policy beside a slow one over plain vectors, and the bound beside all ways to cache.

use super::super::cache::{Reference, Use};
use super::super::index::PageKey;
use super::super::input::{Batch, Call, CallKind, SpaceId, next_uses};
use super::super::instance::InstanceOutcome;
use super::belady::BeladySize;
use super::one_queue::{Clock, Fifo, Lru, OneQueue, Sieve};
use super::policy::{Access, Outcome, SizedPolicy, SizedSetup, request};
use super::s3_fifo::S3Fifo;
use super::{PFOO_L, SIZED_POLICIES, sized_instance};

struct Draws(u64);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// An object of a slow queue: key, bytes, uses.
type Slow = (u64, u64, u8);

fn bytes(queue: &[Slow]) -> u64 {
    queue.iter().map(|o| o.1).sum()
}

/// A slow policy: objects from the newest to the oldest.
trait Oracle {
    /// Looks an object up; if it is there, gives it the size and notes the use.
    fn look_up(&mut self, key: u64, size: u64) -> bool;
    fn evict(&mut self);
    fn insert(&mut self, object: Slow);
    fn forget(&mut self, key: u64);
    fn resident(&self) -> u64;
    fn largest(&self) -> u64;
}

/// The rules that all share.
fn ask(oracle: &mut impl Oracle, capacity: u64, key: u64, size: u64) -> Outcome {
    let hit = oracle.look_up(key, size);
    if size > oracle.largest() {
        oracle.forget(key);
        return if hit { Outcome::Hit } else { Outcome::TooLarge };
    }
    let room = if hit { 0 } else { size };
    while oracle.resident() + room > capacity {
        oracle.evict();
    }
    if hit {
        return Outcome::Hit;
    }
    oracle.insert((key, size, 0));
    Outcome::Miss
}

/// The four with one queue.
struct One {
    queue: Vec<Slow>,
    kind: &'static str,
    capacity: u64,
    /// Key of the object at SIEVE's hand.
    hand: Option<u64>,
}

impl One {
    fn at(&self, key: u64) -> Option<usize> {
        self.queue.iter().position(|o| o.0 == key)
    }

    fn drop(&mut self, at: usize) {
        if self.hand == Some(self.queue[at].0) {
            self.hand = at.checked_sub(1).map(|newer| self.queue[newer].0);
        }
        self.queue.remove(at);
    }
}

impl Oracle for One {
    fn look_up(&mut self, key: u64, size: u64) -> bool {
        let Some(at) = self.at(key) else {
            return false;
        };
        self.queue[at].1 = size;
        match self.kind {
            "lru" => {
                let object = self.queue.remove(at);
                self.queue.insert(0, object);
            }
            "fifo" => {}
            _ => self.queue[at].2 = 1,
        }
        true
    }

    fn evict(&mut self) {
        let oldest = self.queue.len() - 1;
        match self.kind {
            "clock" => {
                while self.queue[oldest].2 == 1 {
                    let (key, size, _) = self.queue.remove(oldest);
                    self.queue.insert(0, (key, size, 0));
                }
                self.queue.remove(oldest);
            }
            "sieve" => {
                let mut at = self.hand.and_then(|key| self.at(key)).unwrap_or(oldest);
                while self.queue[at].2 == 1 {
                    self.queue[at].2 = 0;
                    at = at.checked_sub(1).unwrap_or(oldest);
                }
                self.hand = Some(self.queue[at].0);
                self.drop(at);
            }
            _ => self.drop(oldest),
        }
    }

    fn insert(&mut self, object: Slow) {
        self.queue.insert(0, object);
    }

    fn forget(&mut self, key: u64) {
        if let Some(at) = self.at(key) {
            self.drop(at);
        }
    }

    fn resident(&self) -> u64 {
        bytes(&self.queue)
    }

    fn largest(&self) -> u64 {
        self.capacity
    }
}

/// S3-FIFO.
struct Three {
    small: Vec<Slow>,
    main: Vec<Slow>,
    ghost: Vec<Slow>,
    capacity: u64,
    full: bool,
    named: bool,
}

impl Oracle for Three {
    fn look_up(&mut self, key: u64, size: u64) -> bool {
        // Before room is made, which may push the ghost out.
        self.named = self.ghost.iter().any(|o| o.0 == key);
        self.ghost.retain(|o| o.0 != key);
        let mut all = self.small.iter_mut().chain(&mut self.main);
        let found = all.find(|o| o.0 == key);
        found
            .map(|o| (o.1, o.2) = (size, o.2.saturating_add(1)))
            .is_some()
    }

    fn evict(&mut self) {
        self.full = true;
        let share = self.capacity / 10;
        if bytes(&self.main) > self.capacity - share || self.small.is_empty() {
            while let Some((key, size, uses)) = self.main.pop() {
                if uses == 0 {
                    return;
                }
                self.main.insert(0, (key, size, uses.min(3) - 1));
            }
        }
        while let Some((key, size, uses)) = self.small.pop() {
            if uses < 2 {
                self.ghost.insert(0, (key, size, 0));
                while bytes(&self.ghost) > self.capacity * 9 / 10 {
                    self.ghost.pop();
                }
                return;
            }
            self.main.insert(0, (key, size, 0));
        }
    }

    fn insert(&mut self, object: Slow) {
        let share = self.capacity / 10;
        match self.named || !self.full && bytes(&self.small) >= share {
            true => self.main.insert(0, object),
            false => self.small.insert(0, object),
        }
    }

    fn forget(&mut self, key: u64) {
        for queue in [&mut self.small, &mut self.main, &mut self.ghost] {
            queue.retain(|o| o.0 != key);
        }
    }

    fn resident(&self) -> u64 {
        bytes(&self.small) + bytes(&self.main)
    }

    fn largest(&self) -> u64 {
        (self.capacity / 10).saturating_sub(1)
    }
}

fn access(key: u64, bytes: u64, now: u64) -> Access {
    Access {
        key: PageKey(key),
        bytes,
        now,
        next_use: None,
    }
}

/// A random object: small keys are used often, one in twenty is large, and sizes may change.
fn object(draws: &mut Draws, changes: bool) -> (u64, u64) {
    let key = draws.below(60) * draws.below(60) / 30;
    let of = if changes { draws.below(3) } else { 0 };
    let size = (key * 37 + of * 11) % 97;
    (key, if key % 20 == 7 { size * 40 } else { size })
}

/// Runs both over random requests and deletions, comparing after each.
fn compare(mut fast: impl SizedPolicy, mut slow: impl Oracle, seed: u64) {
    let mut draws = Draws(seed);
    for now in 0..4_000 {
        let (key, size) = object(&mut draws, seed % 2 == 1);
        if draws.below(40) == 0 {
            fast.remove(PageKey(key));
            slow.forget(key);
        } else {
            let expected = ask(&mut slow, fast.capacity(), key, size);
            let found = request(&mut fast, &access(key, size, now));
            assert_eq!(found, expected, "request {now} for {key} of {size} B");
        }
        fast.validate().unwrap_or_else(|e| panic!("{now}: {e}"));
        assert_eq!(fast.occupied(), slow.resident(), "request {now}");
        assert!(fast.occupied() <= fast.capacity());
    }
}

const CAPACITIES: [u64; 5] = [1, 9, 350, 1_009, 4_000];

#[test]
fn policies_with_one_queue_agree_with_slow_ones() {
    let slow = |kind, capacity| One {
        queue: Vec::new(),
        kind,
        capacity,
        hand: None,
    };
    for seed in 1..9 {
        for c in CAPACITIES {
            compare(OneQueue::<Fifo>::new(c), slow("fifo", c), seed);
            compare(OneQueue::<Lru>::new(c), slow("lru", c), seed);
            compare(OneQueue::<Clock>::new(c), slow("clock", c), seed);
            compare(OneQueue::<Sieve>::new(c), slow("sieve", c), seed);
        }
    }
}

#[test]
fn s3_fifo_agrees_with_a_slow_one() {
    for seed in 1..9 {
        for capacity in CAPACITIES {
            let slow = Three {
                small: Vec::new(),
                main: Vec::new(),
                ghost: Vec::new(),
                capacity,
                full: false,
                named: false,
            };
            compare(S3Fifo::new(capacity), slow, seed);
        }
    }
}

#[test]
fn objects_that_grow_push_others_out_and_leave_if_they_are_too_large() {
    let mut lru = OneQueue::<Lru>::new(100);
    for (key, size) in [(1, 40), (2, 40), (2, 70)] {
        request(&mut lru, &access(key, size, 0));
    }
    assert_eq!(lru.occupied(), 70, "object 1 left for the larger object 2");
    assert_eq!(request(&mut lru, &access(2, 101, 0)), Outcome::Hit);
    assert_eq!(lru.occupied(), 0);
    assert_eq!(request(&mut lru, &access(2, 101, 0)), Outcome::TooLarge);
    assert_eq!(request(&mut lru, &access(2, 100, 0)), Outcome::Miss);
    assert_eq!(lru.occupied(), 100);
}

/// A trace of objects as a batch, and the next use of each request.
fn batch(requests: &[(u64, u32)]) -> (Batch, Vec<u64>) {
    let call = |&(id, bytes): &(u64, u32)| Call {
        time: None,
        task: 0,
        kind: CallKind::Read,
        space: SpaceId(0),
        first: id,
        pages: 1,
        bytes: Some(bytes),
    };
    let reference = |&(id, _): &(u64, u32)| Reference {
        key: PageKey(id),
        what: Use::Read,
    };
    let batch = Batch {
        calls: requests.iter().map(call).collect(),
        references: requests.iter().map(reference).collect(),
        following: None,
    };
    let next = next_uses(&batch.references);
    (batch, next)
}

fn outcome(name: &str, capacity: u64, requests: &[(u64, u32)]) -> InstanceOutcome {
    let (batch, next) = batch(requests);
    let setup = SizedSetup {
        capacity,
        warmup: 0,
        seed: 1,
    };
    let mut instance = sized_instance(name, &setup).expect(name);
    instance.run(&batch, &next).expect(name);
    instance.finish().expect(name);
    instance.validate().expect(name);
    instance.outcome()
}

fn missed(name: &str, capacity: u64, requests: &[(u64, u32)]) -> (u64, u64) {
    let outcome = outcome(name, capacity, requests);
    (outcome.counts.misses, outcome.bytes.expect(name).missed)
}

/// Fewest misses and fewest missed bytes over all choices of which object is kept from one request
/// for it to the next.
fn optimum(capacity: u64, requests: &[(u64, u32)]) -> (u64, u64) {
    let (_, next) = batch(requests);
    let kept: Vec<(usize, usize)> = next
        .iter()
        .enumerate()
        .filter(|(_, next)| **next != u64::MAX)
        .map(|(at, next)| (at, *next as usize))
        .collect();
    let all: u64 = requests.iter().map(|r| u64::from(r.1)).sum();
    let (mut hits, mut bytes) = (0, 0);
    for choice in 0..1_u32 << kept.len() {
        let chosen = || (0..).zip(&kept).filter(|(n, _)| choice >> n & 1 == 1);
        let fits = (0..requests.len()).all(|moment| {
            let inside = chosen().filter(|(_, (from, to))| (*from..*to).contains(&moment));
            inside
                .map(|(_, (from, _))| u64::from(requests[*from].1))
                .sum::<u64>()
                <= capacity
        });
        if fits {
            hits = hits.max(u64::from(choice.count_ones()));
            bytes = bytes.max(
                chosen()
                    .map(|(_, (_, to))| u64::from(requests[*to].1))
                    .sum(),
            );
        }
    }
    (requests.len() as u64 - hits, all - bytes)
}

#[test]
fn no_way_to_cache_beats_the_bound() {
    let mut draws = Draws(3);
    let mut reached = 0;
    for round in 0..400 {
        let changes = round % 3 == 0;
        let request = |draws: &mut Draws| {
            let id = draws.below(4);
            let size = if changes { draws.below(9) } else { id * 3 % 8 };
            (id, size as u32)
        };
        let requests: Vec<_> = (0..12).map(|_| request(&mut draws)).collect();
        let capacity = 1 + draws.below(12);
        let bound = missed(PFOO_L, capacity, &requests);
        let best = optimum(capacity, &requests);
        assert!(
            bound.0 <= best.0 && bound.1 <= best.1,
            "{bound:?} {best:?} with {capacity} B: {requests:?}"
        );
        reached += u32::from(bound == best);
    }
    assert!(
        reached > 100,
        "a bound that is never reached is of no use: {reached}"
    );
}

#[test]
fn no_policy_beats_the_bound() {
    for seed in 1..6 {
        let mut draws = Draws(seed);
        let requests: Vec<_> = (0..3_000)
            .map(|_| object(&mut draws, seed % 2 == 1))
            .map(|(key, size)| (key, size as u32))
            .collect();
        for capacity in CAPACITIES {
            let bound = missed(PFOO_L, capacity, &requests);
            for row in SIZED_POLICIES {
                let own = missed(row.name, capacity, &requests);
                assert!(own.0 >= bound.0 && own.1 >= bound.1, "{} {own:?}", row.name);
            }
        }
    }
}

/// Objects a of 4 B, b of 1 B and c of 2 B in the order a b c a b c, with 4 B: each interval has
/// length 3, so that they cost 12, 3 and 6 of 4 B x 5.
#[test]
fn the_bound_of_a_small_trace_is_what_paper_and_pencil_give() {
    let requests = [(1, 4), (2, 1), (3, 2), (1, 4), (2, 1), (3, 2)];
    // Hits: b and c for 9, and a does not fit in the other 11. Bytes: every byte costs 3, and 20
    // pay for 6.
    assert_eq!(missed(PFOO_L, 4, &requests), (4, 14 - 6));
    // 35 pay for all.
    assert_eq!(missed(PFOO_L, 7, &requests), (3, 7));
    // An object that is larger than the cache cannot hit: 15 would pay for it.
    assert_eq!(missed(PFOO_L, 3, &requests), (4, 14 - 3));
}

#[test]
fn belady_size_evicts_the_largest_product_of_size_and_time() {
    let next = |key, bytes, now, next_use| Access {
        next_use: Some(next_use),
        ..access(key, bytes, now)
    };
    let mut policy = BeladySize::new(100, 0);
    request(&mut policy, &next(1, 50, 0, 4));
    request(&mut policy, &next(2, 10, 1, 30));
    // 50 B x 2 against 10 B x 28.
    request(&mut policy, &next(3, 50, 2, 9));
    assert!(policy.hit(&next(1, 50, 4, 40)), "object 2 left");
    // 50 B x 35 against 50 B x 4: the size of 3 does not save it, its next use does.
    request(&mut policy, &next(4, 1, 5, 6));
    assert!(policy.hit(&next(3, 50, 9, 10)) && !policy.hit(&next(1, 50, 9, 10)));
    // The policy admits no object that has no further use, and it evicts one after its last use.
    request(&mut policy, &access(5, 10, 11));
    assert!(!policy.hit(&access(5, 10, 12)) && policy.hit(&access(3, 50, 13)));
    assert_eq!(policy.occupied(), 1);
    policy.validate().expect("books");
}

#[test]
fn belady_size_keeps_its_books_when_it_draws() {
    let mut draws = Draws(8);
    let requests: Vec<(u64, u32)> = (0..6_000)
        .map(|_| {
            (
                draws.below(70) * draws.below(70),
                1 + draws.below(30) as u32,
            )
        })
        .collect();
    let (_, next) = batch(&requests);
    let mut policy = BeladySize::new(4_000, 5);
    let mut most = 0;
    for (now, (&(key, bytes), &next)) in (0..).zip(requests.iter().zip(&next)) {
        let next_use = (next != u64::MAX).then_some(next);
        let asked = Access {
            next_use,
            ..access(key, bytes.into(), now)
        };
        request(&mut policy, &asked);
        policy.validate().unwrap_or_else(|e| panic!("{now}: {e}"));
        assert!(policy.occupied() <= 4_000);
        most = most.max(policy.occupied());
    }
    assert!(most > 3_900, "it was never full: {most}");
    let lru = missed("lru", 4_000, &requests);
    let own = missed("belady-size", 4_000, &requests);
    assert!(own.0 < lru.0 && own.1 < lru.1, "{own:?} {lru:?}");
}
