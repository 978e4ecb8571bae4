//! Sizes of memory: in bytes, or as shares of what a trace touches.

use piebald_experiment::MemorySize;
use piebald_units::Bytes;

/// Most pages of memory.
const MAX_PAGES: u64 = 1 << 28;

/// Why a size is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
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
    /// The tables do not fit in this computer's memory.
    #[error(
        "memory of {most}: the tables of {} would take some {needed}, and this computer has {available} of \
         memory left; allowed: smaller sizes{}{}",
        runs_in_words(*.runs), fewer(*.runs), enough(*.footprint, *.page_bytes)
    )]
    Tables {
        /// The largest size.
        most: Bytes,
        /// Policies times sizes.
        runs: usize,
        /// Bytes of tables.
        needed: Bytes,
        /// Bytes that there are.
        available: Bytes,
        /// Different pages of the trace; 0 = nobody has counted them.
        footprint: u64,
        /// Bytes of a page.
        page_bytes: u64,
    },
    /// It holds nothing.
    #[error("size {0}: allowed for objects that take their bytes: 1 B and more")]
    Nothing(String),
}

/// Does it depend on what the trace touches?
pub(super) fn needs_footprint(size: MemorySize) -> bool {
    matches!(size, MemorySize::Share(_))
}

/// Bytes that a page of memory takes in the tables of policies by the beginning of their names, without a disk and
/// with the kernel above one: resident memory of replays of 500 pages with 50 GiB of memory, each policy with its
/// own default options. Traces of more pages take more.
const TABLE_BYTES: [(&str, [u64; 2]); 11] = [
    ("2q", [3, 45]),
    ("arc", [24, 80]),
    ("dulo", [147, 175]),
    ("linux-2.6.30", [17, 45]),
    ("lirs", [40, 95]),
    ("lru-", [80, 134]),
    ("mglru", [48, 103]),
    ("min", [17, 17]),
    ("mq", [118, 255]),
    ("s3-fifo", [3, 55]),
    ("w-tinylfu", [17, 45]),
];
/// Those of all others.
const OTHER_BYTES: [u64; 2] = [3, 30];

/// Bytes that a page takes in the tables of a policy.
fn table_bytes(policy: &str, disk: bool) -> u64 {
    let known = TABLE_BYTES
        .iter()
        .find(|(name, _)| policy.starts_with(name));
    known.map_or(OTHER_BYTES, |(_, bytes)| *bytes)[usize::from(disk)]
}

fn runs_in_words(runs: usize) -> String {
    match runs {
        1 => "its run".to_owned(),
        runs => format!("{runs} runs up to that"),
    }
}

const fn fewer(runs: usize) -> &'static str {
    match runs {
        1 => "",
        _ => ", or fewer sizes and policies at once",
    }
}

fn enough(footprint: u64, page_bytes: u64) -> String {
    match footprint {
        0 => String::new(),
        pages => format!(
            " ({} hold all pages of the trace)",
            Bytes(pages * page_bytes)
        ),
    }
}

/// Do the tables of these policies at all sizes fit? Those of curves are not counted.
pub(super) fn check_tables<'a>(
    pages: &[u64],
    policies: impl Iterator<Item = &'a str>,
    disk: bool,
    (footprint, page_bytes): (u64, u64),
    available: Option<u64>,
) -> Result<(), SizeError> {
    let bytes: Vec<u64> = policies.map(|policy| table_bytes(policy, disk)).collect();
    let needed = pages.iter().sum::<u64>() * bytes.iter().sum::<u64>();
    match available {
        Some(available) if needed > available => Err(SizeError::Tables {
            most: Bytes(pages.iter().max().unwrap_or(&0) * page_bytes),
            runs: pages.len() * bytes.len(),
            needed: Bytes(needed.next_multiple_of(Bytes::GIB)),
            available: Bytes(available / Bytes::MIB * Bytes::MIB),
            footprint,
            page_bytes,
        }),
        _ => Ok(()),
    }
}

/// In pages of `page_bytes`, of a trace that touches `footprint` different ones.
fn pages(size: MemorySize, page_bytes: u64, footprint: u64) -> Result<u64, SizeError> {
    let pages = match size {
        MemorySize::Bytes(bytes) => bytes.0 / page_bytes,
        MemorySize::Share(share) => ((footprint as f64 * share).round() as u64).max(1),
    };
    match (1..=MAX_PAGES).contains(&pages) {
        true => Ok(pages),
        false => Err(SizeError::Range {
            size: size.to_string(),
            pages,
            page_bytes,
        }),
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
    let all = sizes.iter().map(|size| pages(*size, page_bytes, footprint));
    let mut pages = all.collect::<Result<Vec<_>, _>>()?;
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
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
    }

    #[test]
    fn tables_that_this_computer_has_no_memory_for_are_refused_before_they_are_made() {
        let check = |pages: &[u64], policies: &[&str], available| {
            let policies = policies.iter().copied();
            check_tables(pages, policies, true, (500, 4096), available).map_err(|e| e.to_string())
        };
        let available = Some(10 * Bytes::GIB);
        assert_eq!(
            check(&[1 << 20, 1 << 22], &["mq", "lru"], available),
            Ok(())
        );
        assert_eq!(check(&[1 << 27], &["lru"], available), Ok(()));
        assert_eq!(check(&[1 << 28], &["mq"], None), Ok(()));
        let one = check(&[1 << 26], &["mq"], available).expect_err("255 B for each of 64 Mi pages");
        assert_eq!(
            one,
            "memory of 256GiB: the tables of its run would take some 16GiB, and this computer has 10GiB of \
             memory left; allowed: smaller sizes (2000KiB hold all pages of the trace)"
        );
        let both = check(&[1 << 20, 1 << 26], &["lru-2", "dulo:bank=4MiB"], available);
        let both = both.expect_err("309 B for each of 65 Mi pages");
        assert!(
            both.contains("the tables of 4 runs up to that would take some 20GiB"),
            "{both}"
        );
        assert!(
            both.contains("smaller sizes, or fewer sizes and policies at once"),
            "{both}"
        );
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
