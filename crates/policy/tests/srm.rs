//! What SRM-buffer does at its edges: odd input, too many sequences, too little memory.

use crate::srm_kit::{
    VecSrm, color, frame, large, lengths, more, only, plain_map, small, spent, with_threshold, zone,
};
use piebald_policy::{
    color_map::ColorMap,
    contract::{
        Mode,
        replacement::{Gone, Insert, PageRef, Replacement, State, Touch},
    },
    replacement::{Config as Room, Link as OrderLink, Lru, Slots},
    srm::{
        AddError, Answer, Config, ConfigError, FileFault, Holds, How, Link, List, Sequence, Sets,
        Slices, Srm, Supply, VmTurn,
    },
};
use piebald_units::{Color, ColorSet, Pfn, Picos};

const NOW: Picos = Picos(0);

/// Four colours by the lowest bits, with all of memory in the zone.
fn full(frames: u64, config: Config) -> VecSrm {
    let mut srm = zone(plain_map(0, 2), frames, 0, config);
    (0..frames).for_each(|pfn| srm.add_free(Pfn(pfn)).unwrap());
    srm
}

fn set(colors: &[u16]) -> ColorSet {
    let mut set = ColorSet::EMPTY;
    for color in colors {
        set.insert(Color(*color));
    }
    set
}

#[test]
fn a_sequence_is_cut_at_the_threshold_and_changes_color() {
    let mut srm = full(400, with_threshold(3));
    let mut file = Sequence::NONE;
    let colors: Vec<u16> = (0..14)
        .map(|_| color(large(&mut srm, &mut file, spent())))
        .collect();
    assert_eq!(colors, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 0]);
    assert_eq!((file.color(), file.blocks()), (Some(Color(0)), 2));
}

