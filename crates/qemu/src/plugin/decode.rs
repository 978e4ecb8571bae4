//! What a block does, from its bytes.
//!
//! A block is a straight run of instructions, so one pass that keeps, for every
//! register, *where its value comes from* (registers at block entry, loads of
//! this block) yields the dependences of all addresses. Flags and vector
//! registers are followed inside a block and forgotten at its end: the model
//! carries sixteen general registers from block to block.
//!
//! The unit also says how accesses must be watched, since QEMU reports them
//! otherwise than a processor performs them: a 32-byte load arrives as four
//! loads of 8 bytes, an update as a load and a store, and `cmps` loads `[rdi]`
//! before `[rsi]`.

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfo, InstructionInfoFactory,
    MemorySize, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};
use piebald_trace::recording::model::{AccessDef, AccessKind, BlockDef, NR_REGS, RegOut, Sources};

/// Largest access that is described as one; larger ones (`xsave`) are described
/// by their pieces.
const MAX_ACCESS: usize = 64;
/// Size that stands for the pieces of larger accesses.
const PIECE: u8 = 8;
/// Loads whose values are followed: the width of [`Sources::loads`].
const MAX_LOADS: usize = 64;
/// Flags, in the table of values, after the general registers.
const FLAGS: usize = NR_REGS;
/// First vector register in the table of values.
const VECTOR: usize = NR_REGS + 1;
/// Rows of the table of values.
const NR_VALUES: usize = VECTOR + 32;

/// How the reports of an instruction become entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// One report is one access.
    Plain,
    /// Adjacent reports are pieces of one access of this many bytes.
    Join(u8),
    /// Every report is an entry of its own (gathers, `xsave`).
    Pieces,
    /// A load, and a store to the same bytes that is not an entry.
    Update,
    /// Loads are this access, stores the one whose index is given.
    LoadStore(u16),
    /// Two loads: reports alternate between this access and the one whose index
    /// is given.
    Alternate(u16),
}

/// A watch to be set on an instruction; at most one on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Index of the instruction in the block.
    pub insn: u16,
    /// Index of the access in the block.
    pub access: u16,
    /// How reports become entries.
    pub watch: Watch,
    /// A repeated string instruction: there may be any number of such reports.
    pub repeated: bool,
    /// QEMU may access a whole area at once, of which from 9.1 on it does not tell everybody.
    pub area: bool,
}

/// A block with all that the recorder needs to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The dictionary entry.
    pub def: BlockDef,
    /// Watches to be set.
    pub hooks: Vec<Hook>,
    /// Region markers: index of the instruction, number.
    pub marks: Vec<(u16, u32)>,
}

/// Decodes a block: the bytes of its instructions, one after the other.
pub struct BlockDecoder {
    infos: InstructionInfoFactory,
}

impl Default for BlockDecoder {
    fn default() -> Self {
        Self {
            infos: InstructionInfoFactory::new(),
        }
    }
}

impl BlockDecoder {
    /// Decodes the block at `addr` whose instructions have the given bytes and
    /// lengths (`lengths` sums to `bytes.len()`).
    pub fn decode(&mut self, addr: u64, bytes: &[u8], lengths: &[u8]) -> Decoded {
        let mut pass = Pass::new(addr, bytes.len(), lengths.len());
        let mut at = 0;
        for (i, &length) in lengths.iter().enumerate() {
            let code = &bytes[at..at + length as usize];
            let place = Place {
                insn: i as u16,
                offset: at as u16,
            };
            let mut decoder = Decoder::with_ip(64, code, addr + at as u64, DecoderOptions::NONE);
            let insn = decoder.decode();
            if let Some(number) = marker(code) {
                pass.out.marks.push((place.insn, number));
            } else if insn.is_invalid() {
                pass.unknown(place);
            } else {
                pass.instruction(place, &insn, self.infos.info(&insn));
            }
            at += length as usize;
        }
        pass.finish()
    }
}

