//! Programs that own page colours: what a scenario may say, and what it does to
//! the programs beside them.

use crate::kit::{parse, refused, run};
use piebald_report::{ProgramResult, Study};

/// A sort that fits fifteen colours of sixteen, beside a scan that fits nothing.
const TEXT: &str = r#"schema = 1
repetitions = 1
budget_refs = "150k"
warmup_refs = "1800k"
[machine]
preset = "w3540"
memory = "768MiB"
[output]
set_map = 0
[[program]]
name = "sort"
builtin = "mergesort:3MiB"
cores = "0"
colors = "0-14"
mode = "hard"
[[program]]
name = "scan"
builtin = "scan:24MiB"
cores = "1"
role = "polluter"
[[policy]]
name = "stock"
memory = "fresh"
[[policy]]
name = "colors"
frames = "rainbow"
memory = "fresh"
[[policy]]
name = "virtual"
frames = "page-coloring"
memory = "fresh"
"#;

fn program<'a>(study: &'a Study, policy: usize, name: &str) -> &'a ProgramResult {
    let programs = &study.policies[policy].programs;
    programs.iter().find(|p| p.name == name).expect("is there")
}

/// Misses of the last level per 1000 instructions: alone, together.
fn misses(program: &ProgramResult) -> (f64, f64) {
    let last = |m: &piebald_report::Metrics| m.mpki.last().expect("levels").mpki.mean;
    let together = program.together.as_ref().expect("was run");
    (last(&program.alone), last(together))
}

#[test]
fn a_program_keeps_its_colors_of_the_last_level_beside_a_scan() {
    let study = run(TEXT).unwrap();
    let (alone, together) = misses(program(&study, 0, "sort"));
    assert!(
        together > 4.0 * alone + 10.0,
        "stock: the scan takes the sort's lines: {alone} {together}"
    );
    let owner = program(&study, 1, "sort");
    let (alone, together) = misses(owner);
    assert!(
        together < 1.1 * alone + 0.5,
        "colors: nothing changes for the sort: {alone} {together}"
    );
    assert_eq!(owner.colors.as_deref(), Some("0-14"));
    // Whoever owns nothing gets what nobody owns.
    let other = program(&study, 1, "scan");
    assert_eq!(other.colors.as_deref(), Some("15"));
    assert!(
        study.policies[1]
            .description
            .ends_with("sort 0-14, scan 15")
    );
    for policy in [0, 2] {
        assert_eq!(program(&study, policy, "sort").colors, None);
    }
}

