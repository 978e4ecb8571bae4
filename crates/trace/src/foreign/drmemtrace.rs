//! DynamoRIO drmemtrace, offline form: one file per thread (checked against recorded samples).
//!
//! An instruction's entry stands before its data references. System call markers become
//! [`SysOp::Other`]; their arguments are not in the trace, so mappings are not known. A load
//! followed by a store of the same bytes in the same instruction is one `Update`. Encodings, other
//! markers, flushes and (unless asked for) prefetches are skipped, the latter three with a count.
//!
//! An instruction without fetch (type 29, a further iteration of a repeated string operation)
//! retires nothing. The exit status is not in the trace and is given as 0; a file without a thread
//! exit ends as cut.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind, SysOp};

use super::Options;
use super::entry;
use super::error::{Complaint, ForeignError};
use super::fetch::FetchFilter;
use super::input::Input;
use super::thread::{Decode, Identity, Sink, drive, site_of};
use crate::about::{About, ByteOrder, Form, Kind, Part, Stamps, field, hex};

pub(super) const ENTRY: entry::Entry = entry::Entry {
    name: "drmemtrace",
    about: About {
        what: "DynamoRIO's drmemtrace, offline form: one file per thread, plain or in its zip",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[
                Part {
                    what: "Header, the first entry",
                    note: "",
                    fields: &[
                        field("type", Kind::U16, "25", 25),
                        field("size", Kind::U16, "0", 0),
                        field("value", Kind::U64, "version: 2 to 7", 6),
                    ],
                },
                Part {
                    what: "Further entry",
                    note: "",
                    fields: &[
                        field(
                            "type",
                            Kind::U16,
                            "0 loaded, 1 stored; 10 to 16, 31, 48 and 49 an instruction, 17 a bundle of \
                             them, 29 and 30 a repeated one; 2 to 9, 27 and 32 to 46 prefetches; 18 to 21 \
                             flushes; 22 thread, 23 its exit, 24 process, 26 footer, 28 marker, 47 encoding",
                            0,
                        ),
                        field(
                            "size",
                            Kind::U16,
                            "bytes; of a marker: its kind (25 system call)",
                            8,
                        ),
                        hex(field(
                            "value",
                            Kind::U64,
                            "address, id, or the marker's value",
                            0x7ffe_1000,
                        )),
                    ],
                },
            ],
        },
        source: "DynamoRIO's clients/drcachesim/common/trace_entry.h (trace_type_t; \
                 TRACE_ENTRY_VERSION 2 to 7)",
        stamps: Stamps::Absent,
        left_out: "encodings, markers other than system calls (such as times), flushes and prefetches. A \
                   load and a store of one place by one instruction are one update",
    },
    filtered: false,
    assumes: None,
    instructions: true,
    lines: None,
    open: |options, input| drive(DrMemtrace::new(options), input),
};

const TYPES: &str = "an entry type from 0 to 49";
const MARKER_FILETYPE: u16 = 9;
const MARKER_SYSCALL: u16 = 25;
/// File type bits of traces that passed a cache filter: all, instructions, data.
const FILTERED: u64 = 0x001 | 0x080 | 0x100;
/// Longest instruction of the traced architectures (x86), in bytes.
const MAX_INSTR: u16 = 15;

/// Kinds of entry, by what they mean here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Read,
    Write,
    Prefetch { non_temporal: bool },
    OtherPrefetch,
    Instr,
    Bundle,
    Repeat,
    MaybeRepeat,
    Flush,
    Thread,
    ThreadExit,
    Process,
    Header,
    Footer,
    Marker,
    Encoding,
}

pub(crate) fn classify(kind: u16) -> Option<Entry> {
    Some(match kind {
        0 => Entry::Read,
        1 => Entry::Write,
        // Loads into some level: general, T0..T2, ARM read; 6 and 32..=34 are non-temporal.
        2..=5 | 7 => Entry::Prefetch {
            non_temporal: false,
        },
        6 | 32..=34 => Entry::Prefetch { non_temporal: true },
        // For writing or for instructions, and by hardware: no data load stands for these.
        8 | 9 | 27 | 35..=46 => Entry::OtherPrefetch,
        10..=16 | 31 | 48 | 49 => Entry::Instr,
        17 => Entry::Bundle,
        18..=21 => Entry::Flush,
        22 => Entry::Thread,
        23 => Entry::ThreadExit,
        24 => Entry::Process,
        25 => Entry::Header,
        26 => Entry::Footer,
        28 => Entry::Marker,
        29 => Entry::Repeat,
        30 => Entry::MaybeRepeat,
        47 => Entry::Encoding,
        _ => return None,
    })
}

