//! The core over memory of a test's own, through the functions that the module calls.

use std::{alloc::Layout, collections::BTreeSet, ptr};

use crate::{
    Counters, Given, Needs, Seat,
    entry::{self, Core, Memory, NodeMemory},
};

pub(crate) const EAGAIN: i32 = -11;
pub(crate) const ENOMEM: i32 = -12;
pub(crate) const EINVAL: i32 = -22;
const SLOTS: usize = 4;

/// A core, and what it was lent, as the C side holds them.
pub(crate) struct Module {
    pub(crate) core: *mut Core,
    nodes: Vec<NodeMemory>,
    lent: Vec<(*mut u8, Layout)>,
}

impl Module {
    pub(crate) fn zeroed(&mut self, bytes: usize) -> *mut u8 {
        let layout = Layout::from_size_align(bytes.max(1), 64).unwrap();
        // SAFETY: not empty.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        self.lent.push((start, layout));
        start
    }

    pub(crate) fn new(frames: usize) -> Self {
        Self::over(&[(0, frames)])
    }

    /// With these frames of each node: the first, and how many.
    pub(crate) fn over(nodes: &[(u64, usize)]) -> Self {
        let mut module = Self {
            core: ptr::null_mut(),
            nodes: Vec::new(),
            lent: Vec::new(),
        };
        for (first, frames) in nodes.iter().copied() {
            let node = NodeMemory {
                states: module.zeroed(frames),
                links: module.zeroed(frames * 8).cast(),
                pageblocks: module.zeroed(frames.div_ceil(512) * 4).cast(),
                first,
                frames: frames as u64,
                nr_pageblocks: frames.div_ceil(512) as u64,
            };
            module.nodes.push(node);
        }
        module.core = module.zeroed(entry::pb_core_bytes()).cast();
        let memory = Memory {
            nodes: module.nodes.as_ptr(),
            nr_nodes: nodes.len() as u64,
            pools: module.zeroed(nodes.len() * entry::pb_node_bytes()),
            slots: module.zeroed(SLOTS * entry::pb_slot_bytes()),
            nr_slots: SLOTS as u64,
        };
        // SAFETY: all of it is there until the module is dropped.
        unsafe { entry::pb_core_set_up(module.core, &raw const memory) };
        module
    }

    /// With 16 colours on address bits 12-15.
    pub(crate) fn colored(frames: usize) -> Self {
        let mut module = Self::new(frames);
        module.set_map("12\n13\n14\n15\n").unwrap();
        module
    }

    pub(crate) fn set_map(&mut self, map: &str) -> Result<(), String> {
        let (mut needs, mut why) = (Needs::default(), [0u8; 200]);
        // SAFETY: memory of this module, as in the kernel.
        unsafe {
            let status = entry::pb_core_read_map(
                self.core,
                map.as_ptr(),
                map.len(),
                &raw mut needs,
                why.as_mut_ptr(),
                why.len(),
            );
            if status != 0 {
                return Err(text(&why));
            }
            let lists = self.zeroed(needs.list_bytes * self.nodes.len());
            let words = self.zeroed(needs.nr_words * 8 * self.nodes.len()).cast();
            for node in &self.nodes {
                node.states.write_bytes(0, node.frames as usize);
                node.pageblocks.write_bytes(0, node.nr_pageblocks as usize);
            }
            match entry::pb_core_set_map(self.core, &raw const needs, lists, words) {
                0 => Ok(()),
                status => Err(format!("set_map: {status}")),
            }
        }
    }

    pub(crate) fn add(&self, pfn: u64, order: u32) -> i32 {
        self.add_to(0, pfn, order)
    }

    pub(crate) fn add_to(&self, node: u32, pfn: u64, order: u32) -> i32 {
        // SAFETY: the core is set up.
        unsafe { entry::pb_core_add(self.core, node, pfn, order) }
    }

    fn take(&self, seat: Option<&mut Seat>, any: bool) -> Result<Given, i32> {
        self.reach(seat, if any { 2 } else { 1 })
    }

