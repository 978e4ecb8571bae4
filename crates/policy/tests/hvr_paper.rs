//! The paper's table, figures and worked examples, and traces of arrivals and departures
//! step by step.

use crate::hvr_kit;
use std::collections::BTreeSet;

use crate::hvr_kit::{Hvr, arrive, colors, figure_2, hvr, mix_of, parts, window, with, x_buddy};
use piebald_policy::{
    color_map::BitClass,
    hvr::{
        Arrival, BankGroups, Change, Class, Config, FewMiddle, Framework, Mix, Mixed, OtherRegions,
        Policy, ProgramId, Rule, Scheme, SchemeError, Spare, Zone, decide, utility,
    },
};
use piebald_units::{Color, ColorSet, Pfn, TaskId};

const CCF: Class = Class::Ccf;
const LLCM: Class = Class::Llcm;
const LLCH: Class = Class::Llch;
const LLCT: Class = Class::Llct;

/// Table 1: groups of colours, and how many groups of the LLC and of banks these are.
#[test]
fn table_1_divides_cache_and_banks_as_it_says() {
    let map = figure_2();
    for (policy, groups, llc, banks) in [
        (Policy::Shared, 1, 1, 1),
        (Policy::CacheOnly, 8, 8, 1),
        (Policy::BankOnly4, 4, 1, 4),
        (Policy::BankOnly8, 8, 2, 8),
        (Policy::AVp, 4, 4, 4),
        (Policy::BVp, 8, 4, 8),
        (Policy::CVp, 8, 8, 4),
        (Policy::CurveVp, 32, 8, 16),
        (Policy::Random, 1, 1, 1),
    ] {
        let scheme = Scheme::of(&map, policy).unwrap();
        assert_eq!(scheme.cells(), groups, "{policy}");
        // A group's share of the sets and of the banks, by what its colours select.
        let cache = map.bits_of(BitClass::Cache) | map.bits_of(BitClass::Both);
        let bank = map.bits_of(BitClass::Bank) | map.bits_of(BitClass::Both);
        let mut seen = ColorSet::EMPTY;
        for cell in 0..groups {
            let mut own = ColorSet::EMPTY;
            assert!(scheme.colors(&map, 1 << cell, &mut own));
            assert_eq!(own.len(), 128 / groups);
            let distinct = |mask: u16| {
                let all: BTreeSet<u16> = own.iter().map(|c| c.0 & mask).collect();
                all.len() as u32
            };
            assert_eq!(distinct(cache), 32 / llc, "{policy}");
            assert_eq!(distinct(bank), 16 / banks, "{policy}");
            own.iter().for_each(|c| assert!(seen.insert(c)));
        }
        assert_eq!(seen.len(), 128);
    }
}

/// Table 1, by the bits of an address.
#[test]
fn policies_take_the_bits_that_the_table_names() {
    let map = figure_2();
    let bits = |policy| {
        let scheme = Scheme::of(&map, policy).unwrap();
        let key = scheme.key().iter();
        let mut bits: Vec<u32> = key.map(|b| map.mask(*b).trailing_zeros() + 12).collect();
        bits.sort_unstable();
        bits
    };
    assert_eq!(bits(Policy::CacheOnly), [16, 17, 18]);
    assert_eq!(bits(Policy::BankOnly4), [21, 22]);
    assert_eq!(bits(Policy::BankOnly8), [15, 21, 22]);
    assert_eq!(bits(Policy::AVp), [14, 15]);
    assert_eq!(bits(Policy::BVp), [14, 15, 22]);
    assert_eq!(bits(Policy::CVp), [14, 15, 16]);
    assert_eq!(bits(Policy::CurveVp), [14, 15, 16, 21, 22]);
}

/// The order in which a map names its bits does not matter, only where they are.
#[test]
fn schemes_do_not_depend_on_the_order_of_bits() {
    let mixed = hvr_kit::map_from("B 22\nC 16\nO 15\nB 21\nO 14\n");
    for policy in Policy::ALL {
        let (a, b) = (Scheme::of(&x_buddy(), policy), Scheme::of(&mixed, policy));
        let (a, b) = (a.unwrap(), b.unwrap());
        for frame in (0..1 << 11).map(Pfn) {
            let plain = a.cell(x_buddy().color(frame));
            assert_eq!(plain, b.cell(mixed.color(frame)), "{policy} {frame}");
        }
    }
}

