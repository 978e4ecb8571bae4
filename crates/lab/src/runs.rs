//! Runs of policies in a list, as many at a time as there are threads: each is begun in the list's order, and what
//! fails takes nothing from what the others and what its own policy did before.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use rayon::prelude::*;

/// The place of a run in a study.
pub trait Listed: Sync {
    /// The number of its policy.
    fn policy(&self) -> usize;
    /// From 0.
    fn repetition(&self) -> u32;
}

/// What came of a list of runs.
pub struct Ran<O, E> {
    /// In the order of the list; none where a run failed or was not made.
    outcomes: Vec<Option<O>>,
    failures: Failures<E>,
}

/// What is left of the policies.
pub struct Left {
    /// Numbers of those of which a repetition is left.
    pub policies: Vec<usize>,
    /// Repetitions of each of these before its first failure, or all.
    pub repetitions: Vec<u32>,
    /// Which policies are missing, or have fewer repetitions, and why.
    pub warnings: Vec<String>,
}

/// Runs a list of so many policies on the threads of the pool that this is called in. `run` gives none if somebody wants
/// an end, and the run is not made. Once a run of a policy has failed, its later runs are not begun, unless `is_looked_for` says
/// that an outcome was only looked for and is not there.
pub fn in_order<P: Listed, O: Send, E: Send>(
    plan: &[P],
    policies: usize,
    is_looked_for: fn(&E) -> bool,
    run: impl Fn(usize, &P) -> Result<Option<O>, E> + Sync,
) -> Ran<O, E> {
    let failures = Failures {
        first: (0..policies).map(|_| Mutex::new(None)).collect(),
        is_looked_for,
    };
    // Threads take runs in the list's order, so that a stop leaves whole repetitions.
    let next = AtomicUsize::new(0);
    let take = |_| {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let one = &plan[at];
        if failures.has(one.policy()) {
            return (at, None);
        }
        let outcome = run(at, one).unwrap_or_else(|error| {
            failures.note(one.policy(), at, error);
            None
        });
        (at, outcome)
    };
    let runs = (0..plan.len()).into_par_iter().with_max_len(1).map(take);
    let mut outcomes: Vec<(usize, Option<O>)> = runs.collect();
    outcomes.sort_by_key(|(at, _)| *at);
    Ran {
        outcomes: outcomes.into_iter().map(|(_, outcome)| outcome).collect(),
        failures,
    }
}

impl<O, E: std::fmt::Display> Ran<O, E> {
    /// Was every run made, and did none fail?
    pub fn is_complete(&self) -> bool {
        self.outcomes.iter().all(Option::is_some)
    }

    /// What is left of the policies without the runs that failed, of so many repetitions; and the outcomes.
    ///
    /// # Errors
    /// The first failure if no policy is left.
    pub fn left<P: Listed>(self, plan: &[P], all: u32) -> Result<(Left, Vec<Option<O>>), E> {
        let unlock = |slot: Mutex<_>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        let failed: Vec<Option<(usize, E)>> = self.failures.first.into_iter().map(unlock).collect();
        let before = |failure: &Option<(usize, E)>| match failure {
            None => all,
            Some((at, _)) => plan[*at].repetition(),
        };
        let left: Vec<u32> = failed.iter().map(before).collect();
        let warning = |(failure, left): (&Option<(usize, E)>, &u32)| {
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
        let policies: Vec<usize> = (0..left.len()).filter(|p| left[*p] > 0).collect();
        if policies.is_empty()
            && let Some((_, first)) = failed.into_iter().flatten().min_by_key(|(at, _)| *at)
        {
            return Err(first);
        }
        let left = Left {
            repetitions: policies.iter().map(|p| left[*p]).collect(),
            policies,
            warnings,
        };
        Ok((left, self.outcomes))
    }
}

/// The first failure of each policy: that of the earliest run in the order of the list, whichever
/// was noted first.
struct Failures<E> {
    first: Vec<Mutex<Option<(usize, E)>>>,
    is_looked_for: fn(&E) -> bool,
}

impl<E> Failures<E> {
    /// Has a run of the policy failed? Its other runs need not be begun then; where nothing is run,
    /// all are looked for.
    fn has(&self, policy: usize) -> bool {
        let failed = self.slot(policy);
        failed
            .as_ref()
            .is_some_and(|(_, error)| !(self.is_looked_for)(error))
    }