/// The table in docs/srm.md.
#[test]
fn the_worked_example_of_the_documentation() {
    let mut srm = zone(plain_map(0, 2), 64, 0, with_threshold(3));
    let (mut file, mut second) = (Sequence::NONE, Sequence::NONE);
    let mut turn = VmTurn::default();
    assert_eq!(large(&mut srm, &mut file, more()), Answer::Refill);
    let mut next = [0u64, 1, 2, 3];
    let filled = srm.fill(100, |c| {
        next[usize::from(c.0)] += 4;
        Some(Pfn(next[usize::from(c.0)]))
    });
    assert_eq!((filled, lengths(&srm)), (Ok(16), vec![4, 4, 4, 4]));

    let mut step = |what: &str, expected: u16, zone: [u32; 4]| {
        let answer = match what {
            "block" => large(&mut srm, &mut file, more()),
            "small" => small(&mut srm, &mut second, more()),
            _ => srm.vm_fault(&mut turn, more()),
        };
        assert_eq!(color(answer), expected);
        assert_eq!(lengths(&srm), zone);
    };
    step("block", 0, [3, 4, 4, 4]);
    step("small", 1, [3, 3, 4, 4]);
    step("block", 0, [2, 3, 4, 4]);
    step("block", 0, [1, 3, 4, 4]);
    step("block", 2, [1, 3, 3, 4]);
    step("block", 2, [1, 3, 2, 4]);
    step("block", 2, [1, 3, 1, 4]);
    step("block", 3, [1, 3, 1, 3]);
    step("memory", 0, [0, 3, 1, 3]);
    step("memory", 1, [0, 2, 1, 3]);
    step("memory", 2, [0, 2, 0, 3]);
    step("block", 3, [0, 2, 0, 2]);
    step("memory", 3, [0, 2, 0, 1]);
    assert_eq!(srm.vm_fault(&mut turn, more()), Answer::Refill);
    let marked = (0..4).filter(|c| srm.standing(Color(*c)).marked);
    assert_eq!(marked.collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn small_files_of_a_process_are_one_sequence_and_a_large_one_is_its_own() {
    let mut srm = full(400, with_threshold(4));
    let (mut file, mut process) = (Sequence::NONE, Sequence::NONE);
    let mut read = |file_blocks| {
        color(srm.file_fault(FileFault {
            file: &mut file,
            process: &mut process,
            file_blocks,
            limited: spent(),
        }))
    };
    // T_l blocks are not more than T_l.
    assert_eq!([read(1), read(3), read(4)], [0, 0, 0]);
    assert_eq!([read(5), read(6)], [1, 1], "the file grew");
    assert_eq!(
        read(2),
        0,
        "the process's sequence goes on: the file shrank"
    );
    assert_eq!(file, Sequence::NONE);
    assert!(!srm.standing(Color(1)).marked, "and ended its own");
    assert_eq!(process.blocks(), 4);
}

#[test]
fn two_sequences_never_get_one_list_while_there_are_others() {
    let mut srm = full(400, with_threshold(3));
    let mut files = [Sequence::NONE; 4];
    for _ in 0..40 {
        let mut seen = Vec::new();
        for file in &mut files[..3] {
            seen.push(color(large(&mut srm, file, spent())));
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 3);
    }
}

/// Five sequences on four lists: the fifth joins the one that rests longest; its mark is
/// its own, and the first that leaves takes nobody's.
#[test]
fn more_sequences_than_lists_share_the_most_restful_ones() {
    let mut srm = full(400, with_threshold(3));
    let mut files = [Sequence::NONE; 5];
    for file in &mut files[..4] {
        large(&mut srm, file, more());
    }
    // File 0 is read once more: list 1 rests longest.
    large(&mut srm, &mut files[0], more());
    let taken = frame(large(&mut srm, &mut files[4], more()));
    assert_eq!((taken.color, taken.how), (Color(1), How::Shared));
    srm.end(&mut files[1]);
    assert!(srm.standing(Color(1)).marked, "file 4 uses it still");
    srm.end(&mut files[4]);
    assert!(!srm.standing(Color(1)).marked);
    assert_eq!(srm.counters().shared, 1);
    srm.validate().unwrap();
}

#[test]
fn a_hundred_sequences_on_four_lists_all_get_their_blocks() {
    let mut srm = full(4000, with_threshold(5));
    let mut files = [Sequence::NONE; 100];
    for round in 0..30 {
        for file in &mut files {
            let taken = frame(large(&mut srm, file, more()));
            assert_eq!(file.color(), Some(taken.color));
        }
        srm.validate().unwrap();
        let pages = lengths(&srm);
        let (least, most) = (pages.iter().min().unwrap(), pages.iter().max().unwrap());
        assert!(most - least < 200, "round {round}: {pages:?}");
    }
}

/// Three files are open but no longer read; a fourth is. List 0 was used at block 1, and
/// the fourth file's sequence is cut before blocks 7, 10, 13 and 16.
#[test]
fn an_idle_mark_is_taken_over_when_its_time_is_over_and_not_before() {
    // 11 blocks lie between block 1 and block 13; a turn is 4 colours of 3.
    for (idle_after, at) in [(Some(11), 16), (Some(10), 13), (None, 16)] {
        let config = Config {
            idle_after,
            ..with_threshold(3)
        };
        let mut srm = full(400, config);
        let mut idle = [Sequence::NONE; 3];
        for file in &mut idle {
            large(&mut srm, file, more());
        }
        let mut busy = Sequence::NONE;
        for block in 4..19 {
            let taken = frame(large(&mut srm, &mut busy, more()));
            let expected = if block < at { 3 } else { 0 };
            assert_eq!(
                taken.color,
                Color(expected),
                "{idle_after:?}: block {block}"
            );
            assert_eq!(taken.how == How::Idle, block == at);
            if block == at + 2 {
                break;
            }
        }
        // The sequence that lost its list goes on there, and takes no mark off.
        large(&mut srm, &mut idle[0], more());
        assert_eq!(idle[0].color(), Some(Color(0)));
        srm.end(&mut idle[0]);
        assert!(srm.standing(Color(0)).marked);
        srm.validate().unwrap();
    }
}

#[test]
fn a_list_that_runs_dry_cuts_the_sequence_if_no_refill_helps() {
    let mut srm = zone(plain_map(0, 1), 32, 0, with_threshold(3));
    (0..8).for_each(|pfn| srm.add_free(Pfn(pfn)).unwrap());
    let mut file = Sequence::NONE;
    assert_eq!(color(large(&mut srm, &mut file, more())), 0);
    // A program takes the rest of colour 0.
    while srm.standing(Color(0)).pages > 0 {
        let mut turn = VmTurn::default();
        frame(srm.vm_fault(&mut turn, spent()));
    }
    assert_eq!(large(&mut srm, &mut file, more()), Answer::Refill);
    assert_eq!(file.blocks(), 1, "nothing has changed");
    let taken = frame(large(&mut srm, &mut file, spent()));
    assert_eq!((taken.color, taken.how), (Color(1), How::Meant));
    assert_eq!((file.blocks(), srm.counters().cut), (1, 1));
}

#[test]
fn an_empty_zone_says_so_and_names_the_color_that_would_do() {
    let mut srm = zone(plain_map(0, 2), 32, 0, with_threshold(1));
    let (mut file, mut turn) = (Sequence::NONE, VmTurn::default());
    assert_eq!(large(&mut srm, &mut file, more()), Answer::Refill);
    assert_eq!(large(&mut srm, &mut file, spent()), Answer::Empty(None));
    for expected in [0, 1, 2, 3, 0] {
        let answer = srm.vm_fault(&mut turn, spent());
        assert_eq!(answer, Answer::Empty(Some(Color(expected))));
    }
    assert_eq!(srm.take_any(), None);
    assert_eq!(srm.counters().empty, 6);
}

#[test]
fn bound_requesters_stay_in_their_colors_and_hints_leave_when_they_are_out() {
    let mut srm = full(40, with_threshold(2));
    let own = set(&[2]);
    let mut file = Sequence::NONE;
    for _ in 0..10 {
        let taken = frame(large(&mut srm, &mut file, only(&own, Mode::Hard)));
        assert_eq!(taken.color, Color(2));
    }
    let bound = large(&mut srm, &mut file, only(&own, Mode::Hard));
    assert_eq!(
        bound,
        Answer::Empty(None),
        "two blocks: it would begin anew"
    );
    let mut turn = VmTurn::default();
    let bound = srm.vm_fault(&mut turn, only(&own, Mode::Hard));
    assert_eq!(bound, Answer::Empty(Some(Color(2))));
    let hint = frame(large(&mut srm, &mut file, only(&own, Mode::Hint)));
    assert_eq!(hint.how, How::Outside);
    let hint = frame(srm.vm_fault(&mut turn, only(&own, Mode::Hint)));
    assert_eq!((hint.how, hint.color), (How::Outside, Color(3)));
    // Colours that the machine does not have.
    let nowhere = only(&ColorSet::EMPTY, Mode::Hard);
    assert_eq!(large(&mut srm, &mut file, nowhere), Answer::Empty(None));
    let unknown = set(&[4, 77, 4095]);
    assert_eq!(
        srm.vm_fault(&mut turn, only(&unknown, Mode::Hard)),
        Answer::Empty(None)
    );
    srm.validate().unwrap();
}

#[test]
fn a_program_takes_the_next_color_where_that_of_the_turn_is_out() {
    let mut srm = zone(plain_map(0, 2), 32, 0, with_threshold(1));
    [0u64, 4, 2, 6, 3]
        .into_iter()
        .for_each(|pfn| srm.add_free(Pfn(pfn)).unwrap());
    let mut turn = VmTurn::default();
    let taken: Vec<(u16, How)> = (0..5)
        .map(|_| frame(srm.vm_fault(&mut turn, spent())))
        .map(|taken| (taken.color.0, taken.how))
        .collect();
    let (meant, next) = (How::Meant, How::Next);
    assert_eq!(
        taken,
        [(0, meant), (2, next), (3, meant), (0, meant), (2, next)]
    );
}

#[test]
fn free_pages_go_before_cold_ones_and_the_oldest_cold_one_first() {
    let mut srm = zone(plain_map(0, 0), 32, 0, with_threshold(2));
    srm.add_cold(Pfn(5)).unwrap();
    srm.add_cold(Pfn(3)).unwrap();
    srm.add_free(Pfn(9)).unwrap();
    srm.add_cold(Pfn(7)).unwrap();
    srm.add_free(Pfn(8)).unwrap();
    let frames: Vec<u64> = srm.frames_of(Color(0)).map(|f| f.0).collect();
    assert_eq!(frames, [8, 9, 5, 3, 7]);
    let mut file = Sequence::NONE;
    for expected in frames {
        let taken = frame(large(&mut srm, &mut file, spent()));
        assert_eq!(taken.frame, Pfn(expected));
        assert_eq!(taken.holds == Holds::Free, expected > 7);
    }
}

#[test]
fn what_can_be_spared_is_free_pages_then_long_lists_then_any() {
    let mut srm = zone(plain_map(0, 1), 32, 0, with_threshold(2));
    [1u64, 3, 0, 2, 4, 6]
        .into_iter()
        .for_each(|pfn| srm.add_cold(Pfn(pfn)).unwrap());
    srm.add_free(Pfn(5)).unwrap();
    let spared: Vec<u64> = std::iter::from_fn(|| srm.take_any())
        .map(|taken| taken.frame.0)
        .collect();
    // 5 is free; 0 and 2 leave the long list short; then round and round.
    assert_eq!(spared, [5, 0, 2, 1, 4, 3, 6]);
    assert_eq!(srm.counters().any, 7);
}

/// A frame for a block of a large file could not be used.
fn decline(srm: &mut VecSrm, file: &mut Sequence) {
    srm.declined(FileFault {
        file,
        process: &mut { Sequence::NONE },
        file_blocks: u64::MAX,
        limited: more(),
    });
}

#[test]
fn a_declined_block_is_not_counted() {
    let mut srm = full(40, with_threshold(3));
    let mut file = Sequence::NONE;
    let mut blocks = 0;
    // Every second frame cannot be used.
    for n in 0..12 {
        let taken = frame(large(&mut srm, &mut file, spent()));
        if n % 2 == 0 {
            decline(&mut srm, &mut file);
            continue;
        }
        assert_eq!(taken.color.0, blocks / 3, "three usable blocks in a color");
        blocks += 1;
    }
    decline(&mut srm, &mut { Sequence::NONE });
    assert_eq!(srm.counters().declined, 7);
}

#[test]
fn foreign_and_repeated_frames_are_refused_and_change_nothing() {
    let mut srm = zone(plain_map(0, 2), 32, 1000, with_threshold(1));
    for pfn in [0, 999, 1032, u64::MAX] {
        assert_eq!(srm.add_free(Pfn(pfn)), Err(AddError::Foreign(Pfn(pfn))));
        assert_eq!(srm.add_cold(Pfn(pfn)), Err(AddError::Foreign(Pfn(pfn))));
        assert_eq!(srm.remove(Pfn(pfn)), None);
        assert!(!srm.hit(Pfn(pfn)));
    }
    assert_eq!(srm.remove(Pfn(1005)), None, "ours, but not there");
    assert!(!srm.hit(Pfn(1005)));
    srm.add_cold(Pfn(1031)).unwrap();
    srm.add_free(Pfn(1000)).unwrap();
    for pfn in [1000, 1031] {
        assert_eq!(srm.add_free(Pfn(pfn)), Err(AddError::Twice(Pfn(pfn))));
        assert_eq!(srm.add_cold(Pfn(pfn)), Err(AddError::Twice(Pfn(pfn))));
    }
    assert!(!srm.hit(Pfn(1000)), "a free page is used by nobody");
    assert_eq!(srm.pages(), 2);
    assert_eq!(
        srm.add_cold(Pfn(1031)).unwrap_err().to_string(),
        "pfn 0x407 is in the zone already"
    );
    srm.validate().unwrap();
}

/// Records that the zone did not write: from another machine, or overwritten.
#[test]
fn a_sequence_or_turn_from_elsewhere_begins_anew() {
    let mut other = zone(plain_map(0, 6), 1000, 0, with_threshold(2));
    (0..1000).for_each(|pfn| other.add_free(Pfn(pfn)).unwrap());
    let (mut file, mut turn) = (Sequence::NONE, VmTurn::default());
    for _ in 0..101 {
        large(&mut other, &mut file, spent());
        other.vm_fault(&mut turn, spent());
    }
    assert_eq!((file.color(), turn.color()), (Some(Color(50)), Color(37)));
    let mut srm = full(100, with_threshold(2));
    assert_eq!(color(large(&mut srm, &mut file, spent())), 0);
    assert_eq!(color(srm.vm_fault(&mut turn, spent())), 0);
    srm.validate().unwrap();
    // A copy of a record: both may end.
    let mut copy = file;
    srm.end(&mut file);
    srm.end(&mut copy);
    srm.validate().unwrap();
}

#[test]
fn configurations_that_cannot_work_are_refused_with_what_is_allowed() {
    let refuse = |config: Config, frames: u64, colors: u32| {
        let error = config.limits(frames, colors).unwrap_err();
        error.to_string()
    };
    let paper = Config::PAPER;
    let cases = [
        (
            refuse(with_threshold(0), 1 << 18, 64),
            "threshold = 0 pages; allowed: 1 to 4095 (262144 frames, 64 colors)",
        ),
        (
            refuse(with_threshold(4096), 1 << 18, 64),
            "threshold = 4096 pages; allowed: 1 to 4095 (262144 frames, 64 colors)",
        ),
        (
            refuse(with_threshold(u32::MAX), 1 << 28, 4096),
            "threshold = 4294967295 pages; allowed: 1 to 65535 (268435456 frames, 4096 colors)",
        ),
        (
            refuse(with_threshold(1), 127, 64),
            "threshold = 1 pages; none is allowed: 127 frames are less than two for each of \
             64 colors",
        ),
        (refuse(paper, 0, 64), "frames = 0; allowed: 1 to 268435456"),
        (
            refuse(paper, (1 << 28) + 1, 64),
            "frames = 268435457; allowed: 1 to 268435456",
        ),
        (
            refuse(
                Config {
                    max_pages: Some(16_447),
                    ..paper
                },
                1 << 18,
                64,
            ),
            "max_pages = 16447; allowed: 16448 to 262144",
        ),
        (
            refuse(
                Config {
                    max_pages: Some(262_145),
                    ..paper
                },
                1 << 18,
                64,
            ),
            "max_pages = 262145; allowed: 16448 to 262144",
        ),
        (
            refuse(
                Config {
                    idle_after: Some(0),
                    ..paper
                },
                1 << 18,
                64,
            ),
            "idle_after = 0 blocks; allowed: 1 and more",
        ),
    ];
    for (told, expected) in cases {
        assert_eq!(told, expected);
    }
    let largest = with_threshold(4095).limits(1 << 18, 64).unwrap();
    assert_eq!(largest.max_pages, 1 << 18, "no more than memory");
    assert!(with_threshold(1).limits(128, 64).is_ok());
    assert_eq!(Config::default(), Config::PAPER);
    assert_eq!(Config::SMALL.threshold, 128);
}

#[test]
fn memory_that_is_too_short_is_refused_by_name() {
    let store = |links: usize, lists: usize| Slices {
        map: ColorMap::PLAIN,
        links: vec![Link::OUT; links],
        lists: vec![List::EMPTY; lists],
        sets: Box::new(Sets::EMPTY),
    };
    let new = |links, lists, origin| {
        Srm::new(store(links, lists), 10, Pfn(origin), with_threshold(1)).map(|_| ())
    };
    assert_eq!(new(10, 1, 0), Ok(()));
    assert_eq!(
        new(12, 3, u64::MAX - 10),
        Ok(()),
        "more is lent than needed"
    );
    let short = |name, lent, needed| Err(ConfigError::Store { name, lent, needed });
    assert_eq!(new(9, 1, 0), short("frames", 9, 10));
    assert_eq!(new(10, 0, 0), short("colors", 0, 1));
    assert_eq!(
        new(10, 1, u64::MAX - 9),
        Err(ConfigError::Origin(u64::MAX - 9))
    );
}

#[test]
fn thresholds_change_while_pages_are_in_the_zone() {
    let mut srm = full(40, with_threshold(3));
    let mut file = Sequence::NONE;
    large(&mut srm, &mut file, spent());
    large(&mut srm, &mut file, spent());
    assert_eq!(srm.short_colors(), 0);
    srm.reconfigure(with_threshold(9)).unwrap();
    assert_eq!(srm.short_colors(), 1);
    srm.validate().unwrap();
    assert!(srm.reconfigure(with_threshold(10)).is_err());
    assert_eq!(srm.limits().threshold, 9, "nothing has changed");
    srm.reconfigure(with_threshold(1)).unwrap();
    srm.validate().unwrap();
    let taken = frame(large(&mut srm, &mut file, spent()));
    assert_eq!(taken.color, Color(1), "it is longer than allowed now");
}

#[test]
fn a_fill_asks_for_short_colors_only_and_stops_where_it_is_told() {
    let mut srm = zone(plain_map(0, 2), 64, 0, with_threshold(2));
    [1u64, 5, 9]
        .into_iter()
        .for_each(|pfn| srm.add_free(Pfn(pfn)).unwrap());
    let mut asked = Vec::new();
    let mut free: Vec<Pfn> = [0u64, 4, 8, 2, 3].map(Pfn).into();
    let mut give = |c: Color| {
        asked.push(c.0);
        let at = free.iter().position(|f| f.0 % 4 == u64::from(c.0))?;
        Some(free.remove(at))
    };
    assert_eq!(srm.fill(2, &mut give), Ok(2));
    assert_eq!(srm.fill(100, &mut give), Ok(3));
    assert_eq!(asked, [0, 0, 0, 2, 2, 3, 3]);
    assert_eq!(lengths(&srm), [3, 3, 1, 1]);
    // A frame of another colour than asked for comes into its own list.
    assert_eq!(srm.fill(1, |_| Some(Pfn(12))), Ok(1));
    assert_eq!(lengths(&srm), [4, 3, 1, 1]);
    // One that cannot be added is the host's still.
    let error = srm.fill(9, |_| Some(Pfn(12)));
    assert_eq!(error, Err(AddError::Twice(Pfn(12))));
    let error = srm.fill(9, |_| Some(Pfn(64)));
    assert_eq!(error, Err(AddError::Foreign(Pfn(64))));
    srm.validate().unwrap();
}

/// An order of 40 pages in frames of their own number.
fn order_of(pages: u32) -> Lru<Slots<Vec<OrderLink>, Vec<u8>>> {
    let config = Room::new(pages);
    let mut order = Lru::new(Slots::collect(config.slots().unwrap()), config).unwrap();
    for page in (0..pages).map(PageRef) {
        order.insert(page, &Insert::default(), NOW);
    }
    order
}

#[test]
fn a_pull_takes_the_coldest_pages_that_may_go() {
    let mut srm = zone(plain_map(0, 2), 40, 0, with_threshold(1));
    let mut order = order_of(40);
    let mut batch = [PageRef(0); 6];
    // Pages 1 and 3 may not go; frames from 40 on are not the zone's.
    let frame_of = |page: PageRef| match page.0 {
        1 | 3 => None,
        4 => Some(Pfn(40)),
        n => Some(Pfn(u64::from(n))),
    };
    let pulled = srm.pull(&mut order, &mut batch, frame_of);
    assert_eq!((pulled.pages, pulled.seen), (3, 6));
    for (page, state) in [
        (0, State::Detached),
        (1, State::Resident),
        (2, State::Detached),
        (4, State::Resident),
        (5, State::Detached),
    ] {
        assert_eq!(order.state(PageRef(page)), state, "page {page}");
    }
    // 3 and 7 are of colour 3; 1, 3 and 4 are still at the cold end.
    while srm.wants_pages() && srm.pull(&mut order, &mut batch, frame_of).pages > 0 {}
    assert_eq!(lengths(&srm), [2, 2, 3, 2], "until the shortest has 2");
    assert_eq!(srm.pull(&mut order, &mut batch, frame_of).seen, 0);

    // A use of a page in the zone brings it back; of another it only counts.
    for page in [2, 20] {
        let frame = Pfn(u64::from(page));
        srm.used(&mut order, PageRef(page), frame, Touch::default(), NOW);
        assert_eq!(order.state(PageRef(page)), State::Resident);
    }
    assert_eq!(srm.counters().hits, 1);
    let mut hottest = [PageRef(0); 40];
    let all = order.propose(&mut hottest);
    assert_eq!(hottest[..all][all - 2..], [PageRef(2), PageRef(20)]);
    order.forget(PageRef(0), Gone::Evicted);
    order.validate().unwrap();
    srm.validate().unwrap();
}

/// The cold end is of one colour: the zone takes what its bound allows and no more, then
/// a page for each that leaves.
#[test]
fn the_zone_does_not_pull_all_of_memory_for_a_color_that_is_not_there() {
    let mut srm = zone(plain_map(0, 2), 1 << 12, 0, with_threshold(4));
    let mut order = order_of(1000);
    let mut batch = [PageRef(0); 64];
    // All pages lie in frames of colour 1.
    let frame_of = |page: PageRef| Some(Pfn(u64::from(page.0) * 4 + 1));
    let mut file = Sequence::NONE;
    let mut refills = 0;
    for _ in 0..100 {
        let mut answer = large(&mut srm, &mut file, more());
        while answer == Answer::Refill {
            refills += 1;
            while srm.pull(&mut order, &mut batch, frame_of).pages > 0 {}
            answer = large(&mut srm, &mut file, more());
        }
        assert_eq!(color(answer), 1);
        assert!(srm.pages() <= 40);
    }
    assert_eq!(srm.limits().max_pages, 40);
    assert!(refills <= 100);
    assert_eq!(order.resident(), 1000, "the host evicts, not the zone");
}

#[test]
fn the_supply_decides_whether_a_refill_is_asked_for() {
    let mut srm = zone(plain_map(0, 1), 64, 0, with_threshold(4));
    (0..4).for_each(|pfn| srm.add_free(Pfn(pfn)).unwrap());
    let mut process = Sequence::NONE;
    assert_eq!(small(&mut srm, &mut process, more()), Answer::Refill);
    let taken = frame(small(&mut srm, &mut process, spent()));
    assert_eq!((taken.how, taken.color), (How::Short, Color(0)));
    // The sequence goes on in the short list without asking.
    assert_eq!(frame(small(&mut srm, &mut process, more())).color, Color(0));
    assert_eq!(more().supply, Supply::More);
    assert_eq!(srm.counters().refills, 1);
}

#[test]
fn a_map_of_one_color_and_one_of_4096_work() {
    let mut plain = zone(ColorMap::PLAIN, 20, 0, with_threshold(3));
    (0..20).for_each(|pfn| plain.add_free(Pfn(pfn)).unwrap());
    let (mut a, mut b) = (Sequence::NONE, Sequence::NONE);
    for _ in 0..10 {
        assert_eq!(color(large(&mut plain, &mut a, spent())), 0);
        assert_eq!(color(large(&mut plain, &mut b, spent())), 0);
    }
    let mut wide = zone(plain_map(0, 12), 1 << 14, 0, with_threshold(1));
    (0..1 << 13).for_each(|pfn| wide.add_free(Pfn(pfn)).unwrap());
    let (mut turn, mut file) = (VmTurn::default(), Sequence::NONE);
    for expected in (0..4096).chain(0..100) {
        assert_eq!(color(wide.vm_fault(&mut turn, spent())), expected);
    }
    // Colours from 100 on have one page left: none is long.
    let taken = frame(large(&mut wide, &mut file, spent()));
    assert_eq!((taken.color, taken.how), (Color(100), How::Short));
    wide.validate().unwrap();
}
