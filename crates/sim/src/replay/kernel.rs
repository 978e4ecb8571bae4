//! Closed loops by the name of a policy: its type hidden behind what they come to.

use piebald_hw::disk::{Disk, DiskCounters};
use piebald_os_model::file::{FileConfig, FileError, FileHost, FileTable};
use piebald_os_model::replace::registry::{BuildError, Setup};
use piebald_os_model::replace::{AnyPolicy, PolicySpec};
use piebald_policy::contract::replacement::{Effort, Replacement};
use piebald_units::Picos;
use piebald_units::block::SECTORS_SHIFT;
use piebald_workload::PageTouch;

use super::clients::{ClientOutcome, ClientSetup, run_clients};
use super::driver::DriverError;
use super::paging::{PagingOutcome, run_paging};

/// Longest run whose cost policies may ask for, in pages: DULO's longest sequence.
const LONGEST_RUN: u64 = 128;

/// What a closed loop runs on, not used yet.
#[derive(Clone, Debug)]
pub struct FileSide {
    /// The kernel's file side.
    pub config: FileConfig,
    /// All files.
    pub files: FileTable,
    /// The disk below.
    pub disk: Disk,
}

impl FileSide {
    /// What the disk takes for a random run of 1, 2, ... 128 pages, in ns.
    fn run_costs(&self) -> Vec<u32> {
        let cost = |pages: u64| {
            let ns = self.disk.run_cost(pages << SECTORS_SHIFT).0 / 1000;
            u32::try_from(ns).unwrap_or(u32::MAX).max(1)
        };
        (1..=LONGEST_RUN).map(cost).collect()
    }
}

/// What a closed loop came to, and what disk and policy did for it.
#[derive(Clone, Debug)]
pub struct LoopOutcome<T> {
    /// Of the programs.
    pub programs: T,
    /// Of the disk.
    pub disk: DiskCounters,
    /// Counters that only this policy has.
    pub figures: Vec<(&'static str, u64)>,
    /// Work of the policy beyond constant time.
    pub effort: Effort,
}

/// Why a closed loop was not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The policy.
    #[error(transparent)]
    Policy(#[from] BuildError),
    /// The file side.
    #[error(transparent)]
    Host(#[from] FileError),
    /// The run.
    #[error(transparent)]
    Run(#[from] DriverError),
    /// Books do not agree: a defect.
    #[error("defect: {0}")]
    Broken(String),
}

/// The host of a closed loop. It is compiled once for all policies: a loop does far more for a
/// page that is used than it asks of the policy.
type Host = FileHost<AnyPolicy, Disk>;

fn run<T>(
    policy: &PolicySpec,
    pages: u32,
    side: &FileSide,
    programs: impl FnOnce(Host) -> Result<(T, Host), DriverError>,
) -> Result<LoopOutcome<T>, LoopError> {
    let costs = side.run_costs();
    let policy = AnyPolicy::build(policy, &Setup::new(pages), Some(&costs))?;
    let FileSide {
        config,
        files,
        disk,
    } = side.clone();
    let (programs, host) = programs(FileHost::new(config, files, policy, disk)?)?;
    host.validate()
        .map_err(|broken| LoopError::Broken(broken.to_string()))?;
    let mut figures = Vec::new();
    host.policy()
        .figures(&mut |name, value| figures.push((name, value)));
    Ok(LoopOutcome {
        programs,
        disk: host.disk().counters(),
        figures,
        effort: host.policy().effort(),
    })
}

/// Clients on a server with so many pages of memory.
///
/// # Errors
/// See [`LoopError`].
pub fn clients_with(
    policy: &PolicySpec,
    pages: u32,
    side: &FileSide,
    setup: ClientSetup<'_>,
) -> Result<LoopOutcome<ClientOutcome>, LoopError> {
    run(policy, pages, side, |host| run_clients(host, setup))
}

/// A program that pages, in so many pages of memory.
///
/// # Errors
/// See [`LoopError`].
pub fn paging_with(
    policy: &PolicySpec,
    pages: u32,
    side: &FileSide,
    touches: &mut dyn Iterator<Item = PageTouch>,
    begin: Picos,
) -> Result<LoopOutcome<PagingOutcome>, LoopError> {
    run(policy, pages, side, |host| run_paging(host, touches, begin))
}