/// Section 6: "all 32 colors (00000~11111)"; eight with the same bits 14 and 15 form an
/// A-VP color group, four of them a C-VP group.
#[test]
fn x_buddys_groups_are_the_papers() {
    let map = x_buddy();
    let group = |policy, cell: u64| {
        let mut set = ColorSet::EMPTY;
        let scheme = Scheme::of(&map, policy).unwrap();
        scheme.colors(&map, 1 << cell, &mut set);
        set.to_string()
    };
    // 00100 and 01000 are of one A-VP colour.
    assert_eq!(group(Policy::AVp, 0), "0,4,8,12,16,20,24,28");
    assert_eq!(group(Policy::CVp, 0), "0,8,16,24");
    assert_eq!(group(Policy::CVp, 7), "7,15,23,31");
    assert_eq!(group(Policy::BankOnly4, 1), "8-15");
}

/// Pseudocode 1: the page of a colour in a block. The colours of a block lie where it
/// says.
#[test]
fn pseudocode_1_finds_the_page_of_a_color() {
    let map = x_buddy();
    let per_block = [1u64, 1, 1, 2, 4, 8, 8, 8, 8, 8, 16];
    for (order, n) in per_block.into_iter().enumerate() {
        for base in (0..1u64 << 12).step_by(1 << order) {
            let block_color = u64::from(map.color(Pfn(base)).0);
            for target in block_color..block_color + n {
                let target = match order {
                    // Bit 21 is within the block, bits 16 and below are; 22 is not.
                    10 => block_color & 16 | (target - block_color),
                    _ => target,
                };
                let index = match order {
                    10 if target & 8 != 0 => (target - (block_color & 16) - 8) * 4 + (1 << 9),
                    10 => (target - (block_color & 16)) * 4,
                    _ => (target - target / n * n) * 4,
                };
                let index = if order < 3 { 0 } else { index };
                assert_eq!(u64::from(map.color(Pfn(base + index)).0), target);
            }
        }
    }
}

#[test]
fn maps_that_lack_bits_are_refused_by_name() {
    let none = hvr_kit::map_from("C 16\nC 17\n");
    let lacks = |policy| Scheme::of(&none, policy).map_err(|e| e.to_string());
    assert!(lacks(Policy::CacheOnly).is_ok_and(|s| s.cells() == 4));
    // Without B-bits the regions are all there is.
    assert!(lacks(Policy::CurveVp).is_ok_and(|s| s.regions() == 4 && s.cells() == 4));
    assert_eq!(
        lacks(Policy::AVp).unwrap_err(),
        "A-VP: the color map has 0 O-bits (cache and banks); allowed: 1 and more"
    );
    assert_eq!(
        lacks(Policy::BankOnly8).unwrap_err(),
        "bank-only (8): the color map has 0 B-bits (banks only); allowed: 1 and more"
    );
    let banks = hvr_kit::map_from("B 21\nB 22\n");
    assert_eq!(
        Scheme::of(&banks, Policy::CurveVp),
        Err(SchemeError {
            policy: Policy::CurveVp,
            lacks: BitClass::Unknown
        })
    );
}

fn tree(framework: Framework, mix: [u32; 4]) -> (Policy, Rule) {
    let [llct, llch, llcm, ccf] = mix;
    let mix = Mix {
        classes: [ccf, llcm, llch, llct],
        ..Mix::default()
    };
    let decision = decide(&mix, &with(framework));
    (decision.policy, decision.rule)
}

