//! Cases: one run each, with all that its outcome depends on.

use piebald_hw::{Features, Options, spec::MachineSpec};
use piebald_os_model::kernel::SysMonConfig;
use piebald_policy::{color_map::ColorMap, hvr};
use piebald_units::{Bytes, ColorSet, Picos};

use crate::{
    files::Files,
    setup::{Course, CurveRequest, MapRequest, ProgramSetup},
    threads::Threads,
};

/// One run: a machine, its kernel as programs meet it, and the programs. Nothing is left to be
/// decided or drawn.
#[derive(Clone)]
pub struct Case {
    /// The machine.
    pub machine: MachineSpec,
    /// Parts of its model that are on.
    pub features: Features,
    /// Memory controllers that are off: all memory is behind the others.
    pub disabled_controllers: Vec<u16>,
    /// Seed of the machine's own draws.
    pub seed: u64,
    /// The kernel before any program.
    pub boot: Boot,
    /// How threads move between cores.
    pub threads: Threads,
    /// Programs that run to their ends before the others, as [`run_after`](crate::run_after) says.
    pub before: Vec<ProgramSetup>,
    /// The programs, at least one, at most 250.
    pub programs: Vec<ProgramSetup>,
    /// Look at the last level's sets.
    pub map: Option<MapRequest>,
    /// Measure a program's misses at every number of colors.
    pub curve: Option<CurveRequest>,
    /// Look at how full caches are at the ends of measured parts.
    pub fill: bool,
    /// Ends the run by time; `None` = measured parts end it.
    pub course: Option<Course>,
}

/// A kernel in the state in which programs meet it.
#[derive(Clone, Debug)]
pub struct Boot {
    /// Memory that it knows, if it is not all that the machine has.
    pub memory: Option<Bytes>,
    /// Which frames pages get.
    pub frames: FrameRule,
    /// Seed of the history that memory has lived through, after which two fifths of it are free;
    /// `None` = all of it is.
    pub aged: Option<u64>,
    /// 2 MiB pages for anonymous memory.
    pub thp: bool,
    /// Time between timer ticks; `None` = the kernel's own.
    pub tick: Option<Picos>,
    /// A disk, and one memory for files and programs.
    pub files: Option<Files>,
    /// Colors of programs that are not in the run: reserved, so that those that are have the memory
    /// that they would have beside them.
    pub held: Vec<ColorSet>,
}

/// Which frames pages get.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameRule {
    /// Those of Linux's buddy allocator, which knows no colors.
    Stock,
    /// Any, drawn with this seed.
    Random(u64),
    /// Frames of one of so many colors after the other.
    BinHopping(u16),
    /// Frames of the color of the virtual page, by this map.
    PageColoring(ColorMap),
    /// Those of the colors of this map that a program owns.
    Owned(ColorMap),
    /// Those of the colors that HVR gives a program.
    Managed(Box<Managed>),
}

/// How HVR manages programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Managed {
    /// Its colors, with the classes of their bits.
    pub map: ColorMap,
    /// Its choices.
    pub config: hvr::Config,
    /// How programs are watched; `None` = they are not, and are what they are said to be.
    pub sysmon: Option<SysMonConfig>,
}

impl Boot {
    /// Of these frames in memory of this history, and of nothing else.
    pub const fn new(frames: FrameRule, aged: Option<u64>) -> Self {
        Self {
            memory: None,
            frames,
            aged,
            thp: false,
            tick: None,
            files: None,
            held: Vec::new(),
        }
    }

    /// What the history of memory depends on, besides the number of hardware threads.
    pub(crate) fn history(&self, machine: &MachineSpec) -> String {
        let Self {
            memory,
            frames,
            aged,
            thp,
            tick,
            files: _,
            held: _,
        } = self;
        let size = memory.unwrap_or(machine.memory.size);
        let threads = hardware_threads(machine);
        format!("{size:?} {threads} {frames:?} {aged:?} {thp} {tick:?}")
    }
}

impl Case {
    /// Of these programs on a machine whose parts are all on, under a kernel.
    pub fn new(machine: &MachineSpec, boot: Boot, programs: Vec<ProgramSetup>, seed: u64) -> Self {
        Self {
            machine: machine.clone(),
            features: Features::ALL,
            disabled_controllers: Vec::new(),
            seed,
            boot,
            threads: Threads::default(),
            before: Vec::new(),
            programs,
            map: None,
            curve: None,
            fill: false,
            course: None,
        }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            features: self.features,
            seed: self.seed,
            disabled_controllers: self.disabled_controllers.clone(),
            ..Options::default()
        }
    }

    /// All that its outcome depends on besides the code of the model; nothing if a program does
    /// not know what it is.
    ///
    /// It is made of the texts of `Debug`, which name every field without code of their own, and
    /// holds for one epoch of the code only.
    pub fn identity(&self) -> Option<String> {
        let Self {
            machine,
            features,
            disabled_controllers,
            seed,
            boot,
            threads,
            before,
            programs,
            map,
            curve,
            fill,
            course,
        } = self;
        let all = |list: &[ProgramSetup]| {
            let each = list.iter().map(program_identity);
            each.collect::<Option<Vec<String>>>()
        };
        Some(format!(
            "{machine:?}\n{features:?} {disabled_controllers:?} {seed}\n{boot:?}\n{threads:?}\n{map:?} \
             {curve:?} {fill} {course:?}\nbefore {:#?}\nprograms {:#?}",
            all(before)?,
            all(programs)?
        ))
    }
}

/// Hardware threads of a machine.
pub(crate) const fn hardware_threads(machine: &MachineSpec) -> u16 {
    let core = &machine.core;
    core.sockets * core.per_socket * core.smt
}

fn program_identity(program: &ProgramSetup) -> Option<String> {
    let ProgramSetup {
        // A name is in messages only.
        name: _,
        input,
        cores,
        colors,
        stay,
        start,
        waits,
        measured,
        skip,
        prime,
        marks_ready,
        warmup,
        budget,
        each,
    } = program;
    let input = input.identity()?;
    Some(format!(
        "{input} {cores:?} {colors:?} {stay:?} {start:?} {waits} {measured} {skip} {prime} \
         {marks_ready} {warmup} {budget} {each}"
    ))
}
