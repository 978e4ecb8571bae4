//! Partitions of colours: what is granted, what is refused and how, who is in.

use crate::kit::request;
use piebald_policy::{
    contract::Purpose,
    rainbow::{
        Allowed, Ask, Config, ConfigError, Counters, Fit, JoinError, LargeBlocks, Left, MAX_NAME,
        Name, NameError, Partition, PartitionId, Refusal, Registry, Reservation, Resized, Rounding,
        Turn, Turns,
    },
};
use piebald_units::{Color, ColorSet};

type Rainbow = Registry<Vec<Partition>>;

fn rainbow_of(colors: u32, config: Config) -> Rainbow {
    Registry::new(vec![Partition::EMPTY; 8], colors, config).unwrap()
}

fn rainbow() -> Rainbow {
    rainbow_of(16, Config::PAPER)
}

fn set(text: &str) -> ColorSet {
    text.parse().unwrap()
}

/// Reserves, and checks the registry whatever comes of it.
fn ask(rainbow: &mut Rainbow, ask: Ask<'_>) -> Result<PartitionId, Refusal> {
    let id = rainbow.reserve(&Reservation::of(ask));
    assert_eq!(rainbow.validate(), Ok(()));
    id
}

fn exactly(rainbow: &mut Rainbow, colors: &str) -> Result<PartitionId, Refusal> {
    ask(rainbow, Ask::Exactly(&set(colors)))
}

fn resize(rainbow: &mut Rainbow, id: PartitionId, ask: Ask<'_>) -> Result<Resized, Refusal> {
    let resized = rainbow.resize(id, &ask);
    assert_eq!(rainbow.validate(), Ok(()));
    resized
}

fn colors(rainbow: &Rainbow, id: PartitionId) -> String {
    rainbow.get(id).unwrap().colors().to_string()
}

#[test]
fn a_run_comes_first_and_scattered_colors_only_if_there_is_none() {
    let mut rainbow = rainbow();
    exactly(&mut rainbow, "1,3,8").unwrap();
    let run = ask(&mut rainbow, Ask::Count(4)).unwrap();
    assert_eq!(colors(&rainbow, run), "4-7");
    let long = ask(&mut rainbow, Ask::Count(7)).unwrap();
    assert_eq!(colors(&rainbow, long), "9-15");
    let rest = ask(&mut rainbow, Ask::Count(2)).unwrap();
    assert_eq!(colors(&rainbow, rest), "0,2");
    assert_eq!(rainbow.counters().scattered, 2);
}

#[test]
fn the_way_to_choose_colors_can_be_chosen() {
    for (fit, chosen) in [
        (Fit::FirstRun, "1-4"),
        (Fit::AlignedRun, "4-7"),
        (Fit::Scattered, "1-4"),
    ] {
        let config = Config {
            fit,
            ..Config::PAPER
        };
        let mut rainbow = rainbow_of(16, config);
        exactly(&mut rainbow, "0").unwrap();
        let id = ask(&mut rainbow, Ask::Count(4)).unwrap();
        assert_eq!(colors(&rainbow, id), chosen, "{fit:?}");
    }
    let config = Config {
        fit: Fit::AlignedRun,
        ..Config::PAPER
    };
    let mut rainbow = rainbow_of(16, config);
    exactly(&mut rainbow, "0,6,13").unwrap();
    let unaligned = ask(&mut rainbow, Ask::Count(5)).unwrap();
    assert_eq!(
        colors(&rainbow, unaligned),
        "8-12",
        "starts at a multiple of 4"
    );
    let unaligned = ask(&mut rainbow, Ask::Count(4)).unwrap();
    assert_eq!(colors(&rainbow, unaligned), "1-4", "no aligned run is left");
}

