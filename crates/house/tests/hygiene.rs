//! What every file owes to its readers, and the documents to the program.

use std::path::{Path, PathBuf};

use piebald_house::{
    files_below, markdown, read, root,
    rules::{MAX_LINES, manifest_defects, source_defects, tests_left_out, text_defects},
    stages::{Stages, ignored},
};

/// Extensions of files that people write.
const WRITTEN: &[&str] = &[
    "rs", "toml", "md", "sh", "py", "svg", "html", "css", "js", "c", "h", "cpp", "csv", "json",
];
/// Written files without an extension.
const PLAIN: &[&str] = &["run"];

fn name(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    path.extension()
        .is_some_and(|e| wanted.iter().any(|w| e == *w))
}

fn written_files() -> Vec<PathBuf> {
    let mut files = files_below(&root());
    files.retain(|f| {
        has_extension(f, WRITTEN) || PLAIN.iter().any(|n| f.file_name().is_some_and(|f| f == *n))
    });
    assert!(
        files.iter().any(|f| f.ends_with("crates/units/src/lib.rs")),
        "the tree was not found"
    );
    files
}

fn sources() -> Vec<PathBuf> {
    let mut files = written_files();
    files.retain(|f| has_extension(f, &["rs"]));
    files
}

fn documents() -> Vec<PathBuf> {
    let mut files = written_files();
    files.retain(|f| has_extension(f, &["md"]));
    files
}

/// Fails with all defects at once.
fn none(defects: Vec<String>) {
    assert!(defects.is_empty(), "\n{}", defects.join("\n"));
}

#[test]
fn no_file_names_a_place_of_one_computer_or_a_package_host() {
    let defects = |f: &PathBuf| text_defects(&name(f), &read(f));
    none(written_files().iter().flat_map(defects).collect());
}

#[test]
fn sources_are_finished_short_and_open_with_their_purpose() {
    let defects = |f: &PathBuf| source_defects(&name(f), &read(f));
    none(sources().iter().flat_map(defects).collect());
}

/// No reader of traces has the mark `[M]`, by which the papers' notes say that something is only assumed.
#[test]
fn readers_of_traces_have_no_mark_of_assumptions() {
    let readers: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|f| name(f).starts_with("crates/trace/src/"))
        .collect();
    assert!(readers.len() > 100, "{}", readers.len());
    let assumes = |f: &&PathBuf| read(f).contains("[M]");
    none(readers.iter().filter(assumes).map(|f| name(f)).collect());
}

#[test]
fn every_crate_takes_lints_and_licence_from_the_workspace() {
    let crates = root().join("crates");
    let manifests: Vec<PathBuf> = std::fs::read_dir(&crates)
        .expect("crates/ can be listed")
        .map(|entry| entry.expect("an entry").path().join("Cargo.toml"))
        .filter(|path| path.exists())
        .collect();
    assert!(manifests.len() >= 10, "{manifests:?}");
    let defects = |path: &PathBuf| {
        manifest_defects(&name(path), &read(path))
            .unwrap_or_else(|e| vec![format!("{}: {e}", name(path))])
    };
    none(manifests.iter().flat_map(defects).collect());
}

/// Cargo finds no tests by itself where they are one program: a file that is not named there
/// would never run.
#[test]
fn every_file_of_tests_is_in_a_program() {
    let mut seen = 0;
    let mut defects = Vec::new();
    for all in sources().iter().filter(|f| f.ends_with("tests/all.rs")) {
        let tests = all.parent().expect("a folder");
        let files: Vec<String> = files_below(tests)
            .iter()
            .filter(|f| f.parent() == Some(tests) && has_extension(f, &["rs"]))
            .filter_map(|f| Some(f.file_name()?.to_string_lossy().into_owned()))
            .collect();
        seen += files.len();
        let manifest = read(&tests.with_file_name("Cargo.toml"));
        for file in tests_left_out(&manifest, &read(all), &files) {
            defects.push(format!("{}: {file} is in no program", name(tests)));
        }
    }
    assert!(seen > 100, "{seen} files");
    none(defects);
    let files = ["all.rs", "a.rs", "b.rs", "c.rs"].map(str::to_owned);
    let manifest = "path = \"tests/all.rs\"\npath = \"tests/b.rs\"";
    assert_eq!(
        tests_left_out(manifest, "mod a;\n// mod c;\n", &files),
        ["c.rs"]
    );
}

