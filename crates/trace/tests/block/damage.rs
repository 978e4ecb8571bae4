//! Damaged input: cut at every byte, one value wrong, or out of order.

use std::io::Write as _;

use piebald_trace::block::{BlockTrace, Format, Options};

use super::support::{open, options, read, sample};

fn lenient(format: Format) -> Options {
    Options {
        lenient: true,
        ..options(format)
    }
}

#[test]
fn a_wrong_value_is_named_with_its_place_and_what_is_allowed() {
    let cases: [(Format, &str, &str); 32] = [
        (
            Format::Msr,
            "1,h,0,Read,0,512\n",
            "line 1: the line is \"1,h,0,Read,0,512\"; allowed: Timestamp,",
        ),
        (
            Format::Msr,
            "1,h,0,Read,0,512,9\n1,h,0,Trim,0,512,9\n",
            "line 2: the type is \"Trim\"; allowed: Read, Write, R or W",
        ),
        (
            Format::Msr,
            "184467440737095517,h,0,Read,0,512,9\n",
            "the timestamp is \"184467440737095517\"; allowed: a number of 100 ns",
        ),
        (
            Format::Msr,
            "1,h,0,Read,-512,512,9\n",
            "the offset is \"-512\"; allowed: a decimal",
        ),
        (
            Format::Msr,
            "1,h,0,Read,18446744073709551615,1,9\n",
            "the last byte is 18446744073709551615 + 1",
        ),
        (Format::Msr, "1,,0,Read,0,1,9\n", "the host name is \"\""),
        (
            Format::Spc,
            "0,0,512,R\n",
            "allowed: ASU,LBA,Size,Opcode,Timestamp",
        ),
        (
            Format::Spc,
            "0,0,512,X,0\n",
            "the opcode is \"X\"; allowed: R (read) or W (write)",
        ),
        (
            Format::Spc,
            "0,18014398509481984,512,R,0\n",
            "the last sector is 18014398509481984 + 1; allowed: up to 18014398509481984",
        ),
        (
            Format::Spc,
            "4294967296,0,512,R,0\n",
            "the ASU is \"4294967296\"; allowed: a decimal number from 0 to 4294967295",
        ),
        (Format::Systor17, "1.5,0,Q,0,0,512\n", "the IOType is \"Q\""),
        (
            Format::Systor17,
            "1.5s,0,R,0,0,512\n",
            "the timestamp is \"1.5s\"; allowed: seconds",
        ),
        (
            Format::Tencent,
            "1,0,8,2,7\n",
            "the IOType is \"2\"; allowed: 0 (read) or 1 (write)",
        ),
        (
            Format::LibCacheSimCsv,
            "time,id\n1,2\n",
            "line 1: the header is \"time,id\"",
        ),
        (
            Format::LibCacheSimCsv,
            "time,lbn\n1\n",
            "line 2: the line is \"1\"; allowed: as many fields",
        ),
        (
            Format::LibCacheSimCsv,
            "lbn,op\n1,xyz\n",
            "the op is \"xyz\"",
        ),
        (
            Format::Ids,
            "1\n-2\n",
            "byte 2, line 2: the block is \"-2\"",
        ),
        (
            Format::Ids,
            "99999999999999999999\n",
            "the block is \"99999999999999999999\"",
        ),
        (
            Format::Arc,
            "1 2 0\n",
            "the line is \"1 2 0\"; allowed: start_block",
        ),
        (Format::Arc, "1 x 0 0\n", "the number of blocks is \"x\""),
        (
            Format::DiskSim,
            "0.5 0 0 8 R\n",
            "the flags is \"R\"; allowed: a hexadecimal",
        ),
        (
            Format::DiskSimValidate,
            "R 5 0 8 1.0 1.0\n",
            "the cache's answer is \"5\"",
        ),
        (
            Format::DiskSimValidate,
            "R Hit 0 8 1.0 -1.0\n",
            "the inter-arrival time is \"-1.0\"",
        ),
        (
            Format::Blkparse,
            "8,0 0 1 0.1 5 Q R 100 - 8 [x]\n",
            "allowed: \"sector + sectors\" behind the kind",
        ),
        (
            Format::Blkparse,
            "8.0 0 1 0.1 5 Q R 100 + 8 [x]\n",
            "the device is \"8.0\"; allowed: major,minor",
        ),
        (
            Format::Fpt,
            "F 0 1 a\nR 1 1 0 1\n",
            "line 2: the file id is 1; allowed: an id that an earlier",
        ),
        (
            Format::Fpt,
            "F 0 1 a\nF 0 1 b\n",
            "line 2: the file id is 0; allowed: one declaration",
        ),
        (
            Format::Fpt,
            "F 0 1 a\nR 1 0 2251799813685248 1\n",
            "allowed: page numbers up to",
        ),
        (
            Format::Fpt,
            "F 0 -2 a\n",
            "the size is \"-2\"; allowed: -1 or",
        ),
        (
            Format::Fio,
            "fio version 9 iolog\n",
            "the first line is \"fio version 9 iolog\"",
        ),
        (
            Format::Fio,
            "fio version 2 iolog\n/f read 0 8\n",
            "line 2: the file is \"/f\"; allowed: one that an earlier",
        ),
        (
            Format::Fio,
            "fio version 2 iolog\n/f add\n/f read 0\n",
            "line 3: the line is \"/f read 0\"; allowed: file action offset",
        ),
    ];
    for (format, text, message) in cases {
        let failure = read(text.as_bytes(), options(format)).1;
        let failure = failure.unwrap_or_else(|| panic!("{format}: {text:?} is taken"));
        assert!(failure.contains(message), "{failure}\nlacks {message}");
        assert!(failure.starts_with("input: byte "), "{failure}");
    }
}

