//! What can be wrong with machines, parameters, programs and hosts.

use crate::hvr_kit;
use crate::hvr_kit::{Hvr, arrive, colors, hvr, window, x_buddy};
use piebald_policy::{
    color_map::ColorMap,
    contract::FrameRequest,
    hvr::{
        Arrival, Class, Config, ConfigError, Framework, Gone, MAX_PROGRAMS, Manager, MonitorConfig,
        OtherRegions, PageRecord, Pass, Policy, Program, Reach, Refusal, Sampler, Turn, Window,
    },
};
use piebald_units::{Color, CoreId, Picos, TaskId, Vpn};

fn refused(map: &str, slots: usize, config: Config) -> String {
    let slots = vec![Program::EMPTY; slots];
    let refused = Manager::new(hvr_kit::map_from(map), slots, config);
    refused.expect_err("a manager that cannot be").to_string()
}

const X_BUDDY: &str = "O 14\nO 15\nC 16\nB 21\nB 22\n";

#[test]
fn managers_that_cannot_be_are_refused_by_name() {
    assert_eq!(
        refused(X_BUDDY, 0, Config::PAPER),
        "programs lent: 0; allowed: 1 to 4096"
    );
    assert_eq!(
        refused(X_BUDDY, MAX_PROGRAMS + 1, Config::PAPER),
        "programs lent: 4097; allowed: 1 to 4096"
    );
    let config = Config {
        few: 0,
        ..Config::PAPER
    };
    assert_eq!(
        refused(X_BUDDY, 4, config),
        "few = 0; allowed: 1 to 4294967295"
    );
    let config = Config {
        segregate_from: 1,
        ..Config::PAPER
    };
    assert_eq!(
        refused(X_BUDDY, 4, config),
        "segregate_from = 1; allowed: 2 to 4294967295"
    );
    let config = Config {
        monitor: MonitorConfig {
            averaged: 0,
            ..MonitorConfig::PAPER
        },
        ..Config::PAPER
    };
    assert_eq!(refused(X_BUDDY, 4, config), "averaged = 0; allowed: 1 to 8");
    // A framework asks for the bits of its policies only.
    let no_o_bits = "C 16\nC 17\nC 18\nB 21\n";
    assert_eq!(
        refused(no_o_bits, 4, Config::PAPER),
        "A-VP: the color map has 0 O-bits (cache and banks); allowed: 1 and more"
    );
    let slots = vec![Program::EMPTY; 4];
    let curve = hvr_kit::with(Framework::Curve);
    let map = hvr_kit::map_from(no_o_bits);
    let mut hvr = Manager::new(map, slots, curve).unwrap();
    let (id, _) = hvr.arrive(&Arrival::of(TaskId(1))).unwrap();
    // Regions 0 to 7 by bits 16 to 18, sub-groups by bit 21.
    assert_eq!(hvr.program(id).unwrap().colors().to_string(), "0,8");
}

#[test]
fn a_machine_with_the_fewest_bits_works() {
    let map = hvr_kit::map_from("O 14\nB 21\nC 16\n");
    for framework in [
        Framework::Static,
        Framework::Coalescing,
        Framework::Curve,
        Framework::Hvr,
    ] {
        let config = Config {
            few: 1,
            segregate_from: 2,
            ..hvr_kit::with(framework)
        };
        let mut hvr = Manager::new(map.clone(), vec![Program::EMPTY; 32], config).unwrap();
        for task in 0..32 {
            let class = [Class::Ccf, Class::Llct, Class::Ccf, Class::Llcm][task as usize % 4];
            arrive_in(&mut hvr, task, class);
        }
        for id in hvr.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            hvr.exit(id).unwrap();
            hvr.validate().unwrap();
        }
    }
}

