//! What is looked at beside times and counts.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_untagged::UntaggedEnumVisitor;

use crate::{Whole, problem::refused_value, value::described};

/// What is looked at beside times and counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// Samples of the cache's sets over time; 0 = no map.
    pub set_map: Whole<0, 1000>,
    /// Misses of each program against the size of the last level. A number: each program alone with the last level at so
    /// many sizes, up to its ways, a run each; 0 = no curves. true: from the run alone under the first policy, with 1, 2 .. all
    /// parts of the last level that colors tell apart, by shadow tags.
    pub miss_curve: MissCurves,
    /// Miss-ratio curves of requests: true, or the share of the pages in a sample, up to 0.25, or 1
    /// for full runs at all sizes. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss_ratio: Option<MissRatio>,
}

/// Miss-ratio curves, and the share of the pages in a sample if it is not by their number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MissRatio {
    /// By the number of pages.
    Auto,
    /// This share.
    Rate(f64),
}

impl MissRatio {
    /// The share, if it is given.
    pub const fn rate(self) -> Option<f64> {
        match self {
            Self::Auto => None,
            Self::Rate(rate) => Some(rate),
        }
    }
}

/// What [`MissRatio`] may be.
const MISS_RATIO: &str = "true, or a share above 0 and up to 0.25, or 1";

impl<'de> Deserialize<'de> for MissRatio {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let rate = |rate: f64| {
            let is_one = rate > 0.0 && rate <= 0.25 || rate == 1.0;
            is_one
                .then_some(Self::Rate(rate))
                .ok_or_else(|| refused_value(rate, MISS_RATIO))
        };
        UntaggedEnumVisitor::new()
            .expecting(MISS_RATIO)
            .bool(|is| {
                is.then_some(Self::Auto)
                    .ok_or_else(|| refused_value(is, MISS_RATIO))
            })
            .f64(rate)
            .i64(move |n| rate(n as f64))
            .deserialize(from)
    }
}

impl Serialize for MissRatio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => to.serialize_bool(true),
            Self::Rate(rate) => to.serialize_f64(*rate),
        }
    }
}

described!(() MissRatio, ["boolean", "number"], MISS_RATIO);

/// Curves of misses against the size of the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissCurves {
    /// A run for each of so many sizes; 0: none.
    Timed(u32),
    /// Counted in a run with the whole of it.
    Counted,
}

/// Most sizes.
const MOST_SIZES: u32 = 1000;
/// What [`MissCurves`] may be.
const MISS_CURVES: &str = "0 to 1000, or true";

impl<'de> Deserialize<'de> for MissCurves {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(MISS_CURVES)
            .bool(|is| {
                is.then_some(Self::Counted)
                    .ok_or_else(|| refused_value(is, MISS_CURVES))
            })
            .i64(|n| {
                let sizes = u32::try_from(n).ok().filter(|n| *n <= MOST_SIZES);
                let refuse = || refused_value(n, MISS_CURVES);
                sizes.map(Self::Timed).ok_or_else(refuse)
            })
            .deserialize(from)
    }
}

impl Serialize for MissCurves {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Counted => to.serialize_bool(true),
            Self::Timed(sizes) => to.serialize_u32(*sizes),
        }
    }
}

described!(() MissCurves, ["boolean", "integer"], MISS_CURVES);

impl Default for Output {
    fn default() -> Self {
        Self {
            set_map: Whole::new(60),
            miss_curve: MissCurves::Timed(0),
            miss_ratio: None,
        }
    }
}
