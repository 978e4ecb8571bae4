//! Sizes, times and frequencies: what is read is what was written, exactly.

use piebald_units::{Bytes, Hertz, ParseError, Picos};
use proptest::prelude::*;

const BYTE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];
const TIME_UNITS: &[(&str, u64)] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];
const CLOCK_UNITS: &[(&str, u64)] = &[
    ("Hz", 1),
    ("kHz", 1_000),
    ("MHz", 1_000_000),
    ("GHz", 1_000_000_000),
];

/// Values of every magnitude: uniform ones would nearly all have 64 bits.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        (any::<u64>(), 0u32..64).prop_map(|(v, shift)| v >> shift),
        (1u64..4096, 0u32..20).prop_map(|(v, e)| v.saturating_mul(10u64.saturating_pow(e))),
        (1u64..4096, 0u32..52).prop_map(|(v, e)| v << e),
    ]
}

/// `whole.fraction` with a unit, and its value by school arithmetic: the digits
/// as one integer, divided by a power of ten.
fn written(units: &'static [(&'static str, u64)]) -> impl Strategy<Value = (String, Option<u64>)> {
    ("[0-9]{1,12}", "[0-9]{0,12}", 0..units.len()).prop_map(|(whole, fraction, unit)| {
        let (name, scale) = units[unit];
        let digits: u128 = format!("{whole}{fraction}").parse().unwrap();
        let scaled = digits * u128::from(scale);
        let divisor = 10u128.pow(fraction.len() as u32);
        let exact = scaled.is_multiple_of(divisor);
        let value = u64::try_from(scaled / divisor).ok().filter(|_| exact);
        let point = if fraction.is_empty() { "" } else { "." };
        (format!("{whole}{point}{fraction}{name}"), value)
    })
}

proptest! {
    #[test]
    fn sizes_survive_printing_and_reading(v in value()) {
        prop_assert_eq!(Bytes(v).to_string().parse(), Ok(Bytes(v)));
    }

    #[test]
    fn times_survive_printing_and_reading(v in value()) {
        prop_assert_eq!(Picos(v).to_string().parse(), Ok(Picos(v)));
    }

    #[test]
    fn clocks_survive_printing_and_reading(v in value()) {
        prop_assert_eq!(Hertz(v).to_string().parse(), Ok(Hertz(v)));
    }

    #[test]
    fn sizes_are_read_exactly_or_refused((text, expected) in written(BYTE_UNITS)) {
        prop_assert_eq!(text.parse::<Bytes>().ok(), expected.map(Bytes));
    }

    #[test]
    fn times_are_read_exactly_or_refused((text, expected) in written(TIME_UNITS)) {
        prop_assert_eq!(text.parse::<Picos>().ok(), expected.map(Picos));
    }

    #[test]
    fn clocks_are_read_exactly_or_refused((text, expected) in written(CLOCK_UNITS)) {
        prop_assert_eq!(text.parse::<Hertz>().ok(), expected.map(Hertz));
    }

    #[test]
    fn what_is_printed_has_at_most_three_decimals(v in value()) {
        let text = Picos(v).to_string();
        let decimals = text.split_once('.').map_or(0, |(_, rest)| {
            rest.bytes().take_while(u8::is_ascii_digit).count()
        });
        prop_assert!(decimals <= 3, "{text}");
        prop_assert!(!text.contains(".0") || decimals > 1, "{text}");
    }

    #[test]
    fn pages_cover_a_size_and_no_more(v in any::<u64>()) {
        let pages = u128::from(Bytes(v).pages_up());
        prop_assert!(pages * 4096 >= u128::from(v));
        prop_assert!(v == 0 || (pages - 1) * 4096 < u128::from(v));
    }

    #[test]
    fn a_cycle_is_rounded_to_the_nearest_part(hz in 1u64..10_000_000_000) {
        let cycle = u128::from(Hertz(hz).cycle_ps_q8().unwrap());
        let exact_times_hz = 1_000_000_000_000u128 << 8;
        let error = (cycle * u128::from(hz)).abs_diff(exact_times_hz);
        prop_assert!(error * 2 <= u128::from(hz));
    }

    #[test]
    fn clocks_of_cores_lose_less_than_one_in_a_hundred_thousand(hz in 1u64..=3_000_000_000) {
        let cycle = u128::from(Hertz(hz).cycle_ps_q8().unwrap());
        let exact_times_hz = 1_000_000_000_000u128 << 8;
        let error = (cycle * u128::from(hz)).abs_diff(exact_times_hz);
        prop_assert!(error * 100_000 < exact_times_hz);
    }

    #[test]
    fn time_saturates_and_differences_stop_at_zero(a in any::<u64>(), b in any::<u64>()) {
        prop_assert_eq!(Picos(a) + Picos(b), Picos(a.saturating_add(b)));
        prop_assert_eq!(Picos(a).checked_add(Picos(b)), a.checked_add(b).map(Picos));
        prop_assert_eq!(Picos(a).since(Picos(b)), Picos(a.saturating_sub(b)));
        prop_assert_eq!(Bytes(a).checked_add(Bytes(b)), a.checked_add(b).map(Bytes));
        prop_assert_eq!(Picos::from_ns(a), a.checked_mul(1000).map(Picos));
    }
}

