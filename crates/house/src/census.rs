//! The size of the repository, room by room: code lines, functions, circles of files.
//!
//! Counted is the code of the product and of what builds, boots and reproduces it. Left out
//! are tests (directories named so, and what only `cfg(test)` compiles), fuzz targets,
//! benches, examples and this crate. What is counted of a line is said in [`crate::lines`].

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    lines::{self, Language},
    packages::{Circle, LEFT_OUT, packages},
    rust::Source,
};

/// Longest function that is not counted as long, in lines.
pub const LONG_FUNCTION: usize = 60;

/// Crates that are part of no program.
const DEV_CRATES: [&str; 1] = ["house"];

/// Directories beside `crates` that are rooms.
const OTHER_ROOMS: [&str; 3] = ["kernel", "scripts", "reproduce"];

/// The room of the scripts at the root.
const ROOT_ROOM: &str = ".ci and root";

/// The numbers of a room, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Code lines of each language.
    pub lines: BTreeMap<Language, usize>,
    /// Lengths of the Rust functions in lines, sorted.
    pub functions: Vec<usize>,
}

impl Counts {
    /// Code lines of all languages.
    pub fn sum(&self) -> usize {
        self.lines.values().sum()
    }

    /// The length that this share of the functions, in percent, does not exceed (nearest
    /// rank). `None` if there is no function.
    pub fn percentile(&self, percent: usize) -> Option<usize> {
        let rank = (self.functions.len() * percent).div_ceil(100);
        self.functions.get(rank.max(1) - 1).copied()
    }

    /// Number of functions of more than [`LONG_FUNCTION`] lines.
    pub fn long_functions(&self) -> usize {
        self.functions
            .iter()
            .filter(|l| **l > LONG_FUNCTION)
            .count()
    }

    fn add(&mut self, other: &Self) {
        for (language, lines) in &other.lines {
            *self.lines.entry(*language).or_default() += lines;
        }
        self.functions.extend(&other.functions);
        self.functions.sort_unstable();
    }
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The numbers of each room.
    pub rooms: BTreeMap<String, Counts>,
    /// Circles of two or more files, the largest first.
    pub circles: Vec<Circle>,
}

/// The room of a file, by its path from the root. `None` if it is not counted.
pub fn room_of(path: &str) -> Option<String> {
    let (directory, _) = path.rsplit_once('/').unwrap_or_default();
    let parts: Vec<&str> = directory.split('/').collect();
    if parts.iter().any(|part| LEFT_OUT.contains(part)) {
        return None;
    }
    match parts[..] {
        [""] | [".ci", ..] => Some(ROOT_ROOM.to_owned()),
        ["crates", name, ..] if !DEV_CRATES.contains(&name) => Some(format!("crates/{name}")),
        [name, ..] if OTHER_ROOMS.contains(&name) => Some(name.to_owned()),
        _ => None,
    }
}

/// Counts the texts of a repository, given by their paths from its root. A package's manifest
/// must be among them.
///
/// # Errors
/// A text that cannot be read in its language, with its path.
pub fn count(texts: &BTreeMap<String, String>) -> Result<Census, String> {
    let mut census = Census::default();
    let packages = packages(texts)?;
    let mut rust: BTreeMap<String, (&Source, bool)> = BTreeMap::new();
    for package in &packages {
        let code = package.code_files();
        for (path, source) in &package.sources {
            let whole = format!("{}/{path}", package.directory);
            rust.insert(whole, (source, code.contains(path)));
        }
        if room_of(&format!("{}/Cargo.toml", package.directory)).is_some() {
            census.circles.extend(package.circles());
        }
    }
    census
        .circles
        .sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    for (path, text) in texts {
        let (Some(room), Some(language)) = (room_of(path), Language::of(path, text)) else {
            continue;
        };
        let counts = match rust.get(path) {
            Some((_, false)) => continue,
            Some((source, true)) => count_source(source),
            None => count_text(language, text).map_err(|e| format!("{path}:{e}"))?,
        };
        census.rooms.entry(room).or_default().add(&counts);
    }
    Ok(census)
}

