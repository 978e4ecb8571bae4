//! Blocks of a built-in program's code.

use piebald_trace::recording::model::{AccessDef, AccessKind, BlockDef, RegOut, Sources};

/// Bytes of one instruction of a built-in program. x86-64 code of numeric loops
/// averages about 4.
pub const INSTR_BYTES: u16 = 4;

/// Most accesses that a block may have: the dependence bitmap of a
/// [`Sources`] names the first 64.
pub const MAX_ACCESSES: usize = 64;

/// Most instructions that a block may have: the last one's offset must fit 16
/// bits.
pub const MAX_INSTRS: u16 = u16::MAX / INSTR_BYTES;

/// The shape of one basic block: how many instructions it has, which of them
/// access memory, and on which loads their addresses depend.
///
/// Accesses are declared in program order. Instructions are numbered from 0;
/// those between two accesses are the computation, and so make the gaps that a
/// replay sees.
#[derive(Clone, Debug)]
pub struct Shape {
    instrs: u16,
    accesses: Vec<AccessDef>,
    outs: Vec<RegOut>,
}

impl Shape {
    /// A block of `instrs` instructions, 1..=16383, none of which accesses
    /// memory yet.
    pub const fn new(instrs: u16) -> Self {
        Self {
            instrs,
            accesses: Vec::new(),
            outs: Vec::new(),
        }
    }

    /// Instruction `insn` loads `size` bytes.
    #[must_use]
    pub fn load(self, insn: u16, size: u8) -> Self {
        self.access(insn, size, AccessKind::Load)
    }

    /// Instruction `insn` stores `size` bytes.
    #[must_use]
    pub fn store(self, insn: u16, size: u8) -> Self {
        self.access(insn, size, AccessKind::Store)
    }

    /// Instruction `insn` reads and writes the same `size` bytes.
    #[must_use]
    pub fn update(self, insn: u16, size: u8) -> Self {
        self.access(insn, size, AccessKind::Update)
    }

    /// The address of the access declared last depends on the value that access
    /// `source` of this block loads.
    #[must_use]
    pub fn after(mut self, source: u8) -> Self {
        if let Some(last) = self.accesses.last_mut() {
            last.address.loads |= 1 << (source % 64);
        }
        self
    }

    /// The address of the access declared last depends on what register `reg`
    /// (0..16) held when the block was entered.
    #[must_use]
    pub fn via(mut self, reg: u8) -> Self {
        if let Some(last) = self.accesses.last_mut() {
            last.address.regs |= 1 << (reg % 16);
        }
        self
    }

    /// After the block, register `reg` (0..16) holds what access `source` loads.
    #[must_use]
    pub fn keep(mut self, reg: u8, source: u8) -> Self {
        self.outs.push(RegOut {
            reg: reg % 16,
            value: Sources {
                regs: 0,
                loads: 1 << (source % 64),
            },
        });
        self
    }

    fn access(mut self, insn: u16, size: u8, kind: AccessKind) -> Self {
        self.accesses.push(AccessDef {
            insn,
            offset: insn.saturating_mul(INSTR_BYTES),
            size,
            kind,
            address: Sources::default(),
        });
        self
    }

    /// Length of its code in bytes.
    pub const fn bytes(&self) -> u32 {
        self.instrs as u32 * INSTR_BYTES as u32
    }

    /// What is wrong with it, if anything.
    pub(crate) fn defect(&self) -> Option<String> {
        if self.instrs == 0 || self.instrs > MAX_INSTRS {
            return Some(format!(
                "{} instructions; allowed: 1-{MAX_INSTRS}",
                self.instrs
            ));
        }
        if self.accesses.len() > MAX_ACCESSES {
            let n = self.accesses.len();
            return Some(format!("{n} accesses; allowed: 0-{MAX_ACCESSES}"));
        }
        let mut insn = 0;
        for (k, a) in self.accesses.iter().enumerate() {
            if a.insn < insn || a.insn >= self.instrs {
                let last = self.instrs - 1;
                return Some(format!(
                    "access {k} at instruction {}; allowed: {insn}-{last}",
                    a.insn
                ));
            }
            if !(1..=64).contains(&a.size) {
                return Some(format!("access {k} of {} bytes; allowed: 1-64", a.size));
            }
            if a.address.loads >> k != 0 {
                return Some(format!("access {k} depends on itself or a later access"));
            }
            insn = a.insn;
        }
        None
    }

    /// Places the block at an address.
    pub(crate) fn at(self, addr: u64) -> BlockDef {
        BlockDef {
            addr,
            bytes: self.bytes(),
            instrs: self.instrs,
            accesses: self.accesses,
            outs: self.outs,
        }
    }

    /// Number of its accesses.
    pub(crate) fn nr_accesses(&self) -> u16 {
        self.accesses.len() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_are_named() {
        let defect = |s: Shape| s.defect().unwrap_or_default();
        assert_eq!(defect(Shape::new(3).load(2, 8).store(2, 8)), "");
        assert!(defect(Shape::new(0)).starts_with("0 instructions"));
        assert!(defect(Shape::new(MAX_INSTRS + 1)).contains("1-16383"));
        assert!(defect(Shape::new(3).load(3, 8)).contains("allowed: 0-2"));
        assert!(defect(Shape::new(3).load(2, 8).load(1, 8)).contains("allowed: 2-2"));
        assert!(defect(Shape::new(3).load(0, 65)).contains("1-64"));
        assert!(defect(Shape::new(3).load(0, 8).after(0)).contains("itself"));
        let many = (0..65).fold(Shape::new(3), |s, _| s.load(0, 8));
        assert!(defect(many).contains("65 accesses"));
    }
}
