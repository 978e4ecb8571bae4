//! SRM-buffer and a slow, obvious oracle side by side under random calls.
//!
//! `PIEBALD_FUZZ_CASES` sets the number of random lists of calls.

use std::collections::BTreeSet;

use crate::srm_kit::{
    Random, VecSrm, map_of,
    oracle::{Ask, Oracle},
    plain_map, setting, zone,
};
use piebald_policy::{
    color_map::ColorMap,
    contract::Mode,
    srm::{Answer, Config, FileFault, Holds, Limited, Sequence, Supply, VmTurn},
};
use piebald_units::{Color, ColorSet, Pfn};

const FILES: usize = 7;
const WHO: usize = 12;

struct Pair {
    srm: VecSrm,
    oracle: Oracle,
    sequences: Vec<Sequence>,
    turns: Vec<VmTurn>,
    random: Random,
    origin: u64,
    frames: u64,
    /// Per mille of calls that bring a page.
    coming: u64,
}

impl Pair {
    fn new(map: ColorMap, frames: u64, origin: u64, config: Config, seed: u64) -> Self {
        let srm = zone(map.clone(), frames, origin, config);
        let oracle = Oracle::new(&map, frames, origin, srm.limits(), WHO);
        let mut random = Random(seed);
        Self {
            srm,
            oracle,
            sequences: vec![Sequence::NONE; WHO],
            turns: vec![VmTurn::default(); WHO],
            coming: 100 + random.below(600),
            random,
            origin,
            frames,
        }
    }

    /// Mostly one of the zone's frames; now and then one beside them.
    fn frame(&mut self) -> u64 {
        match self.random.below(40) {
            0 => self.origin.wrapping_sub(1),
            1 => self.origin + self.frames,
            2 => self.random.next(),
            _ => self.origin + self.random.below(self.frames),
        }
    }

    fn ask(&mut self) -> Ask {
        let colors = u64::from(self.srm.map().colors());
        let some = |random: &mut Random| {
            let n = random.below(colors.min(5) + 1);
            // One colour too many: the map does not have it.
            let all: BTreeSet<usize> = (0..n).map(|_| random.below(colors + 1) as usize).collect();
            all
        };
        Ask {
            allowed: (self.random.below(4) == 0).then(|| some(&mut self.random)),
            hard: self.random.below(2) == 0,
            supply: match self.random.below(2) {
                0 => Supply::More,
                _ => Supply::Spent,
            },
        }
    }

    fn step(&mut self) {
        if self.random.below(1000) < self.coming {
            return self.add();
        }
        match self.random.below(100) {
            0..=44 => self.file_fault(),
            45..=69 => self.vm_fault(),
            70..=79 => self.leave(),
            80..=84 => assert_eq!(self.srm.take_any(), self.oracle.take_any()),
            85..=89 => {
                let who = self.random.below(WHO as u64) as usize;
                self.srm.end(&mut self.sequences[who]);
                self.oracle.end(who);
            }
            90..=93 => self.decline(),
            94 => self.reconfigure(),
            95 => self.coming = 50 + self.random.below(700),
            _ => self.pressure(),
        }
    }

    fn add(&mut self) {
        let frame = self.frame();
        let (added, expected) = match self.random.below(2) {
            0 => {
                let added = self.srm.add_free(Pfn(frame)).is_ok();
                (added, self.oracle.add(frame, Holds::Free))
            }
            _ => {
                let added = self.srm.add_cold(Pfn(frame)).is_ok();
                (added, self.oracle.add(frame, Holds::Cold))
            }
        };
        assert_eq!(added, expected);
    }

    fn leave(&mut self) {
        let frame = self.frame();
        let holds = self.oracle.find(frame);
        assert_eq!(self.srm.holds(Pfn(frame)), holds);
        if self.random.below(2) == 0 {
            assert_eq!(self.srm.remove(Pfn(frame)), self.oracle.remove(frame));
            return;
        }
        assert_eq!(self.srm.hit(Pfn(frame)), holds == Some(Holds::Cold));
        if holds == Some(Holds::Cold) {
            self.oracle.remove(frame);
        }
    }

    fn pressure(&mut self) {
        for _ in 0..self.random.below(20) {
            assert_eq!(self.srm.take_any(), self.oracle.take_any());
        }
    }

    fn reconfigure(&mut self) {
        let config = Config {
            threshold: 1 + self.random.below(6) as u32,
            idle_after: Some(1 + self.random.below(40)),
            max_pages: None,
        };
        if self.srm.reconfigure(config).is_ok() {
            self.oracle.set_limits(self.srm.limits());
        }
    }

    fn file_fault(&mut self) {
        let ask = self.ask();
        let set = ask.allowed.as_ref().map(set_of);
        let file = self.random.below(FILES as u64) as usize;
        let process = FILES + self.random.below((WHO - FILES) as u64) as usize;
        let file_blocks = self
            .random
            .below(2 * u64::from(self.srm.limits().threshold) + 2);
        let (files, processes) = self.sequences.split_at_mut(FILES);
        let answer = self.srm.file_fault(FileFault {
            file: &mut files[file],
            process: &mut processes[process - FILES],
            file_blocks,
            limited: limited(&ask, set.as_ref()),
        });
        let expected = self.oracle.file_fault(file, process, file_blocks, &ask);
        assert_eq!(answer, expected);
        self.check_answer(answer, &ask);
    }

    fn decline(&mut self) {
        let file = self.random.below(FILES as u64) as usize;
        let process = FILES + self.random.below((WHO - FILES) as u64) as usize;
        let file_blocks = self
            .random
            .below(2 * u64::from(self.srm.limits().threshold));
        let (files, processes) = self.sequences.split_at_mut(FILES);
        self.srm.declined(FileFault {
            file: &mut files[file],
            process: &mut processes[process - FILES],
            file_blocks,
            limited: Limited::default(),
        });
        self.oracle.declined(file, process, file_blocks);
    }

