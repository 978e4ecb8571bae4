//! What the virtual processors did, merged by their instruction clocks.
//!
//! QEMU runs the virtual processors one after the other, each for up to some millions of
//! instructions. A shared cache that saw them in that order would see hardly any
//! interference. So the words of each processor are kept in a *lane*, and handed on when
//! all processors have come as far: in *quanta* of so many instructions, in each of which
//! every processor has its turn.
//!
//! # Clocks
//! A lane's clock counts its processor's instructions. One that waits (for an interrupt,
//! or by `pause`) holds nobody back; when it goes on, its clock goes on from the latest of
//! all. QEMU's own turns end where the guest's timers are due (with `-icount`), which gives
//! one processor many times what another gets; so the lanes tell when a turn has lasted long
//! enough. Where turns differ nevertheless, the clocks do not drift apart: a turn begins no
//! earlier than the latest turn of another processor did, and who had the shorter one stands
//! still for the rest. What is handed on depends on clocks only, never on when it is asked
//! for.

use super::word::{Kind, MAX_GAP, MAX_PAYLOAD, Word};

/// Words after which a lane's owner looks whether something can be handed on.
const LOOK: usize = 1 << 15;
/// Words that a lane may hold; one that has more no longer waits for the others.
pub const MAX_WAITING: usize = 1 << 23;

/// What the caller has to do after a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    GoOn,
    /// It is another processor's turn.
    EndTurn,
    /// Nothing is watched any more.
    Stop,
}

/// Takes what the processors did.
pub trait Sink {
    /// A quantum begins: all processors stand at the same time.
    fn begin(&mut self);
    /// References of one processor, in order.
    fn references(&mut self, vcpu: usize, words: &[Word]);
    /// Instructions of one processor without a reference.
    fn pass(&mut self, vcpu: usize, instructions: u64);
    /// A mark of one processor. False: nothing is watched any more. What is not yet handed
    /// on is then dropped, unless there is a mark in it.
    fn mark(&mut self, vcpu: usize, code: u16) -> bool;
    /// The quantum ends.
    fn end(&mut self);
}

/// One virtual processor.
#[derive(Debug)]
struct Lane {
    words: Vec<Word>,
    /// Words of `words` that are handed on.
    head: usize,
    /// Clock after the last word.
    clock: u64,
    /// Clock after the last word that was handed on.
    done: u64,
    /// Clock at which its last turn began.
    turn: u64,
    /// Holds nobody back.
    waits: bool,
    /// Length of `words` at which to look what can be handed on.
    look_at: usize,
}

impl Lane {
    const fn new() -> Self {
        Self {
            words: Vec::new(),
            head: 0,
            clock: 0,
            done: 0,
            turn: 0,
            waits: true,
            look_at: LOOK,
        }
    }

    fn pending(&self) -> usize {
        self.words.len() - self.head
    }

    /// Clock of the next word.
    fn next_clock(&self) -> Option<u64> {
        Some(self.done + self.words.get(self.head)?.advance())
    }

    fn has_mark(&self) -> bool {
        self.words[self.head..]
            .iter()
            .any(|w| w.kind() == Kind::Mark)
    }

    fn push(&mut self, word: Word) {
        self.clock += word.advance();
        self.words.push(word);
    }

    fn forget(&mut self) {
        self.words.clear();
        self.head = 0;
        self.look_at = LOOK;
    }

    /// Gives back the room of what was handed on.
    fn compact(&mut self) {
        if self.head == self.words.len() {
            self.words.clear();
            self.head = 0;
        } else if self.head > self.words.len() / 2 {
            self.words.drain(..self.head);
            self.head = 0;
        }
        self.look_at = self.words.len() + LOOK;
    }
}

/// All virtual processors.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    /// The processor that stored the last word.
    current: usize,
    /// QEMU's count of instructions, over all processors, at the last word.
    counted: u64,
    /// Instructions of a quantum.
    quantum: u64,
    /// Most instructions of a turn.
    turn: u64,
    /// QEMU's count of instructions at which this turn has lasted long enough.
    turn_until: u64,
    /// Start of the next quantum to be handed on.
    now: u64,
    /// How often a lane had too many words to wait for the others.
    pub forced: u64,
    /// Instructions for which processors stood still as others had longer turns.
    pub stood: u64,
}

