//! What the buddy allocator promises, one by one.

use crate::kit;
use std::{cell::Cell, rc::Rc};

use crate::kit::{Random, empty_buddy, full_buddy, hard, map_of, plain_map, request};
use piebald_policy::{
    buddy::{
        Buddy, List, MigrateType, NewError, Parts, PartsMut, RangeError, Sizes, Slices, Store,
    },
    color_map::ColorMap,
    contract::{AllocError, FrameRequest, FreeError, Mode, Purpose},
};
use piebald_units::{Color, ColorSet, Order, Pfn};

fn set(text: &str) -> ColorSet {
    text.parse().unwrap()
}

/// Thesis section 5.5.2: a fresh 4 MiB block is halved toward the wanted color
/// (bits 15-18 of the address); the other halves are listed by order.
#[test]
fn a_block_is_split_toward_the_wanted_color() {
    let mut buddy = full_buddy(&plain_map(3, 4), 1024, 0);
    let allowed = set("11");
    let grant = buddy.alloc(&hard(&allowed)).unwrap();
    // Color 11 of the first repetition: frames 88 to 95.
    assert_eq!(grant.frame, Pfn(88));
    assert_eq!(buddy.free_blocks(), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    assert_eq!(buddy.counters().splits, 10);
    // The seven others of the run, before any other block is broken.
    let mut rest: Vec<u64> = (0..7)
        .map(|_| buddy.alloc(&hard(&allowed)).unwrap().frame.0)
        .collect();
    rest.sort_unstable();
    assert_eq!(rest, (89..96).collect::<Vec<_>>());
    assert_eq!(buddy.free_blocks()[..3], [0, 0, 0]);
    for frame in 88..96 {
        buddy.free(Pfn(frame), Order(0)).unwrap();
    }
    assert_eq!(buddy.free_blocks()[10], 1, "all merged again");
    assert_eq!(buddy.validate(), Ok(()));
}

#[test]
fn adjacent_colors_break_fewer_blocks_than_scattered_ones() {
    let broken = |allowed: &ColorSet| {
        let mut buddy = full_buddy(&plain_map(3, 4), 64 * 1024, 0);
        for _ in 0..2048 {
            buddy.alloc(&hard(allowed)).unwrap();
        }
        64 - buddy.free_blocks()[10]
    };
    // 256 of the 1024 frames of a block have one of four colors: 8 blocks.
    assert_eq!(broken(&set("4-7")), 8);
    assert_eq!(broken(&set("4")), 32);
    assert_eq!(broken(&set("0-15")), 2);
}

#[test]
fn the_wish_comes_first_and_what_it_cannot_have_is_counted() {
    let mut buddy = full_buddy(&plain_map(0, 4), 1024, 0);
    let allowed = set("0-7");
    let wishing = |c| FrameRequest {
        wish: Some(Color(c)),
        ..hard(&allowed)
    };
    for c in [5, 2, 7, 5, 0] {
        let grant = buddy.alloc(&wishing(c)).unwrap();
        assert_eq!(grant.frame.0 % 16, u64::from(c));
    }
    // Not the asker's to wish for, so any that is will do.
    let grant = buddy.alloc(&wishing(12)).unwrap();
    assert!(grant.frame.0 % 16 < 8 && !grant.fallback);
    assert_eq!(buddy.counters().missed_wishes, 0);
    while buddy.free_frames() > 0 && buddy.alloc(&hard(&set("5"))).is_ok() {}
    let grant = buddy.alloc(&wishing(5)).unwrap();
    assert_eq!(grant.frame.0 % 16, 6, "the next color upwards");
    assert_eq!(buddy.counters().missed_wishes, 1);
}

#[test]
fn hard_requests_fail_where_hints_fall_back() {
    let mut buddy = full_buddy(&plain_map(0, 2), 16, 0);
    let allowed = set("3");
    for _ in 0..4 {
        assert_eq!(buddy.alloc(&hard(&allowed)).unwrap().frame.0 % 4, 3);
    }
    let before = (buddy.free_frames(), buddy.free_blocks());
    assert_eq!(
        buddy.alloc(&hard(&allowed)),
        Err(AllocError::ColorsExhausted)
    );
    assert_eq!((buddy.free_frames(), buddy.free_blocks()), before);
    let hint = FrameRequest {
        mode: Mode::Hint,
        ..hard(&allowed)
    };
    for _ in 0..12 {
        assert!(buddy.alloc(&hint).unwrap().fallback);
    }
    assert_eq!(buddy.alloc(&hint), Err(AllocError::OutOfMemory));
    assert_eq!(buddy.alloc(&hard(&allowed)), Err(AllocError::OutOfMemory));
    let large = request(11, Purpose::Anon);
    assert_eq!(buddy.alloc(&large), Err(AllocError::OrderTooLarge));
    let c = buddy.counters();
    assert_eq!((c.grants, c.fallbacks, c.failures), (16, 12, 4));
    assert_eq!(
        buddy.alloc(&hard(&ColorSet::EMPTY)),
        Err(AllocError::OutOfMemory)
    );
}

#[test]
fn a_large_block_has_only_allowed_colors() {
    let mut buddy = full_buddy(&plain_map(0, 4), 1024, 0);
    let allowed = set("1-6,8-11");
    let of = |order| FrameRequest {
        order: Order(order),
        ..hard(&allowed)
    };
    // Of the aligned fours, only 8-11 are allowed; no aligned eight is.
    assert_eq!(buddy.alloc(&of(3)), Err(AllocError::ColorsExhausted));
    for _ in 0..64 {
        assert_eq!(buddy.alloc(&of(2)).unwrap().frame.0 % 16, 8);
    }
    assert_eq!(buddy.alloc(&of(2)), Err(AllocError::ColorsExhausted));
}

#[test]
fn mistakes_in_freeing_are_told_apart_and_change_nothing() {
    let mut buddy = full_buddy(&plain_map(0, 2), 64, 1024);
    let block = buddy.alloc(&request(2, Purpose::Anon)).unwrap().frame;
    let page = buddy.alloc(&request(0, Purpose::Anon)).unwrap().frame;
    let before = (buddy.free_frames(), buddy.free_blocks());
    let mut wrong = |frame: u64, order| buddy.free(Pfn(frame), Order(order)).unwrap_err();
    assert_eq!(wrong(block.0, 1), FreeError::OrderMismatch);
    assert_eq!(wrong(block.0 + 1, 0), FreeError::OrderMismatch);
    assert_eq!(wrong(block.0, 18), FreeError::OrderMismatch, "2 + 16");
    assert_eq!(wrong(1024 + 63, 0), FreeError::DoubleFree);
    assert_eq!(wrong(1023, 0), FreeError::Foreign);
    assert_eq!(wrong(1024 + 64, 0), FreeError::Foreign);
    assert_eq!(wrong(0, 0), FreeError::Foreign);
    assert_eq!(wrong(u64::MAX, 0), FreeError::Foreign);
    assert_eq!((buddy.free_frames(), buddy.free_blocks()), before);
    assert_eq!(buddy.free(page, Order(0)), Ok(()));
    assert_eq!(buddy.free(page, Order(0)), Err(FreeError::DoubleFree));
    assert_eq!(buddy.free(block, Order(2)), Ok(()));
    assert_eq!(buddy.validate(), Ok(()));
    assert_eq!(buddy.counters().frees, 2);
}

#[test]
fn memory_comes_and_goes_around_holes() {
    let mut buddy = empty_buddy(&plain_map(0, 2), 4096, 0x400);
    let frames = |a: u64, b: u64| Pfn(0x400 + a)..Pfn(0x400 + b);
    buddy.add_range(frames(0, 700)).unwrap();
    buddy.add_range(frames(1000, 2048)).unwrap();
    assert_eq!(buddy.total_frames(), 1748);
    assert_eq!(
        buddy.free(Pfn(0x400 + 800), Order(0)),
        Err(FreeError::Foreign)
    );
    let overlap = |f: u64| Err(RangeError::Overlap(Pfn(0x400 + f)));
    assert_eq!(buddy.add_range(frames(650, 800)), overlap(650));
    assert_eq!(buddy.add_range(frames(700, 1001)), overlap(1000));
    assert_eq!(buddy.add_range(frames(1536, 1700)), overlap(1536));
    let outside = buddy.add_range(frames(4000, 4097));
    assert_eq!(outside, Err(RangeError::Outside(Pfn(0x400 + 4096))));
    assert_eq!(
        buddy.add_range(Pfn(0x3ff)..Pfn(0x401)),
        Err(RangeError::Outside(Pfn(0x3ff)))
    );
    assert_eq!(buddy.add_range(frames(9, 9)), Err(RangeError::Empty));
    assert_eq!(buddy.total_frames(), 1748);
    // The hole filled, everything merges into whole blocks.
    buddy.add_range(frames(700, 1000)).unwrap();
    assert_eq!(buddy.free_blocks()[10], 2);
    assert_eq!(buddy.validate(), Ok(()));
    // Blocks leave from the smallest that serve, and are foreign then.
    let page = buddy.alloc(&request(0, Purpose::Anon)).unwrap().frame;
    let gone = buddy.remove_block(Order(9)).unwrap();
    assert_eq!(buddy.free_blocks()[9..], [0, 1]);
    assert_eq!(buddy.free(gone, Order(9)), Err(FreeError::Foreign));
    assert_eq!(buddy.detach(page, Order(1)), Err(FreeError::OrderMismatch));
    assert_eq!(buddy.detach(page, Order(0)), Ok(()));
    assert_eq!(buddy.free(page, Order(0)), Err(FreeError::Foreign));
    assert_eq!(buddy.remove_block(Order(11)), None);
    assert_eq!(buddy.total_frames(), 2048 - 512 - 1);
    assert_eq!(buddy.validate(), Ok(()));
    buddy.add_range(gone..Pfn(gone.0 + 512)).unwrap();
    buddy.add_range(page..Pfn(page.0 + 1)).unwrap();
    assert_eq!(buddy.free_blocks()[10], 2);
}

#[test]
fn fresh_memory_is_used_from_the_bottom_up() {
    let mut buddy = full_buddy(&plain_map(3, 4), 4096, 0);
    let frames: Vec<u64> = (0..2000)
        .map(|_| buddy.alloc(&request(0, Purpose::Anon)).unwrap().frame.0)
        .collect();
    assert!(frames.iter().all(|f| *f < 2048));
}

#[test]
fn kernel_data_stays_in_pageblocks_of_its_own() {
    let mut buddy = full_buddy(&plain_map(3, 4), 8 * 1024, 0);
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    for i in 0..4000 {
        let purpose = if i % 8 == 0 {
            Purpose::Kernel
        } else {
            Purpose::Anon
        };
        let frame = buddy.alloc(&request(0, purpose)).unwrap().frame;
        if i % 8 == 0 {
            kernel.push(frame);
        } else {
            user.push(frame);
        }
    }
    assert!(
        kernel
            .iter()
            .all(|f| buddy.pageblock_type(*f) == MigrateType::Unmovable)
    );
    assert!(
        user.iter()
            .all(|f| buddy.pageblock_type(*f) == MigrateType::Movable)
    );
    assert_eq!(buddy.counters().steals, 1, "one 4 MiB block for 500 frames");
    for frame in user {
        buddy.free(frame, Order(0)).unwrap();
    }
    assert_eq!(buddy.free_blocks()[10], 7, "all but the kernel's");
    assert_eq!(buddy.validate(), Ok(()));
}

#[test]
fn a_type_without_memory_takes_over_the_emptier_half_of_a_pageblock() {
    let mut buddy = full_buddy(&plain_map(0, 2), 512, 0);
    let mut pages: Vec<Pfn> = (0..512)
        .map(|_| buddy.alloc(&request(0, Purpose::Anon)).unwrap().frame)
        .collect();
    pages.sort_unstable();
    for frame in &pages[..128] {
        buddy.free(*frame, Order(0)).unwrap();
    }
    let kernel = buddy.alloc(&request(0, Purpose::Kernel)).unwrap().frame;
    assert_eq!(buddy.pageblock_type(kernel), MigrateType::Movable);
    buddy.free(kernel, Order(0)).unwrap();
    for frame in &pages[128..256] {
        buddy.free(*frame, Order(0)).unwrap();
    }
    let kernel = buddy
        .alloc(&request(1, Purpose::Reclaimable))
        .unwrap()
        .frame;
    assert_eq!(buddy.pageblock_type(kernel), MigrateType::Reclaimable);
    assert_eq!(buddy.counters().claims, 1);
    // Colors bind there too.
    let allowed = set("2");
    let colored = FrameRequest {
        purpose: Purpose::Kernel,
        ..hard(&allowed)
    };
    assert_eq!(buddy.alloc(&colored).unwrap().frame.0 % 4, 2);
    assert_eq!(buddy.validate(), Ok(()));
}

/// Half of memory is used, by single frames all over; half of those are
/// exchanged at random, again and again. A list used last in, first out keeps no
/// whole pageblock.
#[test]
fn whole_blocks_come_back_under_churn() {
    for map in [plain_map(3, 4), plain_map(0, 6)] {
        let frames = 64 * 1024u64;
        let mut buddy = full_buddy(&map, frames, 0);
        let mut random = Random(3);
        let r = request(0, Purpose::Anon);
        let mut live: Vec<Pfn> = (0..frames)
            .map(|_| buddy.alloc(&r).unwrap().frame)
            .collect();
        let mut drop_one = |live: &mut Vec<Pfn>| {
            let i = random.below(live.len() as u64) as usize;
            live.swap_remove(i)
        };
        for _ in 0..frames / 2 {
            buddy.free(drop_one(&mut live), Order(0)).unwrap();
        }
        let whole = |b: &kit::VecBuddy| b.free_blocks()[9] + 2 * b.free_blocks()[10];
        assert_eq!(whole(&buddy), 0, "half of every pageblock is used");
        for _ in 0..6 * frames {
            buddy.free(drop_one(&mut live), Order(0)).unwrap();
            live.push(buddy.alloc(&r).unwrap().frame);
        }
        assert_eq!(buddy.validate(), Ok(()));
        assert!(whole(&buddy) >= 56, "{} of 64 at best", whole(&buddy));
    }
}

#[test]
fn what_cannot_be_lent_is_named() {
    let map = plain_map(0, 7);
    assert_eq!(Sizes::of(&map, 0), Err(NewError::Frames(0)));
    assert_eq!(
        Sizes::of(&map, (1 << 28) + 1),
        Err(NewError::Frames((1 << 28) + 1))
    );
    let sizes = Sizes::of(&map, 1000).unwrap();
    let store = |words| Slices {
        map: &map,
        states: [0u8; 1000],
        links: [[0u32; 2]; 1000],
        pageblocks: [0u32; 2],
        lists: vec![List::EMPTY; sizes.lists],
        words: vec![0u64; words],
    };
    let error = |words, origin| Buddy::new(store(words), 1000, Pfn(origin)).err();
    assert_eq!(error(sizes.words, 0), None);
    assert_eq!(error(sizes.words, 512), Some(NewError::Origin(512)));
    assert_eq!(
        error(sizes.words, u64::MAX - 1023),
        None,
        "frames up to the very last number"
    );
    let short = NewError::Short {
        field: "words",
        len: 98,
        needed: 99,
    };
    assert_eq!(error(98, 0), Some(short));
    assert_eq!(
        short.to_string(),
        "words has length 98; allowed: 99 or more"
    );
}

#[test]
fn metadata_is_as_large_as_documented() {
    let bytes = |map: &ColorMap| {
        let s = Sizes::of(map, 1 << 18).unwrap();
        // One state and two links per frame, one entry per pageblock.
        assert_eq!((s.frames, s.pageblocks), (1 << 18, 1 << 9));
        (s.lists * size_of::<List>(), s.words * 8)
    };
    assert_eq!(bytes(&plain_map(3, 4)), (1968, 264));
    assert_eq!(bytes(&plain_map(0, 6)), (3 * 8 * (127 + 4), 264));
    assert_eq!(bytes(&plain_map(0, 10)), (49_128, 33 * 17 * 8));
    assert_eq!(bytes(&plain_map(12, 12)), (1_081_344, 17_160));
}

/// 2^40 bytes, with memory at both ends only: holes cost nothing.
#[test]
fn the_largest_table_works_at_both_ends() {
    let mut buddy = empty_buddy(&map_of(&[1 << 27, 1 << 12 | 1]), 1 << 28, 0);
    let end = 1 << 28;
    buddy.add_range(Pfn(0)..Pfn(4096)).unwrap();
    buddy.add_range(Pfn(end - 4096)..Pfn(end)).unwrap();
    let mut live = Vec::new();
    for color in (0..4).cycle().take(8192) {
        let mut allowed = ColorSet::EMPTY;
        allowed.insert(Color(color));
        let frame = buddy.alloc(&hard(&allowed)).unwrap().frame;
        assert_eq!(frame.0 >> 27, u64::from(color & 1));
        live.push(frame);
    }
    assert_eq!(buddy.free_frames(), 0);
    for frame in live {
        buddy.free(frame, Order(0)).unwrap();
    }
    assert_eq!(buddy.free_blocks()[10], 8);
}

/// A store whose memory a test can spoil behind the allocator's back.
#[derive(Clone, Default)]
struct Spoiled {
    map: Option<ColorMap>,
    states: Vec<u8>,
    links: Vec<[u32; 2]>,
    pageblocks: Vec<u32>,
    lists: Vec<List>,
    words: Vec<u64>,
    spoil: Rc<Cell<Option<Spoil>>>,
}

type Spoil = fn(&mut Spoiled);

impl Store for Spoiled {
    fn parts(&self) -> Parts<'_> {
        Parts {
            map: self.map.as_ref().unwrap(),
            states: &self.states,
            links: &self.links,
            pageblocks: &self.pageblocks,
            lists: &self.lists,
            words: &self.words,
        }
    }

    fn parts_mut(&mut self) -> PartsMut<'_> {
        if let Some(spoil) = self.spoil.take() {
            spoil(self);
        }
        PartsMut {
            map: self.map.as_ref().unwrap(),
            states: &mut self.states,
            links: &mut self.links,
            pageblocks: &mut self.pageblocks,
            lists: &mut self.lists,
            words: &mut self.words,
        }
    }
}

