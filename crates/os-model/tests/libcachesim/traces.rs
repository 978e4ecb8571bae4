//! The page references on which policies are compared with libCacheSim: four that are
//! generated, and two recordings of `testdata`.

use crate::recorded::{dense, file_trace, oltp};

/// A list of pages, numbered in the order of their first use.
pub struct Trace {
    pub name: &'static str,
    pub pages: Vec<u32>,
}

impl Trace {
    fn new(name: &'static str, pages: impl Iterator<Item = u64>) -> Self {
        let pages = dense(pages);
        Self { name, pages }
    }

    /// How many different pages it has.
    pub fn distinct(&self) -> u32 {
        self.pages.iter().max().map_or(0, |last| last + 1)
    }

    /// Sizes of memory in pages: 1 %, 10 % and 40 % of the different pages.
    pub fn sizes(&self) -> [u32; 3] {
        [1, 10, 40].map(|percent| self.distinct() * percent / 100)
    }

    /// FNV-1a of the list, so that a count is never compared with another list's.
    pub fn digest(&self) -> u64 {
        let bytes = self.pages.iter().flat_map(|page| page.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }
}

/// Draws by Zipf's law. The weights are whole numbers, of so few bits that the last bits
/// of `powf`, which depend on the platform, do not matter.
fn zipf(alpha: f64, pages: u32, references: u32, seed: u64) -> impl Iterator<Item = u64> {
    let weight = |rank: u32| (f64::from(rank).powf(-alpha) * f64::from(1 << 24)).round() as u64;
    let sums: Vec<u64> = (1..=pages)
        .scan(0, |sum, rank| {
            *sum += weight(rank);
            Some(*sum)
        })
        .collect();
    let all = sums[sums.len() - 1];
    let mut random = Random(seed);
    (0..references).map(move |_| {
        let drawn = random.below(all);
        sums.partition_point(|sum| *sum <= drawn) as u64
    })
}

/// Half of the references go round a file of 12,000 pages, the others to 4,000 pages, to
/// some more often than to others.
fn scan_with_reuse(references: u32, seed: u64) -> impl Iterator<Item = u64> {
    let (mut random, mut scanned) = (Random(seed), 0);
    (0..references).map(move |_| match random.below(2) {
        0 => {
            scanned += 1;
            4000 + scanned % 12_000
        }
        _ => random.below(4000).min(random.below(4000)),
    })
}

/// All six.
pub fn all() -> [Trace; 6] {
    let of = |pages: Vec<u32>| pages.into_iter().map(u64::from);
    [
        Trace::new("zipf-0.8", zipf(0.8, 15_000, 150_000, 1)),
        Trace::new("zipf-1.1", zipf(1.1, 40_000, 150_000, 2)),
        Trace::new("loop", (0..10).flat_map(|_| 0..12_000)),
        Trace::new("scan", scan_with_reuse(150_000, 3)),
        // An hour has 914,145 references; the first ones will do.
        Trace::new("oltp", of(oltp()).take(200_000)),
        Trace::new("gcc", of(file_trace("gcc"))),
    ]
}
