//! What a line of each text format is, for detection.

use super::error::Complaint;
use super::text::fields;
use super::{Format, din, lackey, loadstore, pinatrace, ramulator, ramulator2};
use crate::block::reader::Doubt;

/// A text format.
pub(crate) struct Form {
    pub format: Format,
    /// Whether a line holds data; otherwise it is blank or a comment.
    pub holds_data: fn(&[u8]) -> Result<bool, Complaint>,
    /// Why the first lines, which all parse, may be another tool's.
    pub doubt: Option<Doubt>,
}

pub(crate) const FORMS: [Form; 8] = [
    Form {
        format: Format::Lackey,
        holds_data: |line| {
            let line = lackey::parse(line)?;
            Ok(matches!(
                line,
                lackey::Line::Instr { .. } | lackey::Line::Data { .. }
            ))
        },
        doubt: None,
    },
    Form {
        format: Format::RamulatorCpu,
        holds_data: |line| Ok(ramulator::parse_cpu(line)?.is_some()),
        doubt: Some(doubt_ramulator),
    },
    Form {
        format: Format::RamulatorDram,
        holds_data: |line| Ok(ramulator::parse_dram(line)?.is_some()),
        doubt: None,
    },
    Form {
        format: Format::Ramulator2LoadStore,
        holds_data: |line| Ok(ramulator2::parse_load_store(line)?.is_some()),
        doubt: None,
    },
    Form {
        format: Format::Ramulator2ReadWrite,
        holds_data: |line| Ok(ramulator2::parse_read_write(line)?.is_some()),
        doubt: None,
    },
    Form {
        format: Format::LoadStore,
        holds_data: |line| Ok(loadstore::parse(line)?.is_some()),
        doubt: None,
    },
    Form {
        format: Format::Din,
        holds_data: |line| Ok(din::parse(line)?.is_some()),
        doubt: Some(doubt_din),
    },
    Form {
        format: Format::Pinatrace,
        holds_data: |line| {
            Ok(matches!(
                pinatrace::parse(line)?,
                pinatrace::Line::Access(_)
            ))
        },
        doubt: None,
    },
];

/// Two or three numbers a line are also what AdaptSize and LRB have (`time id size`), and lists of
/// sizes. Real traces of Ramulator hold what caches let through, which is whole lines, and the
/// instructions between two of them vary, while times do not fall.
fn doubt_ramulator(lines: &[&[u8]]) -> Option<&'static str> {
    let lines: Vec<_> = lines
        .iter()
        .filter_map(|l| ramulator::parse_cpu(l).ok()?)
        .collect();
    if !lines.iter().all(ramulator::CpuLine::is_aligned) {
        return Some(
            "its addresses are not those of lines, as in \"time id size\" of AdaptSize and LRB",
        );
    }
    let falls = |pair: &[ramulator::CpuLine]| pair[1].bubbles < pair[0].bubbles;
    (!lines.windows(2).any(falls)).then_some("its first number never falls, as a time does")
}

/// A number from 0 to 4 and another one are much; hexadecimal letters show that the second is an
/// address.
fn doubt_din(lines: &[&[u8]]) -> Option<&'static str> {
    let letter = |b: &u8| b.is_ascii_hexdigit() && !b.is_ascii_digit();
    let second = |line: &&[u8]| fields(line).nth(1).is_some_and(|a| a.iter().any(letter));
    if !lines.iter().any(second) {
        return Some("no address has a hexadecimal letter");
    }
    let more = |line: &&[u8]| fields(line).nth(2).is_some();
    if lines.iter().any(more) {
        return Some("there is more in a line than label and address");
    }
    let label = |line: &&[u8]| fields(line).next().and_then(|l| l.first().copied());
    let rises = |pair: &[&[u8]]| label(&pair[0]) < label(&pair[1]);
    let rising = lines.len() > 1 && lines.windows(2).all(rises);
    rising.then_some("its first number rises from line to line, as a time does")
}