/// Section 5.1, rule by rule: 4-programmed and 8-programmed workloads.
#[test]
fn rules_1_to_3_in_the_order_of_their_priority() {
    let baseline = |mix| tree(Framework::Coalescing, mix);
    // LLCT, LLCH, LLCM, CCF
    assert_eq!(baseline([1, 1, 1, 1]), (Policy::AVp, Rule::One));
    assert_eq!(baseline([1, 0, 0, 1]), (Policy::AVp, Rule::One));
    assert_eq!(baseline([2, 2, 2, 2]), (Policy::CVp, Rule::One));
    assert_eq!(baseline([0, 2, 2, 0]), (Policy::BankOnly4, Rule::Two));
    assert_eq!(baseline([0, 1, 3, 4]), (Policy::BankOnly4, Rule::Two));
    assert_eq!(baseline([0, 0, 4, 4]), (Policy::BVp, Rule::Three));
    assert_eq!(baseline([0, 0, 8, 0]), (Policy::BVp, Rule::Three));
    assert_eq!(baseline([0, 0, 3, 1]), (Policy::BankOnly4, Rule::Modest));
    assert_eq!(baseline([0, 0, 4, 0]), (Policy::BankOnly4, Rule::Modest));
    assert_eq!(baseline([0, 0, 0, 4]), (Policy::BankOnly4, Rule::Start));
    assert_eq!(baseline([4, 0, 0, 0]), (Policy::BankOnly4, Rule::Start));
    assert_eq!(baseline([0, 0, 0, 0]), (Policy::BankOnly4, Rule::Start));
    // "The final HVR framework": Curve-VP where LLCT programs are.
    let hvr = |mix| tree(Framework::Hvr, mix);
    assert_eq!(hvr([1, 1, 1, 1]), (Policy::CurveVp, Rule::One));
    assert_eq!(hvr([2, 2, 2, 2]), (Policy::CurveVp, Rule::One));
    assert_eq!(hvr([0, 2, 2, 0]), (Policy::BankOnly4, Rule::Two));
    // Section 7.3: "A-VP for 4-programmed workloads and B/C-VP for 8-programmed".
    let svp = |mix| tree(Framework::Static, mix);
    assert_eq!(svp([0, 4, 0, 0]), (Policy::AVp, Rule::Fixed));
    assert_eq!(svp([0, 4, 4, 0]), (Policy::BVp, Rule::Fixed));
    assert_eq!(svp([1, 4, 3, 0]), (Policy::CVp, Rule::Fixed));
    let other = Config {
        bank_groups: BankGroups::ByPrograms,
        few_middle: FewMiddle::AVp,
        ..Config::PAPER
    };
    for (classes, policy) in [
        ([0, 0, 8, 0], Policy::BankOnly8),
        ([1, 3, 0, 0], Policy::AVp),
    ] {
        let mix = Mix {
            classes,
            ..Mix::default()
        };
        assert_eq!(decide(&mix, &other).policy, policy);
    }
}

/// Section 8: "8-programmed", "more than half of the applications are CCF".
#[test]
fn ccf_programs_are_kept_apart_when_they_dominate() {
    let apart = |framework, mix: [u32; 4]| {
        let [llct, llch, llcm, ccf] = mix;
        let mix = Mix {
            classes: [ccf, llcm, llch, llct],
            ..Mix::default()
        };
        let decision = decide(&mix, &with(framework));
        (decision.segregate, decision.policy)
    };
    let baseline = Framework::Coalescing;
    assert_eq!(apart(baseline, [1, 1, 1, 5]), (true, Policy::CVp));
    assert_eq!(apart(baseline, [1, 1, 2, 4]), (false, Policy::CVp));
    assert_eq!(apart(baseline, [0, 2, 1, 5]), (true, Policy::CVp));
    assert_eq!(apart(baseline, [0, 0, 3, 5]), (true, Policy::CVp));
    assert_eq!(
        apart(baseline, [0, 1, 1, 5]),
        (false, Policy::BankOnly4),
        "seven"
    );
    assert_eq!(
        apart(baseline, [0, 0, 0, 8]),
        (false, Policy::BankOnly4),
        "alone"
    );
    assert_eq!(apart(Framework::Hvr, [0, 2, 1, 5]), (true, Policy::CurveVp));
    assert_eq!(
        apart(Framework::Curve, [1, 1, 1, 5]),
        (true, Policy::CurveVp)
    );
}

