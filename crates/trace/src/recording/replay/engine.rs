//! One execution of a block becomes references.

use std::sync::Arc;

use piebald_units::{
    LINE_SHIFT, VirtAddr,
    op::{MemRef, RefKind},
};

use super::depend::Dependences;
use crate::recording::{
    chunk::{ChunkReader, Regular, Shape, Tables},
    compiled::{Block, Cell, Dictionary},
    decode::{AddressReader, Fault},
};

const LINE: u64 = 1 << LINE_SHIFT;
/// No line has this number.
const NO_LINE: u64 = u64::MAX;

/// Everything that lasts from one execution to the next.
pub(crate) struct Engine {
    pub(crate) dictionary: Arc<Dictionary>,
    pub(crate) tables: Tables,
    dependences: Dependences,
    with_dependences: bool,
    with_fetches: bool,
    fetched_line: u64,
    /// Instructions since the last reference.
    pub(crate) carry: u64,
}

/// What executions came to.
pub(crate) struct Executed {
    /// References written, fetches included.
    pub(crate) refs: usize,
    /// How many of them are fetches; in one execution, those at the front.
    pub(crate) fetches: usize,
    /// Instructions.
    pub(crate) instrs: u64,
}

/// What several executions came to.
pub(crate) struct Made {
    pub(crate) blocks: usize,
    pub(crate) executed: Executed,
}

impl Engine {
    pub(crate) fn new(dictionary: Arc<Dictionary>, dependences: bool, fetches: bool) -> Self {
        Self {
            tables: Tables::new(&dictionary),
            dictionary,
            dependences: Dependences::default(),
            with_dependences: dependences,
            with_fetches: fetches,
            fetched_line: NO_LINE,
            carry: 0,
        }
    }

    /// A chunk begins.
    pub(crate) fn reset(&mut self) {
        self.tables.reset(&self.dictionary);
        self.dependences.reset();
        self.fetched_line = NO_LINE;
    }

    /// Most references that an execution with `refs` accesses can make.
    #[inline]
    pub(crate) fn room(&self, id: u32, refs: u32) -> usize {
        match self.with_fetches {
            false => refs as usize,
            true => refs as usize + most_fetches(&self.dictionary.blocks[id as usize]),
        }
    }

    /// Makes up to `most` regular executions into the front of `out`, as far as
    /// that has [`Self::room`]. There may be none. `dictionary` is the engine's: a
    /// second handle to it lets the compiler keep the block in registers.
    ///
    /// # Errors
    /// The chunk is malformed.
    pub(crate) fn regulars(
        &mut self,
        dictionary: &Dictionary,
        reader: &mut ChunkReader,
        most: usize,
        out: &mut [MemRef],
    ) -> Result<Made, Fault> {
        match (self.with_dependences, self.with_fetches) {
            (false, false) => self.batch::<false, false>(dictionary, reader, most, out),
            (true, false) => self.batch::<true, false>(dictionary, reader, most, out),
            (false, true) => self.batch::<false, true>(dictionary, reader, most, out),
            (true, true) => self.batch::<true, true>(dictionary, reader, most, out),
        }
    }

    #[inline(never)]
    fn batch<const DEPENDENCES: bool, const FETCHES: bool>(
        &mut self,
        dictionary: &Dictionary,
        reader: &mut ChunkReader,
        most: usize,
        mut out: &mut [MemRef],
    ) -> Result<Made, Fault> {
        let Regular {
            most: regular,
            left: in_chunk,
            ahead,
            addresses,
        } = reader.regular(&mut self.tables)?;
        let mut left = most.min(regular);
        let most = left;
        let mut state = addresses.take();
        let room = out.len();
        let (mut fetches, mut instrs) = (0, 0u64);
        let mut carry = clamp(self.carry);
        while left > 0 {
            let Some(block) = ahead.block(dictionary) else {
                break;
            };
            let n = usize::from(block.accesses);
            let needed = n + if FETCHES { most_fetches(block) } else { 0 };
            if needed > out.len() {
                break;
            }
            left -= 1;
            ahead.read(&mut self.tables, in_chunk - (most - left) as u32);
            instrs += u64::from(block.instrs);
            let mut counted = 0;
            if FETCHES {
                self.carry = carry.into();
                let fetched = self.fetch(block, out);
                carry = self.carry as u32;
                out = &mut out[fetched..];
                fetches += fetched;
                counted = u32::from(fetched > 0);
            }
            let (data, rest) = out.split_at_mut(n);
            out = rest;
            let cells = &mut self.tables.cells[block.first_access as usize..][..n];
            if DEPENDENCES && block.tangled {
                for (cell, out) in cells.iter_mut().zip(data.iter_mut()) {
                    let addr = addresses.next_with(&mut state, &mut cell.site)?;
                    *out = reference(cell, addr, 0);
                }
                self.dependences.tangled_block(dictionary, block, data);
            } else {
                for (cell, out) in cells.iter_mut().zip(data.iter_mut()) {
                    let addr = addresses.next_with(&mut state, &mut cell.site)?;
                    let dep = match DEPENDENCES {
                        true => self.dependences.regular(cell),
                        false => 0,
                    };
                    *out = reference(cell, addr, dep);
                }
                if DEPENDENCES {
                    self.dependences.leave(block);
                }
            }
            match data.first_mut() {
                Some(first) => {
                    first.gap = first.gap.wrapping_add(carry.wrapping_sub(counted));
                    carry = block.after.into();
                }
                None => carry += u32::from(block.instrs) - counted,
            }
        }
        addresses.put(state);
        self.carry = carry.into();
        let refs = room - out.len();
        let blocks = most - left;
        reader.pass(blocks, refs - fetches, instrs)?;
        Ok(Made {
            blocks,
            executed: Executed {
                refs,
                fetches,
                instrs,
            },
        })
    }

