//! The classes of programs that were measured once and are written down.

use std::collections::BTreeMap;

use piebald_policy::hvr::Class;
use serde::Deserialize;

use super::programs::Program;

const TEXT: &str = include_str!("../../../../reproduce/hvr/classes.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    class: BTreeMap<String, String>,
    /// References per microsecond alone.
    pace: BTreeMap<String, f64>,
}

/// The class of a program, and its references per microsecond alone, if they are known.
pub(super) type Measured = (Option<Class>, Option<f64>);

/// What was measured of each program, in their order.
///
/// # Errors
/// The list is wrong: a defect.
pub(super) fn measured(programs: &[Program]) -> Result<Vec<Measured>, String> {
    let file: File = toml::from_str(TEXT).map_err(|e| format!("classes.toml: {e}"))?;
    if file.schema != 1 {
        return Err(format!(
            "classes.toml: schema = {}; allowed: 1",
            file.schema
        ));
    }
    let known = |name: &String| programs.iter().any(|p| p.name == *name);
    let mut names = file.class.keys().chain(file.pace.keys());
    if let Some(name) = names.find(|name| !known(name)) {
        return Err(format!("classes.toml: {name}: no such program"));
    }
    let class = |program: &Program| {
        let Some(text) = file.class.get(&program.name) else {
            return Ok(None);
        };
        let named = Class::ALL.into_iter().find(|c| c.name() == text);
        let problem = || format!("classes.toml: {} = \"{text}\"", program.name);
        named.map(Some).ok_or_else(problem)
    };
    let pace = |program: &Program| match file.pace.get(&program.name) {
        None => Ok(None),
        Some(pace) if *pace > 0.0 && pace.is_finite() => Ok(Some(*pace)),
        Some(pace) => Err(format!(
            "classes.toml: {}: pace = {pace}; allowed: above 0",
            program.name
        )),
    };
    let each = programs.iter().map(|p| Ok((class(p)?, pace(p)?)));
    each.collect()
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