/// One byte of a sample changed.
fn changed(format: Format, at: usize, value: u8) -> String {
    let mut bytes = sample(format);
    bytes[at] = value;
    let failure = read(&bytes, options(format)).1;
    failure.unwrap_or_else(|| panic!("{format} byte {at} is taken"))
}

#[test]
fn wrong_values_in_binary_records_are_named_with_their_place() {
    for (format, at, value, message) in [
        (
            Format::Blktrace,
            48,
            0,
            "byte 48: the magic number is 0x65617400",
        ),
        (
            Format::VscsiV1,
            47,
            2,
            "byte 32: the version is 512; allowed: 256 to 511",
        ),
        (
            Format::VscsiV1,
            45,
            1,
            "byte 32: the command is 298; allowed: a SCSI",
        ),
        (Format::VscsiV1, 31, 255, "byte 0: the time is"),
        (
            Format::VscsiV2,
            3,
            1,
            "byte 0: the version is 257; allowed: 512 to 767",
        ),
        (
            Format::OracleGeneral,
            16,
            1,
            "byte 0: the next use is 1; allowed: -1 or 9223372036854775807 (none), or the number",
        ),
        (
            Format::OracleGeneralOpNs,
            16,
            77,
            "byte 0: the operation is 77; allowed: 0 to 15, or 255",
        ),
        (
            Format::Lcs,
            8,
            9,
            "byte 0: the version is 9; allowed: 2 to 8",
        ),
        (
            Format::LcsV1,
            8191,
            0,
            "byte 0: the magic number at the header's end is 0x00345678",
        ),
        (
            Format::Lcs,
            8192 + 19,
            1,
            "byte 8192: the size is 72057594037928448; allowed: 0 to 4294967295 bytes",
        ),
        (
            Format::AccuSim,
            12,
            5 << 5 | 31,
            "byte 12: the type is 31; allowed: 0 to 9, 13 or 14",
        ),
        (
            Format::AccuSim,
            6,
            1,
            "byte 0: the length of the name is 65540; allowed: 0 to 4096",
        ),
    ] {
        let failure = changed(format, at, value);
        assert!(
            failure.contains(message),
            "{format}: {failure}\nlacks {message}"
        );
    }
}

#[test]
fn lenient_reading_leaves_out_and_counts() {
    let long = "9".repeat(2_000_000);
    let text = format!("1 8 0 0\nhello\n2 8 0 x\n{long}\n3 8 0 3\n4 8 0");
    let mut trace = open(text.as_bytes(), lenient(Format::Arc));
    let mut batch = Vec::new();
    assert!(trace.next_batch(&mut batch).expect("lenient"));
    assert_eq!(batch.len(), 2);
    assert!(!trace.next_batch(&mut batch).expect("lenient"));
    let skipped = trace.skipped();
    let counts: Vec<(&str, u64)> = skipped.by_field.iter().map(|(f, n)| (*f, *n)).collect();
    assert_eq!(
        counts,
        [
            ("the cut record at the end", 1),
            ("the line", 1),
            ("the line has 1048576 bytes or more, its beginning", 1),
            ("the request number", 1)
        ]
    );
    let first = skipped.first.as_deref().expect("a first");
    assert!(first.contains("line 2: the line is \"hello\""), "{first}");
}

#[test]
fn lenient_reading_of_blktrace_finds_the_next_record() {
    let mut bytes = sample(Format::Blktrace);
    // The second record's payload is lost, and with it the place of the third.
    bytes.drain(96..100);
    let (strict, failure) = read(&bytes, options(Format::Blktrace));
    assert_eq!(strict.len(), 1);
    assert!(failure.expect("a reason").contains("the magic number"));
    let (found, failure) = read(&bytes, lenient(Format::Blktrace));
    assert_eq!((found.len(), failure), (3, None));
}

