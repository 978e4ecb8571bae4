//! Partitions of colours in a study: by number and share, with limits, and changing while
//! the programs run.

use crate::kit::{parse, refused, run};
use crate::mutate::{Random, budget, mutated};
use piebald_os_model::kernel::OnLimit;
use piebald_report::{Metrics, Study, to_json, to_table};
use piebald_units::ColorAsk;

/// One of 16 colours of 96 MiB has 1536 pages, of which the kernel takes some 260.
const TEXT: &str = r#"schema = 1
repetitions = 1
budget_refs = "60k"
warmup_refs = "20k"
[machine]
preset = "w3540"
memory = "96MiB"
[output]
set_map = 0
[[program]]
name = "a"
builtin = "chase:768KiB"
cores = "0"
colors = { count = 1 }
on_limit = "fail"
[[program.change]]
at = "10k"
colors = { count = 4 }
recolor = true
[[program]]
name = "b"
builtin = "scan:2MiB"
cores = "1"
role = "polluter"
colors = { share = "12.5%" }
on_limit = "swap"
[[program]]
name = "c"
builtin = "scan:1MiB"
cores = "2"
role = "polluter"
colors = "0-1"
[[policy]]
name = "stock"
memory = "fresh"
[[policy]]
name = "colors"
frames = "rainbow"
memory = "fresh"
[[policy]]
name = "changed"
frames = "rainbow"
memory = "fresh"
colors = { a = "none", b = { count = 1 } }
"#;

/// A program's metrics beside the others.
fn together(study: &Study, policy: usize, program: usize) -> &Metrics {
    let program = &study.policies[policy].programs[program];
    program.together.as_ref().expect("was run")
}

fn pages(metrics: &Metrics) -> Vec<f64> {
    let colors = metrics.colors.as_ref().expect("colors");
    colors.pages.iter().map(|s| s.mean).collect()
}

fn extra(metrics: &Metrics, name: &str) -> Option<f64> {
    let found = metrics.extra.iter().find(|e| e.name == name);
    found.map(|e| e.value.mean)
}

#[test]
fn a_partition_that_changes_is_reported_with_its_pages_and_their_cost() {
    let study = run(TEXT).unwrap();
    let of = |policy: usize| {
        let programs = study.policies[policy].programs.iter();
        programs.map(|p| p.colors.as_deref()).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [None; 3]);
    // Named colours first, then the others in turn.
    assert_eq!(of(1), [Some("2"), Some("3-4"), Some("0-1")]);
    assert_eq!(of(2), [Some("3-15"), Some("2"), Some("0-1")]);
    assert!(
        study.policies[0]
            .programs
            .iter()
            .all(|p| p.alone.colors.is_none())
    );

    // 192 pages in one colour, then 48 in each of four; next to 2 only 5 to 7 are free.
    let a = together(&study, 1, 0);
    let owned = |m: &Metrics| m.colors.as_ref().and_then(|c| c.owned.clone());
    assert_eq!(owned(a).as_deref(), Some("2,5-7"));
    let spread = pages(a);
    assert!(
        spread.iter().all(|n| *n == 0.0 || (48.0..50.0).contains(n)),
        "{spread:?}"
    );
    assert_eq!(spread.iter().filter(|n| **n > 0.0).count(), 4);
    assert_eq!(spread.iter().sum::<f64>(), a.pages.mean);
    let moved = extra(a, "pages moved to other colors").expect("moved");
    assert!((140.0..150.0).contains(&moved), "{moved}");
    let each = extra(a, "time for moving pages").expect("a time") / moved;
    assert!((0.5..20.0).contains(&each), "{each} us");
    assert_eq!(extra(a, "pages swapped out"), None, "nothing was swapped");
    // Under the other policy it owns nothing, so nothing changes.
    let a = together(&study, 2, 0);
    assert_eq!(
        (owned(a), extra(a, "pages moved to other colors")),
        (None, None)
    );

    let table = to_table(&study, &piebald_report::TableStyle::default());
    for part in [
        "colors / pages (4 KiB)",
        "2,5-7 / 19",
        "pages moved to other colors",
        "[us]",
    ] {
        assert!(table.contains(part), "no {part:?} in\n{table}");
    }
    let json = to_json(&study).unwrap();
    assert!(json.contains("\"peak_pages\""), "{json}");
    let html = piebald_report::to_html(&study).unwrap();
    assert!(html.contains("2,5-7 / 19"));
}

