//! The split lists of Linux 2.6.28 to 2.6.38, as of 2.6.30: active and inactive, for
//! anonymous and for file pages.
//!
//! * *Coming in.* A file page goes to the head of the inactive list, so does an
//!   anonymous one that was read ahead from swap; other anonymous pages go to the
//!   head of the active list. The use that a page comes in for counts: the file page
//!   is referenced, the anonymous one has its access bit set.
//! * *Use by a call* (`mark_page_accessed`): an inactive page becomes referenced, a
//!   referenced inactive page active and unreferenced, an active page referenced.
//! * *Use through a mapping* sets the access bit and makes the page a mapped one.
//! * *Inactive tail.* A mapped or anonymous page that was used since it was looked
//!   at goes to the head of the active list; any other is the victim.
//! * *Active tail.* Every page that is looked at goes to the head of the inactive
//!   list; used ones are only counted (`recent_rotated`).
//! * *Balance.* Anonymous against file pages by `get_scan_ratio`: `(swappiness + 1)`
//!   against `(200 - swappiness + 1)`, each times the share of pages that looking
//!   found unused; the history is halved when it exceeds a quarter of the lists.
//! * *Active lists* are looked at in batches of 32 at the rate of the inactive ones:
//!   the kernel scans the same fraction of both. Anonymous ones only while the
//!   inactive list is short: inactive * sqrt(10 * GiB of memory) < active.
//!
//! *One page at a time.* The kernel frees 32 pages per pass and takes them from both
//! kinds in proportion; here each victim's kind is chosen by credits that grow with
//! `inactive * percent`, which gives the same proportion over 32 victims. Priorities
//! do not occur: they set how much is looked at before a caller gives up.
//!
//! *Where no inactive page may go*, active pages follow from their tail, then the
//! used inactive ones; all that was looked at is carried out.
//!
//! *Not modelled:* zones, the unevictable list, lumpy reclaim, executable mappings
//! (protected since 2.6.31), referenced dirty pages that are kept for a round.
//!
//! 16 B of state per slot, `capacity + 1` slots.

use piebald_policy::contract::replacement::{
    BrokenOrder, Effort, Fetch, Gone, Insert, PageKind, PageRef, Replacement, State, Touch, Via,
};
use piebald_units::Picos;

use super::{
    ConfigError, check, check_capacity,
    kit::{Dropped, Link, Linked, List, broken, fill, linked, misuse, rule_holds},
};

/// Both kinds: anonymous, file.
const KINDS: [usize; 2] = [0, 1];
const ANON: usize = 0;

/// Configuration of the split lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linux26SplitConfig {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity: u32,
    /// `vm.swappiness`, 0 to 100; 60 by default in Linux.
    pub swappiness: u32,
    /// Pages of an active list that are looked at in one go, 1 to 1024; 32
    /// (`SWAP_CLUSTER_MAX`).
    pub batch: u32,
}

impl Linux26SplitConfig {
    /// The kernel's defaults.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            swappiness: 60,
            batch: 32,
        }
    }

    /// Active anonymous pages per inactive one that are tolerated.
    fn anon_ratio(&self) -> u64 {
        let gib = u64::from(self.capacity) >> 18;
        (10 * gib).isqrt().max(1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    link: Link,
    state: State,
    /// Index into [`KINDS`].
    kind: u8,
    active: bool,
    /// PG_referenced.
    referenced: bool,
    /// The access bit.
    young: bool,
    /// Used through a mapping since it came.
    mapped: bool,
}
linked!(Node, 0, link);

const FREE: Node = Node {
    link: Link::NONE,
    state: State::Unknown,
    kind: 0,
    active: false,
    referenced: false,
    young: false,
    mapped: false,
};

impl Node {
    /// Does a use since the last look save it at the inactive tail?
    fn saved(&self) -> bool {
        let by_use = self.young || self.referenced;
        by_use && (self.mapped || usize::from(self.kind) == ANON)
    }
}

/// The lists of one kind and what looking at them found.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    inactive: List,
    active: List,
    recent_scanned: u64,
    recent_rotated: u64,
    /// Weight of the choice between the kinds.
    credit: i128,
    /// Looks at the active list that are owed, in units of 1 / |inactive|.
    owed: u64,
}

