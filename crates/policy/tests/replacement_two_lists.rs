//! The lists of Linux 2.6.11 against an oracle, and their rules one by one.

use crate::replacement_kit;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::replacement_kit::{
    Memory, NOW, Oracle, agree, agree_at, by, coldest, page_of, propose, wrong_calls_change_nothing,
};
use piebald_policy::{
    contract::replacement::{
        Base, Fetch, Gone, Insert, PageKind, PageRef, Replacement, State, Via,
    },
    replacement::{Slots, TwoLists, TwoListsConfig},
};

#[derive(Clone, Copy, Default, Debug)]
struct Page {
    referenced: bool,
    young: bool,
    mapped: bool,
    dirty: bool,
    demoted: bool,
}

impl Page {
    fn used(&self) -> bool {
        self.referenced || self.young
    }

    fn is_seen(&mut self) {
        self.referenced = false;
        self.young = false;
    }
}

/// Where a detached page came from, and whether it was used meanwhile.
#[derive(Clone, Copy, PartialEq)]
enum From {
    Inactive,
    Active { earned: bool },
}

/// A zone, with the work of a priority cut into batches when the priority begins.
#[derive(Clone)]
struct Zone {
    config: TwoListsConfig,
    pages: BTreeMap<u32, Page>,
    /// Tail first.
    inactive: VecDeque<u32>,
    active: VecDeque<u32>,
    detached: BTreeMap<u32, From>,
    dropped: BTreeSet<u32>,
    priority: Option<u32>,
    prev_priority: u32,
    nr_scan: [u32; 2],
    /// Batches of this priority: pages of the active list, of the inactive list.
    work: VecDeque<(u32, u32)>,
    looks: u32,
    freed: u32,
    freed_here: u32,
}

impl Zone {
    fn new(config: TwoListsConfig) -> Self {
        Self {
            config,
            pages: BTreeMap::new(),
            inactive: VecDeque::new(),
            active: VecDeque::new(),
            detached: BTreeMap::new(),
            dropped: BTreeSet::new(),
            priority: None,
            prev_priority: config.priority.into(),
            nr_scan: [0; 2],
            work: VecDeque::new(),
            looks: 0,
            freed: 0,
            freed_here: 0,
        }
    }

    fn begin(&mut self, priority: u32) {
        self.priority = Some(priority);
        self.prev_priority = self.prev_priority.min(priority);
        self.freed_here = 0;
        let mut scan = [0, 0];
        for (i, list) in [&self.active, &self.inactive].into_iter().enumerate() {
            self.nr_scan[i] += (list.len() as u32 >> priority) + 1;
            if self.nr_scan[i] >= self.config.batch {
                scan[i] = std::mem::take(&mut self.nr_scan[i]);
            }
        }
        let [mut active, mut inactive] = scan;
        self.work.clear();
        while active > 0 || inactive > 0 {
            let batch = (
                active.min(self.config.batch),
                inactive.min(self.config.batch),
            );
            active -= batch.0;
            inactive -= batch.1;
            self.work.push_back(batch);
        }
    }

    fn reclaim_mapped(&self) -> bool {
        let mapped = self.pages.values().filter(|page| page.mapped).count() as u32;
        let mapped_ratio = mapped * 100 / self.config.room.capacity;
        let distress = 100 >> self.prev_priority;
        mapped_ratio / 2 + distress + self.config.swappiness >= 100
    }

    fn refill(&mut self, looks: u32) {
        let reclaim_mapped = self.reclaim_mapped();
        for _ in 0..looks.min(self.active.len() as u32) {
            let number = self.active.pop_front().unwrap();
            let page = self.pages.get_mut(&number).unwrap();
            if page.mapped && !reclaim_mapped {
                self.active.push_back(number);
            } else if page.mapped && page.used() {
                page.is_seen();
                self.active.push_back(number);
            } else {
                page.demoted = true;
                self.inactive.push_back(number);
            }
        }
    }

