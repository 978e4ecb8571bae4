//! Small formats, line by line, and texts that are odd.

use piebald_trace::convert::convert;
use piebald_trace::foreign::{Fetches, ForeignTrace, Format, Options, detect};
use piebald_trace::recording::{Recording, ReplayOptions, is_recording};
use piebald_units::op::{MemRef, Next, OpSource, RefKind};

use super::support::{Collected, Scratch, read_bytes};

const ALL: Options = Options {
    fetches: Fetches::All,
    prefetches: false,
};

/// Kind, address, size and gap of each reference.
fn refs(run: &Collected) -> Vec<(RefKind, u64, u8, u32)> {
    assert_eq!(run.failure, None);
    let row = |r: &MemRef| (r.kind, r.addr.0, r.size, r.gap);
    run.refs.iter().map(row).collect()
}

use RefKind::{Fetch, Load, Store, Update};

#[test]
fn ramulator2_load_store_takes_both_kinds_of_numbers() {
    let run = read_bytes(
        b"LD 0x229f6f80\n\nST 4100\n",
        Format::Ramulator2LoadStore,
        ALL,
    );
    assert_eq!(
        refs(&run),
        [(Load, 0x229f_6f80, 64, 1), (Store, 4100, 60, 1)]
    );
    assert_eq!(run.end(), Next::End);
}

#[test]
fn ramulator2_read_write_makes_neighbours_of_columns() {
    let text = b"W 0,1,2,3,8\nR 0,1,2,3,16\nR 0,1,2,4,8\n";
    let run = read_bytes(text, Format::Ramulator2ReadWrite, ALL);
    let rows = refs(&run);
    assert_eq!((rows[0].0, rows[1].0), (Store, Load));
    assert_eq!(rows[1].1, rows[0].1 + 64);
    assert_eq!(rows[2].1, rows[0].1 + (1 << 14));
    assert!(
        Format::Ramulator2ReadWrite
            .assumes()
            .is_some_and(|a| a.contains("coordinates"))
    );
}

#[test]
fn the_cache_labs_lines_are_lackeys_with_one_blank() {
    let text = b"I 0400d7d4,8\n M 0421c7f0,4\n L 04f6b868,8\n S 7ff0005c8,8\n";
    let run = read_bytes(text, Format::Lackey, ALL);
    let expected = [
        (Fetch, 0x400_d7d4, 8, 1),
        (Update, 0x421_c7f0, 4, 0),
        (Load, 0x4f6_b868, 8, 0),
        (Store, 0x7_ff00_05c8, 8, 0),
    ];
    assert_eq!(refs(&run), expected);
    let two = String::from_utf8_lossy(text).replace("I ", "I  ");
    assert_eq!(
        refs(&read_bytes(two.as_bytes(), Format::Lackey, ALL)),
        expected
    );
}

#[test]
fn lackey_takes_time_stamps_and_blocks_of_instructions() {
    let text =
        b"==00:00:00:00.412 77== Lackey, an example Valgrind tool\nSB 0400d7d4\nI  0400d7d4,8\n \
        L 04f6b868,8\n==00:00:00:00.512 77== Exit code:       3\n";
    let run = read_bytes(text, Format::Lackey, ALL);
    let expected = [(Fetch, 0x400_d7d4, 8, 1), (Load, 0x4f6_b868, 8, 0)];
    assert_eq!(refs(&run), expected);
    assert_eq!(run.end(), Next::Exit(3));
    let file = Scratch::new("lackey", text);
    assert_eq!(detect(&file.0).expect("a format"), Format::Lackey);
    let wrong = read_bytes(b"I  0400d7d4,8\nSB 4o\n", Format::Lackey, ALL);
    assert!(wrong.failure.is_some(), "{wrong:?}");
}

