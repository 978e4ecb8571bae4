//! Rows that need no runs of programs: M-10, M-11, M-12 and M-16; and M-13, single reads.

use piebald_policy::mfc::{Config, Sizes};
use piebald_report::{PaperFigure, Published, Sample, Target, TargetKind, Value, Verdict};
use piebald_sim::Domains;

use super::{once::Emptied, runs::Runs};
use crate::{row::Row, verdict};

type Done = (Vec<Target>, Vec<PaperFigure>);

const MIB: f64 = (1 << 20) as f64;
/// MB/s that a clock in whole picoseconds tells apart: one of them is 6 MB/s of 28,000.
const CLOCK_STEP: f64 = 10.0;
/// M-12: files (section 6.6.1), and bytes of each.
const FILES: u32 = 128;
const MOST_BYTES: f64 = 234.0;

/// M-10: what all runs are charged.
pub(super) fn migration() -> Target {
    let row = Row::new("M-10", "Section 4.5: a migration", TargetKind::G).plain();
    let mut target = row.finish();
    target.verdict = Verdict::Given;
    let names = ["same chip", "one hop", "two hops"];
    let given = names.into_iter().zip(Config::PAPER.migration);
    target.values = given
        .zip([9.2, 10.5, 11.7])
        .map(|((name, time), paper)| Value {
            name: name.to_owned(),
            paper: Published::Number(paper),
            measured: Some(time.0 as f64 / 1e6),
            ci95: None,
            unit: "us".to_owned(),
        })
        .collect();
    target
}

/// M-11, which cannot be counted.
pub(super) fn copied() -> Target {
    let mut row = Row::new("M-11", "Figure 10: bytes copied", TargetKind::H);
    row.missing(
        "the model counts lines that come out of other cores' caches, but not of what they are: \
         the file's cannot be told from the rest; and the recordings of eight passes over one \
         file are not made",
    );
    row.finish()
}

/// M-12: bytes alone. Times would be those of the computer that this runs on.
pub(super) fn metadata(runs: &mut Runs<'_>) -> Result<Done, String> {
    let topology = Domains::of(runs.spec());
    let sizes = Sizes::of(&topology.topology(), &Config::PAPER, FILES);
    // What is kept for files, beside what is kept for the machine itself.
    let bytes = sizes.map_err(|e| e.to_string())?.file_bytes() as f64 / f64::from(FILES);
    let mut row = Row::new("M-12", "Figure 11: metadata", TargetKind::O).plain();
    let paper = Published::Text(format!("at most {MOST_BYTES}"));
    let found = Ok(Sample::new(vec![bytes]));
    row.judge("metadata of a file", paper, found, "B", |s| {
        if s.mean <= MOST_BYTES {
            Verdict::Match
        } else {
            Verdict::Miss
        }
    });
    row.note(
        "two of three bounds are not judged: times of an access and of an assignment are those of a \
         computer (the example mfc_cost of piebald-policy), and the model is charged the paper's",
    );
    Ok((vec![row.finish()], Vec::new()))
}

/// M-16.
pub(super) fn aggregates(runs: &mut Runs<'_>) -> Result<Done, String> {
    let spec = runs.spec();
    let dram = &spec.memory.dram;
    let line_ps = (u64::from(dram.timing.ccd) * dram.timing.tck.0) as f64;
    let line = f64::from(dram.timing.bl) * f64::from(dram.bus_bytes);
    let channels = f64::from(spec.memory.controllers) * f64::from(dram.channels);
    let rate = channels * line / line_ps * 1e6;
    let cores = spec.core.sockets * spec.core.per_socket;
    let outer = || spec.cache.iter().filter(|c| c.level >= 2);
    let whole = outer().map(|c| c.size.0 * u64::from(cores / c.shared_by));
    let mine = outer().map(|c| c.size.0);
    let [whole, mine] = [whole.sum::<u64>(), mine.sum::<u64>()].map(|b| b as f64 / MIB);
    let mut row = Row::new("M-16", "Section 2: the machine", TargetKind::C).plain();
    let rounded = (rate / CLOCK_STEP).round() * CLOCK_STEP;
    row.exact("eight controllers", 28_000.0, rounded, "MB/s");
    row.exact("L2 and L3 of the machine", 16.0, whole, "MB");
    row.exact("L2 and L3 of one core", 2.5, mine, "MB");
    row.note(&format!(
        "{rate:.1} MB/s by the preset's clock, which is in whole picoseconds"
    ));
    Ok((vec![row.finish()], Vec::new()))
}

/// M-13.
pub(super) fn one_read(runs: &mut Runs<'_>) -> Result<Done, String> {
    let size = runs.list().size()?;
    let mut row = Row::new("M-13", "Section 6.6.1: a read of 256 KB", TargetKind::H).plain();
    let call = runs.list().work("read")?.chunk.unwrap_or(size);
    for (name, paper, emptied) in [
        ("from the caches", 45.0, Emptied::Not),
        ("from memory", 145.0, Emptied::Around),
    ] {
        let found = runs.read_once(size, call, emptied);
        row.judge(name, Published::Number(paper), found, "us", |s| {
            verdict::amount(paper, s.mean, false)
        });
    }
    let both = runs.read_once(size, call, Emptied::WithBuffer);
    row.show("from memory, the buffer there too", &both, "us");
    for emptied in [Emptied::Not, Emptied::WithBuffer] {
        let name = match emptied {
            Emptied::Not => "in one call, from the caches",
            _ => "in one call, from memory, the buffer there too",
        };
        row.show(name, &runs.read_once(size, size, emptied), "us");
    }
    row.note(
        "no MFC; the file was read three times just before, or 32 MB of others after that, into the \
         same buffer or another",
    );
    Ok((vec![row.finish()], Vec::new()))
}