    /// Gets looks at the inactive list to spend; false once priority 0 is over.
    fn schedule(&mut self) -> bool {
        while self.looks == 0 {
            if self.freed_here >= self.config.batch {
                self.work.clear();
            }
            if let Some((active, inactive)) = self.work.pop_front() {
                self.refill(active);
                self.looks = inactive;
                continue;
            }
            match self.priority {
                None => self.begin(self.config.priority.into()),
                Some(p) if self.freed >= self.config.batch || p == 0 => {
                    self.prev_priority = p;
                    self.priority = None;
                    self.freed_here = 0;
                    let enough = std::mem::take(&mut self.freed) >= self.config.batch;
                    if !enough {
                        return false;
                    }
                }
                Some(p) => self.begin(p - 1),
            }
        }
        true
    }

    fn is_free(&self, number: u32) -> bool {
        let page = &self.pages[&number];
        !page.used() || !page.mapped && !page.dirty
    }

    /// Reclaims up to a page that can be freed, which stays at the tail.
    fn reclaim(&mut self) -> bool {
        while self.schedule() {
            let Some(number) = self.inactive.front().copied() else {
                self.looks = 0;
                continue;
            };
            if self.is_free(number) {
                return true;
            }
            self.inactive.pop_front();
            self.looks -= 1;
            let page = self.pages.get_mut(&number).unwrap();
            page.is_seen();
            if page.mapped {
                page.demoted = false;
                self.active.push_back(number);
            } else {
                self.inactive.push_back(number);
            }
        }
        false
    }

    fn carry_out(&mut self, victim: u32) {
        let is_inactive = self.inactive.contains(&victim);
        if is_inactive && self.is_free(victim) {
            while !(self.reclaim() && self.inactive.front() == Some(&victim)) {}
        }
    }

    fn look(&mut self, number: u32) {
        if self.inactive.front() == Some(&number) {
            self.looks = self.looks.saturating_sub(1);
        }
    }

    fn remove(&mut self, number: u32) {
        self.inactive.retain(|n| *n != number);
        self.active.retain(|n| *n != number);
        self.detached.remove(&number);
        self.pages.remove(&number);
        self.dropped.insert(number);
    }

    fn free(&mut self, number: u32) {
        self.look(number);
        self.freed += 1;
        self.freed_here += 1;
        self.remove(number);
    }
}

impl Oracle for Zone {
    fn miss(&mut self, _: Option<u32>) {
        if self.pages.len() as u32 >= self.config.room.capacity {
            self.reclaim();
        }
    }

    fn insert(&mut self, number: u32, insert: &Insert) {
        let used = self.config.fetch_is_use && insert.fetch == Fetch::Demand;
        let is_anon = insert.kind == PageKind::Anon;
        let page = Page {
            referenced: !is_anon && used,
            young: is_anon && used,
            mapped: is_anon,
            dirty: insert.dirty,
            demoted: false,
        };
        self.pages.insert(number, page);
        let list = if is_anon {
            &mut self.active
        } else {
            &mut self.inactive
        };
        list.push_back(number);
    }

    fn hit(&mut self, number: u32, via: Via) {
        let page = self.pages.get_mut(&number).unwrap();
        if let Some(From::Active { earned }) = self.detached.get_mut(&number) {
            *earned = true;
        }
        if via == Via::Mapping {
            page.young = true;
            page.mapped = true;
        } else if !page.referenced {
            page.referenced = true;
        } else if self.inactive.contains(&number) {
            page.referenced = false;
            page.demoted = false;
            self.inactive.retain(|n| *n != number);
            self.active.push_back(number);
        } else if self.detached.get(&number) == Some(&From::Inactive) {
            page.referenced = false;
            self.detached.insert(number, From::Active { earned: true });
        }
    }

    fn set_dirty(&mut self, number: u32, dirty: bool) {
        self.pages.get_mut(&number).unwrap().dirty = dirty;
    }

    fn evict(&mut self) -> Option<u32> {
        let victim = *self.victims().first()?;
        let in_order = self.inactive.contains(&victim) && self.is_free(victim);
        self.carry_out(victim);
        self.free(victim);
        if !in_order {
            self.reclaim();
        }
        Some(victim)
    }

