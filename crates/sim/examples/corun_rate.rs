//! References per second of programs that run together on one machine, with everything that
//! a study simulates: decoding, translation, kernel, caches, DRAM.
//!
//! `cargo run --release -p piebald-sim --example corun_rate -- PRESET FEATURES MILLIONS
//! PROGRAM...`, program *i* on hardware thread *i*: a built-in one, or a recording (a path that
//! ends in `.pbr`). FEATURES as in scenarios (`none`, `all`).
//! The first program is measured for so many million references after as many, the others
//! keep it company. Prints preset, features, references, seconds of processor time, and
//! millions of references a second.

use std::{
    env, fs,
    path::Path,
    process::ExitCode,
    sync::{Arc, LazyLock},
    time::Instant,
};

use piebald_hw::{Features, Options, presets};
use piebald_os_model::{
    frames::{Flavour, Stock, StockConfig},
    kernel::{Kernel, KernelConfig},
};
use piebald_sim::{ColorSetup, ProgramSetup, Setup, Stay, Threads, run};
use piebald_trace::recording::{Recording, ReplayOptions};
use piebald_units::{CoreId, CoreSet, Picos};
use piebald_workload::{Builtin, Library, Recorded};

/// How far threads run ahead of one another, as in studies.
const QUANTUM: Picos = Picos(1_000_000);
const SKEW: Picos = Picos(50_000);

/// Seconds of processor time of this thread, as Linux counts it; elsewhere those passed.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let counted = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let first = counted.as_deref().and_then(|text| text.split(' ').next());
    match first.and_then(|nanos| nanos.parse::<f64>().ok()) {
        Some(nanos) => nanos / 1e9,
        None => START.elapsed().as_secs_f64(),
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [preset, features, millions, programs @ ..] = args.as_slice() else {
        eprintln!("corun_rate PRESET FEATURES MILLIONS PROGRAM...");
        return ExitCode::FAILURE;
    };
    match rate(preset, features, millions, programs) {
        Ok(line) => println!("{line}"),
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn rate(
    preset: &str,
    features: &str,
    millions: &str,
    programs: &[String],
) -> Result<String, String> {
    let spec = presets::load(preset).map_err(|e| e.to_string())?;
    let on: Features = features.parse().map_err(|e| format!("{features}: {e}"))?;
    let millions: u64 = millions.parse().map_err(|e| format!("{millions}: {e}"))?;
    let threads = spec.core.sockets * spec.core.per_socket * spec.core.smt;
    let library = Library::new();
    let setups = programs
        .iter()
        .enumerate()
        .map(|(core, text)| program(&library, core, text, millions * 1_000_000))
        .collect::<Result<Vec<_>, _>>()?;
    let frames = StockConfig::new(spec.memory.size.0 >> 12, threads, Flavour::default());
    let frames = Stock::new(&frames).map_err(|e| e.to_string())?;
    let kernel = Kernel::new(KernelConfig::new(threads), Box::new(frames));
    let options = Options {
        features: on,
        ..Options::default()
    };
    let setup = Setup {
        machine: &spec,
        options,
        kernel: kernel.map_err(|e| e.to_string())?,
        programs: setups,
        map: None,
        fill: false,
        curve: None,
        course: None,
        threads: Threads::default(),
        quantum: QUANTUM,
        skew: SKEW,
        stop: None,
        progress: None,
    };
    let began = seconds();
    let outcome = run(setup).map_err(|e| e.to_string())?;
    let took = seconds() - began;
    let refs = outcome.refs as f64 / 1e6;
    Ok(format!(
        "{preset} {features} {refs:.1} {took:.2} {:.1}",
        refs / took
    ))
}

fn program(library: &Library, core: usize, text: &str, refs: u64) -> Result<ProgramSetup, String> {
    let options = ReplayOptions::default();
    // A program that goes through it faster than the first begins again.
    let is_recording = text.ends_with(".pbr");
    let input = match is_recording {
        true => {
            let recording = Recording::open(Path::new(text)).map_err(|e| e.to_string())?;
            Recorded::new(text, recording, options)
        }
        false => {
            let builtin = Builtin::parse(text).map_err(|e| e.to_string())?;
            library.program(&builtin, 42, refs.saturating_mul(3), options)
        }
    };
    Ok(ProgramSetup {
        name: text.to_owned(),
        input: Arc::new(input.map_err(|e| e.to_string())?),
        cores: CoreSet::one(CoreId(core as u16)),
        colors: ColorSetup::default(),
        stay: Stay::default(),
        start: Picos(0),
        waits: false,
        measured: core == 0,
        skip: 0,
        prime: 0,
        marks_ready: !is_recording,
        warmup: refs,
        budget: refs,
        each: false,
    })
}
