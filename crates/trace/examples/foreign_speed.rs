//! How fast memory traces of other tools are read.
//!
//! `cargo run --release -p piebald-trace --example foreign_speed FILE...` reads files. Printed are references and
//! unpacked bytes per second of processor time.

use std::{fs, path::Path};

use piebald_trace::foreign::{ForeignError, ForeignTrace, Options};
use piebald_units::op::{MemRef, Next, OpSource};

/// Seconds that this thread has spent on a processor.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next().and_then(|n| n.parse::<u64>().ok());
    first.unwrap_or(0) as f64 / 1e9
}

fn measure(file: &Path) -> Result<(), ForeignError> {
    let trace = ForeignTrace::at(&[file], None, Options::default())?;
    let mut thread = trace.open(0)?;
    let mut buffer = vec![MemRef::default(); 4096];
    let begin = cpu_seconds();
    let (mut refs, mut instructions) = (0u64, 0u64);
    loop {
        let filled = thread.fill(&mut buffer);
        refs += filled.refs as u64;
        let gaps = buffer[..filled.refs].iter().map(|r| u64::from(r.gap));
        instructions += gaps.sum::<u64>();
        if matches!(filled.next, Next::End | Next::Exit(_) | Next::Broken) {
            break;
        }
    }
    let seconds = (cpu_seconds() - begin).max(1e-9);
    println!(
        "{:<14} {:>8.1} M refs/s {:>8.0} MB/s {refs:>10} refs, {instructions} instructions, {}",
        trace.format(),
        refs as f64 / seconds / 1e6,
        thread.offset() as f64 / seconds / 1e6,
        file.display()
    );
    Ok(())
}

fn main() -> Result<(), ForeignError> {
    std::env::args_os()
        .skip(1)
        .try_for_each(|file| measure(Path::new(&file)))
}