/// A test that no stage asks for is never run.
#[test]
fn every_ignored_test_is_run_by_the_stage_that_its_reason_names() {
    let stages = Stages::read(&read(&root().join("test.sh")));
    assert!(stages.has("tests") && stages.has("debian-13"));
    let mut seen = 0;
    let mut defects = Vec::new();
    for file in sources() {
        let path = name(&file);
        let Some(package) = path
            .strip_prefix("crates/")
            .and_then(|p| p.split('/').next())
        else {
            continue;
        };
        // This crate's own tests hold such attributes in texts.
        if package == "house" {
            continue;
        }
        let one_program = root()
            .join("crates")
            .join(package)
            .join("tests/all.rs")
            .exists();
        for test in ignored(&path, &read(&file), one_program) {
            seen += 1;
            let at = format!("{path}:{}", test.line);
            defects.extend(stages.defect(&test).map(|d| format!("{at}: {d}")));
        }
    }
    assert!(seen > 50, "{seen} tests");
    none(defects);
}

/// What is packed says where it comes from and under which terms it is.
#[test]
fn every_folder_of_test_data_names_its_origin_and_licence() {
    let data = root().join("testdata");
    let mut defects = Vec::new();
    let mut seen = 0;
    for folder in folders_of(&data) {
        // Versions of forms have a page each.
        let versions = folder.ends_with("fixtures");
        let held = if versions {
            folders_of(&folder)
        } else {
            vec![folder]
        };
        for folder in held {
            seen += 1;
            let page = folder.join("README.md");
            if !page.exists() {
                defects.push(format!("{}: no README.md", name(&folder)));
            } else if !read(&page).contains("licence") {
                defects.push(format!("{}: no word of a licence", name(&page)));
            }
        }
    }
    assert!(seen >= 11, "{seen} folders");
    none(defects);
}

/// A clone is fetched by everybody: what is packed stays small.
#[test]
fn test_data_stays_small() {
    let size = |f: &PathBuf| f.metadata().expect("a file").len();
    let below = |folder: &str| files_below(&root().join(folder));
    for (folder, most) in [
        ("testdata", 25_000_000),
        ("testdata/golden", 10_000_000),
        ("testdata/fixtures", 2_000_000),
    ] {
        let bytes: u64 = below(folder).iter().map(size).sum();
        assert!(bytes > 0, "{folder}: nothing is there");
        assert!(bytes <= most, "{folder}: {bytes} bytes; allowed: {most}");
    }
    for file in below("testdata/golden/recordings") {
        let bytes = size(&file);
        assert!(bytes <= 500_000, "{}: {bytes} bytes", name(&file));
    }
}

fn folders_of(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut folders: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    folders.retain(|f| f.is_dir());
    folders.sort();
    folders
}

#[test]
fn both_licences_are_there() {
    assert!(read(&root().join("LICENSE-MIT")).starts_with("MIT License"));
    let apache = read(&root().join("LICENSE-APACHE"));
    assert!(apache.contains("Apache License") && apache.contains("Version 2.0, January 2004"));
    let workspace: toml::Table = read(&root().join("Cargo.toml")).parse().expect("TOML");
    assert_eq!(
        workspace["workspace"]["package"]["license"].as_str(),
        Some("MIT OR Apache-2.0")
    );
}

/// The README and the tutorials, whose commands are run.
fn pages_that_run() -> Vec<PathBuf> {
    let mut pages = documents();
    let tutorials = root().join("docs/tutorials");
    pages.retain(|page| *page == root().join("README.md") || page.starts_with(&tutorials));
    assert!(pages.len() > 3, "{pages:?}");
    pages
}

#[test]
fn blocks_of_the_readme_and_of_tutorials_say_whether_they_run() {
    const MARKS: &[&str] = &["sh", "sh stage", "console", "toml", "text", "text near"];
    let mut unknown = Vec::new();
    for page in pages_that_run() {
        let blocks = markdown::blocks(&read(&page));
        let page = name(&page);
        assert!(
            blocks.iter().any(|b| b.mark == "sh"),
            "no command of {page} is run"
        );
        let strange = blocks.iter().filter(|b| !MARKS.contains(&b.mark.as_str()));
        let told = |b: &markdown::Block| {
            let (line, mark) = (b.line, &b.mark);
            format!("{page}:{line}: mark \"{mark}\"; allowed: {MARKS:?}")
        };
        unknown.extend(strange.map(told));
    }
    none(unknown);
}

