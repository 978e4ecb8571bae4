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
    /// The condition that is not met, if it is one with a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmet: Option<Unmet>,
}

/// A condition of a claim that is not met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unmet {
    /// `repetitions`; `full` (of what a cache comes to hold, or of its room if it fills on, the share that it
    /// has when counting begins); `drift` (the share of its room by which it fills meanwhile); `first_fills` (the share of misses that
    /// filled empty places); `reaches` (references to a shared cache per 1000 instructions); `effect` (the
    /// share of the baseline); `chance` (whether the interval, corrected for all questions, excludes zero).
    pub condition: String,
    /// What was found; `null` where that is no number.
    pub found: Option<f64>,
    /// The limit that it does not keep.
    pub limit: Option<f64>,
}

impl Unmet {
    pub(crate) fn new(condition: &str, found: f64, limit: f64) -> Self {
        Self {
            condition: condition.to_owned(),
            found: Some(found),
            limit: Some(limit),
        }
    }

    /// The interval does not exclude zero.
    pub(crate) fn by_chance() -> Self {
        Self {
            condition: "chance".to_owned(),
            ..Self::default()
        }
    }
}
