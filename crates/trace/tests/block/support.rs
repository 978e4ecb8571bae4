//! What the tests share: a small sample of every format, written by hand for these tests.

use piebald_trace::block::{BlockTrace, Format, Options, Request, head};

/// A sample of a format. Three requests or more, and something that is passed over where the format
/// has that.
pub fn sample(format: Format) -> Vec<u8> {
    match format {
        Format::Blktrace => blktrace(u32::to_le_bytes, u64::to_le_bytes, u16::to_le_bytes),
        Format::VscsiV1 => vscsi_v1(),
        Format::VscsiV2 => vscsi_v2(),
        Format::OracleGeneral => OBJECTS.iter().flat_map(|o| oracle(*o, &[])).collect(),
        Format::OracleGeneralOpNs => OBJECTS
            .iter()
            .zip([1, 3, 9, 12])
            .flat_map(|(o, op)| oracle(*o, &[op, 7, 0]))
            .collect(),
        Format::LcsV1 => lcs(1, 8192),
        Format::Lcs => lcs(3, 8192),
        Format::AccuSim => accusim(),
        Format::W106 => NUMBERS.iter().flat_map(|n| n.to_le_bytes()).collect(),
        Format::W106Be => NUMBERS.iter().flat_map(|n| n.to_be_bytes()).collect(),
        Format::Valpin => NUMBERS
            .iter()
            .flat_map(|n| u64::from(*n).to_le_bytes())
            .collect(),
        text => text_sample(text).as_bytes().to_vec(),
    }
}

fn text_sample(format: Format) -> &'static str {
    match format {
        Format::Blkparse => {
            "  8,0    1        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427\n  \
             8,0    1        2     0.000000505   697  Q  WS 223490 + 8 [writer]\n  \
             8,0    1        3     0.000004000   697  G  WS 223490 + 8 [writer]\n  \
             8,0    1        4     0.000005000     0  m   N scheduler note\n  \
             8,0    1        5     0.001000000   698  Q   R 1024 + 16 [reader]\n  \
             8,0    1        6     0.001100000   698  Q FWS [writer]\n  \
             8,0    1        7     0.001200000   698  Q   D 4096 + 2048 [trim]\n  \
             8,0    1        8     0.001300000   698  D   R 1024 + 16 [reader]\n  \
             8,0    1        9     0.002000000   698  C   R 1024 + 16 [0]\n\
             8,17   0        1     0.001900000   699  Q  RA 0 + 8 [reader]\n\
             CPU0 (8,0):\n Reads Queued:           1,        8KiB\n\
             Total (8,0):\n"
        }
        Format::Msr => {
            "128166372003061629,web,0,Read,4096,512,100\n\
             128166372003061700,web,1,Write,8192,16384,200\n\
             128166372003061650,web,0,Read,1000,100,300\n"
        }
        Format::Spc => {
            "0,100,4096,R,0.000000\n1, 200, 512, w, 0.5, extra\n0,108,513,r,1.000000001\n"
        }
        Format::LibCacheSimCsv => {
            "version,time,op,size,lbn\n1,10,28,4096,800\n1,11,2a,512,808\n1,11,35,0,0\n1,12,r,512,16\n"
        }
        Format::Ids => "0\n1\n*\n\n18446744073709551615\n1\n",
        Format::Arc => "100 8 0 0\n108 1 0 1\n7 64 0 2\n",
        Format::Systor17 => {
            "Timestamp,Response,IOType,LUN,Offset,Size\n\
             1456095145.5,0.001,R,3,4096,8192\n\
             1456095145.4,0.001,W,3,12288,512\n\
             1456095145.6,0.001,,3,0,0\n\
             1456095146.0,0.001,R,4,0,4096\n"
        }
        Format::Tencent => "1538323200,8,16,0,1063\n1538323199,24,8,1,7\n1538323201,0,1,0,1063\n",
        Format::Mqsim => "1000 0 64 8 1\n2000 0 72 8 0\n2000 1 0 16 1\n",
        Format::DiskSim => "0.5 0 64 8 1\n1.25 0 72 8 0\n1.25 1 0 16 3\n",
        Format::DiskSimValidate => {
            "R Hit   4583176   4    663.00000  45422.50000\n\
             W Miss  4583180   4    607.00000  34200.00000\n\
             R Miss        0   8   6657.00000  64047.00000\n"
        }
        Format::Strace => {
            "9 openat(AT_FDCWD</w>, \"a b\", O_RDWR) = 3</w/a b>\n\
             9 read(3</w/a b>, \"x\"..., 4096) = 4096\n\
             9 read(3</w/a b>, \"x\"..., 4096) = 5\n\
             9 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n\
             10 write(3</w/a b>, \"y\", 1) = 1\n\
             9 <... clone resumed>, child_tidptr=0x7f00) = 10\n\
             10 unlink(\"/w/a b\") = 0\n\
             10 +++ exited with 0 +++\n\
             9 +++ exited with 0 +++\n"
        }
        Format::Fpt => {
            "# a comment\nF 0 10000 a b/c\nF 1 -1 d\nR 5 0 0 3\nW 5 1 7 1\nM 6 0 1 2\nD 5 1 0 0\n"
        }
        Format::Fio => {
            "fio version 2 iolog\n/d/f add\n/d/f open\n/d/f read 4096 8192\n/d/f write 0 512\n\
             /d/f sync\n/d/f trim 0 4096\n/d/f read 12288 1\n/d/f close\n"
        }
        Format::Columns => {
            "# volume op offset length time\n419;W;4096;8192;1577808144360767\n\
             725;R;8000;100;1577808144360977\n725;F;0;0;1577808144360978\n\
             419;R;0;0;1577808144360979\n419;R;0x2000;512;1577808144360978.5\n"
        }
        binary => panic!("{binary} is no text"),
    }
}

