//! The core over the frames of several memory nodes, through the functions that the module calls.

use std::collections::BTreeSet;

use crate::{
    Seat, entry,
    tests::{EINVAL, ENOMEM, Module},
};

/// Frames of each node, of which the second's begin elsewhere.
const TWO: [(u64, usize); 2] = [(0, 8192), (1 << 18, 4096)];

#[test]
fn each_node_gives_its_own_frames_in_one_round() {
    let mut module = Module::over(&TWO);
    module.set_map("12\n13\n14\n15\n").unwrap();
    assert_eq!(module.add_to(0, 1024, 9), 0);
    assert_eq!(module.add_to(1, 1 << 18, 9), 0);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "1,4,9").unwrap();
    for (n, color) in [1, 4, 9, 1, 4, 9].into_iter().enumerate() {
        let node = n as u32 % 2;
        let given = module.reach_in(node, Some(&mut seat), 0).unwrap();
        assert_eq!(given.color, color);
        assert_eq!(given.pfn >= 1 << 18, node == 1, "{given:?}");
    }
    module.check();
}

#[test]
fn a_node_without_frames_takes_none_of_another() {
    let mut module = Module::over(&TWO);
    module.set_map("12\n13\n14\n15\n").unwrap();
    assert_eq!(module.add_to(1, 1 << 18, 9), 0);
    assert_eq!(module.reach_in(0, None, 2), Err(ENOMEM));
    let mut of_the_second = BTreeSet::new();
    while let Ok(given) = module.reach_in(1, None, 1) {
        assert!(of_the_second.insert(given.pfn));
    }
    assert_eq!(of_the_second.len(), 512);
    // Nor are there more nodes than were lent, or frames of one in another.
    assert_eq!(module.reach_in(2, None, 2), Err(ENOMEM));
    assert_eq!(module.add_to(2, 0, 0), EINVAL);
    assert_eq!(module.add_to(1, 1024, 9), EINVAL);
    assert_eq!(module.add_to(0, 1 << 18, 9), EINVAL);
    module.check();
}

#[test]
fn counts_are_of_all_nodes() {
    let mut module = Module::over(&TWO);
    module.set_map("12\n13\n14\n15\n").unwrap();
    assert_eq!(module.add_to(0, 0, 4), 0);
    assert_eq!(module.add_to(1, 1 << 18, 5), 0);
    let core = module.core;
    // SAFETY: the core is set up.
    let free = |color| unsafe { entry::pb_core_free_of(core, color) };
    assert!((0..16).all(|color| free(color) == 3));
    // SAFETY: the core is set up.
    let free_in = |node| unsafe { entry::pb_core_free(core, node) };
    assert_eq!((free_in(0), free_in(1), free_in(2)), (16, 32, 0));
    for node in [0, 1, 1] {
        module.reach_in(node, None, 1).unwrap();
    }
    assert_eq!(module.counters().grants, 3);
    // SAFETY: the core is set up.
    let granted = |node| unsafe { entry::pb_core_granted(core, node) };
    assert_eq!((granted(0), granted(1), granted(2)), (1, 2, 0));
    assert!(
        (0..3).all(|color| free(color) == 2),
        "the turn is the machine's"
    );
    module.set_map("12\n13\n").unwrap();
    assert_eq!(module.counters().grants, 3);
    assert_eq!((free_in(0), free_in(1)), (0, 0));
}

#[test]
fn a_map_may_have_bits_that_only_the_last_node_reaches() {
    let mut module = Module::over(&TWO);
    // The first node ends at 32 MiB, the second begins at 1 GiB.
    module.set_map("12\n30\n").unwrap();
    assert!(module.set_map("12\n32\n").unwrap_err().contains("have 2;"));
}
