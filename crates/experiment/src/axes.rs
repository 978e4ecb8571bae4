//! The tables `[sweep]` and `[on.HOST]`, which are laid over a file before it is read.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::value::described;

/// Axes: keys of the file, and the values that each takes in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sweep(pub BTreeMap<String, Vec<toml::Value>>);

/// What it may be.
const WHAT: &str = "keys of this file and lists of values, such as \
                    { \"program.sort.cores\" = [\"0\", \"1\"] }";

described!(() Sweep, "object", WHAT);

/// What is written under `[on.HOST]`; it is laid over the file before it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct On;

described!(() On, "object", "tables `model` and `guest`");
