//! Containers: every packing gives the same stream.

use std::io::Write;

use piebald_trace::foreign::{Format, Options, detect};

use super::support::{Scratch, own_bytes, read, read_bytes};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut w = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    w.write_all(bytes).expect("packed");
    w.finish().expect("packed")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut w = liblzma::write::XzEncoder::new(Vec::new(), 1);
    w.write_all(bytes).expect("packed");
    w.finish().expect("packed")
}

fn zip(parts: &[&[u8]], method: zip::CompressionMethod) -> Vec<u8> {
    let mut w = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (n, part) in parts.iter().enumerate() {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        w.start_file(format!("chunk.{n:04}"), options)
            .expect("a chunk");
        w.write_all(part).expect("packed");
    }
    w.finish().expect("packed").into_inner()
}

fn packings(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    // A cut in the middle of a record or line must not matter.
    let (a, b) = bytes.split_at(bytes.len() / 2 + 1);
    let zstd = |b: &[u8]| zstd::encode_all(b, 1).expect("packed");
    vec![
        ("gz", gzip(bytes)),
        ("two gz members", [gzip(a), gzip(b)].concat()),
        ("xz", xz(bytes)),
        ("two xz streams", [xz(a), xz(b)].concat()),
        ("zst", zstd(bytes)),
        ("two zst frames", [zstd(a), zstd(b)].concat()),
        ("zip", zip(&[a, b], zip::CompressionMethod::Deflated)),
        (
            "stored zip",
            zip(&[a, &[], b], zip::CompressionMethod::Stored),
        ),
    ]
}

#[test]
fn every_packing_gives_the_same_references_and_is_detected() {
    let cases = [
        (own_bytes("chase.lackey"), Format::Lackey),
        (own_bytes("chase.champsim"), Format::ChampSim),
        (own_bytes("chase.cloudsuite"), Format::CloudSuite),
        (
            b"3 9618816 9618880\n1 9618816\n".repeat(9000),
            Format::RamulatorCpu,
        ),
        (b"0x40 R\n0x80 W\n".repeat(9000), Format::RamulatorDram),
        (b"l 0x40 1\ns 0x80 1\n".repeat(9000), Format::LoadStore),
    ];
    for (bytes, format) in cases {
        let plain = read_bytes(&bytes, format, Options::default());
        assert!(plain.failure.is_none() && plain.refs.len() >= 18);
        for (name, packed) in packings(&bytes) {
            let file = Scratch::new("input", &packed);
            assert_eq!(detect(&file.0).expect(name), format, "{name}");
            let got = read(&file.0, format, Options::default());
            assert_eq!(got, plain, "{format} {name}");
        }
    }
}

#[test]
fn what_is_packed_twice_is_told() {
    let text = b"3 9618816 9618880\n1 9618816\n".repeat(9);
    for (outer, once) in [
        ("gzip", gzip(&text)),
        ("xz", xz(&text)),
        ("zstd", zstd::encode_all(&text[..], 1).expect("packed")),
    ] {
        let twice = [("gzip", gzip(&once)), ("xz", xz(&once))];
        for (name, twice) in twice {
            let file = Scratch::new("twice", &twice);
            let error = detect(&file.0).expect_err("no trace").to_string();
            let says = format!("packed twice, {outer} in {name}; unpack it once");
            assert!(error.contains(&says), "{error}");
        }
    }
}

#[test]
fn a_cut_file_is_told_in_the_same_words_whatever_packed_it() {
    let text: String = (0..60_000u64)
        .map(|n| format!("{} 64\n", n * n % 977))
        .collect();
    let zstd = zstd::encode_all(text.as_bytes(), 1).expect("packed");
    for (name, packed) in [
        ("gz", gzip(text.as_bytes())),
        ("xz", xz(text.as_bytes())),
        ("zst", zstd),
    ] {
        for length in [packed.len() / 2, packed.len() - 1, 11] {
            let got = read_bytes(&packed[..length], Format::RamulatorCpu, Options::default());
            let failure = got.failure.expect("a reason");
            assert!(
                failure.contains("the file may have been cut"),
                "{name} {length}: {failure}"
            );
        }
    }
}

