//! What a person writes to ask for colours: `0-3,8`, or a share such as `25%` or `12.5%`.

use piebald_policy::rainbow::Ask;
use piebald_units::ColorSet;

use crate::host::Fault;

/// What was asked for; lies in the host, since a kernel's stack is small.
pub(crate) struct Wanted {
    /// A share in hundredths of a percent; then the set means nothing.
    share: Option<u32>,
    set: ColorSet,
}

impl Wanted {
    /// Nothing.
    pub(crate) const NOTHING: Self = Self {
        share: None,
        set: ColorSet::EMPTY,
    };

    /// Reads a text in place.
    ///
    /// # Errors
    /// If it is neither a set of colours nor a share.
    #[inline(never)]
    pub(crate) fn read(&mut self, text: &str) -> Result<(), Fault> {
        self.share = match text.as_bytes() {
            [share @ .., b'%'] => Some(basis_points(share).ok_or(Fault::Share)?),
            _ => None,
        };
        match self.share {
            Some(_) => Ok(()),
            None => text
                .parse()
                .map(|set: ColorSet| self.set.clone_from(&set))
                .map_err(Fault::Colors),
        }
    }

    /// As the registry is asked.
    pub(crate) const fn ask(&self) -> Ask<'_> {
        match self.share {
            Some(basis_points) => Ask::Share(basis_points),
            None => Ask::Exactly(&self.set),
        }
    }
}

/// `12.5` as 1250; at most three digits before the point and two behind it.
fn basis_points(text: &[u8]) -> Option<u32> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let whole = digits(parts.next()?, 3)?;
    let part = match parts.next() {
        None => 0,
        Some(part) if part.len() == 1 => digits(part, 1)?.wrapping_mul(10),
        Some(part) => digits(part, 2)?,
    };
    Some(whole.wrapping_mul(100).wrapping_add(part))
}

/// One to `most` decimal digits.
fn digits(text: &[u8], most: usize) -> Option<u32> {
    if text.is_empty() || text.len() > most || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0u32, |n, digit| {
        n.wrapping_mul(10)
            .wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    }))
}
