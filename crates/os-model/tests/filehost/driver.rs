//! A closed loop: every task makes one call after the other.

use std::collections::{BTreeMap, VecDeque};

use piebald_os_model::file::{FileHost, Span, Step};
use piebald_policy::contract::replacement::Replacement;
use piebald_units::{FileId, Picos, TaskId, block::BlockPort};

#[derive(Clone, Copy, Debug)]
pub enum Do {
    Read(u64, Span),
    Write(u64, Span),
    Map(u64, u64, bool),
    Anon(u64, bool),
    /// And create again with so many pages.
    Delete(u64, u64),
    Cut(u64, u64),
    Think(Picos),
    Exit,
}

/// What a task has still to do.
pub type Tasks = BTreeMap<u32, VecDeque<Do>>;

pub fn one(ops: impl IntoIterator<Item = Do>) -> Tasks {
    BTreeMap::from([(1, ops.into_iter().collect())])
}

/// Reads pages one by one.
pub fn reads(file: u64, pages: impl IntoIterator<Item = u64>) -> Vec<Do> {
    let pages = pages.into_iter();
    pages.map(|p| Do::Read(file, Span::pages(p, 1))).collect()
}

/// Runs all tasks to their ends; answers when the last one was done. `check` is
/// called after every step.
pub fn run<P: Replacement, D: BlockPort>(
    host: &mut FileHost<P, D>,
    tasks: &mut Tasks,
    mut check: impl FnMut(&FileHost<P, D>),
) -> Picos {
    let start = host.now();
    let mut ready: BTreeMap<u32, Picos> = tasks.keys().map(|&t| (t, start)).collect();
    let mut last = Picos(0);
    loop {
        let next = ready.iter().map(|(&t, &at)| (at, t)).min();
        let event = host.next_event();
        let Some((now, task)) = next.filter(|(at, _)| event.is_none_or(|e| e > *at)) else {
            if ready.is_empty() && host.blocked_tasks().next().is_none() {
                return last;
            }
            let event = event.expect("blocked tasks wait for an event");
            for woken in host.advance(event).unwrap() {
                ready.insert(woken.task.0, woken.at);
            }
            check(host);
            continue;
        };
        let Some(op) = tasks.get_mut(&task).and_then(VecDeque::pop_front) else {
            ready.remove(&task);
            last = last.max(now);
            continue;
        };
        ready.remove(&task);
        if let Step::Ready(at) = perform(host, TaskId(task), op, now) {
            assert!(at >= now);
            ready.insert(task, at);
        }
        check(host);
    }
}

fn perform<P: Replacement, D: BlockPort>(
    host: &mut FileHost<P, D>,
    task: TaskId,
    op: Do,
    now: Picos,
) -> Step {
    match op {
        Do::Read(file, span) => host.read(task, FileId(file), span, now).unwrap(),
        Do::Write(file, span) => host.write(task, FileId(file), span, now).unwrap(),
        Do::Map(file, page, write) => {
            let file = FileId(file);
            host.touch_mapped(task, file, page, write, now).unwrap()
        }
        Do::Anon(page, write) => host.touch_anon(task, page, write, now).unwrap(),
        Do::Delete(file, pages) => {
            host.delete(FileId(file), now).unwrap();
            host.add_file(FileId(file), pages).unwrap();
            Step::Ready(now)
        }
        Do::Cut(file, pages) => {
            host.truncate(FileId(file), pages, now).unwrap();
            Step::Ready(now)
        }
        Do::Think(time) => Step::Ready(now + time),
        Do::Exit => {
            host.exit(task, now).unwrap();
            Step::Ready(now)
        }
    }
}