#[test]
fn a_wrong_checksum_in_a_zip_is_seen() {
    let mut bytes = zip(&[b"3 64\n", b"4 64\n"], zip::CompressionMethod::Stored);
    let at = bytes
        .windows(5)
        .position(|w| w == b"4 64\n")
        .expect("the data");
    bytes[at] = b'5';
    let got = read_bytes(&bytes, Format::RamulatorCpu, Options::default());
    assert!(got.failure.expect("a reason").contains("checksum"));
}

#[test]
fn an_xz_that_asks_for_gigabytes_is_refused() {
    use liblzma::stream::{Check, Filters, LzmaOptions, Stream};
    let mut options = LzmaOptions::new_preset(0).expect("a preset");
    options.dict_size(512 << 20);
    let mut filters = Filters::new();
    filters.lzma2(&options);
    let stream = Stream::new_stream_encoder(&filters, Check::Crc64).expect("an encoder");
    let mut w = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    w.write_all(b"3 64\n").expect("packed");
    let bytes = w.finish().expect("packed");
    let got = read_bytes(&bytes, Format::RamulatorCpu, Options::default());
    let failure = got.failure.expect("a reason");
    assert!(
        failure.contains("byte 0") && failure.contains("memory"),
        "{failure}"
    );
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut w = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        let options = zip::write::SimpleFileOptions::default();
        w.start_file(*name, options).expect("a file");
        w.write_all(content).expect("packed");
    }
    w.finish().expect("packed").into_inner()
}

/// Files one behind the other would lose or invent a record where two of them meet.
#[test]
fn a_zip_of_several_files_is_no_trace_and_one_of_a_single_file_is() {
    for files in [
        &[("a.txt", &b"3 64\n1 128"[..]), ("b.txt", b"4 64\n")][..],
        &[("log.10", b"3 64\n"), ("log.11", b"4 64\n")],
        &[("chunk.0000", b"3 64\n"), ("README", b"read me\n")],
    ] {
        let file = Scratch::new("several.zip", &zip_of(files));
        let error = detect(&file.0).expect_err("several").to_string();
        let says = format!("this zip holds 2 files ({}, {})", files[0].0, files[1].0);
        assert!(
            error.contains(&says) && error.contains("unpack it"),
            "{error}"
        );
    }
    // macOS adds files of its own, which are passed over.
    let of_a_mac = [
        ("t.trace", &b"3 64\n1 128\n"[..]),
        ("__MACOSX/._t.trace", b"\0\x05\x16\x07\0\x02"),
    ];
    let got = read_bytes(&zip_of(&of_a_mac), Format::RamulatorCpu, Options::default());
    assert!(got.failure.is_none() && got.refs.len() == 2, "{got:?}");
}

#[test]
fn padding_that_the_packers_take_is_taken() {
    let text = b"3 9618816 9618880\n1 9618816\n".repeat(9);
    let plain = read_bytes(&text, Format::RamulatorCpu, Options::default());
    let skipped = [
        &b"\x5a\x2a\x4d\x18\x04\0\0\0abcd"[..],
        &zstd::encode_all(&text[..], 1).expect("packed"),
    ];
    for (name, packed) in [
        ("8 zeros", [gzip(&text), vec![0; 8]].concat()),
        ("a block", [gzip(&text), vec![0; 512]].concat()),
        (
            "between",
            [gzip(&text[..30]), vec![0; 7], gzip(&text[30..])].concat(),
        ),
        ("a frame", skipped.concat()),
    ] {
        let got = read_bytes(&packed, Format::RamulatorCpu, Options::default());
        assert_eq!(got, plain, "{name}");
    }
    // Other bytes are none, and the file is not cut.
    let damaged = [gzip(&text), b"more".to_vec()].concat();
    let got = read_bytes(&damaged, Format::RamulatorCpu, Options::default());
    let failure = got.failure.expect("refused");
    assert!(
        failure.contains("behind the end of the gzip file"),
        "{failure}"
    );
}
