//! A program that reads one file once more (M-13): from the caches, or after they were
//! emptied. It reads as the benchmark does: by calls that fill the same buffer again and again.

use piebald_store::digest;
use piebald_units::{
    FileId, VirtAddr,
    op::{Access, Backing, Filled, MemRef, Next, OpSource, RefKind, SysOp},
};
use piebald_workload::{Program, ProgramError};

/// Where it reads to: the file, and what empties the caches.
const BUFFER: VirtAddr = VirtAddr(0x1000_0000);
const OTHER: VirtAddr = VirtAddr(0x2000_0000);
/// Where it makes its references.
const MARK: VirtAddr = VirtAddr(0x3000_0000);
/// Files of the same size that empty the caches, if they are 256 KiB: 32 MiB, twice the
/// caches of the whole machine.
const OTHERS: u64 = 128;
/// Reads before the one that is measured: the first one brings its buffer in.
const BEFORE: u64 = 3;

/// What empties the caches before the read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptied {
    /// Nothing.
    Not,
    /// Other files, read into the same buffer, which is in the caches then.
    Around,
    /// Other files, read into another buffer, so that the first is in memory as well.
    WithBuffer,
}

/// Reads its file [`BEFORE`] times, then perhaps others, then its file. A reference comes before
/// the measured read and one after it.
pub(super) struct Once {
    /// Bytes of each file.
    pub size: u64,
    /// Bytes of a call.
    pub call: u64,
    /// What is read in between.
    pub emptied: Emptied,
}

impl Once {
    /// References up to the read that is measured, and over it.
    pub(super) const fn marks(&self) -> [u64; 2] {
        [1, 1]
    }

    /// How many others are read in between.
    const fn others(&self) -> u64 {
        match self.emptied {
            Emptied::Not => 0,
            Emptied::Around | Emptied::WithBuffer => OTHERS,
        }
    }

    fn steps(&self) -> Vec<Step> {
        let call = self.call.clamp(1, self.size.max(1));
        let read = |file: u64, buffer| {
            (0..self.size).step_by(call as usize).map(move |offset| {
                Step::Call(SysOp::Read {
                    file: FileId(file),
                    offset,
                    len: call.min(self.size - offset),
                    buffer,
                })
            })
        };
        let map = |addr| {
            Step::Call(SysOp::Map {
                addr,
                len: self.size,
                backing: Backing::Anon,
                access: Access {
                    write: true,
                    exec: false,
                },
                shared: false,
            })
        };
        let other = match self.emptied {
            Emptied::WithBuffer => OTHER,
            Emptied::Not | Emptied::Around => BUFFER,
        };
        [BUFFER, OTHER, MARK]
            .map(map)
            .into_iter()
            .chain((0..BEFORE).flat_map(|_| read(0, BUFFER)))
            .chain((1..=self.others()).flat_map(|f| read(f, other)))
            .chain([Step::Mark])
            .chain(read(0, BUFFER))
            .chain([Step::Mark])
            .collect()
    }
}

impl Program for Once {
    fn identity(&self) -> Option<String> {
        let code = digest(include_bytes!("once.rs"));
        let Self {
            size,
            call,
            emptied,
        } = self;
        Some(format!("once {code} {size} {call} {emptied:?}"))
    }

    fn name(&self) -> &str {
        "once"
    }

    fn threads(&self) -> u32 {
        1
    }

    fn open(&self, _: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        let mut steps = self.steps();
        steps.reverse();
        Ok(Box::new(OnceSource(steps)))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        (0..=self.others())
            .map(|f| (FileId(f), self.size))
            .collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Call(SysOp),
    /// A reference.
    Mark,
}

/// What it has to do yet, the next step last.
struct OnceSource(Vec<Step>);

impl OpSource for OnceSource {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let (refs, next) = match (self.0.pop(), out.first_mut()) {
            (Some(Step::Call(op)), _) => (0, Next::Sys(op)),
            (Some(Step::Mark), Some(slot)) => {
                *slot = MemRef {
                    addr: MARK,
                    gap: 1,
                    size: 8,
                    kind: RefKind::Load,
                    ..MemRef::default()
                };
                (1, Next::More)
            }
            (Some(Step::Mark), None) => {
                self.0.push(Step::Mark);
                (0, Next::More)
            }
            (None, _) => (0, Next::Exit(0)),
        };
        Filled {
            refs,
            tail: 0,
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_lies_between_the_marks() {
        for (emptied, call, reads) in [
            (Emptied::Not, 1 << 18, 4),
            (Emptied::Around, 1 << 18, 132),
            (Emptied::WithBuffer, 1 << 16, 132),
            (Emptied::Around, 100_000, 132),
        ] {
            let size: u64 = 1 << 18;
            let once = Once {
                size,
                call,
                emptied,
            };
            let calls = size.div_ceil(call) as usize;
            let steps = once.steps();
            let bytes = |s: &Step| match s {
                Step::Call(SysOp::Read { len, .. }) => Some(*len),
                _ => None,
            };
            let all: Vec<u64> = steps.iter().filter_map(bytes).collect();
            assert_eq!(all.len(), reads * calls);
            assert_eq!(all.iter().sum::<u64>(), reads as u64 * size);
            let marks: Vec<usize> = (0..steps.len())
                .filter(|i| steps[*i] == Step::Mark)
                .collect();
            let &[first, second] = &marks[..] else {
                panic!("{marks:?}");
            };
            let measured = steps[first + 1..second].iter().filter_map(bytes);
            assert_eq!(measured.sum::<u64>(), size);
            assert_eq!(once.files().len() as u64, 1 + (reads as u64 - 4));
            let mut source = once.open(0).unwrap_or_else(|e| panic!("{e}"));
            let mut out = [MemRef::default(); 8];
            let filled: Vec<Filled> = steps.iter().map(|_| source.fill(&mut out)).collect();
            assert_eq!(filled.iter().map(|f| f.refs).sum::<usize>(), 2);
            assert!(matches!(source.fill(&mut out).next, Next::Exit(0)));
        }
    }
}