impl Kind {
    fn len(&self) -> u64 {
        u64::from(self.inactive.len()) + u64::from(self.active.len())
    }

    fn saw(&mut self, rotated: bool) {
        self.recent_scanned += 1;
        self.recent_rotated += u64::from(rotated);
        if self.recent_scanned > self.len() / 4 {
            self.recent_scanned /= 2;
            self.recent_rotated /= 2;
        }
    }
}

/// The split lists of Linux 2.6.30.
#[derive(Clone, Debug)]
pub struct Linux26Split {
    nodes: Vec<Node>,
    kinds: [Kind; 2],
    config: Linux26SplitConfig,
    resident: u32,
    /// Victims since anonymous pages were balanced last.
    since_balance: u32,
    effort: Effort,
    dropped: Dropped,
}

/// How a search for a victim ended.
struct Scan {
    victim: u32,
    /// Used inactive pages that were looked at before.
    passed: Vec<u32>,
}

impl Linux26Split {
    /// An empty memory.
    ///
    /// # Errors
    /// If a field is out of its range.
    pub fn new(config: Linux26SplitConfig) -> Result<Self, ConfigError> {
        let name = "linux-2.6.30";
        let capacity = check_capacity(name, config.capacity)?;
        let swappiness = u64::from(config.swappiness);
        check(name, "swappiness", swappiness, 0..=100, "0 to 100")?;
        check(name, "batch", config.batch.into(), 1..=1024, "1 to 1024")?;
        Ok(Self {
            nodes: vec![FREE; capacity as usize + 1],
            kinds: Default::default(),
            config,
            resident: 0,
            since_balance: 0,
            effort: Effort::default(),
            dropped: Dropped::default(),
        })
    }

    /// Pages on the active and on the inactive list of anonymous and of file pages.
    pub fn lengths(&self) -> [(u32, u32); 2] {
        self.kinds.map(|k| (k.active.len(), k.inactive.len()))
    }

    /// Percent of the looks that go to each kind (`get_scan_ratio`).
    fn percent(&self) -> [u64; 2] {
        let swappiness = u64::from(self.config.swappiness);
        let part = |prio: u64, kind: &Kind| {
            (prio + 1) * (kind.recent_scanned + 1) / (kind.recent_rotated + 1)
        };
        let (anon, file) = (
            part(swappiness, &self.kinds[0]),
            part(200 - swappiness, &self.kinds[1]),
        );
        let percent = 100 * anon / (anon + file + 1);
        [percent, 100 - percent]
    }

    /// How much each kind's turn comes nearer with every victim.
    fn weights(&self) -> [i128; 2] {
        let percent = self.percent();
        KINDS.map(|kind| i128::from(u64::from(self.kinds[kind].inactive.len()) * percent[kind]))
    }

    /// The kind whose turn it is, and the credits after that.
    fn turn(credits: [i128; 2], weights: [i128; 2]) -> (usize, [i128; 2]) {
        let mut after = KINDS.map(|kind| credits[kind] + weights[kind]);
        let kind = usize::from(after[1] >= after[0]);
        after[kind] -= weights[0] + weights[1];
        (kind, after)
    }

    fn credits(&self) -> [i128; 2] {
        self.kinds.map(|kind| kind.credit)
    }

    fn inactive(&self, kind: usize, saved: bool) -> impl Iterator<Item = u32> {
        let pages = self.kinds[kind].inactive.coldest(&self.nodes);
        pages.filter(move |page| self.nodes[*page as usize].saved() == saved)
    }

    /// The victims: unused inactive pages of both kinds by turns, active pages, used
    /// inactive pages.
    fn order(&self) -> impl Iterator<Item = u32> {
        let weights = self.weights();
        let mut credits = self.credits();
        let mut pages = KINDS.map(|kind| self.inactive(kind, false).peekable());
        let by_turns = std::iter::from_fn(move || {
            let (kind, after) = Self::turn(credits, weights);
            credits = after;
            let kind = if pages[kind].peek().is_some() {
                kind
            } else {
                1 - kind
            };
            pages[kind].next()
        });
        let active = |kind: usize| self.kinds[kind].active.coldest(&self.nodes);
        let used = |kind: usize| self.inactive(kind, true);
        let rest = active(1).chain(active(0)).chain(used(1)).chain(used(0));
        by_turns.chain(rest)
    }

