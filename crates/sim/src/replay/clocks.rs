//! Whether the stamps of several traces can be compared, and how they become one stream.

use piebald_trace::about::{ByteOrder, Origin};
use piebald_trace::block::Format;

use super::input::{Align, InputError, Merge};
use super::source::Source;

/// Beyond this, of two times of day one may be of the next day.
const HALF_A_DAY_NS: u64 = 43_200 * 1_000_000_000;

/// How traces become one stream.
pub(super) fn merge(
    sources: &mut [Source],
    names: &[String],
    align: Align,
) -> Result<Merge, InputError> {
    match (sources.len(), align) {
        (0 | 1, _) => return Ok(Merge::Single),
        (_, Align::Turn) => return Ok(Merge::InTurn),
        _ => {}
    }
    let (mut clocks, mut orders) = (Vec::new(), Vec::new());
    for source in sources.iter_mut() {
        // Some files tell what their stamps count from only with their first requests.
        let asks = source.ready()?;
        let clock = (source.trace.origin(), source.trace.format());
        orders.push(source.trace.byte_order());
        // A trace that asks for nothing is no hindrance: strace -ff writes one for each process.
        clocks.push(asks.then_some(clock));
    }
    let Some(first) = clocks.iter().flatten().next().copied() else {
        return Ok(Merge::InTurn);
    };
    let clocks: Vec<(Origin, Format)> = clocks.into_iter().map(|c| c.unwrap_or(first)).collect();
    if clocks.iter().all(|(origin, _)| *origin == Origin::Absent) {
        return match align {
            Align::Start => Err(without_times(names, [0, 1], "neither has times".to_owned())),
            _ => Ok(Merge::InTurn),
        };
    }
    let stampless = |at: &usize| clocks[*at].0 == Origin::Absent;
    let all = || 0..clocks.len();
    if let (Some(without), Some(with)) = (all().find(stampless), all().find(|a| !stampless(a))) {
        let why = format!("{} has no times", names[without]);
        return Err(without_times(names, [with, without], why));
    }
    if align == Align::Start {
        return Ok(Merge::ByTime);
    }
    if let Some(at) = all().find(|at| clocks[*at].0 == Origin::Relative) {
        let why = format!(
            "those of {} count from {}",
            names[at],
            counts_from(Origin::Relative)
        );
        return Err(clocks_differ(names, [at, usize::from(at == 0)], why));
    }
    let order = |wanted| all().find(|at| orders[*at] == Some(wanted));
    if let Some((little, big)) = order(ByteOrder::Little).zip(order(ByteOrder::Big)) {
        let why = format!(
            "{} was traced on a little-endian machine and {} on a big-endian one, which have no \
             clock in common",
            names[little], names[big]
        );
        return Err(clocks_differ(names, [little, big], why));
    }
    match all().find(|at| clocks[*at] != clocks[0]) {
        None if clocks[0].0 == Origin::OfDay => of_one_day(sources, names),
        None => Ok(Merge::ByStamp),
        Some(at) => {
            let of = |(origin, format): (Origin, Format)| {
                format!("{} ({})", counts_from(origin), format.name())
            };
            let why = if clocks[0].0 == clocks[at].0 {
                format!(
                    "both count from {}, but one is {} and the other {}, and clocks of two tools are \
                     not taken for one",
                    counts_from(clocks[0].0),
                    clocks[0].1.name(),
                    clocks[at].1.name()
                )
            } else {
                format!(
                    "one counts from {}, the other from {}",
                    of(clocks[0]),
                    of(clocks[at])
                )
            };
            Err(clocks_differ(names, [0, at], why))
        }
    }
}

/// A time of day does not say the day: of logs that begin in different halves of it, one may be of the
/// next.
fn of_one_day(sources: &mut [Source], names: &[String]) -> Result<Merge, InputError> {
    let mut begins: Vec<(u64, usize)> = Vec::new();
    for (nth, source) in sources.iter_mut().enumerate() {
        if source.ready()? {
            begins.push((source.stamp(), nth));
        }
    }
    let ends = begins.iter().min().zip(begins.iter().max());
    match ends {
        Some((first, last)) if last.0 - first.0 > HALF_A_DAY_NS => {
            let why = format!(
                "their times are those of a day, and {} begins more than 12 hours after {} or on the \
                 day before",
                names[last.1], names[first.1]
            );
            Err(clocks_differ(names, [first.1, last.1], why))
        }
        _ => Ok(Merge::ByStamp),
    }
}

fn clocks_differ(names: &[String], [first, other]: [usize; 2], why: String) -> InputError {
    InputError::Clocks {
        first: names[first].clone(),
        other: names[other].clone(),
        why,
        allowed: "--align start (each trace begins at the same moment) or --align turn (a request of \
                  each in turn)",
    }
}

/// The same where at least one has no times: nothing is known but its order.
fn without_times(names: &[String], [first, other]: [usize; 2], why: String) -> InputError {
    InputError::Clocks {
        first: names[first].clone(),
        other: names[other].clone(),
        why,
        allowed: "--align turn (a request of each in turn)",
    }
}

const fn counts_from(origin: Origin) -> &'static str {
    match origin {
        Origin::Absent => "nothing",
        Origin::Absolute => "a date",
        Origin::OfDay => "midnight",
        Origin::Shared => "the clock of a tracing run",
        Origin::Relative => "a moment of this trace alone",
    }
}