    fn detach(&mut self, number: u32) {
        if self.inactive.contains(&number) {
            if self.victims().first() == Some(&number) && self.is_free(number) {
                self.carry_out(number);
            } else if self.inactive.front() == Some(&number) {
                self.schedule();
            }
            self.look(number);
            self.inactive.retain(|n| *n != number);
            self.detached.insert(number, From::Inactive);
        } else {
            self.active.retain(|n| *n != number);
            self.detached.insert(number, From::Active { earned: false });
        }
    }

    fn reattach(&mut self, number: u32) {
        let from = self.detached.remove(&number).unwrap();
        let is_free = self.is_free(number);
        let page = self.pages.get_mut(&number).unwrap();
        match from {
            From::Inactive if is_free => self.inactive.push_back(number),
            From::Inactive if page.mapped => {
                page.is_seen();
                page.demoted = false;
                self.active.push_back(number);
            }
            From::Inactive => {
                page.is_seen();
                self.inactive.push_back(number);
            }
            From::Active { .. } => {
                if page.mapped {
                    page.is_seen();
                }
                page.demoted = false;
                self.active.push_back(number);
            }
        }
    }

    fn forget(&mut self, number: u32, why: Gone) {
        let is_first = self.victims().first() == Some(&number);
        match why {
            Gone::Evicted if is_first => {
                self.evict();
            }
            Gone::Evicted => self.free(number),
            Gone::Deleted => self.remove(number),
        }
    }

    fn dropped(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.dropped)
    }

    fn state(&self, number: u32) -> State {
        match (
            self.pages.contains_key(&number),
            self.detached.contains_key(&number),
        ) {
            (true, true) => State::Detached,
            (true, false) => State::Resident,
            _ => State::Unknown,
        }
    }

    fn coldest(&self) -> Vec<u32> {
        self.inactive.iter().chain(&self.active).copied().collect()
    }

    fn wanted(&self, number: u32) -> bool {
        let Some(page) = self.pages.get(&number) else {
            return false;
        };
        let stays = page.mapped && (page.used() || !self.reclaim_mapped());
        match self.detached.get(&number) {
            Some(From::Inactive) => !self.is_free(number),
            Some(From::Active { earned }) => *earned || stays,
            None if self.active.contains(&number) => stays,
            None => !self.is_free(number),
        }
    }

    fn class(&self, number: u32) -> u8 {
        let Some(page) = self.pages.get(&number) else {
            return 0;
        };
        let was_active = match self.detached.get(&number) {
            Some(from) => *from != From::Inactive,
            None => self.active.contains(&number),
        };
        u8::from(was_active || page.demoted)
    }

    /// In the order in which the module's text lists them.
    fn victims(&self) -> Vec<u32> {
        let choices: [&dyn Fn(u32) -> bool; 6] = [
            &|n| self.inactive.contains(&n) && self.is_free(n),
            &|n| self.active.contains(&n) && !self.pages[&n].mapped && self.is_free(n),
            &|n| !self.pages[&n].mapped && !self.is_free(n),
            &|n| self.active.contains(&n) && self.pages[&n].mapped && !self.pages[&n].used(),
            &|n| self.active.contains(&n) && self.pages[&n].mapped && self.pages[&n].used(),
            &|n| self.inactive.contains(&n) && self.pages[&n].mapped && self.pages[&n].used(),
        ];
        let all = self.coldest();
        let chosen = choices.map(|choice| all.iter().copied().filter(move |n| choice(*n)));
        chosen.into_iter().flatten().collect()
    }
}

fn lists_with(config: TwoListsConfig) -> TwoLists<Memory> {
    TwoLists::new(Slots::collect(config.slots().unwrap()), config).unwrap()
}

fn lists(capacity: u32) -> TwoLists<Memory> {
    lists_with(TwoListsConfig::new(capacity))
}

#[test]
fn fuzz_two_lists_agree_with_their_oracle_as_linux_sets_them() {
    agree(|capacity, _| {
        let config = TwoListsConfig::new(capacity);
        (lists_with(config), Zone::new(config))
    });
}

