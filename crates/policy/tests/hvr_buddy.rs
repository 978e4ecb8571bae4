//! HVR in a host: one coloured buddy gives every program its frames, whatever the policy;
//! pages move when they are touched, or by a recolouring plan.

use crate::hvr_kit;
use std::collections::BTreeMap;

use crate::hvr_kit::{Hvr, Random, VecBuddy, full_buddy, hvr, x_buddy};
use piebald_policy::{
    contract::{Cause, FrameRequest, Mode, Purpose},
    hvr::{Arrival, Class, Config, Framework, ProgramId, Reach, Turn},
    rainbow::{self, Ask, Owner, Partition, Plan, Registry, Reservation, Step},
};
use piebald_units::{Color, ColorSet, CoreId, Order, Pfn, TaskId, Vpn};

/// 64 MiB: 512 frames of each of the 32 colours.
const FRAMES: u64 = 1 << 14;

struct Program {
    id: ProgramId,
    turn: Turn,
    pages: Vec<Pfn>,
}

struct Host {
    hvr: Hvr,
    buddy: VecBuddy,
    programs: BTreeMap<u32, Program>,
    random: Random,
    moved: u64,
}

impl Host {
    fn new(config: Config, seed: u64) -> Self {
        Self {
            hvr: hvr(config),
            buddy: full_buddy(&x_buddy(), FRAMES, 0),
            programs: BTreeMap::new(),
            random: Random(seed),
            moved: 0,
        }
    }

    fn start(&mut self, task: u32, threads: u32) {
        let arrival = Arrival {
            threads,
            ..Arrival::of(TaskId(task))
        };
        let (id, _) = self.hvr.arrive(&arrival).unwrap();
        let program = Program {
            id,
            turn: Turn::START,
            pages: vec![],
        };
        self.programs.insert(task, program);
    }

    fn stop(&mut self, task: u32) {
        let program = self.programs.remove(&task).unwrap();
        self.hvr.exit(program.id).unwrap();
        for page in program.pages {
            self.buddy.free(page, Order(0)).unwrap();
        }
    }

    /// A frame for a page of a program; and whether it lies in its colours.
    fn frame(&mut self, task: u32, cause: Cause, wish: Option<Color>) -> Option<(Pfn, bool)> {
        let program = self.programs.get_mut(&task).unwrap();
        let request = FrameRequest {
            cause,
            wish,
            ..FrameRequest::fault(TaskId(task), CoreId(0), Vpn(0))
        };
        let random = self.random.next();
        let asked = self
            .hvr
            .prepare(&request, program.id, program.turn, random)
            .unwrap();
        let grant = self.buddy.alloc(&asked).ok()?;
        program.turn.took(x_buddy().color(grant.frame));
        Some((grant.frame, !grant.fallback))
    }

    fn fault(&mut self, task: u32) -> bool {
        let Some((frame, is_own)) = self.frame(task, Cause::Fault, None) else {
            return false;
        };
        self.programs.get_mut(&task).unwrap().pages.push(frame);
        is_own
    }

    /// Touches a page: it moves if it has to.
    fn touch(&mut self, task: u32, page: usize) {
        let program = &self.programs[&task];
        let (id, frame) = (program.id, program.pages[page]);
        let Some(m) = self.hvr.touched(id, x_buddy().color(frame)).unwrap() else {
            return;
        };
        match self.frame(task, Cause::Migration, Some(m.to)) {
            Some((new, true)) => {
                self.buddy.free(frame, Order(0)).unwrap();
                self.programs.get_mut(&task).unwrap().pages[page] = new;
                self.moved += 1;
            }
            Some((new, false)) => {
                self.buddy.free(new, Order(0)).unwrap();
                self.hvr.not_moved();
            }
            None => self.hvr.not_moved(),
        }
    }

    fn touch_all(&mut self, task: u32) {
        for page in 0..self.programs[&task].pages.len() {
            self.touch(task, page);
        }
    }

    /// Pages of a program outside its colours.
    fn misplaced(&self, task: u32) -> usize {
        let program = &self.programs[&task];
        let own = self.hvr.program(program.id).unwrap().colors();
        let pages = program.pages.iter();
        pages
            .filter(|p| !own.contains(x_buddy().color(**p)))
            .count()
    }

    /// Pages of each colour.
    fn counts(&self, task: u32) -> Vec<u32> {
        let mut counts = vec![0; 32];
        for page in &self.programs[&task].pages {
            counts[usize::from(x_buddy().color(*page).0)] += 1;
        }
        counts
    }

    fn validate(&self) {
        self.hvr.validate().unwrap();
        self.buddy.validate().unwrap();
        assert_eq!(self.hvr.counters().moves, self.moved);
    }
}

