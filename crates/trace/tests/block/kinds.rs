//! Kinds of inputs that were once read wrongly without a word: archives, marks, odd texts, legal
//! values that look odd, and files of other tools.

use std::io::Write;
use std::path::PathBuf;

use piebald_trace::block::{BlockError, BlockTrace, Format, Options, PageShift, summarize};
use piebald_trace::convert::convert;
use piebald_trace::detect::{DetectError, TraceFormat, detect};
use piebald_trace::foreign;

use super::support::{described, lines, open, options, oracle, read};

/// A file in a folder that goes away.
struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    }
}

/// The error of opening, which must not depend on who opens.
fn refused(bytes: &[u8]) -> String {
    let error = BlockTrace::from_bytes("input", bytes, Options::default()).err();
    error.expect("taken").to_string()
}

fn notes(bytes: &[u8], options: Options) -> (u64, u64) {
    let mut trace = open(bytes, options);
    while trace.next_batch(&mut Vec::new()).expect("reads") {}
    (trace.notes().unended_lines, trace.notes().byte_order_marks)
}

#[test]
fn a_last_line_without_line_feed_counts_and_is_noted() {
    for (format, text, n) in [
        (Format::Ids, "1\n2\n1", 3),
        (Format::Ids, "7", 1),
        (Format::Msr, "1,h,0,Read,0,512,9\r\n2,h,0,Write,0,512,9", 2),
        (Format::Spc, "0,1,512,R,0.5\n0,2,512,W,0.6\r", 2),
        (Format::Fio, "fio version 2 iolog\n/f add\n/f read 0 1", 1),
        (Format::Fpt, "F 0 1 a\nR 5 0 0 3", 1),
    ] {
        let trace = open(text.as_bytes(), Options::default());
        assert_eq!(trace.format(), format, "{text}");
        assert_eq!(lines(text.as_bytes(), options(format)).len(), n, "{text}");
        assert_eq!(notes(text.as_bytes(), options(format)), (1, 0), "{text}");
        let ended = text.trim_end().to_owned() + "\n";
        assert_eq!(notes(ended.as_bytes(), options(format)), (0, 0), "{text}");
        let sum = summarize(
            &mut open(text.as_bytes(), options(format)),
            PageShift::PAGE_4K,
            9,
        );
        assert_eq!(sum.expect("reads").notes.unended_lines, 1, "{text}");
    }
}

#[test]
fn a_last_line_that_does_not_parse_says_why_and_that_it_has_no_end() {
    let (requests, failure) = read(b"1\n2\nx", options(Format::Ids));
    assert_eq!(requests.len(), 2);
    let failure = failure.expect("a reason");
    assert!(
        failure.starts_with("input: byte 4, line 3: the block is \"x\"; allowed: a decimal number")
            && failure.ends_with("; no line feed ends this line: the file may have been cut"),
        "{failure}"
    );
    let (_, failure) = read(b"1\nx\n3\n", options(Format::Ids));
    assert!(!failure.expect("a reason").contains("line feed"));
}

#[test]
fn a_cut_record_says_how_much_of_it_is_there() {
    let whole = super::support::sample(Format::Blktrace);
    for (at, told) in [
        (
            47,
            "byte 0: the file ends inside a blktrace record: 47 of 48 bytes",
        ),
        // The second carries 7 bytes of payload.
        (
            48 + 50,
            "byte 48: the file ends inside a blktrace record: 50 of 55 bytes",
        ),
    ] {
        let failure = read(&whole[..at], options(Format::Blktrace)).1;
        let failure = failure.expect("a reason");
        assert!(failure.ends_with(told), "{failure}");
    }
}

#[test]
fn a_byte_order_mark_is_dropped_and_noted() {
    for text in [
        "\u{feff}1,h,0,Read,0,512,9\n",
        "\u{feff}Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,h,0,Read,0,512,9\n",
    ] {
        let requests = lines(text.as_bytes(), Options::default());
        assert_eq!(requests, ["#0 100 0 read disk h.0 sectors 0+1"]);
        assert_eq!(notes(text.as_bytes(), Options::default()), (0, 1));
    }
    // Elsewhere it is no mark.
    let failure = read("1\n\u{feff}2\n".as_bytes(), options(Format::Ids)).1;
    assert!(failure.expect("a reason").contains("line 2: the block is"));
}

