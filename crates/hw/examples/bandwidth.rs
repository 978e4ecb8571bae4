//! Memory bandwidth and latency of a preset as the model has them, beside what
//! was published for the machine.
//!
//! `bandwidth [PRESET]...` prints, for each preset: the load-to-use time of a
//! random pointer chase through 256 MiB, the triad (two loads and a store of 8
//! bytes for each element) by 1 to all cores, and one core that only reads, only
//! writes, or reads with 16-byte loads. Bytes are counted as STREAM counts them:
//! what the program asked for, without the lines that stores read first.

#[path = "../tests/stream_kit/mod.rs"]
mod stream_kit;

use piebald_hw::presets;
use stream_kit::{Kernel, bandwidth, chase, steady};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = presets::names().map(str::to_owned).collect();
    }
    for name in names {
        let spec = presets::load(&name)?;
        let cores = usize::from(spec.core.sockets * spec.core.per_socket);
        println!("{name}");
        println!("  chase          {:6.1} ns", chase(&spec, 20_000));
        for n in [1, 2, 3, 4, 8, 16].into_iter().filter(|n| *n <= cores) {
            let triad = bandwidth(&spec, "all", Kernel::Triad, n, 30_000);
            let wide = bandwidth(&spec, "all", Kernel::WideTriad, n, 30_000);
            let last = steady(&spec, Kernel::Triad, n, 30_000);
            println!(
                "  triad {n:2} cores {:6.2} GB/s asked for; 16 B wide {:6.2} GB/s; with caches full \
                 of it {:6.2} GB/s, {:6.2} GB/s on the pins",
                triad.asked, wide.asked, last.asked, last.pins
            );
        }
        for (label, kernel) in [
            ("read", Kernel::Read),
            ("read 16 B", Kernel::WideRead),
            ("write", Kernel::Write),
            ("copy", Kernel::Copy),
        ] {
            let on = bandwidth(&spec, "all", kernel, 1, 60_000);
            let off = bandwidth(&spec, "window,coherence,tlb,fetch", kernel, 1, 60_000);
            println!(
                "  {label:14} {:6.2} GB/s; without prefetch {:6.2} GB/s",
                on.asked, off.asked
            );
        }
    }
    Ok(())
}