#[test]
fn colors_that_hold_too_little_end_their_policy_and_a_hint_goes_elsewhere() {
    // One of 16 colours of 96 MiB has 6 MiB: room for one scan, not for two.
    let other = "[[program]]\nname = \"other\"\nbuiltin = \"triad:3600KiB\"\ncores = \"2\"\n\
                 role = \"polluter\"\n[[policy]]\nname = \"stock\"";
    let big = TEXT
        .replace("768MiB", "96MiB")
        .replace("scan:24MiB", "scan:3600KiB")
        .replace("[[policy]]\nname = \"stock\"", other)
        .replace("warmup_refs = \"1800k\"", "warmup_refs = \"300k\"");
    let study = run(&big).expect("the other policies");
    let why = study.warnings.join("\n");
    for part in [
        "policy \"colors\": colors 15 may be used up: \"scan\" and \"other\" need ",
        "of the 1536 frames of these colors",
        "of their 1536 frames",
        "pages of files",
        "this policy is left out",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!((study.complete, study.policies.len()), (false, 2));
    let hinting = big.replace(
        "role = \"polluter\"\n",
        "role = \"polluter\"\ncolors = \"15\"\nmode = \"hint\"\n",
    );
    let study = run(&hinting).expect("borrows");
    assert!(study.complete && !study.warnings.join("\n").contains("used up"));
}

#[test]
fn a_policy_changes_who_owns_which_colors_and_only_targets_may_run_alone() {
    let text = TEXT
        .replace("mergesort:3MiB", "mergesort:1MiB")
        .replace("1800k", "600k")
        .replace(
            "repetitions = 1\n",
            "repetitions = 1\nalone = \"targets\"\n",
        )
        .replace("[[policy]]\nname = \"stock\"\nmemory = \"fresh\"\n", "")
        .replace(
            "frames = \"rainbow\"\nmemory = \"fresh\"\n",
            "frames = \"rainbow\"\nmemory = \"fresh\"\n\
             [[policy]]\nname = \"one\"\nframes = \"rainbow\"\nmemory = \"fresh\"\n\
             colors = { sort = \"3\" }\n\
             [[policy]]\nname = \"scan\"\nframes = \"rainbow\"\nmemory = \"fresh\"\n\
             colors = { sort = \"none\", scan = \"0\" }\n\
             [[policy]]\nname = \"bits\"\nframes = \"rainbow\"\nmemory = \"fresh\"\n\
             color_map = [\"15 19\", \"16\"]\ncolors = { sort = \"0-2\" }\n",
        );
    let study = run(&text).unwrap();
    let colors = |policy: usize| {
        ["sort", "scan"].map(|name| program(&study, policy, name).colors.as_deref())
    };
    assert_eq!(colors(0), [Some("0-14"), Some("15")]);
    assert_eq!(colors(1), [Some("3"), Some("0-2,4-15")]);
    assert_eq!(colors(2), [Some("1-15"), Some("0")]);
    assert_eq!(colors(3), [Some("0-2"), Some("3")]);
    // A sort in one colour has an L3 of 512 KiB.
    let (fifteen, one) = (
        misses(program(&study, 0, "sort")).0,
        misses(program(&study, 1, "sort")).0,
    );
    assert!(one > 2.0 * fifteen + 5.0, "{fifteen} {one}");
    let scan = program(&study, 0, "scan");
    assert!(!scan.alone.time_ps.is_known() && scan.slowdown.is_none());
    let time = scan.together.as_ref().map(|t| t.time_ps.is_known());
    assert_eq!(time, Some(true));
}

#[test]
fn colors_of_a_policy_that_cannot_be_are_refused_in_their_place() {
    let with = |keys: &str| format!("{TEXT}[[policy]]\nname = \"x\"\nframes = \"rainbow\"\n{keys}");
    for (keys, parts) in [
        (
            "colors = { nobody = \"0\" }",
            "policy[3].colors.nobody: no program has this name: allowed: sort, scan",
        ),
        (
            "colors = { sort = \"5-\" }",
            "policy[3].colors.sort = \"5-\"",
        ),
        ("colors = { sort = \"\" }", "policy[3].colors.sort"),
        (
            "colors = { scan = \"16\" }",
            "policy[3].colors.scan = \"16\": allowed: colors of this machine, 0-15",
        ),
        (
            "color_map = [\"15\", \"15\"]",
            "policy[3].color_map[1]: line 2",
        ),
        (
            "color_map = [\"15\", \"x\"]",
            "policy[3].color_map[1]: line 2: \"x\" is no address bit",
        ),
        ("color_map = [\"3\"]", "policy[3].color_map"),
        (
            "color_map = []",
            "policy[3].color_map = \"\": allowed: at least one color bit",
        ),
        ("color_map = [\"15\\n16\"]", "one color bit in each text"),
        (
            "color_map = [\"15\", \"16\"]",
            "program[0].colors = \"0-14\": allowed: colors of this machine under policy \"x\", 0-3",
        ),
        (
            "color_map = [\"15\", \"16\", \"17\", \"30\"]",
            "policy[3].color_map: color bit 3 names an address bit that no frame has in 768MiB",
        ),
    ] {
        let error = parse(&with(keys)).expect_err(keys);
        assert!(error.starts_with("folder/s.toml:"), "{error}");
        assert!(error.contains(parts), "{keys}: {error}");
    }
    for keys in ["colors = { sort = \"1\" }", "color_map = [\"15\"]"] {
        let text = with(keys).replace("\"x\"\nframes = \"rainbow\"", "\"x\"\nframes = \"stock\"");
        let error = parse(&text).expect_err(keys);
        assert!(error.contains("only frames = \"rainbow\""), "{error}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_line_key_value_and_range() {
    let cases = [
        (
            "0-14",
            "0-16",
            14,
            "colors = \"0-16\": allowed: colors of this machine, 0-15",
        ),
        ("0-14", "3-1", 14, "program[0].colors = \"3-1\""),
        ("0-14", "1,,2", 14, "program[0].colors = \"1,,2\""),
        (
            "0-14",
            "99999999999",
            14,
            "program[0].colors = \"99999999999\"",
        ),
        ("0-14", "", 14, "program[0].colors"),
        (
            "\"hard\"",
            "\"firm\"",
            15,
            "mode = \"firm\": allowed: \"hard\", \"hint\"",
        ),
        (
            "colors = \"0-14\"\n",
            "",
            14,
            "program[0].mode: colors is missing",
        ),
        (
            "\"rainbow\"",
            "\"stock\"",
            14,
            "no policy has frames = \"rainbow\"",
        ),
    ];
    refused(TEXT, &cases);
}

#[test]
fn colors_of_a_last_level_that_hashes_its_slices_are_those_of_the_hash() {
    // Four slices. Address bits 17 and 18, colours of the linear W3540, tell a slice only
    // together with higher ones.
    let hashed = TEXT.replace("0-14", "0-13").replace(
        "memory = \"768MiB\"\n",
        "memory = \"768MiB\"\nslice_hash = [\"0x1b5f575440\", \"0x2eb5faa880\"]\n",
    );
    let naive = hashed.replace(
        "name = \"colors\"\n",
        "name = \"colors\"\ncolor_map = [\"15\", \"16\", \"17\", \"18\"]\n",
    );
    let gap = |text: &str| {
        let text = text.replace("[[policy]]\nname = \"stock\"\nmemory = \"fresh\"\n", "");
        let study = run(&text).unwrap();
        let (alone, together) = misses(program(&study, 0, "sort"));
        together - alone
    };
    let (naive, exact) = (gap(&naive), gap(&hashed));
    assert!(exact < 1.0 && naive > exact + 5.0, "{naive} {exact}");

    for mask in ["0x0", "x", "0x4000000000000"] {
        let error = parse(&hashed.replace("0x1b5f575440", mask)).expect_err(mask);
        assert!(
            error.starts_with("folder/s.toml:8: machine.slice_hash: "),
            "{error}"
        );
        assert!(error.contains(mask), "{error}");
    }
}

#[test]
fn what_a_failed_policy_leaves_is_kept_and_says_what_held_its_frames() {
    // One colour of 6 MiB does not hold 8 MiB, which is not foreseen of several threads.
    let text = TEXT
        .replace("768MiB", "96MiB")
        .replace("1800k", "300k")
        .replace(
            "builtin = \"scan:24MiB\"",
            "builtin = \"scan:3MiB\"\ncolors = \"15\"\nmode = \"hard\"",
        )
        .replace(
            "builtin = \"mergesort:3MiB\"",
            "builtin = \"triad:size=8MiB,threads=2\"",
        )
        .replace("cores = \"1\"", "cores = \"2\"")
        .replace("cores = \"0\"", "cores = \"0-1\"")
        .replace("colors = \"0-14\"", "colors = \"0\"");
    let study = run(&text).expect("the other policies");
    let names: Vec<&str> = study.policies.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["stock", "virtual"]);
    assert!(!study.complete);
    let why = study.warnings.join("\n");
    for part in [
        "policy \"colors\"",
        "colors 0 are used up: of their 1536 frames",
        "hold its own memory",
        "this policy is left out",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn repetitions_that_a_policy_finished_before_it_failed_are_kept() {
    // Aged memory leaves colour 0 4802 to 4873 frames, by its draws; 4815 are needed.
    let text = "schema = 2\nseed = 3\nrepetitions = 6\nbudget_refs = \"400k\"\nwarmup_refs = \"100k\"\n\
        machine = { preset = \"w3540\", memory = \"768MiB\" }\n\
        program = [{ name = \"sort\", builtin = \"triad:size=19250KiB,threads=2\", cores = \"0-1\", \
        colors = \"0\", mode = \"hard\" }]\n\
        policy = [{ name = \"stock\" }, { name = \"colors\", frames = \"rainbow\" }]\n";
    let study = run(text).expect("both policies");
    let repetitions = |policy: usize| program(&study, policy, "sort").alone.time_ps.n();
    assert_eq!((repetitions(0), study.complete), (6, false));
    let left = repetitions(1);
    assert!((1..6).contains(&left), "{left}");
    let why = study.warnings.join("\n");
    let said = format!("the first {left} of 6 repetitions are shown");
    assert!(why.contains("are used up") && why.contains(&said), "{why}");
    // They are those of a study of so many.
    let fewer = text.replace("repetitions = 6", &format!("repetitions = {left}"));
    let fewer = run(&fewer).expect("both policies");
    assert!(fewer.complete);
    assert_eq!(
        program(&fewer, 1, "sort").alone.time_ps,
        program(&study, 1, "sort").alone.time_ps
    );
}
