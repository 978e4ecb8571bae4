//! A program that goes on as another image when it ends.

use std::sync::Arc;

use piebald_units::{
    FileId,
    op::{Filled, MemRef, Next, OpSource, SysOp},
};

use crate::{Program, ProgramError};

/// A program that starts again when it ends, as another image in the same process. Its first thread
/// does; the others are as they are.
pub struct Again(pub Arc<dyn Program>);

impl Program for Again {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn threads(&self) -> u32 {
        self.0.threads()
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        let source = self.0.open(thread)?;
        if thread > 0 {
            return Ok(source);
        }
        Ok(Box::new(AgainSource {
            program: self.0.clone(),
            source,
            made: 0,
            failure: None,
        }))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        self.0.files()
    }

    fn identity(&self) -> Option<String> {
        Some(format!("again {}", self.0.identity()?))
    }
}

struct AgainSource {
    program: Arc<dyn Program>,
    source: Box<dyn OpSource>,
    /// References since it started last: one that makes none would start again for ever.
    made: u64,
    failure: Option<String>,
}

impl OpSource for AgainSource {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let filled = self.source.fill(out);
        self.made += filled.refs as u64;
        if !matches!(filled.next, Next::Exit(_) | Next::End) || self.made == 0 {
            return filled;
        }
        self.made = 0;
        let next = match self.program.open(0) {
            Ok(source) => {
                self.source = source;
                Next::Sys(SysOp::Exec)
            }
            Err(e) => {
                self.failure = Some(e.to_string());
                Next::Broken
            }
        };
        Filled { next, ..filled }
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref().or_else(|| self.source.failure())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{builtin, events};

    #[test]
    fn a_program_that_starts_again_does_the_same_again() {
        let program = builtin("scan:64KiB,iterations=2");
        let (refs, once) = events(&*program, usize::MAX);
        let again = Again(program);
        let (twice_refs, twice) = events(&again, 2 * once.len());
        assert_eq!(twice_refs, 2 * refs);
        let (first, second) = twice.split_at(once.len());
        assert_eq!(first[..once.len() - 1], once[..once.len() - 1]);
        assert_eq!(first, second);
        assert_eq!(first.last(), Some(&Next::Sys(SysOp::Exec)));
    }
}
