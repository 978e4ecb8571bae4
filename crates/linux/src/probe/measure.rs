//! What address bits do in the last level, told apart by time.
//!
//! **Isolation by a bit.** A victim walks pages in which the bit is 0. Then a polluter reads
//! twice as much as the last level holds, and the victim's next walk is timed:
//!
//! * *clean*: no polluter, only so much as flushes the second level;
//! * *colored*: the polluter's pages have 1 in the bit;
//! * *control*: as many pages drawn at random, whatever their bit.
//!
//! If the bit picks sets, the colored polluter cannot reach the victim, and its walk takes as
//! long as the clean one. If it does not, colored and control take the same. The share of the
//! control's damage that the bit keeps off is the *isolation* of the bit.
//!
//! **Crowding.** As many pages of one claimed colour are walked as twice the colour's claimed
//! capacity, and as many random pages. If colours are what they claim, only the first misses.
//! That a colour is slower shows that a bit does something somewhere (a second level, a bank);
//! only isolation shows that it is of use.
//!
//! All arms see the same density of pages and the same number of references, and are
//! interleaved, so that what else the machine does hits them alike.

use std::collections::HashSet;

use piebald_units::PAGE_SIZE;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use super::Candidate;

/// Memory whose frames are known, and a clock.
pub trait Bench {
    /// Number of the frame of each page.
    fn frames(&self) -> &[u64];
    /// Reads every line of these pages.
    fn visit(&mut self, pages: &[usize]);
    /// Gets these pages ready to be walked; they stay so until others that share pages with them
    /// are got ready.
    fn prepare(&mut self, pages: &[usize]);
    /// Walks through every line of these pages, each read waiting for the one before. Nanoseconds
    /// per line.
    fn walk(&mut self, pages: &[usize]) -> f64;
}

/// Sizes and numbers of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Capacity of the last level, in bytes.
    pub last_level: u64,
    /// Capacity of the second level, in bytes; 0 if that is the last.
    pub level_two: u64,
    /// Rounds, each of all arms of all bits; at least 3.
    pub rounds: u32,
    /// Of all draws of pages.
    pub seed: u64,
}

impl Plan {
    /// Pages that the victim walks: an eighth of the last level, which fits beside the polluter in
    /// a cache cut in half, and at least twice the second level, so that none of it stays there.
    pub const fn victim_pages(&self) -> usize {
        let eighth = self.last_level / 8;
        let twice = self.level_two.saturating_mul(2);
        (if eighth > twice { eighth } else { twice }).div_ceil(PAGE_SIZE) as usize
    }

    /// Pages that the polluter reads.
    pub const fn polluter_pages(&self) -> usize {
        self.last_level.saturating_mul(2).div_ceil(PAGE_SIZE) as usize
    }

    /// Pages that flush the second level.
    const fn flush_pages(&self) -> usize {
        self.level_two.saturating_mul(4).div_ceil(PAGE_SIZE) as usize
    }

    /// Pages to have at hand, of which half have 1 in a bit and a few more than expected do not.
    pub const fn pages(&self) -> usize {
        let needed = 2 * self.polluter_pages() + 2 * self.victim_pages();
        needed + needed / 8
    }
}

/// Nanoseconds per line of the victim, one value per round.
#[derive(Clone, Debug, PartialEq)]
pub struct BitRounds {
    /// The bit.
    pub candidate: Candidate,
    /// Without a polluter.
    pub clean: Vec<f64>,
    /// Beside a polluter of the other colour.
    pub colored: Vec<f64>,
    /// Beside a polluter of random pages.
    pub control: Vec<f64>,
}

/// Nanoseconds per line of walks that claimed colours cannot hold, one value per round.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowding {
    /// Claimed colours, of which one was walked.
    pub colors: u32,
    /// Pages that were walked.
    pub pages: usize,
    /// Pages of one colour.
    pub colored: Vec<f64>,
    /// Random pages.
    pub control: Vec<f64>,
}

/// All that was timed.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// One for each candidate.
    pub bits: Vec<BitRounds>,
    /// Of the highest candidates, if there are enough pages of one colour.
    pub crowding: Option<Crowding>,
}

/// Why nothing was timed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmeasured {
    /// Too few pages have a value of a bit.
    #[error("only {have} pages have {value} in address bit {bit}; needed: {needed}")]
    Pages {
        /// The bit.
        bit: u32,
        /// Its value.
        value: u32,
        /// Pages that have it.
        have: usize,
        /// Pages that are needed.
        needed: usize,
    },
    /// A measurement without rounds.
    #[error("{0} rounds; allowed: 3 or more")]
    Rounds(u32),
}

/// Value of an address bit in a page's frame.
fn value_of(frame: u64, bit: u32) -> u64 {
    frame.checked_shr(bit.saturating_sub(12)).unwrap_or(0) & 1
}

/// The pages of one round of one bit.
struct Draw {
    victim: Vec<usize>,
    colored: Vec<usize>,
    control: Vec<usize>,
    flush: Vec<usize>,
}

