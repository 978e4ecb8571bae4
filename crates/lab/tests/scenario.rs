//! Scenario files: what is refused, and with what words.

use piebald_experiment::{Frames, MemoryState, MissCurves, Refs, RegionRequest, Together, Whole};
use std::{
    env,
    path::{Path, PathBuf},
};

use crate::mutate::{Random, budget, mutated};
use piebald_hw::presets;
use piebald_lab::scenario::{Input, Scenario};
use piebald_report::Role;

const GOOD: &str = r#"schema = 1
title = "Merge sort beside a scan"
seed = 7
repetitions = 2
budget_refs = "50M"
warmup_refs = "1.5M"
together = "each-target"

[machine]
preset = "w3540"
memory = "3GiB"
features = "window,tlb"
disabled_controllers = []
prefetch = true

[output]
set_map = 10
miss_curve = 4

[[program]]
name = "sort"
builtin = "mergesort:1MiB"
cores = "0"
role = "target"

[[program]]
builtin = { name = "scan", size = "64MiB" }
cores = "1-3"
role = "polluter"

[[program]]
recording = "gcc.pbr"
cores = "1"
role = "polluter"

[[program]]
command = ["/bin/true", "x"]
cores = "0-3"
role = "polluter"

[[policy]]
name = "stock"
frames = "stock"
memory = "aged"
thp = true
replace = "none"
files = "none"
reads = "none"

[[policy]]
name = "random"
frames = "random"
memory = "fresh"

[[policy]]
name = "bins"
frames = "bin-hopping"
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, Path::new("folder/s.toml")).map_err(|e| e.to_string())
}

#[test]
fn every_key_is_read() {
    let s = parse(GOOD).expect("good");
    assert_eq!(s.title, "Merge sort beside a scan");
    assert_eq!((s.seed, s.repetitions), (7, 2));
    assert_eq!((s.budget_refs, s.warmup_refs), (50_000_000, 1_500_000));
    assert_eq!(s.together, Together::EachTarget);
    assert_eq!(s.machine.name, "w3540");
    assert_eq!(s.machine.memory.size.0, 3 << 30);
    assert_eq!(s.features.on(), ["window", "tlb", "prefetch"]);
    assert_eq!((s.set_map, s.miss_curve), (10, MissCurves::Timed(4)));
    let names: Vec<&str> = s.programs.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["sort", "scan", "gcc", "true"]);
    let roles = s.programs.iter().filter(|p| p.role == Role::Target).count();
    assert_eq!(roles, 1);
    assert_eq!(
        s.programs[1].input,
        Input::Builtin("scan:size=64MiB".into())
    );
    assert_eq!(
        s.programs[2].input,
        Input::Recording(PathBuf::from("folder/gcc.pbr"))
    );
    // Two programs may share cores.
    assert_eq!(s.programs[3].cores.to_string(), "0-3");
    let stock = &s.policies[0];
    assert_eq!(
        (stock.frames, stock.memory, stock.thp),
        (Frames::Stock, MemoryState::Aged, true)
    );
    assert_eq!(s.policies[1].memory, MemoryState::Fresh);
    assert_eq!(s.policies[2].frames, Frames::BinHopping);
    assert!(!s.policies[2].thp);
}

#[test]
fn references_are_whole_numbers_or_texts() {
    let text = GOOD.replace("\"50M\"", "50_000_000");
    assert_eq!(parse(&text).expect("good").budget_refs, 50_000_000);
}

/// The first file that the reference shows.
#[test]
fn what_a_scenario_file_says_is_read() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, block) = page.split_once("```toml\n").expect("an example");
    let (example, _) = block.split_once("```").expect("its end");
    let read = parse(example).expect("the example");
    assert_eq!(read.policies.len(), 2);
}

#[test]
fn what_is_left_out_has_a_default() {
    let s = parse(
        "schema = 1\n[machine]\npreset = \"zen\"\n[[program]]\nbuiltin = \"chase\"\ncores = \"0\"\n",
    )
    .expect("good");
    assert_eq!(s.title, "s");
    assert_eq!((s.seed, s.repetitions), (42, 3));
    assert_eq!(s.warmup_refs, s.budget_refs / 5);
    assert_eq!(s.programs[0].name, "chase");
    assert_eq!(s.programs[0].role, Role::Target);
    assert_eq!(s.policies.len(), 1);
    assert_eq!(s.features.on().len(), 5);
}

