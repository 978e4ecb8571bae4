//! The model as a host: it makes the kernel that a case asks for, and runs the case.

use std::{
    collections::VecDeque,
    fmt::Display,
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};

use piebald_hw::spec::MachineSpec;
use piebald_os_model::{
    frames::{
        Age, BinHopping, BinHoppingConfig, Colored, ColoredConfig, Flavour, OwnedFrames,
        RandomFrames, Stock, StockConfig,
    },
    kernel::{Actions, ColorConfig, Kernel, KernelConfig, Thp},
};
use piebald_policy::{
    color_map::ColorMap,
    rainbow::{self, Balance, WhenFull},
};
use piebald_store::{Key, NOT_KEPT, Store};
use piebald_units::{ColorAsk, CoreId, PAGE_SHIFT, Picos};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    case::{Boot, Case, FrameRule, hardware_threads},
    engine,
    setup::{Outcome, Progress, Setup, SimError},
    sysmon::{PageWatch, PagesSeen},
};

/// How far a thread may run ahead inside its private caches (design: 1 us).
const QUANTUM: Picos = Picos(1_000_000);
/// How far requests to shared levels may be out of order: about one memory latency, so that a core
/// is not switched away from for every reference.
const SKEW: Picos = Picos(50_000);
/// Free memory of an aged machine, in 1/1000: enough for every program, little enough that large
/// blocks are rare.
const AGED_FREE_PERMILLE: u32 = 400;
/// Of so many outcomes that are found in a store, one is made once more and compared.
const CHECKED: u8 = 64;
/// Program number of those that hold colors for programs that are not in a run.
const NOBODY: u16 = 0;

/// The choices about partitions: the thesis's, but a partition keeps what is asked for even if that
/// leaves no color to the others, and a partition that changes uses all of its colors at once.
pub const RAINBOW: rainbow::Config = rainbow::Config {
    when_full: WhenFull::Others,
    balance: Balance::Spread,
    ..rainbow::Config::PAPER
};

/// Stands for the code that outcomes depend on: the sources of this room and of those below it, the
/// versions of libraries, and the compiler.
pub const EPOCH: &str = env!("PIEBALD_EPOCH");

/// Who waits for a run.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    /// Set to end it early.
    pub stop: Option<&'a AtomicBool>,
    /// Called now and then.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// Why a case has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The kernel, its allocator or its files cannot be built.
    #[error("{0}")]
    Kernel(String),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] SimError),
    /// The store is there to look only, and the run failed when it was made.
    #[error("{0}")]
    Failed(String),
    /// The store is there to look only, and has no outcome of the case.
    #[error("{NOT_KEPT}")]
    NotKept,
    /// An outcome of the store is not what the run gives.
    #[error(
        "entry {0} of the store is not what its run gives: the code changed without its epoch, or \
         the model depends on something that is no part of a case; --store none runs without it"
    )]
    Differs(Key),
}

/// What a store holds of a case.
#[derive(Serialize, Deserialize)]
enum Kept<O> {
    Outcome(O),
    /// Why the run has none. Whoever wants to know more runs it again.
    Failure(String),
}

impl<O> Kept<O> {
    fn outcome(self) -> Option<O> {
        match self {
            Self::Outcome(outcome) => Some(outcome),
            Self::Failure(_) => None,
        }
    }
}

/// A state of aged memory, made by the first run that needs it.
type History = Arc<OnceLock<Result<Kernel, String>>>;

/// Runs cases. Any number of threads may use one.
///
/// Ageing memory takes as long as simulating millions of references, and runs that follow one another
/// often begin with the same history: the states that were used last are kept, and runs get
/// copies. Outcomes do not depend on what is kept.
pub struct Model {
    kept: usize,
    /// By what they depend on; the one that was used last is at the end.
    histories: Mutex<VecDeque<(String, History)>>,
    store: Option<Arc<Store>>,
}

impl Model {
    /// One that keeps so many states of aged memory. Each holds tens of bytes for every frame.
    pub const fn keeping(histories: usize) -> Self {
        Self {
            kept: histories,
            histories: Mutex::new(VecDeque::new()),
            store: None,
        }
    }