#[test]
fn din_labels_are_reads_writes_and_fetches() {
    let text =
        b"0 7ff0005c8\n2 400d7d4\n0 7ff0005fe a comment\n1 10\n2 400d7d8\n2 5000\n4 0\n3 9\n";
    let run = read_bytes(text, Format::Din, ALL);
    assert_eq!(
        refs(&run),
        [
            // Before any instruction, a reference counts as one.
            (Load, 0x7_ff00_05c8, 4, 1),
            (Fetch, 0x400_d7d4, 1, 1),
            (Load, 0x7_ff00_05fe, 2, 0),
            (Store, 0x10, 4, 0),
            (Fetch, 0x400_d7d8, 1, 1),
            (Fetch, 0x5000, 1, 1),
        ]
    );
    assert_eq!(run.refs[2].site, 0x400_d7d4);
    // The jump within the line is seen, the instruction behind is not fetched again.
    let run = read_bytes(b"2 1000\n2 1004\n2 1030\n", Format::Din, Options::default());
    let at: Vec<u64> = run.refs.iter().map(|r| r.addr.0).collect();
    assert_eq!(at, [0x1000, 0x1030]);
}

#[test]
fn pinatrace_joins_a_read_and_a_write_of_one_instruction() {
    let text = b"0x10: R 0x80\n0x14: R 0x90\n0x14: W 0x90\n0x18: R 0xa0\n0x18: W 0xb8\n\
        0x1c: W 0xbc\n0x1c: W 0xbc\n0x20: R 0xc0\n#eof\n";
    let run = read_bytes(text, Format::Pinatrace, ALL);
    assert_eq!(
        refs(&run),
        [
            (Fetch, 0x10, 1, 1),
            (Load, 0x80, 8, 0),
            (Fetch, 0x14, 1, 1),
            (Update, 0x90, 8, 0),
            (Fetch, 0x18, 1, 1),
            (Load, 0xa0, 8, 0),
            (Store, 0xb8, 8, 0),
            (Fetch, 0x1c, 1, 1),
            (Store, 0xbc, 4, 0),
            (Fetch, 0x1c, 1, 1),
            (Store, 0xbc, 4, 0),
            (Fetch, 0x20, 1, 1),
            (Load, 0xc0, 8, 0),
        ]
    );
    // What is held comes out before the end, and before damage.
    let cut = read_bytes(
        b"0x10: R 0x80\n0x14: R",
        Format::Pinatrace,
        Options::default(),
    );
    assert_eq!((cut.refs.len(), cut.end()), (2, Next::Broken));
}

#[test]
fn wrong_lines_of_small_formats_are_named() {
    for (format, text, message) in [
        (
            Format::Ramulator2LoadStore,
            "LD\n",
            "the line is \"LD\"; allowed: \"LD|ST ADDRESS\"",
        ),
        (
            Format::Ramulator2LoadStore,
            "ld 0x1\n",
            "the kind is \"ld\"; allowed: LD (load) or ST (store)",
        ),
        (
            Format::Ramulator2LoadStore,
            "ST 9223372036854775808\n",
            "the address is \"9223372036854775808\"",
        ),
        (Format::Ramulator2ReadWrite, "R 1\n", "the line is \"R 1\""),
        (Format::Din, "5 10\n", "the label is \"5\"; allowed: 0 to 4"),
        (
            Format::Din,
            "0 0x10\n",
            "the address is \"0x10\"; allowed: a hexadecimal",
        ),
        (
            Format::Din,
            "0\n",
            "the line is \"0\"; allowed: \"label address\"",
        ),
        (
            Format::Pinatrace,
            "0x10 R 0x80\n",
            "the line is \"0x10 R 0x80\"",
        ),
        (Format::Pinatrace, "0x10: X 0x80\n", "the kind is \"X\""),
        (Format::Pinatrace, "0x10: R 80\n", "the address is \"80\""),
    ] {
        let failure = read_bytes(text.as_bytes(), format, ALL)
            .failure
            .expect(text);
        assert!(failure.contains(message), "{failure}\nlacks {message}");
        assert!(failure.starts_with("input: byte 0, line 1: "), "{failure}");
    }
}