#[test]
fn shares_are_rounded_as_configured() {
    let of = |rounding, basis_points| {
        let config = Config {
            rounding,
            ..Config::PAPER
        };
        let mut rainbow = rainbow_of(16, config);
        let id = ask(&mut rainbow, Ask::Share(basis_points))?;
        Ok(rainbow.get(id).unwrap().nr_colors())
    };
    for (basis_points, up, down, nearest) in [
        (10_000, 16, 16, 16),
        (9_999, 16, 15, 16),
        (2_500, 4, 4, 4),
        (2_501, 5, 4, 4),
        (2_812, 5, 4, 4),
        (2_813, 5, 4, 5),
        (625, 1, 1, 1),
    ] {
        let got = [Rounding::Up, Rounding::Down, Rounding::Nearest].map(|r| of(r, basis_points));
        assert_eq!(got, [Ok(up), Ok(down), Ok(nearest)], "{basis_points}");
    }
    let small = |basis_points| {
        Err(Refusal::ShareTooSmall {
            basis_points,
            colors: 16,
        })
    };
    assert_eq!(of(Rounding::Up, 1), Ok(1));
    assert_eq!(of(Rounding::Down, 624), small(624));
    assert_eq!(of(Rounding::Nearest, 312), small(312));
    assert_eq!(of(Rounding::Nearest, 313), Ok(1));
    for basis_points in [0, 10_001, u32::MAX] {
        let refused = Err(Refusal::Share { basis_points });
        assert_eq!(of(Rounding::Up, basis_points), refused);
    }
    assert!(matches!(Ask::percent(25), Ask::Share(2500)));
    assert!(matches!(Ask::percent(u32::MAX), Ask::Share(u32::MAX)));
}

#[test]
fn refusals_say_what_and_how_much() {
    let mut rainbow = rainbow();
    let db = Reservation {
        name: Some(Name::new("db").unwrap()),
        ..Reservation::of(Ask::Count(6))
    };
    let id = rainbow.reserve(&db).unwrap();
    let (beyond, taken) = (set("9,17,30"), set("4-9"));
    let refusals = [
        (
            Reservation::of(Ask::Count(0)),
            "0 colors asked for; allowed: 1 or more",
        ),
        (
            Reservation::of(Ask::Count(11)),
            "11 more colors asked for; 10 can be reserved",
        ),
        (
            Reservation::of(Ask::percent(101)),
            "a share of 101 %; allowed: 0.01 % to 100 %",
        ),
        (
            Reservation { tasks: 0, ..db },
            "0 tasks for a partition; allowed: 1 or more",
        ),
        (
            Reservation {
                current: Some(id),
                ..db
            },
            "the task is in partition 0 already",
        ),
        (db, "partition 0 has that name"),
        (
            Reservation::of(Ask::Exactly(&beyond)),
            "color 17 does not exist; allowed: 0 to 15",
        ),
        (
            Reservation::of(Ask::Exactly(&taken)),
            "color 4 belongs to partition 0",
        ),
        (
            Reservation::of(Ask::Exactly(&ColorSet::EMPTY)),
            "0 colors asked for; allowed: 1 or more",
        ),
    ];
    let before = rainbow.counters();
    for (n, (reservation, text)) in refusals.iter().enumerate() {
        assert_eq!(rainbow.reserve(reservation).unwrap_err().to_string(), *text);
        let refused = before.refused + n as u64 + 1;
        assert_eq!(rainbow.counters(), Counters { refused, ..before });
        assert_eq!(rainbow.validate(), Ok(()));
    }
    let small = Refusal::ShareTooSmall {
        basis_points: 1205,
        colors: 2,
    };
    assert_eq!(
        small.to_string(),
        "a share of 12.05 % is less than one of 2 colors"
    );
    let share = |basis_points| Refusal::Share { basis_points }.to_string();
    assert!(share(10_050).starts_with("a share of 100.5 %;"));
}

#[test]
fn a_named_partition_is_found_until_it_ends() {
    let mut rainbow = rainbow();
    let db = Reservation {
        name: Some(Name::new("db").unwrap()),
        ..Reservation::of(Ask::Count(4))
    };
    assert_eq!(rainbow.find("db"), None);
    let id = rainbow.reserve(&db).unwrap();
    ask(&mut rainbow, Ask::Count(1)).unwrap();
    assert_eq!((rainbow.find("db"), rainbow.find("d")), (Some(id), None));
    assert_eq!(
        rainbow.attach(id),
        Ok(2),
        "a task that was not coloured joins"
    );
    rainbow.release(id).unwrap();
    rainbow.release(id).unwrap();
    assert_eq!(rainbow.find("db"), None);
    assert_eq!(rainbow.validate(), Ok(()));
    assert!(rainbow.reserve(&db).is_ok(), "the name is free again");
}

