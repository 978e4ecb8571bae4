//! `piebald trace` and traces in studies, from the command line.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Exit code, standard output, standard error.
struct Ran(i32, String, String);

fn piebald(words: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(words)
        .output()
        .expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "{words:?}: {err}");
    Ran(output.status.code().expect("no signal"), out, err)
}

fn ok(words: &[&str]) -> String {
    let Ran(code, out, err) = piebald(words);
    assert_eq!(code, 0, "{words:?}: {err}");
    out
}

fn samples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mem");
    let names = [
        "champsim",
        "champsim.xz",
        "cloudsuite",
        "drmemtrace.7.trace.gz",
        "drmemtrace.7.trace.zip",
        "lackey",
        "lackey.zst",
    ];
    let path = |n: &str| folder.join(format!("chase.{n}")).display().to_string();
    names.map(path).to_vec()
}

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("piebald-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.0.join(name), content).expect("written");
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A loop over 64 KiB, then one over 1 MiB.
fn long_trace() -> String {
    let mut text = String::new();
    for i in 0..60_000u64 {
        let (pc, lines) = if i < 30_000 {
            (0x40_1000, 1024)
        } else {
            (0x40_2000, 16384)
        };
        text += &format!(
            "I  {pc:x},4\n L {:x},8\nI  {:x},4\n",
            0x1000_0000 + i % lines * 64,
            pc + 4
        );
    }
    text
}

#[test]
fn info_is_for_people_and_json_for_programs() {
    for sample in samples() {
        let out = ok(&["trace", "info", &sample]);
        assert!(out.contains("15 loads, 2 stores, 1 updates"), "{out}");
        assert!(out.contains("62 instructions"), "{out}");
        let json = ok(&["trace", "info", "--json", &sample]);
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(value["instructions"], 62);
    }
}

#[test]
fn block_traces_are_found_out_and_told() {
    let folder = Folder::new("block");
    let rows = "1000,h,0,Read,0,8192,5\n2000,h,0,Write,8192,4096,5\n";
    let file = folder.write("rows.txt", rows);
    let out = ok(&["trace", "info", &file]);
    // What the columns were taken for, with their units.
    assert!(
        out.contains("msr trace\n  fields: Timestamp (Windows FILETIME: units of 100 ns), "),
        "{out}"
    );
    assert!(out.contains("\n  2 requests: 1 reads, 1 writes"), "{out}");
    assert!(
        out.contains("3 references to 3 pages of 4 KiB, 66.7 % to the next page"),
        "{out}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&ok(&["trace", "info", "--json", &file])).expect("JSON");
    assert_eq!(json["format"], "msr");
    assert_eq!(json["page_references"], 3);
    assert_eq!(
        ok(&["trace", "head", "-n", "1", &file]),
        "# request time_ns task op target\n#0 100000 0 read disk h.0 sectors 0+16\n"
    );
    let damaged = folder.write("damaged", format!("{rows}3000,h,0,Read,x,1,5\n"));
    let Ran(code, _, err) = piebald(&["trace", "info", "--format", "msr", &damaged]);
    assert_eq!(code, 2);
    assert!(
        err.contains("line 3: the offset is \"x\"; allowed:"),
        "{err}"
    );
    let out = ok(&["trace", "info", "--lenient", "--format", "msr", &damaged]);
    assert!(out.contains("LEFT OUT: 1 wrong records"), "{out}");
    for (words, message) in [
        (
            vec!["info", "--recover", &file],
            "--recover: allowed with recordings",
        ),
        (
            vec!["head", "--thread", "1", &file],
            "--thread: allowed with recordings",
        ),
        (vec!["info", "--format", "iso", &file], "oracle-general"),
        (vec!["info", &damaged], "as msr it goes wrong at byte"),
    ] {
        let Ran(code, _, err) = piebald(&[&["trace"], &words[..]].concat());
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(message), "{err}");
    }
    let both = folder.write("both", "1000 0 64 8 1\n2000 0 72 8 0\n");
    let Ran(code, _, err) = piebald(&["trace", "info", &both]);
    assert_eq!(code, 2);
    assert!(
        err.contains("mqsim or disksim; say which with --format"),
        "{err}"
    );
}

#[test]
fn what_is_converted_begins_as_the_trace_did() {
    let folder = Folder::new("convert");
    for sample in samples() {
        let out = folder.path("out.pbr");
        let said = ok(&["trace", "convert", &sample, &out]);
        assert!(said.contains("18 references and 62 instructions"), "{said}");
        assert!(said.contains("assumes: no mappings"), "{said}");
        let columns = |text: &str, keep: &dyn Fn(&&str) -> bool| -> Vec<String> {
            let rows = text.lines().filter(|l| !l.starts_with('#')).filter(keep);
            rows.map(|l| l.split(' ').skip(2).take(3).collect::<Vec<_>>().join(" "))
                .collect()
        };
        let data = |l: &&str| !l.contains(" fetch ");
        let before = columns(&ok(&["trace", "head", "-n", "1000", &sample]), &data);
        let after = columns(&ok(&["trace", "head", "-n", "1000", &out]), &data);
        assert_eq!(before.len(), 18);
        assert_eq!(before, after);
        assert!(ok(&["trace", "info", &out]).contains("  complete"));
    }
}

#[test]
fn damage_is_told_with_its_place_by_every_verb() {
    let folder = Folder::new("damage");
    let out = folder.path("out.pbr");
    let bad = folder.write("bad.lackey", "I  401000,3\n L 1000,8\n Q 1000,8\n");
    let champsim = fs::read(&samples()[0]).expect("a sample");
    let cut = folder.write("cut.champsim", &champsim[..champsim.len() - 5]);
    let packed = fs::read(&samples()[1]).expect("a sample");
    let torn = folder.write("torn.champsim.xz", &packed[..packed.len() / 2]);
    for (file, format, place) in [
        (&bad, "lackey", "byte 22, line 3"),
        (&cut, "champsim", "byte 3904"),
        (&torn, "champsim", "byte "),
    ] {
        for verb in ["info", "head", "convert"] {
            let mut words = vec!["trace", verb, "--format", format, file];
            match verb {
                "convert" => words.push(&out),
                "head" => words.extend(["-n", "1000"]),
                _ => {}
            }
            let Ran(code, _, err) = piebald(&words);
            assert!([1, 2].contains(&code), "{words:?}: {code}");
            assert!(err.contains(place), "{words:?}: {err}");
        }
    }
    let left = fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(left, 3, "a conversion that failed leaves nothing");
}

#[test]
fn damaged_recordings_are_told_with_their_place() {
    let folder = Folder::new("recording");
    let out = folder.path("out.pbr");
    ok(&["trace", "convert", &samples()[0], &out]);
    let whole = fs::read(&out).expect("a recording");
    for n in [9, 100, 4200, whole.len() - 1] {
        let cut = folder.write("cut.pbr", &whole[..n]);
        for verb in ["info", "head", "regions"] {
            let Ran(code, _, err) = piebald(&["trace", verb, &cut]);
            assert!([1, 2].contains(&code), "{verb} of {n} bytes: {code}");
            assert!(err.contains("offset"), "{verb} of {n} bytes: {err}");
        }
    }
    for n in (4096..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[n] ^= 0x10;
        let bad = folder.write("bad.pbr", &bytes);
        let Ran(code, _, err) = piebald(&["trace", "head", "-n", "1000", &bad]);
        assert!(
            code == 0 || err.contains("offset"),
            "byte {n}: {code} {err}"
        );
    }
}

#[test]
fn what_cannot_be_converted_is_refused_with_what_is_allowed() {
    let folder = Folder::new("refused");
    let out = folder.path("out.pbr");
    ok(&["trace", "convert", &samples()[0], &out]);
    let again = folder.path("again.pbr");
    let Ran(code, _, err) = piebald(&["trace", "convert", &out, &again]);
    assert!(code == 2 && err.contains("a recording already"), "{err}");
    let Ran(code, _, err) = piebald(&["trace", "regions", &samples()[0]]);
    assert!(code == 2 && err.contains("no recording"), "{err}");
    let Ran(code, _, err) = piebald(&["trace", "convert", &folder.path("none"), &again]);
    assert!(code == 2 && err.contains("none"), "{err}");
    let Ran(code, _, err) = piebald(&["trace", "regions", &out, "--check", "pdp11"]);
    assert!(code == 2 && err.contains("w3540"), "{err}");
    let Ran(code, _, err) = piebald(&["trace", "regions", &out, "--check", "w3540"]);
    assert!(code == 2 && err.contains("less than one interval"), "{err}");
}

#[test]
fn regions_tell_two_phases_apart_and_their_error() {
    let folder = Folder::new("regions");
    let (input, out) = (
        folder.write("long.lackey", long_trace()),
        folder.path("long.pbr"),
    );
    ok(&["trace", "convert", &input, &out]);
    let regions = ["trace", "regions", &out, "--interval", "10k", "--json"];
    let json: serde_json::Value = serde_json::from_str(&ok(&regions)).expect("JSON");
    let thread = &json["threads"][0];
    assert_eq!(thread["intervals"], 12);
    let chosen = thread["regions"].as_array().expect("regions");
    assert_eq!(chosen.len(), 2, "{json}");
    assert!(
        chosen
            .iter()
            .all(|r| (r["weight"].as_f64().unwrap_or(0.0) - 0.5).abs() < 0.01)
    );
    let mut words = regions.to_vec();
    words.extend(["--check", "x5355"]);
    let json: serde_json::Value = serde_json::from_str(&ok(&words)).expect("JSON");
    assert_eq!(
        json["check"]["whole"]["refs"].as_u64().map(|n| n / 1000),
        Some(60)
    );
    assert!(json["check"]["cpi_error"].as_f64().is_some(), "{json}");
    let out = ok(&words[..4]
        .iter()
        .copied()
        .chain(["10k"])
        .chain(["--check", "x5355"])
        .collect::<Vec<_>>());
    assert!(out.contains("error of the regions: CPI"), "{out}");
}

#[test]
fn a_folder_of_threads_converts_but_has_no_checked_regions() {
    let folder = Folder::new("threads");
    fs::create_dir(folder.0.join("in")).expect("a folder");
    for n in 0..2 {
        folder.write(&format!("in/{n}.trace"), long_trace());
    }
    let out = folder.path("two.pbr");
    let said = ok(&["trace", "convert", &folder.path("in"), &out]);
    assert!(said.contains("of 2 threads"), "{said}");
    let Ran(code, _, err) = piebald(&[
        "trace",
        "regions",
        &out,
        "--check",
        "x5355",
        "--interval",
        "10k",
    ]);
    assert!(code == 2 && err.contains("2 threads; allowed"), "{err}");
}

/// A study of one program with this input.
fn study(folder: &Folder, input: &str) -> Ran {
    let text = format!(
        "schema = 1\nrepetitions = 1\nbudget_refs = \"100k\"\n[machine]\npreset = \"x5355\"\n\
         memory = \"64MiB\"\n[[program]]\nname = \"p\"\n{input}\ncores = \"0\"\n\
         [[policy]]\nname = \"stock\"\nmemory = \"fresh\"\n"
    );
    let scenario = folder.write("s.toml", text);
    piebald(&["study", "-q", &scenario, "--json", "-"])
}

#[test]
fn a_trace_is_a_program_of_a_study() {
    let folder = Folder::new("study");
    folder.write("long.lackey", long_trace());
    let Ran(code, out, err) = study(&folder, "trace = \"long.lackey\"");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("p: the trace holds 60000 references"), "{out}");
    assert!(out.contains("long.lackey (lackey)"), "{out}");
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["complete"], true);
}

