//! Detection: marks, candidates, doubts and ties.

use super::*;
use crate::block::Format as Block;
use crate::foreign::Format as Memory;

fn name(bytes: &[u8]) -> Option<&'static str> {
    match of_head(bytes) {
        Verdict::Is(format) => Some(format.name()),
        _ => None,
    }
}

fn why(bytes: &[u8]) -> String {
    match of_head(bytes) {
        Verdict::Unknown(why) => why.text,
        other => panic!("{other:?}"),
    }
}

/// Numbers as a file of nothing else, in both widths and byte orders.
fn number_files(numbers: &[u64]) -> [Vec<u8>; 4] {
    let short = |turn: fn(u32) -> [u8; 4]| -> Vec<u8> {
        numbers.iter().flat_map(|n| turn(*n as u32)).collect()
    };
    let long =
        |turn: fn(u64) -> [u8; 8]| -> Vec<u8> { numbers.iter().flat_map(|n| turn(*n)).collect() };
    [
        short(u32::to_le_bytes),
        short(u32::to_be_bytes),
        long(u64::to_le_bytes),
        long(u64::to_be_bytes),
    ]
}

#[test]
fn files_of_block_numbers_are_taken_for_nothing() {
    let starts = [
        0,
        1,
        3,
        22,
        25,
        35,
        4096,
        0x40_0000,
        1 << 24 | 5,
        1 << 30,
        1 << 40,
    ];
    for start in starts {
        for stride in [0, 1, 2, 4, 5, 8, 15, 64, 4096, 1 << 20] {
            for count in [1, 3, 6, 8, 24, 48, 100, 600, 20_000] {
                let rising: Vec<u64> = (0..count).map(|n| start + n * stride).collect();
                let looping: Vec<u64> = (0..count).map(|n| start + n % 7 * stride).collect();
                for numbers in [rising, looping] {
                    for (form, bytes) in number_files(&numbers).iter().enumerate() {
                        // Numbers without a byte that is no letter are a text, such as "@@@@".
                        let bytes = &bytes[..bytes.len().min(1 << 16)];
                        let found = name(bytes);
                        assert_eq!(found, None, "{start}, {stride}, {count}, form {form}");
                    }
                }
            }
        }
    }
}

#[test]
fn numbers_that_look_like_instructions_need_operands_in_their_places() {
    // As 64-byte records of ChampSim these have addresses that follow one another by 8, and flags 0.
    let group = |n: u64| [0x40_0000 + 4 * n, 0, 0, 0x7000 + 64 * n];
    let numbers: Vec<u64> = (0..60).flat_map(group).collect();
    assert_eq!(name(&number_files(&numbers)[2]), None);
    let packed = |n: u64| [0x40_0000 + 8 * n, 0, 0x9000, 0, 0x7000 + 64 * n, 0, 0, 0];
    let numbers: Vec<u64> = (0..60).flat_map(packed).collect();
    assert_eq!(name(&number_files(&numbers)[2]), Some("champsim"));
}

/// Records of ChampSim's small form, of instructions at these addresses.
fn instructions<const N: usize>(addresses: impl Iterator<Item = u64>) -> Vec<u8> {
    let record = |ip: u64| {
        let mut record = [0; N];
        record[..8].copy_from_slice(&ip.to_le_bytes());
        record
    };
    addresses.flat_map(record).collect()
}

#[test]
fn the_record_form_is_told_by_consecutive_instructions() {
    let many = || (0..12).map(|i| 0x40_1000 + 4 * i);
    assert_eq!(name(&instructions::<64>(many())), Some("champsim"));
    assert_eq!(
        name(&instructions::<96>(many())),
        Some("champsim-cloudsuite")
    );
    // Too few, too far apart, and none.
    assert_eq!(name(&instructions::<64>(many().take(2))), None);
    let far = (0..50).map(|i| 0x40_1000 + 16 * i);
    assert_eq!(name(&instructions::<64>(far)), None);
    assert_eq!(name(&[0; 192]), None);
    // The first address is 0: the reader is told with its reason.
    let zero = std::iter::once(0).chain(many());
    let why = why(&instructions::<64>(zero));
    assert!(
        why.contains("as champsim it goes wrong at byte 0: the instruction address is 0"),
        "{why}"
    );
}

