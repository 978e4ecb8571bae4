//! Partitions against a plain list of owners, under random operations.

use crate::kit::{Random, request, setting};
use piebald_policy::{
    contract::Purpose,
    rainbow::{
        Allowed, Ask, Config, Fit, Left, Partition, PartitionId, Refusal, Registry, Reservation,
        Resized, Rounding, WhenFull,
    },
};
use piebald_units::{Color, ColorSet};

/// Who has each colour, and who exists.
struct Oracle {
    owner: Vec<Option<usize>>,
    /// Tasks of every partition that ever was.
    tasks: Vec<u32>,
    slots: usize,
    config: Config,
}

fn members(set: &ColorSet) -> Vec<usize> {
    set.iter().map(|c| usize::from(c.0)).collect()
}

impl Oracle {
    fn of(&self, who: Option<usize>) -> Vec<usize> {
        let all = 0..self.owner.len();
        all.filter(|c| self.owner[*c] == who).collect()
    }

    fn left(&self) -> usize {
        let free = self.of(None).len();
        free.saturating_sub(self.config.keep_unreserved as usize)
    }

    fn wanted(&self, ask: &Ask<'_>) -> Option<usize> {
        let n = match ask {
            Ask::Count(n) => *n as usize,
            Ask::Exactly(set) => set.len() as usize,
            Ask::Share(bp) if !(1..=10_000).contains(bp) => 0,
            Ask::Share(bp) => {
                let exact = self.owner.len() as f64 * f64::from(*bp) / 10_000.0;
                match self.config.rounding {
                    Rounding::Up => exact.ceil() as usize,
                    Rounding::Down => exact.floor() as usize,
                    Rounding::Nearest => (exact + 0.5).floor() as usize,
                }
            }
        };
        (n > 0).then_some(n)
    }

    /// The lowest start of `n` free neighbours at a multiple of `align`.
    fn run(&self, n: usize, align: usize) -> Option<usize> {
        let starts = (0..self.owner.len()).step_by(align);
        let mut fits = starts.filter(|s| s + n <= self.owner.len());
        fits.find(|s| (*s..s + n).all(|c| self.owner[c].is_none()))
    }

    fn take(&mut self, n: usize, who: usize) {
        if n == 0 {
            return;
        }
        let power = (1..=n).rev().find(|a| a.is_power_of_two()).unwrap();
        let start = match self.config.fit {
            Fit::FirstRun => self.run(n, 1),
            Fit::AlignedRun => self.run(n, power).or(self.run(n, 1)),
            Fit::Scattered => None,
        };
        let chosen: Vec<usize> = match start {
            Some(start) => (start..start + n).collect(),
            None => self.of(None).into_iter().take(n).collect(),
        };
        for c in chosen {
            self.owner[c] = Some(who);
        }
    }

    fn grow(&mut self, mut n: usize, who: usize) {
        let up: Vec<usize> = (1..self.owner.len()).collect();
        let down: Vec<usize> = (0..self.owner.len() - 1).rev().collect();
        for (colors, upwards) in [(up, true), (down, false)] {
            for c in colors {
                let beside = if upwards { c - 1 } else { c + 1 };
                if n > 0 && self.owner[c].is_none() && self.owner[beside] == Some(who) {
                    self.owner[c] = Some(who);
                    n -= 1;
                }
            }
        }
        self.take(n, who);
    }

    fn shrink(&mut self, mut n: usize, who: usize) {
        for only_alone in [true, false] {
            for c in (0..self.owner.len()).rev() {
                let has = |c: Option<usize>| {
                    c.and_then(|c| self.owner.get(c))
                        .is_some_and(|o| *o == Some(who))
                };
                let alone = !has(c.checked_sub(1)) && !has(Some(c + 1));
                if n > 0 && has(Some(c)) && (alone || !only_alone) {
                    self.owner[c] = None;
                    n -= 1;
                }
            }
        }
    }

    /// Can these be given to `who`, who may have some of them?
    fn may_have(&self, set: &ColorSet, who: Option<usize>) -> bool {
        members(set).iter().all(|c| {
            let owner = self.owner.get(*c);
            owner.is_some_and(|o| o.is_none() || (who.is_some() && *o == who))
        })
    }

    fn give(&mut self, set: &ColorSet, who: usize) {
        for (c, owner) in self.owner.iter_mut().enumerate() {
            match set.contains(Color(c as u16)) {
                true => *owner = Some(who),
                false if *owner == Some(who) => *owner = None,
                false => {}
            }
        }
    }

