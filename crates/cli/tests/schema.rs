//! `piebald schema`: what it prints is what is committed.

use std::{fs, path::Path, process::Command};

fn piebald(args: &[&str]) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(args)
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

/// With `PIEBALD_BLESS=1` the files are written.
#[test]
fn every_schema_is_the_one_that_is_committed() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas"));
    let (_, list, _) = piebald(&["schema"]);
    let names: Vec<&str> = list.lines().filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(
        names,
        ["scenario", "study", "sweep", "replay", "reproduction"]
    );
    for name in &names {
        let (code, printed, said) = piebald(&["schema", name]);
        assert_eq!((code, &*said), (Some(0), ""), "{name}");
        let path = folder.join(format!("{name}.json"));
        if std::env::var("PIEBALD_BLESS").as_deref() == Ok("1") {
            fs::create_dir_all(folder).expect("made");
            fs::write(&path, &printed).expect("written");
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == printed,
            "docs/schemas/{name}.json is not as `piebald schema {name}` prints; PIEBALD_BLESS=1 \
             cargo test -p piebald --test all schema:: writes it"
        );
    }
    let files = fs::read_dir(folder).expect("a folder").count();
    assert_eq!(files, names.len(), "files in docs/schemas");
}

#[test]
fn another_name_is_refused_with_those_that_there_are() {
    let (code, printed, said) = piebald(&["schema", "studdy"]);
    assert_eq!((code, &*printed), (Some(2), ""));
    assert!(
        said.contains("schema: no document \"studdy\"; allowed: scenario, study, sweep")
            && said.contains("did you mean study?"),
        "{said}"
    );
}