#[test]
fn names_are_short_printable_words() {
    let longest = "x".repeat(MAX_NAME);
    for text in ["a", "web-1.2", &longest] {
        assert_eq!(Name::new(text).unwrap().as_str(), text);
    }
    let refused = |text: &str| Name::new(text).unwrap_err();
    assert_eq!(refused(""), NameError::Empty);
    assert_eq!(refused(&"x".repeat(32)), NameError::TooLong(32));
    assert_eq!(refused("a b"), NameError::Byte { byte: 32, at: 1 });
    assert_eq!(
        refused("né").to_string(),
        "byte 1 of the name is 0xc3; allowed: printable ASCII without spaces"
    );
}

/// A second release of a task cannot reach a partition that came after.
#[test]
fn a_partition_that_ended_stays_gone_when_its_slot_is_used_again() {
    let mut rainbow = rainbow();
    let old = ask(&mut rainbow, Ask::Count(3)).unwrap();
    assert_eq!(rainbow.release(old), Ok(Left::Freed(3)));
    let new = ask(&mut rainbow, Ask::Count(5)).unwrap();
    assert_eq!(
        (old.to_string(), new.to_string()),
        ("partition 0".into(), "partition 0".into())
    );
    assert_ne!(old, new);
    let before = rainbow.counters();
    assert_eq!(
        rainbow.release(old).unwrap_err().to_string(),
        "partition 0 does not exist any more"
    );
    assert_eq!(rainbow.attach(old), Err(JoinError::Gone(old)));
    assert_eq!(
        resize(&mut rainbow, old, Ask::Count(1)),
        Err(Refusal::Gone(old))
    );
    assert!(rainbow.memory_limit(old, 16).is_err());
    assert!(
        rainbow
            .prepare(&request(0, Purpose::Anon), Some(old), Turn::START)
            .is_err()
    );
    let stale = Reservation {
        current: Some(old),
        ..Reservation::of(Ask::Count(1))
    };
    assert_eq!(rainbow.reserve(&stale), Err(Refusal::Gone(old)));
    assert_eq!(
        rainbow.counters(),
        Counters {
            refused: before.refused + 2,
            ..before
        }
    );
    assert_eq!(rainbow.get(new).unwrap().tasks(), 1);
    rainbow.set_up(16, Config::PAPER).unwrap();
    assert!(rainbow.get(new).is_err(), "a new start ends all partitions");
    assert_eq!((rainbow.iter().count(), rainbow.left()), (0, 16));
}

#[test]
fn the_order_in_which_partitions_end_does_not_matter() {
    for order in [
        [0, 1, 2],
        [2, 1, 0],
        [1, 0, 2],
        [1, 2, 0],
        [0, 2, 1],
        [2, 0, 1],
    ] {
        let mut rainbow = rainbow();
        let ids: Vec<_> = (0..3)
            .map(|_| ask(&mut rainbow, Ask::Count(5)).unwrap())
            .collect();
        for at in order {
            assert_eq!(rainbow.release(ids[at]), Ok(Left::Freed(5)));
            assert_eq!(rainbow.validate(), Ok(()));
        }
        assert_eq!(rainbow.unreserved(), &ColorSet::first(16));
        let all = ask(&mut rainbow, Ask::percent(100)).unwrap();
        assert_eq!(colors(&rainbow, all), "0-15");
    }
}