    fn reserve(&mut self, ask: &Ask<'_>, tasks: u32) -> Option<usize> {
        let n = self.wanted(ask)?;
        let used = self.tasks.iter().filter(|t| **t > 0).count();
        if tasks == 0 || n > self.left() || used == self.slots {
            return None;
        }
        let who = self.tasks.len();
        match ask {
            Ask::Exactly(set) if !self.may_have(set, None) => return None,
            Ask::Exactly(set) => self.give(set, who),
            _ => self.take(n, who),
        }
        self.tasks.push(tasks);
        Some(who)
    }

    fn resize(&mut self, who: usize, ask: &Ask<'_>) -> Option<Resized> {
        let n = self.wanted(ask)?;
        let had = self.of(Some(who));
        let before = self.owner.clone();
        match ask {
            Ask::Exactly(set) if !self.may_have(set, Some(who)) => return None,
            Ask::Exactly(set) => self.give(set, who),
            _ if n > had.len() + self.of(None).len() => return None,
            _ if n > had.len() => self.grow(n - had.len(), who),
            _ => self.shrink(had.len() - n, who),
        }
        let has = self.of(Some(who));
        let gained = has.iter().filter(|c| !had.contains(c)).count() as u32;
        let lost = had.iter().filter(|c| !has.contains(c)).count() as u32;
        if gained > 0 && self.of(None).len() < self.config.keep_unreserved as usize {
            self.owner = before;
            return None;
        }
        Some(Resized { gained, lost })
    }

    fn release(&mut self, who: usize) -> Left {
        self.tasks[who] -= 1;
        if self.tasks[who] > 0 {
            return Left::Tasks(self.tasks[who]);
        }
        let freed = self.of(Some(who));
        for c in &freed {
            self.owner[*c] = None;
        }
        Left::Freed(freed.len() as u32)
    }
}

/// The registry and its oracle, with the ids of all partitions that ever were.
struct Pair {
    rainbow: Registry<Vec<Partition>>,
    oracle: Oracle,
    ids: Vec<PartitionId>,
    granted: u64,
    refused: u64,
}

impl Pair {
    fn new(random: &mut Random) -> Self {
        let colors = match random.below(4) {
            0 => 1 + random.below(4),
            1 => 16,
            2 => 1 + random.below(200),
            _ => 128,
        } as u32;
        let fits = [Fit::FirstRun, Fit::AlignedRun, Fit::Scattered];
        let roundings = [Rounding::Up, Rounding::Down, Rounding::Nearest];
        let fulls = [WhenFull::Everyone, WhenFull::Others];
        let config = Config {
            fit: fits[random.below(3) as usize],
            rounding: roundings[random.below(3) as usize],
            when_full: fulls[random.below(2) as usize],
            keep_unreserved: random.below(3).min(u64::from(colors) - 1) as u32,
            ..Config::PAPER
        };
        let slots = 1 + random.below(8) as usize;
        Self {
            rainbow: Registry::new(vec![Partition::EMPTY; slots], colors, config).unwrap(),
            oracle: Oracle {
                owner: vec![None; colors as usize],
                tasks: Vec::new(),
                slots,
                config,
            },
            ids: Vec::new(),
            granted: 0,
            refused: 0,
        }
    }

    /// Any partition that ever was, rather one of the latest.
    fn pick(&self, random: &mut Random) -> Option<usize> {
        let n = self.ids.len() as u64;
        let back = random.below(10).min(n.checked_sub(1)?);
        Some((n - 1 - back) as usize)
    }

    /// One random operation on both, and a comparison of all that can be seen.
    fn step(&mut self, random: &mut Random) {
        let colors = self.oracle.owner.len() as u64;
        let mut named = ColorSet::EMPTY;
        for _ in 0..random.below(6) {
            let first = random.below(colors + colors / 16 + 1);
            for c in first..first + random.below(4) {
                named.insert(Color(c as u16));
            }
        }
        let ask = match random.below(4) {
            0 => Ask::Exactly(&named),
            1 => Ask::Share(random.below(10_300) as u32),
            2 => Ask::Count(random.below(colors + 2) as u32),
            _ => Ask::Count(random.below(colors / 4 + 2) as u32),
        };
        match (random.below(6), self.pick(random)) {
            (0 | 1, _) | (_, None) => self.reserve(&ask, random.below(4) as u32),
            (2, Some(who)) => self.resize(who, &ask),
            (3, Some(who)) => self.attach(who),
            (_, Some(who)) => self.release(who),
        }
        assert_eq!(self.rainbow.validate(), Ok(()));
        self.compare();
    }