#[test]
fn the_written_forms_of_the_documentation_are_read() {
    assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
    assert_eq!(" 1.5 GiB ".parse(), Ok(Bytes(1_610_612_736)));
    assert_eq!("0".parse(), Ok(Bytes(0)));
    assert_eq!("9.2us".parse(), Ok(Picos(9_200_000)));
    assert_eq!("1_000ns".parse(), Ok(Picos(1_000_000)));
    assert_eq!("2.93GHz".parse(), Ok(Hertz(2_930_000_000)));
    assert_eq!("666.667MHz".parse(), Ok(Hertz(666_667_000)));
}

#[test]
fn quantities_print_in_the_largest_exact_unit() {
    assert_eq!(Bytes(0).to_string(), "0B");
    assert_eq!(Bytes(1023).to_string(), "1023B");
    assert_eq!(Bytes(1024).to_string(), "1KiB");
    assert_eq!(Picos(1_000).to_string(), "1ns");
    assert_eq!(Bytes(1536).to_string(), "1.5KiB");
    assert_eq!(Bytes(u64::MAX).to_string(), "18446744073709551615B");
    assert_eq!(Picos(1_050_000).to_string(), "1.05us");
    assert_eq!(Picos(1_005_000).to_string(), "1.005us");
    assert_eq!(Picos(1_000_500).to_string(), "1000.5ns");
    assert_eq!(Hertz(2_930_000_000).to_string(), "2.93GHz");
    assert_eq!(Hertz(0).to_string(), "0Hz");
}

#[test]
fn each_mistake_has_its_own_error() {
    let size = |text: &str| text.parse::<Bytes>().unwrap_err();
    assert_eq!(size(""), ParseError::Empty);
    assert_eq!(size("  "), ParseError::Empty);
    for text in [
        "KiB", "-1B", "+1B", ".5KiB", "1.B", "1.2.3B", "_1B", "1_B", "1__0B", "1_.5KiB", "1._5KiB",
        "µs",
    ] {
        assert_eq!(size(text), ParseError::NotANumber, "{text}");
    }
    for text in ["1", "1KB", "1kib", "1 Ki B", "1e3B", "0x10B", "1B1", "1µB"] {
        assert!(
            matches!(size(text), ParseError::UnknownUnit { .. }),
            "{text}"
        );
    }
    for (text, meant) in [
        ("2GB", "2GiB"),
        ("64mb", "64MiB"),
        ("1.50k", "1.5KiB"),
        ("7gib", "7GiB"),
    ] {
        let said = size(text).to_string();
        assert!(said.contains(&format!("did you mean {meant}?")), "{said}");
    }
    for text in ["1", "1e3B", "1µB", "5pages"] {
        assert!(!size(text).to_string().contains("did you mean"), "{text}");
    }
    for text in [
        "0.5B",
        "0.0001KiB",
        "16777216TiB",
        "18446744073709551616B",
        "999999999999999999999999999999999999999999999B",
        "0.00000000000000000000000000000000000000000000001B",
    ] {
        assert!(matches!(size(text), ParseError::OutOfRange(_)), "{text}");
    }
}

#[test]
fn zeros_that_end_a_fraction_change_nothing() {
    let zeros = "0".repeat(100);
    assert_eq!(format!("1.5{zeros}s").parse(), Ok(Picos(1_500_000_000_000)));
    assert_eq!(
        format!("{zeros}1.{zeros}s").parse(),
        Ok(Picos(1_000_000_000_000))
    );
}

#[test]
fn the_largest_values_are_read_and_the_next_ones_refused() {
    assert_eq!("18446744073709551615B".parse(), Ok(Bytes(u64::MAX)));
    assert_eq!("18446744073709551615ps".parse(), Ok(Picos::MAX));
    assert_eq!("18446744.073709551615s".parse(), Ok(Picos::MAX));
    assert!("18446744.073709551616s".parse::<Picos>().is_err());
    assert!("18446744074GHz".parse::<Hertz>().is_err());
}

#[test]
fn errors_say_what_is_allowed() {
    let error = "64KB".parse::<Bytes>().unwrap_err().to_string();
    assert!(error.contains("KiB") && error.contains("unit"), "{error}");
    let error = "0.5ps".parse::<Picos>().unwrap_err().to_string();
    assert!(error.contains("whole number of picoseconds"), "{error}");
    let error = "1GB".parse::<Hertz>().unwrap_err().to_string();
    assert!(error.contains("GHz"), "{error}");
}

#[test]
fn no_clock_has_no_cycle() {
    assert_eq!(Hertz(0).cycle_ps_q8(), None);
    assert_eq!(Hertz(1).cycle_ps_q8(), Some(1_000_000_000_000 << 8));
}
