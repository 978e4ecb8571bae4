//! Runs of programs that are put together in code and not in a scenario: what a reproduction
//! needs whose programs meet files that others have brought into memory.

use std::sync::atomic::AtomicBool;

use piebald_sim::rooms::{
    hw::{Features, Options, spec::MachineSpec},
    os_model::{
        frames::{Age, Colored, ColoredConfig, Flavour, OwnedFrames, Stock, StockConfig},
        kernel::{ColorConfig, Kernel, KernelConfig},
    },
    policy::color_map::ColorMap,
};
use piebald_sim::{Setup, Threads, run_after};

pub use piebald_sim::{
    ColorSetup, Files, FilesError, IoUse, Outcome, ProgramOutcome, ProgramSetup, Progress, Region,
    SimError, Zone,
};

use crate::{
    Histories,
    colors::RAINBOW,
    jobs::mix,
    kernels::AGED_FREE_PERMILLE,
    study::{QUANTUM, SKEW},
};

/// Which frames a page may get.
#[derive(Clone, Debug, PartialEq)]
pub enum MixFrames {
    /// Linux's buddy allocator, which knows no colours.
    Stock,
    /// Programs may reserve colours of this map.
    Reserved(Box<ColorMap>),
}

/// The state of memory, before any program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixMemory {
    /// All of it is free.
    Fresh,
    /// Of this history; two fifths are free.
    Aged(u64),
}

/// A kernel for a mix. States that were made before are kept in `histories`.
///
/// # Errors
/// What the kernel, its allocator or its files say.
pub fn kernel(
    spec: &MachineSpec,
    frames: &MixFrames,
    memory: MixMemory,
    files: Option<&Files>,
    histories: &Histories,
) -> Result<Kernel, String> {
    let make = || bare(spec, frames, memory);
    let mut kernel = match memory {
        MixMemory::Fresh => make()?,
        MixMemory::Aged(_) => {
            let made = histories.place(format!("{spec:?} {frames:?} {memory:?}"));
            made.get_or_init(make).clone()?
        }
    };
    if let Some(files) = files {
        files.install(&mut kernel).map_err(|e| e.to_string())?;
    }
    Ok(kernel)
}

fn bare(spec: &MachineSpec, frames: &MixFrames, memory: MixMemory) -> Result<Kernel, String> {
    let count = spec.memory.size.0 >> 12;
    let threads = spec.core.sockets * spec.core.per_socket * spec.core.smt;
    let mut config = KernelConfig::new(threads);
    let allocator: Box<dyn OwnedFrames> = match frames {
        MixFrames::Stock => {
            let config = StockConfig::new(count, threads, Flavour::default());
            Box::new(Stock::new(&config).map_err(|e| e.to_string())?)
        }
        MixFrames::Reserved(map) => {
            config.colors = Some(ColorConfig {
                map: (**map).clone(),
                rainbow: RAINBOW,
            });
            let config = ColoredConfig::new(count, threads, (**map).clone());
            Box::new(Colored::new(&config).map_err(|e| e.to_string())?)
        }
    };
    let mut kernel = Kernel::new(config, allocator).map_err(|e| e.to_string())?;
    if let MixMemory::Aged(seed) = memory {
        let age = Age::new(seed, AGED_FREE_PERMILLE, threads);
        kernel.age(&age).map_err(|e| e.to_string())?;
    }
    Ok(kernel)
}

/// A run of programs after others, as [`run_after`]; with all parts of the machine model but
/// for `off`.
///
/// # Errors
/// See [`SimError`].
pub fn together(
    machine: (&MachineSpec, Features),
    kernel: Kernel,
    [before, programs]: [Vec<ProgramSetup>; 2],
    seed: u64,
    stop: Option<&AtomicBool>,
) -> Result<Outcome, SimError> {
    run_after(
        before,
        Setup {
            machine: machine.0,
            options: Options {
                features: machine.1,
                seed: mix(&[seed, 1]),
                disabled_controllers: Vec::new(),
                shadow: None,
            },
            kernel,
            programs,
            map: None,
            curve: None,
            threads: Threads::default(),
            quantum: QUANTUM,
            skew: SKEW,
            stop,
            progress: None,
        },
    )
}
