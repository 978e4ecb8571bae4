//! Numbers of the command line: what is no number, or is out of range, is told with what is allowed.

use std::ops::RangeInclusive;

/// Any seed.
pub(crate) const SEEDS: RangeInclusive<u64> = 0..=u64::MAX;
/// Ids of processes: those of the kernel are positive.
pub(crate) const PIDS: RangeInclusive<u64> = 1..=i32::MAX as u64;

/// A reader of whole numbers of a range, which `T` must hold.
pub(crate) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number: Option<u64> = text.parse().ok();
        let number = number.filter(|number| range.contains(number));
        number.and_then(|n| T::try_from(n).ok()).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            format!("allowed: a whole number from {least} to {most}")
        })
    }
}

/// Reads a number with a fraction, as in `0.1`; the range is for who uses it to check.
///
/// # Errors
/// It is no number.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.ok_or_else(|| "allowed: a number such as 0.01".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_range_are_read_and_others_told() {
        let read = whole::<u16>(3..=1024);
        assert_eq!(read("3"), Ok(3));
        assert_eq!(read("1024"), Ok(1024));
        let seed = whole::<u64>(SEEDS);
        assert_eq!(seed("18446744073709551615"), Ok(u64::MAX));
        assert!(seed("18446744073709551616").is_err());
        for wrong in ["2", "1025", "-3", "", "x", "3.0", "1e2", " 3"] {
            let told = Err("allowed: a whole number from 3 to 1024".to_owned());
            assert_eq!(read(wrong), told, "{wrong}");
        }
    }

    #[test]
    fn fractions_are_numbers() {
        assert_eq!(fraction("1"), Ok(1.0));
        assert_eq!(fraction("1e-3"), Ok(0.001));
        for wrong in ["", "half", "1,5", "1/2"] {
            let told = Err("allowed: a number such as 0.01".to_owned());
            assert_eq!(fraction(wrong), told, "{wrong}");
        }
    }
}
