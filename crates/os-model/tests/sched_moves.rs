//! Moving tasks between cores: what a policy asks for, what the balance does, and what
//! neither may do. A slow model of queues as lists says where everyone is.

use piebald_os_model::sched::{Blocked, SchedConfig, SchedError, Scheduler, Status, Wake};
use piebald_units::{CoreId, CoreSet, TaskId};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const CORES: u16 = 4;

fn sched(balance: bool) -> Scheduler {
    let config = SchedConfig {
        balance,
        ..SchedConfig::new(CORES)
    };
    Scheduler::new(config).unwrap()
}

fn add(s: &mut Scheduler, task: u32, cores: &str) -> u16 {
    s.add(TaskId(task), cores.parse().unwrap()).unwrap().core.0
}

fn wake(task: u32, core: u16) -> Wake {
    Wake {
        task: TaskId(task),
        core: CoreId(core),
    }
}

#[test]
fn a_running_task_moves_at_once_and_its_core_is_free() {
    let mut s = sched(false);
    assert_eq!(add(&mut s, 0, "0-3"), 0);
    s.next_on(CoreId(0)).unwrap();
    assert_eq!(s.migrate(TaskId(0), CoreId(2)), Ok(CoreId(0)));
    assert_eq!(s.status(TaskId(0)), Ok(Status::Runnable(CoreId(2))));
    assert_eq!(s.next_on(CoreId(0)), Ok(None), "it is not taken back");
    assert_eq!([s.load(CoreId(0)), s.load(CoreId(2))], [0, 1]);
    assert_eq!(s.next_on(CoreId(2)), Ok(Some(TaskId(0))));
    s.validate().unwrap();
}

