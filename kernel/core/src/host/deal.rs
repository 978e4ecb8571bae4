//! Dealing frames, of those that the kernel has at hand or of a pool, to one set or to all that have none.

use piebald_units::{Color, Pfn};

use super::{Given, Host, REQUEST, Reach, Seat, even, even::Even};

impl Host {
    /// Deals frames that the kernel has at hand: `spare`, of which the first `fitting` are known to be such as the
    /// process may have. They are dealt as they come, but for colours that are far ahead of the others. (Where a map
    /// has more colours than are counted, in the order of the round, until nobody has the colour whose turn it is.)
    /// What is left then stands first, in its order: `fitting` of those that it may have, and the others. Answers how many
    /// were dealt.
    pub fn deal_spare(
        &mut self,
        mut seat: Option<&mut Seat>,
        spare: &mut [Given],
        fitting: &mut usize,
        out: &mut [Given],
    ) -> usize {
        *fitting = self.sift(seat.as_deref(), spare, *fitting);
        match self.even_of(seat.as_deref_mut()) {
            Some(even) => deal_evenly(even, spare, fitting, out),
            None => self.deal_in_turn(seat, spare, fitting, out),
        }
    }

    /// Deals frames of a node's pool in the order of the round, until `out` is full or the pool has none of the
    /// colour whose turn it is. Answers how many.
    pub fn deal_pool(
        &mut self,
        node: usize,
        mut seat: Option<&mut Seat>,
        out: &mut [Given],
    ) -> usize {
        let mut dealt = 0usize;
        for slot in out {
            let Ok(given) = self.take(node, seat.as_deref_mut(), Reach::Turn) else {
                break;
            };
            *slot = given;
            dealt = dealt.wrapping_add(1);
        }
        dealt
    }

    fn deal_in_turn(
        &mut self,
        mut seat: Option<&mut Seat>,
        spare: &mut [Given],
        fitting: &mut usize,
        out: &mut [Given],
    ) -> usize {
        let mut dealt = 0usize;
        for slot in out {
            let Some(wish) = self.wish(seat.as_deref()) else {
                break;
            };
            let of_wish = |g: &Given| g.color == u32::from(wish.0);
            let Some(at) = spare.iter().take(*fitting).position(of_wish) else {
                break;
            };
            *slot = remove(spare, at, dealt);
            *fitting = fitting.saturating_sub(1);
            dealt = dealt.wrapping_add(1);
            self.took(seat.as_deref_mut(), wish);
        }
        dealt
    }

    /// What a set had by colour, or all that have none, as of the sets that there are now; none where a map has more
    /// colours than are counted.
    fn even_of<'a>(&'a mut self, seat: Option<&'a mut Seat>) -> Option<&'a mut Even> {
        if self.colors() as usize > even::COUNTED {
            return None;
        }
        let (version, of) = (self.version(), self.set_with(seat.as_deref()));
        let allowed = self.registry.allowed(&REQUEST, of).ok()?.set();
        let colors = allowed.map_or(self.colors(), piebald_units::ColorSet::len);
        let even = match seat.filter(|_| of.is_some()) {
            Some(seat) => &mut seat.even,
            None => &mut self.even,
        };
        if !even.is_of(version) {
            even.begin(version, colors);
        }
        Some(even)
    }

    /// Notes the colours of frames, of which the first `known` are known to be such as a process may have, and puts
    /// all of these in front, in their order. Answers how many.
    fn sift(&self, seat: Option<&Seat>, frames: &mut [Given], known: usize) -> usize {
        let Ok(allowed) = self.registry.allowed(&REQUEST, self.set_with(seat)) else {
            return 0;
        };
        let (map, set) = (self.map(), allowed.set());
        let mut fitting = known;
        for at in known..frames.len() {
            let Some(given) = frames.get_mut(at) else {
                break;
            };
            let color = map.color(Pfn(given.pfn));
            (given.color, given.fallback) = (u32::from(color.0), 0);
            if set.is_none_or(|set| set.contains(color)) {
                if at != fitting {
                    swap(frames, at, fitting);
                }
                fitting = fitting.wrapping_add(1);
            }
        }
        if self.colors() == 0 { 0 } else { fitting }
    }
}

/// Deals the first `fitting` frames, but for those whose colour is far ahead. What stays stands first, in its
/// order. Answers how many were dealt.
fn deal_evenly(
    even: &mut Even,
    spare: &mut [Given],
    fitting: &mut usize,
    out: &mut [Given],
) -> usize {
    let (mut dealt, mut kept) = (0usize, 0usize);
    for at in 0..spare.len() {
        let Some(given) = spare.get(at).copied() else {
            break;
        };
        let color = Color(given.color as u16);
        if at < *fitting
            && even.may(color)
            && let Some(slot) = out.get_mut(dealt)
        {
            *slot = given;
            dealt = dealt.wrapping_add(1);
            even.took(color);
        } else if let Some(slot) = spare.get_mut(kept) {
            *slot = given;
            kept = kept.wrapping_add(1);
        }
    }
    *fitting = fitting.saturating_sub(dealt);
    dealt
}

/// Takes one of frames out, of which the last `gone` do not count any more. The others keep their order.
fn remove(frames: &mut [Given], at: usize, gone: usize) -> Given {
    let removed = frames.get(at).copied().unwrap_or_default();
    let end = frames.len().saturating_sub(gone);
    for next in at.wrapping_add(1)..end {
        swap(frames, next.wrapping_sub(1), next);
    }
    removed
}

/// Exchanges two frames of a slice, if it has both.
fn swap(frames: &mut [Given], one: usize, other: usize) {
    let (Some(a), Some(b)) = (frames.get(one).copied(), frames.get(other).copied()) else {
        return;
    };
    for (at, given) in [(one, b), (other, a)] {
        if let Some(slot) = frames.get_mut(at) {
            *slot = given;
        }
    }
}
