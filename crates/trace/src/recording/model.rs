//! What a recording says, independent of how it is written.
//!
//! A program is a tree of processes; each process has threads. Every thread is a
//! stream of *blocks* (straight runs of instructions, described once in the
//! process's dictionary) and the data addresses that each execution touched,
//! with *events* (system calls and their like) at exact places in that stream.

use serde::{Deserialize, Serialize};

/// General registers that dependences are tracked over (x86-64: rax..r15).
pub const NR_REGS: usize = 16;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes the same bytes.
    Update,
}

/// On what the address of an access depends: registers as they were when the
/// block was entered, and loads of the same execution of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sources {
    /// Bit r: the value of register r at block entry.
    pub regs: u16,
    /// Bit k: the value loaded by access k of this block (first 64 accesses).
    pub loads: u64,
}

/// One access of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AccessDef {
    /// Index of its instruction in the block, from 0.
    pub insn: u16,
    /// Address of its instruction, as an offset from the block's address.
    pub offset: u16,
    /// Bytes, after joining the pieces of a vector access; 1..=64.
    pub size: u8,
    /// What it does.
    pub kind: AccessKind,
    /// On what its address depends.
    pub address: Sources,
}

/// What a register holds after the block, if the block writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RegOut {
    /// Which register, 0..16.
    pub reg: u8,
    /// What its value depends on; empty = on no load.
    pub value: Sources,
}

/// A basic block: decoded once, when it is translated.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockDef {
    /// Virtual address of the first instruction.
    pub addr: u64,
    /// Length in bytes; 0 = its place is not known, and it is not fetched.
    pub bytes: u32,
    /// Number of instructions.
    pub instrs: u16,
    /// Its accesses in program order.
    pub accesses: Vec<AccessDef>,
    /// Registers that it writes.
    pub outs: Vec<RegOut>,
}

/// Identity of a file while a program ran.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdent {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes when seen.
    pub size: u64,
    /// `st_mode`: tells files, pipes and terminals apart.
    pub mode: u32,
}

/// Something that happened at one place of a thread's stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Place in the recording's total order (over all processes) when it began.
    pub seq: u64,
    /// Place in the total order when it ended; equal to `seq` if it is a point.
    pub seq_end: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EventKind {
    /// First event of every thread.
    Start {
        /// Linux process id.
        pid: u32,
        /// Linux thread id.
        tid: u32,
        /// Arguments of the image; empty for threads and forked children.
        argv: Vec<String>,
    },
    /// A mapping that existed before the first instruction (image, loader, stack).
    Initial {
        /// First byte.
        addr: u64,
        /// Length in bytes.
        len: u64,
        /// May be written.
        write: bool,
        /// May be executed.
        exec: bool,
        /// The file behind it and the offset in it, if it has one.
        file: Option<(FileIdent, u64)>,
        /// Its name in the map.
        name: String,
    },
    /// A system call.
    Call {
        /// x86-64 call number.
        number: u32,
        /// Arguments as passed, except that the vector calls (`readv` and its like)
        /// have the address of the first buffer in place of the vector's.
        args: [u64; 6],
        /// Return value; negative errno on failure; `None` if it did not return.
        ret: Option<i64>,
        /// The path argument, if the call has one.
        path: Option<String>,
        /// The file of its descriptor argument (or of the one it returned).
        file: Option<FileIdent>,
        /// The file position before the call, for calls that use it.
        position: Option<u64>,
    },
    /// A region marker instruction.
    Mark(u32),
    /// The process replaced its image; the stream goes on in a new process entry.
    Exec {
        /// Arguments of the new image.
        argv: Vec<String>,
    },
    /// The thread ended.
    Exit {
        /// Its status.
        status: i32,
    },
}

/// One entry of the raw stream that a recorder hands to the encoder.
///
/// A block execution is one block entry followed by one entry for each memory
/// access that really happened (which may be fewer than the dictionary says: a
/// repeated string instruction may run zero times, a fault may cut the block;
/// or more: pieces of vector accesses, helpers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Raw(pub u64);

impl Raw {
    const TAG: u32 = 48;
    const BLOCK: u64 = 0xffff;

    /// Execution of block `id` begins.
    pub const fn block(id: u32) -> Self {
        Self(Self::BLOCK << Self::TAG | id as u64)
    }

    /// Access `index` (below 0xffff) of the current block touched `addr`; only
    /// the low 48 bits of the address are kept.
    pub const fn access(index: u16, addr: u64) -> Self {
        Self((index as u64) << Self::TAG | addr & ((1 << Self::TAG) - 1))
    }

    /// What [`Self::index`] gives for a block entry.
    pub const NO_INDEX: u16 = Self::BLOCK as u16;

    /// Index of the access, or [`Self::NO_INDEX`] for a block entry.
    pub const fn index(self) -> u16 {
        (self.0 >> Self::TAG) as u16
    }

    /// Takes it apart again.
    pub const fn entry(self) -> Entry {
        let low = self.0 & ((1 << Self::TAG) - 1);
        match self.0 >> Self::TAG {
            Self::BLOCK => Entry::Block(low as u32),
            index => Entry::Access(index as u16, low),
        }
    }
}

/// A raw entry taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A block execution begins.
    Block(u32),
    /// An access: index in the block, address.
    Access(u16, u64),
}
