//! Which files import one another, and which names of other rooms a room passes on.

use std::collections::{BTreeMap, BTreeSet};

use piebald_house::{
    circles::{self, MAX_CIRCLE, circle_defects},
    imports::{Imports, circles as circles_of, imports},
    packages::{Circle, Package, packages},
    read,
    reexports::{self, Found, of_package, reexport_defects},
    root, texts_below,
};

fn repository() -> Vec<Package> {
    let packages = packages(&texts_below(&root())).unwrap_or_else(|e| panic!("{e}"));
    // Guards the tests themselves: nothing can be wrong with no package.
    let names: Vec<&str> = packages.iter().map(|p| p.directory.as_str()).collect();
    for name in ["crates/house", "crates/lab", "kernel/core"] {
        assert!(names.contains(&name), "{names:?}");
    }
    packages
}

/// Files in the circles of `crates/house/circles.toml`, and names in `crates/house/reexports.toml`. Both lists
/// only shrink, and these numbers with them.
const LISTED_FILES: usize = 96;
const LISTED_NAMES: usize = 2;

#[test]
fn no_circle_of_files_is_large_but_those_that_are_listed() {
    let list = read(&root().join("crates/house/circles.toml"));
    let accepted = circles::read_list(&list).unwrap_or_else(|e| panic!("circles.toml: {e}"));
    let files: usize = accepted.iter().map(|circle| circle.files.len()).sum();
    assert_eq!(files, LISTED_FILES, "the list only shrinks");
    let found: Vec<Circle> = repository().iter().flat_map(Package::circles).collect();
    assert!(!found.is_empty());
    let defects = circle_defects(&found, &accepted);
    assert!(defects.is_empty(), "\n{}", defects.join("\n"));
}

#[test]
fn no_room_passes_on_names_of_another_but_those_that_are_listed() {
    let list = read(&root().join("crates/house/reexports.toml"));
    let accepted = reexports::read_list(&list).unwrap_or_else(|e| panic!("reexports.toml: {e}"));
    let names: usize = accepted.iter().map(|entry| entry.what.len()).sum();
    assert_eq!(names, LISTED_NAMES, "the list only shrinks");
    let found: Found = repository().iter().flat_map(of_package).collect();
    let defects = reexport_defects(&found, &accepted);
    assert!(defects.is_empty(), "\n{}", defects.join("\n"));
}

/// A package `a` of these files below `src`.
fn package(files: &[(&str, &str)]) -> Package {
    let text = |(path, text): &(&str, &str)| (format!("a/src/{path}"), (*text).to_owned());
    Package::read("a", &files.iter().map(text).collect()).unwrap()
}

/// What `lib.rs` and the other files import, as `from>to`, without `src/` and `.rs`.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let package = package(files);
    let short = |path: &str| {
        path.trim_start_matches("src/")
            .trim_end_matches(".rs")
            .to_owned()
    };
    let arrow = |from: &str, to: &str| format!("{}>{}", short(from), short(to));
    let of_tree = |tree| imports(tree, &package.sources);
    let all: Vec<Imports> = package.trees.iter().map(of_tree).collect();
    all.iter()
        .flatten()
        .flat_map(|(from, to)| to.iter().map(move |to| arrow(from, to)))
        .collect()
}

/// A crate of three files of which `b` holds this text.
fn arrows_of_b(text: &str) -> Vec<String> {
    arrows(&[
        ("lib.rs", "mod b;\nmod c;\npub struct Top;\n"),
        ("b.rs", text),
        ("c.rs", "pub mod d;\npub struct C;\n"),
        ("c/d.rs", "pub struct D;\n"),
    ])
}

#[test]
fn every_form_of_path_is_an_import() {
    for (text, files) in [
        ("use crate::c::C;", &["c"][..]),
        ("use crate::{Top, c::{self, d::*}};", &["c", "c/d", "lib"]),
        ("use super::c::d;", &["c/d"]),
        ("use super::c; fn f(_: c::d::D) {}", &["c", "c/d"]),
        ("mod e { use super::super::c::C; }", &["c"]),
        ("mod e { use super::F; } struct F;", &[]),
        ("fn f() -> crate::Top { loop {} }", &["lib"]),
        ("fn f(_: &dyn Fn(self::super::c::C)) {}", &["c"]),
        ("fn f() { use crate::c::C as _; }", &["c"]),
        ("fn f() { <crate::c::C>::new(); }", &["c"]),
        ("fn f() { g!(1, { 0..super::c::N }); }", &["c"]),
        ("macro_rules! f { () => { $crate::c::C } }", &["c"]),
        ("impl std::fmt::Debug for crate::c::d::D {}", &["c/d"]),
    ] {
        let wanted: Vec<String> = files.iter().map(|file| format!("b>{file}")).collect();
        assert_eq!(arrows_of_b(text), wanted, "{text}");
    }
}