/// Two regions: nothing is left to keep CCFs or banks apart with.
#[test]
fn parts_that_would_leave_nothing_for_others_are_not_taken() {
    let map = hvr_kit::map_from("C 16\nB 21\n");
    let config = Config {
        other_regions: OtherRegions::Left,
        segregate_from: 2,
        ..hvr_kit::with(Framework::Curve)
    };
    let mut hvr = Manager::new(map, vec![Program::EMPTY; 8], config).unwrap();
    let classes = [Class::Llct, Class::Ccf, Class::Ccf, Class::Llch, Class::Ccf];
    for (task, class) in (0..).zip(classes) {
        arrive_in(&mut hvr, task, class);
    }
    assert!(hvr.decision().segregate);
    // Bit 16 is the colour's lowest: region 0 is even, region 1 is odd.
    let all: Vec<String> = hvr.iter().map(|(_, p)| p.colors().to_string()).collect();
    assert_eq!(all, ["0,2", "1", "3", "1", "3"]);
}

fn arrive_in(hvr: &mut Hvr, task: u32, class: Class) {
    arrive(hvr, task, Some(class));
}

#[test]
fn refused_programs_change_nothing() {
    let mut hvr = Manager::new(x_buddy(), vec![Program::EMPTY; 2], Config::PAPER).unwrap();
    let no_threads = Arrival {
        threads: 0,
        ..Arrival::of(TaskId(1))
    };
    assert_eq!(hvr.arrive(&no_threads), Err(Refusal::NoThreads));
    let (id, _) = hvr.arrive(&Arrival::of(TaskId(1))).unwrap();
    assert_eq!(hvr.arrive(&Arrival::of(TaskId(1))), Err(Refusal::Known(id)));
    hvr.arrive(&Arrival::of(TaskId(2))).unwrap();
    let full = hvr.arrive(&Arrival::of(TaskId(3))).unwrap_err();
    assert_eq!(full.to_string(), "all 2 slots for programs are in use");
    assert_eq!(hvr.set_threads(id, 0), Err(Refusal::NoThreads));
    assert_eq!(
        Refusal::NoThreads.to_string(),
        "threads = 0; allowed: 1 and more"
    );
    assert_eq!(
        Refusal::Known(id).to_string(),
        "the task is program 0 already"
    );
    assert_eq!(hvr.mix().programs(), 2);
    hvr.validate().unwrap();
}

/// A program ends while it is being sampled: what comes late is refused, also when its
/// slot has another program.
#[test]
fn a_program_may_end_between_two_passes() {
    let mut hvr = hvr(Config::PAPER);
    let records = vec![PageRecord::UNUSED; 100];
    let mut sampler = Sampler::new(records, MonitorConfig::PAPER).unwrap();
    let (first, _) = arrive(&mut hvr, 1, None);
    sampler.begin(100, 7);
    for page in 0..100 {
        sampler.touched(page);
    }
    assert_eq!(sampler.end_pass(), Pass::Left(199));
    hvr.exit(first).unwrap();
    let (second, _) = arrive(&mut hvr, 1, None);
    assert_ne!(first, second);
    let profile = *hvr.program(second).unwrap().profile();
    let late = Window::default();
    assert_eq!(hvr.window(first, &late), Err(Gone(first)));
    assert_eq!(hvr.hot_pages(first, 7), Err(Gone(first)));
    assert_eq!(hvr.exit(first), Err(Gone(first)));
    assert_eq!(hvr.declare(first, None), Err(Gone(first)));
    assert_eq!(hvr.set_reach(first, Reach::All), Err(Gone(first)));
    assert_eq!(hvr.touched(first, Color(3)), Err(Gone(first)));
    assert_eq!(hvr.estimate(first, &[]), Err(Gone(first)));
    let request = FrameRequest::fault(TaskId(1), CoreId(0), Vpn(0));
    assert!(hvr.prepare(&request, first, Turn::START, 0).is_err());
    assert_eq!(Gone(first).to_string(), "program 0 has left");
    assert_eq!(*hvr.program(second).unwrap().profile(), profile);
    assert!(sampler.window().is_err());
}

