//! Numbers and fields of text traces.

use super::error::Complaint;

/// Blank-separated fields of a line.
pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| *b == b' ' || *b == b'\t')
        .filter(|f| !f.is_empty())
}

/// A decimal number up to `max`.
pub(crate) fn decimal(
    field: &'static str,
    text: &[u8],
    max: u64,
    allowed: &'static str,
) -> Result<u64, Complaint> {
    let complain = || Complaint::text(field, text, allowed);
    if text.is_empty() {
        return Err(complain());
    }
    let mut value: u64 = 0;
    for &b in text {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return Err(complain());
        }
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(digit)))
            .filter(|v| *v <= max)
            .ok_or_else(complain)?;
    }
    Ok(value)
}

/// A hexadecimal number without prefix, of up to 16 digits.
pub(crate) fn hex(field: &'static str, text: &[u8]) -> Result<u64, Complaint> {
    let complain = || {
        Complaint::text(
            field,
            text,
            "a hexadecimal number without 0x, of 1 to 16 digits",
        )
    };
    if text.is_empty() || text.len() > 16 {
        return Err(complain());
    }
    let mut value: u64 = 0;
    for &b in text {
        let digit = (b as char).to_digit(16).ok_or_else(complain)?;
        value = value << 4 | u64::from(digit);
    }
    Ok(value)
}

/// A hexadecimal number with prefix `0x`.
pub(crate) fn hex_prefixed(field: &'static str, text: &[u8]) -> Result<u64, Complaint> {
    text.strip_prefix(b"0x")
        .or_else(|| text.strip_prefix(b"0X"))
        .and_then(|digits| hex(field, digits).ok())
        .ok_or_else(|| {
            Complaint::text(field, text, "0x and a hexadecimal number of 1 to 16 digits")
        })
}
