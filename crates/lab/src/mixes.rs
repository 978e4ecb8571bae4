//! Runs of programs that are put together in code and not in a scenario: what a reproduction
//! needs whose programs meet files that others have brought into memory.

use std::sync::atomic::AtomicBool;

use piebald_sim::rooms::{
    hw::{Features, Options, spec::MachineSpec},
    os_model::{
        frames::{Age, Colored, ColoredConfig, Flavour, OwnedFrames, Stock, StockConfig},
        kernel::{ColorConfig, Kernel, KernelConfig},
    },
    policy::{color_map::ColorMap, hvr, mfc},
};
use piebald_sim::{Domains, Setup, run_after};
use piebald_units::Picos;

pub use piebald_sim::rooms::os_model::kernel::{
    HvrEvent, Observation, Observed, SysMonConfig, What,
};
pub use piebald_sim::{
    ColorSetup, Course, CurveRequest, Files, FilesError, IoUse, Outcome, ProgramOutcome,
    ProgramSetup, Progress, Reads, Region, SimError, Stay, Threads, TimeSample, Zone,
};

use crate::{
    Histories,
    colors::RAINBOW,
    jobs::mix,
    kernels::AGED_FREE_PERMILLE,
    study::{QUANTUM, SKEW},
};

/// Bytes that MFC keeps for so many files on a machine, beside what it keeps for the machine itself.
///
/// # Errors
/// Why there is no MFC on it.
pub fn bytes_of_files(
    spec: &MachineSpec,
    config: &mfc::Config,
    files: u32,
) -> Result<usize, String> {
    let domains = Domains::of(spec);
    let sizes = mfc::Sizes::of(&domains.topology(), config, files);
    Ok(sizes.map_err(|e| e.to_string())?.file_bytes())
}

/// Which frames a page may get.
#[derive(Clone, Debug, PartialEq)]
pub enum MixFrames {
    /// Linux's buddy allocator, which knows no colours.
    Stock,
    /// Programs may reserve colours of this map.
    Reserved(Box<ColorMap>),
    /// HVR gives programs their colours.
    Managed(Box<Managed>),
}

/// A kernel whose programs HVR manages.
#[derive(Clone, Debug, PartialEq)]
pub struct Managed {
    /// Its colours, with the classes of their bits.
    pub map: ColorMap,
    /// Its choices.
    pub config: hvr::Config,
    /// How programs are watched; `None` = they are not, and are what they are said to be.
    pub sysmon: Option<SysMonConfig>,
}

/// The state of memory, before any program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixMemory {
    /// All of it is free.
    Fresh,
    /// Of this history; two fifths are free.
    Aged(u64),
}

/// The machine of a mix.
#[derive(Clone, Debug)]
pub struct MixMachine<'a> {
    /// Its description.
    pub spec: &'a MachineSpec,
    /// Parts of the model that are on.
    pub features: Features,
    /// Memory controllers that are off: all memory is behind the others.
    pub disabled_controllers: Vec<u16>,
    /// How threads move between its cores.
    pub threads: Threads,
    /// Ends runs by time.
    pub course: Option<Course>,
    /// Measures a program's misses at every number of colours.
    pub curve: Option<CurveRequest>,
}

impl<'a> MixMachine<'a> {
    /// All controllers, and threads that stay where they are.
    pub fn new(spec: &'a MachineSpec, features: Features) -> Self {
        Self {
            spec,
            features,
            disabled_controllers: Vec::new(),
            threads: Threads::default(),
            course: None,
            curve: None,
        }
    }
}

/// A kernel for a mix. `tick` is the time between timer ticks, `None` = the default's. States that were made before are kept in `histories`.
///
/// # Errors
/// What the kernel, its allocator or its files say.
pub fn kernel(
    spec: &MachineSpec,
    frames: &MixFrames,
    memory: MixMemory,
    tick: Option<Picos>,
    files: Option<&Files>,
    histories: &Histories,
) -> Result<Kernel, String> {
    let make = || bare(spec, frames, memory, tick);
    let mut kernel = match memory {
        MixMemory::Fresh => make()?,
        MixMemory::Aged(_) => {
            let made = histories.place(format!("{spec:?} {frames:?} {memory:?} {tick:?}"));
            made.get_or_init(make).clone()?
        }
    };
    if let Some(files) = files {
        files.install(&mut kernel).map_err(|e| e.to_string())?;
    }
    Ok(kernel)
}

fn bare(
    spec: &MachineSpec,
    frames: &MixFrames,
    memory: MixMemory,
    tick: Option<Picos>,
) -> Result<Kernel, String> {
    let count = spec.memory.size.0 >> 12;
    let threads = spec.core.sockets * spec.core.per_socket * spec.core.smt;
    let mut config = KernelConfig::new(threads);
    config.tick = tick.unwrap_or(config.tick);
    let (map, managed) = match frames {
        MixFrames::Stock => (None, None),
        MixFrames::Reserved(map) => (Some(&**map), None),
        MixFrames::Managed(managed) => (Some(&managed.map), Some(&**managed)),
    };
    config.colors = map.map(|map| ColorConfig {
        map: map.clone(),
        rainbow: RAINBOW,
        hvr: managed.map(|m| m.config),
    });
    let allocator: Box<dyn OwnedFrames> = match map {
        None => {
            let config = StockConfig::new(count, threads, Flavour::default());
            Box::new(Stock::new(&config).map_err(|e| e.to_string())?)
        }
        Some(map) => {
            let config = ColoredConfig::new(count, threads, map.clone());
            Box::new(Colored::new(&config).map_err(|e| e.to_string())?)
        }
    };
    let mut kernel = Kernel::new(config, allocator).map_err(|e| e.to_string())?;
    if let MixMemory::Aged(seed) = memory {
        let age = Age::new(seed, AGED_FREE_PERMILLE, threads);
        kernel.age(&age).map_err(|e| e.to_string())?;
    }
    if let Some(sysmon) = managed.and_then(|m| m.sysmon) {
        kernel.monitor(sysmon).map_err(|e| e.to_string())?;
    }
    Ok(kernel)
}

/// A run of programs after others, as [`run_after`].
///
/// # Errors
/// See [`SimError`].
pub fn together(
    machine: MixMachine<'_>,
    kernel: Kernel,
    [before, programs]: [Vec<ProgramSetup>; 2],
    seed: u64,
    stop: Option<&AtomicBool>,
) -> Result<Outcome, SimError> {
    run_after(
        before,
        Setup {
            machine: machine.spec,
            options: Options {
                features: machine.features,
                seed: mix(&[seed, 1]),
                disabled_controllers: machine.disabled_controllers,
                shadow: None,
            },
            kernel,
            programs,
            map: None,
            fill: false,
            curve: machine.curve,
            course: machine.course,
            threads: machine.threads,
            quantum: QUANTUM,
            skew: SKEW,
            stop,
            progress: None,
        },
    )
}
