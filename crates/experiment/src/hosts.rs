//! What runs experiments, and which keys each has.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::{
    KeyPath, Problem, Words,
    merge::Node,
    reference::{Schemas, keys_of},
    words::words,
};

words! {
    /// What runs an experiment.
    pub enum HostName {
        /// The modelled machine and the modelled kernel.
        Model = "model",
        /// A stock kernel in a guest, watched by the modelled machine.
        Guest = "guest",
    }
}

/// Keys that a file gives and that are another host's.
pub(crate) fn not_of(host: HostName, file: &DeTable<'_>) -> Vec<Problem> {
    let schemas = Schemas::new();
    let mut problems = Vec::new();
    look(
        &schemas,
        host,
        (&KeyPath::default(), file),
        &schemas.root,
        &mut problems,
    );
    problems
}

fn look(
    schemas: &Schemas,
    host: HostName,
    (at, table): (&KeyPath, &DeTable<'_>),
    schema: &Value,
    problems: &mut Vec<Problem>,
) {
    let Some(keys) = keys_of(schema) else {
        return;
    };
    for (key, value) in table {
        let (path, Some(schema)) = (at.key(key.get_ref()), keys.get(key.get_ref().as_ref())) else {
            continue;
        };
        match schema["x-hosts"].as_str() {
            Some(other) if other != host.word() => {
                let says = format!(
                    "is for the host {other}, not for {}; allowed: in a table [on.{other}]",
                    host.word()
                );
                problems.push(Problem::at(path, says));
            }
            _ => inside(schemas, host, (&path, value), schema, problems),
        }
    }
}

/// Looks into what is a table or a list of tables.
fn inside(
    schemas: &Schemas,
    host: HostName,
    (at, value): (&KeyPath, &Node<'_>),
    schema: &Value,
    problems: &mut Vec<Problem>,
) {
    match value.get_ref() {
        DeValue::Table(table) => {
            let schema = schemas.resolved(schema);
            look(schemas, host, (at, table), &schema, problems);
        }
        DeValue::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                inside(
                    schemas,
                    host,
                    (&at.item(i), item),
                    &schema["items"],
                    problems,
                );
            }
        }
        _ => {}
    }
}
