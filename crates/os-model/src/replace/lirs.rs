//! LIRS: S. Jiang and X. Zhang, *LIRS: an efficient low inter-reference recency
//! set replacement policy*, SIGMETRICS 2002, section 3.
//!
//! Blocks with low inter-reference recency (LIR) fill all memory but a small part,
//! which passes the others (HIR) through. Stack S holds LIR blocks and those HIR
//! blocks, in memory or not, that were used after the coldest LIR block; queue Q
//! holds the HIR blocks in memory, and its front is the victim.
//! * A LIR block that is used goes to the top of S; S is *pruned*: HIR blocks at
//!   its bottom go until a LIR block lies there.
//! * A HIR block that is used while in S becomes LIR, and the LIR block at the
//!   bottom of S becomes HIR at the end of Q. One that is not in S goes on top of
//!   S and to the end of Q.
//! * A block that comes in becomes LIR if it is in S (or while LIR blocks do not
//!   fill their share), else HIR on top of S and at the end of Q.
//!
//! *Bound of S.* The paper bounds the stack without fixing by how much; here the
//! blocks not in memory are bounded, and beyond the bound the one that left
//! memory first is forgotten.
//!
//! *Beyond the paper.* When Q is empty (all HIR blocks detached or deleted) LIR
//! blocks are victims, from the bottom of S. A page that was read ahead enters Q
//! only: nobody has used it, so it has no recency. A detached page keeps its place
//! in S, which is history; only its place in Q is given up.
//!
//! 20 B of state per slot, `capacity + ghosts + 1` slots.

use piebald_policy::contract::replacement::{
    Base, BrokenOrder, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};
use piebald_units::Picos;

use super::{
    ConfigError, check, check_capacity,
    kit::{
        Dropped, Link, Linked, List, NIL, Note, broken, fill, linked, misuse, rule_holds, share,
    },
};

/// Configuration of LIRS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LirsConfig {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity: u32,
    /// Share of memory for HIR blocks in percent, 1 to 99, at least one page.
    /// 1 in the paper (section 4.1 `[M]`).
    pub hir_percent: u32,
    /// Blocks not in memory that are remembered at most, in percent of the
    /// capacity: 1 to 400. 100, a stack of about twice the memory: so other
    /// implementations bound it. (Zipf 1.0, 1 M ids, 100 k pages: this bound
    /// misses .187, a stack without bound .190.)
    pub ghost_percent: u32,
}

impl LirsConfig {
    /// The published values.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            hir_percent: 1,
            ghost_percent: 100,
        }
    }

    /// Pages that may be LIR.
    fn lir_limit(&self) -> u32 {
        self.capacity - share(self.capacity, self.hir_percent, 1)
    }

    fn ghosts(&self) -> u32 {
        share(self.capacity, self.ghost_percent, 1)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Nowhere,
    Lir,
    Hir,
    Ghost,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    s: Link,
    /// In Q if HIR and attached, in the list of ghosts if a ghost.
    q: Link,
    status: Status,
    in_s: bool,
    detached: bool,
    note: Note,
}
linked!(Node, 0, s);
linked!(Node, 1, q);

/// Low inter-reference recency set replacement.
#[derive(Clone, Debug)]
pub struct Lirs {
    nodes: Vec<Node>,
    s: List<0>,
    q: List<1>,
    /// Ghosts, the first to leave memory at the cold end.
    ghosts: List<1>,
    /// LIR blocks, detached ones included.
    lirs: u32,
    /// Detached HIR blocks.
    held_hirs: u32,
    capacity: u32,
    lir_limit: u32,
    ghost_limit: u32,
    /// Ghost that is being fetched: kept until it is here or another is.
    coming: u32,
    /// Ghosts that fell off S and are still to be dropped.
    pruned: Vec<u32>,
    dropped: Dropped,
}

impl Lirs {
    /// An empty cache.
    ///
    /// # Errors
    /// If a field is out of its range.
    pub fn new(config: LirsConfig) -> Result<Self, ConfigError> {
        let capacity = check_capacity("lirs", config.capacity)?;
        let hir = u64::from(config.hir_percent);
        check("lirs", "hir_percent", hir, 1..=99, "1 to 99")?;
        let ghosts = u64::from(config.ghost_percent);
        check("lirs", "ghost_percent", ghosts, 1..=400, "1 to 400")?;
        let slots = capacity as usize + config.ghosts() as usize + 1;
        Ok(Self {
            nodes: vec![Node::default(); slots],
            s: List::default(),
            q: List::default(),
            ghosts: List::default(),
            lirs: 0,
            held_hirs: 0,
            capacity,
            lir_limit: config.lir_limit(),
            ghost_limit: config.ghosts(),
            coming: NIL,
            pruned: Vec::new(),
            dropped: Dropped::default(),
        })
    }

    /// Blocks that are LIR now.
    pub fn lir_blocks(&self) -> u32 {
        self.lirs
    }

