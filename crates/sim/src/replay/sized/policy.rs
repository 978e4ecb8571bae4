//! What a policy for objects of different sizes has to answer, and a request to one.

use super::super::index::PageKey;

/// One request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which object.
    pub key: PageKey,
    /// Its size in bytes, from this request on.
    pub bytes: u64,
    /// The number of the request, from 0, counted without deletions.
    pub now: u64,
    /// The number of the request that uses the object next, for policies that know the future.
    pub next_use: Option<u64>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The object was in the cache.
    Hit,
    /// It was not.
    Miss,
    /// It was not, and is too large to come in.
    TooLarge,
}

/// Which objects are in a cache of a number of bytes, and which leave.
///
/// [`request`] calls these in order: [`hit`](Self::hit) first; after a miss of an object that is
/// admitted, [`evict`](Self::evict) until it fits, then [`insert`](Self::insert).
pub trait SizedPolicy: Send {
    /// Bytes of the cache.
    fn capacity(&self) -> u64;

    /// Bytes of the largest object that may come in.
    fn largest(&self) -> u64 {
        self.capacity()
    }

    /// Bytes of the objects in the cache: at most [`capacity`](Self::capacity) between requests.
    fn occupied(&self) -> u64;

    /// Whether the object is in the cache; if so, notes the use and the object's size.
    fn hit(&mut self, access: &Access) -> bool;

    /// Whether an object that was missed and is not too large comes in.
    fn admits(&self, _access: &Access) -> bool {
        true
    }

    /// Takes a step towards more room at the time of request `now`: an object leaves, or goes to
    /// another queue. Repeated calls empty the cache.
    fn evict(&mut self, now: u64);

    /// Lets in an object that is not there and fits.
    fn insert(&mut self, access: &Access);

    /// Forgets an object, in the cache or remembered.
    fn remove(&mut self, key: PageKey);

    /// Recounts everything.
    ///
    /// # Errors
    /// What does not agree, in words.
    fn validate(&self) -> Result<(), String>;
}

/// Asks for an object.
pub fn request<P: SizedPolicy + ?Sized>(policy: &mut P, access: &Access) -> Outcome {
    let hit = policy.hit(access);
    let fits = access.bytes <= policy.largest();
    match (hit, fits) {
        (true, true) => make_room(policy, 0, access.now),
        (true, false) => policy.remove(access.key),
        (false, false) => return Outcome::TooLarge,
        (false, true) if policy.admits(access) => {
            make_room(policy, access.bytes, access.now);
            policy.insert(access);
        }
        (false, true) => {}
    }
    match hit {
        true => Outcome::Hit,
        false => Outcome::Miss,
    }
}

fn make_room<P: SizedPolicy + ?Sized>(policy: &mut P, bytes: u64, now: u64) {
    while policy.occupied().saturating_add(bytes) > policy.capacity() {
        policy.evict(now);
    }
}

/// How large a cache is and what it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizedSetup {
    /// Bytes, at least 1.
    pub capacity: u64,
    /// Requests before counting begins.
    pub warmup: u64,
    /// Seed of draws.
    pub seed: u64,
}