/// A recount must notice what it is there for.
#[test]
fn a_recount_finds_each_kind_of_damage() {
    let map = plain_map(0, 4);
    let sizes = Sizes::of(&map, 2048).unwrap();
    // What is spoiled, and a word of the rule that it breaks. Frame 1024 begins
    // the untouched 4 MiB block; frames 0-99 are granted.
    let damage: [(Spoil, &str); 7] = [
        (|s| s.words[0] ^= 1, "bitmap"),
        (|s| s.words[9] ^= 1 << 5, "bitmap"),
        (|s| s.pageblocks[1] ^= 1, "pageblock"),
        (|s| s.states[1500] = s.states[0], "inside another"),
        (|s| s.states[0] = s.states[1024], "reaches|inside|merged"),
        (|s| s.states[50] = 0, "pageblock"),
        (|s| s.lists.fill(List::EMPTY), "bitmap|no list"),
    ];
    for (spoil, words) in damage {
        let hook = Rc::new(Cell::new(None));
        let store = Spoiled {
            map: Some(map.clone()),
            states: vec![0; sizes.frames],
            links: vec![[0; 2]; sizes.frames],
            pageblocks: vec![0; sizes.pageblocks],
            lists: vec![List::EMPTY; sizes.lists],
            words: vec![0; sizes.words],
            spoil: Rc::clone(&hook),
        };
        let mut buddy = Buddy::new(store, 2048, Pfn(0)).unwrap();
        buddy.add_range(Pfn(0)..Pfn(2048)).unwrap();
        for _ in 0..100 {
            buddy.alloc(&request(0, Purpose::Anon)).unwrap();
        }
        assert_eq!(buddy.validate(), Ok(()));
        hook.set(Some(spoil));
        // Any call; this one changes nothing.
        assert!(buddy.free(Pfn(1 << 40), Order(0)).is_err());
        let broken = buddy.validate().expect_err(words);
        let named = words.split('|').any(|w| broken.rule.contains(w));
        assert!(named, "{broken}, not {words}");
    }
}
