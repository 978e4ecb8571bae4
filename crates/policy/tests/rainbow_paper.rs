//! The Rainbow thesis step by step: Listings 5.3, 5.6 and 5.7, sections 4.4 and 6.1.

use crate::kit::{Random, full_buddy, plain_map, request};
use piebald_policy::{
    contract::{AllocError, Asker, Cause, FrameRequest, Mode, Purpose},
    rainbow::{
        Allowed, Ask, Config, Left, Partition, PartitionId, Refusal, Registry, Reservation, Turn,
        WhenFull,
    },
};
use piebald_units::{Color, ColorSet, CoreId, Order, TaskId, Vpn};

type Rainbow = Registry<Vec<Partition>>;

/// The testbed of section 6.1: 16 colours of 512 KiB, 12 GB of memory.
const NR_COLORS: u32 = 16;
const FRAMES: u64 = 12 << 30 >> 12;

fn rainbow() -> Rainbow {
    Registry::new(vec![Partition::EMPTY; 16], NR_COLORS, Config::PAPER).unwrap()
}

fn set(text: &str) -> ColorSet {
    text.parse().unwrap()
}

fn reserve(rainbow: &mut Rainbow, n: u32) -> Result<PartitionId, Refusal> {
    let id = rainbow.reserve(&Reservation::of(Ask::Count(n)));
    assert_eq!(rainbow.validate(), Ok(()));
    id
}

fn name(rainbow: &mut Rainbow, colors: &str) -> PartitionId {
    let colors = set(colors);
    let asked = Reservation::of(Ask::Exactly(&colors));
    rainbow.reserve(&asked).unwrap()
}

fn colors(rainbow: &Rainbow, id: PartitionId) -> String {
    rainbow.get(id).unwrap().colors().to_string()
}

/// The mask arithmetic of `sys_use_cache_colors` (Listing 5.3), for 16 colours in
/// a 64-bit mask, with each of its slips or without.
#[derive(Clone, Copy)]
struct Listing {
    reserved: u64,
    /// `cinfo_process`: mask and count.
    cmask: u64,
    left: u32,
    line_20_fixed: bool,
    line_28_fixed: bool,
    line_38_fixed: bool,
}

impl Listing {
    const FIXED: Self = Self {
        reserved: 0,
        cmask: (1 << NR_COLORS) - 1,
        left: NR_COLORS,
        line_20_fixed: true,
        line_28_fixed: true,
        line_38_fixed: true,
    };

    /// The mask that a call for `count` colours reserves.
    fn call(&mut self, count: u32) -> Option<u64> {
        if count > self.left {
            return None;
        }
        let mut mask = (1u64 << count) - 1;
        let last_shift = NR_COLORS - count + u32::from(!self.line_20_fixed);
        let mut shift = 0;
        while shift < last_shift && mask & self.reserved != 0 {
            mask <<= 1;
            shift += 1;
        }
        if mask & self.reserved != 0 {
            mask = 0;
            let end = match self.line_28_fixed {
                true => NR_COLORS,
                false => NR_COLORS - count,
            };
            let free = (0..end).filter(|i| self.reserved >> i & 1 == 0);
            for color in free.take(count as usize) {
                mask |= 1 << color;
            }
        }
        if mask & self.reserved != 0 {
            return None;
        }
        self.reserved |= mask;
        self.left -= count;
        self.settle();
        Some(mask)
    }

    /// What the exit of the last thread does, as section 5.4.2 tells it.
    fn exit(&mut self, mask: u64) {
        self.reserved &= !mask;
        self.left += mask.count_ones();
        self.settle();
    }

    fn settle(&mut self) {
        let all = (1u64 << NR_COLORS) - 1;
        self.cmask = match self.line_38_fixed {
            true => all & !self.reserved,
            false => all & self.reserved,
        };
    }
}

#[test]
fn line_38_without_the_complement_hands_other_tasks_the_reserved_colors() {
    let mut printed = Listing {
        line_38_fixed: false,
        ..Listing::FIXED
    };
    let mut fixed = Listing::FIXED;
    let mut rainbow = rainbow();
    let id = reserve(&mut rainbow, 4).unwrap();
    assert_eq!((printed.call(4), fixed.call(4)), (Some(0xf), Some(0xf)));
    assert_eq!(printed.cmask, 0xf, "exactly what was to be isolated");
    assert_eq!(fixed.cmask, 0xfff0);
    assert_eq!(colors(&rainbow, id), "0-3");
    assert_eq!(rainbow.unreserved().word(0), fixed.cmask);
}

