//! Which file of a crate imports which, and the circles among them.
//!
//! A file imports another if it needs what the other defines: by a private `use`, by a path
//! that begins with `crate`, `self` or `super`, or by one that begins with a name that its
//! module imports. The path is followed through imports and re-exports to the file of the
//! definition, so that a module which gathers the names of its children for others imports
//! none of them by that: a `pub use`, of any visibility, counts where the name is used.
//!
//! No import are the declaration `mod child;` and, in the module that has it, the path
//! `child::run()`: a parent that only calls down into its parts makes no circle with parts
//! that use what the parent defines. Not seen is what a macro's definition or call holds
//! other than plain paths.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::{
    Attribute, ItemMod, ItemUse, Macro, Path, Visibility,
    visit::{self, Visit},
};

use crate::{
    modules::{Module, Sources, Tree},
    rust::pass_by_tests,
    scope::Scopes,
    uses,
};

/// What each file imports, by path.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// The imports among the files of a crate, outside of tests.
pub fn imports(tree: &Tree, sources: &Sources) -> Imports {
    let scopes = Scopes::read(tree, sources);
    let mut found = Imports::new();
    for (module, file) in &tree.files {
        let mut reader = Reader {
            scopes: &scopes,
            module: module.clone(),
            found: BTreeSet::new(),
        };
        if let Some(source) = sources.get(file) {
            reader.visit_file(&source.file);
        }
        reader.found.remove(file);
        found.entry(file.clone()).or_default().extend(reader.found);
    }
    found
}

/// Sets of two or more files, each of which reaches each other one by imports: the largest
/// first, the files of each sorted.
pub fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|file| (file.as_str(), reached_from(file, imports)))
        .collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for (file, targets) in &reached {
        let mutual = |other: &&&str| reached.get(**other).is_some_and(|r| r.contains(file));
        let circle: Vec<String> = targets
            .iter()
            .filter(mutual)
            .map(|f| (*f).to_owned())
            .collect();
        // Each circle is found from its first file.
        if circle.len() > 1 && circle[0] == *file {
            circles.push(circle);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

fn reached_from<'a>(file: &'a str, imports: &'a Imports) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(next) = open.pop() {
        let targets = imports.get(next).into_iter().flatten();
        open.extend(targets.map(String::as_str).filter(|t| reached.insert(*t)));
    }
    reached
}

struct Reader<'a> {
    scopes: &'a Scopes<'a>,
    module: Module,
    found: BTreeSet<String>,
}

impl Reader<'_> {
    fn add(&mut self, path: &[String]) {
        let file = self.scopes.file_of(&self.module, path);
        self.found.extend(file.map(str::to_owned));
    }

    /// Adds a path outside of a `use`, unless it calls down.
    fn add_qualified(&mut self, path: &[String]) {
        let calls_down = path
            .first()
            .is_some_and(|first| self.scopes.is_child(&self.module, first));
        if !calls_down {
            self.add(path);
        }
    }

    /// Paths among the tokens of a macro: `a::b` wherever it stands, but not after `::`, nor
    /// after `.`, nor after the `$` of a macro's parameter.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut foreign = false;
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    foreign = false;
                }
                TokenTree::Ident(first) => {
                    let path = path_from(first.to_string(), &mut tokens);
                    if !foreign {
                        self.add_qualified(&path);
                    }
                    foreign = false;
                }
                TokenTree::Punct(sign) => {
                    foreign = match sign.as_char() {
                        ':' => sign.spacing() == Spacing::Joint || foreign,
                        // The second sign of a range.
                        '.' => !foreign,
                        '$' => !matches!(tokens.peek(), Some(TokenTree::Ident(i)) if i == "crate"),
                        _ => false,
                    }
                }
                TokenTree::Literal(_) => foreign = false,
            }
        }
    }
}

type Tokens = std::iter::Peekable<proc_macro2::token_stream::IntoIter>;

/// The names of a path of which the first was read. None if braces or a star follow, which
/// only a macro's definition has.
fn path_from(first: String, tokens: &mut Tokens) -> Vec<String> {
    let mut path = vec![first];
    while tokens
        .next_if(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ':' && p.spacing() == Spacing::Joint))
        .is_some()
    {
        tokens.next();
        match tokens.peek() {
            Some(TokenTree::Ident(name)) => path.push(name.to_string()),
            Some(TokenTree::Punct(sign)) if sign.as_char() == '<' => return path,
            _ => return Vec::new(),
        }
        tokens.next();
    }
    path
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
        if matches!(item.vis, Visibility::Inherited) {
            for found in uses::flat(item) {
                self.add(&found.path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|s| s.ident.to_string());
            self.add_qualified(&names.collect::<Vec<_>>());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    /// `pub(in crate::a)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    /// The paths of attributes are those of other crates.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}
