//! What came out of replaying block or file traces against replacement policies.
//!
//! Vocabulary: a *reference* is one use of one page; it is a *hit* if the page was in
//! memory or on its way there, else a *miss*; a *run* is one policy at one memory size;
//! a *sequence* is a maximal stretch of pages that were requested from the disk one
//! after another at consecutive addresses.
//!
//! Whoever replays fills a [`Replay`]; what is shown of it is computed from its integers,
//! in one place ([`matrices`](matrix::matrices)), so that the terminal, the page and the
//! findings never disagree.

mod apart;
mod csv;
mod curves;
mod findings;
mod grid;
mod html;
mod json;
mod matrix;
mod plots;
mod table;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Finding, json as numbers};

pub use csv::{replay_curves_to_csv, replay_sequences_to_csv, replay_to_csv};
pub use html::{replay_to_html, replay_to_html_at};
pub use json::{replay_from_json, replay_to_json};
pub use table::replay_to_table;

/// Schema number of a replay's JSON.
///
/// 2: `findings`, and `checks` of sampled curves instead of `largest_error`.
pub const REPLAY_SCHEMA: u32 = 2;

/// Traces replayed against policies at memory sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// [`REPLAY_SCHEMA`].
    pub schema: u32,
    /// For people: the traces' names.
    pub title: String,
    /// Of the program that made it.
    pub version: String,
    /// The command that gives the same again.
    pub command: Option<String>,
    /// False if it was interrupted: the numbers cover the part that was replayed.
    pub complete: bool,
    /// The traces.
    pub traces: Vec<ReplayTrace>,
    /// Under what conditions.
    pub conditions: ReplayConditions,
    /// Policies, in the order in which they were asked for.
    pub policies: Vec<ReplayPolicy>,
    /// Memory sizes in pages, rising.
    pub sizes: Vec<u64>,
    /// One per policy and size: policies in order, sizes rising within each.
    pub runs: Vec<ReplayRun>,
    /// Miss-ratio curves, where they were asked for.
    pub curves: Vec<MissRatioCurve>,
    /// Why curves that were asked for are not there, one sentence each.
    #[serde(default)]
    pub curves_refused: Vec<String>,
    /// What the numbers say: filled by [`replay_to_json`] from the rest.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Time that it took on the computer that simulated.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub host_seconds: f64,
}

impl Replay {
    /// Bytes of `pages` pages, as far as a number holds them.
    pub fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.conditions.page_bytes)
    }

    /// Whether objects took their bytes: sizes are bytes then, not pages.
    pub fn has_bytes(&self) -> bool {
        self.runs.iter().any(|r| r.bytes.is_some())
    }

    /// Whether a disk was below the cache in any run.
    pub fn has_device(&self) -> bool {
        self.runs.iter().any(|r| r.io.is_some())
    }

    /// The time by which runs are compared.
    fn clock(&self) -> Clock {
        match self.conditions.pace.as_str() {
            "timed" | "open" => Clock::Waited,
            "clients" => Clock::Given,
            _ => Clock::Elapsed,
        }
    }
}

/// No simulated time is longer, in s: the 64-bit clock of picoseconds, summed over 5e7
/// tasks.
const LONGEST_S: f64 = 1e15;

/// A time that can be: not below zero, not endless.
fn seconds(time: f64) -> Option<f64> {
    (0.0..=LONGEST_S).contains(&time).then_some(time)
}

/// Which time of a run says how well a policy did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// Where tasks go on as soon as they can, how long all took: the execution time of
    /// DULO (FAST'05).
    Elapsed,
    /// Where requests come at the trace's times, all takes as long as the trace; what
    /// differs is how long tasks waited.
    Waited,
    /// Where clients ask until time is up, all takes as long, and each run asks for as much as it can.
    Given,
}

impl Clock {
    /// In seconds.
    fn of(self, io: &ReplayIo) -> Option<f64> {
        match self {
            Self::Elapsed => seconds(io.elapsed_s),
            Self::Waited => seconds(io.waited_s),
            Self::Given => None,
        }
    }

    /// For headings.
    const fn name(self) -> &'static str {
        match self {
            Self::Elapsed => "Execution time",
            Self::Waited => "Time waited for the disk",
            Self::Given => "Time",
        }
    }
}

