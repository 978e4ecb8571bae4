//! Closed loops by the name of a policy: its type hidden behind what they come to.

use piebald_hw::disk::{Disk, DiskCounters};
use piebald_os_model::file::{FileConfig, FileError, FileHost, FileTable};
use piebald_os_model::replace::PolicySpec;
use piebald_os_model::replace::registry::{BuildError, Setup, Visitor, build_spec};
use piebald_policy::contract::replacement::{Effort, Replacement};
use piebald_units::Picos;
use piebald_units::block::SECTORS_SHIFT;

use super::clients::{ClientOutcome, ClientSetup, run_clients};
use super::driver::DriverError;
use super::paging::{PageTouch, PagingOutcome, run_paging};

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

/// What is run on the host.
trait Programs {
    type Out;
    fn run<P: Replacement>(
        self,
        host: FileHost<P, Disk>,
    ) -> Result<(Self::Out, FileHost<P, Disk>), DriverError>;
}

impl Programs for ClientSetup<'_> {
    type Out = ClientOutcome;
    fn run<P: Replacement>(
        self,
        host: FileHost<P, Disk>,
    ) -> Result<(ClientOutcome, FileHost<P, Disk>), DriverError> {
        run_clients(host, self)
    }
}

/// A program that pages, and when it begins.
struct Pager<I>(I, Picos);

impl<I: IntoIterator<Item = PageTouch>> Programs for Pager<I> {
    type Out = PagingOutcome;
    fn run<P: Replacement>(
        self,
        host: FileHost<P, Disk>,
    ) -> Result<(PagingOutcome, FileHost<P, Disk>), DriverError> {
        run_paging(host, self.0, self.1)
    }
}

struct OnHost<'a, R>(&'a FileSide, R);

impl<R: Programs> Visitor for OnHost<'_, R> {
    type Out = Result<LoopOutcome<R::Out>, LoopError>;

    fn visit<P: Replacement + Send + 'static>(self, policy: P) -> Self::Out {
        let FileSide {
            config,
            files,
            disk,
        } = self.0.clone();
        let host = FileHost::new(config, files, policy, disk)?;
        let (programs, host) = self.1.run(host)?;
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
}

fn run<R: Programs>(
    policy: &PolicySpec,
    pages: u32,
    side: &FileSide,
    programs: R,
) -> Result<LoopOutcome<R::Out>, LoopError> {
    let costs = side.run_costs();
    let visitor = OnHost(side, programs);
    build_spec(policy, &Setup::new(pages), Some(&costs), visitor)?
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
    run(policy, pages, side, setup)
}

/// A program that pages, in so many pages of memory.
///
/// # Errors
/// See [`LoopError`].
pub fn paging_with(
    policy: &PolicySpec,
    pages: u32,
    side: &FileSide,
    touches: impl IntoIterator<Item = PageTouch>,
    begin: Picos,
) -> Result<LoopOutcome<PagingOutcome>, LoopError> {
    run(policy, pages, side, Pager(touches, begin))
}