    pub(crate) fn reach(&self, seat: Option<&mut Seat>, reach: u32) -> Result<Given, i32> {
        self.reach_in(0, seat, reach)
    }

    pub(crate) fn reach_in(
        &self,
        node: u32,
        seat: Option<&mut Seat>,
        reach: u32,
    ) -> Result<Given, i32> {
        let mut given = Given::default();
        let seat = seat.map_or(ptr::null_mut(), ptr::from_mut);
        // SAFETY: the core is set up, the seat is valid or null.
        match unsafe { entry::pb_core_take(self.core, node, seat, reach, &raw mut given) } {
            0 => Ok(given),
            status => Err(status),
        }
    }

    pub(crate) fn shed(&self, frames: u64) -> Option<(u64, i32)> {
        let mut pfn = 0;
        // SAFETY: the core is set up.
        let order = unsafe { entry::pb_core_shed(self.core, 0, frames, &raw mut pfn) };
        (order >= 0).then_some((pfn, order))
    }

    fn shed_surplus(&self, frames: u64) -> Option<(u64, i32)> {
        let mut pfn = 0;
        // SAFETY: the core is set up.
        let order = unsafe { entry::pb_core_shed_surplus(self.core, 0, frames, &raw mut pfn) };
        (order >= 0).then_some((pfn, order))
    }

    pub(crate) fn reserve(&self, seat: &mut Seat, ask: &str) -> Result<(), String> {
        let mut why = [0u8; 200];
        // SAFETY: as above.
        let status = unsafe {
            entry::pb_core_reserve(
                self.core,
                seat,
                ask.as_ptr(),
                ask.len(),
                why.as_mut_ptr(),
                why.len(),
            )
        };
        match status {
            0 => Ok(()),
            _ => Err(text(&why)),
        }
    }

    fn colors_of(&self, seat: Option<&Seat>) -> String {
        let mut out = [0u8; 200];
        let seat = seat.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: as above.
        let len =
            unsafe { entry::pb_core_print_colors(self.core, seat, out.as_mut_ptr(), out.len()) };
        String::from_utf8(out[..len].to_vec()).unwrap()
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut out = Counters::default();
        // SAFETY: as above.
        unsafe { entry::pb_core_counters(self.core, &raw mut out) };
        out
    }

    pub(crate) fn check(&self) {
        let mut out = [0u8; 200];
        // SAFETY: as above.
        let len = unsafe { entry::pb_core_check(self.core, out.as_mut_ptr(), out.len()) };
        assert_eq!(len, 0, "{}", text(&out));
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        for (start, layout) in &self.lent {
            // SAFETY: as allocated, once.
            unsafe { std::alloc::dealloc(*start, *layout) };
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8(bytes[..end].to_vec()).unwrap()
}

pub(crate) fn color(pfn: u64) -> u32 {
    (pfn & 15) as u32
}

#[test]
fn nothing_is_given_without_a_map() {
    let module = Module::new(4096);
    assert_eq!(module.add(512, 9), EINVAL);
    assert_eq!(module.take(None, true), Err(ENOMEM));
    let refusal = module.reserve(&mut Seat::default(), "0-3");
    assert!(refusal.unwrap_err().contains("no map"));
}

#[test]
fn maps_are_refused_in_words() {
    let mut module = Module::new(4096);
    assert!(module.set_map("").unwrap_err().contains("1 color"));
    assert!(module.set_map("12\nx\n").unwrap_err().contains("line 2"));
    assert!(module.set_map("11\n").unwrap_err().contains("line 1"));
    // 16 MiB have address bits 12 to 23.
    let refusal = module.set_map("12\n24\n").unwrap_err();
    assert!(refusal.contains("4 colors"), "{refusal}");
    assert!(refusal.contains("have 2;"), "{refusal}");
    assert!(
        module
            .set_map("12 63\n13 24\n63\n")
            .unwrap_err()
            .contains("have 4;")
    );
    module.set_map("12 24\n23\n").unwrap();
    module.set_map("12\n13 17\n").unwrap();
    // SAFETY: the core is set up.
    assert_eq!(unsafe { entry::pb_core_colors(module.core) }, 4);
}

#[test]
fn a_process_with_colors_gets_those_and_no_others_get_them() {
    let module = Module::colored(8192);
    assert_eq!(module.add(1024, 9), 0);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "2-3,8").unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..512 / 16 * 3 {
        let given = module.take(Some(&mut seat), false).unwrap();
        assert_eq!(given.color, color(given.pfn));
        assert!([2, 3, 8].contains(&given.color));
        assert!((1024..1536).contains(&given.pfn) && seen.insert(given.pfn));
    }
    assert_eq!(module.take(Some(&mut seat), false), Err(EAGAIN));
    for _ in 0..512 / 16 * 13 {
        let given = module.take(None, false).unwrap();
        assert!(![2, 3, 8].contains(&given.color) && seen.insert(given.pfn));
    }
    assert_eq!(module.take(None, false), Err(ENOMEM));
    assert_eq!(seen.len(), 512);
    module.check();
}

#[test]
fn who_may_use_any_color_falls_back_and_it_is_counted() {
    let module = Module::colored(8192);
    assert_eq!(module.add(0, 4), 0);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "5").unwrap();
    assert_eq!(module.take(Some(&mut seat), false).unwrap().color, 5);
    let other = module.take(Some(&mut seat), true).unwrap();
    assert!(other.color != 5 && other.fallback == 1);
    assert_eq!(module.counters().fallbacks, 1);
}

