//! Which pages move when a partition grows, shrinks or ends, and where to.

use crate::kit::{Random, plain_map, setting};
use piebald_policy::{
    color_map::ColorMap,
    rainbow::{
        Ask, Balance, Config, Estimate, Move, Owner, Partition, PartitionId, Plan, PlanError,
        Registry, Reservation, Step,
    },
};
use piebald_units::{Color, ColorSet, Pfn, Picos};

type Rainbow = Registry<Vec<Partition>>;

/// 16 colours by the frame bits 3 to 6 (address bits 15 to 18).
fn map() -> ColorMap {
    plain_map(3, 4)
}

fn rainbow(balance: Balance) -> Rainbow {
    let config = Config {
        balance,
        move_cost: Picos(3_000_000),
        ..Config::PAPER
    };
    Registry::new(vec![Partition::EMPTY; 8], 16, config).unwrap()
}

fn set(text: &str) -> ColorSet {
    text.parse().unwrap()
}

fn reserve(rainbow: &mut Rainbow, colors: &str) -> PartitionId {
    let colors = set(colors);
    let asked = Reservation::of(Ask::Exactly(&colors));
    rainbow.reserve(&asked).unwrap()
}

/// The `n`-th frame of a colour.
fn frame(color: u64, n: u64) -> Pfn {
    Pfn(color << 3 | n & 7 | n >> 3 << 7)
}

/// `n` frames of each colour of a set, colour by colour.
fn frames_of(colors: &str, n: u64) -> Vec<Pfn> {
    let colors = set(colors);
    let each = colors.iter().map(|c| u64::from(c.0));
    each.flat_map(|c| (0..n).map(move |i| frame(c, i)))
        .collect()
}

fn plan(rainbow: &Rainbow, owner: Owner, frames: &[Pfn]) -> Plan<Vec<u32>> {
    let mut plan = Plan::new(rainbow, owner, vec![u32::MAX; 16]).unwrap();
    plan.survey(&map(), frames);
    plan
}

/// Moves a page: some frame of the target colour that no other page has.
fn carry_out(frames: &mut [Pfn], m: &Move, next: &mut u64) {
    let page = frames.iter_mut().find(|f| **f == m.frame);
    *page.unwrap() = frame(u64::from(m.to.0), *next);
    *next += 1;
}

/// Asks for `batch` moves at a time from the first frame on, and makes them.
fn run(plan: &mut Plan<Vec<u32>>, rainbow: &Rainbow, frames: &mut [Pfn], batch: usize) -> u64 {
    let (mut at, mut made, mut next) = (0, 0, 1 << 20);
    while at < frames.len() {
        let mut out = vec![Move::default(); batch];
        let step = plan.next(rainbow, &map(), &frames[at..], &mut out);
        let Ok(Step::Moves { examined, moves }) = step else {
            panic!("{step:?}");
        };
        assert!(examined > 0 && moves <= batch.min(examined));
        for m in &out[..moves] {
            assert_eq!(map().color(m.frame), m.from);
            assert!(plan.holds(rainbow, m));
            carry_out(frames, m, &mut next);
        }
        made += moves as u64;
        at += examined;
    }
    made
}

fn counts(frames: &[Pfn]) -> [u64; 16] {
    let mut counts = [0; 16];
    for f in frames {
        counts[usize::from(map().color(*f).0)] += 1;
    }
    counts
}

fn in_colors(counts: &[u64; 16], colors: &ColorSet) -> Vec<u64> {
    let colors = colors.iter();
    colors.map(|c| counts[usize::from(c.0)]).collect()
}

/// Fewest and most frames among the colours of a set.
fn range(counts: &[u64; 16], colors: &ColorSet) -> (u64, u64) {
    let own = in_colors(counts, colors);
    (*own.iter().min().unwrap(), *own.iter().max().unwrap())
}

fn estimate(moves: u64) -> Estimate {
    let cost = Picos(3_000_000 * moves);
    Estimate { moves, cost }
}

#[test]
fn pages_in_colors_that_were_given_back_move_evenly_to_the_rest() {
    let mut rainbow = rainbow(Balance::MustMove);
    let id = reserve(&mut rainbow, "0-7");
    let mut frames = frames_of("0-7", 10);
    rainbow.resize(id, &Ask::Count(5)).unwrap();
    let mut plan = plan(&rainbow, Owner::Partition(id), &frames);
    assert_eq!(plan.estimate(&rainbow), Ok(estimate(30)));
    assert_eq!(run(&mut plan, &rainbow, &mut frames, 7), 30);
    assert_eq!(plan.estimate(&rainbow), Ok(estimate(0)));
    assert_eq!(plan.handed_out(), 30);
    let after = counts(&frames);
    assert_eq!(after[..5], [16; 5]);
    assert_eq!(after[5..], [0; 11]);
    assert_eq!(
        run(&mut plan, &rainbow, &mut frames, 7),
        0,
        "nothing is left"
    );
}

