//! MFC ("A Software Approach to Unifying Multicore Caches"): M-1 to M-17.
//!
//! What is run and what is read from it is data (`reproduce/mfc`); here is what follows from the
//! machine alone. Programs, the machine and what counts as a match were written down before the first
//! result.

mod constants;

use std::path::Path;

use crate::{ReproduceError, data::DataPaper};

const GRID: &str = include_str!("../../../../reproduce/mfc/grid.toml");
/// Its rows.
pub(crate) const ROWS: &str = include_str!("../../../../reproduce/mfc/rows.toml");

/// The paper.
///
/// # Errors
/// Its files or the machine are wrong: a defect.
pub(crate) fn paper() -> Result<DataPaper, ReproduceError> {
    let machine = piebald_hw::presets::load("opteron4x4")
        .map_err(|e| ReproduceError::Machine(e.to_string()))?;
    let known = constants::known(&machine).map_err(ReproduceError::Machine)?;
    DataPaper::new(
        ("mfc", Path::new("reproduce/mfc")),
        [GRID, ROWS],
        None,
        known,
    )
}