/// A trace that was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayTrace {
    /// File name, as given.
    pub path: String,
    /// Format, as found or given.
    pub format: String,
    /// Records that are requests.
    pub requests: u64,
    /// Page references: the pages of all requests, one by one.
    pub references: u64,
    /// Those of reads.
    pub reads: u64,
    /// Those of writes.
    pub writes: u64,
    /// Different pages, or objects.
    pub unique_pages: u64,
    /// Bytes of all different objects, where they take their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_bytes: Option<u64>,
    /// References to the page after the one before (same file or device), 0 to 1.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub sequential_share: f64,
    /// Bad records that were left out (`--lenient`), by kind.
    pub skipped: Vec<(String, u64)>,
}

/// Conditions that hold for all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayConditions {
    /// Bytes of a page; 1 where objects take their bytes.
    pub page_bytes: u64,
    /// Name of the device, `none` for a cache without a disk below.
    pub device: String,
    /// Readahead, `none` for demand fetches alone.
    pub readahead: String,
    /// I/O scheduler.
    pub scheduler: String,
    /// When a request is made: `serial` (one after another in the trace's order), `tasks`
    /// (as soon as its task's last one is done; also `closed`), `timed` (at the trace's
    /// time; also `open`) or `clients` (when a client has its answer, until time is up).
    pub pace: String,
    /// Where pages lie on the disk: the rule, in one sentence.
    pub layout: String,
    /// References before counting begins.
    pub warmup_references: u64,
    /// Seed of all draws.
    pub seed: u64,
    /// Further conditions and caveats, one sentence each.
    pub notes: Vec<String>,
}

/// A policy that was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayPolicy {
    /// Name, as the command line takes it.
    pub name: String,
    /// One line about it.
    pub about: String,
}

/// One policy at one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayRun {
    /// Name of the policy.
    pub policy: String,
    /// Memory for file pages, in pages; in bytes where objects take their bytes.
    pub size_pages: u64,
    /// References that were counted.
    pub references: u64,
    /// Of these, to pages in memory or on their way.
    pub hits: u64,
    /// The others.
    pub misses: u64,
    /// Bytes of objects, where they take their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ReplayBytes>,
    /// What the disk saw, where there is one.
    pub io: Option<ReplayIo>,
    /// The same by parts of the trace, which tell a difference from chance; files of before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<ReplayParts>,
    /// Figures of this policy alone, such as DULO's sequencing work: name, value, unit.
    #[serde(with = "json::figures")]
    #[schemars(with = "Vec<(String, Option<f64>, String)>")]
    pub extra: Vec<(String, f64, String)>,
}

impl ReplayRun {
    /// Hits per reference; `None` without references.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.references > 0).then(|| self.hits as f64 / self.references as f64)
    }

    /// Misses per reference; `None` without references.
    pub fn miss_ratio(&self) -> Option<f64> {
        (self.references > 0).then(|| self.misses as f64 / self.references as f64)
    }

    /// Bytes missed per byte asked for, where objects take their bytes.
    pub fn byte_miss_ratio(&self) -> Option<f64> {
        self.bytes?.miss_ratio()
    }
}

/// Counts of a run by parts of its trace: 16 to 32 parts of about equal length, the same for all runs, and
/// fewer of a trace that has fewer references.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayParts {
    /// Misses of each part.
    pub misses: Vec<u64>,
    /// Bytes missed in each part, where objects take their bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bytes_missed: Vec<u64>,
    /// Requests to read that the disk got in each part, where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<u64>,
    /// Time of each part in ps, where there is a disk: that by which runs are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_ps: Vec<u64>,
}

/// Bytes that the counted references of a run asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayBytes {
    /// All.
    pub requested: u64,
    /// Those of references that missed.
    pub missed: u64,
    /// References, not bytes: misses of objects that were too large to come in.
    pub too_large: u64,
}

impl ReplayBytes {
    /// Bytes missed per byte asked for; `None` if none was asked for.
    pub fn miss_ratio(&self) -> Option<f64> {
        (self.requested > 0).then(|| self.missed as f64 / self.requested as f64)
    }
}