#[test]
fn slots_and_tasks_are_exhausted_with_an_error() {
    let mut rainbow = Registry::new(vec![Partition::EMPTY; 2], 16, Config::PAPER).unwrap();
    let most = Reservation {
        tasks: u32::MAX,
        ..Reservation::of(Ask::Count(1))
    };
    let crowded = rainbow.reserve(&most).unwrap();
    let full = rainbow.attach(crowded).unwrap_err();
    assert_eq!(full, JoinError::TooManyTasks(crowded));
    assert_eq!(
        full.to_string(),
        "partition 0 has 4294967295 tasks, which is the most"
    );
    let second = ask(&mut rainbow, Ask::Count(1)).unwrap();
    assert_eq!(
        ask(&mut rainbow, Ask::Count(1)),
        Err(Refusal::NoSlot { slots: 2 })
    );
    rainbow.release(second).unwrap();
    assert!(ask(&mut rainbow, Ask::Count(1)).is_ok());
    let mut none = Registry::new(Vec::new(), 16, Config::PAPER).unwrap();
    assert_eq!(
        ask(&mut none, Ask::Count(1)),
        Err(Refusal::NoSlot { slots: 0 })
    );
}

#[test]
fn colors_can_be_kept_for_other_tasks() {
    let config = Config {
        keep_unreserved: 2,
        ..Config::PAPER
    };
    let mut rainbow = rainbow_of(16, config);
    assert_eq!(rainbow.left(), 14);
    assert_eq!(
        ask(&mut rainbow, Ask::percent(100)),
        Err(Refusal::TooMany {
            asked: 16,
            left: 14
        })
    );
    let named = exactly(&mut rainbow, "0-14");
    assert_eq!(
        named,
        Err(Refusal::TooMany {
            asked: 15,
            left: 14
        })
    );
    let id = exactly(&mut rainbow, "0-13").unwrap();
    assert_eq!(
        resize(&mut rainbow, id, Ask::Count(15)),
        Err(Refusal::TooMany { asked: 1, left: 0 })
    );
    let moved = resize(&mut rainbow, id, Ask::Exactly(&set("2-15"))).unwrap();
    assert_eq!(moved, Resized { gained: 2, lost: 2 });
    assert_eq!(rainbow.unreserved().to_string(), "0-1");
    let error = Registry::new(vec![Partition::EMPTY], 2, config).unwrap_err();
    assert_eq!(error.to_string(), "keep_unreserved = 2; allowed: 0 to 1");
}

#[test]
fn a_registry_needs_colors() {
    let make = |colors| Registry::new(vec![Partition::EMPTY], colors, Config::PAPER).err();
    for colors in [0, 4097, u32::MAX] {
        assert_eq!(make(colors), Some(ConfigError::Colors(colors)));
    }
    assert_eq!(
        make(0).unwrap().to_string(),
        "colors = 0; allowed: 1 to 4096"
    );
    let mut unset = Registry::over(vec![Partition::EMPTY]);
    assert_eq!(unset.validate(), Ok(()));
    assert_eq!(
        ask(&mut unset, Ask::Count(1)),
        Err(Refusal::TooMany { asked: 1, left: 0 })
    );
    let anyone = unset
        .prepare(&request(0, Purpose::Anon), None, Turn::START)
        .unwrap();
    assert_eq!((anyone.allowed, anyone.wish), (None, None));
}

#[test]
fn a_partition_grows_at_its_ends_first() {
    let mut rainbow = rainbow();
    exactly(&mut rainbow, "0-1,9").unwrap();
    let id = exactly(&mut rainbow, "4-6").unwrap();
    let grown = |n| Resized { gained: n, lost: 0 };
    assert_eq!(resize(&mut rainbow, id, Ask::Count(5)), Ok(grown(2)));
    assert_eq!(colors(&rainbow, id), "4-8", "upwards");
    assert_eq!(resize(&mut rainbow, id, Ask::Count(6)), Ok(grown(1)));
    assert_eq!(colors(&rainbow, id), "3-8", "then downwards");
    assert_eq!(resize(&mut rainbow, id, Ask::Count(10)), Ok(grown(4)));
    assert_eq!(colors(&rainbow, id), "2-8,10-12", "then another run");
    let refused = Err(Refusal::TooMany { asked: 4, left: 3 });
    assert_eq!(resize(&mut rainbow, id, Ask::Count(14)), refused);
    assert_eq!(colors(&rainbow, id), "2-8,10-12");
    let back = resize(&mut rainbow, id, Ask::Count(7)).unwrap();
    assert_eq!(back, Resized { gained: 0, lost: 3 });
    assert_eq!(colors(&rainbow, id), "2-8");
    assert_eq!(
        resize(&mut rainbow, id, Ask::Count(0)),
        Err(Refusal::NoColors)
    );
    let same = resize(&mut rainbow, id, Ask::Count(7));
    assert_eq!(same, Ok(Resized::default()));
    let counters = rainbow.counters();
    assert_eq!(
        (counters.resized, counters.gained, counters.lost),
        (4, 7, 3)
    );
}

