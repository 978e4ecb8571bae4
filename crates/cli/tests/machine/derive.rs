//! `piebald machine derive`: copies of what Linux says about computers.

use std::{fs, path::Path};

use super::run;

/// A cache as Linux tells it: level, type, ways, sets, size, and who shares it.
type Told<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, format!("{text}\n")).expect("written");
}

/// A copy of what Linux says about a processor.
fn cpu(root: &Path, cpu: u32, caches: &[Told<'_>]) {
    put(root, &format!("cpu{cpu}/topology/physical_package_id"), "0");
    put(
        root,
        &format!("cpu{cpu}/topology/core_id"),
        &cpu.to_string(),
    );
    for (index, (level, kind, ways, sets, size, shared)) in caches.iter().enumerate() {
        for (name, text) in [
            ("level", level),
            ("type", kind),
            ("ways_of_associativity", ways),
            ("number_of_sets", sets),
            ("size", size),
            ("coherency_line_size", &"64"),
            ("shared_cpu_list", shared),
        ] {
            put(root, &format!("cpu{cpu}/cache/index{index}/{name}"), text);
        }
    }
}

/// A copy of what Linux says about two cores with one shared cache.
fn sysfs(root: &Path) {
    put(root, "online", "0-1");
    for (number, own) in [(0, "0"), (1, "1")] {
        let caches = [
            ("1", "Data", "8", "64", "32K", own),
            ("1", "Instruction", "8", "64", "32K", own),
            ("2", "Unified", "16", "4096", "4096K", "0-1"),
        ];
        cpu(root, number, &caches);
    }
}

#[test]
fn a_derived_machine_is_one_that_check_accepts() {
    let dir = tempfile::tempdir().expect("a folder");
    sysfs(&dir.path().join("copy"));
    let (code, text, err) = run(dir.path(), &["derive", "--from", "copy"]);
    assert_eq!((code, err.as_str()), (0, ""));
    // What was read, and what could not be, is told line by line.
    assert!(text.contains("per_socket = 2 # [SYS]"), "{text}");
    assert!(text.contains("size = \"4MiB\" # [SYS]"), "{text}");
    assert!(
        text.contains("clock = \"2.5GHz\" # [GEN] not told here"),
        "{text}"
    );
    let (code, said, err) = run(dir.path(), &["derive", "--from", "copy", "-o", "my.toml"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        said.starts_with("my.toml: ") && said.contains("generic"),
        "{said}"
    );
    let written = fs::read_to_string(dir.path().join("my.toml")).expect("written");
    assert_eq!(written, text);
    let (code, out, err) = run(dir.path(), &["check", "my.toml"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, "derived: ok\n");
}

#[test]
fn a_computer_that_cannot_be_derived_says_why() {
    let dir = tempfile::tempdir().expect("a folder");
    let copy = dir.path().join("copy");
    let refused = |parts: &[&str]| {
        let (actual, out, err) = run(dir.path(), &["derive", "--from", "copy", "-o", "x.toml"]);
        assert_eq!((actual, out.as_str()), (2, ""), "{err}");
        for part in parts {
            assert!(err.contains(part), "{part}: {err}");
        }
        assert!(!dir.path().join("x.toml").exists());
    };
    refused(&[
        "--from",
        "copy/online",
        "no such file",
        "/sys/devices/system/cpu",
    ]);
    sysfs(&copy);
    put(&copy, "online", "0-2");
    refused(&[
        "copy/online: unlike processors",
        "2 (no caches",
        "--cpus 0-1",
    ]);
    put(&copy, "online", "0-1");
    put(&copy, "cpu0/cache/index2/number_of_sets", "none");
    refused(&["copy/cpu0/cache/index2/number_of_sets", "\"none\""]);
    for cpu in ["cpu0", "cpu1"] {
        put(&copy, &format!("{cpu}/cache/index2/number_of_sets"), "16");
        put(&copy, &format!("{cpu}/cache/index2/size"), "16K");
    }
    refused(&["cache[2].size = 16KiB: 32KiB or more", "--from DIR"]);
    fs::remove_dir_all(copy.join("cpu0/cache")).expect("removed");
    fs::remove_dir_all(copy.join("cpu1/cache")).expect("removed");
    refused(&["copy/cpu0/cache/index0/level", "hide their caches"]);
}

#[test]
fn what_is_assumed_of_a_computer_is_a_warning() {
    let dir = tempfile::tempdir().expect("a folder");
    let copy = dir.path().join("copy");
    put(&copy, "online", "1-2");
    for (number, own) in [(1, "1"), (2, "2")] {
        let caches = [
            ("1", "Data", "1", "1", "64K", own),
            ("1", "Instruction", "1", "1", "64K", own),
            ("2", "Unified", "11", "40960", "28160K", "1-2"),
        ];
        cpu(&copy, number, &caches);
    }
    let (code, said, err) = run(dir.path(), &["derive", "--from", "copy", "-o", "m.toml"]);
    assert_eq!(code, 0, "{err}");
    assert!(said.starts_with("m.toml: "), "{said}");
    for warning in [
        "piebald: warning: cpu1/cache/index0: size is 64KiB, but",
        "piebald: warning: cpu1/cache/index1: size is 64KiB, but",
        "piebald: warning: cpu1/cache/index2: 40960 sets are no power of two: 5 slices of 8192",
    ] {
        assert!(err.contains(warning), "{warning}: {err}");
    }
    assert_eq!(err.lines().count(), 3, "{err}");
    let (code, out, _) = run(dir.path(), &["show", "m.toml"]);
    assert_eq!(code, 0);
    for part in [
        "L1D: 64KiB, 4 ways x 256 sets",
        "L2: 27.5MiB, 11 ways x 40960 sets",
        "page colors: 128 of the L2",
        "index of the L2: not known, taken as 5 slices of 8192 sets in turn: colors may not hold; [GEN]",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn processors_of_one_kind_are_chosen_by_a_list() {
    let dir = tempfile::tempdir().expect("a folder");
    let copy = dir.path().join("copy");
    put(&copy, "online", "0-3");
    for (number, own) in [(0, "0"), (1, "1"), (2, "2"), (3, "3")] {
        let (ways, size) = [("12", "48K"), ("8", "32K")][usize::from(number > 1)];
        let caches = [
            ("1", "Data", ways, "64", size, own),
            ("2", "Unified", "16", "4096", "4096K", "0-3"),
        ];
        cpu(&copy, number, &caches);
    }
    let derive = |cpus: &[&str]| run(dir.path(), &[&["derive", "--from", "copy"], cpus].concat());
    let (code, out, err) = derive(&[]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("choose --cpus 0-1 or --cpus 2-3"), "{err}");
    for (list, size) in [("0-1", "48KiB"), ("2,3", "32KiB")] {
        let (code, text, err) = derive(&["--cpus", list]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(
            text.contains(&format!("size = \"{size}\" # [SYS]")),
            "{text}"
        );
        assert!(text.contains("per_socket = 2 # [SYS]"), "{text}");
        assert!(text.contains("shared_by = 2 # [SYS]"), "{text}");
    }
    let (code, _, err) = derive(&["--cpus", "3-4"]);
    assert_eq!(code, 2);
    assert_eq!(err, "piebald: --cpus 3-4: 4 not online; online are 0-3\n");
    let (code, _, err) = derive(&["--cpus", "fast"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("fast") && err.contains("such as 0-3,8"),
        "{err}"
    );
}

#[test]
fn this_computer_is_derived_or_the_reason_is_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let (code, _, err) = run(dir.path(), &["derive", "-o", "here.toml"]);
    match code {
        0 => assert_eq!(run(dir.path(), &["check", "here.toml"]).0, 0),
        _ => assert!(code == 1 && err.starts_with("piebald: "), "{code} {err}"),
    }
}

/// Caches that are alike do not make processors alike.
#[test]
fn processors_of_other_speed_are_of_another_kind() {
    let dir = tempfile::tempdir().expect("a folder");
    let copy = dir.path().join("copy");
    sysfs(&copy);
    let derive = || run(dir.path(), &["derive", "--from", "copy"]);
    // Favoured cores are a little faster.
    put(&copy, "cpu0/cpu_capacity", "1024");
    put(&copy, "cpu1/cpu_capacity", "980");
    assert_eq!(derive().0, 0);
    put(&copy, "cpu1/cpu_capacity", "446");
    let (code, out, err) = derive();
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.contains("unlike processors") && err.contains("capacity 446"),
        "{err}"
    );
}
