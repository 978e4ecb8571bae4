//! The generations of both kinds: which pages they hold, when the oldest is given up
//! and when a new one begins.

use piebald_policy::contract::replacement::State;

use super::{KINDS, MAX_GENS, MIN_GENS, MgLru, Tier, index};

impl MgLru {
    pub(super) fn generations(&self, kind: usize) -> u32 {
        self.max_seq - self.kinds[kind].min_seq + 1
    }

    /// Attached pages of a kind, oldest generation first.
    pub(super) fn raw(&self, kind: usize) -> impl Iterator<Item = u32> {
        let gens = &self.kinds[kind];
        (gens.min_seq..=self.max_seq).flat_map(|seq| gens.gens[index(seq)].coldest(&self.nodes))
    }

    /// The generation that a page is in: the one that it entered, or the oldest if
    /// that was put into a later one.
    pub(super) fn seq_of(&self, page: u32) -> u32 {
        let node = &self.nodes[page as usize];
        node.seq.max(self.kinds[usize::from(node.kind)].min_seq)
    }

    pub(super) fn enlist(&mut self, page: u32, seq: u32) {
        if self.stamp == u32::MAX {
            self.restamp();
        }
        let node = &mut self.nodes[page as usize];
        (node.seq, node.stamp) = (seq, self.stamp);
        self.stamp += 1;
        let gens = &mut self.kinds[usize::from(node.kind)].gens;
        gens[index(seq)].push(&mut self.nodes, page);
    }

    /// Counts the stamps from 0 on again; once in 2^32 moves.
    fn restamp(&mut self) {
        let order: Vec<u32> = KINDS.into_iter().flat_map(|kind| self.raw(kind)).collect();
        self.stamp = 0;
        for page in order {
            self.nodes[page as usize].stamp = self.stamp;
            self.stamp += 1;
        }
    }

    pub(super) fn delist(&mut self, page: u32) {
        let seq = self.seq_of(page);
        let gens = &mut self.kinds[usize::from(self.nodes[page as usize].kind)].gens;
        gens[index(seq)].unlink(&mut self.nodes, page);
    }

    /// Moves a page to a generation as just looked at: bit and count are cleared.
    pub(super) fn relocate(&mut self, page: u32, seq: u32) {
        self.delist(page);
        let node = &mut self.nodes[page as usize];
        (node.young, node.uses) = (false, 0);
        self.enlist(page, seq);
        self.effort.moved += 1;
    }

    /// Gives up empty oldest generations, and ages if too few are left.
    pub(super) fn settle(&mut self) {
        self.advance();
        if self.must_age() {
            self.age();
            self.advance();
        }
    }

    fn advance(&mut self) {
        for kind in KINDS {
            while self.generations(kind) > MIN_GENS {
                let gens = &mut self.kinds[kind];
                if !gens.gens[index(gens.min_seq)].is_empty() {
                    break;
                }
                gens.min_seq += 1;
                gens.tiers.iter_mut().for_each(Tier::carry_over);
            }
        }
    }

    fn must_age(&self) -> bool {
        let len = |seq: u32| -> u64 {
            let lens = self.kinds.iter().filter(|k| seq >= k.min_seq);
            lens.map(|k| u64::from(k.gens[index(seq)].len())).sum()
        };
        // A kind without pages has no generations to keep.
        let kinds = KINDS.into_iter().filter(|k| self.kinds[*k].len() > 0);
        match kinds.map(|k| self.generations(k)).min() {
            Some(3) => {
                let total: u64 = (self.max_seq - 2..=self.max_seq).map(len).sum();
                len(self.max_seq) * 2 > total || len(self.max_seq - 2) * 4 < total
            }
            Some(0..3) => true,
            _ => false,
        }
    }

    /// Begins a new youngest generation with all pages that have access bits.
    fn age(&mut self) {
        for kind in KINDS {
            if self.generations(kind) == MAX_GENS {
                self.fold(kind);
            }
        }
        self.max_seq += 1;
        for page in self.take_young() {
            self.relocate(page, self.max_seq);
        }
    }

    /// The attached pages with access bits, in the order of their lists. Detached ones
    /// stay noted.
    fn take_young(&mut self) -> Vec<u32> {
        let mut young = std::mem::take(&mut self.young);
        self.effort.scanned += young.len() as u64;
        young.retain(|&page| {
            let node = &mut self.nodes[page as usize];
            node.listed = node.young && node.state == State::Detached;
            if node.listed {
                self.young.push(page);
            }
            node.young && node.state == State::Resident
        });
        young.sort_unstable_by_key(|&page| {
            let node = &self.nodes[page as usize];
            (node.kind, node.seq, node.stamp)
        });
        young
    }

    /// Puts the oldest generation of a kind below the second oldest.
    fn fold(&mut self, kind: usize) {
        let gens = &mut self.kinds[kind];
        let (old, next) = (index(gens.min_seq), index(gens.min_seq + 1));
        let oldest = std::mem::take(&mut gens.gens[old]);
        gens.gens[next].put_below(&mut self.nodes, oldest);
        gens.min_seq += 1;
        gens.tiers.iter_mut().for_each(Tier::carry_over);
    }
}
