//! Colour maps against brute force, and the maps of the papers' machines.

use std::collections::BTreeSet;

use piebald_policy::color_map::{
    BitClass, ColorMap, Geometry, IndexedCache, MAX_BITS, MapError, PrivateL2,
};
use piebald_units::{Color, ColorSet, Order, Pfn};
use proptest::prelude::*;

/// A map from bare masks.
fn map_of(masks: &[u64]) -> Result<ColorMap, MapError> {
    let masks: Vec<_> = masks.iter().map(|m| (*m, BitClass::Unknown)).collect();
    ColorMap::from_masks(&masks)
}

/// The definition, word for word.
fn color_by_hand(masks: &[u64], frame: u64) -> u16 {
    let parity = |mask: u64| ((frame & mask).count_ones() % 2) as u16;
    masks
        .iter()
        .enumerate()
        .fold(0, |c, (i, m)| c | parity(*m) << i)
}

/// Masks over the low `width` bits; dependent ones are left out.
fn masks(width: u32) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1u64..1 << width, 0..9).prop_map(|candidates| {
        let mut chosen: Vec<u64> = Vec::new();
        for mask in candidates {
            chosen.push(mask);
            if map_of(&chosen).is_err() {
                chosen.pop();
            }
        }
        chosen
    })
}

proptest! {
    #[test]
    fn a_color_is_the_parity_of_each_mask(
        masks in masks(52),
        frames in prop::collection::vec(any::<u64>(), 1..20),
    ) {
        let map = map_of(&masks).unwrap();
        prop_assert_eq!(map.bits() as usize, masks.len());
        for frame in frames {
            let expected = color_by_hand(&masks, frame);
            prop_assert_eq!(map.color(Pfn(frame)), Color(expected));
        }
    }

    #[test]
    fn a_block_has_the_colors_of_its_frames(masks in masks(14), frame in 0u64..1 << 14) {
        let map = map_of(&masks).unwrap();
        for order in 0..=12u8 {
            let first = frame & !((1 << order) - 1);
            let by_hand: BTreeSet<u16> = (first..first + (1 << order))
                .map(|f| color_by_hand(&masks, f))
                .collect();
            let mut set = ColorSet::EMPTY;
            map.colors_in(Pfn(frame), Order(order), &mut set);
            let found: BTreeSet<u16> = set.iter().map(|c| c.0).collect();
            prop_assert_eq!(&found, &by_hand, "order {}", order);
            prop_assert_eq!(1u32 << map.rank(Order(order)), by_hand.len() as u32);
            let some = Color(*by_hand.last().unwrap());
            prop_assert!(map.block_within(some, Order(order), &set));
            set.remove(Color(*by_hand.first().unwrap()));
            prop_assert!(!map.block_within(some, Order(order), &set));
        }
    }

    #[test]
    fn an_order_has_as_many_lists_as_its_blocks_have_sets_of_colors(masks in masks(12)) {
        let map = map_of(&masks).unwrap();
        for order in 0..=10u8 {
            let mut kinds = BTreeSet::new();
            for first in (0..1u64 << 12).step_by(1 << order) {
                let mut set = ColorSet::EMPTY;
                map.colors_in(Pfn(first), Order(order), &mut set);
                kinds.insert(set.iter().map(|c| c.0).collect::<Vec<_>>());
            }
            prop_assert_eq!(map.lists(Order(order)) as usize, kinds.len());
        }
    }

    #[test]
    fn the_nearest_frame_is_the_nearest(masks in masks(10), from in 0u64..1 << 11) {
        let map = map_of(&masks).unwrap();
        for c in 0..map.colors() as u16 {
            let has = |f: &u64| color_by_hand(&masks, *f) == c;
            let above = (from..).find(has).map(Pfn);
            let below = (0..=from).rev().find(has).map(Pfn);
            prop_assert_eq!(map.next_frame(Pfn(from), Color(c)), above);
            prop_assert_eq!(map.previous_frame(Pfn(from), Color(c)), below);
            let nearest = below
                .into_iter()
                .chain(above)
                .min_by_key(|f| (f.0.abs_diff(from), f.0));
            prop_assert_eq!(map.nearest_frame(Pfn(from), Color(c)), nearest);
        }
    }

    #[test]
    fn what_is_left_of_a_set_are_the_colors_of_whole_blocks(
        masks in masks(12),
        words in prop::collection::vec(any::<u64>(), 8),
        dense in any::<bool>(),
    ) {
        let map = map_of(&masks).unwrap();
        let mut allowed = ColorSet::EMPTY;
        for (i, pair) in words.chunks(2).enumerate() {
            let word = if dense { pair[0] | pair[1] | pair[0] << 7 } else { pair[0] };
            allowed.insert_word(i, word);
        }
        for order in 0..=10u8 {
            let mut left = ColorSet::EMPTY;
            map.erode(Order(order), &allowed, &mut left);
            for c in 0..map.colors() as u16 {
                let within = map.block_within(Color(c), Order(order), &allowed);
                prop_assert_eq!(left.contains(Color(c)), within, "order {} {}", order, c);
            }
            prop_assert!(left.iter().all(|c| u32::from(c.0) < map.colors()));
        }
    }
}