/// Figures 3, 4 and 14 give every workload one policy after another: what Table 1 says.
#[test]
fn a_fixed_policy_gives_each_program_its_quota_and_asks_no_rule() {
    let regions_and_banks = |policy, programs: usize| {
        let mut hvr = hvr(with(Framework::Fixed(policy)));
        let classes = [LLCT, LLCH, LLCM, CCF, LLCT, LLCH, LLCM, CCF];
        let ids = mix_of(&mut hvr, &classes[..programs]);
        assert_eq!(hvr.decision().policy, policy);
        let own = ids.iter().map(|id| hvr.program(*id).unwrap().colors());
        let sizes: BTreeSet<u32> = own.clone().map(ColorSet::len).collect();
        let all: u32 = own.map(ColorSet::len).sum();
        (sizes, all)
    };
    for (policy, programs, each) in [
        (Policy::BankOnly4, 4, 8),
        (Policy::BankOnly8, 8, 4),
        (Policy::AVp, 4, 8),
        (Policy::BVp, 8, 4),
        (Policy::CVp, 8, 4),
        (Policy::CacheOnly, 2, 16),
    ] {
        let parts = regions_and_banks(policy, programs);
        assert_eq!(parts, (BTreeSet::from([each]), 32), "{policy}");
    }
    let shared = regions_and_banks(Policy::Shared, 8);
    assert_eq!(shared, (BTreeSet::from([32]), 8 * 32));
    // A fixed policy needs the bits of that one only.
    let lacks = hvr_kit::map_from("B 21\nB 22\n");
    let config = with(Framework::Fixed(Policy::BankOnly4));
    let slots = vec![piebald_policy::hvr::Program::EMPTY; 1];
    assert!(piebald_policy::hvr::Manager::new(lacks, slots, config).is_ok());
}

/// Section 7.3.1, workload 22': "HVR maps all LLCT applications to 1/8 cache, leaving the
/// remaining 7/8 cache shared by the LLCM and LLCH applications".
#[test]
fn workload_22_gives_one_eighth_to_five_llct() {
    let workload = [LLCT, LLCT, LLCT, LLCT, LLCT, LLCH, LLCH, LLCM];
    for framework in [Framework::Coalescing, Framework::Hvr, Framework::Curve] {
        let mut hvr = hvr(with(framework));
        let ids = mix_of(&mut hvr, &workload);
        for id in &ids[..5] {
            assert_eq!(parts(&hvr, *id).0, [0], "{framework:?}");
        }
        for id in &ids[5..] {
            assert_eq!(parts(&hvr, *id).0, [1, 2, 3, 4, 5, 6, 7], "{framework:?}");
        }
    }
    // The static partition gives each of the eight an eighth.
    let mut svp = hvr(with(Framework::Static));
    let ids = mix_of(&mut svp, &workload);
    let regions: Vec<_> = ids.iter().map(|id| parts(&svp, *id).0).collect();
    assert_eq!(regions, (0..8).map(|r| vec![r]).collect::<Vec<_>>());
}

/// Figure 11: region 000 in bank group A for LLCT, 001 to 111 for the others; sub-groups
/// by bits 22 and 21.
#[test]
fn figure_11_isolates_banks_in_both_parts_of_the_cache() {
    let mut hvr = hvr(with(Framework::Curve));
    let ids = mix_of(&mut hvr, &[LLCT, LLCT, LLCH, LLCM, LLCH, CCF]);
    let all: Vec<_> = ids.iter().map(|id| parts(&hvr, *id)).collect();
    let rest: Vec<u16> = (1..8).collect();
    assert_eq!(all[0], (vec![0], vec![0, 2]), "a spare sub-group");
    assert_eq!(all[1], (vec![0], vec![1, 3]));
    for (program, sub_group) in all[2..].iter().zip(0..) {
        assert_eq!(*program, (rest.clone(), vec![sub_group]));
    }
    // "More LLCT applications are mapped into Bank Group A": five share four sub-groups.
    let more: Vec<_> = (7..10).map(|t| arrive(&mut hvr, t, Some(LLCT)).0).collect();
    let sub_groups = |hvr: &Hvr, id: ProgramId| parts(hvr, id).1;
    let llct = ids[..2].iter().chain(&more);
    let homes: Vec<_> = llct.map(|id| sub_groups(&hvr, *id)).collect();
    assert_eq!(homes, [[0], [1], [2], [3], [0]]);
    // One leaves: the one that shared stays where it is, now alone.
    hvr.exit(ids[0]).unwrap();
    assert_eq!(sub_groups(&hvr, more[2]), [0]);
    hvr.validate().unwrap();
}

#[test]
fn the_rest_of_bank_group_a_may_be_left_alone() {
    let mut hvr = hvr(Config {
        other_regions: OtherRegions::Left,
        ..with(Framework::Curve)
    });
    let ids = mix_of(&mut hvr, &[LLCT, LLCH]);
    assert_eq!(parts(&hvr, ids[1]).0, [1, 2, 3, 5, 6, 7]);
    let banks = |id| -> BTreeSet<u16> {
        // Bits 14, 15, 21, 22: what a colour says of the bank.
        let colors = hvr.program(id).unwrap().colors().iter();
        colors.map(|c| c.0 & !4).collect()
    };
    assert!(banks(ids[0]).is_disjoint(&banks(ids[1])));
}

