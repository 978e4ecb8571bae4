//! JSON Schemas of the documents that are written, made from the types that are written.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::{Replay, Reproduction, Study};

/// Names of the documents that have a schema: what `study`, a study with axes, `replay` and
/// `reproduce` write with `--json`.
pub const DOCUMENTS: [&str; 4] = ["study", "sweep", "replay", "reproduction"];

/// The schema of a document (JSON Schema, draft 2020-12); `None` if there is none of that name.
/// Descriptions are the fields' own, with their units; a number that may be unknown is a number or
/// `null`. Keys that a newer program adds are no error.
pub fn document_schema(name: &str) -> Option<Value> {
    Some(match name {
        "study" => schema_of::<Study>(name),
        "sweep" => schema_of::<Vec<Study>>(name),
        "replay" => schema_of::<Replay>(name),
        "reproduction" => schema_of::<Reproduction>(name),
        _ => return None,
    })
}

fn schema_of<T: JsonSchema>(name: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let root = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = Value::from(root);
    without_defaults(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), format!("piebald {name}").into());
    }
    schema
}

/// What a reader would take for a key that is not there is no part of what is written.
fn without_defaults(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // Below `properties` stand names of fields, which may be any word.
            map.remove("default");
            for (key, inner) in map {
                match (key.as_str(), inner) {
                    ("properties" | "$defs", Value::Object(named)) => each(named),
                    (_, inner) => without_defaults(inner),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(without_defaults),
        _ => {}
    }
}

fn each(named: &mut Map<String, Value>) {
    named.values_mut().for_each(without_defaults);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_has_a_schema_with_units_and_unknown_numbers() {
        for name in DOCUMENTS {
            let schema = document_schema(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(schema["title"], format!("piebald {name}"));
            assert!(!schema.to_string().contains("\"default\":"), "{name}");
        }
        assert_eq!(document_schema("stud"), None);
        let study = document_schema("study").unwrap_or_default();
        let seconds = &study["properties"]["host_seconds"];
        assert_eq!(seconds["type"], serde_json::json!(["number", "null"]));
        assert!(
            seconds["description"]
                .as_str()
                .is_some_and(|d| d.contains("seconds"))
        );
        let required = study["required"].as_array().map(Vec::len);
        assert!(required > Some(20), "{required:?}");
        // It is only there in a sweep.
        assert!(!study["required"].to_string().contains("axes"));
    }
}
