//! Files as earlier versions of the program read and wrote them, against today's program.
//!
//! `testdata/fixtures/vN` holds scenarios, machines, disks, a recording and one JSON output of
//! every verb that writes some. These files never change. What a user has written must still be
//! read, and what reads our JSON must still find its keys: a form may only change with its
//! schema number, and then a fixture of the new form stands beside the old one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use piebald_hw::{Machine, Options, disk, presets};
use piebald_lab::scenario::{Input, Scenario};
use piebald_qemu::system::results::Results;
use piebald_report::{Reproduction, from_json, replay_from_json, replay_to_json, to_json};
use piebald_trace::recording::Recording;
use piebald_workload::Builtin;
use serde_json::Value;

/// Keys below which names and entries are data: counters of a module, fields of a trace, and
/// what the kernel of this computer has not.
const DATA: [&str; 4] = [
    ".counters",
    ".missing_counters",
    ".module.unsupported",
    ".skipped.by_field",
];

/// Keys of earlier forms that say less than what replaced them: a curve's checks.
const REPLACED: [&str; 1] = [".curves[].largest_error"];

/// Every folder `vN`, the oldest first.
fn versions() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures");
    let number = |path: &Path| -> Option<u32> {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix('v')?.parse().ok()
    };
    let mut found: Vec<PathBuf> = files(&all);
    found.retain(|path| path.is_dir());
    found.sort_by_key(|path| number(path).unwrap_or_else(|| panic!("{}: no vN", path.display())));
    assert!(!found.is_empty(), "no fixtures at all");
    found
}

/// What a folder holds, sorted; nothing if it is not there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    found.sort();
    found
}

/// All files of a folder of all versions whose names begin so; at least `least`.
fn fixtures(folder: &str, prefix: &str, least: usize) -> Vec<PathBuf> {
    let all = versions().into_iter().flat_map(|v| files(&v.join(folder)));
    let found: Vec<PathBuf> = all.filter(|f| name(f).starts_with(prefix)).collect();
    assert!(found.len() >= least, "{folder}/{prefix}*: {found:?}");
    found
}

fn name(path: &Path) -> String {
    let name = path.file_name().expect("a name");
    name.to_string_lossy().into_owned()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&text(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Fails with all defects at once.
fn none(defects: &[String]) {
    assert!(defects.is_empty(), "\n{}", defects.join("\n"));
}

#[test]
fn scenarios_of_studies_are_still_read() {
    let mut with_recordings = 0;
    let mut all = fixtures("scenarios", "", 14);
    all.extend(fixtures("inputs", "", 6));
    all.retain(|path| {
        path.extension().is_some_and(|e| e == "toml") && !name(path).starts_with("guest")
    });
    assert!(all.len() >= 17, "{all:?}");
    for path in all {
        let scenario = Scenario::read(&path).unwrap_or_else(|e| panic!("{e}"));
        for program in &scenario.programs {
            if let Input::Builtin(words) = &program.input {
                Builtin::parse(words).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            }
        }
        // Recordings are not kept: that they are missing is all that may be wrong.
        if let Some(Input::Recording(recording)) = scenario.programs.first().map(|p| &p.input) {
            with_recordings += 1;
            let recorder = |_: &[String], _: u64| panic!("{}: no command", path.display());
            let error = piebald_lab::prepare(&scenario, &recorder)
                .err()
                .expect("it is missing");
            let said = error.to_string();
            let missing = format!("{}: No such file", recording.display());
            assert!(said.contains(&missing), "{said}");
        }
    }
    assert!(with_recordings > 0, "no scenario has a recording");
}

#[test]
fn scenarios_of_guests_are_still_read() {
    for path in fixtures("scenarios", "guest", 3) {
        let scenario = piebald_guest::Scenario::read(&path).unwrap_or_else(|e| panic!("{e}"));
        assert!(!scenario.policies().is_empty(), "{}", path.display());
    }
}

#[test]
fn machines_and_disks_can_still_be_built() {
    for path in fixtures("machines", "", 9) {
        let file = path.display().to_string();
        let spec = presets::parse(&text(&path), &file).unwrap_or_else(|e| panic!("{e}"));
        let built = Machine::new(&spec, &Options::default());
        assert!(built.is_ok(), "{file}: {:?}", built.err());
    }
    for path in fixtures("disks", "", 9) {
        let file = path.display().to_string();
        let spec = disk::parse(&text(&path), &file).unwrap_or_else(|e| panic!("{e}"));
        let built = disk::Disk::new(&spec);
        assert!(built.is_ok(), "{file}: {:?}", built.err());
    }
}

#[test]
fn recordings_are_still_read() {
    for path in fixtures("inputs", "chase.pbr", 1) {
        let recording = Recording::open(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(recording.header().counts.references, 18);
    }
}

/// What is read and written again has all keys that the file has: a key that was renamed would
/// be ignored when it is read.
fn keeps_keys(path: &Path, again: &str) -> Vec<String> {
    let again: Value = serde_json::from_str(again).expect("JSON");
    let (old, new) = (keys(&json(path)), keys(&again));
    let lost = old.keys().filter(|key| !new.contains_key(*key));
    let lost = lost.filter(|key| !REPLACED.contains(&key.as_str()));
    lost.map(|key| format!("{}: {key} is not read", path.display()))
        .collect()
}

#[test]
fn results_are_still_read_without_a_loss() {
    let mut defects = Vec::new();
    for path in fixtures("json", "study-", 7) {
        let study = from_json(&text(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        defects.extend(keeps_keys(&path, &to_json(&study).expect("JSON")));
    }
    for path in fixtures("json", "replay-", 3) {
        let read = replay_from_json(&text(&path));
        let replay = read.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        defects.extend(keeps_keys(&path, &replay_to_json(&replay).expect("JSON")));
    }
    for path in fixtures("json", "reproduce-", 2) {
        let read: Result<Reproduction, _> = serde_json::from_str(&text(&path));
        let read = read.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        defects.extend(keeps_keys(
            &path,
            &serde_json::to_string(&read).expect("JSON"),
        ));
    }
    for path in fixtures("inputs", "plugin-results.json", 1) {
        let read = Results::read(&path).unwrap_or_else(|e| panic!("{e}"));
        defects.extend(keeps_keys(
            &path,
            &serde_json::to_string(&read).expect("JSON"),
        ));
    }
    none(&defects);
}

/// A line of `commands.txt`.
struct Made {
    /// The test makes it anew.
    again: bool,
    file: String,
    env: Vec<(String, String)>,
    args: Vec<String>,
}

fn commands(version: &Path) -> Vec<Made> {
    let text = text(&version.join("commands.txt"));
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let read = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned).peekable();
        let again = match words.next().as_deref() {
            Some("again") => true,
            Some("once") => false,
            other => panic!("{other:?} in \"{line}\"; allowed: again, once"),
        };
        let file = words.next().expect("a file");
        let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        let mut env = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|w| w.split_once('='))
            && is_name(name)
        {
            env.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let args = words.collect();
        Made {
            again,
            file,
            env,
            args,
        }
    };
    lines.map(read).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for path in files(from) {
        let to = to.join(name(&path));
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(&path, to).expect("copied")),
        }
    }
}

/// What today's program writes for a command, in a folder that has the fixtures' inputs.
fn made(command: &Made, folder: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(&command.args)
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{}: {e}: {said}", command.file)
    })
}

