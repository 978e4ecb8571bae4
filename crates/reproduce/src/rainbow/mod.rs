//! Rainbow (thesis), and beyond.
//!
//! SPEC CPU2006 cannot be passed on; its nine programs have stand-ins. What is run and what is read from it
//! is data (`reproduce/rainbow`); here is what follows from the machine alone.

mod constants;

use std::path::Path;

use crate::{ReproduceError, data::DataPaper};

/// The stand-ins.
pub(crate) const PROGRAMS: &str = include_str!("../../../../reproduce/rainbow/programs.toml");
const GRID: &str = include_str!("../../../../reproduce/rainbow/grid.toml");
/// Its rows.
pub(crate) const ROWS: &str = include_str!("../../../../reproduce/rainbow/rows.toml");

/// The paper.
///
/// # Errors
/// Its files or the machine are wrong: a defect.
pub(crate) fn paper() -> Result<DataPaper, ReproduceError> {
    let machine =
        piebald_hw::presets::load("w3540").map_err(|e| ReproduceError::Machine(e.to_string()))?;
    let known = constants::known(&machine).map_err(ReproduceError::Machine)?;
    let folder = Path::new("reproduce/rainbow");
    DataPaper::new(("rainbow", folder), [GRID, ROWS], Some(PROGRAMS), known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_ins;

    #[test]
    fn the_stand_ins_are_those_of_the_thesis() {
        let programs = stand_ins(PROGRAMS).unwrap_or_else(|e| panic!("{e}"));
        let class = |number: &str| {
            let found = programs.iter().find(|p| p.stands_for.starts_with(number));
            found.map(|p| p.class.clone()).unwrap_or_default()
        };
        // Table II.
        for number in ["401", "471", "483"] {
            assert_eq!(class(number), "R", "{number}");
        }
        for number in ["429", "450", "473", "482"] {
            assert_eq!(class(number), "Y", "{number}");
        }
        for number in ["437", "462"] {
            assert_eq!(class(number), "G", "{number}");
        }
        assert_eq!(programs.len(), 9);
    }

    #[test]
    fn the_mixes_are_those_of_table_iii() {
        let grid: toml::Table = toml::from_str(GRID).unwrap_or_else(|e| panic!("{e}"));
        let programs = stand_ins(PROGRAMS).unwrap_or_else(|e| panic!("{e}"));
        let mixes = grid["axis"]["mix"].as_array().expect("a list");
        assert_eq!(mixes.len(), 10);
        for mix in mixes {
            let column = |key: &str| mix[key].as_str().expect("a name");
            let class = |key: &str| {
                let found = programs.iter().find(|p| p.name == column(key));
                found.map_or("", |p| p.class.as_str())
            };
            let classes = ["target", "a", "b", "c"].map(class);
            // "2R_1Y_1G" has two programs that are red, one yellow, one green.
            for part in column("name").split('_') {
                let (n, letter) = part.split_at(1);
                let found = classes.iter().filter(|class| **class == letter).count();
                assert_eq!(n, found.to_string(), "{mix}");
            }
        }
    }
}
