//! Entry points for fuzzing: any bytes go in, packed or not, and the reader's promises are checked.
//!
//! The promises, for every format, strict and lenient: reading ends; requests keep the limits of
//! their documentation; lenient reading gives at least what strict reading gave before its error,
//! and fails only where the input cannot be unpacked; errors name the input and a place; one batch
//! and single requests give the same.
//!
//! # Panics
//! Each function panics if a promise is broken, which is what a fuzzer looks for. They are not
//! meant for anything else.

use super::{
    BlockError, BlockTrace, Format, FptWriter, Layout, Op, Options, PageShift, Request, Stage,
    Target, TargetKind, Times, summarize,
};
use crate::foreign::ForeignError;

/// Name that stands for the file in messages.
const NAME: &str = "fuzz";
/// Requests after which a run stops: a few packed bytes may unpack to gigabytes.
const MAX_REQUESTS: usize = 1 << 17;
/// Bound of distinct pages in summaries.
const DISTINCT: usize = 1 << 10;

/// Reads as a format.
pub fn read(format: Format, bytes: &[u8]) {
    let strict = run(format, bytes, false);
    let lenient = run(format, bytes, true);
    if strict.requests.len() >= MAX_REQUESTS {
        return;
    }
    assert!(
        lenient.requests.starts_with(&strict.requests),
        "{format}: lenient reading gives other requests"
    );
    match (&strict.failure, &lenient.failure) {
        (None, None) => assert_eq!(lenient.skipped, 0, "{format}"),
        (Some(BlockError::Empty { .. }), _) => {}
        (Some(_), None) => assert!(
            lenient.skipped > 0,
            "{format}: an error that lenient reading does not count"
        ),
        (_, Some(error)) => assert!(
            matches!(
                error,
                BlockError::Input(ForeignError::Read { .. } | ForeignError::Container { .. })
                    | BlockError::Empty { .. }
            ),
            "{format}: lenient reading fails with {error}"
        ),
    }
    sum_up(format, bytes);
    if format.traits().target == TargetKind::File && strict.failure.is_none() {
        round_trip(format, bytes);
    }
}

/// Finds out the format and reads it.
pub fn detect(bytes: &[u8]) {
    match BlockTrace::from_bytes(NAME, bytes, Options::default()) {
        Ok(trace) => read(trace.format(), bytes),
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

fn options(format: Format, lenient: bool) -> Options {
    Options {
        format: Some(format),
        lenient,
        stage: Stage::Queue,
        under: Vec::new(),
    }
}

fn run(format: Format, bytes: &[u8], lenient: bool) -> Run {
    let mut run = Run {
        requests: Vec::new(),
        failure: None,
        skipped: 0,
    };
    let mut trace = match BlockTrace::from_bytes(NAME, bytes, options(format, lenient)) {
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
                Op::Delete => assert_eq!(length, u64::MAX - offset),
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

fn sum_up(format: Format, bytes: &[u8]) {
    let Ok(mut trace) = BlockTrace::from_bytes(NAME, bytes, options(format, true)) else {
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
fn round_trip(format: Format, bytes: &[u8]) {
    let before = run(format, bytes, false).requests;
    let Ok(mut trace) = BlockTrace::from_bytes(NAME, bytes, options(format, false)) else {
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
    let after = run(Format::Fpt, &written, false);
    assert!(after.failure.is_none(), "{:?}", after.failure);
    let pages = |r: &Request| {
        let span = r.pages(PageShift::PAGE_4K);
        (r.op, r.task, span.first, span.count)
    };
    let (before, after) = (before.iter().map(pages), after.requests.iter().map(pages));
    assert!(before.eq(after), "{format}: .fpt changes the pages");
}
