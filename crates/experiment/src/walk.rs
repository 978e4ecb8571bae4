//! The keys of a file beside what their types say of them.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::{
    KeyPath,
    merge::Node,
    reference::{Schemas, keys_of},
};

/// Looks at a value and its schema; whether what is inside is looked at as well.
type Look<'l> = dyn FnMut(&Schemas, (&KeyPath, &Node<'_>), &Value) -> bool + 'l;

/// Looks at each key that a file gives and that there is, the outer ones first; items of lists follow their
/// lists.
pub(crate) fn each_key(file: &DeTable<'_>, look: &mut Look<'_>) {
    let schemas = Schemas::new();
    keys(&schemas, (&KeyPath::default(), file), &schemas.root, look);
}

fn keys(
    schemas: &Schemas,
    (at, table): (&KeyPath, &DeTable<'_>),
    schema: &Value,
    look: &mut Look<'_>,
) {
    let Some(known) = keys_of(schema) else {
        return;
    };
    for (key, value) in table {
        if let Some(schema) = known.get(key.get_ref().as_ref()) {
            value_of(schemas, (&at.key(key.get_ref()), value), schema, look);
        }
    }
}

fn value_of(
    schemas: &Schemas,
    (at, value): (&KeyPath, &Node<'_>),
    schema: &Value,
    look: &mut Look<'_>,
) {
    if !look(schemas, (at, value), schema) {
        return;
    }
    match value.get_ref() {
        DeValue::Table(table) => keys(schemas, (at, table), &schemas.resolved(schema), look),
        DeValue::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                value_of(schemas, (&at.item(i), item), &schema["items"], look);
            }
        }
        _ => {}
    }
}