#[test]
fn a_program_whose_share_is_too_small_fails_or_swaps() {
    // Some 1,900 pages, of which a colour holds at most 1,536, and with the kernel fewer.
    let big = TEXT
        .replace("scan:2MiB", "triad:7MiB")
        .replace("[[policy]]\nname = \"stock\"\nmemory = \"fresh\"\n", "");
    let big = big.split("[[policy]]\nname = \"changed\"").next().unwrap();
    let small = |text: &str| text.replace("{ share = \"12.5%\" }", "\"15\"");
    let error = run(&small(big).replace("\"swap\"", "\"fail\"")).expect_err("a limit");
    for part in [
        "policy \"colors\": program \"b\": ",
        "its colors 15 would be used up: it needs 1",
        "of their 1536 frames",
        "let pages leave memory (on_limit = \"swap\")",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let study = run(&small(big)).unwrap();
    let b = together(&study, 0, 1);
    assert!(
        extra(b, "pages swapped out").is_some_and(|n| n > 500.0),
        "{b:?}"
    );
    let held = pages(b);
    assert_eq!(held.iter().sum::<f64>(), held[15], "nothing is borrowed");
    assert!(
        study
            .missing
            .iter()
            .any(|m| m.contains("28 us to write and 77 us to read"))
    );
    // Three colours are enough.
    let study = run(&big.replace("12.5%", "20%")).unwrap();
    assert_eq!(extra(together(&study, 0, 1), "pages swapped out"), None);
}

#[test]
fn each_form_of_colors_is_read() {
    let s = parse(TEXT).unwrap();
    let want = |at: usize| s.programs[at].colors.clone();
    assert_eq!(want(0), Some(ColorAsk::Count(1)));
    assert_eq!(want(1), Some(ColorAsk::Share(1250)));
    assert_eq!(want(2), Some(ColorAsk::Exactly("0-1".parse().unwrap())));
    let limits: Vec<OnLimit> = s.programs.iter().map(|p| p.on_limit).collect();
    assert_eq!(limits, [OnLimit::Fail, OnLimit::Swap, OnLimit::Fail]);
    let change = &s.programs[0].changes[0];
    assert_eq!((change.at, &change.want), (10_000, &ColorAsk::Count(4)));
    for (text, basis_points) in [("100%", 10_000), ("0.01%", 1), ("6.5 %", 650)] {
        let s = parse(
            &TEXT
                .replace("12.5%", text)
                .replace("colors = \"0-1\"\n", ""),
        );
        let max = s.is_err_and(|e| e.contains("more colors asked for"));
        assert_eq!(max, basis_points == 10_000, "{text}");
    }
    // Lazily, or not at all.
    for (value, text) in [("false", "No"), ("16", "PerTick(16)"), ("true", "Now")] {
        let s = parse(&TEXT.replace("recolor = true", &format!("recolor = {value}"))).unwrap();
        assert_eq!(format!("{:?}", s.programs[0].changes[0].recolor), text);
    }
    let s = parse(&TEXT.replace("recolor = true\n", "")).unwrap();
    assert_eq!(format!("{:?}", s.programs[0].changes[0].recolor), "Now");
    // Programs that name the same colours share them.
    parse(&TEXT.replace("{ share = \"12.5%\" }", "\"0-1\"")).unwrap();
}

#[test]
fn what_cannot_be_is_refused_with_line_key_value_and_what_is_allowed() {
    let cases = [
        (
            "{ count = 1 }\non",
            "{ count = 0 }\non",
            14,
            "program[0].colors.count = 0: allowed: 1 to",
        ),
        (
            "{ count = 1 }\non",
            "{ count = 17 }\non",
            14,
            "colors of this machine, 0-15",
        ),
        (
            "{ count = 1 }\non",
            "{ count = 1, share = \"5%\" }\non",
            14,
            "allowed: exactly one of count and share",
        ),
        (
            "{ count = 1 }\non",
            "{}\non",
            14,
            "allowed: exactly one of count and share",
        ),
        (
            "{ count = 1 }\non",
            "{ number = 1 }\non",
            14,
            "unknown field `number`, expected `count` or `share`",
        ),
        (
            "{ count = 1 }\non",
            "4\non",
            14,
            "expected a set of colors such as",
        ),
        (
            "12.5%",
            "0%",
            25,
            "program[1].colors = { share = \"0%\" }: allowed: a share such as \"25%\"",
        ),
        ("12.5%", "100.01%", 25, "0.01% to 100%"),
        ("12.5%", "12.345%", 25, "0.01% to 100%"),
        ("12.5%", "+5%", 25, "0.01% to 100%"),
        ("12.5%", "5", 25, "0.01% to 100%"),
        ("12.5%", "99999999999999%", 25, "0.01% to 100%"),
        (
            "12.5%",
            "100%",
            25,
            "program[1].colors = \"100%\": policy \"colors\": 16 more colors asked for; 13 can be reserved",
        ),
        (
            "{ share = \"12.5%\" }",
            "\"1-3\"",
            32,
            "program[2].colors = \"0-1\": policy \"colors\": color 1 belongs to \"b\"; programs share all colors or none",
        ),
        (
            "\"swap\"",
            "\"kill\"",
            26,
            "program[1].on_limit = \"kill\": allowed: \"fail\", \"swap\"",
        ),
        (
            "on_limit = \"swap\"",
            "on_limit = \"swap\"\nmode = \"hint\"",
            26,
            "program[1].on_limit: colors with mode = \"hint\" have no limit",
        ),
        (
            "\"10k\"",
            "\"60k\"",
            17,
            "program[0].change[0].at = 60k: allowed: less than budget_refs, 60k",
        ),
        (
            "{ count = 4 }",
            "\"16\"",
            18,
            "program[0].change[0].colors = \"16\": allowed: colors of this machine, 0-15",
        ),
        ("{ count = 4 }", "\"\"", 18, "program[0].change[0].colors"),
        (
            "recolor = true",
            "recolor = 0",
            19,
            "program[0].change[0].recolor = 0: allowed: true, false, or at least 1 page",
        ),
        (
            "recolor = true",
            "recolor = \"yes\"",
            19,
            "expected true, false, or at least 1 page",
        ),
        (
            "recolor = true",
            "recolor = true\n[[program.change]]\nat = \"10k\"\ncolors = \"2\"",
            21,
            "program[0].change[1].at = 10k: allowed: more than that of the change before it, 10k",
        ),
        (
            "cores = \"0\"\ncolors = { count = 1 }",
            "cores = \"0\"",
            15,
            "program[0].change: colors is missing: change says how colors change",
        ),
        (
            "cores = \"0\"\n",
            "cores = \"0\"\nregions = 2\n",
            17,
            "program[0].change: a program with regions is run in parts",
        ),
        (
            "b = { count = 1 }",
            "b = { share = \"90%\" }",
            44,
            "policy[2].colors.b = \"90%\": policy \"changed\": 15 more colors",
        ),
    ];
    refused(TEXT, &cases);
    let stock = TEXT.split("[[policy]]\nname = \"colors\"").next().unwrap();
    let only = stock.replace("colors = { count = 1 }\n", "").replace(
        "[[program.change]]\nat = \"10k\"\ncolors = { count = 4 }\nrecolor = true\n",
        "",
    );
    let error = parse(&only).expect_err("no colours");
    assert!(
        error.contains("program[0].on_limit: no policy has frames = \"rainbow\""),
        "{error}"
    );
}

#[test]
fn a_change_that_another_program_stands_in_the_way_of_ends_its_policy() {
    let text = TEXT.replace("{ count = 4 }", "\"1-4\"");
    let study = run(&text).expect("the other policies");
    let error = study.warnings.join("\n");
    for part in [
        "policy \"colors\": program \"a\": ",
        "color 1 of its change 1 belongs to \"c\" when it comes",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn fuzz_partitions() {
    let (cases, seed) = budget();
    let mut random = Random(seed);
    let mut accepted = 0;
    for _ in 0..cases {
        let text = mutated(TEXT, &mut random);
        match parse(&text) {
            Ok(scenario) => {
                accepted += 1;
                let changes = scenario.programs.iter().flat_map(|p| &p.changes);
                assert!(changes.clone().all(|c| c.at < scenario.budget_refs));
            }
            Err(error) => assert!(error.starts_with("folder/s.toml"), "{error}\n{text}"),
        }
    }
    assert!(accepted > 0 && accepted < cases, "{accepted} of {cases}");
}

const PARTS: &str = r#"schema = 2
repetitions = 1
budget_refs = "20k"
warmup_refs = "20k"
alone = "none"
machine = { preset = "w3540", memory = "3GiB" }
output = { set_map = 0 }
program = [
    { name = "a", builtin = "chase:512KiB", cores = "0" },
    { name = "b", builtin = "scan:512KiB", cores = "1" },
]
policy = [
    { name = "cut", memory = "fresh", frames = "rainbow", colors = { a = "cache 0/4 hint", b = "cache 1-3/4 hint" } },
    { name = "own bits", memory = "fresh", frames = "rainbow", color_map = ["O 13", "C 16", "B 21", "C 17"], colors = { a = "cache 0/4 banks 1/2", b = "cache 1/4" } },
]
"#;

#[test]
fn programs_have_parts_of_the_cache_and_of_the_banks() {
    let study = run(PARTS).unwrap();
    let owned = |policy: usize, program: usize| {
        let colors = together(&study, policy, program).colors.as_ref();
        colors.and_then(|c| c.owned.clone()).expect("colors")
    };
    // Color bits 1 and 3 divide the cache, bit 2 the banks; bit 0 selects both.
    assert_eq!((owned(1, 0), owned(1, 1)), ("4-5".into(), "2-3,6-7".into()));
    let in_parts = |policy: usize, program: usize| {
        let colors = together(&study, policy, program).colors.as_ref();
        let parts = colors.map(|c| c.in_parts.iter().map(|s| s.mean));
        parts.expect("colors").collect::<Vec<f64>>()
    };
    assert_eq!(in_parts(1, 0), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(in_parts(1, 1), [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    // Without bits of its own a policy has those of the cache and of the banks.
    let (first, rest) = (in_parts(0, 0), in_parts(0, 1));
    let both = first.iter().zip(&rest).map(|(a, b)| (*a > 0.0, *b > 0.0));
    let (shared, quarter) = both.fold((0, 0), |(shared, quarter), (a, b)| {
        (shared + usize::from(a && b), quarter + usize::from(a))
    });
    assert_eq!((shared, quarter * 4), (0, first.len()));
    assert_eq!(first.iter().sum::<f64>() * 3.0, rest.iter().sum::<f64>());
}

#[test]
fn parts_that_there_are_not_are_refused_with_their_place() {
    let allowed = "allowed: parts such as \"cache 0/4\"";
    for (text, part) in [
        ("cache 4/4 hint", allowed),
        ("cache 0/3 hint", allowed),
        ("cache 0/1 hint", allowed),
        ("cache hint", allowed),
        ("cache 0/4 cache 0/4", allowed),
        ("cache 0/4 0-3", allowed),
        ("cache", allowed),
        (
            "cache 0/4096",
            "color bits select the last level and nothing else; allowed: up to",
        ),
    ] {
        let error = parse(&PARTS.replacen("cache 0/4 hint", text, 1)).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
        assert!(error.contains(":13: policy[0].colors.a"), "{text}: {error}");
    }
}