#[test]
fn a_color_with_fewer_pages_gets_more_of_those_that_move() {
    let mut rainbow = rainbow(Balance::MustMove);
    let id = reserve(&mut rainbow, "0-3");
    let mut frames = frames_of("0", 20);
    frames.extend(frames_of("1", 4));
    frames.extend(frames_of("3", 12));
    rainbow.resize(id, &Ask::Count(3)).unwrap();
    let mut plan = plan(&rainbow, Owner::Partition(id), &frames);
    assert_eq!(run(&mut plan, &rainbow, &mut frames, 64), 12);
    assert_eq!(counts(&frames)[..4], [20, 8, 8, 0]);
    assert_eq!(plan.count(Color(1)), 8);
}

#[test]
fn without_a_survey_the_moved_pages_are_spread() {
    let mut rainbow = rainbow(Balance::Spread);
    let id = reserve(&mut rainbow, "2-5");
    let mut frames = frames_of("0,9", 8);
    let mut plan = Plan::new(&rainbow, Owner::Partition(id), vec![0; 16]).unwrap();
    assert_eq!(run(&mut plan, &rainbow, &mut frames, 5), 16);
    assert_eq!(counts(&frames)[2..6], [4; 4]);
}

#[test]
fn gained_colors_fill_at_once_only_if_that_is_configured() {
    for (balance, moves) in [(Balance::MustMove, 0), (Balance::Spread, 20)] {
        let mut rainbow = rainbow(balance);
        let id = reserve(&mut rainbow, "0-3");
        let mut frames = frames_of("0-3", 10);
        rainbow.resize(id, &Ask::Count(8)).unwrap();
        let mut plan = plan(&rainbow, Owner::Partition(id), &frames);
        assert_eq!(plan.estimate(&rainbow), Ok(estimate(moves)));
        assert_eq!(run(&mut plan, &rainbow, &mut frames, 3), moves);
        let each = if moves > 0 {
            [5; 8]
        } else {
            [10, 10, 10, 10, 0, 0, 0, 0]
        };
        assert_eq!(counts(&frames)[..8], each);
        // And back again: each page of the gained colours returns.
        rainbow.resize(id, &Ask::Count(4)).unwrap();
        let mut plan = Plan::new(&rainbow, Owner::Partition(id), vec![0; 16]).unwrap();
        plan.survey(&map(), &frames);
        assert_eq!(run(&mut plan, &rainbow, &mut frames, 3), moves);
        assert_eq!(counts(&frames)[..4], [10; 4]);
    }
}

#[test]
fn a_plan_notices_that_the_colors_have_changed_and_goes_on_for_the_new_ones() {
    let mut rainbow = rainbow(Balance::MustMove);
    let id = reserve(&mut rainbow, "0-7");
    let mut frames = frames_of("0-7", 4);
    rainbow.resize(id, &Ask::Count(6)).unwrap();
    let mut plan = plan(&rainbow, Owner::Partition(id), &frames);
    let mut out = [Move::default(); 5];
    let step = plan.next(&rainbow, &map(), &frames, &mut out);
    assert_eq!(
        step,
        Ok(Step::Moves {
            examined: 29,
            moves: 5
        })
    );
    let targets = out.map(|m| m.to.0);
    assert_eq!(targets, [0, 1, 2, 3, 4]);
    rainbow.resize(id, &Ask::Count(3)).unwrap();
    let made: Vec<&Move> = out.iter().filter(|m| plan.holds(&rainbow, m)).collect();
    assert_eq!(made.len(), 3);
    let mut next = 1 << 10;
    for m in out {
        match plan.holds(&rainbow, &m) {
            true => carry_out(&mut frames, &m, &mut next),
            false => plan.not_made(&m),
        }
    }
    let step = plan.next(&rainbow, &map(), &frames[29..], &mut out);
    assert_eq!(step, Ok(Step::Changed), "before anything is handed out");
    assert_eq!(plan.estimate(&rainbow), Ok(estimate(17)));
    run(&mut plan, &rainbow, &mut frames, 5);
    let after = counts(&frames);
    assert_eq!(range(&after, &set("0-2")), (10, 11));
    assert_eq!(after[3..], [0; 13]);
    assert_eq!(plan.handed_out(), 20);
}