/// Splits an entry: type, size, value.
pub(crate) fn split(r: &[u8; 12]) -> (u16, u16, u64) {
    (
        u16::from_le_bytes([r[0], r[1]]),
        u16::from_le_bytes([r[2], r[3]]),
        u64::from_le_bytes([r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11]]),
    )
}

/// Entries that a detector looks at.
const SAMPLE: usize = 64;
/// Kind of the marker that gives the version.
const MARKER_VERSION: u16 = 12;
/// A beginning with a version above this is something else.
const MAX_VERSION: u64 = 64;
/// What the types and markers of later versions mean is not known.
const NEWEST: u64 = 7;

fn version(value: u64) -> Result<(), Complaint> {
    if value > NEWEST {
        return Err(Complaint::number("the version", value, "2 to 7"));
    }
    Ok(())
}

/// Whether a beginning is one of an offline file: a header or the version's marker with a small
/// version, then known types, among them a thread or a process.
pub(crate) fn begins(head: &[u8]) -> bool {
    let mut entries = head.as_chunks::<12>().0.iter().take(SAMPLE).map(split);
    let first = entries.next().is_some_and(|(kind, size, version)| {
        let named = match kind {
            25 => size == 0,
            28 => size == MARKER_VERSION,
            _ => false,
        };
        named && version <= MAX_VERSION
    });
    let mut owned = false;
    first
        && entries.all(|(kind, _, _)| {
            owned |= matches!(kind, 22 | 24);
            classify(kind).is_some()
        })
        && owned
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing read.
    Start,
    /// Inside.
    Body,
    /// Thread exit seen.
    Exited,
    /// Footer seen.
    Footed { exited: bool },
}

#[derive(Debug)]
pub(crate) struct DrMemtrace {
    fetches: FetchFilter,
    prefetches: bool,
    stage: Stage,
    pc: u64,
    /// Address behind the last instruction.
    follows: Option<u64>,
    site: u32,
    /// A load that a store of the same instruction may join.
    held: Option<(u64, u16)>,
    identity: Identity,
}

impl DrMemtrace {
    pub fn new(options: Options) -> Self {
        Self {
            fetches: FetchFilter::new(options.fetches),
            prefetches: options.prefetches,
            stage: Stage::Start,
            pc: 0,
            follows: None,
            site: 0,
            held: None,
            identity: Identity::default(),
        }
    }

    fn release(&mut self, sink: &mut Sink<'_>) {
        if let Some((addr, size)) = self.held.take() {
            self.refer(addr, size, RefKind::Load, sink);
        }
    }

    fn refer(&self, addr: u64, size: u16, kind: RefKind, sink: &mut Sink<'_>) {
        sink.push(VirtAddr(addr), u32::from(size), kind, self.site, 0);
    }

    fn data(
        &mut self,
        entry: Entry,
        size: u16,
        addr: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), Complaint> {
        if size == 0 {
            return Err(Complaint::number(
                "the size of a data reference",
                0,
                "1 to 65535 bytes",
            ));
        }
        if entry == Entry::Read {
            self.release(sink);
            self.held = Some((addr, size));
        } else if self.held == Some((addr, size)) {
            self.held = None;
            self.refer(addr, size, RefKind::Update, sink);
        } else {
            self.release(sink);
            self.refer(addr, size, RefKind::Store, sink);
        }
        Ok(())
    }

    fn instruction(&mut self, size: u16, pc: u64, sink: &mut Sink<'_>) -> Result<(), Complaint> {
        if size == 0 || size > MAX_INSTR {
            return Err(Complaint::number(
                "the size of an instruction",
                size.into(),
                "1 to 15 bytes",
            ));
        }
        self.pc = pc;
        self.site = site_of(pc);
        sink.retire(1);
        let jumped = self.follows != Some(pc);
        self.fetches.fetch(pc, u32::from(size), jumped, sink);
        self.follows = Some(pc.wrapping_add(u64::from(size)));
        Ok(())
    }

    /// Up to eight instructions that follow the last one; the value holds their sizes.
    fn bundle(&mut self, count: u16, sizes: u64, sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let bytes = sizes.to_le_bytes();
        let Some(bytes) = bytes.get(..usize::from(count)).filter(|b| !b.is_empty()) else {
            return Err(Complaint::number(
                "the number of instructions in a bundle",
                count.into(),
                "1 to 8",
            ));
        };
        for size in bytes {
            let Some(pc) = self.follows else {
                return Err(Complaint::number(
                    "the entry type",
                    17,
                    "an instruction before the first bundle",
                ));
            };
            self.instruction(u16::from(*size), pc, sink)?;
        }
        Ok(())
    }

