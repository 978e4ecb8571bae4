//! Block and file traces in words.

use std::{fmt::Write as _, path::Path};

use piebald_trace::block::{
    self, BlockTrace, Format, Options, PageShift, Summary, TargetKind, Times,
};
use piebald_units::Bytes;

use crate::{
    failure::Failure, json::Json, trace::with_schema, trace_head::print_lines, trace_info::read_as,
};

/// Distinct pages are counted exactly up to this.
const PAGES_BOUND: usize = 10_000_000;

pub(crate) fn info(
    file: &Path,
    options: Options,
    json: &Json,
    recover: bool,
) -> Result<(), Failure> {
    if recover {
        return Err(Failure::usage(format!(
            "{}: --recover: allowed with recordings; this is none",
            file.display()
        )));
    }
    let mut trace = BlockTrace::open(file, options).map_err(Failure::usage)?;
    let summary = block::summarize(&mut trace, PageShift::PAGE_4K, PAGES_BOUND);
    let summary = summary.map_err(Failure::usage)?;
    json.show(&describe(file, &summary), &with_schema(&summary)?)
}

pub(crate) fn head(file: &Path, options: Options, n: u64, json: &Json) -> Result<(), Failure> {
    let mut trace = BlockTrace::open(file, options).map_err(Failure::usage)?;
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    let lines = block::head(&mut trace, n).map_err(Failure::usage)?;
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    print_lines("request time_ns task op target", &lines, json)
}

/// What a trace holds, one fact in a line.
fn describe(file: &Path, sum: &Summary) -> String {
    let mut out = format!("{}: {} trace\n", file.display(), sum.format);
    let mut line = |text: String| {
        let _ = writeln!(out, "  {text}");
    };
    // A list of columns says it itself.
    let known = Some(sum.format).filter(|format| *format != Format::Columns);
    if let Some(fields) = known.and_then(|format| read_as(format.about())) {
        line(fields);
    }
    line(format!(
        "{} requests: {} reads, {} writes, {} mappings, {} deletions",
        sum.requests, sum.reads, sum.writes, sum.maps, sum.deletes
    ));
    if sum.names_objects {
        line(format!(
            "{} references to {} objects, each a page of 4 KiB where sizes are ignored",
            sum.page_references, sum.unique_pages
        ));
    } else {
        line(format!(
            "{} references to {} pages of 4 KiB, {:.1} % to the next page",
            sum.page_references,
            sum.unique_pages,
            100.0 * sum.next_page_share()
        ));
        line(format!(
            "{:.1} % of requests begin where the one before ended",
            100.0 * sum.sequential_share()
        ));
        if let Some((low, high)) = sum.page_range {
            line(format!("pages {low} to {high}"));
        }
    }
    if let Some((low, high)) = sum.object_bytes {
        let [low, high] = [low, high].map(|n| Bytes(n.into()));
        line(format!(
            "objects of {low} to {high}, {} asked for; as pages each is one",
            Bytes(sum.bytes)
        ));
    }
    line(match sum.traits.target {
        TargetKind::Device => format!("{} disks, with addresses", sum.disks),
        TargetKind::File => format!("{} files, without their places on a disk", sum.files),
        TargetKind::Id if sum.names_objects => {
            "named objects, which say nothing about places".to_owned()
        }
        TargetKind::Id => "numbered blocks, which say nothing about places".to_owned(),
    });
    line(match (sum.duration_ns(), sum.traits.times) {
        (Some(ns), _) => format!(
            "{:.3} s from the first request to the last",
            ns as f64 / 1e9
        ),
        (None, Times::None) => "no times".to_owned(),
        (None, _) => "no times in this trace".to_owned(),
    });
    if !sum.traits.directions {
        line("reads and writes are not told apart".to_owned());
    }
    passed(sum, &mut line);
    if sum.skipped.total() > 0 {
        line(format!("LEFT OUT: {} wrong records", sum.skipped.total()));
        for (field, n) in &sum.skipped.by_field {
            line(format!("  {n} for {field}"));
        }
        line(format!(
            "  the first: {}",
            sum.skipped.first.as_deref().unwrap_or("")
        ));
    }
    out
}

fn passed(sum: &Summary, line: &mut impl FnMut(String)) {
    for (what, told) in [
        ("passed over", sum.passed.told()),
        ("left out, as their data is not told", sum.left_out.told()),
        ("noted", sum.notes.told()),
    ] {
        if !told.is_empty() {
            line(format!("{what}: {}", told.join(", ")));
        }
    }
}
