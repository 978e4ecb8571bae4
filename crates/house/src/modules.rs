//! The module tree of a crate: which file holds which module.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Expr, Item, ItemMod, Lit, Meta};

use crate::rust::{self, Source};

/// The sources of a package by their path in it, as in `src/lib.rs`.
pub type Sources = BTreeMap<String, Source>;

/// A module: the names that lead to it from the crate's root, which is empty.
pub type Module = Vec<String>;

/// The modules of a crate.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The file of each module that is not for tests only. A module in braces has the file
    /// that it stands in.
    pub modules: BTreeMap<Module, String>,
    /// The modules that a file of their own holds, with that file.
    pub files: Vec<(Module, String)>,
    /// Files that are compiled for tests only.
    pub tests: BTreeSet<String>,
}

impl Tree {
    /// Follows the module declarations from a crate's root file.
    ///
    /// # Errors
    /// A module whose file is missing.
    pub fn read(root: &str, sources: &Sources) -> Result<Self, String> {
        let mut tree = Self::default();
        let file = File {
            path: root.to_owned(),
            owns_directory: true,
            tests: false,
        };
        tree.read_file(&file, Module::new(), sources)?;
        Ok(tree)
    }

    fn read_file(&mut self, file: &File, module: Module, sources: &Sources) -> Result<(), String> {
        let source = sources
            .get(&file.path)
            .ok_or_else(|| format!("{}: no such file", file.path))?;
        let file = &File {
            tests: file.tests || rust::tests_only(&source.file.attrs),
            ..file.clone()
        };
        if file.tests {
            self.tests.insert(file.path.clone());
        } else {
            self.files.push((module.clone(), file.path.clone()));
        }
        let place = Place {
            file,
            module,
            braces: Vec::new(),
        };
        self.read_items(&place, &source.file.items, sources)
    }

    fn read_items(
        &mut self,
        place: &Place,
        items: &[Item],
        sources: &Sources,
    ) -> Result<(), String> {
        if !place.file.tests {
            let file = place.file.path.clone();
            self.modules.insert(place.module.clone(), file);
        }
        for item in items {
            if let Item::Mod(item) = item {
                self.read_module(place, item, sources)?;
            }
        }
        Ok(())
    }

    fn read_module(
        &mut self,
        place: &Place,
        item: &ItemMod,
        sources: &Sources,
    ) -> Result<(), String> {
        let name = item.ident.to_string();
        let tests = place.file.tests || rust::tests_only(&item.attrs);
        let mut module = place.module.clone();
        module.push(name.clone());
        let Some((_, items)) = &item.content else {
            let file = place.file_of(&name, &item.attrs, tests, sources);
            return self.read_file(&file, module, sources);
        };
        let mut braces = place.braces.clone();
        braces.push(name);
        let file = &File {
            tests,
            ..place.file.clone()
        };
        let place = Place {
            file,
            module,
            braces,
        };
        self.read_items(&place, items, sources)
    }
}

#[derive(Clone)]
struct File {
    path: String,
    /// Its modules lie beside it, as with `mod.rs`, and not in a directory of its name.
    owns_directory: bool,
    tests: bool,
}

/// Where a module is declared.
struct Place<'a> {
    file: &'a File,
    module: Module,
    /// The modules in braces, from the file's top, in which the declaration stands.
    braces: Vec<String>,
}

impl Place<'_> {
    /// The file of `mod name;`.
    fn file_of(
        &self,
        name: &str,
        attributes: &[Attribute],
        tests: bool,
        sources: &Sources,
    ) -> File {
        let own = self.file.path.trim_end_matches(".rs");
        let beside = own.rsplit_once('/').map_or("", |(directory, _)| directory);
        let below = if self.file.owns_directory {
            beside
        } else {
            own
        };
        let inner = self.braces.join("/");
        if let Some(path) = path_attribute(attributes) {
            let start = if self.braces.is_empty() {
                beside
            } else {
                below
            };
            return File {
                path: plain(&format!("{start}/{inner}/{path}")),
                owns_directory: true,
                tests,
            };
        }
        let directory = plain(&format!("{below}/{inner}/{name}"));
        let with_modules = format!("{directory}/mod.rs");
        let owns_directory = sources.contains_key(&with_modules);
        File {
            path: if owns_directory {
                with_modules
            } else {
                format!("{directory}.rs")
            },
            owns_directory,
            tests,
        }
    }
}

/// What `#[path = ".."]` says.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(value) if pair.path.is_ident("path") => match &value.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}

/// A path without empty parts and without `..`.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}
