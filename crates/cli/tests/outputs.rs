//! Where outputs go: to whatever their names lead to, whole, and found out before the work.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

const TRACE: &str = "0,0,4096,r,0.0\n0,8,4096,w,0.5\n0,0,4096,r,1.0\n";
const LACKEY: &str = "I  04000000,3\n L 1ffeff0010,8\n";
/// A replay of the trace, without a disk below.
const REPLAY: [&str; 9] = [
    "replay",
    "a.spc",
    "--policy",
    "lru",
    "--size",
    "4KiB",
    "--readahead",
    "none",
    "-q",
];

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.spc"), TRACE).expect("a trace");
    fs::write(folder.path().join("a.log"), LACKEY).expect("a trace");
    folder
}

/// Exit code, standard output, standard error.
fn piebald(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("piebald runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let err = text(&output.stderr);
    assert!(!err.contains("panicked"), "{words:?}: {err}");
    (output.status.code(), text(&output.stdout), err)
}

fn replay(folder: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    piebald(folder, &[&REPLAY, more].concat())
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn an_output_without_a_place_is_refused_before_anything_is_read() {
    let folder = folder();
    let path = folder.path();
    // A trace that is not there would be the error if the replay had begun.
    fs::remove_file(path.join("a.spc")).expect("removed");
    fs::write(path.join("file"), "x").expect("written");
    for (more, words) in [
        (&["--json=none/x.json"][..], "none/x.json: cannot write"),
        (&["--csv=none/x.csv"], "none/x.csv: cannot write"),
        (&["--html", "none/x.html"], "none/x.html: cannot write"),
        (&["--html", "."], "is a directory"),
        (&["-o", "file"], "file: cannot write: not a directory"),
        (
            &["-o", "file/below"],
            "file/below: cannot write: not a directory",
        ),
    ] {
        let (code, out, err) = replay(path, more);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{more:?}: {err}");
        assert!(err.contains(words), "{more:?}: {err}");
        assert!(!err.contains("a.spc"), "{more:?}: {err}");
    }
    assert_eq!(names(path), ["a.log", "file"]);
}

#[test]
fn no_output_replaces_a_trace() {
    let folder = folder();
    let path = folder.path();
    for words in [
        &["trace", "convert", "a.log", "a.spc"][..],
        &["replay", "a.log", "--html", "a.spc"],
        &["replay", "a.log", "--json=a.spc"],
    ] {
        let (code, _, err) = piebald(path, words);
        assert!(code.is_some_and(|code| code != 0), "{words:?}: {err}");
        assert!(
            err.contains("a.spc") && err.contains("allowed: a new file"),
            "{words:?}: {err}"
        );
        assert_eq!(
            fs::read_to_string(path.join("a.spc")).expect("there"),
            TRACE
        );
    }
    let (code, _, err) = piebald(path, &["trace", "convert", "a.log", "-"]);
    assert!(code != Some(0) && err.contains("standard output"), "{err}");
    assert_eq!(names(path), ["a.log", "a.spc"]);
}

/// What is written last would take the other's place: a recording by what is said of it.
#[test]
fn two_outputs_are_two_files() {
    let folder = folder();
    let path = folder.path();
    let (code, _, err) = piebald(path, &["trace", "convert", "a.log", "r.pbr"]);
    assert_eq!(code, Some(0), "{err}");
    fs::create_dir(path.join("d")).expect("a folder");
    let before = names(path);
    for (words, told) in [
        (
            "trace convert a.log x.pbr --json=x.pbr",
            "OUTPUT and --json",
        ),
        (
            "trace convert a.log x.pbr --json=d/../x.pbr",
            "OUTPUT and --json",
        ),
        (
            "trace repair r.pbr x.pbr --json=./x.pbr",
            "OUTPUT and --json",
        ),
        (
            "machine derive -o x.toml --json=x.toml",
            "--output and --json",
        ),
        (
            "record -o x.pbr --json=x.pbr -- true",
            "--output and --json",
        ),
        (
            "replay a.spc --readahead none -q --json=x --csv=x",
            "--json and --csv",
        ),
        (
            "replay a.spc --readahead none -q --csv=x --html x",
            "--csv and --html",
        ),
        ("study s.toml -q --json=x --html x", "--json and --html"),
        (
            "study s.toml -q -o d --json=d/study.json",
            "--output and --json",
        ),
    ] {
        if words.starts_with("study") {
            let text = "schema = 2\nbudget_refs = \"1k\"\n[machine]\npreset = \"w3540\"\n[[program]]\nbuiltin = \"chase:64KiB\"\ncores = \"0\"\n";
            fs::write(path.join("s.toml"), text).expect("written");
        }
        let words: Vec<&str> = words.split(' ').collect();
        let (code, out, err) = piebald(path, &words);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words:?}: {err}");
        assert!(
            err.contains(told) && err.contains("one file for both"),
            "{words:?}: {err}"
        );
        let _ = fs::remove_file(path.join("s.toml"));
        assert_eq!(names(path), before, "{words:?}");
    }
    // A device takes both.
    let (code, _, err) = replay(path, &["--json=/dev/null", "--csv=/dev/null"]);
    assert_eq!(code, Some(0), "{err}");
}

#[test]
fn links_stay_links() {
    let folder = folder();
    let path = folder.path();
    for (link, target) in [("x.json", "real.json"), ("x.pbr", "real.pbr")] {
        fs::write(path.join(target), "").expect("written");
        symlink(target, path.join(link)).expect("a link");
    }
    assert_eq!(replay(path, &["--json=x.json"]).0, Some(0));
    assert_eq!(
        piebald(path, &["trace", "convert", "a.log", "x.pbr"]).0,
        Some(0)
    );
    for (link, target) in [("x.json", "real.json"), ("x.pbr", "real.pbr")] {
        assert!(path.join(link).is_symlink(), "{link}");
        assert!(
            fs::metadata(path.join(target)).expect("there").len() > 100,
            "{target}"
        );
    }
}

#[test]
fn a_pipe_takes_json_and_stays_a_pipe() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    // Open at both ends, so that neither side waits for the other.
    let mut reader = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&pipe)
        .expect("open");
    assert_eq!(replay(folder.path(), &["--json=pipe"]).0, Some(0));
    let kind = fs::symlink_metadata(&pipe).expect("there").file_type();
    assert!(kind.is_fifo());
    let mut begin = [0; 1];
    reader.read_exact(&mut begin).expect("text");
    assert_eq!(&begin, b"{");
    // A recording cannot go there.
    let (code, _, err) = piebald(folder.path(), &["trace", "convert", "a.log", "pipe"]);
    assert!(
        code != Some(0) && err.contains("a device or a pipe"),
        "{err}"
    );
    assert!(
        fs::symlink_metadata(&pipe)
            .expect("there")
            .file_type()
            .is_fifo()
    );
}