    fn prefetch(&mut self, entry: Entry, addr: u64, sink: &mut Sink<'_>) {
        match entry {
            Entry::Prefetch { non_temporal } if self.prefetches => {
                let kind = if non_temporal {
                    RefKind::LoadNt
                } else {
                    RefKind::Load
                };
                self.refer(addr, 1, kind, sink);
            }
            _ => sink.skipped.prefetches += 1,
        }
    }

    fn marker(
        &mut self,
        kind: u16,
        value: u64,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, Complaint> {
        if kind == MARKER_SYSCALL {
            let number = u32::try_from(value).map_err(|_| {
                Complaint::number("the system call number", value, "0 to 4294967295")
            })?;
            return Ok(Some(Next::Sys(SysOp::Other { number })));
        }
        if kind == MARKER_VERSION {
            version(value)?;
        }
        if kind == MARKER_FILETYPE {
            self.identity.filtered = value & FILTERED != 0;
        }
        sink.skipped.markers += 1;
        Ok(None)
    }

    /// One file is one thread: a different one is refused.
    fn thread(&mut self, tid: u64) -> Result<(), Complaint> {
        if self.identity.thread.is_some_and(|known| known != tid) {
            return Err(Complaint::number(
                "the thread id",
                tid,
                "one thread per file (offline traces, not sharded by core)",
            ));
        }
        self.identity.thread = Some(tid);
        Ok(())
    }

    /// Which entries may stand here.
    fn admit(&mut self, entry: Entry, kind: u16) -> Result<(), Complaint> {
        let allowed = match (self.stage, entry) {
            (Stage::Start, Entry::Header) => {
                self.stage = Stage::Body;
                return Ok(());
            }
            (Stage::Start, Entry::Marker | Entry::Thread | Entry::Process) => {
                self.stage = Stage::Body;
                return Ok(());
            }
            (Stage::Start, _) => "at the beginning: 22, 24, 25 or 28",
            (Stage::Body, Entry::Header) => "one header (25), at the beginning",
            (Stage::Body, _) | (Stage::Exited, Entry::Marker | Entry::Footer) => return Ok(()),
            (Stage::Exited, _) => "after the thread's exit: 26 or 28",
            (Stage::Footed { .. }, _) => "nothing after the footer",
        };
        Err(Complaint::number("the entry type", kind.into(), allowed))
    }

    fn entry(
        &mut self,
        (kind, size, value): (u16, u16, u64),
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, Complaint> {
        let entry = classify(kind)
            .ok_or_else(|| Complaint::number("the entry type", kind.into(), TYPES))?;
        self.admit(entry, kind)?;
        if !matches!(entry, Entry::Write | Entry::Read) {
            self.release(sink);
        }
        match entry {
            Entry::Read | Entry::Write => self.data(entry, size, value, sink)?,
            Entry::Instr => self.instruction(size, value, sink)?,
            Entry::MaybeRepeat if self.follows.is_none() || self.pc != value => {
                self.instruction(size, value, sink)?;
            }
            Entry::Repeat | Entry::MaybeRepeat => {
                self.pc = value;
                self.site = site_of(value);
                self.follows = Some(value.wrapping_add(u64::from(size)));
                sink.skipped.repeats += 1;
            }
            Entry::Bundle => self.bundle(size, value, sink)?,
            Entry::Prefetch { .. } | Entry::OtherPrefetch => self.prefetch(entry, value, sink),
            Entry::Flush => sink.skipped.flushes += 1,
            Entry::Thread => self.thread(value)?,
            Entry::Process => self.identity.process = Some(value),
            Entry::ThreadExit => self.stage = Stage::Exited,
            Entry::Footer => {
                let exited = self.stage == Stage::Exited;
                self.stage = Stage::Footed { exited };
            }
            Entry::Marker => return self.marker(size, value, sink),
            Entry::Header => version(value)?,
            Entry::Encoding => {}
        }
        Ok(None)
    }
}

impl Decode for DrMemtrace {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let Some(record) = input.record::<12>("drmemtrace entry")? else {
            self.release(sink);
            let exited = matches!(self.stage, Stage::Exited | Stage::Footed { exited: true });
            return Ok(Some(if exited { Next::Exit(0) } else { Next::End }));
        };
        let next = self.entry(split(&record), sink);
        next.map_err(|complaint| {
            // The load that was held came before the damage.
            self.release(sink);
            input.fault(complaint)
        })
    }

    fn identity(&self) -> Identity {
        self.identity
    }
}
