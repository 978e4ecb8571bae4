//! Results as the record that `piebald-report` prints.

use std::collections::BTreeMap;

use piebald_hw::disk::DiskSpec;
use piebald_os_model::replace::PolicySpec;
use piebald_report::{
    Replay, ReplayBytes, ReplayConditions, ReplayIo, ReplayParts, ReplayRun, ReplayTrace,
};
use piebald_sim::replay::{CallStream, DiskOutcome, InstanceOutcome, Merge, Pace, Part, Survey};
use piebald_trace::block::TargetKind;

use super::ReplayRequest;
use super::disk::NO_READAHEAD;
use super::plan::Job;

const PS_PER_S: f64 = 1e12;

/// What policies that look at addresses see without a disk.
pub(super) fn plain_layout(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Device => "addresses are those of the trace",
        TargetKind::File => "each file is taken to lie in one piece",
        TargetKind::Id => "blocks have no address",
    }
}

/// Conditions that hold for all runs.
pub(super) fn conditions(
    request: &ReplayRequest,
    spec: Option<&DiskSpec>,
    layout: String,
    reads_ahead: bool,
) -> ReplayConditions {
    let or_none = |text: &str| match spec {
        Some(_) => text.to_owned(),
        None => "none".to_owned(),
    };
    ReplayConditions {
        page_bytes: request.input.page.bytes().0,
        device: spec.map_or_else(|| "none".to_owned(), |s| s.name.clone()),
        readahead: if reads_ahead {
            or_none(&request.readahead)
        } else {
            NO_READAHEAD.to_owned()
        },
        scheduler: or_none(&request.scheduler),
        pace: match (spec, request.pace) {
            (None, _) | (_, Pace::Serial) => "serial".to_owned(),
            (_, Pace::Ordered) => "ordered".to_owned(),
            (_, Pace::Tasks) => "tasks".to_owned(),
            (_, Pace::Timed) => "timed".to_owned(),
        },
        layout,
        warmup_references: request.warmup,
        seed: request.seed,
        notes: Vec::new(),
    }
}

/// One policy at one size.
pub(super) fn run(request: &ReplayRequest, policy: &PolicySpec, job: &Job) -> ReplayRun {
    let outcome = job.instance.outcome();
    let mut extra: Vec<_> = outcome
        .figures
        .iter()
        .map(|&(name, value)| (name.to_owned(), value as f64, String::new()))
        .collect();
    // No policy for objects counts its work.
    if outcome.counts.misses > 0 && request.warmup == 0 && outcome.bytes.is_none() {
        let scanned = outcome.effort.scanned as f64 / outcome.counts.misses as f64;
        extra.push(("scanned per miss".to_owned(), scanned, "pages".to_owned()));
    }
    ReplayRun {
        policy: policy.to_string(),
        size_pages: job.capacity,
        references: outcome.counts.references,
        hits: outcome.counts.hits,
        misses: outcome.counts.misses,
        bytes: outcome.bytes.map(|bytes| ReplayBytes {
            requested: bytes.requested,
            missed: bytes.missed,
            too_large: bytes.too_large,
        }),
        io: outcome.disk.as_ref().map(io),
        parts: parts(request.pace, &outcome),
        extra,
    }
}

fn parts(pace: Pace, outcome: &InstanceOutcome) -> Option<ReplayParts> {
    let of = |get: fn(&Part) -> u64| outcome.parts.iter().map(get).collect::<Vec<_>>();
    let time = |part: &Part| match pace {
        Pace::Timed => part.waited,
        _ => part.elapsed,
    };
    let parts = ReplayParts {
        misses: of(|part| part.misses),
        bytes_missed: match outcome.bytes {
            Some(_) => of(|part| part.bytes_missed),
            None => Vec::new(),
        },
        requests: match outcome.disk {
            Some(_) => of(|part| part.requests),
            None => Vec::new(),
        },
        time_ps: match outcome.disk {
            Some(_) => outcome.parts.iter().map(time).collect(),
            None => Vec::new(),
        },
    };
    (!parts.misses.is_empty()).then_some(parts)
}

