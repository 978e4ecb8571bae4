//! One suite for all frame allocators: random operation lists against slow
//! oracles, distinct errors, fresh and aged memory, memory limits.

use crate::oracle::{PlainBuddy, Sets};
use piebald_os_model::frames::{
    Age, BinHopping, BinHoppingConfig, ColorMap, Colored, ColoredConfig, CoreListConfig, Flavour,
    FrameAllocator, RandomFrames, Stock, StockConfig, ZoneConfig, age,
};
use piebald_policy::color_map::BitClass;
use piebald_policy::contract::{AllocError, Asker, Cause, FrameRequest, FreeError, Mode, Purpose};
use piebald_units::{ColorSet, CoreId, Order, Pfn, TaskId, Vpn};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const CORE: CoreId = CoreId(0);

fn request(order: u8, purpose: Purpose, core: u16) -> FrameRequest<'static> {
    FrameRequest {
        order: Order(order),
        purpose,
        asker: Asker::Task(TaskId(1)),
        cause: Cause::Fault,
        core: CoreId(core),
        page: None,
        allowed: None,
        wish: None,
        mode: Mode::Hint,
    }
}

fn stock(frames: u64, flavour: Flavour) -> Stock {
    let zones = ZoneConfig {
        dma_end: 1024,
        dma32_end: 4096,
    };
    let config = StockConfig {
        zones,
        ..StockConfig::new(frames, 3, flavour)
    };
    Stock::new(&config).unwrap()
}

/// 2^bits colours by the frame bits from 3 on.
fn colored(frames: u64, bits: u32) -> ColoredConfig {
    let masks: Vec<_> = (3..3 + bits).map(|b| (1 << b, BitClass::Unknown)).collect();
    ColoredConfig::new(frames, 3, ColorMap::from_masks(&masks).unwrap())
}

/// All allocators on the same memory. The flag says whether an order-0 up
/// request must succeed whenever an aligned block is free.
fn all(frames: u64) -> Vec<(&'static str, Box<dyn FrameAllocator>, bool)> {
    let bins = BinHoppingConfig {
        frames,
        bins: 16,
        shift: 3,
    };
    vec![
        ("2.6.30", Box::new(stock(frames, Flavour::V2_6_30)), true),
        ("6.12", Box::new(stock(frames, Flavour::V6_12)), true),
        ("bins", Box::new(BinHopping::new(&bins).unwrap()), true),
        (
            "colored",
            Box::new(Colored::new(&colored(frames, 4)).unwrap()),
            true,
        ),
        (
            "random",
            Box::new(RandomFrames::new(frames, 7).unwrap()),
            false,
        ),
    ]
}

const PURPOSES: [Purpose; 4] = [
    Purpose::Anon,
    Purpose::File,
    Purpose::Kernel,
    Purpose::Reclaimable,
];

fn random_walk(name: &str, a: &mut dyn FrameAllocator, complete: bool, seed: u64) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut sets = Sets::new(a.total_frames());
    for step in 0..6000 {
        // Phases that fill and phases that empty reach both ends of memory.
        let grow = step / 1000 % 2 == 0;
        let core = rng.random_range(0..3);
        if rng.random_bool(if grow { 0.8 } else { 0.3 }) {
            let order = *[0, 0, 0, 0, 1, 2, 3, 5, 9, 10]
                .get(rng.random_range(0..10))
                .unwrap();
            let purpose = PURPOSES[rng.random_range(0..4)];
            match a.alloc(&request(order, purpose, core)) {
                Ok(g) => sets.grant(g.frame.0, g.order.0),
                Err(AllocError::OutOfMemory) if order == 0 => {
                    assert_eq!(sets.free(), 0, "{name}: fails with free frames");
                }
                Err(AllocError::OutOfMemory) => {
                    assert!(
                        !complete || !sets.has_block(order),
                        "{name}: block of order {order}"
                    );
                }
                Err(e) => panic!("{name}: {e}"),
            }
        } else if let Some((frame, order)) = sets.pick(&mut rng) {
            a.free(Pfn(frame), Order(order), CoreId(core)).unwrap();
            sets.release(frame);
        }
        assert_eq!(a.free_frames(), sets.free(), "{name}");
        if step % 97 == 0 {
            a.validate()
                .unwrap_or_else(|e| panic!("{name}, step {step}: {e}"));
        }
    }
    for (frame, order) in sets.granted() {
        a.free(Pfn(frame), Order(order), CORE).unwrap();
    }
    a.validate().unwrap();
    assert_eq!(a.free_frames(), a.total_frames(), "{name}");
}