#[test]
fn another_region_may_be_the_small_one() {
    let mut hvr = hvr(Config {
        small_region: 5,
        ..Config::PAPER
    });
    let ids = mix_of(&mut hvr, &[LLCT, LLCH]);
    assert_eq!(parts(&hvr, ids[0]).0, [5]);
    assert_eq!(parts(&hvr, ids[1]).0, [0, 1, 2, 3, 4, 6, 7]);
}

/// What a change came to, in short.
fn short(change: Change) -> (Policy, Rule, u32) {
    (change.policy, change.rule, change.programs)
}

/// Sections 5.2 and 5.4, a day with HVR: who comes and goes, what is decided, and whose
/// colours change.
#[test]
fn a_trace_of_arrivals_and_departures() {
    let mut hvr = hvr(Config::PAPER);
    assert_eq!(hvr.decision().policy, Policy::BankOnly4, "at boot");
    // A program of unknown kind has everything.
    let (bzip2, c) = arrive(&mut hvr, 1, None);
    assert_eq!(short(c), (Policy::BankOnly4, Rule::Start, 1));
    assert_eq!(colors(&hvr, bzip2), "0-31");
    // A second one takes two of the four bank groups.
    let (mcf, c) = arrive(&mut hvr, 2, None);
    assert_eq!(short(c), (Policy::BankOnly4, Rule::Start, 2));
    assert_eq!(colors(&hvr, bzip2), "0-7,16-23");
    assert_eq!(colors(&hvr, mcf), "8-15,24-31");
    // mcf is LLCH: rule 2, and nothing moves.
    let c = hvr.declare(mcf, Some(LLCH)).unwrap();
    assert_eq!(short(c), (Policy::BankOnly4, Rule::Two, 0));
    // bzip2 is LLCM: still rule 2.
    let c = hvr.declare(bzip2, Some(LLCM)).unwrap();
    assert_eq!(short(c), (Policy::BankOnly4, Rule::Two, 0));
    // libquantum comes, unknown: it takes a bank group that was lent; nobody else moves.
    let (libquantum, c) = arrive(&mut hvr, 3, None);
    assert_eq!(short(c), (Policy::BankOnly4, Rule::Two, 2));
    assert_eq!(colors(&hvr, bzip2), "0-7");
    assert_eq!(colors(&hvr, mcf), "8-15,24-31");
    assert_eq!(colors(&hvr, libquantum), "16-23");
    // It is LLCT: rule 1. Sub-groups stay, so that most pages do.
    let c = hvr.declare(libquantum, Some(LLCT)).unwrap();
    assert_eq!(short(c), (Policy::CurveVp, Rule::One, 3));
    assert_eq!(parts(&hvr, libquantum), (vec![0], vec![0, 1, 2, 3]));
    assert_eq!(parts(&hvr, bzip2), ((1..8).collect(), vec![0, 2]));
    assert_eq!(parts(&hvr, mcf), ((1..8).collect(), vec![1, 3]));
    // Under Curve-VP a new program begins in region 000.
    let (hmmer, c) = arrive(&mut hvr, 4, None);
    assert_eq!(short(c), (Policy::CurveVp, Rule::One, 2));
    assert_eq!(parts(&hvr, hmmer), (vec![0], vec![0, 3]));
    assert_eq!(parts(&hvr, libquantum), (vec![0], vec![1, 2]));
    // It is CCF: it shares the large part.
    let c = hvr.declare(hmmer, Some(CCF)).unwrap();
    assert_eq!(short(c), (Policy::CurveVp, Rule::One, 3));
    assert_eq!(parts(&hvr, hmmer).0, (1..8).collect::<Vec<_>>());
    assert_eq!(parts(&hvr, libquantum), (vec![0], vec![0, 1, 2, 3]));
    // The LLCT ends: bank-only again, each in the banks that it had.
    let before: Vec<_> = [bzip2, mcf, hmmer].map(|id| parts(&hvr, id).1).to_vec();
    let c = hvr.exit(libquantum).unwrap();
    assert_eq!(short(c), (Policy::BankOnly4, Rule::Two, 3));
    let after: Vec<_> = [bzip2, mcf, hmmer].map(|id| parts(&hvr, id).1).to_vec();
    for (before, after) in before.iter().zip(&after) {
        assert!(
            after.iter().any(|s| before.contains(s)),
            "{before:?} {after:?}"
        );
    }
    // mcf ends: LLCM and CCF are left.
    let c = hvr.exit(mcf).unwrap();
    assert_eq!(short(c).0, Policy::BankOnly4);
    assert_eq!(
        (c.rule, hvr.program(hmmer).unwrap().zone()),
        (Rule::Modest, Zone::Large)
    );
    // bzip2 ends; the last has everything.
    let c = hvr.exit(bzip2).unwrap();
    assert_eq!(short(c), (Policy::BankOnly4, Rule::Start, 1));
    assert_eq!(colors(&hvr, hmmer), "0-31");
    hvr.exit(hmmer).unwrap();
    hvr.validate().unwrap();
    let counters = hvr.counters();
    assert_eq!((counters.arrived, counters.left), (4, 4));
}