pub(super) fn io(disk: &DiskOutcome) -> ReplayIo {
    let (a, b) = (&disk.before, &disk.after);
    let seconds = |ps: u64| ps as f64 / PS_PER_S;
    let mut sequences: BTreeMap<u64, u64> = b.sequences.iter().copied().collect();
    for (length, count) in &a.sequences {
        if let Some(n) = sequences.get_mut(length) {
            *n = n.saturating_sub(*count);
        }
    }
    let pages =
        |(length, count): (u64, u64)| (length.min(u64::from(u32::MAX)) as u32, length * count);
    ReplayIo {
        elapsed_s: seconds(b.at.0.saturating_sub(a.at.0)),
        waited_s: seconds(b.stats.blocked.0 - a.stats.blocked.0),
        disk_busy_s: seconds(disk.disk.service.0),
        read_requests: b.io.requests_read - a.io.requests_read,
        write_requests: b.io.requests_written - a.io.requests_written,
        pages_read: b.io.pages_read - a.io.pages_read,
        pages_written: b.io.pages_written - a.io.pages_written,
        prefetched: b.stats.prefetched - a.stats.prefetched,
        // Pages of swap space that are read along count as used, and not as read ahead.
        prefetched_unused: (b.stats.prefetched.saturating_sub(b.stats.prefetched_used))
            .saturating_sub(a.stats.prefetched.saturating_sub(a.stats.prefetched_used)),
        waited_hits: b.stats.uses().waited - a.stats.uses().waited,
        sequences: sequences
            .into_iter()
            .filter(|s| s.1 > 0)
            .map(pages)
            .collect(),
    }
}

/// The traces. What is counted of all together stands with the first.
pub(super) fn traces(replay: &mut Replay, stream: &CallStream, requests: &[u64], survey: &Survey) {
    let formats = stream.formats();
    let skipped = stream.skipped();
    for (nth, name) in stream.names().iter().enumerate() {
        let mut trace = ReplayTrace {
            path: name.clone(),
            format: formats[nth].name().to_owned(),
            requests: requests[nth],
            skipped: skipped[nth].clone(),
            ..ReplayTrace::default()
        };
        if nth == 0 {
            trace.references = survey.references;
            trace.reads = survey.reads;
            trace.writes = survey.writes;
            trace.unique_pages = survey.pages.count();
            trace.sequential_share = if stream.names_objects() {
                f64::NAN
            } else {
                survey.sequential_share()
            };
        }
        replay.traces.push(trace);
    }
}

/// What a reader of the numbers must know.
pub(super) fn notes(replay: &mut Replay, stream: &CallStream, survey: &Survey, jobs: &[Job]) {
    let notes = &mut replay.conditions.notes;
    if replay.traces.len() > 1 {
        notes.push(
            "references, reads, writes and pages are those of all traces together".to_owned(),
        );
    }
    match stream.merge() {
        Merge::Single => {}
        Merge::ByStamp => notes.push(
            "the traces are merged by their stamps; files and disks of the same name are the same"
                .to_owned(),
        ),
        Merge::ByTime => notes
            .push("the traces are merged by the time since each one's first request".to_owned()),
        Merge::InTurn => notes
            .push("the traces give a request each in turn, whatever times they have".to_owned()),
    }
    let has_names = |t: &TargetKind| matches!(t, TargetKind::File | TargetKind::Device);
    if replay.traces.len() > 1
        && stream.merge() != Merge::ByStamp
        && stream.targets().iter().any(has_names)
    {
        let says = if stream.same_objects() {
            "files and disks of the same name in traces of one format are the same"
        } else {
            "files and disks of different traces are different, whatever their names (--objects \
             same: those of one format are the same by name)"
        };
        notes.push(says.to_owned());
    }
    if replay.traces.len() > 1 && stream.targets().contains(&TargetKind::Id) {
        notes.push(match stream.same_objects() {
            true => "objects of the same name in traces of one format are the same (--objects \
                     apart: they are different)"
                .to_owned(),
            false => "objects of different traces are different, whatever their names (--objects \
                      same: those of one format are the same by name)"
                .to_owned(),
        });
    }
    let shared = stream.merge() == Merge::ByStamp || stream.same_objects();
    if replay.traces.len() > 1 && shared && stream.moved_names() > 0 {
        notes.push(format!(
            "{} calls rename or remove files, which is followed within each trace alone: where another \
             trace has the file, it keeps its name there (a log of all processes, strace -f, has them all)",
            stream.moved_names()
        ));
    }
    for (trace, doubts) in replay.traces.iter().zip(stream.doubts()) {
        notes.extend(
            doubts
                .iter()
                .map(|doubt| format!("{}: {doubt}", trace.path)),
        );
    }
    if !survey.pages.is_exact() {
        notes.push(
            "the number of different pages is estimated (standard error about 0.02 %)".to_owned(),
        );
    }
    if !replay.curves.is_empty() {
        if replay.conditions.warmup_references > 0 {
            notes.push("curves count all references, those of the warm-up too".to_owned());
        }
        if jobs.iter().any(|job| job.instance.outcome().disk.is_some()) {
            notes.push(
                "curves are of memory alone: no readahead fills it, and no disk is below"
                    .to_owned(),
            );
        }
    }
    let disk = jobs.first().and_then(|job| job.instance.outcome().disk);
    let cut = disk.map_or(0, |disk| disk.disk.cut);
    if cut > 0 {
        notes.push(format!(
            "{cut} disk requests reached behind the disk's end and were cut"
        ));
    }
}
