//! Texts in columns, as users describe them: common traces, and every message.

use piebald_trace::block::{BlockTrace, Columns, Format, Options, Target, TargetKind, Times};

use super::support::{described, lines, open, read};

/// The form of Alibaba's block traces: `device_id,opcode,offset,length,timestamp` in bytes and us.
const ALIBABA: &str = "device=1,op=2,offset=3:B,size=4:B,time=5:us";
const ALIBABA_TEXT: &str = "419,W,8792731648,16384,1577808144360767\n\
    725,R,59110326272,4096,1577808144360977\n419,R,512,1024,1577808144361152\n";
const ALIBABA_LINES: [&str; 3] = [
    "#0 1577808144360767000 0 write disk 419 sectors 17173304+32",
    "#1 1577808144360977000 0 read disk 725 sectors 115449856+8",
    "#2 1577808144361152000 0 read disk 419 sectors 1+2",
];

fn told(text: &str, list: &str) -> Vec<String> {
    lines(text.as_bytes(), described(list))
}

#[test]
fn volumes_in_one_file_are_told_apart() {
    assert_eq!(told(ALIBABA_TEXT, ALIBABA), ALIBABA_LINES);
}

#[test]
fn a_header_is_passed_over_or_names_the_columns() {
    let text = format!("device_id,opcode,offset,length,timestamp\n{ALIBABA_TEXT}");
    let names = "device=device_id,op=opcode,offset=offset:B,size=length:B,time=timestamp:us";
    for list in [
        format!("{ALIBABA},header=1"),
        names.to_owned(),
        format!("{names},header=1"),
    ] {
        assert_eq!(told(&text, &list), ALIBABA_LINES, "{list}");
        let mut trace = open(text.as_bytes(), described(&list));
        while trace.next_batch(&mut Vec::new()).expect("reads") {}
        assert_eq!(trace.passed().comments, 1, "{list}");
    }
    // A comment may hold the names, and a title may stand above them.
    let commented = format!("\n# {text}# the end\n");
    assert_eq!(told(&commented, names), ALIBABA_LINES);
    let titled = format!("block traces\n{text}");
    assert_eq!(told(&titled, &format!("{names},header=2")), ALIBABA_LINES);
}

/// Files that were put one behind the other have several headers, and `#` may begin a name.
#[test]
fn lines_that_are_no_records_among_records_are_told() {
    let read_all = |text: &str, list: &str| {
        let mut trace = open(text.as_bytes(), described(list));
        while trace.next_batch(&mut Vec::new()).expect("reads") {}
        (
            trace.passed().comments,
            trace.notes().like_records,
            trace.doubts(),
        )
    };
    let names = "device=device_id,op=opcode,offset=offset:B,size=length:B,time=timestamp:us";
    let header = "device_id,opcode,offset,length,timestamp\n";
    let twice = format!("{header}{ALIBABA_TEXT}{header}{ALIBABA_TEXT}");
    assert_eq!(told(&twice, names).len(), 6);
    assert_eq!(read_all(&twice, names), (2, 0, vec![]));
    let (comments, like, doubts) = read_all("b,1\n#a,1\n# a comment\nb,1\n", "id=1:text");
    assert_eq!((comments, like), (2, 1));
    assert_eq!(
        doubts,
        ["1 lines among the records begin with #, and are passed over as comments"]
    );
}

/// A file of an old Mac would be one line.
#[test]
fn carriage_returns_alone_end_no_line() {
    let mut trace = open(b"1,aa\r2,bb\r1,cc\r\n", described("id=1"));
    let error = trace.next_batch(&mut Vec::new()).expect_err("one line");
    let error = error.to_string();
    assert!(
        error.contains("a carriage return ends them, tr '\\r' '\\n' makes them so"),
        "{error}"
    );
    assert_eq!(told("1,aa\r\n2,bb\r\n", "id=1").len(), 2);
}