#[test]
fn a_change_of_another_partition_does_not_disturb_a_plan() {
    let mut rainbow = rainbow(Balance::MustMove);
    let id = reserve(&mut rainbow, "0-3");
    let other = reserve(&mut rainbow, "8-9");
    let frames = frames_of("0-3", 2);
    let mut plan = plan(&rainbow, Owner::Partition(id), &frames);
    rainbow.resize(other, &Ask::Count(5)).unwrap();
    let mut out = [Move::default(); 1];
    let step = plan.next(&rainbow, &map(), &frames, &mut out);
    assert_eq!(
        step,
        Ok(Step::Moves {
            examined: 8,
            moves: 0
        })
    );
}

/// What is known of one goal must not decide about the next, whose colours have
/// fewer pages than any of the first.
#[test]
fn the_emptiest_color_is_sought_anew_after_a_change() {
    let mut rainbow = rainbow(Balance::MustMove);
    let id = reserve(&mut rainbow, "0-1");
    let mut frames = frames_of("5", 1);
    frames.extend(frames_of("0-1", 20));
    frames.extend(frames_of("2", 9));
    let mut plan = plan(&rainbow, Owner::Partition(id), &frames);
    let mut out = [Move::default(); 1];
    plan.next(&rainbow, &map(), &frames, &mut out).unwrap();
    plan.not_made(&out[0]);
    let other = Ask::Exactly(&set("2-3"));
    rainbow.resize(id, &other).unwrap();
    let step = plan.next(&rainbow, &map(), &frames, &mut out);
    assert_eq!(step, Ok(Step::Changed));
    plan.next(&rainbow, &map(), &frames, &mut out).unwrap();
    assert_eq!(out[0].to, Color(3));
}