    /// The victims: Q from its front, then LIR blocks from the bottom of S.
    fn order(&self) -> impl Iterator<Item = u32> {
        let lir = |page: &u32| {
            let node = &self.nodes[*page as usize];
            node.status == Status::Lir && !node.detached
        };
        let hirs = self.q.coldest(&self.nodes);
        hirs.chain(self.s.coldest(&self.nodes).filter(lir))
    }

    fn stack(&mut self, page: u32) {
        let node = &mut self.nodes[page as usize];
        if node.in_s {
            return self.s.raise(&mut self.nodes, page);
        }
        node.in_s = true;
        self.s.push(&mut self.nodes, page);
    }

    fn unstack(&mut self, page: u32) {
        if std::mem::take(&mut self.nodes[page as usize].in_s) {
            self.s.unlink(&mut self.nodes, page);
        }
    }

    /// Takes a page off the books that its status keeps, except S.
    fn leave_status(&mut self, page: u32) {
        let node = self.nodes[page as usize];
        match node.status {
            Status::Nowhere => {}
            Status::Lir => self.lirs -= 1,
            Status::Hir if node.detached => self.held_hirs -= 1,
            Status::Hir => self.q.unlink(&mut self.nodes, page),
            Status::Ghost => self.ghosts.unlink(&mut self.nodes, page),
        }
    }

    /// Makes a page HIR, at the end of Q unless it is detached.
    fn enter_hir(&mut self, page: u32) {
        let node = &mut self.nodes[page as usize];
        node.status = Status::Hir;
        match node.detached {
            true => self.held_hirs += 1,
            false => self.q.push(&mut self.nodes, page),
        }
    }

    /// Makes a page LIR on top of S, at the expense of the coldest LIR block.
    fn promote(&mut self, page: u32) {
        self.leave_status(page);
        self.nodes[page as usize].status = Status::Lir;
        self.lirs += 1;
        self.stack(page);
        self.prune();
        while self.lirs > self.lir_limit {
            let Some(bottom) = self.s.tail() else { break };
            self.lirs -= 1;
            self.unstack(bottom);
            self.enter_hir(bottom);
            self.prune();
        }
    }

    /// Takes HIR blocks off the bottom of S until a LIR block lies there. Ghosts
    /// among them are given up by the next call after which the host looks for
    /// dropped numbers: a hit is none.
    fn prune(&mut self) {
        while let Some(bottom) = self.s.tail() {
            match self.nodes[bottom as usize].status {
                Status::Lir => break,
                Status::Ghost => {
                    self.unstack(bottom);
                    self.pruned.push(bottom);
                }
                _ => self.unstack(bottom),
            }
        }
    }

    /// A use of an attached HIR block.
    fn use_hir(&mut self, page: u32, known: bool) {
        if (known && self.nodes[page as usize].in_s) || self.lirs < self.lir_limit {
            return self.promote(page);
        }
        self.stack(page);
        self.q.raise(&mut self.nodes, page);
        self.prune();
    }

    fn drop_page(&mut self, page: u32) {
        self.leave_status(page);
        self.unstack(page);
        self.nodes[page as usize] = Node::default();
        self.dropped.push(page);
    }

    fn remember(&mut self, page: u32) {
        self.leave_status(page);
        let node = &mut self.nodes[page as usize];
        (node.status, node.detached, node.note) = (Status::Ghost, false, Note::Plain);
        self.ghosts.push(&mut self.nodes, page);
        self.prune();
    }

    /// Drops the ghosts that fell off S and the oldest ones beyond the bound; the
    /// one on its way stays and does not count.
    fn trim(&mut self) {
        while let Some(page) = self.pruned.pop() {
            let stale = self.is_ghost(page) && !self.nodes[page as usize].in_s;
            if stale && page != self.coming {
                self.drop_page(page);
            }
        }
        let kept = u32::from(self.is_ghost(self.coming));
        while self.ghosts.len() > self.ghost_limit + kept {
            let Some(oldest) = self.ghosts.coldest_but(&self.nodes, self.coming) else {
                break;
            };
            self.drop_page(oldest);
        }
    }

    fn is_ghost(&self, page: u32) -> bool {
        let node = self.nodes.get(page as usize);
        node.is_some_and(|n| n.status == Status::Ghost)
    }

    /// Another page is on its way now.
    fn expect(&mut self, page: u32) {
        let before = std::mem::replace(&mut self.coming, page);
        if before != NIL {
            self.pruned.push(before);
        }
        self.trim();
    }
}

impl Replacement for Lirs {
    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn slots(&self) -> u32 {
        self.capacity + self.ghost_limit + 1
    }

    #[inline]
    fn miss(&mut self, ghost: Option<PageRef>, _insert: &Insert, _now: Picos) {
        let known = ghost.is_none_or(|g| self.is_ghost(g.0));
        debug_assert!(known, "miss of a page that is no ghost");
        self.expect(ghost.filter(|_| known).map_or(NIL, |g| g.0));
    }