    fn scan(&self) -> Option<Scan> {
        let (first, _) = Self::turn(self.credits(), self.weights());
        let mut passed = Vec::new();
        for kind in [first, 1 - first] {
            for victim in self.kinds[kind].inactive.coldest(&self.nodes) {
                if !self.nodes[victim as usize].saved() {
                    return Some(Scan { victim, passed });
                }
                passed.push(victim);
            }
        }
        let victim = self.order().next()?;
        passed.retain(|page| *page != victim);
        Some(Scan { victim, passed })
    }

    fn list(&mut self, kind: u8, active: bool) -> &mut List {
        let kind = &mut self.kinds[usize::from(kind)];
        if active {
            &mut kind.active
        } else {
            &mut kind.inactive
        }
    }

    fn enlist(&mut self, page: u32, active: bool) {
        self.nodes[page as usize].active = active;
        let kind = self.nodes[page as usize].kind;
        let mut list = *self.list(kind, active);
        list.push(&mut self.nodes, page);
        *self.list(kind, active) = list;
    }

    fn delist(&mut self, page: u32) {
        let Node { kind, active, .. } = self.nodes[page as usize];
        let mut list = *self.list(kind, active);
        list.unlink(&mut self.nodes, page);
        *self.list(kind, active) = list;
    }

    /// A used inactive page was looked at: it becomes active.
    fn activate(&mut self, page: u32) {
        self.delist(page);
        let node = &mut self.nodes[page as usize];
        (node.referenced, node.young) = (false, false);
        let kind = usize::from(node.kind);
        self.enlist(page, true);
        self.kinds[kind].saw(true);
        self.effort.moved += 1;
    }

    /// Looks at pages at the active tail: all go to the inactive head.
    fn deactivate(&mut self, kind: usize, pages: u32) {
        for _ in 0..pages {
            let Some(page) = self.kinds[kind].active.tail() else {
                break;
            };
            let node = &mut self.nodes[page as usize];
            let used = node.saved();
            if node.mapped || kind == ANON {
                (node.referenced, node.young) = (false, false);
            }
            self.delist(page);
            self.enlist(page, false);
            self.kinds[kind].saw(used);
            self.effort.scanned += 1;
            self.effort.moved += 1;
        }
    }

    fn anon_is_low(&self) -> bool {
        let anon = &self.kinds[ANON];
        u64::from(anon.inactive.len()) * self.config.anon_ratio() < u64::from(anon.active.len())
    }

    /// Carries out what a search decided, before its victim leaves.
    fn carry_out(&mut self, scan: &Scan) {
        self.effort.scanned += scan.passed.len() as u64 + 1;
        let (_, after) = Self::turn(self.credits(), self.weights());
        for (kind, credit) in self.kinds.iter_mut().zip(after) {
            kind.credit = credit;
        }
        let looked = scan.passed.iter().chain([&scan.victim]);
        for page in looked {
            let kind = &mut self.kinds[usize::from(self.nodes[*page as usize].kind)];
            kind.owed += u64::from(kind.active.len());
        }
        for page in &scan.passed {
            self.activate(*page);
        }
        let victim = self.nodes[scan.victim as usize];
        self.kinds[usize::from(victim.kind)].saw(false);
        self.since_balance += 1;
    }

    /// Looks at active pages as far as that is owed, or needed to have inactive
    /// ones.
    fn balance(&mut self) {
        let batch = self.config.batch;
        for kind in KINDS {
            let lists = &mut self.kinds[kind];
            let due = u64::from(lists.inactive.len().max(1)) * u64::from(batch);
            if lists.owed >= due {
                lists.owed %= due;
                if kind != ANON || self.anon_is_low() {
                    self.deactivate(kind, batch);
                }
            }
        }
        if self.since_balance >= batch {
            self.since_balance = 0;
            if self.anon_is_low() {
                self.deactivate(ANON, batch);
            }
        }
        if self.kinds.iter().all(|kind| kind.inactive.is_empty()) {
            KINDS
                .into_iter()
                .for_each(|kind| self.deactivate(kind, batch));
        }
    }

