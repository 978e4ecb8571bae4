//! The scenario file as it is written.

use std::{collections::BTreeMap, str::FromStr};

use piebald_units::{Bytes, Count};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

/// A value written as text, such as `"12GiB"` or `"50M"`, read exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written<T>(pub(crate) T);

impl<'de, T> Deserialize<'de> for Written<T>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map(Self)
            .map_err(|e| de::Error::custom(format!("\"{text}\" {e}")))
    }
}

/// Text or a list of words.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "wrong type: allowed: text such as \"triad:64MiB\", or a table of texts and whole \
                 numbers such as { name = \"triad\", size = \"64MiB\", threads = 2 }"
)]
pub(crate) enum Builtin {
    /// `"triad:64MiB"`.
    Text(String),
    /// `{ name = "triad", size = "64MiB", threads = 2 }`.
    Table(BTreeMap<String, Value>),
}

/// A parameter of a built-in program.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    /// `"64MiB"`, `"1K"`.
    Text(String),
    /// `2`.
    Number(i64),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(n) => write!(f, "{n}"),
        }
    }
}

/// How many regions stand for a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "wrong type: allowed: a number, \"auto\", or a table of max, interval, span and \
                 check such as { max = 4, interval = \"10M\", span = \"2G\", check = true }"
)]
pub(crate) enum Regions {
    /// `4`.
    Count(u32),
    /// `"auto"`.
    Word(String),
    /// `{ max = 4, interval = "10M" }`.
    Table(RegionTable),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RegionTable {
    pub(crate) max: Option<u32>,
    pub(crate) interval: Option<Written<Count>>,
    pub(crate) span: Option<Written<Count>>,
    pub(crate) check: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) schema: Spanned<u32>,
    pub(crate) title: Option<String>,
    #[serde(default = "seed")]
    pub(crate) seed: u64,
    #[serde(default = "repetitions")]
    pub(crate) repetitions: Spanned<u32>,
    pub(crate) budget_refs: Option<Spanned<Written<Count>>>,
    pub(crate) warmup_refs: Option<Spanned<Written<Count>>>,
    /// Which programs run together.
    pub(crate) together: Option<Spanned<String>>,
    /// Which programs run alone.
    pub(crate) alone: Option<Spanned<String>>,
    pub(crate) machine: MachineTable,
    #[serde(default)]
    pub(crate) output: OutputTable,
    pub(crate) advise: Option<AdviseTable>,
    /// Runs that end by time.
    pub(crate) course: Option<Spanned<CourseTable>>,
    /// A disk, and one memory for files and programs.
    pub(crate) files: Option<Spanned<FilesTable>>,
    pub(crate) program: Vec<Spanned<ProgramTable>>,
    #[serde(default)]
    pub(crate) policy: Vec<Spanned<PolicyTable>>,
}

const fn seed() -> u64 {
    42
}

fn repetitions() -> Spanned<u32> {
    Spanned::new(0..0, 3)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MachineTable {
    pub(crate) preset: Option<Spanned<String>>,
    pub(crate) file: Option<Spanned<String>>,
    pub(crate) memory: Option<Spanned<Written<Bytes>>>,
    pub(crate) features: Option<Spanned<String>>,
    pub(crate) disabled_controllers: Option<Spanned<Vec<u16>>>,
    pub(crate) prefetch: Option<Spanned<bool>>,
    /// Masks of the last level's slices, instead of the preset's.
    pub(crate) slice_hash: Option<Spanned<Vec<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OutputTable {
    /// Samples of the set map; 0 = none.
    pub(crate) set_map: Option<Spanned<u32>>,
    /// Points of the miss curves; 0 = none.
    pub(crate) miss_curve: Option<Spanned<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilesTable {
    pub(crate) device: Option<Spanned<String>>,
    pub(crate) replace: Option<Spanned<String>>,
    pub(crate) readahead: Option<Spanned<String>>,
    pub(crate) scheduler: Option<Spanned<String>>,
    pub(crate) layout: Option<Spanned<String>>,
    pub(crate) swap: Option<Spanned<Written<Bytes>>>,
}

/// Colours that a program asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "wrong type: allowed: a set of colors such as \"0-3,8\", { count = 4 }, or \
                 { share = \"25%\" }"
)]
pub(crate) enum Colors {
    /// `"0-3,8"`.
    Text(String),
    /// `{ count = 4 }` or `{ share = "25%" }`.
    Table(ColorTable),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ColorTable {
    pub(crate) count: Option<u32>,
    pub(crate) share: Option<String>,
}

impl std::fmt::Display for Colors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Table(ColorTable { count, share }) => {
                let count = count.map(|n| format!("count = {n}"));
                let share = share.as_ref().map(|text| format!("share = \"{text}\""));
                let keys: Vec<String> = count.into_iter().chain(share).collect();
                write!(f, "{{ {} }}", keys.join(", "))
            }
        }
    }
}

