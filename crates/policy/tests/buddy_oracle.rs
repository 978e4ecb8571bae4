//! The buddy allocator against an obvious oracle under random operations.
//!
//! `PIEBALD_BUDDY_OPS` sets the number of operations (default a million per
//! run); `--ignored` runs a hundred million.

use std::collections::BTreeMap;

use crate::kit::{Random, VecBuddy, empty_buddy, map_of, plain_map, request, setting};
use piebald_policy::{
    buddy::RangeError,
    color_map::ColorMap,
    contract::{AllocError, FrameRequest, FreeError, Grant, Mode, Purpose},
};
use piebald_units::{Color, ColorSet, Order, Pfn};

/// What a frame is: nothing more needs to be known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frame {
    Foreign,
    Free,
    Granted,
}

/// Which frames are free and which blocks are granted.
struct Oracle {
    map: ColorMap,
    origin: u64,
    frames: Vec<Frame>,
    granted: BTreeMap<u64, u8>,
    /// The keys of `granted` in any order, to draw from.
    drawn: Vec<u64>,
}

impl Oracle {
    fn colors_are_in(&self, first: u64, order: u8, set: &ColorSet) -> bool {
        (first..first + (1 << order)).all(|f| set.contains(self.map.color(Pfn(f))))
    }

    fn at(&mut self, frame: u64) -> &mut Frame {
        &mut self.frames[(frame - self.origin) as usize]
    }

    /// Aligned blocks that are free as a whole.
    fn free_blocks(&self, order: u8) -> impl Iterator<Item = u64> {
        let size = 1usize << order;
        let blocks = self.frames.chunks_exact(size).enumerate();
        blocks
            .filter(|(_, b)| b.iter().all(|f| *f == Frame::Free))
            .map(move |(i, _)| self.origin + (i * size) as u64)
    }

    /// Requires that an answer is the right one.
    fn judge(&self, r: &FrameRequest<'_>, answer: Result<Grant, AllocError>) {
        let order = r.order.0;
        let allowed = |f: &u64| {
            r.allowed
                .is_none_or(|set| self.colors_are_in(*f, order, set))
        };
        match answer {
            Ok(g) if g.fallback => {
                assert_eq!((r.mode, r.allowed.is_some()), (Mode::Hint, true));
                let better = self.free_blocks(order).find(allowed);
                assert_eq!(better, None, "fallback, though an allowed block is free");
            }
            Ok(g) => assert!(allowed(&g.frame.0), "{g:?} has other colors than {r:?}"),
            Err(AllocError::OutOfMemory) => {
                assert_eq!(self.free_blocks(order).next(), None, "{r:?}");
            }
            Err(AllocError::ColorsExhausted) => {
                assert_eq!(r.mode, Mode::Hard, "{r:?}");
                assert_eq!(self.free_blocks(order).find(allowed), None, "{r:?}");
                assert!(self.free_blocks(order).next().is_some(), "{r:?}");
            }
            Err(other) => panic!("{other:?} for {r:?}"),
        }
    }

    /// Requires that a wish was granted where that was possible. True only while
    /// all memory is of one migrate type.
    fn judge_wish(&self, r: &FrameRequest<'_>, grant: &Grant) {
        let Some(wish) = r.wish.filter(|w| r.allowed.is_none_or(|s| s.contains(*w))) else {
            return;
        };
        let order = r.order.0;
        let has =
            |first: u64| (first..first + (1 << order)).any(|f| self.map.color(Pfn(f)) == wish);
        let fits = |f: &u64| {
            has(*f)
                && r.allowed
                    .is_none_or(|set| self.colors_are_in(*f, order, set))
        };
        if !has(grant.frame.0) {
            assert_eq!(self.free_blocks(order).find(fits), None, "{r:?}: {grant:?}");
        }
    }

    fn grant(&mut self, g: &Grant) {
        let (first, order) = (g.frame.0, g.order.0);
        assert_eq!(first % (1 << order), 0, "grants are aligned");
        for f in first..first + (1 << order) {
            assert_eq!(*self.at(f), Frame::Free, "pfn {f:#x} was granted twice");
            *self.at(f) = Frame::Granted;
        }
        self.granted.insert(first, order);
        self.drawn.push(first);
    }

    /// Forgets a granted block and marks its frames.
    fn release(&mut self, first: u64, now: Frame) {
        let order = self.granted.remove(&first).expect("a granted block");
        for f in first..first + (1 << order) {
            *self.at(f) = now;
        }
    }

