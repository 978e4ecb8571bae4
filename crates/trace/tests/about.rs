//! The table of formats: what is said of each agrees with its reader.

use piebald_trace::about::{Form, Stamps};
use piebald_trace::block::{self, BlockTrace, Times};
use piebald_trace::detect::{Found, TraceFormat};
use piebald_trace::foreign::{self, Fetches, ForeignThread};
use piebald_units::op::{MemRef, Next, OpSource};

/// The format, and the list that one of them needs.
fn options(format: block::Format) -> block::Options {
    let list = "op=2,offset=3:B,size=4:B,time=5:us";
    let columns = (format == block::Format::Columns).then(|| list.parse().expect("a list"));
    block::Options {
        format: Some(format),
        columns,
        ..block::Options::default()
    }
}

/// Requests of a sample, and whether they have times.
fn requests(format: block::Format, bytes: &[u8]) -> Vec<bool> {
    let trace = BlockTrace::from_bytes(format.name(), bytes, options(format));
    let trace = trace.unwrap_or_else(|e| panic!("{e}"));
    let requests = trace
        .requests()
        .map(|r| r.unwrap_or_else(|e| panic!("{e}")));
    requests.map(|r| r.time.is_some()).collect()
}

/// Data references of a sample.
fn references(format: foreign::Format, bytes: &[u8]) -> usize {
    let options = foreign::Options {
        fetches: Fetches::None,
        prefetches: false,
    };
    let thread = ForeignThread::from_bytes(format.name(), bytes, format, options);
    let mut thread = thread.unwrap_or_else(|e| panic!("{e}"));
    let filled = thread.fill(&mut [MemRef::default(); 16]);
    assert_ne!(filled.next, Next::Broken, "{:?}", thread.failure());
    assert_ne!(filled.next, Next::More, "{format}");
    filled.refs
}

#[test]
fn a_sample_is_one_request_or_reference() {
    for format in TraceFormat::all() {
        let sample = format.about().form.sample();
        let found = match format {
            TraceFormat::Block(format) => requests(format, &sample).len(),
            TraceFormat::Memory(format) => references(format, &sample),
        };
        assert_eq!(found, 1, "{format}: {}", sample.escape_ascii());
    }
}

#[test]
fn stamps_are_where_requests_have_times() {
    for format in TraceFormat::all() {
        let about = format.about();
        let TraceFormat::Block(format) = format else {
            assert_eq!(about.stamps, Stamps::Absent, "{format}");
            continue;
        };
        let timed = requests(format, &about.form.sample())[0];
        let sample = BlockTrace::from_bytes("sample", &about.form.sample(), options(format));
        let told = match sample.expect("opens").traits().times {
            _ if format == block::Format::Columns => about.stamps.origin().is_none(),
            Times::None => about.stamps == Stamps::Absent && !timed,
            Times::Optional => matches!(about.stamps, Stamps::Optional(_)),
            Times::Ordered | Times::Loose => {
                matches!(
                    about.stamps,
                    Stamps::Absolute(_) | Stamps::Shared(_) | Stamps::Relative(_)
                ) && timed
            }
        };
        assert!(told, "{format}: {:?}", about.stamps);
    }
}

#[test]
fn layouts_are_as_long_as_what_the_reader_takes() {
    for format in TraceFormat::all() {
        let Form::Binary { parts, .. } = format.about().form else {
            continue;
        };
        let sample = format.about().form.sample();
        assert_eq!(
            sample.len(),
            parts.iter().map(|p| p.bytes()).sum::<usize>(),
            "{format}"
        );
        // One byte less is a cut record, and so is one byte more.
        for length in [sample.len() - 1, sample.len() + 1] {
            let mut bytes = sample.clone();
            bytes.resize(length, 0);
            assert!(breaks(format, &bytes), "{format}: {length} bytes");
        }
    }
}

fn breaks(format: TraceFormat, bytes: &[u8]) -> bool {
    match format {
        TraceFormat::Block(format) => {
            let trace = BlockTrace::from_bytes("cut", bytes, options(format)).expect("opens");
            trace.requests().any(|r| r.is_err())
        }
        TraceFormat::Memory(format) => {
            let options = foreign::Options::default();
            let thread = ForeignThread::from_bytes("cut", bytes, format, options);
            let mut thread = thread.expect("opens");
            let filled = thread.fill(&mut [MemRef::default(); 16]);
            filled.next == Next::Broken
        }
    }
}

#[test]
fn what_is_said_is_whole() {
    for format in TraceFormat::all() {
        let about = format.about();
        for (field, text) in [
            ("what", about.what),
            ("source", about.source),
            ("left out", about.left_out),
        ] {
            assert!(
                !text.is_empty() && !text.ends_with('.'),
                "{format}: {field}"
            );
        }
        let fields = match about.form {
            Form::Text {
                line,
                fields,
                sample,
            } => {
                assert!(!line.is_empty() && sample.ends_with('\n'), "{format}");
                fields.len()
            }
            Form::Binary { parts, .. } => parts.iter().map(|p| p.fields.len()).sum(),
        };
        assert!(fields > 0, "{format}");
    }
}

#[test]
fn formats_without_a_mark_are_the_ones_that_must_be_named() {
    let named = TraceFormat::all().filter(|f| f.found_out() == Found::Never);
    let named: Vec<String> = named.map(|f| f.to_string()).collect();
    assert_eq!(named, ["w106", "w106-be", "valpin", "columns"]);
}
