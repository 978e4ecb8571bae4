//! What replays counted, and what there is of traces that are only counted.

use std::path::Path;

use piebald_experiment::{Document, HostName};
use piebald_lab::{
    host::{Hosted, Hosts},
    replay::{Counts, Load, ReplayRequest, asked, is_replay},
};
use piebald_report::{Replay, ReplayIo, ReplayRun, Sample, Study};

use super::{
    eval::{Fault, Value, Valued},
    grid::Point,
};

/// What is run at a point.
pub(super) enum Planned {
    /// A study.
    Study(Box<dyn Hosted>),
    /// A replay, or requests that are only counted.
    Replay(Box<Replayed>),
}

/// A replay in its repetitions.
pub(super) struct Replayed {
    pub(super) request: ReplayRequest,
    /// Names of its policies.
    pub(super) policies: Vec<String>,
    pub(super) repetitions: u32,
    /// It is more than counted.
    pub(super) is_run: bool,
}

/// What came of a point.
pub(super) enum Came {
    Study(Box<Study>),
    Replays {
        policies: Vec<String>,
        replays: Vec<Replay>,
    },
    Counts(Counts),
}

impl Planned {
    /// What a point's file asks for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of(
        (point, hosts): (&Point, &dyn Hosts),
        text: &str,
        path: &Path,
    ) -> Result<Self, String> {
        let told = |refused: piebald_experiment::Refused| {
            let says = refused.problems.iter();
            let says = says.map(|(_, problem)| problem.to_string());
            says.collect::<Vec<_>>().join("; ")
        };
        if point.host != HostName::Model {
            if !point.is_run {
                return Err("replay: only requests are replayed".to_owned());
            }
            return hosts
                .read(point.host, text, path)
                .map(Self::Study)
                .map_err(told);
        }
        let document = Document::new(path, text).on(HostName::Model);
        let experiment = document.experiment().map_err(told)?;
        if !is_replay(&experiment) {
            if !point.is_run {
                return Err("replay: only requests are replayed".to_owned());
            }
            let read = hosts.read(point.host, text, path).map_err(told)?;
            return Ok(Self::Study(read));
        }
        let request = asked(&document).map_err(told)?;
        if !point.is_run && request.load != Load::Requests {
            return Err("replay = false: only requests are counted".to_owned());
        }
        if point.is_run && request.sizes.len() > 1 {
            let n = request.sizes.len();
            return Err(format!(
                "memory.size: {n} sizes: allowed: one, and an axis for several"
            ));
        }
        let names = experiment.policy.iter().map(|p| p.name.clone());
        let mut policies: Vec<String> = names.collect();
        if policies.is_empty() {
            policies = request.policies.iter().map(ToString::to_string).collect();
        }
        Ok(Self::Replay(Box::new(Replayed {
            request,
            policies,
            repetitions: point.repetitions,
            is_run: point.is_run,
        })))
    }

    /// The study, if it is one.
    pub(super) fn study(&self) -> Option<&dyn Hosted> {
        match self {
            Self::Study(study) => Some(&**study),
            Self::Replay(_) => None,
        }
    }

    /// The replay, if it is one.
    pub(super) fn replayed(&self) -> Option<&Replayed> {
        match self {
            Self::Study(_) => None,
            Self::Replay(replayed) => Some(replayed),
        }
    }
}

fn of_io(get: fn(&ReplayIo) -> f64) -> impl Fn(&ReplayRun) -> Option<f64> {
    move |run| run.io.as_ref().map(get)
}

/// A quantity of a run that has no further name.
fn plain(what: &str, run: &ReplayRun) -> Option<f64> {
    let count = |n: u64| Some(n as f64);
    match what {
        "seconds" => of_io(|io| io.elapsed_s)(run),
        "references" => count(run.references),
        "hits" => count(run.hits),
        "misses" => count(run.misses),
        "hit_ratio" => run.hit_ratio().map(|ratio| 100.0 * ratio),
        "pages_read" => of_io(|io| io.pages_read as f64)(run),
        "pages_written" => of_io(|io| io.pages_written as f64)(run),
        "prefetched" => of_io(|io| io.prefetched as f64)(run),
        "prefetched_unused" => of_io(|io| io.prefetched_unused as f64)(run),
        "disk_requests" => of_io(|io| (io.read_requests + io.write_requests) as f64)(run),
        _ => None,
    }
}

/// Names of these.
pub(super) const PLAIN: [&str; 10] = [
    "seconds",
    "references",
    "hits",
    "misses",
    "hit_ratio",
    "pages_read",
    "pages_written",
    "prefetched",
    "prefetched_unused",
    "disk_requests",
];

/// Names of quantities that name one further thing.
pub(super) const NAMED: [&str; 3] = ["longer_than", "shorter_than", "extra"];

/// What is counted of a trace.
pub(super) const COUNTED: [&str; 4] = ["accesses", "file_bytes", "files", "sequential"];

fn named(what: &str, of: &str, run: &ReplayRun) -> Option<f64> {
    let length = || of.parse::<u32>().ok();
    match what {
        "longer_than" => Some(100.0 * run.io.as_ref()?.share_longer_than(length()?)?),
        "shorter_than" => Some(100.0 * run.io.as_ref()?.share_shorter_than(length()?)?),
        _ => {
            let found = run.extra.iter().find(|(name, ..)| name == of);
            found.map(|(_, value, _)| *value)
        }
    }
}

/// A quantity of a policy over the repetitions.
pub(super) fn counted(
    replays: &[Replay],
    policy: usize,
    what: &str,
    of: Option<&str>,
) -> Valued<Value> {
    let value = |replay: &Replay| {
        // Policies are in order, and there is one size.
        let run = replay.runs.get(policy)?;
        of.map_or_else(|| plain(what, run), |of| named(what, of, run))
    };
    let values: Option<Vec<f64>> = replays.iter().map(value).collect();
    let none = || Fault::Missing(format!("no {what} {} was counted", of.unwrap_or("")));
    let sample = values.filter(|v| !v.is_empty()).map(Sample::new);
    sample.map(Value::Sample).ok_or_else(none)
}

/// What was counted of a trace.
pub(super) fn of_trace(counts: &Counts, what: &str) -> Valued<Value> {
    let count = match what {
        "accesses" => counts.accesses,
        "file_bytes" => counts.bytes,
        "files" => counts.files,
        "sequential" => counts.sequential,
        _ => {
            let allowed = COUNTED.join(", ");
            let says = format!("{what} of requests that are only counted: allowed: {allowed}");
            return Err(Fault::Wrong(says));
        }
    };
    Ok(Value::Number(count as f64))
}

/// Does a quantity name a length where it has to?
pub(super) fn check_name(what: &str, of: Option<&str>) -> Valued<()> {
    match (what, of) {
        ("longer_than" | "shorter_than", Some(length)) if length.parse::<u32>().is_err() => {
            let says = format!("{what}({length}): allowed: a whole number of pages");
            Err(Fault::Wrong(says))
        }
        _ => Ok(()),
    }
}
