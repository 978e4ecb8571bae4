//! The names of a crate's modules, and where a path through them ends.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, ItemUse};

use crate::{
    modules::{Module, Sources, Tree},
    rust,
    uses::{self, Name, Use},
};

/// The names that a module's items and imports give.
#[derive(Debug, Default)]
struct Names {
    defined: BTreeSet<String>,
    imported: BTreeMap<String, Vec<String>>,
    stars: Vec<Vec<String>>,
}

/// The names of every module of a crate, outside of tests.
pub struct Scopes<'a> {
    tree: &'a Tree,
    names: BTreeMap<Module, Names>,
}

/// Where a path ends.
enum End {
    /// In an item of this module of the crate, or with the module itself.
    Inside(Module),
    /// In another crate, or with a name that nothing here gives, by this path.
    Outside(Vec<String>),
}

/// Steps that were taken to resolve a path. Imports may lead in a ring.
type Seen = BTreeSet<(Module, String)>;

impl<'a> Scopes<'a> {
    /// Reads the names of a crate's modules.
    pub fn read(tree: &'a Tree, sources: &Sources) -> Self {
        let mut scopes = Self {
            tree,
            names: BTreeMap::new(),
        };
        for (module, file) in &tree.files {
            if let Some(source) = sources.get(file) {
                scopes.read_items(module, &source.file.items);
            }
        }
        scopes
    }

    fn read_items(&mut self, module: &Module, items: &[Item]) {
        let mut names = Names::default();
        for item in items {
            if rust::tests_only(rust::attributes(item)) {
                continue;
            }
            match item {
                Item::Use(item) => names.import(item),
                Item::Mod(item) => {
                    if let Some((_, items)) = &item.content {
                        let inner = [module.as_slice(), &[item.ident.to_string()]].concat();
                        self.read_items(&inner, items);
                    }
                }
                _ => names.defined.extend(defined_name(item)),
            }
        }
        self.names.insert(module.clone(), names);
    }

    /// The file in which what a path names is defined, seen from a module: imports and
    /// re-exports on its way are followed. `None` if it leads out of the crate.
    pub fn file_of(&self, module: &[String], path: &[String]) -> Option<&'a str> {
        match self.resolve(module, path, &mut Seen::new())? {
            End::Inside(end) => self.tree.modules.get(&end).map(String::as_str),
            End::Outside(_) => None,
        }
    }

    /// The path in another crate to which a path leads, from that crate's name on. `None` if
    /// it stays in this one.
    pub fn outside(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        match self.resolve(module, path, &mut Seen::new())? {
            End::Inside(_) => None,
            End::Outside(path) => Some(path),
        }
    }

    /// Whether a module declares another one of this name.
    pub fn is_child(&self, module: &[String], name: &str) -> bool {
        self.tree.modules.contains_key(&child(module, name))
    }

    fn resolve(&self, module: &[String], path: &[String], seen: &mut Seen) -> Option<End> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            uses::OTHER_CRATE => Some(End::Outside(rest.to_vec())),
            "crate" => self.follow(Module::new(), rest, seen),
            "self" | "super" => {
                let path = if first == "self" { rest } else { path };
                let ups = path.iter().take_while(|name| *name == "super").count();
                let start = &module[..module.len().checked_sub(ups)?];
                self.follow(start.to_vec(), &path[ups..], seen)
            }
            _ if self.is_child(module, first) || self.imports(module, first) => {
                self.follow(module.to_vec(), path, seen)
            }
            _ => Some(End::Outside(path.to_vec())),
        }
    }

    fn follow(&self, mut module: Module, path: &[String], seen: &mut Seen) -> Option<End> {
        for (at, name) in path.iter().enumerate() {
            if self.is_child(&module, name) {
                module = child(&module, name);
                continue;
            }
            if !seen.insert((module.clone(), name.clone())) {
                return None;
            }
            let names = self.names.get(&module)?;
            if let Some(target) = names.imported.get(name) {
                let path = [target, &path[at + 1..]].concat();
                // `use serde;` names a crate, not itself.
                return match self.resolve(&module, &path, seen) {
                    None if target.first() == Some(name) => Some(End::Outside(path)),
                    end => end,
                };
            }
            if !names.defined.contains(name)
                && let Some(other) = self.behind_a_star(&module, name, seen)
                && let Some(end) = self.follow(other, &path[at..], seen)
            {
                return Some(end);
            }
            // The rest names something inside of an item, or the item comes from a macro.
            return Some(End::Inside(module));
        }
        Some(End::Inside(module))
    }

    /// The module from which a star brings this name, perhaps by way of other stars.
    fn behind_a_star(&self, module: &[String], name: &str, seen: &mut Seen) -> Option<Module> {
        if !seen.insert((module.to_vec(), format!("* {name}"))) {
            return None;
        }
        let stars = &self.names.get(module)?.stars;
        stars.iter().find_map(|star| {
            let End::Inside(other) = self.resolve(module, star, seen)? else {
                return None;
            };
            let gives = self.names.get(&other)?.defined.contains(name)
                || self.imports(&other, name)
                || self.is_child(&other, name);
            if gives {
                Some(other)
            } else {
                self.behind_a_star(&other, name, seen)
            }
        })
    }

    fn imports(&self, module: &[String], name: &str) -> bool {
        self.names
            .get(module)
            .is_some_and(|names| names.imported.contains_key(name))
    }
}

impl Names {
    fn import(&mut self, item: &ItemUse) {
        for Use { path, name } in uses::flat(item) {
            match name {
                Name::Given(name) => {
                    self.imported.insert(name, path);
                }
                Name::Star => self.stars.push(path),
                Name::None => {}
            }
        }
    }
}

fn child(module: &[String], name: &str) -> Module {
    [module, &[name.to_owned()]].concat()
}

fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(i) => &i.ident,
        Item::Enum(i) => &i.ident,
        Item::Fn(i) => &i.sig.ident,
        Item::Macro(i) => i.ident.as_ref()?,
        Item::Static(i) => &i.ident,
        Item::Struct(i) => &i.ident,
        Item::Trait(i) => &i.ident,
        Item::TraitAlias(i) => &i.ident,
        Item::Type(i) => &i.ident,
        Item::Union(i) => &i.ident,
        _ => return None,
    };
    Some(name.to_string())
}