#[test]
fn fuzz_two_lists_agree_with_their_oracle_at_other_settings() {
    agree_at(&[3, 17, 60, 130], 9, 400, |capacity, seed| {
        let config = TwoListsConfig {
            batch: [1, 3, 8][seed as usize % 3],
            swappiness: [0, 60, 100][seed as usize / 3 % 3],
            priority: [12, 4, 0][(seed as usize + 1) % 3],
            fetch_is_use: seed % 2 == 0,
            ..TwoListsConfig::new(capacity)
        };
        (lists_with(config), Zone::new(config))
    });
}

#[test]
fn wrong_calls_to_two_lists_change_nothing() {
    wrong_calls_change_nothing(lists(4));
}

fn come(policy: &mut TwoLists<Memory>, kind: PageKind, pages: std::ops::Range<u32>) {
    for page in pages {
        policy.insert(PageRef(page), &page_of(kind), NOW);
    }
}

fn ahead(policy: &mut TwoLists<Memory>, pages: std::ops::Range<u32>) {
    for page in pages {
        policy.insert(PageRef(page), &replacement_kit::readahead(), NOW);
    }
}

fn use_by(policy: &mut TwoLists<Memory>, via: Via, page: u32) {
    policy.hit(PageRef(page), by(via), NOW);
}

#[test]
fn a_file_page_becomes_active_at_its_second_read_and_one_read_ahead_at_its_third() {
    let mut policy = lists(100);
    come(&mut policy, PageKind::File, 0..1);
    ahead(&mut policy, 1..2);
    assert_eq!((policy.active(), policy.inactive()), (0, 2));
    use_by(&mut policy, Via::Call, 0);
    assert_eq!((policy.active(), policy.inactive()), (1, 1));
    use_by(&mut policy, Via::Call, 1);
    assert_eq!(policy.active(), 1, "its first use");
    use_by(&mut policy, Via::Call, 1);
    assert_eq!(policy.active(), 2);
    come(&mut policy, PageKind::Anon, 2..3);
    assert_eq!(policy.active(), 3, "anonymous pages begin there");
    assert_eq!(coldest(&policy, 9), [0, 1, 2]);
}

#[test]
fn a_page_used_through_a_mapping_is_noticed_at_the_inactive_tail() {
    let mut policy = lists(4);
    ahead(&mut policy, 0..4);
    use_by(&mut policy, Via::Mapping, 0);
    assert_eq!(policy.active(), 0, "the kernel has not looked");
    assert_eq!(propose(&policy, 4), [1, 2, 3, 0]);
    assert!(policy.wanted(PageRef(0)));
    assert_eq!(policy.evict(), Some(PageRef(1)));
    assert_eq!(policy.active(), 1, "it was looked at on the way");
}

#[test]
fn a_dirty_page_is_kept_once_if_it_was_used() {
    let mut policy = lists(3);
    ahead(&mut policy, 0..3);
    use_by(&mut policy, Via::Call, 0);
    policy.set_dirty(PageRef(0), true);
    assert_eq!(policy.evict(), Some(PageRef(1)));
    assert_eq!(coldest(&policy, 3), [2, 0], "to the inactive head");
    assert!(!policy.wanted(PageRef(0)), "unreferenced now");
}

