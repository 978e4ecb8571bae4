//! One execution of a block becomes references.

use std::sync::Arc;

use piebald_units::{
    LINE_SHIFT, VirtAddr,
    op::{MemRef, RefKind},
};

use super::depend::Dependences;
use crate::recording::{
    chunk::{ChunkReader, Shape, Tables},
    compiled::{Block, Dictionary},
    decode::Fault,
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

/// What one execution came to.
pub(crate) struct Executed {
    /// References written, fetches included.
    pub(crate) refs: usize,
    /// How many of them, at the front, are fetches.
    pub(crate) fetches: usize,
    /// Instructions.
    pub(crate) instrs: u64,
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
        self.tables.reset();
        self.dependences.reset();
        self.fetched_line = NO_LINE;
    }

    /// Most references that an execution with `refs` accesses can make.
    #[inline]
    pub(crate) fn room(&self, id: u32, refs: u32) -> usize {
        match self.with_fetches {
            false => refs as usize,
            true => refs as usize + self.dictionary.blocks[id as usize].bytes as usize / 64 + 2,
        }
    }

    /// Writes the references of an execution to the front of `out`, which has
    /// [`Self::room`]. `dictionary` is the engine's: a second handle to it lets the
    /// compiler keep the block in registers.
    #[inline(always)]
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
        // The first fetch stands for the first instruction.
        let counted = u16::from(fetches > 0);
        let data = &mut out[fetches..fetches + refs as usize];
        match shape {
            Shape::Irregular => self.irregular(dictionary, reader, block, counted, data)?,
            Shape::Regular if self.with_dependences => {
                self.regular::<true>(dictionary, reader, block, counted, data)?;
            }
            Shape::Regular => self.regular::<false>(dictionary, reader, block, counted, data)?,
        }
        Ok(Executed {
            refs: fetches + refs as usize,
            fetches,
            instrs: block.instrs.into(),
        })
    }

    #[inline]
    fn regular<const DEPENDENCES: bool>(
        &mut self,
        dictionary: &Dictionary,
        reader: &mut ChunkReader,
        block: &Block,
        counted: u16,
        out: &mut [MemRef],
    ) -> Result<(), Fault> {
        let first = block.first_access as usize;
        let end = first + out.len();
        let accesses = &dictionary.accesses[first..end];
        let sites = &mut self.tables.sites[first..end];
        for ((access, site), out) in accesses.iter().zip(sites).zip(out.iter_mut()) {
            let addr = reader.address(site)?;
            let dep = match DEPENDENCES {
                true => self.dependences.regular(access),
                false => 0,
            };
            *out = MemRef {
                addr: VirtAddr(canonical(addr)),
                dep,
                ..access.template
            };
        }
        match out.first_mut() {
            Some(first) => {
                let before = clamp(self.carry).wrapping_sub(counted.into());
                first.gap = first.gap.wrapping_add(before);
                self.carry = block.after.into();
            }
            None => self.carry += u64::from(block.instrs - counted),
        }
        if DEPENDENCES {
            let outs = &dictionary.outs[block.first_out as usize..][..block.outs.into()];
            self.dependences.leave(outs, block.loads);
        }
        Ok(())
    }

    #[inline(never)]
    fn irregular(
        &mut self,
        dictionary: &Dictionary,
        reader: &mut ChunkReader,
        block: &Block,
        counted: u16,
        out: &mut [MemRef],
    ) -> Result<(), Fault> {
        let first = block.first_access as usize;
        self.dependences.enter_irregular();
        // Instructions of this execution that some reference has counted.
        let mut done = counted;
        for (k, out) in out.iter_mut().enumerate() {
            let index = reader.indices[k];
            let access = &dictionary.accesses[first + usize::from(index)];
            let site = &mut self.tables.sites[first + usize::from(index)];
            let addr = reader.address(site)?;
            let dep = self.dependences.irregular(&access.origin);
            if access.template.kind != RefKind::Store {
                self.dependences.irregular_load(index);
            }
            let upto = done.max(access.insn + 1);
            let gap = clamp(std::mem::take(&mut self.carry)) + u32::from(upto - done);
            done = upto;
            *out = MemRef {
                addr: VirtAddr(canonical(addr)),
                gap,
                dep: if self.with_dependences { dep } else { 0 },
                ..access.template
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

/// The full address of 48 recorded bits.
const fn canonical(addr: u64) -> u64 {
    ((addr << 16) as i64 >> 16) as u64
}
