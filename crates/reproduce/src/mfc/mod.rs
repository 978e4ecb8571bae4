//! MFC ("A Software Approach to Unifying Multicore Caches"): M-1 to M-17.
//!
//! What is run and what is read from it is data (`reproduce/mfc`); here is what follows from the
//! machine alone. Programs, the machine and what counts as a match were written down before the first
//! result.

mod constants;

use std::path::Path;

use crate::{ReproduceError, data::DataPaper};

const GRID: &str = include_str!("../../../../reproduce/mfc/grid.toml");
const ROWS: &str = include_str!("../../../../reproduce/mfc/rows.toml");

/// Ids of the targets, in order.
pub(crate) const TARGETS: [&str; 17] = [
    "M-1", "M-2", "M-3", "M-4", "M-5", "M-6", "M-7", "M-8", "M-9", "M-10", "M-11", "M-12", "M-13",
    "M-14", "M-15", "M-16", "M-17",
];

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::System;

    #[test]
    fn the_files_have_the_targets_and_the_title_of_the_system() {
        let paper = paper().and_then(DataPaper::checked);
        let paper = paper.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(paper.ids(), TARGETS);
        assert_eq!(paper.title(), System::Mfc.title());
        assert_eq!(paper.name(), System::Mfc.name());
    }
}
