//! A program that reads the files of another.

use std::sync::Arc;

use piebald_units::{
    FileId, VirtAddr,
    op::{Access, Backing, Filled, MemRef, Next, OpSource, SysOp},
};

use crate::{Program, ProgramError};

/// Bytes of a call of [`Reader`].
const CALL: u64 = 32 << 10;
/// Where its buffer lies.
const BUFFER: VirtAddr = VirtAddr(0x1000_0000);

/// Reads the files that a program finds from beginning to end, in its order, and does nothing else.
pub struct Reader(pub Arc<dyn Program>);

impl Program for Reader {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn threads(&self) -> u32 {
        1
    }

    fn open(&self, _: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Ok(Box::new(ReaderSource {
            files: self.0.files(),
            at: None,
        }))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        self.0.files()
    }

    fn identity(&self) -> Option<String> {
        Some(format!("reader {}", self.0.identity()?))
    }
}

struct ReaderSource {
    files: Vec<(FileId, u64)>,
    /// File and offset of the next call; `None` = the buffer is not there yet.
    at: Option<(usize, u64)>,
}

impl OpSource for ReaderSource {
    fn fill(&mut self, _: &mut [MemRef]) -> Filled {
        let next = match self.at {
            None => {
                self.at = Some((0, 0));
                Next::Sys(SysOp::Map {
                    addr: BUFFER,
                    len: CALL,
                    backing: Backing::Anon,
                    access: Access {
                        write: true,
                        exec: false,
                    },
                    shared: false,
                })
            }
            Some((mut nth, mut offset)) => loop {
                match self.files.get(nth) {
                    None => break Next::Exit(0),
                    Some((_, bytes)) if *bytes <= offset => (nth, offset) = (nth + 1, 0),
                    Some((file, bytes)) => {
                        let len = CALL.min(bytes - offset);
                        self.at = Some((nth, offset + len));
                        break Next::Sys(SysOp::Read {
                            file: *file,
                            offset,
                            len,
                            buffer: BUFFER,
                        });
                    }
                }
            },
        };
        Filled {
            refs: 0,
            tail: 0,
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::events;

    struct Finds(Vec<(FileId, u64)>);

    impl Program for Finds {
        fn name(&self) -> &str {
            "finds"
        }

        fn threads(&self) -> u32 {
            1
        }

        fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
            Err(ProgramError::NoThread {
                name: "finds".to_owned(),
                thread,
                threads: 0,
            })
        }

        fn files(&self) -> Vec<(FileId, u64)> {
            self.0.clone()
        }
    }

    #[test]
    fn a_reader_reads_every_byte_of_the_files_once() {
        let files = Finds(vec![(FileId(7), 0), (FileId(8), 70_000), (FileId(9), 1)]);
        let (refs, seen) = events(&Reader(Arc::new(files)), usize::MAX);
        let read = |wanted: u64| {
            let mut at = 0;
            for next in &seen {
                if let Next::Sys(SysOp::Read {
                    file, offset, len, ..
                }) = next
                    && file.0 == wanted
                {
                    assert_eq!(*offset, at);
                    at += len;
                }
            }
            at
        };
        assert_eq!((refs, read(7), read(8), read(9)), (0, 0, 70_000, 1));
        assert_eq!(seen.last(), Some(&Next::Exit(0)));
    }
}
