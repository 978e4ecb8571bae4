//! ChampSim traces: one fixed record per instruction. Address and register 0 mean "none"; the tracer
//! fills its places from the first (`WriteToSet`).
//!
//! Deviations, for lack of data: a reference is 8 bytes, cut at the line's end; an instruction is
//! 1 byte, so that its fetch stays on one line. An address that is both loaded and stored by an
//! instruction is one `Update`.
//!
//! # Dependences
//!
//! Registers tell which load an address may depend on: each register remembers the latest load
//! that its value came from, directly or through computation; a reference depends on the latest of
//! its instruction's sources. The trace does not say which sources form the address and which are
//! data, so three rules keep chains apart that the program does not have:
//! * flags (25) and instruction pointer (26) never form an address that waits for a load;
//! * the stack pointer (6), if it is also a source, keeps its own history: `pop` loads something
//!   else;
//! * a source that is also a destination of a load with further sources is an accumulator
//!   (`add rax, [rbx]`) if the instruction also sets the flags or the register is none of the
//!   general ones of Pin's x86 numbering (3..=18), and does not form the address.
//!
//! What remains errs towards too many dependences for stores (their data counts) and for moves
//! with two sources.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind};

use super::entry::Entry;
use super::error::{Complaint, ForeignError};
use super::fetch::FetchFilter;
use super::input::Input;
use super::thread::{Decode, Sink, drive, site_of, within_line};
use super::{Format, Options};
use crate::about::{About, ByteOrder, Field, Form, Kind, Part, Stamps, field, fields, hex, unused};

const IP: Field = hex(field(
    "ip",
    Kind::U64,
    "address of the instruction",
    0x40_1000,
));
const IS_BRANCH: Field = field("is_branch", Kind::U8, "0 or 1", 0);
const TAKEN: Field = field("branch_taken", Kind::U8, "0 or 1", 0);
const SOURCE: &str = "ChampSim's inc/trace_instruction.h, and its tracer \
    tracer/pin/champsim_tracer.cpp, whose machine is little-endian";
const ASSUMES: &str = "sizes: 8 bytes, cut at the line's end";

/// A register.
const fn register(name: &'static str, sample: i64) -> Field {
    field(name, Kind::U8, "number of a register, 0 for none", sample)
}

/// A place in memory.
const fn memory(name: &'static str, sample: i64) -> Field {
    hex(field(name, Kind::U64, "address, 0 for none", sample))
}

pub(super) const SMALL: Entry = Entry {
    name: "champsim",
    about: About {
        what: "ChampSim's traces: a record per instruction (input_instr)",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[Part {
                what: "Instruction",
                note: "",
                fields: &[
                    IP,
                    IS_BRANCH,
                    TAKEN,
                    fields(2, register("destination_registers", 8)),
                    fields(4, register("source_registers", 10)),
                    fields(2, memory("destination_memory, stored", 0)),
                    fields(4, memory("source_memory, loaded", 0x7ffe_1000)),
                ],
            }],
        },
        source: SOURCE,
        stamps: Stamps::Absent,
        left_out: "nothing. A place that is loaded and stored by an instruction is one update; \
                   dependences come from registers",
    },
    filtered: false,
    assumes: Some(ASSUMES),
    instructions: true,
    lines: None,
    open: |options, input| drive(Registers::<ChampSim>::new(options), input),
};

pub(super) const LARGE: Entry = Entry {
    name: "champsim-cloudsuite",
    about: About {
        what: "ChampSim's traces of CloudSuite (cloudsuite_instr)",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[Part {
                what: "Instruction",
                note: "",
                fields: &[
                    IP,
                    IS_BRANCH,
                    TAKEN,
                    fields(4, register("destination_registers", 8)),
                    fields(4, register("source_registers", 10)),
                    unused("padding", 6),
                    fields(4, memory("destination_memory, stored", 0)),
                    fields(4, memory("source_memory, loaded", 0x7ffe_1000)),
                    unused("asid", 2),
                    unused("padding", 6),
                ],
            }],
        },
        source: SOURCE,
        stamps: Stamps::Absent,
        left_out: "address space ids. A place that is loaded and stored by an instruction is one update; \
                   dependences come from registers",
    },
    filtered: false,
    assumes: Some(ASSUMES),
    instructions: true,
    lines: None,
    open: |options, input| drive(Registers::<CloudSuite>::new(options), input),
};

const STACK_POINTER: u8 = 6;
const FLAGS: u8 = 25;
const INSTRUCTION_POINTER: u8 = 26;
const GENERAL: std::ops::RangeInclusive<u8> = 3..=18;

