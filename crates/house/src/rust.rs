//! What the counter reads in a Rust source: code lines and functions outside of tests.

use std::{collections::BTreeSet, ops::Range};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, Block, ImplItem, ImplItemFn, Item, ItemFn, Meta, Signature, TraitItem, TraitItemFn,
    Visibility,
    punctuated::Punctuated,
    spanned::Spanned,
    visit::{self, Visit},
};

/// A source text that was read.
pub struct Source {
    text: String,
    tokens: TokenStream,
    /// Its items.
    pub file: syn::File,
}

impl Source {
    /// Reads a source.
    ///
    /// # Errors
    /// Where it is no Rust.
    pub fn read(text: &str) -> Result<Self, String> {
        let lexed: Result<TokenStream, _> = text.parse();
        let tokens = lexed.map_err(|e| format!("{}: {e}", e.span().start().line))?;
        let file =
            syn::parse2(tokens.clone()).map_err(|e| format!("{}: {e}", e.span().start().line))?;
        Ok(Self {
            text: text.to_owned(),
            tokens,
            file,
        })
    }

    /// Lines outside of test items that hold more than white space and comments, doc comments
    /// included.
    pub fn code_lines(&self) -> usize {
        let mut counter = LineCounter {
            text: &self.text,
            tests: self.tests(),
            lines: BTreeSet::new(),
        };
        counter.tokens(self.tokens.clone());
        // Blank lines in a string of several lines.
        let text: Vec<&str> = self.text.lines().collect();
        let blank = |line: &usize| text.get(line - 1).is_none_or(|l| l.trim().is_empty());
        counter.lines.iter().filter(|line| !blank(line)).count()
    }

    /// Lengths in lines of the functions with a body, from the signature to the closing
    /// brace, outside of test items. A function inside another is counted in both. Closures,
    /// and functions that a macro's definition or arguments hold, are not seen.
    pub fn functions(&self) -> Vec<usize> {
        let mut reader = Functions::default();
        if !tests_only(&self.file.attrs) {
            reader.visit_file(&self.file);
        }
        reader.0
    }

    /// Byte ranges of the items that only tests have.
    fn tests(&self) -> Vec<Range<usize>> {
        if tests_only(&self.file.attrs) {
            return std::iter::once(0..self.text.len()).collect();
        }
        let mut tests = Tests::default();
        tests.visit_file(&self.file);
        tests.0
    }
}

/// Whether an item with these attributes exists in tests only: `cfg(test)`, or a condition
/// that holds in no other build, such as `cfg(all(test, unix))`.
pub fn tests_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<Meta>()
                .is_ok_and(|condition| needs_test(&condition))
    })
}

fn needs_test(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        list.parse_args_with(Punctuated::<Meta, syn::Token![,]>::parse_terminated)
            .unwrap_or_default()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let parts = parts(list);
            !parts.is_empty() && parts.iter().all(needs_test)
        }
        _ => false,
    }
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// The attributes of an item of an `impl` block.
pub fn impl_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(i) => &i.attrs,
        ImplItem::Fn(i) => &i.attrs,
        ImplItem::Type(i) => &i.attrs,
        ImplItem::Macro(i) => &i.attrs,
        _ => &[],
    }
}

/// The attributes of an item of a trait.
pub fn trait_attributes(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(i) => &i.attrs,
        TraitItem::Fn(i) => &i.attrs,
        TraitItem::Type(i) => &i.attrs,
        TraitItem::Macro(i) => &i.attrs,
        _ => &[],
    }
}

/// Makes a visitor pass by what only tests have, and call `$skipped` for it.
macro_rules! pass_by_tests {
    ($skipped:expr) => {
        fn visit_item(&mut self, item: &'ast syn::Item) {
            if $crate::rust::tests_only($crate::rust::attributes(item)) {
                $skipped(self, syn::spanned::Spanned::span(item));
            } else {
                syn::visit::visit_item(self, item);
            }
        }

        fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
            if $crate::rust::tests_only($crate::rust::impl_attributes(item)) {
                $skipped(self, syn::spanned::Spanned::span(item));
            } else {
                syn::visit::visit_impl_item(self, item);
            }
        }

        fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
            if $crate::rust::tests_only($crate::rust::trait_attributes(item)) {
                $skipped(self, syn::spanned::Spanned::span(item));
            } else {
                syn::visit::visit_trait_item(self, item);
            }
        }
    };
}
pub(crate) use pass_by_tests;

#[derive(Default)]
struct Tests(Vec<Range<usize>>);

impl<'ast> Visit<'ast> for Tests {
    pass_by_tests!(|tests: &mut Self, span: Span| tests.0.push(span.byte_range()));
}

#[derive(Default)]
struct Functions(Vec<usize>);

impl Functions {
    fn add(&mut self, visibility: Option<&Visibility>, signature: &Signature, body: &Block) {
        let start = match visibility {
            None | Some(Visibility::Inherited) => signature.span().start().line,
            Some(visibility) => visibility.span().start().line,
        };
        let end = body.brace_token.span.close().end().line;
        self.0.push(end + 1 - start);
    }
}

impl<'ast> Visit<'ast> for Functions {
    pass_by_tests!(|_: &mut Self, _| ());

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.add(Some(&item.vis), &item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add(Some(&item.vis), &item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(None, &item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// The lines, from 1, on which a token of the code stands.
struct LineCounter<'a> {
    text: &'a str,
    tests: Vec<Range<usize>>,
    lines: BTreeSet<usize>,
}

impl LineCounter<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut in_comment = false;
        for token in tokens {
            // A doc comment is read as `#[doc = ".."]`, all of it with the comment's place.
            if let TokenTree::Punct(sign) = &token
                && sign.as_char() == '#'
            {
                in_comment = self.text[sign.span().byte_range().start..].starts_with('/');
            }
            match token {
                TokenTree::Group(group) if !in_comment => {
                    self.mark(group.span_open());
                    self.tokens(group.stream());
                    self.mark(group.span_close());
                }
                TokenTree::Group(_) => in_comment = false,
                token if !in_comment => self.mark(token.span()),
                _ => {}
            }
        }
    }

    fn mark(&mut self, span: Span) {
        let start = span.byte_range().start;
        if !self.tests.iter().any(|test| test.contains(&start)) {
            self.lines.extend(span.start().line..=span.end().line);
        }
    }
}
