//! PHOLD: the hold model of a discrete-event simulator (Jones: An empirical
//! comparison of priority-queue and event-set implementations, CACM 1986), a
//! stand-in for 471.omnetpp.
//!
//! A binary heap of (time, event) entries of 16 B, event records of 128 B, and
//! logical processes with 64 B of state. A hold takes the earliest event, updates
//! its process, and schedules it again for a random process, a random time
//! later (uniform, which Jones includes; no logarithm, so that every platform
//! makes the same references). One iteration is as many holds as there are
//! events.
//!
//! Blocks: `process` 40 instructions (heap top, event, update of the process,
//! store to the event), `last` 8 (the heap's last entry), `level` 10 (both
//! children's times), `only` 6 (a single child's time), `pull` 5 (move the child
//! up: load and store of an entry), `place` 4 (store the entry), `parent` 6 (load
//! the parent), `push` 3 (move the parent down). The event waits for the heap
//! top, the process for the event; the heap's levels do not wait, as which child
//! is smaller is a predicted branch.

use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::Random;
use crate::spec::{Param, Spec, Values};

const EVENTS: usize = 0;
const PROCESSES: usize = 1;
const ENTRY_BYTES: u64 = 16;
const EVENT_BYTES: u64 = 128;
const PROCESS_BYTES: u64 = 64;
/// Largest delay in ticks: long against the number of events, so that ties are
/// rare.
const MAX_DELAY: u64 = 1 << 40;

static SPEC: Spec = Spec {
    name: "phold",
    about: "event heap of a discrete-event simulator, hold model (omnetpp-like)",
    params: &[
        Param::count(
            "events",
            "events in the heap, 144 B each",
            100_000,
            16,
            1 << 24,
        ),
        Param::count(
            "processes",
            "logical processes, 64 B each",
            10_000,
            1,
            1 << 24,
        ),
    ],
};

/// PHOLD.
pub(super) struct Phold;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    time: u64,
    event: u32,
}

struct Code {
    process: Block,
    last: Block,
    level: Block,
    only: Block,
    pull: Block,
    place: Block,
    parent: Block,
    push: Block,
}

struct Simulation {
    heap: Array<Entry>,
    /// The process of each event.
    events: Array<u32>,
    /// How many events each process has had.
    processes: Array<u64>,
    now: u64,
}

impl Code {
    fn new(tape: &mut Tape<'_>) -> Self {
        let process = Shape::new(40).load(2, 16).load(6, 8).after(0);
        let process = process.update(20, 8).after(1).store(32, 8).after(0);
        Self {
            process: tape.block(process),
            last: tape.block(Shape::new(8).load(4, 16)),
            level: tape.block(Shape::new(10).load(4, 8).load(5, 8)),
            only: tape.block(Shape::new(6).load(4, 8)),
            pull: tape.block(Shape::new(5).load(1, 16).store(2, 16)),
            place: tape.block(Shape::new(4).store(1, 16)),
            parent: tape.block(Shape::new(6).load(3, 16)),
            push: tape.block(Shape::new(3).store(0, 16)),
        }
    }
}

impl Kernel for Phold {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = values.get(EVENTS) as usize;
        let processes = values.get(PROCESSES) as usize;
        let words = Init::new(tape, 8);
        let entries = Init::new(tape, 16);
        let code = Code::new(tape);
        let mut sim = Simulation {
            heap: tape.map(vec![Entry::default(); n], ENTRY_BYTES),
            events: tape.map(vec![0; n], EVENT_BYTES),
            processes: tape.map(vec![0; processes], PROCESS_BYTES),
            now: 0,
        };
        let mut random = Random::new(seed);
        words.fill(tape, &mut sim.processes, 0..processes, |_| 0);
        let dest = |_| random.below(processes as u64) as u32;
        words.fill(tape, &mut sim.events, 0..n, dest);
        let start = first_entries(n, &mut random);
        entries.fill(tape, &mut sim.heap, 0..n, |i| start[i]);
        tape.ready();
        let mut holds = 0;
        while tape.again() {
            for _ in 0..n {
                sim.hold(&code, tape, &mut random)?;
            }
            holds += n as u64;
            sim.check(holds)?;
        }
        Ok(())
    }
}

/// A sorted array is a heap; events lie in it in random order.
fn first_entries(n: usize, random: &mut Random) -> Vec<Entry> {
    let mut times: Vec<(u64, u32)> = (0..n as u32)
        .map(|e| (random.below(MAX_DELAY), e))
        .collect();
    times.sort_unstable();
    let entry = |&(time, event): &(u64, u32)| Entry { time, event };
    times.iter().map(entry).collect()
}