#[test]
fn legal_values_of_oracle_general_do_not_hide_it() {
    let day = 86_400;
    let cases: [&[(u32, u64, u32, i64)]; 7] = [
        // No size; more than 1 GiB; years; a step back; the other word for "never"; one record.
        &[(1, 5, 100, 3), (1, 6, 0, -1), (2, 5, 100, -1)],
        &[(1, 5, 100, 3), (1, 6, u32::MAX, -1), (2, 5, 100, -1)],
        &[(0, 5, 100, -1), (20_000 * day, 6, 1, -1)],
        &[
            (9, 5, 100, -1),
            (3, 6, 100, -1),
            (2, 7, 100, 4),
            (9, 7, 100, -1),
        ],
        &[(1, 5, 100, 2), (1, 5, 100, i64::MAX)],
        &[(1, 5, 100, -1)],
        // All of one size that is used again behind the beginning.
        &[(1, 5, 0, 2), (1, 5, 0, 77), (0, 6, 0, 78)],
    ];
    for records in cases {
        let general: Vec<u8> = records.iter().flat_map(|r| oracle(*r, &[])).collect();
        let op_ns: Vec<u8> = records
            .iter()
            .flat_map(|r| oracle(*r, &[1, 0, 0]))
            .collect();
        for (bytes, format) in [
            (general, Format::OracleGeneral),
            (op_ns, Format::OracleGeneralOpNs),
        ] {
            let trace = open(&bytes, Options::default());
            assert_eq!(trace.format(), format, "{records:?}");
            let requests = lines(&bytes, Options::default());
            assert_eq!(requests.len(), records.len(), "{records:?}");
        }
    }
    // A long one without any object twice, and a loop that is longer than what is looked at.
    let once: Vec<u8> = (0..9000)
        .flat_map(|n| oracle((n, u64::from(n) * 77, 1, -1), &[]))
        .collect();
    let round: Vec<u8> = (0..9000)
        .flat_map(|n| {
            oracle(
                (n / 50, u64::from(n % 4500), 4096, i64::from(n) + 4501),
                &[],
            )
        })
        .collect();
    for bytes in [once, round] {
        let trace = open(&bytes, Options::default());
        assert_eq!(trace.format(), Format::OracleGeneral);
    }
}

/// A tar archive of one file, as ustar and as Unix of 1979 wrote it.
fn tar(name: &str, content: &[u8], magic: bool) -> Vec<u8> {
    let mut header = [0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    let size = format!("{:011o}", content.len());
    header[124..135].copy_from_slice(size.as_bytes());
    header[148..156].fill(b' ');
    header[156] = b'0';
    if magic {
        header[257..263].copy_from_slice(b"ustar\0");
    }
    let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
    let sum = format!("{sum:06o}\0 ");
    header[148..156].copy_from_slice(sum.as_bytes());
    let mut bytes = header.to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512) + 1024, 0);
    bytes
}

/// Columns of other meanings are not offered beside a format that takes nearly all of a record.
#[test]
fn an_example_of_columns_does_not_contradict_the_nearest_format() {
    let near = refused(b"0,20941264,8192,W,1e-3\n0,20939840,8192,W,2.5e-1\n");
    assert!(near.contains("as spc it goes wrong"), "{near}");
    assert!(!near.contains("--columns"), "{near}");
    let far = refused(b"0,key00040,18,2938,9,get,0\n1,key00030,34,2041,1,get,0\n");
    assert!(far.contains("as msr it goes wrong"), "{far}");
    assert!(far.contains("--columns time=1:s,id=2:text,size=4"), "{far}");
}

/// The header of attributes that tar of Python and pax write first names no file.
#[test]
fn a_tar_archive_that_begins_with_attributes_names_none_of_its_files() {
    let mut bytes = tar("././@PaxHeader", b"30 mtime=1700000000.123456789\n", true);
    bytes[156] = b'x';
    let sum: u32 = (0..512)
        .map(|at| match at {
            148..156 => u32::from(b' '),
            at => u32::from(bytes[at]),
        })
        .sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let refused = refused(&bytes);
    assert!(refused.contains("tar -xOf input FILE\""), "{refused}");
}

#[test]
fn a_hint_can_be_given_to_a_shell() {
    let refused = refused(&tar("a b/it's.csv", b"1\n2\n", true));
    assert!(
        refused.contains(r"tar -xOf input 'a b/it'\''s.csv'"),
        "{refused}"
    );
}

#[test]
fn packings_that_are_not_read_are_named() {
    for (bytes, name) in [
        (&b"\x1f\x9d\x90abcdefgh"[..], "a file of compress (.Z)"),
        (b"Rar!\x1a\x07\x01\x00abcd", "a RAR file"),
        (b"LZIP\x01abcdefgh", "an lzip file"),
        (b"7z\xbc\xaf\x27\x1cabcd", "a 7z file"),
        (b"\x04\x22\x4d\x18abcdefgh", "an lz4 file"),
        (
            b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x18\x82\x82\x8f\x30",
            "an LZMA file (.lzma)",
        ),
    ] {
        let refused = refused(bytes);
        assert!(refused.contains(name), "{refused}");
    }
}