#[test]
fn a_header_longer_than_the_file_is_refused() {
    let list = |lines| described(&format!("{ALIBABA},header={lines}"));
    for (text, lines) in [(ALIBABA_TEXT, 3), (&ALIBABA_TEXT[..50], 2), ("# none\n", 1)] {
        assert_eq!(told_with(text, list(lines)), "", "{text}");
        let error = told_with(text, list(lines + 1));
        let says = format!(
            "header is {}; allowed: 0 to {lines}, the number of lines",
            lines + 1
        );
        assert!(error.contains(&says), "{error}");
    }
}

#[test]
fn a_text_of_wide_letters_is_told_whatever_the_format() {
    let text = "\u{feff}419,R,4096,512,1\n";
    let two: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let four = |turn: fn(u32) -> [u8; 4]| -> Vec<u8> {
        text.chars().flat_map(|c| turn(u32::from(c))).collect()
    };
    for (marked, encoding) in [
        (two, "UTF-16"),
        (four(u32::to_le_bytes), "UTF-32"),
        (four(u32::to_be_bytes), "UTF-32"),
    ] {
        let by_name = Options {
            format: Some(Format::Msr),
            lenient: true,
            ..Options::default()
        };
        for options in [described(ALIBABA), by_name, Options::default()] {
            let failure = match BlockTrace::from_bytes("input", &marked, options.clone()) {
                Ok(_) => {
                    let (requests, failure) = read(&marked, options);
                    assert!(requests.is_empty());
                    failure.expect("a reason")
                }
                Err(refused) => refused.to_string(),
            };
            let told = format!("iconv -f {encoding} -t UTF-8");
            assert!(failure.contains(&told), "{failure}");
        }
    }
}

#[test]
fn dates_are_times() {
    let text = "2024-01-02T03:04:05.5Z,R,4096,512\n2024-01-02 03:04:06+00:00,W,8192,512\n";
    let list = "time=1:iso,op=2,offset=3:B,size=4:B";
    let (requests, failure) = read(text.as_bytes(), described(list));
    assert_eq!(failure, None);
    let times: Vec<u64> = requests.iter().map(|r| r.time.expect("a time").0).collect();
    assert_eq!(
        times,
        [1_704_164_645_500_000_000, 1_704_164_646_000_000_000]
    );
    let wrong = text.replace("01-02 ", "02-30 ");
    let error = read(wrong.as_bytes(), described(list)).1.expect("a reason");
    assert!(
        error.contains("line 2: the time is \"2024-02-30 03:04:06+00:00\"; allowed: a date"),
        "{error}"
    );
}

#[test]
fn a_first_line_that_is_too_long_is_told() {
    let line = "1,".repeat(40_000);
    let error = told_with(&line, described("id=1"));
    assert!(
        error.contains("line 1 has more than 64 KiB") && error.contains("a shorter one"),
        "{error}"
    );
}

/// What is said against a text, or nothing.
fn told_with(text: &str, options: Options) -> String {
    let opened = BlockTrace::from_bytes("text", text.as_bytes(), options);
    opened.err().map_or(String::new(), |e| e.to_string())
}

