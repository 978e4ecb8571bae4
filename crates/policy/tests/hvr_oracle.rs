//! The manager and a slow, obvious oracle side by side under random events.
//!
//! `PIEBALD_FUZZ_CASES` sets the number of random lists of events.

use std::collections::{BTreeMap, BTreeSet};

use crate::hvr_kit::{
    Hvr, Random,
    oracle::{Colors, Slow},
    setting, x_buddy,
};
use piebald_policy::hvr::{
    Arrival, BankGroups, Change, Class, Config, FewMiddle, Framework, Gone, Manager, Mixed,
    OtherRegions, Policy, Profile, Program, ProgramId, Reach, Refusal, Spare,
};
use piebald_units::TaskId;

const SLOTS: usize = 14;

struct Pair {
    hvr: Hvr,
    slow: Slow,
    ids: BTreeMap<u32, ProgramId>,
    gone: Vec<ProgramId>,
    random: Random,
    next: u32,
    /// Of 100: how often a program begins rather than ends.
    coming: u64,
}

fn pick<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn random_config(random: &mut Random) -> Config {
    let fixed = pick(random, &Policy::ALL);
    Config {
        framework: pick(
            random,
            &[
                Framework::Static,
                Framework::Coalescing,
                Framework::Curve,
                Framework::Hvr,
                Framework::Hvr,
                Framework::Fixed(fixed),
            ],
        ),
        few: pick(random, &[1, 4, 4, 6]),
        segregate_from: pick(random, &[2, 5, 8]),
        bank_groups: pick(random, &[BankGroups::ByPrograms, BankGroups::Four]),
        few_middle: pick(random, &[FewMiddle::BankOnly, FewMiddle::AVp]),
        mixed: pick(random, &[Mixed::Everyone, Mixed::Alone]),
        small_region: pick(random, &[0, 0, 3, 5, 7, 255]),
        other_regions: pick(random, &[OtherRegions::Used, OtherRegions::Left]),
        spare: pick(random, &[Spare::Lent, Spare::Kept]),
        ..Config::PAPER
    }
}

const CLASSES: [Option<Class>; 5] = [
    None,
    Some(Class::Ccf),
    Some(Class::Llcm),
    Some(Class::Llch),
    Some(Class::Llct),
];

