//! The models of Linux's page replacement, step by step.

use piebald_os_model::replace::{Linux26Split, Linux26SplitConfig, MgLru, MgLruConfig};
use piebald_policy::contract::replacement::{
    Fetch, Gone, Insert, PageKind, PageRef, Replacement, State, Touch, Via,
};
use piebald_units::Picos;

const NOW: Picos = Picos(0);
const CALL: Touch = Touch {
    via: Via::Call,
    next_use: None,
};
const MAPPED: Touch = Touch {
    via: Via::Mapping,
    next_use: None,
};

fn file() -> Insert {
    Insert::default()
}

fn anon() -> Insert {
    Insert {
        kind: PageKind::Anon,
        ..Insert::default()
    }
}

fn ahead() -> Insert {
    Insert {
        fetch: Fetch::Readahead,
        ..Insert::default()
    }
}

fn insert(policy: &mut impl Replacement, pages: std::ops::Range<u32>, what: Insert) {
    for page in pages {
        policy.insert(PageRef(page), &what, NOW);
    }
}

fn hit(policy: &mut impl Replacement, page: u32, touch: Touch) {
    policy.hit(PageRef(page), touch, NOW);
}

/// Evicts so many pages and gives their numbers.
fn evict(policy: &mut impl Replacement, pages: usize) -> Vec<u32> {
    let victims = (0..pages)
        .map_while(|_| policy.evict())
        .map(|p| p.0)
        .collect();
    while policy.dropped().is_some() {}
    policy.validate().expect("the policy's books");
    victims
}

fn split(capacity: u32) -> Linux26Split {
    Linux26Split::new(Linux26SplitConfig::new(capacity)).expect("2.6.30")
}

fn mglru(capacity: u32) -> MgLru {
    MgLru::new(MgLruConfig::new(capacity)).expect("mglru")
}

#[test]
fn a_second_read_activates_a_file_page_and_a_third_does_not_move_it() {
    let mut lists = split(100);
    insert(&mut lists, 0..4, file());
    assert_eq!(lists.lengths(), [(0, 0), (0, 4)]);
    hit(&mut lists, 1, CALL);
    assert_eq!(lists.lengths(), [(0, 0), (1, 3)]);
    hit(&mut lists, 1, CALL);
    assert_eq!(lists.lengths(), [(0, 0), (1, 3)]);
    assert_eq!(evict(&mut lists, 3), [0, 2, 3]);
}

#[test]
fn a_page_read_ahead_needs_two_reads_to_become_active() {
    let mut lists = split(100);
    insert(&mut lists, 0..2, ahead());
    hit(&mut lists, 0, CALL);
    assert_eq!(lists.lengths(), [(0, 0), (0, 2)]);
    hit(&mut lists, 0, CALL);
    assert_eq!(lists.lengths(), [(0, 0), (1, 1)]);
}

#[test]
fn at_the_inactive_tail_a_mapped_page_is_saved_and_a_read_one_is_not() {
    let mut lists = split(100);
    insert(&mut lists, 0..4, file());
    hit(&mut lists, 0, MAPPED);
    // Page 0 goes to the active list, page 1 was read once and goes.
    assert_eq!(evict(&mut lists, 1), [1]);
    assert_eq!(lists.lengths(), [(0, 0), (1, 2)]);
}

#[test]
fn active_file_pages_are_deactivated_at_the_rate_at_which_inactive_ones_are_scanned() {
    let mut lists = split(1000);
    insert(&mut lists, 0..1000, file());
    for page in 0..500 {
        hit(&mut lists, page, CALL);
    }
    assert_eq!(lists.lengths()[1], (500, 500));
    // 30 looks are 1/15.7 of the inactive list, 31 are 1/15.1: of the active one that is
    // 31.9 and 33.0 pages, and 32 make a batch.
    evict(&mut lists, 30);
    assert_eq!(lists.lengths()[1], (500, 470));
    evict(&mut lists, 1);
    assert_eq!(lists.lengths()[1], (468, 501));
    // The first that were read twice went first, to the hot end of the inactive list.
    let before: Vec<u32> = (531..1000).chain(0..32).collect();
    let mut order = [PageRef(0); 501];
    assert_eq!(lists.propose(&mut order[..501]), 501);
    assert_eq!(order.map(|p| p.0)[..], before);
}

