//! DULO once more, on plain vectors, written from the text of the paper and with no
//! thought of speed.

use std::collections::{BTreeMap, BTreeSet};

use piebald_policy::{
    contract::replacement::{Base, Gone, Insert, PageRef, Replacement, State, Touch, Via},
    dulo::{Config, Hits, Sections},
};

use super::{NOW, Simple};

/// `H` with 32 fraction bits, never renormalised.
type H = u128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Evicting {
    page: u32,
    sequence: u64,
    h: H,
    size: u32,
}

pub struct Oracle {
    pub base: Simple,
    config: Config,
    sections: Sections,
    /// The evicting section, bottom first.
    section: Vec<Evicting>,
    held: BTreeSet<u32>,
    places: BTreeMap<u32, u64>,
    /// The block table: at most two times per block, the latest last.
    table: BTreeMap<u64, Vec<u32>>,
    clock: u32,
    inflation: H,
    next_sequence: u64,
}

impl Oracle {
    pub fn new(base: Simple, config: Config) -> Self {
        let sections = config.sections(base.capacity()).unwrap();
        Self {
            base,
            config,
            sections,
            section: Vec::new(),
            held: BTreeSet::new(),
            places: BTreeMap::new(),
            table: BTreeMap::new(),
            clock: 0,
            inflation: 0,
            next_sequence: 0,
        }
    }

    /// (page, H - L, blocks of the sequence), bottom first.
    pub fn evicting(&self) -> Vec<(u32, u64, u32)> {
        let entry = |e: &Evicting| (e.page, (e.h - self.inflation) as u64, e.size);
        self.section.iter().map(entry).collect()
    }

    pub fn times(&self, block: u64) -> [u32; 2] {
        let times = self.table.get(&block).cloned().unwrap_or_default();
        let from_last = |n: usize| times.iter().rev().nth(n).copied().unwrap_or(0);
        [from_last(0), from_last(1)]
    }

    fn wanted(&self, page: u32) -> bool {
        self.base.wanted(PageRef(page))
    }

    fn position(&self, page: u32) -> Option<usize> {
        self.section.iter().position(|e| e.page == page)
    }

    fn staging(&self) -> usize {
        self.base.cold_first().len()
    }

    fn refill_if_due(&mut self) {
        let bank_is_full =
            self.staging() >= (self.sections.correlation + self.sections.bank) as usize;
        if bank_is_full && self.section.len() <= self.sections.evicting as usize {
            self.refill();
        }
    }

    /// Memory is full below its capacity: the staging section has only its least size.
    fn refill_under_pressure(&mut self) {
        let least = (self.sections.evicting - self.sections.bank).max(1) as usize;
        let bank_is_full =
            self.staging() >= (self.config.correlation + self.sections.bank) as usize;
        if bank_is_full && self.section.len() < least {
            self.refill();
        }
    }

    fn refill(&mut self) {
        let mut bank = self.base.cold_first();
        bank.truncate(self.sections.bank as usize);
        self.clock += 1;
        let mut owner = BTreeMap::new();
        for page in &bank {
            if let Some(block) = self.places.get(page)
                && !owner.contains_key(block)
            {
                owner.insert(*block, *page);
                let times = self.table.entry(*block).or_default();
                times.push(self.clock);
                if times.len() > 2 {
                    times.remove(0);
                }
            }
        }
        let formed = self.form(&owner, &bank);
        self.merge(formed, &bank);
        for page in bank {
            self.base.detach(PageRef(page));
        }
    }

    /// Section 3.3.
    fn form(&self, owner: &BTreeMap<u64, u32>, bank: &[u32]) -> Vec<Vec<u32>> {
        let mut formed: Vec<Vec<u32>> = Vec::new();
        for (block, page) in owner {
            let before = block.checked_sub(1).and_then(|b| owner.get(&b));
            if let Some(before) = before
                && let Some(last) = formed.last_mut()
                && self.base.class(PageRef(*before)) == self.base.class(PageRef(*page))
                && last.len() < usize::from(self.config.max_sequence)
                && self.have_a_common_past(block - 1, *block)
            {
                last.push(*page);
            } else {
                formed.push(vec![*page]);
            }
        }
        let owned: BTreeSet<u32> = owner.values().copied().collect();
        let alone = bank.iter().filter(|page| !owned.contains(page));
        formed.extend(alone.map(|page| vec![*page]));
        formed
    }

    /// Neither was in a bank before, or both were and at times that differ by at most 1.
    fn have_a_common_past(&self, a: u64, b: u64) -> bool {
        match (self.table[&a].as_slice(), self.table[&b].as_slice()) {
            ([_], [_]) => true,
            ([a, _], [b, _]) => a.abs_diff(*b) <= 1,
            _ => false,
        }
    }

    fn merge(&mut self, formed: Vec<Vec<u32>>, bank: &[u32]) {
        let position = |page: &u32| bank.iter().position(|p| p == page).unwrap();
        let mut runs: Vec<Vec<Evicting>> = Vec::new();
        for mut pages in formed {
            pages.sort_by_key(position);
            self.next_sequence += 1;
            let size = pages.len() as u32;
            let entry = |page| Evicting {
                page,
                sequence: self.next_sequence,
                h: self.inflation + H::from((1u64 << 32) / u64::from(size)),
                size,
            };
            runs.push(pages.into_iter().map(entry).collect());
        }
        runs.sort_by_key(|run| {
            (
                run[0].h,
                std::cmp::Reverse(run.len()),
                position(&run[0].page),
            )
        });
        // Stable: what was in the section stays below what has the same H.
        self.section.extend(runs.into_iter().flatten());
        self.section.sort_by_key(|e| e.h);
    }