#[test]
fn other_names_of_standard_output_are_standard_output() {
    let folder = folder();
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let (code, out, err) = replay(folder.path(), &[&format!("--json={name}")]);
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str::<serde_json::Value>(&out).expect("JSON and nothing else");
    }
    let (code, _, err) = replay(folder.path(), &["--json=/dev/stdout", "--csv"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("both go to standard output"), "{err}");
}

/// Runs with a disk that takes no byte: a limit on the size of files, whose signal is ignored.
fn on_a_full_disk(folder: &Path, words: &str) -> (Option<i32>, String) {
    let line = format!("ulimit -f 0; exec \"$0\" {words}");
    let output = Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_piebald")])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("a shell");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), err)
}

#[test]
fn a_full_disk_is_told_with_the_name_that_was_given_and_leaves_nothing() {
    let folder = folder();
    let names = || {
        let entries = fs::read_dir(folder.path()).expect("a folder");
        let mut names: Vec<_> = entries.map(|e| e.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for (words, name) in [
        ("trace convert a.log x.pbr", "x.pbr.partial: write header"),
        (
            "replay a.spc --policy lru --readahead none --size 16KiB -q --json=x.json",
            "x.json: cannot write: File too large (os error 27)\n",
        ),
        (
            "replay a.spc --policy lru --readahead none --size 16KiB -q --html=x.html",
            "x.html: cannot write: File too large (os error 27)\n",
        ),
    ] {
        let (code, err) = on_a_full_disk(folder.path(), words);
        assert_eq!(code, Some(1), "{words}: {err}");
        assert!(err.contains(name), "{words}: {err}");
        assert_eq!(names(), before, "{words}");
    }
}

#[test]
fn a_full_standard_output_is_an_error_of_every_verb() {
    let folder = folder();
    let verbs: [&[&str]; 13] = [
        &["--help"],
        &["--version"],
        &["help", "study"],
        &["machine", "list", "--help"],
        &["keys"],
        &["keys", "policy"],
        &["schema", "study"],
        &["trace", "info", "a.spc"],
        &["trace", "head", "a.spc"],
        &["trace", "formats"],
        &["machine", "list"],
        &["completions", "bash"],
        &REPLAY,
    ];
    for words in verbs {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("a device");
        let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
            .args(words)
            .current_dir(folder.path())
            .stdout(full)
            .output()
            .expect("piebald runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {err}");
        assert!(
            err.contains("standard output: No space left"),
            "{words:?}: {err}"
        );
    }
}

/// The folder of outputs is only named, so what is in it is looked at before the work: no input, no trace and no
/// file of another kind goes.
#[test]
fn a_folder_of_outputs_takes_the_place_of_outputs_only() {
    let folder = folder();
    let path = folder.path();
    let kept = |name: &str, text: &str| {
        assert_eq!(fs::read_to_string(path.join(name)).expect("a file"), text);
    };
    let columns = "time,op,offset\n0,r,0\n1,r,4096\n";
    fs::write(path.join("replay.csv"), columns).expect("written");
    let columns_of = "time=1:s,op=2,offset=3:B,size=:4KiB,header=1";
    let mut of_columns = REPLAY;
    of_columns[1] = "replay.csv";
    let more = ["--columns", columns_of, "-o", "."];
    let (code, _, said) = piebald(path, &[&of_columns[..], &more].concat());
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("--output ./replay.csv: this command reads it; allowed: another file"),
        "{said}"
    );
    kept("replay.csv", columns);
    fs::remove_file(path.join("replay.csv")).expect("removed");

    for (name, text, why) in [
        ("report.html", "my notes\n", "is no HTML"),
        ("replay.json", "{ not json", "is no JSON"),
        ("sequences.csv", TRACE, "this file is a trace (spc)"),
    ] {
        fs::write(path.join(name), text).expect("written");
        let (code, _, said) = replay(path, &["-o", "."]);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains(&format!("--output ./{name}: ")) && said.contains(why),
            "{said}"
        );
        kept(name, text);
        fs::remove_file(path.join(name)).expect("removed");
    }
    // A link leads to the trace itself.
    symlink("a.spc", path.join("replay.csv")).expect("linked");
    let (code, _, said) = replay(path, &["-o", "."]);
    assert_eq!(code, Some(2), "{said}");
    kept("a.spc", TRACE);
    fs::remove_file(path.join("replay.csv")).expect("removed");
    // Outputs of before give way.
    for _ in 0..2 {
        let (code, _, said) = replay(path, &["-o", "."]);
        assert_eq!(code, Some(0), "{said}");
    }

    let scenario = "schema = 2\nrepetitions = 1\nbudget_refs = \"2k\"\n[machine]\npreset = \"w3540\"\n\
                    memory = \"192MiB\"\n[output]\nset_map = 0\n[[program]]\nname = \"x\"\ncores = \"0\"\n\
                    builtin = \"chase:64KiB\"\n";
    fs::write(path.join("study.json"), scenario).expect("written");
    let (code, _, said) = piebald(path, &["study", "study.json", "-q", "-o", "."]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("this command reads it"), "{said}");
    kept("study.json", scenario);

    // A report of a point that the scenario has no more is left, and told.
    let of_two = format!("{scenario}[sweep]\nseed = [1, 2]\n");
    fs::write(path.join("two.toml"), &of_two).expect("written");
    let (code, _, said) = piebald(path, &["study", "two.toml", "-q", "-o", "out"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, _, said) = piebald(
        path,
        &[
            "study",
            "two.toml",
            "-q",
            "--set",
            "sweep.seed=[1]",
            "-o",
            "out",
        ],
    );
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("reports of another study stay there: point-2"),
        "{said}"
    );
    assert!(path.join("out/point-2/report.html").exists());
}

