//! Which frame a page gets: Figure 7, and what happens where it falls short.

use piebald_units::{Color, ColorSet, Pfn};

use super::{
    Answer, FileFault, How, Limited, Sequence, Srm, Store, Supply, Taken, VmTurn,
    search::{Found, View},
    zone::{list, put},
};
use crate::contract::Mode;

impl<S: Store> Srm<S> {
    /// A frame for a block of a file, in the colour of its sequence.
    pub fn file_fault(&mut self, fault: FileFault<'_>) -> Answer {
        let limited = fault.limited;
        if !self.is_large(&fault) {
            // It may have been larger once.
            self.end(fault.file);
        }
        self.block(self.sequence_of(fault), &limited)
    }

    /// The same-file heuristic applies (section 3.2: "files larger than T_l blocks").
    fn is_large(&self, fault: &FileFault<'_>) -> bool {
        fault.file_blocks > u64::from(self.limits.threshold)
    }

    fn sequence_of<'a>(&self, fault: FileFault<'a>) -> &'a mut Sequence {
        match self.is_large(&fault) {
            true => fault.file,
            false => fault.process,
        }
    }

    /// A frame for a page of a process's own memory, in the colour whose turn it is.
    pub fn vm_fault(&mut self, turn: &mut VmTurn, limited: Limited<'_>) -> Answer {
        let wish = self.view(limited.allowed).any(turn.color());
        let meant = wish.filter(|color| self.list_len(*color) > 0);
        let found = match meant {
            Some(color) => Some(Found::meant(color)),
            None if self.may_refill(limited.supply) => return self.refill(),
            None => self.next_with_pages(wish.unwrap_or(turn.color()), &limited),
        };
        if let Some(color) = found.map(|f| f.color).or(wish) {
            turn.next = self.after(color).0;
        }
        match found.and_then(|found| self.take(found)) {
            Some(taken) => Answer::Frame(taken),
            None => self.empty(wish),
        }
    }

    /// The next allowed colour with pages, or the next one.
    fn next_with_pages(&self, from: Color, limited: &Limited<'_>) -> Option<Found> {
        let found = |how| move |color| Found { color, how };
        let within = self.view(limited.allowed).some(from).map(found(How::Next));
        if within.is_some() || limited.allowed.is_none() || limited.mode == Mode::Hard {
            return within;
        }
        self.view(None).some(from).map(found(How::Outside))
    }

    /// A frame of whatever colour can be spared: for kernel memory, or to be given back
    /// under pressure. Free pages first, then pages of lists with more than T_l; going
    /// round the colours. If nobody needs room, a cold page's host may also take it
    /// back into its replacement order.
    pub fn take_any(&mut self) -> Option<Taken> {
        let view = self.view(None);
        let from = self.spare_next;
        let free = view.free(from);
        let long = free.or_else(|| view.long(from));
        let color = long.or_else(|| view.some(from))?;
        self.spare_next = self.after(color);
        let how = How::Any;
        self.take(Found { color, how })
    }

    /// The sequence ends: its process exits, or its file is closed by the last that had
    /// it open, or deleted. Its list loses the mark. It may begin anew.
    pub fn end(&mut self, sequence: &mut Sequence) {
        self.leave(sequence);
        *sequence = Sequence::NONE;
    }

    /// The host could not use the frame that this fault was answered (its page was used
    /// through a mapping meanwhile, or is dirty, and went back to the replacement order):
    /// the block is not counted, and the fault is asked again. After a
    /// [`vm_fault`](Self::vm_fault) the host just asks again.
    pub fn declined(&mut self, fault: FileFault<'_>) {
        let sequence = self.sequence_of(fault);
        sequence.blocks = sequence.blocks.saturating_sub(1);
        self.counters.declined = self.counters.declined.wrapping_add(1);
    }

    #[inline]
    fn view<'a>(&'a self, allowed: Option<&'a ColorSet>) -> View<'a> {
        View::new(self.store.parts(), allowed)
    }

    /// The colour after this one, going round.
    fn after(&self, color: Color) -> Color {
        let next = color.0.wrapping_add(1);
        match u32::from(next) < self.store.parts().map.colors() {
            true => Color(next),
            false => Color(0),
        }
    }

    #[inline]
    fn may_refill(&self, supply: Supply) -> bool {
        supply == Supply::More && self.wants_pages()
    }

    /// The next block of a sequence.
    fn block(&mut self, sequence: &mut Sequence, limited: &Limited<'_>) -> Answer {
        let going_on = self.going_on(sequence, limited.allowed);
        if let Some(color) = going_on {
            if self.list_len(color) > 0 {
                return self.give(sequence, Found::meant(color));
            }
            if self.may_refill(limited.supply) {
                return self.refill();
            }
        }
        let found = match self.choose(sequence, limited) {
            Some(found) => found,
            None if self.may_refill(limited.supply) => return self.refill(),
            None => match self.make_do(sequence, limited) {
                Some(found) => found,
                None => return self.empty(going_on),
            },
        };
        self.begin(sequence, found.color, going_on.is_some());
        self.give(sequence, found)
    }

    /// The colour of a sequence that has blocks to come in it.
    #[inline]
    fn going_on(&self, sequence: &Sequence, allowed: Option<&ColorSet>) -> Option<Color> {
        let color = sequence.color()?;
        let is_meant = sequence.blocks < self.limits.threshold && self.view(allowed).permits(color);
        is_meant.then_some(color)
    }

    /// A list to begin a sequence in, with more than T_l pages and no mark that counts
    /// (Figure 7, `update_color`). Its own last, whose mark it gives up: a sequence
    /// that is cut changes colour.
    fn choose(&self, sequence: &Sequence, limited: &Limited<'_>) -> Option<Found> {
        let view = self.view(limited.allowed);
        let own = sequence.color();
        if let Some(color) = view.ready(self.next, own) {
            return Some(Found::meant(color));
        }
        if let Some(color) = view.idle(self.clock, self.limits.idle_after, own) {
            let how = How::Idle;
            return Some(Found { color, how });
        }
        own.filter(|color| self.is_own_and_long(sequence, *color) && view.permits(*color))
            .map(Found::meant)
    }

    fn is_own_and_long(&self, sequence: &Sequence, color: Color) -> bool {
        let list = list(self.store.parts().lists, color);
        list.len > self.limits.threshold && (list.holder == 0 || list.holder == sequence.ticket)
    }

    /// A list to begin in where no other will do.
    fn make_do(&self, sequence: &Sequence, limited: &Limited<'_>) -> Option<Found> {
        let within = self.shorter(sequence, limited.allowed);
        if within.is_some() || limited.allowed.is_none() || limited.mode == Mode::Hard {
            return within;
        }
        let color = self.shorter(sequence, None)?.color;
        let how = How::Outside;
        Some(Found { color, how })
    }

    /// The longest unmarked list, else the marked one that was used least recently.
    fn shorter(&self, sequence: &Sequence, allowed: Option<&ColorSet>) -> Option<Found> {
        let view = self.view(allowed);
        let found = |how| move |color| Found { color, how };
        let short = view.longest(sequence.ticket).map(found(How::Short));
        short.or_else(|| view.least_used().map(found(How::Shared)))
    }

    /// Marks a list for a sequence; the one that it had loses the mark.
    fn begin(&mut self, sequence: &mut Sequence, color: Color, is_cut: bool) {
        self.leave(sequence);
        // 64 bits do not run out.
        self.ticket = self.ticket.wrapping_add(1);
        *sequence = Sequence {
            ticket: self.ticket,
            blocks: 0,
            color: color.0,
        };
        let parts = self.store.parts_mut();
        put(&mut parts.sets.marked, color, true);
        if let Some(list) = parts.lists.get_mut(usize::from(color.0)) {
            list.holder = sequence.ticket;
        }
        self.next = self.after(color);
        self.counters.sequences = self.counters.sequences.wrapping_add(1);
        self.counters.cut = self.counters.cut.wrapping_add(u64::from(is_cut));
    }

    /// Takes the mark off a list if it is this sequence's.
    fn leave(&mut self, sequence: &Sequence) {
        let Some(color) = sequence.color() else {
            return;
        };
        let parts = self.store.parts_mut();
        if let Some(list) = parts.lists.get_mut(usize::from(color.0))
            && list.holder == sequence.ticket
        {
            list.holder = 0;
            put(&mut parts.sets.marked, color, false);
        }
    }

    /// Takes a page for a sequence from a list that has one.
    fn give(&mut self, sequence: &mut Sequence, found: Found) -> Answer {
        let Some(taken) = self.take(found) else {
            return self.empty(None);
        };
        sequence.blocks = sequence.blocks.saturating_add(1);
        self.clock = self.clock.wrapping_add(1);
        let parts = self.store.parts_mut();
        if let Some(list) = parts.lists.get_mut(usize::from(found.color.0)) {
            list.used = self.clock;
        }
        Answer::Frame(taken)
    }

    /// Takes the first page of a list out of the zone.
    #[inline]
    fn take(&mut self, found: Found) -> Option<Taken> {
        let Found { color, how } = found;
        let mut parts = self.store.parts_mut();
        let (at, holds) = self.books.pop(&mut parts, color)?;
        self.counters.took(holds, how);
        Some(Taken {
            frame: Pfn(self.origin.0.wrapping_add(u64::from(at))),
            color,
            holds,
            how,
        })
    }

    fn refill(&mut self) -> Answer {
        self.counters.refills = self.counters.refills.wrapping_add(1);
        Answer::Refill
    }

    fn empty(&mut self, wish: Option<Color>) -> Answer {
        self.counters.empty = self.counters.empty.wrapping_add(1);
        Answer::Empty(wish)
    }
}