#[test]
fn rounds_go_evenly_through_the_colors() {
    let module = Module::colored(8192);
    assert_eq!(module.add(2048, 9), 0);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "1,4,9").unwrap();
    let round: Vec<u32> = (0..6)
        .map(|_| module.take(Some(&mut seat), false).unwrap().color)
        .collect();
    assert_eq!(round, [1, 4, 9, 1, 4, 9]);
}

#[test]
fn who_waits_for_its_turn_does_not_get_what_others_left() {
    let module = Module::colored(8192);
    assert_eq!(module.add(2048, 9), 0);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "0-3").unwrap();
    while module.take(Some(&mut seat), false).is_ok() {}
    // SAFETY: the core is set up.
    unsafe { entry::pb_core_leave(module.core, &mut seat) };
    // Colours 4 to 15 are left; 0 has its turn, and then 1.
    assert_eq!(module.reach(None, 0), Err(EAGAIN));
    assert_eq!(module.reach(None, 1).unwrap().color, 4);
    assert_eq!(module.reach(None, 0).unwrap().color, 5);
    assert_eq!(module.add(512, 4), 0);
    for color in (6..16).chain(0..16) {
        assert_eq!(module.reach(None, 0).unwrap().color, color);
    }
}

#[test]
fn a_set_ends_once_and_gives_its_colors_back() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "25%").unwrap();
    assert_eq!(module.colors_of(Some(&seat)), "0-3");
    assert_eq!(module.colors_of(None), "4-15");
    module.reserve(&mut seat, "6-7").unwrap();
    assert_eq!(module.colors_of(Some(&seat)), "6-7");
    // SAFETY: the core is set up, the seat is valid.
    unsafe {
        entry::pb_core_leave(module.core, &mut seat);
        entry::pb_core_leave(module.core, &mut seat);
    }
    assert_eq!(module.colors_of(None), "0-15");
    assert_eq!(module.colors_of(Some(&seat)), "none");
    assert_eq!(module.counters().freed, 1);
}

#[test]
fn sets_may_share_a_color_and_both_get_its_frames() {
    let module = Module::colored(8192);
    let (mut one, mut other) = (Seat::default(), Seat::default());
    module.reserve(&mut one, "0-3").unwrap();
    module.reserve(&mut other, "3-4").unwrap();
    assert_eq!(module.colors_of(None), "5-15");
    assert_eq!(module.add(512, 5), 0); // two frames of each colour
    let colors = |seat: &mut Seat, n: u32| -> Vec<u32> {
        (0..n)
            .map(|_| module.take(Some(seat), false).unwrap().color)
            .collect()
    };
    assert_eq!(colors(&mut other, 3), [3, 4, 3]);
    assert_eq!(colors(&mut one, 3), [0, 1, 2]);
    // SAFETY: the core is set up, the seat is valid.
    unsafe { entry::pb_core_leave(module.core, &mut one) };
    assert_eq!(module.colors_of(None), "0-2,5-15");
    module.check();
}

