//! Dictionary records: the blocks of a process.
//!
//! One section: postcard of the base, then of each [`BlockDef`]. The header's
//! `first_instr` is the id of the first block, `blocks` their number. Ids are
//! dense in a process; a forked child's ids begin after the blocks that it
//! inherits.

use serde::{Deserialize, Serialize};

use super::{
    error::EncodeError,
    model::{BlockDef, NR_REGS},
    record::{Composer, RecordHeader, RecordKind},
};

/// Longest instruction in bytes: 15 on x86-64 (Intel SDM volume 2, section 2.3.11);
/// rounded up for built-in programs that have no machine code.
const LONGEST_INSN: u32 = 16;

/// Blocks that a forked process has in common with its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Process number of the parent.
    pub process: u32,
    /// The child's blocks `0..blocks` are the parent's.
    pub blocks: u32,
}

/// Where the encoder looks blocks up.
pub trait BlockLookup {
    /// The definition of a block, if there is one.
    fn block(&self, id: u32) -> Option<&BlockDef>;
}

impl BlockLookup for [BlockDef] {
    fn block(&self, id: u32) -> Option<&BlockDef> {
        self.get(id as usize)
    }
}

impl BlockLookup for Vec<BlockDef> {
    fn block(&self, id: u32) -> Option<&BlockDef> {
        self.get(id as usize)
    }
}

/// Appends one dictionary record to `out`: blocks `first ..` of process
/// `process`. Every dictionary record of a process names the same base. A forked
/// process needs at least one record, an empty one if it has no blocks of its
/// own, because its base is told there.
///
/// # Errors
/// A block is nonsense (names it and the field), or compression fails; `out` is
/// then unchanged.
pub fn encode_dictionary(
    process: u32,
    base: Option<Base>,
    first: u32,
    blocks: &[BlockDef],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut bytes = postcard::to_allocvec(&base)?;
    for (i, block) in blocks.iter().enumerate() {
        check(block).map_err(|what| EncodeError::BadBlock {
            block: u64::from(first) + i as u64,
            what,
        })?;
        bytes = postcard::to_extend(block, bytes)?;
    }
    let too_many = EncodeError::ChunkTooLarge {
        what: "blocks in a dictionary",
        allowed: u32::MAX.into(),
    };
    let Some(end) = u32::try_from(blocks.len())
        .ok()
        .and_then(|n| first.checked_add(n))
    else {
        return Err(too_many);
    };
    let header = RecordHeader {
        process,
        first_instr: first.into(),
        blocks: end - first,
        ..RecordHeader::empty(RecordKind::Dictionary)
    };
    Composer::new()?.compose(&header, &[&bytes], out)
}

/// Reads the section of a dictionary record.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn decode(
    header: &RecordHeader,
    bytes: &[u8],
) -> Result<(Option<Base>, Vec<BlockDef>), String> {
    let (base, mut rest) = postcard::take_from_bytes::<Option<Base>>(bytes)
        .map_err(|e| format!("dictionary base: {e}"))?;
    let mut blocks = Vec::new();
    for i in 0..u64::from(header.blocks) {
        let (block, after) = postcard::take_from_bytes::<BlockDef>(rest)
            .map_err(|e| format!("block {}: {e}", header.first_instr.saturating_add(i)))?;
        check(&block)
            .map_err(|what| format!("block {}: {what}", header.first_instr.saturating_add(i)))?;
        blocks.push(block);
        rest = after;
    }
    if !rest.is_empty() {
        return Err(format!("{} bytes after the last block", rest.len()));
    }
    Ok((base, blocks))
}

/// What is wrong with a block, if anything.
fn check(block: &BlockDef) -> Result<(), String> {
    if block.instrs == 0 {
        return Err("instrs 0; at least 1 is allowed".into());
    }
    if block.bytes > u32::from(block.instrs) * LONGEST_INSN {
        let (bytes, instrs) = (block.bytes, block.instrs);
        return Err(format!(
            "{bytes} bytes; {instrs} instructions have at most {LONGEST_INSN} each"
        ));
    }
    if block.accesses.len() >= 0xffff {
        let n = block.accesses.len();
        return Err(format!("{n} accesses; fewer than 65535 are allowed"));
    }
    let mut least = 0;
    for (i, access) in block.accesses.iter().enumerate() {
        if !(1..=64).contains(&access.size) {
            let size = access.size;
            return Err(format!("access {i}: size {size}; 1 to 64 are allowed"));
        }
        if access.insn >= block.instrs || access.insn < least {
            return Err(format!(
                "access {i}: insn {}; {least} to {} are allowed",
                access.insn,
                block.instrs - 1
            ));
        }
        least = access.insn;
    }
    if block.outs.len() > NR_REGS {
        let n = block.outs.len();
        return Err(format!(
            "{n} written registers; at most {NR_REGS} are allowed"
        ));
    }
    match block.outs.iter().find(|o| usize::from(o.reg) >= NR_REGS) {
        Some(out) => Err(format!("register {}; 0 to 15 are allowed", out.reg)),
        None => Ok(()),
    }
}