    /// Draws a granted block and takes it off the list of drawable ones.
    fn draw(&mut self, random: &mut Random) -> Option<(u64, u8)> {
        if self.drawn.is_empty() {
            return None;
        }
        let i = random.below(self.drawn.len() as u64) as usize;
        let first = self.drawn.swap_remove(i);
        Some((first, self.granted[&first]))
    }

    /// What freeing any block should answer.
    fn free_answer(&self, frame: u64, order: u8) -> Result<(), FreeError> {
        let i = frame.wrapping_sub(self.origin);
        match self.frames.get(i as usize) {
            None | Some(Frame::Foreign) => Err(FreeError::Foreign),
            Some(Frame::Free) => Err(FreeError::DoubleFree),
            Some(Frame::Granted) => match self.granted.get(&frame) {
                Some(o) if *o == order => Ok(()),
                _ => Err(FreeError::OrderMismatch),
            },
        }
    }
}

struct Run {
    buddy: VecBuddy,
    oracle: Oracle,
    random: Random,
    sets: Vec<ColorSet>,
    /// All requests are of one migrate type, so wishes can be judged.
    one_type: bool,
}

impl Run {
    fn new(map: &ColorMap, frames: u64, origin: u64, seed: u64, one_type: bool) -> Self {
        let mut random = Random(seed);
        let sets = (0..6).map(|i| some_set(map, i, &mut random)).collect();
        let mut run = Self {
            buddy: empty_buddy(map, frames, origin),
            oracle: Oracle {
                map: map.clone(),
                origin,
                frames: vec![Frame::Foreign; frames as usize],
                granted: BTreeMap::new(),
                drawn: Vec::new(),
            },
            random,
            sets,
            one_type,
        };
        run.add(origin..origin + frames);
        run
    }

    fn step(&mut self) {
        // Long phases of mostly taking and mostly freeing, so that memory runs
        // full and empty.
        let filling = self.random.0 >> 5 & 1 == 0;
        match self.random.below(64) {
            0..30 => self.alloc(),
            30..58 if filling && self.random.below(3) > 0 => self.alloc(),
            30..58 => self.free(),
            58..61 => self.free_wrongly(),
            61 => self.change_range(),
            62 => self.remove(),
            _ => self.detach(),
        }
    }

    fn alloc(&mut self) {
        let order = match self.random.below(16) {
            0..11 => 0,
            11..14 => self.random.below(4) as u8,
            _ => self.random.below(11) as u8,
        };
        let purpose = match self.random.below(8) {
            _ if self.one_type => Purpose::Anon,
            0 => Purpose::Kernel,
            1 => Purpose::Reclaimable,
            2 => Purpose::File,
            _ => Purpose::Anon,
        };
        let set = self.random.below(9) as usize;
        let colors = u64::from(self.oracle.map.colors());
        let r = FrameRequest {
            allowed: self.sets.get(set),
            wish: (self.random.below(3) == 0).then(|| Color(self.random.below(colors + 2) as u16)),
            mode: match self.random.below(2) {
                0 => Mode::Hard,
                _ => Mode::Hint,
            },
            ..request(order, purpose)
        };
        let answer = self.buddy.alloc(&r);
        self.oracle.judge(&r, answer);
        if let Ok(g) = answer {
            if self.one_type && !g.fallback {
                self.oracle.judge_wish(&r, &g);
            }
            self.oracle.grant(&g);
        }
    }

    fn free(&mut self) {
        if let Some((first, order)) = self.oracle.draw(&mut self.random) {
            assert_eq!(self.buddy.free(Pfn(first), Order(order)), Ok(()));
            self.oracle.release(first, Frame::Free);
        }
    }

    /// Any frame, any order: mostly mistakes, which must change nothing.
    fn free_wrongly(&mut self) {
        let span = self.oracle.frames.len() as u64;
        let frame = (self.oracle.origin + self.random.below(span + 8)).wrapping_sub(4);
        let order = self.random.below(13) as u8;
        let expected = self.oracle.free_answer(frame, order);
        assert_eq!(self.buddy.free(Pfn(frame), Order(order)), expected);
        if expected.is_ok() {
            self.oracle.drawn.retain(|f| *f != frame);
            self.oracle.release(frame, Frame::Free);
        }
    }

    fn add(&mut self, range: std::ops::Range<u64>) {
        let answer = self.buddy.add_range(Pfn(range.start)..Pfn(range.end));
        let taken = range
            .clone()
            .find(|f| *self.oracle.at(*f) != Frame::Foreign);
        match taken {
            Some(f) => assert_eq!(answer, Err(RangeError::Overlap(Pfn(f)))),
            None => {
                assert_eq!(answer, Ok(()));
                range.for_each(|f| *self.oracle.at(f) = Frame::Free);
            }
        }
    }

