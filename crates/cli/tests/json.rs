//! `--json` means the same for every verb, and no file of somebody's is lost by it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

/// Exit code, standard output, standard error.
fn run(folder: &Path, words: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(words.split_whitespace())
        .current_dir(folder)
        .env("PIEBALD_ROOT", folder.join("root"))
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "{words}: {err}");
    (output.status.code().expect("no signal"), out, err)
}

const SCENARIO: &str = "schema = 1\nrepetitions = 1\nbudget_refs = \"2k\"\nwarmup_refs = \"1k\"\n\
    [machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n\
    [[program]]\nbuiltin = \"chase:64KiB\"\ncores = \"0\"\n";

/// A scenario, a block trace under several names, a memory trace and a recording of it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("written");
    };
    write("s.toml", SCENARIO);
    let rows: String = (0..200u64)
        .map(|i| format!("{},h,0,Read,{},8192,5\n", 1000 + i, i * 37 % 90 * 8192))
        .collect();
    for name in ["t.csv", "t.json", "t.txt"] {
        write(name, &rows);
    }
    let memory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mem/chase.lackey");
    fs::copy(memory, folder.path().join("m.lackey")).expect("copied");
    let (code, _, err) = run(folder.path(), "trace convert m.lackey r.pbr");
    assert_eq!(code, 0, "{err}");
    folder
}

fn json(text: &str, of: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{of}: {e}: {text}"))
}

/// Every verb that works here, and the exit code that it has.
const VERBS: [(&str, i32); 21] = [
    ("study s.toml -q", 0),
    ("replay t.csv -q --device none", 0),
    ("reproduce", 0),
    ("reproduce rainbow --status -q --only R-1", 0),
    ("probe --no-measure", 0),
    ("status", 1),
    ("machine list", 0),
    ("machine disks", 0),
    ("machine disks nvme", 0),
    ("machine show w3540", 0),
    ("machine check w3540", 0),
    ("trace info t.csv", 0),
    ("trace info m.lackey", 0),
    ("trace info r.pbr", 0),
    ("trace formats", 0),
    ("trace head t.csv", 0),
    ("trace head m.lackey", 0),
    ("trace head r.pbr", 0),
    ("keys policy", 0),
    // The file is of the first schema.
    ("scenario upgrade s.toml --check", 1),
    ("replay --policy help", 0),
];

#[test]
fn every_form_gives_the_same_document_and_nothing_else() {
    let folder = folder();
    // Times of the host differ from run to run, and the command line is kept as it was given.
    let same = |mut value: Value| {
        for key in ["host_seconds", "command", "seconds"] {
            value.as_object_mut().expect("an object").remove(key);
        }
        value
    };
    for (verb, wanted) in VERBS {
        let mut documents = Vec::new();
        for form in ["--json", "--json -", "--json=-"] {
            let (code, out, err) = run(folder.path(), &format!("{verb} {form}"));
            assert_eq!(code, wanted, "{verb} {form}: {err}");
            assert_eq!(err, "", "{verb} {form}");
            documents.push(same(json(&out, verb)));
        }
        for (form, file) in [("--json", "out.json"), ("--json=", "other")] {
            let gap = if form.ends_with('=') { "" } else { " " };
            let (code, out, err) = run(folder.path(), &format!("{verb} {form}{gap}{file}"));
            assert_eq!(code, wanted, "{verb} {form}: {err}");
            assert!(!out.starts_with('{'), "{verb}: what is for people: {out}");
            let path = folder.path().join(file);
            let text = fs::read_to_string(&path).expect("the file");
            documents.push(same(json(&text, verb)));
            fs::remove_file(path).expect("removed");
        }
        assert!(documents[0]["schema"].is_u64(), "{verb}");
        for document in &documents[1..] {
            assert_eq!(documents[0], *document, "{verb}");
        }
    }
}

