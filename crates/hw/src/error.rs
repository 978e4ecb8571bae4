//! Why a machine was refused.

/// A machine description that cannot be built: the field, its value, and what
/// is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: {allowed}")]
pub struct SpecError {
    /// Path of the field, as in `cache[2].ways`.
    pub field: String,
    /// The value that was refused.
    pub value: String,
    /// What is allowed, as in `a power of two, 1..=64`.
    pub allowed: String,
}

impl SpecError {
    /// An error for one field.
    pub fn new(field: impl Into<String>, value: impl ToString, allowed: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }
}
