//! What a run needs, and what it gives.

use serde::{Deserialize, Serialize};
use std::sync::{Arc, atomic::AtomicBool};

use piebald_hw::{LevelFill, MissCurve, SpecError, spec::MachineSpec};
use piebald_os_model::kernel::{
    Counters as KernelCounters, HvrEvent, KernelError, Observation, OnLimit, PagingState, Usage,
};
use piebald_os_model::sched::SchedError;
use piebald_policy::{hvr::Class, mfc::ConfigError};
use piebald_units::{Color, ColorAsk, ColorSet, CoreSet, Picos};
use piebald_workload::Program;

use crate::{
    snapshot::{Region, TimeSample},
    threads::Threads,
};

/// Where a program's references come from.
pub type Input = Arc<dyn Program>;

/// One program of a run.
#[derive(Clone)]
pub struct ProgramSetup {
    /// Name for errors.
    pub name: String,
    /// Its references.
    pub input: Input,
    /// Hardware threads that it may use, at least one.
    pub cores: CoreSet,
    /// Colours that it has for itself.
    pub colors: ColorSetup,
    /// When it comes and goes, and what is known of it then.
    pub stay: Stay,
    /// When its first instruction runs: after the run's start, or after all
    /// programs that do not wait are warm.
    pub start: Picos,
    /// Starts only when every program that does not wait has warmed up: it meets
    /// company that is under way. Without effect if all programs wait.
    pub waits: bool,
    /// The run lasts until its measured part is over; otherwise it is company
    /// only, and what is known of it at the end is what it did until then.
    pub measured: bool,
    /// References of its main thread, those after `prime`, that are dealt with as those are, but
    /// only the first time that it starts: where in its life the program is met. If it marks the
    /// end of its set-up, they are those after that mark, and all before it is as free; 0 = it is
    /// met at its beginning.
    pub skip: u64,
    /// First references of its main thread, which only bring their pages into
    /// memory, at no cost, whenever the program starts: what a program that is
    /// entered in its middle has touched before. Its system calls before and among
    /// them take effect at no cost as well.
    pub prime: u64,
    /// It marks the end of its set-up (`mark::READY` of the workloads): its
    /// warm-up is counted from there.
    pub marks_ready: bool,
    /// References before its measured part.
    pub warmup: u64,
    /// References of its measured part.
    pub budget: u64,
    /// `warmup` and `budget` are of each of its threads, after its set-up: the measured part
    /// begins as soon as one of them has made `warmup`, and ends as soon as one has made
    /// `budget` more, so that none has ended before. Otherwise they are of all together.
    pub each: bool,
}

/// When a program is there, and what it is to HVR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stay {
    /// It comes into being at this time of the run, and nobody sees it before; `None` = it is
    /// there from the beginning.
    pub arrives: Option<Picos>,
    /// It ends for good at this time. Only programs of one thread can.
    pub leaves: Option<Picos>,
    /// Its class, if the kernel's HVR is to know it from elsewhere; `None` = it is found out,
    /// if programs are watched.
    pub class: Option<Class>,
    /// When it ends and is started again, the kernel's HVR goes on with what it has found of it;
    /// else each start is a new program to it, as in the paper.
    pub remembered: bool,
}

/// A run that lasts for a given time, however far its programs come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// How long.
    pub until: Picos,
    /// Time between two looks at what programs did, at least 1 us.
    pub every: Picos,
    /// Times of the run, those of [`Stay`] as well, begin when every program that marks the end of
    /// its set-up has done so; who is there earlier waits, as do programs without a mark. Nobody
    /// waits for others to be warm.
    pub after_setup: bool,
    /// The measured parts of all programs begin at this time, or when they arrive later, and last
    /// to the end of the run or until they leave; who ends before is started again and measured
    /// on. `None` = they begin and end by references.
    pub warmup: Option<Picos>,
}