/// The lines that [`head`] gives of each sample.
pub fn expected(format: Format) -> &'static [&'static str] {
    match format {
        Format::Blktrace => &[
            "#0 505 697 write disk 8388608 sectors 223490+8",
            "#1 1000000 698 read disk 8388608 sectors 1024+16",
            "#2 900000 699 read disk 8388625 sectors 0+8",
        ],
        Format::Blkparse => &[
            "#0 505 697 write disk 8388608 sectors 223490+8",
            "#1 1000000 698 read disk 8388608 sectors 1024+16",
            "#2 1900000 699 read disk 8388625 sectors 0+8",
        ],
        Format::Msr => &[
            "#0 12816637200306162900 0 read disk web.0 sectors 8+1",
            "#1 12816637200306170000 0 write disk web.1 sectors 16+32",
            "#2 12816637200306165000 0 read disk web.0 sectors 1+2",
        ],
        Format::Spc => &[
            "#0 0 0 read disk 0 sectors 100+8",
            "#1 500000000 0 write disk 1 sectors 200+1",
            "#2 1000000001 0 read disk 0 sectors 108+2",
        ],
        Format::VscsiV1 | Format::VscsiV2 => &[
            "#0 1000 0 read disk 0 sectors 800+8",
            "#1 2000 0 write disk 0 sectors 808+1",
            "#2 2000 0 write disk 0 sectors 4294967296+16",
        ],
        Format::LibCacheSimCsv => &[
            "#0 10000000000 0 read disk 0 sectors 800+8",
            "#1 11000000000 0 write disk 0 sectors 808+1",
            "#2 12000000000 0 read disk 0 sectors 16+1",
        ],
        Format::OracleGeneral | Format::LcsV1 => &[
            "#0 10000000000 0 read block 800",
            "#1 10000000000 0 read block 801",
            "#2 11000000000 0 read block 800",
            "#3 10000000000 0 read block 802",
        ],
        // The third deletes its object.
        Format::OracleGeneralOpNs | Format::Lcs => &[
            "#0 10000000000 0 read block 800",
            "#1 10000000000 0 write block 801",
            "#2 10000000000 0 read block 802",
        ],
        Format::Ids => &[
            "#0 - 0 read block 0",
            "#1 - 0 read block 1",
            "#2 - 0 read block 18446744073709551615",
            "#3 - 0 read block 1",
        ],
        Format::Arc => &[
            "#0 - 0 read disk 0 sectors 100+8",
            "#1 - 0 read disk 0 sectors 108+1",
            "#2 - 0 read disk 0 sectors 7+64",
        ],
        Format::Systor17 => &[
            "#0 1456095145500000000 0 read disk 3 sectors 8+16",
            "#1 1456095145400000000 0 write disk 3 sectors 24+1",
            "#2 1456095146000000000 0 read disk 4 sectors 0+8",
        ],
        Format::Tencent => &[
            "#0 1538323200000000000 0 read disk 1063 sectors 8+16",
            "#1 1538323199000000000 0 write disk 7 sectors 24+8",
            "#2 1538323201000000000 0 read disk 1063 sectors 0+1",
        ],
        Format::Mqsim => &[
            "#0 1000 0 read disk 0 sectors 64+8",
            "#1 2000 0 write disk 0 sectors 72+8",
            "#2 2000 0 read disk 1 sectors 0+16",
        ],
        Format::DiskSim => &[
            "#0 500000 0 read disk 0 sectors 64+8",
            "#1 1250000 0 write disk 0 sectors 72+8",
            "#2 1250000 0 read disk 1 sectors 0+16",
        ],
        Format::DiskSimValidate => &[
            "#0 0 0 read disk 0 sectors 4583176+4",
            "#1 45422500 0 write disk 0 sectors 4583180+4",
            "#2 79622500 0 read disk 0 sectors 0+8",
        ],
        Format::AccuSim => &[
            "#0 1000 5 read file /a bytes 0+4096",
            "#1 3000 5 write file /a bytes 100+50",
            "#2 4000 5 read file /a bytes 8192+10",
            "#3 5000 6 read file inode:78 bytes 0+1",
        ],
        Format::Strace => &[
            "#0 - 9 read file /w/a b bytes 0+4096",
            "#1 - 9 read file /w/a b bytes 4096+5",
            "#2 - 10 write file /w/a b bytes 4101+1",
            "#3 - 10 delete file /w/a b from byte 0",
        ],
        Format::Fpt => &[
            "#0 - 5 read file a b/c bytes 0+12288",
            "#1 - 5 write file d bytes 28672+4096",
            "#2 - 6 map file a b/c bytes 4096+8192",
            "#3 - 5 delete file d from byte 0",
        ],
        Format::Fio => &[
            "#0 - 0 read file /d/f bytes 4096+8192",
            "#1 - 0 write file /d/f bytes 0+512",
            "#2 - 0 read file /d/f bytes 12288+1",
        ],
        Format::Columns => &[
            "#0 1577808144360767000 0 write disk 419 sectors 8+16",
            "#1 1577808144360977000 0 read disk 725 sectors 15+1",
            "#2 1577808144360978500 0 read disk 419 sectors 16+1",
        ],
        Format::W106 | Format::W106Be | Format::Valpin => &[
            "#0 - 0 read block 7",
            "#1 - 0 read block 8",
            "#2 - 0 read block 7",
            "#3 - 0 read block 16909060",
        ],
    }
}

