//! Table 1 of the DULO paper (FAST'05, section 2.1), step by step.
//!
//! A, B, C and D are random blocks, X1 to X4 and Y1 to Y4 are two files; memory has
//! eight blocks. A file is read ahead as a whole when its first block is missed. The
//! disk takes 6.5 ms for any seek and 3.0 ms for any rotation (Hitachi Ultrastar
//! 18ZX), and nothing else.

use crate::dulo_kit::{Host, Kind, Simple, SimpleDulo, simple, sizes};
use piebald_policy::{
    contract::replacement::{Fetch, Replacement},
    dulo::{Config, Hits},
};

/// 6.5 ms + 3.0 ms, in tenths of a millisecond.
const FETCH_TENTHS_MS: u32 = 65 + 30;

const STREAM: &str = "A B C D X1 X2 X3 X4 Y1 Y2 Y3 Y4 X1 X2 X3 X4 A B C D";

/// The columns as printed, hot end first.
const TRADITIONAL: [&str; 20] = [
    "A - - - - - - -",
    "B A - - - - - -",
    "C B A - - - - -",
    "D C B A - - - -",
    "X4 X3 X2 X1 D C B A",
    "X2 X4 X3 X1 D C B A",
    "X3 X2 X4 X1 D C B A",
    "X4 X3 X2 X1 D C B A",
    "Y4 Y3 Y2 Y1 X4 X3 X2 X1",
    "Y2 Y4 Y3 Y1 X4 X3 X2 X1",
    "Y3 Y2 Y4 Y1 X4 X3 X2 X1",
    "Y4 Y3 Y2 Y1 X4 X3 X2 X1",
    "X1 Y4 Y3 Y2 Y1 X4 X3 X2",
    "X2 X1 Y4 Y3 Y2 Y1 X4 X3",
    "X3 X2 X1 Y4 Y3 Y2 Y1 X4",
    "X4 X3 X2 X1 Y4 Y3 Y2 Y1",
    "A X4 X3 X2 X1 Y4 Y3 Y2",
    "B A X4 X3 X2 X1 Y4 Y3",
    "C B A X4 X3 X2 X1 Y4",
    "D C B A X4 X3 X2 X1",
];
const DUAL: [&str; 20] = [
    "A - - - - - - -",
    "B A - - - - - -",
    "C B A - - - - -",
    "D C B A - - - -",
    "D C B A X4 X3 X2 X1",
    "D C B A X2 X4 X3 X1",
    "D C B A X3 X2 X4 X1",
    "D C B A X4 X3 X2 X1",
    "D C B A Y4 Y3 Y2 Y1",
    "D C B A Y2 Y4 Y3 Y1",
    "D C B A Y3 Y2 Y4 Y1",
    "D C B A Y4 Y3 Y2 Y1",
    "D C B A X4 X3 X2 X1",
    "D C B A X2 X4 X3 X1",
    "D C B A X3 X2 X4 X1",
    "D C B A X4 X3 X2 X1",
    "A D C B X4 X3 X2 X1",
    "B A D C X4 X3 X2 X1",
    "C B A D X4 X3 X2 X1",
    "D C B A X4 X3 X2 X1",
];

/// Blocks on their tracks: single ones far apart, files in a row.
fn block(name: &str) -> u64 {
    let at = u64::from(name.as_bytes()[0]) * 1000;
    at + name[1..].parse::<u64>().unwrap_or(0)
}

fn name(block: u64) -> String {
    let letter = char::from(u8::try_from(block / 1000).unwrap());
    match block % 1000 {
        0 => letter.to_string(),
        number => format!("{letter}{number}"),
    }
}

/// What one access to a missing block fetches.
fn fetched(name: &str, readahead: bool) -> Vec<String> {
    match name.as_bytes() {
        [file, b'1'] if readahead => (1..=4)
            .map(|n| format!("{}{n}", char::from(*file)))
            .collect(),
        _ => vec![name.to_owned()],
    }
}

fn printed(stack: &[u64]) -> String {
    let mut cells: Vec<String> = stack.iter().rev().map(|b| name(*b)).collect();
    cells.resize(8, "-".to_owned());
    cells.join(" ")
}

