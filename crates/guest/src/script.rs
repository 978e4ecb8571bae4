//! What the guest does: a script for its shell.

use std::{collections::BTreeMap, fmt::Write};

use piebald_experiment::{Measure, Policy, Program};

use crate::scenario::{Scenario, command, srm, vcpu};

/// Most pages of 4 KiB that ageing takes.
const MAX_AGE: u64 = 8192;

/// Exit codes of the script beside those of programs.
pub const CODES: [(i32, &str); 4] = [
    (101, "the disks or the control groups could not be mounted"),
    (
        102,
        "the module could not be loaded or did not take its colours",
    ),
    (103, "a program beside the target ended too early"),
    (104, "a program failed"),
];

/// There once the module has refused colours: programs may end with any status.
const REFUSED: &str = "/tmp/refused";

/// What the guest tells of the frames of the target's colours begins with this.
const FRAMES: &str = "told frames ";

/// Where the module has its colour sets.
const SETS: &str = "/sys/kernel/config/piebald";

/// What the end of a program means: nothing, colours that the module refused, or a failure.
fn ended() -> String {
    format!("ended() {{ [ ! -e {REFUSED} ] || exit 102; [ \"$1\" = 0 ] || exit \"$2\"; }}\n")
}

/// The script of one boot. `together`: the others run beside the target. `repetition`
/// decides how much memory is taken before anything runs, and so which frames are free.
pub fn script(scenario: &Scenario, policy: &Policy, together: bool, repetition: u32) -> String {
    let mut text = String::from("#!/bin/sh\nPATH=/piebald/programs:$PATH\n");
    text += &ended();
    if !scenario.experiment.file.is_empty() {
        text += "mkdir /data && mount -t ext4 -o ro /dev/vda /data || exit 101\n";
    }
    if scenario.scratch() > 0 {
        // A file that is cut to nothing and written again is written to the disk at once otherwise.
        let options = "-t ext4 -o noatime,noauto_da_alloc";
        let disk = if scenario.experiment.file.is_empty() {
            "/dev/vda"
        } else {
            "/dev/vdb"
        };
        let _ = writeln!(
            text,
            "mkdir /scratch && mount {options} {disk} /scratch || exit 101"
        );
    }
    if scenario.module(policy).is_some() {
        load(&mut text, scenario, policy);
    }
    let pages = age(scenario.experiment.seed.get(), repetition);
    let _ = writeln!(
        text,
        "dd if=/dev/zero of=/tmp/age bs=4096 count={pages} 2>/dev/null"
    );
    let others: Vec<&Program> = match together {
        true => scenario.polluters().collect(),
        false => Vec::new(),
    };
    // Once through, so that what they read lies in the page cache, in their colours.
    for program in &others {
        let _ = writeln!(
            text,
            "{}; ended $? 104",
            launch(scenario, program, policy, "once")
        );
    }
    for program in &others {
        let _ = writeln!(text, "{} &", launch(scenario, program, policy, "forever"));
        text += "others=\"$others $!\"\n";
    }
    let target = scenario.target();
    let how = match target.measure.unwrap_or_default() {
        Measure::SecondRun => "measured",
        Measure::Marks => "once",
    };
    let _ = writeln!(
        text,
        "{}; ended $? 104",
        launch(scenario, target, policy, how)
    );
    if scenario.colors(policy, target).is_some() {
        let set = set_of(scenario, target);
        let _ = writeln!(text, "sed 's/^/{FRAMES}/' {set}/frames >/dev/ttyS1");
    }
    // One that is there no more is asked how it ended.
    text += "for each in $others; do\n";
    text += "kill \"$each\" || { wait \"$each\"; ended $? 103; exit 103; }\ndone\n";
    text += "for each in $others; do wait \"$each\"; ended $? 103; done\n";
    text
}

