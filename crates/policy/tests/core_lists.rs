//! Per-core lists: what they hold belongs to them alone, in the colours that
//! were asked for, and goes back whole.

use std::{collections::BTreeMap, sync::Mutex, thread};

use crate::kit::{Random, VecBuddy, full_buddy, hard, map_of, plain_map, request};
use piebald_policy::{
    buddy::{CoreError, CoreLists, CoreSlices, Ends, MigrateType, Put, Slot},
    color_map::ColorMap,
    contract::{AllocError, FrameRequest, Mode, Purpose},
};
use piebald_units::{Color, ColorSet, Order, Pfn};

type Lists = CoreLists<CoreSlices<ColorMap, Vec<Slot>, Vec<Ends>>>;

fn lists_of(buddy: &VecBuddy, slots: usize, batch: u32) -> Lists {
    let map = buddy.map().clone();
    let ends = vec![Ends::EMPTY; map.colors() as usize];
    let memory = CoreSlices {
        map,
        slots: vec![Slot::default(); slots],
        ends,
    };
    CoreLists::new(memory, buddy.origin(), MigrateType::Movable, batch).unwrap()
}

fn page() -> FrameRequest<'static> {
    request(0, Purpose::Anon)
}

#[test]
fn a_refill_brings_a_batch_and_taking_needs_no_buddy() {
    let mut buddy = full_buddy(&plain_map(0, 4), 1024, 0x400);
    let mut lists = lists_of(&buddy, 64, 32);
    assert_eq!(lists.take(&page()), None);
    assert_eq!(lists.refill(&mut buddy, &page()), 32);
    assert_eq!(buddy.free_frames(), 1024 - 32);
    let mut frames: Vec<u64> = (0..32).map(|_| lists.take(&page()).unwrap().0).collect();
    assert_eq!(lists.take(&page()), None);
    frames.sort_unstable();
    assert_eq!(frames, (0x400..0x420).collect::<Vec<_>>(), "one block");
    for frame in &frames {
        assert_eq!(lists.put(Pfn(*frame)), Put::Kept);
    }
    assert_eq!(lists.give_back(&mut buddy, u32::MAX), 32);
    assert_eq!(buddy.free_blocks()[10], 1);
    assert_eq!(buddy.validate(), Ok(()));
    let c = lists.counters();
    assert_eq!((c.refilled, c.taken, c.put), (32, 32, 32));
    assert_eq!((c.given_back, c.refused, lists.held()), (32, 0, 0));
}

/// A batch costs the buddy few operations where blocks are whole.
#[test]
fn whole_blocks_move_at_once() {
    let mut buddy = full_buddy(&plain_map(3, 4), 4096, 0);
    let mut lists = lists_of(&buddy, 64, 64);
    lists.refill(&mut buddy, &page());
    let splits = buddy.counters().splits;
    assert!(splits <= 4, "64 frames out of 1024: 4 splits, not {splits}");
    lists.give_back(&mut buddy, 64);
    let merges = buddy.counters().merges;
    assert!(merges <= 4, "one block of 64 merges 4 times, not {merges}");
    assert_eq!(buddy.counters().frees, 64);
    // In eight of 16 colors, runs of 64 frames are allowed at once.
    let allowed: ColorSet = "0-7".parse().unwrap();
    lists.refill(&mut buddy, &hard(&allowed));
    assert!(buddy.counters().splits - splits <= 5);
}

#[test]
fn colors_bind_on_a_core_as_they_do_in_the_buddy() {
    let mut buddy = full_buddy(&plain_map(0, 4), 256, 0);
    let mut lists = lists_of(&buddy, 64, 16);
    let allowed: ColorSet = "3,9-10".parse().unwrap();
    let r = hard(&allowed);
    for _ in 0..48 {
        let grant = lists.alloc(&mut buddy, &r).unwrap();
        assert!(allowed.contains(Color((grant.frame.0 % 16) as u16)));
    }
    assert_eq!(lists.refill(&mut buddy, &r), 0);
    assert_eq!(
        lists.alloc(&mut buddy, &r),
        Err(AllocError::ColorsExhausted)
    );
    let hint = FrameRequest {
        mode: Mode::Hint,
        ..r
    };
    assert!(lists.alloc(&mut buddy, &hint).unwrap().fallback);
    // Frames of other colors that lie here are not handed out either.
    lists.refill(&mut buddy, &page());
    assert!(lists.held() > 0);
    assert_eq!(lists.take(&r), None);
}