#[test]
fn anonymous_pages_are_deactivated_only_while_few_are_inactive() {
    let mut lists = split(400);
    insert(&mut lists, 0..100, anon());
    insert(&mut lists, 100..400, file());
    assert_eq!(lists.lengths(), [(100, 0), (0, 300)]);
    evict(&mut lists, 32);
    // Below 1 GiB the lists are to be equally long.
    assert_eq!(lists.lengths(), [(68, 32), (0, 268)]);
    // Two more batches at most: then 36 are active and 64 inactive.
    evict(&mut lists, 200);
    let [(active, inactive), _] = lists.lengths();
    assert!(
        active <= inactive + 32,
        "{active} active, {inactive} inactive"
    );
}

#[test]
fn file_pages_go_first_by_swappiness_unless_they_are_found_used() {
    let anon_share = |file_pages_are_used: bool| {
        let mut lists = split(2000);
        let swapped_in = Insert {
            kind: PageKind::Anon,
            ..ahead()
        };
        insert(&mut lists, 0..1000, swapped_in);
        insert(&mut lists, 1000..2000, ahead());
        if file_pages_are_used {
            (1000..2000).for_each(|page| hit(&mut lists, page, MAPPED));
        }
        let victims = evict(&mut lists, 300);
        victims.iter().filter(|page| **page < 1000).count()
    };
    // 61 : 141 in the beginning; what is looked at in vain gains weight.
    assert!(
        (1..=92).contains(&anon_share(false)),
        "{}",
        anon_share(false)
    );
    assert!(anon_share(true) > 250, "{}", anon_share(true));
}

#[test]
fn generations_let_file_pages_read_once_pass_in_their_order() {
    let mut lru = mglru(64);
    insert(&mut lru, 0..64, file());
    assert_eq!(evict(&mut lru, 10), (0..10).collect::<Vec<_>>());
    // The oldest generation was empty and given up: now pages enter the oldest.
    insert(&mut lru, 100..105, file());
    assert_eq!(
        evict(&mut lru, 59),
        (10..64).chain(100..105).collect::<Vec<_>>()
    );
}

#[test]
fn a_page_used_through_a_mapping_goes_to_the_youngest_generation() {
    let mut lru = mglru(64);
    insert(&mut lru, 0..64, file());
    hit(&mut lru, 3, MAPPED);
    assert_eq!(evict(&mut lru, 4), [0, 1, 2, 4]);
    assert_eq!(lru.effort().moved, 1);
    assert_eq!(evict(&mut lru, 60).last(), Some(&3));
}

#[test]
fn a_tier_is_protected_once_its_pages_refault_more_than_those_used_once() {
    let mut lru = mglru(1000);
    insert(&mut lru, 0..600, file());
    (0..600).for_each(|page| hit(&mut lru, page, CALL));
    // Pages used twice are evicted and return; pages used once never did.
    for page in evict(&mut lru, 600).into_iter().map(PageRef) {
        assert_eq!(lru.state(page), State::Ghost);
        lru.miss(Some(page), &file(), NOW);
        lru.insert(page, &file(), NOW);
        lru.forget(page, Gone::Deleted);
        while lru.dropped().is_some() {}
    }
    insert(&mut lru, 0..20, file());
    hit(&mut lru, 0, CALL);
    hit(&mut lru, 1, CALL);
    let moved = lru.effort().moved;
    assert_eq!(evict(&mut lru, 3), [2, 3, 4], "tier 1 is passed over");
    assert_eq!(lru.effort().moved, moved + 2);
}

#[test]
fn few_refaults_protect_nothing() {
    let mut lru = mglru(200);
    insert(&mut lru, 0..20, file());
    (0..20).for_each(|page| hit(&mut lru, page, CALL));
    assert_eq!(evict(&mut lru, 20), (0..20).collect::<Vec<_>>());
}

