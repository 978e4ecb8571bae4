//! Tables are tables: a list in the place of one would be read key after key.

use toml::de::{DeTable, DeValue};

use crate::{
    Problem,
    merge::shown,
    reference::{SCHEMAS, keys_of},
    walk::each_key,
};

/// What stands where a file has a table or a list of tables, and is none.
pub(crate) fn no_tables(file: &DeTable<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    each_key(file, &mut |(at, value), schema| {
        let is_table = |schema| keys_of(SCHEMAS.resolved(schema)).is_some();
        let allowed = match value.get_ref() {
            DeValue::Table(_) if is_table(schema) => return true,
            _ if is_table(schema) => "a table",
            DeValue::Array(_) => return true,
            _ if is_table(&schema["items"]) => "a list of tables",
            _ => return true,
        };
        problems.push(match value.get_ref() {
            // Its keys say nothing of what it is.
            DeValue::Table(_) => Problem::at(at.clone(), format!("is a table; allowed: {allowed}")),
            _ => Problem::refuse(at.clone(), shown(value), allowed),
        });
        false
    });
    problems
}