#[test]
fn demotion_keeps_pace_with_the_inactive_list_as_shrink_zone_sets_it() {
    // 4096 active and 1024 inactive pages. Priorities 12 to 8: the active list owes
    // 2 + 3 + 5 + 9 + 17 = 36 looks, which are called in; the inactive one 1 + 1 + 2
    // + 3 + 5 = 12, which are not. 7: 32 of 4060, called in, and 9 of 1060, which
    // makes 21. 6: 63 of 4028, and 18 of 1092, which makes 39: batches of (32, 32)
    // and (31, 7), the first of which frees 32 and so is the last.
    let mut policy = lists(5120);
    ahead(&mut policy, 0..5120);
    for page in 0..4096 {
        use_by(&mut policy, Via::Call, page);
        use_by(&mut policy, Via::Call, page);
    }
    assert_eq!((policy.active(), policy.inactive()), (4096, 1024));
    assert_eq!(policy.evict(), Some(PageRef(4096)));
    assert_eq!(policy.active(), 4096 - 36 - 32 - 32);
    for page in 4097..4096 + 32 {
        assert_eq!(policy.evict(), Some(PageRef(page)));
    }
    assert_eq!(policy.active(), 3996, "one batch");
    // The next round. 12 to 7: 1 + 2 + 4 + 8 + 16 + 32 = 63, called in; the inactive
    // list with 1092 pages 1 + 1 + 2 + 3 + 5 + 9 = 21. 6: 62 of 3933, and 19 of 1155,
    // which makes 40: a batch of (32, 32).
    assert_eq!(policy.evict(), Some(PageRef(4096 + 32)));
    assert_eq!(policy.active(), 3996 - 63 - 32);
    assert_eq!(policy.class(PageRef(0)), 1, "demoted");
    assert_eq!(policy.class(PageRef(5119)), 0, "never active");
    assert_eq!(policy.validate(), Ok(()));
}

#[test]
fn mapped_pages_are_spared_until_reclaim_is_in_distress() {
    let mut policy = lists(1000);
    come(&mut policy, PageKind::Anon, 0..300);
    ahead(&mut policy, 300..1000);
    // 300 of 1000 are mapped: 15 + distress + 60 reaches 100 at distress 25, which
    // is previous priority 2.
    for page in 300..900 {
        assert_eq!(policy.evict(), Some(PageRef(page)), "file pages suffice");
        while policy.dropped().is_some() {}
    }
    assert_eq!(policy.active(), 300);
    let mut swapped = 0;
    while let Some(page) = policy.evict() {
        while policy.dropped().is_some() {}
        swapped += u32::from(page.0 < 300);
        policy.validate().unwrap();
    }
    assert_eq!(swapped, 300, "all of them in the end");
}

#[test]
fn swappiness_decides_whether_mapped_pages_are_demoted() {
    let demoted = |swappiness| {
        let mut policy = lists_with(TwoListsConfig {
            swappiness,
            ..TwoListsConfig::new(2000)
        });
        come(&mut policy, PageKind::Anon, 0..1000);
        ahead(&mut policy, 1000..2000);
        (0..900).for_each(|i| assert_eq!(policy.evict(), Some(PageRef(1000 + i))));
        1000 - policy.active()
    };
    // 1000 of 2000 are mapped, rounds end at priority 4 or above: 25 + at most 6.
    assert_eq!(demoted(60), 0);
    assert_eq!(demoted(68), 0);
    assert!(demoted(75) > 100, "{}", demoted(75));
    assert!(demoted(100) >= demoted(75));
}

#[test]
fn dulo_drains_the_inactive_list_and_reclaim_refills_it() {
    let mut policy = lists(3000);
    ahead(&mut policy, 0..3000);
    for page in 0..2000 {
        use_by(&mut policy, Via::Call, page);
        use_by(&mut policy, Via::Call, page);
    }
    let mut out = [PageRef(0)];
    for page in 2000..2900 {
        assert_eq!(policy.coldest(&mut out), 1);
        assert_eq!(out, [PageRef(page)]);
        policy.detach(out[0]);
    }
    assert_eq!(policy.resident(), 3000, "nothing left memory");
    let demoted = 2000 - policy.active();
    assert!(
        (900..=1900).contains(&demoted),
        "{demoted} kept pace with 900 looks"
    );
    // Second use of a page that DULO holds: Linux makes it active at once.
    use_by(&mut policy, Via::Call, 2000);
    assert!(!policy.wanted(PageRef(2000)));
    use_by(&mut policy, Via::Call, 2000);
    assert!(policy.wanted(PageRef(2000)));
    let active = policy.active();
    policy.reattach(PageRef(2000));
    assert_eq!(policy.active(), active + 1);
    assert_eq!(policy.validate(), Ok(()));
}