/// Five events: a write queued, one issued, a flush, a read queued, and one of another disk that
/// steps back in time; the second carries a payload.
pub fn blktrace(
    four: fn(u32) -> [u8; 4],
    eight: fn(u64) -> [u8; 8],
    two: fn(u16) -> [u8; 2],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut event = |time, sector, length, action, pid, device, payload: &[u8]| {
        bytes.extend(four(0x6561_7407));
        bytes.extend(four(1));
        bytes.extend(eight(time));
        bytes.extend(eight(sector));
        for word in [length, action, pid, device, 0] {
            bytes.extend(four(word));
        }
        bytes.extend(two(0));
        bytes.extend(two(payload.len() as u16));
        bytes.extend(payload);
    };
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 1 << 17;
    event(505, 223_490, 4096, WRITE | 1, 697, 8 << 20, b"");
    event(600, 223_490, 4096, WRITE | 7, 697, 8 << 20, b"payload");
    event(700, 0, 0, WRITE | 1 << 18 | 1, 697, 8 << 20, b"");
    event(1_000_000, 1024, 8192, READ | 1, 698, 8 << 20, b"");
    event(900_000, 0, 4096, READ | 1, 699, 8 << 20 | 17, b"");
    bytes
}

/// Commands as code, length, sector and microseconds; the third is a flush.
const COMMANDS: [(u16, u32, u64, u64); 4] = [
    (0x28, 4096, 800, 1),
    (0x2a, 512, 808, 2),
    (0x35, 0, 0, 2),
    (0x8a, 8192, 1 << 32, 2),
];

fn vscsi_v1() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (n, (code, length, sector, micros)) in (0u32..).zip(COMMANDS) {
        bytes.extend([n.to_le_bytes(), length.to_le_bytes(), 1u32.to_le_bytes()].concat());
        bytes.extend([code.to_le_bytes(), 0x0100u16.to_le_bytes()].concat());
        bytes.extend([sector.to_le_bytes(), micros.to_le_bytes()].concat());
    }
    bytes
}

fn vscsi_v2() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (n, (code, length, sector, micros)) in (0u32..).zip(COMMANDS) {
        bytes.extend([code.to_le_bytes(), 0x0201u16.to_le_bytes()].concat());
        bytes.extend([n.to_le_bytes(), length.to_le_bytes(), 1u32.to_le_bytes()].concat());
        bytes.extend([sector.to_le_bytes(), micros.to_le_bytes(), [9; 8]].concat());
    }
    bytes
}

const NUMBERS: [u32; 4] = [7, 8, 7, 0x0102_0304];