#[test]
fn processes_are_numbers_of_32_bits() {
    let list = "process=1,id=2,size=3";
    assert_eq!(
        told("4294967295 5 9\n0x10 5 9\n", list),
        ["#0 - 4294967295 read block 5", "#1 - 16 read block 5"]
    );
    assert_eq!(
        told("ff 5 9\n", "process=1:hex,id=2"),
        ["#0 - 255 read block 5"]
    );
    for (text, value) in [("4294967296 5 9\n", "4294967296"), ("-1 5 9\n", "-1")] {
        let mut trace = open(text.as_bytes(), described(list));
        let error = trace.next_batch(&mut Vec::new()).expect_err(value);
        let said = error.to_string();
        assert!(
            said.contains("the process") && said.contains(value),
            "{said}"
        );
    }
    for (list, says) in [
        ("process=1:s,id=2", "process is"),
        ("process=1,process=2,id=3", "process is given twice"),
    ] {
        let error = list.parse::<Columns>().expect_err(list).to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn lines_of_fiu_are_sectors_between_blanks() {
    // ns, process id, process, sector, sectors, W or R, major, minor, hash of the content.
    let text = "89966000001 4892 logd 904265560 8 W 6 0 531e7798\n\
        89970000000 1001 mail 1000 16 R 8 1 531e7799\n";
    assert_eq!(
        told(
            text,
            "time=1:ns,process=2,offset=4:sector,size=5:sector,op=6,device=7+8"
        ),
        [
            "#0 89966000001 4892 write disk 6.0 sectors 904265560+8",
            "#1 89970000000 1001 read disk 8.1 sectors 1000+16",
        ]
    );
    // A blank in a name shifts what is behind it, and the line is refused.
    let shifted = format!("{text}89970000001 1001 a b 2 16 R 8 1 531e7799\n");
    let failure = read(shifted.as_bytes(), described("id=4,size=5:sector")).1;
    let failure = failure.expect("a reason");
    assert!(
        failure.contains("line 3: the line is") && failure.contains("9 columns with blanks"),
        "{failure}"
    );
}

/// The objects of a trace, with their sizes.
fn objects(text: &str, list: &str) -> Vec<(u64, Option<u32>)> {
    let requests = read(text.as_bytes(), described(list));
    assert_eq!(requests.1, None, "{text}");
    let object = |target| match target {
        Target::Id { id, bytes, .. } => (id, bytes),
        other => panic!("{other:?}"),
    };
    requests.0.iter().map(|r| object(r.target)).collect()
}

#[test]
fn ids_are_objects_of_their_own_and_keep_their_sizes() {
    // AdaptSize and LRB: time, id, size.
    let text = "1 0 68\n2 1 7454\n3 2 40773\n4 0 68\n";
    let sizes = [
        (0, Some(68)),
        (1, Some(7454)),
        (2, Some(40773)),
        (0, Some(68)),
    ];
    assert_eq!(objects(text, "time=1:none,id=2,size=3"), sizes);
    let trace = open(text.as_bytes(), described("time=1:none,id=2,size=3"));
    assert_eq!(trace.format(), Format::Columns);
    let traits = trace.traits();
    assert_eq!((traits.target, traits.times), (TargetKind::Id, Times::None));
    assert!(!traits.directions);
    let timed = told(text, "time=1:s,id=2,size=3");
    assert_eq!(timed[1], "#1 2000000000 0 read block 1");
    assert_eq!(objects("17 800\n18 900\n17 800\n", "id=1")[2], (17, None));
    assert_eq!(
        objects("0x10,1\n0xff,2\n", "id=1,size=2:KiB"),
        [(16, Some(1024)), (255, Some(2048))]
    );
    assert_eq!(objects("10,1\nff,2\n", "id=1:hex")[1], (255, None));
    assert_eq!(objects("5\n6\n", "id=1,size=:4KiB")[0], (5, Some(4096)));
}

#[test]
fn csv_of_libcachesim_has_ids_of_numbers_or_letters() {
    let numbers = "time,obj_id,obj_size\n1,17,800\n2,18,70000\n";
    let expected = [(17, Some(800)), (18, Some(70_000))];
    assert_eq!(
        objects(numbers, "time=time:s,id=obj_id,size=obj_size"),
        expected
    );
    assert_eq!(objects(numbers, "time=1:s,id=2,size=3,header=1"), expected);
    let letters = "# timestamp (ms), op [Put:0, Get:1], object id, object size\n\
        0,1,qa,8371\n103,0,qb,31\n159,1,\"q,c\",3668\n315,1,qa,15572\n";
    let list = "time=1:ms,op=2:1/0,id=3:text,size=4";
    assert_eq!(
        told(letters, list),
        [
            "#0 0 0 read block 0",
            "#1 103000000 0 write block 1",
            "#2 159000000 0 read block 2",
            "#3 315000000 0 read block 0",
        ]
    );
    assert_eq!(objects(letters, list)[3], (0, Some(15_572)));
    let scsi = "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899,28,1024,8\n\
        1,5633899,35,0,0\n";
    let list = "time=time:s,op=op:28+88/2a+8a/*,size=size:B,offset=lbn:sector";
    assert_eq!(
        told(scsi, list),
        [
            "#0 5633898000000000 0 write disk 0 sectors 42932745+1",
            "#1 5633899000000000 0 read disk 0 sectors 8+2",
        ]
    );
}

#[test]
fn objects_of_several_volumes_are_different() {
    let text = "a,7\nb,7\na,07\nb,8\n";
    let ids = |list: &str| -> Vec<u64> { objects(text, list).iter().map(|o| o.0).collect() };
    assert_eq!(ids("id=2"), [7, 7, 7, 8]);
    assert_eq!(ids("id=2,device=1"), [0, 1, 0, 2]);
    assert_eq!(ids("id=2:text,device=1"), [0, 1, 2, 3]);
    assert_eq!(ids("id=2:text"), [0, 0, 1, 2]);
}

#[test]
fn units_scale_offsets_sizes_and_times() {
    let of = |list: &str, text: &str| told(text, list).remove(0);
    for (unit, sectors) in [
        ("sector", "3+2"),
        ("KiB", "6+4"),
        ("page", "24+16"),
        ("block:8KiB", "48+32"),
        ("block:520B", "3+3"),
    ] {
        let list = format!("offset=1:{unit},size=2:{unit}");
        let line = format!("#0 - 0 read disk 0 sectors {sectors}");
        assert_eq!(of(&list, "3 2\n"), line, "{unit}");
    }
    for (unit, nanos) in [
        ("s", "2500000000"),
        ("ms", "2500000"),
        ("us", "2500"),
        ("ns", "2"),
    ] {
        let list = format!("time=2:{unit},id=1");
        let line = format!("#0 {nanos} 0 read block 7");
        assert_eq!(of(&list, "7\t2.5\n"), line, "{unit}");
    }
    let hex = "offset=1:sector:hex,size=:4KiB,time=2:us:hex";
    let line = "#0 16000 0 read disk 0 sectors 255+8";
    assert_eq!(of(hex, "ff 10\n"), line);
    assert_eq!(of(hex, "0xff 0x10\n"), line);
}

#[test]
fn separators_are_told_or_seen() {
    for (separator, word) in [
        (",", "comma"),
        ("\t", "tab"),
        (" ; ", "semicolon"),
        ("  ", "blanks"),
    ] {
        let text = format!("7{separator}9\n");
        for list in ["id=2".to_owned(), format!("id=2,sep={word}")] {
            assert_eq!(objects(&text, &list)[0].0, 9, "{list}");
        }
    }
    // A comma within columns of tabs, tabs that set columns below one another, and a comma within blanks.
    assert_eq!(objects("1\tfoo,bar\t10\n", "id=3")[0].0, 10);
    assert_eq!(objects("1,\t9,\t10\n", "id=2")[0].0, 9);
    assert_eq!(objects("a,b 9\n", "id=2,sep=blanks")[0].0, 9);
}

#[test]
fn usual_words_for_reads_and_writes_need_not_be_told() {
    for (word, op) in [
        ("r", "read"),
        ("Read", "read"),
        ("RS", "read"),
        ("W", "write"),
        ("write", "write"),
        ("ws", "write"),
    ] {
        let line = format!("#0 - 0 {op} block 7");
        assert_eq!(told(&format!("7,{word}\n"), "id=1,op=2"), [line]);
    }
    assert_eq!(told("7,0\n", "id=1,op=2:0/1"), ["#0 - 0 read block 7"]);
}

#[test]
fn a_mark_other_line_ends_and_a_missing_one_are_taken() {
    let text = "\u{feff}time,id\r\n1,7\r\n2,8";
    for list in ["time=time:s,id=id", "time=1:s,id=2,header=1"] {
        let mut trace = open(text.as_bytes(), described(list));
        let mut batch = Vec::new();
        assert!(trace.next_batch(&mut batch).expect("reads"));
        assert_eq!(batch.len(), 2);
        assert!(!trace.next_batch(&mut batch).expect("reads"));
        let notes = trace.notes();
        assert_eq!((notes.unended_lines, notes.byte_order_marks), (1, 1));
    }
}

#[test]
fn wrong_lines_are_named_with_field_value_and_what_is_allowed() {
    let block = "time=1:us,op=2,offset=3:B,size=4:B,device=5";
    let numbers = "offset=1:page,size=2:B";
    for (list, text, message) in [
        (
            block,
            "1,R,0,512,a\nx,R,0,512,a\n",
            "line 2: the time is \"x\"; allowed: microseconds",
        ),
        (
            block,
            "1,Q,0,512,a\n",
            "line 1: the op is \"Q\"; allowed: r, read, rs, w, write or ws",
        ),
        (
            block,
            "1,R,-8,512,a\n",
            "the offset is \"-8\"; allowed: a decimal number",
        ),
        (
            block,
            "1,R,0,5e2,a\n",
            "the size is \"5e2\"; allowed: a decimal number",
        ),
        (
            block,
            "1,R,0,512,\n",
            "the device is \"\"; allowed: a name of 1 to 64 bytes",
        ),
        (
            block,
            "1,R,0,512,a\n1,R,0,512\n",
            "line 2: the line is \"1,R,0,512\"; allowed: 5 columns with commas between them",
        ),
        (
            block,
            "ts,op,off,len,dev\n",
            "line 1: the time is \"ts\"; allowed: microseconds with an optional fraction, below \
             2^64 ns; if this line is a header, say header=1",
        ),
        (
            numbers,
            "4503599627370496 1\n",
            "the offset is \"4503599627370496\"; allowed: less than",
        ),
        (
            numbers,
            "2251799813685248 1\n",
            "the last byte is 9223372036854775808 + 1",
        ),
        (
            "id=1,op=2:0/1/2",
            "5 3\n",
            "the op is \"3\"; allowed: 0, 1, 2",
        ),
        (
            "id=1",
            "5\nqa\n",
            "line 2: the id is \"qa\"; allowed: a decimal number from 0",
        ),
        (
            "id=1",
            "5\nqa\n",
            "; :text behind its column takes any name",
        ),
        (
            "id=1:hex",
            "0x5g\n",
            "the id is \"0x5g\"; allowed: a hexadecimal number",
        ),
        ("id=1:text", "a,\n,b\n", "line 2: the id is \"\""),
        (
            "id=1,size=2",
            "5 4294967296\n",
            "the size is 4294967296; allowed: 0 to 4294967295",
        ),
    ] {
        let failure = read(text.as_bytes(), described(list)).1;
        let failure = failure.unwrap_or_else(|| panic!("{list}: {text:?} is taken"));
        assert!(failure.contains(message), "{failure}\nlacks {message}");
        assert!(failure.starts_with("input: byte "), "{failure}");
    }
}

#[test]
fn lenient_reading_leaves_wrong_lines_out_and_counts_them() {
    let text = format!("head,line,in,the,way\n{ALIBABA_TEXT}1,R,x,1,2\n1,R,2\n");
    let options = Options {
        lenient: true,
        ..described(ALIBABA)
    };
    assert_eq!(lines(text.as_bytes(), options.clone()), ALIBABA_LINES);
    let mut trace = open(text.as_bytes(), options);
    while trace.next_batch(&mut Vec::new()).expect("reads") {}
    let counts: Vec<_> = trace.skipped().by_field.iter().collect();
    assert_eq!(
        counts,
        [(&"the line", &1), (&"the offset", &1), (&"the time", &1)]
    );
}

#[test]
fn columns_that_are_not_there_are_named_with_the_line() {
    let named = "time=t:s,id=obj";
    for (list, text, message) in [
        (
            "id=2,size=4",
            "1,17,800\n",
            "input: --columns: size is column 4; allowed: 1 to 3; line 1 has 3 columns with commas \
             between them: \"1,17,800\"",
        ),
        (
            "id=2",
            "# a comment\n1;17\n",
            "id is column 2; allowed: 1 to 1; line 2 has 1 column with blanks between them: \"1;17\"",
        ),
        (
            named,
            "t,id\n1,2\n",
            "id is column \"obj\"; allowed: 1 to 2, or a name in it; line 1 has 2 columns",
        ),
        (
            "id=obj",
            "obj,obj\n1,2\n",
            "id is column \"obj\"; allowed: a number, since several columns have this name",
        ),
        (
            "id=2,size=2",
            "1,2\n",
            "size is column 2; allowed: another than that of id",
        ),
        (
            "id=2,size=b",
            "a,b\n1,2\n",
            "size is column \"b\"; allowed: another than that of id",
        ),
    ] {
        let list = match message.contains("blanks") {
            true => format!("{list},sep=blanks"),
            false => list.to_owned(),
        };
        let failure = BlockTrace::from_bytes("input", text.as_bytes(), described(&list)).err();
        let failure = failure.unwrap_or_else(|| panic!("{list}: {text:?} is taken"));
        let failure = failure.to_string();
        assert!(failure.contains(message), "{failure}\nlacks {message}");
    }
    let comments = "# nothing\n".repeat(7000);
    let failure = BlockTrace::from_bytes("input", comments.as_bytes(), described("id=1")).err();
    let failure = failure.expect("no record").to_string();
    assert!(
        failure.contains("the first 64 KiB hold no record"),
        "{failure}"
    );
    let few = read(b"# nothing\n\n", described("id=1"));
    assert_eq!((few.0.len(), few.1), (0, None));
}

#[test]
fn wrong_lists_are_refused_with_what_is_allowed() {
    for (list, message) in [
        ("", "\"\" is no item; allowed: FIELD=COLUMN"),
        ("id=1,", "\"\" is no item"),
        ("id", "\"id\" is no item"),
        (
            "tiem=1:s,id=2",
            "\"tiem\" is no field; allowed: time, op, offset",
        ),
        ("id=1,id=2", "id is given twice; allowed: once"),
        (
            "time=1:s",
            "offset or id is missing; allowed: offset=COLUMN:UNIT",
        ),
        (
            "offset=1:B,size=2:B,id=3",
            "offset and id are both given; allowed: one of them",
        ),
        ("offset=1:B", "size is missing; allowed: COLUMN:UNIT"),
        ("offset=1:B,size=2", "size is \"2\"; allowed: COLUMN:UNIT"),
        (
            "offset=1,size=2:B",
            "offset is \"1\"; allowed: COLUMN:UNIT with a unit of B",
        ),
        ("offset=1:GiB,size=2:B", "offset is \"1:GiB\""),
        ("offset=1:block,size=2:B", "offset is \"1:block\""),
        ("offset=1:block:0B,size=2:B", "offset is \"1:block:0B\""),
        ("offset=1:block:8,size=2:B", "offset is \"1:block:8\""),
        ("offset=1:hex:B,size=2:B", "offset is \"1:hex:B\""),
        (
            "offset=1:B,size=:2GiB",
            "size is \":2GiB\"; allowed: COLUMN:UNIT as for an offset",
        ),
        (
            "id=0",
            "id is \"0\"; allowed: the number of a column, from 1 to 16384",
        ),
        ("id=16385", "id is \"16385\""),
        ("id=", "id is \"\""),
        (
            "id=1:B",
            "id is \"1:B\"; allowed: COLUMN for numbers, COLUMN:hex",
        ),
        (
            "id=1,time=2",
            "time is \"2\"; allowed: COLUMN:UNIT with a unit of s",
        ),
        ("id=1,time=2:h", "time is \"2:h\""),
        (
            "id=1,op=2:R",
            "op is \"2:R\"; allowed: COLUMN, or with other words",
        ),
        ("id=1,op=2:R/", "op is \"2:R/\""),
        ("id=1,op=2:R/R", "op is \"2:R/R\""),
        ("id=1,op=2:R/*", "op is \"2:R/*\""),
        ("id=1,op=2:R/W/X/Y", "op is \"2:R/W/X/Y\""),
        (
            "id=1,device=2+",
            "device is \"\"; allowed: the number of a column",
        ),
        (
            "id=1,sep=;",
            "sep is \";\"; allowed: comma, tab, semicolon or blanks",
        ),
        (
            "id=1,header=x",
            "header is \"x\"; allowed: the number of lines",
        ),
        ("id=1,header=1001", "header is \"1001\""),
        (
            "id=name,header=0",
            "header is \"0\"; allowed: the number of lines before",
        ),
    ] {
        let error = list.parse::<Columns>().expect_err(list).to_string();
        assert!(error.contains(message), "{error}\nlacks {message}");
    }
}

#[test]
fn columns_and_a_format_exclude_each_other() {
    let both = Options {
        format: Some(Format::Msr),
        ..described("id=1")
    };
    let error = BlockTrace::from_bytes("input", b"1\n", both).err();
    let error = error.expect("both").to_string();
    assert!(
        error.contains("--format msr and --columns are both given"),
        "{error}"
    );
    let undescribed = Options {
        format: Some(Format::Columns),
        ..Options::default()
    };
    let error = BlockTrace::from_bytes("input", b"1\n", undescribed).err();
    let error = error.expect("no list").to_string();
    assert!(
        error.contains("nothing says what is in which column"),
        "{error}"
    );
    // An empty file is said to be one whatever is told of it.
    let error = BlockTrace::from_bytes("input", b"", described("id=1")).err();
    assert!(
        error
            .expect("empty")
            .to_string()
            .contains("the file is empty")
    );
}

#[test]
fn what_is_no_known_format_gets_an_example_that_reads_it() {
    for (text, example) in [
        (
            ALIBABA_TEXT,
            "; if its lines are requests, say what is in their columns; for example --columns \
             time=5:us,op=2,offset=3:B,size=4:B,device=1 would read \
             \"419,W,8792731648,16384,1577808144360767\" (check every column and unit)",
        ),
        (
            "1 0 68\n2 1 7454\n",
            "--columns time=1:s,id=2,size=3 would read \"1 0 68\"",
        ),
        (
            // As seconds the times do not fit into 64 bits.
            "89966000001 4892 logd 904265560 8 W 6 0 531e7798\n\
             89970000000 1001 mail 1000 16 R 8 1 531e7799\n",
            "--columns time=1:ns,op=6,offset=4:sector,size=5:sector would read \"89966000001 4892 ",
        ),
    ] {
        let error = BlockTrace::from_bytes("input", text.as_bytes(), Options::default()).err();
        let error = error.expect("unknown").to_string();
        assert!(error.contains(example), "{error}\nlacks {example}");
        let list = error
            .split_once("--columns ")
            .and_then(|(_, rest)| rest.split_once(' '));
        assert!(!told(text, list.expect("a list").0).is_empty());
    }
    let error = BlockTrace::from_bytes("input", b"hello\nthere\n", Options::default()).err();
    let error = error.expect("unknown").to_string();
    assert!(!error.contains("--columns"), "{error}");
}
