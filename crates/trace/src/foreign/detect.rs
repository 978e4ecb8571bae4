//! Which format a file has.
//!
//! The content decides: the unpacked beginning is given to the parsers of all readers. Names only
//! break the tie between ChampSim's two record forms, and select the traces in a directory: a name
//! says what somebody meant to write, the content what is there.

use std::fs;
use std::path::{Path, PathBuf};

use super::champsim::{self, Instr};
use super::error::{ForeignError, shorten};
use super::input::Input;
use super::{Format, drmemtrace, lackey, loadstore, ramulator};

/// Lines with data that must parse; damage further on is the reader's to report.
const LINES: usize = 8;
/// Records that are looked at.
const RECORDS: usize = 64;

/// Finds out a file's format.
///
/// # Errors
/// [`ForeignError::Open`], [`ForeignError::Container`], [`ForeignError::Read`] if the beginning
/// cannot be unpacked, and [`ForeignError::Unrecognised`] with what was seen.
pub fn detect(path: &Path) -> Result<Format, ForeignError> {
    let mut input = Input::open(path)?;
    let head = input.peek()?;
    recognise(head, path).map_err(|why| ForeignError::Unrecognised {
        path: path.to_owned(),
        why,
    })
}

/// Adds a file, or the traces of a directory.
pub(crate) fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), ForeignError> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let inner = path.join("trace");
    let path = if inner.is_dir() { &inner } else { path };
    let failed = |source| ForeignError::Open {
        path: path.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let named = entry.file_name().to_string_lossy().contains(".trace");
        if named && entry.path().is_file() {
            found.push(entry.path());
        }
    }
    if found.is_empty() {
        return Err(ForeignError::EmptyDirectory {
            path: path.to_owned(),
        });
    }
    found.sort();
    files.append(&mut found);
    Ok(())
}

fn recognise(head: &[u8], path: &Path) -> Result<Format, String> {
    if head.is_empty() {
        return Err("the file is empty".to_owned());
    }
    let text = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    if head.iter().all(text) {
        return recognise_text(head);
    }
    recognise_binary(head, path)
}

fn recognise_text(head: &[u8]) -> Result<Format, String> {
    type Parses = fn(&[u8]) -> bool;
    const READERS: [(Format, Parses); 4] = [
        (Format::Lackey, |l| lackey::parse(l).is_ok()),
        (Format::RamulatorCpu, |l| ramulator::parse_cpu(l).is_ok()),
        (Format::RamulatorDram, |l| ramulator::parse_dram(l).is_ok()),
        (Format::LoadStore, |l| loadstore::parse(l).is_ok()),
    ];
    let whole = head.iter().rposition(|&b| b == b'\n');
    let lines = head[..whole.unwrap_or(head.len())]
        .split(|&b| b == b'\n')
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    // Any number of Valgrind's own lines may precede the first reference.
    let data = |l: &&[u8]| !l.trim_ascii().is_empty() && !l.starts_with(b"==");
    let sample: Vec<&[u8]> = lines.clone().filter(data).take(LINES).collect();
    if sample.is_empty() {
        let valgrind = lines.clone().any(|l| l.starts_with(b"=="));
        return match valgrind {
            true => Ok(Format::Lackey),
            false => Err("there are only blank lines".to_owned()),
        };
    }
    let fits = |parses: &Parses| sample.iter().all(|l| parses(l));
    match READERS.iter().find(|(_, parses)| fits(parses)) {
        Some((format, _)) => Ok(*format),
        None => Err(format!("a text that begins with {}", shorten(sample[0]))),
    }
}

fn recognise_binary(head: &[u8], path: &Path) -> Result<Format, String> {
    if begins_as_drmemtrace(head) {
        return Ok(Format::DrMemtrace);
    }
    let small = successors::<64>(head, champsim::decode_small);
    let large = successors::<96>(head, champsim::decode_large);
    let name = path.to_string_lossy().to_ascii_lowercase();
    match (small, large) {
        (Some(small), Some(large)) if small > large => Ok(Format::ChampSim),
        (Some(small), Some(large)) if small < large => Ok(Format::CloudSuite),
        (_, Some(_)) if name.contains("cloudsuite") => Ok(Format::CloudSuite),
        (Some(_), _) => Ok(Format::ChampSim),
        (None, Some(_)) => Ok(Format::CloudSuite),
        (None, None) => {
            let start = &head[..head.len().min(16)];
            Err(format!("a binary file that begins with {}", shorten(start)))
        }
    }
}

/// A header, or the markers that stand first in an offline file, then known types only.
fn begins_as_drmemtrace(head: &[u8]) -> bool {
    let entries: Vec<_> = head
        .as_chunks::<12>()
        .0
        .iter()
        .take(RECORDS)
        .map(drmemtrace::split)
        .collect();
    let first = entries
        .first()
        .is_some_and(|(kind, size, _)| *kind == 25 && *size == 0 || *kind == 28 && *size == 12);
    first && entries.iter().all(|e| drmemtrace::classify(e.0).is_some())
}

/// How many records follow the one before within an instruction's length, if all are legal.
fn successors<const N: usize>(head: &[u8], decode: fn(&[u8; N]) -> Instr) -> Option<usize> {
    let records = head.as_chunks::<N>().0;
    let sample: Vec<Instr> = records.iter().take(RECORDS).map(decode).collect();
    if sample.is_empty() || sample.iter().any(|i| i.check().is_err()) {
        return None;
    }
    let follows = |pair: &&[Instr]| (1..=15).contains(&pair[1].ip.wrapping_sub(pair[0].ip));
    Some(sample.windows(2).filter(follows).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], name: &str) -> Result<Format, String> {
        recognise(bytes, Path::new(name))
    }

    #[test]
    fn texts_are_told_by_their_lines_whatever_the_name() {
        for (text, format) in [
            ("==7== Lackey\nI  04000010,3\n L 1ffeff,8\n", Format::Lackey),
            ("3 9618752\n0 64 128\n", Format::RamulatorCpu),
            ("0x12345680 R\n0x4cbd56c0 W\n", Format::RamulatorDram),
            ("s 0x1fffff50 1\nl 0x1fffff58 1\n", Format::LoadStore),
        ] {
            assert_eq!(of(text.as_bytes(), "drmemtrace.zip"), Ok(format));
        }
    }

    #[test]
    fn a_line_that_no_reader_takes_is_shown() {
        let why = of(b"hello, world\n", "x.trace").unwrap_err();
        assert!(why.contains("hello, world"), "{why}");
    }

    #[test]
    fn the_record_form_is_told_by_consecutive_instructions() {
        let record = |size: usize, ip: u64| {
            let mut r = vec![0; size];
            r[..8].copy_from_slice(&ip.to_le_bytes());
            r
        };
        let many = |size| -> Vec<u8> {
            (0..12)
                .flat_map(|i| record(size, 0x40_1000 + 4 * i))
                .collect()
        };
        assert_eq!(of(&many(64), "a"), Ok(Format::ChampSim));
        assert_eq!(of(&many(96), "a"), Ok(Format::CloudSuite));
        assert_eq!(of(&record(96, 7), "a.champsim"), Ok(Format::ChampSim));
        assert_eq!(of(&record(96, 7), "a.cloudsuite"), Ok(Format::CloudSuite));
        assert!(of(&[0; 192], "a.champsim").is_err());
    }
}
