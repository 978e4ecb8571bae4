//! Shadow tags: the misses of the last level at every partition size, in one run.
//!
//! Source: the auxiliary tag directories of utility-based cache partitioning (Qureshi
//! and Patt, MICRO 2006, section 3.2), and its dynamic set sampling. There a directory
//! of one size answers for all numbers of ways; partitions by page color differ in
//! sets, and there is one directory for each size.
//!
//! Vocabulary. A partition of `k` colors has `k` of the `C` groups of sets that pages
//! of different colors use, each with all its ways. The *n*-th page of the program,
//! counted from 0 by frame ([`Machine::page_has_come`](crate::Machine::page_has_come)),
//! is drawn color `n mod k`: whoever owns `k` colors and takes them in turn gives them
//! so. Other pages, which are the kernel's, keep their real color, and are outside of a
//! partition that does not have it. A *place* is a set's number within its color.
//!
//! What is looked up: everything that reaches the last level from the chosen cores,
//! demands, page walks, prefetches, and victims of the level before. The rules are the
//! level's own: replacement, whether a miss fills, whether a hit moves the line inwards.
//!
//! What is ignored: an inclusive last level takes its victims out of the private caches
//! as well, and a smaller one has more of them, so that a real partition of few colors
//! sees references that hit the private caches here; which prefetches find a free
//! buffer, which depends on time; and writes of devices and stores of other cores, which
//! take lines away. `crates/sim/tests/partitions.rs` compares with real partitions.
//!
//! Cost: a look-up of a set of every size for each access to a place that is looked at.
//! Memory: 8 bytes for each line of all sizes together, `(C + 3) / 2` times the lines of
//! the level over `1 << sample_shift`, and 4 bytes for each frame of memory.

mod places;
mod tags;

use piebald_units::{CoreSet, LINE_SHIFT, PAGE_SHIFT, Pfn};
use serde::{Deserialize, Serialize};

use crate::{
    cache::{Cache, Line},
    error::SpecError,
    hierarchy::Want,
    spec::CacheSpec,
};
use places::Places;
use tags::{Rules, Tags, Victim};

/// What shall be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowRequest {
    /// Hardware threads whose accesses count, with those of their siblings; all behind
    /// one instance of the last level.
    pub cores: CoreSet,
    /// The colors: a mask over frame numbers for each bit, at most 12, each of them the
    /// parity of some bits of the last level's set number.
    pub colors: Vec<u64>,
    /// Of each `1 << sample_shift` sets of a color one is looked at, which must leave
    /// two; 0 = all, and no error of sampling.
    pub sample_shift: u32,
}

/// Misses of the last level against the size of a partition of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissCurve {
    /// Demands that reached the last level.
    pub accesses: u64,
    /// Prefetches that did.
    pub prefetches: u64,
    /// Pages of the program that have come, by frame.
    pub pages: u32,
    /// Sets of a color, and how many of these were looked at.
    pub sets: u32,
    /// See [`MissCurve::sets`].
    pub sets_seen: u32,
    /// For 1, 2 .. C colors.
    pub points: Vec<CurvePoint>,
}

/// What a partition of one size would have had. Figures are scaled up from the sets
/// that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Number of its colors.
    pub colors: u32,
    /// Demands that missed.
    pub misses: u64,
    /// Standard error of `misses` that sampling sets makes, from how much they differ;
    /// 0 if all were looked at.
    pub error: u64,
    /// Prefetches that missed.
    pub prefetch_misses: u64,
    /// Dirty lines that went to memory. Those of an inclusive level that only the private
    /// caches knew to be dirty are not among them.
    pub writebacks: u64,
}

/// A partition of one size.
#[derive(Clone, Debug)]
struct Part {
    colors: u32,
    /// Set `color * places + place`.
    tags: Tags,
    /// Demands that missed, by place.
    misses: Vec<u64>,
    prefetch_misses: u64,
}

/// What decides the color of a line's page.
#[derive(Clone, Copy, Debug)]
enum Page {
    /// So many pages of the program had come before it.
    Turn(u32),
    /// It is the kernel's, of this color.
    Kernel(u32),
}

/// The tags of all partition sizes.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    /// Physical cores.
    cores: u64,
    rules: Rules,
    places: Places,
    parts: Vec<Part>,
    /// Lines of the kernel in colors outside of a partition, where nothing else is.
    outside: Tags,
    /// By frame: how many pages had come before it, and itself; 0 = it has not come.
    turns: Vec<u32>,
    pages: u32,
    accesses: u64,
    prefetches: u64,
    /// Demands, by place; prefetches of places that are looked at.
    seen: Vec<u64>,
    seen_prefetches: u64,
}

impl Shadow {
    /// For a last level like `cache`, which `spec` describes, on a machine of `frames`
    /// frames; `cores` are physical.
    pub(crate) fn new(
        request: &ShadowRequest,
        cores: u64,
        (cache, spec): (&Cache, &CacheSpec),
        frames: u64,
        seed: u64,
    ) -> Result<Self, SpecError> {
        let places = Places::new(cache, &request.colors, request.sample_shift)?;
        let seen = places.seen as usize;
        let tags = |colors: u32| {
            let own = seed.wrapping_add(u64::from(colors));
            Tags::new(spec, colors as usize * seen, own)
        };
        let part = |colors: u32| Part {
            colors,
            tags: tags(colors),
            misses: vec![0; seen],
            prefetch_misses: 0,
        };
        Ok(Self {
            cores,
            rules: Rules::of(spec),
            parts: (1..=places.colors).map(part).collect(),
            outside: tags(places.colors),
            turns: vec![0; frames as usize],
            pages: 0,
            accesses: 0,
            prefetches: 0,
            seen: vec![0; seen],
            seen_prefetches: 0,
            places,
        })
    }

