//! Scenarios that can be run, and what is said of others.

use super::*;

const GOOD: &str = r#"
schema = 1
[machine]
preset = "w3540"
[[file]]
name = "text"
size = "24MiB"
[[program]]
name = "sort"
command = ["mergesort", "1000", "1"]
vcpu = 0
measure = "marks"
[[program]]
name = "grep"
command = ["grep", "-c", "marmalade", "/data/text"]
vcpu = 1
role = "polluter"
[[policy]]
name = "stock"
[[policy]]
name = "one color"
module = "piebald.ko"
map = ["15", "16"]
colors = { grep = "0" }
"#;

#[test]
fn a_good_scenario_is_read_with_its_defaults() {
    let scenario = Scenario::parse(GOOD, Path::new("there/guest.toml")).expect("is good");
    assert_eq!(scenario.memory(), 1 << 30);
    assert_eq!((scenario.vcpus(), scenario.repetitions()), (2, 1));
    assert_eq!(scenario.target().name(), "sort");
    assert_eq!(scenario.target().measure, Some(Measure::Marks));
    let polluters: Vec<_> = scenario.polluters().map(Program::name).collect();
    assert_eq!(polluters, ["grep"]);
    let module = scenario.module(&scenario.policies()[1]);
    assert_eq!(module.as_deref(), Some(Path::new("there/piebald.ko")));
    assert_eq!(scenario.experiment.file[0].size.0.0, 24 << 20);
}

#[test]
fn it_is_said_what_is_run_alone_and_what_together() {
    let of = |text: &str| Scenario::parse(text, Path::new("guest.toml")).map(|s| s.phases());
    assert_eq!(of(GOOD), Ok(&[false, true][..]));
    let without = GOOD.replacen("schema = 1", "schema = 1\nalone = false", 1);
    assert_eq!(of(&without), Ok(&[true][..]));
    let (before, rest) = without
        .split_once("[[program]]\nname = \"grep\"")
        .expect("is there");
    let (_, after) = rest.split_once("[[policy]]").expect("is there");
    let single = format!("{before}[[policy]]{after}").replace("colors = { grep = \"0\" }", "");
    let said = of(&single).expect_err("nothing is run").to_string();
    assert!(said.contains("alone = false: allowed: true"), "{said}");
    assert_eq!(of(&single.replace("alone = false", "")), Ok(&[false][..]));
}

const TREES: &str = r#"
[guest]
scratch = "64MiB"
[[tree]]
from = "star"
to = "/scratch/star"
[[tree]]
from = "/usr/share/postgresql"
to = "/usr/share/postgresql"
[[file]]"#;

#[test]
fn directories_are_on_the_disk_or_in_memory() {
    let text = GOOD.replacen("[[file]]", TREES, 1);
    let text = text.replacen("vcpu = 0", "vcpu = 0\nneeds = [\"/bin/true\"]", 1);
    let scenario = Scenario::parse(&text, Path::new("there/guest.toml")).expect("is good");
    let [disk, memory] = &scenario.experiment.tree[..] else {
        panic!("{:?}", scenario.experiment.tree);
    };
    assert_eq!(disk.from, Path::new("star"));
    assert_eq!((disk.on_disk(), memory.on_disk()), (Some("star"), None));
    assert_eq!(memory.from, Path::new("/usr/share/postgresql"));
    assert_eq!(scenario.experiment.program[0].needs, ["/bin/true"]);
    for (from, to, said) in [
        (
            "scratch = \"64MiB\"",
            "",
            "tree[0].to = \"/scratch/star\": allowed: /scratch/NAME, with",
        ),
        (
            "/scratch/star",
            "/scratch/a/b",
            "tree[0].to = \"/scratch/a/b\"",
        ),
        ("/scratch/star", "/scratch/..", "tree[0].to"),
        ("/scratch/star", "/data/star", "tree[0].to"),
        ("/scratch/star", "/opt//star", "tree[0].to"),
        (
            "/scratch/star",
            "/usr/share/postgresql/15",
            "tree[1].to = \"/usr/share/postgresql\": allowed: no directory inside another",
        ),
        ("to = \"/scratch/star\"", "", "missing field `to`"),
        (
            "/bin/true",
            "true",
            "program[0].needs = [\"true\"]: allowed: absolute",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        let error = Scenario::parse(&changed, Path::new("guest.toml"))
            .expect_err(to)
            .to_string();
        assert!(error.contains(said), "{from} -> {to}: {error}");
    }
}

#[test]
fn what_cannot_be_run_is_named_with_what_is_allowed() {
    for (from, to, said) in [
        (
            "schema = 1",
            "schema = 3",
            "guest.toml:2: schema = 3: allowed: 1 to 2",
        ),
        (
            "w3540",
            "pdp11",
            "guest.toml:4: machine.preset = \"pdp11\": allowed: ",
        ),
        (
            "preset = \"w3540\"",
            "",
            "machine: give either preset or file",
        ),
        ("24MiB", "24 pounds", "file[0].size = \"24 pounds\""),
        ("24MiB", "1B", "file[0].size = 1B: allowed: 4KiB or more"),
        ("name = \"text\"", "name = \"../text\"", "file[0].name"),
        (
            "vcpu = 1",
            "vcpu = 2",
            "guest.toml:16: program[1].vcpu = 2: allowed: 0 to 1 (guest.vcpus - 1)",
        ),
        (
            "\"polluter\"",
            "\"target\"",
            "program: 2 targets; allowed: exactly one",
        ),
        ("\"mergesort\"", "\"./mergesort\"", "program[0].command"),
        (
            "\"marks\"",
            "\"all\"",
            "guest.toml:12: program[0].measure = \"all\": allowed: \"second-run\", \"marks\"",
        ),
        (
            "role =",
            "measure = \"marks\"\nrole =",
            "program[1].measure",
        ),
        ("name = \"one color\"", "name = \"stock\"", "policy[1].name"),
        (
            "grep = \"0\"",
            "grip = \"0\"",
            "policy[1].colors.grip: no program has this name: allowed: sort, grep",
        ),
        ("grep = \"0\"", "grep = \"$(reboot)\"", "policy[1].colors"),
        (
            "module = \"piebald.ko\"",
            "",
            "policy[1].colors: allowed with a module only",
        ),
        ("map = [\"15\", \"16\"]", "", "policy[1]: needs color_map"),
        (
            "name = \"stock\"",
            "name = \"stock\"\nsrm = true",
            "policy[0].srm = true: allowed: false without a module",
        ),
        (
            "schema = 1",
            "schema = 1\nrepetitions = 0",
            "repetitions = 0",
        ),
        (
            "schema = 1",
            "schema = 1\ncolour = 0",
            "guest.toml:3: colour: unknown field",
        ),
        (
            "[[file]]",
            "[guest]\nmemory = \"3GiB\"\n[[file]]",
            "guest.memory = 3GiB",
        ),
        (
            "[[file]]",
            "[guest]\nscratch = \"1MiB\"\n[[file]]",
            "guest.scratch = 1MiB: allowed: 16MiB to 1GiB",
        ),
        (
            "[[file]]",
            "[guest]\nvcpus = 5\n[[file]]",
            "guest.vcpus = 5: allowed: 1 to 4",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let error = Scenario::parse(&text, Path::new("guest.toml"))
            .expect_err(to)
            .to_string();
        assert!(error.contains(said), "{from} -> {to}: {error}");
    }
}
