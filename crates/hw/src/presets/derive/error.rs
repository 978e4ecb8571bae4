//! Why no machine could be derived.

/// Why no machine could be derived: the file under `/sys/devices/system/cpu`,
/// and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct DeriveError {
    /// Path below the root, or the choice of processors as it was written
    /// (`--cpus 0-3`).
    pub path: String,
    /// What it holds and what is allowed.
    pub problem: String,
}
