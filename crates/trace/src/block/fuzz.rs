//! Entry points for fuzzing: any bytes go in, packed or not, and the reader's promises are checked.
//!
//! The promises, for every format, strict and lenient: reading ends; requests keep the limits of
//! their documentation; lenient reading gives at least what strict reading gave before its error,
//! and fails only where the input as a whole cannot be read: it cannot be unpacked, is in another
//! encoding, or lacks the header or columns that were named; errors name the input and a place; one
//! batch and single requests give the same.
//!
//! # Panics
//! Each function panics if a promise is broken, which is what a fuzzer looks for. They are not
//! meant for anything else.

use super::{
    BlockError, BlockTrace, Columns, Format, FptWriter, Layout, Op, Options, PageShift, Request,
    Target, TargetKind, Times, summarize,
};
use crate::foreign::ForeignError;

/// Name that stands for the file in messages.
const NAME: &str = "fuzz";
/// Requests after which a run stops: a few packed bytes may unpack to gigabytes.
const MAX_REQUESTS: usize = 1 << 17;
/// Bound of distinct pages in summaries.
const DISTINCT: usize = 1 << 10;

/// Reads as these options say, strictly and leniently.
pub fn read(options: &Options, bytes: &[u8]) {
    let lenient = &Options {
        lenient: true,
        ..options.clone()
    };
    let whole = run(options, bytes);
    let rest = run(lenient, bytes);
    if whole.requests.len() >= MAX_REQUESTS {
        return;
    }
    let format = options.format;
    assert!(
        rest.requests.starts_with(&whole.requests),
        "{format:?}: lenient reading gives other requests"
    );
    match (&whole.failure, &rest.failure) {
        (None, None) => assert_eq!(rest.skipped, 0, "{format:?}"),
        (Some(BlockError::Empty { .. }), _) => {}
        (Some(_), None) => assert!(
            rest.skipped > 0,
            "{format:?}: an error that lenient reading does not count"
        ),
        (_, Some(error)) => assert!(
            matches!(
                error,
                BlockError::Input(
                    ForeignError::Read { .. }
                        | ForeignError::Container { .. }
                        | ForeignError::Encoding { .. }
                ) | BlockError::Empty { .. }
                    | BlockError::HeaderBeyond { .. }
                    | BlockError::NoColumn { .. }
                    | BlockError::NoRecord { .. }
            ),
            "{format:?}: lenient reading fails with {error}"
        ),
    }
    sum_up(lenient, bytes);
    round_trip(options, bytes);
}

/// Takes the first line for a list of columns, and reads what follows by it.
pub fn columns(bytes: &[u8]) {
    let (list, text) = match memchr::memchr(b'\n', bytes) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    match String::from_utf8_lossy(list).parse::<Columns>() {
        Err(error) => assert!(error.to_string().contains("allowed: "), "{error}"),
        Ok(columns) => read(
            &Options {
                columns: Some(columns),
                ..Options::default()
            },
            text,
        ),
    }
}

/// Finds out the format and reads it.
pub fn detect(bytes: &[u8]) {
    match BlockTrace::from_bytes(NAME, bytes, Options::default()) {
        Ok(trace) => read(&named(trace.format()), bytes),
        Err(error) => assert!(error.to_string().starts_with(NAME), "{error}"),
    }
}

/// Reads as a layout.
pub fn layout(bytes: &[u8]) {
    let Ok(layout) = Layout::from_bytes(NAME, bytes) else {
        return;
    };
    assert!(!layout.is_empty());
    for (path, extents) in layout.iter() {
        for pair in extents.windows(2) {
            assert!(pair[0].logical + pair[0].pages <= pair[1].logical);
        }
        for extent in extents {
            let last = extent.pages - 1;
            let found = layout.page(path, extent.logical + last);
            assert_eq!(found, Some(extent.physical + last));
        }
    }
}

struct Run {
    requests: Vec<Request>,
    failure: Option<BlockError>,
    skipped: u64,
}

fn named(format: Format) -> Options {
    Options {
        format: Some(format),
        ..Options::default()
    }
}

