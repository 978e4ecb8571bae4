//! Where files lie, by every rule.

use std::collections::BTreeSet;

use piebald_os_model::file::{Extent, FileTable, Layout, LayoutError};
use piebald_units::{FileId, Lba};

fn table(layout: Layout) -> FileTable {
    FileTable::new(layout).unwrap()
}

fn lbas(t: &mut FileTable, file: u64, pages: std::ops::Range<u64>) -> Vec<u64> {
    let index = t.index(FileId(file)).unwrap();
    pages.map(|p| t.locate(index, p).0).collect()
}

#[test]
fn slots_follow_the_rule_of_accusim() {
    let mut t = table(Layout::ACCUSIM);
    for file in [0, 7, 8683, u64::MAX] {
        t.add(FileId(file), 300).unwrap();
    }
    assert_eq!(lbas(&mut t, 0, 0..3), [0, 8, 16]);
    assert_eq!(lbas(&mut t, 7, 0..2), [7 * 2048, 7 * 2048 + 8]);
    // 8683 * 2048 = 17,782,784: the disk ends 57 pages later.
    assert_eq!(lbas(&mut t, 8683, 56..58), [17_783_232, 0]);
    assert!(
        lbas(&mut t, u64::MAX, 0..300)
            .iter()
            .all(|l| *l <= 17_783_232)
    );
}

#[test]
fn packed_files_follow_one_another_and_grow_behind_the_last() {
    let mut t = table(Layout::Packed {
        start: Lba(80),
        gap_pages: 2,
    });
    let a = t.add(FileId(1), 3).unwrap();
    t.add(FileId(2), 1).unwrap();
    assert_eq!(lbas(&mut t, 1, 0..3), [80, 88, 96]);
    assert_eq!(lbas(&mut t, 2, 0..1), [80 + 5 * 8]);
    t.grow(a, 5).unwrap();
    assert_eq!(lbas(&mut t, 1, 0..5), [80, 88, 96, 144, 152]);
    assert_eq!(t.highest(), Lba(160));
    let empty = t.add(FileId(3), 0).unwrap();
    t.grow(empty, 2).unwrap();
    assert_eq!(lbas(&mut t, 3, 0..2), [192, 200]);
}

#[test]
fn extents_give_places_and_holes_are_refused() {
    let mut t = table(Layout::Extents);
    let extent = |page, lba, pages| Extent {
        page,
        lba: Lba(lba),
        pages,
    };
    let parts = [extent(4, 80, 2), extent(0, 800, 4)];
    let file = t.add_extents(FileId(1), &parts).unwrap();
    assert_eq!(t.pages(file), 6);
    assert_eq!(lbas(&mut t, 1, 0..6), [800, 808, 816, 824, 80, 88]);
    let hole = [extent(0, 0, 4), extent(5, 80, 1)];
    let error = t.add_extents(FileId(2), &hole).unwrap_err();
    assert_eq!(
        error.to_string(),
        "file 2: page 4 lies in no extent or in two"
    );
    let twice = [extent(0, 0, 4), extent(2, 80, 4)];
    assert!(t.add_extents(FileId(2), &twice).is_err());
    assert!(t.add(FileId(3), 1).is_err());
    assert!(t.grow(file, 7).is_err());
}

#[test]
fn blocks_without_address_are_scattered_or_lie_in_order_of_first_touch() {
    let mut t = table(Layout::FirstTouch { start: Lba(8) });
    t.add(FileId(1), 1 << 40).unwrap();
    assert_eq!(lbas(&mut t, 1, 500..503), [8, 16, 24]);
    assert_eq!(lbas(&mut t, 1, 499..502), [32, 8, 16]);
    let mut t = table(Layout::Scatter {
        seed: 5,
        capacity_pages: 1000,
    });
    t.add(FileId(1), 1 << 40).unwrap();
    let places: BTreeSet<u64> = lbas(&mut t, 1, 0..1000).into_iter().collect();
    assert_eq!(places.len(), 1000, "no place twice");
    assert_eq!(t.highest(), Lba(8000));
}

#[test]
fn device_addresses_stay_or_wrap() {
    let mut t = table(Layout::Device { wrap_pages: None });
    t.add(FileId(0), 1 << 40).unwrap();
    assert_eq!(lbas(&mut t, 0, 1_000_000..1_000_001), [8_000_000]);
    let mut t = table(Layout::Device {
        wrap_pages: Some(100),
    });
    t.add(FileId(0), 1 << 40).unwrap();
    assert_eq!(lbas(&mut t, 0, 199..201), [99 * 8, 0]);
}

#[test]
fn names_are_added_once_and_may_return_after_removal() {
    let mut t = table(Layout::Device { wrap_pages: None });
    let first = t.add(FileId(1), 10).unwrap();
    assert_eq!(t.add(FileId(1), 10), Err(LayoutError::Twice(FileId(1))));
    assert_eq!(t.remove(FileId(1)), Ok(first));
    assert_eq!(t.pages(first), 0);
    assert_ne!(t.add(FileId(1), 5).unwrap(), first);
    assert_eq!(t.remove(FileId(2)), Err(LayoutError::Unknown(FileId(2))));
    let long = t.add(FileId(3), (1 << 40) + 1).unwrap_err();
    assert!(long.to_string().contains("at most 2^40"), "{long}");
}

#[test]
fn a_rule_out_of_range_is_refused_and_every_rule_describes_itself() {
    let bad = FileTable::new(Layout::Scatter {
        seed: 1,
        capacity_pages: 0,
    });
    let text = bad.unwrap_err().to_string();
    assert_eq!(text, "layout: capacity_pages is 0, must be at least 1");
    assert_eq!(
        Layout::ACCUSIM.describe(),
        "every file begins at sector (number * 2048) mod 17783240 and is contiguous"
    );
}
