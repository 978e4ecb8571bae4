//! A share of a number of references.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_untagged::UntaggedEnumVisitor;

use crate::{Percent, problem::refused_value, value::described};

/// A share above 0 and up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

/// What it may be.
const WHAT: &str = "a share above 0 and up to 1, such as 0.25 or \"25%\"";

impl Share {
    fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= 1.0).then_some(Self(share))
    }

    /// So much of a number of references.
    pub fn of(self, refs: u64) -> u64 {
        (refs as f64 * self.0) as u64
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(WHAT)
            .f64(|share| Self::new(share).ok_or_else(|| refused_value(share, WHAT)))
            .i64(|share| Self::new(share as f64).ok_or_else(|| refused_value(share, WHAT)))
            .string(|text| {
                let percent = text.parse().map(Percent::ratio);
                let share = percent.ok().or_else(|| text.parse().ok());
                let share = share.and_then(Self::new);
                share.ok_or_else(|| refused_value(format!("\"{text}\""), WHAT))
            })
            .deserialize(from)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0)
    }
}

described!(() Share, ["number", "string"], WHAT);
