//! DULO (FAST'05): D-1 to D-13.
//!
//! The paper's traces cannot be had; the inputs that stand in for them, what is run on them and
//! what counts as a match were written down before the first result (`reproduce/dulo/`). What is run and what is read
//! from it is data there; here is D-1, an example that the core's own policies replay.

mod table1;

use std::path::Path;

use crate::{ReproduceError, data::DataPaper};

const GRID: &str = include_str!("../../../../reproduce/dulo/grid.toml");
const ROWS: &str = include_str!("../../../../reproduce/dulo/rows.toml");

/// Ids of the targets, in order.
pub(crate) const TARGETS: [&str; 13] = [
    "D-1", "D-2", "D-3", "D-4", "D-5", "D-6", "D-7", "D-8", "D-9", "D-10", "D-11", "D-12", "D-13",
];

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
    use toml::{Table, Value};

    use super::*;
    use crate::{Hooks, Options, System, Wanted};

    #[test]
    fn the_files_have_the_targets_and_the_title_of_the_system() {
        let paper = paper().and_then(DataPaper::checked);
        let paper = paper.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(paper.ids(), TARGETS);
        assert_eq!(paper.title(), System::Dulo.title());
        assert_eq!(paper.name(), System::Dulo.name());
    }

    #[test]
    fn without_inputs_rows_that_need_some_say_so() {
        let rows = TARGETS.iter().filter(|id| **id != "D-13");
        let options = Options {
            inputs: "/nowhere".into(),
            quick: true,
            repetitions: Some(1),
            only: rows.map(|id| (*id).to_owned()).collect(),
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

    /// Sizes of the grid are those that the list of inputs names, and sections those that the policy takes by itself.
    #[test]
    fn the_grid_has_the_sizes_of_the_list_of_inputs() {
        let text = include_str!("../../../../reproduce/dulo/inputs.toml");
        let table = |text: &str| toml::from_str::<Table>(text).unwrap_or_else(|e| panic!("{e}"));
        let (list, grid) = (table(text), table(GRID));
        let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let numbers = |value: &Value| {
            let numbers = all(value).into_iter();
            numbers.filter_map(|n| n.as_integer()).collect::<Vec<i64>>()
        };
        let sizes = |input: &str, only_quick: bool| {
            let at = all(&grid["axis"]["at"]).into_iter();
            let at = at.filter(|at| at["input"].as_str() == Some(input));
            let at = at.filter(|at| !only_quick || at.get("only").is_none());
            at.map(|at| at["mb"].as_integer().unwrap_or(0))
                .collect::<Vec<i64>>()
        };
        let inputs = all(&list["input"]);
        for input in inputs
            .iter()
            .filter(|input| input.get("memory_mb").is_some())
        {
            let name = input["name"].as_str().unwrap_or_default();
            assert_eq!(sizes(name, false), numbers(&input["memory_mb"]), "{name}");
            assert_eq!(sizes(name, true), numbers(&input["at"]), "{name}");
            let pages = |key: &str| input[key].as_integer().unwrap_or(0) as u32 * 256;
            let own = sizes(name, false).into_iter();
            for mb in own.filter(|mb| name == "viewperf" || *mb >= 80) {
                let config = Config::scaled(mb as u32 * 256);
                assert_eq!(
                    (config.bank, config.evicting),
                    (pages("bank_mb"), pages("evicting_mb")),
                    "{name} {mb}"
                );
            }
        }
        let of_axis = |axis: &str| -> Vec<i64> {
            let values = all(&grid["axis"][axis]).into_iter();
            values.filter_map(|v| v["mb"].as_integer()).collect()
        };
        let sensitivity = &list["sensitivity"];
        assert_eq!(of_axis("bank"), numbers(&sensitivity["bank_mb"]));
        assert_eq!(of_axis("section"), numbers(&sensitivity["evicting_mb"]));
        for table in all(&grid["axis"]["table"]) {
            let name = table["name"].as_str().unwrap_or_default();
            assert_eq!(table["mb"], sensitivity["inputs"][name], "{name}");
        }
        assert_eq!(of_axis("lxr"), numbers(&list["lxr"]["memory_mb"]));
        assert_eq!(of_axis("smm"), numbers(&list["smm"]["memory_mb"]));
    }
}
