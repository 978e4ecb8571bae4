//! Tests of regions: what they cost and what they refuse.

use piebald_hw::presets;
use piebald_units::{
    FileId, VirtAddr,
    op::{Access, Backing, SysOp},
};
use piebald_workload::{Builtin, record};

use super::{
    entered::{Behind, Mapped},
    *,
};

fn map(addr: u64, len: u64) -> SysOp {
    SysOp::Map {
        addr: VirtAddr(addr),
        len,
        backing: Backing::Anon,
        access: Access::default(),
        shared: false,
    }
}

fn recording(text: &str, refs: u64) -> Recording {
    let builtin = Builtin::parse(text).expect("a built-in");
    record(&builtin, 1, refs).expect("recorded")
}

#[test]
fn a_hole_in_a_mapping_holds_nothing() {
    let mut mapped = Mapped::default();
    mapped.apply(&map(0x1000, 0x4000));
    mapped.apply(&SysOp::Unmap {
        addr: VirtAddr(0x2000),
        len: 1,
    });
    mapped.settle();
    let held = [0x0, 0x1000, 0x1fff, 0x2000, 0x2fff, 0x3000, 0x4fff, 0x5000]
        .map(|a| mapped.behind(VirtAddr(a)).is_some());
    assert_eq!(held, [false, true, true, false, false, true, true, false]);
}

#[test]
fn memory_is_its_own_if_it_may_be_written_and_is_no_file() {
    let mut mapped = Mapped::default();
    let map = |addr, backing, write| SysOp::Map {
        addr: VirtAddr(addr),
        len: 0x1000,
        backing,
        access: Access { write, exec: false },
        shared: false,
    };
    let file = Backing::File {
        file: FileId(1),
        offset: 0,
    };
    mapped.apply(&map(0x1000, Backing::Anon, true));
    mapped.apply(&map(0x2000, Backing::Anon, false));
    mapped.apply(&map(0x3000, file, true));
    mapped.apply(&SysOp::Remap {
        from: VirtAddr(0x1000),
        old_len: 0x1000,
        to: VirtAddr(0x8000),
        new_len: 0x2000,
    });
    mapped.settle();
    let behind = [0x1000, 0x2000, 0x3000, 0x9000].map(|a| mapped.behind(VirtAddr(a)));
    let (own, other) = (Some(Behind::Own), Some(Behind::Other));
    assert_eq!(behind, [None, other, other, own]);
}

#[test]
fn regions_of_a_steady_program_stand_for_it() {
    let recording = recording("scan:1MiB", 2_000_000);
    let plan = plan(
        &recording,
        200_000,
        Span::default(),
        &RegionOptions::default(),
    )
    .expect("a plan");
    let weights: f64 = plan.regions.regions.iter().map(|r| r.weight).sum();
    assert!((weights - 1.0).abs() < 1e-9);
    let machine = presets::load("x5355").expect("a preset");
    let check = check(&recording, &plan, &machine).expect("runs");
    assert!(
        check.whole.cpi > 0.1 && check.whole.refs > 1_000_000,
        "{check:?}"
    );
    assert!(check.cpi_error.abs() < 0.1, "{check:?}");
    assert!(check.simulated_share < 1.0, "{check:?}");
}

#[test]
fn a_budget_cuts_the_part_and_one_below_an_interval_is_refused() {
    let recording = recording("scan:1MiB", 3_000_000);
    let options = RegionOptions::default();
    let all = plan(&recording, 100_000, Span::default(), &options).expect("a plan");
    let first = Span {
        refs: Some(1),
        from: 0,
    };
    let part = plan(&recording, 100_000, first, &options).expect("a plan");
    assert!(part.instrs < all.instrs, "{} {}", part.instrs, all.instrs);
    let error = plan(&recording, 1 << 40, Span::default(), &options).expect_err("too short");
    assert!(
        error.to_string().contains("less than one interval"),
        "{error}"
    );
}