#[test]
fn taken_branches_may_lead_anywhere() {
    // Loops of three instructions at ever other places: the third is a taken branch.
    let mut bytes = Vec::new();
    for n in 0..20u64 {
        let body = (0..3).map(|i| 0x1000 * (n + 1) + 5 * i);
        let mut turn = instructions::<64>(body);
        (turn[128 + 8], turn[128 + 9]) = (1, 1);
        bytes.extend(turn);
    }
    assert_eq!(name(&bytes), Some("champsim"));
    bytes.iter_mut().skip(9).step_by(64).for_each(|b| *b = 0);
    assert_eq!(
        name(&bytes),
        None,
        "branches that are not taken do not jump"
    );
}

#[test]
fn records_that_begin_like_drmemtrace_need_a_small_version_and_a_thread() {
    let entries = |entries: &[(u16, u16, u64)]| -> Vec<u8> {
        let bytes = |(kind, size, value): &(u16, u16, u64)| {
            let mut bytes = kind.to_le_bytes().to_vec();
            bytes.extend(size.to_le_bytes());
            bytes.extend(value.to_le_bytes());
            bytes
        };
        entries.iter().flat_map(bytes).collect()
    };
    let whole = [
        (25, 0, 7),
        (28, 12, 7),
        (22, 8, 9),
        (24, 8, 9),
        (10, 3, 0x40_1000),
    ];
    assert_eq!(name(&entries(&whole)), Some("drmemtrace"));
    assert_eq!(name(&entries(&whole[1..])), Some("drmemtrace"));
    assert_eq!(name(&entries(&[(25, 0, 1 << 40), (22, 8, 9)])), None);
    assert_eq!(name(&entries(&[(25, 0, 7), (10, 3, 0x40_1000)])), None);
    assert_eq!(name(&entries(&[(25, 0, 7), (22, 8, 9), (50, 0, 0)])), None);
}

/// `time id size` and more columns, as AdaptSize, LRB and others have them.
fn columns(n: u64, columns: usize, id: u64, size: u64) -> String {
    let mut line = format!("{n} {id} {size}");
    for extra in 3..columns {
        line += &format!(" {}", (2 * n + extra as u64) % 3);
    }
    line + "\n"
}

