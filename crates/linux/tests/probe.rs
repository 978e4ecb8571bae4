//! The measurement on made-up computers, whose caches are known.

use std::collections::HashSet;

use piebald_linux::{
    Bench, Candidate, Effect, Measured, Outlook, Plan, Unmeasured, effect_of, measure,
};
use rand::{SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

const PAGES: usize = 1 << 10;
const LINES: u64 = 64;

/// How a cache finds the set of a line.
#[derive(Clone, Copy)]
enum Index {
    /// By the low bits.
    Linear,
    /// Slices by the parity of many bits, sets inside them by low bits.
    Sliced,
    /// As linear, over frames that the host has dealt out at random.
    Virtual,
    /// All lines fit.
    Bottomless,
}

/// One cache with LRU of 256 KiB: 8 ways of 512 sets, so bits 12-14 index it if it is linear.
struct Toy {
    index: Index,
    frames: Vec<u64>,
    host: Vec<u64>,
    sets: Vec<Vec<u64>>,
    seen: HashSet<u64>,
    ready: Vec<usize>,
}

const SETS: u64 = 512;
const WAYS: usize = 8;

impl Toy {
    fn new(index: Index) -> Self {
        let mut rng = StdRng::seed_from_u64(7);
        let mut host: Vec<u64> = (0..PAGES as u64).collect();
        host.shuffle(&mut rng);
        let mut frames = host.clone();
        frames.shuffle(&mut rng);
        Self {
            index,
            frames,
            host,
            sets: vec![Vec::new(); SETS as usize],
            seen: HashSet::new(),
            ready: Vec::new(),
        }
    }

    fn set_of(&self, line: u64) -> u64 {
        match self.index {
            Index::Linear | Index::Virtual | Index::Bottomless => line % SETS,
            Index::Sliced => {
                // Two slices of 256 sets: bit 14 takes part in the hash alone.
                let slice = (line >> 6).count_ones() as u64 & 1;
                line % (SETS / 2) + slice * (SETS / 2)
            }
        }
    }

    /// Is the line there? It is afterwards.
    fn touch(&mut self, line: u64) -> bool {
        if matches!(self.index, Index::Bottomless) {
            return !self.seen.insert(line);
        }
        let index = self.set_of(line) as usize;
        let set = &mut self.sets[index];
        let hit = set.iter().position(|l| *l == line);
        if let Some(at) = hit {
            set.remove(at);
        } else if set.len() >= WAYS {
            set.remove(0);
        }
        set.push(line);
        hit.is_some()
    }

    fn read(&mut self, pages: &[usize]) -> u64 {
        let mut misses = 0;
        for page in pages {
            let frame = match self.index {
                Index::Virtual => self.host[self.frames[*page] as usize],
                _ => self.frames[*page],
            };
            for line in 0..LINES {
                misses += u64::from(!self.touch(frame * LINES + line));
            }
        }
        misses
    }
}

impl Bench for Toy {
    fn frames(&self) -> &[u64] {
        &self.frames
    }

    fn visit(&mut self, pages: &[usize]) {
        self.read(pages);
    }

    fn prepare(&mut self, pages: &[usize]) {
        self.ready = pages.to_vec();
    }

    fn walk(&mut self, pages: &[usize]) -> f64 {
        assert_eq!(self.ready, pages, "walked without being got ready");
        let lines = pages.len() as f64 * LINES as f64;
        10.0 + 90.0 * self.read(pages) as f64 / lines
    }
}

const PLAN: Plan = Plan {
    last_level: 256 << 10,
    level_two: 0,
    rounds: 6,
    seed: 3,
};

fn candidates() -> Vec<Candidate> {
    let bits = 12..15;
    bits.map(|bit| Candidate {
        bit,
        in_level_two: false,
    })
    .collect()
}

fn measured(index: Index) -> Measured {
    measure(&mut Toy::new(index), &candidates(), &PLAN, &|_| ()).expect("enough pages")
}

fn effects(index: Index) -> Vec<Effect> {
    let measured = measured(index);
    measured.bits.iter().map(|b| effect_of(b).effect).collect()
}

#[test]
fn every_bit_of_a_linear_index_isolates() {
    assert_eq!(effects(Index::Linear), [Effect::Isolates; 3]);
    let measured = measured(Index::Linear);
    for bit in &measured.bits {
        let found = effect_of(bit);
        assert!(found.isolation.mean > 0.95, "{found:?}");
    }
    let crowding = measured.crowding.expect("enough pages");
    // One of 8 colours holds 32 KiB; 64 KiB of it miss always, of all colours almost never.
    assert_eq!((crowding.colors, crowding.pages), (8, 16));
    assert!(crowding.colored.iter().all(|ns| *ns > 99.0), "{crowding:?}");
    assert!(crowding.control.iter().all(|ns| *ns < 40.0), "{crowding:?}");
}

#[test]
fn a_hash_of_slices_leaves_the_bits_inside_a_slice() {
    // Frames that differ in bit 14 alone lie in other slices, and so do those that differ in
    // any other bit: it isolates nothing by itself.
    let found = effects(Index::Sliced);
    assert_eq!(found[..2], [Effect::Isolates; 2]);
    assert_eq!(found[2], Effect::Nothing);
}

#[test]
fn inside_a_virtual_machine_of_small_pages_nothing_isolates() {
    assert_eq!(effects(Index::Virtual), [Effect::Nothing; 3]);
}

#[test]
fn a_cache_that_is_never_full_tells_nothing() {
    assert_eq!(effects(Index::Bottomless), [Effect::Hidden; 3]);
}

#[test]
fn the_verdict_over_a_linear_cache_is_a_map() {
    let facts = piebald_linux::Facts::read("6.12.1", None, &|_| None);
    let verdict = piebald_linux::judge(&facts, Ok(&measured(Index::Linear)));
    assert_eq!(verdict.outlook, Outlook::Isolates);
    assert_eq!(verdict.map_bits, [12, 13, 14]);
}

#[test]
fn too_few_pages_or_rounds_are_refused() {
    let mut toy = Toy::new(Index::Linear);
    let plan = Plan {
        last_level: 16 << 20,
        ..PLAN
    };
    let error = measure(&mut toy, &candidates(), &plan, &|_| ()).expect_err("8192 pages");
    assert!(
        matches!(error, Unmeasured::Pages { bit: 12..=14, .. }),
        "{error}"
    );
    let plan = Plan { rounds: 2, ..PLAN };
    let error = measure(&mut toy, &candidates(), &plan, &|_| ());
    assert_eq!(error, Err(Unmeasured::Rounds(2)));
}

#[test]
fn a_draw_gives_the_same_numbers_twice() {
    assert_eq!(measured(Index::Sliced), measured(Index::Sliced));
}
