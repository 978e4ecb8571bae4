//! Sets of colours and cores against a plain ordered set.

use std::collections::BTreeSet;

use piebald_units::{Color, ColorSet, CoreId, CoreSet, MAX_COLORS, MAX_CORES, ParseError};
use proptest::prelude::*;

/// One change to a set.
#[derive(Clone, Copy, Debug)]
enum Change {
    Insert(u16),
    Remove(u16),
}

/// Colours near word borders and beyond the end are as likely as the others.
fn color() -> impl Strategy<Value = u16> {
    prop_oneof![
        0u16..4200,
        (0u16..66, 0u16..2).prop_map(|(word, last)| word * 64 + last * 63),
        any::<u16>(),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        color().prop_map(Change::Insert),
        color().prop_map(Change::Remove),
    ]
}

/// Counts everything from scratch and compares it with the fast answers.
fn agrees(set: &ColorSet, oracle: &BTreeSet<u16>) -> Result<(), TestCaseError> {
    prop_assert_eq!(set.len() as usize, oracle.len());
    prop_assert_eq!(set.is_empty(), oracle.is_empty());
    prop_assert!(set.iter().map(|c| c.0).eq(oracle.iter().copied()));
    for word in 0..MAX_COLORS / 64 {
        let expected = (0..64u16)
            .filter(|bit| oracle.contains(&(word as u16 * 64 + bit)))
            .fold(0u64, |sum, bit| sum | 1 << bit);
        prop_assert_eq!(set.word(word), expected);
        prop_assert_eq!(set.summary() >> word & 1 == 1, expected != 0);
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_color_set_agrees_with_an_ordered_set(changes in prop::collection::vec(change(), 0..60)) {
        let mut set = ColorSet::EMPTY;
        let mut oracle = BTreeSet::new();
        for change in changes {
            match change {
                Change::Insert(c) => {
                    let fits = usize::from(c) < MAX_COLORS;
                    prop_assert_eq!(set.insert(Color(c)), fits);
                    if fits {
                        oracle.insert(c);
                    }
                    prop_assert_eq!(set.contains(Color(c)), fits);
                }
                Change::Remove(c) => {
                    set.remove(Color(c));
                    oracle.remove(&c);
                    prop_assert!(!set.contains(Color(c)));
                }
            }
            agrees(&set, &oracle)?;
        }
    }

    #[test]
    fn color_sets_survive_printing_and_reading(colors in prop::collection::btree_set(0u16..4096, 0..80)) {
        let mut set = ColorSet::EMPTY;
        for c in &colors {
            set.insert(Color(*c));
        }
        let text = set.to_string();
        prop_assert_eq!(text.parse::<ColorSet>(), Ok(set));
    }

    #[test]
    fn core_sets_survive_printing_and_reading(bits in 1u64..) {
        let mut set = CoreSet::EMPTY;
        for core in (0..64u16).filter(|c| bits >> c & 1 == 1) {
            set = set.union(CoreSet::one(CoreId(core)));
        }
        prop_assert_eq!(set.bits(), bits);
        prop_assert_eq!(set.len(), bits.count_ones());
        prop_assert!(set.iter().all(|c| bits >> c.0 & 1 == 1));
        prop_assert_eq!(set.iter().count() as u32, set.len());
        prop_assert_eq!(set.to_string().parse::<CoreSet>(), Ok(set));
    }

    #[test]
    fn ranges_mean_all_numbers_between(low in 0u16..4096, high in 0u16..4096) {
        let read = format!(" {low} - {high} ").parse::<ColorSet>();
        if high < low {
            prop_assert_eq!(read, Err(ParseError::Backwards));
        } else {
            let set = read.unwrap();
            prop_assert!(set.iter().map(|c| c.0).eq(low..=high));
        }
    }

    #[test]
    fn the_first_colors_are_a_range(n in 0u32..5000) {
        let set = ColorSet::first(n);
        prop_assert!(set.iter().map(|c| u32::from(c.0)).eq(0..n.min(4096)));
    }

    #[test]
    fn the_first_cores_are_a_range(n in 0u32..200) {
        prop_assert!(CoreSet::first(n).iter().map(|c| u32::from(c.0)).eq(0..n.min(64)));
    }
}

#[test]
fn sets_print_runs_and_read_them_back() {
    let set: ColorSet = "8,0-3,2,4095".parse().unwrap();
    assert_eq!(set.to_string(), "0-3,8,4095");
    assert_eq!(ColorSet::EMPTY.to_string(), "none");
    assert_eq!("none".parse(), Ok(ColorSet::EMPTY));
    assert_eq!(" 0-63 ".parse::<CoreSet>().unwrap().bits(), u64::MAX);
    assert_eq!(format!("{:?}", ColorSet::first(2)), "ColorSet(0-1)");
}

#[test]
fn each_mistake_has_its_own_error() {
    let colors = |text: &str| text.parse::<ColorSet>().unwrap_err();
    assert_eq!(colors(""), ParseError::Empty);
    assert_eq!(colors(" \t"), ParseError::Empty);
    for text in [
        "a", "1,", ",1", "1,,2", "1-", "-1", "1-2-3", "0x1", "1 2", "+1", "nones", "1,none", "٣",
    ] {
        assert_eq!(colors(text), ParseError::NotANumber, "{text}");
    }
    for text in ["4096", "0-4096", "4294967296", "99999999999999999999"] {
        assert!(matches!(colors(text), ParseError::OutOfRange(_)), "{text}");
    }
    assert_eq!(colors("5-3"), ParseError::Backwards);
    let cores = |text: &str| text.parse::<CoreSet>().unwrap_err();
    assert!(matches!(cores("64"), ParseError::OutOfRange(_)));
    assert_eq!(cores("none"), ParseError::NotANumber);
    assert!(cores("0-64").to_string().contains("cores 0-63"));
}

#[test]
fn what_lies_beyond_the_end_is_in_no_set() {
    let mut set = ColorSet::first(4096);
    let full = set.clone();
    assert!(!set.insert(Color(4096)));
    set.remove(Color(4096));
    assert_eq!(set, full);
    assert!(!set.contains(Color(u16::MAX)));
    assert_eq!(set.word(64), 0);
    assert_eq!(set.word(usize::MAX), 0);
    assert_eq!(CoreSet::one(CoreId(MAX_CORES as u16)), CoreSet::EMPTY);
    assert!(!CoreSet::first(64).contains(CoreId(64)));
    assert!(!CoreSet::first(64).contains(CoreId(u16::MAX)));
}

#[test]
fn a_color_set_is_as_large_as_its_documentation_says() {
    assert_eq!(size_of::<ColorSet>(), 520);
    assert_eq!(size_of::<CoreSet>(), 8);
}

/// Words are a second way to the same sets, so both must tell the same.
#[test]
fn words_and_colors_are_two_views_of_one_set() {
    let mut set: ColorSet = "3,64-70,4095".parse().unwrap();
    set.insert_word(1, 1 << 63);
    set.set_word(0, 0b101);
    set.set_word(63, 0);
    set.insert_word(64, u64::MAX);
    assert_eq!(set, "0,2,64-70,127".parse().unwrap());
    assert_eq!(set.summary(), 0b11);
    let mut copy = ColorSet::first(4096);
    copy.copy_words(&set, 1);
    assert_eq!((copy.to_string().as_str(), copy.summary()), ("0,2", 1));
    copy.copy_words(&set, 64);
    assert_eq!(copy, set);
    copy.clear();
    assert_eq!(copy, ColorSet::EMPTY);
}