    fn remove(&mut self, page: u32) {
        if self.nodes[page as usize].state == State::Resident {
            self.delist(page);
        }
        self.nodes[page as usize] = FREE;
        self.resident -= 1;
        self.dropped.push(page);
    }
}

impl Replacement for Linux26Split {
    fn capacity(&self) -> u32 {
        self.config.capacity
    }

    fn slots(&self) -> u32 {
        self.config.capacity + 1
    }

    fn miss(&mut self, ghost: Option<PageRef>, _insert: &Insert, _now: Picos) {
        debug_assert!(ghost.is_none(), "miss of a page that is no ghost");
    }

    fn insert(&mut self, page: PageRef, insert: &Insert, _now: Picos) {
        if self.state(page) != State::Unknown || page.index() >= self.nodes.len() {
            return misuse("insert", page);
        }
        let unread = insert.fetch == Fetch::Readahead;
        let anon = insert.kind == PageKind::Anon;
        self.nodes[page.index()] = Node {
            state: State::Resident,
            kind: u8::from(!anon),
            referenced: !anon && !unread,
            young: anon && !unread,
            ..FREE
        };
        self.resident += 1;
        self.enlist(page.0, anon && !unread);
    }

    #[inline]
    fn hit(&mut self, page: PageRef, touch: Touch, _now: Picos) {
        let state = self.state(page);
        if !matches!(state, State::Resident | State::Detached) {
            return misuse("hit", page);
        }
        let node = &mut self.nodes[page.index()];
        match touch.via {
            Via::Mapping => (node.young, node.mapped) = (true, true),
            Via::Call if node.referenced && !node.active && state == State::Resident => {
                node.referenced = false;
                self.delist(page.0);
                self.enlist(page.0, true);
            }
            Via::Call => node.referenced = true,
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        fill(out, self.order())
    }

    fn detach(&mut self, page: PageRef) {
        if self.state(page) != State::Resident {
            return misuse("detach", page);
        }
        self.delist(page.0);
        self.nodes[page.index()].state = State::Detached;
    }

    fn reattach(&mut self, page: PageRef) {
        if self.state(page) != State::Detached {
            return misuse("reattach", page);
        }
        let node = &mut self.nodes[page.index()];
        node.state = State::Resident;
        let active = node.active || node.saved();
        self.enlist(page.0, active);
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        if self.state(page) == State::Unknown {
            return misuse("forget", page);
        }
        if why == Gone::Evicted
            && let Some(scan) = self.scan().filter(|s| s.victim == page.0)
        {
            self.carry_out(&scan);
        }
        self.remove(page.0);
        self.balance();
    }

    fn evict(&mut self) -> Option<PageRef> {
        let scan = self.scan()?;
        self.carry_out(&scan);
        self.remove(scan.victim);
        self.balance();
        Some(PageRef(scan.victim))
    }

    fn dropped(&mut self) -> Option<PageRef> {
        self.dropped.pop()
    }

    fn state(&self, page: PageRef) -> State {
        let node = self.nodes.get(page.index());
        node.map_or(State::Unknown, |n| n.state)
    }

    fn resident(&self) -> u32 {
        self.resident
    }

    fn effort(&self) -> Effort {
        self.effort
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let count = |state| self.nodes.iter().filter(|n| n.state == state).count() as u32;
        let mut attached = 0;
        for (number, kind) in (0..).zip(&self.kinds) {
            for (list, active) in [(&kind.active, true), (&kind.inactive, false)] {
                list.check(&self.nodes, "list: links, length, members", |n| {
                    n.state == State::Resident && n.kind == number && n.active == active
                })?;
                attached += list.len();
            }
            rule_holds(
                kind.recent_rotated <= kind.recent_scanned,
                "no more pages are rotated than looked at",
            )?;
        }
        rule_holds(
            attached == count(State::Resident),
            "attached pages are listed",
        )?;
        rule_holds(
            attached + count(State::Detached) == self.resident,
            "pages in memory are counted",
        )?;
        for (page, node) in (0..).zip(&self.nodes) {
            if node.state != State::Unknown && self.dropped.has(page) {
                return Err(broken("a page with a state is not dropped", page));
            }
        }
        Ok(())
    }
}