/// Number of a region marker, `nopl 0x4b43NNNN(%rax)`.
pub fn marker(code: &[u8]) -> Option<u32> {
    match *code {
        [0x0f, 0x1f, 0x80, low, high, 0x43, 0x4b] => Some(u16::from_le_bytes([low, high]) as u32),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Place {
    insn: u16,
    offset: u16,
}

struct Pass {
    values: [Sources; NR_VALUES],
    out: Decoded,
}

impl Pass {
    fn new(addr: u64, bytes: usize, instrs: usize) -> Self {
        let mut values = [Sources::default(); NR_VALUES];
        for (r, value) in values.iter_mut().take(NR_REGS).enumerate() {
            value.regs = 1 << r;
        }
        Self {
            values,
            out: Decoded {
                def: BlockDef {
                    addr,
                    bytes: bytes as u32,
                    instrs: instrs as u16,
                    accesses: Vec::new(),
                    outs: Vec::new(),
                },
                hooks: Vec::new(),
                marks: Vec::new(),
            },
        }
    }

    /// An instruction that the decoder does not know: whatever QEMU reports is
    /// kept as 8-byte loads.
    fn unknown(&mut self, place: Place) {
        let access = self.access(place, PIECE, AccessKind::Load, Sources::default());
        self.hook(place, access, Watch::Pieces);
    }

    fn instruction(&mut self, place: Place, insn: &Instruction, info: &InstructionInfo) {
        let first = self.out.def.accesses.len();
        let mut used: Vec<(&UsedMemory, AccessKind)> = info
            .used_memory()
            .iter()
            .filter_map(|m| Some((m, access_kind(m.access())?)))
            .collect();
        // QEMU loads before it stores; iced lists operands.
        used.sort_by_key(|&(_, kind)| kind == AccessKind::Store);
        if is_compare_string(insn) {
            used.reverse();
        }
        for &(memory, kind) in &used {
            self.memory(place, insn, memory, kind);
        }
        let loads = self.loads_since(first);
        self.hook_since(place, insn, first, &used);
        self.registers(insn, info, loads);
    }

    fn memory(&mut self, place: Place, insn: &Instruction, memory: &UsedMemory, kind: AccessKind) {
        let size = size_of(insn, memory);
        let address = self.value(memory.base()).joined(self.value(memory.index()));
        let (size, kind) = match size {
            1..=MAX_ACCESS => (size as u8, kind),
            // State areas (`xsave`): unknown or large, seen piece by piece.
            _ if kind == AccessKind::Load => (PIECE, kind),
            _ => (PIECE, AccessKind::Store),
        };
        self.access(place, size, kind, address);
    }

    fn access(&mut self, place: Place, size: u8, kind: AccessKind, address: Sources) -> u16 {
        let index = self.out.def.accesses.len() as u16;
        self.out.def.accesses.push(AccessDef {
            insn: place.insn,
            offset: place.offset,
            size,
            kind,
            address,
        });
        index
    }

    fn hook(&mut self, place: Place, access: u16, watch: Watch) {
        self.out.hooks.push(Hook {
            insn: place.insn,
            access,
            watch,
            repeated: false,
            area: false,
        });
    }

    /// Sets the watch of an instruction whose accesses are those from `first` on.
    fn hook_since(
        &mut self,
        place: Place,
        insn: &Instruction,
        first: usize,
        used: &[(&UsedMemory, AccessKind)],
    ) {
        let is_store = |u: &&(&UsedMemory, AccessKind)| u.1 == AccessKind::Store;
        let loads = used.iter().take_while(|u| !is_store(u)).count();
        let index = |k: usize| (first + k) as u16;
        let Some(&(memory, kind)) = used.first() else {
            return;
        };
        let size = size_of(insn, memory);
        let watch = match (loads, used.len()) {
            (0 | 1, 1) if kind == AccessKind::Update && (1..=MAX_ACCESS).contains(&size) => {
                Watch::Update
            }
            (0 | 1, 1) => watch(memory, size),
            (1, _) => Watch::LoadStore(index(1)),
            (0, _) => Watch::Pieces,
            _ => Watch::Alternate(index(1)),
        };
        let rep = insn.has_rep_prefix() || insn.has_repne_prefix();
        self.out.hooks.push(Hook {
            insn: place.insn,
            access: index(0),
            watch,
            repeated: rep && insn.is_string_instruction(),
            area: is_area(insn),
        });
    }

    fn loads_since(&self, first: usize) -> Sources {
        let mut loads = 0;
        for (k, access) in self.out.def.accesses.iter().enumerate().skip(first) {
            if access.kind != AccessKind::Store && k < MAX_LOADS {
                loads |= 1 << k;
            }
        }
        Sources { regs: 0, loads }
    }

    fn value(&self, register: Register) -> Sources {
        row(register).map_or(Sources::default(), |r| self.values[r])
    }

    fn registers(&mut self, insn: &Instruction, info: &InstructionInfo, loads: Sources) {
        let result = self.inputs(insn, info).joined(loads);
        let before = self.values;
        for used in info.used_registers() {
            let Some(r) = row(used.register()) else {
                continue;
            };
            self.values[r] = match written(used.access()) {
                Written::No => continue,
                _ if steps_itself(insn, used.register()) => before[r],
                Written::Always if !is_part(used.register()) => result,
                // What is not written keeps its value.
                Written::Always | Written::Maybe => result.joined(before[r]),
            };
        }
        if insn.rflags_modified() != 0 {
            self.values[FLAGS] = result;
        }
        match insn.mnemonic() {
            Mnemonic::Syscall => self.values[RAX] = Sources::default(),
            Mnemonic::Leave => {
                self.values[RSP] = before[RBP];
                self.values[RBP] = loads;
            }
            Mnemonic::Pop if insn.op0_register().is_gpr() => {
                if let Some(r) = row(insn.op0_register()) {
                    self.values[r] = loads;
                }
            }
            _ => {}
        }
    }

    /// Where the data inputs of an instruction come from. Registers that only
    /// form an address are not data: the loaded value stands for them.
    fn inputs(&self, insn: &Instruction, info: &InstructionInfo) -> Sources {
        let mut sources = Sources::default();
        for i in 0..insn.op_count().min(5) {
            if insn.op_kind(i) == OpKind::Register && reads(info.op_access(i)) {
                sources = sources.joined(self.value(insn.op_register(i)));
            }
        }
        let in_address = |r: Register| {
            let same = |a: Register| a != Register::None && a.full_register() == r.full_register();
            let mut memory = info.used_memory().iter();
            memory.any(|m| same(m.base()) || same(m.index()))
        };
        for used in info.used_registers() {
            if reads(used.access()) && !in_address(used.register()) {
                sources = sources.joined(self.value(used.register()));
            }
        }
        if insn.rflags_read() != 0 {
            sources = sources.joined(self.values[FLAGS]);
        }
        sources
    }

    fn finish(mut self) -> Decoded {
        for (r, &value) in self.values.iter().take(NR_REGS).enumerate() {
            let kept = Sources {
                regs: 1 << r,
                loads: 0,
            };
            // A register that depends only on itself (a stack pointer that
            // moved) carries its sources on just as an unwritten one does.
            if value != kept {
                self.out.def.outs.push(RegOut {
                    reg: r as u8,
                    value,
                });
            }
        }
        self.out
    }
}

const RAX: usize = 0;
const RSP: usize = 4;
const RBP: usize = 5;

trait Joined {
    fn joined(self, other: Self) -> Self;
}

impl Joined for Sources {
    fn joined(self, other: Self) -> Self {
        Self {
            regs: self.regs | other.regs,
            loads: self.loads | other.loads,
        }
    }
}

enum Written {
    No,
    Always,
    Maybe,
}

fn written(access: OpAccess) -> Written {
    match access {
        OpAccess::Write | OpAccess::ReadWrite => Written::Always,
        OpAccess::CondWrite | OpAccess::ReadCondWrite => Written::Maybe,
        _ => Written::No,
    }
}

fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn access_kind(access: OpAccess) -> Option<AccessKind> {
    match access {
        OpAccess::Read | OpAccess::CondRead => Some(AccessKind::Load),
        OpAccess::Write | OpAccess::CondWrite => Some(AccessKind::Store),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Some(AccessKind::Update),
        OpAccess::None | OpAccess::NoMemAccess => None,
    }
}

/// Bytes of one access; the decoder does not name those of a repeated one.
fn size_of(insn: &Instruction, memory: &UsedMemory) -> usize {
    match memory.memory_size().size() {
        0 => insn.memory_size().size(),
        size => size,
    }
}

fn watch(memory: &UsedMemory, size: usize) -> Watch {
    if memory.vsib_size() != 0 || size > MAX_ACCESS || size == 0 {
        Watch::Pieces
    } else if size > 8 {
        Watch::Join(size as u8)
    } else {
        Watch::Plain
    }
}

/// Row of a register in the table of values.
fn row(register: Register) -> Option<usize> {
    if register == Register::None {
        return None;
    }
    let full = register.full_register();
    if full.is_gpr64() {
        Some(full.number())
    } else if full.is_vector_register() {
        Some(VECTOR + full.number())
    } else {
        None
    }
}

/// Does a write to this register leave part of the full register as it was?
fn is_part(register: Register) -> bool {
    register.is_gpr8() || register.is_gpr16()
}

/// Does it load or store an x87 number of 80 bits, or a state of registers?
fn is_area(insn: &Instruction) -> bool {
    use Mnemonic::*;
    match insn.mnemonic() {
        Fld | Fstp => insn.memory_size() == MemorySize::Float80,
        Fbld | Fbstp | Fldenv | Fnstenv | Frstor | Fnsave => true,
        Fxsave | Fxsave64 | Fxrstor | Fxrstor64 => true,
        Xsave | Xsave64 | Xsaveopt | Xsaveopt64 | Xsavec | Xsavec64 => true,
        Xrstor | Xrstor64 => true,
        _ => false,
    }
}

fn is_compare_string(insn: &Instruction) -> bool {
    matches!(
        insn.code(),
        Code::Cmpsb_m8_m8 | Code::Cmpsw_m16_m16 | Code::Cmpsd_m32_m32 | Code::Cmpsq_m64_m64
    )
}

/// Does the instruction only add a constant to this register? The stack pointer
/// of pushes and calls, the pointers and the counter of string instructions.
fn steps_itself(insn: &Instruction, register: Register) -> bool {
    let full = register.full_register();
    let stack = full == Register::RSP && insn.is_stack_instruction();
    let string = insn.is_string_instruction()
        && matches!(full, Register::RSI | Register::RDI | Register::RCX);
    stack || string
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
