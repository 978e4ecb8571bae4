//! Fields and numbers of text traces.

use crate::foreign::error::Complaint;
pub(crate) use crate::foreign::text::fields;

/// Decimal numbers of 64 bits.
pub(crate) const ANY: &str = "a decimal number from 0 to 18446744073709551615";
/// Decimal numbers of 32 bits.
pub(crate) const ANY_32: &str = "a decimal number from 0 to 4294967295";

/// A decimal number of up to 64 bits.
pub(crate) fn number(field: &'static str, text: &[u8]) -> Result<u64, Complaint> {
    plain(text).ok_or_else(|| Complaint::text(field, text, ANY))
}

/// A decimal number of up to 32 bits.
pub(crate) fn number_32(field: &'static str, text: &[u8]) -> Result<u32, Complaint> {
    plain(text)
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(|| Complaint::text(field, text, ANY_32))
}

/// Digits and nothing else.
pub(crate) fn plain(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &b in text {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Up to 19 digits fit without a check.
        value = match text.len() {
            ..=19 => value * 10 + u64::from(digit),
            _ => value.checked_mul(10)?.checked_add(u64::from(digit))?,
        };
    }
    Some(value)
}

/// A decimal number with an optional fraction, times 10 to the power of `shift` (up to 9). Digits
/// beyond that are cut off.
pub(crate) fn scaled(
    field: &'static str,
    text: &[u8],
    shift: usize,
    allowed: &'static str,
) -> Result<u64, Complaint> {
    parse_scaled(text, shift).ok_or_else(|| Complaint::text(field, text, allowed))
}

fn parse_scaled(text: &[u8], shift: usize) -> Option<u64> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let whole = plain(&text[..point])?;
    let mut value = whole.checked_mul(10u64.pow(shift as u32))?;
    let digits = text.get(point + 1..).unwrap_or_default();
    let mut unit = 10u64.pow(shift as u32);
    for &b in digits {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        unit /= 10;
        value = value.checked_add(u64::from(digit) * unit)?;
    }
    Some(value)
}

/// Seconds to nanoseconds.
pub(crate) fn seconds(field: &'static str, text: &[u8]) -> Result<u64, Complaint> {
    scaled(
        field,
        text,
        9,
        "seconds with an optional fraction, below 2^64 ns",
    )
}

/// Whether each of several numbers is a multiple of a sector's bytes, and not all are 0: then they may be
/// bytes where a format has sectors.
pub(crate) fn may_be_bytes(numbers: impl Iterator<Item = Option<u64>>) -> bool {
    let (mut seen, mut some) = (0, false);
    for number in numbers {
        match number {
            Some(n) if n % 512 == 0 => some |= n > 0,
            _ => return false,
        }
        seen += 1;
    }
    seen > 1 && some
}

/// Whether lengths that should be bytes look like numbers of sectors or blocks: no request that reaches a disk
/// is shorter than a sector.
pub(crate) fn may_be_sectors(lengths: impl Iterator<Item = Option<u64>>) -> bool {
    let (mut seen, mut all) = (0, true);
    for length in lengths {
        all &= length.is_some_and(|n| (1..512).contains(&n));
        seen += 1;
    }
    seen > 1 && all
}

/// Fields between commas, without blanks around them.
pub(crate) fn comma_fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| *b == b',').map(<[u8]>::trim_ascii)
}

/// Exactly `N` fields, or the whole line as what is wrong.
pub(crate) fn exactly<'a, const N: usize>(
    line: &'a [u8],
    mut fields: impl Iterator<Item = &'a [u8]>,
    allowed: &'static str,
) -> Result<[&'a [u8]; N], Complaint> {
    let found = at_least(line, &mut fields, allowed)?;
    match fields.next() {
        None => Ok(found),
        Some(_) => Err(Complaint::text("the line", line, allowed)),
    }
}

/// The first `N` fields, or the whole line as what is wrong.
pub(crate) fn at_least<'a, const N: usize>(
    line: &'a [u8],
    fields: &mut impl Iterator<Item = &'a [u8]>,
    allowed: &'static str,
) -> Result<[&'a [u8]; N], Complaint> {
    let mut found = [&line[..0]; N];
    for place in &mut found {
        *place = fields
            .next()
            .ok_or_else(|| Complaint::text("the line", line, allowed))?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_that_fit() {
        assert_eq!(plain(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(plain(b"18446744073709551616"), None);
        assert_eq!(plain(b"00000000000000000000000007"), Some(7));
        assert_eq!(
            plain(b"9999999999999999999"),
            Some(9_999_999_999_999_999_999)
        );
        for bad in [&b""[..], b"-1", b"+1", b"1 ", b"0x1", b"1e3"] {
            assert_eq!(plain(bad), None, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn fractions_are_exact_to_the_nanosecond() {
        assert_eq!(parse_scaled(b"0.009507758", 9), Some(9_507_758));
        assert_eq!(
            parse_scaled(b"1456095145.133076000", 9),
            Some(1_456_095_145_133_076_000)
        );
        assert_eq!(parse_scaled(b"5.1234567899", 9), Some(5_123_456_789));
        assert_eq!(parse_scaled(b"663.5", 3), Some(663_500));
        assert_eq!(parse_scaled(b"7", 6), Some(7_000_000));
        assert_eq!(parse_scaled(b"7.", 6), Some(7_000_000));
        for bad in [&b".5"[..], b"", b"1.-5", b"1.5.5", b"1e5", b"18446744073.8"] {
            assert_eq!(parse_scaled(bad, 9), None, "{}", bad.escape_ascii());
        }
    }
}
