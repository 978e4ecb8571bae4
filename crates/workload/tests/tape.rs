//! What a tape does with errors.

use crate::common;
use piebald_trace::recording::model::{BlockDef, EventKind, Raw};
use piebald_workload::memory::{EmitError, Limits, Shape, Sink, Tape};
use piebald_workload::{Builtin, RunError};

/// Refuses everything after `left` entries.
struct Full {
    blocks: u32,
    left: usize,
}

impl Sink for Full {
    fn define(&mut self, _: BlockDef) -> Result<u32, EmitError> {
        self.blocks += 1;
        Ok(self.blocks - 1)
    }

    fn stream(&mut self, _: u32, entries: &[Raw]) -> Result<(), EmitError> {
        match self.left.checked_sub(entries.len()) {
            Some(left) => self.left = left,
            None => return Err(EmitError("disk is full".to_owned())),
        }
        Ok(())
    }

    fn event(&mut self, _: u32, _: EventKind) -> Result<(), EmitError> {
        Ok(())
    }
}

#[test]
fn a_refusing_sink_ends_the_program_with_its_reason() {
    for spec in piebald_workload::list() {
        let mut sink = Full {
            blocks: 0,
            left: 100_000,
        };
        // Small enough that an iteration without references is quick.
        let text = match spec.name {
            "hashjoin" | "seqscan" | "scan" => spec.name.to_owned(),
            "smm" => "smm:1000,nz=5000".to_owned(),
            "filesort" => "filesort:64KiB,block=8KiB".to_owned(),
            "postmark" => "postmark:20,low=1KiB,high=8KiB".to_owned(),
            "readfiles" | "lookup" | "randread" => spec.name.to_owned(),
            "lu" | "sor" | "fft" | "phold" | "matmul" => format!("{}:64", spec.name),
            _ => format!("{}:64KiB", spec.name),
        };
        let result = Builtin::parse(&text).unwrap().run(1, u64::MAX, &mut sink);
        match result {
            Err(RunError::Emit { error, .. }) => assert_eq!(error.0, "disk is full"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_defective_block_fails_the_tape() {
    let mut sink = Full {
        blocks: 0,
        left: usize::MAX,
    };
    let limits = Limits {
        refs: 10,
        iterations: 0,
    };
    let mut tape = Tape::new(&mut sink, "defective", limits);
    let block = tape.block(Shape::new(1).load(1, 8));
    tape.ready();
    assert!(!tape.again());
    tape.enter(block);
    let error = tape.finish().unwrap_err().to_string();
    assert_eq!(
        error,
        "block at 0x401000: access 0 at instruction 1; allowed: 0-0"
    );
}

#[test]
fn the_limit_on_references_is_exact_when_blocks_have_one() {
    let mut sink = Full {
        blocks: 0,
        left: usize::MAX,
    };
    let limits = Limits {
        refs: 10,
        iterations: 0,
    };
    let mut tape = Tape::new(&mut sink, "ten", limits);
    let block = tape.block(Shape::new(1).load(0, 8));
    let words = tape.map(vec![1u64; 8], 8);
    tape.ready();
    let mut sum = 0;
    while tape.again() {
        for i in 0..8 {
            tape.enter(block);
            sum += words.get(&mut tape, 0, i);
        }
    }
    assert_eq!(tape.finish(), Ok(10));
    assert_eq!(
        sum, 16,
        "the second iteration is completed without references"
    );
}

#[test]
fn files_of_equal_paths_but_different_sizes_differ() {
    let inode = |text: &str| {
        let mut counter = common::Counter::of(text, 1, 10_000);
        let file = counter.events.drain(..).find_map(|(_, e)| match e {
            EventKind::Call { file: Some(f), .. } => Some(f),
            _ => None,
        });
        file.unwrap().ino
    };
    assert_eq!(inode("scan:64KiB"), inode("scan:64KiB,chunk=4KiB"));
    assert_ne!(inode("scan:64KiB"), inode("scan:68KiB"));
}
