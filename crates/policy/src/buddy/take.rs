//! Granting blocks: the choice of a colour and an order, splits, and blocks of
//! other migrate types.

use piebald_units::{Color, ColorSet, Order};

use super::{
    MAX_ORDER, PAGEBLOCK_ORDER,
    books::Books,
    migrate::MigrateType,
    table::{self, State},
    work::{Work, free_of, owned_of, size},
};
use crate::contract::{AllocError, FrameRequest, Grant, Mode};

/// A block that could be granted, by its list.
#[derive(Clone, Copy)]
struct Choice {
    from: u8,
    color: Color,
    /// The head of the list lies in a dense pageblock.
    dense: bool,
}

/// Adds one to a counter that never gets near its end.
pub(super) fn bump(counter: &mut u64) {
    *counter = counter.wrapping_add(1);
}

impl Work<'_> {
    #[inline(never)]
    pub(super) fn alloc(&mut self, r: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        let (at, fallback) = match self.serve(r) {
            Ok(found) => found,
            Err(error) => {
                bump(&mut self.books.counters.failures);
                return Err(error);
            }
        };
        self.count_grant();
        if fallback {
            bump(&mut self.books.counters.fallbacks);
        }
        Ok(Grant {
            frame: self.frame(at),
            order: r.order,
            fallback,
        })
    }

    #[inline]
    fn count_grant(&mut self) {
        let measures = self.books.measures_next();
        bump(&mut self.books.counters.grants);
        if measures {
            self.books.measure();
        }
    }

    #[inline(always)]
    fn serve(&mut self, r: &FrameRequest<'_>) -> Result<(u32, bool), AllocError> {
        if r.order.0 > MAX_ORDER {
            return Err(AllocError::OrderTooLarge);
        }
        let kind = MigrateType::of(r.purpose);
        let found = match r.allowed {
            Some(set) if self.books.rank(r.order.0) > 0 => self.search_blocks(kind, r, set),
            set => self.search(kind, r.order.0, set, r.wish),
        };
        if let Some(at) = found {
            return Ok((at, false));
        }
        let other = match (r.allowed, r.mode) {
            (Some(_), Mode::Hint) => self.search_on(kind, r.order.0, None, None),
            _ => None,
        };
        other.map(|at| (at, true)).ok_or_else(|| self.why(r))
    }

    /// Why a request failed.
    fn why(&self, r: &FrameRequest<'_>) -> AllocError {
        let listed = |kind: &MigrateType| self.books.orders_from(*kind as u8, r.order.0) != 0;
        let free =
            MigrateType::ALL.iter().any(listed) || self.books.spares.orders_from(r.order.0) != 0;
        match r.allowed.is_some() && free {
            true => AllocError::ColorsExhausted,
            false => AllocError::OutOfMemory,
        }
    }

    /// Blocks that hold several colours are granted if all of them are allowed.
    #[inline(never)]
    fn search_blocks(
        &mut self,
        kind: MigrateType,
        r: &FrameRequest<'_>,
        allowed: &ColorSet,
    ) -> Option<u32> {
        let mut whole = ColorSet::EMPTY;
        self.parts.map.erode(r.order, allowed, &mut whole);
        self.search_on(kind, r.order.0, Some(&whole), r.wish)
    }

    /// [`Work::search`] where it is rare, so that the common one is compiled into
    /// its caller.
    #[inline(never)]
    fn search_on(
        &mut self,
        kind: MigrateType,
        order: u8,
        set: Option<&ColorSet>,
        wish: Option<Color>,
    ) -> Option<u32> {
        self.search(kind, order, set, wish)
    }

    /// Takes a block from the own lists, or else from another type's.
    #[inline(always)]
    fn search(
        &mut self,
        kind: MigrateType,
        order: u8,
        set: Option<&ColorSet>,
        wish: Option<Color>,
    ) -> Option<u32> {
        let known =
            |c: &Color| u32::from(c.0) < self.books.colors && set.is_none_or(|s| s.contains(*c));
        let wish = wish.filter(known);
        if kind == MigrateType::Movable
            && let Some(fit) = self.spare_for(order, set, wish)
        {
            self.books.spares.remove(fit.order, fit.at);
            return Some(self.grant(fit.at, fit.order, order, fit.want, kind));
        }
        self.search_lists(kind, order, set, wish)
    }

    #[inline(always)]
    fn search_lists(
        &mut self,
        kind: MigrateType,
        order: u8,
        set: Option<&ColorSet>,
        wish: Option<Color>,
    ) -> Option<u32> {
        if let Some(color) = wish {
            if let Some(from) = self.best_with(kind, order, color) {
                return self.take(kind, from, order, color, kind);
            }
            bump(&mut self.books.counters.missed_wishes);
            // The spares were asked for the wish alone.
            if set.is_some() || self.books.spares.orders_from(order) != 0 {
                self.list_spares();
            }
        }
        let start = wish.unwrap_or(self.books.cursor_of(set));
        match self.best(kind, order, set, start) {
            Some((from, color)) => self.take(kind, from, order, color, kind),
            None => self.steal(kind, order, set, start),
        }
    }

    /// The order of the best block with this colour.
    #[inline]
    fn best_with(&mut self, kind: MigrateType, order: u8, color: Color) -> Option<u8> {
        let found = self.best_of(kind, order, |work, from| {
            work.has_color(kind as u8, from, color).then_some(color)
        });
        found.map(|choice| choice.from)
    }

    /// The order of the best block with a colour of the set, and the colour.
    #[inline(always)]
    fn best(
        &mut self,
        kind: MigrateType,
        order: u8,
        set: Option<&ColorSet>,
        start: Color,
    ) -> Option<(u8, Color)> {
        let mut found = self.best_of(kind, order, |work, from| {
            work.pick(kind as u8, from, set, start)
        })?;
        // Blocks of a pageblock and above have none that is dense.
        if !found.dense && order < PAGEBLOCK_ORDER {
            // One more color is asked, and the next request begins beyond it.
            let start = Color(found.color.0.wrapping_add(1));
            let other = self.best_of(kind, order, |work, from| {
                work.pick(kind as u8, from, set, start)
            });
            found = other.filter(|choice| choice.dense).unwrap_or(found);
        }
        let on = u16::from(!found.dense);
        let next = Color(found.color.0.wrapping_add(on));
        self.books.set_cursor(set, next);
        Some((found.from, found.color))
    }

    /// The smallest block in a dense pageblock; else the smallest that breaks no
    /// whole pageblock; else the smallest. `color` tells which colour of an order
    /// to look at.
    #[inline]
    fn best_of(
        &mut self,
        kind: MigrateType,
        order: u8,
        color: impl Fn(&Self, u8) -> Option<Color>,
    ) -> Option<Choice> {
        let mut orders = self.books.orders_from(kind as u8, order);
        let mut sparse = None;
        while orders != 0 {
            let from = orders.trailing_zeros() as u8;
            orders &= orders.wrapping_sub(1);
            let Some(color) = color(self, from) else {
                continue;
            };
            let dense = from < PAGEBLOCK_ORDER && {
                let index = self.index_of(color);
                self.has_dense(Books::list(kind as u8, self.books.level(from), index))
            };
            let choice = Choice { from, color, dense };
            if dense {
                return Some(choice);
            }
            sparse = sparse.or(Some(choice));
            if from >= PAGEBLOCK_ORDER {
                break;
            }
        }
        sparse
    }

    /// Takes a block of one migrate type, of any colour.
    pub(super) fn take_any(&mut self, kind: MigrateType, order: u8) -> Option<u32> {
        let (from, color) = self.best(kind, order, None, Color(0))?;
        self.take(kind, from, order, color, kind)
    }

    /// Takes a block of order `from` that holds the colour off its list, splits
    /// it down to `order` and grants what holds the colour; the rest goes to the
    /// lists of type `rest`.
    #[inline(always)]
    fn take(
        &mut self,
        kind: MigrateType,
        from: u8,
        order: u8,
        color: Color,
        rest: MigrateType,
    ) -> Option<u32> {
        let want = self.index_of(color);
        let id = Books::list(kind as u8, self.books.level(from), want);
        let at = self.head_of(id)?;
        self.unlink(at, from, kind as u8, want);
        Some(self.grant(at, from, order, want, rest))
    }

    /// Grants the part of an unlisted block that holds an index.
    #[inline(always)]
    fn grant(&mut self, at: u32, from: u8, order: u8, want: u16, rest: MigrateType) -> u32 {
        let at = match from > order {
            true => self.split(at, from, order, want, rest),
            false => at,
        };
        self.count_taken(at, order);
        self.set_state(at, table::granted(order));
        self.books.current = at >> PAGEBLOCK_ORDER;
        at
    }

    /// Halves an unlisted block of order `from` until a block of `order` is
    /// left, keeping the half that holds the index `want`, or the lower one if
    /// both do.
    #[inline(always)]
    fn split(&mut self, first: u32, from: u8, order: u8, want: u16, rest: MigrateType) -> u32 {
        let mut at = first;
        let mut index = self.index(at);
        for o in (order..from).rev() {
            let level = self.books.level(o);
            let upper = at.wrapping_add(size(o));
            let other = index ^ level.step;
            let lower_has = (index ^ want) >> (level.rank & 15) == 0;
            if lower_has {
                self.put_by(upper, o, rest, other);
            } else {
                self.put_by(at, o, rest, index);
                (at, index) = (upper, other);
            }
        }
        let splits = u64::from(from.wrapping_sub(order));
        let counters = &mut self.books.counters;
        counters.splits = counters.splits.wrapping_add(splits);
        at
    }

    /// Takes the largest block of another migrate type. A large one brings its
    /// pageblock along, so that types mix in few pageblocks.
    #[inline(never)]
    fn steal(
        &mut self,
        kind: MigrateType,
        order: u8,
        set: Option<&ColorSet>,
        start: Color,
    ) -> Option<u32> {
        self.list_spares();
        let victim = |o: u8| {
            kind.fallbacks().into_iter().find_map(|from| {
                let has = self.books.orders_from(from as u8, o) >> (o & 15) & 1 == 1;
                let color = has.then(|| self.pick(from as u8, o, set, start))??;
                Some((from, o, color))
            })
        };
        let (owner, from, color) = (order..=MAX_ORDER).rev().find_map(victim)?;
        bump(&mut self.books.counters.steals);
        let want = self.index_of(color);
        let at = self.head_of(Books::list(owner as u8, self.books.level(from), want))?;
        self.unlink(at, from, owner as u8, want);
        let brings = from >= PAGEBLOCK_ORDER / 2 || kind != MigrateType::Movable;
        if from >= PAGEBLOCK_ORDER {
            self.claim(at, kind);
            if from > PAGEBLOCK_ORDER {
                self.claim(at.wrapping_add(size(PAGEBLOCK_ORDER)), kind);
            }
        } else if brings {
            self.convert(at, from, kind);
        }
        Some(self.grant(at, from, order, want, if brings { kind } else { owner }))
    }

    /// Gives a pageblock to a migrate type.
    fn claim(&mut self, at: u32, kind: MigrateType) {
        self.set_kind(at, kind);
        bump(&mut self.books.counters.claims);
    }

    /// Relists the other free blocks of the pageblock around an unlisted block,
    /// and claims the pageblock when at least half of it is free.
    fn convert(&mut self, unlisted: u32, order: u8, kind: MigrateType) {
        let first = unlisted & !size(PAGEBLOCK_ORDER).wrapping_sub(1);
        let end = first.wrapping_add(size(PAGEBLOCK_ORDER));
        let mut at = first;
        while at < end {
            let mut step = 1;
            if at == unlisted {
                step = size(order);
            } else if let State::Free { order: o, kind: k } = table::state(self.state(at)) {
                step = size(o);
                let index = self.index(at);
                self.unlink(at, o, k, index);
                self.insert(at, o, kind as u8, index);
            }
            at = at.wrapping_add(step);
        }
        let pageblock = self.pageblock(unlisted);
        if free_of(pageblock).wrapping_mul(2) >= owned_of(pageblock) {
            self.claim(unlisted, kind);
        }
    }

    /// Takes single frames for a per-core list, whole blocks of them where the
    /// smallest free block allows, and hands each to `put`: at most `limit`,
    /// within the allowed colours; of the wished colour while there are any, and
    /// of others only if there are none from the start. Answers how many.
    pub(super) fn take_singles(
        &mut self,
        r: &FrameRequest<'_>,
        limit: u32,
        mut put: impl FnMut(u32),
    ) -> u32 {
        let kind = MigrateType::of(r.purpose);
        let mut taken = 0u32;
        while let Some(most) = limit.wrapping_sub(taken).checked_ilog2() {
            let most = most.min(u32::from(MAX_ORDER)) as u8;
            let run = self.run(kind, most, r, taken == 0);
            let Some((first, order)) = run else { break };
            for at in first..first.wrapping_add(size(order)) {
                self.set_state(at, table::granted(0));
                put(at);
            }
            taken = taken.wrapping_add(size(order));
        }
        let counters = &mut self.books.counters;
        counters.grants = counters.grants.wrapping_add(u64::from(taken));
        taken
    }

    /// A block of order at most `most` for the per-core lists.
    fn run(
        &mut self,
        kind: MigrateType,
        most: u8,
        r: &FrameRequest<'_>,
        first: bool,
    ) -> Option<(u32, u8)> {
        let known = |c: &Color| {
            u32::from(c.0) < self.books.colors && r.allowed.is_none_or(|s| s.contains(*c))
        };
        let wish = r.wish.filter(known);
        if kind == MigrateType::Movable
            && let Some(fit) = self.spare_for(0, r.allowed, wish)
        {
            let order = self.whole(fit.order.min(most), r.allowed, wish.is_some(), fit.color);
            self.books.spares.remove(fit.order, fit.at);
            return Some((self.grant(fit.at, fit.order, order, fit.want, kind), order));
        }
        let wished = wish.and_then(|c| Some((self.best_with(kind, 0, c)?, c)));
        let start = wish.unwrap_or(self.books.cursor_of(r.allowed));
        if wish.is_some() && wished.is_none() {
            if !first {
                return None;
            }
            self.list_spares();
        }
        let found = wished.or_else(|| self.best(kind, 0, r.allowed, start));
        let Some((from, color)) = found else {
            return Some((self.steal(kind, 0, r.allowed, start)?, 0));
        };
        let order = self.whole(from.min(most), r.allowed, wished.is_some(), Some(color));
        Some((self.take(kind, from, order, color, kind)?, order))
    }

    /// The largest order up to `most` whose block around a colour may be taken as
    /// a whole: all its colours are allowed, or it has the wished colour alone.
    fn whole(&self, most: u8, set: Option<&ColorSet>, wished: bool, color: Option<Color>) -> u8 {
        let fits = |order: &u8| match (wished, set, color) {
            (true, ..) => self.books.rank(*order) == 0,
            (false, Some(set), Some(c)) => self.parts.map.block_within(c, Order(*order), set),
            _ => true,
        };
        (0..=most).rev().find(fits).unwrap_or(0)
    }
}
