//! Which load an address depends on.
//!
//! Loads of a chunk are numbered, from a number so high that 0, which means none,
//! is too far back to count. For each register the number of the youngest load
//! that its value depends on is kept, and beside these the number of the last load
//! of all ([`LOADS`]), so that "depends on this register" and "depends on a load
//! of this execution" are one lookup. The table starts afresh in each chunk, so
//! that a replay that starts there agrees with one that passes through; about one
//! reference in a million loses a dependence.

use piebald_units::op::MemRef;

use crate::recording::{
    compiled::{Access, Block, Cell, Dictionary, LOADS, Origin, Out},
    model::NR_REGS,
};

/// Distances from here on count as none ([`MemRef::dep`](piebald_units::op::MemRef::dep)).
const FAR: u32 = u16::MAX as u32;

/// By register: its load. As long as it takes for any byte to be an index.
type Table = [u32; 256];

/// The table.
pub(crate) struct Dependences {
    table: Table,
    /// Loads of an irregular execution: access index, number.
    irregular: Vec<(u16, u32)>,
}

impl Default for Dependences {
    fn default() -> Self {
        let mut table = [0; 256];
        table[usize::from(LOADS)] = FAR;
        Self {
            table,
            irregular: Vec::new(),
        }
    }
}

impl Dependences {
    /// A chunk begins.
    pub(crate) fn reset(&mut self) {
        self.table = Self::default().table;
    }

    /// Number of the last load before this execution, if that is regular; else
    /// before this access.
    #[inline(always)]
    fn loads(&self) -> u32 {
        self.table[usize::from(LOADS)]
    }

    /// The younger of two entries.
    #[inline(always)]
    fn younger(&self, pair: [u8; 2]) -> u32 {
        let [a, b] = pair.map(|r| self.table[usize::from(r)]);
        a.max(b)
    }

    /// In a regular execution of a block that is not tangled: loads back to the one
    /// that the access depends on; 0 = none, or too far.
    #[inline(always)]
    pub(crate) fn regular(&self, cell: &Cell) -> u16 {
        near(self.loads() + u32::from(cell.back) - self.younger(cell.pair))
    }

    /// A regular execution of a block that is not tangled ends.
    #[inline(always)]
    pub(crate) fn leave(&mut self, block: &Block) {
        for m in block.moves.iter().take(block.outs.into()) {
            self.table[usize::from(m.reg)] = self.younger(m.pair) + u32::from(m.ordinal);
        }
        self.table[usize::from(LOADS)] += u32::from(block.loads);
    }

    /// A regular execution of a tangled block: writes what [`Self::regular`] would
    /// tell, and does what [`Self::leave`] would.
    #[inline(never)]
    pub(crate) fn tangled_block(
        &mut self,
        dictionary: &Dictionary,
        block: &Block,
        out: &mut [MemRef],
    ) {
        let accesses = &dictionary.accesses[block.first_access as usize..][..out.len()];
        for (access, out) in accesses.iter().zip(out) {
            out.dep = self.tangled(access);
        }
        let outs = &dictionary.outs[block.first_out as usize..][..block.outs.into()];
        self.take_values(outs, |before, o| match o.origin.youngest {
            0 => youngest(before, &o.origin),
            ordinal => before[usize::from(LOADS)] + u32::from(ordinal),
        });
        self.table[usize::from(LOADS)] += u32::from(block.loads);
    }

    fn tangled(&self, access: &Access) -> u16 {
        let next = access.loads_before + 1;
        match access.origin.youngest {
            0 => near(self.loads() + u32::from(next) - youngest(&self.table, &access.origin)),
            // A load later in the block cannot be meant.
            youngest => next.saturating_sub(youngest),
        }
    }

    /// An irregular execution begins.
    pub(crate) fn enter_irregular(&mut self) {
        self.irregular.clear();
    }

    /// A load was made by access `index` of an irregular execution.
    pub(crate) fn irregular_load(&mut self, index: u16) {
        self.table[usize::from(LOADS)] += 1;
        self.irregular.push((index, self.loads()));
    }

    /// As [`Self::regular`], in an irregular execution.
    pub(crate) fn irregular(&self, origin: &Origin) -> u16 {
        near(self.loads() + 1 - irregular_source(&self.table, &self.irregular, origin))
    }

    /// An irregular execution ends.
    pub(crate) fn leave_irregular(&mut self, outs: &[Out]) {
        let executed = std::mem::take(&mut self.irregular);
        self.take_values(outs, |before, o| {
            irregular_source(before, &executed, &o.origin)
        });
        self.irregular = executed;
    }

    /// Registers take these values, told from the table as it is, all at once.
    fn take_values(&mut self, outs: &[Out], value: impl Fn(&Table, &Out) -> u32) {
        let mut after = [0; NR_REGS];
        after.copy_from_slice(&self.table[..NR_REGS]);
        for out in outs {
            after[usize::from(out.reg) % NR_REGS] = value(&self.table, out);
        }
        self.table[..NR_REGS].copy_from_slice(&after);
    }
}

/// The load that a value depends on, in an execution that made these loads.
fn irregular_source(table: &Table, executed: &[(u16, u32)], origin: &Origin) -> u32 {
    let mut named = executed
        .iter()
        .rev()
        .filter(|(k, _)| *k < 64 && origin.loads >> k & 1 == 1);
    match named.next() {
        Some(&(_, number)) => number,
        None => youngest(table, origin),
    }
}

/// Number of the youngest load that the registers hold.
fn youngest(table: &Table, origin: &Origin) -> u32 {
    let mut regs = origin.regs;
    let mut youngest = 0;
    while regs != 0 {
        youngest = youngest.max(table[regs.trailing_zeros() as usize]);
        regs &= regs - 1;
    }
    youngest
}

/// The distance, unless it is too far.
#[inline(always)]
fn near(distance: u32) -> u16 {
    match distance >= FAR {
        true => 0,
        false => distance as u16,
    }
}
