//! A part of a trace, and its tasks moved against one another: what a repetition draws.

use std::collections::BTreeMap;

use piebald_trace::block::{Op, PageShift, Request};

/// Which requests of a trace are replayed, and in which order.
///
/// Positions are counted in pages referenced from the trace's beginning, as it lies there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// References behind this position are left out; `None` = none are.
    pub limit_pages: Option<u64>,
    /// By the trace's own number of the task; tasks that are not named are not changed.
    pub tasks: BTreeMap<u32, TaskPart>,
}

/// What is different for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskPart {
    /// Of the task's references, how many are passed over at its beginning; a request that
    /// begins before that is passed over as a whole.
    pub skip_pages: u64,
    /// How many positions earlier than in the trace its requests come.
    pub lead_pages: u64,
}

impl Excerpt {
    /// Is it the whole trace in its own order?
    pub fn is_all(&self) -> bool {
        let plain = |part: &TaskPart| *part == TaskPart::default();
        self.limit_pages.is_none() && self.tasks.values().all(plain)
    }

    fn part(&self, task: u32) -> TaskPart {
        self.tasks.get(&task).copied().unwrap_or_default()
    }

    /// The largest lead: how far requests are held back to let others pass.
    fn reach(&self) -> u64 {
        let leads = self.tasks.values().map(|part| part.lead_pages);
        leads.max().unwrap_or(0)
    }
}

/// Carries an excerpt out on a stream of requests. Memory: the requests within the largest
/// lead.
#[derive(Debug)]
pub(super) struct Cutter {
    excerpt: Excerpt,
    page: PageShift,
    reach: u64,
    position: u64,
    passed: BTreeMap<u32, u64>,
    /// By due position, then by arrival.
    held: BTreeMap<(u64, u64), Request>,
    arrived: u64,
}

impl Cutter {
    /// One at the beginning; `None` where nothing is to be done.
    pub(super) fn new(excerpt: &Excerpt, page: PageShift) -> Option<Self> {
        (!excerpt.is_all()).then(|| Self {
            reach: excerpt.reach(),
            excerpt: excerpt.clone(),
            page,
            position: 0,
            passed: BTreeMap::new(),
            held: BTreeMap::new(),
            arrived: 0,
        })
    }

    /// Takes requests in the trace's order, and gives those that are due; `false` once the
    /// limit is reached, when there is no need for more.
    pub(super) fn take(&mut self, requests: &[Request], out: &mut Vec<Request>) -> bool {
        for request in requests {
            if self.at_limit() {
                return false;
            }
            self.one(request);
            self.release(self.position, out);
        }
        !self.at_limit()
    }

    fn at_limit(&self) -> bool {
        let limit = self.excerpt.limit_pages;
        limit.is_some_and(|limit| self.position >= limit)
    }

    fn one(&mut self, request: &Request) {
        let pages = match request.op {
            Op::Delete => 0,
            _ => request.pages(self.page).count,
        };
        let part = self.excerpt.part(request.task);
        let passed = self.passed.entry(request.task).or_default();
        let skipped = *passed < part.skip_pages;
        *passed = passed.saturating_add(pages);
        if !skipped {
            let back = self.reach.saturating_sub(part.lead_pages);
            let due = self.position.saturating_add(back);
            self.held.insert((due, self.arrived), *request);
            self.arrived += 1;
        }
        self.position = self.position.saturating_add(pages);
    }

    /// Gives what is due up to a position. What comes later is due there or behind.
    fn release(&mut self, position: u64, out: &mut Vec<Request>) {
        while let Some(entry) = self.held.first_entry()
            && entry.key().0 < position
        {
            out.push(entry.remove());
        }
    }

    /// There are no more requests: gives the rest.
    pub(super) fn finish(&mut self, out: &mut Vec<Request>) {
        out.extend(std::mem::take(&mut self.held).into_values());
    }
}

#[cfg(test)]
mod tests {
    use piebald_trace::block::{FileKey, Target};

    use super::*;

    /// Requests of one page, numbered by their place in the trace.
    fn request(task: u32, number: u64) -> Request {
        Request {
            time: None,
            op: Op::Read,
            target: Target::File {
                file: FileKey(0),
                offset: number * 4096,
                length: 4096,
            },
            task,
        }
    }

    fn cut(excerpt: &Excerpt, tasks: &[u32], batch: usize) -> Vec<u64> {
        let all: Vec<Request> = (0..).zip(tasks).map(|(n, t)| request(*t, n)).collect();
        let mut cutter = Cutter::new(excerpt, PageShift::default()).expect("something to do");
        let mut out = Vec::new();
        for part in all.chunks(batch) {
            if !cutter.take(part, &mut out) {
                break;
            }
        }
        cutter.finish(&mut out);
        out.iter()
            .map(|r| r.pages(PageShift::default()).first)
            .collect()
    }

    fn excerpt(limit_pages: Option<u64>, tasks: &[(u32, u64, u64)]) -> Excerpt {
        let part = |&(task, skip_pages, lead_pages): &(u32, u64, u64)| {
            let part = TaskPart {
                skip_pages,
                lead_pages,
            };
            (task, part)
        };
        Excerpt {
            limit_pages,
            tasks: tasks.iter().map(part).collect(),
        }
    }

    #[test]
    fn the_whole_trace_needs_no_cutting() {
        assert!(Cutter::new(&Excerpt::default(), PageShift::default()).is_none());
        assert!(Cutter::new(&excerpt(None, &[(1, 0, 0)]), PageShift::default()).is_none());
    }

    #[test]
    fn first_references_of_a_task_are_passed_over_and_the_limit_counts_them() {
        let tasks = [1, 1, 2, 1, 2, 2];
        assert_eq!(cut(&excerpt(None, &[(1, 2, 0)]), &tasks, 2), [2, 3, 4, 5]);
        assert_eq!(cut(&excerpt(Some(4), &[(1, 2, 0)]), &tasks, 1), [2, 3]);
        assert_eq!(cut(&excerpt(Some(0), &[]), &tasks, 4), [0_u64; 0]);
    }

    #[test]
    fn a_lead_is_a_sort_by_position_less_lead() {
        let tasks: Vec<u32> = (0..200).map(|n| (n * n / 7) % 3).collect();
        for leads in [[0, 5, 0], [9, 0, 30], [1, 1, 1]] {
            let parts: Vec<_> = (0..).zip(leads).map(|(t, l)| (t, 0, l)).collect();
            let mut sorted: Vec<u64> = (0..200).collect();
            sorted.sort_by_key(|&n| n + 30 - leads[tasks[n as usize] as usize]);
            for batch in [1, 7, 500] {
                assert_eq!(
                    cut(&excerpt(None, &parts), &tasks, batch),
                    sorted,
                    "{leads:?}"
                );
            }
        }
    }
}
