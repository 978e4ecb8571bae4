//! Requests in the order of their stamps, of a trace whose stamps step back.

use std::collections::BTreeMap;

use piebald_trace::block::{Nanos, Request};

/// Requests that are held back at most: some hundred megabytes.
const MAX_HELD: usize = 1 << 22;

/// Sorts a stream whose largest step back is known: what lies further back than that behind the
/// latest stamp is due, since nothing earlier can come. Equal stamps keep their order. Memory: the
/// requests within one such step.
#[derive(Debug)]
pub(super) struct Sorter {
    step: Nanos,
    latest: Nanos,
    /// By stamp, then by arrival.
    held: BTreeMap<(Nanos, u64), Request>,
    arrived: u64,
}

impl Sorter {
    /// One for steps back of at most so much.
    pub(super) fn new(step: Nanos) -> Self {
        Self {
            step,
            latest: Nanos(0),
            held: BTreeMap::new(),
            arrived: 0,
        }
    }

    /// The largest step back that it is for.
    pub(super) fn step(&self) -> Nanos {
        self.step
    }

    /// Takes requests in the trace's order, and leaves those that are due. A request without a
    /// stamp stays behind the latest one so far.
    ///
    /// # Errors
    /// The most that are held back, if there are more.
    pub(super) fn take(&mut self, requests: &mut Vec<Request>) -> Result<(), usize> {
        for request in requests.drain(..) {
            let time = request.time.unwrap_or(self.latest);
            self.latest = self.latest.max(time);
            self.held.insert((time, self.arrived), request);
            self.arrived += 1;
        }
        let due = self.latest.0.saturating_sub(self.step.0);
        while let Some(entry) = self.held.first_entry()
            && entry.key().0.0 < due
        {
            requests.push(entry.remove());
        }
        match self.held.len() > MAX_HELD {
            true => Err(MAX_HELD),
            false => Ok(()),
        }
    }

    /// There are no more requests: gives the rest.
    pub(super) fn finish(&mut self, out: &mut Vec<Request>) {
        out.extend(std::mem::take(&mut self.held).into_values());
    }
}

#[cfg(test)]
mod tests {
    use piebald_trace::block::{NextUse, Op, Target};

    use super::*;

    fn request(time: Option<u64>, id: u64) -> Request {
        Request {
            time: time.map(Nanos),
            task: 0,
            op: Op::Read,
            target: Target::Id {
                id,
                bytes: None,
                next: NextUse::Unknown,
            },
        }
    }

    #[test]
    fn it_gives_what_a_stable_sort_of_the_whole_gives() {
        // Steps back of up to 50, from a fixed generator.
        let mut state = 7u64;
        let mut latest = 100u64;
        let mut all = Vec::new();
        for id in 0..5000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let draw = state >> 40;
            let time = match draw % 4 {
                0 => latest - draw / 4 % 51,
                _ => latest + draw / 4 % 9,
            };
            latest = latest.max(time);
            all.push(request(Some(time), id));
        }
        let mut expected = all.clone();
        expected.sort_by_key(|r| r.time);
        assert_ne!(all, expected);
        for chunk in [1, 7, 5000] {
            let mut sorter = Sorter::new(Nanos(50));
            let (mut out, mut most) = (Vec::new(), 0);
            for part in all.chunks(chunk) {
                let mut part = part.to_vec();
                sorter.take(&mut part).expect("few");
                most = most.max(sorter.held.len());
                out.append(&mut part);
            }
            sorter.finish(&mut out);
            assert_eq!(out, expected, "{chunk}");
            assert!(chunk > 7 || most < 500, "{most} are held");
        }
    }

    #[test]
    fn requests_without_a_stamp_stay_where_they_are() {
        let all = [
            request(Some(5), 0),
            request(None, 1),
            request(Some(3), 2),
            request(Some(9), 3),
        ];
        let mut sorter = Sorter::new(Nanos(2));
        let mut out = all.to_vec();
        sorter.take(&mut out).expect("few");
        sorter.finish(&mut out);
        let ids = [2, 0, 1, 3].map(|n: usize| all[n]);
        assert_eq!(out, ids);
    }
}
