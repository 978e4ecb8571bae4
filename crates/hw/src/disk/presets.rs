//! Disks that come with the model, and how a disk file is read.
//!
//! A preset is a TOML file whose values carry a mark of their source; the file's
//! `sources` table says what each mark stands for. Drive parameters that were
//! published with a simulator keep its notice, in the file `COPYING.disksim`
//! beside them.

use super::spec::DiskSpec;
use crate::SpecError;
use crate::nearest::did_you_mean;
use crate::presets::{PresetError, line_of, parse_as};

/// A disk that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The text is no disk.
    #[error(transparent)]
    Parse(#[from] PresetError),
    /// No preset has this name.
    #[error(
        "no disk preset \"{name}\"; there are {allowed}{}",
        did_you_mean(name, presets())
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that exist.
        allowed: String,
    },
    /// A value is not allowed, or values contradict one another.
    #[error("{file}:{line}: {error}")]
    Spec {
        /// What the caller called the text.
        file: String,
        /// Line of the value, from 1, or of the table that it is missing from.
        line: usize,
        /// The field, its value, what is allowed.
        error: SpecError,
    },
}

macro_rules! preset {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../presets/disks/", $name, ".toml")),
        )
    };
}

const PRESETS: [(&str, &str); 9] = [
    preset!("atlas10k"),
    preset!("dulo-table1"),
    preset!("ibm18es"),
    preset!("nvme"),
    preset!("sata-7200"),
    preset!("sata-ssd"),
    preset!("st32171w"),
    preset!("st39102lw"),
    preset!("wd400bb"),
];

/// Names of the presets, in alphabetical order.
pub fn presets() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// Text of a preset.
pub fn text(name: &str) -> Option<&'static str> {
    let found = PRESETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// Description of a preset.
///
/// # Errors
/// A name that is no preset; the error lists those that are.
pub fn by_name(name: &str) -> Result<DiskSpec, DiskError> {
    let Some(text) = text(name) else {
        return Err(DiskError::Unknown {
            name: name.into(),
            allowed: presets().collect::<Vec<_>>().join(", "),
        });
    };
    parse(text, name)
}

/// Reads the text of a disk file; `file` names it in errors.
///
/// # Errors
/// The first thing that is no disk, or the first value that is not allowed, with
/// its line.
pub fn parse(text: &str, file: &str) -> Result<DiskSpec, DiskError> {
    let spec: DiskSpec = parse_as(text, file)?;
    super::check::disk(&spec).map_err(|error| DiskError::Spec {
        file: file.into(),
        line: line_of_field(text, &error.field),
        error,
    })?;
    Ok(spec)
}

/// Line of a field; of the whole list if it lies in one.
fn line_of_field(text: &str, field: &str) -> usize {
    let list = field.split('[').next().unwrap_or(field);
    line_of(text, list).unwrap_or(1)
}