#[test]
fn random_histories_agree_with_sets() {
    for (name, mut a, complete) in all(8000) {
        random_walk(name, &mut *a, complete, 11);
    }
    for (name, mut a, complete) in all(1024) {
        random_walk(name, &mut *a, complete, 12);
    }
}

#[test]
fn buddy_hands_out_the_frames_of_a_plain_buddy_with_vectors() {
    for (flavour, descending) in [(Flavour::V2_6_30, true), (Flavour::V6_12, false)] {
        let config = StockConfig {
            core_lists: CoreListConfig {
                enabled: false,
                ..CoreListConfig::default()
            },
            zones: ZoneConfig {
                dma_end: 0,
                dma32_end: 0,
            },
            ..StockConfig::new(5000, 1, flavour)
        };
        let mut fast = Stock::new(&config).unwrap();
        let mut slow = PlainBuddy::new(5000, descending);
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let mut held = Vec::new();
        for _ in 0..20_000 {
            if rng.random_bool(0.52) {
                let order = rng.random_range(0..=4u8).saturating_sub(2);
                let got = fast.alloc(&request(order, Purpose::Anon, 0)).ok();
                assert_eq!(got.map(|g| g.frame.0), slow.alloc(order));
                held.extend(got.map(|g| (g.frame, g.order)));
            } else if !held.is_empty() {
                let (f, o) = held.swap_remove(rng.random_range(0..held.len()));
                fast.free(f, o, CORE).unwrap();
                slow.free(f.0, o.0);
            }
        }
        fast.validate().unwrap();
    }
}

#[test]
fn every_wrong_free_has_its_own_error_and_changes_nothing() {
    for (name, mut a, _) in all(4096) {
        let g = a.alloc(&request(2, Purpose::Kernel, 0)).unwrap();
        let one = a.alloc(&request(0, Purpose::Anon, 0)).unwrap();
        let free = a.free_frames();
        let inner = Pfn(g.frame.0 + 1);
        assert_eq!(
            a.free(g.frame, Order(1), CORE),
            Err(FreeError::OrderMismatch),
            "{name}"
        );
        assert_eq!(
            a.free(g.frame, Order(3), CORE),
            Err(FreeError::OrderMismatch),
            "{name}"
        );
        assert_eq!(
            a.free(inner, Order(0), CORE),
            Err(FreeError::OrderMismatch),
            "{name}"
        );
        assert_eq!(
            a.free(Pfn(4096), Order(0), CORE),
            Err(FreeError::Foreign),
            "{name}"
        );
        assert_eq!(
            a.free(Pfn(1 << 40), Order(0), CORE),
            Err(FreeError::Foreign),
            "{name}"
        );
        assert_eq!(a.free_frames(), free);
        a.free(g.frame, Order(2), CORE).unwrap();
        a.free(one.frame, Order(0), CORE).unwrap();
        assert_eq!(
            a.free(g.frame, Order(2), CORE),
            Err(FreeError::DoubleFree),
            "{name}"
        );
        assert_eq!(
            a.free(inner, Order(0), CORE),
            Err(FreeError::DoubleFree),
            "{name}"
        );
        assert_eq!(
            a.free(one.frame, Order(0), CORE),
            Err(FreeError::DoubleFree),
            "{name}"
        );
        a.validate().unwrap();
        assert_eq!(a.free_frames(), 4096, "{name}");
    }
}

#[test]
fn allocators_without_colors_refuse_hard_rules_and_count_hints() {
    let set = ColorSet::first(2);
    for (name, mut a, _) in all(4096) {
        if name == "colored" {
            continue;
        }
        let mut r = request(0, Purpose::Anon, 0);
        r.allowed = Some(&set);
        assert!(a.alloc(&r).unwrap().fallback, "{name}");
        r.mode = Mode::Hard;
        assert_eq!(a.alloc(&r), Err(AllocError::NoColors), "{name}");
        assert_eq!(
            a.alloc(&request(11, Purpose::Anon, 0)),
            Err(AllocError::OrderTooLarge)
        );
        let c = a.counters();
        assert_eq!((c.grants, c.fallbacks, c.failures), (1, 1, 2), "{name}");
    }
}