#[test]
fn a_tar_archive_is_named_with_what_to_do_however_it_is_packed() {
    for (content, magic) in [
        (&b"1,h,0,Read,0,512,9\n"[..], true),
        (b"1\n2\n", false),
        (&[0; 64], true),
    ] {
        let plain = tar("dir/msr.csv", content, magic);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).expect("packed");
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&plain).expect("packed");
        let packings = [
            gzip.finish().expect("packed"),
            xz.finish().expect("packed"),
            zstd::encode_all(&plain[..], 1).expect("packed"),
            plain,
        ];
        for bytes in packings {
            let told = "input: this is a tar archive, not a trace; unpack one of its files, for \
                example with \"tar -xOf input dir/msr.csv\"";
            let refused = refused(&bytes);
            assert!(refused.starts_with(told), "{refused}");
            // A format that is named does not make records of its headers either.
            for format in [Format::Ids, Format::W106, Format::OracleGeneral] {
                let error = BlockTrace::from_bytes("input", &bytes, options(format)).err();
                assert!(error.expect("taken").to_string().starts_with(told));
            }
            let format = foreign::Format::ChampSim;
            let options = foreign::Options::default();
            let error = foreign::ForeignThread::from_bytes("input", &bytes, format, options).err();
            assert!(error.expect("taken").to_string().starts_with(told));
        }
    }
}

#[test]
fn a_marked_file_with_a_wrong_first_record_says_what_is_wrong() {
    for (text, format, told) in [
        (
            &b"fio version 3 iolog\n100 /dev/nvme9n1 read 8192 4096\n"[..],
            Format::Fio,
            "line 2: the file is \"/dev/nvme9n1\"; allowed: one that an earlier \"add\" names",
        ),
        (
            b"fio version 1 iolog\n",
            Format::Fio,
            "the first line is \"fio version 1 iolog\"",
        ),
        (
            b"\x06tae\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
              \0\0\0\0",
            Format::Blktrace,
            "the magic number is 0x65617406; allowed: 0x65617407 (version 7)",
        ),
        (
            b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,h,0,Read,x,0,0\n",
            Format::Msr,
            "line 2: the offset is \"x\"",
        ),
    ] {
        let trace = open(text, Options::default());
        assert_eq!(trace.format(), format);
        let failure = read(text, Options::default()).1.expect("a reason");
        assert!(failure.contains(told), "{failure}");
    }
}

/// Files that no reader knows, by their names elsewhere.
fn others() -> Vec<(&'static str, Vec<u8>)> {
    let ids = |turn: fn(u32) -> Vec<u8>| (1..200).flat_map(turn).collect::<Vec<u8>>();
    vec![
        (
            "adaptsize.tr",
            b"1 0 68\n2 1 7454\n3 2 40773\n4 0 68\n".to_vec(),
        ),
        ("lrb.tr", b"0 0 10\n1 1 10000000\n".to_vec()),
        ("lrb4.tr", b"0 0 10 2\n1 1 10000000 7\n".to_vec()),
        ("sizes.txt", b"17 800\n18 900\n17 800\n".to_vec()),
        ("be32.bin", ids(|n| n.to_be_bytes().to_vec())),
        ("le32.bin", ids(|n| n.to_le_bytes().to_vec())),
        ("le64.bin", ids(|n| u64::from(n).to_le_bytes().to_vec())),
        ("valpin.bin", {
            let groups = (0..60u64).flat_map(|n| [0x40_0000 + 4 * n, 0, 0, 0x7000 + 64 * n]);
            groups.flat_map(u64::to_le_bytes).collect()
        }),
        (
            "alibaba.csv",
            b"419,W,8792731648,16384,1577808144360767\n".to_vec(),
        ),
        (
            "memcheck.log",
            b"==7== Memcheck, a memory error detector\n==7== \n".to_vec(),
        ),
    ]
}

#[test]
fn no_recording_is_written_from_another_tools_file() {
    let scratch = Scratch::new();
    for (name, bytes) in others() {
        let path = scratch.file(name, &bytes);
        let out = scratch.folder.path().join("out.pbr");
        let error = convert(&[&path], None, &out).expect_err(name).to_string();
        assert!(error.contains(name), "{error}");
        assert!(!out.exists(), "{name}");
        assert!(
            BlockTrace::open(&path, Options::default()).is_err(),
            "{name}"
        );
        assert!(
            matches!(detect(&path), Err(DetectError::Unrecognised { .. })),
            "{name}"
        );
    }
    let left = std::fs::read_dir(scratch.folder.path()).expect("a folder");
    assert_eq!(left.count(), others().len());
}

