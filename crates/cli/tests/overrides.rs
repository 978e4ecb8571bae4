//! What the command line lays over a scenario, points of sweeps, and what outputs replace.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::study::SMALL;

fn written(name: &str, text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), text).expect("written");
    folder
}

fn done(folder: &TempDir, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(args)
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// The warm-up keeps its share of the budget, unless it is said as well.
#[test]
fn a_budget_of_the_command_line_leaves_a_warm_up_that_is_given_there() {
    let folder = written("s.toml", SMALL);
    let refs = |args: &[&str]| -> [u64; 2] {
        let words = [
            &["study", "s.toml", "-q", "--json", "--budget", "5k"][..],
            args,
        ]
        .concat();
        let (code, out, err) = done(&folder, &words);
        assert_eq!(code, Some(0), "{err}");
        let study: Value = serde_json::from_str(&out).expect("JSON");
        let command = study["command"].as_str().expect("a text");
        assert!(command.contains("piebald study s.toml") && command.ends_with("--budget 5000"));
        ["budget_refs", "warmup_refs"].map(|key| study[key].as_u64().expect("a number"))
    };
    assert_eq!(refs(&[]), [5_000, 1_000]);
    assert_eq!(refs(&["--set", "warmup_refs=3k"]), [5_000, 3_000]);
}

/// The command line is laid over what a file says for one host alone.
#[test]
fn a_budget_of_the_command_line_is_above_the_tables_of_a_host() {
    let text = SMALL.replacen("schema = 1", "schema = 2", 1)
        + "[on.model]\nbudget_refs = \"8k\"\nwarmup_refs = \"4k\"\n";
    let folder = written("s.toml", &text);
    for (args, refs) in [
        (&[][..], [8_000, 4_000]),
        (&["--budget", "5k"], [5_000, 2_500]),
    ] {
        let words = [&["study", "s.toml", "-q", "--json"][..], args].concat();
        let (code, out, err) = done(&folder, &words);
        assert_eq!(code, Some(0), "{err}");
        let study: Value = serde_json::from_str(&out).expect("JSON");
        let found = ["budget_refs", "warmup_refs"].map(|key| study[key].as_u64());
        assert_eq!(found, refs.map(Some), "{args:?}");
    }
}

/// What a file may say depends on the budget, wherever that comes from.
#[test]
fn a_budget_of_the_command_line_is_checked_against_the_file() {
    let change =
        "cores = \"0\"\ncolors = \"0-1\"\n[[program.change]]\nat = \"6k\"\ncolors = \"0-3\"\n";
    let policy = "[[policy]]\nname = \"p\"\nframes = \"rainbow\"\n";
    let text = SMALL.replacen("cores = \"0\"\n", change, 1) + policy;
    let folder = written("s.toml", &text);
    let (code, out, err) = done(&folder, &["study", "s.toml", "-q", "--budget", "5k"]);
    assert_eq!((code, &*out), (Some(2), ""), "{err}");
    assert!(err.contains("change") && err.contains("6k"), "{err}");
    let (_, out, _) = done(&folder, &["study", "s.toml", "-q", "--json", "--seed", "9"]);
    let study: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(study["command"], "piebald study s.toml --seed 9");
}

const SWEPT: &str =
    "[sweep]\n\"program.walk.builtin\" = [\"chase:512KiB\", \"chase:80MiB\", \"chase:1MiB\"]\n";

/// One point whose memory does not suffice: the others are shown, and it is named.
#[test]
fn a_point_that_fails_leaves_the_others() {
    let named = SMALL.replace("192MiB", "96MiB").replace(
        "builtin = \"chase:64KiB\"",
        "name = \"walk\"\nbuiltin = \"chase:64KiB\"",
    );
    let folder = written("s.toml", &(named + SWEPT));
    let (code, out, err) = done(&folder, &["study", "s.toml", "-q"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("program.walk.builtin = chase:80MiB: "),
        "{err}"
    );
    for part in [
        "PARTIAL",
        "chase:512KiB",
        "chase:1MiB",
        "slowdown [%]",
        "time alone [",
        "time together [",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn outputs_take_the_place_of_outputs_only() {
    let folder = written("s.toml", SMALL);
    let at = |name: &str| folder.path().join(name);
    fs::write(at("w.py"), "import os, sys\nprint(1, 2)\n").expect("written");
    fs::write(at("t.txt"), "a, b\n").expect("written");
    for (option, name) in [
        ("--html", "s.toml"),
        ("--html", "w.py"),
        ("--csv", "w.py"),
        ("--csv", "t.txt"),
        ("--csv", "s.toml"),
        ("--json", "w.py"),
    ] {
        let before = fs::read(at(name)).expect("read");
        let (code, _, err) = done(
            &folder,
            &["study", "s.toml", "-q", &format!("{option}={name}")],
        );
        assert_eq!(code, Some(2), "{option} {name}: {err}");
        assert!(
            err.contains(&format!("{option} {name}: this file is there and is no ")),
            "{err}"
        );
        assert_eq!(fs::read(at(name)).expect("read"), before, "{name}");
    }
    // Those of an earlier study are replaced.
    for _ in 0..2 {
        let words = [
            "study",
            "s.toml",
            "-q",
            "--html=o.html",
            "--csv=o.csv",
            "--json=o.json",
        ];
        let (code, _, err) = done(&folder, &words);
        assert_eq!(code, Some(0), "{err}");
    }
    // A machine takes the place of a machine.
    let derive = |name: &str| done(&folder, &["machine", "derive", "-o", name]);
    let (code, _, err) = derive("s.toml");
    assert!(
        code == Some(2) && err.contains("this file is there and is no machine"),
        "{err}"
    );
    for _ in 0..2 {
        assert_eq!(derive("m.toml").0, Some(0));
    }
}

#[test]
fn a_recording_of_nothing_is_not_asked_for_by_a_limit() {
    let folder = written("a.pbr", "mine");
    let (code, _, err) = done(
        &folder,
        &["record", "--limit", "0", "-o", "a.pbr", "--", "true"],
    );
    assert_eq!(code, Some(2));
    assert!(
        err.contains("--limit 0: allowed: 1 reference and more"),
        "{err}"
    );
    assert_eq!(
        fs::read(folder.path().join("a.pbr")).expect("read"),
        b"mine"
    );
}

/// The labels of points would be wrong.
#[test]
fn an_option_does_not_give_what_an_axis_gives() {
    let axes = "[sweep]\nseed = [1, 2]\nbudget_refs = [\"1k\", \"2k\"]\nrepetitions = [1]\n";
    let folder = written("s.toml", &format!("{SMALL}{axes}"));
    for (words, axis) in [
        (["--budget", "3k"], "budget_refs"),
        (["--seed", "7"], "seed"),
        (["--repetitions", "2"], "repetitions"),
    ] {
        let (code, out, said) = done(&folder, &[&["study", "s.toml", "-q"], &words[..]].concat());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{said}");
        let told = format!(
            "{}: {axis} is an axis of the file; allowed: --set 'sweep.{axis}=",
            words[0]
        );
        assert!(said.contains(&told), "{said}");
    }
    let (code, _, said) = done(&folder, &["study", "s.toml", "-q", "--set", "seed=7"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("--set seed=7: seed: is an axis of the file"),
        "{said}"
    );
}

/// `[on.HOST]` of a command line is laid over the file as that of the file is.
#[test]
fn a_value_for_one_host_can_be_set() {
    let folder = written("s.toml", SMALL);
    let json = |pair: &str| -> Value {
        let words = ["study", "s.toml", "-q", "--set", pair, "--json"];
        let (code, out, said) = done(&folder, &words);
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str(&out).expect("JSON")
    };
    assert_eq!(json("on.model.seed=3")["seed"], 3);
    assert_ne!(json("on.guest.seed=3")["seed"], 3);
    let (code, _, said) = done(
        &folder,
        &["study", "s.toml", "-q", "--set", "on.mdel.seed=3"],
    );
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no host; allowed: model, guest"), "{said}");
}

/// A list in the place of a table would be read key after key.
#[test]
fn what_is_no_table_is_told_in_plain_words() {
    let folder = written("s.toml", SMALL);
    for (pair, says) in [
        ("output=[1]", "output = [1]: allowed: a table"),
        ("machine=1", "machine = 1: allowed: a table"),
        ("program=1", "program = 1: allowed: a list of tables"),
        ("program[0]=1", "program[0] = 1: allowed: a table"),
        ("policy=[[1]]", "policy[0] = [1]: allowed: a table"),
    ] {
        let (code, out, said) = done(&folder, &["study", "s.toml", "-q", "--set", pair]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
