//! A program that reads one file once more (M-13): from the caches, or after they were
//! emptied.

use piebald_lab::rooms::workload::{Program, ProgramError};
use piebald_store::digest;
use piebald_units::{
    FileId, VirtAddr,
    op::{Access, Backing, Filled, MemRef, Next, OpSource, RefKind, SysOp},
};

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

/// Reads its file [`BEFORE`] times, then perhaps others, then its file. A reference comes before
/// the measured read and one after it.
pub(super) struct Once {
    /// Bytes of each file.
    pub size: u64,
    /// Others are read in between.
    pub emptied: bool,
}

impl Once {
    /// References up to the read that is measured, and over it.
    pub(super) const fn marks(&self) -> [u64; 2] {
        [1, 1]
    }

    fn steps(&self) -> Vec<Step> {
        let read = |file: u64, buffer| {
            Step::Call(SysOp::Read {
                file: FileId(file),
                offset: 0,
                len: self.size,
                buffer,
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
        let others = if self.emptied { OTHERS } else { 0 };
        [BUFFER, OTHER, MARK]
            .map(map)
            .into_iter()
            .chain((0..BEFORE).map(|_| read(0, BUFFER)))
            .chain((1..=others).map(|f| read(f, OTHER)))
            .chain([Step::Mark, read(0, BUFFER), Step::Mark])
            .collect()
    }
}

impl Program for Once {
    fn identity(&self) -> Option<String> {
        let code = digest(include_bytes!("once.rs"));
        Some(format!("once {code} {} {}", self.size, self.emptied))
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
        let others = if self.emptied { OTHERS } else { 0 };
        (0..=others).map(|f| (FileId(f), self.size)).collect()
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
        for (emptied, reads) in [(false, 4), (true, 132)] {
            let once = Once {
                size: 1 << 18,
                emptied,
            };
            let steps = once.steps();
            let is_read = |s: &&Step| matches!(s, Step::Call(SysOp::Read { .. }));
            assert_eq!(steps.iter().filter(is_read).count(), reads);
            let marks: Vec<usize> = (0..steps.len())
                .filter(|i| steps[*i] == Step::Mark)
                .collect();
            let &[first, second] = &marks[..] else {
                panic!("{marks:?}");
            };
            assert_eq!(steps[first + 1..second].iter().filter(is_read).count(), 1);
            assert_eq!(once.files().len() as u64, 1 + (reads as u64 - 4));
            let mut source = once.open(0).unwrap_or_else(|e| panic!("{e}"));
            let mut out = [MemRef::default(); 8];
            let filled: Vec<Filled> = steps.iter().map(|_| source.fill(&mut out)).collect();
            assert_eq!(filled.iter().map(|f| f.refs).sum::<usize>(), 2);
            assert!(matches!(source.fill(&mut out).next, Next::Exit(0)));
        }
    }
}