    fn vm_fault(&mut self) {
        let ask = self.ask();
        let set = ask.allowed.as_ref().map(set_of);
        let who = self.random.below(WHO as u64) as usize;
        let answer = self
            .srm
            .vm_fault(&mut self.turns[who], limited(&ask, set.as_ref()));
        assert_eq!(answer, self.oracle.vm_fault(who, &ask));
        self.check_answer(answer, &ask);
    }

    /// What the module promises whatever happened before.
    fn check_answer(&self, answer: Answer, ask: &Ask) {
        let permitted = |c: usize| ask.allowed.as_ref().is_none_or(|set| set.contains(&c));
        let has = |only: bool| {
            let colors = 0..self.oracle.lists.len();
            let mut colors = colors.filter(|c| !only || permitted(*c));
            colors.any(|c| !self.oracle.lists[c].is_empty())
        };
        match answer {
            Answer::Refill => {
                assert_eq!(ask.supply, Supply::More);
                assert!(self.srm.wants_pages());
            }
            Answer::Empty(_) => assert!(!has(ask.hard), "a page that may be taken is not given"),
            Answer::Frame(taken) => {
                let color = usize::from(taken.color.0);
                assert_eq!(self.srm.map().color(taken.frame), taken.color);
                assert!(permitted(color) || !ask.hard);
                assert!(permitted(color) || !has(true), "left for nothing");
                assert_eq!(self.srm.holds(taken.frame), None);
            }
        }
    }

    fn compare(&self) {
        self.srm.validate().unwrap();
        for (at, list) in self.oracle.lists.iter().enumerate() {
            let color = Color(at as u16);
            let frames: Vec<u64> = self.srm.frames_of(color).map(|f| f.0).collect();
            let expected: Vec<u64> = list.iter().map(|(f, _)| *f).collect();
            assert_eq!(frames, expected, "{color}");
            let standing = self.srm.standing(color);
            assert_eq!(standing.marked, self.oracle.holder[at].is_some(), "{color}");
            let free = list.iter().filter(|(_, h)| *h == Holds::Free).count();
            assert_eq!(standing.free as usize, free);
        }
        assert_eq!(self.srm.wants_pages(), self.oracle.wants_pages());
        assert_eq!(
            self.srm.missing_pages() as usize,
            self.oracle.missing_pages()
        );
        assert_eq!(self.srm.pages() as usize, self.oracle.pages());
        for (sequence, stay) in self.sequences.iter().zip(&self.oracle.stays) {
            let color = stay.as_ref().map(|s| Color(s.color as u16));
            assert_eq!(sequence.color(), color);
            assert_eq!(sequence.blocks(), stay.as_ref().map_or(0, |s| s.blocks));
        }
    }
}

fn set_of(colors: &BTreeSet<usize>) -> ColorSet {
    let mut set = ColorSet::EMPTY;
    for color in colors {
        set.insert(Color(*color as u16));
    }
    set
}

fn limited<'a>(ask: &Ask, allowed: Option<&'a ColorSet>) -> Limited<'a> {
    Limited {
        allowed,
        mode: match ask.hard {
            true => Mode::Hard,
            false => Mode::Hint,
        },
        supply: ask.supply,
    }
}

/// One colour; few; a hashed cache; more than a word of a set holds.
fn maps() -> Vec<ColorMap> {
    vec![
        plain_map(0, 0),
        plain_map(0, 2),
        plain_map(3, 4),
        map_of(&[0b1001_0001, 0b0110_0010, 0b1100_1100]),
        plain_map(0, 6),
        map_of(&[3, 6, 12, 24, 48, 96, 192]),
    ]
}

#[test]
fn fuzz_every_call_answers_as_the_oracle_does() {
    let maps = maps();
    for case in 0..setting("PIEBALD_FUZZ_CASES", 150).min(3000) {
        let mut random = Random(case);
        let map = maps[random.below(maps.len() as u64) as usize].clone();
        let colors = u64::from(map.colors());
        let threshold = 1 + random.below(5) as u32;
        let least = colors * (u64::from(threshold) + 1);
        let frames = least + random.below(4 * least);
        let config = Config {
            threshold,
            max_pages: (random.below(2) == 0).then_some(least as u32),
            idle_after: (random.below(2) == 0).then(|| 1 + random.below(30)),
        };
        let origin = random.below(3) * 1000;
        let mut pair = Pair::new(map, frames, origin, config, case);
        for _ in 0..1200 {
            pair.step();
            pair.compare();
        }
    }
}

/// The random lists reach every kind of answer: else they prove little.
#[test]
fn random_calls_reach_every_way_to_find_a_frame() {
    let mut pairs: Vec<Pair> = [(plain_map(0, 2), 40), (plain_map(0, 4), 400)]
        .into_iter()
        .map(|(map, frames)| {
            let config = Config {
                threshold: 3,
                max_pages: None,
                idle_after: Some(12),
            };
            Pair::new(map, frames, 0, config, 7)
        })
        .collect();
    for pair in &mut pairs {
        for _ in 0..20_000 {
            pair.step();
        }
        let c = pair.srm.counters();
        let all = [
            c.filled,
            c.pulled,
            c.hits,
            c.free,
            c.cold,
            c.any,
            c.sequences,
            c.cut,
            c.idle,
            c.short,
            c.shared,
            c.next,
            c.outside,
            c.refills,
            c.empty,
            c.declined,
        ];
        assert!(all.iter().all(|n| *n > 5), "{c:?}");
    }
}
