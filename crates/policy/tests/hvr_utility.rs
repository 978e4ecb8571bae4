//! What HVR is compared with: utility-based division against all divisions that there are, its
//! groups against the cells of the paper's policies, and cells for the threads of a program.

use piebald_policy::{
    color_map::{BitClass, ColorMap},
    contract::FrameRequest,
    hvr::{
        Arrival, Config, Framework, Interleave, Manager, Policy, Program, Scheme, Turn,
        utility::{Groups, divide},
    },
};
use piebald_units::{Color, ColorSet, CoreId, TaskId, Vpn};

/// A stream of numbers (Knuth's multiplier).
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Fewest misses of all divisions of exactly so many groups.
fn fewest(curves: &[Vec<u64>], groups: u32) -> u64 {
    match curves.split_first() {
        None if groups == 0 => 0,
        None => u64::MAX,
        Some((own, others)) => (1..=groups)
            .map(|k| own[k as usize - 1].saturating_add(fewest(others, groups - k)))
            .min()
            .unwrap_or(u64::MAX),
    }
}

fn misses(curves: &[Vec<u64>], shares: &[u32]) -> u64 {
    let all = curves.iter().zip(shares);
    all.map(|(own, k)| own[*k as usize - 1]).sum()
}

fn divided(curves: &[Vec<u64>], groups: u32) -> Vec<u32> {
    let lent: Vec<&[u64]> = curves.iter().map(Vec::as_slice).collect();
    let mut shares = vec![0; curves.len()];
    divide(&lent, groups, &mut shares).expect("as many groups as programs or more");
    assert_eq!(shares.iter().sum::<u32>(), groups);
    assert!(shares.iter().all(|s| *s > 0), "{shares:?}");
    shares
}

/// Falling, by steps that grow smaller or by any.
fn curve(draws: &mut Draws, groups: u32, convex: bool) -> Vec<u64> {
    let mut steps: Vec<u64> = (1..groups).map(|_| draws.below(50)).collect();
    if convex {
        steps.sort_unstable_by(|a, b| b.cmp(a));
    }
    let mut left = steps.iter().sum::<u64>() + draws.below(20);
    let mut curve = vec![left];
    for step in steps {
        left -= step;
        curve.push(left);
    }
    curve
}

#[test]
fn curves_that_flatten_are_divided_as_well_as_can_be() {
    let mut draws = Draws(5);
    for round in 0..500 {
        let programs = 1 + draws.below(4) as usize;
        let groups = programs as u32 + draws.below(7) as u32;
        let curves: Vec<Vec<u64>> = (0..programs)
            .map(|_| curve(&mut draws, groups, true))
            .collect();
        let shares = divided(&curves, groups);
        let best = fewest(&curves, groups);
        assert_eq!(
            misses(&curves, &shares),
            best,
            "{round}: {curves:?} {shares:?}"
        );
    }
}

/// Looking ahead is greedy: with several knees it may miss the best. With one it finds it.
#[test]
fn any_curves_are_divided_no_better_than_the_best_and_one_knee_is_found() {
    let mut draws = Draws(9);
    let mut equal = 0;
    for round in 0..500 {
        let programs = 2 + draws.below(3) as usize;
        let groups = programs as u32 + draws.below(7) as u32;
        let curves: Vec<Vec<u64>> = (0..programs)
            .map(|_| curve(&mut draws, groups, false))
            .collect();
        let shares = divided(&curves, groups);
        let best = fewest(&curves, groups);
        assert!(misses(&curves, &shares) >= best, "{round}");
        equal += u32::from(misses(&curves, &shares) == best);

        let knee = draws.below(u64::from(groups) - programs as u64 + 1) as usize;
        let mut one = vec![vec![7; groups as usize]; programs];
        let owner = draws.below(programs as u64) as usize;
        one[owner] = (0..groups as usize)
            .map(|k| if k < knee { 1000 } else { 10 })
            .collect();
        let shares = divided(&one, groups);
        assert_eq!(misses(&one, &shares), fewest(&one, groups), "{one:?}");
    }
    assert!(equal > 250, "{equal} of 500 are the best");
}

