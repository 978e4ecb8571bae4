//! What the tests of SRM-buffer share: zones on vectors, and a host with a page cache, a
//! free memory and any replacement policy.

#![allow(dead_code, reason = "each test uses a part")]

pub mod host;
pub mod oracle;

#[allow(unused_imports, reason = "each test uses a part")]
pub use crate::kit::{Random, map_of, plain_map, setting};

use piebald_policy::{
    color_map::ColorMap,
    contract::Mode,
    srm::{
        Answer, Config, FileFault, Limited, Link, List, Sequence, Sets, Slices, Srm, Supply, Taken,
    },
};
use piebald_units::{Color, ColorSet, Pfn};

pub type VecSrm = Srm<Slices<ColorMap, Vec<Link>, Vec<List>, Box<Sets>>>;

pub fn zone(map: ColorMap, frames: u64, origin: u64, config: Config) -> VecSrm {
    Srm::new(Slices::collect(map, frames), frames, Pfn(origin), config).unwrap()
}

pub fn with_threshold(threshold: u32) -> Config {
    Config {
        threshold,
        ..Config::PAPER
    }
}

/// Every colour, a zone that can be refilled.
pub fn more() -> Limited<'static> {
    Limited::default()
}

/// Every colour, nothing to refill from.
pub fn spent() -> Limited<'static> {
    Limited {
        supply: Supply::Spent,
        ..Limited::default()
    }
}

/// Only these colours.
pub fn only(allowed: &ColorSet, mode: Mode) -> Limited<'_> {
    Limited {
        allowed: Some(allowed),
        mode,
        supply: Supply::Spent,
    }
}

/// A block of a file of its own sequence.
pub fn large(srm: &mut VecSrm, file: &mut Sequence, limited: Limited<'_>) -> Answer {
    let process = &mut { Sequence::NONE };
    srm.file_fault(FileFault {
        file,
        process,
        file_blocks: u64::MAX,
        limited,
    })
}

/// A block of a small file.
pub fn small(srm: &mut VecSrm, process: &mut Sequence, limited: Limited<'_>) -> Answer {
    let file = &mut { Sequence::NONE };
    srm.file_fault(FileFault {
        file,
        process,
        file_blocks: 1,
        limited,
    })
}

pub fn frame(answer: Answer) -> Taken {
    match answer {
        Answer::Frame(taken) => taken,
        other => panic!("{other:?} is no frame"),
    }
}

pub fn color(answer: Answer) -> u16 {
    frame(answer).color.0
}

pub fn lengths(srm: &VecSrm) -> Vec<u32> {
    let colors = 0..srm.map().colors() as u16;
    colors.map(|c| srm.standing(Color(c)).pages).collect()
}
