//! The disks that come with the model: sources, and what a file's reader is told.

use crate::disk_kit::{preset, spec};
use piebald_hw::disk::{self, Disk, DiskError};

#[test]
fn every_preset_is_a_disk_under_its_own_name() {
    assert!(disk::presets().is_sorted());
    for name in disk::presets() {
        let disk = preset(name);
        assert_eq!(disk.spec().name, name);
        assert_eq!(disk.capacity_sectors(), disk.spec().capacity);
        assert_eq!(disk.validate(), Ok(()));
    }
}

#[test]
fn every_value_names_a_source_that_its_file_explains() {
    for name in disk::presets() {
        let sources = spec(name).sources;
        let text = disk::text(name).expect("a preset has a text");
        let mut table = "";
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.starts_with('[') && !line.starts_with("[[") && line.ends_with(']') {
                table = line;
            }
            let (value, comment) = line.split_once('#').unwrap_or((line, ""));
            let keyed = value.split_once('=').map(|(key, _)| key.trim());
            let plain = |k: &str| {
                k.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
            };
            let Some(key) = keyed.filter(|k| plain(k) && table != "[sources]") else {
                continue;
            };
            if matches!(key, "name" | "title") {
                continue;
            }
            let marks: Vec<&str> = comment
                .split('[')
                .skip(1)
                .filter_map(|part| part.split_once(']').map(|(mark, _)| mark))
                .collect();
            assert!(!marks.is_empty(), "{name}:{}: no mark: {line}", n + 1);
            for mark in marks {
                let known = sources.contains_key(mark);
                assert!(known, "{name}:{}: [{mark}] is not explained", n + 1);
            }
        }
    }
}

#[test]
fn an_unknown_preset_lists_those_that_exist() {
    let error = disk::by_name("floppy").unwrap_err().to_string();
    assert!(
        error.contains("\"floppy\"") && error.contains("st39102lw"),
        "{error}"
    );
}

/// A preset's text with one piece replaced, and the message that it then gives.
fn broken(name: &str, from: &str, to: &str) -> String {
    let text = disk::text(name).expect("a preset");
    assert!(text.contains(from), "{name} has no {from}");
    let text = text.replacen(from, to, 1);
    match disk::parse(&text, "my.toml") {
        Err(error) => error.to_string(),
        Ok(spec) => Disk::new(&spec).expect_err(to).to_string(),
    }
}

#[test]
fn errors_name_file_line_key_value_and_what_is_allowed() {
    let cases = [
        (
            "rpm = 10045",
            "rpm = 3",
            "zoned.mechanics.rpm = 3: 60 to 1000000",
        ),
        (
            "surfaces = 12",
            "surfaces = 0",
            "zoned.surfaces = 0: 1 to 64",
        ),
        ("surfaces = 12", "surfaces = \"x\"", "zoned.surfaces: "),
        (
            "first = 848",
            "first = 846",
            "zoned.zones[1].first = 846: 847 to 6961",
        ),
        (
            "last = 846",
            "last = 9000",
            "zoned.zones[0].last = 9000: 0 to 6961",
        ),
        (
            "sectors = 254",
            "sectors = 0",
            "zoned.zones[0].sectors = 0: 1 to 65535",
        ),
        (
            "spares = 1270",
            "spares = 3",
            "zoned.zones[0].spares = 3: at least the 34 slips",
        ),
        (
            "168317, 223330",
            "223330, 223330",
            "zoned.zones[0].slips[1] = 223330: 223331 to ",
        ),
        (
            "capacity = 17783240",
            "capacity = 18000000",
            "capacity = 18000000: at most the 17918387",
        ),
        ("[1, 831]", "[2, 831]", "first distance 2"),
        (
            "[2, 1003]",
            "[1, 1003]",
            "points[1] = 1: a distance above 1",
        ),
        ("depth = 1 ", "depth = 0 ", "queue.depth = 0: 1 to 65536"),
        (
            "head_switch = \"0.03ms\"",
            "head_switch = \"3\"",
            "zoned.mechanics.head_switch",
        ),
        (
            "write_segments = 3",
            "write_segments = 4",
            "zoned.buffer.write_segments = 4: 1 to 3",
        ),
        ("mapping = \"ascending\"", "mapping = \"up\"", "turning"),
        ("[zoned.bus]", "[zoned.buss]", "buss"),
    ];
    for (from, to, expected) in cases {
        let message = broken("st39102lw", from, to);
        assert!(message.contains(expected), "{to}: {message}");
    }
    let text = disk::text("st39102lw").expect("a preset");
    let line = |key: &str| 1 + text.lines().position(|l| l.starts_with(key)).expect(key);
    for (from, to, key) in [
        ("rpm = 10045", "rpm = 3", "rpm = "),
        ("last = 846", "last = 9000", "zones = "),
        ("[2, 1003]", "[1, 1003]", "seek.points = "),
        ("surfaces = 12", "surfaces = \"x\"", "surfaces = "),
    ] {
        let message = broken("st39102lw", from, to);
        let place = format!("my.toml:{}: ", line(key));
        assert!(message.starts_with(&place), "{place}{message}");
    }
}

#[test]
fn a_disk_is_of_exactly_one_kind() {
    let average = "\n[average]\naccess = \"9ms\"\nsector = \"0ms\"\n";
    let two = format!("{}{average}", disk::text("nvme").expect("a preset"));
    let error = disk::parse(&two, "two.toml").unwrap_err();
    assert!(matches!(error, DiskError::Spec { .. }));
    let message = error.to_string();
    assert!(
        message.contains("average, flash") && message.contains("exactly one"),
        "{message}"
    );
}