/// One instruction, in the larger form; unused places are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instr {
    pub ip: u64,
    pub is_branch: u8,
    pub taken: u8,
    pub dreg: [u8; 4],
    pub sreg: [u8; 4],
    pub dmem: [u64; 4],
    pub smem: [u64; 4],
}

/// A record form.
pub(crate) trait Record: Send + 'static {
    fn read(input: &mut Input) -> Result<Option<Instr>, ForeignError>;
}

#[derive(Debug)]
pub(crate) struct ChampSim;
#[derive(Debug)]
pub(crate) struct CloudSuite;

impl Record for ChampSim {
    fn read(input: &mut Input) -> Result<Option<Instr>, ForeignError> {
        Ok(input
            .record::<64>("ChampSim instruction record")?
            .map(|r| decode_small(&r)))
    }
}

impl Record for CloudSuite {
    fn read(input: &mut Input) -> Result<Option<Instr>, ForeignError> {
        Ok(input
            .record::<96>("CloudSuite instruction record")?
            .map(|r| decode_large(&r)))
    }
}

fn word(record: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&record[at..at + 8]);
    u64::from_le_bytes(bytes)
}

pub(crate) fn decode_small(r: &[u8; 64]) -> Instr {
    Instr {
        ip: word(r, 0),
        is_branch: r[8],
        taken: r[9],
        dreg: [r[10], r[11], 0, 0],
        sreg: [r[12], r[13], r[14], r[15]],
        dmem: [word(r, 16), word(r, 24), 0, 0],
        smem: std::array::from_fn(|i| word(r, 32 + 8 * i)),
    }
}

pub(crate) fn decode_large(r: &[u8; 96]) -> Instr {
    Instr {
        ip: word(r, 0),
        is_branch: r[8],
        taken: r[9],
        dreg: std::array::from_fn(|i| r[10 + i]),
        sreg: std::array::from_fn(|i| r[14 + i]),
        dmem: std::array::from_fn(|i| word(r, 24 + 8 * i)),
        smem: std::array::from_fn(|i| word(r, 56 + 8 * i)),
    }
}

impl Instr {
    pub fn check(&self) -> Result<(), Complaint> {
        let flag = |field, value: u8| match value {
            0 | 1 => Ok(()),
            _ => Err(Complaint::number(field, value.into(), "0 or 1")),
        };
        flag("is_branch", self.is_branch)?;
        flag("branch_taken", self.taken)?;
        if self.ip == 0 {
            return Err(Complaint::number("the instruction address", 0, "1 or more"));
        }
        Ok(())
    }

    /// The tracer leaves no place free before one that it uses.
    fn is_packed(&self) -> bool {
        let packed = |places: &[u64; 4]| {
            let used = places.iter().position(|a| *a == 0).unwrap_or(4);
            places[used..].iter().all(|a| *a == 0)
        };
        packed(&self.dmem) && packed(&self.smem)
    }

    /// It reads or writes what lies right behind it, which is code.
    fn meets_itself(&self) -> bool {
        let behind = |addr: &u64| (1..64).contains(&addr.wrapping_sub(self.ip));
        self.dmem.iter().chain(&self.smem).any(behind)
    }

    fn writes(&self, register: u8) -> bool {
        self.dreg.contains(&register)
    }

    fn loads(&self) -> bool {
        self.smem.iter().any(|&a| a != 0)
    }

    /// Sources that may hold a value from a load.
    fn inputs(&self) -> impl Iterator<Item = u8> + '_ {
        self.sreg
            .into_iter()
            .filter(|r| !matches!(*r, 0 | FLAGS | INSTRUCTION_POINTER))
    }

    /// Whether a source only takes part in the operation; see the module's rules.
    fn accumulates(&self, register: u8) -> bool {
        self.loads()
            && register != STACK_POINTER
            && self.writes(register)
            && self.inputs().any(|other| other != register)
            && (self.writes(FLAGS) || !GENERAL.contains(&register))
    }
}

/// Records that a detector looks at.
const SAMPLE: usize = 64;
/// Instructions that must follow the one before: fewer could be chance.
const LEAST_FOLLOWERS: usize = 2;
/// Longest instruction of x86, in bytes.
const LONGEST: u64 = 15;

/// Whether a beginning holds records of either form: `Ok`, or what is wrong with the first wrong one
/// where most are right. Forms that have no instruction behind another are left out: nearly any binary
/// file could hold their fields.
pub(crate) fn evidence(head: &[u8]) -> Vec<(Format, Result<(), String>)> {
    let forms = [
        (Format::ChampSim, examine::<64>(head, decode_small)),
        (Format::CloudSuite, examine::<96>(head, decode_large)),
    ];
    let found = forms.into_iter();
    found.filter_map(|(f, e)| Some((f, e?))).collect()
}

