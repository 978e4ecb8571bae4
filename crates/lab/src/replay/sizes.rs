//! Sizes of memory: in bytes, or as shares of what a trace touches.

use std::fmt;
use std::str::FromStr;

use piebald_units::{Bytes, ParseError};

/// Most pages of memory.
const MAX_PAGES: u64 = 1 << 28;

/// A size of memory as a user gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemorySize {
    /// Such as `64MiB`.
    Bytes(Bytes),
    /// Such as `10%`: of all different pages of the traces.
    Share(f64),
}

/// Why a size is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It cannot be read.
    #[error("size \"{text}\" {why}; or a share of the footprint such as 10%")]
    Unreadable {
        /// As given.
        text: String,
        /// What is wrong, and what is allowed.
        why: String,
    },
    /// It is too small or too large.
    #[error("size {size}: {pages} pages of {page_bytes} B; allowed: 1 to 2^28 pages")]
    Range {
        /// As given.
        size: String,
        /// In pages.
        pages: u64,
        /// Bytes of one.
        page_bytes: u64,
    },
    /// It holds nothing.
    #[error("size {0}: allowed for objects that take their bytes: 1 B and more")]
    Nothing(String),
}

impl FromStr for MemorySize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let bad = |why: String| SizeError::Unreadable {
            text: text.to_owned(),
            why,
        };
        if let Some(share) = text.trim().strip_suffix('%') {
            let share = share.trim().parse::<f64>().ok();
            let share = share.filter(|share| *share > 0.0 && *share <= 100.0);
            let no_share = || bad("is no share; allowed: a size such as 64MiB".to_owned());
            return share.map(|s| Self::Share(s / 100.0)).ok_or_else(no_share);
        }
        let parsed = text.parse::<Bytes>();
        parsed.map(Self::Bytes).map_err(|e| match e {
            ParseError::UnknownUnit { .. } => bad(e.to_string()),
            _ => bad(format!("{e}; allowed: a size such as 64MiB")),
        })
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

impl MemorySize {
    /// Does it depend on what the trace touches?
    pub fn needs_footprint(self) -> bool {
        matches!(self, Self::Share(_))
    }

    /// In pages of `page_bytes`, of a trace that touches `footprint` different ones.
    fn pages(self, page_bytes: u64, footprint: u64) -> Result<u64, SizeError> {
        let pages = match self {
            Self::Bytes(bytes) => bytes.0 / page_bytes,
            Self::Share(share) => ((footprint as f64 * share).round() as u64).max(1),
        };
        match (1..=MAX_PAGES).contains(&pages) {
            true => Ok(pages),
            false => Err(SizeError::Range {
                size: self.to_string(),
                pages,
                page_bytes,
            }),
        }
    }
}

/// All sizes in bytes, rising, each once, of a trace whose objects have `footprint` bytes.
pub(super) fn in_bytes(sizes: &[MemorySize], footprint: u64) -> Result<Vec<u64>, SizeError> {
    let mut bytes = Vec::with_capacity(sizes.len());
    for size in sizes {
        bytes.push(match size {
            MemorySize::Bytes(Bytes(0)) => return Err(SizeError::Nothing(size.to_string())),
            MemorySize::Bytes(bytes) => bytes.0,
            MemorySize::Share(share) => ((footprint as f64 * share).round() as u64).max(1),
        });
    }
    bytes.sort_unstable();
    bytes.dedup();
    Ok(bytes)
}

/// All sizes in pages, rising, each once.
pub(super) fn in_pages(
    sizes: &[MemorySize],
    page_bytes: u64,
    footprint: u64,
) -> Result<Vec<u64>, SizeError> {
    let mut pages = Vec::with_capacity(sizes.len());
    for size in sizes {
        pages.push(size.pages(page_bytes, footprint)?);
    }
    pages.sort_unstable();
    pages.dedup();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_shares() {
        assert_eq!("64MiB".parse(), Ok(MemorySize::Bytes(Bytes(64 << 20))));
        assert_eq!("12.5%".parse(), Ok(MemorySize::Share(0.125)));
        for text in ["", "%", "0%", "-1%", "101%", "nan%", "64 potatoes", "-1MiB"] {
            let error = text.parse::<MemorySize>().expect_err(text).to_string();
            assert!(error.contains(&format!("\"{text}\"")), "{error}");
        }
    }

    #[test]
    fn pages_rise_and_are_in_range() {
        let sizes: Vec<MemorySize> = ["50%", "8KiB", "1%", "200KiB"]
            .iter()
            .map(|s| s.parse().expect(s))
            .collect();
        assert_eq!(in_pages(&sizes, 4096, 100), Ok(vec![1, 2, 50]));
        assert_eq!(in_bytes(&sizes, 1_000), Ok(vec![10, 500, 8_192, 204_800]));
        let none = [MemorySize::Bytes(Bytes(0))];
        assert!(in_bytes(&none, 1_000).is_err());
        let small = [MemorySize::Bytes(Bytes(4095))];
        assert!(in_pages(&small, 4096, 100).is_err());
    }
}
