//! `piebald reproduce`: what it lists, refuses and writes.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn piebald(folder: &tempfile::TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_piebald"))
        .arg("reproduce")
        .args(args)
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .output()
        .expect("it starts")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn without_a_paper_it_lists_those_that_can_be_rerun() {
    let done = piebald(&folder(), &[]);
    assert!(done.status.success());
    let out = text(&done.stdout);
    assert!(
        out.starts_with("rainbow ") && out.contains("(R-1 to R-"),
        "{out}"
    );
    assert!(
        out.contains("\ndulo ") && out.contains("(D-1 to D-13)"),
        "{out}"
    );
}

#[test]
fn what_cannot_be_is_refused_with_what_is_allowed() {
    for (args, part) in [
        (&["rainbows"][..], "allowed: rainbow, dulo"),
        (
            &["rainbow", "--only", "R-99"],
            "--only R-99: allowed: R-1, R-2",
        ),
        (
            &["rainbow", "--budget", "10"],
            "--budget 10: allowed: 100 to 1T",
        ),
        (
            &["rainbow", "--repetitions", "0"],
            "allowed: a whole number from 1 to 1000",
        ),
        (&["mfc", "--guest"], "mfc --guest: allowed: rainbow, srm"),
        (
            &["rainbow", "--guest", "--only", "R-1"],
            "--only R-1: allowed: R-2, R-6",
        ),
        (&["srm", "--guest", "--budget", "1M"], "not with --guest"),
        (
            &["srm", "--guest", "--module", "no.ko"],
            "--module no.ko: no such file",
        ),
        (&["srm", "--module", "no.ko"], "--guest"),
        (
            &["mfc", "--mixes", "3"],
            "--mixes 3: mfc has no lists of mixes; allowed with hvr",
        ),
        (&["hvr", "--mixes", "215"], "--mixes 215: allowed: 1 to 214"),
        (&["hvr", "--mixes", "0"], "--mixes <N>"),
        (&["rainbow", "--only", "R-55"], "; did you mean R-5?"),
        (
            &["--status", "--guest"],
            "--status: allowed with a paper only",
        ),
        (
            &["rainbow", "--status", "--store", "none"],
            "allowed: --store DIR",
        ),
        (
            &["--only", "R-1"],
            "--only: allowed with a paper only: one of rainbow, dulo",
        ),
        (
            &["--quick", "-o", "nowhere"],
            "--quick: allowed with a paper only",
        ),
        (
            &["--status", "--only", "R-1"],
            "allowed with a paper only: --only",
        ),
        (
            &["rainbow", "--status", "--only", "S-1"],
            "allowed: R-1, R-2",
        ),
    ] {
        let done = piebald(&folder(), args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        let said = text(&done.stderr);
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

#[test]
fn constants_need_no_recording_and_match() {
    let done = piebald(&folder(), &["rainbow", "--only", "R-1,r-7", "--json"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["system"], "rainbow");
    let targets = json["targets"].as_array().expect("targets");
    let ids: Vec<&str> = targets.iter().filter_map(|t| t["id"].as_str()).collect();
    assert_eq!(ids, ["R-1", "R-7"]);
    for t in targets {
        assert_eq!(t["verdict"], "match", "{t}");
        assert_eq!(t["kind"], "C");
    }
    // The form that every system's results have.
    let keys = [
        "id",
        "title",
        "kind",
        "verdict",
        "why",
        "stand_in",
        "calibrated",
        "values",
        "predicates",
    ];
    let has = |key: &&str| targets[0].get(key).is_some();
    assert!(keys.iter().all(has), "{}", targets[0]);
    let value = &targets[0]["values"][0];
    assert_eq!(value["paper"], 13.0);
    assert_eq!(value["measured"], 13.0);
    assert!(
        value["ci95"].is_null() && value["unit"] == "bits",
        "{value}"
    );
}

#[test]
fn programs_that_cannot_be_recorded_leave_their_targets_not_run_with_the_reason() {
    let folder = folder();
    let args = [
        "rainbow", "--quick", "--only", "R-5", "--output", "out", "--json", "r.json",
    ];
    let done = piebald(&folder, &args);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let file = std::fs::read(folder.path().join("r.json")).expect("was written");
    let json: Value = serde_json::from_slice(&file).expect("JSON");
    let target = &json["targets"][0];
    assert_eq!(
        (&target["id"], &target["verdict"]),
        (&"R-5".into(), &"not-run".into())
    );
    assert!(
        target["why"]
            .as_str()
            .is_some_and(|w| w.contains("scripts/stand-ins.sh rainbow")),
        "{target}"
    );
    let html = std::fs::read_to_string(folder.path().join("out/report.html")).expect("is there");
    assert!(
        html.contains("not run") && html.trim_end().ends_with("</html>"),
        "a whole page"
    );
    assert!(
        text(&done.stdout).contains("NOT RUN"),
        "{}",
        text(&done.stdout)
    );
}

#[test]
fn the_status_of_rows_tells_what_was_run_and_what_is_missing() {
    let folder = folder();
    let short = ["--quick", "--budget", "100k", "--repetitions", "1"];
    let status = || -> Value {
        let only = ["rainbow", "--status", "--only", "R-1,R-5,R-8", "--json"];
        let done = piebald(&folder, &[&only[..], &short].concat());
        assert!(done.status.success(), "{}", text(&done.stderr));
        let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!(json["schema"], 1);
        json["papers"][0]["rows"].clone()
    };
    let states = |rows: &Value| -> Vec<String> {
        let rows = rows.as_array().expect("rows").iter();
        rows.map(|r| format!("{} {}", r["id"], r["state"]))
            .collect()
    };
    let before = status();
    assert!(!folder.path().join("cache").exists(), "nothing was made");
    let wanted = [
        r#""R-1" "ready""#,
        r#""R-5" "cannot-run""#,
        r#""R-8" "missing""#,
    ];
    assert_eq!(states(&before), wanted);
    let why = before[1]["why"].as_str().unwrap_or_default();
    assert!(why.contains("scripts/stand-ins.sh rainbow"), "{why}");
    let run = ["rainbow", "--only", "R-8", "-q"];
    let done = piebald(&folder, &[&run[..], &short].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    let after = status();
    assert_eq!(states(&after)[2], r#""R-8" "ready""#, "{after}");
    let kept = |rows: &Value| rows[2]["kept"]["runs"].as_u64().expect("a number");
    assert!(kept(&before) == 0 && kept(&after) > 0, "{after}");
    assert!(after[2]["kept"]["seconds"].as_f64() > Some(0.0), "{after}");
}

#[test]
fn a_store_that_cannot_be_is_named() {
    let folder = folder();
    std::fs::write(folder.path().join("kept"), "").expect("a file");
    // The older name of the option.
    for option in ["--store", "--keep"] {
        let done = piebald(&folder, &["hvr", "--only", "H-12", option, "kept"]);
        assert_eq!(done.status.code(), Some(2));
        let said = text(&done.stderr);
        assert!(said.contains("--store: kept/v1: "), "{said}");
    }
}

#[test]
fn an_exported_row_is_an_experiment_that_study_runs() {
    let folder = folder();
    let done = piebald(&folder, &["export", "r-b2", "--quick"]);
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(
        said.contains("R-B2: ") && said.contains("scripts/stand-ins.sh rainbow"),
        "{said}"
    );
    let done = piebald(&folder, &["export", "R-4", "-o", "files"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let out = text(&done.stdout);
    let names: Vec<&str> = out.lines().collect();
    assert_eq!(
        (names.len(), names[2]),
        (3, "files/R-4-3-limit-two-that-may-swap.toml")
    );
    let run = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_piebald"));
        let command = command.args(["study", name, "-q", "--json"]);
        command
            .current_dir(folder.path())
            .output()
            .expect("it starts")
    };
    // As the row says: two colors are used up.
    let two = run(names[1]);
    assert!(
        text(&two.stderr).contains("used up"),
        "{}",
        text(&two.stderr)
    );
    let short = ["--quick", "--budget", "100k", "--repetitions", "1"];
    let done = piebald(
        &folder,
        &[&["export", "R-8", "-o", "short"], &short[..]].concat(),
    );
    let out = text(&done.stdout);
    let fits = run(out.lines().next().expect("a file"));
    assert!(fits.status.success(), "{}", text(&fits.stderr));
}

#[test]
fn what_cannot_be_exported_says_what_can() {
    for (args, part) in [
        (&["export", "R-55"][..], "R-55: no such row; allowed: "),
        (&["export", "R-55"], "; did you mean R-5?"),
        (&["export", "R-1"], "R-1: it needs no runs"),
        (
            &["export", "R-4"],
            "R-4 has 3 experiments; allowed: --output DIR",
        ),
        (&["export"], "<ROW>"),
    ] {
        let done = piebald(&folder(), args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        let said = text(&done.stderr);
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

/// A small paper that is data, of the repository.
fn example() -> String {
    format!("{}/../../scenarios/paper", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_folder_with_two_files_is_a_paper() {
    let (folder, paper) = (folder(), example());
    let short = ["--quick", "--budget", "30k"];
    let run = |args: &[&str]| {
        let done = piebald(&folder, &[&[paper.as_str()][..], &short, args].concat());
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    let status = run(&["--status", "--threads", "1"]);
    assert!(
        status.contains("E-1") && status.contains("missing: at least 18"),
        "{status}"
    );
    let json: Value =
        serde_json::from_str(&run(&["--json", "-q", "--threads", "2"])).expect("JSON");
    assert_eq!(json["system"], "paper");
    let row = &json["targets"][0];
    assert_eq!((&row["id"], &row["kind"]), (&"E-1".into(), &"H".into()));
    assert_ne!(row["verdict"], "not-run", "{row}");
    assert_eq!(row["values"].as_array().map(Vec::len), Some(4), "{row}");
    let points = json["figures"][0]["panels"][0]["curves"][0]["points"].as_array();
    assert_eq!(points.map(Vec::len), Some(2));
    let command = json["command"].as_str().unwrap_or_default();
    assert_eq!(
        command,
        format!("piebald reproduce {paper} --quick --budget 30k --seed 42")
    );
    assert!(run(&["--status"]).contains("in the store: 18 runs"));
    // Its experiment is a file that a study runs.
    let done = piebald(
        &folder,
        &["export", "e-1", "--paper", &paper, "--quick", "-o", "files"],
    );
    assert!(done.status.success(), "{}", text(&done.stderr));
    let file = folder.path().join("files/E-1-1-share.toml");
    let written = std::fs::read_to_string(file).expect("was written");
    assert!(written.contains("0-11"), "{written}");
}

#[test]
fn a_paper_that_is_wrong_is_refused_before_anything_is_run() {
    let folder = folder();
    let made = folder.path().join("mine");
    std::fs::create_dir(&made).expect("a folder");
    for name in ["grid.toml", "rows.toml"] {
        let text = std::fs::read_to_string(Path::new(&example()).join(name)).expect("a file");
        std::fs::write(made.join(name), text).expect("was written");
    }
    let refused = |args: &[&str], part: &str| {
        let done = piebald(&folder, args);
        assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
        assert!(text(&done.stderr).contains(part), "{}", text(&done.stderr));
    };
    refused(&["mine", "--only", "E-2"], "--only E-2: allowed: E-1");
    refused(&["mine", "--guest"], "mine --guest: allowed: rainbow, srm");
    refused(
        &["mine", "--mixes", "3"],
        "--mixes 3: mine has no lists of mixes; allowed",
    );
    refused(&["export", "R-8", "--paper", "mine"], "R-8: no such row");
    refused(&["myne"], "or a folder with grid.toml and rows.toml");
    let rows = std::fs::read_to_string(made.join("rows.toml")).expect("a file");
    std::fs::write(
        made.join("rows.toml"),
        rows.replace("stock.low >", "stok.low >"),
    )
    .expect("a file");
    refused(
        &["mine"],
        "mine/rows.toml: row E-1: statement[0]: \"stok\" is the name of nothing",
    );
    std::fs::remove_file(made.join("rows.toml")).expect("it is there");
    refused(&["mine", "-o", "out"], "mine/rows.toml: No such file");
    assert!(!folder.path().join("out").exists());
}