#[test]
fn every_policy_is_served_by_one_allocator_and_hot_pages_follow() {
    let mut host = Host::new(Config::PAPER, 1);
    for task in 1..=4 {
        host.start(task, 1);
        for _ in 0..600 {
            assert!(host.fault(task));
        }
    }
    // Pages came before the later programs did: 1 had all the banks.
    let stale = host.misplaced(1);
    assert!(stale > 300, "{stale}");
    let counts = host.counts(1);
    let id = host.programs[&1].id;
    assert_eq!(host.hvr.estimate(id, &counts).unwrap().pages, stale as u64);
    // Only the first hundred are touched: only these move.
    for page in 0..100 {
        host.touch(1, page);
    }
    assert_eq!(host.misplaced(1), stale - host.moved as usize);
    assert!(host.moved > 30 && host.moved <= 100);
    // An LLCT beside three LLCHs: Curve-VP. All pages are touched, all lie right.
    let classes = [Class::Llch, Class::Llch, Class::Llch, Class::Llct];
    for (task, class) in (1..).zip(classes) {
        let id = host.programs[&task].id;
        host.hvr.declare(id, Some(class)).unwrap();
    }
    for task in 1..=4 {
        host.touch_all(task);
        assert_eq!(host.misplaced(task), 0, "task {task}");
    }
    let regions = |counts: Vec<u32>| -> Vec<u32> {
        (0..8)
            .map(|r| (0..4).map(|s| counts[s * 8 + r]).sum())
            .collect()
    };
    assert_eq!(regions(host.counts(4)), [600, 0, 0, 0, 0, 0, 0, 0]);
    let spread = regions(host.counts(1));
    assert!(
        spread[0] == 0 && spread[1..].iter().all(|n| *n > 50),
        "{spread:?}"
    );
    host.validate();
}

#[test]
fn threads_are_interleaved_over_all_colors() {
    for interleave in [
        piebald_policy::hvr::Interleave::Random,
        piebald_policy::hvr::Interleave::RoundRobin,
    ] {
        let mut host = Host::new(
            Config {
                interleave,
                ..Config::PAPER
            },
            2,
        );
        host.start(1, 8);
        for _ in 0..3200 {
            host.fault(1);
        }
        let counts = host.counts(1);
        // 100 of each; at random within five standard deviations.
        let off = match interleave {
            piebald_policy::hvr::Interleave::Random => 50,
            _ => 0,
        };
        assert!(counts.iter().all(|n| n.abs_diff(100) <= off), "{counts:?}");
        host.validate();
    }
}

/// An LLCT program has 4 of 32 colours at most: 2048 frames here.
#[test]
fn colors_that_are_used_up_are_left_or_bind_or_are_widened() {
    let llct = |mode| {
        let config = Config {
            mode,
            ..Config::PAPER
        };
        let mut host = Host::new(config, 3);
        for (task, class) in [(1, Class::Llct), (2, Class::Llch)] {
            host.start(task, 1);
            let id = host.programs[&task].id;
            host.hvr.declare(id, Some(class)).unwrap();
        }
        for n in 0..2048 {
            assert!(host.fault(1), "page {n}");
        }
        host
    };
    let mut hint = llct(Mode::Hint);
    assert!(!hint.fault(1), "a frame of another colour");
    assert_eq!(hint.programs[&1].pages.len(), 2049);
    assert_eq!(hint.buddy.counters().fallbacks, 1);

    let mut hard = llct(Mode::Hard);
    assert!(!hard.fault(1));
    assert_eq!(hard.programs[&1].pages.len(), 2048);
    let id = hard.programs[&1].id;
    let change = hard.hvr.set_reach(id, Reach::Zone).unwrap();
    assert_eq!(change.programs, 0, "it had all the sub-groups already");
    let change = hard.hvr.set_reach(id, Reach::All).unwrap();
    assert_eq!(change.programs, 1);
    assert!(hard.fault(1));
    // Back again: that page may move, and there is nowhere to go.
    hard.hvr.set_reach(id, Reach::Lot).unwrap();
    hard.touch(1, 2048);
    assert_eq!((hard.misplaced(1), hard.moved), (1, 0));
    hard.validate();
}

#[test]
fn the_kernel_has_every_color() {
    let host = {
        let mut host = Host::new(Config::PAPER, 4);
        host.start(1, 1);
        host.start(2, 1);
        host
    };
    let request = FrameRequest {
        purpose: Purpose::Kernel,
        ..FrameRequest::fault(TaskId(1), CoreId(0), Vpn(0))
    };
    let id = host.programs[&1].id;
    let asked = host.hvr.prepare(&request, id, Turn::START, 0).unwrap();
    assert!(asked.allowed.is_none() && asked.wish.is_none());
}