#[test]
fn frames_are_marked_by_the_colors_of_a_set() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    let mut marks = [9u8; 20];
    // SAFETY: the core is set up, the array has the length beside it.
    let mut mark = |seat: &Seat| unsafe {
        entry::pb_core_mark(module.core, seat, 14, marks.as_mut_ptr(), marks.len());
        let set = (14u64..).zip(marks).filter(|(_, mark)| *mark != 0);
        set.map(|(pfn, _)| pfn).collect::<Vec<_>>()
    };
    assert!(mark(&seat).is_empty());
    module.reserve(&mut seat, "1,15").unwrap();
    assert_eq!(mark(&seat), [15, 17, 31, 33]);
}

#[test]
fn pages_outside_the_colors_of_their_process_are_misplaced() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    // SAFETY: the core is set up.
    let misplaced = |seat: &Seat, pfn| unsafe { entry::pb_core_misplaced(module.core, seat, pfn) };
    assert!(!misplaced(&seat, 4));
    module.reserve(&mut seat, "2-3").unwrap();
    assert!(misplaced(&seat, 4) && misplaced(&seat, 17));
    assert!(!misplaced(&seat, 2) && !misplaced(&seat, 19));
}

#[test]
fn bad_requests_are_refused_in_words_and_change_nothing() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "0").unwrap();
    let asks = [
        ("", "empty"),
        ("3-1", ""),
        ("16", "15"),
        ("0%", "0.01 %"),
        ("101%", "100 %"),
        ("x", ""),
        ("12.345%", "share"),
        ("none", "0 colors"),
        ("99999999999999999999", ""),
    ];
    for (ask, word) in asks {
        let why = module.reserve(&mut Seat::default(), ask).unwrap_err();
        assert!(!why.is_empty() && why.contains(word), "{ask:?}: {why}");
    }
    assert_eq!(module.colors_of(None), "1-15");
    assert_eq!(module.colors_of(Some(&seat)), "0");
}

#[test]
fn one_color_stays_for_everyone_else() {
    let module = Module::colored(8192);
    let why = module.reserve(&mut Seat::default(), "0-15").unwrap_err();
    assert!(why.contains("15 can be reserved"), "{why}");
    module.reserve(&mut Seat::default(), "1-15").unwrap();
    assert_eq!(module.colors_of(None), "0");
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    let module = Module::colored(4096);
    assert_eq!(module.add(4096, 0), EINVAL);
    assert_eq!(module.add(3584, 10), EINVAL);
    assert_eq!(module.add(1024, 9), 0);
    assert_eq!(module.add(1100, 0), EINVAL);
    module.check();
}

#[test]
fn the_pool_sheds_all_that_it_has_once() {
    let module = Module::colored(8192);
    for block in 2..6 {
        assert_eq!(module.add(block * 512, 9), 0);
    }
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        seen.insert(module.take(None, false).unwrap().pfn);
    }
    while let Some((first, order)) = module.shed(1000) {
        for pfn in first..first + (1 << order) {
            assert!(seen.insert(pfn), "{pfn} twice");
        }
    }
    assert_eq!(seen.len(), 4 * 512);
    module.check();
    // What left may come back.
    assert_eq!(module.add(1024, 9), 0);
    module.check();
}

