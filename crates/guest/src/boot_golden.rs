//! What is made of a guest file as text: the script of each boot and QEMU's arguments. They do not
//! depend on how the file is read, so they are kept in `tests/boots.txt`.

use std::fmt::Write as _;

use piebald_experiment::Document;

use super::*;

/// Files of version 1, as they were published.
const PUBLISHED: [&str; 3] = ["guest", "guest-module", "guest-srm"];

/// As [`PUBLISHED`], the files of today, which say the same.
fn of_today(name: &str) -> Scenario {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(format!("scenarios/{name}.toml"));
    Scenario::read(&path).unwrap_or_else(|e| panic!("{e}"))
}

/// What the published files have not.
const OTHERS: &str = r#"
schema = 1
repetitions = 2
seed = 11
[machine]
preset = "x5355"
[guest]
memory = "512MiB"
vcpus = 3
timeout = 60
append = "transparent_hugepage=never"
scratch = "64MiB"
[[file]]
name = "a.1"
size = "8KiB"
seed = 3
[[tree]]
from = "star"
to = "/scratch/star"
[[tree]]
from = "/usr/share/with"
to = "/usr/share/with"
[[program]]
name = "walk"
command = ["walk", "1048576", "1000"]
vcpu = 1
needs = ["/usr/bin/env"]
[[program]]
name = "scan"
command = ["scan", "/data/a.1", "it's"]
vcpu = 0
role = "polluter"
[[program]]
name = "again"
command = ["sh", "-c", "exit 0"]
vcpu = 2
role = "polluter"
[[policy]]
name = "stock"
[[policy]]
name = "module alone"
module = "piebald.ko"
map = ["15", "16 21"]
[[policy]]
name = "owned"
module = "piebald.ko"
map = ["15", "16"]
colors = { walk = "0-1 hard", scan = "25%", again = "2-3" }
[[policy]]
name = "owned and SRM"
module = "piebald.ko"
map = ["15", "16"]
colors = { walk = "0" }
srm = true
threshold = 256
[[policy]]
name = "SRM"
module = "other.ko"
map = ["15", "16"]
srm = true
"#;

/// Tools that have prepared nothing.
fn tools(scenario: &Scenario) -> Tools {
    let mut tools = Tools {
        folder: tempfile::tempdir().expect("a folder"),
        emulator: Emulator {
            qemu: "qemu".into(),
            plugin: "plugin.so".into(),
            api: 4,
        },
        image: None,
        found: vec![("grep".into(), "/usr/bin/grep".into())],
    };
    if !scenario.experiment.file.is_empty() {
        tools.image = Some(tools.path("data.img"));
    }
    tools
}

/// Everything that the boots of a scenario are given.
fn boots(text: &mut String, name: &str, scenario: &Scenario) {
    let tools = tools(scenario);
    let scratch = (scenario.scratch() > 0).then(|| tools.path(SCRATCH));
    let resolved = tools.resolved(scenario);
    for policy in scenario.policies() {
        let _ = writeln!(text, "== {name}, {}", policy.name);
        let packed = Packed {
            tools: &tools,
            scenario,
            own: tempfile::tempdir().expect("a folder"),
        };
        let mut words = tools.contents(scenario, policy);
        words.extend(packed.words().into_iter().map(OsString::from));
        words.extend(packed.disks(scratch.as_deref()));
        words.push(tools.plugin_argument(scenario, Path::new("results.json")));
        for word in &words {
            let folder = tools.folder.path().display().to_string();
            let word = word.display().to_string().replace(&folder, "FOLDER");
            let _ = writeln!(text, "{word}");
        }
        for &together in scenario.phases() {
            for repetition in 0..scenario.repetitions() {
                let _ = writeln!(text, "-- together: {together}, repetition {repetition}");
                *text += &script::script(&resolved, policy, together, repetition);
            }
        }
    }
}

#[test]
fn scripts_and_arguments_of_guest_files_are_those_that_are_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut made = String::new();
    for name in PUBLISHED {
        let path = root.join(format!("testdata/fixtures/v1/scenarios/{name}.toml"));
        let text = std::fs::read_to_string(path).expect("is there");
        let scenario = Scenario::parse(&text, Path::new("there/guest.toml"));
        let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
        boots(&mut made, name, &scenario);
    }
    let others = Scenario::parse(OTHERS, Path::new("there/guest.toml"));
    boots(
        &mut made,
        "others",
        &others.unwrap_or_else(|e| panic!("{e}")),
    );
    let kept = root.join("crates/guest/tests/boots.txt");
    if std::env::var("PIEBALD_BLESS").as_deref() == Ok("1") {
        std::fs::write(&kept, &made).expect("is written");
    }
    let kept = std::fs::read_to_string(&kept).expect("is there");
    let pairs = made.lines().zip(kept.lines());
    let differs = pairs.clone().find(|(made, kept)| made != kept);
    assert_eq!(differs, None, "made, kept");
    assert_eq!(made.len(), kept.len());
}

#[test]
fn rewritten_files_and_those_of_today_lead_to_the_same_boots() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| {
        let path = root.join(format!("testdata/fixtures/v1/scenarios/{name}.toml"));
        std::fs::read_to_string(path).expect("is there")
    };
    let of = |scenario: &Scenario| {
        let mut text = String::new();
        boots(&mut text, "", scenario);
        text
    };
    let published = PUBLISHED.map(|name| (name, read(name)));
    let others = [("others", OTHERS.to_owned())];
    for (name, text) in published.into_iter().chain(others) {
        let path = Path::new("there/guest.toml");
        let old = Scenario::parse(&text, path).unwrap_or_else(|e| panic!("{e}"));
        let new = Document::new(path, text).upgraded();
        let new = new
            .unwrap_or_else(|e| panic!("{e}"))
            .expect("is of schema 1");
        let new = Scenario::parse(&new, path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(of(&new), of(&old), "{name}");
        if name != "others" {
            let module =
                |text: String| text.replace(&root.join("scenarios").display().to_string(), "there");
            assert_eq!(module(of(&of_today(name))), of(&old), "{name}, of today");
        }
    }
}