/// Pages of 4 KiB that are taken before anything runs.
fn age(seed: u64, repetition: u32) -> u64 {
    let mixed = seed
        .wrapping_add(u64::from(repetition) + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1 + (mixed >> 32) % MAX_AGE
}

fn load(text: &mut String, scenario: &Scenario, policy: &Policy) {
    let map = policy.color_map.as_deref().unwrap_or_default();
    let map = map.join("\\n");
    let mut programs = scenario.experiment.program.iter();
    if programs.any(|program| scenario.colors(policy, program).is_some()) {
        *text += "mkdir /groups && mount -t cgroup2 cgroup2 /groups && \
                  mount -t configfs configfs /sys/kernel/config || exit 101\n";
        *text += "echo +memory >/groups/cgroup.subtree_control || exit 101\n";
    }
    *text += "insmod /piebald/policy.ko || exit 102\n";
    let _ = writeln!(text, "printf '{map}\\n' >/proc/piebald/map || exit 102");
    let zone = srm(policy);
    if let Some(threshold) = zone.and_then(|zone| zone.threshold) {
        let _ = writeln!(
            text,
            "echo {threshold} >/proc/piebald/threshold || exit 102"
        );
    }
    if zone.is_some() {
        *text += "echo 1 >/proc/piebald/srm || exit 102\n";
    }
    *text += "echo 1 >/proc/piebald/on || exit 102\n";
}

/// The command that runs a program on its processor, in a group with its colours. The group and its
/// set are made when the program is started first.
fn launch(scenario: &Scenario, program: &Program, policy: &Policy, how: &str) -> String {
    let words: Vec<String> = command(program).iter().map(|w| quote(w)).collect();
    let command = format!("launch {} {how} {}", vcpu(program), words.join(" "));
    match scenario.colors(policy, program) {
        None => command,
        Some([colors, mode]) => {
            let name = group_of(scenario, program);
            let (set, group) = (set_of(scenario, program), format!("/groups/{name}"));
            let enter = format!(
                "[ -e {set} ] || {{ mkdir {group} {set} && echo {mode} >{set}/mode && \
                 echo {colors} >{set}/colors && echo /{name} >{set}/attach; }} || \
                 {{ cat /proc/piebald/error; : >{REFUSED}; exit 1; }}; \
                 echo $$ >{group}/cgroup.procs && exec \"$@\""
            );
            format!("sh -c {} sh {command}", quote(&enter))
        }
    }
}

/// The name of a program's group: by its place, as its name may be anything that a shell has other uses for.
fn group_of(scenario: &Scenario, program: &Program) -> String {
    let mut all = scenario.experiment.program.iter();
    let place = all.position(|other| std::ptr::eq(other, program));
    format!("program-{}", place.unwrap_or(0) + 1)
}

/// The directory of its colours.
fn set_of(scenario: &Scenario, program: &Program) -> String {
    format!("{SETS}/{}", group_of(scenario, program))
}

/// Reads the numbers of the target's file `frames` out of what the guest told.
pub fn frames_told(said: &str) -> BTreeMap<String, u64> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(FRAMES));
    let pairs = lines.filter_map(|line| line.trim().split_once(' '));
    pairs
        .filter_map(|(name, number)| Some((name.to_owned(), number.parse().ok()?)))
        .collect()
}

