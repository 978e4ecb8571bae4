//! What is run over a trace: a plan that a pass carries out.

use std::sync::atomic::Ordering;

use piebald_os_model::replace::PolicySpec;
use piebald_os_model::replace::registry::Row;
use piebald_report::ReplayPolicy;
use piebald_sim::replay::{CallStream, DriverError, Instance, Survey};

use super::curves::Curves;
use crate::study::Hooks;

/// The policy that knows the future.
pub const MIN: &str = "min";

/// What a trace consists of.
pub(super) struct Known {
    pub survey: Survey,
    pub stream: CallStream,
}

/// A policy at a size.
pub(super) struct Job {
    pub policy: usize,
    /// In pages, or in bytes for objects that take their bytes.
    pub capacity: u64,
    pub instance: Box<dyn Instance>,
    /// Why it ended early.
    pub error: Option<DriverError>,
}

impl Job {
    /// A policy by its place.
    pub fn new(policy: usize, capacity: u64, instance: Box<dyn Instance>) -> Self {
        Self {
            policy,
            capacity,
            instance,
            error: None,
        }
    }
}

/// What is run over a trace.
pub(super) struct Plan {
    pub policies: Vec<PolicySpec>,
    pub about: Vec<ReplayPolicy>,
    /// In pages, or in bytes for objects that take their bytes.
    pub capacities: Vec<u64>,
    pub jobs: Vec<Job>,
    pub curves: Option<Curves>,
    /// One of the policies knows the future.
    pub future: bool,
    /// What the trace consists of, if that had to be known.
    pub known: Option<Known>,
    pub layout: String,
    /// Pages are read ahead, if a disk is below and readahead was asked for.
    pub reads_ahead: bool,
    /// What a reader of the numbers must know of the plan.
    pub notes: Vec<String>,
}

/// A policy with what its row says.
pub(super) fn described(policy: &PolicySpec, row: Option<&Row>) -> ReplayPolicy {
    ReplayPolicy {
        name: policy.to_string(),
        about: row.map_or_else(String::new, |row| format!("{} ({})", row.about, row.source)),
    }
}

/// Is the replay to end?
pub(super) fn stopped(hooks: Hooks<'_>) -> bool {
    hooks.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}
