//! Which load an address depends on.
//!
//! Loads of a chunk are numbered from 1. For each register the number of the
//! youngest load that its value depends on is kept; 0 means none. The table
//! starts afresh in each chunk, so that a replay that starts there agrees with
//! one that passes through; about one reference in a million loses a dependence.

use crate::recording::{
    compiled::{Origin, Out},
    model::NR_REGS,
};

/// Distances from here on count as none ([`MemRef::dep`](piebald_units::op::MemRef::dep)).
const FAR: u32 = u16::MAX as u32;

/// The table and the count of loads.
#[derive(Default)]
pub(crate) struct Dependences {
    regs: [u32; NR_REGS],
    /// Loads of the chunk so far.
    loads: u32,
    /// Loads before the current execution.
    base: u32,
    /// Loads of an irregular execution: access index, number.
    irregular: Vec<(u16, u32)>,
}

impl Dependences {
    /// A chunk begins.
    pub(crate) fn reset(&mut self) {
        self.regs = [0; NR_REGS];
        self.loads = 0;
    }

    /// An execution begins.
    #[inline]
    pub(crate) fn enter(&mut self) {
        self.base = self.loads;
        self.irregular.clear();
    }

    /// A load was made by access `index`; with `irregular`, that is remembered
    /// because the definition's order does not hold.
    #[inline]
    pub(crate) fn load(&mut self, index: u16, irregular: bool) {
        self.loads += 1;
        if irregular {
            self.irregular.push((index, self.loads));
        }
    }

    /// Loads back to the one that `origin` depends on; 0 = none, or too far.
    #[inline]
    pub(crate) fn distance(&self, origin: &Origin, irregular: bool) -> u16 {
        let source = self.source(origin, irregular);
        let back = (self.loads + 1).wrapping_sub(source);
        if source == 0 || source > self.loads || back >= FAR {
            return 0;
        }
        back as u16
    }

    /// Number of the youngest load that `origin` depends on; 0 = none.
    #[inline]
    fn source(&self, origin: &Origin, irregular: bool) -> u32 {
        if origin.loads != 0 {
            if !irregular {
                return self.base + u32::from(origin.youngest);
            }
            let executed = self.irregular.iter().rev();
            let mut named = executed.filter(|(k, _)| *k < 64 && origin.loads >> k & 1 == 1);
            if let Some(&(_, number)) = named.next() {
                return number;
            }
        }
        let mut regs = origin.regs;
        let mut youngest = 0;
        while regs != 0 {
            youngest = youngest.max(self.regs[regs.trailing_zeros() as usize]);
            regs &= regs - 1;
        }
        youngest
    }

    /// The execution ends: registers take their new values, all at once.
    #[inline]
    pub(crate) fn leave(&mut self, outs: &[Out], irregular: bool) {
        let mut values = [0; NR_REGS];
        for (value, out) in values.iter_mut().zip(outs) {
            *value = self.source(&out.origin, irregular);
        }
        for (value, out) in values.iter().zip(outs) {
            self.regs[usize::from(out.reg) % NR_REGS] = *value;
        }
    }
}
