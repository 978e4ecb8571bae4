//! AccuSim's binary log of system calls: a head of 8 bytes (`type:5, pid:27, argument`) and a body that
//! depends on the type.
//!
//! | type | argument | body |
//! |---|---|---|
//! | 0 new | length of a name | the name |
//! | 1 fork, 2 exit, 8 llseek, 9 stat | | none |
//! | 3 read, 4 write, 7 seek | inode | as below without the offset |
//! | 13 pread, 14 pwrite | inode | as [the table of formats](crate::about) has it |
//! | 5 open | inode | file size (u32), length of a name (u16), descriptor (u16), the name |
//! | 6 close | inode | descriptor (u16, 2 B unused) |
//!
//! The bodies are what AccuSim's reader takes; it has no byte order of its own, the traced machines
//! were x86. A descriptor begins at 0 when it is opened or seen with another inode; a seek sets it to its
//! "bytes done", as the reader does. Descriptors are not handed down by a fork, again as there. Only
//! bytes done count. Files are inodes, with the name of their latest `open`.

use std::collections::HashMap;

use super::super::reader::{Entry, Looks, Parse};
use super::super::request::{FileKey, Nanos, Op};
use super::super::sink::Sink;
use super::super::{TargetKind, Times, Traits};
use crate::about::{About, ByteOrder, Form, Kind, Part, Stamps, field, hex, unused};
use crate::foreign::ForeignError;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;

pub(crate) const ENTRY: Entry = Entry {
    name: "accusim",
    aliases: &[],
    about: About {
        what: "AccuSim's binary log of system calls",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[
                Part {
                    what: "Head",
                    note: "",
                    fields: &[
                        hex(field(
                            "type, pid",
                            Kind::U32,
                            "bits 0 to 4: 0 new, 1 fork, 2 exit, 3 read, 4 write, 5 open, 6 close, \
                             7 seek, 8 llseek, 9 stat, 13 pread, 14 pwrite; bits 5 to 31: process",
                            697 << 5 | 13,
                        )),
                        field(
                            "argument",
                            Kind::U32,
                            "inode; of new: length of the name behind it",
                            77,
                        ),
                    ],
                },
                Part {
                    what: "Body of pread and pwrite",
                    note: "Those of read, write and seek have no offset; new, \
                           open and close have others, and the rest none.",
                    fields: &[
                        unused("program counters", 12),
                        field("asked", Kind::I32, "bytes asked for; not used", 4096),
                        field(
                            "done",
                            Kind::I32,
                            "bytes done; of a seek: the place after it",
                            4096,
                        ),
                        field(
                            "descriptor",
                            Kind::U16,
                            "which carries the offset of read and write",
                            3,
                        ),
                        unused("padding", 2),
                        field("time", Kind::U32, "us since the call before", 1),
                        field("file size", Kind::U32, "bytes", 9000),
                        field("offset", Kind::U32, "first byte", 0),
                    ],
                },
            ],
        },
        source: "AccuSim's asim/sim/trace.h (\"difference in us between two i/Os\"), and what its reader \
                 takes",
        stamps: Stamps::Relative("microseconds since the call before"),
        left_out: "program counters, bytes asked for, forks, and stat. A descriptor that a fork hands down \
                   begins at 0 again, as in AccuSim",
    },
    traits: Traits {
        target: TargetKind::File,
        times: Times::Ordered,
        directions: true,
        tasks: true,
    },
    looks: Looks::Binary(plausible, LEAST),
    parser: |_| Box::new(AccuSim::default()),
};

const WHAT: &str = "AccuSim record";
const TYPES: &str = "0 to 9, 13 or 14";
/// Descriptors that may be open at a time, over all processes.
const MAX_OPEN: usize = 1 << 20;
/// Longest file name, in bytes.
const MAX_NAME: usize = 4096;

/// Records that must follow one another for the format to be found out. Nothing marks it, but lengths
/// depend on types.
const LEAST: u64 = 8;

/// Whether the first records have known types, and one of them says who is traced or which file is
/// open: all of one kind could be a number that repeats.
fn plausible(head: &[u8]) -> bool {
    let mut rest = head;
    let mut named = false;
    for _ in 0..LEAST {
        let Some(begin) = rest.first_chunk::<8>() else {
            return false;
        };
        let (kind, argument) = (word(begin, 0) & 31, word(begin, 4) as usize);
        let name = rest.get(12..16).map_or(0, |n| word(n, 0) as usize & 0xffff);
        let length = match kind {
            0 => argument.saturating_add(8),
            1 | 2 | 8 | 9 => 8,
            3 | 4 | 7 => 40,
            13 | 14 => 44,
            5 => 16 + name,
            6 => 12,
            _ => return false,
        };
        // No file has inode 0, no process number 0, and every program a name.
        if argument == 0 && !matches!(kind, 2 | 8 | 9) {
            return false;
        }
        named |= matches!(kind, 0 | 1 | 5);
        rest = rest.get(length..).unwrap_or_default();
    }
    named
}

#[derive(Default)]
struct AccuSim {
    /// Microseconds since the first call.
    now_us: u64,
    inodes: HashMap<u32, FileKey>,
    open: HashMap<(u32, u16), Position>,
    /// The type of a record was unknown, and with it its length: nothing behind it can be read.
    lost: bool,
}

#[derive(Clone, Copy)]
struct Position {
    inode: u32,
    offset: u64,
}

/// A body of 32 bytes.
struct Transfer {
    done: i32,
    descriptor: u16,
    gap_us: u32,
    file_size: u32,
}