/// The colours of a program: what its launcher and its main thread ask the kernel for.
/// The kernel must have colours unless all is left as it is by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColorSetup {
    /// What is reserved when the run begins, even if it starts later, and again each time
    /// that it starts anew; at no cost, as starting is. `None` = it shares what nobody reserves.
    pub reserve: Option<ColorAsk>,
    /// Other programs may have the same: it joins a partition that has exactly the colours
    /// that it names.
    pub shared: bool,
    /// What happens when its colours are used up.
    pub on_limit: OnLimit,
    /// How its colours change, by rising time. Each change happens once; a program
    /// that is started again goes on with the colours of the last one.
    pub changes: Vec<ColorChange>,
}

/// A change of a program's colours: a system call of its main thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColorChange {
    /// References that the program has made since its measured part began.
    pub at: u64,
    /// What it has from then on; it reserves if it has none.
    pub want: ColorAsk,
    /// Which of its pages move.
    pub recolor: Recolor,
}

/// When pages move after a change of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recolor {
    /// Never: only new pages get the new colours.
    #[default]
    No,
    /// All at once, in the call.
    Now,
    /// So many at each timer tick, at least 1, on the core that runs the program then.
    PerTick(u32),
}

/// How often the last level's sets are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRequest {
    /// Program whose measured part is divided.
    pub program: usize,
    /// Number of samples over that part.
    pub samples: u32,
    /// Groups of neighbouring sets.
    pub buckets: usize,
}

/// The misses of a program against the number of page colors that it owns, from one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurveRequest {
    /// Program whose measured part counts. Whatever else runs on its cores is counted
    /// with it, so that it should have them for itself.
    pub program: usize,
    /// Masks over frame numbers, one for each bit of a color.
    pub colors: Vec<u64>,
    /// Of each `1 << sample_shift` sets of a color one is looked at.
    pub sample_shift: u32,
}

/// The last level at one moment: lines by group of sets and owner (0 = kernel,
/// then the programs in order).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapSample {
    /// When.
    pub time: Picos,
    /// `[bucket][owner]` lines.
    pub lines: Vec<Vec<u32>>,
    /// Instructions of each program since the run began, in the order of the programs.
    pub instructions: Vec<u64>,
}

/// A whole run.
pub struct Setup<'a> {
    /// The machine.
    pub machine: &'a MachineSpec,
    /// Parts of the machine model that are on, and its seed.
    pub options: piebald_hw::Options,
    /// The kernel, its memory aged or not, without programs.
    pub kernel: piebald_os_model::kernel::Kernel,
    /// The programs, at least one, at most 250.
    pub programs: Vec<ProgramSetup>,
    /// How threads move between cores.
    pub threads: Threads,
    /// Look at the last level's sets.
    pub map: Option<MapRequest>,
    /// Measure a program's misses at every number of colors.
    pub curve: Option<CurveRequest>,
    /// Look at how full the caches of measured programs are when their measured parts begin and
    /// end. It costs a look at every line of these caches each time.
    pub fill: bool,
    /// Ends the run by time, and looks at it while it goes on; `None` = programs' measured
    /// parts end it.
    pub course: Option<Course>,
    /// How far a thread may run ahead inside its private caches.
    pub quantum: Picos,
    /// How far requests to shared levels may be out of order.
    pub skew: Picos,
    /// Set from outside to end the run early.
    pub stop: Option<&'a AtomicBool>,
    /// Called now and then.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// References performed since the last call.
    pub refs: u64,
}

/// What one program did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramOutcome {
    /// Its measured part.
    pub region: Region,
    /// How often it ended and was started again.
    pub restarts: u32,
    /// Its pages and colours.
    pub memory: MemoryUse,
    /// Its misses at every number of colors, if they were asked for.
    pub miss_curve: Option<MissCurve>,
    /// How full the sets that it used were at the two ends of its measured part, the first
    /// level first, if that was asked for and both ends were reached.
    pub fill: Option<[LevelFill; 3]>,
}

