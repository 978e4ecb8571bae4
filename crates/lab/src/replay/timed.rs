//! Traces whose requests are made at their stamps.

use piebald_report::Replay;
use piebald_sim::replay::{Batch, CallStream, InputSetup, Pace};
use piebald_trace::block::Nanos;
use piebald_units::Picos;

use super::plan::stopped;
use super::{ReplayError, ReplayRequest};
use crate::study::Hooks;

/// The same input, with the requests of each trace in the order of their stamps. Reads the traces
/// once, to know how far stamps step back.
///
/// # Errors
/// A trace has no stamps.
pub(super) fn sorted(setup: InputSetup, hooks: Hooks<'_>) -> Result<InputSetup, ReplayError> {
    let mut stream = CallStream::open(&setup)?;
    let mut batch = Batch::default();
    while stream.next_batch(&mut batch)? {
        if stopped(hooks) {
            return Err(ReplayError::Stopped);
        }
    }
    if let Some(nth) = stream.stamped().iter().position(|stamped| !stamped) {
        return Err(ReplayError::Choice {
            what: "pace",
            value: "timed".to_owned(),
            problem: format!(
                "{} has no times; allowed: serial, ordered, tasks",
                stream.names()[nth]
            ),
        });
    }
    let notes = stream.notes().into_iter();
    Ok(InputSetup {
        sorted: notes.map(|n| Nanos(n.largest_step_back_ns)).collect(),
        ..setup
    })
}

/// Says of each trace whose stamps step back how far they do, and what was made of it.
pub(super) fn note(replay: &mut Replay, request: &ReplayRequest, stream: &CallStream) {
    let order = match request.pace {
        Pace::Timed => "they are sorted by their times",
        _ => "the order is the trace's",
    };
    let traces = replay.traces.iter().zip(stream.notes());
    for (trace, notes) in traces.filter(|(_, notes)| notes.backward > 0) {
        let step = Picos::from_ns(notes.largest_step_back_ns).unwrap_or(Picos::MAX);
        replay.conditions.notes.push(format!(
            "{}: {} of {} requests are earlier than one before them, by up to {step}; {order}",
            trace.path, notes.backward, trace.requests,
        ));
    }
}