#[test]
fn what_nobody_asks_for_is_shed_first() {
    let module = Module::colored(8192);
    assert_eq!(module.add(1024, 9), 0);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "7").unwrap();
    // The others use up their colours: 32 frames of colour 7 and 8 of each other are left.
    for _ in 0..24 * 15 {
        module.take(None, false).unwrap();
    }
    let grants = module.counters().grants;
    let mut out = [0u64; 64];
    // SAFETY: the core is set up.
    let n = unsafe { entry::pb_core_shed_most(module.core, 0, out.as_mut_ptr(), out.len()) };
    assert_eq!(n, 32 - (32 + 8 * 15) / 16);
    assert!(out[..n].iter().all(|pfn| color(*pfn) == 7));
    assert_eq!(module.counters().grants, grants);
    module.check();
    let mut left = 32 + 8 * 15 - n;
    while left > 0 {
        // SAFETY: the core is set up.
        let n = unsafe { entry::pb_core_shed_most(module.core, 0, out.as_mut_ptr(), out.len()) };
        assert!(n > 0);
        left -= n;
    }
    assert_eq!(module.take(None, true), Err(ENOMEM));
    module.check();
}

#[test]
fn blocks_of_colors_that_are_in_use_stay() {
    let module = Module::colored(8192);
    assert_eq!(module.add(1024, 9), 0);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "0-3").unwrap();
    // Of each sixteen frames the last twelve are left, but for two groups.
    for _ in 0..30 * 4 {
        module.take(Some(&mut seat), false).unwrap();
    }
    let whole = |(first, order): (u64, i32)| (first..first + (1 << order)).map(color).min();
    // Sixteen frames in a row have colours 0 to 3 among them.
    assert_eq!(module.shed_surplus(16), None);
    module.check();
    let mut left = 0;
    while let Some(block) = module.shed_surplus(8) {
        assert_eq!(block.1, 3);
        assert!(whole(block) >= Some(8), "{block:?}");
        left += 8;
    }
    // Down to half the mean of each: the mean is 368 / 16 at first, and falls.
    assert!((8 * 15..=8 * 28).contains(&left), "{left}");
    // SAFETY: the core is set up.
    let free = |c: u64| unsafe { entry::pb_core_free_of(module.core, c as u32) };
    assert!((0..4).all(|c| free(c) == 2), "none of these went");
    assert!((4..8).all(|c| free(c) == 32), "nor of these");
    module.check();
    // Nothing is scarce where all colours are alike.
    let module = Module::colored(8192);
    assert_eq!(module.shed_surplus(64), None);
    for block in 2..6 {
        assert_eq!(module.add(block * 512, 9), 0);
    }
    assert_eq!(module.shed_surplus(600).map(|(_, order)| order), Some(9));
    assert_eq!(module.shed_surplus(0), None);
    module.check();
}

#[test]
fn shedding_never_exceeds_what_is_asked() {
    let module = Module::colored(8192);
    assert_eq!(module.add(1024, 9), 0);
    assert_eq!(module.shed(0), None);
    assert_eq!(module.shed(3).unwrap().1, 1);
    assert_eq!(module.shed(1).unwrap().1, 0);
}

#[test]
fn counters_only_rise_when_the_map_changes() {
    let mut module = Module::colored(8192);
    assert_eq!(module.add(0, 4), 0);
    while module.take(None, false).is_ok() {}
    let before = module.counters();
    module.set_map("12\n13\n").unwrap();
    assert_eq!(module.counters(), before);
    assert_eq!(module.add(0, 4), 0);
    assert!(module.take(None, false).is_ok());
    assert_eq!(module.counters().grants, before.grants + 1);
}

#[test]
fn slots_run_out_with_a_reason() {
    let module = Module::colored(8192);
    let mut seats = [Seat::default(); SLOTS];
    for (seat, ask) in seats.iter_mut().zip(["0", "1", "2", "3"]) {
        module.reserve(seat, ask).unwrap();
    }
    let why = module.reserve(&mut Seat::default(), "4").unwrap_err();
    assert!(why.contains("slots"), "{why}");
}

