//! The key `enter` of a program.

use std::borrow::Cow;

use piebald_units::Count;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_untagged::UntaggedEnumVisitor;

use crate::{Percent, Refs, problem::refused_value, value::described};

/// Where in its life a program is met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Enter {
    /// At its beginning.
    Start,
    /// Anywhere.
    Anywhere,
    /// Anywhere in its first iteration.
    Iteration,
    /// Anywhere in so many references.
    Within(Refs<1>),
    /// Anywhere in the first part of its recording, of this share; of a built-in program, right after its
    /// set-up. When it ends, it begins again there.
    First(Percent),
}

/// Words of [`Enter`].
const WORDS: [(&str, Enter); 3] = [
    ("start", Enter::Start),
    ("anywhere", Enter::Anywhere),
    ("iteration", Enter::Iteration),
];

/// What it may be.
const WHAT: &str =
    "\"start\", \"anywhere\", \"iteration\", references such as \"2M\", or a share such as \"50%\"";

impl<'de> Deserialize<'de> for Enter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(WHAT)
            .string(|text| {
                if let Some((_, enter)) = WORDS.iter().find(|(word, _)| *word == text) {
                    return Ok(*enter);
                }
                if let Ok(share) = text.parse() {
                    return Ok(Self::First(share));
                }
                let refs: Option<Count> = text.parse().ok();
                let within = refs.and_then(|refs| Refs::within(refs.0)).map(Self::Within);
                within.ok_or_else(|| refused_value(format!("\"{text}\""), WHAT))
            })
            .i64(|refs| {
                let within = u64::try_from(refs).ok().and_then(Refs::within);
                let refuse = || refused_value(refs, WHAT);
                within.map(Self::Within).ok_or_else(refuse)
            })
            .deserialize(from)
    }
}

impl Serialize for Enter {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Within(refs) => return refs.serialize(to),
            Self::First(share) => return to.collect_str(share),
            Self::Start | Self::Anywhere | Self::Iteration => {}
        }
        let found = WORDS.iter().find(|(_, enter)| enter == self);
        to.serialize_str(found.map_or("start", |(word, _)| word))
    }
}

described!(() Enter, ["string", "integer"], WHAT);