    /// The same with a store: what is there is not run, and what is run is kept.
    #[must_use]
    pub fn with_store(self, store: Option<Arc<Store>>) -> Self {
        Self { store, ..self }
    }

    /// Is its store there to look only? Then it runs nothing.
    pub fn only_looks(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.only_looks())
    }

    /// What a case comes to.
    ///
    /// # Errors
    /// See [`CaseError`].
    pub fn run(&self, case: &Case, watch: Watch<'_>) -> Result<Outcome, CaseError> {
        let simulate = || self.simulate(case, watch);
        self.kept_or(case.identity(), watch.stop, simulate)
    }

    /// What SysMon sees of a program alone.
    ///
    /// # Errors
    /// See [`CaseError`].
    pub fn watch_pages(
        &self,
        of: &PageWatch,
        stop: Option<&AtomicBool>,
    ) -> Result<PagesSeen, CaseError> {
        self.kept_or(of.identity(), stop, || Ok(of.run(stop)?))
    }

    /// What the store has of a run, by all that its outcome depends on, or what it comes to.
    fn kept_or<O: Serialize + DeserializeOwned + PartialEq>(
        &self,
        identity: Option<String>,
        stop: Option<&AtomicBool>,
        simulate: impl Fn() -> Result<O, CaseError>,
    ) -> Result<O, CaseError> {
        let known = self.store.as_deref().zip(identity);
        let Some((store, text)) = known else {
            if self.only_looks() {
                return Err(CaseError::NotKept);
            }
            return simulate();
        };
        if store.only_looks() {
            return match store.get(&text).ok_or(CaseError::NotKept)? {
                Kept::Outcome(outcome) => Ok(outcome),
                Kept::Failure(why) => Err(CaseError::Failed(why)),
            };
        }
        let find = || store.get_if(&text, Kept::outcome);
        if let Some(found) = find() {
            return checked(found, simulate, (store, &text));
        }
        let lease = store.lease(&text, stop);
        // Somebody else has made it in the meantime.
        if let Some(found) = find() {
            return Ok(found);
        }
        let began = Instant::now();
        let outcome = simulate();
        match &outcome {
            Ok(outcome) => store.put(&text, &Kept::Outcome(outcome), began.elapsed()),
            Err(CaseError::Run(SimError::Stopped | SimError::Input { .. })) => {}
            Err(error) => {
                let why = Kept::<O>::Failure(error.to_string());
                store.put(&text, &why, began.elapsed());
            }
        }
        drop(lease);
        outcome
    }

    /// Keeps that a case is known to have no outcome, and why, for those who only look. An outcome that is there stays.
    pub fn keep_failure(&self, case: &Case, why: &dyn Display) {
        let Some((store, text)) = self.store.as_deref().zip(case.identity()) else {
            return;
        };
        if store.get_if(&text, Kept::<Outcome>::outcome).is_none() {
            let why = Kept::<Outcome>::Failure(why.to_string());
            store.put(&text, &why, Duration::ZERO);
        }
    }

    fn simulate(&self, case: &Case, watch: Watch<'_>) -> Result<Outcome, CaseError> {
        let kernel = self.boot(&case.machine, &case.boot);
        let kernel = kernel.map_err(CaseError::Kernel)?;
        let outcome = engine::run_after(
            case.before.clone(),
            Setup {
                machine: &case.machine,
                options: case.options(),
                kernel,
                programs: case.programs.clone(),
                threads: case.threads.clone(),
                map: case.map,
                curve: case.curve.clone(),
                fill: case.fill,
                course: case.course,
                quantum: QUANTUM,
                skew: SKEW,
                stop: watch.stop,
                progress: watch.progress,
            },
        );
        Ok(outcome?)
    }

    /// A kernel as it is asked for. Blocks while another thread makes the same history.
    ///
    /// # Errors
    /// What the kernel, its allocator or its files say.
    pub fn boot(&self, machine: &MachineSpec, boot: &Boot) -> Result<Kernel, String> {
        // Fresh memory costs nothing until it is used; a copy of it would.
        let mut kernel = match boot.aged {
            None => bare(machine, boot)?,
            Some(_) => {
                let history = self.history(boot.history(machine));
                history.get_or_init(|| bare(machine, boot)).clone()?
            }
        };
        if let Some(files) = &boot.files {
            files.install(&mut kernel).map_err(|e| e.to_string())?;
        }
        for set in &boot.held {
            let task = kernel.start(NOBODY).map_err(|e| e.to_string())?;
            let want = ColorAsk::Exactly(set.clone());
            let reserved = kernel.reserve(task, CoreId(0), &want, &mut Actions::new());
            reserved.map_err(|e| e.to_string())?;
        }
        Ok(kernel)
    }

    /// The place of a state, which may be still to be made.
    fn history(&self, key: String) -> History {
        let all = self.histories.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().position(|(k, _)| *k == key);
        let known = known.and_then(|at| all.remove(at));
        let (key, place) = known.unwrap_or_else(|| (key, History::default()));
        all.push_back((key, place.clone()));
        while all.len() > self.kept {
            all.pop_front();
        }
        place
    }
}