#[test]
fn what_leads_nowhere_else_is_no_import() {
    for text in [
        "// use crate::c::C;\nconst A: &str = \"crate::c::C\";",
        "use c::C;",
        "use ::c::C; fn f() { ::c::d::f(); g!(::c::C, a.c::d, $c::d); }",
        "use std::fmt; fn f(_: fmt::Error) {}",
        "pub(in crate::c) struct A;",
        "#[cfg(test)] mod tests { use crate::c::C; }",
        "#[cfg(all(test, unix))] use crate::c::C;",
        "impl A { #[cfg(test)] fn f(_: crate::c::C) {} }",
        "fn f(&self) { self.c.f(); self::f(); }",
        "#[e(crate::c::C)] struct A;",
    ] {
        assert_eq!(arrows_of_b(text), [""; 0], "{text}");
    }
}

#[test]
fn a_path_ends_where_its_name_is_defined() {
    let lib = "mod b;\nmod c;\npub use c::C;\nuse c::*;\npub use self::e as f;\nmod e {}\n";
    let of_b = |text| {
        let mut arrows = arrows(&[
            ("lib.rs", lib),
            ("b.rs", text),
            ("c.rs", "mod d;\npub use self::d::*;\npub struct C;\n"),
            ("c/d.rs", "pub struct D;\n"),
        ]);
        arrows.retain(|arrow| arrow.starts_with("b>"));
        arrows
    };
    assert_eq!(of_b("use crate::C;"), ["b>c"]);
    assert_eq!(of_b("use crate::D;"), ["b>c/d"]);
    assert_eq!(of_b("use super::{C, D, f};"), ["b>c", "b>c/d", "b>lib"]);
    assert_eq!(of_b("use crate::c::D as E; fn f(_: E) {}"), ["b>c/d"]);
    assert_eq!(of_b("use crate::Unknown;"), ["b>lib"]);
}

#[test]
fn imports_that_lead_in_a_ring_end() {
    let files = [
        ("lib.rs", "mod b;\nmod c;\n"),
        (
            "b.rs",
            "pub use super::c::X;\npub use crate::c::*;\nuse serde;\nfn f(_: X) {}\n",
        ),
        (
            "c.rs",
            "pub use super::b::X;\npub use crate::b::*;\nuse crate::b::Y;\n",
        ),
    ];
    assert_eq!(arrows(&files), ["c>b"]);
    let stars = [
        ("lib.rs", "mod b;\nmod c;\n"),
        ("b.rs", "pub use crate::c::*;\n"),
        ("c.rs", "pub use crate::b::d::*;\nuse crate::b::X;\n"),
    ];
    assert_eq!(arrows(&stars), ["c>b"]);
}

#[test]
fn a_parent_imports_what_it_uses_of_its_children_and_not_what_it_passes_on() {
    let of_parent = |text: &str| {
        let text = format!("mod b;\n{text}\n");
        arrows(&[("lib.rs", &text), ("b.rs", "pub struct B;\n")])
    };
    for text in [
        "pub use b::B;",
        "pub(crate) use b::{self as c, B};",
        "fn f() { b::run(); g!(b::run()); }",
    ] {
        assert_eq!(of_parent(text), [""; 0], "{text}");
    }
    for text in [
        "use b::B;",
        "pub use b::B; struct A(B);",
        "pub use b::B; fn f() { g!(B); }",
        "pub use b::B as C; fn f() { C::new(); }",
        "fn f(_: self::b::B) {}",
    ] {
        assert_eq!(of_parent(text), ["lib>b"], "{text}");
    }
}

