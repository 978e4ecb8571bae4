//! `piebald machine`: every preset, and files that are wrong.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use piebald_hw::presets;

mod derive;

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
            &["core.sockets = 0", "1 to 64"][..],
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
        ("ways = 16 ", "ways = 0 ", &["cache[3].ways = 0", "1 to 64"]),
        (
            "size = \"8MiB\"",
            "size = \"8MB\"",
            &["cache[3].size", "\"8MB\"", "MiB"],
        ),
        (
            "size = \"8MiB\"",
            "size = \"7MiB\"",
            &["cache[3].size = 7MiB", "slices = 7 gives slices of 1024"],
        ),
        (
            "size = \"8MiB\"",
            "size = \"128KiB\"",
            &["cache[3].size = 128KiB", "256KiB or more", "L2 inside it"],
        ),
        (
            "size = \"256KiB\"",
            "size = \"512B\"",
            &["cache[2].size = 512B", "1KiB or more"],
        ),
        (
            "latency = 44",
            "latency = 9",
            &["cache[3].latency = 9", "10 cycles or more", "L2 inside it"],
        ),
        (
            "slice_hash = []             # [S3] 8192 sets",
            "slice_hash = [\"0x1fc0\"]     # [S3] 8192 sets",
            &["cache[3].slice_hash[0] = 0x1fc0", "sets would stay empty"],
        ),
        (
            "size = \"12GiB\"",
            "size = \"4GiB\"",
            &[
                "memory.size = 4GiB",
                "3 channels hold equal parts",
                "3GiB or 6GiB",
            ],
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
            &["core.width = 400", "1 to 16"],
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
        assert!(err.ends_with("; did you mean w3540?\n"), "{err}");
        let (_, _, err) = here(&[verb, "pentium"]);
        assert!(!err.contains("did you mean"), "{err}");
    }
    let (code, _, err) = here(&["disks", "wd400b"]);
    assert_eq!(code, 2);
    assert!(err.ends_with("; did you mean wd400bb?\n"), "{err}");
    assert_eq!(here(&["show"]).0, 2);
    assert_eq!(here(&["lists"]).0, 2);
}

#[test]
fn odd_values_are_warnings_with_their_place() {
    let dir = tempfile::tempdir().expect("folder");
    let good = presets::get("w3540").expect("preset");
    let odd = good
        .replacen("size = \"8MiB\"", "size = \"1MiB\"", 1)
        .replacen("latency = 10 ", "latency = 4 # ", 1);
    fs::write(dir.path().join("m.toml"), &odd).expect("written");
    let line = |text: &str| odd.lines().position(|l| l.starts_with(text)).expect(text) + 1;
    let (latency, size) = (line("latency = 4 #"), line("size = \"1MiB\""));
    let (code, out, err) = run(dir.path(), &["check", "m.toml"]);
    assert_eq!(
        (code, out.as_str()),
        (0, "w3540: ok, 2 warnings\n"),
        "{err}"
    );
    for warning in [
        format!("piebald: warning: m.toml:{latency}: cache[2].latency = 4: no more than"),
        format!("piebald: warning: m.toml:{size}: cache[3].size = 1MiB: no more than"),
    ] {
        assert!(err.contains(&warning), "{warning}: {err}");
    }
    assert_eq!(err.lines().count(), 2, "{err}");
    let (code, _, err) = run(dir.path(), &["show", "m.toml"]);
    assert_eq!((code, err.lines().count()), (0, 2), "{err}");
}

#[test]
fn colors_and_bank_bits_are_shown_with_the_source_of_the_index() {
    for (preset, lines) in [
        (
            "w3540",
            &[
                "page colors: 128 of the L3; 8 of the private L2; 16 of the L3 leave the L2 whole",
                "index of the L3: linear over 8192 sets; [S3] 8192 sets, bits 6-18",
                "index of the L2: linear over 512 sets; [S3]",
                "bank bits: none of plain addresses, as 3 channels take turns",
            ][..],
        ),
        (
            "i7-860",
            &[
                "bank bits: 6 of channel, rank and bank, of which a page's number alone gives 32 bank colors; [S4]",
            ],
        ),
        (
            "x5355",
            &[
                "page colors: 64 of the L2\n",
                "index of the L2: linear over 4096 sets; [S0]",
            ],
        ),
        (
            "zen",
            &["index of the L3: hashed: 8 slices of 4096 sets, by 3 parities; [M]"],
        ),
        (
            "opteron4x4",
            &["of channel, rank and bank behind each controller, of which"],
        ),
    ] {
        let (code, out, err) = here(&["show", preset]);
        assert_eq!((code, err.as_str()), (0, ""));
        for line in lines {
            assert!(out.contains(line), "{line}: {out}");
        }
    }
    // A file that leaves the index to its default says nothing of where it is from.
    let dir = tempfile::tempdir().expect("folder");
    let text = presets::get("w3540").expect("preset");
    let silent: Vec<&str> = text
        .lines()
        .filter(|l| !l.starts_with("slice_hash"))
        .collect();
    fs::write(dir.path().join("m.toml"), silent.join("\n")).expect("written");
    let (_, out, _) = run(dir.path(), &["show", "m.toml"]);
    let says = "index of the L3: not known, taken as linear over 8192 sets: colors may not hold; no \
                source is given";
    assert!(out.contains(says), "{out}");
}