#[test]
fn a_move_that_was_not_made_leaves_its_place_to_another() {
    let mut rainbow = rainbow(Balance::MustMove);
    let id = reserve(&mut rainbow, "0-2");
    let frames = frames_of("5", 12);
    let mut plan = plan(&rainbow, Owner::Partition(id), &frames);
    let mut out = [Move::default(); 10];
    plan.next(&rainbow, &map(), &frames, &mut out).unwrap();
    assert_eq!(out.map(|m| m.to.0), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
    for m in out.iter().filter(|m| m.to == Color(2)) {
        plan.not_made(m);
    }
    assert_eq!((plan.count(Color(2)), plan.handed_out()), (0, 7));
    let step = plan.next(&rainbow, &map(), &frames[..3], &mut out);
    let moves = Step::Moves {
        examined: 3,
        moves: 3,
    };
    assert_eq!(step, Ok(moves));
    assert_eq!(out[..3].iter().map(|m| m.to.0).collect::<Vec<_>>(), [2; 3]);
}

#[test]
fn a_plan_for_other_tasks_notices_every_kind_of_change() {
    let mut rainbow = rainbow(Balance::MustMove);
    let mut plan = plan(&rainbow, Owner::Unreserved, &[]);
    let mut steps = |rainbow: &Rainbow| {
        let mut out = [Move::default(); 1];
        let frames = frames_of("15", 1);
        [(); 2].map(|()| plan.next(rainbow, &map(), &frames, &mut out))
    };
    let calm = Ok(Step::Moves {
        examined: 1,
        moves: 0,
    });
    assert_eq!(steps(&rainbow), [calm; 2]);
    let id = reserve(&mut rainbow, "0-3");
    assert_eq!(steps(&rainbow), [Ok(Step::Changed), calm]);
    rainbow.resize(id, &Ask::Count(6)).unwrap();
    assert_eq!(steps(&rainbow), [Ok(Step::Changed), calm]);
    rainbow.resize(id, &Ask::Count(5)).unwrap();
    assert_eq!(steps(&rainbow), [Ok(Step::Changed), calm]);
    rainbow.attach(id).unwrap();
    rainbow.release(id).unwrap();
    assert_eq!(steps(&rainbow), [calm; 2], "nothing about colours");
    rainbow.release(id).unwrap();
    assert_eq!(steps(&rainbow), [Ok(Step::Changed), calm]);
}

/// The thesis leaves pages of other tasks where they are when their colour is
/// reserved; they then share the partition's sets.
#[test]
fn pages_of_other_tasks_leave_colors_that_were_reserved() {
    let mut rainbow = rainbow(Balance::MustMove);
    let mut frames = frames_of("0-15", 6);
    reserve(&mut rainbow, "0-3");
    let mut plan = plan(&rainbow, Owner::Unreserved, &frames);
    assert_eq!(run(&mut plan, &rainbow, &mut frames, 100), 24);
    let after = counts(&frames);
    assert_eq!(
        (after[..4].to_vec(), after[4..].to_vec()),
        (vec![0; 4], vec![8; 12])
    );
    reserve(&mut rainbow, "4");
    let mut out = [Move::default(); 4];
    let step = plan.next(&rainbow, &map(), &frames, &mut out);
    assert_eq!(step, Ok(Step::Changed));
    reserve(&mut rainbow, "5-15");
    let step = plan.next(&rainbow, &map(), &frames, &mut out);
    assert_eq!(step, Err(PlanError::NoColors));
}

#[test]
fn plans_that_cannot_be_say_why() {
    let mut rainbow = rainbow(Balance::MustMove);
    let id = reserve(&mut rainbow, "0-3");
    let owner = Owner::Partition(id);
    let short = Plan::new(&rainbow, owner, vec![0; 15]).unwrap_err();
    assert_eq!(
        short.to_string(),
        "counts has length 15; allowed: 16 or more"
    );
    let mut plan = plan(&rainbow, owner, &[]);
    let mut out = [Move::default(); 1];
    let other = plan.next(&rainbow, &plain_map(3, 5), &[], &mut out);
    assert_eq!(
        other.unwrap_err().to_string(),
        "the color map has 32 colors; allowed: 16"
    );
    let full = plan.next(&rainbow, &map(), &frames_of("9", 1), &mut []);
    assert_eq!(
        full,
        Ok(Step::Moves {
            examined: 0,
            moves: 0
        })
    );
    let m = Move {
        to: Color(1),
        ..Move::default()
    };
    assert!(plan.holds(&rainbow, &m));
    rainbow.release(id).unwrap();
    assert!(!plan.holds(&rainbow, &m));
    let gone = plan.next(&rainbow, &map(), &[], &mut out);
    assert_eq!(gone, Err(PlanError::Gone(id)));
    assert_eq!(plan.estimate(&rainbow), Err(PlanError::Gone(id)));
    assert!(Plan::new(&rainbow, owner, vec![0; 16]).is_err());
}

#[test]
fn a_cost_beyond_64_bits_stays_at_the_end_of_time() {
    let config = Config {
        move_cost: Picos::MAX,
        ..Config::PAPER
    };
    let mut rainbow = Registry::new(vec![Partition::EMPTY; 1], 16, config).unwrap();
    let id = reserve(&mut rainbow, "0");
    let plan = plan(&rainbow, Owner::Partition(id), &frames_of("1", 2));
    let cost = Picos::MAX;
    assert_eq!(plan.estimate(&rainbow), Ok(Estimate { moves: 2, cost }));
}

/// The most even end that moving `loose` pages allows, by pouring one at a time.
fn poured(mut counts: Vec<u64>, loose: u64) -> Vec<u64> {
    for _ in 0..loose {
        *counts.iter_mut().min().unwrap() += 1;
    }
    counts.sort_unstable();
    counts
}

/// A random partition with random pages before and after a random change.
fn change(random: &mut Random) {
    let balance = [Balance::MustMove, Balance::Spread][random.below(2) as usize];
    let mut rainbow = rainbow(balance);
    reserve(&mut rainbow, &random.below(16).to_string());
    let n = 1 + random.below(15) as u32;
    let id = rainbow.reserve(&Reservation::of(Ask::Count(n))).unwrap();
    let mut frames: Vec<Pfn> = (0..random.below(200))
        .map(|n| frame(random.below(16), n))
        .collect();
    rainbow
        .resize(id, &Ask::Count(1 + random.below(15) as u32))
        .unwrap();
    let own = rainbow.get(id).unwrap().colors().clone();

    let mut plan = plan(&rainbow, Owner::Partition(id), &frames);
    let expected = plan.estimate(&rainbow).unwrap();
    let before = counts(&frames);
    let batch = 1 + random.below(40) as usize;
    let made = run(&mut plan, &rainbow, &mut frames, batch);

    assert_eq!(
        (made, plan.estimate(&rainbow)),
        (expected.moves, Ok(estimate(0)))
    );
    let after = counts(&frames);
    let total = frames.len() as u64;
    assert_eq!(in_colors(&after, &own).iter().sum::<u64>(), total);
    let kept = in_colors(&before, &own);
    let must: u64 = total - kept.iter().sum::<u64>();
    let most = match balance {
        Balance::MustMove => u64::MAX,
        Balance::Spread => total.div_ceil(u64::from(own.len())),
    };
    let over: u64 = kept.iter().map(|n| n.saturating_sub(most)).sum();
    assert_eq!(made, must + over, "no page moves without need");
    let stay = kept.iter().map(|n| *n.min(&most)).collect();
    let mut ends = in_colors(&after, &own);
    ends.sort_unstable();
    assert_eq!(ends, poured(stay, made), "{balance:?} {before:?} {after:?}");
    for c in 0..16 {
        assert_eq!(u64::from(plan.count(Color(c))), after[usize::from(c)]);
    }
}

#[test]
fn fuzz_recoloring() {
    let mut random = Random(setting("PIEBALD_FUZZ_SEED", 3));
    for _ in 0..setting("PIEBALD_FUZZ_CASES", 20_000) / 10 {
        change(&mut random);
    }
}