fn open(options: &Options, bytes: &[u8]) -> Result<BlockTrace, BlockError> {
    BlockTrace::from_bytes(NAME, bytes, options.clone())
}

fn run(options: &Options, bytes: &[u8]) -> Run {
    let mut run = Run {
        requests: Vec::new(),
        failure: None,
        skipped: 0,
    };
    let mut trace = match open(options, bytes) {
        Ok(trace) => trace,
        Err(error) => {
            run.failure = Some(error);
            return run;
        }
    };
    let mut batch = Vec::new();
    loop {
        match trace.next_batch(&mut batch) {
            Ok(more) => {
                assert_eq!(more, !batch.is_empty());
                batch.iter().for_each(|r| check(&trace, r));
                run.requests.extend_from_slice(&batch);
                if !more || run.requests.len() >= MAX_REQUESTS {
                    break;
                }
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with(NAME) && text.contains("byte "), "{text}");
                assert!(!trace.next_batch(&mut batch).is_ok_and(|more| more));
                run.failure = Some(error);
                break;
            }
        }
    }
    run.skipped = trace.skipped().total();
    assert_eq!(run.skipped > 0, trace.skipped().first.is_some());
    run
}

fn check(trace: &BlockTrace, request: &Request) {
    let traits = trace.traits();
    let span = request.pages(PageShift::PAGE_4K);
    let kind = match request.target {
        Target::Device {
            sector, sectors, ..
        } => {
            assert!(sectors > 0 && sector + sectors <= 1 << 54);
            TargetKind::Device
        }
        Target::File {
            file,
            offset,
            length,
        } => {
            assert!(trace.files().get(file).is_some());
            match request.op {
                Op::Delete if length == u64::MAX - offset => {}
                _ => assert!(length > 0 && offset + length <= 1 << 63),
            }
            TargetKind::File
        }
        Target::Id { .. } => TargetKind::Id,
    };
    assert_eq!(kind, traits.target);
    assert!(span.count > 0 || request.op == Op::Delete);
    assert!(traits.tasks || request.task == 0);
    assert!(traits.directions || request.op == Op::Read);
    match traits.times {
        Times::None => assert_eq!(request.time, None),
        Times::Loose => assert!(request.time.is_some()),
        Times::Ordered | Times::Optional => {}
    }
}

fn sum_up(options: &Options, bytes: &[u8]) {
    let Ok(mut trace) = open(options, bytes) else {
        return;
    };
    let Ok(sum) = summarize(&mut trace, PageShift::PAGE_4K, DISTINCT) else {
        return;
    };
    assert_eq!(
        sum.requests,
        sum.reads + sum.writes + sum.maps + sum.deletes
    );
    assert!(sum.next_page_references <= sum.page_references);
    assert!(sum.sequential_requests <= sum.requests);
}

/// What is written as `.fpt` reads back as the same pages.
fn round_trip(options: &Options, bytes: &[u8]) {
    let Ok(mut trace) = open(options, bytes) else {
        return;
    };
    if trace.traits().target != TargetKind::File {
        return;
    }
    let Run {
        requests: before,
        failure: None,
        ..
    } = run(options, bytes)
    else {
        return;
    };
    let mut writer = FptWriter::new(Vec::new()).expect("memory");
    let mut batch = Vec::new();
    while trace.next_batch(&mut batch).expect("read before") {
        for request in &batch {
            match writer.request(request, trace.files()) {
                Err(BlockError::Unwritable { .. }) => return,
                written => written.expect("memory"),
            }
        }
    }
    if before.is_empty() {
        return;
    }
    let written = writer.into_inner();
    let after = run(&named(Format::Fpt), &written);
    assert!(after.failure.is_none(), "{:?}", after.failure);
    let pages = |r: &Request| {
        let span = r.pages(PageShift::PAGE_4K);
        (r.op, r.task, span.first, span.count)
    };
    // A hole with no whole page in it is not written.
    let some = |of: &(Op, u32, u64, u64)| of.3 > 0;
    let before = before.iter().map(pages).filter(some);
    let after = after.requests.iter().map(pages).filter(some);
    assert!(
        before.eq(after),
        "{:?}: .fpt changes the pages",
        options.format
    );
}