fn count_source(source: &Source) -> Counts {
    let mut functions = source.functions();
    functions.sort_unstable();
    Counts {
        lines: BTreeMap::from([(Language::Rust, source.code_lines())]),
        functions,
    }
}

fn count_text(language: Language, text: &str) -> Result<Counts, String> {
    let lines = match language {
        Language::Rust => return Ok(count_source(&Source::read(text)?)),
        Language::C => lines::of_c(text)?,
        Language::Shell => lines::of_shell(text)?,
        Language::Python => lines::of_python(text)?,
    };
    Ok(Counts {
        lines: BTreeMap::from([(language, lines)]),
        functions: Vec::new(),
    })
}

impl Census {
    /// The numbers of all rooms together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for counts in self.rooms.values() {
            total.add(counts);
        }
        total
    }

    /// The table and the list of circles, as text for people.
    pub fn to_text(&self) -> String {
        let mut text = row(&[
            "room",
            "lines",
            "Rust",
            "C",
            "shell",
            "Python",
            "functions",
            "median",
            "90th pct",
            "long",
        ]);
        for (name, counts) in &self.rooms {
            text += &room_row(name, counts);
        }
        text += &room_row("sum", &self.total());
        text += &format!(
            "\nLengths of functions in lines; long: more than {LONG_FUNCTION}.\n\n\
             Circles of files: {}\n",
            self.circles.len()
        );
        for circle in &self.circles {
            let Circle { package, files, .. } = circle;
            text += &format!("{:>5}  {package}: {}\n", files.len(), files.join(" "));
        }
        text
    }

    /// The same numbers as JSON.
    pub fn to_json(&self) -> Value {
        let rooms: serde_json::Map<String, Value> = self
            .rooms
            .iter()
            .map(|(name, counts)| (name.clone(), counts_json(counts)))
            .collect();
        let circles: Vec<Value> = self
            .circles
            .iter()
            .map(|c| json!({ "package": c.package, "files": c.files, "imports": c.imports }))
            .collect();
        json!({ "rooms": rooms, "sum": counts_json(&self.total()), "circles": circles })
    }
}

fn counts_json(counts: &Counts) -> Value {
    let of = |language| counts.lines.get(&language).copied().unwrap_or_default();
    json!({
        "lines": counts.sum(),
        "rust": of(Language::Rust),
        "c": of(Language::C),
        "shell": of(Language::Shell),
        "python": of(Language::Python),
        "functions": {
            "number": counts.functions.len(),
            "median_lines": counts.percentile(50),
            "p90_lines": counts.percentile(90),
            "above_60_lines": counts.long_functions(),
        },
    })
}

fn room_row(name: &str, counts: &Counts) -> String {
    let mut cells = vec![name.to_owned(), counts.sum().to_string()];
    let of = |language| counts.lines.get(language).map(usize::to_string);
    cells.extend(Language::ALL.iter().map(|l| of(l).unwrap_or_default()));
    let percentile = |percent| counts.percentile(percent).map(|p| p.to_string());
    if counts.functions.is_empty() {
        cells.extend(vec![String::new(); 4]);
    } else {
        cells.push(counts.functions.len().to_string());
        cells.push(percentile(50).unwrap_or_default());
        cells.push(percentile(90).unwrap_or_default());
        cells.push(counts.long_functions().to_string());
    }
    row(&cells)
}

fn row<T: AsRef<str>>(cells: &[T]) -> String {
    let mut cells = cells.iter().map(AsRef::as_ref);
    let first = cells.next().unwrap_or_default();
    let rest: Vec<String> = cells.map(|cell| format!("{cell:>9}")).collect();
    let line = format!("{first:<16} {}", rest.join(" "));
    format!("{}\n", line.trim_end())
}