    /// The run at this place failed, under this policy. Runs are begun in their order, so that all
    /// before it end.
    fn note(&self, policy: usize, at: usize, error: E) {
        let mut first = self.slot(policy);
        if first.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
            *first = Some((at, error));
        }
    }

    fn slot(&self, policy: usize) -> MutexGuard<'_, Option<(usize, E)>> {
        // A value that is set at once is whole, whoever died with the lock.
        self.first[policy]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(usize, u32);

    impl Listed for One {
        fn policy(&self) -> usize {
            self.0
        }

        fn repetition(&self) -> u32 {
            self.1
        }
    }

    /// Two runs of each of three policies in three repetitions.
    fn plan() -> Vec<One> {
        (0..18).map(|at| One(at / 2 % 3, (at / 6) as u32)).collect()
    }

    /// With these runs failing.
    fn ran(failing: &[usize]) -> Ran<usize, String> {
        let run = |at: usize, _: &One| {
            if failing.contains(&at) {
                return Err(format!("run {at}"));
            }
            Ok(Some(at))
        };
        in_order(&plan(), 3, |error| error == "nowhere", run)
    }

    #[test]
    fn what_a_policy_did_before_it_failed_is_kept_and_the_earliest_failure_is_told() {
        // The second policy fails in its third repetition, twice if both are under way; the third in its first.
        let ran = ran(&[14, 15, 5]);
        assert!(!ran.is_complete());
        let (left, outcomes) = ran.left(&plan(), 3).expect("two policies are left");
        assert_eq!((left.policies, left.repetitions), (vec![0, 1], vec![3, 2]));
        assert_eq!((outcomes[13], outcomes[14]), (Some(13), None));
        assert_eq!(
            left.warnings,
            [
                "run 14; of this policy, the first 2 of 3 repetitions are shown",
                "run 5; this policy is left out"
            ]
        );
    }

    #[test]
    fn the_earliest_failure_counts_whichever_was_noted_first() {
        for order in [[15, 14], [14, 15]] {
            let failures = Failures {
                first: vec![Mutex::new(None)],
                is_looked_for: |_: &usize| false,
            };
            order.into_iter().for_each(|at| failures.note(0, at, at));
            assert!(failures.has(0));
            assert_eq!(*failures.slot(0), Some((14, 14)));
        }
    }

    #[test]
    fn if_nothing_is_left_the_first_failure_is_the_error() {
        let first = ran(&[4, 2, 1]).left(&plan(), 3).err();
        assert_eq!(first.as_deref(), Some("run 1"));
    }

    #[test]
    fn a_policy_that_failed_is_not_run_on_but_what_is_looked_for_is() {
        for (error, made) in [("broken", 1), ("nowhere", 6)] {
            let asked = AtomicUsize::new(0);
            let run = |_: usize, one: &One| {
                asked.fetch_add(usize::from(one.0 == 1), Ordering::Relaxed);
                match one.0 {
                    1 => Err(error.to_owned()),
                    _ => Ok(Some(())),
                }
            };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            let pool = pool.expect("a thread");
            pool.install(|| in_order(&plan(), 3, |error: &String| error == "nowhere", run));
            assert_eq!(asked.into_inner(), made, "{error}");
        }
    }

    #[test]
    fn one_who_wants_an_end_is_no_failure() {
        let run = |at: usize, _: &One| Ok::<_, String>((at < 7).then_some(at));
        let ran = in_order(&plan(), 3, |_| false, run);
        assert!(!ran.is_complete());
        let (left, outcomes) = ran.left(&plan(), 3).expect("nothing failed");
        assert!(left.warnings.is_empty());
        assert_eq!(outcomes.iter().flatten().count(), 7);
    }
}
