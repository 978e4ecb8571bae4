//! Valgrind's lackey, `valgrind --tool=lackey --trace-mem=yes`.
//!
//! Valgrind's own lines begin with `==pid==`, `--pid--` or `**pid**`. The traces of the CS:APP cache lab
//! have one blank behind the `I` (its writeup: "[space]operation address,size"), and many have no
//! instructions at all.
//!
//! The log should be written with `--log-file=NAME.%p`: on standard error the program's own output
//! and forked children mix in, which is refused with the line that shows it.
//!
//! Deviations: threads of a program are not told apart by lackey and appear as one. The line `Exit
//! code:` at the end is taken as the sign of a whole log and its number as the exit status, although
//! Valgrind 3.19 prints 0 there whatever the program returned.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind};

use super::Options;
use super::entry::{Entry, Lines};
use super::error::{Complaint, ForeignError};
use super::fetch::FetchFilter;
use super::input::Input;
use super::text::{decimal, hex};
use super::thread::{Decode, Identity, Sink, drive, site_of};
use crate::about::{About, Form, Stamps};

pub(super) const ENTRY: Entry = Entry {
    name: "lackey",
    about: About {
        what: "Text of valgrind --tool=lackey --trace-mem=yes --log-file=NAME.%p",
        form: Form::Text {
            line: "letter address,size",
            fields: &[
                (
                    "letter",
                    "\"I  \" an instruction, then its data: \" L \" loaded, \" S \" stored, \" M \" \
                     modified",
                ),
                ("address", "hexadecimal, without 0x"),
                ("size", "bytes"),
            ],
            sample: " L 1ffeff0010,8\n",
        },
        source: "Valgrind's manual, chapter \"Lackey\"; with one blank behind I: the writeup of the CS:APP \
                 cache lab",
        stamps: Stamps::Absent,
        left_out: "lines of Valgrind's own except the exit code, and blocks of instructions (SB). Threads are not told apart",
    },
    filtered: false,
    assumes: None,
    instructions: true,
    lines: Some(Lines {
        holds_data: |line| {
            Ok(matches!(
                parse(line)?,
                Line::Instr { .. } | Line::Data { .. }
            ))
        },
        doubt: None,
    }),
    open: |options, input| drive(Lackey::new(options), input),
};

/// Largest data access: an XSAVE area with AMX state is below 11 KiB.
const MAX_DATA: u64 = 16384;
/// Largest instruction: Valgrind's special sequences are up to 20 bytes; others at most 15.
const MAX_INSTR: u64 = 64;

const LINE: &str = "\"I  address,size\", \" L address,size\", \" S address,size\", \
    \" M address,size\", or a line of Valgrind (\"==pid==\"); write the log with --log-file=NAME.%p";

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Instr {
        addr: u64,
        size: u32,
    },
    Data {
        kind: RefKind,
        addr: u64,
        size: u32,
    },
    /// Valgrind's own words.
    Comment {
        pid: u64,
        exit: Option<i32>,
    },
    /// Nothing, or where a block of instructions begins.
    Blank,
}

pub(crate) fn parse(line: &[u8]) -> Result<Line, Complaint> {
    let kind = match line {
        [b'I', b' ', b' ', rest @ ..] | [b'I', b' ', rest @ ..] => {
            let (addr, size) = place(rest, MAX_INSTR, "a decimal number from 0 to 64")?;
            return Ok(Line::Instr { addr, size });
        }
        [b' ', b'L', b' ', ..] => RefKind::Load,
        [b' ', b'S', b' ', ..] => RefKind::Store,
        [b' ', b'M', b' ', ..] => RefKind::Update,
        [] => return Ok(Line::Blank),
        _ if is_block(line) => return Ok(Line::Blank),
        _ => {
            return comment(line).ok_or_else(|| Complaint::text("the line", line, LINE));
        }
    };
    let (addr, size) = place(&line[3..], MAX_DATA, "a decimal number from 1 to 16384")?;
    if size == 0 {
        return Err(Complaint::text(
            "the size",
            b"0",
            "a decimal number from 1 to 16384",
        ));
    }
    Ok(Line::Data { kind, addr, size })
}

fn place(text: &[u8], max: u64, allowed: &'static str) -> Result<(u64, u32), Complaint> {
    let Some(comma) = text.iter().position(|&b| b == b',') else {
        return Err(Complaint::text("the place", text, "address,size"));
    };
    let addr = hex("the address", &text[..comma])?;
    let size = decimal("the size", &text[comma + 1..], max, allowed)?;
    Ok((addr, size as u32))
}

