//! SRM-buffer's zone over memory of a test's own, through the functions that the module calls.

use std::collections::BTreeMap;

use crate::{
    Found, Seat, ZoneAsk, ZoneColor, ZoneCounters,
    tests::{EAGAIN, EINVAL, ENOMEM, Module, color, text},
    zone_entry as zone,
};

/// Frames of memory, as the zone is told.
const FRAMES: u64 = 16384;
/// T_l of these tests.
const LONG: u32 = 16;

/// A module with a zone, and all of its memory in the pool.
struct Zoned {
    module: Module,
}

const PROCESS: [u64; 2] = [100, 1];

impl Zoned {
    fn new() -> Self {
        let mut module = Module::colored(FRAMES as usize);
        for first in (0..FRAMES).step_by(512) {
            assert_eq!(module.add(first, 9), 0);
        }
        // SAFETY: the core is set up.
        let bytes = unsafe { zone::pb_zone_bytes(module.core) };
        let at = module.zeroed(bytes);
        begin(&module, at, LONG).unwrap();
        Self { module }
    }

    fn take(&self, seat: Option<&Seat>, ask: &ZoneAsk) -> Result<Found, i32> {
        let mut found = Found::default();
        let seat = seat.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the core is set up, the seat is valid or null.
        match unsafe { zone::pb_zone_take(self.module.core, seat, ask, &raw mut found) } {
            0 => Ok(found),
            status => Err(status),
        }
    }

    /// As the C side does: refills the zone when it is asked to.
    fn get(&self, seat: Option<&Seat>, ask: &ZoneAsk) -> Result<Found, i32> {
        let mut ask = *ask;
        loop {
            match self.take(seat, &ask) {
                Err(EAGAIN) => ask.spent = u32::from(self.fill(u32::MAX) == 0),
                answer => return answer,
            }
        }
    }

    fn fill(&self, most: u32) -> u32 {
        // SAFETY: the core is set up.
        unsafe { zone::pb_zone_fill(self.module.core, most) }
    }

    fn add(&self, pfn: u64, cold: bool) -> i32 {
        // SAFETY: as above.
        unsafe { zone::pb_zone_add(self.module.core, pfn, cold) }
    }

    fn wants(&self) -> bool {
        // SAFETY: as above.
        unsafe { zone::pb_zone_wants(self.module.core) }
    }

    fn spare(&self) -> Option<Found> {
        let mut found = Found::default();
        // SAFETY: as above.
        (unsafe { zone::pb_zone_spare(self.module.core, &raw mut found) } == 0).then_some(found)
    }

    fn counters(&self) -> ZoneCounters {
        let mut out = ZoneCounters::default();
        // SAFETY: as above.
        unsafe { zone::pb_zone_counters(self.module.core, &raw mut out) };
        out
    }

    fn standing(&self, color: u32) -> ZoneColor {
        let mut out = ZoneColor::default();
        // SAFETY: as above.
        unsafe { zone::pb_zone_color(self.module.core, color, &raw mut out) };
        out
    }

    fn pages(&self) -> u32 {
        // SAFETY: as above.
        unsafe { zone::pb_zone_pages(self.module.core) }
    }
}

