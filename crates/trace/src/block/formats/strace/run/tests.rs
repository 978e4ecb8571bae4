//! Runs of several processes, one file each.

use std::path::PathBuf;

use super::super::super::super::{BlockError, BlockTrace, Op, Options, Target};

/// A folder with one file `log.PID` for each process.
struct Logs(tempfile::TempDir, Vec<PathBuf>);

fn logs(files: &[(&str, &str)]) -> Logs {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = files.iter().map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    });
    let paths = paths.collect();
    Logs(folder, paths)
}

impl Logs {
    fn open(&self, options: &Options) -> Vec<BlockTrace> {
        BlockTrace::open_runs(&self.1, options).expect("opens")
    }

    /// Requests of the only trace as `op pid path offset`.
    fn requests(&self) -> Vec<String> {
        let traces = self.open(&Options::default());
        assert_eq!(traces.len(), 1);
        let mut all = Vec::new();
        for mut trace in traces {
            let mut batch = Vec::new();
            while trace.next_batch(&mut batch).expect("reads") {
                for r in &batch {
                    let Target::File { file, offset, .. } = r.target else {
                        panic!("{r:?}");
                    };
                    let path = trace.files().get(file).expect("a file").path();
                    let op = match r.op {
                        Op::Delete => "delete",
                        op => op.name(),
                    };
                    all.push(format!("{op} {} {path} {offset}", r.task));
                }
            }
        }
        all
    }

    fn error(&self) -> String {
        let mut batch = Vec::new();
        for mut trace in self.open(&Options::default()) {
            loop {
                match trace.next_batch(&mut batch) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => return error.to_string(),
                }
            }
        }
        panic!("nothing is wrong")
    }
}

#[test]
fn a_child_has_its_parents_files_offsets_and_directory() {
    let logs = logs(&[
        (
            "log.7",
            "1600000000.000001 chdir(\"/w\") = 0\n\
             1600000000.000002 openat(AT_FDCWD, \"a\", O_RDWR) = 3\n\
             1600000000.000003 read(3, \"x\", 4096) = 4096\n\
             1600000000.000004 fork() = 8\n\
             1600000000.000009 read(3, \"x\", 4096) = 4096\n",
        ),
        (
            "log.8",
            "1600000000.000005 read(3, \"x\", 4096) = 4096\n\
             1600000000.000006 openat(AT_FDCWD, \"b\", O_RDWR) = 4\n\
             1600000000.000007 read(4, \"x\", 10) = 10\n",
        ),
    ]);
    assert_eq!(
        logs.requests(),
        [
            "read 7 /w/a 0",
            "read 8 /w/a 4096",
            "read 8 /w/b 0",
            "read 7 /w/a 8192"
        ]
    );
}

#[test]
fn names_that_one_process_changes_are_changed_for_all() {
    let logs = logs(&[
        (
            "log.7",
            "1600000000.1 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n\
             1600000000.2 write(3, \"x\", 5) = 5\n\
             1600000000.3 close(3) = 0\n\
             1600000000.6 openat(AT_FDCWD, \"/b\", O_RDWR) = 3\n\
             1600000000.7 read(3, \"x\", 5) = 5\n",
        ),
        (
            "log.8",
            "1600000000.4 rename(\"/a\", \"/b\") = 0\n\
             1600000000.5 unlink(\"/c\") = 0\n\
             1600000000.8 unlink(\"/b\") = 0\n\
             1600000000.9 +++ exited with 0 +++\n",
        ),
    ]);
    // One file, which goes when the last process that has it open ends.
    let requests = logs.requests();
    assert_eq!(requests, ["write 7 /a 0", "read 7 /a 0"]);
}

#[test]
fn the_day_of_a_process_is_that_of_the_call_that_made_it() {
    let logs = logs(&[
        (
            "log.9",
            "11:00:00.5 openat(AT_FDCWD, \"/late\", O_RDONLY) = 3\n\
             11:00:01.5 read(3, \"x\", 5) = 5\n",
        ),
        (
            "log.8",
            "00:10:00.2 fork() = 9\n\
             00:10:00.3 openat(AT_FDCWD, \"/night\", O_RDONLY) = 3\n\
             00:10:00.5 read(3, \"x\", 5) = 5\n\
             10:00:00.5 read(3, \"x\", 5) = 5\n\
             10:59:59.5 fork() = 9\n",
        ),
        (
            "log.7",
            "11:00:00.5 openat(AT_FDCWD, \"/day\", O_RDONLY) = 3\n\
             11:00:00.6 read(3, \"x\", 5) = 5\n\
             23:59:59.5 read(3, \"x\", 5) = 5\n\
             00:09:59.5 fork() = 8\n\
             00:10:00.4 read(3, \"x\", 5) = 5\n",
        ),
    ]);
    assert_eq!(
        logs.requests(),
        [
            "read 7 /day 0",
            "read 7 /day 5",
            "read 7 /day 10",
            "read 8 /night 0",
            "read 8 /night 5",
            "read 9 /late 0"
        ]
    );
}

