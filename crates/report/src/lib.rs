//! Tables, JSON, CSV, HTML and plots: one look for every verb.
//!
//! Whoever measures fills a [`Study`]; this room turns it into what people see
//! and computes nothing that the study does not hold. Vocabulary:
//!
//! * *sample*: the values of one quantity over the repetitions of a study, with
//!   their mean and a 95 % confidence interval ([`Sample`]);
//! * *alone* and *together*: the two phases in which a program is measured, by
//!   itself on the machine and beside the other programs of the study;
//! * *slowdown*: time together / time alone - 1, printed in percent;
//! * *target* and *polluter*: the program whose speed is asked about, and one
//!   that is there to disturb it;
//! * *MPKI*: misses per 1000 instructions.
//!
//! Every output marks a study of which not all was run with the word `PARTIAL`, and
//! a number that does not exist (empty sample, division by zero) is shown as
//! `n/a`, never as `NaN` or `inf`.
//!
//! The explanation sentences ([`headline()`]) say only what the intervals
//! support, and say "as", not "because": a study shows that misses and time rose
//! together, not that one made the other.

use std::path::PathBuf;

mod advice;
mod chart;
mod course;
mod csv;
mod file;
mod finding;
mod format;
mod gate;
mod headline;
mod html;
mod json;
mod marks;
mod record;
mod regions;
mod replay;
mod reproduction;
mod rows;
mod sample;
mod schema;
mod sweep;
mod sysmon;
mod table;
mod written;

pub use advice::{
    Advice, AdvicePoint, MixAdvice, MixPolicy, ProgramAdvice, ShareAdvice, SplitAdvice,
};
pub use course::{
    CourseCounts, CourseEvent, CourseInterval, CourseIpc, CourseProgram, CourseResult,
};
pub use csv::to_csv;
pub use file::{check_file, check_folder, write_atomically};
pub use finding::{Finding, Unmet};
pub use gate::{LEAST_EFFECT, advice_doubts, claims};
pub use headline::{findings, headline};
pub use html::{sweep_to_html, to_html};
pub use record::{
    ColorUse, Extra, LevelMpki, MachineSummary, Metrics, MissCurve, Occupancy, PolicyResult,
    ProgramResult, RegionCheck, RegionFigures, RegionResult, RegionSet, Role, SCHEMA, SetMap,
    SetMapSpeed, Study, WAITED,
};
pub use replay::{
    MissRatioCheck, MissRatioCurve, MissRatioPoint, REPLAY_SCHEMA, Replay, ReplayBytes,
    ReplayConditions, ReplayIo, ReplayParts, ReplayPolicy, ReplayRun, ReplayTrace,
    replay_curves_to_csv, replay_from_json, replay_sequences_to_csv, replay_to_csv, replay_to_html,
    replay_to_html_at, replay_to_json, replay_to_table,
};
pub use reproduction::{
    CaseTable, Curve, CurvePoint, Panel, PaperFigure, Predicate, Published, REPRODUCTION_SCHEMA,
    Reproduction, Target, TargetKind, Value, Verdict, reproduction_to_html, reproduction_to_json,
    reproduction_to_table,
};
pub use rows::{METRICS, Metric, Source, metrics_table};
pub use sample::Sample;
pub use schema::{DOCUMENTS, document_schema};
pub use sweep::{sweep_to_csv, sweep_to_json, sweep_to_table};
pub use sysmon::{SysMonFacts, SysMonResult, SysMonWindow};
pub use table::{TableStyle, to_table};
pub use written::{from_json, to_json};

/// Why an output could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The text is not the JSON of a study.
    #[error("not the JSON of a study: {0}")]
    Json(#[from] serde_json::Error),
    /// The JSON was written by a newer version.
    #[error("schema: is {found}, allowed: 1 to {SCHEMA}")]
    Schema {
        /// The number in the file.
        found: u32,
    },
    /// The text is not the JSON of a replay.
    #[error("not the JSON of a replay: {0}")]
    ReplayJson(serde_json::Error),
    /// The JSON of a replay was written by a newer version.
    #[error("schema: is {found}, allowed: 1 to {REPLAY_SCHEMA}")]
    ReplaySchema {
        /// The number in the file.
        found: u32,
    },
    /// The CSV writer refused.
    #[error("cannot write CSV: {0}")]
    Csv(#[from] ::csv::Error),
    /// A picture could not be drawn.
    #[error("cannot draw a chart: {0}")]
    Chart(String),
    /// The HTML template failed.
    #[error("cannot write HTML: {0}")]
    Html(#[from] askama::Error),
    /// A file could not be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file that was to be written.
        path: PathBuf,
        /// Why it was not.
        source: std::io::Error,
    },
}