#[test]
fn a_format_that_is_named_is_not_questioned() {
    let scratch = Scratch::new();
    let path = scratch.file("adaptsize.tr", b"1 0 68\n2 1 7454\n");
    let out = scratch.folder.path().join("out.pbr");
    let made = convert(&[&path], Some(foreign::Format::RamulatorCpu), &out).expect("converts");
    assert_eq!(made.counts.references, 4);
    let requests = lines(b"1 2 3 4\n1 2 3 9\n", options(Format::Arc));
    assert_eq!(requests.len(), 2);
}

#[test]
fn memory_and_block_readers_know_of_each_other() {
    let scratch = Scratch::new();
    let memory = scratch.file("x", b"I  04000010,3\n L 1ffeff,8\n");
    let block = scratch.file("y", b"1,h,0,Read,0,512,9\n");
    let lackey = TraceFormat::Memory(foreign::Format::Lackey);
    assert_eq!(detect(&memory).expect("lackey"), lackey);
    assert_eq!(
        detect(&block).expect("msr"),
        TraceFormat::Block(Format::Msr)
    );
    let error = BlockTrace::open(&memory, Options::default())
        .err()
        .expect("taken");
    assert!(matches!(error, BlockError::Unrecognised { .. }));
    assert!(
        error
            .to_string()
            .contains("this is a memory trace (lackey)"),
        "{error}"
    );
    let error = foreign::detect(&block).expect_err("taken").to_string();
    assert!(
        error.contains("this is a block or file trace (msr)"),
        "{error}"
    );
    let tie = scratch.file("z", b"1000 0 64 8 1\n2000 0 72 8 0\n");
    for error in [
        detect(&tie).expect_err("two").to_string(),
        foreign::detect(&tie).expect_err("two").to_string(),
        BlockTrace::open(&tie, Options::default())
            .err()
            .expect("two")
            .to_string(),
    ] {
        let told = "this may be mqsim or disksim; say which with --format";
        assert!(error.ends_with(told), "{error}");
    }
}

#[test]
fn the_cloudphysics_numbers_are_neighbours_when_read_little_endian() {
    // 641085, 641086 and 193595, 193596 stand so in the file that Caffeine keeps.
    let numbers = [641_085_u32, 641_086, 193_595, 193_596];
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let next = |format| {
        let sum = summarize(&mut open(&bytes, options(format)), PageShift::PAGE_4K, 9);
        let sum = sum.expect("reads");
        (sum.next_page_references, sum.page_range)
    };
    assert_eq!(next(Format::W106), (2, Some((193_595, 641_086))));
    assert_eq!(next(Format::W106Be).0, 0);
}

/// blkparse without the name of the command at the end, and an extent that is split in two.
#[test]
fn lines_of_blkparse_may_lack_the_command_and_may_split() {
    let text = "8,16 1 1 1.427376394 5529 Q WS 274432 + 8\n\
                8,16 1 2 1.427384090 5529 G WS 274432 + 8\n\
                8,16 1 3 1.500000000 5529 Q R 274440 + 16\n\
                8,16 1 4 1.500000100 5529 X R 274440 / 274448 [cat]\n";
    let found = lines(text.as_bytes(), options(Format::Blkparse));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("write") && found[0].ends_with("274432+8"),
        "{found:?}"
    );
    assert!(
        found[1].contains("read") && found[1].ends_with("274440+16"),
        "{found:?}"
    );
}

#[test]
fn requests_of_no_length_are_told() {
    let text = "1,r,0,4096\n2,r,4096,0\n3,w,8192,0\n";
    let mut trace = open(
        text.as_bytes(),
        described("time=1:s,op=2,offset=3:B,size=4:B"),
    );
    while trace.next_batch(&mut Vec::new()).expect("reads") {}
    assert_eq!(trace.doubts(), ["2 requests of no length are passed over"]);
}

/// The numbers of names are those of first use: that one follows another says nothing.
#[test]
fn names_have_no_neighbours() {
    let summary = |text: &str, list: &str| {
        let mut trace = open(text.as_bytes(), described(list));
        let sum = summarize(&mut trace, PageShift::PAGE_4K, 100).expect("reads");
        (
            sum.names_objects,
            sum.next_page_references,
            sum.sequential_requests,
        )
    };
    assert_eq!(summary("b\na\nc\n", "id=1:text"), (true, 0, 0));
    assert_eq!(summary("7\n8\n9\n", "id=1"), (false, 2, 2));
}
