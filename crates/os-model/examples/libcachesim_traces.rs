//! Writes the page references on which policies are compared with libCacheSim (see
//! `bench/libcachesim`): `cargo run --example libcachesim_traces -p piebald-os-model -- FOLDER`.
//!
//! Each becomes a file `NAME.pages`, a page number in decimal on every line. On standard
//! output a line each: name, references, different pages, digest of the list, sizes of memory.

#[path = "../tests/recorded/mod.rs"]
mod recorded;
#[path = "../tests/libcachesim/traces.rs"]
mod traces;

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for trace in traces::all() {
        let mut text = String::new();
        for page in &trace.pages {
            // A string takes all that is written to it.
            let _ = writeln!(text, "{page}");
        }
        std::fs::write(folder.join(format!("{}.pages", trace.name)), text)?;
        let (name, references, distinct) = (trace.name, trace.pages.len(), trace.distinct());
        let sizes = trace.sizes().map(|size| size.to_string()).join("\t");
        println!(
            "{name}\t{references}\t{distinct}\t{:016x}\t{sizes}",
            trace.digest()
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(folder), None) = (args.next(), args.next()) else {
        eprintln!("usage: libcachesim_traces FOLDER");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("libcachesim_traces: {folder}: {e}");
            ExitCode::FAILURE
        }
    }
}