/// Replaces the first occurrence of `old` by `new`; the error must name the file
/// with the line on which `new` begins, and contain all `parts`.
fn refused(old: &str, new: &str, parts: &[&str]) {
    let at = GOOD.find(old).unwrap_or_else(|| panic!("no {old}"));
    let line =
        1 + GOOD[..at].matches('\n').count() + new.len() - new.trim_start_matches('\n').len();
    let error = parse(&GOOD.replacen(old, new, 1)).expect_err(new);
    assert!(
        error.starts_with(&format!("folder/s.toml:{line}: ")),
        "{new}: line {line}: {error}"
    );
    for part in parts {
        assert!(error.contains(part), "{new}: {part}: {error}");
    }
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn unknown_keys_are_refused() {
    refused("seed =", "sead =", &["`sead`", "`seed`"]);
    refused(
        "memory = \"3GiB\"",
        "memry = \"3GiB\"",
        &["`memry`", "`memory`"],
    );
    refused("set_map", "setmap", &["`setmap`", "`set_map`"]);
    refused("role =", "roll =", &["`roll`", "`role`"]);
    refused("thp =", "tph =", &["`tph`", "`thp`"]);
    refused("[output]", "[outputs]", &["`outputs`", "`output`"]);
}

#[test]
fn wrong_types_name_the_key() {
    refused(
        "seed = 7",
        "seed = \"x\"",
        &["seed", "\"x\"", "a whole number"],
    );
    refused("seed = 7", "seed = -7", &["seed = -7", "a whole number"]);
    refused(
        "repetitions = 2",
        "repetitions = 2.5",
        &["repetitions", "2.5", "a whole number"],
    );
    refused(
        "budget_refs = \"50M\"",
        "budget_refs = 50.5",
        &["budget_refs", "50.5", "a number such as"],
    );
    refused(
        "cores = \"0\"",
        "cores = 0",
        &["program[0].cores", "0", "hardware threads such as"],
    );
    refused(
        "thp = true",
        "thp = \"on\"",
        &["policy[0].thp", "on", "true or false"],
    );
    refused(
        "prefetch = true",
        "prefetch = 1",
        &["machine.prefetch", "1", "true or false"],
    );
    refused(
        "set_map = 10",
        "set_map = -1",
        &["output.set_map = -1", "0 to 1000"],
    );
    refused(
        "builtin = \"mergesort:1MiB\"",
        "builtin = 5",
        &["program[0].builtin", "expected text", "triad:64MiB"],
    );
    refused(
        "command = [\"/bin/true\", \"x\"]",
        "command = \"true\"",
        &["program[3].command", "\"true\"", "a list"],
    );
    refused("[machine]", "[[machine]]", &["machine"]);
    refused("title = ", "title = \"", &["title"]);
}

#[test]
fn values_out_of_range_say_what_is_allowed() {
    refused(
        "schema = 1",
        "schema = 3",
        &["schema = 3", "allowed: 1 to 2"],
    );
    refused(
        "repetitions = 2",
        "repetitions = 0",
        &["repetitions = 0", "1 to 1000"],
    );
    refused(
        "repetitions = 2",
        "repetitions = 1001",
        &["= 1001", "1 to 1000"],
    );
    refused("\"50M\"", "\"0\"", &["budget_refs = 0", "allowed: 1 to 1T"]);
    refused("\"50M\"", "0", &["budget_refs = 0", "allowed: 1 to 1T"]);
    refused("\"50M\"", "-5", &["budget_refs = -5", "allowed: 1 to 1T"]);
    refused(
        "\"50M\"",
        "\"2T\"",
        &["budget_refs = 2T", "allowed: 1 to 1T"],
    );
    refused(
        "\"1.5M\"",
        "\"18446744073709551615\"",
        &["warmup_refs", "allowed: 0 to 1T"],
    );
    refused(
        "\"50M\"",
        "\"50m\"",
        &["budget_refs", "\"50m\"", "k, M, G, T"],
    );
    refused("\"50M\"", "\"many\"", &["budget_refs", "\"many\""]);
    refused("\"3GiB\"", "\"3GB\"", &["machine.memory", "\"3GB\"", "GiB"]);
    refused(
        "\"3GiB\"",
        "\"60MiB\"",
        &["machine.memory = 60MiB", "at least 64MiB"],
    );
    refused(
        "\"3GiB\"",
        "\"66MiB\"",
        &["machine.memory = 66MiB", "multiple of 4MiB"],
    );
    refused(
        "\"3GiB\"",
        "\"16000000TiB\"",
        &["machine.memory", "16000000TiB", "below 256 GiB"],
    );
    refused(
        "set_map = 10",
        "set_map = 1001",
        &["output.set_map = 1001", "0 to 1000"],
    );
    refused(
        "miss_curve = 4",
        "miss_curve = 5000",
        &["output.miss_curve = 5000", "0 to 1000, or true"],
    );
    refused(
        "miss_curve = 4",
        "miss_curve = false",
        &["output.miss_curve = false", "0 to 1000, or true"],
    );
    refused(
        "= []",
        "= [1]",
        &["machine.disabled_controllers = [1]", "0-0"],
    );
    refused(
        "= []",
        "= [0]",
        &["machine.disabled_controllers = [0]", "not all"],
    );
}

#[test]
fn cores_must_be_those_of_the_machine() {
    let key = "program[0].cores";
    refused("cores = \"0\"", "cores = \"4\"", &[key, "= 4", "0-3"]);
    refused("cores = \"0\"", "cores = \"0-63\"", &[key, "0-63", "0-3"]);
    refused("cores = \"0\"", "cores = \"64\"", &[key, "\"64\"", "0-63"]);
    refused(
        "cores = \"0\"",
        "cores = \"3-1\"",
        &[key, "\"3-1\"", "hardware threads"],
    );
    refused(
        "cores = \"0\"",
        "cores = \"\"",
        &[key, "\"\"", "hardware threads"],
    );
    refused(
        "cores = \"0\"",
        "cores = \"none\"",
        &[key, "\"none\"", "0-3"],
    );
    let error = parse(&GOOD.replacen("cores = \"0\"\n", "", 1)).expect_err("no cores");
    for part in ["s.toml:20: ", "program[0]", "`cores`"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn words_are_chosen_from_lists() {
    refused(
        "\"each-target\"",
        "\"some\"",
        &["together = \"some\"", "\"all\", \"each-target\""],
    );
    refused(
        "\"target\"",
        "\"victim\"",
        &["program[0].role = \"victim\"", "\"target\", \"polluter\""],
    );
    refused(
        "frames = \"stock\"",
        "frames = \"x-buddy\"",
        &[
            "policy[0].frames = \"x-buddy\"",
            "\"stock\", \"random\", \"bin-hopping\", \"page-coloring\", \"rainbow\"",
        ],
    );
    refused(
        "memory = \"aged\"",
        "memory = \"old\"",
        &["policy[0].memory = \"old\"", "\"aged\", \"fresh\""],
    );
    refused(
        "reads = \"none\"",
        "reads = \"scu\"",
        &["policy[0].reads = \"scu\"", "allowed: \"none\", \"mfc\""],
    );
    for key in ["replace", "files"] {
        refused(
            &format!("{key} = \"none\""),
            &format!("{key} = \"lru\""),
            &[&format!("policy[0].{key} = \"lru\""), "allowed: \"none\""],
        );
    }
    refused(
        "window,tlb",
        "window,tbl",
        &["machine.features", "\"tbl\"", "tlb", "none"],
    );
}

#[test]
fn the_machine_must_exist() {
    let mut parts = vec!["machine.preset", "\"w3541\"", "allowed"];
    parts.extend(presets::names());
    refused("\"w3540\"", "\"w3541\"", &parts);
    refused("\"w3540\"", "\"\"", &["machine.preset = \"\"", "zen"]);
    let error = parse(&GOOD.replace("preset = \"w3540\"\n", "")).expect_err("no machine");
    assert!(error.contains("either preset or file"), "{error}");
    let both = GOOD.replace("preset = ", "file = \"m.toml\"\npreset = ");
    let error = parse(&both).expect_err("two machines");
    assert!(error.contains("either preset or file"), "{error}");
    refused(
        "preset = \"w3540\"",
        "file = \"no-such.toml\"",
        &["machine.file", "folder/no-such.toml"],
    );
}

/// Errors of machine files that a scenario names.
fn machine_file(old: &str, new: &str) -> String {
    let name = format!(
        "piebald-lab-{}-{:x}",
        std::process::id(),
        new.len() * 31 + old.len()
    );
    let path = env::temp_dir().join(name);
    let text = presets::get("w3540").expect("preset").replacen(old, new, 1);
    std::fs::write(&path, text).expect("written");
    let scenario = GOOD
        .replace(
            "preset = \"w3540\"",
            &format!("file = \"{}\"", path.display()),
        )
        .replace("memory = \"3GiB\"\n", "");
    let result = parse(&scenario);
    std::fs::remove_file(&path).expect("removed");
    match result {
        Ok(_) => String::new(),
        Err(error) => error.replace(&path.display().to_string(), "M"),
    }
}

#[test]
fn machine_files_are_checked_whole() {
    assert_eq!(machine_file("4 cores", "four cores"), "");
    let error = machine_file("sockets = 1 ", "sockets = 0 ");
    for part in ["s.toml:10: ", "M:18: ", "core.sockets = 0", "1 to 64"] {
        assert!(error.contains(part), "{error}");
    }
    // Products of these would not fit their type.
    let error = machine_file("per_socket = 4 ", "per_socket = 65535 ");
    assert!(error.contains("M:19: core.per_socket = 65535"), "{error}");
    let error = machine_file("smt = 1 ", "smt = 60000 ");
    assert!(error.contains("core.smt = 60000"), "{error}");
    let error = machine_file("ways = 16 ", "ways = 60000 ");
    assert!(error.contains("cache[3].ways = 60000"), "{error}");
    let error = machine_file("latency = 44", "latensy = 44");
    assert!(
        error.contains("M:") && error.contains("`latensy`"),
        "{error}"
    );
}

#[test]
fn programs_must_be_complete_and_told_apart() {
    let exactly = "exactly one of recording, command, builtin, trace";
    refused(
        "[[program]]\nname = \"sort\"\nbuiltin = \"mergesort:1MiB\"\n",
        "[[program]]\nname = \"sort\"\n",
        &["program[0]", exactly],
    );
    refused(
        "[[program]]\nname",
        "[[program]]\nrecording = \"a.pbr\"\nname",
        &["program[0]", exactly],
    );
    refused(
        "[\"/bin/true\", \"x\"]",
        "[]",
        &["program[3].command = []", "allowed"],
    );
    refused(
        "name = \"sort\"",
        "name = \"\"",
        &["program[0].name", "not empty"],
    );
    let twice = GOOD.replacen("cores = \"1-3\"", "name = \"sort\"\ncores = \"1-3\"", 1);
    let error = parse(&twice).expect_err("two names");
    for part in ["s.toml:28: ", "program[1].name", "\"sort\"", "unique"] {
        assert!(error.contains(part), "{error}");
    }
    refused(
        "cores = \"0\"",
        "colors = \"0-15\"\ncores = \"0\"",
        &["program[0].colors", "no policy has frames"],
    );
    let error = parse(&GOOD.replace("\"target\"", "\"polluter\"")).expect_err("no target");
    assert!(
        error.contains("s.toml:20: ") && error.contains("role = \"target\""),
        "{error}"
    );
}

#[test]
fn there_must_be_programs_but_not_too_many() {
    let head = "schema = 1\n[machine]\npreset = \"w3540\"\n";
    let error = parse(head).expect_err("none");
    assert!(
        error.starts_with("folder/s.toml:1: ") && error.contains("`program`"),
        "{error}"
    );
    let error = parse(&format!("program = []\n{head}")).expect_err("none");
    assert!(error.contains("at least one [[program]]"), "{error}");
    let many = |n| {
        let one = |i| format!("[[program]]\nname = \"p{i}\"\nbuiltin = \"chase\"\ncores = \"0\"\n");
        format!("{head}{}", (0..n).map(one).collect::<String>())
    };
    assert!(parse(&many(250)).is_ok());
    let error = parse(&many(251)).expect_err("too many");
    assert!(
        error.contains("251 tables") && error.contains("1 to 250"),
        "{error}"
    );
}

#[test]
fn policies_are_told_apart() {
    refused(
        "name = \"random\"",
        "name = \"stock\"",
        &["policy[1].name = \"stock\"", "unique"],
    );
    refused(
        "name = \"random\"",
        "name = \"\"",
        &["policy[1].name = \"\"", "not empty"],
    );
    let error = parse(&GOOD.replace("name = \"bins\"\n", "")).expect_err("no name");
    assert!(
        error.contains("policy[2]") && error.contains("`name`"),
        "{error}"
    );
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_line() {
    refused("seed = 7", "seed 7", &[]);
    refused("seed = 7", "schema = 1", &["schema"]);
    let error = Scenario::read(Path::new("/no/such/s.toml")).expect_err("no file");
    assert!(
        error
            .to_string()
            .starts_with("/no/such/s.toml: cannot be read"),
        "{error}"
    );
}

#[test]
fn fuzz_scenario() {
    let (cases, seed) = budget();
    let mut random = Random(seed);
    let mut accepted = 0;
    for _ in 0..cases {
        let text = mutated(GOOD, &mut random);
        match parse(&text) {
            Ok(scenario) => {
                accepted += 1;
                assert!(!scenario.programs.is_empty() && !scenario.policies.is_empty());
                assert!(!piebald_lab::machine_lines(&scenario.machine).is_empty());
            }
            Err(error) => assert!(error.starts_with("folder/s.toml"), "{error}\n{text}"),
        }
    }
    assert!(accepted > 0 && accepted < cases, "{accepted} of {cases}");
}

#[test]
fn regions_are_read_in_each_form_and_refused_with_what_is_allowed() {
    let with = |value: &str| {
        let text = GOOD.replacen(
            "recording = \"gcc.pbr\"",
            &format!("recording = \"gcc.pbr\"\nregions = {value}"),
            1,
        );
        parse(&text).map(|s| s.programs[2].regions)
    };
    let auto = RegionRequest {
        max: Whole::new(10),
        interval: None,
        span: None,
        check: None,
    };
    assert_eq!(parse(GOOD).expect("good").programs[2].regions, None);
    assert_eq!(with("\"auto\""), Ok(Some(auto)));
    assert_eq!(with("{}"), Ok(Some(auto)));
    assert_eq!(
        with("4"),
        Ok(Some(RegionRequest {
            max: Whole::new(4),
            ..auto
        }))
    );
    let table = "{ max = 3, interval = \"2M\", span = \"1G\", check = false }";
    let read = RegionRequest {
        max: Whole::new(3),
        interval: Some(Refs::new(2_000_000)),
        span: Some(Refs::new(1_000_000_000)),
        check: Some(false),
    };
    assert_eq!(with(table), Ok(Some(read)));
    for (value, parts) in [
        ("0", ["program[2].regions = 0", "1 to 100"]),
        ("101", ["program[2].regions = 101", "1 to 100"]),
        ("\"many\"", ["\"many\"", "\"auto\""]),
        ("-1", ["regions", "\"auto\""]),
        ("true", ["regions", "\"auto\""]),
        ("{ most = 3 }", ["regions", "interval"]),
        (
            "{ interval = \"999\" }",
            ["regions.interval = 999", "1k to"],
        ),
        ("{ span = \"0\" }", ["regions.span = 0", "1 to"]),
        ("{ span = \"2T\" }", ["regions.span = 2T", "to 1T"]),
    ] {
        let error = with(value).expect_err(value);
        assert!(error.starts_with("folder/s.toml:"), "{error}");
        for part in parts {
            assert!(error.contains(part), "{value}: {part}: {error}");
        }
    }
    let trace = GOOD.replacen(
        "recording = \"gcc.pbr\"",
        "trace = \"gcc.lackey\"\nregions = 4",
        1,
    );
    let error = parse(&trace).expect_err("a trace");
    assert!(
        error.contains("program[2].regions") && error.contains("trace convert"),
        "{error}"
    );
}

#[test]
fn parameters_of_built_in_programs_are_texts_or_whole_numbers() {
    let with = |value: &str| {
        let text = GOOD.replacen("{ name = \"scan\", size = \"64MiB\" }", value, 1);
        parse(&text).map(|s| (s.programs[1].input.clone(), s.programs[1].name.clone()))
    };
    let table = "{ name = \"stream\", size = \"64MiB\", threads = 2 }";
    let input = Input::Builtin("stream:size=64MiB,threads=2".to_owned());
    assert_eq!(with(table), Ok((input, "stream".to_owned())));
    for value in [
        "{ name = \"triad\", threads = 2.5 }",
        "{ name = \"triad\", threads = true }",
    ] {
        let error = with(value).expect_err(value);
        assert!(error.contains("builtin"), "{error}");
        assert!(error.contains("whole number"), "{error}");
    }
}