    /// Writes the references of an execution to the front of `out`, which has
    /// [`Self::room`].
    pub(crate) fn execute(
        &mut self,
        dictionary: &Dictionary,
        reader: &mut ChunkReader,
        (id, shape, refs): (u32, Shape, u32),
        out: &mut [MemRef],
    ) -> Result<Executed, Fault> {
        let block = &dictionary.blocks[id as usize];
        let fetches = match self.with_fetches {
            true => self.fetch(block, out),
            false => 0,
        };
        let data = &mut out[fetches..fetches + refs as usize];
        let fetched = fetches > 0;
        match shape {
            Shape::Irregular => self.irregular(dictionary, reader, block, fetched, data)?,
            Shape::Regular => {
                let addresses = &mut reader.addresses;
                match self.with_dependences {
                    true => self.regular::<true>(dictionary, addresses, block, fetched, data)?,
                    false => self.regular::<false>(dictionary, addresses, block, fetched, data)?,
                }
            }
        }
        Ok(Executed {
            refs: fetches + refs as usize,
            fetches,
            instrs: block.instrs.into(),
        })
    }

    /// A regular execution. `fetched`: its first fetch stands for the first
    /// instruction.
    #[inline(always)]
    fn regular<const DEPENDENCES: bool>(
        &mut self,
        dictionary: &Dictionary,
        addresses: &mut AddressReader,
        block: &Block,
        fetched: bool,
        out: &mut [MemRef],
    ) -> Result<(), Fault> {
        let first = block.first_access as usize;
        let cells = &mut self.tables.cells[first..first + out.len()];
        if DEPENDENCES && block.tangled {
            self.dependences.tangled_block(dictionary, block, out);
        }
        for (cell, out) in cells.iter_mut().zip(out.iter_mut()) {
            let addr = addresses.next(&mut cell.site)?;
            let dep = match (DEPENDENCES, block.tangled) {
                (false, _) => 0,
                (true, false) => self.dependences.regular(cell),
                (true, true) => out.dep,
            };
            *out = reference(cell, addr, dep);
        }
        let counted = u16::from(fetched);
        match out.first_mut() {
            Some(first) => {
                let before = clamp(self.carry).wrapping_sub(counted.into());
                first.gap = first.gap.wrapping_add(before);
                self.carry = block.after.into();
            }
            None => self.carry += u64::from(block.instrs - counted),
        }
        if DEPENDENCES && !block.tangled {
            self.dependences.leave(block);
        }
        Ok(())
    }

    #[inline(never)]
    fn irregular(
        &mut self,
        dictionary: &Dictionary,
        reader: &mut ChunkReader,
        block: &Block,
        fetched: bool,
        out: &mut [MemRef],
    ) -> Result<(), Fault> {
        let first = block.first_access as usize;
        self.dependences.enter_irregular();
        let counted = u16::from(fetched);
        // Instructions of this execution that some reference has counted.
        let mut done = counted;
        for (k, out) in out.iter_mut().enumerate() {
            let index = reader.indices[k];
            let access = &dictionary.accesses[first + usize::from(index)];
            let cell = &mut self.tables.cells[first + usize::from(index)];
            let addr = reader.address(&mut cell.site)?;
            let dep = self.dependences.irregular(&access.origin);
            if cell.kind != RefKind::Store {
                self.dependences.irregular_load(index);
            }
            let upto = done.max(access.insn + 1);
            let gap = clamp(std::mem::take(&mut self.carry)) + u32::from(upto - done);
            done = upto;
            let dep = if self.with_dependences { dep } else { 0 };
            *out = MemRef {
                gap,
                ..reference(cell, addr, dep)
            };
        }
        self.carry += u64::from(block.instrs - done);
        let outs = &dictionary.outs[block.first_out as usize..][..block.outs.into()];
        self.dependences.leave_irregular(outs);
        Ok(())
    }

    /// Writes a fetch for each line of the block but one that was just fetched. A
    /// block of 0 bytes has no known place and is not fetched.
    fn fetch(&mut self, block: &Block, out: &mut [MemRef]) -> usize {
        let mut written = 0;
        if block.bytes == 0 {
            return written;
        }
        let mut at = block.addr;
        let end = block.addr.saturating_add(block.bytes.into());
        while at < end {
            let line = at / LINE;
            let next = end.min((at | (LINE - 1)).saturating_add(1));
            if line != self.fetched_line {
                let gap = match written {
                    0 => clamp(std::mem::take(&mut self.carry)) + 1,
                    _ => 0,
                };
                out[written] = MemRef {
                    addr: VirtAddr(at),
                    site: block.site,
                    gap,
                    dep: 0,
                    size: (next - at) as u8,
                    kind: RefKind::Fetch,
                };
                written += 1;
            }
            self.fetched_line = line;
            at = next;
        }
        written
    }
}

/// Instructions as a gap. The replay never lets this many pass unreported.
fn clamp(instrs: u64) -> u32 {
    u32::try_from(instrs).unwrap_or(u32::MAX - (1 << 16))
}

/// Most lines that a block lies on.
#[inline]
fn most_fetches(block: &Block) -> usize {
    block.bytes as usize / LINE as usize + 2
}

/// The reference that an access makes if it is the only one of its instruction and
/// the execution is regular.
#[inline(always)]
fn reference(cell: &Cell, addr: u64, dep: u16) -> MemRef {
    MemRef {
        addr: VirtAddr(addr),
        site: cell.number,
        gap: cell.gap,
        dep,
        size: cell.size,
        kind: cell.kind,
    }
}
