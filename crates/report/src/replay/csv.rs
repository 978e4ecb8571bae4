//! Replays as CSV: three tables, each in a file of its own, so that any reader takes
//! them as they are. An unknown number is an empty field; all digits are written, so
//! that reading a number back gives the same.

use super::{
    Replay, ReplayRun,
    apart::{Measure, Verdict},
    grid::Grid,
    matrix::{LONG_SEQUENCE, extra, extra_names},
};
use crate::{ReportError, csv::plain};

/// Fields of a run before those of its policy alone.
const RUN: [&str; 25] = [
    "policy",
    "size_pages",
    "size_bytes",
    "references",
    "hits",
    "misses",
    "hit_ratio",
    "elapsed_s",
    "waited_s",
    "disk_busy_s",
    "time_vs_first",
    "time_verdict",
    "misses_vs_first",
    "misses_verdict",
    "read_requests",
    "write_requests",
    "pages_read",
    "pages_written",
    "prefetched",
    "prefetched_unused",
    "waited_hits",
    "mean_sequence_pages",
    "share_in_sequences_over_40",
    "compared",
    "status",
];
/// Fields of a run of objects that take their bytes.
const BYTES: [&str; 4] = [
    "bytes_requested",
    "bytes_missed",
    "byte_miss_ratio",
    "too_large",
];
const _: () = assert!(LONG_SEQUENCE == 40, "a field is named by it");

/// One line per run. `hit_ratio` and shares are 0 to 1; `time_vs_first` is the time by
/// which runs are compared (elapsed, or waited at the trace's own pace) against that of
/// the first policy at the same size, less 1, and `misses_vs_first` the same of misses; their `_verdict` is
/// `shown`, `1 % or less` or `may be chance`, all pairs of policies, sizes and measures corrected together, and empty for
/// the first policy and those that nobody can choose; `compared` is `no` for a run that was cut
/// short; `status` is `complete` or `PARTIAL`. Where objects take their bytes, `bytes_requested`,
/// `bytes_missed`, `byte_miss_ratio` and `too_large` follow. Figures of policies come last, named
/// `name [unit]`.
///
/// # Errors
/// [`ReportError::Csv`] if the writer refuses.
pub fn replay_to_csv(replay: &Replay) -> Result<String, ReportError> {
    let grid = Grid::new(replay);
    let extras = extra_names(&replay.runs);
    let mut out = ::csv::Writer::from_writer(Vec::new());
    let titles = extras.iter().map(|(name, unit)| match *unit {
        "" => (*name).to_owned(),
        unit => format!("{name} [{unit}]"),
    });
    let bytes: &[&str] = if replay.has_bytes() { &BYTES } else { &[] };
    let names = RUN.iter().chain(bytes).map(|s| (*s).to_owned());
    out.write_record(names.chain(titles))?;
    for run in &replay.runs {
        let own = extras
            .iter()
            .map(|(name, unit)| plain(extra(run, name, unit)));
        let bytes = byte_fields(run).into_iter().take(bytes.len());
        out.write_record(fields(&grid, run).into_iter().chain(bytes).chain(own))?;
    }
    text(out)
}