#[test]
fn memory_ends_exactly_at_its_size() {
    for (name, mut a, _) in all(3001) {
        for n in 0..3001 {
            let g = a.alloc(&request(0, Purpose::Anon, (n % 3) as u16));
            assert!(g.is_ok(), "{name}: frame {n}");
        }
        let full = a.alloc(&request(0, Purpose::Anon, 0));
        assert_eq!(full, Err(AllocError::OutOfMemory), "{name}");
        a.validate().unwrap();
    }
}

#[test]
fn dma_requests_stay_in_their_zone() {
    let mut s = stock(8000, Flavour::V2_6_30);
    for _ in 0..1024 {
        assert!(s.alloc(&request(0, Purpose::Dma, 0)).unwrap().frame.0 < 1024);
    }
    assert_eq!(
        s.alloc(&request(0, Purpose::Dma, 0)),
        Err(AllocError::OutOfMemory)
    );
    assert!(s.alloc(&request(0, Purpose::Kernel, 0)).unwrap().frame.0 >= 4096);
}

#[test]
fn kernel_data_claims_a_pageblock_and_fills_it_before_the_next() {
    let mut s = stock(1 << 14, Flavour::V2_6_30);
    let user = s.alloc(&request(0, Purpose::Anon, 0)).unwrap().frame.0;
    let first = s.alloc(&request(0, Purpose::Kernel, 0)).unwrap().frame.0;
    assert_ne!(user >> 9, first >> 9);
    // Whole pageblocks were stolen, so further kernel pages keep off user ones.
    for _ in 0..1000 {
        let f = s.alloc(&request(0, Purpose::Kernel, 0)).unwrap().frame.0;
        assert_ne!(f >> 9, user >> 9);
    }
    assert!(s.pageblock_claims() > 0);
    s.validate().unwrap();
}

#[test]
fn batch_and_high_are_those_of_the_kernels() {
    // 2.6.30: a zone of 128 MiB and up has batch 31; the core gives a batch back
    // at 186 frames. 6.12: batch 63.
    for (flavour, batch) in [(Flavour::V2_6_30, 31), (Flavour::V6_12, 63)] {
        let zones = ZoneConfig {
            dma_end: 0,
            dma32_end: 0,
        };
        let config = StockConfig {
            zones,
            ..StockConfig::new(1 << 19, 1, flavour)
        };
        let mut s = Stock::new(&config).unwrap();
        let buddy = |s: &Stock| -> u64 {
            let blocks = s.free_blocks();
            (0u32..).zip(blocks).map(|(o, n)| n << o).sum()
        };
        s.alloc(&request(0, Purpose::Anon, 0)).unwrap();
        assert_eq!(buddy(&s), (1 << 19) - batch);
    }
    let config = StockConfig {
        zones: ZoneConfig {
            dma_end: 0,
            dma32_end: 0,
        },
        ..StockConfig::new(1 << 19, 1, Flavour::V2_6_30)
    };
    let mut s = Stock::new(&config).unwrap();
    let held: Vec<_> = (0..310)
        .map(|_| s.alloc(&request(0, Purpose::Anon, 0)).unwrap().frame)
        .collect();
    let blocks = |s: &Stock| -> u64 { (0u32..).zip(s.free_blocks()).map(|(o, n)| n << o).sum() };
    let before = blocks(&s);
    for f in &held[..185] {
        s.free(*f, Order(0), CORE).unwrap();
    }
    assert_eq!(blocks(&s), before, "185 frames stay on the core");
    s.free(held[185], Order(0), CORE).unwrap();
    assert_eq!(blocks(&s), before + 31, "at 186 a batch goes back");
}

/// Order-0 frames that one core is given one after another.
fn series(a: &mut dyn FrameAllocator, n: usize) -> Vec<u64> {
    (0..n)
        .map(|i| {
            let r = FrameRequest::fault(TaskId(3), CORE, Vpn(i as u64));
            a.alloc(&r).unwrap().frame.0
        })
        .collect()
}

fn neighbours(frames: &[u64]) -> f64 {
    let n = frames.windows(2).filter(|w| w[1] == w[0] + 1).count();
    n as f64 / (frames.len() - 1) as f64
}

