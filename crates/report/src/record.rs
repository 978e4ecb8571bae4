//! What a study measured: plain records, filled by whoever measures.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Advice, CourseResult, Finding, Sample, SysMonResult,
    json::{nullable, nullable_points},
};

/// Version of the record's layout. A field that changes its meaning or goes
/// raises it; a field that is added with a default does not.
///
/// 2: `findings`, and `occupancy` of each program in each phase.
pub const SCHEMA: u32 = 2;

/// Results of one study: some programs on one machine under several policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Study {
    /// [`SCHEMA`] when it was written.
    pub schema: u32,
    /// What the study is called.
    pub title: String,
    /// Of a point of a sweep: keys of the axes, and the value of each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, String>,
    /// Version of the program that measured.
    pub version: String,
    /// False if it was interrupted, or a part of it failed: every output then says PARTIAL.
    pub complete: bool,
    /// Which programs ended before their measured parts were over, in words; among the warnings too.
    #[serde(skip)]
    pub cut: Vec<String>,
    /// The modelled or real machine.
    pub machine: MachineSummary,
    /// Names of the model's features that were on (`prefetch`, `tlb` ...).
    pub features: Vec<String>,
    /// What the model leaves out, in words, as far as it bears on the result.
    pub missing: Vec<String>,
    /// Seed of all draws.
    pub seed: u64,
    /// Repetitions asked for. An interrupted study has samples with fewer.
    pub repetitions: u32,
    /// References that each program makes per run, warm-up excluded.
    pub budget_refs: u64,
    /// References before the measured part of a run.
    pub warmup_refs: u64,
    /// Simulated microseconds after which runs of several programs end, if they end by time: the
    /// budget is that of runs of one program then.
    pub until_us: Option<f64>,
    /// When the measured parts of these begin; `None` = after the references of the warm-up.
    pub measured_from_us: Option<f64>,
    /// Simulated microseconds that a thread has a processor for at a time, where others wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice_us: Option<f64>,
    /// References simulated in all, warm-up included.
    pub simulated_refs: u64,
    /// Wall-clock seconds of the computer that simulated.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub host_seconds: f64,
    /// Runs that were not made, as a store had them; not part of the record.
    #[serde(skip)]
    pub stored: u64,
    /// Remarks that a reader needs.
    pub notes: Vec<String>,
    /// Things that weaken the result: a cut recording, frames outside the
    /// allowed colours, too few repetitions.
    pub warnings: Vec<String>,
    /// The command line that gives this study again.
    pub command: Option<String>,
    /// The scenario file's text, as it was read.
    pub scenario: Option<String>,
    /// One result per policy; the first is what the others are compared with.
    pub policies: Vec<PolicyResult>,
    /// Misses against cache size, if they were asked for.
    pub curves: Vec<MissCurve>,
    /// What SysMon sees of each program of one thread alone, if it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sysmon: Vec<SysMonResult>,
    /// Who owns which cache sets over time, if it was asked for.
    pub set_maps: Vec<SetMap>,
    /// How few colors programs need, and how to split them, if that was asked for.
    pub advice: Option<Advice>,
    /// What the numbers may be said to show: filled by [`to_json`](crate::to_json) from the
    /// rest of the record.
    pub findings: Vec<Finding>,
}

impl Default for Study {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            title: String::new(),
            axes: BTreeMap::new(),
            version: String::new(),
            complete: true,
            cut: Vec::new(),
            machine: MachineSummary::default(),
            features: Vec::new(),
            missing: Vec::new(),
            seed: 0,
            repetitions: 0,
            budget_refs: 0,
            warmup_refs: 0,
            until_us: None,
            measured_from_us: None,
            slice_us: None,
            simulated_refs: 0,
            host_seconds: f64::NAN,
            stored: 0,
            notes: Vec::new(),
            warnings: Vec::new(),
            command: None,
            scenario: None,
            policies: Vec::new(),
            curves: Vec::new(),
            sysmon: Vec::new(),
            set_maps: Vec::new(),
            advice: None,
            findings: Vec::new(),
        }
    }
}

/// The machine, in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineSummary {
    /// Name of the preset, as in a scenario.
    pub name: String,
    /// Full name.
    pub title: String,
    /// One line per part: cores, each cache, memory, colours.
    pub lines: Vec<String>,
}

/// What one policy made of the programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyResult {
    /// Name from the scenario.
    pub name: String,
    /// What it does, in a few words.
    pub description: String,
    /// One result per program, in the same order for every policy.
    pub programs: Vec<ProgramResult>,
    /// What happened to programs over time in one run, if anything was looked at.
    #[serde(default)]
    pub course: Option<CourseResult>,
}

/// Why a program is in the study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Its speed is the question.
    #[default]
    Target,
    /// It is there to disturb the targets.
    Polluter,
}

