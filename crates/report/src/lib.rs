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
//! Every output marks a study that was interrupted with the word `PARTIAL`, and
//! a number that does not exist (empty sample, division by zero) is shown as
//! `n/a`, never as `NaN` or `inf`.
//!
//! The explanation sentences ([`headline`]) say only what the intervals
//! support, and say "as", not "because": a study shows that misses and time rose
//! together, not that one made the other.

mod json;
mod record;
mod sample;

pub use json::{from_json, to_json};
pub use record::{
    Extra, LevelMpki, MachineSummary, Metrics, MissCurve, PolicyResult, ProgramResult, Role,
    SCHEMA, SetMap, Study,
};
pub use sample::Sample;

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
}
