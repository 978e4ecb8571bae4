//! Programs written by hand, and a small machine to run them on.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use piebald_hw::{Features, Options, presets, spec::MachineSpec};
use piebald_os_model::{
    frames::{ColorMap, Colored, ColoredConfig, Flavour, OwnedFrames, Stock, StockConfig},
    kernel::{ColorConfig, Kernel, KernelConfig, SysMonConfig},
};
use piebald_policy::{color_map::BitClass, hvr, rainbow};
use piebald_sim::{ColorSetup, Outcome, ProgramSetup, Progress, Setup, SimError, Stay, run_after};
use piebald_units::{
    Bytes, CoreSet, Picos, VirtAddr,
    op::{Filled, MemRef, Next, OpSource, RefKind, SysOp},
};
use piebald_workload::{Program, ProgramError};

/// Looks at the clock after which a run is taken to hang: each stands for 4096
/// turns of the engine, so that no run of these tests comes near it.
const PATIENCE: u64 = 20_000;

/// A part of a thread.
#[derive(Clone, Debug)]
pub enum Step {
    /// One reference to each line of `bytes` from `base`, `times` over.
    Sweep {
        base: u64,
        bytes: u64,
        times: u64,
        kind: RefKind,
    },
    /// An event.
    Do(Next),
}

/// Dependent loads of every line of an area.
pub fn loads(base: u64, bytes: u64, times: u64) -> Step {
    Step::Sweep {
        base,
        bytes,
        times,
        kind: RefKind::Load,
    }
}

/// Stores to every line of an area.
pub fn stores(base: u64, bytes: u64, times: u64) -> Step {
    Step::Sweep {
        base,
        bytes,
        times,
        kind: RefKind::Store,
    }
}

pub fn sys(op: SysOp) -> Step {
    Step::Do(Next::Sys(op))
}

pub fn post(event: u64) -> Step {
    sys(SysOp::Post { event })
}

pub fn wait_for(event: u64) -> Step {
    sys(SysOp::Await { event })
}

/// Forever, for the purposes of a test.
pub const FOREVER: u64 = 1 << 40;

/// A program whose threads perform steps and exit.
#[derive(Default)]
pub struct Script {
    pub threads: Vec<Vec<Step>>,
    /// References that its threads have handed out so far.
    pub given: Arc<AtomicU64>,
    /// Value of another program's `given` when this one was first opened.
    pub watch: Option<(Arc<AtomicU64>, Arc<AtomicU64>)>,
}

impl Script {
    pub fn new(steps: Vec<Step>) -> Self {
        Self::threads(vec![steps])
    }

    pub fn threads(threads: Vec<Vec<Step>>) -> Self {
        Self {
            threads,
            ..Self::default()
        }
    }
}

impl Program for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        if let Some((other, seen)) = &self.watch {
            let now = other.load(Ordering::Relaxed);
            let _ = seen.compare_exchange(u64::MAX, now, Ordering::Relaxed, Ordering::Relaxed);
        }
        let steps = self.threads.get(thread as usize);
        let steps = steps.ok_or_else(|| ProgramError::NoThread {
            name: "script".to_owned(),
            thread,
            threads: self.threads(),
        })?;
        Ok(Box::new(Reader {
            steps: steps.clone(),
            step: 0,
            made: 0,
            given: self.given.clone(),
        }))
    }
}

struct Reader {
    steps: Vec<Step>,
    step: usize,
    made: u64,
    given: Arc<AtomicU64>,
}

impl OpSource for Reader {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let mut refs = 0;
        let next = loop {
            match self.steps.get(self.step) {
                None => break Next::Exit(0),
                Some(Step::Do(next)) => {
                    self.step += 1;
                    break *next;
                }
                Some(Step::Sweep {
                    base,
                    bytes,
                    times,
                    kind,
                }) => {
                    let lines = bytes / 64;
                    if self.made == lines * times {
                        self.made = 0;
                        self.step += 1;
                        continue;
                    }
                    if refs == out.len() {
                        break Next::More;
                    }
                    out[refs] = MemRef {
                        addr: VirtAddr(base + self.made % lines * 64),
                        site: 1,
                        gap: 2,
                        dep: 1,
                        size: 8,
                        kind: *kind,
                    };
                    refs += 1;
                    self.made += 1;
                }
            }
        };
        self.given.fetch_add(refs as u64, Ordering::Relaxed);
        Filled {
            refs,
            tail: 0,
            next,
        }
    }

    fn failure(&self) -> Option<&str> {
        Some("offset 17: torn block")
    }
}

/// The preset `w3540` with smaller caches and memory: 4 cores, L1 4 KiB, L2
/// 16 KiB, shared L3 256 KiB, no prefetchers.
pub fn machine() -> MachineSpec {
    let mut spec = presets::load("w3540").expect("a preset");
    for cache in &mut spec.cache {
        let divisor = if cache.level == 3 { 32 } else { 16 };
        cache.size = Bytes(cache.size.0 / divisor);
        if cache.level == 1 {
            cache.size = Bytes(4096);
        }
    }
    spec.memory.size = Bytes(192 * Bytes::MIB);
    spec
}

