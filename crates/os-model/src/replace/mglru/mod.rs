//! A model of multi-generational LRU (Linux 6.1 and later, `CONFIG_LRU_GEN`): what
//! a page cache under a current kernel would evict.
//!
//! Pages of each kind (anonymous, file) lie in 2 to 4 generations by the time of
//! their last known use, and within a generation in *tiers* by the logarithm of
//! their uses through file descriptors: 1 use tier 0, 2 uses tier 1, 3 or 4 tier 2,
//! more tier 3.
//! * *Coming in.* An anonymous page enters the youngest generation, a file page
//!   the oldest, or the second oldest while there are four.
//! * *Uses.* Through a file descriptor they raise the count only. Through a
//!   mapping they set the access bit, which is seen when the page is looked at.
//! * *Eviction* looks at the oldest generation from its cold end. A page with the
//!   access bit goes to the youngest generation; one of a protected tier to the
//!   next generation, its count cleared; any other is evicted.
//! * *Refaults.* An evicted page leaves its tier behind. If it returns before four
//!   generations have passed, its tier has a refault. A tier is evicted as long as
//!   its share of refaults is not above tier 0's by more than 3 : 2; the tiers from
//!   the first that is are protected. Tiers with fewer than 64 refaults are not
//!   judged. The counts are averaged with the old ones when the oldest generation
//!   changes.
//! * *Ageing.* With two generations of a kind left, or with three and the youngest above 1/2
//!   or the oldest below 1/4 of all pages, a new youngest generation begins, and
//!   all pages with access bits move there.
//! * *Which kind.* The one whose oldest generation is older; else file pages,
//!   unless their refaults in tier 0 weigh more than those of anonymous pages,
//!   with swappiness against 200 - swappiness.
//!
//! *Not modelled:* the Bloom filters and look-around that spare page-table walks
//! (a walk here sees every access bit); memory cgroups and their generations;
//! isolation in batches (one page is evicted at a time, and a batch of proposals
//! ignores what its own evictions would change); the access bit of a page that the
//! processor sets again during a walk; PG_workingset. \[M\] for the numbers 3 : 2,
//! 64, 1/2 and 1/4.
//!
//! *Where nothing may go.* The kernel looks again until something may. Here the
//! order says it at once: pages that are neither young nor protected (of the kind
//! that is looked at, then of the other), then protected ones, then young ones; and
//! all that was passed over is carried out.
//!
//! *Pages that the host passes over.* Evicting or detaching a page that may go also
//! carries out what the search decided about the young and protected pages before it,
//! even if the host passed over others that may go (they are dirty, say), at most
//! [`MgLruConfig::reach`] of them: those stay. Otherwise a page that cannot leave
//! would make every search look at the same pages again.
//!
//! # Costs
//!
//! Every page that a search or an ageing looks at in vain had its bit set or its
//! count raised since, and loses it: O(1) amortised per use and eviction. Ageing
//! walks the pages whose bit was set, not all (and sorts them into the order of
//! their lists); the oldest generation is put below the next in one step. A page
//! that is evicted from the midst, which no search arrives at, can cost a walk over
//! what lies before it.
//!
//! 24 B of state per slot and 4 B for each page with an access bit,
//! `capacity + ghosts + 1` slots.

use piebald_policy::contract::replacement::{
    BrokenOrder, Effort, Fetch, Gone, Insert, PageKind, PageRef, Replacement, State, Touch, Via,
};
use piebald_units::Picos;

mod generations;
mod search;

use super::{
    ConfigError, check, check_capacity,
    kit::{Dropped, Link, Linked, List, NIL, broken, fill, linked, misuse, rule_holds, share},
};

/// Generations at least and at most.
const MIN_GENS: u32 = 2;
const MAX_GENS: u32 = 4;
const NR_TIERS: usize = 4;
/// Both kinds: anonymous, file.
const KINDS: [usize; 2] = [0, 1];

/// Configuration of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MgLruConfig {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity: u32,
    /// Evicted pages whose tier is remembered, in percent of the capacity: 1 to
    /// 400; 100. The kernel bounds shadow entries by memory.
    pub shadow_percent: u32,
    /// `vm.swappiness`, 1 to 199; 60 by default in Linux.
    pub swappiness: u32,
    /// Refaults below which a tier is not judged; 64 (`MIN_LRU_BATCH`).
    pub min_refaults: u64,
    /// How many pages that may go a host may pass over and have the search's decisions
    /// carried out; 32 (`SWAP_CLUSTER_MAX`, the batch of reclaim).
    pub reach: u32,
}

