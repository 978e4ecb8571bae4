//! `piebald load`, `status`, `run` and `recolor` over a tree of plain files.

use std::{
    fs,
    os::unix::{fs::symlink, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// A root with the module's files, on with 16 colours; or without the module.
fn tree(loaded: bool) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("proc/piebald");
    let files = [
        ("on", "1\n"),
        ("map", "12\n13\n14\n15\n"),
        ("colors", "16\n"),
        ("others", "4-15\n"),
        ("free", "0 10\n1 20\n"),
        ("pool_max", "16384\n"),
        ("counters", "anon_pages 7\nrecolored 5\nrecolor_failed 1\n"),
        ("recolor", ""),
        ("error", ""),
    ];
    if loaded {
        fs::create_dir_all(&dir).expect("made");
        for (name, text) in files {
            fs::write(dir.join(name), text).expect("written");
        }
        let files = [
            ("sys/kernel/config/piebald/web", "colors", "0-3\n"),
            ("sys/kernel/config/piebald/web", "mode", "hard\n"),
            ("sys/kernel/config/piebald/web", "groups", "/web\n"),
            ("proc/self", "mounts", "cgroup2 /cg cgroup2 rw 0 0\n"),
            ("proc/self", "cgroup", "0::/shell\n"),
            ("proc/77", "cgroup", "0::/shell\n"),
            ("proc/78", "cgroup", "0::/web\n"),
            ("cg/shell", "cgroup.procs", ""),
        ];
        for (dir, name, text) in files {
            let dir = root.path().join(dir);
            fs::create_dir_all(&dir).expect("made");
            fs::write(dir.join(name), text).expect("written");
        }
    }
    root
}

fn file(root: &Path, name: &str) -> PathBuf {
    root.join("proc/piebald").join(name)
}

/// What is in a file of the set that a process got for itself: the only one of its kind.
fn own_set(root: &Path, name: &str) -> Option<String> {
    let sets = fs::read_dir(root.join("sys/kernel/config/piebald")).expect("read");
    let mut own = sets.flatten().filter(|set| {
        let set = set.file_name();
        set.to_string_lossy().starts_with("piebald-run-")
    });
    let found = fs::read_to_string(own.next()?.path().join(name)).ok();
    assert!(own.next().is_none());
    found
}

fn piebald(root: &Path, args: &[&str]) -> (Output, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(args)
        .env("PIEBALD_ROOT", root)
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (output, out, err)
}

fn code(root: &Path, args: &[&str]) -> (Option<i32>, String) {
    let (output, _, err) = piebald(root, args);
    (output.status.code(), err)
}

#[test]
fn the_program_keeps_its_status_its_signals_and_its_output() {
    let root = tree(true);
    let script = "echo to stdout; exit 37";
    let args = [
        "run", "--colors", "0-3,8", "--hard", "--", "sh", "-c", script,
    ];
    let (output, out, _) = piebald(root.path(), &args);
    assert_eq!(
        (output.status.code(), out.as_str()),
        (Some(37), "to stdout\n")
    );
    let written = ["colors", "mode"].map(|name| own_set(root.path(), name));
    assert_eq!(written, [Some("0-3,8".into()), Some("hard".into())]);

    let root = tree(true);
    let args = ["run", "--share", "25%", "--", "sh", "-c", "kill -USR1 $$"];
    let (output, _, _) = piebald(root.path(), &args);
    assert_eq!(output.status.signal(), Some(10));
    let written = ["colors", "mode"].map(|name| own_set(root.path(), name));
    assert_eq!(written, [Some("25%".into()), Some("hint".into())]);
}

#[test]
fn what_is_started_is_the_process_that_was_given_colors() {
    let root = tree(true);
    let args = ["run", "--colors", "1", "--", "sh", "-c", "echo $$"];
    let (_, out, _) = piebald(root.path(), &args);
    let group = own_set(root.path(), "attach").expect("a group");
    assert_eq!(group, format!("/piebald-run-{}", out.trim()));
    let procs = root
        .path()
        .join("cg")
        .join(&group[1..])
        .join("cgroup.procs");
    assert_eq!(fs::read_to_string(procs).expect("read"), out.trim());
}

#[test]
fn failures_of_run_cannot_be_taken_for_the_program_s() {
    let root = tree(true);
    let start = |program: &str| code(root.path(), &["run", "--colors", "0", "--", program]);
    let (status, err) = start("no-such-program");
    assert_eq!(status, Some(127), "{err}");
    assert!(err.contains("no-such-program: "), "{err}");
    // The colours were given back.
    assert_eq!(own_set(root.path(), "colors").as_deref(), Some("none"));
    let root = tree(true);
    let start = |program: &str| code(root.path(), &["run", "--colors", "0", "--", program]);
    let dir = root.path().to_str().expect("UTF-8");
    assert_eq!(start(dir).0, Some(126));

    let none = tree(false);
    let (status, err) = code(none.path(), &["run", "--colors", "0", "--", "true"]);
    assert_eq!(status, Some(125));
    assert!(
        err.contains("not loaded") && err.contains("piebald load"),
        "{err}"
    );

    fs::write(file(root.path(), "on"), "0\n").expect("written");
    let (status, err) = start("true");
    assert_eq!(status, Some(125));
    assert!(err.contains("coloring is off"), "{err}");
}

#[test]
fn a_refusal_of_the_module_is_told_in_its_words() {
    let root = tree(true);
    fs::remove_file(file(root.path(), "recolor")).expect("removed");
    symlink("/dev/full", file(root.path(), "recolor")).expect("linked");
    fs::write(file(root.path(), "error"), "process 77 has no colors\n").expect("written");
    let (status, err) = code(root.path(), &["recolor", "77"]);
    assert_eq!(status, Some(1));
    assert!(
        err.contains("\"77\" refused: process 77 has no colors"),
        "{err}"
    );
    // Without its directories there are no sets.
    fs::remove_dir_all(root.path().join("sys")).expect("removed");
    let (status, err) = code(root.path(), &["run", "--colors", "3", "--", "true"]);
    assert_eq!(status, Some(125));
    assert!(err.contains("mount -t configfs"), "{err}");
}

#[test]
fn running_processes_get_and_lose_colors() {
    let root = tree(true);
    let web = root.path().join("sys/kernel/config/piebald/web/colors");
    let of_web = || fs::read_to_string(&web).expect("read");
    let args = ["run", "--pid", "78", "--colors", "4-5"];
    assert_eq!(code(root.path(), &args), (Some(0), String::new()));
    assert_eq!(of_web(), "4-5");
    let (status, err) = code(root.path(), &["run", "--pid", "77", "--none"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("no colors of its own"), "{err}");
    assert_eq!(
        code(root.path(), &["run", "--pid", "78", "--none"]).0,
        Some(0)
    );
    assert_eq!(of_web(), "none");
    let args = ["run", "--pid", "77", "--share", "12.5%"];
    assert_eq!(code(root.path(), &args), (Some(0), String::new()));
    assert_eq!(own_set(root.path(), "colors").as_deref(), Some("12.5%"));
    assert_eq!(
        own_set(root.path(), "attach").as_deref(),
        Some("/piebald-run-77")
    );
    let (_, out, _) = piebald(root.path(), &["recolor", "77"]);
    assert_eq!(
        out,
        "0 pages moved to the colors of process 77, 0 tried that stay where they are, \
         0 left that other processes have too\n"
    );
    assert_eq!(
        fs::read_to_string(file(root.path(), "recolor")).expect("read"),
        "77"
    );
    let (_, out, _) = piebald(root.path(), &["recolor", "77", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON alone");
    assert_eq!(json["pid"], 77);
    assert_eq!(json["moved_pages"], 0);
}

#[test]
fn wrong_command_lines_name_what_is_allowed() {
    let root = tree(true);
    for (args, says) in [
        (&["run", "--", "true"][..], "--share 25%"),
        (&["run", "--colors", "5-3", "--", "true"], "as in 0-3,8"),
        (&["run", "--share", "0%", "--", "true"], "0.01% to 100%"),
        (
            &["run", "--colors", "1", "--share", "5%", "--", "true"],
            "cannot be used with",
        ),
        (
            &["run", "--colors", "1", "--pid", "7", "--", "true"],
            "cannot be used with",
        ),
        (&["run", "--colors", "1"], "CMD"),
        (&["run", "--none", "--", "true"], "--pid"),
        (&["load", "--map", "3"], "address bits from 12"),
        (&["recolor", "me"], "me"),
    ] {
        let (status, err) = code(root.path(), args);
        assert_eq!(status, Some(2), "{args:?}: {err}");
        assert!(err.contains(says), "{args:?}: {err}");
    }
}

#[test]
fn the_status_is_told_to_people_and_programs() {
    let root = tree(true);
    let (_, out, _) = piebald(root.path(), &["status"]);
    for part in [
        "coloring  on",
        "colors    16, from address bits 12,13,14,15",
        "30 frames free (120KiB) of at most 16384; 10 to 20 of a color",
        "set       0-3 hard of /web (web)",
        "others    4-15",
        "anon_pages            7",
    ] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
    let (_, out, _) = piebald(root.path(), &["status", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["sets"][0]["groups"][0], "/web");
    assert_eq!(
        (&json["others"], &json["on"]),
        (&"4-15".into(), &true.into())
    );
    assert_eq!(json["counters"]["recolored"], 5);

    let none = tree(false);
    let (output, out, _) = piebald(none.path(), &["status", "--json"]);
    assert_eq!(
        (output.status.code(), out.as_str()),
        (Some(1), "{\n  \"loaded\": false,\n  \"schema\": 2\n}\n")
    );
    let (status, err) = code(none.path(), &["status"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("not loaded"), "{err}");
}

#[test]
fn a_loaded_module_gets_another_map() {
    let root = tree(true);
    let (_, out, _) = piebald(root.path(), &["load", "--map", "15-16,17^20"]);
    assert_eq!(
        out,
        "loaded; on, 8 colors from address bits 15,16,17^20\n\
         note: the module has never been run on real hardware, only in guests under QEMU\n"
    );
    let map = fs::read_to_string(file(root.path(), "map")).expect("read");
    assert_eq!(map, "15\n16\n17 20\n");
    assert_eq!(
        fs::read_to_string(file(root.path(), "on")).expect("read"),
        "1"
    );
    let (_, out, _) = piebald(root.path(), &["load", "--map", "15-16", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON alone");
    assert_eq!(
        (&json["map"], &json["colors"]),
        (&"15,16".into(), &4.into())
    );
    let (_, out, _) = piebald(root.path(), &["load", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON alone");
    assert_eq!(json["loaded"], true);
    assert!(json["map"].is_null(), "none was asked for: {json}");
    let (status, err) = code(root.path(), &["load", "piebald.ko"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("loaded already"), "{err}");
}

#[test]
fn bits_beyond_the_memory_make_no_colors() {
    let root = tree(true);
    let iomem = "00001000-0009ffff : System RAM\n00100000-1fffffff : System RAM\n";
    fs::write(root.path().join("proc/iomem"), iomem).expect("written");
    let (status, err) = code(root.path(), &["load", "--map", "28-29"]);
    assert_eq!(status, Some(2));
    assert!(
        err.contains("bit 29 is 0 in all memory") && err.contains("12 to 28"),
        "{err}"
    );
    assert_eq!(code(root.path(), &["load", "--map", "27-28"]).0, Some(0));
}

#[test]
fn a_program_that_is_slower_with_coloring_is_found_to_be() {
    let root = tree(true);
    // The tree of plain files colours nothing: the program itself looks at the switch.
    let on = file(root.path(), "on");
    let script = format!("if grep -q 1 {}; then sleep 0.4; fi", on.display());
    let args = [
        "compare", "--pairs", "4", "--json", "-q", "--", "sh", "-c", &script,
    ];
    let (output, out, err) = piebald(root.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{err}");
    // Other work on this computer can make any run longer: what is sure is that no run with
    // coloring took less than it slept, and that the finding is what the interval says.
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let wall = &found["quantities"][0];
    assert_eq!(
        (&wall["name"], &found["pairs"]),
        (&"wall time".into(), &4.into())
    );
    let on_values = wall["on"]["values"].as_array().expect("a list");
    let slept = |v: &serde_json::Value| v.as_f64().is_some_and(|s| s >= 0.4);
    assert!(
        on_values.len() == 4 && on_values.iter().all(slept),
        "{wall}"
    );
    let [mean, half] = ["mean", "ci95"].map(|key| wall["difference"][key].as_f64());
    let (mean, half) = (mean.expect("a mean"), half.expect("an interval"));
    // All quantities are corrected together: an interval that hardly leaves zero out is not enough.
    let told = wall["finding"].as_str().expect("a finding");
    match (
        mean - half > 0.0,
        mean - 4.0 * half > 0.0,
        mean + half < 0.0,
    ) {
        (_, true, _) => assert_eq!(told, "more", "{wall}"),
        (true, ..) => assert!(["more", "not told from chance"].contains(&told), "{wall}"),
        (.., true) => assert!(["less", "not told from chance"].contains(&told), "{wall}"),
        _ => assert!(
            ["no effect", "not told from chance"].contains(&told),
            "{wall}"
        ),
    }
    assert_eq!(fs::read_to_string(on).expect("read"), "1");
}

#[test]
fn a_program_that_does_not_care_shows_no_effect() {
    let root = tree(true);
    let args = [
        "compare", "--pairs", "3", "--colors", "0-3", "-q", "--", "true",
    ];
    let (_, out, _) = piebald(root.path(), &args);
    let faults = out.lines().find(|l| l.starts_with("page faults from disk"));
    assert!(faults.expect("a line").ends_with("no effect"), "{out}");
    // The colours were taken for the runs, and given back.
    assert_eq!(own_set(root.path(), "colors").as_deref(), Some("none"));
}

#[test]
fn comparisons_of_failing_programs_mean_nothing() {
    let root = tree(true);
    fs::write(file(root.path(), "on"), "0\n").expect("written");
    let script = format!("! grep -q 1 {}", file(root.path(), "on").display());
    let (status, err) = code(root.path(), &["compare", "-q", "--", "sh", "-c", &script]);
    assert_eq!(status, Some(1));
    assert!(
        err.contains("with coloring on") && err.contains("status: 1"),
        "{err}"
    );
    assert_eq!(
        fs::read_to_string(file(root.path(), "on")).expect("read"),
        "0"
    );
    let (status, err) = code(root.path(), &["compare", "-q", "--", "no-such-program"]);
    assert_eq!(status, Some(2), "{err}");
    let (status, err) = code(root.path(), &["compare", "--pairs", "1", "--", "true"]);
    assert_eq!(status, Some(2), "{err}");
    let (status, err) = code(root.path(), &["compare", "--hard", "--", "true"]);
    assert_eq!((status, err.contains("--share")), (Some(2), true), "{err}");
}

/// Describes a second level of 16 ways, and no other cache.
fn last_level(root: &Path, sets: &str) {
    let cache = root.join("sys/devices/system/cpu/cpu0/cache/index0");
    fs::create_dir_all(&cache).expect("made");
    for (name, value) in [
        ("level", "2"),
        ("type", "Unified"),
        ("ways_of_associativity", "16"),
        ("number_of_sets", sets),
        ("coherency_line_size", "64"),
        ("shared_cpu_list", "0-3"),
    ] {
        fs::write(cache.join(name), value).expect("written");
    }
}

#[test]
fn the_probe_tells_facts_without_rights() {
    let root = tree(false);
    let (output, out, _) = piebald(root.path(), &["probe", "--no-measure", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["verdict"], "unknown");
    assert_eq!(json["caches"], serde_json::Value::Null);
    last_level(root.path(), "2048");
    let (_, out, _) = piebald(root.path(), &["probe", "--no-measure"]);
    for part in [
        "L2 unified: 2MiB, 16 ways",
        "12,13,14,15,16, if the index",
        "not measured",
    ] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
    // Of no memory half is too little.
    let (_, out, _) = piebald(root.path(), &["probe", "-q"]);
    assert!(out.contains("is not known: measuring takes"), "{out}");
}

#[test]
fn the_probe_refuses_a_last_level_that_no_address_bit_divides() {
    let root = tree(false);
    last_level(root.path(), "491520");
    // Memory is no hindrance: it is the number of sets that is told.
    fs::create_dir_all(root.path().join("proc")).expect("made");
    let memory = "MemAvailable: 1073741824 kB\n";
    fs::write(root.path().join("proc/meminfo"), memory).expect("written");
    for args in [&["probe", "-q"][..], &["probe", "--json"]] {
        let (output, out, err) = piebald(root.path(), args);
        assert_eq!((output.status.code(), out.as_str()), (Some(2), ""), "{err}");
        for part in ["(L2) has 491520 sets", "no power of two", "--no-measure"] {
            assert!(err.contains(part), "{part}: {err}");
        }
        assert!(!err.contains("round "), "{err}");
    }
    let (output, out, _) = piebald(root.path(), &["probe", "--no-measure"]);
    assert_eq!(output.status.code(), Some(0));
    for part in ["491520 sets, shared", "has 491520 sets, which is no power"] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
    assert!(!out.contains("if the index is linear"), "{out}");
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let root = tree(false);
    let (status, err) = code(root.path(), &["load", "no-such.ko"]);
    assert_eq!(status, Some(1));
    assert!(
        err.contains("no-such.ko: ") && err.contains("piebald.ko"),
        "{err}"
    );
    // Without a file it is built, if the module takes the kernel at all.
    let kernel = root.path().join("proc/sys/kernel");
    fs::create_dir_all(&kernel).expect("made");
    let running = |release: &str| {
        fs::write(kernel.join("osrelease"), release).expect("written");
        code(root.path(), &["load"])
    };
    let (status, err) = running("6.18.44-fc-v669\n");
    assert_eq!(status, Some(1));
    assert!(
        err.contains("kernel 6.18.44-fc-v669; the module knows 6.12.*"),
        "{err}"
    );
    assert!(!err.contains("linux-headers"), "{err}");
    // This root has no headers.
    let (status, err) = running("6.12.48+deb13-amd64\n");
    assert_eq!(status, Some(1));
    let helps = err.contains("linux-headers-") || err.contains("kernel/build.sh");
    assert!(helps, "{err}");
}

#[test]
fn unloading_what_is_not_loaded_is_told_in_a_sentence() {
    let root = tree(false);
    let (status, err) = code(root.path(), &["unload"]);
    assert_eq!(status, Some(1));
    assert_eq!(
        err,
        "piebald: the module is not loaded, so there is nothing to unload\n"
    );
}