/// Commands that are left out of the README's run because a stage is what they are.
#[test]
fn blocks_left_to_a_stage_hold_nothing_but_that_stage() {
    const STAGES: &[&str] = &["./test.sh", "./demo.sh", ".ci/run"];
    let blocks = markdown::blocks(&read(&root().join("README.md")));
    let stray = blocks
        .iter()
        .filter(|b| b.mark == "sh stage")
        .flat_map(|b| b.body.iter().map(move |line| (b.line, line)))
        .filter(|(_, line)| {
            let command = line.split('#').next().unwrap_or_default().trim();
            !command.is_empty() && !STAGES.iter().any(|s| command.split(' ').next() == Some(*s))
        });
    none(
        stray
            .map(|(at, line)| format!("README.md:{at}: \"{line}\" runs in no stage"))
            .collect(),
    );
}

#[test]
fn the_readme_shows_only_verbs_that_exist() {
    let status = read(&root().join("docs/status.md"));
    let rows = markdown::table(&status, &["verb", "state"]).expect("a table of verbs");
    let exists: Vec<&str> = rows
        .iter()
        .filter(|row| row[1] == "exists")
        .flat_map(|row| markdown::code_words(&row[0]))
        .filter_map(|verb| verb.split(' ').next())
        .collect();
    assert!(exists.contains(&"study"), "{exists:?}");
    let readme = read(&root().join("README.md"));
    let mut defects = Vec::new();
    for block in markdown::blocks(&readme).iter().filter(|b| b.mark == "sh") {
        for line in &block.body {
            let mut words = line
                .split_whitespace()
                .skip_while(|w| !w.ends_with("/piebald") && *w != "piebald");
            let verb = words.nth(1).filter(|v| !v.starts_with('-'));
            if let Some(verb) = verb.filter(|v| !exists.contains(v)) {
                defects.push(format!(
                    "README.md:{}: \"{verb}\" is not said to exist",
                    block.line
                ));
            }
        }
    }
    none(defects);
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let mut defects = Vec::new();
    let mut seen = 0;
    for document in documents() {
        let text = read(&document);
        for target in markdown::local_links(&text) {
            seen += 1;
            let here = document.parent().unwrap_or(&document);
            if !here.join(target).exists() {
                defects.push(format!("{}: {target} does not exist", name(&document)));
            }
        }
    }
    assert!(seen > 0, "no link was found at all");
    none(defects);
}

#[test]
fn each_rule_finds_what_breaks_it() {
    let home = concat!("/ho", "me/someone");
    assert_eq!(
        text_defects("a.md", &format!("fine\nsee {home}\n")).len(),
        1
    );
    assert_eq!(text_defects("a.md", "see /usr/bin").len(), 0);
    let fine = "//! Purpose.\nfn f() {}\n";
    assert_eq!(source_defects("a.rs", fine).len(), 0);
    assert_eq!(source_defects("a.rs", "fn f() {}\n").len(), 1);
    assert_eq!(
        source_defects("a.rs", &format!("{fine}{}!()", concat!("to", "do"))).len(),
        1
    );
    assert_eq!(
        source_defects(
            "a.rs",
            &format!("//! Long.\n{}", "\n".repeat(MAX_LINES - 1))
        )
        .len(),
        0
    );
    assert_eq!(
        source_defects("a.rs", &format!("//! Long.\n{}", "\n".repeat(MAX_LINES))).len(),
        1
    );
    assert_eq!(
        manifest_defects("a", "[package]\nname = \"a\"")
            .unwrap()
            .len(),
        6
    );
    let lints = manifest_defects("a", "[lints]\nworkspace = false").unwrap();
    assert!(
        lints.contains(&"a: lints.workspace = true is missing".to_owned()),
        "{lints:?}"
    );
    assert!(manifest_defects("a", "[").is_err());
}

#[test]
fn tables_blocks_and_links_are_read_as_people_see_them() {
    let text = "a | b\n\n| b | a |\n|---|---|\n| 1 | `x` |\n| 2 | y |\n\nrest\n```sh\nrun\n```\n[l](d/e.md#f) [w](https://h/p)";
    let rows = markdown::table(text, &["a", "b"]).unwrap();
    assert_eq!(rows, [["`x`", "1"], ["y", "2"]]);
    assert_eq!(markdown::code_words(&rows[0][0]), ["x"]);
    let blocks = markdown::blocks(text);
    assert_eq!(
        (blocks.len(), blocks[0].mark.as_str(), blocks[0].line),
        (1, "sh", 9)
    );
    assert_eq!(blocks[0].body, ["run"]);
    assert_eq!(markdown::local_links(text), ["d/e.md"]);
    assert!(markdown::table(text, &["c"]).is_none());
}