/// What the disk saw in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayIo {
    /// Simulated time from the first reference to the last completion, in s.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub elapsed_s: f64,
    /// Time that tasks waited for the disk, summed, in s.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub waited_s: f64,
    /// Time that the disk was busy, in s.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub disk_busy_s: f64,
    /// Read requests sent to the disk, after merging.
    pub read_requests: u64,
    /// Write requests.
    pub write_requests: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Pages read ahead, among those read.
    pub prefetched: u64,
    /// Pages read ahead that left memory unused, or were unused at the end.
    pub prefetched_unused: u64,
    /// Hits on pages that were on their way: the task waited.
    pub waited_hits: u64,
    /// Sequences of pages read: length in pages, and pages in sequences of that length;
    /// rising lengths. The figures of DULO (FAST'05) are their cumulative share.
    pub sequences: Vec<(u32, u64)>,
}

impl ReplayIo {
    /// Mean length of a sequence in pages, each sequence counting once; `None` if
    /// nothing was read.
    pub fn mean_sequence(&self) -> Option<f64> {
        let count = |&(length, pages): &(u32, u64)| pages as f64 / f64::from(length.max(1));
        let count: f64 = self.sequences.iter().map(count).sum();
        let pages = self.pages_in_sequences(|_| true);
        (pages > 0.0).then(|| pages / count)
    }

    /// Share of the pages read that lie in sequences longer than `length`, 0 to 1.
    pub fn share_longer_than(&self, length: u32) -> Option<f64> {
        let all = self.pages_in_sequences(|_| true);
        (all > 0.0).then(|| self.pages_in_sequences(|l| l > length) / all)
    }

    /// Share of the pages read that lie in sequences shorter than `length`, 0 to 1: the
    /// curve of DULO (FAST'05), Figures 3 and 4.
    pub fn share_shorter_than(&self, length: u32) -> Option<f64> {
        let all = self.pages_in_sequences(|_| true);
        (all > 0.0).then(|| self.pages_in_sequences(|l| l < length) / all)
    }

    /// Each length with its pages and the share of all pages read that lies in shorter
    /// sequences; rising lengths, nothing where nothing was read.
    pub(crate) fn cumulated(&self) -> Vec<(u32, u64, f64)> {
        let mut sequences: Vec<(u32, u64)> = self.sequences.clone();
        sequences.sort_by_key(|(length, _)| *length);
        sequences.retain(|(_, pages)| *pages > 0);
        let all = self.pages_in_sequences(|_| true);
        let mut shorter = 0.0;
        let share = |(length, pages): (u32, u64)| {
            let before = shorter / all;
            shorter += pages as f64;
            (length, pages, before)
        };
        sequences.into_iter().map(share).collect()
    }

    /// A sum of numbers that may come from a file does not overflow as a float.
    fn pages_in_sequences(&self, wanted: impl Fn(u32) -> bool) -> f64 {
        let wanted = self.sequences.iter().filter(|(length, _)| wanted(*length));
        // An empty sum of floats is -0.
        wanted.fold(0.0, |sum, &(_, pages)| sum + pages as f64)
    }
}

/// Miss ratio over memory size for one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissRatioCurve {
    /// Name of the policy.
    pub policy: String,
    /// True if every reference was looked at and every size is exact.
    pub exact: bool,
    /// Share of the pages that were looked at, 1 if exact.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub sampling_rate: f64,
    /// Independent samples that the interval is made from, 0 if exact.
    pub samples: u32,
    /// References of the whole trace.
    pub references: u64,
    /// Points by rising size.
    pub points: Vec<MissRatioPoint>,
    /// Sizes at which a sampled curve was held against a full run.
    #[serde(default)]
    pub checks: Vec<MissRatioCheck>,
}

/// A point of a sampled curve beside a run of the whole trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissRatioCheck {
    /// Memory in pages.
    pub size_pages: u64,
    /// Misses per reference of the curve.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub sampled: f64,
    /// Misses per reference of the run.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub full: f64,
}

/// One size of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissRatioPoint {
    /// Memory in pages.
    pub size_pages: u64,
    /// Misses of the whole trace where the curve is exact.
    pub misses: Option<u64>,
    /// Misses per reference.
    #[serde(with = "numbers::nullable")]
    #[schemars(with = "Option<f64>")]
    pub miss_ratio: f64,
    /// 95 % interval where the curve is sampled.
    #[serde(with = "json::interval")]
    #[schemars(with = "Option<[f64; 2]>")]
    pub ci95: Option<[f64; 2]>,
}
