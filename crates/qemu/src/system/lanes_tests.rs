//! Merging by clocks, with a sink that writes down what it is given.

use super::*;

/// What the sink was given, quantum by quantum: (processor, address) of references, and
/// the code of marks as addresses above 1,000,000.
#[derive(Default)]
struct Notes {
    quanta: Vec<Vec<(usize, u64)>>,
    passed: [u64; 3],
    /// The code that ends it.
    last_mark: Option<u16>,
}

const MARKS: u64 = 1_000_000;

impl Notes {
    fn flat(&self) -> Vec<(usize, u64)> {
        self.quanta.iter().flatten().copied().collect()
    }

    fn note(&mut self, vcpu: usize, what: u64) {
        self.quanta
            .last_mut()
            .expect("a quantum has begun")
            .push((vcpu, what));
    }
}

impl Sink for Notes {
    fn begin(&mut self) {
        self.quanta.push(Vec::new());
    }

    fn references(&mut self, vcpu: usize, words: &[Word]) {
        assert!(!words.is_empty());
        for word in words {
            assert!(word.is_reference());
            self.passed[vcpu] += word.gap();
            self.note(vcpu, word.payload());
        }
    }

    fn pass(&mut self, vcpu: usize, instructions: u64) {
        self.passed[vcpu] += instructions;
    }

    fn mark(&mut self, vcpu: usize, code: u16) -> bool {
        self.note(vcpu, MARKS + u64::from(code));
        self.last_mark != Some(code)
    }

    fn end(&mut self) {}
}

/// QEMU's side: one count of instructions, whoever executes them.
struct Guest {
    lanes: Lanes,
    counted: u64,
    notes: Notes,
}

impl Guest {
    fn new(vcpus: usize, quantum: u64) -> Self {
        let mut lanes = Lanes::new(vcpus, quantum, u64::MAX);
        lanes.start(0, 0);
        Self {
            lanes,
            counted: 0,
            notes: Notes::default(),
        }
    }

    /// `n` references, each after `gap` instructions; addresses count up from `first`.
    fn run(&mut self, vcpu: usize, n: u64, gap: u64, first: u64) {
        for i in 0..n {
            self.counted += gap;
            self.lanes.reference(
                vcpu,
                self.counted,
                Kind::Load,
                first + i,
                3,
                &mut self.notes,
            );
        }
    }

    fn mark(&mut self, vcpu: usize, code: u16) -> bool {
        self.counted += 1;
        self.lanes.mark(vcpu, self.counted, code, &mut self.notes)
    }

    fn wait(&mut self, vcpu: usize) {
        self.counted += 1;
        self.lanes.wait(vcpu, self.counted);
    }

    fn all(mut self) -> Notes {
        self.lanes.flush(&mut self.notes);
        self.notes
    }
}

#[test]
fn long_turns_become_turns_of_a_quantum() {
    let mut guest = Guest::new(2, 10);
    guest.run(1, 0, 0, 0);
    // Both are known to run before the long turns.
    guest.run(0, 1, 1, 0);
    guest.run(1, 1, 1, 1000);
    guest.run(0, 50, 1, 1);
    guest.run(1, 50, 1, 1001);
    let notes = guest.all();
    for (i, quantum) in notes.quanta.iter().enumerate() {
        let count = |vcpu| quantum.iter().filter(|(v, _)| *v == vcpu).count() as i64;
        assert!((count(0) - count(1)).abs() <= 1, "quantum {i}: {quantum:?}");
        assert!(quantum.len() <= 20, "quantum {i}: {quantum:?}");
    }
    let firsts: Vec<usize> = notes.quanta.iter().map(|q| q[0].0).collect();
    assert!(firsts.contains(&0) && firsts.contains(&1), "{firsts:?}");
}

#[test]
fn each_processor_keeps_its_order_and_nothing_is_lost() {
    let mut guest = Guest::new(3, 7);
    for turn in 0..20 {
        guest.run(
            turn % 3,
            100 + turn as u64,
            1 + turn as u64 % 4,
            1000 * turn as u64,
        );
        if turn % 5 == 0 {
            guest.wait(turn % 3);
        }
    }
    let counted = guest.counted;
    let notes = guest.all();
    for vcpu in 0..3 {
        let own: Vec<u64> = notes
            .flat()
            .iter()
            .filter(|r| r.0 == vcpu)
            .map(|r| r.1)
            .collect();
        assert!(own.is_sorted(), "processor {vcpu}");
    }
    assert_eq!(notes.flat().len(), (0..20).map(|t| 100 + t).sum::<usize>());
    assert_eq!(notes.passed.iter().sum::<u64>(), counted);
}

#[test]
fn nothing_is_handed_on_before_the_slowest_has_come_as_far() {
    let mut guest = Guest::new(2, 10);
    guest.run(0, 1, 1, 0);
    guest.run(1, 1, 1, 500);
    let many = LOOK as u64 * 2;
    guest.run(0, many, 1, 1);
    assert_eq!(guest.notes.flat(), [], "processor 1 stands at 2");
    guest.run(1, many, 1, 501);
    assert!(guest.notes.flat().len() as u64 > many);
}