#[test]
fn a_waiting_task_goes_behind_those_of_the_other_core() {
    let mut s = sched(false);
    for task in 0..3 {
        add(&mut s, task, "1");
    }
    add(&mut s, 3, "0");
    s.set_cores(TaskId(3), "0,1".parse().unwrap()).unwrap();
    assert_eq!(s.migrate(TaskId(3), CoreId(1)), Ok(CoreId(0)));
    let order: Vec<u32> = (0..4)
        .map(|_| {
            let task = s.next_on(CoreId(1)).unwrap().unwrap();
            s.exit(task).unwrap();
            task.0
        })
        .collect();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn a_placed_task_wakes_where_it_was_placed() {
    let mut s = sched(false);
    add(&mut s, 0, "0-3");
    add(&mut s, 1, "3");
    s.migrate(TaskId(0), CoreId(3)).unwrap();
    assert_eq!(s.next_on(CoreId(3)), Ok(Some(TaskId(1))));
    s.exit(TaskId(1)).unwrap();
    assert_eq!(s.next_on(CoreId(3)), Ok(Some(TaskId(0))));
    s.block(TaskId(0)).unwrap();
    add(&mut s, 2, "3");
    // Core 0 is idle, and core 3 is not: still.
    assert_eq!(s.wake(TaskId(0)), Ok(wake(0, 3)));
    assert_eq!(s.next_on(CoreId(0)), Ok(None));
    // A new set of cores ends that.
    s.set_cores(TaskId(0), "0-2".parse().unwrap()).unwrap();
    assert_eq!(s.status(TaskId(0)), Ok(Status::Runnable(CoreId(0))));
    s.validate().unwrap();
}

#[test]
fn what_cannot_be_moved_is_named() {
    let mut s = sched(true);
    add(&mut s, 0, "0-1");
    let e = s.migrate(TaskId(0), CoreId(2)).unwrap_err();
    assert_eq!(
        e.to_string(),
        "task 0 cannot be moved to cpu2: it may run on cores 0-1 only"
    );
    assert!(matches!(
        s.migrate(TaskId(0), CoreId(CORES)),
        Err(SchedError::BadCore { .. })
    ));
    let unknown = TaskId(9);
    assert_eq!(
        s.migrate(unknown, CoreId(0)),
        Err(SchedError::NoSuchTask(unknown))
    );
    s.next_on(CoreId(0)).unwrap();
    s.block(TaskId(0)).unwrap();
    assert!(matches!(
        s.migrate(TaskId(0), CoreId(1)),
        Err(SchedError::State { .. })
    ));
    assert!(s.balance(CoreId(CORES)).is_err());
    s.validate().unwrap();
}

/// Core 0 runs task 0; others wait there, and core 1 runs a task of its own.
fn uneven(balance: bool, waiting: &[&str]) -> Scheduler {
    let mut s = sched(balance);
    add(&mut s, 100, "0");
    add(&mut s, 101, "1");
    s.next_on(CoreId(0)).unwrap();
    s.next_on(CoreId(1)).unwrap();
    for (task, cores) in (0..).zip(waiting) {
        add(&mut s, task, "0");
        s.set_cores(TaskId(task), cores.parse().unwrap()).unwrap();
    }
    s
}

#[test]
fn balance_moves_one_task_when_queues_differ_by_two() {
    let mut s = uneven(true, &["0-1"]);
    assert_eq!(s.balance(CoreId(0)), Ok(None), "2 and 1 are even");
    let mut s = uneven(true, &["0-1", "0-1"]);
    assert_eq!(s.balance(CoreId(0)), Ok(Some(wake(0, 1))));
    assert_eq!(s.balance(CoreId(0)), Ok(None), "2 and 2");
    let mut s = uneven(true, &["0", "0-1", "0"]);
    assert_eq!(s.balance(CoreId(0)), Ok(Some(wake(1, 1))), "not the pinned");
    assert_eq!(s.balance(CoreId(0)), Ok(None), "nobody else may");
    let mut s = uneven(true, &["0-1", "0-3"]);
    assert_eq!(s.balance(CoreId(0)), Ok(Some(wake(0, 1))));
    let mut s = uneven(true, &["0-3", "0-1"]);
    assert_eq!(
        s.balance(CoreId(0)),
        Ok(Some(wake(0, 2))),
        "the least loaded"
    );
    let mut s = uneven(false, &["0-1", "0-1", "0-3"]);
    assert_eq!(s.balance(CoreId(0)), Ok(None), "it is off");
}

#[test]
fn placed_tasks_are_moved_last() {
    let mut s = uneven(true, &["0-1", "0-1", "0-1"]);
    for task in 0..2 {
        s.migrate(TaskId(task), CoreId(0)).unwrap();
    }
    assert_eq!(s.balance(CoreId(0)), Ok(Some(wake(2, 1))));
    let mut s = uneven(true, &["0-1", "0-1", "0-1"]);
    for task in 0..3 {
        s.migrate(TaskId(task), CoreId(0)).unwrap();
    }
    assert_eq!(s.balance(CoreId(0)), Ok(Some(wake(0, 1))));
    // It is like any other now: an idle core may take it.
    assert_eq!(s.exit(TaskId(101)), Ok(()));
    assert_eq!(s.next_on(CoreId(1)), Ok(Some(TaskId(0))));
    s.validate().unwrap();
}

/// Who is where, as lists: the running task first, then the queue.
#[derive(Default)]
struct Model {
    cores: [(Option<u32>, Vec<u32>); CORES as usize],
    placed: Vec<u32>,
}

impl Model {
    fn load(&self, core: usize) -> usize {
        let (running, queue) = &self.cores[core];
        queue.len() + usize::from(running.is_some())
    }

    fn agrees(&self, s: &Scheduler) {
        for (core, (running, queue)) in (0..CORES).zip(&self.cores) {
            assert_eq!(s.load(CoreId(core)), self.load(core.into()));
            for (tasks, status) in [
                (
                    running.iter().copied().collect(),
                    Status::Running(CoreId(core)),
                ),
                (queue.clone(), Status::Runnable(CoreId(core))),
            ] {
                let (mut tasks, mut found): (Vec<u32>, Vec<u32>) = (
                    tasks,
                    s.tasks().filter(|t| t.1 == status).map(|t| t.0.0).collect(),
                );
                tasks.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, tasks, "{status:?}");
            }
        }
    }
}