/// Of the instructions that do not follow a taken branch, three quarters must lie right behind the
/// one before.
fn examine<const N: usize>(
    head: &[u8],
    decode: fn(&[u8; N]) -> Instr,
) -> Option<Result<(), String>> {
    let records = head.as_chunks::<N>().0;
    let sample: Vec<Instr> = records.iter().take(SAMPLE).map(decode).collect();
    let (mut followers, mut others) = (0, 0);
    for pair in sample.windows(2) {
        let jumps = pair[0].is_branch == 1 && pair[0].taken == 1;
        match pair[1].ip.wrapping_sub(pair[0].ip) {
            1..=LONGEST => followers += 1,
            // A repeated instruction is one more record.
            0 => {}
            _ if !jumps => others += 1,
            _ => {}
        }
    }
    let own = sample.iter().filter(|i| i.meets_itself()).count();
    let legal = |i: &&Instr| i.check().is_ok() && i.is_packed();
    let wrong = sample.iter().filter(|i| !legal(i)).count();
    let scattered = followers < LEAST_FOLLOWERS || others * 3 > followers;
    if scattered || wrong * 4 > sample.len() || own * 4 > sample.len() {
        return None;
    }
    let Some(at) = sample.iter().position(|i| !legal(&i)) else {
        return Some(Ok(()));
    };
    let why = match sample[at].check() {
        Err(c) => format!("{} is {}; allowed: {}", c.field, c.value, c.allowed),
        Ok(()) => "an address stands behind a free place".to_owned(),
    };
    Some(Err(format!("byte {}: {why}", at * N)))
}

/// Decoder with the history of the registers.
#[derive(Debug)]
pub(crate) struct Registers<F> {
    fetches: FetchFilter,
    jumped: bool,
    /// Loads handed out so far.
    loads: u64,
    /// For each register, the number of the load that its value came from; 0 = none.
    origin: [u64; 256],
    form: std::marker::PhantomData<fn() -> F>,
}

impl<F: Record> Registers<F> {
    pub fn new(options: Options) -> Self {
        Self {
            fetches: FetchFilter::new(options.fetches),
            jumped: true,
            loads: 0,
            origin: [0; 256],
            form: std::marker::PhantomData,
        }
    }

    /// The load that the instruction's addresses depend on.
    fn address_origin(&self, instr: &Instr) -> u64 {
        let sources = instr.inputs().filter(|r| !instr.accumulates(*r));
        sources
            .map(|r| self.origin[usize::from(r)])
            .max()
            .unwrap_or(0)
    }

    /// Distance to that load, seen from the next reference.
    fn dep(&self, origin: u64) -> u16 {
        if origin == 0 {
            return 0;
        }
        match u16::try_from(self.loads + 1 - origin) {
            Ok(distance) if distance < u16::MAX => distance,
            _ => 0,
        }
    }

    fn refer(&mut self, instr: &Instr, sink: &mut Sink<'_>) {
        let origin = self.address_origin(instr);
        let site = site_of(instr.ip);
        for addr in instr.smem.into_iter().filter(|a| *a != 0) {
            let kind = if instr.dmem.contains(&addr) {
                RefKind::Update
            } else {
                RefKind::Load
            };
            let dep = self.dep(origin);
            sink.push(VirtAddr(addr), within_line(addr, 8), kind, site, dep);
            self.loads += 1;
        }
        let stored = instr.dmem.into_iter();
        for addr in stored.filter(|a| *a != 0 && !instr.smem.contains(a)) {
            let dep = self.dep(origin);
            sink.push(
                VirtAddr(addr),
                within_line(addr, 8),
                RefKind::Store,
                site,
                dep,
            );
        }
    }

    fn remember(&mut self, instr: &Instr) {
        let computed = instr
            .inputs()
            .map(|r| self.origin[usize::from(r)])
            .max()
            .unwrap_or(0);
        let value = if instr.loads() { self.loads } else { computed };
        for register in instr.dreg.into_iter().filter(|r| *r != 0) {
            let kept = register == STACK_POINTER && instr.sreg.contains(&STACK_POINTER);
            if !kept {
                self.origin[usize::from(register)] = value;
            }
        }
    }
}

impl<F: Record> Decode for Registers<F> {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let Some(instr) = F::read(input)? else {
            return Ok(Some(Next::End));
        };
        instr.check().map_err(|c| input.fault(c))?;
        sink.retire(1);
        self.fetches.fetch(instr.ip, 1, self.jumped, sink);
        self.jumped = instr.is_branch == 1 && instr.taken == 1;
        self.refer(&instr, sink);
        self.remember(&instr);
        Ok(None)
    }
}