/// Address bits 14, 15 (O), 16 to 18 (C), 21, 22 (B).
fn paper() -> ColorMap {
    let class = |class: BitClass| move |bit: &u8| (1u64 << (bit - 12), class);
    let bits: Vec<_> = ([14, 15].iter().map(class(BitClass::Both)))
        .chain([16, 17, 18].iter().map(class(BitClass::Cache)))
        .chain([21, 22].iter().map(class(BitClass::Bank)))
        .collect();
    ColorMap::from_masks(&bits).expect("independent bits")
}

#[test]
fn equal_shares_are_the_cells_of_a_vp_and_c_vp() {
    let map = paper();
    let groups = Groups::of(&map);
    assert_eq!(groups.nr(), 32);
    for (programs, policy) in [(4u32, Policy::AVp), (8, Policy::CVp)] {
        let scheme = Scheme::of(&map, policy).expect("the bits");
        let shares = vec![32 / programs; programs as usize];
        let mut cells = Vec::new();
        for program in 0..programs as usize {
            let mut own = ColorSet::default();
            groups.colors(&map, &shares, program, &mut own);
            assert_eq!(own.len(), 128 / programs);
            let mut of: Vec<u32> = own.iter().map(|c| scheme.cell(c)).collect();
            of.dedup();
            of.sort_unstable();
            of.dedup();
            assert_eq!(of.len(), 1, "{policy} {program}");
            cells.extend(of);
        }
        cells.sort_unstable();
        assert_eq!(cells, (0..programs).collect::<Vec<_>>(), "{policy}");
    }
}

#[test]
fn shares_are_disjoint_and_whole_and_odd_maps_have_their_groups() {
    let map = paper();
    let groups = Groups::of(&map);
    let shares = [1, 20, 4, 7];
    let mut seen = ColorSet::default();
    for (program, share) in shares.iter().enumerate() {
        let mut own = ColorSet::first(3);
        groups.colors(&map, &shares, program, &mut own);
        assert_eq!(own.len(), 4 * share);
        for color in own.iter() {
            assert!(!seen.contains(color), "{color} is in two");
            seen.insert(color);
        }
    }
    assert_eq!(seen.len(), 128);
    // A program that is not there has nothing.
    let mut own = ColorSet::first(3);
    groups.colors(&map, &shares, 4, &mut own);
    assert!(own.is_empty());
    let plain = Groups::of(&ColorMap::PLAIN);
    assert_eq!((plain.nr(), plain.group(Color(0))), (1, 0));
}

#[test]
fn threads_that_are_partitioned_have_the_cells_of_their_cores() {
    let config = Config {
        framework: Framework::Fixed(Policy::BVp),
        interleave: Interleave::ByCore,
        ..Config::PAPER
    };
    let mut hvr = Manager::new(paper(), vec![Program::EMPTY; 2], config).expect("a manager");
    let arrival = Arrival {
        threads: 8,
        ..Arrival::of(TaskId(1))
    };
    let (id, _) = hvr.arrive(&arrival).expect("a slot");
    for core in 0..16 {
        let mut turn = Turn::START;
        let mut seen = ColorSet::default();
        for n in 0..32 {
            let request = FrameRequest::fault(TaskId(1), CoreId(core), Vpn(n));
            let made = hvr.prepare(&request, id, turn, 7).expect("it is there");
            let wish = made.wish.expect("a wish");
            assert_eq!(hvr.scheme().cell(wish), u32::from(core) % 8);
            seen.insert(wish);
            turn.took(wish);
        }
        // All colours of the cell in turn.
        assert_eq!(seen.len(), 128 / 8);
    }
    // One thread has the round.
    hvr.set_threads(id, 1).expect("it is there");
    let request = FrameRequest::fault(TaskId(1), CoreId(5), Vpn(0));
    let made = hvr.prepare(&request, id, Turn::START, 7).expect("there");
    assert_eq!(made.wish, Some(Color(0)));
}
