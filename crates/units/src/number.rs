//! Parsing `NUMBER [UNIT]` exactly, without floating point.

use core::fmt;

/// Why a quantity could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The text is empty.
    Empty,
    /// The text does not start with a decimal number.
    NotANumber,
    /// The number is followed by a unit that this quantity does not have; the
    /// text lists those it has.
    UnknownUnit(&'static str),
    /// The value does not fit, or is finer than the smallest unit; the text
    /// gives the range.
    OutOfRange(&'static str),
    /// A range such as `5-3` runs backwards.
    Backwards,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::NotANumber => f.write_str("does not start with a decimal number"),
            Self::UnknownUnit(allowed) => write!(f, "has an unknown unit; allowed: {allowed}"),
            Self::OutOfRange(allowed) => write!(f, "is out of range; allowed: {allowed}"),
            Self::Backwards => f.write_str("has a range that runs backwards"),
        }
    }
}

impl core::error::Error for ParseError {}

/// One unit: its name and how many base units it holds.
pub(crate) type Unit = (&'static str, u64);

/// Reads `12.5us` as a whole number of base units. The result must be exact.
pub(crate) fn parse_scaled(
    text: &str,
    units: &[Unit],
    allowed: &'static str,
    range: &'static str,
) -> Result<u64, ParseError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    let number_len = text
        .bytes()
        .position(|b| !(b.is_ascii_digit() || b == b'.' || b == b'_'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_len);
    let unit = unit.trim();
    let scale = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| u128::from(*scale))
        .ok_or(ParseError::UnknownUnit(allowed));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().filter(|b| b.is_ascii_digit()).count();
    if digits(whole) == 0 || number.matches('.').count() > 1 {
        return Err(ParseError::NotANumber);
    }
    if number.contains('.') && digits(fraction) == 0 {
        return Err(ParseError::NotANumber);
    }
    let scale = scale?;
    let too_large = ParseError::OutOfRange(range);
    let mut value: u128 = 0;
    let mut divisor: u128 = 1;
    for (part, is_fraction) in [(whole, false), (fraction, true)] {
        for digit in part.bytes().filter(u8::is_ascii_digit) {
            value = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(u128::from(digit - b'0')))
                .ok_or(too_large)?;
            if is_fraction {
                divisor = divisor.checked_mul(10).ok_or(too_large)?;
            }
        }
    }
    let scaled = value.checked_mul(scale).ok_or(too_large)?;
    if scaled % divisor != 0 {
        return Err(too_large);
    }
    u64::try_from(scaled / divisor).map_err(|_| too_large)
}

/// Prints `value` in the largest unit that shows it exactly with at most three
/// decimals; `units` runs from small to large.
pub(crate) fn print_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    for &(name, scale) in units.iter().rev() {
        if value < scale {
            continue;
        }
        let thousandths = u128::from(value % scale) * 1000;
        if thousandths % u128::from(scale) != 0 {
            continue;
        }
        let whole = value / scale;
        let fraction = (thousandths / u128::from(scale)) as u64;
        return match fraction {
            0 => write!(f, "{whole}{name}"),
            _ if fraction.is_multiple_of(100) => write!(f, "{whole}.{}{name}", fraction / 100),
            _ if fraction.is_multiple_of(10) => write!(f, "{whole}.{:02}{name}", fraction / 10),
            _ => write!(f, "{whole}.{fraction:03}{name}"),
        };
    }
    let (name, _) = units[0];
    write!(f, "{value}{name}")
}
