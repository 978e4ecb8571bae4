//! HVR ("Rethinking Memory Management in Modern Operating System: Horizontal, Vertical or
//! Random?"): H-1 to H-20, and H-B1 to H-B3 beyond it.
//!
//! What is run and what is read from it is data (`reproduce/hvr`). Programs, mixes and what counts as a match were
//! written down before the first result.

use std::path::Path;

use crate::{
    ReproduceError,
    data::{DataPaper, Known},
};

const GRID: &str = include_str!("../../../reproduce/hvr/grid.toml");
/// Its rows.
pub(crate) const ROWS: &str = include_str!("../../../reproduce/hvr/rows.toml");
const PROGRAMS: &str = include_str!("../../../reproduce/hvr/programs.toml");

/// The paper.
///
/// # Errors
/// Its files are wrong: a defect.
pub(crate) fn paper() -> Result<DataPaper, ReproduceError> {
    let folder = Path::new("reproduce/hvr");
    DataPaper::new(("hvr", folder), [GRID, ROWS], Some(PROGRAMS), Known::new())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::stand_ins;

    #[test]
    fn the_list_has_the_programs_that_the_protocol_counts_and_the_grid_their_classes() {
        let list = stand_ins(PROGRAMS).unwrap_or_else(|e| panic!("{e}"));
        let (one, eight): (Vec<_>, Vec<_>) = list.iter().partition(|p| p.threads.is_none());
        assert!(eight.iter().all(|p| p.threads == Some(8)));
        let recorded = |all: &[&crate::StandIn]| all.iter().filter(|p| p.builtin.is_none()).count();
        assert_eq!((one.len(), recorded(&one)), (45, 33));
        assert_eq!((eight.len(), recorded(&eight)), (9, 7));
        for p in &list {
            assert!(p.why.len() > 20, "{}", p.name);
            let printed = ["", "CCF", "LLCM", "LLCH", "LLCT", "LLCH or LLCM"];
            assert!(printed.contains(&p.class.as_str()), "{}", p.name);
            assert!(p.class.is_empty() || !p.stands_for.is_empty(), "{}", p.name);
        }
        let grid: toml::Table = toml::from_str(GRID).unwrap_or_else(|e| panic!("{e}"));
        let names = |axis: &str, of: &dyn Fn(&toml::Value) -> Option<String>| -> BTreeSet<String> {
            let values = grid["axis"][axis].as_array().expect("a list");
            values.iter().filter_map(of).collect()
        };
        let own = |all: &[&crate::StandIn]| all.iter().map(|p| p.name.clone()).collect();
        let named = |value: &toml::Value| Some(value.get("name")?.as_str()?.to_owned());
        assert_eq!(names("one", &named), own(&one));
        assert_eq!(
            names("eight", &|v| v.as_str().map(str::to_owned)),
            own(&eight)
        );
        for class in ["ccf", "llcm", "llch", "llct"] {
            let of = |value: &toml::Value| {
                (value.get("class")?.as_str()? == class).then(|| named(value))?
            };
            let of = names("one", &of);
            assert!(of.len() >= 3, "{class}: {of:?}");
        }
    }
}
