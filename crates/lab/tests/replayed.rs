//! Replays as files: what they draw, clients of a server, and programs that page.

use std::{fs, path::Path};

use piebald_experiment::{Document, Refused};
use piebald_lab::{
    Hooks,
    replay::{ReplayError, ReplayRequest, asked, replay},
};
use piebald_report::{Replay, ReplayRun, replay_to_html, replay_to_table};

const HEADER: &str =
    "# page trace of files: F id bytes path; R|W task file first_page pages (4 KiB pages).\n";

/// Two processes, each with a file of 400 pages that it reads twice, page by page.
fn trace(folder: &Path) {
    let mut text = HEADER.to_owned() + "F 0 1638400 a\nF 1 1638400 b\n";
    for page in (0..400).chain(0..400) {
        text += &format!("R 1 0 {page} 1\nR 2 1 {page} 1\n");
    }
    fs::write(folder.join("t.fpt"), text).expect("written");
    fs::write(folder.join("l.layout"), "a 0 1000 400\nb 0 9000 400\n").expect("written");
}

fn request(folder: &Path, text: &str) -> Result<ReplayRequest, Refused> {
    asked(&Document::new(&folder.join("r.toml"), text))
}

fn run(folder: &Path, text: &str) -> Result<Replay, ReplayError> {
    let request = request(folder, text).unwrap_or_else(|e| panic!("{e}"));
    replay(&request, Hooks::default())
}

fn one(folder: &Path, text: &str) -> Replay {
    run(folder, text).unwrap_or_else(|e| panic!("{e}"))
}

const REQUESTS: &str = r#"
schema = 2
seed = 42
memory.size = "1MiB"
policy = [{ name = "LRU", replace = "lru" }]
[files]
device = "wd400bb"
readahead = "2.6.11"
scheduler = "deadline-2.6.11"
layout = { file = "l.layout" }
start = "drawn"
[[program]]
requests = ["t.fpt"]
pace = "ordered"
excerpt = { limit = "1000", skip = "10%", lead = "5%" }
"#;

#[test]
fn what_a_replay_draws_follows_from_its_seed() {
    let folder = tempfile::tempdir().expect("a folder");
    trace(folder.path());
    let with = |old: &str, new: &str| one(folder.path(), &REQUESTS.replace(old, new));
    let first = with("", "");
    let counted = |replay: &Replay| -> (ReplayRun, String) {
        (replay.runs[0].clone(), replay.conditions.layout.clone())
    };
    assert_eq!(counted(&first), counted(&with("", "")));
    let other = with("seed = 42", "seed = 43");
    assert_ne!(counted(&first), counted(&other));
    assert!(first.conditions.layout.contains("moved by"));
    assert!(
        !with("\"drawn\"", "\"zero\"")
            .conditions
            .layout
            .contains("moved by")
    );
    // Of 1000 references each process passes over up to a tenth of its own.
    let references = first.runs[0].references;
    assert!((900..1000).contains(&references), "{references}");
    let notes = first.conditions.notes.join("; ");
    assert!(
        notes.contains("the first 1000 references") && notes.contains("drawn by the seed"),
        "{notes}"
    );
    let all = with(
        "excerpt = { limit = \"1000\", skip = \"10%\", lead = \"5%\" }",
        "",
    );
    assert_eq!(all.runs[0].references, 1600);
    let cut = with(", skip = \"10%\", lead = \"5%\"", "");
    assert_eq!(cut.runs[0].references, 1000);
}

const CLIENTS: &str = r#"
schema = 2
seed = 42
policy = [{ name = "Linux", replace = "linux-2.6.11" }, { name = "DULO", replace = "dulo-linux" }]
memory.size = "1MiB"
[files]
device = "wd400bb"
readahead = "2.6.11"
scheduler = "deadline-2.6.11"
layout = { file = "l.layout" }
start = "drawn"
[[program]]
clients = { queries = "results", sequences = "clients", seconds = 5 }
"#;

/// Three queries over two files, and two clients.
fn server(folder: &Path) {
    trace(folder);
    for (name, reads) in [
        ("one", "R 1 0 0 200\n"),
        ("two", "R 1 1 0 300\nR 1 0 7 9\n"),
    ] {
        let text = format!("{HEADER}F 0 1638400 a\nF 1 1638400 b\n{reads}");
        let packed = zstd::encode_all(text.as_bytes(), 1).expect("packed");
        fs::write(folder.join(format!("{name}.fpt.zst")), packed).expect("written");
    }
    fs::write(folder.join("clients"), "0 1\n1 0 1\n").expect("written");
}