/// Blocks come and go, processes come and go, and everything is recounted on the way.
#[test]
fn frames_that_the_kernel_has_are_for_those_who_may_have_their_color() {
    let module = Module::colored(8192);
    let may = |seat: Option<&Seat>, pfn| {
        let mut given = Given {
            pfn,
            color: 99,
            fallback: 1,
        };
        let seat = seat.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the core is set up, the seat is valid or null.
        let may = unsafe { entry::pb_core_may_have(module.core, seat, &raw mut given) };
        assert_eq!((u64::from(given.color), given.fallback), (pfn % 16, 0));
        may
    };
    let mut seat = Seat::default();
    assert!(may(None, 18) && may(Some(&seat), 18));
    module.reserve(&mut seat, "2-3").unwrap();
    assert!(may(Some(&seat), 18) && !may(Some(&seat), 20));
    assert!(!may(None, 18) && may(None, 20));
    // SAFETY: the core is set up, the seat is valid.
    unsafe { entry::pb_core_leave(module.core, &mut seat) };
    assert!(may(None, 18) && may(Some(&seat), 20));
}

#[test]
fn sets_have_numbers_and_changes_of_them_are_seen() {
    let module = Module::colored(8192);
    // SAFETY: the core is set up, the seat is valid.
    let set_of = |seat: &Seat| unsafe { entry::pb_core_set_of(module.core, seat) };
    // SAFETY: the core is set up.
    let version = || unsafe { entry::pb_core_version(module.core) };
    let (mut one, mut other) = (Seat::default(), Seat::default());
    assert_eq!(set_of(&one), 0);
    let at_first = version();
    module.reserve(&mut one, "0-3").unwrap();
    module.reserve(&mut other, "4-5").unwrap();
    let reserved = version();
    assert_ne!(at_first, reserved);
    assert!(set_of(&one) != 0 && set_of(&other) != 0 && set_of(&one) != set_of(&other));
    module.reserve(&mut one, "0-2").unwrap();
    let resized = version();
    assert_ne!(reserved, resized);
    // SAFETY: as above.
    unsafe { entry::pb_core_leave(module.core, &mut one) };
    assert_ne!(version(), resized, "the set is gone");
}

#[test]
fn random_operations_keep_the_books() {
    let module = Module::colored(16384);
    let mut seats: Vec<Seat> = Vec::new();
    let mut held: BTreeSet<u64> = (0..16384).collect();
    let mut x = 12345u64;
    let mut draw = |n: u64| {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (x >> 33) % n
    };
    for step in 0..20000 {
        match draw(8) {
            0 => {
                let order = draw(10) as u32;
                let first = draw(16384 >> order) << order;
                let block = first..first + (1 << order);
                if block.clone().all(|pfn| held.contains(&pfn)) {
                    assert_eq!(module.add(first, order), 0);
                    block.for_each(|pfn| assert!(held.remove(&pfn)));
                } else {
                    assert_eq!(module.add(first, order), EINVAL);
                }
            }
            1 => {
                let most = draw(64);
                let found = match draw(2) {
                    0 => module.shed(most),
                    _ => module.shed_surplus(most),
                };
                if let Some((first, order)) = found {
                    (first..first + (1 << order)).for_each(|pfn| assert!(held.insert(pfn)));
                }
            }
            2 if seats.len() < 20 => {
                let mut seat = Seat::default();
                let first = draw(15);
                let ask = format!("{first}-{}", first + draw(3).min(15 - first));
                if module.reserve(&mut seat, &ask).is_ok() {
                    seats.push(seat);
                }
            }
            3 if !seats.is_empty() => {
                let mut seat = seats.swap_remove(draw(seats.len() as u64) as usize);
                // SAFETY: as above.
                unsafe { entry::pb_core_leave(module.core, &mut seat) };
            }
            _ => {
                let n = seats.len() as u64;
                let seat = draw(n + 1);
                let seat = seats.get_mut(seat as usize);
                let allowed = module.colors_of(seat.as_deref());
                if let Ok(given) = module.take(seat, false) {
                    assert!(held.insert(given.pfn));
                    let set: piebald_units::ColorSet = allowed.parse().unwrap();
                    assert!(set.contains(piebald_units::Color(given.color as u16)));
                    assert_eq!(given.fallback, 0);
                }
            }
        }
        if step % 500 == 0 {
            module.check();
        }
    }
    module.check();
}