#[test]
fn growing_and_shrinking_by_as_much_ends_where_it_began() {
    for start in ["0-3", "5", "0-7", "2-3"] {
        for more in 1..8 {
            let mut rainbow = rainbow();
            let id = exactly(&mut rainbow, start).unwrap();
            let n = rainbow.get(id).unwrap().nr_colors();
            resize(&mut rainbow, id, Ask::Count(n + more)).unwrap();
            resize(&mut rainbow, id, Ask::Count(n)).unwrap();
            assert_eq!(colors(&rainbow, id), start, "by {more}");
        }
    }
}

#[test]
fn a_partition_can_be_given_exactly_other_colors() {
    let mut rainbow = rainbow();
    let other = exactly(&mut rainbow, "15").unwrap();
    let id = exactly(&mut rainbow, "0-3").unwrap();
    let moved = resize(&mut rainbow, id, Ask::Exactly(&set("2-5")));
    assert_eq!(moved, Ok(Resized { gained: 2, lost: 2 }));
    assert_eq!((colors(&rainbow, id), rainbow.left()), ("2-5".into(), 11));
    let taken = Refusal::Taken {
        color: Color(15),
        by: other,
    };
    assert_eq!(
        resize(&mut rainbow, id, Ask::Exactly(&set("2,15"))),
        Err(taken)
    );
    assert_eq!(colors(&rainbow, id), "2-5");
    let share = resize(&mut rainbow, id, Ask::percent(50));
    assert_eq!(share, Ok(Resized { gained: 4, lost: 0 }));
}

#[test]
fn large_blocks_and_turns_follow_the_configuration() {
    let config = Config {
        large_blocks: LargeBlocks::AsPages,
        turns: Turns::Colored,
        ..Config::PAPER
    };
    let mut rainbow = rainbow_of(16, config);
    let own = set("4-7");
    let id = exactly(&mut rainbow, "4-7").unwrap();
    let large = request(4, Purpose::Anon);
    assert_eq!(rainbow.allowed(&large, Some(id)), Ok(Allowed::Own(&own)));
    let kernel = request(4, Purpose::Kernel);
    assert_eq!(rainbow.allowed(&kernel, Some(id)), Ok(Allowed::All));
    let wish = |r, of| rainbow.prepare(&r, of, Turn::START).unwrap().wish;
    assert_eq!(wish(request(0, Purpose::Anon), Some(id)), Some(Color(4)));
    assert_eq!(wish(request(0, Purpose::Anon), None), None);
    assert_eq!(wish(kernel, Some(id)), None);
    let nobody = Config {
        turns: Turns::Nobody,
        ..config
    };
    rainbow.set_up(16, nobody).unwrap();
    let id = exactly(&mut rainbow, "4-7").unwrap();
    let r = request(0, Purpose::Anon);
    let prepared = rainbow.prepare(&r, Some(id), Turn::START).unwrap();
    assert_eq!((prepared.wish, prepared.allowed), (None, Some(&own)));
}

#[test]
fn memory_is_what_the_documentation_says() {
    assert_eq!(size_of::<Partition>(), 584);
    assert!(size_of::<Registry<&mut [Partition]>>() <= 752);
    let mut rainbow = Registry::new(vec![Partition::EMPTY; 4100], 4096, Config::PAPER).unwrap();
    for c in 0..4096 {
        let id = rainbow.reserve(&Reservation::of(Ask::Count(1))).unwrap();
        assert!(rainbow.get(id).unwrap().colors().contains(Color(c)));
    }
    assert_eq!(rainbow.iter().count(), 4096);
    assert_eq!(rainbow.left(), 0);
}