#[test]
fn days_that_nothing_tells_keep_logs_apart() {
    let read = "openat(AT_FDCWD, \"/a\", O_RDONLY) = 3";
    let files = [
        ("log.7", format!("23:59:59.5 {read}\n")),
        ("log.8", format!("00:00:01.5 {read}\n")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (*n, t.as_str())).collect();
    assert_eq!(logs(&files).open(&Options::default()).len(), 2);
}

#[test]
fn an_error_names_the_file_and_the_line_that_it_is_in() {
    let text =
        "1600000000.1 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n1600000000.5 read(3, \"x\", 5) = 5\n";
    let wrong = "1600000000.2 getpid() = 8\n1600000000.3 getpid() = 8\n\
                 99:99:99 read(3, \"x\", 5) = 5\n";
    let error = logs(&[("log.7", text), ("log.8", wrong)]).error();
    assert!(error.contains("log.8: byte 52, line 3"), "{error}");
    assert!(error.contains("99:99:99"), "{error}");
}

#[test]
fn a_file_that_ends_in_half_a_line_says_so() {
    let whole =
        "1600000000.1 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n1600000000.5 read(3, \"x\", 5) = 5\n";
    for half in ["1600000000.3 rea", "1600000000.3 read(3, \"x"] {
        let cut = format!("1600000000.2 getpid() = 8\n{half}");
        let logs = logs(&[("log.7", whole), ("log.8", &cut)]);
        let error = logs.error();
        assert!(error.contains("log.8: byte 26, line 2"), "{error}");
        // Left out, it costs nothing but itself.
        let lenient = Options {
            lenient: true,
            ..Options::default()
        };
        let mut trace = logs.open(&lenient).remove(0);
        let (mut count, mut batch) = (0, Vec::new());
        while trace.next_batch(&mut batch).expect("reads") {
            count += batch.len();
        }
        assert_eq!(count, 1);
        assert_eq!(trace.skipped().total(), 1, "{half}");
    }
    let unended = logs(&[("log.7", whole), ("log.8", whole.trim_ascii_end())]);
    let mut trace = unended.open(&Options::default()).remove(0);
    let mut batch = Vec::new();
    while trace.next_batch(&mut batch).expect("reads") {}
    assert_eq!(trace.notes().unended_lines, 1);
}

#[test]
fn files_of_other_names_and_forms_are_traces_by_themselves() {
    let text =
        "1600000000.1 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n1600000000.5 read(3, \"x\", 5) = 5\n";
    let bare = text
        .replace("1600000000.1 ", "")
        .replace("1600000000.5 ", "");
    let own = text.replace("16", "12 16");
    let logs = logs(&[
        ("log.7", text),
        ("log.8", text),
        ("other.9", text),
        ("log", text),
        ("log.10", &bare),
        ("log.11", &own),
    ]);
    let traces = logs.open(&Options::default());
    let files: Vec<usize> = traces
        .iter()
        .map(|t| usize::from(t.name().ends_with("log.* (2 files of strace -ff)")))
        .collect();
    assert_eq!(files, [1, 0, 0, 0, 0]);
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let text = "1600000000.1 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n";
    let mut logs = logs(&[("log.7", text), ("log.8", text)]);
    logs.1.push(logs.0.path().join("log.9"));
    let error = BlockTrace::open_runs(&logs.1, &Options::default()).err();
    assert!(
        matches!(&error, Some(BlockError::Input(why)) if why.to_string().contains("log.9")),
        "{error:?}"
    );
}

/// Seconds do not tell what came first within one; a child comes after what made it.
#[test]
fn within_a_second_a_child_comes_after_its_parent() {
    let logs = logs(&[
        ("log.10", "12:00:00 read(3, \"x\", 5) = 5\n"),
        (
            "log.9",
            "12:00:00 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n\
             12:00:00 read(3, \"x\", 7) = 7\n12:00:00 fork() = 10\n",
        ),
    ]);
    assert_eq!(logs.requests(), ["read 9 /a 0", "read 10 /a 7"]);
}

#[test]
fn two_logs_of_one_process_are_refused() {
    let text =
        "1600000000.1 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n1600000000.5 read(3, \"x\", 5) = 5\n";
    let logs = logs(&[("log.7", text), ("log.8", text), ("log.07", text)]);
    let error = BlockTrace::open_runs(&logs.1, &Options::default()).err();
    let error = error.expect("taken").to_string();
    assert!(
        error.contains("log.07: the log of process 7, as") && error.contains("log.7 is"),
        "{error}"
    );
}