#[test]
fn random_moves_agree_with_lists() {
    for seed in 0..30 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut s = sched(true);
        let mut model = Model::default();
        let mut pins = Vec::new();
        let (mut moved, mut evened) = (0, 0);
        for _ in 0..1500 {
            let core = rng.random_range(0..usize::from(CORES));
            let id = CoreId(core as u16);
            match rng.random_range(0..8) {
                0 if pins.len() < 14 => {
                    let pin = CoreSet::from_bits(rng.random_range(1..16));
                    let task = pins.len() as u32;
                    let to = s.add(TaskId(task), pin).unwrap().core;
                    let allowed = pin.iter().map(|c| usize::from(c.0));
                    let least = allowed.min_by_key(|c| model.load(*c)).unwrap();
                    assert_eq!(usize::from(to.0), least);
                    model.cores[least].1.push(task);
                    pins.push(pin);
                }
                1 if !pins.is_empty() => {
                    let task = rng.random_range(0..pins.len() as u32);
                    let before = model
                        .cores
                        .iter()
                        .position(|(r, q)| *r == Some(task) || q.contains(&task));
                    let went = s.migrate(TaskId(task), id);
                    let may = pins[task as usize].contains(id);
                    let Some(before) = before.filter(|_| may) else {
                        assert!(went.is_err());
                        continue;
                    };
                    assert_eq!(went, Ok(CoreId(before as u16)));
                    if !model.placed.contains(&task) {
                        model.placed.push(task);
                    }
                    if before != core {
                        moved += 1;
                        let (running, queue) = &mut model.cores[before];
                        *running = running.filter(|t| *t != task);
                        queue.retain(|t| *t != task);
                        model.cores[core].1.push(task);
                    }
                }
                2 => {
                    let found = s.balance(id).unwrap();
                    let here = model.load(core);
                    let mut best: Option<(bool, usize, usize)> = None;
                    for (at, task) in model.cores[core].1.iter().enumerate() {
                        let pin = pins[*task as usize];
                        let others = pin.iter().map(|c| usize::from(c.0)).filter(|c| *c != core);
                        let Some(to) = others.min_by_key(|c| model.load(*c)) else {
                            continue;
                        };
                        let candidate = (model.placed.contains(task), at, to);
                        if here >= model.load(to) + 2 && best.is_none_or(|b| candidate < b) {
                            best = Some(candidate);
                        }
                    }
                    let expected = best.map(|(_, at, to)| {
                        let task = model.cores[core].1.remove(at);
                        model.cores[to].1.push(task);
                        model.placed.retain(|t| *t != task);
                        evened += 1;
                        wake(task, to as u16)
                    });
                    assert_eq!(found, expected);
                }
                3 => {
                    let running = model.cores[core].0.take();
                    assert_eq!(s.preempt(id).unwrap(), running.map(TaskId));
                    model.cores[core].1.extend(running);
                }
                4 => {
                    // Blocked and woken at once: placed tasks come back.
                    let Some(task) = model.cores[core].0 else {
                        continue;
                    };
                    s.block(TaskId(task)).unwrap();
                    assert_eq!(s.status(TaskId(task)), Ok(Status::Blocked(Blocked::Host)));
                    model.cores[core].0 = None;
                    let to = usize::from(s.wake(TaskId(task)).unwrap().core.0);
                    let allowed = pins[task as usize].iter().map(|c| usize::from(c.0));
                    let least = allowed.map(|c| model.load(c)).min();
                    if model.placed.contains(&task) {
                        assert_eq!(to, core);
                    } else {
                        assert_eq!(Some(model.load(to)), least);
                    }
                    model.cores[to].1.push(task);
                }
                _ => {
                    let got = s.next_on(id).unwrap().map(|t| t.0);
                    if let Some(running) = model.cores[core].0 {
                        assert_eq!(got, Some(running));
                        continue;
                    }
                    if !model.cores[core].1.is_empty() {
                        let next = model.cores[core].1.remove(0);
                        assert_eq!(got, Some(next));
                    }
                    match got {
                        Some(task) => {
                            for (_, queue) in &mut model.cores {
                                queue.retain(|t| *t != task);
                            }
                            model.cores[core].0 = Some(task);
                        }
                        None => {
                            let free = |t: &u32| {
                                pins[*t as usize].contains(id) && !model.placed.contains(t)
                            };
                            let queues = model.cores.iter().map(|(_, queue)| queue);
                            assert_eq!(queues.flatten().find(|t| free(t)), None);
                        }
                    }
                }
            }
            s.validate().unwrap();
            model.agrees(&s);
        }
        assert!(moved > 20 && evened > 5, "{moved} {evened}");
    }
}
