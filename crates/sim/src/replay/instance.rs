//! One policy at one size, its type hidden behind what a sweep needs of it.

use piebald_hw::disk::{Disk, DiskCounters};
use piebald_os_model::file::{FileConfig, FileError, FileHost, FileTable};
use piebald_os_model::replace::registry::{BuildError, Setup, Visitor, build_spec};
use piebald_os_model::replace::{AnyPolicy, PolicySpec};
use piebald_policy::contract::replacement::{Effort, Replacement};
use piebald_units::Picos;

use super::cache::{ByteCounts, Cache, HitCounts};
use super::driver::{Driver, DriverError, Pace, Snapshot};
use super::input::Batch;
use super::parts::Part;

/// A policy at a size, taking a stream batch by batch.
pub trait Instance: Send {
    /// Takes the next part. `next_use` as for [`Cache::run`].
    ///
    /// # Errors
    /// See [`DriverError`].
    fn run(&mut self, batch: &Batch, next_use: &[u64]) -> Result<(), DriverError>;

    /// There is no more.
    ///
    /// # Errors
    /// See [`DriverError`].
    fn finish(&mut self) -> Result<(), DriverError>;

    /// What came out so far.
    fn outcome(&self) -> InstanceOutcome;

    /// Compares the books of host and policy.
    ///
    /// # Errors
    /// What does not agree, in words.
    fn validate(&self) -> Result<(), String>;
}

/// What a policy at a size came to.
#[derive(Clone, Debug, Default)]
pub struct InstanceOutcome {
    /// Hits and misses after the warm-up.
    pub counts: HitCounts,
    /// Of objects that take their bytes.
    pub bytes: Option<ByteCounts>,
    /// With a disk: counters at the end of the warm-up and at the end.
    pub disk: Option<DiskOutcome>,
    /// The same by parts of the trace, as far as they are kept.
    pub parts: Vec<Part>,
    /// Counters that only this policy has.
    pub figures: Vec<(&'static str, u64)>,
    /// Work of the policy beyond constant time, warm-up included.
    pub effort: Effort,
}

/// What the disk side came to.
#[derive(Clone, Debug, Default)]
pub struct DiskOutcome {
    /// At the end of the warm-up.
    pub before: Snapshot,
    /// At the end.
    pub after: Snapshot,
    /// Of the disk itself, warm-up included.
    pub disk: DiskCounters,
}

impl<P: Replacement + Send> Instance for Cache<P> {
    fn run(&mut self, batch: &Batch, next_use: &[u64]) -> Result<(), DriverError> {
        Self::run(self, &batch.references, next_use);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), DriverError> {
        Ok(())
    }

    fn outcome(&self) -> InstanceOutcome {
        let mut outcome = InstanceOutcome {
            counts: self.counts(),
            parts: self.parts(),
            effort: self.policy().effort(),
            ..InstanceOutcome::default()
        };
        self.policy()
            .figures(&mut |name, value| outcome.figures.push((name, value)));
        outcome
    }

    fn validate(&self) -> Result<(), String> {
        Self::validate(self)
    }
}

impl Instance for Driver<AnyPolicy, Disk> {
    fn run(&mut self, batch: &Batch, _next_use: &[u64]) -> Result<(), DriverError> {
        Self::run(self, &batch.calls)
    }

    fn finish(&mut self) -> Result<(), DriverError> {
        Self::finish(self)
    }

    fn outcome(&self) -> InstanceOutcome {
        let (before, after) = self.measured().unwrap_or_default();
        let (old, new) = (before.stats.uses(), after.stats.uses());
        let misses = new.misses - old.misses;
        let references = new.references - old.references;
        let mut outcome = InstanceOutcome {
            counts: HitCounts {
                references,
                hits: references - misses,
                misses,
            },
            bytes: None,
            disk: Some(DiskOutcome {
                before,
                after,
                disk: self.host().disk().counters(),
            }),
            parts: self.parts(),
            figures: Vec::new(),
            effort: self.host().policy().effort(),
        };
        let show = &mut |name, value| outcome.figures.push((name, value));
        self.host().policy().figures(show);
        outcome
    }

    fn validate(&self) -> Result<(), String> {
        self.host().validate().map_err(|broken| broken.to_string())
    }
}

/// Why an instance was not made.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// The policy.
    #[error(transparent)]
    Policy(#[from] BuildError),
    /// The file side.
    #[error(transparent)]
    Host(#[from] FileError),
}

/// A cache without a disk, whole or a miniature. `addressed` as for [`Cache::new`].
///
/// # Errors
/// The policy is not known or does not accept size or options.
pub fn cache_instance(
    policy: &PolicySpec,
    size: &Setup,
    warmup: u64,
    addressed: bool,
) -> Result<Box<dyn Instance>, InstanceError> {
    struct Plain(u64, bool);
    impl Visitor for Plain {
        type Out = Box<dyn Instance>;
        fn visit<P: Replacement + Send + 'static>(self, policy: P) -> Self::Out {
            Box::new(Cache::new(policy, self.0, self.1))
        }
    }
    let visitor = Plain(warmup, addressed);
    Ok(build_spec(policy, size, None, visitor)?)
}

/// What all instances with a disk share.
#[derive(Clone, Debug)]
pub struct DiskSide {
    /// The kernel's file side.
    pub config: FileConfig,
    /// All files, by the numbers of their spaces.
    pub files: FileTable,
    /// The disk, not used yet.
    pub disk: Disk,
    /// What the disk takes for a random run of 1, 2, ... 128 pages, in ns.
    pub run_costs: Vec<u32>,
    /// When calls begin.
    pub pace: Pace,
    /// References before counting.
    pub warmup: u64,
    /// Simulated time at the first call.
    pub begin: Picos,
}

/// A page cache with a disk below. What a disk and the kernel's side of it take for a reference is so much more than a call
/// through a pointer that all policies share their code.
///
/// # Errors
/// As [`cache_instance`], and if the file side does not accept its configuration.
pub fn disk_instance(
    policy: &PolicySpec,
    pages: u32,
    side: &DiskSide,
) -> Result<Box<dyn Instance>, InstanceError> {
    let costs = Some(side.run_costs.as_slice());
    let policy = AnyPolicy::build(policy, &Setup::new(pages), costs)?;
    let host = FileHost::new(
        side.config.clone(),
        side.files.clone(),
        policy,
        side.disk.clone(),
    )?;
    let driver = Driver::new(host, side.pace, side.warmup);
    Ok(Box::new(driver.beginning(side.begin)))
}