    #[inline]
    fn insert(&mut self, page: PageRef, insert: &Insert, _now: Picos) {
        if page.index() >= self.nodes.len() {
            return misuse("insert", page);
        }
        let asked = insert.fetch == Fetch::Demand;
        let known = match self.state(page) {
            State::Unknown => false,
            State::Ghost => self.nodes[page.index()].in_s,
            State::Resident | State::Detached => return misuse("insert", page),
        };
        self.leave_status(page.0);
        let node = &mut self.nodes[page.index()];
        node.note = if known { Note::Plain } else { Note::of(insert) };
        self.enter_hir(page.0);
        if asked {
            self.use_hir(page.0, known);
        }
        match self.coming == page.0 {
            true => self.expect(NIL),
            false => self.trim(),
        }
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _touch: Touch, _now: Picos) {
        let Some(node) = self.nodes.get_mut(page.index()) else {
            return misuse("hit", page);
        };
        let first = node.note.first_use();
        match (node.status, node.detached) {
            (Status::Lir | Status::Hir, true) if first => {}
            (Status::Lir | Status::Hir, true) => node.note = Note::Used,
            (Status::Lir, false) => {
                self.s.raise(&mut self.nodes, page.0);
                self.prune();
            }
            (Status::Hir, false) => self.use_hir(page.0, true),
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
        if self.nodes[page.index()].status == Status::Hir {
            self.q.unlink(&mut self.nodes, page.0);
            self.held_hirs += 1;
        }
        self.nodes[page.index()].detached = true;
    }

    fn reattach(&mut self, page: PageRef) {
        if self.state(page) != State::Detached {
            return misuse("reattach", page);
        }
        let node = &mut self.nodes[page.index()];
        node.detached = false;
        let used = node.note.take_used();
        if node.status == Status::Lir {
            self.s.raise(&mut self.nodes, page.0);
            return self.prune();
        }
        self.held_hirs -= 1;
        self.q.push(&mut self.nodes, page.0);
        if used {
            self.use_hir(page.0, true);
        }
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        let state = self.state(page);
        match (state, why) {
            (State::Unknown, _) | (State::Ghost, Gone::Evicted) => misuse("forget", page),
            (_, Gone::Evicted) if self.nodes[page.index()].in_s => self.remember(page.0),
            _ => {
                self.drop_page(page.0);
                self.prune();
            }
        }
        self.trim();
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        let page = PageRef(self.order().next()?);
        self.forget(page, Gone::Evicted);
        Some(page)
    }

    #[inline]
    fn dropped(&mut self) -> Option<PageRef> {
        self.dropped.pop()
    }

    fn state(&self, page: PageRef) -> State {
        let Some(node) = self.nodes.get(page.index()) else {
            return State::Unknown;
        };
        match node.status {
            Status::Nowhere => State::Unknown,
            Status::Ghost => State::Ghost,
            Status::Lir | Status::Hir if node.detached => State::Detached,
            Status::Lir | Status::Hir => State::Resident,
        }
    }

    fn resident(&self) -> u32 {
        self.lirs + self.q.len() + self.held_hirs
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let count = |test: fn(&Node) -> bool| self.nodes.iter().filter(|n| test(n)).count() as u32;
        let in_q = |n: &Node| n.status == Status::Hir && !n.detached;
        self.s
            .check(&self.nodes, "S: links, length, members", |n| n.in_s)?;
        self.q
            .check(&self.nodes, "Q: links, length, members", in_q)?;
        let ghost = |n: &Node| n.status == Status::Ghost;
        self.ghosts
            .check(&self.nodes, "ghosts: links, length, members", ghost)?;
        rule_holds(count(|n| n.in_s) == self.s.len(), "S holds what says so")?;
        rule_holds(
            count(in_q) == self.q.len(),
            "Q holds all attached HIR blocks",
        )?;
        rule_holds(count(ghost) == self.ghosts.len(), "ghosts are listed")?;
        let held = count(|n| n.status == Status::Hir && n.detached);
        rule_holds(held == self.held_hirs, "detached HIR blocks are counted")?;
        let lirs = count(|n| n.status == Status::Lir);
        rule_holds(lirs == self.lirs, "LIR blocks are counted")?;
        rule_holds(lirs <= self.lir_limit, "LIR blocks keep their limit")?;
        let bottom = self.s.tail().map(|p| self.nodes[p as usize].status);
        rule_holds(
            bottom.is_none_or(|b| b == Status::Lir),
            "a LIR block lies at the bottom of S",
        )?;
        for (page, node) in (0..).zip(&self.nodes) {
            let lost = match node.status {
                Status::Nowhere => node.in_s,
                Status::Lir => !node.in_s,
                Status::Ghost => !node.in_s && page != self.coming && !self.pruned.contains(&page),
                Status::Hir => node.in_s && node.note == Note::Unread,
            };
            if lost || (node.status != Status::Nowhere && self.dropped.has(page)) {
                return Err(broken("S and the status of a page agree", page));
            }
        }
        Ok(())
    }
}

impl Base for Lirs {
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        self.propose(out)
    }

    fn wanted(&self, page: PageRef) -> bool {
        let node = self.nodes.get(page.index());
        node.is_some_and(|n| n.note == Note::Used)
    }
}