impl MgLruConfig {
    /// The kernel's defaults.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            shadow_percent: 100,
            swappiness: 60,
            min_refaults: 64,
            reach: 32,
        }
    }

    fn ghosts(&self) -> u32 {
        share(self.capacity, self.shadow_percent, 1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    link: Link,
    /// Number of the generation that it entered, which may have been put into a
    /// later one; of a ghost, the youngest when it left.
    seq: u32,
    /// Rises towards the hot end among pages that entered the same generation.
    stamp: u32,
    state: State,
    /// Index into [`KINDS`].
    kind: u8,
    /// Uses through file descriptors since it came or was moved, at most 255; of
    /// a ghost, those it left with.
    uses: u8,
    /// The access bit.
    young: bool,
    /// Read ahead and not used yet.
    unread: bool,
    /// Among [`MgLru::young`], if only as a number that had a bit once.
    listed: bool,
}
linked!(Node, 0, link);

const FREE: Node = Node {
    link: Link::NONE,
    seq: 0,
    stamp: 0,
    state: State::Unknown,
    kind: 0,
    uses: 0,
    young: false,
    unread: false,
    listed: false,
};

impl Node {
    fn tier(&self) -> usize {
        match self.uses {
            0 | 1 => 0,
            2 => 1,
            3 | 4 => 2,
            _ => 3,
        }
    }
}

/// Refaults and evictions of one tier.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    refaulted: u64,
    /// Evicted or protected.
    total: u64,
    avg_refaulted: u64,
    avg_total: u64,
}

impl Tier {
    fn refaults(&self) -> u64 {
        self.avg_refaulted + self.refaulted
    }

    fn all(&self) -> u64 {
        self.avg_total + self.total
    }

    fn carry_over(&mut self) {
        self.avg_refaulted = self.refaults() / 2;
        self.avg_total = self.all() / 2;
        (self.refaulted, self.total) = (0, 0);
    }
}

/// The generations of one kind.
#[derive(Clone, Debug, Default)]
struct Kind {
    /// By `seq % MAX_GENS`.
    gens: [List; MAX_GENS as usize],
    min_seq: u32,
    tiers: [Tier; NR_TIERS],
}

impl Kind {
    fn len(&self) -> u32 {
        self.gens.iter().map(List::len).sum()
    }
}

/// Multi-generational LRU.
#[derive(Clone, Debug)]
pub struct MgLru {
    nodes: Vec<Node>,
    kinds: [Kind; 2],
    max_seq: u32,
    /// The next stamp.
    stamp: u32,
    /// All pages with access bits, in no order, and some that lost theirs.
    young: Vec<u32>,
    ghosts: List,
    resident: u32,
    config: MgLruConfig,
    ghost_limit: u32,
    /// Ghost that is being fetched.
    coming: u32,
    effort: Effort,
    dropped: Dropped,
}

fn index(seq: u32) -> usize {
    (seq % MAX_GENS) as usize
}

impl MgLru {
    /// An empty cache.
    ///
    /// # Errors
    /// If a field is out of its range.
    pub fn new(config: MgLruConfig) -> Result<Self, ConfigError> {
        let capacity = check_capacity("mglru", config.capacity)?;
        let shadow = u64::from(config.shadow_percent);
        check("mglru", "shadow_percent", shadow, 1..=400, "1 to 400")?;
        let swappiness = u64::from(config.swappiness);
        check("mglru", "swappiness", swappiness, 1..=199, "1 to 199")?;
        let slots = capacity as usize + config.ghosts() as usize + 1;
        Ok(Self {
            nodes: vec![FREE; slots],
            kinds: Default::default(),
            max_seq: MAX_GENS - 1,
            stamp: 0,
            young: Vec::new(),
            ghosts: List::default(),
            resident: 0,
            ghost_limit: config.ghosts(),
            config,
            coming: NIL,
            effort: Effort::default(),
            dropped: Dropped::default(),
        })
    }

    /// Forgets what is known of a page.
    fn clear(&mut self, page: u32) {
        let node = &mut self.nodes[page as usize];
        *node = Node {
            listed: node.listed,
            ..FREE
        };
    }

    /// A remembered page returns.
    fn refault(&mut self, page: PageRef) {
        let node = self.nodes[page.index()];
        if self.max_seq - node.seq < MAX_GENS {
            let tiers = &mut self.kinds[usize::from(node.kind)].tiers;
            tiers[node.tier()].refaulted += 1;
        }
        self.ghosts.unlink(&mut self.nodes, page.0);
        self.clear(page.0);
    }

    fn drop_page(&mut self, page: u32) {
        self.clear(page);
        self.dropped.push(page);
    }

    /// Forgets the oldest shadows beyond the bound; the one on its way stays.
    fn trim(&mut self) {
        let kept = u32::from(self.coming != NIL);
        while self.ghosts.len() > self.ghost_limit + kept {
            let Some(oldest) = self.ghosts.coldest_but(&self.nodes, self.coming) else {
                break;
            };
            self.ghosts.unlink(&mut self.nodes, oldest);
            self.drop_page(oldest);
        }
    }

    /// Takes a page out that is evicted, and remembers it if it was ever used.
    fn remember(&mut self, page: u32) {
        let node = &mut self.nodes[page as usize];
        let (kind, tier) = (usize::from(node.kind), node.tier());
        self.kinds[kind].tiers[tier].total += 1;
        if node.unread {
            return self.drop_page(page);
        }
        (node.state, node.seq, node.young) = (State::Ghost, self.max_seq, false);
        self.ghosts.push(&mut self.nodes, page);
    }
}

impl Replacement for MgLru {
    fn capacity(&self) -> u32 {
        self.config.capacity
    }

