//! `piebald machine`: every preset, and files that are wrong.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use piebald_hw::presets;

fn run(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .arg("machine")
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (output.status.code().unwrap_or(-1), out, err)
}

fn here(args: &[&str]) -> (i32, String, String) {
    run(Path::new("."), args)
}

#[test]
fn every_preset_is_listed_shown_and_right() {
    let (code, list, err) = here(&["list"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(list.lines().count(), presets::names().count());
    for (line, name) in list.lines().zip(presets::names()) {
        let spec = presets::load(name).expect(name);
        assert!(
            line.starts_with(name) && line.ends_with(&spec.title),
            "{line}"
        );
        let (code, shown, _) = here(&["show", name]);
        assert_eq!(code, 0);
        assert!(
            shown.starts_with(&format!("{name}: {}", spec.title)),
            "{shown}"
        );
        for part in spec
            .cache
            .iter()
            .map(|c| &c.name)
            .chain(spec.sources.values())
        {
            assert!(shown.contains(part.as_str()), "{part}: {shown}");
        }
        let (code, file, _) = here(&["show", name, "--file"]);
        assert_eq!((code, Some(file.as_str())), (0, presets::get(name)));
        let (code, checked, err) = here(&["check", name]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(checked, format!("{name}: ok\n"));
    }
}

#[test]
fn a_file_is_checked_by_its_path() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("mine.toml");
    let text = presets::get("zen").expect("preset");
    fs::write(&path, text.replacen("\"zen\"", "\"mine\"", 1)).expect("written");
    let (code, out, err) = run(dir.path(), &["check", "mine.toml"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "mine: ok\n", ""));
}

#[test]
fn wrong_files_are_refused_with_line_key_value_and_what_is_allowed() {
    let dir = tempfile::tempdir().expect("folder");
    let good = presets::get("w3540").expect("preset");
    for (old, new, parts) in [
        (
            "sockets = 1 ",
            "sockets = 0 ",
            &["core.sockets = 0", "1..=64"][..],
        ),
        (
            "per_socket = 4 ",
            "per_socket = 65535 ",
            &["core.per_socket = 65535", "64"],
        ),
        ("smt = 1 ", "smt = 3 ", &["core.smt = 3", "1 or 2"]),
        (
            "clock = \"2.93GHz\"",
            "clock = \"0Hz\"",
            &["core.clock = 0", "more than 0"],
        ),
        (
            "clock = \"2.93GHz\"",
            "clock = \"2.93\"",
            &["core.clock", "\"2.93\"", "GHz"],
        ),
        ("ways = 16 ", "ways = 0 ", &["cache[3].ways = 0", "1..=64"]),
        (
            "size = \"8MiB\"",
            "size = \"8MB\"",
            &["cache[3].size", "\"8MB\"", "MiB"],
        ),
        (
            "size = \"8MiB\"",
            "size = \"7MiB\"",
            &["cache[3].size = 7MiB"],
        ),
        (
            "holds = \"data\"",
            "holds = \"dates\"",
            &["cache[1].holds", "`dates`", "`data`"],
        ),
        ("latency = 44", "latensy = 44", &["`latensy`", "`latency`"]),
        (
            "size = \"12GiB\"",
            "size = \"0B\"",
            &["memory.size = 0B", "256 GiB"],
        ),
        ("banks = 8 ", "banks = 0 ", &["memory.dram.banks = 0"]),
        ("cl = 7 ", "cl = -7 ", &["memory.dram.timing.cl", "-7", "u"]),
        (
            "tck = \"1.875ns\"",
            "tck = \"0ns\"",
            &["memory.dram.timing.tck"],
        ),
        ("hops = [[0]]", "hops = [[0, 1]]", &["links.hops"]),
        ("width = 4 ", "width 4 ", &[]),
        (
            "width = 4 ",
            "width = 400 ",
            &["core.width = 400", "1..=16"],
        ),
    ] {
        let at = good.find(old).unwrap_or_else(|| panic!("no {old}"));
        let line = 1 + good[..at].matches('\n').count();
        fs::write(dir.path().join("m.toml"), good.replacen(old, new, 1)).expect("written");
        for verb in ["check", "show"] {
            let (code, out, err) = run(dir.path(), &[verb, "m.toml"]);
            assert_eq!((code, out.as_str()), (2, ""), "{new}: {err}");
            assert!(
                err.starts_with(&format!("piebald: m.toml:{line}: ")),
                "{new}: {err}"
            );
            for part in parts {
                assert!(err.contains(part), "{new}: {part}: {err}");
            }
            assert_eq!(err.lines().count(), 1, "{err}");
        }
    }
}

#[test]
fn what_is_neither_preset_nor_file_lists_the_presets() {
    for verb in ["check", "show"] {
        let (code, _, err) = here(&[verb, "w3541"]);
        assert_eq!(code, 2);
        assert!(err.starts_with("piebald: w3541: "), "{err}");
        for name in presets::names() {
            assert!(err.contains(name), "{name}: {err}");
        }
    }
    assert_eq!(here(&["show"]).0, 2);
    assert_eq!(here(&["lists"]).0, 2);
}

/// A copy of what Linux says about two cores with one shared cache.
fn sysfs(root: &Path) {
    let put = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, format!("{text}\n")).expect("written");
    };
    put("online", "0-1");
    for cpu in 0..2 {
        put(&format!("cpu{cpu}/topology/physical_package_id"), "0");
        put(&format!("cpu{cpu}/topology/core_id"), &cpu.to_string());
    }
    let caches = [
        ("1", "Data", "8", "64", "0"),
        ("1", "Instruction", "8", "64", "0"),
        ("2", "Unified", "16", "4096", "0-1"),
    ];
    for (index, (level, kind, ways, sets, shared)) in caches.into_iter().enumerate() {
        for (name, text) in [
            ("level", level),
            ("type", kind),
            ("ways_of_associativity", ways),
            ("number_of_sets", sets),
            ("coherency_line_size", "64"),
            ("shared_cpu_list", shared),
        ] {
            put(&format!("cpu0/cache/index{index}/{name}"), text);
        }
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
    let refused = |code: i32, parts: &[&str]| {
        let (actual, out, err) = run(dir.path(), &["derive", "--from", "copy", "-o", "x.toml"]);
        assert_eq!((actual, out.as_str()), (code, ""), "{err}");
        for part in parts {
            assert!(err.contains(part), "{part}: {err}");
        }
        assert!(!dir.path().join("x.toml").exists());
    };
    refused(
        2,
        &[
            "--from",
            "copy/online",
            "no such file",
            "/sys/devices/system/cpu",
        ],
    );
    sysfs(&copy);
    fs::write(copy.join("online"), "0-2\n").expect("written");
    refused(
        1,
        &["copy/cpu2/topology/physical_package_id", "no such file"],
    );
    fs::write(copy.join("online"), "0-1\n").expect("written");
    fs::write(copy.join("cpu0/cache/index2/number_of_sets"), "none\n").expect("written");
    refused(1, &["copy/cpu0/cache/index2/number_of_sets", "\"none\""]);
    fs::remove_dir_all(copy.join("cpu0/cache")).expect("removed");
    refused(1, &["copy/cpu0/cache/index0/level", "hide their caches"]);
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