/// Section 5.2, the baseline: "several partitioned cache quotas under C-VP can be
/// dynamically coalesced", and a coalesced space partitioned.
#[test]
fn a_trace_of_the_baseline_with_eight_programs() {
    let mut hvr = hvr(with(Framework::Coalescing));
    let ids = mix_of(&mut hvr, &[LLCM, LLCM, LLCM, LLCM, LLCM, CCF, CCF]);
    // Rule 3: seven quotas for LLCMs of which two are spare, one for the CCFs.
    assert_eq!(hvr.decision().rule, Rule::Three);
    let of = |hvr: &Hvr, id: ProgramId| {
        let p = hvr.program(id).unwrap();
        (p.zone(), p.cells())
    };
    let lots: Vec<u64> = ids.iter().map(|id| of(&hvr, *id).1).collect();
    assert_eq!(lots[..5], [1 | 1 << 5, 2 | 1 << 6, 4, 8, 16]);
    assert_eq!(lots[5..], [1 << 7, 1 << 7]);
    // An LLCT comes: C-VP, one cell for it, seven for all others together.
    let (lbm, change) = arrive(&mut hvr, 8, Some(LLCT));
    assert_eq!(short(change), (Policy::CVp, Rule::One, 8));
    assert_eq!(of(&hvr, lbm), (Zone::Small, 1));
    assert!(ids.iter().all(|id| of(&hvr, *id) == (Zone::Large, 0xfe)));
    // An LLCH beside it changes nothing for anyone (rule 5).
    let (mcf, change) = arrive(&mut hvr, 9, Some(LLCH));
    assert_eq!(short(change), (Policy::CVp, Rule::One, 1));
    assert_eq!(of(&hvr, mcf), (Zone::Large, 0xfe));
    // Three CCFs more: five of twelve. Two more of them: seven of fourteen. One: eight.
    for task in 10..15 {
        let (_, change) = arrive(&mut hvr, task, Some(CCF));
        assert_eq!(short(change), (Policy::CVp, Rule::One, 1));
    }
    let (_, change) = arrive(&mut hvr, 15, Some(CCF));
    assert!(hvr.decision().segregate && change.is_new_layout);
    assert_eq!(of(&hvr, mcf), (Zone::Large, 0x7e));
    assert_eq!(of(&hvr, ids[6]), (Zone::Fitting, 0x80));
    assert_eq!(of(&hvr, lbm), (Zone::Small, 1), "stays");
    // The LLCT ends: CCFs still dominate.
    let change = hvr.exit(lbm).unwrap();
    assert_eq!((change.policy, change.rule), (Policy::CVp, Rule::Fitting));
    assert_eq!(of(&hvr, mcf), (Zone::Large, 0x7f));
}

/// Section 7.3.2, sampled point 17: "2 LLCT + 4 LLCH/LLCM applications" under Curve-VP,
/// "isolating all applications at DRAM bank level".
#[test]
fn figure_18_at_point_17_everyone_has_banks_of_its_own() {
    let mut hvr = hvr(Config::PAPER);
    let ids = mix_of(&mut hvr, &[LLCH, LLCT, LLCM, LLCH, LLCT, LLCM]);
    let banks = |id: ProgramId| -> BTreeSet<u16> {
        let colors = hvr.program(id).unwrap().colors().iter();
        colors.map(|c| c.0 & !4).collect()
    };
    let of_zone = |wanted| {
        let zone = |id: &ProgramId| hvr.program(*id).unwrap().zone() == wanted;
        let ids = ids.clone();
        ids.into_iter().filter(zone).collect::<Vec<_>>()
    };
    for zone in [Zone::Small, Zone::Large] {
        let all = of_zone(zone);
        let sum: usize = all.iter().map(|id| banks(*id).len()).sum();
        let union: BTreeSet<u16> = all.iter().flat_map(|id| banks(*id)).collect();
        assert_eq!(sum, union.len(), "{zone:?}");
    }
    assert_eq!(of_zone(Zone::Large).len(), 4);
}