#[test]
fn line_20_as_printed_hands_out_a_color_that_does_not_exist() {
    let mut printed = Listing {
        reserved: !(1 << 3 | 1 << 15) & 0xffff,
        left: 2,
        line_20_fixed: false,
        ..Listing::FIXED
    };
    assert_eq!(printed.call(2), Some(1 << 15 | 1 << 16));
    let mut rainbow = rainbow();
    name(&mut rainbow, "0-2,4-14");
    let id = reserve(&mut rainbow, 2).unwrap();
    assert_eq!(colors(&rainbow, id), "3,15");
}

#[test]
fn line_28_as_printed_grants_fewer_colors_than_it_counts() {
    let even = "0,2,4,6,8,10,12,14";
    let mut printed = Listing {
        reserved: set(even).word(0),
        left: 8,
        line_28_fixed: false,
        ..Listing::FIXED
    };
    let mask = printed.call(8).unwrap();
    assert_eq!(
        mask.count_ones(),
        4,
        "half of what was asked for: {mask:#x}"
    );
    assert_eq!(printed.left, 0, "and yet all are counted");
    let mut rainbow = rainbow();
    name(&mut rainbow, even);
    let id = reserve(&mut rainbow, 8).unwrap();
    assert_eq!(colors(&rainbow, id), "1,3,5,7,9,11,13,15");
}

/// Random calls and exits: the listing without its slips decides as the registry
/// does, and each slip alone leads to another end.
#[test]
fn the_corrected_listing_and_the_registry_agree_and_each_slip_matters() {
    fn runs(listing: Listing) -> Result<(), String> {
        let mut random = Random(1);
        for run in 0..200 {
            let (mut listing, mut rainbow) = (listing, rainbow());
            let mut live: Vec<(PartitionId, u64)> = Vec::new();
            for step in 0..40 {
                let at = random.below(3 * (live.len() as u64 + 1)) as usize;
                if at < live.len() {
                    let (id, mask) = live.swap_remove(at);
                    rainbow.release(id).unwrap();
                    listing.exit(mask);
                } else {
                    let count = 1 + random.below(6) as u32;
                    let mask = listing.call(count);
                    let id = reserve(&mut rainbow, count).ok();
                    let ours = id.map(|id| rainbow.get(id).unwrap().colors().word(0));
                    if mask != ours {
                        return Err(format!("run {run} step {step}: {mask:x?}, ours {ours:x?}"));
                    }
                    live.extend(id.zip(mask));
                }
                let unreserved = rainbow.unreserved().word(0);
                if listing.cmask != unreserved {
                    return Err(format!("run {run} step {step}: {:#x}", listing.cmask));
                }
            }
        }
        Ok(())
    }
    assert_eq!(runs(Listing::FIXED), Ok(()));
    let (mut line_20, mut line_28, mut line_38) = (Listing::FIXED, Listing::FIXED, Listing::FIXED);
    line_20.line_20_fixed = false;
    line_28.line_28_fixed = false;
    line_38.line_38_fixed = false;
    for (line, listing) in [(20, line_20), (28, line_28), (38, line_38)] {
        assert!(runs(listing).is_err(), "line {line} as printed agrees");
    }
}

#[test]
fn what_the_listing_answers_with_one_number_are_distinct_errors() {
    let mut rainbow = rainbow();
    let id = reserve(&mut rainbow, 12).unwrap();
    assert_eq!(
        reserve(&mut rainbow, 5),
        Err(Refusal::TooMany { asked: 5, left: 4 })
    );
    assert_eq!(reserve(&mut rainbow, 0), Err(Refusal::NoColors));
    let again = Reservation {
        current: Some(id),
        ..Reservation::of(Ask::Count(1))
    };
    assert_eq!(rainbow.reserve(&again), Err(Refusal::AlreadyColored(id)));
    assert_eq!(
        reserve(&mut rainbow, u32::MAX),
        Err(Refusal::TooMany {
            asked: u32::MAX,
            left: 4
        })
    );
    assert_eq!((rainbow.left(), rainbow.counters().refused), (4, 4));
}