    #[inline]
    pub(crate) const fn watches(&self, core: usize) -> bool {
        self.cores >> core & 1 == 1
    }

    /// Forgets what was counted, and no line.
    pub(crate) fn restart(&mut self) {
        self.accesses = 0;
        self.prefetches = 0;
        self.seen.fill(0);
        self.seen_prefetches = 0;
        self.outside.writebacks = 0;
        for part in &mut self.parts {
            part.misses.fill(0);
            part.prefetch_misses = 0;
            part.tags.writebacks = 0;
        }
    }

    /// A page of the program is given a frame, or the frame is seen again.
    pub(crate) fn page_has_come(&mut self, frame: Pfn) {
        if let Some(turn) = self.turns.get_mut(frame.0 as usize)
            && *turn == 0
        {
            self.pages += 1;
            *turn = self.pages;
        }
    }

    #[inline]
    fn page(&self, set: usize, line: Line) -> Page {
        let frame = (line >> (PAGE_SHIFT - LINE_SHIFT)) as usize;
        match self.turns.get(frame) {
            Some(turn) if *turn > 0 => Page::Turn(*turn - 1),
            _ => Page::Kernel(self.places.color(set)),
        }
    }

    /// A line was looked up in `set` of the last level, which is `level`.
    pub(crate) fn access(&mut self, set: usize, level: usize, want: &Want) {
        match want.prefetch {
            true => self.prefetches += 1,
            false => self.accesses += 1,
        }
        let Some(place) = self.places.of(set) else {
            return;
        };
        match want.prefetch {
            true => self.seen_prefetches += 1,
            false => self.seen[place] += 1,
        }
        let page = self.page(set, want.line);
        let effect = self.rules.effect(want, level);
        let (places, line) = (self.places.seen as usize, want.line);
        // A kernel's line of the first color is in every partition.
        let outside = match page {
            Page::Kernel(own) if own > 0 => {
                let set = own as usize * places + place;
                self.outside.access(set, line, effect)
            }
            _ => true,
        };
        for part in &mut self.parts {
            let held = match part.set(page, place, places) {
                Some(set) => part.tags.access(set, line, effect),
                None => outside,
            };
            match want.prefetch {
                _ if held => {}
                true => part.prefetch_misses += 1,
                false => part.misses[place] += 1,
            }
        }
    }

    /// The level before gave a line to `set` of the last level, which takes clean lines
    /// as well or does not.
    pub(crate) fn victim(&mut self, set: usize, line: Line, dirty: bool, clean_too: bool) {
        let Some(place) = self.places.of(set) else {
            return;
        };
        let victim = Victim {
            line,
            dirty,
            clean_too,
        };
        let page = self.page(set, line);
        let places = self.places.seen as usize;
        if let Page::Kernel(own) = page {
            let set = own as usize * places + place;
            self.outside.take_in(set, victim, self.rules);
        }
        for part in &mut self.parts {
            if let Some(set) = part.set(page, place, places) {
                part.tags.take_in(set, victim, self.rules);
            }
        }
    }

    /// What was counted since the last restart.
    pub(crate) fn curve(&self) -> MissCurve {
        let all = self.accesses + self.prefetches;
        let demands: u64 = self.seen.iter().sum();
        let seen = demands + self.seen_prefetches;
        let point = |part: &Part| {
            let misses: u64 = part.misses.iter().sum();
            CurvePoint {
                colors: part.colors,
                misses: scaled(misses, self.accesses, demands),
                error: self.error(part, misses, demands),
                prefetch_misses: scaled(
                    part.prefetch_misses,
                    self.prefetches,
                    self.seen_prefetches,
                ),
                writebacks: scaled(part.tags.writebacks, all, seen),
            }
        };
        MissCurve {
            accesses: self.accesses,
            prefetches: self.prefetches,
            pages: self.pages,
            sets: self.places.all,
            sets_seen: self.places.seen,
            points: self.parts.iter().map(point).collect(),
        }
    }

    /// Standard error of a ratio, misses to accesses, from a sample of places without
    /// replacement, times all accesses.
    fn error(&self, part: &Part, misses: u64, demands: u64) -> u64 {
        let (n, all) = (f64::from(self.places.seen), f64::from(self.places.all));
        if self.places.seen == self.places.all || demands == 0 {
            return 0;
        }
        let ratio = misses as f64 / demands as f64;
        let places = part.misses.iter().zip(&self.seen);
        let squares: f64 = places
            .map(|(m, a)| (*m as f64 - ratio * *a as f64).powi(2))
            .sum();
        let variance = (1.0 - n / all) * n / (n - 1.0) * squares;
        let up = self.accesses as f64 / demands as f64;
        (up * variance.sqrt()).round() as u64
    }
}

impl Part {
    /// Set of a line at a place; none if its page is outside.
    #[inline]
    fn set(&self, page: Page, place: usize, places: usize) -> Option<usize> {
        let color = match page {
            Page::Turn(turn) => turn % self.colors,
            Page::Kernel(own) if own < self.colors => own,
            Page::Kernel(_) => return None,
        };
        Some(color as usize * places + place)
    }
}

/// `part` times `all / seen`, rounded.
fn scaled(part: u64, all: u64, seen: u64) -> u64 {
    let (part, all, seen) = (u128::from(part), u128::from(all), u128::from(seen.max(1)));
    ((part * all + seen / 2) / seen) as u64
}
