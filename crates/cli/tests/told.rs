//! A replay tells what its numbers leave out and what they take for the same.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).expect("written");
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Exit code, standard output, standard error.
    fn piebald(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
            .args(words)
            .current_dir(self.path())
            .stdin(Stdio::null())
            .output()
            .expect("piebald runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    /// LRU without a disk, at a size.
    fn replay(&self, size: &str, words: &[&str]) -> Result<Value, (Option<i32>, String)> {
        let usual = [
            "--policy",
            "lru",
            "--size",
            size,
            "--readahead",
            "none",
            "-q",
            "--json",
        ];
        let (code, out, err) = self.piebald(&[&["replay"], words, &usual].concat());
        match code {
            Some(0) => Ok(serde_json::from_str(&out).expect("JSON")),
            _ => Err((code, err)),
        }
    }
}

fn hits(replay: &Value) -> (u64, u64) {
    let run = &replay["runs"][0];
    let count = |key: &str| run[key].as_u64().expect("a count");
    (count("hits"), count("references"))
}

fn notes(replay: &Value) -> String {
    let notes = replay["conditions"]["notes"].as_array().expect("a list");
    let texts = notes.iter().map(|note| note.as_str().expect("text"));
    texts.collect::<Vec<_>>().join("\n")
}

const STRACE: &str = "1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n\
    1 read(3, \"x\"..., 4096) = 4096\n\
    1 read(9, \"x\"..., 4096) = 4096\n\
    1 io_uring_enter(7, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1\n\
    1 io_uring_enter(7, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1\n\
    1 tee(5, 6, 4096, 0) = 4096\n\
    1 read(4</b>, \"x\"..., 4096) = 4096\n\
    1 read(3, \"x\"..., 4096) = 4096";

#[test]
fn what_a_log_does_not_tell_is_told_by_name() {
    let folder = Folder::new(&[("s.log", STRACE.as_bytes())]);
    let replay = folder.replay("4KiB", &["s.log"]).expect("a replay");
    let notes = notes(&replay);
    for words in [
        "s.log: 1 requests are left out, as the trace does not name their files",
        "s.log: 1 files are first used at an offset that is not known",
        "s.log: the last line has no line feed",
        "io_uring_enter 2, tee 1",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    let (code, out, err) = folder.piebald(&["trace", "info", "s.log"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("io_uring_enter 2, tee 1"), "{out}");
    let (_, out, _) = folder.piebald(&["trace", "info", "s.log", "--json"]);
    let info: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(info["left_out"]["io_uring_enter"], 2);
}

#[test]
fn traces_without_a_reference_are_refused_with_what_they_hold_instead() {
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    let folder = Folder::new(&[
        (
            "s.log",
            b"1 read(3, \"x\"..., 4096) = 4096\n1 read(3, \"x\", 9) = 1\n",
        ),
        ("h.csv", header.as_bytes()),
    ]);
    for size in ["4KiB", "10%"] {
        for (file, words) in [("s.log", "2 to files not named"), ("h.csv", "1 comments")] {
            let (code, err) = folder.replay(size, &[file]).expect_err("nothing to count");
            assert_eq!(code, Some(2), "{err}");
            assert!(
                err.contains(words) && err.contains("at least one reference"),
                "{err}"
            );
        }
    }
}

#[test]
fn the_largest_number_of_a_block_counts() {
    let ids = b"18446744073709551615\n0\n18446744073709551615\n";
    let folder = Folder::new(&[("a.ids", ids), ("b.ids", b"1\n")]);
    let replay = folder.replay("8KiB", &["a.ids"]).expect("a replay");
    assert_eq!(hits(&replay), (1, 3));
    // Beside another trace, too, whose keys have fewer bits left for numbers.
    let replay = folder
        .replay("16KiB", &["a.ids", "b.ids"])
        .expect("a replay");
    assert_eq!(hits(&replay), (1, 4));
    let (_, out, _) = folder.piebald(&["trace", "info", "a.ids"]);
    assert!(out.contains("3 references to 2 pages"), "{out}");
    assert!(out.contains("pages 0 to 18446744073709551615"), "{out}");
}

#[test]
fn a_file_is_given_twice_by_whatever_name() {
    let folder = Folder::new(&[("a.spc", b"0,0,4096,r,0.0\n0,8,4096,r,0.5\n")]);
    std::os::unix::fs::symlink("a.spc", folder.path().join("b.spc")).expect("a link");
    for other in ["a.spc", "./a.spc", "b.spc"] {
        let (code, err) = folder
            .replay("4KiB", &["a.spc", other])
            .expect_err("the same file");
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("is given twice"), "{other}: {err}");
    }
}

/// Two parts of one log, which agree about "x" only.
const PARTS: [(&str, &[u8]); 2] = [
    ("a.csv", b"1600000000,x\n1600000002,y\n"),
    ("b.csv", b"1600000001,z\n1600000003,x\n"),
];

#[test]
fn objects_of_one_name_are_the_same_in_traces_of_one_clock_and_where_that_is_asked_for() {
    let folder = Folder::new(&PARTS);
    let columns = ["a.csv", "b.csv", "--columns", "time=1:s,id=2:text"];
    for (more, expected, told) in [
        (&[][..], 1, "are the same"),
        (&["--objects", "apart"], 0, "are different"),
        (&["--align", "start"], 0, "are different"),
        (
            &["--align", "start", "--objects", "same"],
            1,
            "are the same",
        ),
        (&["--align", "turn", "--objects", "same"], 1, "are the same"),
    ] {
        let replay = folder.replay("64KiB", &[&columns, more].concat());
        let replay = replay.unwrap_or_else(|error| panic!("{more:?}: {error:?}"));
        assert_eq!(hits(&replay), (expected, 4), "{more:?}");
        assert!(
            notes(&replay).contains(told),
            "{more:?}: {}",
            notes(&replay)
        );
    }
}

#[test]
fn objects_with_numbers_follow_the_same_rule() {
    let folder = Folder::new(&[
        ("a.csv", b"1600000000,7\n1600000002,1099511627777\n"),
        ("b.csv", b"1600000001,1099511627777\n1600000003,8\n"),
    ]);
    let columns = ["a.csv", "b.csv", "--columns", "time=1:s,id=2"];
    for (more, expected) in [(&[][..], 1), (&["--objects", "apart"], 0)] {
        let replay = folder
            .replay("64KiB", &[&columns, more].concat())
            .expect("a replay");
        assert_eq!(hits(&replay), (expected, 4), "{more:?}");
    }
}

#[test]
fn counts_of_all_traces_together_stand_with_the_first_alone() {
    let folder = Folder::new(&PARTS);
    let (code, out, err) = folder.piebald(&[
        "replay",
        "a.csv",
        "b.csv",
        "--columns",
        "time=1:s,id=2:text",
        "--policy",
        "lru",
        "--size",
        "64KiB",
        "--readahead",
        "none",
        "-q",
    ]);
    assert_eq!(code, Some(0), "{err}");
    let row = out
        .lines()
        .find(|line| line.contains(" b.csv "))
        .expect("a row");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words, ["b.csv", "columns", "2"], "{out}");
}
