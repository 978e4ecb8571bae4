//! Policies whose runs failed: those of the others are kept.

use std::sync::{Mutex, PoisonError};

use piebald_sim::Outcome;

use crate::{jobs::Job, scenario::Scenario, study::StudyError};

/// The first failure of each policy.
pub(crate) struct Failures(Vec<Mutex<Option<StudyError>>>);

/// What is left of a study without the policies that failed.
pub(crate) struct Left {
    pub(crate) scenario: Scenario,
    pub(crate) jobs: Vec<Job>,
    /// In the order of the jobs.
    pub(crate) outcomes: Vec<Option<Outcome>>,
    /// Which policies are missing, and why.
    pub(crate) warnings: Vec<String>,
}

impl Failures {
    /// None so far.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self(scenario.policies.iter().map(|_| Mutex::new(None)).collect())
    }

    /// Has a run of the policy failed? Its other runs need not be begun then; where nothing is run,
    /// all are looked for.
    pub(crate) fn has(&self, policy: usize) -> bool {
        let failed = self.slot(policy);
        failed
            .as_ref()
            .is_some_and(|e| !matches!(e, StudyError::NotKept { .. }))
    }

    /// A run of the policy failed.
    pub(crate) fn note(&self, policy: usize, error: StudyError) {
        self.slot(policy).get_or_insert(error);
    }

    fn slot(&self, policy: usize) -> std::sync::MutexGuard<'_, Option<StudyError>> {
        // A value that is set at once is whole, whoever died with the lock.
        self.0[policy]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The study without the policies that failed.
    ///
    /// # Errors
    /// The first failure if no policy is left.
    pub(crate) fn without(
        self,
        scenario: &Scenario,
        jobs: Vec<Job>,
        outcomes: Vec<Option<Outcome>>,
    ) -> Result<Left, StudyError> {
        let failed = self.0.into_iter();
        let failed: Vec<Option<StudyError>> = failed
            .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let kept: Vec<usize> = (0..failed.len()).filter(|p| failed[*p].is_none()).collect();
        let warning = |error: &StudyError| format!("{error}; this policy is left out");
        let warnings = failed.iter().flatten().map(warning).collect();
        if kept.is_empty()
            && let Some(first) = failed.into_iter().flatten().next()
        {
            return Err(first);
        }
        let mut scenario = scenario.clone();
        scenario.policies = kept.iter().map(|p| scenario.policies[*p].clone()).collect();
        let place = |job: Job| {
            let policy = kept.iter().position(|p| *p == job.policy)?;
            Some(Job { policy, ..job })
        };
        let pairs = jobs.into_iter().zip(outcomes);
        let (jobs, outcomes) = pairs.filter_map(|(job, o)| Some((place(job)?, o))).unzip();
        Ok(Left {
            scenario,
            jobs,
            outcomes,
            warnings,
        })
    }
}