/// The memory of a program at the end of its measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// The colours that it has reserved.
    pub own: Option<ColorSet>,
    /// Those that its pages may have: its own, or those that nobody reserved; `None` =
    /// all.
    pub colors: Option<ColorSet>,
    /// 4 KiB pages of each colour that it has in memory, shared frames once; empty if
    /// the kernel has no colours.
    pub pages_by_color: Vec<u32>,
    /// Its pages, and what was done to them since the run began.
    pub usage: Usage,
    /// Time that hardware threads spent on moving pages to other colours for it, in its
    /// system calls and ticks, since the run began.
    pub recolor_time: Picos,
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// One for each program, in order.
    pub programs: Vec<ProgramOutcome>,
    /// The set map, if it was asked for.
    pub map: Vec<MapSample>,
    /// What the kernel counted over the whole run.
    pub kernel: KernelCounters,
    /// How files and pages stood at its end, and what was counted over the whole run;
    /// `None` without files.
    pub paging: Option<PagingState>,
    /// What HVR decided, in order; nothing if the kernel has none.
    pub hvr: Vec<HvrEvent>,
    /// What its jobs saw of programs' access bits.
    pub observations: Vec<Observation>,
    /// Time that hardware threads spent on these jobs.
    pub sample_time: Picos,
    /// What programs did between two looks, if a course was asked for.
    pub timeline: Vec<TimeSample>,
    /// References performed in all, warm-up and co-runners included.
    pub refs: u64,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The machine cannot be built.
    #[error("machine: {0}")]
    Machine(#[from] SpecError),
    /// The kernel could not go on; out of memory for one.
    #[error("program \"{program}\": {error}")]
    Kernel {
        /// The program that was running.
        program: String,
        /// What the kernel said.
        error: KernelError,
    },
    /// A change of colours asks for one that another program has at that moment.
    #[error(
        "program \"{program}\": {color} of its change {change} belongs to \"{by}\" when it comes; allowed: colors \
         that nobody has, or a change of \"{by}\" before"
    )]
    ColorTaken {
        /// The program that changes its colours.
        program: String,
        /// Which of its changes, from 1.
        change: usize,
        /// The first of the colours that is not to be had.
        color: Color,
        /// The program that has it.
        by: String,
    },
    /// A program's input cannot be read.
    #[error("program \"{program}\": {problem}")]
    Input {
        /// The program.
        program: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A program ended before its measured part began.
    #[error(
        "program \"{program}\" ended after {refs} references, before its measured part began; \
         lower warmup_refs below that"
    )]
    TooShort {
        /// The program.
        program: String,
        /// References that it made.
        refs: u64,
    },
    /// Memory is full of pages that cannot leave it.
    #[error(
        "program \"{program}\": memory is full of pages that cannot leave it: more memory or \
         swap space is needed"
    )]
    MemoryFull {
        /// A program that waits for memory.
        program: String,
    },
    /// Every thread of a program waits for another.
    #[error("program \"{program}\": deadlock: all its threads wait, one of them for event {event}")]
    Deadlock {
        /// The program.
        program: String,
        /// What one of its threads waits for.
        event: u64,
    },
    /// A program may use no core, or one that the machine does not have.
    #[error("program \"{program}\": cores = {cores}: allowed: 0-{last}")]
    Cores {
        /// The program.
        program: String,
        /// Its cores.
        cores: CoreSet,
        /// The machine's last hardware thread.
        last: usize,
    },
    /// A program of several threads was to leave.
    #[error("program \"{program}\": it was to leave with {threads} threads; allowed: one")]
    Leaves {
        /// The program.
        program: String,
        /// Its threads.
        threads: u32,
    },
    /// Looks at a run follow one another too soon.
    #[error("course: every {} ps; allowed: 1 us and more", .0.0)]
    Course(Picos),
    /// Reads cannot be placed on this machine, or not with these parameters.
    #[error("reads: {0}")]
    Reads(ConfigError),
    /// The scheduler was asked for something that it cannot do: a defect.
    #[error("scheduler: {0}")]
    Sched(#[from] SchedError),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}