    /// Adds a hole again, or part of it, or what overlaps.
    fn change_range(&mut self) {
        let span = self.oracle.frames.len() as u64;
        let i = self.random.below(span);
        let hole = (i..span).find(|i| self.oracle.frames[*i as usize] == Frame::Foreign);
        let first = hole.unwrap_or(i);
        let len = self.random.below((span - first).min(700)) + 1;
        let first = self.oracle.origin + first;
        self.add(first..first + len);
    }

    fn remove(&mut self) {
        let order = self.random.below(8) as u8;
        let largest = (0..=10)
            .rev()
            .find(|o| self.oracle.free_blocks(*o).next().is_some());
        assert_eq!(self.buddy.largest_order(), largest.map(Order));
        match self.buddy.remove_block(Order(order)) {
            None => assert_eq!(self.oracle.free_blocks(order).next(), None),
            Some(first) => {
                let grant = Grant {
                    frame: first,
                    order: Order(order),
                    fallback: false,
                };
                self.oracle.grant(&grant);
                self.oracle.drawn.pop();
                self.oracle.release(first.0, Frame::Foreign);
            }
        }
    }

    fn detach(&mut self) {
        if let Some((first, order)) = self.oracle.draw(&mut self.random) {
            assert_eq!(self.buddy.detach(Pfn(first), Order(order)), Ok(()));
            self.oracle.release(first, Frame::Foreign);
        }
    }

    fn check(&self) {
        assert_eq!(self.buddy.validate(), Ok(()));
        let count = |what| self.oracle.frames.iter().filter(|f| **f == what).count() as u64;
        assert_eq!(self.buddy.free_frames(), count(Frame::Free));
        let owned = count(Frame::Free) + count(Frame::Granted);
        assert_eq!(self.buddy.total_frames(), owned);
    }
}

/// Sets of very different sizes, the empty one among them.
fn some_set(map: &ColorMap, i: u64, random: &mut Random) -> ColorSet {
    let colors = u64::from(map.colors());
    let mut set = ColorSet::EMPTY;
    let (first, n) = (
        random.below(colors),
        [0, 1, 2, 4, colors / 2, colors - 1][i as usize],
    );
    for c in 0..n {
        let c = if i.is_multiple_of(2) {
            first + c
        } else {
            random.below(colors)
        };
        set.insert(Color((c % colors) as u16));
    }
    set
}

/// One color, plain colors, the papers' scattered bits, hashes whose colors and
/// indices differ, and the widest map.
fn maps() -> Vec<ColorMap> {
    let wide: Vec<u64> = (0..12).rev().map(|b| 1 << b | 1 << (b + 3)).collect();
    vec![
        map_of(&[]),
        plain_map(3, 4),
        plain_map(0, 6),
        plain_map(0, 10),
        map_of(&[1 << 10, 1 << 9, 1 << 4, 1 << 3, 1 << 2]),
        map_of(&[0b1_0000_0110, 0b10_0000_1010, 0b11_0001, 1 << 11 | 1]),
        map_of(&wide),
    ]
}

/// Random operations; everything is recounted every `pace` of them.
fn run(ops: u64, pace: u64, seed: u64) {
    let maps = maps();
    let share = ops / (2 * maps.len() as u64);
    for (i, map) in maps.iter().enumerate() {
        for one_type in [true, false] {
            // The table's end is no multiple of anything.
            let seed = seed.wrapping_mul(31) + i as u64 * 2 + u64::from(one_type);
            let mut run = Run::new(map, 4096 + 1337, 0x7c00, seed, one_type);
            for op in 0..share {
                run.step();
                if op % pace == 0 {
                    run.check();
                }
            }
            run.check();
        }
    }
}

/// Two of them, so that both of two processors have something to do while they run.
#[test]
fn random_operations_agree_with_the_oracle() {
    run(setting("PIEBALD_BUDDY_OPS", 1_000_000) / 2, 500, 7);
}

#[test]
fn other_random_operations_agree_with_the_oracle() {
    run(setting("PIEBALD_BUDDY_OPS", 1_000_000) / 2, 500, 8);
}

#[test]
fn everything_holds_after_each_single_operation() {
    run(setting("PIEBALD_BUDDY_OPS", 1_000_000) / 200, 1, 99);
}

#[test]
#[ignore = "takes minutes: ./test.sh --long buddy-oracle"]
fn a_hundred_million_random_operations_agree_with_the_oracle() {
    run(100_000_000, 50_000, setting("PIEBALD_BUDDY_SEED", 1));
}
