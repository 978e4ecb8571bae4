//! The keys of a file beside what their types say of them.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::{
    KeyPath,
    merge::Node,
    reference::{SCHEMAS, keys_of},
};

/// Looks at a value and its schema; whether what is inside is looked at as well.
type Look<'l> = dyn FnMut((&KeyPath, &Node<'_>), &Value) -> bool + 'l;

/// Looks at each key that a file gives and that there is, the outer ones first; items of lists follow their
/// lists.
pub(crate) fn each_key(file: &DeTable<'_>, look: &mut Look<'_>) {
    keys((&KeyPath::default(), file), &SCHEMAS.root, look);
}

fn keys((at, table): (&KeyPath, &DeTable<'_>), schema: &Value, look: &mut Look<'_>) {
    let Some(known) = keys_of(schema) else {
        return;
    };
    for (key, value) in table {
        if let Some(schema) = known.get(key.get_ref().as_ref()) {
            value_of((&at.key(key.get_ref()), value), schema, look);
        }
    }
}

fn value_of((at, value): (&KeyPath, &Node<'_>), schema: &Value, look: &mut Look<'_>) {
    if !look((at, value), schema) {
        return;
    }
    match value.get_ref() {
        DeValue::Table(table) => keys((at, table), SCHEMAS.resolved(schema), look),
        DeValue::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                value_of((&at.item(i), item), &schema["items"], look);
            }
        }
        _ => {}
    }
}