impl Lanes {
    /// `vcpus` processors that have done nothing. A quantum and a turn have so many
    /// instructions, at least 1; a turn of `u64::MAX` is never too long.
    pub fn new(vcpus: usize, quantum: u64, turn: u64) -> Self {
        Self {
            lanes: (0..vcpus).map(|_| Lane::new()).collect(),
            current: 0,
            counted: 0,
            quantum: quantum.max(1),
            turn: turn.max(1),
            turn_until: 0,
            now: 0,
            forced: 0,
            stood: 0,
        }
    }

    /// Begins anew: `vcpu` runs, all others wait until they are heard of.
    pub fn start(&mut self, vcpu: usize, counted: u64) {
        let latest = self.latest().max(self.now);
        for lane in &mut self.lanes {
            lane.forget();
            (lane.clock, lane.done, lane.turn, lane.waits) = (latest, latest, latest, true);
        }
        self.now = latest / self.quantum * self.quantum;
        self.lanes[vcpu].waits = false;
        self.current = vcpu;
        self.counted = counted;
        self.turn_until = counted.saturating_add(self.turn);
    }

    /// Stores a reference. `counted` is QEMU's count of instructions at it.
    #[inline(always)]
    pub fn reference(
        &mut self,
        vcpu: usize,
        counted: u64,
        kind: Kind,
        addr: u64,
        size_shift: u32,
        sink: &mut impl Sink,
    ) -> Next {
        if vcpu != self.current {
            self.turn_to(vcpu, counted);
        }
        let mut gap = counted.wrapping_sub(self.counted);
        if gap > MAX_GAP {
            gap = self.long_gap(gap);
        }
        self.counted = counted;
        let lane = &mut self.lanes[vcpu];
        lane.clock += gap;
        lane.words
            .push(Word::reference(kind, addr, size_shift, gap));
        if lane.words.len() < lane.look_at && counted < self.turn_until {
            return Next::GoOn;
        }
        self.look(vcpu, counted, sink)
    }

    /// Stores a mark. False if nothing is watched any more.
    pub fn mark(&mut self, vcpu: usize, counted: u64, code: u16, sink: &mut impl Sink) -> bool {
        self.turn_to(vcpu, counted);
        let gap = self.advance(counted);
        let lane = &mut self.lanes[vcpu];
        lane.push(Word::other(Kind::Mark, code.into(), gap));
        self.hand_on(self.horizon(), sink)
    }

    /// A processor waits from now on, or gives its time to others.
    pub fn wait(&mut self, vcpu: usize, counted: u64) {
        self.turn_to(vcpu, counted);
        let gap = self.advance(counted);
        let lane = &mut self.lanes[vcpu];
        lane.push(Word::other(Kind::Pass, gap, 0));
        lane.waits = true;
        // Whoever is heard of next takes its turn, be it the same one.
        self.current = usize::MAX;
    }

    /// Hands on everything, however far the processors have come.
    pub fn flush(&mut self, sink: &mut impl Sink) -> bool {
        self.hand_on(self.latest().saturating_add(self.quantum), sink)
    }

    /// Instructions up to `counted` since the last word, as many as a word can hold.
    fn advance(&mut self, counted: u64) -> u64 {
        let mut gap = counted.wrapping_sub(self.counted);
        if gap > MAX_GAP {
            gap = self.long_gap(gap);
        }
        self.counted = counted;
        gap
    }

