//! Scenario files from the command line: axes, `--set`, hosts, upgrades.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn piebald(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("piebald runs")
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn run(folder: &Path, words: &[&str]) -> String {
    let output = piebald(folder, words);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

fn json(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&run(folder, words)).expect("JSON")
}

const STUDY: &str = r#"schema = 1 # the first
repetitions = 1
budget_refs = "5k"
[machine]
preset = "w3540"
memory = "768MiB"
[output]
set_map = 0
[[program]]
name = "sort"
builtin = "mergesort:64KiB"
cores = "0"
"#;

/// A folder with a file.
fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.toml"), text).expect("written");
    folder
}

#[test]
fn axes_give_one_table_and_a_list_of_records() {
    let text = STUDY.replace("schema = 1", "schema = 2")
        + "[sweep]\n\"program.sort.builtin\" = [\"mergesort:64KiB\", \"scan:64KiB\"]\n";
    let folder = folder(&text);
    let at = folder.path();
    let table = run(at, &["study", "s.toml", "-q", "-o", "out"]);
    for word in ["program.sort.builtin", "mergesort:64KiB", "scan:64KiB"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    for file in [
        "study.json",
        "study.csv",
        "point-1/report.html",
        "point-2/report.html",
    ] {
        assert!(at.join("out").join(file).is_file(), "{file}");
    }
    let list = json(at, &["study", "s.toml", "-q", "--json"]);
    assert_eq!(list.as_array().map(Vec::len), Some(2));
    assert_eq!(list[1]["axes"]["program.sort.builtin"], "scan:64KiB");
    // A point is the study of the file with that value.
    let pair = "program.sort.builtin=\"scan:64KiB\"";
    fs::write(at.join("s.toml"), STUDY).expect("written");
    let single = json(at, &["study", "s.toml", "-q", "--json", "--set", pair]);
    assert_eq!(single["policies"], list[1]["policies"]);
    let html = piebald(
        at,
        &[
            "study",
            "s.toml",
            "--set",
            "sweep.seed=[1,2]",
            "--html=a.html",
        ],
    );
    assert_eq!(html.status.code(), Some(2), "{}", said(&html));
    assert!(!at.join("a.html").exists());
}

#[test]
fn a_host_refuses_all_that_it_does_not_have_before_anything_starts() {
    let folder = folder(STUDY);
    let at = folder.path();
    let refused = piebald(at, &["study", "s.toml", "--host", "guest", "-o", "out"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = said(&refused);
    for line in [
        "s.toml:3: budget_refs: is for the host model",
        "s.toml:6: machine.memory: is for the host model",
        "s.toml:11: program[0].builtin: is for the host model",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!at.join("out").exists());
}

#[test]
fn an_upgrade_keeps_comments_and_is_made_once() {
    let folder = folder(STUDY);
    let at = folder.path();
    let check = piebald(at, &["scenario", "upgrade", "--check", "s.toml"]);
    assert_eq!(check.status.code(), Some(1), "{}", said(&check));
    let read = || fs::read_to_string(at.join("s.toml")).expect("is there");
    assert_eq!(read(), STUDY, "--check writes nothing");
    run(at, &["scenario", "upgrade", "s.toml"]);
    assert_eq!(read(), STUDY.replace("schema = 1 #", "schema = 2 #"));
    assert_eq!(run(at, &["scenario", "upgrade", "--check", "s.toml"]), "");
    // One wrong file, and none is written.
    fs::write(at.join("s.toml"), STUDY).expect("written");
    fs::write(at.join("wrong.toml"), STUDY.replace("cores", "core")).expect("written");
    let refused = piebald(at, &["scenario", "upgrade", "s.toml", "wrong.toml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert_eq!(read(), STUDY);
}

/// Requests on two devices, again and again.
fn requests(folder: &Path) -> String {
    let mut text = String::from("time,process,device,op,offset,size\n");
    for i in 0..400u64 {
        let (device, page) = (i % 2, i * 7 % 50);
        text += &format!("{},1,{device},R,{},4096\n", i * 1000, page * 4096);
    }
    let path = folder.join("t.csv");
    fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// The result of a replay without what differs between two runs.
fn counted(mut replay: Value) -> Value {
    for key in ["command", "host_seconds", "seconds", "cpu_seconds"] {
        if let Some(value) = replay.get_mut(key) {
            *value = Value::Null;
        }
    }
    replay
}

#[test]
fn a_replay_that_is_saved_runs_the_same() {
    let folder = folder("");
    let at = folder.path();
    let trace = requests(at);
    let columns = "time=1:us,process=2,device=3,op=4,offset=5:B,size=6:B,header=1";
    let asked: Vec<Vec<&str>> = vec![
        vec![
            "--columns",
            columns,
            "--policy",
            "lru,s3-fifo:rule=paper",
            "--size",
            "10%,64KiB",
        ],
        vec![
            "--columns",
            columns,
            "--device",
            "none",
            "--warmup",
            "20",
            "--size",
            "20%,50%",
            "--seed",
            "7",
        ],
        vec![
            "--columns",
            columns,
            "--pace",
            "ordered",
            "--layout",
            "slots",
            "--size",
            "50%",
        ],
    ];
    for options in asked {
        let words = [&["replay", &trace][..], &options].concat();
        let direct = json(at, &[&words[..], &["-q", "--json"]].concat());
        run(at, &[&words[..], &["--save", "r.toml"]].concat());
        let saved = json(at, &["replay", "r.toml", "-q", "--json"]);
        assert_eq!(counted(saved), counted(direct), "{options:?}");
    }
    let refused = piebald(at, &["replay", "r.toml", "--policy", "lru"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said(&refused).contains("--policy: r.toml says it; allowed: --set"),
        "{}",
        said(&refused)
    );
    let other = json(
        at,
        &[
            "replay",
            "r.toml",
            "-q",
            "--json",
            "--set",
            "sweep.\"memory.size\"=[\"20%\"]",
        ],
    );
    assert!(other["policies"].is_array());
    let wrong = piebald(at, &["replay", "r.toml", "--set", "program[0].pace=fast"]);
    let error = "--set program[0].pace=fast: program[0].pace = \"fast\": allowed: ";
    assert!(said(&wrong).contains(error), "{}", said(&wrong));
    let study = piebald(at, &["study", "r.toml"]);
    assert_eq!(study.status.code(), Some(2));
    assert!(
        said(&study).contains("program[0].requests: `piebald replay FILE` runs"),
        "{}",
        said(&study)
    );
}

#[test]
fn what_becomes_of_files_is_told_as_json() {
    let folder = folder(STUDY);
    let at = folder.path();
    let second = STUDY.replace("schema = 1", "schema = 2");
    fs::write(at.join("t.toml"), &second).expect("written");
    let words = ["scenario", "upgrade", "s.toml", "t.toml", "--json"];
    let told = json(at, &words);
    for (n, file, was) in [(0, "s.toml", 1), (1, "t.toml", 2)] {
        let one = &told["files"][n];
        assert_eq!(
            (&one["file"], &one["was_schema"]),
            (&file.into(), &was.into())
        );
        assert_eq!(one["rewritten"], was == 1);
    }
    assert!(
        fs::read_to_string(at.join("s.toml"))
            .expect("read")
            .starts_with("schema = 2")
    );
    // Of what goes to standard output, there is one.
    let output = piebald(at, &["scenario", "upgrade", "-", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("allowed: --json=FILE"),
        "{}",
        said(&output)
    );
}