#[test]
fn regions_stand_for_a_recording_of_a_study() {
    let folder = Folder::new("study-regions");
    let input = folder.write("long.lackey", long_trace());
    ok(&["trace", "convert", &input, &folder.path("long.pbr")]);
    let program = "recording = \"long.pbr\"\nregions = { interval = \"10k\", check = true }";
    let Ran(code, out, err) = study(&folder, program);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let program = &json["policies"][0]["programs"][0];
    let set = &program["regions"];
    assert_eq!(set["regions"].as_array().map(Vec::len), Some(2), "{set}");
    assert_eq!(set["interval"], 10_000);
    assert_eq!(set["check"]["whole_refs"], 60_000);
    let error = set["check"]["cpi_error"].as_f64().expect("an error");
    assert!(error.abs() < 0.1, "{error}");
    // All that the regions stand for, though two of twelve intervals were measured.
    let refs = program["alone"]["refs"]["mean"]
        .as_f64()
        .expect("references");
    assert!((refs / 60_000.0 - 1.0).abs() < 0.02, "{refs}");
    assert!(
        out.contains("p: 2 regions of 0.010 million instructions stand for"),
        "{out}"
    );
}

#[test]
fn threads_and_traces_have_no_regions_in_a_study() {
    let folder = Folder::new("study-no-regions");
    fs::create_dir(folder.0.join("in")).expect("a folder");
    for n in 0..2 {
        folder.write(&format!("in/{n}.trace"), long_trace());
    }
    ok(&[
        "trace",
        "convert",
        &folder.path("in"),
        &folder.path("two.pbr"),
    ]);
    for (input, parts) in [
        (
            "recording = \"two.pbr\"\nregions = 2",
            ["\"p\": regions: ", "2 threads; allowed"],
        ),
        (
            "trace = \"in\"\nregions = 2",
            ["program[0].regions", "trace convert"],
        ),
    ] {
        let Ran(code, _, err) = study(&folder, input);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("s.toml:"), "{err}");
        for part in parts {
            assert!(err.contains(part), "{err}");
        }
    }
}

