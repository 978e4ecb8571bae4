//! The dependency edges of the workspace are those of `docs/architecture.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    process::Command,
};

use piebald_house::{
    files_below, read,
    rooms::{POLICY_ROOMS, Room, edge_defects, policy_defects, read_table},
    root,
};
use serde_json::Value;

/// `piebald-hw` is the room `hw`; the command itself is the room `cli`, and the Rust side of
/// the Linux module, which is no member of the workspace, `kernel/`.
fn room_of(package: &str) -> Option<&str> {
    match package {
        "piebald" => Some("cli"),
        "piebald-kernel-core" => Some("kernel/"),
        _ => package.strip_prefix("piebald-"),
    }
}

/// The packages of a manifest and of its workspace, from cargo itself.
fn packages_of(manifest: &str) -> Vec<Value> {
    let output = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--manifest-path",
        ])
        .arg(root().join(manifest))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages.clone()
}

/// Normal and build edges between rooms.
fn real_edges() -> BTreeMap<String, BTreeSet<String>> {
    let mut packages = packages_of("Cargo.toml");
    packages.extend(packages_of("kernel/core/Cargo.toml"));
    let text = |v: &Value| v.as_str().expect("a text").to_owned();
    let members: BTreeSet<String> = packages.iter().map(|p| text(&p["name"])).collect();
    let uses = |package: &Value| {
        package["dependencies"]
            .as_array()
            .expect("a list of dependencies")
            .iter()
            .filter(|d| d["kind"].as_str() != Some("dev"))
            .map(|d| text(&d["name"]))
            .filter(|name| members.contains(name))
            .filter_map(|name| room_of(&name).map(str::to_owned))
            .collect()
    };
    packages
        .iter()
        .filter_map(|p| Some((room_of(p["name"].as_str()?)?.to_owned(), uses(p))))
        .collect()
}

fn table() -> Vec<Room> {
    let path = root().join("docs/architecture.md");
    read_table(&read(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn the_real_edges_are_in_the_table() {
    let real = real_edges();
    // Guards the test itself: an empty answer of cargo would agree with anything.
    assert!(real["sim"].contains("hw"), "{real:?}");
    let defects = edge_defects(&table(), &real);
    assert!(defects.is_empty(), "\n{}", defects.join("\n"));
}

#[test]
fn rooms_inside_policy_do_not_know_one_another() {
    let source = root().join("crates/policy/src");
    let files = files_below(&source);
    assert!(files.iter().any(|f| f.ends_with("contract.rs")));
    let defects: Vec<String> = files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "rs"))
        .flat_map(|f| {
            let name = f.strip_prefix(&source).expect("below the source");
            policy_defects(&name.to_string_lossy(), &read(f))
        })
        .collect();
    assert!(defects.is_empty(), "\n{}", defects.join("\n"));
}

const SMALL: &str = "
| room | may depend on | state |
|---|---|---|
| `units` | nothing | built |
| `hw` | `units` | built |
| `guest` | every room | not yet built |
";

fn edges(list: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
    list.iter()
        .map(|(room, uses)| {
            (
                (*room).to_owned(),
                uses.iter().map(|u| (*u).to_owned()).collect(),
            )
        })
        .collect()
}

#[test]
fn an_edge_outside_the_table_is_found() {
    let table = read_table(SMALL).unwrap();
    assert!(edge_defects(&table, &edges(&[("units", &[]), ("hw", &["units"])])).is_empty());
    let wrong = edge_defects(&table, &edges(&[("units", &["hw"]), ("hw", &[])]));
    assert_eq!(
        wrong,
        ["units depends on hw, which the table does not allow"]
    );
}

#[test]
fn a_room_without_a_row_and_a_row_without_a_room_are_found() {
    let table = read_table(SMALL).unwrap();
    let wrong = edge_defects(
        &table,
        &edges(&[("units", &[]), ("new", &[]), ("guest", &[])]),
    );
    assert_eq!(
        wrong,
        [
            "guest exists, and the table says \"not yet built\"",
            "new has no row in the table",
            "hw is said to be built and does not exist",
        ]
    );
}

#[test]
fn a_circle_in_the_table_is_found() {
    let circle = SMALL.replace("nothing", "`hw`");
    let defects = edge_defects(
        &read_table(&circle).unwrap(),
        &edges(&[("units", &[]), ("hw", &[])]),
    );
    assert!(
        defects.iter().any(|d| d.contains("by way of others")),
        "{defects:?}"
    );
}

#[test]
fn a_table_that_cannot_be_understood_is_refused() {
    assert!(read_table("no table").is_err());
    for (good, bad) in [
        ("| built", "| soon"),
        ("nothing", "much"),
        ("`units` | built", "`cellar` | built"),
    ] {
        assert!(read_table(&SMALL.replace(good, bad)).is_err(), "{bad}");
    }
}

#[test]
fn a_room_of_policy_that_names_another_is_found() {
    for room in POLICY_ROOMS {
        let other = POLICY_ROOMS[(POLICY_ROOMS.iter().position(|r| *r == room).unwrap() + 1) % 5];
        let file = format!("{room}/zone.rs");
        assert_eq!(
            policy_defects(&file, &format!("use crate::{room}::Zone;")),
            [""; 0]
        );
        assert_eq!(
            policy_defects(&file, &format!("// unlike {other}\nlet a = \"{other}\";")),
            [""; 0]
        );
        for line in [
            format!("use crate::{other}::Zone;"),
            format!("use crate::{{buddy, {other}}};"),
            format!("super::super::{other}::run(); // why"),
        ] {
            assert_eq!(policy_defects(&file, &line).len(), 1, "{line}");
            assert_eq!(policy_defects("buddy.rs", &line).len(), 1, "{line}");
            assert_eq!(policy_defects("lib.rs", &line).len(), 0, "{line}");
        }
    }
}