fn begin(module: &Module, at: *mut u8, threshold: u32) -> Result<(), String> {
    let mut why = [0u8; 200];
    // SAFETY: `at` is as large as the zone asks for and stays with the module.
    let status = unsafe {
        zone::pb_zone_begin(
            module.core,
            at,
            threshold,
            FRAMES,
            why.as_mut_ptr(),
            why.len(),
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(text(&why)),
    }
}

fn threshold(module: &Module, threshold: u32) -> Result<(), String> {
    let mut why = [0u8; 200];
    // SAFETY: the core is set up.
    let status = unsafe {
        zone::pb_zone_threshold(module.core, threshold, FRAMES, why.as_mut_ptr(), why.len())
    };
    match status {
        0 => Ok(()),
        _ => Err(text(&why)),
    }
}

fn block(file: u64, file_blocks: u64) -> ZoneAsk {
    ZoneAsk {
        file: [file, 1],
        file_blocks,
        process: PROCESS,
        is_file: 1,
        spent: 0,
    }
}

fn memory(process: [u64; 2]) -> ZoneAsk {
    ZoneAsk {
        process,
        ..ZoneAsk::default()
    }
}

#[test]
fn there_is_no_zone_without_a_map() {
    let mut module = Module::new(FRAMES as usize);
    // SAFETY: the core is set up.
    assert_eq!(unsafe { zone::pb_zone_bytes(module.core) }, 0);
    let at = module.zeroed(64);
    assert!(begin(&module, at, LONG).unwrap_err().contains("no map"));
    let zoned = Zoned { module };
    assert_eq!(zoned.take(None, &block(1, 100)), Err(ENOMEM));
    assert_eq!(zoned.add(5, false), EINVAL);
    assert_eq!(zoned.spare(), None);
}

#[test]
fn the_map_stays_as_long_as_there_is_a_zone() {
    let mut module = Module::colored(FRAMES as usize);
    // SAFETY: the core is set up.
    let bytes = unsafe { zone::pb_zone_bytes(module.core) };
    let at = module.zeroed(bytes);
    begin(&module, at, LONG).unwrap();
    assert!(begin(&module, at, LONG).is_err(), "there is one");
    assert!(module.set_map("12\n").is_err());
    // SAFETY: as above.
    assert_eq!(unsafe { zone::pb_zone_end(module.core) }, 0);
    module.set_map("12\n").unwrap();
}

#[test]
fn sequences_have_the_papers_length_and_half_of_it_in_little_memory() {
    assert_eq!(zone::pb_zone_default(1 << 18), 256);
    assert_eq!(zone::pb_zone_default((1 << 18) - 1), 128);
}

#[test]
fn thresholds_that_do_not_fit_are_refused_with_what_is_allowed() {
    let zoned = Zoned::new();
    // A quarter of 16384 frames are 256 of each of 16 colours.
    for bad in [0, 256, u32::MAX] {
        let refusal = threshold(&zoned.module, bad).unwrap_err();
        assert!(refusal.contains("1 to 255"), "{refusal}");
    }
    threshold(&zoned.module, 255).unwrap();
    threshold(&zoned.module, 1).unwrap();
}

#[test]
fn a_large_file_lies_in_runs_of_one_color() {
    let zoned = Zoned::new();
    let colors: Vec<u32> = (0..64)
        .map(|_| zoned.get(None, &block(7, 64)).unwrap().color)
        .collect();
    for run in colors.chunks(LONG as usize) {
        assert!(run.iter().all(|c| *c == run[0]), "{colors:?}");
    }
    let mut firsts: Vec<u32> = colors.chunks(LONG as usize).map(|run| run[0]).collect();
    firsts.dedup();
    assert_eq!(firsts.len(), 4);
    assert_eq!(zoned.counters().sequences, 4);
    zoned.module.check();
}

#[test]
fn frames_have_the_color_that_is_said() {
    let zoned = Zoned::new();
    for file in 0..40 {
        let found = zoned.get(None, &block(file, 64)).unwrap();
        assert_eq!(found.color, color(found.pfn));
        assert_eq!((found.cold, found.begins), (0, 1));
    }
}

#[test]
fn two_files_at_a_time_have_two_colors() {
    let zoned = Zoned::new();
    for _ in 0..4 * LONG {
        let one = zoned.get(None, &block(1, 64)).unwrap().color;
        let other = zoned.get(None, &block(2, 64)).unwrap().color;
        assert_ne!(one, other);
    }
}

#[test]
fn small_files_of_a_process_share_a_color_and_those_of_two_do_not() {
    let zoned = Zoned::new();
    let of = |process: u64, file: u64| {
        let ask = ZoneAsk {
            process: [process, 1],
            ..block(file, 2)
        };
        zoned.get(None, &ask).unwrap().color
    };
    let one: Vec<u32> = (0..8).map(|file| of(1, file)).collect();
    let other: Vec<u32> = (8..16).map(|file| of(2, file)).collect();
    assert!(one.iter().all(|c| *c == one[0]));
    assert!(other.iter().all(|c| *c == other[0]));
    assert_ne!(one[0], other[0]);
}

#[test]
fn a_file_that_nobody_can_name_counts_as_a_small_one() {
    let zoned = Zoned::new();
    let small = zoned.get(None, &block(1, 2)).unwrap().color;
    let unknown = ZoneAsk {
        file: [0, 0],
        ..block(0, 5000)
    };
    assert_eq!(zoned.get(None, &unknown).unwrap().color, small);
}

#[test]
fn memory_goes_round_and_a_child_goes_on_where_its_parent_stands() {
    let zoned = Zoned::new();
    let of = |process| zoned.get(None, &memory(process)).unwrap().color;
    for expected in 0..20 {
        assert_eq!(of(PROCESS), expected % 16);
    }
    let child = [101, 5];
    // SAFETY: the core is set up.
    unsafe { zone::pb_zone_fork(zoned.module.core, &PROCESS, &child) };
    assert_eq!(of(child), 4);
    assert_eq!(of(PROCESS), 4);
    // A process with a number that was used before begins anew.
    assert_eq!(of([100, 2]), 0);
}

#[test]
fn the_mark_of_a_process_goes_with_it() {
    let zoned = Zoned::new();
    let color = zoned.get(None, &block(1, 2)).unwrap().color;
    assert_eq!(zoned.standing(color).marked, 1);
    // SAFETY: the core is set up.
    unsafe { zone::pb_zone_exit(zoned.module.core, &PROCESS) };
    assert_eq!(zoned.standing(color).marked, 0);
    zoned.module.check();
}

#[test]
fn who_owns_colors_gets_those_and_others_get_none_of_them() {
    let zoned = Zoned::new();
    let mut seat = Seat::default();
    zoned.module.reserve(&mut seat, "2-3").unwrap();
    for file in 0..50 {
        let own = zoned.get(Some(&seat), &block(file, 64)).unwrap();
        assert!((2..4).contains(&own.color), "{own:?}");
        let other = zoned.get(None, &block(100 + file, 64)).unwrap();
        assert!(!(2..4).contains(&other.color), "{other:?}");
        let own = zoned.get(Some(&seat), &memory([7, 7])).unwrap();
        assert!((2..4).contains(&own.color), "{own:?}");
    }
}

#[test]
fn colors_that_are_used_up_are_left_to_the_pool() {
    let zoned = Zoned::new();
    let mut seat = Seat::default();
    zoned.module.reserve(&mut seat, "2").unwrap();
    let mut got = 0;
    while zoned.get(Some(&seat), &block(1, 5000)).is_ok() {
        got += 1;
    }
    assert_eq!(got, FRAMES / 16);
    assert_eq!(zoned.get(Some(&seat), &block(1, 5000)), Err(ENOMEM));
    assert!(zoned.get(None, &block(2, 5000)).is_ok());
    zoned.module.check();
}

#[test]
fn the_zone_is_filled_evenly_in_steps_and_no_further_than_it_wants() {
    let zoned = Zoned::new();
    assert_eq!(zoned.take(None, &block(1, 64)), Err(EAGAIN));
    assert_eq!(zoned.fill(10), 10);
    while zoned.fill(10) > 0 {}
    assert!(!zoned.wants());
    assert_eq!(zoned.pages(), 16 * (LONG + 1));
    for color in 0..16 {
        assert_eq!(zoned.standing(color).pages, LONG + 1);
        assert_eq!(zoned.standing(color).free, LONG + 1);
    }
    zoned.module.check();
}

#[test]
fn cold_pages_are_taken_when_nothing_is_free_and_a_used_one_is_not_counted() {
    let mut module = Module::colored(FRAMES as usize);
    // SAFETY: the core is set up.
    let bytes = unsafe { zone::pb_zone_bytes(module.core) };
    let at = module.zeroed(bytes);
    begin(&module, at, LONG).unwrap();
    let zoned = Zoned { module };
    assert_eq!(zoned.take(None, &block(1, 64)), Err(EAGAIN));
    let mut pfn = 0;
    while zoned.wants() {
        assert_eq!(zoned.add(pfn, true), 0);
        assert_eq!(zoned.add(pfn, true), EINVAL, "twice");
        pfn += 1;
    }
    assert_eq!(pfn, 16 * (u64::from(LONG) + 1));
    let first = zoned.take(None, &block(1, 64)).unwrap();
    assert_eq!(first.cold, 1);
    // It was in use: the block is asked for again, and its run is as long as any.
    // SAFETY: the core is set up.
    unsafe { zone::pb_zone_declined(zoned.module.core, &block(1, 64)) };
    let run: Vec<u32> = (0..LONG)
        .map(|_| zoned.take(None, &block(1, 64)).unwrap().color)
        .collect();
    assert!(run.iter().all(|c| *c == first.color), "{run:?}");
    assert_eq!(zoned.counters().declined, 1);
    assert_eq!(zoned.counters().cold, 17);
    zoned.module.check();
}

#[test]
fn a_zone_ends_when_it_is_empty_and_every_frame_is_had_once() {
    let mut zoned = Zoned::new();
    let mut held: BTreeMap<u64, ()> = BTreeMap::new();
    for file in 0..30 {
        for _ in 0..20 {
            let found = zoned.get(None, &block(file, 20)).unwrap();
            assert!(held.insert(found.pfn, ()).is_none());
        }
    }
    let sequences = zoned.counters().sequences;
    // SAFETY: the core is set up.
    let ended = unsafe { zone::pb_zone_end(zoned.module.core) };
    assert_eq!(ended, EINVAL, "it has pages");
    while let Some(found) = zoned.spare() {
        assert!(held.insert(found.pfn, ()).is_none());
    }
    while let Some((first, order)) = zoned.module.shed(u64::MAX) {
        for pfn in first..first + (1 << order) {
            assert!(held.insert(pfn, ()).is_none());
        }
    }
    assert_eq!(held.len() as u64, FRAMES);
    assert_eq!(zoned.module.counters().grants, 600);
    // SAFETY: as above.
    assert_eq!(unsafe { zone::pb_zone_end(zoned.module.core) }, 0);
    assert_eq!(zoned.counters().sequences, sequences);
    assert_eq!(zoned.take(None, &block(1, 64)), Err(ENOMEM));
    zoned.module.set_map("12\n").unwrap();
    assert_eq!(zoned.module.counters().grants, 600);
}

/// More files and processes than there are places: nothing is lost but sequences.
#[test]
fn places_are_given_away_when_there_are_more_files() {
    let zoned = Zoned::new();
    for file in 1..20_000u64 {
        let ask = ZoneAsk {
            process: [file, 1],
            ..block(file * 31, 64)
        };
        let found = zoned.get(None, &ask).unwrap();
        assert_eq!(zoned.module.add(found.pfn, 0), 0, "back to the pool");
    }
    zoned.module.check();
}

#[test]
fn machines_of_several_nodes_have_no_zone() {
    let mut module = Module::over(&[(0, FRAMES as usize), (1 << 18, FRAMES as usize)]);
    module.set_map("12\n13\n14\n15\n").unwrap();
    // SAFETY: the core is set up.
    let bytes = unsafe { zone::pb_zone_bytes(module.core) };
    let at = module.zeroed(bytes);
    let why = begin(&module, at, LONG).unwrap_err();
    assert!(why.contains("2 memory nodes; allowed: 1"), "{why}");
}
