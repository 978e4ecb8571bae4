//! Names of other rooms that a room passes on as its own.
//!
//! Whoever takes a name from the room that passes it on depends on a room that its manifest
//! does not name, so that the table of rooms says less than it seems to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use syn::{
    ItemExternCrate, ItemMod, ItemUse, Visibility,
    visit::{self, Visit},
};

use crate::{
    modules::Module,
    packages::Package,
    rust::pass_by_tests,
    scope::Scopes,
    uses::{self, Name},
};

/// How the names of the rooms' crates begin.
const ROOM: &str = "piebald_";

/// What a file passes on, such as `piebald_hw::Cache`, or `piebald_hw::*` for a star.
pub type Found = BTreeMap<Place, BTreeSet<String>>;

/// A package's directory and a file in it, as in `crates/sim` and `src/lib.rs`.
pub type Place = (String, String);

/// What files of this package pass on, outside of tests: each public `use` whose path leads
/// into another room, be it directly or by a name that the crate imports.
pub fn of_package(package: &Package) -> Found {
    let mut found = Found::new();
    for tree in &package.trees {
        let scopes = Scopes::read(tree, &package.sources);
        for (module, file) in &tree.files {
            let mut reader = Reader {
                scopes: &scopes,
                module: module.clone(),
                found: BTreeSet::new(),
            };
            if let Some(source) = package.sources.get(file) {
                reader.visit_file(&source.file);
            }
            if !reader.found.is_empty() {
                let place = (package.directory.clone(), file.clone());
                found.entry(place).or_default().extend(reader.found);
            }
        }
    }
    found
}

struct Reader<'a> {
    scopes: &'a Scopes<'a>,
    module: Module,
    found: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Reader<'_> {
    pass_by_tests!(|_: &mut Self, _| ());

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_some() {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // `pub(crate)` stays in the room.
        if !matches!(item.vis, Visibility::Public(_)) {
            return;
        }
        for import in uses::flat(item) {
            let outside = self.scopes.outside(&self.module, &import.path);
            if let Some(mut path) = outside.filter(|path| is_room(path)) {
                if import.name == Name::Star {
                    path.push("*".to_owned());
                }
                self.found.insert(path.join("::"));
            }
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'ast ItemExternCrate) {
        let name = item.ident.to_string();
        if matches!(item.vis, Visibility::Public(_)) && name.starts_with(ROOM) {
            self.found.insert(name);
        }
    }
}

fn is_room(path: &[String]) -> bool {
    path.first().is_some_and(|first| first.starts_with(ROOM))
}

/// Names that a file may pass on.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// Directory of the package, as in `crates/sim`.
    #[serde(rename = "crate")]
    pub package: String,
    /// The file, as in `src/lib.rs`.
    pub file: String,
    /// The names, each with its whole path.
    pub what: BTreeSet<String>,
    /// Why they are passed on.
    pub reason: String,
}

/// The file of accepted names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    reexport: Vec<Accepted>,
}

/// Reads the list of accepted names.
///
/// # Errors
/// If it is not TOML of this form.
pub fn read_list(text: &str) -> Result<Vec<Accepted>, toml::de::Error> {
    toml::from_str::<List>(text).map(|list| list.reexport)
}

/// Everything in which what is passed on differs from what is accepted. An accepted name that
/// is gone is a defect too, so that the list only shrinks.
pub fn reexport_defects(found: &Found, accepted: &[Accepted]) -> Vec<String> {
    let mut defects = Vec::new();
    let mut listed = Found::new();
    for entry in accepted {
        let place = (entry.package.clone(), entry.file.clone());
        if entry.reason.trim().is_empty() {
            defects.push(format!("{}: listed without a reason", name(&place)));
        }
        listed.entry(place).or_default().extend(entry.what.clone());
    }
    for (place, what) in missing(found, &listed) {
        defects.push(format!("{} passes on {what}", name(place)));
    }
    for (place, what) in missing(&listed, found) {
        let place = name(place);
        defects.push(format!(
            "{place} no longer passes on {what}: take it out of the list"
        ));
    }
    defects
}

/// What is in the first and not in the second.
fn missing<'a>(first: &'a Found, second: &Found) -> Vec<(&'a Place, &'a String)> {
    let known = |place, what| second.get(place).is_some_and(|all| all.contains(what));
    first
        .iter()
        .flat_map(|(place, all)| all.iter().map(move |what| (place, what)))
        .filter(|(place, what)| !known(place, *what))
        .collect()
}

fn name((package, file): &Place) -> String {
    format!("{package}/{file}")
}
