//! Traces that come through pipes.

use std::io::{PipeReader, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use piebald_trace::block::{BlockTrace, Layout, PageShift, summarize};
use piebald_trace::convert::convert;
use piebald_trace::detect::detect;
use piebald_trace::foreign::{Ending, ForeignTrace, Format, Options};
use piebald_trace::recording::{Recording, is_recording};
use piebald_trace::source::last_pass;
use piebald_trace::{block, detect::TraceFormat};

use super::support::{Scratch, own, own_bytes};

/// A path to a pipe that another thread writes the bytes into. The pipe lives as long as the value.
struct Piped {
    reader: PipeReader,
}

impl Piped {
    fn new(bytes: &[u8]) -> Self {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let bytes = bytes.to_vec();
        // Who reads only the beginning leaves the writer with a broken pipe.
        std::thread::spawn(move || drop(writer.write_all(&bytes)));
        Self { reader }
    }

    fn path(&self) -> PathBuf {
        format!("/dev/fd/{}", self.reader.as_raw_fd()).into()
    }
}

#[test]
fn a_memory_trace_is_detected_summed_up_and_converted_through_a_pipe() {
    for name in [
        "chase.lackey",
        "chase.lackey.zst",
        "chase.champsim.xz",
        "chase.drmemtrace.7.trace.gz",
        "chase.drmemtrace.7.trace.zip",
    ] {
        let piped = Piped::new(&own_bytes(name));
        let summary = |path: &Path| {
            let trace = ForeignTrace::at(&[path], None, Options::default()).expect(name);
            trace.summary(1000).expect(name)
        };
        let plain = summary(&own(name));
        assert_eq!(summary(&piped.path()), plain, "{name}");
        // Once more, and from the beginning.
        assert_eq!(summary(&piped.path()), plain, "{name}");
        let scratch = Scratch::new("unused", b"");
        let out = |tail: &str| scratch.0.with_extension(tail);
        let from_file = convert(&[own(name)], None, &out("a")).expect(name);
        let from_pipe = convert(&[piped.path()], None, &out("b")).expect(name);
        assert_eq!(from_pipe.counts, from_file.counts, "{name}");
    }
}

#[test]
fn a_block_trace_longer_than_the_pipe_is_read_twice() {
    let line = |n: u64| format!("{},h,0,Read,{},4096,1\n", n * 10, n % 999 * 4096);
    let text: String = (0..60_000).map(line).collect();
    assert!(text.len() > 1 << 20);
    let piped = Piped::new(text.as_bytes());
    assert_eq!(
        detect(&piped.path()).expect("a format"),
        TraceFormat::Block(block::Format::Msr)
    );
    for _ in 0..2 {
        let mut trace = BlockTrace::open(&piped.path(), block::Options::default()).expect("msr");
        let sum = summarize(&mut trace, PageShift::PAGE_4K, 10_000).expect("reads");
        assert_eq!(
            (sum.requests, sum.unpacked_bytes),
            (60_000, text.len() as u64)
        );
    }
    // After this one nothing is kept, which changes nothing for it.
    last_pass(&piped.path()).expect("a pipe");
    let mut trace = BlockTrace::open(&piped.path(), block::Options::default()).expect("msr");
    let sum = summarize(&mut trace, PageShift::PAGE_4K, 10_000).expect("reads");
    assert_eq!(sum.requests, 60_000);
}

#[test]
fn a_layout_and_a_recording_come_through_pipes_as_well() {
    let piped = Piped::new(b"a 0 100 3\n");
    assert_eq!(
        Layout::open(&piped.path()).expect("a layout").page(b"a", 2),
        Some(102)
    );
    let scratch = Scratch::new("unused", b"");
    let out = scratch.0.with_extension("pbr");
    convert(&[own("chase.lackey")], None, &out).expect("converts");
    let piped = Piped::new(&std::fs::read(&out).expect("a recording"));
    assert!(is_recording(&piped.path()).expect("reads"));
    let recording = Recording::open(&piped.path()).expect("opens");
    let plain = Recording::open(&out).expect("opens");
    assert_eq!(recording.index().counts(), plain.index().counts());
    recording.verify().expect("whole");
}

#[test]
fn a_pipe_that_ends_inside_a_record_says_so() {
    let whole = own_bytes("chase.champsim");
    let piped = Piped::new(&whole[..20 * 64 + 7]);
    let trace = ForeignTrace::at(&[piped.path()], None, Options::default()).expect("champsim");
    assert_eq!(trace.format(), Format::ChampSim);
    let sum = trace.summary(1000).expect("a summary");
    let [Ending::Broken(why)] = &sum.endings[..] else {
        panic!("{:?}", sum.endings);
    };
    let told = "byte 1280: the pipe ends inside a ChampSim instruction record: 7 of 64 bytes";
    assert!(why.ends_with(told), "{why}");
    let piped = Piped::new(b"1,h,0,Read,0,512,9\n1,h,0,Rea");
    let mut trace = BlockTrace::open(&piped.path(), block::Options::default()).expect("msr");
    let mut batch = Vec::new();
    assert!(trace.next_batch(&mut batch).expect("the first"));
    let error = trace.next_batch(&mut batch).expect_err("cut").to_string();
    assert!(
        error.ends_with("; no line feed ends this line: the pipe may have been cut"),
        "{error}"
    );
}

#[test]
fn a_packing_that_is_cut_in_a_pipe_is_an_error() {
    let packed = own_bytes("chase.lackey.zst");
    let piped = Piped::new(&packed[..packed.len() - 5]);
    let trace = ForeignTrace::at(&[piped.path()], Some(Format::Lackey), Options::default());
    let sum = trace.expect("named").summary(1000).expect("a summary");
    assert!(matches!(&sum.endings[..], [Ending::Broken(why)] if why.contains("cannot be read")));
    let piped = Piped::new(b"");
    let error = BlockTrace::open(&piped.path(), block::Options::default()).err();
    assert!(
        error
            .expect("empty")
            .to_string()
            .contains("the file is empty")
    );
}
