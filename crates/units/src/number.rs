//! Parsing `NUMBER [UNIT]` exactly, without floating point.

use core::fmt;

/// Why a quantity could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The text is empty.
    Empty,
    /// The text does not start with a decimal number, or a list has something
    /// else than a number in it.
    NotANumber,
    /// The number is followed by a unit that this quantity does not have, or by
    /// none.
    UnknownUnit {
        /// Those it has.
        allowed: &'static str,
        /// What was probably meant: `2GiB` for `2GB`.
        meant: Option<Meant>,
    },
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
            Self::UnknownUnit { allowed, meant } => {
                f.write_str("has an unknown unit")?;
                if let Some(meant) = meant {
                    write!(f, " (did you mean {meant}?)")?;
                }
                write!(f, ", or none; allowed: {allowed}")
            }
            Self::OutOfRange(allowed) => write!(f, "is out of range; allowed: {allowed}"),
            Self::Backwards => f.write_str("has a range that runs backwards"),
        }
    }
}

impl core::error::Error for ParseError {}

/// A quantity whose unit was guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meant {
    /// The number is `digits / 10^decimals`.
    digits: u64,
    decimals: u32,
    unit: &'static str,
}

impl Meant {
    /// The unit of `units` that is written like `unit`, with the number before it.
    fn of(decimal: &Decimal, unit: &str, units: &[Unit]) -> Option<Self> {
        let (name, _) = units.iter().find(|(name, _)| is_like(unit, name))?;
        let (digits, decimals) = decimal.0?;
        Some(Self {
            digits: u64::try_from(digits).ok()?,
            decimals,
            unit: name,
        })
    }
}

impl fmt::Display for Meant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = 10u64.checked_pow(self.decimals);
        let parts = scale.and_then(|s| Some((self.digits.checked_div(s)?, self.digits % s)));
        match (parts, self.decimals) {
            (Some((whole, _)), 0) => write!(f, "{whole}{}", self.unit),
            (Some((whole, part)), decimals) => {
                write!(
                    f,
                    "{whole}.{part:0width$}{}",
                    self.unit,
                    width = decimals as usize
                )
            }
            (None, _) => f.write_str(self.unit),
        }
    }
}

/// Is `given` the unit `name` in another case, without the `i` of a binary prefix (`GB`), or its
/// first letter (`G`)?
fn is_like(given: &str, name: &str) -> bool {
    if given.is_empty() || name.is_empty() {
        return false;
    }
    let plain = |text: &str, other: &str| text.eq_ignore_ascii_case(other);
    let binary = name.ends_with("iB");
    let letter = name.get(..1).unwrap_or(name);
    let without_i = binary
        && given.len() == 2
        && plain(given.get(..1).unwrap_or(""), letter)
        && plain(given.get(1..).unwrap_or(""), "B");
    plain(given, name) || without_i || (binary && plain(given, letter))
}

/// One unit: its name and how many base units it holds.
pub(crate) type Unit = (&'static str, u64);

/// Reads `12.5us` as a whole number of base units. The result must be exact.
///
/// Digits may be grouped by single underscores (`1_000us`).
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
    let (number, unit) = split_number(text);
    let decimal = Decimal::read(number)?;
    let unit = unit.trim();
    let (_, scale) =
        units
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or(ParseError::UnknownUnit {
                allowed,
                meant: Meant::of(&decimal, unit, units),
            })?;
    decimal.times(*scale).ok_or(ParseError::OutOfRange(range))
}

/// Cuts after the leading digits, points and underscores.
fn split_number(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|b| !(b.is_ascii_digit() || b == b'.' || b == b'_'))
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A decimal number as `value / 10^decimals`; `None` where it needs more than
/// 128 bits.
struct Decimal(Option<(u128, u32)>);

impl Decimal {
    fn read(number: &str) -> Result<Self, ParseError> {
        let mut value = Some(0u128);
        let mut decimals = 0u32;
        // Zeros that end the fraction change nothing, and would overflow.
        let mut zeros = 0u32;
        let mut point = false;
        let mut last = b'_';
        for byte in number.bytes() {
            match byte {
                b'0' if point => zeros = zeros.saturating_add(1),
                b'0'..=b'9' => {
                    let shift = zeros.saturating_add(1);
                    value = push_digit(value, shift, byte - b'0');
                    if point {
                        decimals = decimals.saturating_add(shift);
                    }
                    zeros = 0;
                }
                b'.' if !point && last.is_ascii_digit() => point = true,
                b'_' if last.is_ascii_digit() => {}
                _ => return Err(ParseError::NotANumber),
            }
            last = byte;
        }
        if !last.is_ascii_digit() {
            return Err(ParseError::NotANumber);
        }
        Ok(Self(value.map(|v| (v, decimals))))
    }

    /// The product, if it is whole and fits.
    fn times(&self, scale: u64) -> Option<u64> {
        let (value, decimals) = self.0?;
        let divisor = 10u128.checked_pow(decimals)?;
        let scaled = value.checked_mul(u128::from(scale))?;
        if scaled.checked_rem(divisor)? != 0 {
            return None;
        }
        u64::try_from(scaled.checked_div(divisor)?).ok()
    }
}

/// Appends `shift - 1` zeros and a digit.
fn push_digit(value: Option<u128>, shift: u32, digit: u8) -> Option<u128> {
    value?
        .checked_mul(10u128.checked_pow(shift)?)?
        .checked_add(u128::from(digit))
}

/// Prints `value` in the largest unit that shows it exactly with at most three
/// decimals; `units` runs from small to large and starts with the base unit.
pub(crate) fn print_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    for &(name, scale) in units.iter().rev().filter(|(_, scale)| *scale <= value) {
        if let Some((whole, thousandths)) = in_thousandths(value, scale) {
            return match thousandths {
                0 => write!(f, "{whole}{name}"),
                t if t % 100 == 0 => write!(f, "{whole}.{}{name}", t / 100),
                t if t % 10 == 0 => write!(f, "{whole}.{:02}{name}", t / 10),
                t => write!(f, "{whole}.{t:03}{name}"),
            };
        }
    }
    write!(f, "{value}{}", units.first().map_or("", |(name, _)| name))
}

/// `value / scale` as a whole part and thousandths, if that is exact.
fn in_thousandths(value: u64, scale: u64) -> Option<(u64, u64)> {
    let whole = value.checked_div(scale)?;
    let rest = u128::from(value.checked_rem(scale)?).checked_mul(1000)?;
    let scale = u128::from(scale);
    if rest.checked_rem(scale)? != 0 {
        return None;
    }
    let thousandths = u64::try_from(rest.checked_div(scale)?).ok()?;
    Some((whole, thousandths))
}
