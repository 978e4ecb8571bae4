//! A program with files of its own.

use std::sync::Arc;

use piebald_units::{
    FileId,
    op::{Backing, Filled, MemRef, Next, OpSource, SysOp},
};

use crate::{Program, ProgramError};

/// A program whose files are no other program's: one set for each number, 0 = those that it has.
pub struct OwnFiles(pub Arc<dyn Program>, pub u32);

/// Another file for each number; 0 leaves it as it is.
fn renumbered(file: FileId, number: u32) -> FileId {
    FileId(file.0 ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Program for OwnFiles {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn threads(&self) -> u32 {
        self.0.threads()
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Ok(Box::new(OwnSource(self.0.open(thread)?, self.1)))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        let files = self.0.files().into_iter();
        files.map(|(f, n)| (renumbered(f, self.1), n)).collect()
    }

    fn identity(&self) -> Option<String> {
        Some(format!("files {} of {}", self.1, self.0.identity()?))
    }
}

struct OwnSource(Box<dyn OpSource>, u32);

impl OpSource for OwnSource {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let mut filled = self.0.fill(out);
        if let Next::Sys(
            SysOp::Read { file, .. }
            | SysOp::Write { file, .. }
            | SysOp::Map {
                backing: Backing::File { file, .. },
                ..
            },
        ) = &mut filled.next
        {
            *file = renumbered(*file, self.1);
        }
        filled
    }

    fn failure(&self) -> Option<&str> {
        self.0.failure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{builtin, events};

    #[test]
    fn files_of_its_own_are_no_other_programs() {
        let program = builtin("filesort:size=64KiB,block=16KiB,iterations=1");
        let plain = program.files();
        let ids = |n| -> Vec<FileId> {
            let own = OwnFiles(program.clone(), n);
            own.files().iter().map(|f| f.0).collect()
        };
        assert_eq!(ids(0), plain.iter().map(|f| f.0).collect::<Vec<_>>());
        assert!(
            ids(1)
                .iter()
                .all(|f| !ids(0).contains(f) && !ids(2).contains(f))
        );
        let (_, seen) = events(&OwnFiles(program.clone(), 3), usize::MAX);
        for next in seen {
            if let Next::Sys(SysOp::Read { file, .. } | SysOp::Write { file, .. }) = next {
                assert!(ids(3).contains(&file));
            }
        }
    }
}