#[test]
fn values_at_their_end_stay_there() {
    let config = Config {
        monitor: MonitorConfig {
            step: Picos(u64::MAX),
            max_interval: Picos(u64::MAX),
            ..MonitorConfig::PAPER
        },
        move_cost: Picos(u64::MAX),
        ..Config::PAPER
    };
    let mut hvr = hvr(config);
    let (id, _) = arrive(&mut hvr, 1, None);
    arrive(&mut hvr, 2, None);
    for _ in 0..600 {
        hvr.hot_pages(id, u32::MAX).unwrap();
        hvr.window(id, &window(u32::MAX, u32::MAX)).unwrap();
    }
    let program = hvr.program(id).unwrap();
    assert_eq!(program.class(), Some(Class::Llch));
    assert_eq!(program.profile().interval(&config.monitor), Picos(u64::MAX));
    let estimate = hvr.estimate(id, &[u32::MAX; 5000]).unwrap();
    assert_eq!(estimate.cost, Picos(u64::MAX));
    // Moves that were never told are not taken back below none.
    hvr.not_moved();
    assert_eq!(hvr.counters().moves, 0);
    // Colours that no machine has.
    assert!(hvr.touched(id, Color(u16::MAX)).unwrap().is_some());
}

/// A program that is found to be another in every window moves nothing.
#[test]
fn a_restless_program_does_not_shake_the_others() {
    let config = Config {
        monitor: MonitorConfig {
            averaged: 1,
            ..MonitorConfig::PAPER
        },
        ..Config::PAPER
    };
    let mut hvr = hvr(config);
    let (restless, _) = arrive(&mut hvr, 1, None);
    let (mcf, _) = arrive(&mut hvr, 2, Some(Class::Llch));
    let mut recolored = vec![];
    for n in 0..50 {
        let (hot, reuse) = [(400, 9000), (400, 300)][n % 2];
        hvr.hot_pages(restless, hot).unwrap();
        hvr.window(restless, &window(hot, reuse)).unwrap();
        recolored.push(hvr.counters().recolored);
    }
    assert_eq!(hvr.program(restless).unwrap().class(), Some(Class::Llcm));
    assert!(recolored.iter().all(|n| *n == recolored[0]));
    assert_eq!(hvr.decision().policy, Policy::BankOnly4);
    assert_eq!(colors(&hvr, mcf), "8-15,24-31");
}

/// What the documentation says of memory.
#[test]
fn lent_memory_is_as_small_as_stated() {
    let program = size_of::<Program>();
    assert!((650..=700).contains(&program), "{program}");
    assert_eq!(size_of::<PageRecord>(), 2);
    let manager = size_of::<Manager<&ColorMap, &mut [Program]>>();
    assert!(manager <= 512, "{manager}");
}

#[test]
fn as_many_programs_as_fit_are_dealt_out() {
    let slots = vec![Program::EMPTY; 300];
    let mut hvr = Manager::new(x_buddy(), slots, Config::PAPER).unwrap();
    for task in 0..300 {
        let arrival = Arrival {
            class: Some(Class::ALL[task as usize % 4]),
            ..Arrival::of(TaskId(task))
        };
        hvr.arrive(&arrival).unwrap();
    }
    hvr.validate().unwrap();
    assert_eq!(
        hvr.mix().to_string(),
        "75 LLCT, 75 LLCH, 75 LLCM, 75 CCF, 0 new, 0 threaded"
    );
    // Slots are used again, and the order stays that of arrival.
    let odd: Vec<_> = hvr.iter().filter(|(_, p)| p.task().0 % 2 == 1).collect();
    let odd: Vec<_> = odd.into_iter().map(|(id, _)| id).collect();
    for id in odd {
        hvr.exit(id).unwrap();
    }
    let (_, change) = hvr.arrive(&Arrival::of(TaskId(1000))).unwrap();
    let last = hvr.iter().last().map(|(_, p)| p.task());
    assert_eq!(last, Some(TaskId(1000)));
    assert_eq!(hvr.changed_since(change.stamp + 1).count(), 0);
    hvr.validate().unwrap();
    assert!(matches!(
        Manager::new(x_buddy(), vec![Program::EMPTY; 0], Config::PAPER),
        Err(ConfigError::Slots(0))
    ));
}
