//! The tables of all keys, printed from the types.

use std::{fmt::Write as _, sync::LazyLock};

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::Experiment;

/// The keys of one table of a file.
pub struct KeyTable {
    /// Its path, as in `policy.hvr`; empty for the file itself.
    pub name: String,
    /// What each key may be, its default and its meaning, as Markdown.
    pub text: String,
}

/// The schema of a file (JSON Schema, draft 2020-12), for editors that complete and check TOML by one.
/// The extension `x-hosts` names the only host that reads a key, where not all do.
pub fn file_schema() -> Value {
    SCHEMAS.root.clone()
}

/// The keys of all tables: what each may be, its default and its meaning, and the meaning of
/// each word, as Markdown.
pub fn reference() -> String {
    let tables = tables().into_iter().map(|table| table.text);
    tables.collect::<Vec<_>>().join("\n")
}

/// Those of the types. Making them takes longer than reading a file.
pub(crate) static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::new);

/// The schema of a file, and those that it refers to.
pub(crate) struct Schemas {
    /// The file's own.
    pub root: Value,
    definitions: Map<String, Value>,
}

impl Schemas {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12();
        let root = settings
            .into_generator()
            .into_root_schema_for::<Experiment>();
        let root = Value::from(root);
        let definitions = root["$defs"].as_object().cloned().unwrap_or_default();
        Self { root, definitions }
    }

    /// The schema that a value refers to, without "or nothing".
    pub fn resolved<'s>(&'s self, value: &'s Value) -> &'s Value {
        let either = value["anyOf"].as_array().and_then(|either| either.first());
        let inner = either.unwrap_or(value);
        let target = inner["$ref"].as_str().and_then(|r| r.rsplit('/').next());
        let target = target.and_then(|name| self.definitions.get(name));
        target.unwrap_or(inner)
    }
}

/// The keys of a table's schema, and theirs.
pub(crate) fn keys_of(schema: &Value) -> Option<&Map<String, Value>> {
    schema["properties"].as_object()
}

/// The keys of each table, the file's own first.
pub fn tables() -> Vec<KeyTable> {
    let mut tables = Vec::new();
    add(&mut tables, ("", "The file"), &SCHEMAS.root);
    tables
}

/// Adds a table and those inside it.
fn add(tables: &mut Vec<KeyTable>, (name, title): (&str, &str), schema: &Value) {
    let Some(keys) = keys_of(schema) else {
        return;
    };
    let needed = schema["required"].as_array().cloned().unwrap_or_default();
    let mut text = format!("### {title}\n\n{}\n\n", described(schema));
    text += "| key | values | default | meaning |\n|---|---|---|---|\n";
    let mut words = String::new();
    let mut inner = Vec::new();
    for (key, value) in keys {
        let of = SCHEMAS.resolved(value);
        let is_list = value["type"] == "array";
        let item = if is_list {
            SCHEMAS.resolved(&value["items"])
        } else {
            of
        };
        if item["properties"].is_object() {
            inner.push((path(name, key), is_list, item));
        }
        let is_needed = needed.iter().any(|k| k == key);
        let host = value["x-hosts"].as_str();
        let host = host.map_or(String::new(), |host| format!(" Host `{host}` only."));
        let cells = [
            values(value, of),
            default(value, is_needed),
            described(value) + &host,
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| `{key}` | {} |", cells.join(" | "));
        meanings(&mut words, key, of);
    }
    text += &words;
    tables.push(KeyTable {
        name: name.to_owned(),
        text,
    });
    for (name, is_list, item) in inner {
        let title = if is_list {
            format!("`[[{name}]]`")
        } else {
            format!("`[{name}]`")
        };
        add(tables, (&name, &title), item);
    }
}

/// The path of a table inside another.
fn path(outer: &str, key: &str) -> String {
    match outer {
        "" => key.to_owned(),
        _ => format!("{outer}.{key}"),
    }
}

/// What a key may be.
fn values(value: &Value, resolved: &Value) -> String {
    for schema in [value, resolved] {
        if let Some(text) = schema["x-values"].as_str() {
            return text.to_owned();
        }
        if let Some(words) = schema["enum"].as_array() {
            let words = words.iter().filter_map(Value::as_str);
            return words
                .map(|w| format!("`\"{w}\"`"))
                .collect::<Vec<_>>()
                .join(", ");
        }
    }
    let kind = match &resolved["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    let items = resolved["items"]["x-values"].as_str();
    match (kind, items) {
        (Some("boolean"), _) => "`true`, `false`".to_owned(),
        (Some("string"), _) => "text".to_owned(),
        (Some("array"), Some(items)) => format!("a list of {items}"),
        (Some("array"), None) if resolved["items"]["type"] == "string" => {
            "a list of texts".to_owned()
        }
        (Some("array"), None) if resolved["items"]["type"] == "integer" => {
            "a list of whole numbers".to_owned()
        }
        (Some("array"), None) => "tables".to_owned(),
        _ => "a table".to_owned(),
    }
}

/// A key's default, if the schema has one.
fn default(value: &Value, is_needed: bool) -> String {
    match value.get("default") {
        _ if is_needed => "needed".to_owned(),
        None | Some(Value::Null | Value::Object(_)) => String::new(),
        Some(Value::Array(list)) if list.is_empty() => String::new(),
        Some(given) => format!("`{given}`"),
    }
}

/// A list of a key's words and what they mean.
fn meanings(out: &mut String, key: &str, schema: &Value) {
    let lists = (schema["enum"].as_array(), schema["x-meanings"].as_array());
    let (Some(words), Some(meanings)) = lists else {
        return;
    };
    let _ = writeln!(out, "\nWords of `{key}`:\n");
    for (word, meaning) in words.iter().zip(meanings) {
        let (word, meaning) = (word.as_str(), meaning.as_str());
        let _ = writeln!(
            out,
            "- `\"{}\"`: {}",
            word.unwrap_or(""),
            meaning.unwrap_or("")
        );
    }
}

/// What a schema's comment says, on one line.
fn described(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or("")
        .replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_every_word_has_a_meaning() {
        let tables = tables();
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        for name in [
            "",
            "machine",
            "program",
            "program.change",
            "policy",
            "policy.hvr",
            "files",
        ] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        for table in &tables {
            for line in table.text.lines().filter(|line| line.starts_with("| `")) {
                assert!(!line.ends_with("|  |"), "{}: {line}", table.name);
                assert!(!line.contains("|  | |"), "{}: {line}", table.name);
            }
            for line in table.text.lines().filter(|line| line.starts_with("- ")) {
                assert!(line.ends_with('.'), "{}: {line}", table.name);
            }
        }
    }

    #[test]
    fn values_and_defaults_come_from_the_types() {
        let all = reference();
        for line in [
            "| `repetitions` | 1 to 1000 | `3` | Runs of each policy",
            "| `cores` | hardware threads such as \"0-3,6\" |  | Hardware threads",
            "| `name` | text | needed | Its name",
            "| `until_us` | 1 to 60000000 | needed |",
            "- `\"each-target\"`: Each target with all polluters",
            "### `[[program.change]]`",
        ] {
            assert!(all.contains(line), "{line}\n{all}");
        }
    }
}
