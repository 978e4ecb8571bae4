//! The classes of programs that were measured once and are written down.

use std::collections::BTreeMap;

use piebald_lab::rooms::policy::hvr::Class;
use serde::Deserialize;

use super::programs::Program;

const TEXT: &str = include_str!("../../../../reproduce/hvr/classes.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    class: BTreeMap<String, String>,
}

/// The class of each program, in their order; none for those that have none.
///
/// # Errors
/// The list is wrong: a defect.
pub(super) fn measured(programs: &[Program]) -> Result<Vec<Option<Class>>, String> {
    let file: File = toml::from_str(TEXT).map_err(|e| format!("classes.toml: {e}"))?;
    if file.schema != 1 {
        return Err(format!(
            "classes.toml: schema = {}; allowed: 1",
            file.schema
        ));
    }
    let known = |name: &String| programs.iter().any(|p| p.name == *name);
    if let Some(name) = file.class.keys().find(|name| !known(name)) {
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
    programs.iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_one_thread_have_classes_and_classes_have_programs() {
        let programs = super::super::programs::programs().expect("the list");
        let classes = measured(&programs).expect("the classes");
        // One could not be measured in the time that there was.
        const UNKNOWN: &str = "hashjoin";
        for (program, class) in programs.iter().zip(&classes) {
            let has_one = program.threads == 1 && program.name != UNKNOWN;
            assert_eq!(class.is_some(), has_one, "{}", program.name);
        }
        for class in Class::ALL {
            let of = classes.iter().filter(|c| **c == Some(class)).count();
            assert!(of >= 3, "{class}: {of}");
        }
    }
}