/// Rule 4.
#[test]
fn several_threads_take_all_colors_or_only_their_program_does() {
    let threads = |task, threads| Arrival {
        threads,
        ..Arrival::of(TaskId(task))
    };
    let mut everyone = hvr(Config::PAPER);
    let mcf = arrive(&mut everyone, 1, Some(LLCH)).0;
    let (dedup, change) = everyone.arrive(&threads(2, 8)).unwrap();
    assert_eq!(short(change), (Policy::Random, Rule::Four, 2 - 1));
    assert_eq!(colors(&everyone, dedup), "0-31");
    assert_eq!(colors(&everyone, mcf), "0-31", "had them already");
    // It goes on with one thread.
    let change = everyone.set_threads(dedup, 1).unwrap();
    assert_eq!(short(change), (Policy::BankOnly4, Rule::Two, 2));

    let mut alone = hvr(Config {
        mixed: Mixed::Alone,
        ..Config::PAPER
    });
    let (dedup, change) = alone.arrive(&threads(2, 8)).unwrap();
    assert_eq!(change.rule, Rule::Four, "nobody else");
    let mcf = arrive(&mut alone, 1, Some(LLCH)).0;
    assert_eq!(alone.decision().rule, Rule::Two);
    assert_eq!(
        (colors(&alone, dedup), colors(&alone, mcf)),
        ("0-31".into(), "0-31".into())
    );
    arrive(&mut alone, 3, Some(LLCT));
    assert_eq!(parts(&alone, dedup), ((1..8).collect(), vec![0, 1, 2, 3]));
}

/// Figure 7 and section 4.3 end to end: windows, a class, a plan.
#[test]
fn windows_lead_to_a_class_and_a_class_to_a_plan() {
    let mut hvr = hvr(Config::PAPER);
    let (mcf, _) = arrive(&mut hvr, 1, Some(LLCH));
    let (lbm, _) = arrive(&mut hvr, 2, None);
    for n in 0..3 {
        hvr.hot_pages(lbm, 400).unwrap();
        let change = hvr.window(lbm, &window(2000, 1900)).unwrap();
        assert_eq!(change.policy == Policy::CurveVp, n == 2, "window {n}");
    }
    assert_eq!(hvr.program(lbm).unwrap().class(), Some(LLCT));
    // What the host declares wins, and is withdrawn again.
    hvr.declare(lbm, Some(CCF)).unwrap();
    assert_eq!(hvr.decision().policy, Policy::BankOnly4);
    let change = hvr.declare(lbm, None).unwrap();
    assert_eq!(change.policy, Policy::CurveVp);
    assert_eq!(hvr.counters().classified, 1);
    hvr.exit(mcf).unwrap();
    hvr.validate().unwrap();
}

/// Section 5.3: pages "left on region 000 are migrated lazily when they are accessed
/// again"; section 8: about 3 us each.
#[test]
fn a_page_moves_when_it_is_touched_and_not_before() {
    let mut hvr = hvr(with(Framework::Curve));
    let (gcc, _) = arrive(&mut hvr, 1, None);
    assert_eq!(colors(&hvr, gcc), "0,8,16,24", "begins in region 000");
    let mut pages = [0u32; 32];
    for color in [0, 8, 16, 24] {
        pages[color] = 250;
    }
    assert_eq!(hvr.estimate(gcc, &pages).unwrap().pages, 0);
    hvr.declare(gcc, Some(LLCM)).unwrap();
    let estimate = hvr.estimate(gcc, &pages).unwrap();
    assert_eq!((estimate.pages, estimate.cost.0), (1000, 3_000_000_000));
    // The first 28 that are touched go once round its 28 colours.
    let mut to = BTreeSet::new();
    for n in 0..28 {
        let from = Color([0, 8, 16, 24][n % 4]);
        let m = hvr.touched(gcc, from).unwrap().unwrap();
        assert_eq!(m.from, from);
        assert_eq!(hvr.touched(gcc, m.to).unwrap(), None, "and not again");
        to.insert(m.to.0);
    }
    let own = hvr.program(gcc).unwrap().colors();
    assert_eq!(to, own.iter().map(|c| c.0).collect());
    assert_eq!(hvr.counters().moves, 28);
    hvr.not_moved();
    assert_eq!(hvr.cost(hvr.counters().moves).0, 27 * 3_000_000);
    // An LLCT stays where it is: "no change is needed".
    let (milc, _) = arrive(&mut hvr, 2, None);
    let change = hvr.declare(milc, Some(LLCT)).unwrap();
    assert_eq!(change.programs, 0);
}