/// A change of a program's colours while it runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeTable {
    pub(crate) at: Spanned<Written<Count>>,
    pub(crate) colors: Spanned<Colors>,
    pub(crate) recolor: Option<Spanned<Recolor>>,
}

/// Whether pages move after a change.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "wrong type: allowed: true, false, or a number of pages for each timer tick"
)]
pub(crate) enum Recolor {
    /// At once, or never.
    Word(bool),
    /// So many at each tick.
    PerTick(u32),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdviseTable {
    pub(crate) within: Spanned<String>,
    pub(crate) goal: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgramTable {
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) recording: Option<Spanned<String>>,
    pub(crate) command: Option<Spanned<Vec<String>>>,
    pub(crate) builtin: Option<Spanned<Builtin>>,
    pub(crate) trace: Option<Spanned<String>>,
    pub(crate) format: Option<Spanned<String>>,
    pub(crate) regions: Option<Spanned<Regions>>,
    pub(crate) cores: Spanned<String>,
    pub(crate) colors: Option<Spanned<Colors>>,
    pub(crate) mode: Option<Spanned<String>>,
    pub(crate) on_limit: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) change: Vec<Spanned<ChangeTable>>,
    pub(crate) role: Option<Spanned<String>>,
    /// What it is to HVR.
    pub(crate) class: Option<Spanned<String>>,
    pub(crate) arrives_us: Option<Spanned<f64>>,
    pub(crate) leaves_us: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyTable {
    pub(crate) name: Spanned<String>,
    pub(crate) frames: Option<Spanned<String>>,
    pub(crate) memory: Option<Spanned<String>>,
    pub(crate) thp: Option<bool>,
    /// One line per colour bit: the address bits to XOR.
    pub(crate) color_map: Option<Spanned<Vec<Spanned<String>>>>,
    /// Colours of programs under this policy, by their names.
    pub(crate) colors: Option<Spanned<BTreeMap<String, Spanned<Colors>>>>,
    pub(crate) replace: Option<Spanned<String>>,
    pub(crate) files: Option<Spanned<String>>,
    /// Parameters of `frames = "hvr"`.
    pub(crate) hvr: Option<Spanned<HvrTable>>,
    /// Who says where reads are done.
    pub(crate) reads: Option<Spanned<String>>,
    /// Parameters of `reads = "mfc"`.
    pub(crate) mfc: Option<Spanned<MfcTable>>,
    /// Run queues are evened out at ticks.
    pub(crate) balance: Option<bool>,
    /// What moving a thread takes, by hops.
    pub(crate) migration_us: Option<Spanned<Vec<f64>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CourseTable {
    pub(crate) until_us: Spanned<f64>,
    pub(crate) every_us: Option<Spanned<f64>>,
    #[serde(default)]
    pub(crate) after_setup: bool,
    pub(crate) warmup_us: Option<Spanned<f64>>,
}

/// Parameters of HVR.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HvrTable {
    pub(crate) framework: Option<Spanned<String>>,
    pub(crate) watch: Option<bool>,
    pub(crate) remember: Option<Spanned<bool>>,
    pub(crate) time_scale: Option<Spanned<i64>>,
    pub(crate) reuse_passes: Option<Spanned<i64>>,
    pub(crate) ccf_pages: Option<Spanned<i64>>,
    pub(crate) llch_pages: Option<Spanned<i64>>,
    pub(crate) hot_freq_bp: Option<Spanned<i64>>,
    pub(crate) low_locality: Option<Spanned<String>>,
    pub(crate) few: Option<Spanned<i64>>,
    pub(crate) segregate_from: Option<Spanned<i64>>,
    pub(crate) bank_groups: Option<Spanned<String>>,
    pub(crate) mixed: Option<Spanned<String>>,
    pub(crate) other_regions: Option<Spanned<String>>,
    pub(crate) spare: Option<Spanned<String>>,
    pub(crate) interleave: Option<Spanned<String>>,
    pub(crate) mode: Option<Spanned<String>>,
}

/// Parameters of MFC.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MfcTable {
    pub(crate) min_read: Option<Spanned<String>>,
    pub(crate) copies: Option<bool>,
    pub(crate) second: Option<Spanned<String>>,
    pub(crate) busy: Option<Spanned<i64>>,
    pub(crate) idle: Option<Spanned<i64>>,
    pub(crate) lfu_factor: Option<Spanned<i64>>,
    pub(crate) decay_ms: Option<Spanned<f64>>,
    pub(crate) competitive: Option<Spanned<String>>,
    pub(crate) chunk: Option<Spanned<Written<Bytes>>>,
    pub(crate) files: Option<Spanned<i64>>,
    pub(crate) off_chip_bytes_per_us: Option<Spanned<i64>>,
    pub(crate) on_chip_bytes_per_us: Option<Spanned<i64>>,
    pub(crate) access_us: Option<Spanned<f64>>,
    pub(crate) assignment_us: Option<Spanned<f64>>,
}