/// `rlaunch 4 cmd` with threads and a child: section 5.4.2.
#[test]
fn the_colors_go_back_when_the_last_thread_exits() {
    let mut rainbow = rainbow();
    let three_threads = Reservation {
        tasks: 3,
        ..Reservation::of(Ask::Count(4))
    };
    let id = rainbow.reserve(&three_threads).unwrap();
    assert_eq!(rainbow.attach(id), Ok(4), "fork");
    for tasks in [3, 2, 1] {
        assert_eq!(rainbow.release(id), Ok(Left::Tasks(tasks)));
        assert_eq!(rainbow.unreserved().to_string(), "4-15");
    }
    assert_eq!(rainbow.release(id), Ok(Left::Freed(4)));
    assert_eq!(rainbow.unreserved().to_string(), "0-15");
    assert!(rainbow.release(id).is_err() && rainbow.attach(id).is_err());
    assert_eq!(rainbow.validate(), Ok(()));
}

fn page() -> FrameRequest<'static> {
    FrameRequest::fault(TaskId(1), CoreId(0), Vpn(0))
}

/// Every row of Listing 5.6.
#[test]
fn the_origin_of_a_request_decides_its_colors() {
    let mut rainbow = rainbow();
    let id = name(&mut rainbow, "0-3,8");
    let own = set("0-3,8");
    let others = set("4-7,9-15");
    let kernel = FrameRequest {
        asker: Asker::Kernel,
        ..page()
    };
    let atomic = FrameRequest {
        cause: Cause::Kernel,
        ..page()
    };
    let everyone = [
        request(0, Purpose::Dma),
        request(0, Purpose::Kernel),
        request(0, Purpose::Reclaimable),
        request(1, Purpose::Anon),
        request(9, Purpose::File),
        kernel,
        atomic,
    ];
    for r in everyone {
        for of in [None, Some(id)] {
            assert_eq!(rainbow.allowed(&r, of), Ok(Allowed::All), "{r:?}");
        }
    }
    for purpose in [Purpose::Anon, Purpose::File] {
        let r = request(0, purpose);
        assert_eq!(rainbow.allowed(&r, Some(id)), Ok(Allowed::Own(&own)));
        assert_eq!(rainbow.allowed(&r, None), Ok(Allowed::Unreserved(&others)));
    }
}

#[test]
fn a_full_cache_is_open_to_all_unless_coloured_tasks_keep_to_their_own() {
    for (when_full, coloured_is_isolated) in [(WhenFull::Everyone, false), (WhenFull::Others, true)]
    {
        let config = Config {
            when_full,
            ..Config::PAPER
        };
        let mut rainbow = Registry::new(vec![Partition::EMPTY; 2], 16, config).unwrap();
        let a = reserve(&mut rainbow, 10).unwrap();
        let own = set("0-9");
        assert_eq!(rainbow.allowed(&page(), Some(a)), Ok(Allowed::Own(&own)));
        let b = reserve(&mut rainbow, 6).unwrap();
        assert_eq!(rainbow.allowed(&page(), None), Ok(Allowed::All));
        let allowed = rainbow.allowed(&page(), Some(a));
        match coloured_is_isolated {
            true => assert_eq!(allowed, Ok(Allowed::Own(&own))),
            false => assert_eq!(allowed, Ok(Allowed::All)),
        }
        rainbow.release(b).unwrap();
        assert_eq!(rainbow.allowed(&page(), Some(a)), Ok(Allowed::Own(&own)));
        let others = set("10-15");
        let unreserved = Allowed::Unreserved(&others);
        assert_eq!(rainbow.allowed(&page(), None), Ok(unreserved));
    }
}

/// Listing 5.7: from `last_color` on, over the colours whose pageset is empty.
#[test]
fn the_round_goes_on_behind_the_color_that_was_found() {
    let own = set("1-2,5,15");
    let mut turn = Turn::START;
    let mut seen = Vec::new();
    for _ in 0..6 {
        let color = turn.wish(&own).unwrap();
        turn.took(color);
        seen.push(color.0);
    }
    assert_eq!(seen, [1, 2, 5, 15, 1, 2]);
    // It is the turn of 5, whose pageset is empty: 15 is found.
    turn.took(Color(15));
    assert_eq!(turn.wish(&own), Some(Color(1)));
    assert_eq!(turn.wish(&ColorSet::EMPTY), None);
    turn.took(Color(u16::MAX));
    assert_eq!(turn.wish(&own), Some(Color(1)));
}