/// Chi-square statistic of the colours, and the same for pairs of successive
/// frames: is the step from one colour to the next uniform too?
fn chi_square(frames: &[u64], colors: u64) -> (f64, f64) {
    let stat = |values: Vec<u64>| {
        let mut n = vec![0f64; colors as usize];
        for v in &values {
            n[(v % colors) as usize] += 1.0;
        }
        let want = values.len() as f64 / colors as f64;
        n.iter().map(|x| (x - want).powi(2) / want).sum::<f64>()
    };
    let steps = frames.windows(2).map(|w| w[1].wrapping_sub(w[0])).collect();
    (stat(frames.to_vec()), stat(steps))
}

#[test]
fn fresh_memory_gives_consecutive_frames() {
    for flavour in [Flavour::V2_6_30, Flavour::V6_12] {
        let mut s = Stock::new(&StockConfig::new(1 << 18, 4, flavour)).unwrap();
        let f = series(&mut s, 4096);
        assert!(neighbours(&f) > 0.99, "{flavour:?}: {}", neighbours(&f));
    }
}

#[test]
fn aged_memory_gives_random_colors() {
    for flavour in [Flavour::V2_6_30, Flavour::V6_12] {
        for free in [100, 300, 500] {
            let mut s = Stock::new(&StockConfig::new(1 << 18, 4, flavour)).unwrap();
            let aged = age(&mut s, &Age::new(1, free, 4)).unwrap();
            s.validate().unwrap();
            let permille = s.free_frames() * 1000 / s.total_frames();
            assert!(permille.abs_diff(u64::from(free)) <= 1, "{permille}");
            assert_eq!(aged.frames() + s.free_frames(), s.total_frames());
            let f = series(&mut s, 6400);
            let (colors, steps) = chi_square(&f, 64);
            // 63 degrees of freedom: mean 63, 99.99 % quantile 113.
            assert!(colors < 113.0, "{flavour:?} {free}: colors {colors}");
            assert!(steps < 113.0, "{flavour:?} {free}: steps {steps}");
            assert!(
                neighbours(&f) < 0.05,
                "{flavour:?} {free}: {}",
                neighbours(&f)
            );
        }
    }
}