#[test]
fn one_that_waits_holds_nobody_back_and_goes_on_from_the_latest() {
    let mut guest = Guest::new(2, 10);
    guest.run(1, 1, 1, 500);
    guest.wait(1);
    let many = LOOK as u64 * 2;
    guest.run(0, many, 1, 1);
    let handed_on = guest.notes.flat().len();
    assert!(handed_on > LOOK, "{handed_on}");
    guest.run(1, 1, 1, 501);
    let notes = guest.all();
    let last = notes.quanta.last().expect("quanta");
    assert!(last.contains(&(1, 501)), "{last:?}");
    assert!(last.contains(&(0, many)), "{last:?}");
}

#[test]
fn who_has_shorter_turns_stands_still_for_the_rest_of_the_others() {
    let mut guest = Guest::new(2, 10);
    guest.run(0, 1, 1, 0);
    guest.run(1, 1, 1, 100_000);
    for turn in 0..10 {
        guest.run(0, 4000, 1, 1 + 4000 * turn);
        guest.run(1, 1000, 1, 100_001 + 1000 * turn);
    }
    assert!(
        (25_000..=30_000).contains(&guest.lanes.stood),
        "{}",
        guest.lanes.stood
    );
    let notes = guest.all();
    // Each fifth of the time has its part of both.
    for part in notes.quanta.chunks(notes.quanta.len().div_ceil(5)).take(4) {
        let second = part.iter().flatten().filter(|r| r.0 == 1).count();
        assert!((1000..=3000).contains(&second), "{second}");
    }
}

#[test]
fn a_turn_that_lasts_long_enough_ends() {
    let mut notes = Notes::default();
    let mut lanes = Lanes::new(2, 10, 100);
    lanes.start(0, 0);
    let mut ends = Vec::new();
    for counted in 1..=350 {
        // Another processor has its turn from 220 to 239.
        let vcpu = usize::from((220..240).contains(&counted));
        let next = lanes.reference(vcpu, counted, Kind::Load, 0, 3, &mut notes);
        if next != Next::GoOn {
            assert_eq!(next, Next::EndTurn);
            ends.push(counted);
        }
    }
    assert_eq!(ends, [100, 200, 340]);
}

#[test]
fn what_is_handed_on_does_not_depend_on_when() {
    let run = |marks_each: u64| {
        let mut guest = Guest::new(2, 10);
        for turn in 0..40 {
            let vcpu = turn as usize % 2;
            // A mark asks for what can be handed on; one that takes no time.
            guest.run(vcpu, 900, 3, turn * 1000);
            if turn % marks_each == 0 {
                guest.lanes.hand_on(guest.lanes.horizon(), &mut guest.notes);
            }
        }
        guest.all().quanta
    };
    assert_eq!(run(1), run(7));
    assert_eq!(run(1), run(1000));
}

#[test]
fn marks_come_in_the_order_of_their_processor() {
    let mut guest = Guest::new(1, 100);
    guest.run(0, 2, 1, 0);
    assert!(guest.mark(0, 7));
    guest.run(0, 2, 1, 10);
    let notes = guest.all();
    let all = [(0, 0), (0, 1), (0, MARKS + 7), (0, 10), (0, 11)];
    assert_eq!(notes.flat(), all);
    assert_eq!(notes.passed[0], 5);
}

#[test]
fn the_mark_that_ends_it_drops_what_comes_later_but_no_marks() {
    let mut guest = Guest::new(2, 10);
    guest.notes.last_mark = Some(2);
    guest.run(0, 1, 1, 0);
    guest.run(1, 1, 1, 500);
    assert!(guest.mark(0, 2), "not handed on yet: processor 1 is behind");
    assert!(guest.mark(0, 3));
    guest.run(0, 50, 1, 1);
    guest.run(1, 40, 1, 501);
    let more = guest.lanes.flush(&mut guest.notes);
    assert!(more, "the second mark wants more");
    let marks: Vec<u64> = guest
        .notes
        .flat()
        .iter()
        .map(|n| n.1)
        .filter(|n| *n >= MARKS)
        .collect();
    assert_eq!(marks, [MARKS + 2, MARKS + 3]);

    let mut guest = Guest::new(1, 10);
    guest.notes.last_mark = Some(2);
    guest.run(0, 5, 1, 0);
    assert!(guest.mark(0, 2), "the quantum is not over");
    guest.run(0, 50, 1, 100);
    assert!(!guest.lanes.flush(&mut guest.notes));
    let seen = guest.notes.flat();
    assert!(
        seen.len() < 20 && seen.contains(&(0, MARKS + 2)),
        "{seen:?}"
    );
}

#[test]
fn gaps_beyond_a_word_and_counts_that_step_back_are_no_loss() {
    let mut guest = Guest::new(1, 1000);
    guest.run(0, 1, 5, 0);
    guest.run(0, 1, MAX_GAP + 10, 1);
    guest.counted -= 3;
    guest.run(0, 1, 1, 2);
    let notes = guest.all();
    assert_eq!(notes.flat(), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(notes.passed[0], 5 + MAX_GAP + 10);
}

#[test]
fn a_lane_that_is_too_long_no_longer_waits() {
    let mut guest = Guest::new(2, 1 << 20);
    guest.run(0, 1, 1, 0);
    guest.run(1, 1, 1, 500);
    let vcpu = 0;
    for i in 0..(MAX_WAITING + 2 * LOOK) as u64 {
        guest.counted += 1;
        guest
            .lanes
            .reference(vcpu, guest.counted, Kind::Load, i % 64, 3, &mut guest.notes);
    }
    assert_eq!(guest.lanes.forced, 1);
    assert!(guest.lanes.lanes[0].pending() < MAX_WAITING);
}
