//! Damaged input: cut at every byte, or one value wrong.

use piebald_trace::foreign::{ForeignThread, Format, Options, detect};
use piebald_units::op::Next;

use super::support::{Collected, Scratch, collect, own_bytes, read_bytes};

fn read(bytes: &[u8], format: Format) -> Collected {
    read_bytes(bytes, format, Options::default())
}

/// A cut is seen unless it falls between two records, and then what is there is right.
fn cut_everywhere(whole: &[u8], format: Format, record: usize) {
    let all = read(whole, format);
    assert_eq!(all.failure, None);
    for at in 0..whole.len() {
        let got = read(&whole[..at], format);
        assert!(all.refs.starts_with(&got.refs), "{format} cut at {at}");
        if at % record == 0 {
            assert_eq!(got.failure, None, "{format} cut at {at}");
            continue;
        }
        let failure = got
            .failure
            .unwrap_or_else(|| panic!("{format} cut at {at} is not seen"));
        let size = format!(" of {record} bytes");
        assert!(
            failure.contains("the file ends inside a") && failure.ends_with(&size),
            "{failure}"
        );
        assert_eq!(got.events.last().map(|e| e.2), Some(Next::Broken));
    }
}

#[test]
fn a_text_cut_inside_a_line_is_broken_unless_the_line_parses() {
    let texts: [(Vec<u8>, Format); 9] = [
        (own_bytes("chase.lackey"), Format::Lackey),
        (b"I 0400d7d4,8\n M 0421c7f0,4\n".to_vec(), Format::Lackey),
        (b"0 64\n12 128 4096\n".to_vec(), Format::RamulatorCpu),
        (b"0x40 R\n0x80 W\n".to_vec(), Format::RamulatorDram),
        (b"LD 0x40\nST 80\n".to_vec(), Format::Ramulator2LoadStore),
        (
            b"R 0,1,2\nW 0,1,3,17\n".to_vec(),
            Format::Ramulator2ReadWrite,
        ),
        (b"l 0x40 1\ns 0x80 12\n".to_vec(), Format::LoadStore),
        (b"2 4000\n0 7ff0\n1 7ff8 x\n".to_vec(), Format::Din),
        (
            b"0x40: R 0x80\n0x44: W 0x88\n#eof\n".to_vec(),
            Format::Pinatrace,
        ),
    ];
    for (text, format) in texts {
        let mut unended = 0;
        for at in 1..=text.len() {
            let cut = &text[..at];
            let lines = cut.iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
            let before = read(&cut[..lines], format);
            assert_eq!(before.failure, None, "{format} cut at {at}");
            let got = read(cut, format);
            assert!(got.refs.starts_with(&before.refs), "{format} cut at {at}");
            match got.failure {
                None => {
                    assert_eq!(got.notes.unended_lines, u64::from(lines < at));
                    unended += got.notes.unended_lines;
                }
                Some(why) => {
                    assert_eq!(got.refs, before.refs, "{format} cut at {at}");
                    let said = "; no line feed ends this line: the file may have been cut";
                    assert!(why.ends_with(said), "{format} cut at {at}: {why}");
                    assert_eq!(got.events.last().map(|e| e.2), Some(Next::Broken));
                }
            }
        }
        assert!(unended > 0, "{format}: no cut is taken");
    }
}

#[test]
fn a_binary_cut_inside_a_record_is_broken() {
    // Past the sixth load, which is enough for every kind of record boundary.
    let small = own_bytes("chase.champsim");
    cut_everywhere(&small[..20 * 64], Format::ChampSim, 64);
    let large = own_bytes("chase.cloudsuite");
    cut_everywhere(&large[..20 * 96], Format::CloudSuite, 96);
    let mut entries = Vec::new();
    let packed = own_bytes("chase.drmemtrace.7.trace.gz");
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut entries)
        .expect("unpacked");
    // The run's only update is left out: a cut between its load and its store leaves a load.
    let update = entries.len() - 12 * 7;
    cut_everywhere(&entries[..update], Format::DrMemtrace, 12);
}

#[test]
fn a_cut_container_is_broken_wherever_it_is_cut() {
    for (name, format) in [
        ("chase.lackey.zst", Format::Lackey),
        ("chase.champsim.xz", Format::ChampSim),
        ("chase.drmemtrace.7.trace.gz", Format::DrMemtrace),
        ("chase.drmemtrace.7.trace.zip", Format::DrMemtrace),
    ] {
        let whole = own_bytes(name);
        for at in 1..whole.len() {
            let thread = ForeignThread::from_bytes(name, &whole[..at], format, Options::default());
            // A zip has its directory at the end; without it there is nothing to open.
            let Ok(mut thread) = thread else {
                assert!(name.ends_with(".zip"), "{name} cut at {at}");
                continue;
            };
            let got = collect(&mut thread);
            assert_eq!(got.end(), Next::Broken, "{name} cut at {at}");
        }
    }
}

#[test]
fn flipped_bits_in_a_zip_do_not_pass_unseen() {
    let whole = own_bytes("chase.drmemtrace.7.trace.zip");
    let sound = read(&whole, Format::DrMemtrace);
    for at in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[at / 8] ^= 1 << (at % 8);
        let thread =
            ForeignThread::from_bytes("x.zip", &bytes, Format::DrMemtrace, Options::default());
        let Ok(mut thread) = thread else {
            continue;
        };
        let got = collect(&mut thread);
        if got.failure.is_none() {
            // Dates, names and flags may change; the data may not.
            assert_eq!(got, sound, "bit {at}");
        }
    }
}