/// A scenario of one short program.
const SCENARIO: &str = "schema = 2\nrepetitions = 1\nbudget_refs = 2000\n[machine]\npreset = \"w3540\"\n\
    memory = \"192MiB\"\n[output]\nset_map = 0\n[[program]]\nname = \"x\"\ncores = \"0\"\n\
    builtin = \"chase:64KiB\"\n";

#[test]
fn standard_input_is_an_input_too() {
    let folder = folder();
    let path = folder.path();
    let trace = "time,obj\n1,a\n2,b\n";
    fs::write(path.join("al.csv"), trace).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args([
            "replay",
            "-",
            "--columns",
            "time=time:s,id=obj:text",
            "--csv=al.csv",
        ])
        .args(["--readahead", "none", "--policy", "lru", "--size", "8KiB"])
        .current_dir(path)
        .stdin(File::open(path.join("al.csv")).expect("opens"))
        .output()
        .expect("piebald runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("this command reads it"), "{said}");
    assert_eq!(
        fs::read_to_string(path.join("al.csv")).expect("read"),
        trace
    );
    // And the same trace twice.
    fs::hard_link(path.join("a.spc"), path.join("b.spc")).expect("linked");
    let (code, _, said) = replay(path, &["b.spc"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("is given twice"), "{said}");
}

#[test]
fn reports_of_another_study_in_the_folder_are_told() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("one.toml"), SCENARIO).expect("written");
    fs::write(
        path.join("two.toml"),
        format!("{SCENARIO}[sweep]\nseed = [1, 2]\n"),
    )
    .expect("written");
    for (file, told) in [
        ("one.toml", ""),
        (
            "two.toml",
            "reports of another study stay there: report.html\n",
        ),
        (
            "one.toml",
            "reports of another study stay there: point-1, point-2\n",
        ),
    ] {
        let (code, _, said) = piebald(path, &["study", file, "-q", "-o", "out"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains(told) && said.contains("another") != told.is_empty(),
            "{said}"
        );
    }
    // The command writes no file in the place of its folder, whether the folder is there or not.
    for name in ["out", "new"] {
        let json = format!("--json={name}");
        let (code, _, said) = piebald(path, &["study", "one.toml", "-q", &json, "-o", name]);
        assert_eq!(code, Some(2), "{said}");
    }
    assert!(!path.join("new").exists());
}

#[test]
fn a_wrong_value_of_an_axis_is_found_before_any_run() {
    let folder = folder();
    let path = folder.path();
    let sweep = "[sweep]\n\"program.x.builtin\" = [\"chase:64KiB\", \"chase:1\"]\n";
    fs::write(path.join("s.toml"), format!("{SCENARIO}{sweep}")).expect("written");
    let (code, out, said) = piebald(path, &["study", "s.toml", "-q", "-o", "out"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("builtin \"chase\": size = \"1\""), "{said}");
    assert!(out.is_empty() && !path.join("out").exists(), "{out}");
    let (code, _, said) = piebald(
        path,
        &["study", "s.toml", "--set", "seed=1", "--set", "seed=2"],
    );
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("given twice"), "{said}");
}

/// A full disk is told, however quiet the rest is.
#[test]
fn what_the_store_cannot_keep_is_told() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("one.toml"), SCENARIO).expect("written");
    let script = "ulimit -f 0; exec \"$0\" study one.toml -q --store kept";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_piebald")])
        .current_dir(path)
        .output()
        .expect("piebald runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("not kept: "), "{said}");
}