#[test]
fn steps_back_in_time_are_counted_and_not_errors() {
    let trace = |text: &str, options| {
        let mut trace = open(text.as_bytes(), options);
        let mut batch = Vec::new();
        while trace.next_batch(&mut batch).expect("reads") {}
        trace.notes()
    };
    let notes = trace(
        "9,0,8,0,1\n7,0,8,0,1\n8,0,8,0,1\n",
        options(Format::Tencent),
    );
    assert_eq!(
        (notes.backward, notes.largest_step_back_ns),
        (2, 2_000_000_000)
    );
    // The third is later than the second, but earlier than the first.
    for (format, text, unit) in [
        (Format::Mqsim, "9 0 0 8 1\n7 0 0 8 1\n8 0 0 8 1\n", 1),
        (
            Format::Spc,
            "0,0,512,R,9\n0,0,512,R,7\n0,0,512,R,8\n",
            1_000_000_000,
        ),
        (
            Format::DiskSim,
            "9.5 0 0 8 1\n7.5 0 0 8 1\n8.5 0 0 8 1\n",
            1_000_000,
        ),
        (
            Format::LibCacheSimCsv,
            "lbn,time\n0,9\n0,7\n0,8\n",
            1_000_000_000,
        ),
        (
            Format::Fio,
            "fio version 3 iolog\n0 /f add\n9 /f read 0 1\n7 /f read 0 1\n8 /f read 0 1\n",
            1000,
        ),
    ] {
        for options in [options(format), lenient(format)] {
            let notes = trace(text, options);
            let counted = (notes.backward, notes.largest_step_back_ns);
            assert_eq!(counted, (2, 2 * unit), "{format}");
        }
    }
    for format in [
        Format::VscsiV1,
        Format::VscsiV2,
        Format::OracleGeneral,
        Format::LcsV1,
    ] {
        let mut bytes = sample(format);
        if format == Format::VscsiV1 {
            bytes[32 + 24] = 0;
        } else if format == Format::VscsiV2 {
            bytes[40 + 24] = 0;
        }
        let (requests, failure) = read(&bytes, options(format));
        assert_eq!((requests.len() >= 3, failure), (true, None), "{format}");
        let mut trace = open(&bytes, options(format));
        while trace.next_batch(&mut Vec::new()).expect("reads") {}
        assert_eq!(trace.notes().backward, 1, "{format}");
    }
}

#[test]
fn what_came_before_the_damage_is_handed_out() {
    let mut text: String = (0..10_000).map(|n| format!("{n}\n")).collect();
    text += "x\n5\n";
    let (requests, failure) = read(text.as_bytes(), options(Format::Ids));
    assert_eq!(requests.len(), 10_000);
    assert!(
        failure
            .expect("a reason")
            .contains("line 10001: the block is \"x\"")
    );
}

#[test]
fn what_is_no_trace_is_refused_by_name() {
    for (bytes, message) in [
        (&b""[..], "input: the file is empty"),
        (b"\n \n", "only blank lines"),
        (
            b"hello, world\n",
            "a text that begins with \"hello, world\"; --format takes one of those that `piebald trace formats` lists",
        ),
        (
            b"1,h,0,Read,0,512,9\n1,h,0,Read,0,x,9\n",
            "as msr it goes wrong at byte 19, line 2: the size is \"x\"",
        ),
        (
            b"\x7fELF\x02\x01\x01\0\0\0\0",
            "a binary file that begins with \"\\x7fELF",
        ),
    ] {
        let error = BlockTrace::from_bytes("input", bytes, Options::default()).err();
        let error = error.expect("no format").to_string();
        assert!(error.contains(message), "{error}");
    }
    let error = BlockTrace::open("/nonexistent/x".as_ref(), Options::default()).err();
    assert!(
        error
            .expect("no file")
            .to_string()
            .contains("/nonexistent/x: cannot open")
    );
    let error = BlockTrace::from_bytes("input", b"", options(Format::Arc)).err();
    assert!(
        error
            .expect("empty")
            .to_string()
            .contains("the file is empty")
    );
}

#[test]
fn a_cut_packing_is_an_error_even_when_lenient() {
    let text: String = (0..60_000u64).map(|n| format!("{}\n", n * n)).collect();
    let packed = zstd::encode_all(text.as_bytes(), 1).expect("packed");
    let (requests, failure) = read(&packed[..packed.len() / 2], lenient(Format::Ids));
    assert!(!requests.is_empty() && requests.len() < 60_000);
    assert!(failure.expect("a reason").contains("cannot be read"));
}

/// The checksum stands behind what is damaged: the wrong record comes first, and is not what is wrong.
#[test]
fn a_wrong_record_of_a_damaged_file_is_the_damage() {
    let packed = |broken: usize| {
        let text = "1,h,0,Read,0,512,9\n".repeat(10);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gzip.write_all(text.as_bytes()).expect("packed");
        let mut bytes = gzip.finish().expect("packed");
        let at = bytes
            .windows(4)
            .enumerate()
            .filter(|(_, word)| word == b"Read");
        let (at, _) = at.clone().nth(broken).expect("a record");
        bytes[at] = b'X';
        bytes
    };
    for (broken, given) in [
        (5, Some(Format::Msr)),
        (5, None),
        (0, Some(Format::Msr)),
        (0, None),
    ] {
        let options = Options {
            format: given,
            ..Options::default()
        };
        let opened = BlockTrace::from_bytes("input", &packed(broken), options);
        let error = match opened {
            Err(error) => error,
            Ok(mut trace) => loop {
                match trace.next_batch(&mut Vec::new()) {
                    Ok(true) => {}
                    Ok(false) => panic!("read to its end"),
                    Err(error) => break error,
                }
            },
        };
        let error = error.to_string();
        assert!(error.contains("checksum"), "{broken}, {given:?}: {error}");
    }
}
