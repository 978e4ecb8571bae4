//! DULO (FAST'05): D-1 to D-13.
//!
//! The paper's traces cannot be had; the inputs that stand in for them, what is run on them and
//! what counts as a match were written down before the first result (`reproduce/dulo/`). What is run and what is read
//! from it is data there; here is D-1, an example that the core's own policies replay.

mod table1;

use std::path::Path;

use crate::{ReproduceError, data::DataPaper};

const GRID: &str = include_str!("../../../../reproduce/dulo/grid.toml");
/// Its rows.
pub(crate) const ROWS: &str = include_str!("../../../../reproduce/dulo/rows.toml");

/// The paper.
///
/// # Errors
/// Its files are wrong: a defect.
pub(crate) fn paper() -> Result<DataPaper, ReproduceError> {
    let known = table1::known().map_err(ReproduceError::Machine)?;
    let folder = Path::new("reproduce/dulo");
    DataPaper::new(("dulo", folder), [GRID, ROWS], None, known)
}

#[cfg(test)]
mod tests {
    use piebald_policy::dulo::Config;
    use piebald_report::Verdict;
    use toml::Table;

    use super::*;
    use crate::{Hooks, Options, System, Wanted};

    #[test]
    fn without_inputs_rows_that_need_some_say_so() {
        let rows = System::Dulo.targets().into_iter();
        let rows = rows.filter(|id| *id != "D-13");
        let options = Options {
            inputs: "/nowhere".into(),
            quick: true,
            repetitions: Some(1),
            only: rows.map(str::to_owned).collect(),
            ..Options::default()
        };
        let record = |_: &Wanted<'_>, _: &Path| Err(String::new());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &record,
            store: None,
        };
        let done = paper().and_then(|paper| paper.reproduce(&options, hooks));
        let done = done.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(done.targets.len(), 12);
        assert_eq!(done.targets[0].verdict, Verdict::Match);
        for t in &done.targets[1..] {
            assert_eq!(t.verdict, Verdict::NotRun, "{}", t.id);
            let why = t.why.as_deref().unwrap_or_default();
            assert!(why.contains("stand-ins.sh dulo"), "{}: {why}", t.id);
        }
    }

    /// Figures 3 and 4 let the policy choose its sections.
    #[test]
    fn sections_are_those_of_section_4_1_1() {
        let grid: Table = toml::from_str(GRID).unwrap_or_else(|e| panic!("{e}"));
        let sizes = grid["axis"]["at"].as_array().expect("a list");
        assert_eq!(sizes.len(), 30);
        for at in sizes {
            let mb = at["mb"].as_integer().unwrap_or(0) as u32;
            let config = Config::scaled(mb * 256);
            let [bank, evicting] = if mb < 80 { [4, 16] } else { [8, 64] };
            let sections = (config.bank / 256, config.evicting / 256);
            assert_eq!(sections, (bank, evicting), "{at}");
        }
    }
}
