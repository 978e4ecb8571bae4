//! Damaged recordings, and files that are something else than the verb takes.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use piebald_trace::recording::{
    ChunkEncoder, FileHeader, MemoryWriter, encode_dictionary,
    model::{AccessDef, AccessKind, BlockDef, Raw, Sources},
};
use serde_json::Value;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn start(folder: &Path, mut command: Command, input: &str) -> Ran {
    command.current_dir(folder).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    // A verb that refuses its command line does not read.
    let _ = child
        .stdin
        .take()
        .expect("piped")
        .write_all(input.as_bytes());
    let output = child.wait_with_output().expect("ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    Ran {
        code: output.status.code().expect("no signal"),
        out,
        err,
    }
}

fn run(folder: &Path, words: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_piebald"));
    command.args(words.split_whitespace());
    start(folder, command, "")
}

/// References of a chunk of [`recording`].
const CHUNK: u64 = 3000;

/// A recording of ten chunks, whose addresses hardly can be packed.
fn recording() -> Vec<u8> {
    let load = AccessDef {
        insn: 0,
        offset: 0,
        size: 8,
        kind: AccessKind::Load,
        address: Sources::default(),
    };
    let dictionary = vec![BlockDef {
        addr: 0x40_1000,
        bytes: 12,
        instrs: 3,
        accesses: vec![load],
        outs: vec![],
    }];
    let mut writer = MemoryWriter::new(FileHeader::new(vec!["random".into()]));
    let done = encode_dictionary(0, None, 0, &dictionary, writer.records());
    done.expect("a dictionary");
    let mut encoder = ChunkEncoder::new(0, 0, 1, 1).expect("an encoder");
    let mut state = 1u64;
    let mut address = || {
        // Knuth's generator of MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        0x1000_0000 + (state >> 40) / 8 * 8
    };
    for _ in 0..10 {
        let raw: Vec<Raw> = (0..CHUNK)
            .flat_map(|_| [Raw::block(0), Raw::access(0, address())])
            .collect();
        let done = encoder.encode(&dictionary, &raw, &[], writer.records());
        done.expect("a chunk");
    }
    writer.finish().expect("a recording")
}

/// A folder with the whole recording, and a scenario that runs `name`.
fn folder(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("whole.pbr"), recording()).expect("written");
    fs::write(folder.path().join("s.toml"), scenario(name)).expect("written");
    folder
}

fn scenario(name: &str) -> String {
    format!(
        "schema = 1\nrepetitions = 1\nbudget_refs = \"5k\"\nwarmup_refs = \"1k\"\n[machine]\n\
         preset = \"w3540\"\nmemory = \"192MiB\"\n[[program]]\nrecording = \"{name}\"\ncores = \"0\"\n"
    )
}

/// The first `share` of the whole recording under another name.
fn cut(folder: &Path, name: &str, share: f64) -> PathBuf {
    let whole = fs::read(folder.join("whole.pbr")).expect("read");
    let kept = (whole.len() as f64 * share) as usize;
    let path = folder.join(name);
    fs::write(&path, &whole[..kept]).expect("written");
    path
}

#[test]
fn the_command_in_the_message_makes_a_recording_that_runs() {
    let name = "it's cut.pbr";
    let folder = folder(name);
    let path = cut(folder.path(), name, 0.7);
    let before = fs::read(&path).expect("read");
    let study = run(folder.path(), "study -q s.toml");
    assert_eq!(study.code, 2, "{}", study.err);
    let command = study.err.split('`').nth(1).expect("a command");
    let rest = command.strip_prefix("piebald ").expect("ours");
    // As it is pasted: through a shell.
    let mut shell = Command::new("sh");
    let line = format!("'{}' {rest}", env!("CARGO_BIN_EXE_piebald"));
    shell.args(["-c", &line]);
    let repaired = start(folder.path(), shell, "");
    assert_eq!(repaired.code, 0, "{line}: {}", repaired.err);
    assert!(repaired.out.contains("lost: in all "), "{}", repaired.out);
    assert_eq!(fs::read(&path).expect("read"), before, "the input is kept");
    let text = scenario("it's cut.repaired.pbr");
    fs::write(folder.path().join("s.toml"), text).expect("written");
    let study = run(folder.path(), "study -q s.toml");
    assert_eq!(study.code, 0, "{}", study.err);
    let all = study.out + &study.err;
    assert!(all.contains("the recording is incomplete"), "{all}");
}

