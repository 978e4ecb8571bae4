//! The classes of programs that were measured once and are written down, in the grid's axis of programs.

use piebald_policy::hvr::Class;
use serde::Deserialize;

use super::{GRID, programs::Program};

#[derive(Deserialize)]
struct File {
    axis: Axes,
}

#[derive(Deserialize)]
struct Axes {
    one: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    class: String,
    /// References per microsecond alone.
    pace: f64,
}

/// The class of a program, and its references per microsecond alone, if they are known.
pub(super) type Measured = (Option<Class>, Option<f64>);

/// What was measured of each program, in their order.
///
/// # Errors
/// The list is wrong: a defect.
pub(super) fn measured(programs: &[Program]) -> Result<Vec<Measured>, String> {
    let file: File = toml::from_str(GRID).map_err(|e| format!("grid.toml: {e}"))?;
    let known = |name: &String| programs.iter().any(|p| p.name == *name);
    if let Some(entry) = file.axis.one.iter().find(|entry| !known(&entry.name)) {
        return Err(format!(
            "grid.toml: axis.one: {}: no such program",
            entry.name
        ));
    }
    let of = |program: &Program| {
        let Some(entry) = file
            .axis
            .one
            .iter()
            .find(|entry| entry.name == program.name)
        else {
            return Ok((None, None));
        };
        let word = |class: &Class| class.name().eq_ignore_ascii_case(&entry.class);
        let class = Class::ALL.into_iter().find(word);
        let class = class.ok_or_else(|| format!("grid.toml: {}: {}", entry.name, entry.class))?;
        Ok((Some(class), Some(entry.pace)))
    };
    programs.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_one_thread_have_classes_and_classes_have_programs() {
        let programs = super::super::programs::programs().expect("the list");
        let classes = measured(&programs).expect("the classes");
        for (program, (class, pace)) in programs.iter().zip(&classes) {
            assert_eq!(class.is_some(), program.threads == 1, "{}", program.name);
            assert_eq!(pace.is_some(), class.is_some(), "{}", program.name);
        }
        for class in Class::ALL {
            let of = classes.iter().filter(|c| c.0 == Some(class)).count();
            assert!(of >= 3, "{class}: {of}");
        }
    }
}
