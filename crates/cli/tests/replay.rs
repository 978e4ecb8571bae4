//! `piebald replay` as a user runs it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .arg("replay")
        .args(args)
        .current_dir(folder)
        .output()
        .expect("piebald runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A folder with a trace in the form of MSR Cambridge: scans and single blocks.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = String::new();
    for i in 0..2_000_u64 {
        let (page, length) = match i % 5 {
            0 => (i * 7_919 % 5_000, 4096),
            _ => (10_000 + i * 16 % 6_000, 65_536),
        };
        let time = 128_166_372_003_061_629 + i * 10_000;
        let _ = writeln!(text, "{time},hm,0,Read,{},{length},100", page * 4096);
    }
    std::fs::write(folder.path().join("trace.csv"), text).expect("a trace");
    folder
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_trace_alone_is_enough() {
    let folder = folder();
    let (code, out, err) = run(folder.path(), &["trace.csv", "-q"]);
    assert_eq!(code, Some(0), "{err}");
    for word in ["msr", "clock", "dulo", "arc", "s3-fifo", "sata-7200", "6.x"] {
        assert!(out.contains(word), "{word} is missing in\n{out}");
    }
}

#[test]
fn json_holds_whole_numbers_for_every_policy_and_size() {
    let folder = folder();
    let args = [
        "trace.csv",
        "-q",
        "--readahead",
        "none",
        "--policy",
        "lru,min",
        "--size",
        "1MiB,50%",
        "--json",
    ];
    let (code, out, err) = run(folder.path(), &args);
    assert_eq!(code, Some(0), "{err}");
    let replay = json(&out);
    assert_eq!(replay["conditions"]["device"], "none");
    let runs = replay["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    for run in runs {
        let count = |name: &str| {
            run[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {run}"))
        };
        assert_eq!(count("hits") + count("misses"), count("references"));
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let folder = folder();
    let of = |threads| {
        let args = ["trace.csv", "-q", "--threads", threads, "--mrc", "--json"];
        let (code, out, err) = run(folder.path(), &args);
        assert_eq!(code, Some(0), "{err}");
        let mut replay = json(&out);
        replay["host_seconds"] = 0.into();
        replay["command"] = "".into();
        replay
    };
    assert_eq!(of("1"), of("3"));
}

#[test]
fn reports_are_written_where_asked() {
    let folder = folder();
    let (code, _, err) = run(folder.path(), &["trace.csv", "-q", "--output", "out/here"]);
    assert_eq!(code, Some(0), "{err}");
    for (name, word) in [
        ("report.html", "<svg"),
        ("replay.json", "\"runs\""),
        ("replay.csv", "policy,"),
        ("sequences.csv", "share_in_shorter"),
    ] {
        let text = std::fs::read_to_string(folder.path().join("out/here").join(name));
        let text = text.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(text.contains(word), "{name} lacks {word}");
    }
}

#[test]
fn wrong_command_lines_and_traces_say_what_is_wrong() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write(
        "cut.csv",
        "128166372003061629,hm,0,Read,0,4096,1\n128166372003061630,hm,0,Re",
    )
    .expect("a trace");
    write("empty", "").expect("a file");
    write("prose.txt", "This is no trace.\nNot at all.\n").expect("a file");
    for (args, words) in [
        (&["absent.csv"][..], &["absent.csv"][..]),
        (&["empty"], &["empty"]),
        (&["prose.txt"], &["prose.txt", "--format"]),
        (&["cut.csv"], &["cut.csv", "2"]),
        (&["trace.csv", "--policy", "lru-42"], &["lru-42", "s3-fifo"]),
        (&["trace.csv", "--policy", "lru,lru"], &["lru", "twice"]),
        (
            &["trace.csv", "--policy", "dulo:bank=9"],
            &["bank", "\"9\""],
        ),
        (&["trace.csv", "--size", "1MiB,x"], &["\"x\""]),
        (&["trace.csv", "--size", "0%"], &["0%"]),
        (&["trace.csv", "--device", "ibm350"], &["ibm350", "nvme"]),
        (&["trace.csv", "--device", "absent.toml"], &["absent.toml"]),
        (&["trace.csv", "--readahead", "7"], &["\"7\"", "6.x"]),
        (
            &["trace.csv", "--readahead", "none", "--scheduler", "noop"],
            &["--scheduler", "no disk", "--device"],
        ),
        (
            &["trace.csv", "--device", "none", "--layout", "packed"],
            &["--layout", "no disk", "--device"],
        ),
        (
            &["trace.csv", "--scheduler", "bfq"],
            &["bfq", "mq-deadline"],
        ),
        (
            &["trace.csv", "--layout", "absent.layout"],
            &["absent.layout"],
        ),
        (&["trace.csv", "--page", "5000"], &["5000"]),
        (&["trace.csv", "--policy", "min"], &["min", "--device none"]),
        (&["trace.csv", "--format", "tape"], &["tape", "msr"]),
        (&["trace.csv", "--mrc", "--mrc-rate", "0.5"], &["0.5"]),
    ] {
        let (code, _, err) = run(folder.path(), args);
        assert_eq!(code, Some(2), "{args:?}: {err}");
        for word in words {
            assert!(err.contains(word), "{args:?} should name {word}: {err}");
        }
    }
}

#[test]
fn wrong_records_can_be_left_out_and_are_counted() {
    let folder = folder();
    let path = folder.path().join("trace.csv");
    let mut text = std::fs::read_to_string(&path).expect("the trace");
    text += "128166372023061629,hm,0,Read,-4096,4096,1\n";
    std::fs::write(&path, text).expect("the trace");
    let (code, _, err) = run(folder.path(), &["trace.csv", "-q", "--device", "none"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("2001") && err.contains("-4096"), "{err}");
    let args = ["trace.csv", "-q", "--device", "none", "--lenient", "--json"];
    let (code, out, err) = run(folder.path(), &args);
    assert_eq!(code, Some(0), "{err}");
    let skipped = &json(&out)["traces"][0]["skipped"];
    assert_eq!(skipped.as_array().map(Vec::len), Some(1), "{skipped}");
}

#[test]
fn the_disks_are_listed_and_shown() {
    let machine = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
            .args(["machine", "disks"])
            .args(args)
            .output()
            .expect("piebald runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (code, list) = machine(&[]);
    assert_eq!(code, Some(0));
    for name in ["st39102lw", "sata-7200", "nvme"] {
        assert!(list.contains(name), "{list}");
        let (code, text) = machine(&[name]);
        assert!(code == Some(0) && text.contains("capacity"), "{text}");
    }
    assert_eq!(machine(&["ibm350"]).0, Some(2));
}

#[test]
fn all_policies_are_replayed_over_a_device_too() {
    let folder = folder();
    let args = ["trace.csv", "--policy", "all", "--size", "5%", "--json"];
    let (code, out, err) = run(folder.path(), &args);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("min is left out"), "{err}");
    let names = |value: &serde_json::Value| -> Vec<String> {
        let list = value["policies"].as_array().expect("a list").iter();
        list.map(|p| p["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let with_device = names(&json(&out));
    assert!(!with_device.contains(&"min".to_owned()), "{with_device:?}");
    let args = [&args[..], &["--device", "none", "-q"]].concat();
    let (code, out, err) = run(folder.path(), &args);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(names(&json(&out)).len(), with_device.len() + 1);
    let (code, _, err) = run(folder.path(), &["trace.csv", "-q", "--policy", "min"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("--device none"), "{err}");
}

#[test]
fn a_warm_up_that_leaves_nothing_to_count_is_refused_with_both_numbers() {
    let folder = folder();
    let (_, out, _) = run(folder.path(), &["trace.csv", "-q", "--json"]);
    let references = json(&out)["traces"][0]["references"]
        .as_u64()
        .expect("a number");
    for size in ["5%", "1MiB"] {
        let args = |warmup: u64| {
            let warmup = warmup.to_string();
            let args = [
                "trace.csv",
                "-q",
                "--device",
                "none",
                "--size",
                size,
                "--warmup",
                &warmup,
            ];
            run(folder.path(), &args)
        };
        let (code, out, err) = args(references);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        let number = references.to_string();
        assert_eq!(err.matches(&number).count(), 2, "{err}");
        assert!(err.contains("warmup"), "{err}");
        let (code, _, err) = args(references - 1);
        assert_eq!(code, Some(0), "{err}");
    }
}

/// A trace of three objects of 10 B, 1000 B and 2000 B as oracleGeneral.
fn objects(folder: &Path) {
    let mut bytes = Vec::new();
    for at in 0..12_u32 {
        let object = at % 3;
        let next = if at < 9 { i64::from(at) + 4 } else { -1 };
        bytes.extend(at.to_le_bytes());
        bytes.extend(u64::from(object).to_le_bytes());
        bytes.extend([10_u32, 1000, 2000][object as usize].to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    std::fs::write(folder.join("t.oracleGeneral"), bytes).expect("a trace");
}

#[test]
fn objects_of_different_sizes_have_byte_miss_ratios_in_every_output() {
    let folder = tempfile::tempdir().expect("a folder");
    objects(folder.path());
    let plain = ["t.oracleGeneral", "-q", "--readahead", "none"];
    let sizes = ["--size", "2000B,100%"];
    let (code, out, err) = run(folder.path(), &[&plain[..], &sizes].concat());
    assert_eq!(code, Some(0), "{err}");
    for word in [
        "lru",
        "fifo",
        "clock",
        "s3-fifo",
        "sieve",
        "Byte miss ratio [%]",
    ] {
        assert!(out.contains(word), "{word} is missing in\n{out}");
    }
    let all = ["--policy", "all", "--output", "out", "--json"];
    let (code, out, err) = run(folder.path(), &[&plain[..], &sizes, &all].concat());
    assert_eq!(code, Some(0), "{err}");
    let replay = json(&out);
    let runs = replay["runs"].as_array().expect("runs");
    let of = |policy: &str, size: u64| {
        let own = |r: &&serde_json::Value| r["policy"] == policy && r["size_pages"] == size;
        runs.iter().find(own).expect(policy)["bytes"].clone()
    };
    let expected = serde_json::json!({"requested": 12040, "missed": 3010, "too_large": 0});
    assert_eq!(of("lru", 3010), expected);
    assert_eq!(of("lru", 2000)["missed"], 12040);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name));
    assert!(read("replay.csv").expect("csv").contains("byte_miss_ratio"));
    let page = read("report.html").expect("a page");
    for word in [
        "Byte miss ratio",
        "pfoo-l (bound)",
        "belady-size (heuristic)",
    ] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn sizes_of_objects_are_not_ignored_without_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    objects(folder.path());
    for (more, words) in [
        (
            &[][..],
            &["sata-7200", "--device none", "--ignore-sizes"][..],
        ),
        (
            &["--readahead", "none", "--policy", "arc"],
            &["arc", "sieve", "--ignore-sizes"],
        ),
        (
            &["--readahead", "none", "--mrc"],
            &["--mrc", "--ignore-sizes"],
        ),
    ] {
        let (code, _, err) = run(folder.path(), &[&["t.oracleGeneral", "-q"], more].concat());
        assert_eq!(code, Some(2), "{more:?}");
        for word in words {
            assert!(err.contains(word), "{more:?} should name {word}: {err}");
        }
    }
    let args = ["t.oracleGeneral", "-q", "--ignore-sizes", "--policy", "lru"];
    let (code, out, err) = run(folder.path(), &args);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Note: --ignore-sizes: objects"), "{out}");
    let info = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(["trace", "info", "t.oracleGeneral"])
        .current_dir(folder.path())
        .output()
        .expect("piebald runs");
    let out = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(
        out.contains("objects of 10B to 2000B, 12040B asked for"),
        "{out}"
    );
}

/// A scenario takes no file's place but a scenario's.
#[test]
fn save_overwrites_neither_traces_nor_recordings_nor_texts() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("notes.txt"), "mine\n").expect("written");
    std::fs::write(at("a.pbr"), b"PBLDREC\0\0\0\0\0").expect("written");
    for name in ["trace.csv", "notes.txt", "a.pbr"] {
        let before = std::fs::read(at(name)).expect("read");
        let (code, out, err) = run(folder.path(), &["trace.csv", "--save", name]);
        assert_eq!((code, &*out), (Some(2), ""), "{name}");
        assert!(
            err.contains(&format!("--save {name}: this file is "))
                && err.contains("allowed: a new file, or one that holds a scenario"),
            "{err}"
        );
        assert_eq!(std::fs::read(at(name)).expect("read"), before, "{name}");
    }
    for seed in ["1", "2"] {
        let (code, _, err) = run(
            folder.path(),
            &["trace.csv", "--save", "s.toml", "--seed", seed],
        );
        assert_eq!(code, Some(0), "{err}");
    }
    let saved = std::fs::read_to_string(at("s.toml")).expect("read");
    assert!(saved.contains("seed = 2"), "{saved}");
}

/// blktrace leaves a file for each processor, and strace -ff for each process.
#[test]
fn empty_files_beside_others_are_passed_over_with_a_note() {
    let folder = folder();
    std::fs::write(folder.path().join("idle.csv"), "").expect("written");
    let alone = run(folder.path(), &["trace.csv", "--json", "-q"]);
    let beside = run(folder.path(), &["idle.csv", "trace.csv", "--json", "-q"]);
    assert_eq!((alone.0, beside.0), (Some(0), Some(0)), "{}", beside.2);
    let notes = json(&beside.1)["conditions"]["notes"].to_string();
    assert!(
        notes.contains("idle.csv: the file is empty and is passed over"),
        "{notes}"
    );
    assert_eq!(json(&alone.1)["runs"], json(&beside.1)["runs"]);
    let (code, _, err) = run(folder.path(), &["idle.csv", "-q"]);
    assert!(
        code == Some(2) && err.contains("the file is empty; allowed"),
        "{err}"
    );
}

/// The clock of a tracing run is that of one machine.
#[test]
fn logs_of_two_byte_orders_are_not_of_one_clock() {
    let folder = folder();
    let record = |time: u64, big: bool| {
        let field = |value: u64, bytes: usize| {
            let mut field = value.to_le_bytes()[..bytes].to_vec();
            if big {
                field.reverse();
            }
            field
        };
        // Magic, sequence, time, sector, bytes, action (Q of a read), process, device, processor, error, length.
        [
            field(0x6561_7407, 4),
            field(1, 4),
            field(time, 8),
            field(8 * time, 8),
            field(4096, 4),
            field(0x1_0001, 4),
            field(7, 4),
            field(0x80_0010, 4),
            field(0, 4),
            field(0, 2),
            field(0, 2),
        ]
        .concat()
    };
    for (name, first, big) in [("a", 1, false), ("b", 2, false), ("c", 3, true)] {
        let log: Vec<u8> = (0..20).flat_map(|n| record(first + 10 * n, big)).collect();
        std::fs::write(folder.path().join(name), log).expect("written");
    }
    let (code, _, err) = run(folder.path(), &["a", "b", "-q"]);
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = run(folder.path(), &["a", "c", "-q"]);
    assert_eq!(code, Some(2), "{err}");
    for part in [
        "a was traced on a little-endian machine",
        "c on a big-endian one",
        "--align",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let (code, _, err) = run(folder.path(), &["a", "c", "--align", "start", "-q"]);
    assert_eq!(code, Some(0), "{err}");
}

/// What `--policy help` says, and the tables of the manual.
#[test]
fn policies_are_listed_with_their_options_and_what_differs() {
    use piebald_os_model::replace::registry::{BESIDE_LIBCACHESIM, OPTIONS, POLICIES};
    let folder = tempfile::tempdir().expect("a folder");
    let (code, out, err) = run(folder.path(), &["--policy", "help"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for row in POLICIES {
        assert!(
            out.contains(&format!("\n{}: {}", row.name, row.about)) || out.starts_with(row.name)
        );
    }
    for option in OPTIONS {
        assert!(out.contains(option.values), "{option:?}");
    }
    for (.., rule) in BESIDE_LIBCACHESIM {
        assert!(out.contains(rule), "{rule}");
    }
    let (code, json, _) = run(folder.path(), &["--policy", "help", "--json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let list = json["policies"].as_array().expect("a list");
    assert_eq!(list.len(), POLICIES.len());
    // Without a trace there is nothing else to do.
    let (code, _, err) = run(folder.path(), &["--policy", "lru"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no TRACE is given"), "{err}");

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/replay.md");
    let page = std::fs::read_to_string(page)
        .expect("the manual")
        .replace('`', "");
    for option in OPTIONS {
        let names = option.name;
        let row = format!(
            "| {}:{names} | {} | {} |",
            option.policy, option.values, option.default
        );
        assert!(page.contains(&row), "{row}");
    }
    for (policy, other, rule) in BESIDE_LIBCACHESIM.iter().filter(|row| row.2 != "equal") {
        let row = format!("| {policy} | {other} | {rule} |");
        assert!(page.contains(&row), "{row}");
    }
}