/// Every path of keys, `.policies[].name`, with the kinds of its values; `null` is no kind.
fn keys(value: &Value) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut found = BTreeMap::new();
    gather(value, "", &mut found);
    found
}

fn gather(value: &Value, path: &str, found: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kinds = found.entry(path.to_owned()).or_default();
    kinds.extend(match value {
        Value::Null => None,
        Value::Bool(_) => Some("a truth value"),
        Value::Number(_) => Some("a number"),
        Value::String(_) => Some("a text"),
        Value::Array(_) => Some("a list"),
        Value::Object(_) => Some("an object"),
    });
    if DATA.contains(&path) {
        return;
    }
    match value {
        Value::Array(list) => list
            .iter()
            .for_each(|v| gather(v, &format!("{path}[]"), found)),
        Value::Object(map) => {
            (map.iter()).for_each(|(key, v)| gather(v, &format!("{path}.{key}"), found));
        }
        _ => {}
    }
}

/// What readers of a fixture no longer find as it was in today's output.
fn losses(old: &Value, new: &Value) -> Vec<String> {
    let (old, new) = (keys(old), keys(new));
    let list = |kinds: &BTreeSet<&str>| kinds.iter().copied().collect::<Vec<_>>().join(" or ");
    let lost = old.iter().filter_map(|(key, kinds)| match new.get(key) {
        None => Some(format!("{key} is gone")),
        Some(now) if kinds.is_empty() || now.is_empty() || kinds == now => None,
        Some(now) => Some(format!("{key} was {} and is {}", list(kinds), list(now))),
    });
    let advice = "only with another schema number";
    lost.map(|what| format!("{what}: {advice}")).collect()
}

/// What is wrong with today's output beside a fixture; `newer`: fixtures of the same name in
/// later folders. A new key needs no new schema number, but a fixture that has it.
fn judged(old: &Value, new: &Value, newer: &[Value]) -> Vec<String> {
    let schema = |of: &Value| of["schema"].as_u64();
    let advice = "leave this file as it is, and add one of the new form beside it, in the next \
                  folder vN, with its line in that folder's commands.txt";
    let is_told = newer.iter().any(|newer| schema(newer) == schema(new));
    if schema(old) != schema(new) {
        let shown = |of| schema(of).map_or("none".to_owned(), |n| n.to_string());
        let (was, is) = (shown(old), shown(new));
        let risen = format!("the schema number was {was} and is {is}: {advice}");
        return if is_told { Vec::new() } else { vec![risen] };
    }
    let mut found = losses(old, new);
    let known = keys(old);
    let added = keys(new).into_keys().filter(|key| !known.contains_key(key));
    let added = added.map(|key| format!("{key} is new: {advice}"));
    found.extend(added.filter(|_| !is_told));
    found
}

