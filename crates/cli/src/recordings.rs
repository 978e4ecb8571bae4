//! Which files are recordings.

use std::path::Path;

use crate::failure::Failure;

/// Is it one of ours? By its first bytes, which a pipe does not lose.
pub(crate) fn is_recording(file: &Path) -> Result<bool, Failure> {
    piebald_trace::recording::is_recording(file)
        .map_err(|e| Failure::usage(format!("{}: {e}", file.display())))
}