impl Draw {
    fn new(frames: &[u64], bit: u32, plan: &Plan, rng: &mut StdRng) -> Result<Self, Unmeasured> {
        let mut all: Vec<usize> = (0..frames.len()).collect();
        all.shuffle(rng);
        let of = |wanted| {
            all.iter()
                .copied()
                .filter(move |p| value_of(frames[*p], bit) == wanted)
        };
        let take = |value: u32, needed: usize| {
            let found: Vec<usize> = of(u64::from(value)).take(needed).collect();
            match found.len() == needed {
                true => Ok(found),
                false => Err(Unmeasured::Pages {
                    bit,
                    value,
                    have: found.len(),
                    needed,
                }),
            }
        };
        let victim = take(0, plan.victim_pages())?;
        let colored = take(1, plan.polluter_pages())?;
        let taken: HashSet<usize> = victim.iter().copied().collect();
        let mut others: Vec<usize> = all.iter().copied().filter(|p| !taken.contains(p)).collect();
        others.shuffle(rng);
        Ok(Self {
            control: others.iter().copied().take(plan.polluter_pages()).collect(),
            flush: others
                .iter()
                .rev()
                .copied()
                .take(plan.flush_pages())
                .collect(),
            victim,
            colored,
        })
    }

    /// The victim's walk after `polluter`, which reads twice: caches that resist scans keep out
    /// what is read once.
    fn walk_after(&self, bench: &mut impl Bench, polluter: &[usize]) -> f64 {
        for _ in 0..2 {
            bench.visit(&self.victim);
        }
        for _ in 0..2 {
            bench.visit(polluter);
        }
        bench.visit(&self.flush);
        bench.walk(&self.victim)
    }
}

/// Times every candidate. `progress` is told how many of the rounds are done.
///
/// # Errors
/// Too few rounds, or pages that do not have both values of a bit.
pub fn measure(
    bench: &mut impl Bench,
    candidates: &[Candidate],
    plan: &Plan,
    progress: &dyn Fn(u32),
) -> Result<Measured, Unmeasured> {
    if plan.rounds < 3 {
        return Err(Unmeasured::Rounds(plan.rounds));
    }
    let mut rng = StdRng::seed_from_u64(plan.seed);
    let mut bits: Vec<BitRounds> = candidates.iter().map(|c| BitRounds::new(*c)).collect();
    let mut crowding = Crowd::new(bench.frames(), candidates, plan);
    let mut order: Vec<usize> = (0..bits.len()).collect();
    for round in 0..plan.rounds {
        order.shuffle(&mut rng);
        for i in &order {
            bits[*i].round(bench, plan, &mut rng)?;
        }
        if let Some(crowd) = &mut crowding {
            crowd.round(bench, &mut rng);
        }
        progress(round + 1);
    }
    Ok(Measured {
        bits,
        crowding: crowding.map(|crowd| crowd.found),
    })
}

impl BitRounds {
    fn new(candidate: Candidate) -> Self {
        Self {
            candidate,
            clean: Vec::new(),
            colored: Vec::new(),
            control: Vec::new(),
        }
    }

    fn round(
        &mut self,
        bench: &mut impl Bench,
        plan: &Plan,
        rng: &mut StdRng,
    ) -> Result<(), Unmeasured> {
        let draw = Draw::new(bench.frames(), self.candidate.bit, plan, rng)?;
        bench.prepare(&draw.victim);
        let mut arms = [0, 1, 2];
        arms.shuffle(rng);
        for arm in arms {
            let (polluter, into): (&[usize], _) = match arm {
                0 => (&[], &mut self.clean),
                1 => (&draw.colored, &mut self.colored),
                _ => (&draw.control, &mut self.control),
            };
            into.push(draw.walk_after(bench, polluter));
        }
        Ok(())
    }
}

/// Colours whose pages are walked.
const CROWD_BITS: usize = 3;

/// The crowding measurement under way.
struct Crowd {
    /// Pages of one colour, all that there are.
    pages: Vec<usize>,
    found: Crowding,
}

impl Crowd {
    /// Of the highest candidates outside the second level; `None` if there are none, or too few
    /// pages.
    fn new(frames: &[u64], candidates: &[Candidate], plan: &Plan) -> Option<Self> {
        let free = candidates.iter().filter(|c| !c.in_level_two);
        let bits: Vec<u32> = free.rev().take(CROWD_BITS).map(|c| c.bit).collect();
        let colors = 1u32 << bits.len();
        let needed =
            (plan.last_level.saturating_mul(2) / u64::from(colors)).div_ceil(PAGE_SIZE) as usize;
        let is_zero = |page: &usize| bits.iter().all(|bit| value_of(frames[*page], *bit) == 0);
        let pages: Vec<usize> = (0..frames.len()).filter(is_zero).collect();
        let fits = colors > 1 && pages.len() >= needed && needed * 2 <= frames.len();
        fits.then_some(Self {
            pages,
            found: Crowding {
                colors,
                pages: needed,
                colored: Vec::new(),
                control: Vec::new(),
            },
        })
    }

    fn round(&mut self, bench: &mut impl Bench, rng: &mut StdRng) {
        let n = self.found.pages;
        self.pages.shuffle(rng);
        let mut random: Vec<usize> = (0..bench.frames().len()).collect();
        random.shuffle(rng);
        let mut time = |pages: &[usize]| {
            bench.prepare(pages);
            // Twice, so that what can stay is there.
            bench.walk(pages);
            bench.walk(pages)
        };
        if rng.random::<bool>() {
            self.found.colored.push(time(&self.pages[..n]));
            self.found.control.push(time(&random[..n]));
        } else {
            self.found.control.push(time(&random[..n]));
            self.found.colored.push(time(&self.pages[..n]));
        }
    }
}