/// A word as the shell reads it.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use piebald_experiment::{SrmOptions, Text, Zone};
    use piebald_units::Bytes;

    use super::*;

    fn scenario() -> Scenario {
        let text = r#"
            schema = 1
            [machine]
            preset = "w3540"
            [[file]]
            name = "text"
            size = "1MiB"
            [[program]]
            name = "sort"
            command = ["mergesort", "1000", "1"]
            vcpu = 0
            measure = "marks"
            [[program]]
            name = "grep"
            command = ["grep", "-c", "it's $HOME", "/data/text"]
            vcpu = 1
            role = "polluter"
            [[policy]]
            name = "stock"
            [[policy]]
            name = "one color"
            module = "piebald.ko"
            map = ["15", "16"]
            colors = { grep = "0 hard" }
        "#;
        Scenario::parse(text, Path::new("guest.toml")).expect("is good")
    }

    #[test]
    fn alone_means_alone() {
        let scenario = scenario();
        let alone = script(&scenario, &scenario.policies()[0], false, 0);
        assert!(
            !alone.contains("grep") && !alone.contains("insmod"),
            "{alone}"
        );
        assert!(alone.contains("launch 0 once 'mergesort' '1000' '1'; ended $? 104"));
    }

    #[test]
    fn who_writes_has_a_disk_of_its_own() {
        let mut scenario = scenario();
        let of = |s: &Scenario| script(s, &s.policies()[0], true, 0);
        assert!(!of(&scenario).contains("/scratch"));
        scenario.experiment.guest.scratch = Some(Text(Bytes(1 << 28)));
        assert!(of(&scenario).contains("/dev/vdb /scratch || exit 101"));
        scenario.experiment.file.clear();
        assert!(of(&scenario).contains("/dev/vda /scratch || exit 101"));
    }

    #[test]
    fn arguments_reach_programs_as_they_are() {
        let scenario = scenario();
        let both = script(&scenario, &scenario.policies()[0], true, 0);
        let line = r"launch 1 forever 'grep' '-c' 'it'\''s $HOME' '/data/text' &";
        assert!(both.lines().any(|l| l == line), "{both}");
        assert!(!both.contains("/proc/piebald"), "{both}");
    }

    #[test]
    fn programs_with_colors_enter_them_first() {
        let scenario = scenario();
        let both = script(&scenario, &scenario.policies()[1], true, 0);
        assert!(
            both.contains(r"printf '15\n16\n' >/proc/piebald/map"),
            "{both}"
        );
        for part in [
            "mount -t cgroup2 cgroup2 /groups",
            "echo hard >/sys/kernel/config/piebald/program-2/mode && ",
            "echo 0 >/sys/kernel/config/piebald/program-2/colors && ",
            "echo /program-2 >/sys/kernel/config/piebald/program-2/attach; } || { cat /proc/piebald/error; : >/tmp/refused; exit 1; }; ",
            r#"echo $$ >/groups/program-2/cgroup.procs && exec "$@"' sh launch 1 once"#,
        ] {
            assert!(both.contains(part), "{part}: {both}");
        }
        let target = both.lines().find(|l| l.contains("mergesort"));
        assert!(target.is_some_and(|l| l.starts_with("launch 0 once")));
    }

    #[test]
    fn frames_of_the_targets_colors_are_told() {
        let mut scenario = scenario();
        let of = |s: &Scenario| script(s, &s.policies()[1], true, 0);
        assert!(!of(&scenario).contains("/frames"), "it has none");
        let colors = &mut scenario.experiment.policy[1].colors;
        let some = colors["grep"].clone();
        colors.insert("sort".to_owned(), some);
        let text = of(&scenario);
        let line =
            "sed 's/^/told frames /' /sys/kernel/config/piebald/program-1/frames >/dev/ttyS1";
        assert!(text.lines().any(|l| l == line), "{text}");
        let said = "told frames total 8192\r\ntold frames others 3\nothers 4\ntold frames x y\n";
        let frames = frames_told(said);
        assert_eq!(
            (frames["total"], frames["others"], frames.len()),
            (8192, 3, 2)
        );
    }

    #[test]
    fn the_zone_is_switched_on_where_it_is_asked_for() {
        let mut scenario = scenario();
        let zone = "echo 1 >/proc/piebald/srm || exit 102";
        let without = script(&scenario, &scenario.policies()[1], true, 0);
        assert!(!without.contains("srm"), "{without}");
        scenario.experiment.policy[1].files = Some(Zone::Srm(SrmOptions {
            threshold: Some(64),
            ..SrmOptions::default()
        }));
        let with = script(&scenario, &scenario.policies()[1], true, 0);
        let threshold = "echo 64 >/proc/piebald/threshold || exit 102";
        let at = |line: &str| with.lines().position(|l| l == line);
        assert!(
            at(threshold).is_some() && at(threshold) < at(zone),
            "{with}"
        );
    }

    #[test]
    fn repetitions_begin_with_other_free_memory() {
        let scenario = scenario();
        let of = |r| script(&scenario, &scenario.policies()[0], true, r);
        assert_eq!(of(0), of(0));
        assert_ne!(of(0), of(1));
        let ages: Vec<u64> = (0..100).map(|r| age(1, r)).collect();
        assert!(ages.iter().all(|a| (1..=MAX_AGE).contains(a)));
        assert!(ages.iter().max() > Some(&(MAX_AGE / 2)));
    }
}
