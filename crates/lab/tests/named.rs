//! Draws that follow from names, hardware threads that are dealt out, and shorter programs.

use crate::kit;
use piebald_report::Study;

const TEXT: &str = "schema = 2\nseed = 7\nrepetitions = 2\nbudget_refs = \"20k\"\nwarmup_refs = \"5k\"\n\
    draws = \"names\"\ndeal = { cores = \"0-3\", name = \"x\", number = \"1\" }\n\
    [machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n\
    [output]\nset_map = 0\n\
    [[program]]\nname = \"a\"\nbuiltin = \"gups:256KiB\"\nredraw = true\nenter = \"50%\"\n";
const OTHER: &str = "[[program]]\nname = \"b\"\nbuiltin = \"triad:256KiB\"\nenter = \"50%\"\n";

fn run(text: &str) -> Study {
    kit::run(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Times of a program alone.
fn alone(study: &Study, name: &str) -> Vec<u64> {
    let programs = &study.policies[0].programs;
    let program = programs.iter().find(|p| p.name == name);
    let times = program.map(|p| p.alone.time_ps.values.iter().map(|t| t.to_bits()));
    times.into_iter().flatten().collect()
}

#[test]
fn a_program_alone_is_the_same_in_all_files_if_draws_follow_from_names() {
    let by_itself = alone(&run(TEXT), "a");
    assert_eq!(by_itself.len(), 2);
    assert_ne!(by_itself[0], by_itself[1]);
    let (head, own) = TEXT.split_at(TEXT.find("[[program]]").unwrap_or(0));
    // Behind another program, dealt by another name.
    let second = format!("{head}{OTHER}{own}");
    assert_eq!(alone(&run(&second), "a"), by_itself);
    let dealt = second.replace("name = \"x\"", "name = \"y\"");
    assert_eq!(alone(&run(&dealt), "a"), by_itself);
    let places = second.replace("draws = \"names\"\n", "");
    assert_ne!(alone(&run(&places), "a"), by_itself);
}

#[test]
fn a_program_has_the_share_of_the_budget_that_it_says() {
    let refs = |length: &str| {
        let study = run(&TEXT.replace("enter", &format!("{length}enter")));
        study.policies[0].programs[0].alone.refs.mean.round()
    };
    assert_eq!(refs(""), 20_000.0);
    assert_eq!(refs("length = 0.25\n"), 5_000.0);
    assert_eq!(refs("length = \"25%\"\n"), 5_000.0);
    assert_eq!(refs("length = \"0.25\"\n"), 5_000.0);
    assert_eq!(refs("length = 1\n"), 20_000.0);
}

#[test]
fn a_built_in_program_is_met_after_its_set_up_if_that_is_in_a_share_of_its_life() {
    let refs = |text: &str| run(text).simulated_refs;
    let text = TEXT.replace("gups:256KiB", "fft:4096");
    let (late, whole) = (refs(&text), refs(&text.replace("enter = \"50%\"\n", "")));
    // Two repetitions of 25,000 references, and 8192 of set-up.
    assert!((50_000..60_000).contains(&late), "{late}");
    assert!(whole > late + 8_000, "{whole} {late}");
}

#[test]
fn wrong_keys_are_refused_with_line_and_what_is_allowed() {
    kit::refused(
        TEXT,
        &[
            (
                "draws = \"names\"",
                "draws = \"ages\"",
                6,
                "draws = \"ages\": allowed: ",
            ),
            ("\"0-3\"", "\"0-63\"", 7, "cores of this machine, 0-"),
            ("number", "numbers", 7, "numbers"),
            (
                "enter = \"50%\"",
                "enter = \"150%\"",
                17,
                "enter = \"150%\": allowed: ",
            ),
            (
                "enter = \"50%\"",
                "length = 0",
                17,
                "length = 0: allowed: a share above 0",
            ),
            (
                "enter = \"50%\"",
                "length = \"110%\"",
                17,
                "length = \"110%\": allowed: a share above 0",
            ),
            (
                "enter = \"50%\"",
                "cores = \"0\"",
                7,
                "all programs have cores",
            ),
        ],
    );
    let two = format!("{TEXT}{OTHER}").replace("\"0-3\"", "\"0\"");
    let refused = kit::parse(&two).expect_err("one for two programs");
    assert!(
        refused.contains(
            "deal.cores = \"0\": allowed: as many as there are programs without cores, 2"
        ),
        "{refused}"
    );
}