#[test]
fn json_has_the_keys_that_it_had() {
    let all = versions();
    let mut defects = Vec::new();
    let mut seen = 0;
    for (at, version) in all.iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        copy(&version.join("inputs"), &folder.path().join("inputs"));
        for command in commands(version).iter().filter(|c| c.again) {
            let path = version.join("json").join(&command.file);
            let later = all[at + 1..]
                .iter()
                .map(|v| v.join("json").join(&command.file));
            let newer: Vec<Value> = later.filter(|p| p.exists()).map(|p| json(&p)).collect();
            let found = judged(&json(&path), &made(command, folder.path()), &newer);
            let file = format!("{}/{}", name(version), command.file);
            defects.extend(found.iter().map(|what| format!("{file}: {what}")));
            seen += 1;
        }
    }
    assert!(seen >= 18, "only {seen} commands are run again");
    none(&defects);
}

#[test]
fn every_fixture_says_what_made_it() {
    for version in versions() {
        let mut told: Vec<String> = commands(&version).into_iter().map(|c| c.file).collect();
        told.sort();
        let there: Vec<String> = files(&version.join("json"))
            .iter()
            .map(|f| name(f))
            .collect();
        assert_eq!(told, there, "{}", version.display());
        assert!(version.join("README.md").exists(), "{}", version.display());
    }
}

/// The help of a verb.
fn help(verb: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(verb)
        .arg("--help")
        .output()
        .expect("starts");
    String::from_utf8(output.stdout).expect("text")
}

/// The verbs below one, itself if there are none, which its help lists under "Commands:".
fn verbs(verb: &[String]) -> Vec<Vec<String>> {
    let help = help(verb);
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    // Continuation lines are indented further.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    let below = names.flat_map(|name| verbs(&[verb, &[name.to_owned()]].concat()));
    let mut found: Vec<Vec<String>> = below.collect();
    if help.contains("--json") {
        found.push(verb.to_vec());
    }
    found
}

#[test]
fn every_verb_that_writes_json_has_a_fixture() {
    let all = versions().into_iter().flat_map(|v| commands(&v));
    let made: Vec<Vec<String>> = all.map(|command| command.args).collect();
    let found = verbs(&[]);
    assert!(found.len() >= 20, "{found:?}");
    // They take a module out of the kernel, or put it in.
    let without = found
        .into_iter()
        .filter(|verb| !matches!(verb.join(" ").as_str(), "unload" | "hardware-report"));
    let missing = without.filter(|verb| !made.iter().any(|args| args.starts_with(verb)));
    let missing: Vec<String> = missing.map(|verb| verb.join(" ")).collect();
    none(&missing);
}

#[test]
fn a_form_that_changes_is_found() {
    let old = serde_json::json!({
        "schema": 1, "name": "a", "runs": [{ "hits": 1, "rate": null }], "counters": { "x": 1 }
    });
    let with = |change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        judged(&old, &new, &[]).join("; ")
    };
    assert_eq!(with(&|_| ()), "");
    // Numbers that come to be known and names that are data are no change of the form.
    assert_eq!(with(&|v| v["runs"][0]["rate"] = 0.5.into()), "");
    assert_eq!(with(&|v| v["counters"]["y"] = 1.into()), "");
    let run = |v: &mut Value| v["runs"][0].as_object_mut().expect("an object").clone();
    let renamed = with(&|v| {
        let hits = run(v)["hits"].clone();
        v["runs"][0] = serde_json::json!({ "found": hits, "rate": null });
    });
    for part in [".runs[].hits is gone", ".runs[].found is new"] {
        assert!(renamed.contains(part), "{renamed}");
    }
    let text = with(&|v| v["runs"][0]["hits"] = "1".into());
    assert!(
        text.starts_with(".runs[].hits was a number and is a text"),
        "{text}"
    );
    let risen = |v: &mut Value| v["schema"] = 2.into();
    let said = with(&risen);
    assert!(
        said.starts_with("the schema number was 1 and is 2: leave"),
        "{said}"
    );
    let mut new = old.clone();
    risen(&mut new);
    assert!(judged(&old, &new, std::slice::from_ref(&new)).is_empty());
    // A key that is only added stands in a newer fixture of the same schema number.
    let mut new = old.clone();
    new["misses"] = 1.into();
    assert!(judged(&old, &new, &[])[0].starts_with(".misses is new: leave"));
    assert!(judged(&old, &new, std::slice::from_ref(&new)).is_empty());
    assert!(judged(&new, &old, &[])[0].starts_with(".misses is gone"));
}
