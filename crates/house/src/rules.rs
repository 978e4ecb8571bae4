//! What every file owes to its readers.

/// Longest source file, in lines: more is not read in one sitting.
pub const MAX_LINES: usize = 700;

/// Text that belongs to one computer or one network and not to the project.
/// Written in halves, so that this file does not break its own rule.
const FOREIGN: &[(&str, &str)] = &[
    (concat!("/ho", "me/"), "a home directory"),
    (concat!("/ro", "ot/"), "a home directory"),
    (concat!("/Us", "ers/"), "a home directory"),
    (concat!("/wo", "rk/"), "a working directory"),
    (concat!("/tm", "p/t-"), "a build directory"),
    (concat!("crates", ".io"), "a package registry"),
    (concat!("pypi", ".org"), "a package registry"),
    (concat!("files.python", "hosted"), "a package registry"),
    (concat!("deb.deb", "ian.org"), "a package mirror"),
    (concat!("proxy.gol", "ang"), "a package registry"),
];

/// Marks of unfinished code.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
];

/// Files of a crate's `tests` that no program holds: `all` is the text of `tests/all.rs`, `manifest`
/// that of `Cargo.toml`, whose programs of tests are listed by hand.
pub fn tests_left_out(manifest: &str, all: &str, files: &[String]) -> Vec<String> {
    let is_in = |file: &&String| {
        let module = file.trim_end_matches(".rs");
        all.lines()
            .any(|line| line.trim() == format!("mod {module};"))
            || manifest.contains(&format!("path = \"tests/{file}\""))
    };
    files.iter().filter(|file| !is_in(file)).cloned().collect()
}

/// Findings in any text file: foreign paths and hosts.
pub fn text_defects(path: &str, text: &str) -> Vec<String> {
    let mut defects = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (word, what) in FOREIGN.iter().filter(|(word, _)| line.contains(word)) {
            defects.push(format!("{path}:{}: \"{word}\" is {what}", number + 1));
        }
    }
    defects
}

/// Findings in a Rust source file: length, missing module documentation,
/// unfinished code.
pub fn source_defects(path: &str, text: &str) -> Vec<String> {
    let mut defects = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        defects.push(format!("{path}: {lines} lines; allowed: {MAX_LINES}"));
    }
    if !text.starts_with("//!") {
        defects.push(format!(
            "{path}: does not open with module documentation (//!)"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(mark) = UNFINISHED.iter().find(|m| line.contains(**m)) {
            defects.push(format!(
                "{path}:{}: \"{mark}\" marks unfinished code",
                number + 1
            ));
        }
    }
    defects
}

/// What a crate's manifest must take from the workspace.
const INHERITED: &[(&str, &str)] = &[
    ("package", "version"),
    ("package", "edition"),
    ("package", "rust-version"),
    ("package", "license"),
    ("package", "publish"),
    ("lints", ""),
];

/// Findings in a crate's manifest: keys that it does not take from the
/// workspace.
///
/// # Errors
/// If it is not TOML.
pub fn manifest_defects(path: &str, text: &str) -> Result<Vec<String>, toml::de::Error> {
    let manifest: toml::Table = text.parse()?;
    let inherits = |(table, key): &&(&str, &str)| {
        let table = manifest.get(*table);
        let value = if key.is_empty() {
            table
        } else {
            table.and_then(|t| t.get(*key))
        };
        value
            .and_then(|v| v.get("workspace"))
            .and_then(toml::Value::as_bool)
            == Some(true)
    };
    let name = |(table, key): &(&str, &str)| match key.is_empty() {
        true => format!("{table}."),
        false => format!("{table}.{key}."),
    };
    Ok(INHERITED
        .iter()
        .filter(|key| !inherits(key))
        .map(|key| format!("{path}: {}workspace = true is missing", name(key)))
        .collect())
}