/// One program on some cores; nothing warms up, 20,000 references are measured.
pub fn program(name: &str, cores: &str, script: Script) -> ProgramSetup {
    ProgramSetup {
        name: name.to_owned(),
        input: Arc::new(script),
        cores: cores.parse::<CoreSet>().expect("cores"),
        colors: ColorSetup::default(),
        stay: Stay::default(),
        start: Picos(0),
        waits: false,
        skip: 0,
        prime: 0,
        marks_ready: false,
        measured: true,
        warmup: 0,
        budget: 20_000,
        each: false,
    }
}

/// The page colours of that machine's L3: 256 sets, 64 of them in a page.
pub fn color_map() -> ColorMap {
    let bits = [0, 1].map(|b| (1u64 << b, BitClass::Cache));
    ColorMap::from_masks(&bits).expect("two bits")
}

/// The same two bits, one of which is taken for one of the banks as well, and two of banks.
pub fn vertical_map() -> ColorMap {
    let classes = [
        BitClass::Both,
        BitClass::Cache,
        BitClass::Bank,
        BitClass::Bank,
    ];
    let bits = (0..).zip(classes).map(|(b, class)| (1u64 << b, class));
    ColorMap::from_masks(&bits.collect::<Vec<_>>()).expect("four bits")
}

/// A run that may differ from the others.
pub struct Bench {
    pub spec: MachineSpec,
    pub features: Features,
    /// 4 KiB frames of memory.
    pub frames: u64,
    pub map: Option<piebald_sim::MapRequest>,
    /// Four page colours of the last level, with this registry; without, none.
    pub colors: Option<rainbow::Config>,
    /// HVR on 16 colours of cache and banks in place of those, and its jobs.
    pub hvr: Option<(hvr::Config, Option<SysMonConfig>)>,
    /// Ends the run by time.
    pub course: Option<piebald_sim::Course>,
    /// Time between timer ticks.
    pub tick: Picos,
    pub curve: Option<piebald_sim::CurveRequest>,
    /// Files, swap space and replacement.
    pub files: Option<piebald_sim::Files>,
    /// How threads move between cores.
    pub threads: piebald_sim::Threads,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            spec: machine(),
            features: Features::ALL,
            frames: 32 << 10,
            map: None,
            colors: None,
            tick: KernelConfig::new(4).tick,
            curve: None,
            hvr: None,
            course: None,
            files: None,
            threads: piebald_sim::Threads::default(),
        }
    }
}

impl Bench {
    pub fn run(&self, programs: Vec<ProgramSetup>) -> Result<Outcome, SimError> {
        self.run_after(Vec::new(), programs)
    }

    pub fn run_after(
        &self,
        before: Vec<ProgramSetup>,
        programs: Vec<ProgramSetup>,
    ) -> Result<Outcome, SimError> {
        let map = match self.hvr {
            Some(_) => vertical_map(),
            None => color_map(),
        };
        let colors = self.colors.or(self.hvr.map(|_| rainbow::Config::PAPER));
        let frames: Box<dyn OwnedFrames> = match colors {
            None => {
                let config = StockConfig::new(self.frames, 4, Flavour::default());
                Box::new(Stock::new(&config).expect("frames"))
            }
            Some(_) => {
                let config = ColoredConfig::new(self.frames, 4, map.clone());
                Box::new(Colored::new(&config).expect("frames"))
            }
        };
        let mut config = KernelConfig::new(4);
        config.image_pages = config.image_pages.min(self.frames as u32 / 8);
        config.tick = self.tick;
        config.colors = colors.map(|rainbow| ColorConfig {
            map,
            rainbow,
            hvr: self.hvr.map(|(hvr, _)| hvr),
        });
        // Loads are to find memory of their own.
        config.zero_page = false;
        let mut kernel = Kernel::new(config, frames).expect("kernel");
        if let Some((_, Some(sysmon))) = self.hvr {
            kernel.monitor(sysmon).expect("watches");
        }
        if let Some(files) = &self.files {
            files.install(&mut kernel).expect("files");
        }
        let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
        let progress = |_: Progress| {
            let n = looks.fetch_add(1, Ordering::Relaxed);
            stop.store(n > PATIENCE, Ordering::Relaxed);
        };
        let setup = Setup {
            machine: &self.spec,
            options: Options {
                features: self.features,
                ..Options::default()
            },
            kernel,
            programs,
            threads: self.threads.clone(),
            map: self.map,
            fill: true,
            curve: self.curve.clone(),
            course: self.course,
            quantum: Picos(1_000_000),
            skew: Picos(50_000),
            stop: Some(&stop),
            progress: Some(&progress),
        };
        run_after(before, setup)
    }
}

pub fn go(programs: Vec<ProgramSetup>) -> Outcome {
    Bench::default().run(programs).expect("runs")
}

pub fn fails(programs: Vec<ProgramSetup>) -> SimError {
    Bench::default().run(programs).expect_err("fails")
}

/// Time of the measured part of a program of an outcome.
pub fn time(outcome: &Outcome, program: usize) -> f64 {
    outcome.programs[program].region.time.0 as f64
}
