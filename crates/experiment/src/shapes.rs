//! Tables are tables: a list in the place of one would be read key after key.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::{
    KeyPath, Problem,
    merge::{Node, shown},
    reference::{Schemas, keys_of},
};

/// What stands where a file has a table or a list of tables, and is none.
pub(crate) fn no_tables(file: &DeTable<'_>) -> Vec<Problem> {
    let schemas = Schemas::new();
    let mut problems = Vec::new();
    inside(
        &schemas,
        (&KeyPath::default(), file),
        &schemas.root,
        &mut problems,
    );
    problems
}

fn inside(
    schemas: &Schemas,
    (at, table): (&KeyPath, &DeTable<'_>),
    schema: &Value,
    problems: &mut Vec<Problem>,
) {
    let Some(keys) = keys_of(schema) else {
        return;
    };
    for (key, value) in table {
        if let Some(schema) = keys.get(key.get_ref().as_ref()) {
            look(schemas, (&at.key(key.get_ref()), value), schema, problems);
        }
    }
}

fn look(
    schemas: &Schemas,
    (at, value): (&KeyPath, &Node<'_>),
    schema: &Value,
    problems: &mut Vec<Problem>,
) {
    let of = schemas.resolved(schema);
    let items = schemas.resolved(&schema["items"]);
    let mut refuse = |allowed: &str| {
        problems.push(match value.get_ref() {
            // Its keys say nothing of what it is.
            DeValue::Table(_) => Problem::at(at.clone(), format!("is a table; allowed: {allowed}")),
            _ => Problem::refuse(at.clone(), shown(value), allowed),
        });
    };
    match value.get_ref() {
        DeValue::Table(table) if keys_of(&of).is_some() => {
            inside(schemas, (at, table), &of, problems);
        }
        _ if keys_of(&of).is_some() => refuse("a table"),
        DeValue::Array(list) if keys_of(&items).is_some() => {
            for (i, item) in list.iter().enumerate() {
                look(schemas, (&at.item(i), item), &schema["items"], problems);
            }
        }
        _ if keys_of(&items).is_some() => refuse("a list of tables"),
        _ => {}
    }
}