    fn slots(&self) -> u32 {
        self.config.capacity + self.ghost_limit + 1
    }

    fn miss(&mut self, ghost: Option<PageRef>, _insert: &Insert, _now: Picos) {
        let known = ghost.filter(|g| self.state(*g) == State::Ghost);
        debug_assert!(known == ghost, "miss of a page that is no ghost");
        self.coming = known.map_or(NIL, |g| g.0);
        self.trim();
    }

    fn insert(&mut self, page: PageRef, insert: &Insert, _now: Picos) {
        match self.state(page) {
            State::Ghost => self.refault(page),
            State::Unknown if page.index() < self.nodes.len() => {}
            _ => return misuse("insert", page),
        }
        let kind = usize::from(insert.kind == PageKind::File);
        let node = &mut self.nodes[page.index()];
        *node = Node {
            state: State::Resident,
            kind: kind as u8,
            uses: u8::from(insert.fetch == Fetch::Demand),
            unread: insert.fetch == Fetch::Readahead,
            listed: node.listed,
            ..FREE
        };
        self.resident += 1;
        let oldest = self.kinds[kind].min_seq;
        let seq = match insert.kind {
            PageKind::Anon => self.max_seq,
            PageKind::File => oldest + u32::from(self.generations(kind) == MAX_GENS),
        };
        self.enlist(page.0, seq);
        if self.coming == page.0 {
            self.coming = NIL;
        }
        self.trim();
    }

    #[inline]
    fn hit(&mut self, page: PageRef, touch: Touch, _now: Picos) {
        match self.nodes.get_mut(page.index()) {
            Some(node) if matches!(node.state, State::Resident | State::Detached) => {
                node.unread = false;
                match touch.via {
                    Via::Call => node.uses = node.uses.saturating_add(1),
                    Via::Mapping => {
                        node.young = true;
                        if !std::mem::replace(&mut node.listed, true) {
                            self.young.push(page.0);
                        }
                    }
                }
            }
            _ => misuse("hit", page),
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        fill(out, self.order())
    }

    fn detach(&mut self, page: PageRef) {
        if self.state(page) != State::Resident {
            return misuse("detach", page);
        }
        self.pass_over(page.0);
        self.delist(page.0);
        self.nodes[page.index()].state = State::Detached;
    }

    fn reattach(&mut self, page: PageRef) {
        if self.state(page) != State::Detached {
            return misuse("reattach", page);
        }
        let node = &mut self.nodes[page.index()];
        node.state = State::Resident;
        let young = std::mem::take(&mut node.young);
        let seq = match young {
            true => self.max_seq,
            false => self.seq_of(page.0),
        };
        self.enlist(page.0, seq);
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        let state = self.state(page);
        match (state, why) {
            (State::Unknown, _) | (State::Ghost, Gone::Evicted) => return misuse("forget", page),
            (State::Ghost, _) => self.ghosts.unlink(&mut self.nodes, page.0),
            (State::Resident, Gone::Evicted) => {
                self.pass_over(page.0);
                self.delist(page.0);
            }
            (State::Resident, Gone::Deleted) => self.delist(page.0),
            (State::Detached, _) => {}
        }
        self.resident -= u32::from(state != State::Ghost);
        match why {
            Gone::Evicted => self.remember(page.0),
            Gone::Deleted => self.drop_page(page.0),
        }
        if self.state(PageRef(self.coming)) != State::Ghost {
            self.coming = NIL;
        }
        self.settle();
        self.trim();
    }

    fn evict(&mut self) -> Option<PageRef> {
        let scan = self.scan()?;
        self.carry_out(&scan.passed);
        self.delist(scan.victim);
        self.resident -= 1;
        self.remember(scan.victim);
        self.settle();
        self.trim();
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
        for (kind, gens) in (0..).zip(&self.kinds) {
            let generations = self.max_seq - gens.min_seq + 1;
            rule_holds(
                (MIN_GENS..=MAX_GENS).contains(&generations),
                "there are two to four generations",
            )?;
            for seq in gens.min_seq..=self.max_seq {
                let list = &gens.gens[index(seq)];
                list.check(&self.nodes, "generation: links, length, members", |n| {
                    n.state == State::Resident && n.kind == kind && n.seq.max(gens.min_seq) == seq
                })?;
                attached += list.len();
            }
        }
        rule_holds(
            attached == count(State::Resident),
            "attached pages have a generation",
        )?;
        self.ghosts
            .check(&self.nodes, "shadows: links, length, members", |n| {
                n.state == State::Ghost
            })?;
        rule_holds(
            self.ghosts.len() == count(State::Ghost),
            "shadows are listed",
        )?;
        rule_holds(
            attached + count(State::Detached) == self.resident,
            "pages in memory are counted",
        )?;
        for (page, node) in (0..).zip(&self.nodes) {
            rule_holds(
                node.listed || !node.young,
                "pages with access bits are noted",
            )?;
            if node.state != State::Unknown && self.dropped.has(page) {
                return Err(broken("a page with a state is not dropped", page));
            }
        }
        Ok(())
    }
}
