//! Partitions that may have colours in common.

use piebald_policy::rainbow::{
    Ask, Config, Left, Partition, Refusal, Registry, Reservation, Resized, Sharing,
};
use piebald_units::ColorSet;

type Small = Registry<[Partition; 4]>;

fn shared(keep_unreserved: u32) -> Small {
    let config = Config {
        sharing: Sharing::Shared,
        keep_unreserved,
        ..Config::PAPER
    };
    Registry::new([const { Partition::EMPTY }; 4], 16, config).expect("a configuration")
}

fn set(text: &str) -> ColorSet {
    text.parse().expect("colors")
}

fn exactly(
    registry: &mut Small,
    text: &str,
) -> Result<piebald_policy::rainbow::PartitionId, Refusal> {
    let made = registry.reserve(&Reservation::of(Ask::Exactly(&set(text))));
    registry.validate().expect("the books are right");
    made
}

#[test]
fn a_color_is_unreserved_when_its_last_partition_ends() {
    let mut registry = shared(1);
    let one = exactly(&mut registry, "0-7").expect("free");
    let other = exactly(&mut registry, "4-11").expect("may overlap");
    assert_eq!(registry.unreserved().to_string(), "12-15");
    assert_eq!(registry.release(one), Ok(Left::Freed(8)));
    registry.validate().expect("the books are right");
    assert_eq!(registry.unreserved().to_string(), "0-3,12-15");
    assert_eq!(registry.release(other), Ok(Left::Freed(8)));
    assert_eq!(registry.unreserved().to_string(), "0-15");
}

#[test]
fn colors_that_others_have_already_leave_as_many_to_everyone_else() {
    let mut registry = shared(1);
    let most = exactly(&mut registry, "0-14").expect("one is left");
    assert!(matches!(
        exactly(&mut registry, "15"),
        Err(Refusal::TooMany { asked: 1, left: 0 })
    ));
    exactly(&mut registry, "3,14").expect("nothing is taken from everyone else");
    assert!(matches!(
        registry.resize(most, &Ask::Exactly(&set("0-15"))),
        Err(Refusal::TooMany { asked: 1, left: 0 })
    ));
    // Its colour 15 is free if another is given back, but not 3, which is shared.
    let swap = set("0-13,15");
    assert!(registry.resize(most, &Ask::Exactly(&swap)).is_err());
    let swap = set("0-12,15");
    let resized = registry.resize(most, &Ask::Exactly(&swap));
    assert_eq!(resized, Ok(Resized { gained: 1, lost: 2 }));
    registry.validate().expect("the books are right");
    assert_eq!(registry.unreserved().to_string(), "13");
}

#[test]
fn counts_and_shares_are_of_colors_that_nobody_has() {
    let mut registry = shared(0);
    exactly(&mut registry, "0-3").expect("free");
    let share = registry
        .reserve(&Reservation::of(Ask::percent(25)))
        .expect("free");
    let colors = registry.get(share).map(|p| p.colors().to_string());
    assert_eq!(colors, Ok("4-7".to_owned()));
    assert!(matches!(
        registry.reserve(&Reservation::of(Ask::Count(9))),
        Err(Refusal::TooMany { asked: 9, left: 8 })
    ));
}
