//! Which load an address depends on.
//!
//! Loads of a chunk are numbered from 1. For each register the number of the
//! youngest load that its value depends on is kept; 0 means none. The table
//! starts afresh in each chunk, so that a replay that starts there agrees with
//! one that passes through; about one reference in a million loses a dependence.

use crate::recording::{
    compiled::{Access, Origin, Out},
    model::NR_REGS,
};

/// Distances from here on count as none ([`MemRef::dep`](piebald_units::op::MemRef::dep)).
const FAR: u32 = u16::MAX as u32;

/// By register: its load. One more entry, always 0, stands for no register.
type Table = [u32; NR_REGS + 1];

/// The table and the count of loads.
#[derive(Default)]
pub(crate) struct Dependences {
    regs: Table,
    /// Loads of the chunk so far, those of the current execution only if it is
    /// irregular.
    loads: u32,
    /// Loads of an irregular execution: access index, number.
    irregular: Vec<(u16, u32)>,
}

impl Dependences {
    /// A chunk begins.
    pub(crate) fn reset(&mut self) {
        self.regs = Table::default();
        self.loads = 0;
    }

    /// An irregular execution begins.
    pub(crate) fn enter_irregular(&mut self) {
        self.irregular.clear();
    }

    /// A load was made by access `index` of an irregular execution.
    pub(crate) fn irregular_load(&mut self, index: u16) {
        self.loads += 1;
        self.irregular.push((index, self.loads));
    }

    /// In a regular execution: loads back to the one that the access depends on;
    /// 0 = none, or too far.
    #[inline]
    pub(crate) fn regular(&self, access: &Access) -> u16 {
        if access.origin.youngest != 0 {
            return access.template.dep;
        }
        let source = youngest(&self.regs, &access.origin);
        back(self.loads + u32::from(access.loads_before), source)
    }

    /// The same in an irregular execution.
    pub(crate) fn irregular(&self, origin: &Origin) -> u16 {
        back(self.loads, self.irregular_source(origin, &self.regs))
    }

    fn irregular_source(&self, origin: &Origin, regs: &Table) -> u32 {
        let executed = self.irregular.iter().rev();
        let mut named = executed.filter(|(k, _)| *k < 64 && origin.loads >> k & 1 == 1);
        match named.next() {
            Some(&(_, number)) => number,
            None => youngest(regs, origin),
        }
    }

    /// A regular execution ends: registers take their new values, all at once.
    #[inline]
    pub(crate) fn leave(&mut self, outs: &[Out], loads: u16) {
        let entry = self.regs;
        for out in outs {
            let source = match out.origin.youngest {
                0 => youngest(&entry, &out.origin),
                ordinal => self.loads + u32::from(ordinal),
            };
            self.regs[usize::from(out.reg) % NR_REGS] = source;
        }
        self.loads += u32::from(loads);
    }

    /// An irregular execution ends.
    pub(crate) fn leave_irregular(&mut self, outs: &[Out]) {
        let entry = self.regs;
        for out in outs {
            let source = self.irregular_source(&out.origin, &entry);
            self.regs[usize::from(out.reg) % NR_REGS] = source;
        }
    }
}

/// Number of the youngest load that the registers hold.
#[inline]
fn youngest(table: &Table, origin: &Origin) -> u32 {
    let [a, b] = origin.pair.map(|r| table[usize::from(r).min(NR_REGS)]);
    match origin.many {
        false => a.max(b),
        true => {
            let named = (0..NR_REGS).filter(|r| origin.regs >> r & 1 == 1);
            named.map(|r| table[r]).max().unwrap_or(0)
        }
    }
}

/// From the reference after `loads` loads back to the load with number `source`.
#[inline]
fn back(loads: u32, source: u32) -> u16 {
    let distance = (loads + 1).wrapping_sub(source);
    match source == 0 || distance >= FAR {
        true => 0,
        false => distance as u16,
    }
}
