//! Frames that are dealt, through the functions that the C side calls.

use std::ptr;

use crate::{
    entry,
    host::{Given, Seat},
    tests::{EAGAIN, Module},
};

/// Up to `room` frames that are dealt, and the spare ones that are left, in order; their colours are found out.
fn deal(
    module: &Module,
    seat: Option<&mut Seat>,
    spare: &[u64],
    room: usize,
) -> (Vec<u64>, Vec<u64>) {
    let mut spares: Vec<Given> = spare
        .iter()
        .map(|pfn| Given {
            pfn: *pfn,
            color: 99,
            fallback: 1,
        })
        .collect();
    let (mut left, mut out) = (spares.len(), vec![Given::default(); room]);
    // SAFETY: the core is set up, the seat is valid or null, the arrays have the lengths beside them.
    let dealt = unsafe {
        entry::pb_core_deal(
            module.core,
            0,
            seat.map_or(ptr::null_mut(), ptr::from_mut),
            spares.as_mut_ptr(),
            &mut left,
            out.as_mut_ptr(),
            out.len(),
        )
    };
    let pfns = |frames: &[Given]| frames.iter().map(|g| g.pfn).collect();
    (pfns(&out[..dealt]), pfns(&spares[..left]))
}

#[test]
fn spare_frames_are_dealt_as_they_come_and_then_the_pools_in_turn() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "2-4").unwrap();
    assert_eq!(module.add(0, 4), 0); // one frame of each colour
    // 40 has a colour that it may not have. Then 2, 3 and 4 of the pool, and nobody has another 2.
    let (dealt, left) = deal(&module, Some(&mut seat), &[40, 34, 50, 66, 35], 10);
    assert_eq!(dealt, [34, 50, 66, 35, 2, 3, 4]);
    assert_eq!(left, [40]);
    // The round goes on behind the last.
    assert_eq!(module.reach(Some(&mut seat), 0), Err(EAGAIN));
    assert_eq!(module.add(18, 0), 0);
    let next = module.reach(Some(&mut seat), 0);
    assert_eq!(next.map(|g| g.color), Ok(2), "its turn");
    module.check();
}

#[test]
fn a_color_that_is_far_ahead_waits_for_the_others() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "2-4").unwrap();
    // Of 3 alone: 32 more than a third of what it gets.
    let of_3: Vec<u64> = (0..100).map(|i| 16 * i + 3).collect();
    let (dealt, left) = deal(&module, Some(&mut seat), &of_3, 100);
    assert_eq!((dealt.len(), left.len()), (47, 53));
    // Another change of the sets begins anew: 32 more than half, and one whose turn it is.
    module.reserve(&mut seat, "3-4").unwrap();
    let (dealt, _) = deal(&module, Some(&mut seat), &of_3, 100);
    assert_eq!(dealt.len(), 64);
    module.check();
}

#[test]
fn of_more_colors_than_are_counted_all_are_dealt_in_turn() {
    let mut module = Module::colored(8192);
    module.set_map("12\n13\n14\n15\n16\n17\n18\n").unwrap();
    let mut seat = Seat::default();
    module.reserve(&mut seat, "2-4").unwrap();
    let (dealt, left) = deal(&module, Some(&mut seat), &[130, 258, 131, 132, 260], 5);
    let colors: Vec<u64> = dealt.iter().map(|pfn| pfn % 128).collect();
    assert_eq!(colors, [2, 3, 4, 2], "nobody has another 3");
    assert_eq!(left.len(), 1);
    module.check();
}

#[test]
fn who_has_no_colors_gets_frames_in_turn() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "9").unwrap();
    assert_eq!(module.add(0, 4), 0); // one frame of each colour
    // Of the spare ones one of 2 and one of 3 have a turn; 41 has an owned colour.
    let (dealt, mut left) = deal(&module, None, &[50, 41, 34, 66, 35], 6);
    assert_eq!(dealt, [0, 1, 50, 35, 4, 5]);
    left.sort_unstable();
    assert_eq!(left, [34, 41, 66]);
    module.check();
}