impl Pair {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let config = random_config(&mut random);
        let slots = vec![Program::EMPTY; SLOTS];
        Self {
            hvr: Manager::new(x_buddy(), slots, config).unwrap(),
            slow: Slow::new(config),
            ids: BTreeMap::new(),
            gone: vec![],
            coming: 30 + random.below(50),
            random,
            next: 0,
        }
    }

    fn anyone(&mut self) -> Option<(u32, ProgramId)> {
        let all: Vec<_> = self.ids.iter().map(|(t, id)| (*t, *id)).collect();
        (!all.is_empty()).then(|| pick(&mut self.random, &all))
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=39 => self.come_or_go(),
            40..=84 => self.reclassify(),
            85..=89 => self.threads(),
            90..=95 => self.reach(),
            96..=97 => self.coming = 20 + self.random.below(70),
            _ => self.ask_the_dead(),
        }
    }

    fn come_or_go(&mut self) {
        if self.random.below(100) >= self.coming {
            if let Some((task, id)) = self.anyone() {
                let change = self.hvr.exit(id).unwrap();
                self.ids.remove(&task);
                self.gone.push(id);
                let expected = self.slow.exit(task);
                self.check(change, &expected);
            }
            return;
        }
        let class = pick(&mut self.random, &CLASSES);
        let threads = pick(&mut self.random, &[1, 1, 1, 1, 1, 1, 1, 1, 1, 8]);
        let task = TaskId(self.next);
        let arrival = Arrival {
            task,
            threads,
            class,
            profile: Profile::NEW,
        };
        match self.hvr.arrive(&arrival) {
            Err(e) => {
                assert_eq!(e, Refusal::NoSlot { slots: SLOTS });
                assert_eq!(self.ids.len(), SLOTS);
            }
            Ok((id, change)) => {
                self.ids.insert(self.next, id);
                let expected = self.slow.arrive(self.next, threads, class);
                self.check(change, &expected);
                assert_eq!(self.hvr.arrive(&arrival), Err(Refusal::Known(id)));
                self.next += 1;
            }
        }
    }

    fn reclassify(&mut self) {
        let class = pick(&mut self.random, &CLASSES);
        if let Some((task, id)) = self.anyone() {
            let change = self.hvr.declare(id, class).unwrap();
            let expected = self.slow.change(task, |p| p.class = class);
            self.check(change, &expected);
        }
    }

    fn threads(&mut self) {
        let threads = pick(&mut self.random, &[1, 1, 2]);
        if let Some((task, id)) = self.anyone() {
            let change = self.hvr.set_threads(id, threads).unwrap();
            let expected = self.slow.change(task, |p| p.threads = threads);
            self.check(change, &expected);
        }
    }

    fn reach(&mut self) {
        let reach = pick(&mut self.random, &[Reach::Lot, Reach::Zone, Reach::All]);
        if let Some((task, id)) = self.anyone() {
            let change = self.hvr.set_reach(id, reach).unwrap();
            let expected = self.slow.change(task, |p| p.reach = reach);
            self.check(change, &expected);
        }
    }

    fn ask_the_dead(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let id = pick(&mut self.random, &self.gone);
        assert_eq!(self.hvr.exit(id), Err(Gone(id)));
        assert_eq!(self.hvr.declare(id, None), Err(Gone(id)));
        assert_eq!(self.hvr.set_threads(id, 2), Err(Refusal::Gone(id)));
        assert!(self.hvr.program(id).is_err());
    }

    fn check(&self, change: Change, expected: &BTreeSet<u32>) {
        self.hvr.validate().unwrap();
        assert_eq!(change.policy, self.slow.policy);
        assert_eq!(change.rule, self.slow.rule);
        let changed = self.hvr.changed_since(change.stamp);
        let changed: BTreeSet<u32> = changed.map(|(_, p)| p.task().0).collect();
        assert_eq!(changed, *expected);
        assert_eq!(change.programs as usize, expected.len());
        let tasks: Vec<u32> = self.hvr.iter().map(|(_, p)| p.task().0).collect();
        let slow: Vec<u32> = self.slow.programs.iter().map(|p| p.task).collect();
        assert_eq!(tasks, slow, "the order of arrival");
        for (p, slow) in self.slow.programs.iter().zip(self.hvr.iter()) {
            let (_, program) = slow;
            let colors: Colors = program.colors().iter().map(|c| c.0).collect();
            assert_eq!(
                colors, p.colors,
                "task {} of {:?}",
                p.task, self.slow.policy
            );
            assert_eq!(program.class(), p.class);
            assert_eq!((program.zone(), program.reach()), (p.zone, p.reach));
        }
        assert_eq!(self.hvr.find(TaskId(u32::MAX)), None);
    }
}

#[test]
fn fuzz_every_event_leaves_what_the_oracle_says() {
    for case in 0..setting("PIEBALD_FUZZ_CASES", 100).min(3000) {
        let mut pair = Pair::new(case);
        for _ in 0..250 {
            pair.step();
        }
    }
}

/// The random lists reach every rule and zone: else they prove little.
#[test]
fn random_events_reach_every_rule() {
    let (mut rules, mut policies, mut zones) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for case in 0..200 {
        let mut pair = Pair::new(case);
        for _ in 0..120 {
            pair.step();
            let decision = pair.hvr.decision();
            rules.insert(format!("{:?}{}", decision.rule, decision.segregate));
            policies.insert(decision.policy);
            zones.extend(pair.hvr.iter().map(|(_, p)| (decision.policy, p.zone())));
        }
    }
    // One, Fitting and Fixed with CCFs apart; One and Fixed without; five more.
    assert_eq!(rules.len(), 10, "{rules:?}");
    assert_eq!(policies.len(), 9, "{policies:?}");
    // Every zone that a policy has.
    assert_eq!(zones.len(), 16, "{zones:?}");
}
