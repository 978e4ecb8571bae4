//! The end of a recording: the warnings, the header, the index.

use core::sync::atomic::Ordering::Acquire;
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use piebald_trace::recording::{ProgramShare, Recording, RecordingWriter};

use super::leftovers::name;
use super::{RecordError, Summary, differences, own_limits};
use crate::shared::{AT_LIMIT, FREE, Shared, SlotMap};

/// Bytes of JSON text that come to the header at the end, in the fixed place that it has.
pub const HEADER_ROOM: usize = REFUSED_ROOM + MISSING_ROOM + REMARKS_ROOM;
/// For as many calls as shared memory has places for: 64, of at most 80 bytes each.
const REFUSED_ROOM: usize = 5 << 10;
const MISSING_ROOM: usize = 1 << 10;
const REMARKS_ROOM: usize = 2 << 10;

/// Is a process of the recording still running?
pub fn anyone_alive(shared: &Shared) -> bool {
    slots(shared).any(|slot| is_alive(slot.head().pid))
}

/// Is a process about to append a record, or doing so?
pub fn anyone_writing(shared: &Shared) -> bool {
    shared.writing().any(|slot| is_alive(slot.head().pid))
}

/// Slots that somebody has.
pub fn slots(shared: &Shared) -> impl Iterator<Item = SlotMap> + '_ {
    let all = (0..shared.nr_slots()).filter_map(|i| shared.slot(i).ok());
    all.filter(|s| s.head().state.load(Acquire) != FREE)
}

/// A zombie has ended, even if nobody waits for it.
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit(") ").next().and_then(|s| s.bytes().next());
    !matches!(state, Some(b'Z' | b'X') | None)
}

/// How the program's run ended.
pub struct End {
    /// Its exit status.
    pub status: ExitStatus,
    /// The last signal to the driver.
    pub received: Option<i32>,
    /// What it printed to standard error, if that was kept.
    pub said: String,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Completes the file.
pub fn finish(
    mut writer: RecordingWriter,
    shared: &Shared,
    end: End,
) -> Result<Summary, RecordError> {
    let status = end.status;
    // A process begins when QEMU loads the plugin, a thread with its first instruction.
    if shared.threads.load(Acquire) == 0 {
        let (said, limits) = (end.said, own_limits::told());
        return Err(RecordError::NotStarted {
            status,
            said,
            limits,
        });
    }
    let errno = shared.failure();
    if errno != 0 {
        return Err(RecordError::Spool {
            file: writer.partial_path().to_owned(),
            source: io::Error::from_raw_os_error(errno),
        });
    }
    let mut found = Found::default();
    found.leftovers(&mut writer, shared, status)?;
    refuse_empty(shared)?;
    found.other_losses(shared, end.received);
    let refused = differences::refused(shared);
    found.remarks.extend(differences::remarks(shared, &refused));
    let header = writer.header_mut();
    header.complete = found.missing.is_empty();
    header.missing = short(&found.missing, MISSING_ROOM);
    header.remarks = short(&found.remarks, REMARKS_ROOM);
    header.refused.clone_from(&refused);
    let output = writer.path().to_owned();
    let finished = writer.finish().map_err(|e| {
        found.missing.clear();
        RecordError::from(e)
    })?;
    if !finished.found.lost.is_empty() {
        let n = finished.found.lost.len();
        found.missing.push(format!("{n} torn records"));
    }
    let counts = finished.header.counts;
    let mut warnings = found.missing;
    warnings.extend(found.remarks);
    Ok(Summary {
        status,
        complete: finished.header.complete,
        interrupted: end.received,
        at_limit: shared.stopped.load(Acquire) == AT_LIMIT,
        said: end.said,
        warnings,
        refused,
        programs: programs(&output, counts.processes)?,
        processes: counts.processes,
        threads: counts.threads,
        instructions: counts.instructions,
        references: counts.references,
        bytes: length(&output)?,
        seconds: end.seconds,
    })
}

/// A recording without a reference stands for nothing.
fn refuse_empty(shared: &Shared) -> Result<(), RecordError> {
    if shared.opened.load(Acquire) == 0 {
        return Err(RecordError::RegionNotReached {
            from: shared.region_from,
        });
    }
    if shared.skip > 0 && shared.kept.load(Acquire) == 0 {
        return Err(RecordError::AllSkipped {
            skip: shared.skip,
            made: shared.counted.load(Acquire),
            region: shared.region_from != u32::MAX,
        });
    }
    Ok(())
}

fn programs(path: &Path, processes: u64) -> Result<Vec<ProgramShare>, RecordError> {
    match processes {
        0 | 1 => Ok(Vec::new()),
        _ => Ok(Recording::open(path)?.programs()?),
    }
}

fn length(path: &Path) -> Result<u64, RecordError> {
    let meta = std::fs::metadata(path);
    let meta = meta.map_err(super::system(&path.display().to_string()))?;
    Ok(meta.len())
}

/// As many of the texts as fit into so many bytes of JSON.
fn short(texts: &[String], mut room: usize) -> Vec<String> {
    const AND_MORE: usize = 32;
    let mut kept = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        // With its comma.
        let needed = serde_json::to_string(text).map_or(usize::MAX, |t| t.len() + 1);
        if needed.saturating_add(AND_MORE) > room {
            kept.push(format!("and {} more", texts.len() - i));
            break;
        }
        room -= needed;
        kept.push(text.clone());
    }
    kept
}

/// What the user has to be told.
#[derive(Default)]
pub struct Found {
    /// What the recording lacks.
    pub missing: Vec<String>,
    /// What else the user should know.
    pub remarks: Vec<String>,
}

impl Found {
    fn other_losses(&mut self, shared: &Shared, received: Option<i32>) {
        if let Some(signal) = received {
            self.missing
                .push(format!("ended early by {}", name(signal)));
        }
        let dropped = shared.dropped.load(Acquire);
        if dropped != 0 {
            self.missing.push(format!("{dropped} entries had no room"));
        }
        let (notices, more) = shared.notices();
        let escapes = shared.escapes.load(Acquire);
        if escapes != 0 {
            self.missing.push(match escapes {
                1 => "1 program not followed".to_owned(),
                n => format!("{n} programs not followed"),
            });
        }
        self.remarks.extend(notices);
        if more != 0 {
            self.remarks.push(format!("and {more} more remarks"));
        }
    }
}
