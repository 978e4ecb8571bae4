//! Policies whose runs failed: what the others and what they themselves did before is kept.

use std::sync::{Mutex, PoisonError};

use piebald_sim::Outcome;

use crate::{jobs::Job, scenario::Scenario, study::StudyError};

/// The first failure of each policy: that of the earliest run in the order of the jobs, whichever
/// was noted first.
pub(crate) struct Failures(Vec<Mutex<Option<(usize, StudyError)>>>);

/// What is left of a study without the runs that failed.
pub(crate) struct Left {
    pub(crate) scenario: Scenario,
    pub(crate) jobs: Vec<Job>,
    /// In the order of the jobs.
    pub(crate) outcomes: Vec<Option<Outcome>>,
    /// Repetitions of each policy before its first failure, or all.
    pub(crate) repetitions: Vec<u32>,
    /// Which policies are missing, or have fewer repetitions, and why.
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
            .is_some_and(|(_, e)| !matches!(e, StudyError::NotKept { .. }))
    }

    /// The run at this place failed, under this policy. Runs are begun in their order, so that all
    /// before it end.
    pub(crate) fn note(&self, policy: usize, at: usize, error: StudyError) {
        let mut first = self.slot(policy);
        if first.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
            *first = Some((at, error));
        }
    }

    fn slot(&self, policy: usize) -> std::sync::MutexGuard<'_, Option<(usize, StudyError)>> {
        // A value that is set at once is whole, whoever died with the lock.
        self.0[policy]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The study without the runs that failed, and without policies of which no repetition is left.
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
        let failed: Vec<Option<(usize, StudyError)>> = failed
            .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let before = |failure: &Option<(usize, StudyError)>| match failure {
            None => scenario.repetitions,
            Some((at, _)) => jobs[*at].repetition,
        };
        let left: Vec<u32> = failed.iter().map(before).collect();
        let kept: Vec<usize> = (0..left.len()).filter(|p| left[*p] > 0).collect();
        let all = scenario.repetitions;
        let warning = |(failure, left): (&Option<(usize, StudyError)>, &u32)| {
            let (_, error) = failure.as_ref()?;
            Some(match left {
                0 => format!("{error}; this policy is left out"),
                1 => format!("{error}; of this policy, the first of {all} repetitions is shown"),
                n => {
                    format!("{error}; of this policy, the first {n} of {all} repetitions are shown")
                }
            })
        };
        let warnings = failed.iter().zip(&left).filter_map(warning).collect();
        if kept.is_empty()
            && let Some((_, first)) = failed.into_iter().flatten().min_by_key(|(at, _)| *at)
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
            repetitions: kept.iter().map(|p| left[*p]).collect(),
            warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::jobs::Phase;

    const TEXT: &str = "schema = 2\nrepetitions = 3\nmachine = { preset = \"w3540\", memory = \"3GiB\" }\n\
        program = [{ name = \"sort\", builtin = \"mergesort:64KiB\", cores = \"0\" }]\n\
        policy = [{ name = \"a\" }, { name = \"b\" }, { name = \"c\" }]\n";

    fn error(policy: &str) -> StudyError {
        StudyError::Kernel {
            policy: policy.to_owned(),
            problem: "full".to_owned(),
        }
    }

    /// Runs in their order: two of each policy and repetition.
    fn jobs() -> Vec<Job> {
        let each = |at: usize| Job {
            policy: at / 2 % 3,
            repetition: (at / 6) as u32,
            phase: [Phase::Alone(0), Phase::Together(None)][at % 2],
            focus: None,
        };
        (0..18).map(each).collect()
    }

    #[test]
    fn what_a_policy_did_before_it_failed_is_kept_and_the_earliest_failure_is_told() {
        let scenario = Scenario::parse(TEXT, Path::new("s.toml")).expect("a scenario");
        // The second policy fails in its third repetition, first noted for a later run; the
        // third in its first.
        for order in [[15, 14], [14, 15]] {
            let failures = Failures::of(&scenario);
            for at in order {
                failures.note(1, at, error(&format!("b{at}")));
            }
            failures.note(2, 5, error("c"));
            assert!(failures.has(1) && failures.has(2) && !failures.has(0));
            let outcomes = vec![None; 18];
            let left = failures.without(&scenario, jobs(), outcomes);
            let left = left.expect("two policies are left");
            let names: Vec<&str> = left
                .scenario
                .policies
                .iter()
                .map(|p| p.name.as_str())
                .collect();
            assert_eq!((names, left.repetitions), (vec!["a", "b"], vec![3, 2]));
            assert_eq!((left.jobs.len(), left.outcomes.len()), (12, 12));
            assert_eq!(
                left.warnings,
                [
                    "policy \"b14\": full; of this policy, the first 2 of 3 repetitions are shown",
                    "policy \"c\": full; this policy is left out"
                ]
            );
        }
        let failures = Failures::of(&scenario);
        for (policy, at) in [(2, 4), (1, 2), (0, 1)] {
            failures.note(policy, at, error(&at.to_string()));
        }
        let none = failures.without(&scenario, jobs(), vec![None; 18]);
        let first = none.err().expect("none is left").to_string();
        assert_eq!(first, "policy \"1\": full");
    }

    #[test]
    fn runs_that_are_only_looked_for_are_all_looked_for() {
        let scenario = Scenario::parse(TEXT, Path::new("s.toml")).expect("a scenario");
        let failures = Failures::of(&scenario);
        let policy = "a".to_owned();
        failures.note(0, 3, StudyError::NotKept { policy });
        assert!(!failures.has(0));
    }
}