#[test]
fn losses_are_counted_against_what_the_whole_recording_held() {
    let folder = folder("x.pbr");
    let counts = |file: &str| {
        let info = run(folder.path(), &format!("trace info {file} --json"));
        assert_eq!(info.code, 0, "{}", info.err);
        let value: Value = serde_json::from_str(&info.out).expect("JSON");
        assert_eq!(value["schema"], 1);
        (
            value["counts"]["references"].as_u64().expect("a number"),
            value["complete"].clone(),
        )
    };
    let (whole, complete) = counts("whole.pbr");
    assert_eq!(complete, true);
    let mut last = 0;
    for percent in [30, 60, 90] {
        cut(folder.path(), "cut.pbr", f64::from(percent) / 100.0);
        let made = run(folder.path(), "trace repair cut.pbr out.pbr --json");
        assert_eq!(made.code, 0, "{percent} %: {}", made.err);
        let told: Value = serde_json::from_str(&made.out).expect("JSON");
        let (kept, complete) = counts("out.pbr");
        assert_eq!(told["counts"]["references"], kept);
        assert_eq!(complete, false);
        assert!(
            kept < whole && kept > last,
            "{percent} %: {kept} of {whole}"
        );
        let lost = told["lost"].to_string();
        let wanted = format!("in all {} of {whole} references", whole - kept);
        assert!(lost.contains(&wanted), "{lost}");
        last = kept;
    }
    // A recording to which nothing happened is copied.
    let made = run(folder.path(), "trace repair whole.pbr out.pbr");
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.out.contains("nothing was lost"), "{}", made.out);
    assert_eq!(counts("out.pbr"), (whole, true.into()));
}

#[test]
fn a_damaged_chunk_ends_its_thread_and_nothing_is_half_written() {
    let folder = folder("x.pbr");
    let mut bytes = fs::read(folder.path().join("whole.pbr")).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(folder.path().join("bad.pbr"), &bytes).expect("written");
    let made = run(folder.path(), "trace repair bad.pbr out.pbr");
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(
        made.out.contains("bytes that are no whole record"),
        "{}",
        made.out
    );
    fs::write(folder.path().join("s.toml"), scenario("out.pbr")).expect("written");
    assert_eq!(run(folder.path(), "study -q s.toml").code, 0);

    cut(folder.path(), "none.pbr", 0.001);
    for (words, code, part) in [
        (
            "trace repair whole.pbr whole.pbr",
            2,
            "the output is the input",
        ),
        ("trace repair s.toml new.pbr", 2, "no recording"),
        ("trace repair none.pbr new.pbr", 2, "none.pbr"),
        ("trace repair whole.pbr no/new.pbr", 1, "no/new.pbr"),
    ] {
        let made = run(folder.path(), words);
        assert_eq!(made.code, code, "{words}: {}", made.err);
        assert!(made.err.contains(part), "{words}: {}", made.err);
    }
    let names = fs::read_dir(folder.path()).expect("a folder");
    let new = |e: fs::DirEntry| e.file_name().to_string_lossy().starts_with("new.pbr");
    assert!(!names.map(|e| e.expect("an entry")).any(new));
}

#[test]
fn what_is_something_else_is_called_by_its_name() {
    let folder = folder("whole.pbr");
    let requests = "0,303567,3584,w,0.000000\n0,303574,512,r,0.000500\n";
    fs::write(folder.path().join("requests.txt"), requests).expect("a trace");
    for (words, part) in [
        ("study requests.txt", "is a trace (spc), not a scenario"),
        ("study whole.pbr", "is a recording, not a scenario"),
        ("study whole.pbr", "recording = \"whole.pbr\""),
        (
            "replay s.toml",
            "a scenario, not a trace; `piebald study s.toml` runs it",
        ),
        ("trace info s.toml", "a scenario, not a trace"),
        ("trace head s.toml", "a scenario, not a trace"),
        (
            "replay whole.pbr",
            "a recording of a program, not a block or file trace",
        ),
    ] {
        let refused = run(folder.path(), words);
        assert_eq!(refused.code, 2, "{words}: {}", refused.err);
        assert!(refused.err.contains(part), "{words}: {}", refused.err);
        assert_eq!(refused.out, "", "{words}");
    }
}

#[test]
fn a_scenario_and_a_trace_can_come_from_standard_input() {
    let folder = folder("whole.pbr");
    let piebald = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_piebald"));
        command.args(words.split_whitespace());
        command
    };
    let text = scenario("whole.pbr");
    let study = start(folder.path(), piebald("study -q - --json"), &text);
    assert_eq!(study.code, 0, "{}", study.err);
    let value: Value = serde_json::from_str(&study.out).expect("JSON");
    assert_eq!(value["complete"], true);
    let wrong = start(folder.path(), piebald("study -q -"), "schema = 1\nx = 2\n");
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("standard input:2: "), "{}", wrong.err);
    let rows: String = (0..200u64)
        .map(|i| format!("{},h,0,Read,{},8192,5\n", 1000 + i, i * 37 % 90 * 8192))
        .collect();
    let replay = start(
        folder.path(),
        piebald("replay - -q --device none --json"),
        &rows,
    );
    assert_eq!(replay.code, 0, "{}", replay.err);
    serde_json::from_str::<Value>(&replay.out).expect("JSON");
}

#[test]
fn no_text_of_rust_reaches_the_user() {
    let folder = folder("x.pbr");
    cut(folder.path(), "cut.pbr", 0.7);
    for words in [
        "trace head whole.pbr -n 5",
        "trace info --recover cut.pbr",
        "probe --no-measure",
    ] {
        let ran = run(folder.path(), words);
        assert_eq!(ran.code, 0, "{words}: {}", ran.err);
        for debug in ["VirtAddr", "FileId", "Recovered", " { ", "Some(", "Unified"] {
            assert!(!ran.out.contains(debug), "{words}: {debug}: {}", ran.out);
        }
    }
}