#[test]
fn a_wish_is_served_from_its_own_list_or_not_at_all() {
    let mut buddy = full_buddy(&plain_map(0, 4), 256, 0);
    let mut lists = lists_of(&buddy, 64, 16);
    lists.refill(&mut buddy, &page());
    let wishing = |c| FrameRequest {
        wish: Some(Color(c)),
        ..page()
    };
    assert_eq!(lists.take(&wishing(7)).unwrap().0 % 16, 7);
    assert_eq!(lists.take(&wishing(7)), None);
    assert_eq!(lists.refill(&mut buddy, &wishing(7)), 15);
    for _ in 0..15 {
        assert_eq!(lists.take(&wishing(7)).unwrap().0 % 16, 7);
    }
    // The buddy has none left: any other will do in the end.
    let grant = lists.alloc(&mut buddy, &wishing(7)).unwrap();
    assert!(grant.frame.0 % 16 != 7 && !grant.fallback);
    assert_eq!(lists.take(&wishing(4000)), None);
}

#[test]
fn a_full_core_says_so_and_the_coldest_frames_leave() {
    let mut buddy = full_buddy(&map_of(&[]), 256, 0);
    let mut lists = lists_of(&buddy, 8, 2);
    let frames: Vec<Pfn> = (0..9)
        .map(|_| buddy.alloc(&page()).unwrap().frame)
        .collect();
    let mut puts = frames.iter().map(|f| lists.put(*f));
    assert!(puts.by_ref().take(6).all(|p| p == Put::Kept));
    assert_eq!(puts.next(), Some(Put::High));
    assert_eq!(puts.next(), Some(Put::High));
    assert_eq!(puts.next(), Some(Put::Full));
    assert_eq!(lists.give_back(&mut buddy, 3), 3);
    assert_eq!(buddy.free_frames(), 256 - 6);
    assert_eq!(lists.take(&page()), Some(frames[7]), "the hottest");
    let left: Vec<Pfn> = std::iter::from_fn(|| lists.take(&page())).collect();
    assert_eq!(left, [frames[6], frames[5], frames[4], frames[3]]);
}

#[test]
fn other_orders_and_types_are_left_to_the_buddy() {
    let mut buddy = full_buddy(&map_of(&[]), 256, 0);
    let mut lists = lists_of(&buddy, 8, 4);
    lists.refill(&mut buddy, &page());
    for r in [request(1, Purpose::Anon), request(0, Purpose::Kernel)] {
        assert_eq!(lists.take(&r), None);
        assert_eq!(lists.refill(&mut buddy, &r), 0);
        assert!(lists.alloc(&mut buddy, &r).is_ok());
    }
    assert_eq!(lists.put(Pfn(1 << 40)), Put::Foreign);
}

/// To the buddy a frame here is granted: the second copy is refused.
#[test]
fn what_is_put_twice_is_refused_when_it_goes_back() {
    let mut buddy = full_buddy(&map_of(&[]), 64, 0);
    let mut lists = lists_of(&buddy, 8, 4);
    let frame = buddy.alloc(&page()).unwrap().frame;
    let block = buddy.alloc(&request(1, Purpose::Anon)).unwrap().frame;
    for f in [frame, frame, block, Pfn(4000)] {
        lists.put(f);
    }
    assert_eq!(lists.give_back(&mut buddy, 8), 4);
    assert_eq!(lists.counters().refused, 3);
    assert_eq!(buddy.free_frames(), 62);
    assert_eq!(buddy.free(block, Order(1)), Ok(()));
    assert_eq!(buddy.validate(), Ok(()));
}

#[test]
fn memory_that_does_not_suffice_is_named() {
    let make = |slots, ends, batch| {
        let memory = CoreSlices {
            map: plain_map(0, 3),
            slots: vec![Slot::default(); slots],
            ends: vec![Ends::EMPTY; ends],
        };
        CoreLists::new(memory, Pfn(0), MigrateType::Movable, batch).err()
    };
    assert_eq!(make(8, 8, 8), None);
    assert_eq!(make(0, 8, 1), Some(CoreError::Slots(0)));
    assert_eq!(make(65_536, 8, 1), Some(CoreError::Slots(65_536)));
    assert_eq!(make(8, 8, 9), Some(CoreError::Batch(9)));
    assert_eq!(make(8, 8, 0), Some(CoreError::Batch(0)));
    let ends = CoreError::Ends { len: 7, needed: 8 };
    assert_eq!(make(8, 7, 8), Some(ends));
    assert_eq!(ends.to_string(), "ends has length 7; allowed: 8 or more");
}

