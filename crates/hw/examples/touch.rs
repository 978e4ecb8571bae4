//! Loads from memory at the addresses of a dumped stream, for tools that watch
//! a running program (cachegrind).
//!
//! `touch FILE TIMES` reads little-endian 64-bit byte offsets and loads a byte at each,
//! `TIMES` times over; prints the number of loads and a sum that keeps them alive.

use std::hint::black_box;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, times] = args.as_slice() else {
        return Err("usage: touch FILE TIMES".into());
    };
    let times: usize = times.parse()?;
    let offsets: Vec<usize> = std::fs::read(file)?
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes) as usize)
        .collect();
    let size = offsets.iter().max().map_or(0, |max| max + 1);
    let memory = vec![0u8; size];
    let mut sum = 0u64;
    for _ in 0..times {
        for offset in &offsets {
            sum += u64::from(memory[*offset]);
        }
        black_box(sum);
    }
    println!("{} {sum}", offsets.len() * times);
    Ok(())
}