    fn tally(&mut self, granted: bool) {
        self.granted += u64::from(granted);
        self.refused += u64::from(!granted);
    }

    fn reserve(&mut self, ask: &Ask<'_>, tasks: u32) {
        let r = Reservation {
            tasks,
            ..Reservation::of(*ask)
        };
        let answer = self.rainbow.reserve(&r);
        let expected = self.oracle.reserve(ask, tasks);
        assert_eq!(answer.is_ok(), expected.is_some(), "{r:?}: {answer:?}");
        if let Err(Refusal::TooMany { left, .. }) = answer {
            assert_eq!(left as usize, self.oracle.left());
        }
        self.ids.extend(answer.ok());
        self.tally(answer.is_ok());
    }

    fn resize(&mut self, who: usize, ask: &Ask<'_>) {
        let answer = self.rainbow.resize(self.ids[who], ask);
        let expected = match self.oracle.tasks[who] {
            0 => None,
            _ => self.oracle.resize(who, ask),
        };
        assert_eq!(answer.ok(), expected, "{ask:?}: {answer:?}");
        self.tally(answer.is_ok());
    }

    fn attach(&mut self, who: usize) {
        let answer = self.rainbow.attach(self.ids[who]).ok();
        let tasks = &mut self.oracle.tasks[who];
        *tasks += u32::from(*tasks > 0);
        assert_eq!(answer.unwrap_or(0), *tasks);
        self.tally(answer.is_some());
    }

    fn release(&mut self, who: usize) {
        let answer = self.rainbow.release(self.ids[who]).ok();
        let expected = (self.oracle.tasks[who] > 0).then(|| self.oracle.release(who));
        assert_eq!(answer, expected);
        self.tally(answer.is_some());
    }

    fn compare(&self) {
        let free = self.oracle.of(None);
        assert_eq!(members(self.rainbow.unreserved()), free);
        assert_eq!(self.rainbow.left() as usize, self.oracle.left());
        let page = request(0, Purpose::Anon);
        for (who, id) in self.ids.iter().enumerate().rev().take(12) {
            let own = self.oracle.of(Some(who));
            let partition = self.rainbow.get(*id);
            assert_eq!(partition.is_ok(), self.oracle.tasks[who] > 0);
            let Ok(partition) = partition else {
                assert!(own.is_empty() && self.rainbow.allowed(&page, Some(*id)).is_err());
                continue;
            };
            assert_eq!(members(partition.colors()), own);
            assert_eq!(partition.tasks(), self.oracle.tasks[who]);
            let allowed = self.rainbow.allowed(&page, Some(*id)).unwrap();
            let everyone = self.oracle.config.when_full == WhenFull::Everyone;
            match free.is_empty() && everyone {
                true => assert_eq!(allowed, Allowed::All),
                false => assert_eq!(allowed, Allowed::Own(partition.colors())),
            }
        }
        let live = self.oracle.tasks.iter().filter(|t| **t > 0).count();
        assert_eq!(self.rainbow.iter().count(), live);
        let all = self.rainbow.allowed(&page, None).unwrap().set().is_none();
        assert_eq!(all, free.is_empty());
    }
}

/// `cases` operations in lists of 60, each on a new registry.
fn operate(random: &mut Random, cases: u64) {
    let (mut granted, mut refused) = (0, 0);
    for _ in 0..cases.div_ceil(60) {
        let mut pair = Pair::new(random);
        for _ in 0..60 {
            pair.step(random);
        }
        granted += pair.granted;
        refused += pair.refused;
    }
    let seen = granted + refused;
    assert!(
        granted * 5 > seen && refused * 5 > seen,
        "{granted} granted, {refused} refused"
    );
}

#[test]
fn random_operations_agree_with_a_list_of_owners() {
    operate(&mut Random(7), 60_000);
}

#[test]
fn fuzz_rainbow() {
    let cases = setting("PIEBALD_FUZZ_CASES", 20_000);
    operate(&mut Random(setting("PIEBALD_FUZZ_SEED", 1)), cases);
}