/// Runs references through a cache; evictions, and uses that raise a count or set a bit.
fn run_mglru(lru: &mut MgLru, refs: &[u32], what: impl Fn(u32) -> Insert, via: Touch) -> [u64; 2] {
    let slots = lru.slots();
    let mut number = vec![None; 1 + *refs.iter().max().expect("not empty") as usize];
    let mut key_of = vec![0; slots as usize];
    let mut free: Vec<PageRef> = (0..slots).rev().map(PageRef).collect();
    let [mut evictions, mut uses] = [0; 2];
    for &key in refs {
        let known: Option<PageRef> = number[key as usize];
        if let Some(page) = known.filter(|p| lru.state(*p) == State::Resident) {
            lru.hit(page, via, NOW);
            uses += 1;
            continue;
        }
        lru.miss(known, &what(key), NOW);
        if lru.resident() == lru.capacity() {
            lru.evict().expect("nothing is detached");
            evictions += 1;
        }
        while let Some(page) = lru.dropped() {
            number[key_of[page.index()] as usize] = None;
            free.push(page);
        }
        let page = number[key as usize].unwrap_or_else(|| free.pop().expect("slots suffice"));
        (number[key as usize], key_of[page.index()]) = (Some(page), key);
        lru.insert(page, &what(key), NOW);
        while let Some(page) = lru.dropped() {
            number[key_of[page.index()] as usize] = None;
            free.push(page);
        }
    }
    lru.validate().expect("the policy's books");
    [evictions, uses]
}

/// 1981 hot pages in a memory of 2000 and a cold one at times, used four times: the
/// oldest generations are small, so that ageing comes soon again, while many pages in
/// the others have access bits.
fn hot_with_few_cold() -> Vec<u32> {
    let reference = |at: u32| match at % 300 {
        0 => vec![10_000 + at / 300 % 3000; 4],
        _ => vec![at % 1981],
    };
    (0..200_000).flat_map(reference).collect()
}

#[test]
fn generations_look_at_no_more_pages_than_were_evicted_or_used() {
    let kinds: [fn(u32) -> Insert; 3] = [
        |_| file(),
        |_| anon(),
        |key| if key % 2 == 0 { anon() } else { file() },
    ];
    for (mix, what) in kinds.into_iter().enumerate() {
        for via in [CALL, MAPPED] {
            let mut lru = mglru(2000);
            let refs = hot_with_few_cold();
            let [evictions, uses] = run_mglru(&mut lru, &refs, what, via);
            assert!(evictions > 500, "{evictions} evictions");
            let scanned = lru.effort().scanned;
            assert!(
                scanned <= evictions + uses,
                "mix {mix}, {via:?}: {scanned} pages looked at, {evictions} evictions, {uses} uses"
            );
        }
    }
}

#[test]
fn what_comes_before_a_page_that_is_evicted_second_has_its_turn_once() {
    let mut lru = mglru(300);
    insert(&mut lru, 0..300, file());
    (0..100).for_each(|page| hit(&mut lru, page, MAPPED));
    // Page 100 cannot leave (it is dirty, say), and is passed over every time.
    for victim in 101..110 {
        let mut first = [PageRef(0); 2];
        assert_eq!(lru.propose(&mut first), 2);
        assert_eq!(first, [PageRef(100), PageRef(victim)]);
        lru.forget(PageRef(victim), Gone::Evicted);
        lru.validate().expect("the policy's books");
        // The 100 young pages went to the youngest generation the first time.
        assert_eq!(lru.effort().moved, 100);
    }
    assert_eq!(lru.effort().scanned, 100 + 9);
    // Detaching does the same, and a page in the midst is taken out alone.
    (110..120).for_each(|page| hit(&mut lru, page, MAPPED));
    lru.detach(PageRef(250));
    assert_eq!(lru.effort().moved, 100);
    lru.detach(PageRef(121));
    assert_eq!(lru.effort().moved, 110);
    lru.validate().expect("the policy's books");
}
