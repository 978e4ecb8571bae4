//! Scenarios with a disk and one memory for files and programs.

use std::path::Path;

use piebald_lab::scenario::Scenario;

const TEXT: &str = "schema = 1\nbudget_refs = \"30k\"\nwarmup_refs = \"10k\"\nrepetitions = 1\n\
    [machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n\
    [files]\nswap = \"64MiB\"\n\
    [[program]]\nbuiltin = \"scan:4MiB\"\ncores = \"0\"\n\
    [[policy]]\nname = \"a\"\nmemory = \"fresh\"\n\
    [[policy]]\nname = \"b\"\nmemory = \"fresh\"\nreplace = \"clock\"\n";

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, Path::new("s.toml")).map_err(|e| e.to_string())
}

#[test]
fn a_scenario_names_disk_policy_and_swap() {
    let s = parse(TEXT).expect("a scenario");
    let files = s.files.expect("files");
    assert_eq!(files.swap_pages, 16_384);
    assert_eq!(files.disk.name, "wd400bb");
    assert_eq!(files.replace.to_string(), "linux-2.6.30");
    assert_eq!(s.policies[0].replace, None);
    let clock = s.policies[1].replace.as_ref().map(ToString::to_string);
    assert_eq!(clock.as_deref(), Some("clock"));
    assert!(parse(&TEXT.replace("[files]\nswap = \"64MiB\"\n", "")).is_err());
}

#[test]
fn what_cannot_be_is_refused_with_line_and_value() {
    let cases = [
        ("swap = \"64MiB\"", "swap = \"5000B\"", "files.swap"),
        ("swap = \"64MiB\"", "swap = \"1TiB\"", "files.swap"),
        (
            "swap = \"64MiB\"",
            "device = \"none\"",
            "files.device = \"none\": allowed: ",
        ),
        (
            "swap = \"64MiB\"",
            "readahead = \"3\"",
            "files.readahead = \"3\": allowed: ",
        ),
        (
            "swap = \"64MiB\"",
            "scheduler = \"x\"",
            "files.scheduler = \"x\": allowed: ",
        ),
        (
            "swap = \"64MiB\"",
            "layout = \"x\"",
            "files.layout = \"x\": allowed: ",
        ),
        (
            "swap = \"64MiB\"",
            "replace = \"lur\"",
            "\"lur\" is not known; allowed: ",
        ),
        (
            "\"clock\"",
            "\"min\"",
            "policy[1].replace = \"min\": it needs the future",
        ),
        ("\"clock\"", "\"clock:a=b\"", "policy[1].replace"),
        (
            "cores = \"0\"",
            "cores = \"0\"\nregions = 2",
            "program[0].regions",
        ),
        (
            "cores = \"0\"",
            "cores = \"0\"\non_limit = \"swap\"",
            "program[0].on_limit",
        ),
        ("replace = \"clock\"", "thp = true", "policy[1].thp = true"),
        (
            "replace = \"clock\"",
            "files = \"srn\"",
            "policy[1].files = \"srn\": allowed: \"none\", \"srm\", or",
        ),
        (
            "replace = \"clock\"",
            "files = \"srm:threshold=-1\"",
            "policy[1].files = \"srm:threshold=-1\": allowed: ",
        ),
        (
            "replace = \"clock\"",
            "files = \"srm:size=1\"",
            "with threshold, max_pages, idle_after",
        ),
        (
            "replace = \"clock\"",
            "files = \"srm:threshold=400\"",
            "policy[1].files: threshold = 400 pages; allowed: 1 to 383 (49152 frames, 128 colors)",
        ),
    ];
    for (from, to, message) in cases {
        let error = parse(&TEXT.replace(from, to)).expect_err(to);
        assert!(
            error.contains(message) && error.starts_with("s.toml:"),
            "{to}: {error}"
        );
    }
}

#[test]
fn a_policy_colors_the_pages_of_files() {
    let with = |files: &str| TEXT.replace("replace = \"clock\"", files);
    let s = parse(&with("files = \"srm:threshold=64,idle_after=9\"")).expect("a scenario");
    let config = s.policies[1].files.expect("SRM-buffer");
    assert_eq!((config.threshold, config.idle_after), (64, Some(9)));
    assert_eq!(s.policies[0].files, None);
    let none = parse(&with("files = \"none\"")).expect("a scenario");
    assert_eq!(none.policies[1].files, None);
    let without = with("files = \"srm\"").replace("[files]\nswap = \"64MiB\"\n", "");
    let error = parse(&without).expect_err("no files");
    assert!(error.contains("policy[1].files = \"srm\""), "{error}");
}