#[test]
fn a_request_is_prepared_with_colors_turn_and_mode() {
    let mut rainbow = rainbow();
    let id = name(&mut rainbow, "2,5");
    let mut turn = Turn::START;
    turn.took(Color(2));
    let own = rainbow.prepare(&page(), Some(id), turn).unwrap();
    assert_eq!(own.allowed, Some(&set("2,5")));
    assert_eq!((own.wish, own.mode), (Some(Color(5)), Mode::Hard));
    let other = rainbow.prepare(&page(), None, turn).unwrap();
    assert_eq!((other.wish, other.mode), (Some(Color(3)), Mode::Hard));
    let kernel = request(0, Purpose::Kernel);
    let kernel = rainbow.prepare(&kernel, None, turn).unwrap();
    assert_eq!((kernel.allowed, kernel.mode), (None, Mode::Hint));
    assert_eq!(kernel.wish, Some(Color(3)));
    turn.took(Color(15));
    let kernel = rainbow.prepare(&request(0, Purpose::Kernel), None, turn);
    assert_eq!(kernel.unwrap().wish, Some(Color(0)));
    let wished = FrameRequest {
        wish: Some(Color(9)),
        ..page()
    };
    let kept = rainbow.prepare(&wished, Some(id), turn).unwrap();
    assert_eq!(kept.wish, Some(Color(9)), "a wish of another policy stays");
}

/// Section 4.4.1: an eighth of 12 GB is 1.5 GB; section 6.2: 3 colours, which mcf
/// needs, are 2.25 GB.
#[test]
fn a_share_of_the_cache_is_that_share_of_memory() {
    let mut rainbow = rainbow();
    let eighth = rainbow.reserve(&Reservation::of(Ask::Share(1250))).unwrap();
    assert_eq!(rainbow.get(eighth).unwrap().nr_colors(), 2);
    assert_eq!(rainbow.memory_limit(eighth, FRAMES), Ok(3 << 29 >> 12));
    let mcf = reserve(&mut rainbow, 3).unwrap();
    assert_eq!(rainbow.memory_limit(mcf, FRAMES), Ok(9 << 28 >> 12));
    assert_eq!(rainbow.memory_limit(mcf, FRAMES + 15), Ok(9 << 28 >> 12));
    assert_eq!(rainbow.memory_limit(mcf, u64::MAX), Ok(3 * (u64::MAX / 16)));
}

/// The allocator below: a coloured task gets pages of its colours only, evenly, up
/// to its memory limit and not one more.
#[test]
fn a_coloured_task_fills_its_colors_evenly_up_to_its_limit() {
    let map = plain_map(3, 4);
    let frames = 4096;
    let mut buddy = full_buddy(&map, frames, 0);
    let mut rainbow = rainbow();
    let id = name(&mut rainbow, "3-5,9");
    let limit = rainbow.memory_limit(id, frames).unwrap();
    let (mut turn, mut per_color) = (Turn::START, [0u64; 16]);
    let mut granted = 0;
    let refused = loop {
        let r = rainbow.prepare(&page(), Some(id), turn).unwrap();
        match buddy.alloc(&r) {
            Ok(grant) => {
                let color = map.color(grant.frame);
                turn.took(color);
                per_color[usize::from(color.0)] += 1;
                granted += 1;
            }
            Err(e) => break e,
        }
        let own = [3, 4, 5, 9].map(|c: usize| per_color[c]);
        let (low, high) = (own.iter().min(), own.iter().max());
        assert!(high.unwrap() - low.unwrap() <= 1, "{per_color:?}");
    };
    assert_eq!((granted, refused), (limit, AllocError::ColorsExhausted));
    let kernel = FrameRequest {
        order: Order(0),
        ..request(0, Purpose::Kernel)
    };
    let kernel = rainbow.prepare(&kernel, Some(id), turn).unwrap();
    assert!(buddy.alloc(&kernel).is_ok(), "the kernel still gets pages");
}