#[test]
fn modules_are_found_where_the_compiler_finds_them() {
    let arrows = arrows(&[
        (
            "lib.rs",
            "mod a;\nmod b { mod c; #[path = \"d.rs\"] mod e; }\n#[path = \"x/y.rs\"] mod f;\n",
        ),
        ("a/mod.rs", "mod g;\nmod h { mod i; }\n"),
        ("a/g.rs", "#[path = \"../j.rs\"] mod k;\nmod l;\n"),
        ("a/g/l.rs", "use crate::Top;\n"),
        ("a/h/i.rs", "use crate::Top;\n"),
        ("j.rs", "use crate::Top;\n"),
        ("b/c.rs", "use super::Inner;\n"),
        ("b/d.rs", "use super::super::a::A;\n"),
        ("x/y.rs", "mod z;\n"),
        ("x/z.rs", "use crate::b::e::E;\n"),
        ("main.rs", "mod m;\n"),
        ("m.rs", "use crate::Top;\n"),
        ("bin/n.rs", "use crate::Top;\n"),
    ]);
    assert_eq!(
        arrows,
        [
            "a/g/l>lib",
            "a/h/i>lib",
            "b/c>lib",
            "b/d>a/mod",
            "j>lib",
            "x/z>b/d",
            "m>main",
        ]
    );
}

fn import_graph(edges: &[(&str, &str)]) -> Imports {
    let mut graph = Imports::new();
    for (from, to) in edges {
        graph
            .entry((*from).to_owned())
            .or_default()
            .insert((*to).to_owned());
        graph.entry((*to).to_owned()).or_default();
    }
    graph
}

#[test]
fn a_circle_says_which_of_its_files_imports_which() {
    let circles = package(&[
        ("lib.rs", "mod b;\nmod c;\nmod d;\n"),
        ("b.rs", "use crate::{c::C, d::D};\n"),
        ("c.rs", "use crate::b::B;\n"),
        ("d.rs", "pub struct D;\n"),
    ])
    .circles();
    assert_eq!(circles.len(), 1);
    assert_eq!(
        (circles[0].package.as_str(), circles[0].files.len()),
        ("a", 2)
    );
    let wanted = import_graph(&[("src/b.rs", "src/c.rs"), ("src/c.rs", "src/b.rs")]);
    assert_eq!(circles[0].imports, wanted);
}

#[test]
fn circles_are_what_reaches_one_another() {
    let circles = circles_of(&import_graph(&[
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("c", "d"),
        ("d", "e"),
        ("e", "d"),
        ("e", "f"),
        ("g", "a"),
    ]));
    assert_eq!(circles, [vec!["a", "b", "c"], vec!["d", "e"]]);
    let line = import_graph(&[("a", "b"), ("b", "c"), ("a", "c")]);
    assert_eq!(circles_of(&line), [[""; 0]; 0]);
}

fn circle(package: &str, files: &[&str]) -> Circle {
    Circle {
        package: package.to_owned(),
        files: files.iter().map(|f| (*f).to_owned()).collect(),
        imports: Imports::new(),
    }
}

const LISTED: &str =
    "[[circle]]\ncrate = \"a\"\nfiles = [\"p\", \"q\", \"r\", \"s\", \"t\"]\nreason = \"why\"\n";

#[test]
fn a_large_circle_must_be_the_listed_one() {
    let listed = circles::read_list(LISTED).unwrap();
    let found = circle("a", &["p", "q", "r", "s", "t"]);
    let small = circle("a", &["u", "v", "w"]);
    assert_eq!(small.files.len(), MAX_CIRCLE);
    assert_eq!(circle_defects(&[found.clone(), small], &listed), [""; 0]);
    assert_eq!(circle_defects(&[], &[]), [""; 0]);

    for (circles, words) in [
        (vec![], "is gone: p q r s t"),
        (vec![circle("a", &["p", "q", "r"])], "is gone"),
        (vec![circle("b", &["p", "q", "r", "s", "t"])], "is gone"),
        (
            vec![circle("a", &["p", "q", "r", "s"])],
            "has shrunk: take out of the list t",
        ),
        (
            vec![circle("a", &["p", "q", "r", "s", "t", "u"])],
            "has grown by u",
        ),
        (
            vec![circle("a", &["p", "q", "r", "s", "u"])],
            "has grown by u",
        ),
        (
            vec![
                circle("a", &["p", "q", "1", "2"]),
                circle("a", &["r", "s", "3", "4"]),
            ],
            "fell apart",
        ),
        (
            vec![found, circle("a", &["1", "2", "3", "4"])],
            "circle of 4 files, at most 3",
        ),
    ] {
        let defects = circle_defects(&circles, &listed);
        assert!(
            defects.iter().any(|d| d.contains(words)),
            "{words}: {defects:?}"
        );
    }
}

