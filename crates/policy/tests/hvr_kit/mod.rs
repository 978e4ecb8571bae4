//! What the tests of HVR share: the paper's machine, and managers on vectors.

#![allow(dead_code, reason = "each test uses a part")]

pub mod oracle;

#[allow(unused_imports, reason = "each test uses a part")]
pub use crate::kit::{Random, VecBuddy, full_buddy, map_of, setting};

use piebald_policy::{
    color_map::ColorMap,
    hvr::{
        Arrival, Change, Class, Config, Distribution, Framework, Manager, Program, ProgramId,
        Window,
    },
};
use piebald_units::TaskId;

pub type Hvr = Manager<ColorMap, Vec<Program>>;

pub fn map_from(text: &str) -> ColorMap {
    ColorMap::from_text(text).unwrap().map
}

/// x-Buddy's 32 colours: bits 14 and 15, 16, 21 and 22 of an address (section 6).
pub fn x_buddy() -> ColorMap {
    map_from("O 14\nO 15\nC 16\nB 21\nB 22\n")
}

/// All bits that Figure 2 names: cache-only partitioning needs two more.
pub fn figure_2() -> ColorMap {
    map_from("O 14\nO 15\nC 16\nC 17\nC 18\nB 21\nB 22\n")
}

pub fn hvr(config: Config) -> Hvr {
    Manager::new(x_buddy(), vec![Program::EMPTY; 64], config).unwrap()
}

pub fn with(framework: Framework) -> Config {
    Config {
        framework,
        ..Config::PAPER
    }
}

/// A program of a class, or of none yet; the task is its number.
pub fn arrive(hvr: &mut Hvr, task: u32, class: Option<Class>) -> (ProgramId, Change) {
    let arrival = Arrival {
        class,
        ..Arrival::of(TaskId(task))
    };
    let done = hvr.arrive(&arrival).unwrap();
    hvr.validate().unwrap();
    done
}

/// A mix of programs, in the order of their classes as given.
pub fn mix_of(hvr: &mut Hvr, classes: &[Class]) -> Vec<ProgramId> {
    let all = (1..).zip(classes);
    all.map(|(task, class)| arrive(hvr, task, Some(*class)).0)
        .collect()
}

pub fn colors(hvr: &Hvr, id: ProgramId) -> String {
    hvr.program(id).unwrap().colors().to_string()
}

/// Cache regions 000 to 111 (bits 16, 15, 14) that a program has, and its sub-groups
/// (bits 22, 21), by the colours of x-Buddy.
pub fn parts(hvr: &Hvr, id: ProgramId) -> (Vec<u16>, Vec<u16>) {
    let set = |shift: u16, mask: u16| {
        let colors = hvr.program(id).unwrap().colors().iter();
        let mut all: Vec<u16> = colors.map(|c| c.0 >> shift & mask).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (regions, sub_groups) = (set(0, 7), set(3, 3));
    let all = hvr.program(id).unwrap().colors().len() as usize;
    assert_eq!(regions.len() * sub_groups.len(), all, "no rectangle");
    (regions, sub_groups)
}

/// A window with so many pages of middling use and this re-use time.
pub fn window(pages: u32, reuse_centi: u32) -> Window {
    Window {
        distribution: Distribution {
            pages: [0, 0, pages, 0, 0],
        },
        reuse_centi: Some(reuse_centi),
    }
}