#[test]
fn clients_are_compared_by_what_they_got() {
    let folder = tempfile::tempdir().expect("a folder");
    server(folder.path());
    fs::write(folder.path().join("results"), "one 100000\ntwo 300000\n").expect("written");
    let found = one(folder.path(), CLIENTS);
    assert_eq!(
        (found.runs.len(), found.conditions.pace.as_str()),
        (2, "clients")
    );
    for run in &found.runs {
        let figure = |name: &str| {
            let found = run.extra.iter().find(|(n, ..)| n == name);
            found.map_or(f64::NAN, |(_, value, _)| *value)
        };
        let io = run.io.as_ref().expect("a disk");
        assert_eq!((io.elapsed_s, run.hits + run.misses), (5.0, run.references));
        assert!(
            figure("queries") > 3.0 && figure("throughput") > 0.0,
            "{run:?}"
        );
    }
    let table = replay_to_table(&found, &piebald_report::TableStyle::default());
    assert!(table.contains("throughput [Mbit/s]"), "{table}");
    assert!(
        !table.contains("Execution time") && !table.contains('*'),
        "{table}"
    );
    assert!(replay_to_html(&found).is_ok());
    // Places in sequences are drawn, and where the files lie.
    let other = one(folder.path(), &CLIENTS.replace("seed = 42", "seed = 43"));
    assert_ne!(found.runs[0].misses, other.runs[0].misses);
    let refused = |old: &str, new: &str| {
        let text = CLIENTS.replace(old, new);
        assert_ne!(text, CLIENTS, "{old}");
        request(folder.path(), &text)
            .err()
            .map_or_else(String::new, |e| e.to_string())
    };
    let rule = refused("layout = { file = \"l.layout\" }", "layout = \"packed\"");
    assert!(
        rule.contains("files.layout") && rule.contains("allowed: { file"),
        "{rule}"
    );
    let none = refused("device = \"wd400bb\"", "device = \"none\"");
    assert!(
        none.contains("files.device") && none.contains("allowed: a disk"),
        "{none}"
    );
    fs::write(folder.path().join("clients"), "0 1\n7\n").expect("written");
    let query = run(folder.path(), CLIENTS)
        .err()
        .map_or_else(String::new, |e| e.to_string());
    assert!(
        query.contains("clients:2") && query.contains("allowed: 0 to 1"),
        "{query}"
    );
    fs::write(folder.path().join("results"), "one\n").expect("written");
    let line = run(folder.path(), CLIENTS)
        .err()
        .map_or_else(String::new, |e| e.to_string());
    assert!(
        line.contains("results:1") && line.contains("allowed: NAME BYTES"),
        "{line}"
    );
}

const TOUCHES: &str = r#"
schema = 2
policy = [{ name = "Linux", replace = "linux-2.6.11" }]
[files]
device = "wd400bb"
swap = "64MiB"
[[program]]
touches = "smm:n=8192,nz=65536,iterations=2"
[sweep]
"memory.size" = ["50%", "8MiB"]
"#;

#[test]
fn a_program_pages_where_memory_is_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = one(folder.path(), TOUCHES);
    let [short, long] = &found.runs[..] else {
        panic!("{:?}", found.runs);
    };
    let swapped = |run: &ReplayRun| {
        let ins = run.extra.iter().find(|(name, ..)| name == "swap-ins");
        ins.map_or(f64::NAN, |(_, value, _)| *value)
    };
    assert!(short.size_pages < long.size_pages);
    assert!(swapped(short) > 0.0, "{short:?}");
    assert_eq!((swapped(long), long.references), (0.0, short.references));
    // 20 ns for each element of each product.
    let seconds = long.io.as_ref().map(|io| io.elapsed_s);
    assert_eq!(seconds, Some(2.0 * 65536.0 * 20e-9));
    let refused = |old: &str, new: &str| {
        let text = TOUCHES.replace(old, new);
        assert_ne!(text, TOUCHES, "{old}");
        let found = request(folder.path(), &text);
        found.err().map_or_else(String::new, |e| e.to_string())
    };
    for (old, new, part) in [
        ("smm:n=8192,nz=65536,iterations=2", "smm", "iterations = 0"),
        (
            "swap = \"64MiB\"",
            "swap = \"5KiB\"",
            "files.swap = 5KiB: allowed: 0B, or",
        ),
        (
            "smm:n=8192,nz=65536,iterations=2",
            "chase:1MiB",
            "allowed: smm",
        ),
        ("swap = \"64MiB\"", "layout = \"packed\"", "files.layout"),
        (
            "touches =",
            "pace = \"serial\"\ntouches =",
            "only requests have this key",
        ),
        (
            "touches =",
            "requests = [\"a\"]\ntouches =",
            "exactly one of",
        ),
    ] {
        let found = refused(old, new);
        assert!(found.contains(part), "{found}");
    }
    let large = TOUCHES.replace("64MiB", "1TiB");
    let found = run(folder.path(), &large)
        .err()
        .map_or_else(String::new, |e| e.to_string());
    assert!(found.contains("has no room for it"), "{found}");
}

#[test]
fn what_is_drawn_is_refused_where_it_cannot_be() {
    let folder = tempfile::tempdir().expect("a folder");
    trace(folder.path());
    let twice = REQUESTS.replace("[\"t.fpt\"]", "[\"t.fpt\", \"u.fpt\"]");
    fs::copy(folder.path().join("t.fpt"), folder.path().join("u.fpt")).expect("copied");
    let found = request(folder.path(), &twice)
        .err()
        .map_or_else(String::new, |e| e.to_string());
    assert!(
        found.contains("program[0].excerpt") && found.contains("allowed: one trace"),
        "{found}"
    );
    let wrong = REQUESTS.replace("\"10%\"", "\"110%\"");
    let found = request(folder.path(), &wrong)
        .err()
        .map_or_else(String::new, |e| e.to_string());
    assert!(
        found.contains("program[0].excerpt.skip") && found.contains("0% to 100%"),
        "{found}"
    );
}