#[test]
fn a_list_must_be_whole_and_give_reasons() {
    let without = LISTED.replace("why", " ");
    let without = circles::read_list(&without).unwrap();
    let found = circle("a", &["p", "q", "r", "s", "t"]);
    assert_eq!(circle_defects(&[found], &without).len(), 1);
    assert!(circles::read_list(&LISTED.replace("reason", "cause")).is_err());
    assert!(circles::read_list(&LISTED.replace("[[circle]]", "[[circles]]")).is_err());
    assert!(reexports::read_list("[[reexport]]\ncrate = \"a\"\n").is_err());
}

/// What a crate of two files passes on, `lib.rs` with this text.
fn passed_on(text: &str) -> Vec<String> {
    let text = format!("mod b;\n{text}\n");
    let found = of_package(&package(&[
        ("lib.rs", &text),
        (
            "b.rs",
            "use piebald_hw::cache;\npub(crate) use piebald_sim as sim;\n",
        ),
    ]));
    let name = |file: &str, what: String| {
        if file == "src/lib.rs" {
            what
        } else {
            file.to_owned()
        }
    };
    found
        .into_iter()
        .flat_map(|((_, file), all)| all.into_iter().map(move |what| name(&file, what)))
        .collect()
}

#[test]
fn names_of_another_room_that_are_passed_on_are_found() {
    for (text, names) in [
        ("pub use piebald_hw;", &["piebald_hw"][..]),
        ("pub use piebald_hw as hw;", &["piebald_hw"]),
        ("pub use ::piebald_hw::Cache;", &["piebald_hw::Cache"]),
        (
            "pub use piebald_hw::{Cache as C, dram::{self, *}};",
            &[
                "piebald_hw::Cache",
                "piebald_hw::dram",
                "piebald_hw::dram::*",
            ],
        ),
        (
            "pub mod rooms { pub use piebald_hw as hw; }",
            &["piebald_hw"],
        ),
        (
            "use piebald_hw as hw;\npub use hw::Cache;",
            &["piebald_hw::Cache"],
        ),
        (
            "use ::piebald_hw as hw;\npub use self::hw::Cache;",
            &["piebald_hw::Cache"],
        ),
        ("pub use b::cache::Line;", &["piebald_hw::cache::Line"]),
        ("pub use crate::b::sim::*;", &["piebald_sim::*"]),
        ("pub extern crate piebald_hw as hw;", &["piebald_hw"]),
    ] {
        assert_eq!(passed_on(text), names, "{text}");
    }
}

#[test]
fn what_stays_in_the_room_is_not_passed_on() {
    for text in [
        "use piebald_hw::Cache;",
        "pub(crate) use piebald_hw::Cache;",
        "pub(super) use piebald_hw as hw;",
        "pub use b::Own;",
        "pub use serde::Serialize;",
        "#[cfg(test)]\npub use piebald_hw::Cache;",
        "// pub use piebald_hw::Cache;\nconst A: &str = \"pub use piebald_hw;\";",
        "pub fn f(_: piebald_hw::Cache) {}",
    ] {
        assert_eq!(passed_on(text), [""; 0], "{text}");
    }
}

#[test]
fn the_list_of_what_is_passed_on_only_shrinks() {
    let place = |file: &str| ("a".to_owned(), file.to_owned());
    let found = |files: &[(&str, &[&str])]| -> Found {
        let names = |all: &[&str]| all.iter().map(|w| (*w).to_owned()).collect::<BTreeSet<_>>();
        let entry = |(file, all): &(&str, &[&str])| (place(file), names(all));
        files.iter().map(entry).collect::<BTreeMap<_, _>>()
    };
    let list =
        "[[reexport]]\ncrate = \"a\"\nfile = \"b\"\nwhat = [\"c\", \"d\"]\nreason = \"why\"\n";
    let accepted = reexports::read_list(list).unwrap();
    assert_eq!(
        reexport_defects(&found(&[("b", &["c", "d"])]), &accepted),
        [""; 0]
    );
    for (files, words) in [
        (&[("b", &["c", "d", "e"][..])][..], "a/b passes on e"),
        (&[("b", &["c", "d"]), ("f", &["c"])], "a/f passes on c"),
        (&[("b", &["c"])], "a/b no longer passes on d"),
        (&[], "a/b no longer passes on c"),
    ] {
        let defects = reexport_defects(&found(files), &accepted);
        assert!(
            defects.iter().any(|d| d.contains(words)),
            "{words}: {defects:?}"
        );
    }
    let silent = reexports::read_list(&list.replace("why", "")).unwrap();
    assert_eq!(
        reexport_defects(&found(&[("b", &["c", "d"])]), &silent).len(),
        1
    );
}
