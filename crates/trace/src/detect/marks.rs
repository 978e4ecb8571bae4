//! First bytes that settle the format.

use super::{TraceFormat, Verdict, trial};
use crate::block::Format as Block;
use crate::block::formats::{blktrace, fio, fpt, lcs, libcachesim, msr, systor};
use crate::block::reader::Doubt;
use crate::foreign::Format as Memory;
use crate::foreign::input::{BYTE_ORDER_MARK, WIDE};
use crate::foreign::{drmemtrace, lackey};

/// A format, and whether the beginning or its first line that is not blank has its mark.
type Mark = (TraceFormat, fn(&[u8], &[u8]) -> bool);

const MARKS: [Mark; 10] = [
    (TraceFormat::Block(Block::Strace), |_, line| {
        is_end_of_process(line)
    }),
    (TraceFormat::Block(Block::Fio), |_, line| {
        line.starts_with(fio::MARK)
    }),
    (TraceFormat::Block(Block::Fpt), |_, line| {
        line.starts_with(fpt::MARK)
    }),
    (TraceFormat::Block(Block::Msr), |head, line| {
        line.starts_with(msr::HEADER) && fits(Block::Msr, head, msr::doubt)
    }),
    (TraceFormat::Block(Block::Systor17), |head, line| {
        line.starts_with(systor::HEADER) && fits(Block::Systor17, head, systor::doubt)
    }),
    (TraceFormat::Block(Block::LibCacheSimCsv), |head, line| {
        libcachesim::is_header(line) && fits(Block::LibCacheSimCsv, head, libcachesim::doubt)
    }),
    (TraceFormat::Block(Block::Blktrace), |head, _| {
        blktrace::is_marked(head)
    }),
    (TraceFormat::Block(Block::LcsV1), |head, _| {
        lcs::version(head) == Some(1)
    }),
    (TraceFormat::Block(Block::Lcs), |head, _| {
        lcs::version(head).is_some_and(|v| v != 1)
    }),
    (TraceFormat::Memory(Memory::Lackey), |_, line| {
        lackey::is_marked(line)
    }),
];

/// Whether the records below a header may mean what it says. What is wrong with them is the reader's to report.
fn fits(format: Block, head: &[u8], doubt: Doubt) -> bool {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let mut lines: Vec<&[u8]> = head.split(|b| *b == b'\n').collect();
    // The last one may be cut.
    if lines.len() > 2 {
        lines.pop();
    }
    lines.retain(|line| !line.trim_ascii().is_empty());
    doubt(&lines).is_none() || !trial::takes(format, head)
}

/// Files that are none of a trace, by what they begin with.
const OTHERS: [(&[u8], &str); 2] = [
    (
        b"PBLDREC\0",
        "a recording of Piebald, which is no trace of another tool",
    ),
    (b"SQLite format 3\0", "a database of SQLite"),
];

/// What marks say, if there are any.
pub(super) fn find(head: &[u8]) -> Option<Verdict> {
    if let Some((_, what)) = OTHERS.iter().find(|(mark, _)| head.starts_with(mark)) {
        return Some(Verdict::Unknown(format!("this is {what}").into()));
    }
    if let Some((_, encoding)) = WIDE.iter().find(|(mark, _)| head.starts_with(mark)) {
        return Some(Verdict::Unknown(format!(
            "this is a text in {encoding}, by its byte order mark; iconv -f {encoding} -t UTF-8 makes \
             it readable"
        ).into()));
    }
    if let Some(encoding) = wide_letters(head) {
        return Some(Verdict::Unknown(format!(
            "this looks like a text in {encoding} without a byte order mark; iconv -f {encoding} -t UTF-8 \
             makes it readable"
        ).into()));
    }
    if drmemtrace::begins(head) {
        return Some(Verdict::Is(TraceFormat::Memory(Memory::DrMemtrace)));
    }
    let line = first_line(head);
    if let Some((format, _)) = MARKS.iter().find(|(_, mark)| mark(head, line)) {
        return Some(Verdict::Is(*format));
    }
    lackey::is_valgrind(line).then(|| {
        let why = "a log of Valgrind, but not of its tool lackey";
        Verdict::Unknown(why.to_owned().into())
    })
}

/// The encoding of a beginning whose letters are each the first or the last of two or four bytes, and
/// whose other bytes are 0.
fn wide_letters(head: &[u8]) -> Option<&'static str> {
    /// Letters that are looked at, and how many there must be.
    const MOST: usize = 256;
    const LEAST: usize = 8;
    let all = |(width, letter): (usize, usize)| {
        let mut letters = head.chunks_exact(width).take(MOST);
        let is_letter = |b: u8| b.is_ascii_graphic() || b.is_ascii_whitespace();
        let is = |wide: &[u8]| {
            let mut bytes = wide.iter().enumerate();
            bytes.all(|(at, b)| if at == letter { is_letter(*b) } else { *b == 0 })
        };
        letters.len() >= LEAST && letters.all(is)
    };
    let encodings = [
        ((2, 0), "UTF-16LE"),
        ((2, 1), "UTF-16BE"),
        ((4, 0), "UTF-32LE"),
        ((4, 3), "UTF-32BE"),
    ];
    let found = encodings.into_iter().find(|(place, _)| all(*place));
    found.map(|(_, name)| name)
}

/// What strace writes last of a process, which of one whose calls are all filtered out is all there is.
fn is_end_of_process(line: &[u8]) -> bool {
    let has = |what: &[u8]| memchr::memmem::find(line, what).is_some();
    line.ends_with(b" +++") && (has(b"+++ exited with ") || has(b"+++ killed by "))
}

fn first_line(head: &[u8]) -> &[u8] {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|l| !l.is_empty()).unwrap_or_default()
}