/// Random use of three cores over one buddy: every frame is in one place.
#[test]
fn frames_are_in_one_place_under_random_use() {
    for (i, map) in [
        plain_map(3, 4),
        plain_map(0, 8),
        map_of(&[0b110, 0b1011, 0b1_0001]),
    ]
    .iter()
    .enumerate()
    {
        let mut buddy = full_buddy(map, 3000, 0x800);
        let mut cores: Vec<Lists> = (0..3).map(|_| lists_of(&buddy, 100, 31)).collect();
        let mut random = Random(i as u64 + 5);
        let mut held: BTreeMap<u64, ()> = BTreeMap::new();
        let mut drawn = Vec::new();
        let colors = u64::from(map.colors());
        let half = ColorSet::first(map.colors() / 2 + 1);
        for step in 0..60_000u32 {
            let filling = step / 5000 % 2 == 0;
            let core = random.below(3) as usize;
            if random.below(8) < if filling { 5 } else { 3 } {
                let r = FrameRequest {
                    allowed: (random.below(2) == 0).then_some(&half),
                    wish: (random.below(4) == 0).then(|| Color(random.below(colors) as u16)),
                    mode: Mode::Hard,
                    ..page()
                };
                match cores[core].alloc(&mut buddy, &r) {
                    Ok(g) => {
                        assert_eq!(held.insert(g.frame.0, ()), None, "{g:?} twice");
                        drawn.push(g.frame);
                        let color = map.color(g.frame);
                        assert!(r.allowed.is_none_or(|s| s.contains(color)));
                    }
                    Err(_) => {
                        for lists in &mut cores {
                            lists.give_back(&mut buddy, 40);
                        }
                    }
                }
            } else if !drawn.is_empty() {
                let at = random.below(drawn.len() as u64) as usize;
                let frame = drawn.swap_remove(at);
                held.remove(&frame.0);
                while cores[core].put(frame) == Put::Full {
                    cores[core].give_back(&mut buddy, 31);
                }
            }
            if step % 1000 == 0 {
                assert_eq!(buddy.validate(), Ok(()));
                let cached: u64 = cores.iter().map(|c| u64::from(c.held())).sum();
                assert_eq!(buddy.free_frames() + cached + drawn.len() as u64, 3000);
            }
        }
        for lists in &mut cores {
            lists.give_back(&mut buddy, u32::MAX);
            assert_eq!(lists.counters().refused, 0);
        }
        for frame in drawn {
            buddy.free(frame, Order(0)).unwrap();
        }
        assert_eq!(buddy.free_frames(), 3000);
        assert_eq!(buddy.free_blocks()[10], 2, "all merged again");
    }
}

#[test]
fn two_threads_share_a_buddy_behind_a_lock() {
    let buddy = full_buddy(&plain_map(0, 6), 16 * 1024, 0);
    let cores: Vec<Lists> = (0..2).map(|_| lists_of(&buddy, 128, 32)).collect();
    let shared = Mutex::new(buddy);
    let kept: Vec<Vec<Pfn>> = thread::scope(|scope| {
        let threads: Vec<_> = cores
            .into_iter()
            .enumerate()
            .map(|(core, mut lists)| {
                let shared = &shared;
                scope.spawn(move || {
                    let mut random = Random(core as u64);
                    let mut held = Vec::new();
                    for _ in 0..50_000 {
                        if random.below(2) == 0 || held.is_empty() {
                            let frame = lists.take(&page()).or_else(|| {
                                lists.refill(&mut shared.lock().unwrap(), &page());
                                lists.take(&page())
                            });
                            held.extend(frame);
                        } else {
                            let at = random.below(held.len() as u64) as usize;
                            if lists.put(held.swap_remove(at)) != Put::Kept {
                                lists.give_back(&mut shared.lock().unwrap(), 32);
                            }
                        }
                    }
                    lists.give_back(&mut shared.lock().unwrap(), u32::MAX);
                    assert_eq!(lists.counters().refused, 0);
                    held
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut buddy = shared.into_inner().unwrap();
    assert_eq!(buddy.validate(), Ok(()));
    for frame in kept.into_iter().flatten() {
        buddy.free(frame, Order(0)).unwrap();
    }
    assert_eq!(buddy.free_blocks()[10], 16);
}
