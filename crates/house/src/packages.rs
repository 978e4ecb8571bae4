//! The packages of the repository, read from the texts of their files.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    imports::{Imports, circles, imports},
    modules::{Sources, Tree},
    rust::Source,
};

/// Directories of tests, measurements and examples, which are read nowhere.
pub const LEFT_OUT: [&str; 6] = ["tests", "test", "benches", "bench", "examples", "fuzz"];

/// A circle of files of one package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// Directory of the package, as in `crates/lab`.
    pub package: String,
    /// Its files, as in `src/lib.rs`, sorted.
    pub files: Vec<String>,
    /// What each of them imports of the others.
    pub imports: Imports,
}

/// A package: the directory of a manifest.
pub struct Package {
    /// The directory from the repository's root, as in `crates/lab`.
    pub directory: String,
    /// Its sources below `src`.
    pub sources: Sources,
    /// The module tree of each of its crates.
    pub trees: Vec<Tree>,
}

impl Package {
    /// Reads the package of a directory from the texts of the repository.
    ///
    /// # Errors
    /// A source that is no Rust, a module without a file, a file that belongs to no module.
    pub fn read(directory: &str, texts: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut sources = Sources::new();
        for (path, text) in texts {
            let inner = path
                .strip_prefix(directory)
                .and_then(|p| p.strip_prefix('/'))
                .filter(|p| p.starts_with("src/") && p.ends_with(".rs"));
            if let Some(inner) = inner {
                let source = Source::read(text).map_err(|e| format!("{path}:{e}"))?;
                sources.insert(inner.to_owned(), source);
            }
        }
        let trees: Result<Vec<Tree>, String> = sources
            .keys()
            .filter(|path| is_root(path))
            .map(|path| Tree::read(path, &sources).map_err(|e| format!("{directory}/{e}")))
            .collect();
        let package = Self {
            directory: directory.to_owned(),
            sources,
            trees: trees?,
        };
        match package.stray() {
            Some(path) => Err(format!("{directory}/{path}: no module declares it")),
            None => Ok(package),
        }
    }

    /// A file that no crate of the package reaches.
    fn stray(&self) -> Option<&String> {
        let code = self.code_files();
        self.sources.keys().find(|path| {
            !code.contains(*path) && !self.trees.iter().any(|t| t.tests.contains(*path))
        })
    }

    /// The sources that are compiled outside of tests.
    pub fn code_files(&self) -> BTreeSet<&String> {
        let files = self.trees.iter().flat_map(|tree| &tree.files);
        files.map(|(_, path)| path).collect()
    }

    /// Circles of two or more files.
    pub fn circles(&self) -> Vec<Circle> {
        let mut found = Vec::new();
        for tree in &self.trees {
            let imports = imports(tree, &self.sources);
            found.extend(circles(&imports).into_iter().map(|files| Circle {
                package: self.directory.clone(),
                imports: within(&imports, &files),
                files,
            }));
        }
        found
    }
}

/// The imports among these files.
fn within(imports: &Imports, files: &[String]) -> Imports {
    let of_file = |file: &String| {
        let targets = imports.get(file).into_iter().flatten();
        let inner = targets.filter(|t| files.contains(t)).cloned().collect();
        (file.clone(), inner)
    };
    files.iter().map(of_file).collect()
}

/// The root of a library or program, by cargo's rules for names.
fn is_root(path: &str) -> bool {
    let program = path.strip_prefix("src/bin/");
    matches!(path, "src/lib.rs" | "src/main.rs")
        || program.is_some_and(|p| !p.contains('/') || p.ends_with("/main.rs"))
}

/// The packages among the texts, by directory: wherever there is a manifest beside `src`, but
/// not in the directories that are left out.
///
/// # Errors
/// As [`Package::read`].
pub fn packages(texts: &BTreeMap<String, String>) -> Result<Vec<Package>, String> {
    texts
        .keys()
        .filter_map(|path| path.strip_suffix("/Cargo.toml"))
        .filter(|directory| !directory.split('/').any(|part| LEFT_OUT.contains(&part)))
        .map(|directory| Package::read(directory, texts))
        .collect()
}