impl Transfer {
    fn decode(body: &[u8; 32]) -> Self {
        Self {
            done: word(body, 16) as i32,
            descriptor: word(body, 20) as u16,
            gap_us: word(body, 24),
            file_size: word(body, 28),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

impl AccuSim {
    fn file(&mut self, inode: u32, sink: &mut Sink<'_>) -> Result<FileKey, Complaint> {
        if let Some(key) = self.inodes.get(&inode) {
            return Ok(*key);
        }
        let key = sink
            .state
            .files
            .add(format!("inode:{inode}").as_bytes(), None)?;
        self.inodes.insert(inode, key);
        Ok(key)
    }

    fn position(&mut self, pid: u32, fd: u16, inode: u32) -> Result<&mut Position, Complaint> {
        if self.open.len() >= MAX_OPEN {
            let allowed = "up to 1048576 over all processes";
            return Err(Complaint::number(
                "the number of descriptors",
                1 << 20,
                allowed,
            ));
        }
        let fresh = Position { inode, offset: 0 };
        let position = self.open.entry((pid, fd)).or_insert(fresh);
        if position.inode != inode {
            *position = fresh;
        }
        Ok(position)
    }

    fn transfer(
        &mut self,
        (kind, pid, inode): (u32, u32, u32),
        t: &Transfer,
        at: Option<u32>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Complaint> {
        let op = match kind {
            3 | 13 => Op::Read,
            _ => Op::Write,
        };
        self.now_us = self.now_us.saturating_add(t.gap_us.into());
        let time = Nanos(self.now_us.saturating_mul(1000));
        let done = u64::try_from(t.done).unwrap_or(0);
        let position = self.position(pid, t.descriptor, inode)?;
        let offset = match at {
            Some(offset) => offset.into(),
            None => {
                let offset = position.offset;
                position.offset = offset.saturating_add(done);
                offset
            }
        };
        let file = self.file(inode, sink)?;
        sink.state.files.grow(file, t.file_size.into());
        sink.file((Some(time), pid, op), file, offset, done)
    }

    fn seek(&mut self, pid: u32, inode: u32, t: &Transfer) -> Result<(), Complaint> {
        let offset = u64::try_from(t.done).map_err(|_| {
            Complaint::new(
                "the place after the seek",
                t.done.to_string(),
                "0 to 2147483647",
            )
        })?;
        self.position(pid, t.descriptor, inode)?.offset = offset;
        Ok(())
    }

    fn opened(
        &mut self,
        (pid, inode, size, fd): (u32, u32, u32, u16),
        name: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), Complaint> {
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        if !self.inodes.contains_key(&inode) && !name.is_empty() {
            let key = sink.state.files.add(name, None)?;
            self.inodes.insert(inode, key);
        }
        let file = self.file(inode, sink)?;
        sink.state.files.grow(file, size.into());
        self.position(pid, fd, inode)?.offset = 0;
        sink.state.passed.others += 1;
        Ok(())
    }
}

impl Parse for AccuSim {
    fn step(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError> {
        if self.lost {
            return Ok(false);
        }
        let Some(head) = input.record::<8>(WHAT)? else {
            return Ok(false);
        };
        let (kind, pid, argument) = (word(&head, 0) & 31, word(&head, 0) >> 5, word(&head, 4));
        if pid == 0 {
            self.lost = true;
            let allowed = "1 to 134217727";
            return Err(input.fault(Complaint::number("the process", 0, allowed)));
        }
        let done = match kind {
            0 => {
                name(argument as usize, input)?;
                sink.state.passed.others += 1;
                Ok(())
            }
            1 | 2 | 8 | 9 => {
                if kind == 2 {
                    self.open.retain(|(owner, _), _| *owner != pid);
                }
                sink.state.passed.others += 1;
                Ok(())
            }
            3 | 4 | 13 | 14 => {
                let t = Transfer::decode(&input.body::<32>(WHAT)?);
                let at = match kind {
                    13 | 14 => Some(word(&input.body::<4>(WHAT)?, 0)),
                    _ => None,
                };
                self.transfer((kind, pid, argument), &t, at, sink)
            }
            7 => {
                let t = Transfer::decode(&input.body::<32>(WHAT)?);
                sink.state.passed.others += 1;
                self.seek(pid, argument, &t)
            }
            5 => {
                let body = input.body::<8>(WHAT)?;
                let (size, packed) = (word(&body, 0), word(&body, 4));
                let name = name(packed as usize & 0xffff, input)?;
                self.opened((pid, argument, size, (packed >> 16) as u16), &name, sink)
            }
            6 => {
                let fd = word(&input.body::<4>(WHAT)?, 0) as u16;
                self.open.remove(&(pid, fd));
                sink.state.passed.others += 1;
                Ok(())
            }
            _ => {
                self.lost = true;
                Err(Complaint::number("the type", kind.into(), TYPES))
            }
        };
        done.map_err(|c| input.fault(c))?;
        Ok(true)
    }
}

fn name(length: usize, input: &mut Input) -> Result<Vec<u8>, ForeignError> {
    if length > MAX_NAME {
        let allowed = "0 to 4096";
        let complaint = Complaint::number("the length of the name", length as u64, allowed);
        return Err(input.fault(complaint));
    }
    let mut name = vec![0; length];
    input.read_body(&mut name, WHAT)?;
    let control = |b: &u8| matches!(b, 1..b' ' | 0x7f);
    match name.iter().any(control) {
        true => {
            let complaint = Complaint::text("the name", &name, "a name without control characters");
            Err(input.fault(complaint))
        }
        false => Ok(name),
    }
}
