//! Which page is evicted, and what becomes of those that are passed over.

use super::{KINDS, MgLru, NR_TIERS, Tier};

/// How a search for a victim ended.
pub(super) struct Scan {
    pub victim: u32,
    /// Looked at before it, in this order.
    pub passed: Vec<u32>,
}

impl MgLru {
    /// Does `set` do no worse in refaults than `rival`, weighed 1 : 1 by gains?
    fn no_worse(&self, set: &Tier, set_gain: u64, rival: &Tier, rival_gain: u64) -> bool {
        let ours = u128::from(rival.refaults())
            * u128::from(set.all() + self.config.min_refaults)
            * u128::from(set_gain);
        let theirs =
            u128::from(set.refaults() + 1) * u128::from(rival.all()) * u128::from(rival_gain);
        rival.refaults() < self.config.min_refaults || ours <= theirs
    }

    /// The lowest protected tier of a kind; [`NR_TIERS`] if none is.
    pub(super) fn protected_from(&self, kind: usize) -> usize {
        let tiers = &self.kinds[kind].tiers;
        let fits = |tier: &usize| self.no_worse(&tiers[0], 2, &tiers[*tier], 3);
        (1..NR_TIERS).find(|t| !fits(t)).unwrap_or(NR_TIERS)
    }

    /// The kinds in the order in which they are looked at.
    pub(super) fn kind_order(&self) -> [usize; 2] {
        let [anon, file] = [&self.kinds[0], &self.kinds[1]];
        let swappiness = u64::from(self.config.swappiness);
        let (one, other) = (&anon.tiers[0], &file.tiers[0]);
        let file_first =
            anon.min_seq >= file.min_seq && self.no_worse(one, swappiness, other, 200 - swappiness);
        if file_first { [1, 0] } else { [0, 1] }
    }

    /// 0 for a page that may go, 1 for a protected one, 2 for a young one.
    fn standing(&self, page: u32, protected: usize) -> u8 {
        let node = &self.nodes[page as usize];
        match (node.young, node.tier() >= protected) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    pub(super) fn order(&self) -> impl Iterator<Item = u32> {
        let kinds = self
            .kind_order()
            .map(|kind| (kind, self.protected_from(kind)));
        (0..=2).flat_map(move |standing| {
            kinds.into_iter().flat_map(move |(kind, protected)| {
                let pages = self.raw(kind);
                pages.filter(move |page| self.standing(*page, protected) == standing)
            })
        })
    }

    /// The first victim and what is passed over to reach it.
    pub(super) fn scan(&self) -> Option<Scan> {
        if let Some(scan) = self.search(|_| true, 0) {
            return Some(scan);
        }
        // All are protected or young; a protected one comes before a young one.
        let mut passed = Vec::new();
        for kind in self.kind_order() {
            passed.extend(self.raw(kind));
        }
        let protected = KINDS.map(|kind| self.protected_from(kind));
        let standing = |page: &u32| {
            let kind = self.nodes[*page as usize].kind;
            self.standing(*page, protected[usize::from(kind)])
        };
        let victim = passed.iter().copied().min_by_key(standing)?;
        passed.retain(|page| *page != victim);
        Some(Scan { victim, passed })
    }

    /// The first page that may go and that `suits`, if no more than `reach` pages that
    /// may go come before it; and the young and protected pages before it.
    fn search(&self, suits: impl Fn(u32) -> bool, reach: u32) -> Option<Scan> {
        let (mut passed, mut others) = (Vec::new(), 0);
        for kind in self.kind_order() {
            let protected = self.protected_from(kind);
            for page in self.raw(kind) {
                match self.standing(page, protected) == 0 {
                    true if suits(page) => {
                        return Some(Scan {
                            victim: page,
                            passed,
                        });
                    }
                    true if others == reach => return None,
                    true => others += 1,
                    false => passed.push(page),
                }
            }
        }
        None
    }

    /// A page is taken: what a search decides about the pages before it is carried out,
    /// if the search arrives at it.
    pub(super) fn pass_over(&mut self, page: u32) {
        let protected = self.protected_from(self.nodes[page as usize].kind.into());
        let scan = match self.standing(page, protected) {
            0 => self.search(|other| other == page, self.config.reach),
            _ => self.scan().filter(|scan| scan.victim == page),
        };
        if let Some(scan) = scan {
            self.carry_out(&scan.passed);
        }
    }

    /// Carries out what a search decided about the pages that it passed over.
    pub(super) fn carry_out(&mut self, passed: &[u32]) {
        self.effort.scanned += passed.len() as u64 + 1;
        for &page in passed {
            let node = self.nodes[page as usize];
            if node.young {
                self.relocate(page, self.max_seq);
                continue;
            }
            let tier = &mut self.kinds[usize::from(node.kind)].tiers[node.tier()];
            tier.total += 1;
            self.relocate(page, (self.seq_of(page) + 1).min(self.max_seq));
        }
    }
}
