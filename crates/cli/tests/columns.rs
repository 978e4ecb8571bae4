//! `--columns` as users give it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code, standard output, standard error.
fn piebald(folder: &Path, words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("piebald runs");
    // A command that refuses its arguments does not read.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    let output = child.wait_with_output().expect("piebald ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let err = text(&output.stderr);
    assert!(!err.contains("panicked"), "{words:?}: {err}");
    (output.status.code(), text(&output.stdout), err)
}

const TEXT: &str = "419,W,8192,4096,1577808144360767\n725,R,8192,4096,1577808144360977\n\
    419,R,8192,4096,1577808144361152\n";
const LIST: &str = "device=1,op=2,offset=3:B,size=4:B,time=5:us";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.csv"), TEXT).expect("a trace");
    fs::write(
        folder.path().join("t.tr"),
        "1 0 68\n2 1 7454\n3 2 40773\n4 0 68\n",
    )
    .expect("a trace");
    folder
}

fn ok(folder: &Path, words: &[&str], input: &str) -> String {
    let (code, out, err) = piebald(folder, words, input);
    assert_eq!(code, Some(0), "{words:?}: {err}");
    out
}

#[test]
fn described_texts_are_replayed_summed_up_and_shown() {
    let folder = folder();
    let replay = [
        "--readahead",
        "none",
        "--policy",
        "lru",
        "--size",
        "2MiB",
        "-q",
        "--json",
    ];
    // One page is used twice; the same page of another volume is another.
    for (file, list, hits, misses) in [("a.csv", LIST, 1, 2), ("t.tr", "id=2,size=3", 1, 3)] {
        let words = [&["replay", file, "--columns", list][..], &replay].concat();
        let json: serde_json::Value =
            serde_json::from_str(&ok(folder.path(), &words, "")).expect("JSON");
        assert_eq!(json["traces"][0]["format"], "columns");
        let run = &json["runs"][0];
        assert_eq!(
            (run["hits"].as_u64(), run["misses"].as_u64()),
            (Some(hits), Some(misses))
        );
    }
    let out = ok(
        folder.path(),
        &["trace", "info", "a.csv", "--columns", LIST],
        "",
    );
    assert!(
        out.contains("columns trace") && out.contains("3 requests: 2 reads, 1 writes"),
        "{out}"
    );
    assert!(out.contains("2 disks, with addresses"), "{out}");
    let out = ok(
        folder.path(),
        &["trace", "head", "t.tr", "--columns", "time=1:s,id=2"],
        "",
    );
    assert!(out.contains("#3 4000000000 0 read block 0"), "{out}");
}

#[test]
fn pipes_and_packed_files_are_read_as_plain_ones_are() {
    let folder = folder();
    let words = |file| ["trace", "head", file, "--columns", LIST];
    let plain = ok(folder.path(), &words("a.csv"), "");
    assert_eq!(ok(folder.path(), &words("-"), TEXT), plain);
    let packed = zstd(folder.path());
    assert_eq!(ok(folder.path(), &words(&packed), ""), plain);
    // A replay reads a pipe several times.
    let words = [
        "replay",
        "-",
        "--columns",
        LIST,
        "--readahead",
        "none",
        "-q",
        "--policy",
        "lru",
        "--size",
        "50%",
    ];
    assert!(ok(folder.path(), &words, TEXT).contains("columns"));
}

/// A frame of zstd with one raw block: RFC 8878, 3.1.1.
fn zstd(folder: &Path) -> String {
    let length = TEXT.len() as u32;
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    bytes.extend(length.to_le_bytes());
    bytes.extend(&(length << 3 | 1).to_le_bytes()[..3]);
    bytes.extend(TEXT.as_bytes());
    fs::write(folder.join("a.csv.zst"), bytes).expect("written");
    "a.csv.zst".to_owned()
}

#[test]
fn what_is_wrong_with_a_list_is_said_before_anything_is_read() {
    let folder = folder();
    for (words, says) in [
        (
            &["replay", "a.csv", "--columns", "tiem=1:us,id=2"][..],
            &["\"tiem\" is no field", "did you mean time?"][..],
        ),
        (
            &["trace", "info", "a.csv", "--columns", "offst=1:B,size=2:B"],
            &[
                "\"offst\" is no field; allowed: time, op,",
                "did you mean offset?",
            ],
        ),
        (
            &["replay", "a.csv", "--columns", "id=1", "--format", "msr"],
            &["--columns <LIST>", "--format <NAME>"],
        ),
        (
            &[
                "trace",
                "head",
                "a.csv",
                "--columns",
                "id=1",
                "--format",
                "msr",
            ],
            &["--columns <LIST>", "--format <FORMAT>"],
        ),
        (
            &["trace", "head", "a.csv", "--columns", "id=1,size=9"],
            &[
                "a.csv: --columns: size is column 9; allowed: 1 to 5; line 1 has 5 columns",
                "419,W",
            ],
        ),
        (
            &["trace", "info", "a.csv", "--format", "columns"],
            &["--columns with a list"],
        ),
        (
            &["trace", "convert", "t.tr", "t.pbr", "--columns", "id=2"],
            &["t.tr: --columns: allowed with replay, trace info and trace head"],
        ),
        (
            &["replay", "t.tr"],
            &[
                "t.tr: ",
                "for example --columns time=1:s,id=2,size=3 would read \"1 0 68\"",
            ],
        ),
        (
            &["trace", "info", "a.csv"],
            &["--columns time=5:us,op=2,offset=3:B,size=4:B,device=1 would read \"419,W,"],
        ),
    ] {
        let (code, _, err) = piebald(folder.path(), words, "");
        assert_eq!(code, Some(2), "{words:?}: {err}");
        for part in says {
            assert!(err.contains(part), "{words:?} lacks {part}: {err}");
        }
    }
    assert!(!folder.path().join("t.pbr").exists());
}

#[test]
fn wrong_lines_are_left_out_if_that_is_asked_for() {
    let folder = folder();
    fs::write(folder.path().join("b.csv"), format!("{TEXT}725,R,x,1,2\n")).expect("a trace");
    let words = ["trace", "info", "b.csv", "--columns", LIST];
    let (code, _, err) = piebald(folder.path(), &words, "");
    assert_eq!(code, Some(2), "{err}");
    assert!(
        err.contains("b.csv: byte 99, line 4: the offset is \"x\"; allowed: a decimal"),
        "{err}"
    );
    let lenient = [&words[..], &["--lenient"]].concat();
    let out = ok(folder.path(), &lenient, "");
    assert!(out.contains("LEFT OUT: 1 wrong records"), "{out}");
}