#[test]
fn a_filtered_trace_is_warned_about() {
    let folder = Folder::new("filtered");
    let text: String = (0..1000).map(|i| format!("{:#x} R\n", i * 64)).collect();
    folder.write("d.trace", text);
    let Ran(code, out, err) = study(&folder, "trace = \"d.trace\"\nformat = \"ramulator-dram\"");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("caches filter it twice"), "{out}");
    assert!(out.contains("no instruction counts"), "{out}");
}

#[test]
fn a_wrong_trace_of_a_study_is_refused_with_its_line() {
    let folder = Folder::new("wrong");
    for (input, says) in [
        ("trace = \"none.lackey\"", "none.lackey"),
        ("trace = \"x\"\nformat = \"elf\"", "\"lackey\""),
        ("trace = \"x\"\nbuiltin = \"scan:1MiB\"", "exactly one of"),
        (
            "builtin = \"scan:1MiB\"\nformat = \"lackey\"",
            "only a trace",
        ),
    ] {
        let Ran(code, _, err) = study(&folder, input);
        assert_eq!(code, 2, "{input}: {err}");
        assert!(
            err.contains(says) && err.contains("s.toml:"),
            "{input}: {err}"
        );
    }
}

/// Wherever the fault lies, the input is not what it has to be.
#[test]
fn a_wrong_record_ends_every_verb_with_2() {
    let folder = Folder::new("late");
    let mut text: String = (1..=100).map(|n| format!("0x{n}00 R\n")).collect();
    text += "0x10 Q\n";
    let (late, out) = (folder.write("late.trace", text), folder.path("out.pbr"));
    for words in [
        &["trace", "info", &late][..],
        &["trace", "head", "-n", "200", &late],
        &["trace", "convert", &late, &out],
    ] {
        let Ran(code, _, err) = piebald(words);
        assert!(
            code == 2 && err.contains("line 101"),
            "{words:?}: {code} {err}"
        );
    }
    assert!(!Path::new(&out).exists(), "nothing is half-written");
}
