//! How often was a key used recently? A count-min sketch of 4-bit counters that is
//! halved at intervals.
//!
//! G. Einziger, R. Friedman and B. Manes, *TinyLFU: a highly efficient cache
//! admission policy*, ACM Transactions on Storage 13(4), 2017, section 3. Four
//! counters per key; a use increments all that are below 15, the estimate is the
//! least of them. After a sample of uses all counters are halved (*reset*). The
//! optional doorkeeper is a Bloom filter that takes the first use of a key in each
//! sample, so that keys used once occupy no counters.
//!
//! The four counters of a key lie in one block of 64 B, as in Caffeine since
//! version 3 `[M]`: a use touches one cache line.

/// Largest count of a 4-bit counter.
const MAX_COUNT: u64 = 15;

/// Words of 16 counters in a block.
const BLOCK: usize = 8;

/// The lowest bit of every counter of a word, and what stays of counters that are
/// shifted down by one.
const ONES: u64 = 0x1111_1111_1111_1111;
const HALVES: u64 = 0x7777_7777_7777_7777;

#[derive(Clone, Debug)]
pub(super) struct Sketch {
    /// Blocks of eight words.
    words: Vec<u64>,
    /// Bits of the doorkeeper, empty without one.
    door: Vec<u64>,
    uses: u64,
    sample: u64,
}

/// A well mixed 64-bit hash.
fn mix(key: u64) -> u64 {
    // Finaliser of MurmurHash3, public domain.
    let key = (key ^ (key >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let key = (key ^ (key >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ (key >> 33)
}

/// What the sketch knows a key by.
pub(super) fn hash(key: u64) -> u32 {
    (mix(key) >> 32) as u32
}

impl Sketch {
    /// For a cache of this many pages: 16 counters per page, halved after `sample`
    /// uses.
    pub(super) fn new(pages: u32, sample: u64, doorkeeper: bool) -> Self {
        let words = (pages as usize).next_power_of_two().max(BLOCK);
        Self {
            words: vec![0; words],
            // 8 bits per use that a sample can hold keep false first uses below
            // 3 % with three probes.
            door: match doorkeeper {
                true => vec![0; (sample as usize / 8).next_power_of_two().max(1)],
                false => Vec::new(),
            },
            uses: 0,
            sample,
        }
    }

    /// Word and shift of the four counters of a key.
    #[inline]
    fn counters(&self, hash: u32) -> [(usize, u32); 4] {
        let bits = mix(hash.into());
        let block = (bits >> 32) as usize & (self.words.len() / BLOCK - 1);
        // Row r has the words 2r and 2r + 1 of the block, 32 counters.
        std::array::from_fn(|row| {
            let pick = (bits >> (row * 8)) as usize;
            (
                block * BLOCK + 2 * row + (pick & 1),
                4 * (pick as u32 >> 1 & 15),
            )
        })
    }

    /// Counts a use.
    #[inline]
    pub(super) fn add(&mut self, hash: u32) {
        self.uses += 1;
        if self.uses >= self.sample {
            self.halve();
        }
        if !self.door.is_empty() && !self.enter(hash) {
            return;
        }
        for (word, shift) in self.counters(hash) {
            let below = u64::from(self.words[word] >> shift & MAX_COUNT < MAX_COUNT);
            self.words[word] += below << shift;
        }
    }

    /// Uses of the key in the current sample and, halved, in those before.
    #[inline]
    pub(super) fn estimate(&self, hash: u32) -> u64 {
        let counts = self
            .counters(hash)
            .map(|(word, shift)| self.words[word] >> shift & MAX_COUNT);
        let seen = !self.door.is_empty() && self.probes(hash).iter().all(|bit| self.set(*bit));
        counts.into_iter().min().unwrap_or(0) + u64::from(seen)
    }

    fn halve(&mut self) {
        // Counters that were odd lose half a use, of which each key has four.
        let mut odd = 0;
        for word in &mut self.words {
            odd += u64::from((*word & ONES).count_ones());
            *word = *word >> 1 & HALVES;
        }
        self.uses = (self.uses - (odd / 4).min(self.uses)) / 2;
        self.door.fill(0);
    }

    fn probes(&self, hash: u32) -> [u64; 3] {
        let bits = mix(u64::from(hash) | 1 << 40);
        let size = self.door.len() as u64 * 64;
        [bits, bits >> 21, bits >> 42].map(|b| b & (size - 1))
    }

    fn set(&self, bit: u64) -> bool {
        self.door[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    /// Has the doorkeeper seen the key in this sample? It has from now on.
    fn enter(&mut self, hash: u32) -> bool {
        let probes = self.probes(hash);
        let seen = probes.iter().all(|bit| self.set(*bit));
        for bit in probes {
            self.door[bit as usize / 64] |= 1 << (bit % 64);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_never_below_the_count_and_mostly_equal() {
        let mut sketch = Sketch::new(1024, u64::MAX, false);
        for key in 0..600u64 {
            for _ in 0..key % 20 {
                sketch.add(hash(key));
            }
        }
        let mut exact = 0;
        for key in 0..600u64 {
            let (count, said) = ((key % 20).min(MAX_COUNT), sketch.estimate(hash(key)));
            assert!(said >= count, "key {key}: {said} of {count}");
            exact += u32::from(said == count);
        }
        assert!(exact > 500, "{exact} of 600 are exact");
    }

    #[test]
    fn a_sample_halves_every_count() {
        let mut sketch = Sketch::new(64, 10, false);
        for _ in 0..9 {
            sketch.add(hash(7));
        }
        assert_eq!(sketch.estimate(hash(7)), 9);
        sketch.add(hash(7));
        // Halved to 4, then counted.
        assert_eq!(sketch.estimate(hash(7)), 5);
        // 10 uses, of which the odd counters lost 1: (10 - 1) / 2.
        assert_eq!(sketch.uses, 4);
    }

    #[test]
    fn the_doorkeeper_takes_the_first_use() {
        let mut sketch = Sketch::new(64, 1000, true);
        assert_eq!(sketch.estimate(hash(1)), 0);
        sketch.add(hash(1));
        assert_eq!(sketch.estimate(hash(1)), 1);
        assert!(sketch.words.iter().all(|w| *w == 0));
        sketch.add(hash(1));
        assert_eq!(sketch.estimate(hash(1)), 2);
        sketch.halve();
        assert_eq!(sketch.estimate(hash(1)), 0);
    }
}
