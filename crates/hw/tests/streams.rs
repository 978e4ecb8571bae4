//! Streams through the presets beside published figures: the table of `docs/machines.md`.

use std::{env, fmt::Write, fs, path::Path};

use crate::stream_kit::{Kernel, Rates, kernel_copy, sparse_product, steady};
use piebald_hw::{presets, spec::MachineSpec};

const BEGIN: &str = "<!-- streams:begin -->\n";
const END: &str = "<!-- streams:end -->\n";

/// Elements of 16 bytes that each core works on while it is measured.
const ELEMENTS: u64 = 8_000;

/// What was published of a machine, by the row's name; marks are those of the preset.
const PUBLISHED: [(&str, &str, &str); 9] = [
    (
        "x5355",
        "read, 1 core",
        "3.6 [AT-2294], a Xeon 5160 with the same chipset",
    ),
    (
        "x5355",
        "write, 1 core",
        "2.8 [AT-2294], a Xeon 5160 with the same chipset",
    ),
    (
        "i7-860",
        "triad, 1 core",
        "12 [AT-3648], a Xeon 5600 with DDR3-1333",
    ),
    (
        "i7-860",
        "copy, all cores",
        "17.3 [AT-2832], stores past the caches, an i7-870",
    ),
    (
        "i7-860",
        "triad, all cores",
        "17.3 [AT-2832], stores past the caches, an i7-870",
    ),
    (
        "w3540",
        "copy, all cores",
        "17.8 [AT-2832], stores past the caches, an i7-975 with DDR3-1066; prefetchers on",
    ),
    (
        "w3540",
        "triad, all cores",
        "17.8 [AT-2832], stores past the caches, an i7-975 with DDR3-1066; prefetchers on",
    ),
    (
        "opteron4x4",
        "kernel's copy from memory, 1 core",
        "1.8 [S2], with the system call",
    ),
    (
        "opteron4x4",
        "kernel's copy from caches, 1 core",
        "5.8 [S2], with the system call",
    ),
];

fn published(machine: &str, row: &str) -> &'static str {
    let found = PUBLISHED
        .iter()
        .find(|(of, name, _)| (*of, *name) == (machine, row));
    found.map_or("none found", |(_, _, text)| text)
}

struct Table {
    machine: String,
    text: String,
}

impl Table {
    fn rates(&mut self, row: &str, rates: Rates) {
        self.row(row, rates.asked, &format!("{:.2}", rates.pins));
    }

    fn row(&mut self, row: &str, asked: f64, pins: &str) {
        let Self { machine, text } = self;
        let published = published(machine, row);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {machine} | {row} | {asked:.2} | {pins} | {published} |"
        );
    }
}

fn rows(name: &str, text: String) -> String {
    let spec: MachineSpec = presets::load(name).unwrap_or_else(|e| panic!("{e}"));
    let cores = usize::from(spec.core.sockets * spec.core.per_socket);
    let machine = name.to_owned();
    let mut table = Table { machine, text };
    for (row, kernel) in [
        ("copy, all cores", Kernel::WideCopy),
        ("scale, all cores", Kernel::WideScale),
        ("add, all cores", Kernel::WideAdd),
        ("triad, all cores", Kernel::WideTriad),
        ("read, all cores", Kernel::WideRead),
    ] {
        table.rates(row, steady(&spec, kernel, cores, ELEMENTS));
    }
    for (row, kernel) in [
        ("triad, 1 core", Kernel::WideTriad),
        ("read, 1 core", Kernel::Read),
        ("write, 1 core", Kernel::Write),
    ] {
        table.rates(row, steady(&spec, kernel, 1, 2 * ELEMENTS));
    }
    for (row, on_chip) in [
        ("kernel's copy from memory, 1 core", false),
        ("kernel's copy from caches, 1 core", true),
    ] {
        table.row(row, kernel_copy(&spec, on_chip), "");
    }
    for (row, rows) in [
        ("sparse product of 0.7 MB, 1 core", 4_000),
        ("sparse product of 9.6 MB, 1 core", 50_000),
    ] {
        table.row(row, sparse_product(&spec, rows), "");
    }
    table.text
}

/// With `PIEBALD_BLESS=1` the table is written.
#[test]
fn the_page_of_machines_has_the_streams_as_they_are() {
    let head = "\n| machine | stream | GB/s asked for | GB/s on the pins | published, GB/s |\n\
                |---|---|---|---|---|\n";
    let presets = ["x5355", "i7-860", "w3540", "opteron4x4"];
    let made = presets
        .into_iter()
        .fold(head.to_owned(), |text, name| rows(name, text));
    let made = format!("{made}\n");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machines.md");
    let text = fs::read_to_string(&page).expect("the page is in the repository");
    let (before, rest) = text
        .split_once(BEGIN)
        .expect("the page marks the table's begin");
    let (there, after) = rest
        .split_once(END)
        .expect("the page marks the table's end");
    if there == made {
        return;
    }
    if env::var("PIEBALD_BLESS").as_deref() == Ok("1") {
        fs::write(&page, format!("{before}{BEGIN}{made}{END}{after}")).expect("written");
        return;
    }
    let what = "docs/machines.md is not what the presets give; PIEBALD_BLESS=1 cargo test -p \
                piebald-hw --test all streams:: writes it";
    assert_eq!(there, made, "{what}");
}

/// A figure without a row would say nothing.
#[test]
fn every_published_figure_has_a_row_and_names_a_source_of_its_preset() {
    for (machine, row, text) in PUBLISHED {
        let mark = text.split(['[', ']']).nth(1).expect("a mark");
        let spec = presets::load(machine).unwrap_or_else(|e| panic!("{e}"));
        assert!(spec.sources.contains_key(mark), "{machine} {mark}");
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machines.md");
        let page = fs::read_to_string(page).expect("the page is in the repository");
        let line = page
            .lines()
            .find(|l| l.starts_with(&format!("| {machine} | {row} |")));
        assert!(line.is_some_and(|l| l.contains(text)), "{machine} {row}");
    }
}