impl Role {
    /// The role as a scenario spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Polluter => "polluter",
        }
    }
}

/// One program under one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramResult {
    /// Name from the scenario, unique within a policy.
    pub name: String,
    /// Why it is there.
    pub role: Role,
    /// Cores it ran on, as `0-3`.
    pub cores: String,
    /// Colours it was given, as `0-3,8`; `None` = all.
    pub colors: Option<String>,
    /// Where its references come from: a recording, a built-in program.
    pub input: String,
    /// Names of the programs that it met together; `None` = all the others.
    pub beside: Option<Vec<String>>,
    /// By itself on the machine.
    pub alone: Metrics,
    /// Beside the other programs; `None` if that was not run.
    pub together: Option<Metrics>,
    /// Time together / time alone - 1; fill it with [`Sample::slowdown`].
    pub slowdown: Option<Sample>,
    /// The regions that stand for it; `None` = it was run as it is. The metrics are
    /// then estimates for all that the regions stand for.
    pub regions: Option<RegionSet>,
}

impl ProgramResult {
    /// Was it run at all, alone or together?
    pub(crate) fn is_run(&self) -> bool {
        self.together.is_some() || !self.alone.time_ps.values.is_empty()
    }
}

/// Regions that stand for a longer program, and what they gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RegionSet {
    /// Instructions that the regions stand for.
    pub instructions: u64,
    /// Instructions of an interval of the program: the length of a region.
    pub interval: u64,
    /// Share 0..=1 of the instructions that lie in the regions.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub coverage: f64,
    /// Mean distance of the block vectors of an interval and of the region that stands
    /// for it: 0 = they execute the same, about 1 to 3 = they share no block.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub distance: f64,
    /// The same if there were one region only.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub distance_of_one: f64,
    /// By rising start; the first one is region 1.
    pub regions: Vec<RegionResult>,
    /// The regions beside a run of all that they stand for, if that was done; it stands
    /// with the first policy.
    pub check: Option<RegionCheck>,
}

/// One region of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RegionResult {
    /// Number of its first instruction in the program.
    pub start: u64,
    /// Its length in instructions.
    pub instructions: u64,
    /// Its references.
    pub refs: u64,
    /// References before it that warmed up.
    pub warmup_refs: u64,
    /// Share 0..=1 of the program's instructions that it stands for; all sum to 1.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub weight: f64,
    /// By itself on the machine.
    pub alone: RegionFigures,
    /// Beside the other programs; `None` if that was not run.
    pub together: Option<RegionFigures>,
    /// Time together / time alone - 1.
    pub slowdown: Option<Sample>,
}

/// What a region gave in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RegionFigures {
    /// Clock cycles per instruction.
    pub cpi: Sample,
    /// Misses of the level before memory per 1000 instructions.
    pub last_level_mpki: Sample,
}

/// What regions miss of a program that was run alone, in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RegionCheck {
    /// Name of the level before memory.
    pub last_level: String,
    /// Clock cycles per instruction of everything.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub whole_cpi: f64,
    /// The same by the regions.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub regions_cpi: f64,
    /// `(regions - whole) / whole`.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub cpi_error: f64,
    /// Last-level misses per 1000 instructions of everything.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub whole_mpki: f64,
    /// The same by the regions.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub regions_mpki: f64,
    /// `(regions - whole) / whole`; `None` if the whole has none.
    pub mpki_error: Option<f64>,
    /// References of the whole.
    pub whole_refs: u64,
}

/// Counters of one program in one phase, over the measured part of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Metrics {
    /// Simulated time, in picoseconds.
    pub time_ps: Sample,
    /// Instructions retired.
    pub instructions: Sample,
    /// References made.
    pub refs: Sample,
    /// Instructions per core cycle.
    pub ipc: Sample,
    /// Misses per 1000 instructions of each cache level, innermost first; the
    /// last entry is the level before memory.
    pub mpki: Vec<LevelMpki>,
    /// How full the cache sets that the program used were, innermost level first; empty where
    /// nobody looked.
    pub occupancy: Vec<Occupancy>,
    /// Share of DRAM accesses that found their row open, 0..=1; `None` without
    /// a DRAM model.
    pub row_hit_rate: Option<Sample>,
    /// Bytes read from and written to DRAM per simulated second.
    pub dram_bytes_per_s: Sample,
    /// TLB misses that needed a walk, per 1000 instructions; `None` without TLBs.
    pub tlb_mpki: Option<Sample>,
    /// 4 KiB pages mapped at the end, huge pages counted as 512.
    pub pages: Sample,
    /// 2 MiB pages mapped at the end.
    pub huge_pages: Sample,
    /// Page faults.
    pub faults: Sample,
    /// Lines read from memory, by demands and prefetches, per 1000 instructions. Not in the JSON.
    #[serde(skip)]
    pub memory_reads: Sample,
    /// Page colours, where programs can own some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colors: Option<ColorUse>,
    /// Quantities that only some studies have.
    pub extra: Vec<Extra>,
}

