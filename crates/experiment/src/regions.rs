//! The key `regions` of a program.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_untagged::UntaggedEnumVisitor;

use crate::{Refs, Whole, problem::refused_value, value::described};

/// RegionRequest that stand for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RegionRequest {
    /// Most regions; fewer are taken where fewer tell the program's phases apart.
    pub max: Whole<1, 100>,
    /// Instructions of a region; `None` = so many that all regions together have the budget's
    /// references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Refs<1000>>,
    /// References from the program's first on that the regions stand for; `None` = the whole
    /// recording, or a multiple of the budget for what is recorded on the fly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Refs<1>>,
    /// Run the whole alone once, to measure what the regions miss; `None` = if that no more than
    /// doubles the study's work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<bool>,
}

/// Most regions if a file says `"auto"`: what the SimPoint paper tries.
const AUTO: Whole<1, 100> = Whole::new(10);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default = "auto")]
    max: Whole<1, 100>,
    interval: Option<Refs<1000>>,
    span: Option<Refs<1>>,
    check: Option<bool>,
}

const fn auto() -> Whole<1, 100> {
    AUTO
}

impl RegionRequest {
    const fn at_most(max: Whole<1, 100>) -> Self {
        Self {
            max,
            interval: None,
            span: None,
            check: None,
        }
    }
}

/// What it may be, in short.
const SHORT: &str = "1 to 100, \"auto\", or a table";

impl<'de> Deserialize<'de> for RegionRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("1 to 100, \"auto\", or a table of max, interval, span and check")
            .i64(|given| {
                let max = u64::try_from(given).ok().filter(|n| (1..=100).contains(n));
                let max = max.ok_or_else(|| refused_value(given, SHORT))?;
                Ok(Self::at_most(Whole::new(max)))
            })
            .string(|given| match given {
                "auto" => Ok(Self::at_most(AUTO)),
                _ => Err(refused_value(format!("\"{given}\""), SHORT)),
            })
            .map(|map| {
                let keys: Keys = map.deserialize()?;
                Ok(Self {
                    max: keys.max,
                    interval: keys.interval,
                    span: keys.span,
                    check: keys.check,
                })
            })
            .deserialize(from)
    }
}

described!(() RegionRequest, "object", "1 to 100, \"auto\", or a table of max, interval, span and check");