/// Whether a first line is lackey's own.
pub(crate) fn is_marked(line: &[u8]) -> bool {
    said(line).is_some_and(|words| words.starts_with(b"Lackey"))
}

/// Whether a line is one of Valgrind's own.
pub(crate) fn is_valgrind(line: &[u8]) -> bool {
    said(line).is_some()
}

/// What stands behind `==pid== `.
fn said(line: &[u8]) -> Option<&[u8]> {
    let (_, words) = marked(line).filter(|_| line[0] == b'=')?;
    Some(words.trim_ascii_start())
}

/// `==pid==`, `--pid--` or `**pid**`: the process, and what follows. With `--time-stamp=yes` the time stands
/// before the process, as in `==00:00:00:01.234 7==`.
fn marked(line: &[u8]) -> Option<(u64, &[u8])> {
    let mark = *line.first()?;
    let rest = line.strip_prefix(&[mark, mark])?;
    if !matches!(mark, b'=' | b'-' | b'*') {
        return None;
    }
    let is_time = |word: &[u8]| {
        let parts = word.iter().all(|b| b.is_ascii_digit() || b":.".contains(b));
        parts && word.contains(&b':')
    };
    let blank = memchr::memchr(b' ', rest).filter(|blank| is_time(&rest[..*blank]));
    let rest = &rest[blank.map_or(0, |blank| blank + 1)..];
    let digits = rest.iter().position(|b| !b.is_ascii_digit())?;
    let after = rest[digits..].strip_prefix(&[mark, mark])?;
    let pid = decimal("the process", &rest[..digits], u64::MAX, "").ok()?;
    Some((pid, after))
}

fn comment(line: &[u8]) -> Option<Line> {
    let (pid, after) = marked(line)?;
    let status = after.strip_prefix(b" Exit code:");
    let exit = status.and_then(|s| std::str::from_utf8(s).ok()?.trim().parse().ok());
    Some(Line::Comment { pid, exit })
}

/// The address of a block of instructions, `SB 0400d7d4`, with `--trace-superblocks=yes`.
fn is_block(line: &[u8]) -> bool {
    let address = line.strip_prefix(b"SB ");
    address.is_some_and(|a| !a.is_empty() && a.iter().all(u8::is_ascii_hexdigit))
}

#[derive(Debug)]
pub(crate) struct Lackey {
    fetches: FetchFilter,
    site: u32,
    /// Address behind the last instruction.
    follows: Option<u64>,
    pid: Option<u64>,
    exit: Option<i32>,
}

impl Lackey {
    pub fn new(options: Options) -> Self {
        Self {
            fetches: FetchFilter::new(options.fetches),
            site: 0,
            follows: None,
            pid: None,
            exit: None,
        }
    }

    fn comment(&mut self, pid: u64, exit: Option<i32>) -> Result<(), Complaint> {
        if self.pid.is_some_and(|known| known != pid) {
            return Err(Complaint::number(
                "the process",
                pid,
                "one process per log (--log-file=NAME.%p)",
            ));
        }
        self.pid = Some(pid);
        self.exit = exit.or(self.exit);
        Ok(())
    }
}

impl Decode for Lackey {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let Some(line) = input.line(parse)? else {
            return Ok(Some(self.exit.map_or(Next::End, Next::Exit)));
        };
        if self.exit.is_some() && matches!(line, Line::Instr { .. } | Line::Data { .. }) {
            return Err(input.fault(Complaint::text(
                "a reference after the exit code",
                format!("{line:?}").as_bytes(),
                "one run per log",
            )));
        }
        match line {
            Line::Instr { addr, size } => {
                sink.retire(1);
                self.site = site_of(addr);
                let jumped = self.follows != Some(addr);
                self.fetches.fetch(addr, size, jumped, sink);
                self.follows = Some(addr.wrapping_add(u64::from(size)));
            }
            Line::Data { kind, addr, size } => {
                sink.push(VirtAddr(addr), size, kind, self.site, 0);
            }
            Line::Comment { pid, exit } => {
                sink.skipped.comments += 1;
                self.comment(pid, exit).map_err(|c| input.fault(c))?;
            }
            Line::Blank => sink.skipped.comments += 1,
        }
        Ok(None)
    }

    fn identity(&self) -> Identity {
        Identity {
            process: self.pid,
            ..Identity::default()
        }
    }
}
