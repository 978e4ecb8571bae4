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

/// What basic-block vectors may take: of one recording, all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorBudget {
    /// Instructions of each thread that are looked at, from its first; intervals
    /// that would go on beyond are cut there.
    pub instrs: u64,
    /// Most intervals. Choosing regions takes time in proportion to them.
    pub intervals: usize,
    /// Most pairs of block and count, 16 bytes each.
    pub counts: usize,
}

impl Default for VectorBudget {
    /// All instructions, 131,072 intervals, 512 MiB of counts.
    fn default() -> Self {
        Self {
            instrs: u64::MAX,
            intervals: 1 << 17,
            counts: 1 << 25,
        }
    }
}

impl VectorBudget {
    /// Takes what a new interval needs.
    fn take(&mut self, vector: &BlockVector) -> Result<(), &'static str> {
        self.intervals = self.intervals.checked_sub(1).ok_or("intervals")?;
        self.counts = self
            .counts
            .checked_sub(vector.blocks.len())
            .ok_or("counts of blocks")?;
        Ok(())
    }
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

    fn close(
        &mut self,
        process: u32,
        left: &mut VectorBudget,
        out: &mut Vec<BlockVector>,
    ) -> Result<(), &'static str> {
        self.leave_process(process);
        if self.instrs == 0 {
            return Ok(());
        }
        let vector = BlockVector {
            start: self.start,
            instrs: self.instrs,
            blocks: std::mem::take(&mut self.earlier).into_iter().collect(),
        };
        left.take(&vector)?;
        out.push(vector);
        self.start += std::mem::take(&mut self.instrs);
        Ok(())
    }
}

impl Recording {
    /// The basic-block vectors of every thread of the program, over intervals of
    /// `interval` instructions (0 counts as 1).
    ///
    /// # Errors
    /// The recording is damaged, or the vectors do not fit the budget
    /// ([`ReadError::TooManyVectors`]).
    pub fn block_vectors(
        &self,
        interval: u64,
        budget: VectorBudget,
    ) -> Result<Vec<ThreadVectors>, ReadError> {
        let mut maker = Maker {
            recording: self,
            interval: interval.max(1),
            budget,
            left: budget,
        };
        let threads = self.threads()?;
        threads.iter().map(|t| maker.thread(t)).collect()
    }
}

struct Maker<'a> {
    recording: &'a Recording,
    interval: u64,
    budget: VectorBudget,
    left: VectorBudget,
}

impl Maker<'_> {
    fn thread(&mut self, thread: &ProgramThread) -> Result<ThreadVectors, ReadError> {
        let mut intervals = Vec::new();
        let mut current = Current::default();
        let mut process = 0;
        for &segment in &thread.segments {
            let recording = self.recording;
            let chunks = &recording.index().chunks[recording.chunks_of(segment)];
            let Some(first) = chunks.first() else {
                continue;
            };
            if current.start + current.instrs >= self.budget.instrs {
                break;
            }
            current.leave_process(process);
            process = first.process;
            let dictionary = recording.dictionary(process)?;
            current.counts = vec![0; dictionary.blocks().len()];
            let mut tables = Tables::new(&dictionary);
            'chunks: for entry in chunks {
                tables.reset(&dictionary);
                let fail = |fault: Fault| recording.0.data.corrupt(entry.offset, fault.to_string());
                let mut walk = BlockWalk::open(recording, entry)?;
                while let Some(id) = walk.next(&mut tables).map_err(fail)? {
                    current.add(id, dictionary.blocks()[id as usize].instrs.into());
                    let over = current.start + current.instrs >= self.budget.instrs;
                    if over || current.instrs >= self.interval {
                        self.close(&mut current, process, &mut intervals)?;
                    }
                    if over {
                        break 'chunks;
                    }
                }
            }
        }
        self.close(&mut current, process, &mut intervals)?;
        Ok(ThreadVectors {
            thread: thread.thread,
            intervals,
        })
    }

    fn close(
        &mut self,
        current: &mut Current,
        process: u32,
        out: &mut Vec<BlockVector>,
    ) -> Result<(), ReadError> {
        let closed = current.close(process, &mut self.left, out);
        closed.map_err(|what| ReadError::TooManyVectors {
            file: self.recording.name().to_owned(),
            interval: self.interval,
            what,
            allowed: match what {
                "intervals" => self.budget.intervals,
                _ => self.budget.counts,
            },
        })
    }
}