/// The page colours of a program at the end of the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ColorUse {
    /// Those that it owned, as `0-3,8`; `None` = it owned none.
    pub owned: Option<String>,
    /// Those that its pages could have; `None` = all.
    pub allowed: Option<String>,
    /// 4 KiB pages in memory of each colour, from colour 0 on; a frame that several of
    /// its processes share counts once.
    pub pages: Vec<Sample>,
    /// How many of those that its pages could have lie in each part of the last level that colours
    /// tell apart. Not in the JSON.
    #[serde(skip)]
    pub in_parts: Vec<Sample>,
    /// Most 4 KiB pages in memory at once since the run began.
    pub peak_pages: Sample,
}

/// Misses of one cache level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelMpki {
    /// Name of the level: `L1d`, `L2`, `L3`.
    pub level: String,
    /// Misses per 1000 instructions.
    pub mpki: Sample,
    /// Accesses of the level per 1000 instructions, instruction fetches and page walks that
    /// reached it included.
    #[serde(default)]
    pub accesses: Sample,
}

/// How full the sets of one cache level that a program used were when its measured part began
/// and ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Occupancy {
    /// Name of the level: `L1d`, `L2`, `L3`.
    pub level: String,
    /// Bytes of one cache of this level.
    pub bytes: u64,
    /// Programs of the study that run beside it use the same cache.
    pub shared: bool,
    /// Lines that these sets have room for.
    pub room: Sample,
    /// Lines that they held at the beginning, whoever brought them.
    pub start: Sample,
    /// Lines that they held at the end.
    pub end: Sample,
    /// The program's own among those at the beginning.
    pub own_start: Sample,
    /// The program's own among those at the end.
    pub own_end: Sample,
}

/// Name of the [`Extra`] that says how many ms a program waited for files and pages.
pub const WAITED: &str = "waited for files and pages";

/// A quantity without a field of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extra {
    /// What it is, in words: `frames outside the colors`.
    pub name: String,
    /// Its unit; empty for a count.
    pub unit: String,
    /// Its values, in that unit.
    pub value: Sample,
}

/// Misses of a program against the size of one cache, all else equal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissCurve {
    /// The program.
    pub program: String,
    /// The cache whose size varies: `L3`.
    pub cache: String,
    /// Size in bytes and misses per 1000 instructions at that size, by rising
    /// size. A size that gave no result has NaN.
    #[serde(with = "nullable_points")]
    #[schemars(with = "Vec<(u64, Option<f64>)>")]
    pub points: Vec<(u64, f64)>,
}

/// Who owns the lines of a cache's sets, sampled over time, in one phase
/// (together) of one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetMap {
    /// The policy it was taken under.
    pub policy: String,
    /// The cache: `L3`.
    pub cache: String,
    /// Which part of the study's runs it shows, if there are several: `region 2 of bzip2`.
    #[serde(default)]
    pub place: Option<String>,
    /// Sets of the whole cache.
    pub nr_sets: u32,
    /// Groups of neighbouring sets; group *g* holds sets
    /// `g * nr_sets / nr_groups ..  (g + 1) * nr_sets / nr_groups`.
    pub nr_groups: u32,
    /// Index 0 = empty lines, then the kernel, then the programs.
    pub owners: Vec<String>,
    /// When each sample was taken, in simulated picoseconds, rising.
    pub times_ps: Vec<u64>,
    /// Share of the group's lines that the owner holds, in 1/255. Index
    /// `(time * nr_groups + group) * owners.len() + owner`.
    pub shares: Vec<u8>,
    /// How fast programs were meanwhile; none where nobody looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<SetMapSpeed>,
}

/// The speed of a program over the times of a set map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SetMapSpeed {
    /// The program, one of the map's owners.
    pub program: String,
    /// Instructions per nanosecond from each sample to the next; NaN where that is not known.
    #[serde(with = "crate::json::nullable_vec")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub instr_per_ns: Vec<f64>,
}

impl SetMap {
    /// Share 0..=1 of one owner in one group at one time; `None` outside the map.
    pub fn share(&self, time: usize, group: usize, owner: usize) -> Option<f64> {
        let (groups, owners) = (self.nr_groups as usize, self.owners.len());
        if time >= self.times_ps.len() || group >= groups || owner >= owners {
            return None;
        }
        let row = time.checked_mul(groups)?.checked_add(group)?;
        let index = row.checked_mul(owners)?.checked_add(owner)?;
        self.shares.get(index).map(|s| f64::from(*s) / 255.0)
    }
}
