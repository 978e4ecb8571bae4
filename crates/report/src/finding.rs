//! What a report says, as a record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a report says of one question, and what that rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Finding {
    /// What is asked: `slowdown` (together against alone), `difference` (of slowdowns, against the
    /// first policy), `cost` (alone, against the first policy).
    pub question: String,
    /// Of this program.
    pub program: String,
    /// Under this policy.
    pub policy: String,
    /// The sentence that outputs print.
    pub claim: String,
    /// The change in question, as a share of its baseline: 0.05 for 5 %.
    #[serde(with = "crate::json::nullable")]
    #[schemars(with = "Option<f64>")]
    pub effect: f64,
    /// Ends of its 95 % interval, not corrected for the number of questions.
    pub ci95: Option<[f64; 2]>,
    /// Repetitions that it comes from.
    pub n: usize,
    /// True if the claim says that there is a change.
    pub shown: bool,
    /// Why no change is claimed.
    pub why: Option<String>,
    /// What to change in the study so that it can tell.
    #[serde(rename = "do")]
    pub act: Option<String>,
}