fn fields(grid: &Grid<'_>, run: &ReplayRun) -> [String; 25] {
    let io = run.io.as_ref();
    let time = |get: fn(&super::ReplayIo) -> f64| plain(io.map(get));
    let count =
        |get: fn(&super::ReplayIo) -> u64| io.map_or_else(String::new, |io| get(io).to_string());
    let place = grid.place(run);
    let verdict = |measure| {
        let found = place.and_then(|(p, s)| grid.verdict((p, 0, s), measure));
        found.map_or("", Verdict::word).to_owned()
    };
    let compared = place.is_some_and(|(p, s)| grid.whole(p, s).is_some());
    [
        run.policy.clone(),
        run.size_pages.to_string(),
        grid.replay.bytes(run.size_pages).to_string(),
        run.references.to_string(),
        run.hits.to_string(),
        run.misses.to_string(),
        plain(run.hit_ratio()),
        time(|io| io.elapsed_s),
        time(|io| io.waited_s),
        time(|io| io.disk_busy_s),
        plain(place.and_then(|(p, s)| grid.change(p, s))),
        verdict(Measure::Time),
        plain(place.and_then(|(p, s)| grid.misses_against_first(p, s))),
        verdict(Measure::Misses),
        count(|io| io.read_requests),
        count(|io| io.write_requests),
        count(|io| io.pages_read),
        count(|io| io.pages_written),
        count(|io| io.prefetched),
        count(|io| io.prefetched_unused),
        count(|io| io.waited_hits),
        plain(io.and_then(|io| io.mean_sequence())),
        plain(io.and_then(|io| io.share_longer_than(LONG_SEQUENCE))),
        if compared { "yes" } else { "no" }.to_owned(),
        status(grid.replay).to_owned(),
    ]
}

fn byte_fields(run: &ReplayRun) -> [String; 4] {
    let count = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    [
        count(run.bytes.map(|b| b.requested)),
        count(run.bytes.map(|b| b.missed)),
        plain(run.byte_miss_ratio()),
        count(run.bytes.map(|b| b.too_large)),
    ]
}

/// One line per length of sequences of each run with a disk: how many pages were read in
/// such sequences, and the share of all pages read that lies in shorter ones, which is
/// the curve of DULO (FAST'05), Figures 3 and 4.
///
/// # Errors
/// As [`replay_to_csv`].
pub fn replay_sequences_to_csv(replay: &Replay) -> Result<String, ReportError> {
    let mut out = ::csv::Writer::from_writer(Vec::new());
    out.write_record([
        "policy",
        "size_pages",
        "size_bytes",
        "length_pages",
        "pages",
        "share_in_shorter",
        "status",
    ])?;
    for run in &replay.runs {
        let sequences = run.io.iter().flat_map(|io| io.cumulated());
        for (length, pages, shorter) in sequences {
            out.write_record([
                &run.policy,
                &run.size_pages.to_string(),
                &replay.bytes(run.size_pages).to_string(),
                &length.to_string(),
                &pages.to_string(),
                &plain(Some(shorter)),
                status(replay),
            ])?;
        }
    }
    text(out)
}

/// One line per point of the miss-ratio curves. `kind` is `exact` or `sampled`;
/// `misses` is empty where the curve is sampled, `ci95_low` and `ci95_high` where it has
/// no interval.
///
/// # Errors
/// As [`replay_to_csv`].
pub fn replay_curves_to_csv(replay: &Replay) -> Result<String, ReportError> {
    let mut out = ::csv::Writer::from_writer(Vec::new());
    out.write_record([
        "policy",
        "kind",
        "sampling_rate",
        "samples",
        "references",
        "size_pages",
        "size_bytes",
        "misses",
        "miss_ratio",
        "ci95_low",
        "ci95_high",
        "status",
    ])?;
    for curve in &replay.curves {
        for point in &curve.points {
            let [low, high] = [0, 1].map(|end| plain(point.ci95.map(|ends| ends[end])));
            out.write_record([
                curve.policy.as_str(),
                if curve.exact { "exact" } else { "sampled" },
                &plain(Some(curve.sampling_rate)),
                &curve.samples.to_string(),
                &curve.references.to_string(),
                &point.size_pages.to_string(),
                &replay.bytes(point.size_pages).to_string(),
                &point.misses.map_or_else(String::new, |m| m.to_string()),
                &plain(Some(point.miss_ratio)),
                &low,
                &high,
                status(replay),
            ])?;
        }
    }
    text(out)
}

fn status(replay: &Replay) -> &'static str {
    match replay.complete {
        true => "complete",
        false => "PARTIAL",
    }
}

fn text(out: ::csv::Writer<Vec<u8>>) -> Result<String, ReportError> {
    let bytes = out.into_inner();
    let bytes = bytes.map_err(|e| ::csv::Error::from(e.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