#[test]
fn a_wrong_value_is_named_with_its_place_and_what_is_allowed() {
    let cases: [(Format, &str, &str); 14] = [
        (
            Format::Lackey,
            "I  00401000,3\n L 4g,8\n",
            "byte 14, line 2: the address is \"4g\"; allowed: a hexadecimal",
        ),
        (
            Format::Lackey,
            " L 40,0\n",
            "byte 0, line 1: the size is \"0\"; allowed: a decimal number from 1",
        ),
        (
            Format::Lackey,
            " L 40,16385\n",
            "the size is \"16385\"; allowed: a decimal number from 1 to 16384",
        ),
        (
            Format::Lackey,
            " L 40\n",
            "the place is \"40\"; allowed: address,size",
        ),
        (
            Format::Lackey,
            "usage: prog\n",
            "the line is \"usage: prog\"; allowed: \"I  address,size\"",
        ),
        (
            Format::Lackey,
            "==7== a\n==8== b\n",
            "byte 8, line 2: the process is 8; allowed: one process per log",
        ),
        (
            Format::LoadStore,
            "x 0x40 1\n",
            "the kind is \"x\"; allowed: l (load) or s (store)",
        ),
        (
            Format::LoadStore,
            "l 40 1\n",
            "the address is \"40\"; allowed: 0x and a hexadecimal",
        ),
        (
            Format::LoadStore,
            "l 0x40 4294967295\n",
            "the instruction count is \"4294967295\"; allowed: a decimal",
        ),
        (
            Format::LoadStore,
            "l 0x40 1 2\n",
            "the line is \"l 0x40 1 2\"; allowed: \"l|s 0xADDRESS",
        ),
        (
            Format::RamulatorCpu,
            "1 2\n-1 2\n",
            "byte 4, line 2: the bubble count is \"-1\"; allowed: a decimal",
        ),
        (
            Format::RamulatorCpu,
            "1 99999999999999999999\n",
            "the read address is \"99999999999999999999\"",
        ),
        (
            Format::RamulatorDram,
            "0x40 X\n",
            "the kind is \"X\"; allowed: R (read) or W (write)",
        ),
        (
            Format::RamulatorDram,
            "0x11111111111111111 R\n",
            "the address is \"0x11111111111111111\"",
        ),
    ];
    for (format, text, message) in cases {
        let got = read(text.as_bytes(), format);
        let failure = got.failure.unwrap_or_else(|| panic!("{text:?} is taken"));
        assert!(failure.contains(message), "{failure}\nlacks {message}");
    }
}

#[test]
fn champsim_flags_and_addresses_are_checked() {
    let whole = own_bytes("chase.champsim");
    for (at, value, message) in [
        (64 + 8, 2, "byte 64: is_branch is 2; allowed: 0 or 1"),
        (
            128 + 9,
            255,
            "byte 128: branch_taken is 255; allowed: 0 or 1",
        ),
    ] {
        let mut bytes = whole.clone();
        bytes[at] = value;
        let failure = read(&bytes, Format::ChampSim).failure.expect("a reason");
        assert!(failure.contains(message), "{failure}");
    }
    let mut bytes = whole;
    bytes[192..200].fill(0);
    let failure = read(&bytes, Format::ChampSim).failure.expect("a reason");
    assert!(
        failure.contains("byte 192: the instruction address is 0"),
        "{failure}"
    );
}

#[test]
fn a_line_without_end_is_refused_in_constant_memory() {
    let failure = read(&vec![b'1'; 1 << 21], Format::RamulatorCpu).failure;
    let failure = failure.expect("a reason");
    assert!(
        failure.contains("lines of less than 1048576 bytes"),
        "{failure}"
    );
    assert!(failure.len() < 300, "{failure}");
}

#[test]
fn the_largest_gaps_are_not_lost() {
    let text = b"4294967294 64\n4294967294 64\n";
    let got = read(text, Format::RamulatorCpu);
    assert_eq!(got.instructions(), 2 * 4_294_967_295);
    assert_eq!(got.failure, None);
}

#[test]
fn what_is_no_trace_is_refused_by_name() {
    for (bytes, message) in [
        (&b""[..], "the file is empty"),
        (b"\n \n", "only blank lines"),
        (
            b"BZh91AY&SY",
            "byte 0 of the unpacked stream cannot be read",
        ),
        (b"7z\xbc\xaf\x27\x1c", "this is a 7z file"),
        (b"\x04\x22\x4d\x18abcd", "this is an lz4 file"),
        (
            b"hello\n",
            "a text that begins with \"hello\"; allowed: lackey, champsim",
        ),
        (
            b"\x7fELF\x02\x01\x01\0\0\0\0",
            "a binary file that begins with \"\\x7fELF",
        ),
    ] {
        let file = Scratch::new("x", bytes);
        let error = detect(&file.0).expect_err("no format").to_string();
        assert!(error.contains(message), "{error}");
    }
    let missing = std::path::Path::new("/nonexistent/x");
    let error = detect(missing).expect_err("no file").to_string();
    assert!(error.contains("/nonexistent/x: cannot open"), "{error}");
}
