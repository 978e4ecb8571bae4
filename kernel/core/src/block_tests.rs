//! Blocks of one colour.

use std::ptr;

use crate::{Given, Seat, entry, tests::Module};

/// Blocks of an order are of one colour if all of the frames of each are, by the maps' own words.
#[test]
fn blocks_of_one_colour_are_as_large_as_the_lowest_bits_of_the_map_allow() {
    // Frames whose numbers have bits up to 13: 64 MiB.
    let mut module = Module::new(1 << 14);
    for (map, order) in [
        ("12\n13\n", 0),
        ("14\n13\n", 1),
        ("16\n21\n", 4),
        ("21\n22\n", 9),
        ("22 25\n23\n", 10),
        ("21 24\n12 22\n", 0),
        ("24\n25\n", 10),
    ] {
        module.set_map(map).unwrap();
        // SAFETY: the core is set up.
        let found = unsafe { entry::pb_core_whole_order(module.core) };
        assert_eq!(found, order, "{map}");
        let color = |pfn: u64| {
            let mut given = Given {
                pfn,
                ..Given::default()
            };
            // SAFETY: the core is set up.
            unsafe { entry::pb_core_may_have(module.core, ptr::null(), &raw mut given) };
            given.color
        };
        let whole = |order: u32| {
            let mut blocks = (0..1u64 << 14).step_by(1 << order);
            blocks.all(|first| (first..first + (1 << order)).all(|f| color(f) == color(first)))
        };
        assert!(whole(found) && (found == 10 || !whole(found + 1)), "{map}");
    }
}

#[test]
fn colors_are_counted_round_and_round() {
    let module = Module::colored(8192);
    let round = |seat: Option<&Seat>, from: u32| {
        let seat = seat.map_or(ptr::null(), ptr::from_ref);
        let mut out = [u32::MAX; 4];
        // SAFETY: the core is set up, the seat is valid or null, and there is room for four.
        let n = unsafe {
            entry::pb_core_colors_at(module.core, seat, from, out.as_mut_ptr(), out.len())
        };
        assert!(n == 4 || n == 0);
        (n == 4).then_some(out)
    };
    let mut seat = Seat::default();
    assert_eq!(round(Some(&seat), 0), None, "it has no colours");
    module.reserve(&mut seat, "2,5,9").unwrap();
    assert_eq!(round(Some(&seat), 0), Some([2, 5, 9, 2]));
    assert_eq!(round(Some(&seat), u32::MAX - 3), Some([2, 5, 9, 2]));
    assert_eq!(round(None, 1), Some([1, 3, 4, 6]));
}