    fn give_back(&mut self, page: u32) {
        let at = self.position(page).unwrap();
        self.section.remove(at);
        self.base.reattach(PageRef(page));
    }

    /// The loop of Figure 2.
    pub fn miss(&mut self, insert: &Insert) {
        self.base.miss(None, insert, NOW);
        if self.base.resident() < self.base.capacity() {
            return;
        }
        for _ in 0..self.base.resident() {
            if self.section.is_empty() && self.staging() > 0 {
                self.refill();
            }
            let bottom = self.section.first().map(|e| e.page);
            let Some(bottom) = bottom.filter(|page| self.wanted(*page)) else {
                return;
            };
            self.give_back(bottom);
            self.refill_if_due();
        }
    }

    pub fn insert(&mut self, page: PageRef, insert: &Insert) {
        self.base.insert(page, insert, NOW);
        if let Some(block) = insert.at {
            self.places.insert(page.0, block.0);
        }
        self.refill_if_due();
    }

    pub fn place(&mut self, page: PageRef, at: Option<u64>) {
        match at {
            Some(block) => self.places.insert(page.0, block),
            None => self.places.remove(&page.0),
        };
    }

    pub fn hit(&mut self, page: PageRef, touch: Touch) {
        let at = self.position(page.0);
        if self.config.hits == Hits::Restore
            && let Some(at) = at
        {
            return self.restore(at);
        }
        self.base.hit(page, touch, NOW);
        let earns = self.config.hits == Hits::Promote && touch.via == Via::Call;
        if earns && at.is_some() && self.wanted(page.0) {
            self.give_back(page.0);
            self.refill_if_due();
        }
    }

    fn restore(&mut self, at: usize) {
        let hit = self.section.remove(at);
        let (mut run, rest): (Vec<_>, Vec<_>) = self
            .section
            .iter()
            .partition(|e| e.sequence == hit.sequence);
        run.push(hit);
        let h = self.inflation + H::from((1u64 << 32) / run.len() as u64);
        run.iter_mut().for_each(|e| e.h = h);
        self.section = rest;
        self.section.extend(run);
        self.section.sort_by_key(|e| e.h);
    }

    pub fn proposals(&self) -> Vec<u32> {
        let mut staging = vec![PageRef(0); self.staging()];
        let n = self.base.propose(&mut staging);
        assert_eq!(n, staging.len());
        let section = self.section.iter().map(|e| e.page);
        let staging = staging.iter().map(|p| p.0);
        let wish = |w: bool| {
            let keep = move |page: &u32| self.wanted(*page) == w;
            section
                .clone()
                .filter(keep)
                .chain(staging.clone().filter(keep))
        };
        wish(false).chain(wish(true)).collect()
    }

    /// Wanted pages below a victim have their turn if the victim is among the first.
    fn pass_over(&mut self, page: u32) {
        if self.wanted(page) {
            return;
        }
        let below = self.position(page).unwrap_or(self.section.len());
        let below: Vec<u32> = self.section[..below].iter().map(|e| e.page).collect();
        let (wanted, passed): (Vec<u32>, Vec<u32>) =
            below.into_iter().partition(|page| self.wanted(*page));
        if passed.len() <= self.config.reach as usize {
            wanted.into_iter().for_each(|page| self.give_back(page));
        }
    }

    fn leave(&mut self, page: u32) -> Option<Evicting> {
        self.held.remove(&page);
        self.position(page).map(|at| self.section.remove(at))
    }

    pub fn forget(&mut self, page: PageRef, why: Gone) {
        let state = self.state(page);
        let in_memory = matches!(state, State::Resident | State::Detached);
        if why == Gone::Evicted && state == State::Resident {
            self.pass_over(page.0);
        }
        let left = self.leave(page.0);
        self.base.forget(page, why);
        self.places.remove(&page.0);
        if let Some(e) = left
            && why == Gone::Evicted
        {
            self.inflate(&e);
        }
        self.refill_if_due();
        if why == Gone::Evicted && in_memory {
            self.refill_under_pressure();
        }
    }

    /// L rises with the last page of a sequence.
    fn inflate(&mut self, left: &Evicting) {
        if self.section.iter().all(|o| o.sequence != left.sequence) {
            let bottom = self.section.first().map_or(left.h, |b| b.h);
            self.inflation = self.inflation.max(left.h.min(bottom));
        }
    }

    pub fn detach(&mut self, page: PageRef) {
        self.pass_over(page.0);
        match self.leave(page.0) {
            Some(left) => self.inflate(&left),
            None => self.base.detach(page),
        }
        self.held.insert(page.0);
        self.refill_if_due();
    }

    pub fn reattach(&mut self, page: PageRef) {
        assert!(self.held.remove(&page.0));
        self.base.reattach(page);
        self.refill_if_due();
    }

    pub fn state(&self, page: PageRef) -> State {
        match self.position(page.0) {
            Some(_) => State::Resident,
            None => self.base.state(page),
        }
    }
}
