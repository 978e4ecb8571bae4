//! Recounts of everything that DULO keeps in two forms.

use super::{
    Dulo, Store,
    section::link,
    store::{HELD, NIL, Sequence},
};
use crate::contract::replacement::{Base, BrokenOrder, PageRef, State};

const fn broken(rule: &'static str, page: u32) -> BrokenOrder {
    BrokenOrder {
        rule,
        page: Some(PageRef(page)),
    }
}

impl<B: Base, S: Store> Dulo<B, S> {
    pub(super) fn check(&self) -> Result<(), BrokenOrder> {
        self.base.validate()?;
        let counted = self.check_section()?;
        self.check_runs()?;
        self.check_slots()?;
        self.check_sequences(counted)?;
        let table = self.store.parts().table;
        let books = self.tree.validate(table, self.clock);
        books.map_err(|rule| BrokenOrder { rule, page: None })
    }

    /// The list, its sequences and their order; returns how many sequences.
    fn check_section(&self) -> Result<u32, BrokenOrder> {
        let parts = self.store.parts();
        let (mut pages, mut sequences) = (0u32, 0u32);
        let (mut below, mut h) = (NIL, self.section.inflation);
        let mut run = (NIL, 0u16);
        for page in self.pages() {
            let at = link(parts.links, page);
            let Some(record) = parts.sequences.get(at.sequence as usize) else {
                return Err(broken("a page of the section has no sequence", page));
            };
            if at.below != below || pages > self.base.slots() {
                return Err(broken("the section's links do not agree", page));
            }
            if self.base.state(PageRef(page)) != State::Detached {
                return Err(broken("a page of the section is in the base's order", page));
            }
            if run.1 == 0 {
                run = (at.sequence, record.left);
                sequences = sequences.saturating_add(1);
                Self::check_start(record, page, h, self.config.max_sequence)?;
                h = record.h;
            }
            run.1 = run.1.saturating_sub(1);
            if run.0 != at.sequence || (run.1 == 0) != (record.high == page) {
                return Err(broken("a sequence does not lie together", page));
            }
            below = page;
            pages = pages.saturating_add(1);
        }
        if below != self.section.top || pages != self.section.pages || run.1 != 0 {
            return Err(broken("the section's pages were miscounted", below));
        }
        Ok(sequences)
    }

    /// Sequences of a run have one `H`, and only those at its ends know each other.
    fn check_runs(&self) -> Result<(), BrokenOrder> {
        let parts = self.store.parts();
        let mut bottom = self.section.bottom;
        while bottom != NIL {
            let first = link(parts.links, bottom).sequence;
            let Some(start) = parts.sequences.get(first as usize) else {
                break;
            };
            let (mut at, mut record) = (first, start);
            while at != start.mate {
                at = link(parts.links, link(parts.links, record.high).above).sequence;
                record = match parts.sequences.get(at as usize) {
                    Some(next) if next.h == start.h => next,
                    _ => return Err(broken("a run of sequences does not end", bottom)),
                };
                if record.mate != NIL && at != start.mate {
                    return Err(broken("a run of sequences has an end within", record.low));
                }
            }
            if record.mate != first {
                return Err(broken("the ends of a run do not know each other", bottom));
            }
            bottom = link(parts.links, record.high).above;
        }
        Ok(())
    }

    /// The lowest page of a sequence.
    fn check_start(
        record: &Sequence,
        page: u32,
        h: u64,
        max_sequence: u16,
    ) -> Result<(), BrokenOrder> {
        if record.low != page {
            return Err(broken(
                "a sequence does not begin with its lowest page",
                page,
            ));
        }
        if record.h < h {
            return Err(broken("sequences are not in the order of H above L", page));
        }
        let allowed = 1..=max_sequence;
        if !allowed.contains(&record.size) || record.left > record.size {
            return Err(broken("a sequence has an impossible size", page));
        }
        Ok(())
    }

    /// Pages that the host holds, and those that are nowhere.
    fn check_slots(&self) -> Result<(), BrokenOrder> {
        let links = self.store.parts().links;
        let (mut held, mut evicting, mut attached) = (0u32, 0u32, 0u32);
        for page in 0..self.base.slots() {
            let state = self.base.state(PageRef(page));
            let count = match (link(links, page).sequence, state) {
                (HELD, State::Detached) => &mut held,
                (NIL, State::Resident) => &mut attached,
                (NIL, State::Unknown | State::Ghost) => continue,
                (sequence, State::Detached) if sequence != NIL => &mut evicting,
                _ => return Err(broken("DULO and its base disagree on a page", page)),
            };
            *count = count.saturating_add(1);
        }
        let counts = (held, evicting, attached);
        if counts != (self.held, self.section.pages, self.staging()) {
            let rule = "pages by section were miscounted";
            return Err(BrokenOrder { rule, page: None });
        }
        Ok(())
    }

    /// Every record is in use or free.
    fn check_sequences(&self, in_use: u32) -> Result<(), BrokenOrder> {
        let sequences = self.store.parts().sequences;
        let (mut free, mut at) = (0u32, self.section.free);
        while let Some(record) = sequences.get(at as usize) {
            free = free.saturating_add(1);
            if record.left != 0 || free > self.section.fresh {
                break;
            }
            at = record.low;
        }
        let rule = "records of sequences are lost";
        if in_use != self.section.nr_sequences
            || at != NIL
            || in_use.saturating_add(free) != self.section.fresh
        {
            return Err(BrokenOrder { rule, page: None });
        }
        Ok(())
    }
}