/// Random days: programs come, go, change class, fault and touch. After each, what is
/// touched lies where the plan says, and no frame is lost.
#[test]
fn random_days_leave_touched_pages_in_their_colors() {
    for (seed, framework) in [
        (1, Framework::Hvr),
        (2, Framework::Curve),
        (3, Framework::Coalescing),
        (4, Framework::Static),
    ] {
        let mut host = Host::new(hvr_kit::with(framework), seed);
        let mut next = 0;
        for _ in 0..400 {
            let tasks: Vec<u32> = host.programs.keys().copied().collect();
            let anyone = match tasks.len() as u64 {
                0 => None,
                n => Some(tasks[host.random.below(n) as usize]),
            };
            match (host.random.below(10), anyone) {
                (0, _) | (_, None) if tasks.len() < 9 => {
                    host.start(next, 1);
                    next += 1;
                }
                (1, Some(task)) => host.stop(task),
                (2 | 3, Some(task)) => {
                    let class = Class::ALL[host.random.below(4) as usize];
                    let id = host.programs[&task].id;
                    host.hvr.declare(id, Some(class)).unwrap();
                }
                (4..=6, Some(task)) => {
                    for _ in 0..20 {
                        host.fault(task);
                    }
                }
                (_, Some(task)) => {
                    host.touch_all(task);
                    assert_eq!(host.misplaced(task), 0);
                }
                _ => {}
            }
        }
        host.validate();
        assert!(host.moved > 100, "{framework:?}: {}", host.moved);
        let tasks: Vec<u32> = host.programs.keys().copied().collect();
        tasks.into_iter().for_each(|task| host.stop(task));
        assert_eq!(host.buddy.free_frames(), FRAMES);
    }
}

type Colors = Registry<Vec<Partition>>;

/// Carries a plan out by partitions: those that HVR coalesces are one partition.
fn carry_out(hvr: &Hvr, registry: &mut Colors) -> BTreeMap<String, rainbow::PartitionId> {
    let mut made = BTreeMap::new();
    for (_, p) in hvr.iter() {
        let name = p.colors().to_string();
        match made.get(&name) {
            Some(id) => assert!(registry.attach(*id).unwrap() > 1),
            None => {
                let asked = Reservation::of(Ask::Exactly(p.colors()));
                made.insert(name, registry.reserve(&asked).unwrap());
            }
        }
    }
    made
}

/// The parts of programs that keep to their lots are equal or apart, so a registry of
/// partitions holds them, and its plan moves what lies outside.
#[test]
fn partitions_and_their_recoloring_plan_can_carry_it_out() {
    let mut hvr = hvr(Config::PAPER);
    for (task, class) in (1..).zip([Class::Llcm, Class::Llch, Class::Llct, Class::Llct]) {
        hvr_kit::arrive(&mut hvr, task, Some(class));
    }
    let slots = vec![Partition::EMPTY; 16];
    let mut registry = Registry::new(slots, 32, rainbow::Config::PAPER).unwrap();
    let made = carry_out(&hvr, &mut registry);
    assert_eq!(made.len(), 4);
    let mcf = made[&hvr_kit::colors(&hvr, hvr.find(TaskId(2)).unwrap())];
    // Two LLCTs more, then two more: six share four sub-groups. All partitions anew, as
    // the host does between two events.
    let frames: Vec<Pfn> = (0..256).map(Pfn).collect();
    for task in 5..=8 {
        hvr_kit::arrive(&mut hvr, task, Some(Class::Llct));
    }
    for id in made.values() {
        while registry.release(*id).is_ok() {}
    }
    let again = carry_out(&hvr, &mut registry);
    assert_eq!(again.len(), 2 + 4);
    registry.validate().unwrap();
    assert!(registry.get(mcf).is_err());
    let own: ColorSet = hvr_kit::colors(&hvr, hvr.find(TaskId(2)).unwrap())
        .parse()
        .unwrap();
    let owner = Owner::Partition(again[&own.to_string()]);
    let mut plan = Plan::new(&registry, owner, vec![0; 32]).unwrap();
    let mut out = vec![rainbow::Move::default(); 256];
    let step = plan.next(&registry, &x_buddy(), &frames, &mut out);
    let outside = frames
        .iter()
        .filter(|f| !own.contains(x_buddy().color(**f)));
    let moves = outside.count();
    let examined = frames.len();
    assert_eq!(step, Ok(Step::Moves { examined, moves }));
    assert!(out[..moves].iter().all(|m| own.contains(m.to)));
}
