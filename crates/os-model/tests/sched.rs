//! Queues, slices, pinning, events: worked examples and random histories.

use std::collections::BTreeMap;

use piebald_os_model::sched::{EventKey, SchedConfig, SchedError, Scheduler, Status, Wake};
use piebald_units::{CoreId, CoreSet, TaskId};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const C0: CoreId = CoreId(0);
const C1: CoreId = CoreId(1);

fn sched(cores: u16) -> Scheduler {
    Scheduler::new(SchedConfig::new(cores)).unwrap()
}

fn event(event: u64) -> EventKey {
    EventKey { program: 0, event }
}

#[test]
fn tasks_of_one_core_take_turns() {
    let mut s = sched(1);
    for t in 0..3 {
        s.add(TaskId(t), CoreSet::first(1)).unwrap();
    }
    let mut order = Vec::new();
    for _ in 0..7 {
        order.push(s.next_on(C0).unwrap().unwrap().0);
        assert_eq!(s.next_on(C0).unwrap().unwrap().0, *order.last().unwrap());
        assert!(s.contended(C0));
        s.preempt(C0).unwrap();
    }
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn new_tasks_go_to_the_shortest_allowed_queue() {
    let mut s = sched(3);
    let all = CoreSet::first(3);
    let at = |w: Wake| w.core.0;
    assert_eq!(at(s.add(TaskId(0), all).unwrap()), 0);
    assert_eq!(at(s.add(TaskId(1), all).unwrap()), 1);
    assert_eq!(at(s.add(TaskId(2), CoreSet::one(C0)).unwrap()), 0);
    assert_eq!(at(s.add(TaskId(3), all).unwrap()), 2);
    assert_eq!(at(s.add(TaskId(4), all).unwrap()), 1);
}

#[test]
fn new_tasks_near_a_core_go_round_from_there_among_the_least_loaded() {
    let mut sched = sched(4);
    let allowed = CoreSet::from_bits(0b1101);
    // Core 1 is not allowed, core 3 comes before core 0.
    for (task, near, expected) in [(0, 1, 2), (1, 1, 3), (2, 1, 0), (3, 3, 3), (4, 3, 0)] {
        let wake = sched.add_near(TaskId(task), allowed, CoreId(near));
        let expected = Wake {
            task: TaskId(task),
            core: CoreId(expected),
        };
        assert_eq!(wake, Ok(expected), "{task}");
    }
    let again = sched.add_near(TaskId(4), allowed, CoreId(3));
    assert_eq!(again, Err(SchedError::AddedTwice(TaskId(4))));
}

#[test]
fn an_idle_core_takes_a_waiting_task_that_may_run_there() {
    let mut s = sched(2);
    s.add(TaskId(0), CoreSet::one(C0)).unwrap();
    s.add(TaskId(1), CoreSet::one(C0)).unwrap();
    s.add(TaskId(2), CoreSet::one(C0)).unwrap();
    s.set_cores(TaskId(2), CoreSet::first(2)).unwrap();
    assert_eq!(s.next_on(C0).unwrap(), Some(TaskId(0)));
    assert_eq!(s.next_on(C1).unwrap(), Some(TaskId(2)), "task 1 is pinned");
    s.exit(TaskId(2)).unwrap();
    assert_eq!(s.next_on(C1).unwrap(), None);
}

#[test]
fn an_event_wakes_its_waiters_in_order_and_stays_posted() {
    let mut s = sched(1);
    for t in 0..3 {
        s.add(TaskId(t), CoreSet::first(1)).unwrap();
    }
    for t in 0..2 {
        assert_eq!(s.next_on(C0).unwrap(), Some(TaskId(t)));
        assert!(s.await_event(TaskId(t), event(5)).unwrap());
    }
    assert_eq!(s.next_on(C0).unwrap(), Some(TaskId(2)));
    let mut wakes = Vec::new();
    let other_program = EventKey {
        program: 1,
        event: 5,
    };
    s.post(other_program, &mut wakes).unwrap();
    assert_eq!(wakes, []);
    s.post(event(5), &mut wakes).unwrap();
    let woken: Vec<_> = wakes.iter().map(|w| w.task.0).collect();
    assert_eq!(woken, [0, 1]);
    assert!(
        !s.await_event(TaskId(2), event(5)).unwrap(),
        "it has happened"
    );
    s.validate().unwrap();
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let mut s = sched(2);
    s.add(TaskId(0), CoreSet::first(2)).unwrap();
    s.add(TaskId(1), CoreSet::first(2)).unwrap();
    s.next_on(C0).unwrap();
    s.next_on(C1).unwrap();
    s.await_event(TaskId(0), event(1)).unwrap();
    assert_eq!(s.deadlock(), []);
    s.block(TaskId(1)).unwrap();
    assert_eq!(s.deadlock(), [], "the host may still wake one");
    s.wake(TaskId(1)).unwrap();
    s.next_on(C1).unwrap();
    s.await_event(TaskId(1), event(2)).unwrap();
    assert_eq!(s.deadlock(), [(TaskId(0), event(1)), (TaskId(1), event(2))]);
    s.exit(TaskId(0)).unwrap();
    assert_eq!(s.deadlock(), [(TaskId(1), event(2))]);
    s.exit(TaskId(1)).unwrap();
    assert_eq!(s.deadlock(), []);
    assert!(s.all_done());
}

#[test]
fn wrong_calls_name_task_and_state() {
    let mut s = sched(2);
    let e = s.add(TaskId(4), CoreSet::one(CoreId(7))).unwrap_err();
    assert_eq!(
        e.to_string(),
        "task 4 may run on cores 7 only; the machine has cores 0-1"
    );
    s.add(TaskId(0), CoreSet::first(1)).unwrap();
    assert_eq!(
        s.add(TaskId(0), CoreSet::first(1)),
        Err(SchedError::AddedTwice(TaskId(0)))
    );
    assert!(matches!(
        s.block(TaskId(0)),
        Err(SchedError::State {
            needs: "running",
            ..
        })
    ));
    assert!(matches!(s.wake(TaskId(0)), Err(SchedError::State { .. })));
    assert_eq!(s.exit(TaskId(3)), Err(SchedError::NoSuchTask(TaskId(3))));
    assert!(matches!(
        s.next_on(CoreId(2)),
        Err(SchedError::BadCore { .. })
    ));
    assert!(Scheduler::new(SchedConfig::new(0)).is_err());
    s.validate().unwrap();
}

/// What a scheduler must keep, whatever its order: nobody lost, nobody twice,
/// everybody where he may be.
#[test]
fn random_histories_lose_nobody_and_respect_pinning() {
    for seed in 0..20 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut s = sched(4);
        let mut pins: BTreeMap<TaskId, CoreSet> = BTreeMap::new();
        let (mut posted, mut next) = (Vec::new(), 0u32);
        for _ in 0..2000 {
            let core = CoreId(rng.random_range(0..4));
            let running = s
                .tasks()
                .find(|t| t.1 == Status::Running(core))
                .map(|t| t.0);
            match (rng.random_range(0..9), running) {
                (0, _) if pins.len() < 30 => {
                    let cores = CoreSet::first(rng.random_range(1..=4));
                    s.add(TaskId(next), cores).unwrap();
                    pins.insert(TaskId(next), cores);
                    next += 1;
                }
                (1, Some(_)) => {
                    s.preempt(core).unwrap();
                }
                (2, Some(t)) => {
                    let e = event(rng.random_range(0..200));
                    assert_eq!(s.await_event(t, e).unwrap(), !posted.contains(&e));
                }
                (3, _) => {
                    let e = event(rng.random_range(0..200));
                    s.post(e, &mut Vec::new()).unwrap();
                    posted.push(e);
                }
                (4, Some(t)) => s.block(t).unwrap(),
                (5, _) => {
                    let waits = |t: &TaskId| {
                        s.status(*t).is_ok_and(|x| {
                            matches!(x, Status::Blocked(piebald_os_model::sched::Blocked::Host))
                        })
                    };
                    if let Some(t) = pins.keys().copied().find(waits) {
                        s.wake(t).unwrap();
                    }
                }
                (6, Some(t)) if rng.random_bool(0.2) => s.exit(t).unwrap(),
                _ => {
                    let got = s.next_on(core).unwrap();
                    let waiting = s
                        .tasks()
                        .any(|(t, x)| matches!(x, Status::Runnable(_)) && pins[&t].contains(core));
                    assert!(
                        got.is_some() || !waiting,
                        "a core idles beside a waiting task"
                    );
                }
            }
            s.validate().unwrap();
            for (t, status) in s.tasks() {
                if let Status::Running(c) | Status::Runnable(c) = status {
                    assert!(pins[&t].contains(c));
                }
            }
        }
        assert_eq!(s.tasks().count(), pins.len());
    }
}