impl Simulation {
    fn hold(
        &mut self,
        code: &Code,
        tape: &mut Tape<'_>,
        random: &mut Random,
    ) -> Result<(), WrongResult> {
        let next = random.below(self.processes.len() as u64) as u32;
        tape.enter(code.process);
        let top = self.heap.get(tape, 0, 0);
        let process = self.events.get(tape, 1, top.event as usize);
        self.processes
            .update(tape, 2, process as usize, |count| count + 1);
        self.events.set(tape, 3, top.event as usize, next);
        if top.time < self.now {
            let now = self.now;
            return Err(WrongResult(format!("event at {} after {now}", top.time)));
        }
        self.now = top.time;
        let time = top.time + 1 + random.below(MAX_DELAY);
        self.remove_top(code, tape);
        self.insert_last(
            code,
            tape,
            Entry {
                time,
                event: top.event,
            },
        );
        Ok(())
    }

    /// Moves the last entry to where it belongs below the root; the last place
    /// is free afterwards.
    fn remove_top(&mut self, code: &Code, tape: &mut Tape<'_>) {
        let n = self.heap.len() - 1;
        tape.enter(code.last);
        let last = self.heap.get(tape, 0, n);
        let mut at = 0;
        while 2 * at + 1 < n {
            let child = self.smaller_child(code, tape, at, n);
            if self.heap.raw()[child].time >= last.time {
                break;
            }
            tape.enter(code.pull);
            let entry = self.heap.get(tape, 0, child);
            self.heap.set(tape, 1, at, entry);
            at = child;
        }
        tape.enter(code.place);
        self.heap.set(tape, 0, at, last);
    }

    fn smaller_child(&self, code: &Code, tape: &mut Tape<'_>, at: usize, n: usize) -> usize {
        let left = 2 * at + 1;
        if left + 1 == n {
            tape.enter(code.only);
            self.heap.get(tape, 0, left);
            return left;
        }
        tape.enter(code.level);
        let times = [
            self.heap.get(tape, 0, left).time,
            self.heap.get(tape, 1, left + 1).time,
        ];
        left + usize::from(times[1] < times[0])
    }

    /// Puts an entry into the free last place and lets it rise.
    fn insert_last(&mut self, code: &Code, tape: &mut Tape<'_>, entry: Entry) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let above = (at - 1) / 2;
            tape.enter(code.parent);
            let parent = self.heap.get(tape, 0, above);
            if parent.time <= entry.time {
                break;
            }
            tape.enter(code.push);
            self.heap.set(tape, 0, at, parent);
            at = above;
        }
        tape.enter(code.place);
        self.heap.set(tape, 0, at, entry);
    }

    /// The heap is one, each event is in it once, and every hold was counted.
    fn check(&self, holds: u64) -> Result<(), WrongResult> {
        let heap = self.heap.raw();
        if let Some(i) = (1..heap.len()).find(|&i| heap[(i - 1) / 2].time > heap[i].time) {
            return Err(WrongResult(format!("heap entry {i} is above its parent")));
        }
        let mut seen = vec![false; heap.len()];
        for entry in heap {
            if core::mem::replace(&mut seen[entry.event as usize], true) {
                return Err(WrongResult(format!("event {} is lost", entry.event)));
            }
        }
        let counted: u64 = self.processes.raw().iter().sum();
        match counted == holds {
            true => Ok(()),
            false => Err(WrongResult(format!(
                "{counted} events of {holds} processed"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::testing::with_tape;
    use super::*;

    fn simulation(entries: [(u64, u32); 3], counts: Vec<u64>) -> Simulation {
        let entries = entries.map(|(time, event)| Entry { time, event });
        with_tape(|tape| Simulation {
            heap: tape.map(entries.to_vec(), ENTRY_BYTES),
            events: tape.map(vec![0; 3], EVENT_BYTES),
            processes: tape.map(counts, PROCESS_BYTES),
            now: 0,
        })
    }

    #[test]
    fn disorder_and_loss_are_found() {
        assert_eq!(
            simulation([(1, 0), (3, 1), (2, 2)], vec![5]).check(5),
            Ok(())
        );
        assert!(
            simulation([(2, 0), (3, 1), (1, 2)], vec![5])
                .check(5)
                .is_err()
        );
        assert!(
            simulation([(1, 0), (3, 1), (2, 1)], vec![5])
                .check(5)
                .is_err()
        );
        assert!(
            simulation([(1, 0), (3, 1), (2, 2)], vec![4])
                .check(5)
                .is_err()
        );
    }
}