/// Runs the stream; the states after each access and the number of misses.
fn run<P: Replacement>(
    host: &mut Host<P>,
    stack: impl Fn(&Host<P>) -> Vec<u64>,
    readahead: bool,
) -> (Vec<String>, u32) {
    let mut misses = 0;
    let mut states = Vec::new();
    for access in STREAM.split(' ') {
        if host.number(block(access)).is_some() {
            assert!(host.access(block(access)));
        } else {
            misses += 1;
            let missing = fetched(access, readahead);
            let missing = missing.iter().filter(|n| host.number(block(n)).is_none());
            for name in missing.map(|n| block(n)).collect::<Vec<_>>() {
                let fetch = match name == block(access) {
                    true => Fetch::Demand,
                    false => Fetch::Readahead,
                };
                host.fetch(name, fetch);
            }
        }
        host.policy.validate().unwrap();
        states.push(printed(&stack(host)));
    }
    (states, misses)
}

fn traditional() -> Host<Simple> {
    Host::new(Simple::new(Kind::Lru, 8, 9))
}

fn lru_stack(host: &Host<Simple>) -> Vec<u64> {
    let pages = host.policy.cold_first().into_iter();
    let name = |p| host.name(piebald_policy::contract::replacement::PageRef(p));
    pages.map(name).collect()
}

/// The order that Table 1 shows: every four blocks are sequenced at once, and a hit
/// moves its block to the top of its sequence and the sequence to its present value.
fn dual() -> Host<SimpleDulo> {
    let config = Config {
        hits: Hits::Restore,
        ..sizes(0, 4, 4)
    };
    Host::new(simple(Kind::Lru, 8, config))
}

#[test]
fn paper_example_traditional_column_is_lru_with_readahead() {
    let (states, misses) = run(&mut traditional(), lru_stack, true);
    assert_eq!(states, TRADITIONAL);
    assert_eq!(misses, 10);
    assert_eq!(misses * FETCH_TENTHS_MS, 950);
}

#[test]
fn paper_example_dual_column_is_dulo_on_lru_with_sequences_restored() {
    let (states, misses) = run(&mut dual(), Host::stack, true);
    assert_eq!(states, DUAL);
    assert_eq!(misses, 7);
    assert_eq!(misses * FETCH_TENTHS_MS, 665);
}

#[test]
fn paper_example_without_readahead_both_miss_sixteen_times() {
    assert_eq!(run(&mut traditional(), lru_stack, false).1, 16);
    // The blocks of a file are still sequenced together, four by four.
    assert_eq!(run(&mut dual(), Host::stack, false).1, 16);
}

#[test]
fn paper_example_values_follow_greedy_dual_size() {
    let mut host = dual();
    run(&mut host, Host::stack, true);
    let one = 1u64 << 32;
    let h = |host: &Host<SimpleDulo>, n: &str| {
        let page = host.number(block(n)).unwrap();
        host.policy.standing(page).unwrap().h
    };
    // L rose to 1/4 with the first X, to 1/4 + 1/4 with Y; X came back at 3/4, and A to
    // D, at 1 before, were used again at 1/2 + 1.
    assert_eq!(host.policy.inflation(), one / 2);
    assert_eq!(h(&host, "X1"), one / 2 + one / 4);
    assert_eq!(h(&host, "A"), one / 2 + one);
    assert_eq!(host.policy.formed(1), 4);
    assert_eq!(host.policy.formed(4), 3);
}

/// The algorithm of section 3 on the same stream. Blocks read ahead and used are
/// young, as in the paper a hit is; so they get another turn that the first block of
/// their file does not get, and Table 1's advantage needs more than eight blocks.
#[test]
fn the_algorithm_of_section_3_on_the_stream_of_the_example() {
    let mut host = Host::new(simple(Kind::Clock, 8, sizes(0, 4, 4)));
    let (_, misses) = run(&mut host, Host::stack, true);
    let mut clock = Host::new(Simple::new(Kind::Clock, 8, 9));
    let (_, without) = run(&mut clock, lru_stack, true);
    println!("section 3: {misses} misses; CLOCK: {without}");
    assert!((7..=20).contains(&misses));
}
