//! The paths of a `use` declaration.

use syn::{ItemUse, UseName, UseRename, UseTree};

/// First part of a path with `::` before it, which begins with the name of another crate.
pub const OTHER_CRATE: &str = "";

/// One name of a `use`, or one star.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The path to what is imported; for a star, to the module of which everything is.
    pub path: Vec<String>,
    /// What it is called here.
    pub name: Name,
}

/// What an import is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// This name.
    Given(String),
    /// No name, as with `use a::Trait as _`.
    None,
    /// A star: the names of the other module.
    Star,
}

/// The declaration's imports, one for each name.
pub fn flat(item: &ItemUse) -> Vec<Use> {
    let mut found = Vec::new();
    let mut before = Vec::new();
    if item.leading_colon.is_some() {
        before.push(OTHER_CRATE.to_owned());
    }
    collect(&mut before, &item.tree, &mut found);
    found
}

fn collect(before: &mut Vec<String>, tree: &UseTree, found: &mut Vec<Use>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            collect(before, &path.tree, found);
            before.pop();
        }
        UseTree::Name(UseName { ident, .. }) => {
            let path = extended(before, &ident.to_string());
            let name = path.last().map_or(Name::None, |n| Name::Given(n.clone()));
            found.push(Use { path, name });
        }
        UseTree::Rename(UseRename { ident, rename, .. }) => found.push(Use {
            path: extended(before, &ident.to_string()),
            name: match rename.to_string().as_str() {
                "_" => Name::None,
                rename => Name::Given(rename.to_owned()),
            },
        }),
        UseTree::Glob(_) => found.push(Use {
            path: before.clone(),
            name: Name::Star,
        }),
        UseTree::Group(group) => {
            for item in &group.items {
                collect(before, item, found);
            }
        }
    }
}

/// `self` in braces is the path before them.
fn extended(before: &[String], name: &str) -> Vec<String> {
    let mut path = before.to_vec();
    if name != "self" || path.is_empty() {
        path.push(name.to_owned());
    }
    path
}