/// A program whose lot does not change is not moved by who comes beside it.
#[test]
fn quotas_without_a_program_are_lent_or_kept() {
    let lots = |spare| {
        let mut hvr = hvr(Config {
            spare,
            ..with(Framework::Static)
        });
        let mut lots = vec![];
        let mut ids = vec![];
        for task in 1..=4 {
            ids.push(arrive(&mut hvr, task, None).0);
            let all = ids.iter().map(|id| hvr.program(*id).unwrap().lots());
            lots.push(all.collect::<Vec<u64>>());
        }
        lots
    };
    let lent: [&[u64]; 4] = [&[15], &[5, 10], &[1, 10, 4], &[1, 2, 4, 8]];
    assert_eq!(lots(Spare::Lent), lent.map(<[u64]>::to_vec));
    let kept: [&[u64]; 4] = [&[1], &[1, 2], &[1, 2, 4], &[1, 2, 4, 8]];
    assert_eq!(lots(Spare::Kept), kept.map(<[u64]>::to_vec));
}

/// Reference 28, by hand: a program whose misses fall only with three more groups.
#[test]
fn utility_looks_ahead() {
    let flat: &[u64] = &[900, 899, 898, 897, 896, 895, 894, 893];
    let knee: &[u64] = &[1000, 1000, 1000, 100, 100, 100, 100, 100];
    let steep: &[u64] = &[500, 400, 350, 340, 340, 340, 340, 340];
    let mut shares = [0; 3];
    utility::divide(&[flat, knee, steep], 8, &mut shares).unwrap();
    // knee: 300 per group for three; steep: 100, then 50; and all is given away.
    assert_eq!(shares, [1, 4, 3]);
    assert_eq!(utility::cells(&shares, 0), 0b1);
    assert_eq!(utility::cells(&shares, 1), 0b1_1110);
    assert_eq!(utility::cells(&shares, 2), 0b1110_0000);
    assert_eq!(utility::cells(&shares, 3), 0);
    // Nobody profits: in turn.
    utility::divide(&[&[7; 8], &[9; 8], &[9; 8]], 8, &mut shares).unwrap();
    assert_eq!(shares, [3, 3, 2]);
    let error = utility::divide(&[flat, &knee[..7], steep], 8, &mut shares).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the curve of program 1 has 7 values; allowed: 8 and more"
    );
    let error = utility::divide(&[flat; 3], 2, &mut shares).unwrap_err();
    assert_eq!(error.to_string(), "programs = 3; allowed: 1 to 2 groups");
    let error = utility::divide(&[flat; 3], 8, &mut shares[..2]).unwrap_err();
    assert_eq!(error.to_string(), "shares or counts = 2; allowed: 3");
}

#[test]
fn utility_steps_by_counters() {
    let mut shares = [4, 1, 3];
    let step = |misses: [u64; 3], shares: &mut [u32]| utility::step(&misses, 500, shares).unwrap();
    assert_eq!(step([10, 900, 20], &mut shares), Some((0, 1)));
    assert_eq!(shares, [3, 2, 3]);
    // Within the margin of 5 %.
    assert_eq!(step([100, 105, 104], &mut shares), None);
    assert_eq!(step([100, 106, 104], &mut shares), Some((0, 1)));
    assert_eq!(shares, [2, 3, 3]);
    // One that has a single group gives nothing, however few misses it has.
    let mut shares = [1, 3, 4];
    assert_eq!(step([0, 50, 90], &mut shares), Some((1, 2)));
    assert_eq!(step([u64::MAX, 0, 0], &mut [1, 1, 1]), None);
    assert_eq!(utility::step(&[], 0, &mut []), Ok(None));
    assert!(utility::step(&[1], 0, &mut []).is_err());
}