/// Objects as second, number, size and next use: one is used again, one has no size, one is larger
/// than 2 GiB and comes a second before the one before.
const OBJECTS: [(u32, u64, u32, i64); 4] = [
    (10, 800, 512, 3),
    (10, 801, 0, -1),
    (11, 800, 512, i64::MAX),
    (10, 802, 0x8000_0001, -1),
];

/// A record of oracleGeneral, with `extra` bytes before the next use.
pub fn oracle((time, id, size, next): (u32, u64, u32, i64), extra: &[u8]) -> Vec<u8> {
    [
        &time.to_le_bytes()[..],
        &id.to_le_bytes(),
        &size.to_le_bytes(),
        extra,
        &next.to_le_bytes(),
    ]
    .concat()
}

/// The same objects behind a header of lcs of `header` bytes, from version 2 on with operations.
pub fn lcs(version: u64, header: usize) -> Vec<u8> {
    const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.resize(header - 8, 0);
    bytes.extend(MAGIC);
    for (object, op) in OBJECTS.iter().zip([1, 3, 9, 12]) {
        // Operation and tenant 5, then a time to live.
        let (op, ttl) = (op | 5_u32 << 8, 60_u32);
        bytes.extend(match version {
            1 => oracle(*object, &[]),
            2 => oracle(*object, &op.to_le_bytes()),
            // The upper half of the size comes first.
            _ => oracle(
                *object,
                &[[0; 4], op.to_le_bytes(), ttl.to_le_bytes()].concat(),
            ),
        });
        let features = [0, 1, 2, 4, 8, 16][version.saturating_sub(3) as usize];
        bytes.extend(vec![9; 4 * features]);
    }
    bytes
}

fn accusim() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut words = |words: &[u32]| words.iter().for_each(|w| bytes.extend(w.to_le_bytes()));
    let head = |kind: u32, pid: u32| pid << 5 | kind;
    let transfer = |done: u32, fd: u32, gap: u32| [0, 0, 0, done, done, fd, gap, 9000];
    // A process begins: the name "ab" padded to a word by its own length of 4.
    words(&[head(0, 5), 4, u32::from_le_bytes(*b"ab\0\0")]);
    // Inode 77 is opened as descriptor 3 with the name "/a" and two zeros.
    words(&[
        head(5, 5),
        77,
        9000,
        4 | 3 << 16,
        u32::from_le_bytes(*b"/a\0\0"),
    ]);
    words(&[head(3, 5), 77]);
    words(&transfer(4096, 3, 1));
    words(&[head(7, 5), 77]);
    words(&transfer(100, 3, 1));
    words(&[head(4, 5), 77]);
    words(&transfer(50, 3, 2));
    words(&[head(13, 5), 77]);
    words(&transfer(10, 3, 1));
    words(&[8192]);
    words(&[head(6, 5), 77, 3]);
    words(&[head(1, 5), 6]);
    words(&[head(3, 6), 78]);
    words(&transfer(1, 3, 1));
    words(&[head(2, 5), 0]);
    bytes
}

/// What is in the columns of the sample.
const COLUMNS: &str = "device=1,op=2:R/W/F,offset=3:B,size=4:B,time=5:us";

pub fn options(format: Format) -> Options {
    match format {
        Format::Columns => described(COLUMNS),
        format => Options {
            format: Some(format),
            ..Options::default()
        },
    }
}

/// For a text in columns.
pub fn described(list: &str) -> Options {
    Options {
        columns: Some(list.parse().unwrap_or_else(|e| panic!("{list}: {e}"))),
        ..Options::default()
    }
}

pub fn open(bytes: &[u8], options: Options) -> BlockTrace {
    BlockTrace::from_bytes("input", bytes, options).unwrap_or_else(|e| panic!("{e}"))
}

pub fn lines(bytes: &[u8], options: Options) -> Vec<String> {
    head(&mut open(bytes, options), 1000).unwrap_or_else(|e| panic!("{e}"))
}

/// Everything up to the first error, and the error.
pub fn read(bytes: &[u8], options: Options) -> (Vec<Request>, Option<String>) {
    let mut all = Vec::new();
    let mut trace = match BlockTrace::from_bytes("input", bytes, options) {
        Ok(trace) => trace,
        Err(error) => return (all, Some(error.to_string())),
    };
    let mut batch = Vec::new();
    loop {
        match trace.next_batch(&mut batch) {
            Ok(true) => all.extend_from_slice(&batch),
            Ok(false) => return (all, None),
            Err(error) => return (all, Some(error.to_string())),
        }
    }
}