#[test]
fn ageing_is_the_same_for_the_same_seed_and_differs_for_another() {
    let run = |seed| {
        let mut s = Stock::new(&StockConfig::new(1 << 15, 2, Flavour::V2_6_30)).unwrap();
        age(&mut s, &Age::new(seed, 300, 2)).unwrap();
        series(&mut s, 100)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn ageing_names_the_field_that_cannot_be() {
    let mut s = stock(4096, Flavour::V2_6_30);
    let e = age(&mut s, &Age::new(1, 990, 1)).unwrap_err();
    assert_eq!(
        e.to_string(),
        "ageing: free_permille = 990: must be 20 to 950"
    );
}

#[test]
fn random_frames_are_uniform() {
    let mut a = RandomFrames::new(1 << 18, 3).unwrap();
    let f = series(&mut a, 6400);
    let (colors, steps) = chi_square(&f, 64);
    assert!(colors < 113.0 && steps < 113.0, "{colors} {steps}");
}

#[test]
fn bin_hopping_gives_each_task_successive_bins() {
    let config = BinHoppingConfig {
        frames: 1 << 16,
        bins: 64,
        shift: 0,
    };
    let mut a = BinHopping::new(&config).unwrap();
    let mut last = [None::<u64>; 2];
    for i in 0..2000u64 {
        for task in 0..2u32 {
            let r = FrameRequest::fault(TaskId(task), CORE, Vpn(i));
            let g = a.alloc(&r).unwrap();
            let bin = g.frame.0 % 64;
            if let Some(b) = last[task as usize] {
                assert_eq!(bin, (b + 1) % 64);
            }
            assert!(!g.fallback);
            last[task as usize] = Some(bin);
        }
    }
    assert_ne!(last[0], last[1], "tasks start at different bins");
}

#[test]
fn bin_hopping_counts_what_it_cannot_place() {
    let config = BinHoppingConfig {
        frames: 64,
        bins: 64,
        shift: 0,
    };
    let mut a = BinHopping::new(&config).unwrap();
    // One task takes bins b, b+1, ..., another finds some of its bins empty.
    for _ in 0..40 {
        a.alloc(&FrameRequest::fault(TaskId(0), CORE, Vpn(0)))
            .unwrap();
    }
    for _ in 0..24 {
        a.alloc(&FrameRequest::fault(TaskId(1), CORE, Vpn(0)))
            .unwrap();
    }
    assert!(a.counters().fallbacks > 0);
    assert_eq!(a.free_frames(), 0);
    a.validate().unwrap();
}

#[test]
fn configuration_errors_name_field_value_and_range() {
    let e = Stock::new(&StockConfig::new(0, 1, Flavour::V2_6_30))
        .err()
        .unwrap();
    assert_eq!(
        e.to_string(),
        "frames = 0: must be 1 to 4294967294 (4 KiB each)"
    );
    assert_eq!(RandomFrames::new(1 << 32, 0).err().unwrap().field, "frames");
    let bins = BinHoppingConfig {
        frames: 64,
        bins: 48,
        shift: 0,
    };
    assert_eq!(BinHopping::new(&bins).err().unwrap().field, "bins");
    let shift = BinHoppingConfig {
        frames: 64,
        bins: 64,
        shift: 5,
    };
    assert_eq!(BinHopping::new(&shift).err().unwrap().field, "shift");
}

#[test]
fn a_pageblock_changes_its_type_when_half_of_it_is_free() {
    // One pageblock of 512 frames; the kernel steals what user pages leave.
    for (user_frames, claims) in [(256, 1), (257, 0)] {
        let config = StockConfig {
            core_lists: CoreListConfig {
                enabled: false,
                ..CoreListConfig::default()
            },
            zones: ZoneConfig {
                dma_end: 0,
                dma32_end: 0,
            },
            ..StockConfig::new(512, 1, Flavour::V2_6_30)
        };
        let mut s = Stock::new(&config).unwrap();
        for _ in 0..user_frames {
            s.alloc(&request(0, Purpose::Anon, 0)).unwrap();
        }
        s.alloc(&request(0, Purpose::Kernel, 0)).unwrap();
        assert_eq!(s.pageblock_claims(), claims, "{user_frames}");
        s.validate().unwrap();
    }
}

#[test]
fn colored_frames_keep_to_their_colors_until_these_are_used_up() {
    let mut a = Colored::new(&colored(4096, 4)).unwrap();
    let color = |f: Pfn| (f.0 >> 3 & 15) as u16;
    let allowed: ColorSet = "2-3,9".parse().unwrap();
    let mut taken = Vec::new();
    // Frames on other cores' lists count as free, and are found in the end.
    for core in 0..3 {
        let r = request(0, Purpose::Anon, core);
        let frames: Vec<_> = (0..40).map(|_| a.alloc(&r).unwrap().frame).collect();
        for f in frames {
            a.free(f, Order(0), CoreId(core)).unwrap();
        }
    }
    for core in (0..3).cycle() {
        let r = FrameRequest {
            allowed: Some(&allowed),
            mode: Mode::Hard,
            ..request(0, Purpose::Anon, core)
        };
        match a.alloc(&r) {
            Ok(g) => {
                assert!(allowed.iter().any(|c| c.0 == color(g.frame)) && !g.fallback);
                taken.push(g.frame);
            }
            Err(e) => {
                assert_eq!(e, AllocError::ColorsExhausted);
                break;
            }
        }
    }
    assert_eq!(taken.len(), 4096 / 16 * 3, "all of three colours of 16");
    assert_eq!(a.free_frames(), 4096 - 768);
    let hint = FrameRequest {
        allowed: Some(&allowed),
        mode: Mode::Hint,
        ..request(0, Purpose::Anon, 0)
    };
    assert!(a.alloc(&hint).unwrap().fallback);
    assert_eq!(a.counters().fallbacks, 1);
    a.validate().unwrap();
}

#[test]
fn page_coloring_gives_a_page_the_color_of_its_address() {
    let config = ColoredConfig {
        like_virtual: true,
        ..colored(4096, 4)
    };
    let mut a = Colored::new(&config).unwrap();
    for vpn in [5u64, 0x1238, 77, 0xfff8, 130] {
        let r = FrameRequest {
            page: Some(Vpn(vpn)),
            ..request(0, Purpose::Anon, 0)
        };
        let frame = a.alloc(&r).unwrap().frame.0;
        assert_eq!(frame >> 3 & 15, vpn >> 3 & 15, "page {vpn:#x}");
    }
}