#[test]
fn a_trace_behind_json_is_an_input_and_never_an_output() {
    let folder = folder();
    let kept = fs::read(folder.path().join("t.csv")).expect("read");
    let (code, out, err) = run(folder.path(), "replay -q --device none --json t.csv");
    assert_eq!(code, 0, "{err}");
    assert_eq!(
        json(&out, "replay")["traces"].as_array().map(Vec::len),
        Some(1)
    );
    for words in [
        "replay t.csv -q --device none --json t.json",
        "replay t.csv -q --device none --json=t.txt",
        "replay t.csv -q --device none --csv=t.txt",
        "replay t.txt -q --device none --csv t.csv",
        "trace info r.pbr --json=s.toml",
        "trace info t.csv --json=r.pbr",
    ] {
        let (code, out, err) = run(folder.path(), words);
        assert_eq!((code, out.as_str()), (2, ""), "{words}: {err}");
        assert!(err.contains("would be overwritten"), "{words}: {err}");
    }
    for name in ["t.csv", "t.json", "t.txt"] {
        let now = fs::read(folder.path().join(name)).expect("read");
        assert_eq!(now, kept, "{name}");
    }
    let text = fs::read_to_string(folder.path().join("s.toml")).expect("read");
    assert_eq!(text, SCENARIO);
    // An output of an earlier run is replaced.
    for _ in 0..2 {
        let (code, _, err) = run(folder.path(), "trace info t.csv --json out.json");
        assert_eq!(code, 0, "{err}");
    }
}

#[test]
fn the_forms_of_earlier_versions_work_with_a_note() {
    let folder = folder();
    for words in [
        "study s.toml -q --json x.txt",
        "study -q --json x.txt s.toml",
    ] {
        let (code, out, err) = run(folder.path(), words);
        assert_eq!(code, 0, "{err}");
        assert!(
            err.contains("note:") && err.contains("--json=FILE"),
            "{err}"
        );
        assert!(!out.starts_with('{'), "{out}");
        let path = folder.path().join("x.txt");
        json(&fs::read_to_string(&path).expect("the file"), words);
        fs::remove_file(path).expect("removed");
    }
    // CSV as well, and the other verbs whose option always took the next word.
    let (code, _, err) = run(folder.path(), "study s.toml -q --csv x.txt");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("note:"), "{err}");
    let csv = fs::read_to_string(folder.path().join("x.txt")).expect("the file");
    assert!(csv.starts_with("policy,"), "{csv}");
    let words = "reproduce --json y.txt rainbow --status -q --only R-1";
    let (code, _, err) = run(folder.path(), words);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("note:"), "{err}");
    json(
        &fs::read_to_string(folder.path().join("y.txt")).expect("the file"),
        words,
    );
    // A flag before the trace, whose name now looks like an output.
    let (code, out, err) = run(folder.path(), "trace info --json t.json");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("note:"), "{err}");
    assert_eq!(json(&out, "info")["format"], "msr");
    let (code, _, err) = run(folder.path(), "trace info --json");
    assert_eq!(code, 2, "{err}");
    assert!(!err.contains("note:"), "{err}");
}

#[test]
fn two_documents_do_not_share_standard_output() {
    let folder = folder();
    let (code, out, err) = run(folder.path(), "study s.toml -q --json --csv");
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("both go to standard output"), "{err}");
    let (code, out, err) = run(folder.path(), "study s.toml -q --json --csv out.csv");
    assert_eq!(code, 0, "{err}");
    json(&out, "study");
    let csv = fs::read_to_string(folder.path().join("out.csv")).expect("the file");
    assert!(csv.starts_with("policy,"), "{csv}");
}

#[test]
fn an_output_that_cannot_be_written_leaves_nothing_behind() {
    let folder = folder();
    let (code, _, err) = run(folder.path(), "machine list --json=none/x.json");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("none/x.json"), "{err}");
    assert!(!folder.path().join("none").exists());
}
