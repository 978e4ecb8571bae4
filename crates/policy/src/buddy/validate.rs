//! Recounting everything from scratch.

use piebald_units::{ColorSet, Order, Pfn};

use super::{
    Books, MAX_ORDER, NR_ORDERS, PAGEBLOCK_ORDER,
    migrate::MigrateType,
    store::{List, Parts},
    table::{self, State},
    work::{free_of, owned_of, size},
};
use crate::contract::Broken;

/// What a walk over the table finds.
#[derive(Default)]
struct Census {
    free: u64,
    owned: u64,
    /// Free blocks by order.
    blocks: [u32; NR_ORDERS],
    /// The pageblock that the walk is in, and what was counted in it.
    pageblock: u32,
    /// Pageblocks with frames but no free ones.
    full: u32,
    its_free: u32,
    its_owned: u32,
}

struct Check<'a> {
    parts: &'a Parts<'a>,
    books: &'a Books,
}

/// Compares all lent memory and the books with a recount.
pub(super) fn validate(parts: &Parts<'_>, books: &Books) -> Result<(), Broken> {
    let check = Check { parts, books };
    let census = check.table()?;
    if census.blocks != books.free_blocks() {
        return Err(check.broken("count of free blocks differs from a recount", 0));
    }
    if (census.free, census.owned, census.full) != (books.free, books.owned, books.full) {
        return Err(check.broken("count of frames differs from a recount", 0));
    }
    let mut listed = check.spares()?;
    for kind in MigrateType::ALL.map(|kind| kind as u8) {
        for (order, listed) in (0u8..).zip(&mut listed) {
            let found = check.lists(kind, order)?;
            *listed = listed.wrapping_add(found);
            check.bitmap(kind, order)?;
        }
    }
    if listed != census.blocks {
        return Err(check.broken("free block is on no list", 0));
    }
    Ok(())
}

