//! SRM-buffer (EuroSys'11): S-1 to S-21; what the paper leaves open, S-O1 and S-O2; and beyond it,
//! S-B1 and S-B2.
//!
//! What is run and what is read from it is data (`reproduce/srm`); here is what follows from the
//! machine alone, and whether queries of PostgreSQL were recorded. Programs, machines and what counts as
//! a match were written down before the first result.

mod constants;

use std::path::Path;

use crate::{
    ReproduceError,
    data::{DataPaper, is},
};

const GRID: &str = include_str!("../../../../reproduce/srm/grid.toml");
/// Its rows.
pub(crate) const ROWS: &str = include_str!("../../../../reproduce/srm/rows.toml");
/// Programs that are recorded.
pub(crate) const PROGRAMS: &str = include_str!("../../../../reproduce/srm/programs.toml");

/// Recordings of PostgreSQL that both forms need.
const QUERIES: [&str; 3] = ["scan.pbr", "join1.pbr", "join4.pbr"];

/// The paper, with the inputs in this folder.
///
/// # Errors
/// Its files or the machine are wrong: a defect.
pub(crate) fn paper(inputs: &Path) -> Result<DataPaper, ReproduceError> {
    let mut known = constants::known().map_err(ReproduceError::Machine)?;
    let recorded = QUERIES.iter().all(|file| inputs.join(file).is_file());
    known.insert("postgresql".to_owned(), is(recorded));
    let folder = Path::new("reproduce/srm");
    DataPaper::new(("srm", folder), [GRID, ROWS], Some(PROGRAMS), known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_recordings_of_postgresql_the_files_are_as_they_must_be() {
        let recorded = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        for file in QUERIES {
            std::fs::write(recorded.path().join(file), "").unwrap_or_else(|e| panic!("{e}"));
        }
        let paper = paper(recorded.path()).and_then(DataPaper::checked);
        paper.unwrap_or_else(|e| panic!("{e}"));
    }
}