/// An outcome that was found, which some of the time is made once more.
fn checked<O: PartialEq>(
    found: O,
    simulate: impl Fn() -> Result<O, CaseError>,
    (store, text): (&Store, &str),
) -> Result<O, CaseError> {
    let key = store.key(text);
    if key.is_one_in(CHECKED) {
        if simulate()? != found {
            return Err(CaseError::Differs(key));
        }
        store.count_check();
    }
    Ok(found)
}

/// Without files and held colors, so that histories are shared whatever comes on top.
fn bare(machine: &MachineSpec, boot: &Boot) -> Result<Kernel, String> {
    let frames = boot.memory.unwrap_or(machine.memory.size).0 >> PAGE_SHIFT;
    let threads = hardware_threads(machine);
    let allocator = allocator(&boot.frames, frames, threads)?;
    let mut config = KernelConfig::new(threads);
    config.tick = boot.tick.unwrap_or(config.tick);
    config.thp = if boot.thp { Thp::Always } else { Thp::Never };
    let (map, managed) = match &boot.frames {
        FrameRule::Owned(map) => (Some(map), None),
        FrameRule::Managed(managed) => (Some(&managed.map), Some(managed)),
        _ => (None, None),
    };
    config.colors = map.map(|map| ColorConfig {
        map: map.clone(),
        rainbow: RAINBOW,
        hvr: managed.map(|managed| managed.config),
    });
    let mut kernel = Kernel::new(config, allocator).map_err(|e| e.to_string())?;
    if let Some(seed) = boot.aged {
        let age = Age::new(seed, AGED_FREE_PERMILLE, threads);
        kernel.age(&age).map_err(|e| e.to_string())?;
    }
    if let Some(sysmon) = managed.and_then(|managed| managed.sysmon) {
        kernel.monitor(sysmon).map_err(|e| e.to_string())?;
    }
    Ok(kernel)
}

fn allocator(rule: &FrameRule, frames: u64, threads: u16) -> Result<Box<dyn OwnedFrames>, String> {
    let colored = |map: &ColorMap, like_virtual| {
        let config = ColoredConfig {
            like_virtual,
            ..ColoredConfig::new(frames, threads, map.clone())
        };
        Colored::new(&config).map_err(|e| e.to_string())
    };
    Ok(match rule {
        FrameRule::Stock => {
            let config = StockConfig::new(frames, threads, Flavour::default());
            Box::new(Stock::new(&config).map_err(|e| e.to_string())?)
        }
        FrameRule::Random(seed) => {
            let frames = RandomFrames::new(frames, *seed);
            Box::new(frames.map_err(|e| e.to_string())?)
        }
        FrameRule::BinHopping(bins) => {
            let config = BinHoppingConfig {
                frames,
                bins: *bins,
                shift: 0,
            };
            Box::new(BinHopping::new(&config).map_err(|e| e.to_string())?)
        }
        FrameRule::PageColoring(map) => Box::new(colored(map, true)?),
        FrameRule::Owned(map) => Box::new(colored(map, false)?),
        FrameRule::Managed(managed) => Box::new(colored(&managed.map, false)?),
    })
}
