//! Frames that are dealt, through the functions that the C side calls.

use std::ptr;

use crate::{
    entry,
    host::{Given, Seat},
    tests::{EAGAIN, Module},
};

/// Frames that the kernel has at hand, and how many of the first may be had.
struct Spare {
    frames: Vec<Given>,
    fitting: usize,
}

impl Spare {
    const NONE: Self = Self {
        frames: Vec::new(),
        fitting: 0,
    };

    /// More come; their colours are found out.
    fn come(&mut self, pfns: &[u64]) {
        let given = |pfn: &u64| Given {
            pfn: *pfn,
            color: 99,
            fallback: 1,
        };
        self.frames.extend(pfns.iter().map(given));
    }

    /// Up to `room` of them that are dealt.
    fn deal(&mut self, module: &Module, seat: Option<&mut Seat>, room: usize) -> Vec<u64> {
        let mut out = vec![Given::default(); room];
        // SAFETY: the core is set up, the seat is valid or null, the arrays have the lengths beside them.
        let dealt = unsafe {
            entry::pb_core_deal_spare(
                module.core,
                seat.map_or(ptr::null_mut(), ptr::from_mut),
                self.frames.as_mut_ptr(),
                self.frames.len(),
                &mut self.fitting,
                out.as_mut_ptr(),
                room,
            )
        };
        self.frames.truncate(self.frames.len() - dealt);
        assert!(self.fitting <= self.frames.len());
        pfns(&out[..dealt])
    }

    /// Those that are left: such as may be had, and others.
    fn left(&self) -> (Vec<u64>, Vec<u64>) {
        let (fitting, others) = self.frames.split_at(self.fitting);
        (pfns(fitting), pfns(others))
    }
}

fn pfns(frames: &[Given]) -> Vec<u64> {
    frames.iter().map(|g| g.pfn).collect()
}

/// Up to `room` frames of the pool that are dealt.
fn deal_pool(module: &Module, seat: Option<&mut Seat>, room: usize) -> Vec<u64> {
    let mut out = vec![Given::default(); room];
    // SAFETY: as above.
    let dealt = unsafe {
        let seat = seat.map_or(ptr::null_mut(), ptr::from_mut);
        entry::pb_core_deal_pool(module.core, 0, seat, out.as_mut_ptr(), room)
    };
    pfns(&out[..dealt])
}

#[test]
fn spare_frames_are_dealt_as_they_come_and_the_pools_in_turn() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "2-4").unwrap();
    assert_eq!(module.add(0, 4), 0); // one frame of each colour
    let mut spare = Spare::NONE;
    // 40 has a colour that it may not have.
    spare.come(&[40, 34, 50, 66, 35]);
    let dealt = spare.deal(&module, Some(&mut seat), 3);
    assert_eq!(dealt, [34, 50, 66]);
    assert_eq!(spare.left(), (vec![35], vec![40]));
    spare.come(&[36, 41, 51]);
    spare.frames.swap_remove(1); // 40 goes
    let dealt = spare.deal(&module, Some(&mut seat), 10);
    assert_eq!(dealt, [35, 51, 36]);
    assert_eq!(spare.left(), (vec![], vec![41]));
    // 2, 3 and 4 of the pool, and it has no other 2.
    assert_eq!(deal_pool(&module, Some(&mut seat), 10), [2, 3, 4]);
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
    // Of 3 alone: 16 more than a third of what it gets.
    let of_3: Vec<u64> = (0..100).map(|i| 16 * i + 3).collect();
    let mut spare = Spare::NONE;
    spare.come(&of_3);
    let dealt = spare.deal(&module, Some(&mut seat), 100);
    assert_eq!(
        (&dealt[..], &spare.left().0[..]),
        (&of_3[..23], &of_3[23..])
    );
    // They are dealt first when the others have come.
    let of_2_and_4: Vec<u64> = (200..210).flat_map(|i| [16 * i + 2, 16 * i + 4]).collect();
    spare.come(&of_2_and_4);
    let dealt = spare.deal(&module, Some(&mut seat), 20);
    assert_eq!(dealt, of_2_and_4);
    let dealt = spare.deal(&module, Some(&mut seat), 100);
    assert_eq!(dealt, of_3[23..33]);
    // Another change of the sets begins anew: 16 more than half, and the next.
    module.reserve(&mut seat, "3-4").unwrap();
    let dealt = spare.deal(&module, Some(&mut seat), 100);
    assert_eq!(dealt, of_3[33..64]);
    module.check();
}

#[test]
fn colors_that_cannot_be_had_are_not_waited_for() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "2-4").unwrap();
    let mut spare = Spare::NONE;
    spare.come(&(0..100).map(|i| 16 * i + 3).collect::<Vec<_>>());
    assert_eq!(spare.deal(&module, Some(&mut seat), 100).len(), 23);
    assert_eq!(spare.deal(&module, Some(&mut seat), 100).len(), 0);
    // There is one of 3 alone in the pool: neither its turn, nor is another to be had.
    assert_eq!(module.add(16 * 101 + 3, 0), 0);
    assert_eq!(module.reach(Some(&mut seat), 0), Err(EAGAIN));
    assert_eq!(module.reach(Some(&mut seat), 1).map(|g| g.color), Ok(3));
    assert_eq!(spare.deal(&module, Some(&mut seat), 100).len(), 23);
    module.check();
}

#[test]
fn of_more_colors_than_are_counted_all_are_dealt_in_turn() {
    let mut module = Module::colored(8192);
    module.set_map("12\n13\n14\n15\n16\n17\n18\n").unwrap();
    let mut seat = Seat::default();
    module.reserve(&mut seat, "2-4").unwrap();
    let mut spare = Spare::NONE;
    spare.come(&[130, 258, 1, 131, 132, 260]);
    let dealt = spare.deal(&module, Some(&mut seat), 5);
    let colors: Vec<u64> = dealt.iter().map(|pfn| pfn % 128).collect();
    assert_eq!(colors, [2, 3, 4, 2], "there is no other 3");
    assert_eq!((spare.left().0.len(), spare.left().1), (1, vec![1]));
    module.check();
}

#[test]
fn who_has_no_colors_gets_what_nobody_owns() {
    let module = Module::colored(8192);
    let mut seat = Seat::default();
    module.reserve(&mut seat, "9").unwrap();
    assert_eq!(module.add(0, 4), 0); // one frame of each colour
    let mut spare = Spare::NONE;
    // 41 has an owned colour.
    spare.come(&[50, 41, 34, 66, 35]);
    assert_eq!(spare.deal(&module, None, 3), [50, 34, 66]);
    assert_eq!(spare.left(), (vec![35], vec![41]));
    assert_eq!(deal_pool(&module, None, 6), [0, 1, 2, 3, 4, 5]);
    // They are even as well: it had four of 2, and may have 16 more than a fifteenth of what comes.
    let mut spare = Spare::NONE;
    spare.come(&(100..200).map(|i| 16 * i + 2).collect::<Vec<_>>());
    assert_eq!(spare.deal(&module, None, 100).len(), 13);
    module.check();
}