impl Check<'_> {
    fn broken(&self, rule: &'static str, at: u32) -> Broken {
        Broken {
            rule,
            frame: self.books.frame(at),
        }
    }

    fn state(&self, at: u32) -> u8 {
        table::byte(self.parts.states, at)
    }

    /// Walks the table block by block.
    #[inline(never)]
    fn table(&self) -> Result<Census, Broken> {
        let mut census = Census::default();
        let mut at = 0;
        while at < self.books.frames {
            let state = table::state(self.state(at));
            let (order, free) = match state {
                State::Inner => {
                    self.enter(&mut census, at)?;
                    at = at.wrapping_add(1);
                    continue;
                }
                State::Free { order, .. } => (order, true),
                State::Granted { order } => (order, false),
            };
            self.block(at, order, free)?;
            for part in 0..size(order.saturating_sub(PAGEBLOCK_ORDER)) {
                let part = part << PAGEBLOCK_ORDER;
                self.enter(&mut census, at.wrapping_add(part))?;
                let frames = size(order.min(PAGEBLOCK_ORDER));
                census.its_owned = census.its_owned.wrapping_add(frames);
                census.its_free = census.its_free.wrapping_add(if free { frames } else { 0 });
            }
            let frames = u64::from(size(order));
            census.owned = census.owned.wrapping_add(frames);
            if free {
                census.free = census.free.wrapping_add(frames);
                if let Some(n) = census.blocks.get_mut(usize::from(order)) {
                    *n = n.wrapping_add(1);
                }
            }
            at = at.wrapping_add(size(order));
        }
        self.enter(&mut census, u32::MAX)?;
        Ok(census)
    }

    /// One block: its place, its inside, and whether it should have merged.
    fn block(&self, at: u32, order: u8, free: bool) -> Result<(), Broken> {
        if order > MAX_ORDER || at & size(order).wrapping_sub(1) != 0 {
            return Err(self.broken("block is too large or misaligned", at));
        }
        let end = at.checked_add(size(order));
        if end.is_none_or(|end| end > self.books.frames) {
            return Err(self.broken("block reaches beyond the table", at));
        }
        let inside = |f: &u32| table::state(self.state(*f)) != State::Inner;
        if let Some(f) = (at.wrapping_add(1)..at.wrapping_add(size(order))).find(inside) {
            return Err(self.broken("a block begins inside another", f));
        }
        let buddy = table::state(self.state(at ^ size(order)));
        let merges = matches!(buddy, State::Free { order: o, .. } if o == order);
        if free && order < MAX_ORDER && merges {
            return Err(self.broken("two free buddies are not merged", at));
        }
        Ok(())
    }

    /// Compares the pageblock that the walk leaves with what was counted in it.
    fn enter(&self, census: &mut Census, at: u32) -> Result<(), Broken> {
        let now = at >> PAGEBLOCK_ORDER;
        if now == census.pageblock {
            return Ok(());
        }
        let left = census.pageblock;
        let entry = self.parts.pageblocks.get(left as usize).copied();
        let entry = entry.unwrap_or(0);
        if (free_of(entry), owned_of(entry)) != (census.its_free, census.its_owned) {
            let rule = "counts of a pageblock differ from a recount";
            return Err(self.broken(rule, left << PAGEBLOCK_ORDER));
        }
        let full = census.its_free == 0 && census.its_owned > 0;
        census.full = census.full.wrapping_add(u32::from(full));
        (census.pageblock, census.its_free, census.its_owned) = (now, 0, 0);
        Ok(())
    }

    /// The lists of one order and type; answers how many blocks are on them.
    fn lists(&self, kind: u8, order: u8) -> Result<u32, Broken> {
        let mut found = 0u32;
        for n in 0..self.parts.map.lists(Order(order)) {
            let id = self.list_id(kind, order, n);
            let list = self.parts.lists.get(id).copied().unwrap_or(List::EMPTY);
            found = found.wrapping_add(self.list(list, id, kind, order)?);
        }
        Ok(found)
    }

    fn list_id(&self, kind: u8, order: u8, n: u32) -> usize {
        let index = n << self.parts.map.rank(Order(order));
        Books::list(kind, self.books.level(order), index as u16)
    }

    fn list(&self, list: List, id: usize, kind: u8, order: u8) -> Result<u32, Broken> {
        if list.is_empty() {
            return Ok(0);
        }
        let (mut at, mut seen) = (list.head(), 1u32);
        loop {
            if self.state(at) != table::free(order, kind) {
                return Err(self.broken("block is on a list of another order or type", at));
            }
            let index = self.parts.map.index(self.books.frame(at));
            if Books::list(kind, self.books.level(order), index) != id {
                return Err(self.broken("block is on a list of other colors", at));
            }
            if at == list.tail() {
                return Ok(seen);
            }
            let next = table::next(self.parts.links, at);
            if table::prev(self.parts.links, next) != at || next == list.head() {
                return Err(self.broken("back link differs from forward link", next));
            }
            seen = seen.wrapping_add(1);
            if seen > self.books.frames {
                return Err(self.broken("list has a loop", at));
            }
            at = next;
        }
    }

    /// The blocks that are kept off the lists; answers how many per order.
    fn spares(&self) -> Result<[u32; NR_ORDERS], Broken> {
        let mut found = [0; NR_ORDERS];
        for (order, found) in (0..PAGEBLOCK_ORDER).zip(&mut found) {
            let spare = self.books.spares.get(order);
            if self.books.spares.orders_from(order) >> order & 1 == 0 {
                continue;
            }
            let byte = self.state(spare.at);
            let index = self.parts.map.index(self.books.frame(spare.at));
            if byte != table::free(order, MigrateType::Movable as u8) || index != spare.index {
                return Err(self.broken("spare block is none", spare.at));
            }
            *found = 1;
        }
        Ok(found)
    }

    /// The bitmap of one order and type against its lists.
    #[inline(never)]
    fn bitmap(&self, kind: u8, order: u8) -> Result<(), Broken> {
        let map = self.parts.map;
        let mut want = ColorSet::EMPTY;
        let mut some = 0u32;
        for n in 0..map.lists(Order(order)) {
            let list = self.parts.lists.get(self.list_id(kind, order, n));
            if let Some(list) = list.filter(|l| !l.is_empty()) {
                let frame: Pfn = self.books.frame(list.head());
                map.colors_in(frame, Order(order), &mut want);
                some = list.head();
            }
        }
        let first = self.books.bitmap(kind, order);
        let word = |at: usize| self.parts.words.get(at).copied().unwrap_or(0);
        let agree = match self.books.is_wide() {
            false => word(first) == want.word(0),
            true => {
                let words = first.wrapping_add(1);
                let same = |w: usize| word(words.wrapping_add(w)) == want.word(w);
                word(first) == want.summary() && (0..map.words()).all(same)
            }
        };
        let has = self.books.orders_from(kind, order) >> order & 1 == 1;
        if !agree || has == want.is_empty() {
            return Err(self.broken("bitmap of colors differs from the lists", some));
        }
        Ok(())
    }
}