#[test]
fn frames_at_the_end_of_the_number_range_have_neighbours() {
    let map = map_of(&[1, 1 << 51]).unwrap();
    let top = Pfn(u64::MAX);
    assert_eq!(map.color(top), Color(3));
    assert_eq!(map.next_frame(top, Color(2)), None);
    assert_eq!(map.previous_frame(top, Color(2)), Some(Pfn(u64::MAX - 1)));
    assert_eq!(map.nearest_frame(top, Color(2)), Some(Pfn(u64::MAX - 1)));
    assert_eq!(map.previous_frame(Pfn(0), Color(1)), None);
    assert_eq!(map.nearest_frame(Pfn(0), Color(4)), None, "no such color");
}

#[test]
fn bad_masks_are_named() {
    assert_eq!(map_of(&[1, 0]), Err(MapError::ZeroMask(1)));
    assert_eq!(map_of(&[1, 2, 3]), Err(MapError::Dependent(2)));
    assert_eq!(map_of(&[1 << 52]), Err(MapError::BeyondFrames(0)));
    let thirteen: Vec<u64> = (0..13).map(|i| 1 << i).collect();
    assert_eq!(map_of(&thirteen), Err(MapError::TooManyBits));
    assert_eq!(map_of(&thirteen[..MAX_BITS]).unwrap().colors(), 4096);
    for error in [
        MapError::ZeroMask(7),
        MapError::Dependent(7),
        MapError::BeyondFrames(7),
    ] {
        assert!(error.to_string().contains("color bit 7"), "{error}");
    }
}

fn cache(sets: u64, slices: &[u64]) -> IndexedCache<'_> {
    IndexedCache {
        line: 64,
        sets,
        slices,
    }
}

/// Address bits of each colour bit.
fn address_bits(map: &ColorMap) -> Vec<u32> {
    (0..map.bits() as u8)
        .map(|i| {
            assert_eq!(map.mask(i).count_ones(), 1, "{map}");
            map.mask(i).trailing_zeros() + 12
        })
        .collect()
}

/// Rainbow section 6.1.1: 13 set bits, 3 of the color bits index L2, 16 colors;
/// orders 0-3 have all lists, then half as many per order.
#[test]
fn the_rainbow_machine_has_16_colors_and_their_lists() {
    let geometry = Geometry {
        llc: Some(cache(8192, &[])),
        l2: Some(cache(512, &[])),
        banks: &[],
    };
    let map = ColorMap::from_geometry(&geometry, PrivateL2::Exclude).unwrap();
    assert_eq!(address_bits(&map), [15, 16, 17, 18]);
    assert_eq!(map.bits_of(BitClass::Cache), 0b1111);
    let lists: Vec<u32> = (0..=10).map(|o| map.lists(Order(o))).collect();
    assert_eq!(lists, [16, 16, 16, 16, 8, 4, 2, 1, 1, 1, 1]);
    let raw = ColorMap::from_geometry(&geometry, PrivateL2::Keep).unwrap();
    assert_eq!(raw.colors(), 128);
}

/// SRM-buffer: the X5355's 4 MiB of 16 ways has 64 colors.
#[test]
fn the_srm_machine_has_64_colors() {
    let geometry = Geometry {
        llc: Some(cache(4096, &[])),
        l2: None,
        banks: &[],
    };
    let map = ColorMap::from_geometry(&geometry, PrivateL2::Exclude).unwrap();
    assert_eq!(address_bits(&map), [12, 13, 14, 15, 16, 17]);
}

/// HVR section 3: channel 6 ^ 16 is no color; banks 13, 14, 15, 21, 22; with the
/// private L2 kept, C = 12, 16, 17, 18, O = 13, 14, 15, B = 21, 22. (The paper
/// counts 12 and 13 as L2 bits and leaves them out.)
#[test]
fn the_hvr_machine_has_bits_of_all_three_classes() {
    let banks = [
        1 << 6 | 1 << 16,
        1 << 13,
        1 << 14,
        1 << 15,
        1 << 21,
        1 << 22,
    ];
    let geometry = Geometry {
        llc: Some(cache(8192, &[])),
        l2: Some(cache(512, &[])),
        banks: &banks,
    };
    let map = ColorMap::from_geometry(&geometry, PrivateL2::Keep).unwrap();
    assert_eq!(address_bits(&map), [12, 13, 14, 15, 16, 17, 18, 21, 22]);
    let of = |class| map.bits_of(class);
    assert_eq!(of(BitClass::Both), 0b0_0000_1110);
    assert_eq!(of(BitClass::Cache), 0b0_0111_0001);
    assert_eq!(of(BitClass::Bank), 0b1_1000_0000);
    assert_eq!(map.class(9), BitClass::Unknown);
    let without = ColorMap::from_geometry(&geometry, PrivateL2::Exclude).unwrap();
    assert_eq!(address_bits(&without), [15, 16, 17, 18, 21, 22]);
    assert_eq!(without.class(0), BitClass::Both);
}