#[test]
fn times_ids_and_sizes_are_taken_for_nothing() {
    for step in [0, 1, 60] {
        for (ids, sizes) in [(1, 7), (64, 64), (4096, 4096), (1 << 20, 512)] {
            for width in 3..7 {
                for lines in [2, 4, 50, 3000] {
                    let line = |n: u64| columns(n * step, width, n % 9 * ids, (n % 5 + 1) * sizes);
                    let text: String = (0..lines).map(line).collect();
                    for separator in [" ", "\t", ","] {
                        let text = text.replace(' ', separator);
                        let found = name(text.as_bytes());
                        assert_eq!(found, None, "{}", &text[..40.min(text.len())]);
                    }
                }
            }
        }
    }
    for text in [
        "1 0 68\n2 1 7454\n3 2 40773\n4 0 68\n",
        "0 0 10\n1 1 10000000\n",
        "17 800\n18 900\n17 800\n",
        "1 64\n2 128\n3 192\n",
        "0 17\n1 18\n2 19\n",
        "0 1a\n1 2b\n2 3c\n",
    ] {
        assert_eq!(name(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn columns_of_other_tools_and_units_are_taken_for_nothing_and_the_doubt_is_named() {
    for (text, told) in [
        // Seconds, offset in bytes, bytes, direction, volume.
        (
            "1577808144,8192,4096,R,3\n1577808145,8192,4096,R,3\n1577808146,12288,4096,W,3\n",
            "it could be spc, but its first field is too large for the number of a storage unit",
        ),
        (
            "3,8,4096,R,17\n3,16,4096,R,18\n",
            "it could be spc, but its fifth field has no fraction",
        ),
        (
            "0,4096,8192,R,0.5\n0,12288,4096,W,0.7\n",
            "it could be spc, but all its places are multiples of 512",
        ),
        // Seconds since 1970, device, offset in bytes, bytes, direction.
        (
            "1577808144.36 3 8192 4096 1\n1577808145.36 3 8192 4096 1\n",
            "it could be disksim, but all its lengths are multiples of 512",
        ),
        (
            "1577808144360767 419 8792731648 16 1\n1577808144360768 419 8792731648 16 1\n",
            "it could be mqsim, but its times begin after more than eleven days",
        ),
        (
            "1000 4 8792731648 16384 1\n2000 4 8792731648 4096 1\n",
            "it could be mqsim, but all its lengths are multiples of 512",
        ),
        (
            "1577808144360767,hm,0,Read,4096,512,1\n1577808145360767,hm,0,Read,4096,512,1\n",
            "it could be msr, but its times are like those since 1970",
        ),
        (
            "1577808144,hm,0,Read,4096,512,1\n",
            "it could be msr, but its times are like those since 1970",
        ),
        (
            "5 100 4096 1\n",
            "it could be arc, but its last field does not count the requests",
        ),
    ] {
        let why = why(text.as_bytes());
        assert!(why.contains(told), "{text}: {why}");
    }
    for (text, format) in [
        (
            "0,303567,3584,w,0.000000\n0,303574,3072,w,0.026214\n",
            "spc",
        ),
        ("0,0,4096,R,0.5\n", "spc"),
        ("663.5 0 4583176 4 1\n664.5 0 512 512 0\n", "disksim"),
        ("128166372003061629,hm,0,Read,4096,512,1\n", "msr"),
        // Made by hand.
        ("1000,a,0,Read,0,4096,1\n2000,a,0,Read,0,4096,1\n", "msr"),
    ] {
        assert_eq!(name(text.as_bytes()), Some(format), "{text}");
    }
}

#[test]
fn a_doubtful_format_is_named_with_the_doubt() {
    for (text, told) in [
        (
            "1 0 68\n2 1 7454\n",
            "it could be ramulator-cpu, but its addresses are not those of lines",
        ),
        (
            "1 64\n2 128\n",
            "it could be ramulator-cpu, but its first number never falls",
        ),
        (
            "2 4000\n0 4004\n",
            "it could be din, but no address has a hexadecimal letter",
        ),
        (
            "7 8 0 0\n7 8 0 5\n",
            "it could be arc, but its last field does not count the requests",
        ),
        (
            "1,8,16,0,5\n2,8,16,1,5\n",
            "it could be tencent, but its times are not seconds since 1970",
        ),
        (
            "1 2 3 4 5\n2 2 3 4 6\n",
            "it could be disksim, but its times are whole milliseconds",
        ),
    ] {
        let why = why(text.as_bytes());
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn texts_are_told_by_their_lines() {
    for (text, format) in [
        ("I  04000010,3\n L 1ffeff,8\n", "lackey"),
        ("I 0400d7d4,8\n M 0421c7f0,4\n", "lackey"),
        (" L 10,1\n M 20,1\n", "lackey"),
        ("3 9618752\n0 9618816 9618880\n", "ramulator-cpu"),
        ("0x12345680 R\n0x4cbd56c0 W\n", "ramulator-dram"),
        ("LD 0x229f6f80\nST 4096\n", "ramulator2-load-store"),
        ("W 0,1,2,3,4\nR 0,1,2,3,5\n", "ramulator2-read-write"),
        ("s 0x1fffff50 1\nl 0x1fffff58 1\n", "load-store"),
        ("2 400d7d4\n0 7ff0005c8\n", "din"),
        ("0x7f0a1b2c: R 0x7ffd0010\n#eof\n", "pinatrace"),
        ("1 8 0 0", "arc"),
        ("5 1 0 17\n9 1 0 18\n", "arc"),
        ("5 1 0 0\n9 1 0 0\n", "arc"),
        // Cut within its last line, which says nothing then.
        ("0 64 0 0\n64 64 0 1\n128 64 0 ", "arc"),
        ("0 64 0 10\n64 64 0 11\n128 64 0 1", "arc"),
        ("128166372003061629,hm,0,R,4096,512,1\n", "msr"),
        ("1538323200,8,16,0,1063\n", "tencent"),
        ("0x10\n0x20\n17\n", "ids"),
        ("\u{feff}1,h,0,Read,0,512,9\n", "msr"),
    ] {
        assert_eq!(name(text.as_bytes()), Some(format), "{text}");
    }
}

#[test]
fn a_mark_settles_the_format_whatever_follows() {
    let lcs = |version: u64| {
        let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
        [magic, version.to_le_bytes()].concat()
    };
    for (bytes, format) in [
        (&b"fio version 3 iolog\n100 /dev/x read 0 1\n"[..], "fio"),
        (b"fio version 9 iolog\n", "fio"),
        (b"\xef\xbb\xbffio version 2 iolog\n", "fio"),
        (
            b"==77== Lackey, an example Valgrind tool\nhello\n",
            "lackey",
        ),
        (b"# file-page-trace v1: x\nhello\n", "fpt"),
        (
            b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\nx\n",
            "msr",
        ),
        (
            b"Timestamp,Response,IOType,LUN,Offset,Size\nx\n",
            "systor17",
        ),
        (b"time,lbn,op\nx,y,z\n", "libcachesim-csv"),
        (b"1700000000.3 +++ exited with 0 +++\n", "strace"),
        (b"[pid 7] +++ killed by SIGKILL +++\n", "strace"),
        (
            b"Input file sda.blktrace.0 added\n8,0 3 1 0.0 697 Q R 1 + 8 [x]\n",
            "blkparse",
        ),
        (b"\x06tae\x01\0\0\0", "blktrace"),
        (b"eat\x07\0\0\0\x01", "blktrace"),
        (&lcs(1), "lcs-v1"),
        (&lcs(2), "lcs"),
        (&lcs(99), "lcs"),
    ] {
        assert_eq!(name(bytes), Some(format), "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_is_no_trace_is_named_where_its_mark_is_known() {
    for (bytes, told) in [
        (&b"PBLDREC\0xyz"[..], "a recording of Piebald"),
        (b"\xff\xfe1\0\n\0", "a text in UTF-16"),
        (
            b"1\0,\0R\0,\x000\0,\x004\x000\x009\x006\0\r\0\n\0",
            "a text in UTF-16LE without a byte order mark; iconv -f UTF-16LE",
        ),
        (
            b"\x001\0,\0R\0,\x000\0,\x004\x000\x009\x006\0\n",
            "a text in UTF-16BE without a byte order mark",
        ),
        (
            b"1\0\0\0,\0\0\0R\0\0\0,\0\0\x00\x34\0\0\0\x30\0\0\x009\0\0\x006\0\0\0\n\0\0\0",
            "a text in UTF-32LE without a byte order mark; iconv -f UTF-32LE",
        ),
        (
            b"\0\0\x001\0\0\0,\0\0\0R\0\0\0,\0\0\x004\0\0\x000\0\0\x009\0\0\x006\0\0\0\n",
            "a text in UTF-32BE without a byte order mark",
        ),
        (
            b"==7== Memcheck, a memory error detector\n==7== x\n",
            "a log of Valgrind, but not of its tool lackey",
        ),
        (b"\n \n", "there are only blank lines"),
    ] {
        let why = why(bytes);
        assert!(why.contains(told), "{why}");
    }
    assert_eq!(of_head(b""), Verdict::Empty);
}

#[test]
fn a_header_or_comment_in_the_way_is_named() {
    for (text, told) in [
        (
            "obj_id\n1\n2\n1\n",
            "begins with \"obj_id\"; without the first line it is ids: tail -n +2 takes it away",
        ),
        (
            "# a comment\n\n# b\n0,8,512,R,0.1\n0,8,512,R,0.2\n",
            "begins with the comment \"# a comment\" and goes on with \"0,8,512,R,0.1\"; without the \
             first lines it is spc: tail -n +4 takes them away",
        ),
        (
            "# timestamp (ms), op, object id\n0,1,qa,8371\n",
            "begins with the comment \"# timestamp (ms), op, object id\" and goes on with",
        ),
    ] {
        let why = why(text.as_bytes());
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn a_wrong_first_record_is_told_by_the_reader_that_takes_the_others() {
    for (text, told) in [
        (
            "12x,web,0,Read,0,512,1\n12,web,0,Read,0,512,1\n13,web,0,Read,0,512,1\n",
            "; as msr it goes wrong at byte 0, line 1: the timestamp is \"12x\"",
        ),
        (
            "# head\n0,8,512,R\n0,8,512,R,2\n",
            "; as spc it goes wrong at byte 0, line 1: the line is \"# head\"",
        ),
        (
            "x 0x40 1\nl 0x40 1\ns 0x80 1\n",
            "; as load-store it goes wrong at byte 0, line 1: the kind is \"x\"",
        ),
        (
            "7 18014398509481984 0 0\n7 8 0 1\n",
            "; as arc it goes wrong at byte 0, line 1: the last sector is 7 + 18014398509481984",
        ),
    ] {
        let why = why(text.as_bytes());
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn a_wrong_only_record_is_told_by_the_reader_that_took_most_of_it() {
    for (text, told) in [
        (
            "0,20941264,8192,W,1e-3\n0,20939840,8192,W,2.5e-1\n",
            "; as spc it goes wrong at byte 0, line 1: the timestamp is \"1e-3\"",
        ),
        (
            "128166372003061629,web,0,Read,7014609920,24k,41286\n",
            "; as msr it goes wrong at byte 0, line 1: the size is \"24k\"",
        ),
        (
            "8,0 3 11 0.009 697 Q R 22349x + 8 [a]\n",
            "; as blkparse it goes wrong at byte 0, line 1: the sector is \"22349x\"",
        ),
        (
            "LD 12x\n",
            "; as ramulator2-load-store it goes wrong at byte 0, line 1: the address is \"12x\"",
        ),
        (
            "1\n2\n-3\n",
            "; as ids it goes wrong at byte 4, line 3: the block is \"-3\"",
        ),
    ] {
        let why = why(text.as_bytes());
        assert!(why.contains(told), "{why}");
    }
    // Whoever did not get far says nothing.
    let why = why(b"419,W,8792731648,16384,1577808144360767\n");
    assert!(!why.contains("goes wrong"), "{why}");
}

#[test]
fn several_candidates_are_all_named() {
    let both = Verdict::OneOf(vec![
        TraceFormat::Block(Block::Mqsim),
        TraceFormat::Block(Block::DiskSim),
    ]);
    assert_eq!(of_head(b"1000 0 64 8 1\n2000 0 72 8 0\n"), both);
}

#[test]
fn names_of_both_kinds_read_back() {
    let all = Memory::ALL.map(TraceFormat::Memory).into_iter();
    for format in all.chain(Block::ALL.map(TraceFormat::Block)) {
        assert_eq!(
            format.name().parse::<TraceFormat>().expect("a name"),
            format
        );
    }
    let error = "iso".parse::<TraceFormat>().expect_err("no format");
    let error = error.to_string();
    assert!(
        error.contains("pinatrace") && error.contains("oracle-general-opns"),
        "{error}"
    );
}

/// Columns of other names may be the disk, the length or the direction.
#[test]
fn a_header_with_names_that_libcachesim_does_not_have_is_not_its() {
    for header in [
        "timestamp,device,lba,length,rw",
        "id,lba,ts",
        "lba",
        "lba,len",
    ] {
        let text = format!("{header}\n0.1,7,0,65536,R\n");
        assert_eq!(name(text.as_bytes()), None, "{header}");
    }
}

/// "sector bytes", "id size" and din with 0x, where the second number is that of a line by chance.
#[test]
fn two_numbers_a_line_are_instructions_and_addresses_only_if_they_look_like_them() {
    for (text, told) in [
        (
            "7655040 4096\n120 8192\n7655040 4096\n55 16384\n",
            "too large for instructions",
        ),
        (
            "2 0x400100\n0 0x7fff1000\n1 0x7fff1040\n2 0x400140\n",
            "they may be labels",
        ),
    ] {
        assert_eq!(name(text.as_bytes()), None, "{text}");
        let why = why(text.as_bytes());
        assert!(
            why.contains("it could be ramulator-cpu") && why.contains(told),
            "{why}"
        );
    }
    assert_eq!(
        name(b"3 0x10040\n12000 0x10080\n1 0x100c0\n"),
        Some("ramulator-cpu")
    );
}

/// Columns of other tools that happen to parse.
#[test]
fn what_other_tools_log_in_the_same_columns_is_doubted() {
    for (text, told) in [
        (
            "1577808144,8792731648,16384,0,419\n1577808145,8792748032,4096,1,419\n",
            "it could be tencent, but all its places and sizes are multiples of 512",
        ),
        (
            "0.000000,697,R,8,223490,8\n0.100000,java,W,8,223498,16\n",
            "it could be systor17, but its times are not seconds since 1970",
        ),
        (
            "1456095145.1,java,R,8,4096,512\n",
            "it could be systor17, but its second field is no response time",
        ),
        (
            "1456095145.1,0.1,R,8,4097,9\n",
            "it could be systor17, but its places and sizes are not those of whole sectors",
        ),
        (
            "timestamp,op,lba,size\n1000,R,100,8\n2000,W,108,8\n",
            "it could be libcachesim-csv, but its header says lba, where libCacheSim's says lbn",
        ),
        (
            "time,op,size,lbn\n1,40,4096,0\n2,42,4096,8\n",
            "it could be libcachesim-csv, but most of its ops are no reads and writes",
        ),
        (
            "time,size,lbn\n0,8,0\n1,8,8\n2,16,16\n",
            "it could be libcachesim-csv, but all its sizes are below 512",
        ),
        (
            "0,303567,7,w,0.000000\n0,303574,7,w,0.000100\n",
            "it could be spc, but all its lengths are below 512",
        ),
        (
            "128166372003061629,web,0,Read,0,8,1\n128166372003061630,web,0,Read,8,8,1\n",
            "it could be msr, but all its sizes are below 512",
        ),
        (
            "R 0,8,100\nW 8,8,200\nR 16,8,100\n",
            "it could be ramulator2-read-write, but its coordinates have three or four levels",
        ),
        (
            "time,op,size,lbn\n1,8,4096,0\n2,40,4096,8\n3,42,4096,16\n4,40,4096,24\n5,42,4096,32\n",
            "it could be libcachesim-csv, but most of its ops are no reads and writes",
        ),
        (
            "time,op,size,lbn\n0,28,4096,81920\n1,2a,4096,86016\n",
            "it could be libcachesim-csv, but all its places are multiples of 512, as bytes are",
        ),
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
             128166372003061629,hm,0,Read,0,8,1\n128166372003061630,hm,0,Read,8,8,1\n",
            "it could be msr, but all its sizes are below 512",
        ),
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
             1600000000000000,hm,0,Read,0,4096,1\n1600000000000001,hm,0,Read,4096,4096,1\n",
            "it could be msr, but its times are like those since 1970",
        ),
        (
            "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.1,0.001,R,0,0,8\n\
             1456095146.1,0.001,R,0,8,8\n",
            "it could be systor17, but its places and sizes are not those of whole sectors",
        ),
        (
            "1600000000 12 9126 0\n1600000001 13 700 1\n1600000001 12 9126 2\n",
            "it could be arc, but its third field does not begin with 0",
        ),
        (
            "126976 4096 0 0\n204800 4096 0 1\n",
            "it could be arc, but all its places and lengths are multiples of 512",
        ),
        (
            "1600000000,3302,23843,0,86400\n1600000001,117,512,1,0\n",
            "it could be tencent, but its sizes are not those of pages",
        ),
        (
            "1600000000,3302,700,0,1\n1600000001,117,35,1,0\n1600000001,9,8,1,0\n",
            "it could be tencent, but its sizes are not those of pages",
        ),
        (
            "1600000000.123456 0 2904 8 1\n1600000001.123456 0 2912 8 1\n",
            "it could be disksim, but its times begin after more than eleven days",
        ),
        (
            "R 0,1,20,5\nW 0,1,28,5\nR 1,0,36,5\n",
            "it could be ramulator2-read-write, but its coordinates have three or four levels",
        ),
        (
            "l 0x01068474 8\ns 0x00b7629e 4\nl 0x0105de80 10\n",
            "it could be load-store, but none of its third numbers is 0: they may be sizes",
        ),
        (
            "l 0x01068474 0\ns 0x00b7629e 7\nl 0x0105de80 14\n",
            "it could be load-store, but its third number never falls, as a time does",
        ),
        (
            "0 0e69fc9a0f97d826\n1 7f12ab00bc00aa11\n0 0e69fc9a0f97d826\n",
            "it could be din, but some of its addresses are none that a processor has",
        ),
        (
            "17 4096\n3 8192\n17 4096\n5 16384\n",
            "it could be ramulator-cpu, but all its addresses are multiples of 512",
        ),
        (
            "4 139638035509440\n2 139637985511232\n7 139637985511296\n4 139638035509440\n",
            "it could be ramulator-cpu, but its first numbers are 0 to 64 and no line is written back",
        ),
        (
            "170 4160\n3 8256\n170 4160\n",
            "it could be ramulator-cpu, but some of its addresses lie below 64 KiB",
        ),
        (
            "0x7f0a1b2d R\n0x7f0a1b31 W\n",
            "it could be ramulator-dram, but its addresses are not those of lines",
        ),
        (
            "LD 0x401003\nST 0x401004\n",
            "it could be ramulator2-load-store, but its addresses are not those of lines",
        ),
        (
            "l 0x1000 8\ns 0x2000 4\nl 0x3000 8\n",
            "it could be load-store, but none of its third numbers is 0: they may be sizes",
        ),
    ] {
        let why = why(text.as_bytes());
        assert!(why.contains(told), "{text}{why}");
    }
    // As the tools themselves write them.
    for (text, format) in [
        (
            "1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n",
            "tencent",
        ),
        (
            "1456095145.1,0.001,R,3,4096,8192\n1456095145.2,,W,3,512,512\n",
            "systor17",
        ),
        ("l 0x1000 8\ns 0x2000 0\nl 0x3000 1\n", "load-store"),
        ("0x12345680 R\n0x40 W\n", "ramulator-dram"),
    ] {
        assert_eq!(name(text.as_bytes()), Some(format), "{text}");
    }
    // Lines in front are only in the way if they hold no record themselves.
    let why = why(b"1\n\n# c\n2\n");
    assert!(!why.contains("tail"), "{why}");
}

/// An example that cannot be read led back to where it was asked for.
#[test]
fn a_header_of_places_and_names_has_an_example() {
    for text in [
        "id,offset,size,rw\n1,4096,4096,R\n",
        "block_id,sector\n1,2\n",
        "object_id;offset;len\n1;0;4096\n",
        "# id offset op_time\n1 2 1.1\n",
        "# block_id io_offset io_size op_time op_name\n7 0 4096 1.1 PUT\n",
    ] {
        assert!(example(text.as_bytes()).contains("--columns "), "{text}");
    }
}
