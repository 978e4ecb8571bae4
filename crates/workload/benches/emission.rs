//! How fast do built-in programs emit references, without and with encoding,
//! how many bytes does a reference take, and how fast is it replayed?
//!
//! `cargo bench -p piebald-workload --bench emission [NAME[:...] ...]`

use std::time::Instant;

use piebald_trace::recording::model::{BlockDef, EventKind, Raw};
use piebald_trace::recording::{Recording, ReplayOptions};
use piebald_units::op::{MemRef, Next, OpSource};
use piebald_workload::memory::{EmitError, Sink};
use piebald_workload::{Builtin, list, record};

const REFS: u64 = 20_000_000;

/// Looks at every entry, keeps nothing.
#[derive(Default)]
struct Null {
    blocks: u32,
    folded: u64,
}

impl Sink for Null {
    fn define(&mut self, _: BlockDef) -> Result<u32, EmitError> {
        self.blocks += 1;
        Ok(self.blocks - 1)
    }

    fn stream(&mut self, _: u32, entries: &[Raw]) -> Result<(), EmitError> {
        self.folded = entries.iter().fold(self.folded, |f, r| f ^ r.0);
        Ok(())
    }

    fn event(&mut self, _: u32, _: EventKind) -> Result<(), EmitError> {
        Ok(())
    }
}

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let texts = match args.is_empty() {
        true => list().map(|s| s.name.to_owned()).collect(),
        false => args,
    };
    println!(
        "{:<24} {:>12} {:>14} {:>16} {:>10} {:>16}",
        "builtin", "refs", "emit Mrefs/s", "encode Mrefs/s", "bytes/ref", "replay Mrefs/s"
    );
    for text in texts {
        match Builtin::parse(&text) {
            Ok(builtin) => measure(&builtin),
            Err(e) => println!("{e}"),
        }
    }
}

fn measure(builtin: &Builtin) {
    let start = Instant::now();
    let refs = builtin.run(1, REFS, &mut Null::default());
    let emit = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let recording = record(builtin, 1, REFS);
    let encode = start.elapsed().as_secs_f64();
    let (refs, recording) = match (refs, recording) {
        (Ok(refs), Ok(recording)) => (refs as f64, recording),
        (Err(e), _) | (_, Err(e)) => return println!("{e}"),
    };
    let start = Instant::now();
    play(&recording);
    let replay = start.elapsed().as_secs_f64();
    let bytes: u64 = recording.index().chunks.iter().map(|c| c.len).sum();
    println!(
        "{:<24} {refs:>12} {:>14.1} {:>16.1} {:>10.3} {:>16.1}",
        builtin.to_string(),
        refs / emit / 1e6,
        refs / encode / 1e6,
        bytes as f64 / refs,
        refs / replay / 1e6
    );
}

/// Replays the first thread to its end.
fn play(recording: &Recording) {
    let mut source = match recording.source(0, ReplayOptions::default()) {
        Ok(source) => source,
        Err(e) => return println!("{e}"),
    };
    let mut buffer = [MemRef::default(); 1024];
    loop {
        match source.fill(&mut buffer).next {
            Next::Exit(_) | Next::End => return,
            Next::Broken => return println!("{:?}", source.failure()),
            _ => {}
        }
    }
}