/// HVR's x-Buddy: colors per block of order 0..=10 for bits 14, 15, 16, 21, 22.
#[test]
fn x_buddy_blocks_hold_the_colors_that_the_paper_counts() {
    let map = ColorMap::from_text("14\n15\n16\n21\n22\n").unwrap().map;
    let colors: Vec<u32> = (0..=10).map(|o| 1 << map.rank(Order(o))).collect();
    assert_eq!(colors, [1, 1, 1, 2, 4, 8, 8, 8, 8, 8, 16]);
}

/// A slice function whose low bits are set bits of the same cache is a color:
/// what remains of it is fixed by the page.
#[test]
fn slices_are_colors_as_far_as_the_page_fixes_them() {
    let hash = [
        1 << 6 | 1 << 10 | 1 << 17 | 1 << 20,
        1 << 7 | 1 << 13 | 1 << 21,
    ];
    let geometry = Geometry {
        llc: Some(cache(2048, &hash)),
        l2: None,
        banks: &[],
    };
    let map = ColorMap::from_geometry(&geometry, PrivateL2::Keep).unwrap();
    let masks: Vec<u64> = (0..map.bits() as u8).map(|i| map.mask(i)).collect();
    // Sets: address bits 12-16. Slices: 17 ^ 20, and 21 (7 and 13 are set bits).
    let expected = [1, 2, 4, 8, 16, 1 << 5 | 1 << 8, 1 << 9];
    assert_eq!(masks, expected);
    // Brute force: pages differ in color exactly if they share no (set, slice).
    let places = |page: u64| -> BTreeSet<(u64, u32)> {
        (0..64)
            .map(|line| page << 12 | line << 6)
            .map(|a| {
                let slice = hash.iter().map(|h| (a & h).count_ones() % 2);
                (a >> 6 & 2047, slice.fold(0, |s, b| s << 1 | b))
            })
            .collect()
    };
    for page in (0..1 << 10).step_by(7) {
        let meet = !places(0x155).is_disjoint(&places(page));
        let same = map.color(Pfn(0x155)) == map.color(Pfn(page));
        assert_eq!(meet, same, "page {page:#x}");
    }
}

#[test]
fn a_color_set_never_narrows_an_excluded_l2() {
    let banks = [1 << 14 | 1 << 18, 1 << 15 | 1 << 19, 1 << 13];
    let geometry = Geometry {
        llc: Some(cache(1024, &[])),
        l2: Some(cache(512, &[])),
        banks: &banks,
    };
    let map = ColorMap::from_geometry(&geometry, PrivateL2::Exclude).unwrap();
    // Whatever the color, all eight groups of L2 sets (bits 12-14) occur.
    for c in 0..map.colors() as u16 {
        let groups: BTreeSet<u64> = (0..1 << 8)
            .filter(|f| map.color(Pfn(*f)) == Color(c))
            .map(|f| f & 7)
            .collect();
        assert_eq!(groups.len(), 8, "color {c} of\n{map}");
    }
    assert!(map.colors() >= 4, "{map}");
}

#[test]
fn bad_geometries_name_field_value_and_range() {
    let with = |llc: IndexedCache<'static>| Geometry {
        llc: Some(llc),
        l2: None,
        banks: &[],
    };
    let error = |g: &Geometry<'_>| {
        let error = ColorMap::from_geometry(g, PrivateL2::Keep).unwrap_err();
        error.to_string()
    };
    let words = error(&with(cache(3000, &[])));
    assert!(words.contains("llc.sets = 0xbb8; allowed:"), "{words}");
    let words = error(&with(IndexedCache {
        line: 48,
        ..cache(64, &[])
    }));
    assert!(words.contains("llc.line = 0x30"), "{words}");
    let words = error(&with(cache(64, &[1; 9])));
    assert!(words.contains("llc.slices = 0x9"), "{words}");
    let many = Geometry {
        llc: None,
        l2: None,
        banks: &[1 << 13; 17],
    };
    assert!(error(&many).contains("banks = 0x11"));
    let large = with(cache(1 << 20, &[]));
    assert_eq!(
        ColorMap::from_geometry(&large, PrivateL2::Keep),
        Err(MapError::TooManyBits)
    );
    let none = Geometry {
        llc: None,
        l2: None,
        banks: &[1 << 6 | 1 << 16],
    };
    let map = ColorMap::from_geometry(&none, PrivateL2::Keep).unwrap();
    assert_eq!((map.bits(), map.colors()), (0, 1), "a channel bit alone");
}

#[test]
fn groups_are_the_colors_that_agree_in_some_bits() {
    let map = map_of(&[1, 2, 4, 8]).unwrap();
    let mut group = ColorSet::EMPTY;
    map.group(0b1010, 0b0010, &mut group);
    assert_eq!(group.to_string(), "2-3,6-7");
}

#[test]
fn a_map_fits_a_page_of_kernel_memory_several_times() {
    assert!(size_of::<ColorMap>() <= 700, "{}", size_of::<ColorMap>());
}
