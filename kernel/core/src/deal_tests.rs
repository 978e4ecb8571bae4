//! Frames that are dealt, through the functions that the C side calls.

use std::ptr;

use crate::{
    entry,
    host::{Given, Seat},
    tests::{EAGAIN, Module},
};

#[test]
fn spare_frames_are_dealt_as_they_come_and_then_the_pools_in_turn() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "2-4").unwrap();
    assert_eq!(module.add(0, 4), 0); // one frame of each colour
    // Their colours are found out; 40 has one that it may not have.
    let spare = |pfn: u64| Given {
        pfn,
        color: 99,
        fallback: 1,
    };
    let mut spares = [spare(40), spare(34), spare(50), spare(66), spare(35)];
    let (mut left, mut out) = (spares.len(), [Given::default(); 10]);
    // SAFETY: the core is set up, the arrays have the lengths beside them.
    let dealt = unsafe {
        entry::pb_core_deal(
            module.core,
            0,
            &mut seat,
            spares.as_mut_ptr(),
            &mut left,
            out.as_mut_ptr(),
            out.len(),
        )
    };
    // Those of the spare ones that it may have, then 2, 3 and 4 of the pool, and nobody has another 2.
    let pfns: Vec<u64> = out[..dealt].iter().map(|g| g.pfn).collect();
    assert_eq!(pfns, [34, 50, 66, 35, 2, 3, 4]);
    assert_eq!((left, spares[0].pfn), (1, 40));
    // The round goes on behind the last.
    assert_eq!(module.reach(Some(&mut seat), 0), Err(EAGAIN));
    assert_eq!(module.add(18, 0), 0);
    assert_eq!(
        module.reach(Some(&mut seat), 0).map(|g| g.color),
        Ok(2),
        "its turn"
    );
    module.check();
}

#[test]
fn who_has_no_colors_gets_frames_in_turn() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "9").unwrap();
    assert_eq!(module.add(0, 4), 0); // one frame of each colour
    let mut spares = [50, 41, 34, 66, 35].map(|pfn: u64| Given {
        pfn,
        ..Given::default()
    });
    let (mut left, mut out) = (spares.len(), [Given::default(); 6]);
    // SAFETY: the core is set up, the arrays have the lengths beside them.
    let dealt = unsafe {
        entry::pb_core_deal(
            module.core,
            0,
            ptr::null_mut(),
            spares.as_mut_ptr(),
            &mut left,
            out.as_mut_ptr(),
            out.len(),
        )
    };
    // Of the spare ones one of 2 and one of 3 have a turn; 41 has an owned colour.
    let pfns: Vec<u64> = out[..dealt].iter().map(|g| g.pfn).collect();
    assert_eq!(pfns, [0, 1, 50, 35, 4, 5]);
    let mut kept: Vec<u64> = spares[..left].iter().map(|g| g.pfn).collect();
    kept.sort_unstable();
    assert_eq!(kept, [34, 41, 66]);
    module.check();
}