    /// Another processor goes on, which may have waited.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, vcpu: usize, counted: u64) {
        let waited = self.lanes[vcpu].waits;
        if vcpu == self.current && !waited {
            return;
        }
        self.current = vcpu;
        self.turn_until = counted.saturating_add(self.turn);
        let from = match waited {
            true => self.latest(),
            false => self.lanes.iter().map(|l| l.turn).max().unwrap_or(0),
        };
        let lane = &mut self.lanes[vcpu];
        lane.waits = false;
        let behind = from.saturating_sub(lane.clock);
        if !waited {
            self.stood += behind;
        }
        let mut left = behind;
        while left > 0 {
            let step = left.min(MAX_PAYLOAD);
            lane.push(Word::other(Kind::Jump, step, 0));
            left -= step;
        }
        lane.turn = lane.clock;
    }

    /// Stores what a word cannot hold; returns the gap that is left. A count that seems to
    /// step back (a block that was left in its middle counts as a whole) is no gap.
    #[cold]
    #[inline(never)]
    fn long_gap(&mut self, gap: u64) -> u64 {
        let lane = &mut self.lanes[self.current];
        if gap <= MAX_PAYLOAD {
            lane.push(Word::other(Kind::Pass, gap, 0));
        }
        0
    }

    /// The latest clock.
    fn latest(&self) -> u64 {
        self.lanes.iter().map(|l| l.clock).max().unwrap_or(0)
    }

    /// How far all have come that do not wait.
    fn horizon(&self) -> u64 {
        let running = self.lanes.iter().filter(|l| !l.waits);
        let slowest = running.map(|l| l.clock).min();
        slowest.unwrap_or_else(|| self.latest())
    }

    /// A lane has grown, or a turn was long: hands on what can be.
    #[cold]
    #[inline(never)]
    fn look(&mut self, vcpu: usize, counted: u64, sink: &mut impl Sink) -> Next {
        if self.lanes[vcpu].words.len() >= self.lanes[vcpu].look_at && !self.relieve(vcpu, sink) {
            return Next::Stop;
        }
        if counted < self.turn_until {
            return Next::GoOn;
        }
        self.turn_until = counted.saturating_add(self.turn);
        Next::EndTurn
    }

    fn relieve(&mut self, vcpu: usize, sink: &mut impl Sink) -> bool {
        if self.lanes[vcpu].pending() >= MAX_WAITING {
            self.forced += 1;
            let clock = self.lanes[vcpu].clock;
            for lane in self.lanes.iter_mut().filter(|l| l.clock < clock) {
                lane.waits = true;
            }
        }
        self.hand_on(self.horizon(), sink)
    }

    /// Hands on all whole quanta that end by `until`. False if the sink wants no more.
    fn hand_on(&mut self, until: u64, sink: &mut impl Sink) -> bool {
        while let Some(next) = self.lanes.iter().filter_map(Lane::next_clock).min() {
            self.now = self.now.max(next / self.quantum * self.quantum);
            let limit = self.now + self.quantum;
            if limit > until {
                break;
            }
            let wants_more = self.hand_on_quantum(limit, sink);
            self.now = limit;
            // A mark that still waits may want more.
            if !wants_more && !self.lanes.iter().any(Lane::has_mark) {
                for lane in &mut self.lanes {
                    lane.forget();
                }
                return false;
            }
        }
        for lane in &mut self.lanes {
            lane.compact();
        }
        true
    }

    /// Every processor does what it did before `limit`; who comes first goes around. False
    /// if the last mark said that no more is wanted.
    fn hand_on_quantum(&mut self, limit: u64, sink: &mut impl Sink) -> bool {
        sink.begin();
        let n = self.lanes.len();
        let first = (limit / self.quantum) as usize % n;
        let mut wants_more = true;
        for vcpu in (first..n).chain(0..first) {
            if let Some(said) = hand_on_lane(vcpu, &mut self.lanes[vcpu], limit, sink) {
                wants_more = said;
            }
        }
        sink.end();
        wants_more
    }
}

/// What one processor did before `limit`; what its last mark said, if there was one.
fn hand_on_lane(vcpu: usize, lane: &mut Lane, limit: u64, sink: &mut impl Sink) -> Option<bool> {
    let mut said = None;
    let mut from = lane.head;
    while let Some(word) = lane.words.get(lane.head) {
        let clock = lane.done + word.advance();
        if clock >= limit {
            break;
        }
        lane.done = clock;
        lane.head += 1;
        if word.is_reference() {
            continue;
        }
        let before = &lane.words[from..lane.head - 1];
        if !before.is_empty() {
            sink.references(vcpu, before);
        }
        from = lane.head;
        match word.kind() {
            Kind::Pass => sink.pass(vcpu, word.payload()),
            Kind::Mark => {
                sink.pass(vcpu, word.gap());
                said = Some(sink.mark(vcpu, word.payload() as u16));
            }
            _ => {}
        }
    }
    if from < lane.head {
        sink.references(vcpu, &lane.words[from..lane.head]);
    }
    said
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
