//! Basic-block vectors: where a thread spends its instructions, interval by
//! interval. Only the block section of the chunks is decoded.

use std::collections::BTreeMap;

use super::{
    analysis::ProgramThread,
    chunk::{BlockWalk, Tables},
    decode::Fault,
    error::ReadError,
    reader::Recording,
};

/// A block of a process, in one number: block id in the low 32 bits, process
/// number above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey(pub u64);

/// One interval of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockVector {
    /// Number of its first instruction in the thread.
    pub start: u64,
    /// Its length in instructions: as asked for, up to the end of the block that
    /// reaches it; the last one may be shorter.
    pub instrs: u64,
    /// Instructions executed in each block, by rising key; zeros are left out.
    pub blocks: Vec<(BlockKey, u64)>,
}

/// The intervals of a thread of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadVectors {
    /// Which thread.
    pub thread: u32,
    /// Its intervals, in order.
    pub intervals: Vec<BlockVector>,
}

/// The interval being filled.
#[derive(Default)]
struct Current {
    start: u64,
    instrs: u64,
    /// Instructions by block id of the current process.
    counts: Vec<u64>,
    /// Blocks with a count.
    touched: Vec<u32>,
    /// What earlier processes of the interval contributed.
    earlier: BTreeMap<BlockKey, u64>,
}

impl Current {
    #[inline]
    fn add(&mut self, block: u32, instrs: u64) {
        let count = &mut self.counts[block as usize];
        if *count == 0 {
            self.touched.push(block);
        }
        *count += instrs;
        self.instrs += instrs;
    }

    /// Another process goes on with the interval.
    fn leave_process(&mut self, process: u32) {
        for block in self.touched.drain(..) {
            let count = std::mem::take(&mut self.counts[block as usize]);
            let key = BlockKey(u64::from(process) << 32 | u64::from(block));
            *self.earlier.entry(key).or_default() += count;
        }
    }

    fn close(&mut self, process: u32, out: &mut Vec<BlockVector>) {
        self.leave_process(process);
        if self.instrs == 0 {
            return;
        }
        out.push(BlockVector {
            start: self.start,
            instrs: self.instrs,
            blocks: std::mem::take(&mut self.earlier).into_iter().collect(),
        });
        self.start += std::mem::take(&mut self.instrs);
    }
}

impl Recording {
    /// The basic-block vectors of every thread of the program, over intervals of
    /// `interval` instructions (0 counts as 1).
    ///
    /// # Errors
    /// The recording is damaged.
    pub fn block_vectors(&self, interval: u64) -> Result<Vec<ThreadVectors>, ReadError> {
        let threads = self.threads()?;
        threads
            .iter()
            .map(|t| self.thread_vectors(t, interval.max(1)))
            .collect()
    }

    fn thread_vectors(
        &self,
        thread: &ProgramThread,
        interval: u64,
    ) -> Result<ThreadVectors, ReadError> {
        let mut intervals = Vec::new();
        let mut current = Current::default();
        let mut process = 0;
        for &segment in &thread.segments {
            let chunks = &self.index().chunks[self.chunks_of(segment)];
            let Some(first) = chunks.first() else {
                continue;
            };
            current.leave_process(process);
            process = first.process;
            let dictionary = self.dictionary(process)?;
            current.counts = vec![0; dictionary.blocks().len()];
            let mut tables = Tables::new(&dictionary);
            for entry in chunks {
                tables.reset();
                let fail = |fault: Fault| self.0.data.corrupt(entry.offset, fault.to_string());
                let mut walk = BlockWalk::open(self, entry)?;
                while let Some(id) = walk.next(&mut tables).map_err(fail)? {
                    current.add(id, dictionary.blocks()[id as usize].instrs.into());
                    if current.instrs >= interval {
                        current.close(process, &mut intervals);
                    }
                }
            }
        }
        current.close(process, &mut intervals);
        Ok(ThreadVectors {
            thread: thread.thread,
            intervals,
        })
    }
}