/// A short trace of each text format, without a line feed at its end.
const UNENDED: [(Format, &str, usize); 8] = [
    (Format::Lackey, "I  04000010,3\n L 1ffeff,8", 2),
    (Format::RamulatorCpu, "3 9618752\n0 9618816 9618880", 3),
    (Format::RamulatorDram, "0x12345680 R\n0x4cbd56c0 W", 2),
    (Format::Ramulator2LoadStore, "LD 0x229f6f80\nST 4096", 2),
    (Format::Ramulator2ReadWrite, "W 0,1,2,3,4\nR 0,1,2,3,5", 2),
    (Format::LoadStore, "s 0x1fffff50 1\nl 0x1fffff58 1", 2),
    (Format::Din, "2 400d7d4\n0 7ff0005c8", 2),
    (
        Format::Pinatrace,
        "0x7f0a1b2c: R 0x7ffd0010\n0x7f0a1b30: W 0x80",
        4,
    ),
];

#[test]
fn a_last_line_without_line_feed_counts_in_every_text_and_is_noted() {
    for (format, text, n) in UNENDED {
        for (text, unended) in [(text.to_owned(), 1), (format!("{text}\n"), 0)] {
            let run = read_bytes(text.as_bytes(), format, ALL);
            assert_eq!((run.refs.len(), run.failure), (n, None), "{format}");
            assert_eq!(run.notes.unended_lines, unended, "{format}");
            let file = Scratch::new("x", text.as_bytes());
            assert_eq!(detect(&file.0).expect(&text), format);
            let trace = ForeignTrace::at(&[&file.0, &file.0], None, ALL).expect("a trace");
            let sum = trace.summary(100).expect("a summary");
            assert_eq!(sum.notes.unended_lines, 2 * unended, "{format}");
        }
    }
}

#[test]
fn a_byte_order_mark_is_dropped_and_noted_in_every_text() {
    for (format, text, n) in UNENDED {
        let text = format!("\u{feff}{text}\n");
        let run = read_bytes(text.as_bytes(), format, ALL);
        assert_eq!((run.refs.len(), run.failure), (n, None), "{format}");
        assert_eq!(
            (run.notes.byte_order_marks, run.notes.unended_lines),
            (1, 0)
        );
        let file = Scratch::new("x", text.as_bytes());
        assert_eq!(detect(&file.0).expect(&text), format);
    }
}

#[test]
fn small_formats_become_recordings_that_replay_the_same_addresses() {
    for (format, text, _) in UNENDED {
        let file = Scratch::new("x", text.as_bytes());
        let out = file.0.with_extension("pbr");
        let made = convert(&[&file.0], None, &out).expect("converts");
        assert_eq!(made.format, format);
        assert!(
            made.assumes.iter().any(|a| a.contains("no line feed")),
            "{:?}",
            made.assumes
        );
        assert!(is_recording(&out).expect("reads") && !is_recording(&file.0).expect("reads"));
        let recording = Recording::open(&out).expect("opens");
        let mut source = recording
            .source(0, ReplayOptions::default())
            .expect("a thread");
        let mut buffer = [MemRef::default(); 64];
        let mut replayed = Vec::new();
        loop {
            let filled = source.fill(&mut buffer);
            replayed.extend_from_slice(&buffer[..filled.refs]);
            if matches!(filled.next, Next::End | Next::Exit(_) | Next::Broken) {
                break;
            }
        }
        let data = |refs: &[MemRef]| -> Vec<(RefKind, u64)> {
            let data = refs.iter().filter(|r| r.kind != Fetch);
            data.map(|r| (r.kind, r.addr.0)).collect()
        };
        let before = read_bytes(text.as_bytes(), format, ALL);
        assert_eq!(data(&replayed), data(&before.refs), "{format}");
    }
}
